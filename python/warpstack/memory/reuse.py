"""Reuse distances: profiles of a stream of lines, the SDCM, families of caches, PPT-GPU-Mem.

The cache paper (Yuan et al., 2026) calls the number of different lines between two accesses to a
line their *reuse distance*; here that is a *stack distance*, its place in an LRU stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack import _core
from warpstack._core import SECTOR_BYTES
from warpstack._util.checked import checked, checked_fields
from warpstack._util.former import former_keywords
from warpstack._util.same import same
from warpstack.errors import InputError, not_one_of, shown, warn
from warpstack.hardware.description import GpuLike, as_gpu
from warpstack.memory.caches import occupancy
from warpstack.traces.trace import App, KernelTrace, warn_of_samples

__all__ = [
    "PptGpuMem",
    "ReuseProfile",
    "cache_family",
    "line_stream",
    "ppt_gpu_mem",
    "reuse_profile",
    "stack_distances",
]

_F64 = npt.NDArray[np.float64]
_I64 = npt.NDArray[np.int64]
_U64 = npt.NDArray[np.uint64]

#: Kinds of accesses, in the order of the core.
KINDS = ("load", "store", "atomic")
#: Marks free ways in the core.
_NO_LINE = 2**64 - 1


class _Histogram(NamedTuple):
    """Accesses by stack distance; of a sample, as if it were everything."""

    distances: _I64
    counts: _F64
    cold: float

    def misses(self, hit_probability: _F64) -> float:
        return self.cold + float(np.dot(self.counts, 1 - hit_probability))


class ReuseProfile:
    """The histogram of LRU stack distances in a stream of line accesses.

    Made by `ReuseProfile.from_lines` or `warpstack.memory.reuse_profile`. The stack distance of an access
    is the number of other lines accessed since the last access to its line; the first access to a
    line is *cold* and has none (cache paper, Section 2.3, Table 1).

    A profile of a sample of the lines (``sample_lines`` below 1) holds estimates, and `hit_rate_error` and
    `sdcm_error` say how good they are.

    Examples
    --------
    Table 1 of the cache paper: the lines 1, 2, 3, 1, 1, 3 have the distances 2, 0 and 1.

    >>> import warpstack as ws
    >>> profile = ws.memory.ReuseProfile.from_lines([1, 2, 3, 1, 1, 3])
    >>> profile.distances.tolist(), profile.cold
    ([0, 1, 2], 3.0)
    >>> float(profile.hit_rate(2))
    0.3333333333333333
    """

    @former_keywords(rate="sample_lines")
    @checked
    def __init__(
        self,
        accesses: int,
        histogram: _Histogram,
        batches: Sequence[_Histogram] = (),
        *,
        sample_lines: float = 1.0,
        line_bytes: int | None = None,
        by_kind: Mapping[str, ReuseProfile] | None = None,
    ) -> None:
        self._histogram = histogram
        self._batches = tuple(batches)
        #: Accesses of the stream, whether sampled or not.
        self.accesses = accesses
        #: Share of the lines that were followed.
        self.sample_lines = sample_lines
        #: Bytes per line; None when the stream was given as line numbers.
        self.line_bytes = line_bytes
        #: The accesses of each kind (``load``, ``store``, ``atomic``) within the same stream; empty
        #: when the stream was given as line numbers.
        self.by_kind = dict(by_kind or {})

    @property
    def rate(self) -> float:
        """Former name of `sample_lines`."""
        warn(
            "ReuseProfile.rate is called sample_lines now; the former name goes in 0.4",
            FutureWarning,
        )
        return self.sample_lines

    @classmethod
    @former_keywords(rate="sample_lines")
    @checked
    def from_lines(
        cls, lines: npt.ArrayLike, *, sample_lines: float = 1.0, batches: int = 16, seed: int = 0
    ) -> ReuseProfile:
        """Profile a stream of line numbers.

        Parameters
        ----------
        lines
            Line numbers (address / line size) in order of access, shape (accesses,).
        sample_lines
            Share of the lines to follow, chosen by a hash of their number: 1 is exact, 0.01 takes
            about a fiftieth of the time and memory (SHARDS: Waldspurger et al., FAST 2015).
        batches
            Parts of the sample whose spread gives the standard error, 2 to 1024.
        seed
            Chooses the hash.

        Raises
        ------
        InputError
            If `lines` are not whole numbers from 0 to 2^64 - 1 in one dimension, if `sample_lines`,
            `batches` or `seed` is out of range, or if no access falls into the sample.
        """
        stream = _line_array(lines)
        _check_sampling(sample_lines, batches, seed)
        core = _core.profile_lines(stream, sample_lines, batches, seed)
        return _from_core(core, rate=sample_lines, line_bytes=None, kinds=False)

    @property
    def distances(self) -> _I64:
        """Stack distances that occur, increasing, shape (n,); of a sample, divided by its rate."""
        return self._histogram.distances

    @property
    def counts(self) -> _F64:
        """Accesses with each of the `distances`, shape (n,); of a sample, divided by its rate."""
        return self._histogram.counts

    @property
    def cold(self) -> float:
        """Accesses to lines that were not accessed before: the different lines of the stream."""
        return self._histogram.cold

    @property
    def is_exact(self) -> bool:
        """Whether every line was followed."""
        return not self._batches

    @checked
    def hit_rate(self, size_lines: npt.ArrayLike) -> _F64:
        """Hit rate of fully associative LRU caches: the share of distances below the size.

        Parameters
        ----------
        size_lines
            Lines that the cache holds, any shape.

        Returns
        -------
        ndarray
            Hit rates in the shape of `size_lines`; NaN when the stream is empty. Exact when
            `is_exact`. A sample gives one minus the estimated misses over the known number
            of accesses, at least 0. That is SHARDS with adjustment: it counts the accesses that the
            sample has too few as hits, since what it mostly lacks are lines with many accesses.

        Raises
        ------
        InputError
            If a size is not a whole number of at least 0.
        """
        sizes = _sizes(size_lines)
        return np.asarray(np.maximum(self._fully_associative(self._histogram, sizes), 0))

    @checked
    def hit_rate_error(self, size_lines: npt.ArrayLike) -> _F64:
        """Return the standard error of `hit_rate`, in its shape: 0 when the profile is exact.

        The sampled lines are split into batches by their hash, and each batch gives an estimate of
        its own, with a stack of its own lines. The error is the standard deviation of these over
        the square root of their number (batch means). Where the hit rate jumps within a few lines,
        it can be off by more: the place of a jump at d lines is known to about sqrt(d / rate)
        lines. Below 1 / rate lines there is no resolution.
        """
        sizes = _sizes(size_lines)
        return _standard_error([self._fully_associative(b, sizes) for b in self._batches], sizes)

    @checked
    def sdcm(self, ways: npt.ArrayLike, lines: npt.ArrayLike) -> _F64:
        """Hit rate of set-associative LRU caches by the stack distance-based cache model.

        An access at distance D hits when fewer than A of the D lines since fall into its own set,
        each with probability A / B: P(hit | D) is the binomial distribution function at A - 1 with
        D trials (cache paper, Eq. 1), and the hit rate its mean over all accesses (Eq. 2). Cold
        accesses miss.

        Parameters
        ----------
        ways
            Ways A of a set, any shape.
        lines
            Lines B of the whole cache; broadcasts with `ways`. ``ways == lines`` is fully
            associative and gives `hit_rate`.

        Returns
        -------
        ndarray
            Hit rates in the common shape; NaN when the stream is empty.

        Raises
        ------
        InputError
            If `ways` is not a whole number from 1 to `lines`.
        """
        pairs = _geometry(ways, lines)
        return np.asarray(np.maximum(self._sdcm(self._histogram, *pairs), 0))

    @checked
    def sdcm_error(self, ways: npt.ArrayLike, lines: npt.ArrayLike) -> _F64:
        """Return the standard error of `sdcm` from sampling, as `hit_rate_error` does."""
        pairs = _geometry(ways, lines)
        return _standard_error([self._sdcm(b, *pairs) for b in self._batches], pairs[0])

    def cumulative(self) -> pd.DataFrame:
        """Return the cumulative stack-distance distribution (cache paper, Figure 10).

        Returns
        -------
        DataFrame
            One row per distance that occurs: ``distance``, ``accesses`` (at this distance) and
            ``fraction``, the share of all accesses at this distance or a smaller one. It ends below
            1 by the share of cold accesses.
        """
        return pd.DataFrame(
            {
                "distance": self.distances,
                "accesses": self.counts,
                "fraction": self.hit_rate(self.distances + 1),
            }
        )

    def _rate_of(self, misses: float | _F64) -> Any:
        return (self.accesses - misses) / self.accesses if self.accesses else misses * np.nan

    def _fully_associative(self, histogram: _Histogram, sizes: _I64) -> _F64:
        # All accesses from the first distance on that is not below the size miss.
        beyond = np.append(np.cumsum(histogram.counts[::-1])[::-1], 0)
        first = np.searchsorted(histogram.distances, sizes, side="left")
        rates = self._rate_of(beyond[first] + histogram.cold)
        # Accesses that the sample lacks or has too many of count at distance 0.
        return np.asarray(np.where(sizes == 0, rates * 0, rates))

    def _sdcm(self, histogram: _Histogram, ways: _I64, lines: _I64) -> _F64:
        rates = [
            self._rate_of(histogram.misses(_hit_probability(histogram.distances, a, b)))
            for a, b in zip(ways.ravel().tolist(), lines.ravel().tolist(), strict=True)
        ]
        return np.array(rates, dtype=float).reshape(ways.shape)

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same distances, of the same kinds of accesses."""
        if not isinstance(other, ReuseProfile):
            return NotImplemented
        return same(self.__dict__, other.__dict__)

    def __hash__(self) -> int:
        return hash((self.accesses, self.sample_lines, self.line_bytes))

    def __repr__(self) -> str:
        what = "exact" if self.is_exact else f"{100 * self.sample_lines:g} % of the lines sampled"
        return f"<ReuseProfile of {self.accesses:,} accesses to {self.cold:,.0f} lines, {what}>"


