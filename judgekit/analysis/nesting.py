"""Nested lists: if one run's list contains the other's, measures that only count documents are decided beforehand.

Recall and hit can only prefer the longer list, and precision of the whole list nearly always prefers the shorter one.
No label can change that, and more questions only confirm it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

import numpy as np

from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.keeping import KEEP
from judgekit.analysis.measures import cutoff_of, known_measure
from judgekit.analysis.wording import plural
from judgekit.data.runs import Run

COUNTING: Final = frozenset({"P", "R", "F1", "Success", "SetP", "SetR", "SetF", "NumRelRet", "NumRet"})
"""Measures that only count documents, wherever they stand in the list."""
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


def counts_only(measure: str) -> bool:
    """Return whether a measure only counts documents; a user's own measure does not, by assumption."""
    known = known_measure(measure)
    return known is not None and known.name in COUNTING


class Nesting:
    """Knows which runs' lists are nested too often to be compared by measures that only count documents.

    Args:
        runs: the lists; empty if unknown.
        query_ids: the questions.
    """

    def __init__(self, runs: Sequence[Run], query_ids: Sequence[str]) -> None:
        self._runs, self._query_ids = tuple(runs), tuple(query_ids)
        self._at = cache(self._looked)

    def under(self, measure: str, depth: int) -> list[Overlap]:
        """Return the nested pairs of runs as a measure sees them at a depth, the most nested pair first."""
        if not self._runs or not counts_only(measure):
            return []
        return self._at(cutoff_of(measure) or depth)

    def _looked(self, depth: int) -> list[Overlap]:
        return nested_pairs(self._runs, self._query_ids, depth)


def nested(case: Case) -> Iterator[Claim]:
    """Yield that nested lists, not labels, decide what the primary measure prefers."""
    measure = case.primary.measure
    pairs = Nesting(case.background.lists, case.panel.queries).under(measure, case.panel.depth)
    pairs = [pair for pair in pairs if {pair.first, pair.second} <= set(case.panel.runs)]
    if not pairs:
        return
    most = pairs[0]
    inner, outer = most.first, most.second
    if most.second_inside > most.first_inside:
        inner, outer = outer, inner
    others = f"; {plural(len(pairs) - 1, 'more pair')} of runs nest too" if len(pairs) > 1 else ""
    said = (
        f"On {100 * most.nested:.0f} % of the questions one list contains the other ({inner} within {outer}{others})."
        f" There the lengths of the lists decide {measure}, whatever the labels say: choose between these runs by"
        " their answers."
    )
    yield Claim("nested", said, inner, outer, value=100 * most.nested, shown=True, qualifies=KEEP)
