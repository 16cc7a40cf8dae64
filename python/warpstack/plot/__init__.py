"""Pictures of results. Functions take ``ax=None`` and return the `Axes`; those with panels a `Figure`."""

from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks
from warpstack.plot.frequency import dvfs
from warpstack.plot.roofline import roofline
from warpstack.plot.stack_distances import stack_distances
from warpstack.plot.validation import errors, scatter

__all__ = ["cpi_stack", "cpi_stacks", "dvfs", "errors", "roofline", "scatter", "stack_distances"]
