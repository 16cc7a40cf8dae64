"""What docs/how-to/cuda.md shows is what a user sees."""

import doctest
import shutil
from pathlib import Path

import pytest

from warpstack.cuda import toolchain

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "cuda.md"


def test_examples():
    if toolchain.find_nvrtc() is None and shutil.which("nvcc") is None:
        pytest.skip("there is no CUDA compiler here (warpstack[cuda] brings one)")
    result = doctest.testfile(
        str(PAGE), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 20
    assert result.failed == 0
