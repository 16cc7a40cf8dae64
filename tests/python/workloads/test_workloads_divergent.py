"""The memory-divergent workloads on inputs whose results are known by hand or by law.

That every workload agrees with its reference on random inputs is in test_workloads.py.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.csgraph import shortest_path

import warpstack as ws
from warpstack import workloads
from warpstack.workloads import _layers, _mapreduce, inverted_index, pageview_count, pageview_rank


def outputs(name, parameters, inputs):
    """Run a workload on these inputs; its reference has to agree."""
    stem, workload = workloads._find(name)
    result = workload.run(session(stem), parameters, inputs)
    workloads.compare(workload, result, workload.reference(parameters, inputs))
    return result


def session(stem):
    return workloads._session(stem, trace=False)


def random_inputs(name, seed=0, **parameters):
    return workloads.get(name).make_inputs(parameters, np.random.default_rng(seed))


def test_bfs_by_hand():
    # 0 - 1 - 2, 0 - 3, 3 - 2; 4 alone, 5 points to 0 only.
    inputs = {
        "first_edge": np.array([0, 2, 4, 6, 8, 8, 9], np.int32),
        "edges": np.array([1, 3, 0, 2, 1, 3, 0, 2, 0], np.int32),
    }
    cost = outputs("bfs", {"nodes": 6}, inputs)["cost"]
    assert cost.tolist() == [0, 1, 2, 1, -1, -1]


def test_bfs_agrees_with_shortest_paths():
    nodes = 700
    inputs = random_inputs("bfs", seed=3, nodes=nodes)
    graph = scipy.sparse.csr_matrix(
        (np.ones(len(inputs["edges"])), inputs["edges"], inputs["first_edge"]), (nodes, nodes)
    )
    paths = shortest_path(graph, unweighted=True, indices=0)
    cost = outputs("bfs", {"nodes": nodes}, inputs)["cost"]
    np.testing.assert_array_equal(cost, np.where(np.isinf(paths), -1, paths))


def test_spmv_by_hand():
    # [2 0 1]   [1]   [5]
    # [0 0 0] x [2] = [0]
    # [0 4 0]   [3]   [8]
    inputs = {
        "first_entry": np.array([0, 2, 2, 3], np.int32),
        "columns": np.array([0, 2, 1], np.int32),
        "values": np.array([2, 1, 4], np.float32),
        "x": np.array([1, 2, 3], np.float32),
    }
    assert outputs("spmv", {"rows": 3, "entries_per_row": 1}, inputs)["y"].tolist() == [5, 0, 8]


def test_k_means_by_hand():
    # Centres start at points 0 and 2, (0, 0) and (1, 1). The point (0.5, 0.5) is as near to both
    # and goes to the first; the means are then those of {0, 1} and {2, 3}.
    points = np.array([[0, 0], [0.5, 0.5], [1, 1], [2, 1]], np.float32)
    parameters = {"points": 4, "features": 2, "clusters": 2, "iterations": 1}
    result = outputs("k-means", parameters, {"points": points})
    assert result["membership"].tolist() == [0, 0, 1, 1]
    assert result["centres"].tolist() == [[0.25, 0.25], [1.5, 1]]


def test_k_means_does_not_depend_on_the_order_of_the_sum():
    # The claim behind comparing memberships exactly: no distance is rounded in single precision.
    inputs = random_inputs("k-means", points=300, features=256, clusters=3, iterations=1)
    points = inputs["points"]
    differences = points[:, None] - points[None, :7]
    exact = (differences.astype(np.float64) ** 2).sum(axis=2)
    for order in (np.arange(256), np.arange(256)[::-1]):
        total = np.zeros(exact.shape, np.float32)
        for feature in order:
            total += differences[:, :, feature] ** 2
        np.testing.assert_array_equal(total, exact)


def test_pageview_rank_by_hand():
    lines = [
        b"http://b\t7\n",
        b"http://longer\t120\n",
        b"http://c\t7\n",
        b"h\t0\n",
        b"http://e\t9\n",
    ]
    result = outputs("pageview-rank", {"pages": 5}, _mapreduce.as_text(lines))
    assert result["views"].tolist() == [120, 9, 7, 7, 0]
    # Line by line 11, 18, 11, 4 and 11 bytes; equal views stay in the order of the list.
    assert result["url_first"].tolist() == [11, 44, 0, 29, 40]
    assert result["url_bytes"].tolist() == [13, 8, 8, 8, 1]


def test_pageview_count_by_hand():
    lines = [
        b"http://a\t1.1.1.1\tx\n",
        b"http://b\t1.1.1.1\ty\n",
        b"http://a\t1.1.1.1\tz\n",  # the same visitor again, with another cookie
        b"http://a\t1.1.1.2\tx\n",
        b"http://ab\t1.1.1.1\tx\n",  # begins like another URL
        b"http://b\t1.1.1.3\tx\n",
        b"http://b\t1.1.1.4\tx\n",
    ]
    result = outputs("pageview-count", {"views": 7}, _mapreduce.as_text(lines))
    assert result["first_line"].tolist() == [0, 1, 4]
    assert result["views"].tolist() == [2, 3, 1]


def test_inverted_index_by_hand():
    lines = [
        b'<p>hrhref="to the end of the line\n',
        b'<a href="u1">x</a><a href="u2">y</a>\n',
        b"<p>href = nothing, hrhref, hreef=\n",
        b'<a href="">empty</a><a href="u1">\n',
        b'<a href="uhref="u1">\n',  # the quote that ends a URL opens no other
    ]
    result = outputs("inverted-index", {"lines": 5}, _mapreduce.as_text(lines))
    lists = np.split(result["listed_lines"], result["list_first"][1:])
    assert sorted(i.tolist() for i in lists) == [[0], [1], [1, 3], [3], [4]]


def test_inverted_index_without_links():
    result = outputs("inverted-index", {"lines": 2}, _mapreduce.as_text([b"<p>\n", b"text\n"]))
    assert result["list_first"].size == result["listed_lines"].size == 0


@pytest.mark.parametrize("count", [1, 2, 3, 255, 256, 257, 700])
def test_scan_and_sort(count):
    values = np.random.default_rng(count).integers(0, 100, count).astype(np.int32)
    ours = session("inverted_index")
    sums, total = _mapreduce.scan(ours, ours.array(values), count)
    np.testing.assert_array_equal(sums, np.cumsum(values) - values)
    assert total == values.sum()
    ours = session("pageview_rank")
    order = np.asarray(_mapreduce.sort(ours, count, ours.array(values)))
    np.testing.assert_array_equal(order[:count], np.argsort(-values, kind="stable"))


def test_scan_of_two_levels():
    # 256 x 256 values fill one block of totals; one more takes a second level.
    values = np.random.default_rng(0).integers(0, 9, 256 * 256 + 1).astype(np.int32)
    ours = session("pageview_count")
    sums, total = _mapreduce.scan(ours, ours.array(values), len(values))
    np.testing.assert_array_equal(sums, np.cumsum(values) - values)
    assert total == values.sum()


@pytest.mark.parametrize("module", [inverted_index, pageview_count, pageview_rank])
def test_lines_have_any_length(module):
    inputs = module.make_inputs(
        dict.fromkeys(("lines", "views", "pages"), 500), np.random.default_rng(1)
    )
    lengths = np.diff(inputs["first_byte"])
    assert lengths.std() > 5
    assert (
        b"".join(_mapreduce.as_lines(inputs["text"], inputs["first_byte"]))
        == inputs["text"].tobytes()
    )


def test_cfd_keeps_a_uniform_flow():
    inputs = random_inputs("cfd", points=200, iterations=2)
    assert (inputs["neighbours"] == -1).any()
    inputs["neighbours"][inputs["neighbours"] == -1] = -2  # no body
    inputs["disturbance"][:] = 0
    variables = outputs("cfd", {"points": 200, "iterations": 2}, inputs)["variables"]
    far = np.array([1.4, 1.4 * 1.2, 0, 0, 1 / 0.4 + 0.7 * 1.44])
    np.testing.assert_allclose(variables, np.broadcast_to(far[:, None], variables.shape), atol=1e-5)


def test_cfd_conserves_mass_and_energy_in_a_closed_box():
    # All that leaves a cell enters its neighbour, and walls let neither mass nor energy through.
    inputs = random_inputs("cfd", points=200, iterations=1)
    neighbours = np.where(inputs["neighbours"] == -2, -1, inputs["neighbours"])
    cells = len(inputs["surface"])
    flow = np.random.default_rng(0).uniform(1, 2, (5, cells)).astype(np.float32)
    flow[4] += 10  # positive pressure
    ours = session("cfd")
    fluxes = ours.zeros((5, cells), np.float32)
    ours.launch(
        "compute_flux",
        -(-cells // 64),
        64,
        np.int32(cells),
        ours.array(neighbours),
        ours.array(inputs["normals"]),
        ours.array(flow),
        fluxes,
    )
    result = np.asarray(fluxes).astype(np.float64)
    for variable in (0, 4):
        assert abs(result[variable].sum()) < 1e-6 * np.abs(result[variable]).sum()
        assert np.abs(result[variable]).max() > 1e-3


def test_cfd_mesh_is_closed():
    inputs = random_inputs("cfd", points=300, iterations=1)
    neighbours, normals = inputs["neighbours"], inputs["normals"]
    np.testing.assert_allclose(normals.sum(axis=0), 0, atol=1e-6)
    for face, cell in np.argwhere(neighbours >= 0)[::17]:
        other = neighbours[face, cell]
        back = np.flatnonzero(neighbours[:, other] == cell)
        assert len(back) == 1
        np.testing.assert_allclose(normals[back[0], :, other], -normals[face, :, cell], atol=1e-7)


def convolution(stem, kernel, maps, weights, *, width, width_out, arguments, geometry=None):
    ours = session(stem)
    channels = weights.shape[0]
    output = ours.zeros((channels, width_out, width_out), np.float32)
    grid, block = geometry or _layers.geometry(channels, width_out)
    biases = (ours.zeros(channels, np.float32),) if stem == "alexnet" else ()
    ours.launch(
        f"convolve_{kernel}x{kernel}",
        grid,
        block,
        *(np.int32(i) for i in arguments),
        ours.array(maps.astype(np.float32)),
        ours.array(weights.astype(np.float32)),
        *biases,
        output,
    )
    return np.asarray(output)


def test_convolution_by_hand():
    # Ones under a 3 x 3 window of ones: nine, six on an edge, four in a corner.
    ones = np.ones((1, 3, 3))
    expected = [[4, 6, 4], [6, 9, 6], [4, 6, 4]]
    resnet = convolution(
        "resnet", 3, ones, ones[None], width=3, width_out=3, arguments=(1, 3, 3, 1)
    )
    assert resnet[0].tolist() == expected
    alexnet = convolution(
        "alexnet", 3, ones, ones[None], width=3, width_out=3, arguments=(1, 1, 3, 3, 1, 1)
    )
    assert alexnet[0].tolist() == expected


def test_convolution_in_groups_by_hand():
    # Two groups of one input each: output 0 sees map 0, output 1 sees map 1.
    maps = np.stack([np.full((1, 1), 2.0), np.full((1, 1), 5.0)])
    weights = np.zeros((2, 1, 3, 3))
    weights[:, :, 1, 1] = 1
    result = convolution(
        "alexnet", 3, maps, weights, width=1, width_out=1, arguments=(1, 1, 1, 1, 1, 1)
    )
    assert result.ravel().tolist() == [2, 5]


def test_convolution_of_more_than_a_tile():
    # 33 columns take two tiles; a window that picks its centre copies the map.
    maps = np.arange(33.0 * 33).reshape(1, 33, 33)
    weights = np.zeros((1, 1, 7, 7))
    weights[0, 0, 3, 3] = 1
    result = convolution(
        "resnet", 7, maps, weights, width=33, width_out=33, arguments=(1, 33, 33, 1)
    )
    np.testing.assert_array_equal(result, maps)


def test_poolings_by_hand():
    # Windows at columns 0..2 and 2..4 of five; with a border, around columns 0, 2 and 4.
    maps = np.arange(25, dtype=np.float32).reshape(1, 5, 5)
    for stem, expected in {
        "alexnet": [[12, 14], [22, 24]],
        "resnet": [[6, 8, 9], [16, 18, 19], [21, 23, 24]],
    }.items():
        ours = session(stem)
        width = len(expected)
        output = ours.zeros((width, width), np.float32)
        ours.launch(
            "pool_maximum",
            *_layers.geometry(1, width),
            np.int32(5),
            np.int32(width),
            ours.array(maps),
            output,
        )
        assert np.asarray(output).tolist() == expected


def test_local_response_normalization_by_hand():
    # Seven channels of 100: the middle ones see five, 1 + 1e-4 / 5 * 5e4 = 2; the outer ones
    # three, 1.6, and four, 1.8.
    ours = session("alexnet")
    output = ours.zeros(7, np.float32)
    ours.launch(
        "normalize",
        (1, 1, 7),
        (1, 1),
        np.int32(7),
        np.int32(1),
        ours.array(np.full(7, 100, np.float32)),
        output,
    )
    sums = np.array([1.6, 1.8, 2, 2, 2, 1.8, 1.6])
    np.testing.assert_allclose(output, 100 / sums**0.75, rtol=1e-6)


def test_resnet_50_has_the_layers_of_the_original():
    # 53 convolutions, each with normalization and scale; 49 rectifications; 16 additions; two
    # poolings; one fully connected layer.
    app = ws.workloads.load("resnet", {"image": 16, "layers": 50, "channel_divisor": 8})
    assert len(app.kernels) == 3 * 53 + 49 + 16 + 2 + 1


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("cfd", {"points": 4}, "points = 4 is below 64"),
        ("k-means", {"features": 257}, "features = 257"),
        ("k-means", {"clusters": 400}, "clusters = 400"),
        ("alexnet", {"image": 66}, "image = 66"),
        ("alexnet", {"channel_divisor": 3}, "channel_divisor = 3"),
        ("resnet", {"layers": 18}, "layers = 18"),
    ],
)
def test_parameters_out_of_range(name, parameters, message):
    with pytest.raises(ws.InputError, match=message):
        ws.workloads.run(name, parameters)
