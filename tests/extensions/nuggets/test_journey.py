"""Long answers from `init` to the decision: 24 questions, three runs, nuggets, citations and people's grades.

Questions, references, answers and grades are ours (`long_answers.jsonl`), and each passage holds the reference of one
question. The labels say yes or no; by default a script does, and with JUDGEKIT_JOURNEY_ENDPOINT the address of a real
model. Nugget requests go to the script in either case.
"""

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pandas as pd
import pytest

from tests.commands import in_process
from tests.scripted import Scripted, completion
from tests.servers import FaultServer
from tests.small import edited

ROWS = [json.loads(line) for line in Path(__file__).with_name("long_answers.jsonl").read_text().splitlines()]
RUNS = tuple(ROWS[0]["app"])
GRADED = 12
RECALL = "nugget_recall(file=nuggets.jsonl, endpoint=writer)"


def listed(row: dict[str, Any], run: str) -> list[str]:
    """Return ten passages: the question's own where a right answer cites it, amid those of other questions."""
    start = ROWS.index(row) + 1
    others = [other["query_id"] for other in ROWS[start:] + ROWS[: start - 1]]
    cited = re.search(r"\[(\d)\]", row["app"][run])
    found = [] if cited is None or row["people"][run] == "Wrong" else [row["query_id"]]
    above = int(cited[1]) - 1 if cited else 0
    return [*others[:above], *found, *others[above:]][:10]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a team has: questions with long references, passages, three runs, and the answers that were made of them."""
    for run in RUNS:
        lines = [
            f"{row['query_id']} Q0 {doc} {rank} {11 - rank} {run}\n"
            for row in ROWS
            for rank, doc in enumerate(listed(row, run), 1)
        ]
        (tmp_path / f"{run}.trec").write_text("".join(lines))
    docs = [{"doc_id": row["query_id"], "text": row["answers"][0]} for row in ROWS]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    questions = [{key: row[key] for key in ("query_id", "text", "answers")} for row in ROWS]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions))
    answers = [(row["query_id"], run, 5, text) for row in ROWS for run, text in row["app"].items()]
    with (tmp_path / "app.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("query_id", "run", "depth", "answer"), *answers])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}", text.casefold()))


def within(prompt: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}.*?>\n(.*?)\n</{tag}>", prompt, re.S)


def support(claim: str, text: str) -> str:
    """Return what a careful reader might say: how many of the claim's words stand in the text?"""
    share = len(words(claim) & words(text)) / max(len(words(claim)), 1)
    return "support" if share >= 0.7 else "partial" if share >= 0.45 else "none"


def by_overlap(prompt: str) -> list[str]:
    (answer,) = within(prompt, "answer")
    if "check citations" in prompt:
        return [support(answer, passage) for passage in within(prompt, "passage")]
    (facts,) = within(prompt, "references")
    return [support(fact.partition(". ")[2], answer) for fact in facts.splitlines()]


# Replies as models give them. The first four are read as they stand; the others are asked for again.
FORMS: dict[str, Callable[[list[str]], Scripted]] = {
    "plain": lambda said: completion(json.dumps(said)),
    "fenced": lambda said: completion(f"```json\n{json.dumps(said)}\n```"),
    "in capitals": lambda said: completion(json.dumps(said).upper()),
    "behind reasoning": lambda said: completion(f"<think>Let me see.</think>\n{json.dumps(said)}"),
    "cut": lambda said: completion(json.dumps(said)[:-4], finish_reason="length"),
    "repeated": lambda said: completion(json.dumps(said) * 2),
    "out of order": lambda said: completion(json.dumps([f"{n}: {word}" for n, word in enumerate(said, 1)][::-1])),
    "too few": lambda said: completion(json.dumps(said[:-1])),
}
SPOILT = "nq1092"
"""The question whose answers get no readable list, however often they are asked about."""


class Model:
    """A scripted model: it assigns nuggets by the words that they share, in replies of every form."""

    def __init__(self) -> None:
        self.forms: Counter[str] = Counter()
        self.spoilt = next(row["text"] for row in ROWS if row["query_id"] == SPOILT)

    def __call__(self, body: dict[str, Any], seen: int) -> Scripted | str:
        first = str(body["messages"][0]["content"])
        if "JSON list of" not in first:
            (question,), passages = within(first, "question"), within(first, "passage")
            return "Yes" if support(question, passages[0]) != "none" else "No"
        said = by_overlap(first)
        form = "too few" if self.spoilt in first and "facts" in first else [*FORMS][crc32(first.encode()) % len(FORMS)]
        asked_again = len(body["messages"]) > 1 or body["max_tokens"] > 512
        if asked_again and self.spoilt not in first:
            form = "plain"
        self.forms[form] += 1
        return FORMS[form](said)


def people(sheet: Path, done: Path) -> None:
    """Fill in a sheet as people did who read the answers."""
    grades = {(row["query_id"], text): row["people"][run] for row in ROWS for run, text in row["app"].items()}
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    for row in rows:
        row["rating"] = grades[row["query_id"], row["text"]]
    with done.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


TABLES = """
endpoint = "reader"

[endpoints.writer]
base_url = "{writer}"
model = "writer"

[[labelers]]
kind = "nuggets"
endpoint = "writer"
file = "nuggets.jsonl"

[answers]"""
CITATIONS = "citation_precision(endpoint=writer)", "citation_recall(endpoint=writer)"


