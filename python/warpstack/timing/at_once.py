"""Kernels that are simulated on several threads, each with an L2 of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from warpstack._util.progress import Progress, say_which
from warpstack.traces.trace import KernelTrace

__all__ = ["SharedProgress", "run_kernels"]

_Result = TypeVar("_Result", covariant=True)


class _Simulator(Protocol[_Result]):
    """A simulated GPU."""

    @property
    def run(self) -> Callable[..., _Result]: ...
    def flush_l2(self) -> None: ...
    def _with_own_l2(self) -> Any: ...


class SharedProgress:
    """Progress that several threads report, each about what it does; it ends them when it is stopped.

    Parameters
    ----------
    bar
        What shows it.
    stopped
        Set to end them; None: an event of its own.
    """

    def __init__(self, bar: Progress, stopped: threading.Event | None = None) -> None:
        self._bar = bar
        self._lock = threading.Lock()
        self.stopped = threading.Event() if stopped is None else stopped

    def update(self, n: float | None = 1, /) -> bool | None:
        """Advance by `n` units, or end the thread."""
        if self.stopped.is_set():
            raise CancelledError
        with self._lock:
            return self._bar.update(n)

    def set_description(self, desc: str | None = None, refresh: bool | None = True) -> None:
        """Say what is being done."""
        with self._lock:
            self._bar.set_description(desc, refresh)


def run_kernels(
    simulator: _Simulator[_Result],
    kernels: Sequence[KernelTrace],
    flush_l2: bool,
    num_threads: int,
    bar: Progress,
    how: dict[str, Any] | None = None,
) -> list[_Result]:
    """Simulate the kernels of an application in order, or at once where each begins with an empty L2.

    Parameters
    ----------
    simulator
        The GPU.
    kernels
        The kernels.
    flush_l2
        Empty L2 before each.
    num_threads
        How many to simulate at once at most.
    bar
        It is told of issued instructions.
    how
        Other arguments of `Simulator.run`.
    """
    how = how or {}
    num_threads = min(num_threads, len(kernels)) if flush_l2 else 1
    if num_threads > 1:
        return _simulate_at_once(simulator, kernels, num_threads, bar, how)
    results = []
    for number, one in enumerate(kernels, 1):
        say_which(bar, "simulating", number, len(kernels))
        if flush_l2:
            simulator.flush_l2()
        results.append(simulator.run(one, progress=bar, **how))
    return results


def _simulate_at_once(
    first: _Simulator[_Result],
    kernels: Sequence[KernelTrace],
    num_threads: int,
    bar: Progress,
    how: dict[str, Any],
) -> list[_Result]:
    """Simulate launches with an empty L2 each, on several threads with a simulator each.

    The first error in the order of the launches ends them all, as it would on one thread.
    """
    shared = SharedProgress(bar)
    free: SimpleQueue[_Simulator[_Result]] = SimpleQueue()
    free.put(first)
    for _ in range(num_threads - 1):
        free.put(first._with_own_l2())

    def run(kernel: KernelTrace) -> _Result:
        simulator = free.get()
        try:
            simulator.flush_l2()
            return simulator.run(kernel, progress=shared, **how)
        finally:
            free.put(simulator)

    # Without `with`, whose end waits for all threads: those that run end when they next report.
    pool = ThreadPoolExecutor(num_threads, "warpstack-simulate")
    try:
        futures = [pool.submit(run, kernel) for kernel in kernels]
        return [future.result() for future in futures]
    finally:
        shared.stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
