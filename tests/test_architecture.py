"""The rooms import downwards only, and the habits of the house hold in every module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "judgekit"
MODULES = sorted(PACKAGE.rglob("*.py"))

ROOMS = (
    ("judgekit", "__main__"),
    ("cli",),
    ("sample",),
    ("plugins",),
    ("console",),
    ("experiment",),
    ("people",),
    ("api",),
    ("outcomes",),
    ("stages",),
    ("report",),
    ("analysis",),
    ("metrics",),
    ("labelers",),
    ("answers",),
    ("reading",),
    ("client",),
    ("store",),
    ("kinds",),
    ("wire",),
    ("data",),
    ("spec", "progress", "notebook", "registry"),
    ("errors",),
)
"""From the top of the house to its foundation; a room imports itself, its neighbours here and what lies below it."""

ONLY = {"metrics": {"data", "spec", "notebook", "errors"}}
"""Rooms that may import less than what lies below them."""

RELAYS = {
    "client/session.py": 1,  # hands it to every caller that waits for a reply
    "spec.py": 1,  # says with it what a user's own code could not do, and on which line
}
"""The modules that catch everything without raising it themselves, and in how many places."""

LEVELS = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
PICKLERS = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
SUPPRESSIONS = re.compile(
    r"#\s*(?:noqa|type:\s*ignore)(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[a-z, -]+\])?(?P<reason>.*)"
)


def name_of(path: Path) -> str:
    return ".".join(("judgekit", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def called(node: ast.Call) -> str:
    """Return the last part of the name of what is called."""
    return str(getattr(node.func, "attr", getattr(node.func, "id", "")))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, module) for everything that a module imports, wherever in it, for type checking only too."""
    package = name_of(path) if path.name == "__init__.py" else name_of(path).rpartition(".")[0]
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: -node.level + 1 or None] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "judgekit":  # from judgekit import spec
                yield from ((node.lineno, f"judgekit.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module
        elif isinstance(node, ast.Call) and called(node) == "import_module":
            yield from ((node.lineno, arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def upward(path: Path) -> Iterator[str]:
    """Yield a sentence for each import that goes up, or sideways where that is forbidden."""
    room = room_of(name_of(path))
    for line, module in imported(path):
        other = room_of(module)
        if not module.startswith("judgekit.") or other == room or other == "__version__":
            continue
        below = other in LEVELS and LEVELS[other] >= LEVELS[room]
        if not below or other not in ONLY.get(room, LEVELS):
            yield f"{path.relative_to(PACKAGE.parent)}, line {line}: {room} imports {other}"


def found(problems: Iterator[str]) -> None:
    listed = list(problems)
    assert not listed, "\n".join(listed)


def test_every_module_belongs_to_a_room() -> None:
    unknown = {room_of(name_of(path)) for path in MODULES} - LEVELS.keys()
    assert not unknown, f"give {sorted(unknown)} a place in ROOMS, and in the plan of the house"


def test_contributing_says_what_every_room_is_for_in_the_order_of_the_list() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = re.findall(r"^- (`[\w`, ]+):", text.split("## Two walks")[0], re.MULTILINE)
    assert [re.findall(r"`(\w+)`", line) for line in told[:-1]] == [[room] for rooms in ROOMS[1:-2] for room in rooms]
    assert re.findall(r"`(\w+)`", told[-1]) == [room for rooms in ROOMS[-2:] for room in rooms]


def other_plugins(path: Path) -> Iterator[str]:
    """Yield a sentence for each import of a plug-in by what is not of it."""
    own = name_of(path).split(".")[:3]
    for line, module in imported(path):
        if module.startswith("judgekit.plugins.") and module.split(".")[:3] != own:
            yield f"{path.relative_to(PACKAGE.parent)}, line {line}: imports the plug-in {module}"


def test_nothing_imports_a_plugin_but_itself() -> None:
    # judgekit/__init__.py names what plug-ins add to type checkers alone.
    types = [node for node in tree_of(PACKAGE / "__init__.py").body if isinstance(node, ast.If)]
    assert [ast.unparse(node.test) for node in types] == ["TYPE_CHECKING"]
    found(problem for path in MODULES if path != PACKAGE / "__init__.py" for problem in other_plugins(path))
    assert len(list(other_plugins(PACKAGE / "__init__.py"))) == sum(
        "judgekit.plugins" in ast.unparse(node) for node in types[0].body
    ), "at run time the register finds them"


@pytest.mark.parametrize(
    ("place", "source", "allowed"),
    [
        ("plugins/mine/x.py", "from judgekit.plugins.mine import y", True),
        ("plugins/mine/x.py", "from judgekit.plugins.yours import y", False),
        ("plugins/mine.py", "import judgekit.plugins.yours", False),
        ("cli/x.py", "def f():\n    from judgekit.plugins.yours.y import z", False),
        ("cli/x.py", "from judgekit.registry import register", True),
    ],
)
def test_the_check_of_plugins_sees_them(
    place: str, source: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert bool(list(other_plugins(path))) != allowed


def test_imports_go_down_the_list_of_rooms_only() -> None:
    found(problem for path in MODULES for problem in upward(path))


@pytest.mark.parametrize(
    ("place", "source", "allowed"),
    [
        ("data/x.py", "from judgekit.errors import DataError", True),
        ("data/x.py", "import judgekit.wire.types", False),
        ("data/x.py", "from judgekit import client", False),
        ("data/x.py", "from judgekit import __version__", True),
        ("data/x.py", "from ..wire import types", False),
        ("data/__init__.py", "from .. import stages", False),
        ("data/x.py", "from .tables import ALL", True),
        ("data/x.py", "def f():\n    from judgekit.metrics import evaluate", False),
        ("data/x.py", "import importlib\nimportlib.import_module('judgekit.metrics')", False),
        ("data/x.py", "import judgekit.nowhere", False),
        ("metrics/x.py", "from judgekit.spec import Spec", True),
        ("metrics/x.py", "from judgekit.wire.types import Request", False),
        ("stages.py", "from judgekit.labelers.base import build", True),
        ("stages.py", "from judgekit.cli import main", False),
        ("__init__.py", "from judgekit.stages import label", True),
    ],
)
def test_the_check_of_imports_sees_them(
    place: str, source: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(source)
    assert bool(list(upward(path))) != allowed


def rank(name: str) -> tuple[int, str]:
    """The order that the linter keeps: constants, then classes, then functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_every_module_names_what_it_gives_to_others_in_order() -> None:
    def problems() -> Iterator[str]:
        for path in MODULES:
            body = tree_of(path).body
            lists = [
                ast.literal_eval(node.value)
                for node in body
                if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]
            ]
            defined = [n.name for n in body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
            if not lists and [n for n in defined if not n.startswith("_")]:
                yield f"{name_of(path)} has no __all__"
            for names in lists:
                if names != sorted(names, key=rank):
                    yield f"{name_of(path)}: __all__ is not sorted"

    found(problems())


def test_library_code_keeps_the_habits_of_the_house() -> None:
    def problems() -> Iterator[str]:
        for path in MODULES:
            for node in nodes_of(path):
                for reason in offences(node):
                    yield f"{path.relative_to(PACKAGE.parent)}, line {getattr(node, 'lineno', 0)}: {reason}"

    found(problems())


def offences(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "print":
            yield "print() in library code"
        if any(k.arg == "allow_pickle" and getattr(k.value, "value", True) for k in node.keywords):
            yield "allow_pickle runs code from a file"
    elif isinstance(node, ast.Attribute) and node.attr in ("read_pickle", "to_pickle"):
        yield "pickle runs code from a file"
    elif isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        yield from (f"imports {name}, which runs code from a file" for name in names if name.split(".")[0] in PICKLERS)
    elif isinstance(node, ast.Global):
        yield "state of the module, changed by a function"


def broad(path: Path) -> Iterator[str]:
    """Yield the places that catch everything and go on."""
    for node in nodes_of(path):
        kinds: list[ast.expr] = []
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                kinds = [ast.Name("BaseException")]
            else:
                kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            last = node.body[-1]
            if isinstance(last, ast.Raise) and last.exc is None:
                continue
        elif isinstance(node, ast.Call) and called(node) == "suppress":
            kinds = node.args
        if any(ast.unparse(kind) in ("Exception", "BaseException") for kind in kinds):
            yield f"{path.relative_to(PACKAGE.parent)}, line {node.lineno}"


def test_nothing_swallows_every_exception() -> None:
    places = {path.relative_to(PACKAGE).as_posix(): list(broad(path)) for path in MODULES}
    found(place for module, there in places.items() if module not in RELAYS for place in there)
    assert {module: len(places[module]) for module in RELAYS} == RELAYS


def test_what_is_hidden_from_the_checkers_has_its_reason_beside_it() -> None:
    def problems() -> Iterator[str]:
        for path in MODULES:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = SUPPRESSIONS.search(line)
                if match and not match["reason"].strip(" -#:"):
                    yield f"{path.relative_to(PACKAGE.parent)}, line {number}: {match[0]}"

    found(problems())
