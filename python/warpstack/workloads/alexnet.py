"""AlexNet (Tango)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError
from warpstack.workloads import Arrays, DeviceArray, Parameters, Session, Workload, _layers

_FEWEST_ROWS = 67  # leaves one element of the last maps
_DIVISORS = (1, 2, 4, 8, 16)


class _Convolution(NamedTuple):
    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    normalized: bool = False
    pooled: bool = False


#: The layers of the original, before its channels are divided.
_CONVOLUTIONS = (
    _Convolution(96, 11, stride=4, normalized=True, pooled=True),
    _Convolution(256, 5, padding=2, groups=2, normalized=True, pooled=True),
    _Convolution(384, 3, padding=1),
    _Convolution(384, 3, padding=1, groups=2),
    _Convolution(256, 3, padding=1, groups=2, pooled=True),
)
_NEURONS = (4096, 4096, 1000)


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make an image of noise, and random weights."""
    width, divisor = parameters["image"], parameters["channel_divisor"]
    if width < _FEWEST_ROWS or divisor not in _DIVISORS:
        raise InputError(
            f"alexnet: image = {width} and channel_divisor = {divisor}; an image has at least "
            f"{_FEWEST_ROWS} rows, and the divisor is one of {', '.join(map(str, _DIVISORS))}"
        )
    channels = 3
    arrays = {"image": generator.standard_normal((channels, width, width)).astype(np.float32)}
    for number, layer in enumerate(_CONVOLUTIONS, 1):
        outputs = layer.channels // divisor
        arrays[f"conv{number}_weights"] = _layers.random_weights(
            generator, outputs, channels // layer.groups, layer.kernel
        )
        arrays[f"conv{number}_biases"] = _layers.small(generator, outputs)
        channels, width = outputs, _width_after(layer, width)
        width = (width - 3) // 2 + 1 if layer.pooled else width
    inputs = channels * width * width
    for number, neurons in enumerate(_NEURONS, len(_CONVOLUTIONS) + 1):
        outputs = neurons // divisor
        arrays[f"fc{number}_weights"] = _layers.random_weights(generator, outputs, inputs)
        arrays[f"fc{number}_biases"] = _layers.small(generator, outputs)
        inputs = outputs
    return arrays


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch the layers one after the other."""
    width, channels = parameters["image"], 3
    maps = session.array(inputs["image"])
    for number, layer in enumerate(_CONVOLUTIONS, 1):
        outputs = layer.channels // parameters["channel_divisor"]
        width_out = _width_after(layer, width)
        maps_out = session.zeros(outputs * width_out**2, np.float32)
        session.launch(
            f"convolve_{layer.kernel}x{layer.kernel}",
            *_layers.geometry(outputs, width_out),
            np.int32(channels // layer.groups),
            np.int32(outputs // layer.groups),
            np.int32(width),
            np.int32(width_out),
            np.int32(layer.stride),
            np.int32(layer.padding),
            maps,
            session.array(inputs[f"conv{number}_weights"]),
            session.array(inputs[f"conv{number}_biases"]),
            maps_out,
        )
        maps, channels, width = maps_out, outputs, width_out
        if layer.normalized:
            maps_out = session.zeros(outputs * width**2, np.float32)
            geometry = _layers.geometry(outputs, width)
            session.launch(
                "normalize", *geometry, np.int32(channels), np.int32(width), maps, maps_out
            )
            maps = maps_out
        if layer.pooled:
            width_out = (width - 3) // 2 + 1
            maps_out = session.zeros(outputs * width_out**2, np.float32)
            geometry = _layers.geometry(outputs, width_out)
            session.launch(
                "pool_maximum", *geometry, np.int32(width), np.int32(width_out), maps, maps_out
            )
            maps, width = maps_out, width_out
    features = maps
    last = len(_CONVOLUTIONS) + len(_NEURONS)
    for number in range(len(_CONVOLUTIONS) + 1, last + 1):
        maps = _connect(session, inputs, f"fc{number}", maps, rectify=number < last)
    return {"features": np.asarray(features), "scores": np.asarray(maps)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Compute the layers in double precision by matrix products."""
    maps = inputs["image"].astype(np.float64)
    for number, layer in enumerate(_CONVOLUTIONS, 1):
        weights, biases = inputs[f"conv{number}_weights"], inputs[f"conv{number}_biases"]
        maps = _layers.convolve(
            maps, weights, layer.kernel, layer.stride, layer.padding, layer.groups
        )
        maps = np.maximum(maps + biases[:, None, None], 0)
        if layer.normalized:
            squares = np.pad(maps**2, ((2, 2), (0, 0), (0, 0)))
            sums = np.lib.stride_tricks.sliding_window_view(squares, 5, axis=0).sum(axis=-1)
            maps = maps / (1 + 1e-4 / 5 * sums) ** 0.75
        if layer.pooled:
            maps = _layers.pool_maximum(maps)
    values = maps.ravel()
    last = len(_CONVOLUTIONS) + len(_NEURONS)
    for number in range(len(_CONVOLUTIONS) + 1, last + 1):
        values = _layers.connect(
            values, inputs[f"fc{number}_weights"], inputs[f"fc{number}_biases"]
        )
        if number < last:
            values = np.maximum(values, 0)
    return {"features": maps.ravel().astype(np.float32), "scores": values.astype(np.float32)}


def _width_after(layer: _Convolution, width: int) -> int:
    return (width + 2 * layer.padding - layer.kernel) // layer.stride + 1


def _connect(
    session: Session, inputs: Arrays, layer: str, values: DeviceArray, *, rectify: bool
) -> DeviceArray:
    weights, biases = inputs[f"{layer}_weights"], inputs[f"{layer}_biases"]
    outputs = len(biases)
    sums = session.zeros(outputs, np.float32)
    session.launch(
        "connect",
        -(-outputs // _layers.NEURONS),
        _layers.NEURONS,
        np.int32(len(weights) // outputs),
        np.int32(outputs),
        np.int32(rectify),
        values,
        session.array(weights),
        session.array(biases),
        sums,
    )
    return sums


workload = Workload(
    name="alexnet",
    title="AlexNet",
    abbreviation="AN",
    suite="Tango",
    memory_divergent=True,
    sizes={
        "small": {"image": 99, "channel_divisor": 4},
        "paper": {"image": 227, "channel_divisor": 2},
    },
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    # Single precision sums of up to 9216 terms; values are around 1.
    tolerances={"features": (1e-4, 1e-4), "scores": (1e-4, 1e-4)},
    description=(
        "Inference of one image: five convolutions with two normalizations and three poolings, and "
        "three fully connected layers, with random weights and a fraction of the channels. As in "
        "Tango, layers are computed directly, one thread per element of a map or output neuron. "
        "Memory-divergent: the first convolution reads every fourth element, the rows of the later "
        "maps are so short that a warp covers several, and the weights of neurons are a whole row of "
        "the matrix apart."
    ),
)
