"""Errors of models against the simulation, as the papers count them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from warpstack.figures.base import Claim
from warpstack.timing.simulation import MODEL_NAME

_APPLICATION = ["setting", "app", "label", "class", "model"]


def application_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Return the error of each application's IPC: predicted / simulated - 1 (MDM, Eq. 11).

    Parameters
    ----------
    table
        Rows of `Study.run` with the stage ``performance``.

    Returns
    -------
    DataFrame
        A row per setting, application and model: ``setting``, ``app``, ``label``, ``class``,
        ``model``, ``ipc``, ``simulated_ipc`` and ``error``. The IPC is that of all launches.
    """
    sums = table.groupby(_APPLICATION, sort=False)[["instructions", "cycles"]].sum()
    return _against_simulation(sums["instructions"] / sums["cycles"], ["setting", "app"])


def kernel_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Return the error of the CPI of each kernel, over all its launches (GPUMech, Section VI-A).

    As `application_errors`, with the column ``name`` too, and ``cpi``, ``simulated_cpi``: cycles of
    the GPU per warp instruction.
    """
    keys = [*_APPLICATION, "name"]
    sums = table.groupby(keys, sort=False)[["instructions", "cycles"]].sum()
    cpi = sums["cycles"] / sums["instructions"]
    errors = _against_simulation(cpi, ["setting", "app", "name"])
    return errors.rename(columns={"ipc": "cpi", "simulated_ipc": "simulated_cpi"})


def _against_simulation(values: pd.Series, keys: list[str]) -> pd.DataFrame:
    rows = values.rename("ipc").reset_index()
    simulated = rows[rows["model"] == MODEL_NAME].set_index(keys)["ipc"].rename("simulated_ipc")
    rows = rows[rows["model"] != MODEL_NAME].join(simulated, on=keys)
    return rows.assign(error=rows["ipc"] / rows["simulated_ipc"] - 1).reset_index(drop=True)


def mean_error(errors: pd.DataFrame, model: str, kind: str | None = None) -> float:
    """Return the mean absolute error of a model in percent, over a class or all."""
    rows = errors[errors["model"] == model]
    if kind is not None:
        rows = rows[rows["class"] == kind]
    return float(100 * rows["error"].abs().mean())


def mean_errors(errors: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Return mean absolute errors in percent: rows by some columns, a column per model."""
    absolute = errors.assign(error=100 * errors["error"].abs())
    return absolute.pivot_table("error", list(by), "model", sort=False)


def per_application(errors: pd.DataFrame, models: Sequence[str]) -> tuple[pd.DataFrame, list[int]]:
    """Return absolute errors in percent by application and the means of the classes, and the gaps.

    Rows are NMD applications, MD applications, and the means of both and of all; a gap is the row
    before which another group begins.
    """
    absolute = errors.assign(error=100 * errors["error"].abs())
    rows = absolute.pivot_table("error", "label", "model", sort=False).reindex(columns=list(models))
    gaps = [int((absolute.drop_duplicates("label")["class"] == "NMD").sum()), len(rows)]
    for kind, part in (
        ("NMD mean", absolute[absolute["class"] == "NMD"]),
        ("MD mean", absolute[absolute["class"] == "MD"]),
        ("mean", absolute),
    ):
        if len(part):
            rows.loc[kind] = part.groupby("model")["error"].mean()
    return rows, gaps


def percent(value: float) -> str:
    """Return a number of percent as text."""
    return f"{value:.1f} %"


def below(text: str, paper: tuple[float, float], ours: tuple[float, float]) -> Claim:
    """Claim that the first of two errors in percent is the smaller one."""
    return Claim(
        text,
        f"{percent(paper[0])} against {percent(paper[1])}",
        f"{percent(ours[0])} against {percent(ours[1])}",
        ours[0] < ours[1],
    )


def near(text: str, paper: float, ours: float, *, most: float) -> Claim:
    """Claim that an error in percent is at most some value."""
    return Claim(text, percent(paper), percent(ours), ours <= most)
