"""Names that moved: the former ones work with a warning that gives the new place."""

import importlib
import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import warpstack as ws

MOVED = ws._MOVED


def test_the_face_has_42_names():
    assert len(ws.__all__) == len(set(ws.__all__)) == 42
    assert set(ws.__all__) == {*ws._MODULES, *ws._NAMES, "__version__"}
    assert set(dir(ws)) >= set(ws.__all__)
    assert not set(MOVED) & set(ws.__all__)
    assert len(MOVED) == 41


@pytest.mark.parametrize("name", sorted(MOVED))
def test_former_name_warns_once_and_is_the_same(name, monkeypatch):
    monkeypatch.delitem(vars(ws), name, raising=False)
    place = f"warpstack.{MOVED[name]}.{name}"
    with pytest.warns(FutureWarning) as caught:
        found = getattr(ws, name)
    assert [str(w.message) for w in caught] == [
        f"warpstack.{name} is {place} now; the former name goes in 0.4"
    ]
    assert caught[0].filename == __file__
    module = importlib.import_module(f"warpstack.{MOVED[name]}")
    assert found is getattr(module, name)
    # A module of the same name would take its place as soon as it is imported.
    place = Path(module.__file__).parent
    if Path(module.__file__).stem == "__init__":
        is_module = (place / f"{name}.py").exists() or (place / name).exists()
        assert is_module == inspect.ismodule(found)
    assert name in module.__all__
    assert name in dir(module)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(ws, name) is found  # says nothing again


def test_former_name_in_an_import():
    code = "from warpstack import explore, dvfs\nfrom warpstack import dvfs\nprint(dvfs.__name__)"
    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout == "dvfs\n"
    assert run.stderr.count("<string>:1: FutureWarning") == 2
    assert run.stderr.count("FutureWarning") == 2


@pytest.mark.parametrize(
    "module", [ws, *(importlib.import_module(f"warpstack.{m}") for m in sorted({*MOVED.values()}))]
)
def test_unknown_names_are_errors(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'best'"):
        module.best  # noqa: B018


@pytest.mark.parametrize("room", ["memory", "exploration", "validation", "interval"])
def test_a_package_loads_nothing_before_it_is_used(room):
    """Other rooms import a module of it, and need not load the others."""
    code = (
        f"import sys, warpstack.{room}\nprint(*sorted(n for n in sys.modules if '.{room}.' in n))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "\n"


def test_type_checkers_see_what_moved():
    """Packages import their lazy names for type checkers, which do not run `__getattr__`."""
    for room in ("memory", "exploration", "validation", "interval", "models"):
        module = importlib.import_module(f"warpstack.{room}")
        assert set(module._LAZY_EXPORTS) <= set(module.__all__)
