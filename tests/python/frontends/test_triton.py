"""Kernels of Triton's tutorials: results equal NumPy's, traces are predicted and simulated."""

import numpy as np
import pytest

import warpstack as ws

triton = pytest.importorskip("triton", reason="Triton is not here (warpstack[triton] brings it)")

import triton_kernels as kernels  # noqa: E402

GPUS = ("a100", "h100-pcie")


def on_gpus(trace, simulated=("a100",)):
    """Predict a trace on both GPUs and simulate it; models and simulator are of one magnitude."""
    for name in GPUS:
        row = ws.predict(trace, name, models=["closed_network"]).iloc[0]
        assert row.instructions == trace.num_instructions
        assert 0 < row.time_us < 1e4
        if name in simulated:
            result = ws.simulate(trace, name)
            assert result.instructions == trace.num_instructions
            assert 0.2 < row.time_us / result.time_us < 5


def halves(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def singles(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1000, 4096])
def test_vector_add(n):
    x, y = singles(1, n), singles(2, n)
    out = ws.cuda.empty(n)
    arguments = ws.cuda.array(x), ws.cuda.array(y), out, n
    trace = ws.triton.launch(
        kernels.add, lambda meta: (triton.cdiv(n, meta["BLOCK"]),), *arguments, BLOCK=256
    )
    assert np.array_equal(np.asarray(out), x + y)
    assert trace.grid == (-(-n // 256), 1, 1)
    assert trace.block == (128, 1, 1)
    on_gpus(trace)


def test_width_of_loads_depends_on_what_is_divisible_by_16():
    """4096 floats are 32 blocks of 32 sectors; 4 bytes a lane, or 16 where all is divisible."""
    x = ws.cuda.array(singles(1, 4097))
    out = ws.cuda.empty(4097)
    loads = {}
    for n in (4096, 4095):
        trace = ws.triton.launch(
            kernels.add, 8, x, x, out, n, BLOCK=512, num_warps=4, machine_code=False
        )
        rows = trace.instructions
        loads[n] = rows[rows.opcode.str.startswith("ld.global")].executions.sum()
    # 8 blocks of 4 warps load two arrays of 512 elements: once 4 elements a lane, else 4 times one.
    assert loads == {4096: 8 * 4 * 2, 4095: 8 * 4 * 2 * 4}


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("rows", "columns"), [(20, 100), (37, 781)])
def test_fused_softmax(rows, columns, target):
    x = singles(3, rows, columns)
    out = ws.cuda.empty((rows, columns))
    trace = ws.triton.launch(
        kernels.softmax,
        8,
        ws.cuda.array(x),
        out,
        rows,
        columns,
        BLOCK=triton.next_power_of_2(columns),
        STAGES=2,
        target=target,
    )
    power = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        np.asarray(out), power / power.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-9
    )
    on_gpus(trace)


