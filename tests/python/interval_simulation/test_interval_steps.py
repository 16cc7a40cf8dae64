"""The steps of interval simulation against their plain definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import simulator_config
from effort import rounds
from kernel_recipes import random_gpu, random_recipe, trace
from python_reference.interval_steps import steps
from strategies import CODES, controlled_kernels, copying_kernels, gpus, kernels
from warpstack import _core

LATENCIES = st.fixed_dictionaries(
    {
        "integer_latency": st.sampled_from([1, 4, 5.5, 30]),
        "fp32_latency": st.sampled_from([1, 4]),
        "sfu_latency": st.sampled_from([9, 60]),
        "fp64_interval": st.sampled_from([0, 1, 16]),
        "integer_interval": st.sampled_from([0, 1, 2]),
        "tensor_interval": st.sampled_from([0, 1, 8]),
        "tensor_f16_f32_rate": st.sampled_from([0, 0, 100, 2048]),
        "barrier_latency": st.sampled_from([0, 3, 20]),
        "issue_width": st.sampled_from([1, 1, 2, 4, 0.4, 1.5, 6]),
        "schedulers_per_sm": st.sampled_from([0, 1, 2]),
        "atomic_wait": st.sampled_from(["for_data", "until_done"]),
        "store_acknowledgement": st.sampled_from(["none", "awaited"]),
    }
)


def without_shadowed(made):
    """Return steps whose `carried` is 0 where the head before and `fresh` come later anyhow."""
    found, before = [], 0.0
    for one in made:
        shown = one["carried"] > before + one["fresh"] + 1e-4
        found.append({**one, "carried": one["carried"] if shown else 0.0})
        before = one["fresh"]
    return found


def assert_same_steps(kernel, gpu):
    config = simulator_config(gpu)
    for block, (_, warps) in enumerate(kernel.blocks()):
        for warp in range(len(warps)):
            found = _core.interval_simulation_steps(kernel._core, gpu._core, block, warp)
            expected = steps(kernel, config, block, warp)
            for one, plain in zip(without_shadowed(found), without_shadowed(expected), strict=True):
                for name in ("fresh", "carried", "uses"):
                    assert one.pop(name) == pytest.approx(plain.pop(name), rel=1e-5, abs=1e-5), name
                assert one == plain


@settings(max_examples=rounds(300))
@given(st.one_of(kernels(max_instructions=24), copying_kernels()), gpus(), LATENCIES)
def test_equal_plain_definition(kernel, gpu, changes):
    assert_same_steps(kernel, gpu.replace(**changes))


@settings(max_examples=rounds(100))
@given(
    st.one_of(kernels(max_instructions=24, spread_code=True), controlled_kernels()),
    gpus(),
    LATENCIES,
    CODES,
)
def test_with_code_that_does_not_fit_equal_plain_definition(kernel, gpu, changes, code):
    assert_same_steps(kernel, gpu.replace(**changes, **code))


@settings(max_examples=rounds(200))
@given(controlled_kernels(), gpus(), LATENCIES)
def test_of_control_fields_equal_plain_definition(kernel, gpu, changes):
    assert_same_steps(kernel, gpu.replace(**changes))


@pytest.mark.parametrize("seed", range(rounds(30)))
def test_of_random_recipes_equal_plain_definition(seed):
    rng = np.random.default_rng([seed, 71])
    recipe = replace(random_recipe(rng, size=400), uneven="")
    assert_same_steps(trace(replace(recipe, blocks=1)), random_gpu(rng))
