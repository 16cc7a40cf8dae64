"""A measured time line beside the predicted one: pairs, rows without one, times, against sums by hand."""

import json
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from python_reference.timeline_pairs import pairs
from warpstack._core import demangled
from warpstack.cli import main
from warpstack.traces.names import plain_name, whole_name

GPU = ws.gpu("a100")
MIB = 1 << 20
#: What `nsys stats --report cuda_gpu_trace --format csv` of 2024 to 2026 prints above its rows.
HEADER = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
    "Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
)
#: Of 2021 and 2022.
OLD_HEADER = HEADER.replace("MB/s", "MBps").replace("GreenCtx,", "")
CARD = "NVIDIA A100-SXM4-80GB (0)"
NSYS_FLOAT = "void app::scale<float, (int)4>(float *, const float *, unsigned long)"
NSYS_DOUBLE = NSYS_FLOAT.replace("float", "double")
#: A program that copies 4 MiB in, runs two kernels in another stream, clears 512 bytes and copies back.
#: The second kernel starts before the first copy ends. An allocator's fill that the trace does not have
#: comes first. Names have template arguments as nsys prints them.
ROWS = f"""\
1000000,900,99,,,,,,,,,,0.000,100.000,Device,,{CARD},1,,7,[CUDA memset]
1136000,400000,123,,,,,,,,,,4.194,10485.000,Pinned,Device,{CARD},1,,13,[CUDA memcpy Host-to-Device]
1300000,7000,128,64,1,1,128,1,1,16,0.000,0.000,,,,,{CARD},1,,14,"{NSYS_FLOAT}"
1308000,9000,129,64,1,1,128,1,1,16,0.000,0.000,,,,,{CARD},1,,14,"{NSYS_DOUBLE}"
1540000,2000,131,,,,,,,,,,0.001,200.000,Device,,{CARD},1,,13,[CUDA memset]
1550000,160000,132,,,,,,,,,,4.194,25000.000,Device,Pinned,{CARD},1,,13,[CUDA memcpy Device-to-Host]
"""
NSYS = f"Processing [run.sqlite] with [cuda_gpu_trace.py]...\n{HEADER}\n{ROWS}"
#: The same kernels as compilers name them: template <class T, int n> void app::scale(T*, const T*, size_t).
FLOAT = "_ZN3app5scaleIfLi4EEEvPT_PKS1_m"
DOUBLE = "_ZN3app5scaleIdLi4EEEvPT_PKS1_m"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def kernel(name):
    builder = ws.patterns.KernelBuilder(name, grid=4, block=32)
    builder.emit("FADD", dst=1, src=2)
    return builder.build()


def program(*names):
    return ws.App([kernel(name) for name in names], "program")


def copy(direction, size=4 * MIB, stream=1):
    how = {"direction": direction, "bytes": size, "pinned": True, "asynchronous": True}
    return {"operation": "copy", "stream": stream, **how}


def launch(number, stream=2, **more):
    return {"operation": "kernel", "stream": stream, "kernel": number, **more}


@pytest.fixture(scope="module")
def line():
    fill = {"operation": "memset", "stream": 1, "bytes": 512}
    wait = {"operation": "device_synchronize", "stream": -1}
    # The double kernel is called first here: only the whole names tell which is which.
    table = [copy("HtoD"), launch(0), launch(1), fill, copy("DtoH"), wait]
    return ws.timeline(program(DOUBLE, FLOAT), GPU, operations=pd.DataFrame(table))


def read(tmp_path, text, name="trace.csv"):
    path = tmp_path / name
    path.write_text(text)
    return ws.validation.reference.read_timeline(path)


def measured(*operations, **columns):
    """Return a table of kernels (name, start, length) as `read_timeline` does."""
    rows = [
        {"operation": "kernel", "name": name, "start_us": start, "end_us": start + length}
        for name, start, length in operations
    ]
    return pd.DataFrame(rows).assign(**columns)


