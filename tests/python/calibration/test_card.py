"""From the output of a card whose numbers are known to its description, and the command."""

import json
import re
import subprocess
import sys

import pytest

import warpstack as ws
from card_output import TRUTH, output
from warpstack import cli


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text(output())
    return path


def measured(tmp_path, base="rtx3080", **changes):
    path = tmp_path / "run.txt"
    path.write_text(output(**changes))
    return ws.calibration.calibrate(path, base=base, name="mine")


def test_every_number_is_recovered(file):
    found = ws.calibration.calibrate(file, base="rtx3080")
    for field, value in TRUTH.items():
        expected = value if isinstance(value, str) else pytest.approx(value, rel=2e-3)
        assert getattr(found.gpu, field) == expected, field
    assert set(found.measured) == {*TRUTH}


def test_what_was_measured_says_so_and_what_was_not_names_the_base(file):
    found = ws.calibration.calibrate(file, base="rtx3080", name="mine")
    assert found.gpu.name == "mine"
    assert found.base == ws.gpu("rtx3080")
    for field in found.gpu.values():
        if field in found.measured:
            assert found.gpu.sources[field].startswith(
                "warpstack calibrate on Plain Card 7 (driver 12.4, CUDA 12.1): "
            )
            assert found.gpu.confidences[field] == "measured"
        else:
            assert found.gpu.sources[field].startswith("not measured; rtx3080")
            assert getattr(found.gpu, field) == getattr(found.base, field)
            assert found.gpu.confidences.get(field) == found.base.confidences.get(field)


def test_notes_and_order_of_blocks(file):
    found = ws.calibration.calibrate(file, base="rtx3080")
    assert found.block_order[:4] == (0, 7, 14, 1)
    said = "; ".join(found.notes)
    assert "conversions (to single precision and back): 14 cycles, one per 2 cycles" in said
    assert "one per 1.7 us" in said
    assert (
        "L2 holds footprints of 5120 KiB, and not those of 5760 KiB; the driver says 5120" in said
    )
    assert "on SMs 0, 7, 14, 1," in said


def test_the_file_reads_as_what_was_measured(file, tmp_path):
    found = ws.calibration.calibrate(file, base="rtx3080", name='with "quotes": and #')
    found.save(tmp_path / "mine.yaml")
    again = ws.gpu(tmp_path / "mine.yaml")
    assert again == found.gpu
    assert again.sources == found.gpu.sources
    assert again.confidences == found.gpu.confidences
    with pytest.raises(ws.InputError, match=r"mine\.yaml: exists already; choose another name"):
        found.save(tmp_path / "mine.yaml")
    found.save(tmp_path / "mine.yaml", overwrite=True)
    with pytest.raises(ws.InputError, match=r"mine\.txt: the name of a GPU description ends in"):
        found.save(tmp_path / "mine.txt")


def test_the_table(file):
    table = ws.calibration.calibrate(file, base="rtx3080").to_frame().set_index("field")
    base = ws.gpu("rtx3080").l2_latency
    row = table.loc["l2_latency"]
    assert (row["unit"], row["measured"], row["base"]) == ("cycles", 212.0, base)
    assert row["difference"] == pytest.approx(212 / base - 1)
    assert table.loc["latency_counts", "difference"] != table.loc["latency_counts", "difference"]


def test_the_base_is_that_of_the_compute_capability(file, tmp_path):
    found = ws.calibration.calibrate(file)
    assert (found.base.compute_capability, found.gpu.name) == (8.6, "plain-card-7")
    file.write_text(file.read_text().replace("device.capability 8.6", "device.capability 3.5"))
    with pytest.raises(
        ws.InputError, match=r"run\.txt:3: no description is known for .* '3\.5'; give base="
    ):
        ws.calibration.calibrate(file)


def test_a_stream_of_nothing_has_no_time_per_byte(file):
    lines = file.read_text()
    damaged = re.sub(r"(stream\.again footprint)=\d+", r"\1=0", lines, count=1)
    assert damaged != lines
    file.write_text(damaged)
    ws.calibration.calibrate(file)


