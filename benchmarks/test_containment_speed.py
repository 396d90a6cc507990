"""How fast containment labels, as a ratio to a plain substring loop over the same pairs in the same process.

The pairs are those of the collection in the folder JUDGEKIT_COLLECTION if it is set, else made up. The plain loop is
what one would write: render the document, lower its case, look for each lower-case answer.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgekit.answers.text import squad
from judgekit.data.documents import Doc, Docs, Fields, Query, render
from judgekit.data.readers import read_docs, read_queries, write_docs
from judgekit.data.runs import pool
from judgekit.data.trec import read_run
from judgekit.labelers.base import build
from judgekit.wire.types import Endpoint

Pairs = list[tuple[Query, list[Doc]]]


@dataclass
class Context:
    fields: Fields = "title+text"
    docs: Docs | None = None
    prompts: None = None

    def endpoint(self, name: str | None) -> Endpoint:
        raise LookupError(name)

    def path(self, text: str) -> Path:
        return Path(text)


def real(folder: Path, depth: int) -> Pairs:
    queries, docs = read_queries(folder / "queries.jsonl"), read_docs(folder / "docs.jsonl")
    runs = [read_run(path) for path in sorted((folder / "runs").glob("*.trec"))]
    return [(queries[q], docs.get(ids)) for q, ids in pool(runs, queries, depth)]


def words() -> list[str]:
    chance = random.Random(1)
    return ["".join(chance.choices("etaoinshrdlu", k=chance.randint(2, 9))) for _ in range(5000)]


def passages(count: int) -> list[Doc]:
    chance, some = random.Random(2), words()
    return [Doc(f"d{i}", " ".join(chance.choices(some, k=100)), "A title") for i in range(count)]


def made_up(queries: int, depth: int) -> Pairs:
    chance, some, docs = random.Random(3), words(), passages(5000)
    asked = [Query(f"q{i}", "?", (" ".join(chance.choices(some, k=2)), chance.choice(some))) for i in range(queries)]
    return [(query, chance.sample(docs, depth)) for query in asked]


def plain(pairs: Pairs) -> Iterator[bool]:
    for query, docs in pairs:
        for doc in docs:
            text = render(doc).lower()
            yield any(answer.lower() in text for answer in query.answers)


def normalised(pairs: Iterable[tuple[Query, list[Doc]]]) -> Iterator[bool]:
    """Look for each answer in each document, both normalised as SQuAD's script does."""
    for query, docs in pairs:
        answers = [squad(answer) for answer in query.answers]
        for doc in docs:
            text = f" {squad(render(doc))} "
            yield any(f" {answer} " in text for answer in answers)


def labelled(pairs: Iterable[tuple[Query, list[Doc]]], spec: str) -> Iterator[bool]:
    labeler = build(spec, Context())
    for query, docs in pairs:
        for unit in labeler.units(query, docs):
            for label in labeler.label(unit, ()):
                yield label.relevance == 1.0


def rate(run: Callable[[], Iterator[bool]], pairs: int) -> tuple[float, int]:
    """Return pairs per second, the best of three, and how many are relevant."""
    best, found = float("inf"), 0
    for _ in range(3):
        begun = time.process_time()
        found = sum(run())
        best = min(best, time.process_time() - begun)
    return pairs / best, found


@pytest.mark.bench
def test_containment_from_disk_beside_a_plain_loop(tmp_path: Path, say: Callable[[str], None]) -> None:
    # Each document once: containment remembers the texts that it has prepared.
    queries, distinct = [query for query, _ in made_up(200, 1)], passages(10_000)
    pairs = [(query, distinct[start : start + 50]) for query, start in zip(queries, range(0, 10_000, 50), strict=True)]
    write_docs(distinct, tmp_path / "docs.jsonl")
    kept = read_docs(tmp_path / "docs.jsonl", memory_limit=0, index=tmp_path)
    asked = [(query, [doc.doc_id for doc in found]) for query, found in pairs]
    ways: dict[str, Callable[[], Iterator[bool]]] = {
        "plain loop in memory": lambda: normalised(pairs),
        "plain loop from disk": lambda: normalised((query, kept.get(ids)) for query, ids in asked),
        "containment from disk": lambda: labelled(((query, kept.get(ids)) for query, ids in asked), "containment"),
    }
    rates = {name: rate(way, 10_000)[0] for name, way in ways.items()}
    base = rates["plain loop in memory"]
    say(", ".join(f"{name} {1e6 / speed:.1f} µs a pair, {base / speed:.2f} x" for name, speed in rates.items()))
    assert rates["containment from disk"] > base / 3


@pytest.mark.bench
def test_containment_beside_a_plain_substring_loop(say: Callable[[str], None]) -> None:
    folder = os.environ.get("JUDGEKIT_COLLECTION")
    pairs = real(Path(folder), 50) if folder else made_up(500, 50)
    count = sum(len(docs) for _, docs in pairs)
    base, found = rate(lambda: plain(pairs), count)
    whose = "real" if folder else "made-up"
    say(f"{count:,} {whose} pairs, plain substring loop {base:,.0f} pairs/s, {found:,} relevant")
    speed, found = rate(lambda: labelled(pairs, "containment"), count)
    say(f"containment {speed:>9,.0f} pairs/s  {speed / base:.2f} x  {found:,} relevant")
    assert speed > base / 10
