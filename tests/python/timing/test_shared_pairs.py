"""Wide loads of shared memory whose lane pairs read one address: half the wavefronts, from every source."""

import shutil

import numpy as np
import pytest

import warpstack as ws
from machines import plain_pascal
from warpstack.cuda.disassembly import find_nvdisasm

#: Place of a lane, and wavefronts of a load of 8 and of 16 bytes.
PLACES = {
    "t / 2": (1, 2),
    "(t & 1) | (t / 4 * 2)": (1, 2),
    "5": (1, 2),
    "t": (2, 4),
    "(t & 3) | (t / 8 * 4)": (2, 4),
}
SOURCE = """
extern "C" __global__ void wide(TYPE* data) {
    __shared__ TYPE tile[32];
    int t = threadIdx.x;
    tile[t] = data[t];
    __syncwarp();
    data[t] = tile[PLACE];
}
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize(
    "machine_code",
    [
        None,
        pytest.param(
            "sm_75",
            marks=pytest.mark.skipif(find_nvdisasm() is None, reason="there is no nvdisasm"),
        ),
    ],
)
@pytest.mark.parametrize("place", PLACES)
def test_of_cuda_programs(machine_code, place):
    for vector, width, expected in (
        ("float2", 2, PLACES[place][0]),
        ("float4", 4, PLACES[place][1]),
    ):
        source = SOURCE.replace("TYPE", vector).replace("PLACE", place)
        options = {"machine_code": machine_code} if machine_code else {}
        data = ws.cuda.array(np.ones(32 * width, np.float32))
        trace = ws.cuda.compile(source, **options).kernel("wide").launch(1, 32, data)
        table = ws.simulate_caches(trace, plain_pascal()).per_pc
        shared = table[table["space"] == "shared"].set_index("kind")["shared_wavefronts"]
        assert shared["load"] == expected
        assert shared["store"] == width  # 128 bytes go in per wavefront


def test_of_exported_traces(tmp_path):
    """An Accel-Sim file has addresses that take as many wavefronts."""
    k = ws.patterns.KernelBuilder("wide", grid=1, block=32)
    for width, opcode in ((8, "LDS.64"), (16, "LDS.128")):
        for place in (k.thread // 2, k.thread & ~2, k.thread, 32 * (k.thread // 2)):
            k.emit(opcode, dst=4, src=2, address=width * place)
            k.emit(opcode, dst=4, src=2, address=width * place, predicate=k.thread % 4 == 0)
    k.emit("EXIT")
    kernel = k.build()
    counts = kernel.warp(0, 0)["memory_count"].tolist()
    assert {1, 2, 4, 8} <= set(counts)
    ws.save(kernel, tmp_path / "out", format="accelsim")
    (again,) = ws.load(tmp_path / "out")
    assert again.warp(0, 0)["memory_count"].tolist() == counts