# --- what cannot be seen ------------------------------------------------------------------------


def test_loads_that_bypass_l1(tmp_path):
    """As on Pascal: L1 stays that of the base."""
    found = measured(tmp_path, l1_global_loads="bypassed")
    assert found.gpu.l1_global_loads == "bypassed"
    assert {"l1_latency", "l1_size_kib"}.isdisjoint(found.measured)
    assert found.gpu.l1_size_kib == found.base.l1_size_kib


def test_a_busy_unit_hides_its_latency(tmp_path):
    """Half precision of consumer Pascal: one instruction per 128 cycles."""
    found = measured(tmp_path, fp16_interval=128)
    assert found.gpu.fp16_interval == 128
    assert "fp16_latency" not in found.measured


def test_as_many_mshrs_as_the_card_can_use(tmp_path):
    assert "l1_mshrs" not in measured(tmp_path, l1_mshrs=512).measured


def test_replacement_hides_the_interval_of_blocks(tmp_path):
    """20 SMs x 32 blocks: a block that is replaced within 12.8 us takes 20 ns of the whole GPU."""
    found = measured(tmp_path, block_replacement_ns=12_800.0)
    assert found.gpu.block_replacement_ns == pytest.approx(12_800)
    assert "block_interval_cycles" not in found.measured


def test_what_issue_explains_is_not_a_start_of_its_own(tmp_path):
    found = measured(tmp_path, warp_start_cycles=0.25, block_interval_cycles=0.0125)
    assert found.gpu.warp_start_cycles == 0
    found = measured(tmp_path, block_interval_cycles=0.0125, block_replacement_ns=0.0)
    assert found.gpu.block_interval_cycles == 0


def test_a_memory_clock_that_is_not_that_of_the_pins(tmp_path):
    """Some drivers report 0, or half of what the memory transfers."""
    path = tmp_path / "run.txt"
    for clock in ("0", "3500000", "14000000"):
        path.write_text(
            output().replace("device.memory_clock 7000000", f"device.memory_clock {clock}")
        )
        found = ws.calibration.calibrate(path, base="rtx3080")
        assert found.gpu.dram_bandwidth_gbs == pytest.approx(392)  # 448 x 0.875
        assert found.gpu.dram_efficiency == 1
        said = [
            note for note in found.notes if note.startswith("dram_bandwidth_gbs: all SMs read 392")
        ]
        assert len(said) == (clock != "0")


def test_more_than_the_schedulers_issue_is_counted_as_one_each(tmp_path):
    assert measured(tmp_path, issue_width=5.5).gpu.issue_width == 4


def test_experiments_that_were_left_out_leave_the_base(tmp_path):
    """Half precision is not measured for sm_52."""
    lines = [line for line in output().splitlines() if ".fp16 " not in line]
    lines[-1] = f"end {len(lines) - 1} lines"
    (tmp_path / "run.txt").write_text("\n".join(lines))
    found = ws.calibration.calibrate(tmp_path / "run.txt", base="rtx3080")
    assert {"fp16_latency", "fp16_interval"}.isdisjoint(found.measured)
    assert found.gpu.fp16_latency == found.base.fp16_latency


# --- memory instructions, stores and atomics ----------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"lsu_interval": 2},
        {"lsu_interval": 4, "shared_wavefront_cycles": 1, "l1_tags_per_cycle": 4},
        {"l1_tags_per_cycle": 1},
        {"l1_tags_per_cycle": 8},
        {"store_acknowledgement": "awaited"},
        {"kernel_end": "last_store"},
        {"l2_partial_write_turns": 0.0},
        {"l2_partial_write_turns": 4.0},
        {"l2_atomic_lane_turns": 0.0},
        {"l2_atomic_lane_turns": 2.0},
        {"l2_atomic_lane_turns": 0.25, "request_turns": 9.0},  # only one word shows it
        {"atomic_wait": "until_done"},
    ],
)
def test_other_values_are_recovered(tmp_path, changes):
    base = ws.gpu("rtx3080").replace(lsu_interval=7, l2_partial_write_turns=7)
    found = measured(tmp_path, base, **changes)
    for field in changes.keys() - {"request_turns"}:
        expected = changes[field]
        if not isinstance(expected, str):
            expected = pytest.approx(expected, rel=2e-3)
        assert getattr(found.gpu, field) == expected, field
        assert field in found.measured
    assert found.gpu.block_replacement_ns == pytest.approx(400, rel=2e-3)


