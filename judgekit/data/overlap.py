"""How the lists of two runs relate: the same documents, one inside the other, or neither.

Where one list is part of the other, a measure that only counts documents knows beforehand which of them it prefers:
recall and hit can never prefer the part, precision seldom prefers the whole. No label can change that.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from judgekit.data.runs import Run

OFTEN: Final = 0.1
"""Two runs whose lists are nested on a larger share of the questions are not comparable by such measures."""


@dataclass(frozen=True)
class Overlap:
    """How the lists of two runs relate, over some questions.

    Attributes:
        first, second: the runs' names.
        questions: how many questions were looked at.
        same: on how many of them both lists hold the same documents, in any order.
        first_inside: on how many the first run's documents are a proper part of the second's.
        second_inside: the reverse.
    """

    first: str
    second: str
    questions: int
    same: int
    first_inside: int
    second_inside: int

    @property
    def nested(self) -> float:
        """The share of the questions on which one list is a proper part of the other."""
        return (self.first_inside + self.second_inside) / self.questions

    @property
    def identical(self) -> float:
        """The share of the questions on which both lists hold the same documents."""
        return self.same / self.questions

    @property
    def comparable(self) -> bool:
        """Whether lists are nested too seldom to decide which run a measure prefers."""
        return self.nested <= OFTEN


def overlaps(runs: Sequence[Run], query_ids: Iterable[str], depth: int | None = None) -> list[Overlap]:
    """Return how the lists of each pair of runs relate.

    Args:
        runs: two or more runs.
        query_ids: the questions to look at. A run that lacks one has an empty list there.
        depth: how many documents of each list count; all by default.
    """
    questions = list(query_ids)
    if not questions:
        return []
    lists = {run.name: [frozenset(run.top(query_id, depth)) for query_id in questions] for run in runs}
    pairs = []
    for first, second in combinations(lists, 2):
        same = first_inside = second_inside = 0
        for mine, other in zip(lists[first], lists[second], strict=True):
            same += mine == other
            first_inside += mine < other
            second_inside += mine > other
        pairs.append(
            Overlap(
                first,
                second,
                questions=len(questions),
                same=same,
                first_inside=first_inside,
                second_inside=second_inside,
            )
        )
    return pairs


def nested_pairs(runs: Sequence[Run], query_ids: Iterable[str], depth: int | None = None) -> list[Overlap]:
    """Return the pairs of runs whose lists are nested too often to compare them, the most nested pair first.

    Lists of equal length are never nested, so that only questions with lists of unequal length cost time.
    """
    questions = list(query_ids)
    lengths = {tuple(_lengths(run, questions, depth)) for run in runs}
    if len(lengths) < 2:
        return []
    often = [overlap for overlap in overlaps(runs, questions, depth) if not overlap.comparable]
    return sorted(often, key=lambda overlap: -overlap.nested)


def _lengths(run: Run, query_ids: Sequence[str], depth: int | None) -> Iterator[int]:
    counts = dict(zip(run.query_ids.tolist(), run.counts.tolist(), strict=True))
    for query_id in query_ids:
        yield min(counts.get(query_id, 0), sys.maxsize if depth is None else depth)
