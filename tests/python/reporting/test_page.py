"""The report: one file that needs nothing else, says what the stages say, and shows in a browser."""

import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
from matplotlib.text import Text

import warpstack as ws
from warpstack.cli import main
from warpstack.reporting import page, pdf

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Page(HTMLParser):
    """Checks that elements are closed in order, and keeps ids and links."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.tags = [], [], [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.add(tag)
        if "id" in values:
            self.ids.append(values["id"])
        if "href" in values:
            self.links.append(values["href"])
        assert "src" not in values
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def app():
    return ws.App(
        [
            ws.patterns.strided(gs=gs, iterations=3, blocks=28, launch_id=number)
            for number, gs in enumerate((1, 32), 1)
        ]
    )


@pytest.fixture(scope="module")
def path(app, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    ws.report(app, "pascal-mdm", path, models=["mdm"])
    return path


def test_needs_nothing_else(path):
    text = path.read_text()
    page = Page(text)
    assert not page.tags & {"script", "link", "img", "iframe"}
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} == set(page.ids)
    assert len(page.ids) == len(set(page.ids)) == 10
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text
    assert len(text) < 300_000


def test_says_what_the_stages_say(app, path):
    text = re.sub(r"<[^>]*>", " ", path.read_text())
    results = ws.simulate(app, "pascal-mdm")
    longest = max(results, key=lambda result: result.cycles)
    assert longest is results[1]
    assert f"{longest.cycles:,} cycles" in text
    assert app.digest in text
    assert longest.kernel.digest in text
    row = ws.predict(app, "pascal-mdm", ["mdm"]).iloc[1]
    assert f"{row['cycles'] / longest.cycles - 1:+.0%}" in text
    assert longest.occupancy["limit"].replace("_", " ") in text
    assert ws.gpu("pascal-mdm").dram_bandwidth_gbs == 480
    tried = ws.validation.what_if(app, "pascal-mdm", ["mdm"], simulate=False)
    (gain,) = tried.loc[tried["change"] == "2 x DRAM bandwidth", "speedup"]
    assert re.search(
        rf"dram_bandwidth_gbs = 960, dram_clock_ghz = 5\s+\S+ \w+\s+{gain:.3g}\s", text
    )


def test_errors(app, tmp_path):
    with pytest.raises(ws.InputError, match=r"none\.cu: cannot be read"):
        ws.report(app, "pascal-mdm", tmp_path / "r.html", source=tmp_path / "none.cu")
    with pytest.raises(ws.InputError, match="models: none is given"):
        ws.report(app, "pascal-mdm", tmp_path / "r.html", models=[])
    with pytest.raises(ws.InputError, match=r"there is no folder .*; make it first"):
        ws.report(app, "pascal-mdm", tmp_path / "no" / "r.html", models=["mdm"])


def test_source_is_text(tmp_path):
    """Source that looks like HTML is shown as it is."""
    source = tmp_path / "k.cu"
    source.write_text("<script>alert(1)</script>\n")
    kernel = ws.patterns.strided(gs=1, iterations=1, blocks=1)
    ws.report(kernel, "pascal-mdm", tmp_path / "r.html", models=["mdm"], source=source)
    assert "<script>" not in (tmp_path / "r.html").read_text()


def test_command(tmp_path, capsys, app):
    ws.save(app, tmp_path / "saved")
    output = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "saved"), "--gpu", "pascal-mdm", "-o", str(output)]) == 0
    assert "page.html" in capsys.readouterr().out
    Page(output.read_text())


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [1200, 400])
def test_in_a_browser(path, tmp_path, width):
    picture = tmp_path / "page.png"
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path}/profile",
            f"--window-size={width},2000",
            f"--screenshot={picture}",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    image = matplotlib.image.imread(picture)
    assert image.shape[:2] == (2000, width)
    # There are pictures in it: colours of the stack, not only ink and paper.
    pixels = image[::7, ::3, :3].reshape(-1, 3)
    assert len(np.unique((pixels * 255).round().astype(int), axis=0)) > 20


def test_the_pdf_says_what_the_page_says(app, tmp_path, monkeypatch):
    drawn, content = [], pdf._Sheets.content
    monkeypatch.setattr(
        pdf._Sheets, "content", lambda self: drawn.extend(self._figures) or content(self)
    )
    source = tmp_path / "x.cu"
    source.write_text("a[$x_1] = b$ & c;\n" * 40)
    for ending in ("html", "pdf"):
        ws.report(app, "pascal-mdm", tmp_path / f"r.{ending}", models=["mdm"], source=source)
    written = (tmp_path / "r.pdf").read_bytes()
    assert written.startswith(b"%PDF")
    assert len(drawn) > 1
    assert len(re.findall(rb"/Type /Page\b", written)) == len(drawn)
    assert b"/FontFile2" in written
    assert b"/Type3" not in written
    said = " ".join(text.get_text() for figure in drawn for text in figure.findobj(Text))
    body = (tmp_path / "r.html").read_text().partition("<main>")[2]
    body = re.sub(r"<title>.*?</title>|<summary>.*?</summary>", " ", body)
    words = set(unescape(re.sub(r"<[^>]*>", " ", body)).split())
    # Words longer than a column are broken there.
    joined = re.sub(r"\s", "", said)
    missing = {word for word in words if word not in joined and len(word) < 12}
    assert len(words) > 100
    assert not missing
    # Nothing leaves the page.
    for figure in drawn:
        figure.canvas.draw()
        for text in figure.findobj(Text):
            if text.get_text():
                box = text.get_window_extent()
                assert box.x0 >= 0, text
                assert box.x1 <= figure.bbox.width, text
    ws.report(app, "pascal-mdm", tmp_path / "r.pdf", models=["mdm"], source=source)
    assert (tmp_path / "r.pdf").read_bytes() == written  # replaced, and the same


@pytest.mark.parametrize("name", ["r.txt", "r", "r.ps", "r.pdf.gz"])
def test_other_endings_are_refused_before_the_work(app, tmp_path, monkeypatch, name, capsys):
    monkeypatch.setattr(page, "simulate", lambda *a, **k: pytest.fail("it worked first"))
    with pytest.raises(ws.InputError, match=r"give a name that ends in \.html or \.pdf"):
        ws.report(app, "pascal-mdm", tmp_path / name)
    assert main(["report", str(tmp_path / "no-trace"), "-o", str(tmp_path / name)]) == 2
    assert "ends in .html or .pdf" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / name).exists()
