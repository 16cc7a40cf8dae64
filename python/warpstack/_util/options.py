"""The options that several functions share: those of the stages, and whose time is reported."""

from __future__ import annotations

import dataclasses
import math
import numbers
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, get_args

import numpy as np

from warpstack._util.choices import (
    INITIAL_L2,
    AccessOrder,
    InitialL2,
    MissSource,
    Profiler,
    Selection,
    order_of,
)
from warpstack.errors import InputError, UnusedOptionWarning, not_a, not_one_of, shown, warn

__all__ = [
    "CacheChanges",
    "FlushChanges",
    "OptionChanges",
    "Options",
    "SimulationChanges",
    "StageChanges",
    "TimeChanges",
    "WarpChanges",
    "initial_words",
    "options_of",
    "written_share",
]

_CHOICES = {
    "selection": get_args(Selection),
    "misses": get_args(MissSource),
    "access_order": get_args(AccessOrder),
    "profiler": get_args(Profiler),
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the stages, which functions take together or one by one by name.

    ``predict(app, gpu, options=options)`` and ``predict(app, gpu, flush_l2=True)`` are the ways to
    give them; both at once changes some of the options for this call. A function that does not read
    an option which was set says so with an `UnusedOptionWarning`, and so do predictions with models
    that do not.

    Attributes
    ----------
    selection
        How the representative warp is chosen: ``clustering``, ``max`` or ``min``; see
        `warpstack.interval.representative_warp`.
    misses
        ``per_pc``: an access misses as often as the mean of its instruction over all warps.
        ``representative``: as the warp's own accesses did.
    merge_threshold
        Stalls of at most this many cycles do not end an interval but add to its stall cycles
        (GPUMech's scripts merge below 10; Eq. 4 says 0).
    access_order
        In which order the warps of an SM access memory: ``timed``, which ``auto`` stands for and
        becomes, ``round_robin`` or ``greedy``; see `warpstack.memory.MemorySystem`.
    flush_l2
        Empty L2 before each kernel, which then begins with what `initial_l2` says.
    initial_l2
        What L2 holds before the first kernel, and before each with `flush_l2`: lines of strangers, which
        no access finds, and of which the written ones go to DRAM when others take their places.
        ``empty``: none. ``clean``: L2 is full of them, none written, which changes nothing. ``dirty``: all
        are written. A number: this share of L2's lines is written. None: what the profiler leaves
        there, ``dirty`` under ``do_bench`` and ``empty`` under the others. See
        ``docs/explanation/memory.md``.
    sample_sms
        1: the caches of all SMs are simulated. Below 1: of about that part of the SMs, in launches
        that are large enough and in the timed order. ``auto``: of as few as leave IPC uncertain by at
        most 1 %. See ``docs/explanation/sm-sampling.md``.
    sample_blocks
        1: all thread blocks of a launch are evaluated. Above: about one in so many, at least 128, on as
        large a part of the GPU. ``auto``: as few as leave IPC uncertain by at most 5 %. Traces of which
        only a sample of the blocks was recorded are evaluated in this way whatever is asked for. See
        ``docs/explanation/block-sampling.md``.
    sample_launches
        Predict some launches of each group of similar ones only, for applications with thousands of
        launches: as many as it takes until the cycles of all are known within 1 % with a confidence of
        95 %, or within the number that is given. See ``docs/explanation/launch-sampling.md``.
    profiler
        Whose time is told: ``nsys`` (Nsight Systems), ``ncu`` (Nsight Compute, which holds the
        clock of the SMs at ``base_clock_ghz``), ``nvprof``, ``events`` (CUDA events around the
        launch), ``batch`` (many launches that follow one another in a stream, per launch), or
        ``do_bench`` (the events of Triton's benchmarks, which fill L2 before each run).

    Raises
    ------
    InputError
        If a value is not one of its choices, or not a number that makes sense.

    Examples
    --------
    >>> import warpstack as ws
    >>> options = ws.Options(flush_l2=True, profiler="ncu")
    >>> kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    >>> table = ws.predict(kernel, "gtx1080", options=options, profiler="nsys")
    """

    selection: Selection = "clustering"
    misses: MissSource = "per_pc"
    merge_threshold: float = 0
    access_order: AccessOrder = "auto"
    flush_l2: bool = False
    initial_l2: InitialL2 | float | None = None
    sample_sms: float | str = 1
    sample_blocks: int | str = 1
    sample_launches: bool | float = False
    profiler: Profiler = "nsys"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not isinstance(value, str) or value not in choices:
                raise not_one_of(name, value, choices)
        if not _is_number(self.merge_threshold) or not (
            0 <= self.merge_threshold <= sys.float_info.max
        ):
            raise InputError(
                f"merge_threshold = {shown(self.merge_threshold)} is not a number of cycles"
            )
        if not _is_truth(self.flush_l2):
            raise not_a("flush_l2", "True or False", self.flush_l2)
        # Equal settings are equal options, and have one identity: not `auto` and what it stands for,
        # nor 10 and 10.0.
        settle = object.__setattr__
        settle(self, "access_order", order_of(self.access_order))
        settle(self, "merge_threshold", float(self.merge_threshold))
        settle(self, "flush_l2", bool(self.flush_l2))
        settle(self, "initial_l2", _initial(self.initial_l2))
        settle(self, "sample_sms", _share(self.sample_sms))
        settle(self, "sample_blocks", _one_in(self.sample_blocks))
        settle(self, "sample_launches", _tolerance(self.sample_launches))

    @property
    def written_share(self) -> float:
        """The share of L2's lines that strangers have written when the first kernel begins."""
        return written_share(self.initial_l2, self.profiler)

    @property
    def l2_identity(self) -> dict[str, Any]:
        """What tells results apart by how L2 begins: as before `initial_l2` where nothing is written."""
        share = self.written_share
        return {"flush_l2": self.flush_l2, **({"initial_l2": share} if share else {})}

    @property
    def initial_words(self) -> str:
        """What L2 holds before the first kernel, in words: ``dirty``, say."""
        return initial_words(self.written_share)

    @property
    def observes(self) -> bool:
        """Whether the misses are those of the representative warp, which the caches then observe."""
        return self.misses == "representative"


def written_share(initial_l2: InitialL2 | float | None, profiler: Profiler = "nsys") -> float:
    """Return the share of L2's lines that hold written data of strangers.

    Parameters
    ----------
    initial_l2
        What L2 holds; see `Options`.
    profiler
        Who decides where that is None.

    Raises
    ------
    InputError
        If it is neither a name nor a share.
    """
    given = _initial(initial_l2)
    if given is None:
        given = INITIAL_L2[profiler]
    return _WRITTEN[given] if isinstance(given, str) else given


def initial_words(share: float | None) -> str:
    """Return the word for a share of written lines; a share that has none is told in percent."""
    return {0.0: "empty", 1.0: "dirty"}.get(share or 0.0, f"{100 * (share or 0.0):g} % dirty")


_WRITTEN: Mapping[InitialL2, float] = {"empty": 0.0, "clean": 0.0, "dirty": 1.0}


def _initial(given: Any) -> InitialL2 | float | None:
    """Return a settled `initial_l2`: no number for what has a name."""
    for name in get_args(InitialL2):
        if isinstance(given, str) and given == name:
            return name  # type: ignore[no-any-return]
    if given is None:
        return None
    if not (_is_number(given) and 0 <= given <= 1):
        raise InputError(
            f"initial_l2 = {shown(given)} is not what L2 can hold; give empty, clean, dirty, or the share of "
            "its lines that are written, from 0 to 1"
        )
    return "clean" if given == 0 else "dirty" if given == 1 else float(given)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_truth(value: object) -> bool:
    return isinstance(value, (bool, np.bool_, int, np.integer)) and value in (0, 1)


def _share(given: Any) -> float | str:
    if isinstance(given, str) and given == "auto":
        return "auto"
    if not (_is_number(given) and 0 < given <= 1):
        raise InputError(
            f"sample_sms = {shown(given)} is not a share of the SMs; give a number above 0, at most 1 "
            "(all), or auto"
        )
    return float(given)


def _one_in(given: Any) -> int | str:
    if isinstance(given, str) and given == "auto":
        return "auto"
    if not (_is_number(given) and 1 <= given <= 2**32 and given == int(given)):
        raise InputError(
            f"sample_blocks = {shown(given)} is not a whole number: one in so many thread blocks is "
            "evaluated; give 1 (all) or more, or auto"
        )
    return int(given)


def _tolerance(given: Any) -> bool | float:
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    if not (_is_number(given) and 0 < given < 1 and math.isfinite(given)):
        raise InputError(
            f"sample_launches = {shown(given)} is not True, False or a relative error of "
            "the cycles between 0 and 1, such as 0.01"
        )
    return float(given)


# --- which options a function reads: those that it takes by name ------------------------------------


class WarpChanges(TypedDict, total=False):
    """Options of the interval stage, which are about one representative warp."""

    selection: Selection
    misses: MissSource
    merge_threshold: float


class FlushChanges(TypedDict, total=False):
    """Options of what runs kernels in order on one L2."""

    flush_l2: bool
    initial_l2: InitialL2 | float | None


class _OrderChanges(FlushChanges, total=False):
    access_order: AccessOrder


class _ProfilerChanges(TypedDict, total=False):
    profiler: Profiler


class CacheChanges(_OrderChanges, total=False):
    """Options of the memory stage."""

    sample_sms: float | str


class SimulationChanges(FlushChanges, _ProfilerChanges, total=False):
    """Options of the timing stage."""

    sample_blocks: int | str


class StageChanges(WarpChanges, _OrderChanges, total=False):
    """Options of the stages before the models."""


class TimeChanges(StageChanges, _ProfilerChanges, total=False):
    """Options of the stages before the models, and whose time is reported."""


class OptionChanges(TimeChanges, CacheChanges, total=False):
    """All options."""

    sample_blocks: int | str
    sample_launches: bool | float


_DEFAULTS: Mapping[str, Any] = dataclasses.asdict(Options())


def options_of(
    reader: str, options: Options | None, changes: Mapping[str, Any], reads: type[Any]
) -> Options:
    """Return the options that a function goes by; those that it does not read have their defaults.

    Parameters
    ----------
    reader
        Name of the function.
    options, changes
        What its caller gave.
    reads
        Which it reads: the names of a typed dictionary above.

    Raises
    ------
    InputError
        If an option is wrong.

    Warns
    -----
    UnusedOptionWarning
        If `options` sets some that it does not read.
    """
    if options is None:
        return Options(**changes)
    if not isinstance(options, Options):
        raise not_a("options", "Options", options)
    read = reads.__optional_keys__
    unread = [name for name in changed_options(options) if name not in read]
    if unread:
        warn(f"options: {reader} does not read {', '.join(unread)}", UnusedOptionWarning)
    return Options(**{name: getattr(options, name) for name in read} | dict(changes))


def changed_options(options: Options) -> list[str]:
    """Return the names of the options that are set to something other than their default."""
    return [name for name, default in _DEFAULTS.items() if getattr(options, name) != default]
