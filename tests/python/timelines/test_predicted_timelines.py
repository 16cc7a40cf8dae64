"""`ws.timeline`: its table, totals, what-ifs, file and command, against sums by hand."""

import gzip
import itertools
import json
from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import warpstack as ws
from warpstack.cli import main
from warpstack.timelines import spans
from warpstack.traces.operations import columns_of

MIB = 1 << 20
#: A GPU whose calls and links have round numbers: 1 MiB takes 2^20 / 1e3 us = 1048.576 us over the link.
GPU = ws.gpu("a100").replace(
    host_launch_us=2,
    host_call_us=1,
    launch_delay_us=3,
    synchronize_us=4,
    launch_us_batch=0.5,
    copy_start_us=1,
    host_link_gbs=1,
    pageable_copy_gbs=0.5,
    graph_launch_us=5,
    graph_node_us=0.25,
    graph_gap_us=0.125,
)
COPY_US = 1 + MIB / 1e3


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def app():
    kernel = ws.patterns.strided(gs=32, iterations=4, blocks=64)
    return ws.App([kernel] * 2, "two")


@pytest.fixture(scope="module")
def kernel_us(app):
    return float(ws.predict(app[0], GPU)["time_us"].iloc[0])


def rows(*operations):
    return pd.DataFrame(list(operations))


def copy(direction, stream=1, **more):
    how = {"direction": direction, "bytes": MIB, "pinned": True, "asynchronous": True}
    return {"operation": "copy", "stream": stream, **how, **more}


def kernel(number=0, stream=1, **more):
    return {"operation": "kernel", "name": "k", "stream": stream, "kernel": number, **more}


WAIT = {"operation": "device_synchronize", "stream": -1}


