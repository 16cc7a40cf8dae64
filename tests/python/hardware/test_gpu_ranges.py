"""Any GPU that is accepted gives numbers, or one clear error, in reasonable time."""

from __future__ import annotations

import math
import os
import random
import time
import warnings
from typing import Any

import numpy as np
import pytest

import warpstack as ws
from effort import rounds
from time_limit import TooSlow, time_limit
from warpstack._core import GPU_FIELDS

CHOICE = os.environ.get("WARPSTACK_RANGES", "")
#: Random GPUs of the default run; ``WARPSTACK_RANGES=N`` tries N, of a fresh seed that is printed.
COUNT = int(CHOICE) if CHOICE.isdigit() else rounds(60)
LIMIT = 30

FIELDS = {field.name: field for field in GPU_FIELDS}
NUMBERS = [name for name, f in FIELDS.items() if f.kind in ("whole", "number")]
CHOICES = [name for name, f in FIELDS.items() if f.choices]


@pytest.fixture(scope="module")
def kernels():
    k = ws.patterns.KernelBuilder("mixed", grid=3, block=64)
    k.emit("LDG.E", dst=1, src=2, address=np.arange(192).reshape(3, 64) * 128)
    k.emit("FFMA", dst=3, src=[1, 1])
    k.emit("DFMA", dst=4, src=[3, 3])
    k.emit("BAR.SYNC")
    k.emit("STG.E", src=[2, 4], address=np.arange(192).reshape(3, 64) * 4)
    k.emit("EXIT")
    return [ws.patterns.strided(gs=32, iterations=2, blocks=4, warps_per_block=2), k.build()]


@pytest.fixture(scope="module")
def base():
    # With rows, the times between the commands of DRAM mean something.
    return ws.gpu("gpumech-baseline").replace(num_sms=2, l2_size_kib=96, dram_row_bytes=2048)


def corners(field: str) -> list[float]:
    """Return the ends of the range of a field, and what has a meaning of its own."""
    limits = FIELDS[field]
    least, most = limits.least, limits.most
    found = [least, most, *([0] if limits.or_zero else [])]
    if FIELDS[field].kind == "number" and least == 0:
        found.append(1e-6)
    return found


