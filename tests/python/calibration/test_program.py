"""The program that measures: compilers take it, what they make of its kernels, a run without a GPU."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import warpstack as ws
from card_output import output
from host_compiler import linking_nvcc
from warpstack.calibration.measurements import read_measurements
from warpstack.calibration.program import program_source
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.cuda.toolchain import find_nvcc, find_ptxas

SOURCE = Path(ws.__file__).parent / "calibration/calibrate.cu"
ARCHITECTURES = ("sm_75", "sm_80", "sm_90")

needs_nvcc = pytest.mark.skipif(
    linking_nvcc() is None, reason="needs nvcc of a toolkit, with libcudart.so"
)
needs_disassembly = pytest.mark.skipif(
    not ws.cuda.compilers() or find_ptxas() is None or find_nvdisasm() is None,
    reason="needs a CUDA compiler and nvdisasm",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Build the program for some architectures and as PTX, with warnings as errors."""
    path = tmp_path_factory.mktemp("program") / "calibrate"
    codes = [f"-gencode=arch={a.replace('sm', 'compute')},code={a}" for a in ARCHITECTURES]
    codes += ["-gencode=arch=compute_75,code=compute_75", "-cudart=shared"]
    warnings = ["--Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra"]
    subprocess.run([find_nvcc(), *codes, *warnings, "-o", path, SOURCE], check=True, timeout=300)
    return path


@pytest.fixture(scope="module", params=ARCHITECTURES)
def opcodes(request):
    """Return how often the kernels of one architecture have each opcode, by kernel."""
    listing = ws.cuda.compile(SOURCE, machine_code=request.param).listing
    found = {}
    for part in listing.split("\n.kernel ")[1:]:
        lines = re.findall(r"^[0-9a-f]+ \d+:\d+ (?:@!?U?P\w+ )?([A-Z0-9]+)", part, re.MULTILINE)
        found[part.split()[0]] = Counter(lines)
    return found


#: The opcodes of one instruction of a chain, as the architectures have them.
CHAINS = {
    "integer": ("IADD3", "VIADD", "LOP3"),
    "fp32": ("FFMA",),
    "fp16": ("HFMA2",),
    "fp64": ("DFMA",),
    "sfu": ("MUFU",),
    "conversion": ("I2F", "I2FP", "F2I"),
    "shuffle": ("SHFL",),
    "barrier": ("BAR",),
    "integer_wide": ("IADD3", "VIADD", "LOP3"),
    "fp32_wide": ("FFMA",),
    "fp16_wide": ("HFMA2",),
    "fp64_wide": ("DFMA",),
    "sfu_wide": ("MUFU",),
    "conversion_wide": ("I2F", "I2FP", "F2I"),
    "issue_wide": ("FFMA", "IADD3", "VIADD", "IMAD", "LOP3"),
}


@needs_disassembly
@pytest.mark.slow
def test_chains_are_what_they_are_called(opcodes):
    """The compiler neither folds nor merges a chain: 128 instructions more are 128 of its opcodes more."""
    for name, expected in CHAINS.items():
        more = opcodes[f"{name}_192"] - opcodes[f"{name}_64"]
        own = sum(more[opcode] for opcode in expected)
        assert own == pytest.approx(128, abs=2), (name, more)
        assert sum(more.values()) == pytest.approx(128, abs=10), (name, more)


@needs_disassembly
@pytest.mark.slow
def test_loads_are_where_they_should_be(opcodes):
    assert opcodes["misses"]["LDG"] == 32
    assert opcodes["stream"]["LDG"] >= 4
    assert opcodes["chase_shared"]["LDS"] >= 8
    assert opcodes["chase_constant"]["LDC"] >= 8
    assert opcodes["chase_ca"]["LDG"] == opcodes["chase_cg"]["LDG"] >= 8
    assert opcodes["loads"]["LDG"] == opcodes["shared_loads"]["LDS"] == 32


@needs_disassembly
@pytest.mark.slow
def test_stores_atomics_and_code_are_what_they_should_be(opcodes):
    assert opcodes["turnover"]["STG"] == opcodes["fill"]["STG"] == 1
    assert opcodes["stores"]["STG"] == 2
    assert opcodes["reductions"]["RED"] + opcodes["reductions"]["REDG"] == 1
    assert opcodes["reductions"]["STG"] == 1
    for length in (8, 24):
        kernel = opcodes[f"beside_atomic_{length}"]
        assert (kernel["ATOMG"], kernel["FFMA"]) == (1, length)
    assert opcodes["straight"]["IMAD"] == pytest.approx(10 * 1024, abs=10)
    assert sum(opcodes["straight"].values()) < 10 * 1024 + 100


GPU = """
based_on: h100-pcie
num_sms: 4
l2_size_kib: 640
l2_slices: 8
"""


@needs_nvcc
@pytest.mark.slow
@pytest.mark.skipif(
    not (Path(ws.__file__).parent / "lib/libwarpstack_cudart.so").is_file(),
    reason="built without the stand-in for libcudart",
)
def test_it_runs_to_its_end_without_a_gpu(program, tmp_path):
    """On the stand-in for a GPU, where only the results are real: the times mean nothing."""
    (tmp_path / "small.yaml").write_text(GPU)
    script = tmp_path / "script"
    script.write_text(f'#!/bin/sh\nexec "{program}" quick > "{tmp_path}/run.txt"\n')
    script.chmod(0o755)
    ws.cuda.host.trace_program(
        [script], tmp_path / "traced", gpu=ws.gpu(tmp_path / "small.yaml"), limit_launches=1
    )
    run = read_measurements(tmp_path / "run.txt")
    assert run.texts["device.name"] == "warpstack_small"
    assert run.properties["device.sms"] == 4
    assert {*run.samples} == {line.split()[0] for line in output().splitlines()[16:-1]}
    source = program_source()
    for key in run.samples:
        kind, _, name = key.partition(".")
        assert f'emit("{key} ' in source or (kind in ("latency", "interval") and name in source)


@needs_nvcc
@pytest.mark.slow
def test_without_a_gpu_it_says_which_call_failed(program):
    libraries = Path(find_nvcc()).resolve().parents[1] / "lib64"
    if Path("/dev/nvidia0").exists() or not (libraries / "libcudart.so").exists():
        pytest.skip("there is a GPU, or no libcudart beside nvcc")

    def run(*arguments):
        environment = {"LD_LIBRARY_PATH": str(libraries)}
        return subprocess.run(
            [program, *arguments], capture_output=True, text=True, check=False, env=environment
        )

    result = run()
    assert (result.returncode, result.stdout) == (1, "")
    assert re.match(r"calibrate: line \d+: cudaSetDevice\(0\): .* \(cudaError", result.stderr)
    result = run("fast")
    assert (result.returncode, result.stderr) == (2, "usage: calibrate [quick] > run.txt\n")
