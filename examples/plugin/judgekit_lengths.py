"""A labeler and an answer metric that look at lengths alone: how to write your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import judgekit as jk


@dataclass(frozen=True)
class Longest(jk.Labeler):
    """A document is relevant if it has at least so many characters.

    Scale: binary

    Needs: nothing

    Costs: nothing

    Attributes:
        least: the fewest characters (10)
    """

    kind = "longest"
    scale = "binary"
    least: int = 10

    def relevance(self, query: jk.Query, doc: jk.Doc) -> float:
        """Return 1 for a long document, else 0."""
        return float(len(doc.text) >= self.least)


@dataclass(frozen=True)
class Brief(jk.AnswerMetric):
    """The answer is not much longer than the longest reference.

    Scale: binary

    Needs: reference answers

    Costs: nothing

    Attributes:
        times: how many times as long it may be (1)
    """

    kind = "brief"
    scale = "binary"
    times: float = 1.0

    def compare(self, text: str, references: Sequence[str]) -> float:
        """Return 1 for a brief answer, else 0."""
        return float(len(text) <= self.times * max(map(len, references)))
