"""Random kernels and GPUs for comparisons with the reference implementations in Python."""

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

import warpstack as ws
from warpstack._util.trace_budget import default_budget

ARITHMETIC = [
    "IADD3",
    "FFMA",
    "DFMA",
    "MUFU.RCP",
    "HMMA.16816.F32",
    "IMAD.WIDE",
    "MOV",
    "BRA",
    "BAR.SYNC",
]
MEMORY = [
    "LDG.E",
    "LDG.E.64",
    "LDG.E.128",
    "LDG.E.U8",
    "LDG.E.STRONG.GPU",
    "LDG.E.EF",
    "LDG.E.CONSTANT",
    "STG.E.EF",
    "STG.E",
    "STG.E.U8",
    "STG.E.128",
    "LDL",
    "STL.64",
    "ATOMG.E.ADD",
    "RED.E.ADD",
    "LDS",
    "LDS.128",
    "STS.U16",
    "LDGSTS.E.BYPASS.128",
]
#: What PTX does with groups of asynchronous copies.
COPY_GROUPS = [
    "cp.async.commit_group",
    "cp.async.wait_group.0",
    "cp.async.wait_group.1",
    "cp.async.wait_group.3",
    "cp.async.wait_all",
    "wgmma.commit_group.sync.aligned",
    "wgmma.wait_group.sync.aligned.0",
    "wgmma.wait_group.sync.aligned.2",
]
#: What PTX does with launches that overlap.
GRID_STEPS = ["griddepcontrol.launch_dependents", "griddepcontrol.wait"]
#: A product that goes on without its warp, where that waits for products.
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
#: What completes something at an mbarrier, without its address.
COMPLETIONS = ["mbarrier.arrive", "cp.async.mbarrier.arrive", "LDGSTS.E.BYPASS.128"]
registers = st.integers(0, 12)
#: Instruction caches of a few lines: code of kernels(spread_code=True) does not fit.
CODES = st.fixed_dictionaries(
    {
        "instruction_cache_kib": st.sampled_from([0.125, 0.25, 0.5]),
        "instruction_preload_kib": st.sampled_from([0, 0.125, 0.25]),
        "instruction_fetch_cycles": st.sampled_from([1, 13, 120]),
    }
)


