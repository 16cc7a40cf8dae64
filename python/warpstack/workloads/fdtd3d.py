"""FDTD3d: finite differences in time on a volume."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_RADIUS = 4
_TILE = (32, 16)
_LINE = 32  # values of a line of 128 bytes
_PADDING = _LINE - _RADIUS


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    shape = tuple(p[axis] + 2 * _RADIUS for axis in ("depth", "height", "width"))
    return {
        "volume": rng.random(shape, dtype=np.float32),
        "stencil": rng.uniform(0.01, 0.1, _RADIUS + 1).astype(np.float32),
    }


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    volume = inputs["volume"]
    session.symbol("stencil", np.float32).copy_from(inputs["stencil"])
    # Both buffers have the border, which no step changes.
    padded = np.concatenate([np.zeros(_PADDING, np.float32), volume.ravel()])
    now, then = session.array(padded), session.array(padded)
    grid = (-(-p["width"] // _TILE[0]), -(-p["height"] // _TILE[1]))
    size = [np.int32(p[axis]) for axis in ("width", "height", "depth")]
    for _ in range(p["steps"]):
        session.launch("fdtd3d", grid, _TILE, now, then, *size, np.int32(_PADDING))
        now, then = then, now
    return {"volume": np.asarray(now)[_PADDING:].reshape(volume.shape)}


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    volume = inputs["volume"].astype(np.float64)
    inner = tuple(slice(_RADIUS, n - _RADIUS) for n in volume.shape)
    for _ in range(p["steps"]):
        total = inputs["stencil"][0] * volume
        for distance in range(1, _RADIUS + 1):
            for axis in range(3):
                # Values that wrap round only reach the border.
                pair = np.roll(volume, distance, axis) + np.roll(volume, -distance, axis)
                total += inputs["stencil"][distance] * pair
        volume[inner] = total[inner]
    return {"volume": volume.astype(np.float32)}


workload = Workload(
    name="fdtd3d",
    title="FDTD3d: finite differences in time",
    abbreviation="FDTD",
    suite="SDK",
    memory_divergent=False,
    description=(
        "A stencil of radius 4 in three dimensions; a block marches through the planes of its 32 x 16 column "
        "(after FDTD3d of the CUDA samples). A warp is a row of 32 values that padding puts on one line, and "
        "halos are loaded by four lanes a side. The outer width, 8 more than the width, is a number of lines."
    ),
    sizes={
        "small": {"width": 120, "height": 120, "depth": 32, "steps": 1},
        "paper": {"width": 376, "height": 376, "depth": 64, "steps": 1},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
    tolerances={"volume": (1e-5, 0.0)},
)
