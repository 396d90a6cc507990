"""What pages, notebooks, examples and docstrings mention of judgekit, and whether it exists; nothing is executed.

A mention is a name of the package (`jk.label`, `judgekit.rules`, `Comparison.plot`), in code also what is used of such
a thing and with which arguments it is called; a command with its options; an extra, a target of make, a file, a link.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import json
import re
import shlex
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import typer

import judgekit
from judgekit.cli.app import app_for

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "judgekit", "prompts", "tests", "benchmarks", "docs", "examples", "notebooks", "studies", "findings", ".ci",
    ".github",
)  # fmt: skip
"""What paths of this project begin with."""

FOREIGN = {
    "--ctx-size": "llama-server",
    "--data-parallel-size": "vllm",
    "--max-logprobs": "vllm",
    "--reranking": "llama-server",
}
"""Options of other programs that a text names by themselves, and whose they are."""

READ = (
    "docs/*.md", "docs/*.py", "notebooks/*.ipynb", "examples/**/*.md", "examples/**/*.py", "examples/**/*.toml",
    "examples/**/*.yml", "judgekit/**/*.py", "judgekit/**/*.md", "judgekit/**/*.toml", "prompts/*", "benchmarks/*.md",
    "benchmarks/*.py", "studies/*.md", "studies/*.py", "findings/*.md", ".github/**/*.yml",
)  # fmt: skip
"""The files that tell people of judgekit, beside some at the top."""

ELSEWHERE = {
    "judgekit/trust.json": "in the folder of the user's configuration",
    "judgekit/prompts": "in the wheel",
    "judgekit.plugins": "the entry point by which packages are found",
    "judgekit.count": "of a package that docs/extending.md makes up",
    "judgekit.Words": "of the same",
}
"""What is spelled like something of the project and is none, and what it is."""

FENCE = re.compile(r"^( *)```[ ]*([\w{}-]*)[^\n]*\n(.*?)^\1```[ ]*$", re.M | re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
EXTRA = re.compile(r"(?:judgekit-qrels|(?<![\w\])])\.)\[([a-z][a-z, -]*)\]")
NAME = re.compile(r"(?:jk|judgekit)(?:\.[A-Za-z_]\w*)+")
MEMBER = re.compile(r"([A-Z]\w+)((?:\.[a-z_]\w*)+)(?:\(.*)?", re.S)


class Lie(NamedTuple):
    """Something that is mentioned and does not exist."""

    where: str
    """File and line."""
    says: str
    why: str


# ---------------------------------------------------------------- names


@cache
def resolved(dotted: str) -> Any:
    """Return what a dotted name of the package means, or raise `AttributeError`."""
    words = dotted.split(".")
    found: Any = judgekit
    for place, word in enumerate(words[1:], 2):
        if inspect.ismodule(found) and not hasattr(found, word) and words[0] == "judgekit":
            try:
                found = importlib.import_module(".".join(words[:place]))
            except ModuleNotFoundError:
                raise AttributeError(f"there is no {'.'.join(words[:place])}") from None
        elif found is judgekit and word not in judgekit.__all__ and not hasattr(judgekit, word):
            try:
                found = importlib.import_module(f"judgekit.{word}")
            except ModuleNotFoundError:
                raise AttributeError(f"judgekit has no {word}") from None
        else:
            found = member(found, word)
    return found


UNKNOWN = object()
"""What is known of a value that nothing is known of."""


class Made(NamedTuple):
    """An instance of a class of the package, or of one that was made from it."""

    kind: type


def member(of: Any, name: str) -> Any:
    """Return what an attribute is, or raise `AttributeError`."""
    if isinstance(of, Made):
        kind = of.kind
        if not has(kind, name):
            raise AttributeError(f"a {kind.__name__} has no {name}")
        hint = hints(kind).get(name)
        if hint is not None:
            return made(hint, kind)
        found = inspect.getattr_static(kind, name, UNKNOWN)
        if isinstance(found, property) or type(found).__name__ == "cached_property":
            getter = found.fget if isinstance(found, property) else found.func
            return made(getter.__annotations__.get("return"), getter)
        return getattr(kind, name, UNKNOWN)
    if isinstance(of, type):
        if not has(of, name):
            raise AttributeError(f"{of.__name__} has no {name}")
        return inspect.getattr_static(of, name, UNKNOWN)
    if not hasattr(of, name):
        raise AttributeError(f"{getattr(of, '__name__', of)} has no {name}")
    return getattr(of, name)


@cache
def has(kind: type, name: str) -> bool:
    """Return whether instances of a class have an attribute: of the class, of a field, or set in its source."""
    if hasattr(kind, name) or any("__getattr__" in vars(base) for base in kind.__mro__):
        return True
    if any(name in vars(base).get("__annotations__", {}) for base in kind.__mro__):
        return True
    return any(re.search(rf"\bself\.{name}\b.*=", source(base)) for base in kind.__mro__)


@cache
def source(kind: type) -> str:
    """Return the source of a class of the package."""
    return inspect.getsource(kind) if kind.__module__.startswith("judgekit") else ""


@cache
def hints(kind: type) -> dict[str, Any]:
    """Return the annotations of a class's fields."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        found |= vars(base).get("__annotations__", {})
    return found


