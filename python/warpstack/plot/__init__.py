"""Pictures of results. Functions take ``ax=None`` and return the `Axes`; those with panels a `Figure`."""

from warpstack.plot.cpi_stack import cpi_stack, cpi_stacks
from warpstack.plot.design_space import (
    axis_stacks,
    bottlenecks,
    curves,
    heat_map,
    pareto,
    sensitivity,
    speedup,
)
from warpstack.plot.frequency import dvfs
from warpstack.plot.operations import operations
from warpstack.plot.roofline import roofline
from warpstack.plot.sliders import explore
from warpstack.plot.stack_distances import stack_distances
from warpstack.plot.time_stack import time_stack
from warpstack.plot.timeline import timeline
from warpstack.plot.validation import agreement, errors, scatter

__all__ = [
    "agreement",
    "axis_stacks",
    "bottlenecks",
    "cpi_stack",
    "cpi_stacks",
    "curves",
    "dvfs",
    "errors",
    "explore",
    "heat_map",
    "operations",
    "pareto",
    "roofline",
    "scatter",
    "sensitivity",
    "speedup",
    "stack_distances",
    "time_stack",
    "timeline",
]
