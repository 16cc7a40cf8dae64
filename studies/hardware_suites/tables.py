"""The tables of docs/quality/hardware.md, as DataFrames."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from warpstack.validation.pairs import agreement

from . import microbenchmarks, samples
from .evaluate import MODELS, SIMULATOR
from .row import Row

ALL = (SIMULATOR, *MODELS)
#: Our own model.
OURS = "closed_network"
#: Metrics that are times; the others are cycles that the profiler counts around a launch.
TIMES = (
    "duration_us*",
    "cycles_nsys",
    "gpu_time_ms_*",
    "mean_ms",
    "median_ms",
    "elapsed_cycles",
    "cycles_per_load",
)
#: Remarks with which a row counts like one without: it is above twice the least time of its card.
HARMLESS = frozenset({"", "caution:near_launch_floor"})
#: The sets, in the order of the page.
SETS = (
    *("H100 ffma grid", "H100 empty grid", "H100 vectoradd", "H100 polybench", "microbenchmarks"),
    *("Rodinia", "GV100", "pmpp, cold", "pmpp, batch", "kpp", "L1 strides", "L2 streams"),
    *("reductions", "vectors", "SGEMM", "Triton", "newest cards"),
)
#: Sets with several kernels a card, whose times are compared.
RATIO_SUITES = ("pmpp, cold", "pmpp, batch", "kpp")
WORST = 10
#: Most of these rows of one kernel on one card.
MOST_ALIKE = 2
#: Why rows are far off, where it is known: a pattern of what `described` says of a row, and the cause; the
#: first that matches counts.
CAUSES: tuple[tuple[str, str], ...] = (
    (
        "*istogram*",
        "which slices of L2 the bins lie on is not published; each takes a cycle for each lane",
    ),
    ("*CUDAkernel1DCT*", "loads of constants that differ from lane to lane cost one load each"),
    ("*3060-laptop*", "its clock under load is not that of its data sheet"),
)


def plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of times that count, under the first setting of each, with their errors."""
    found = evaluated(rows)
    return found[found["harmless"] & found["first"] & found["is_time"]]


