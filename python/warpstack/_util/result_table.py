"""Rows of results as a DataFrame that prints the columns that most people look for."""

from __future__ import annotations

import copy

import pandas as pd

__all__ = ["ResultTable"]

#: Columns of results that are not printed where rows have more than fit: where results come from, and parts.
_ASIDE = frozenset(
    [
        *("instructions", "cycles", "launch_us", "cpi", "app_digest"),
        *("time_us_low", "time_us_high", "reason", "gain"),
        *("share_with_inlined", "time_us_with_inlined"),
        *("trace_digest", "gpu_digest", "version"),
        *("executions", "active_lanes", "sectors_per_access", "least_sectors_per_access"),
        *("l1_hit_rate", "l2_hit_rate", "dram_bytes", "bank_conflicts"),
    ]
)
#: Characters of a cell that are printed.
_MOST_CHARACTERS = 30
#: Beginnings of the names of parts of stacks.
_PARTS = ("cpi_", "for_", "model_cpi_")
#: Columns that are printed where they tell rows apart.
_TELLING = frozenset(["gpu", "gpu_changes", "file"])
#: Columns that are printed unless all rows have the default.
_UNLESS = {"initial_l2": 0.0, "profiler": "nsys"}


class _LikeAnyOther(type):
    """Lets any DataFrame pass for a table of results: `pandas.testing` compares types with `isinstance`."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, pd.DataFrame)


class ResultTable(pd.DataFrame, metaclass=_LikeAnyOther):
    """A DataFrame like any other, but for what is printed of it.

    pandas prints the first and the last columns of a wide table, which are the kernel and a digest; the time
    is between them. What operations return are plain DataFrames, but for copies.
    """

    def copy(self, deep: bool = True) -> ResultTable:  # type: ignore[misc]
        """Return a copy, which prints alike."""
        table = ResultTable(super().copy(deep))
        table.attrs = copy.deepcopy(self.attrs) if deep else self.attrs
        return table

    def __repr__(self) -> str:
        """Return the table without columns that few look for, and the names of these."""
        plain, left_out = self._shown()
        with pd.option_context("display.max_colwidth", _MOST_CHARACTERS):
            return f"{plain!r}{left_out}"

    def _repr_html_(self) -> str | None:
        plain, left_out = self._shown()
        found = plain.to_html(max_rows=pd.get_option("display.max_rows"), show_dimensions=True)
        return found + (f"<p>{left_out.strip()}</p>" if left_out else "")

    def _shown(self) -> tuple[pd.DataFrame, str]:
        """Return the columns to print, and a line that names the others."""
        columns = list(map(str, self.columns))
        aside = [
            name
            for name in columns
            if name in _ASIDE
            or name.startswith(_PARTS)
            or (name in _TELLING and self[name].nunique(dropna=False) < 2)
            or (name in _UNLESS and (self[name] == _UNLESS[name]).all())
            or (name == "error" and self[name].fillna("").eq("").all())
        ]
        plain = pd.DataFrame(self)
        if not aside or len(aside) == len(columns):
            return plain, ""
        return plain.drop(columns=aside), f"\nand the columns {', '.join(_folded(aside))}"


def _folded(names: list[str]) -> list[str]:
    """Return names with the parts of each stack as one."""
    parts = {name: f"{part}*" for name in names for part in _PARTS if name.startswith(part)}
    return list(dict.fromkeys(parts.get(name, name) for name in names))