def test_a_line_per_cycle_is_what_the_base_calls_it(tmp_path):
    """With 1 and with 0 they take the same time: a load never has more passes than lines."""
    for tags in (0, 4):
        base = ws.gpu("rtx3080").replace(l1_tags_per_cycle=tags)
        found = measured(tmp_path, base, l1_tags_per_cycle=0)
        assert "l1_tags_per_cycle" in found.measured
        assert found.gpu.l1_tags_per_cycle == (0 if tags == 0 else 1)


@pytest.mark.parametrize(
    ("field", "changes", "why"),
    [
        ("lsu_interval", {"lsu_interval": 1.5}, "1.5 cycles per load are no whole number"),
        ("lsu_interval", {"l1_global_loads": "bypassed"}, "loads do not go through L1"),
        ("l1_tags_per_cycle", {"l1_global_loads": "bypassed"}, "loads do not go through L1"),
        ("l1_tags_per_cycle", {"l1_tags_per_cycle": 1.4}, "1.4 lines per cycle are no whole"),
        (
            "l1_tags_per_cycle",
            {"lsu_interval": 32, "l1_tags_per_cycle": 4},
            "loads of 32 lines take no longer than what each load takes",
        ),
        ("shared_wavefront_cycles", {"shared_wavefront_cycles": 0.5}, "0.5 cycles per pass are no"),
        ("store_acknowledgement", {"stores_trips": 0.4}, "0.4 round trips to L2 later"),
        ("store_acknowledgement", {"stores_trips": 40}, "40 round trips to L2 later"),
        ("kernel_end", {"end_trips": 0.4}, "take 0.4 round trips to L2 longer"),
        ("kernel_end", {"store_acknowledgement": "awaited"}, "blocks wait for their stores"),
        ("l2_partial_write_turns", {"request_turns": 3.0}, "up to 2 turns cannot be seen"),
        (
            "l2_atomic_lane_turns",
            {"request_turns": 9.0, "l2_atomic_lane_turns": 0.25, "word_turns": 1},
            "up to 0.281 turns of a lane cannot be seen",
        ),
        ("atomic_wait", {"fp32_latency": 12.0}, "beside an atomic take longer than it"),
    ],
)
def test_what_makes_no_sense_leaves_the_base(tmp_path, field, changes, why):
    found = measured(tmp_path, **changes)
    assert field not in found.measured
    assert getattr(found.gpu, field) == getattr(found.base, field)
    (note,) = (note for note in found.notes if note.startswith(f"{field}: the base's value stays"))
    assert why in note


NEW = (
    "loads",
    "reductions",
    "atomic",
    "stores",
    "turnover",
    "code",
    "stream.curve",
    "stream.behind",
)


def test_an_output_of_an_older_program(tmp_path):
    lines = [line for line in output().splitlines() if not line.startswith(NEW)]
    lines[-1] = f"end {len(lines) - 1} lines"
    (tmp_path / "run.txt").write_text("\n".join(lines))
    found = ws.calibration.calibrate(tmp_path / "run.txt", base="rtx3080")
    new = [*TRUTH][[*TRUTH].index("lsu_interval") :]
    assert {*found.measured} == {*TRUTH} - {*new}
    assert not [note for note in found.notes if re.search("base's value|atomics|keeps|code", note)]


def test_notes_on_l2_and_code(tmp_path):
    said = "; ".join(measured(tmp_path).notes)
    assert "atomics of one word: 2 lanes per cycle" in said
    assert "L2 keeps 4160 of 5120 KiB from one launch to the next" in said
    assert "are 1500 of up to half of it, 1500 of 4160, 392 of 4480, 392 of 4800 KiB" in said
    assert "2560 KiB takes 16.87 us where L2 is full of written lines, 10.19 us" in said
    assert "by its length: 1024 4, 2048 4," in said
    assert "instruction caches hold 4096 of them, and not 5120" in said


