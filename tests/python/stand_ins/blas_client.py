"""A program that calls cuBLAS, without nvcc: it holds each function against NumPy.

Usage: blas_client.py VERSION SCENARIO, with VERSION 11, 12 or 13. Fails when a result is wrong.
"""

import ctypes
import itertools
import sys

import numpy as np

HOST, DEVICE = 0, 1
F32, F64, F16, I8, I32, BF16 = 0, 1, 2, 3, 10, 14
COMPUTE_F16, COMPUTE_F32, COMPUTE_F64, COMPUTE_I32 = 64, 68, 70, 72
OK, NOT_INITIALIZED, INVALID_VALUE, MAPPING_ERROR, EXECUTION_FAILED, NOT_SUPPORTED = (
    0,
    1,
    7,
    11,
    13,
    15,
)
TYPES = {"S": np.float32, "D": np.float64}
CODES = {np.float32: F32, np.float64: F64, np.float16: F16, np.int8: I8, np.int32: I32}
C_TYPES = {
    np.float32: ctypes.c_float,
    np.float64: ctypes.c_double,
    np.int32: ctypes.c_int,
    np.float16: ctypes.c_uint16,
}


class Blas:
    """A handle of the library, and the runtime below it."""

    def __init__(self, version):
        self.cuda = ctypes.CDLL({"11": "libcudart.so.11.0"}.get(version, f"libcudart.so.{version}"))
        self.lib = ctypes.CDLL(f"libcublas.so.{version}")
        self.handle = ctypes.c_void_p()
        self.check(self.lib.cublasCreate_v2(ctypes.byref(self.handle)))
        self.rng = np.random.default_rng(7)

    def check(self, status, expected=OK):
        assert status == expected, (status, expected)

    def call(self, name, *arguments, expected=OK):
        """Call a function with the handle; Python's integers are C's."""
        self.check(getattr(self.lib, name)(self.handle, *arguments), expected)

    def mode(self, mode):
        self.call("cublasSetPointerMode_v2", mode)

    def upload(self, array):
        """Return an array in device memory, in the order of columns."""
        data = np.asarray(array).tobytes(order="F")
        pointer = ctypes.c_void_p()
        assert self.cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(max(len(data), 1))) == 0
        assert self.cuda.cudaMemcpy(pointer, data, ctypes.c_size_t(len(data)), 1) == 0
        return pointer

    def download(self, pointer, like):
        data = ctypes.create_string_buffer(like.nbytes)
        assert self.cuda.cudaMemcpy(data, pointer, ctypes.c_size_t(like.nbytes), 2) == 0
        return np.frombuffer(data.raw, like.dtype).reshape(like.shape, order="F")

    def scalar(self, mode, value, kind):
        """Return what alpha or beta is given as in a pointer mode."""
        held = np.array([value], kind)
        if mode == DEVICE:
            return self.upload(held)
        return ctypes.byref(C_TYPES[kind].from_buffer_copy(held.tobytes()))

    def random(self, *shape):
        return self.rng.uniform(-1, 1, shape)


def to_bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def padded(matrix, ld, fill):
    """Return a matrix whose columns lie `ld` elements apart."""
    result = np.full((ld, matrix.shape[1]), fill, matrix.dtype)
    result[: matrix.shape[0]] = matrix
    return result


def transposed(matrix, operation):
    return matrix.T if operation else matrix


def close(got, expected, tolerance):
    scale = max(float(np.abs(expected).max(initial=0)), 1e-30)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


