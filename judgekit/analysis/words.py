"""The decision in words: at most eight lines, the same in terminal, report, JSON, Markdown and notebook.

A line holds as many sentences as fit, the most important first. Nothing is said to be alike, or to cost less, that was
not shown to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from judgekit.analysis.findings import HELPS, LENGTH, MISLEADS, RETRIEVER, TWIN, UNKNOWN, Finding, Findings, Ranged
from judgekit.analysis.money import ANSWERING, PEOPLE, Money, Pool
from judgekit.analysis.primary import Primary
from judgekit.notebook import NotebookRepr
from judgekit.rules import DeclaredOutcome

WIDTH: Final = 100
_LABEL: Final = 10
_PILOT: Final = 200
"""Questions from which on a pilot chooses better between labelings than the rule to buy the most expensive one."""
_PEOPLE_PILOT: Final = 30
_SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}


@dataclass(frozen=True, repr=False)
class Decision(NotebookRepr):
    """What to do, for how much, and how sure that is.

    Attributes:
        lines: at most eight, each a title and its sentences.
        details: further sentences, on every labeling, control and kind of question.
        biases: by labeling those of them that say how its labels are biased.
        findings: the figures behind them for the use that was asked for; ``other`` for the other one, if there are runs
            to choose between.
        purchase: the purchase order, see `judgekit.analysis.money.purchase_order`.
    """

    lines: tuple[tuple[str, str], ...]
    findings: Findings
    details: tuple[str, ...] = ()
    biases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    other: Findings | None = None
    purchase: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False)

    @property
    def text(self) -> str:
        """The lines, of at most 100 characters each."""
        return "\n".join(f"{title:<{_LABEL}}{said}" for title, said in self.lines)

    @property
    def primary(self) -> Primary:
        """The cell that it is about."""
        return self.findings.primary

    @property
    def winner(self) -> str | None:
        """The labeling that is shown to be of use and better than every other one."""
        return self.findings.winner

    @property
    def markdown(self) -> str:
        """The lines as a table of Markdown, with what was found folded away below it."""
        rows = (f"| **{title}** | {said.replace('|', chr(92) + '|')} |" for title, said in self.lines)
        found = "\n\n".join(self.details)
        folded = f"\n\n<details><summary>What was found</summary>\n\n{found}\n\n</details>"
        return "\n".join(["| | |", "| --- | --- |", *rows]) + folded

    def record(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        tables = {"findings": self.findings.table(), "purchase": self.purchase}
        plain = {
            name: table.astype(object).where(table.notna(), None).to_dict("records") for name, table in tables.items()
        }
        return {"text": self.text, "lines": dict(self.lines), "details": list(self.details), **plain}

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Situation:
    """All that the words are made of.

    Attributes:
        choose, find: what was found for each use; None for one that does not arise.
        money, pool, purchase: prices, sizes, and what strategies cost.
        existing: labelings whose labels exist and cannot be bought, "gold" among them.
        references: labelings that need a reference for every new question.
        shares: by labeling, what it shares with the outcome, as the rest of a sentence.
        obstacle: why there can be no decision, as a sentence.
        unchecked: whether answers were imported without saying which documents they were made from.
        outcome: what quality is, on which scale, and where it comes from.
    """

    choose: Findings | None
    find: Findings | None
    money: Money
    pool: Pool | None
    purchase: pd.DataFrame
    existing: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    shares: Mapping[str, str] = field(default_factory=dict)
    obstacle: str = ""
    unchecked: bool = False
    outcome: DeclaredOutcome = field(default_factory=DeclaredOutcome)


def put(primary: Primary, it: Situation) -> Decision:
    """Return the decision on a cell in words; its use leads."""
    choose = it.choose is not None and primary.use == it.choose.primary.use
    leading = it.choose if choose else it.find
    empty = Findings(primary, (), 0, 0, ())
    if leading is None or not leading.each or it.obstacle:
        why = it.obstacle or "No labeling can be compared there."
        lines = {"Do": ["No decision."], "Why": [why], "Next": _details(it, leading or empty)[:-1]}
    else:
        lines = dict(_choosing(it, leading) if choose else _finding(it, leading))
    details = [*([it.obstacle] if it.obstacle else []), *_details(it, leading or empty)]
    return Decision(
        tuple((title, text) for title, said in lines.items() if (text := _fit(said))),
        leading or empty,
        tuple(details),
        {name: tuple(_biases(it, leading or empty, name)) for name in (leading or empty).names},
        it.find if choose else it.choose,
        it.purchase,
    )


def _fit(sentences: Iterable[str]) -> str:
    """Return as many sentences as fit on a line, the first at any rate, cut if it must be."""
    out, most = "", WIDTH - _LABEL
    for sentence in filter(None, sentences):
        if not out:
            out = sentence if len(sentence) <= most else sentence[: most - 1].rstrip() + "…"
        elif len(out) + 1 + len(sentence) <= most:
            out += " " + sentence
    return out


def _choosing(it: Situation, found: Findings) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of the choice between runs."""
    misleading, helping = found.of(MISLEADS), found.of(HELPS)
    best = _recommended(found)
    runs = f"these {len(found.runs)} runs"
    first, second, lead = found.ahead or ("", "", UNKNOWN)
    few = ", too few for intervals" if math.isnan(found.answers.low) else ""
    differ = f"Answers differ on {found.differing:,} of {found.queries:,} questions{few}"
    if misleading:
        picks = "they pick" if misleading[1:] else "it picks"
        yield (
            "Do",
            [
                f"Do not choose by {_names_of([one.labeling for one in misleading], 'or')}: {picks} the worse run.",
                f"Choose by {_short(helping[0].labeling)}." if helping else f"Answers put {_short(first)} first.",
            ],
        )
        rest = [one for one in found.each if one not in misleading]
        gains = [f"{_short(one.labeling)} {_points(one.gain, '')}" for one in [*misleading, *rest]]
        yield "Why", [_while_it_fits("Gain in points: ", gains, ".")]
    elif found.not_worth:
        yield "Do", [f"Buy no labels to choose among {runs}: keep the cheaper retriever."]
        most = _points(Ranged(max(found.answers.high, 0.0)))
        yield "Why", [f"Answers themselves win at most {most} over a coin flip.", differ + "."]
    elif not helping or best is None or best.says != HELPS:
        yield "Do", ["No decision. Do not buy labels yet.", *_lacking(found)]
        yield (
            "Why",
            [
                f"{differ}; {_ahead(first, second, lead)}.",
                f"{_short(found.each[0].labeling)} gains {_points(found.each[0].gain)}: not shown.",
            ],
        )
    else:
        yield "Do", [*_do(it, found, best)]
        yield "Why", [*_why(it, found, best)]
    yield "Cost", [*_cost(it, found, best)]
    yield "How sure", [*_how_sure(found, best, bool(misleading))]
    yield "Beware", [*_beware(it, found, best)]
    yield "Reuse", [*_reuse(it)]
    yield "Failing", [*_failing(it)] if it.find is not None and it.find.each else []
    yield "Next", [*_next(it, found, best)]


