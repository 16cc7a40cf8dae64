"""Files of profilers, written at random from what is true and read back: nothing is cut or renamed.

The layouts are those of Nsight Systems 2021 to 2025, Nsight Compute 2019 to 2025 and nvprof: lines of the
tools before the table, units in headers, lines and cells, thousands separators, byte-order marks.
"""

import csv
import io
import random
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import warpstack as ws

SEEDS = range(25)
NAMES = ("fill", "add_rows", "Kernel2", "gemm_nt", "k")


@dataclass
class Launch:
    """A launch as it was: its time in whole nanoseconds."""

    name: str
    spelled: str
    grid: int
    block: int
    ns: int
    cycles: int


def spellings(name):
    """The ways in which tools write the name of one kernel."""
    return (
        name,
        f"{name}(int *, float)",
        f"void {name}<int, (int)4>(T1 *, const T1 *)",
        f"void lib::(anonymous namespace)::{name}<lib::Op<float, 3>, (bool)1>(lib::Op<float, 3>)",
        f"void <unnamed>::{name}<float>(T1 *)",
        f"_Z{len(name)}{name}Pif",
        f"_ZN3lib{len(name)}{name}IiLi4EEEvPT_PKS1_",
    )


def launches(rng):
    names = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    spelled = {name: rng.choice(spellings(name)) for name in names}
    geometry = {name: (rng.randint(1, 5000), rng.choice((64, 256))) for name in names}
    found = []
    for name in (rng.choice(names) for _ in range(rng.randint(1, 14))):
        ns = rng.choice((rng.randint(900, 99999), rng.randint(10**6, 10**9)))
        found.append(Launch(name, spelled[name], *geometry[name], ns, rng.randint(1000, 10**7)))
    return found


def lines_of(rows, *, quote=csv.QUOTE_MINIMAL):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=quote).writerows(rows)
    return text.getvalue()


def in_unit(ns, unit):
    """A time to the nanosecond in a unit."""
    digits = {"n": 0, "u": 3, "m": 6, "s": 9}[unit[0]]
    return f"{ns / 10**digits:.{digits}f}"


def with_commas(text):
    whole, _, rest = text.partition(".")
    return f"{int(whole):,}" + (f".{rest}" if rest else "")


def as_file(rng, text, *, program=""):
    """Bytes as a shell, an editor or Windows leaves them."""
    text = program + text
    if rng.random() < 0.3:
        text = text.replace("\n", "\r\n")
    kind = rng.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16"))
    return text.encode(kind)


# --- writers: each returns a file and whether it has a row per launch ---------------------------


TRACE = (
    *("CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd", "StcSMem (MB)"),
    *("DymSMem (MB)", "Bytes (MB)", "Throughput (MBps)", "SrcMemKd", "DstMemKd", "Device", "Ctx"),
    *("Strm", "Name"),
)
SUMMARY = (
    "Instances",
    *(f"{what} (UNIT)" for what in ("Avg", "Med", "Min", "Max", "StdDev")),
    "Name",
)


def nsys_rows(rng, known):
    start = rng.randint(0, 10**9)
    unit = rng.choice(("ns", "us", "ms", "s", "nsec", "usec"))
    gap = "" if unit.endswith("sec") else " "
    rows = [[f"Start{gap}({unit})", f"Duration{gap}({unit})", *TRACE]]
    for launch in known:
        if rng.random() < 0.3:
            copy = [start, rng.randint(1, 9000)]
            rows.append([in_unit(t, unit) for t in copy] + [1, *[""] * 8, "", "4.194", "2,796.0"])
            rows[-1] += ["Pageable", "Device", "A100 (0)", 1, 7, "[CUDA memcpy Host-to-Device]"]
        row = [
            in_unit(start, unit),
            in_unit(launch.ns, unit),
            2,
            launch.grid,
            1,
            1,
            launch.block,
            1,
            1,
        ]
        row += [32, "0.000", "0.000", "", "", "", "", "NVIDIA A100 (0)", 1, 7, launch.spelled]
        rows.append(row)
        start += launch.ns + rng.randint(1, 10**6)
    body = rows[1:]
    rng.shuffle(body)  # a sorted file is nothing to rely on
    return [rows[0], *body]


def nsys_sum_rows(rng, known):
    unit = rng.choice(("ns", "us", "ms"))
    rows = [["Time (%)", f"Total Time ({unit})", *(name.replace("UNIT", unit) for name in SUMMARY)]]
    for spelled in dict.fromkeys(launch.spelled for launch in known):
        times = [launch.ns for launch in known if launch.spelled == spelled]
        about = [f"{np.mean(times):.1f}", np.median(times), min(times), max(times), "0.0"]
        rows.append(["12.5", in_unit(sum(times), unit), len(times), *about, spelled])
    return rows


