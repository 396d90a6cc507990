"""What the README shows is what there is: its output, its experiment file, its commands, its Python."""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import judgekit
from judgekit.answers.quality import catalog as answer_metrics
from judgekit.cli import main
from judgekit.experiment.file import parse_config
from judgekit.labelers.base import catalog as labelers
from judgekit.metrics import catalog

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def _help(*command: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        main([*command, "--help"])
    return out.getvalue()


def test_the_first_command_stands_on_the_first_screen() -> None:
    lines = README.splitlines()
    assert next(i for i, line in enumerate(lines) if line.strip().startswith("make demo")) < 20


@pytest.mark.slow
def test_the_demo_prints_what_the_readme_shows(tmp_path: Path) -> None:
    shown = re.search(r"<!-- demo -->\n+```text\n(.*?)```", README, re.S)
    assert shown is not None
    command = [sys.executable, "-m", "judgekit", "demo", "--quiet", "--out", str(tmp_path / "demo")]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    printed = {re.sub(r"\s+", " ", line).strip() for line in out.splitlines()}
    for line in shown[1].splitlines():
        if line.strip() not in ("", "…"):
            assert re.sub(r"\s+", " ", line).strip() in printed


def test_the_experiment_file_of_the_readme_is_one() -> None:
    block = re.search(r"```toml\n(.*?)```", README, re.S)
    assert block is not None
    config = parse_config(tomllib.loads(block[1]), Path("experiment.toml"))
    assert [entry.kind for entry in config.labelers] == ["containment", "judge", "utility", "provenance"]


def _commands() -> list[list[str]]:
    text = README.replace("\\\n", " ")
    found = re.findall(r"^ {4}(judgekit [^\n#]*)|`(judgekit [^`|]*)`", text, re.M)
    return [shlex.split(a or b)[1:] for a, b in found]


@pytest.mark.parametrize("command", _commands(), ids=" ".join)
def test_every_command_of_the_readme_exists_with_its_options(command: list[str]) -> None:
    words: list[str] = []
    for word in command:
        if not re.fullmatch(r"[a-z-]+", word) or word.startswith("-") or len(words) == 2:
            break
        words.append(word)
    if words[0] not in ("cache", "batch", "prompts"):
        words = words[:1]
    said = _help(*words)
    assert f"Usage: judgekit {' '.join(words)}" in said
    for option in (word.split("=")[0] for word in command if word.startswith("-")):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", said), option


def test_every_name_that_the_python_examples_use_is_public() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert len(blocks) == 3
    used = {
        node.attr
        for node in ast.walk(ast.parse("\n".join(blocks)))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jk"
    }
    assert used <= set(judgekit.__all__)


def test_every_labeler_metric_and_measure_is_in_the_readme() -> None:
    for title, entries in (("labelers", labelers()), ("answers", answer_metrics())):
        section = re.search(rf"<!-- {title} -->(.*?)<!-- /{title} -->", README, re.S)
        assert section is not None
        for name, about in entries.items():
            row = f"| `{name}` | {about.does} | {about.scale} | {about.needs} | {about.cost} |"
            assert row in section[1], row
    listed = re.search(r"what each rewards: (.*?)\s+spelled", README, re.S)
    assert listed is not None
    assert {x.strip() for x in listed[1].replace("\n", " ").rstrip(",").split(",")} == {d.name for d in catalog()}


@pytest.mark.parametrize("path", sorted((ROOT / "judgekit").rglob("*.py")), ids=str)
def test_the_examples_in_docstrings_are_true(path: Path) -> None:
    if ">>> " not in path.read_text():
        return
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
