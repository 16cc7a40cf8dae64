"""Points that no other one beats, and a search for them by Optuna."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError

__all__ = ["generations", "on_front"]

#: Points of a generation for each field that varies, within the bounds below.
_POPULATION_PER_FIELD = 8
_LEAST_POPULATION, _MOST_POPULATION = 16, 256


def on_front(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return of each row of numbers to minimise whether no row is as good in all and better in one.

    Parameters
    ----------
    values
        A row per point, a column per objective, without NaN.
    """
    front = np.zeros(len(values), dtype=bool)
    kept = np.empty((0, values.shape[1]))
    # In lexical order only rows before another one can beat it.
    for i in np.lexsort(values.T[::-1]):
        beaten = (kept <= values[i]).all(axis=1) & (kept < values[i]).any(axis=1)
        if not beaten.any():
            front[i] = True
            kept = np.vstack([kept, values[i]])
    return front


def generations(
    fields: int,
    objectives: int,
    budget: int,
    seed: int,
    start: npt.NDArray[np.float64] | None,
    told: Sequence[tuple[float, ...]],
) -> Iterator[npt.NDArray[np.float64]]:
    """Yield places of the unit cube to try: a row per field, a column per point.

    Parameters
    ----------
    fields, objectives
        How many there are.
    budget
        Points that will be tried at most, which bounds the size of a generation.
    seed
        The seed of the sampler.
    start
        A place to try first.
    told
        What is to be minimised at the places that were yielded last; the caller changes it in
        place before it asks for the next ones.

    Raises
    ------
    InputError
        If Optuna is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise InputError(
            "search: several objectives of a space beyond the budget, and method='optuna', need "
            "Optuna; install it with: pip install 'warpstack[optuna]'"
        ) from None
    size = int(np.clip(_POPULATION_PER_FIELD * fields, _LEAST_POPULATION, _MOST_POPULATION))
    size = min(size, max(budget // 4, _LEAST_POPULATION))
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        sampler: optuna.samplers.BaseSampler
        if objectives > 1:
            sampler = optuna.samplers.NSGAIISampler(population_size=size, seed=seed)
        else:
            sampler = optuna.samplers.TPESampler(n_startup_trials=size, seed=seed)
        study = optuna.create_study(sampler=sampler, directions=["minimize"] * objectives)
        names = [f"field_{i}" for i in range(fields)]
        if start is not None:
            study.enqueue_trial(dict(zip(names, map(float, start), strict=True)))
        while True:
            trials = [study.ask() for _ in range(size)]
            places = [[trial.suggest_float(name, 0.0, 1.0) for name in names] for trial in trials]
            yield np.array(places).T
            for trial, values in zip(trials, told, strict=True):
                study.tell(trial, list(values))
    finally:
        optuna.logging.set_verbosity(level)
