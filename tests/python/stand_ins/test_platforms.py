"""Where CUDA programs cannot run, one error says where they do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import warpstack as ws
from warpstack.cuda import host, toolchain


def test_a_build_without_stand_ins_says_where_programs_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host._core, "__file__", str(tmp_path / "_core.so"))
    with pytest.raises(ws.InputError, match=r"without its stand-in.*on Linux only.*in WSL"):
        host.trace_program(["./program"], output=tmp_path / "traced")
    assert not (tmp_path / "traced").exists()


@pytest.mark.parametrize(
    ("platform", "remedy"), [("darwin", "on Linux only"), ("linux", "pip install")]
)
def test_a_source_without_nvcc_names_what_helps_on_its_platform(
    platform: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(toolchain, "find_nvcc", lambda: None)
    with pytest.raises(ws.InputError, match=remedy) as raised:
        toolchain.build_program("program.cu", tmp_path / "program")
    assert str(raised.value).startswith("program.cu: ")
    assert not (tmp_path / "program").exists()
