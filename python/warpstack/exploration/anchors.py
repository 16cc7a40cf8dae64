"""Anchors of sweeps: a better engine's answer at one GPU, from which models say how far others differ."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack._util.options import Options
from warpstack._util.progress import Progress
from warpstack.errors import InputError, shown
from warpstack.exploration.runner import NUMBERS, Numbers, Points, Runner
from warpstack.exploration.stage_cache import StageCache, key_of
from warpstack.hardware.description import Gpu
from warpstack.hardware.profiler import profiled
from warpstack.hardware.stages import values_of
from warpstack.interval.profile import whole_instructions
from warpstack.models.prediction import fields_used, names, present_name
from warpstack.tables import STACK
from warpstack.timing.at_once import run_kernels
from warpstack.timing.simulation import SimulationResult, Simulator
from warpstack.timing.simulation import fields_used as simulated_fields
from warpstack.traces.trace import KernelTrace

__all__ = ["SIMULATE", "Anchor", "Base", "base_of", "check_anchor", "fields_of_anchor"]

#: The cycle-level simulator as an anchor; all others are models.
SIMULATE = "simulate"


@dataclass(frozen=True)
class Base:
    """What is said of an application's kernels at the base.

    Attributes
    ----------
    gpu_digest
        That of the base.
    instructions
        Warp instructions of each kernel.
    engine
        What the engine says, by column: arrays of shape (kernels, 1).
    models
        What the swept models say, by column: arrays of shape (kernels, models).
    """

    gpu_digest: str
    instructions: npt.NDArray[np.float64]
    engine: Numbers
    models: Numbers

    def anchored(self, numbers: Numbers, gpus: Sequence[Gpu]) -> dict[str, npt.NDArray[np.float64]]:
        """Return the answers at points: the engine's, times how much the models differ from the base.

        Cycles and CPI are each the engine's times the ratio of the model's, and the stack is the
        model's, scaled to that CPI. Where the model says what it says at the base, nothing changes:
        the answer is the engine's, with its own stack.

        Parameters
        ----------
        numbers
            What the models say at the points, by column: arrays of shape (points, kernels, models).
        gpus
            The GPU of each point.
        """
        cycles, cpi = (
            self.engine[name] * (numbers[name] / self.models[name]) for name in ("cycles", "cpi")
        )
        found = {"cycles": cycles, "ipc": self.instructions[:, np.newaxis] / cycles, "cpi": cpi}
        found |= {part: numbers[part] * (cpi / numbers["cpi"]) for part in STACK}
        same = np.logical_and.reduce([numbers[name] == self.models[name] for name in NUMBERS])
        # Caches found from a recorded order may differ from the base's own.
        base = np.array([gpu.digest == self.gpu_digest for gpu in gpus])
        same |= base[:, np.newaxis, np.newaxis] & ~np.isnan(cycles)
        return {name: np.where(same, self.engine[name], found[name]) for name in NUMBERS}


@dataclass(frozen=True)
class Anchor:
    """The anchor of a sweep.

    Attributes
    ----------
    name
        The engine.
    gpu
        The base, as it runs under the profiler.
    models, options
        The swept models, and how all work.
    bases
        What was found so far, by number of the application.
    """

    name: str
    gpu: Gpu
    models: tuple[str, ...]
    options: Options
    bases: dict[int, Base] = field(default_factory=dict)

    @classmethod
    def of(
        cls, name: str, gpu: Gpu, models: Sequence[str], options: Options, *, told: bool = True
    ) -> Anchor:
        """Return the anchor that a caller named.

        Parameters
        ----------
        name
            `SIMULATE` or a model.
        gpu
            The GPU whose fields the sweep changes: the base.
        models, options
            As for `warpstack.sweep`.
        told
            Whether the caller knows already that the profiler's clock is not known.

        Raises
        ------
        InputError
            If there is no such engine, or it is swept itself.
        """
        check_anchor(name, models)
        base = profiled(gpu, options.profiler, told=told)
        return cls(name, base, tuple(models), options)

    @property
    def models_read(self) -> tuple[str, ...]:
        """The models that take part."""
        return self.models if self.name == SIMULATE else (*self.models, self.name)

    def check(self, kernels: Sequence[KernelTrace], app: str = "") -> None:
        """Raise `InputError` if the engine cannot say how long these kernels take as a whole."""
        if self.name != SIMULATE:
            return
        for kernel in kernels:
            if kernel.num_missing_blocks:
                raise InputError(
                    f"anchor = {SIMULATE}: {kernel.num_missing_blocks:,} of {kernel.num_blocks:,} thread "
                    f"blocks of kernel {kernel.launch_id}{app and f' of {app}'} were not traced, and the "
                    "simulator runs the others alone; trace all of them, or give a model as the anchor"
                )


def check_anchor(name: str, models: Sequence[str], said: str = "anchor = ") -> None:
    """Raise `InputError` if there is no such engine, or it is swept itself.

    `said` is what the caller writes before the name.
    """
    swept = {present_name(model): model for model in models}
    others = [*(model for model in names() if model not in swept), SIMULATE]
    if name == SIMULATE:
        return
    present = present_name(name)
    if present in swept:
        raise InputError(
            f"{said}{name}: is the swept model {swept[present]} itself; give another engine: "
            f"{', '.join(others)}"
        )
    if present not in names():
        raise InputError(f"{said}{shown(name)} is not one of {', '.join(others)}")


def fields_of_anchor(name: str, gpu: Gpu) -> set[str]:
    """Return the fields of `Gpu` that an engine's answer depends on."""
    return simulated_fields(gpu) if name == SIMULATE else fields_used([name])


