"""Pictures of results. Functions take ``ax=None`` and return the `Axes`; those with panels a `Figure`."""

from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks

__all__ = ["cpi_stack", "cpi_stacks"]
