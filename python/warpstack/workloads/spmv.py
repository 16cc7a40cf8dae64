"""Product of a sparse matrix and a vector (Parboil)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpstack.workloads import Arrays, Parameters, Session, Workload

_BLOCK = 192


def make_inputs(
    parameters: Parameters, generator: np.random.Generator
) -> dict[str, npt.NDArray[Any]]:
    """Make a matrix as from a mesh: mostly near neighbours, some anywhere, rows of uneven length."""
    rows, mean = parameters["rows"], parameters["entries_per_row"]
    lengths = generator.integers(1 + mean // 2, 2 + mean + mean // 2, rows)
    row = np.repeat(np.arange(rows), lengths)
    near = row + generator.normal(0, 2 * rows**0.5, len(row)).astype(np.int64)
    anywhere = generator.integers(0, rows, len(row))
    column = np.where(generator.random(len(row)) < 0.75, near, anywhere) % rows
    order = np.lexsort((column, row))
    first_entry = np.zeros(rows + 1, np.int32)
    np.cumsum(lengths, out=first_entry[1:])
    return {
        "first_entry": first_entry,
        "columns": column[order].astype(np.int32),
        "values": generator.uniform(-1, 1, len(row)).astype(np.float32),
        "x": generator.uniform(-1, 1, rows).astype(np.float32),
    }


def run(session: Session, parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Launch the kernel once."""
    rows = parameters["rows"]
    y = session.zeros(rows, np.float32)
    session.launch(
        "multiply_rows",
        -(-rows // _BLOCK),
        _BLOCK,
        np.int32(rows),
        session.array(inputs["first_entry"]),
        session.array(inputs["columns"]),
        session.array(inputs["values"]),
        session.array(inputs["x"]),
        y,
    )
    return {"y": np.asarray(y)}


def reference(parameters: Parameters, inputs: Arrays) -> dict[str, npt.NDArray[Any]]:
    """Multiply in double precision with SciPy."""
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(
        (inputs["values"].astype(np.float64), inputs["columns"], inputs["first_entry"]),
        shape=(parameters["rows"], parameters["rows"]),
    )
    return {"y": (matrix @ inputs["x"].astype(np.float64)).astype(np.float32)}


workload = Workload(
    name="spmv",
    title="Sparse matrix-vector product",
    abbreviation="SPMV",
    suite="Parboil",
    memory_divergent=True,
    sizes={
        "small": {"rows": 40960, "entries_per_row": 24},
        "paper": {"rows": 146_689, "entries_per_row": 24},
    },
    make_inputs=make_inputs,
    run=run,
    reference=reference,
    # Rows have at most 37 terms of magnitude below 1: 37 roundings of partial sums below 37.
    tolerances={"y": (0.0, 1e-4)},
    description=(
        "y = A x for a matrix of the shape of Parboil's large input, Dubcova3, a discretized "
        "two-dimensional field. Memory-divergent: the rows, one per thread, are stored one after the "
        "other, so the threads of a warp read entries of different lines, and elements of x wherever "
        "the columns point. Parboil's own version stores entry k of all rows side by side, which "
        "leaves the reads of x scattered."
    ),
)
