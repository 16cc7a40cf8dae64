"""Tensor cores and shared memory as resources: what no prediction passes, and how times grow."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from configurations import tensor_unit
from effort import rounds
from machines import plain_pascal
from python_reference import tensor
from warpstack.models.limits import unit_cycles

MODEL = "closed_network"
OPCODES = [
    "HMMA.16816.F32",
    "HMMA.16816.F16",
    "HMMA.16816.F32.BF16",
    "HMMA.1688.F32.TF32",
    "IMMA.16832.S8.S8",
    "DMMA.884",
    "HGMMA.64x256x16.F32",
    "QGMMA.64x64x32.F32.E4M3.E4M3",
    "BMMA.168256.XOR.POPC",  # without a rate on H100
]


def products(opcode, count, *, blocks=4, warps=4, sums=1, loads=0):
    """Return a kernel of matrix instructions that add to so many sums in turn."""
    k = ws.patterns.KernelBuilder("products", grid=blocks, block=32 * warps)
    for i in range(count):
        if loads and i % 4 == 0:
            k.emit("LDS.128", dst=4, src=2, address=16 * (k.thread % 64))
            k.emit("BAR.SYNC")
        k.emit(opcode, dst=32 + 4 * (i % sums), src=(4, 8, 32 + 4 * (i % sums)))
    k.emit("EXIT")
    return k.build()


@pytest.mark.slow
@settings(max_examples=rounds(60), deadline=None)
@given(
    st.sampled_from(OPCODES),
    st.sampled_from(["a100", "h100-pcie", "rtx3080", "rtx2080ti", "quadro-gv100", "l40s"]),
    st.integers(1, 300),
    st.integers(1, 40),
    st.sampled_from([1, 3, 4, 8]),
    st.integers(1, 8),
    st.booleans(),
)
def test_nothing_passes_the_dense_peak(opcode, name, blocks, count, warps, sums, loads):
    gpu = ws.gpu(name).replace(num_sms=4)
    kernel = products(opcode, count, blocks=blocks, warps=warps, sums=sums, loads=loads)
    kind, multiply_adds, _ = tensor.operation(opcode)
    rate = getattr(gpu, f"tensor_{kind}_rate")
    if not rate:
        return
    least = blocks * warps * count * multiply_adds / (rate * gpu.num_sms * gpu.num_schedulers)
    assert ws.simulate(kernel, gpu).cycles >= least
    for cycles in ws.predict(kernel, gpu)["cycles"]:
        assert cycles >= least * (1 - 1e-9)


def test_a_chain_and_its_rate_by_hand():
    """16 mma on an A100: in a chain 25 cycles each, with 8 sums 8 cycles each; the last one takes 25."""
    gpu = ws.gpu("a100").replace(num_sms=1, warp_start_cycles=0, block_interval_cycles=0)
    chain = ws.simulate(products("HMMA.16816.F32", 16, blocks=1, warps=1), gpu)
    assert chain.cycles == 16 * 25
    apart = ws.simulate(products("HMMA.16816.F32", 16, blocks=1, warps=1, sums=8), gpu)
    assert apart.cycles == 15 * 8 + 25
    # Half as many multiply-adds: 4 cycles, and a latency of 21.
    half = ws.simulate(products("HMMA.1688.F32", 16, blocks=1, warps=1), gpu)
    assert half.cycles == 16 * 21
    # Four schedulers have their own tensor cores: four warps take as long as one.
    four = ws.simulate(products("HMMA.16816.F32", 16, blocks=1, warps=4, sums=8), gpu)
    assert four.cycles == 15 * 8 + 25
    # Eight warps on them: 2 x 16 products of 8 cycles.
    eight = ws.simulate(products("HMMA.16816.F32", 16, blocks=1, warps=8, sums=8), gpu)
    assert eight.cycles == 31 * 8 + 25


def test_products_of_one_warp_do_not_reach_the_peak_of_hopper():
    """An mma of 2,048 multiply-adds at 512 a cycle takes 4 + 2 cycles; a wgmma no more than its own."""
    gpu = ws.gpu("h100-sxm").replace(num_sms=1, warp_start_cycles=0, block_interval_cycles=0)
    of_warp = products("HMMA.16816.F32", 64, blocks=1, warps=4, sums=8)
    assert ws.simulate(of_warp, gpu).cycles == 63 * 6 + 24
    short = products("HMMA.1688.F32", 64, blocks=1, warps=4, sums=8)
    assert ws.simulate(short, gpu).cycles == 63 * 4 + 22
    of_group = products("HGMMA.64x256x16.F32", 64, blocks=1, warps=4)
    # 64 x 256 x 16 / 4 / 512 = 128 cycles each, one after the other.
    assert ws.simulate(of_group, gpu).cycles == 64 * 128
    # Warps in pairs hide each other's latencies from the model, too.
    (predicted,) = ws.predict(
        products("HMMA.16816.F32", 64, blocks=1, warps=8, sums=8), gpu, models=[MODEL]
    )["cycles"]
    assert 128 * 6 <= predicted <= 128 * 6 * 1.05


@pytest.mark.parametrize("opcode", OPCODES)
def test_limits_take_the_time_of_shape_and_type(opcode):
    """16 warps of 20 products on the 4 schedulers of one SM: 80 products one after the other."""
    gpu = ws.gpu("h100-pcie").replace(num_sms=1)
    kernel = products(opcode, 20, blocks=1, warps=16, sums=8)
    unit = tensor_unit(gpu)
    each = tensor.cycles(opcode, unit)
    profile = ws.interval_profile(kernel, gpu)
    assert unit_cycles([profile], [gpu])[0, 0] == pytest.approx(80 * each)


def test_a_higher_rate_takes_no_longer():
    kernel = products("HMMA.16816.F32", 64, blocks=8, warps=8, sums=4, loads=True)
    gpu = ws.gpu("a100").replace(num_sms=2)
    times = []
    for rate in (32, 64, 128, 256, 512, 4096):
        faster = gpu.replace(tensor_f16_f32_rate=rate)
        row = ws.predict(kernel, faster, models=[MODEL]).iloc[0]
        times.append((ws.simulate(kernel, faster).cycles, row["cycles"]))
    for column in zip(*times, strict=True):
        assert sorted(column, reverse=True) == list(column)


def conflicts(ways, *, blocks=8, warps=8):
    """Return a kernel whose loads of shared memory have ``ways`` lanes in each bank that they use."""
    k = ws.patterns.KernelBuilder("conflicts", grid=blocks, block=32 * warps)
    for i in range(24):
        k.emit("LDS", dst=4 + i % 8, src=2, address=4 * ways * (k.thread % 32))
        k.emit("FFMA", dst=16, src=(4 + i % 8, 16))
    k.emit("EXIT")
    return k.build()


def test_bank_conflicts_cost_bandwidth():
    """Loads with w-way conflicts take w cycles of their SM: 64 warps of 24 loads on two SMs."""
    gpu = plain_pascal(num_sms=2, block_interval_cycles=0)
    simulated, predicted = [], []
    for ways in (1, 2, 4, 8, 16, 32):
        kernel = conflicts(ways)
        least = 64 * 24 * ways / 2
        simulated.append(ws.simulate(kernel, gpu).cycles)
        predicted.append(ws.predict(kernel, gpu, models=[MODEL])["cycles"][0])
        assert simulated[-1] >= least
        assert predicted[-1] >= least
    assert np.all(np.diff(simulated) > 0)
    assert np.all(np.diff(predicted) > 0)
    # With 32 passes nothing else takes time.
    assert predicted[-1] == pytest.approx(simulated[-1], rel=0.1)


def mma_kernel(products):
    """Return a launch of 2 blocks of 4 warps whose threads read 24 bytes and add to 8 sums in turn."""
    sums = [[f"%f{4 * s + i}" for i in range(4)] for s in range(8)]
    lines = [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        f"{{{', '.join(sums[p % 8])}}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, "
        f"{{{', '.join(sums[p % 8])}}};"
        for p in range(products)
    ]
    zeros = [f"mov.f32 {register}, 0f00000000;" for four in sums for register in four]
    newline = "\n"
    module = ws.cuda.compile(f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry products(.param .u64 a, .param .u64 b, .param .u64 out) {{
  .reg .b32 %r<4>; .reg .b64 %l<6>; .reg .b32 %a<4>; .reg .b32 %b<2>; .reg .f32 %f<32>;
  ld.param.u64 %l0, [a]; ld.param.u64 %l1, [b]; ld.param.u64 %l2, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.u32 %r2, %r0, 128, %r1;
  mul.wide.u32 %l3, %r2, 16; mul.wide.u32 %l4, %r2, 8;
  add.u64 %l0, %l0, %l3; add.u64 %l1, %l1, %l4; add.u64 %l2, %l2, %l3;
  {newline.join(zeros)}
  ld.global.v4.u32 {{%a0, %a1, %a2, %a3}}, [%l0];
  ld.global.v2.u32 {{%b0, %b1}}, [%l1];
  {newline.join(lines)}
  st.global.v4.f32 [%l2], {{%f0, %f1, %f2, %f3}};
  ret;
}}
""")
    a, b = ws.cuda.zeros(4 * 256, np.uint32), ws.cuda.zeros(2 * 256, np.uint32)
    return module.kernel("products").launch(2, 128, a, b, ws.cuda.empty(4 * 256, np.float32))


