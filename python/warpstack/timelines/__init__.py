"""The time line of a program on a GPU: Nsight Systems without one."""

from warpstack.timelines.result import Timeline, TimelineComparison, timeline

__all__ = ["Timeline", "TimelineComparison", "timeline"]