@former_keywords(rate="sample_lines")
@checked
def reuse_profile(
    kernel_or_lines: KernelTrace | npt.ArrayLike,
    gpu: GpuLike | None = None,
    *,
    level: str = "l1",
    line_bytes: int | None = None,
    filtered: bool = False,
    sample_lines: float = 1.0,
    batches: int = 16,
    seed: int = 0,
) -> ReuseProfile:
    """Profile the accesses of a kernel to its caches, or a stream of line numbers.

    Parameters
    ----------
    kernel_or_lines
        A kernel, or line numbers in order of access (see `ReuseProfile.from_lines`).
    gpu, level, line_bytes, filtered
        Which stream of the kernel; see `line_stream`. For ``l1``, distances are counted within each
        SM's own stream and added up.
    sample_lines, batches, seed
        Sampling; see `ReuseProfile.from_lines`.

    Returns
    -------
    ReuseProfile
        A profile; if it is of a kernel, ``by_kind`` has one per kind of access.

    Raises
    ------
    InputError
        If an argument is out of range, if options of a kernel come with line numbers, if a thread
        block does not fit on an SM, or if no access falls into the sample.
    """
    if isinstance(kernel_or_lines, App):
        raise InputError(
            f"{kernel_or_lines.name} is an application; give one of its kernels, such as app[0]"
        )
    if not isinstance(kernel_or_lines, KernelTrace):
        if gpu is not None or level != "l1" or line_bytes is not None or filtered:
            raise InputError(
                "gpu, level, line_bytes and filtered say which accesses of a kernel to take; "
                "line numbers have none of them"
            )
        return ReuseProfile.from_lines(
            kernel_or_lines, sample_lines=sample_lines, batches=batches, seed=seed
        )
    warn_of_samples([kernel_or_lines], "reuse_profile")
    stream = _stream_config(kernel_or_lines, gpu, level, line_bytes, filtered)
    _check_sampling(sample_lines, batches, seed)
    core = _core.profile_kernel(kernel_or_lines._core, stream, sample_lines, batches, seed)
    return _from_core(core, rate=sample_lines, line_bytes=stream.line_bytes, kinds=True)


