"""What docs/explanation/reuse.md shows is what a user sees."""

import doctest
from pathlib import Path

import pytest

import warpstack as ws
from doc_pages import text_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "reuse.md"


def test_examples():
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 8
    assert result.failed == 0


def test_table_of_the_baseline(bfs):
    kernel, gpu = bfs.select([9]).kernels[0], ws.gpu("titan-v").replace(l1_size_kib=128)
    estimated, simulated = (
        ws.memory.ppt_gpu_mem(kernel, gpu).totals,
        ws.simulate_caches(kernel, gpu).totals,
    )
    rows = [line.split("|")[1:4] for line in text_of(PAGE).splitlines() if "sector" in line]
    rows = [(name, a, b) for name, a, b in (r for r in rows if len(r) == 3) if a.strip().isdigit()]
    assert len(rows) == 6
    for name, shown, shown_simulated in rows:
        field = name.split("`")[1]
        assert round(estimated[field]) == int(shown), field
        # The table is of one version of the memory stage; its numbers may move a little.
        assert simulated[field] == pytest.approx(int(shown_simulated), rel=0.05, abs=10), field
