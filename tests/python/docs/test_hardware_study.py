"""The study of measured times: what its kernels compute, which rows it takes, and its error measures."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.fft import dctn
from scipy.signal import correlate2d

import warpstack as ws

STUDIES = Path(__file__).resolve().parents[3] / "studies"
sys.path.insert(0, str(STUDIES))
from hardware_suites import SUITES, caches, evaluate, samples, tables, triton_kernels  # noqa: E402
from hardware_suites.program import KERNELS, PROGRAMS, Bench, TritonBench, bench_of  # noqa: E402
from hardware_suites.row import Row, Run, Setting, gpu_of, straight  # noqa: E402

sys.path.pop(0)

needs_compiler = pytest.mark.skipif(
    not ws.cuda.compilers(), reason="neither nvcc nor NVRTC is installed"
)

needs_triton = pytest.mark.skipif(
    not triton_kernels.HAS_TRITON, reason="Triton or ml_dtypes is not installed"
)


@pytest.fixture(scope="module")
def bench():
    """Make benches of PTX, each source compiled once."""
    return lambda name: Bench(KERNELS / name, None)


def random(*shape):
    return np.random.default_rng(3).random(shape, np.float32)


@needs_compiler
def test_transposes_and_products_of_microbenchmarks(bench):
    b = bench("microbenchmarks.cu")
    matrix = random(32, 48)
    given = b.device.array(matrix)
    for name in ("naive", "coalesced", "padded", "diagonal"):
        out = b.zeros(48, 32)
        b.launch(f"transpose_{name}", (3, 2), (16, 16), out, given, 48, 32)
        assert np.array_equal(np.asarray(out), matrix.T), name
    tiles = matrix.reshape(2, 16, 3, 16)
    for name, expected in (
        ("fine", tiles.transpose(0, 3, 2, 1).reshape(32, 48)),
        ("coarse", tiles.transpose(2, 1, 0, 3).reshape(48, 32)),
    ):
        out = b.zeros(*expected.shape)
        b.launch(f"transpose_{name}", (3, 2), (16, 16), out, given, 48, 32)
        assert np.array_equal(np.asarray(out), expected), name

    left, right, out = random(32, 64), random(64, 96), b.zeros(32, 96)
    arrays = (b.device.array(left), b.device.array(right))
    b.launch("matrix_product", (3, 1), (32, 32), out, *arrays, 64, 96)
    assert np.allclose(np.asarray(out), left @ right, rtol=1e-5)

    values, sums = np.arange(3000.0), b.zeros(4, dtype=np.float64)
    array = b.device.array(values)
    b.launch("stream_dot", 4, 1024, array, array, sums, 3000)
    assert np.isclose(np.asarray(sums).sum(), values @ values)


def aligned(reference, scores, penalty):
    """Return Needleman and Wunsch's scores, cell by cell."""
    scores = scores.copy()
    for y in range(1, len(scores)):
        for x in range(1, len(scores)):
            scores[y, x] = max(
                scores[y - 1, x - 1] + reference[y, x],
                scores[y, x - 1] - penalty,
                scores[y - 1, x] - penalty,
            )
    return scores


