"""Tensors of other packages as arguments of Triton kernels."""

import ctypes
import gc

import numpy as np
import pytest

import warpstack as ws

triton = pytest.importorskip("triton", reason="Triton is not here (warpstack[triton] brings it)")

import triton.language as tl  # noqa: E402
import triton_kernels as kernels  # noqa: E402
from dlpack_tensor import Tensor  # noqa: E402

from warpstack.cuda.device import Device  # noqa: E402
from warpstack.cuda.host_tensors import HostTensors, _kept  # noqa: E402


@triton.jit
def add_strided(a, b, out, rows, columns, a0, a1, b0, b1, o0, o1, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    inside = (i < rows) & (j < columns)
    total = tl.load(a + i * a0 + j * a1, mask=inside) + tl.load(b + i * b0 + j * b1, mask=inside)
    tl.store(out + i * o0 + j * o1, total, mask=inside)


@triton.jit
def copy_to(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def numbers(seed, shape, dtype):
    return (8 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


#: The last one is of ml_dtypes.
KINDS = ["float16", "float32", "float64", "int8", "int32", "int64", "uint16", "bfloat16"]


def type_of(name):
    if name != "bfloat16":
        return np.dtype(name)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_written_into_tensors_of_any_layout(kind, versioned):
    dtype = type_of(kind)
    a, b = numbers(1, (13, 7), dtype), numbers(2, (7, 13), dtype).T
    wide = np.full((13, 20), 3, dtype)
    out = wide[:, 2:16:2]
    tensors = [Tensor(one, versioned=versioned) for one in (a, b, out)]
    steps = [one.stride(dim) for one in tensors for dim in (0, 1)]
    ws.triton(add_strided)[1](*tensors, 13, 7, *steps, BLOCK=16)
    np.testing.assert_array_equal(out, a + b)
    wide[:, 2:16:2] = 3
    assert (wide == 3).all()  # nothing beside it


def test_the_trace_is_that_of_an_array_of_the_device():
    x = numbers(1, 1000, np.float32)
    out = np.zeros_like(x)
    there = ws.cuda.array(x), ws.cuda.array(x), ws.cuda.array(out)
    expected = ws.triton.launch(kernels.add, 4, *there, 1000, BLOCK=256)
    trace = ws.triton.launch(kernels.add, 4, Tensor(x), Tensor(x), Tensor(out), 1000, BLOCK=256)
    np.testing.assert_array_equal(out, 2 * x)
    assert trace.instructions.executions.sum() == expected.instructions.executions.sum()
    assert ws.predict(trace, "a100").instructions[0] == ws.predict(expected, "a100").instructions[0]


def test_tensors_that_share_memory_share_it_on_the_device():
    memory = np.arange(100, dtype=np.float32)
    ws.triton(copy_to)[1](Tensor(memory[10:40]), Tensor(memory[20:50]), 10, BLOCK=16)
    expected = np.arange(100, dtype=np.float32)
    expected[20:30] = expected[10:20].copy()
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("seed", range(20))
def test_where_copies_are(seed):
    """Of random parts of one memory, against the same parts of one array."""
    random = np.random.default_rng(seed)
    memory = np.zeros(4096, np.uint8)
    parts = {}
    for number in range(random.integers(1, 6)):
        start = int(random.integers(0, 400)) * 8
        shape = tuple(int(n) for n in random.integers(0, 6, random.integers(1, 3)))
        part = memory[start : start + 8 * 36].view(np.float64)[: int(np.prod(shape))].reshape(shape)
        if len(shape) == 2 and random.integers(2):
            part = part.T
        if random.integers(2):
            part = part[::-1]
        parts[f"p{number}"] = part
    device = Device(0.01)
    tensors = {name: Tensor(part) for name, part in parts.items()}
    host = HostTensors("test", device, tensors)
    here, there = [], []
    for name, part in parts.items():
        array = host.on_device(tensors[name])
        assert (array.shape, array.dtype) == (part.shape, part.dtype)
        assert host.given(array) is tensors[name]
        address = part.__array_interface__["data"][0]
        if part.size:
            assert array.address % 16 == address % 16
            here.append(address)
            there.append(array.address)
    # Within what overlaps, distances stay; and each writes what the other reads.
    memory[:] = random.integers(0, 256, memory.size)
    before = memory.copy()
    host.copy_in()
    for block in host.copies:
        device._core.fill(block.address, 7, block.nbytes)
    host.copy_out()
    touched = np.zeros(memory.size, bool)
    base = memory.__array_interface__["data"][0]
    for part in parts.values():
        low, high = np.lib.array_utils.byte_bounds(part) if part.size else (base, base)
        touched[low - base : high - base] = True
    np.testing.assert_array_equal(memory, np.where(touched, 7, before))


def test_a_tensor_has_one_address_while_it_lives():
    x, y = Tensor(np.ones(64, np.float32)), Tensor(np.zeros(64, np.float32))
    device = ws.cuda.device.default_device()
    gc.collect()
    used = device.used_bytes
    function = ws.triton(copy_to)
    addresses = []
    for pair in ((x, y), (y, x), (x, y)):
        function[1](*pair, 64, BLOCK=64)
        addresses.append([value.address for value in function.compiled._values[:2]])
    assert addresses[0] == addresses[1][::-1] == addresses[2]
    assert len(_kept[device]) >= 2
    del x, y, pair, function
    gc.collect()
    assert device.used_bytes == used


def test_descriptors_tuples_and_compiled_kernels():
    from triton.tools.tensor_descriptor import TensorDescriptor

    class Addressed(Tensor):  # Triton asks it of what its descriptors describe
        def data_ptr(self):
            return self.array.__array_interface__["data"][0]

    x, y = numbers(3, (64, 64), np.float16), np.zeros((16, 64), np.float16)
    described = TensorDescriptor(Addressed(x), [64, 64], [64, 1], [16, 64])
    for target in ("sm_80", "sm_90"):
        y[:] = 0
        ws.triton(kernels.copy_described, target=target)[1](
            (3, described), Tensor(y), 16, COLUMNS=64, ROWS=16
        )
        np.testing.assert_array_equal(y, x[:16])

    out = np.zeros(8, np.float32)
    source = np.ones(8, np.float32)
    kernel = ws.triton.compile(copy_to, Tensor(source), Tensor(out), 8, BLOCK=8)
    source[:] = 5  # copied at each launch
    kernel.launch(1, trace=False)
    assert (out == 5).all()


def test_tune_leaves_tensors_as_they_are():
    x, out = np.ones(2000, np.float32), np.full(2000, 5, np.float32)
    table = ws.triton.tune(
        kernels.add_tuned,
        lambda meta: (triton.cdiv(meta["x_ptr"].array.size, meta["BLOCK"]),),
        (Tensor(x), Tensor(x), Tensor(out), 2000),
        simulator=False,
    )
    assert (table["error"] == "").all()
    assert (out == 5).all()


class Odd(Tensor):
    """A tensor whose capsule says something else of its elements."""

    def __init__(self, array, code, bits, lanes=1):
        super().__init__(array, versioned=False)
        self.kind = code, bits, lanes

    def __dlpack__(self):
        from dlpack_tensor import CODE_AT, _pointer

        capsule = super().__dlpack__()
        address = _pointer(capsule, b"dltensor") + CODE_AT
        ctypes.c_uint8.from_address(address).value = self.kind[0]
        ctypes.c_uint8.from_address(address + 1).value = self.kind[1]
        ctypes.c_uint16.from_address(address + 2).value = self.kind[2]
        return capsule


class Broken:
    def __dlpack__(self, **_):
        raise BufferError("no memory here")


def locked():
    array = np.ones(8, np.float32)
    array.flags.writeable = False
    return Tensor(array)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (lambda: Tensor(np.ones(8, np.float32), place=(2, 0)), r"y: a tensor in the .*x\.cpu\(\)"),
        (lambda: Odd(np.ones(8, np.float32), 3, 32), "y: elements of DLPack's type code 3 with 32"),
        (lambda: Odd(np.ones(8, np.float32), 2, 16, 2), "16 bits and 2 lanes have no counterpart"),
        (Broken, "y: its memory cannot be read: BufferError: no memory here; give a plain tensor"),
        (locked, "y: the kernel writes to a tensor that cannot be written.*warpstack.cuda.array"),
    ],
)
def test_errors_name_the_argument(tensor, message):
    x = Tensor(np.zeros(8, np.float32))
    with pytest.raises(ws.InputError, match=message):
        ws.triton(copy_to)[1](x, tensor(), 8, BLOCK=8)


def test_a_tensor_that_is_only_read_may_be_read_only():
    out = np.zeros(8, np.float32)
    ws.triton(copy_to)[1](locked(), Tensor(out), 8, BLOCK=8)
    assert (out == 1).all()


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16", "int32"])
def test_tensors_of_pytorch(kind):
    torch = pytest.importorskip("torch", reason="PyTorch is not here")
    dtype = getattr(torch, kind)
    a, b = (8 * torch.randn(13, 7)).to(dtype), (8 * torch.randn(7, 13)).to(dtype).T
    out = torch.empty(13, 7, dtype=dtype)
    steps = [step for one in (a, b, out) for step in one.stride()]
    ws.triton(add_strided)[1](a, b, out, 13, 7, *steps, BLOCK=16)
    assert torch.equal(out, a + b)
    if kind == "float32":
        given = torch.nn.Parameter(torch.ones(32))
        whole = torch.zeros(64)
        ws.triton(copy_to)[1](given, whole[16:], 32, BLOCK=32)
        assert whole.sum() == 32
        assert whole[16:48].all()
        with pytest.raises(ws.InputError, match="x: its memory cannot be read"):
            ws.triton(copy_to)[1](torch.ones(3, device="meta"), whole, 3, BLOCK=4)