def _while_it_fits(start: str, parts: Sequence[str], end: str) -> str:
    """Return a list in a sentence, the first part and as many others as the line holds."""
    shown = list(parts)
    while len(shown) > 1 and len(start) + len("; ".join(shown)) + len(end) > WIDTH - _LABEL:
        shown.pop()
    return start + "; ".join(shown) + end


def _recommended(found: Findings) -> Finding | None:
    """Return the labeling that follows the answers best, of those that do not mislead and of which claims are made."""
    of_use = [one for one in found.each if one.says != MISLEADS and one.labeling not in found.lacking]
    return next(iter(of_use), None)


def _lacking(found: Findings) -> Iterator[str]:
    """Yield which labelings cannot be recommended for want of labels."""
    yield from (f"{_short(name)} lacks labels on {_listed(queries)}." for name, queries in found.lacking.items())


def _do(it: Situation, found: Findings, best: Finding) -> Iterator[str]:
    name, runs = _short(best.labeling), f"these {len(found.runs)} runs"
    if best.labeling in it.existing:
        yield f"Use the {name} labels here."
        cost = _row(it, PEOPLE)
        if cost is not None:
            each = cost["judgments"] * _PEOPLE_PILOT
            about = _amount(it, cost["money"] * _PEOPLE_PILOT) or f"{each:,.0f} judgments"
            yield f"Before buying people's, pilot {_PEOPLE_PILOT} questions: about {about}."
        return
    if _answers_take_less(it, best.labeling):
        yield f"For ground truth to keep, label with {name}."
        yield f"To choose among {runs}, compare answers."
    else:
        yield f"To choose among {runs}, label with {name}."


