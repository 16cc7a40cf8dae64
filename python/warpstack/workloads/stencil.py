"""Stencil: Jacobi steps of a 7-point stencil on a volume."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError
from warpstack.workloads import Arrays, Parameters, Session, Workload

_TILE = (32, 8)
_C0, _C1 = np.float32(1 / 6), np.float32(1 / 36)


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    if p["depth"] < 3:
        raise InputError(f"stencil: depth = {p['depth']}: three planes are the least")
    return {"volume": rng.random((p["depth"], p["height"], p["width"]), dtype=np.float32)}


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    now, then = session.array(inputs["volume"]), session.array(inputs["volume"])
    grid = (-(-p["width"] // _TILE[0]), -(-p["height"] // _TILE[1]))
    size = [np.int32(p[axis]) for axis in ("width", "height", "depth")]
    for _ in range(p["steps"]):
        session.launch("stencil", grid, _TILE, now, then, *size, _C0, _C1)
        now, then = then, now
    return {"volume": np.asarray(now)}


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    volume = inputs["volume"].astype(np.float64)
    for _ in range(p["steps"]):
        neighbours = (
            volume[:-2, 1:-1, 1:-1]
            + volume[2:, 1:-1, 1:-1]
            + volume[1:-1, :-2, 1:-1]
            + volume[1:-1, 2:, 1:-1]
            + volume[1:-1, 1:-1, :-2]
            + volume[1:-1, 1:-1, 2:]
        )
        volume[1:-1, 1:-1, 1:-1] = _C1 * neighbours - _C0 * volume[1:-1, 1:-1, 1:-1]
    return {"volume": volume.astype(np.float32)}


workload = Workload(
    name="stencil",
    title="7-point stencil",
    abbreviation="ST",
    suite="Parboil",
    memory_divergent=False,
    description=(
        "A Jacobi step of the heat equation on a volume; a block marches through the planes of its 32 x 8 "
        "column with z neighbours in registers and the others in shared memory (after Parboil's stencil). "
        "Rows of 32 values are lines; only the lanes at a tile's sides load from the neighbouring tile."
    ),
    sizes={
        "small": {"width": 256, "height": 128, "depth": 32, "steps": 1},
        "paper": {"width": 512, "height": 512, "depth": 64, "steps": 1},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
    # The result is a difference and may be near 0.
    tolerances={"volume": (1e-5, 1e-6)},
)
