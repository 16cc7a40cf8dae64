"""A valid call of everything public, for `test_wrong_arguments`: each argument is then replaced by others."""

from __future__ import annotations

import contextlib
import inspect
import json
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import warpstack as ws
from card_output import output
from ptx_forms import HEADER
from warpstack.cuda.triton_front_end import Compiled

PTX = HEADER + (
    ".visible .entry k(.param .u64 p)\n{\n  .reg .u64 %rd<2>;\n  .reg .u32 %r<2>;\n"
    "  ld.param.u64 %rd1, [p];\n  mov.u32 %r1, 1;\n  st.global.u32 [%rd1], %r1;\n  ret;\n}\n"
)
#: A kernel without parameters.
BARE_PTX = HEADER + ".visible .entry k()\n{\n  ret;\n}\n"


class First:
    """A replacement policy."""

    def __init__(self, sets: int, ways: int) -> None:
        self.way = 0

    def hit(self, set: int, way: int) -> None:
        self.way = way

    def fill(self, set: int, way: int, address: int) -> None:
        self.way = way

    def victim(self, set: int) -> int:
        return self.way


@dataclass
class Call:
    """A function and arguments that it accepts."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Arguments by position after those, where a function takes any number.
    rest: tuple[Any, ...] = ()
    #: Made anew for each call: what to call instead, given the arguments.
    fresh: Callable[[], Callable[..., Any]] | None = None

    def __call__(self, **changes: Any) -> Any:
        function = self.fresh() if self.fresh else self.function
        arguments = {**self.arguments, **changes}
        if not self.rest:
            return function(**arguments)
        # Those before *args go by position.
        signature = inspect.signature(function)
        first = [
            arguments.pop(name)
            for name, p in signature.parameters.items()
            if p.kind is p.POSITIONAL_OR_KEYWORD and name in arguments
        ]
        return function(*first, *self.rest, **arguments)


def public_modules() -> list[types.ModuleType]:
    """Return the package, its public modules, and those below, each once."""
    found: list[types.ModuleType] = [ws]
    for module in found:
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.ismodule(member) and member not in found:
                found.append(member)
    return found


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield every function, class and method that users can call with arguments."""
    seen = set()
    for module in public_modules():
        for name in module.__all__:
            member = getattr(module, name)
            if inspect.isfunction(member) and member not in seen:
                seen.add(member)
                yield f"{member.__module__}.{name}", member
            elif inspect.isclass(member) and member not in seen:
                seen.add(member)
                if issubclass(member, Exception):
                    continue
                yield f"{member.__module__}.{name}", member
                for attribute, value in vars(member).items():
                    if attribute.startswith("_"):
                        continue
                    if inspect.isfunction(value) or isinstance(value, classmethod):
                        label = f"{member.__module__}.{name}.{attribute}"
                        yield label, getattr(member, attribute)


