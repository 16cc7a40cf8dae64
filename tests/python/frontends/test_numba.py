"""Kernels for Numba: results equal NumPy's, traces are predicted."""

import numpy as np
import pytest

import warpstack as ws
from warpstack.cuda import machine_code
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas

pytest.importorskip("numba", reason="Numba is not here (warpstack[numba] brings it)")
pytest.importorskip("numba_cuda", reason="numba-cuda is not here (warpstack[numba] brings it)")

import numba_kernels as kernels
from numba import cuda
from numba.cuda.random import (
    init_xoroshiro128p_states_cpu,
    xoroshiro128p_dtype,
)

NO_MACHINE_CODE = find_nvdisasm() is None or find_ptxas() is None


def predicted(trace):
    row = ws.predict(trace, "a100", models=["closed_network"]).iloc[0]
    assert row.instructions == trace.num_instructions
    assert 0 < row.time_us < 1e4


def singles(seed, *shape):
    return np.random.default_rng(seed).random(shape, np.float32)


def test_reduction():
    x, out = singles(1, 3000), ws.cuda.zeros(1)
    trace = ws.numba.launch(kernels.total, 4, 128, ws.cuda.array(x), out)
    np.testing.assert_allclose(np.asarray(out)[0], x.sum(dtype=np.float64), rtol=1e-5)
    assert (trace.grid, trace.block) == ((4, 1, 1), (128, 1, 1))
    assert trace.shared_memory_bytes == 512
    predicted(trace)


def test_histogram():
    values = np.random.default_rng(2).integers(0, 40, 2000, dtype=np.int32)
    counts = ws.cuda.zeros(40, np.int32)
    trace = ws.numba.launch(
        kernels.histogram, 3, 64, ws.cuda.array(values), counts, shared_memory_bytes=160
    )
    assert np.array_equal(np.asarray(counts), np.bincount(values, minlength=40))
    assert trace.shared_memory_bytes == 160
    predicted(trace)


def test_matmul_in_shared_memory():
    a, b = singles(3, 40, 50), singles(4, 50, 30)
    c = ws.cuda.zeros((40, 30))
    trace = ws.numba.launch(kernels.matmul, (2, 3), (16, 16), ws.cuda.array(a), ws.cuda.array(b), c)
    np.testing.assert_allclose(np.asarray(c), a @ b, rtol=1e-5)
    predicted(trace)


def test_n_body_with_a_function_of_the_device():
    bodies = singles(5, 50, 4)
    forces = ws.cuda.zeros((50, 3))
    trace = ws.numba.launch(kernels.n_body, 2, 32, ws.cuda.array(bodies), forces, np.float32(0.01))
    off = bodies[None, :, :3].astype(np.float64) - bodies[:, None, :3]
    square = (off**2).sum(axis=2) + 0.01
    exact = (off * (bodies[None, :, 3] / square**1.5)[..., None]).sum(axis=1)
    np.testing.assert_allclose(np.asarray(forces), exact, rtol=1e-3, atol=1e-3)
    predicted(trace)


def test_mandelbrot_of_complex_numbers():
    image = ws.cuda.zeros((24, 40), np.int32)
    trace = ws.numba.launch(kernels.mandelbrot, (3, 2), (16, 16), -2 - 1j, 1 + 1j, 30, image)
    across = -2 + 3 * np.arange(40) / 40
    down = -1 + 2 * np.arange(24) / 24
    c = across[None, :] + 1j * down[:, None]
    z, steps = np.zeros_like(c), np.zeros(c.shape, np.int32)
    for _ in range(30):
        inside = z.real**2 + z.imag**2 <= 4
        z = np.where(inside, z * z + c, z)
        steps += inside
    assert (np.asarray(image) == steps).mean() > 0.99  # fused multiplications round once
    predicted(trace)


def test_prefix_sum_by_shuffles():
    x = np.random.default_rng(6).integers(-9, 9, 300, dtype=np.int32)
    out, totals = ws.cuda.zeros(300, np.int32), ws.cuda.zeros(3, np.int32)
    trace = ws.numba.launch(kernels.prefix_sum, 3, 128, ws.cuda.array(x), out, totals)
    parts = [x[i : i + 128].cumsum() for i in range(0, 300, 128)]
    assert np.array_equal(np.asarray(out), np.concatenate(parts))
    assert np.array_equal(np.asarray(totals), [part[-1] for part in parts])
    predicted(trace)


