"""What the host of a program does, as a table: kept with traces, chosen, and of Accel-Sim's lists."""

import copy
import json
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpstack as ws
from accelsim_text import Instruction, grouped
from effort import rounds
from warpstack._util.files import file_digest, sealed
from warpstack.errors import TraceWarning
from warpstack.traces import operations
from warpstack.traces.io import parquet
from warpstack.traces.trace import App

ROWS = [
    {"operation": "stream_create", "stream": 1, "blocking": True, "priority": -1},
    {"operation": "copy", "stream": 1, "direction": "HtoD", "bytes": 1 << 20, "pinned": True},
    {"operation": "kernel", "name": "first", "stream": 1, "kernel": 0, "asynchronous": True},
    {"operation": "graph_launch", "stream": 0, "graph": 0, "host_ns": 125},
    {"operation": "kernel", "name": "second", "stream": 0, "kernel": 1, "graph": 0, "parent": 2},
    {"operation": "event_record", "stream": 0, "event": 3, "graph": 0, "after": (4,)},
    {
        "operation": "kernel",
        "name": "third",
        "stream": 0,
        "graph": 0,
        "after": (4, 5),
        "programmatic": True,
    },
    {
        "operation": "range_push",
        "name": "a\nb \U0001f600",
        "thread": 1,
        "process": 2,
        "begins_after": (3,),
    },
    {"operation": "host_function", "stream": 1, "work_ns": 2000},
]


def app_with(rows, kernels=2):
    app = App([ws.patterns.stream(blocks=2 + i) for i in range(kernels)], "two")
    app._operations = operations.columns_of(rows)
    return app


def as_rows(table):
    return table.to_dict("records")


def test_a_trace_without_operations_has_each_kernel_once_in_the_default_stream(tmp_path):
    app = ws.App([ws.patterns.stream(), ws.patterns.gather(blocks=4)])
    table = app.operations
    assert list(table) == list(operations.COLUMNS)
    assert table[["operation", "stream", "kernel", "asynchronous"]].values.tolist() == [
        ["kernel", 0, 0, True],
        ["kernel", 0, 1, True],
    ]
    assert table["name"].tolist() == [kernel.short_name for kernel in app]
    assert table["api"].tolist() == ["", ""]
    ws.save(app, tmp_path / "saved")
    assert "operations" not in json.loads((tmp_path / "saved" / parquet.MANIFEST).read_text())
    assert as_rows(ws.load(tmp_path / "saved").operations) == as_rows(table)


def test_saving_loses_nothing(tmp_path):
    app = app_with(ROWS)
    ws.save(app, tmp_path / "saved")
    again = ws.load(tmp_path / "saved")
    assert as_rows(again.operations) == as_rows(app.operations)
    assert again.operations.dtypes.equals(app.operations.dtypes)
    ws.save(again, tmp_path / "twice")
    assert as_rows(ws.load(tmp_path / "twice").operations) == as_rows(app.operations)
    assert parquet.files_of(tmp_path / "twice")[1] == "operations.parquet"
    ws.save(ws.App(app.kernels), tmp_path / "twice", overwrite=True)
    assert not (tmp_path / "twice" / "operations.parquet").exists()


def test_without_the_column_threads_begin_after_the_row_before_their_first(tmp_path):
    pairs = [(0, 0), (0, 1), (0, 0), (1, 0), (0, 1), (0, 2), (1, 1)]
    rows = [{"operation": "allocate", "process": p, "thread": t} for p, t in pairs]
    expected = [(), (0,), (), (), (), (4,), (3,)]
    assert operations.begins_of_threads(operations.columns_of(rows)) == expected
    ws.save(app_with(rows), tmp_path / "saved")
    without(tmp_path / "saved", "begins_after")
    assert ws.load(tmp_path / "saved").operations["begins_after"].tolist() == expected


