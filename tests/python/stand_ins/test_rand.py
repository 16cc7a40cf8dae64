"""cuRAND's functions on the stand-in: NVIDIA's numbers, distributions, statuses."""

import csv
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler_cache
import warpstack as ws
from python_reference import random_numbers
from warpstack import _core
from warpstack.cuda import host

HERE = Path(__file__).parent
CLIENT = HERE / "rand_client.py"
LIBRARIES = Path(_core.__file__).parent / "lib"
#: First numbers of NVIDIA's libcurand 10.4.0 (CUDA 13.0), of curandCreateGeneratorHost; normal ones
#: with mean 0.5 and deviation 2. Values are the bits, in hexadecimal.
EXPECTED = HERE / "rand_expected.csv"
NVIDIA = [
    path
    for folder in ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/opt/cuda/lib64")
    for path in [Path(folder, "libcurand.so.10")]
    if path.exists()
]
#: Where normal numbers are made by the quantile, whose last bits depend on the algorithm for it.
BY_QUANTILE = ("mtgp32", "mt19937", "sobol32", "sobol64")

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the stand-in for cuRAND needs Linux"
)


def run_client(tmp_path, plan, place="device", library="libcurand.so.10"):
    """Return the results of a plan, and what was said."""
    environment = dict(os.environ)
    if "/" not in str(library):
        environment["LD_LIBRARY_PATH"] = str(LIBRARIES)
    results = tmp_path / "results.npz"
    done = subprocess.run(
        [sys.executable, str(CLIENT), str(library), place, json.dumps(plan), str(results)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with np.load(results) as saved:
        return dict(saved), done.stderr


def assert_same(kind, function, found, wanted):
    """Numbers are equal bit for bit; of the normal ones by the quantile, in all but the last bits."""
    if kind in BY_QUANTILE and "normal" in function:
        precision = 3e-7 if found.dtype == np.float32 or kind == "mtgp32" else 1e-14
        if "log" in function:
            found, wanted = np.log(found.astype(float)), np.log(wanted.astype(float))
        np.testing.assert_allclose(found, wanted, rtol=2 * precision, atol=8 * precision)
    else:
        np.testing.assert_array_equal(found, wanted)


def expected_rows():
    with EXPECTED.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("place", ["host", "device"])
def test_first_numbers_are_nvidias(tmp_path, place):
    plan, wanted = [], []
    for row in expected_rows():
        settings = {"kind": row["kind"]}
        settings |= {"ordering": row["ordering"]} if row["ordering"] else {}
        settings |= {each: int(row[each]) for each in ("seed", "offset", "dimensions") if row[each]}
        arguments = [0.5, 2.0] if "normal" in row["function"] else []
        values = [int(each, 16) for each in row["values"].split()]
        calls = [[row["function"], int(row["skipped"]), *arguments]] if int(row["skipped"]) else []
        plan.append(
            {"settings": settings, "calls": [*calls, [row["function"], len(values), *arguments]]}
        )
        wanted.append((f"{len(plan) - 1}.{len(calls)}", row, values))
    results, _ = run_client(tmp_path, plan, place)
    for name, row, values in wanted:
        found = results[name]
        bits = np.array(values, f"u{found.itemsize}").view(found.dtype)
        assert_same(row["kind"], row["function"], found, bits)
    assert {row["kind"] for _, row, _ in wanted} >= {"xorwow", "mrg32k3a", "philox", "mt19937"}


def random_plan(seed):
    """Return generators with random settings, and calls of random types and lengths for each."""
    rng = random.Random(seed)
    plan = []
    for kind in ("xorwow", "mrg32k3a", "philox", "mtgp32", "sobol32", "sobol64"):
        quasi = kind.startswith("sobol")
        settings = {"kind": kind}
        if quasi:
            settings["dimensions"] = rng.choice([1, 3, 20000])
        else:
            settings["seed"] = rng.choice([0, 1234, rng.getrandbits(64)])
            settings["ordering"] = rng.choice(["default", "legacy"])
        if kind != "mtgp32":
            settings["offset"] = rng.choice([0, 7, rng.randrange(300000)])
        calls = []
        for _ in range(6):
            functions = ["uniform", "uniform_double", "normal", "normal_double", "log_normal"]
            function = rng.choice(["bits64" if kind == "sobol64" else "bits", *functions])
            count = rng.choice([2, 5, 300, 4097, rng.randrange(1, 100000)])
            if "normal" in function and kind in ("xorwow", "mrg32k3a"):
                count += count % 2
            dimensions = settings.get("dimensions", 1)
            count = max(1, count // dimensions) * dimensions
            calls.append([function, count, *([0.25, 1.5] if "normal" in function else [])])
        plan.append({"settings": settings, "calls": calls})
    return plan


@pytest.mark.skipif(not NVIDIA, reason="no CUDA toolkit with libcurand is installed")
@pytest.mark.parametrize("seed", range(3))
def test_sequences_are_those_of_nvidias_library(tmp_path, seed):
    plan = random_plan(seed)
    ours, _ = run_client(tmp_path, plan)
    theirs, _ = run_client(tmp_path, plan, "host", NVIDIA[0])
    assert ours.keys() == theirs.keys()
    for name, found in ours.items():
        generator, call = map(int, name.split("."))
        each = plan[generator]
        assert_same(each["settings"]["kind"], each["calls"][call][0], found, theirs[name])


ALL = ("xorwow", "mrg32k3a", "philox", "mtgp32", "mt19937",
       "sobol32", "scrambled_sobol32", "sobol64", "scrambled_sobol64")  # fmt: skip
COUNT = 40000


@pytest.mark.parametrize("kind", ALL)
def test_numbers_have_their_distribution(tmp_path, kind):
    raw = "bits64" if kind.endswith("64") else "bits"
    means = [0.3, 10, 200, 999, 5000]
    calls = [["uniform", COUNT], ["uniform_double", COUNT], ["normal", COUNT, 1.0, 3.0],
             ["normal_double", COUNT, -1.0, 0.5], ["log_normal", COUNT, 0.0, 0.25],
             [raw, COUNT], *(["poisson", COUNT, mean] for mean in means)]  # fmt: skip
    results, _ = run_client(tmp_path, [{"settings": {"kind": kind}, "calls": calls}], "host")
    found = [results[f"0.{i}"].astype(float) for i in range(len(calls))]
    found[5] /= 2.0 ** (64 if raw == "bits64" else 32)
    log_mean = np.exp(0.25**2 / 2)
    moments = [(0.5, 12**-0.5), (0.5, 12**-0.5), (1, 3), (-1, 0.5),
               (log_mean, log_mean * np.sqrt(np.expm1(0.25**2))), (0.5, 12**-0.5),
               *((mean, mean**0.5) for mean in means)]  # fmt: skip
    for numbers, (mean, deviation) in zip(found, moments, strict=True):
        assert abs(numbers.mean() - mean) < 5 * deviation / COUNT**0.5
        assert numbers.std() == pytest.approx(deviation, rel=0.03)
    for numbers in (found[0], found[1], found[5]):  # also in the bins of a histogram
        counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
        assert np.abs(counts - COUNT / 20).max() < 6 * (COUNT / 20) ** 0.5
    for numbers in found[6:]:  # whole numbers
        assert (numbers == np.floor(numbers)).all()


def test_scrambled_dimensions_are_even_nets(tmp_path):
    """Each dimension has one point in each of 1024 intervals, as scrambling must leave it."""
    settings = {"kind": "scrambled_sobol32", "dimensions": 50}
    plan = [{"settings": settings, "calls": [["bits", 50 * 1024]]}]
    results, _ = run_client(tmp_path, plan, "host")
    for points in results["0.0"].reshape(50, 1024):
        assert (np.sort(points >> np.uint32(22)) == np.arange(1024)).all()


def test_the_seeds_of_the_seeded_ordering_differ(tmp_path):
    plan = [
        {"settings": {"kind": "xorwow", "ordering": each}, "calls": [["bits", 8192]]}
        for each in ("seeded", "default")
    ]
    results, _ = run_client(tmp_path, plan, "host")
    seeded, default = results["0.0"], results["1.0"]
    assert seeded[0] == default[0]
    assert seeded[4096] == default[4096]
    assert len(set(seeded)) > 8185
    assert (seeded[1:4096] != default[1:4096]).all()


def test_what_is_said_of_kernels(tmp_path):
    plan = [{"settings": {"kind": "philox"}, "calls": [["bits", 4], ["bits", 4]]}]
    _, said = run_client(tmp_path, plan)
    assert said.count("no trace has them") == 1
    _, said = run_client(tmp_path, plan, "host")
    assert "no trace" not in said  # no kernel would have run


TIMED = """
#include <cuda_runtime.h>
#include <curand.h>

__global__ void twice(float* x) { x[threadIdx.x] *= 2; }

int main() {
  const size_t count = 1 << 22;
  float* x;
  curandGenerator_t generator;
  cudaMalloc(&x, count * sizeof(float));
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10);
  cudaDeviceSynchronize();
  curandGenerateUniform(generator, x, count);
  twice<<<1, 32>>>(x);
  return cudaDeviceSynchronize();
}
"""


def test_making_numbers_is_no_time_of_the_host(tmp_path):
    source = tmp_path / "timed.cu"
    source.write_text(TIMED)
    program = compiled(tmp_path, source)
    assert not host.trace_program([str(program)], tmp_path / "out").problem()
    table = ws.load(tmp_path / "out").operations.set_index("operation")
    assert table.loc["library", "bytes"] == 4 << 22
    # Numbers of 16 MiB take tens of milliseconds, which a GPU's kernel would.
    assert table.loc["library", "host_ns"] < 5_000_000
    assert table.loc["kernel", "host_ns"] < 5_000_000


MISTAKES = """
import ctypes, sys
lib = ctypes.CDLL("libcurand.so.10")
place = ctypes.create_string_buffer(1024)
zero = ctypes.c_float(0)
def make(kind):
    generator = ctypes.c_void_p()
    assert lib.curandCreateGeneratorHost(ctypes.byref(generator), kind) == 0
    return generator
def count(number):
    return ctypes.c_size_t(number)
xorwow, sobol, sobol64, twister = make(101), make(201), make(203), make(142)
lib.curandSetQuasiRandomGeneratorDimensions(sobol, 3)
gone = make(161)
assert lib.curandDestroyGenerator(gone) == 0
value = ctypes.c_int()
statuses = [
    (103, lib.curandCreateGenerator(ctypes.byref(ctypes.c_void_p()), 102)),
    (101, lib.curandDestroyGenerator(gone)),
    (101, lib.curandGenerate(None, place, count(4))),
    (105, lib.curandGenerateNormal(xorwow, place, count(3), zero, zero)),
    (105, lib.curandGenerate(sobol, place, count(4))),
    (0, lib.curandGenerate(sobol, place, count(6))),
    (103, lib.curandGenerate(sobol64, place, count(4))),
    (103, lib.curandGenerateLongLong(xorwow, place, count(4))),
    (103, lib.curandSetPseudoRandomGeneratorSeed(sobol, ctypes.c_ulonglong(1))),
    (103, lib.curandSetGeneratorOffset(twister, ctypes.c_ulonglong(1))),
    (103, lib.curandSetQuasiRandomGeneratorDimensions(xorwow, 2)),
    (104, lib.curandSetQuasiRandomGeneratorDimensions(sobol, 20001)),
    (104, lib.curandSetGeneratorOrdering(xorwow, 201)),
    (104, lib.curandSetGeneratorOrdering(sobol, 101)),
    (104, lib.curandGeneratePoisson(xorwow, place, count(4), ctypes.c_double(0))),
    (104, lib.curandGeneratePoisson(xorwow, place, count(4), ctypes.c_double(4.1e5))),
    (104, lib.curandGetDirectionVectors32(ctypes.byref(ctypes.c_void_p()), 103)),
    (104, lib.curandGetProperty(3, ctypes.byref(value))),
    (0, lib.curandGetVersion(ctypes.byref(value))),
    (201, lib.curandGenerate(xorwow, None, count(4))),
]
device = ctypes.c_void_p()
assert lib.curandCreateGenerator(ctypes.byref(device), 101) == 0
statuses.append((201, lib.curandGenerate(device, place, count(4))))
for index, (wanted, found) in enumerate(statuses):
    assert wanted == found, (index, wanted, found)
assert value.value == 10400
"""


def test_mistakes_have_a_status_and_a_line():
    done = subprocess.run(
        [sys.executable, "-c", MISTAKES],
        env=dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for text in (
        "curandCreateGenerator: rng_type = 102 is no generator",
        "curandDestroyGenerator: there is no such generator: it was destroyed",
        "curandGenerate: the generator is null",
        "curandGenerateNormal: n = 3 is odd",
        "curandGenerate: num = 4 is no multiple of the 3 dimensions",
        "curandGeneratePoisson: lambda = 0.000000 is not above 0",
    ):
        assert text in done.stderr


TABLES = """
import ctypes, sys
import numpy as np
lib = ctypes.CDLL("libcurand.so.10")
for name, number, dtype, bits in (("Vectors32", 101, np.uint32, 32), ("Vectors64", 103, np.uint64, 64)):
    pointer = ctypes.c_void_p()
    assert getattr(lib, f"curandGetDirection{name}")(ctypes.byref(pointer), number) == 0
    size = 20000 * bits * bits // 8
    words = np.frombuffer((ctypes.c_char * size).from_address(pointer.value), dtype)
    np.save(f"{sys.argv[1]}/{bits}.npy", words.reshape(20000, bits))
"""


def direction_vectors(polynomial, first, bits):
    """Return a dimension's direction vectors by Bratley and Fox's recurrence."""
    degree = int(polynomial).bit_length() - 1
    numbers = [int(each) for each in first[:degree]] if degree else [1] * bits
    while len(numbers) < bits:
        number = numbers[-degree] ^ numbers[-degree] << degree
        for k in range(1, degree):
            if int(polynomial) >> (degree - k) & 1:
                number ^= numbers[-k] << k
        numbers.append(number)
    return [number << (bits - 1 - i) for i, number in enumerate(numbers)]


def test_direction_vectors_are_joe_and_kuos(tmp_path):
    """Against SciPy's copy of the published file."""
    sobol = pytest.importorskip("scipy.stats._sobol")
    published = Path(sobol.__file__).with_name("_sobol_direction_numbers.npz")
    if not published.exists():
        pytest.skip("this SciPy keeps its direction numbers elsewhere")
    subprocess.run(
        [sys.executable, "-c", TABLES, str(tmp_path)],
        env=dict(os.environ, LD_LIBRARY_PATH=str(LIBRARIES)),
        check=True,
    )
    with np.load(published) as file:
        polynomials, first = file["poly"], file["vinit"]
    for bits in (32, 64):
        found = np.load(tmp_path / f"{bits}.npy")
        for dimension in [*range(200), *range(200, 20000, 97), 19999]:
            wanted = direction_vectors(polynomials[dimension], first[dimension], bits)
            assert found[dimension].tolist() == wanted


def test_the_twisters_first_generator_is_numpys(tmp_path):
    plan = [{"settings": {"kind": "mt19937", "seed": 5}, "calls": [["bits", 8]]}]
    results, _ = run_client(tmp_path, plan, "host")
    sequence = np.random.RandomState(5).randint(0, 2**32, 600, dtype=np.uint32)
    assert (results["0.0"] == sequence[[0, 113, 170, 283, 340, 397, 510, 567]]).all()


def compiled(tmp_path, source):
    """Return the program of a source, or skip the test."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    header = Path(nvcc or "/none/nvcc").resolve().parents[1] / "include" / "curand_kernel.h"
    if nvcc is None or not header.exists():
        pytest.skip("nvcc and cuRAND are not installed")
    program = tmp_path / "rand"
    words = [nvcc, "-std=c++17", "-cudart", "shared", "-gencode", "arch=compute_75,code=compute_75"]
    compiler_cache.nvcc([*words, "-o", program, source, "-lcurand"])
    return program


def test_generators_in_kernels(tmp_path, capfd):
    """Kernels of curand_kernel.h run, and draw what the library's generators give."""
    program = compiled(tmp_path, HERE / "host_programs" / "rand.cu")
    assert not host.trace_program([str(program)], tmp_path / "out").problem()
    said = capfd.readouterr()
    names = ("XORWOW", "MRG32k3a", "Philox", "Sobol32", "MTGP32")
    assert said.out.splitlines() == [
        *(f"{name}: 0, 0 wrong" for name in names),
        *["Poisson: 0, right"] * 2,
    ]
    assert said.err.count("no trace has them") == 1
    assert len(ws.load(tmp_path / "out")) == 7  # the program's own kernels


@pytest.mark.parametrize("seed", range(4))
def test_lanes_are_those_of_a_plain_reading(tmp_path, seed):
    rng = random.Random(seed)
    number = rng.choice([0, rng.getrandbits(32), rng.getrandbits(64)])
    plan = [
        {"settings": {"kind": kind, "seed": number, "ordering": "legacy"}, "calls": [["bits", count]]}
        for kind, count in (("xorwow", 3 * 4096), ("mrg32k3a", 3 * 4096), ("philox", 3 * 2**18),
                            ("mtgp32", 3 * 64 * 256))
    ]  # fmt: skip
    results, _ = run_client(tmp_path, plan, "host")
    lanes = [0, 1, rng.randrange(60)]
    for lane in lanes:
        xorwow = results["0.0"].reshape(3, 4096)[:, lane].tolist()
        assert xorwow == random_numbers.xorwow(number, lane, 3)
        mrg = results["1.0"].reshape(3, 4096)[:, lane].tolist()
        assert mrg == random_numbers.mrg32k3a(number, lane, 3)
        blocks = results["2.0"].reshape(3, 2**16, 4)[:, lane].tolist()
        assert blocks == [random_numbers.philox(number, lane, block) for block in range(3)]
        mtgp = results["3.0"].reshape(3, 64, 256)[:, lane].ravel().tolist()
        assert mtgp == random_numbers.mtgp32(number, lane, 768)
