"""Descriptions of GPUs: the shipped ones, their files, and what is refused."""

import dataclasses
import functools
import math
from pathlib import Path

import numpy as np
import pytest
import yaml

from machines import PLAIN
from warpstack import InputError
from warpstack._core import GPU_FIELDS
from warpstack.hardware.description import Gpu, as_gpu, gpu, gpus, value_of_text

FOLDER = Path(__file__).resolve().parents[3] / "data" / "gpus"
FIELDS = {field.name: field for field in GPU_FIELDS}
REQUIRED = [name for name, f in FIELDS.items() if f.default is None]


@functools.cache
def entries(name):
    """Return what a description's file says, over what the one it is based on says."""
    own = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    parent = own.pop("based_on", None)
    return {**entries(parent), **own} if parent else own


@pytest.fixture
def small():
    """A file of everything that a description needs, as a mapping."""
    return {name: gpu("pascal-mdm").values()[name] for name in REQUIRED}


def save(path, mapping):
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


class TestShipped:
    def test_names(self):
        assert gpus() == sorted(path.stem for path in FOLDER.glob("*.yaml"))
        assert {"pascal-mdm", "gpumech-baseline", "gtx1080", "a100", "h200"} <= set(gpus())

    @pytest.mark.parametrize("name", gpus())
    def test_loads_under_its_name(self, name):
        description = gpu(name)
        assert description.name == name
        assert description.description
        assert gpu(name) is description

    @pytest.mark.parametrize("name", gpus())
    def test_file_gives_every_required_field_with_a_source(self, name):
        given = entries(name)
        for field in REQUIRED:
            assert set(given[field]) - {"confidence"} == {"value", "source"}, field
            assert given[field]["source"].strip(), field

    def test_descriptions_with_confidences_have_one_for_each_source(self):
        """Older ones have them for what was added since."""
        described = [gpu(name) for name in gpus() if gpu(name).confidences]
        whole = [one for one in described if set(one.confidences) == set(one.sources)]
        assert len(whole) == 34
        assert {"rtx3080", "rtx3060", "h100-sxm"} <= {one.name for one in whole}
        for one in described:
            assert set(one.confidences) <= set(one.sources), one.name
            unpublished = [f for f, text in one.sources.items() if "not published" in text]
            found = {one.confidences.get(field, "guessed") for field in unpublished}
            assert found <= {"guessed", "derived"}, one.name

    @pytest.mark.parametrize("name", gpus())
    def test_values_come_with_the_sources_of_the_file(self, name):
        description, given = gpu(name), entries(name)
        for field, entry in given.items():
            if field in FIELDS:
                value = entry["value"]
                expected = tuple(value) if isinstance(value, list) else value
                assert getattr(description, field) == expected
                assert description.sources[field] == entry["source"] != ""
        assert set(description.sources) == set(given) & set(FIELDS)

    def test_pascal_mdm_does_what_accel_sim_does_where_the_paper_is_silent(self):
        pascal, accelsim = gpu("pascal-mdm"), gpu("rtx2060")
        for field, former in PLAIN.items():
            assert getattr(pascal, field) != former
            assert "MDM" not in pascal.sources[field]
        # What no option of a configuration changes, and what the runs leave as it comes.
        same = ["l1_latency_place", "lines_under_way"]
        same += ["l1_miss_queue_entries", "l2_slice_bytes_per_cycle"]
        same += [name for name in FIELDS if name.startswith("dram_t")]
        for field in same:
            assert getattr(pascal, field) == getattr(accelsim, field), field
        # The description of the RTX 2060 follows the card in these.
        for field in ["store_acknowledgement", "kernel_end", "l1_tags_per_cycle"]:
            assert getattr(pascal, field) == getattr(gpu("qv100"), field), field

    @pytest.mark.parametrize(
        ("name", "sms", "l2_mib", "bandwidth"),
        [  # Data sheets and whitepapers; the relative tolerance is for clocks that they round.
            ("gtx1080", 20, 2, 320),
            ("titan-v", 80, 4.5, 653),
            ("rtx2060", 30, 3, 336),
            ("qv100", 80, 6, 870),
            ("rtx3070", 46, 4, 448),
            ("a100", 108, 40, 1555),
            ("h100-pcie", 114, 50, 2039),
            ("h200", 132, 60, 4800),
            ("titan-x-maxwell", 24, 3, 336.5),
            ("quadro-gv100", 80, 6, 870),
            ("v100-sxm2", 80, 6, 898),
            ("gtx1650", 14, 1, 192),
            ("rtx2080ti", 68, 5.5, 616),
            ("rtx3060", 28, 2.25, 360),
            ("rtx3060-laptop", 30, 3, 288),
            ("rtx3060ti", 38, 3, 448),
            ("rtx3070ti", 48, 4, 608),
            ("rtx-a4000", 48, 4, 448),
            ("a40", 84, 6, 696),
            ("rtx3080", 68, 5, 760),
            ("rtx3090", 82, 6, 936),
            ("rtx4070", 46, 36, 504),
            ("rtx4090", 128, 72, 1008),
            ("l4", 58, 48, 300),
            ("l40s", 142, 96, 864),
            ("a100-pcie", 108, 40, 1555),
            ("h100-sxm", 132, 50, 3352),
            ("b200", 148, 126.5, 8000),
            ("t4", 40, 4, 320),
            ("a10", 72, 6, 600),
            ("a100-80gb", 108, 40, 2039),
            ("a100-80gb-pcie", 108, 40, 1935),
            ("rtx-a6000", 84, 6, 768),
            ("orin-agx", 16, 4, 204.8),
            ("rtx4060", 24, 24, 272),
            ("rtx4080", 76, 64, 716.8),
            ("l40", 142, 96, 864),
            ("gh200", 132, 60, 4023),
            ("b300", 148, 126.5, 7672),
            ("rtx5090", 170, 96, 1792),
            ("rtx-pro6000", 188, 128, 1792),
        ],
    )
    def test_product(self, name, sms, l2_mib, bandwidth):
        description = gpu(name)
        assert description.num_sms == sms
        assert description.l2_size_kib == l2_mib * 1024
        assert description.dram_bandwidth_gbs == pytest.approx(bandwidth, rel=1e-3)
        assert description.issue_width == 4
        assert description.warps_per_sm * 32 == description.threads_per_sm

    @pytest.mark.parametrize(
        ("name", "teraflops"),
        [  # Data sheets and whitepapers, which round: single precision, at 2 operations per result.
            ("quadro-gv100", 14.8),
            ("v100-sxm2", 15.7),
            ("rtx2080ti", 13.4),
            ("rtx3080", 29.8),
            ("rtx3090", 35.6),
            ("rtx-a4000", 19.2),
            ("a40", 37.4),
            ("rtx4090", 82.6),
            ("l4", 30.3),
            ("l40s", 91.6),
            ("a100-pcie", 19.5),
            ("h100-sxm", 66.9),
            ("b200", 74.5),
            ("p100", 9.52),
            ("t4", 8.14),
            ("a10", 31.2),
            ("rtx-a6000", 38.7),
            ("orin-agx", 5.32),
            ("rtx4060", 15.1),
            ("rtx4080", 48.7),
            ("l40", 90.5),
            ("gh200", 66.9),
            ("b300", 77.0),
            ("rtx5090", 104.8),
            ("rtx-pro6000", 125.9),
        ],
    )
    def test_rate_of_single_precision(self, name, teraflops):
        one = gpu(name)
        results = 32 * one.schedulers_per_sm / one.fp32_interval
        rate = one.num_sms * results * 2 * one.clock_ghz / 1000
        assert rate == pytest.approx(teraflops, rel=5e-3)

    @pytest.mark.parametrize(
        ("field", "value"),
        [  # Table 3 of the cache paper
            ("num_sms", 80),
            ("l1_size_kib", 32),
            ("l1_ways", 4),
            ("l1_line_bytes", 128),
            ("l1_sector_bytes", 32),
            ("l1_write_policy", "write_through"),
            ("l1_write_miss", "write_validate"),
            ("l1_replacement", "lru"),
            ("l1_set_index", "xor"),
            ("unified_l1_kib", 128),
            ("shared_memory_carve_outs_kib", (0, 8, 16, 32, 64, 96)),
            ("adaptive_l1_keeps", "ways"),
            ("l2_size_kib", 4608),
            ("l2_ways", 32),
            ("l2_line_bytes", 128),
            ("l2_sector_bytes", 32),
            ("l2_write_policy", "write_back"),
            ("l2_write_miss", "write_validate"),
            ("l2_replacement", "lru"),
        ],
    )
    def test_titan_v_of_the_cache_paper(self, field, value):
        assert getattr(gpu("titan-v"), field) == value

    @pytest.mark.parametrize("name", [name for name in gpus() if gpu(name).unified_l1_kib])
    def test_adaptive_l1(self, name):
        description = gpu(name)
        carve_outs = description.shared_memory_carve_outs_kib
        # titan-v has the size that the cache paper compares an adaptive L1 with (Section 5.3.3).
        largest = 32 if name == "titan-v" else description.unified_l1_kib - carve_outs[0]
        assert description.l1_size_kib == largest
        assert description.shared_memory_kib_per_sm == carve_outs[-1]

    def test_global_loads_are_cached_except_on_maxwell_and_the_gtx_1080(self):
        bypassed = [n for n in gpus() if gpu(n).l1_global_loads == "bypassed"]
        assert bypassed == ["gtx1080", "titan-x-maxwell"]

    @pytest.mark.parametrize("name", gpus())
    def test_latencies_grow_along_the_way(self, name):
        description = gpu(name)
        assert 0 < description.l1_latency < description.l2_latency
        assert description.dram_latency > 0
        assert description.dram_bandwidth_gbs < description.noc_bandwidth_gbs

    def test_unknown_name_says_where_the_names_are(self):
        with pytest.raises(
            InputError, match=r"there is no GPU 'nope'; warpstack gpus .* lists them"
        ):
            gpu("nope")

    @pytest.mark.parametrize(
        ("product", "meant"),
        [
            ("NVIDIA GeForce RTX 3080", "rtx3080"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA A10", "a10"),
            ("NVIDIA A100-PCIE-40GB", "a100-pcie"),
            ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ],
    )
    def test_name_of_a_product_suggests_its_gpu_alone(self, product, meant):
        with pytest.raises(InputError, match=rf"did you mean {meant}\?"):
            gpu(product)

    def test_unknown_name_suggests_the_near_ones(self):
        with pytest.raises(
            InputError, match=r"did you mean h100-pcie, a100-pcie, a100-80gb-pcie or h100-sxm\?"
        ):
            gpu("h100-pci")
        assert gpu("A100") == gpu("a100")
        with pytest.raises(InputError, match=r"did you mean rtx3080\? warpstack gpus"):
            gpu("NVIDIA GeForce RTX 3080")


class TestReplace:
    def test_changes_a_value_and_drops_its_source(self):
        base = gpu("pascal-mdm")
        changed = base.replace(num_sms=56, l1_mshrs=64)
        assert (changed.num_sms, changed.l1_mshrs) == (56, 64)
        assert (base.num_sms, base.l1_mshrs) == (28, 128)
        assert set(base.sources) - set(changed.sources) == {"num_sms", "l1_mshrs"}

    def test_wrong_name_suggests_the_near_one(self):
        with pytest.raises(InputError, match=r"no field 'num_sm'; did you mean num_sms\?"):
            gpu("pascal-mdm").replace(num_sm=56)

    def test_wrong_name_without_a_near_one_says_where_to_look(self):
        with pytest.raises(InputError, match="no field 'zzzzz'; `warpstack gpus --fields` lists"):
            gpu("pascal-mdm").replace(zzzzz=1)

    def test_is_frozen(self):
        with pytest.raises(dataclasses.FrozenInstanceError):
            gpu("pascal-mdm").num_sms = 3

    def test_whole_numbers_may_be_floats(self):
        changed = gpu("pascal-mdm").replace(num_sms=56.0, clock_ghz=1)
        assert isinstance(changed.num_sms, int)
        assert isinstance(changed.clock_ghz, float)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"num_sms": 0}, "num_sms = 0 is less than 1"),
            ({"num_sms": -3}, "num_sms = -3 is less than 1"),
            ({"num_sms": 1.5}, "num_sms = 1.5 is not a whole number"),
            ({"num_sms": "28"}, "num_sms = '28' is not a number"),
            ({"num_sms": True}, "num_sms = True is not a number"),
            ({"num_sms": None}, "num_sms = None is not a number"),
            ({"num_sms": [1]}, r"num_sms = \[1\] is not a number"),
            ({"num_sms": 65537}, "num_sms = 65537 is too large; the most is 65536"),
            ({"warps_per_sm": 2**31}, "warps_per_sm = 2147483648 is too large"),
            ({"clock_ghz": 1001}, "clock_ghz = 1001 is too large; the most is 1000"),
            ({"dram_latency": 1e16}, r"dram_latency = 1e\+16 is too large; the most is 1000000"),
            ({"num_sms": np.True_}, "num_sms = .*True_? is not a number"),
            ({"num_sms": np.array([3])}, r"num_sms = array\(\[3\]\) is not a number"),
            ({"scheduler": np.array(["gto"])}, "scheduler = .* is not one of gto, lrr"),
            ({"l1_size_kib": 48_000_000}, r"1\.08e\+10 cache lines; at most 67108864"),
            ({"l2_size_kib": 24e9}, r"1\.92e\+11 cache lines; at most 67108864"),
            ({"num_sms": 65536, "l1_size_kib": 768}, "num_sms = 65536 times l1_size_kib = 768"),
            ({"clock_ghz": 0}, "clock_ghz = 0 is less than 0.001"),
            ({"clock_ghz": float("nan")}, "clock_ghz = nan is not finite"),
            ({"clock_ghz": float("inf")}, "clock_ghz = inf is not finite"),
            ({"dram_latency": -1}, "dram_latency = -1 is less than 0"),
            ({"scheduler": "fifo"}, "scheduler = 'fifo' is not one of gto, lrr"),
            ({"scheduler": 1}, "scheduler = 1 is not one of gto, lrr"),
            (
                {"l1_write_miss": "allocate"},
                "is not one of no_allocate, fetch_on_write, write_validate",
            ),
        ],
    )
    def test_wrong_value(self, change, message):
        with pytest.raises(InputError, match=f"GPU pascal-mdm: .*{message}"):
            gpu("pascal-mdm").replace(**change)

    def test_numbers_of_numpy(self):
        changed = gpu("pascal-mdm").replace(num_sms=np.int64(4), clock_ghz=np.float32(1.5))
        assert (changed.num_sms, changed.clock_ghz) == (4, 1.5)
        assert (type(changed.num_sms), type(changed.clock_ghz)) == (int, float)
        assert changed.digest == gpu("pascal-mdm").replace(num_sms=4, clock_ghz=1.5).digest

    def test_names_are_text(self):
        with pytest.raises(InputError, match="GPU name = 3 is not text"):
            gpu("pascal-mdm").replace(name=3)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"l1_line_bytes": 96}, r"l1_sector_bytes = 128 is not .* divides l1_line_bytes = 96"),
            ({"l1_line_bytes": 40}, "l1_line_bytes = 40 is not a multiple of 32 up to 256"),
            ({"l2_line_bytes": 512}, "l2_line_bytes = 512 is not a multiple of 32 up to 256"),
            ({"l2_sector_bytes": 96}, "l2_sector_bytes = 96 is not a multiple of 32 that divides"),
            # 6 ways of 128 bytes: 0.75 KiB; 47.25 KiB is 63 sets.
            (
                {"l1_size_kib": 47},
                "l1_size_kib = 47 is not a multiple of l1_line_bytes . l1_ways = 0.75 KiB; "
                "the nearest that is: 47.25",
            ),
            # 8 ways of 128 bytes in each of 24 slices: 24 KiB; 3000 KiB is 125 sets.
            (
                {"l2_size_kib": 3010},
                "l2_size_kib = 3010 is not a multiple of l2_line_bytes . l2_ways . l2_slices = "
                "24 KiB; the nearest that is: 3000",
            ),
            (
                {"l2_slice_interleave_bytes": 64},
                "l2_slice_interleave_bytes = 64 is not a multiple of l2_line_bytes = 128",
            ),
            # The latency before the tags is a part of that of L2: 120 cycles.
            (
                {"l1_latency": 120.5, "l1_latency_place": "before_tags"},
                "l2_latency = 120 is less than l1_latency = 120.5, which is part of it",
            ),
            (
                {"dram_banks": 4096, "l2_slices": 1536, "dram_row_bytes": 1},
                "dram_banks = 4096 of each of 1536 channels are more than 1048576 banks",
            ),
            (
                {"dram_banks": 15, "dram_interleaved_banks": 2},
                "dram_interleaved_banks = 2 does not divide dram_banks = 15",
            ),
            # 24 to open a row, at best 55 + 24, 12, or a refresh after the one before.
            ({"dram_trefi": 103}, "dram_trefi = 103 is not more than 103, that is dram_trcd"),
            (
                {"dram_trefi": 124, "dram_trfc": 100},
                "dram_trefi = 124 is not more than 124, .*: refreshes would leave no time",
            ),
            ({"dram_trefi": 124, "dram_trrd": 100}, "dram_trefi = 124 is not more than 124"),
        ],
    )
    def test_wrong_geometry(self, change, message):
        with pytest.raises(InputError, match=message):
            gpu("pascal-mdm").replace(**change)

    @pytest.mark.parametrize(
        "change",
        [
            {"l1_latency": 120, "l1_latency_place": "before_tags"},
            {"l1_latency": 500, "l1_latency_place": "after_tags"},
            {"dram_banks": 15, "dram_interleaved_banks": 5},
            {"dram_trefi": 104, "dram_trfc": 79},
            {"dram_trfc": 99},
        ],
    )
    def test_geometry_at_its_limits(self, change):
        changed = gpu("pascal-mdm").replace(**change)
        assert {field: getattr(changed, field) for field in change} == change

    def test_carve_outs_are_sorted_and_given_once(self):
        base = gpu("pascal-mdm")
        for carve_outs in ([48.0, 0, 24, 48], (0, 24, 48), np.array([24, 0, 48])):
            changed = base.replace(unified_l1_kib=96, shared_memory_carve_outs_kib=carve_outs)
            assert changed.shared_memory_carve_outs_kib == (0, 24, 48)
        assert changed.changes_text == "unified_l1_kib=96, shared_memory_carve_outs_kib=0,24,48"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"unified_l1_kib": 96}, "unified_l1_kib = 96 and .* belong together; give both"),
            ({"shared_memory_carve_outs_kib": (0, 8)}, "= 0,8 belong together; give both or none"),
            (
                {"unified_l1_kib": 96, "shared_memory_carve_outs_kib": (0, 96)},
                "a carve-out of 96 KiB leaves L1 0 of unified_l1_kib = 96",
            ),
            # 64 sets of 128 bytes: 8 KiB per way.
            (
                {"unified_l1_kib": 96, "shared_memory_carve_outs_kib": (0, 4)},
                "leaves L1 92 of .*, which is not a positive multiple of 8 KiB, its sets",
            ),
            # 6 ways of 128 bytes: 0.75 KiB per set.
            (
                {
                    "unified_l1_kib": 96,
                    "shared_memory_carve_outs_kib": (4,),
                    "adaptive_l1_keeps": "ways",
                },
                "leaves L1 92 of .*, which is not a positive multiple of 0.75 KiB, its ways",
            ),
            ({"shared_memory_carve_outs_kib": "0,8"}, "is not a list of numbers"),
            ({"shared_memory_carve_outs_kib": 8}, "is not a list of numbers"),
            ({"shared_memory_carve_outs_kib": ["many"]}, "is not a list of numbers"),
            ({"shared_memory_carve_outs_kib": [-8]}, "numbers that are negative, too large"),
            ({"shared_memory_carve_outs_kib": [math.nan]}, "too large or not finite"),
            ({"shared_memory_carve_outs_kib": [1e16]}, "too large or not finite"),
        ],
    )
    def test_wrong_carve_outs(self, change, message):
        with pytest.raises(InputError, match=message):
            gpu("pascal-mdm").replace(**change)

    @pytest.mark.parametrize("level", ["l1", "l2"])
    def test_pseudo_lru_needs_a_power_of_two(self, level):
        base = gpu("pascal-mdm").replace(l1_ways=8, l2_ways=8, l2_slices=1)
        changed = base.replace(**{f"{level}_replacement": "plru"})
        assert getattr(changed, f"{level}_replacement") == "plru"
        with pytest.raises(InputError, match=f"{level}_ways = 6 is not a power of two, which"):
            changed.replace(**{f"{level}_ways": 6, "l1_size_kib": 48, "l2_size_kib": 3072})


