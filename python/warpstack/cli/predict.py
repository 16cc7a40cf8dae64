"""``warpstack predict``."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import warpstack as ws
from warpstack._util.lazy import pandas as pd
from warpstack._util.output_file import OutputFile
from warpstack.cli.common.gpu_options import add_gpu, read_gpus, report_unused
from warpstack.cli.common.layout import Look, paragraph
from warpstack.cli.common.option_values import add_option_values
from warpstack.cli.common.output import (
    add_output,
    line_width,
    print_csv,
    print_json,
    print_latex,
    print_table,
    say_text,
)
from warpstack.cli.common.pictures import add_plot, check_picture, look_options, save_picture
from warpstack.cli.common.settings_text import options_given, print_settings
from warpstack.cli.common.stage_options import (
    DEFAULT_MODELS,
    add_access_order,
    add_l2,
    add_models,
    add_profiler,
    add_representative,
    add_sample_blocks,
    add_sample_launches,
    add_sampling,
    split,
)
from warpstack.cli.common.subject import Subject, simulated
from warpstack.cli.common.trace_options import WARM_L2, add_trace, load_subjects

if TYPE_CHECKING:
    from warpstack._util.options import Options
    from warpstack.cli.common.answer import Sums
    from warpstack.cli.common.differences import Difference
    from warpstack.hardware.description import Gpu
    from warpstack.timing.simulation import SimulationResult
    from warpstack.traces.trace import App

SUMMARY = "how fast kernels run, and what most cycles go to"

#: The models that answer a reader who does not ask for any: the default, and one of the papers beside it.
_ANSWERS = (*DEFAULT_MODELS, "mdm")
#: The simulator answers, too, up to this many warp instructions: it takes a second or so.
_CHEAP_INSTRUCTIONS = 200_000
#: Warp instructions that it simulates in a second where accesses hit, and where they diverge and miss.
_SIMULATED_PER_SECOND = (1_000_000, 100_000)
#: Kernels that are printed unless asked for more.
_MOST_ROWS = 10
#: Most sentences that are printed.
_MAX_REASONS = 8
#: Columns that are printed of kernels that run at the same time.
_CONCURRENT = ("kernel", "name", "stream", "start", "end", "cycles", "cycles_alone", "ipc")
#: More kernels than this are too many for one picture: they are added up.
_MAX_PANELS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from warpstack.cli.common.answer import SORTS

    add_trace(parser, about_l2=WARM_L2)
    add_gpu(parser, several=True)
    add_models(
        parser, (f"{DEFAULT_MODELS[0]}, with mdm beside it in what is printed for a reader",)
    )
    add_plot(parser, "draw the CPI stacks (.png, .pdf, .svg)")
    add_representative(parser)
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="simulate, too: cycles and errors beside the models', and why they differ",
    )
    parser.add_argument(
        "--per-launch",
        action="store_true",
        help="each launch by itself, not those of a name together",
    )
    parser.add_argument(
        "--what-if",
        action="store_true",
        help="what other hardware would do: twice the SMs, MSHRs, bandwidths or caches, half the latencies",
    )
    parser.add_argument(
        "--concurrent",
        action="store_true",
        help="run all kernels at the same time, those of one stream one after the other",
    )
    parser.add_argument("--sort", choices=list(SORTS), default="time", help="order of the kernels")
    parser.add_argument(
        "--top",
        type=int,
        default=_MOST_ROWS,
        metavar="N",
        help=f"kernels to print (default: {_MOST_ROWS})",
    )
    parser.add_argument("--stacks", action="store_true", help="print the CPI stacks, too")
    add_access_order(parser)
    add_l2(parser)
    add_sampling(parser)
    add_sample_blocks(parser)
    add_sample_launches(parser)
    add_profiler(parser)
    add_option_values(parser)
    add_output(parser)


def run(arguments: argparse.Namespace) -> None:
    """Print what the models predict of each kernel and of all together."""
    from warpstack.hardware.profiler import profiled
    from warpstack.models import prediction
    from warpstack.tables import as_records

    if arguments.concurrent:
        _run_concurrent(arguments)
        return
    # Output for programs has the rows of warpstack.predict; the answer for a reader has more than one
    # opinion.
    is_data = arguments.json or arguments.csv or arguments.latex
    is_answer = not (is_data or arguments.models or arguments.simulate)
    default = DEFAULT_MODELS if is_data else _ANSWERS
    wanted = prediction.model_list(split(arguments.models or default))
    targets = [profiled(gpu, arguments.profiler) for gpu in read_gpus(arguments)]
    picture = check_picture(arguments)
    if arguments.top < 1:
        raise ws.InputError(f"--top {arguments.top}: expected a number above 0")
    if arguments.simulate and arguments.sample_launches is not False:
        raise ws.InputError(
            "--sample-launches predicts some launches and --simulate simulates all; leave one of them out"
        )
    _check_what_if(arguments)
    for target in targets:
        _report_unused(arguments, target, wanted)
    subjects = load_subjects(arguments, targets[0])
    simulates = arguments.simulate or (is_answer and _is_cheap(subjects, targets))
    options = _options_of(arguments)
    # Once, however many predictions there are.
    prediction.warn_of_unread(options, wanted, counts_write_backs=simulates)
    jobs = [_Job(subject, target) for subject in subjects for target in targets]
    for job in jobs:
        _predict(job, arguments, wanted, options, simulates)
        if arguments.what_if:
            from warpstack.cli.common.what_if import changed_times

            job.changes = changed_times(job.subject, job.target, wanted[0], options)
    rows = [
        {"app": job.app.name, **row} if len(subjects) > 1 else row
        for job in jobs
        for row in (job.rows if is_data else _for_a_reader(job, wide=arguments.wide))
    ]
    if arguments.json:
        records = as_records(rows)
        if arguments.what_if:
            changes = [row for job in jobs for row in job.changes]
            print_json({"predictions": records, "what_if": changes})
        else:
            print_json(records)
    elif arguments.csv:
        print_csv(pd.DataFrame(rows))
    elif arguments.latex:
        print_latex(_chosen(pd.DataFrame(rows), stacks=arguments.stacks))
    else:
        _print_text(arguments, jobs, rows, is_answer)
    if picture is not None:
        if len(jobs) > 1:
            raise ws.InputError("--plot: one trace on one GPU makes a picture; several are given")
        _draw(pd.DataFrame(rows), targets[0], picture, look_options(arguments))


def _run_concurrent(arguments: argparse.Namespace) -> None:
    """Print when launches run that run at the same time."""
    from warpstack.hardware.profiler import profiled, times
    from warpstack.models.prediction import model_list

    for option, is_given in {
        "--simulate": arguments.simulate,
        "--what-if": arguments.what_if,
        "--plot": arguments.plot is not None,
        "--stacks": arguments.stacks,
        "--per-launch": arguments.per_launch,
        "--sort": arguments.sort != "time",
        "--top": arguments.top != _MOST_ROWS,
    }.items():
        if is_given:
            raise ws.InputError(
                f"{option}: --concurrent lists all launches in their order; leave one of them out"
            )
    wanted = model_list(split(arguments.models or DEFAULT_MODELS))
    targets = read_gpus(arguments)
    subjects = load_subjects(arguments, targets[0])
    if len(subjects) * len(targets) > 1:
        raise ws.InputError("--concurrent: runs one trace on one GPU; several are given")
    (app,) = (subject.app for subject in subjects)
    table = ws.predict(
        app,
        targets[0],
        wanted,
        concurrent=True,
        options=_options_of(arguments),
        progress=True,
    )
    if arguments.json:
        print_json(table.to_dict("records"))
    elif arguments.csv:
        print_csv(table)
    else:
        shown = table[[name for name in table if name in _CONCURRENT]]
        if arguments.latex:
            print_latex(shown)
            return
        print_settings(arguments, options_given(arguments))
        target = profiled(targets[0], arguments.profiler)
        cycles = float(table["end"].max())
        say_text(
            arguments,
            f"{len(app)} kernels at the same time on {target.title}: {cycles:,.0f} cycles, "
            f"{times(cycles, target, arguments.profiler)['time_us']:,.2f} us; one after the other "
            f"{table['cycles_alone'].sum():,.0f} cycles",
        )
        print()
        heads = {name: f"{name} (cycles)" for name in ("start", "end")}
        look = Look({**heads, "cycles_alone": "alone (cycles)"}, {"ipc": "{:,.2f}"})
        print_table(arguments, shown, look)


def _options_of(arguments: argparse.Namespace) -> Options:
    """Return the options of the stages that the arguments give."""
    return ws.Options(
        selection=arguments.selection,
        misses=arguments.misses,
        merge_threshold=arguments.merge_threshold,
        access_order=arguments.access_order,
        flush_l2=arguments.flush_l2,
        initial_l2=arguments.initial_l2,
        sample_sms=arguments.sampling,
        sample_blocks=arguments.sample_blocks,
        sample_launches=arguments.sample_launches,
        profiler=arguments.profiler,
    )


def _check_what_if(arguments: argparse.Namespace) -> None:
    """Raise `InputError` for what does not go together with ``--what-if``."""
    if not arguments.what_if:
        return
    for option, given in {
        "--csv": arguments.csv,
        "--latex": arguments.latex,
        "--sampling": arguments.sampling != 1,
        "--sample-blocks": arguments.sample_blocks != 1,
        "--sample-launches": arguments.sample_launches is not False,
    }.items():
        if given:
            why = "has one table" if option in ("--csv", "--latex") else "is a sample for one GPU"
            remedy = "; --json has both" if option in ("--csv", "--latex") else ""
            raise ws.InputError(
                f"--what-if and {option}: the latter {why}{remedy or '; leave one of them out'}"
            )


def _chosen(table: pd.DataFrame, *, stacks: bool) -> pd.DataFrame:
    """Return the columns of the answer for a reader, and of what differs between rows."""
    from warpstack.hardware.doubt import RANGE
    from warpstack.tables import STACK

    differs = [
        name for name in ("app", "gpu", "gpu_changes") if table.get(name, pd.Series()).nunique() > 1
    ]
    wanted = [*differs, "kernel", "name", "model", "cycles", "simulated", "error", "time_us"]
    wanted += [*RANGE, "simulated_time_us"]
    wanted += ["ipc", "ipc_low", "ipc_high", "cpi", *(STACK if stacks else ())]
    return table[[name for name in wanted if name in table]]


@dataclasses.dataclass
class _Job:
    """An application on a GPU, and what is found out about the launches that are reported."""

    subject: Subject
    target: Gpu
    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    simulated: list[SimulationResult] = dataclasses.field(default_factory=list)
    reasons: list[Difference] = dataclasses.field(default_factory=list)
    changes: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def app(self) -> App:
        """The launches that are reported."""
        return self.subject.app


def _for_a_reader(job: _Job, *, wide: bool) -> list[dict[str, Any]]:
    """Return the rows of a job, in which instances of a template have different names.

    With `wide`, they have what the SMs hold, too.
    """
    from warpstack.traces.trace import distinct_names

    names = distinct_names(job.app.kernels)
    more: list[dict[str, float]] = [{} for _ in names]
    if wide:
        from warpstack.memory.caches import occupancy

        warps = [occupancy(kernel, job.target)["warps_per_sm"] for kernel in job.app]
        most = job.target.warps_per_sm
        more = [{"warps_per_sm": n, "occupancy": round(100 * n / most, 1)} for n in warps]
    models = len(job.rows) // max(len(names), 1)
    return [
        {**row, "name": names[number // models], **more[number // models]}
        for number, row in enumerate(job.rows)
    ]


def _is_cheap(subjects: Sequence[Subject], targets: Sequence[Gpu]) -> bool:
    """Return whether simulations take a second or so."""
    kernels = [kernel for subject in subjects for kernel in subject.ran]
    instructions = sum(kernel.num_instructions for kernel in kernels)
    complete = all(kernel.is_sampled or not kernel.num_missing_blocks for kernel in kernels)
    return complete and instructions * len(targets) <= _CHEAP_INSTRUCTIONS


def _why_not_simulated(jobs: Sequence[_Job]) -> str:
    """Return why the simulator is not among those that answer, and how long it would take."""
    kernels = [kernel for job in jobs for kernel in job.subject.ran]
    if missing := sum(kernel.num_missing_blocks for kernel in kernels if not kernel.is_sampled):
        return f"not run, as {missing:,} thread blocks are missing from the trace; --simulate runs the others"
    instructions = sum(kernel.num_instructions for kernel in kernels)
    least, most = (instructions / rate for rate in _SIMULATED_PER_SECOND)
    unit, seconds = ("s", 1) if most < 120 else ("min", 60) if most < 7200 else ("h", 3600)
    ends = f"{max(least / seconds, 1):,.0f} to {max(most / seconds, 2):,.0f} {unit}"
    return f"not run, as it takes about {ends} for {instructions:,} warp instructions; --simulate runs it"


def _prints_stacks(arguments: argparse.Namespace) -> bool:
    """Return whether stacks are printed for a reader."""
    return arguments.stacks and not (arguments.json or arguments.csv or arguments.latex)


def _report_unused(arguments: argparse.Namespace, target: Gpu, wanted: Sequence[str]) -> None:
    from warpstack.memory.caches import cache_fields
    from warpstack.models import prediction

    what = "the models " + ", ".join(wanted)
    read = prediction.fields_used(wanted) | cache_fields(arguments.access_order)
    if arguments.simulate:
        from warpstack.timing import simulation

        what += " and the simulation"
        read |= simulation.fields_used(target)
    report_unused(arguments, target, read, what)


def _predict(
    job: _Job, arguments: argparse.Namespace, wanted: list[str], options: Options, simulates: bool
) -> None:
    """Add the predictions to a job, and what the simulator says of them if it is asked."""
    from warpstack.memory.caches import ORDERS
    from warpstack.models import pipeline, prediction
    from warpstack.traces.awaited import warn_of_waits

    memo = pipeline.Recent(len(ORDERS)) if arguments.simulate else None
    subject = job.subject
    details: list[dict[str, float]] | None = [] if _prints_stacks(arguments) else None
    rows = prediction.predicted_rows(
        subject.ran,
        job.target,
        wanted,
        options,
        progress=True,
        memo=memo,
        reasons=True,
        details=details,
    )
    if details:
        rows = [{**row, "cpi_details": one} for row, one in zip(rows, details, strict=True)]
    job.rows = subject.of_reported(rows)
    if not simulates:
        warn_of_waits(subject.app, job.target)
        return
    names = ("flush_l2", "initial_l2", "profiler", "sample_blocks")
    settings = {name: getattr(arguments, name) for name in names}
    job.simulated = simulated(subject, job.target, settings)
    if memo is not None:
        job.rows = _beside(job.rows, job.simulated)
        if not (arguments.json or arguments.csv or arguments.latex):
            from warpstack.cli.common.differences import differences

            job.reasons = differences(subject, job.target, job.rows, job.simulated, options, memo)


def _print_text(
    arguments: argparse.Namespace, jobs: Sequence[_Job], rows: list[dict[str, Any]], is_answer: bool
) -> None:
    """Print the answer in words, what else answers, the stacks, and why the simulator differs."""
    from warpstack.cli.common.answer import (
        added_up,
        print_answer,
        print_reasons,
        print_stack_table,
        sums_of,
    )
    from warpstack.cli.common.second_opinion import print_opinions
    from warpstack.models.prediction import blind_to_write_backs

    def sums(some: list[dict[str, Any]], top: int = len(rows)) -> tuple[list[str], list[Sums], int]:
        return sums_of(some, per_launch=arguments.per_launch, sort=arguments.sort, top=top)

    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    of_first = [row for row in rows if row["model"] == models[0]] if is_answer else rows
    by, found, left_out = sums(of_first, arguments.top)
    _print_heading(arguments, jobs, of_first, is_answer)
    peaks = {job.target.num_sms * job.target.issue_width for job in jobs}
    width = line_width(arguments)
    print_answer(by, found, peaks.pop() if len(peaks) == 1 else None, width)
    if left_out:
        print(f"and {left_out:,} more; --top N shows N of them")
    if several := "" if arguments.per_launch else added_up(found):
        say_text(arguments, several)
    _print_sample(arguments, of_first)
    print_reasons(by, found, width)
    if arguments.stacks:
        print()
        say_text(arguments, "Cycles per instruction of an SM (CPI), by cause; * marks the largest")
        print()
        print_stack_table(by, found, width)
    if is_answer:
        print()
        others = _others(found, sums, jobs, rows, models[0])
        blind = blind_to_write_backs(options_given(arguments), models)
        print_opinions(models[0], by, found, others, width, blind)
        if not all(job.simulated for job in jobs):
            say_text(arguments, f"simulator: {_why_not_simulated(jobs)}")
    _print_reasons(arguments, [reason for job in jobs for reason in job.reasons])
    for job in jobs:
        if job.changes:
            from warpstack.cli.common.what_if import print_changes

            print()
            name = f"{job.app.name} on " if len({one.app.name for one in jobs}) > 1 else ""
            print_changes(job.changes, f"{name}{job.target.title}", width)


def _others(
    found: Sequence[Sums],
    sums: Callable[[list[dict[str, Any]]], tuple[list[str], list[Sums], int]],
    jobs: Sequence[_Job],
    rows: Sequence[dict[str, Any]],
    own: str,
) -> dict[str, list[Mapping[str, Any]]]:
    """Return the sums of other models and of the simulator, in the order of what was found."""
    from warpstack.hardware.doubt import RANGE

    sources: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["model"] != own:
            sources.setdefault(str(row["model"]), []).append(row)
    if all(job.simulated for job in jobs):
        results = [result for job in jobs for result in job.simulated]
        of_own = [row for row in rows if row["model"] == own]
        sources["simulator"] = [
            {
                **{name: value for name, value in row.items() if name not in RANGE},
                **{"cycles": result.cycles, "time_us": result.time_us, "cpi": result.cpi},
                **{f"cpi_{part}": value for part, value in result.cpi_stack.items()},
            }
            for row, result in zip(of_own, results, strict=True)
        ]
    others = {}
    for name, some in sources.items():
        known = {(one.number, one.key): one.values for one in sums(some)[1]}
        others[name] = [known[one.number, one.key] for one in found]
    return others


def _print_sample(arguments: argparse.Namespace, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what of the launches or SMs the answer is from, and what the bars of the IPC mean."""
    if "ipc_low" not in rows[0]:
        return
    what = "The L1 caches of some SMs were simulated"
    of_first = [row for row in rows if row["model"] == rows[0]["model"]]
    if "sampled_blocks" in rows[0]:
        some = sum(row["sampled_blocks"] > 0 for row in of_first)
        if not some:
            print(
                "\nNo launch has a sample of thread blocks that says enough: all blocks were evaluated"
            )
            return
        what = f"Of {some} of {len(of_first)} launches some thread blocks were evaluated"
    if "launch_sampled" in rows[0]:
        known = sum(row["launch_sampled"] for row in of_first)
        if known == len(of_first):
            print("\nToo few launches are alike: all were predicted")
            return
        what = f"{known:,} of {len(of_first):,} launches were predicted, which stand for the others"
    print()
    say_text(arguments, f"{what}; with 95 % confidence, the IPC that all would give is within +-")


