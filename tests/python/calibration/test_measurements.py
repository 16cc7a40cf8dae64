"""Reading the program's output: whole ones as they are, all others as one error with its line."""

import random

import pytest

import warpstack as ws
from card_output import output
from effort import rounds
from warpstack.calibration.measurements import Sample, read_measurements

TEXT = output()
LINES = TEXT.splitlines()


def read(tmp_path, text):
    path = tmp_path / "run.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_measurements(path)


def refused(tmp_path, text):
    with pytest.raises(ws.InputError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(tmp_path / "run.txt"))
    return message.removeprefix(str(tmp_path / "run.txt"))


def test_a_whole_output(tmp_path):
    found = read(tmp_path, TEXT)
    assert found.texts["device.name"] == "Plain_Card_7"
    assert found.properties["device.l2_size"] == 5120 << 10
    first = LINES.index("chase.cg footprint=65536 steps=1024 217158.0 cycles")
    assert found.samples["chase.cg"][0] == Sample((65536, 1024), 217158.0, first + 1)
    assert sum(map(len, found.samples.values())) == len(LINES) - 16


def test_lines_of_windows(tmp_path):
    assert read(tmp_path, TEXT.replace("\n", "\r\n")) == read(tmp_path, TEXT)


@pytest.mark.parametrize("kept", [1, 2, 20, len(LINES) // 2, len(LINES) - 1])
def test_a_run_that_was_cut_off(tmp_path, kept):
    message = refused(tmp_path, "\n".join(LINES[:kept]) + "\n")
    assert message.startswith(f":{kept}: the output stops here, without its last line `end`")
    assert "run the program again" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": the file is empty; run the program again"),
        ("hello\n", ":1: not the output of the calibration program, which begins with"),
        (
            "warpstack-calibration 2 format\nend 1 lines\n",
            ":1: format '2' is not 1: another version",
        ),
        (TEXT + TEXT, f":{len(LINES) + 1}: 'warpstack-calibration 1 format' follows the last line"),
        (
            "\n".join(LINES[:500] + LINES[501:]),
            f":{len(LINES) - 1}: 'end {len(LINES) - 1} lines' does",
        ),
        ("\n".join([*LINES[:5], "end 5 lines"]), ": there is no line device.sms; run"),
        (TEXT.encode().replace(b"Plain", b"Pl\xe4in"), ":2: not a line of the calibration program"),
    ],
)
def test_files_that_are_not_one_run(tmp_path, text, message):
    assert refused(tmp_path, text).startswith(message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("chase.cg", "'chase.cg' is not KEY [PARAMETER=VALUE]... VALUE UNIT"),
        (
            "chase.cd footprint=1 steps=1 1 cycles",
            "there is no measurement 'chase.cd'; did you mean",
        ),
        ("chase.cg footprint=1 steps=1 1 ns", "chase.cg: the unit 'ns' is not cycles"),
        (
            "chase.cg steps=1 1 cycles",
            "chase.cg: the parameters 'steps=1' are not footprint=NUMBER",
        ),
        ("chase.cg footprint=1 steps=-1 1 cycles", "chase.cg: steps = '-1' is not a whole number"),
        (
            "chase.cg footprint=1 steps=1.5 1 cycles",
            "chase.cg: steps = '1.5' is not a whole number",
        ),
        (
            "chase.cg footprint=1 steps=1 nan cycles",
            "chase.cg = 'nan' is not a number of at least 0",
        ),
        ("chase.cg footprint=1 steps=1 -2 cycles", "chase.cg = '-2' is not a number of at least 0"),
        ("chase.cg footprint=1 steps=1 1e9 cycles", "chase.cg = '1e9' is not a number"),
        ("launch.events steps=1 1 ns", "launch.events: the parameters 'steps=1' are not none"),
        ("device.sms 0 count", "device.sms = '0' is not a whole number of at least 1"),
        ("device.sms 20 count", "device.sms is given twice"),
    ],
)
def test_damaged_lines(tmp_path, line, message):
    lines = [*LINES[:100], line, *LINES[100:]]
    said = refused(tmp_path, "\n".join(lines))
    assert said.startswith(f":101: {message}")
    assert said.endswith("run the program again, with its standard output in the file")


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ws.InputError, match=r"none\.txt: cannot read the output .*: No such file"):
        read_measurements(tmp_path / "none.txt")
    with pytest.raises(ws.InputError, match="is a folder"):
        read_measurements(tmp_path)


def test_random_damage(tmp_path):
    """Bytes that are lost or changed: the run is read as another one, or there is one error."""
    chance = random.Random(3)
    messages = []
    tried = max(rounds(300), 100)  # one in thirty is read as another run
    for _ in range(tried):
        data = bytearray(TEXT.encode())
        for _ in range(chance.choice((1, 2, 5))):
            place = chance.randrange(len(data))
            if chance.random() < 0.5:
                data[place] = chance.randrange(256)
            else:
                del data[place : place + chance.choice((1, 3, 50))]
        (tmp_path / "run.txt").write_bytes(data)
        try:
            ws.calibration.calibrate(tmp_path / "run.txt", base="rtx3080")
        except ws.InputError as error:
            messages.append(str(error))
    assert not [message for message in messages if "\n" in message]
    assert 0 < len(messages) < tried  # a digit of a sample more or less changes no median
