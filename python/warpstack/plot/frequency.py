"""Performance and power against core frequency."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError
from warpstack.plot import sheet
from warpstack.plot.looks import look
from warpstack.plot.press import styled
from warpstack.plot.style import named, styles
from warpstack.tables import checked_table, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
@checked
def dvfs(
    table: pd.DataFrame,
    ax: Axes | None = None,
    *,
    power_watts: Callable[[npt.NDArray[np.float64]], npt.ArrayLike] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw time against core frequency, or power against performance.

    There are no error bars: `warpstack.models.dvfs` predicts every launch and SM, never a sample.

    Parameters
    ----------
    table
        Rows of `warpstack.models.dvfs`; the times of kernels add up.
    ax
        Axes to draw on; a new figure if None.
    power_watts
        Power of the GPU as a function of an array of clocks in GHz. With it the axes are the
        performance relative to the nominal frequency and the power, with the clocks beside it.
    title
        Title of the axes; by default the GPU.
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
        If these are not such rows, they are of several GPUs, or the power is not a positive number
        for every clock.

    Examples
    --------
    >>> import warpstack as ws
    >>> kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    >>> table = ws.models.dvfs(kernel, "pascal-mdm", [0.7, 1.0])
    >>> ws.plot.dvfs(table, power_watts=lambda f: 40 + 60 * f**3).get_ylabel()
    'power (W)'
    """
    numbers = ("clock_ghz", "time_us", "relative_time")
    columns = ("model", *numbers, "gpu", "gpu_changes", "gpu_digest")
    require(
        table, columns, "the rows of warpstack.models.dvfs", what="dvfs: the rows have", rows=True
    )
    texts = ("model", "gpu", "gpu_changes", "gpu_digest")
    table = checked_table("dvfs", table, positive=numbers, texts=texts)
    if len(set(table["gpu_digest"])) > 1:
        raise InputError("dvfs: the rows are of several GPUs, whose times do not add up")
    if ax is None:
        ax = sheet.new_axes(6, 4)
    # Each row says what its kernel takes at the nominal clock, in whatever order rows are.
    table = table.assign(nominal_us=table["time_us"] / table["relative_time"])
    times = table.groupby(["model", "clock_ghz"])[["time_us", "nominal_us"]].sum()
    powers: dict[float, float] = {}
    looks = styles(table["model"])
    for model in dict.fromkeys(table["model"]):
        own = looks[str(model)]
        part = times.loc[model]
        clocks = part.index.to_numpy(dtype=float)
        slower = (part["time_us"] / part["nominal_us"]).to_numpy()
        how: dict[str, Any] = {
            "color": sheet.seen(own.colour, ax),
            "marker": own.marker,
            "linestyle": own.line,
            "markersize": 5,
            "label": named(model),
        }
        if power_watts is None:
            ax.plot(clocks, slower, **how)
            continue
        power = _powers(power_watts, clocks)
        if not (np.isfinite(power) & (power > 0)).all():
            raise InputError(f"dvfs: power_watts gives {power} W for {clocks} GHz")
        ax.plot(1 / slower, power, **how)
        if look().is_compact and not powers:
            sheet.note_points(ax, 1 / slower, power, [f"{clock:g} GHz" for clock in clocks])
        powers |= dict(zip(clocks.tolist(), power.tolist(), strict=True))
    if power_watts is None:
        ax.set_xlabel("clock of the SMs (GHz)")
        ax.set_ylabel("relative time" if look().is_compact else "time / time at the nominal clock")
    else:
        ax.set_xlabel("performance / performance at the nominal clock")
        ax.set_ylabel("power (W)")
        if not look().is_compact:
            beside = ax.secondary_yaxis("right")
            beside.set_yticks(
                list(powers.values()), [f"{clock:g} GHz" for clock in powers], fontsize=sheet.SMALL
            )
    first = table.iloc[0]
    gpu = first["gpu"] + (f" with {first['gpu_changes']}" if first["gpu_changes"] else "")
    sheet.set_title(ax, sheet.title_or(title, gpu))
    sheet.grid(ax)
    sheet.legend_outside(ax)
    return ax


def _powers(
    power_watts: Callable[[npt.NDArray[np.float64]], npt.ArrayLike], clocks: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    try:
        return np.broadcast_to(np.asarray(power_watts(clocks), dtype=float), clocks.shape)
    except (TypeError, ValueError):
        raise InputError(
            f"dvfs: power_watts does not return a number for each of {len(clocks)} clocks"
        ) from None
