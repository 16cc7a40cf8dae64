"""Pictures that a design file asks for: the section ``plots`` of a sweep's file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from warpstack._util.arguments import as_path
from warpstack.errors import InputError, not_a, not_one_of, shown, unknown
from warpstack.hardware.description import GpuLike, check_value_fields, value_of_text
from warpstack.plot import design_space
from warpstack.plot.looks import look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS: dict[str, Callable[..., Axes]] = {
    name: getattr(design_space, name)
    for name in (
        "axis_stacks",
        "bottlenecks",
        "curves",
        "heat_map",
        "pareto",
        "sensitivity",
        "speedup",
    )
}
#: Parameters of the functions that come from the sweep.
_GIVEN = ("table", "ax", "gpu")
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class PlotRequest:
    """A picture to draw: the function of `warpstack.plot`, the application, the file, arguments."""

    kind: str
    app: str
    file: Path
    options: Mapping[str, Any]

    def draw(
        self, table: pd.DataFrame, gpu: GpuLike, file: str | os.PathLike[str] | None = None
    ) -> None:
        """Draw the picture and write it.

        Parameters
        ----------
        table
            Rows of `warpstack.sweep`; with a column ``app``, of which the application is drawn.
        gpu
            The GPU of the sweep.
        file
            Where to write it instead of to `file`.

        Raises
        ------
        InputError
            If the table has nothing to draw, or the file cannot be written.
        """
        import matplotlib.pyplot as plt

        from warpstack.plot.saving import write_figure

        draw = _KINDS[self.kind]
        own = {"gpu": gpu} if "gpu" in inspect.signature(draw).parameters else {}
        if "app" in table:
            table = table[table["app"] == self.app]
        before = set(plt.get_fignums())
        try:
            figure: Any = draw(table, **self.options, **own).figure
            write_figure(figure, self.file if file is None else Path(file))
        except InputError as error:
            raise InputError(f"plots: {self.kind} to {self.file}: {error}") from None
        except OSError as error:
            raise InputError(
                f"plots: {self.file}: cannot be written: {error.strerror or error}"
            ) from None
        finally:
            for number in set(plt.get_fignums()) - before:
                plt.close(number)


def plot_requests(
    entries: Any, apps: Iterable[str], folder: str | os.PathLike[str] = "."
) -> list[PlotRequest]:
    """Check the section ``plots`` of a file before any work is done.

    Parameters
    ----------
    entries
        A list of mappings of text: ``kind``, the name of a function of `warpstack.plot` for sweeps,
        ``file``, ``app`` if there are several applications, and the function's arguments.
    apps
        Names of the applications.
    folder
        What the files are relative to.

    Returns
    -------
    list of PlotRequest

    Raises
    ------
    InputError
        If an entry, a kind or an option is unknown (the message suggests the nearest), an argument is
        missing, or a file's ending is not a picture's.
    """
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise not_a("plots", "a list of pictures", entries)
    apps = list(apps)
    requests: list[PlotRequest] = []
    for number, entry in enumerate(entries, 1):
        at = f"plots: picture {number}"
        if not isinstance(entry, Mapping):
            raise InputError(f"{at}: expected lines `name: value`, got {shown(entry)}")
        options = dict(entry)
        for name in ("kind", "file"):
            if name not in options:
                raise InputError(f"{at}: {name} is missing")
        kind, file = options.pop("kind"), as_path(f"{at}: file", options.pop("file"))
        if not isinstance(kind, str) or kind not in _KINDS:
            raise not_one_of(f"{at}: kind", kind, _KINDS)
        app = options.pop("app", apps[0] if len(apps) == 1 else None)
        if app not in apps:
            if app is None:
                raise InputError(f"{at}: app is missing; there are {', '.join(apps)}")
            raise unknown("app", app, apps, where=at)
        target = Path(folder) / file
        _check_file(target, at)
        if target in [request.file for request in requests]:
            raise InputError(f"{at}: file = {file} is that of another picture")
        requests.append(PlotRequest(kind, app, target, _options(kind, options, at)))
    return requests


def _options(kind: str, given: Mapping[str, Any], at: str) -> dict[str, Any]:
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(_KINDS[kind]).parameters.items()
        if name not in _GIVEN
    }
    for name in given:
        if name not in parameters:
            raise unknown("option", name, parameters, where=f"{at}: {kind}")
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in given:
            raise InputError(f"{at}: {kind} needs {name}")
    return {name: _value(name, value, f"{at}: {name}") for name, value in given.items()}


def _value(name: str, value: Any, at: str) -> Any:
    """Return an option in its type."""
    if name in ("where", "baseline"):
        if not isinstance(value, Mapping):
            raise InputError(f"{at}: expected {{field: value}}, got {shown(value)}")
        check_value_fields(value, at)
        return {field: value_of_text(field, text) for field, text in value.items()}
    if name == "limits":
        numbers = [value_of_text("", v) for v in value] if isinstance(value, list) else []
        if len(numbers) != 2 or any(isinstance(number, str) for number in numbers):
            raise InputError(f"{at}: expected [low, high], got {shown(value)}")
        return tuple(numbers)
    if name == "maximise":
        if not isinstance(value, (bool, str)) or value not in (*_TRUTH, *_TRUTH.values()):
            raise InputError(f"{at} = {shown(value)} is neither true nor false")
        return value if isinstance(value, bool) else _TRUTH[value]
    if name == "width_inches":
        value = value_of_text("", value) if isinstance(value, str) else value
        look_of("notebook", value)
        return value
    if not isinstance(value, str):
        raise not_a(at, "text", value)
    if name == "style":
        look_of(value)
    return value


def _check_file(path: Path, at: str) -> None:
    from matplotlib.backend_bases import FigureCanvasBase

    from warpstack.plot.saving import check_kind

    supported = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in supported:
        raise InputError(f"{at}: file = {path.name}: the name must end in one of .png, .pdf, .svg")
    check_kind(path)
    parent = Path(os.path.realpath(path)).parent
    if not parent.is_dir():
        raise InputError(f"{at}: file: there is no folder {parent}")
