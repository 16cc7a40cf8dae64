"""Rows of predictions of applications with many launches: on a cluster, or from a sample of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from warpstack._util.options import Options
from warpstack._util.progress import progress_bar
from warpstack.errors import InputError
from warpstack.hardware.description import Gpu
from warpstack.hardware.doubt import widened_by_sample
from warpstack.interval.profile import whole_instructions
from warpstack.models.launch_runs import predicted_runs, runs_of
from warpstack.models.launch_sampling import Estimate, LaunchSample, estimate, launch_groups
from warpstack.models.pipeline import Found, Needs
from warpstack.tables import STACK_COMPONENTS, row, settings_of
from warpstack.traces.cluster import check_client
from warpstack.traces.trace import KernelTrace

if TYPE_CHECKING:
    import distributed
    import pandas as pd

__all__ = ["Models", "bars_of_totals", "launch_rows", "tolerance_of"]

#: Relative bar of the cycles of an application that `sample_launches=True` asks for.
_DEFAULT_TOLERANCE = 0.01

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Models:
    """The models, from who knows them.

    Attributes
    ----------
    names
        Their names.
    needs
        What they read of a launch.
    evaluate
        What each says of a launch: a `Prediction`. It can be pickled.
    values
        The columns of a row of a prediction.
    make
        Makes a prediction of its attributes.
    """

    names: tuple[str, ...]
    needs: Needs
    evaluate: Callable[[Found], list[Any]]
    values: Callable[[Any], dict[str, Any]]
    make: Callable[..., Any]


def tolerance_of(sample_launches: bool | float) -> float | None:
    """Return the relative bar that an option asks for; None where every launch is predicted."""
    if isinstance(sample_launches, bool):
        return _DEFAULT_TOLERANCE if sample_launches else None
    return sample_launches


def launch_rows(
    kernels: Sequence[KernelTrace],
    gpu: Gpu,
    models: Models,
    options: Options,
    *,
    tolerance: float | None,
    client: distributed.Client | None,
    progress: bool,
) -> Rows:
    """Return the rows of `predict` for a sample of the launches, or for all of them on a cluster.

    Raises
    ------
    InputError
        If launches are to run on a cluster and depend on each other through L2.
    """
    if client is not None:
        check_client(client)
        if not options.flush_l2:
            raise InputError(
                "client: a launch finds in L2 what those before it left there, so that launches cannot "
                "run apart; give flush_l2=True, too, or leave the client out"
            )
    work = _Work(kernels, gpu, models, options, client, progress)
    if tolerance is not None:
        return _sampled(work, tolerance)
    found = work.run(range(len(kernels)))
    settings = settings_of(options)
    return [
        row(kernel, gpu, model, models.values(prediction), settings)
        for position, kernel in enumerate(kernels)
        for model, prediction in zip(models.names, found[position], strict=True)
    ]


class _Work:
    """Predictions of launches of one application."""

    def __init__(
        self,
        kernels: Sequence[KernelTrace],
        gpu: Gpu,
        models: Models,
        options: Options,
        client: distributed.Client | None,
        progress: bool,
    ) -> None:
        self.kernels = kernels
        self.gpu = gpu
        self.models = models
        self.options = options
        self.client = client
        self.progress = progress

    def run(self, wanted: Sequence[int]) -> dict[int, list[Any]]:
        """Return what the models say of some launches, by position."""
        found: dict[int, list[Any]] = {}
        runs = runs_of(self.kernels, wanted, self.options)
        total = sum(self.kernels[position].num_instructions for position in wanted)
        with progress_bar(self.progress, total, "predicting", "instruction") as bar:
            how = (self.options, self.models.needs, self.models.evaluate)
            for position, predictions in predicted_runs(
                self.kernels, runs, self.gpu, *how, self.client
            ):
                found[position] = predictions
                bar.update(self.kernels[position].num_instructions)
        return found


def _sampled(work: _Work, tolerance: float) -> Rows:
    kernels, gpu, models = work.kernels, work.gpu, work.models
    groups = launch_groups(kernels, gpu, by_predecessor=not work.options.flush_l2)
    instructions = [whole_instructions(kernel) for kernel in kernels]
    sample = LaunchSample(groups, instructions, tolerance)
    found: dict[int, list[Any]] = {}
    while True:
        found.update(work.run(sample.missing()))
        estimates = [
            sample.estimate({n: predictions[m].cycles for n, predictions in found.items()})
            for m in range(len(models.names))
        ]
        if not sample.grow(estimates):
            break
    settings = settings_of(work.options)
    rows: Rows = [{}] * (len(kernels) * len(models.names))
    for number, (members, predicted) in enumerate(zip(groups, sample.groups, strict=True)):
        for m, model in enumerate(models.names):
            bar = float(estimates[m].launch_bars()[number])
            of_group = [found[int(n)][m] for n in predicted]
            cycles = estimates[m].launches[number]
            for position, estimated in zip(map(int, members), map(float, cycles), strict=True):
                kernel = kernels[position]
                is_sampled = position in found
                prediction = (
                    found[position][m]
                    if is_sampled
                    else _like(models, of_group, estimated, instructions[position], kernel)
                )
                values = {
                    **models.values(prediction),
                    **_bars(prediction.ipc, 0.0 if is_sampled else bar),
                    "launch_group": number,
                    "launch_sampled": is_sampled,
                }
                rows[position * len(models.names) + m] = row(
                    kernel, gpu, model, widened_by_sample(values), settings
                )
    return rows


def _like(
    models: Models, predictions: Sequence[Any], cycles: float, work: int, kernel: KernelTrace
) -> Any:
    """Return what the predicted launches of its group say of one that was not predicted.

    Its CPI stack is theirs, as much larger as its cycles per instruction are.
    """
    weights = np.array([one.instructions for one in predictions], dtype=float)
    weights /= weights.sum()
    slower = cycles / work / float(weights @ [1 / one.ipc for one in predictions])
    return models.make(
        model=predictions[0].model,
        kernel=kernel.launch_id,
        name=kernel.short_name,
        instructions=work,
        cycles=cycles,
        ipc=work / cycles,
        cpi=slower * float(weights @ [one.cpi for one in predictions]),
        cpi_stack={
            part: slower * float(weights @ [one.cpi_stack[part] for one in predictions])
            for part in STACK_COMPONENTS
        },
    )


def _bars(ipc: float, bar: float) -> dict[str, float]:
    """Return the ends of a bar of the logarithm."""
    return {"ipc_low": ipc * math.exp(-bar), "ipc_high": ipc * math.exp(bar)}


def bars_of_totals(rows: pd.DataFrame, totals: Mapping[str, Any]) -> dict[str, float]:
    """Return the bar of the IPC of an application whose rows come from a sample of its launches.

    `rows` are those of one GPU and model, `totals` their sum. Nothing where all were predicted.
    """
    if "launch_group" not in rows or rows["launch_group"].isna().any():
        return {}
    return _bars(float(totals["ipc"]), _estimate_of_rows(rows).total_bar())


def _estimate_of_rows(rows: pd.DataFrame) -> Estimate:
    groups: list[tuple[Any, Any]] = []
    for _, group in rows.groupby("launch_group", sort=True):
        cycles = group["cycles"].where(group["launch_sampled"].astype(bool))
        if cycles.isna().all():
            raise InputError(
                "predictions: a group of launches has rows and none that was predicted; give all "
                "rows of predict"
            )
        groups.append((group["instructions"].to_numpy(), cycles.to_numpy()))
    return estimate(groups)
