"""Files of a figure, its data and picture, and the index of them all."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import io
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from warpstack._util.arguments import printable
from warpstack._util.files import remove_leftovers
from warpstack._util.input_file import MAX_TABLE_BYTES, read_input
from warpstack._util.output_file import OutputFile
from warpstack.errors import InputError
from warpstack.figures.base import Claim, PaperFigure
from warpstack.figures.study import Study
from warpstack.plot import sheet

__all__ = [
    "Report",
    "check_files",
    "check_index",
    "redraw",
    "staleness",
    "write_index",
    "write_report",
]

_DPI = 110
#: Flat colours and text need no more, and the files are a third as large.
_PNG_COLOURS = 128
#: Metadata of a picture: digests of the data and the code that it was drawn from, and how long the data
#: took.
_DATA, _CODE, _SECONDS = "warpstack-data", "warpstack-code", "warpstack-seconds"
_INDEX_TITLE = "# The papers' figures, computed again"
#: The table of all claims, and what its file begins with.
_CLAIMS, _CLAIMS_HEAD = "claims.csv", b"figure,claim,paper,ours,holds,seconds\n"


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


def check_files(figure: PaperFigure, output: Path, *, overwrite: bool) -> None:
    """Refuse a folder in which a figure's files must not be replaced, before any work is done.

    Raises
    ------
    InputError
        If the data or the picture is there and is not what a figure wrote, and `overwrite` is not given, or
        the command reads it.
    """
    if output.is_dir():
        for ending in ("csv", "png"):
            _output(output / f"{figure.name}.{ending}", overwrite).check()


def write_report(
    figure: PaperFigure, study: Study, output: Path, *, overwrite: bool = False
) -> Report:
    """Compute a figure, and write its data (``.csv``) and picture (``.png``) to a folder.

    Files of an earlier run are replaced, and with `overwrite` others, too.

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
    content = figure.compute(study).to_csv(index=False, float_format="%.6g").encode()
    report, image = _draw(figure, content, output, lambda: time.perf_counter() - start)
    check_files(figure, output, overwrite=overwrite)
    # Both at once: the picture says which data it is made from.
    for path, made in ((report.data, content), (report.picture, image)):
        _write(_output(path, overwrite), made)
    return report


def redraw(figure: PaperFigure, output: Path) -> Report:
    """Draw a figure again from its data in a folder, and judge its claims by them.

    Raises
    ------
    InputError
        If the folder lacks the data or the picture, the data is not what the picture was drawn from
        or comes from another version, or a file cannot be read or written.
    """
    data, picture = output / f"{figure.name}.csv", output / f"{figure.name}.png"
    where = f"--redraw {printable(data)}"
    remedy = "compute it without --redraw"
    try:
        content = read_input(data, "figure's data", MAX_TABLE_BYTES)
        texts = _texts(picture)
        seconds = float(texts.get(_SECONDS, "nan"))
    except (OSError, ValueError) as error:
        raise InputError(f"{where}: cannot be read: {error}; {remedy}") from None
    if texts.get(_DATA) != _digest(content):
        raise InputError(
            f"{where}: was changed or damaged since {picture.name} was drawn; {remedy}"
        )
    try:
        report, image = _draw(figure, content, output, lambda: seconds)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: comes from another version; {remedy}") from None
    _write(_output(picture), image)
    return report


def _draw(
    figure: PaperFigure, content: bytes, output: Path, seconds: Callable[[], float]
) -> tuple[Report, bytes]:
    """Return the report of a figure, and the picture that is drawn from its data."""
    table = _table(content)
    claims = tuple(figure.check(table))
    drawn = figure.draw(table)
    width = drawn.get_size_inches()[0]
    title = textwrap.fill(f"{figure.name}: {figure.title}", int(12 * width))
    drawn.suptitle(title, fontsize=sheet.TITLE)
    reference = textwrap.fill(f"Reference: {figure.reference}.", int(20 * width))
    drawn.supxlabel(reference, fontsize=sheet.TINY, color="#555555")
    image = io.BytesIO()
    drawn.savefig(image, format="png", dpi=_DPI)
    took = seconds()
    texts = {_DATA: _digest(content), _CODE: _code_digest(figure), _SECONDS: f"{took:.1f}"}
    picture, data = output / f"{figure.name}.png", output / f"{figure.name}.csv"
    return Report(figure, claims, took, picture, data), _smaller(image, texts)


def _table(content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=[""])


def staleness(figure: PaperFigure, folder: Path) -> str:
    """Return what a figure's picture in a folder is not made from: its data, its code, or nothing."""
    texts = _texts(folder / f"{figure.name}.png")
    if texts.get(_DATA) != _digest((folder / f"{figure.name}.csv").read_bytes()):
        return "data"
    return "" if texts.get(_CODE) == _code_digest(figure) else "code"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def module_of(figure: str) -> str:
    """Return the module of a figure by the figure's name: ``warpstack.figures.mdm.fig5``."""
    paper, _, number = figure.partition("-")
    folder = "mwp_cwp" if paper == "mwp" else paper
    return f"warpstack.figures.{folder}.{number}"


def _code_digest(figure: PaperFigure) -> str:
    """Return a digest of what draws a figure: its module, and what that imports to draw.

    Comments, docstrings, formatting, and where modules are do not count.
    """
    parts = []
    waiting = [module_of(figure.name)]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:  # its folder is not there
            found = None
        if found is None or found.origin is None:  # a figure that is not one of the package's
            continue
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("warpstack"):
                for module in (node.module, *(f"{node.module}.{a.name}" for a in node.names)):
                    if module not in seen and _draws(str(module)):
                        seen.add(str(module))
                        waiting.append(str(module))
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [s for s in body if not _says_nothing(s)]  # type: ignore[attr-defined]
        parts.append(ast.dump(tree))
    return _digest("\n".join(sorted(parts)).encode())


