"""Files of a figure, its data and picture, and the index of them all."""

from __future__ import annotations

import io
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from warpstack.arguments import printable
from warpstack.errors import InputError
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.study import Study
from warpstack.files import remove_leftovers, write_file

__all__ = ["Report", "write_index", "write_report"]

_DPI = 110
#: Flat colours and text need no more, and the files are a third as large.
_PNG_COLOURS = 128


@dataclass(frozen=True)
class Report:
    """A figure that was written: its claims, files and duration."""

    figure: PaperFigure
    claims: tuple[Claim, ...]
    seconds: float
    picture: Path
    data: Path

    def to_frame(self) -> pd.DataFrame:
        """Return a row per claim."""
        return pd.DataFrame(
            [
                {
                    "figure": self.figure.name,
                    "claim": claim.text,
                    "paper": claim.paper,
                    "ours": claim.ours,
                    "holds": claim.holds,
                    "seconds": round(self.seconds, 1),
                }
                for claim in self.claims
            ]
        )


def write_report(figure: PaperFigure, study: Study, output: Path) -> Report:
    """Compute a figure, and write its data (``.csv``) and picture (``.png``) to a folder.

    Raises
    ------
    InputError
        If the study lacks the applications that the figure needs, or a file cannot be written.
    """
    if figure.needs_all and not (study.divergent() and len(study.divergent()) < len(study.names)):
        raise InputError(
            f"{figure.name} compares memory-divergent (MD) applications with others (NMD); give "
            "workloads of both classes (see warpstack workloads)"
        )
    start = time.perf_counter()
    table = figure.compute(study)
    claims = tuple(figure.check(table))
    drawn = figure.draw(table)
    width = drawn.get_size_inches()[0]
    title = textwrap.fill(f"{figure.name}: {figure.title}", int(12 * width))
    drawn.suptitle(title, fontsize=10)
    reference = textwrap.fill(f"Reference: {figure.reference}.", int(20 * width))
    drawn.supxlabel(reference, fontsize=6, color="#555555")
    image = io.BytesIO()
    drawn.savefig(image, format="png", dpi=_DPI)
    seconds = time.perf_counter() - start
    picture, data = output / f"{figure.name}.png", output / f"{figure.name}.csv"
    _write(data, table.to_csv(index=False, float_format="%.6g").encode())
    _write(picture, _smaller(image))
    return Report(figure, claims, seconds, picture, data)


def write_index(
    reports: Sequence[Report], study: Study, output: Path, left_out: Mapping[str, str]
) -> Path:
    """Write ``index.md``: every picture, the papers' numbers beside ours, and the durations."""
    total = sum(len(report.claims) for report in reports)
    held = sum(claim.holds for report in reports for claim in report.claims)
    seconds = sum(report.seconds for report in reports)
    lines = [
        "# The papers' figures, computed again",
        "",
        f"Made by `warpstack figure --all --size {study.size}` from {len(study.names)} workloads: "
        f"{len(reports)} figures and tables in {seconds:.0f} s (less where results were kept from an "
        f"earlier run). **{held} of {total} claims hold.** The workloads are this project's own "
        "kernels after the papers' benchmarks, with smaller inputs, so only trends can be expected to "
        "agree, not numbers. Where a claim is a number, the text says what is taken to hold it.",
        "",
        "| figure | shows | claims that hold | seconds |",
        "|---|---|---:|---:|",
    ]
    for report in reports:
        name, count = report.figure.name, sum(claim.holds for claim in report.claims)
        lines.append(
            f"| [{name}](#{name}) | {report.figure.title} | {count} of {len(report.claims)} | "
            f"{report.seconds:.1f} |"
        )
    for report in reports:
        figure = report.figure
        lines += [
            "",
            f"## {figure.name}",
            "",
            f"{figure.title}. {figure.paper}. Reference: {figure.reference}. "
            f"[Data]({report.data.name}), {report.seconds:.1f} s.",
            "",
            f"![{figure.title}]({report.picture.name})",
            "",
            "| claim | the paper | here | holds |",
            "|---|---|---|---|",
        ]
        for claim in report.claims:
            verdict = "yes" if claim.holds else "**no**"
            lines.append(f"| {claim.text} | {claim.paper} | {claim.ours} | {verdict} |")
    lines += ["", "## Left out", "", "| figure | why |", "|---|---|"]
    lines += [f"| {name} | {why} |" for name, why in left_out.items()]
    path = output / "index.md"
    _write(path, ("\n".join(lines) + "\n").encode())
    return path


def _smaller(image: io.BytesIO) -> bytes:
    """Return a PNG with a palette."""
    from PIL import Image

    reduced = (
        Image.open(image).convert("RGB").quantize(_PNG_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    )
    result = io.BytesIO()
    reduced.save(result, format="PNG", optimize=True)
    return result.getvalue()


def _write(path: Path, content: bytes) -> None:
    """Write a file, complete or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        write_file(path, content)
    except OSError as error:
        raise InputError(
            f"--output {printable(path)}: cannot be written: {error.strerror or error}"
        ) from None