def evaluated(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that were evaluated, with errors, and what tells the kinds of rows apart."""
    found = rows[rows["reason"] == ""].copy()
    found["flag"] = found["flag"].fillna("")
    found["harmless"] = found["flag"].isin(HARMLESS)
    keys = ["suite", "gpu", "application", "kernel_index", "metric"]
    firsts = found.groupby(keys, sort=False)["setting"].transform("first")
    found["first"] = found["setting"] == firsts
    found["is_time"] = [
        any(fnmatch.fnmatch(each, pattern) for pattern in TIMES) for each in found["metric"]
    ]
    found["time_us"] = found["us"] + found["launch_us"]
    found["error"] = found["time_us"] / found["measured_us"] - 1
    alone = found["measured_us"] - found["launch_us"]
    found["error_alone"] = (found["us"] / alone - 1).where(alone > 0.5 * found["measured_us"])
    return found


def _percent(value: float, sign: str = "") -> str:
    return "-" if value != value else f"{100 * value:{sign}.0f} %"


def _means(found: pd.DataFrame, column: str = "error") -> dict[str, float]:
    """Return the mean absolute error of each model."""
    means = found[column].abs().groupby(found["model"]).mean()
    return {model: float(means.get(model, float("nan"))) for model in ALL}


def _count(found: pd.DataFrame) -> int:
    return int((found["model"] == SIMULATOR).sum())


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean absolute errors of time by set and setting."""
    found = evaluated(rows)
    found = found[found["harmless"] & found["is_time"]]
    cells = []
    for suite in SETS:
        for setting, one in found[found["suite"] == suite].groupby("setting", sort=False):
            label = ", ".join(each for each in (suite, str(setting)) if each)
            means = [_percent(value) for value in _means(one).values()]
            cells.append([label, str(_count(one)), *means])
    head = ["set", "rows", *ALL]
    return pd.DataFrame(cells, columns=head)


def ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """Return by card how far ratios of two sizes and of two kernels are off."""
    found = plain(rows)
    found = found[found["suite"].isin(RATIO_SUITES)]
    cells = []
    for (suite, gpu), card in found.groupby(["suite", "gpu"], sort=False):
        line = [str(suite), str(gpu)]
        for same in (True, False):
            for model in (SIMULATOR, OURS):
                errors = list(_ratio_errors(card[card["model"] == model], same_kernel=same))
                line.append(_percent(float(np.mean(errors))) if errors else "-")
        cells.append(line)
    head = ["set", "GPU"]
    for what in ("two sizes", "two kernels"):
        head += [f"{what}, {model}" for model in (SIMULATOR, OURS)]
    return pd.DataFrame(cells, columns=head)


def _ratio_errors(found: pd.DataFrame, *, same_kernel: bool) -> Iterator[float]:
    """Yield the error of the ratio of the longer to the shorter time, of each pair of rows."""
    each = found.drop_duplicates(["kernel", "run", "metric"])
    columns = ("kernel", "run", "measured_us", "time_us")
    for a, b in itertools.combinations(zip(*(each[name] for name in columns), strict=True), 2):
        if (a[0] == b[0]) == same_kernel and a[1] != b[1]:
            short, long = sorted((a, b), key=lambda one: float(one[2]))
            yield abs(long[3] / short[3] / (long[2] / short[2]) - 1)


#: Programs whose kernels compute the same in several ways, and which parameters say the way.
VERSIONS = {
    **dict.fromkeys(("course_add", "course_line", "course_plane"), ("columns", "kind", "block")),
    **dict.fromkeys(("course_histogram", "course_product"), ("shared", "kind", "block")),
    **dict.fromkeys(("course_vector", "simple_transpose"), ("shared", "block")),
    **dict.fromkeys(("transposes", "matrix_product"), ()),
    **dict.fromkeys(("reductions", "products_of_floats"), ("version",)),
    "vector_widths": ("width",),
}


def _problem(run: str) -> str:
    """Return what a program computes, whichever way; empty where it has one way alone."""
    program, *parameters = run.split("-")
    if program not in VERSIONS:
        return ""
    same = [each for each in parameters if each.partition("=")[0] not in VERSIONS[program]]
    return "-".join([program, *same])


def pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how often the faster of two rows of a card is named, and by how much, by set and model."""
    found = plain(rows)
    cells = []
    for suite in [*found["suite"].unique(), "all"]:
        of_set = found if suite == "all" else found[found["suite"] == suite]
        for what in ("all pairs", "versions of a kernel"):
            line, most = [str(suite), what], 0
            for model in ALL:
                all_pairs, right, near = 0, 0.0, 0.0
                for _, card in of_set[of_set["model"] == model].groupby(
                    ["suite", "gpu"], sort=False
                ):
                    each = card.drop_duplicates(["kernel", "run", "metric"])
                    groups = None
                    if what != "all pairs":
                        groups = each["run"].map(_problem).to_numpy(str)
                    one = agreement(
                        each["time_us"].to_numpy(float), each["measured_us"].to_numpy(float), groups
                    )
                    if one.pairs:
                        all_pairs += one.pairs
                        right += one.pairs * one.right_winner
                        near += one.pairs * one.ratio_within
                most = max(most, all_pairs)
                share = [_percent(x / all_pairs) if all_pairs else "-" for x in (right, near)]
                line += share
            if most:
                line.insert(2, str(most))
                cells.append(line)
    head = ["set", "of", "pairs"]
    for model in ALL:
        head += [f"{model}, winner", f"{model}, within 15 %"]
    return pd.DataFrame(cells, columns=head)


def by_gpu(rows: pd.DataFrame) -> pd.DataFrame:
    """Return errors by set, GPU, metric and setting, with the launch and without."""
    found = evaluated(rows)
    found["remark"] = np.where(found["harmless"], "", "with remarks")
    keys = ["suite", "gpu", "metric", "setting", "remark"]
    cells = []
    for (suite, gpu, metric, setting, remark), group in found.groupby(keys, sort=False):
        label = ", ".join(each for each in (str(suite), setting, remark) if each)
        launch = group["launch_us"].mean()
        line = [label, str(gpu), str(metric), str(_count(group)), f"{launch:.2f}"]
        with_launch, alone = _means(group), _means(group, "error_alone")
        for each in ALL:
            line += [_percent(with_launch[each]), _percent(alone[each])]
        cells.append(line)
    head = ["set", "GPU", "metric", "rows", "launch (us)"]
    for each in ALL:
        head += [each, f"{each}, without launch"]
    return pd.DataFrame(cells, columns=head)


def worst(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each set at which the simulator is farthest off."""
    found = plain(rows)
    found = found[found["model"] == SIMULATOR]
    cells = []
    for suite, group in found.groupby("suite", sort=False):
        order = group["error"].abs().sort_values(ascending=False).index
        seen = group.loc[order].drop_duplicates(["gpu", "kernel", "run"])
        seen = seen.groupby(["gpu", "kernel"], sort=False).head(MOST_ALIKE).head(WORST)
        for _, row in seen.iterrows():
            cells.append(
                [
                    *(str(suite), str(row["gpu"]), str(row["kernel"]), _short(row)),
                    *(f"{row['measured_us']:.3g}", f"{row['time_us']:.3g}"),
                    *(_percent(row["error"], "+"), cause(row)),
                ]
            )
    head = ["set", "GPU", "kernel", "application", "measured (us)", "simulator (us)", "error"]
    return pd.DataFrame(cells, columns=[*head, "cause"])


def _short(row: pd.Series) -> str:
    """Return the name of an application without what does not tell it from others."""
    kept = [
        each
        for each in str(row["application"]).split()
        if not each.startswith(("series=", "data=", "requested=", "t="))
    ]
    return " ".join(kept)


def described(row: pd.Series) -> str:
    """Return a row's set, GPU, kernel, application and launch as a text for patterns."""
    names = ("suite", "gpu", "kernel", "application")
    return " | ".join([*(str(row[name]) for name in names), f"launch {row['kernel_index']}"])


def cause(row: pd.Series) -> str:
    """Return why a row is far off, where it is known."""
    text = described(row)
    return next((why for pattern, why in CAUSES if fnmatch.fnmatchcase(text, pattern)), "")


def left_out(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many rows of each set were evaluated, and how many not and why."""
    keys = ["suite", "gpu", "application", "kernel_index", "metric"]
    first = rows.drop_duplicates(keys)
    reasons = [each for each in first["reason"].unique() if each]
    cells = []
    for suite, group in first.groupby("suite", sort=False):
        counts = group["reason"].value_counts()
        line = [str(suite), str(len(group)), str(int(counts.get("", 0)))]
        cells.append([*line, *(str(int(counts.get(each, 0))) for each in reasons)])
    total = [str(len(first)), str(int((first["reason"] == "").sum()))]
    cells.append(["all", *total, *(str(int((first["reason"] == e).sum())) for e in reasons)])
    return pd.DataFrame(cells, columns=["set", "rows", "evaluated", *reasons])


# ---- counters ----

#: Counters of L1 and L2 of the GV100 are measured as hits and misses.
_SECTORS = tuple((level, kind) for level in ("l1", "l2", "dram") for kind in ("read", "write"))

#: Our counters that stand for measured ones.
_COUNTERS = {
    "inst_executed": "instructions",
    "l2_tex_read_transactions": "l2_read_sectors",
    "l2_tex_write_transactions": "l2_write_sectors",
    **{f"{level}_{kind}_sectors": f"{level}_{kind}_sectors" for level, kind in _SECTORS},
    "l1_read_hits": "l1_read_sector_hits",
    "l2_read_hits": "l2_read_sector_hits",
}


def counters(rows: pd.DataFrame, reference: Path) -> pd.DataFrame:
    """Return how far the counters of the launches are off."""
    found = evaluated(rows)
    found = found[(found["model"] == SIMULATOR) & found["first"] & found["is_time"]]
    keys = ["suite", "gpu", "application", "kernel_index"]
    known = found.drop_duplicates(keys).set_index(keys)
    measured = [*microbenchmarks.counters(reference), *_gv100_counters(reference)]
    lines: dict[tuple[str, str, str], list[float]] = {}
    for row, metric, value in measured:
        place = (row.suite, row.gpu, row.application, row.kernel_index)
        if metric in _COUNTERS and place in known.index:
            ours = float(known.loc[place, _COUNTERS[metric]])
            error = ours / value - 1 if value else float(ours > 0)
            lines.setdefault((row.suite, row.gpu, metric), []).append(error)
    cells = [
        [
            *(suite, str(gpu), str(metric), str(len(errors))),
            *(str(int(np.isclose(errors, 0).sum())), _percent(float(np.abs(errors).mean()))),
        ]
        for (suite, gpu, metric), errors in lines.items()
    ]
    head = ["set", "GPU", "counter", "launches", "exactly right", "mean absolute error"]
    return pd.DataFrame(cells, columns=head)


def _gv100_counters(reference: Path) -> list[tuple[Row, str, float]]:
    """Return the GV100's counters, with hits and misses added up.

    Those of L1 leave textures out, as ours do not: launches that load nothing otherwise do not count.
    """
    found = samples.counters(reference)
    values = {(row.application, row.kernel_index, metric): value for row, metric, value in found}
    more = []
    for row, metric, value in found:
        for level, kind in _SECTORS:
            if metric == f"{level}_{kind}_hits":
                misses = values[row.application, row.kernel_index, f"{level}_{kind}_misses"]
                more.append((row, f"{level}_{kind}_sectors", value + misses))
    return [
        each
        for each in [*found, *more]
        if each[2] or each[1] not in ("l1_read_hits", "l1_read_sectors")
    ]
