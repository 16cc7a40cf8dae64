"""Pages of the documentation with what they include, as a reader of the site sees them."""

import re
from pathlib import Path

#: A directive of MyST, and what it names.
INCLUDE = re.compile(r"^```\{include\} (\S+)\n(?::.*\n)*```$", re.MULTILINE)


def included(page: Path) -> list[Path]:
    """Return the files that a page includes, in its order."""
    return [(page.parent / name).resolve() for name in INCLUDE.findall(page.read_text("utf-8"))]


def text_of(page: Path) -> str:
    """Return the text of a page with that of the files that it includes in their places."""
    return INCLUDE.sub(
        lambda found: (page.parent / found[1]).read_text("utf-8"), page.read_text("utf-8")
    )
