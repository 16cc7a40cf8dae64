"""Interval simulation of random kernels against its plain definition."""

from dataclasses import replace

import numpy as np
import pytest

from configurations import simulator_config
from effort import rounds
from kernel_recipes import random_gpu, random_recipe, trace
from python_reference.interval_simulation import Machine
from time_limit import time_limit
from warpstack import _core


def fitting(recipe):
    """Return the recipe with blocks that fit on an SM of any GPU."""
    return replace(recipe, shared=min(recipe.shared, 8192), registers=min(recipe.registers, 32))


def comparable(gpu):
    """Return the GPU without what the plain definition leaves out, with a long queue to the NoC."""
    long = {"noc_queue_entries": 4096} if gpu.noc_queue_entries else {}
    # Without rows of DRAM; the table of polynomials of the plain caches is short.
    indexing = dict.fromkeys(("l1_set_index", "l2_set_index", "l2_slice_index"), "xor")
    return gpu.replace(
        **long,
        **indexing,
        dram_row_bytes=0,
        l1_miss_queue_entries=4096,
        lsu_queue_entries=1,
        num_sms=min(gpu.num_sms, 4),
    )


@pytest.mark.parametrize("seed", range(rounds(60)))
def test_equals_plain_definition(seed):
    rng = np.random.default_rng([seed, 99])
    kernel, gpu = trace(fitting(random_recipe(rng, size=300))), comparable(random_gpu(rng))
    written = float(rng.choice([0, 0.4, 1]))
    result = _core.IntervalSimulator(gpu._core, 1, written).run(kernel._core)
    plain = Machine(simulator_config(gpu, written)).run(kernel)
    assert result.instructions == plain["instructions"]
    # Within one cycle, the two may take events in another order.
    assert result.cycles == pytest.approx(plain["cycles"], rel=0.005, abs=2)
    assert result.sm_cycles == pytest.approx(plain["sm_cycles"], rel=0.005, abs=4)
    for name, value in result.totals.items():
        if not name.endswith("_instructions"):
            assert value == plain["totals"][name], name


@pytest.mark.parametrize("seed", range(rounds(30)))
def test_with_code_that_does_not_fit_equals_plain_definition(seed):
    rng = np.random.default_rng([seed, 98])
    kernel, gpu = trace(fitting(random_recipe(rng, size=300))), comparable(random_gpu(rng))
    gpu = gpu.replace(
        instruction_cache_kib=float(rng.choice([0.125, 0.25, 0.5])),
        instruction_preload_kib=0.125,
        instruction_fetch_cycles=int(rng.choice([1, 13, 120])),
    )
    result = _core.IntervalSimulator(gpu._core, 1, 0.0).run(kernel._core)
    plain = Machine(simulator_config(gpu)).run(kernel)
    assert result.instructions == plain["instructions"]
    # Within one cycle, warps may come to their code in another order.
    assert result.cycles == pytest.approx(plain["cycles"], rel=0.005, abs=10)
    for name, value in result.totals.items():
        if name.startswith("l1_") and name.endswith("_requests"):
            assert value == plain["totals"][name], name


EXTREMES = {
    "l1_mshrs": 1,
    "l1_mshr_targets": 1,
    "l1_miss_queue_entries": 1,
    "lsu_queue_entries": 1,
    "l2_mshrs": 1,
    "l2_mshr_targets": 1,
    "l2_queue_entries": 1,
    "dram_queue_entries": 1,
    "num_sms": 1,
    "noc_bandwidth_gbs": 5,
    "dram_bandwidth_gbs": 5,
}


@pytest.mark.parametrize("seed", range(rounds(40)))
def test_extreme_gpus_serve_all(seed):
    """A warp that is left, or waits for ever, is an error or takes too long."""
    rng = np.random.default_rng([seed, 17])
    recipe, gpu = fitting(random_recipe(rng, size=1500)), random_gpu(rng)
    kept = {name: value for name, value in EXTREMES.items() if rng.random() < 0.6}
    if gpu.noc_queue_entries:
        kept["noc_queue_entries"] = 1
    kernel = trace(recipe)
    with time_limit(60):
        result = _core.IntervalSimulator(gpu.replace(**kept)._core).run(kernel._core)
    assert result.instructions == kernel.num_instructions
    assert result.cycles > 0
    assert result.sm_cycles <= result.cycles * result.active_sms
