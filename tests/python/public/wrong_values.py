"""Values that arguments of the public functions must refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import warpstack as ws


@cache
def wrong_values(folder: Path) -> dict[str, Any]:
    """Return values that most arguments do not take, by a name for messages."""
    binary = folder / "binary"
    binary.write_bytes(bytes(range(256)) * 4)
    unreadable = folder / "unreadable"
    unreadable.write_text("kernel,cycles\n1,2\n")
    unreadable.chmod(0)
    kernel = ws.patterns.strided(gs=1, iterations=1, blocks=1, warps_per_block=1)
    endless: dict[str, Any] = {}
    endless["a"] = endless
    return {
        "None": None,
        "object": object(),
        "list of objects": [object()],
        "True": True,
        "empty text": "",
        "text": "x",
        "bytes": b"",
        "-1": -1,
        "0": 0,
        "1.5": 1.5,
        "2**31": 2**31,
        "2**70": 2**70,
        "10**5000": 10**5000,
        "nan": float("nan"),
        "inf": float("inf"),
        "1e300": 1e300,
        "1e-310": 1e-310,
        "list": [],
        "list of None": [None],
        "list of text": ["x"],
        "list of nan": [float("nan")],
        "list of -1": [-1],
        "nested list": [[1], [2, 3]],
        "pair": (1, 2),
        "dict": {},
        "dict of object": {"a": object()},
        "dict of field": {"num_sms": [object()]},
        "dict of None": {None: 1},
        "dict in itself": endless,
        "set": {1},
        "complex": 1j,
        "texts array": np.array(["a"]),
        "matrix": np.zeros((2, 2)),
        "empty array": np.array([]),
        "objects array": np.array([object()]),
        "scalar array": np.array(1),
        "int8": np.int8(3),
        "float32": np.float32(0.5),
        "DataFrame": pd.DataFrame(),
        "other DataFrame": pd.DataFrame({"kernel": ["x"], "cycles": [None]}),
        "NA": pd.NA,
        "NaT": pd.NaT,
        "App": ws.App([kernel]),
        "empty App": ws.App([]),
        "KernelTrace": kernel,
        "Gpu": ws.gpu("gpumech-baseline"),
        "surrogate": "\udc80",
        "null": "a\0b",
        "lines": "a\nb",
        "long text": "x" * 100_000,
        "folder": folder,
        "missing file": folder / "missing.csv",
        "binary file": binary,
        "unreadable file": unreadable,
        "function": lambda *_: object(),
        "class": int,
        "generator": range(3),
        "bytes path": b"/tmp",
    }


def damaged_tables(table: pd.DataFrame) -> Iterator[tuple[str, Callable[[], pd.DataFrame]]]:
    """Yield what makes tables that lack a column or have other values in one: few of them are made."""

    def of_other_values(column: str, value: Any, everywhere: bool = False) -> pd.DataFrame:
        changed = table.astype({column: object}).copy()
        if not everywhere:
            changed.iloc[0, list(table.columns).index(column)] = value
        elif len(changed):
            values = pd.Series([value] * len(changed), dtype=object, index=changed.index)
            changed.isetitem(list(table.columns).index(column), values)
        return changed

    yield "without rows", lambda: table.iloc[:0]
    yield "twice", lambda: pd.concat([table, table])
    yield "with a row label for all", lambda: table.set_axis([0] * len(table))
    for column in table.columns:
        yield f"without {column}", partial(table.drop, columns=column)
        for name, value in (
            ("None", None),
            ("text", "x"),
            ("nan", float("nan")),
            ("inf", float("inf")),
            ("-1", -1),
            ("0", 0),
            ("object", object()),
            ("surrogate", "\udc80"),
            ("NA", pd.NA),
        ):
            yield f"{column} all {name}", partial(of_other_values, column, value, everywhere=True)
            if len(table) > 1:
                yield f"{column} {name} in a row", partial(of_other_values, column, value)
    yield "a column twice", lambda: pd.concat([table, table.iloc[:, :1]], axis=1)
    yield "columns of numbers", lambda: table.set_axis(range(table.shape[1]), axis=1)
