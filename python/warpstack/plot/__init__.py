"""Pictures of results. Functions take ``ax=None`` and return the `Axes`; those with panels a `Figure`."""

from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks
from warpstack.plot.stack_distances import stack_distances
from warpstack.plot.validation import errors, scatter

__all__ = ["cpi_stack", "cpi_stacks", "errors", "scatter", "stack_distances"]