@needs_compiler
def test_applications_of_rodinia(bench):
    b = bench("rodinia.cu")
    rng = np.random.default_rng(3)
    side = 33
    reference = rng.integers(-4, 12, (side, side), np.int32)
    start = np.zeros((side, side), np.int32)
    start[0] = start[:, 0] = -10 * np.arange(side)
    scores = b.device.array(start)
    given = b.device.array(reference)
    for kernel, step in (("needle_1", 1), ("needle_1", 2), ("needle_2", 1)):
        b.launch(kernel, step, 16, given, scores, side, 10, step, 2)
    assert np.array_equal(np.asarray(scores), aligned(reference, start, 10))

    wall, line = rng.integers(0, 10, (3, 500), np.int32), rng.integers(0, 10, 500, np.int32)
    out = b.zeros(500, dtype=np.int32)
    arrays = (b.device.array(wall), b.device.array(line), out)
    b.launch("path", 2, 256, 3, *arrays, 500, 4, 0, 3)
    for row in wall:
        padded = np.pad(line, 1, mode="edge")
        line = row + np.minimum(np.minimum(padded[:-2], padded[1:-1]), padded[2:])
    assert np.array_equal(np.asarray(out), line)

    cells, power, out = random(20, 20), random(20, 20), b.zeros(20, 20)
    constants = (2.0, 4.0, 5.0, 8.0, 0.5)
    shape = (20, 20, 2, 2)
    b.launch(
        *("heat", (2, 2), (16, 16), 2, b.device.array(power), b.device.array(cells), out),
        *(*shape, *(np.float32(each) for each in constants)),
    )
    heat = cells.astype(float)
    for _ in range(2):
        padded = np.pad(heat, 1, mode="edge")
        rows = (padded[2:, 1:-1] + padded[:-2, 1:-1] - 2 * heat) / 5
        columns = (padded[1:-1, 2:] + padded[1:-1, :-2] - 2 * heat) / 4
        heat = heat + 0.25 * (power + rows + columns + (80 - heat) / 8)
    assert np.allclose(np.asarray(out), heat, rtol=1e-5)


