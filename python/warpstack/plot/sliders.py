"""Sliders over a GPU in Jupyter, with CPI stack and IPC that follow, beside those of the unchanged GPU."""

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
from warpstack.models.interval_simulation import FIELDS as INTERVAL_SIMULATION_FIELDS
from warpstack.models.pipeline import Pipeline, Recent
from warpstack.models.prediction import (
    fields_used,
    model_list,
    needs_of,
    prediction_of,
    values_of_row,
    warn_of_unread,
)
from warpstack.plot import sheet
from warpstack.plot.components import COLOURS, LABELS
from warpstack.plot.style import metric_label
from warpstack.tables import STACK_COMPONENTS, add_up, settings_of
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
        ``access_order``, ``flush_l2``, ``initial_l2``.

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
        self._needs = needs_of(self._models)
        if self._needs.profiles:
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
        launches = self._pipeline.all_found(gpu, self._needs)
        rows = []
        for model in self._models:
            said = [prediction_of(found, gpu, model) for found in launches]
            parts = [values_of_row(one, gpu, "nsys") for one in said]
            columns = {name: [part[name] for part in parts] for name in parts[0]}
            identity = {"gpu": gpu.name, "gpu_changes": gpu.changes_text, "model": model}
            settings = settings_of(self._pipeline.options)
            rows.append({**identity, "kernels": len(parts), **add_up(columns), **settings})
        return pd.DataFrame(rows)

    @property
    def fields_used(self) -> set[str]:
        """Fields of `Gpu` that the predictions depend on."""
        return fields_used(self._models) | self._pipeline.memory_fields

    @checked
    def is_fast(self, field: str) -> bool:
        """Return whether a change of the field leaves the caches, and interval simulation, as they are."""
        simulated = INTERVAL_SIMULATION_FIELDS if self._needs.simulation else frozenset()
        return field not in self._pipeline.memory_fields | simulated


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

    The stack with the sliders' values stands beside the one of the unchanged GPU, and a line for each
    model says how many times as fast the change is.

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
        ``access_order``, ``flush_l2``, ``initial_l2``.

    Returns
    -------
    ipywidgets.VBox
        It displays itself at the end of a notebook cell. Its attributes: ``explorer`` (`Explorer`),
        ``sliders`` (widgets by field), ``reset`` (a button), ``message`` and ``speedup`` (HTML: the
        GPU, and what the change brings), ``picture`` (an image), ``table``, the predictions shown, and
        ``unchanged``, those of the GPU as it was given.

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
    message, speedup = widgets.HTML(), widgets.HTML()
    image = widgets.Image(format="png")
    box = widgets.VBox(
        [
            widgets.HBox([widgets.VBox([*sliders.values(), reset]), image]),
            message,
            speedup,
        ]
    )
    box.unchanged = explorer.predict()
    box.explorer, box.sliders, box.reset = explorer, sliders, reset
    box.message, box.speedup, box.picture = message, speedup, image
    picture = _Picture(box.unchanged)
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
        lines = _in_words(box.unchanged, table) if changes else []
        speedup.value = "<br>".join(map(html.escape, lines))

    def start_again(_: Any) -> None:
        nonlocal waiting
        waiting = True
        try:
            for field, slider in sliders.items():
                slider.value = getattr(explorer.gpu, field)
        finally:
            waiting = False
        picture.forget_scale()
        update()

    for slider in sliders.values():
        slider.observe(update, names="value")
    reset.on_click(start_again)
    update()
    return box


def _in_words(unchanged: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Return a sentence for each model: how many times as fast the application is after a change."""
    sentences = []
    for model, before, after in zip(
        table["model"], unchanged["time_us"], table["time_us"], strict=True
    ):
        times = f"{after:.4g} us instead of {before:.4g} us"
        # Two digits after the point, as a reader sees no more of it.
        if round(before / after, 2) == 1 == round(after / before, 2):
            sentences.append(f"{model}: as fast as before ({times})")
        elif after < before:
            sentences.append(f"{model}: {before / after:.2f} times as fast ({times})")
        else:
            sentences.append(f"{model}: takes {after / before:.2f} times as long ({times})")
    return sentences


class _Picture:
    """CPI stacks of which only the bars are drawn anew: axes and legend take most of the time.

    Each model has two bars, of the unchanged GPU and of the one that the sliders say.
    """

    def __init__(self, unchanged: pd.DataFrame) -> None:
        self._unchanged = unchanged
        self._models = list(unchanged["model"])
        self._places = [2.5 * model + bar for model in range(len(unchanged)) for bar in (0.0, 1.0)]
        self._axes: Any = None
        self._top = 0.0
        self._background: Any = None

    def forget_scale(self) -> None:
        """Choose the scale anew with the next picture, as with the first."""
        self._top = 0.0

    def draw(self, table: pd.DataFrame) -> bytes:
        """Return the picture of a table as PNG."""
        if self._axes is None:
            self._prepare()
        # Model by model: the unchanged GPU, then the changed one.
        rows = pd.concat([self._unchanged, table]).sort_index(kind="stable")
        bottom = [0.0] * len(rows)
        for component, bars in zip(STACK_COMPONENTS, self._axes.containers, strict=True):
            for i, (bar, height) in enumerate(zip(bars, rows[f"cpi_{component}"], strict=True)):
                bar.set_y(bottom[i])
                bar.set_height(height)
                bottom[i] += height
        for text, x, top, ipc in zip(self._ipc, self._places, bottom, rows["ipc"], strict=True):
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

    def _prepare(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(max(3.4 + 1.5 * len(self._models), 5.4), 4.2), dpi=80)
        FigureCanvasAgg(figure)
        width = figure.get_figwidth()
        figure.subplots_adjust(left=0.75 / width, right=1 - 2.2 / width, bottom=0.15, top=0.97)
        self._axes = ax = figure.add_subplot()
        for component in STACK_COMPONENTS:
            ax.bar(
                self._places,
                [0.0] * len(self._places),
                width=0.9,
                color=COLOURS[component],
                edgecolor="white",
                linewidth=0.4,
                label=LABELS[component],
                animated=True,
            )
        self._ipc = [
            ax.annotate(
                "",
                (x, 0),
                (0, 2),
                textcoords="offset points",
                ha="center",
                fontsize=sheet.TEXT,
                animated=True,
            )
            for x in self._places
        ]
        ax.set_xticks(
            self._places, ["unchanged", "what if"] * len(self._models), fontsize=sheet.TEXT
        )
        for model, x in zip(self._models, self._places[::2], strict=True):
            ax.annotate(
                model,
                (x + 0.5, 0),
                (0, -32),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                fontsize=sheet.LABEL,
            )
        ax.set_xlim(-0.7, self._places[-1] + 0.7)
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
