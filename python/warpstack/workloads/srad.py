"""SRAD: speckle-reducing anisotropic diffusion of an image."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_TILE = (32, 8)
_RATE = 0.5  # lambda of the update


def _speckle(image: npt.NDArray[Any]) -> float:
    """Return the squared coefficient of variation of the region that shows speckle only."""
    region = image[: max(1, image.shape[0] // 4), : max(1, image.shape[1] // 4)].astype(np.float64)
    return float(region.var() / region.mean() ** 2)


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    return {"image": np.exp(rng.random((p["height"], p["width"]), dtype=np.float32))}


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    width, height = p["width"], p["height"]
    size = (np.int32(width), np.int32(height))
    image = session.array(inputs["image"])
    derivatives = [session.zeros((height, width), np.float32) for _ in range(4)]
    coefficient = session.zeros((height, width), np.float32)
    grid = (-(-width // _TILE[0]), -(-height // _TILE[1]))
    for _ in range(p["iterations"]):
        q0_squared = np.float32(_speckle(np.asarray(image)))
        session.launch(
            "srad_coefficient", grid, _TILE, image, *derivatives, coefficient, *size, q0_squared
        )
        session.launch(
            "srad_diffuse", grid, _TILE, image, *derivatives, coefficient, *size, np.float32(_RATE)
        )
    return {"image": np.asarray(image)}


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    image = inputs["image"].astype(np.float64)
    for _ in range(p["iterations"]):
        q0 = _speckle(image)
        padded = np.pad(image, 1, mode="edge")
        north, south = padded[:-2, 1:-1] - image, padded[2:, 1:-1] - image
        west, east = padded[1:-1, :-2] - image, padded[1:-1, 2:] - image
        gradient = (north**2 + south**2 + west**2 + east**2) / image**2
        laplacian = (north + south + west + east) / image
        q = (gradient / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
        c = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
        c_south = np.vstack([c[1:], c[-1:]])
        c_east = np.hstack([c[:, 1:], c[:, -1:]])
        divergence = c * north + c_south * south + c * west + c_east * east
        image = image + _RATE / 4 * divergence
    return {"image": image.astype(np.float32)}


workload = Workload(
    name="srad",
    title="Speckle-reducing anisotropic diffusion",
    abbreviation="SRAD",
    suite="Rodinia",
    memory_divergent=False,
    description=(
        "Two stencil kernels per iteration over an image and five arrays of its size (after Rodinia's srad "
        "v2). Tiles of 32 x 8 pixels in shared memory: each load of a warp reads one row of 32 pixels, a "
        "line, or single pixels beyond the tile's sides."
    ),
    sizes={
        "small": {"width": 512, "height": 512, "iterations": 1},
        "paper": {"width": 2048, "height": 2048, "iterations": 1},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
    tolerances={"image": (1e-4, 0.0)},
)
