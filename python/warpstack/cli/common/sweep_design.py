"""What ``warpstack sweep`` computes: the design that a file, or options, describe."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from warpstack import workloads
from warpstack._util.arguments import as_path, printable
from warpstack._util.choices import DEFAULT_MODEL, Profiler
from warpstack._util.options import Options
from warpstack._util.progress import progress_bar
from warpstack._util.yaml_file import read_entries
from warpstack.cli.common.gpu_options import read_gpu
from warpstack.cli.common.parser import CommandParser
from warpstack.cli.common.stage_options import DEFAULT_MODELS, split
from warpstack.cli.common.trace_options import add_trace, is_source, load_trace, names_kernels
from warpstack.errors import InputError, not_a, not_one_of, shown, unknown
from warpstack.exploration import samples
from warpstack.exploration.anchors import check_anchor
from warpstack.exploration.sweep import Axes, points_of
from warpstack.hardware.description import Gpu, check_value_fields, has_numbers, value_of_text
from warpstack.hardware.description import gpu as find_gpu
from warpstack.hardware.profiler import PROFILERS, checked_profiler
from warpstack.models.prediction import model_list
from warpstack.plot.design_file import PlotRequest, plot_requests
from warpstack.traces.io import load
from warpstack.traces.launches import launches_named, launches_of_text
from warpstack.traces.trace import App

__all__ = ["SweepDesign"]

_KEYS = (
    "kernels",
    "gpu",
    "set",
    "axes",
    "points",
    "sample",
    "models",
    "anchor",
    "options",
    "profiler",
    "workers",
    "cache",
    "store",
    "output",
    "plots",
)
_SAMPLERS: dict[str, Callable[..., samples.Samples]] = {
    "latin_hypercube": samples.latin_hypercube,
    "sobol": samples.sobol,
    "random": samples.random,
    "saltelli": samples.saltelli,
}
#: Keys of what is loaded whose values are paths.
_PATHS = ("trace", "source")
#: What a source has beside the arguments of its program, as options of the command line.
_SOURCE_OPTIONS = ("launch", "kernels", "compiler_options", "machine_code")
_OUTPUTS = (".csv", ".parquet")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class SweepDesign:
    """The description of a sweep.

    Attributes
    ----------
    load
        Loads the traces, runs workloads and programs, and returns the applications by name.
    inputs
        Files and folders that it reads beside those that arguments name.
    gpu, axes, models, options, profiler
        As for `warpstack.sweep`.
    anchor, workers, cache, store
        The same; None where nothing is said.
    output
        File to write the table to.
    plots
        Pictures to draw.
    """

    load: Callable[[], dict[str, App]]
    inputs: tuple[Path, ...]
    gpu: Gpu
    axes: Axes
    models: tuple[str, ...]
    options: Options
    profiler: Profiler
    anchor: str | None = None
    workers: int | None = None
    cache: bool | Path | None = None
    store: Path | None = None
    output: Path | None = None
    plots: tuple[PlotRequest, ...] = ()

    @classmethod
    def of_options(cls, arguments: argparse.Namespace) -> SweepDesign:
        """Return the design that options describe; what to predict is loaded when `load` is called.

        Raises
        ------
        InputError
            If an option is wrong; the message names it.
        """
        gpu = read_gpu(arguments)
        options = {name: getattr(arguments, name) for name in _OPTIONS}
        models = tuple(model_list(split(arguments.models or DEFAULT_MODELS)))
        return cls(
            load=partial(_load_subject, arguments, gpu),
            inputs=(),
            gpu=gpu,
            axes=_axes_of_options(arguments),
            models=models,
            options=Options(**options),
            profiler=arguments.profiler,
            anchor=_checked_anchor(arguments.anchor, models, "--anchor "),
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SweepDesign:
        """Read a file; paths in it are relative to its folder.

        Raises
        ------
        InputError
            If it is malformed: the message names the file and the entry, and suggests the nearest
            key for an unknown one.
        """
        file = as_path("design", path)
        entries = read_entries(file, "design of a sweep", "key: value")
        try:
            return cls._of(file, entries.values)
        except InputError as error:
            raise entries.error(error) from None

    @classmethod
    def _of(cls, path: Path, entries: Mapping[str, Any]) -> SweepDesign:
        _check_keys(entries, _KEYS, "")
        folder = path.parent

        def place(key: str) -> Path | None:
            text = _text(entries, key)
            return None if text is None else folder / text

        output = place("output")
        if output is not None and output.suffix not in _OUTPUTS:
            raise InputError(
                f"output: {printable(output.name)} does not end in {' or '.join(_OUTPUTS)}"
            )
        if "kernels" not in entries:
            raise InputError("there are no kernels; add lines `kernels:` and `NAME: {trace: PATH}`")
        cache = _text(entries, "cache")
        kernels = _kernels(entries["kernels"], folder)
        gpu = _gpu(entries, folder)
        models = _models(entries)
        return cls(
            load=partial(_load_all, path, kernels, gpu),
            inputs=tuple(
                given[key] for given in kernels.values() for key in _PATHS if key in given
            ),
            gpu=gpu,
            axes=_axes(entries),
            models=models,
            options=_options(entries.get("options", {})),
            profiler=checked_profiler(_text(entries, "profiler") or PROFILERS[0]),
            anchor=_checked_anchor(_text(entries, "anchor"), models),
            workers=None if "workers" not in entries else _whole("workers", entries["workers"], 1),
            cache=None if cache is None else _TRUTHS.get(cache.lower(), folder / cache),
            store=place("store"),
            output=output,
            plots=tuple(plot_requests(entries.get("plots", []), kernels, folder)),
        )


def _load_all(path: Path, kernels: Mapping[str, Mapping[str, Any]], gpu: Gpu) -> dict[str, App]:
    """Return the applications of a file, loaded or run."""
    apps = {}
    with progress_bar(True, len(kernels), "loading", "application") as bar:
        for name, given in kernels.items():
            try:
                apps[name] = _load(given, gpu)
            except InputError as error:
                raise InputError(f"{printable(path)}: kernels: {name}: {error}") from None
            bar.update(1)
    return apps


def _load_subject(arguments: argparse.Namespace, gpu: Gpu) -> dict[str, App]:
    """Return the application that options name."""
    app = load_trace(arguments, gpu)
    return {app.name: app}


def _axes_of_options(arguments: argparse.Namespace) -> Axes:
    """Return the grid of ``--axis FIELD=VALUE,VALUE,...``."""
    if not arguments.axis:
        raise InputError(
            "there is no axis; give --axis FIELD=VALUE,VALUE,... (warpstack gpus --fields lists the "
            "fields), or a design file (.yaml)"
        )
    fixed = {setting.partition("=")[0].strip() for setting in arguments.set}
    axes: dict[str, list[Any]] = {}
    for axis in arguments.axis:
        where = f"--axis {axis}"
        field, equals, text = (part.strip() for part in axis.partition("="))
        values = [value.strip() for value in text.split(",")]
        if not equals or not all(values):
            raise InputError(f"{where}: expected FIELD=VALUE,VALUE,...")
        check_value_fields([field], where)
        if has_numbers(field):
            raise InputError(
                f"{where}: each value of {field} is a list; write the lists into a design file"
            )
        if field in axes:
            raise InputError(f"{where}: {field} is an axis already; give all its values at once")
        if field in fixed:
            raise InputError(f"{where}: --set gives {field} one value; leave one of them out")
        axes[field] = [value_of_text(field, value) for value in values]
    points_of(axes)
    return axes


def _models(entries: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        return tuple(model_list(_texts(entries.get("models", DEFAULT_MODEL), "models")))
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith("models:") else f"models: {text}") from None


def _checked_anchor(name: str | None, models: Sequence[str], said: str = "anchor = ") -> str | None:
    """Return the name of an anchor, before anything is loaded that it is to run."""
    if name is not None:
        check_anchor(name, models, said)
    return name


def _load(given: Mapping[str, Any], gpu: Gpu) -> App:
    if "source" in given:
        parser = CommandParser()
        add_trace(parser)
        arguments = parser.parse_args([])
        vars(arguments).update(given, trace=[str(given["source"])], program=given["arguments"])
        arguments.launch = None if given["launch"] is None else [given["launch"]]
        arguments.launch_folder = given["source"].parent
        return load_trace(arguments, gpu)
    chosen = given["kernels"]
    if "workload" in given:
        app = workloads.load(given["workload"], given["size"], given["seed"])
    elif chosen is None or names_kernels(chosen):
        app = load(given["trace"])
    else:
        return load(given["trace"], kernels=launches_of_text(chosen, "kernels"))
    return app if chosen is None else app.select(launches_named(app, chosen, "kernels"))


def _check_keys(entries: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in entries:
        if key not in known:
            raise unknown("key", key, known, where=where.removesuffix(": "))


def _text(entries: Mapping[str, Any], key: str, where: str = "") -> str | None:
    value = entries.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}{key} = {shown(value)} is not text")
    return value


def _texts(given: Any, key: str) -> list[str]:
    values = [given] if isinstance(given, str) else given
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InputError(f"{key} = {shown(given)} is not a list of names")
    return values


def _mapping(given: Any, key: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"{key}: expected lines `key: value`, got {shown(given)}")
    return given


def _whole(key: str, given: Any, at_least: int) -> int:
    # Python does not read numbers of thousands of digits.
    if (
        not (isinstance(given, str) and re.fullmatch("[0-9]{1,300}", given))
        or int(given) < at_least
    ):
        raise InputError(f"{key} = {shown(given)} is not a whole number of at least {at_least}")
    return int(given)


def _kernels(given: Any, folder: Path) -> dict[str, dict[str, Any]]:
    """Return what to load by name; a list holds names of workloads and paths of traces and sources."""
    if isinstance(given, list):
        wanted: dict[str, Any] = {}
        for text in _texts(given, "kernels"):
            kind = "source" if is_source(text) else "trace"
            if text in workloads.names():
                kind = "workload"
            name = text if kind == "workload" else Path(text).stem
            if name in wanted:
                raise InputError(f"kernels: {name} is given twice; give names of your own")
            wanted[name] = {kind: text}
    else:
        wanted = dict(_mapping(given, "kernels"))
    if not wanted:
        raise InputError("kernels: there are none")
    return {name: _kernel(name, entry, folder) for name, entry in wanted.items()}


def _kernel(name: str, given: Any, folder: Path) -> dict[str, Any]:
    where = f"kernels: {name}: "
    entry = _mapping(given, f"kernels: {name}")
    if sum(key in entry for key in ("trace", "source", "workload")) != 1:
        raise InputError(f"{where}give one of trace: PATH, source: FILE.cu and workload: NAME")
    if "source" in entry:
        _check_keys(entry, ("source", "arguments", *_SOURCE_OPTIONS), where)
        source = folder / (_text(entry, "source", where) or "")
        if not is_source(source.name):
            raise InputError(
                f"{where}source = {printable(source.name)} is no CUDA source (.cu, .ptx); a trace goes "
                "to trace:"
            )
        options = {key: _text(entry, key, where) for key in _SOURCE_OPTIONS}
        words = _words(entry.get("arguments", []), f"{where}arguments")
        return {"source": source, "arguments": words, **options}
    if "trace" in entry:
        _check_keys(entry, ("trace", "kernels"), where)
        trace = folder / (_text(entry, "trace", where) or "")
        return {"trace": trace, "kernels": _launches(entry, where)}
    _check_keys(entry, ("workload", "size", "seed", "kernels"), where)
    workload = _text(entry, "workload", where)
    if workload not in workloads.names():
        raise unknown("workload", workload, workloads.names(), where=f"kernels: {name}")
    size = _text(entry, "size", where) or "small"
    seed = _whole("seed", entry.get("seed", "0"), 0)
    return {"workload": workload, "size": size, "seed": seed, "kernels": _launches(entry, where)}


def _launches(entry: Mapping[str, Any], where: str) -> str | None:
    """Return the text that chooses launches, of which names are known only once there is a trace."""
    text = _text(entry, "kernels", where)
    if text is not None and not names_kernels(text):
        launches_of_text(text, where)
    return text


def _words(given: Any, key: str) -> list[str]:
    """Return the arguments of a program: a list, or text as one writes it in a shell."""
    if not isinstance(given, str):
        return _texts(given, key)
    try:
        return shlex.split(given)
    except ValueError as error:
        raise InputError(f"{key} = {shown(given)}: {error}") from None


def _gpu(entries: Mapping[str, Any], folder: Path) -> Gpu:
    text = _text(entries, "gpu")
    if text is None:
        raise InputError("there is no gpu; add a line `gpu: NAME` (see warpstack gpus)")
    is_file = text.endswith((".yaml", ".yml", ".config"))
    description = find_gpu(folder / text if is_file else text)
    changes = _mapping(entries.get("set", {}), "set")
    check_value_fields(changes, "set")
    return description.replace(**{k: value_of_text(k, v) for k, v in changes.items()})


def _axes(entries: Mapping[str, Any]) -> Axes:
    given = [key for key in ("axes", "points", "sample") if key in entries]
    if len(given) != 1:
        raise InputError(
            "there is no design: give one of axes, points and sample"
            if not given
            else f"{' and '.join(given)} are two designs; give one of them"
        )
    if given == ["axes"]:
        grid = _mapping(entries["axes"], "axes")
        check_value_fields(grid, "axes")
        for field, values in grid.items():
            if not isinstance(values, list):
                raise InputError(
                    f"axes: {field} = {shown(values)} is not a list of values, [1, 2, 4]"
                )
        axes: Axes = {k: [value_of_text(k, v) for v in values] for k, values in grid.items()}
    elif given == ["points"]:
        if not isinstance(entries["points"], list):
            raise not_a("points", "a list of points, - {field: value}", entries["points"])
        axes = []
        for number, point in enumerate(entries["points"]):
            fields = _mapping(point, f"points: point {number}")
            axes.append({k: value_of_text(k, v) for k, v in fields.items()})
    else:
        axes = _sample(_mapping(entries["sample"], "sample"))
    points_of(axes)
    return axes


def _sample(entries: Mapping[str, Any]) -> samples.Samples:
    _check_keys(entries, ("method", "n", "seed", "ranges"), "sample: ")
    for key in ("method", "n", "ranges"):
        if key not in entries:
            raise InputError(f"sample: {key} is missing")
    method = _text(entries, "method", "sample: ")
    if method not in _SAMPLERS:
        raise not_one_of("sample: method", method, _SAMPLERS)
    ranges = _mapping(entries["ranges"], "sample: ranges")
    check_value_fields(ranges, "sample: ranges")
    return _SAMPLERS[method](
        {field: _range(field, given) for field, given in ranges.items()},
        _whole("sample: n", entries["n"], 1),
        seed=_whole("sample: seed", entries.get("seed", "0"), 0),
    )


def _range(field: str, given: Any) -> Any:
    """Return a range of the samplers from ``{low: 1, high: 8, scale: log}`` or a list of choices."""
    where = f"sample: ranges: {field}: "
    if isinstance(given, list):
        return [value_of_text(field, value) for value in given]
    if not isinstance(given, dict):
        raise InputError(f"{where}expected {{low: NUMBER, high: NUMBER}} or a list of choices")
    _check_keys(given, ("low", "high", "scale"), where)
    if not given.keys() >= {"low", "high"}:
        raise InputError(f"{where}low or high is missing")
    bounds = tuple(value_of_text("", given[key]) for key in ("low", "high"))
    scale = given.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise not_one_of(f"{where}scale", scale, ("linear", "log"))
    return (*bounds, "log") if scale == "log" else bounds


_OPTIONS = ("selection", "misses", "merge_threshold", "access_order", "flush_l2", "initial_l2")


def _options(given: Any) -> Options:
    entries = _mapping(given, "options")
    _check_keys(entries, _OPTIONS, "options: ")
    values: dict[str, Any] = dict(entries)
    if "merge_threshold" in values:
        threshold = value_of_text("", values["merge_threshold"])
        if not isinstance(threshold, (int, float)):
            raise InputError(f"options: merge_threshold = {shown(threshold)} is not a number")
        values["merge_threshold"] = float(threshold)
    if "flush_l2" in values:
        flush = str(values["flush_l2"]).lower()
        if flush not in _TRUTHS:
            raise InputError(f"options: flush_l2 = {shown(flush)} is not true or false")
        values["flush_l2"] = _TRUTHS[flush]
    if isinstance(values.get("initial_l2"), str):
        value = value_of_text("", values["initial_l2"])  # a share, or a name
        values["initial_l2"] = value if isinstance(value, (int, float)) else str(value)
    return Options(**values)
