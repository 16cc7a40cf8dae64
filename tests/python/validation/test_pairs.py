"""Which of two launches is faster, and by how much."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warpstack as ws
from warpstack.validation.pairs import agreement

NAMES = ["naive", "tiled", "copy", "sum"]


def table(predicted, measured, **options):
    ours = pd.DataFrame(
        {"kernel": [1, 2, 3, 4], "name": NAMES, "model": "mdm", "cycles": predicted}
    )
    known = pd.DataFrame({"kernel": [1, 2, 3, 4], "name": NAMES, "cycles": measured})
    return ws.validate(ours, known, **options)


def test_by_hand():
    """Of six pairs 100 and 105 are too near; 100:200, 100:50 and so on are right or not.

    =========  ==========  =======  ======  ====
    pair       measured    ours     winner  near
    =========  ==========  =======  ======  ====
    naive 100, tiled 200   2.0: 1.0 (tie)   no
    naive 100, sum 50      2.0: 2.2 right   yes (1.10)
    tiled 200, copy 105    1.905: 1/1.1     no
    tiled 200, sum 50      4.0: 2.2 right   no
    copy 105, sum 50       2.1: 2.42 right  no (1.152)
    =========  ==========  =======  ======  ====
    """
    (row,) = table([110.0, 110.0, 121.0, 50.0], [100.0, 200.0, 105.0, 50.0], pairs=True).to_dict(
        "records"
    )
    assert row["rows"] == 4
    assert row["pairs"] == 5
    assert row["right_winner"] == pytest.approx(3 / 5)
    assert row["ratio_within"] == pytest.approx(1 / 5)
    assert "version_pairs" not in row


def test_versions_are_counted_apart():
    versions = {"naive": "transpose", "tiled": "transpose"}
    (row,) = table(
        [110.0, 220.0, 121.0, 50.0], [100.0, 200.0, 105.0, 50.0], pairs=True, versions=versions
    ).to_dict("records")
    assert row["version_pairs"] == 1
    assert row["version_right_winner"] == 1
    assert row["version_ratio_within"] == 1
    assert row["pairs"] == 5


def test_nothing_to_compare_has_no_share():
    with pytest.warns(UserWarning, match=r"no pairs: the references of no two .* more than 10 %"):
        found = table([1.0, 2.0, 3.0, 4.0], [100.0, 100.0, 101.0, 99.0], pairs=True)
    (row,) = found.to_dict("records")
    assert row["pairs"] == 0
    assert math.isnan(row["right_winner"])
    assert math.isnan(row["ratio_within"])


def test_errors_say_what_is_wrong():
    with pytest.raises(ws.InputError, match="versions are of pairs; give pairs=True"):
        table([1.0] * 4, [1.0] * 4, versions={"naive": "x"})
    with pytest.raises(ws.InputError, match=r"no kernel 'nave'.*naive"):
        table([1.0] * 4, [1.0] * 4, pairs=True, versions={"nave": "x"})
    with pytest.raises(ws.InputError, match="least = -1 is not a part"):
        ws.validation.pair_errors(table([1.0] * 4, [1.0] * 4), least=-1)


def test_one_row_is_no_pair():
    with pytest.warns(UserWarning, match="no pairs: a pair needs two matched rows .* there is one"):
        found = table([1.0, 0.0, 0.0, 0.0], [100.0, 200.0, 300.0, 400.0], pairs=True)
    assert found[["rows", "pairs"]].to_numpy().tolist() == [[1, 0]]
    with pytest.warns(UserWarning, match="no pairs: .* there are none"):
        found = table([0.0] * 4, [100.0, 200.0, 300.0, 400.0], pairs=True)
    assert found["rows"].tolist() == [0]


@pytest.mark.parametrize(
    ("versions", "why"),
    [
        ({"naive": "transpose"}, "a pair needs two matched rows of one kernel, and there is one"),
        ({"naive": "x", "copy": "x"}, "the references of no two of the matched rows of one kernel"),
    ],
)
def test_versions_without_pairs(versions, why):
    with pytest.warns(UserWarning, match=f"no pairs of versions: {why}"):
        found = table([1.0] * 4, [100.0, 200.0, 105.0, 50.0], pairs=True, versions=versions)
    assert found["version_pairs"].tolist() == [0]


def test_which_sets_have_no_pairs():
    ours = pd.DataFrame({"kernel": [1, 2, 1], "model": ["a", "a", "b"], "cycles": [1.0, 2.0, 3.0]})
    known = pd.DataFrame({"kernel": [1, 2], "cycles": [100.0, 200.0]})
    with (
        pytest.warns(ws.errors.UnmatchedWarning),
        pytest.warns(UserWarning, match=r"there is one \(1 of 2 sets of predictions\)"),
    ):
        found = ws.validate(ours, known, pairs=True)
    assert found["pairs"].tolist() == [1, 0]


@pytest.mark.parametrize("pairs", ["yes", "app", 2, None])
def test_pairs_are_wanted_or_not(pairs):
    with pytest.raises(ws.InputError, match="pairs: expected True or False, got"):
        table([1.0] * 4, [1.0] * 4, pairs=pairs)


def plain(predicted, measured, groups, least, within):
    """Return the same as `agreement`, one pair after the other."""
    pairs = winners = near = 0
    for (p, m, g), (q, n, h) in itertools.combinations(
        zip(predicted, measured, groups, strict=True), 2
    ):
        fast, slow = sorted([(m, p), (n, q)])
        if (g, h) != ("", "") and (g != h or g == ""):
            continue
        if g == "" and groups.count("") != len(groups):
            continue
        if slow[0] / fast[0] <= 1 + least:
            continue
        pairs += 1
        winners += slow[1] > fast[1]
        near += abs(slow[1] / fast[1] / (slow[0] / fast[0]) - 1) <= within
    return pairs, winners, near


values = st.integers(1, 40).map(float)


@given(
    st.lists(st.tuples(values, values, st.sampled_from(["a", "b", ""])), max_size=12),
    st.booleans(),
    st.sampled_from([0.1, 0.33]),
)
def test_equals_pair_by_pair(rows, has_groups, least):
    predicted, measured = (np.array([row[i] for row in rows]) for i in (0, 1))
    groups = [row[2] for row in rows] if has_groups else [""] * len(rows)
    given_groups = np.array(groups, dtype=str) if has_groups else None
    if has_groups and groups.count("") == len(groups):
        return
    found = agreement(predicted, measured, given_groups, least=least, within=0.15)
    pairs, winners, near = plain(predicted, measured, groups, least, 0.15)
    assert found.pairs == pairs
    if pairs:
        assert found.right_winner * pairs == pytest.approx(winners)
        assert found.ratio_within * pairs == pytest.approx(near, abs=1.001e-9)
