"""2D convolution: an image and a filter of 3 x 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_BLOCK = (32, 8)


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    return {
        "image": rng.random((p["height"], p["width"]), dtype=np.float32),
        "filter": rng.uniform(-1, 1, (3, 3)).astype(np.float32),
    }


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    width, height = p["width"], p["height"]
    session.symbol("filter", np.float32).copy_from(inputs["filter"].ravel())
    image = session.array(inputs["image"])
    result = session.zeros((height, width), np.float32)
    grid = (-(-width // _BLOCK[0]), -(-height // _BLOCK[1]))
    session.launch("convolution_2d", grid, _BLOCK, image, result, np.int32(width), np.int32(height))
    return {"result": np.asarray(result)}


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    image = inputs["image"].astype(np.float64)
    result = np.zeros(image.shape)  # the border stays 0
    if min(image.shape) >= 3:
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
        result[1:-1, 1:-1] = np.einsum("yxij,ij->yx", windows, inputs["filter"])
    return {"result": result.astype(np.float32)}


workload = Workload(
    name="2d-convolution",
    title="2D convolution",
    abbreviation="2DCONV",
    suite="Polybench",
    memory_divergent=False,
    description=(
        "A filter of 3 x 3 on an image, a thread per pixel (after Polybench's 2DCONV). The original loads "
        "nine neighbours, six of them one value off a line's start; here a warp loads its columns of three "
        "rows, a line each, and its lanes exchange them, so that loads are aligned."
    ),
    sizes={
        "small": {"width": 1024, "height": 512},
        "paper": {"width": 4096, "height": 2560},
    },
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
    # Terms of both signs cancel.
    tolerances={"result": (1e-5, 1e-6)},
)