@cache
def imported_for_types(module: str) -> dict[str, str]:
    """Return where the names come from that a module imports, for types alone also."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in nodes for alias in node.names}


def made(hint: Any, owner: Any) -> Any:
    """Return an instance of what a type hint names if that is a class of the package."""
    if hint in ("Self", "typing.Self") or getattr(hint, "__name__", "") == "Self":
        return Made(owner) if isinstance(owner, type) else UNKNOWN
    if isinstance(hint, str):
        if not hint.isidentifier():
            return UNKNOWN
        place = imported_for_types(owner.__module__).get(hint, f"{owner.__module__}.{hint}")
        if not place.startswith("judgekit."):
            return UNKNOWN
        module, _, name = place.rpartition(".")
        hint = getattr(importlib.import_module(module), name, None)
    return Made(hint) if isinstance(hint, type) and hint.__module__.startswith("judgekit") else UNKNOWN


class Reader(ast.NodeVisitor):
    """Reads Python from top to bottom, and follows what is known to come from the package."""

    def __init__(self, where: Callable[[int], str]) -> None:
        self.where = where
        self.known: dict[str, Any] = {}
        self.lies: list[Lie] = []

    def lie(self, node: ast.AST, says: str, why: object) -> Any:
        self.lies.append(Lie(self.where(getattr(node, "lineno", 1)), says, str(why)))
        return UNKNOWN

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.split(".")[0] == "judgekit":
                try:
                    module = importlib.import_module(alias.name)
                except ModuleNotFoundError as error:
                    self.lie(node, f"import {alias.name}", error)
                else:
                    self.known[alias.asname or alias.name.split(".")[0]] = module if alias.asname else judgekit

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if (node.module or "").split(".")[0] != "judgekit" or node.level:
            return
        for alias in node.names:
            try:
                self.known[alias.asname or alias.name] = resolved(f"{node.module}.{alias.name}")
            except (AttributeError, ModuleNotFoundError) as error:
                self.lie(node, f"from {node.module} import {alias.name}", error)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.assign(target, node.value)

    def assign(self, target: ast.AST, value: ast.AST) -> None:
        """Note what a name is from here on."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, each in zip(target.elts, value.elts, strict=True):
                self.assign(one, each)
        elif isinstance(target, ast.Name):
            self.known[target.id] = self.of(value)
        else:
            self.of(value)
            self.forget(target)

    def visit_For(self, node: ast.For) -> None:
        self.forget(node.target)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        outside = dict(self.known)
        for one in node.generators:
            self.visit(one.iter)
            self.forget(one.target)
            for condition in one.ifs:
                self.visit(condition)
        for element in [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]:
            self.visit(element)
        self.known = outside

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.Lambda) -> None:
        outside = dict(self.known)
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.known.pop(one.arg, None)
        self.generic_visit(node)
        self.known = outside
        if isinstance(node, ast.FunctionDef):
            self.known.pop(node.name, None)

    visit_Lambda = visit_FunctionDef

    def forget(self, target: ast.AST) -> None:
        for one in ast.walk(target):
            if isinstance(one, ast.Name):
                self.known.pop(one.id, None)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.of(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.of(node)

    def of(self, node: ast.AST) -> Any:
        """Return what is known of an expression's value."""
        match node:
            case ast.Name(id=name):
                return self.known.get(name, judgekit if name == "jk" else UNKNOWN)
            case ast.Attribute(value=value, attr=name):
                whole = self.of(value)
                if whole is UNKNOWN or isinstance(node.ctx, ast.Store):
                    return UNKNOWN
                try:
                    return resolved(f"jk.{name}") if whole is judgekit else member(whole, name)
                except (AttributeError, ModuleNotFoundError) as error:
                    return self.lie(node, ast.unparse(node)[-60:], error)
            case ast.Call(func=function, args=args, keywords=keywords):
                for one in (*args, *keywords):
                    self.visit(one)
                return self.called(node, self.of(function))
            case _:
                self.generic_visit(node)
                return UNKNOWN

    def called(self, node: ast.Call, function: Any) -> Any:
        """Return what a call returns, once its keyword arguments are found to exist."""
        if function is UNKNOWN or not callable(function):
            return UNKNOWN
        place = getattr(function, "__module__", None) or ""
        if not place.startswith("judgekit"):
            return UNKNOWN
        try:
            parameters = inspect.signature(function).parameters
        except (ValueError, TypeError):
            return UNKNOWN
        if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            for keyword in node.keywords:
                if keyword.arg is not None and keyword.arg not in parameters:
                    self.lie(node, f"{ast.unparse(node.func)}({keyword.arg}=…)", "there is no such argument")
        if isinstance(function, type):
            return Made(function)
        return made(getattr(function, "__annotations__", {}).get("return"), function)


# ---------------------------------------------------------------- commands, extras, files


def _of(command: Any, *words: str) -> Iterator[tuple[str, Any]]:
    """Yield each command under one, with its words."""
    yield " ".join(words), command
    for name, one in getattr(command, "commands", {}).items():
        yield from _of(one, *words, name)


@cache
def commands() -> dict[str, set[str]]:
    """Return the options of each command."""
    found = dict(_of(typer.main.get_command(app_for())))
    return {
        name: {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "-h"}
        for name, command in found.items()
    }


def command_lies(words: list[str]) -> Iterator[str]:
    """Yield what a command line names that does not exist; the first word is behind ``judgekit``."""
    words = [word for word in words if word not in ("…", "...")]
    if not words or not re.fullmatch(r"-{0,2}[a-z][a-z-]*", words[0]):
        return
    if words[0].startswith("-"):
        name = ""
    elif words[0] not in commands():
        yield f"there is no command {words[0]}"
        return
    else:
        name = next(one for one in (" ".join(words[:2]), words[0]) if one in commands())
        group = any(one.startswith(f"{name} ") for one in commands())
        if group and len(words) > 1 and re.fullmatch(r"[a-z][a-z-]*", words[1]):
            yield f"judgekit {name} has no command {words[1]}"
            return
    known = commands()[name]
    if any(one.startswith(f"{name} ") for one in commands()):
        known = known | {option for one in commands() if one.startswith(name) for option in commands()[one]}
    for word in words:
        option = word.split("=")[0]
        if re.fullmatch(r"--[a-z][\w-]*|-[a-z]", option) and option not in known:
            yield f"judgekit {name} knows no {option}"


def shell_lies(line: str) -> Iterator[tuple[str, str]]:
    """Yield what a line of a shell names that does not exist, and why."""
    line = re.sub(r"^\s*(\$ )?", "", line)
    for part in re.split(r"\s(?:&&|\|\||;|\|)\s|\s>\s*", line):
        try:
            words = shlex.split(part, comments=True)
        except ValueError:
            words = part.split()
        words = [word for word in words if not re.fullmatch(r"[A-Z_]+=.*", word)]
        if words and re.fullmatch(r"(\S*/)?judgekit", words[0]):
            yield from ((part, why) for why in command_lies(words[1:]))
        elif words[:1] == ["make"]:
            for word in words[1:]:
                if re.fullmatch(r"[a-z][\w-]*", word) and word not in targets():
                    yield part, f"make has no target {word}"
        elif match := re.match(r"(?:\S*/)?python[\d.]* -m (\w+)(\S*)", part):
            module = ROOT / (match[1] + match[2]).replace(".", "/")
            there = (module.with_suffix(".py"), module / "__main__.py")
            if match[1] in FOLDERS and not any(path.exists() for path in there):
                yield part, f"there is no module {match[1]}{match[2]}"


@cache
def targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


@cache
def extras() -> set[str]:
    """Return the extras and groups of the package."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return set(declared["project"]["optional-dependencies"])


def file_lie(text: str, beside: Path) -> str | None:
    """Return why a path of this project does not exist; None where it does, or where the text is none."""
    path = text.split("#")[0].split("::")[0].rstrip("/")
    if not re.fullmatch(r"[\w./*-]+", path) or "/" not in text or not path or path.split("/")[0] not in FOLDERS:
        return None
    if path in ELSEWHERE:
        return None
    if re.search(r"[A-Z]{3,}", path) and not (ROOT / path).exists() and not path.endswith(".md"):
        return None  # a placeholder
    for folder in (ROOT, beside):
        if "*" in path and any(folder.glob(path)):
            return None
        if (folder / path).exists():
            return None
    return f"there is no {path}"


# ---------------------------------------------------------------- texts


def python_lies(text: str, where: Callable[[int], str], known: dict[str, Any] | None = None) -> Iterator[Lie]:
    """Yield the false mentions of Python code; what is no Python, such as a piece of it, mentions names only."""
    reader = Reader(where)
    reader.known = {} if known is None else known
    text = re.sub(r"^(\s*)[%!].*$", r"\1pass", text, flags=re.M)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        yield from prose_lies(f"``{text}``", where, ROOT)
        return
    reader.visit(tree)
    yield from reader.lies
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in EXTRA.finditer(node.value):
                yield from extra_lies(found, where(node.lineno))


def extra_lies(found: re.Match[str], where: str) -> Iterator[Lie]:
    """Yield the extras that a text names and that do not exist."""
    for name in found[1].split(","):
        if name.strip() not in extras():
            yield Lie(where, found[0], f"there is no extra {name.strip()}")


def span_lies(text: str) -> Iterator[str]:
    """Yield why what stands in backticks does not exist."""
    text = " ".join(text.split())
    if re.match(r"(judgekit|make) ", text):
        yield from (why for _, why in shell_lies(re.sub(r"\[[^]]*\]|\|.*", "", text)))
    elif match := re.fullmatch(r"(--[a-z][\w-]*)([ =].*)?", text):
        if match[1] not in FOREIGN and not any(match[1] in options for options in commands().values()):
            yield f"no command knows {match[1]}"
    elif match := re.match(NAME, text):
        placeholder = match[0].rpartition(".")[2].isupper()
        if match[0] not in ELSEWHERE and not placeholder:
            try:
                resolved(match[0])
            except (AttributeError, ModuleNotFoundError) as error:
                yield str(error)
    elif (match := re.fullmatch(MEMBER, text)) and match[1] in judgekit.__all__:
        found: Any = Made(getattr(judgekit, match[1]))
        try:
            for name in match[2].split(".")[1:]:
                found = member(found, name)
        except AttributeError as error:
            yield str(error)


@cache
def rooms() -> set[str]:
    """Return the names of the package's folders and modules."""
    return {path.stem for path in (ROOT / "judgekit").iterdir() if path.suffix in ("", ".py")}


def walk_lies(text: str, where: Callable[[int], str]) -> Iterator[Lie]:
    """Yield the false names of a page for those who work on the project, which leaves ``judgekit.`` out."""
    for found in SPAN.finditer(text):
        match = re.fullmatch(r"([a-z]\w+)(\.\w+)+", found[2])
        if match is None or match[1] not in rooms() or match[2] in (".py", ".toml"):
            continue
        try:
            resolved(f"judgekit.{match[0]}")
        except (AttributeError, ModuleNotFoundError) as error:
            yield Lie(where(text.count("\n", 0, found.start()) + 1), found[2], str(error))


def prose_lies(text: str, where: Callable[[int], str], beside: Path) -> Iterator[Lie]:
    """Yield the false mentions of a text with backticks and links."""

    def at(place: int) -> str:
        return where(text.count("\n", 0, place) + 1)

    for found in SPAN.finditer(text):
        yield from (Lie(at(found.start()), found[2], why) for why in span_lies(found[2]))
        if why := file_lie(found[2].strip(), beside):
            yield Lie(at(found.start()), found[2], why)
    for found in EXTRA.finditer(text):
        yield from extra_lies(found, at(found.start()))


def link_lies(text: str, where: Callable[[int], str], page: Path) -> Iterator[Lie]:
    """Yield the links of a page to files and headings that do not exist."""
    for found in LINK.finditer(text):
        link = found[1]
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        line = where(text.count("\n", 0, found.start()) + 1)
        if file and not target.exists():
            yield Lie(line, link, f"there is no {file}")
        elif anchor and anchor not in anchors(target if file else text):
            yield Lie(line, link, f"there is no heading #{anchor}")


def anchors(of: Path | str) -> set[str]:
    """Return the anchors of a page's headings."""
    text = of if isinstance(of, str) else of.read_text(encoding="utf-8")
    heads = re.findall(r"^#+ (.*)", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def page_lies(text: str, page: Path, where: Callable[[int], str], known: dict[str, Any] | None = None) -> Iterator[Lie]:
    """Yield the false mentions of a page of Markdown, in its text and in its fences."""
    known = {} if known is None else known
    blank = list(text)

    def taken(found: re.Match[str]) -> Callable[[int], str]:
        begin = text.count("\n", 0, found.start(3)) if found.re is FENCE else text.count("\n", 0, found.start())
        for place in range(found.start(), found.end()):
            if blank[place] != "\n":
                blank[place] = " "
        return lambda line: where(begin + line)

    for found in FENCE.finditer(text):
        at, language, body = taken(found), found[2], found[3]
        if language == "python":
            yield from python_lies(body, at, known)
        else:
            joined = re.sub(r"\\\n", "  ", body)
            for number, line in enumerate(joined.splitlines(), 1):
                if language in ("console", "bash", "sh"):
                    yield from (Lie(at(number), says, why) for says, why in shell_lies(line))
            for extra in EXTRA.finditer(body):
                yield from extra_lies(extra, at(body.count("\n", 0, extra.start()) + 1))
    for found in COMMENT.finditer("".join(blank)):
        at = taken(found)
        if setup := re.fullmatch(r"<!-- set up\n(.*)-->", found[0], re.S):
            yield from python_lies(setup[1], lambda line, at=at: at(line + 1), known)
    rest = "".join(blank)
    yield from prose_lies(rest, where, page.parent)
    yield from link_lies(rest, where, page)


def notebook_lies(cells: list[dict[str, Any]], page: Path, name: str) -> Iterator[Lie]:
    """Yield the false mentions of a notebook, whose cells are read in turn."""
    known: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])

        def where(line: int, number: int = number) -> str:
            return f"{name}, cell {number}, line {line}"

        if cell["cell_type"] == "code":
            yield from python_lies(text, where, known)
            yield from comment_lies(text, where, page)
        else:
            yield from page_lies(text, page, where, known)


