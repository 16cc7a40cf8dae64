"""What only sm_90a has, as machine code: products of four warps, mbarriers, bulk copies, clusters.

The tests of the same instructions of PTX run once more, with the code that ptxas makes of them. What
they must give is said there by plain definitions.
"""

import csv
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from executed_forms import problem
from test_sass_forms import cases_of, module_named

import machine_forms
import warpstack as ws
from python_reference import ptx_warpgroup
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_ptxas

ARCH = "sm_90a"
HERE = Path(__file__).resolve().parent
TABLE = HERE.parents[3] / "shared" / "reference" / "sass-forms-tensor.csv"
#: Bytes before the first variable of shared memory, in units of 16 as descriptors have them.
RESERVED = 1024 // 16

needs_tools = pytest.mark.skipif(
    find_nvdisasm() is None or find_ptxas() is None, reason="ptxas or nvdisasm is not installed"
)


def with_text_of(source):
    """Return PTX for this architecture in a version that ptxas has for it."""
    text = machine_forms.for_target(source, ARCH)
    return re.sub(r"\.version \d+\.\d+", ".version 8.6", text)


@pytest.fixture
def as_machine_code(monkeypatch):
    plain = ws.cuda.compile

    def compile_it(source, **options):
        return plain(with_text_of(source), machine_code=ARCH, **options)

    monkeypatch.setattr(ws.cuda, "compile", compile_it)


def own_forms():
    """Return (opcode, operands) of what ptxas makes of these tests."""
    with open(HERE / "forms-of-sm_90a.csv", newline="") as file:
        return [tuple(row) for row in csv.reader(file)]


@pytest.mark.parametrize("first", ["B", "E", "H", "I", "N", "Q", "R", "S", "U", "W"])
def test_forms_are_executed(first):
    forms = [form for form in own_forms() if form[0].startswith(first)]
    assert forms
    assert {form: why for form in forms if (why := problem("sm_90", *form))} == {}


def rows_of(arch):
    """Return the forms of the table that public kernels use on an architecture."""
    if not TABLE.exists():
        pytest.skip("the table of forms is not here")
    with open(TABLE, newline="") as file:
        return [row for row in csv.DictReader(file) if row["arch"] == arch]


def test_forms_of_public_kernels():
    rows = rows_of(ARCH)
    assert len(rows) > 300
    refused = [r for r in rows if problem("sm_90", r["opcode"], r["example_operands"])]
    assert [(r["opcode"], r["example_operands"]) for r in refused] == []


def collect(name, *labels):
    module = module_named(name)
    for label in labels:
        function = getattr(module, label)
        for number, case in enumerate(cases_of(function)):
            yield pytest.param(function, case, id=f"{label.removeprefix('test_')}-{number}")


@needs_tools
@pytest.mark.parametrize(
    ("function", "case"),
    [
        *collect(
            "test_ptx_async_barriers",
            "test_phases_by_hand",
            "test_bytes_and_drops_by_hand",
            "test_producer_and_consumers",
            "test_copies_that_arrive",
        ),
        *collect("test_ptx_bulk_copies", "test_reduction", "test_store_of_a_tile"),
    ],
)
def test_barriers_and_copies(function, case, as_machine_code):
    function(**case)


@needs_tools
@pytest.mark.parametrize(
    ("function", "case"),
    [
        *collect(
            "test_ptx_clusters",
            "test_positions_by_hand",
            "test_shared_memory_of_the_next_block",
            "test_arrival_in_another_block",
            "test_atomics_in_another_block",
            "test_stores_that_complete",
            "test_the_kernel_asks_for_clusters",
        )
    ],
)
def test_clusters(function, case, as_machine_code):
    function(**case)


