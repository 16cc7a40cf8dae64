"""A reason is the change of the GPU that gains most: one definition, whoever asks."""

import math

import pandas as pd
import pytest

import random_cases as rc
import warpstack as ws
from effort import rounds
from warpstack.models.reasons.resources import CHANGES, changed_fields, changed_gpus
from warpstack.models.reasons.words import LEAST_GAIN, reason_of_sum, sentence

#: What equations may say of a GPU that is better, and yet a bit slower.
SLOWER = 0.001


def table_of(app, gpu, models=("closed_network",), **how):
    """Return the speed-ups by model and change, in the words of the reasons."""
    found = ws.validation.what_if(app, gpu, models, simulate=False, **how)
    found = found[found["change"] != "baseline"]
    words = [CHANGES[change].words for change in found["change"]]
    return found.assign(words=words).set_index(["model", "words"])["speedup"]


def transpose(n=512, tile=16):
    """Return a transpose that stores columns: each lane of a warp in a line of its own."""
    k = ws.patterns.KernelBuilder("transpose", grid=(n // tile) ** 2, block=tile * tile)
    x = k.thread % n
    y = k.thread // n
    k.emit("LDG.E", dst=8, src=2, address=(1 << 30) + 4 * (y * n + x))
    k.emit("STG.E", src=8, address=(1 << 31) + 4 * (x * n + y))
    k.emit("EXIT")
    return k.build()


KERNELS = {
    "stream": lambda: ws.patterns.stream(loads=4, blocks=112, warps_per_block=4),
    "strided": lambda: ws.patterns.strided(gs=32, iterations=2, blocks=28),
    "transpose": transpose,
}


class TestOneDefinition:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("gpu", ["pascal-mdm", "a100", "rtx2060"])
    @pytest.mark.parametrize("model", ["closed_network", "mdm", "gpumech"])
    def test_a_kernel(self, name, gpu, model):
        kernel = KERNELS[name]()
        (row,) = ws.predict(kernel, gpu, model).to_dict("records")
        gains = table_of(kernel, gpu, (model,))[model]
        assert row["gain"] == pytest.approx(max(gains.max(), 1.0), rel=1e-9)
        if row["reason"]:
            assert gains[row["reason"]] == pytest.approx(row["gain"], rel=1e-9)
        else:
            assert row["gain"] == 1

    @pytest.mark.parametrize("number", range(rounds(60)))
    def test_random_kernels(self, number):
        """The change that is named is the best of all, caches included, of launches that share an L2."""
        case = rc.random_case(31, number)
        app, gpu = case.app(), case.on()
        rows = ws.predict(app, gpu)
        (base, *_) = ws.validation.what_if(app, gpu, simulate=False)["cycles"]
        assert base == pytest.approx(rows["cycles"].sum())
        if len(app) == 1:
            gains = table_of(app, gpu)["closed_network"]
            assert rows["gain"][0] == pytest.approx(max(gains.max(), 1.0), rel=1e-9)


class TestChanges:
    @pytest.mark.parametrize("name", ws.gpus())
    def test_each_doubles_or_halves_what_it_names(self, name):
        """Whole cycles are rounded up, so that no more than half is taken away."""
        gpu = ws.gpu(name)
        changed = changed_gpus(gpu)
        always = {"2 x SMs", "2 x NoC", "2 x MSHRs", "2 x DRAM bandwidth", "2 x L2 slice requests"}
        assert always <= set(changed)
        for change, one in changed.items():
            fields = changed_fields(gpu, one, change)
            assert fields
            for field, new in fields.items():
                old = getattr(gpu, field)
                if field == "shared_memory_carve_outs_kib":
                    assert list(new) == [2 * size for size in old]
                elif field == "dram_channels":
                    assert (old, new) == (0, gpu.l2_slices)
                elif field in CHANGES[change].more:
                    assert new == 2 * old
                elif field == "l2_slice_request_cycles":  # at least 1
                    assert new == max(old / 2, 1)
                elif isinstance(old, int):
                    assert new == math.ceil(old / 2)
                else:
                    assert new == old / 2

    def test_no_field_belongs_to_two_resources(self):
        fields = [f for change in CHANGES.values() for f in (*change.more, *change.less)]
        assert len(fields) == len(set(fields))

    def test_the_range_of_a_field_ends_a_change(self):
        """The way to L2 is not shorter than that to L1, and 2^20 MSHRs are the most that there can be."""
        gpu = ws.gpu("pascal-mdm").replace(l1_latency=80, l1_mshrs=1 << 20)
        changed = changed_gpus(gpu)
        assert changed["L2 latency / 2"].l2_latency == 80
        assert changed["2 x MSHRs"].l1_mshrs == 1 << 20

    def test_twice_the_slices_keep_their_channels(self):
        gpu = ws.gpu("pascal-mdm")
        assert gpu.dram_channels == 0
        changed = changed_gpus(gpu)["2 x L2 slice requests"]
        assert (changed.l2_slices, changed.dram_channels) == (2 * gpu.l2_slices, gpu.l2_slices)