def docstring_lies(text: str, path: Path, name: str) -> Iterator[Lie]:
    """Yield the false mentions of a Python file in its docstrings, comments and messages."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            begin = node.lineno

            def where(line: int, begin: int = begin) -> str:
                return f"{name}:{begin + line - 1}"

            said = node.value
            yield from prose_lies(said, where, path.parent)
            for number, line in enumerate(re.sub(r"\\\n", "  ", said).splitlines(), 1):
                if re.match(r"\s+judgekit [a-z]", line):
                    yield from (Lie(where(number), says, why) for says, why in shell_lies(line))
            for found in re.finditer(r"(?<![`\w/.])docs/[\w-]+\.md\b", said):
                if not (ROOT / found[0]).exists():
                    yield Lie(where(said.count("\n", 0, found.start()) + 1), found[0], f"there is no {found[0]}")
    yield from comment_lies(text, lambda line: f"{name}:{line}", path)


def comment_lies(text: str, where: Callable[[int], str], path: Path) -> Iterator[Lie]:
    """Yield the false mentions of comments."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return
    for token in tokens:
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            yield from prose_lies(token.string, lambda _, line=line: where(line), path.parent)


def file_lies(path: Path) -> Iterator[Lie]:
    """Yield the false mentions of a file of the project."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")

    def where(line: int) -> str:
        return f"{name}:{line}"

    if path.suffix == ".md":
        yield from page_lies(text, path, where)
        if path.name == "CONTRIBUTING.md":
            yield from walk_lies(text, where)
    elif path.suffix == ".ipynb":
        yield from notebook_lies(json.loads(text)["cells"], path, name)
    elif path.suffix == ".py":
        yield from docstring_lies(text, path, name)
        if path.is_relative_to(ROOT / "examples"):
            yield from python_lies(text, where)
    else:
        yield from prose_lies(text, where, path.parent)


def mentioning() -> list[Path]:
    """Return the files that tell people of judgekit; what has been is told by CHANGELOG.md, and tests tell nobody."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "pyproject.toml")]
    for pattern in READ:
        pages += sorted(ROOT.glob(pattern))
    return [page for page in pages if page != ROOT / "docs" / "changelog.md"]
