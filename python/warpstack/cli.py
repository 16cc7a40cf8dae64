"""The command line, one function per command."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pandas as pd

from warpstack import __version__, workloads
from warpstack._util.arguments import as_path, printable
from warpstack._util.files import remove_leftovers, write_file
from warpstack._util.input_file import MAX_TABLE_BYTES, read_input
from warpstack.cuda import host
from warpstack.errors import (
    DamageWarning,
    InputError,
    TraceWarning,
    UnmatchedWarning,
    UnusedOptionWarning,
)
from warpstack.exploration.design import SweepFile, launches_of_text
from warpstack.exploration.stage_cache import StageCache, default_folder, is_off
from warpstack.exploration.sweep import sweep
from warpstack.hardware.description import Gpu, check_field_names, gpu, gpus, value_of_text
from warpstack.interval.profile import MISS_SOURCES, SELECTIONS
from warpstack.memory.caches import ACCESS_ORDERS, cache_fields, simulate_caches
from warpstack.models import prediction
from warpstack.models.dvfs import dvfs
from warpstack.models.roofline import roofline
from warpstack.tables import check_csv_numbers, checked_table
from warpstack.timing import simulation
from warpstack.traces.io import WRITABLE, load, save
from warpstack.traces.io.common import reading
from warpstack.traces.trace import App
from warpstack.validation.validate import validate, validation_errors

DEFAULT_GPU = "pascal-mdm"
#: The models that MDM compares (Table V).
DEFAULT_MODELS = ("gpumech", "gpumech_plus", "mdm_queue", "mdm_mshr", "mdm", "warpstack")
DVFS_MODELS = ("gpumech", "mdm")
#: Columns of text in what predict and simulate print.
_TEXT_COLUMNS = ("gpu_changes", "name", "gpu", "app", "change", "model")
_VALIDATION_TEXTS = (
    "source",
    "app",
    "suite",
    "class",
    "name",
    "gpu",
    "gpu_changes",
    "model",
    "status",
)
#: More kernels than this are too many for one picture: they are added up.
MAX_PANELS = 16


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, or 2 after bad input."""
    for stream in (sys.stdout, sys.stderr):
        # Names of files and kernels may have characters that the terminal's encoding lacks.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            for category in (DamageWarning, TraceWarning, UnmatchedWarning, UnusedOptionWarning):
                warnings.simplefilter("always", category)
            warnings.showwarning = _show_warning
            arguments.run(arguments)
            sys.stdout.flush()
    except InputError as error:
        return _fail(str(error))
    except BrokenPipeError:
        _discard_output()  # the reader has seen enough
    except KeyboardInterrupt:
        _say("error", "interrupted")
        return 130
    except OSError as error:
        where = f"{printable(error.filename)}: " if isinstance(error.filename, str) else ""
        return _fail(where + (error.strerror or str(error)))
    except MemoryError:
        return _fail("not enough memory; give a smaller trace or --kernels, or a smaller GPU")
    except (UnicodeError, RecursionError) as error:
        return _fail(f"the input cannot be processed: {error}")
    return 0


def _fail(message: str) -> int:
    _say("error", message)
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    return 2


