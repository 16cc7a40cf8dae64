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

import os
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from warpstack._util.checked import strictly_checked
from warpstack._util.choices import DEFAULT_MODEL, Profiler
from warpstack._util.lazy import pandas as pd
from warpstack.cuda.triton import Grid, TritonKernel, compile, on_device
from warpstack.cuda.triton_front_end import chosen_by_heuristics, is_tuner, layers
from warpstack.errors import InputError, shown
from warpstack.hardware.description import Gpu, GpuLike, as_gpu
from warpstack.models.triton_function import TritonFunction, launch
from warpstack.models.triton_tuning import Tuning, pruned, settings_of, target_of

__all__ = ["TritonFunction", "TritonKernel", "compile", "launch", "tune"]


class _Callable(types.ModuleType):
    """The module, which is called like a function, too."""

    def __call__(self, kernel: Any, **options: Any) -> TritonFunction:
        """Return a kernel that is launched as in Triton; see `TritonFunction`."""
        return TritonFunction(kernel, **options)


sys.modules[__name__].__class__ = _Callable


@strictly_checked
def tune(
    kernel: Any,
    grid: Grid,
    args: Sequence[Any],
    configs: Sequence[Any] | None = None,
    gpu: GpuLike | Sequence[GpuLike] = "a100",
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
        ``num_stages``; by default those of ``triton.autotune`` that its ``prune_configs_by`` leaves.
        Its hooks are called, too, and a ``pre_hook`` before the kernel is compiled.
    gpu
        The GPU: a description, its name, or the path of one; or several.
    model
        The model that predicts.
    simulator
        Whether the cycle-level simulator says it, too.
    target
        What to compile for; by default the architecture of each GPU.
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
        ``attrs["best_config"]`` is the first row's `config`. Of several GPUs, there are the rows of one
        after those of another, with their names in the first column, ``gpu``, and
        ``attrs["best_config"]`` is a dictionary by name, with None where nothing runs.

    Raises
    ------
    InputError
        If there is no configuration, one is not understood, a hook fails, or none of them runs.
    """
    what = "ws.triton.tune"
    several = not isinstance(gpu, (Gpu, str, os.PathLike))
    given = [gpu] if isinstance(gpu, (Gpu, str, os.PathLike)) else list(gpu)
    gpus = [as_gpu(one) for one in given]
    names = [one.name for one in gpus]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not gpus:
        raise InputError(
            f"{what}: gpu: two are called {twice[0]}; name one: gpu.replace(name='other')"
            if twice
            else f"{what}: gpu = {shown(gpu)}: there is none; give a name, 'a100' say, or several"
        )
    above = layers(what, kernel)
    tuner = next((one for one in above if is_tuner(one)), None)
    host, arguments, named = on_device(what, kernel, args, constexprs)
    if tuner is not None:
        for layer in above[: above.index(tuner)]:
            named |= chosen_by_heuristics(what, layer, arguments, named, host.given)
        kernel = tuner.fn
        if configs is None:
            configs = pruned(what, tuner, args, host.given_all(named), grid)
    configs = [] if configs is None else list(configs)
    for config in configs:
        settings_of(what, config)
    if not configs:
        raise InputError(f"{what}: there is no configuration; give configs=[triton.Config(...)]")
    tuning = Tuning(
        what=what,
        kernel=kernel,
        tuner=tuner,
        grid=grid,
        args=arguments,
        named=named,
        host=host,
        gpus=gpus,
        targets=[target or target_of(what, one) for one in gpus],
        model=model,
        simulator=simulator,
        profiler=profiler,
        machine_code=machine_code,
    )
    host.copy_in()
    table = tuning.table_of(tuning.times_of(configs, progress=progress), named=several)
    if not several:
        table.attrs["best_config"] = table["config"].iloc[0]
        return table
    runs = table[np.isfinite(table["simulated_time_us" if simulator else "time_us"])]
    first = runs.groupby("gpu", sort=False)["config"].first()
    table.attrs["best_config"] = {name: first.get(name) for name in names}
    return table
