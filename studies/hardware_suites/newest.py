"""An RTX 5090 and an H200: what FlashGPU-Sim was validated with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .program import KERNELS, Bench, Launches, program
from .row import Row, Run, Setting, read, straight

#: MiB of the two launches that a longer one is extrapolated from.
MEBIBYTES = (32, 64)


@program(KERNELS / "vectors.cu", lambda blocks: MEBIBYTES[1] * 2**16 / 32 * 9)
def read_memory(bench: Bench, blocks: int) -> Launches:
    """Read an array once, by so many blocks of 1,024 threads."""
    given, out = bench.zeros(MEBIBYTES[1] * 2**18), bench.zeros(4096)
    for size in MEBIBYTES:
        yield bench.launch("read_all", blocks, 1024, given, out, size * 2**16)


def rows(reference: Path) -> list[Row]:
    """Return the rows of both cards."""
    return [_row(each) for each in read(reference / "hopper-blackwell.csv")]


def _row(each: dict[str, Any]) -> Row:
    kernel = each["kernel"]
    base = {
        **{"suite": "newest cards", "gpu": each["gpu"], "kernel": kernel, "kernel_index": "0"},
        **{"application": each["shape"], "metric": "duration_us", "measured": each["measured"]},
        **{"unit": "us", "reason": ""},
    }
    read_rate = re.fullmatch(r"bytes/cycle at (\d+) MHz", each["metric"])
    size = re.fullmatch(r"(\d+) GiB", each["shape"])
    blocks = re.search(r"(\d+) blocks of 1024 threads", kernel)
    if "read" in kernel and read_rate and size and blocks:
        ghz = int(read_rate[1]) / 1000
        base |= {
            "measured": int(size[1]) * 2**30 / each["measured"] / ghz / 1000,
            "settings": (Setting("cold", ghz),),
            "profiler": "events",
            "run": Run.of("read_memory", blocks=int(blocks[1])),
            "launches": (0, 1),
            "weights": straight(*MEBIBYTES, int(size[1]) * 1024),
        }
    elif "vector addition" in kernel:
        # The time on the card is in cycles of the clock that Nsight Compute held.
        base |= {
            **{"metric": "elapsed_cycles", "unit": "cycles", "profiler": each["profiler"]},
            "settings": (Setting("cold"),),
            "run": Run.of("vector_add", size=int(each["shape"].split()[0])),
        }
    elif "IMAD" in kernel:
        base["reason"] = "what the rate of instruction fetches was read from"
    else:
        base["reason"] = "no kernel"
    return Row(**base)
