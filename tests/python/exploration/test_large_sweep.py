"""Sweeps whose rows are on disk alone, written by one program or by several."""

import gc
import itertools
import re
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack._util.options import Options
from warpstack.exploration import store as sweep_store
from warpstack.exploration import sweep as sweep_module
from warpstack.exploration.sweep import Design, Grid, Work

AXES = {"num_sms": [7, 14, 28], "l1_mshrs": [32, 64]}


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.strided(8, iterations=2, blocks=28)


def in_order(dataset):
    table = dataset.to_table().to_pandas()
    return table.sort_values(["point", "kernel"], kind="stable", ignore_index=True)


def test_rows_are_those_of_a_sweep(kernel, pascal, tmp_path):
    expected = ws.sweep(kernel, pascal, AXES, cache=False)
    dataset = ws.exploration.sweep_to_store(
        kernel, pascal, AXES, store=tmp_path / "store", cache=False
    )
    assert dataset.count_rows() == len(expected)
    pd.testing.assert_frame_equal(in_order(dataset), expected, check_exact=True)
    pd.testing.assert_frame_equal(
        in_order(ws.exploration.open_store(tmp_path / "store")), expected, check_exact=True
    )
    # The same folder continues a sweep that returns its table.
    again = ws.sweep(kernel, pascal, AXES, store=tmp_path / "store", cache=False)
    pd.testing.assert_frame_equal(again, expected, check_exact=True)


def test_shares_are_the_whole_and_nothing_twice(kernel, pascal, tmp_path):
    expected = ws.sweep(kernel, pascal, AXES, cache=False)
    seen = []
    for share in ((2, 3), (0, 3), (1, 3)):
        dataset = ws.exploration.sweep_to_store(
            kernel, pascal, AXES, store=tmp_path, part=share, cache=False
        )
        seen.append(dataset.count_rows())
    assert seen == [2, 4, 6]  # six points, each with caches of its own
    pd.testing.assert_frame_equal(in_order(dataset), expected, check_exact=True)


@pytest.mark.parametrize(
    ("field", "bytes_a_point"), [("dram_bandwidth_gbs", 20), ("l1_mshrs", 400)]
)
def test_memory_of_points_is_bounded(kernel, pascal, field, bytes_a_point):
    """A sweep that is ready to run holds numbers of points, and a task for each caches' state."""
    count = 4000
    axes = {field: np.arange(count) + 100, "num_sms": [28, 28]}
    one = {field: [100], "num_sms": [28]}
    options = {"workers": 1, "client": None, "cache": False}
    # What is kept for all, the identity's parts as well: which test comes first is chance.
    work = Work(Design.of(kernel, pascal, one, "mdm"), Options(), **options)
    work.identity  # noqa: B018
    tracemalloc.start()
    try:
        work = Work(Design.of(kernel, pascal, axes, "mdm"), Options(), **options)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        work.identity  # noqa: B018
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(task.points) for task in work.tasks) == 2 * count
    assert held < bytes_a_point * 2 * count + 100_000
    assert after < held + 50_000  # below 7 bytes a point: it keeps none of each


def test_grids_are_all_combinations():
    values = {"num_sms": [1, 2, 3], "l1_mshrs": [4, 5], "clock_ghz": [1.0, 1.5]}
    grid = Grid(values)
    expected = [
        dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())
    ]
    assert list(grid) == expected
    assert len(grid) == 12
    assert grid[-1] == expected[-1]
    assert grid[2:5] == expected[2:5]
    with pytest.raises(IndexError):
        grid[12]


SHARE = """
import sys, time
import warpstack as ws
from warpstack.exploration import store
store._WRITE_SECONDS = 0
kernel = ws.patterns.strided(8, iterations=2, blocks=28)
axes = {"num_sms": list(range(1, 25)), "l1_mshrs": [32, 64]}
part = (int(sys.argv[2]), 3)
ws.exploration.sweep_to_store(kernel, "pascal-mdm", axes, store=sys.argv[1], part=part, cache=False)
"""


