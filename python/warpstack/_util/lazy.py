"""Lazy imports: packages, and modules behind a package's public names, loaded at their first use.

pandas takes 0.7 s of CPU to load, NumPy 0.2 s. A module that only names them in annotations, or uses
them in some of its functions, takes them from here: ``from warpstack._util.lazy import pandas as pd``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

__all__ = ["is_dataframe", "lazy_exports", "numpy", "pandas", "pyarrow", "pyarrow_parquet"]


class _Lazy(ModuleType):
    """A stand-in for a module, which it loads at the first use."""

    def __getattr__(self, name: str) -> Any:
        loaded = vars(self).get("_loaded")
        if loaded is None:
            # Kept only when it is complete: another thread may be loading it.
            loaded = vars(self)["_loaded"] = importlib.import_module(self.__name__)
        return getattr(loaded, name)


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


def lazy_exports(
    package: str, exports: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that exports names of its modules lazily.

    So an import of a single module of the package does not load all others.

    Parameters
    ----------
    package
        Its full name.
    exports
        The module, within the package, of each exported name; the name itself for a module.
    """

    def get(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{exports[name]}")
        value = module if exports[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *exports})

    return get, names
