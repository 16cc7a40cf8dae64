"""Triton kernels that are launched as in Triton, autotuned by predicted times."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpstack._util.checked import strictly_checked
from warpstack._util.choices import DEFAULT_MODEL, Profiler
from warpstack._util.handle import Handle
from warpstack._util.lazy import pandas as pd
from warpstack.cuda.host_tensors import HostTensors
from warpstack.cuda.kernel import DEFAULT_STEP_LIMIT
from warpstack.cuda.triton import Grid, TritonKernel, on_device
from warpstack.cuda.triton_front_end import (
    chosen_by_heuristics,
    compile_function,
    is_tuner,
    layers,
)
from warpstack.errors import InputError, shown
from warpstack.hardware.description import GpuLike, as_gpu
from warpstack.models.triton_tuning import (
    Tuning,
    call_hook,
    pruned,
    reset,
    settings_of,
    target_of,
)
from warpstack.traces.trace import KernelTrace

#: Choices of `launch` for autotuned kernels, by what they were made for.
_launched: weakref.WeakKeyDictionary[Any, dict[tuple[Any, ...], dict[tuple[Any, ...], Any]]]
_launched = weakref.WeakKeyDictionary()


class TritonFunction(Handle):
    """A Triton kernel that is launched as in Triton: ``f[grid](*args, BLOCK=64, num_warps=8)``.

    ``ws.triton(kernel)`` makes one, also as a decorator over ``triton.jit`` or ``triton.autotune``. A
    launch returns its trace, which `traces` has, too. Arguments by name are those of the kernel,
    options of Triton (``num_warps``, ``num_stages``), or the options of a launch that are below, from
    `trace` on, for this launch alone; names that the kernel has are the kernel's.

    Parameters
    ----------
    kernel
        A function decorated with ``triton.jit`` or ``gluon.jit``, perhaps with ``triton.heuristics`` and
        ``triton.autotune``. Of an autotuner's configurations the one with the least predicted time is
        taken, once for each value of its ``key``; its hooks and ``prune_configs_by`` are called.
    gpu
        The GPU that an autotuner chooses for: a description, its name, or the path of one.
    target
        What to compile for; by default the architecture of the GPU.
    model, profiler
        What predicts, and whose times these are, as for `warpstack.predict`.
    machine_code
        As for `compile`.
    trace, sample_blocks, run_others, step_limit, check_uninitialized, on_fault
        As for `warpstack.cuda.Kernel.launch`; without `trace` a launch returns None.
    check_races, order, progress
        As for `warpstack.cuda.Kernel.launch`.

    Attributes
    ----------
    fn
        The kernel.
    cache
        Of an autotuner: its choices by the values of its key and the types of arguments.
    best_config
        The configuration of the last launch; None before, and without an autotuner.
    tuning
        The table of the last choice, as of `tune`, without the simulator.
    traces
        Of all launches, in order: ``ws.App(f.traces)``. ``f.traces.clear()`` forgets them.
    compiled
        What the last launch ran, a `TritonKernel`.

    Raises
    ------
    InputError
        If Triton is not installed, or this is not a kernel of its.
    """

    _remedy = "make another one of the kernel"
    _wraps_a_kernel = True

    @strictly_checked
    def __init__(
        self,
        kernel: Any,
        *,
        gpu: GpuLike = "a100",
        target: str | None = None,
        model: str = DEFAULT_MODEL,
        profiler: Profiler = "nsys",
        machine_code: bool | None = None,
        trace: bool = True,
        sample_blocks: int | str = 1,
        run_others: bool = True,
        step_limit: int = DEFAULT_STEP_LIMIT,
        check_uninitialized: bool = True,
        on_fault: str = "stop",
        check_races: bool = False,
        order: str | None = None,
        progress: bool = False,
    ) -> None:
        what = "ws.triton"
        kernel = kernel.fn if isinstance(kernel, TritonFunction) else kernel
        *self._above, function = layers(what, kernel)
        self.fn = kernel
        self.gpu = as_gpu(gpu)
        self.target = target or target_of(what, self.gpu)
        self.model = model
        self.profiler: Profiler = profiler
        self.machine_code = machine_code
        self.arg_names = tuple(function.arg_names)
        self.cache: dict[tuple[Any, ...], Any] = {}
        self.best_config: Any = None
        self.tuning: pd.DataFrame | None = None
        self.traces: list[KernelTrace] = []
        self.compiled: TritonKernel | None = None
        self.__name__ = self.__qualname__ = function.__name__
        self.__doc__ = function.__doc__
        self._options: dict[str, Any] = {
            "trace": trace,
            "sample_blocks": sample_blocks,
            "run_others": run_others,
            "step_limit": step_limit,
            "check_uninitialized": check_uninitialized,
            "on_fault": on_fault,
            "check_races": check_races,
            "order": order,
            "progress": progress,
        }

    def __getitem__(self, grid: Grid) -> Callable[..., KernelTrace | None]:
        """Return what launches the kernel on so many programs.

        The grid is a number, up to three, or a function of the arguments by name, as in
        ``lambda meta: (triton.cdiv(n, meta["BLOCK"]),)``.
        """

        def launch(*args: Any, **named: Any) -> KernelTrace | None:
            own = {n: v for n, v in named.items() if n in self._options and n not in self.arg_names}
            rest = {name: value for name, value in named.items() if name not in own}
            trace = self._launch("ws.triton", grid, args, rest, own)
            if trace is not None:
                self.traces.append(trace)
            return trace

        return launch

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Refuse a call without a grid, as Triton does."""
        raise InputError(
            f"kernel {self.__name__} is called without a grid; write {self.__name__}[grid](...), with "
            "the number of programs, or up to three"
        )

    def run(self, *args: Any, grid: Grid, warmup: bool = False, **named: Any) -> Any:
        """Launch as decorators above it do, ``triton.heuristics`` say."""
        if warmup:
            return self.warmup(*args, grid=grid, **named)
        return self[grid](*args, **named)

    def warmup(self, *args: Any, grid: Any = None, **named: Any) -> TritonKernel:
        """Return the kernel compiled for the arguments of a launch, without one.

        An autotuner has chosen before, or has one configuration, or takes the first that is left.

        Raises
        ------
        InputError
            If it does not compile.
        """
        what = "ws.triton"
        host, arguments, others = on_device(what, self, args, named)
        others, _ = self._settled(what, grid, arguments, others, host, {}, tunes=False)
        return self._compiled(what, arguments, others, host)

    def _launch(
        self,
        what: str,
        grid: Grid,
        args: Sequence[Any],
        named: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> KernelTrace | None:
        options = {**self._options, **options}
        host, arguments, others = on_device(what, self, args, named)
        host.copy_in()
        try:
            others, _ = self._settled(what, grid, arguments, others, host, options, tunes=True)
            self.compiled = self._compiled(what, arguments, others, host)
            return self.compiled._run(grid, options)
        finally:
            host.copy_out()

    def _compiled(
        self, what: str, args: Sequence[Any], named: Mapping[str, Any], host: HostTensors
    ) -> TritonKernel:
        function = layers(what, self.fn)[-1]
        made = compile_function(what, function, args, named, self.target, host.given)
        return TritonKernel(made, host.device, self.machine_code, host=host)

    def _settled(
        self,
        what: str,
        grid: Grid,
        args: Sequence[Any],
        named: Mapping[str, Any],
        host: HostTensors,
        options: Mapping[str, Any],
        *,
        tunes: bool,
    ) -> tuple[dict[str, Any], Any]:
        """Return the arguments by name with what the decorators add, from the outermost one."""
        result = dict(named)
        for layer in self._above:
            if not is_tuner(layer):
                result |= chosen_by_heuristics(what, layer, args, result, host.given)
                continue
            config = self._choice(what, layer, grid, args, result, host, options, tunes=tunes)
            setting = settings_of(what, config)
            call_hook(what, config, {**self._by_name(args), **result, **setting})
            result |= setting
            self.best_config = config
        return result, self.best_config

    def _by_name(self, args: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.arg_names, args, strict=False))

    def _choice(
        self,
        what: str,
        tuner: Any,
        grid: Grid,
        args: Sequence[Any],
        named: Mapping[str, Any],
        host: HostTensors,
        options: Mapping[str, Any],
        *,
        tunes: bool,
    ) -> Any:
        """Return an autotuner's configuration for the arguments of a launch."""
        for config in tuner.configs:
            for name in settings_of(what, config):
                if name in named:
                    raise InputError(
                        f"{what}: {name} = {shown(named[name])} is given, and the configurations of "
                        "@triton.autotune set it; leave it out"
                    )
        if len(tuner.configs) == 1:
            return tuner.configs[0]
        key = self._key(what, tuner, args, named)
        if key in self.cache:
            return self.cache[key]
        left = pruned(what, tuner, [host.given(one) for one in args], host.given_all(named), grid)
        if len(left) == 1 or not tunes:
            if tunes:
                self.cache[key] = left[0]
            return left[0]
        tuning = Tuning(
            what=what,
            kernel=tuner.fn,
            tuner=tuner,
            grid=grid,
            args=args,
            named=named,
            host=host,
            gpus=[self.gpu],
            targets=[self.target],
            model=self.model,
            simulator=False,
            profiler=self.profiler,
            machine_code=self.machine_code,
            options=options,
        )
        rows = tuning.times_of(left, progress=bool(options.get("progress")))
        self.tuning = tuning.table_of(rows, named=False)
        times = [one[0]["time_us"] for one in rows]
        config = left[int(np.argmin(times))]
        self.cache[key] = config
        reset(what, tuner, {**self._by_name(args), **named, **settings_of(what, config)})
        return config

    def _key(
        self, what: str, tuner: Any, args: Sequence[Any], named: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Return what Triton chooses a configuration by: its key, and the types of arrays."""
        given = {**self._by_name(args), **named}
        given = {name: value for name, value in given.items() if name in self.arg_names}
        values = [given[name] for name in tuner.keys if name in given]
        types = [str(value.dtype) for value in given.values() if hasattr(value, "dtype")]
        key = (*values, *types)
        try:
            hash(key)
        except TypeError as error:
            raise InputError(
                f"{what}: key = {shown(list(tuner.keys))} of @triton.autotune: {error}; name arguments "
                "that are numbers"
            ) from None
        return key

    def __repr__(self) -> str:
        return f"TritonFunction({self.__name__!r}, gpu={self.gpu.name!r}, target={self.target!r})"


@strictly_checked
def launch(
    kernel: Any,
    grid: Grid,
    *args: Any,
    target: str | None = None,
    num_warps: int = 4,
    num_stages: int = 3,
    trace: bool = True,
    sample_blocks: int | str = 1,
    run_others: bool = True,
    order: str | None = None,
    machine_code: bool | None = None,
    gpu: GpuLike | None = None,
    **constexprs: Any,
) -> KernelTrace | None:
    """Compile a Triton kernel, run it without a GPU, and return its trace.

    What ``kernel[grid](*args, ...)`` does on a GPU; read results back with ``np.asarray``.

    Parameters
    ----------
    kernel, args, num_warps, num_stages, machine_code, constexprs
        As for `compile`; a kernel that is autotuned has `num_warps` and `num_stages` of its
        configuration, which is chosen as `TritonFunction` does it, once for each value of its key.
    grid
        Thread blocks: a number, up to three, or a function of the arguments by name, as in
        ``lambda meta: (triton.cdiv(n, meta["BLOCK"]),)``.
    target
        The architecture to compile for; by default that of `gpu`, or ``sm_80`` without one.
    trace
        Whether to trace; without a trace the kernel runs faster and None is returned.
    sample_blocks, run_others, order
        How many thread blocks are recorded, whether the others run, and in which order: as for
        `warpstack.cuda.Kernel.launch`.
    gpu
        The GPU that an autotuner chooses for; by default ``a100``.

    Returns
    -------
    KernelTrace
        Of the machine code, or of the PTX with the registers of the machine code;
        `KernelTrace.code` says which. Compile with `compile` for more options of the launch.

    Raises
    ------
    InputError
        As for `compile`; or if the launch is impossible, or the kernel fails.
    """
    what = "ws.triton.launch"
    tuned = any(map(is_tuner, layers(what, kernel)))
    named = dict(constexprs)
    if not tuned:
        named = {"num_warps": num_warps, "num_stages": num_stages, **constexprs}
    described = as_gpu("a100" if gpu is None else gpu)
    if target is None:
        target = "sm_80" if gpu is None else target_of(what, described)
    function = TritonFunction(kernel, gpu=described, target=target, machine_code=machine_code)
    if tuned:  # keeps its choices
        known = _launched.setdefault(kernel, {})
        function.cache = known.setdefault((described, target, machine_code), function.cache)
    options = {
        "trace": trace,
        "sample_blocks": sample_blocks,
        "run_others": run_others,
        "order": order,
    }
    return function._launch(what, grid, args, named, options)
