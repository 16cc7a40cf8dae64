"""Random functions of C++ give on the host, as PTX and as machine code the same."""

import ctypes
import random
import re
import subprocess

import numpy as np
import pytest

import cpp_functions
import warpstack as ws
from cpp_writer import Block, Function, Program, write_program
from effort import rounds
from warpstack.cuda.disassembly import find_nvdisasm
from warpstack.errors import InputError

#: What compilers get wrong, which nothing else may be refused for, and nothing may ever differ: with -G NVRTC
#: gives up or ptxas leaves out constants of functions; from sm_100 on a case that a jump by a table takes to
#: behind a BREAK stays a member of the barrier, for which the others then wait.
REFUSED = re.compile(
    r"does not compile:\s*Error: unsupported operation|it reads c\[2\].*and constant bank 2 has \d+ bytes"
    r"|BSYNC\.RE(LIABLE|CONVERGENT) .*of the warp wait here for lanes"
)

pytestmark = pytest.mark.skipif(
    find_nvdisasm() is None
    or not ws.cuda.compilers()
    or cpp_functions.find_host_compiler() is None,
    reason="nvdisasm, a CUDA compiler or g++ is not installed",
)


def fails(count, seed, runs):
    """Return what goes wrong with programs, but for what is known to be refused."""
    return [
        f"program {program}, {' -'.join(run)}: {outcome}; see it with python "
        f"tests/python/cpp_functions.py --count 1 --seed {program} --arch {run[0]} --option {run[1]}"
        for program, run, outcome in cpp_functions.check(count, seed, runs)
        if not (isinstance(outcome, InputError) and REFUSED.search(str(outcome)))
    ]


def test_a_few_functions():
    assert not fails(rounds(6), 1, [("ptx", "O3"), ("sm_80", "O3")])


@pytest.mark.slow
@pytest.mark.real_compilers  # nothing comes twice
@pytest.mark.parametrize("option", cpp_functions.OPTIONS)
def test_functions_of_a_seed_that_changes(option):
    """Further ones, by hand: python tests/python/cpp_functions.py --count 10000 --seed 1."""
    seed = random.SystemRandom().randrange(1_000_000, 1_000_000_000)
    archs = random.Random(seed).sample(cpp_functions.ARCHITECTURES[1:], 2)
    runs = [("ptx", "G" if option == "G" else "O3"), *((arch, option) for arch in archs)]
    wrong = fails(rounds(20), seed, runs)
    assert not wrong, f"of the functions from seed {seed} on:\n" + "\n".join(wrong)


def test_the_plain_definitions_of_halves(tmp_path):
    """Against NumPy's half: all values, and sums and products of many."""
    source = (
        cpp_functions.HOST_HEADERS
        + cpp_functions.source_of({})
        + """
    extern "C" void run(int n, const u16* a, const u16* b, u16* sums, u16* products, f32* values) {
      for (int i = 0; i < n; ++i) {
        sums[i] = h_add(a[i], b[i]); products[i] = h_mul(a[i], b[i]); values[i] = h_to_f(a[i]);
      }
    }"""
    )
    (tmp_path / "halves.cpp").write_text(source)
    command = [cpp_functions.find_host_compiler(), "-std=c++17", "-O1", "-w", "-shared", "-fPIC"]
    library = tmp_path / "halves.so"
    subprocess.run([*command, str(tmp_path / "halves.cpp"), "-o", str(library)], check=True)
    a = np.arange(65536, dtype=np.uint16)
    b = np.random.default_rng(8).permutation(a)
    results = [
        np.zeros(a.size, np.uint16),
        np.zeros(a.size, np.uint16),
        np.zeros(a.size, np.float32),
    ]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, *results)]
    ctypes.CDLL(str(library)).run(a.size, *pointers)
    x, y = a.view(np.float16), b.view(np.float16)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(results[0].view(np.float16), x + y)
        np.testing.assert_array_equal(results[1].view(np.float16), x * y)
        np.testing.assert_array_equal(results[2], x.astype(np.float32))


def test_the_smallest_program_that_fails(monkeypatch):
    """Of many statements those stay without which nothing fails: here the two that are sought."""

    def compare(programs, runs, without=()):
        wrong = {
            name: "differs" if "v0 = 1" in p.text("k") else None for name, p in programs.items()
        }
        return dict.fromkeys(runs, wrong)

    monkeypatch.setattr(cpp_functions, "compare", compare)
    inner = Block("if (v0 > 2) {", ["v0 += 3;", "v0 = 1;", "v0 -= 4;"], "}")
    body = [
        "v0 ^= 5;",
        Block("for (int i = 0; i < 3; ++i) {", ["v0 *= 2;", inner], "}"),
        "v0 |= 6;",
    ]
    unused = Function("FN u32 @_f(u32 a)", [], ["a += 1;"], ["return a;"])
    start = ["u32 v0 = in[0];"]
    kernel = Function("KERNEL @(const u64* in, u64* out)", start, body, ["out[0] = v0;"])
    least = cpp_functions.shrink(Program([unused, kernel]), ("ptx", "O3"))
    assert [function.body for function in least.functions] == [["v0 = 1;"]]


def test_programs_are_those_of_their_seeds():
    assert write_program(3).text("k") == write_program(3).text("k") != write_program(4).text("k")
