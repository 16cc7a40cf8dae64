"""What no card can do is refused; what hardly one does is noted."""

import re

import pytest

import warpstack as ws
from card_output import output
from warpstack import cli
from warpstack._util.output_file import OutputFile


def changed(tmp_path, *changes, **values):
    """Write an output with the values of lines by the beginning of their keys times a factor."""
    lines = []
    for line in output(**values).splitlines():
        *words, value, unit = line.split()
        for key, factor in changes:
            if words and words[0] == key:
                number = float(value) * factor
                value = str(round(number) if unit in ("kHz", "bytes") else f"{number:.6f}")
        lines.append(" ".join([*words, value, unit]))
    path = tmp_path / "run.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    ("key", "factor", "text"),
    [
        ("clock.time", 1e-3, r"a clock of 1250 GHz is more than 2\.8, 2 times the driver's clock "),
        ("clock.time", 1e3, r"a clock of 0\.0013 GHz is less than 0\.028, 1/50 of the driver's "),
        ("stream.once", 0.1, r"3920 GB/s of DRAM are more than 1792, 4 times what the driver's"),
        ("stream.once", 0.22, r"1782 GB/s of DRAM .* are more than 1\.25 times the 1400 of L2"),
        ("stream.passes", 0.1, r"1\.5e\+04 GB/s of L2 are more than 6400, 256 bytes per cycle"),
        ("latency.fp32", 0.1, r"0\.4 cycles; what waits for the one before takes at least 1"),
        ("latency.shared", 0.01, r"0\.24 cycles; what waits"),
        ("chase.ca", 0.01, r"0\.33 cycles; what waits"),
        ("interval.fp32", 0.25, r"16 instructions per cycle are more than 8, 2 of each of the 4"),
        ("launch.events", 0, r"0 ns; a kernel takes some time"),
    ],
)
def test_the_impossible_is_refused_by_line_with_its_limit(tmp_path, key, factor, text):
    values = {"noc_bandwidth_gbs": 1400.0} if factor == 0.22 else {}
    path = changed(tmp_path, (key, factor), **values)
    key = "clock.cycles" if key == "clock.time" else key
    text = text.replace(" .* ", " ")
    with pytest.raises(ws.InputError, match=text) as caught:
        ws.calibration.calibrate(path, base="rtx3080")
    line = re.match(r".*run\.txt:(\d+): ", str(caught.value))
    assert path.read_text().splitlines()[int(line[1]) - 1].startswith(f"{key} ")
    assert "run the program again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_clock_that_the_driver_does_not_say(tmp_path):
    path = changed(tmp_path, ("device.clock", 0))
    ws.calibration.calibrate(path, base="rtx3080")
    path = changed(tmp_path, ("device.clock", 0), ("clock.time", 1e-3))
    with pytest.raises(ws.InputError, match="1250 GHz is more than 10, the most and the least of"):
        ws.calibration.calibrate(path, base="rtx3080")


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            [("clock.time", 4)],
            "clock_ghz: the card held 0.3125 GHz, and the driver says 1.4: locked",
        ),
        (
            [("clock.time", 0.5)],
            "clock_ghz: the card held 2.5 GHz, and the driver says 1.4: the dr",
        ),
        (
            [("device.memory_clock", 0.5)],
            "dram_bandwidth_gbs: all SMs read 392 GB/s, and the driver",
        ),
        ([("stream.once", 3)], "dram_bandwidth_gbs: all SMs read 130.7 GB/s, and the driver"),
        (
            [("launch.events", 1e4)],
            "launch_us_events: 35000 is more than 4 times what any described",
        ),
        ([("chase.cg", 100), ("chase.dram", 100)], "l2_latency: 21200 is more than 4 times what"),
    ],
)
def test_the_doubtful_is_noted(tmp_path, changes, note):
    path = changed(tmp_path, *changes)
    found = ws.calibration.calibrate(path, base="rtx3080")
    assert [said for said in found.notes if said.startswith(note)]


def test_a_usual_card_is_not_doubted(tmp_path):
    notes = ws.calibration.calibrate(changed(tmp_path), base="rtx3080").notes
    assert not [
        note for note in notes if re.search("any described|the card held|all SMs read", note)
    ]
    assert not [note for note in notes if "measured once" in note]


def test_a_trial_is_noted(tmp_path):
    path = tmp_path / "run.txt"
    lines = [*{tuple(line.split()[:-2]): line for line in output().splitlines()}.values()]
    lines[-1] = f"end {len(lines) - 1} lines"
    path.write_text("\n".join(lines))
    notes = ws.calibration.calibrate(path, base="rtx3080").notes
    assert any(
        note.startswith("each point was measured once, as `calibrate quick`") for note in notes
    )


# --- encodings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
def test_what_powershell_and_editors_make_of_it(tmp_path, encoding):
    text = output().replace("\n", "\r\n")
    if encoding == "utf-16-be":
        text = "\ufeff" + text
    (tmp_path / "run.txt").write_bytes(text.encode(encoding))
    plain = tmp_path / "plain.txt"
    plain.write_text(output())
    found, expected = (
        ws.calibration.calibrate(f, base="rtx3080") for f in (tmp_path / "run.txt", plain)
    )
    assert found.gpu == expected.gpu


@pytest.mark.parametrize("data", [b"\xff\xfea", "warpstack-calibration \u20ac".encode("utf-16")])
def test_damaged_or_other_text_in_two_bytes(tmp_path, data):
    (tmp_path / "run.txt").write_bytes(data)
    with pytest.raises(ws.InputError, match=r"run\.txt:1: not .*calibration program"):
        ws.calibration.calibrate(tmp_path / "run.txt")


# --- the command --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--run"], "--run"),
        (["--base", "rtx3080"], "--base"),
        (["--name", "mine", "--run"], "--run, --name"),
        (["run.txt"], "a file"),
        (["--json"], "--json"),
        (["--csv"], "--csv"),
    ],
)
def test_what_has_no_effect_beside_source(capsys, more, named):
    assert cli.main(["calibrate", "--source", *more]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"so that {named} would have no effect" in said.err


def test_a_file_that_is_there_is_not_said_to_be_of_another(tmp_path, capsys):
    """Neither a description, which has no mark, nor a picture of a kind that can have none."""
    changed(tmp_path)
    out = tmp_path / "mine.yaml"
    command = ["calibrate", str(tmp_path / "run.txt"), "--base", "rtx3080", "-o", str(out)]
    assert cli.main(command) == 0
    before = out.read_bytes()
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert "mine.yaml: exists already; choose another name or give --overwrite" in said
    assert out.read_bytes() == before
    picture = tmp_path / "picture.jpg"
    picture.write_bytes(b"")
    with pytest.raises(ws.InputError, match="exists already and is of a kind that does not say"):
        OutputFile(picture).check()
