"""Which labels to keep for later runs: one rule, what qualifies it, and what else is known of each labeling.

The rule: leave out labelings whose own pick is shown to be worse by the answers, that are shown to flatter their pick,
or that mislead; of the rest, keep the one with the largest r. A price says nothing about accuracy, so it orders only
labelings that follow equally well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from judgekit.analysis.background import LENGTH, RETRIEVER
from judgekit.analysis.case import HELPS, MISLEADS, NOT_SHOWN, Case, Follower
from judgekit.analysis.claims import Claim
from judgekit.analysis.follow import pooled_correlation
from judgekit.analysis.leakage import MARKS_ITSELF, kinship, shared
from judgekit.analysis.levels import POOLED
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.analysis.resampling import interval
from judgekit.analysis.wording import correlation, names_of, plural, points, ranged, some_of, times, with_r

KEEP: Final = "keep"
CHEAPER: Final = "cheaper"
LEFT_OUT: Final = "left out"
BIASES: Final = ("shares", "misleads", LEFT_OUT, "flatters", "misorders", "unlisted", "reranked")
"""Kinds of claims that say how the labels of their subject are biased."""
_CONTROLS: Final = {RETRIEVER: "the runs' own ranks", LENGTH: "the length of documents"}


def why_left_out(case: Case, follower: Follower) -> str:
    """Return why the rule leaves a labeling out, as a sentence; "" where it does not."""
    if follower.name in case.panel.unbounded:
        # Nothing is claimed of it, and it is not kept either: its pick may be another once its scores are known.
        return ""
    worse = [run for run, may in zip(case.panel.runs, case.best.may_be_best, strict=True) if not may]
    if all(run in worse for run in follower.picks):
        return f"It picks {names_of(follower.picks)}, which {case.target} {case.show} to be worse."
    if follower.flattered:
        return f"It flatters {follower.flattered}, its own pick."
    if follower.finding == MISLEADS:
        return "Choosing by it loses against a coin flip."
    return ""


def by_the_rule(case: Case) -> list[Follower]:
    """Return the labelings that the rule does not leave out, the one that it keeps first."""
    return [
        follower
        for follower in case.followers
        if follower.r.value > 0 and follower.name not in case.panel.unbounded and not why_left_out(case, follower)
    ]


def keeping(case: Case) -> Iterator[Claim]:
    """Yield which labels to keep, and which less expensive ones follow as closely."""
    if case.background.incomparable:
        yield Claim(KEEP, f"No labeling is compared. {case.background.incomparable}", line="Keep")
        return
    if not case.followers:
        yield Claim(KEEP, "No labeling can be compared for choosing between the runs.", line="Keep")
        return
    left = by_the_rule(case)
    useful = [follower for follower in left if follower.useful]
    if not useful:
        yield _none(case, left)
        return
    kept = useful[0]
    reader = ", for this reader" if _marks_itself(case, kept.name) else ""
    sentence = f"For later runs keep {kept.name}: it follows {case.target} most closely ({with_r(kept.r)}){reader}."
    yield Claim(
        KEEP, sentence, kept.name, value=kept.r.value, low=kept.r.low, high=kept.r.high, shown=True, line="Keep", rank=1
    )
    yield from _cheaper(case, kept, left)


def _none(case: Case, left: Sequence[Follower]) -> Claim:
    by_judgments = bool(case.background.quality)  # there are no answers: existing labels are the outcome
    if not left:
        said = "No labeling is left to keep: answer more questions end to end."
        if by_judgments:
            said = f"Keep the judgments that you have: no other labeling follows {case.target}."
        return Claim(KEEP, said, line="Keep", rank=1)
    first = left[0]
    said = f"No labeling is shown to be useful: {first.name} has the largest r ({with_r(first.r)})."
    if len(case.panel.runs) == 2:
        said += " Two runs seldom can show one: add variants of them."
    elif by_judgments:
        said += " Keep the judgments that you have."
    else:
        said += " Answer more questions end to end before you buy labels."
    return Claim(
        KEEP, said, against=first.name, value=first.r.value, low=first.r.low, high=first.r.high, line="Keep", rank=1
    )


def shared_in_words(case: Case, name: str) -> str:
    """Return what a labeling shares with the outcome, as the rest of a sentence."""
    need = case.background.needs.get(name)
    return "" if need is None else shared(need, case.background.answering.get(case.panel.model), case.panel.metric)


def _marks_itself(case: Case, name: str) -> bool:
    return shared_in_words(case, name) == MARKS_ITSELF


def is_kin(case: Case, name: str) -> bool:
    """Return whether a labeling asks the answering model, or one of its family."""
    need, answering = case.background.needs.get(name), case.background.answering.get(case.panel.model)
    return need is not None and answering is not None and bool(kinship(need, answering))


def _least_expensive(case: Case, kept: Follower, left: Sequence[Follower]) -> tuple[Follower | None, bool]:
    """Return the labeling that costs least, and whether it follows about as closely as the one to keep."""
    prices, questions = case.prices, case.questions
    mine = prices.get(kept.name)
    if mine is None:
        return None, False
    cheaper = [
        other
        for other in left
        if other is not kept and other.useful and other.name in prices and prices[other.name].below(mine, questions)
    ]
    close = [other for other in cheaper if case.within_one_error(kept.series, other.series)]
    offered = close or cheaper
    least = [
        other
        for other in offered
        if not any(prices[rival.name].below(prices[other.name], questions) for rival in offered)
    ]
    return (least[0] if least else None), bool(close)


def _cheaper(case: Case, kept: Follower, left: Sequence[Follower]) -> Iterator[Claim]:
    """Yield the labeling that costs least, and what it saves."""
    other, close = _least_expensive(case, kept, left)
    if other is None:
        return
    saved = case.prices[other.name].saved(case.prices[kept.name], case.questions)
    needs = [f"{'fewer' if amount > 0 else 'no'} {name}" for name, amount in saved.items()]
    costs = "costs less" if "money" in saved else f"needs {names_of(needs)}"
    lead = case.leads_in_r([follower.series for follower in case.followers]).of(kept, other)
    figures = f"{with_r(other.r)}; {correlation(lead.value)} lower"
    if math.isfinite(lead.low):
        figures += f", {correlation(lead.low)} to {correlation(lead.high)}"
    if close:
        said = f"{other.name} {costs} and follows about as closely ({figures}): keep it to save {names_of([*saved])}."
    elif lead.low > 0:
        said = f"{other.name} {costs}, but its r is shown to be lower ({figures})."
    else:
        said = (
            f"{other.name} {costs}, but its r is lower by more than a standard error, which may be chance ({figures})."
        )
    yield Claim(
        kind=CHEAPER,
        sentence=said,
        subject=other.name,
        against=kept.name,
        value=-lead.value,
        low=-lead.high,
        high=-lead.low,
        shown=close,
        qualifies=KEEP,
        rank=2,
    )


def left_out(case: Case) -> Iterator[Claim]:
    """Yield the labelings that the rule leaves out."""
    for follower in case.followers:
        why = why_left_out(case, follower)
        if why:
            said = f"{follower.name} is left out. {why}"
            picks = names_of(follower.picks)
            yield Claim(LEFT_OUT, said, follower.name, picks, shown=True, line="Keep", rank=3)


def depends_on_runs(case: Case) -> Iterator[Claim]:
    """Yield the runs without which the labels to keep would not be shown to be useful, or would be others."""
    left, runs = by_the_rule(case), case.panel.runs
    kept = next((follower for follower in left if follower.useful), None)
    if kept is None or len(runs) < 3:
        return
    where = case.panel.complete(kept.series.estimate.labeling)
    quality, weights = case.panel.quality[:, where], case.resamples.weights[where]
    level = case.rules.of(len(case.followers))
    nothing_without: list[str] = []
    others_without: dict[str, list[str]] = {}
    for at, run in enumerate(runs):
        rest = np.delete(np.arange(len(runs)), at)
        without = {}
        for follower in left:
            scores = case.panel.scores[follower.series.estimate.labeling][:, where]
            without[follower.name] = pooled_correlation(scores[rest], quality[rest], weights)
        mine = without[kept.name]
        telling = np.zeros(len(where), np.bool_)
        telling[where] = mine.telling
        if not interval(mine.value, mine.draws, level, "fisher-t", case.resamples.units(telling)).low > 0:
            nothing_without.append(run)
        first = max(without, key=lambda name: without[name].value)
        if first != kept.name:
            others_without.setdefault(first, []).append(run)
    outcomes = [(nothing_without, f"nothing is shown of {kept.name}")] if nothing_without else []
    outcomes += [(needed, f"{name} would follow most closely") for name, needed in others_without.items()]
    for needed, outcome in outcomes:
        said = f"Without {some_of(needed, 6).replace(' and ', ' or ')} {outcome}."
        rank = 0 if needed is nothing_without else 1
        yield Claim(
            kind="hinge",
            sentence=said,
            subject=kept.name,
            against=names_of(needed),
            qualifies=f"{KEEP}: {kept.name}",
            line="Hinges",
            rank=rank,
        )


def about_labels(case: Case) -> Iterator[Claim]:
    """Yield what a labeling shares with the outcome, and with the runs."""
    for name, need in case.background.needs.items():
        if name not in case.panel.labelings:
            continue
        clause, marks_itself = shared_in_words(case, name), _marks_itself(case, name)
        if clause:
            # That eRAG marks itself is said with its claim: its labels hold for this reader.
            kept = "" if marks_itself or not is_kin(case, name) else f"{KEEP}: {name}"
            yield Claim("shares", f"{name} {clause}.", name, qualifies=kept)
        if need.existing:
            said = f"{name} exists already: it cannot label new documents, and those that it does not list count as 0."
            yield Claim("unlisted", said, name, qualifies=f"{KEEP}: {name}")
        models = {endpoint.model for endpoint in need.asked}
        for run, model in case.background.reranked.items():
            if model in models and run in case.panel.runs:
                said = f"{name} asks the model that reranked {run}, and may favour it."
                yield Claim("reranked", said, name, run, qualifies=f"{KEEP}: {name}")


def kinds_that_disagree(case: Case) -> Iterator[Claim]:
    """Yield r by kind of question, and the labelings that help for one kind and mislead for another."""
    parts = {kind: {follower.name: follower for follower in part.followers} for kind, part in case.of_kinds().items()}
    for follower in case.followers:
        name = follower.name
        findings = {kind: followers[name].finding for kind, followers in parts.items() if name in followers}
        for kind in findings:
            other = parts[kind][name]
            said = f"{kind} questions: {name} {_gain_in_words(other)} ({with_r(other.r)})."
            yield Claim("by kind", said, name, kind, **other.r._asdict(), shown=other.useful)
        if {HELPS, MISLEADS} <= {follower.finding, *findings.values()}:
            otherwise = [kind for kind in findings if findings[kind] not in (NOT_SHOWN, follower.finding)]
            said = f"{name} does otherwise within {names_of(otherwise)} questions: choose by kind."
            stands = LEFT_OUT if why_left_out(case, follower) else KEEP
            yield Claim("kinds", said, name, names_of(otherwise), shown=True, qualifies=f"{stands}: {name}")


def missing_labels(case: Case) -> Iterator[Claim]:
    """Yield which labels are missing, and whether claims depend on them."""
    panel = case.panel
    for name, queries in panel.unbounded.items():
        said = (
            f"{name} lacks scores on {plural(len(queries), 'question')} ({some_of(queries)}), where nothing bounds"
            " them: nothing is claimed of it, nor in comparison with it."
        )
        yield Claim("missing labels", said, name, value=len(queries), line="Keep", rank=4)
    for name, number in panel.unknown.items():
        if name not in panel.unbounded:
            said = f"{name} lacks labels on {plural(number, 'question')}. No claim depends on them."
            yield Claim("missing labels", said, name, value=number, qualifies=f"{KEEP}: {name}")
    for name, number in panel.inapplicable.items():
        if name not in case.background.controls:
            others = int(panel.complete(panel.labelings.index(name)).sum())
            said = (
                f"{name} has no score on {plural(number, 'question')}: labelings are compared on the other {others:,}."
            )
            yield Claim("not applicable", said, name, value=number, qualifies=KEEP)
    for name, why in case.excluded(CHOOSE_RUNS).items():
        yield Claim("excluded", f"{name} takes no part: {why}.", name, qualifies=KEEP)


def controls(case: Case) -> Iterator[Claim]:
    """Yield how closely what looks at no question follows the answers, and which labeling is not shown to do better."""
    unbeaten: dict[str, list[str]] = {}
    for control in case.controls(CHOOSE_RUNS):
        r = control.ranged(POOLED, case.rules.confidence, case.resamples)
        what = _CONTROLS.get(control.name, control.name)
        said = f"A control, {what}, follows {case.target} with {with_r(r)}."
        yield Claim("control", said, control.name, CHOOSE_RUNS, **r._asdict())
        for follower in case.followers:
            if (follower.name, control.name) not in case.leads_in_r([follower.series, control]).shown:
                unbeaten.setdefault(follower.name, []).append(f"{what} ({with_r(r)})")
    left = by_the_rule(case)
    kept = next((follower for follower in left if follower.useful), None)
    offered, close = (None, False) if kept is None else _least_expensive(case, kept, left)
    for name, beside in unbeaten.items():
        said = f"{name} is not shown to follow more closely than {names_of(beside, 'or')}."
        stands = CHEAPER if offered is not None and close and name == offered.name else KEEP
        yield Claim("no better", said, name, names_of(beside, "or"), qualifies=f"{stands}: {name}")


def each_labeling(case: Case) -> Iterator[Claim]:
    """Yield for each labeling how closely it follows the answers, what choosing by it wins, and how it is biased."""
    followers = case.followers
    for follower in followers:
        name, r, gain = follower.name, follower.r, follower.gain
        concordance = follower.series.ranged("concordance", case.rules.confidence, case.resamples)
        said = (
            f"{name} follows {case.target} with {with_r(r)}: it puts the better run first"
            f" {ranged(concordance, times)} times in 100."
        )
        yield Claim("follows", said, name, case.target, **r._asdict(), shown=follower.useful)
        yield Claim(
            kind="gain",
            sentence=f"{name} {_gain_in_words(follower)}.",
            subject=name,
            against="a coin flip",
            value=100 * gain.value,
            low=100 * gain.low,
            high=100 * gain.high,
            shown=follower.finding != NOT_SHOWN,
        )
        picks = names_of(follower.picks, "or")
        yield Claim("picks", f"{name} puts {picks} first.", name, picks)
        if follower.finding == MISLEADS:
            yield Claim("misleads", f"{name} misleads: it picks the worse run.", name, shown=True)
        for high, low in follower.misordered:
            said = f"{name} ranks {high} above {low}, but {low} is better; both differences are shown."
            yield Claim("misorders", said, name, f"{high}, {low}", shown=True)
        for run, flattered in follower.biased_runs.items():
            said = f"{name} {'flatters' if flattered else 'undervalues'} {run}."
            yield Claim("flatters", said, name, run, value=1 if flattered else -1, shown=True)
    if followers:
        for closer, other in case.leads_in_r([follower.series for follower in followers]).shown:
            said = f"{closer} is shown to follow {case.target} more closely than {other}, question by question."
            yield Claim("closer", said, closer, other, shown=True)


def _gain_in_words(follower: Follower) -> str:
    finding = "is not shown to help or to mislead" if follower.finding == NOT_SHOWN else follower.finding
    return f"{finding}: choosing by it wins {ranged(follower.gain, points, ' points')} over a coin flip"
