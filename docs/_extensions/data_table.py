"""The directive ``data-table``: columns and rows of a CSV file as a table, with a link to the file.

    ```{data-table} ../data/hardware/summary.csv
    :columns: set | rows | simulator (%) as simulator | closed_network (%) as model
    :rows: set = Rodinia | pmpp, cold
    :format: simulator (%): .0f
    ```

`columns` names those that are shown, by ``|``, each with another head behind ``as`` where wanted; all,
if it is missing. `rows` is how many of the first are shown, or conditions, by ``&``: ``column = value``
with ``|`` between values, or ``column != value``. `format` gives columns a format of Python's. Paths
begin at the page. A file, column, value or format that is wrong ends the build with an error, as does a
table of more than `csv_columns.WIDEST` columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from csv_columns import OPTIONS, DataTableError, selected
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import OptionSpec


class DataTable(SphinxDirective):
    """The directive."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[OptionSpec] = dict.fromkeys(OPTIONS, directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """Return the table and the link to its file."""
        target = self.arguments[0]
        name, path = self.env.relfn2path(target)
        self.env.note_dependency(name)
        try:
            (head, *cells), count = selected(Path(path), self.options)
        except DataTableError as error:
            where = f"{self.env.doc2path(self.env.docname)}:{self.lineno}"
            raise ExtensionError(f"{where}: data-table {target}: {error}") from error
        return [_table(head, cells), self._link(target, len(cells), count)]

    def _link(self, target: str, kept: int, count: int) -> nodes.Node:
        link = addnodes.download_reference(
            "", "", nodes.Text(Path(target).name), reftarget=target, refdoc=self.env.docname
        )
        said = "" if kept == count else f" ({kept} of {count} rows)"
        return nodes.paragraph(
            "", "", nodes.Text("Data: "), link, nodes.Text(said), classes=["data-of-table"]
        )


def _table(head: list[str], cells: list[list[str]]) -> nodes.table:
    group = nodes.tgroup("", cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", _row(head))
    group += nodes.tbody("", *map(_row, cells))
    return nodes.table("", group, classes=["colwidths-auto"])


def _row(texts: list[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", text)) for text in texts))


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of the directive."""
    app.add_directive("data-table", DataTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
