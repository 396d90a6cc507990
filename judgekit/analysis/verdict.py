"""The verdict: one paragraph in plain words about one cell that was fixed in advance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from judgekit.analysis.differences import Difference, holm
from judgekit.analysis.primary import Primary
from judgekit.analysis.resampling import claim_level, percent

__all__ = ["Candidate", "Verdict", "decide"]

CHANCE: Final = 0.5
POWER: Final = 0.8
_FAR: Final = 100
"""A number of queries more than so many times those at hand is not worth naming."""


@dataclass(frozen=True)
class Candidate:
    """A labeling that takes part in the verdict.

    Attributes:
        labeling: its name.
        concordance, tau_b: its values in the primary cell.
        order: position by cost, the cheapest 1; None where the cost is unknown.
        remark: a sentence on what it shares with the outcome, or "".
        low, high: the interval of the concordance, NaN where it is undefined.
    """

    labeling: str
    concordance: float
    tau_b: float
    order: int | None = None
    remark: str = ""
    low: float = math.nan
    high: float = math.nan

    @property
    def predicts(self) -> bool:
        """Whether it is shown to do better than chance; without an interval nothing is."""
        return self.low > CHANCE


@dataclass(frozen=True)
class Verdict:
    """What can be said.

    Attributes:
        headline: the outcome in one sentence.
        details: further sentences.
        primary: the cell that it is about.
        best: the labeling with the highest concordance; None where no statement is possible.
        winner: ``best`` where it is better than every other labeling beyond chance and any is better than chance
            itself, else None.
        predictive: whether any labeling is shown to predict answer quality better than chance.
        ranking: labelings by concordance, the best first.
        worse: labelings that the best is told apart from.
        not_told_apart: the others, the best first.
        by_tau: labelings by tau-b, the best first.
        cheapest: the cheapest labeling that is not worse than the best by more than the margin; None where costs
            are unknown or none can be shown to be.
        margin: that margin, in concordance.
        confidence: of the intervals; differences are claimed at `claim_level` of it.
        queries: queries that the statement rests on.
        queries_needed: per labeling that the best is not told apart from, how many queries would do it with power .8
            if the difference seen is the true one; None where that is more than a hundred times those at hand.
        excluded: labelings that take no part, with the reason.
        differences: the best minus each other labeling.
    """

    headline: str
    primary: Primary
    margin: float
    queries: int
    confidence: float
    details: tuple[str, ...] = ()
    best: str | None = None
    winner: str | None = None
    predictive: bool = True
    ranking: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()
    not_told_apart: tuple[str, ...] = ()
    by_tau: tuple[str, ...] = ()
    cheapest: str | None = None
    queries_needed: Mapping[str, int | None] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict, repr=False)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The headline, then the details."""
        return (self.headline, *self.details)

    @property
    def text(self) -> str:
        """The whole paragraph."""
        return " ".join(self.sentences)

    def __str__(self) -> str:
        return self.text


def decide(
    candidates: Sequence[Candidate],
    gap: Callable[[str, str], Difference],
    primary: Primary,
    *,
    margin: float,
    queries: int,
    confidence: float,
    excluded: Mapping[str, str],
    obstacle: str = "",
) -> Verdict:
    """Return the verdict over the labelings that take part.

    A winner is named only where the labeling with the highest concordance differs from every single other one at
    `claim_level` (an intersection-union test: no correction is needed, as all must be rejected). Without a winner,
    those that it differs from are found with Holm's correction.

    Args:
        candidates: the labelings that take part.
        gap: returns the paired difference in concordance of two of them.
        primary: the cell.
        margin: what the user accepts to lose by a cheaper labeling.
        queries: queries that the estimates rest on.
        confidence: of the candidates' intervals and of the differences.
        excluded: labelings that take no part, with the reason.
        obstacle: a sentence that says why there can be no verdict at all, or "".
    """
    ranked = sorted(candidates, key=lambda c: (-c.concordance, c.labeling))
    out = tuple(f"{name!r} takes no part: {why}." for name, why in sorted(excluded.items()))
    order = tuple(c.labeling for c in ranked)
    base = Verdict("", primary, margin, queries, confidence, excluded=dict(excluded), ranking=order)
    if obstacle or not ranked:
        why = obstacle or "No labeling has a concordance there."
        return replace(base, headline=f"No verdict on {primary}: {why[0].lower()}{why[1:]}", details=out)
    best, others = ranked[0], ranked[1:]
    gaps = {other.labeling: gap(best.labeling, other.labeling) for other in others}
    alpha = claim_level(confidence)
    known = {name: d for name, d in gaps.items() if math.isfinite(d.p)}
    clear = bool(gaps) and len(known) == len(gaps) and all(d.p <= alpha and d.value > 0 for d in known.values())
    adjusted = dict(zip(known, holm([d.p for d in known.values()]), strict=True))
    worse = tuple(name for name in gaps if clear or (adjusted.get(name, 1.0) <= alpha and gaps[name].value > 0))
    open_ = tuple(name for name in gaps if name not in worse)
    predictive = any(c.predicts for c in ranked)
    by_tau = sorted(ranked, key=lambda c: (-c.tau_b if math.isfinite(c.tau_b) else 2.0, -c.concordance, c.labeling))
    verdict = replace(
        base,
        best=best.labeling,
        winner=best.labeling if clear and predictive else None,
        predictive=predictive,
        worse=worse,
        not_told_apart=open_,
        by_tau=tuple(c.labeling for c in by_tau),
        cheapest=_cheapest(ranked, gaps, margin),
        queries_needed={name: _needed(gaps[name], queries, alpha) for name in open_},
        differences=gaps,
    )
    return replace(verdict, headline=_headline(verdict, best), details=(*_details(verdict, ranked, primary), *out))


