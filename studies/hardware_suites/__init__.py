"""What studies/hardware.py needs of each set of measurements: rows, and programs that launch its kernels."""

from __future__ import annotations

from . import card_sweeps, course, h100, microbenchmarks, samples

#: The sets, in the order of the page, and who reads them.
SUITES = {
    "h100": h100.rows,
    "microbenchmarks": microbenchmarks.rows,
    "rodinia": microbenchmarks.rodinia_rows,
    "accelwattch": samples.rows,
    "pmpp": course.rows,
    "kpp": card_sweeps.rows,
}