class TestNames:
    @pytest.mark.parametrize(
        ("of_nsys", "mangled"),
        [
            ("void app::scale<float, (int)4>(float *, const float *, unsigned long)", FLOAT),
            ("void f<(bool)1, (unsigned int)7>(int)", "_Z1fILb1ELj7EEvi"),
            ("void <unnamed>::g<(int)-3>()", "_ZN12_GLOBAL__N_11gILin3EEEvv"),
            ("add(float *, const float *)", "_Z3addPfPKf"),
        ],
    )
    def test_whole_names_are_one_spelling(self, of_nsys, mangled):
        assert whole_name(of_nsys) == whole_name(mangled) == whole_name(demangled(mangled)) != ""
        assert plain_name(of_nsys) == plain_name(mangled)

    def test_what_differs_stays_different(self):
        names = ["f<(int)4>()", "f<(int)5>()", "f<float>()", "f(int)", "g(int)", "f(unsigned int)"]
        assert len({whole_name(name) for name in names}) == len(names)
        assert whole_name("f") == ""


class TestByHand:
    def test_nsys(self, tmp_path, line):
        found = line.compare(read(tmp_path, NSYS))
        assert found.counts == {"pairs": 5, "only_predicted": 0, "only_measured": 1, "outside": 0}
        table = found.table.set_index("row")
        assert table.loc[1, "measured_us"] == pytest.approx(9)  # the double kernel
        assert table.loc[2, "measured_us"] == pytest.approx(7)
        assert table.loc[0, "measured_us"] == pytest.approx(400)
        assert table.loc[3, "measured_us"] == pytest.approx(
            2
        )  # the fill of 512 bytes, not that of 0
        assert table.loc[4, "measured_us"] == pytest.approx(160)
        alone = table.loc[-1]
        assert alone["operation"] == "memset"
        assert np.isnan(alone["predicted_us"])
        # Both begin with the first copy, which is the first operation that both have.
        first = table.loc[0]
        assert first["predicted_start_us"] == first["measured_start_us"] == 0
        assert table.loc[4, "measured_start_us"] == pytest.approx(1550 - 1136)
        assert alone["measured_start_us"] == pytest.approx(1000 - 1136)
        starts = line.table["start_us"]
        assert table.loc[4, "predicted_start_us"] == pytest.approx(starts[4] - starts[0])
        assert table.loc[1, "measured_stream"] == 14
        assert table.loc[1, "predicted_stream"] == 2
        took = line.table["end_us"] - starts
        assert table.loc[0, "error"] == pytest.approx(took[0] / 400 - 1)

    def test_totals_are_of_all_operations(self, tmp_path, line):
        totals = line.compare(read(tmp_path, NSYS)).totals.set_index("total")
        measured = totals["measured"]
        assert measured["time_us"] == pytest.approx(710)  # 1000 to 1710
        # 0.9, the copy with both kernels within it, 2, 160
        assert measured["gpu_busy_us"] == pytest.approx(0.9 + 400 + 2 + 160)
        assert measured["gpu_idle_us"] == pytest.approx(710 - 562.9)
        assert measured["copies_us"] == pytest.approx(560)
        assert [measured["copies_hidden_us"], measured["kernels_us"]] == pytest.approx([16, 16])
        assert measured["copies_hidden"] == pytest.approx(16 / 560)
        for name in ("gpu_busy_us", "kernels_us", "copies_us", "copies_hidden_us"):
            assert totals["predicted"][name] == pytest.approx(line.totals[name])

    def test_by_name_sums_pairs(self, tmp_path, line):
        table = line.compare(read(tmp_path, NSYS)).by_name.set_index("name")
        assert table.index[0] == "HtoD copies"
        took = line.table["end_us"] - line.table["start_us"]
        for name, row, length in (("app::scale<double, 4>", 1, 9), ("app::scale<float, 4>", 2, 7)):
            one = table.loc[name]
            assert (one["pairs"], one["measured_us"]) == pytest.approx((1, length))
            assert one["predicted_us"] == pytest.approx(took[row])
        assert "scale" not in table.index

    def test_by_name_of_several_calls(self):
        line = ws.timeline(program("_Z1av", "_Z1av"), GPU)
        one = line.compare(measured(("a", 0, 2), ("a", 5, 4))).by_name.iloc[0]
        took = (line.table["end_us"] - line.table["start_us"]).tolist()
        assert (one["name"], one["pairs"], one["measured_us"]) == ("a", 2, 6)
        assert one["predicted_us"] == pytest.approx(sum(took))
        assert one["ratio"] == pytest.approx(sum(took) / 6)
        errors = [abs(took[0] / 2 - 1), abs(took[1] / 4 - 1)]
        assert one["mean_error"] == pytest.approx(np.mean(errors))

    def test_memsets_and_copies_are_by_kind(self, tmp_path, line):
        table = line.compare(read(tmp_path, NSYS)).by_name.set_index("name")
        assert (table.loc["memsets", "pairs"], table.loc["memsets", "only_measured"]) == (1, 1)

    def test_an_older_header_says_the_same(self, tmp_path, line):
        rows = (
            ROWS.replace(",1,,13,", ",1,13,")
            .replace(",1,,14,", ",1,14,")
            .replace(",1,,7,", ",1,7,")
        )
        old = read(tmp_path, f"{OLD_HEADER}\n{rows}", "old.csv")
        pd.testing.assert_frame_equal(old, read(tmp_path, NSYS))

    def test_torch(self, tmp_path):
        """Calls have numbers, and the second kernel, in another stream, ran first."""
        line = ws.timeline(program("_Z3addPfPKf", "_Z3addPfPKf"), GPU)

        def event(start, length, call, stream):
            args = {"device": 0, "stream": stream, "correlation": call}
            name = "add(float*, float const*)"
            times = {"ts": start, "dur": length}
            return {"ph": "X", "cat": "kernel", "name": name, **times, "args": args}

        trace = {"traceEvents": [event(10.0, 3.0, 7, 20), event(20.0, 5.0, 6, 7)]}
        found = line.compare(read(tmp_path, json.dumps(trace), "trace.json"))
        assert found.table.sort_values("row")["measured_us"].tolist() == [5, 3]


