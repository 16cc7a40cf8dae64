"""The model stage: what MDM, GPUMech and their variants predict from an interval profile.

Interval simulation reads the trace instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from warpstack import _core
from warpstack._util import notebook
from warpstack._util.checked import checked, checked_fields, strictly_checked
from warpstack._util.choices import DEFAULT_MODEL, Profiler
from warpstack._util.former import former_keywords
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import OptionChanges, Options, changed_options, options_of
from warpstack._util.progress import progress_bar, say_which
from warpstack.errors import InputError, UnusedOptionWarning, not_a, shown, unknown, warn
from warpstack.hardware.description import Gpu, GpuLike, as_gpu, check_value_fields
from warpstack.hardware.doubt import (
    RANGE,
    beside_time,
    card_doubt,
    range_of_sum,
    time_doubt,
    widened_by_sample,
    with_range,
)
from warpstack.hardware.profiler import profiled, times
from warpstack.hardware.stages import Stage, fields_of
from warpstack.interval.profile import INTERVAL_FIELDS, IntervalProfile, Wave
from warpstack.memory.caches import CACHE_FIELDS
from warpstack.models import interval_simulation
from warpstack.models.block_sampling import block_sampled
from warpstack.models.concurrent import (
    MODEL,
    check_whole,
    played,
    refuse_concurrent,
    with_one_split,
)
from warpstack.models.launch_rows import Models, bars_of_totals, launch_rows, tolerance_of
from warpstack.models.limits import (
    UNIT_FIELDS,
    unit_cycles,
    unit_cycles_on,
    with_block_starts,
    with_block_starts_on,
)
from warpstack.models.pipeline import Found, Needs, Pipeline, Recent
from warpstack.models.reasons.gains import NO_BEST, Best, Evaluators, Seeker
from warpstack.models.sampled import Sampling, sampled_predictions
from warpstack.tables import (
    SETTINGS,
    STACK,
    STACK_COMPONENTS,
    TIME,
    add_up,
    checked_table,
    require,
    result_table,
    row,
    settings_of,
)
from warpstack.timing.concurrent import places_of
from warpstack.traces.awaited import warn_of_waits
from warpstack.traces.trace import App, KernelTrace

if TYPE_CHECKING:
    import distributed
    from typing_extensions import Unpack

__all__ = [
    "STACK_COMPONENTS",
    "Prediction",
    "application_totals",
    "evaluate",
    "fields_used",
    "names",
    "predict",
    "register",
    "unregister",
]


@dataclass(frozen=True)
class Prediction:
    """The prediction of a model for a kernel.

    Attributes
    ----------
    model, kernel, name
        The model, and the kernel's launch number and readable name.
    instructions
        Warp instructions of the kernel.
    cycles
        SM cycles from the start of its first thread block to its last instruction.
    ipc
        Warp instructions per cycle of the whole GPU: ``instructions / cycles`` (MDM, Eq. 1).
    cpi
        Cycles per warp instruction of one SM, the fullest: where all SMs do the same, active SMs /
        `ipc`.
    cpi_stack
        `cpi` by cause, summing to it: ``base`` (issue), ``dep`` (arithmetic dependences), ``l1``,
        ``l2``, ``dram`` (memory latency that multithreading does not hide), ``mshr`` (waiting for
        MSHRs), ``noc`` and ``queue`` (waiting for NoC and DRAM bandwidth).
    cpi_details
        `cpi_stack` one level below (`warpstack.models.STACK_DETAILS`), summing to it; empty of models
        other than ``closed_network``, which tell only the components apart.
    card_doubt
        Half the width of the range of `cycles`, as a logarithm, that guessed values of the GPU make; 0
        where nobody asked for it.
    """

    model: str
    kernel: int
    name: str
    instructions: float
    cycles: float
    ipc: float
    cpi: float
    cpi_stack: dict[str, float]
    cpi_details: dict[str, float] = field(default_factory=dict, repr=False)
    card_doubt: float = field(default=0.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        checked_fields(self)

    @classmethod
    def _computed(cls, **values: Any) -> Prediction:
        """Return one without the checks, which take longer than a model."""
        made = object.__new__(cls)
        vars(made).update({"cpi_details": {}, **values})
        return made

    def _repr_html_(self) -> str:
        names = ("kernel", "name", "model", "instructions", "cycles", "ipc", "cpi")
        return notebook.cell(
            f"{self.model} of {self.name}",
            notebook.table({name: [getattr(self, name)] for name in names}),
            notebook.bars(self.cpi_stack, "cycles per instruction"),
        )


@dataclass(frozen=True)
class _Registered:
    """A model in Python: cycles of a wave by component, and the fields of `Gpu` that it reads."""

    cycles: Callable[[pd.DataFrame, Wave, Gpu], Mapping[str, float]]
    fields: frozenset[str]


_registered: dict[str, _Registered] = {}

#: A number of one GPU, or those of several.
_Numbers = TypeVar("_Numbers", float, npt.NDArray[np.float64])

#: Former names of models, which still answer to them; their rows have the name that was asked for.
_FORMER = {"warpstack": "closed_network"}


@cache
def _core_names() -> tuple[str, ...]:
    return tuple(_core.model_names())


def names() -> list[str]:
    """Return the names of the models, simplest first; then those that were registered."""
    return [*_core_names(), interval_simulation.NAME, *_registered]


def needs_of(models: Iterable[str]) -> Needs:
    """Return what these models read of a launch."""
    simulates = [model == interval_simulation.NAME for model in models]
    return Needs(profiles=not all(simulates), simulation=any(simulates))


@strictly_checked
def register(
    name: str,
    cycles: Callable[[pd.DataFrame, Wave, Gpu], Mapping[str, float]],
    *,
    fields: Iterable[str] | None = None,
) -> None:
    """Add a model, which `predict`, `evaluate`, sweeps and searches of this process then know.

    Parameters
    ----------
    name
        Its name, not one of `names`.
    cycles
        Function of the intervals (the table of `IntervalProfile.intervals`), a wave (``warps`` per
        SM W, ``active_sms`` S) and the `Gpu`, which returns the cycles that the fullest SM takes for
        the wave, by component of `STACK_COMPONENTS`; those it leaves out are 0. Waves are put
        together as for the other models (``docs/explanation/models.md``): cycles add up, and the IPC is the
        kernel's rate.
    fields
        The fields of `Gpu` that the function reads, beyond those of the caches and the intervals.
        By default all, so that none is reported as having no effect.

    Raises
    ------
    InputError
        If the name is taken or is not one word, or a field does not exist.
    """
    if not name.isidentifier() or name == "all":
        raise InputError(f"register: name = {shown(name)} is not a name for a model; give one word")
    if name in names() or name in _FORMER:
        raise InputError(
            f"register: there is a model {name} already; unregister it or rename yours"
        )
    used = Gpu.fields() if fields is None else list(fields)
    check_value_fields(used, f"register: fields of {name}")
    _registered[name] = _Registered(cycles, frozenset(used))


@checked
def unregister(name: str) -> None:
    """Remove a model that `register` added.

    Raises
    ------
    InputError
        If it did not add one of this name.
    """
    if name not in _registered:
        raise InputError(f"unregister: no model {shown(name)} was registered")
    del _registered[name]


def _evaluate_registered(model: str, profile: IntervalProfile, gpu: Gpu) -> dict[str, Any]:
    """Return what the core returns for a model of its own."""
    intervals = profile.intervals.copy()
    issued = float(intervals["instructions"].sum())
    waves = profile.waves(gpu)
    if not issued > 0 or not waves:
        raise InputError("the interval profile has no instructions; nothing to predict")
    total = dict.fromkeys(STACK_COMPONENTS, 0.0)
    for wave in waves:
        try:
            parts = _registered[model].cycles(intervals, wave, gpu).items()
        except Exception as error:
            raise InputError(f"model {model}: {type(error).__name__}: {error}") from error
        for part, cycles in parts:
            if part not in total:
                raise InputError(
                    f"model {model}: {shown(part)} is not a component of a CPI stack; those are "
                    f"{', '.join(STACK_COMPONENTS)}"
                )
            if not (math.isfinite(cycles) and cycles >= 0):
                raise InputError(
                    f"model {model}: {part} = {cycles} cycles of kernel {profile.name}; expected a "
                    "finite number that is not negative"
                )
            total[part] += wave.count * float(cycles)
    cycles = sum(total.values())
    if not cycles > 0:
        raise InputError(f"model {model}: kernel {profile.name} takes no cycles")
    of_fullest_sm = sum(wave.count * wave.warps for wave in waves) * issued
    return {
        "cycles": cycles,
        "warp_instructions": sum(wave.count * wave.total_warps for wave in waves) * issued,
        "cpi": cycles / of_fullest_sm,
        "cpi_stack": {part: value / of_fullest_sm for part, value in total.items()},
    }


@checked
def evaluate(profile: IntervalProfile, gpu: GpuLike, model: str = DEFAULT_MODEL) -> Prediction:
    """Evaluate one model.

    Parameters
    ----------
    profile
        Intervals of the representative warp, with the launch they stand for.
    gpu
        SMs, issue width, scheduler, MSHRs, latencies and bandwidths. The stall cycles are those of
        the profile: for other latencies or caches, build it again.
    model
        One of `names` that reads intervals: any but ``interval_simulation``.
        ``docs/explanation/models.md`` gives the equations.

    Returns
    -------
    Prediction

    Raises
    ------
    InputError
        If the model is unknown (the message lists the names), or reads traces.
    """
    _check_reads_profiles(present_name(model))
    return _evaluated(profile, as_gpu(gpu), model)


def _evaluated(profile: IntervalProfile, gpu: Gpu, model: str) -> Prediction:
    """Return `evaluate` of a model that is known to read profiles."""
    own = present_name(model)
    if own not in _registered and own not in _core_names():
        raise unknown("model", model, names())
    if own in _registered:
        result = _evaluate_registered(own, profile, gpu)
    else:
        result = _core.evaluate(own, profile._core_kernel(gpu, own), gpu._core)
    # The waves are made of warps like the representative one; the kernel's own warps may be longer
    # or shorter. The model predicts a rate (MDM, Eq. 1), which all instructions share.
    ipc = result["warp_instructions"] / result["cycles"]
    instructions = (
        result["warp_instructions"]
        if profile.num_instructions is None
        else profile.num_instructions
    )
    cycles = instructions / ipc
    busy = max(cycles, unit_cycles_on(profile, gpu))
    ended = with_block_starts_on(busy, profile, gpu)
    cpi_stack: dict[str, float] = result["cpi_stack"]
    cpi, dep = result["cpi"], cpi_stack["dep"]
    waits, slower = _limits(cpi, cycles, busy, ended)
    stack = {part: value * slower for part, value in cpi_stack.items()}
    stack["dep"] = (dep + waits) * slower
    details = {name: value * slower for name, value in result.get("cpi_details", {}).items()}
    if details:
        details["units"] += waits * slower
    cycles = busy * slower
    return Prediction._computed(
        model=model,
        kernel=profile.kernel,
        name=profile.name,
        instructions=instructions,
        cycles=cycles,
        ipc=instructions / cycles,
        cpi=(cpi + waits) * slower,
        cpi_stack=stack,
        cpi_details=details,
    )


def _check_reads_profiles(model: str) -> None:
    if model == interval_simulation.NAME:
        raise InputError(
            f"model {model}: reads the trace, of which an interval profile has one warp; call "
            "predict, which has the trace"
        )


def predictions_of(found: Found, gpu: Gpu, models: Sequence[str]) -> list[Prediction]:
    """Return what models say of a launch, given what the stages found for them (`needs_of`)."""
    return [prediction_of(found, gpu, model) for model in models]


def prediction_of(found: Found, gpu: Gpu, model: str) -> Prediction:
    """Return what one model says of a launch, given what the stages found for it."""
    if model != interval_simulation.NAME:
        assert found.profile is not None
        return _evaluated(found.profile, gpu, model)
    assert found.simulated is not None
    return Prediction._computed(
        model=model,
        kernel=found.kernel.launch_id,
        name=found.kernel.short_name,
        **found.simulated.attributes(found.kernel),
    )


def doubted_prediction(found: Found, gpu: Gpu, model: str) -> Prediction:
    """Return what one model says of a launch, with what guessed values of the GPU make of it."""
    one, profile = prediction_of(found, gpu, model), found.profile
    cycles_on = None
    if model != interval_simulation.NAME and profile is not None:
        cycles_on = lambda other: _evaluated(profile, other, model).cycles  # noqa: E731
    how = (one.cycles, one.cpi, one.cpi_stack)
    vars(one)["card_doubt"] = card_doubt(gpu, *how, cycles_on, model_reads(model))
    return one


def _limits(
    cpi: _Numbers, cycles: _Numbers, busy: _Numbers, ended: _Numbers
) -> tuple[_Numbers, _Numbers]:
    """Return what the limits of all models add to the CPI of one, and by what they stretch it.

    Waiting for a unit is a dependence, as in the simulation. Slots that are lost
    where blocks start late are no warp's: the stack keeps its proportions.

    Parameters
    ----------
    cpi, cycles
        What the model says.
    busy, ended
        Cycles until the units are done, and with the starts of blocks.
    """
    return cpi * (busy / cycles - 1), ended / busy


def _limited(
    columns: dict[str, npt.NDArray[np.float64]],
    profiles: Sequence[IntervalProfile],
    gpus: Sequence[Gpu],
) -> dict[str, npt.NDArray[np.float64]]:
    """Return what a model says of kernels on several GPUs, within the limits of all models."""
    busy = np.maximum(columns["cycles"], unit_cycles(profiles, gpus))
    ended = with_block_starts(busy, profiles, gpus)
    waits, slower = _limits(columns["cpi"], columns["cycles"], busy, ended)
    found = {name: column * slower for name, column in columns.items()}
    found["cycles"] = busy * slower
    for name in ("cpi", "cpi_dep"):
        found[name] = (columns[name] + waits) * slower
    return found


def values_of_row(prediction: Prediction, gpu: Gpu, profiler: Profiler) -> dict[str, Any]:
    """Return the columns of a row that say what a model predicts: performance, time and stack."""
    values = {
        "instructions": int(prediction.instructions),
        "cycles": prediction.cycles,
        **times(prediction.cycles, gpu, profiler),
        "ipc": prediction.ipc,
        "cpi": prediction.cpi,
        **{f"cpi_{part}": prediction.cpi_stack[part] for part in STACK_COMPONENTS},
    }
    doubt = time_doubt(values, gpu, profiler, prediction.card_doubt)
    return with_range(values, present_name(prediction.model), doubt)


def evaluate_all(
    profiles: Sequence[IntervalProfile], gpus: Sequence[Gpu], model: str, *, num_threads: int = 1
) -> dict[str, npt.NDArray[np.float64]]:
    """Evaluate one model for several kernels on GPUs that differ only in what the models read.

    Parameters
    ----------
    profiles
        The kernels' intervals; made for one of the GPUs, they are the same for all.
    gpus
        The GPUs.
    model
        One of `names`.
    num_threads
        How many threads to use at most; 0: as many as the machine runs at once. The result does not
        depend on it.

    Returns
    -------
    dict
        Arrays of shape (GPUs, kernels), equal to what `evaluate` gives one by one: ``cycles``,
        ``ipc``, ``cpi`` and the stack, ``cpi_base`` to ``cpi_queue``.

    Raises
    ------
    InputError
        As for `evaluate`.
    """
    model = present_name(model)
    _check_reads_profiles(model)
    if model in _registered:
        return _evaluate_all_registered(profiles, gpus, model)
    core = _core.evaluate_all(
        model,
        [profile._core_kernel(gpus[0], model) for profile in profiles],
        [gpu._core for gpu in gpus],
        num_threads,
    )
    shape = (len(gpus), len(profiles))
    results = {name: values.reshape(shape) for name, values in core.items()}
    instructions = results.pop("warp_instructions")
    ipc = instructions / results["cycles"]
    for k, profile in enumerate(profiles):
        if profile.num_instructions is not None:
            instructions[:, k] = profile.num_instructions
    results["cycles"] = instructions / ipc
    results = _limited(results, profiles, gpus)
    return {**results, "ipc": instructions / results["cycles"]}


def _evaluate_all_registered(
    profiles: Sequence[IntervalProfile], gpus: Sequence[Gpu], model: str
) -> dict[str, npt.NDArray[np.float64]]:
    names = ["cycles", "ipc", "cpi", *STACK]
    results = {name: np.empty((len(gpus), len(profiles))) for name in names}
    for g, gpu in enumerate(gpus):
        for k, profile in enumerate(profiles):
            prediction = evaluate(profile, gpu, model)
            stack = [prediction.cpi_stack[part] for part in STACK_COMPONENTS]
            values = [prediction.cycles, prediction.ipc, prediction.cpi, *stack]
            for name, value in zip(names, values, strict=True):
                results[name][g, k] = value
    return results


def present_name(model: str) -> str:
    """Return the name that a model has now; a former name gives one warning."""
    if model not in _FORMER or model in _registered:
        return model
    _say_former(model)
    return _FORMER[model]


@cache
def _say_former(model: str) -> None:
    warn(f"the model {model} is called {_FORMER[model]} now; use that name", FutureWarning)


def model_list(models: str | Iterable[str]) -> list[str]:
    """Return the models that a caller named; ``all`` stands for every one.

    Raises
    ------
    InputError
        If a name is unknown or given twice, or no name is given.
    """
    wanted = [models] if isinstance(models, str) else list(models)
    if wanted == ["all"]:
        return names()
    if not wanted:
        raise InputError("models: no model given")
    for model in wanted:
        if present_name(model) not in names():
            raise unknown("model", model, [*names(), "all"])
    for model in wanted:
        if wanted.count(model) > 1:
            raise InputError(f"models: {model} is given twice")
    return wanted


@former_keywords(app_or_kernel="app", sampling="sample_sms")
@checked
def predict(
    app: App | KernelTrace,
    gpu: GpuLike,
    models: str | Iterable[str] = (DEFAULT_MODEL,),
    *,
    options: Options | None = None,
    client: distributed.Client | None = None,
    progress: bool = False,
    concurrent: bool = False,
    **changes: Unpack[OptionChanges],
) -> pd.DataFrame:
    """Predict the performance of kernels.

    Parameters
    ----------
    app
        An application, whose kernels share an L2 in order, or one kernel.
    gpu
        The GPU: a description, its name, or the path of one.
    models
        Names of models, or ``all``.
    options, **changes
        How the stages work, and whose time is predicted; see `warpstack.Options`, all of which count
        here: ``predict(app, gpu, flush_l2=True)``.
    client
        A Dask cluster to run on (needs ``warpstack[dask]``). Launches that share an L2 cannot run
        apart: give ``flush_l2``, too.
    progress
        Show a progress bar on standard error.
    concurrent
        Run all launches at the same time, those of one stream one after the other, as
        `warpstack.simulate` does (``docs/explanation/concurrent-kernels.md``). Only ``closed_network``
        has this; not with `client` or samples.

    Returns
    -------
    DataFrame
        One row per kernel and model: ``kernel``, ``name``, ``gpu`` and ``gpu_changes`` (what
        `Gpu.replace` changed), ``model``, ``instructions``, ``cycles`` (without the launch),
        ``time_us`` (as the profiler reports it, launch included), ``time_us_low`` and ``time_us_high``
        (nine of ten measured times of kernels of this kind lie between them), ``launch_us`` (of these),
        ``ipc``, ``cpi``, the stack ``cpi_base`` to ``cpi_queue`` (see `Prediction`), ``reason`` (the
        change of the GPU that would gain most, in words) and ``gain`` (its speed-up; NaN where none was
        tried: for samples of launches and blocks, with a `client`, and by ``interval_simulation``),
        ``initial_l2`` (the share of L2's lines that strangers had written before the first launch),
        ``profiler``, and the provenance
        ``trace_digest``, ``gpu_digest``, ``version``. `warpstack.models.application_totals` adds
        kernels up. Unless ``sample_sms`` is 1, ``ipc_low`` and ``ipc_high`` (the ends of an interval of
        95 % confidence) and ``sampled_sms`` (how many were simulated; 0: all) come after ``ipc``.
        From a sample of the launches there are ``ipc_low`` and ``ipc_high``, between which the IPC
        of a launch that was not predicted lies with a confidence of 95 %, ``launch_group`` (its
        number) and ``launch_sampled`` (whether the launch itself was predicted). From a sample of the
        thread blocks there are ``ipc_low``, ``ipc_high`` and ``sampled_blocks`` (how many were
        evaluated; 0: all).

        With `concurrent` a row has, between these, ``stream``, ``start`` and ``end`` (SM cycles since the
        first launch), ``cycles`` between them, ``cycles_alone``, ``instructions`` and ``ipc``.

    Raises
    ------
    InputError
        If a name is unknown, a thread block does not fit on an SM, launches that share an L2 are to
        run on a cluster, or SMs and launches are to be sampled at once.

    Warns
    -----
    UnusedOptionWarning
        If no model reads an option that is set.
    TraceWarning
        If warps of a kernel only watch a clock: its time does not have that wait, that of a
        `warpstack.timeline` does.
    """
    how = options_of("predict", options, changes, OptionChanges)
    if not isinstance(concurrent, bool):
        raise not_a("concurrent", "True or False", concurrent)
    if concurrent:
        refuse_concurrent(how, model_list(models), client)
        warn_of_waits([app] if isinstance(app, KernelTrace) else app.kernels, as_gpu(gpu))
        return result_table(_concurrent_rows(app, gpu, how, progress=progress))
    warn_of_unread(how, model_list(models))
    warn_of_waits([app] if isinstance(app, KernelTrace) else app.kernels, as_gpu(gpu))
    rows = predicted_rows(app, gpu, models, how, client=client, progress=progress, reasons=True)
    return result_table(rows)


def _concurrent_rows(
    app: App | KernelTrace, gpu: GpuLike, options: Options, *, progress: bool
) -> list[dict[str, Any]]:
    """Return a row per launch of those that run at the same time."""
    gpu = profiled(as_gpu(gpu), options.profiler)
    pipeline = Pipeline(app, options)
    check_whole(pipeline.kernels)
    total = sum(kernel.num_instructions for kernel in pipeline.kernels)
    profiles = []
    with progress_bar(progress, total, "predicting", "instruction") as bar:
        for found in pipeline.found(gpu, needs_of([MODEL])):
            assert found.profile is not None
            profiles.append(found.profile)
            bar.update(found.kernel.num_instructions)
    alone = [evaluate(profile, gpu, MODEL).cycles for profile in profiles]
    places = places_of(app, gpu.hardware_queues)
    shared, differs = with_one_split(pipeline.kernels, gpu)
    cycles = alone
    if differs:
        profiles = list(Pipeline(app, options).profiles(shared))
        cycles = [evaluate(profile, shared, MODEL).cycles for profile in profiles]
    times = played(pipeline.kernels, profiles, cycles, shared, places)
    rows = []
    for place, (kernel, (start, end)) in enumerate(zip(pipeline.kernels, times, strict=True)):
        count = kernel.num_instructions
        values = {
            "stream": places.streams[place],
            "start": start,
            "end": end,
            "cycles": end - start,
            "cycles_alone": alone[place],
            "instructions": count,
            "ipc": count / (end - start) if end > start else 0.0,
        }
        rows.append(row(kernel, gpu, MODEL, values, settings_of(options)))
    return rows


def _evaluate_each(gpu: Gpu, models: tuple[str, ...], found: Found) -> list[Prediction]:
    return [doubted_prediction(found, gpu, model) for model in models]


@checked
def predicted_rows(
    app: App | KernelTrace,
    gpu: GpuLike,
    models: str | Iterable[str],
    options: Options,
    *,
    client: distributed.Client | None = None,
    progress: bool = False,
    memo: Recent | None = None,
    reasons: bool = False,
    details: list[dict[str, float]] | None = None,
    seen: Callable[[Found], None] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of `predict`, for which pandas need not be loaded.

    With `reasons` they have ``reason`` and ``gain``, which say nothing for samples of launches and blocks and
    with a `client`.
    `details` takes the `Prediction.cpi_details` of each row; it stays empty for samples and with a `client`.
    `seen` is given each launch as the stages found it; not of samples, nor with a `client`.
    `memo` keeps the representative warps and what the caches did where all SMs were simulated, for whoever
    asks why.
    """
    wanted = model_list(models)

    def untried(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        return [_with_reason(values, NO_BEST) if reasons else values for values in rows]

    share, profiler = options.sample_sms, options.profiler
    gpu = profiled(as_gpu(gpu), profiler)
    pipeline = Pipeline(app, options, memo=memo)
    of_blocks = options.sample_blocks != 1 or any(one.is_sampled for one in pipeline.kernels)
    if of_blocks:
        _check_no_other_sample(options, client)
        return untried(_block_sampled_rows(pipeline, gpu, wanted, options, progress))
    if options.sample_launches is not False or client is not None:
        if share != 1:
            raise InputError(
                f"sample_sms = {shown(share)}: with sample_launches or client the caches of all SMs are "
                "simulated; leave it out"
            )
        models_of_rows = Models(
            tuple(wanted),
            needs_of(wanted),
            partial(_evaluate_each, gpu, tuple(wanted)),
            lambda prediction: values_of_row(prediction, gpu, profiler),
            Prediction._computed,
        )
        rows = launch_rows(
            pipeline.kernels,
            gpu,
            models_of_rows,
            options,
            tolerance=tolerance_of(options.sample_launches),
            client=client,
            progress=progress,
        )
        return untried(rows)
    if share != 1:
        evaluators = Evaluators(prediction_of, cycles_on)
        of_sample = Seeker(pipeline, gpu, wanted, evaluators, with_caches=False)
        sampled = _sampled_rows(
            pipeline, gpu, wanted, share, options, progress, of_sample if reasons else None
        )
        return _with_reasons(sampled, wanted, of_sample) if reasons else sampled
    settings = settings_of(options)
    rows = []
    evaluators = Evaluators(prediction_of, cycles_on)
    seeker = Seeker(pipeline, gpu, wanted, evaluators) if reasons else None
    # Launches differ in length: the time left is about right if it is counted in instructions.
    total = sum(kernel.num_instructions for kernel in pipeline.kernels)
    with progress_bar(progress, total, "predicting", "instruction") as bar:
        count = len(pipeline.kernels)
        say_which(bar, "predicting", 1, count)
        for number, found in enumerate(pipeline.found(gpu, needs_of(wanted)), 1):
            predictions = _evaluate_each(gpu, tuple(wanted), found)
            if seen is not None:
                seen(found)
            for one in predictions:
                if details is not None:
                    details.append(one.cpi_details)
                values = values_of_row(one, gpu, profiler)
                rows.append(row(found.kernel, gpu, one.model, values, settings))
            if seeker is not None:
                seeker.see(number - 1, found, {one.model: one.cycles for one in predictions})
            bar.update(found.kernel.num_instructions)
            say_which(bar, "predicting", min(number + 1, count), count)
    return rows if seeker is None else _with_reasons(rows, wanted, seeker)


def cycles_on(profile: IntervalProfile, gpus: Sequence[Gpu], model: str) -> npt.NDArray[np.float64]:
    """Return the cycles of a launch on GPUs that differ only in what the models read."""
    return evaluate_all([profile], gpus, model)["cycles"][:, 0]


def _with_reasons(
    rows: Sequence[dict[str, Any]], models: Sequence[str], seeker: Seeker
) -> list[dict[str, Any]]:
    """Return rows with the change that gains most, and its speed-up, after the stack."""
    found = seeker.best()
    return [
        _with_reason(
            values, found[number // len(models)].get(models[number % len(models)]) or NO_BEST
        )
        for number, values in enumerate(rows)
    ]


def _with_reason(values: dict[str, Any], best: Best) -> dict[str, Any]:
    """Return a row with its reason after the stack."""
    said: dict[str, Any] = {}
    for name, value in values.items():
        said[name] = value
        if name == STACK[-1]:
            said |= {"reason": best.words, "gain": best.gain}
    return said


def _check_no_other_sample(options: Options, client: distributed.Client | None) -> None:
    """Raise `InputError` where blocks are sampled, and something else is to be."""
    asked = {
        f"sample_sms = {shown(options.sample_sms)}": options.sample_sms != 1,
        f"sample_launches = {shown(options.sample_launches)}": options.sample_launches is not False,
        "client": client is not None,
    }
    for what, is_asked in asked.items():
        if is_asked:
            raise InputError(
                f"{what}: thread blocks are a sample already (sample_blocks, or a trace of a sample); "
                "leave it out"
            )


def _block_sampled_rows(
    pipeline: Pipeline, gpu: Gpu, models: Sequence[str], options: Options, progress: bool
) -> list[dict[str, Any]]:
    sampled = block_sampled(
        pipeline, gpu, models, options.sample_blocks, doubted_prediction, needs_of(models)
    )
    return _rows_with_bounds(
        pipeline,
        gpu,
        models,
        sampled,
        options,
        progress,
        lambda _, blocks: {"sampled_blocks": blocks},
    )


def _sampled_rows(
    pipeline: Pipeline,
    gpu: Gpu,
    models: Sequence[str],
    sampling: Sampling,
    options: Options,
    progress: bool,
    seeker: Seeker | None,
) -> list[dict[str, Any]]:
    def see(number: int, found: Found, predictions: Sequence[Prediction]) -> None:
        if seeker is not None:
            seeker.see(number, found, {one.model: one.cycles for one in predictions})

    sampled = sampled_predictions(
        pipeline, gpu, models, sampling, doubted_prediction, needs_of(models), see
    )

    def of_sample(model: str, sampled_sms: int) -> dict[str, Any]:
        return {"sampled_sms": 0 if model == interval_simulation.NAME else sampled_sms}

    return _rows_with_bounds(pipeline, gpu, models, sampled, options, progress, of_sample)


def _rows_with_bounds(
    pipeline: Pipeline,
    gpu: Gpu,
    models: Sequence[str],
    sampled: Iterable[tuple[int, list[tuple[Prediction, float, float]]]],
    options: Options,
    progress: bool,
    of_sample: Callable[[str, int], dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return rows with the ends of an interval of IPC, and how large the sample was."""
    settings = settings_of(options)
    rows = []
    with progress_bar(progress, len(pipeline.kernels), "predicting", "kernel") as bar:
        for kernel, (size, predictions) in zip(pipeline.kernels, sampled, strict=True):
            for model, (prediction, low, high) in zip(models, predictions, strict=True):
                values = {}
                for name, value in values_of_row(prediction, gpu, options.profiler).items():
                    values[name] = value
                    if name == "ipc":
                        values |= {"ipc_low": low, "ipc_high": high, **of_sample(model, size)}
                rows.append(row(kernel, gpu, model, widened_by_sample(values), settings))
            bar.update(1)
    return rows


@checked
def application_totals(predictions: pd.DataFrame) -> pd.DataFrame:
    """Add the kernels of an application up, per GPU and model.

    IPC is the sum of instructions over the sum of cycles (MDM, Section III-C); CPI and its stack
    are means weighted by instructions.

    Parameters
    ----------
    predictions
        Rows of `predict`.

    Returns
    -------
    DataFrame
        One row per GPU, model, ``initial_l2`` and ``profiler`` in order of appearance: ``gpu``,
        ``gpu_changes``, ``model``, ``kernels``, ``instructions``, ``cycles``, ``time_us`` and ``launch_us``
        where the rows have them, ``ipc``, ``cpi``, the stack, and these two where the rows have
        them. Rows from a sample of the launches also give ``ipc_low`` and ``ipc_high``, between which the
        IPC of a prediction of all lies with a confidence of 95 %.

    Raises
    ------
    InputError
        If these are not rows of `predict`.
    """
    keys = ["gpu", "gpu_changes", "gpu_digest", "model"]
    columns = [*keys, "instructions", "cycles", "cpi", *STACK]
    require(predictions, columns, "the rows of predict", what="the predictions have", rows=True)
    predictions = checked_table(
        "predictions",
        predictions,
        positive=("instructions", "cycles"),
        numbers=("cpi", *STACK, *TIME),
        texts=keys,
    )
    rows = []
    settings = [name for name in SETTINGS if name in predictions]  # older tables have none
    for of, group in predictions.groupby([*keys, *settings], sort=False, dropna=False):
        gpu_name, gpu_changes, _, model, *values = of
        identity = {"gpu": gpu_name, "gpu_changes": gpu_changes, "model": model}
        total = add_up(group)
        bars = bars_of_totals(group, total)
        if set(RANGE) <= set(group):
            total = beside_time(total, range_of_sum(_records(group)))
        how = dict(zip(settings, values, strict=True))
        rows.append({**identity, "kernels": len(group), **total, **bars, **how})
    return pd.DataFrame(rows)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in one.items()} for one in table.to_dict("records")]


#: Fields of `Gpu` that the stages before the models read, whatever the model.
_STAGE_FIELDS = CACHE_FIELDS | INTERVAL_FIELDS


@checked
def fields_used(models: str | Iterable[str]) -> set[str]:
    """Return the fields of `Gpu` that a prediction with these models depends on.

    An order of accesses may read more of them.
    """
    used: set[str] = set()
    wanted = model_list(models)
    if needs_of(wanted).profiles:
        used |= _STAGE_FIELDS | UNIT_FIELDS
    for model in wanted:
        used |= model_reads(model)
    if "dram_bandwidth_gbs" in used:
        used.add("dram_efficiency")
    return used | fields_of(Stage.LAUNCH)


def model_reads(model: str) -> frozenset[str]:
    """Return the fields of `Gpu` that a model itself reads, beyond those of the stages before it."""
    model = present_name(model)
    if model == interval_simulation.NAME:
        return interval_simulation.FIELDS
    own = _registered.get(model)
    return frozenset(_core.model_fields(model)) if own is None else own.fields


#: Options of the representative warp.
_OF_ONE_WARP = ("selection", "misses", "merge_threshold")
#: Options of the caches that the stage before the models simulates.
_OF_THE_CACHES = ("access_order", "sample_sms")


def sees_write_backs(model: str) -> bool:
    """Return whether a model counts what DRAM moves for no instruction: the write-backs of L2.

    Those of one representative warp count the requests of its instructions (MDM, Eq. 7 to 10; GPUMech, Eq.
    21 to 23), so that `initial_l2` changes nothing for them.
    """
    model = present_name(model)
    if model == interval_simulation.NAME:
        return True
    return model not in _registered and _core.reads_phases(model)


def blind_to_write_backs(options: Options, models: Iterable[str]) -> list[str]:
    """Return the models that do not see that L2 holds written lines; none where it holds none."""
    return [model for model in models if options.written_share and not sees_write_backs(model)]


def warn_of_unread(
    options: Options, models: Sequence[str], *, counts_write_backs: bool = False
) -> None:
    """Warn once of options that are set and that none of the models reads.

    Models of all warps' phases do not read what is about the representative warp. Interval simulation
    has caches of its own.

    Parameters
    ----------
    options, models
        The options and the models.
    counts_write_backs
        Whether a simulation, or counters of caches, read what L2 holds, whatever the models do.
    """
    present = [present_name(model) for model in models]
    blind = blind_to_write_backs(options, models)
    if blind and len(blind) == len(present) and not counts_write_backs:
        given = "profiler = do_bench" if options.initial_l2 is None else "initial_l2"
        warn(
            f"options: {given}: the models {', '.join(models)} do not see the written lines of L2, whose "
            "write-backs are of no instruction; closed_network and interval_simulation do",
            UnusedOptionWarning,
        )
    others = [model for model in present if model != interval_simulation.NAME]
    if any(model in _registered or not _core.reads_phases(model) for model in others):
        return
    unread_options = _OF_ONE_WARP if others else (*_OF_ONE_WARP, *_OF_THE_CACHES)
    unread = [name for name in changed_options(options) if name in unread_options]
    if unread:
        warn(
            f"options: the models {', '.join(models)} do not read {', '.join(unread)}: those of the papers "
            "do, such as mdm",
            UnusedOptionWarning,
        )