def _needed(gap: Difference, queries: int, alpha: float) -> int | None:
    """Return the number of queries that detects the difference seen at a level with `POWER`, if it is the true one."""
    from scipy.special import ndtri

    if not (gap.se > 0 and gap.value > 0):
        return None
    times = ((float(ndtri(1 - alpha / 2)) + float(ndtri(POWER))) * gap.se / gap.value) ** 2
    return max(math.ceil(queries * times), queries + 1) if times <= _FAR else None


def _cheapest(ranked: Sequence[Candidate], gaps: Mapping[str, Difference], margin: float) -> str | None:
    """Return the first by cost, of those with a known cost, that is the best or shown to be within the margin."""
    known = sorted((c.order, -c.concordance, c.labeling) for c in ranked if c.order is not None)
    for _, _, name in known:
        if name == ranked[0].labeling or gaps[name].upper <= margin:
            return name
    return None


def _headline(verdict: Verdict, best: Candidate) -> str:
    on = f"On {verdict.queries:,} queries"
    share = f"favour the better of two answers {100 * best.concordance:.0f} times in 100 (chance: 50)"
    if verdict.winner:
        return f"{on}, {best.labeling!r} predicts answer quality best: its scores {share}."
    if not verdict.differences:
        return f"{on}, {best.labeling!r} is the only labeling that can be looked at: its scores {share}."
    ahead = ", ahead here," if any(gap.value > 0 for gap in verdict.differences.values()) else ""
    scores = f"the scores of {best.labeling!r}{ahead} {share}."
    if not verdict.predictive:
        return f"{on}, no labeling is shown to predict answer quality better than chance: {scores}"
    tied = _names([best.labeling, *verdict.not_told_apart])
    return f"{on}, there is no winner: {tied} cannot be told apart. T{scores[1:]}"


def _details(verdict: Verdict, ranked: Sequence[Candidate], primary: Primary) -> list[str]:
    best = ranked[0]
    values = {c.labeling: c.concordance for c in ranked}
    out = [f"This is about {primary}, at {percent(verdict.confidence)} confidence."]
    if best.high < CHANCE:
        out.append(
            f"{best.labeling!r} does worse than chance (concordance {_between(best)}): its high scores go with the"
            " worse answers."
        )
    elif not best.predicts:
        out.append(f"Whether {best.labeling!r} does better than chance is open (concordance {_between(best)}).")
    if verdict.not_told_apart and not verdict.predictive:
        tied = _names([best.labeling, *verdict.not_told_apart])
        out.append(f"{tied} cannot be told apart.")
    if verdict.worse:
        listed = _names(verdict.worse, lambda n: f"{n!r} ({values[n]:.3f})")
        out.append(f"{best.labeling!r} (concordance {best.concordance:.3f}) is better beyond chance than {listed}.")
    if verdict.by_tau != verdict.ranking:
        first = (
            f"would put {verdict.by_tau[0]!r} first" if verdict.by_tau[0] != best.labeling else "orders them otherwise"
        )
        order = ", ".join(verdict.by_tau)
        out.append(f"Kendall's tau-b {first} ({order}): it also punishes scores that are finer than the quality.")
    if verdict.cheapest is not None:
        orders = [c.order for c in ranked if c.order is not None]
        among = " of known cost" if len(orders) < len(ranked) else ""
        if verdict.cheapest != best.labeling:
            out.append(
                f"The cheapest labeling{among} that is not worse by more than {verdict.margin:g} in concordance"
                f" (one-sided {percent(verdict.confidence)}) is {verdict.cheapest!r} ({values[verdict.cheapest]:.3f})."
            )
        elif best.order is not None and best.order > min(orders):
            out.append(f"No cheaper labeling{among} is shown to be within {verdict.margin:g} of it in concordance.")
        elif len(orders) > 1:
            out.append(f"No other labeling{among} is cheaper than {best.labeling!r}.")
    if primary.level == "system":
        if verdict.not_told_apart:
            out.append("More runs, rather than more queries, would settle what is open.")
    else:
        for name, needed in verdict.queries_needed.items():
            gap = verdict.differences[name]
            if needed is None and gap.value > 0 and not gap.se > 0:
                out.append(f"How many queries would settle it against {name!r} cannot be said from so few.")
            elif needed is None:
                out.append(f"From {name!r} it is too close for any affordable number of queries to settle.")
            else:
                out.append(
                    f"About {needed:,} queries would settle it against {name!r} (power {POWER:g}), if the difference"
                    f" is what it seems ({gap.value:+.3f})."
                )
    out += [c.remark for c in ranked if c.remark and c.labeling in (best.labeling, verdict.cheapest)]
    return out


def _between(candidate: Candidate) -> str:
    if not math.isfinite(candidate.low):
        return f"{candidate.concordance:.3f}, without an interval: too many resamples leave it undefined"
    return f"{candidate.concordance:.3f}, interval {candidate.low:.3f} to {candidate.high:.3f}"


def _names(names: Sequence[str], write: Callable[[str], str] = repr) -> str:
    written = [write(name) for name in names]
    return written[0] if len(written) == 1 else f"{', '.join(written[:-1])} and {written[-1]}"
