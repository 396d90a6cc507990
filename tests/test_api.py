import os
import re
import subprocess
import sys
from typing import Any

import pytest
import typer

import judgekit
from judgekit.cli.app import app_for


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert judgekit.__all__ == sorted(judgekit.__all__)
    for name in judgekit.__all__:
        assert getattr(judgekit, name) is not None
    assert set(dir(judgekit)) == {*judgekit.__all__, "__version__"}, "whatever was imported"


def test_importing_judgekit_imports_nothing_slow() -> None:
    code = "import sys, judgekit; from judgekit.cli.app import app_for; app_for();"
    code += "dir(judgekit); print([m for m in sys.modules if m in sys.argv[1:]])"
    slow = ["pandas", "scipy", "openai", "pyarrow", "numpy", "aiohttp", "httpx2", "diskcache", "jinja2"]
    out = subprocess.run([sys.executable, "-c", code, *slow], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


LOADED = """
import sys
from typing import Any
from judgekit.cli import main
try:
    main()
except SystemExit:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("typed", [None, "judgekit sc", "judgekit --"])
def test_help_and_completion_load_few_modules_and_none_that_takes_long(typed: str | None) -> None:
    environment = {**os.environ}
    if typed:
        environment |= {"COMP_WORDS": typed, "COMP_CWORD": "1", "_JUDGEKIT_COMPLETE": "complete_bash"}
    argv = [sys.executable, "-c", LOADED, "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=True)
    assert "score" in done.stdout or "--install-completion" in done.stdout
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert {"judgekit", "typer"} <= loaded
    assert not loaded & {"pydantic", "asyncio", "ssl", "numpy", "pandas", "pyarrow", "rich", "jinja2", "sqlite3"}
    # A few more than today: an import that brings others along takes more.
    assert len([name for name in done.stderr.split() if name.startswith("judgekit")]) <= 55
    assert len(done.stderr.split()) <= 290


@pytest.mark.parametrize(
    ("args", "full"), [(["--help"], set()), (["--", "list"], {"list"}), (["score", "--help"], {"score"})]
)
def test_only_commands_that_a_line_names_are_made_in_full(args: list[str], full: set[str]) -> None:
    commands = typer.main.get_command(app_for(args)).commands  # type: ignore[attr-defined]
    every = typer.main.get_command(app_for()).commands  # type: ignore[attr-defined]
    assert full <= {*commands}
    for name, command in commands.items():
        assert (command.help, command.rich_help_panel) == (every[name].help, every[name].rich_help_panel)
        options = [param.name for param in every[name].params]
        below = {*getattr(every[name], "commands", {})}
        assert options or below
        if name not in full:
            options, below = [], set()
        assert [param.name for param in command.params] == options
        assert {*getattr(command, "commands", {})} == below


def test_jobs_and_extensions_are_imported_when_they_are_needed() -> None:
    code = "import sys, judgekit as jk; from judgekit.cli.app import app_for; app_for(['score', '--help']); jk.score;"
    code += "names = ['judgekit.extensions', 'judgekit.jobs.guard.gate', 'judgekit.jobs.audit.flow'];"
    code += "print([name for name in names if name in sys.modules]); jk.guard;"
    code += "print([name for name in names if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["[]", "['judgekit.jobs.guard.gate']"]


@pytest.mark.parametrize(
    ("entered", "most"), [("judgekit.label", 80), ("judgekit.score", 80), ("judgekit.experiment.file.load", 50)]
)
def test_what_asks_or_scores_loads_few_modules(entered: str, most: int) -> None:
    module, _, name = entered.rpartition(".")
    code = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2]); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code, module, name], capture_output=True, text=True, check=True)
    loaded = [name.split(".") for name in out.stdout.split() if name.startswith("judgekit.")]
    heavy = {"report", "people", "store", "console", "cli"}
    assert not heavy & {parts[1] for parts in loaded}
    # Labelers and answer metrics are imported when one is spelled.
    assert len(loaded) <= most


def test_no_import_has_the_allocator_keep_what_is_freed() -> None:
    code = """
import numpy as np
made = []
empty = np.empty
def noted(shape, *args, **kwargs):
    made.append(int(np.prod(shape)))
    return empty(shape, *args, **kwargs)
np.empty = noted
import judgekit as jk
for name in jk.__all__:
    getattr(jk, name)
print(max(made, default=0) > 1 << 20)
for _ in range(2):
    jk.score({"r": {"q": {"d": 1.0}}}, {"l": {"q": {"d": 1}}}, "P@1")
print(sum(size > 1 << 20 for size in made))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "1"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [("label", "labelers"), ("answer", "metrics"), ("answer", "prompts"), ("score", "measures"), ("guard", "labelers")],
)
def test_the_help_of_a_command_names_what_list_shows(command: str, kind: str, judgekit: Any) -> None:
    shown = judgekit(command, "--help", code=0).out
    listed = re.findall(r"^([\w-]+)(?::| {2})", judgekit("list", kind, code=0).out, re.MULTILINE)
    if kind == "prompts":
        listed = [name for name in listed if name.startswith("answer-")]
    assert len(listed) > 1
    assert [name for name in listed if not re.search(rf"^  {name} ", shown, re.MULTILINE)] == []
