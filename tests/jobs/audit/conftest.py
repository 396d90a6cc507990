"""A finished experiment with labelers of known weaknesses; everything offline."""

import json
import random
import shutil
from pathlib import Path

import pytest

import judgekit as jk
from tests.small import FILES, MOCK, QUICK, toml

TOWNS = 20
RUNS = {"exact": 0.0, "close": 1.0, "fair": 2.0, "weak": 3.5, "poor": 6.0}

LABELERS = """
import hashlib
from dataclasses import dataclass

import judgekit as jk


@dataclass(frozen=True)
class Oracle(jk.Labeler):  # knows which document it is, whatever somebody writes into it
    scale = "binary"

    def relevance(self, query, doc):
        return doc.doc_id == "gold" + query.query_id[1:]


@dataclass(frozen=True)
class Hash(jk.Labeler):  # says anything, but always the same of the same text
    scale = "binary"

    def relevance(self, query, doc):
        return int(hashlib.sha256(f"{query.text} {doc.text}".encode()).hexdigest(), 16) % 10 < 3


@dataclass(frozen=True)
class Long(jk.Labeler):  # the longer the better
    scale = "unit"

    def relevance(self, query, doc):
        return min(len(doc.text) / 400, 1.0)
"""

TABLES = {
    "data": FILES | {"depth": 6},
    "runs": {name: f"{name}.trec" for name in RUNS},
    "endpoints": {"mock": MOCK},
    "prices": {"mock": {"prompt": 2.0, "completion": 4.0}},
    "answers": {"depths": [3], "metrics": ["em"]},
    "metrics": {"measures": ["nDCG", "P"]},
    "analysis": QUICK,
}
KINDS = {
    "keyword": {"kind": "judge"},
    "oracle": {"kind": "mine.py:Oracle"},
    "hash": {"kind": "mine.py:Hash"},
    "long": {"kind": "mine.py:Long"},
    "gold": {"kind": "provenance", "qrels": "gold.qrels"},
}


def experiment(*labelers: str, **tables: object) -> str:
    """An experiment file with some of the labelers; ``tables`` replace others."""
    return toml(**TABLES | tables, labelers=[{"name": name, **KINDS[name]} for name in labelers])


def write(folder: Path) -> None:
    """Write questions, passages, five runs of falling skill and the experiment file."""
    rng = random.Random(7)
    words = ["river", "market", "stone", "apple", "window", "letter", "garden", "summer", "copper", "paper", "music"]
    queries, docs = [], []
    for i in range(TOWNS):
        town, year = f"Borvik{i:02}", str(1400 + 7 * i)
        text = f"When did Mason{i:02} finish Bridge{i:02} of {town}?"
        queries.append({"query_id": f"q{i:02}", "text": text, "answers": [year]})
        tail = " ".join(rng.choices(words, k=12))
        text = f"Mason{i:02} of {town} laid the last stone of Bridge{i:02} in {year}. {tail}."
        docs.append({"doc_id": f"gold{i:02}", "title": "", "text": text})
        for j in range(7):
            text = ". ".join(" ".join(rng.choices(words, k=rng.randint(4, 14))).capitalize() for _ in range(3))
            docs.append({"doc_id": f"d{i:02}x{j}", "title": "", "text": f"{text}."})
    for name, noise in RUNS.items():
        lines = []
        for i in range(TOWNS):
            scored = {f"gold{i:02}": 4 + noise * rng.gauss(0, 1)} | {f"d{i:02}x{j}": rng.gauss(0, 1) for j in range(7)}
            lines += [f"q{i:02} Q0 {d} 0 {s:.6f} {name}\n" for d, s in scored.items()]
        (folder / f"{name}.trec").write_text("".join(lines))
    for name, rows in (("queries", queries), ("docs", docs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "gold.qrels").write_text("".join(f"q{i:02} 0 gold{i:02} 1\n" for i in range(TOWNS)))
    (folder / "mine.py").write_text(LABELERS)
    (folder / "experiment.toml").write_text(experiment(*KINDS))


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished experiment: ``out`` holds the results, ``cache`` the store. Not to be changed."""
    folder = tmp_path_factory.mktemp("audit")
    write(folder)
    jk.run(folder / "experiment.toml", out=folder / "out", asking=jk.Asking(cache=folder / "cache"))
    return folder


def copy(finished: Path, folder: Path) -> Path:
    """Copy an experiment with its results; the paths in them lead to the copy."""
    shutil.copytree(finished, folder)
    for name in ("resolved.toml", "manifest.json"):
        path = folder / "out" / name
        path.write_text(path.read_text().replace(str(finished), str(folder)))
    return folder


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of it for a test to change."""
    return copy(finished, tmp_path / "copy")


@pytest.fixture(scope="session")
def audited(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> jk.Audit:
    """Everything that an audit of it finds."""
    folder = copy(finished, tmp_path_factory.mktemp("audited") / "copy")
    return jk.audit(folder / "out", asking=jk.Asking(cache=folder / "cache"), probes="all")