class TestClock:
    """Latencies outside the clock domain of the SMs are constant in time."""

    def test_dram_latency_scales_with_the_clock(self):
        base = gpu("pascal-mdm")
        fast = base.replace(clock_ghz=2.8)
        assert fast.dram_latency == 440
        # The times between DRAM's commands count cycles of its own clock.
        others = base.values().keys() - {"clock_ghz", "dram_latency"}
        assert all(getattr(fast, field) == getattr(base, field) for field in others)
        assert fast.sources["dram_latency"] == "MDM, Table III; 220 cycles at 1.4 GHz"
        assert "clock_ghz" not in fast.sources

    def test_l2_latency_scales_where_l2_has_its_own_clock(self):
        base = gpu("pascal-mdm").replace(l2_clock_ghz=1.4)
        assert base.l2_latency == 120
        assert base.replace(clock_ghz=2.8).l2_latency == 240
        assert base.replace(clock_ghz=2.8).dram_latency == 440
        # Leaving the clock domain of the SMs and changing their clock at once is the same.
        assert gpu("pascal-mdm").replace(clock_ghz=2.8, l2_clock_ghz=1.4).l2_latency == 240
        assert base.replace(clock_ghz=2.8, l2_clock_ghz=0).l2_latency == 120

    def test_latencies_that_are_given_stay(self):
        base = gpu("pascal-mdm").replace(l2_clock_ghz=1.4)
        fast = base.replace(clock_ghz=2.8, dram_latency=300)
        assert (fast.dram_latency, fast.l2_latency) == (300, 240)
        assert base.replace(clock_ghz=2.8, l2_latency=130).l2_latency == 130

    def test_other_changes_do_not_scale(self):
        assert gpu("pascal-mdm").replace(clock_ghz=1.4, num_sms=3).dram_latency == 220
        assert "cycles at" not in gpu("pascal-mdm").replace(num_sms=3).sources["dram_latency"]

    def test_there_and_back(self):
        base = gpu("pascal-mdm")
        assert base.replace(clock_ghz=2.8).replace(clock_ghz=1.4) == base

    def test_files_scale_too(self, tmp_path):
        path = save(tmp_path / "fast.yaml", {"based_on": "pascal-mdm", "clock_ghz": 2.8})
        assert Gpu.from_file(path).dram_latency == 440
        path = save(
            tmp_path / "fast.yaml",
            {"based_on": "pascal-mdm", "clock_ghz": 2.8, "dram_latency": 220},
        )
        assert Gpu.from_file(path).dram_latency == 220


