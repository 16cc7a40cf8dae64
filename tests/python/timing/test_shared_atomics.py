"""Atomics of shared memory: lanes of one word take turns, by hand."""

import numpy as np
import pytest

import warpstack as ws
from machines import plain_pascal


def launch(operation, address):
    """Return the trace of a warp whose lanes do an atomic at ``tile[address]``."""
    module = ws.cuda.compile(f"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 data) {{
  .reg .b32 %r<8>; .reg .b64 %l<4>;
  .shared .align 4 .b8 tile[128];
  ld.param.u64 %l0, [data]; mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r6, 0;
  mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], %r6; bar.sync 0;
  mul.wide.u32 %l1, %r0, 4; add.u64 %l1, %l1, %l0;
  {address} mad.lo.u32 %r4, %r3, 4, %r1; bar.sync 0;
  {operation}
  ld.shared.u32 %r5, [%r2];
  st.global.u32 [%l1], %r5; ret;
}}
""")
    out = ws.cuda.empty(32, np.uint32)
    return module.kernel("one").launch(1, 32, out)


def passes(trace):
    """Return the passes through shared memory of the trace's atomics."""
    gpu = plain_pascal()
    table = ws.simulate_caches(trace, gpu).per_pc
    return int(table[table["opcode"].str.startswith(("atom", "red"))]["shared_wavefronts"].sum())


ONE_WORD, FOUR_OF_A_WORD, ALL = "mov.u32 %r3, 5;", "and.b32 %r3, %r0, 7;", "mov.u32 %r3, %r0;"


@pytest.mark.parametrize(
    ("operation", "address", "expected"),
    [
        ("atom.shared.add.u32 %r5, [%r4], %r0;", ONE_WORD, 32),
        ("atom.shared.add.u32 %r5, [%r4], %r0;", FOUR_OF_A_WORD, 4),
        ("atom.shared.add.u32 %r5, [%r4], %r0;", ALL, 1),
        ("red.shared.max.u32 [%r4], %r0;", ONE_WORD, 32),
        # ptxas makes ATOMS.POPC.INC of it, which adds the number of lanes at once ...
        ("atom.shared.add.u32 %r5, [%r4], 1;", ONE_WORD, 1),
        ("red.shared.add.u32 [%r4], 1;", ONE_WORD, 1),
        # ... unless somebody reads the result, or more than 1 is added.
        ("atom.shared.add.u32 %r7, [%r4], 1; xor.b32 %r0, %r7, %r0;", ALL, 1),
        ("atom.shared.add.u32 %r5, [%r4], 2;", ONE_WORD, 32),
    ],
)
def test_lanes_of_a_word_take_turns(operation, address, expected):
    if "%r7" not in operation:
        operation = operation.replace("%r5", "%r7")
    assert passes(launch(operation, address)) == expected


def test_turns_take_time():
    """31 turns more: the load behind them comes 31 cycles later."""
    gpu = plain_pascal(num_sms=1, issue_width=1)
    apart = launch("atom.shared.add.u32 %r7, [%r4], %r0;", ALL)
    together = launch("atom.shared.add.u32 %r7, [%r4], %r0;", ONE_WORD)
    assert ws.simulate(together, gpu).cycles - ws.simulate(apart, gpu).cycles == 31
    slow, fast = (
        ws.predict(k, gpu, models=["closed_network"])["cycles"].iloc[0] for k in (together, apart)
    )
    assert slow > fast
