"""Traces of which a sample of the thread blocks was recorded."""

from __future__ import annotations

from python_reference import block_sample as reference
from warpstack import _core
from warpstack._util.trace_budget import default_budget
from warpstack.traces.trace import KernelTrace


def sample_of(trace: KernelTrace, sampled: int) -> KernelTrace:
    """Return the trace with a sample of its blocks, as tracing one leaves it."""
    core = trace._core
    builder = _core.TraceBuilder(core.header, default_budget())
    table = core.instruction_table()
    for row in range(len(table["pc"])):
        builder.intern_row({name: values[row] for name, values in table.items()})
    for block in reference.sampled_blocks(trace.num_blocks, sampled):
        builder.add_batch(core.read_batch(block, block + 1))
    return KernelTrace(builder.finish())
