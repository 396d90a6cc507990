"""Which free metric tells imported answers apart: `judgekit init` tries each before it proposes an outcome."""

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
"""Words up to which a reference may be expected to be the whole answer."""
_SPANS: Final = ("em", "contains", "f1", "rouge-l")
_SENTENCES: Final = ("f1", "rouge-l", "contains", "em")
WHAT: Final[Mapping[str, str]] = {
    "em": "the reference answer, word by word",
    "contains": "the reference stands in the answer",
    "f1": "common words",
    "rouge-l": "the longest common sequence of words",
}
"""What each free metric looks at."""


@dataclass(frozen=True)
class Told:
    """How many questions each metric tells answers apart on.

    Attributes:
        questions: how many questions have answers.
        counts: by metric, the questions on which the answers of the runs differ in it; of one run, those whose value
            is another than the commonest.
        several: whether there are several runs.
    """

    questions: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    several: bool = True

    def order(self, words: int) -> list[str]:
        """Return the metrics that tell answers apart, the one to propose first; references have so many words."""
        wanted = _SENTENCES if words > SHORT else _SPANS
        telling = [name for name in wanted if self.counts.get(name, 0)]
        # Exact match may meet one answer of a hundred that all hold the reference: half as many as another rule that
        # says right or wrong is enough, one is not.
        rules = max((self.counts[name] for name in telling if name in ("em", "contains")), default=0)
        for name in telling:
            if 2 * self.counts[name] >= rules:
                return [name, *(other for other in telling if other != name)]
        return telling

    @property
    def constant(self) -> bool:
        """Whether no metric tells any two answers apart."""
        return bool(self.counts) and not any(self.counts.values())

    def said(self, name: str) -> str:
        """Return what a metric looks at, and on how many questions it tells answers apart."""
        if not self.counts:
            return WHAT[name]
        differ = "tells the runs apart on" if self.several else "differs from most on"
        return f"{WHAT[name]}: {differ} {self.counts[name]:,} of {self.questions:,} questions"


def told_apart(
    files: Iterable[tuple[Path, str | None]], queries: Queries, runs: Collection[str], depths: Collection[int]
) -> Told:
    """Score imported answers with every free metric.

    Args:
        files: of answers, each with the run that it is where its rows name none.
        queries: the questions with their reference answers.
        runs: the names of the runs.
        depths: of the answers.
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
