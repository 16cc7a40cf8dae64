"""Packages that take long to load, loaded when something of theirs is first used.

pandas takes 0.7 s of CPU to load, NumPy 0.2 s. A module that only names them in annotations, or uses
them in some of its functions, takes them from here: ``from warpstack._util.lazy import pandas as pd``.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

__all__ = ["is_dataframe", "numpy", "pandas", "pyarrow", "pyarrow_parquet"]


class _Lazy(ModuleType):
    """A module that stands for another of the same name, which it loads at the first use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import numpy
    import pandas
    import pyarrow
    import pyarrow.parquet as pyarrow_parquet
else:
    numpy = _Lazy("numpy")
    pandas = _Lazy("pandas")
    pyarrow = _Lazy("pyarrow")
    pyarrow_parquet = _Lazy("pyarrow.parquet")


def is_dataframe(value: object) -> TypeGuard[pandas.DataFrame]:
    """Return whether a value is a DataFrame; before pandas is loaded, nothing can be one."""
    return "pandas" in sys.modules and isinstance(value, pandas.DataFrame)
