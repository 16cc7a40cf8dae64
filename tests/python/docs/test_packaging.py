"""What packages say of the project is what the project says of itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parents[3]
#: Names that conda-forge has for what the package index calls otherwise.
OTHER_NAMES = {"matplotlib": "matplotlib-base"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text())


def test_versions_are_one(project: dict[str, Any], recipe: dict[str, Any]) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == recipe["context"]["version"] == project["version"]
    (built,) = re.findall(
        r"^project\(warpstack VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M
    )
    assert built == project["version"]
    # What comes after it is not released.
    newest = re.search(r"^## (?!Unreleased)(\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest is not None
    assert newest.group(1) == project["version"]


def test_the_recipe_needs_what_the_project_needs(
    project: dict[str, Any], recipe: dict[str, Any]
) -> None:
    wanted = set()
    for requirement in project["dependencies"]:
        name, least = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
        wanted.add(f"{OTHER_NAMES.get(name, name)} >={least}")
    least = project["requires-python"].removeprefix(">=")
    assert set(recipe["requirements"]["run"]) == {f"python >={least}", *wanted}


def test_the_recipe_builds_with_what_the_project_builds_with(recipe: dict[str, Any]) -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {one.replace(">=", " >=") for one in built["build-system"]["requires"]}
    assert needed <= set(recipe["requirements"]["host"])
    for tool in ("cmake", "ninja"):
        least = built["tool"]["scikit-build"][tool]["version"]
        assert f"{tool} {least}" in recipe["requirements"]["build"]


def test_extras_that_images_install_exist(project: dict[str, Any]) -> None:
    for file in ("packaging/Dockerfile", "binder/requirements.txt"):
        (extras,) = re.findall(r"(?:/source|\.)\[([a-z,]+)\]", (ROOT / file).read_text())
        assert set(extras.split(",")) <= project["optional-dependencies"].keys(), file


#: Files of `binder/` that Binder reads and that this project has a use for.
BINDER_FILES = {"apt.txt", "requirements.txt", "runtime.txt"}


def test_binder_names_what_exists(project: dict[str, Any]) -> None:
    """It reads other names in silence, and builds an image that lacks what they say."""
    folder = ROOT / "binder"
    assert {path.name for path in folder.iterdir()} == BINDER_FILES
    lines = (folder / "requirements.txt").read_text().split()
    assert lines[1:] == ["jupyterlab"], "the project itself comes first, from this folder"
    # The core is compiled there, with what the build brings beside the compiler.
    assert (folder / "apt.txt").read_text().split() == ["g++"]
    version = (folder / "runtime.txt").read_text().strip().removeprefix("python-")
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    # The links to it open what is there.
    for file, pattern in (
        ("docs/conf.py", r"labpath=([\w/.-]+)"),
        ("docs/how-to/release.md", r"`lab/tree/([\w/.-]+)`"),
    ):
        (place,) = re.findall(pattern, (ROOT / file).read_text())
        assert (ROOT / place).exists(), file


def test_binder_has_what_the_notebooks_install() -> None:
    (extras,) = re.findall(
        r"^\.\[([a-z,]+)\]$", (ROOT / "binder/requirements.txt").read_text(), re.M
    )
    notebooks = [path.read_text() for path in (ROOT / "notebooks").glob("*.md")]
    wanted = {one for text in notebooks for one in re.findall(r"warpstack\[([a-z]+)\]", text)}
    assert {"explore", "cuda"} <= wanted <= set(extras.split(","))


def test_the_image_copies_what_is_there() -> None:
    text = (ROOT / "packaging" / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (?!--from)(\S+)", text, re.MULTILINE):
        assert (ROOT / source).exists(), source


def test_the_workflow_runs_what_the_project_configures() -> None:
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "cibuildwheel" in config["tool"]


def test_the_release_page_names_the_platforms_of_the_workflow() -> None:
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    runners = yaml.safe_load(text)["jobs"]["wheels"]["strategy"]["matrix"]["runner"]
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    page = (ROOT / "docs" / "how-to" / "release.md").read_text()
    assert len([runner for runner in runners if runner.startswith("ubuntu-")]) == 2
    (image,) = set(config["linux"].values())
    assert image in page
    (mac,) = [runner for runner in runners if runner.startswith("macos-")]
    least = mac.removeprefix("macos-")
    assert config["macos"]["environment"]["MACOSX_DEPLOYMENT_TARGET"] == f"{least}.0"
    assert f"macOS {least} or later" in page
