"""Flow around a ball on an unstructured mesh (Rodinia's CFD solver)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError
from warpstack.workloads import Arrays, Parameters, Session, Workload

_BLOCK = 192
_WARP = 32
_FEWEST_POINTS = 64
_STAGES = 3
_GAMMA = 1.4
_MACH = 1.2
_WALL, _FAR_FIELD = -1, -2
#: Density, momenta and energy at density 1.4 and pressure 1, where the speed of sound is 1.
_FREE_STREAM = np.array(
    [1.4, 1.4 * _MACH, 0, 0, 1 / (_GAMMA - 1) + 0.5 * 1.4 * _MACH**2], np.float32
)
#: The body: a ball in the middle of the unit cube.
_RADIUS = 0.15


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make a mesh of tetrahedra between random points in a cube, with a ball cut out.

    Cells keep the order in which the mesh was made.
    """
    if parameters["points"] < _FEWEST_POINTS:
        raise InputError(f"cfd: points = {parameters['points']} is below {_FEWEST_POINTS}")
    points = generator.random((parameters["points"], 3))
    from scipy.spatial import Delaunay

    mesh = Delaunay(points)
    corners = points[mesh.simplices]
    keep = np.linalg.norm(corners.mean(axis=1) - 0.5, axis=1) > _RADIUS
    number = np.where(keep, np.cumsum(keep) - 1, _WALL)
    neighbours = np.where(mesh.neighbors >= 0, number[mesh.neighbors], _FAR_FIELD)[keep].T
    corners = corners[keep]
    normals = np.empty((4, 3, len(corners)))
    for face in range(4):  # opposite to the corner of its number
        a, b, c = (corners[:, (face + i) % 4] for i in (1, 2, 3))
        normal = 0.5 * np.cross(b - a, c - a)
        inward = np.einsum("ij,ij->i", normal, corners[:, face] - a) > 0
        normals[face] = np.where(inward[:, None], -normal, normal).T
    surface = np.linalg.norm(normals, axis=1).sum(axis=0)
    # Cells that touch nothing fill the last warp, so that each variable starts a new line.
    extra = -len(corners) % _WARP
    neighbours = np.pad(neighbours, ((0, 0), (0, extra)), constant_values=_FAR_FIELD)
    normals = np.pad(normals, ((0, 0), (0, 0), (0, extra)))
    surface = np.pad(surface, (0, extra), constant_values=1)
    return {
        "neighbours": neighbours.astype(np.int32),
        "normals": normals.astype(np.float32),
        "surface": surface.astype(np.float32),
        "disturbance": generator.uniform(-0.1, 0.1, len(surface)).astype(np.float32),
    }


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch a kernel to initialize, and per step one for its length and two for each stage."""
    cells = len(inputs["surface"])
    grid, count = -(-cells // _BLOCK), np.int32(cells)
    session.symbol("far_field", np.float32).copy_from(_FREE_STREAM)
    neighbours, normals = session.array(inputs["neighbours"]), session.array(inputs["normals"])
    surface = session.array(inputs["surface"])
    variables, start, fluxes = (session.zeros((5, cells), np.float32) for _ in range(3))
    step = session.zeros(cells, np.float32)
    session.launch(
        "initialize", grid, _BLOCK, count, session.array(inputs["disturbance"]), variables
    )
    for _ in range(parameters["iterations"]):
        session.launch("find_step", grid, _BLOCK, count, variables, surface, start, step)
        for stage in range(_STAGES):
            session.launch(
                "compute_flux", grid, _BLOCK, count, neighbours, normals, variables, fluxes
            )
            fraction = np.float32(1 / (_STAGES - stage))
            session.launch("advance", grid, _BLOCK, count, fraction, start, step, fluxes, variables)
    return {"variables": np.asarray(variables)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Solve in double precision, face by face, with vectors of three components."""
    neighbours = inputs["neighbours"]
    normals, surface = inputs["normals"].astype(np.float64), inputs["surface"].astype(np.float64)
    far = _FREE_STREAM.astype(np.float64)[:, None]
    now = far * (1 + inputs["disturbance"].astype(np.float64))
    for _ in range(parameters["iterations"]):
        start = now
        step = 0.5 / (surface * _wave_speed(now))
        for stage in range(_STAGES):
            total = np.zeros_like(now)
            for neighbour, normal in zip(neighbours, normals, strict=True):
                there = np.where(neighbour == _FAR_FIELD, far, now[:, np.maximum(neighbour, 0)])
                speed = np.maximum(_wave_speed(now), _wave_speed(there))
                area = np.sqrt((normal**2).sum(axis=0))
                between = (_flux(now, normal) + _flux(there, normal)) / 2 - speed * area * (
                    there - now
                ) / 2
                wall = np.zeros_like(now)
                wall[1:4] = _pressure(now) * normal
                total += np.where(neighbour == _WALL, wall, between)
            now = start - step / (_STAGES - stage) * total
    return {"variables": now.astype(np.float32)}


def _pressure(state: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the pressure of an ideal gas with the conserved variables `state`, shape (5, cells)."""
    pressure: npt.NDArray[np.float64] = (_GAMMA - 1) * (
        state[4] - (state[1:4] ** 2).sum(axis=0) / (2 * state[0])
    )
    return pressure


def _wave_speed(state: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return flow speed plus speed of sound."""
    speed: npt.NDArray[np.float64] = np.sqrt((state[1:4] ** 2).sum(axis=0)) / state[0] + np.sqrt(
        _GAMMA * _pressure(state) / state[0]
    )
    return speed


def _flux(
    state: npt.NDArray[np.float64], normal: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the flux of the conserved variables through a face with the area vector `normal`."""
    pressure = _pressure(state)
    flux: npt.NDArray[np.float64] = state * ((state[1:4] * normal).sum(axis=0) / state[0])
    flux[1:4] += pressure * normal
    flux[4] += pressure * (state[1:4] * normal).sum(axis=0) / state[0]
    return flux


workload = Workload(
    name="cfd",
    title="Computational fluid dynamics",
    abbreviation="CFD",
    suite="Rodinia",
    memory_divergent=True,
    sizes={
        "small": {"points": 4096, "iterations": 1},
        "paper": {"points": 32768, "iterations": 1},
    },
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    # Single precision: some 30 roundings a stage on terms of the size of the variables.
    tolerances={"variables": (1e-5, 1e-5)},
    description=(
        "Supersonic flow around a ball: the Euler equations on a mesh of tetrahedra, with the "
        "structure of Rodinia's euler3d (variables stored one after the other, four neighbours per "
        "cell, three Runge-Kutta stages) and fluxes of our own. Memory-divergent: a cell reads five "
        "variables of each neighbour, and the neighbours of a warp's cells, numbered as the mesh "
        "generator made them, lie all over the mesh. Everything else is coalesced."
    ),
)