def base_of(
    anchor: Anchor,
    cache: StageCache | None,
    num_threads: int,
    kernels: tuple[KernelTrace, ...],
    bar: Progress,
    stop: threading.Event | None = None,
) -> Base:
    """Return what the engine and the models say of an application's kernels at the base.

    Parameters
    ----------
    anchor
        The engine, the base and the models.
    cache, num_threads, kernels, stop
        As for `Runner`.
    bar
        It is told of simulated instructions.

    Raises
    ------
    InputError
        If one of them has no answer there; the message names the base.
    """
    simulates = anchor.name == SIMULATE
    models = anchor.models if simulates else (anchor.name, *anchor.models)
    runner = Runner(kernels, models, anchor.options, cache, stop)
    # As a point of a sweep: what that needs of its models, it needs of the engine.
    rows = runner.run(Points(np.zeros(1, np.int32), (anchor.gpu,)), num_threads)
    wrong = [error for error in rows["error"] if error]
    if wrong:
        raise InputError(f"anchor = {anchor.name}: at the base, {anchor.gpu.title}: {wrong[0]}")
    shape = (len(kernels), len(models))
    found = {name: rows[name].to_numpy(np.float64).reshape(shape) for name in NUMBERS}
    if simulates:
        engine = _simulated(anchor, cache, num_threads, kernels, bar)
    else:
        engine = {name: column[:, :1] for name, column in found.items()}
        found = {name: column[:, 1:] for name, column in found.items()}
        bar.update(sum(kernel.num_instructions for kernel in kernels))
    whole = np.array([whole_instructions(kernel) for kernel in kernels], np.float64)
    return Base(anchor.gpu.digest, whole, engine, found)


def _simulated(
    anchor: Anchor,
    cache: StageCache | None,
    num_threads: int,
    kernels: tuple[KernelTrace, ...],
    bar: Progress,
) -> Numbers:
    """Return what the simulator says, which the cache keeps."""
    settings = {
        "gpu": values_of(anchor.gpu, frozenset(Gpu.fields())),
        **anchor.options.l2_identity,
    }
    key = key_of([kernel.digest for kernel in kernels], settings)
    kept = cache.get("simulated", key) if cache is not None else None
    if kept is not None and _is_sound(kept, len(kernels)):
        bar.update(sum(kernel.num_instructions for kernel in kernels))
        return {name: kept[name] for name in NUMBERS}
    # Its clock is the profiler's already.
    simulator = Simulator(anchor.gpu, initial_l2=anchor.options.written_share)
    found = _columns(run_kernels(simulator, kernels, anchor.options.flush_l2, num_threads, bar))
    if cache is not None:
        cache.put("simulated", key, found)
    return found


def _columns(results: Sequence[SimulationResult]) -> dict[str, npt.NDArray[np.float64]]:
    rows = [
        {
            "cycles": float(result.cycles),
            "ipc": result.ipc,
            "cpi": result.cpi,
            **{f"cpi_{part}": value for part, value in result.cpi_stack.items()},
        }
        for result in results
    ]
    return {name: np.array([[row[name]] for row in rows]) for name in NUMBERS}


def _is_sound(arrays: Mapping[str, npt.NDArray[Any]], count: int) -> bool:
    """Return whether an entry of the cache is what a simulation keeps."""
    return all(
        name in arrays
        and arrays[name].dtype == np.float64
        and arrays[name].shape == (count, 1)
        and bool(np.isfinite(arrays[name]).all() and (arrays[name] >= 0).all())
        for name in NUMBERS
    )
