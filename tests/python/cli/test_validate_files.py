"""What ``validate`` says of files in place of predictions."""

import json
import re

import pytest

from warpstack.cli import main

REFERENCE = "kernel,cycles\n1,100\n"
ROW = {"kernel": 1, "name": "k", "gpu": "g", "gpu_changes": "", "model": "m", "cycles": 110.0}


@pytest.fixture
def run(tmp_path, capsys):
    """Return a function that validates a file with some content, and what it printed."""
    (tmp_path / "r.csv").write_text(REFERENCE)

    def call(name, content, *options):
        data = content if isinstance(content, bytes) else content.encode()
        (tmp_path / name).write_bytes(data)
        status = main(["validate", str(tmp_path / name), str(tmp_path / "r.csv"), *options])
        return status, capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", "empty.csv: is empty: the command that was to write it did not"),
        ("blank.csv", "\n \n", "blank.csv: is empty"),
        ("saxpy.cu", "__global__ void f() {\n  g(1, 2, 3);\n}\n", "saxpy.cu: is source text"),
        ("text.txt", "one\ntwo, three, four\n", "text.txt: is not a table"),
        ("other.csv", "a,b\n1,2\n", "other.csv: has no column kernel"),
        ("other.json", '{"a": 1}', "is JSON, but not the list of rows that predict --json prints"),
        ("list.json", "[1, 2]", "list.json: not predictions: a list, but not of the rows"),
        ("rows.json", '[{"a": 1}]', "rows.json: not predictions: .*kernel"),
        ("cut.json", '[{"kernel": 1},\n{"ker', "cut.json: not predictions: line 2: damaged JSON"),
        ("long.csv", "kernel,cycles\n1,2\n1,2,3\n", "line 3 has 3 values under 2 columns"),
        ("quote.csv", 'kernel,cycles\n1,"2\n', "quote.csv: not predictions: damaged CSV"),
        ("bytes.csv", b"kernel,name,cycles\n1,\xff\xfe,2\n", "not predictions: damaged CSV"),
        ("a.ncu-rep", b"NVR\0\1", "is a report of Nsight Compute, which is a reference and"),
        ("packed.csv", b"\x1f\x8b\x08", "packed.csv: is packed by gzip"),
        ("own.csv", "name,time_us\nk,9\n", "is a reference, which comes last"),
        ("run.traceg", "-kernel name = k\n", "run.traceg: is a trace"),
        ("big.yaml", "name: g\n", "big.yaml: describes a GPU or a sweep"),
    ],
)
def test_files_that_are_no_predictions(run, name, content, message):
    status, printed = run(name, content)
    assert status == 2
    assert re.search(message, printed.err)
    assert "give what predict --csv or predict --json writes" in printed.err
    assert printed.err.count("\n") == 1
    assert "tokenizing" not in printed.err
    assert "codec" not in printed.err


def test_a_folder(tmp_path, run, capsys):
    run("x.csv", "")
    assert main(["validate", str(tmp_path), str(tmp_path / "r.csv")]) == 2
    error = capsys.readouterr().err
    assert "is a folder; give what predict --csv or predict --json writes" in error


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_predictions_in_other_encodings(run, encoding):
    text = ",".join(ROW) + "\n" + ",".join(map(str, ROW.values())) + "\n"
    for name, content in (("p.csv", text), ("p.json", json.dumps([ROW]))):
        status, printed = run(name, content.encode(encoding), "--json")
        assert status == 0, printed.err
        assert json.loads(printed.out)[0]["mape"] == pytest.approx(0.1)


def test_tables_are_in_the_unit_of_the_reference(tmp_path, run):
    row = {**ROW, "time_us": 9.0}
    reference = tmp_path / "own.csv"
    reference.write_text("name,time_us\nk,8.0\n")
    (tmp_path / "p.json").write_text(json.dumps([row]))
    text = json.dumps([row])
    (tmp_path / "r.csv").write_text(reference.read_text())
    status, printed = run("p.json", text)
    assert status == 0
    assert printed.out.startswith("time (us), predicted against reference: ")
    assert "MAE (us)" in printed.out
    assert "cycles" not in printed.out
    _, printed = run("p.json", text, "--by", "kernel", "--wide")
    assert printed.out.count("(us)") >= 3
