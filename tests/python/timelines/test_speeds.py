"""Kernels of a time line that delay each other, against a plain form and closed forms."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack import _core


def customers(demand, think, *, shared=True, warps=4.0):
    """Return warps that only visit DRAM, or only the load-store unit."""
    visits = [_core.Visit(0, 0, 0, 0, 0, 1, 1)] * 10
    visits[9 if shared else 3] = _core.Visit(demand, 0, demand, 0.5, demand / 0.5, 1, 1)
    return _core.CustomerClass(warps, think, visits, 0.0, 0.0, 0.0, 0.0)


def columns_of(kernels):
    """Return the columns of kernels that are all ready at time 0: (duration, blocks, places, class)."""
    count = len(kernels)
    duration, blocks, places, of_class = (np.array(values) for values in zip(*kernels, strict=True))
    nothing = np.zeros(count)
    lists = {
        f"{name}_{part}": np.zeros(count + 1 if part == "first" else 0, kind)
        for name in ("after", "waits", "begins")
        for part, kind in (("first", np.int64), ("rows", np.int32))
    }
    return {
        "thread": np.full(count, -1, np.int32),
        **dict.fromkeys(("host_before", "host_call", "host_return", "delay", "gap"), nothing),
        "engine": np.full(count, _core.TIMELINE_ENGINES.index("kernels"), np.uint8),
        "has_device": np.ones(count, np.uint8),
        "duration": duration.astype(float),
        "blocks": blocks.astype(float),
        "places": places.astype(float),
        "kernel_class": of_class.astype(np.int32),
        "priority": np.zeros(count, np.int32),
        "connection": np.full(count, -1, np.int32),
        "on_link": np.zeros(count, np.uint8),
        "trigger": np.ones(count),
        "wait": np.ones(count),
        "after_early": np.zeros(len(lists["after_rows"]), np.uint8),
        **lists,
    }


def plain(kernels, speeds):
    """Return starts and ends: places as shares of the GPU, the first kernel first; work as time alone."""
    left = [blocks for _, blocks, _, _ in kernels]
    start, end = [None] * len(kernels), [None] * len(kernels)
    running, now = [], 0.0  # [kernel, blocks, work left]
    while None in end:
        for k, (duration, blocks, places, _) in enumerate(kernels):
            if not left[k]:
                continue
            free = 1 - sum(count / kernels[j][2] for j, count, _ in running)
            taken = min(left[k], math.floor(free * places + 1e-6))
            if taken < 1:
                break
            waves = 1
            if left[k] > taken:
                waves = left[k] // places if taken >= places else max(1, left[k] // places // 2)
            left[k] -= taken * waves
            start[k] = now if start[k] is None else start[k]
            running.append([k, taken, duration * waves / math.ceil(blocks / places)])
            if left[k]:
                break
        now_running = sorted({k for k, *_ in running})
        asked = []
        for k in now_running:
            count = sum(of for j, of, _ in running if j == k)
            alone = min(kernels[k][1], kernels[k][2]) if left[k] else count
            asked.append((kernels[k][3], count, alone))
        found = speeds.of(asked) if len(asked) > 1 else [1.0]
        speed = dict(zip(now_running, found, strict=True))
        passed = min(work / speed[k] for k, _, work in running)
        now += passed
        for one in running:
            one[2] -= passed * speed[one[0]]
        ended = {k for k, _, work in running if work <= 1e-9}
        running = [one for one in running if one[2] > 1e-9]
        for k in ended:
            if not left[k] and all(one[0] != k for one in running):
                end[k] = now
    return start, end


@pytest.mark.parametrize("seed", range(30))
def test_equals_its_plain_form(seed):
    rng = np.random.default_rng([7301, seed])
    classes = [
        None
        if rng.random() < 0.2
        else (customers(rng.uniform(0, 4), rng.uniform(10, 200), shared=s), rng.uniform(0.2, 1))
        for s in rng.random(3) < 0.5
    ]
    gpu = ws.gpu("pascal-mdm")
    kernels = [
        (
            float(rng.integers(1, 50)),
            int(rng.integers(1, 400)),
            int(rng.integers(1, 9)) * gpu.num_sms,
            int(rng.integers(-1, 3)),
        )
        for _ in range(rng.integers(1, 6))
    ]
    speeds = _core.KernelSpeeds(classes, gpu._core)
    made = _core.play_operations(columns_of(kernels), 128, False, speeds)
    start, end = plain(kernels, speeds)
    assert made["start"] == pytest.approx(start)
    assert made["end"] == pytest.approx(end)


def test_speeds():
    gpu = ws.gpu("pascal-mdm")
    full, light = customers(4.0, 50), customers(0.0, 50)
    speeds = _core.KernelSpeeds([(full, 1.0), (light, 1.0), None, (full, 0.25)], gpu._core)
    places = 8.0 * gpu.num_sms
    half = places / 2
    # Two that fill DRAM have half of it each; who visits nothing is not delayed, nor who is not known.
    both = speeds.of([(0, half, half), (0, half, half)])
    assert both == pytest.approx([0.5, 0.5], rel=0.05)
    assert speeds.of([(0, half, half), (1, half, half)]) == pytest.approx([1, 1])
    assert speeds.of([(0, half, half), (2, half, half)]) == pytest.approx([1, 1])
    # A quarter of the time is twice as long.
    assert speeds.of([(3, half, half), (3, half, half)]) == pytest.approx([1 / 1.25] * 2, rel=0.02)
    # Who has half of its places has its work done as fast: each of its blocks goes twice as fast.
    assert speeds.of([(0, half, places), (1, half, half)])[0] == pytest.approx(2, rel=0.05)


def test_classes_are_pickled():
    one = customers(1.5, 20)
    other = pickle.loads(pickle.dumps(one))
    values = [(v.demand, v.busy, v.count, v.service) for v in other.visits]
    assert values == [(v.demand, v.busy, v.count, v.service) for v in one.visits]
    assert (other.think, other.warps_per_block) == (20, 4)


def test_kernels_that_fill_dram_take_turns():
    kernel = ws.patterns.strided(gs=32, iterations=8, blocks=216)
    alone = ws.timeline(ws.App([kernel]), "a100").table["end_us"].iloc[0]
    operations = pd.DataFrame({"operation": ["kernel"] * 2, "stream": [1, 2], "kernel": [0, 1]})
    both = ws.timeline(ws.App([kernel] * 2), "a100", operations=operations)
    first, second = both.table["end_us"]
    (time,) = {ws.predict(kernel, "a100", profiler="nsys")["time_us"][0]}
    took = both.table["end_us"] - both.table["start_us"]
    assert took.max() > 1.2 * time
    assert max(first, second) < alone + 1.1 * time
    assert pickle.loads(pickle.dumps(both)) == both