@st.composite
def kernels(
    draw,
    max_blocks=6,
    max_threads=80,
    max_instructions=14,
    memory=True,
    arithmetic=tuple(ARITHMETIC),
    mbarriers=False,
    spread_code=False,
):
    """Draw a kernel: arithmetic and accesses of every space, with idle lanes and warps, and ways back."""
    blocks = draw(st.integers(1, max_blocks))
    threads = draw(st.integers(1, max_threads))
    k = ws.patterns.KernelBuilder(
        "random",
        grid=blocks,
        block=threads,
        registers_per_thread=draw(st.integers(0, 64)),
        shared_memory_bytes=draw(st.sampled_from([0, 0, 1000, 9000])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # A small footprint makes lines meet again, a large one evicts them.
    footprint = draw(st.sampled_from([256, 4096, 1 << 16]))
    shape = k.thread.shape
    warps, made, passed = -(-threads // 32), [0, 0], [0, 0]
    declared = []
    for _ in range(draw(st.integers(1, max_instructions))):
        if mbarriers and draw(st.booleans()):
            # A wait waits for what all warps have completed before: it has an end.
            barrier = draw(st.integers(0, 1))
            if draw(st.booleans()):
                count = draw(st.integers(0, made[barrier] - passed[barrier]))
                passed[barrier] += count
                k.emit(f"mbarrier.try_wait.barrier{barrier}.{count}")
                continue
            made[barrier] += warps
            opcode = draw(st.sampled_from(COMPLETIONS)) + f".barrier{barrier}"
            is_copy = opcode.startswith("LDGSTS")
            offsets = rng.integers(0, footprint // 16, shape) * 16
            k.emit(opcode, address=0x7000_0000 + offsets if is_copy else None)
            continue
        again = draw(st.sampled_from([None, None, None, *declared[-3:]]))
        opcode = (
            again.opcode
            if again
            else draw(st.sampled_from([*(MEMORY if memory else ()), *arithmetic]))
        )
        writes = opcode not in (
            "BRA",
            "BAR.SYNC",
            "LDGDEPBAR",
            "DEPBAR.LE",
            *COPY_GROUPS,
            *GRID_STEPS,
        )
        dst = draw(registers) if writes and not again else ()
        is_memory = opcode in MEMORY
        if opcode.startswith(("ST", "RED", "LDGSTS")):
            dst = ()
        address = None
        if is_memory:
            width = ws._core.decode_opcode(opcode)["width"]
            pattern = draw(st.sampled_from(["random", "coalesced", "strided", "same"]))
            offsets = {
                "random": rng.integers(0, footprint // width, shape),
                "coalesced": k.thread % (footprint // width),
                "strided": k.thread * draw(st.integers(1, 40)) % (footprint // width),
                "same": np.zeros(shape, dtype=int),
            }[pattern]
            aligned = draw(st.booleans()) or opcode.startswith(("LDS", "STS"))
            address = 0x7000_0000 + offsets * width + (0 if aligned else draw(st.integers(0, 31)))
        where = rng.random(shape) < 0.7 if draw(st.booleans()) else None
        predicate = (
            rng.random(shape) < draw(st.sampled_from([0.05, 0.6])) if draw(st.booleans()) else None
        )
        if not again:
            pc = draw(st.integers(0, 9)) * 112 if spread_code else None
            sources = draw(st.lists(registers, max_size=3))
            again = k.instruction(opcode, dst=dst, src=sources, pc=pc)
            declared.append(again)
        k.issue(again, address=address, where=where, predicate=predicate)
    try:
        return k.build()
    except ws.InputError:  # no lane ever took part: there is nothing to trace
        reject()


def with_control(kernel, fields):
    """Return the kernel with other control fields; `fields`: a dictionary per row, or None for none."""
    builder = ws._core.TraceBuilder(kernel._core.header, default_budget())
    for number, row in enumerate(kernel.instructions.to_dict("records")):
        # Files and calls are texts here.
        for name in (*ws._core.CONTROL_FIELDS, "source_file", "inlined_at"):
            row.pop(name, None)
        builder.intern_row({**row, **(control_fields(**fields[number]) if fields else {})})
    builder.add_batch(kernel._core.read_batch(0, kernel._core.num_traced_blocks))
    return ws.traces.trace.KernelTrace(builder.finish())


def control_fields(**given):
    """Return all control fields of an instruction; those that are not given wait for nothing."""
    none = dict.fromkeys(("write_barrier", "read_barrier", "counted_barrier"), 7)
    rest = dict.fromkeys(("wait_mask", "reuse", "counted_most"), 0)
    return {"stall": 1, "yield": False, **none, **rest, **given}


def copying_kernels():
    """Draw kernels without control fields that wait for groups of copies and products."""
    groups = [COPY_GROUPS[0], COPY_GROUPS[0], *COPY_GROUPS, PRODUCT, PRODUCT]
    return kernels(arithmetic=(*ARITHMETIC, *groups), max_instructions=24)


def overlapping_kernels():
    """Draw kernels that let others start, and wait for others, where launches overlap."""
    return kernels(arithmetic=(*ARITHMETIC, *GRID_STEPS, *GRID_STEPS), max_blocks=4)


def waiting_kernels():
    """Draw kernels without control fields that wait at mbarriers, too."""
    groups = [*COPY_GROUPS, PRODUCT]
    return kernels(arithmetic=(*ARITHMETIC, *groups), max_instructions=24, mbarriers=True)


@st.composite
def controlled_kernels(draw):
    """Draw a kernel whose instructions have any control fields, with groups of copies."""
    kernel = draw(kernels(arithmetic=(*ARITHMETIC, "LDGDEPBAR", "LDGDEPBAR", "DEPBAR.LE")))
    barriers = st.sampled_from([7, 7, 0, 1, 2, 5])
    fields = [
        {
            "stall": draw(st.sampled_from([0, 1, 1, 2, 5, 15])),
            "yield": draw(st.booleans()),
            "write_barrier": draw(barriers),
            "read_barrier": draw(barriers),
            "wait_mask": draw(st.sampled_from([0, 0, 1, 2, 4, 33, 63])),
            "reuse": draw(st.integers(0, 15)),
            "counted_barrier": draw(st.sampled_from([0, 1, 2])) if opcode == "DEPBAR.LE" else 7,
            "counted_most": draw(st.integers(0, 2)) if opcode == "DEPBAR.LE" else 0,
        }
        for opcode in kernel.instructions["opcode"]
    ]
    return with_control(kernel, fields)


POLICIES = [
    "no_allocate",
    "fetch_on_write",
    "write_validate",
    "fetch_on_partial_write",
    "write_and_fetch",
]


@st.composite
def gpus(draw):
    """Draw a small GPU with caches of every policy."""
    line = draw(st.sampled_from([64, 128]))
    l2_line = draw(st.sampled_from([32, 64, 128, 256]))
    slices = draw(st.integers(1, 3))
    replacements = ["lru", "lru", "fifo", "plru"]
    indexings = ["modulo", "modulo", "xor", "ipoly", "scatter"]
    l1_replacement, l2_replacement = (draw(st.sampled_from(replacements)) for _ in range(2))
    # 33 ways have another search and another order than few ones.
    l1_ways = draw(st.sampled_from([1, 2, 4] if l1_replacement == "plru" else [1, 2, 3, 4, 33]))
    l2_ways = draw(st.sampled_from([1, 2, 4] if l2_replacement == "plru" else [1, 2, 3, 4, 20]))
    l1_sets = draw(st.integers(1, 5))
    adaptive = {}
    if draw(st.booleans()):
        keeps = "ways" if l1_replacement == "plru" else draw(st.sampled_from(["sets", "ways"]))
        unit = line * (l1_sets if keeps == "sets" else l1_ways) / 1024
        adaptive = {
            "adaptive_l1_keeps": keeps,
            "unified_l1_kib": 8 * unit,
            "shared_memory_carve_outs_kib": sorted(
                unit * n for n in draw(st.sets(st.integers(0, 7), min_size=1, max_size=3))
            ),
        }
    return ws.gpu("pascal-mdm").replace(
        **adaptive,
        l1_replacement=l1_replacement,
        l2_replacement=l2_replacement,
        l1_allocation=draw(st.sampled_from(["on_miss", "on_miss", "on_fill"])),
        l1_global_loads=draw(st.sampled_from(["cached", "cached", "bypassed"])),
        l1_set_index=draw(st.sampled_from(indexings)),
        l2_set_index=draw(st.sampled_from(indexings)),
        l2_slice_index=draw(st.sampled_from(indexings)),
        num_sms=draw(st.integers(1, 4)),
        blocks_per_sm=draw(st.integers(1, 3)),
        shared_memory_kib_per_sm=16,
        issue_width=draw(st.sampled_from([1, 2, 4])),
        l1_line_bytes=line,
        l1_sector_bytes=draw(st.sampled_from([32, line])),
        l1_ways=l1_ways,
        l1_size_kib=line * l1_ways * l1_sets / 1024,
        l1_write_policy=draw(st.sampled_from(["write_through", "write_back"])),
        l1_write_miss=draw(st.sampled_from(POLICIES)),
        l2_line_bytes=l2_line,
        l2_sector_bytes=draw(st.sampled_from([32, l2_line])),
        l2_ways=l2_ways,
        l2_slices=slices,
        l2_slice_interleave_bytes=256 * draw(st.integers(1, 2)),
        l2_size_kib=l2_line * l2_ways * slices * draw(st.integers(1, 7)) / 1024,
        l2_write_policy=draw(st.sampled_from(["write_through", "write_back"])),
        l2_write_miss=draw(st.sampled_from(POLICIES)),
    )
