"""Machine code against a trace that NVBit made of the same kernel on a GPU."""

import sys
from pathlib import Path

import pytest

import warpstack as ws
from warpstack.cuda.disassembly import find_nvdisasm

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "studies"))
import machine_code as study

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None or not ws.cuda.compilers(),
    reason="nvdisasm or a CUDA compiler is not installed",
)


@pytest.fixture(scope="module")
def ours():
    return study.run_like_the_trace()


def test_it_is_that_of_the_gpu(shared, ours):
    """Opcodes, registers, lanes and sectors of every warp instruction."""
    real = ws.load(shared / "traces" / "cuda-vectoradd")[0]
    assert list(study.executed(ours).opcode) == list(study.executed(real).opcode)
    table = study.agreement(real, ours)
    assert table.of.max() == real.num_instructions == ours.num_instructions
    assert table[table.agree != table.of].empty


def test_other_code_is_told_apart(ours):
    """Without the sample's second addition there are other instructions from there on."""
    device = ws.cuda.Device(0.1)
    module = ws.cuda.compile(study.KERNELS / "vector_add.cu", machine_code="sm_80", device=device)
    a, b, c = (device.zeros(study.ELEMENTS) for _ in range(3))
    other = module.kernel("vector_add").launch(study.GRID, study.BLOCK, a, b, c, study.ELEMENTS)
    table = study.agreement(ours, other).set_index("compared")
    assert table.agree["opcode with modifiers, in order"] < ours.num_instructions
    assert table.agree["warps"] == 1
    assert table.agree["places in the code"] == 0
