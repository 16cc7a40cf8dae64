"""Hotspot: temperature of a chip from the power of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_TILE, _BLOCK_ROWS = 32, 8
_MOST_STEPS = 2  # of one launch
_AMBIENT = 300.0  # kelvin


def _coefficients(p: Parameters) -> tuple[float, float, float, float]:
    """Return time step by capacity, and the inverse resistances in x, y and z."""
    thickness, side, conductivity = 0.0005, 0.016, 100.0  # silicon: metres, W / (m K)
    dx, dy = side / p["width"], side / p["height"]
    inverse_rx = 2.0 * conductivity * thickness * dy / dx
    inverse_ry = 2.0 * conductivity * thickness * dx / dy
    inverse_rz = conductivity * dx * dy / thickness
    # Half of the longest step for which the explicit scheme is stable.
    step_by_capacity = 0.5 / (2.0 * inverse_rx + 2.0 * inverse_ry + inverse_rz)
    return step_by_capacity, inverse_rx, inverse_ry, inverse_rz


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    shape = (p["height"], p["width"])
    return {
        "temperature": rng.uniform(320.0, 340.0, shape).astype(np.float32),
        "power": rng.uniform(0.0, 0.5, shape).astype(np.float32),
    }


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    width, height = p["width"], p["height"]
    coefficients = [np.float32(c) for c in _coefficients(p)]
    power = session.array(inputs["power"])
    now = session.array(inputs["temperature"])
    then = session.zeros((height, width), np.float32)
    grid = (-(-width // _TILE), -(-height // _TILE))
    for first in range(0, p["steps"], _MOST_STEPS):
        steps = min(_MOST_STEPS, p["steps"] - first)
        session.launch(
            "hotspot",
            grid,
            (_TILE, _BLOCK_ROWS),
            now,
            power,
            then,
            np.int32(width),
            np.int32(height),
            np.int32(steps),
            *coefficients,
            np.float32(_AMBIENT),
        )
        now, then = then, now
    return {"temperature": np.asarray(now)}


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    step, inverse_rx, inverse_ry, inverse_rz = _coefficients(p)
    heat = inputs["temperature"].astype(np.float64)
    for _ in range(p["steps"]):
        padded = np.pad(heat, 1, mode="edge")
        vertical = padded[:-2, 1:-1] + padded[2:, 1:-1] - 2 * heat
        horizontal = padded[1:-1, :-2] + padded[1:-1, 2:] - 2 * heat
        flow = vertical * inverse_ry + horizontal * inverse_rx + (_AMBIENT - heat) * inverse_rz
        heat = heat + step * (inputs["power"] + flow)
    return {"temperature": heat.astype(np.float32)}


workload = Workload(
    name="hotspot",
    title="Hotspot: heat of a chip",
    abbreviation="HS",
    suite="Rodinia",
    memory_divergent=False,
    description=(
        "Explicit time steps of the heat equation on a grid, two per launch in shared memory with a halo "
        "that shrinks (after Rodinia's hotspot). Blocks are 32 columns wide and rows are whole lines, so a "
        "warp's loads touch one line; lanes at the edges of a tile fetch the halo by loads of their own."
    ),
    sizes={
        "small": {"width": 512, "height": 512, "steps": 2},
        "paper": {"width": 1024, "height": 1024, "steps": 2},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
    tolerances={"temperature": (1e-5, 0.0)},
)