API = [
    ["Time (%)", "Total Time (ns)", "Num Calls", "Avg (ns)", "Name"],
    ["99.0", "123456", "4", "30864.0", "cudaMalloc"],
]
SIZES = [["Total (MB)", "Count", "Operation"], ["402.653", "48", "[CUDA memcpy Host-to-Device]"]]


def title(text):
    return f"\n ** {text}:\n\n"


def nsys_csv(rng, known):
    rows = rng.choice((nsys_rows, nsys_sum_rows))(rng, known)
    parts = [title("CUDA GPU Kernels") + lines_of(rows)]
    parts += [title("An API") + lines_of(table) for table in (API, SIZES) if rng.random() < 0.5]
    rng.shuffle(parts)
    text = "Generating SQLite file r.sqlite from r.nsys-rep\nProcessing [r.sqlite] with [a.py]...\n"
    return text + "".join(parts), len(rows[0]) > 12


def in_columns(rows):
    """A table as ``nsys stats`` prints it: names to the left, numbers to the right, a line of dashes."""
    rows = [
        [with_commas(c) if c.replace(".", "").isdigit() else c for c in map(str, r)] for r in rows
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" " + "  ".join(c.center(w) for c, w in zip(rows[0], widths, strict=True))]
    lines.append(" " + "  ".join("-" * width for width in widths))
    for row in rows[1:]:
        cells = [c.rjust(w) for c, w in zip(row[:-1], widths, strict=False)]
        lines.append(" " + "  ".join([*cells, row[-1].ljust(widths[-1])]))
    return "\n".join(lines) + "\n"


def nsys_text(rng, known):
    rows = rng.choice((nsys_rows, nsys_sum_rows))(rng, known)
    parts = [title("CUDA API Summary (cuda_api_sum)") + in_columns(API)]
    parts += [title("CUDA GPU Kernels") + in_columns(rows)]
    parts += [title("CUDA GPU MemOps Summary (by Size)") + in_columns(SIZES)]
    rng.shuffle(parts)
    text = "Processing [r.sqlite] with [/opt/reports/cuda_api_sum.py]...\n"
    text += "SKIPPED: r.sqlite does not contain NV Tools Extension (NVTX) data.\n"
    return text + "".join(parts), len(rows[0]) > 12


NCU = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream")
NCU += ("Block Size", "Grid Size", "Device", "CC")
UNITS = ("nsecond", "usecond", "msecond", "second", "ns", "us", "ms", "s")


def ncu_cells(launch, number):
    grid, block = f"({launch.grid}, 1, 1)", f"({launch.block}, 1, 1)"
    return [number, 4711, "a.out", "127.0.0.1", launch.spelled, 1, 7, block, grid, 0, "8.0"]


def ncu_metrics(rng, launch, unit, cycles):
    time = with_commas(in_unit(launch.ns, unit))
    return [
        ("gpu__time_duration.sum", unit, time),
        (cycles, "cycle", with_commas(f"{launch.cycles}")),
        ("sm__cycles_elapsed.avg.per_second", rng.choice(("cycle/nsecond", "Ghz")), "1.41"),
        ("smsp__cycles_active.avg", "cycle", "1,234.5"),
    ]


def ncu_head(rng, known):
    text = "==PROF== Connected to process 4711 (/home/me/a.out)\nresult: 1,2 ok\n"
    for number, launch in enumerate(known):
        text += f'==PROF== Profiling "{launch.name}" - {number}: 0%....50%....100% - 8 passes\n'
    return text + "done\n==PROF== Disconnected from process 4711\n"


def ncu_long(rng, known):
    rows = [[*NCU, "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name"]]
    cycles = rng.choice(("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg", "Elapsed Cycles"))
    for number, launch in enumerate(known):
        about = ncu_cells(launch, number)
        for metric in ncu_metrics(rng, launch, rng.choice(UNITS), cycles):
            rows.append([*about, "GPU Speed Of Light Throughput", *metric, ""])
        rows.append([*about, "SpeedOfLight", "", "", "", "SOLBottleneck"])
    return ncu_head(rng, known) + lines_of(rows, quote=csv.QUOTE_ALL), True


