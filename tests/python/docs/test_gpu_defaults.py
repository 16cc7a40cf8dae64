"""The page of GPUs gives the default of each field that has one, or says elsewhere what it means."""

import re
from pathlib import Path

import pytest

from warpstack._core import GPU_FIELDS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "reference/gpus.md"
HEADING = "## What the timing stage reads besides"
#: Fields with a default that the table leaves out: the page that says what they do.
CONTENTS = "explanation/memory.md"
TOLD_ELSEWHERE = {
    **{
        f"{level}_{what}": CONTENTS
        for level in ("l1", "l2")
        for what in ("write_policy", "write_miss", "replacement", "set_index")
    },
    **dict.fromkeys(("l1_allocation", "l1_global_loads", "l2_slice_index"), CONTENTS),
    **dict.fromkeys(("unified_l1_kib", "shared_memory_carve_outs_kib"), CONTENTS),
    **dict.fromkeys(("adaptive_l1_keeps", "noc_queue_entries"), CONTENTS),
    "l2_slice_interleave_bytes": "reference/gpus.md",
    "l2_clock_ghz": "explanation/timing.md",
}
#: Fields that say how a GPU divides its storage, or what programs see: `warpstack gpus --fields` has them.
OF_THE_LIST = {
    "compute_capability",
    "register_allocation_unit",
    "shared_memory_allocation_bytes",
    "shared_memory_reserved_bytes",
}
DEFAULTS = {field.name: field.default for field in GPU_FIELDS if field.default is not None}


def table() -> dict[str, str]:
    """Return the cells of defaults by field."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    cells = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, default, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            found = re.findall(r"`(\w+)`", names)
            # One value stands for all, or each has its own.
            values = re.sub(r"[:,] .*[a-z].*", "", default).split(", ")
            if len(values) != len(found):
                values = [values[0]] * len(found)
            cells.update(zip(found, values, strict=True))
    return cells


def is_rate(name: str) -> bool:
    """Return whether the row of `tensor_f16_rate`, "and the other rates of types", has the field."""
    return name.startswith("tensor_") and name.endswith("_rate")


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_each_default_is_told(name):
    known = table()
    if name in known or is_rate(name):
        value = known["tensor_f16_rate" if is_rate(name) else name].strip("`")
        assert value == str(DEFAULTS[name]).removesuffix(".0"), f"{name}: the page says {value}"
        assert name not in TOLD_ELSEWHERE
    elif name in TOLD_ELSEWHERE:
        assert f"`{name}" in (DOCS / TOLD_ELSEWHERE[name]).read_text()
    else:
        assert name in OF_THE_LIST, f"{name}: give its default in the table of {PAGE.name}"


def test_no_row_is_of_a_field_that_is_not_there():
    assert set(table()) <= set(DEFAULTS)
    assert set(TOLD_ELSEWHERE) | OF_THE_LIST <= set(DEFAULTS)
