"""Timelines that profilers measured: nsys stats and PyTorch's profiler."""

import gzip
import json

import pytest

import warpstack as ws

HEADER = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
    "Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name"
)
NSYS = f"""\
Processing [run.sqlite] with [cuda_gpu_trace.py]...
{HEADER}
1003000,4000,120,,,,,,,,,,16.000,4000.0,Pinned,Device,NVIDIA A100 (0),1,,13,[CUDA memcpy Host-to-Device]
1001000,2000,119,,,,,,,,,,0.001,500.0,,,NVIDIA A100 (0),1,,7,[CUDA memset]
1007500,2500,121,8,1,1,256,1,1,16,0.000,0.000,,,,,NVIDIA A100 (0),1,,14,"void add<float>(float *, int)"
1009000,1000,122,,,,,,,,,,8.000,8000.0,Device,Pageable,NVIDIA A100 (0),1,,13,[CUDA memcpy DtoH]
"""


def torch_trace():
    gpu = {"device": 0, "stream": 7}
    return {
        "schemaVersion": 1,
        "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1.0, "dur": 900.0},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 5.0, "dur": 3.0},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "void at::native::add_kernel<float>(int)",
                "ts": 40.25,
                "dur": 2.5,
                "args": {**gpu, "grid": [8, 1, 1], "block": [256, 1, 1]},
            },
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "name": "Memcpy HtoD (Pageable -> Device)",
                "ts": 20.25,
                "dur": 10.0,
                "args": {**gpu, "bytes": 4096},
            },
            {
                "ph": "X",
                "cat": "gpu_memset",
                "name": "Memset (Device)",
                "ts": 31.0,
                "dur": 1.0,
                "args": {**gpu, "stream": 9, "bytes": 512},
            },
        ],
    }


def test_nsys_has_kernels_copies_and_fills_in_order(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(NSYS)
    found = ws.validation.reference.read_timeline(path)
    assert found["operation"].tolist() == ["memset", "copy", "kernel", "copy"]
    assert found["name"].tolist()[2] == "add"
    assert found["direction"].tolist() == ["", "HtoD", "", "DtoH"]
    assert found["stream"].tolist() == [7, 13, 14, 13]
    assert found["bytes"].tolist() == [1000, 16_000_000, 0, 8_000_000]
    assert found["start_us"].tolist() == pytest.approx([0, 2, 6.5, 8])
    assert found["end_us"].tolist() == pytest.approx([2, 6, 9, 9])


@pytest.mark.parametrize("compressed", [False, True])
def test_torch_has_what_the_gpu_did(tmp_path, compressed):
    path = tmp_path / ("trace.json.gz" if compressed else "trace.json")
    data = json.dumps(torch_trace()).encode()
    path.write_bytes(gzip.compress(data) if compressed else data)
    found = ws.validation.reference.read_timeline(path)
    assert found["operation"].tolist() == ["copy", "memset", "kernel"]
    assert found["name"].tolist()[2] == "add_kernel"
    assert found["direction"].tolist() == ["HtoD", "", ""]
    assert found["stream"].tolist() == [7, 9, 7]
    assert found["bytes"].tolist() == [4096, 512, 0]
    assert found["start_us"].tolist() == pytest.approx([0, 10.75, 20])


def damaged():
    """Yield a damage of each kind, and what its message has to say."""
    yield NSYS.replace("1007500,2500", "1007500,soon").encode(), r"\.x:5: Duration \(ns\) = 'soon'"
    yield NSYS.replace(",14,", ",a,").encode(), r"\.x:5: Strm = 'a'"
    yield NSYS.split("\n")[1].encode(), "the table has no rows"
    yield b"kernel,time_us\n1,2\n", "no timeline of a profiler"
    yield gzip.compress(b"{}", mtime=0)[:-5], "damaged gzip"
    yield b'{"traceEvents": [', "damaged JSON"
    yield b'{"traceEvents": []}', "without a kernel of a GPU"
    yield (
        json.dumps({"traceEvents": [{"cat": "kernel", "ts": "now"}]}).encode(),
        "ts is not a number",
    )


@pytest.mark.parametrize(("content", "said"), list(damaged()), ids=range(8))
def test_damaged_timelines_name_the_place(tmp_path, content, said):
    path = tmp_path / "file.x"
    path.write_bytes(content)
    with pytest.raises(ws.InputError, match=said):
        ws.validation.reference.read_timeline(path)
