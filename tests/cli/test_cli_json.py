"""`--json`: one object of one shape for every command."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from judgekit.cli.app import app_for
from tests.cli.test_cli_annotate import BINARY, rated
from tests.cli.test_cli_stages import COMPARE
from tests.data.traces.test_reading import PHOENIX, lines
from tests.mock import URL

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text().split("## For scripts")[1].split("## ")[0]
COMMON: Final = {"command", "files", "missing", "warnings", "exit_code"}
DATA = ("--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--run", "poor.trec")
MOCK = ("--endpoint", URL, "--model", "mock", "--cache", "store")
WITHOUT: Final = set[str]()
"""The commands that have no results of their own for machines."""
LINES: Final = (
    ("run", "experiment.toml", "--out", "out", "--cache", "store"),
    ("plan", "experiment.toml", "--out", "pilot.csv", "--cache", "store"),
    ("choose", "experiment.toml", "--margin", 2, "--out", "choice", "--cache", "store"),
    ("report", "out"),
    ("build", "out", "--labeling", "judge", "--out", "truth", "--cache", "store"),
    ("label", "containment", *DATA, "--out", "found.qrels"),
    ("answer", *DATA, "--depth", 2, *MOCK, "--out", "quality.csv"),
    ("score", "--run", "good.trec", "--run", "poor.trec", "--qrels", "gold.qrels", "--baseline", "good"),
    COMPARE,
    ("agree", "--qrels", "gold.qrels", "--qrels", "found.qrels"),
    ("audit", "out", "--cache", "store"),
    ("cache",),
    ("carry", "gold.qrels", "--docs", "docs.jsonl", "--docs", "docs.jsonl", "--out", "new.qrels"),
    ("chunks", "pages.jsonl", "cut.jsonl", "--out", "placed.jsonl"),
    ("guard", "good.trec", "poor.trec", "--qrels", "gold.qrels"),
    ("judge-test", "judge", "--qrels", "gold.qrels", *DATA, *MOCK),
    ("nuggets", "experiment.toml", "--out", "nuggets.jsonl", "--cache", "store"),
    ("init", "queries.jsonl", "docs.jsonl", "good.trec", "--out", "made"),
    ("traces", "spans.jsonl", "--out", "traced"),
    ("trust", "experiment.toml"),
    ("list", "labelers"),
    ("check-endpoint", "--endpoint", URL, "--model", "mock"),
    ("convert", "good.trec", "again.trec"),
    ("annotate sample", "out", "--n", 2, *BINARY, "--out", "other.jsonl"),
    ("annotate read", "s.jsonl", "s.csv", "--out", "people.qrels"),
    ("annotate correct", "people.qrels", "out", "--out", "corrected.csv", "--measures", "P@1"),
    ("batch export", "experiment.toml", "--out", "batch.jsonl"),
    ("batch import", "none.jsonl"),
    ("cache forget", "--model", "nobody"),
)


def fields() -> dict[str, set[str]]:
    """Return the fields of each command that the page lists."""
    found = {}
    for names, told in re.findall(r"^\| (`.+?) \| (`.+) \|$", PAGE, re.MULTILINE):
        without = re.sub(r"\([^()]*(\([^()]*\))?[^()]*\)", "", told).split(";")[0]
        for name in re.findall(r"`([\w -]+)`", names):
            found[name] = set(re.findall(r"`(\w+)`", without))
    return found


def test_every_command_tells_machines_what_the_page_lists(
    judgekit: Any, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGEKIT_CACHE", "store")
    (finished / "scores.csv").write_text("labeling,run,measure,query_id,value\nl,good,AP,q0,0\nl,good,AP,q1,1\n")
    (finished / "quality.csv").write_text("query_id,run,value\nq0,good,0\nq1,good,1\n")
    (finished / "pages.jsonl").write_text('{"page_id": "p", "text": "Arlen has a mill. It was built in 1801."}\n')
    (finished / "cut.jsonl").write_text('{"doc_id": "a", "page_id": "p", "text": "Arlen has a mill."}\n')
    lines(finished / "spans.jsonl", PHOENIX)
    (finished / "none.jsonl").touch()
    judgekit("annotate", "sample", "out", "--n", 5, *BINARY, "--out", "s.jsonl", code=0)
    rated(finished / "s.csv")
    listed = fields()
    for line in (COMPARE, *(line for line in LINES if line is not COMPARE)):
        said = judgekit(*line[0].split(), *line[1:], "--json")
        found = json.loads(said.out)
        assert {*found} - COMMON == listed[line[0]], line
        assert {*found} > COMMON, line
        assert found["command"] == line[0]
        assert found["exit_code"] == said.code, line
        assert "judgekit: " not in said.err, line
        for name in found["files"]:
            assert (finished / name).exists(), line
        for sentence in (*found["missing"], *found["warnings"]):
            assert isinstance(sentence, str), line


def test_the_page_lists_every_command_with_the_option() -> None:
    group: Any = typer.main.get_command(app_for())
    commands = dict(group.commands)
    for name, command in group.commands.items():
        commands |= {f"{name} {below}": more for below, more in getattr(command, "commands", {}).items()}
    shown = {name for name, command in commands.items() if not command.hidden and command.params != []}
    having = {name for name in shown if any(param.name == "as_json" for param in commands[name].params)}
    assert having == {*fields()}
    assert shown - having == WITHOUT
    # `demo` ends as `run` does.
    assert having - {"demo"} == {str(line[0]) for line in LINES}


@pytest.mark.parametrize(
    ("option", "field"), [(("--dry-run",), "plan"), (("--part", "1/2"), "part"), (("--batch", "fetch"), "batches")]
)
def test_a_job_that_makes_no_results_tells_machines_what_it_did(
    option: tuple[str, ...], field: str, judgekit: Any, folder: Path
) -> None:
    line = ("label", "judge", *DATA, *MOCK, "--out", "judge.qrels")
    said = json.loads(judgekit(*line, *option, "--json", code=0).out)
    assert {*said} == COMMON | {field}
    assert said["command"] == "label"
    if field == "plan":
        rows = {row["stage"]: row for row in said["plan"]}
        assert rows["all"]["to_send"] == rows["all"]["requests"] > 0
        assert rows["all"]["money"] is None
    if field == "part":
        assert said["part"]["sent"] > 0
    assert not (folder / "judge.qrels").exists()


def test_files_that_make_no_experiment_are_an_error_and_no_text(judgekit: Any, folder: Path) -> None:
    said = judgekit("init", "queries.jsonl", "good.trec", "--out", "made", "--json", code=2)
    assert said.out == ""
    assert said.err.startswith("judgekit: there are no passages here")


def test_labels_that_are_missing_are_a_field_and_no_text(judgekit: Any, fault_server: Any) -> None:
    fault_server.answer = lambda body, seen: "Hard to tell." if "mill" in str(body["messages"]) else "Yes"
    server = ("--endpoint", fault_server.base_url, "--model", "m", "--cache", "store")
    said = judgekit("label", "judge", *DATA, *server, "--out", "judge.qrels", "--json", code=1)
    found = json.loads(said.out)
    assert found["exit_code"] == 1
    (sentence,) = found["missing"]
    assert "labels are missing" in sentence
    assert found["counts"]["unparsed"] > 0
    assert sentence not in said.err
