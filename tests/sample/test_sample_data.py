"""The bundled sample: complete, readable, varied, and consistent with the script that made its runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from judgekit.answers.text import normalize
from judgekit.client.recorded import Recording
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.trec import read_qrels, read_run
from judgekit.experiment.file import load
from judgekit.sample import EXPERIMENT
from judgekit.sample.make_runs import make_runs

HERE = EXPERIMENT.parent
RUNS = sorted((HERE / "runs").glob("*.trec"))


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


DOCS = rows("docs.jsonl")
QUERIES = rows("queries.jsonl")
TEXTS = {d["doc_id"]: d["text"] for d in DOCS}


def gold() -> dict[str, str]:
    lines = (HERE / "provenance.qrels").read_text(encoding="utf-8").splitlines()
    return {line.split()[0]: line.split()[2] for line in lines}


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def sentences() -> list[tuple[str, str]]:
    return [(d["doc_id"], s) for d in DOCS for s in re.split(r"(?<=[.!?]) ", d["text"])]


def test_it_is_large_enough() -> None:
    assert len(QUERIES) >= 60
    assert len(DOCS) >= 300
    assert len(RUNS) >= 5


def test_the_readers_of_judgekit_read_it() -> None:
    assert len(read_queries(HERE / "queries.jsonl")) == len(QUERIES)
    assert len(read_docs(HERE / "docs.jsonl")) == len(DOCS)
    assert len(read_qrels(HERE / "provenance.qrels")) == len(QUERIES)


def test_ids_and_questions_are_unique() -> None:
    assert len({d["doc_id"] for d in DOCS}) == len(DOCS)
    assert len({q["query_id"] for q in QUERIES}) == len(QUERIES)
    assert len({q["text"].lower() for q in QUERIES}) == len(QUERIES)


def test_passages_are_short_and_belong_to_pages() -> None:
    for d in DOCS:
        assert 40 <= len(d["text"].split()) <= 90, d["doc_id"]
        assert d["doc_id"].startswith(d["page_id"])
        assert d["title"]
        assert d["text"] == d["text"].strip()
        assert "  " not in d["text"]
        assert d["text"][-1] in ".?!", d["doc_id"]
    titles = {(d["page_id"], d["title"]) for d in DOCS}
    assert len(titles) == len({page for page, _ in titles}) == len({title for _, title in titles})


def test_answers_are_short() -> None:
    for q in QUERIES:
        assert q["text"].endswith("?")
        assert q["answers"]
        assert all(1 <= len(answer.split()) <= 8 for answer in q["answers"])


def test_every_question_has_one_gold_passage_that_holds_an_answer_but_for_two_paraphrased_ones() -> None:
    golds = gold()
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


def test_many_answers_also_stand_in_passages_that_are_not_gold() -> None:
    golds = gold()
    normal = {doc_id: f" {normalize(text)} " for doc_id, text in TEXTS.items()}
    elsewhere = 0
    for q in QUERIES:
        needles = [f" {normalize(a)} " for a in q["answers"]]
        elsewhere += any(n in t for d, t in normal.items() if d != golds[q["query_id"]] for n in needles)
    assert elsewhere >= len(QUERIES) / 3


def test_no_sentence_is_there_twice() -> None:
    counts = Counter(s for _, s in sentences())
    assert [s for s, n in counts.items() if n > 1] == []


def test_sentences_do_not_come_from_a_template() -> None:
    """With names and numbers masked, hardly two sentences of six words or more are the same or nearly so."""
    masked = []
    for doc_id, sentence in sentences():
        shape = re.sub(r"\b(?:[A-Z][\w’'-]*|\d[\d.,]*)", "#", sentence[1:])
        parts = words(shape.replace("#", " xx "))
        if len(parts) >= 6:
            masked.append((doc_id, frozenset(zip(parts, parts[1:], parts[2:], strict=False))))
    holding: dict[tuple[str, ...], list[int]] = {}
    for i, (_, grams) in enumerate(masked):
        for gram in grams:
            holding.setdefault(gram, []).append(i)
    shared = Counter(pair for places in holding.values() for pair in combinations(places, 2))
    alike = [
        (masked[i][0], masked[j][0])
        for (i, j), n in shared.items()
        if n > 0.5 * (len(masked[i][1]) + len(masked[j][1]) - n)
    ]
    assert alike == []


def test_passages_begin_in_many_ways() -> None:
    openings = Counter(" ".join(words(text)[:2]) for text in TEXTS.values())
    assert max(openings.values()) <= 8


@pytest.mark.parametrize("path", RUNS, ids=lambda p: p.stem)
def test_runs_are_well_formed(path: Path) -> None:
    run = read_run(path)
    known = {q["query_id"] for q in QUERIES}
    assert set(run.query_ids) <= known
    assert set(run.doc_ids) <= set(TEXTS)
    for line in path.read_text(encoding="utf-8").splitlines():
        query_id, _, doc_id, rank, _, name = line.split()
        assert name == path.stem
        assert run.top(query_id)[int(rank) - 1] == doc_id


def test_making_the_runs_again_gives_the_same_bytes() -> None:
    made = make_runs({q["query_id"]: q["text"] for q in QUERIES}, DOCS)
    assert {name: text.encode() for name, text in made.items()} == {p.stem: p.read_bytes() for p in RUNS}


def test_the_experiment_file_names_all_runs_and_the_recorded_replies() -> None:
    config = load(EXPERIMENT)
    assert {name: config.resolve(path) for name, path in config.runs.items()} == {p.stem: p for p in RUNS}
    assert [e.model for e in config.endpoints.values()] == [Recording.read().server["model"]]
    assert [e.base_url for e in config.endpoints.values()] == ["recorded:"]
    assert [labeler.kind for labeler in config.labelers] == ["containment", "judge", "utility", "provenance"]
