"""Which run to ship: claims from the answers in hand, by multiple comparisons with the best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.resampling import percent
from judgekit.analysis.wording import counted, names_of, plural, plural_points, points, rounded

CHOICE: Final = "choose"
_NAMED: Final = 6
"""So many runs are named one by one."""


def shipping(case: Case) -> Iterator[Claim]:
    """Yield which runs may be the best, and what shipping the leader may lose."""
    if case.panel.quality.size and not _on_scale(case):
        why = "Quality lies outside 0 to 1, so the loss of a choice has no bound: declare its scale."
        yield Claim(CHOICE, f"No run is chosen. {why}", line="Choose")
        return
    best, runs, margin = case.best, case.panel.runs, case.rules.margin_points
    leader = leading_run(case)
    order = np.argsort(-np.nan_to_num(best.means, nan=-1.0), kind="stable").tolist()
    candidates = [runs[at] for at in order if best.may_be_best[at]]
    cost, most = 100 * float(best.cost[runs.index(leader)]), 100 * float(best.cost.max())
    if most <= margin:
        sentence = (
            f"Ship any of these {len(runs)} runs, so keep the cheapest: none loses more than {most:.1f} points against"
            " the best."
        )
        yield Claim("any", sentence, value=most, high=most, shown=True, line="Choose")
    within = f", which is within your margin of {plural_points(margin)}" if cost <= margin < most else ""
    leads = f"{_ahead(case, leader)}: shipping it loses at most {cost:.1f} points{within}."
    if candidates == [leader]:
        yield _only(case, leader)
    elif most <= margin:
        yield Claim(CHOICE, leads, leader, high=cost, shown=True, line="Choose", rank=1)
    elif len(runs) == 2:
        yield _of_two(case, leader)
    else:
        shown = len(candidates) < len(runs)
        yield Claim(CHOICE, _candidates(candidates, runs), leader, high=cost, shown=shown, line="Choose", rank=1)
        yield Claim("ship", leads, leader, high=cost, shown=cost <= margin, line="Choose", rank=2)


def leading_run(case: Case) -> str:
    """Return the run that answers best so far; of several equal ones that whose choice may lose least."""
    best = case.best
    ahead = np.flatnonzero(best.means >= np.nanmax(best.means) - 1e-12)
    return case.panel.runs[int(ahead[np.argmin(best.cost[ahead])])]


def _on_scale(case: Case) -> bool:
    quality = case.panel.quality[:, case.answered]
    return bool(np.nanmin(quality) >= 0 and np.nanmax(quality) <= 1)


def _mean(case: Case, run: str) -> float:
    return float(case.best.means[case.panel.runs.index(run)])


def _ahead(case: Case, leader: str) -> str:
    if case.background.quality:
        return f"{leader} is the best so far"
    return f"{leader} answers best so far"


def _candidates(candidates: list[str], runs: tuple[str, ...]) -> str:
    """Return which runs may be the best, those that answer best first; of many runs the shorter list is named."""
    others = [run for run in runs if run not in candidates]
    if not others:
        listed = f": {names_of(candidates, 'or')}" if len(runs) <= _NAMED else ""
        return f"Any of these {len(runs)} runs may be the best{listed}. None is shown to be worse."
    worse = "the other is" if len(others) == 1 else f"the other {counted(len(others))} are"
    if len(candidates) <= _NAMED:
        return f"{names_of(candidates, 'or')} may be the best of these {len(runs)} runs; {worse} shown to be worse."
    among = f"{counted(len(candidates)).capitalize()} of these {len(runs)} runs may be the best"
    if len(others) <= _NAMED:
        return f"{among}; {names_of(others)} {'is' if len(others) == 1 else 'are'} shown to be worse."
    return f"{among}, among them {names_of(candidates[:3])}; {worse} shown to be worse."


def _only(case: Case, leader: str) -> Claim:
    """Return the claim that one run is the best, and how far it leads."""
    best, runs = case.best, case.panel.runs
    at = runs.index(leader)
    others = [run for run in range(len(runs)) if run != at]
    second = max(others, key=lambda run: float(best.means[run]))
    lead = float(best.means[at] - best.means[second])
    low = max(min(-float(best.upper[run, at]) for run in others), 0.0)
    high = min(max(min(float(best.upper[at, run]) for run in others), lead), 1.0)
    low = min(low, lead)
    sentence = (
        f"Ship {leader}: it is shown to be the best of {len(runs)},"
        f" {points(lead)} points ahead ({points(low)} to {points(high)})."
        " Labels are not needed for this choice."
    )
    return Claim(
        CHOICE, sentence, leader, value=100 * lead, low=100 * low, high=100 * high, shown=True, line="Choose", rank=1
    )


def _of_two(case: Case, leader: str) -> Claim:
    best, runs = case.best, case.panel.runs
    other = next(run for run in runs if run != leader)
    ours, theirs = (100 * float(best.cost[runs.index(run)]) for run in (leader, other))
    unit = case.background.quality or case.primary.metric
    sentence = (
        f"{leader} reaches {points(_mean(case, leader))} points of {unit}, {other} {points(_mean(case, other))}:"
        f" either may be better. Shipping {leader} loses at most {ours:.1f} points, {other} {theirs:.1f}."
    )
    return Claim(CHOICE, sentence, leader, other, value=100 * (_mean(case, leader) - _mean(case, other)), low=-ours,
                 high=theirs, line="Choose", rank=1)  # fmt: skip


def missing_answers(case: Case) -> Iterator[Claim]:
    """Yield that the limits hold whatever the missing answers are."""
    missing = case.best.missing
    if missing:
        verb = "is" if missing == 1 else "are"
        said = f"{plural(missing, 'answer')} {verb} missing; these limits hold whatever they are."
        yield Claim("missing answers", said, value=missing, qualifies=CHOICE)


def each_run(case: Case) -> Iterator[Claim]:
    """Yield for each run what shipping it may lose."""
    best, leader = case.best, leading_run(case)
    order = np.argsort(-np.nan_to_num(best.means, nan=-1.0), kind="stable").tolist()
    for at in order:
        run, cost = case.panel.runs[at], 100 * float(best.cost[at])
        behind = 100 * float(best.means[case.panel.runs.index(leader)] - best.means[at])
        may = "may be the best" if best.may_be_best[at] else "is shown to be worse than the best"
        sentence = (
            f"{run} reaches {points(best.means[at])} points and {may}: shipping it loses at most {cost:.1f} points."
        )
        yield Claim(
            "run", sentence, run, leader, value=0.0 - behind, low=0.0 - cost, high=0.0, shown=not best.may_be_best[at]
        )
    sure = percent(case.rules.confidence)
    yield Claim("together", f"What is said of the runs holds together with a confidence of {sure}.")


def more_questions(case: Case) -> Iterator[Claim]:
    """Yield how many questions it takes to ship a run within the margin."""
    best, runs, margin = case.best, case.panel.runs, case.rules.margin_points / 100
    leader = runs.index(leading_run(case))
    rivals = [run for run in range(len(runs)) if best.may_be_best[run] and run != leader]
    if not rivals or margin <= 0 or best.cost[leader] <= margin:
        return
    # As if the runs were equal, since the lead so far is what noise has made largest. Bounds shrink with the root of
    # the number of questions.
    halves = [float(best.upper[run, leader] - (best.means[run] - best.means[leader])) for run in rivals]
    needed = rounded(case.questions * (float(np.mean(halves)) / margin) ** 2)
    margin_in_words = plural_points(case.rules.margin_points)
    if needed <= case.questions:
        said = (
            f"To ship a run within {margin_in_words} of the best takes more than the {case.questions:,} questions so"
            " far."
        )
    else:
        said = (
            f"To ship a run within {margin_in_words} of the best takes about {needed:,} questions; you have"
            f" {case.questions:,}."
        )
    pool = case.background.pool
    if pool is not None and pool.at_hand > case.questions:
        said += f" `judgekit choose` asks those of your {pool.at_hand:,} that the choice takes."
    yield Claim("more questions", said, value=needed, line="Next")