#: Name of a form of gemm: types of A and B, of C, of alpha and beta; compute type; tolerance.
FORMS = {
    "S": (np.float32, np.float32, np.float32, None, 1e-5),
    "D": (np.float64, np.float64, np.float64, None, 1e-13),
    "H": (np.float16, np.float16, np.float16, None, 2e-3),
    "f32": (np.float32, np.float32, np.float32, COMPUTE_F32, 1e-5),
    "f64": (np.float64, np.float64, np.float64, COMPUTE_F64, 1e-13),
    "f16": (np.float16, np.float16, np.float16, COMPUTE_F16, 2e-3),
    "f16 in f32": (np.float16, np.float16, np.float32, COMPUTE_F32, 2e-3),
    "f16 to f32": (np.float16, np.float32, np.float32, COMPUTE_F32, 1e-5),
    "bf16": (BF16, BF16, np.float32, COMPUTE_F32, 1e-2),
    "bf16 to f32": (BF16, np.float32, np.float32, COMPUTE_F32, 1e-5),
    "i8": (np.int8, np.int32, np.int32, COMPUTE_I32, 0),
    "i8 to f32": (np.int8, np.float32, np.float32, COMPUTE_F32, 1e-6),
}


def stored(kind, values):
    """Return values as they lie in memory, and what they are worth."""
    if kind == BF16:
        bits = to_bf16(values)
        return bits, from_bf16(bits)
    if kind in (np.int8, np.int32):
        values = np.round(np.asarray(values) * 100)
    held = values.astype(kind)
    return held, held.astype(np.float64)


def code(kind):
    return BF16 if kind == BF16 else CODES[kind]


def one_gemm(blas, form, operations, size, alpha=2, beta=-1, mode=HOST, batches=0, pointers=False):
    in_kind, c_kind, scale_kind, compute, tolerance = FORMS[form]
    (op_a, op_b), (m, n, k) = operations, size
    count = max(batches, 1)
    mats, worths, lds = [], [], []
    for rows, columns, kind, pad in (
        (*((k, m) if op_a else (m, k)), in_kind, 3),
        (*((n, k) if op_b else (k, n)), in_kind, 5),
        (m, n, c_kind, 1),
    ):
        held = [stored(kind, blas.random(rows, columns)) for _ in range(count)]
        mats.append([padded(bits, rows + pad, 1) for bits, _ in held])
        worths.append([worth for _, worth in held])
        lds.append(rows + pad)
    if beta == 0 and c_kind in (np.float32, np.float64, np.float16):
        mats[2] = [np.full_like(c, np.nan) for c in mats[2]]  # it is not read
    strides = [each[0].size + 2 for each in mats]
    joined = [
        np.concatenate([np.append(c.ravel(order="F"), [c.dtype.type(1)] * 2) for c in each])
        for each in mats
    ]
    on_device = [blas.upload(each) for each in joined]
    places = on_device
    if pointers:
        places = [
            blas.upload(
                np.array(
                    [base.value + i * stride * each[0].itemsize for i in range(count)], np.uint64
                )
            )
            for base, stride, each in zip(on_device, strides, mats, strict=True)
        ]
    a, b, c = places
    alpha_at = blas.scalar(mode, alpha, scale_kind)
    beta_at = blas.scalar(mode, beta, scale_kind)
    blas.mode(mode)
    name = "Gemm" if compute else f"{form}gemm"
    kinds = [code(kind) for kind in (in_kind, in_kind, c_kind)]
    words = []
    for place, kind, ld, stride in zip((a, b, c), kinds, lds, strides, strict=True):
        words.append(
            [place]
            + ([kind] if compute else [])
            + [ld]
            + ([ctypes.c_longlong(stride)] if batches and not pointers else [])
        )
    ending = ("Batched" if pointers else "StridedBatched") if batches else ""
    ending += "Ex" if compute else "" if batches or form == "H" else "_v2"
    blas.call(f"cublas{name}{ending}", op_a, op_b, m, n, k, alpha_at, *words[0], *words[1], beta_at,
              *words[2], *([batches] if batches else []), *([compute, -1] if compute else []))  # fmt: skip
    got = blas.download(on_device[2], joined[2])
    for i in range(count):
        product = transposed(worths[0][i], op_a) @ transposed(worths[1][i], op_b)
        expected = alpha * product + (beta * worths[2][i] if beta else 0)
        each = got[i * strides[2] : i * strides[2] + mats[2][i].size]
        each = each.reshape(mats[2][i].shape, order="F")
        worth = from_bf16(each[:m]) if c_kind == BF16 else each[:m].astype(np.float64)
        close(worth, expected, tolerance)
        np.testing.assert_array_equal(each[m:], mats[2][i][m:])  # padding stays


