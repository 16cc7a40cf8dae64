"""Signatures of the reference say types as a reader writes them.

Names of choices become their values, what NumPy spells out becomes the name that it has in the
source, and a description of a GPU does not repeat its hundred fields, which its page lists below.
"""

from __future__ import annotations

import re
from typing import Any, get_args, get_origin

import numpy.typing as npt
from sphinx.application import Sphinx
from sphinx.util.typing import stringify_annotation

from warpstack._util import choices
from warpstack.exploration import search

#: Types by the names that annotations give them.
ALIASES = {
    "GpuLike": "~warpstack.Gpu | str | ~os.PathLike[str]",
    **{
        name: f"Literal[{', '.join(repr(one) for one in get_args(kind))}]"
        for module in (choices, search)
        for name, kind in vars(module).items()
        if str(get_origin(kind)) == "typing.Literal"
    },
}
NAMES = re.compile(rf"(?<![\w.~])(?:{'|'.join(ALIASES)})(?![\w'\"])")
#: The text that autodoc makes of `numpy.typing.ArrayLike` and of `numpy.typing.NDArray`.
ARRAY_LIKE = stringify_annotation(npt.ArrayLike, "smart")
ARRAY = re.compile(
    r"~?numpy\.ndarray\[~?tuple\[~?typing\.Any, \.\.\.\], ~?numpy\.dtype\[([^\[\]]*)\]\]"
)


def readable(signature: str) -> str:
    """Return a signature, or what a function returns, with the types as they are written."""
    signature = signature.replace(ARRAY_LIKE, "~numpy.typing.ArrayLike")
    signature = ARRAY.sub(r"~numpy.typing.NDArray[\1]", signature)
    return NAMES.sub(lambda name: ALIASES[name[0]], signature)


def process(
    _app: Sphinx,
    what: str,
    name: str,
    _object: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None] | None:
    """Change what autodoc found, as its event ``autodoc-process-signature`` asks for."""
    if what == "class" and name == "warpstack.Gpu":
        return "(*, name: str, description: str = '', **fields)", None
    return signature and readable(signature), returned and readable(returned)


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the event's handler."""
    app.connect("autodoc-process-signature", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