def walsh(values):
    """Return the Walsh transform: sums and differences of the halves' transforms."""
    if len(values) == 1:
        return values
    low, high = walsh(values[: len(values) // 2]), walsh(values[len(values) // 2 :])
    return np.concatenate([low + high, low - high])


@needs_compiler
def test_kernels_of_samples(bench):
    b = bench("samples.cu")
    values = random(2**13)
    data = b.device.array(values)
    b.launch("walsh_global", (8, 1), 256, data, data, 2**11)
    b.launch("walsh_shared", 4, 512, data, data, 11, shared=4 * 2**11)
    assert np.allclose(np.asarray(data), walsh(values.astype(float)), atol=0.05)

    image, out = random(32, 64), b.zeros(32, 64)
    b.launch("cosine", (2, 2), (8, 4, 2), out, b.device.array(image), 64)
    blocks = image.reshape(4, 8, 8, 8).transpose(0, 2, 1, 3)
    expected = dctn(blocks, axes=(2, 3), norm="ortho").transpose(0, 2, 1, 3).reshape(32, 64)
    assert np.allclose(np.asarray(out), expected, atol=1e-5)

    frequency = np.arange(8)[:, None]
    matrix = np.cos(np.pi * (2 * np.arange(8) + 1) * frequency / 16) / 2
    matrix[0] /= np.sqrt(2)
    b.module.symbol("cosines", np.float32).copy_from(matrix.T.ravel().astype(np.float32))
    texture = ws.cuda.texture(b.device.array(image))
    b.launch("cosine_plain", (8, 4), (8, 8), out, 64, texture)
    assert np.allclose(np.asarray(out), expected, atol=1e-5)

    data = np.random.default_rng(3).integers(0, 256, 16 * 200, np.uint8)
    words = b.device.array(data.view(np.uint32))
    counts = b.zeros(2, 64, dtype=np.uint32)
    b.launch("histogram_64", 2, 64, counts, words, np.uint32(200))
    assert np.array_equal(np.asarray(counts).sum(axis=0), np.bincount(data >> 2, minlength=64))


@needs_compiler
def test_searches_in_a_tree_of_samples(bench):
    b = bench("samples.cu")
    keys = 40_000
    given = b.device.array(samples.tree_of(keys).view(np.uint8).view(np.int32))
    wanted = np.array([0, 127, 128, 16_384, 39_999 - 500], np.int32)
    queries, ends = b.device.array(wanted), b.device.array(wanted + 500)
    places = [b.zeros(5, dtype=np.int64) for _ in range(4)]
    first, length = (b.zeros(5, dtype=np.int32) for _ in range(2))
    head = (np.int64(2), given, np.int64(keys))
    b.launch("find_range", 5, samples.ORDER, *head, *places, queries, ends, first, length)
    assert np.array_equal(np.asarray(first), wanted)
    assert set(np.asarray(length).tolist()) == {501}

    records = b.device.array(2 * np.arange(keys, dtype=np.int32))
    places = [b.zeros(5, dtype=np.int64) for _ in range(2)]
    b.launch("find_key", 5, samples.ORDER, *head, records, *places, queries, first)
    assert np.array_equal(np.asarray(first), 2 * wanted)


@needs_compiler
def test_convolutions_and_products_of_the_course(bench):
    b = bench("programming.cu")
    mask = np.zeros(1024, np.float32)
    mask[:25] = random(25) / 25
    b.module.symbol("mask_values", np.float32).copy_from(mask)
    image, small = random(40, 40), mask[:25].reshape(5, 5)
    given, weights = b.device.array(image), b.device.array(small)
    expected = correlate2d(image, small, mode="same")
    for name, side, arrays in (
        ("plane", 16, (given, weights)),
        ("plane_constant", 16, (given,)),
        ("plane_tiled", 12, (given,)),
    ):
        out = b.zeros(40, 40)
        grid = -(-40 // side)
        launch = ((grid, grid), (16, 16), *arrays, out, 5, 40, 1)
        b.launch(f"convolve_{name}", *launch, shared=1024)
        assert np.allclose(np.asarray(out), np.clip(expected, 0, 1), rtol=1e-5), name

    line = random(256)
    given, weights = b.device.array(line), b.device.array(mask[:5])
    expected = np.correlate(line, mask[:5], mode="same")
    for name, arrays in (
        ("line", (given, weights)),
        *((f"line_{each}", (given,)) for each in ("constant", "tiled", "cached")),
    ):
        out = b.zeros(256)
        b.launch(f"convolve_{name}", 4, 64, *arrays, out, 5, 256, shared=4 * 68)
        assert np.allclose(np.asarray(out), np.clip(expected, 0, 1), rtol=1e-5), name

    rng = np.random.default_rng(3)
    left, right = (rng.integers(0, 2**32, (32, 32), np.uint32) for _ in range(2))
    a, c, out = b.device.array(left), b.device.array(right), b.zeros(32, 32, dtype=np.uint32)
    for launch in (("product",), ("product_of_tiles", 8)):
        arguments = (a, c, out, 32, 32, 32, *launch[1:])
        b.launch(launch[0], (4, 4), (8, 8), *arguments, shared=512)
        assert np.array_equal(np.asarray(out), left @ right), launch


#: Parameters with which each program is quick.
SMALL = {
    "empty": {"block": 3, "thread": 40},
    "ffma": {"block": 3, "thread": 40, "iters": 2},
    "vector_add": {"size": 5000},
    "products": {"which": 0, "size": 48, "width": 32},
    "vector_add_double": {"n": 5000},
    "matrix_product": {"rows": 64, "inner": 64, "columns": 64},
    "streams": {"size": 2048, "times": 1},
    "heat": {"side": 30, "pyramid": 6, "steps": 8},
    "needle": {"length": 64},
    "path": {"columns": 500, "rows": 8, "pyramid": 5},
    "walsh_global": {"log2": 14},
    "cosine": {"side": 64},
    "normal": {"n": 40_000},
    "cosine_plain": {"side": 64},
    "tree": {"keys": 40_000, "queries": 20, "ranges": 1},
    "diffusion": {"rows": 40, "columns": 50},
    "training": {"inputs": 1024},
    "course_add": {"n": 64, "columns": 1},
    "course_line": {"kind": 3, "n": 4096, "width": 5, "block": 512},
    "course_plane": {"kind": 1, "n": 64, "width": 5, "channels": 1, "block": 16},
    "course_histogram": {"shared": 1, "n": 8192, "bins": 512, "block": 512},
    "course_grey": {"n": 64, "block": 16},
    "course_product": {"kind": 2, "n": 64, "block": 16},
    "course_vector": {"shared": 1, "n": 128, "block": 64},
    "simple_strided": {"n": 16384},
    "simple_product": {"tiled": 1, "n": 64},
    "simple_transpose": {"shared": 1, "rows": 64, "columns": 96},
    "simple_convolution": {"side": 3, "rows": 64, "columns": 64},
    "simple_counter": {"n": 512, "iters": 10},
    "loads_at_strides": {"kind": 3, "size": 8},
    "streams_in_l2": {
        **{"kind": 2, "threads": 96, "blocks": 2, "sms": 4, "first": 2, "second": 6, "length": 3000}
    },
    "vector_widths": {"width": 4},
    "matrix_vector": {"version": 1, "rows": 1024, "columns": 128},
    "read_memory": {"blocks": 4},
}
#: The same of kernels in Triton.
SMALL_TRITON = {
    "rms_norm": {"rows": 8, "columns": 1024, "target": 80},
    "layer_norm": {"rows": 8, "columns": 1024, "target": 80},
    "gates": {"rows": 8, "columns": 1024, "target": 80},
    "rotations": {"length": 4, "head": 64, "target": 80},
    "tables_of_rows": {"entries": 40, "count": 128, "width": 256, "target": 80},
    "row_softmax": {"rows": 8, "columns": 1024, "target": 80},
    "cross_entropy": {"rows": 2, "columns": 5000, "target": 80},
    "tiled_product": {"size": 128, "rows": 64, "columns": 32, "depth": 32, "target": 80},
}


def check_estimated_sizes(small):
    """What is too long to simulate is told before it is traced."""
    for name, parameters in small.items():
        program = PROGRAMS[name]
        traces = program.launches(bench_of(program.source, None), **parameters)
        largest = max(trace.num_instructions for trace in traces)
        estimate = program.size(**parameters)
        assert 0.3 < estimate / largest < 3, (name, estimate, largest)


@needs_compiler
def test_estimated_sizes_are_near_the_traced_ones():
    check_estimated_sizes(SMALL)


@needs_triton
def test_estimated_sizes_of_triton_kernels():
    check_estimated_sizes(SMALL_TRITON)


@needs_compiler
def test_loads_and_streams_of_caches(bench):
    b = bench("caches.cu")
    # The sum is -1 for the one thread that writes it: 4 products, of which the first counts.
    given = np.zeros(4096, np.float32)
    given[[0, 4]] = 1, -0.125
    out = b.zeros(64)
    b.launch("stride_float", 1, 64, out, b.device.array(given), 0, 40, 64)
    assert np.asarray(out).nonzero()[0].tolist() == [0]
    given = np.zeros(40 * 33, np.float64)
    given[[2 * 40 + 3, 2 * 40 + 7]] = 1, -1
    out = b.zeros(64, dtype=np.float64)
    b.launch("block_double", 1, (4, 2), out, b.device.array(given), 0, 40, 8)
    assert np.asarray(out).nonzero()[0].tolist() == [3]

    length, rng = 97, np.random.default_rng(3)
    arrays = [b.device.array(rng.random(length)) for _ in range(3)]
    shift = length.bit_length() - 1
    divisor = (length, np.uint32(-(-(2 ** (32 + shift)) // length)), shift)
    x, y, z = (np.asarray(each) for each in arrays)
    for name, expected in (
        ("write", np.full(length, 0.25)),
        ("scale", 1.5 * x),
        ("triad", x * z + y),
    ):
        out = b.zeros(length, dtype=np.float64)
        b.launch(f"stream_{name}", 10, 32, out, *arrays, *divisor)
        assert np.allclose(np.asarray(out), expected), name


@needs_compiler
def test_reductions_vectors_and_products_step_by_step(bench):
    b = bench("reductions.cu")
    values = np.random.default_rng(3).integers(0, 9, 2**17).astype(np.float32)
    given = b.device.array(values)
    for version, each in enumerate((1, 1, 1, 2, 2, 2, 128, 128)):
        blocks = len(values) // (256 * each)
        out = b.zeros(blocks)
        b.launch(f"reduce_{version}", blocks, 256, given, out)
        assert np.array_equal(np.asarray(out), values.reshape(blocks, -1).sum(1)), version
    out = b.zeros(3)
    b.launch("reduce_8", 3, 256, given, out, np.uint32(len(values)))
    assert np.asarray(out).sum() == values.sum()

    b = bench("vectors.cu")
    x, y = random(1024), random(1024)
    for width in (1, 2, 4):
        out = b.zeros(1024)
        arrays = (b.device.array(x), b.device.array(y), out)
        b.launch(f"add_{width}", 1024 // (256 * width), 256, *arrays)
        assert np.array_equal(np.asarray(out), x + y)
    for version, columns in ((0, 64), (1, 256), (2, 16)):
        matrix, vector, out = random(32, columns), random(columns), b.zeros(32)
        arrays = (b.device.array(matrix), b.device.array(vector), out)
        b.launch(f"matvec_{version}", 8, (32, 4), *arrays, 32, columns)
        assert np.allclose(np.asarray(out), matrix @ vector, rtol=1e-5), version

    b = bench("sgemm.cu")
    left, right, old = (random(128, 128) for _ in range(3))
    for version in range(1, 11):
        tile = {1: 32, 2: 32, 3: 32, 4: 64}.get(version, 128)
        threads = {1: (32, 32), 2: 1024, 3: 1024, 4: 512, 10: 128}.get(version, 256)
        out = b.device.array(old)
        arrays = (b.device.array(left), b.device.array(right), np.float32(3), out)
        grid = (128 // tile, 128 // tile)
        b.launch(f"sgemm_{version}", grid, threads, 128, 128, np.float32(0.5), *arrays)
        expected = 0.5 * left @ right + 3 * old
        assert np.allclose(np.asarray(out), expected, rtol=1e-4), version


@needs_triton
def test_kernels_in_triton():
    import ml_dtypes

    b = TritonBench(KERNELS / "rows.py")
    x, w, v = random(3, 100), random(100), random(100)
    arrays = [b.device.array(each) for each in (x, w, v)]
    out, means, scales = b.zeros(3, 100), b.zeros(3), b.zeros(3)
    b.launch("rms_norm", 3, 80, out, *arrays[:2], scales, 100, 1e-6, BLOCK=128)
    root = np.sqrt((x**2).mean(1, keepdims=True))
    assert np.allclose(np.asarray(out), x / root * w, rtol=1e-4)
    b.launch("layer_norm", 3, 80, out, *arrays, means, scales, 100, 1e-6, BLOCK=128)
    expected = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True) * w + v
    assert np.allclose(np.asarray(out), expected, rtol=1e-3, atol=1e-4)
    b.launch("softmax", 2, 80, out, arrays[0], 3, 100, BLOCK=128, STAGES=4)
    powers = np.exp(x)
    assert np.allclose(np.asarray(out), powers / powers.sum(1, keepdims=True), rtol=1e-4)
    half = b.zeros(3, 50)
    b.launch("gate", 3, 80, half, arrays[0], n=50, BLOCK=64)
    left, right = x[:, :50], x[:, 50:]
    assert np.allclose(np.asarray(half), left / (1 + np.exp(-left)) * right, rtol=1e-4)

    chosen, found = b.device.array(np.array([2, 0, 1, 2])), b.zeros(4, 100)
    shape = {"width": 100, "ROWS": 16, "COLUMNS": 64}
    b.launch("look_up", (1, 2), 80, arrays[0], chosen, found, 4, **shape)
    assert np.array_equal(np.asarray(found), x[[2, 0, 1, 2]])

    q, k, cosine, sine = random(2, 4, 32), random(2, 2, 32), random(2, 32), random(2, 32)
    given = [b.device.array(each) for each in (q, k, cosine, sine)]
    b.launch("rotate", 2, 80, *given, 2, Q_HEADS=4, K_HEADS=2, HEAD=32)
    for heads, now in ((q, given[0]), (k, given[1])):
        left, right, c, s = (
            heads[..., :16],
            heads[..., 16:],
            cosine[:, None, :16],
            sine[:, None, :16],
        )
        expected = np.concatenate([left * c - right * s, right * c + left * s], axis=-1)
        assert np.allclose(np.asarray(now), expected, rtol=1e-4, atol=1e-6)

    targets, losses = b.device.array(np.array([5, 99, 0])), b.zeros(3)
    b.launch("cross_entropy", 3, 80, arrays[0], targets, losses, 100, 0.5, BLOCK=64)
    chances = powers / powers.sum(1, keepdims=True)
    rows = np.arange(3)
    assert np.allclose(np.asarray(losses), -0.5 * np.log(chances[rows, [5, 99, 0]]), rtol=1e-4)
    chances[rows, [5, 99, 0]] -= 1
    assert np.allclose(np.asarray(arrays[0]), 0.5 * chances, rtol=1e-3, atol=1e-6)
    assert ml_dtypes.bfloat16


def row_of(run, **changes):
    """Make a row of a run."""
    values = {"suite": "kpp", "gpu": "a40", "application": run.label, "kernel_index": "0"}
    values |= {"kernel": "k", "metric": "duration_us", "measured": 10.0, "unit": "us", "run": run}
    return Row(**(values | changes))


@needs_compiler
def test_rows_of_slopes_and_of_changed_gpus(tmp_path):
    """The time of a row is the weighted sum of its launches'; a setting may change the GPU."""
    run = Run.of("loads_at_strides", kind=0, size=8)
    rows = [
        row_of(run, launches=(0, 1), weights=(-0.5, 2.0), settings=(Setting("in order"),)),
        row_of(run, launches=(0,), settings=(Setting("in order"),)),
        row_of(run, launches=(1,), settings=(Setting("in order"),)),
        row_of(run, launches=(1,), settings=(Setting("in order", changes=(("lsu_interval", 9),)),)),
    ]
    tasks = evaluate.tasks_of(rows, "ptx", tmp_path)
    assert len(tasks) == 1
    results = [evaluate.evaluated(task) for task in tasks]
    times = evaluate.rows_with_times(rows, results, "ptx", 1e9)
    both, first, second, slow = times.loc[times["model"] == evaluate.SIMULATOR, "us"]
    assert both == pytest.approx(2 * second - 0.5 * first)
    assert slow > 1.1 * second
    # Eight words apart, lanes meet in the banks of eight: eight cycles a load, of 32 warps.
    per_load = (second - first) * 1000 * ws.gpu("a40").clock_ghz / (32 * 256)
    assert per_load == pytest.approx(8, rel=0.05)


@needs_triton
def test_rows_of_triton_start_with_a_written_l2(tmp_path):
    run = Run.of("rms_norm", rows=400, columns=4096, target=80)
    rows = [
        row_of(run, gpu="a100", profiler="do_bench", settings=(Setting(state),))
        for state in ("cold", "written")
    ]
    tasks = evaluate.tasks_of(rows, "machine", tmp_path)
    results = [evaluate.evaluated(task) for task in tasks]
    times = evaluate.rows_with_times(rows, results, "machine", 1e9)
    assert set(times["code"]) == {"sm_80"}
    cold, written = times.loc[times["model"] == evaluate.SIMULATOR, "us"]
    assert written > cold


def test_straight_lines_and_names_of_gpus():
    assert straight(2, 4, 10) == (-3, 4)
    assert gpu_of("a100-pcie@0.765") == ("a100-pcie", 0.765)
    assert gpu_of("a6000 (a40, 768 GB/s, 1.8 GHz)") == ("rtx-a6000", 0)
    assert gpu_of("A100-SXM4-80GB (a100 with 2039 GB/s)") == ("a100-80gb", 0)


def measured(folder, name, head, line):
    """Write a table of one measurement, and return the folder."""
    (folder / name).write_text(f"{head}\n{line}\n")
    return folder


def test_measured_rates_are_times_of_the_same_work(tmp_path):
    head = "source,gpu,program,kernel,size,measured,unit,note"
    size = '"128x2 threads/SM, 1919 kB"'
    line = f'RRZE,a100,L2 streams,triad,{size},1000.0,GB/s,"slope over waves (10, 40), L2 warm"'
    (row,) = caches.stream_rows(measured(tmp_path, "microbenchmarks-2026.csv", head, line))
    # 2^30 elements of four arrays of eight bytes, at a thousand bytes per nanosecond.
    assert row.measured == pytest.approx(2**30 * 32 / 1e6)
    assert dict(row.run.parameters)["length"] == 122849
    assert sum(row.weights) == 0
    # A wave is of 108 SMs with two blocks of 128 elements.
    assert row.weights[1] * 30 * 108 * 2 * 128 == pytest.approx(2**30)


def test_rows_of_triton_without_triton(tmp_path, monkeypatch):
    monkeypatch.setattr(triton_kernels, "HAS_TRITON", False)
    head = "kernel,size,gpu,measured_us,source,note"
    line = "Liger rms_norm fwd,2048x2048 bf16,a100,20.0,x,"
    (row,) = triton_kernels.rows(measured(tmp_path, "triton-kernels.csv", head, line))
    assert row.run is None
    assert row.reason == "Triton or ml_dtypes is not installed"


def test_rows_of_the_measurements(shared):
    """Every row has a program or a reason, and every program is known with these parameters."""
    folder = shared / "reference" / "hardware"
    if not folder.is_dir():
        pytest.skip("the measurements on GPUs are not here")
    for name, rows_of in SUITES.items():
        rows = rows_of(folder)
        assert rows, name
        for row in rows:
            ws.gpu(row.gpu)
            assert row.measured > 0, row
            assert row.settings, row
            assert (row.run is None) == bool(row.reason), row
            assert row.run is None or evaluate.size_of(row.run) > 0
    # Both products of matrices of 128 x 128 are one program, whose counters are the same.
    rows = SUITES["microbenchmarks"](folder)
    products = {row.run for row in rows if "matrixmul" in row.application}
    assert Run.of("matrix_product", rows=128, inner=128, columns=128) in products
    assert Run.of("matrix_product", rows=64, inner=32, columns=64) in products


def predictions():
    """Three rows that count, one with a remark and one that is left out."""
    table = pd.DataFrame(
        [
            # measured, launch and kernel in microseconds: errors of -10 %, +50 % and +20 %
            ("add", "add n=1", "a", "", "", 10.0, 4.0, 5.0),
            ("add", "add n=2", "b", "", "", 20.0, 4.0, 26.0),
            ("dot", "dot n=1", "c", "", "", 40.0, 4.0, 44.0),
            ("dot", "dot n=2", "d", "caution:noise", "", 80.0, 4.0, 476.0),
            ("sum", "sum n=1", "", "", "no kernel", 80.0, None, None),
        ],
        columns=[
            *("kernel", "application", "run", "flag", "reason"),
            *("measured_us", "launch_us", "us"),
        ],
    )
    return table.assign(
        suite="kpp",
        gpu="rtx4070",
        kernel_index="0",
        metric="mean_ms",
        setting="",
        model="simulator",
    )


def test_errors_are_of_the_time_with_the_launch():
    line = tables.summary(predictions()).iloc[-1]
    # (0.1 + 0.5 + 0.2) / 3
    assert list(line[:4]) == ["kpp", "3", "27 %", "-"]
    # (5 / 6 - 1, 26 / 16 - 1, 44 / 36 - 1): 17, 62 and 22 %
    first, second = tables.by_gpu(predictions()).iloc[:2, :7].to_numpy().tolist()
    assert first == ["kpp", "rtx4070", "mean_ms", "3", "4.00", "27 %", "34 %"]
    # With a remark, apart: 480 / 80 - 1 and 476 / 76 - 1.
    assert second == ["kpp, with remarks", "rtx4070", "mean_ms", "1", "4.00", "500 %", "526 %"]


def test_ratios_are_of_pairs_of_rows():
    line = tables.ratios(predictions()).iloc[-1]
    # Two sizes of add: 30 / 9 over 2. Two kernels: 48 / 9 over 4, 48 / 30 over 2: 33 and 20 %.
    assert list(line) == ["kpp", "rtx4070", "67 %", "-", "27 %", "-"]


def test_worst_rows_and_rows_left_out(monkeypatch):
    causes = (("kpp | rtx* | add |*| launch 0", "a reason"), ("*n=2*", "another"))
    monkeypatch.setattr(tables, "CAUSES", causes)
    found = tables.worst(predictions())
    assert list(found["application"]) == ["add n=2", "dot n=1", "add n=1"]
    assert list(found["cause"]) == ["a reason", "", "a reason"]
    assert list(tables.left_out(predictions()).iloc[-1]) == ["all", "5", "4", "1"]
