"""Predictions against references: which kernels match, and how far apart they are."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, UnmatchedWarning, not_a, not_one_of, shown, unknown, warn
from warpstack.hardware.description import gpus
from warpstack.memory.caches import MemoryProfile
from warpstack.tables import STACK, checked_table, require
from warpstack.timing.simulation import SimulationResult
from warpstack.validation import measures, stacks
from warpstack.validation.pairs import pair_errors
from warpstack.validation.profilers import TIMED, warn_of_other_profilers
from warpstack.validation.quantities import (
    COMPARABLE,
    Conversion,
    has_values,
    is_additive,
    is_profiler,
    launch_text,
    with_clocks,
)
from warpstack.validation.reference import read
from warpstack.validation.reference.common import plain_name

__all__ = ["MD_THRESHOLD_DPKI", "validate", "validation_errors"]

#: An application with more divergent loads per 1000 instructions is memory-divergent (MDM, Section I).
MD_THRESHOLD_DPKI = 10.0

#: Columns that set one set of predictions apart from another.
_CONFIGURATION = ("gpu", "gpu_changes", "model")
#: Columns that both sides must agree in when both have them.
_COMMON = ("app", "change", "gpu", "gpu_changes")
#: Columns of text.
_TEXTS = ("app", "suite", "class", "change", "name", "gpu", "gpu_changes")
_MATCHING = ("auto", "number", "order")
#: Stands for all statistics that both sides have.
ALL = "all"

#: Ratios above it, or below its inverse, are rather of another unit than of a bad prediction.
_OTHER_UNIT = 300.0

#: The column of references that says where a row is, for messages.
_PLACE = "place of the row"

MATCHED = "matched"
NO_REFERENCE = "no reference"
NO_PREDICTION = "no prediction"

Reference = str | os.PathLike[str] | pd.DataFrame
Predictions = pd.DataFrame | MemoryProfile | SimulationResult


@checked
def validate(
    predictions: Predictions | Sequence[Predictions],
    reference: Reference | Sequence[Reference],
    *,
    metric: str | Sequence[str] | None = None,
    match: str = "auto",
    skip: int = 0,
    clock_ghz: float | None = None,
    suites: Mapping[str, str] | pd.Series | None = None,
    classes: Mapping[str, str] | pd.Series | None = None,
    pairs: bool = False,
    versions: Mapping[str, str] | pd.Series | None = None,
) -> pd.DataFrame:
    """Put predictions beside references, kernel by kernel.

    Parameters
    ----------
    predictions
        Rows of `warpstack.predict`, of a simulation, or others with ``kernel`` and the metric.
        ``model``, ``gpu`` and ``gpu_changes`` tell sets of predictions apart; ``name``, ``app``,
        ``change``, ``gpu`` and ``gpu_changes`` (when the reference has them, too; of a profiler, whose
        names of devices are other ones, not the last two) say which rows match. A sequence of such tables
        and of profiles of `warpstack.simulate_caches` adds the counters of caches.
    reference
        A file (see `warpstack.validation.reference.read`), rows of a simulation or of any table with
        ``kernel`` and the metric, or a sequence of these.
    metric
        The column or columns to compare; ``all``: every statistic that both sides have. By default
        all of a report of Nsight Compute, ``time_us`` of another reference that has times and no
        ``cycles``, else ``cycles``. Where ``cycles`` of such a reference are asked for, or
        `clock_ghz` is given, they are the time at the clock of the predictions; ``time_s`` and
        ``time_us`` of predictions are the reverse. Cycles of a profiler begin with the launch:
        predictions with ``launch_us`` are compared with these cycles added. ``clock_ghz`` of
        predictions is what their cycles and times say, or the clock of their GPU.
    match
        How launches are matched: by ``number``; by name and ``order`` among the launches of that
        name; or ``auto``: by number if the names there agree, otherwise by order. Where that order
        cannot be, because the profiler skipped launches, ``auto`` takes the one place among the
        predictions at which names, grids and blocks agree, if there is just one.
    skip
        How many launches of the kernels that it measured the profiler skipped before the first
        (``--launch-skip`` of ncu). Matching is then by order.
    clock_ghz
        Clock for conversions; by default that of the predictions (see `metric`).
    suites, classes
        Suite and class (such as MD and NMD) by application; by default the columns ``suite`` and
        ``class``, and for the class the column ``dpki``: MD above 10 (MDM, Section I), else NMD.

    pairs
        Say which of two launches is faster and by how much, in place of a row per launch: the result
        is that of `warpstack.validation.pair_errors`, which also warns where there are no pairs.
    versions
        With `pairs`: what kernels compute, by name; versions of one kernel are counted apart, too.

    Returns
    -------
    DataFrame
        One row per metric, kernel, set of predictions and source of references: ``source``, ``app``,
        ``suite``, ``class``, ``kernel``, ``launches`` (how many the row stands for), ``name``,
        ``gpu``, ``gpu_changes``, ``model``, ``metric``, ``profiler_metric`` (what Nsight Compute
        calls it: the metrics whose sum `measured` is), ``predicted``, ``measured``, ``error``
        (predicted / measured - 1), ``ratio`` and ``status``: ``matched``, ``no reference`` or ``no
        prediction``. Text is empty where unknown. `warpstack.validation.validation_errors` sums it up.

        Where both sides have a CPI stack (``cpi_base`` to ``cpi_queue``), ``stack_distance`` is half
        the sum of the absolute differences of the components' shares of the CPI, from 0 (the same
        reasons) to 1, else NaN; ``largest_stall_predicted`` and ``largest_stall_measured`` are each
        side's largest component beside ``base``, ``none`` without any stall. Tables with these columns
        on both sides also give the cycles by component, ``predicted_base`` to ``predicted_queue``
        and ``measured_base`` to ``measured_queue``: the share of the CPI times ``cycles``.

    Raises
    ------
    InputError
        If a frame lacks a column, kernels cannot be told apart, nothing matches, both sides have no
        statistic in common, a time of the reference is not above 0, or a component of a CPI stack is
        negative.

    Warns
    -----
    UnmatchedWarning
        If rows of either side have no counterpart or no value (they are in the result), or if grid or
        block of matched launches differ, where both sides say them.
    UserWarning
        If times or cycles are for one profiler and measured by another that holds another clock or
        has another launch; or if the median of the ratios to what no profiler wrote is above 300 or
        below 1/300, as it is where a unit is another than it seems.

    Examples
    --------
    >>> import pandas as pd
    >>> import warpstack as ws
    >>> predicted = pd.DataFrame({"kernel": [1, 2], "model": "mdm", "cycles": [110.0, 90.0]})
    >>> measured = pd.DataFrame({"kernel": [1, 2], "cycles": [100.0, 100.0]})
    >>> table = ws.validate(predicted, measured)
    >>> [round(error, 3) for error in table["error"]]
    [0.1, -0.1]
    """
    if match not in _MATCHING:
        raise not_one_of("match", match, _MATCHING)
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise InputError(f"skip = {shown(skip)} is not a number of launches")
    if skip and match == "number":
        raise InputError("skip counts launches by order; leave out match='number', or skip")
    if not isinstance(pairs, bool | np.bool_):
        raise not_a("pairs", "True or False", pairs)
    if versions is not None and not pairs:
        raise InputError("versions are of pairs; give pairs=True, too")
    if clock_ghz is not None and not 0 < clock_ghz < math.inf:
        raise InputError(f"clock_ghz = {shown(clock_ghz)} is not a clock")
    frames, provenance = _references(reference)
    wanted = _wanted(metric, provenance)
    known = _joined(frames, wanted)
    given = _given(predictions, wanted)
    predicted = with_clocks(_predictions(given, known))
    rows: list[dict[str, Any]] = []
    for source, references in known.groupby("source", sort=False):
        # Columns that a source lacks are missing in all its rows, not empty.
        common = [c for c in _COMMON if c in given and references[c].notna().any()]
        if "gpu" in common and not _names_gpus(str(source), references, given):
            common = [c for c in common if c not in ("gpu", "gpu_changes")]
        texts = _texts(references)
        _check_apps(texts, common)
        made_of = provenance.get(str(source), {})
        compared = wanted
        # In the unit of the reference, unless a clock is given to convert it with.
        in_time = (
            metric is None
            and clock_ghz is None
            and str(source) not in provenance
            and has_values(references, "time_us")
            and not has_values(references, "cycles")
        )
        if metric is None and str(source) not in provenance:
            compared = ("time_us" if in_time else "cycles",)
        elif metric is None or metric == ALL:
            compared = [m for m in wanted if has_values(references, m) and has_values(predicted, m)]
        for name in compared:
            about = {"metric": name, "profiler_metric": _profiler_metric(made_of, name)}
            # Cycles have a time at the clock.
            having = (name, "cycles") if in_time else (name,)
            for settings, group in _sets(predicted, having):
                configuration = dict(zip(_CONFIGURATION, map(str, settings), strict=True))
                convert = Conversion(name, configuration, clock_ghz, group)
                for row in _compare(group, texts, common, (match, skip), convert):
                    # The name of a GPU in the reference says nothing about the predictions.
                    rows.append({"source": source, **row, **configuration, **about})
            if of_gpu := [c for c in ("gpu", "gpu_changes") if c in common]:
                rows += _of_other_gpus(texts, predicted, of_gpu, about, clock_ghz)
    if not rows:
        raise InputError(
            f"predictions and reference have no statistic in common; the predictions have "
            f"{_some_statistics(predicted)}, the reference {_some_statistics(known)}"
        )
    table = pd.DataFrame(rows)
    table["ratio"] = table["predicted"] / table["measured"].where(table["measured"] != 0)
    table["error"] = table["ratio"] - 1
    table["suite"] = _labels(table, suites, "suites", "suite")
    table["class"] = _labels(table, classes, "classes", "class")
    columns = ["source", "app", "suite", "class", "kernel", "launches", "name", *_CONFIGURATION]
    columns += ["metric", "profiler_metric", "predicted", "measured", "error", "ratio", "status"]
    columns += stacks.COMPARED
    if stacks.has_stacks(predicted) and stacks.has_stacks(known):
        columns += [name for side in stacks.CYCLES.values() for name in side]
    _report_other_launches(table)
    warn_of_other_profilers(table, predicted)
    _report_other_units(table)
    table = table.astype({"kernel": "Int64", "launches": "int64"})
    _report_unmatched(table, predicted, _texts(known))
    table = table[columns]
    return pair_errors(table, versions) if pairs else table


@checked
def validation_errors(
    table: pd.DataFrame, by: str | None = None, *, pairs: str = "kernel"
) -> pd.DataFrame:
    """Sum up what `validate` found.

    Parameters
    ----------
    table
        The result of `validate`.
    by
        ``app``, ``suite`` or ``class``: a row for each of these, in each set of predictions and
        metric; None: a row per set of predictions and metric.
    pairs
        What an error is of: a ``kernel``, or an ``app``: the sum of its matched kernels, as MDM
        reports errors (for cycles, times and counts; of several metrics others are left out).

    Returns
    -------
    DataFrame
        ``source``, ``gpu``, ``gpu_changes``, ``model``, ``metric``, ``profiler_metric``, the column
        `by`, ``pairs`` (compared),
        ``unmatched`` (kernels of either side without a counterpart), ``mae`` (in the metric's
        unit), ``mape`` (a fraction), ``max_error`` (the largest absolute error, a fraction),
        ``excluded`` (pairs without a percentage, for a reference of 0), ``gmean_ratio``,
        ``pearson`` and ``spearman``; of the pairs whose CPI stacks are known on both sides,
        ``mean_stack_distance`` and ``same_largest_stall``, the fraction that has the same largest
        component beside ``base``. The stack of an ``app`` is that of the summed cycles of its
        kernels. NaN where a measure has no value.

    Raises
    ------
    InputError
        If the table is not of `validate`, or a metric cannot be summed.
    """
    levels = ("app", "suite", "class")
    if by is not None and by not in levels:
        raise not_one_of("by", by, levels)
    if pairs not in ("kernel", "app"):
        raise not_one_of("pairs", pairs, ("kernel", "app"))
    texts: tuple[str, ...] = ("source", *_CONFIGURATION, *levels, "metric", "status")
    compared = ("predicted", "measured")
    require(table, (*texts, *compared), "the result of validate")
    of_stacks = [name for side in stacks.CYCLES.values() for name in side]
    table = checked_table(
        "table",
        table,
        perhaps=(*compared, "stack_distance", *of_stacks),
        texts=(*texts, "profiler_metric", *stacks.COMPARED[1:]),
    ).reset_index(drop=True)
    if "profiler_metric" not in table:
        table["profiler_metric"] = ""
    if pairs == "app":
        additive = table["metric"].map(is_additive)
        if not additive.any() and len(table):
            raise InputError(
                f"{table['metric'].iloc[0]} of kernels cannot be summed to that of an application; "
                "validate cycles, or give pairs='kernel'"
            )
        table = table[additive]
    keys = ["source", *_CONFIGURATION, "metric", "profiler_metric", *([by] if by else [])]
    rows = []
    for values, group in table.groupby(keys, sort=False, dropna=False):
        matched = group[group["status"] == MATCHED]
        predicted, measured = matched["predicted"], matched["measured"]
        if pairs == "app":
            sums = matched.groupby("app", sort=False)[["predicted", "measured"]].sum()
            predicted, measured = sums["predicted"], sums["measured"]
        percentage = measures.mape(predicted, measured)
        used = measured != 0
        errors = ((predicted - measured).abs()[used] / measured.abs()[used]).max()
        positive = (predicted >= 0).all() and (measured >= 0).all()
        identity: dict[str, Any] = dict(zip(keys, values, strict=True))
        rows.append(
            {
                **identity,
                "pairs": len(predicted),
                "unmatched": len(group) - len(matched),
                "mae": measures.mae(predicted, measured),
                "mape": percentage.value,
                "max_error": float(errors),
                "excluded": percentage.excluded,
                "gmean_ratio": measures.gmean_ratio(predicted, measured) if positive else math.nan,
                "pearson": measures.pearson(predicted, measured),
                "spearman": measures.spearman(predicted, measured),
                **stacks.sums_of_stacks(matched, pairs),
            }
        )
    return pd.DataFrame(rows)


# --- both sides ---------------------------------------------------------------------------------


def _wanted(
    metric: str | Sequence[str] | None, provenance: Mapping[str, Mapping[str, str]]
) -> Sequence[str]:
    """Return the metrics that may be compared."""
    if metric == ALL or (metric is None and provenance):
        return COMPARABLE
    if metric is None:
        return ("cycles",)
    names = [metric] if isinstance(metric, str) else list(dict.fromkeys(metric))
    if not names:
        raise InputError("metric has no name in it; name columns, or 'all'")
    return names


def _sets(predicted: pd.DataFrame, metrics: Sequence[str]) -> Iterable[tuple[Any, pd.DataFrame]]:
    """Yield the sets of predictions that have one of the metrics, or all where none has it."""
    sets = list(predicted.groupby(list(_CONFIGURATION), sort=False))
    found = [(key, rows) for key, rows in sets if any(has_values(rows, m) for m in metrics)]
    return found or sets


def _profiler_metric(made_of: Mapping[str, str], metric: str) -> str:
    """Return the metrics of the profiler that stand for one of ours, empty where not known."""
    if metric == "time_us":
        metric = "time_s"
    if metric == "cycles" and metric not in made_of and "time_s" in made_of:
        return f"{made_of['time_s']} x clock_ghz"
    return made_of.get(metric, "")


def _some_statistics(table: pd.DataFrame) -> str:
    return ", ".join(name for name in COMPARABLE if has_values(table, name)) or "none"


def _columns(what: str, table: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Return a table whose columns have values of their kinds, or say which row has another."""
    numbers = {"cycles", "time_s", "time_us", "launch_us", "launches", "dpki", *STACK, *metrics}
    numbers -= {"kernel"}
    table = table.copy()  # in one block for each type: columns made one by one cost a warning each
    if table.columns.is_unique:  # else the check below says which column is there twice
        named = {name: _number_texts(table[name]) for name in _TEXTS if name in table}
        table = table.assign(**named)
    table = checked_table(
        what,
        table,
        perhaps=("kernel", *sorted(numbers)),
        whole=("kernel", "launches"),
        texts=("model", "source", *_TEXTS),
    )
    stacks.check_stacks(what, table)
    return table