class TestNoPartner:
    def test_both_kinds_have_rows(self):
        line = ws.timeline(program("_Z1av", "_Z1bv"), GPU)
        with pytest.warns(UserWarning, match="1 of 2 predicted .* and 2 of 3 measured"):
            found = line.compare(measured(("b", 5, 2), ("c", 8, 1), ("b", 10, 2)))
        assert found.counts == {"pairs": 1, "only_predicted": 1, "only_measured": 2, "outside": 0}
        table = found.table
        assert len(table) == 4
        assert table["measured_us"].isna().sum() == 1
        assert table["predicted_us"].isna().sum() == 2
        assert table["error"].notna().sum() == 1

    def test_another_size_or_direction_is_no_partner(self):
        table = pd.DataFrame([copy("HtoD"), copy("HtoD", 8 * MIB), copy("DtoH")])
        line = ws.timeline(program("_Z1av"), GPU, operations=table)
        rows = [
            {"operation": "copy", "name": "c", "direction": way, "bytes": size, "bytes_step": step}
            for way, size, step in [
                ("HtoD", 4 * MIB + 1, 1),
                ("DtoH", 4_194_000, 1000),
                ("DtoD", 8 * MIB, 1),
            ]
        ]
        seen = pd.DataFrame(rows).assign(start_us=[0, 1, 2], end_us=[1, 2, 3])
        with pytest.warns(UserWarning, match="2 of 3 predicted .* and 2 of 3 measured"):
            found = line.compare(seen)
        assert found.counts["pairs"] == 1
        assert found.table.set_index("row")["measured_us"].notna().to_dict()[2]

    def test_other_template_arguments_are_no_partner_where_both_have_them(self):
        line = ws.timeline(program(FLOAT), GPU)
        names = [NSYS_DOUBLE, NSYS_FLOAT]
        both = measured(("scale", 0, 1), ("scale", 2, 3), full_name=names)
        assert line.compare(both).table.set_index("row").loc[0, "measured_us"] == 3
        # A profile with short names has the first one.
        short = measured(("scale", 0, 1), ("scale", 2, 3))
        with pytest.warns(UserWarning, match="2 times"):
            found = line.compare(short)
        assert found.table.set_index("row").loc[0, "measured_us"] == 1

    def test_no_pair_at_all(self):
        with pytest.warns(UserWarning, match="1 of 1 predicted .* and 1 of 1 measured"):
            found = ws.timeline(program("_Z1av"), GPU).compare(measured(("z", 7, 2)))
        assert found.counts["pairs"] == 0
        assert found.table["measured_start_us"].max() == 0
        assert found.by_name["ratio"].isna().all()


