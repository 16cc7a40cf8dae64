"""Barriers of some warps of a block: who waits for whom, in both simulators and the intervals."""

import numpy as np
import pytest
from timed_gpus import assert_same

import warpstack as ws
from barrier_kernels import random_kernel
from configurations import simulator_config
from effort import rounds
from machines import plain_pascal
from python_reference import interval_simulation
from python_reference.timing import Machine
from warpstack import _core


@pytest.fixture(scope="module")
def machine():
    """Return a machine where arithmetic takes 4 cycles, and a barrier 25."""
    return plain_pascal(fp32_latency=4, integer_latency=4, kernel_end="last_warp", issue_width=4)


def cycles(kernel, gpu):
    """Return the cycles of the simulator and of interval simulation."""
    table = ws.predict(kernel, gpu, ["interval_simulation"])
    return ws.simulate(kernel, gpu).cycles, int(table["cycles"].iloc[0])


@pytest.mark.parametrize("seed", range(rounds(60)))
def test_random_meetings_equal_plain_definition(seed):
    rng = np.random.default_rng([seed, 24])
    kernel = random_kernel(rng)
    gpu = plain_pascal(
        num_sms=1 + seed % 2,
        barrier_latency=int(rng.integers(0, 40)),
        issue_width=int(rng.choice([1, 2, 4])),
        scheduler=str(rng.choice(["gto", "lrr"])),
    )
    result = ws.simulate(kernel, gpu)
    assert_same(result, Machine(simulator_config(gpu)).run(kernel))


@pytest.mark.parametrize("seed", range(rounds(60)))
def test_random_meetings_of_interval_simulation_equal_plain_definition(seed):
    rng = np.random.default_rng([seed, 25])
    kernel = random_kernel(rng)
    gpu = plain_pascal(
        num_sms=1 + seed % 2,
        lsu_queue_entries=1,
        noc_queue_entries=4096,
        l1_miss_queue_entries=4096,
        barrier_latency=int(rng.integers(0, 40)),
    )
    result = _core.IntervalSimulator(gpu._core, 1, 0.0).run(kernel._core)
    plain = interval_simulation.Machine(simulator_config(gpu, 0.0)).run(kernel)
    assert result.instructions == plain["instructions"]
    # Within one cycle, the two may take events in another order.
    assert result.cycles == pytest.approx(plain["cycles"], rel=0.005, abs=2)


def two_halves(opcodes):
    """Return a block of two warps of each half, which in turn have much and little to do."""
    k = ws.patterns.KernelBuilder("halves", grid=1, block=128)
    half = k.thread // 64
    for i in range(8):
        for h in (0, 1):
            for _ in range(100 if (i + h) % 2 else 1):
                k.emit("FADD", dst=4, src=4, where=half == h)
            k.emit(opcodes[h], where=half == h)
    k.emit("EXIT")
    return k.build()


def test_halves_with_a_barrier_each_do_not_wait_for_one_another(machine):
    # Each half: 4 rounds of 100 and 4 of 1 dependent FADDs of 4 cycles (1,616) and 8 barriers of 25
    # cycles; together they wait for the slower one in each of 8 rounds (3,200).
    own = two_halves(["BAR.SYNC.id1.64", "BAR.SYNC.id2.64"])
    for value in cycles(own, machine):
        assert value == pytest.approx(1616 + 8 * 25, rel=0.03)
    one = two_halves(["BAR.SYNC", "BAR.SYNC"])
    for value in cycles(one, machine):
        assert value == pytest.approx(3200 + 8 * 25, rel=0.03)
    # A number of their own does not part warps that all come, and neither does a count of all.
    for opcode in ("BAR.SYNC.id0", "BAR.SYNC.id3", "BAR.SYNC.id3.128"):
        assert cycles(two_halves([opcode] * 2), machine) == cycles(one, machine)


def test_who_arrives_does_not_wait(machine):
    """The second warp arrives at once and ends; the first comes late and does not wait for it."""

    def kernel(second):
        k = ws.patterns.KernelBuilder("hand", grid=1, block=64)
        first = k.thread < 32
        k.emit("BAR.SYNC.id1.64", where=first)
        k.emit("FADD", dst=4, src=4, where=first)
        for _ in range(100):
            k.emit("FADD", dst=5, src=5, where=~first)
        for opcode in second:
            k.emit(opcode, where=~first)
        return k.build()

    # The arrival is at 397 cycles at the earliest, and barrier and FADD follow; also as the last that
    # the warp does.
    for second in (["BAR.ARV.id1.64", "FADD"], ["BAR.ARV.id1.64"], ["BAR.SYNC.id1.64"]):
        for value in cycles(kernel(second), machine):
            assert value == pytest.approx(397 + 25 + 4, abs=6), second


