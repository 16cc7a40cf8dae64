"""Programs that copy tiles of tensors and use clusters, through CUDA's own headers and the driver."""

import shutil
import subprocess
from pathlib import Path

import pytest

import warpstack as ws
from warpstack.cuda import host

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    path = tmp_path_factory.mktemp("programs") / "hopper"
    command = [nvcc, "-std=c++17", "-cudart", "shared", "-w", "-o", path]
    command += ["-gencode", "arch=compute_90a,code=compute_90a"]
    subprocess.run([*command, HERE / "host_programs" / "hopper.cu"], check=True, timeout=300)
    return str(path)


@pytest.mark.slow
def test_tiles(program, tmp_path, capfd):
    result = host.trace_program([program, "tiles"], tmp_path / "out")
    out, err = capfd.readouterr()
    assert not result.problem()
    # A box of three words is refused. The array is 0, 1, … by rows of 32; of the doubled tile rows 6
    # and 7 from column 24 on lie in it: 5 * 32 + 24, 6 * 32 + 23, 2 * (6 * 32 + 24), 2 * 255.
    assert out.splitlines() == ["1 0", "184 215 432 510"]
    assert "a row of the box has 12 bytes, which is not a multiple of 16" in err
    (kernel,) = ws.load(tmp_path / "out")
    rows = kernel.instructions
    assert rows.opcode.str.startswith("cp.async.bulk.tensor").sum() == 2


@pytest.mark.slow
def test_clusters(program, tmp_path, capfd):
    host.trace_program([program, "clusters"], tmp_path / "out")
    out, err = capfd.readouterr()
    assert out.splitlines() == ["410 410", "cudaErrorInvalidClusterSize"]
    assert "6 blocks along x, which is not a multiple of the cluster's 4" in err
