"""Tables of times that people write themselves: what they mean is read, what they do not is refused."""

import pytest

import warpstack as ws
from warpstack.cli import main

NSYS_CSV = """\
 ** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum):

Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
100.0,5000,2,2500.0,2500.0,2500,2500,0.0,[CUDA memcpy Host-to-Device]

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
100.0,9000,3,3000.0,3000.0,2000,4000,1000.0,"void add<int, 4>(int *, int)"

 ** OS Runtime Summary (osrt_sum):

Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
100.0,9,1,9.0,9.0,9,9,0.0,poll
"""


def read(tmp_path, text):
    (tmp_path / "own.csv").write_text(text)
    return ws.validation.reference.read(tmp_path / "own.csv")


@pytest.mark.parametrize(
    ("text", "column", "value"),
    [
        ("name,time_us\na,9.8 us\n", "time_us", 9.8),
        ("name,time_us\na,9.8 \u00b5s\n", "time_us", 9.8),
        ("name,time_us\na,9.8 microseconds\n", "time_us", 9.8),
        ("name,time_us\na,0.1\n", "time_us", 0.1),
        ("name,time_ms\na,9.8 ms\n", "time_s", 9.8e-3),
        ("name,time (ns)\na,9 ns\n", "time_s", 9e-9),
        ("name,cycles\na,9 cycles\n", "cycles", 9),
        ('name,cycles\na,"1,234 cycle"\n', "cycles", 1234),
        ("kernel,cycles,clock_ghz\n1,9,1.4 GHz\n", "clock_ghz", 1.4),
        ("name,time,unit\na,9,us\n", "time_s", 9e-6),
        ("name,time,unit\na,9 us,us\n", "time_s", 9e-6),
    ],
)
def test_the_unit_of_a_column_may_be_in_its_cells(tmp_path, text, column, value):
    assert read(tmp_path, text)[column].tolist() == pytest.approx([value], rel=1e-12)


