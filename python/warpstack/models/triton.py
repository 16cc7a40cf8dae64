"""Kernels written in Triton: compiled, run, predicted and tuned without a GPU.

Examples
--------
>>> import numpy as np
>>> import triton, triton.language as tl  # doctest: +SKIP
>>> import warpstack as ws
>>> @triton.jit
... def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
...     x = tl.load(x_ptr + i, mask=i < n)
...     y = tl.load(y_ptr + i, mask=i < n)
...     tl.store(y_ptr + i, x + y, mask=i < n)  # doctest: +SKIP
>>> x = ws.cuda.array(np.arange(1000, dtype=np.float32))
>>> y = ws.cuda.array(np.ones(1000, dtype=np.float32))
>>> trace = ws.triton.launch(add, 4, x, y, 1000, BLOCK=256)  # doctest: +SKIP
>>> np.asarray(y)[:3]  # doctest: +SKIP
array([1., 2., 3.], dtype=float32)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

from warpstack._core import SECTOR_BYTES
from warpstack._util.checked import strictly_checked
from warpstack._util.choices import DEFAULT_MODEL, Profiler
from warpstack._util.lazy import pandas as pd
from warpstack._util.options import Options
from warpstack._util.progress import progress_bar
from warpstack.cuda.device import restore
from warpstack.cuda.extras import load_extra
from warpstack.cuda.triton import Grid, TritonKernel, compile, launch
from warpstack.cuda.triton_descriptors import arrays_of
from warpstack.errors import InputError, not_a, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.memory.caches import occupancy
from warpstack.models.prediction import predicted_rows
from warpstack.timing.simulation import simulate

__all__ = ["TritonKernel", "compile", "launch", "tune"]

#: Options of the compiler that a configuration sets beside the constants of the kernel.
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


@strictly_checked
def tune(
    kernel: Any,
    grid: Grid,
    args: Sequence[Any],
    configs: Sequence[Any] | None = None,
    gpu: GpuLike = "a100",
    *,
    model: str = DEFAULT_MODEL,
    simulator: bool = True,
    target: str | None = None,
    profiler: Profiler = "nsys",
    progress: bool = False,
    machine_code: bool | None = None,
    **constexprs: Any,
) -> pd.DataFrame:
    """Predict a Triton kernel's time in every configuration, as its autotuner would measure it.

    Parameters
    ----------
    kernel
        A function decorated with ``triton.jit``, perhaps with ``triton.heuristics`` or
        ``triton.autotune``.
    grid, args
        As for `launch`. Arrays have their values back afterwards, and at the start of each run.
    configs
        The configurations: ``triton.Config`` or dictionaries of constants, ``num_warps`` and
        ``num_stages``; by default those of ``triton.autotune``, of which functions that prune them
        are not called. A ``pre_hook`` is, before the kernel is compiled.
    gpu
        The GPU: a description, its name, or the path of one.
    model
        The model that predicts.
    simulator
        Whether the cycle-level simulator says it, too.
    target
        What to compile for; by default the architecture of the GPU.
    profiler
        Whose times these are, as for `warpstack.predict`.
    progress
        Show a progress bar on standard error.
    machine_code
        As for `compile`.
    **constexprs
        Arguments that every configuration has.

    Returns
    -------
    DataFrame
        One row per configuration, the fastest first (by the simulator where it was asked, else by
        the model): its constants, ``num_warps``, ``num_stages``, ``time_us`` of the model and
        ``simulated_time_us`` (if `simulator`), ``code``, what ran (`TritonKernel.code`),
        ``registers_per_thread``, ``shared_memory_bytes``,
        with the simulator ``tensor_utilisation`` (`SimulationResult.tensor_utilisation`) and
        ``dram_read_bytes``, ``warps_per_sm`` (resident ones), ``config``, the text of the
        ``triton.Config``, and ``error``, empty where it ran. A configuration that does not fit the GPU,
        does not compile, or is refused or fails when it runs has an infinite time, as in Triton, comes
        last, and ``error`` says why.
        ``attrs["best_config"]`` is the first row's `config`.

    Raises
    ------
    InputError
        If there is no configuration, one is not understood, its ``pre_hook`` fails, or none of them runs.
    """
    what = "ws.triton.tune"
    described = as_gpu(gpu)
    triton = load_extra(what, "triton", "triton")
    if isinstance(kernel, triton.runtime.Autotuner):
        configs = kernel.configs if configs is None else configs
        kernel = kernel.fn
    configs = [] if configs is None else list(configs)
    settings = [_settings(what, config) for config in configs]
    if not settings:
        raise InputError(f"{what}: there is no configuration; give configs=[triton.Config(...)]")
    constants = list(dict.fromkeys(n for one in settings for n in one if n not in _OPTIONS))
    target = target or _target_of(what, described)
    arrays = arrays_of([*args, *constexprs.values()])
    kept = [copy.copy(array) for array in arrays]
    rows = []
    with progress_bar(progress, len(settings), "tuning", "configuration") as bar:
        for config, setting in zip(configs, settings, strict=True):
            _call_hook(what, kernel, config, args, {**constexprs, **setting})
            columns = {name: setting.get(name) for name in constants}
            columns |= {name: setting.get(name) for name in ("num_warps", "num_stages")}
            error = ""
            try:
                made = compile(
                    kernel,
                    *args,
                    target=target,
                    machine_code=machine_code,
                    **{**constexprs, **setting},
                )
                columns |= {"num_warps": made.num_warps, "num_stages": made.num_stages}
                found = _times(made, grid, described, model, simulator, profiler)
                if math.isinf(found["time_us"]):
                    error = f"does not fit {described.name}"
            except InputError as problem:
                found, error = _no_times(simulator), str(problem)
            finally:
                for array, values in zip(arrays, kept, strict=True):
                    restore(array, values)
            rows.append({**columns, **found, "config": _text(setting, config), "error": error})
            bar.update(1)
    order = "simulated_time_us" if simulator else "time_us"
    table = pd.DataFrame(rows).sort_values(order, kind="stable", ignore_index=True)
    if math.isinf(table[order].iloc[0]):
        raise InputError(
            f"{what}: none of the configurations runs; {table['config'].iloc[0]}: {table['error'].iloc[0]}"
        )
    table.attrs["best_config"] = table["config"].iloc[0]
    return table


def _times(
    made: TritonKernel, grid: Grid, gpu: Gpu, model: str, simulator: bool, profiler: Profiler
) -> dict[str, Any]:
    """Return the columns of a row that come from a run, infinite times if it does not fit."""
    row = _no_times(simulator)
    facts: dict[str, Any] = {
        "code": made.code,
        "registers_per_thread": made.registers_per_thread,
        "shared_memory_bytes": made.shared_memory_bytes,
    }
    if made.shared_memory_bytes > 1024 * gpu.shared_memory_kib_per_sm:
        return {**row, **facts, "warps_per_sm": 0}
    trace = made.launch(grid)
    assert trace is not None
    try:
        resident = occupancy(trace, gpu)["warps_per_sm"]
    except InputError:  # not even one block fits
        return {**row, **facts, "warps_per_sm": 0}
    row["time_us"] = predicted_rows(trace, gpu, model, Options(profiler=profiler))[0]["time_us"]
    if simulator:
        simulated = simulate(trace, gpu, profiler=profiler)
        row["simulated_time_us"] = simulated.time_us
        facts["tensor_utilisation"] = simulated.tensor_utilisation
        facts["dram_read_bytes"] = SECTOR_BYTES * simulated.totals["dram_read_sectors"]
    return {**row, **facts, "warps_per_sm": resident}


def _no_times(simulator: bool) -> dict[str, Any]:
    names = ("time_us", "simulated_time_us") if simulator else ("time_us",)
    return dict.fromkeys(names, math.inf)


def _settings(what: str, config: Any) -> dict[str, Any]:
    """Return constants and options of a configuration, of a `triton.Config` or a dictionary."""
    if isinstance(config, Mapping):
        return {str(name): value for name, value in config.items()}
    if not hasattr(config, "all_kwargs"):
        raise not_a(f"{what}: a configuration", "a triton.Config or a dictionary", config)
    return {name: value for name, value in config.all_kwargs().items() if value is not None}


def _call_hook(
    what: str, kernel: Any, config: Any, args: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Call a configuration's ``pre_hook``, which sets the tiles of tensor descriptors, say.

    As in Triton, it gets the arguments by name.
    """
    hook = getattr(config, "pre_hook", None)
    if hook is None:
        return
    try:
        hook({**dict(zip(kernel.arg_names, args, strict=False)), **named})
    except Exception as error:
        raise InputError(
            f"{what}: the pre_hook of {shown(str(config))} fails: {type(error).__name__}: {error}"
        ) from error


def _text(setting: Mapping[str, Any], config: Any) -> str:
    """Return a configuration as it stands in a program."""
    constants = {name: value for name, value in setting.items() if name not in _OPTIONS}
    options = [f"{name}={setting[name]!r}" for name in _OPTIONS if name in setting]
    if setting.get("num_ctas") == 1:  # the default
        options.remove("num_ctas=1")
    hook = getattr(config, "pre_hook", None)
    if hook is not None:
        options.append(f"pre_hook={getattr(hook, '__name__', hook)}")
    return f"triton.Config({', '.join([repr(constants), *options])})"


def _target_of(what: str, gpu: Gpu) -> str:
    if gpu.compute_capability <= 0:
        raise InputError(
            f"{what}: the description {gpu.name} does not say its compute_capability; give target='sm_80'"
        )
    return f"sm_{round(10 * gpu.compute_capability)}"