def ncu_raw(rng, known):
    unit = rng.choice(UNITS)
    cycles = rng.choice(("sm__cycles_elapsed.max", "sm__cycles_elapsed.avg"))
    metrics = [ncu_metrics(rng, launch, unit, cycles) for launch in known]
    rows = [[*NCU, *(name for name, _, _ in metrics[0])]]
    rows.append([*[""] * len(NCU), *(unit for _, unit, _ in metrics[0])])
    for number, launch in enumerate(known):
        rows.append([*ncu_cells(launch, number), *(value for _, _, value in metrics[number])])
    return ncu_head(rng, known) + lines_of(rows, quote=csv.QUOTE_ALL), True


def nvprof_trace(rng, known):
    unit = rng.choice(("ns", "us", "ms", "s"))
    rows = [["Start", "Duration", "Grid X", "Block X", "Device", "Context", "Stream", "Name"]]
    rows.append(["ms", unit, "", "", "", "", "", ""])
    for place, launch in enumerate(known):
        rows.append(
            [place, in_unit(launch.ns, unit), launch.grid, launch.block, "GTX 1080 (0)", 1, 7]
        )
        rows[-1].append(f"{launch.spelled} [{place + 100}]")
        if rng.random() < 0.3:
            rows.append([place, "1.5", "", "", "GTX 1080 (0)", 1, 7, "[CUDA memcpy DtoH]"])
    return nvprof_head() + lines_of(rows), True


def nvprof_head():
    return "==7== NVPROF is profiling process 7, command: ./a\n==7== Profiling result:\n"


def nvprof_summary(rng, known):
    unit = rng.choice(("ns", "us", "ms"))
    rows = [["Type", "Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name"]]
    rows.append(["", "%", unit, "", "us", "us", "us", ""])
    for spelled in dict.fromkeys(launch.spelled for launch in known):
        times = [launch.ns for launch in known if launch.spelled == spelled]
        about = ["1.0", "1.0", "1.0", spelled]
        rows.append(["GPU activities", "9.5", in_unit(sum(times), unit), len(times), *about])
    rows.append(["GPU activities", "9.5", "1.0", 3, "1.0", "1.0", "1.0", "[CUDA memset]"])
    rows.append(["API calls", "9.5", "1.0", 3, "1.0", "1.0", "1.0", "cudaLaunchKernel"])
    return nvprof_head() + lines_of(rows), False


def own_table(rng, known):
    unit = rng.choice(("ns", "us", "ms", "s", "\u00b5s"))
    digits = "us" if unit == "\u00b5s" else unit
    times = [in_unit(launch.ns, digits) for launch in known]
    names = [launch.spelled for launch in known]
    name = rng.choice(("name", "kernel", "Kernel Name"))
    kind = rng.randrange(3)
    if kind == 0:
        header = rng.choice((f"time_{unit}", f"Duration ({unit})", f"kernel time [{unit}]"))
        rows = [[name, header], *zip(names, times, strict=True)]
    elif kind == 1:
        rows = [[name, "time", "unit"], *([n, t, unit] for n, t in zip(names, times, strict=True))]
    else:
        rows = [[name, "value_cycles", "cycles"]]
        rows += [[launch.spelled, 1, launch.cycles] for launch in known]
    return lines_of(rows), True


WRITERS = (nsys_csv, nsys_text, ncu_long, ncu_raw, nvprof_trace, nvprof_summary, own_table)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_what_was_written_is_read(tmp_path, write, seed):
    rng = random.Random(seed)
    known = launches(rng)
    text, by_launch = write(rng, known)
    path = tmp_path / "measured.csv"
    path.write_bytes(as_file(rng, text))
    table = ws.validation.reference.read(path)
    if by_launch:
        assert table["name"].tolist() == [launch.name for launch in known]
        assert table["kernel"].tolist() == list(range(1, len(known) + 1))
        if "time_us" in table:  # a name of ours
            table["time_s"] = table["time_us"] / 1e6
        if "time_s" in table:
            assert table["time_s"].tolist() == pytest.approx([launch.ns * 1e-9 for launch in known])
        if "cycles" in table:
            assert table["cycles"].tolist() == pytest.approx([launch.cycles for launch in known])
        assert {"time_s", "cycles"} & set(table)
    else:
        for row in table.to_dict("records"):
            times = [launch.ns * 1e-9 for launch in known if launch.name == row["name"]]
            assert row["launches"] == len(times)
            assert row["time_s"] == pytest.approx(np.mean(times))
        assert set(table["name"]) == {launch.name for launch in known}


