"""The workloads that are not memory-divergent, on inputs whose results are known by hand or by law.

That every workload agrees with its reference on random inputs is in test_workloads.py.
"""

import numpy as np
import pytest

from warpstack import workloads
from warpstack.workloads import btree, hotspot


def outputs(name, parameters, inputs):
    """Run a workload on these inputs; its reference has to agree."""
    stem, workload = workloads._find(name)
    result = workload.run(workloads._session(stem, trace=False), parameters, inputs)
    workloads.compare(workload, result, workload.reference(parameters, inputs))
    return result


def random_inputs(name, **parameters):
    return workloads.get(name).make_inputs(parameters, np.random.default_rng(0))


def test_hotspot_balances_its_heat():
    # The exchange between cells cancels: the sum changes by power and by what goes to the ambient.
    parameters = {"width": 70, "height": 45, "steps": 1}
    inputs = random_inputs("hotspot", **parameters)
    heat = inputs["temperature"].astype(np.float64)
    then = outputs("hotspot", parameters, inputs)["temperature"].astype(np.float64)
    step, _, _, inverse_rz = hotspot._coefficients(parameters)
    gain = step * (
        inputs["power"].sum(dtype=np.float64) + inverse_rz * (hotspot._AMBIENT - heat).sum()
    )
    assert abs(gain) > 100
    assert (then - heat).sum() == pytest.approx(gain, abs=3150 * 2e-5)


def test_hotspot_at_rest():
    parameters = {"width": 33, "height": 9, "steps": 3}
    inputs = {
        "temperature": np.full((9, 33), 300, np.float32),
        "power": np.zeros((9, 33), np.float32),
    }
    assert (outputs("hotspot", parameters, inputs)["temperature"] == 300).all()


def test_srad_keeps_the_sum_of_the_image():
    # A pixel gains by its neighbour's coefficient what the neighbour loses by its own.
    parameters = {"width": 45, "height": 29, "iterations": 3}
    inputs = random_inputs("srad", **parameters)
    image = outputs("srad", parameters, inputs)["image"]
    assert image.var() < 0.9 * inputs["image"].var()
    assert image.sum(dtype=np.float64) == pytest.approx(inputs["image"].sum(dtype=np.float64), 1e-6)


def test_backprop_by_hand():
    # Weights, bias and output weights 0: all sigmoids are 1/2, no error reaches the hidden units,
    # and weights go on by 0.3 of their last update.
    inputs = {
        "inputs": np.ones(16, np.float32),
        "weights": np.zeros((16, 16), np.float32),
        "updates": np.full((16, 16), 0.5, np.float32),
        "bias": np.zeros(16, np.float32),
        "output_weights": np.zeros(16, np.float32),
        "target": np.array([0.1], np.float32),
    }
    result = outputs("backprop", {"inputs": 16}, inputs)
    assert (result["hidden"] == 0.5).all()
    np.testing.assert_allclose(result["weights"], 0.15, rtol=1e-6)
    # Output weights 0 but for 2 and -2 of the first two: the output is 1/2 again, its error
    # 1/2 * 1/2 * (0.1 - 0.5) = -0.1, that of the two 1/2 * 1/2 * -0.1 * (+-2) = -+0.05. The update
    # is 0.3 * -+0.05 * input + 0.3 * 0.5.
    inputs["output_weights"][:2] = [2, -2]
    inputs["inputs"][3] = 2
    updates = outputs("backprop", {"inputs": 16}, inputs)["updates"]
    np.testing.assert_allclose(updates[0, :3], [0.135, 0.165, 0.15], rtol=1e-6)
    np.testing.assert_allclose(updates[3, :3], [0.12, 0.18, 0.15], rtol=1e-6)


def test_fdtd3d_spreads_an_impulse_along_the_axes():
    parameters = {"width": 40, "height": 20, "depth": 12, "steps": 1}
    volume = np.zeros((20, 28, 48), np.float32)
    volume[9, 19, 35] = 1  # with the border of 4: near the corner of the first tile
    stencil = np.array([0.5, 0.1, 0.2, 0.3, 0.4], np.float32)
    result = outputs("fdtd3d", parameters, {"volume": volume, "stencil": stencil})["volume"]
    line = stencil[[4, 3, 2, 1, 0, 1, 2, 3, 4]]
    np.testing.assert_array_equal(result[5:14, 19, 35], line)
    np.testing.assert_array_equal(result[9, 15:24, 35], line)
    np.testing.assert_array_equal(result[9, 19, 31:40], line)
    assert np.count_nonzero(result) == 25


