"""What-if agreement: results of model and simulator for a GPU with more of one resource.

A model can be right about the cycles for the wrong reason. If it is right about the reason, it says
which resource pays, and how much: speedups under changes test that, where CPI stacks only name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from warpstack._util.checked import checked
from warpstack._util.choices import DEFAULT_MODEL
from warpstack._util.former import former_keywords
from warpstack._util.options import Options, StageChanges, options_of
from warpstack._util.progress import progress_bar
from warpstack.errors import InputError, not_a, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.models.pipeline import Found, Pipeline, Recent
from warpstack.models.prediction import (
    cycles_on,
    model_list,
    needs_of,
    prediction_of,
    warn_of_unread,
)
from warpstack.models.reasons.gains import launches_on
from warpstack.models.reasons.pairs import MODEL, best_pair_of
from warpstack.models.reasons.resources import changed_gpus, pair_name
from warpstack.tables import checked_table, require
from warpstack.timing import simulation
from warpstack.traces.trace import App, KernelTrace, warn_of_samples

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["best_changes", "what_if", "what_if_agreement"]

#: The change of a GPU as it is.
BASELINE = "baseline"


#: Columns that `what_if_agreement` reads.
_READ = ("app", "model", "change", "speedup")


@former_keywords(app_or_kernel="app")
@checked
def what_if(
    app: App | KernelTrace,
    gpu: GpuLike,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    changes: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    simulate: bool = True,
    options: Options | None = None,
    progress: bool = False,
    **settings: Unpack[StageChanges],
) -> pd.DataFrame:
    """Return how much faster an application is with more of one resource, by models and simulator.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    models
        Names of models, or ``all``.
    changes
        New values by field of `Gpu`, by the name of the change. By default each resource of the GPU made
        better by two, as far as its range goes, with all fields that belong to it: those from which
        `warpstack.predict` takes its reasons (``docs/explanation/reasons.md``). For the models, the accesses
        then keep their order and hits, except where the change is one of the caches; what you give
        yourself is predicted as `warpstack.predict` does. Where ``closed_network`` finds that none of them
        gains anything, but two together do, that pair is a change, too.
    simulate
        Simulate the GPU with each change, too. That takes as long as `warpstack.simulate` for the
        GPU as it is and once more for each change.
    options, **settings
        How the stages work; see `warpstack.Options`: ``selection``, ``misses``, ``merge_threshold``,
        ``access_order``, ``flush_l2``, ``initial_l2``.
        The last two are for the simulations, too.
    progress
        Show a progress bar on standard error.

    Returns
    -------
    DataFrame
        One row per model, then ``simulation``, and change, first ``baseline`` (none): ``app``,
        ``gpu``, ``gpu_changes``, ``model``, ``change``, ``instructions`` (warp instructions),
        ``cycles`` (SM cycles, summed over the kernels) and ``speedup``, the cycles of the baseline
        over these; ``initial_l2``, the share of L2's lines that strangers had written. Tables of several
        applications can be put together for `what_if_agreement`.

    Raises
    ------
    InputError
        If a model, field or value does not exist, no change is given, one is called ``baseline``,
        or a thread block does not fit on an SM.

    Examples
    --------
    >>> import warpstack as ws
    >>> kernel = ws.patterns.strided(gs=32, iterations=2, blocks=28)
    >>> table = ws.validation.what_if(kernel, "pascal-mdm", ["mdm"], {"more SMs": {"num_sms": 56}})
    >>> table[["model", "change"]].to_numpy().tolist()[:2]
    [['mdm', 'baseline'], ['mdm', 'more SMs']]
    """
    wanted = model_list(models)
    start = as_gpu(gpu)
    others = changed_gpus(start) if changes is None else _changed(start, changes)
    gpus = {BASELINE: start, **others}
    how = options_of("what_if", options, settings, StageChanges)
    warn_of_unread(how, wanted, counts_write_backs=simulate)
    # Most changes leave the caches alone: results of the baseline and of the change before are kept.
    pipeline = Pipeline(app, how, memo=Recent(2))
    warn_of_samples(pipeline.kernels, "what_if")
    whole = app if isinstance(app, App) else App(pipeline.kernels)
    cycles: dict[tuple[str, str], float] = {}
    with progress_bar(progress, len(gpus), "trying changes", "change") as bar:
        needs = needs_of(wanted)

        def ask(change: str, one: Gpu, launches: Sequence[Found]) -> None:
            for model in wanted:
                said = [prediction_of(found, one, model) for found in launches]
                cycles[model, change] = sum(prediction.cycles for prediction in said)
            if simulate:
                results = simulation.simulate(
                    whole, one, flush_l2=how.flush_l2, initial_l2=how.written_share
                )
                total = float(sum(result.cycles for result in results))
                cycles[simulation.MODEL_NAME, change] = total
            bar.update(1)

        for change, one in gpus.items():
            if changes is None and change != BASELINE:
                ask(change, one, launches_on(pipeline, start, one, change, needs))
            else:
                ask(change, one, pipeline.all_found(one, needs))
        if changes is None and MODEL in wanted:
            with_each = {change: cycles[MODEL, change] for change in others}
            of_pair = best_pair_of(
                pipeline,
                start,
                others,
                with_each | {"": cycles[MODEL, BASELINE]},
                cycles_on,
            )
            if of_pair is not None:
                pair, both = of_pair
                gpus[pair_name(pair)] = both
                launches = launches_on(pipeline, start, both, pair[0], needs)
                ask(pair_name(pair), both, launches)
    name = whole.name if whole is app else pipeline.kernels[0].short_name
    rows = []
    for model in [*wanted, *([simulation.MODEL_NAME] if simulate else [])]:
        for change, one in gpus.items():
            rows.append(
                {
                    "app": name,
                    "gpu": one.name,
                    "gpu_changes": one.changes_text,
                    "model": model,
                    "change": change,
                    "instructions": sum(kernel.num_instructions for kernel in pipeline.kernels),
                    "cycles": cycles[model, change],
                    "speedup": cycles[model, BASELINE] / cycles[model, change],
                    "initial_l2": how.written_share,
                }
            )
    return pd.DataFrame(rows)


@checked
def what_if_agreement(table: pd.DataFrame, *, within: float = 3) -> pd.DataFrame:
    """Sum up how far models and simulator agree on what pays.

    Parameters
    ----------
    table
        Rows of `what_if` with simulations, of one application or several.
    within
        How far from the simulator's best, in points, the best change of a model may be.

    Returns
    -------
    DataFrame
        One row per model: ``model``; ``apps`` and ``pairs``, the applications and their changes;
        ``mean_difference``, the mean absolute difference of model and simulator over the pairs in
        points, with a speedup of 100 (baseline cycles / changed cycles - 1) points; and
        ``best_agrees``, the number of applications for which the change that the model finds best
        is, simulated, within `within` points of the best one. If a model finds several changes equally
        good, the one that the simulator finds worst counts.

    Raises
    ------
    InputError
        If the table is not of `what_if`, lacks a simulation, or has a change of an application and
        model twice.
    """
    if not 0 <= within < np.inf:
        raise InputError(f"within = {shown(within)} is not a number of points; give 0 or more")
    points = _points(table)
    best = best_changes(table)
    rows = []
    for model, group in points.groupby("model", sort=False):
        chosen = best[best["model"] == model]
        rows.append(
            {
                "model": model,
                "apps": len(chosen),
                "pairs": len(group),
                "mean_difference": float((group["points"] - group["simulated"]).abs().mean()),
                "best_agrees": int((chosen["lost"] <= within + 1e-9).sum()),
            }
        )
    return pd.DataFrame(rows)


def best_changes(table: pd.DataFrame) -> pd.DataFrame:
    """Return what models and simulator find best for each application.

    Parameters
    ----------
    table
        As for `what_if_agreement`.

    Returns
    -------
    DataFrame
        One row per application and model: ``app``, ``model``, ``best`` (change), ``points`` (its
        speedup according to the model), ``simulated_best``, ``simulated_points``, and ``lost``, the
        points by which the simulator finds the model's best change worse than its own.

    Raises
    ------
    InputError
        As for `what_if_agreement`.
    """
    rows = []
    for (app, model), group in _points(table).groupby(["app", "model"], sort=False):
        top = group[group["points"] >= group["points"].max() - 1e-9]
        mine = top.iloc[int(top["simulated"].to_numpy().argmin())]
        theirs = group.iloc[int(group["simulated"].to_numpy().argmax())]
        rows.append(
            {
                "app": app,
                "model": model,
                "best": mine["change"],
                "points": mine["points"],
                "simulated_best": theirs["change"],
                "simulated_points": theirs["simulated"],
                "lost": theirs["simulated"] - mine["simulated"],
            }
        )
    return pd.DataFrame(rows)


def _changed(gpu: Gpu, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Gpu]:
    """Return the GPU with each of the changes, by its name."""
    if not changes:
        raise InputError("changes: there are none; give fields with new values by name, or None")
    gpus = {}
    for name, values in changes.items():
        if not isinstance(name, str):
            raise not_a("changes: the name of a change", "text", name)
        if name == BASELINE:
            raise InputError(
                f"changes: {BASELINE} is the GPU without a change; give the change another name"
            )
        if not isinstance(values, Mapping) or not all(isinstance(f, str) for f in values):
            raise not_a(f"changes: {shown(name)}", "new values by field", values)
        gpus[name] = gpu.replace(**values)
    return gpus


def _points(table: pd.DataFrame) -> pd.DataFrame:
    """Return the models' rows of changes with speedups in ``points``, and ``simulated`` beside them."""
    expected = "the result of what_if"
    require(table, _READ, expected, what="the table has", rows=True)
    table = checked_table("table", table, positive=("speedup",), texts=("app", "model", "change"))
    keys = ["app", "model", "change"]
    if (twice := table.duplicated(keys)).any():
        app, model, change = table.loc[twice, keys].iloc[0]
        raise InputError(
            f"{model} has the change {shown(change)} of the application {shown(app)} twice; take one "
            "GPU at a time, and give applications names of their own"
        )
    table = table.loc[table["change"] != BASELINE, list(_READ)].reset_index(drop=True)
    table["points"] = 100 * (table["speedup"] - 1)
    of_simulation = table["model"] == simulation.MODEL_NAME
    simulated = table[of_simulation].set_index(["app", "change"])["points"]
    models = table[~of_simulation]
    if models.empty:
        raise InputError("the table has no changes with a model; make it with what_if(models=...)")
    found = models.merge(
        simulated.rename("simulated"), how="left", left_on=["app", "change"], right_index=True
    )
    if (alone := found["simulated"].isna()).any():
        row = found[alone].iloc[0]
        raise InputError(
            f"the change {shown(row['change'])} of the application {shown(row['app'])} is not "
            "simulated; make the table with what_if(simulate=True)"
        )
    return found.reset_index(drop=True)
