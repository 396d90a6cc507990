"""What the pages say is what there is: each command and snippet runs, each file validates.

Every page of docs/ and the README is read from top to bottom in a folder of its own, with the names and files that the
snippets before have left. The folder holds a small part of the bundled sample under the names that the pages use, and a
server that is no LLM stands in the place of the one at http://localhost:8000/v1. In front of a block may stand

    <!-- file: NAME -->          the block is written to this file, as the text says
    <!-- exits: 0 1 -->          the commands leave with these codes (one stands for all)
    <!-- not run: REASON -->     commands are held against --help, Python is compiled, TOML validates

Text behind a command is what it prints: pieces of it between "…", however the lines break. What a page takes for given
is made by Python inside of ``<!-- set up``, which readers do not see.
"""

import ast
import contextlib
import io
import json
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import pandas as pd
import pytest
import typer
from markdown_it import MarkdownIt

import judgekit
import judgekit.sample
from judgekit.cli.app import app_for
from judgekit.console.help import Command, sections_of
from judgekit.experiment.file import parse_config
from judgekit.reading.prompts import load_prompt
from judgekit.wire.types import Endpoint
from tests.commands import Judgekit, in_process, script
from tests.mock import URL, MockTransport
from tests.scripted import Scripted
from tests.servers import FaultServer
from tests.small import toml

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SAMPLE = Path(judgekit.sample.__file__).parent
RESULTS = ROOT / "docs" / "results.md"
SERVER = "http://localhost:8000/v1"
MARK = re.compile(r"<!-- (file|exits|not run): (.+?) -->")
BLOCK = re.compile(r"((?:^<!-- [^\n]+? -->\n+)*)(?:^```(\w+)\n(.*?)^```$|^<!-- (set up)\n(.*?)^-->$)", re.M | re.S)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    marks: dict[str, str]


def _blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = ((one, text.count("\n", 0, one.start()) + 1) for one in BLOCK.finditer(text))
    return [Block(one[2] or one[4], one[3] or one[5] or "", line, dict(MARK.findall(one[1]))) for one, line in found]


def _lines(block: Block) -> list[str]:
    """Return the commands of a block, each in one line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        assert all(line.startswith("$ ") for line in lines), "a console block holds commands that begin with $"
        lines = [line[2:] for line in lines]
    return [line for line in lines if line.strip() and not line.startswith("#")]


EXPERIMENT = toml(
    data={"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 10},
    runs={"bm25": "runs/bm25.trec", "dense": "runs/dense.trec"},
    endpoints={"local": {"base_url": SERVER, "model": "my-model", "concurrency": 64}},
    labelers=[
        {"kind": "containment"},
        {"name": "judge", "kind": "judge", "prompt": "graded"},
        {"name": "erag", "kind": "utility", "quality": "em"},
        {"name": "people", "kind": "provenance", "qrels": "gold.qrels"},
    ],
    answers={"depths": [1, 5, 10], "metrics": ["em", "f1"], "outcome": "em"},
    analysis={"primary": "nDCG@5"},
)
"""The experiment of pages that show none of their own."""


QUESTIONS, MANY = 12, 30
LARGE = ("[ground-truth]", "[labelers]", "[people]")
"""The pages that draw a pilot or a sample out of `MANY` questions."""
RUNS = {"runs/bm25.trec": "bm25", "runs/dense.trec": "rrf", "base.trec": "bm25", "new.trec": "tfidf"}


@pytest.fixture
def material(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The first questions of the sample, the passages that two of its runs find, and what the pages call them."""
    folder = tmp_path / "here"
    (folder / "runs").mkdir(parents=True)
    queries = (SAMPLE / "queries.jsonl").read_text().splitlines(keepends=True)
    queries = queries[: MANY if request.node.name.endswith(LARGE) else QUESTIONS]
    wanted = {json.loads(line)["query_id"] for line in queries}
    (folder / "queries.jsonl").write_text("".join(queries))
    files = {name: f"runs/{source}.trec" for name, source in RUNS.items()} | {"gold.qrels": "provenance.qrels"}
    for name, source in files.items():
        lines = (SAMPLE / source).read_text().splitlines(keepends=True)
        (folder / name).write_text("".join(line for line in lines if line.split()[0] in wanted))
    shutil.copy(SAMPLE / "docs.jsonl", folder)
    return folder


