"""The connections by which the streams of a program reach the GPU: CUDA's queues, 8 unless told otherwise.

Streams share them in turn, in the order in which they were made, the legacy default stream first. Kernels,
fills and copies of each direction have queues of their own, for the variable that says how many there are
(CUDA_DEVICE_MAX_CONNECTIONS) counts those of the compute and of the copy engines. Events and waits for them
pass none: what stands behind a wait in its stream waits for the event, and so does its connection. Nodes of
graphs and kernels that kernels launch are not called one by one, and pass none.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpstack.traces.operations import Columns
from warpstack.traces.order import Order

__all__ = ["connections_of"]

#: The queues of a connection that operations and directions of copies use.
_QUEUES = {"kernel": 0, "library": 0, "nccl": 0, "memset": 0}
_QUEUES_OF_COPIES = {"HtoD": 1, "DtoH": 2, "PtoP": 2, "DtoD": 3, "": 3}


def connections_of(columns: Columns, order: Order, hardware_queues: int) -> npt.NDArray[np.int32]:
    """Return the connection of each row, as numbers from 0; -1: it passes none.

    Parameters
    ----------
    columns
        The operations of a program; `connections` has how many each process asks for.
    order
        Which of them are work on the device that a thread calls.
    hardware_queues
        How many the GPU has at most.
    """
    streams: dict[tuple[int, int], int] = {}
    made: dict[int, int] = {}
    numbers: dict[tuple[int, int, int], int] = {}
    asked = np.minimum(columns["connections"], hardware_queues).tolist()
    found = np.full(len(asked), -1, np.int32)
    rows = zip(
        columns["process"].tolist(),
        columns["stream"].tolist(),
        columns["operation"],
        columns["direction"],
        strict=True,
    )
    for row, (process, stream, operation, direction) in enumerate(rows):
        if stream < 0:
            continue
        place = streams.get((process, stream))
        if place is None:
            # The legacy default stream is there before the program makes others.
            place = 0 if stream == 0 else made.get(process, 0) + 1
            made[process] = max(made.get(process, 0), place)
            streams[process, stream] = place
        queue = _QUEUES_OF_COPIES.get(direction) if operation == "copy" else _QUEUES.get(operation)
        if queue is not None and order.has_device[row] and order.is_called[row]:
            key = (process, queue, place % asked[row])
            found[row] = numbers.setdefault(key, len(numbers))
    return found
