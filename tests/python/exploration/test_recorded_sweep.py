"""Sweeps over sizes and ways whose caches follow recorded orders of accesses."""

import numpy as np
import pytest

import warpstack as ws
from warpstack._util.options import Options
from warpstack.errors import InputError
from warpstack.exploration import recorded, runner
from warpstack.exploration.sweep import Design

AXES = {"l1_size_kib": [6, 12, 24], "l2_size_kib": [96, 192], "clock_ghz": [1.0, 1.4]}


@pytest.fixture(scope="module")
def gpu():
    return ws.gpu("pascal-mdm").replace(num_sms=2, l1_size_kib=6, l2_size_kib=96)


@pytest.fixture(scope="module")
def app():
    kernels = []
    for launch in (1, 2):
        k = ws.patterns.KernelBuilder("many", grid=8, block=128, launch_id=launch)
        for step in range(6):
            address = 0x100000 + 128 * ((k.thread * (step + 3) + 97 * np.arange(8)[:, None]) % 1200)
            k.emit("LDG.E", dst=4, src=2, address=address)
            k.emit("FADD", dst=2, src=4)
        kernels.append(k.build())
    return ws.App(kernels)


def test_round_robin_is_exact(app, gpu):
    options = {"access_order": "round_robin", "cache": False}
    exact = ws.sweep(app, gpu, AXES, ["mdm", "gpumech"], **options)
    found = ws.sweep(app, gpu, AXES, ["mdm", "gpumech"], caches="recorded", **options)
    assert exact["cycles"].nunique() > 8
    assert found.equals(exact)


def test_models_that_read_sizes_of_caches_see_those_of_their_point(app, gpu):
    def cycles(intervals, wave, gpu):
        return {"base": gpu.l2_size_kib + 1000 * gpu.l1_size_kib}

    ws.models.register("reads_sizes", cycles)
    try:
        found = ws.sweep(app, gpu, AXES, ["mdm", "reads_sizes"], caches="recorded", cache=False)
        options = {"access_order": "round_robin", "cache": False}
        exact = ws.sweep(app, gpu, AXES, ["reads_sizes"], **options)
    finally:
        ws.models.unregister("reads_sizes")
    own = found[found["model"] == "reads_sizes"].reset_index(drop=True)
    assert own["cycles"].nunique() == 6
    assert own["cycles"].tolist() == exact["cycles"].tolist()


def test_caches_of_the_recorded_order_are_exact(app, gpu):
    exact = ws.sweep(app, gpu, [{}], cache=False)
    found = ws.sweep(app, gpu, [{}], caches="recorded", cache=False)
    np.testing.assert_allclose(found["cycles"], exact["cycles"], rtol=1e-3)


def test_results_are_kept(app, gpu, tmp_path, monkeypatch):
    first = ws.sweep(app, gpu, AXES, caches="recorded", cache=tmp_path)

    def fail(*arguments, **options):
        raise AssertionError

    monkeypatch.setattr(runner, "recorded_profiles", fail)
    assert ws.sweep(app, gpu, AXES, caches="recorded", cache=tmp_path).equals(first)


def test_store_and_shares(app, gpu, tmp_path):
    options = {"caches": "recorded", "cache": False}
    whole = ws.sweep(app, gpu, AXES, **options)
    for share in ((0, 2), (1, 2)):
        rows = ws.exploration.sweep_to_store(app, gpu, AXES, store=tmp_path, part=share, **options)
    table = rows.to_table().to_pandas().sort_values(["point", "kernel"])
    assert table["cycles"].tolist() == whole["cycles"].tolist()
    with pytest.raises(InputError, match="another"):
        ws.sweep(app, gpu, AXES, store=tmp_path, cache=False)


def test_impossible_points_have_an_error(app, gpu):
    points = [{"l1_size_kib": 6}, {"l1_size_kib": 0.001}]
    table = ws.sweep(app, gpu, points, caches="recorded", cache=False)
    assert (table["error"] != "").tolist() == [False, False, True, True]


def test_groups_span_little_of_l1_and_more_of_l2():
    # log(48 / 24) / log(1.414) = 2 parts, which meet at 33.9.
    found = recorded.recorded_groups([(size, 3072) for size in (24, 30, 36, 48)])
    assert [members for _, members in found] == [[0, 1], [2, 3]]
    assert all(reference in members for reference, members in found)
    # log(12288 / 768) / log(4) = 2 parts, which meet at 3072.
    found = recorded.recorded_groups([(24, size) for size in (768, 1536, 3072, 6144, 12288)])
    assert [members for _, members in found] == [[0, 1], [2, 3, 4]]


def test_tasks_of_recorded_sweeps_differ_in_capacities_alone(app, gpu):
    sizes = [24, 30, 36, 48]
    points = [{"num_sms": sms, "l1_size_kib": size} for sms in (14, 28) for size in sizes]
    points.insert(3, {"num_sms": 14, "l1_size_kib": 0.001})
    design = Design.of(app, gpu, points, "mdm")
    tasks = design.tasks(Options(), "recorded")
    found = [task for task in tasks if not task.error]
    assert [task.points.tolist() for task in found] == [[0, 1], [2, 4], [5, 6], [7, 8]]
    assert all(task.reference in task.points for task in found)
    assert [task.points.tolist() for task in tasks if task.error] == [[3]]
    for task in found:
        assert len({(gpu.num_sms, gpu.l1_mshrs) for gpu in design.points_of(task).gpus}) == 1


def test_messages(app, gpu):
    with pytest.raises(InputError, match=r"caches = 'all'.*recorded"):
        ws.sweep(app, gpu, AXES, caches="all")
    with pytest.raises(InputError, match="does not follow one warp"):
        ws.sweep(app, gpu, AXES, caches="recorded", misses="representative")
