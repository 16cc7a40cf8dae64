"""The compiler of host programs: an nvcc beside which there is a libcudart to link with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import compiler_cache
from warpstack.cuda.toolchain import find_nvcc


def linking_nvcc() -> str | None:
    """Return an nvcc of a toolkit; that of the package index has no library to link programs with."""
    nvcc = find_nvcc()
    if nvcc is None:
        return None
    above = Path(nvcc).resolve().parents[1]
    libraries = (above / "lib64", above / "lib", *above.glob("targets/*/lib"))
    return nvcc if any((folder / "libcudart.so").exists() for folder in libraries) else None


def need_linking_nvcc() -> str:
    """Return that nvcc, or skip the test."""
    nvcc = linking_nvcc()
    if nvcc is None:
        pytest.skip("needs nvcc of a toolkit, with libcudart.so")
    return nvcc


def hopper_program(folder: Path, source: Path) -> str:
    """Return a host program whose kernels are PTX for compute capability 9.0, or skip the test."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    made = folder / source.stem
    target = ("-gencode", "arch=compute_90,code=compute_90")
    compiler_cache.nvcc([nvcc, "-std=c++17", "-cudart", "shared", *target, "-o", made, source])
    return str(made)
