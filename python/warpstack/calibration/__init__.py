"""GPU descriptions from measurements: the program that measures, and what its output says.

``calibrate.cu`` is a CUDA program of one file that measures latencies, rates, bandwidths, capacities
and the times of launches on a card. `calibrate` makes a `Gpu` of what it prints.
"""

from warpstack.calibration.card import Calibration, calibrate

__all__ = ["Calibration", "calibrate"]
