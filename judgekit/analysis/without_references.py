"""Whether labels without reference answers follow the answers about as closely as labels that need them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from judgekit.analysis.case import Case, Follower
from judgekit.analysis.claims import Claim
from judgekit.analysis.primary import CHOOSE_RUNS
from judgekit.analysis.wording import correlation, ranged

WITHOUT_REFERENCES: Final = "without references"


def without_references(case: Case) -> Iterator[Claim]:
    """Yield a claim for each labeling that uses the model's own answers instead of references."""
    for own in case.followers:
        need = case.background.needs.get(own.name)
        if need is None or not need.own_answers:
            continue
        given = _twin(case, own)
        if given is not None:
            yield _compared(case, own, given)


def _twin(case: Case, own: Follower) -> Follower | None:
    """Return the best labeling of the same LLM and prompt that needs references, or None."""
    needs = case.background.needs
    mine = needs[own.name]
    twins = []
    for other in case.followers:
        need = needs.get(other.name)
        if need is None or not need.references:
            continue
        if need.endpoints == mine.endpoints and need.outcome_prompt == mine.outcome_prompt:
            twins.append(other)
    return max(twins, key=lambda twin: twin.r.value, default=None)


def _compared(case: Case, own: Follower, given: Follower) -> Claim:
    # The bound holds for all labelings together, as for the labels to keep.
    leads = case.leads(CHOOSE_RUNS, [follower.series for follower in case.followers])
    ahead = own.r.value > given.r.value
    first, second = (own, given) if ahead else (given, own)
    gap = ranged(leads.of(first, second), correlation, " higher" if ahead else " lower", without=case.no_interval())
    than = f"{gap} than that of {given.name}, which needs them"
    enough = own.useful and (ahead or case.within_one_error(given.series, own.series))
    if enough:
        said = f"{own.name} suffices without reference answers: its r is {than}."
    elif own.useful:
        said = f"{own.name} needs no reference answers, but its r is {than}: that is more than one standard error."
    else:
        said = f"{own.name} needs no reference answers, but is not shown to follow {case.target}: its r is {than}."
    lead = leads.of(own, given)
    return Claim(
        kind=WITHOUT_REFERENCES,
        sentence=said,
        subject=own.name,
        against=given.name,
        **lead._asdict(),
        shown=enough,
    )


ON_REFERENCES: Final = (without_references,)
"""The functions that `decision` calls for claims."""
