"""CPI stacks one level below their components: what an engineer can act on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from warpstack import _core
from warpstack._util.lazy import pandas as pd
from warpstack.errors import InputError, not_a

if TYPE_CHECKING:
    from warpstack.models.prediction import Prediction
    from warpstack.timing.simulation import SimulationResult

__all__ = ["STACK_DETAILS", "Detail", "stack_details"]


class Detail(NamedTuple):
    """What a detail of a CPI stack is.

    Attributes
    ----------
    component
        The one of `STACK_COMPONENTS` that it is a part of.
    words
        What the cycles go to.
    stall
        The warp stall reasons under which Nsight Compute shows such cycles; empty where it has none.
    remedy
        What would help.
    """

    component: str
    words: str
    stall: str
    remedy: str


#: Where data come from beyond L1, Nsight Compute says only that warps wait for them.
_DATA = "long_scoreboard"
#: Where the queue before L1 is full, too.
_QUEUED = "long_scoreboard, lg_throttle"

_WORDS = {
    "issue": ("issuing instructions", "selected", "fewer instructions: wider loads, less indexing"),
    "idle": (
        "slots that no warp can use",
        "",
        "more warps per scheduler, even work for all blocks",
    ),
    "arithmetic": (
        "results of other instructions",
        "wait, short_scoreboard",
        "independent instructions between, more warps",
    ),
    "units": (
        "a unit that is busy",
        "math_pipe_throttle",
        "fewer instructions of that unit, or others of another one",
    ),
    "shared_memory": (
        "shared memory, without bank conflicts",
        "short_scoreboard, mio_throttle",
        "wider accesses, values kept in registers",
    ),
    "bank_conflicts": (
        "further turns through the banks of shared memory",
        "mio_throttle, short_scoreboard",
        "pad the rows, or swizzle them",
    ),
    "barriers": (
        "barriers of a block",
        "barrier",
        "fewer barriers, smaller blocks, even work for all warps",
    ),
    "instruction_fetch": (
        "code that is not in the instruction cache",
        "no_instructions",
        "less unrolling, smaller loops",
    ),
    "phases": (
        "mbarriers and groups of bulk stores",
        "barrier, long_scoreboard",
        "copies that start earlier, more stages",
    ),
    "starts": ("starts of blocks and warps", "", "fewer and longer blocks"),
    "l1_latency": ("the latency of L1", _DATA, "more warps or independent loads"),
    "load_store_unit": (
        "turns of the load-store unit",
        "lg_throttle",
        "fewer and wider memory instructions",
    ),
    "tags": (
        "further lines of an access, and passes over the banks of L1",
        "lg_throttle",
        "coalesced accesses",
    ),
    "l2_latency": ("the latency of L2", _DATA, "more warps or independent loads, hits in L1"),
    "l2_queue": (
        "requests before it in a slice of L2",
        _DATA,
        "fewer requests, spread over slices",
    ),
    "l2_atomics": (
        "atomics before it in a slice of L2",
        _DATA,
        "add up in registers or shared memory first",
    ),
    "dram_latency": (
        "the way to DRAM and back, through L2",
        _DATA,
        "more warps or independent loads, hits in L2",
    ),
    "mshrs": ("a free MSHR", _QUEUED, "coalesced loads, hits in L1"),
    "mshr_targets": (
        "a place at an MSHR, for a line that is on its way",
        _QUEUED,
        "fewer loads of one line at once",
    ),
    "places": ("a place in its set of L1", _QUEUED, "rows padded, so that sets are used evenly"),
    "send_port": ("the port from the SM to the NoC", _QUEUED, "fewer bytes stored"),
    "receive_port": ("the port from the NoC to the SM", _DATA, "fewer bytes loaded, hits in L1"),
    "network": ("the bandwidth of the NoC", _QUEUED, "fewer bytes, hits in L1"),
    "slices": (
        "slices of L2, which take so many requests per cycle",
        _QUEUED,
        "coalesced accesses, requests spread over slices",
    ),
    "atomics": (
        "slices of L2 that work off lanes which meet in a word",
        _QUEUED,
        "add up in registers or shared memory first",
    ),
    "dram_backlog": ("slices of L2 that wait for DRAM", _QUEUED, "as for DRAM: fewer bytes"),
    "dram_bandwidth": ("the bandwidth of DRAM", _DATA, "fewer bytes, hits in L2"),
    "dram_rows": (
        "rows of DRAM that are to be opened",
        _DATA,
        "longer streams, fewer of them at once",
    ),
    "dram_turnarounds": (
        "DRAM between reads and writes",
        _DATA,
        "fewer writes among the reads",
    ),
    "l2_mshrs": ("MSHRs of L2, and their targets", _DATA, "fewer misses in L2"),
}

#: What each detail of a CPI stack is, in the order of the components.
STACK_DETAILS = {
    name: Detail(component, *_WORDS[name]) for name, component in _core.STACK_DETAILS.items()
}

#: Columns of the table of `stack_details`.
_COLUMNS = ("component", "cycles", "share", "words", "stall", "remedy")


def stack_details(result: Prediction | SimulationResult) -> pd.DataFrame:
    """Return the CPI stack of a prediction or simulation, one level below its components.

    Parameters
    ----------
    result
        A prediction of ``closed_network`` (`evaluate`), or a simulation.

    Returns
    -------
    DataFrame
        Indexed by detail, the largest first: ``component``, ``cycles`` per instruction, their
        ``share`` of the CPI (0 to 1), what they go to in ``words``, the warp stall reasons under which
        Nsight Compute shows such cycles (``stall``), and what would help (``remedy``). Details of no
        cycles are left out. Those of a component sum to it.

    Raises
    ------
    InputError
        If the model has no details.
    """
    details = getattr(result, "cpi_details", None)
    if not isinstance(details, Mapping):
        raise not_a("result", "a Prediction or a SimulationResult", result)
    if not details:
        raise InputError(
            f"stack_details: {_who(result)} tells only the components of its CPI stack apart; the "
            "simulator and closed_network have details"
        )
    cpi = result.cpi
    rows: dict[str, list[Any]] = {
        name: [
            STACK_DETAILS[name].component,
            cycles,
            cycles / cpi if cpi else 0.0,
            *STACK_DETAILS[name][1:],
        ]
        for name, cycles in sorted(details.items(), key=lambda item: -item[1])
        if cycles > 0
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(_COLUMNS))
    return table.rename_axis("detail")


def _who(result: Prediction | SimulationResult) -> str:
    return str(getattr(result, "model", "the simulator"))