@checked
def line_stream(
    kernel: KernelTrace,
    gpu: GpuLike,
    *,
    level: str = "l1",
    line_bytes: int | None = None,
    filtered: bool = False,
) -> list[pd.DataFrame]:
    """Return the lines that a kernel accesses, in the order of the memory stage.

    Thread blocks go to SMs round robin, each resident warp issues one access in turn, and the SMs
    take turns (see `simulate_caches`). An instruction accesses each line that it touches once.

    Parameters
    ----------
    kernel
        The kernel.
    gpu
        Its number of SMs and what limits occupancy decide the order.
    level
        ``l1``: a stream per SM with work, of what reaches its L1 cache: loads that do not bypass
        it, and stores. ``l2``: one stream of all SMs, with atomics and bypassing loads.
    line_bytes
        Size of a line, a multiple of 32; by default the GPU's at that level.
    filtered
        For ``l2``: without the loads that hit in L1. L1 has the GPU's size, ways and write-miss
        policy, but unsectored lines of `line_bytes` (cache paper, Section 5.3.2 and Table 5).

    Returns
    -------
    list of DataFrame
        Per stream the columns ``line`` (address / `line_bytes`) and ``kind`` (``load``, ``store``
        or ``atomic``).

    Raises
    ------
    InputError
        If an argument is out of range, or a thread block does not fit on an SM.
    """
    config = _stream_config(kernel, gpu, level, line_bytes, filtered)
    warn_of_samples([kernel], "line_stream")
    lines, kinds, ends = _core.kernel_lines(kernel._core, config)
    names = pd.Categorical.from_codes(kinds.astype(np.int8), categories=pd.Index(KINDS))
    table = pd.DataFrame({"line": lines, "kind": names})
    begins = [0, *ends[:-1].tolist()] if len(ends) else []
    return [
        table.iloc[begin:end].reset_index(drop=True)
        for begin, end in zip(begins, ends.tolist(), strict=True)
    ]


