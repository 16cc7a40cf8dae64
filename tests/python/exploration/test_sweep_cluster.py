"""Sweeps on a Dask cluster of two processes."""

import logging
import os
import signal
import threading

import pandas as pd
import pytest

import warpstack as ws
from warpstack.traces.cluster import PackedKernels, run_on_cluster

distributed = pytest.importorskip("distributed")
# Dask leaves sockets and loops to the collector when a worker dies.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:::distributed")

AXES = {"num_sms": list(range(1, 13)), "l1_mshrs": [32, 64]}


@pytest.fixture(scope="module")
def app():
    return ws.App(
        [ws.patterns.strided(gs=n, iterations=8, blocks=112) for n in (1, 8, 32)], "three"
    )


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_packed_traces_are_the_traces(app):
    again = PackedKernels.of(app.kernels).unpack()
    for one, other in zip(again, app.kernels, strict=True):
        assert one.digest == other.digest
        assert (one.name, one.launch_id) == (other.name, other.launch_id)
        assert one.num_instructions == other.num_instructions
    assert PackedKernels.of(app.kernels).unpack() is again


@pytest.mark.slow
def test_a_cluster_gives_the_same(client, app, pascal):
    axes = [*({"num_sms": n} for n in range(1, 5)), {"l1_size_kib": 17}]
    for models in (["mt", "mdm"], ["interval_simulation"], ["mdm", "interval_simulation"]):
        expected = ws.sweep({"x": app, "y": app[0]}, pascal, axes, models)
        table = ws.sweep({"x": app, "y": app[0]}, pascal, axes, models, client=client)
        pd.testing.assert_frame_equal(table, expected, check_exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("anchor", ["simulate", "gpumech"])
def test_a_cluster_finds_the_same_anchor(client, app, pascal, anchor):
    axes = [{}, {"num_sms": 3}, {"l1_mshrs": 16}, {"l1_size_kib": 17}]
    apps, how = {"x": app, "y": app[0]}, {"anchor": anchor, "cache": False}
    expected = ws.sweep(apps, pascal, axes, ["mt", "mdm"], **how)
    table = ws.sweep(apps, pascal, axes, ["mt", "mdm"], client=client, **how)
    pd.testing.assert_frame_equal(table, expected, check_exact=True)


@pytest.mark.slow
def test_a_killed_worker_costs_nothing(client, app, pascal, tmp_path):
    expected = ws.sweep(app, pascal, AXES)
    before = set(client.run(os.getpid).values())
    victim = min(before)
    part = threading.Event()

    # The first rows in the store say that the sweep is under way.
    def kill():
        while not part.wait(0.01):
            if list(tmp_path.glob("part-*")):
                os.kill(victim, signal.SIGKILL)
                return

    from warpstack.exploration import store as sweep_store

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sweep_store, "_WRITE_SECONDS", 0)
            table = ws.sweep(app, pascal, AXES, client=client, store=tmp_path)
    finally:
        part.set()
        killer.join()
    pd.testing.assert_frame_equal(table, expected, check_exact=True)
    client.wait_for_workers(2, timeout=60)
    assert victim not in set(client.run(os.getpid).values())


def test_clients_are_checked(app, pascal):
    with pytest.raises(ws.InputError, match=r"expected a distributed\.Client, got 'tcp"):
        ws.sweep(app, pascal, AXES, client="tcp://localhost")


def _full_disk(kernels, description):
    raise OSError(28, "No space left on device")


def _reset(kernels, description):
    raise ConnectionResetError(104, "Connection reset by peer")


@pytest.mark.slow
def test_only_lost_connections_are_lost_workers(client, app):
    tasks = [(0, 0, None)]
    with pytest.raises(OSError, match="No space left"):
        list(run_on_cluster(client, [app.kernels], tasks, _full_disk))
    with pytest.raises(ws.InputError, match=r"8 workers were lost .*Connection reset by peer"):
        list(run_on_cluster(client, [app.kernels], tasks, _reset))