class TestIterations:
    @pytest.fixture
    def line(self):
        return ws.timeline(program("_Z1av", "_Z1bv", "_Z1av"), GPU)

    #: A warm-up of another kernel, then three times a, b, a, with a fill of an allocator in the second.
    PROFILE = measured(
        *[("w", 0, 50)],
        *[("a", 100, 1), ("b", 102, 10), ("a", 113, 2)],
        *[("a", 200, 3), ("x", 204, 1), ("b", 206, 20), ("a", 227, 4)],
        *[("a", 300, 5), ("b", 306, 30), ("a", 337, 6)],
    )

    def test_mean(self, line):
        found = line.compare(self.PROFILE, iterations=3)
        table = found.table.set_index("row")
        assert table.loc[[0, 1, 2], "measured_us"].tolist() == [3, 20, 4]
        assert table.loc[[0, 1, 2], "runs"].tolist() == [3, 3, 3]
        assert table.loc[1, "measured_start_us"] == pytest.approx((2 + 6 + 6) / 3)
        assert found.counts == {"pairs": 3, "only_predicted": 0, "only_measured": 2, "outside": 0}
        measured_times = found.totals.set_index("total")["measured"]
        assert measured_times["time_us"] == pytest.approx(343 / 3)
        assert measured_times["gpu_busy_us"] == pytest.approx((50 + 13 + 28 + 41) / 3)

    def test_one_of_them(self, line):
        found = line.compare(self.PROFILE, iterations=3, iteration=2)
        table = found.table.set_index("row")
        assert table.loc[[0, 1, 2], "measured_us"].tolist() == [3, 20, 4]
        assert table.loc[[0, 1, 2], "measured_start_us"].tolist() == [0, 6, 27]
        assert found.counts["only_measured"] == 1  # the fill
        assert found.counts["outside"] == 7
        assert found.totals.set_index("total")["measured"]["time_us"] == pytest.approx(31)

    def test_a_part(self, line):
        found = line.compare(self.PROFILE, between_us=(290, 1000))
        assert found.table.sort_values("row")["measured_us"].tolist() == [5, 30, 6]
        assert found.counts["outside"] == len(self.PROFILE) - 3
        assert found.counts["only_measured"] == 0

    def test_repeats_that_nobody_has_said(self, line):
        with pytest.warns(UserWarning, match="Give iterations=3"):
            found = line.compare(self.PROFILE)
        assert found.counts == {"pairs": 3, "only_predicted": 0, "only_measured": 8, "outside": 0}

    @pytest.mark.parametrize(
        ("iterations", "said"),
        [
            (2, "Give iterations=3"),
            (4, r"only 3 have .*: 9 of 12 have a measured one\. Give iterations=3 "),
            (6, r"only 3 have .*: 9 of 18 have a measured one\. Give iterations=3 "),
        ],
    )
    def test_the_number_is_wrong(self, line, iterations, said):
        with pytest.warns(UserWarning, match=said):
            line.compare(self.PROFILE, iterations=iterations)

    def test_half_without_a_partner_is_no_news(self, line):
        """Warnings are errors here: only more than half of a side is warned of."""
        rows = [("a", 0, 1), ("b", 2, 10), ("a", 13, 2), ("x", 20, 1), ("y", 30, 1), ("z", 40, 1)]
        line.compare(measured(*rows))
        with pytest.warns(UserWarning, match="0 of 3 predicted .* and 4 of 7 measured"):
            line.compare(measured(*rows, ("u", 50, 1)))
        with pytest.warns(UserWarning, match="2 of 3 predicted .* and 0 of 1 measured"):
            line.compare(measured(*rows[:1]))

    def test_more_than_there_are(self, line):
        """What an iteration lacks is no part of its means."""
        profile = self.PROFILE.drop(index=[10])  # the last a
        table = line.compare(profile, iterations=3).table.set_index("row")
        assert (table.loc[2, "runs"], table.loc[2, "measured_us"]) == (2, 3)
        with pytest.raises(ws.InputError, match="iterations = 99: there are 11 measured"):
            line.compare(self.PROFILE, iterations=99)
        with pytest.raises(ws.InputError, match="iteration = 5: no measured operation is of it"):
            line.compare(self.PROFILE, iterations=5, iteration=5)


