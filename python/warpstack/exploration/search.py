"""The best configurations of a design space under constraints."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.arguments import as_integer
from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.former import former_keywords
from warpstack._util.options import Options, TimeChanges, options_of
from warpstack.errors import InputError, UnusedOptionWarning, not_one_of
from warpstack.exploration.expressions import Expression
from warpstack.exploration.fronts import generations, on_front
from warpstack.exploration.samples import Range, axes_of_ranges
from warpstack.exploration.stage_cache import CacheLike
from warpstack.exploration.sweep import Design, Work, run_sweep
from warpstack.exploration.totals import point_totals
from warpstack.hardware.description import Gpu, GpuLike, as_gpu, is_number
from warpstack.models.prediction import model_list
from warpstack.tables import PERFORMANCE, STACK, TIME, settings_of
from warpstack.traces.trace import App, KernelTrace

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["METHODS", "Method", "search"]

#: How `search` goes through a space that is larger than its budget.
Method = Literal["auto", "optuna"]
METHODS: tuple[Method, ...] = get_args(Method)

_MOST_BUDGET = 10_000_000
#: Values of a result at a point; expressions may name these and the fields of `Gpu`.
_RESULTS = (*PERFORMANCE, *TIME, *STACK)
#: An objective above that of any allowed point.
_INFEASIBLE = 1e100
#: Points of a generation for each field that varies, within the bounds below.
_POPULATION_PER_FIELD = 8
#: Generations without a new point after which a search has settled.
_MOST_STALE = 25
#: Searches from other random points while the budget lasts.
_MOST_STARTS = 4


@former_keywords(app_or_kernel="app")
@checked
def search(
    app: App | KernelTrace,
    gpu: GpuLike,
    space: Mapping[str, Range],
    objective: str | Sequence[str] = "cycles",
    budget: int = 1000,
    *,
    constraint: str | Sequence[str] = (),
    maximise: bool | Sequence[bool] | None = None,
    model: str = DEFAULT_MODEL,
    method: Method = "auto",
    seed: int = 0,
    workers: int | None = None,
    cache: CacheLike = True,
    options: Options | None = None,
    anchor: str | None = None,
    **changes: Unpack[TimeChanges],
) -> pd.DataFrame:
    """Find the configurations that are best for an application under constraints.

    Spaces of at most `budget` configurations are searched exhaustively, larger ones by differential
    evolution (Storn and Price 1997; `scipy.optimize.differential_evolution`), and for several
    objectives by NSGA-II (Deb et al. 2002; Optuna's). Constraints over fields alone are checked
    before anything is predicted and cost no budget.

    Parameters
    ----------
    app
        An application, whose kernels are added up (`warpstack.exploration.point_totals`), or one kernel.
    gpu
        The GPU that the space changes; if it lies in the space the search starts there.
    space
        By field of `Gpu`: a list of choices, ``(low, high)``, or ``(low, high, "log")`` for equal
        ratios instead of equal differences. Fields of whole numbers take whole numbers only.
    objective
        ``cycles``, ``time_us``, ``ipc``, or an expression (`warpstack.expressions.Expression`) over
        fields of `Gpu` and ``instructions``, ``cycles``, ``time_us``, ``launch_us``, ``ipc``,
        ``cpi`` and its stack ``cpi_base`` to ``cpi_queue``: ``cycles / clock_ghz`` is the time in
        nanoseconds without the launch. Several of them: the configurations are wanted that no
        other one beats in all.
    budget
        Different configurations to predict at most.
    constraint
        Conditions, all to be met: ``"num_sms * (3 + l1_size_kib / 32) + l2_size_kib / 64 <= 400"``
        as a proxy of the area, say.
    maximise
        Whether a larger objective is better, or of each whether; by default for ``ipc`` only.
    model
        The model that predicts.
    method
        ``optuna``: a sampler of Optuna for one objective (tree-structured Parzen estimators, Bergstra
        et al. 2011), too; needs ``warpstack[optuna]``, as several objectives of a space beyond the
        budget do.
    seed
        Seed of the search; the same arguments give the same result, with any number of workers.
    workers, cache
        As for `warpstack.sweep`.
    options, **changes
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``, ``initial_l2``, ``profiler``.
    anchor
        As for `warpstack.sweep`; it is run once.

    Returns
    -------
    DataFrame
        All configurations that were predicted, the best first and those that break a constraint or
        failed last: ``point`` (in the order of evaluation), a column per field of the space,
        ``objective``, ``feasible``, the engine ``anchor`` if one was asked for, ``instructions``,
        ``cycles``, ``ipc``, ``cpi``, ``time_us``, ``launch_us``, the stack, and ``error``.
        `DataFrame.attrs` holds ``method`` (``exhaustive``, ``differential evolution`` or ``optuna``)
        and ``configurations``, the size of the space (infinite for a field without steps).
        Of several objectives ``objective_1``, ``objective_2``, ... in place of ``objective``, and
        ``front``: whether no other feasible configuration is as good in all and better in one;
        those come first.

    Raises
    ------
    InputError
        If an argument is malformed or names what does not exist, Optuna is needed and not installed,
        or no configuration that was tried meets the constraints over fields.

    Examples
    --------
    >>> import warpstack as ws
    >>> kernel = ws.patterns.gather(blocks=56)
    >>> space = {"l1_mshrs": [32, 64, 128], "dram_bandwidth_gbs": [240, 480, 960]}
    >>> best = ws.search(kernel, "pascal-mdm", space, constraint="l1_mshrs + dram_bandwidth_gbs < 600")
    >>> best[["l1_mshrs", "dram_bandwidth_gbs"]].iloc[0].tolist()
    [64, 480]
    """
    (name,) = model_list([model])
    how = options_of("search", options, changes, TimeChanges)
    budget = as_integer("budget", budget, 1, _MOST_BUDGET)
    seed = as_integer("seed", seed, 0, 2**32 - 1)
    if method not in METHODS:
        raise not_one_of("method", method, METHODS)
    texts = [constraint] if isinstance(constraint, str) else list(constraint)
    objectives = [objective] if isinstance(objective, str) else list(objective)
    if not objectives:
        raise InputError("objective: none is given")
    evaluation = _Evaluation(
        app,
        as_gpu(gpu),
        space,
        objectives,
        texts,
        _each_maximised(maximise, objectives),
        name,
        budget,
        {"workers": workers, "client": None, "cache": cache, "anchor": anchor},
        how,
    )
    if evaluation.configurations <= budget and method == "auto":
        evaluation.exhaust()
        used = "exhaustive"
    elif len(objectives) > 1 or method == "optuna":
        evaluation.sample(seed)
        used = "optuna"
    else:
        evaluation.evolve(seed)
        used = "differential evolution"
    table = evaluation.table()
    table.attrs.update(method=used, configurations=evaluation.configurations)
    return table


def _each_maximised(maximise: bool | Sequence[bool] | None, objectives: list[str]) -> list[bool]:
    """Return of each objective whether a larger one is better."""
    if maximise is None:
        return [one == "ipc" for one in objectives]
    if isinstance(maximise, bool):
        return [maximise] * len(objectives)
    given = list(maximise)
    if len(given) != len(objectives):
        raise InputError(
            f"maximise has {len(given)} values for {len(objectives)} objectives; give one for each"
        )
    return given


class _Evaluation:
    """The points that were tried, each predicted once."""

    def __init__(
        self,
        app: App | KernelTrace,
        gpu: Gpu,
        space: Mapping[str, Range],
        objectives: Sequence[str],
        constraints: Sequence[str],
        maximise: Sequence[bool],
        model: str,
        budget: int,
        running: dict[str, Any],
        options: Options,
    ) -> None:
        self._app, self._gpu, self._model, self._running = app, gpu, model, running
        self._options = options
        self._axes = axes_of_ranges(space)
        self._fields = [axis.field for axis in self._axes]
        self._budget = budget
        self.configurations = math.prod(axis.count for axis in self._axes)
        fields = [name for name, value in gpu.values().items() if not isinstance(value, tuple)]
        known = [*_RESULTS, *fields]
        self._objectives = [Expression(one, "objective") for one in objectives]
        self._signs = np.where(maximise, -1.0, 1.0)
        several = len(objectives) > 1
        self._columns = (
            [f"objective_{i + 1}" for i in range(len(objectives))] if several else ["objective"]
        )
        self._before: list[Expression] = []
        self._after: list[Expression] = []
        for text in constraints:
            condition = Expression(text, "constraint")
            condition.check_names(known)
            # Expressions that name no result have their value before the prediction.
            early = not set(condition.names) & set(_RESULTS)
            (self._before if early else self._after).append(condition)
        for one in self._objectives:
            one.check_names(known)
        self._check_kinds()
        #: The values that the search minimises, by point: each objective, at `_INFEASIBLE` or above where
        #: the point is not allowed.
        self._energies: dict[tuple[Any, ...], tuple[float, ...]] = {}
        #: Energies of the last generation, for Optuna.
        self._told: list[tuple[float, ...]] = []
        #: Why a condition has no value at a point.
        self._without_value: dict[tuple[Any, ...], str] = {}
        self._parts: list[pd.DataFrame] = []
        self._predicted = 0

    def _check_kinds(self) -> None:
        """Refuse an objective that is not a number and a constraint that is not a condition, before work."""
        # The GPU's own numbers may be those without a value.
        numbers = [name for name in self._gpu.values() if is_number(name)]
        example = {**self._gpu.values(), **dict.fromkeys([*numbers, *_RESULTS], np.nan)}
        for condition in (*self._before, *self._after):
            condition.violation(example)
        for one in self._objectives:
            one(example)

    @property
    def spent(self) -> bool:
        """Whether the budget is used up."""
        return self._predicted >= self._budget

    def exhaust(self) -> None:
        """Predict every configuration."""
        combinations = itertools.product(*(axis.every_value() for axis in self._axes))
        self.energies(dict(zip(self._fields, point, strict=True)) for point in combinations)

    def evolve(self, seed: int) -> None:
        """Predict what differential evolution asks for, and again until the budget is spent."""
        for start in range(_MOST_STARTS):
            if self.spent:
                return
            self._evolve_once(np.random.default_rng([seed, start]), first=start == 0)

    def sample(self, seed: int) -> None:
        """Predict what a sampler of Optuna asks for, until the budget is spent."""
        stale = before = 0
        start = self._start()
        for units in generations(
            len(self._axes), len(self._objectives), self._budget, seed, start, self._told
        ):
            self._told[:] = self.energies(self._points(units))
            stale = 0 if self._predicted > before else stale + 1
            before = self._predicted
            if self.spent or stale >= _MOST_STALE:
                return

    def _evolve_once(self, generator: np.random.Generator, *, first: bool) -> None:
        from scipy.optimize import differential_evolution

        dimensions = len(self._axes)
        size = int(np.clip(_POPULATION_PER_FIELD * dimensions, 16, max(self._budget // 4, 16)))
        stale = 0

        def energies(unit: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            nonlocal stale
            before = self._predicted
            found = self.energies(self._points(unit))
            stale = 0 if self._predicted > before else stale + 1
            return np.asarray(found)[:, 0]

        try:
            differential_evolution(
                energies,
                bounds=[(0.0, 1.0)] * dimensions,
                x0=self._start() if first else None,
                popsize=-(-size // dimensions),
                maxiter=10 * self._budget,
                # The spread of energies says nothing where some are those of forbidden points.
                tol=0,
                mutation=(0.4, 0.9),
                recombination=0.8,
                seed=generator,
                polish=False,
                updating="deferred",
                vectorized=True,
                callback=lambda *_, **__: self.spent or stale >= _MOST_STALE,
            )
        except RuntimeError as error:
            # SciPy takes every ValueError of the function for a map that returned a wrong shape.
            if isinstance(error.__cause__, InputError):
                raise error.__cause__ from None
            raise

    def _points(self, unit: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
        """Return the points at places of the unit cube: a row per field, a column per point."""
        columns = [axis.values(unit[i]) for i, axis in enumerate(self._axes)]
        return [dict(zip(self._fields, p, strict=True)) for p in zip(*columns, strict=True)]

    def _start(self) -> npt.NDArray[np.float64] | None:
        """Return where the GPU itself lies in the space; None outside."""
        places = [axis.unit_of(getattr(self._gpu, axis.field)) for axis in self._axes]
        inside = [place for place in places if place is not None]
        return np.array(inside) if len(inside) == len(places) else None

    def energies(self, points: Iterable[Mapping[str, Any]]) -> list[tuple[float, ...]]:
        """Return what is to be minimised at each point, per objective; predict those that are new."""
        keys = [tuple(point[field] for field in self._fields) for point in points]
        new = [key for key in dict.fromkeys(keys) if key not in self._energies]
        allowed = self._allowed(new)
        room = self._budget - self._predicted
        if allowed[:room]:
            self._predict(allowed[:room])
        # Points that the budget left out are worse than any other.
        return [self._energies.get(key, self._all(1e3 * _INFEASIBLE)) for key in keys]

    def _all(self, energy: float) -> tuple[float, ...]:
        return (energy,) * len(self._objectives)

    def _allowed(self, keys: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the points that meet the constraints over fields; note how far others are off."""
        if not self._before or not keys:
            return keys
        gpus = [self._changed(key) for key in keys]
        allowed = []
        rows = [gpu.values() if gpu else None for gpu in gpus]
        possible = [row for row in rows if row is not None]
        columns = {name: [row[name] for row in possible] for name in self._gpu.values()}
        total = np.zeros(len(possible))
        errors = [""] * len(possible)
        for condition in self._before if possible else ():
            off, wrong = _each(condition.violation, columns, len(possible))
            total += off
            errors = [first or then for first, then in zip(errors, wrong, strict=True)]
        found = iter(zip(total, errors, strict=True))
        for key, row in zip(keys, rows, strict=True):
            # A GPU that is not possible, or for which a condition has no value, is predicted as a point of
            # its own: its row names the error.
            distance, error = next(found) if row is not None else (0.0, "")
            if error:
                self._without_value[key] = error
            if distance > 0:
                self._energies[key] = self._all(_INFEASIBLE * (1 + distance))
            else:
                allowed.append(key)
        return allowed

    def _changed(self, key: tuple[Any, ...]) -> Gpu | None:
        try:
            return self._gpu.replace(**dict(zip(self._fields, key, strict=True)))
        except InputError:
            return None

    def _predict(self, keys: list[tuple[Any, ...]]) -> None:
        points = [dict(zip(self._fields, key, strict=True)) for key in keys]
        with warnings.catch_warnings():
            # Said once, not at every generation.
            if self._parts:
                warnings.simplefilter("ignore", UnusedOptionWarning)
            profiler = self._options.profiler
            design = Design.of(self._app, self._gpu, points, [self._model], profiler)
            work = Work(design, self._options, **self._running)
            rows = run_sweep(work)
        # What was found at the base serves the next generation.
        self._running["anchor"] = work.anchor
        table = pd.DataFrame(points, columns=self._fields)
        failed = rows[rows["error"] != ""].drop_duplicates("point").set_index("point")["error"]
        table["error"] = failed.reindex(table.index).fillna("")
        good = table.index[table["error"] == ""]
        totals = (
            point_totals(rows).set_index("point")[list(_RESULTS)]
            if len(good)
            else pd.DataFrame(columns=_RESULTS, dtype=np.float64)
        )
        table = table.join(totals)
        values = pd.DataFrame(np.nan, index=table.index, columns=self._columns)
        off = pd.Series(0.0, index=table.index)
        if len(good):
            columns: dict[str, Any] = {n: totals.loc[good, n].to_numpy() for n in _RESULTS}
            gpus = [self._gpu.replace(**points[i]).values() for i in good]
            columns.update({name: [gpu[name] for gpu in gpus] for name in self._gpu.values()})
            errors = pd.Series([self._without_value.get(keys[i], "") for i in good], index=good)
            for name, one in zip(self._columns, self._objectives, strict=True):
                found, wrong = _each(one, columns, len(good))
                values.loc[good, name] = found
                errors = errors.where(errors != "", pd.Series(wrong, index=good))
            for condition in self._after:
                beyond, wrong = _each(condition.violation, columns, len(good))
                off[good] += beyond
                errors = errors.where(errors != "", pd.Series(wrong, index=good))
            huge = (values.loc[good].abs() >= _INFEASIBLE).any(axis=1)
            errors[huge & (errors == "")] = "objective: is too large to compare"
            values.loc[errors.index[errors != ""]] = np.nan
            table.loc[good, "error"] = errors
        feasible = (off == 0) & (table["error"] == "")
        table = table.join(values).assign(feasible=feasible)
        off[table["error"] != ""] = 100.0
        energies = np.where(
            feasible.to_numpy(bool)[:, np.newaxis],
            values.to_numpy(dtype=float) * self._signs,
            _INFEASIBLE * (1 + off.to_numpy()[:, np.newaxis]),
        )
        self._energies.update(zip(keys, map(tuple, energies.tolist()), strict=True))
        table.insert(0, "point", np.arange(self._predicted, self._predicted + len(table)))
        self._predicted += len(table)
        self._parts.append(table)

    def table(self) -> pd.DataFrame:
        """Return all points, the best first."""
        if not self._parts:
            raise InputError(
                "constraint: none of the configurations tried meets "
                + " and ".join(condition.text for condition in self._before)
            )
        table = pd.concat(self._parts, ignore_index=True)
        anchor = self._running["anchor"]
        settings = settings_of(self._options)
        table = table.assign(**settings)
        results = [*_RESULTS, *settings]
        if anchor is not None:
            table["anchor"] = anchor.name
            results.insert(0, "anchor")
        columns = ["point", *self._fields, *self._columns, "feasible", *results, "error"]
        best = self._signs * table[self._columns].to_numpy(dtype=float)
        feasible = table["feasible"].to_numpy(bool)
        front = feasible.copy()
        if len(self._objectives) > 1:
            front[feasible] = on_front(best[feasible])
            table["front"] = front
            columns.insert(columns.index("feasible") + 1, "front")
        order = np.lexsort((table["point"], best[:, 0], ~front, ~feasible))
        return table[columns].iloc[order].reset_index(drop=True)


def _each(
    function: Callable[[Mapping[str, Any]], Any], columns: Mapping[str, Any], count: int
) -> tuple[npt.NDArray[np.float64], list[str]]:
    """Return what an expression says of each point; NaN, and why, where it has no value."""
    try:
        values = np.broadcast_to(np.asarray(function(columns), dtype=float), count)
        return values, [""] * count
    except InputError:  # of one point at least
        pass
    values = np.full(count, np.nan)
    errors = [""] * count
    for i in range(count):
        try:
            one = function({name: column[i : i + 1] for name, column in columns.items()})
            values[i] = np.ravel(one)[0]
        except InputError as error:
            errors[i] = str(error)
    return values, errors
