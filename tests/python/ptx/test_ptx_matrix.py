"""Matrix instructions of the PTX interpreter, against the ISA's lists of fragments."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from effort import rounds
from ptx_forms import at, edges, run
from python_reference import ptx_matrix as plain
from warpstack.errors import InputError

LANES = np.arange(32)


def shape_of(name):
    m, rest = name[1:].split("n")
    return int(m), *map(int, rest.split("k"))


def random_bits(kind, count, rng):
    """Half of them ordinary numbers, else edges and anything."""
    width = plain.BITS[kind]
    bits = rng.integers(0, 2**width, count, dtype=np.uint64)
    if kind in ("f16", "bf16", "tf32", "f32", "f64"):
        near = rng.normal(0, 2, count)
        some = {
            "f16": lambda: near.astype(np.float16).view(np.uint16),
            "bf16": lambda: near.astype(np.float32).view(np.uint32) >> 16,
            "f64": lambda: near.view(np.uint64),
        }.get(kind, lambda: near.astype(np.float32).view(np.uint32))()
        edge = rng.choice(np.array(edges(kind), dtype=np.uint64), count)
        # A single NaN or infinity spoils its whole row: few of them.
        pick = rng.random(count)
        bits = np.where(pick < 0.98, some.astype(np.uint64), np.where(pick < 0.995, edge, bits))
    if kind in ("e4m3", "e5m2"):  # few infinities and NaN
        bits = np.where(rng.random(count) < 0.99, bits & 0xBF, bits)
    return [int(b) for b in bits]


def random_matrix(rows, columns, kind, rng):
    bits = random_bits(kind, rows * columns, rng)
    return [bits[i * columns : (i + 1) * columns] for i in range(rows)]


FORMS = [
    *((f"m16n8{k}", (d, "f16", "f16", c)) for k in ("k8", "k16") for d, c in
      [("f16", "f16"), ("f32", "f32"), ("f32", "f16"), ("f16", "f32")]),
    *((f"m16n8{k}", ("f32", "bf16", "bf16", "f32")) for k in ("k8", "k16")),
    *((f"m16n8{k}", ("f32", "tf32", "tf32", "f32")) for k in ("k4", "k8")),
    *((name, ("f64",) * 4) for name in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
    *((name, ("s32", a, b, "s32")) for name in ("m8n8k16", "m16n8k16", "m16n8k32")
      for a in ("s8", "u8") for b in ("s8", "u8")),
    *((name, ("s32", a, b, "s32")) for name in ("m8n8k32", "m16n8k32", "m16n8k64")
      for a in ("s4", "u4") for b in ("s4", "u4")),
    *((name, ("s32", "b1", "b1", "s32")) for name in ("m8n8k128", "m16n8k128", "m16n8k256")),
    *((name, (d, a, b, d)) for name in ("m16n8k16", "m16n8k32") for d in ("f16", "f32")
      for a, b in [("e4m3", "e5m2"), ("e5m2", "e4m3")]),
    *(("m16n8k32", (d, a, b, d)) for d in ("f16", "f32")
      for a, b in [("e2m1", "e3m2"), ("e3m2", "e2m3"), ("e2m3", "e2m1"), ("e4m3", "e2m1")]),
]  # fmt: skip


def register_kind(kind):
    return {"f32": "f32", "f64": "f64"}.get(kind, "b32")


def run_mma(opcode, shape, kinds, fragments):
    """Run one mma per warp on the registers of fragments; return those of D, [warp][lane]."""
    kind_d, *sources = kinds
    text, arrays, lists = [], [], []
    for name, kind, fragment in zip("abc", sources, fragments, strict=True):
        size = 8 if kind == "f64" else 4
        packed = np.array(
            [[plain.pack(lane, kind) for lane in warp] for warp in fragment],
            np.uint64 if size == 8 else np.uint32,
        )
        count = packed.shape[2]
        registers = [f"%{name}x{i}" for i in range(count)]
        text.append(f".reg .{register_kind(kind)} {', '.join(registers)};")
        text.append(at("%l0", f"%a{len(arrays)}", "%g", size * count))
        for i, reg in enumerate(registers):
            text.append(f"ld.global.b{8 * size} {reg}, [%l0+{size * i}];")
        arrays.append(packed.reshape(-1))
        lists.append("{" + ", ".join(registers) + "}")
    size = 8 if kind_d == "f64" else 4
    per_lane = shape[0] * shape[1] // 32
    count = per_lane * plain.BITS[kind_d] // (8 * size)
    registers = [f"%dx{i}" for i in range(count)]
    text.append(f".reg .{register_kind(kind_d)} {', '.join(registers)};")
    text.append(f"{opcode} {{{', '.join(registers)}}}, {', '.join(lists)};")
    text.append(at("%l0", "%a3", "%g", size * count))
    for i, reg in enumerate(registers):
        text.append(f"st.global.b{8 * size} [%l0+{size * i}], {reg};")
    warps = len(fragments[0])
    arrays.append(np.zeros(32 * warps * count, np.uint64 if size == 8 else np.uint32))
    (*_, out), trace = run("\n".join(text), *arrays, block=32 * warps)
    return out.reshape(warps, 32, count), trace


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kinds"), FORMS, ids=lambda v: v if v[0] == "m" else ".".join(v))
def test_mma(name, kinds):
    shape = shape_of(name)
    rng = np.random.default_rng(len(name) + sum(map(ord, "".join(kinds))))
    modifiers = [""]
    if kinds[0] == "s32":
        modifiers = [".xor.popc", ".and.popc"] if kinds[1] == "b1" else ["", ".satfinite"]
    if {*kinds[1:3]} & {"e2m1", "e2m3", "e3m2"}:
        modifiers = [".kind::f8f6f4"]
    for modifier in modifiers:
        warps = 2
        matrices = []
        for w in range(warps):
            a, b, c = (
                random_matrix(*plain.dimensions(shape, role), kind, rng)
                for role, kind in zip("abc", kinds[1:], strict=True)
            )
            if kinds[0] == "s32" and w == 1:  # sums that leave the range
                c = [
                    [0x7FFFFFFF - (v & 7) if v & 8 else 0x80000000 + (v & 7) for v in r] for r in c
                ]
            matrices.append((a, b, c))
        fragments = [
            [plain.to_fragment(m[i], shape, kind, role) for m in matrices]
            for i, (role, kind) in enumerate(zip("abc", kinds[1:], strict=True))
        ]
        before, behind = ("", modifier) if "popc" in modifier else (modifier, "")
        opcode = f"mma.sync.aligned.{name}.row.col{before}.{'.'.join(kinds)}{behind}"
        out, trace = run_mma(opcode, shape, kinds, fragments)
        for w, (a, b, c) in enumerate(matrices):
            got = plain.to_matrix(
                [plain.unpack(lane, kinds[0]) for lane in out[w].tolist()], shape, kinds[0], "c"
            )
            expected = plain.multiply(
                a, b, c, kinds, saturate=modifier == ".satfinite", count_and=".and" in modifier
            )
            assert got == expected, modifier
        rows = trace.instructions
        assert list(rows[rows.op_class == "tensor"].opcode) == [opcode]


def test_mma_by_hand():
    # A has ones in its row 0 and column 0, B is 1, 2, … along k in column 3, C is 100 everywhere:
    # D[0][3] = 100 + 1 + … + 8 = 136, D[i][3] = 100 + 1, the rest of D is 100.
    one = 0x3C00
    a = [[one if r == 0 or c == 0 else 0 for c in range(8)] for r in range(16)]
    halves = np.arange(1, 9).astype(np.float16).view(np.uint16).tolist()
    b = [[halves[k] if c == 3 else 0 for c in range(8)] for k in range(8)]
    hundred = int(np.float32(100).view(np.uint32))
    c = [[hundred] * 8] * 16
    shape, kinds = (16, 8, 8), ("f32", "f16", "f16", "f32")
    fragments = [
        [plain.to_fragment(m, shape, kind, role)]
        for m, kind, role in zip((a, b, c), kinds[1:], "abc", strict=True)
    ]
    out, _ = run_mma("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", shape, kinds, fragments)
    values = np.array(out[0], np.uint32).view(np.float32)
    # Lane 1 (g = 0, t = 1) holds D[0][2], D[0][3], D[8][2], D[8][3].
    assert values[1].tolist() == [100, 136, 100, 101]
    assert values[9].tolist() == [100, 101, 100, 101]
    assert values[2].tolist() == [100, 100, 100, 100]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("space", [".shared", ""])
def test_ldmatrix_and_stmatrix(count, trans, space):
    rng = np.random.default_rng(count)
    values = rng.integers(0, 2**16, 1024, dtype=np.uint16)
    starts = rng.permutation(128)[:32].astype(np.uint32) * 16  # of rows, anywhere
    registers = ", ".join(f"%r{10 + i}" for i in range(count))
    generic = "" if space else "cvta.shared.u64 %l5, %l5;"
    body = (
        ".shared .align 16 .b8 tile[2048]; .shared .align 16 .b8 back[2048];"
        "mov.u64 %l4, tile; mov.u64 %l6, back;"
        + at("%l0", "%a0", "%t", 64)
        + at("%l1", "%l4", "%t", 64)
        + at("%l2", "%l6", "%t", 64)
        + "".join(
            f"ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%l0+{i}];"
            f"st.shared.v4.u32 [%l1+{i}], {{%r0, %r1, %r2, %r3}};"
            "mov.u32 %r4, 0;"
            f"st.shared.v4.u32 [%l2+{i}], {{%r4, %r4, %r4, %r4}};"
            for i in range(0, 64, 16)
        )
        + "bar.sync 0;"
        + at("%l3", "%a1", "%t", 4)
        + "ld.global.u32 %r5, [%l3]; cvt.u64.u32 %l7, %r5; add.u64 %l5, %l4, %l7;"
        + generic
        + f"ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {{{registers}}}, [%l5];"
        + "add.u64 %l5, %l6, %l7;"
        + generic
        + f"stmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 [%l5], {{{registers}}};"
        + "bar.sync 0;"
        + at("%l8", "%a2", "%t", 4 * count)
        + "".join(f"st.global.u32 [%l8+{4 * i}], %r{10 + i};" for i in range(count))
        + at("%l9", "%a3", "%t", 64)
        + "".join(
            f"ld.shared.v4.u32 {{%r0, %r1, %r2, %r3}}, [%l2+{i}];"
            f"st.global.v4.u32 [%l9+{i}], {{%r0, %r1, %r2, %r3}};"
            for i in range(0, 64, 16)
        )
    )
    (_, _, out, back), trace = run(
        body, values, starts, np.zeros(32 * count, np.uint32), np.zeros(1024, np.uint16)
    )
    expected = np.zeros(1024, np.uint16)
    for m in range(count):
        rows = [values[s // 2 : s // 2 + 8] for s in starts[8 * m : 8 * m + 8]]
        matrix = np.array(rows).T if trans else np.array(rows)
        for lane in range(32):
            low, high = matrix[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2].tolist()
            assert out[count * lane + m] == low | high << 16, (m, lane)
        for s, row in zip(starts[8 * m : 8 * m + 8], rows, strict=True):
            expected[s // 2 : s // 2 + 8] = row
    assert np.array_equal(back, expected)
    # 8 rows of 16 bytes take as many wavefronts as the most rows that begin in one of the 8 groups
    # of four banks.
    rows_of = starts[: 8 * count].reshape(count, 8) // 16 % 8
    wavefronts = sum(np.bincount(groups).max() for groups in rows_of)
    table, columns = trace.instructions, trace.warp(0, 0)
    for opcode, kind in [("ldmatrix", "load"), ("stmatrix", "store")]:
        (row,) = np.flatnonzero(table.opcode.str.startswith(opcode))
        line = table.iloc[row]
        assert (line.op_class, line.space, line.kind) == ("memory", "shared", kind)
        assert line.width == 4 * count
        assert columns["memory_count"][columns["memory_static"] == row].tolist() == [wavefronts]


def test_movmatrix():
    values = np.random.default_rng(1).integers(0, 2**32, 32, dtype=np.uint32)
    body = (
        at("%l0", "%a0", "%t", 4)
        + "ld.global.u32 %r0, [%l0]; movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r0;"
        + at("%l1", "%a1", "%t", 4)
        + "st.global.u32 [%l1], %r1;"
    )
    (_, out), _ = run(body, values, np.zeros(32, np.uint32))
    assert np.array_equal(out.view(np.uint16).reshape(8, 8), values.view(np.uint16).reshape(8, 8).T)


# ---- wmma ----

WMMA = [
    *((name, (d, "f16", "f16", c)) for name in ("m16n16k16", "m8n32k16", "m32n8k16")
      for d, c in [("f32", "f32"), ("f16", "f16"), ("f32", "f16"), ("f16", "f32")]),
    *((name, ("f32", "bf16", "bf16", "f32")) for name in ("m16n16k16", "m8n32k16", "m32n8k16")),
    *((name, ("s32", k, k, "s32")) for name in ("m16n16k16", "m8n32k16", "m32n8k16")
      for k in ("s8", "u8")),
    ("m16n16k8", ("f32", "tf32", "tf32", "f32")),
    ("m8n8k4", ("f64",) * 4),
    ("m8n8k32", ("s32", "s4", "s4", "s32")),
    ("m8n8k32", ("s32", "u4", "u4", "s32")),
    ("m8n8k128", ("s32", "b1", "b1", "s32")),
]  # fmt: skip


def num_registers(shape, kind, role):
    rows, columns = plain.dimensions(shape, role)
    if kind == "f16" and role in "ab":
        return 8
    return rows * columns // 32 * plain.BITS[kind] // (64 if kind == "f64" else 32)


def in_memory(matrix, kind, layout, stride):
    """Return bytes of a matrix whose rows (columns) are `stride` elements apart."""
    lines = matrix if layout == "row" else [list(line) for line in zip(*matrix, strict=True)]
    bits = plain.BITS[kind]
    number = 0
    for i, line in enumerate(lines):
        for j, value in enumerate(line):
            number |= value << (i * stride + j) * bits
    size = len(lines) * stride * bits // 8
    return np.frombuffer(number.to_bytes(size, "little"), np.uint8).copy()


def from_memory(data, kind, layout, stride, rows, columns):
    bits = plain.BITS[kind]
    number = int.from_bytes(data.tobytes(), "little")

    def element(r, c):
        place = r * stride + c if layout == "row" else c * stride + r
        return number >> place * bits & ((1 << bits) - 1)

    return [[element(r, c) for c in range(columns)] for r in range(rows)]


@pytest.mark.slow
@settings(max_examples=rounds(40))
@given(
    form=st.sampled_from(WMMA),
    layouts=st.tuples(*[st.sampled_from(["row", "col"])] * 4),
    padding=st.tuples(*[st.integers(0, 3)] * 4),
    through=st.sampled_from([".global", ""]),
    seed=st.integers(0, 2**32 - 1),
)
def test_wmma(form, layouts, padding, through, seed):
    name, kinds = form
    kind_d, kind_a, kind_b, kind_c = kinds
    shape = shape_of(name)
    if plain.BITS[kind_a] < 8:
        layouts = ("row", "col", *layouts[2:])
    rng = np.random.default_rng(seed)
    text, arrays, lists = [], [], []
    matrices = []
    roles = list(zip("abcd", "abcc", (kind_a, kind_b, kind_c, kind_d), strict=True))
    places = []
    for i, (matrix_name, role, kind) in enumerate(roles):
        rows, columns = plain.dimensions(shape, role)
        dense = columns if layouts[i] == "row" else rows
        stride = dense + padding[i] * (128 // plain.BITS[kind])
        places.append((layouts[i], stride, rows, columns))
        matrix = random_matrix(rows, columns, kind, rng)
        matrices.append(matrix)
        arrays.append(in_memory(matrix, kind, layouts[i], stride))
        registers = [f"%{matrix_name}x{j}" for j in range(num_registers(shape, kind, role))]
        text.append(f".reg .{register_kind(kind)} {', '.join(registers)};")
        lists.append("{" + ", ".join(registers) + "}")
        given_stride = f", {stride}" if padding[i] else ""
        if matrix_name != "d":
            text.append(
                f"wmma.load.{matrix_name}.sync.aligned.{layouts[i]}.{name}{through}.{kind} "
                f"{lists[i]}, [%a{i}]{given_stride};"
            )
    types = f"{kind_d}.{kind_c}" if kind_a == "f16" else ".".join(kinds)
    operation = ".xor.popc" if kind_a == "b1" else ""
    text.append(
        f"wmma.mma{operation}.sync.aligned.{layouts[0]}.{layouts[1]}.{name}.{types} "
        f"{lists[3]}, {lists[0]}, {lists[1]}, {lists[2]};"
    )
    layout, stride, rows, columns = places[3]
    text.append(
        f"wmma.store.d.sync.aligned.{layout}.{name}{through}.{kind_d} [%a3], {lists[3]}, {stride};"
    )
    before = arrays[3].copy()
    (*_, out), trace = run("\n".join(text), *arrays)
    got = from_memory(out, kind_d, layout, stride, rows, columns)
    assert got == plain.multiply(*matrices[:3], kinds)
    # The store leaves what lies between the rows.
    untouched = in_memory(
        [[(1 << plain.BITS[kind_d]) - 1] * columns for _ in range(rows)], kind_d, layout, stride
    )
    assert np.array_equal(out[untouched == 0], before[untouched == 0])
    # Every sector of the matrices is accessed, and no other.
    rows = trace.instructions
    assert set(rows.op_class[rows.opcode.str.startswith("wmma.mma")]) == {"tensor"}
    totals = ws.simulate_caches(trace, ws.gpu("qv100")).totals
    touched = 0
    for (matrix_name, _, kind), (where, step, height, width) in zip(roles, places, strict=True):
        ones = [[(1 << plain.BITS[kind]) - 1] * width for _ in range(height)]
        data = in_memory(ones, kind, where, step)
        data = np.pad(data, (0, -len(data) % 32)).reshape(-1, 32)
        if matrix_name != "d":
            touched += int(data.any(axis=1).sum())
    missed = totals["l1_read_sectors"] - totals["l1_read_sector_hits"]
    assert missed == touched


def test_wmma_trace_by_hand():
    # A of m16n16k16 in f16 lies in rows of 32 bytes: four tiles of 8 rows and 16 bytes, each read
    # by a load of 4 bytes per lane that touches 8 sectors. B in rows lies across its tiles and is
    # read along memory all the same. D in f32: four tiles of 8 rows and 32 bytes, 8 bytes per lane.
    halves = np.zeros(256, np.float16)
    names = {m: [f"%{m}x{i}" for i in range(8)] for m in ("a", "b", "d")}
    listed = {m: "{" + ", ".join(v) + "}" for m, v in names.items()}
    body = (
        f".reg .b32 {', '.join(names['a'] + names['b'])}; .reg .f32 {', '.join(names['d'])};"
        f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {listed['a']}, [%a0], 16;"
        f"wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {listed['b']}, [%a1], 16;"
        "mov.f32 %f0, 0f3f800000;"
        f"wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {listed['d']}, {listed['a']}, "
        f"{listed['b']}, {{{', '.join(['%f0'] * 8)}}};"
        f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%a2], {listed['d']}, 16;"
    )
    (*_, out), trace = run(body, halves, halves, np.zeros(256, np.float32))
    assert (out == 1).all()
    rows = trace.instructions
    rows = rows[rows.opcode.str.startswith("wmma")]
    assert list(rows.op_class) == ["memory"] * 8 + ["tensor"] * 2 + ["memory"] * 4
    assert list(rows.width) == [4] * 8 + [0] * 2 + [8] * 4
    totals = ws.simulate_caches(trace, ws.gpu("pascal-mdm")).totals
    assert totals["l1_read_sectors"] == 8 * 8
    assert totals["l1_write_sectors"] == 4 * 8
    assert totals["load_instructions"] == 8
    assert totals["store_instructions"] == 4


# ---- kernels as nvcc compiles them ----

WMMA_GEMM = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void gemm(const half* a, const half* b, float* c, int n, int k) {
  // A block of four warps makes a tile of 32 x 32, each warp a quarter.
  const int warp = threadIdx.x / 32;
  const int row = blockIdx.y * 32 + warp / 2 * 16, column = blockIdx.x * 32 + warp % 2 * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + row * k + i, k);
    wmma::load_matrix_sync(fb, b + i * n + column, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  for (int i = 0; i < fc.num_elements; ++i) fc.x[i] *= 2.0f;
  wmma::store_matrix_sync(c + row * n + column, fc, n, wmma::mem_row_major);
}
"""

