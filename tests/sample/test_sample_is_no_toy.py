"""With the stand-in, the sample's runs, labelings and answers differ enough to be worth comparing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from judgekit.answers.answerer import make_answerer
from judgekit.answers.quality import metric
from judgekit.config import Config, load
from judgekit.data.documents import Fields, MemoryDocs, Unit
from judgekit.data.pool import pool
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.runs import Run
from judgekit.data.trec import read_run
from judgekit.labelers.base import build, checked
from judgekit.llm.offline import OfflineTransport
from judgekit.llm.types import Endpoint, Outcome, Reply, Request
from judgekit.sample import EXPERIMENT

DEPTH = 5
WEAK = "bm25_title"


@dataclass(frozen=True)
class Context:
    """What labelers and answerer need of an experiment."""

    config: Config
    docs: MemoryDocs

    @property
    def fields(self) -> Fields:
        return self.config.data.fields

    def endpoint(self, name: str | None) -> Endpoint:
        return self.config.endpoints[name or "offline"].endpoint(name or "offline")

    def path(self, text: str) -> Path:
        return self.config.resolve(text)


@dataclass(frozen=True)
class Outcomes:
    """Labels by labeling, row = pair; exact match and gold recall at DEPTH by run, row = query."""

    labels: Mapping[str, np.ndarray]
    exact: Mapping[str, np.ndarray]
    recall: Mapping[str, np.ndarray]


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    config = load(EXPERIMENT)
    queries = read_queries(config.resolve(config.data.queries))
    context = Context(config, read_docs(config.resolve(config.data.docs)))
    runs = {name: read_run(config.resolve(path), name) for name, path in config.runs.items()}
    return asyncio.run(_outcomes(context, queries, runs))


async def _outcomes(context: Context, queries: Mapping, runs: Mapping[str, Run]) -> Outcomes:
    transport = OfflineTransport()

    async def ask(requests: Sequence[Request]) -> list[Outcome]:
        sent = [await transport.send(r.endpoint, r.body) for r in requests]
        return [Reply(r.key, raw.decode()) for r, (_, _, raw) in zip(requests, sent, strict=True)]

    pooled = pool(list(runs.values()), queries, DEPTH)
    labels: dict[str, np.ndarray] = {}
    for entry in context.config.labelers:
        labeler = build(entry.spec, context)
        found = []
        for query_id, doc_ids in pooled.items():
            for unit in labeler.units(queries[query_id], context.docs.get(doc_ids)):
                found += checked(labeler, unit, await ask(labeler.requests(unit, [])))
        assert all(label.relevance is not None for label in found)
        labels[entry.name or entry.kind] = np.array([label.relevance for label in found])
    answers = context.config.answers
    answerer = make_answerer(context.endpoint(answers.endpoint), answers.prompt, context, answers.options)
    em = metric("em", context)
    exact: dict[str, np.ndarray] = {}
    for name, run in runs.items():
        values = []
        for query_id, query in queries.items():
            unit = Unit(query, tuple(context.docs.get(run.top(query_id, DEPTH))))
            answer = answerer.answer(unit, await ask(answerer.requests(unit, [])))
            values.append(em.score(answer, query)[0])
        exact[name] = np.array(values, dtype=float)
    lines = (context.path("provenance.qrels")).read_text(encoding="utf-8").splitlines()
    gold = {line.split()[0]: line.split()[2] for line in lines}
    recall = {
        name: np.array([gold[q] in run.top(q, DEPTH) for q in queries], dtype=float) for name, run in runs.items()
    }
    return Outcomes(labels, exact, recall)


def test_answers_are_neither_all_right_nor_all_wrong_and_differ_between_runs(outcomes: Outcomes) -> None:
    means = {name: float(values.mean()) for name, values in outcomes.exact.items()}
    assert all(0.25 <= mean <= 0.75 for mean in means.values()), means
    assert max(means.values()) - min(means.values()) >= 0.1, means


def test_the_weak_run_finds_the_least_gold(outcomes: Outcomes) -> None:
    means = {name: float(values.mean()) for name, values in outcomes.recall.items()}
    assert min(means, key=means.__getitem__) == WEAK
    assert max(means.values()) - means[WEAK] >= 0.2
    assert max(means.values()) < 0.95


def test_runs_answer_different_questions(outcomes: Outcomes) -> None:
    right = np.array(list(outcomes.exact.values()))
    mixed = (right.min(axis=0) == 0) & (right.max(axis=0) == 1)
    assert mixed.mean() >= 0.3


def test_labelings_agree_with_each_other_only_in_part(outcomes: Outcomes) -> None:
    names = list(outcomes.labels)
    assert names == ["containment", "judge", "erag", "provenance"]
    together = np.corrcoef([outcomes.labels[name] for name in names])
    apart = together[np.triu_indices(len(names), 1)]
    assert apart.min() >= 0.2
    assert apart.max() <= 0.9
    counts = {name: values.sum() for name, values in outcomes.labels.items()}
    assert counts["erag"] < counts["provenance"] < counts["containment"] < counts["judge"], counts


def test_the_numbers_in_the_readme_are_those_of_the_stand_in(outcomes: Outcomes) -> None:
    readme = EXPERIMENT.with_name("README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (\w+) \| (?:\.\d+ / ){2}(\.\d+) / \.\d+ \| (?:\.\d+ / ){2}(\.\d+) / \.\d+ \|$", readme, re.MULTILINE
    )
    written = {run: (float(recall), float(exact)) for run, recall, exact in rows}
    seen = {run: (outcomes.recall[run].mean(), outcomes.exact[run].mean()) for run in outcomes.exact}
    assert {run: pytest.approx(values, abs=0.0051) for run, values in written.items()} == seen