OF_CLUSTERS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2,2,1) k(float* out, double* d, float* sums) {
  __shared__ float s; __shared__ double t;
  auto c = cg::this_cluster();
  if (threadIdx.x == 0) { s = 0; t = 0; }
  c.sync();
  atomicAdd(c.map_shared_rank(&s, c.block_rank() ^ 1), 1.5f);
  atomicAdd(c.map_shared_rank(&t, c.block_rank() ^ 2), 2.5);
  float* p = threadIdx.x & 1 ? &s : sums;
  atomicAdd(p, 0.5f);
  c.sync();
  int b = blockIdx.x + gridDim.x * blockIdx.y;
  auto bi = c.block_index();
  if (threadIdx.x == 0) { out[b] = s; d[b] = t + 1000 * bi.y + 100 * bi.x + 10000 * c.block_rank(); }
}
"""


@needs_tools
@pytest.mark.parametrize("arch", [None, "sm_90", "sm_90a", "sm_100a", "sm_103", "sm_120a"])
def test_clusters_of_cpp(arch):
    """Sums of floats in other blocks' memory, which code tries again, and places in a cluster."""
    device = ws.cuda.Device(0.2)
    options = {"arch": "compute_90"} if arch is None else {"machine_code": arch}
    module = ws.cuda.compile(OF_CLUSTERS, device=device, **options)
    sums, doubles = device.zeros(16, np.float32), device.zeros(16, np.float64)
    shared = device.zeros(1, np.float32)
    module.kernel("k").launch((4, 4), 64, sums, doubles, shared)
    # 64 threads of another block add 1.5, 32 of the own one 0.5 each; the others 0.5 to all blocks' sum.
    assert np.asarray(sums).tolist() == [64 * 1.5 + 32 * 0.5] * 16
    assert np.asarray(shared).tolist() == [16 * 32 * 0.5]
    x, y = np.meshgrid(np.arange(4) % 2, np.arange(4) % 2)
    expected = 64 * 2.5 + 1000 * y + 100 * x + 10000 * (x + 2 * y)
    assert np.asarray(doubles).tolist() == expected.reshape(-1).tolist()


@needs_tools
def test_one_copy_for_all_blocks(as_machine_code):
    module_named("test_ptx_clusters").one_copy_for_all_blocks("UBLKCP.S.G.MULTICAST")


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "case"),
    [*collect("test_ptx_bulk_copies", "test_random_tiles", "test_random_views")],
)
def test_random_tiles(function, case, as_machine_code):
    function(**case)


PRODUCTS = [
    *collect("test_ptx_warpgroup", "test_types_and_swizzles", "test_transposed_factors"),
    *collect("test_ptx_warpgroup", "test_a_in_registers", "test_signs"),
    *collect("test_ptx_warpgroup", "test_half_accumulators_are_rounded_once"),
]


def run_products(function, case, monkeypatch):
    for name in ("place_rows", "place_columns"):
        plain = getattr(ptx_warpgroup, name)
        # Variables begin behind the system's bytes.
        monkeypatch.setattr(ptx_warpgroup, name, lambda *a, f=plain: f(*a) + RESERVED)
    function(**case)


@needs_tools
@pytest.mark.parametrize(("function", "case"), PRODUCTS[::6])
def test_some_products(function, case, as_machine_code, monkeypatch):
    run_products(function, case, monkeypatch)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(("function", "case"), PRODUCTS)
def test_products(function, case, as_machine_code, monkeypatch):
    run_products(function, case, monkeypatch)


def triton_kernels():
    pytest.importorskip("triton")
    place = HERE.parent / "frontends" / "triton_kernels.py"
    spec = importlib.util.spec_from_file_location("triton_kernels", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_tools
@pytest.mark.parametrize(("m", "n", "k"), [(256, 128, 128), (200, 136, 72)])
@pytest.mark.parametrize("name", ["matmul", "tensor_matmul"])
def test_matmul_of_triton(name, m, n, k):
    """Bit for bit what its PTX gives: cp.async or tiles by a map that it makes itself, and wgmma."""
    kernels = triton_kernels()
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    across, down = -(-n // 64), -(-m // 128)
    grid = across * down if name == "matmul" else (down, across)
    results, traces = [], []
    for is_machine in (False, True):
        c = ws.cuda.empty((m, n), np.float16)
        compiled = ws.triton.compile(
            getattr(kernels, name),
            ws.cuda.array(a),
            ws.cuda.array(b),
            c,
            m,
            n,
            k,
            BM=128,
            BN=64,
            BK=64,
            num_warps=4,
            target="sm_90",
            machine_code=is_machine,
            **({"GROUP": 2} if name == "matmul" else {}),
        )
        traces.append(compiled.launch(grid, check_races=True))
        results.append(np.asarray(c))
    assert results[0].tobytes() == results[1].tobytes()
    counts = [
        trace.instructions.groupby("op_class").executions.sum().get("tensor", 0) for trace in traces
    ]
    assert counts[0] == counts[1] > 0
