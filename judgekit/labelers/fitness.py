"""The result of a judge's test, and the card that keeps it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from judgekit import __version__
from judgekit.data.streams import read_bytes
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Labeler
from judgekit.labelers.human import wilson

_CARD: Final = "judge card"
"""The mark of a card."""


class Share(NamedTuple):
    """The number of pairs that the judge calls relevant, with the 95 % Wilson interval of their share."""

    of: int = 0
    called: int = 0

    @property
    def ends(self) -> tuple[float, float]:
        """The interval."""
        return wilson(self.called, self.of)

    def told(self, what: str) -> str:
        """Return it as a sentence."""
        if not self.of:
            return f"No labelled pair is {what}."
        low, high = self.ends
        ends = f"({low:.0%} to {high:.0%})"
        return f"Of {self.of:,} pairs that are {what} it calls {self.called / self.of:.0%} relevant {ends}."


class RunOrder(NamedTuple):
    """Kendall's tau-b between the orders of runs by the judge's and people's labels, and its range over questions."""

    tau: float
    low: float
    high: float
    runs: int
    measure: str

    @property
    def told(self) -> str:
        """The result as a sentence; without a tau-b if either side gives all runs the same score."""
        what = f"The order of {self.runs} runs by {self.measure}"
        if np.isnan(self.tau):
            return f"{what} has no tau-b: the judge's labels or people's give all runs the same score."
        return (
            f"{what}: tau-b {self.tau:.2f} with that by people's labels, {self.low:.2f} to {self.high:.2f} over"
            " resampled questions."
        )


