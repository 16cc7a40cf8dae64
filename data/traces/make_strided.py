#!/usr/bin/env python3
"""Write the strided kernel of MDM's Listing 1 as an Accel-Sim trace of tracer version 4.

    python data/traces/make_strided.py data/traces/strided

makes the application in ``data/traces/strided``: kernel 1 with a grid stride of 1, kernel 2 with
32. Needs nothing but Python, so that the trace does not depend on the package that reads it.
"""

import argparse
import lzma
from pathlib import Path

WARP_SIZE = 32
HEADER = """\
-kernel name = {name}
-kernel id = {launch}
-grid dim = ({blocks},1,1)
-block dim = ({threads},1,1)
-shmem = 0
-nregs = 32
-binary version = 61
-cuda stream id = 0
-shmem base_addr = 0x00007f6000000000
-local mem base_addr = 0x00007f6200000000
-nvbit version = 1.5.5
-accelsim tracer version = 4
-enable lineinfo = 0

#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width \
[adrrescompress?] [mem_addresses]

"""


def warp_lines(stride: int, iterations: int, base: int, first_thread: int, warp: int, threads: int):
    """Yield the instruction lines of one warp whose first thread has this number in the launch."""
    full = "ffffffff"
    yield f"0000 {full} 1 R1 MOV 0 0"
    yield f"0010 {full} 1 R0 S2R 0 0"
    yield f"0020 {full} 1 R2 IMAD 2 R0 R1 0"
    for i in range(iterations):
        load = base + 4 * (stride * first_thread + i)
        store = 4 * (i * threads + WARP_SIZE * warp) % 32768
        yield f"0030 {full} 1 R6 IADD3 2 R2 R1 0"
        yield f"0040 {full} 1 R4 LDG.E 1 R6 4 1 {load:#x} {4 * stride}"
        yield f"0050 {full} 1 R5 FMUL 2 R4 R4 0"
        yield f"0060 {full} 0 STS 2 R8 R5 4 1 {store:#x} 4"
        yield f"0070 {full} 1 R2 IADD3 2 R2 R1 0"
        yield f"0080 {full} 0 ISETP.NE.AND 1 R2 0"
        yield f"0090 {full} 0 BRA 0 0"
    yield f"00a0 {full} 0 EXIT 0 0"


def kernel_text(
    launch: int, stride: int, iterations: int, blocks: int, warps: int, base: int
) -> str:
    """Return the trace of one launch."""
    threads = warps * WARP_SIZE
    function = f"strided_gs{stride}"
    parts = [
        HEADER.format(
            name=f"_Z{len(function)}{function}Pfi", launch=launch, blocks=blocks, threads=threads
        )
    ]
    for block in range(blocks):
        parts.append(f"#BEGIN_TB\n\nthread block = {block},0,0\n")
        for warp in range(warps):
            first_thread = block * threads + warp * WARP_SIZE
            lines = [
                f"{line} "
                for line in warp_lines(stride, iterations, base, first_thread, warp, threads)
            ]
            parts.append(f"\nwarp = {warp}\ninsts = {len(lines)}\n" + "\n".join(lines) + "\n")
        parts.append("\n#END_TB\n\n")
    return "".join(parts)


def main() -> None:
    """Write the application."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strides", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=448)
    parser.add_argument("--warps", type=int, default=8, help="per block")
    parser.add_argument("--plain", action="store_true", help="do not compress")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    names = []
    for launch, stride in enumerate(arguments.strides, start=1):
        base = 0x7F00_0000_0000 + (launch - 1) * 0x1000_0000  # an input array for each launch
        text = kernel_text(
            launch, stride, arguments.iterations, arguments.blocks, arguments.warps, base
        ).encode()
        names.append(f"kernel-{launch}.traceg")
        if arguments.plain:
            (arguments.folder / names[-1]).write_bytes(text)
        else:
            packed = lzma.compress(text, preset=9 | lzma.PRESET_EXTREME)
            (arguments.folder / f"{names[-1]}.xz").write_bytes(packed)
    (arguments.folder / "kernelslist.g").write_text("\n".join(names) + "\n")


if __name__ == "__main__":
    main()
