"""What studies and benchmarks share: tables as Markdown, their files in the documentation, arguments."""

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
#: Tables that studies print, for the pages to include: a folder per page, a file per table.
TABLES = DOCS / "quality" / "tables"
#: Where the pictures are, seen from a file of these.
FROM_TABLE_TO_IMAGES = "../../../images"

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


def write_table(page: Path, name: str, text: str) -> None:
    """Write a text to the file of this name that a page of the documentation includes."""
    path = TABLES / page.stem / f"{name}.md"
    include = f"```{{include}} {os.path.relpath(path, page.parent)}\n"
    if include not in page.read_text(encoding="utf-8"):
        raise ValueError(f"{page} does not include {path}: add {include.strip()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def publish(page: Path, texts: Mapping[str, str], write: bool) -> None:
    """Print texts and, where asked to, write each to the file that a page includes."""
    print("\n\n".join(texts.values()))
    if write:
        for name, text in texts.items():
            write_table(page, name, text)


def markdown(table: pd.DataFrame, *, labels: int = 1) -> str:
    """Return a table as Markdown; after the first columns, which are labels, all go to the right."""
    cells = [[cell_text(value) for value in row] for row in table.itertuples(index=False)]
    return markdown_of_texts(list(map(str, table.columns)), cells, labels=labels)


def markdown_of_texts(head: list[str], cells: list[list[str]], *, labels: int = 1) -> str:
    """Return the same of the texts of its cells, row by row."""
    first, *others = ["| " + " | ".join(row) + " |" for row in [head, *cells]]
    rule = "|" + "---|" * labels + "---:|" * (len(head) - labels)
    return "\n".join([first, rule, *others])


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
        "--write", action="store_true", help=f"write what {page.relative_to(REPOSITORY)} includes"
    )
    return made


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