def declare(experiment: Path, writer: str) -> None:
    """Edit what `init` wrote: two endpoints, two labelers that ask them, and metrics of long answers."""
    reader = os.environ.get("JUDGEKIT_JOURNEY_ENDPOINT", writer)
    edited(experiment, "[endpoints.local]", "[endpoints.reader]")
    edited(experiment, "http://localhost:8000/v1", reader)
    edited(experiment, '"my-model"', '"reader"')
    text = experiment.read_text()
    start = text.index('[[labelers]]\nname = "erag"')
    experiment.write_text(text[:start] + text[text.index("[answers]") - 1 :])
    edited(experiment, "\n[answers]", TABLES.format(writer=writer))
    edited(experiment, 'metrics = ["f1"]', f"metrics = {json.dumps([RECALL, *CITATIONS])}")
    edited(experiment, 'outcome = "f1" ', f'outcome = "{RECALL}" ')


def edit_nuggets(path: Path) -> dict[str, list[str]]:
    """Edit the file of nuggets by hand, wrongly at first; return the vital ones by question."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["nuggets"][0]["importance"] = "okay"
    lines[2]["nuggets"][1]["text"] = "It holds T cells, B cells, plasma cells and macrophages."
    del lines[4]["nuggets"][2]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {
        line["query_id"]: [nugget["text"] for nugget in line["nuggets"] if nugget["importance"] == "vital"]
        for line in lines
    }


def expected(vital: dict[str, list[str]]) -> dict[tuple[str, str], float]:
    """Return the share of vital nuggets that each answer states, for the answers with a value."""
    shares = {}
    for row in ROWS:
        for run, text in row["app"].items():
            plain = re.sub(r" ?\[\d\]", "", text)
            stated = [support(nugget, plain) == "support" for nugget in vital[row["query_id"]]]
            shares[run, row["query_id"]] = sum(stated) / len(stated)
            if row["query_id"] == SPOILT and text != "unknown":
                del shares[run, SPOILT]
    return shares


def test_long_answers_go_from_init_to_the_decision(
    mine: Path, capfd: pytest.CaptureFixture[str], fault_server: FaultServer
) -> None:
    judgekit = in_process(capfd)
    fault_server.answer = model = Model()
    judgekit("init", ".", code=0)
    declare(mine / "experiment.toml", fault_server.base_url)

    made = judgekit("nuggets", "experiment.toml", "--endpoint", "experiment.toml:writer", code=0).out
    assert "72 nuggets (72 vital) for 24 questions, 24 of them from reference answers: nuggets.jsonl" in made
    assert fault_server.seen == [], "references need no LLM"
    vital = edit_nuggets(mine / "nuggets.jsonl")
    edited(mine / "nuggets.jsonl", '"okay"', '"nice"')
    said = judgekit("run", "experiment.toml", code=2).err
    assert "nuggets.jsonl, line 2: nugget 1: importance must be vital or okay, not 'nice'" in said
    edited(mine / "nuggets.jsonl", '"nice"', '"okay"')

    judgekit("plan", "experiment.toml", code=0)
    ran = judgekit("run", "experiment.toml", "--out", "results", "--cache", "store", code=1)
    decision = " ".join(ran.out.split())
    assert "Answers are rated by writer, not checked by people. Ship dense: it is shown to be the best of 3" in decision
    assert "Keep nuggets(" in decision
    assert f"1 lack them for all ('{SPOILT}')" in decision
    assert set(model.forms) == {*FORMS}

    quality = pd.concat(map(pd.read_parquet, (mine / "results" / "answers").glob("*.parquet")))
    recall = quality[quality["metric"].str.startswith("nugget_recall")]
    missing = recall[recall["value"].isna()]
    assert set(zip(missing["query_id"], missing["status"], strict=True)) == {(SPOILT, "unparsed")}, "never 0"
    values = recall.dropna(subset="value").set_index(["run", "query_id"])["value"]
    assert dict(values) == pytest.approx(expected(vital)), "whatever form the replies had"
    cited = quality[quality["metric"].str.startswith("citation")].groupby(["metric", "run"])["value"].mean()
    assert all(cited[metric]["dense"] > cited[metric]["bm25_title"] for metric in cited.index.levels[0])

    sent = len(fault_server.seen)
    sample = ["annotate", "sample", "results", "--design", "answers", "--n", GRADED, "-o", "sheet.jsonl"]
    assert f"tasks about {GRADED} of 24 queries" in judgekit(*sample, code=0).out
    people(mine / "sheet.csv", mine / "done.csv")
    judgekit("annotate", "read", "sheet.jsonl", "done.csv", "-o", "grades.qrels", code=0)
    edited(mine / "experiment.toml", "depths = [5]", 'grades = "grades.qrels"\ndepths = [5]')
    ran = judgekit("run", "experiment.toml", "--out", "graded", "--cache", "store", code=1)
    decision = " ".join(ran.out.split())
    assert "People graded the answers to 12 of 23 questions, and from 50 on the quality corrected by them" in decision
    assert "Corrected by people, dense leads bm25 by" in decision
    assert len(fault_server.seen) == sent, "nothing is paid twice"