@pytest.mark.parametrize("seed", range(30))
def test_pairs_are_those_of_the_slow_form(seed):
    random = np.random.default_rng(seed)
    names = ["_Z1av", "_Z1bv", FLOAT, DOUBLE, "plain"]
    whole = [demangled(name) for name in names]
    calls = random.integers(0, len(names), random.integers(1, 8))
    rows = [launch(place, stream=int(random.integers(1, 3))) for place in range(len(calls))]
    for _ in range(random.integers(0, 6)):
        size = int(random.integers(0, 3000))
        way = ["HtoD", "DtoH"][random.integers(2)]
        rows.insert(int(random.integers(len(rows) + 1)), copy(way, size))
    line = ws.timeline(program(*[names[k] for k in calls]), GPU, operations=pd.DataFrame(rows))
    step = [1, 1000][random.integers(2)]
    iterations = int(random.integers(1, 4))
    seen = []
    for number in range(random.integers(iterations, 40)):
        one = {"start_us": float(random.integers(0, 500)), "correlation": number}
        if random.random() < 0.6:
            name = whole[random.integers(len(names))]
            one |= {"operation": "kernel", "name": plain_name(name), "full_name": name}
        else:
            size = int(random.choice([*(r["bytes"] for r in rows if "bytes" in r), 7]))
            way = ["HtoD", "DtoH"][random.integers(2)]
            one |= {"operation": "copy", "name": "c", "direction": way}
            one |= {"bytes": round(size / step) * step}
        seen.append({"direction": "", "bytes": 0, "full_name": "", **one, "bytes_step": step})
    table = pd.DataFrame(seen).assign(end_us=lambda t: t["start_us"] + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = line.compare(table, iterations=iterations)
    operations = [
        {**row, "name": whole[calls[row["kernel"]]]} if row["operation"] == "kernel" else row
        for row in rows
    ]
    expected = pairs(operations, seen, iterations)
    rows_found = found.table.set_index("row")
    for row in range(len(rows)):
        starts = [seen[place]["start_us"] for place, mine in expected.items() if mine == row]
        assert rows_found.loc[row, "runs"] == len(starts), row
    # Nothing is lost, and nothing is there twice.
    assert int(found.table["runs"].sum()) == len(seen)
    assert (found.table["row"] >= 0).sum() == len(rows)


class TestWrong:
    @pytest.fixture
    def line(self):
        return ws.timeline(program("_Z1av"), GPU)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"operation": "call"}, "row 0: operation = 'call': expected kernel"),
            ({"start_us": 9.0}, "row 0: end_us is before start_us"),
            ({"start_us": np.nan}, "start_us"),
            ({"bytes": 1.5}, "bytes.* a whole number"),
        ],
    )
    def test_rows(self, line, change, said):
        with pytest.raises(ws.InputError, match=said):
            line.compare(measured(("a", 1, 2)).assign(**change))

    def test_tables_and_numbers(self, line):
        good = measured(("a", 1, 2))
        with pytest.raises(ws.InputError, match=r"no column end_us; expected .*read_timeline"):
            line.compare(good.drop(columns="end_us"))
        with pytest.raises(ws.InputError, match="no operation between 5 and 6 us"):
            line.compare(good, between_us=(5, 6))
        with pytest.raises(ws.InputError, match="the earlier first"):
            line.compare(good, between_us=(6, 5))
        with pytest.raises(
            ws.InputError, match="iteration = 2: expected one from 1 to iterations = 1"
        ):
            line.compare(good, iteration=2)
        with pytest.raises(ws.InputError, match="iterations = 0"):
            line.compare(good, iterations=0)
        with pytest.warns(UserWarning, match="operations of 2 devices"):
            line.compare(measured(("a", 1, 2), ("b", 4, 2)).assign(device=["0", "1"]))