@checked
def stack_distances(lines: npt.ArrayLike) -> _I64:
    """Return the exact LRU stack distance of each access (cache paper, Table 1).

    Parameters
    ----------
    lines
        Line numbers in order of access, shape (n,).

    Returns
    -------
    ndarray of int64
        Other lines accessed since the last access to the line, shape (n,); -1 for a first access.

    Raises
    ------
    InputError
        If `lines` are not whole numbers from 0 to 2^64 - 1 in one dimension.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.memory.stack_distances([1, 2, 3, 1, 1, 3]).tolist()
    [-1, -1, -1, 2, 0, 1]
    """
    return _core.stack_distances(_line_array(lines)).view(np.int64)


@checked
def cache_family(
    lines: npt.ArrayLike, *, sets: Sequence[int] | npt.ArrayLike, max_ways: int
) -> pd.DataFrame:
    """Count the hits of many set-associative LRU caches in one pass over a stream.

    A line at depth d of its LRU set is in every cache with the same sets and more than d ways
    (Hill and Smith, IEEE Transactions on Computers 38(12), 1989). The set of a line is its number
    modulo the number of sets; reads and writes are alike, and every miss allocates.

    Parameters
    ----------
    lines
        Line numbers in order of access, shape (n,).
    sets
        Numbers of sets. Powers of two are quickest, as each divides the next.
    max_ways
        Ways 1 to `max_ways` are counted. The time grows with it: for fully associative caches of
        many lines take `ReuseProfile.hit_rate`.

    Returns
    -------
    DataFrame
        One row per number of sets and of ways, both increasing: ``sets``, ``ways``, ``hits``,
        ``hit_rate`` (NaN for an empty stream).

    Raises
    ------
    InputError
        If a number is below 1, if the caches have more than 2^31 lines together, or if `lines` are
        not whole numbers from 0 to 2^64 - 2 in one dimension.

    Examples
    --------
    >>> import warpstack as ws
    >>> ws.memory.cache_family([0, 2, 0, 2, 1], sets=[1, 2], max_ways=2)["hits"].tolist()
    [0, 2, 0, 2]
    """
    stream = _line_array(lines)
    if stream.size and int(stream.max()) == _NO_LINE:
        raise InputError("lines: the line number 2^64 - 1 marks free ways; shift the numbers")
    numbers = np.unique(_whole("sets", sets, 1))
    ways = int(_whole("max_ways", max_ways, 1))
    if ways >= 2**31:
        raise InputError(f"max_ways = {ways}; a family has at most 2^31 lines")
    hits = _core.cache_family(stream, numbers.tolist(), ways)
    table = pd.DataFrame(
        {
            "sets": np.repeat(numbers, ways),
            "ways": np.tile(np.arange(1, ways + 1), len(numbers)),
            "hits": hits.view(np.int64),
        }
    )
    table["hit_rate"] = table["hits"] / stream.size if stream.size else np.nan
    return table


