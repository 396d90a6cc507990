"""Finds free metrics that distinguish imported answers: `judgekit init` tries each before it proposes an outcome."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from judgekit.answers.imported import read_answers
from judgekit.answers.quality import metric
from judgekit.data.documents import Queries

SHORT: Final = 5
"""The largest number of words of a reference that may be a whole answer."""
_SPANS: Final = ("em", "contains", "f1", "rouge-l")
_SENTENCES: Final = ("f1", "rouge-l", "contains", "em")
WHAT: Final[Mapping[str, str]] = {
    "em": "the reference answer, word by word",
    "contains": "the reference stands in the answer",
    "f1": "common words",
    "rouge-l": "the longest common sequence of words",
}
"""The subject of each free metric."""


@dataclass(frozen=True)
class Told:
    """The number of questions on which each metric distinguishes answers.

    Attributes:
        questions: number of questions with answers.
        counts: by metric, the number of questions on which the runs' answers differ; for one run, those with another
            value than the most common.
        several: whether there are several runs.
    """

    questions: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    several: bool = True

    def order(self, words: int) -> list[str]:
        """Return the metrics that distinguish answers, best first, given the references' number of words."""
        wanted = _SENTENCES if words > SHORT else _SPANS
        telling = [name for name in wanted if self.counts.get(name, 0)]
        # Exact match may accept one of a hundred answers that all contain the reference. Half as many as another binary
        # rule is enough; one is not.
        rules = max((self.counts[name] for name in telling if name in ("em", "contains")), default=0)
        for name in telling:
            if 2 * self.counts[name] >= rules:
                return [name, *(other for other in telling if other != name)]
        return telling

    @property
    def constant(self) -> bool:
        """Whether no metric distinguishes any answers."""
        return bool(self.counts) and not any(self.counts.values())

    def said(self, name: str) -> str:
        """Return a metric's subject, and the number of questions on which it distinguishes answers."""
        if not self.counts:
            return WHAT[name]
        differ = "tells the runs apart on" if self.several else "differs from most on"
        return f"{WHAT[name]}: {differ} {self.counts[name]:,} of {self.questions:,} questions"


def told_apart(
    files: Iterable[tuple[Path, str | None]], queries: Queries, runs: Collection[str], depths: Collection[int]
) -> Told:
    """Score imported answers with every free metric.

    Args:
        files: files of answers, with their run if the rows do not name it.
        queries: the questions with their reference answers.
        runs: the names of the runs.
        depths: the depths of the answers.
    """
    values: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in _SPANS}
    metrics = {name: metric(name) for name in _SPANS}
    named: set[object] = set()
    for imported in read_answers([*files], queries, runs=runs, depths=depths, limited=True):
        for answered, occurrences in imported.given.items():
            named |= {occurrence.run for occurrence in occurrences}
            for name, one in metrics.items():
                value = one.read(answered, []).value
                if value is not None:
                    values[name][answered.query.query_id] += [value] * len(occurrences)
    counts = {}
    for name, by_question in values.items():
        if len(named) > 1:
            counts[name] = sum(len({*some}) > 1 for some in by_question.values())
        else:
            every = Counter(value for some in by_question.values() for value in some)
            counts[name] = every.total() - max(every.values(), default=0)
    questions = len({query_id for by_question in values.values() for query_id in by_question})
    return Told(questions, counts if questions else {}, len(named) > 1)
