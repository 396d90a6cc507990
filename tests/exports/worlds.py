"""What every tool that scores runs is given: thirty random qrels and runs with what tools treat differently.

Scores tie, as doubles or only as 32-bit numbers; grades are negative; documents are not judged; a run lacks queries and
has others; lists are shorter than cutoffs; queries are documents of the collection, and so retrieve themselves.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEEDS = range(30)
CUTOFFS = (1, 3, 10)
QUERIES = [str(101 + number) for number in range(6)]
DOCS = [*(f"d{number:02}" for number in range(14)), *QUERIES]
NEVER_JUDGED = [f"u{number}" for number in range(4)]


class World(NamedTuple):
    """Qrels and a run.

    Attributes:
        qrels: grades by query and document.
        run: scores by query and document, in the order of a file.
    """

    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]

    @property
    def lacks(self) -> bool:
        """Whether the run lacks queries of the qrels."""
        return not self.qrels.keys() <= self.run.keys()

    @property
    def barren(self) -> bool:
        """Whether a query has no document with a grade above 0."""
        return any(max(grades.values()) <= 0 for grades in self.qrels.values())

    def judged(self) -> dict[str, dict[str, float]]:
        """Return the run's lists of the queries of the qrels, for tools that fail on others; a copy."""
        return {query: dict(docs) for query, docs in self.run.items() if query in self.qrels}


def world(seed: int) -> World:
    """Draw a world."""
    rng = random.Random(seed)
    # pytrec_eval crashes on negative grades of a query that has none above 0.
    grades = (0, 1, 2) if seed % 3 == 0 else (-2, 0, 1, 2, 3)
    qrels, run = {}, {}
    for query in QUERIES:
        judged = {doc: rng.choice(grades) for doc in rng.sample(DOCS, rng.randrange(2, 15)) if doc != query}
        if seed % 3:
            judged["d00"] = 1
        judged.setdefault("d01", 0)
        qrels[query] = judged
    lacking = {rng.choice(QUERIES)} if seed % 2 else set()
    for query in rng.sample(QUERIES, len(QUERIES)):
        scores = {}
        for doc in rng.sample([*DOCS, *NEVER_JUDGED], rng.randrange(1, 15)):
            # Apart by a billionth, two scores are one in 32 bits.
            scores[doc] = 20 + round(rng.gauss(0, 2), rng.randrange(2)) + rng.choice((0, 0, 1e-9))
        if rng.random() < 0.5:
            scores[query] = 99.0
        if query not in lacking:
            run[query] = scores
    if seed % 5 == 0:
        run["999"] = {"d03": 1.0}
    if seed % 7 == 0:
        # What is left of it without the query itself is an empty list.
        last = next(query for query in run if query in qrels)
        run[last] = {last: 1.0}
    return World(qrels, run)


def worlds() -> Iterator[tuple[int, World]]:
    """Yield the worlds by their number."""
    for seed in SEEDS:
        yield seed, world(seed)


def record(out: Path, values: Callable[[World], dict[str, Any]]) -> None:
    """Write what a tool says of each world: by measure a mean, or values by query; null where it fails."""
    found = {str(seed): values(each) for seed, each in worlds()}
    lines = [f"{json.dumps(seed)}: {json.dumps(said)}" for seed, said in found.items()]
    (out / "values.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def attempted(ask: Callable[[], Any]) -> Any:
    """Return what a tool answers, None where it fails."""
    try:
        return ask()
    except (AssertionError, ArithmeticError, LookupError, ValueError):
        return None
