"""Kernels in Gluon, Triton's language with layouts and instructions by name."""

import numpy as np
import pytest

import warpstack as ws

pytest.importorskip("triton", reason="Triton is not here (warpstack[triton] brings it)")
gluon = pytest.importorskip("triton.experimental.gluon", reason="this Triton has no Gluon")

from triton.experimental.gluon import language as gl  # noqa: E402
from triton.experimental.gluon.language.nvidia import ampere, blackwell, hopper  # noqa: E402
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor  # noqa: E402

TARGETS = ["sm_80", "sm_90"]

# Up to Triton 3.8, copies have another name.
copy_async = getattr(ampere.async_copy, "async_load", None)
copy_tile = getattr(hopper.tma, "async_load", None)
of_new_triton = pytest.mark.skipif(
    copy_async is None or copy_tile is None, reason="this Triton has async_load under another name"
)


@gluon.jit
def twice(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + i, 2 * gl.load(x + i, mask=i < n), mask=i < n)


@gluon.jit
def sum_of_rows(x, y, n, B: gl.constexpr, STAGES: gl.constexpr):
    """A ring of copies into shared memory."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    ring = gl.allocate_shared_memory(gl.float32, [STAGES, B], flat)
    i = gl.arange(0, B, layout=layout)
    for step in gl.static_range(STAGES - 1):
        copy_async(ring.index(step), x + step * B + i)
        ampere.async_copy.commit_group()
    total = gl.zeros([B], gl.float32, layout)
    for step in range(gl.cdiv(n, B)):
        ahead = step + STAGES - 1
        copy_async(ring.index(ahead % STAGES), x + ahead * B + i, mask=ahead * B + i < n)
        ampere.async_copy.commit_group()
        ampere.async_copy.wait_group(STAGES - 1)
        total += ring.index(step % STAGES).load(layout)
    gl.store(y + i, total)


@gluon.jit
def product_of_warps(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    flat: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [gl.num_warps(), 1], [1, 0])
    tiles: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [gl.num_warps(), 1], [16, 8])
    m = gl.arange(0, M, layout=gl.SliceLayout(1, flat))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, flat))
    down = gl.arange(0, K, layout=gl.SliceLayout(1, flat))
    across = gl.arange(0, K, layout=gl.SliceLayout(0, flat))
    left = gl.load(a + m[:, None] * K + across[None, :])
    right = gl.load(b + down[:, None] * N + n[None, :])
    product = ampere.mma_v2(
        gl.convert_layout(left, gl.DotOperandLayout(0, tiles, 2)),
        gl.convert_layout(right, gl.DotOperandLayout(1, tiles, 2)),
        gl.zeros([M, N], gl.float32, tiles),
    )
    m = gl.arange(0, M, layout=gl.SliceLayout(1, tiles))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, tiles))
    gl.store(c + m[:, None] * N + n[None, :], product)


@gluon.jit
def product_of_warp_group(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    left = gl.allocate_shared_memory(a.dtype, a.block_type.shape, a.layout)
    right = gl.allocate_shared_memory(b.dtype, b.block_type.shape, b.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], hopper.mbarrier.MBarrierLayout())
    hopper.mbarrier.init(bar, count=1)
    hopper.mbarrier.expect(bar, a.nbytes_per_cta + b.nbytes_per_cta)
    copy_tile(a, [0, 0], bar, left)
    copy_tile(b, [0, 0], bar, right)
    hopper.mbarrier.wait(bar, 0)
    tiles: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, N, 16])
    product = hopper.warpgroup_mma(left, right, gl.zeros([M, N], gl.float32, tiles), is_async=True)
    product = hopper.warpgroup_mma_wait(0, deps=(product,))
    hopper.mbarrier.invalidate(bar)
    m = gl.arange(0, M, layout=gl.SliceLayout(1, tiles))
    n = gl.arange(0, N, layout=gl.SliceLayout(0, tiles))
    gl.store(c + m[:, None] * N + n[None, :], product)


@gluon.jit
def first_part(x, layout: gl.constexpr):
    i = gl.arange(0, 128, layout=layout)
    gl.store(x + i, i)


@gluon.jit
def second_part(x):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    i = gl.arange(0, 128, layout=layout)
    gl.store(x + 128 + i, i)


@gluon.jit
def two_roles(x):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    gl.warp_specialize([(first_part, (x, layout)), (second_part, (x,))], [1], [24])


@gluon.jit
def calls_two_roles(x):
    two_roles(x)


@gluon.jit
def in_tensor_memory(x, N: gl.constexpr):
    memory = blackwell.allocate_tensor_memory(
        gl.float32, [128, N], blackwell.TensorMemoryLayout([128, N], col_stride=1)
    )
    layout: gl.constexpr = memory.get_reg_layout()
    memory.store(gl.full([128, N], 1.0, gl.float32, layout))
    rows = gl.arange(0, 128, gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, N, gl.SliceLayout(0, layout))[None, :]
    gl.store(x + rows * N + columns, memory.load(layout) + rows * N + columns)


def halves(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("target", TARGETS)
def test_elements(target):
    x, y = ws.cuda.array(np.arange(1000, dtype=np.float32)), ws.cuda.zeros(1000)
    trace = ws.triton(twice, target=target)[4](x, y, 1000, BLOCK=256)
    np.testing.assert_array_equal(np.asarray(y), 2 * np.arange(1000))
    assert (trace.name, trace.code) == ("twice", target)
    table = ws.triton.tune(
        twice, lambda m: (-(-1000 // m["BLOCK"]),), (x, y, 1000), [{"BLOCK": 128}, {"BLOCK": 256}]
    )
    assert (table["error"] == "").all()


@of_new_triton
@pytest.mark.parametrize("target", TARGETS)
def test_a_ring_of_copies(target):
    x = np.random.default_rng(1).standard_normal((8, 512)).astype(np.float32)
    y = ws.cuda.zeros(512)
    trace = ws.triton(sum_of_rows, target=target)[1](ws.cuda.array(x), y, x.size, B=512, STAGES=3)
    np.testing.assert_allclose(np.asarray(y), x.sum(axis=0), atol=1e-5)
    assert trace.instructions.opcode.str.startswith("LDGSTS").any()


@pytest.mark.parametrize("target", TARGETS)
def test_products_of_warps(target):
    a, b, c = halves(1, 64, 32), halves(2, 32, 64), ws.cuda.zeros((64, 64))
    arguments = ws.cuda.array(a), ws.cuda.array(b), c
    ws.triton(product_of_warps, target=target)[1](*arguments, M=64, N=64, K=32)
    np.testing.assert_allclose(np.asarray(c), a.astype("f4") @ b.astype("f4"), atol=1e-3)


@of_new_triton
def test_products_of_warp_groups():
    a, b, c = halves(1, 64, 32), halves(2, 32, 64), ws.cuda.zeros((64, 64))
    described = [
        TensorDescriptor.from_tensor(
            ws.cuda.array(one),
            list(one.shape),
            gl.NVMMASharedLayout.get_default_for(list(one.shape), gl.float16),
        )
        for one in (a, b)
    ]
    product = ws.triton(product_of_warp_group, gpu="h100-pcie")
    trace = product[1](*described, c, M=64, N=64, K=32)
    np.testing.assert_allclose(np.asarray(c), a.astype("f4") @ b.astype("f4"), atol=1e-3)
    assert ws.predict(trace, "h100-pcie")["time_us"][0] > 0
    with pytest.raises(ws.InputError, match=r"Gluon's .* needs sm_90 or later, not sm_80"):
        ws.triton(product_of_warp_group)[1](*described, c, M=64, N=64, K=32)


def test_roles_of_warps():
    x = ws.cuda.zeros(256, np.int32)
    trace = ws.triton(two_roles, target="sm_90")[1](x)
    assert np.asarray(x).tolist() == [*range(128)] * 2
    assert trace.block[0] > 128
    for kernel in (two_roles, calls_two_roles):  # Triton's compiler would end the process
        with pytest.raises(ws.InputError, match="warp_specialize needs sm_90 or later, not sm_80"):
            ws.triton(kernel)[1](x)


@of_new_triton  # others choose layouts of tensor memory by other names
def test_tensor_memory():
    x = ws.cuda.zeros(128 * 64)
    trace = ws.triton(in_tensor_memory, target="sm_100")[1](x, N=64)
    assert trace.code.startswith("sm_100")
    np.testing.assert_array_equal(np.asarray(x), np.arange(128 * 64) + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_tensor_memory_is_of_newer_gpus(target):
    x = ws.cuda.zeros(128 * 64)
    with pytest.raises(ws.InputError, match=r"Gluon's .* needs sm_100 or later, not sm_"):
        ws.triton(in_tensor_memory, target=target)[1](x, N=64)


@gluon.jit
def of_odd_shape(x):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    i = gl.arange(0, 100, layout=layout)
    gl.store(x + i, i)


def test_what_does_not_compile_is_told():
    with pytest.raises(ws.InputError, match=r"kernel of_odd_shape does not compile: .*"):
        ws.triton(of_odd_shape)[1](ws.cuda.zeros(128, np.int32))