def without(folder, column):
    """Make a saved trace one that was written before its operations had a column."""
    table = pq.read_table(folder / "operations.parquet")
    pq.write_table(table.drop_columns([column]), folder / "operations.parquet")
    manifest = json.loads((folder / parquet.MANIFEST).read_text())
    manifest["operations"] = file_digest(folder / "operations.parquet")
    (folder / parquet.MANIFEST).write_text(sealed(manifest))


def test_without_the_column_no_launch_overlaps(tmp_path):
    ws.save(app_with(ROWS), tmp_path / "saved")
    assert ws.load(tmp_path / "saved").operations["programmatic"].tolist()[6]
    without(tmp_path / "saved", "programmatic")
    assert not ws.load(tmp_path / "saved").operations["programmatic"].any()


def test_without_the_column_host_functions_take_no_time(tmp_path):
    ws.save(app_with(ROWS), tmp_path / "saved")
    assert ws.load(tmp_path / "saved").operations["work_ns"].tolist()[-1] == 2000
    without(tmp_path / "saved", "work_ns")
    assert ws.load(tmp_path / "saved").operations["work_ns"].tolist() == [0] * len(ROWS)


def test_without_the_columns_libraries_compute_nothing(tmp_path):
    call = {"operation": "library", "name": "cuFFT", "stream": 1, "bytes": 64}
    more = {"flops": 2**62, "arithmetic": "fp16", "tensor_cores": True}
    ws.save(app_with([*ROWS, {**call, **more}]), tmp_path / "saved")
    assert as_rows(ws.load(tmp_path / "saved").operations[list(more)])[-1] == more
    for name in more:
        without(tmp_path / "saved", name)
    absent = {"flops": 0, "arithmetic": "", "tensor_cores": False}
    assert as_rows(ws.load(tmp_path / "saved").operations[list(more)]) == [absent] * (len(ROWS) + 1)


def test_a_program_may_launch_nothing(tmp_path):
    rows = [{"operation": "copy", "stream": 0, "direction": "HtoD", "bytes": 64}]
    app = app_with(rows, kernels=0)
    ws.save(app, tmp_path / "saved")
    again = ws.load(tmp_path / "saved")
    assert as_rows(again.operations) == as_rows(app.operations)
    assert ws.timeline(again, "a100").time_us > 0
    for call in (ws.predict, ws.simulate):
        with pytest.raises(
            ws.InputError, match="two: the program launched no kernel, so that there is"
        ):
            call(again, "a100")
    with pytest.raises(ws.InputError, match="save: two has no kernels"):
        ws.save(app, tmp_path / "other", format="accelsim")


def test_a_program_may_do_nothing(tmp_path):
    ws.save(app_with([]), tmp_path / "saved")
    assert ws.load(tmp_path / "saved").operations.shape == (0, len(operations.COLUMNS))


def test_copies_of_an_application_keep_them():
    app = app_with(ROWS)
    for again in (pickle.loads(pickle.dumps(app)), copy.deepcopy(app)):
        assert as_rows(again.operations) == as_rows(app.operations)


def test_kernels_that_are_not_chosen_stay_as_rows(tmp_path):
    app = App([ws.patterns.stream(blocks=2), ws.patterns.stream(blocks=3)], "two")
    numbers = [kernel.launch_id for kernel in app]
    assert len(set(numbers)) == 2 or numbers[0] == numbers[1]
    app._operations = operations.columns_of(ROWS)
    second = app._part([1])
    assert second.operations["kernel"].tolist() == [-1, -1, -1, -1, 0, -1, -1, -1, -1]
    assert second.operations["name"].tolist() == app.operations["name"].tolist()
    assert app._part([0, 1]).operations["kernel"].tolist() == app.operations["kernel"].tolist()


