"""A small collection with runs of known quality, and assessors who judge it."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgekit.collection import Collection
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.labelings import Labeling, Scale
from judgekit.people.reading import People, read_judgments, resolve
from judgekit.people.sheet import page_of
from judgekit.people.tasks import Sample

QUERIES, DOCS, DEPTH = 60, 6, 4


@pytest.fixture(scope="session")
def truth() -> dict[tuple[str, str], int]:
    random = np.random.default_rng(5)
    return {(f"q{q:02d}", f"q{q:02d}d{d}"): int(random.random() < 0.35) for q in range(QUERIES) for d in range(DOCS)}


@pytest.fixture(scope="session")
def collection(truth) -> Collection:
    """60 queries of 6 documents each, and three runs: one that knows what is relevant, one partly, one not at all."""
    random = np.random.default_rng(6)
    queries = [Query(f"q{q:02d}", f"What is <b>{q}</b>?") for q in range(QUERIES)]
    docs = MemoryDocs(Doc(doc, f"Text of {doc}, which is about {query}.", f"Title {doc}") for query, doc in truth)
    runs = {}
    for name, skill in (("good", 2.0), ("fair", 0.7), ("poor", 0.0)):
        rows = [(q, d, skill * label + random.standard_normal()) for (q, d), label in truth.items()]
        runs[name] = pd.DataFrame(rows, columns=["query_id", "doc_id", "score"])
    return Collection.make(queries, docs, runs, DEPTH)


@pytest.fixture(scope="session")
def machine(truth) -> Labeling:
    """A judge that is wrong about one pair in ten."""
    random = np.random.default_rng(7)
    rows = [(q, d, float(label ^ (random.random() < 0.1))) for (q, d), label in truth.items()]
    return Labeling("judge", Scale("binary"), pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]))


Say = Callable[[dict[str, Any], Any], Any]


@pytest.fixture
def judged(tmp_path: Path, truth: dict[tuple[str, str], int]) -> Callable[..., Path]:
    """Fill the page of an assessor, who may say otherwise than is true, in and return the download."""

    def fill(sample: Sample, assessor: str = "1", say: Say = lambda row, true: true, name: str = "") -> Path:
        page = page_of(sample, assessor)
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
        assert found is not None
        data = json.loads(found[1])
        head = {key: value for key, value in data.items() if key not in ("tasks", "grades", "low", "guideline")}
        keys = ("task", "query_id", "doc_ids", "repeat_of", "probability", "content", "key")
        rows = [{key: task[key] for key in keys} for task in data["tasks"]]
        for row in rows:
            value = say(row, truth.get((row["query_id"], row["doc_ids"][0])))
            row |= {"value": value, "skipped": "", "comment": "", "seconds": 1.5, "at": "2026-01-01T00:00:00Z"}
            if isinstance(value, str) and value.startswith("skip"):
                row |= {"value": None, "skipped": "cannot decide"}
        out = tmp_path / (name or f"judgments-{assessor}.jsonl")
        lines = [{"judgekit": "judgments", **head, "tasks": len(rows)}, *rows, {"end": len(rows)}]
        out.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return out

    return fill


@pytest.fixture
def people_of(judged: Callable[..., Path]) -> Callable[..., People]:
    """Return what one assessor's labels come to."""
    return lambda sample, *say: resolve(read_judgments([judged(sample, "1", *say)], sample))
