"""The columns of results, their sums, and what is said of tables that lack one."""

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.tables import (
    IDENTITY,
    PERFORMANCE,
    PROVENANCE,
    SETTINGS,
    STACK,
    TIME,
    add_up,
    require,
    totals,
)

#: The time stands behind the cycles.
ROW = [*IDENTITY, *PERFORMANCE[:2], *TIME, *PERFORMANCE[2:], *STACK, *SETTINGS, *PROVENANCE]


@pytest.fixture(scope="module")
def kernel():
    return ws.patterns.strided(gs=32, iterations=2, blocks=28)


#: Predictions and simulations have the ends of the time's range, too.
RANGED = [*ROW[: ROW.index("time_us") + 1], "time_us_low", "time_us_high"]
RANGED += ROW[len(RANGED) - 2 :]
#: Predictions have a reason behind the stack.
PREDICTED = [*RANGED[: RANGED.index(STACK[-1]) + 1], "reason", "gain", *SETTINGS, *PROVENANCE]


def test_rows_have_the_columns(kernel):
    gpu = ws.gpu("pascal-mdm").replace(num_sms=14)
    assert list(ws.predict(kernel, gpu)) == PREDICTED
    assert list(ws.simulate(kernel, gpu).to_frame()) == RANGED
    assert list(ws.sweep(kernel, gpu, [{}], cache=False)) == ["point", *ROW, "error"]
    for table in (ws.models.roofline(kernel, gpu), ws.models.dvfs(kernel, gpu, [])):
        assert list(table)[:5] == list(IDENTITY)
        assert list(table)[-5:] == [*SETTINGS, *PROVENANCE]
        first = table.iloc[0]
        assert (first["gpu_changes"], first["gpu_digest"]) == ("num_sms=14", gpu.digest)
        assert (first["name"], first["trace_digest"]) == (kernel.short_name, kernel.digest)


def test_kernels_added_up_by_hand():
    rows = {"instructions": [100, 300], "cycles": [50.0, 350.0], "cpi": [2.0, 4.0]}
    rows.update({name: [1.0, 0.0] for name in STACK})
    found = add_up(rows)
    assert list(found) == [*PERFORMANCE, *STACK]
    assert (found["instructions"], found["cycles"], found["ipc"]) == (400, 400, 1)
    assert found["cpi"] == 3.5
    assert found["cpi_base"] == 0.25


def test_both_ways_of_adding_up_agree():
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.random((60, 2 + len(STACK))), columns=["cycles", "cpi", *STACK])
    table["instructions"] = random.integers(1, 10**6, len(table))
    table["model"] = random.choice(["a", "b", "c"], len(table))
    found = totals(table, ["model"]).set_index("model")
    assert list(found) == ["kernels", *PERFORMANCE, *STACK]
    for model, group in table.groupby("model"):
        assert found.loc[model, "kernels"] == len(group)
        for name, value in add_up(group).items():
            assert found.loc[model, name] == pytest.approx(value, rel=1e-12)


def test_what_is_not_there():
    table = pd.DataFrame({"a": []})
    require(table, ["a"], "anything")
    with pytest.raises(ws.InputError, match=r"^there is no column b; expected rows of c$"):
        require(table, ["a", "b"], "rows of c")
    with pytest.raises(ws.InputError, match=r"^the rows have no column b; expected c$"):
        require(table, ["b"], "c", what="the rows have", rows=True)
    with pytest.raises(ws.InputError, match=r"^the rows have no rows; expected c$"):
        require(table, ["a"], "c", what="the rows have", rows=True)