def check_product(c, a, b):
    """Of halves, with sums in f32: rounded once at the end."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(np.asarray(c).astype(np.float64), exact, rtol=2e-3, atol=2e-3)


def check_attention(out, q, k, v, causal):
    score = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * q.shape[2] ** -0.5
    if causal:
        score = np.where(np.tri(q.shape[1], dtype=bool), score, -np.inf)
    power = np.exp(score - score.max(axis=2, keepdims=True))
    exact = power / power.sum(axis=2, keepdims=True) @ v.astype(np.float64)
    # The weights are rounded to halves before they are multiplied.
    np.testing.assert_allclose(np.asarray(out).astype(np.float64), exact, rtol=5e-3, atol=3e-3)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 128, 96), (200, 72, 136)])
@pytest.mark.parametrize("kernel", ["matmul", "persistent_matmul"])
def test_matmul(kernel, m, n, k):
    a, b = halves(4, m, k), halves(5, k, n)
    c = ws.cuda.empty((m, n), np.float16)
    tiles = -(-m // 64) * -(-n // 32)
    trace = ws.triton.launch(
        getattr(kernels, kernel),
        tiles if kernel == "matmul" else 3,
        ws.cuda.array(a),
        ws.cuda.array(b),
        c,
        m,
        n,
        k,
        BM=64,
        BN=32,
        BK=32,
        GROUP=2,
    )
    check_product(c, a, b)
    rows = trace.instructions
    # An mma is 16 x 8 x 16: 4 x 4 x 2 of them for each tile and step of 32.
    products = rows[rows.opcode.str.startswith("HMMA.16816")].executions.sum()
    assert products == tiles * -(-k // 32) * 32
    on_gpus(trace)


@pytest.mark.parametrize(("m", "n", "k"), [(256, 128, 128), (200, 136, 72)])
@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("kernel", ["matmul", "tensor_matmul"])
def test_matmul_of_warp_groups(kernel, num_warps, m, n, k):
    a, b = halves(14, m, k), halves(15, k, n)
    c = ws.cuda.empty((m, n), np.float16)
    across, down = -(-n // 64), -(-m // 128)
    own = {"GROUP": 2} if kernel == "matmul" else {}
    compiled = ws.triton.compile(
        getattr(kernels, kernel),
        ws.cuda.array(a),
        ws.cuda.array(b),
        c,
        m,
        n,
        k,
        BM=128,
        BN=64,
        BK=64,
        num_warps=num_warps,
        target="sm_90",
        machine_code=False,
        **own,
    )
    grid = across * down if kernel == "matmul" else (down, across)
    trace = compiled.launch(grid, check_races=True)
    check_product(c, a, b)
    rows = trace.instructions
    count = rows.groupby("opcode").executions.sum()
    products = count[count.index.str.startswith("wgmma.mma_async")]
    # Four warps multiply 64 x N x 16: a tile takes 2 of them for each step of 16 and N columns.
    (shape,) = products.index
    columns = int(shape.partition(".m64n")[2].partition("k")[0])
    assert products.sum() == 4 * across * down * 2 * (64 // columns) * 4 * -(-k // 64)
    tensors = count[count.index.str.startswith("cp.async.bulk.tensor.2d.shared")]
    assert (len(tensors) > 0) == (kernel == "tensor_matmul")
    on_gpus(trace, simulated=("h100-pcie",))


def described(array, *block):
    tensor_descriptor = pytest.importorskip("triton.tools.tensor_descriptor")
    return tensor_descriptor.TensorDescriptor.from_tensor(array, list(block))


@pytest.mark.parametrize(("m", "n", "k"), [(256, 128, 128), (200, 136, 72)])
@pytest.mark.parametrize(
    ("target", "num_ctas"),
    [
        *(("sm_80", 1), ("sm_90", 1), ("sm_90", 2)),
        # The code of Triton 3.6 loads A by the first bit of a block's rank and stores C by the second.
        *([("sm_90", 4)] if tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9) else []),
    ],
)
@pytest.mark.parametrize("machine_code", [False, True])
def test_matmul_of_descriptors_made_on_the_host(machine_code, target, num_ctas, m, n, k):
    a, b = halves(24, m, k), halves(25, k, n)
    c = ws.cuda.empty((m, n), np.float16)
    across, down = -(-n // 64), -(-m // 128)
    kernel = ws.triton.compile(
        kernels.described_matmul,
        described(ws.cuda.array(a), 128, 64),
        described(ws.cuda.array(b), 64, 64),
        described(c, 128, 64),
        k,
        BM=128,
        BN=64,
        BK=64,
        target=target,
        num_ctas=num_ctas,
        machine_code=machine_code,
    )
    trace = kernel.launch((down, across), check_races=True)
    check_product(c, a, b)
    assert kernel.num_ctas == num_ctas
    assert trace.grid == (down * num_ctas, across, 1)
    rows = trace.instructions
    name = "UTMALDG" if machine_code else "cp.async.bulk.tensor"
    copies = rows[rows.opcode.str.startswith(name)].executions.sum()
    assert (copies > 0) == (target == "sm_90")
    if num_ctas < 4:
        on_gpus(trace, simulated=())


@pytest.mark.parametrize(("m", "n", "k"), [(256, 128, 128), (200, 136, 72)])
def test_matmul_of_clusters(m, n, k):
    a, b = halves(34, m, k), halves(35, k, n)
    c = ws.cuda.empty((m, n), np.float16)
    tiles = -(-m // 128) * -(-n // 64)
    arguments = (ws.cuda.array(a), ws.cuda.array(b), c, m, n, k)
    trace = ws.triton.launch(
        kernels.matmul,
        lambda meta: tiles,
        *arguments,
        **{"BM": 128, "BN": 64, "BK": 64, "GROUP": 2, "num_ctas": 2},
        target="sm_90",
    )
    check_product(c, a, b)
    assert trace.code == "sm_90"
    assert trace.grid == (2 * tiles, 1, 1)
    on_gpus(trace)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_what_lies_outside_of_a_described_tensor(target):
    """A tensor of 6 x 12 whose rows are 16 apart, read as a tile of 8 x 16."""
    values = singles(6, 6, 16)
    array = ws.cuda.array(values)
    out = ws.cuda.empty((8, 16))
    for padding, outside in (("zero", 0.0), ("nan", np.nan)):
        tensor = described(array, 8, 16)
        tensor.shape, tensor.padding = [6, 12], padding
        ws.triton.launch(
            kernels.copy_described, 1, (3, tensor), out, 8, COLUMNS=16, ROWS=8, target=target
        )
        expected = np.full((8, 16), outside, np.float32)
        expected[:6, :12] = values[:, :12]
        np.testing.assert_array_equal(np.asarray(out), expected)


def test_descriptors_are_of_arrays_of_the_device():
    tensor = described(ws.cuda.zeros((8, 16)), 8, 16)
    tensor.base = np.zeros((8, 16))
    with pytest.raises(ws.InputError, match=r"descriptor of array.*takes an array of the"):
        ws.triton.launch(kernels.copy_described, 1, (3, tensor), None, 8, COLUMNS=16, ROWS=8)


@pytest.mark.parametrize(("heads", "length", "dim"), [(2, 128, 64), (1, 256, 32)])
@pytest.mark.parametrize("num_warps", [4, 8])
def test_flash_attention_of_warp_groups(heads, length, dim, num_warps):
    q, k, v = (halves(seed, heads, length, dim) for seed in (16, 17, 18))
    out = ws.cuda.empty((heads, length, dim), np.float16)
    trace = ws.triton.launch(
        kernels.attention,
        (length // 128, heads),
        *map(ws.cuda.array, (q, k, v)),
        out,
        dim**-0.5,
        length,
        DIM=dim,
        BM=128,
        BN=64,
        CAUSAL=True,
        num_warps=num_warps,
        target="sm_90",
        machine_code=False,
    )
    check_attention(out, q, k, v, causal=True)
    assert trace.instructions.opcode.str.startswith("wgmma.mma_async").any()
    on_gpus(trace, simulated=("h100-pcie",))


@pytest.mark.parametrize("sizes", [[(32, 32, 32)], [(64, 96, 48), (32, 160, 64), (40, 24, 80)]])
def test_grouped_matmul(sizes):
    ones = [(halves(i, m, k), halves(i + 9, k, n)) for i, (m, n, k) in enumerate(sizes)]
    a = [ws.cuda.array(one) for one, _ in ones]
    b = [ws.cuda.array(other) for _, other in ones]
    c = [ws.cuda.empty((m, n), np.float16) for m, n, _ in sizes]
    addresses = [ws.cuda.array(np.array([x.address for x in xs])) for xs in (a, b, c)]
    trace = ws.triton.launch(
        kernels.grouped_matmul,
        4,
        *addresses,
        ws.cuda.array(np.array(sizes, np.int32)),
        len(sizes),
        BM=32,
        BN=32,
        BK=32,
    )
    for got, (one, other) in zip(c, ones, strict=True):
        check_product(got, one, other)
    on_gpus(trace)


def philox(seed, at):
    """First word of Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers"), key: the seed."""
    words = [np.asarray(at, np.uint64), *(np.zeros(len(at), np.uint64) for _ in range(3))]
    low, high = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        one = words[0] * np.uint64(0xD2511F53)
        two = words[2] * np.uint64(0xCD9E8D57)
        cut = np.uint64(0xFFFFFFFF)
        words = [
            (two >> np.uint64(32)) ^ words[1] ^ np.uint64(low),
            two & cut,
            (one >> np.uint64(32)) ^ words[3] ^ np.uint64(high),
            one & cut,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return words[0].astype(np.uint32)


@pytest.mark.parametrize("n", [100, 3000])
def test_dropout(n):
    x = singles(6, n)
    out = ws.cuda.empty(n)
    trace = ws.triton.launch(
        kernels.dropout, -(-n // 512), ws.cuda.array(x), out, n, 0.4, 123, BLOCK=512
    )
    word = philox(123, np.arange(n)).view(np.int32).astype(np.int64)
    uniform = np.where(word < 0, -word - 1, word).astype(np.float32) * np.float32(4.6566127342e-10)
    expected = np.where(uniform > np.float32(0.4), x / np.float32(0.6), 0)
    np.testing.assert_allclose(np.asarray(out), expected, rtol=1e-6)
    assert 0.3 < (expected == 0).mean() < 0.5
    on_gpus(trace)


@pytest.mark.parametrize(("rows", "n"), [(9, 100), (20, 700)])
def test_layer_norm(rows, n):
    x, dy = singles(7, rows, n), singles(8, rows, n)
    weight, bias = singles(9, n), singles(10, n)
    x_there, weight_there = ws.cuda.array(x), ws.cuda.array(weight)
    y, mean, inverse = ws.cuda.empty((rows, n)), ws.cuda.empty(rows), ws.cuda.empty(rows)
    arguments = x_there, y, weight_there, ws.cuda.array(bias), mean, inverse, n, 1e-5
    on_gpus(ws.triton.launch(kernels.layer_norm, rows, *arguments, BLOCK=256))
    exact = x.astype(np.float64)
    scale = 1 / np.sqrt(exact.var(axis=1, keepdims=True) + 1e-5)
    normal = (exact - exact.mean(axis=1, keepdims=True)) * scale
    np.testing.assert_allclose(np.asarray(y), normal * weight + bias, rtol=1e-4, atol=1e-5)

    groups = 4
    dx, locks = ws.cuda.empty((rows, n)), ws.cuda.zeros(2 * groups, np.int32)
    parts = ws.cuda.empty((groups, n)), ws.cuda.empty((groups, n))
    trace = ws.triton.launch(
        kernels.layer_norm_backward,
        rows,
        dx,
        ws.cuda.array(dy),
        *parts,
        x_there,
        weight_there,
        mean,
        inverse,
        locks,
        n,
        GROUPS=groups,
        BLOCK=triton.next_power_of_2(n),
    )
    on_gpus(trace)
    weighted = weight * dy.astype(np.float64)
    along = (normal * weighted).mean(axis=1, keepdims=True)
    exact_dx = (weighted - normal * along - weighted.mean(axis=1, keepdims=True)) * scale
    np.testing.assert_allclose(np.asarray(dx), exact_dx, rtol=1e-3, atol=1e-4)

    dw, db = ws.cuda.empty(n), ws.cuda.empty(n)
    ws.triton.launch(
        kernels.sum_of_groups, -(-n // 32), *parts, dw, db, groups, n, BM=16, BN=32, trace=False
    )
    np.testing.assert_allclose(np.asarray(dw), (dy * normal).sum(axis=0), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.asarray(db), dy.sum(axis=0), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("heads", "length", "dim"), [(2, 64, 32), (1, 192, 64)])
@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(heads, length, dim, causal):
    q, k, v = (halves(seed, heads, length, dim) for seed in (11, 12, 13))
    out = ws.cuda.empty((heads, length, dim), np.float16)
    trace = ws.triton.launch(
        kernels.attention,
        (length // 32, heads),
        *map(ws.cuda.array, (q, k, v)),
        out,
        dim**-0.5,
        length,
        DIM=dim,
        BM=32,
        BN=32,
        CAUSAL=causal,
    )
    check_attention(out, q, k, v, causal)
    on_gpus(trace)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_sort_sums_and_counts(target):
    x = np.random.default_rng(1).integers(0, 16, 512).astype(np.int32)
    out = [ws.cuda.zeros(n, np.int32) for n in (512, 512, 16)]
    ws.triton.launch(
        kernels.sort_and_count, 1, ws.cuda.array(x), *out, N=512, BINS=16, target=target
    )
    expected = (np.sort(x), np.cumsum(x), np.bincount(x, minlength=16))
    for found, values in zip(out, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(found), values)


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_programs_take_a_lock(target):
    lock, count = ws.cuda.zeros(1, np.int32), ws.cuda.zeros(1, np.int32)
    ws.triton.launch(kernels.count_under_lock, 8, lock, count, target=target)
    assert (np.asarray(lock)[0], np.asarray(count)[0]) == (0, 8)


def test_heuristics_choose_constants():
    x = ws.cuda.array(np.arange(100, dtype=np.float32))
    kernel = ws.triton.compile(kernels.double, x, 100)
    kernel.launch(1, trace=False)
    assert np.array_equal(np.asarray(x), 2 * np.arange(100))
    assert repr(kernel) == "TritonKernel('double', target='sm_80', num_warps=4, num_stages=3)"
    assert kernel.ptx.lstrip("/ \n").startswith("Generated by LLVM")
    assert ws.cuda.compile(kernel.ptx).kernels == ("double",)


def test_numbers_of_all_types():
    out = ws.cuda.zeros(7, np.float64)
    pair = (ws.cuda.array(np.array([2.5], np.float32)), 32)
    ws.triton.launch(
        kernels.numbers, 1, out, np.int32(7), 2**40, 0.1, 0.5, True, pair, None, trace=False
    )
    assert np.asarray(out).tolist() == [7, 2**40, 0.1, 0.5, 1, 34.5, 1]


def test_triton_writes_into_a_temporary_folder_or_the_users(tmp_path, monkeypatch):
    x = ws.cuda.zeros(8)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    ws.triton.compile(kernels.double, x, 8)
    assert not list(home.rglob("*double*"))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "kept"))
    ws.triton.compile(kernels.double, x, 8)
    assert list((tmp_path / "kept").rglob("double.ptx"))


def test_tune_sorts_the_configurations():
    x, out = ws.cuda.array(singles(1, 2000)), ws.cuda.array(np.full(2000, 5, np.float32))
    table = ws.triton.tune(
        kernels.add_tuned, lambda meta: (triton.cdiv(2000, meta["BLOCK"]),), (x, x, out, 2000)
    )
    assert table.columns.tolist() == [
        *("BLOCK", "num_warps", "num_stages", "time_us", "simulated_time_us"),
        *("code", "registers_per_thread", "shared_memory_bytes", "tensor_utilisation"),
        *("dram_read_bytes", "warps_per_sm", "config", "error"),
    ]
    assert (table["error"] == "").all()
    assert (table["tensor_utilisation"] == 0).all()  # an addition has no matrices
    assert (table["dram_read_bytes"] == 2000 * 4).all()  # x, twice, and nothing of what is stored
    assert sorted(table["BLOCK"]) == [64, 256]
    assert table["simulated_time_us"].is_monotonic_increasing
    assert table.attrs["best_config"] == table["config"][0]
    assert sorted(table["config"]) == [
        "triton.Config({'BLOCK': 256}, num_warps=2, num_stages=3)",
        "triton.Config({'BLOCK': 64}, num_warps=1, num_stages=3)",
    ]
    assert (np.asarray(out) == 5).all()  # as before

    best = eval(table.attrs["best_config"], {"triton": triton})
    trace = ws.triton.launch(
        kernels.add_tuned.fn,
        triton.cdiv(2000, best.kwargs["BLOCK"]),
        x,
        x,
        out,
        2000,
        **best.all_kwargs(),
    )
    row = ws.predict(trace, "a100", models=["closed_network"]).iloc[0]
    assert row.time_us == table["time_us"][0]
    assert ws.simulate(trace, "a100").time_us == table["simulated_time_us"][0]


def set_tiles(arguments):
    down, across, inner = (arguments[name] for name in ("BM", "BN", "BK"))
    arguments["a"].block_shape = [down, inner]
    arguments["b"].block_shape = [inner, across]
    arguments["c"].block_shape = [down, across]


def test_hooks_of_configurations_set_the_tiles_of_descriptors():
    a, b = halves(44, 128, 64), halves(45, 64, 128)
    c = ws.cuda.zeros((128, 128), np.float16)
    tensors = [described(one, 32, 32) for one in (ws.cuda.array(a), ws.cuda.array(b), c)]
    configs = [
        triton.Config({"BM": 64, "BN": n, "BK": 64}, num_warps=4, num_stages=2, pre_hook=set_tiles)
        for n in (32, 64)
    ]
    table = ws.triton.tune(
        kernels.described_matmul,
        lambda meta: (128 // meta["BM"], 128 // meta["BN"]),
        (*tensors, 64),
        configs,
        "h100-pcie",
        simulator=False,
        target="sm_90",
    )
    assert sorted(table["BN"]) == [32, 64]
    assert table.attrs["best_config"].endswith("num_stages=2, pre_hook=set_tiles)")
    assert not np.asarray(c).any()  # as before
    best = eval(table.attrs["best_config"], {"triton": triton, "set_tiles": set_tiles})
    best.pre_hook({"a": tensors[0], "b": tensors[1], "c": tensors[2], **best.kwargs})
    grid = (128 // best.kwargs["BM"], 128 // best.kwargs["BN"])
    ws.triton.launch(kernels.described_matmul, grid, *tensors, 64, **best.all_kwargs())
    check_product(c, a, b)
    broken = triton.Config(
        {"BM": 64, "BN": 64, "BK": 64}, pre_hook=lambda arguments: arguments["d"]
    )
    with pytest.raises(ws.InputError, match=r"the pre_hook of .* fails: KeyError: 'd'"):
        ws.triton.tune(kernels.described_matmul, 1, (*tensors, 64), [broken], "h100-pcie")


def test_a_configuration_that_does_not_fit_comes_last():
    small = ws.gpu("a100").replace(shared_memory_kib_per_sm=16)
    a = ws.cuda.array(halves(1, 64, 64))
    c = ws.cuda.empty((64, 64), np.float16)
    configs = [
        {"BM": 64, "BN": 64, "BK": 64, "num_stages": 3},  # 2 x 2 x 64 x 64 x 2 bytes
        {"BM": 16, "BN": 16, "BK": 16, "num_stages": 2},
    ]
    table = ws.triton.tune(
        kernels.matmul,
        lambda meta: (64 // meta["BM"] * (64 // meta["BN"]),),
        (a, a, c, 64, 64, 64),
        configs,
        small,
        simulator=False,
        GROUP=1,
    )
    assert table["BM"].tolist() == [16, 64]
    assert np.isinf(table["time_us"]).tolist() == [False, True]
    assert "simulated_time_us" not in table
    assert table["error"].tolist() == ["", "does not fit a100"]
    with pytest.raises(ws.InputError, match=r"none of the configurations runs; .*not fit a100"):
        ws.triton.tune(kernels.matmul, 1, (a, a, c, 64, 64, 64), configs[:1], small, GROUP=1)


def test_configurations_that_do_not_run_are_rows_with_their_reason():
    """One does not compile, one reads past the array, one is fine."""
    x, out = ws.cuda.array(singles(1, 256)), ws.cuda.array(np.full(256, 5, np.float32))
    table = ws.triton.tune(
        kernels.picky,
        lambda meta: (256 // meta["BLOCK"],),
        (x, out),
        [{"BLOCK": 512, "FAR": 0}, {"BLOCK": 64, "FAR": 1 << 30}, {"BLOCK": 64, "FAR": 0}],
        "a100",
        simulator=False,
    )
    assert table["FAR"].tolist() == [0, 0, 1 << 30] or table["FAR"].tolist() == [0, 1 << 30, 0]
    assert np.isinf(table["time_us"]).tolist() == [False, True, True]
    assert table["error"][0] == ""
    reasons = dict(zip(table["BLOCK"][1:], table["error"][1:], strict=True))
    assert "at most 256" in reasons[512]
    assert "out" in reasons[64]
    assert table.attrs["best_config"] == table["config"][0]
    assert (np.asarray(out) == 5).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: ws.triton.launch(3, 1), "expected a function decorated with @triton.jit, got 3"),
        (
            lambda x: ws.triton.compile(kernels.add_tuned),
            r"the kernel is autotuned; ws.triton\(kernel\)\[grid\]",
        ),
        (lambda x: ws.triton.launch(kernels.add, 1, x), "kernel add missing 4 required positional"),
        (
            lambda x: ws.triton.launch(kernels.add, 1, np.ones(3), x, x, 3, BLOCK=64),
            "got a NumPy array; copy it to the device first",
        ),
        (
            lambda x: ws.triton.launch(kernels.add, 1, x, x, x, 3, BLOCK=60),
            "kernel add does not compile: (.|\n)*must be a power of 2",
        ),
        (
            lambda x: ws.triton.launch(kernels.add, 1, x, x, x, 3, BLOCK=64, warps=4),
            "Keyword argument warps was specified but unrecognised",
        ),
        (
            lambda x: ws.triton.launch(kernels.add, 1, x, x, x, 3, BLOCK=64, target="sm_60"),
            "Triton does not compile for sm_60; choose sm_75 or later",
        ),
        (
            lambda x: ws.triton.launch(kernels.add, (1, 1, 1, 1), x, x, x, 3, BLOCK=64),
            "expected one to three numbers",
        ),
        (lambda x: ws.triton.tune(kernels.add, 1, (x,)), "there is no configuration"),
        (lambda x: ws.triton.tune(kernels.add, 1, (x,), [3]), "expected a triton.Config or a dict"),
        (
            lambda x: ws.triton.tune(kernels.add, 1, (x,), [{}], "gpumech-baseline"),
            "does not say its compute_capability; give target=",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ws.InputError, match=message):
        call(ws.cuda.zeros(64))


def test_times_are_not_below_the_tensor_cores_peak():
    """128 x 128 x 256: 2048 mma of 8 cycles on the 4 schedulers of each SM that has a block."""
    a, b = ws.cuda.array(halves(1, 128, 256)), ws.cuda.array(halves(2, 256, 128))
    c = ws.cuda.empty((128, 128), np.float16)
    gpu = ws.gpu("a100")
    for tile in (32, 64):
        blocks = (128 // tile) ** 2
        trace = ws.triton.launch(
            kernels.matmul, blocks, a, b, c, 128, 128, 256, BM=tile, BN=tile, BK=32, GROUP=4
        )
        least = 2048 / blocks * gpu.tensor_interval / gpu.num_schedulers
        assert ws.predict(trace, gpu, models=["closed_network"])["cycles"][0] >= least
        simulated = ws.simulate(trace, gpu)
        assert simulated.cycles >= least
        # The mean of all SMs: 2048 mma of 8 cycles, over the cycles of 108 SMs with 4 schedulers each.
        by_hand = 2048 * 8 / (simulated.cycles * 108 * 4)
        assert simulated.tensor_utilisation == pytest.approx(by_hand, rel=1e-12)
        # Both matrices come from DRAM once; of C, what a store writes only a part of.
        reads = 32 * ws.simulate_caches(trace, gpu).totals["dram_read_sectors"]
        assert 2 * 128 * 256 * 2 <= reads <= 2 * 128 * 256 * 2 + 128 * 128 * 2


#: Tiles, warps and stages: small and large ones, few and many warps.
TILES = [
    (32, 32, 32, 2, 3),
    (64, 64, 32, 4, 3),
    (128, 64, 64, 4, 3),
    (128, 128, 64, 8, 2),
    (64, 128, 64, 8, 4),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "target"), [("a100", "sm_80"), ("h100-pcie", "sm_80"), ("h100-pcie", "sm_90")]
)
@pytest.mark.parametrize("kernel", ["matmul", "tensor_matmul"])
def test_no_configuration_passes_the_dense_peak(kernel, name, target):
    """256 x 256 x 512 on two SMs, which the blocks of each configuration keep busy."""
    size, inner, num_sms = 256, 512, 2
    gpu = ws.gpu(name).replace(num_sms=num_sms)
    a, b = ws.cuda.array(halves(1, size, inner)), ws.cuda.array(halves(2, inner, size))
    c = ws.cuda.empty((size, size), np.float16)
    per_cycle = gpu.tensor_f16_f32_rate * gpu.num_schedulers * num_sms
    best = 0.0
    for down, across, step, num_warps, num_stages in TILES:
        trace = ws.triton.launch(
            getattr(kernels, kernel),
            (size // down * (size // across),)
            if kernel == "matmul"
            else (size // down, size // across),
            *(a, b, c, size, size, inner),
            **{"BM": down, "BN": across, "BK": step},
            **({"GROUP": 2} if kernel == "matmul" else {}),
            num_warps=num_warps,
            num_stages=num_stages,
            target=target,
        )
        cycles = [ws.simulate(trace, gpu).cycles, *ws.predict(trace, gpu)["cycles"]]
        used = [size * size * inner / per_cycle / count for count in cycles]
        assert max(used) <= 1 + 1e-9, (down, across, step, num_warps, num_stages, used)
        best = max(best, used[0])
    assert best > 0.1  # the peak is not out of reach for other reasons alone