def _number_texts(column: pd.Series) -> pd.Series:
    """Return a column of names whose numbers have become text."""
    values = [str(v) if isinstance(v, Real) and v == v else v for v in column]  # NaN: no name
    return pd.Series(values, index=column.index, dtype=object)


def _references(
    reference: Reference | Sequence[Reference],
) -> tuple[list[pd.DataFrame], dict[str, dict[str, str]]]:
    """Return the references, and by source the profiler's metrics that its columns are made of."""
    parts = [reference] if isinstance(reference, str | os.PathLike | pd.DataFrame) else reference
    tables = []
    provenance: dict[str, dict[str, str]] = {}
    for part in parts:
        table = part if isinstance(part, pd.DataFrame) else read(part)
        made_of = table.attrs.get("metrics")
        # Where cells are empty: a file has lines.
        places = {} if isinstance(part, pd.DataFrame) else table.attrs.get("empty", {})
        table = table.reset_index(drop=True).copy()
        table.attrs.pop("empty", None)
        rows = range(len(table))
        if isinstance(part, pd.DataFrame):
            table[_PLACE] = [f"row {row + 1}" for row in rows]
        elif places:
            table[_PLACE] = [places.get(row, "") for row in rows]
        if "source" not in table:
            # The reference may be a simulation, or another model's predictions.
            table["source"] = table.get("model", "reference")
        expected = "measurements, or rows of predict or simulate"
        require(table, ["kernel"], expected, what="the reference has")
        if table.empty:
            raise InputError("the reference has no rows")
        for source in map(str, table["source"].unique()):
            if isinstance(made_of, Mapping):
                known = provenance.setdefault(source, {})
                for name, text in made_of.items():
                    texts = f"{known[name]} or {text}" if name in known else str(text)
                    known[name] = " or ".join(dict.fromkeys(texts.split(" or ")))
            elif source == "ncu":  # a part of a report whose attributes are lost
                provenance.setdefault(source, {})
        tables.append(table)
    if not tables:
        raise InputError("there is no reference")
    return tables, provenance


