"""Which of two launches is faster, and by how much: predictions held against references pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from warpstack._util.checked import checked
from warpstack.errors import InputError, shown, unknown, warn
from warpstack.tables import checked_table, require
from warpstack.validation import measures

__all__ = ["Agreement", "agreement", "pair_errors"]

_SET = ("source", "gpu", "gpu_changes", "model", "metric")
_F64 = npt.NDArray[np.float64]


class Agreement(NamedTuple):
    """How well predictions compare rows."""

    pairs: int  #: whose references differ by enough
    right_winner: float  #: share of these that the predictions order alike; NaN without pairs
    ratio_within: float  #: share of these whose predicted ratio is near the reference's


def agreement(
    predicted: _F64,
    measured: _F64,
    groups: npt.NDArray[np.str_] | None = None,
    *,
    least: float = 0.1,
    within: float = 0.15,
) -> Agreement:
    """Compare all pairs of rows, or those in one group.

    Of a pair with equal predictions no winner is named: it counts among the pairs, and not among those
    with the right winner. Its ratio of 1 is near where the measured one is. Pairs with equal
    references, or nearly, do not count.

    Parameters
    ----------
    predicted, measured
        Values above 0, shape (n,).
    groups
        Only pairs of the same group count, and those of the empty one never do.
    least
        The reference's larger value is more than 1 + `least` times the smaller one.
    within
        A predicted ratio (that of the slower measured row to the faster) is near where it differs by
        at most this part from the measured one.
    """
    pairs = winners = near = 0
    for i in range(len(measured) - 1):
        ratio = measured[i + 1 :] / measured[i]
        counts = np.maximum(ratio, 1 / ratio) > 1 + least
        if groups is not None:
            counts &= (groups[i + 1 :] == groups[i]) & (groups[i] != "")
        ratio = ratio[counts]
        ours = predicted[i + 1 :][counts] / predicted[i]
        pairs += len(ratio)
        winners += int(((ours > 1) == (ratio > 1))[ours != 1].sum())
        # Of the slower to the faster.
        error = np.where(ratio > 1, ours / ratio, ratio / ours) - 1
        near += int((np.abs(error) <= within).sum())
    if not pairs:
        return Agreement(0, np.nan, np.nan)
    return Agreement(pairs, winners / pairs, near / pairs)


@checked
def pair_errors(
    table: pd.DataFrame,
    versions: Mapping[str, str] | pd.Series | None = None,
    *,
    least: float = 0.1,
    within: float = 0.15,
) -> pd.DataFrame:
    """Say how often predictions name the faster of two launches, and by how much it is faster.

    Parameters
    ----------
    table
        The result of `warpstack.validate`.
    versions
        What kernels compute, by name: pairs of one group are versions of one kernel and are counted
        apart, too. Kernels without a name here have no versions.
    least
        Pairs count whose references differ by more than this part of the smaller one.
    within
        The part of the measured ratio by which a predicted ratio may differ to be near it.

    Returns
    -------
    DataFrame
        A row for each ``source``, ``gpu``, ``gpu_changes``, ``model`` and ``metric``: ``rows``
        (matched, above 0), ``pairs``, ``right_winner`` and ``ratio_within`` (fractions of these;
        NaN without pairs), ``spearman`` (of the rows); with `versions`, ``version_pairs``,
        ``version_right_winner`` and ``version_ratio_within``. Equal predictions name no winner: such a
        pair counts as one whose winner is wrong, and its ratio is 1.

    Raises
    ------
    InputError
        If the table is not of `validate`, `versions` names a kernel that it does not have, or `least`
        or `within` is no part.

    Warns
    -----
    UserWarning
        If rows have no pairs, with the reason: there is just one, or references differ by too little.
    """
    for name, value in (("least", least), ("within", within)):
        if not 0 <= value < np.inf:
            raise InputError(f"{name} = {shown(value)} is not a part, such as 0.1")
    texts = (*_SET, "name", "status")
    compared = ("predicted", "measured")
    require(table, (*texts, *compared), "the result of validate")
    table = checked_table("table", table, perhaps=compared, texts=texts).reset_index(drop=True)
    groups = {str(name): str(of) for name, of in versions.items()} if versions is not None else {}
    names = set(table["name"])
    for name in groups:
        if name not in names:
            raise unknown("kernel", name, sorted(names), where="versions")
    matched = table[table["predicted"].notna() & table["measured"].notna()]
    rows = []
    without: dict[str, int] = {}  # sets by the reason why they have no pairs
    for values, every in matched.groupby(list(_SET), sort=False, dropna=False):
        group = every[(every["predicted"] > 0) & (every["measured"] > 0)]
        predicted = group["predicted"].to_numpy(float)
        measured = group["measured"].to_numpy(float)
        found = agreement(predicted, measured, least=least, within=within)
        row = {
            **dict(zip(_SET, values, strict=True)),
            "rows": len(group),
            **found._asdict(),
            "spearman": measures.spearman(predicted, measured),
        }
        if versions is not None:
            of = group["name"].map(lambda name: groups.get(name, "")).to_numpy(str)
            alike = agreement(predicted, measured, of, least=least, within=within)
            row |= {f"version_{key}": value for key, value in alike._asdict().items()}
            if found.pairs and not alike.pairs:
                several = pd.Series(of[of != ""]).value_counts().max() > 1
                why = f"no pairs of versions: {_why_none(2 if several else 1, least, 'of one kernel')}"
                without[why] = without.get(why, 0) + 1
        if not found.pairs:
            why = f"no pairs: {_why_none(len(group), least, 'with values above 0')}"
            without[why] = without.get(why, 0) + 1
        rows.append(row)
    for why, sets in without.items():
        of_all = f" ({sets} of {len(rows)} sets of predictions)" if len(rows) > 1 else ""
        warn(f"{why}{of_all}", UserWarning)
    return pd.DataFrame(rows)


def _why_none(rows: int, least: float, which: str) -> str:
    """Return why rows have no pairs."""
    if rows < 2:
        return (
            f"a pair needs two matched rows {which}, and there {'is one' if rows else 'are none'}"
        )
    return f"the references of no two of the matched rows {which} differ by more than {100 * least:g} %"
