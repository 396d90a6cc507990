"""Which run to ship: claims from the answers in hand, by multiple comparisons with the best."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.keeping import KEEP
from judgekit.analysis.power import WORTH_ASKING
from judgekit.analysis.resampling import percent
from judgekit.analysis.wording import counted, names_of, plural, plural_points, rounded, some_of

CHOICE: Final = "choose"
_NAMED: Final = 6
"""So many runs are named one by one."""
_TIE: Final = 1e-10
"""Equal means may differ by the rounding of their sums, in points."""
_FOR_SENTENCES: Final = ("f1", "contains", "correct (by an LLM)")
"""Metrics that fit references which are whole sentences."""


@dataclass(frozen=True)
class _Choice:
    """A run as a choice, in points of quality.

    Attributes:
        run: its name.
        at: its place among the runs.
        mean: of its answers so far.
        loss: the most that shipping it may lose against the best.
        may_be_best: whether it is not shown to be worse than another.
    """

    run: str
    at: int
    mean: float
    loss: float
    may_be_best: bool


def _choices(case: Case) -> list[_Choice]:
    """Return the runs, the leader first: that which answers best, and of equal ones that which may lose least.

    Means over different questions compare no runs, so where answers are missing the leader is the run that may lose
    least.
    """
    best = case.best
    choices: list[_Choice] = []
    for at, run in enumerate(case.panel.runs):
        mean, loss = 100 * float(best.means[at]), 100 * float(best.cost[at])
        choices.append(_Choice(run, at, mean, loss, bool(best.may_be_best[at])))
    # A run without any answer comes last.
    choices.sort(key=lambda choice: -np.nan_to_num(choice.mean, nan=-1.0))
    equal = [choice for choice in choices if best.missing or choice.mean >= choices[0].mean - _TIE]
    leader = min(equal, key=lambda choice: (choice.loss, choice.at))
    choices.remove(leader)
    return [leader, *choices]


def _alike(case: Case, choices: Sequence[_Choice], margin: float) -> list[_Choice]:
    """Return the leader and the runs that answer as well so far and are as safe to ship, by the margin."""
    leader = choices[0]
    if case.best.missing:
        return [leader]
    limit = margin if leader.loss <= margin else 100.0
    return [choice for choice in choices if choice.mean >= leader.mean - _TIE and choice.loss <= limit]


def _answers_best(case: Case, leader: _Choice) -> bool:
    """Return whether no run has a higher mean than the leader, also on the questions that all runs answered."""
    quality = case.panel.quality
    shared = quality[:, ~np.isnan(quality).any(axis=0)]
    if not shared.shape[1]:
        return False
    return all(means[leader.at] >= np.nanmax(means) - _TIE for means in (case.best.means, shared.mean(axis=1)))


def _so_far(case: Case, leader: _Choice, runs: int, *, tied: bool) -> str:
    """Return how well some runs answer so far, as the beginning of what is said of them."""
    of_labels = bool(case.background.quality)
    if case.best.missing and not _answers_best(case, leader):
        return "may lose least, and is"
    if runs > 1:
        return "are alike so far, and" if of_labels else "answer alike so far, and are"
    if tied:
        return "is as good as any so far, and" if of_labels else "answers as well as any so far, and is"
    return "is the best so far, and" if of_labels else "answers best so far, and is"


def _named(runs: Sequence[str], joint: str) -> str:
    return names_of(runs, joint) if len(runs) <= _NAMED else some_of(runs)


def shipping(case: Case) -> Iterator[Claim]:
    """Yield which runs may be the best, and what shipping the leader may lose."""
    if case.panel.quality.size and not _on_scale(case):
        why = "Quality lies outside 0 to 1, so the loss of a choice has no bound: declare its scale."
        yield Claim(CHOICE, f"No run is chosen. {why}", line="Choose")
        return
    choices, margin = _choices(case), case.rules.margin_points
    leader = choices[0]
    candidates = [choice.run for choice in choices if choice.may_be_best]
    most = max(choice.loss for choice in choices)
    any_will_do = most <= margin
    if any_will_do:
        runs = f"Ship the cheapest of these {len(choices)} runs"
        sentence = f"{runs}: none is more than {most:.1f} points worse than the best."
        yield Claim("any", sentence, value=most, high=most, shown=True, line="Choose")
    if candidates == [leader.run]:
        yield _only(case, choices)
        return
    alike = _alike(case, choices, margin)
    loss = max(choice.loss for choice in alike)
    so_far = _so_far(case, leader, len(alike), tied=choices[1].mean >= leader.mean - _TIE)
    named = _named([choice.run for choice in alike], "and" if any_will_do else "or")
    least = f"{so_far} at most {loss:.1f} points worse than the best"
    within, places = loss <= margin, [choice.at for choice in alike]
    pronoun = "they" if len(alike) > 1 else "it"
    if any_will_do:
        leads = f"{named} {least}"
    elif within:
        leads = f"Ship {named}: {pronoun} {least}, which is within your margin of {plural_points(margin)}"
    else:
        leads = f"If you ship now, ship {named}: {pronoun} {least}"
    leads += "."
    # Runs with the same lists never differ.
    if not within and case.best.upper[np.ix_(places, places)].any():
        leads += " Only more questions can tell them apart."
    lead = Claim(CHOICE, leads, leader.run, high=loss, shown=within, line="Choose", rank=2)
    if any_will_do:
        yield lead
        return
    yield replace(lead, sentence=_listed(candidates, len(choices)), shown=len(candidates) < len(choices))
    yield replace(lead, kind="ship", rank=1)


def all_alike(case: Case, value: float) -> Iterator[Claim]:
    """Yield that nothing is chosen where every answer of every run has the same quality."""
    if case.background.quality:
        why = f"every run has {value:g} in {case.background.quality} on every question"
        cure = "these labels tell no runs apart"
    else:
        metric = case.primary.metric
        others = [other for other in _FOR_SENTENCES if other != metric]
        why = f"every answer of every run has {metric} {value:g}"
        cure = f"{metric} may not fit these references; where they are sentences, take {names_of(others, 'or')}"
        if case.source in ("people", "trusted"):
            cure = "such ratings tell no runs apart"
    yield Claim(CHOICE, f"Nothing can be chosen: {why}. So {cure}.", value=100 * value, line="Choose")
    yield Claim(KEEP, "No labeling can be compared where quality is the same everywhere.", line="Keep", rank=1)


def _on_scale(case: Case) -> bool:
    quality = case.panel.quality[:, case.answered]
    return bool(np.nanmin(quality) >= 0 and np.nanmax(quality) <= 1)


def _listed(candidates: Sequence[str], runs: int) -> str:
    """Return which runs may be the best, those that answer best first."""
    listed = _named(candidates, "or")
    others = runs - len(candidates)
    worse = "none is"
    if others == 1:
        worse = "the other is"
    elif others:
        worse = f"the other {counted(others)} are"
    return f"{listed} may be the best of these {runs} runs; {worse} shown to be worse."


def _only(case: Case, choices: Sequence[_Choice]) -> Claim:
    """Return the claim that one run is the best, and how far it leads."""
    leader, second = choices[0], choices[1]
    lead = leader.mean - second.mean
    rivals = [rival.at for rival in choices[1:]]
    ahead, behind = 100 * case.best.upper[leader.at, rivals], 100 * case.best.upper[rivals, leader.at]
    # A smallest lead of all may be below the lead over the second, and a largest one above it.
    low = min(max(-float(behind.max()), 0.0), lead)
    high = min(max(float(ahead.min()), lead), 100.0)
    best = f"Ship {leader.run}: it is shown to be the best of {len(choices)}"
    interval = f"{lead:.1f} points ahead of the next ({low:.1f} to {high:.1f})"
    sentence = f"{best}, {interval}."
    # Where ratings correct the scores of a labeling, these do decide.
    if case.partly is None or not case.partly.decides:
        sentence += " Labels are not needed for this choice."
    return Claim(CHOICE, sentence, leader.run, value=lead, low=low, high=high, shown=True, line="Choose", rank=1)


def missing_answers(case: Case) -> Iterator[Claim]:
    """Yield that the limits hold whatever the missing answers are."""
    missing = case.best.missing
    if missing:
        verb = "is" if missing == 1 else "are"
        said = f"{plural(missing, 'answer')} {verb} missing: this holds whatever they are."
        yield Claim("missing answers", said, value=missing, qualifies=CHOICE)


def drawn_questions(case: Case) -> Iterator[Claim]:
    """Yield that points count the questions of a sample alike, where not all were as likely to be drawn."""
    by_query = case.background.weights
    answered = np.array(case.panel.queries)[case.answered]
    if len({by_query.get(query, 1.0) for query in answered.tolist()}) < 2:
        return
    # A lead weighted by what each question stands for has no interval, so it is not given.
    said = "Points count each question of the sample once, though some were likelier to be drawn than others."
    yield Claim("drawn", said, qualifies=CHOICE)


def each_run(case: Case) -> Iterator[Claim]:
    """Yield for each run what shipping it may lose."""
    choices = _choices(case)
    candidates = sum(choice.may_be_best for choice in choices)
    for choice in choices:
        if not choice.may_be_best:
            may = "is shown to be worse than the best"
        elif candidates == 1:
            may = "is shown to be the best"
        else:
            may = "may be the best"
        sentence = (
            f"{choice.run} reaches {choice.mean:.1f} points and {may}: shipping it loses at most {choice.loss:.1f}"
            " points."
        )
        yield Claim(
            kind="run",
            sentence=sentence,
            subject=choice.run,
            against=choices[0].run,
            # Means over different questions have no difference that says anything.
            value=math.nan if case.best.missing else choice.mean - choices[0].mean,
            # 0.0 less a loss, since a loss of 0 would be written as -0.0.
            low=0.0 - choice.loss,
            high=0.0,
            shown=not choice.may_be_best,
        )
    sure = percent(case.rules.confidence)
    yield Claim("together", f"What is said of the runs holds together with a confidence of {sure}.")


def more_questions(case: Case) -> Iterator[Claim]:
    """Yield how many questions it takes to ship a run within the margin."""
    leader, *others = _choices(case)
    rivals, margin = [choice for choice in others if choice.may_be_best], case.rules.margin_points
    if not rivals or margin <= 0 or leader.loss <= margin:
        return
    # As if the runs were equal, since the lead so far is what noise has made largest. Bounds shrink with the root of
    # the number of questions.
    half = np.mean([100 * case.best.upper[rival.at, leader.at] - (rival.mean - leader.mean) for rival in rivals])
    needed = rounded(case.questions * (float(half) / margin) ** 2)
    takes = f"about {needed:,} questions in all" if needed > case.questions else "more questions than these"
    # Where no labels are kept yet, Keep names another number of questions: that which it takes to trust labels.
    by_answers = not case.background.quality and (case.partly is None or not case.partly.decides)
    no_labels = ", and no labels" if by_answers and case.kept is None else ""
    said = f"To ship a run within {plural_points(margin)} of the best takes {takes}{no_labels}."
    if needed > WORTH_ASKING * case.questions:
        said += f" That is seldom worth it: if you can accept {leader.loss:.1f} points, set a wider `margin_points`"
        said += f" (now {margin:g})."
    background = case.background
    # A choice asks for answers and rates them itself: it refuses ratings and labels that were made elsewhere. It draws
    # from all questions only where the experiment has no sample.
    chosen = not background.weights and case.source not in ("people", "trusted")
    if chosen and background.pool is not None and background.pool.at_hand > case.questions:
        said += f" `judgekit choose` asks only as many of your {background.pool.at_hand:,} as that takes."
    yield Claim("more questions", said, value=needed, line="Next")


ON_THE_CHOICE: Final = (shipping, missing_answers, drawn_questions)
ON_EACH_RUN: Final = (more_questions, each_run)
"""What `decision` asks for claims, in this order: a new finding of this module is one function more."""
