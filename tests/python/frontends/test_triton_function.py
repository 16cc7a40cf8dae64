"""Kernels launched as in Triton, ``kernel[grid](...)``, and the choices of autotuners."""

import numpy as np
import pytest

import warpstack as ws

triton = pytest.importorskip("triton", reason="Triton is not here (warpstack[triton] brings it)")

import triton.language as tl  # noqa: E402
import triton_kernels as kernels  # noqa: E402
from dlpack_tensor import Tensor  # noqa: E402

N = 2000


def blocks(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def singles(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def on_device(*shape, seed=1):
    return ws.cuda.array(singles(seed, *shape))


def told(trace):
    """What a trace says, but for the number of its launch."""
    time = ws.predict(trace, "a100", models=["closed_network"])["time_us"][0]
    return trace.grid, trace.block, trace.instructions.to_dict("list"), time


@pytest.mark.parametrize("grid", [8, (8,), (8, 1), blocks])
def test_a_launch_is_that_of_the_explicit_call(grid):
    x, out = on_device(N), ws.cuda.zeros(N)
    add = ws.triton(kernels.add)
    launches = x.device._launches
    trace = add[grid](x, x, out, n=N, BLOCK=256, num_warps=8, num_stages=2)
    assert x.device._launches == launches + 1
    np.testing.assert_array_equal(np.asarray(out), 2 * np.asarray(x))
    explicit = ws.triton.launch(
        kernels.add, grid, x, x, out, N, BLOCK=256, num_warps=8, num_stages=2
    )
    assert told(trace) == told(explicit)
    assert add.traces == [trace]
    assert (add.compiled.num_warps, add.compiled.num_stages) == (8, 2)
    assert (add.__name__, repr(add)) == (
        "add",
        "TritonFunction('add', gpu='a100', target='sm_80')",
    )
    kernel = add.warmup(x, x, out, N, BLOCK=256, num_warps=8, grid=grid)
    assert kernel.registers_per_thread > 0
    assert len(add.traces) == 1


def test_options_of_a_launch_or_of_all():
    x, out = on_device(64 * 512), ws.cuda.zeros(64 * 512)
    arguments = x, x, out, 64 * 512
    add = ws.triton(kernels.add, sample_blocks=4, order="time", gpu="h100-pcie")
    sampled = add[512](*arguments, BLOCK=64)
    assert sampled.num_missing_blocks > 0
    assert add[512](*arguments, BLOCK=64, sample_blocks=1).num_missing_blocks == 0
    assert add[512](*arguments, BLOCK=64, trace=False) is None
    assert len(add.traces) == 2
    assert add.target == add.compiled.target == "sm_90"
    assert ws.triton(kernels.add, gpu="h100-pcie", target="sm_80").target == "sm_80"
    one_call = ws.triton.launch(kernels.add, 512, *arguments, BLOCK=64, order="time")
    assert one_call.num_missing_blocks == 0
    for call in (
        ws.triton(kernels.add)[512],
        lambda *a, **o: ws.triton.launch(kernels.add, 512, *a, **o),
    ):
        with pytest.raises(ws.InputError, match="order = 'late' is not one of time, blocks"):
            call(*arguments, BLOCK=64, order="late")


@triton.jit
def ordered(x, order, trace: tl.constexpr):
    tl.store(x, order + trace)


def test_names_of_the_kernel_are_the_kernels():
    x = ws.cuda.zeros(1, np.int32)
    assert ws.triton(ordered)[1](x, order=5, trace=3) is not None
    assert np.asarray(x)[0] == 8


@triton.jit
def wait_for_the_last(flag, out, n):
    """The first program waits for the last one, which only "time" has run by then."""
    number = tl.program_id(0)
    if number == n - 1:
        tl.atomic_xchg(flag, 1)
    tl.store(out + number, number)


def test_both_orders_give_the_results():
    for order in ("time", "blocks", None):
        flag, out = ws.cuda.zeros(1, np.int32), ws.cuda.zeros(8, np.int32)
        ws.triton(wait_for_the_last)[8](flag, out, 8, order=order)
        assert np.asarray(out).tolist() == list(range(8))


# ---- autotuners ----------------------------------------------------------------------------------

#: What hooks and functions of autotuners were called with.
called = []


def note(arguments):
    called.append(arguments["BLOCK"])


def configs(*sizes, warps=(1, 4), **options):
    return [triton.Config({"BLOCK": b}, num_warps=w, **options) for b in sizes for w in warps]


def tuned(kernel, choices, **options):
    return triton.autotune(choices, key=["n"], **options)(kernel)


@pytest.fixture(autouse=True)
def nothing_called():
    called.clear()


def test_the_winner_is_the_fastest_by_prediction_and_is_kept():
    x, y, out = on_device(N), on_device(N, seed=2), ws.cuda.empty(N)
    kernel = tuned(kernels.add, configs(64, 256, 1024, pre_hook=note))
    add = ws.triton(kernel, gpu="h100-pcie")
    assert add.best_config is None
    trace = add[blocks](x, y, out, N)
    np.testing.assert_array_equal(np.asarray(out), np.asarray(x) + np.asarray(y))

    times = {}  # one after the other, by hand
    for config in kernel.configs:
        by_hand = ws.triton.launch(
            kernels.add, blocks, x, y, out, N, **config.all_kwargs(), gpu="h100-pcie"
        )
        row = ws.predict(by_hand, "h100-pcie", models=["closed_network"])
        times[config] = row["time_us"][0], told(by_hand)
    winner = min(times, key=lambda config: times[config][0])
    assert add.best_config == winner
    assert told(trace) == times[winner][1]
    assert add.tuning["time_us"].tolist() == sorted(time for time, _ in times.values())
    assert add.tuning.attrs == {}
    assert "simulated_time_us" not in add.tuning
    table = ws.triton.tune(kernel, blocks, (x, y, out, N), gpu="h100-pcie", simulator=False)
    assert table["time_us"].tolist() == add.tuning["time_us"].tolist()

    called.clear()
    add[blocks](x, y, out, N)
    assert called == [winner.kwargs["BLOCK"]]  # that of the launch: nothing was tried
    assert add.cache == {(N, *["float32"] * 3): winner}
    add[blocks](x, y, out, N - 1)  # another key
    assert len(called) == 1 + 6 + 1
    halves = ws.cuda.array(np.ones(N, np.float16))
    add[blocks](halves, halves, ws.cuda.empty(N, np.float16), N)  # other types
    assert len(add.cache) == 3
    assert len(add.traces) == 4
    assert {one.name for one in add.traces} == {"add"}


def test_one_configuration_is_not_compared():
    x = on_device(N)
    add = ws.triton(tuned(kernels.add, configs(64, warps=(2,), pre_hook=note)))
    add[blocks](x, x, x, N)
    assert (called, add.cache, add.tuning) == ([64], {}, None)
    assert add.best_config.kwargs == {"BLOCK": 64}


def early(choices, arguments, **rest):
    assert arguments["n"] == N
    assert arguments["x_ptr"].shape == (N,)
    assert {"grid", "warmup"} <= set(rest)
    return [one for one in choices if one.kwargs["BLOCK"] > 64]


def slow_if_large(x_ptr, y_ptr, out_ptr, n, BLOCK, num_warps, **_):
    called.append((BLOCK, num_warps))
    return BLOCK + num_warps


def test_functions_that_prune_are_called():
    x, out = on_device(N), ws.cuda.empty(N)
    kernel = tuned(
        kernels.add,
        configs(32, 64, 128, 256, 512),
        prune_configs_by={
            "early_config_prune": early,
            "perf_model": slow_if_large,
            "top_k": 3,
        },
    )
    add = ws.triton(kernel)
    add[blocks](x, x, out, N)
    assert sorted(called) == [(b, w) for b in (128, 256, 512) for w in (1, 4)]
    tried = sorted(zip(add.tuning["BLOCK"], add.tuning["num_warps"], strict=True))
    assert tried == [(128, 1), (128, 4), (256, 1)]
    table = ws.triton.tune(kernel, blocks, (x, x, out, N), simulator=False)
    assert sorted(zip(table["BLOCK"], table["num_warps"], strict=True)) == tried
    everything = ws.triton.tune(kernel, blocks, (x, x, out, N), kernel.configs, simulator=False)
    assert len(everything) == 10

    kernel = tuned(
        kernels.add, configs(64), prune_configs_by={"early_config_prune": lambda *_, **__: []}
    )
    with pytest.raises(
        ws.InputError, match=r"prune_configs_by fails: .*No valid autotuner configs"
    ):
        ws.triton(kernel)[blocks](x, x, out, N)


@triton.jit
def accumulate(x, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + i, mask=i < n, other=0.0)))
    tl.store(x + i, 0.0, mask=i < n)


