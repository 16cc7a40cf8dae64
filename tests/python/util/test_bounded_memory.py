"""A trace much larger than the memory limit is predicted within bounds, and to the same result."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads the peak memory from /proc"
)

LIMIT_MIB = 8
#: What the interpreter, the libraries and the metadata of 3000 blocks may take beyond the limit.
SLACK_MIB = 44

PREDICT = """
import json, re, sys
from pathlib import Path
import warpstack as ws
def peak_mib():  # of this program alone; getrusage would count the process it was forked from
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
from warpstack.models.prediction import predicted_rows
from warpstack.models.reasons.resources import changed_gpus
gpu, _, change = sys.argv[3].partition(":")
gpu = ws.gpu(gpu)
gpu = changed_gpus(gpu).get(change, gpu)
ws.predict(ws.patterns.stream(blocks=4), gpu)  # loads what a prediction loads
import warpstack.traces.io.accelsim, lzma  # and what reading does
before = peak_mib()
app = ws.load(sys.argv[1], memory_limit_mib=float(sys.argv[2]))
rows = predicted_rows(app, gpu, ["mdm"], ws.Options(), reasons=change == "reasons")
cycles = [row["cycles"] for row in rows]
peak = peak_mib()
kernel = app.kernels[0]
print(json.dumps([kernel.nbytes / 2**20, kernel.in_file, peak - before, cycles]))
"""


def predict(path, limit_mib, gpu):
    command = [sys.executable, "-c", PREDICT, str(path), str(limit_mib), gpu]
    return json.loads(subprocess.check_output(command, text=True))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Return a trace whose columns take over 80 MiB, of blocks that differ."""
    return write(tmp_path_factory.mktemp("large"), lambda block, i: 32 * (block * i % 3001))


def write(folder, offset):
    """Write a trace of 3000 blocks; `offset` moves the addresses of a block's load."""
    path = folder / "kernel-1.traceg"
    warp = ["0000 ffffffff 1 R1 MOV 0 0 "] * 300
    head = (
        "-kernel name = _Z5largePf\n-kernel id = 1\n-grid dim = (3000,1,1)\n-block dim = (128,1,1)\n"
        "-shmem = 0\n-nregs = 32\n-binary version = 61\n-cuda stream id = 0\n"
        "-accelsim tracer version = 4\n-enable lineinfo = 0\n\n"
    )
    with path.open("w") as file:
        file.write(head)
        for block in range(3000):
            file.write(f"#BEGIN_TB\n\nthread block = {block},0,0\n\n")
            for number in range(4):
                base = 0x7F0000000000 + (block * 4 + number) * 65536
                loads = [
                    f"0010 ffffffff 1 R4 LDG.E 1 R2 4 1 {base + 4096 * i + offset(block, i):#x} 128 "
                    for i in range(20)
                ]
                lines = [*warp, *loads, "0020 ffffffff 0 EXIT 0 0 "]
                file.write(f"warp = {number}\ninsts = {len(lines)}\n" + "\n".join(lines) + "\n\n")
            file.write("#END_TB\n\n")
    return path


# The second has 114 SMs with 64 resident warps each, which read their divergent loads in turn.
@pytest.mark.slow
@pytest.mark.parametrize("gpu", ["pascal-mdm", "h100-pcie"])
def test_peak_memory_stays_near_the_limit(large, gpu):
    size, in_file, growth, cycles = predict(large, LIMIT_MIB, gpu)
    assert size > 10 * LIMIT_MIB
    assert in_file
    assert growth < LIMIT_MIB + SLACK_MIB
    size_in_memory, in_file, growth_in_memory, same_cycles = predict(large, 4096, gpu)
    assert size_in_memory == size
    assert not in_file
    assert growth_in_memory > LIMIT_MIB + SLACK_MIB  # the measurement does see the columns
    assert cycles == same_cycles


@pytest.mark.slow
def test_reasons_take_what_larger_caches_take(large):
    """Caches twice as large are simulated for a reason, one after the other: no more is kept."""
    with_reasons, *larger = (
        predict(large, LIMIT_MIB, f"h100-pcie:{what}")[2]
        for what in ("reasons", "2 x L1 size", "2 x L2 size")
    )
    # Beside that the allocator keeps some of what the caches before have freed.
    assert with_reasons < max(larger) + 24


@pytest.mark.slow
def test_blocks_that_repeat_need_no_file(tmp_path):
    path = write(tmp_path, lambda block, i: 0)
    size, in_file, growth, _ = predict(path, LIMIT_MIB, "pascal-mdm")
    assert size > 10 * LIMIT_MIB
    assert not in_file
    assert growth < LIMIT_MIB + SLACK_MIB


def test_usable_memory_is_the_least_of_the_bounds(monkeypatch):
    """The machine has some memory; a limit of the process of 1 GiB is less."""
    import resource

    from warpstack._util import trace_budget

    whole = trace_budget.usable_memory_bytes()
    machine = trace_budget.os.sysconf("SC_PAGE_SIZE") * trace_budget.os.sysconf("SC_PHYS_PAGES")
    assert 0 < whole <= machine
    limits = {resource.RLIMIT_AS: (2**30, 2**30), resource.RLIMIT_DATA: (2**31, 2**31)}
    monkeypatch.setattr(trace_budget.resource, "getrlimit", lambda kind: limits[kind])
    assert trace_budget.usable_memory_bytes() == min(whole, 2**30)


@pytest.mark.parametrize(("usable_mib", "limit_mib"), [(65536, 512), (2048, 512), (1024, 256)])
def test_default_limit_is_small_on_any_machine(monkeypatch, usable_mib, limit_mib):
    """It is 512 MiB, or a quarter of what the process may use."""
    from warpstack._util import trace_budget

    monkeypatch.setattr(trace_budget, "usable_memory_bytes", lambda: usable_mib * 2**20)
    monkeypatch.setattr(trace_budget, "make_budget", lambda limit_bytes: limit_bytes)
    assert trace_budget.default_budget() == limit_mib * 2**20
