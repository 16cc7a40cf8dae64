"""Small inputs that once went wrong, as they were reported, with what each of them says is expected."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import compiler_cache
import warpstack as ws
from warpstack.cuda.disassembly import find_nvdisasm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="programs need Linux"),
    pytest.mark.skipif(
        find_nvdisasm() is None or not ws.cuda.compilers(),
        reason="nvdisasm or a CUDA compiler is not installed",
    ),
]

#: Programs that need a timed order of blocks, or waits at numbered barriers, or that only measure.
NOT_YET = {"named.cu", "queue.cu", "l2_initial_state.py", "sass_stack.cu", "README.md"}


@pytest.fixture(scope="module")
def faults(shared):
    return shared / "reference" / "faults"


@pytest.fixture(scope="module")
def nvcc():
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if found is None:
        pytest.skip("nvcc is not installed")
    return found


@pytest.fixture
def trace(faults, nvcc, tmp_path):
    """Return a function that builds a program, traces it, and returns what it prints."""

    def call(name, *options, arch="compute_80", machine_code=None, arguments=(), status=0):
        program = tmp_path / f"{name}-{arch}-{len(options)}"
        if not program.exists():
            code = f"arch={arch},code={arch}"
            # Machine code of linked objects is not made of their PTX later.
            sm = f"arch={arch},code={arch.replace('compute', 'sm')}"
            linked = ["-gencode", sm] if "-rdc=true" in options else []
            command = [
                nvcc,
                "-cudart",
                "shared",
                "-gencode",
                code,
                *linked,
                *options,
                "-o",
                program,
            ]
            compiler_cache.nvcc([*command, faults / name])
        words = ["trace", "-o", tmp_path / "out", "--overwrite"]
        if machine_code:
            words += ["--machine-code", machine_code]
        done = subprocess.run(
            [sys.executable, "-m", "warpstack", *words, "--", program, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    return call


@pytest.fixture
def script(faults, tmp_path):
    """Return a function that runs a script away from where it lies, and returns its lines."""

    def call(name, *beside):
        for other in beside:
            shutil.copy(faults / other, tmp_path)
        path = os.pathsep.join([os.environ["PATH"], "/usr/local/cuda/bin"])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", faults / name],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return call


def need(*modules):
    for module in modules:
        pytest.importorskip(module)


def test_every_input_is_tried_here(faults):
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    for path in faults.iterdir():
        assert path.name in NOT_YET or f'"{path.name}"' in text, path.name


@pytest.mark.parametrize("machine_code", [None, "sm_80"])
def test_alloca(trace, machine_code):
    assert "45" in trace("alloca.cu", machine_code=machine_code).split()


@pytest.mark.parametrize("operation", range(3))
def test_pairs_of_singles(trace, operation):
    printed = trace("f32x2.cu", f"-DOP={operation}", arch="compute_100")
    assert "no error" in printed


def test_conversions_to_and_from_eight_bits(script):
    need("triton", "ml_dtypes")
    assert script("fp8_cvt_sm90.py") == ["ok", "ok"]


def test_masks_of_halves(script, nvcc):
    lines = script("half2_mask.py")
    assert [line.split(" ", 1)[1] for line in lines] == [
        "['0xffff', '0xffff0000', '0x0', '0xffff0000']"
    ] * 2


def test_registered_memory(trace):
    assert "type 1, again 712, symbol 98" in trace("host_register.cu")


def test_negated_addends(script):
    expected, *lines = (line.split(" ", 1)[1] for line in script("imad_wide_neg.py"))
    assert lines == [expected] * 4


def test_hits_of_stores_are_not_compared(script):
    text = "\n".join(script("l2_write_hits.py"))
    assert "l2_write_sectors" in text
    assert "l2_write_sector_hits" not in text


def test_pairs_of_lanes_that_read_one_address(script):
    wavefronts = [int(re.findall(r"(\d+)\]\]", line)[0]) for line in script("lds128_pairs.py")]
    assert wavefronts == [2, 2, 2, 4] * 2


@pytest.mark.parametrize("machine_code", [None, "sm_80"])
@pytest.mark.parametrize("options", [(), ("-rdc=true",)])
def test_barriers_of_the_grid(trace, machine_code, options):
    assert "10 no error" in trace("mc_gridsync.cu", *options, machine_code=machine_code)


@pytest.mark.parametrize("machine_code", [None, "sm_80"])
def test_copies_that_fill_with_zeros(trace, machine_code):
    assert "1 2 0 0 no error" in trace("mc_zfill.cu", machine_code=machine_code)


def test_constant_predicates(script):
    lines = script("ptx_pred_imm.py")
    assert len(lines) == 9
    for line in lines:
        match = re.search(r"expected (\S+)  ptx \['(\S+)'\]  machine code \['(\S+)'\]", line)
        assert match, line
        assert match[1] == match[2] == match[3], line


def test_stacks_of_machine_code(script):
    lines = [
        line for line in script("sass_stack.py", "sass_stack.cu") if "array" in line or "[" in line
    ]
    values = [line.split("[", 1)[1] for line in lines if not line.startswith("['.needs")]
    assert len(values) == 3
    assert len(set(values)) == 1


def test_reserved_shared_memory(script):
    blocks = [int(line.rsplit(" ", 1)[1]) for line in script("sm90_reserved_shared.py")]
    assert blocks == [25, 2, 1] * 2


def test_strides_of_tensor_maps(script):
    assert "strides" in script("tensor_map_strides.py")[0]


def test_tuning_goes_on(script):
    need("triton", "ml_dtypes")
    text = "\n".join(script("tune_abort.py"))
    assert "64" in text
    assert "16" in text


@pytest.mark.parametrize("machine_code", [None, "sm_90"])
def test_atomics_on_vectors(trace, machine_code):
    printed = trace("vector_atomics.cu", arch="compute_90", machine_code=machine_code)
    assert "2 8" in printed


@pytest.mark.parametrize("machine_code", [None, "sm_80"])
def test_scalar_video_instructions(trace, machine_code):
    assert "42 no error" in trace("video_selector.cu", machine_code=machine_code)
    # The other kernel then writes over what the first one stored: what the program prints is its sum.
    if machine_code is None:
        refused = trace("video_selector.cu", arguments=["video"], status=2)
        assert "kernel _Z5videoPj: cannot simulate vadd.u32.u32.u32" in refused


@pytest.mark.parametrize("machine_code", [None, "sm_80", "sm_90", "sm_120"])
def test_extremes_and_shifts(faults, machine_code):
    """Of "vimnmx.cu": the larger of two shorts, and a shift of a signed number."""
    options = {} if machine_code is None else {"machine_code": machine_code}
    module = ws.cuda.compile(faults / "vimnmx.cu", arch=machine_code or "sm_80", **options)
    rng = np.random.default_rng()
    for name, kind, expected in (
        ("mx", np.int16, np.maximum),
        ("sh", np.int32, lambda a, b: a >> (b & 31)),
    ):
        limits = np.iinfo(kind)
        a, b = (rng.integers(limits.min, limits.max, 64, endpoint=True).astype(kind) for _ in "ab")
        out = ws.cuda.zeros(64, kind)
        module.kernel(name).launch(1, 64, ws.cuda.array(a), ws.cuda.array(b), out)
        np.testing.assert_array_equal(np.asarray(out), expected(a, b))