def changed(base: ws.Gpu, changes: dict[str, Any]) -> ws.Gpu | None:
    """Return the GPU with changes, made to fit together where that is simple; None if it is not."""
    values = {**base.values(), **changes}
    for level, slices in (("l1", 1), ("l2", values["l2_slices"])):
        line = max(32, min(256, values[f"{level}_line_bytes"] // 32 * 32))
        values[f"{level}_line_bytes"] = line
        sector = values[f"{level}_sector_bytes"]
        values[f"{level}_sector_bytes"] = sector if line % sector == 0 else line
        unit = line * values[f"{level}_ways"] * slices / 1024
        sets = max(1, round(values[f"{level}_size_kib"] / unit))
        values[f"{level}_size_kib"] = sets * unit
        ways = values[f"{level}_ways"]
        if values[f"{level}_replacement"] == "plru" and ways & (ways - 1):
            values[f"{level}_replacement"] = "lru"
    interleave = values["l2_slice_interleave_bytes"]
    values["l2_slice_interleave_bytes"] = (
        max(1, interleave // values["l2_line_bytes"]) * values["l2_line_bytes"]
    )
    if values["dram_channels"] and values["l2_slices"] % values["dram_channels"]:
        values["dram_channels"] = 0
    if values["l1_latency_place"] == "before_tags":
        values["l2_latency"] = max(values["l2_latency"], math.ceil(values["l1_latency"]))
    if values["dram_banks"] % values["dram_interleaved_banks"]:
        values["dram_banks"] = values["dram_interleaved_banks"]
    if values["dram_trefi"]:
        times = [values[f"dram_{name}"] for name in ("trcd", "trfc", "tras", "trp", "trrd")]
        values["dram_trefi"] = max(values["dram_trefi"], min(sum(times) + 1, 1 << 20))
    if bool(values["unified_l1_kib"]) != bool(values["shared_memory_carve_outs_kib"]):
        values["unified_l1_kib"], values["shared_memory_carve_outs_kib"] = 0, ()
    try:
        return ws.Gpu(name="corner", **values)
    except ws.InputError as error:
        assert_one_line(error)
        return None


def assert_one_line(error: Exception) -> None:
    if "is not done after max_cycles" in str(error):  # says what each warp waits for
        return
    assert "\n" not in str(error)
    assert len(str(error)) < 1000


def outcome(what: str, call: Any) -> str | None:
    """Return what is wrong with the results, None if nothing."""
    start = time.process_time()
    try:
        with time_limit(LIMIT):
            table = call()
    except ws.InputError as error:
        assert_one_line(error)
        return None
    except TooSlow:
        return f"{what}: takes more than {LIMIT} s"
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    finally:
        if CHOICE and time.process_time() - start > 3:
            print(f"{what}: {time.process_time() - start:.1f} s")
    for column in table.select_dtypes("number").columns:
        values = table[column].to_numpy()
        if column == "gain":  # none is tried by interval simulation
            values = values[(table["reason"] != "").to_numpy() | np.isfinite(values)]
        if not np.isfinite(values).all() or (values < 0).any():
            return f"{what}: {column} = {values}"
    for column in ("cycles", "ipc", "cpi"):
        if not (table[column] > 0).all():
            return f"{what}: {column} = {table[column].to_numpy()}"
    return None


def problems_of(gpu: ws.Gpu, kernels: list[ws.KernelTrace]) -> list[str]:
    app = ws.App(kernels)
    calls = {
        "models": lambda: ws.predict(app, gpu, "all"),
        "greedy": lambda: ws.predict(app, gpu, "mdm", access_order="greedy"),
        "simulate": lambda: ws.timing.as_table(ws.simulate(app, gpu, max_cycles=10**6)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = [outcome(what, call) for what, call in calls.items()]
    return [text for text in found if text]


@pytest.mark.slow
@pytest.mark.parametrize("field", NUMBERS)
def test_ends_of_the_range_of_a_field(field, base, kernels):
    for value in corners(field):
        gpu = changed(base, {field: value})
        if gpu is not None:
            assert not problems_of(gpu, kernels), (field, value)


@pytest.mark.slow
def test_random_corners(base, kernels):
    seed = random.SystemRandom().randrange(2**32)
    problems = []
    for i in range(COUNT):
        rng = random.Random(f"{seed} {i}")
        fields = rng.sample(NUMBERS, rng.choice([2, 3, 5, 10, len(NUMBERS)]))
        changes: dict[str, Any] = {}
        for field in fields:
            least, most = corners(field)[:2]
            if rng.random() < 0.6:
                changes[field] = rng.choice(corners(field))
            else:
                low = math.log(max(least, 1e-6))
                value = math.exp(rng.uniform(low, math.log(most)))
                changes[field] = int(value) if FIELDS[field].kind == "whole" else value
        changes |= {field: rng.choice(FIELDS[field].choices) for field in CHOICES}
        gpu = changed(base, changes)
        if gpu is not None:
            found = problems_of(gpu, kernels)
            different = {k: v for k, v in gpu.values().items() if v != getattr(base, k)}
            problems += [f"{text}; {different}" for text in found]
    assert not problems, f"seed {seed}: {len(problems)} of them:\n" + "\n".join(problems)


@pytest.mark.parametrize("field", NUMBERS)
def test_values_outside_the_range_are_refused(field, base):
    limits = FIELDS[field]
    wrong = [float("nan"), float("inf"), -float("inf"), 1e300, 2**70, 10**400, -1, True, "x", None]
    wrong += [limits.most * 1.001 + 1, limits.least - 1e-4]
    if FIELDS[field].kind == "number":
        wrong += [1e-300, 5e-324, -1e-300]
    for value in wrong:
        with pytest.raises(ws.InputError, match=f"GPU {base.name}: {field} = ") as caught:
            base.replace(**{field: value})
        assert_one_line(caught.value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            assert "the range is" in str(caught.value)


def test_negative_zero_is_zero(base):
    with_zeros = base.replace(dram_latency=-0.0, l2_clock_ghz=np.float64(-0.0))
    assert with_zeros.digest == base.replace(dram_latency=0, l2_clock_ghz=0).digest


def test_ranges_are_documented():
    assert list(ws.Gpu.ranges()) == list(ws.Gpu.fields())
    assert ws.Gpu.ranges()["clock_ghz"] == "0.001 to 1000 GHz"
    assert ws.Gpu.ranges()["l2_clock_ghz"] == "0, or 0.001 to 1000 GHz"
    assert ws.Gpu.ranges()["scheduler"] == "gto, lrr, oldest, gty"
