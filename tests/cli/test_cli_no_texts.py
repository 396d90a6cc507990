"""A report to hand on: with ``--no-texts`` it holds no word of questions, passages, answers and replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli_models import as_model, experiment
from tests.scripted import Scripted, completion
from tests.servers import FaultServer, openai_error
from tests.small import TOWNS

SECRETS = [*TOWNS, "bridge", "masons", "harbour-7731", "refused-4410"]
FILES = ("report.html", "report.json")


def says_secrets(body: dict[str, Any], seen: int) -> Scripted:
    """Refuse what is about one town, in the words of the request; answer another without a verdict, or break off."""
    text = " ".join(message["content"] for message in body["messages"])
    if "Borvik" in text:
        return openai_error(400, f"refused-4410: {text[-300:]}", code="content_policy_violation")
    if "Cantry" in text:
        return completion("harbour-7731 perhaps", finish_reason="stop" if "passage" in text else "length")
    answered: Scripted = as_model("judge")(body, seen)
    return answered


@pytest.fixture
def run(folder: Path, fault_server: FaultServer) -> list[str]:
    """The command that runs an experiment in which some things go wrong."""
    fault_server.answer = says_secrets
    return experiment(folder, fault_server)


def leaks(folder: Path, *names: str) -> set[str]:
    text = "".join((folder / "out" / name).read_text() for name in names)
    return {secret for secret in SECRETS if secret in text}


def test_a_report_without_texts_holds_none(judgekit, folder, run):
    judgekit(*run, code=1)
    assert leaks(folder, *FILES) >= {"harbour-7731", "refused-4410"}
    judgekit("report", "out", "--no-texts", code=0)
    assert leaks(folder, "report.html") == set()
    with (folder / "models.toml").open("a") as file:
        file.write("[report]\ntexts = false\n")
    assert judgekit(*run).code == 1
    assert leaks(folder, *FILES) == set()
    examples = json.loads((folder / "out" / "report.json").read_text())["labelings"][1]["examples"]
    assert {example["raw"] for example in examples} == {"left out", ""}
