"""Whether a picture is what its code draws from its data: digests of both, and of the picture."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pages

#: A line per picture: digests of code, data and picture.
MANIFEST = pages.IMAGES / "made.json"
#: Where modules that are not the package's count, too.
STUDIES = Path(__file__).resolve().parents[1]
#: The package whose modules count whole; of other modules, only what is used.
DRAWING = "warpstack.plot"


def digest_of(content: bytes) -> str:
    """Return a digest of the content of a file."""
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def digest_of_files(paths: Iterable[Path]) -> str:
    """Return a digest of files, in their order; one that is missing counts as empty."""
    parts = [digest_of(path.read_bytes()) if path.is_file() else "" for path in paths]
    return digest_of("\n".join(parts).encode())


def code_digest(functions: Iterable[Callable[..., Any]]) -> str:
    """Return a digest of what functions draw with; comments, docstrings and empty lines do not count."""
    return digest_of("\n".join(sorted(code_used(functions).values())).encode())


def code_used(functions: Iterable[Callable[..., Any]]) -> dict[tuple[str, str], str]:
    """Return the text of what functions draw with, by module and name: themselves and all that they use.

    What they use of the studies' modules counts name by name; modules of `warpstack.plot` count whole,
    and have no name here.
    """
    found = _Used()
    for function in functions:
        function = getattr(function, "func", function)  # of a function with arguments
        found.name(function.__module__, function.__name__)
    return found.texts


@dataclass
class _Used:
    """Texts of definitions by module and name."""

    texts: dict[tuple[str, str], str] = field(default_factory=dict)

    def name(self, module: str, name: str) -> None:
        """Add a name of a module, and what it uses."""
        if (module, name) in self.texts:
            return
        path = _file_of(module)
        if path is None:
            return
        source = path.read_text(encoding="utf-8")
        tree = _parsed(source)
        nodes = [node for node in tree.body if name in _defined(node)]
        if not nodes:
            return
        imports = _imports(tree, module)
        self.texts[module, name] = "\n".join(_text(node, source) for node in nodes)
        for node in nodes:
            for used in _names(node):
                first, _, rest = used.partition(".")
                if first in imports:
                    self._imported(imports[first], rest)
                elif first != name:
                    self.name(module, first)

    def _imported(self, target: str, rest: str) -> None:
        """Add what is used of an imported module or name."""
        if target == "warpstack":
            part, _, rest = rest.partition(".")
            target = f"warpstack.{part}"
        if target == DRAWING and rest:
            function = getattr(importlib.import_module(DRAWING), rest.partition(".")[0])
            target = getattr(function, "__module__", DRAWING)
        if target.startswith(f"{DRAWING}."):
            self.module(target if _file_of(target) else target.rpartition(".")[0])
        elif not target.startswith("warpstack"):
            if _file_of(target):
                self.name(target, rest.partition(".")[0])
            else:
                module, _, name = target.rpartition(".")
                self.name(module, name)

    def module(self, module: str) -> None:
        """Add a whole module of pictures, and those that it imports."""
        path = _file_of(module)
        if (module, "") in self.texts or path is None or module == DRAWING:
            return
        source = path.read_text(encoding="utf-8")
        tree = _parsed(source)
        self.texts[module, ""] = _text(tree, source)
        for target in _imports(tree, module).values():
            if target.startswith(f"{DRAWING}."):
                self.module(target if _file_of(target) else target.rpartition(".")[0])


@functools.lru_cache(maxsize=128)
def _parsed(source: str) -> ast.Module:
    """Return the tree of a source, which nobody changes."""
    return ast.parse(source)


@functools.cache
def _file_of(module: str) -> Path | None:
    """Return the file of a module of this project; None for others and for what is no module."""
    if not module or module.startswith("."):
        return None
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    path = Path(found.origin).resolve()
    ours = module.partition(".")[0] == "warpstack" or path.is_relative_to(STUDIES)
    return path if ours else None


def _defined(node: ast.stmt) -> set[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def _imports(tree: ast.AST, module: str) -> dict[str, str]:
    """Return what is imported anywhere in a module: the name there, and the dotted name of what it is."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = alias.name
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                found[alias.asname or alias.name] = f"{base}.{alias.name}"
    return found


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that code uses, with their attributes: `ws.plot.curves`."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        text = ast.unparse(node)
        if all(part.isidentifier() for part in text.split(".")):
            yield text
            return
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _text(node: ast.AST, source: str) -> str:
    """Return the lines of code, without docstrings, comments, imports and empty lines."""
    lines = source.splitlines()
    dropped: set[int] = set()
    for one in ast.walk(node):
        is_text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        if is_text or isinstance(one, (ast.Import, ast.ImportFrom)):
            dropped |= set(range(one.lineno, (one.end_lineno or one.lineno) + 1))  # type: ignore[attr-defined]
    first = 1 if isinstance(node, ast.Module) else node.lineno  # type: ignore[attr-defined]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.decorator_list:
        first = node.decorator_list[0].lineno
    last = len(lines) if isinstance(node, ast.Module) else node.end_lineno  # type: ignore[attr-defined]
    kept = [lines[number - 1] for number in range(first, last + 1) if number not in dropped]
    return "\n".join(line for line in kept if line.strip() and not line.lstrip().startswith("#"))


def recorded() -> dict[str, dict[str, str]]:
    """Return the manifest: digests by picture."""
    if not MANIFEST.is_file():
        return {}
    found = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return dict(found)


def record(entries: dict[str, dict[str, str]]) -> None:
    """Put pictures into the manifest, a line each, so that two changes of different pictures merge."""
    known = recorded() | entries
    lines = [f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
    MANIFEST.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