def _why(it: Situation, found: Findings, best: Finding) -> Iterator[str]:
    name, others = _short(best.labeling), [one for one in found.each if one is not best]
    behind = [one for one in others if (best.labeling, one.labeling) in found.closer]
    if not others:
        yield f"{name} gains {_points(best.gain)} over a coin flip; r {_r(best.r.value)}."
    elif len(behind) == len(others):
        rival = others[0]
        gap = found.gaps.get((best.labeling, rival.labeling), UNKNOWN)
        differ = f" (difference {_r(gap.low)} to {_r(gap.high)})" if math.isfinite(gap.low) else ""
        second = f"{_short(rival.labeling)} {_r(rival.r.value)}{differ}"
        yield f"{name} follows the answers best: r {_r(best.r.value)}; {second}."
    else:
        rival = next(one for one in others if one not in behind)
        if _r(best.r.value) == _r(rival.r.value):
            yield f"Equal r so far, {_r(best.r.value)}: {name} and {_short(rival.labeling)}, not shown apart."
        else:
            yield (
                f"Highest r: {name} {_r(best.r.value)}, {_short(rival.labeling)} {_r(rival.r.value)};"
                " not shown to differ."
            )
        yield "The costliest is safer."
    yield f"{name} puts the better-answered run first {_times(best.concordance)} times in 100."


def _cost(it: Situation, found: Findings, best: Finding | None) -> Iterator[str]:
    """Yield the price of as many new questions where it is known, else requests, and what needs references."""
    if it.pool is None:
        return
    people, each = _row(it, PEOPLE), it.money.by_people
    if people is not None and (best is None or best.labeling in it.existing):
        price = f", {_amount(it, people['total'])} at {_sign(it)}{each:,.2f}" if each is not None else ""
        yield f"People: {it.pool.pairs:,} judgments{price}."
    rows = {name: row for name in (ANSWERING, *found.names) if (row := _row(it, name)) is not None}
    priced = {name: _amount(it, row["total"]) for name, row in rows.items()}
    asked = {name: round(row["requests"] * it.pool.queries) for name, row in rows.items() if row["requests"] > 0}
    if any(priced.values()):
        costs = [f"{_short(name)} {cost}" for name, cost in priced.items() if cost]
        yield _while_it_fits("As many new questions: ", costs, ".")
    elif asked:
        counts = [f"{_short(name)} {count:,}" for name, count in asked.items()]
        yield _while_it_fits(f"Requests at depth {found.primary.depth}: ", counts, ".")
    need = [name for name in found.names if name in it.references]
    if need:
        price = "" if it.money.reference is None else f" ({_sign(it)}{it.money.reference:,.2f})"
        without = [name for name in found.names if name not in it.references]
        who = f"all but {_names_of(without)}" if len(without) == 1 else _names_of([*need, ANSWERING])
        yield f"New questions need references{price}: {who}."


def _how_sure(found: Findings, best: Finding | None, misleads: bool) -> Iterator[str]:
    apply = [f"{_short(name)} does not apply to {n:,}." for name, n in found.inapplicable.items()]
    if best is not None and best.says == HELPS and not misleads:
        yield f"Gain {_points(best.gain)}; {found.differing:,} of {found.queries:,} answers differ."
        yield f"Not shown without {_names_of(best.hinges[:2])}." if best.hinges else ""
        yield from apply
    else:
        yield f"{found.queries:,} questions, {len(found.runs)} retrievers, this reader only."
        yield from apply
        hinges = next((one for one in found.of(MISLEADS) if one.hinges), None)
        yield f"{_short(hinges.labeling)}: not shown without {_names_of(hinges.hinges[:2])}." if hinges else ""
        yield "" if found.kinds else "Kinds of question were not declared."


def _beware(it: Situation, found: Findings, best: Finding | None) -> Iterator[str]:
    """Yield what may undo it, the worst first."""
    yield from _lacking(found)
    yield from (f"{_short(name)} is left out: {why}." for name, why in sorted(found.excluded.items()))
    for name, kinds in found.disagreeing.items():
        yield f"{_short(name)} does otherwise within {_names_of(kinds[:3])} questions: choose by kind."
    if best is not None and best.labeling in it.shares:
        yield f"{_short(best.labeling)} {it.shares[best.labeling]}."
    if best is not None and best.gain.value < 0:
        yield f"{_short(best.labeling)} would pick {_short(best.picks)}, the answers so far {_short(found.first)}."
    elif best is not None and best.picks and best.picks != found.first:
        yield f"Best run: {_short(best.picks)} by {_short(best.labeling)}, {_short(found.first)} by the answers."
    for name, n in found.unknown.items():
        yield f"{_short(name)} lacks labels on {n:,} questions; claims hold whatever they are."
    for one in found.each:
        yield from _by_run(one, _short)
    for name, what in ((RETRIEVER, "the runs' own ranks give"), (LENGTH, "the length of documents gives")):
        if best is not None and name in found.controls and not best.beats.get(name, True):
            value = _times(found.controls[name])
            yield f"{_short(best.labeling)} is right {_times(best.concordance)} times in 100; {what} {value}."
    if it.unchecked:
        yield "Contexts not checked: answers do not say which documents they were made from."
    if best is not None and best.labeling in it.existing:
        yield f"Documents that {_short(best.labeling)} does not list count as 0."