@dataclass(frozen=True)
class PptGpuMem:
    """The estimates of PPT-GPU-Mem for a kernel; made by `ppt_gpu_mem`."""

    #: Hit rates by SDCM: of loads and of stores in L1, and of everything in L2.
    l1_read_hit_rate: float
    l1_write_hit_rate: float
    l2_hit_rate: float
    #: Estimates under the names of `MemoryProfile.totals`, in 32-byte sectors.
    totals: dict[str, float]
    #: The profiles that they come from.
    l1: ReuseProfile
    l2: ReuseProfile

    def __post_init__(self) -> None:
        checked_fields(self)


@checked
def ppt_gpu_mem(kernel: KernelTrace, gpu: GpuLike) -> PptGpuMem:
    """Estimate cache hits and traffic as PPT-GPU-Mem does, the baseline of the cache paper.

    Lines have 32 bytes at both levels. L1 hit rates come from the SDCM on each SM's own stream, the
    L2 hit rate from the SDCM on the merged stream of all SMs, from which L1 hits are not filtered.
    Load misses of L1 and all stores go to L2, and DRAM sees the share of these that misses there
    (cache paper, Sections 2.3, 2.4 and 3; Arafa et al., ICS 2020). Atomics are not modelled.

    The published program approximates the binomial distribution by a normal one, cuts the stream of
    an SM after its first resident blocks and scales up, and interleaves blocks instead of warps.
    Here Eq. 1 is exact, and the streams are whole and in the order of the memory stage.

    Parameters
    ----------
    kernel
        The kernel.
    gpu
        The GPU: size and ways of L1 and L2, number of SMs, and what limits occupancy.

    Returns
    -------
    PptGpuMem

    Raises
    ------
    InputError
        If a thread block does not fit on an SM.
    """
    gpu = as_gpu(gpu)
    l1 = reuse_profile(kernel, gpu, level="l1", line_bytes=SECTOR_BYTES)
    l2 = reuse_profile(kernel, gpu, level="l2", line_bytes=SECTOR_BYTES)
    l1_lines = int(gpu.l1_size_kib * 1024) // SECTOR_BYTES
    l2_lines = int(gpu.l2_size_kib * 1024) // SECTOR_BYTES

    def rate(profiles: Sequence[ReuseProfile], ways: int, lines: int) -> float:
        accesses = sum(p.accesses for p in profiles)
        hits = sum(float(p.sdcm(ways, lines)) * p.accesses for p in profiles if p.accesses)
        return hits / accesses if accesses else float("nan")

    l1_read = rate([l1.by_kind["load"]], gpu.l1_ways, l1_lines)
    l1_write = rate([l1.by_kind["store"]], gpu.l1_ways, l1_lines)
    # Atomics pass through the stack of L2 but are not part of its traffic.
    l2_rate = rate([l2.by_kind["load"], l2.by_kind["store"]], gpu.l2_ways, l2_lines)
    # Loads that bypass L1 never hit there.
    reads = l2.by_kind["load"].accesses
    writes = l2.by_kind["store"].accesses
    l1_read_hits = l1.by_kind["load"].accesses * l1_read if l1.by_kind["load"].accesses else 0.0
    l2_reads = reads - l1_read_hits

    def share(amount: float, fraction: float) -> float:
        return amount * fraction if amount else 0.0

    totals = {
        "l1_read_sectors": float(reads),
        "l1_read_sector_hits": l1_read_hits,
        "l1_write_sectors": float(writes),
        "l1_write_sector_hits": share(writes, l1_write),
        "l2_read_sectors": l2_reads,
        "l2_read_sector_hits": share(l2_reads, l2_rate),
        "l2_write_sectors": float(writes),
        "l2_write_sector_hits": share(writes, l2_rate),
        "l2_atomic_sectors": float(l2.by_kind["atomic"].accesses),
        "dram_read_sectors": share(l2_reads, 1 - l2_rate),
        "dram_write_sectors": share(writes, 1 - l2_rate),
    }
    return PptGpuMem(l1_read, l1_write, l2_rate, totals, l1, l2)