def predictions(known):
    return pd.DataFrame(
        {
            "kernel": range(1, len(known) + 1),
            "name": [launch.name for launch in known],
            "grid": [(launch.grid, 1, 1) for launch in known],
            "block": [(launch.block, 1, 1) for launch in known],
            "time_us": [launch.ns * 1e-3 for launch in known],
            "model": "mdm",
        }
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "write", [nsys_csv, ncu_raw, nvprof_trace], ids=lambda write: write.__name__
)
def test_kernels_that_the_profiler_saw_match(tmp_path, write, seed):
    """Filters by name and a count leave launches out; each that was measured finds its prediction."""
    rng = random.Random(seed)
    known = launches(rng)
    seen = set(rng.sample(sorted({launch.name for launch in known}), 1)) if seed % 2 else set(NAMES)
    measured = [launch for launch in known if launch.name in seen]
    measured = measured[: rng.randint(1, len(measured))]
    text, by_launch = write(rng, measured)
    path = tmp_path / "measured.csv"
    path.write_bytes(as_file(rng, text))
    if not by_launch and len(measured) < sum(launch.name in seen for launch in known):
        return  # a mean over some of the launches
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ws.errors.UnmatchedWarning)
        table = ws.validate(predictions(known), path, metric="time_us")
    matched = table[table["status"] == "matched"]
    assert matched["launches"].sum() == len(measured)
    assert matched["error"].abs().max() < 1e-6
    assert not (table["status"] == "no prediction").any()


def launch(name, ns, grid=1):
    return Launch(name, name, grid, 64, ns, 1)


@pytest.fixture
def run(tmp_path):
    """Return a function that measures some launches and gives the matched pairs, and what is said."""

    def compare(known, measured, **options):
        text, _ = ncu_raw(random.Random(1), measured)
        (tmp_path / "m.csv").write_text(text)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            table = ws.validate(predictions(known), tmp_path / "m.csv", metric="time_us", **options)
        assert len(said) <= 1
        pairs = table[table["status"] == "matched"]
        return pairs["error"].abs().max(), "".join(str(warning.message) for warning in said)

    return compare


class TestSkippedLaunches:
    def test_one_place_is_possible(self, run):
        known = [launch("ab"[i % 2], 1000 + i) for i in range(6)]
        error, said = run(known, known[1:5])
        assert error < 1e-6
        assert said.startswith("2 rows have no reference (1 a, 6 b)")

    def test_grids_tell_launches_apart(self, run):
        known = [launch("a", 1000 + i, grid=i + 1) for i in range(6)]
        assert run(known, known[3:5])[0] < 1e-6

    def test_number_is_given(self, run):
        known = [launch("a", 1000 * (i + 1)) for i in range(6)]
        error, said = run(known, known[2:4])
        assert error > 0.1
        assert said == (
            "4 rows have no reference (4 launches of a); if the profiler skipped launches "
            "before the first that it measured, say how many (skip=N, --skip N); if a row "
            "of a table is the mean over launches, say how many in a column launches"
        )
        assert run(known, known[2:4], skip=2)[0] < 1e-6

    def test_skipped_are_those_of_the_measured_names(self, run):
        known = [launch("ab"[i % 2], 1000 * (i + 1)) for i in range(8)]
        measured = [one for one in known if one.name == "b"][1:]
        assert run(known, measured, skip=1)[0] < 1e-6

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"skip": -1}, "skip = -1 is not a number of launches"),
            ({"skip": 1, "match": "number"}, "leave out match='number', or skip"),
        ],
    )
    def test_wrong_options(self, run, options, said):
        with pytest.raises(ws.InputError, match=said):
            run([launch("a", 1)], [launch("a", 1)], **options)


class TestMeans:
    def predicted(self, *names):
        return predictions([launch(name, 2000) for name in names])

    def test_instances_of_a_template_are_one(self, tmp_path):
        text = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
        text += '60,4000,1,4000,"void k<int>(int *)"\n40,3000,2,1500,"void k<float>(float *)"\n'
        (tmp_path / "m.csv").write_text(text)
        table = ws.validate(self.predicted("k", "k", "k"), tmp_path / "m.csv", metric="time_us")
        assert table["measured"].tolist() == pytest.approx([7 / 3])
        assert table["launches"].tolist() == [3]

    def test_other_number_of_launches(self, tmp_path):
        text = (
            "Time (%),Total Time (ns),Instances,Avg (ns),Name\n60,4000,5,800,k\n9,2000,1,2000,f\n"
        )
        (tmp_path / "m.csv").write_text(text)
        with pytest.warns(ws.errors.UnmatchedWarning, match="measure them one by one"):
            ws.validate(self.predicted("k", "f"), tmp_path / "m.csv", metric="time_us")