@pytest.mark.parametrize("wrap", [ws.cuda.array, Tensor])
def test_arrays_are_reset_and_restored(wrap):
    """Each try would add up again, and find zeros where the first one has read."""
    x, total = np.ones(N, np.float32), np.full(1, 7, np.float32)
    kernel = tuned(accumulate, configs(64, 256), reset_to_zero=["total"], restore_value=["x"])
    function = ws.triton(kernel)
    given = wrap(x), wrap(total)
    function[blocks](*given, N)
    found = total if wrap is Tensor else np.asarray(given[1])
    assert found[0] == N  # reset once more after the tries, as in Triton
    assert not (x if wrap is Tensor else np.asarray(given[0])).any()
    if wrap is Tensor:
        x[:] = 1
    else:
        given[0].copy_from(x)
    function[blocks](*given, N)  # known: nothing is reset
    assert (total if wrap is Tensor else np.asarray(given[1]))[0] == 2 * N


def even(arguments):
    return arguments["n"] % arguments["BLOCK"] == 0


@triton.jit
def scaled(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, BY: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x + i, tl.load(x + i) * BY)
    else:
        tl.store(x + i, tl.load(x + i, mask=i < n) * BY, mask=i < n)


@pytest.mark.parametrize("n", [1024, 1000])
def test_heuristics_on_both_sides_of_the_autotuner(n):
    inner = triton.heuristics({"EVEN": even})(scaled)
    kernel = triton.heuristics({"BY": lambda given: given["x"].shape[0] // given["n"] + 1})(
        tuned(inner, configs(64, 256))
    )
    x = np.ones(n, np.float32)
    function = ws.triton(kernel)
    given = ws.cuda.array(x)
    function[blocks](given, n)
    assert (np.asarray(given) == 2).all()
    assert function.compiled._compiled.meta["EVEN"] == (
        n % function.best_config.kwargs["BLOCK"] == 0
    )
    table = ws.triton.tune(kernel, blocks, (given, n), simulator=False)
    assert (table["error"] == "").all()
    assert table.attrs["best_config"] == function.tuning["config"][0]

    broken = triton.heuristics({"EVEN": lambda given: given["m"]})(scaled)
    with pytest.raises(ws.InputError, match="the heuristics of EVEN fail: KeyError: 'm'"):
        ws.triton(broken)[1](given, n, BLOCK=64, BY=2)


def test_configurations_that_do_not_run_lose():
    x, out = on_device(256), ws.cuda.zeros(256)
    choices = [
        triton.Config({"BLOCK": block, "FAR": far})
        for block, far in ((512, 0), (64, 1 << 30), (64, 0))
    ]
    kernel = triton.autotune(choices, key=[])(kernels.picky)
    picky = ws.triton(kernel)
    picky[lambda meta: (256 // meta["BLOCK"],)](x, out)
    assert picky.best_config == choices[2]
    assert picky.tuning["error"].ne("").tolist() == [False, True, True]
    kernel = triton.autotune(choices[:2], key=[])(kernels.picky)
    with pytest.raises(ws.InputError, match=r"none of the configurations runs; triton\.Config"):
        ws.triton(kernel)[4](x, out)


def test_the_one_call_launch_chooses_too_and_remembers():
    x, out = on_device(N), ws.cuda.empty(N)
    kernel = tuned(kernels.add, configs(64, 256, pre_hook=note))
    first = ws.triton.launch(kernel, blocks, x, x, out, N)
    assert len(called) == 4 + 1
    assert told(ws.triton.launch(kernel, blocks, x, x, out, N)) == told(first)
    assert len(called) == 4 + 2
    ws.triton.launch(kernel, blocks, x, x, out, N, gpu="h100-pcie")  # another GPU
    assert len(called) == 4 + 2 + 5


# ---- several GPUs --------------------------------------------------------------------------------


def test_tune_for_several_gpus():
    """Its rows are those of one GPU after the other, and GPUs of one target share a run."""
    x, out = on_device(N), ws.cuda.array(np.full(N, 5, np.float32))
    small = ws.gpu("a100").replace(name="small", num_sms=2)
    kernel = tuned(kernels.add, configs(64, 256, pre_hook=note))
    gpus = ["t4", "a100", small]
    table = ws.triton.tune(kernel, blocks, (x, x, out, N), gpu=gpus)
    assert len(called) == 4 * 2  # for sm_75 and sm_80
    assert table.columns[0] == "gpu"
    assert table["gpu"].tolist() == [name for name in ("t4", "a100", "small") for _ in range(4)]
    assert (np.asarray(out) == 5).all()
    for gpu in gpus:
        alone = ws.triton.tune(kernel, blocks, (x, x, out, N), gpu=gpu)
        name = ws.gpu(gpu).name if isinstance(gpu, str) else gpu.name
        part = table[table["gpu"] == name].drop(columns="gpu").reset_index(drop=True)
        assert part.to_dict("list") == alone.to_dict("list")
        assert table.attrs["best_config"][name] == alone.attrs["best_config"]


def test_a_gpu_where_nothing_runs_has_no_winner():
    a = ws.cuda.array(np.ones((64, 64), np.float16))
    c = ws.cuda.empty((64, 64), np.float16)
    small = ws.gpu("a100").replace(name="small", shared_memory_kib_per_sm=16)
    table = ws.triton.tune(
        kernels.matmul,
        1,
        (a, a, c, 64, 64, 64),
        [{"BM": 64, "BN": 64, "BK": 64, "GROUP": 1}],
        ["a100", small],
        simulator=False,
    )
    assert table["error"].tolist() == ["", "does not fit small"]
    assert table.attrs["best_config"]["small"] is None
    assert table.attrs["best_config"]["a100"].startswith("triton.Config(")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: ws.triton(3),
            "ws.triton: kernel: expected a function decorated with @triton.jit",
        ),
        (lambda x: ws.triton(kernels.add)(x), r"add is called without a grid; write add\[grid\]"),
        (
            lambda x: ws.triton(tuned(kernels.add, configs(64)))[1](x, x, x, 64, BLOCK=32),
            "BLOCK = 32 is given, and the configurations of @triton.autotune set it; leave it out",
        ),
        (
            lambda x: ws.triton(kernels.add)[1](x, x, x, 64, BLOCK=64, wraps=3),
            "Keyword argument wraps was specified but unrecognised",
        ),
        (
            lambda x: ws.triton(tuned(tuned(kernels.add, configs(64)), configs(32))),
            "has @triton.autotune twice",
        ),
        (lambda x: ws.triton(kernels.add, gpu="gpumech-baseline"), "give target='sm_80'"),
        (lambda x: ws.triton.tune(kernels.add, 1, (x,), [{}], []), r"gpu = \[\]: there is none"),
        (
            lambda x: ws.triton.tune(kernels.add, 1, (x,), [{}], ["a100", "a100"]),
            "two are called a100",
        ),
        (lambda x: x.copy_(ws.cuda.zeros(3)), "copy_: got .* expected an array of 256 bytes"),
        (lambda x: x.stride(1), "stride: dim = 1: the array has 1 dimensions"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ws.InputError, match=message):
        call(ws.cuda.zeros(64))


def test_arrays_do_what_hooks_ask_of_tensors():
    x = ws.cuda.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = x.clone()
    assert x.zero_() is x
    assert not np.asarray(x).any()
    assert (np.asarray(x.copy_(y)) == np.arange(6).reshape(2, 3)).all()
    assert (x.stride(), x.stride(0), x.stride(-1)) == ((3, 1), 3, 1)


def test_what_is_made_of_a_kernel_is_one():
    @triton.heuristics({"BLOCK": lambda arguments: 32})
    @ws.triton
    @triton.jit
    def fill(x_ptr, BLOCK: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

    x = ws.cuda.zeros(32)
    fill[1](x)
    assert np.asarray(x).sum() == 32
    inner = fill.fn
    for function in (inner, ws.triton(inner)):
        x = ws.cuda.zeros(32)
        ws.triton.launch(function, 1, x, BLOCK=16)
        assert np.asarray(x).sum() == 16


def test_complex_numbers_are_refused():
    x = ws.cuda.zeros(32, np.complex64)
    with pytest.raises(ws.InputError, match="an array of complex64: Triton has no complex numbers"):
        ws.triton.launch(kernels.double, 1, x, 32, BLOCK=32)
