"""A cascade: an inexpensive labeler labels every pair, and a second one the doubtful pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Self

from judgekit.context import Context
from judgekit.data.documents import Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import Label, Labeler, Needs, build
from judgekit.reading.asker import play
from judgekit.settings import setting
from judgekit.spec import split_file
from judgekit.wire.types import Outcome, Request, most_requests

# Rounding makes two votes of ten a share of .2, however it was computed.
_EXACT: Final = 1e-9


@dataclass(frozen=True)
class Cascade(Labeler):
    """Labels every pair with a first labeler, and doubtful pairs again with a second.

    The first is in doubt if its value on the scale unit, such as P(yes), lies between ``doubt`` and 1 - ``doubt``; if
    at least this share of its voices differs from the label; if its label says why it may be wrong; or if it gives no
    label, unless the request failed, which the next run repeats.

    Both make the same requests as alone, so replies are shared. ``extra["escalated"]`` is 1 if the second labeler was
    asked, and ``extra["first"]`` is the label of the first.

    Scale: the scale of the second; the first has the same, or unit before binary (relevant from .5)

    Needs: what both labelers need

    Costs: the first for every pair, the second for the pairs in doubt

    Attributes:
        first: the labeler of every pair, e.g. judge(endpoint=small, read=logprobs)
        then: the labeler of the pairs in doubt, e.g. judge(endpoint=large)
        doubt: the smallest probability, or share of votes, against a label that counts as doubt (0.2)
    """

    kind = "cascade"
    first: str
    then: str
    doubt: float = setting(0.2, least=0)

    def bound(self, context: Context | None) -> Self:
        """Return a copy that is ready for use, with the canonical spellings of both labelers."""

        def canonical(spelling: str) -> str:
            if split_file(spelling)[0] is not None:
                return spelling
            return str(build(spelling, context).spec)

        cascade: Self = replace(self, first=canonical(self.first), then=canonical(self.then))
        return super(Cascade, cascade).bound(context)

    def prepare(self) -> None:
        """Build both labelers and check that they go together."""
        if self.doubt > 0.5:
            raise UsageError(f"{self.spec}: doubt is a share from 0 to 0.5, not {self.doubt:g}")
        for name, labeler in (("first", self._first), ("then", self._then)):
            if labeler.needs.people:
                raise UsageError(f"{self.spec}: {name} holds labels by people: combine them with judgekit annotate")
            if not labeler.by_pair:
                raise UsageError(
                    f"{self.spec}: {name} compares several documents, but a cascade labels one pair at a time"
                )
        first, then = self._first.scale, self._then.scale
        if first != then and (first.kind, then.kind) != ("unit", "binary"):
            raise UsageError(
                f"{self.spec}: the first labeler's scale is {first}, the second's {then}: use two labelers with one"
                " scale, or a first with probabilities (unit) before a binary one"
            )

    @cached_property
    def _first(self) -> Labeler:
        return build(self.first, self.context)

    @cached_property
    def _then(self) -> Labeler:
        return build(self.then, self.context)

    @cached_property
    def scale(self) -> Scale:
        """The second labeler's."""
        return self._then.scale

    @property
    def needs(self) -> Needs:
        """The needs of both.

        Some of the labels may be the outcome itself, so anything that either shares with it counts.
        """
        first, then = self._first.needs, self._then.needs
        return Needs(
            references=first.references or then.references,
            endpoints=tuple(dict.fromkeys((*first.endpoints, *then.endpoints))),
            raters=tuple(dict.fromkeys((*first.raters, *then.raters))),
            prompt=" + ".join(dict.fromkeys(filter(None, (first.prompt, then.prompt)))),
            outcome_metric=then.outcome_metric or first.outcome_metric,
            outcome_prompt=then.outcome_prompt or first.outcome_prompt,
        )

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the waves of the first labeler; then, where it is in doubt, those of the second."""
        wave, used = play(self._first, unit, replies)
        if wave or not self._in_doubt(self._first.label(unit, replies[:used])[0]):
            return wave
        return self._then.requests(unit, replies[used:])

    def most(self, unit: Unit, /) -> int | None:
        """Return the largest number of requests of a unit; None if either labeler does not say."""
        total = 0
        for labeler in (self._first, self._then):
            most = most_requests(labeler, unit) if labeler._asks else 0
            if most is None:
                return None
            total += most
        return total

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return the label of the unit's doc."""
        used = play(self._first, unit, replies)[1]
        (first,) = self._first.label(unit, replies[:used])
        label, escalated = first, self._in_doubt(first)
        if escalated:
            label = self._then.label(unit, replies[used:])[0]
        elif first.relevance is not None and self._first.scale != self.scale:
            label = replace(first, relevance=float(first.relevance >= 0.5))
        extra = dict(label.extra)
        if first.relevance is not None:
            extra["first"] = first.relevance
        extra["escalated"] = float(escalated)
        return [replace(label, extra=extra)]

    def _in_doubt(self, label: Label) -> bool:
        if label.relevance is None:
            # The next run repeats a failed request: asking the second labeler meanwhile would make the label depend on
            # the network.
            return label.status is not Status.FAILED
        extra: dict[str, Any] = dict(label.extra)
        against = 1 - extra.get("agreement", 1.0)
        if self._first.scale.kind == "unit":
            against = max(against, min(label.relevance, 1 - label.relevance))
        return bool(label.reason) or against >= max(self.doubt - _EXACT, _EXACT)