class TestChanges:
    def test_are_noted_in_order(self):
        base = gpu("pascal-mdm")
        changed = base.replace(num_sms=np.int64(56)).replace(clock_ghz=1.5, scheduler="lrr")
        assert changed.changes == {"num_sms": 56, "clock_ghz": 1.5, "scheduler": "lrr"}
        assert changed.name == "pascal-mdm"
        assert changed.title == "pascal-mdm with num_sms=56, clock_ghz=1.5, scheduler=lrr"
        assert changed.replace(num_sms=28).changes_text == (
            "num_sms=28, clock_ghz=1.5, scheduler=lrr"
        )

    def test_without_any_the_title_is_the_name(self):
        base = gpu("pascal-mdm")
        assert base.changes == {}
        assert base.replace(num_sms=base.num_sms, description="x").title == "pascal-mdm"

    def test_a_new_name_stands_for_them(self):
        changed = gpu("pascal-mdm").replace(num_sms=56).replace(name="mine", l1_mshrs=3)
        assert changed.title == "mine"
        assert changed.replace(l1_mshrs=4).title == "mine with l1_mshrs=4"

    def test_are_not_part_of_the_identity(self):
        base = gpu("pascal-mdm")
        again = base.replace(num_sms=56).replace(num_sms=28)
        assert again.changes
        assert again == base
        assert (hash(again), again.digest) == (hash(base), base.digest)

    def test_files_have_names(self, tmp_path):
        path = save(tmp_path / "mine.yaml", {"based_on": "pascal-mdm", "num_sms": 56})
        assert Gpu.from_file(path).title == "mine"


