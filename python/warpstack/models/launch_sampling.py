"""The launches of a large application that stand for the others, and the error of that.

Launches are grouped by what they do, counted without caches, as Principal Kernel Analysis (Avalos
Baddouh et al., MICRO 2021) and Sieve (Naderan-Tahan et al., ISPASS 2023) do. A few
of each group are predicted; the others have their cycles per instruction.
``docs/explanation/launch-sampling.md`` has the rules.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack.hardware.description import Gpu
from warpstack.traces.trace import KernelTrace

__all__ = ["Estimate", "LaunchSample", "estimate", "launch_groups"]

#: Launches of a group are alike when no feature of one exceeds that of another by more than this.
_ALIKE = math.log(1.1)
#: A launch brings data when more of its accesses than this are to pages that none before it touched.
_NEW = 0.1
#: Launches for each group, on average at least, so that a few of each are few of all.
_LAUNCHES_PER_GROUP = 20
_LEAST_GROUPS = 16
_MOST_GROUPS = 100
#: Launches of each group that are predicted at first: fewer say nothing about their spread.
_FIRST = 2
#: Launches of each group behind a bar that counts: two that agree hide what the others may do.
_LEAST = 3
#: The spread of all groups counts for this many launches in the spread of one.
_PRIOR = 2
#: Probability with which bars hold.
_CONFIDENCE = 0.95


def launch_groups(
    kernels: Sequence[KernelTrace], gpu: Gpu, *, by_predecessor: bool = True
) -> list[npt.NDArray[np.int64]]:
    """Group launches that do about the same.

    Those of a group have the same name, threads per block, registers and shared memory, and follow
    launches of the same name, as what L2 holds depends on that; so does whether a launch touches more
    than twice as many sectors as each one of its name before, or memory that no launch before it
    touched, with a tenth of its accesses. Such sets are halved in the middle
    of their widest feature, those with most work times width first, until the features of all are
    within a tenth of each other, or until there is a group for every 20 launches, or 100.

    Parameters
    ----------
    kernels
        The launches.
    gpu
        The number of its SMs.
    by_predecessor
        Whether the launches before count.

    Returns
    -------
    list of ndarray
        Positions of the launches of each group, ascending; groups in the order of their first.
    """
    counts = [kernel._core.launch_features() for kernel in kernels]
    features = np.array([_features(*each, gpu) for each in zip(kernels, counts, strict=True)])
    work = np.array([kernel.num_instructions for kernel in kernels], dtype=float)
    sets: dict[tuple[object, ...], list[int]] = {}
    before = ""
    most_touched: dict[str, int] = {}
    pages = _core.TouchedPages()
    for position, kernel in enumerate(kernels):
        new = pages.add(kernel._core) if by_predecessor else 0.0
        known = most_touched.get(kernel.name, 0)
        touched = counts[position]["read_sectors"] + counts[position]["written_sectors"]
        most_touched[kernel.name] = max(known, touched)
        key = (
            kernel.name,
            kernel.block,
            kernel.registers_per_thread,
            kernel.shared_memory_bytes,
            (before, touched > 2 * known or new > _NEW) if by_predecessor else "",
        )
        sets.setdefault(key, []).append(position)
        before = kernel.name
    # The heap's order is that of (urgency, first launch): the same on every run.
    waiting: list[tuple[float, int, npt.NDArray[np.int64]]] = []
    groups: list[npt.NDArray[np.int64]] = []

    def add(members: npt.NDArray[np.int64]) -> None:
        width = float(np.ptp(features[members], axis=0).max())
        if width <= _ALIKE:
            groups.append(members)
        else:
            urgency = width * float(work[members].sum())
            heapq.heappush(waiting, (-urgency, int(members[0]), members))

    for positions in sets.values():
        add(np.array(positions, dtype=np.int64))
    most = min(max(len(kernels) // _LAUNCHES_PER_GROUP, _LEAST_GROUPS), _MOST_GROUPS)
    while waiting and len(groups) + len(waiting) < most:
        _, _, members = heapq.heappop(waiting)
        values = features[members]
        widest = int(np.argmax(np.ptp(values, axis=0)))
        column = values[:, widest]
        low = column <= (column.min() + column.max()) / 2
        add(members[low])
        add(members[~low])
    groups += [members for _, _, members in waiting]
    return sorted(groups, key=lambda members: int(members[0]))


def _features(kernel: KernelTrace, counts: Mapping[str, int], gpu: Gpu) -> list[float]:
    """Return logarithms of what a launch does: differences are ratios."""
    blocks = kernel.num_blocks
    all_counts = [*counts.values(), kernel.num_warps, blocks, math.ceil(blocks / gpu.num_sms)]
    return [math.log1p(count) for count in all_counts]


@dataclass(frozen=True)
class Estimate:
    """The estimate of a model for all launches, from the predicted launches of groups.

    Attributes
    ----------
    launches
        Cycles of each launch of each group, in the order in which they were given.
    spread
        Standard deviation of the logarithm of the cycles of a launch beside the estimate.
    freedom
        Degrees of freedom of the spread.
    tilts
        What the slope of a group's line adds to the variance, in squares of the spread: of the mean of
        its launches that were not predicted, and of one of them; shape (2, groups).
    counts, sizes
        Predicted launches of each group, and all.
    """

    launches: tuple[npt.NDArray[np.float64], ...]
    spread: npt.NDArray[np.float64]
    freedom: npt.NDArray[np.float64]
    tilts: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    @property
    def cycles(self) -> npt.NDArray[np.float64]:
        """Cycles of all launches of each group."""
        return np.array([cycles.sum() for cycles in self.launches])

    def total_bar(self) -> float:
        """Return the relative bar of the cycles of all launches: their logarithm is within it.

        Groups err independently (stratified sampling); degrees of freedom as Welch and
        Satterthwaite have them.
        """
        unknown = 1 - self.counts / self.sizes
        shares = unknown / self.counts + unknown**2 * self.tilts[0]
        parts = self.cycles**2 * self.spread**2 * shares
        variance = float(parts.sum())
        if variance == 0:
            return 0.0
        freedom = variance**2 / float((parts**2 / self.freedom).sum())
        return float(_quantile(np.array([freedom]))[0] * math.sqrt(variance) / self.cycles.sum())

    def launch_bars(self) -> npt.NDArray[np.float64]:
        """Return the relative bar of a launch that was not predicted, for each group."""
        variance: npt.NDArray[np.float64] = 1 + 1 / self.counts + self.tilts[1]
        bars: npt.NDArray[np.float64] = _quantile(self.freedom) * self.spread * np.sqrt(variance)
        return bars

    def wanted(self, tolerance: float) -> npt.NDArray[np.int64]:
        """Return the launches to predict of each group for a total bar of `tolerance` (Neyman)."""
        weights = self.cycles * self.spread
        variance = (tolerance * self.cycles.sum() / _quantile(np.array([np.inf]))[0]) ** 2
        needed = weights * weights.sum() / (variance + (weights**2 / self.sizes).sum())
        whole: npt.NDArray[np.int64] = np.ceil(needed).astype(np.int64)
        return np.minimum(np.maximum(whole, self.counts), self.sizes)


def estimate(groups: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> Estimate:
    """Estimate the cycles of groups of which some launches were predicted.

    In a group cycles grow with a power of the warp instructions: 0 where latency decides, 1 where
    throughput does. The power is that of a straight line through the logarithms of its predicted
    launches; the spread is what the line leaves. For both a group counts two more launches with the
    power and the spread of all groups together, so that two launches that happen to agree do not
    make a bar of 0.

    Parameters
    ----------
    groups
        The warp instructions of all launches of each group, and their cycles: NaN where a launch was
        not predicted. At least one launch of each group was predicted.
    """
    instructions = [np.log(np.asarray(issued, dtype=float)) for issued, _ in groups]
    given = [np.asarray(cycles, dtype=float) for _, cycles in groups]
    known = [~np.isnan(cycles) for cycles in given]
    counts = np.array([mask.sum() for mask in known])
    # Deviations of the predicted launches from the means of their group.
    x: list[npt.NDArray[np.float64]] = []
    y: list[npt.NDArray[np.float64]] = []
    means: list[float] = []
    for logs, cycles, mask in zip(instructions, given, known, strict=True):
        means.append(float(logs[mask].mean()))
        x.append(logs[mask] - means[-1])
        y.append(np.log(cycles[mask]) - np.log(cycles[mask]).mean())
    xx = np.array([(u * u).sum() for u in x])
    xy = np.array([(u * v).sum() for u, v in zip(x, y, strict=True)])
    common = _power(xy.sum(), xx.sum())
    added = _PRIOR * xx.sum() / max(int((counts - 1).sum()), 1)
    powers = np.array([_power(a + added * common, b + added) for a, b in zip(xy, xx, strict=True)])
    left = [np.square(v - power * u).sum() for u, v, power in zip(x, y, powers, strict=True)]
    squares = np.array(left)
    # The mean takes one degree of freedom; the slope takes as much of one as it is the group's own.
    own = np.divide(xx, xx + added, out=np.zeros(len(xx)), where=xx > 0)
    freedom = counts - 1 - own
    pooled = squares.sum() / max(freedom.sum(), 1)
    spread = np.sqrt((squares + _PRIOR * pooled) / (freedom + _PRIOR))
    launches = []
    for logs, cycles, mask, power in zip(instructions, given, known, powers, strict=True):
        # The mean of logarithms is not the logarithm of the mean: the predicted ones keep their sum.
        # From the first of them, so that launches that are all alike get the cycles to the last bit.
        line = np.exp(power * (logs - logs[mask][0]))
        line *= cycles[mask].sum() / line[mask].sum()
        launches.append(np.where(mask, cycles, line))
    sizes = np.array([len(cycles) for cycles in given])
    tilts = np.zeros((2, len(groups)))
    for group, (logs, mask) in enumerate(zip(instructions, known, strict=True)):
        away = logs[~mask] - means[group]
        if len(away) and xx[group] + added > 0:
            squared = np.array([away.mean() ** 2, np.square(away).mean()])
            tilts[:, group] = squared / (xx[group] + added)
    return Estimate(tuple(launches), spread, freedom + _PRIOR, tilts, counts, sizes)


def _power(xy: float, xx: float) -> float:
    """Return the slope of a line: 1, as with the rate of all, where there is none, and 0 to 1."""
    return min(max(xy / xx, 0.0), 1.0) if xx > 0 else 1.0


class LaunchSample:
    """Launches to predict until the bar of all is small enough.

    Parameters
    ----------
    groups
        Positions of the launches of each group.
    work
        Warp instructions of each launch.
    tolerance
        The relative bar of the cycles of all launches.
    """

    def __init__(
        self, groups: Sequence[npt.NDArray[np.int64]], work: Sequence[int], tolerance: float
    ) -> None:
        # The same launches are drawn on every run. The first launch of an application may be unlike all
        # others, as L2 is empty then, so that chance decides which launches of a group come first.
        random = np.random.default_rng(0)
        self._orders = [random.permutation(members) for members in groups]
        self._work = np.asarray(work, dtype=float)
        self._tolerance = tolerance
        self._counts = [min(len(members), _FIRST) for members in groups]
        self._asked: set[int] = set()

    @property
    def groups(self) -> list[npt.NDArray[np.int64]]:
        """Positions of the predicted launches of each group, ascending."""
        return [
            np.sort(order[:count]) for order, count in zip(self._orders, self._counts, strict=True)
        ]

    def missing(self) -> list[int]:
        """Return the launches to predict next, ascending."""
        wanted = {int(n) for members in self.groups for n in members}
        new = sorted(wanted - self._asked)
        self._asked |= wanted
        return new

    def estimate(self, cycles: Mapping[int, float]) -> Estimate:
        """Return what the cycles of the launches that were asked for say of all, groups ascending."""
        ordered = [np.sort(order) for order in self._orders]
        return estimate(
            [
                (self._work[members], [cycles.get(int(n), math.nan) for n in members])
                for members in ordered
            ]
        )

    def grow(self, estimates: Sequence[Estimate]) -> bool:
        """Ask for more launches where that narrows the bar; False when it is narrow enough.

        Where launches differ at all, three of each group are behind a bar. `estimates` are those of
        all models: the widest bar decides.
        """
        wide = [one for one in estimates if one.total_bar() > self._tolerance]
        before = list(self._counts)
        for one in estimates:
            least = np.where(one.spread > 0, np.minimum(one.sizes, _LEAST), 0)
            self._counts = [max(pair) for pair in zip(self._counts, least.tolist(), strict=True)]
        for one in wide:
            # At most twice as many at a time: the spread is known better then.
            wanted = np.minimum(one.wanted(self._tolerance), 2 * np.asarray(before))
            if (wanted <= before).all():
                # The allocation knows neither few degrees of freedom nor lines.
                wanted = np.minimum(before + (one.cycles * one.spread > 0), one.sizes)
            self._counts = [max(pair) for pair in zip(self._counts, wanted.tolist(), strict=True)]
        return self._counts != before


def _quantile(freedom: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the two-sided quantiles of Student's distribution."""
    from scipy.special import stdtrit

    values: npt.NDArray[np.float64] = stdtrit(freedom, (1 + _CONFIDENCE) / 2)
    return values
