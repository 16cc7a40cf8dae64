"""Work with traces on a Dask cluster."""

from __future__ import annotations

import collections
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from warpstack.errors import InputError, not_a
from warpstack.traces.packing import packed, unpacked
from warpstack.traces.trace import KernelTrace

if TYPE_CHECKING:
    import distributed

__all__ = ["PackedKernels", "check_client", "run_on_cluster"]

#: Tasks with traces of their own that are sent before their results are awaited.
_MOST_WAITING = 64
#: How often a task is given to another worker after one was lost.
_MOST_ATTEMPTS = 8
#: Applications whose traces a worker keeps unpacked.
_MOST_UNPACKED = 4

Result = TypeVar("Result")
#: (kernels of an application, a task) -> its result.
Work = Callable[[tuple[KernelTrace, ...], Any], Result]


@dataclass(frozen=True)
class PackedKernels:
    """Traces as bytes, to be sent to another machine."""

    digests: tuple[str, ...]
    files: tuple[bytes, ...]

    @classmethod
    def of(cls, kernels: Sequence[KernelTrace]) -> PackedKernels:
        """Pack the traces of an application."""
        return cls(
            tuple(kernel.digest for kernel in kernels),
            tuple(packed(kernel._core) for kernel in kernels),
        )

    def unpack(self) -> tuple[KernelTrace, ...]:
        """Return the traces; those of the last few applications are kept."""
        with _unpacked_lock:
            kernels = _unpacked.pop(self.digests, None)
            if kernels is None:
                kernels = tuple(KernelTrace(unpacked(file)) for file in self.files)
            _unpacked[self.digests] = kernels
            while len(_unpacked) > _MOST_UNPACKED:
                _unpacked.popitem(last=False)
            return kernels


_unpacked: collections.OrderedDict[tuple[str, ...], tuple[KernelTrace, ...]] = (
    collections.OrderedDict()
)
_unpacked_lock = threading.Lock()


def check_client(client: Any) -> None:
    """Raise `InputError` unless this is a client of a Dask cluster that other code can wait for."""
    try:
        import distributed
    except ImportError:
        raise InputError(
            "client: Dask is not installed; pip install 'warpstack[dask]' and give a "
            "distributed.Client"
        ) from None
    if not isinstance(client, distributed.Client):
        raise not_a("client", "a distributed.Client", client)
    if client.asynchronous:
        raise InputError("client: is asynchronous; give one made with asynchronous=False")


def run_on_cluster(
    client: distributed.Client,
    apps: Sequence[Sequence[KernelTrace]],
    tasks: Iterable[tuple[int, int, Any]],
    work: Work[Result],
    *,
    shared: bool = True,
) -> Iterator[tuple[int, Result]]:
    """Yield the number and result of each task as they come.

    A task whose worker is lost is given to another one, and traces that were lost with it are sent
    again.

    Parameters
    ----------
    client
        The cluster.
    apps
        The kernels of each application.
    tasks
        Number, application and description of each task.
    work
        What a worker does with the kernels and the description.
    shared
        Whether many tasks have the same traces, which then go to every worker. Otherwise each task
        has its own, which go to one worker, and 64 tasks at most wait at a time.
    """
    import concurrent.futures

    import distributed
    from distributed.comm.core import CommClosedError

    cluster: Any = client  # Dask is partly typed
    # Errors that the loss of a worker looks like. Other errors of the system, such as a full disk, are the
    # task's own.
    lost = (
        concurrent.futures.CancelledError,
        distributed.KilledWorker,
        CommClosedError,
        ConnectionError,
        TimeoutError,
    )
    sent: dict[int, Any] = {}
    running: dict[Any, tuple[int, int, Any]] = {}
    attempts: collections.Counter[int] = collections.Counter()
    as_completed: Any = distributed.as_completed
    queue = as_completed(loop=cluster.loop, raise_errors=False)

    def submit(task: tuple[int, int, Any]) -> None:
        number, app, description = task
        if app not in sent or sent[app].status in ("cancelled", "lost", "error"):
            # On every worker, where they are shared: the loss of one loses no trace.
            packed = PackedKernels.of(apps[app])
            sent[app] = cluster.scatter(packed, broadcast=shared, hash=False)
        future = cluster.submit(
            _run_packed, work, sent[app], description, pure=False, retries=2, priority=-number
        )
        running[future] = task
        queue.add(future)

    waiting = iter(tasks)
    try:
        for task in itertools.islice(waiting, None if shared else _MOST_WAITING):
            submit(task)
        for future in queue:
            task = running.pop(future)
            error = future.exception() if future.status == "error" else None
            if future.status == "finished":
                if not shared:
                    del sent[task[1]]
                for following in itertools.islice(waiting, 1):
                    submit(following)
                yield task[0], future.result()
                continue
            if error is not None and not isinstance(error, lost):
                raise error
            attempts[task[0]] += 1
            if attempts[task[0]] == _MOST_ATTEMPTS:
                last = f" (the last time: {error})" if error is not None else ""
                raise InputError(
                    f"client: {_MOST_ATTEMPTS} workers were lost with the same task{last}; give the "
                    "workers more memory"
                )
            submit(task)
    finally:
        cluster.cancel(list(running))


def _run_packed(work: Work[Result], packed: PackedKernels, description: Any) -> Result:
    return work(packed.unpack(), description)
