"""How Sphinx builds the documentation: ``python -m sphinx -W docs build/docs``."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import warpstack as ws
from warpstack import cli
from warpstack.cli.common.output import plain
from warpstack.cli.registry import GROUPS
from warpstack.hardware.stages import Stage, fields_of

HERE = Path(__file__).parent
GENERATED = HERE / "reference" / "generated"
sys.path.insert(0, str(HERE / "_extensions"))

project = "warpstack"
author = copyright = "the warpstack authors"
version = release = ws.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",  # Markdown, and the notebooks with what they show
    "signatures",  # of docs/_extensions, as are the next
    "tables",
    "data_table",
]
templates_path = ["_templates"]
# Each notebook is there twice; the Markdown of the pair is built. Pages show what is in data.
exclude_patterns = ["notebooks/*.ipynb", "notebooks/.ipynb_checkpoints", "data"]

html_theme = "furo"
html_title = f"warpstack {version}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

# Names in single backticks become links where they can be found.
default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "signature"  # numpydoc sections say the rest
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
# A parameter has a line of its own where a signature is long; choices are their values.
maximum_signature_line_length = 88
python_display_short_literal_types = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence", "substitution"]
#: Where the published repository is, as OWNER/NAME on GitHub: the explorer gets a link to run it.
REPOSITORY = os.environ.get("WARPSTACK_REPOSITORY", "")
BINDER = f"https://mybinder.org/v2/gh/{REPOSITORY}/HEAD?labpath=notebooks/explore.ipynb"
HERE_TO_RUN = (
    "To run it: {download}`the notebook </../notebooks/explore.ipynb>`, in JupyterLab with "
    "`pip install 'warpstack[explore]' jupyterlab`"
)
myst_substitutions = {
    "run_explorer": HERE_TO_RUN
    + (f", or [in the browser, on Binder]({BINDER})." if REPOSITORY else "."),
}

nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE.parent / "build" / "notebook-cache")
#: Notebooks that show nothing where a package is missing.
nb_execution_excludepatterns = [
    f"notebooks/{name}*"
    for name, package in {
        "choose-a-tile-size-without-a-gpu": "triton",
        "from-numba-to-a-roofline": "numba_cuda",
    }.items()
    if find_spec(package) is None
]
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
# Pictures of widgets need JavaScript from elsewhere; a page shows their text.
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]


def command_line() -> str:
    """Return a page with the help of every command, from the parser itself."""
    parser = cli.make_parser()
    lines = ["# The command line", "", parser.description or "", ""]
    lines += [
        "Bad input is one line on standard error that names file, line and remedy, and exit status 2.",
        "",
    ]
    for title, names in GROUPS.items():
        listed = ", ".join(f"[{name}](#warpstack-{name})" for name in names)
        lines += [f"- {title}: {listed}"]
    lines += [
        "",
        "Where a command has many options, `--help` leaves out those that few calls need; `--help-all` and "
        "this page have all.",
        "",
    ]
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for command in groups[0].choices.values():
        command.formatter_class = _fixed_width
        lines += [
            f"## {command.prog}",
            "",
            "```text",
            command.format_full_help().rstrip(),
            "```",
            "",
        ]
    return "\n".join(lines)


def _fixed_width(prog: str) -> argparse.HelpFormatter:
    """Format help as on a terminal of 96 columns, whatever this one is."""
    return argparse.HelpFormatter(prog, max_help_position=30, width=96)


def gpu_fields() -> str:
    """Return a page with every field of a GPU description and the values of those that come along."""
    described = [ws.gpu(name) for name in ws.gpus()]
    lines = [
        "# Every field of a GPU description",
        "",
        "What the fields mean, from `Gpu.fields()`; how to write a file of them is in "
        "[GPU descriptions](../gpus.md).",
        "",
        "*Read by* says which stages read a field beside the simulation, which reads all: the caches "
        "(*greedy*, *timed*: only where accesses are in that order), the intervals, and some of the models.",
        "",
        "| field | read by | meaning |",
        "|---|---|---|",
    ]
    stages = {stage: fields_of(stage) for stage in Stage if stage is not Stage.TIMING}
    for name, text in ws.Gpu.fields().items():
        readers = ", ".join(str(s.name).lower() for s, fields in stages.items() if name in fields)
        lines.append(f"| `{name}` | {readers} | {_cell(text)} |")
    lines += ["", "## Values", "", "`warpstack gpus NAME` prints the source of each.", ""]
    lines += ["| field | " + " | ".join(f"`{gpu.name}`" for gpu in described) + " |"]
    lines += ["|---|" + "---:|" * len(described)]
    for name in ws.Gpu.fields():
        values = [_cell(plain(gpu.values()[name])) for gpu in described]
        lines.append(f"| `{name}` | " + " | ".join(values) + " |")
    return "\n".join([*lines, ""])


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|")


def write_generated_pages(*_: Any) -> None:
    """Write the pages that are made from the program, and leave unchanged ones alone."""
    GENERATED.mkdir(exist_ok=True)
    for name, text in (("command-line.md", command_line()), ("gpu-fields.md", gpu_fields())):
        path = GENERATED / name
        text = textwrap.dedent(text)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def lead_links_of_notebooks_here(_: Any, name: str, source: list[str]) -> None:
    """Make links to ``../docs`` in notebooks, which are outside of this folder, links within the site."""
    if name.startswith("notebooks/"):
        source[0] = source[0].replace("](../docs/", "](/")


def leave_out_what_has_a_page(
    app: Any, what: str, name: str, member: object, _skip: bool, _options: object
) -> bool | None:
    """Describe a class once: on the page of its own, or of `ws.cuda`, not of each module that has it, too."""
    if what != "module" or not isinstance(member, type):
        return None
    on_page_of_cuda = getattr(ws.cuda, name, None) is member
    here = app.env.docname.endswith("warpstack.cuda")
    has_own = name in ws.__all__ and getattr(ws, name) is member
    return True if has_own or (on_page_of_cuda and not here) else None


def setup(app: Any) -> None:
    """Have Sphinx write the generated pages before it looks for pages."""
    app.connect("autodoc-skip-member", leave_out_what_has_a_page)
    app.connect("builder-inited", write_generated_pages, priority=1)
    app.connect("source-read", lead_links_of_notebooks_here)