@pytest.fixture
def server(fault_server: FaultServer, material: Path) -> str:
    """The address of a server that judges as the mock does, and mostly finds the answer that stands in a passage."""
    lines = (material / "queries.jsonl").read_text().splitlines()
    known = {query["text"]: query["answers"] for query in map(json.loads, lines)}

    def reply(body: dict[str, Any], seen: int) -> Scripted:
        sending = MockTransport().send(Endpoint("mock", URL, "mock"), json.dumps(body).encode())
        with pytest.raises(StopIteration) as sent:  # it waits for nothing
            sending.send(None)
        said = json.loads(sent.value.value[2])
        if "messages" not in body:
            return Scripted(200, json.dumps(said).encode())
        prompt = str(body["messages"][-1]["content"])
        if "short answer" in prompt:
            passages = "".join(re.findall(r"<passage.*?</passage>", prompt, re.S))
            right = [a for text, answers in known.items() if text in prompt for a in answers if a in passages]
            text = right[0] if right and crc32(prompt.encode()) % 5 else "unknown"
            said["choices"][0]["message"]["content"] = text
        return Scripted(200, json.dumps(said).encode())

    fault_server.answer = reply
    return fault_server.base_url


def _of(command: Any, *words: str) -> Iterator[tuple[list[str], Any]]:
    """Yield each command under one, with its words."""
    yield [*words], command
    for name, one in getattr(command, "commands", {}).items():
        yield from _of(one, *words, name)


@cache
def _commands() -> dict[str, Any]:
    return {" ".join(words): command for words, command in _of(typer.main.get_command(app_for()))}


def _exists(command: list[str]) -> None:
    """Hold a command and its options against those that there are."""
    name = next((one for one in (" ".join(command[:2]), *command[:1]) if one in _commands()), "")
    assert name or not command[0].islower() or command[0].startswith("-"), f"there is no command {command[0]}"
    known = {option for param in _commands()[name].params for option in (*param.opts, *param.secondary_opts)}
    unknown = {word.split("=")[0] for word in command if word.startswith("-")} - known - {"--help"}
    assert not unknown, f"judgekit {name} knows no {unknown}"


def test_each_help_shows_examples_whose_options_exist_and_the_endpoint_under_one_heading() -> None:
    # Spellings of earlier releases are hidden, and name the new one.
    single = {name: one for name, one in _commands().items() if isinstance(one, Command) and not one.hidden}
    assert len(single) > 20
    for name, one in single.items():
        lines = "\n".join(one.examples).replace("\\\n", " ").splitlines()
        assert lines, f"judgekit {name} has no example"
        for line in lines:
            assert line.startswith(f"judgekit {name}"), line
            _exists(shlex.split(line)[1:])
        sections = sections_of(one, one.make_context("judgekit", [], resilient_parsing=True))
        plain = " ".join(option for option, _ in sections.get("Options", []))
        assert not re.search(r"--(endpoint|concurrency|cache|max-cost|max-requests|wait)\b", plain), name
        assert all(text for rows in sections.values() for _, text in rows), f"{name}: an option without a text"


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _here(text: str, server: str) -> str:
    """Return a text of a page with the server that stands here, and with fewer resamples, which take less time."""
    return text.replace(SERVER, server).replace("[analysis]\n", "[analysis]\nresamples = 100\n")


class _Page:
    """A page that is read from top to bottom."""

    def __init__(self, folder: Path, judgekit: Judgekit, server: str) -> None:
        self.folder, self.judgekit, self.server = folder, judgekit, server
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.said = ""

    def here(self, text: str) -> str:
        return _here(text, self.server)

    def read(self, block: Block) -> None:
        if "file" in block.marks:
            path = self.folder / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.here(block.text))
        run = "not run" not in block.marks
        match block.language:
            case "console" | "bash":
                lines, codes = _lines(block), block.marks.get("exits", "0").split()
                for line, code in zip(lines, codes * len(lines) if len(codes) == 1 else codes, strict=True):
                    self.command(line, run, int(code))
            case "python" | "set up":
                self.python(block, run and "file" not in block.marks)
            case "toml":
                self.toml(block)
            case "text" if run:
                for piece in block.text.split("…"):
                    assert _plain(piece) in _plain(self.said)
            case "json":
                json.loads(block.text)
            case other:
                assert other in ("yaml", "html", "text")

    def command(self, line: str, run: bool, code: int) -> None:
        words = shlex.split(line, comments=True)
        if words[0] != "judgekit":
            assert not run, f"{words[0]} is not run here: say why it is not"
            return
        if not run:
            _exists(words[1:])
            return
        words, target = (words[: words.index(">")], words[words.index(">") + 1]) if ">" in words else (words, None)
        files = (sorted(map(str, Path().glob(word))) if "*" in word else [self.here(word)] for word in words[1:])
        said = self.judgekit(*chain.from_iterable(files))
        assert said.code == code, f"{said.code}: {said.err or said.out}"
        self.said = said.out + said.err
        if target:
            (self.folder / target).write_text(said.out)

    def python(self, block: Block, run: bool) -> None:
        tree = ast.parse(block.text)
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jk"
        }
        assert used <= set(judgekit.__all__), "a name that is not public"
        if run:
            path = self.folder / f"snippet_{block.line}.py"  # whose source can be looked up
            path.write_text(self.here(block.text))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(path.read_text(), path, "exec"), self.names)
            self.said = out.getvalue()

    def toml(self, block: Block) -> None:
        content = tomllib.loads(block.text)
        if "user" in content:
            load_prompt(str(self.folder / block.marks["file"]))
            return
        whole = tomllib.loads((self.folder / "experiment.toml").read_text())
        given = {key: whole[key] for key in ("data", "runs", "labelers") if key not in content}
        if "depth" not in content.get("data", {"depth": 1}):
            content["data"] = {**whole["data"], **content["data"]}
        parse_config({**given, **content}, Path("experiment.toml"))


