"""Programs: each compiles a file of hardware_kernels and launches kernels of it."""

from __future__ import annotations

import dataclasses
import functools
import runpy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import warpstack as ws

STUDIES = Path(__file__).resolve().parents[1]
KERNELS = STUDIES / "hardware_kernels"
#: Kernels that another study has written already.
OTHERS = STUDIES / "machine_code_kernels"

Launches = Iterable[ws.KernelTrace]


class Bench:
    """A module on a device of its own, and how to launch its kernels."""

    def __init__(self, source: Path, code: str | None) -> None:
        self.device = ws.cuda.Device(2)
        self.module = ws.cuda.compile(text_of(source, code), device=self.device)

    def zeros(self, *shape: int, dtype: Any = np.float32) -> ws.cuda.DeviceArray:
        """Allocate zeros."""
        return self.device.zeros(shape, dtype)

    def random(self, *shape: int) -> ws.cuda.DeviceArray:
        """Allocate numbers between 0 and 1."""
        return self.device.array(np.random.default_rng(1).random(shape, np.float32))

    def launch(
        self, kernel: str, grid: Any, block: Any, *arguments: Any, shared: int = 0
    ) -> ws.KernelTrace:
        """Trace a launch; integers are of 32 bits."""
        taken = [np.int32(each) if isinstance(each, int) else each for each in arguments]
        found = self.module.kernel(kernel)
        return found.launch(grid, block, *taken, shared_memory_bytes=shared)


class TritonBench:
    """The functions of a file of Triton, on a device of its own, and how to launch them."""

    def __init__(self, source: Path, code: str | None = None) -> None:
        self.device = ws.cuda.Device(2)
        self.machine_code = code is not None
        self.functions = runpy.run_path(str(source))

    def zeros(self, *shape: int, dtype: Any = np.float32) -> ws.cuda.DeviceArray:
        """Allocate zeros."""
        return self.device.zeros(shape, dtype)

    def random(self, *shape: int, dtype: Any = np.float32) -> ws.cuda.DeviceArray:
        """Allocate numbers between 0 and 1."""
        return self.device.array(np.random.default_rng(1).random(shape, np.float32).astype(dtype))

    def launch(
        self, kernel: str, grid: Any, target: int, *arguments: Any, **options: Any
    ) -> ws.KernelTrace:
        """Trace a launch of a kernel compiled for an architecture, 80 for ``sm_80``."""
        trace = ws.triton.launch(
            *(self.functions[kernel], grid, *arguments),
            **{"target": f"sm_{target}", "machine_code": self.machine_code, **options},
        )
        assert trace is not None
        return trace


def bench_of(source: Path, code: str | None) -> Any:
    """Return the bench of a source: of CUDA C++, or of Triton."""
    return TritonBench(source, code) if source.suffix == ".py" else Bench(source, code)


@functools.cache
def text_of(source: Path, code: str | None) -> str:
    """Return PTX, or the listing of machine code."""
    module = ws.cuda.compile(source, machine_code=code, device=ws.cuda.Device(0.1))
    return module.listing if isinstance(module, ws.cuda.MachineModule) else module.ptx


@dataclasses.dataclass(frozen=True)
class Program:
    """How to launch a program, and how many warp instructions its largest launch has, about."""

    source: Path
    size: Callable[..., float]
    #: Its first argument is the bench of the source.
    launches: Callable[..., Launches]


PROGRAMS: dict[str, Program] = {}


def program(
    source: Path, size: Callable[..., float]
) -> Callable[[Callable[..., Launches]], Callable[..., Launches]]:
    """Enter a function among the programs, by its name."""

    def entered(function: Callable[..., Launches]) -> Callable[..., Launches]:
        PROGRAMS[function.__name__] = Program(source, size, function)
        return function

    return entered


def up(numerator: int, denominator: int) -> int:
    """Return the quotient, rounded up."""
    return -(-numerator // denominator)