def test_stencil_of_a_linear_volume_is_zero():
    # Neighbours sum to six times the value: 6/36 of it less 1/6. The border stays.
    z, y, x = np.indices((5, 11, 40)).astype(np.float32)
    volume = (z + 2 * y + 3 * x) / np.float32(128)
    parameters = {"width": 40, "height": 11, "depth": 5, "steps": 1}
    result = outputs("stencil", parameters, {"volume": volume})["volume"]
    np.testing.assert_allclose(result[1:-1, 1:-1, 1:-1], 0, atol=1e-6)
    border = np.ones(volume.shape, bool)
    border[1:-1, 1:-1, 1:-1] = False
    np.testing.assert_array_equal(result[border], volume[border])


def test_convolution_of_an_impulse_is_the_filter_turned_round():
    parameters = {"width": 70, "height": 12}
    image = np.zeros((12, 70), np.float32)
    image[8, 32] = 1  # where two warps and two blocks meet
    weights = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    result = outputs("2d-convolution", parameters, {"image": image, "filter": weights})["result"]
    np.testing.assert_array_equal(result[7:10, 31:34], weights[::-1, ::-1])
    assert np.count_nonzero(result) == 9


def test_btree_by_hand():
    inputs = {
        "keys": np.array([10, 20, 30, 40], np.int32),
        "values": np.array([5, 6, 7, 8], np.int32),
        "queries": np.array([10, 25, 40, 0, 41], np.int32),
        "from": np.array([0, 10, 11, 20, 21, 41, 0], np.int32),
        "to": np.array([50, 30, 39, 20, 29, 50, 9], np.int32),
    }
    result = outputs("b+tree", {"records": 4, "queries": 5, "ranges": 7}, inputs)
    assert result["answers"].tolist() == [5, -1, 8, -1, -1]
    assert result["first"].tolist() == [0, 0, 1, 1, 2, 4, 0]
    assert result["length"].tolist() == [4, 3, 2, 1, 0, 0, 0]


@pytest.mark.parametrize("records", [1, 191, 192, 193, 384, 192 * 192, 192 * 192 + 1])
def test_btree_finds_every_key_at_the_limits_of_nodes(records):
    keys = np.arange(2, 2 * records + 1, 2, dtype=np.int32)
    tree_keys, children, inner_levels = btree._build(keys)
    assert inner_levels == (0 if records <= 192 else 1 if records <= 192 * 192 else 2)
    assert tree_keys.shape == children.shape
    some = np.unique(np.concatenate([keys[:2], keys[190:194], keys[-2:]]))
    inputs = {
        "keys": keys,
        "values": np.arange(records, dtype=np.int32),
        "queries": np.concatenate([some, some + 1]).astype(np.int32),
        "from": some.astype(np.int32),
        "to": (some + 3).astype(np.int32),
    }
    parameters = {"records": records, "queries": 2 * len(some), "ranges": len(some)}
    result = outputs("b+tree", parameters, inputs)
    assert result["answers"].tolist() == (some // 2 - 1).tolist() + [-1] * len(some)
    assert (result["length"] == np.where(some == keys[-1], 1, 2)).all()


def test_ray_tracing_of_the_sky_and_the_floor():
    # A sphere behind the camera: above the horizon pixels depend on their row only, and the whole
    # blue of the sky is there. Directions are (x, y, 1.5) before they get unit length, with
    # y = 0.75 - (row + 0.5) / 16, so that rows 0 to 11 look up.
    inputs = {
        "spheres": np.array([[0, 1, -30, 1]], np.float32),
        "surfaces": np.array([[1, 0, 0, 0]], np.float32),
    }
    parameters = {"width": 32, "height": 32, "spheres": 1, "bounces": 2}
    pixels = outputs("ray-tracing", parameters, inputs)["pixels"]
    assert ((pixels[:12] >> 16) == 255).all()
    # Row 0, column 16: (1/32, 23/32, 3/2), of length 1.66364: y is 0.43203, the haze 0.56797, red 0.7
    # of it, 101.4 of 255, and green 0.8 of it, 115.9.
    assert (pixels[0, 16] & 255, pixels[0, 16] >> 8 & 255) == (101, 116)
    assert len(np.unique(pixels[20:])) > 10
