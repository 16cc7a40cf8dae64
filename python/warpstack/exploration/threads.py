"""Numbered work of a sweep on threads, which an error or Ctrl-C ends at once."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["MOST_WORKERS", "on_threads"]

Result = TypeVar("Result")

MOST_WORKERS = 255


def on_threads(
    numbers: Sequence[int],
    work: Callable[[int, int], Result],
    workers: int | None,
    stop: threading.Event,
) -> Generator[tuple[int, Result], None, None]:
    """Yield each number and its result as they come.

    Parameters
    ----------
    numbers
        What is to be done.
    work
        Does it, given a number and how many threads it may use itself.
    workers
        Threads in all; None: as many as the machine runs at once.
    stop
        Set at the end, early or not: what still runs then gives up.
    """
    available = min(workers or os.cpu_count() or 1, MOST_WORKERS)
    threads = min(available, len(numbers))
    # Few tasks leave threads for the cores of the stages.
    num_threads = max(available // max(threads, 1), 1)
    if threads <= 1:
        for number in numbers:
            yield number, work(number, num_threads)
        return
    # The main thread waits, so that Ctrl-C reaches it; the others give up between kernels. It waits
    # without a lock of theirs: they would wait for ever for one that an interrupt left locked.
    results: SimpleQueue[tuple[int, Result] | BaseException] = SimpleQueue()

    def run(number: int) -> None:
        try:
            results.put((number, work(number, num_threads)))
        except BaseException as error:
            results.put(error)

    # Without `with`, whose end waits for all threads: one in the core ends its kernel, which may take
    # minutes, while the error or Ctrl-C is on its way. What it finds then goes into the cache alone.
    pool = ThreadPoolExecutor(threads, "warpstack-sweep")
    queue = iter(numbers)
    pending = 0
    try:
        while True:
            for number in itertools.islice(queue, 2 * threads - pending):
                pool.submit(run, number)
                pending += 1
            if pending == 0:
                return
            result = results.get()
            pending -= 1
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        stop.set()
        pool.shutdown(wait=False, cancel_futures=True)
