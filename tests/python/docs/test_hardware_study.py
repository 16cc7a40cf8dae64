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
from hardware_suites import SUITES, evaluate, samples, tables  # noqa: E402
from hardware_suites.program import KERNELS, PROGRAMS, Bench  # noqa: E402
from hardware_suites.row import Run  # noqa: E402

sys.path.pop(0)

needs_compiler = pytest.mark.skipif(
    not ws.cuda.compilers(), reason="neither nvcc nor NVRTC is installed"
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
}


@needs_compiler
def test_estimated_sizes_are_near_the_traced_ones():
    """What is too long to simulate is told before it is traced."""
    for name, parameters in SMALL.items():
        program = PROGRAMS[name]
        traces = program.launches(Bench(program.source, None), **parameters)
        largest = max(trace.num_instructions for trace in traces)
        estimate = program.size(**parameters)
        assert 0.3 < estimate / largest < 3, (name, estimate, largest)


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