def _reuse(it: Situation) -> Iterator[str]:
    pool = it.pool
    if pool is None or pool.labels_again is None or pool.answers_again is None:
        return
    labels, answers = (
        f"{least:,}" if least == most else f"{least:,} to {most:,}"
        for least, most in (pool.labels_again, pool.answers_again)
    )
    yield f"A further run needs {labels} new labels, or {answers} answers."


def _failing(it: Situation) -> list[str]:
    """Return which labeling tells the questions that fail, with the control and what it shares beside it."""
    found = it.find
    if found is None or not found.each:
        return []
    best = found.each[0]
    name = _short(best.labeling)
    if not best.guides:
        return [f"No labeling is shown to tell the questions that fail ({name} {_times(best.concordance)} in 100)."]
    text = f"{name} {_times(best.concordance)} in 100"
    twin = found.controls.get(TWIN + best.labeling)
    beside = [f"the question alone {_times(twin)}"] if twin is not None else []
    beside += [f"it {it.shares[best.labeling]}"] if best.labeling in it.shares else []
    return [f"{', and '.join([f'{text}, {beside[0]}', *beside[1:]] if beside else [text])}."]


def _next(it: Situation, found: Findings, best: Finding | None) -> Iterator[str]:
    if found.of(MISLEADS):
        yield "Repeat with the reader that you will ship."
    elif found.not_worth:
        return
    elif best is None or best.says != HELPS:
        at_least = found.needed is not None and found.needed > found.queries + 1
        enough = f"at least {found.needed:,}" if at_least else f"more than {found.queries:,}"
        yield f"Bring {enough} questions (perhaps none suffice), or keep the cheaper retriever."
    elif best.labeling not in {a for a, b in found.closer} and len(found.each) > 1 and found.queries < _PILOT:
        yield f"Pilot {_PILOT} questions. With fewer, buying the costliest labeling is as good a choice."


def _finding(it: Situation, found: Findings) -> Iterator[tuple[str, list[str]]]:
    """Yield the lines of the search for the questions that fail."""
    best = found.each[0]
    name = _short(best.labeling)
    if best.guides:
        yield "Do", [f"To find the questions that fail, look where {name} scores low.", *_failing(it)]
        each = [f"{_short(one.labeling)} {_times(one.concordance)}" for one in found.each]
        yield "Why", [_while_it_fits("Times in 100 that the better-answered of two scores higher: ", each, ".")]
    else:
        yield "Do", ["No decision. No labeling is shown to tell the questions that fail."]
        yield "Why", [f"{name}: {_times(best.concordance)} in 100 pairs of questions in the right order; chance 50."]
    yield "Cost", [*_cost(it, found, best)]
    low, high = (_times(Ranged(end)) for end in best.concordance[1:])
    rivals = [name for name in found.names[1:] if (best.labeling, name) not in found.better]
    yield (
        "How sure",
        [
            f"{_times(best.concordance)} ({low} to {high}) on {found.queries:,} questions.",
            f"Not shown to be better than {_names_of(rivals, 'or')}." if rivals else "",
        ],
    )
    yield "Beware", [*_beware(it, found, best)]
    yield "Reuse", [*_reuse(it)]


def _details(it: Situation, found: Findings) -> list[str]:
    """Return what was found of everything that took part, what is claimed, and what was left out."""
    does = "puts the better-answered run first" if found.choose else "scores the better-answered question higher"
    order, by_words = (
        [one.labeling for one in sorted(found.each, key=key)]
        for key in (lambda one: -one.tau_b, lambda one: -one.concordance.value)
    )
    worths = [
        f": {one.says}, gain {_points(one.gain)}, r {_ranged(one.r, _r)}; it" * found.choose for one in found.each
    ]
    better = "to choose by" if found.choose else "to find questions with"
    tau = f"Kendall's tau-b, which punishes fine scores, orders them differently: {', '.join(order)}."
    return [
        *(
            f"{one.labeling}{worth} {does} {_span(one.concordance)} times in 100."
            for one, worth in zip(found.each, worths, strict=True)
        ),
        *(sentence for name in found.names for sentence in _biases(it, found, name)),
        *(f"{name} gives {_span(value)} times in 100." for name, value in found.controls.items() if value.value > 0),
        *([tau] if order != by_words else []),
        *(f"{a} is shown to be better {better} than {b}." for a, b in sorted(found.better)),
        *(
            f"{a} follows the answers more closely than {b}; that it is better to choose by is not shown."
            for a, b in sorted(found.closer - found.better)
        ),
        *(f"{a} is shown to put the better-answered run first more often than {b}." for a, b in sorted(found.oftener)),
        *(
            f"{name} has no score on {n:,} questions: all are compared on the other {found.queries:,}."
            for name, n in found.inapplicable.items()
        ),
        *(
            f"{name} lacks labels on {n:,} questions: every claim holds whatever they are."
            for name, n in found.unknown.items()
            if name not in found.lacking
        ),
        *(
            f"{name} lacks labels on {_listed(queries, 10)}, where nothing bounds its score: no claim."
            for name, queries in found.lacking.items()
        ),
        *(f"{name} is left out: {why}." for name, why in sorted(found.excluded.items())),
        f"This is about {found.primary}.",
    ]


