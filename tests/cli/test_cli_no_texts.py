"""A report to hand on: with ``--no-texts`` it holds no word of questions, references, passages, answers and replies."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli_models import as_model, experiment
from tests.scripted import Scripted, completion
from tests.servers import FaultServer, openai_error
from tests.small import TOWNS

SECRETS = [*TOWNS, "bridge", "masons", "harbour-7731", "refused-4410", "reference-5512"]


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
    command = experiment(folder, fault_server)
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    for query in queries:
        query["answers"] = [*query["answers"], "reference-5512"]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(query)}\n" for query in queries))
    return command


def leaks(folder: Path) -> set[str]:
    """Which secrets report.json and report.html hold, in the packed rows of the page too."""
    page = (folder / "out" / "report.html").read_text()
    packed = re.findall(r'<script type="text/plain"[^>]*>([^<]+)<', page)
    texts = [zlib.decompress(base64.b64decode(one)).decode() for one in packed]
    text = "".join([(folder / "out" / "report.json").read_text(), page, *texts])
    return {secret for secret in SECRETS if secret in text}


def test_a_report_without_texts_holds_none(judgekit, folder, run):
    judgekit(*run, code=1)
    assert leaks(folder) == set(SECRETS)
    rows = folder / "out" / "queries" / "0000.js"  # what a page that was too large for one file left
    rows.parent.mkdir()
    rows.write_text("harbour-7731")
    assert judgekit("report", "out", "--no-texts").code == 0
    assert not rows.exists()
    assert leaks(folder) == set()
    assert judgekit("report", "out").code == 0
    assert leaks(folder)
