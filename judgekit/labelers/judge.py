"""LLM judges: a prompt asks for a document's relevance, and the reply's verdict is the label."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from judgekit.data.documents import Fields, Unit
from judgekit.data.labelings import Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import Label, Labeler, Needs
from judgekit.reading.asker import Asker, merge_waves, next_wave
from judgekit.reading.logprobs import Distribution, distribution
from judgekit.reading.prompts import Prompt, find_prompt
from judgekit.reading.verdict import ReadBy, Unread, Verdict
from judgekit.settings import setting
from judgekit.wire.types import CONSTRAINTS, Endpoint, Failure, Outcome, Request
from judgekit.wire.unread import note_unread

Reading = Literal["text", "logprobs"]
Vote = Literal["majority", "mean"]


@dataclass(frozen=True)
class Judge(Labeler):
    """An LLM judges the document's relevance, with a prompt that declares the verdicts.

    The label is the verdict's value in the prompt file: yes is 1, a grade is itself. With log-probabilities it is the
    expected relevance, with several voices possibly their mean, both scaled to [0, 1] by the prompt's smallest and
    largest relevance. A label exists if more than half of the voices gave a verdict; a tie of a majority vote goes to
    the smaller relevance.

    To see how often the same request gets another verdict, use ``samples=3, temperature=0``: ``extra["agreement"]`` is
    the share of voices that gave the label.

    Scale: the prompt's (binary, grades:3:2); unit for log-probabilities and means

    Needs: an LLM, or several as a jury

    Costs: 1 request per vote (samples=n or a jury of n: n), 1 more if a reply cannot be read

    Attributes:
        endpoint: endpoint name; optional if only one is defined
        jury: several endpoints that vote, a+b+c
        prompt: a judge prompt (binary), or the path of your own
        read: text, or logprobs: P(yes) or the expected grade, with prompts that ask for one word
        samples: votes per LLM (1), drawn at temperature 1 by default
        vote: majority or mean
        temperature: sampling temperature of the requests
        top_logprobs: alternatives to ask for (20); some servers give at most 5
        fields: use fields=text to leave out the title
    """

    kind = "judge"
    endpoint: str | None = None
    jury: str | None = None
    prompt: str = "binary"
    read: Reading = "text"
    samples: int = setting(1, least=1)
    vote: Vote = "majority"
    temperature: float | None = setting(None, least=0)
    top_logprobs: int = setting(20, least=2)
    fields: Fields | None = None

    def prepare(self) -> None:
        """Look up the endpoints and the prompt, and check what goes together."""
        if self.jury is not None and self.endpoint is not None:
            raise UsageError(f"{self.spec}: jury names the endpoints, so leave out endpoint")
        self._endpoints  # noqa: B018 - looks them up
        if self._prompt.kind != "judge":
            raise UsageError(
                f"{self.spec}: the prompt {self._prompt.name!r} is not a judge prompt (kind: {self._prompt.kind})"
            )
        if self.read == "logprobs":
            self._check_logprobs()

    @cached_property
    def _endpoints(self) -> tuple[Endpoint, ...]:
        """The LLMs: one voice each, or ``samples`` voices."""
        names = [self.endpoint] if self.jury is None else [part.strip() for part in self.jury.split("+")]
        # The same endpoint twice would count one stored reply twice.
        if len(set(names)) != len(names):
            raise UsageError(f"{self.spec}: an endpoint is in the jury twice (for several votes of one say samples=n)")
        return tuple(self.context.endpoint(name).llm for name in names)

    @cached_property
    def _prompt(self) -> Prompt:
        return find_prompt(self.prompt, self.context.path)

    def _check_logprobs(self) -> None:
        """Refuse log-probabilities that would not belong to the verdict, or not to the model alone."""
        if not self._prompt.output.form.one_word:
            raise UsageError(
                f"{self.spec}: log-probabilities are read from replies of one word, and the prompt"
                f" {self._prompt.name!r} asks for more; use one that asks for one word, such as binary"
            )
        words = self._prompt.output.form.options
        for word, value in words:
            # "1" and "10" share their first token, whose probability covers both.
            longer = [other for other, another in words if other.startswith(word) and another != value]
            if longer:
                raise UsageError(
                    f"{self.spec}: {longer[0]!r} begins like {word!r}, so their first token has no"
                    " probability of its own; use read=text"
                )
        for params in (self._prompt.params, *(endpoint.params for endpoint in self._endpoints)):
            for name in CONSTRAINTS & params.keys():
                raise UsageError(
                    f"{self.spec}: {name} constrains the reply, so its log-probabilities are not the model's"
                    f" own; leave {name} out of the params, or use read=text"
                )

    @cached_property
    def _as_unit(self) -> bool:
        """Whether labels are expected values or means, taken to [0, 1]."""
        return self.read == "logprobs" or (self.vote == "mean" and len(self._endpoints) * self.samples > 1)

    @cached_property
    def scale(self) -> Scale:
        """The prompt's; ``unit`` for expected values and means."""
        declared = self._prompt.output.scale
        if self._as_unit or declared is None:
            return Scale("unit")
        return declared

    def _scaled(self, verdict: int) -> float:
        """Return a verdict as a label; where labels are taken to [0, 1], the prompt's ends become 0 and 1."""
        # Expected values and means lie between grades: they are taken to [0, 1], where judges of all prompts compare.
        low, high = self._prompt.output.form.ends if self._as_unit else (0, 1)
        return (verdict - low) / (high - low)

    @property
    def needs(self) -> Needs:
        """The LLMs that are asked."""
        return Needs(endpoints=self._endpoints, prompt=self._prompt.name)

    @cached_property
    def _askers(self) -> list[tuple[Asker, int]]:
        """Whom to ask, and as which sample: one entry per request of the first wave."""
        askers = []
        for endpoint in self._endpoints:
            params: dict[str, Any] = {}
            if self.read == "logprobs":
                params.update(logprobs=True, top_logprobs=self.top_logprobs)
            if self.temperature is not None:
                params["temperature"] = self.temperature
            # At temperature 0 the votes of one model would all be the same.
            elif self.samples > 1 and "temperature" not in endpoint.params:
                params["temperature"] = 1.0
            asker = Asker(endpoint, self._prompt, params)
            askers += [(asker, sample) for sample in range(self.samples)]
        return askers

    @cached_property
    def _voiced_by(self) -> list[Asker]:
        """Whom to ask, by voice."""
        return [asker for asker, _ in self._askers]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return one request per voice; then, once, those whose replies cannot be used."""
        return next_wave(self._askers, lambda: self._shown(unit), replies)

    def _shown(self, unit: Unit) -> list[dict[str, str]]:
        """Return what each voice is shown."""
        return [self._prompt.values(unit.query, unit.docs, self.rendering)] * len(self._askers)

    def most(self, unit: Unit, /) -> int:
        """Return the largest number of requests of a unit."""
        return 2 * len(self._askers)

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return the label of the unit's doc."""
        voices = self._voices(unit, replies)
        if len(voices) == 1:
            return voices
        raw = json.dumps([voice.raw for voice in voices], ensure_ascii=False)
        joint = self._voted(voices)
        return [replace(joint, raw=raw, extra={**joint.extra, **_read_by(voices)})]

    def _voices(self, unit: Unit, replies: Sequence[Outcome]) -> list[Label]:
        """Return the label by each voice alone."""
        outcomes, _ = merge_waves(replies, self._voiced_by, lambda: self._shown(unit))
        voices = []
        for first, outcome, asker in zip(replies, outcomes, self._voiced_by, strict=False):
            voices.append(self._voice(unit, outcome, asker, again=outcome is not first))
        return voices

    def _voice(self, unit: Unit, outcome: Outcome, asker: Asker, *, again: bool) -> Label:
        raw = "" if isinstance(outcome, Failure) else outcome.text
        pair = unit.query.query_id, unit.docs[0].doc_id
        reading: Distribution | Verdict | Unread
        if self.read == "logprobs":
            reading = distribution(outcome, self._prompt.output.form, asker.endpoint)
            if isinstance(reading, Unread):
                note_unread(outcome, reading.status)
        else:
            reading = asker.stated(outcome, lambda: self._shown(unit)[0])
        if isinstance(reading, Unread):
            return Label(*pair, None, status=reading.status, reason=reading.reason, raw=raw)
        if isinstance(reading, Verdict):
            read_by = "second request" if again else reading.by
            return Label(*pair, self._scaled(reading.value), raw=raw, extra={"read_by": read_by})
        # fsum, because the order of alternatives differs between servers, but labels must not.
        mean = math.fsum(share * self._scaled(verdict) for verdict, share in reading.shares.items())
        return Label(*pair, min(1.0, max(0.0, mean)), raw=raw, extra={"mass": reading.mass})

    def _voted(self, voices: Sequence[Label]) -> Label:
        votes = [voice.relevance for voice in voices if voice.relevance is not None]
        # Half of a jury is not a majority, and which half replies may depend on the passage.
        if 2 * len(votes) <= len(voices):
            missing = next(voice for voice in voices if voice.relevance is None)
            reason = f"only {len(votes)} of {len(voices)} voices gave a verdict: {missing.reason}"
            return replace(missing, reason=reason)
        counts = Counter(votes)
        # A tie goes to the smaller relevance: a passage is relevant only with more votes for it than against.
        winner = min(counts, key=lambda value: (-counts[value], value))
        extra = {"votes": float(len(votes)), "agreement": counts[winner] / len(votes)}
        relevance = math.fsum(votes) / len(votes) if self._as_unit else winner
        return replace(voices[0], relevance=relevance, status=Status.OK, reason="", extra=extra)


def _read_by(voices: Sequence[Label]) -> dict[str, str]:
    """Return how the voices were read; the least direct way counts."""
    ways = [str(voice.extra["read_by"]) for voice in voices if "read_by" in voice.extra]
    if not ways:
        return {}
    return {"read_by": max(ways, key=get_args(ReadBy).index)}
