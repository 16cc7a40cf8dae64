"""What is printed of tables of results: what people look for, in the width of a terminal."""

import copy
import pickle

import pandas as pd
import pytest

import warpstack as ws

ASIDE = ("trace_digest", "gpu_digest", "version", "cpi_base", "launch_us")


@pytest.fixture(scope="module")
def app():
    return ws.App([ws.patterns.strided(gs=4, blocks=4, iterations=2)], "app")


def test_shares_of_lines_are_printed(app):
    heading = repr(ws.lines(app, "a100", simulate=False)).splitlines()[0].split()
    assert {"kernel", "source_line", "share", "advice"} <= set(heading)


TABLES = {
    "predict": lambda app: ws.predict(app, "a100", ["mdm", "closed_network"]),
    "dvfs": lambda app: ws.models.dvfs(app, "a100", [1.0]),
    "sweep": lambda app: ws.sweep(app, "a100", {"num_sms": [54, 108]}, ["mdm"]),
}


@pytest.mark.parametrize("what", TABLES)
def test_time_is_printed_within_a_terminal(app, what):
    table = TABLES[what](app)
    lines = repr(table).splitlines()
    heading = lines[0].split()
    assert {"kernel", "name", "model", "time_us", "ipc"} <= set(heading)
    assert all(len(line) <= (90 if what == "dvfs" else 80) for line in lines[:-1])
    assert len(lines) == len(table) + 2
    # What is not printed is named, and is there.
    named = lines[-1].removeprefix("and the columns ").split(", ")
    assert set(heading) | {n for n in named if n != "cpi_*"} == {
        name for name in table.columns if not name.startswith("cpi_")
    }
    for name in ASIDE:
        assert name not in heading
    html = table._repr_html_()
    assert "<th>time_us</th>" in html
    assert "<th>trace_digest</th>" not in html
    assert "trace_digest" in html


def test_what_tells_rows_apart_is_printed(app):
    one = ws.predict(app, "a100")
    both = ws.predict(app, ws.gpu("a100").replace(num_sms=54))
    assert "gpu" not in repr(one).splitlines()[0].split()
    joined = pd.concat([one, both])
    assert type(joined) is pd.DataFrame  # and prints as pandas does
    table = type(one)(joined.reset_index(drop=True))
    assert "gpu_changes" in repr(table).splitlines()[0].split()


def test_errors_of_points_are_printed(app):
    table = ws.sweep(app, "a100", {"l1_size_kib": [192, 191]}, ["mdm"])
    assert "error" in repr(table).splitlines()[0]


def test_is_a_dataframe_like_any_other(app):
    table = ws.predict(app, "a100")
    plain = pd.DataFrame(table)
    pd.testing.assert_frame_equal(table, plain)
    pd.testing.assert_frame_equal(plain, table)
    assert type(table[["name"]]) is type(table.groupby("name").sum()) is pd.DataFrame
    assert repr(table.copy()) == repr(copy.deepcopy(table)) == repr(table)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(table)), plain)
    assert table.to_csv() == plain.to_csv()
    assert repr(type(table)(plain.head(0))).startswith("Empty DataFrame")
