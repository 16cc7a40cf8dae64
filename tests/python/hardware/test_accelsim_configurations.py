"""The reader of GPGPU-Sim configurations on those that come with Accel-Sim."""

from pathlib import Path

import pytest

from warpstack.errors import UnusedOptionWarning
from warpstack.hardware.description import Gpu, gpu
from warpstack.hardware.stages import Stage, fields_of

#: What the shipped descriptions have from measurements of the cards.
MEASURED = {
    *("compute_capability", "latency_counts", "scheduler", "atomic_requests"),
    *("l1_latency", "l2_latency", "dram_latency", "shared_memory_latency"),
    *(f"{name}_latency" for name in ("integer", "fp32", "fp16", "fp64", "sfu", "uniform")),
    *(f"{name}_latency" for name in ("barrier", "shuffle", "constant")),
}
CONFIGURATIONS = Path(__file__).resolve().parents[4] / "shared" / "gpgpusim-configs"


@pytest.fixture(params=["SM6_TITANX", "SM75_RTX2060", "SM7_QV100", "SM7_TITANV", "SM86_RTX3070"])
def configuration(request):
    path = CONFIGURATIONS / request.param
    if not path.is_dir():
        pytest.skip(f"no Accel-Sim configuration at {path}")
    return path


@pytest.mark.filterwarnings("ignore::warpstack.errors.UnusedOptionWarning")
class TestAccelSim:
    def test_data_sheet(self, configuration):
        description = Gpu.from_gpgpusim(configuration)
        # SMs, KiB of L1 without shared memory, KiB of L2, GB/s of DRAM on the data sheet
        sms, l1, l2, bandwidth = {
            "SM6_TITANX": (28, 48, 3072, 480),
            "SM75_RTX2060": (30, 64, 3072, 336),
            "SM7_QV100": (80, 128, 6144, 870),
            "SM7_TITANV": (80, 128, 4608, 652.8),
            "SM86_RTX3070": (46, 128, 4096, 448),
        }[configuration.name]
        assert description.num_sms == sms
        assert (description.l1_size_kib, description.l2_size_kib) == (l1, l2)
        assert description.dram_bandwidth_gbs == pytest.approx(bandwidth, rel=5e-4)
        assert description.issue_width == 4

    def test_every_option_is_used_or_named(self, configuration):
        with pytest.warns(UnusedOptionWarning) as caught:
            description = Gpu.from_gpgpusim(configuration)
        assert len(caught) == 1
        assert set(description.sources) == set(description.values())
        text = "\n".join(
            line.split("#")[0]
            for name in ("gpgpusim.config", "trace.config")
            for line in (configuration / name).read_text(encoding="utf-8").splitlines()
        )
        names = [word for word in text.split() if word.startswith("-")]
        places = [names.index(name) for name in description.unused_options]
        assert places == sorted(places)
        unused = set(description.unused_options)
        assert {"-gpgpu_l1_banks", "-gpgpu_coalesce_arch"} < unused
        assert not unused & {"-gpgpu_n_clusters", "-gpgpu_cache:dl1", "-icnt_flit_size"}
        assert not unused & {"-gpgpu_pipeline_widths", "-gpgpu_dram_timing_opt", "-network_mode"}

    def test_queues_and_ports(self, configuration):
        description = Gpu.from_gpgpusim(configuration)
        # Registers of 4 schedulers on both sides of 8 collectors, and 1 in the unit.
        assert description.lsu_queue_entries == 17
        # 16 of the miss queue, and 512 of the crossbar; SM6_TITANX has another network.
        crossbar = configuration.name != "SM6_TITANX"
        assert description.l1_miss_queue_entries == (528 if crossbar else 16)
        assert description.l2_slice_bytes_per_cycle == 32
        assert description.l2_slice_request_cycles == 1
        assert description.l1_latency_place == "before_tags"
        assert description.lines_under_way == "reserved"
        assert description.atomic_requests == "per_lane"
        assert description.store_acknowledgement == "awaited"
        assert description.kernel_end == "last_warp"

    def test_dram(self, configuration):
        description = Gpu.from_gpgpusim(configuration)
        gddr6 = (24, 55, 24, 12, 24, 8, 10, 24, 4, 6, 4)
        hbm2 = (12, 28, 12, 3, 12, 2, 3, 10, 1, 2, 3)
        clock, timing = {
            "SM6_TITANX": (2.5, (16, 37, 16, 8, 16, 6, 7, 16, 2, 4, 3)),
            "SM75_RTX2060": (3.5005, gddr6),
            "SM7_QV100": (0.85, hbm2),
            "SM7_TITANV": (0.85, hbm2),
            "SM86_RTX3070": (3.5005, gddr6),
        }[configuration.name]
        names = ["trcd", "tras", "trp", "trrd", "cl", "wl", "twtr", "twr", "tccd", "tccdl", "trtp"]
        assert tuple(getattr(description, f"dram_{name}") for name in names) == timing
        assert description.dram_clock_ghz == clock
        assert (description.dram_banks, description.dram_bank_groups) == (16, 4)
        # 6 bits of the column, of 32 bytes; the lowest bit of the bank is that of the slice.
        assert (description.dram_row_bytes, description.dram_interleaved_banks) == (2048, 1)
        assert description.dram_queue_entries == 64
        # Bursts at the rate of dram_tccd are the bandwidth.
        rate = description.dram_burst_bytes * description.dram_channels * clock
        assert description.dram_bandwidth_gbs == pytest.approx(rate / description.dram_tccd)

    @pytest.mark.parametrize(
        ("name", "folder"),
        [("rtx2060", "SM75_RTX2060"), ("qv100", "SM7_QV100"), ("rtx3070", "SM86_RTX3070")],
    )
    def test_shipped_descriptions_are_what_the_reader_reads(self, name, folder):
        if not (CONFIGURATIONS / folder).is_dir():
            pytest.skip(f"no Accel-Sim configuration at {CONFIGURATIONS / folder}")
        shipped, described = gpu(name).values(), Gpu.from_gpgpusim(CONFIGURATIONS / folder).values()
        # Accel-Sim has no options for how long a launch takes, for the host and
        # its link, nor for what cards reach of DRAM and how long L2 is busy with the lanes of an atomic.
        of_product = fields_of(Stage.LAUNCH) | fields_of(Stage.TIMELINE)
        of_product |= {"dram_efficiency", "l2_atomic_lane_turns"}
        # Its latencies of arithmetic are too short by two, and its cards differ in others, too.
        of_product |= MEASURED | {"l2_slice_index"}
        if name != "qv100":
            of_product |= {"lsu_interval", "shared_wavefront_cycles", "l1_tags_per_cycle"}
            of_product |= {"store_acknowledgement", "kernel_end", "l2_partial_write_turns"}
            of_product |= {"l2_set_index", "l2_atomic_words_at_once"}
        assert {k for k in shipped if shipped[k] != described[k]} <= of_product

    def test_titan_v_takes_the_rest_from_its_configuration(self):
        path = CONFIGURATIONS / "SM7_TITANV"
        if not path.is_dir():
            pytest.skip(f"no Accel-Sim configuration at {path}")
        shipped, described = gpu("titan-v").values(), Gpu.from_gpgpusim(path).values()
        # The cache paper has other associativities, which an adaptive L1 keeps, and other hashes.
        # It describes the product, not what Accel-Sim does: DRAM has no banks, and so on.
        simulator = {"l1_latency_place", "lines_under_way", "atomic_requests", "kernel_end"}
        simulator |= {"store_acknowledgement", "l1_miss_queue_entries", "lsu_queue_entries"}
        simulator |= {"l1_tags_per_cycle", "l2_partial_write_turns"}
        simulator |= {"l2_slice_bytes_per_cycle", "dram_clock_ghz", "dram_efficiency"}
        simulator |= fields_of(Stage.TIMELINE)
        simulator |= fields_of(Stage.LAUNCH) | {"l2_atomic_lane_turns"} | MEASURED
        banks = {k for k in shipped if k.startswith("dram_t")} | {"dram_cl", "dram_wl"}
        simulator |= banks | {"dram_row_bytes"}
        different = {k for k in shipped if shipped[k] != described[k]}
        assert banks & different
        assert different - simulator == {
            "l1_size_kib",
            "l1_ways",
            "l1_set_index",
            "adaptive_l1_keeps",
            "l2_ways",
            "l2_set_index",
        }
