"""Configurations of Triton kernels: which there are, and what each would take on GPUs."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpstack._core import SECTOR_BYTES
from warpstack._util.choices import Profiler
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options
from warpstack._util.progress import progress_bar
from warpstack.cuda.device import DeviceArray, restore
from warpstack.cuda.host_tensors import HostTensors
from warpstack.cuda.triton import Grid, TritonKernel
from warpstack.cuda.triton_descriptors import arrays_of
from warpstack.cuda.triton_front_end import compile_function
from warpstack.errors import InputError, not_a, shown
from warpstack.hardware.description import Gpu
from warpstack.memory.caches import occupancy
from warpstack.models.prediction import predicted_rows
from warpstack.timing.simulation import simulate
from warpstack.traces.trace import KernelTrace

#: Options of the compiler that a configuration sets beside the constants of the kernel.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


@dataclass(frozen=True)
class Tuning:
    """A launch whose configuration is sought.

    Attributes
    ----------
    what
        The function that was called, for messages.
    kernel
        The function that is compiled, perhaps with heuristics, without an autotuner.
    tuner
        Its autotuner, whose hooks are called; None: it has none.
    grid, args, named
        Of the launch, with tensors of the host on the device.
    host
        These tensors.
    gpus, targets
        Whose times are sought, and what is compiled for each.
    model, simulator, profiler, machine_code
        As for `warpstack.triton.tune`.
    options
        Of each launch, as for `TritonKernel.launch`.
    """

    what: str
    kernel: Any
    tuner: Any
    grid: Grid
    args: Sequence[Any]
    named: Mapping[str, Any]
    host: HostTensors
    gpus: Sequence[Gpu]
    targets: Sequence[str]
    model: str
    simulator: bool
    profiler: Profiler
    machine_code: bool | None
    options: Mapping[str, Any] = field(default_factory=dict)

    def times_of(self, configs: Sequence[Any], *, progress: bool) -> list[list[dict[str, Any]]]:
        """Return rows of each configuration, one for each GPU.

        Arrays have their values back afterwards, and at the start of each run.

        Raises
        ------
        InputError
            If a configuration is not understood, or a hook fails.
        """
        settings = [settings_of(self.what, config) for config in configs]
        constants = list(dict.fromkeys(n for one in settings for n in one if n not in _OPTIONS))
        arrays = list(arrays_of([*self.args, *self.named.values()]))
        arrays = [one for one in arrays if not self.host.has(one)] + self.host.copies
        kept = [copy.copy(array) for array in arrays]
        rows = []
        with progress_bar(progress, len(settings), "tuning", "configuration") as bar:
            for config, setting in zip(configs, settings, strict=True):
                columns = {name: setting.get(name) for name in constants}
                columns |= {name: setting.get(name) for name in ("num_warps", "num_stages")}
                found: dict[int, tuple[dict[str, Any], str]] = {}
                for target in dict.fromkeys(self.targets):
                    try:
                        found |= self._on_target(config, setting, target)
                    finally:
                        _restore(arrays, kept)
                last = {"config": text_of(setting, config)}
                rows.append(
                    [
                        {**columns, **found[number][0], **last, "error": found[number][1]}
                        for number in range(len(self.gpus))
                    ]
                )
                bar.update(1)
        return rows

    def _on_target(
        self, config: Any, setting: Mapping[str, Any], target: str
    ) -> dict[int, tuple[dict[str, Any], str]]:
        """Return columns and error of a configuration by number of GPU, for those of a target."""
        numbers = [n for n, one in enumerate(self.targets) if one == target]
        named = {**self.named, **setting}
        given = {**dict(zip(self.kernel.arg_names, self.args, strict=False)), **named}
        call_hook(self.what, config, given)
        _call(self.what, self.tuner, "pre_hook", given)
        failed: InputError | None = None
        try:
            compiled = compile_function(
                self.what, self.kernel, self.args, named, target, self.host.given
            )
            made = TritonKernel(compiled, self.host.device, self.machine_code, host=self.host)
            found = self._times(made, numbers)
        except InputError as problem:
            failed = problem
            found = {n: (_no_times(self.simulator), str(problem)) for n in numbers}
        _call(self.what, self.tuner, "post_hook", given, exception=failed)
        return found

    def _times(
        self, made: TritonKernel, numbers: Sequence[int]
    ) -> dict[int, tuple[dict[str, Any], str]]:
        """Run once for all GPUs of a target, if it fits one of them, and ask for the times."""
        trace: KernelTrace | None = None
        found = {}
        options = {"num_warps": made.num_warps, "num_stages": made.num_stages}
        for number in numbers:
            gpu = self.gpus[number]
            fits = made.shared_memory_bytes <= 1024 * gpu.shared_memory_kib_per_sm
            if fits and trace is None:
                trace = made._run(self.grid, {**self.options, "trace": True, "progress": False})
                assert trace is not None
            row = _no_times(self.simulator)
            facts = {
                "code": made.code,
                "registers_per_thread": made.registers_per_thread,
                "shared_memory_bytes": made.shared_memory_bytes,
            }
            error = "" if fits else f"does not fit {gpu.name}"
            if fits:
                assert trace is not None
                try:
                    facts |= self._on_gpu(trace, gpu, row)
                except InputError as problem:
                    row = _no_times(self.simulator)
                    error = str(problem)
                else:
                    error = "" if facts["warps_per_sm"] else f"does not fit {gpu.name}"
            facts.setdefault("warps_per_sm", 0)
            found[number] = {**options, **row, **facts}, error
        return found

    def _on_gpu(self, trace: KernelTrace, gpu: Gpu, row: dict[str, Any]) -> dict[str, Any]:
        """Put the times of a trace into a row and return the other columns."""
        try:
            resident = occupancy(trace, gpu)["warps_per_sm"]
        except InputError:  # not even one block fits
            return {"warps_per_sm": 0}
        asked = Options(profiler=self.profiler)
        row["time_us"] = predicted_rows(trace, gpu, self.model, asked)[0]["time_us"]
        facts: dict[str, Any] = {}
        if self.simulator:
            simulated = simulate(trace, gpu, profiler=self.profiler)
            row["simulated_time_us"] = simulated.time_us
            facts["tensor_utilisation"] = simulated.tensor_utilisation
            facts["dram_read_bytes"] = SECTOR_BYTES * simulated.totals["dram_read_sectors"]
        return {**facts, "warps_per_sm": resident}

    def table_of(self, rows: Sequence[Sequence[dict[str, Any]]], *, named: bool) -> pd.DataFrame:
        """Return rows as a table, the fastest first, and with `named` a column ``gpu``.

        Raises
        ------
        InputError
            If none of the configurations runs.
        """
        order = "simulated_time_us" if self.simulator else "time_us"
        flat = [(number, row) for one in rows for number, row in enumerate(one)]
        table = pd.DataFrame(
            [{**({"gpu": self.gpus[n].name} if named else {}), **row} for n, row in flat]
        )
        places = sorted(range(len(flat)), key=lambda place: (flat[place][0], table[order][place]))
        table = table.iloc[places].reset_index(drop=True)
        if table[order].map(math.isinf).all():
            raise InputError(
                f"{self.what}: none of the configurations runs; {table['config'].iloc[0]}: "
                f"{table['error'].iloc[0]}"
            )
        return table


def _restore(arrays: Sequence[DeviceArray], kept: Sequence[DeviceArray]) -> None:
    for array, values in zip(arrays, kept, strict=True):
        restore(array, values)


def _no_times(simulator: bool) -> dict[str, Any]:
    names = ("time_us", "simulated_time_us") if simulator else ("time_us",)
    return dict.fromkeys(names, math.inf)


def settings_of(what: str, config: Any) -> dict[str, Any]:
    """Return constants and options of a configuration, of a `triton.Config` or a dictionary."""
    if isinstance(config, Mapping):
        return {str(name): value for name, value in config.items()}
    if not hasattr(config, "all_kwargs"):
        raise not_a(f"{what}: a configuration", "a triton.Config or a dictionary", config)
    return {name: value for name, value in config.all_kwargs().items() if value is not None}


def text_of(setting: Mapping[str, Any], config: Any) -> str:
    """Return a configuration as it stands in a program."""
    constants = {name: value for name, value in setting.items() if name not in _OPTIONS}
    options = [f"{name}={setting[name]!r}" for name in _OPTIONS if name in setting]
    if setting.get("num_ctas") == 1:  # the default
        options.remove("num_ctas=1")
    hook = getattr(config, "pre_hook", None)
    if hook is not None:
        options.append(f"pre_hook={getattr(hook, '__name__', hook)}")
    return f"triton.Config({', '.join([repr(constants), *options])})"


def call_hook(what: str, config: Any, given: dict[str, Any]) -> None:
    """Call a configuration's ``pre_hook``, which sets the tiles of tensor descriptors, say.

    As in Triton, it gets the arguments by name.
    """
    hook = getattr(config, "pre_hook", None)
    if hook is None:
        return
    try:
        hook(dict(given))
    except Exception as error:
        raise _failed(what, f"the pre_hook of {shown(str(config))}", error) from error


def _call(what: str, tuner: Any, hook: str, given: dict[str, Any], **options: Any) -> None:
    """Call a hook of an autotuner, which sets arrays to zero, say; without one, none."""
    if tuner is None:
        return
    try:
        getattr(tuner, hook)(dict(given), **options)
    except Exception as error:
        raise _failed(what, f"the autotuner's {hook}", error) from error


def reset(what: str, tuner: Any, given: dict[str, Any]) -> None:
    """Set the arrays to zero that an autotuner is to reset, as Triton does when it has tuned."""
    _call(what, tuner, "pre_hook", given, reset_only=True)


def _failed(what: str, function: str, error: Exception) -> InputError:
    return InputError(f"{what}: {function} fails: {type(error).__name__}: {error}")


def pruned(
    what: str, tuner: Any, args: Sequence[Any], named: Mapping[str, Any], grid: Grid
) -> list[Any]:
    """Return the configurations that an autotuner's ``prune_configs_by`` leaves.

    Its functions get what Triton gives them: the arguments by name, and those of the launch.

    Raises
    ------
    InputError
        If one of them fails, or none is left.
    """
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    try:
        left = list(tuner.prune_configs({**named, "grid": grid, "warmup": False}))
    except Exception as error:
        raise _failed(what, "the autotuner's prune_configs_by", error) from error
    finally:
        tuner.nargs = None
    if not left:
        raise InputError(f"{what}: the autotuner's prune_configs_by leaves no configuration")
    return left


def target_of(what: str, gpu: Gpu) -> str:
    """Return the architecture of a GPU."""
    if gpu.compute_capability <= 0:
        raise InputError(
            f"{what}: the description {gpu.name} does not say its compute_capability; give target='sm_80'"
        )
    return f"sm_{round(10 * gpu.compute_capability)}"
