"""What studies/hardware.py needs of each set of measurements: rows, and programs that launch its kernels."""

from __future__ import annotations

from . import (
    caches,
    card_sweeps,
    course,
    h100,
    microbenchmarks,
    newest,
    samples,
    steps,
    triton_kernels,
)

#: The sets, in the order of the page, and who reads them.
SUITES = {
    "h100": h100.rows,
    "microbenchmarks": microbenchmarks.rows,
    "rodinia": microbenchmarks.rodinia_rows,
    "accelwattch": samples.rows,
    "pmpp": course.rows,
    "kpp": card_sweeps.rows,
    "strides": caches.stride_rows,
    "streams": caches.stream_rows,
    "reductions": steps.reduction_rows,
    "vectors": steps.vector_rows,
    "sgemm": steps.product_rows,
    "triton": triton_kernels.rows,
    "newest": newest.rows,
}