class TestByHand:
    def test_a_copy_a_kernel_and_a_wait(self, app, kernel_us):
        line = ws.timeline(app, GPU, operations=rows(copy("HtoD"), kernel(), WAIT))
        table = line.table
        begins = 2 + 3  # the call, and its delay
        ends = begins + COPY_US + 0.5 + kernel_us
        assert table["start_us"].tolist()[:2] == pytest.approx([begins, begins + COPY_US + 0.5])
        assert table["end_us"].tolist()[1] == pytest.approx(ends)
        assert table["why"].tolist()[:2] == ["host", "stream order"]
        assert table["waited_for"].tolist() == [-1, 0, 1]
        assert line.time_us == pytest.approx(ends + 4)
        totals = line.totals
        assert totals["copies_us"] == pytest.approx(COPY_US)
        assert totals["kernels_us"] == pytest.approx(kernel_us)
        assert totals["gpu_busy_us"] == pytest.approx(COPY_US + kernel_us)
        assert totals["gpu_idle_us"] == pytest.approx(line.time_us - COPY_US - kernel_us)
        assert totals["copies_hidden"] == 0
        assert totals["host_busy_us"] == pytest.approx(2 + 2 + 1)
        assert totals["host_waiting_us"] == pytest.approx(line.time_us - 5)
        assert totals["time_us_low"] < line.time_us < totals["time_us_high"]

    def test_of_several_threads_the_host_is_busy_where_one_is(self, app):
        operations = rows(
            {"operation": "allocate", "host_ns": 3000},  # 3 + 1
            copy("HtoD"),  # 2
            WAIT,  # 1, and waits
            {"operation": "allocate", "thread": 1, "host_ns": 7000, "begins_after": (0,)},
        )
        operations["begins_after"] = [(), (), (), (0,)]
        line = ws.timeline(app, GPU, operations=operations)
        totals = line.totals
        assert line.table["queued_us"].tolist() == pytest.approx([4, 6, 7, 12])
        assert totals["host_busy_us"] == pytest.approx(12)
        assert totals["host_waiting_us"] == pytest.approx(line.time_us - 12)

    def test_functions_of_the_host_take_what_they_took(self, app, kernel_us):
        function = {"operation": "host_function", "stream": 1, "work_ns": 2500.5}
        line = ws.timeline(app, GPU, operations=rows(kernel(), function, kernel(1), WAIT))
        start, end = (line.table[name].tolist() for name in ("start_us", "end_us"))
        assert end[1] - start[1] == pytest.approx(2.5005)
        assert start[1] == pytest.approx(end[0])
        assert start[2] >= end[1]
        path = line.critical_path.set_index(["operation", "part"])["time_us"]
        assert path["host_function", "device"] == pytest.approx(2.5005)

    def test_the_critical_path_sums_to_the_time(self, app, kernel_us):
        line = ws.timeline(app, GPU, operations=rows(copy("HtoD"), kernel(), WAIT))
        path = line.critical_path.set_index(["operation", "part"])["time_us"]
        assert path.sum() == pytest.approx(line.time_us)
        assert path["copy", "device"] == pytest.approx(COPY_US)
        assert path["kernel", "device"] == pytest.approx(kernel_us)
        assert path["copy", "call"] == 2
        assert path["copy", "launch"] == 3
        assert path["kernel", "launch"] == 0.5
        assert path["device_synchronize", "return"] == 4

    def test_a_trace_without_operations_is_one_stream(self, app, kernel_us):
        line = ws.timeline(app, GPU)
        assert line.table["stream"].tolist() == [0, 0]
        assert line.time_us == pytest.approx(2 + 3 + kernel_us + 0.5 + kernel_us)

    def test_the_operations_of_the_application_are_taken(self, app):
        class Recorded(ws.App):
            operations = rows(kernel(0), WAIT)

        line = ws.timeline(Recorded(app.kernels), GPU)
        assert line.table["operation"].tolist() == ["kernel", "device_synchronize"]

    def test_critical_is_work_that_decides(self, app):
        """The last of equal kernels side by side decides; the calls of the others do, their work not."""
        table = rows(*(kernel(0, 1 + n) for n in range(8)), WAIT)
        line = ws.timeline(app, GPU.replace(launch_delay_us=3), operations=table)
        assert {step.row for step in line._critical} == set(range(9))
        on_device = {step.row for step in line._critical if step.part == "device"}
        assert len(on_device) < 8
        kernels = line.table["critical"][:8]
        assert set(kernels[kernels].index) == on_device
        assert line.table["critical"][8]  # of the host alone: its call

    def test_what_ifs(self, app, kernel_us):
        table = rows(copy("HtoD", 1), kernel(0, 1), copy("HtoD", 2), kernel(1, 2), WAIT)
        line = ws.timeline(app, GPU, operations=table)
        found = line.what_if().set_index("what_if")["time_us"]
        # The second copy follows the first on its engine, and hides the first kernel.
        assert line.time_us == pytest.approx(5 + 2 * COPY_US + 0.5 + kernel_us + 4)
        assert found["one stream"] == pytest.approx(5 + 2 * (COPY_US + 0.5 + kernel_us) + 4)
        # The last call is at 8; its kernel can start 3 later, 0.5 after its copy of no time.
        assert found["no copies"] < 11 + 2 * kernel_us + 5
        assert found["pinned"] == line.time_us
        assert line.what_if("one stream")["speedup"].iloc[0] < 1
        with pytest.raises(ws.InputError, match=r"what-if"):
            line.what_if("no kernels")

    def test_pinned_memory_lets_asynchronous_copies_be_so(self, app):
        table = rows(copy("HtoD", 1, pinned=False), copy("DtoH", 2, pinned=False), WAIT)
        line = ws.timeline(app, GPU, operations=table)
        slow = 1 + MIB / 500
        assert line.time_us == pytest.approx(2 * (2 + 3 + slow + 4) + 1)
        pinned = float(line.what_if("pinned")["time_us"].iloc[0])
        # Both at once, each on its engine, but for 2 at the start and at the end; the second call is at 4.
        both = (COPY_US - 2) / GPU.host_link_both_ways
        assert pinned == pytest.approx(4 + 3 + both + 2 + 4)

    def test_kernels_as_one_graph(self, app, kernel_us):
        line = ws.timeline(app, GPU, operations=rows(kernel(0), kernel(1), WAIT))
        graph = float(line.what_if("graph")["time_us"].iloc[0])
        assert graph == pytest.approx(5 + 2 * 0.25 + 3 + 2 * kernel_us + 0.125 + 4)

    def test_work_that_was_not_traced_is_marked(self, app, kernel_us):
        table = rows(kernel(0), kernel(-1), {"operation": "library", "stream": 1, "bytes": 10**6})
        line = ws.timeline(app, GPU, operations=table)
        found = line.table
        assert found["estimated"].tolist() == [False, True, True]
        lasts = (found["end_us"] - found["start_us"]).tolist()
        assert lasts[1] == pytest.approx(kernel_us)  # as the traced one of its name
        of_bytes = 1e6 / (GPU.sustained_dram_bandwidth_gbs * 1e3)
        assert lasts[2] == pytest.approx(GPU.launch_us_nsys + of_bytes)
        assert line.totals["estimated_us"] == pytest.approx(lasts[1] + lasts[2])


