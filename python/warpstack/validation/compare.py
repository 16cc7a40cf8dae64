"""Two answers side by side: two GPUs, two kernels, two versions of one, or two models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options, TimeChanges, changed_options, options_of
from warpstack.errors import InputError, UnusedOptionWarning, not_a, warn
from warpstack.hardware.description import Gpu, GpuLike
from warpstack.models import prediction
from warpstack.tables import STACK, STACK_COMPONENTS, TIME, add_up, checked_table, require
from warpstack.traces.trace import (
    App,
    KernelTrace,
    ambiguous_names,
    distinct_names,
    kernels_of,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    Rows = Sequence[Mapping[str, Any]]

__all__ = ["ALL_KERNELS", "COMPARED", "compare"]

#: The name in the rows of all kernels together.
ALL_KERNELS = "(all)"
#: The quantities that are compared, with their units.
COMPARED = {
    "time": "us",
    "launch": "us",
    **dict.fromkeys(STACK_COMPONENTS, "us"),
    "cycles": "cycles",
    "instructions": "warp instructions",
    "ipc": "warp instructions per cycle",
}
#: The quantities that add up to the time.
_PARTS = ("launch", *STACK_COMPONENTS)
_EXPECTED = "a table of warpstack.predict or warpstack.timing.as_table"


@checked
def compare(
    first: App | KernelTrace | Gpu | str | pd.DataFrame,
    second: App | KernelTrace | Gpu | str | pd.DataFrame,
    *,
    app: App | KernelTrace | None = None,
    gpu: GpuLike | None = None,
    model: str = DEFAULT_MODEL,
    options: Options | None = None,
    **changes: Unpack[TimeChanges],
) -> pd.DataFrame:
    """Compare two kernels or applications, two GPUs, two models, or two tables of results.

    Parameters
    ----------
    first, second
        Both of one kind: applications or kernels (for which `gpu` is needed), GPUs or their names (`app`
        is needed), names of models (`app` and `gpu` are needed), or tables of one model each, of
        `warpstack.predict` or `warpstack.timing.as_table`.
    app
        What the GPUs or models are compared for.
    gpu
        The GPU on which kernels or models are compared.
    model
        The model that predicts both, unless models or tables are compared.
    options, **changes
        How both are predicted, unless they are tables; see `warpstack.Options`: ``selection``, ``misses``,
        ``merge_threshold``, ``access_order``, ``flush_l2``, ``initial_l2``, ``profiler``.

    Returns
    -------
    DataFrame
        A row per kernel and quantity: ``name`` (first ``(all)``, the sum of all kernels, then those of each
        name in the order of `first`), ``quantity``, ``unit``, ``first``, ``second``, ``ratio`` (second over
        first) and ``largest``: whether no other part of the time changes more. The quantities are
        ``time`` with its parts, ``launch`` and the components of the CPI stack as shares of the rest, all
        in microseconds; and ``cycles``, ``instructions``, ``ipc``. Launches of a name are added up; names
        that several kernels of an application share have their template arguments. A name
        that only one has is compared with nothing (NaN), unless none is in both and both have as many:
        these are compared in order.

    Raises
    ------
    InputError
        If the two are not of one kind, what they need is not given or is given in vain, or a table is
        not one of results of one model.
    """
    how = options_of("compare", options, changes, TimeChanges)
    values = _of_one_kind(first, second)
    _warn_of_unread(values, model, how)
    apps = [kernels_of(one) for one in (*values, app) if isinstance(one, (App, KernelTrace))]
    unclear = {name for kernels in apps for name in ambiguous_names(kernels)}
    tables = [
        _table(what, value, app, gpu, model, how, unclear)
        for what, value in zip(("first", "second"), values, strict=True)
    ]
    sums = [_sums(table) for table in tables]
    names = [(name, name) for name in sums[0] if name != ALL_KERNELS]
    if set(sums[0]) & set(sums[1]) == {ALL_KERNELS} and len(sums[0]) == len(sums[1]):
        names = list(zip(list(sums[0])[1:], list(sums[1])[1:], strict=True))
    else:
        names += [(name, name) for name in sums[1] if name not in sums[0]]
    rows: list[dict[str, Any]] = []
    for one, other in [(ALL_KERNELS, ALL_KERNELS), *names]:
        title = one if one == other else f"{one}, {other}"
        rows += _compared(title, sums[0].get(one), sums[1].get(other))
    return pd.DataFrame(rows)


def _of_one_kind(first: Any, second: Any) -> list[Any]:
    """Return both, names of GPUs as GPUs; raise `InputError` if they are not of one kind."""
    models = prediction.names()
    found = []
    for what, value in (("first", first), ("second", second)):
        if isinstance(value, str) and value not in models:
            from warpstack.hardware.description import gpu as read_gpu

            try:
                value = read_gpu(value)
            except InputError as error:
                raise InputError(
                    f"compare: {what}: it is neither a model nor a GPU: {error}"
                ) from None
        found.append(value)
    kinds = [_kind(value) for value in found]
    if kinds[0] != kinds[1]:
        raise InputError(f"compare: got {kinds[0]} and {kinds[1]}; both must be of one kind")
    return found


def _warn_of_unread(values: Sequence[Any], model: str, how: Options) -> None:
    """Warn of options that do not change what is compared."""
    kind = _kind(values[0])
    if kind == "a table":
        if unread := changed_options(how):
            warn(f"options: tables do not read {', '.join(unread)}", UnusedOptionWarning)
        return
    prediction.warn_of_unread(how, list(values) if kind == "a model" else [model])


def _kind(value: Any) -> str:
    if isinstance(value, (App, KernelTrace)):
        return "a trace"
    if isinstance(value, Gpu):
        return "a GPU"
    if isinstance(value, str):
        return "a model"
    if isinstance(value, pd.DataFrame):
        return "a table"
    raise not_a("compare", "traces, GPUs, names of models or tables", value)


def _table(
    what: str,
    value: Any,
    app: Any,
    gpu: GpuLike | None,
    model: str,
    how: Options,
    unclear: Collection[str],
) -> Rows:
    """Return the rows of one model that a value stands for.

    Kernels whose names are `unclear` have longer ones.
    """
    kind = _kind(value)
    of = {
        "a trace": (value, gpu, model),
        "a GPU": (app, value, model),
        "a model": (app, gpu, value),
        "a table": (None, None, None),
    }[kind]
    if kind == "a table":
        if app is not None or gpu is not None:
            raise InputError("compare: tables need neither an app nor a gpu; leave them out")
        numbers = ("cycles", "cpi", *TIME, *STACK)
        checked_rows = checked_table(f"compare: {what}", value, numbers=("instructions", *numbers))
        columns = ("name", "model", "instructions", *numbers)
        require(checked_rows, columns, _EXPECTED, what=f"compare: {what} has", rows=True)
        if checked_rows["model"].nunique() > 1:
            listed = ", ".join(map(str, checked_rows["model"].unique()))
            raise InputError(f"compare: {what} has rows of several models, {listed}; choose one")
        return checked_rows.to_dict("records")  # type: ignore[return-value]
    if of[0] is None:
        raise InputError(f"compare: {kind} is compared for an application: give app=")
    if of[1] is None:
        raise InputError(f"compare: {kind} is compared on a GPU: give gpu=")
    if (kind == "a trace" and app is not None) or (kind == "a GPU" and gpu is not None):
        unused = "app" if kind == "a trace" else "gpu"
        raise InputError(f"compare: {kind} and {unused}= are given; leave {unused}= out")
    rows = prediction.predicted_rows(of[0], of[1], [of[2]], how)
    names = distinct_names(kernels_of(of[0]), unclear)
    return [{**row, "name": name} for row, name in zip(rows, names, strict=True)]


def _sums(rows: Rows) -> dict[str, dict[str, float]]:
    """Return the quantities of all kernels together and of those of each name."""
    groups: dict[str, list[Mapping[str, Any]]] = {ALL_KERNELS: list(rows)}
    for row in rows:
        groups.setdefault(str(row["name"]), []).append(row)
    return {name: _quantities(group) for name, group in groups.items()}


def _quantities(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    rows = list(rows)
    columns = ("instructions", "cycles", "cpi", *TIME, *STACK)
    added = add_up({name: [row[name] for row in rows] for name in columns})
    # Each launch has its own part: launches of few instructions may take long.
    parts = {
        part: sum(
            (row["time_us"] - row["launch_us"]) * row[f"cpi_{part}"] / row["cpi"] for row in rows
        )
        for part in STACK_COMPONENTS
    }
    return {
        "time": float(added["time_us"]),
        "launch": float(added["launch_us"]),
        **{part: float(value) for part, value in parts.items()},
        "cycles": float(added["cycles"]),
        "instructions": float(added["instructions"]),
        "ipc": float(added["ipc"]),
    }


def _compared(
    name: str, first: Mapping[str, float] | None, second: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    nothing = dict.fromkeys(COMPARED, float("nan"))
    one, other = first or nothing, second or nothing
    largest = max(_PARTS, key=lambda part: abs(other[part] - one[part]))
    return [
        {
            "name": name,
            "quantity": quantity,
            "unit": unit,
            "first": one[quantity],
            "second": other[quantity],
            "ratio": other[quantity] / one[quantity] if one[quantity] else float("nan"),
            "largest": quantity == largest and abs(other[quantity] - one[quantity]) > 0,
        }
        for quantity, unit in COMPARED.items()
    ]
