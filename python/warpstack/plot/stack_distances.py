"""Cumulative stack-distance distributions as curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warpstack._util.checked import checked
from warpstack.errors import InputError
from warpstack.memory.reuse import ReuseProfile
from warpstack.plot import sheet
from warpstack.plot.press import styled
from warpstack.plot.style import CURVES, LINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More steps than this cannot be seen.
_MAX_POINTS = 2000


@styled
@checked
def stack_distances(
    profiles: Mapping[str, ReuseProfile],
    ax: Axes | None = None,
    *,
    capacities: Mapping[str, int] | None = None,
    title: str | None = None,
    style: str = "notebook",
    width_inches: float | None = None,
) -> Axes:
    """Draw cumulative stack-distance distributions (cache paper, Figure 10).

    The height of a curve at x lines is the share of accesses with fewer than x other lines since
    the last access to their own: the hit rate of a fully associative LRU cache of x lines. A curve
    ends below 1 by the share of first accesses. A band of two standard errors surrounds the curve
    of a sample.

    Parameters
    ----------
    profiles
        Profiles by label.
    ax
        Axes to draw on; a new figure if None.
    capacities
        Lines of caches by label, drawn as vertical dashed lines.
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
        If there is nothing to draw, or a capacity is not positive.
    """
    drawn = {label: profile for label, profile in profiles.items() if profile.accesses}
    if not drawn:
        raise InputError("there are no accesses to draw; give at least one profile that has some")
    capacities = capacities or {}
    for label, lines in capacities.items():
        if not lines > 0:
            raise InputError(f"capacities: {label} = {lines} lines; a cache has at least one")
    if ax is None:
        ax = sheet.new_axes(6.4, 4.2)

    ends = [int(p.distances[-1]) + 1 for p in drawn.values() if len(p.distances)]
    end = max([*ends, *capacities.values(), 10]) * 1.5
    curves = [sheet.seen(colour, ax) for colour in CURVES]
    for number, (label, profile) in enumerate(drawn.items()):
        sizes = np.append(_sizes(profile), int(end))
        rates = profile.hit_rate(sizes)
        how: dict[str, Any] = {"color": curves[number % len(curves)]}
        ax.step(
            sizes,
            rates,
            where="post",
            label=label,
            linestyle=LINES[number // len(CURVES) % len(LINES)],
            linewidth=1.6,
            **how,
        )
        if not profile.is_exact:
            error = 2 * profile.hit_rate_error(sizes)
            ax.fill_between(
                sizes,
                np.clip(rates - error, 0, 1),
                np.clip(rates + error, 0, 1),
                step="post",
                alpha=0.2,
                linewidth=0,
                **how,
            )
    for label, lines in capacities.items():
        ax.axvline(lines, linestyle="--", zorder=0, **sheet.GUIDE)
        ax.annotate(
            sheet.short(label),
            (lines, 0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 4),
            textcoords="offset points",
            rotation=90,
            ha="left",
            va="bottom",
            fontsize=sheet.TEXT,
            color=sheet.ink(ax),
        )
    ax.set_xscale("log")
    ax.set_xlim(1, end)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("stack distance below (lines)")
    ax.set_ylabel("share of accesses")
    sheet.grid(ax)
    sheet.open_frame(ax)
    sheet.legend_outside(ax)
    if title is not None:
        sheet.set_title(ax, title)
    return ax


def _sizes(profile: ReuseProfile) -> npt.NDArray[np.int64]:
    """Return the sizes at which the curve rises, or as many as can be seen."""
    steps = profile.distances + 1
    if len(steps) > _MAX_POINTS:
        steps = np.geomspace(1, steps[-1], _MAX_POINTS).round().astype(np.int64)
    return np.unique(np.append(1, steps))