#: Of an A100 in 1e9 operations a second: NVIDIA A100 whitepaper, Table 1.
PEAKS = {
    ("fp64", False): 9.7e3,
    ("fp64", True): 19.5e3,
    ("fp32", False): 19.5e3,
    ("fp32", True): 19.5e3,
    ("tf32", False): 19.5e3,
    ("tf32", True): 156e3,
    ("bf16", True): 312e3,
    ("fp16", False): 78e3,
    ("fp16", True): 312e3,
    ("int8", True): 624e3,
}


class TestLibraries:
    """A call of a library takes its launch, and the longer of its bytes' and its arithmetic's time."""

    @staticmethod
    def lasts(gpu=GPU, **call):
        row = {"operation": "library", "stream": 1, **call}
        found = ws.timeline(ws.App([]), gpu, operations=rows(row, WAIT)).table
        assert found["estimated"].tolist() == [True, False]
        return float(found["end_us"].iloc[0] - found["start_us"].iloc[0]) - gpu.launch_us_nsys

    @pytest.mark.parametrize(("arithmetic", "tensor_cores"), PEAKS)
    def test_peaks_are_those_that_nvidia_names(self, arithmetic, tensor_cores):
        peak = PEAKS[arithmetic, tensor_cores]
        found = self.lasts(flops=10**12, arithmetic=arithmetic, tensor_cores=tensor_cores, bytes=0)
        assert found == pytest.approx(1e12 / (peak * 1e3), rel=0.01)

    def test_a_large_product_takes_its_arithmetic_and_a_small_one_its_bytes(self):
        for n in (8, 64, 512, 4096):
            size, flops = 3 * 4 * n * n, 2 * n**3
            of_bytes = size / (GPU.sustained_dram_bandwidth_gbs * 1e3)
            of_flops = flops / 19.5e6
            found = self.lasts(bytes=size, flops=flops, arithmetic="fp32")
            assert found == pytest.approx(max(of_bytes, of_flops), rel=0.01)
            assert self.lasts(bytes=size) == pytest.approx(of_bytes)

    def test_more_arithmetic_never_takes_less(self):
        times = [self.lasts(bytes=10**6, flops=10**n, arithmetic="fp64") for n in range(14)]
        assert times == sorted(times)
        assert times[0] == pytest.approx(self.lasts(bytes=10**6))

    def test_without_tensor_cores_lanes_compute(self):
        gpu = GPU.replace(tensor_f16_f32_rate=0)
        call = {"bytes": 0, "flops": 10**12, "arithmetic": "fp16"}
        assert self.lasts(gpu, tensor_cores=True, **call) == self.lasts(gpu, **call)

    def test_arithmetic_has_to_be_named(self):
        with pytest.raises(ws.InputError, match=r"row 0: arithmetic = '': expected one of fp64"):
            self.lasts(bytes=1, flops=1)
        with pytest.raises(ws.InputError, match="row 0: arithmetic"):
            self.lasts(bytes=1, flops=1, arithmetic="fp65")
        with pytest.raises(ws.InputError, match="row 0: flops = -1: expected at least 0"):
            self.lasts(bytes=1, flops=-1, arithmetic="fp64")


