"""A reason is the change of the GPU that gains most: one definition, whoever asks."""

import math

import pytest

import random_cases as rc
import warpstack as ws
from effort import rounds
from warpstack.models.pipeline import Found, Pipeline
from warpstack.models.prediction import prediction_of
from warpstack.models.reasons.bounds import bounding_gpu
from warpstack.models.reasons.pairs import best_pair
from warpstack.models.reasons.resources import CHANGES, changed_fields, changed_gpus
from warpstack.models.reasons.words import LEAST_GAIN, reason_of_sum, sentence


def table_of(app, gpu, models=("closed_network",), **how):
    """Return the speed-ups by model and change, in the words of the reasons."""
    found = ws.validation.what_if(app, gpu, models, simulate=False, **how)
    found = found[found["change"] != "baseline"]
    words = [
        " and ".join(CHANGES[one].words for one in change.split(" + "))
        for change in found["change"]
    ]
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


#: Tried by `predict` only where a larger L1 gains something.
WAYS = CHANGES["2 x L1 ways"].words


class TestOneDefinition:
    @pytest.mark.parametrize("name", KERNELS)
    @pytest.mark.parametrize("gpu", ["pascal-mdm", "a100", "rtx2060"])
    @pytest.mark.parametrize("model", ["closed_network", "mdm", "gpumech"])
    def test_a_kernel(self, name, gpu, model):
        kernel = KERNELS[name]()
        (row,) = ws.predict(kernel, gpu, model).to_dict("records")
        gains = table_of(kernel, gpu, (model,))[model]
        if row["reason"] != WAYS:
            best = gains.drop(WAYS, errors="ignore").max()
            assert row["gain"] == pytest.approx(max(best, 1.0), rel=1e-9)
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
            if rows["reason"][0] != WAYS:
                best = gains.drop(WAYS, errors="ignore").max()
                assert rows["gain"][0] == pytest.approx(max(best, 1.0), rel=1e-9)


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


def test_a_transpose_is_held_up_by_the_slices():
    """Its stack names the NoC, but the slices behind it serve a request for each lane that stores."""
    (row,) = ws.predict(transpose(), "a100").to_dict("records")
    assert row["reason"] == CHANGES["2 x L2 slice requests"].words
    assert max((n for n in row if n.startswith("cpi_")), key=lambda n: row[n]) == "cpi_noc"
    said = sentence(row["reason"], row["gain"], "noc")
    assert said.startswith(f"twice the requests per slice of L2 at once: {row['gain']:.2f} times")
    assert "the stack's largest part is noc" in said
    gains = table_of(transpose(), "a100")["closed_network"]
    assert gains[CHANGES["2 x NoC"].words] == pytest.approx(1, abs=0.03)


class TestPairs:
    @staticmethod
    def gpu(share):
        """Return a GPU whose NoC has this share of its DRAM's bandwidth."""
        gpu = ws.gpu("pascal-mdm")
        return gpu.replace(noc_bandwidth_gbs=share * gpu.dram_bandwidth_gbs, dram_row_bytes=0)

    kernel = staticmethod(lambda: ws.patterns.stream(loads=4, blocks=1120, warps_per_block=8))

    def test_resources_that_are_equally_busy_are_named_together(self):
        """Reads alone keep the reply network at two thirds of DRAM's bandwidth as busy as DRAM."""
        kernel, gpu = self.kernel(), self.gpu(0.68)
        (row,) = ws.predict(kernel, gpu).to_dict("records")
        words = [CHANGES[name].words for name in ("2 x DRAM bandwidth", "2 x NoC")]
        assert row["reason"] == " and ".join(words)
        gains = table_of(kernel, gpu)["closed_network"]
        assert gains[row["reason"]] == pytest.approx(row["gain"], rel=1e-9)
        assert row["gain"] > 1.8
        assert gains.drop(row["reason"]).max() < 1.05
        assert sentence(row["reason"], row["gain"], "noc").endswith(
            f"{row['gain']:.2f} times faster, but neither alone gains more than 5 %"
        )
        changed = gpu.replace(
            dram_bandwidth_gbs=2 * gpu.dram_bandwidth_gbs,
            noc_bandwidth_gbs=2 * gpu.noc_bandwidth_gbs,
            noc_sm_bytes_per_cycle=2 * gpu.noc_sm_bytes_per_cycle,
        )
        alone = ws.predict(kernel, changed)["cycles"][0]
        assert row["cycles"] / alone == pytest.approx(row["gain"], rel=0.05)

    def test_the_simulator_agrees(self):
        table = ws.validation.what_if(self.kernel(), self.gpu(0.68))
        pair = table[table["change"] == "2 x DRAM bandwidth + 2 x NoC"].set_index("model")[
            "speedup"
        ]
        assert set(pair.index) == {"closed_network", "simulation"}
        assert pair["simulation"] > 1.5

    @pytest.mark.parametrize("share", [0.4, 1.5])
    def test_where_one_change_gains_there_is_no_pair(self, share):
        changes = ws.validation.what_if(self.kernel(), self.gpu(share), simulate=False)["change"]
        assert not any(" + " in change for change in changes)

    def test_changes_that_save_no_more_together_are_no_pair(self):
        """Each saves 4 of 100 cycles alone."""
        alone = {"a": 96.0, "b": 96.0}
        assert best_pair(100, alone, {("a", "b"): 92.0}) is None
        assert best_pair(100, alone, {("a", "b"): 97.0}) is None
        assert best_pair(100, alone, {("a", "b"): 80.0}) == (("a", "b"), 1.25)
        assert best_pair(100, {"a": 90.0, "b": 99.0}, {("a", "b"): 50.0}) is None


