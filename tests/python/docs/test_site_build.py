"""The site as it is built: tables in boxes that scroll, the front page, and its recording."""

import html
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pandas as pd
import pytest

import warpstack as ws

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
RECORDING = DOCS / "images" / "demo.svg"
STILL = DOCS / "_static" / "demo-still.svg"
PACKAGES = ("sphinx", "furo", "myst_nb", "numpydoc")


def needs_sphinx():
    for package in PACKAGES:
        pytest.importorskip(package, reason=f"{package} is not here (warpstack[docs] brings it)")


@pytest.fixture(scope="module")
def extensions():
    """Make the extensions of the site importable."""
    needs_sphinx()
    sys.path.insert(0, str(DOCS / "_extensions"))
    yield
    sys.path.remove(str(DOCS / "_extensions"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build all pages but those of notebooks and of the Python reference, and return the folder."""
    needs_sphinx()
    folder = tmp_path_factory.mktemp("site")
    left_out = shutil.ignore_patterns("generated", "__pycache__")
    shutil.copytree(DOCS, folder / "docs", symlinks=False, ignore=left_out)
    shutil.copy(ROOT / "CHANGELOG.md", folder)
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    options = {
        "exclude_patterns": "notebooks/*,reference/api.rst,**/notebooks,data",
        "autosummary_generate": "0",
        "nb_execution_mode": "off",
    }
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html"]
    command += [f"-D{name}={value}" for name, value in options.items()]
    paths = [str(Path(ws.__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("WARPSTACK_REPOSITORY", None)
    subprocess.run(
        [*command, str(folder / "docs"), str(folder / "html")],
        check=True,
        stderr=subprocess.DEVNULL,  # links into what is left out
        env=environment,
    )
    return folder / "html"


@pytest.mark.slow
def test_every_table_scrolls_in_a_box_of_its_own(site):
    tables = 0
    for page in sorted({*site.rglob("*.html")} - {site / "genindex.html", site / "search.html"}):
        text = page.read_text(encoding="utf-8")
        tables += (here := len(re.findall(r"<table\b", text)))
        boxed = re.findall(r'<div class="[^"]*table-wrapper[^"]*"[^>]*>\s*<table\b', text)
        assert len(boxed) == here, page.name
    assert tables > 100


@pytest.mark.slow
def test_numbers_are_to_the_right(site):
    text = (site / "reference/generated/gpu-fields.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr.*?</tr>", text.rpartition("<table")[2], re.DOTALL)
    (row,) = [row for row in rows if ">num_sms<" in row]
    cells = re.findall(r"<td([^>]*)>", row)
    assert len(cells) == len(ws.gpus()) + 1
    assert all("text-right" in cell for cell in cells[1:])
    assert "text-right" not in cells[0]


@pytest.mark.slow
def test_pages_have_their_tables(site):
    """Tables of CSV files are on their pages, with links to the files; pictures are, too."""
    text = (site / "quality/hardware.html").read_text(encoding="utf-8")
    assert text.count("<table") > 2
    assert "data-table" not in text
    files = re.findall(r'<a class="reference download internal"[^>]*href="\.\./([^"]+)"', text)
    assert {Path(file).name for file in files} >= {"summary.csv", "ratios.csv"}
    assert all((site / file).is_file() for file in files)
    assert not (site / "data").exists()
    for name in ("quality/validation-models", "how-to/exploring"):
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        pictures = re.findall(r'<img [^>]*src="(\.\./_images/[^"]+)"', text)
        assert len(pictures) > 1
        assert all((site / name).parent.joinpath(path).exists() for path in pictures)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", ""),
        (":columns: b\n", "there is no column 'b'; there are: a"),
        (":rows: a = 3\n", "rows: no 'a' is '3'"),
    ],
)
def test_a_table_that_its_file_does_not_have_ends_the_build(options, said, tmp_path):
    needs_sphinx()
    (tmp_path / "x.csv").write_text("a\n1\n")
    (tmp_path / "index.md").write_text(f"# Title\n\n```{{data-table}} x.csv\n{options}```\n")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_extensions')!r})\n"
        "extensions = ['myst_nb', 'data_table']\n"
    )
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", tmp_path, tmp_path / "html"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode == 0) == (not said)
    assert said in done.stderr
    if said:
        assert f"{tmp_path / 'index.md'}:3: data-table x.csv: " in done.stderr


@pytest.mark.slow
def test_front_page(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    pictures = {
        Path(re.search(r'src="([^"]+)"', tag)[1]).name: html.unescape(
            re.search(r'alt="([^"]*)"', tag)[1]
        )
        for tag in re.findall(r"<img [^>]+>", text)
    }
    assert {"demo.svg", "matvec.png", "explorer.png"} <= set(pictures)
    assert all(len(words) > 30 for words in pictures.values())
    for kind in ("tutorial", "how-to", "explanation", "reference"):
        assert f'href="{kind}/index.html"' in text
    assert "explore.ipynb" in text  # to download and run
    assert "{{" not in text
    assert "mybinder.org" not in text  # which needs the address of a repository
    assert (site / "searchindex.js").stat().st_size > 10_000


def test_recording():
    """It is small, stands still for who prefers that, and shows what the command prints."""
    text = RECORDING.read_text(encoding="utf-8")
    assert len(text) < 300_000
    root = ET.fromstring(text)
    assert "".join(root.itertext()).startswith("\nwarpstack at a terminal")
    style = root.find("{http://www.w3.org/2000/svg}style").text
    assert "prefers-reduced-motion: reduce" in style
    delays = [float(x) for x in re.findall(r"animation-delay:([\d.]+)s", text)]
    assert 10 < max(delays) < 20
    assert sum("infinite" in rule for rule in style.splitlines()) == 0


def test_still_of_the_recording():
    """It has the lines of all screens, each in a place of its own, and does not move."""
    text = STILL.read_text(encoding="utf-8")
    assert not re.search("animation|@keyframes", text)
    svg = "{http://www.w3.org/2000/svg}text"
    moving, lines = (list(ET.parse(path).getroot().iter(svg)) for path in (RECORDING, STILL))
    assert [line.text for line in lines] == [line.text for line in moving]
    assert len({line.get("y") for line in lines}) == len(lines)
    css = (DOCS / "_static" / "site.css").read_text(encoding="utf-8")
    assert f'url("{STILL.name}")' in css


@pytest.mark.slow
def test_recording_is_what_its_script_makes(tmp_path):
    made, still = tmp_path / "demo.svg", tmp_path / "still.svg"
    script = ROOT / "tools" / "record-demo"
    paths = [str(Path(ws.__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    subprocess.run(
        [sys.executable, script, "--output", made, "--still", still],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert made.read_text(encoding="utf-8") == RECORDING.read_text(encoding="utf-8")
    assert still.read_text(encoding="utf-8") == STILL.read_text(encoding="utf-8")


def test_data_frame(extensions):
    import tables

    frame = pd.DataFrame({"model": ["mdm", "mt"], "cycles": [1200.5, float("nan")], "ok": [1, 2]})
    text = tables.styled(frame._repr_html_())
    assert "<style" not in text
    assert text.count("table-wrapper") == 1
    assert text.count("<th>model</th>") == 1
    assert text.count('<th class="text-right">cycles</th>') == 1
    assert text.count('<td class="text-right">') == 4
    assert text.count("<td>mdm</td>") == 1


def test_index_of_two_levels(extensions):
    """Cells that span rows are in the first row only; columns are counted from the right."""
    import tables

    frame = pd.DataFrame({"app": ["a", "a"], "model": ["x", "y"], "n": [1, 2]})
    text = tables.styled(frame.set_index(["app", "model"]).to_html())
    assert text.count('<td class="text-right">') == 2
    assert "<th>y</th>" in text


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2.5", "-3 %"], True),
        (["1,200", "", "-", "1e-3"], True),
        (["1.3 %", "4 KiB"], True),
        (["1", "2 of 3"], False),
        (["", "-"], False),
        (["mdm"], False),
    ],
)
def test_what_is_a_column_of_numbers(extensions, cells, expected):
    import tables

    assert tables.are_numbers(cells) is expected


def test_types_in_signatures(extensions):
    import numpy.typing as npt
    import signatures
    from sphinx.util.typing import stringify_annotation

    wall = stringify_annotation(npt.ArrayLike, "smart")
    assert signatures.readable(f"(a: {wall}, b: int)") == "(a: ~numpy.typing.ArrayLike, b: int)"
    assert signatures.readable("(order: AccessOrder = 'auto')") == (
        "(order: Literal['auto', 'round_robin', 'greedy', 'timed'] = 'auto')"
    )
    assert signatures.readable("(gpu: GpuLike)") == (
        "(gpu: ~warpstack.Gpu | str | ~os.PathLike[str])"
    )
    assert signatures.readable("(x: ~warpstack.Profiler)") == "(x: ~warpstack.Profiler)"


def test_the_packages_are_those_of_the_extra():
    extra = re.search(r"^docs = \[(.*)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    for package in PACKAGES:
        assert f'"{package.replace("_", "-")}>=' in extra
