"""What docs/how-to/cuda.md and numba.md show is what a user sees."""

import doctest
import re
import runpy
import shutil
from pathlib import Path

import pytest

from warpstack.cuda import toolchain

PAGES = Path(__file__).resolve().parents[3] / "docs" / "how-to"


@pytest.mark.parametrize(("page", "examples"), [("cuda.md", 20), ("numba.md", 8)])
def test_examples(page, examples):
    if toolchain.find_nvrtc() is None and shutil.which("nvcc") is None:
        pytest.skip("there is no CUDA compiler here (warpstack[cuda] brings one)")
    result = doctest.testfile(
        str(PAGES / page), module_relative=False, encoding="utf-8", optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > examples
    assert result.failed == 0


@pytest.mark.slow
@pytest.mark.parametrize(("page", "package"), [("triton.md", "triton"), ("numba.md", "numba_cuda")])
def test_blocks_of_python_run(page, package, tmp_path):
    """One after another, from a file: Triton reads the source of its functions."""
    pytest.importorskip(package, reason=f"{package} is not here (an extra of warpstack brings it)")
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL)
    assert len(blocks) == 2
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    runpy.run_path(str(program))