def _joined(tables: Sequence[pd.DataFrame], metrics: Sequence[str]) -> pd.DataFrame:
    """Return all references as one table with the columns that matching reads."""
    checked_tables = [_columns("reference", table, metrics) for table in tables]
    for table in checked_tables:
        _check_times(table)
    known = pd.concat(checked_tables, ignore_index=True)
    known["launches"] = known["launches"].fillna(1) if "launches" in known else 1
    for column in _COMMON:
        if column not in known:
            known[column] = None
    return known


def _check_times(reference: pd.DataFrame) -> None:
    """Raise `InputError` for a time that no kernel can have taken."""
    for column in ("time_s", "time_us"):
        if column in reference and (wrong := (reference[column] <= 0).to_numpy()).any():
            row = int(wrong.argmax())
            raise InputError(
                f"reference: row {row + 1}: {column} = {shown(reference[column].iloc[row])} is not a time "
                "above 0; correct it, or leave the row out"
            )


def _given(
    predictions: Predictions | Sequence[Predictions], metrics: Sequence[str]
) -> pd.DataFrame:
    """Return all predictions as one table."""
    parts: Sequence[Any] = predictions if isinstance(predictions, list | tuple) else [predictions]
    frames = []
    for part in parts:
        table = part.to_frame() if isinstance(part, MemoryProfile | SimulationResult) else part
        require(table, ["kernel"], "the rows of predict", what="the predictions have")
        table = _columns("predictions", table, metrics)
        for column in ("kernel", "launches"):
            if column in table and table[column].isna().any():
                raise InputError(f"the predictions have empty values in the column {column}")
        if "model" not in table:
            table = table.assign(model="prediction")
        if not table.empty:
            frames.append(table)
    if not frames:
        raise InputError("there are no predictions to validate")
    table = pd.concat(frames, ignore_index=True)
    if "launches" in table:
        table["launches"] = table["launches"].fillna(1)  # of a table that does not say it
    return table