def _discard_output() -> None:
    """Send what standard output still holds nowhere, so that nothing is said at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(kind: str, message: str) -> None:
    print(f"warpstack: {kind}: " + " ".join(message.split()), file=sys.stderr)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say("warning", str(message))


# --- commands -----------------------------------------------------------------------------------


def _info(arguments: argparse.Namespace) -> None:
    app = _load(arguments)
    table = app.info()
    if arguments.opcodes:
        counts = pd.concat([kernel.instructions for kernel in app.kernels])
        groups = counts.groupby(["opcode", "op_class"], sort=False)["executions"].sum()
        table = groups.sort_values(ascending=False, kind="stable").reset_index()
    _print(arguments, table, {"dpki": "{:.1f}"})


def _predict(arguments: argparse.Namespace) -> None:
    wanted = prediction.model_list(_split(arguments.models or DEFAULT_MODELS))
    target = _gpu(arguments)
    _check_picture(arguments.plot)
    what = "the models " + ", ".join(wanted)
    read = prediction.fields_used(wanted) | cache_fields(arguments.access_order)
    _report_unused(arguments, target, read, what)
    app = _load(arguments)
    predictions = prediction.predict(
        app,
        target,
        wanted,
        selection=arguments.selection,
        misses=arguments.misses,
        merge_threshold=arguments.merge_threshold,
        access_order=arguments.access_order,
        flush_l2=arguments.flush_l2,
        progress=True,
    )
    if arguments.json:
        print(json.dumps(prediction.as_records(predictions), indent=1))
    elif arguments.csv:
        print(predictions.to_csv(index=False), end="")
    else:
        _print_stacks(app, target, predictions, ["model"])
    if arguments.plot:
        _draw(predictions, target, Path(arguments.plot))


def _print_stacks(app: App, target: Gpu, table: pd.DataFrame, by: list[str]) -> None:
    """Print the CPI stacks of kernels and their sum, told apart by columns besides the kernel."""
    about = f": {target.description}" if target.description else ""
    print(f"{app.name} on {target.title}{about}\n")
    print(_stack_table(table, ["kernel", "name", *by]))
    if len(app) > 1:
        print("\nAll kernels: sum of instructions / sum of cycles\n")
        print(_stack_table(prediction.application_totals(table), [*by, "kernels"]))


def _roofline(arguments: argparse.Namespace) -> None:
    wanted = prediction.model_list(_split(arguments.models or DEFAULT_MODELS))
    target = _gpu(arguments)
    _check_picture(arguments.plot)
    app = _load(arguments)
    table = roofline(app, target, wanted, simulate=arguments.simulate, progress=True)
    shown = table
    if not (arguments.json or arguments.csv):
        columns = ["kernel", "name", "model", "level", "intensity", "gips", "roof_gips"]
        shown = table[[*columns, "roof_fraction", "limit"]]
    _print(arguments, shown, _short_floats(shown))
    if arguments.plot:
        from warpstack import plot

        _save_figure(plot.roofline(table).figure, Path(arguments.plot), "roofline")


def _dvfs(arguments: argparse.Namespace) -> None:
    wanted = _split(arguments.models or DVFS_MODELS)
    target = _gpu(arguments)
    _check_picture(arguments.plot)
    app = _load(arguments)
    table = dvfs(app, target, arguments.clocks, wanted, progress=True)
    shown = table
    if not (arguments.json or arguments.csv):
        columns = ["kernel", "name", "model", "clock_ghz", "cycles", "time_us", "ipc"]
        shown = table[[*columns, "relative_time"]]
    _print(arguments, shown, _short_floats(shown))
    if arguments.plot:
        from warpstack import plot

        _save_figure(plot.dvfs(table).figure, Path(arguments.plot), "time against clock")


def _caches(arguments: argparse.Namespace) -> None:
    target = _gpu(arguments)
    read = cache_fields(arguments.access_order)
    _report_unused(arguments, target, read, "cache simulation")
    app = _load(arguments)
    profiles = simulate_caches(
        app,
        target,
        access_order=arguments.access_order,
        flush_l2=arguments.flush_l2,
        progress=True,
    )
    if arguments.per_pc:
        tables = []
        for profile in profiles:
            table = profile.per_pc
            table.insert(0, "kernel", profile.kernel.launch_id)
            tables.append(table)
        _print(arguments, pd.concat(tables), dict.fromkeys(("l1_hit", "l2_hit", "dram"), "{:.3f}"))
        return
    rows = [
        {"kernel": p.kernel.launch_id, "name": p.kernel.short_name, **p.totals, **p.occupancy}
        for p in profiles
    ]
    table = pd.DataFrame(rows)
    if arguments.json or arguments.csv:
        _print(arguments, table)
        return
    for name in ("l1_read", "l1_write", "l2_read", "l2_write"):
        hits, all_sectors = table[f"{name}_sector_hits"], table[f"{name}_sectors"]
        table[f"{name}_hits_%"] = (100 * hits / all_sectors.where(all_sectors > 0)).astype(float)
    shown = ["kernel", "name"]
    for name in ("l1_read", "l1_write", "l2_read", "l2_write"):
        shown += [f"{name}_sectors", f"{name}_hits_%"]
    shown += ["dram_read_sectors", "dram_write_sectors"]
    print(f"{app.name} on {target.title}: 32-byte sectors\n")
    _print(arguments, table[shown], {f: "{:.1f}" for f in shown if f.endswith("%")})


def _trace(arguments: argparse.Namespace) -> None:
    if bool(arguments.command) == (arguments.workload is not None):
        raise InputError(
            "trace: give either a program (warpstack trace -o FOLDER -- ./program its arguments) or "
            "--workload NAME"
        )
    if arguments.command:
        _trace_program(arguments)
        return
    target = as_path("--output", arguments.output)
    if target.exists() and not arguments.overwrite:  # said before the work, not after it
        raise InputError(
            f"{printable(target)}: exists already; choose another name or give --overwrite"
        )
    app = workloads.load(arguments.workload, arguments.size, arguments.seed)
    _save(arguments, app)


def _simulate(arguments: argparse.Namespace) -> None:
    target = _gpu(arguments)
    _report_unused(arguments, target, simulation.fields_used(target), "the simulation")
    app = _load(arguments)
    results = simulation.simulate(
        app,
        target,
        flush_l2=arguments.flush_l2,
        sample_cycles=arguments.sample_cycles,
        max_cycles=arguments.max_cycles,
        progress=True,
    )
    if arguments.sample_cycles is not None:
        tables = []
        for result in results:
            samples = result.timeline
            samples.insert(0, "kernel", result.kernel.launch_id)
            tables.append(samples)
        _print(arguments, pd.concat(tables, ignore_index=True))
        return
    table = simulation.as_table(results)
    if arguments.json:
        print(json.dumps(simulation.as_records(results), indent=1))
    elif arguments.csv:
        print(table.to_csv(index=False), end="")
    else:
        _print_stacks(app, target, table, [])
        print("\nLatency of the loads' L1 misses, mean cycles by part\n")
        rows = [
            {
                "kernel": result.kernel.launch_id,
                "misses": result.misses,
                **result.miss_latency["mean"].to_dict(),
                "sum": result.miss_latency["mean"].sum(skipna=False),
            }
            for result in results
        ]
        formats = dict.fromkeys([*simulation.LATENCY_PARTS, "sum"], "{:.1f}")
        print(_text_table(pd.DataFrame(rows), formats, ()))


def _convert(arguments: argparse.Namespace) -> None:
    _save(arguments, _load(arguments), arguments.to, arguments.binary_version, arguments.xz)


def _save(
    arguments: argparse.Namespace,
    app: App,
    kind: str = "parquet",
    binary_version: int | None = None,
    xz: bool = False,
) -> None:
    save(
        app,
        arguments.output,
        format=kind,
        binary_version=binary_version,
        compression="xz" if xz else None,
        overwrite=arguments.overwrite,
        progress=True,
    )
    size = sum(file.stat().st_size for file in Path(arguments.output).rglob("*") if file.is_file())
    print(
        f"{printable(arguments.output)}: {len(app)} kernels, {sum(k.num_instructions for k in app):,} warp "
        f"instructions, {size / 2**20:.2f} MiB"
    )


def _trace_program(arguments: argparse.Namespace) -> None:
    run = host.trace_program(
        arguments.command,
        arguments.output,
        gpu=_gpu(arguments),
        kernel=arguments.kernel,
        limit_launches=arguments.limit_launches,
        device_memory_mib=arguments.device_memory,
        allow_uninitialized=arguments.allow_uninitialized,
        on_fault=arguments.on_fault,
        check_races=arguments.check_races,
        overwrite=arguments.overwrite,
        progress=True,
    )
    # Standard output is the program's.
    output = printable(arguments.output)
    what = f"{run.traced} of {run.launches} launches, {run.instructions:,} warp instructions"
    _say("note", f"{output}: {what}")
    if run.problem():
        raise InputError(f"{run.problem()}; {output} has what was traced")


def _validate(arguments: argparse.Namespace) -> None:
    _check_picture(arguments.plot)
    predictions = pd.concat(
        [_predictions(path, arguments.metric) for path in arguments.predictions]
    )
    if arguments.app is not None:
        predictions["app"] = arguments.app
    table = validate(
        predictions,
        arguments.reference,
        metric=arguments.metric,
        match=arguments.match,
        clock_ghz=arguments.clock_ghz,
        suites=_pairs("--suite", arguments.suite),
        classes=_pairs("--class", arguments.classes),
    )
    fractions = ["error", "mape", "max_error"]
    formats = {
        **dict.fromkeys(["predicted", "measured", "mae"], "{:.6g}"),
        **dict.fromkeys([f"{name}_%" for name in fractions], "{:.1f}"),
        **dict.fromkeys(["ratio", "gmean_ratio", "pearson", "spearman"], "{:.3f}"),
    }
    shown = table
    if arguments.by != "kernel":
        by = None if arguments.by == "model" else arguments.by
        shown = validation_errors(table, by, pairs=arguments.pairs)
    if not (arguments.json or arguments.csv):
        # What is empty or the same everywhere goes to a line above.
        constant = ["gpu", "gpu_changes", "source", "suite", "class", "app", "metric"]
        dull = [c for c in constant if c in shown and len(shown[c].unique()) == 1]
        about = [str(shown[c].iloc[0]) for c in dull if c != "metric" and shown[c].iloc[0] != ""]
        print(f"{arguments.metric}, predicted against reference: {', '.join(about)}\n")
        shown = shown.drop(columns=dull)
        for name in [name for name in fractions if name in shown]:
            shown[name] = 100 * shown[name]
        shown = shown.rename(columns={name: f"{name}_%" for name in fractions})
    _print(arguments, shown, formats, _VALIDATION_TEXTS)
    if arguments.plot:
        _draw_validation(table, Path(arguments.plot))


def _predictions(path: str, metric: str) -> pd.DataFrame:
    """Read what ``predict`` or ``simulate`` printed with ``--csv`` or ``--json``."""
    place = as_path("predictions", path)
    where = printable(place)
    with reading(place):
        text = read_input(place, "table", MAX_TABLE_BYTES)
    try:
        if text.lstrip()[:1] == b"[":
            records = json.loads(text)
            if not all(isinstance(record, dict) for record in records):
                raise ValueError("not a list of objects")
            table = pd.DataFrame(
                [{k: v for k, v in r.items() if not isinstance(v, dict)} for r in records]
            )
        else:
            table = pd.read_csv(io.BytesIO(text), dtype=dict.fromkeys(_TEXT_COLUMNS, str))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not what predict --csv or --json prints: {error}") from None
    if "kernel" not in table:
        raise InputError(f"{where}: not what predict --csv or --json prints: no column kernel")
    numbers = [name for name in ("kernel", metric, "cycles", "instructions") if name in table]
    check_csv_numbers(where, table, numbers, lines=text.lstrip()[:1] != b"[")
    table = checked_table(where, table, texts=_TEXT_COLUMNS)
    return table


def _pairs(option: str, values: Sequence[str]) -> dict[str, str] | None:
    """Read ``APP=VALUE``."""
    pairs = {}
    for text in values:
        app, equals, value = text.rpartition("=")
        if not equals or not app:
            raise InputError(f"{option} {text}: expected APP=VALUE")
        pairs[app] = value
    return pairs or None


def _draw_validation(table: pd.DataFrame, path: Path) -> None:
    import matplotlib.pyplot as plt

    from warpstack.plot.validation import errors, scatter

    figure, axes = plt.subplots(
        2, 1, figsize=(9, 9), layout="constrained", gridspec_kw={"height_ratios": [1, 1.2]}
    )
    errors(table, axes[0])
    scatter(table, axes[1], title="")
    _save_figure(figure, path, "Errors")


def _workloads(arguments: argparse.Namespace) -> None:
    left = ("name", "suite", "class", "title")
    _print(arguments, workloads.table(), {"launches": "{:.0f}", "dpki": "{:.1f}"}, left)


def _gpus(arguments: argparse.Namespace) -> None:
    if arguments.fields:
        meanings, ranges = Gpu.fields(), Gpu.ranges()
        columns = {"field": meanings.keys(), "meaning": meanings.values(), "range": ranges.values()}
        table = pd.DataFrame(columns)
    elif arguments.name:
        one = gpu(arguments.name)
        values = one.values()
        table = pd.DataFrame(
            {
                "field": values.keys(),
                "value": [_plain(value) for value in values.values()],
                "source": [one.sources.get(field, "") for field in values],
            }
        )
    else:
        every = [gpu(name) for name in gpus()]
        table = pd.DataFrame(
            {
                "name": [g.name for g in every],
                "num_sms": [g.num_sms for g in every],
                "clock_ghz": [g.clock_ghz for g in every],
                "l2_mib": [g.l2_size_kib / 1024 for g in every],
                "dram_bandwidth_gbs": [g.dram_bandwidth_gbs for g in every],
                "description": [g.description for g in every],
            }
        )
    _print(
        arguments,
        table,
        left=("name", "description", "field", "meaning", "range", "value", "source"),
    )


# --- what the commands share --------------------------------------------------------------------


def _load(arguments: argparse.Namespace) -> App:
    return load(
        arguments.trace,
        kernels=launches_of_text(arguments.kernels, "--"),
        memory_limit_mib=arguments.memory_limit,
        missing="skip" if arguments.skip_missing else "error",
        progress=True,
    )


def _split(values: Sequence[str]) -> list[str]:
    return [name for value in values for name in value.split(",") if name]


def _gpu(arguments: argparse.Namespace) -> Gpu:
    return _with_settings(gpu(arguments.gpu), arguments.set)


def _with_settings(description: Gpu, settings: Sequence[str]) -> Gpu:
    changes: dict[str, Any] = {}
    for setting in settings:
        field, equals, text = setting.partition("=")
        field, text = field.strip(), text.strip()
        if not equals:
            raise InputError(f"--set {setting}: expected field=value")
        check_field_names([field], f"--set {setting}")
        changes[field] = value_of_text(field, text)
    return description.replace(**changes) if changes else description


def _report_unused(
    arguments: argparse.Namespace, target: Gpu, used: AbstractSet[str], what: str
) -> None:
    """Say which settings change nothing that is used, neither themselves nor through others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedOptionWarning)  # it was shown when target was made
        base = gpu(arguments.gpu)
    for setting in arguments.set:
        field = setting.partition("=")[0].strip()
        if field in used or field in ("name", "description"):
            continue
        try:
            without = _with_settings(base, [s for s in arguments.set if s != setting])
        except InputError:
            continue  # the other settings need it
        if all(getattr(without, name) == getattr(target, name) for name in used):
            _say("note", f"--set {setting} has no effect on {what}")


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print(
    arguments: argparse.Namespace,
    table: pd.DataFrame,
    formats: dict[str, str] | None = None,
    left: Sequence[str] = ("name", "opcode", "op_class", "space", "kind"),
) -> None:
    """Print a table as text, JSON or CSV."""
    if arguments.json:
        records = table.astype(object).where(table.notna(), None).to_dict("records")
        print(json.dumps(records, indent=1))
    elif arguments.csv:
        print(table.to_csv(index=False), end="")
    else:
        print(_text_table(table, formats or {}, left))