def _print_heading(
    arguments: argparse.Namespace,
    jobs: Sequence[_Job],
    rows: Sequence[Mapping[str, Any]],
    own: bool,
) -> None:
    apps = list(dict.fromkeys(job.app.name for job in jobs))
    titles = list(dict.fromkeys(job.target.title for job in jobs))
    about = jobs[0].target.description if len(titles) == 1 else ""
    what = f"{', '.join(apps)} on {', '.join(titles)}"
    say_text(arguments, f"{what}: {about}" if about else what)
    models = list(dict.fromkeys(str(row["model"]) for row in rows))
    if own:
        print(f"by {models[0]}, warpstack's own model")
    elif len(models) == 1:
        print(f"by the model {models[0]}")
    said = dict.fromkeys(str(row["model"]) for job in jobs for row in job.rows)
    print_settings(arguments, options_given(arguments), said)
    print()


def _beside(
    rows: Sequence[Mapping[str, Any]], simulated: Sequence[SimulationResult]
) -> list[dict[str, Any]]:
    """Return predictions with what is simulated after the predicted cycles and time, and the error."""
    models = len(rows) // len(simulated)
    result = []
    for number, row in enumerate(rows):
        simulation = simulated[number // models]
        cycles = float(simulation.cycles)
        after = {
            "cycles": {"simulated": cycles, "error": row["cycles"] / cycles - 1},
            "time_us": {"simulated_time_us": simulation.time_us},
        }
        found: dict[str, Any] = {}
        for name, value in row.items():
            found |= {name: value, **after.get(name, {})}
        result.append(found)
    return result


def _print_reasons(arguments: argparse.Namespace, found: Sequence[Difference]) -> None:
    """Print a sentence for each reason, the one of most cycles first."""
    if not found:
        return
    from warpstack.cli.common.differences import LARGE_ERROR

    print()
    say_text(
        arguments,
        f"Cycles that differ by more than {100 * LARGE_ERROR:.0f} % from the simulated ones, and the most "
        "probable reason:",
    )
    print()
    for one in found[:_MAX_REASONS]:
        print(paragraph(f"- {one}", line_width(arguments), indent="  "))
    if len(found) > _MAX_REASONS:
        print(f"- and {len(found) - _MAX_REASONS:,} more; --kernels chooses launches")


def _draw(
    predictions: pd.DataFrame, target: Gpu, picture: OutputFile, options: Mapping[str, Any]
) -> None:
    from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks, num_launches
    from warpstack.plot.looks import look_of

    kernels = num_launches(predictions)
    many = kernels > _MAX_PANELS
    title: str | None = target.title + (f", {kernels} kernels together" if many else "")
    title = None if look_of(**options).is_compact else f"{title} (above the bars: IPC)"
    figure: Any
    if many:
        totals = ws.models.application_totals(predictions)
        figure = cpi_stack(totals, title=title, **options).figure
    else:
        figure = cpi_stacks(predictions, title=title, **options)
    save_picture(figure, picture, "CPI stacks")