@pytest.fixture
def folder(material: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to read a page in, which is the working directory; its modules can be imported."""
    (material / "experiment.toml").write_text(_here(EXPERIMENT, server))
    monkeypatch.chdir(material)
    monkeypatch.syspath_prepend(material)
    yield material
    for name in [name for name, one in sys.modules.items() if str(material) in str(getattr(one, "__file__", ""))]:
        del sys.modules[name]


def _read(page: Path, folder: Path, capfd: pytest.CaptureFixture[str], server: str) -> None:
    reader = _Page(folder, in_process(capfd), server)
    for block in _blocks(page):
        try:
            reader.read(block)
        except (Exception, pytest.fail.Exception) as error:
            raise AssertionError(f"{page.name}:{block.line}: {error}\n{block.text}") from error


@pytest.mark.parametrize("page", [page for page in PAGES if page != RESULTS], ids=lambda page: page.stem)
def test_every_command_and_snippet_of_the_page_works(
    page: Path, folder: Path, server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    _read(page, folder, capfd, server)


def test_every_file_of_the_results_and_every_column_is_on_its_page(
    folder: Path, server: str, capfd: pytest.CaptureFixture[str]
) -> None:
    _read(RESULTS, folder, capfd, server)
    text = RESULTS.read_text()
    sections = dict(re.findall(r"^### `(.+?)`\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    tables = {path.relative_to(folder / "results"): path for path in (folder / "results").rglob("*.*")}
    found: dict[str, set[str]] = {}
    for name, path in tables.items():
        section = (
            f"{name.parent}/{'NAME' if name.parent.name == 'labels' else 'PROMPT'}" if len(name.parts) > 1 else name
        )
        if name.suffix in (".csv", ".parquet"):
            columns = pd.read_csv(path).columns if name.suffix == ".csv" else pd.read_parquet(path).columns
            seen = {re.sub(r"^power_\d+$", "power_S", column) for column in columns}
            found.setdefault(str(section) + (name.suffix if len(name.parts) > 1 else ""), set()).update(seen)
        assert len(name.parts) > 1 or f"`{name}`" in text, f"{name} is not on the page"
    assert set(sections) == set(found)
    for name, section in sections.items():
        rows = re.findall(r"^\| (`.+?) \| (.+?) \|$", section, re.M)
        told = {column: meaning for cell, meaning in rows for column in re.findall(r"`(\w+)`", cell)}
        assert found[name] <= set(told), f"{name}: columns that the page does not name"
        lacking = {column for column, meaning in told.items() if not meaning.startswith("Only")} - found[name]
        assert not lacking, f"{name} has no column {lacking}"


def test_what_the_pages_take_from_the_code_is_up_to_date() -> None:
    generate = script(ROOT / "docs" / "generate.py")
    taken = set()
    for page in PAGES:
        text = page.read_text()
        taken |= set(re.findall(r"<!-- made: ([\w-]+) -->", text))
        assert generate.made(text) == text, f"{page.name}: run `python docs/generate.py`"
    assert taken == set(generate.MADE)
    assert "## judgekit annotate correct" in generate.command_line()
    assert script(ROOT / "docs" / "draw.py").concepts() == (ROOT / "docs" / "_static" / "concepts.svg").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_shows_code_in_fences_only_where_it_is_read(page: Path) -> None:
    read = {"console", "bash", "python", "toml", "text", "json", "yaml", "{toctree}", "{eval-rst}", "{include}"}
    for token in MarkdownIt().parse(page.read_text()):
        if token.type in ("code_block", "fence"):
            where = f"line {(token.map or [0])[0] + 1}"
            assert token.type == "fence", f"{where}: put code between fences"
            assert token.info.partition(" ")[0] in read, f"{where}: say what language it is"


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = next(block.text for block in _blocks(ROOT / "README.md") if block.language == "text")
    assert max(map(len, shown.splitlines())) <= 100, "the output does not fit 100 columns"
    assert shown in [block.text for block in _blocks(ROOT / "docs" / "index.md")], "which the README's demo prints"
