"""Sliders over a GPU in Jupyter, with the CPI stack and IPC that follow."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.former import former_keywords
from warpstack._util.options import Options, StageChanges, options_of
from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu, check_value_fields, is_whole
from warpstack.models.pipeline import Pipeline, Recent
from warpstack.models.prediction import (
    evaluate,
    fields_used,
    model_list,
    values_of_row,
    warn_of_unread,
)
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, LABELS
from warpstack.plot.style import metric_label
from warpstack.tables import STACK_COMPONENTS, add_up
from warpstack.traces.trace import App, KernelTrace

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["MAIN_FIELDS", "Explorer", "explore"]

#: Fields that `explore` has sliders for unless told otherwise.
MAIN_FIELDS = (
    "num_sms",
    "clock_ghz",
    "l1_mshrs",
    "noc_bandwidth_gbs",
    "dram_bandwidth_gbs",
    "l1_size_kib",
    "l2_size_kib",
)
#: Factors of the GPU's own value that a slider has.
_FACTORS = (1 / 8, 1 / 4, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3, 4, 8)
#: Configurations of the caches whose profiles are kept: sliders go back and forth.
_KEPT = 32


class Explorer:
    """Predictions of an application while a GPU changes field by field.

    What a change cannot reach is kept: the caches are simulated again only when a field changes
    that the memory stage reads, intervals are made again only when a latency does.

    Parameters
    ----------
    app
        An application, whose kernels are added up, or one kernel.
    gpu
        The GPU to start from.
    models
        Names of models, or ``all``.
    options, **changes
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``.

    Raises
    ------
    InputError
        If an argument is unknown or there is no kernel.
    """

    @former_keywords(app_or_kernel="app")
    @checked
    def __init__(
        self,
        app: App | KernelTrace,
        gpu: GpuLike,
        models: str | Iterable[str] = (DEFAULT_MODEL,),
        *,
        options: Options | None = None,
        **changes: Unpack[StageChanges],
    ) -> None:
        self._base = as_gpu(gpu)
        self._models = model_list(models)
        how = options_of("explore", options, changes, StageChanges)
        warn_of_unread(how, self._models)
        self._pipeline = Pipeline(app, how, memo=Recent(_KEPT))
        self._pipeline.warps()  # a kernel without one is refused now

    @property
    def gpu(self) -> Gpu:
        """The GPU that the exploration started from."""
        return self._base

    @property
    def models(self) -> list[str]:
        """Names of the models."""
        return list(self._models)

    @checked
    def predict(self, **changes: Any) -> pd.DataFrame:
        """Return what the models say of the GPU with some fields changed.

        Parameters
        ----------
        **changes
            As for `Gpu.replace`.

        Returns
        -------
        DataFrame
            A row per model with the columns of `warpstack.models.application_totals`.

        Raises
        ------
        InputError
            If there is no such GPU, or a thread block does not fit on an SM.
        """
        gpu = self._base.replace(**changes)
        profiles = self._pipeline.profiles(gpu)
        rows = []
        for model in self._models:
            parts = [
                values_of_row(evaluate(profile, gpu, model), gpu, "nsys") for profile in profiles
            ]
            columns = {name: [part[name] for part in parts] for name in parts[0]}
            identity = {"gpu": gpu.name, "gpu_changes": gpu.changes_text, "model": model}
            rows.append({**identity, "kernels": len(parts), **add_up(columns)})
        return pd.DataFrame(rows)

    @property
    def fields_used(self) -> set[str]:
        """Fields of `Gpu` that the predictions depend on."""
        return fields_used(self._models) | self._pipeline.memory_fields

    @checked
    def is_fast(self, field: str) -> bool:
        """Return whether a change of the field leaves the caches as they are."""
        return field not in self._pipeline.memory_fields


@former_keywords(app_or_kernel="app")
@checked
def explore(
    app: App | KernelTrace,
    gpu: GpuLike,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    *,
    fields: Iterable[str] | Mapping[str, Iterable[Any]] = MAIN_FIELDS,
    options: Options | None = None,
    **changes: Unpack[StageChanges],
) -> Any:
    """Show sliders for fields of a GPU, and the CPI stack and IPC that the models predict.

    This needs Jupyter and the extra ``warpstack[explore]``. Fields that the caches depend on answer when
    the slider is let go, as that takes a run of the memory stage; all others while it moves.

    Parameters
    ----------
    app
        An application, whose kernels are added up, or one kernel.
    gpu
        The GPU to start from.
    models
        Names of models, or ``all``.
    fields
        Fields of `Gpu`; or the values of each slider by field, the GPU's own being added.
    options, **changes
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``.

    Returns
    -------
    ipywidgets.VBox
        It displays itself at the end of a notebook cell. Its attributes: ``explorer`` (`Explorer`),
        ``sliders`` (widgets by field), ``reset`` (a button), ``message`` (HTML), ``picture``
        (an image), and ``table``, the predictions shown.

    Raises
    ------
    InputError
        If a field or model does not exist, or ipywidgets is not installed.
    """
    try:
        import ipywidgets as widgets
    except ImportError:
        raise InputError(
            "explore needs ipywidgets; install it with: pip install 'warpstack[explore]'"
        ) from None

    explorer = Explorer(app, gpu, models, options=options, **changes)
    steps = _steps(explorer, fields)
    picture = _Picture(explorer)
    sliders = {
        field: widgets.SelectionSlider(
            options=[(_text(value), value) for value in values],
            value=getattr(explorer.gpu, field),
            description=field,
            tooltip=Gpu.fields()[field],
            continuous_update=explorer.is_fast(field),
            layout=widgets.Layout(width="360px"),
            style={"description_width": "150px"},
        )
        for field, values in steps.items()
    }
    reset = widgets.Button(description="reset", tooltip=f"back to {explorer.gpu.title}")
    message = widgets.HTML()
    image = widgets.Image(format="png")
    box = widgets.VBox(
        [
            widgets.HBox([widgets.VBox([*sliders.values(), reset]), image]),
            message,
        ]
    )
    box.explorer, box.sliders, box.reset = explorer, sliders, reset
    box.message, box.picture = message, image
    waiting = False

    def update(_: Any = None) -> None:
        if waiting:
            return
        changes = {
            field: slider.value
            for field, slider in sliders.items()
            if slider.value != getattr(explorer.gpu, field)
        }
        try:
            table = explorer.predict(**changes)
        except InputError as error:
            # The picture stays: it shows the last GPU that there is.
            message.value = f"<b>{html.escape(str(error))}</b>"
            return
        box.table = table
        image.value = picture.draw(table)
        message.value = html.escape(explorer.gpu.replace(**changes).title)

    def start_again(_: Any) -> None:
        nonlocal waiting
        waiting = True
        try:
            for field, slider in sliders.items():
                slider.value = getattr(explorer.gpu, field)
        finally:
            waiting = False
        update()

    for slider in sliders.values():
        slider.observe(update, names="value")
    reset.on_click(start_again)
    update()
    return box


class _Picture:
    """CPI stacks of which only the bars are drawn anew: axes and legend take most of the time."""

    def __init__(self, explorer: Explorer) -> None:
        self._models = explorer.models
        self._axes: Any = None
        self._top = 0.0
        self._background: Any = None

    def draw(self, table: pd.DataFrame) -> bytes:
        """Return the picture of a table as PNG."""
        if self._axes is None:
            self._prepare(table)
        bottom = [0.0] * len(table)
        for component, bars in zip(STACK_COMPONENTS, self._axes.containers, strict=True):
            for i, (bar, height) in enumerate(zip(bars, table[f"cpi_{component}"], strict=True)):
                bar.set_y(bottom[i])
                bar.set_height(height)
                bottom[i] += height
        for text, x, top, ipc in zip(
            self._ipc, range(len(table)), bottom, table["ipc"], strict=True
        ):
            text.set_text(f"IPC {ipc:.3g}")
            text.xy = (x, top)
        # The scale moves in steps, so that bars are seen to move and not the axis.
        top = max(bottom) * 1.1
        if not 0.4 * self._top < top <= self._top:
            self._top = top * 1.3
            self._axes.set_ylim(0, self._top)
            self._background = None
        canvas = self._axes.figure.canvas
        if self._background is None:
            canvas.draw()
            self._background = canvas.copy_from_bbox(self._axes.figure.bbox)
        canvas.restore_region(self._background)
        for bars in self._axes.containers:
            for bar in bars:
                self._axes.draw_artist(bar)
        for text in self._ipc:
            self._axes.draw_artist(text)
        from PIL import Image

        buffer = io.BytesIO()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).save(buffer, "png", compress_level=1)
        return buffer.getvalue()

    def _prepare(self, table: pd.DataFrame) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(max(4.2 + 0.6 * len(table), 5.4), 4.2), dpi=80)
        FigureCanvasAgg(figure)
        figure.subplots_adjust(left=0.14, right=1 - 2.2 / figure.get_figwidth(), bottom=0.22)
        self._axes = ax = figure.add_subplot()
        for component in STACK_COMPONENTS:
            ax.bar(
                range(len(table)),
                [0.0] * len(table),
                width=0.8,
                color=COLOURS[component],
                edgecolor="white",
                linewidth=0.4,
                label=LABELS[component],
                animated=True,
            )
        self._ipc = [
            ax.annotate(
                "",
                (i, 0),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=sheet.LABEL,
                animated=True,
            )
            for i in range(len(table))
        ]
        ax.set_xticks(range(len(table)), self._models, rotation=30, ha="right")
        ax.set_ylabel(metric_label("cpi"))
        sheet.open_frame(ax)
        handles, names = ax.get_legend_handles_labels()
        sheet.legend_outside(ax, handles[::-1], names[::-1])


def _steps(
    explorer: Explorer, fields: Iterable[str] | Mapping[str, Iterable[Any]]
) -> dict[str, list[Any]]:
    """Return the values of each slider, the GPU's own among them."""
    if isinstance(fields, str) or not isinstance(fields, Iterable):
        raise InputError(f"fields = {shown(fields)} is not a list of fields")
    given = dict(fields) if isinstance(fields, Mapping) else dict.fromkeys(fields)
    check_value_fields(given, "fields")
    if not given:
        raise InputError("fields: there are none to explore")
    used = explorer.fields_used
    steps = {}
    for field, values in given.items():
        own = getattr(explorer.gpu, field)
        if field not in used:
            raise InputError(
                f"fields: {field} has no influence on the models {', '.join(explorer.models)}"
            )
        if values is None:
            if isinstance(own, bool) or not isinstance(own, (int, float)) or own == 0:
                raise InputError(
                    f"fields: {field} = {shown(own)} needs values to choose from: "
                    f"fields={{{shown(field)}: [...]}}"
                )
            values = [own * factor for factor in _FACTORS]
            if is_whole(field):
                values = [max(round(value), 1) for value in values]
            steps[field] = _possible(explorer.gpu, field, [*values, own])
        elif isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"fields: {field} = {shown(values)} is not a list of values")
        else:
            # A wrong value is an error here, not a surprise at the slider.
            chosen = [getattr(explorer.gpu.replace(**{field: value}), field) for value in values]
            steps[field] = _ordered([*chosen, own])
    return steps


def _possible(gpu: Gpu, field: str, values: Iterable[Any]) -> list[Any]:
    found = []
    for value in values:
        try:
            found.append(getattr(gpu.replace(**{field: value}), field))
        except InputError:
            continue
    return _ordered(found)


def _ordered(values: Iterable[Any]) -> list[Any]:
    unique = list(dict.fromkeys(values))
    return unique if any(isinstance(value, str) for value in unique) else sorted(unique)


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