def test_notes_without_a_knee(tmp_path):
    said = "; ".join(measured(tmp_path, l2_kept_kib=99_999, code_kept=99_999).notes)
    assert "L2 keeps 7680 of 5120 KiB and more from one launch to the next" in said
    assert "10240 4" in said
    assert "instruction caches hold" not in said


# --- caches that do not divide ------------------------------------------------------------------


def test_slices_follow_a_size_that_the_bases_do_not_divide(tmp_path):
    base = ws.gpu("rtx3080").replace(
        l2_size_kib=4096, l2_slices=8, l2_ways=16, l2_line_bytes=128, dram_channels=0
    )
    found = measured(tmp_path, base, l2_size_kib=4104.0)  # 9 slices of 16 ways and 228 sets
    assert (found.gpu.l2_size_kib, found.gpu.l2_ways) == (4104, 16)
    assert (found.gpu.l2_slices, found.gpu.confidences["l2_slices"]) == (9, "derived")
    (note,) = (note for note in found.notes if "does not have the measured size" in note)
    assert "l2_slices 9 in place of 8, for 4104 KiB" in note


def test_a_size_that_slices_do_not_divide_is_the_nearest(tmp_path):
    base = ws.gpu("rtx3080").replace(l2_size_kib=3000, l2_slices=3, l2_ways=16, dram_channels=0)
    found = measured(tmp_path, base, l2_size_kib=5125.125)  # 41,001 lines: 3 x 79 x 173
    assert (found.gpu.l2_slices, found.gpu.l2_ways, found.gpu.l2_size_kib) == (5, 16, 5130)
    assert found.gpu.confidences["l2_size_kib"] == "derived"
    assert "the driver says 5125.12 KiB" in found.gpu.sources["l2_size_kib"]
    assert any("l2_size_kib 5130 (the driver says 5125.12" in note for note in found.notes)


def test_a_base_of_another_generation_is_refused(tmp_path):
    """Carve-outs of 228 KiB do not fit the storage of an L1 of 128 KiB."""
    with pytest.raises(
        ws.InputError, match=r"run\.txt: .*h100-pcie do not make .*choose a base of"
    ):
        measured(tmp_path, "h100-pcie")


# --- measurements without sense -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "latency.fp32",
            "100",
            r"latency\.fp32 \(lines \d+ to \d+\): times do not grow.*: 0 cycles",
        ),
        ("clock.time", "1000", r"clock\.time .*: times do not grow"),
        ("stream.once", "5", r"stream\.once .*: times do not grow"),
        ("chase.cg", "7", r"chase\.cg .*: times do not grow"),
        ("dispatch.grid", "7", r"dispatch\.grid .*: times do not grow"),
    ],
)
def test_times_that_do_not_grow(file, key, value, message):
    """A clock that stands, and a stand-in for a GPU."""
    words = [line.split() for line in file.read_text().splitlines()]
    lines = [" ".join([*w[:-2], value, w[-1]] if w[0] == key else w) for w in words]
    file.write_text("\n".join(lines))
    with pytest.raises(ws.InputError, match=rf"run\.txt:\d+: {message}"):
        ws.calibration.calibrate(file, base="rtx3080")


def test_dram_that_is_nearer_than_l2(tmp_path):
    with pytest.raises(
        ws.InputError, match=r"chase\.dram .*: 212 cycles are not more than L2's 212"
    ):
        measured(tmp_path, dram_latency=0.0)


# --- the command --------------------------------------------------------------------------------