def _hit_probability(distances: _I64, ways: int, lines: int) -> _F64:
    """P(hit | D) (cache paper, Eq. 1): the binomial distribution function at ways - 1.

    It is computed as a regularised incomplete beta function, which neither over- nor underflows: with
    fewer than `ways` lines in between the access hits for certain, otherwise the function is
    I(1 - ways / lines; D - ways + 1, ways).
    """
    result = np.ones(distances.shape)
    far = distances >= ways
    from scipy.special import betainc

    result[far] = betainc(distances[far] - ways + 1.0, float(ways), (lines - ways) / lines)
    return result


def _standard_error(batches: Sequence[_F64], shape: npt.NDArray[Any]) -> _F64:
    if not batches:
        return np.zeros(shape.shape)
    return np.asarray(np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches)))


def _from_core(
    core: _core._Profile, *, rate: float, line_bytes: int | None, kinds: bool
) -> ReuseProfile:
    accesses, whole, batches = core
    if sum(accesses) and not any(cold for _, _, cold in whole):
        raise InputError(
            f"sample_lines = {rate:g}: none of the {sum(accesses)} accesses falls into the sample; take "
            "more lines or another seed"
        )
    batch_rate = rate / max(len(batches), 1)

    def profile(of: slice, by_kind: Mapping[str, ReuseProfile]) -> ReuseProfile:
        return ReuseProfile(
            sum(accesses[of]),
            _merged(whole[of], rate),
            [_merged(batch[of], batch_rate) for batch in batches],
            sample_lines=rate,
            line_bytes=line_bytes,
            by_kind=by_kind,
        )

    by_kind = {name: profile(slice(k, k + 1), {}) for k, name in enumerate(KINDS) if kinds}
    return profile(slice(None), by_kind)


def _merged(parts: Sequence[tuple[_U64, _U64, int]], rate: float) -> _Histogram:
    """Add up the histograms of kinds, as estimates for all lines."""
    occurring = [part for part in parts if len(part[0])]
    if len(occurring) == 1:
        distances, counts = occurring[0][0], occurring[0][1].astype(float)
    else:
        every = np.concatenate([part[0] for part in parts])
        distances, place = np.unique(every, return_inverse=True)
        weights = np.concatenate([part[1] for part in parts])
        counts = np.bincount(place, weights=weights, minlength=len(distances))
    # An access hits in S lines when distance / rate < S: rounding down changes nothing.
    scaled = np.floor(distances / rate).astype(np.int64)
    return _Histogram(scaled, counts / rate, sum(part[2] for part in parts) / rate)


