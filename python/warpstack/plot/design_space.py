"""Pictures of design spaces: what a sweep says over one axis, over two, and against a cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, not_one_of, shown, unknown
from warpstack.exploration.expressions import Expression
from warpstack.exploration.sensitivity import metric_of, sobol_indices, swings
from warpstack.exploration.totals import axes_of, in_step, slice_of, speedups, with_fields
from warpstack.hardware.description import Gpu, GpuLike
from warpstack.plot import sheet
from warpstack.plot import style as naming
from warpstack.plot.components import COLOURS as STACK_COLOURS
from warpstack.plot.components import HATCHES as STACK_HATCHES
from warpstack.plot.components import LABELS as STACK_LABELS
from warpstack.plot.looks import look
from warpstack.plot.press import styled
from warpstack.tables import STACK, STACK_COMPONENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
@checked
def axis_stacks(
    table: pd.DataFrame,
    axis: str,
    ax: Axes | None = None,
    *,
    where: Mapping[str, Any] | None = None,
    normalise_to: str | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw CPI stacks along an axis: a group of bars per value, a bar per model (MDM, Figure 14).

    There are no error bars: a sweep predicts every launch and SM, never a sample.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`, simulations among them if wanted. Kernels are added up
        (`warpstack.exploration.point_totals`).
    axis
        Field of `Gpu` along which the groups are.
    ax
        Axes to draw on; a new figure of a suitable size if None.
    where
        Values of the other axes of the sweep.
    normalise_to
        A model, ``simulation`` say: CPI is relative to that model's at the first value (GPUMech,
        Figure 16); by default in cycles.
    title
        Title of the axes.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If there is nothing to draw, or several points or applications are at one place.
    """
    totals = slice_of(table, [axis], where)
    values, models = naming.levels(totals[axis]), _models(totals)
    unit = 1.0
    if normalise_to is not None:
        base = totals[(totals["model"] == normalise_to) & (totals[axis] == values[0])]
        if base.empty:
            raise InputError(
                f"normalise_to = {shown(normalise_to)} has no point with {axis} = {values[0]}; "
                f"there are {', '.join(models)}"
            )
        unit = float(base["cpi"].iloc[0])
    if ax is None:
        width = float(np.clip(3.6 + 0.42 * len(values) * len(models), 6.4, 20))
        ax = sheet.new_axes(width, 5.2)
    place = {v: i * (len(models) + 0.8) for i, v in enumerate(values)}
    positions = totals[axis].map(place).to_numpy() + totals["model"].map(models.index).to_numpy()
    totals, positions = totals.iloc[np.argsort(positions)], np.sort(positions)
    bottom = np.zeros(len(totals))
    for component in STACK_COMPONENTS:
        heights = totals[f"cpi_{component}"].to_numpy() / unit
        ax.bar(
            positions,
            heights,
            width=0.86,
            bottom=bottom,
            color=STACK_COLOURS[component],
            hatch=STACK_HATCHES[component],
            edgecolor=sheet.EDGE,
            linewidth=0.4,
            label=STACK_LABELS[component],
        )
        bottom = bottom + heights
    _model_ticks(ax, positions, list(totals["model"]))
    middle = (len(models) - 1) / 2
    for value, start in place.items():
        ax.annotate(
            naming.value_text(value),
            (start + middle, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=sheet.LABEL,
        )
    ax.set_xlim(-0.9, max(place.values()) + len(models) - 0.1)
    ax.set_ylim(0, float(bottom.max()) * 1.05)
    label = naming.metric_label("cpi")
    ax.set_ylabel(label if normalise_to is None else f"CPI relative to {normalise_to}, first group")
    sheet.open_frame(ax)
    handles, names = ax.get_legend_handles_labels()
    sheet.legend_outside(ax, handles[::-1], names[::-1])
    heading = _axis_name(totals, axis)
    if not look().is_compact:
        heading = f"above the groups: {heading}"
    sheet.set_title(ax, f"{title}\n{heading}" if title else heading, pad=20)
    return ax


@styled
@checked
def curves(
    table: pd.DataFrame,
    axis: str,
    metric: str = "ipc",
    ax: Axes | None = None,
    *,
    where: Mapping[str, Any] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw a metric along an axis, one curve per model.

    There are no error bars: a sweep predicts every launch and SM, never a sample.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`, simulations among them if wanted. Kernels are added up
        (`warpstack.exploration.point_totals`).
    axis
        Field of `Gpu` along the horizontal axis.
    metric
        ``ipc``, ``cycles``, another column of `warpstack.exploration.point_totals`, or an expression
        over them and the axes: ``cycles / clock_ghz`` is the time in nanoseconds.
    ax
        Axes to draw on; a new figure if None.
    where
        Values of the other axes of the sweep.
    title
        Title of the axes.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If there is nothing to draw, the metric is unknown, or several points or applications are at
        one place.
    """
    totals = slice_of(table, [axis], where)
    totals = totals.assign(metric=metric_of(totals, metric))
    if ax is None:
        ax = sheet.new_axes(6.8, 4.2)
    values = naming.levels(totals[axis])
    numeric = pd.api.types.is_numeric_dtype(totals[axis])
    looks = naming.styles(_models(totals))
    for model, own in looks.items():
        group = totals[totals["model"] == model]
        x = group[axis] if numeric else group[axis].map(values.index)
        ax.plot(
            x.to_numpy(),
            group["metric"].to_numpy(),
            color=sheet.seen(own.colour, ax),
            marker=own.marker,
            linestyle=own.line,
            linewidth=2.2 if model == "simulation" else 1.5,
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.5,
            label=naming.named(model),
        )
    _value_axis(ax, values, numeric)
    ax.set_xlabel(_axis_name(totals, axis))
    ax.set_ylabel(naming.metric_label(metric))
    if totals["metric"].min() >= 0:
        ax.set_ylim(bottom=0)
    sheet.grid(ax)
    sheet.open_frame(ax)
    sheet.legend_outside(ax)
    if title is not None:
        sheet.set_title(ax, title)
    return ax


@styled
@checked
def speedup(
    table: pd.DataFrame,
    axis: str,
    ax: Axes | None = None,
    *,
    baseline: Mapping[str, Any],
    model: str | None = None,
    where: Mapping[str, Any] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw the performance relative to a chosen point along an axis, one curve per model.

    There are no error bars: a sweep predicts every launch and SM, never a sample.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`.
    axis
        Field of `Gpu` along the horizontal axis.
    ax
        Axes to draw on; a new figure if None.
    baseline, model
        The point, and the model, that has a speedup of 1; as for `warpstack.exploration.speedups`.
    where
        Values of the other axes; by default those of the baseline.
    title
        Title of the axes.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        As for `curves` and `warpstack.exploration.speedups`.
    """
    others = {name: value for name, value in baseline.items() if name != axis}
    result = curves(
        speedups(table, baseline, model=model),
        axis,
        "speedup",
        ax,
        where={**others, **(where or {})},
        title=title,
    )
    result.axhline(1, linestyle=":", zorder=0, **sheet.GUIDE)
    if look().is_compact:
        result.set_ylabel(f"speedup over {naming.named(model)}" if model else "speedup")
        return result
    of = ", ".join(f"{field} = {naming.value_text(value)}" for field, value in baseline.items())
    result.set_ylabel(f"speedup over {f'{model} at ' if model else ''}{of}", fontsize=sheet.LABEL)
    return result


@styled
@checked
def heat_map(
    table: pd.DataFrame,
    x: str,
    y: str,
    metric: str = "ipc",
    ax: Axes | None = None,
    *,
    model: str | None = None,
    where: Mapping[str, Any] | None = None,
    limits: tuple[float, float] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw a metric over two axes as colours with the value written in (MDM, Figures 11 and 12).

    There are no error bars: a sweep predicts every launch and SM, never a sample.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`, or the result of `warpstack.exploration.speedups` for the metric
        ``speedup``. Kernels are added up (`warpstack.exploration.point_totals`).
    x, y
        Fields of `Gpu`. Values are drawn in order, equally far apart.
    metric
        As for `curves`.
    ax
        Axes to draw on; a new figure if None.
    model
        The model to draw, if the table has several.
    where
        Values of the other axes of the sweep.
    limits
        Values of the darkest and the lightest colour, the same for maps that are compared.
    title
        Title of the axes; by default the model.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes
        Points that failed or are not there are grey.

    Raises
    ------
    InputError
        As for `curves`.
    """
    totals = _one_model(slice_of(table, [x, y], where), model)
    grid = _grid(totals.assign(metric=metric_of(totals, metric)), x, y, "metric")
    cells = grid.to_numpy(dtype=np.float64)
    is_new = ax is None
    if ax is None:
        size = (2.4 + 0.75 * cells.shape[1], 1.8 + 0.5 * cells.shape[0])
        ax = sheet.new_axes(max(size[0], 4.8), max(size[1], 3.4))
    low, high = limits or (float(np.nanmin(cells)), float(np.nanmax(cells)))
    sheet.make_room(ax)
    ax.set_facecolor(sheet.EMPTY)
    image = ax.imshow(
        np.ma.masked_invalid(cells),
        origin="lower",
        aspect="auto",
        cmap=sheet.MAP,
        vmin=low,
        vmax=high if high > low else low + 1,
    )
    texts = {value: f"{value:.3g}" for value in cells.flat if np.isfinite(value)}
    fit = is_new and sheet.fit_into_cells(ax, texts.values(), cells.shape[1])
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value) and (fit or not look().is_compact):
            dark = (value - low) / (high - low or 1) < 0.55
            ax.text(
                column,
                row,
                texts[value],
                ha="center",
                va="center",
                fontsize=sheet.TEXT,
                color="white" if dark else "black",
            )
    _grid_axes(ax, grid, x, y)
    name, label = naming.named(totals["model"].iloc[0]), naming.metric_label(metric)
    if fit and look().is_compact:  # the numbers say what a colour bar would
        sheet.set_title(ax, f"{label}, {name}" if title is None else title)
        return ax
    place: Any = {"location": "top", "aspect": 40, "pad": 0.02} if look().is_compact else {}
    ax.figure.colorbar(image, ax=ax, label=label, **place)
    sheet.set_title(ax, sheet.title_or(title, name))
    return ax


@styled
@checked
def bottlenecks(
    table: pd.DataFrame,
    x: str,
    y: str,
    ax: Axes | None = None,
    *,
    model: str | None = None,
    where: Mapping[str, Any] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw the largest part of the CPI stack over two axes, with its share.

    Parameters
    ----------
    table, x, y, ax, model, where
        As for `heat_map`.
    title
        Title of the axes; by default the model.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        As for `heat_map`.
    """
    from matplotlib.patches import Patch, Rectangle

    totals = _one_model(slice_of(table, [x, y], where), model)
    stack = totals[list(STACK)].to_numpy()
    largest = stack.argmax(axis=1)
    share = stack.max(axis=1) / stack.sum(axis=1)
    totals = totals.assign(largest=largest, share=share)
    parts = _grid(totals, x, y, "largest")
    shares = _grid(totals, x, y, "share").to_numpy(dtype=np.float64)
    if ax is None:
        size = (4.4 + 0.75 * parts.shape[1], 1.6 + 0.5 * parts.shape[0])
        ax = sheet.new_axes(max(size[0], 6.4), max(size[1], 3.4))
    ax.set_facecolor(sheet.EMPTY)
    for (row, column), part in np.ndenumerate(parts.to_numpy(dtype=np.float64)):
        if not np.isfinite(part):
            continue
        component = STACK_COMPONENTS[int(part)]
        ax.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5),
                1,
                1,
                facecolor=STACK_COLOURS[component],
                hatch=STACK_HATCHES[component],
                edgecolor="white" if component in _DARK else "#555555",
                linewidth=0.6,
                label=component,
            )
        )
        ax.text(
            column,
            row,
            f"{component}\n{100 * shares[row, column]:.0f} %",
            ha="center",
            va="center",
            color="black",
            fontsize=sheet.TEXT,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        )
    ax.set_ylim(-0.5, parts.shape[0] - 0.5)
    ax.set_xlim(-0.5, parts.shape[1] - 0.5)
    _grid_axes(ax, parts, x, y)
    found = [STACK_COMPONENTS[i] for i in sorted(set(largest), reverse=True)]
    handles = [
        Patch(facecolor=STACK_COLOURS[c], hatch=STACK_HATCHES[c], edgecolor=sheet.EDGE)
        for c in found
    ]
    sheet.legend_outside(ax, handles, [STACK_LABELS[component] for component in found])
    sheet.set_title(ax, sheet.title_or(title, str(totals["model"].iloc[0])))
    return ax


_DARK = ("l2", "dram", "mshr")


@styled
@checked
def pareto(
    table: pd.DataFrame,
    cost: str,
    ax: Axes | None = None,
    *,
    gpu: GpuLike | None = None,
    metric: str = "ipc",
    maximise: bool = True,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw a metric against a cost at every point, with the front that no other point beats.

    There are no error bars: a sweep predicts every launch and SM, never a sample.

    A point is on the front when no point of the same model is at least as good in both and better
    in one.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`.
    cost
        An expression (`warpstack.expressions.Expression`) over the axes and the columns of
        `warpstack.exploration.point_totals`.
    ax
        Axes to draw on; a new figure if None.
    gpu
        The GPU of the sweep: `cost` can then name its other fields too.
    metric
        As for `curves`.
    maximise
        More is better; False for ``cycles``.
    title
        Title of the axes.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If the expression cannot be evaluated or there is nothing to draw.
    """
    totals = slice_of(table, axes_of(table))
    looks = naming.styles(_models(totals))
    expression = Expression(cost, "cost")
    columns = with_fields(totals, gpu)
    if gpu is None:
        near = [name for name in expression.names if name in Gpu.fields() and name not in columns]
        if near:
            raise InputError(
                f"cost: {near[0]} is not an axis of this sweep; give gpu=, whose value it then is"
            )
    costs = np.broadcast_to(expression(columns), (len(totals),))
    totals = totals.assign(cost=costs, metric=metric_of(totals, metric))
    if ax is None:
        ax = sheet.new_axes(6.8, 4.4)
    for model, own in looks.items():
        group = totals[totals["model"] == model]
        ax.scatter(
            group["cost"].to_numpy(),
            group["metric"].to_numpy(),
            s=26,
            marker=own.marker,
            facecolor="none",
            edgecolor=sheet.seen(own.colour, ax),
            linewidth=0.8,
            alpha=0.6,
            label=f"{naming.named(model)}, all points",
        )
        front = group[pareto_front(group["cost"], group["metric"], maximise=maximise)]
        front = front.sort_values("cost")
        ax.plot(
            front["cost"].to_numpy(),
            front["metric"].to_numpy(),
            color=sheet.seen(own.colour, ax),
            marker=own.marker,
            linestyle=own.line,
            drawstyle="steps-post",
            linewidth=1.6,
            label=f"{naming.named(model)}, front",
        )
    ax.set_xlabel(cost)
    ax.set_ylabel(naming.metric_label(metric))
    sheet.grid(ax)
    sheet.open_frame(ax)
    sheet.legend_outside(ax)
    if title is not None:
        sheet.set_title(ax, title)
    return ax


@checked
def pareto_front(cost: Any, metric: Any, *, maximise: bool = True) -> np.ndarray[Any, Any]:
    """Return which points no other point beats: at most its cost, at least its metric, not both equal.

    Parameters
    ----------
    cost, metric
        Numbers, shape (n,).
    maximise
        More of the metric is better.

    Returns
    -------
    ndarray of bool
        Shape (n,). Equal points are all on the front, or none is.
    """
    cost = np.asarray(cost, dtype=np.float64)
    gain = np.asarray(metric, dtype=np.float64) * (1 if maximise else -1)
    order = np.lexsort((-gain, cost))
    kept = np.zeros(len(cost), dtype=bool)
    best, best_cost = -np.inf, np.nan
    for i in order:
        if gain[i] > best or (gain[i] == best and cost[i] == best_cost):
            kept[i] = True
            best, best_cost = gain[i], cost[i]
    return kept


@styled
@checked
def sensitivity(
    table: pd.DataFrame,
    metric: str = "ipc",
    ax: Axes | None = None,
    *,
    method: str = "swing",
    baseline: Mapping[str, Any] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw which axis matters most to a metric, the most important at the top.

    Shares of the variance have their standard errors as bars. Predictions have none: a sweep predicts
    every launch and SM, never a sample.

    Parameters
    ----------
    table
        Rows of `warpstack.sweep`: over `warpstack.exploration.one_at_a_time` for ``swing``, over the points
        of `warpstack.exploration.samples.saltelli` for ``sobol``.
    metric
        As for `curves`.
    ax
        Axes to draw on; a new figure if None.
    method
        ``swing``: from the lowest to the highest value of one axis, as a tornado
        (`warpstack.exploration.swings`). ``sobol``: total-order Sobol indices with two standard errors
        (`warpstack.exploration.sobol_indices`).
    baseline
        For ``swing``: as for `warpstack.exploration.swings`.
    title
        Title of the axes.
    style
        ``notebook``, ``dark``, ``paper`` or ``slides``.
    width_inches
        The width of a new figure; by default that of the style, or what suits the picture.

    Returns
    -------
    Axes

    Raises
    ------
    InputError
        If the table has no points for the method.
    """
    if method not in ("swing", "sobol"):
        raise not_one_of("method", method, ("swing", "sobol"))
    if method == "sobol" and baseline is not None:
        raise InputError("baseline: Sobol indices have none; leave it out")
    found = swings(table, metric, baseline=baseline) if method == "swing" else None
    rows = sobol_indices(table, metric) if found is None else found
    fields = list(dict.fromkeys(rows["field"]))
    looks = naming.styles(rows["model"])
    # The order of models in the table, not of their largest bars.
    models = [name for name in dict.fromkeys(table["model"].dropna()) if name in looks]
    if ax is None:
        height = 1.6 + 0.3 * len(fields) * len(models)
        ax = sheet.new_axes(7.2, max(height, 3.0))
    step = 0.8 / len(models)
    for number, model in enumerate(models):
        own, group = looks[model], rows[rows["model"] == model]
        places = (
            group["field"].map(fields.index).to_numpy() + (number - (len(models) - 1) / 2) * step
        )
        shared: dict[str, Any] = {
            "height": 0.9 * step,
            "color": sheet.seen(own.colour, ax),
            "edgecolor": "white" if own.colour == "#000000" else sheet.EDGE,
            "linewidth": 0.5,
            "hatch": own.hatch,
            "label": naming.named(model),
        }
        if found is None:
            ax.barh(
                places,
                group["total"].to_numpy(),
                xerr=2 * group["total_error"].to_numpy(),
                error_kw={"ecolor": sheet.ink(ax), "elinewidth": 1, "capsize": 2},
                **shared,
            )
            continue
        start, low, high = (group[name].to_numpy() for name in ("at_baseline", "at_low", "at_high"))
        left = np.minimum(np.minimum(low, high), start)
        right = np.maximum(np.maximum(low, high), start)
        ax.barh(places, right - left, left=left, **shared)
        ax.axvline(start[0], color=sheet.seen(own.colour, ax), linewidth=0.9, linestyle="--")
        # Written once per end and axis: the values are the same for all models.
        for place, (_, row) in zip(places, group.iterrows(), strict=True):
            for end in ("low", "high"):
                at = row[f"at_{end}"]
                other = row["at_high" if end == "low" else "at_low"]
                outward = at > other or (at == other and end == "high")
                ax.annotate(
                    naming.value_text(row[end]),
                    (at, place),
                    xytext=(3 if outward else -3, 0),
                    textcoords="offset points",
                    ha="left" if outward else "right",
                    va="center",
                    color="black",
                    fontsize=sheet.SMALL,
                    bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"},
                )
    ax.set_yticks(
        range(len(fields)), [naming.axis_label(field) for field in fields], fontsize=sheet.TEXT
    )
    ax.invert_yaxis()
    label = naming.metric_label(metric)
    ax.set_xlabel(label if found is not None else f"share of the variance of {label}, total order")
    if found is None:
        ax.set_xlim(left=0)
    else:
        # Room for the values at the ends of the bars.
        lowest, highest = (
            rows[["at_low", "at_baseline", "at_high"]].agg(what).agg(what)
            for what in ("min", "max")
        )
        room = 0.14 * (highest - lowest or abs(highest) or 1)
        ax.set_xlim(lowest - room, highest + room)
    sheet.open_frame(ax)
    sheet.grid(ax, "x")
    sheet.legend_outside(ax)
    if title is not None:
        sheet.set_title(ax, title)
    return ax


def _models(totals: pd.DataFrame) -> list[str]:
    """Return the models in order of appearance, the simulation first."""
    names = list(dict.fromkeys(totals.sort_values("point", kind="stable")["model"].astype(str)))
    return sorted(names, key=lambda name: name != "simulation")


def _axis_name(totals: pd.DataFrame, axis: str) -> str:
    """Return the label of an axis, with others whose values go with its own."""
    others = in_step(totals, [axis])
    return naming.axis_label(axis) + (f", with {', '.join(others)}" if others else "")


def _one_model(totals: pd.DataFrame, model: str | None) -> pd.DataFrame:
    models = _models(totals)
    if model is None and len(models) > 1:
        raise InputError(
            f"the table has the models {', '.join(models)}; choose one: model={shown(models[0])}"
        )
    if model is not None and model not in models:
        raise unknown("model", model, models, where="the table")
    return totals if model is None else totals[totals["model"] == model]


def _grid(totals: pd.DataFrame, x: str, y: str, column: str) -> pd.DataFrame:
    """Return a column as a table of y by x."""
    several = totals.duplicated([x, y])
    if several.any():
        row = totals[several].iloc[0]
        raise InputError(f"there are several points with {x} = {row[x]} and {y} = {row[y]}")
    grid = totals.set_index([y, x])[column].unstack()  # noqa: PD010 (nothing is aggregated)
    return grid.reindex(index=naming.levels(totals[y]), columns=naming.levels(totals[x]))


def _grid_axes(ax: Axes, grid: pd.DataFrame, x: str, y: str) -> None:
    ax.set_xticks(
        range(grid.shape[1]),
        [sheet.short(naming.value_text(v)) for v in grid.columns],
        fontsize=sheet.TEXT,
    )
    ax.set_yticks(
        range(grid.shape[0]),
        [sheet.short(naming.value_text(v)) for v in grid.index],
        fontsize=sheet.TEXT,
    )
    ax.tick_params(length=0)
    ax.set_xlabel(naming.axis_label(x))
    ax.set_ylabel(naming.axis_label(y))


def _value_axis(ax: Axes, values: list[Any], numeric: bool) -> None:
    """Put ticks at the values, on a logarithmic scale where these are far apart."""
    texts = [naming.value_text(value) for value in values]
    if not numeric:
        ax.set_xticks(range(len(values)), texts)
        return
    if values[0] > 0 and len(values) > 2 and values[-1] / values[0] >= 8:
        ax.set_xscale("log", base=2)
    if len(values) <= 9:
        ax.set_xticks(values, texts)
        ax.minorticks_off()


def _model_ticks(ax: Axes, positions: np.ndarray[Any, Any], names: list[str]) -> None:
    ax.set_xticks(positions, [sheet.short(naming.named(name)) for name in names], **sheet.TURNED)
    ax.tick_params(axis="x", length=0)
