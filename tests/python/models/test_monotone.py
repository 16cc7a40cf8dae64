"""More work never takes less time, nor do more SMs take more, as far as `docs/quality/limits.md` says.

Random kernels with a new seed in each run; a failure says the case that makes the pair again.
`studies/monotone.py` counts how far the laws hold where caches and unequal warps have their say.
"""

import secrets
from dataclasses import replace

import numpy as np
import pytest

import kernel_recipes as rk
import warpstack as ws
from effort import rounds

ROUNDING = 1e-7


def predicted(recipe, gpu):
    """Return the cycles of the closed network model, and what the caches did."""
    kernel = rk.trace(recipe)
    memory = ws.simulate_caches(kernel, gpu)
    profile = ws.interval_profile(kernel, gpu, memory)
    rows = (kernel.instructions["op_class"] == "memory").to_numpy()
    seen = {
        name: np.asarray(counts)[rows].tolist() for name, counts in memory._core.per_row.items()
    }
    for name in (
        "totals",
        "slice_turns",
        "slice_crowding",
        "slice_dram_sectors",
        "place_wait_cycles",
        "most_read_sectors",
    ):
        seen[name] = getattr(memory._core, name)
    return ws.models.evaluate(profile, gpu, "closed_network").cycles, seen


def pairs(change, count):
    """Yield (case, seconds before, seconds after) of pairs with the same misses and waits."""
    seed, found = secrets.randbits(32), 0
    for number in range(8 * count):
        rng = np.random.default_rng([seed, number])
        recipe = rk.random_recipe(rng, 1500)
        # All warps are alike.
        recipe = replace(recipe, uneven="", block=-(-recipe.block // 32) * 32)
        before, after = change(rng, recipe, rk.random_gpu(rng))
        try:
            (first, seen), (second, seen_after) = predicted(*before), predicted(*after)
        except ws.InputError:  # a block that does not fit on an SM
            continue
        if seen == seen_after:
            found += 1
            yield f"seed {seed}, number {number}: {recipe} on {before[1].name}", first, second
        if found == count:
            return


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["independent", "dependent"])
def test_more_arithmetic_at_the_end_is_never_faster(kind):
    """All warps do the same, and then up to 32 FFMAs more."""

    def change(rng, recipe, gpu):
        more = rk.Step(kind, 100, int(rng.integers(1, 33)))
        return (recipe, gpu), (replace(recipe, tail=(more,)), gpu)

    count = rounds(150)
    found = list(pairs(change, count))
    assert len(found) >= count / 2
    for case, before, after in found:
        assert after >= before * (1 - ROUNDING), case


@pytest.mark.slow
def test_sms_that_get_no_block_change_nothing():
    """Each block has an SM to itself, and there are SMs without one."""

    def change(rng, recipe, gpu):
        blocks = min(recipe.blocks, 40)
        recipe = replace(recipe, blocks=blocks)
        gpu = gpu.replace(
            num_sms=blocks + int(rng.integers(0, 20)), block_interval_cycles=0, warp_start_cycles=0
        )
        more = gpu.replace(num_sms=gpu.num_sms + int(rng.integers(1, 40)))
        return (recipe, gpu), (recipe, more)

    count = rounds(150)
    found = list(pairs(change, count))
    assert len(found) >= count / 2
    for case, before, after in found:
        assert after == pytest.approx(before, rel=ROUNDING), case