class TestSentences:
    def test_nothing_gains(self):
        assert sentence("twice the SMs", 1.0, "base") == "nothing alone gains more than 3 %"
        most = sentence("twice the SMs", 1 + LEAST_GAIN - 0.01, "base")
        assert most == "nothing alone gains more than 3 % (the most: twice the SMs, 1.02)"
        assert sentence("", math.nan, "base") == ""

    def test_stack_and_change_agree(self):
        assert sentence("twice the MSHRs", 1.5, "mshr") == "twice the MSHRs: 1.50 times faster"

    def test_launches_together(self):
        """Of 300 cycles, a saves 100 * (1 - 1 / 2) + 100 * (1 - 1 / 4) = 125, b 50."""
        rows = [
            {"cycles": 100, "reason": "a", "gain": 2.0},
            {"cycles": 100, "reason": "b", "gain": 2.0},
            {"cycles": 100, "reason": "a", "gain": 4.0},
        ]
        assert reason_of_sum(rows) == ("a", pytest.approx(300 / 175))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(rounds(75)))
def test_no_change_of_the_caches_gains_more_than_its_bound(number):
    case = rc.random_case(77, number)
    kernel, gpu = case.app()[0], case.on()
    pipeline = Pipeline(kernel, ws.Options())
    (memory,) = pipeline.memory(gpu)

    def cycles(one, of_caches):
        profile = pipeline.interval(0, one, of_caches)
        return prediction_of(Found(kernel, profile=profile), one, "closed_network").cycles

    base = cycles(gpu, memory)
    for name, changed in changed_gpus(gpu).items():
        if CHANGES[name].moves_caches:
            bound = bounding_gpu(name, gpu, memory, is_first=True)
            (moved,) = pipeline.memory(changed)
            if bound is None and name == "2 x SMs":
                # L1 has nothing to gain: the hits are taken to stay as they are.
                assert cycles(changed, memory) == pytest.approx(cycles(changed, moved), rel=0.03)
                continue
            least = base if bound is None else cycles(bound, memory)
            assert least <= 1.001 * cycles(changed, moved), name


@pytest.mark.parametrize("place", ["before_tags", "after_tags"])
@pytest.mark.parametrize(("l1", "l2"), [(30.4, 31.0), (0.0006, 1.0), (30.0, 30.0), (31.5, 12.0)])
def test_a_bound_is_a_gpu_whatever_its_latencies(place, l1, l2):
    """An L2 that is as near as L1: with a latency before the tags it must hold whole cycles of L1."""
    if place == "before_tags" and l2 < l1:
        return  # no such GPU
    gpu = ws.gpu("pascal-mdm").replace(l1_latency_place=place, l1_latency=l1, l2_latency=l2)
    # All blocks read the same lines, so that L1 caches have something to gain.
    k = ws.patterns.KernelBuilder("same lines", grid=56, block=64)
    k.emit("LDG.E", dst=8, src=2, address=(1 << 30) + 128 * (k.thread % 64))
    k.emit("EXIT")
    (memory,) = Pipeline(k.build(), ws.Options()).memory(gpu.replace(l2_size_kib=24))
    bound = bounding_gpu("2 x L1 size", gpu.replace(l2_size_kib=24), memory, is_first=False)
    assert bound is not None
    assert bound.l1_latency <= gpu.l1_latency
    assert bound.l2_latency <= min(gpu.l2_latency, gpu.l1_latency)
