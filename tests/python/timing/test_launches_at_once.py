"""Launches that are simulated at the same time: the same results, errors and progress as one by one."""

import pytest

import warpstack as ws
from machines import plain_pascal


def launches(count=5):
    """Return launches of different lengths, whose loads share lines."""
    kernels = []
    for number in range(count):
        k = ws.patterns.KernelBuilder(f"launch-{number}", grid=2, block=64, launch_id=number + 1)
        for i in range(1 + 3 * (number % 3)):
            k.emit("LDG.E", dst=1, address=4 * (k.thread + 96 * i))
            k.emit("IADD", dst=2, src=1)
        kernels.append(k.build())
    return ws.App(kernels)


def numbers(results):
    """Return what simulations found, in the order of the launches."""
    return [
        (r.kernel.name, r.cycles, r.totals, r.cpi_stack, r.load_critical_cycles) for r in results
    ]


@pytest.mark.parametrize("workers", [None, 2, 3, 9])
def test_threads_do_not_change_results(workers):
    app, gpu = launches(), plain_pascal()
    alone = ws.simulate(app, gpu, flush_l2=True, workers=1)
    together = ws.simulate(app, gpu, flush_l2=True, workers=workers)
    assert numbers(together) == numbers(alone)
    # An L2 that is not flushed ties each launch to those before it, on any number of threads.
    assert numbers(ws.simulate(app, gpu, workers=workers)) == numbers(
        ws.simulate(app, gpu, workers=1)
    )


def test_launches_have_the_profiler_that_was_asked_for():
    gpu = plain_pascal(base_clock_ghz=0.7)
    results = ws.simulate(launches(), gpu, flush_l2=True, workers=2, profiler="ncu")
    assert {r.profiler for r in results} == {"ncu"}
    assert {r.gpu.clock_ghz for r in results} == {0.7}


def test_the_first_error_is_told():
    with pytest.raises(ws.InputError, match=r"launch-0.*max_cycles = 2 cycles"):
        ws.simulate(launches(), plain_pascal(), flush_l2=True, workers=2, max_cycles=2)


def test_threads_are_checked():
    with pytest.raises(ws.InputError, match="workers = -1"):
        ws.simulate(launches(), plain_pascal(), flush_l2=True, workers=-1)
