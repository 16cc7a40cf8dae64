"""What only sm_100a has, as machine code: tensor memory, its products, copies and allocations.

The tests of the same instructions of PTX run once more, with the code that ptxas makes of them. What
they must give is said there by plain definitions.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from executed_forms import problem
from test_machine_code_of_sm_90a import RESERVED, needs_tools, rows_of
from test_sass_forms import cases_of, module_named

import machine_forms
import warpstack as ws
from python_reference import ptx_tensor_memory

ARCH = "sm_100a"
OF_PTX = module_named("test_ptx_tensor_memory")


@pytest.fixture
def as_machine_code(monkeypatch):
    monkeypatch.setattr(ws.cuda, "compile", machine_forms.compiler_for(ARCH))
    for name in ("place_rows", "place_columns"):
        plain = getattr(ptx_tensor_memory, name)
        # Variables begin behind the system's bytes.
        monkeypatch.setattr(ptx_tensor_memory, name, lambda *a, f=plain: f(*a) + RESERVED)


def collect(*labels):
    for label in labels:
        function = getattr(OF_PTX, label)
        for number, case in enumerate(cases_of(function)):
            yield pytest.param(function, case, id=f"{label.removeprefix('test_')}-{number}")


CASES = [
    *collect("test_types_and_swizzles", "test_factors_by_columns", "test_stationary_weights"),
    *collect("test_a_in_tensor_memory", "test_signs", "test_a_scale_of_d", "test_saturation"),
    *collect("test_transfers", "test_copies_from_shared_memory", "test_shift"),
    *collect("test_block_scaled_products", "test_products_of_pairs"),
    *collect("test_factors_of_pairs_by_columns", "test_several_pairs_and_lanes_of_pairs"),
    *collect("test_block_scaled_products_of_pairs", "test_copies_and_shifts_of_pairs"),
    *collect("test_copies_of_tiles_signal_blocks_of_pairs"),
]


@needs_tools
@pytest.mark.parametrize(("function", "case"), CASES[::11])
def test_some_of_tensor_memory(function, case, as_machine_code):
    function(**case)


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize(("function", "case"), CASES)
def test_tensor_memory(function, case, as_machine_code):
    function(**case)


@needs_tools
def test_reductions_of_floats(as_machine_code):
    module_named("test_ptx_machine").test_redux_of_floats()


@pytest.mark.parametrize("first", ["C", "L", "S", "U"])
def test_forms_are_executed(first):
    with open(Path(__file__).with_name("forms-of-sm_100a.csv"), newline="") as file:
        forms = [tuple(row) for row in csv.reader(file) if row[0].startswith(first)]
    assert forms
    assert {form: why for form in forms if (why := problem("sm_100", *form))} == {}


SCALED = "gdesc[UR8],gdesc[UR10],tmem[UR6],tmem[UR4],idesc[UR5],"


@pytest.mark.parametrize(
    ("opcode", "operands", "message"),
    [
        ("UTCHMMA.ASHIFT", SCALED + "UP0", "modifier .ASHIFT"),
        ("UTCHMMA.WS", SCALED + "UR12,UP0", "masks of columns"),
        ("UTCHMMA", SCALED + "UP0,0x10", "no shift of D from 0 to 15"),
        ("UTCQMMA", SCALED + "UP0,0x1", "no shift of D from 0 to 15"),
        ("UTCOMMA", SCALED + "UP0", "its scales are missing"),
        ("UTCHMMA", "UR8,gdesc[UR10],tmem[UR6],tmem[UR4],idesc[UR5],UP0", "operand UR8"),
        ("UTCHMMA", SCALED.replace("idesc", "tmem") + "UP0", "operand tmem[UR5]"),
        ("LDTM.x128", "R200,tmem[UR4]", "its 128 registers are more than the kernel has"),
        ("LDTM.x3", "R4,tmem[UR4]", "modifier .x3"),
        ("LDTM.16dp256bit.x64", "R4,tmem[UR4]", "more than 128 registers"),
        ("UTCBAR", "[UR4],UR5", "its second operand is not URZ"),
        ("UTCATOMSWS.OR", "URZ,UR5", "this form is not executed"),
        ("UTCCP.T", "tmem[UR4],gdesc[UR6]", "no copy from shared to tensor memory"),
        ("STAS", "[R2.64+0x4],R10", "is not like [R2.64]"),
    ],
)
def test_refusals(opcode, operands, message):
    assert message in problem("sm_100", opcode, operands)


def test_forms_of_public_kernels():
    refused = [
        (row["opcode"], row["example_operands"])
        for row in rows_of(ARCH)
        if problem("sm_100", row["opcode"], row["example_operands"])
    ]
    assert refused == []


def gemm(a, b, *, machine_code, gpu):
    """Return D = A * B^T, the trace of its launch and its simulated cycles."""
    (m, k), n = a.shape, len(b)
    device = ws.cuda.Device(0.25)
    options = {"machine_code": ARCH} if machine_code else {"arch": ARCH}
    kernel = ws.cuda.compile(OF_PTX.GEMM, device=device, **options).kernel("gemm")
    d = device.zeros(m * n, np.float32)
    arrays = [device.array(x) for x in (a, b)]
    trace = kernel.launch((n // 64, m // 128), 128, *arrays, d, np.int32(n), np.int32(k))
    return d.to_host(), trace, ws.simulate(trace, gpu).cycles


@needs_tools
@pytest.mark.skipif(not ws.cuda.compilers(), reason="neither nvcc nor NVRTC is installed")
def test_gemm_of_cuda():
    """Bit for bit what its PTX gives, of random numbers, in about the same time."""
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal((rows, 256)).astype(np.float16) for rows in (256, 128))
    gpu = ws.gpu("b200")
    (of_ptx, _, cycles), (d, trace, machine_cycles) = (
        gemm(a, b, machine_code=is_machine, gpu=gpu) for is_machine in (False, True)
    )
    assert d.tobytes() == of_ptx.tobytes()
    opcodes = trace.instructions
    products = opcodes[opcodes.opcode == "UTCHMMA.128x64x16.F32.F16.F16"]
    assert products.executions.sum() == 2 * 2 * 256 // 16
    assert machine_cycles == pytest.approx(cycles, rel=0.3)
