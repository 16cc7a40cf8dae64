"""ResNet (Tango)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpstack.errors import InputError
from warpstack.workloads import Arrays, DeviceArray, Parameters, Session, Workload, _layers

#: Blocks of each of the four stages by the number of weighted layers.
_STAGES = {14: (1, 1, 1, 1), 26: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
_CHANNELS, _EXPANSION, _CLASSES = 64, 4, 1000
_DIVISORS = (1, 2, 4, 8)
_EPSILON = 1e-5


class _Convolution(NamedTuple):
    name: str
    inputs: int
    outputs: int
    kernel: int
    stride: int = 1


class _Block(NamedTuple):
    """Three convolutions, and one for the shortcut where its shape changes."""

    residual: tuple[_Convolution, _Convolution, _Convolution]
    shortcut: _Convolution | None


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make an image of noise, random weights, and statistics for the normalizations."""
    layers, divisor, width = (parameters[i] for i in ("layers", "channel_divisor", "image"))
    if layers not in _STAGES or divisor not in _DIVISORS:
        raise InputError(
            f"resnet: layers = {layers} and channel_divisor = {divisor}; layers are one of "
            f"{', '.join(map(str, _STAGES))}, the divisor one of {', '.join(map(str, _DIVISORS))}"
        )
    arrays = {"image": generator.standard_normal((3, width, width)).astype(np.float32)}
    for layer in _convolutions(parameters):
        weights = _layers.random_weights(generator, layer.outputs, layer.inputs, layer.kernel)
        arrays[f"{layer.name}_weights"] = weights
        for statistic in ("means", "offsets"):
            arrays[f"{layer.name}_{statistic}"] = _layers.small(generator, layer.outputs)
        # As in trained networks, a block adds little, so that values do not grow from block to block.
        gains = {"variances": 1.0, "factors": 0.25 if layer.name.endswith("expand") else 1.0}
        for statistic, gain in gains.items():
            values = gain * generator.uniform(0.5, 1.5, layer.outputs)
            arrays[f"{layer.name}_{statistic}"] = values.astype(np.float32)
    outputs = _CLASSES // divisor
    arrays["fc_weights"] = _layers.random_weights(generator, outputs, layer.outputs)
    arrays["fc_biases"] = _layers.small(generator, outputs)
    return arrays


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch the steps of the layers one after the other."""
    stem = _stem(parameters)
    maps, width = _convolve(
        session, inputs, stem, session.array(inputs["image"]), parameters["image"]
    )
    _rectify(session, stem.outputs, width, maps)
    pooled_width = (width - 1) // 2 + 1
    pooled = session.zeros(stem.outputs * pooled_width**2, np.float32)
    session.launch(
        "pool_maximum",
        *_layers.geometry(stem.outputs, pooled_width),
        np.int32(width),
        np.int32(pooled_width),
        maps,
        pooled,
    )
    maps, width = pooled, pooled_width
    for block in _blocks(parameters):
        shortcut, residual, residual_width = maps, maps, width
        for layer in block.residual:
            residual, residual_width = _convolve(session, inputs, layer, residual, residual_width)
            if layer is not block.residual[-1]:
                _rectify(session, layer.outputs, residual_width, residual)
        if block.shortcut:
            shortcut, _ = _convolve(session, inputs, block.shortcut, maps, width)
        maps, width, channels = residual, residual_width, block.residual[-1].outputs
        session.launch("add", *_layers.geometry(channels, width), np.int32(width), shortcut, maps)
        _rectify(session, channels, width, maps)
    means = session.zeros(channels, np.float32)
    session.launch(
        "pool_mean",
        -(-channels // _layers.NEURONS),
        _layers.NEURONS,
        np.int32(channels),
        np.int32(width**2),
        maps,
        means,
    )
    outputs = len(inputs["fc_biases"])
    scores = session.zeros(outputs, np.float32)
    session.launch(
        "connect",
        -(-outputs // _layers.NEURONS),
        _layers.NEURONS,
        np.int32(channels),
        np.int32(outputs),
        means,
        session.array(inputs["fc_weights"]),
        session.array(inputs["fc_biases"]),
        scores,
    )
    return {"features": np.asarray(maps), "scores": np.asarray(scores)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Compute the layers in double precision by matrix products."""

    def normalized(layer: _Convolution, maps: _layers.Maps) -> _layers.Maps:
        means, variances, factors, offsets = (
            inputs[f"{layer.name}_{statistic}"].astype(np.float64)[:, None, None]
            for statistic in ("means", "variances", "factors", "offsets")
        )
        weights = inputs[f"{layer.name}_weights"]
        maps = _layers.convolve(maps, weights, layer.kernel, layer.stride, layer.kernel // 2)
        result: _layers.Maps = (maps - means) / np.sqrt(variances + _EPSILON) * factors + offsets
        return result

    maps = np.maximum(normalized(_stem(parameters), inputs["image"].astype(np.float64)), 0)
    maps = _layers.pool_maximum(maps, padding=1)
    for block in _blocks(parameters):
        first, second, third = block.residual
        residual = np.maximum(normalized(first, maps), 0)
        residual = np.maximum(normalized(second, residual), 0)
        shortcut = normalized(block.shortcut, maps) if block.shortcut else maps
        maps = np.maximum(normalized(third, residual) + shortcut, 0)
    scores = _layers.connect(maps.mean(axis=(1, 2)), inputs["fc_weights"], inputs["fc_biases"])
    return {"features": maps.ravel().astype(np.float32), "scores": scores.astype(np.float32)}


def _stem(parameters: Parameters) -> _Convolution:
    return _Convolution("stem", 3, _CHANNELS // parameters["channel_divisor"], 7, 2)


def _blocks(parameters: Parameters) -> Iterator[_Block]:
    inputs = inner = _CHANNELS // parameters["channel_divisor"]
    for stage, blocks in enumerate(_STAGES[parameters["layers"]], 1):
        for number in range(1, blocks + 1):
            name = f"stage{stage}_block{number}"
            stride = 2 if stage > 1 and number == 1 else 1
            outputs = _EXPANSION * inner
            yield _Block(
                (
                    _Convolution(f"{name}_reduce", inputs, inner, 1, stride),
                    _Convolution(f"{name}_middle", inner, inner, 3),
                    _Convolution(f"{name}_expand", inner, outputs, 1),
                ),
                _Convolution(f"{name}_shortcut", inputs, outputs, 1, stride)
                if number == 1
                else None,
            )
            inputs = outputs
        inner *= 2


def _convolutions(parameters: Parameters) -> Iterator[_Convolution]:
    yield _stem(parameters)
    for block in _blocks(parameters):
        if block.shortcut:
            yield block.shortcut
        yield from block.residual


def _convolve(
    session: Session, inputs: Arrays, layer: _Convolution, maps: DeviceArray, width: int
) -> tuple[DeviceArray, int]:
    """Launch a convolution, its normalization and its scale; return the maps and their width."""
    width_out = (width - 1) // layer.stride + 1
    output = session.zeros(layer.outputs * width_out**2, np.float32)
    geometry = _layers.geometry(layer.outputs, width_out)
    weights, means, variances, factors, offsets = (
        session.array(inputs[f"{layer.name}_{array}"])
        for array in ("weights", "means", "variances", "factors", "offsets")
    )
    session.launch(
        f"convolve_{layer.kernel}x{layer.kernel}",
        *geometry,
        np.int32(layer.inputs),
        np.int32(width),
        np.int32(width_out),
        np.int32(layer.stride),
        maps,
        weights,
        output,
    )
    session.launch("normalize", *geometry, np.int32(width_out), means, variances, output)
    session.launch("scale", *geometry, np.int32(width_out), factors, offsets, output)
    return output, width_out


def _rectify(session: Session, channels: int, width: int, maps: DeviceArray) -> None:
    session.launch("rectify", *_layers.geometry(channels, width), np.int32(width), maps)


workload = Workload(
    name="resnet",
    title="ResNet",
    abbreviation="RN",
    suite="Tango",
    memory_divergent=True,
    sizes={
        "small": {"image": 96, "layers": 14, "channel_divisor": 8},
        "paper": {"image": 224, "layers": 50, "channel_divisor": 8},
    },
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    # Single precision through up to 50 layers of sums of up to 1152 terms.
    tolerances={"features": (1e-4, 1e-4), "scores": (1e-4, 1e-4)},
    description=(
        "Inference of one image by a residual network of bottleneck blocks, ResNet-50 at the size "
        "paper, with random weights and a fraction of the channels. As in Tango, layers are computed "
        "directly, one thread per element of a map or output neuron, and normalization, scale, "
        "rectification and addition are launches of their own. Memory-divergent: rows of maps are so "
        "short or so placed that a warp touches two lines or more, strided convolutions and poolings "
        "read every second element, and the weights of neurons are a whole row of the matrix apart."
    ),
)