class TestErrors:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"operation": "kernle"}, "row 1: operation"),
            ({"direction": "up"}, "row 1: direction"),
            ({"kernel": 2}, "row 1: kernel = 2: expected -1 or one of the 2 kernels"),
            ({"stream": -2}, "row 1: stream = -2: expected at least -1"),
            ({"after": (1,)}, r"row 1: after = \(1,\): expected earlier rows"),
            ({"parent": 1}, "row 1: parent = 1: expected an earlier row"),
            ({"host_ns": -1}, "row 1: host_ns = -1"),
            ({"bytes": "many"}, "the column bytes has values that are not numbers"),
            ({"bytes": 1.5}, "row 1: bytes = 1.5: expected a whole number"),
            ({"bytes": 2.0**70}, r"row 1: bytes = .*: expected a number below 2\^63"),
            ({"host_ns": np.inf}, r"row 1: host_ns = inf: expected a number below 2\^63"),
        ],
    )
    def test_rows_that_cannot_be(self, app, change, message):
        with pytest.raises(ws.InputError, match=f"operations: .*{message}"):
            ws.timeline(app, GPU, operations=rows(kernel(), {**kernel(), "bytes": 0, **change}))

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (rows({**kernel(), "streams": 1}), "there is no column 'streams'; did you mean stream"),
            (rows(kernel()).rename(columns={"stream": 5}), "there is no column 5"),
            (
                rows({**copy("HtoD"), "direction": ""}),
                "row 0: direction = '': a copy needs one of HtoD",
            ),
            (rows(kernel(), copy(None)), "row 1: direction = '': a copy needs"),
            (
                rows(copy("HtoD"), copy("HtoD", bytes=np.nan)),
                "row 1: bytes is missing: a row of copy",
            ),
            (rows(kernel(), kernel(np.nan)), "row 1: kernel is missing: a row of kernel"),
            (rows(kernel(), kernel(1, np.nan)), "row 1: stream is missing: a row of kernel needs"),
            (rows(copy("HtoD")).drop(columns="bytes"), "row 0: bytes is missing: a row of copy"),
        ],
    )
    def test_what_a_row_cannot_be_without(self, app, table, message):
        with pytest.raises(ws.InputError, match=f"operations: {message}"):
            ws.timeline(app, GPU, operations=table)

    def test_tables_without_operations(self, app):
        with pytest.raises(ws.InputError, match="there is no column operation"):
            ws.timeline(app, GPU, operations=pd.DataFrame({"stream": [1]}))

    def test_other_profilers(self, app):
        with pytest.raises(
            ws.InputError, match="profiler = ncu: a time line has the times of nsys"
        ):
            ws.timeline(app, GPU, profiler="ncu")


@pytest.fixture(scope="module")
def document(app, tmp_path_factory):
    table = rows(
        {"operation": "range_push", "name": "step", "stream": -1},
        copy("HtoD", 1, api="cudaMemcpyAsync"),
        kernel(0, 1, api="cudaLaunchKernel"),
        kernel(1, 2, api="cudaLaunchKernel"),
        {"operation": "event_record", "stream": 2, "event": 0},
        {"operation": "range_pop", "stream": -1},
        WAIT,
    )
    path = tmp_path_factory.mktemp("perfetto") / "program.json.gz"
    ws.timeline(app, GPU, operations=table).to_perfetto(path)
    return json.loads(gzip.decompress(path.read_bytes()))


