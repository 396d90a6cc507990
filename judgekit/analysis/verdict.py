"""The verdict in words: for each use, what the labels are worth, how sure that is, and what they share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judgekit.analysis.controls import CLOSED_BOOK, LENGTH, RETRIEVER, TWIN
from judgekit.analysis.gain import Gain
from judgekit.analysis.intervals import MIN_DIFFERING
from judgekit.analysis.primary import CHOOSE_RUNS, Primary
from judgekit.analysis.uses import CHANCE, POWER, Found, Standing
from judgekit.notebook import Shown

__all__ = ["Verdict", "decide"]


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What can be said for one use.

    Attributes:
        headline: the outcome in one sentence.
        details: further sentences on what was found.
        not_shown: sentences on what was not, and on what it would take.
        primary: the cell and the use that it is about.
        found: the figures behind the sentences; None where there are none.
        excluded: labelings that are left out, with the reason.
    """

    headline: str
    primary: Primary
    details: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    found: Found | None = None
    excluded: Mapping[str, str] = field(default_factory=dict)

    @property
    def winner(self) -> str | None:
        """The labeling that is shown to be better than every other one and than chance."""
        return self.found.winner if self.found else None

    @property
    def ranking(self) -> tuple[str, ...]:
        """The labelings by concordance, the best first."""
        return tuple(one.labeling for one in self.found.standings) if self.found else ()

    @property
    def leaders(self) -> tuple[str, ...]:
        """The best labeling and those that cannot be told apart from it; empty where none is shown to beat chance."""
        return self.found.leaders if self.found else ()

    @property
    def cheapest(self) -> str | None:
        """The cheapest labeling that will do; "" where no labels are needed, None where it cannot be told."""
        return self.found.gains.cheapest if self.found and self.found.gains else None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The headline, then the details, then what was not shown."""
        return (self.headline, *self.details, *self.not_shown)

    @property
    def text(self) -> str:
        """The whole paragraph."""
        return " ".join(self.sentences)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"


def decide(
    found: Found | None,
    primary: Primary,
    *,
    excluded: Mapping[str, str],
    shares: Mapping[str, str],
    other: Verdict | None = None,
    obstacle: str = "",
) -> Verdict:
    """Put into words what was found for a use; None where no labeling can be compared.

    ``excluded`` gives the reason by labeling, ``shares`` what each shares with the outcome, in words; the verdict for
    the ``other`` use may have another leader; an ``obstacle`` says in a sentence why there can be no verdict.
    """
    left_out = tuple(f"{name!r} is excluded: {why}." for name, why in sorted(excluded.items()))
    if found is None or obstacle:
        why = obstacle or "No labeling can be compared there."
        headline = f"No verdict on {primary}: {why[0].lower()}{why[1:]}"
        return Verdict(headline, primary, (), left_out, None, dict(excluded))
    choose = primary.use == CHOOSE_RUNS
    details = [
        *(_choosing(found, primary) if choose else _find(found)),
        *_shared(found, shares),
        *_by_tau(found),
        f"This is about {primary}.",
    ]
    not_shown = [
        *_chance(found),
        *([*_costlier(found), *_beside_controls(found)] if choose else ()),
        *_planned(found),
        *_unknown(found),
        *left_out,
    ]
    return Verdict(_headline(found, other), primary, tuple(details), tuple(not_shown), found, dict(excluded))


def _headline(found: Found, other: Verdict | None) -> str:
    best, *rest = found.standings
    if found.use == CHOOSE_RUNS:
        scope = f"these {len(found.runs)} runs; they differ on {found.differing:,} of {found.queries:,} questions"
        start = f"To choose between retrievers ({scope}): on the same question"
        does = "puts the better-answered run first"
    else:
        runs = "this run" if len(found.runs) == 1 else f"each of these {len(found.runs)} runs"
        start = f"To find the questions that fail ({found.queries:,} questions): of two questions of {runs},"
        does = "scores the better-answered one higher"
    others = "".join(f", {one.labeling!r} {_times(one.concordance)}" for one in rest)
    text = f"{start} {best.labeling!r} {does} {_times(best.concordance)} times in 100{others} (chance: 50)"
    text += _order(found)
    if other is not None and other.leaders and found.leaders and other.leaders[0] not in found.leaders:
        text += (
            f". For the other use, to {'find the questions that fail' if found.use == CHOOSE_RUNS else 'choose runs'},"
            f" {other.leaders[0]!r} leads instead"
        )
    return text + "."


def _order(found: Found) -> str:
    """Say which labelings are told apart, as the end of the headline."""
    best, *rest = found.standings
    if not any(one.guides for one in found.standings):
        return "; none is shown to be better than chance"
    if not rest:
        return ""
    if found.winner:
        return f"; {best.labeling!r} is better than all others"
    if found.use == CHOOSE_RUNS and found.differing < MIN_DIFFERING:
        return f"; fewer than {MIN_DIFFERING} such questions cannot tell them apart"
    behind = [one.labeling for one in rest if one.labeling not in found.leaders]
    if not behind:
        return "; they cannot be told apart"
    is_behind = f"{names(behind)} {'is' if len(behind) == 1 else 'are'} behind"
    return f"; {is_behind}{', the rest cannot be told apart' if len(found.leaders) > 1 else ''}"


def _choosing(found: Found, primary: Primary) -> Iterator[str]:
    """Yield what choosing by the labels wins, what carries it, and the cheapest that will do."""
    gains = found.gains
    ranked = [(one.labeling, one.gain) for one in found.standings if one.gain is not None]
    if gains is None or not ranked:
        return
    unit = f"{primary.metric} points"
    listed = [f"{_points(gain, gains.confidence)} by {name!r}" for name, gain in ranked]
    best = max((gain for _, gain in ranked), key=lambda gain: gain.value)
    # The most that can be won is an estimate too; what a labeling wins can be won.
    most = max(gains.attainable, gains.by_answers, best.value)
    noisy = (
        ", less than by labels, since half of the answers are a noisy guide" if best.value > gains.by_answers else ""
    )
    yield (
        f"Choosing by mean score from half of the questions wins, over a coin flip, in {unit}: {', '.join(listed)}."
        f" Picking by the answers of that half wins {100 * gains.by_answers:.1f}{noisy}; the most that any choice could"
        f" win is about {100 * most:.1f}."
    )
    name = next(name for name, gain in ranked if gain is best)
    if len(found.runs) > 2 and best.interval(gains.confidence)[0] > 0:
        worst = min(range(len(found.runs)), key=lambda run: float(best.without[run]))
        low, high = best.interval(gains.confidence, worst)
        alike = ": they are too alike" if low <= 0 else ""
        yield (
            f"Without {found.runs[worst]!r}, choosing between the other runs by {name!r} wins"
            f" {100 * float(best.without[worst]):.1f} ({100 * low:.1f} to {100 * high:.1f}){alike}."
        )
    if gains.cheapest == "":
        least = 100 * (gains.enough.margin or 0)
        yield f"The choice between these runs is worth less than {least:g} points: no labels are needed."
    elif gains.cheapest is not None:
        loss = 100 * gains.loss
        yield f"Cheapest that {gains.enough}: {gains.cheapest!r} (may lose at most {loss:.1f} points)."
        cost = _orders(found)
        others = [name for name, order in cost.items() if order == cost[gains.cheapest] and name != gains.cheapest]
        if others:
            yield f"{names(others)} {'costs' if len(others) == 1 else 'cost'} as little as {gains.cheapest!r}."


def _orders(found: Found) -> dict[str, int]:
    """Return the place by cost of each labeling whose cost is known."""
    return {one.labeling: one.order for one in found.standings if one.order is not None}


def _costlier(found: Found) -> Iterator[str]:
    """Yield what is not shown of labelings that cost more than the cheapest that will do, or that none is shown to."""
    cost, chosen = _orders(found), found.gains and found.gains.cheapest
    if chosen is None and cost and found.gains:
        yield f"These questions do not show which labeling is the cheapest that {found.gains.enough}."
    if not chosen:
        return
    costlier = [name for name, order in cost.items() if order > cost[chosen] and (name, chosen) not in found.better]
    if costlier:
        does = "costs more and is" if len(costlier) == 1 else "cost more and are"
        yield f"{names(costlier)} {does} not shown to be better than {chosen!r}."


def _beside_controls(found: Found) -> Iterator[str]:
    """Yield which labelings are not shown to add anything to the ranks or to the length of documents."""
    if found.differing < MIN_DIFFERING:
        return
    for name, what in ((RETRIEVER, "the runs' own ranks"), (LENGTH, "the length of documents")):
        if name not in found.controls:
            continue
        level = [one for one in found.standings if one.guides and not one.beats.get(name, True)]
        if level:
            yield (
                f"{names(x.labeling for x in level)} {_is(level)} not shown to add anything to {what}"
                f" ({_times(found.controls[name][0])} times in 100)."
            )


def _chance(found: Found) -> Iterator[str]:
    """Yield which labelings are no better than chance, where the headline does not say it of all."""
    worse = [one for one in found.standings if one.high < CHANCE]
    open_ = [one for one in found.standings if not one.guides and one not in worse]
    if worse:
        does = "does" if len(worse) == 1 else "do"
        yield f"{names(x.labeling for x in worse)} {does} worse than chance: high scores go with the worse answers."
    if open_ and len(open_) < len(found.standings):
        yield f"{names(x.labeling for x in open_)} {_is(open_)} not shown to be better than chance."


def _find(found: Found) -> Iterator[str]:
    """Yield how the labelings compare with what tells easy questions from hard ones."""
    for one in found.standings:
        twin = found.controls.get(TWIN + one.labeling)
        if twin is None or not one.guides:
            continue
        text = f"{one.labeling!r}: {_times(one.concordance)} times in 100; the same label for every document of a"
        text += f" question gives {_times(twin[0])}"
        if not one.beats.get(TWIN + one.labeling, True):
            text += ": it tells easy questions from hard ones"
        yield text + "."
    book = found.controls.get(CLOSED_BOOK)
    if book is not None:
        if math.isnan(book[0]):
            yield "The closed-book control says nothing: all closed-book answers have the same quality."
        else:
            yield f"What the model answers without documents gives {_times(book[0])}."


def _shared(found: Found, shares: Mapping[str, str]) -> Iterator[str]:
    """Yield what each labeling shares with the outcome."""
    said = [f"{one.labeling!r} shares {shares[one.labeling]}" for one in found.standings if shares.get(one.labeling)]
    if said:
        yield f"With the outcome, {'; '.join(said)}."


def _planned(found: Found) -> Iterator[str]:
    best = found.standings[0]
    for name, needed in found.needed.items():
        if needed is not None:
            yield (
                f"Telling {best.labeling!r} from {name!r} takes about {needed[0]:,} to {needed[1]:,} questions (power"
                f" {POWER:g}), if the difference is as large as it seems."
            )


def _by_tau(found: Found) -> Iterator[str]:
    order = sorted(
        found.standings, key=lambda x: (-x.tau_b if math.isfinite(x.tau_b) else 2.0, -x.concordance, x.labeling)
    )
    if [x.labeling for x in order] != [x.labeling for x in found.standings]:
        yield (
            f"Kendall's tau-b ranks them differently ({', '.join(x.labeling for x in order)}): it also punishes scores"
            " that are finer than the quality."
        )


def _unknown(found: Found) -> Iterator[str]:
    """Yield which labelings lack labels, and what that means for the claims."""
    lack = [f"{name!r} lacks labels on {count:,} questions" for name, count in sorted(found.unknown.items())]
    if lack:
        yield f"{', '.join(lack)}: every claim holds whatever the missing labels are."


def _points(gain: Gain, confidence: float) -> str:
    low, high = gain.interval(confidence)
    return f"{100 * gain.value:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _times(concordance: float) -> str:
    return f"{100 * concordance:.0f}"


def _is(standings: Sequence[Standing]) -> str:
    return "is" if len(standings) == 1 else "are"


def names(labelings: Iterable[str]) -> str:
    """Return names as a list in a sentence."""
    written = [repr(name) for name in labelings]
    return written[0] if len(written) == 1 else f"{', '.join(written[:-1])} and {written[-1]}"
