"""Rerankers as labelers: a model scores a question and a document together, and that score is the label."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from judgekit.data.documents import Fields, Unit, render
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.wire.jsontext import canonical
from judgekit.wire.scores import scored_body
from judgekit.wire.types import Endpoint, Failure, Outcome, Reply, Request

Scores = Literal["probability", "logit"]


@dataclass(frozen=True)
class Rerank(Labeler):
    """A reranker (a cross-encoder) scores the question and the document together.

    The label is the probability of relevance that the server gives (vLLM, TEI, Cohere). A server that gives logits
    (llama-server) needs ``scores=logit``: the label is then 1 / (1 + exp(-logit)), as the other servers compute it, and
    ``extra["logit"]`` is the logit. If a probability is declared, a score outside of [0, 1] stops the labeling.
    Nogueira and Cho 2019 (arXiv 1901.04085) describe such models.

    Scale: unit

    Needs: a reranker: an endpoint with api = "rerank" (or "score")

    Costs: 1 short request per pair, without a prompt and without a text in reply

    Attributes:
        endpoint: endpoint name; optional if only one is defined
        scores: what the server gives, probability (the default) or logit
        fields: use fields=text to leave out the title
    """

    kind = "rerank"
    scale = Scale("unit")
    endpoint: str | None = None
    scores: Scores = "probability"
    fields: Fields | None = None

    def prepare(self) -> None:
        """Look up the endpoint.

        Raises:
            UsageError: it is not a reranker.
        """
        self._endpoint  # noqa: B018 - looks it up

    @cached_property
    def _endpoint(self) -> Endpoint:
        return self.context.endpoint(self.endpoint, scores=True).reranker

    @property
    def needs(self) -> Needs:
        """The reranker."""
        return Needs(endpoints=(self._endpoint,))

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the request for the score of the unit's doc."""
        if replies:
            # Checked at the first reply, not only when labels are made.
            self._read(unit, replies[0])
            return []
        endpoint = self._endpoint
        text = render(unit.docs[0], self.rendering)
        body = scored_body(endpoint.api, endpoint.model, unit.query.text, text, endpoint.params)
        return [Request(endpoint, canonical(body))]

    def most(self, unit: Unit, /) -> int:
        """Return the most requests that a unit takes."""
        return 1

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return the label of the unit's doc."""
        return [self._read(unit, replies[0])]

    def _read(self, unit: Unit, outcome: Outcome) -> Label:
        pair = unit.query.query_id, unit.docs[0].doc_id
        if isinstance(outcome, Failure):
            return Label.missing(*pair, outcome.status, outcome.reason)
        score = _number(outcome)
        if score is None:
            said = f"the reply holds {outcome.text[:80]!r} in place of a score, a number"
            return Label(*pair, None, Status.UNPARSED, outcome.text, said)
        if self.scores == "logit":
            return Label(*pair, _sigmoid(score), raw=outcome.text, extra={"logit": score})
        if not 0 <= score <= 1:
            raise UsageError(
                f"{self.spec}, query {pair[0]!r}, doc {pair[1]!r}: endpoint {self._endpoint.name!r} gives the score"
                f" {score:g}, which is no probability. If its scores are logits, set scores=logit: what it replied so"
                " far is stored, and is read again"
            )
        return Label(*pair, score, raw=outcome.text)


def _number(reply: Reply) -> float | None:
    try:
        score = float(reply.text)
    except ValueError:
        return None
    return score if math.isfinite(score) else None


def _sigmoid(logit: float) -> float:
    # exp of a large number overflows, so the equal form with a negative exponent is used.
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    return math.exp(logit) / (1 + math.exp(logit))