class TestAsGpu:
    def test_accepts_a_gpu_a_name_and_a_path(self, tmp_path):
        path = save(tmp_path / "mine.yaml", {"based_on": "pascal-mdm"})
        assert as_gpu(gpu("a100")) is gpu("a100")
        assert as_gpu("a100") is gpu("a100")
        assert as_gpu(path).name == "mine"

    @pytest.mark.parametrize("value", [3, None, b"a100", ["a100"]])
    def test_refuses_the_rest(self, value):
        with pytest.raises(InputError, match="expected a Gpu, the name of one or the path"):
            as_gpu(value)
        with pytest.raises(InputError, match="expected the name of a GPU or the path"):
            gpu(value)

    def test_refuses_what_is_no_file_name(self):
        with pytest.raises(InputError, match="is not a file name"):
            gpu("a\0b.yaml")
        with pytest.raises(InputError, match="expected a path, got 3"):
            Gpu.from_file(3)
        with pytest.raises(InputError, match="expected a path, got 3"):
            Gpu.from_gpgpusim(3)


class TestDigest:
    def test_ignores_name_description_and_sources(self):
        base = gpu("pascal-mdm")
        renamed = dataclasses.replace(base, name="other", description="", sources={})
        assert renamed.digest == base.digest
        assert len(base.digest) == 16
        int(base.digest, 16)

    def test_depends_on_every_value(self):
        # With 16 KiB per set of 128 ways, its carve-outs fit whatever adaptive_l1_keeps.
        base = gpu("rtx2060")
        digests = {base.digest}
        for name, field in FIELDS.items():
            if field.choices:
                others = [c for c in field.choices if c != getattr(base, name)]
                digests.add(base.replace(**{name: others[0]}).digest)
        for change in (
            {"num_sms": 81},
            {"l1_size_kib": 32},
            {"unified_l1_kib": 128},
            {"shared_memory_carve_outs_kib": (32,)},
            {"l2_slices": 48},
            {"clock_ghz": 1.133},
            {"dram_latency": 101},
            {"noc_queue_entries": 8},
        ):
            digests.add(base.replace(**change).digest)
        assert len(digests) == 1 + sum(bool(f.choices) for f in FIELDS.values()) + 8

    def test_differs_between_the_descriptions(self):
        assert len({gpu(name).digest for name in gpus()}) == len(gpus())


