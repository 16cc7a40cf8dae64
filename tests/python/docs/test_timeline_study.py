"""The study of time lines: its inputs fit one another, and what it reads of a time line."""

import sys
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws

STUDIES = Path(__file__).resolve().parents[3] / "studies"
sys.path.insert(0, str(STUDIES))
import timelines  # noqa: E402

sys.path.pop(0)

FIGURES = pd.read_csv(timelines.INPUTS / "figures.csv")


def record(event):
    return {"operation": "event_record", "event": event, "api": "cudaEventRecord"}


def copy(mib, stream=0):
    return {
        "operation": "copy",
        "direction": "HtoD",
        "bytes": mib << 20,
        "pinned": True,
        "stream": stream,
    }


def test_each_figure_is_of_a_card_and_of_a_time_that_its_program_prints():
    for row in FIGURES.itertuples():
        times = {*timelines.PRINTED[row.program], *timelines.STAGES.get(row.program, {}), "calls"}
        assert row.time in times
        assert timelines.card(row.gpu).num_sms > 0
        assert row.published_ms > 0
    assert not FIGURES.duplicated(["program", "card", "time"]).any()


def test_cards_that_are_no_gpus_are_like_one_but_for_documented_values():
    card = timelines.card("gtx1650-super")
    assert (card.num_sms, card.clock_ghz) == (20, 1.755)
    assert card.replace(num_sms=14, clock_ghz=1.59) == ws.gpu("gtx1650")
    assert timelines.card("a100") == ws.gpu("a100")


@pytest.fixture
def line():
    gpu = ws.gpu("a100").replace(
        host_link_gbs=25,
        copy_start_us=1,
        host_call_us=0.5,
        host_launch_us=2.5,
        launch_delay_us=2,
        launch_us_batch=0,
    )
    table = pd.DataFrame(
        [record(0), copy(1), record(1), record(0), copy(2), copy(2), record(1)]
    ).assign(asynchronous=True, stream=0)
    return ws.timeline(ws.patterns.strided(gs=32), gpu, operations=table)


def test_what_a_program_prints_is_between_the_events_of_pairs(line):
    found = timelines.printed(line, {"one": 1, "two": 2})
    one = 1 + 2**20 / 25e3
    # The copy begins when its call of 2.5 us has returned and 2 us have passed; the record took none.
    assert found["one"] * 1e3 == pytest.approx(one + 2.5 + 2 + 0.5, abs=3)
    assert found["two"] * 1e3 == pytest.approx(1 + 2 * 2**20 / 25e3, abs=1)
    assert found["calls"] * 1e3 == pytest.approx(0.5 + 2.5 + 0.5)


def test_a_stage_is_from_the_return_of_the_call_before_it_to_that_of_its_last(line):
    found = timelines.on_the_host(line, {"one": (1, 2), "two": (4, 6), "record": (3, 3)})
    # Calls that start work take 2.5 us, records 0.5; nobody waits for the copies.
    assert found == pytest.approx({"one": 0.003, "two": 0.0055, "record": 0.0005})
    waits = [record(0), copy(1) | {"asynchronous": False}, {"operation": "device_synchronize"}]
    table = pd.DataFrame(waits).assign(stream=[0, 0, -1])
    line = ws.timeline(ws.patterns.strided(gs=32), line.gpu, operations=table)
    took = timelines.on_the_host(line, {"copy": (1, 1)})["copy"]
    # Call, way to the GPU, copy, way back.
    expected = 2.5 + 2 + 1 + 2**20 / 25e3 + line.gpu.synchronize_us
    assert took == pytest.approx(expected / 1e3, rel=1e-3)


def test_a_program_that_prints_another_number_of_times_is_refused(line):
    with pytest.raises(ValueError, match="zip"):
        timelines.printed(line, {"one": 1})


def test_overlaps_are_parts_of_the_time_without():
    table = pd.DataFrame(
        {
            "program": "async",
            "card": "a",
            "time": ["sequential", "version 1", "version 2"],
            "published (ms)": ["2", "1.5", "1"],
            "predicted (ms)": ["4", "1", "2"],
        }
    )
    found = timelines.overlaps(table)
    assert found["time"].tolist() == ["version 1", "version 2"]
    assert found["published part"].tolist() == ["0.75", "0.50"]
    assert found["predicted part"].tolist() == ["0.25", "0.50"]