class TestFilesAndPictures:
    def test_perfetto_has_both(self, tmp_path, line):
        path = tmp_path / "both.json"
        line.compare(read(tmp_path, NSYS)).to_perfetto(path)
        events = json.loads(path.read_text())["traceEvents"]
        processes = {
            event["pid"]: event["args"]["name"]
            for event in events
            if event["name"] == "process_name"
        }
        assert len(processes) == 2
        predicted, theirs = sorted(processes.values(), reverse=True)
        assert (predicted, theirs) == (f"predicted on {GPU.title}", "measured")
        tracks = {
            (processes[event["pid"]], event["tid"]): event["args"]["name"]
            for event in events
            if event["name"] == "thread_name"
        }
        assert min(event["ts"] for event in events if "ts" in event) >= 0
        by_process = {}
        for event in events:
            if event["ph"] == "X":
                side = processes[event["pid"]]
                kind = "stream" if "stream" in tracks[side, event["tid"]] else "other"
                by_process.setdefault((side, kind), []).append(event)
        streams = by_process[theirs, "stream"]
        assert sum(event["dur"] for event in streams) == pytest.approx(0.9 + 400 + 7 + 9 + 2 + 160)
        copies = [
            next(
                event["ts"] for event in by_process[side, "stream"] if event["name"] == "HtoD copy"
            )
            for side in (predicted, theirs)
        ]
        assert copies[0] == pytest.approx(copies[1])

    def test_picture_has_rows_of_both(self, tmp_path, line):
        axes = ws.plot.operations(line.compare(read(tmp_path, NSYS)))
        rows = [text.get_text() for text in axes.get_yticklabels()]
        assert rows.index("kernels, measured") == rows.index("kernels, predicted") + 1
        assert "stream 14, measured" in rows
        assert "stream 2, predicted" in rows
        assert "memsets, measured" in rows


class TestCommand:
    @pytest.fixture
    def here(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        ws.save(program("_Z1av", "_Z1bv"), "app")
        rows = "".join(
            f"{start},{length},{call},1,1,1,32,1,1,8,0.000,0.000,,,,,{CARD},1,,7,{name}()\n"
            for start, length, call, name in [
                (10, 4000, 1, "a"),
                (6000, 2000, 2, "b"),
                (9000, 1, 3, "c"),
            ]
        )
        (tmp_path / "run.csv").write_text(f"{HEADER}\n{rows}")
        return tmp_path

    def test_prints_names_and_totals(self, here, capsys):
        more = ["--measured", "run.csv", "--perfetto", "both.json", "--plot", "both.png"]
        assert main(["timeline", "app", "--gpu", "a100", *more]) == 0
        out = capsys.readouterr().out
        assert "2 pairs, 1 only measured" in out
        assert "gpu idle" in out
        assert "8.991" in out
        events = json.loads((here / "both.json").read_text())["traceEvents"]
        names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
        assert names == {f"predicted on {GPU.title}", "measured"}
        assert (here / "both.png").stat().st_size > 1000

    def test_operations_as_json(self, here, capsys):
        assert main(["timeline", "app", "--gpu", "a100", "--measured", "run.csv", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [row["measured_us"] for row in rows] == pytest.approx([4, 2, 0.001])
        assert rows[2]["predicted_us"] is None

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--iterations", "2"], "--iterations is about a profile"),
            (["--measured", "run.csv", "--what-if"], "two tables"),
            (["--measured", "run.csv", "--iterations", "0"], "expected 1 or more"),
            (["--measured", "none.csv"], "none.csv"),
            (["--measured", "run.csv", "--between", "5", "3"], "the earlier first"),
        ],
    )
    def test_mistakes(self, here, capsys, options, said):
        assert main(["timeline", "app", "--gpu", "a100", *options]) == 2
        assert said in capsys.readouterr().err