def _short_floats(table: pd.DataFrame) -> dict[str, str]:
    return {str(column): "{:.4g}" for column in table.select_dtypes(float).columns}


def _text_table(table: pd.DataFrame, formats: dict[str, str], left: Sequence[str]) -> str:
    def cell(column: str, value: Any) -> str:
        if isinstance(value, float) and value != value:
            return "-"
        if column in formats:
            return formats[column].format(value)
        if isinstance(value, tuple):
            return "x".join(map(str, value))
        return _plain(value)

    columns = [str(column) for column in table.columns]
    body = [
        [cell(c, v) for c, v in zip(columns, row, strict=True)]
        for row in table.itertuples(index=False, name=None)
    ]
    widths = [max(len(r[i]) for r in [columns, *body]) for i in range(len(columns))]
    lines = []
    for row in [columns, *body]:
        cells = [
            text.ljust(width) if column in left else text.rjust(width)
            for column, text, width in zip(columns, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _stack_table(predictions: pd.DataFrame, of: Sequence[str]) -> str:
    """Return predictions as text: what they are of, and the stack under short names."""
    stack = {f"cpi_{component}": component for component in prediction.STACK_COMPONENTS}
    shown = [*of, "instructions", "cycles", "ipc", "cpi", *stack]
    table = predictions[shown].rename(columns=stack)
    formats = {"cycles": "{:.0f}", **dict.fromkeys(["ipc", "cpi", *stack.values()], "{:.3f}")}
    return _text_table(table, formats, ("name", "model"))


def _check_picture(path: str | None) -> None:
    """Refuse a picture that could not be written before any work is done."""
    if path is None:
        return
    import matplotlib.pyplot as plt

    target = as_path("--plot", path)
    supported = plt.figure().canvas.get_supported_filetypes()
    plt.close()
    if target.suffix.lstrip(".").lower() not in supported:
        raise InputError(
            f"--plot {path}: the file name must end in one of "
            + ", ".join(f".{ending}" for ending in sorted(supported))
        )
    folder = Path(os.path.realpath(target)).parent
    if not folder.is_dir():
        raise InputError(f"--plot {path}: there is no folder {folder}")
    if target.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"--plot {path}: cannot be written")


def _draw(predictions: pd.DataFrame, target: Gpu, path: Path) -> None:
    import matplotlib.pyplot as plt

    from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks, num_launches

    kernels = num_launches(predictions)
    what = "IPC of the GPU"
    if kernels > MAX_PANELS:
        totals = prediction.application_totals(predictions)
        title = f"{target.title}, {kernels} kernels together (above the bars: {what})"
        figure, axes = plt.subplots(figsize=(8, 5.2), layout="constrained")
        cpi_stack(totals, axes, title=title)
    else:
        figure = cpi_stacks(predictions, title=f"{target.title} (above the bars: {what})")
    _save_figure(figure, path, "CPI stacks")


def _save_figure(figure: Any, path: Path, what: str) -> None:
    import matplotlib.pyplot as plt

    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError(f"--plot {path}: cannot be written: {error.strerror or error}") from None
    finally:
        plt.close("all")
    print(f"\n{what}: {printable(path)}", file=sys.stderr)


def _sweep(arguments: argparse.Namespace) -> None:
    design = SweepFile.read(arguments.design)
    output = Path(arguments.output) if arguments.output else design.output
    if output is not None and output.suffix not in (".csv", ".parquet"):
        raise InputError(f"--output {printable(output)}: does not end in .csv or .parquet")
    store = arguments.store or design.store
    if arguments.resume and store is None:
        raise InputError("--resume: there is no store; add a line `store: FOLDER` or give --store")
    workers = arguments.workers or design.workers
    apps = design.load(progress=True)
    start = time.perf_counter()
    table = sweep(
        apps,
        design.gpu,
        design.axes,
        design.models,
        workers=workers,
        store=store,
        resume=arguments.resume,
        cache=True if design.cache is None else design.cache,
        progress=True,
        **dataclasses.asdict(design.options),
    )
    seconds = time.perf_counter() - start
    if output is not None:
        _write_table(table, output)
    for request in design.plots:
        request.draw(table, design.gpu)
        print(f"{request.kind}: {printable(request.file)}", file=sys.stderr)
    if arguments.json or arguments.csv:
        _print(arguments, table)
        return
    points, failed = table["point"].nunique(), table.loc[table["error"] != "", "point"].nunique()
    print(
        f"{points:,} points of {', '.join(table.attrs['axes']) or 'no field'}, {len(apps)} applications, "
        f"{len(table):,} predictions in {seconds:.1f} s ({len(table) / seconds:,.0f} per s)"
    )
    if failed:
        first = table.loc[table["error"] != ""].iloc[0]
        print(f"{failed:,} points have errors; point {first['point']}: {first['error']}")
    _print_best(table)
    if output is not None:
        print(f"\nAll rows: {printable(output)}", file=sys.stderr)


def _print_best(table: pd.DataFrame) -> None:
    """Print the fastest points of each application and model: fewest cycles of all kernels."""
    good = table[table["error"] == ""]
    keys = ["app", "model", "point", *table.attrs["axes"]]
    totals = good.groupby(keys, sort=False)[["instructions", "cycles"]].sum().reset_index()
    totals["ipc"] = totals.pop("instructions") / totals["cycles"]
    best = totals.sort_values("cycles", kind="stable").groupby(["app", "model"], sort=False).head(3)
    best = best.sort_values(["app", "model", "cycles"], kind="stable")
    print("\nFewest cycles of all kernels\n")
    print(_text_table(best, {"cycles": "{:.0f}", "ipc": "{:.3f}"}, ("app", "model")))


def _write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table, complete or not at all."""
    write = table.to_csv if path.suffix == ".csv" else table.to_parquet
    try:
        remove_leftovers(path.parent)
        write_file(path, lambda partial: write(partial, index=False))
    except OSError as error:
        raise InputError(
            f"--output {printable(path)}: cannot be written: {error.strerror or error}"
        ) from None


def _figure(arguments: argparse.Namespace) -> None:
    from warpstack import figures  # draws, which takes a moment to load

    if sum((bool(arguments.names), arguments.all, arguments.list)) != 1:
        raise InputError("figure: give names of figures (see --list), or --all, or --list")
    if arguments.list:
        known = [figures.get(name) for name in figures.names(measured=True)]
        table = pd.DataFrame([{"name": f.name, "title": f.title, "paper": f.paper} for f in known])
        _print(arguments, table, {}, ("name", "title", "paper"))
        return
    wanted = [
        figures.get(name)
        for name in arguments.names or figures.names(measured=arguments.hardware is not None)
    ]
    output = as_path("--output", arguments.output)
    if output.exists() and not output.is_dir():  # said before the work, not after it
        raise InputError(f"--output {printable(output)}: is no folder")
    hardware = None
    if arguments.hardware is not None:
        hardware = figures.read_hardware(arguments.hardware, arguments.gpu)
    study = figures.Study(
        arguments.size,
        only=arguments.workloads,
        cache=not arguments.no_cache,
        workers=arguments.workers,
        progress=True,
        hardware=hardware,
    )
    reports = []
    for figure in wanted:
        reports.append(
            figures.redraw(figure, output)
            if arguments.redraw
            else figures.write_report(figure, study, output)
        )
        print(f"{figure.name}: {printable(reports[-1].picture)}", file=sys.stderr)
    if arguments.all:
        index = figures.write_index(reports, study, output, figures.LEFT_OUT)
        print(f"index: {printable(index)}", file=sys.stderr)
    table = pd.concat([report.to_frame() for report in reports], ignore_index=True)
    if not (arguments.json or arguments.csv):
        table["holds"] = table["holds"].map({True: "yes", False: "no"})
    _print(arguments, table, {}, ("figure", "claim", "paper", "ours", "holds"))


def _cache(arguments: argparse.Namespace) -> None:
    cache = StageCache(arguments.folder or default_folder())
    if arguments.clear:
        size = cache.size_bytes
        print(f"{printable(cache.folder)}: {cache.clear()} entries removed, {size / 2**20:.2f} MiB")
        return
    table = pd.DataFrame(cache.summary(), columns=["stage", "entries", "bytes"])
    if not (arguments.json or arguments.csv):
        state = "off (WARPSTACK_CACHE)" if is_off() and not arguments.folder else "on"
        print(
            f"{printable(cache.folder)}: {state}, {table['bytes'].sum() / 2**20:.2f} of "
            f"{cache.limit_bytes / 2**20:g} MiB"
        )
        if table.empty:
            return
        print()
    _print(arguments, table)


# --- arguments ----------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> Any:
        _say("error", f"{message} (see {self.prog} --help)")
        self.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="warpstack",
        description="Predict how fast a traced GPU kernel runs on a GPU, and why.",
    )
    parser.add_argument("--version", action="version", version=f"warpstack {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    with _command(commands, "info", _info, "what a trace contains") as info:
        _add_trace(info)
        info.add_argument(
            "--opcodes", action="store_true", help="count warp instructions by opcode"
        )
        _add_output(info)

    with _command(commands, "predict", _predict, "IPC and CPI stacks of kernels") as predict:
        _add_trace(predict)
        _add_gpu(predict)
        _add_models(predict, DEFAULT_MODELS)
        predict.add_argument(
            "--plot", metavar="FILE", help="draw the CPI stacks (.png, .pdf, .svg)"
        )
        predict.add_argument(
            "--selection", choices=SELECTIONS, default="clustering", help="representative warp"
        )
        predict.add_argument(
            "--misses",
            choices=MISS_SOURCES,
            default="per_pc",
            help="where an interval's misses come from",
        )
        predict.add_argument(
            "--merge-threshold",
            type=float,
            default=0,
            metavar="CYCLES",
            help="stalls of at most this many cycles do not end an interval (default: 0)",
        )
        _add_access_order(predict)
        predict.add_argument("--flush-l2", action="store_true", help="empty L2 between kernels")
        _add_output(predict)

    with _command(
        commands, "roofline", _roofline, "kernels under the roofs of L1, L2 and DRAM"
    ) as roofs:
        _add_trace(roofs)
        _add_gpu(roofs)
        _add_models(roofs, DEFAULT_MODELS)
        roofs.add_argument("--simulate", action="store_true", help="add the simulation")
        roofs.add_argument("--plot", metavar="FILE", help="draw the roofline (.png, .pdf, .svg)")
        _add_output(roofs)

    with _command(
        commands, "dvfs", _dvfs, "time of kernels against the clock of the SMs"
    ) as clocks:
        _add_trace(clocks)
        _add_gpu(clocks)
        clocks.add_argument(
            "--clocks",
            nargs="+",
            type=float,
            required=True,
            metavar="GHZ",
            help="besides that of the GPU",
        )
        _add_models(clocks, DVFS_MODELS, "crisp, simulation, ")
        clocks.add_argument("--plot", metavar="FILE", help="draw the times (.png, .pdf, .svg)")
        _add_output(clocks)

    with _command(commands, "caches", _caches, "hits and traffic of L1, L2 and DRAM") as caches:
        _add_trace(caches)
        _add_gpu(caches)
        caches.add_argument("--per-pc", action="store_true", help="one row per memory instruction")
        _add_access_order(caches)
        caches.add_argument("--flush-l2", action="store_true", help="empty L2 between kernels")
        _add_output(caches)

    with _command(
        commands,
        "simulate",
        _simulate,
        "cycles of kernels, cycle by cycle, and what they are lost to",
    ) as simulate:
        _add_trace(simulate)
        _add_gpu(simulate)
        simulate.add_argument("--flush-l2", action="store_true", help="empty L2 between kernels")
        simulate.add_argument(
            "--sample-cycles",
            type=int,
            metavar="CYCLES",
            help="print the state of MSHRs and queues every so many cycles instead",
        )
        simulate.add_argument(
            "--max-cycles", type=int, metavar="CYCLES", help="give up on a kernel that takes longer"
        )
        _add_output(simulate)

    with _command(
        commands, "trace", _trace, "run a workload or a CUDA program, without a GPU"
    ) as trace:
        trace.add_argument("--workload", metavar="NAME", help="one of warpstack workloads")
        trace.add_argument(
            "--size", default="small", help="small (seconds) or paper (near the original's input)"
        )
        trace.add_argument("--seed", type=int, default=0, help="of the inputs (default: 0)")
        trace.add_argument("--output", "-o", required=True, help="folder to write")
        trace.add_argument("--overwrite", action="store_true", help="replace a saved trace")
        _add_trace_program(trace)

    with _command(commands, "convert", _convert, "save a trace in another format") as convert:
        _add_trace(convert)
        convert.add_argument("output", help="folder to write")
        convert.add_argument(
            "--to",
            choices=WRITABLE,
            default=WRITABLE[0],
            help="parquet: quick to load; accelsim: runs in Accel-Sim (default: parquet)",
        )
        convert.add_argument(
            "--binary-version",
            type=int,
            metavar="VERSION",
            help="with --to accelsim: SM version whose SASS names PTX operations get (default: the "
            "trace's, or 80)",
        )
        convert.add_argument("--xz", action="store_true", help="with --to accelsim: compress")
        convert.add_argument("--overwrite", action="store_true", help="replace a saved trace")

    with _command(
        commands, "validate", _validate, "errors of predictions against references"
    ) as checking:
        checking.add_argument(
            "predictions", nargs="+", help="what predict or simulate printed with --csv or --json"
        )
        checking.add_argument(
            "reference", help="a table of results, or what ncu --csv or nvprof --csv wrote"
        )
        checking.add_argument(
            "--metric", default="cycles", help="column to compare (default: cycles)"
        )
        checking.add_argument(
            "--by",
            choices=("model", "kernel", "app", "suite", "class"),
            default="model",
            help="a row per this, for each model (default: model)",
        )
        checking.add_argument(
            "--pairs",
            choices=("kernel", "app"),
            default="kernel",
            help="what an error is of: a kernel, or the sum of an application (default: kernel)",
        )
        checking.add_argument(
            "--match",
            choices=("auto", "number", "order"),
            default="auto",
            help="match launches by number, or by name and order (default: what fits)",
        )
        checking.add_argument("--app", help="the application that the predictions are of")
        checking.add_argument(
            "--suite", action="append", default=[], metavar="APP=SUITE", help="may be repeated"
        )
        checking.add_argument(
            "--class",
            dest="classes",
            action="append",
            default=[],
            metavar="APP=CLASS",
            help="such as bfs=MD; may be repeated",
        )
        checking.add_argument(
            "--clock-ghz", type=float, metavar="GHZ", help="turns measured times into cycles"
        )
        checking.add_argument("--plot", metavar="FILE", help="draw errors and values (.png, .pdf)")
        _add_output(checking)

    with _command(
        commands, "sweep", _sweep, "predictions over a design space that a file describes"
    ) as sweeping:
        sweeping.add_argument("design", help="a .yaml file; see docs/sweep.md")
        sweeping.add_argument(
            "--output", "-o", metavar="FILE", help="write all rows (.csv, .parquet)"
        )
        sweeping.add_argument("--store", metavar="FOLDER", help="write results as they come")
        sweeping.add_argument(
            "--resume", action="store_true", help="compute only what the store does not hold"
        )
        sweeping.add_argument(
            "--workers", type=int, metavar="N", help="threads (default: one per core)"
        )
        _add_output(sweeping)

    with _command(
        commands,
        "figure",
        _figure,
        "figures and tables of the papers, and whether their claims hold",
    ) as drawing:
        drawing.add_argument(
            "names", nargs="*", metavar="NAME", help="such as mdm-fig5; see --list"
        )
        drawing.add_argument("--list", action="store_true", help="what there is")
        drawing.add_argument("--all", action="store_true", help="all of them, and an index page")
        drawing.add_argument(
            "--size",
            default="small",
            help="of the workloads: small or paper, which takes far longer (default: small)",
        )
        drawing.add_argument(
            "--workloads",
            nargs="+",
            metavar="NAME",
            help="of these alone (see warpstack workloads)",
        )
        drawing.add_argument(
            "--hardware",
            metavar="FILE",
            help="for mdm-fig10: a table (.csv) of app and cycles, measured on --gpu",
        )
        drawing.add_argument(
            "--gpu", default="gtx1080", help="what --hardware was measured on (default: gtx1080)"
        )
        drawing.add_argument(
            "--output", "-o", default="figures", help="folder to write (default: figures)"
        )
        drawing.add_argument(
            "--workers", type=int, default=2, metavar="N", help="threads (default: 2)"
        )
        drawing.add_argument(
            "--no-cache", action="store_true", help="compute all anew and keep nothing on disk"
        )
        drawing.add_argument(
            "--redraw", action="store_true", help="draw again from the data in --output"
        )
        _add_output(drawing)

    with _command(commands, "cache", _cache, "stage results that sweeps keep on disk") as caching:
        caching.add_argument("--folder", help="another folder than the user's")
        caching.add_argument("--clear", action="store_true", help="remove all entries")
        _add_output(caching)

    with _command(commands, "gpus", _gpus, "the GPU descriptions") as listing:
        listing.add_argument("name", nargs="?", help="show this description with its sources")
        listing.add_argument("--fields", action="store_true", help="what each field means")
        _add_output(listing)

    with _command(commands, "workloads", _workloads, "the workloads that can be traced") as listing:
        _add_output(listing)
    return parser


@contextlib.contextmanager
def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], summary: str
) -> Iterator[argparse.ArgumentParser]:
    parser = commands.add_parser(
        name, help=summary, description=summary[0].upper() + summary[1:] + "."
    )
    parser.set_defaults(run=run)
    yield parser


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "trace",
        help="kernelslist.g, one kernel (.traceg, .trace, also compressed), a folder, or a saved trace",
    )
    parser.add_argument(
        "--kernels", "--kernel", metavar="N,N-M", help="launches to read (default: all)"
    )
    parser.add_argument(
        "--skip-missing",
        action="store_true",
        help="pass over kernels whose files the kernel list names but that are not there",
    )
    parser.add_argument(
        "--memory-limit",
        type=float,
        metavar="MIB",
        help="keep longer traces in a temporary file (default: 512, less on a small machine)",
    )


def _add_trace_program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "command",
        nargs="*",
        metavar="-- PROGRAM ARGUMENT",
        help="a CUDA program, built with nvcc -cudart shared and with PTX in it, and its arguments",
    )
    parser.add_argument(
        "--kernel",
        metavar="REGEX",
        help="trace only kernels whose name matches (as grep -E does); the others run untraced",
    )
    parser.add_argument(
        "--limit-launches",
        type=int,
        metavar="N",
        help="trace the first N launches (that match); later ones run untraced",
    )
    parser.add_argument(
        "--device-memory",
        type=float,
        metavar="MIB",
        help="memory of the simulated device (default: 16384)",
    )
    parser.add_argument(
        "--allow-uninitialized",
        action="store_true",
        help="let kernels read device memory that nobody has written",
    )
    parser.add_argument(
        "--on-fault",
        choices=("stop", "continue"),
        default="stop",
        help="continue: note faults that a GPU may let pass, once per line, and go on (default: stop)",
    )
    parser.add_argument(
        "--check-races",
        action="store_true",
        help="find accesses of the warps of a block that no barrier orders",
    )
    _add_gpu(parser)


def _add_access_order(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--access-order",
        choices=ACCESS_ORDERS,
        default=ACCESS_ORDERS[0],
        help="in which order the warps of an SM access memory (default: round_robin)",
    )


def _add_gpu(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpu",
        default=DEFAULT_GPU,
        help=f"name (see warpstack gpus), .yaml file or gpgpusim.config (default: {DEFAULT_GPU})",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a field of the GPU (see warpstack gpus --fields); may be repeated",
    )


def _add_models(parser: argparse.ArgumentParser, default: Sequence[str], besides: str = "") -> None:
    parser.add_argument(
        "--models",
        "--model",
        "-m",
        action="extend",
        nargs="+",
        default=None,
        metavar="MODEL",
        help=f"{', '.join(prediction.names())}, {besides}or all (default: {' '.join(default)})",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--csv", action="store_true", help="print CSV")


if __name__ == "__main__":
    sys.exit(main())
