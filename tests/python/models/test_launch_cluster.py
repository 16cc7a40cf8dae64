"""Launches on a Dask cluster: predictions and simulations are those of this process."""

import logging
import sys
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from large_app import training_app

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:::distributed")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def app():
    return training_app(60, layers=3)


@pytest.mark.slow
def test_predictions(client, app, pascal):
    options = {"models": ["mdm", "closed_network", "interval_simulation"], "flush_l2": True}
    for sampled in (False, 0.1):
        expected = ws.predict(app, pascal, **options, sample_launches=sampled)
        rows = ws.predict(app, pascal, **options, sample_launches=sampled, client=client)
        aside = ["reason", "gain"]  # of a cluster no change is tried
        pd.testing.assert_frame_equal(
            rows.drop(columns=aside), expected.drop(columns=aside), check_exact=True
        )


@pytest.mark.slow
def test_simulations(client, app, pascal):
    some = app.select([range(1, 6)])
    options = {"flush_l2": True, "timeline_cycles": 100}
    expected = ws.simulate(some, pascal, **options)
    results = ws.simulate(some, pascal, **options, client=client)
    pd.testing.assert_frame_equal(ws.timing.as_table(results), ws.timing.as_table(expected))
    for one, other in zip(results, expected, strict=True):
        assert one.totals == other.totals
        assert one.occupancy == other.occupancy
        pd.testing.assert_frame_equal(one.timeline, other.timeline)
        pd.testing.assert_frame_equal(one.miss_latency, other.miss_latency)


@pytest.mark.slow
def test_launches_that_share_an_l2_are_refused(client, app, pascal):
    for function in (ws.predict, ws.simulate):
        with pytest.raises(ws.InputError, match="flush_l2=True"):
            function(app, pascal, client=client)


def test_what_is_not_a_client(app, pascal):
    for function in (ws.predict, ws.simulate):
        with pytest.raises(ws.InputError, match=r"distributed\.Client"):
            function(app, pascal, client=3, flush_l2=True)
