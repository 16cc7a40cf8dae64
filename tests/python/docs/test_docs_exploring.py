"""What docs/how-to/exploring.md shows is what a user sees."""

import doctest
import re
from pathlib import Path

import pytest

import warpstack as ws
from doc_pages import included, text_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "exploring.md"


@pytest.mark.slow
def test_examples():
    result = doctest.testfile(
        str(PAGE), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 8
    assert result.failed == 0


def test_what_the_page_names_exists():
    text = text_of(PAGE)
    names = set(re.findall(r"ws\.([a-z_.]+[a-z])", text))
    assert len(names) > 15
    for name in names:
        found = ws
        for part in name.split("."):
            found = getattr(found, part)
    for file in (PAGE, *included(PAGE)):
        for picture in re.findall(r"\]\(((?:\.\./)+images/[^)]+)\)", file.read_text("utf-8")):
            assert (file.parent / picture).stat().st_size < 150_000, picture