def test_a_warp_that_exits_is_awaited_only_by_count(machine):
    k = ws.patterns.KernelBuilder("all", grid=1, block=64)
    k.emit("BAR.SYNC.id5", where=k.thread < 32)
    k.emit("EXIT")
    assert ws.simulate(k.build(), machine).cycles > 0


@pytest.mark.parametrize("opcode", ["BAR.SYNC.id5.64", "bar.sync.id5.96"])
def test_a_deadlock_names_barrier_and_warps(machine, opcode):
    k = ws.patterns.KernelBuilder("stuck", grid=1, block=64)
    k.emit(opcode, where=k.thread < 32)
    k.emit("EXIT")
    kernel = k.build()
    needed = -(-int(opcode.rsplit(".", 1)[1]) // 32)
    text = f"warp 0.* waits at barrier 5, at which 1 of {needed} warps have arrived"
    with pytest.raises(ws.InputError, match=rf"(?s)too few warps come to a barrier.*{text}"):
        ws.simulate(kernel, machine)
    with pytest.raises(ws.InputError, match=rf"(?s)too few warps come to a barrier.*{text}"):
        ws.predict(kernel, machine, ["interval_simulation"])


def test_a_trace_of_some_warps_is_timed_with_barriers_of_all_of_these(machine):
    """The second warp has no instructions, so that nobody knows what it would have done."""
    k = ws.patterns.KernelBuilder("some", grid=1, block=96)
    k.emit("BAR.SYNC.id1.96", where=k.thread < 64)
    k.emit("BAR.ARV.id2.96", where=k.thread < 64)
    k.emit("FADD", dst=4, src=4, where=k.thread < 64)
    assert all(value < 60 for value in cycles(k.build(), machine))


CUDA = r"""
extern "C" __global__ void groups(float* x, int n) {
  int group = threadIdx.x / 128;
  float v = x[threadIdx.x];
  if (group == 0) {  // makes what the two others take in turn, in two places
    SETMAXNREG(dec, 40);
    for (int i = 0; i < n; ++i) {
      asm volatile("bar.sync %0, 256;" :: "r"(1 + (i & 1)) : "memory");
      for (int k = 0; k < 20; ++k) v = v * 1.0001f + 0.5f;
      asm volatile("bar.arrive %0, 256;" :: "r"(3 + (i & 1)) : "memory");
    }
  } else {
    SETMAXNREG(inc, 232);
    for (int i = group - 1; i < n; i += 2) {
      asm volatile("bar.arrive %0, 256;" :: "r"(group) : "memory");
      asm volatile("bar.sync %0, 256;" :: "r"(group + 2) : "memory");
      for (int k = 0; k < WORK; ++k) v = v * 1.0001f + 0.5f;
    }
  }
  x[threadIdx.x] = v;
}
"""


def groups(work, registers="", machine_code=None, n=12):
    """Trace a producer and two consumers, each four warps."""
    source = f"#define SETMAXNREG(way, count) {registers}\n#define WORK {work}\n{CUDA}"
    module = ws.cuda.compile(
        source, **{"machine_code": machine_code} if machine_code else {"arch": "sm_90a"}
    )
    x = ws.cuda.array(np.zeros(384, np.float32))
    return module.kernel("groups").launch(1, 384, x, np.int32(n))


@pytest.mark.parametrize("machine_code", [None, "sm_90"])
def test_producer_and_consumers(machine_code):
    gpu = ws.gpu("h100-sxm")
    trace = groups(60, machine_code=machine_code)
    counts = trace.instructions.groupby("opcode")["executions"].sum()
    named = counts[counts.index.str.contains(r"\.id\d")]
    # Six rounds of each place; each barrier has four warps that wait, and four that arrive.
    assert len(named) == 8
    assert (named == 6 * 4).all()
    waits = named.index.str.contains("sync|SYNC")
    assert sorted(name[name.index(".id") :] for name in named.index[waits]) == [
        f".id{number}.256" for number in (1, 2, 3, 4)
    ]
    simulated, predicted = cycles(trace, gpu)
    assert predicted == pytest.approx(simulated, rel=0.1)
    # Consumers that compute for long hide the producer, and work side by side.
    longer = cycles(groups(600, machine_code=machine_code), gpu)
    chain = ws.gpu("h100-sxm").fp32_latency * 6 * 540
    assert longer[0] - simulated == pytest.approx(chain, rel=0.25)


def test_registers_of_warpgroups_beside_barriers():
    text = 'asm volatile("setmaxnreg." #way ".sync.aligned.u32 " #count ";")'
    trace = groups(60, text)
    assert trace.instructions["opcode"].str.contains("setmaxnreg").any()
    assert ws.simulate(trace, ws.gpu("h100-sxm")).cycles > 0


@pytest.mark.parametrize("machine_code", [None, "sm_90"])
def test_barriers_of_the_whole_block_have_no_numbers(machine_code):
    source = r"""extern "C" __global__ void k(int* x) {
      x[threadIdx.x] = 1;
      __syncthreads();
      x[__syncthreads_count(x[0]) - 1] = 2;
    }"""
    module = ws.cuda.compile(source, machine_code=machine_code)
    trace = module.kernel("k").launch(1, 64, ws.cuda.array(np.zeros(64, np.int32)))
    opcodes = trace.instructions["opcode"]
    assert not opcodes.str.contains(r"\.id\d").any()


def test_lanes_that_part_arrive_once():
    """Lanes of a warp come to a barrier on two ways: that is one arrival."""
    source = r"""extern "C" __global__ void k(int* x) {
      if (threadIdx.x % 2) { x[threadIdx.x] = 1; asm volatile("barrier.sync 2, 64;" ::: "memory"); }
      else { x[threadIdx.x] = 3; asm volatile("barrier.sync 2, 64;" ::: "memory"); }
      x[threadIdx.x] += 2;
    }"""
    module = ws.cuda.compile(source)
    trace = module.kernel("k").launch(1, 64, ws.cuda.array(np.zeros(64, np.int32)))
    counts = trace.instructions.groupby("opcode")["executions"].sum()
    assert counts["barrier.sync.id2.64"] == 2
    assert counts["barrier.sync.id2.part"] == 2
    assert all(value > 0 for value in cycles(trace, ws.gpu("h100-sxm")))


@pytest.mark.parametrize("machine_code", [None, "sm_90"])
def test_files_keep_numbers(tmp_path, machine_code):
    kernel, gpu = groups(60, machine_code=machine_code), ws.gpu("h100-sxm")
    ws.save(kernel, tmp_path / "parquet")
    loaded = ws.load(tmp_path / "parquet").kernels[0]
    assert loaded.digest == kernel.digest
    assert cycles(loaded, gpu) == cycles(kernel, gpu)
    # Text for Accel-Sim has the names of machine code.
    ws.save(kernel, tmp_path / "text", format="accelsim", binary_version=90)
    table = ws.load(tmp_path / "text").kernels[0].instructions
    names = table["opcode"][(table["executions"] > 0) & table["opcode"].str.startswith("BAR.")]
    ends = {(name.split(".")[1], *name.split(".id")[1:]) for name in names}
    assert ends == {(kind, f"{n}.256") for kind in ("SYNC", "ARV") for n in (1, 2, 3, 4)}


def test_closed_network_knows_how_many_come_together():
    """With matrix instructions, those that meet come to the load-store unit together."""

    def demands(*opcodes):
        k = ws.patterns.KernelBuilder("meet", grid=1, block=256)
        k.emit("HMMA.16816.F32", dst=8, src=(4, 6, 8))
        for opcode in opcodes:
            k.emit(opcode)
        kernel = k.build()
        gpu = ws.gpu("h100-sxm")
        memory = ws.simulate_caches(kernel, gpu)
        return _core.demands_of(kernel._core, memory._core, gpu._core).warps_in_step

    assert demands("BAR.SYNC") == 8
    assert demands("BAR.SYNC.id1") == 8
    assert demands("BAR.SYNC.id1.128") == 4
    assert demands("BAR.SYNC.id1.128", "BAR.SYNC") == 6  # half of the waits are of all
    assert demands("BAR.ARV.id1.128", "BAR.SYNC.id1.512") == 8