class Given:
    """Small values to make the calls of, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel = ws.patterns.strided(gs=32, iterations=1, blocks=2, warps_per_block=1)
        self.app = ws.App([self.kernel], "strided")
        self.gpu = ws.gpu("gpumech-baseline").replace(num_sms=2, l2_size_kib=96)
        self.axes = {"num_sms": [1, 2], "clock_ghz": [1.0, 2.0]}
        self.points = ws.exploration.samples.saltelli(
            {"num_sms": (1, 4), "clock_ghz": (1.0, 2.0)}, 2
        )
        self.sweep = ws.sweep(self.app, self.gpu, self.axes, cache=False)
        self.line = ws.sweep(self.app, self.gpu, {"num_sms": [1, 2]}, cache=False)
        self.sampled = ws.sweep(self.app, self.gpu, self.points, cache=False)
        self.swung = ws.sweep(
            self.app, self.gpu, ws.exploration.one_at_a_time(self.gpu, self.axes), cache=False
        )
        self.predicted = ws.predict(self.app, self.gpu)
        self.memory = ws.simulate_caches(self.kernel, self.gpu)
        self.profile = ws.interval_profile(self.kernel, self.gpu)
        self.result = ws.simulate(self.kernel, self.gpu, timeline=True)
        self.concurrent = ws.simulate(self.kernel, self.gpu, concurrent=True)
        self.reuse = ws.memory.reuse_profile([1, 2, 1, 2, 3])
        self.validated = ws.validate(self.predicted, self.predicted[["kernel", "cycles"]])
        self.what_if = ws.validation.what_if(
            self.kernel, self.gpu, changes={"more": {"num_sms": 4}}
        )
        self.dvfs = ws.models.dvfs(self.kernel, self.gpu, [0.5, 1.0])
        self.roofline = ws.models.roofline(self.kernel, self.gpu)
        self.device = ws.cuda.Device(0.01)
        self.array = self.device.array(np.zeros(8, np.float32))
        path = folder / "k.ptx"
        path.write_text(PTX)
        self.module = ws.cuda.compile(path, device=self.device)
        self.listing = ".sass 1\n.target sm_80\n.kernel k\n.needs 8 0 0 1024\n0 0:0 EXIT\n.end\n"
        self.machine_module = ws.cuda.MachineModule(self.listing, "k.sass", self.device)
        self.session = ws.workloads.Session(self.module, trace=False)
        self.described = ws.models.mwp_cwp.describe_trace(self.kernel, self.gpu)
        self.machine = ws.models.mwp_cwp.machine("quadro-fx5600")
        self.estimate = ws.models.mwp_cwp.predict(self.described, self.machine)
        self.timeline = ws.timeline(self.kernel, self.gpu)
        self.operations = pd.DataFrame(
            {"operation": ["kernel", "device_synchronize"], "kernel": [0, -1]}
        )
        self.table = pd.DataFrame({"kernel": [1], "cycles": [100.0], "model": "closed_network"})
        self.csv = folder / "reference.csv"
        self.table.to_csv(self.csv, index=False)
        self.ncu_csv = folder / "ncu.csv"
        self.ncu_csv.write_text("ID,Kernel Name,sm__cycles_elapsed.max\n,,cycle\n0,k,5\n")
        self.timeline_json = folder / "timeline.json"
        event = {"cat": "kernel", "name": self.kernel.name, "ts": 1, "dur": 2}
        self.timeline_json.write_text(json.dumps({"traceEvents": [event]}))
        self.seen = ws.validation.reference.read_timeline(self.timeline_json)
        self.yaml = folder / "g.yaml"
        self.yaml.write_text("based_on: pascal-mdm\nnum_sms: 4\n")
        self.config = folder / "gpgpusim.config"
        self.config.write_text("-gpgpu_n_clusters 2\n")
        self.trace_config = folder / "trace.config"
        self.trace_config.write_text("-trace_opcode_latency_initiation_int 4,2\n")
        self.measured = folder / "run.txt"
        self.measured.write_text(output())
        self.calibration = ws.calibration.calibrate(self.measured)
        self.saved = folder / "saved"
        ws.save(self.app, self.saved)
        self.store = ws.exploration.StageCache(folder / "cache")


def calls(given: Given) -> dict[str, Call]:
    """Return a call of everything that `public_callables` yields, by its name."""
    g = given
    app = {"app": g.kernel, "gpu": g.gpu}
    kernel = {"kernel": g.kernel, "gpu": g.gpu}
    stream = {"lines": [1, 2, 1]}
    pair = {"predicted": [1.0, 2.0], "reference": [1.0, 2.0]}
    ranges = {"ranges": {"num_sms": (1, 4)}, "n": 4}
    builder = {"name": "k", "grid": 1, "block": 32}
    t = ws.patterns.KernelBuilder(**builder)
    instruction = t.instruction("IADD", dst=1, src=2)
    index = ws.models.mwp_cwp.symbols("t i")[0]
    static = {"kernel": g.module.kernel("k"), "grid": 1, "block": 32, "gpu": g.machine}
    fields = {name: getattr(g.described, name) for name in vars(g.described)}
    return_values: dict[Any, tuple[dict[str, Any], Any]] = {}

    def add(function: Any, fresh: Any = None, **arguments: Any) -> None:
        return_values[function] = (arguments, fresh)

    add(ws.App, kernels=[g.kernel], name="a")
    add(ws.App.select, self=g.app, launch_ids=1)
    add(ws.App.info, self=g.app)
    add(
        ws.Options,
        selection="max",
        misses="per_pc",
        merge_threshold=1.0,
        access_order="greedy",
        flush_l2=True,
        initial_l2=0.5,
        sample_sms=0.5,
        sample_launches=0.5,
        profiler="ncu",
    )
    add(ws.memory.BlockSchedule, policy="random", seed=1, first_occupancy_only=True)
    add(ws.models.CrispCounters, cycles=4.0, load_critical=1.0, load_stall=1.0, store_stall=1.0)
    add(ws.models.CrispCounters.of, result=g.result)
    add(
        ws.models.CrispCounters.relative_time,
        self=ws.models.CrispCounters(4, 1, 1, 1),
        clock_ratio=0.5,
    )
    add(
        ws.Gpu,
        name="g",
        description="",
        **g.gpu.values(),
        sources={},
        confidences={},
        unused_options=(),
    )
    add(ws.Gpu.replace, self=g.gpu, **g.gpu.values())
    add(ws.Gpu.fields)
    add(ws.Gpu.ranges)
    add(ws.Gpu.values, self=g.gpu)
    add(ws.Gpu.from_file, path=g.yaml)
    add(ws.Gpu.diff, self=g.gpu, other="a100")
    add(ws.Gpu.to_yaml, self=g.gpu, path=g.folder / "written.yaml")
    add(ws.Gpu.from_gpgpusim, path=g.config, trace_config=g.trace_config, name="g")
    launch = (ws.interval.profile.Wave(1, 1, 1, 1),)
    add(ws.IntervalProfile, core=g.profile._core, launch=launch, kernel=1, name="x")
    add(
        ws.IntervalProfile.from_arrays,
        instructions=[1, 2],
        stall_cycles=[1, 2],
        read_misses=[1, 1],
        write_requests=0,
        dram_requests=[1, 1],
        memory_instructions=[1, 1],
        warps=2,
        active_sms=1,
        stall_causes=[1, 0, 0, 0],
        name="x",
    )
    add(ws.IntervalProfile.waves, self=g.profile, gpu=g.gpu)
    add(ws.IntervalProfile.phases, self=g.profile, gpu=g.gpu)
    add(ws.KernelTrace, core=g.kernel._core)
    add(ws.KernelTrace.dpki, self=g.kernel, line_bytes=128)
    add(ws.KernelTrace.changed, self=g.kernel, change="coalesced", rows=[0])
    add(ws.KernelTrace.blocks, self=g.kernel)
    add(ws.KernelTrace.warp, self=g.kernel, block=0, warp=0)
    add(ws.MemoryProfile, core=g.memory._core, kernel=g.kernel, gpu=g.gpu, access_order="greedy")
    add(ws.MemoryProfile.hit_rates, self=g.memory)
    add(ws.MemoryProfile.hit_rate_errors, self=g.memory)
    add(ws.MemoryProfile.divergence, self=g.memory)
    add(ws.MemoryProfile.to_frame, self=g.memory)
    add(
        ws.memory.MemorySystem,
        gpu=g.gpu,
        blocks="random",
        access_order="greedy",
        filter_l1_hits=True,
        workers=1,
        initial_l2="dirty",
    )
    add(
        ws.memory.MemorySystem.run,
        self=ws.memory.MemorySystem(g.gpu),
        kernel=g.kernel,
        observe=(0, 0),
    )
    add(ws.memory.MemorySystem.warm, self=ws.memory.MemorySystem(g.gpu), kernel=g.kernel)
    add(ws.memory.MemorySystem.undo_sampled, self=ws.memory.MemorySystem(g.gpu))
    add(ws.memory.MemorySystem.flush_l2, self=ws.memory.MemorySystem(g.gpu))
    reuse = g.reuse
    rates = {"l1_read_hit_rate": 0.5, "l1_write_hit_rate": 0.5, "l2_hit_rate": 0.5}
    add(ws.memory.PptGpuMem, **rates, totals={}, l1=reuse, l2=reuse)
    add(ws.Prediction, **vars(ws.models.evaluate(g.profile, g.gpu)))
    histogram = next(value for value in vars(reuse).values() if "Histogram" in type(value).__name__)
    add(ws.memory.ReuseProfile, accesses=5, histogram=histogram, sample_lines=1.0, line_bytes=128)
    add(ws.memory.ReuseProfile.from_lines, lines=[1, 2, 1], sample_lines=1.0, batches=2, seed=0)
    for name in ("hit_rate", "hit_rate_error"):
        add(getattr(ws.memory.ReuseProfile, name), self=reuse, size_lines=[1, 2])
    for name in ("sdcm", "sdcm_error"):
        add(getattr(ws.memory.ReuseProfile, name), self=reuse, ways=2, lines=4)
    add(ws.memory.ReuseProfile.cumulative, self=reuse)
    add(ws.SimulationResult, core=g.result._core, kernel=g.kernel, gpu=g.gpu)
    add(ws.SimulationResult.hit_rates, self=g.result)
    add(ws.SimulationResult.to_frame, self=g.result)
    add(ws.SimulationResult.to_perfetto, self=g.result, path=g.folder / "timeline.json")
    program = {"model": "closed_network", "operations": g.operations}
    add(ws.timeline, app=g.app, gpu=g.gpu, **program, flush_l2=True)
    add(ws.Timeline, app=g.app, gpu=g.gpu, **program, options=ws.Options())
    add(ws.Timeline.what_if, self=g.timeline, names=["pinned"])
    add(ws.Timeline.to_perfetto, self=g.timeline, path=g.folder / "program.json")
    part = {"iterations": 1, "iteration": 1, "between_us": (0.0, 9.0)}
    add(ws.Timeline.compare, self=g.timeline, measured=g.seen, **part)
    add(ws.timelines.TimelineComparison, timeline=g.timeline, measured=g.seen, **part)
    compared = g.timeline.compare(g.seen)
    add(ws.timelines.TimelineComparison.to_perfetto, self=compared, path=g.folder / "both.json")
    add(ws.timing.Simulator, gpu=g.gpu, initial_l2=0.5)
    simulator = ws.timing.Simulator(g.gpu)
    add(
        ws.timing.Simulator.run, self=simulator, kernel=g.kernel, timeline_cycles=9, max_cycles=9999
    )
    add(
        ws.timing.Simulator.run_concurrently,
        self=simulator,
        kernels=[g.kernel, g.kernel],
        streams=[0, 1],
        priorities=[0, 1],
        after_trigger=[[], [0]],
        timeline_cycles=9,
        max_cycles=9999,
    )
    add(
        ws.timing.ConcurrentResult,
        core=g.concurrent._core,
        grids=g.concurrent._grids,
        kernels=[g.kernel],
        streams=[0],
        gpu=g.gpu,
        profiler="nsys",
    )
    add(ws.timing.ConcurrentResult.hit_rates, self=g.concurrent)
    add(ws.timing.ConcurrentResult.to_frame, self=g.concurrent)
    add(ws.timing.Simulator.flush_l2, self=simulator)
    add(ws.exploration.StageCache, folder=g.folder / "c2", limit_bytes=1e6)
    add(ws.exploration.StageCache.get, self=g.store, stage="memory", key="ab")
    add(
        ws.exploration.StageCache.put,
        self=g.store,
        stage="memory",
        key="ab",
        arrays={"x": np.zeros(2)},
    )
    add(ws.exploration.StageCache.summary, self=g.store)
    add(ws.exploration.StageCache.clear, self=g.store)
    add(ws.memory.ablate, **app, flush_l2=True, workers=1)
    add(ws.models.application_totals, predictions=g.predicted)
    add(ws.memory.cache_family, **stream, sets=[1, 2], max_ways=2)
    add(ws.cuda.Device, memory_gib=0.01, print_to=print)
    for name in ("array", "copy_from"):
        owner = {"array": ws.cuda.Device, "copy_from": ws.cuda.DeviceArray}[name]
        own = g.device if name == "array" else g.array
        add(getattr(owner, name), self=own, values=np.zeros(8, np.float32))
    for name in ("empty", "zeros"):
        add(getattr(ws.cuda.Device, name), self=g.device, shape=(2,), dtype=np.float32)
        add(getattr(ws.cuda, name), shape=(2,), dtype="f4", device=g.device)
    add(ws.cuda.Device.next_launch, self=g.device)
    add(ws.cuda.DeviceArray, device=g.device, shape=(2,), dtype=np.dtype("f4"))
    add(ws.cuda.DeviceArray.to_host, self=g.array)
    add(ws.cuda.DeviceArray.data_ptr, self=g.array)
    add(ws.cuda.DeviceArray.stride, self=g.array, dim=0)
    add(ws.cuda.DeviceArray.zero_, self=g.array)
    add(ws.cuda.DeviceArray.clone, self=g.array)
    add(ws.cuda.DeviceArray.copy_, self=g.array, source=g.array)
    add(ws.cuda.Kernel, module=g.module, name="k")
    add(
        ws.cuda.Kernel.launch,
        self=g.module.kernel("k"),
        grid=1,
        block=32,
        rest=(g.array,),
        shared_memory_bytes=0,
        step_limit=1000,
        registers_per_thread=8,
    )
    add(ws.cuda.Module, text=PTX, file="k.ptx", device=g.device)
    add(ws.cuda.Module.kernel, self=g.module, name="k")
    add(ws.cuda.Module.symbol, self=g.module, name="s", dtype="f4")
    texture = ws.cuda.texture(g.array)
    add(ws.cuda.Module.bind_texture, self=g.module, name="t", source=texture)
    add(ws.cuda.MachineModule, text=g.listing, file="k.sass", device=g.device)
    add(ws.cuda.MachineModule.instructions, self=g.machine_module, kernel="k")
    add(ws.cuda.load_cubin, source=b"\x7fELF", device=g.device)
    add(ws.cuda.Texture, source=g.array, handle=1)
    add(ws.cuda.array, values=[1.0], device=g.device)
    add(ws.cuda.compile, source=PTX, arch="sm_75", options=(), compiler="nvcc", device=g.device)
    add(ws.cuda.compilers)
    add(ws.cuda.default_device)
    add(
        ws.cuda.tensor_map,
        source=g.array,
        box=[4],
        swizzle=0,
        element_strides=[1],
        element="float32",
        fill="zeros",
    )
    add(
        ws.cuda.texture,
        source=g.array,
        filter_mode="point",
        address_mode="clamp",
        normalized_coordinates=False,
        normalized_read=False,
        layered=False,
        cube=False,
    )
    made = Compiled("k", BARE_PTX, b"", "sm_80", 1, 1, 1, 0, 0, 8, False, (), {})
    add(ws.triton.TritonKernel, compiled=made, device=g.device)
    add(
        ws.triton.TritonKernel.launch,
        self=ws.triton.TritonKernel(made, g.device),
        grid=1,
        step_limit=1000,
    )
    function = ws.triton.TritonFunction.__new__(ws.triton.TritonFunction)
    vars(function).update(
        fn=None, arg_names=(), target="sm_80", machine_code=None, _above=[], _options={}
    )
    function.best_config = None
    function.__name__ = "k"
    add(ws.triton.TritonFunction, kernel=None, gpu=g.gpu, target="sm_80", order="blocks")
    add(ws.triton.TritonFunction.warmup, self=function, grid=1)
    add(ws.triton.TritonFunction.run, self=function, grid=1)
    add(ws.triton.compile, kernel=None, target="sm_80", num_warps=4, num_stages=3)
    add(ws.triton.launch, kernel=None, grid=1, target="sm_80", num_warps=4, num_stages=3)
    add(ws.triton.tune, kernel=None, grid=1, args=(), configs=[{}], gpu=g.gpu, target="sm_80")
    add(
        ws.numba.NumbaKernel,
        name="k",
        ptx=BARE_PTX,
        types=(),
        device=g.device,
        target="sm_80",
        machine_code=False,
    )
    add(
        ws.numba.NumbaKernel.launch,
        self=ws.numba.NumbaKernel("k", BARE_PTX, (), g.device, "sm_80", machine_code=False),
        grid=1,
        block=32,
        step_limit=1000,
        registers_per_thread=8,
    )
    add(ws.numba.compile, kernel=None, signature=None, target="sm_80", device=g.device)
    add(ws.numba.launch, kernel=None, grid=1, block=32, target="sm_80", shared_memory_bytes=0)
    add(ws.calibration.calibrate, path=g.measured, base="rtx3080", name="mine")
    add(ws.calibration.Calibration, **vars(g.calibration))
    add(ws.calibration.Calibration.to_frame, self=g.calibration)
    add(
        ws.calibration.Calibration.save,
        self=g.calibration,
        path=g.folder / "mine.yaml",
        overwrite=True,
    )
    add(
        ws.models.program_gains,
        **app,
        models=["closed_network"],
        changes=["coalesced"],
        rows=[0],
        simulate=False,
    )
    add(ws.models.changes_that_apply, **app, rows=[0])
    add(ws.models.dvfs, **app, clocks_ghz=[1.0, 0.5], models=["gpumech", "crisp"])
    add(ws.plot.explore, **app, models=["closed_network"], fields={"num_sms": [1, 2]})
    add(ws.gpu, name_or_path="pascal-mdm")
    add(ws.gpus)
    add(ws.cuda.host.Run, launches=1, traced=1, instructions=1, status=0, errors=())
    run = ws.cuda.host.Run(launches=1, traced=1, instructions=1, status=0, errors=())
    add(ws.cuda.host.Run.problem, self=run)
    add(
        ws.cuda.host.trace_program,
        command=["/bin/true"],
        output=g.folder / "traced",
        gpu=g.gpu,
        kernel="k",
        limit_launches=1,
        device_memory_mib=16.0,
        overwrite=True,
    )
    add(
        ws.interval_profile,
        **kernel,
        memory=g.memory,
        selection="max",
        representative=(0, 0),
        misses="per_pc",
        merge_threshold=0,
        workers=1,
    )
    for name in ("line_stream", "reuse_profile"):
        first = "kernel" if name == "line_stream" else "kernel_or_lines"
        more = {} if name == "line_stream" else {"sample_lines": 1.0, "batches": 2, "seed": 1}
        chosen = {first: g.kernel, "gpu": g.gpu, "level": "l2", "line_bytes": 128}
        add(getattr(ws.memory, name), **chosen, filtered=True, **more)
    add(ws.load, path=g.saved, kernels=[1], memory_limit_mib=64.0)
    add(ws.validation.measures.PercentageError, value=0.1, excluded=0)
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    add(
        ws.validation.measures.error_table,
        predicted=frame,
        reference=frame,
        columns=["x"],
        nan="omit",
    )
    for name in ("gmean_ratio", "mae", "mape", "pearson", "spearman"):
        add(getattr(ws.validation.measures, name), **pair, nan="raise")
    add(ws.validation.measures.nrmse, **pair, by="mean", nan="raise")
    add(ws.models.evaluate, profile=g.profile, gpu=g.gpu, model="closed_network")
    add(ws.models.fields_used, models=["closed_network"])
    add(ws.models.names)
    add(ws.models.stack_details, result=g.result)
    add(
        ws.predict,
        **app,
        models=["closed_network"],
        selection="max",
        misses="representative",
        merge_threshold=1.0,
        access_order="greedy",
        flush_l2=True,
        sample_launches=0.5,
        client=None,
    )

    def made(owner: Any, name: str, remove: Any) -> Any:
        def register(**arguments: Any) -> None:
            try:
                return getattr(owner, name)(**arguments)
            finally:
                remove(arguments.get("name"))

        return lambda: register

    def remove(module: Any) -> Any:
        def undo(name: Any) -> None:
            with contextlib.suppress(ws.InputError):
                module.unregister(name)

        return undo

    cycles = {"cycles": lambda intervals, wave, gpu: {"base": 1.0}}
    add(
        ws.models.register,
        made(ws.models, "register", remove(ws.models)),
        name="mine",
        **cycles,
        fields=["num_sms"],
    )
    add(ws.models.unregister, name="mine")
    reader = {"matches": lambda path: False, "read": lambda path: g.app}
    add(ws.io.register, made(ws.io, "register", remove(ws.io)), name="mine", **reader)
    add(ws.io.unregister, name="mine")
    add(ws.models.mwp_cwp.Estimate, **vars(g.estimate))
    add(ws.models.mwp_cwp.Estimate.to_frame, self=g.estimate)
    add(ws.models.mwp_cwp.Expression, terms=None)
    add(ws.models.mwp_cwp.Expression.of, value=3)
    add(ws.models.mwp_cwp.Expression.substitute, self=index, values={"t": 1})
    add(ws.models.mwp_cwp.Expression.step, self=index)
    add(ws.models.mwp_cwp.Fit, machine=g.machine, table=frame, error_percent=1.0)
    add(ws.models.mwp_cwp.KernelDescription, **fields)
    add(ws.models.mwp_cwp.KernelDescription.replace, self=g.described, **fields)
    add(ws.models.mwp_cwp.KernelDescription.of_paths, paths=[g.described, g.described])
    machine = {name: getattr(g.machine, name) for name in vars(g.machine)}
    add(ws.models.mwp_cwp.Machine, **machine)
    add(ws.models.mwp_cwp.Machine.replace, self=g.machine, **machine)
    blocks = {"threads_per_block": 128, "registers_per_thread": 8, "shared_memory_bytes": 64}
    add(ws.models.mwp_cwp.Machine.active_blocks_per_sm, self=g.machine, **blocks)
    add(ws.models.mwp_cwp.Machine.from_gpu, gpu=g.gpu)
    add(ws.models.mwp_cwp.Transactions, count=1, size_bytes=64)
    counts = {"trip_counts": {}, "executions": {}, "parameters": {}}
    add(ws.models.mwp_cwp.describe_ptx, **static, **counts, active_blocks_per_sm=1)
    add(ws.models.mwp_cwp.describe_trace, **kernel, active_blocks_per_sm=1)
    bench = {
        f"{name} {coalesced}": (
            ws.models.mwp_cwp.microbenchmark(name, coalesced=coalesced),
            1e6 if coalesced else 3e6,
        )
        for name in ws.models.mwp_cwp.MICROBENCHMARKS
        for coalesced in (True, False)
    }
    add(ws.models.mwp_cwp.fit, measurements=bench, gpu=g.machine)
    add(ws.models.mwp_cwp.is_coalesced, index=index, size=4)
    add(ws.models.mwp_cwp.transactions, index=index, size=4)
    add(ws.models.mwp_cwp.m_factor, opcode="div.f32")
    add(ws.models.mwp_cwp.machine, name="quadro-fx5600")
    add(ws.models.mwp_cwp.machines)
    add(
        ws.models.mwp_cwp.microbenchmark,
        name=next(iter(ws.models.mwp_cwp.MICROBENCHMARKS)),
        coalesced=True,
        threads_per_block=128,
        num_blocks=80,
        active_blocks_per_sm=5,
        iterations=10,
        uncoal_per_mw=32,
    )
    add(ws.models.mwp_cwp.predict, kernel=g.described, gpu=g.machine, mwp=2.0)
    add(ws.models.mwp_cwp.static_instructions, kernel=static["kernel"], **counts, block=32)
    add(ws.models.mwp_cwp.symbols, names="t i")
    add(ws.memory.occupancy, **kernel)
    add(ws.memory.register_policy, name="first", policy=First)
    add(ws.exploration.one_at_a_time, gpu=g.gpu, axes=g.axes)
    add(ws.patterns.Instruction, row=0, pc=0, opcode="IADD")
    sizes = {"registers_per_thread": 8, "shared_memory_bytes": 0, "launch_id": 1}
    add(ws.patterns.KernelBuilder, **builder, **sizes)
    add(ws.patterns.KernelBuilder.instruction, self=t, opcode="IADD", dst=1, src=[2], pc=4096)
    lanes = {"where": True, "predicate": np.ones(32, bool)}
    load = {"opcode": "LDG.E", "dst": 1, "src": [2], "address": np.arange(32) * 4, "pc": 512}
    add(ws.patterns.KernelBuilder.issue, self=t, instruction=instruction, **lanes)
    add(ws.patterns.KernelBuilder.emit, self=t, **load, **lanes)
    add(
        ws.patterns.KernelBuilder.build,
        lambda: ws.patterns.KernelBuilder(**builder).build,
    )
    small = {"blocks": 1, "warps_per_block": 1, "base": 2**30}
    add(ws.patterns.gather, loads=1, **small, footprint_mib=1.0, seed=1)
    add(ws.patterns.stream, loads=1, **small)
    add(ws.patterns.strided, gs=1, iterations=1, **small, launch_id=2)
    axis = {"axis": "num_sms"}
    titled = {"ax": None, "title": "x"}
    at = {"clock_ghz": 1.0}
    axes_xy = {"x": "num_sms", "y": "clock_ghz", "model": "closed_network", "where": {}}
    add(
        ws.plot.axis_stacks,
        table=g.sweep,
        **axis,
        where=at,
        normalise_to="closed_network",
        **titled,
    )
    add(ws.plot.bottlenecks, table=g.sweep, **axes_xy, **titled)
    add(ws.plot.cpi_stack, predictions=g.predicted, **titled, legend=True)
    add(ws.plot.time_stack, predictions=g.predicted, **titled, legend=True)
    add(ws.plot.cpi_stacks, predictions=g.predicted, title="x")
    add(ws.plot.curves, table=g.sweep, **axis, metric="ipc", where=at, **titled)
    add(ws.plot.dvfs, table=g.dvfs, power_watts=lambda clock: clock, **titled)
    add(ws.plot.errors, table=g.validated, by=None, limit_percent=10.0, **titled)
    add(ws.plot.heat_map, table=g.sweep, **axes_xy, metric="ipc", limits=(0.0, 1.0), **titled)
    add(ws.plot.pareto, table=g.sweep, cost="num_sms", gpu=g.gpu, metric="ipc", **titled)
    add(ws.plot.roofline, table=g.roofline, **titled)
    add(ws.plot.scatter, table=g.validated, **titled)
    add(ws.plot.agreement, table=g.validated, by=None, limit_percent=10.0, title="x")
    add(ws.plot.timeline, samples=g.result.timeline)
    add(ws.plot.operations, timeline=g.timeline)
    base = {"num_sms": 1, "clock_ghz": 1.0}
    add(
        ws.plot.sensitivity,
        table=g.swung,
        metric="cycles",
        method="swing",
        baseline=base,
        **titled,
    )
    add(
        ws.plot.speedup,
        table=g.sweep,
        **axis,
        baseline=base,
        model="closed_network",
        where=at,
        **titled,
    )
    add(ws.plot.stack_distances, profiles={"a": g.reuse}, capacities={"L1": 4}, **titled)
    add(ws.exploration.point_totals, table=g.sweep)
    add(ws.memory.ppt_gpu_mem, **kernel)
    add(ws.validation.reference.ncu_metrics)
    add(ws.validation.reference.read, path=g.csv)
    add(ws.validation.reference.read_ncu, path=g.ncu_csv)
    add(ws.validation.reference.read_timeline, path=g.timeline_json)
    add(
        ws.lines,
        **app,
        model="closed_network",
        simulate=True,
        per_instruction=True,
        inlined="own",
        flush_l2=True,
    )
    page = {"path": g.folder / "report.html", "models": ["closed_network"], "source": None}
    add(ws.report, **app, **page)
    add(ws.interval.representative_warp, kernel=g.kernel, selection="max", workers=1)
    add(ws.models.roofline, **app, models=["closed_network"], simulate=True)
    sampled = {"method": "random", "seed": 0, "base": 1}
    add(
        ws.exploration.samples.Samples,
        points=[{"num_sms": 1}],
        ranges={"num_sms": (1, 4)},
        **sampled,
    )
    for name in ("latin_hypercube", "random", "saltelli", "sobol"):
        add(getattr(ws.exploration.samples, name), **ranges, seed=0)
    saving = {"format": "accelsim", "binary_version": 70, "compression": None, "overwrite": True}
    add(ws.save, app=g.app, path=g.folder / "saved2", **saving)
    add(
        ws.search,
        **app,
        space={"num_sms": [1, 2]},
        objective="cycles",
        budget=4,
        constraint="num_sms > 0",
        maximise=False,
        model="closed_network",
        method="auto",
        seed=0,
        workers=1,
        cache=False,
        anchor="mdm",
    )
    counted = {"per_instruction": True, "timeline": True}
    add(
        ws.simulate,
        **app,
        flush_l2=True,
        initial_l2="dirty",
        timeline_cycles=10,
        max_cycles=100_000,
        client=None,
        **counted,
    )
    add(
        ws.simulate_caches,
        **app,
        flush_l2=True,
        initial_l2="clean",
        observe=(0, 0),
        blocks="round_robin",
        access_order="greedy",
        workers=1,
    )
    add(ws.exploration.to_xarray, table=g.sweep)
    add(ws.exploration.sobol_indices, table=g.sampled, metric="ipc")
    add(ws.exploration.speedups, table=g.sweep, baseline=base, model="closed_network")
    add(ws.memory.stack_distances, **stream)
    add(
        ws.sweep,
        app=g.app,
        gpu=g.gpu,
        axes={"num_sms": [1]},
        models="closed_network",
        workers=1,
        client=None,
        store=None,
        resume=True,
        cache=False,
        anchor="simulate",
        selection="max",
        misses="per_pc",
        merge_threshold=0.0,
        access_order="greedy",
        flush_l2=True,
    )
    rows = {"axes": {"num_sms": [1]}, "models": "closed_network", "cache": False}
    ws.exploration.sweep_to_store(g.app, g.gpu, store=g.folder / "rows", **rows)
    add(
        ws.exploration.sweep_to_store,
        app=g.app,
        gpu=g.gpu,
        **rows,
        store=g.folder / "rows",
        part=(0, 1),
        workers=1,
        client=None,
        anchor=None,
        selection="clustering",
        misses="per_pc",
        merge_threshold=0.0,
        access_order="auto",
        flush_l2=False,
    )
    add(ws.exploration.open_store, store=g.folder / "rows")
    add(ws.exploration.swings, table=g.swung, metric="cycles", baseline=base)
    add(ws.timing.as_table, results=g.result)
    add(
        ws.validate,
        predictions=g.table.assign(app="a"),
        reference=g.table[["kernel", "cycles"]],
        metric="cycles",
        match="number",
        clock_ghz=1.0,
        suites={"a": "s"},
        classes={"a": "MD"},
    )
    add(ws.validation.validation_errors, table=g.validated, by="app", pairs="kernel")
    add(
        ws.validation.pair_errors,
        table=g.validated,
        versions={"strided_gs32": "k"},
        least=0.1,
        within=0.15,
    )
    more_sms = {"more": {"num_sms": 4}}
    add(
        ws.validation.what_if,
        **app,
        models=["closed_network"],
        changes=more_sms,
        simulate=True,
        flush_l2=True,
    )
    add(ws.compare, first=g.app, second=g.app, gpu=g.gpu, model="closed_network", profiler="nsys")
    add(ws.validation.what_if_agreement, table=g.what_if, within=3.0)
    add(ws.workloads.Session, module=g.module, trace=False)
    add(ws.workloads.Session.array, self=g.session, x=[1.0])
    add(ws.workloads.Session.zeros, self=g.session, shape=2, dtype="f4")
    add(ws.workloads.Session.symbol, self=g.session, name="s", dtype="f4")
    add(ws.workloads.Session.launch, self=g.session, kernel="k", grid=1, block=1, rest=(g.array,))
    workload = ws.workloads.get("spmv")
    add(ws.workloads.Workload, **vars(workload))
    add(ws.workloads.Workload.parameters, self=workload, size={"rows": 1})
    few = {"rows": 64, "entries_per_row": 2}
    for name in ("check", "load", "run"):
        add(getattr(ws.workloads, name), name="spmv", size=few, seed=0)
    outputs = {"x": np.zeros(2)}
    add(ws.workloads.compare, workload=workload, outputs=outputs, expected=outputs)
    add(ws.workloads.get, name="spmv")
    add(ws.workloads.machine_codes)
    add(ws.workloads.names)
    add(ws.workloads.table)

    made_calls = {}
    for name, function in public_callables():
        if function not in return_values:
            continue
        arguments, fresh = return_values[function]
        rest = arguments.pop("rest", ())
        made_calls[name] = Call(name, function, arguments, rest, fresh)
    return made_calls
