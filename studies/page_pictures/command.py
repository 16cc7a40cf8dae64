"""What tools/pictures does: draw, compare, list."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pages
import pandas as pd

from warpstack import figures
from warpstack.figures.report import staleness

from . import freshness
from .recipes import FIGURES, PICTURES, Drawn, NoNumbers, Recorded, kept

#: Relative: numbers to six digits of different machines.
TOLERANCE = 2e-5


def name_of(picture: Drawn | Recorded | str) -> str:
    """Return a picture's file in docs."""
    if isinstance(picture, str):
        return f"figures/{picture}.png"
    return f"images/{picture.name}" if isinstance(picture, Drawn) else picture.name


def table() -> dict[str, Drawn | Recorded | str]:
    """Return all pictures by their file in docs; the papers' figures are names of `warpstack figure`."""
    papers = [name for name in figures.names() if (FIGURES / f"{name}.csv").is_file()]
    return {name_of(one): one for one in (*PICTURES, *papers)}


def digests(picture: Drawn | Recorded | str, docs: Path = pages.DOCS) -> dict[str, str]:
    """Return what the manifest holds of a picture that is as it should be."""
    found = {"picture": freshness.digest_of_files([docs / name_of(picture)])}
    if isinstance(picture, Drawn):
        found["code"] = freshness.code_digest([picture.draw])
        found["data"] = freshness.digest_of_files(picture.data)
    elif isinstance(picture, Recorded):
        found["code"] = freshness.digest_of_files(picture.sources)
    return found


def stale(picture: Drawn | Recorded | str, docs: Path = pages.DOCS) -> str:
    """Return what a picture is not made from, or what is wrong with its file; nothing if it is fresh."""
    name = name_of(picture)
    if not (docs / name).is_file():
        return "is missing"
    if isinstance(picture, str):
        cause = staleness(figures.get(picture), docs / "figures")
        if cause:
            return f"its {cause} has changed"
    was = freshness.recorded().get(name)
    if was is None:
        return "is not in the manifest"
    now = digests(picture, docs)
    words = {"code": "what draws it has changed", "data": "its data has changed"}
    words["picture"] = "its file has been changed by hand"
    return next((text for key, text in words.items() if was.get(key) != now.get(key)), "")


def different_numbers(picture: Drawn) -> str:
    """Compute the numbers of a picture, and return which column differs from those kept, if any."""
    if picture.numbers is None:
        return ""
    was = pd.read_csv(picture.data[0])
    text = io.StringIO()
    picture.numbers().to_csv(text, index=False, float_format="%.6g")
    text.seek(0)
    now = pd.read_csv(text)
    if list(was) != list(now) or len(was) != len(now):
        return "its numbers have other rows or columns"
    for column in was:
        if pd.api.types.is_numeric_dtype(was[column]) and pd.api.types.is_numeric_dtype(
            now[column]
        ):
            same = np.allclose(was[column], now[column], rtol=TOLERANCE, equal_nan=True)
        else:
            same = was[column].fillna("").astype(str).equals(now[column].fillna("").astype(str))
        if not same:
            return f"its numbers have changed: {column}"
    return ""


def draw(picture: Drawn, path: Path) -> None:
    """Draw a picture into a file."""
    figure = picture.draw()
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=picture.dpi, metadata={"Software": None})
    plt.close("all")
    path.write_bytes(content.getvalue())


def chosen(names: Sequence[str]) -> dict[str, Drawn | Recorded | str]:
    """Return the pictures asked for, all without names; raises `SystemExit` for an unknown one."""
    known = table()
    short = {Path(name).stem: name for name in known}
    found = {}
    for name in names or known:
        key = name.removeprefix("docs/")
        key = key if key in known else short.get(Path(key).stem, "")
        if not key:
            raise SystemExit(f"tools/pictures: {name}: no such picture; --list names them")
        found[key] = known[key]
    return found


def make(asked: dict[str, Drawn | Recorded | str], numbers: bool) -> Iterator[str]:
    """Make pictures, and yield a line on each; what is not made here is left as it is."""
    if numbers:
        for name, picture in asked.items():
            if isinstance(picture, Drawn) and picture.numbers is not None:
                try:
                    kept(picture.numbers(), picture.data[0])
                except NoNumbers as reason:
                    yield f"{name}: numbers as they are: {reason}"
    papers = [picture for picture in asked.values() if isinstance(picture, str)]
    if papers:
        everything = len(papers) == len([one for one in table().values() if isinstance(one, str)])
        command = ["figure", *(["--all"] if everything else papers), "--redraw", "-o", str(FIGURES)]
        # Which claims hold is in the index and in claims.csv.
        words = [sys.executable, "-m", "warpstack", *command]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    ran = set()
    entries = {}
    for name, picture in asked.items():
        if isinstance(picture, Recorded) and not picture.command:
            yield f"{name}: as it is: {picture.of}"
            continue
        if isinstance(picture, Drawn):
            draw(picture, pages.DOCS / name)
        elif isinstance(picture, Recorded) and picture.command not in ran:
            subprocess.run([sys.executable, *picture.command], check=True)
            ran.add(picture.command)
        entries[name] = digests(picture)
        yield f"{name}: drawn"
    freshness.record(entries)


def check(asked: dict[str, Drawn | Recorded | str], numbers: bool) -> Iterator[str]:
    """Yield a line on each picture that is stale."""
    for name, picture in asked.items():
        cause = stale(picture)
        if not cause and numbers and isinstance(picture, Drawn):
            try:
                cause = different_numbers(picture)
            except NoNumbers as reason:
                print(f"{name}: numbers not compared: {reason}", file=sys.stderr)
        if cause:
            yield f"{name}: {cause}"


def main(doc: str) -> int:
    """Do what the command line asks for, and return the status."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="of pictures; default: all")
    parser.add_argument("--check", action="store_true", help="draw nothing; say what is stale")
    parser.add_argument("--list", action="store_true", help="say what each is drawn from")
    parser.add_argument("--numbers", action="store_true", help="compute the numbers, too")
    parser.add_argument(
        "--record", action="store_true", help="pictures that are not made here were made anew"
    )
    arguments = parser.parse_args()
    asked = chosen(arguments.names)
    if arguments.list:
        for name, picture in asked.items():
            of = f"figures/{picture}.csv" if isinstance(picture, str) else picture.of
            print(f"{name}: {of}")
        return 0
    if arguments.record:
        elsewhere = {
            name: one
            for name, one in asked.items()
            if isinstance(one, Recorded) and not one.command
        }
        if not arguments.names or elsewhere.keys() != asked.keys():
            parser.error("--record takes names of pictures that are not made here")
        freshness.record({name: digests(one) for name, one in elsewhere.items()})
        return 0
    if arguments.check:
        lines = list(check(asked, arguments.numbers))
        for line in lines:
            print(line)
        if lines:
            print("Draw them with: tools/pictures NAME...", file=sys.stderr)
        return bool(lines)
    for line in make(asked, arguments.numbers):
        print(line)
    return 0