def test_loading_some_launches_keeps_all_rows(tmp_path, bfs):
    whole = App(bfs.kernels, "bfs")
    rows = [
        {"operation": "kernel", "kernel": place, "stream": 0, "name": kernel.short_name}
        for place, kernel in enumerate(bfs)
    ]
    whole._operations = operations.columns_of(rows)
    ws.save(whole, tmp_path / "saved")
    some = ws.load(tmp_path / "saved", kernels=[3, 9])
    expected = [-1] * len(bfs)
    expected[[k.launch_id for k in bfs].index(3)] = 0
    expected[[k.launch_id for k in bfs].index(9)] = 1
    assert some.operations["kernel"].tolist() == expected
    assert whole.select([3, 9]).operations["kernel"].tolist() == expected


def test_the_summary_counts():
    assert operations.summary(operations.columns_of(ROWS)) == (
        "9 operations: 3 launches, 1 copy (1.0 MiB), 1 launch of a graph, 1 event recorded, 2 streams"
    )
    assert operations.summary(operations.columns_of([])) == "0 operations"
    managed = {"operation": "allocate", "api": "cudaMallocManaged", "bytes": 64}
    wait = {"operation": "device_synchronize"}
    assert operations.summary(operations.columns_of([managed, wait])) == (
        "2 operations: 1 wait of the host; managed memory that moves by itself is not among them"
    )


# --- values that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "change", "message"),
    [
        (1, {"operation": "dance"}, "row 1: operation = 'dance' is not one of kernel, copy"),
        (1, {"operation": "\udc80"}, r"row 1: operation = '\udc80' is not one of kernel"),
        (1, {"direction": "up"}, "row 1: direction = 'up' is not one of HtoD, DtoH"),
        (2, {"kernel": 2}, "row 2: kernel = 2: expected -1 or one of the 2 kernels"),
        (2, {"kernel": -2}, "row 2: kernel = -2: expected at least -1"),
        (1, {"kernel": 0}, "row 1: kernel = 0: expected -1 in a row of copy"),
        (1, {"bytes": -1}, "row 1: bytes = -1: expected at least 0"),
        (1, {"stream": -1}, "row 1: stream = -1: expected a number in a row of copy"),
        (5, {"event": -1}, "row 5: event = -1: expected a number in a row of event_record"),
        (4, {"parent": 4}, "row 4: parent = 4: expected an earlier row"),
        (6, {"begins_after": (6,)}, "row 6: begins_after = (6,): expected earlier rows"),
        (6, {"begins_after": (-1,)}, "row 6: begins_after = (-1,): expected earlier rows"),
        (6, {"after": (2, 6)}, "row 6: after = (2, 6): expected earlier rows"),
        (6, {"after": (-1,)}, "row 6: after = (-1,): expected earlier rows"),
        (0, {"host_ns": -5}, "row 0: host_ns = -5: expected at least 0"),
        (7, {"work_ns": -5}, "row 7: work_ns = -5: expected at least 0"),
        (0, {"thread": -1}, "row 0: thread = -1: expected at least 0"),
    ],
)
def test_impossible_values_are_named(row, change, message):
    rows = [dict(one) for one in ROWS]
    rows[row] |= change
    with pytest.raises(ws.InputError) as caught:
        operations.check(operations.columns_of(rows), 2, "here/operations.parquet")
    text = str(caught.value)
    assert text.startswith(f"here/operations.parquet: {message}")
    assert text.endswith("; trace the program again")
    assert text.isprintable()
    assert text.encode("utf-8")


