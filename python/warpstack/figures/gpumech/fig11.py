"""GPUMech, Figure 11: errors of all models with round-robin scheduling."""

from warpstack.figures.gpumech import common as gpumech

figure = gpumech.policy(
    "gpumech-fig11", 11, "lrr", "Error of the CPI by kernel, round robin", (13.2, 62.9), (75, 50)
)
