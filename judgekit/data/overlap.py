"""Whether the lists of two runs are nested, one inside the other.

If one list is part of the other, measures that only count documents have a fixed preference: recall and hit never
prefer the part, precision seldom prefers the whole. No label can change that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from judgekit.data.runs import Run

OFTEN: Final = 0.1
"""Above this share of nested lists, such measures cannot compare two runs."""


@dataclass(frozen=True)
class Overlap:
    """How often the lists of two runs are nested, over some questions.

    Attributes:
        first, second: the runs' names.
        questions: how many questions were looked at.
        first_inside: number of questions on which the first run's documents are a proper part of the second's.
        second_inside: the reverse.
    """

    first: str
    second: str
    questions: int
    first_inside: int
    second_inside: int

    @property
    def nested(self) -> float:
        """The share of the questions on which one list is a proper part of the other."""
        return (self.first_inside + self.second_inside) / self.questions


def nested_pairs(runs: Sequence[Run], query_ids: Sequence[str], depth: int) -> list[Overlap]:
    """Return the pairs of runs whose lists are nested too often to compare them, the most nested pair first.

    Args:
        runs: two or more runs.
        query_ids: the questions to look at; a run without a question has an empty list there.
        depth: how many documents of each list count.
    """
    lengths = [dict(zip(run.query_ids, np.minimum(run.counts, depth), strict=True)) for run in runs]
    if all(other == lengths[0] for other in lengths):
        # Lists of equal length are never nested, and comparing thousands of them takes seconds.
        return []
    # Sets, since the order within a list does not matter.
    lists = {run.name: [frozenset(run.top(query_id, depth)) for query_id in query_ids] for run in runs}
    often = []
    for first, second in combinations(lists, 2):
        first_inside = second_inside = 0
        for docs, others in zip(lists[first], lists[second], strict=True):
            first_inside += docs < others
            second_inside += others < docs
        pair = Overlap(first, second, len(query_ids), first_inside, second_inside)
        if pair.nested > OFTEN:
            often.append(pair)
    return sorted(often, key=lambda pair: -pair.nested)