MMA_GEMM = r"""
#include <cuda_fp16.h>
extern "C" __global__ void gemm(const half* a, const half* b, float* c, int n, int k) {
  // A warp makes 16 x 8 from shared memory: A as it lies, B, whose rows are along n, transposed.
  __shared__ __align__(16) half as[16][16];
  __shared__ __align__(16) half bs[16][8];
  const int lane = threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 8;
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < k; i += 16) {
    __syncwarp();
    for (int e = lane; e < 256; e += 32) as[e / 16][e % 16] = a[(row + e / 16) * k + i + e % 16];
    for (int e = lane; e < 128; e += 32) bs[e / 8][e % 8] = b[(i + e / 8) * n + column + e % 8];
    __syncwarp();
    unsigned ra[4], rb[2];
    const unsigned pa = __cvta_generic_to_shared(&as[lane % 16][lane / 16 * 8]);
    const unsigned pb = __cvta_generic_to_shared(&bs[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1]) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  }
  float* out = c + (row + lane / 4) * n + column + lane % 4 * 2;
  out[0] = 2 * d[0], out[1] = 2 * d[1];
  out[8 * n] = 2 * d[2], out[8 * n + 1] = 2 * d[3];
}
"""


def written_as_sass(trace, folder):
    ws.save(ws.App([trace]), folder / "sass", format="accelsim")
    (kernel,) = ws.load(folder / "sass" / "kernelslist.g").kernels
    return kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "tile", "block"), [(WMMA_GEMM, (32, 32), 128), (MMA_GEMM, (16, 8), 32)]
)
@pytest.mark.parametrize("exact", [True, False])
def test_gemm(source, tile, block, exact, tmp_path):
    if not (shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")):
        pytest.skip("there is no nvcc here")
    m, n, k = 64, 96, 80
    rng = np.random.default_rng(1)
    # Small integers: every sum is exact in any order.
    a, b = (
        (rng.integers(-8, 9, s) if exact else rng.normal(0, 1, s)).astype(np.float16)
        for s in ((m, k), (k, n))
    )
    device = ws.cuda.Device(0.25)
    module = ws.cuda.compile(source, arch="sm_80", compiler="nvcc", device=device)
    c = device.zeros((m, n), np.float32)
    grid = (n // tile[1], m // tile[0])
    trace = module.kernel("gemm").launch(grid, block, device.array(a), device.array(b), c, n, k)
    expected = 2 * (a.astype(np.float64) @ b.astype(np.float64))
    if exact:
        assert np.array_equal(c.to_host(), expected)
    else:
        # Each of k sums is off by half a unit of f32 of at most the sum of magnitudes.
        bound = 2 * k * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
        assert (np.abs(c.to_host() - expected) <= bound).all()
    again = written_as_sass(trace, tmp_path)
    gpu = ws.gpu("a100")
    assert ws.simulate_caches(again, gpu).totals == ws.simulate_caches(trace, gpu).totals
    rows = trace.instructions
    # 16 x 8 x 16 per matrix operation of the machine.
    assert rows.executions[rows.op_class == "tensor"].sum() == m * n * k // (16 * 8 * 16)


# ---- faults and refusals ----

MMA = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r2, %r3}, {%r4}, {%r5, %r6};"


@pytest.mark.parametrize(
    ("body", "block", "message"),
    [
        (MMA, 48, r"needs all 32 threads of its warp, 16 of warp 1 execute it"),
        ("setp.eq.u32 %p0, %t, 0; @%p0 " + MMA, 32, r"1 of warp 0 execute it"),
        (
            "mov.u32 %r0, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0];",
            32,
            r"misaligned load of 16 bytes at 0x8",
        ),
        (
            ".shared .b16 s[64]; mov.u32 %r0, 128;"
            "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r0];",
            32,
            r"the block has 128 bytes of shared memory",
        ),
        (
            "mov.u64 %l0, %a0; ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%l0];",
            32,
            r"is not an address of shared memory",
        ),
        (
            "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d0}, [%a0], 4;",
            32,
            r"out-of-bounds load of 8 bytes .*32-byte allocation",
        ),
        (
            "wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%a0+4], {%d0, %d1}, 4;",
            32,
            r"misaligned store of 16 bytes",
        ),
    ],
)
def test_faults(body, block, message):
    with pytest.raises(InputError, match=message):
        run(body, np.zeros(8, np.float32), block=block)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (MMA.replace("m16n8k8", "m16n8k32"), "these types are not multiplied in this shape"),
        (MMA.replace("m16n8k8", "m7n8k8"), "this shape is not supported"),
        (MMA.replace("row.col", "col.col"), "A lies in rows and B in columns"),
        (MMA.replace("{%r4}", "{%r4, %r7}"), "operand 2 has 2 registers instead of 1"),
        (MMA.replace("f16.f16.f16.f16", "f16.e3m4.e3m4.f16"), r"matrices of \.e3m4"),
        (MMA.replace("f16.f16.f16.f16", "f16.e4m3.e4m3.f16"), "not multiplied in this shape"),
        (MMA.replace("mma.sync", "mma.sp.sync"), "sparse matrices are not supported"),
        (MMA.replace("m16n8k8.row.col", "m8n8k4.row.col"), "compute capability 7.0"),
        (
            "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r0}, [%a0];",
            "operand 0 has 1 registers instead of 8",
        ),
        (
            "wmma.load.a.sync.aligned.col.m8n8k32.global.s4 {%r0}, [%a0];",
            "A lies in rows and B in columns",
        ),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1];", "too few or many registers"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0}, [%r1];", "shape is not supported"),
        (
            "tcgen05.fence::before;",
            "kernel k: cannot simulate tcgen05.fence::before: this operation on tensor memory",
        ),
    ],
)
def test_refusals(instruction, message):
    with pytest.raises(InputError, match=message):
        run(instruction, np.zeros(8, np.float32))