@pytest.mark.parametrize("text", ["", "n/a", "-"])
def test_empty_cells_are_missing(tmp_path, text):
    assert read(tmp_path, f"name,time_us\na,{text}\nb,2\n")["time_us"].isna().tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,time_us\na,9 s\n", "time_us = '9 s' has another unit than its column, .* in us;"),
        ("name,time_us\na,9 ns\n", "time_us = '9 ns' has another unit"),
        ("name,time_us\na,9 cycles\n", "time_us = '9 cycles' has another unit"),
        ("name,time_s\na,9 cycles\n", "time_s = '9 cycles' has another unit"),
        ("name,cycles\na,9.8 us\n", "cycles = '9.8 us' has another unit .* in cycles; write the"),
        ("name,cycles\na,9 Kcycle\n", "cycles = '9 Kcycle' has another unit"),
        ("name,time_ms\na,9 us\n", "time_ms = '9 us' has another unit than its column"),
        ("name,time,unit\na,9 us,ms\n", "time = '9 us' has another unit"),
        ("name,time_us,unit\na,9,ms\n", "time_us is in us by its name and in ms by the column"),
        ("name,time_ns,unit\na,9,ms\n", "time_ns is in ns by its name and in ms by the column"),
        ("kernel,cycles,instructions\n1,9,9.8 us\n", "instructions = '9.8 us' has another unit"),
        ("kernel,cycles,l2_read_sectors\n1,9,9 us\n", "l2_read_sectors = '9 us' has another unit"),
        ("name,time_us\na,-9\n", "time_us = '-9' is not a time above 0; correct it, or leave"),
        ("name,time_us\na,0\n", "time_us = '0' is not a time above 0"),
        ("name,time_ms\na,-0.5 ms\n", "time_ms = '-0.5 ms' is not a time above 0"),
        ("name,time_us\na,NaN\n", "time_us = 'NaN' is not a time above 0"),
        ("name,time_us\na,inf\n", "time_us = 'inf' is not a time above 0"),
        ("name,cycles\na,-9\n", "cycles = '-9' is not a number of cycles"),
        ("name,cycles\na,nan\n", "cycles = 'nan' is not a number of cycles"),
        ('name,time_us\na,"9,8"\n', "time_us = '9,8' is not a number; write a decimal point"),
    ],
)
def test_a_cell_that_contradicts_its_column(tmp_path, text, message):
    with pytest.raises(ws.InputError, match=rf"own\.csv:2: {message}"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name;time_us\na;9,8\n", "semicolons are between its columns .*; write commas"),
        ("name;time\na;9,8\n", "semicolons are between its columns"),
        ("name\ttime_us\na\t9.8\n", "tabs are between its columns"),
        ("kernel;cycles\n1;9\n", "semicolons are between its columns"),
        ("name,time\na,9\n", "column 'time' says no unit; call it time_us, time_ns, time_ms"),
        ("name,time_fortnights\na,9\n", "unknown unit 'fortnights'; call it time_us, time_ns"),
        ("kernel,time\n1,9\n", "column 'time' says no unit; call it time_us"),
        ("kernel,time\nfill,9\n", "column 'time' says no unit; call it time_us"),
        ("name,runtime\na,9\n", "none of its columns is a time or cycles; call that one time_us"),
        ("function,time_us\na,9\n", "no column says which kernel a row is of; call it name"),
    ],
)
def test_headers_that_are_almost_right(tmp_path, text, message):
    with pytest.raises(ws.InputError, match=rf"own\.csv.*{message}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_each_program_numbers_its_launches(tmp_path):
    table = read(tmp_path, "app,name,time_us\ns,a,1\nt,a,2\ns,a,3\nt,b,4\n")
    assert table["kernel"].tolist() == [1, 1, 2, 2]
    mine = table[["app", "name", "kernel", "time_us"]].assign(gpu="g", gpu_changes="", model="m")
    compared = ws.validate(mine, tmp_path / "own.csv")
    assert compared["status"].tolist() == ["matched"] * 4
    assert compared["error"].tolist() == [0] * 4


def test_csv_below_the_headings_of_nsight_systems(tmp_path):
    table = read(tmp_path, NSYS_CSV)
    assert table["name"].tolist() == ["add"]
    assert table["launches"].tolist() == [3]
    assert table["time_s"].tolist() == pytest.approx([3e-6])


def test_headings_without_a_report_of_kernels(tmp_path):
    with pytest.raises(
        ws.InputError, match=r"without the times of kernels; write .*cuda_gpu_trace"
    ):
        read(tmp_path, NSYS_CSV[: NSYS_CSV.index(" ** CUDA GPU Kernel")])
    with pytest.raises(ws.InputError, match="text that nsys stats prints; write it as CSV"):
        read(tmp_path, " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\nSKIPPED: no data\n")


def test_a_row_may_be_the_mean_over_launches(tmp_path):
    kernels = [ws.patterns.strided(gs, blocks=4, launch_id=i) for i, gs in enumerate((1, 8, 1), 1)]
    names = [kernel.short_name for kernel in kernels]
    predicted = ws.predict(ws.App(kernels), "a100")
    times = predicted["time_us"].to_list()
    rows = f"{names[0]},{(times[0] + times[2]) / 2},2\n{names[1]},{2 * times[1]},1\n"
    (tmp_path / "own.csv").write_text(f"name,time_us,launches\n{rows}")
    table = ws.validate(predicted, tmp_path / "own.csv").sort_values("launches", ascending=False)
    assert table["launches"].to_list() == [2, 1]
    assert table["status"].to_list() == ["matched"] * 2
    assert table["ratio"].to_list() == pytest.approx([1, 0.5])


def test_means_are_printed_by_kernel(tmp_path, capsys):
    kernels = [ws.patterns.strided(1, blocks=4, launch_id=i) for i in (1, 2)]
    ws.predict(ws.App(kernels), "a100").to_csv(tmp_path / "predicted.csv", index=False)
    (tmp_path / "own.csv").write_text(f"name,time_us,launches\n{kernels[0].short_name},2,2\n")
    files = [str(tmp_path / name) for name in ("predicted.csv", "own.csv")]
    assert main(["validate", *files, "--by", "kernel"]) == 0
    assert kernels[0].short_name in capsys.readouterr().out
