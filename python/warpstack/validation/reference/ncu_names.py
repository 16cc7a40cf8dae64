"""The metrics of Nsight Compute for each statistic here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from warpstack._core import SECTOR_BYTES

__all__ = ["METRICS", "STATISTICS", "Formula", "named", "ncu_metrics"]


@dataclass(frozen=True)
class Formula:
    """Metrics whose sum, in base units and times a factor, is a statistic.

    Parameters
    ----------
    metrics
        All of them must be in the report.
    more
        They are added where the report has them.
    factor, divisor
        What the sum is multiplied by and divided by.
    """

    metrics: tuple[str, ...]
    more: tuple[str, ...] = ()
    factor: float = 1.0
    divisor: float = 1.0

    def evaluate(self, values: Mapping[str, Any]) -> tuple[float, str] | None:
        """Return the value and how it was made, or None where a metric has no value."""
        if not all(_is_there(values, metric) for metric in self.metrics):
            return None
        used = [*self.metrics, *(metric for metric in self.more if _is_there(values, metric))]
        text = " + ".join(used)
        if self.divisor != 1:
            text = f"({text}) / {self.divisor:g}" if len(used) > 1 else f"{text} / {self.divisor:g}"
        return sum(values[metric] for metric in used) * self.factor / self.divisor, text


def _one(*names: str, factor: float = 1.0) -> tuple[Formula, ...]:
    """Return metrics of which each alone is the statistic."""
    return tuple(Formula((name,), factor=factor) for name in names)


def _l1(what: str, hits: str = "") -> tuple[Formula, ...]:
    space = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}{}.sum"
    wanted = (space.format("global", what, hits),)
    return (Formula(wanted, more=(space.format("local", what, hits),)),)


def _l1_local(what: str, hits: str = "") -> tuple[Formula, ...]:
    return _one(f"l1tex__t_sectors_pipe_lsu_mem_local_op_{what}{hits}.sum")


def _l2(what: str, hits: str = "") -> tuple[Formula, ...]:
    # Sectors of the SMs; those of all units include copies and the host's accesses.
    return _one(
        f"lts__t_sectors_srcunit_tex_op_{what}{hits}.sum", f"lts__t_sectors_op_{what}{hits}.sum"
    )


def _l2_atomic() -> tuple[Formula, ...]:
    unit = "lts__t_sectors_srcunit_tex_op_"
    reductions = f"{unit}red.sum"
    return (
        Formula((f"{unit}atom.sum", reductions)),
        Formula((f"{unit}atom_dot_alu.sum", f"{unit}atom_dot_cas.sum", reductions)),
    )


def _dram(what: str) -> tuple[Formula, ...]:
    sectors = Formula((f"dram__sectors_{what}.sum",))
    return (sectors, Formula((f"dram__bytes_{what}.sum",), divisor=SECTOR_BYTES))


_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared"

#: For each statistic the formulas that give it, the best first; names with blanks are of the details page.
#: Hits of writes in L2 are not among them: NVIDIA counts every store as a hit there, and does not say
#: what a hit of a reduction is (forums.developer.nvidia.com, topic 257458).
STATISTICS: dict[str, tuple[Formula, ...]] = {
    "cycles": _one(
        "sm__cycles_elapsed.max",
        "gpc__cycles_elapsed.max",
        "sm__cycles_elapsed.avg",
        "Elapsed Cycles",
    ),
    "time_s": _one("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration"),
    "clock_ghz": _one(
        "sm__cycles_elapsed.avg.per_second",
        "smsp__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.avg.per_second",
        "SM Frequency",
        factor=1e-9,
    ),
    "instructions": _one(
        "smsp__inst_executed.sum", "sm__inst_executed.sum", "Executed Instructions", "inst_executed"
    ),
    "thread_instructions": _one(
        "smsp__thread_inst_executed_pred_on.sum",
        "sm__thread_inst_executed_pred_on.sum",
        "thread_inst_executed_true",
    ),
    "l1_read_sectors": _l1("ld"),
    "l1_read_sector_hits": _l1("ld", "_lookup_hit"),
    "l1_write_sectors": _l1("st"),
    "l1_write_sector_hits": _l1("st", "_lookup_hit"),
    "l1_local_read_sectors": _l1_local("ld"),
    "l1_local_read_sector_hits": _l1_local("ld", "_lookup_hit"),
    "l1_local_write_sectors": _l1_local("st"),
    "l1_local_write_sector_hits": _l1_local("st", "_lookup_hit"),
    "l2_read_sectors": _l2("read"),
    "l2_read_sector_hits": _l2("read", "_lookup_hit"),
    "l2_write_sectors": _l2("write"),
    "l2_atomic_sectors": _l2_atomic(),
    "dram_read_sectors": _dram("read"),
    "dram_write_sectors": _dram("write"),
    "shared_wavefronts": (
        Formula((f"{_SHARED}_op_ld.sum", f"{_SHARED}_op_st.sum"), more=(f"{_SHARED}_op_atom.sum",)),
        *_one(f"{_SHARED}.sum"),
    ),
    "shared_bank_conflicts": _one("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    "achieved_occupancy": _one(
        "sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"
    ),
    "warps_per_sm": _one(
        "sm__maximum_warps_avg_per_active_cycle", "Theoretical Active Warps per SM"
    ),
    "registers_per_thread": _one("launch__registers_per_thread", "Registers Per Thread"),
    "shared_memory_bytes": (
        Formula(
            ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"),
        ),
        Formula(("Static Shared Memory Per Block", "Dynamic Shared Memory Per Block")),
    ),
}
#: All metrics that stand for something; their units must be known.
METRICS = frozenset(
    metric
    for formulas in STATISTICS.values()
    for formula in formulas
    for metric in (*formula.metrics, *formula.more)
)


#: Columns that say which launch a row is of.
_ABOUT = ("source", "kernel", "launches", "name", "gpu", "grid", "block")


def named(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return rows of a tool's metrics with the statistics that they stand for.

    Parameters
    ----------
    rows
        The name of each launch or kernel, and its metrics in base units.

    Returns
    -------
    DataFrame
        The rows with a column for each statistic that one of them has. ``attrs["metrics"]`` names
        by statistic the metrics that it is made of.
    """
    complete = []
    texts: dict[str, dict[str, None]] = {}
    for row in rows:
        metrics = row.pop("metrics")
        found = {}
        for statistic, formulas in STATISTICS.items():
            for formula in formulas:
                if result := formula.evaluate(metrics):
                    found[statistic] = result[0]
                    texts.setdefault(statistic, {})[result[1]] = None
                    break
        complete.append({**row, **found, **metrics})
    table = pd.DataFrame(complete)
    present = [name for name in STATISTICS if name in texts]
    first = [*(name for name in _ABOUT if name in table), *present]
    table = table[[*first, *(name for name in table if name not in first)]]
    table.attrs["metrics"] = {name: " or ".join(texts[name]) for name in present}
    return table


def ncu_metrics() -> pd.DataFrame:
    """Return which metrics of Nsight Compute stand for which statistic.

    Returns
    -------
    DataFrame
        ``statistic``, ``choice`` (1: taken where the report has it; 2 and more: else), ``metrics``
        (all of these are needed, their sum counts) and ``factor``, by which the sum in base units
        (seconds, bytes, hertz, fractions) is multiplied.
    """
    return pd.DataFrame(
        {
            "statistic": statistic,
            "choice": choice,
            "metrics": " + ".join([*formula.metrics, *(f"[{name}]" for name in formula.more)]),
            "factor": formula.factor / formula.divisor,
        }
        for statistic, formulas in STATISTICS.items()
        for choice, formula in enumerate(formulas, 1)
    )


def _is_there(values: Mapping[str, Any], metric: str) -> bool:
    value = values.get(metric)
    return isinstance(value, float) and not math.isnan(value)