def gemm(blas):
    for form, op_a, op_b in itertools.product(FORMS, (0, 1), (0, 2)):
        one_gemm(blas, form, (op_a, op_b), (37, 19, 23), mode=(op_a + op_b // 2) % 2)
    for form in ("S", "D", "H", "i8", "i8 to f32", "bf16"):
        for beta, mode in itertools.product((0, 1), (HOST, DEVICE)):
            one_gemm(blas, form, (0, 0), (1, 33, 5), beta=beta, mode=mode)
        one_gemm(blas, form, (0, 1), (5, 7, 0))
        one_gemm(blas, form, (0, 1), (5, 7, 3), alpha=0)
        one_gemm(blas, form, (0, 1), (0, 7, 3))
        one_gemm(blas, form, (0, 1), (5, 0, 3))


def large_gemm(blas):
    for form, size in {
        "S": (130, 67, 21),
        "D": (65, 40, 21),
        "H": (129, 70, 41),
        "f16 to f32": (128, 128, 32),
        "bf16": (130, 70, 41),
        "i8": (70, 35, 33),
        "i8 to f32": (33, 66, 17),
    }.items():
        for operations in itertools.product((0, 1), (0, 1)):
            one_gemm(blas, form, operations, size, mode=operations[0])


def batched(blas):
    for form in FORMS:
        for pointers in (False, True):
            one_gemm(blas, form, (1, 0), (9, 35, 6), batches=3, pointers=pointers)


def aligned_gemm(blas):
    # Loads of 16 bytes at once, in the inside and beside the edges.
    for operations in itertools.product((0, 1), (0, 1)):
        (op_a, op_b), (m, n, k) = operations, (48, 40, 56)
        a = blas.random(*((k, m) if op_a else (m, k))).astype(np.float16)
        b = blas.random(*((n, k) if op_b else (k, n))).astype(np.float16)
        c = np.zeros((m, n), np.float32)
        target = blas.upload(c)
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        blas.call("cublasGemmEx", op_a, op_b, m, n, k, ctypes.byref(one), blas.upload(a), F16,
                  a.shape[0], blas.upload(b), F16, b.shape[0], ctypes.byref(zero), target, F32, m,
                  COMPUTE_F32, -1)  # fmt: skip
        expected = transposed(a.astype(float), op_a) @ transposed(b.astype(float), op_b)
        close(blas.download(target, c), expected, 1e-5)


def strided(vector, step):
    """Return a vector with `step` between its elements, as BLAS orders them."""
    held = np.full(max((len(vector) - 1) * abs(step) + 1, 1), 9, vector.dtype)
    held[:: abs(step)] = vector[::-1] if step < 0 else vector
    return held


def elements(held, n, step):
    return held[:: abs(step)][::-1][:n] if step < 0 else held[:: abs(step)][:n]


def vectors(blas):
    for s, n, steps, mode in itertools.product(
        "SD", (1, 7, 1000), ((1, 1), (3, -2), (-1, 2)), (HOST, DEVICE)
    ):
        level_1(blas, s, n, steps, mode)


def level_1(blas, s, n, steps, mode):
    step_x, step_y = steps
    kind = TYPES[s]
    tolerance = 1e-6 if s == "S" else 1e-14
    x, y = blas.random(n).astype(kind), blas.random(n).astype(kind)
    held_x, held_y = strided(x, step_x), strided(y, step_y)
    blas.mode(mode)

    def both(function, *before, after=()):
        at_x, at_y = blas.upload(held_x), blas.upload(held_y)
        blas.call(f"cublas{s}{function}_v2", n, *before, at_x, step_x, at_y, step_y, *after)
        new_x, new_y = blas.download(at_x, held_x), blas.download(at_y, held_y)
        for new, old, step in ((new_x, held_x, step_x), (new_y, held_y, step_y)):
            gaps = np.arange(old.size) % abs(step) != 0
            np.testing.assert_array_equal(new[gaps], old[gaps])
        return elements(new_x, n, step_x), elements(new_y, n, step_y)

    def result(function, kind, *arguments):
        held = np.zeros(1, kind)
        if mode == DEVICE:
            place = blas.upload(held)
            blas.call(function, n, *arguments, place)
            return blas.download(place, held)[0]
        value = C_TYPES[kind]()
        blas.call(function, n, *arguments, ctypes.byref(value))
        return value.value

    close(both("axpy", blas.scalar(mode, 2.5, kind))[1], 2.5 * x + y, tolerance)
    close(both("copy")[1], x, 0)
    swapped = both("swap")
    close(swapped[0], y, 0)
    close(swapped[1], x, 0)
    turn = [blas.scalar(mode, value, kind) for value in (0.6, 0.8)]
    turned = both("rot", after=turn)
    close(turned[0], 0.6 * x + 0.8 * y, tolerance)
    close(turned[1], 0.6 * y - 0.8 * x, tolerance)
    at_x, at_y = blas.upload(held_x), blas.upload(held_y)
    product = result(f"cublas{s}dot_v2", kind, at_x, step_x, at_y, step_y)
    assert abs(product - x.astype(float) @ y.astype(float)) <= tolerance * n
    forward = step_x > 0
    close(
        result(f"cublas{s}asum_v2", kind, at_x, step_x),
        np.abs(x).sum() * forward,
        10 * tolerance,
    )
    close(
        result(f"cublas{s}nrm2_v2", kind, at_x, step_x),
        np.linalg.norm(x) * forward,
        10 * tolerance,
    )
    assert result(f"cublasI{s.lower()}amax_v2", np.int32, at_x, step_x) == (
        (np.abs(x).argmax() + 1) * forward
    )
    assert result(f"cublasI{s.lower()}amin_v2", np.int32, at_x, step_x) == (
        (np.abs(x).argmin() + 1) * forward
    )
    blas.call(f"cublas{s}scal_v2", n, blas.scalar(mode, -3, kind), at_x, step_x)
    close(elements(blas.download(at_x, held_x), n, step_x), -3 * x if forward else x, tolerance)


def extremes(blas):
    """Equal values, none at all, and those whose squares no number holds."""
    blas.mode(HOST)
    index, norm = ctypes.c_int(5), ctypes.c_float()
    ties = blas.upload(np.array([1, -3, 3, 1, -1], np.float32))
    blas.call("cublasIsamax_v2", 5, ties, 1, ctypes.byref(index))
    assert index.value == 2
    blas.call("cublasIsamin_v2", 5, ties, 1, ctypes.byref(index))
    assert index.value == 1
    blas.call("cublasIsamax_v2", 0, ties, 1, ctypes.byref(index))
    assert index.value == 0
    for scale in (1e30, 1e-30):
        far = blas.upload(np.array([3 * scale, 0, 4 * scale], np.float32))
        blas.call("cublasSnrm2_v2", 3, far, 1, ctypes.byref(norm))
        assert abs(norm.value / scale - 5) < 1e-5
    for value in (np.inf, np.nan):
        odd = blas.upload(np.array([1, value, value, 2], np.float32))
        blas.call("cublasSnrm2_v2", 4, odd, 1, ctypes.byref(norm))
        np.testing.assert_equal(norm.value, value)


def matrices(blas):
    for s, (m, n), mode in itertools.product("SD", ((1, 1), (37, 300), (300, 37)), (HOST, DEVICE)):
        kind, tolerance = TYPES[s], 1e-5 if s == "S" else 1e-13
        a = blas.random(m, n).astype(kind)
        at_a = blas.upload(padded(a, m + 3, np.nan))
        blas.mode(mode)
        for op, (step_x, step_y), beta in itertools.product((0, 1), ((1, 1), (-2, 3)), (0, 0.5)):
            x, y = (
                blas.random(m if op else n).astype(kind),
                blas.random(n if op else m).astype(kind),
            )
            held = strided(y if beta else np.full_like(y, np.nan), step_y)
            at_y = blas.upload(held)
            blas.call(f"cublas{s}gemv_v2", op, m, n, blas.scalar(mode, 2, kind), at_a, m + 3,
                      blas.upload(strided(x, step_x)), step_x, blas.scalar(mode, beta, kind), at_y,
                      step_y)  # fmt: skip
            got = elements(blas.download(at_y, held), len(y), step_y)
            close(got, 2 * transposed(a, op) @ x + beta * y, tolerance)
        x, y = blas.random(m).astype(kind), blas.random(n).astype(kind)
        changed = blas.upload(padded(a, m + 3, 5))
        blas.call(f"cublas{s}ger_v2", m, n, blas.scalar(mode, 2, kind),
                  blas.upload(strided(x, -2)), -2, blas.upload(strided(y, 3)), 3, changed, m + 3)  # fmt: skip
        got = blas.download(changed, padded(a, m + 3, 5))
        close(got[:m], a + 2 * np.outer(x, y), tolerance)
        assert (got[m:] == 5).all()


def geam(blas):
    m, n = 37, 45
    for s, op_a, op_b, (alpha, beta), mode in itertools.product(
        "SD", (0, 1), (0, 1), ((2, -1), (0, 3), (4, 0)), (HOST, DEVICE)
    ):
        kind = TYPES[s]
        a = blas.random(*((n, m) if op_a else (m, n))).astype(kind)
        b = blas.random(*((n, m) if op_b else (m, n))).astype(kind)
        like = np.zeros((m + 2, n), kind)
        c = blas.upload(like)
        blas.mode(mode)
        blas.call(f"cublas{s}geam", op_a, op_b, m, n, blas.scalar(mode, alpha, kind),
                  blas.upload(a), a.shape[0], blas.scalar(mode, beta, kind), blas.upload(b),
                  b.shape[0], c, m + 2)  # fmt: skip
        close(
            blas.download(c, like)[:m],
            alpha * transposed(a, op_a) + beta * transposed(b, op_b),
            1e-6,
        )


def dgmm(blas):
    kinds = {**TYPES, "C": np.complex64, "Z": np.complex128}
    for _ in range(160):
        s, side = str(blas.rng.choice(list("SDCZ"))), int(blas.rng.integers(2))
        m, n = (int(size) for size in blas.rng.integers(0, 70, 2))
        step = int(blas.rng.choice([-3, -1, 0, 1, 2]))
        kind, order = kinds[s], n if side else m
        a = blas.random(m, n).astype(kind)
        # As many elements as the increment reaches over; they are taken from the end if it is negative.
        x = blas.random(max(1, 1 + max(order - 1, 0) * abs(step))).astype(kind)
        if s in "CZ":
            a, x = (
                a + 1j * blas.random(m, n).astype(kind),
                x + 1j * blas.random(len(x)).astype(kind),
            )
        taken = x[np.arange(order) * abs(step)]
        diagonal = taken[::-1] if step < 0 else taken
        padding, in_place = (int(count) for count in blas.rng.integers(0, 3, 2))
        held = padded(a, max(m, 1) + 1, 5)
        at_a = blas.upload(held)
        like = held if in_place == 1 else padded(np.zeros_like(a), max(m, 1) + padding, 7)
        at_c = at_a if in_place == 1 else blas.upload(like)
        blas.call(
            f"cublas{s}dgmm", side, m, n, at_a, len(held), blas.upload(x), step, at_c, len(like)
        )
        got = blas.download(at_c, like)
        close(
            got[:m], a * diagonal if side else diagonal[:, None] * a, 1e-6 if s in "SC" else 1e-14
        )
        assert (got[m:] == like[m:]).all()


def trsm(blas):
    m, n = 13, 9
    for s, side, fill, op, unit in itertools.product("SD", (0, 1), (0, 1), (0, 1, 2), (0, 1)):
        kind = TYPES[s]
        size = n if side else m
        full = blas.random(size, size) / size + 2 * np.eye(size)
        triangle = np.triu(full) if fill else np.tril(full)
        if unit:
            np.fill_diagonal(triangle, 1)
        other = np.where(triangle == 0, np.nan, full)  # the other triangle is not read
        b = blas.random(m, n).astype(kind)
        at_b = blas.upload(padded(b, m + 1, 4))
        mode = op % 2
        blas.mode(mode)
        blas.call(f"cublas{s}trsm_v2", side, fill, op, unit, m, n, blas.scalar(mode, 3, kind),
                  blas.upload(other.astype(kind)), size, at_b, m + 1)  # fmt: skip
        got = blas.download(at_b, padded(b, m + 1, 4))
        x = got[:m].astype(float)
        op_a = transposed(triangle, op)
        close(x @ op_a if side else op_a @ x, 3.0 * b, 1e-5 if s == "S" else 1e-12)
        assert (got[m:] == 4).all()


def transfers(blas):
    lib = blas.lib
    x = np.arange(12, dtype=np.float32)
    device = blas.upload(np.zeros(12, np.float32))
    pointer = x.ctypes.data_as(ctypes.c_void_p)
    blas.check(lib.cublasSetVector(4, 4, pointer, 3, device, 2))
    assert blas.download(device, x).tolist() == [0, 0, 3, 0, 6, 0, 9, 0, 0, 0, 0, 0]
    back = np.zeros(12, np.float32)
    back_at = back.ctypes.data_as(ctypes.c_void_p)
    blas.check(lib.cublasGetVectorAsync(4, 4, device, 2, back_at, 1, None))
    assert back[:4].tolist() == [0, 3, 6, 9]
    blas.check(lib.cublasSetMatrix(2, 3, 4, pointer, 4, device, 3))
    assert blas.download(device, x).tolist()[:9] == [0, 1, 3, 4, 5, 0, 8, 9, 0]
    blas.check(lib.cublasGetMatrix(2, 3, 4, device, 3, back_at, 2))
    assert back[:6].tolist() == [0, 1, 4, 5, 8, 9]
    blas.check(lib.cublasSetVector(4, 0, pointer, 1, device, 1), INVALID_VALUE)
    blas.check(lib.cublasSetVector(4, 4, pointer, 0, device, 1), INVALID_VALUE)
    blas.check(lib.cublasSetMatrix(3, 3, 4, pointer, 2, device, 3), INVALID_VALUE)
    blas.check(lib.cublasSetVector(4, 4, None, 1, device, 1), MAPPING_ERROR)


def settings(blas):
    lib = blas.lib
    value = ctypes.c_int()
    for name, chosen, wrong in (
        ("PointerMode{}_v2", 1, 2),
        ("AtomicsMode{}", 1, 2),
        ("MathMode{}", 2 | 16, -1),
        ("SmCountTarget{}", 3, -1),
    ):
        setter, getter = (f"cublas{verb}{name.format('')}" for verb in ("Set", "Get"))
        blas.call(getter, ctypes.byref(value))
        assert value.value == 0
        blas.call(setter, chosen)
        blas.call(setter, wrong, expected=INVALID_VALUE)
        blas.call(getter, ctypes.byref(value))
        assert value.value == chosen
        blas.call(getter, None, expected=INVALID_VALUE)
    stream, got = ctypes.c_void_p(), ctypes.c_void_p()
    assert blas.cuda.cudaStreamCreate(ctypes.byref(stream)) == 0
    blas.call("cublasSetStream_v2", stream)
    blas.call("cublasGetStream_v2", ctypes.byref(got))
    assert got.value == stream.value
    blas.call("cublasSetWorkspace_v2", blas.upload(np.zeros(1024, np.int8)), ctypes.c_size_t(1024))
    blas.call("cublasGetVersion_v2", ctypes.byref(value))
    assert str(value.value // 10000) == sys.argv[1]
    blas.check(lib.cublasGetProperty(0, ctypes.byref(value)))
    assert str(value.value) == sys.argv[1]
    lib.cublasGetStatusName.restype = lib.cublasGetStatusString.restype = ctypes.c_char_p
    assert lib.cublasGetStatusName(INVALID_VALUE) == b"CUBLAS_STATUS_INVALID_VALUE"
    assert b"not initialized" in lib.cublasGetStatusString(NOT_INITIALIZED)


def mistakes(blas):
    one = ctypes.byref(ctypes.c_float(1))
    x = blas.upload(np.ones(64, np.float32))
    good = [0, 0, 4, 4, 4, one, x, 4, x, 4, one, x, 4]
    for place, wrong in ((0, 3), (1, -1), (2, -1), (3, -1), (4, -1), (5, None), (7, 3), (9, 3),
                         (10, None), (11, None), (12, 3), (5, x)):  # fmt: skip
        words = list(good)
        words[place] = wrong
        blas.call("cublasSgemm_v2", *words, expected=INVALID_VALUE)
    blas.call("cublasSgemm_v2", *good)
    blas.check(blas.lib.cublasSgemm_v2(None, *good), NOT_INITIALIZED)
    blas.check(blas.lib.cublasSgemm_v2(ctypes.c_void_p(64), *good), NOT_INITIALIZED)
    blas.mode(DEVICE)
    blas.call("cublasSgemm_v2", *good, expected=INVALID_VALUE)
    blas.mode(HOST)
    blas.call("cublasSdot_v2", 4, x, 1, x, 1, x, expected=INVALID_VALUE)
    blas.call("cublasSdot_v2", 4, x, 1, x, 1, None, expected=INVALID_VALUE)
    blas.call("cublasSgemv_v2", 0, 4, 4, one, x, 4, x, 0, one, x, 1, expected=INVALID_VALUE)
    blas.call("cublasStrsm_v2", 2, 0, 0, 0, 4, 4, one, x, 4, x, 4, expected=INVALID_VALUE)
    blas.call("cublasSgeam", 1, 0, 4, 4, one, x, 4, one, x, 4, x, 4, expected=INVALID_VALUE)
    blas.call("cublasSdgmm", 2, 4, 4, x, 4, x, 1, x, 4, expected=INVALID_VALUE)
    blas.call("cublasSdgmm", 0, -1, 4, x, 4, x, 1, x, 4, expected=INVALID_VALUE)
    blas.call("cublasZdgmm", 0, 4, 4, x, 3, x, 1, x, 4, expected=INVALID_VALUE)
    blas.call("cublasDdgmm", 0, 2, 2, x, 2, x, 1, x, 3, expected=INVALID_VALUE)
    blas.call("cublasDestroy_v2")
    blas.call("cublasSgemm_v2", *good, expected=NOT_INITIALIZED)


def lacking(blas):
    blas.call("cublasCgemm_v2", expected=NOT_SUPPORTED)
    one = ctypes.byref(ctypes.c_float(1))
    x = blas.upload(np.ones(64, np.float32))
    blas.call("cublasGemmEx", 0, 0, 2, 2, 2, one, x, 4, 2, x, 4, 2, one, x, 4, 2, COMPUTE_F32, -1,
              expected=NOT_SUPPORTED)  # fmt: skip
    blas.call("cublasSaxpy_v2", 3, one, x, 1, x, 0, expected=NOT_SUPPORTED)


def fault(blas):
    one = ctypes.byref(ctypes.c_float(1))
    x = blas.upload(np.ones(16, np.float32))
    blas.call(
        "cublasSgemm_v2", 0, 0, 8, 8, 8, one, x, 8, x, 8, one, x, 8, expected=EXECUTION_FAILED
    )


def capture(blas):
    """A result in host memory cannot be waited for while a stream captures."""
    x = blas.upload(np.arange(1, 5, dtype=np.float32))
    cuda, stream, graph = blas.cuda, ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cudaStreamCreateWithFlags(ctypes.byref(stream), 1) == 0  # does not block
    blas.call("cublasSetStream_v2", stream)
    found, place = ctypes.c_float(-7), ctypes.c_int(-7)
    for relaxed in (1, 2):
        for name, held in (("cublasSasum_v2", found), ("cublasIsamax_v2", place)):
            assert cuda.cudaStreamBeginCapture(stream, relaxed) == 0
            blas.call(name, 4, x, 1, ctypes.byref(held), expected=MAPPING_ERROR)
            assert held.value == -7
            assert cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 901  # invalidated
    cuda.cudaGetLastError()
    held = blas.upload(np.zeros(1, np.float32))
    blas.mode(DEVICE)
    assert cuda.cudaStreamBeginCapture(stream, 2) == 0
    blas.call("cublasSasum_v2", 4, x, 1, held)
    assert cuda.cudaStreamEndCapture(stream, ctypes.byref(graph)) == 0
    executable = ctypes.c_void_p()
    assert (
        cuda.cudaGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        == 0
    )
    assert blas.download(held, np.zeros(1, np.float32))[0] == 0
    assert cuda.cudaGraphLaunch(executable, stream) == 0
    assert blas.download(held, np.zeros(1, np.float32))[0] == 10


def again(blas):
    """The same mistake a thousand times, and a handle after a fault."""
    for _ in range(1000):
        blas.call("cublasCgemm_v2", expected=NOT_SUPPORTED)
    fault(blas)
    blas.check(blas.lib.cublasCreate_v2(ctypes.byref(ctypes.c_void_p())), NOT_INITIALIZED)


def lt(blas):
    """cuBLASLt has handles, and no products."""
    library = ctypes.CDLL(f"libcublasLt.so.{sys.argv[1]}")
    library.cublasLtGetVersion.restype = ctypes.c_size_t
    assert str(library.cublasLtGetVersion() // 10000) == sys.argv[1]
    handle = ctypes.c_void_p()
    blas.check(library.cublasLtCreate(ctypes.byref(handle)))
    blas.check(library.cublasLtMatmul(handle), NOT_SUPPORTED)
    blas.check(library.cublasLtDestroy(handle))
    blas.check(library.cublasLtDestroy(handle), NOT_INITIALIZED)


def legacy(blas):
    lib = blas.lib
    for name in ("cublasSdot", "cublasSnrm2", "cublasSasum"):
        getattr(lib, name).restype = ctypes.c_float
    letter = ctypes.c_char
    lib.cublasSscal(1, ctypes.c_float(1), None, 1)
    assert lib.cublasGetError() == NOT_INITIALIZED
    assert lib.cublasGetError() == OK
    blas.check(lib.cublasInit())
    a, b = (blas.random(3, 3).astype(np.float32) for _ in "ab")
    at_a, at_b, at_c = blas.upload(a), blas.upload(b), blas.upload(np.zeros((3, 3), np.float32))
    f = ctypes.c_float
    lib.cublasSgemm(letter(b"t"), letter(b"N"), 3, 3, 3, f(2), at_a, 3, at_b, 3, f(0), at_c, 3)
    close(blas.download(at_c, a), 2 * a.T @ b, 1e-6)
    lib.cublasSgemm(letter(b"x"), letter(b"N"), 3, 3, 3, f(2), at_a, 3, at_b, 3, f(0), at_c, 3)
    assert lib.cublasGetError() == INVALID_VALUE
    flat = a.ravel(order="F").astype(float)
    close(lib.cublasSdot(9, at_a, 1, at_b, 1), flat @ b.ravel(order="F"), 1e-5)
    close(lib.cublasSnrm2(9, at_a, 1), np.linalg.norm(flat), 1e-6)
    close(lib.cublasSasum(9, at_a, 1), np.abs(flat).sum(), 1e-6)
    assert lib.cublasIsamax(9, at_a, 1) == np.abs(flat).argmax() + 1
    lib.cublasSscal(9, f(2), at_a, 1)
    lib.cublasSaxpy(9, f(-2), at_a, 1, at_b, 1)
    close(blas.download(at_b, a), b - 4 * a, 1e-6)
    place = ctypes.c_void_p()
    blas.check(lib.cublasAlloc(8, 4, ctypes.byref(place)))
    blas.check(lib.cublasFree(place))
    blas.check(lib.cublasShutdown())
    assert lib.cublasGetError() == OK


def one(blas):
    """Multiply once, for its trace."""
    one_gemm(blas, "S", (0, 1), (130, 67, 21))
    one_gemm(blas, "H", (1, 0), (9, 5, 7))


if __name__ == "__main__":
    globals()[sys.argv[2]](Blas(sys.argv[1]))
