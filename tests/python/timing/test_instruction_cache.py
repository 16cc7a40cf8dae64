"""Code that the instruction cache of an SM does not hold: by hand, and against the plain definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timed_gpus import BLOCK_STARTS, assert_same, timed_gpus

import warpstack as ws
from configurations import simulator_config
from effort import rounds
from kernel_recipes import random_gpu, random_recipe, trace
from machines import plain_pascal
from python_reference.timing import Machine
from strategies import CODES, controlled_kernels, kernels

#: Instructions of a line of code, and what each takes in a chain.
PER_LINE, LATENCY = 8, 4
MODELS = ["interval_simulation", "closed_network"]


def chain(lines, warps=1, rounds=1, grid=1):
    """Return dependent instructions that fill so many lines of code, gone through `rounds` times."""
    builder = ws.patterns.KernelBuilder("chain", grid=grid, block=32 * warps)
    body = [builder.instruction("IADD3", dst=4, src=4) for _ in range(PER_LINE * lines)]
    for _ in range(rounds):
        for one in body:
            builder.issue(one)
    return builder.build()


def cycles(kernel, cache=4, **fields):
    """Return the cycles of a kernel by simulator and models with a cache of so many lines."""
    gpu = plain_pascal(
        num_sms=1,
        integer_latency=LATENCY,
        latency_counts="issue_to_issue",
        instruction_cache_kib=cache / 8,
        **{"instruction_fetch_cycles": 50, **fields},
    )
    return [ws.simulate(kernel, gpu).cycles, *ws.predict(kernel, gpu, MODELS)["cycles"]]


@pytest.mark.parametrize("changes", [{"cache": 0}, {"instruction_fetch_cycles": 0}, {"cache": 10}])
def test_code_that_fits_costs_nothing(changes):
    kernel = chain(10, warps=2, rounds=3)
    assert cycles(kernel, **changes) == cycles(kernel, cache=0)


@pytest.mark.parametrize(
    ("lines", "more", "fields", "expected"),
    [
        # A line is executed in 32 cycles and fetched meanwhile: 18 more for each of six.
        (10, {}, {}, 6 * 18),
        (10, {}, {"instruction_fetch_cycles": 80}, 6 * 48),
        # Fetched before they are needed.
        (10, {}, {"instruction_fetch_cycles": 32}, 0),
        # Of what the cache could hold, two lines are there.
        (10, {}, {"cache": 10, "instruction_preload_kib": 0.25}, 8 * 18),
        # The next times, too, where the code does not fit; nobody fetches the first line ahead.
        (10, {"rounds": 3}, {}, 26 * 18 + 2 * 32),
        (10, {"rounds": 3}, {"cache": 10, "instruction_preload_kib": 0.25}, 8 * 18),
        # Warps go through the code together.
        (10, {"warps": 4}, {"issue_width": 4, "schedulers_per_sm": 4}, 6 * 18),
        # Those of the next block come later.
        (10, {"grid": 2}, {"blocks_per_sm": 1}, 16 * 18),
    ],
)
def test_lines_beyond_the_cache_take_their_time(lines, more, fields, expected):
    kernel = chain(lines, **more)
    found = zip(cycles(kernel, **fields), cycles(kernel, **fields | {"cache": 0}), strict=True)
    for model, (with_cache, without) in zip(["simulate", *MODELS], found, strict=True):
        # Half a line is on its way when the walk ends or begins.
        assert with_cache - without == pytest.approx(expected, abs=70), model


def test_rtx_5090_is_what_was_measured():
    """1,024 dependent instructions more take 9,752 cycles on the card, once 64 KiB are full."""
    short, long = (chain(lines) for lines in (512, 640))
    gpu = ws.gpu("rtx5090")
    times = [
        [ws.simulate(kernel, gpu).cycles, *ws.predict(kernel, gpu, MODELS)["cycles"]]
        for kernel in (short, long)
    ]
    assert times[0] == pytest.approx([512 * PER_LINE * LATENCY] * 3, rel=0.01)
    for before, after in zip(*times, strict=True):
        assert after - before == pytest.approx(9752, rel=0.02)


def test_what_is_lost_counts_as_dep():
    kernel = chain(10)
    gpu = plain_pascal(num_sms=1, instruction_cache_kib=0.5, instruction_fetch_cycles=300)
    result = ws.simulate(kernel, gpu)
    assert result.cpi_stack["dep"] == pytest.approx(result.cycles / 80 - 1, rel=0.02)
    for model in ws.predict(kernel, gpu, MODELS).itertuples():
        assert model.cpi_dep == pytest.approx(model.cpi - 1, rel=0.02)


@pytest.mark.parametrize("seed", range(rounds(20)))
def test_more_of_the_code_never_takes_longer_by_the_model(seed):
    rng = np.random.default_rng([seed, 4711])
    kernel, gpu = trace(random_recipe(rng, size=300)), random_gpu(rng)
    times = [
        ws.predict(
            kernel,
            gpu.replace(instruction_cache_kib=kib, instruction_fetch_cycles=fetch),
            "closed_network",
        )["cycles"].sum()
        for kib, fetch in ((0, 0), (64, 90), (0.25, 30), (0.25, 90))
    ]
    assert times[0] == times[1] <= times[2] <= times[3]


@pytest.mark.slow
@settings(max_examples=rounds(40, costly=True))
@given(
    st.one_of(kernels(spread_code=True), kernels(max_instructions=30), controlled_kernels()),
    timed_gpus(),
    CODES,
)
def test_simulator_equals_plain_definition(kernel, gpu, code):
    gpu = gpu.replace(**code)
    plain = Machine(simulator_config(gpu)).run(kernel)
    assert_same(ws.simulate(kernel, gpu), plain)


@pytest.mark.slow
@settings(max_examples=rounds(40, costly=True))
@given(kernels(spread_code=True), BLOCK_STARTS, CODES)
def test_block_starts_equal_plain_definition(kernel, changes, code):
    gpu = plain_pascal(**changes, **code)
    plain = Machine(simulator_config(gpu)).run(kernel)
    assert_same(ws.simulate(kernel, gpu), plain)