@settings(max_examples=rounds(100), deadline=None)
@given(st.data())
def test_check_refuses_what_an_obvious_check_refuses(data):
    """The obvious check looks at one row after the other."""
    number = st.integers(-2, 9)
    rows = data.draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "operation": st.sampled_from((*operations.OPERATIONS, "other")),
                    "stream": number,
                    "kernel": st.sampled_from((-1, -1, -1, 0, 5)),
                    "event": number,
                    "bytes": number,
                    "parent": st.sampled_from((-1, 0, 3)),
                    "after": st.lists(st.integers(-1, 4), max_size=2).map(tuple),
                }
            ),
            max_size=6,
        )
    )

    def is_possible(place, row):
        in_stream = row["operation"] in operations.IN_STREAM
        with_event = row["operation"] in operations._WITH_EVENT
        return (
            row["operation"] in operations.OPERATIONS
            and row["stream"] >= (0 if in_stream else -1)
            and row["event"] >= (0 if with_event else -1)
            and row["bytes"] >= 0
            and -1 <= row["kernel"] < 2
            and (row["kernel"] == -1 or row["operation"] == "kernel")
            and -1 <= row["parent"] < place
            and all(0 <= other < place for other in row["after"])
        )

    possible = all(is_possible(place, row) for place, row in enumerate(rows))
    try:
        operations.check(operations.columns_of(rows), 2, "x")
    except ws.InputError:
        assert not possible
    else:
        assert possible


