"""Shared by the figures of the GPUMech paper: models, configuration, kernels, and axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from warpstack import workloads
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.drawing import lines
from warpstack.figures.errors import kernel_errors, mean_errors
from warpstack.figures.stages import performance
from warpstack.figures.study import Study
from warpstack.plot import sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = "Huang et al., GPUMech: GPU Performance Modeling Technique based on Interval Analysis, MICRO 2014"
GPU = "gpumech-baseline"
#: GPUMech's Table II, and this package's own model.
MODELS = ("naive_interval", "markov_chain", "mt", "mt_mshr", "gpumech", "closed_network")
REFERENCE = f"cycle-level simulation (warpstack.simulate) of {GPU} (GPUMech, Table I)"
#: The suites from which the paper takes its kernels.
_SUITES = ("Rodinia", "Parboil", "SDK")


def names(study: Study) -> list[str]:
    """Return the workloads of the paper's suites; of a study without any, all."""
    found = [name for name in study.names if workloads.get(name).suite in _SUITES]
    return found or list(study.names)


def at(**changes: Any) -> dict[str, Any]:
    """Return the settings of `performance` for a change of the baseline."""
    return {"gpu": GPU, "changes": changes, "models": list(MODELS)}


def warps(number: int) -> dict[str, Any]:
    """Return the settings for a number of warps per SM."""
    return at() if number == 32 else at(warps_per_sm=number, threads_per_sm=32 * number)


def along(
    name: str,
    number: int,
    column: str,
    values: Sequence[int],
    settings: Callable[[int], dict[str, Any]],
    xlabel: str,
    check: Callable[[pd.DataFrame], list[Claim]],
    without: tuple[str, ...] = (),
) -> PaperFigure:
    """Return a figure of the mean error over all kernels along an axis, without some workloads."""

    def compute(study: Study) -> pd.DataFrame:
        points = [settings(value) for value in values]
        apps = [name for name in names(study) if name not in without]
        errors = kernel_errors(study.run(performance, points, apps))
        return errors.assign(**{column: errors["setting"].map(dict(enumerate(values)))}).drop(
            columns="setting"
        )

    def draw(table: pd.DataFrame) -> Figure:
        means = mean_errors(table, [column])[list(MODELS)]
        return lines(means, xlabel=xlabel, ylabel="mean error of the CPI (%)")

    return PaperFigure(
        name=name,
        title=f"Error of the CPI over {xlabel}, round robin",
        paper=f"{PAPER}, Figure {number}",
        reference=REFERENCE + (f", without {', '.join(without)}" if without else ""),
        compute=compute,
        draw=draw,
        check=check,
        needs_all=False,
    )


def share_below(errors: pd.DataFrame, model: str, percent: float) -> float:
    """Return the percentage of kernels whose error is below a percentage."""
    rows = errors.loc[errors["model"] == model, "error"].abs()
    return float(100 * (rows < percent / 100).mean())


def policy(
    name: str,
    number: int,
    scheduler: str,
    title: str,
    paper_errors: tuple[float, float],
    shares: tuple[float, float] | None,
) -> PaperFigure:
    """Return a figure of the errors of all kernels with a scheduling policy.

    `paper_errors` are the paper's means of GPUMech and the Markov chain; `shares` the percentages of
    kernels with errors below 20 %.
    """

    def compute(study: Study) -> pd.DataFrame:
        settings = at() if scheduler == "lrr" else at(scheduler=scheduler)
        return kernel_errors(study.run(performance, [settings], names(study))).drop(
            columns="setting"
        )

    def draw(table: pd.DataFrame) -> Figure:
        absolute = table.assign(error=100 * table["error"].abs())
        ranked = pd.DataFrame(
            {
                model: absolute.loc[absolute["model"] == model, "error"].sort_values().to_numpy()
                for model in MODELS
            }
        )
        ranked.index += 1
        figure = lines(
            ranked,
            xlabel="kernels, each model's sorted by error",
            ylabel="error of the CPI (%)",
            limit=200,
            scale=True,
            width=7,
        )
        figure.axes[0].axhline(20, linestyle=":", **sheet.GUIDE)
        return figure

    def check(table: pd.DataFrame) -> list[Claim]:
        means = 100 * table.assign(error=table["error"].abs()).groupby("model")["error"].mean()
        claims = [
            Claim(
                "GPUMech errs far less than the Markov chain (held here: at most half)",
                f"{paper_errors[0]} % against {paper_errors[1]} %",
                f"{means['gpumech']:.1f} % against {means['markov_chain']:.1f} %",
                bool(means["gpumech"] <= means["markov_chain"] / 2),
            ),
            Claim(
                "GPUMech's mean error (held here: at most 20 %)",
                f"{paper_errors[0]} %",
                f"{means['gpumech']:.1f} %",
                bool(means["gpumech"] <= 20),
            ),
        ]
        if shares:
            ours = share_below(table, "gpumech", 20), share_below(table, "markov_chain", 20)
            claims.append(
                Claim(
                    "more kernels have errors below 20 % with GPUMech than with the Markov chain",
                    f"{shares[0]:.0f} % against {shares[1]:.0f} %",
                    f"{ours[0]:.0f} % against {ours[1]:.0f} %",
                    ours[0] > ours[1],
                )
            )
        return claims

    return PaperFigure(
        name=name,
        title=title,
        paper=f"{PAPER}, Figure {number}",
        reference=REFERENCE,
        compute=compute,
        draw=draw,
        check=check,
        needs_all=False,
    )


def grows(table: pd.DataFrame, column: str, model: str) -> tuple[float, float]:
    """Return a model's mean errors in percent at both ends of an axis."""
    values = mean_errors(table, [column])[model]
    return float(values.iloc[0]), float(values.iloc[-1])
