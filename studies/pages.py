"""What studies and benchmarks share: tables as CSV files of the documentation, arguments."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pandas as pd

import warpstack as ws

REPOSITORY = Path(__file__).resolve().parents[1]
DOCS = REPOSITORY / "docs"
IMAGES = DOCS / "images"
#: Tables that studies write: a folder per page, a file per table.
DATA = DOCS / "data"
#: On which machine the tables were measured whose numbers depend on it.
MACHINES = DATA / "machines.csv"
#: A number as studies round it, with separators of thousands and a percent sign.
_NUMBER = re.compile(r"([-+]?)(\d{1,3}(?:,\d{3})+|\d+)((?:\.\d+)?(?:e[-+]?\d+)?)( ?%)?")


Task = TypeVar("Task")
Result = TypeVar("Result")


def machine() -> str:
    """Describe the machine in one line."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = re.findall(r"model name\s*:\s*(.+)", info.read_text())
        cpu = f"{names[0]}, {len(names)} cores" if names else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{cpu}, {memory:.0f} GiB memory, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, warpstack {ws.__version__}"
    )


def write_table(page: Path, name: str, table: pd.DataFrame) -> None:
    """Write a table to the CSV file of this name, which a page of the documentation shows or links to.

    Raises `ValueError` where the page names no such file.
    """
    path = DATA / page.stem / f"{name}.csv"
    target = os.path.relpath(path, page.parent)
    if target not in page.read_text(encoding="utf-8"):
        raise ValueError(
            f"{page} does not name {target}: show it with {{data-table}}, or link to it"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    plain(table).to_csv(path, index=False, lineterminator="\n")


def publish(
    page: Path, tables: Mapping[str, pd.DataFrame], write: bool, *, where: str | None = None
) -> None:
    """Print tables and, where asked to, write each to its CSV file.

    `where` is the machine, for tables that depend on it: it is kept in `MACHINES`.
    """
    for name, table in tables.items():
        print(f"{name}\n\n{markdown(table)}\n")
    if where:
        print(f"Measured on: {where}.")
    if write:
        for name, table in tables.items():
            write_table(page, name, table)
            if where:
                note_machine(f"{page.stem}/{name}", where)


def note_machine(table: str, where: str) -> None:
    """Keep on which machine a table, such as ``benchmarks/figures``, was measured."""
    known: dict[str, str] = {}
    if MACHINES.exists():
        known = dict(pd.read_csv(MACHINES).itertuples(index=False, name=None))
    known[table] = where
    pd.DataFrame(sorted(known.items()), columns=["table", "machine"]).to_csv(
        MACHINES, index=False, lineterminator="\n"
    )


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as its CSV file has it: texts of numbers, and the unit in the head.

    A column of percentages gets ``(%)`` behind its name. Signs before positive numbers, separators
    of thousands, marks of code and the dash for nothing are left out. Raises `ValueError` for a name
    that two columns have.
    """
    columns: dict[str, list[str]] = {}
    for place, head in enumerate(table.columns):
        texts = [cell_text(value).replace("`", "").strip() for value in table.iloc[:, place]]
        texts = ["" if text == "-" else text for text in texts]
        found = [_NUMBER.fullmatch(text) for text in texts]
        name = str(head).replace("`", "").replace("µ", "u")
        full = [number for number, text in zip(found, texts, strict=True) if text]
        if full and all(number is not None for number in full):
            percents = {bool(number and number[4]) for number in full}
            if percents == {True}:
                name += " (%)"
            if len(percents) == 1:
                texts = [_bare(number) if number else "" for number in found]
        if name in columns:
            raise ValueError(f"two columns have the name {name!r}: give each its own")
        columns[name] = texts
    return pd.DataFrame(columns)


def _bare(number: re.Match[str]) -> str:
    """Return a number without a plus sign, separators and percent sign, and zero without a sign."""
    text = number[2].replace(",", "") + number[3]
    return f"-{text}" if number[1] == "-" and float(text) else text


def markdown(table: pd.DataFrame) -> str:
    """Return a table as text to read in a terminal, in columns of Markdown."""
    cells = [[cell_text(value) for value in row] for row in table.itertuples(index=False)]
    lines = [list(map(str, table.columns)), ["---"] * len(table.columns), *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell_text(value: object) -> str:
    """Return a value as text: a number that is not whole with one digit, and NaN as a dash."""
    if isinstance(value, float):
        return f"{value:.1f}" if value == value else "-"
    return str(value)


def parser(doc: str | None, page: Path) -> argparse.ArgumentParser:
    """Return a parser that knows ``--write``, for a study whose docstring and page these are."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--write", action="store_true", help=f"write the tables of {page.relative_to(REPOSITORY)}"
    )
    return made


def existing(*parts: str) -> Callable[[str], Path]:
    """Return the type of an argument that is a file or a folder, of which these parts are needed."""

    def path_of(text: str) -> Path:
        path = Path(text)
        for one in (path, *(path / part for part in parts)):
            if not one.exists():
                raise argparse.ArgumentTypeError(
                    f"{one} does not exist: give what the beginning of --help says"
                )
        return path

    return path_of


def check_programs(parser: argparse.ArgumentParser, folder: Path, page: Path) -> None:
    """End with an error unless there is a folder for the programs that a study runs."""
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        layout = page.relative_to(REPOSITORY)
        parser.error(f"FOLDER: {folder} {what}: give one laid out as {layout} says")


def lacks_program(folder: Path, name: str) -> str:
    """Return what is wrong with the executable of a program in a folder of them, or nothing."""
    file = folder / name / "program"
    if not file.is_file():
        return f"{name}/program is missing"
    return "" if os.access(file, os.X_OK) else f"{name}/program is not executable"


def add_workloads(to: argparse.ArgumentParser) -> None:
    """Add the arguments of a study of the workloads."""
    to.add_argument("--size", default="small", help="of the workloads")
    to.add_argument("--only", nargs="+", metavar="NAME", help="of these workloads alone")
    add_processes(to)


def add_processes(to: argparse.ArgumentParser) -> None:
    """Add the number of processes that `in_processes` takes."""
    to.add_argument("--processes", type=int, default=2)


def in_processes(
    work: Callable[[Task], Result], tasks: Iterable[Task], processes: int
) -> Sequence[Result]:
    """Return the result of each task, in their order."""
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return pool.map(work, tasks, chunksize=1)