class TestPerfetto:
    def test_events_have_what_the_format_asks_for(self, document):
        named = {(e["pid"], e.get("tid")) for e in document["traceEvents"] if e["ph"] == "M"}
        for event in document["traceEvents"]:
            assert event["ph"] in "MXisf"
            assert isinstance(event["name"], str)
            if event["ph"] != "M":
                assert (event["pid"], event["tid"]) in named
                assert event["ts"] >= 0
            if event["ph"] == "X":
                assert event["dur"] >= 0

    def test_slices_of_a_track_lie_within_each_other_or_apart(self, document):
        tracks = defaultdict(list)
        for event in document["traceEvents"]:
            if event["ph"] == "X":
                times = (event["ts"], event["ts"] + event["dur"])
                tracks[event["pid"], event["tid"]].append(times)
        assert len(tracks) == 1 + 2 + 2  # a thread, two streams, two engines
        for times in tracks.values():
            stack = []
            for start, end in sorted(times, key=lambda span: (span[0], -span[1])):
                while stack and stack[-1] <= start + 1e-9:
                    stack.pop()
                assert not stack or end <= stack[-1] + 1e-9
                stack.append(end)

    def test_kernels_at_the_same_time_have_tracks_beside_each_other(self, app, tmp_path):
        table = rows({**kernel(0, 1), "host_ns": 0}, kernel(1, 2))
        eager = GPU.replace(host_launch_us=0)
        ws.timeline(app, eager, operations=table).to_perfetto(tmp_path / "two.json")
        events = json.loads((tmp_path / "two.json").read_text())["traceEvents"]
        names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
        assert names[-2:] == ["engine: kernels", "engine: kernels (2)"]

    def test_numbers_of_tracks_are_their_own(self, document):
        # Perfetto draws tracks 0 and of their process's number as one, the main thread of the process.
        named = [e for e in document["traceEvents"] if e["name"] == "thread_name"]
        numbers = [event["tid"] for event in named]
        assert len(set(numbers)) == len(numbers)
        assert not set(numbers) & {0, *(event["pid"] for event in document["traceEvents"])}
        assert [event["args"]["name"] for event in named] == [
            "host thread 0",
            "stream 1",
            "stream 2",
            "engine: kernels",
            "engine: copies to the GPU",
        ]
        assert numbers == sorted(numbers)

    def test_times_are_whole_nanoseconds_when_they_are_cut_off(self, app, tmp_path):
        # Perfetto cuts off what is below a nanosecond, and drops a slice that begins in another one.
        table = rows(*(copy("HtoD", 1, bytes=1000 + 7 * n) for n in range(300)), WAIT)
        slow = GPU.replace(host_link_gbs=7.3)
        ws.timeline(app, slow, operations=table).to_perfetto(tmp_path / "copies.json")
        events = json.loads((tmp_path / "copies.json").read_text())["traceEvents"]
        copies = [e for e in events if e["ph"] == "X" and "GB/s" in e["args"]]
        assert len(copies) == 300
        cut = [(int(e["ts"] * 1e3), int(e["ts"] * 1e3) + int(e["dur"] * 1e3)) for e in copies]
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(cut))
        for event, (start, end) in zip(copies, cut, strict=True):
            exact = event["args"]["bytes"] / event["args"]["GB/s"]
            assert abs(end - start - exact) <= 1
            assert abs(event["ts"] * 1e3 - start) < 1e-3

    def test_an_operation_has_the_same_name_on_both_of_its_tracks(self, document):
        titles = defaultdict(set)
        for event in document["traceEvents"]:
            if event["ph"] == "X" and event["cat"] in ("copy", "kernel"):
                titles[event["args"]["row"]].add((event["name"], event["cat"]))
        assert sorted(titles) == [1, 2, 3]
        assert all(len(names) == 1 for names in titles.values())
        assert titles[1] == {("HtoD copy", "copy")}

    def test_work_that_takes_no_time_comes_before_what_starts_then(self, app, tmp_path):
        function = {"operation": "host_function", "stream": 1, "graph": 0}
        launch = {"operation": "graph_launch", "stream": 1, "graph": 0}
        later = kernel(0, 1, graph=0, after=(0,))
        table = rows(launch, later, {**function, "after": (0,)}, WAIT)
        ws.timeline(app, GPU, operations=table).to_perfetto(tmp_path / "graph.json")
        events = json.loads((tmp_path / "graph.json").read_text())["traceEvents"]
        work = [e for e in events if e.get("cat") in ("kernel", "host_function")]
        of_stream = [e for e in work if "why" in e["args"]]
        assert [e["cat"] for e in of_stream] == ["host_function", "kernel"]
        assert of_stream[0]["ts"] <= of_stream[1]["ts"]

    def test_arrows_go_from_calls_to_their_work(self, document):
        arrows = defaultdict(list)
        for event in document["traceEvents"]:
            if event["ph"] in "sf":
                arrows[event["id"]].append(event)
        assert sorted(arrows) == [1, 2, 3]
        for start, finish in arrows.values():
            assert (start["ph"], finish["ph"], finish["bp"]) == ("s", "f", "e")
            assert start["ts"] <= finish["ts"]

    def test_ranges_are_around_their_calls(self, document):
        slices = {e["name"]: e for e in document["traceEvents"] if e["ph"] == "X"}
        outer, inner = slices["step"], slices["cudaMemcpyAsync"]
        assert outer["ts"] <= inner["ts"]
        assert outer["ts"] + outer["dur"] >= inner["ts"] + inner["dur"]


class TestSpans:
    def test_unions_and_what_is_common(self):
        first = spans.union(np.array([0.0, 5, 1]), np.array([2.0, 6, 3]))
        assert [edge.tolist() for edge in first] == [[0, 5], [3, 6]]
        second = spans.union(np.array([2.0]), np.array([5.5]))
        assert spans.length(spans.common(first, second)) == 1 + 0.5
        nothing = spans.union(np.empty(0), np.empty(0))
        assert spans.length(spans.common(first, nothing)) == 0