def test_sort_steps_of_a_plain_function_with_a_signature():
    x = np.random.default_rng(7).integers(0, 1000, 128, dtype=np.int64)
    there = ws.cuda.array(x)
    kernel = ws.numba.compile(kernels.sort_step, signature="void(int64[::1], int32, int32)")
    width = 2
    while width <= 128:
        distance = width // 2
        while distance:
            trace = kernel.launch(2, 64, there, distance, width)
            distance //= 2
        width *= 2
    assert np.array_equal(np.asarray(there), np.sort(x))
    predicted(trace)


def test_atomics():
    x = np.random.default_rng(8).integers(-50, 50, 200, dtype=np.int32)
    least, most = ws.cuda.zeros(1, np.int32), ws.cuda.zeros(1, np.int32)
    matches = ws.cuda.zeros(2, np.uint32)
    arguments = ws.cuda.array(x), least, most, matches, int(x[5])
    trace = ws.numba.launch(kernels.extremes, 4, 64, *arguments)
    assert np.asarray(least)[0] == x.min()
    assert np.asarray(most)[0] == x.max()
    assert np.asarray(matches).tolist() == [(x == x[5]).sum(), 7]
    predicted(trace)


def xoroshiro(state, count):
    """Xoroshiro128+ (Blackman and Vigna 2018, "Scrambled linear pseudorandom number generators")."""
    one, two = (int(word) for word in state)
    cut = 2**64 - 1

    def rotated(word, by):
        return (word << by | word >> (64 - by)) & cut

    for _ in range(count):
        yield np.float32(((one + two & cut) >> 11) * 2.0**-53)
        two ^= one
        one, two = rotated(one, 55) ^ two ^ (two << 14 & cut), rotated(two, 36)


def test_random_numbers():
    states = np.empty(64, xoroshiro128p_dtype)
    init_xoroshiro128p_states_cpu(states, 11, 0)
    hits = ws.cuda.zeros(64, np.int32)
    trace = ws.numba.launch(kernels.estimate_pi, 2, 32, ws.cuda.array(states), hits, 20)
    expected = []
    for state in states:
        numbers = np.array(list(xoroshiro(state, 40)))
        expected.append((numbers[::2] ** 2 + numbers[1::2] ** 2 <= 1).sum())
    assert np.array_equal(np.asarray(hits), expected)
    predicted(trace)


def test_stencil_with_tuples_and_local_memory():
    x = singles(9, 8, 10, 12)
    out = ws.cuda.zeros((8, 10, 12))
    weights = (np.float32(0.4), np.float32(0.1))
    trace = ws.numba.launch(kernels.stencil, (2, 3, 3), (4, 4, 4), ws.cuda.array(x), out, weights)
    exact = np.zeros_like(x)
    middle = (slice(1, -1),) * 3
    exact[middle] = 0.4 * x[middle] + 0.1 * sum(
        np.roll(x, by, axis)[middle] for axis in range(3) for by in (1, -1)
    )
    np.testing.assert_allclose(np.asarray(out), exact, rtol=1e-5)
    predicted(trace)


def test_grid_is_synchronized():
    x = ws.cuda.empty(64, np.int32)
    trace = ws.numba.launch(kernels.reverse_in_grid, 4, 16, x)
    assert np.array_equal(np.asarray(x), np.arange(64)[::-1])
    # ptxas does not take the functions of the device runtime that are defined here.
    assert trace.code == "ptx"


@pytest.mark.skipif(not ws.cuda.compilers(), reason="Numba's halves need a CUDA compiler")
def test_halves_are_linked_from_source():
    x = np.arange(40, dtype=np.float16)
    out = ws.cuda.empty(40, np.float16)
    ws.numba.launch(kernels.square_halves, 1, 64, ws.cuda.array(x), out)
    assert np.array_equal(np.asarray(out), x * x + x)
    with pytest.raises(
        ws.InputError, match=r"argument 1: got a NumPy array; copy it to the device"
    ):
        ws.numba.launch(kernels.square_halves, 1, 64, x, out)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ws.numba.launch(3, 1, 1), "expected a function, plain or decorated"),
        (lambda: ws.numba.launch(kernels.pull, 1, 1), "is a function of the device, not a kernel"),
        (lambda: ws.numba.launch(kernels.total, 1, 1, target="90"), "target = '90' is not like"),
        (lambda: ws.numba.launch(kernels.total, 1, 1), "does not compile: Signature mismatch"),
        (lambda: ws.numba.compile(kernels.sort_step, 1, signature="void(int32)"), "not both"),
        (lambda: ws.numba.compile(kernels.sort_step, signature="void(int32"), "never closed"),
        (lambda: ws.numba.compile(kernels.total, signature="int32(int32)"), "returns nothing"),
        (lambda: ws.numba.compile(kernels.total, object()), "Numba has no type for an object"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ws.InputError, match=message):
        call()