@pytest.mark.slow
def test_programs_write_to_one_store_at_the_same_time(kernel, pascal, tmp_path):
    programs = [
        subprocess.Popen([sys.executable, "-c", SHARE, str(tmp_path), str(share)])
        for share in range(3)
    ]
    assert [program.wait() for program in programs] == [0, 0, 0]
    axes = {"num_sms": list(range(1, 25)), "l1_mshrs": [32, 64]}
    expected = ws.sweep(kernel, pascal, axes, cache=False)
    pd.testing.assert_frame_equal(
        in_order(ws.exploration.open_store(tmp_path)), expected, check_exact=True
    )


def test_who_may_write_at_the_same_time(tmp_path):
    """Others of as many shares, and nobody else."""

    def opened(share):
        return sweep_store.SweepStore(tmp_path, {}, resume=True, share=share)

    first = opened((0, 2))
    for share in ((0, 2), (0, 3), (1, 3), None):
        with pytest.raises(ws.InputError, match="another sweep is writing to it"):
            opened(share)
    second = opened((1, 2))
    first.close()
    opened((0, 2)).close()
    second.close()
    alone = opened(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_store, "_OPENING_SECONDS", 0.05)
        with pytest.raises(ws.InputError, match="another sweep is writing to it"):
            opened((0, 2))
    alone.close()


def test_what_is_there_is_not_computed_again(kernel, pascal, tmp_path, monkeypatch):
    ws.exploration.sweep_to_store(kernel, pascal, AXES, store=tmp_path, part=(0, 2), cache=False)
    ran = []
    run = sweep_module.Runner.run
    monkeypatch.setattr(sweep_module.Runner, "run", lambda *args: (ran.append(args), run(*args))[1])
    assert (
        ws.exploration.sweep_to_store(
            kernel, pascal, AXES, store=tmp_path, cache=False
        ).count_rows()
        == 6
    )
    assert len(ran) == 3
    (part, *_) = sorted(tmp_path.glob("part-*"))
    part.write_bytes(part.read_bytes()[:-9])
    with pytest.warns(ws.errors.DamageWarning, match="computed again"):
        dataset = ws.exploration.sweep_to_store(kernel, pascal, AXES, store=tmp_path, cache=False)
    assert dataset.count_rows() == 6


def test_rows_of_a_task_and_of_a_part_are_bounded(kernel, pascal, tmp_path, monkeypatch):
    """Forty points share the caches: ten rows of one kernel and one model for each task."""
    monkeypatch.setattr(sweep_module, "_TASK_ROWS", 10)
    monkeypatch.setattr(sweep_store, "_PART_ROWS", 10)
    monkeypatch.setattr(sweep_store, "_WRITE_SECONDS", 3600)
    axes = {"dram_bandwidth_gbs": range(300, 340)}
    dataset = ws.exploration.sweep_to_store(kernel, pascal, axes, store=tmp_path, cache=False)
    assert [fragment.count_rows() for fragment in dataset.get_fragments()] == [10] * 4


def test_long_sweeps_write_fewer_files(tmp_path, monkeypatch):
    """After 1000 s a result may wait for 10 s."""
    store = sweep_store.SweepStore(tmp_path, {}, resume=True)
    store._opened = time.monotonic() - 1000
    store._last_write = time.monotonic() - 5
    store.add(0, pd.DataFrame({"x": [1.0]}))
    assert not list(tmp_path.glob("part-*"))
    store._last_write = time.monotonic() - 11
    store.add(1, pd.DataFrame({"x": [2.0]}))
    assert len(list(tmp_path.glob("part-*"))) == 1
    store.close()


@pytest.mark.parametrize("part", [(2, 2), (-1, 2), (0, 0), (0, 1, 2), "0/2"])
def test_parts(kernel, pascal, tmp_path, part):
    with pytest.raises(ws.InputError, match="part"):
        ws.exploration.sweep_to_store(kernel, pascal, AXES, store=tmp_path / "store", part=part)
    assert not (tmp_path / "store").exists()


def test_a_folder_without_rows(tmp_path):
    with pytest.raises(ws.InputError, match=re.escape("no rows of a sweep")):
        ws.exploration.open_store(tmp_path)