class TestCommand:
    @pytest.fixture
    def trace(self, app, tmp_path):
        ws.save(app, tmp_path / "app")
        return str(tmp_path / "app")

    def test_totals_and_path(self, trace, capsys):
        assert main(["timeline", trace, "--gpu", "a100"]) == 0
        text = capsys.readouterr().out
        assert "two on a100: 2 operations" in text
        assert "Critical path" in text
        assert "time low" in text
        assert "us low" not in text
        shares = [line.split()[-1] for line in text.splitlines() if line.startswith("kernel ")]
        assert max(map(float, shares)) > 10
        assert "Parts: program is the host's own work" in text

    def test_tables_and_files(self, trace, tmp_path, capsys):
        where = tmp_path / "t.json"
        picture = tmp_path / "t.png"
        more = ["--perfetto", str(where), "--plot", str(picture), "--csv"]
        assert main(["timeline", trace, "--gpu", "a100", *more]) == 0
        assert capsys.readouterr().out.startswith("row,operation,name,thread,stream,engine")
        assert json.loads(where.read_text())["traceEvents"]
        assert picture.stat().st_size > 0
        assert main(["timeline", trace, "--what-if", "--json"]) == 0
        names = [row["what_if"] for row in json.loads(capsys.readouterr().out)]
        assert names == ["no copies", "one stream", "graph", "pinned", "32 connections"]

    def test_rows_have_the_numbers_that_others_wait_for(self, trace, capsys):
        assert main(["timeline", trace, "--operations", "--json"]) == 0
        first, second = json.loads(capsys.readouterr().out)
        assert second["waited_for"] == first["row"] == 0

    def test_chosen_kernels_are_rows_of_the_whole_program(self, app, tmp_path, capsys):
        other = ws.App([app[0]], "one")
        other._operations = columns_of([copy("HtoD"), kernel(0), WAIT])
        trace = str(tmp_path / "one")
        ws.save(other, trace)
        assert main(["timeline", trace, "--operations", "--json"]) == 0
        whole = json.loads(capsys.readouterr().out)
        for more in (["--operations", "--json"], ["--json"]):
            assert main(["timeline", trace, "--kernels", "stri*", *more]) == 0
            assert json.loads(capsys.readouterr().out) == [whole[1]]

    @pytest.mark.parametrize("more", [[], ["--what-if"], ["--what-if", "--json"]])
    def test_the_time_of_some_kernels_is_refused(self, trace, capsys, more):
        assert main(["timeline", trace, "--kernels", "2", *more]) == 2
        assert (
            "--kernels 2: the time is that of the whole program; leave it out, or list these launches with "
            "--operations"
        ) in capsys.readouterr().err

    def test_launches_that_are_not_there_are_refused(self, trace, capsys):
        assert main(["timeline", trace, "--kernels", "3", "--operations"]) == 2
        assert "3" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "words", [["timeline", "--perfetto", "x.txt"], ["simulate", "--timeline", "x.json.xz"]]
    )
    def test_files_of_events_are_named_so(self, trace, capsys, words):
        command, option, name = words
        assert main([command, trace, "--gpu", "a100", option, name]) == 2
        said = f"{option} {name}: the file is JSON; give it a name that ends in .json or .json.gz"
        assert said in capsys.readouterr().err

    def test_several_models_are_refused(self, trace, capsys):
        assert main(["timeline", trace, "--model", "all"]) == 2
        assert "--model all: a time line takes one model" in capsys.readouterr().err

    def test_two_tables_are_refused(self, trace, capsys):
        assert main(["timeline", trace, "--what-if", "--operations"]) == 2
        assert "two tables" in capsys.readouterr().err


class TestPicture:
    @pytest.mark.parametrize(
        ("streams", "label"), [(12, "time (us)"), (14, "time (us); 2 more streams are not drawn")]
    )
    def test_says_how_many_streams_it_leaves_out(self, app, streams, label):
        table = rows(*(kernel(0, stream) for stream in range(1, streams + 1)))
        axes = ws.plot.operations(ws.timeline(app, GPU, operations=table))
        assert axes.get_xlabel() == label


class TestMemory:
    def test_what_frees_memory_waits_for_all_unless_it_is_in_order(self, app, kernel_us):
        def returned(free):
            line = ws.timeline(app, GPU, operations=rows(kernel(0), free))
            return line.table["returned_us"].tolist()[1]

        waits = returned({"operation": "free", "stream": -1, "api": "cudaFree"})
        assert waits == pytest.approx(2 + 3 + kernel_us + 4)
        assert returned({"operation": "free", "stream": 1, "api": "cudaFreeAsync"}) == 2 + 1

    def test_nodes_of_a_graph_that_free_memory_are_no_calls(self, app):
        node = {"stream": 1, "graph": 0, "api": "cudaGraphLaunch"}
        table = rows(
            {"operation": "graph_launch", **node},
            {"operation": "allocate", **node},
            {"operation": "kernel", "kernel": 0, **node, "after": (1,)},
            {"operation": "free", **node, "after": (2,)},
        )
        found = ws.timeline(app, GPU, operations=table).table
        assert found["thread"].tolist() == [0, -1, -1, -1]
        assert found["start_us"][3] == found["end_us"][2]
        # Its launch has three nodes.
        assert found["returned_us"][0] == 5 + 3 * 0.25
