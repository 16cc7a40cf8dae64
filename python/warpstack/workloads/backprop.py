"""Back propagation: one training step of a two-layer neural network."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError
from warpstack.workloads import Arrays, Parameters, Session, Workload

_HIDDEN = 16
_RATE, _MOMENTUM = 0.3, 0.3


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _make_inputs(p: Parameters, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
    units = p["inputs"]
    if units % _HIDDEN:
        raise InputError(f"backprop: inputs = {units} is not a multiple of {_HIDDEN}")
    scale = 1 / np.sqrt(units)  # sums near 1: sigmoids that do not saturate
    return {
        "inputs": rng.random(units, dtype=np.float32),
        "weights": rng.normal(0, scale, (units, _HIDDEN)).astype(np.float32),
        "updates": rng.normal(0, scale / 10, (units, _HIDDEN)).astype(np.float32),
        "bias": rng.normal(0, 1, _HIDDEN).astype(np.float32),
        "output_weights": rng.normal(0, 1, _HIDDEN).astype(np.float32),
        "target": np.array([0.1], dtype=np.float32),
    }


def _hidden_errors(hidden: npt.NDArray[np.float64], inputs: Arrays) -> npt.NDArray[np.float64]:
    """Return how the error of the output unit falls on the hidden units."""
    output = _sigmoid(hidden @ inputs["output_weights"].astype(np.float64))
    output_error = output * (1 - output) * (float(inputs["target"][0]) - output)
    errors = hidden * (1 - hidden) * output_error * inputs["output_weights"]
    return np.asarray(errors, dtype=np.float64)


def _run(session: Session, p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    blocks = p["inputs"] // _HIDDEN
    block = (_HIDDEN, _HIDDEN)
    values = session.array(inputs["inputs"])
    weights = session.array(inputs["weights"])
    updates = session.array(inputs["updates"])
    partial_sums = session.zeros((blocks, _HIDDEN), np.float32)
    session.launch("backprop_forward", blocks, block, values, weights, partial_sums)
    hidden = _sigmoid(np.asarray(partial_sums).sum(axis=0, dtype=np.float64) + inputs["bias"])
    errors = session.array(_hidden_errors(hidden, inputs).astype(np.float32))
    session.launch(
        "backprop_adjust",
        blocks,
        block,
        values,
        errors,
        weights,
        updates,
        np.float32(_RATE),
        np.float32(_MOMENTUM),
    )
    return {
        "hidden": hidden.astype(np.float32),
        "weights": np.asarray(weights),
        "updates": np.asarray(updates),
    }


def _reference(p: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    values, weights = inputs["inputs"].astype(np.float64), inputs["weights"].astype(np.float64)
    hidden = _sigmoid(values @ weights + inputs["bias"])
    # Half the squared error of the output unit falls by these differences.
    output = _sigmoid(np.sum(hidden * inputs["output_weights"]))
    slope = (inputs["target"][0] - output) * output * (1 - output)
    errors = slope * inputs["output_weights"] * hidden * (1 - hidden)
    updates = _RATE * np.outer(values, errors) + _MOMENTUM * inputs["updates"]
    return {
        "hidden": hidden.astype(np.float32),
        "weights": (weights + updates).astype(np.float32),
        "updates": updates.astype(np.float32),
    }


workload = Workload(
    name="backprop",
    title="Back propagation",
    abbreviation="BP",
    suite="Rodinia",
    memory_divergent=False,
    description=(
        "Weighted sums of a large input layer for 16 hidden units, and the adjustment of its weights (after "
        "Rodinia's backprop). Blocks are 16 x 16 threads on rows of 16 weights without padding, so a warp's "
        "two rows are one line."
    ),
    sizes={"small": {"inputs": 32768}, "paper": {"inputs": 65536}},
    make_inputs=_make_inputs,
    run=_run,
    reference=_reference,
    tolerances={"hidden": (1e-5, 0.0), "weights": (1e-5, 1e-8), "updates": (1e-5, 1e-8)},
)