def _stream_config(
    kernel: KernelTrace, gpu: GpuLike | None, level: str, line_bytes: int | None, filtered: bool
) -> _core.LineStreamConfig:
    if gpu is None:
        raise InputError(
            "a kernel's accesses depend on the GPU; give gpu=, such as ws.gpu('titan-v')"
        )
    gpu = as_gpu(gpu)
    if level not in ("l1", "l2"):
        raise not_one_of("level", level, ("l1", "l2"))
    if filtered and level == "l1":
        raise InputError("filtered: nothing is in front of L1; give level='l2'")
    if line_bytes is None:
        line_bytes = gpu.l1_line_bytes if level == "l1" else gpu.l2_line_bytes
    size = int(_whole("line_bytes", line_bytes, 1))
    sets = int(gpu.l1_size_kib * 1024) // size // gpu.l1_ways
    return _core.LineStreamConfig(
        num_sms=gpu.num_sms,
        blocks_per_sm=occupancy(kernel, gpu)["blocks_per_sm"],
        line_bytes=size,
        merged=level == "l2",
        filter=(sets, gpu.l1_ways, gpu.l1_write_miss != "no_allocate") if filtered else None,
    )


def _check_sampling(rate: float, batches: int, seed: int) -> None:
    # The core checks batches as a number; this checks what would not reach it.
    for name, value, limit in (("batches", batches, 2**32), ("seed", seed, 2**64)):
        if not isinstance(value, (int, np.integer)) or not 0 <= value < limit:
            raise InputError(f"{name} = {shown(value)} is not a whole number from 0 to {limit - 1}")
    if not isinstance(rate, (int, float, np.integer, np.floating)):
        raise InputError(
            f"sample_lines = {shown(rate)} is not a number; give the share of the lines to follow"
        )
    if not 0 < rate <= 1:
        raise InputError(
            f"sample_lines = {shown(rate)} is not a share of the lines; give a number above 0, at most 1"
        )


def _line_array(lines: npt.ArrayLike) -> _U64:
    array = np.asarray(lines)
    if array.ndim != 1:
        raise InputError(f"lines has the shape {array.shape}; give line numbers in one dimension")
    if array.size == 0:
        return np.zeros(0, dtype=np.uint64)
    if array.dtype.kind not in "iu":
        raise InputError(
            f"lines has the type {array.dtype}; line numbers are whole numbers: divide the addresses "
            "by the line size with //"
        )
    if array.dtype.kind == "i" and array.min() < 0:
        raise InputError(f"lines has the negative number {array.min()}; line numbers count from 0")
    return np.ascontiguousarray(array, dtype=np.uint64)


def _whole(name: str, values: npt.ArrayLike, lowest: int) -> _I64:
    """Return whole numbers of at least `lowest`."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.size == 0:
        raise InputError(f"{name} = {shown(values)} is not a whole number of at least {lowest}")
    bad = ~(array >= lowest) | (array >= 2.0**63)
    if array.dtype.kind == "f":
        bad |= array != np.floor(array)
    if bad.any():
        worst = np.atleast_1d(array)[np.atleast_1d(bad)][0]
        raise InputError(f"{name} = {worst} is not a whole number of at least {lowest}")
    return array.astype(np.int64)


def _sizes(size_lines: npt.ArrayLike) -> _I64:
    array = np.asarray(size_lines)
    return array.astype(np.int64) if array.size == 0 else _whole("size_lines", array, 0)


def _geometry(ways: npt.ArrayLike, lines: npt.ArrayLike) -> tuple[_I64, _I64]:
    try:
        a, b = np.broadcast_arrays(_whole("ways", ways, 1), _whole("lines", lines, 1))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"ways and lines have the shapes {np.shape(ways)} and {np.shape(lines)}, which do not "
            "broadcast to a common one"
        ) from None
    if (a > b).any():
        raise InputError(
            f"ways = {a[a > b][0]} of lines = {b[a > b][0]}; a set has at most all lines"
        )
    return a, b
