"""Logs of NVBit's mem_trace, against a plain reading of their lines."""

from __future__ import annotations

import lzma
import random
import re
from collections import defaultdict

import numpy as np
import pytest

import warpstack as ws

WIDTH = {"LDG.E": 4, "LDG.E.64": 8, "STG.E.128": 16, "LDG.E.U8": 1}
CONTEXT = "MEMTRACE: CTX 0x000055d0c0de0000 - "


def launch(number: int, name: str = "k<int>(float*, char const*)", blocks: int = 6) -> str:
    return (
        f"{CONTEXT}LAUNCH - Kernel pc 0x00007f5a00000100 - Kernel name {name} - grid launch id {number} - "
        f"grid size {blocks},1,1 - block size 96,1,1 - nregs 16 - shmem 0 - cuda stream id 7\n"
    )


def access(number: int, block: int, slot: int, opcode: str, addresses: list[int]) -> str:
    lanes = "".join(f"0x{address:016x} " for address in addresses)
    return (
        f"{CONTEXT}grid_launch_id {number} - CTA {block},0,0 - warp {slot} - {opcode} - {lanes}\n"
    )


def random_log(chance: random.Random, launches: int = 3) -> str:
    """Return a log whose lines of one launch come in any order of warps, some after the next launch."""
    lines: list[str] = ["a line of the program\n"]
    for number in range(launches):
        lines.append(launch(number))
        some = []
        for _ in range(chance.randrange(20, 60)):
            start = 0x7F5A00000000 + 16 * chance.randrange(1 << 12)
            step = chance.choice((0, 4, 16, 64))
            active = chance.choice((32, 32, 5))
            opcode = chance.choice(list(WIDTH))
            lanes = [start + i * step if i < active else 0 for i in range(32)]
            some.append(access(number, chance.randrange(6), 3 * chance.randrange(3), opcode, lanes))
        late = some[-2:] if number + 1 < launches else []
        lines += some[: len(some) - len(late)]
        if late:
            lines += [launch(number + 1), *late]
    seen = set()  # a launch is announced once
    return "".join(
        line for line in lines if "LAUNCH" not in line or not (line in seen or seen.add(line))
    )


def reference(log: str) -> dict:
    """Return the sectors and masks of each launch, thread block and slot."""
    found: dict = defaultdict(list)
    pattern = r"grid_launch_id (\d+) - CTA (\d+),0,0 - warp (\d+) - (\S+) - (.*)"
    for line in log.splitlines():
        if match := re.search(pattern, line):
            addresses = [int(text, 16) for text in match[5].split()]
            width = WIDTH[match[4]]
            sectors: list[int] = []
            for address in addresses:
                for sector in range(address // 32, (address + width - 1) // 32 + 1):
                    if address and sector not in sectors:
                        sectors.append(sector)
            mask = sum(1 << i for i, address in enumerate(addresses) if address)
            found[int(match[1]), int(match[2]), int(match[3])].append((match[4], mask, sectors))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_random_logs(tmp_path, seed):
    log = random_log(random.Random(seed))
    path = tmp_path / "mem_trace.log"
    path.write_text(log)
    with pytest.warns(ws.errors.TraceWarning, match="memory instructions only"):
        app = ws.load(path)
    expected = reference(log)
    assert [kernel.launch_id for kernel in app] == [1, 2, 3]
    for number, kernel in enumerate(app):
        core = kernel._core
        opcodes = core.instruction_table()["opcode"]
        batch = core.read_batch(0, core.num_traced_blocks)
        warps = sorted(key for key in expected if key[0] == number)
        assert batch["block"].tolist() == [block for _, block, _ in warps]
        place = np.zeros(3, int)
        for w, key in enumerate(warps):
            for opcode, mask, sectors in expected[key]:
                i, memory, sector = place
                assert opcodes[batch["instruction"][i]] == opcode
                assert batch["active_mask"][i] == mask
                count = batch["memory_count"][memory]
                assert batch["sector"][sector : sector + count].tolist() == sectors
                place += (1, 1, count)
            assert batch["instructions"][w] == len(expected[key])


def test_caches_and_reuse(tmp_path):
    lanes = [0x7F5A00000000 + 4 * i for i in range(32)]
    log = launch(0, blocks=1) + 3 * access(0, 0, 0, "LDG.E", lanes)
    (tmp_path / "log.txt").write_text(log)
    with pytest.warns(
        ws.errors.TraceWarning, match="times are those of kernels without arithmetic"
    ):
        app = ws.load(tmp_path / "log.txt")
    table = ws.simulate_caches(app, "v100-sxm2")
    assert table is not None
    assert ws.memory.reuse_profile(app[0], "v100-sxm2") is not None
    assert app.kernels[0].source == "mem_trace"


def test_compressed_and_chosen(tmp_path):
    path = tmp_path / "log.txt.xz"
    path.write_bytes(lzma.compress(random_log(random.Random(1)).encode()))
    with pytest.warns(ws.errors.TraceWarning):
        assert [kernel.launch_id for kernel in ws.load(path, kernels=2)] == [2]


def test_launches_without_access_are_counted(tmp_path):
    lanes = [0x7F5A00000000] * 32
    (tmp_path / "log.txt").write_text(launch(0) + launch(1) + access(1, 0, 0, "LDG.E", lanes))
    with pytest.warns(
        ws.errors.TraceWarning, match="1 launches without a memory access are left out"
    ):
        (kernel,) = ws.load(tmp_path / "log.txt")
    assert kernel.launch_id == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("CTA 0", "CTA 9"), r"log\.txt:2: CTA 9,0,0 is outside the grid of \(6,1,1\)"),
        (
            ("CTA 0,0,0", "CTA 0,0"),
            r'log\.txt:2: CTA "0,0" is not of the form x,y,z; the log is cut',
        ),
        (("warp 0", "warp x"), r'log\.txt:2: warp "x" is not a number; the log is cut or edited'),
        (("LDG.E", "LDG?"), r'log\.txt:2: opcode "LDG\?" is not an opcode'),
        (
            ("LDG.E - 0x00007f5a", "LDG.E - 7f5a"),
            r'log\.txt:2: address "7f5a.*" is not 0x and 16 hexadecimal',
        ),
        (("grid size 6", "grid size 6,1"), r'log\.txt:1: grid size "6,1,1,1" is not'),
        (
            (" - block size 96,1,1", ""),
            r"log\.txt:1: the launch has no block size; the log is cut, or",
        ),
        (("block size 96", "block size 9999"), r"log\.txt:1: .*block"),
        (
            ("grid launch id 0", "grid launch id 5"),
            r"log\.txt:2: no line LAUNCH with grid launch id 0",
        ),
        (("CTX 0x000055d0c0de0000 - grid", "CTX 0x0 - gri"), r"log\.txt:2: the line .* is neither"),
    ],
)
def test_errors(tmp_path, change, message):
    path = tmp_path / "log.txt"
    text = launch(0) + access(0, 0, 0, "LDG.E", [0x7F5A00000000] * 32)
    path.write_text(text.replace(*change, 1))
    with pytest.raises(ws.InputError, match=message) as caught:
        ws.load(path)
    assert "\n" not in str(caught.value)