def test_arguments_of_a_compiled_kernel_are_checked():
    kernel = ws.numba.compile(kernels.sort_step, signature="void(int64[::1], int32, int32)")
    x = ws.cuda.zeros(8, np.int64)
    for arguments, message in [
        ((x, 1), "has 3 parameters, 2 are given"),
        ((x, 1.5, 1), "argument 2: got 1.5 for int32"),
        ((x, 1, 2**40), "argument 3: got 1099511627776 for int32"),
        ((3, 1, 1), "argument 1: got 3 for array"),
        ((ws.cuda.zeros(8), 1, 1), r"argument 1: got float32 of shape \(8,\) for array"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            kernel.launch(1, 8, *arguments)


def on_device(value):
    return ws.cuda.array(value) if isinstance(value, np.ndarray) else value


#: By kernel: grid, block, arguments.
CASES = {
    "total": (1, 128, (singles(1, 100), np.zeros(1, np.float32))),
    "matmul": (
        (2, 3),
        (16, 16),
        (singles(3, 40, 50), singles(4, 50, 30), np.zeros((40, 30), np.float32)),
    ),
    "mandelbrot": ((3, 2), (16, 16), (-2 - 1j, 1 + 1j, 30, np.zeros((24, 40), np.int32))),
    "prefix_sum": (
        *(3, 128),
        (np.arange(300, dtype=np.int32), np.zeros(300, np.int32), np.zeros(3, np.int32)),
    ),
    "sort_step": (2, 64, (np.arange(128)[::-1].copy(), np.int32(64), np.int32(128))),
    "stencil": (
        *((2, 3, 3), (4, 4, 4)),
        (
            *(singles(9, 8, 10, 12), np.zeros((8, 10, 12), np.float32)),
            (np.float32(0.4), np.float32(0.1)),
        ),
    ),
}


@pytest.mark.skipif(NO_MACHINE_CODE, reason="ptxas or nvdisasm is not installed")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_computes_what_ptx_does(name, target):
    grid, block, arguments = CASES[name]
    found = []
    for wants in (False, True):
        there = [on_device(value) for value in arguments]
        trace = ws.numba.launch(
            getattr(kernels, name), grid, block, *there, target=target, machine_code=wants
        )
        assert trace.code == (target if wants else "ptx")
        found.append([np.asarray(x) for x in there if isinstance(x, ws.cuda.DeviceArray)])
    for of_ptx, of_machine_code in zip(*found, strict=True):
        assert of_ptx.tobytes() == of_machine_code.tobytes()


@pytest.mark.skipif(NO_MACHINE_CODE, reason="ptxas or nvdisasm is not installed")
def test_the_kernel_says_what_runs(monkeypatch):
    signature = "void(int64[::1], int32, int32)"
    kernel = ws.numba.compile(kernels.sort_step, signature=signature)
    assert (kernel.code, kernel.why_ptx) == ("sm_80", "")
    monkeypatch.setattr(machine_code, "find_ptxas", lambda: None)
    monkeypatch.setattr(machine_code, "find_nvdisasm", lambda: None)
    monkeypatch.setattr(machine_code, "_noted", set())
    with pytest.warns(ws.cuda.MachineCodeWarning, match="nvdisasm and ptxas are not installed"):
        kernel = ws.numba.compile(kernels.sort_step, signature=signature)
    assert kernel.code == "ptx"
    assert ws.numba.compile(kernels.sort_step, signature=signature).code == "ptx"
    with pytest.raises(
        ws.InputError, match=r"True: .*pip install nvidia-cuda-nvdisasm nvidia-cuda"
    ):
        ws.numba.compile(kernels.sort_step, signature=signature, machine_code=True)


def doubled(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


def test_the_one_call_launch_takes_the_order_of_blocks():
    for order in ("time", "blocks"):
        x = ws.cuda.array(np.arange(100, dtype=np.float32))
        ws.numba.launch(doubled, 4, 32, x, order=order)
        np.testing.assert_array_equal(np.asarray(x), 2 * np.arange(100))
    with pytest.raises(ws.InputError, match="order = 'late' is not one of time, blocks"):
        ws.numba.launch(doubled, 4, 32, x, order="late")