class TestFields:
    def test_every_field_has_a_meaning_and_a_unit_where_it_has_one(self):
        fields = Gpu.fields()
        assert list(fields) == list(FIELDS)
        assert all(fields.values())
        for name, unit in (
            ("l1_size_kib", "KiB"),
            ("clock_ghz", "GHz"),
            ("noc_bandwidth_gbs", "GB/s"),
        ):
            assert fields[name].endswith(f"[{unit}]")

    def test_html_shows_values_and_sources(self):
        shown = gpu("pascal-mdm")._repr_html_()
        assert "<td>l1_mshrs</td><td>128</td>" in shown
        assert "MDM, Table III" in shown


class TestFromFile:
    def test_plain_values_have_no_source(self, tmp_path, small):
        path = save(tmp_path / "mine.yaml", small)
        description = Gpu.from_file(path)
        assert description.name == "mine"
        assert description.sources == {}
        assert {name: description.values()[name] for name in REQUIRED} == small
        assert gpu(path) == description
        assert gpu(str(path)) == description

    def test_defaults_fill_in_for_fields_that_have_one(self, tmp_path, small):
        description = Gpu.from_file(save(tmp_path / "mine.yaml", small))
        for name, field in FIELDS.items():
            if name not in REQUIRED:
                assert getattr(description, name) == field.default

    def test_based_on_a_name(self, tmp_path):
        path = save(
            tmp_path / "mine.yaml",
            {
                "based_on": "pascal-mdm",
                "name": "bigger",
                "num_sms": {"value": 56, "source": "a test"},
                "l1_mshrs": 64,
            },
        )
        description = Gpu.from_file(path)
        assert description.name == "bigger"
        assert description == dataclasses.replace(
            gpu("pascal-mdm"), name="bigger", description="", num_sms=56, l1_mshrs=64
        )
        assert description.sources["num_sms"] == "a test"
        assert "l1_mshrs" not in description.sources
        assert description.sources["l2_latency"] == gpu("pascal-mdm").sources["l2_latency"]

    def test_based_on_a_file_beside_it(self, tmp_path):
        save(tmp_path / "base.yaml", {"based_on": "pascal-mdm", "num_sms": 56})
        path = save(tmp_path / "mine.yaml", {"based_on": "base.yaml", "l1_mshrs": 64})
        description = Gpu.from_file(path)
        assert (description.num_sms, description.l1_mshrs) == (56, 64)

    def test_an_error_names_the_line(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text(
            "based_on: pascal-mdm\n\n# more of them\nnum_sms: 56\nl1_ways:\n  value: 0\n"
        )
        with pytest.raises(InputError, match=r"mine\.yaml:5: GPU mine: l1_ways = 0 is less than 1"):
            Gpu.from_file(path)

    def test_based_on_nothing_known(self, tmp_path):
        path = save(tmp_path / "mine.yaml", {"based_on": "pascal", "num_sms": 56})
        with pytest.raises(InputError, match=r"mine\.yaml:\d+: based_on: there is no GPU 'pascal'"):
            Gpu.from_file(path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"num_sm": 1}, r"mine\.yaml:\d+: there is no field 'num_sm'; did you mean num_sms\?"),
            ({"num_sms": "many"}, r"mine\.yaml:\d+: .*num_sms = 'many' is not a number"),
            ({"num_sms": {"source": "x"}}, r"mine\.yaml:\d+: num_sms: expected \{value: "),
            (
                {"num_sms": {"value": 1, "unit": "SMs"}},
                r"mine\.yaml:\d+: num_sms: expected \{value: ",
            ),
            ({"l1_size_kib": 47}, r"mine\.yaml:\d+: .*l1_size_kib = 47 is not a multiple"),
        ],
    )
    def test_wrong_entry(self, tmp_path, small, change, message):
        with pytest.raises(InputError, match=message):
            Gpu.from_file(save(tmp_path / "mine.yaml", small | change))

    @pytest.mark.parametrize(
        ("text", "value"),
        [("1e3", 1000), ("010", 10), ("64.0", 64), ("+8", 8), ("'16'", 16), (" 5 ", 5)],
    )
    def test_numbers_are_those_of_python(self, tmp_path, text, value):
        path = tmp_path / "mine.yaml"
        path.write_text(f"based_on: pascal-mdm\nnum_sms: {text}\n")
        assert Gpu.from_file(path).num_sms == value
        path.write_text(f"based_on: pascal-mdm\ndram_latency: {{value: {text}, source: x}}\n")
        assert Gpu.from_file(path).dram_latency == value

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("1_000", "num_sms = '1_000' is not a number"),
            ("0x10", "num_sms = '0x10' is not a number"),
            ("yes", "num_sms = 'yes' is not a number"),
            ("true", "num_sms = 'true' is not a number"),
            (".nan", "num_sms = '.nan' is not a number"),
            ("inf", "num_sms = 'inf' is not a number"),
            ("1e999", "num_sms = inf is not finite"),
            ("1:30", "num_sms = '1:30' is not a number"),
            ("", "num_sms = '' is not a number"),
            ("\u0663", "num_sms = '\u0663' is not a number"),
            ("1.5", "num_sms = 1.5 is not a whole number"),
            ("[[[1, 2, 3, 4, 5, 6, 7, 8, 9]]]", r"num_sms = .*\.\.\..* is not a number"),
            ("3\nnum_sms: 4", "mine.yaml:3: not valid YAML: num_sms is given twice"),
        ],
    )
    def test_what_is_no_number(self, tmp_path, text, message):
        path = tmp_path / "mine.yaml"
        path.write_text(f"based_on: pascal-mdm\nnum_sms: {text}\n", encoding="utf-8")
        with pytest.raises(InputError, match=message):
            Gpu.from_file(path)

    def test_names_and_choices_are_text(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text("based_on: pascal-mdm\nname: 2060\ndescription: no\n")
        description = Gpu.from_file(path)
        assert (description.name, description.description) == ("2060", "no")
        path.write_text("based_on: pascal-mdm\nscheduler: no\n")
        with pytest.raises(InputError, match="scheduler = 'no' is not one of gto, lrr"):
            Gpu.from_file(path)

    @pytest.mark.parametrize(
        ("text", "carve_outs"),
        [
            ("[0, 8, 1.6e1]", (0, 8, 16)),
            ("{value: [16, 0], source: a guide}", (0, 16)),
            ("0, 16", (0, 16)),
            ("16", (16,)),
            ("\n- 16\n- 0", (0, 16)),
        ],
    )
    def test_lists(self, tmp_path, text, carve_outs):
        path = tmp_path / "mine.yaml"
        entry = f"shared_memory_carve_outs_kib: {text}\n"
        path.write_text(f"based_on: pascal-mdm\nunified_l1_kib: 96\n{entry}", encoding="utf-8")
        assert gpu(path).shared_memory_carve_outs_kib == carve_outs

    @pytest.mark.parametrize("text", ["[8, many]", "[[8]]", "[.nan]", "{a: 8}"])
    def test_what_is_no_list(self, tmp_path, text):
        path = tmp_path / "mine.yaml"
        entry = f"shared_memory_carve_outs_kib: {text}\n"
        path.write_text(f"based_on: pascal-mdm\n{entry}", encoding="utf-8")
        with pytest.raises(InputError, match=r"mine\.yaml:\d+: .*shared_memory_carve_outs_kib"):
            gpu(path)

    def test_without_carve_outs(self, tmp_path):
        path = tmp_path / "mine.yaml"
        entries = "unified_l1_kib: 0\nshared_memory_carve_outs_kib: []\n"
        path.write_text(f"based_on: qv100\n{entries}", encoding="utf-8")
        assert gpu(path).shared_memory_carve_outs_kib == ()

    @pytest.mark.parametrize(
        ("text", "value"),
        [("0,8,16", [0, 8, 16]), ("8", [8]), ("", []), (" 0 , 1.5 ", [0, 1.5]), ("a,8", ["a", 8])],
    )
    def test_lists_of_a_command_line(self, text, value):
        assert value_of_text("shared_memory_carve_outs_kib", text) == value

    @pytest.mark.slow
    def test_deep_nesting(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text("[" * 100_000)
        with pytest.raises(InputError, match="nested too deeply"):
            Gpu.from_file(path)

    @pytest.mark.parametrize("base", ["[a]", "{a: b}"])
    def test_based_on_is_a_name(self, tmp_path, base):
        path = tmp_path / "mine.yaml"
        path.write_text(f"based_on: {base}\n")
        with pytest.raises(InputError, match="based_on: expected a name or a file"):
            Gpu.from_file(path)

    def test_name_that_is_not_utf8(self, tmp_path):
        path = save(tmp_path / "a\udcffb.yaml", {"based_on": "pascal-mdm"})
        assert gpu(path).name == "a\\xffb"

    def test_missing_fields_are_named(self, tmp_path, small):
        del small["num_sms"], small["dram_latency"]
        with pytest.raises(InputError, match=r"missing fields: num_sms, dram_latency; .*based_on"):
            Gpu.from_file(save(tmp_path / "mine.yaml", small))

    def test_bad_yaml_names_the_line(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_text("name: mine\nnum_sms: 3\nclock_ghz: [1\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"mine\.yaml:4: not valid YAML: "):
            Gpu.from_file(path)

    @pytest.mark.parametrize("text", ["", "- 1\n- 2\n", "just text\n", "3\n"])
    def test_not_a_mapping(self, tmp_path, text):
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"mine\.yaml: not a GPU description"):
            Gpu.from_file(path)

    def test_binary(self, tmp_path):
        path = tmp_path / "mine.yaml"
        path.write_bytes(b"\xff\xfe\x00\x01")
        with pytest.raises(InputError, match="cannot read the GPU description"):
            Gpu.from_file(path)

    def test_no_file(self, tmp_path):
        with pytest.raises(InputError, match="cannot read the GPU description"):
            gpu(tmp_path / "absent.yaml")


def test_based_on_itself_is_an_error(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.yaml").write_text(f"based_on: {other}.yaml\nnum_sms: 3\n")
    with pytest.raises(InputError, match=r"a\.yaml: based_on leads back to this file"):
        gpu(tmp_path / "a.yaml")


def test_absurdly_large_numbers_are_refused():
    with pytest.raises(InputError, match="num_sms"):
        gpu("pascal-mdm").replace(num_sms=10**400)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("digits", [16, 400, 5000])
@pytest.mark.parametrize("field", ["num_sms", "scheduler", "l1_latency"])
def test_numbers_of_any_size_are_refused(field, digits, sign):
    for value in (sign * 10**digits, sign * 10.0 ** min(digits, 308)):
        with pytest.raises(InputError, match=field):
            gpu("pascal-mdm").replace(**{field: value})


def test_a_description_is_written_to_a_file(tmp_path):
    changed = gpu("a100").replace(num_sms=7)
    path = tmp_path / "mine.yaml"
    assert changed.to_yaml(path) == path.read_text() == changed.to_yaml()
    assert Gpu.from_file(path).values() == changed.values()
