"""A card that `calibrate.cu` runs on, played by the simulator: its kernels, timed on a known `Gpu`.

The kernels are those of the program, as PTX. What the program takes with the SM's counter or with events is
the simulated time of the launch here, from which only differences are used in both cases. The points are
fewer than the program's, and set-up kernels (rings, flushes) are run but not timed.
"""

import numpy as np

import warpstack as ws

CLASSES = ("integer", "fp32", "fp16", "fp64", "sfu", "conversion")
OPERANDS = {"fp32": np.float32(0.5), "sfu": np.float32(2), "issue": np.float32(0.5), "fp64": 0.5}
LINE = 128


class SimulatedCard:
    """Runs the kernels of the module on a simulated GPU, and keeps the lines of the output."""

    def __init__(self, module, gpu):
        self.module, self.gpu = module, gpu
        self.lines = []
        self.clocks = ws.cuda.zeros(2 * 64 * 2048, np.int64)
        self.sink = ws.cuda.zeros(4096, np.uint64)

    def emit(self, key, value, unit, **parameters):
        texts = "".join(f" {name}={number}" for name, number in parameters.items())
        self.lines.append(f"{key}{texts} {value} {unit}")

    def trace(self, kernel, grid, block, *arguments, shared=0):
        return self.module.kernel(kernel).launch(
            grid, block, *arguments, shared_memory_bytes=shared
        )

    def cycles(self, *launch, **options):
        """Return the cycles up to the end of the last warp, whose counter does not see its stores' end."""
        gpu = self.gpu.replace(kernel_end="last_warp", store_acknowledgement="none")
        return self.simulated(gpu, *launch, **options)

    def simulated(self, gpu, kernel, grid, block, *arguments, shared=0, warm=False, behind=None):
        """Return the cycles of a launch; `warm`: it runs twice; `behind`: behind another trace."""
        trace = self.trace(kernel, grid, block, *arguments, shared=shared)
        simulator = ws.timing.Simulator(gpu)
        if warm:
            simulator.run(trace)
        if behind is not None:
            simulator.run(behind)
        return simulator.run(trace).cycles

    def nanoseconds(self, *launch, **options):
        return self.between_events(self.simulated(self.gpu, *launch, **options))

    def between_events(self, cycles):
        return cycles / self.gpu.clock_ghz + self.gpu.launch_us_events * 1e3

    PARTS = (
        "clock",
        "chains",
        "near_memories",
        "l1",
        "l2_and_dram_latency",
        "bandwidth",
        "misses_in_flight",
        "memory_instructions",
        "atomics",
        "l2_writes",
        "l2_contents",
        "launch",
        "dispatch",
        "ends_of_blocks",
        "straight_code",
    )

    @property
    def full_grid(self):
        return self.gpu.num_sms * (self.gpu.threads_per_sm // 256)

    def run(self, parts=PARTS):
        """Measure everything, or some parts, and return the text that the program would print."""
        self.emit("warpstack-calibration", 1, "format")
        self.describe()
        for part in parts:
            getattr(self, part)()
        self.emit("end", len(self.lines), "lines")
        return "\n".join(self.lines) + "\n"

    def describe(self):
        gpu = self.gpu
        self.emit("device.name", "Simulated_card", "text")
        self.emit("device.capability", "9.0", "version")
        self.emit("device.driver", "13.0", "version")
        self.emit("device.runtime", "13.0", "version")
        self.emit("device.sms", gpu.num_sms, "count")
        self.emit("device.clock", round(gpu.clock_ghz * 1e6), "kHz")
        self.emit("device.threads_per_sm", gpu.threads_per_sm, "count")
        self.emit("device.blocks_per_sm", gpu.blocks_per_sm, "count")
        self.emit("device.registers_per_sm", gpu.registers_per_sm, "count")
        self.emit("device.shared_per_sm", int(gpu.shared_memory_kib_per_sm * 1024), "bytes")
        self.emit("device.shared_reserved", gpu.shared_memory_reserved_bytes, "bytes")
        self.emit("device.l2_size", int(gpu.l2_size_kib * 1024), "bytes")
        self.emit("device.memory_clock", round(gpu.dram_bandwidth_gbs * 1e9 * 8 / 256 / 2e3), "kHz")
        self.emit("device.memory_bus", 256, "bits")

    def chain(self, name, length, warps, iterations):
        value = OPERANDS.get(name, 3)
        kernel = f"{name}_{length}" if warps == 1 else f"{name}_wide_{length}"
        return self.cycles(kernel, 1, 32 * warps, self.clocks, self.sink, value, value, iterations)

    def clock(self):
        arguments = (self.clocks, self.sink, np.float32(0.5), np.float32(0.25))
        for iterations in (4, 12):
            taken = self.cycles("fp32_64", self.gpu.num_sms, 256, *arguments, iterations)
            self.emit("clock.cycles", taken, "cycles", iterations=iterations)
            self.emit("clock.time", self.between_events(taken), "ns", iterations=iterations)

    def chains(self):
        latencies = [("latency", name, 1) for name in (*CLASSES, "shuffle", "barrier")]
        rates = [("interval", name, 16) for name in (*CLASSES, "issue")]
        for what, name, warps in latencies + rates:
            for length in (64, 192):
                for iterations in (1, 3):
                    taken = self.chain(name, length, warps, iterations)
                    point = {"warps": warps, "length": length, "iterations": iterations}
                    self.emit(f"{what}.{name}", taken, "cycles", **point)

    def near_memories(self):
        self.trace("where_constant", 1, 1, self.sink)
        place = int(np.asarray(self.sink)[0])
        self.module.symbol("constant_place", np.uint64).copy_from(np.array([place], np.uint64))
        for steps in (64, 192):
            taken = self.cycles("chase_shared", 1, 32, self.clocks, self.sink, steps)
            self.emit("latency.shared", taken, "cycles", steps=steps)
            taken = self.cycles("chase_constant", 1, 1, self.clocks, self.sink, steps)
            self.emit("latency.constant", taken, "cycles", steps=steps)

    def ring(self, data, size, stride):
        count = size // stride
        step = max(int(count * 0.618), 1)
        while np.gcd(step, count) != 1:
            step += 1
        blocks = -(-count // 256)
        self.trace("ring", blocks, 256, data, np.uint32(count), np.uint32(stride), np.uint32(step))

    def l1(self):
        data = ws.cuda.zeros(512 << 10, np.uint8)
        kib = 8
        while kib <= 1.5 * self.gpu.l1_size_kib:
            self.ring(data, kib << 10, LINE)
            count = (kib << 10) // LINE
            for steps in (2 * count, 3 * count):
                arguments = (self.clocks, self.sink, np.uint64(data.address), steps)
                taken = self.cycles("chase_ca", 1, 1, *arguments, warm=True)
                self.emit("chase.ca", taken, "cycles", footprint=kib << 10, steps=steps)
            kib += max(1, kib // 12)

    def l2_and_dram_latency(self):
        size = 64 << 10
        data = ws.cuda.zeros(1 << 20, np.uint8)
        self.ring(data, size, LINE)
        for steps in (size // LINE, 2 * size // LINE):
            arguments = (self.clocks, self.sink, np.uint64(data.address), steps)
            taken = self.cycles("chase_cg", 1, 1, *arguments, warm=True)
            self.emit("chase.cg", taken, "cycles", footprint=size, steps=steps)
        self.ring(data, 1 << 20, 2048)
        for steps in (64, 192):
            arguments = (self.clocks, self.sink, np.uint64(data.address), steps)
            self.emit(
                "chase.dram", self.cycles("chase_cg", 1, 1, *arguments), "cycles", steps=steps
            )

    def bandwidth(self):
        eighth = int(self.gpu.l2_size_kib * 1024) // 8 // 4096 * 4096
        data = ws.cuda.zeros(eighth * 48, np.uint8)
        blocks = self.gpu.num_sms * (self.gpu.threads_per_sm // 256)

        def read(eighths, passes, warm):
            count = np.uint32(eighth * eighths // 16)
            return self.nanoseconds(
                "stream", blocks, 256, data, self.sink, count, passes, warm=warm
            )

        for eighths in (4, 8):
            for passes in (2, 4):
                point = {"footprint": eighth * eighths, "passes": passes}
                self.emit("stream.passes", read(eighths, passes, True), "ns", **point)
        for eighths in (16, 48):
            time = read(eighths, 1, False)
            self.emit("stream.once", time, "ns", footprint=eighth * eighths)
        for eighths in (6, 7, 8, 9, 10, 12):
            time = read(eighths, 1, True)
            self.emit("stream.again", time, "ns", footprint=eighth * eighths)

    def misses_in_flight(self):
        data = ws.cuda.zeros(3 * 32 * 32 * 128, np.uint8)
        for lines in (*range(8, 128, 8), *range(128, 256, 16)):
            for rounds in (1, 3):
                arguments = (self.clocks, self.sink, data, np.uint32(lines), rounds)
                taken = self.cycles("misses", 1, 32, *arguments, warm=True)
                self.emit("misses", taken, "cycles", lines=lines, rounds=rounds)

    def launch(self):
        for _ in range(3):
            self.emit("launch.events", self.nanoseconds("nothing", 1, 32), "ns")

    def dispatch(self):
        gpu = self.gpu
        for threads in (32, 256, 1024):
            for blocks in (1024, 2048):
                time = self.nanoseconds("nothing", blocks, threads)
                self.emit("dispatch.grid", time, "ns", threads=threads, blocks=blocks)
        for warps in (1, 8, 16, 32):
            taken = self.cycles("nothing", 1, 32 * warps)
            self.emit("dispatch.warps", taken, "cycles", warps=warps)
        shared = (48 << 10) + gpu.shared_memory_reserved_bytes
        wave = gpu.num_sms * int(gpu.shared_memory_kib_per_sm * 1024 // shared)
        arguments = (self.clocks, self.sink, np.float32(0.5), np.float32(0.25), 16)
        self.emit(
            "dispatch.block",
            self.cycles("fp32_64", 1, 32, *arguments, shared=48 << 10),
            "cycles",
            iterations=16,
        )
        for waves in (2, 4):
            time = self.nanoseconds("fp32_64", wave * waves, 32, *arguments, shared=48 << 10)
            self.emit("dispatch.waves", time, "ns", iterations=16, waves=waves)

    def memory_instructions(self):
        data = ws.cuda.zeros(64 << 10, np.uint8)
        points = [("global", "lines", of) for of in (1, 8, 16, 24, 32)]
        points += [("shared", "passes", of) for of in (1, 2, 4, 8, 16, 32)]
        for what, name, of in points:
            kernel, where = ("loads", (data,)) if what == "global" else ("shared_loads", ())
            for warps in (16, 32):
                for iterations in (1, 3):
                    arguments = (self.clocks, self.sink, *where, np.uint32(of), iterations)
                    taken = self.cycles(kernel, 1, 32 * warps, *arguments)
                    point = {name: of, "warps": warps, "iterations": iterations}
                    self.emit(f"loads.{what}", taken, "cycles", **point)

    def atomics(self):
        lines = 512 * self.gpu.num_sms
        data = ws.cuda.zeros(lines * 128, np.uint8)
        for lanes, what, adds in (
            *((lanes, "lines", 1) for lanes in (1, 4, 8, 16, 32)),
            (32, "stores", 0),
        ):
            for passes in (1, 2):
                arguments = (data, np.uint32(lines * lanes), np.uint32(128 // lanes), passes, adds)
                time = self.nanoseconds("reductions", self.full_grid, 256, *arguments, warm=True)
                self.emit(f"reductions.{what}", time, "ns", lanes=lanes, requests=lines * passes)
        for count in (8192, 24576):
            arguments = (data, np.uint32(count), np.uint32(0), 1, 1)
            time = self.nanoseconds("reductions", self.full_grid, 256, *arguments, warm=True)
            self.emit("reductions.word", time, "ns", lanes=count)
        for length in (8, 24):
            for iterations in (2, 6):
                arguments = (self.clocks, self.sink, np.float32(0.5), iterations)
                taken = self.cycles(f"beside_atomic_{length}", 1, 32, *arguments, warm=True)
                self.emit("atomic.beside", taken, "cycles", length=length, iterations=iterations)

    def l2_writes(self):
        sectors = 512 * self.gpu.num_sms
        data = ws.cuda.zeros(sectors * 160, np.uint8)
        for what, whole in (("whole", 1), ("partial", 0)):
            for passes in (2, 4):
                arguments = (data, np.uint32(sectors), passes, whole)
                time = self.nanoseconds("stores", self.gpu.num_sms, 256, *arguments, warm=True)
                self.emit(f"stores.{what}", time, "ns", sectors=sectors * passes)

    def l2_contents(self):
        sixteenth = int(self.gpu.l2_size_kib * 1024) // 16 // 4096 * 4096
        data = ws.cuda.zeros(sixteenth * 24, np.uint8)
        other = ws.cuda.zeros(sixteenth * 24, np.uint8)
        for part in (4, 8, 12, 14, 16, 17, 18, 24):
            count = np.uint32(sixteenth * part // 16)
            arguments = (data, self.sink, count, 1)
            time = self.nanoseconds("stream", self.gpu.num_sms, 512, *arguments, warm=True)
            for launches in (1, 3):
                point = {"footprint": sixteenth * part, "launches": launches}
                self.emit("stream.curve", launches * time, "ns", **point)
        count = np.uint32(sixteenth * 24 // 16)
        before = (
            self.trace("stream", self.gpu.num_sms, 512, other, self.sink, count, 1),
            self.trace("fill", self.gpu.num_sms, 512, other, count),
        )
        for written, behind in enumerate(before):
            count = np.uint32(sixteenth * 8 // 16)
            arguments = (data, self.sink, count, 1)
            time = self.nanoseconds("stream", self.gpu.num_sms, 512, *arguments, behind=behind)
            self.emit("stream.behind", time, "ns", written=written, footprint=sixteenth * 8)

    def ends_of_blocks(self):
        gpu = self.gpu
        shared = (48 << 10) + gpu.shared_memory_reserved_bytes
        wave = gpu.num_sms * int(gpu.shared_memory_kib_per_sm * 1024 // shared)
        for stores in (0, 1):
            for waves in (2, 4):
                arguments = (self.sink, 4, stores)
                time = self.nanoseconds(
                    "turnover", wave * waves, 32, *arguments, shared=48 << 10, warm=True
                )
                self.emit("turnover.waves", time, "ns", stores=stores, waves=waves)
            time = self.nanoseconds("turnover", 1, 32, self.sink, 8, stores, warm=True)
            for launches in (1, 3):
                point = {"stores": stores, "launches": launches}
                self.emit("turnover.launches", launches * time, "ns", **point)

    def straight_code(self):
        for parts in (1, 5, 10):
            for iterations in (1, 2):
                arguments = (self.clocks, self.sink, np.uint32(3), np.uint32(5), parts, iterations)
                taken = self.cycles("straight", 1, 32, *arguments)
                point = {"instructions": 1024 * parts, "iterations": iterations}
                self.emit("code.straight", taken, "cycles", **point)