class TestDamage:
    @pytest.fixture
    def saved(self, tmp_path):
        ws.save(app_with(ROWS), tmp_path / "saved")
        return tmp_path / "saved"

    @staticmethod
    def put(saved, table):
        """Write another table with the right digest, as someone might on purpose."""
        pq.write_table(table, saved / "operations.parquet")
        manifest = json.loads((saved / parquet.MANIFEST).read_text())
        del manifest["digest"]
        manifest["operations"] = file_digest(saved / "operations.parquet")
        (saved / parquet.MANIFEST).write_text(sealed(manifest))

    @staticmethod
    def refuse(saved, message):
        with pytest.raises(ws.InputError) as caught:
            ws.load(saved)
        text = str(caught.value)
        assert f"operations.parquet: {message}" in text, text
        assert text.isprintable()
        assert text.encode("utf-8")

    def test_a_changed_byte(self, saved):
        data = bytearray((saved / "operations.parquet").read_bytes())
        data[len(data) // 2] ^= 1
        (saved / "operations.parquet").write_bytes(data)
        self.refuse(saved, "the saved trace is damaged: this file has digest")

    def test_a_missing_file(self, saved):
        (saved / "operations.parquet").unlink()
        self.refuse(saved, "the saved trace is damaged: this file is not there; restore it")

    def test_no_table(self, saved):
        self.put(saved, pa.table({"x": [1]}))
        self.refuse(saved, "the saved trace is damaged: there is no column operation")

    @pytest.mark.parametrize(
        ("column", "values", "message"),
        [
            ("bytes", ["a"] * len(ROWS), "damaged: bytes is string, not int64"),
            ("stream", [None] * len(ROWS), "damaged: stream is null, not int64"),
            ("name", pa.array([None] * len(ROWS), pa.string()), "name has empty entries"),
            (
                "after",
                pa.array([[None]] * len(ROWS), pa.list_(pa.int64())),
                "after has empty entries in its lists",
            ),
        ],
    )
    def test_columns_of_other_types(self, saved, column, values, message):
        table = pq.read_table(saved / "operations.parquet")
        self.put(saved, table.set_column(table.schema.get_field_index(column), column, [values]))
        with pytest.raises(ws.InputError, match=message):
            ws.load(saved)

    def test_text_that_is_not_utf_8(self, saved):
        table = pq.read_table(saved / "operations.parquet")
        for column in ("operation", "name", "api", "direction"):
            raw = pa.array(
                [b"\xed\xa0\x80"] * len(ROWS), pa.binary()
            )  # half of a pair of surrogates
            text = pa.Array.from_buffers(pa.string(), len(ROWS), raw.buffers())
            self.put(saved, table.set_column(table.schema.get_field_index(column), column, [text]))
            self.refuse(saved, "the saved trace is damaged: ")

    def test_impossible_values(self, saved):
        table = pq.read_table(saved / "operations.parquet")
        values = pa.array([7] * len(ROWS), pa.int64())
        self.put(
            saved, table.set_column(table.schema.get_field_index("kernel"), "kernel", [values])
        )
        self.refuse(saved, "row 0: kernel = 7: expected -1 or one of the 2 kernels")


# --- Accel-Sim ----------------------------------------------------------------------------------


def folder_of(path, lines, streams):
    path.mkdir()
    for number, stream in streams.items():
        (path / f"kernel-{number}.traceg").write_text(kernel_text(number, stream))
    (path / "kernelslist.g").write_text("\n".join(lines) + "\n")
    return path


def kernel_text(number, stream):
    blocks = {(0, 0, 0): {0: [Instruction(0x00, "MOV", [1]), Instruction(0x10, "EXIT")]}}
    return grouped(blocks, 4, **{"kernel id": number, "cuda stream id": stream})


LIST = [
    "MemcpyHtoD,0x00007f2b4d400000,4096",
    "kernel-1.traceg",
    "kernel-2.traceg",
    "MemcpyDtoH,0x00007f2b4d400000,64",
    "ncclAllReduce,0x00007f2b4d400000,512",
    "kernel-3.traceg",
]


def test_accelsim_lists(tmp_path):
    place = folder_of(tmp_path / "traces", LIST, {1: 0, 2: 94321, 3: 94321})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        app = ws.load(place)
    table = app.operations
    columns = ["operation", "name", "stream", "kernel", "direction", "bytes"]
    name = app[0].short_name
    assert table[columns].values.tolist() == [
        ["copy", "MemcpyHtoD", 0, -1, "HtoD", 4096],
        ["kernel", name, 0, 0, "", 0],
        ["kernel", name, 1, 1, "", 0],
        ["copy", "MemcpyDtoH", 0, -1, "DtoH", 64],
        ["nccl", "ncclAllReduce", -1, -1, "", 0],
        ["kernel", name, 1, 2, "", 0],
    ]
    operations.check(app._operations, len(app), "list")
    some = ws.load(place, kernels=[2])
    assert some.operations["kernel"].tolist() == [-1, -1, 0, -1, -1, -1]
    ws.save(app, tmp_path / "saved")
    assert as_rows(ws.load(tmp_path / "saved").operations) == as_rows(table)


def test_accelsim_lists_tell_what_they_pass_over(tmp_path):
    place = folder_of(tmp_path / "traces", [*LIST, "Dance,1", "MemcpyHtoD,x"], {1: 0, 2: 0, 3: 0})
    with pytest.warns(TraceWarning, match=r"2 lines of the list .* the first is Dance,1 in line 7"):
        app = ws.load(place)
    assert len(app.operations) == 6


def test_accelsim_lists_with_missing_files(tmp_path):
    place = folder_of(tmp_path / "traces", LIST, {1: 0, 3: 0})
    with pytest.warns(TraceWarning, match="is not there"):
        app = ws.load(place, missing="skip")
    table = app.operations
    kernels = table[table.operation == "kernel"]
    assert kernels["kernel"].tolist() == [0, -1, 1]
    assert kernels["name"].tolist()[1] == "kernel-2"


def test_columns_are_numbers_where_they_should_be():
    table = operations.frame(operations.columns_of(ROWS))
    kinds = {"integer": np.int64, "bool": np.bool_}
    for name, kind in operations.COLUMNS.items():
        assert table[name].dtype == kinds.get(kind, table[name].dtype)
        if kind in ("text", "rows"):
            assert all(isinstance(one, str if kind == "text" else tuple) for one in table[name])


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1, "(1 byte)"),
        (1023, "(1023 bytes)"),
        (24 << 10, "(24.0 KiB)"),
        (1 << 20, "(1.0 MiB)"),
        (3 << 30, "(3.0 GiB)"),
    ],
)
def test_summaries_have_sizes_in_their_unit(size, said):
    rows = [{"operation": "copy", "stream": 0, "direction": "HtoD", "bytes": size}]
    assert f"1 copy {said}, " in operations.summary(operations.columns_of(rows))