def _predictions(given: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions with the columns that matching reads."""
    if "app" not in given and len(known["app"].unique()) == 1:
        given = given.assign(app=known["app"].iloc[0])
    return _texts(given)


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    """Fill in the columns of text, empty where unknown, and shorten the names of kernels."""
    table = table.copy()
    for column in _TEXTS:
        if column in table:
            values = table[column].astype(object)
            table[column] = values.where(values.notna(), "").astype(str)
        else:
            table[column] = ""
    if "dpki" in table:
        by_dpki = table["dpki"].map(lambda d: "MD" if d > MD_THRESHOLD_DPKI else "NMD")
        table["class"] = table["class"].where(table["class"] != "", by_dpki)
    table["name"] = table["name"].map(plain_name)
    return table


def _names_gpus(source: str, references: pd.DataFrame, given: pd.DataFrame) -> bool:
    """Return whether the column ``gpu`` of a source has names as predictions have them.

    Profilers call devices by names of their own, which say nothing. In other tables the author
    says which GPU a row is of.
    """
    named = set(references["gpu"].dropna()) - {""}
    if not is_profiler(source):
        return bool(named) or bool(references["gpu_changes"].notna().any())
    return bool(named & {*gpus(), *given["gpu"].dropna()})


def _check_apps(known: pd.DataFrame, common: Sequence[str]) -> None:
    """Refuse what cannot be told apart, before kernels of one app meet those of another."""
    if "app" in common:
        return
    apps = [app for app in known["app"].unique() if app]
    if len(apps) > 1:
        raise InputError(
            f"the reference has {len(apps)} applications ({', '.join(apps[:4])}, ...), the predictions "
            "do not say theirs; add a column app to them"
        )


# --- matching -----------------------------------------------------------------------------------


def _compare(
    predicted: pd.DataFrame,
    known: pd.DataFrame,
    common: Sequence[str],
    how: tuple[str, int],
    convert: Conversion,
) -> Iterable[dict[str, Any]]:
    """Yield a row for each kernel of one set of predictions and one source."""
    for column in ("gpu", "gpu_changes"):
        if column in common:  # nothing is said about other GPUs here
            known = known[known[column] == predicted[column].iloc[0]]
    keys = [c for c in common if c in ("app", "change")]
    if "change" not in keys:
        keys.append("change")  # empty in the predictions: references with a change stay alone
    parts = [
        {key: part.to_dict("records") for key, part in side.groupby(keys, sort=False)}
        for side in (predicted, known)
    ]
    for key in dict.fromkeys([*parts[0], *parts[1]]):
        mine, theirs = (part.get(key, []) for part in parts)
        yield from _match_launches(mine, theirs, how, convert)


def _of_other_gpus(
    known: pd.DataFrame,
    predicted: pd.DataFrame,
    of_gpu: Sequence[str],
    about: Mapping[str, str],
    clock_ghz: float | None,
) -> list[dict[str, Any]]:
    """Return the rows of references on GPUs that nothing is predicted for, by the columns `of_gpu`."""
    settings = set(predicted[list(of_gpu)].itertuples(index=False, name=None))
    rows = []
    for reference in known.to_dict("records"):
        of = {"gpu": str(reference["gpu"]), "gpu_changes": str(reference["gpu_changes"])}
        if tuple(of[column] for column in of_gpu) in settings:
            continue
        row = _row(None, reference, Conversion(about["metric"], of, clock_ghz))
        rows.append({"source": reference["source"], **row, **of, "model": "", **about})
    return rows


def _match_launches(
    mine: list[dict[Hashable, Any]],
    theirs: list[dict[Hashable, Any]],
    how: tuple[str, int],
    convert: Conversion,
) -> Iterable[dict[str, Any]]:
    """Yield the rows of one application; references for a whole name come after the others."""
    single = [row for row in theirs if not pd.isna(row["kernel"])]
    whole = [row for row in theirs if pd.isna(row["kernel"])]
    if single:
        sides = _sides(mine, single, *how)
        for key in dict.fromkeys([*sides[0], *sides[1]]):
            yield _row(sides[0].get(key), sides[1].get(key), convert)
        mine = []
    for reference in _of_names(whole, mine):
        launches = [row for row in mine if row["name"] == reference["name"]]
        mine = [row for row in mine if row["name"] != reference["name"]]
        if len(launches) != reference["launches"]:
            # The mean over other launches is not a reference for these.
            yield from (_row(row, None, convert) for row in launches)
            yield _row(None, reference, convert)
            continue
        values = [convert.predicted(row, reference) for row in launches]
        mean: dict[Hashable, Any] = {**launches[0], "kernel": pd.NA, "launch_us": math.nan}
        mean.update(stacks.mean_row(launches))
        mean[convert.metric] = sum(values) / len(values)
        yield _row({**mean, "launches": len(launches)}, reference, convert)
    yield from (_row(row, None, convert) for row in mine)


def _of_names(
    whole: list[dict[Hashable, Any]], mine: list[dict[Hashable, Any]]
) -> Iterable[dict[Hashable, Any]]:
    """Yield references for a whole name; instances of a template are one, as in the predictions.

    Only times and counts have a mean over instances that is one over launches, so that values which
    one of them lacks are missing in the mean.
    """
    counts = Counter(row["name"] for row in mine)
    by_name: dict[str, list[dict[Hashable, Any]]] = {}
    for row in whole:
        by_name.setdefault(row["name"], []).append(row)
    for name, rows in by_name.items():
        total = sum(row["launches"] for row in rows)
        if len(rows) == 1 or total != counts[name]:
            yield from rows
            continue
        mean: dict[Hashable, Any] = {**rows[0], "launches": total}
        for column, value in rows[0].items():
            if isinstance(value, Real) and column not in ("kernel", "launches"):
                values = [row[column] * row["launches"] for row in rows]
                mean[column] = sum(values) / total if total else math.nan
        yield mean


def _sides(
    mine: list[dict[Hashable, Any]], single: list[dict[Hashable, Any]], match: str, skip: int
) -> list[dict[Hashable, dict[Hashable, Any]]]:
    """Return predictions and references of one application by what matches them."""
    numbers = [_by_number(side) for side in (mine, single)]
    agreeing = all(
        not own["name"] or not other["name"] or own["name"] == other["name"]
        for number, own in numbers[0].items()
        if (other := numbers[1].get(number))
    )
    if match == "number" and not agreeing:
        raise InputError(
            "kernels of the same number have other names in the reference; match by order"
        )
    if match == "number" or (match == "auto" and agreeing and not skip):
        offset = _offset(mine, single, numbers) if match == "auto" else None
        return numbers if offset is None else [_after(mine, single, offset), _by_order(single)]
    if skip:
        return [_after(mine, single, skip), _by_order(single)]
    orders = [_by_order(side) for side in (mine, single)]
    offset = _offset(mine, single, orders) if match == "auto" else None
    return orders if offset is None else [_after(mine, single, offset), orders[1]]


def _measured_ones(
    mine: list[dict[Hashable, Any]], single: list[dict[Hashable, Any]]
) -> list[dict[Hashable, Any]]:
    """Return the launches in order whose kernels were measured: what the profiler counts."""
    names = {row["name"] for row in single}
    ordered = sorted(mine, key=lambda row: int(row["kernel"]))
    return [row for row in ordered if row["name"] in names]


def _after(
    mine: list[dict[Hashable, Any]], single: list[dict[Hashable, Any]], skip: int
) -> dict[Hashable, dict[Hashable, Any]]:
    """Return predictions by name and order after the skipped launches, which match nothing."""
    skipped = [row["kernel"] for row in _measured_ones(mine, single)[:skip]]
    found: dict[Hashable, dict[Hashable, Any]] = {
        ("", row["kernel"]): row for row in mine if row["kernel"] in skipped
    }
    return found | _by_order([row for row in mine if row["kernel"] not in skipped])


def _offset(
    mine: list[dict[Hashable, Any]],
    single: list[dict[Hashable, Any]],
    sides: list[dict[Hashable, dict[Hashable, Any]]],
) -> int | None:
    """Return after how many launches a profiler began that cannot have seen the first ones.

    None if the usual matching can be right, or if not just one place is possible.
    """

    def is_one(own: Mapping[Hashable, Any], other: Mapping[Hashable, Any]) -> bool:
        return bool(own["name"] == other["name"]) and not launch_text(own, other)

    pairs = [(sides[0][key], other) for key, other in sides[1].items() if key in sides[0]]
    pairs.sort(key=lambda pair: int(pair[1]["kernel"]))
    places = [int(own["kernel"]) for own, _ in pairs]
    if not all(row["name"] for row in (*mine, *single)) or (
        places == sorted(places) and not any(launch_text(*pair) for pair in pairs)
    ):
        return None
    own = _measured_ones(mine, single)
    measured = sorted(single, key=lambda row: int(row["kernel"]))
    found = [
        first
        for first in range(1, len(own) - len(measured) + 1)
        if all(map(is_one, own[first:], measured))
    ]
    return found[0] if len(found) == 1 else None


def _by_number(rows: Iterable[dict[Hashable, Any]]) -> dict[Hashable, dict[Hashable, Any]]:
    found: dict[Hashable, dict[Hashable, Any]] = {}
    for row in rows:
        number = int(row["kernel"])
        if number in found:
            raise InputError(
                f"the kernel {number} {row['name']}".rstrip()
                + " occurs twice; add a column app, change, gpu or gpu_changes that tells them apart"
            )
        found[number] = row
    return found


def _by_order(rows: Iterable[dict[Hashable, Any]]) -> dict[Hashable, dict[Hashable, Any]]:
    found: dict[Hashable, dict[Hashable, Any]] = {}
    counts: dict[str, int] = {}
    for row in sorted(_by_number(rows).values(), key=lambda row: int(row["kernel"])):
        name = row["name"]
        if not name:
            raise InputError("kernels without a name cannot be matched by order")
        counts[name] = counts.get(name, 0) + 1
        found[name, counts[name]] = row
    return found


def _row(
    mine: Mapping[Hashable, Any] | None,
    theirs: Mapping[Hashable, Any] | None,
    convert: Conversion,
) -> dict[str, Any]:
    """Return a row of the result for a prediction, a reference or both."""
    values = [
        math.nan if mine is None else convert.predicted(mine, theirs),
        math.nan if theirs is None else convert(theirs),
    ]
    row = {
        name: next((side[name] for side in (mine, theirs) if side is not None and side[name]), "")
        for name in ("app", "suite", "class", "name")
    }
    one = mine if mine is not None else theirs
    assert one is not None
    status = MATCHED
    if mine is None or math.isnan(values[0]):
        status = NO_PREDICTION
    elif theirs is None or math.isnan(values[1]):
        status = NO_REFERENCE
    return {
        **row,
        "kernel": one["kernel"],
        "launches": int(one.get("launches", 1)),
        "predicted": values[0],
        "measured": values[1],
        "status": status,
        "empty": "" if mine is None or theirs is None else _empty(theirs, values, convert.metric),
        "other_launch": "" if mine is None or theirs is None else launch_text(mine, theirs),
        **stacks.compared_stacks(mine, theirs),
    }


def _empty(theirs: Mapping[Hashable, Any], values: Sequence[float], metric: str) -> str:
    """Return which side of two rows of one kernel has no value; empty where both have one."""
    if math.isnan(values[1]):
        place = theirs.get(_PLACE)
        at = f" ({place})" if isinstance(place, str) and place else ""
        return f"the reference{at} has no {metric}"
    return f"the prediction has no {metric}" if math.isnan(values[0]) else ""


def _labels(
    table: pd.DataFrame, given: Mapping[str, str] | pd.Series | None, parameter: str, column: str
) -> pd.Series[str]:
    """Return suite or class of each row: as given, otherwise from the frames."""
    if given is None:
        # If only one side has the value, it holds for every row of the application.
        known = {a: v for a, v in zip(table["app"], table[column], strict=True) if a and v}
        missing = table[column] == ""
        return table[column].where(~missing, table["app"].map(lambda app: known.get(app, "")))
    chosen = dict(given.items())
    for app, label in chosen.items():
        if not isinstance(label, str):
            raise not_a(f"{parameter}: {shown(app)}", "text", label)
        if app not in set(table["app"]):
            raise unknown("application", app, sorted(set(table["app"])), where=parameter)
    return table["app"].map(lambda app: chosen.get(app, ""))


def _kernel_of(row: Mapping[Hashable, Any]) -> str:
    """Return application, number and name of a matched kernel, as far as it has them."""
    number = "" if pd.isna(row["kernel"]) else str(row["kernel"])
    return " ".join(part for part in (row["app"], number, row["name"]) if part)


def _report_other_launches(table: pd.DataFrame) -> None:
    """Warn of matched kernels whose launches differ: another input, or another build."""
    different = table[table["other_launch"] != ""].drop_duplicates(["app", "kernel", "name"])
    if len(different):
        texts = []
        for row in different.head(4).to_dict("records"):
            texts.append(f"{_kernel_of(row)}: {row['other_launch']}")
        more = f"; and {len(different) - 4} more" if len(different) > 4 else ""
        warn(
            "kernels are predicted for another grid or block than they were measured with: "
            f"{'; '.join(texts)}{more}",
            UnmatchedWarning,
        )


def _report_other_units(table: pd.DataFrame) -> None:
    """Warn of a source whose values differ by so much that their unit may be another."""
    matched = table[(table["status"] == MATCHED) & table["metric"].isin(TIMED)]
    for (source, metric), rows in matched.groupby(["source", "metric"], sort=False):
        ratio = float(rows["ratio"].median())
        is_other = 0 < ratio < 1 / _OTHER_UNIT or _OTHER_UNIT < ratio < math.inf
        if is_other and not is_profiler(str(source)):
            times = f"{ratio:,.0f} times" if ratio > 1 else f"1/{1 / ratio:,.0f} of"
            warn(
                f"{source}: predictions of {metric} are {times} the reference (median): the unit of the "
                "reference may be another than its column says; correct the name of the column",
                UserWarning,
            )
            return  # cycles and time are converted into each other: one of them says it


def _report_unmatched(table: pd.DataFrame, predicted: pd.DataFrame, known: pd.DataFrame) -> None:
    def some(rows: pd.DataFrame, where: Sequence[str] = ()) -> str:
        different = rows.drop_duplicates(["app", "kernel", "name", *where])
        texts = []
        groups = list(different.groupby(["app", "name", *where], sort=False))
        for _, rows_of_name in groups[:4]:
            row = rows_of_name.iloc[0].to_dict()
            text = _kernel_of(row)
            if len(rows_of_name) > 1:
                first = "" if pd.isna(row["kernel"]) else str(row["kernel"])
                number = f"{len(rows_of_name)} launches of" if row["name"] else f"from {first}"
                text = " ".join(part for part in (number, row["app"], row["name"]) if part)
            setting = " ".join(str(row[column]) for column in where if row[column])
            texts.append(f"{text} (with {setting})" if setting else text)
        more = f" and {len(groups) - 4} more names" if len(groups) > 4 else ""
        return ", ".join(texts) + more

    if not (table["status"] == MATCHED).any():
        # The note also says what keeps the same kernels apart.
        where = [
            column
            for column in ("change", "gpu", "gpu_changes")
            if column in predicted and column in known and known[column].any()
        ]
        empty = "".join(f"; {text}" for text in _empty_cells(table))
        raise InputError(
            f"no prediction has a reference: predicted are {some(predicted, where)}; the "
            f"reference has {some(known, where)}{empty}"
        )
    alone = table[table["status"] != MATCHED]
    if len(alone) and len(table["metric"].unique()) > 1:
        # A kernel that matches in one metric has a counterpart; each kernel of the others counts once.
        keys = ["source", *_CONFIGURATION, "app", "kernel", "name"]
        kernels = table[keys].astype(str).agg("\n".join, axis=1)
        found = set(kernels[table["status"] == MATCHED])
        alone = alone[~kernels[alone.index].isin(found)]
        alone = alone.loc[~kernels[alone.index].duplicated()]
    if len(alone):
        said = []
        where = ["gpu"] if len(table["gpu"].unique()) > 1 else []
        for status, rows in alone.groupby("status", sort=True):
            said.append(f"{len(rows)} rows have {status} ({some(rows, where)})")
        remedies = _remedies(table, alone[alone["empty"] == ""])
        warn("; ".join([*said, *_empty_cells(alone), *remedies]), UnmatchedWarning)


def _empty_cells(table: pd.DataFrame) -> Iterable[str]:
    """Yield which kernels match and have no value on one side, and what to do about it."""
    empty = table[table["empty"] != ""].drop_duplicates(["app", "kernel", "name", "empty"])
    if empty.empty:
        return
    texts = []
    for row in empty.head(4).to_dict("records"):
        texts.append(f"{row['empty']} of {_kernel_of(row)}")
    more = f", and {len(empty) - 4} more" if len(empty) > 4 else ""
    yield f"{', '.join(texts)}{more}: cells are empty; fill them in, or leave the rows out"


def _remedies(table: pd.DataFrame, alone: pd.DataFrame) -> Iterable[str]:
    """Yield what to do about rows without a counterpart, where their names say it."""
    matched = set(table["name"][table["status"] == MATCHED])
    sides = {status: set(rows["name"]) - {""} for status, rows in alone.groupby("status")}
    without = sides.get(NO_REFERENCE, set())
    means = alone[(alone["status"] == NO_PREDICTION) & alone["kernel"].isna()]
    if both := sorted(without & set(means["name"])):
        yield (
            f"a mean over all launches of {both[0]} is known, of another number of launches than are "
            "predicted: measure them one by one (nsys stats --report cuda_gpu_trace), or predict all"
        )
    elif without & matched:
        yield (
            "if the profiler skipped launches before the first that it measured, say how many (skip=N, "
            "--skip N); if a row of a table is the mean over launches, say how many in a column launches"
        )
    if alone["measured"].isna().all() or alone["predicted"].isna().all():
        return
    if without and (others := sides.get(NO_PREDICTION, set()) - without) and not both:
        yield (
            f"where a kernel has two names, such as {min(without)} and {min(others)}, give both sides one"
        )
