"""k-means clustering (Rodinia)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError
from warpstack.workloads import Arrays, Parameters, Session, Workload

_BLOCK = 256
#: Elements of the kernels' array of centres.
_MOST_CENTRE_VALUES = 8192
#: Features and centres are multiples of 1/64 below 4: a squared distance over up to 256 features
#: takes at most 24 bits, so single precision holds it exactly and nearest centres are the same
#: in any order of the sum.
_GRID = 64
_RANGE = 4
_MOST_FEATURES = 256


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make points around as many random places as there are clusters."""
    points, features = parameters["points"], parameters["features"]
    clusters = parameters["clusters"]
    if features > _MOST_FEATURES or clusters * features > _MOST_CENTRE_VALUES:
        raise InputError(
            f"k-means: features = {features} and clusters = {clusters}; at most {_MOST_FEATURES} "
            f"features, and clusters x features at most {_MOST_CENTRE_VALUES}"
        )
    places = generator.uniform(1, _RANGE - 1, (clusters, features))
    near = places[generator.integers(0, clusters, points)]
    return {"points": _on_grid(near + generator.normal(0, 0.4, (points, features)))}


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Turn the points around, then assign them and move the centres, a few times."""
    points, features = inputs["points"].shape
    clusters = parameters["clusters"]
    grid = -(-points // _BLOCK)
    by_feature = session.zeros(points * features, np.float32)
    session.launch(
        "turn_around",
        grid,
        _BLOCK,
        np.int32(points),
        np.int32(features),
        session.array(inputs["points"]),
        by_feature,
    )
    membership = session.zeros(points, np.int32)
    constant = session.symbol("centres", np.float32)
    centres = _first_centres(inputs["points"], clusters)
    for _ in range(parameters["iterations"]):
        padded = np.zeros(_MOST_CENTRE_VALUES, np.float32)
        padded[: centres.size] = centres.ravel()
        constant.copy_from(padded)
        session.launch(
            "assign",
            grid,
            _BLOCK,
            np.int32(points),
            np.int32(features),
            np.int32(clusters),
            by_feature,
            membership,
        )
        centres = _move(inputs["points"], np.asarray(membership), centres)
    return {"membership": np.asarray(membership), "centres": centres}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Assign by the full table of distances, in integers."""
    points = inputs["points"]
    whole = np.rint(points * _GRID).astype(np.int64)
    centres = _first_centres(points, parameters["clusters"])
    for _ in range(parameters["iterations"]):
        places = np.rint(centres * _GRID).astype(np.int64)
        distances = np.stack([((whole - place) ** 2).sum(axis=1) for place in places], axis=1)
        membership = distances.argmin(axis=1).astype(np.int32)
        centres = _move(points, membership, centres)
    return {"membership": membership, "centres": centres}


def _on_grid(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    steps = np.clip(np.rint(values * _GRID), 0, _RANGE * _GRID - 1)
    return (steps / _GRID).astype(np.float32)


def _first_centres(points: npt.NDArray[np.float32], clusters: int) -> npt.NDArray[np.float32]:
    """Return points at even distances in the list, as many as there are clusters."""
    return points[np.arange(clusters) * len(points) // clusters]


def _move(
    points: npt.NDArray[np.float32],
    membership: npt.NDArray[np.int32],
    centres: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Return the means of the clusters; an empty one stays where it is."""
    sizes = np.bincount(membership, minlength=len(centres))
    sums = np.zeros(centres.shape)
    np.add.at(sums, membership, points)
    means = _on_grid(sums / np.maximum(sizes, 1)[:, None])
    return np.where(sizes[:, None] > 0, means, centres)


workload = Workload(
    name="k-means",
    title="k-means clustering",
    abbreviation="KMEANS",
    suite="Rodinia",
    memory_divergent=True,
    sizes={
        "small": {"points": 24576, "features": 34, "clusters": 5, "iterations": 1},
        # The original has 494,020 points; whole warps keep the points of a feature aligned.
        "paper": {"points": 494_016, "features": 34, "clusters": 5, "iterations": 1},
    },
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    description=(
        "One step of the clustering of points with 34 features, the shape of Rodinia's kdd_cup input, "
        "by its two kernels. Memory-divergent for the first one, which reads the points as they come, "
        "features side by side: each load of a warp touches 32 lines and comes back to them for the "
        "next feature, so what matters is whether the L1 cache keeps the lines of all warps. The "
        "second one reads the points feature by feature, coalesced, and the centres from constant "
        "memory; the more steps, the less of the first is in the whole."
    ),
)
