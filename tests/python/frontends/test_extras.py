"""Packages that extras install: what is said where they are missing, and that they load late."""

import subprocess
import sys

import pytest

import warpstack as ws
from warpstack.cuda.extras import load_extra


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("triton", lambda: ws.triton.compile(print)),
        ("triton", lambda: ws.triton.launch(print, 1)),
        ("triton", lambda: ws.triton.tune(print, 1, (), [{}])),
        ("numba", lambda: ws.numba.compile(print)),
        ("numba", lambda: ws.numba.launch(print, 1, 1)),
    ],
)
def test_a_missing_package_is_one_line_with_the_command(name, call, monkeypatch):
    getattr(ws, name)  # its own module loads others, which are to be found
    for module in [one for one in sys.modules if one.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ws.InputError) as caught:
        call()
    assert str(caught.value).endswith(
        f" needs {name}; install it with: pip install 'warpstack[{name}]'"
    )


def test_a_broken_package_is_told_of(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import a_module_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ws.InputError, match="f: broken_package cannot be loaded: No module named"):
        load_extra("f", "broken_package", "broken")


def test_they_are_not_loaded_before_they_are_needed():
    source = (
        "import sys, warpstack as ws; ws.triton.tune, ws.numba.launch; "
        "print([name for name in ('triton', 'numba') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", source], text=True) == "[]\n"