@dataclass(frozen=True)
class Fitness:
    """The result of a judge's test.

    Attributes:
        labeler: its spelling.
        models, prompt, scale: of the judge.
        questions, pairs: numbers of questions and pairs tested.
        missing: pairs without a label.
        relevant, other: the judge's share of relevant among pairs that people call relevant, and among the others.
        yes: the judge's share of relevant among all pairs.
        agreement: kappa and alpha with people on relevance, each (value, low, high); empty if people's judgments are
            all alike.
        order: the order of the runs; None without two runs.
        per_1000: requests, tokens and money for a thousand pairs, as far as known.
        stopped: why it was stopped; "" if it was not.
    """

    labeler: str
    models: tuple[str, ...]
    prompt: str
    scale: str
    questions: int
    pairs: int
    missing: int
    relevant: Share
    other: Share
    yes: Share
    agreement: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    order: RunOrder | None = None
    per_1000: Mapping[str, float] = field(default_factory=dict)
    stopped: str = ""

    @property
    def lines(self) -> Iterator[str]:
        """Yield the findings as sentences."""
        who = ", ".join(self.models) or "nobody"
        yield f"{self.labeler} (model: {who}) labelled {self.pairs:,} pairs of {self.questions:,} questions."
        if self.stopped:
            yield f"Stopped: {self.stopped}."
        if self.missing:
            yield f"{self.missing:,} of them have no label."
        if self.yes.of:
            yield self.relevant.told("relevant by people")
            if self.other.of:
                yield self.other.told("not relevant by people")
            yield f"Of all pairs it calls {self.yes.called / self.yes.of:.0%} relevant."
        else:
            yield "None of its replies could be read, so its verdicts are unknown."
        for name, (value, low, high) in self.agreement.items():
            ends = "" if np.isnan(low) else f" ({low:.2f} to {high:.2f})"
            if np.isnan(value):
                yield f"There is no {name}: all labels of these pairs are the same."
            else:
                yield f"{name.capitalize()} with people: {value:.2f}{ends}."
        if self.yes.of and not self.agreement and not self.other.of:
            yield "There is no kappa: people called all of these pairs relevant."
        if self.order is not None:
            yield self.order.told
        if self.per_1000:
            told = [
                f"{value:,.6g} {name}" if name == "money" else f"{value:,.0f} {name.replace('_', ' ')}"
                for name, value in self.per_1000.items()
            ]
            yield f"A thousand pairs take {', '.join(told)}."

    def cited(self, file: str) -> str:
        """Return it as one sentence, for reports about labels of this judge; ``file`` is the card's name."""
        if self.stopped:
            return f"a test of this judge ({file}) was stopped: {self.stopped}"
        parts = []
        for share, what in ((self.relevant, "the relevant"), (self.other, "the other")):
            if share.of:
                parts.append(f"{share.called / share.of:.0%} of {what} pairs")
        if not self.other.of and self.yes.of:
            parts.append(f"{self.yes.called / self.yes.of:.0%} of all pairs")
        said = [f"it calls {' and '.join(parts)} relevant"] if parts else ["no reply could be read"]
        value, low, high = self.agreement.get("kappa", (math.nan, math.nan, math.nan))
        if not np.isnan(value):
            ends = "" if np.isnan(low) else f" ({low:.2f} to {high:.2f})"
            said.append(f"kappa with people is {value:.2f}{ends}")
        if self.order is not None and not np.isnan(self.order.tau):
            said.append(f"tau-b of the order of {self.order.runs} runs is {self.order.tau:.2f}")
        return f"a test on {self.pairs:,} pairs of {self.questions:,} questions ({file}): {', '.join(said)}"

    def card(self) -> dict[str, Any]:
        """Return it as plain values, None if unknown."""
        held = {"judgekit": _CARD, "version": __version__, **asdict(self)}
        for name in ("relevant", "other", "yes"):
            held[name] = getattr(self, name)._asdict()
        held["order"] = None if self.order is None else self.order._asdict()
        card: dict[str, Any] = _plain(held)
        return card


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def write_card(fitness: Fitness, path: Path) -> None:
    """Write the card as JSON."""
    path.write_text(json.dumps(fitness.card(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_card(path: Path) -> Fitness:
    """Read a card.

    Raises:
        DataError: the file is not a card.
    """
    try:
        held = json.loads(read_bytes(path))
    except ValueError:
        held = None
    if not isinstance(held, dict) or held.get("judgekit") != _CARD:
        raise DataError("is no card of a judge: judgekit judge-test writes them", path)
    try:
        given = {one.name: held[one.name] for one in fields(Fitness)}
        for name in ("relevant", "other", "yes"):
            given[name] = Share(**given[name])
        order = given["order"]
        if order is not None:
            tau, low, high = (_number(order[name]) for name in ("tau", "low", "high"))
            given["order"] = RunOrder(tau, low, high, int(order["runs"]), str(order["measure"]))
        agreement = {}
        for name, values in given["agreement"].items():
            value, low, high = map(_number, values)
            agreement[name] = value, low, high
        return Fitness(**{**given, "models": tuple(given["models"]), "agreement": agreement})
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DataError(
            f"is no whole card of a judge ({problem}): write it anew with judgekit judge-test", path
        ) from None


def _number(value: float | None) -> float:
    """Return a number from a card, NaN for null."""
    return math.nan if value is None else float(value)


def check_card(fitness: Fitness, labeler: Labeler) -> None:
    """Check that a card is about a labeler: the same kind, models, prompt and scale.

    Raises:
        UsageError: it is about another one.
    """
    needs = labeler.needs
    models = ", ".join(dict.fromkeys(endpoint.model for endpoint in needs.asked))
    kind, own = (spelling.partition("(")[0] for spelling in (fitness.labeler, str(labeler.spec)))
    asked = {
        "kind": (kind, own),
        "model": (", ".join(fitness.models), models),
        "prompt": (fitness.prompt, needs.prompt),
        "scale": (fitness.scale, str(labeler.scale)),
    }
    for what, (tested, here) in asked.items():
        if tested != here:
            raise UsageError(
                f"the card is about {fitness.labeler}, whose {what} is {tested!r}; that of this labeler is {here!r}:"
                " test this one with judgekit judge-test, or leave the card out"
            )