def test_the_command_writes_the_file_and_a_table(file, tmp_path, capsys):
    out = tmp_path / "mine.yaml"
    command = ["calibrate", str(file), "--base", "rtx3080", "--name", "mine", "-o", str(out)]
    assert cli.main(command) == 0
    said = capsys.readouterr()
    rows = {line.split()[0]: line.split() for line in said.out.splitlines()}
    assert rows["l1_size_kib"] == ["l1_size_kib", "KiB", "128", "128", "+0.0"]
    assert rows["num_sms"] == ["num_sms", "20", "68", "-70.6"]
    assert f"mine, {len(TRUTH)} values measured, " in said.err
    assert ws.gpu(out).name == "mine"
    assert cli.main(command) == 2
    assert "mine.yaml: exists already; choose another name or give --overwrite" in (
        capsys.readouterr().err
    )
    assert cli.main([*command, "--overwrite"]) == 0


def test_json_and_csv(file, capsys):
    assert cli.main(["calibrate", str(file), "--base", "rtx3080", "--json"]) == 0
    rows = {row["field"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["fp32_latency"]["measured"] == 4
    assert rows["latency_counts"]["difference"] is None
    assert rows["num_sms"]["how"].endswith("the driver says so")
    assert cli.main(["calibrate", str(file), "--base", "rtx3080", "--csv"]) == 0
    assert capsys.readouterr().out.startswith("field,unit,measured,base,difference,how\n")


def test_the_source_is_printed_or_written(tmp_path, capsys):
    assert cli.main(["calibrate", "--source"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("// Measures what a GPU description")
    assert cli.main(["calibrate", "--source", "-o", str(tmp_path / "calibrate.cu")]) == 0
    assert (tmp_path / "calibrate.cu").read_text() == printed
    assert cli.main(["calibrate", "--source", "-o", str(tmp_path / "calibrate.cu")]) == 2


def test_nothing_to_do(capsys):
    assert cli.main(["calibrate"]) == 2
    assert "give the output of the program, or --source" in capsys.readouterr().err


FAKE_NVCC = """#!{python}
import pathlib, sys
program = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
program.write_text({program!r})
program.chmod(0o755)
"""


def with_compiler(monkeypatch, folder, program):
    """Put an nvcc first on the path that makes a given script of every source."""
    nvcc = folder / "nvcc"
    nvcc.write_text(FAKE_NVCC.format(python=sys.executable, program=program))
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_run_compiles_runs_and_reads(file, tmp_path, monkeypatch, capsys):
    with_compiler(monkeypatch, tmp_path, f"#!/bin/sh\n/bin/cat {file}\n")
    kept = tmp_path / "kept.txt"
    assert cli.main(["calibrate", str(kept), "--run", "--base", "rtx3080", "--csv"]) == 0
    assert kept.read_text() == file.read_text()
    assert "\nl2_latency,cycles,212.0," in capsys.readouterr().out
    assert cli.main(["calibrate", str(kept), "--run"]) == 2
    assert "kept.txt: exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("#!/bin/sh\necho calibrate: no device >&2; exit 1\n", "GPU: calibrate: no device"),
        ("#!/bin/sh\nexit 3\n", "GPU: it ended with status 3 and no message"),
        ("#!/bin/sh\necho hello\n", "run.txt:1: not the output of the calibration program"),
    ],
)
def test_programs_that_fail(tmp_path, monkeypatch, capsys, program, message):
    with_compiler(monkeypatch, tmp_path, program)
    assert cli.main(["calibrate", "--run", "--base", "rtx3080"]) == 2
    assert message in capsys.readouterr().err


def test_without_a_compiler(monkeypatch, capsys):
    monkeypatch.setattr("warpstack.calibration.program.find_nvcc", lambda: None)
    assert cli.main(["calibrate", "--run"]) == 2
    assert "nvcc was not found; install the CUDA toolkit, or write the program" in (
        capsys.readouterr().err
    )


def test_a_compiler_that_fails(tmp_path, monkeypatch, capsys):
    (tmp_path / "nvcc").write_text("#!/bin/sh\necho nvcc fatal: no compiler of C++ >&2; exit 1\n")
    (tmp_path / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cli.main(["calibrate", "--run"]) == 2
    assert "nvcc does not compile the program: nvcc fatal: no compiler of C++" in (
        capsys.readouterr().err
    )


def test_the_package_has_the_source():
    """As it is installed, too."""
    command = [sys.executable, "-m", "warpstack", "calibrate", "--source"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "__global__ void stream(" in text
