"""A package's plug-in adds a step, a command, a form and a name, as judgekit's own do."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from judgekit.errors import UsageError
from judgekit.registry import Register
from tests.small import edited, make_experiment

PAGE = Path(__file__).resolve().parent.parent / "docs" / "extending.md"
MORE = '''

@jk.register.command("greet")
def greet(name: str = "you"):
    """Greet."""
    print(f"hello {name}")


@jk.register.form("pairs")
def pairs(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        query_id, text = line.split("=")
        yield f"line {number}", {"query_id": query_id, "text": text}


def twice(number):
    return 2 * number


jk.register.names(__name__, "twice")
'''


class Named:
    name = "named"


def test_steps_stand_where_they_say_and_a_cell_run_again_replaces_its_own() -> None:
    register = Register()
    for name in ("label", "answer", "report"):
        register.step()(type(name, (), {"name": name}))
    for _ in range(2):
        register.step(after="answer")(type("Last", (), {"name": "last"}))
        register.step(after="label")(Named)
        register.step(after="named")(type("Third", (), {"name": "third"}))
    assert [step.name for step in register.steps()] == ["label", "named", "third", "answer", "last", "report"]
    register.step(after="nmed")(type("Lost", (), {"name": "lost"}))
    with pytest.raises(UsageError, match="the step 'lost' must come after a known one: unknown step 'nmed'"):
        register.steps()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An installed package whose module is the page's example and more."""
    block = re.search(r"<!-- file: my_words.py -->\n```python\n(.*?)```", PAGE.read_text(), re.S)
    assert block
    (tmp_path / "my_words.py").write_text(block[1] + MORE)
    info = tmp_path / "words-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: words\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[judgekit.plugins]\nwords = my_words\n")
    return tmp_path


def ran(package: Path, code: str, *lines: str) -> str:
    """Return what a fresh Python says that sees the package, from code and then from command lines."""
    code += "\nimport sys\nfrom judgekit.cli import main\nfor line in sys.argv[1:]:"
    code += "\n    try: main(line.split())\n    except SystemExit as left: print('left with', left.code)"
    paths = [str(package), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", code, *lines]
    done = subprocess.run(command, stdout=-1, stderr=subprocess.STDOUT, text=True, env=environment, cwd=package)
    return done.stdout


def test_a_package_adds_a_step_with_its_file_and_its_section(package: Path) -> None:
    edited(make_experiment(package) / "experiment.toml", "[answers]", '[answers]\nprompt = "answer-long"')
    ran(package, "", "run experiment.toml --out out --cache store")
    out = package / "out"
    words = pd.read_csv(out / "words.csv")
    assert [*words] == ["run", "query_id", "words"]
    assert len(words) == len(pd.read_parquet(out / "answers" / "answer-long.parquet"))
    assert "Words" in [one["title"] for one in json.loads((out / "report.json").read_text())["sections"]]
    assert "words.csv" in json.loads((out / "manifest.json").read_text())["results"]


def test_a_package_adds_a_command_a_form_and_a_name(package: Path) -> None:
    (package / "queries.txt").write_text("q1=Why?\nq2=When?\n")
    code = "import judgekit as jk; print(jk.twice(21), [q.text for q in jk.read_queries('pairs:queries.txt').values()])"
    code += "\ntry: jk.thrice\nexcept AttributeError as error: print(error)"
    said = ran(package, code, "greet --name world", "--help")
    assert said.startswith("42 ['Why?', 'When?']\nmodule 'judgekit' has no attribute 'thrice'\nhello world\n")
    assert re.search("greet +Greet", said)
