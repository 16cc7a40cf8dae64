"""GPUMech, Figure 12: errors of all models with greedy-then-oldest scheduling."""

from warpstack.figures.gpumech import common as gpumech

figure = gpumech.policy(
    "gpumech-fig12", 12, "gto", "Error of the CPI by kernel, greedy then oldest", (14.0, 65.3), None
)
