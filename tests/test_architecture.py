"""The rooms import downwards only, and what ruff cannot see of the habits of the house holds in every module."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import judgekit

PACKAGE = Path(__file__).resolve().parent.parent / "judgekit"
MODULES = sorted(PACKAGE.rglob("*.py"))

ROOMS = (
    ("judgekit", "__main__"),
    ("cli",),
    ("sample",),
    ("setup",),
    ("extensions",),
    ("jobs",),
    ("console",),
    ("extend",),
    ("experiment",),
    ("people",),
    ("api",),
    ("answering",),
    ("scoring",),
    ("labelling",),
    ("report",),
    ("analysis",),
    ("metrics",),
    ("labelers",),
    ("answers",),
    ("reading",),
    ("job",),
    ("client",),
    ("store",),
    ("catalog", "context"),
    ("wire",),
    ("collection",),
    ("data",),
    ("rules",),
    ("spec", "settings", "progress", "notebook", "registry", "garbage"),
    ("errors",),
)
"""From the top of the house to its foundation; a room imports itself, its neighbours here and what lies below it."""

ONLY = {"metrics": {"data", "spec", "notebook", "errors"}}
"""Rooms that may import less than what lies below them."""

OF_EXTENSIONS = {
    # The file that a job makes, and the sentences of answers with their citations.
    "judgekit.extensions.nuggets": {
        "judgekit.answers.nuggets",
        "judgekit.answers.sentences",
        "judgekit.answers.citations",
    },
}
"""What an extension imports beside public names."""

RELAYS = {
    "client/session.py": 1,  # hands it to every caller that waits for a reply
}
"""The modules that catch everything and go on, and in how many places."""

LEVELS = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


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
        if room == "extensions" and other in judgekit.__all__:
            continue
        below = other in LEVELS and LEVELS[other] >= LEVELS[room]
        if not below or other not in ONLY.get(room, LEVELS):
            yield f"{path.relative_to(PACKAGE.parent)}, line {line}: {room} imports {other}"


def sideways(path: Path) -> Iterator[str]:
    """Yield a sentence for each import of a job by another one, and of an extension by what is not of it."""
    own = name_of(path).split(".")[:3]
    for line, module in imported(path):
        room = room_of(module)
        alone = room == "extensions" or (room == "jobs" and own[1:2] == ["jobs"])
        if alone and module.split(".")[2:] and module.split(".")[:3] != own:
            yield f"{path.relative_to(PACKAGE.parent)}, line {line}: imports {module}, which stands by itself"


def internal(path: Path) -> Iterator[str]:
    """Yield a sentence for each import of an extension that is neither public nor its own."""
    own = ".".join(name_of(path).split(".")[:3])
    for line, module in imported(path):
        public = module in {"judgekit", "judgekit.extend", *(f"judgekit.{name}" for name in judgekit.__all__)}
        public = public or module in OF_EXTENSIONS.get(own, ())
        if module.split(".")[0] == "judgekit" and not public and not f"{module}.".startswith(f"{own}."):
            yield f"{path.relative_to(PACKAGE.parent)}, line {line}: an extension imports {module}"


def found(problems: Iterator[str]) -> None:
    listed = list(problems)
    assert not listed, "\n".join(listed)


FILLS = {"append", "extend", "insert"}
MOST_PARAMETERS = 10
PUBLIC_WITH_MORE = {"judgekit.analysis.comparison.compare", "judgekit.jobs.judge_test.judge_test", "judgekit.api.score"}
"""What users call, each argument by its name."""


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a module."""
    yield from (node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def filled(path: Path) -> Iterator[str]:
    """Yield a sentence for each list of a caller that a function fills instead of returning what it found."""
    for function in functions(path):
        arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        lists = {each.arg for each in arguments if each.annotation and "list[" in ast.unparse(each.annotation)}
        inner = [*ast.walk(function)]
        # A name that is bound anew is another list; `notes += …` fills the one of the caller.
        rebound = {
            target for node in inner if isinstance(node, ast.Assign) for target in map(ast.unparse, node.targets)
        }
        grown = {ast.unparse(node.target) for node in inner if isinstance(node, ast.AugAssign)}
        for node in inner:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLS:
                grown.add(ast.unparse(node.func.value))
        for name in sorted(lists & grown - rebound):
            yield f"{path.relative_to(PACKAGE.parent)}, line {function.lineno}: {function.name} fills {name}: return it"


def test_functions_return_what_they_find() -> None:
    found(problem for path in MODULES for problem in filled(path))


def test_functions_take_values_instead_of_many_parameters() -> None:
    many = set()
    for path in MODULES:
        for function in functions(path):
            arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            if len(arguments) > MOST_PARAMETERS:
                many.add(f"{name_of(path)}.{function.name}")
    assert many == PUBLIC_WITH_MORE


def test_every_module_belongs_to_a_room() -> None:
    unknown = {room_of(name_of(path)) for path in MODULES} - LEVELS.keys()
    assert not unknown, f"give {sorted(unknown)} a place in ROOMS, and in the plan of the house"


def test_contributing_says_what_every_room_is_for_in_the_order_of_the_list() -> None:
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = re.findall(r"^- (`[\w`, ]+):", text.split("## Three walks")[0], re.MULTILINE)
    assert [re.findall(r"`(\w+)`", line) for line in told[:-1]] == [[room] for rooms in ROOMS[1:-2] for room in rooms]
    assert re.findall(r"`(\w+)`", told[-1]) == [room for rooms in ROOMS[-2:] for room in rooms]


def test_no_job_imports_another_and_nothing_an_extension() -> None:
    found(problem for path in MODULES for problem in sideways(path))


def test_only_commands_enter_the_room_of_init() -> None:
    # What init guesses of files must not come to decide what a run, which is told everything, reads of them.
    users = {room_of(name_of(path)) for path in MODULES for _, module in imported(path) if room_of(module) == "setup"}
    assert users == {"cli", "setup"}


def test_our_own_extensions_stand_on_what_is_public() -> None:
    extensions = [path for path in MODULES if room_of(name_of(path)) == "extensions"]
    assert len(extensions) > 3
    found(problem for path in extensions for problem in internal(path))


def test_imports_go_down_the_list_of_rooms_only() -> None:
    found(problem for path in MODULES for problem in upward(path))


@pytest.mark.parametrize(
    ("place", "source", "allowed"),
    [
        ("data/x.py", "from judgekit.errors import DataError", True),
        ("data/x.py", "import judgekit.wire.types", False),
        ("data/x.py", "from judgekit import __version__", True),
        ("data/x.py", "from ..wire import types", False),
        ("data/x.py", "def f():\n    from judgekit.metrics import evaluate", False),
        ("data/x.py", "import importlib\nimportlib.import_module('judgekit.metrics')", False),
        ("metrics/x.py", "from judgekit.spec import Spec", True),
        ("metrics/x.py", "from judgekit.wire.types import Request", False),
        ("extensions/mine/x.py", "from judgekit.extensions.mine import y", True),
        ("extensions/mine/x.py", "from judgekit.extensions.yours import y", False),
        ("jobs/mine/x.py", "from judgekit.jobs.mine.z import y", True),
        ("jobs/mine/x.py", "from judgekit.jobs.yours import y", False),
        ("cli/x.py", "def f():\n    from judgekit.extensions.yours.y import z", False),
        ("cli/x.py", "def f():\n    from judgekit.jobs.yours.y import z", True),
    ],
)
def test_the_check_of_imports_sees_them(
    place: str, source: str, allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    assert bool([*upward(path), *sideways(path)]) != allowed


def test_nothing_imports_what_begins_with_an_underscore() -> None:
    for path in MODULES:
        given = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
        private = [alias.name for node in given for alias in node.names if alias.name.startswith("_")]
        # _Filed is the base of two labelers and would be one itself by another name.
        assert set(private) <= {"__version__", "_Filed"}, f"{name_of(path)} imports {private}"


def test_nothing_swallows_every_exception() -> None:
    # Ruff refuses it (BLE001) where it is not allowed by name, except by suppress.
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in MODULES}
    assert {module: text.count("BLE001") for module, text in texts.items() if "BLE001" in text} == RELAYS
    assert not [module for module, text in texts.items() if re.search(r"suppress\((Base)?Exception\b", text)]


def test_nothing_lies_in_the_top_folder_but_what_belongs_there():
    top = {"pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "LICENSE"}
    top |= {"Makefile", ".ci", ".github", ".gitignore", ".pre-commit-config.yaml"}
    top |= {"judgekit", "prompts", "tests", "notebooks", "docs", "examples", "benchmarks", "studies", "findings"}
    if not (PACKAGE.parent / ".git").exists():
        pytest.skip("this is not a checkout")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    there = {Path(name).parts[0] for name in tracked.stdout.split("\0") if name}
    assert there <= top, "what a run or a test left behind"