def _draws(module: str) -> bool:
    """Return whether a module has a part in pictures, beside those that only compute their data."""
    if module in ("warpstack.figures.study", "warpstack.figures.stages"):
        return False
    _, folder, *rest = [*module.split("."), ""]
    path = Path(__file__).parents[1].joinpath(folder, *rest[:-1])
    return folder in ("figures", "plot") and path.with_suffix(".py").is_file()


def _says_nothing(statement: object) -> bool:
    """Return whether a statement draws nothing: an import, or a text, such as a docstring."""
    return isinstance(statement, (ast.Import, ast.ImportFrom)) or (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def write_index(
    reports: Sequence[Report],
    study: Study,
    output: Path,
    left_out: Mapping[str, str],
    *,
    overwrite: bool = False,
) -> Path:
    """Write ``index.md``, every picture and what does not agree with its paper, and ``claims.csv``.

    The second has every claim, the paper's numbers beside ours, and the durations.
    """
    total = sum(len(report.claims) for report in reports)
    held = sum(claim.holds for report in reports for claim in report.claims)
    seconds = sum(report.seconds for report in reports)
    lines = [
        _INDEX_TITLE,
        "",
        f"This page shows how far the papers' figures come out again. **{held} of {total} claims hold.** "
        f"[All claims]({_CLAIMS}), with the papers' numbers and ours. The workloads are this project's own "
        "kernels after the papers' benchmarks, with smaller inputs, so only trends can be expected to "
        "agree, not numbers. A claim that is a number says what is taken to hold it. Each picture names "
        "its reference.",
        "",
        f"Made by `warpstack figure --all --size {study.size}` from {len(study.names)} workloads: "
        f"{len(reports)} figures and tables in {seconds:.0f} s (less where results were kept from an "
        "earlier run).",
    ]
    paper = ""
    for report in reports:
        source, _, place = report.figure.paper.rpartition(", ")
        if source != paper:
            paper = source
            lines += ["", f"## {source[:1].upper()}{source[1:]}"]
        lines += _section(report, place)
    lines += ["", "## Left out", "", "| figure | why |", "|---|---|"]
    lines += [f"| {name} | {why} |" for name, why in left_out.items()]
    table = pd.concat([report.to_frame() for report in reports], ignore_index=True)
    path = output / "index.md"
    # Both are checked before either is written.
    index, claims = _index_files(output, overwrite=overwrite)
    index.check()
    claims.check()
    _write(claims, table.to_csv(index=False, lineterminator="\n").encode())
    _write(index, ("\n".join(lines) + "\n").encode())
    return path


def _section(report: Report, place: str) -> list[str]:
    """Return the lines of a figure: what it shows, whether it agrees, the picture."""
    figure, claims = report.figure, report.claims
    held = sum(claim.holds for claim in claims)
    verdict = (
        "Agrees" if held == len(claims) else "Does not agree" if not held else "Agrees in part"
    )
    lines = [
        "",
        f"### {figure.name}",
        "",
        f"{figure.title} ({place}). {verdict}: {held} of {len(claims)} claims hold. "
        f"[Data]({report.data.name}).",
        "",
    ]
    lines += [
        f"- **Does not hold**: {claim.text}. The paper: {claim.paper}; here: {claim.ours}."
        for claim in claims
        if not claim.holds
    ]
    return [
        *lines,
        *([""] if held < len(claims) else []),
        f"![{figure.name}]({report.picture.name})",  # the title stands above
    ]


def _texts(picture: Path) -> dict[str, str]:
    """Return the texts that a PNG carries."""
    from PIL import Image

    with Image.open(picture) as image:
        return {str(name): str(value) for name, value in image.info.items()}


def _smaller(image: io.BytesIO, texts: Mapping[str, str]) -> bytes:
    """Return a PNG with a palette that carries texts."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    reduced = (
        Image.open(image).convert("RGB").quantize(_PNG_COLOURS, method=Image.Quantize.MAXCOVERAGE)
    )
    result = io.BytesIO()
    about = PngInfo()
    for name, value in texts.items():
        about.add_text(name, value)
    reduced.save(result, format="PNG", optimize=True, pnginfo=about)
    return result.getvalue()


def check_index(output: Path, *, overwrite: bool) -> None:
    """Refuse a folder in which the index or its table of claims must not be replaced.

    Raises
    ------
    InputError
        If one is there that no run of the figures wrote, and `overwrite` is not given.
    """
    for file in _index_files(output, overwrite=overwrite):
        file.check()


def _index_files(output: Path, *, overwrite: bool) -> tuple[OutputFile, OutputFile]:
    return _output(output / "index.md", overwrite), _output(output / _CLAIMS, overwrite)


def _output(path: Path, overwrite: bool = False) -> OutputFile:
    return OutputFile(path, "--output", overwrite, is_ours=_is_ours)


def _is_ours(path: Path) -> bool:
    """Return whether a file is what a figure wrote, and has not changed since."""
    try:
        if path.suffix == ".md":
            return path.read_bytes().startswith(_INDEX_TITLE.encode())
        if path.name == _CLAIMS:
            return path.read_bytes().startswith(_CLAIMS_HEAD)
        texts = _texts(path.with_suffix(".png"))
        return (
            _DATA in texts
            if path.suffix == ".png"
            else texts.get(_DATA) == _digest(path.read_bytes())
        )
    except (OSError, ValueError):
        return False


def _write(output: OutputFile, content: bytes) -> None:
    """Write a file, complete or not at all."""
    folder = output.path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--output {printable(folder)}: cannot be written: {error.strerror or error}"
        ) from None
    remove_leftovers(folder)
    output.write(content)