def _biases(it: Situation, found: Findings, name: str) -> Iterator[str]:
    """Yield how the labels of a labeling are biased, as far as it is known or shown."""
    one = found[name]
    yield from [f"{name} {it.shares[name]}."] if name in it.shares else []
    yield from [f"{name} misleads: it picks the worse run."] if one.says == MISLEADS else []
    yield from _by_run(one, str)
    yield from [f"Documents that {name} does not list count as 0."] if name in it.existing else []


def _by_run(one: Finding, named: Callable[[str], str]) -> Iterator[str]:
    """Yield which runs a labeling puts into the wrong order, flatters or undervalues."""
    for high, low in one.misordered:
        yield f"{named(one.labeling)} puts {named(high)} above {named(low)}, answers below: both shown."
    for run, flattered in one.leans.items():
        yield f"{named(one.labeling)} {'flatters' if flattered else 'undervalues'} {named(run)}."


def _row(it: Situation, strategy: str) -> dict[str, Any] | None:
    rows = it.purchase[it.purchase["strategy"] == strategy] if len(it.purchase) else it.purchase
    return {str(key): value for key, value in rows.iloc[0].items()} if len(rows) else None


def _answers_take_less(it: Situation, labeling: str) -> bool:
    """Return whether answering end to end is known to take less than labels: money, or requests without prices."""
    answers, labels = _row(it, ANSWERING), _row(it, labeling)
    if answers is None or labels is None:
        return False
    for column in ("money", "requests"):
        if math.isfinite(answers[column]) and math.isfinite(labels[column]) and answers[column] > 0:
            return bool(answers[column] < labels[column] and answers["references"] <= labels["references"])
    return False


def _sign(it: Situation) -> str:
    return _SIGNS.get(it.money.currency, f"{it.money.currency} " if it.money.currency else "")


def _amount(it: Situation, money: float) -> str:
    """Return an amount of money in words, "" where it is unknown or nothing."""
    if not math.isfinite(money) or money <= 0:
        return ""
    return f"{_sign(it)}{money:,.0f}" if money >= 10 else f"{_sign(it)}{money:,.2f}"


def _ahead(first: str, second: str, lead: Ranged) -> str:
    if round(100 * lead.value, 1) == 0:
        return f"{_short(first)} and {_short(second)} are level: {_points(lead)}"
    return f"{_short(first)} leads {_short(second)} by {_points(lead)}"


def _points(number: Ranged, unit: str = " points") -> str:
    """Return a difference of quality in points, with its interval."""
    return _ranged(number, lambda value: f"{100 * value + 0.0:.1f}", unit)


def _ranged(number: Ranged, written: Callable[[float], str], unit: str = "") -> str:
    value, low, high = map(written, number)
    return f"{value}{unit}" if math.isnan(number.low) else f"{value}{unit} ({low} to {high})"


def _r(value: float) -> str:
    """Return a correlation as it is printed, .44."""
    return f"{value:.2f}".replace("0.", ".", 1)


def _times(concordance: Ranged) -> str:
    return f"{100 * concordance.value:.0f}"


def _span(concordance: Ranged) -> str:
    return _ranged(concordance, lambda value: f"{100 * value:.0f}")


def _short(name: str, most: int = 24) -> str:
    """Return a name that leaves room on a line."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _listed(queries: Sequence[str], most: int = 3) -> str:
    more = f" and {len(queries) - most:,} more" if len(queries) > most else ""
    return f"{len(queries):,} questions ({', '.join(queries[:most])}{more})"


def _names_of(labelings: Sequence[str], joint: str = "and") -> str:
    """Return names as a list in a sentence."""
    written = [_short(name) for name in labelings]
    return written[0] if len(written) == 1 else f"{', '.join(written[:-1])} {joint} {written[-1]}"
