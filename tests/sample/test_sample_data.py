"""The bundled sample: complete, readable, varied, and consistent with the script that made its runs."""

import json
from typing import Any

from examples.sample.make_runs import make_runs
from judgekit.answers.text import normalize
from judgekit.client.transports import recorded
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.trec import read_qrels
from judgekit.experiment.file import load
from judgekit.sample import EXPERIMENT

HERE = EXPERIMENT.parent
RUNS = sorted((HERE / "runs").glob("*.trec"))


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


DOCS = rows("docs.jsonl")
QUERIES = rows("queries.jsonl")
TEXTS = {d["doc_id"]: d["text"] for d in DOCS}


def test_the_readers_of_judgekit_read_it_and_no_question_is_there_twice():
    assert len(read_queries(HERE / "queries.jsonl")) == len(QUERIES) == len({q["text"].lower() for q in QUERIES})
    assert len(read_docs(HERE / "docs.jsonl")) == len(DOCS)
    assert len(read_qrels(HERE / "provenance.qrels")) == len(QUERIES)


def test_every_question_has_one_gold_passage_that_holds_an_answer_but_for_two_paraphrased_ones():
    lines = (HERE / "provenance.qrels").read_text(encoding="utf-8").splitlines()
    golds = {line.split()[0]: line.split()[2] for line in lines}
    assert list(golds) == [q["query_id"] for q in QUERIES]
    without = []
    for q in QUERIES:
        text = f" {normalize(TEXTS[golds[q['query_id']]])} "
        if not any(f" {normalize(answer)} " in text for answer in q["answers"]):
            without.append(q["text"])
    assert without == [
        "How many minutes does it take to descale the Lumo 3?",
        "When was the Vasa raised from the sea bed?",
    ]


def test_making_the_runs_again_gives_the_same_bytes():
    made = make_runs({q["query_id"]: q["text"] for q in QUERIES}, DOCS)
    assert {name: text.encode() for name, text in made.items()} == {p.stem: p.read_bytes() for p in RUNS}


def test_the_experiment_file_names_all_runs_and_the_recorded_replies():
    config = load(EXPERIMENT)
    assert {name: config.resolve(run.file) for name, run in config.runs.items()} == {p.stem: p for p in RUNS}
    assert [e.model for e in config.endpoints.values()] == [recorded()[0]["model"]]
    assert [e.base_url for e in config.endpoints.values()] == ["recorded:"]
    assert [labeler.kind for labeler in config.labelers] == ["containment", "judge", "utility", "provenance"]
