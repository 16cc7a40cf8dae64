"""The time line of a program on a GPU: Nsight Systems without one."""

from warpstack.timelines.measured import TimelineComparison
from warpstack.timelines.result import Timeline, timeline

__all__ = ["Timeline", "TimelineComparison", "timeline"]