def test_utilisation_and_bytes_are_those_of_a_hand_count():
    """An SM of an A100 does 2048 floating-point operations of half precision a cycle.

    312 TFLOP/s / (108 SMs * 1.41 GHz) (NVIDIA A100 whitepaper, Table 3).
    """
    gpu = ws.gpu("a100").replace(num_sms=2)
    cycles = []
    for count in (128, 256):
        kernel = mma_kernel(count)
        simulated = ws.simulate(kernel, gpu)
        cycles.append(simulated.cycles)
        operations = 2 * 4 * count * (2 * 16 * 8 * 16)
        by_hand = operations / (2 * 2048 * simulated.cycles)
        busy = unit_cycles([ws.interval_profile(kernel, gpu)], [gpu])[0, 0]
        assert busy / simulated.cycles == pytest.approx(by_hand, rel=1e-12)
        assert simulated.tensor_utilisation == pytest.approx(by_hand, rel=1e-12)
        assert 0 < by_hand < 1
        predicted = ws.predict(kernel, gpu, models=[MODEL])["cycles"].iloc[0]
        assert operations / (2 * 2048 * predicted) < 1
        assert busy / predicted == pytest.approx(operations / (2 * 2048 * predicted), rel=1e-12)
        # Each thread reads its own 16 and 8 bytes.
        assert 32 * ws.simulate_caches(kernel, gpu).totals["dram_read_sectors"] == 256 * 24
    # The further instructions of the longer one run at the full rate.
    assert cycles[1] - cycles[0] == 128 * 4 * 2 * (2 * 16 * 8 * 16) / (2 * 2048)
