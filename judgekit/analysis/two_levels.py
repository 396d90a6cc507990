"""One sentence between two levels: which labeling leads over questions, and which between runs.

Over questions, within each run, Kendall's tau-b says whether labels know which questions go well (Table 1 of the eRAG
paper). Between runs, r says whether they know which run does better on a question. r decides; if another labeling leads
by tau, this says which of the two cases it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from judgekit.analysis.background import TWIN
from judgekit.analysis.case import Case
from judgekit.analysis.claims import Claim
from judgekit.analysis.keeping import KEEP
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS
from judgekit.analysis.wording import correlation, ranged


def two_levels(case: Case) -> Iterator[Claim]:
    """Yield that another labeling leads over questions than between runs, and whether the latter lead is shown."""
    # Nothing is claimed about a labeling with unbounded scores, nor in comparison with it.
    bounded = [follower for follower in case.followers if follower.name not in case.panel.unbounded]
    followers = {follower.name: follower for follower in bounded}
    taus = {
        series.name: series.estimate.value("tau_b")
        for series in case.series(FIND_QUESTIONS)
        if series.name in followers and np.isfinite(series.estimate.value("tau_b"))
    }
    if len(taus) < 2:
        return
    over = max(taus, key=lambda name: (taus[name], name))
    between = bounded[0].name
    # With equal taus, neither leads.
    if between not in taus or taus[over] <= taus[between]:
        return
    twin = next((series for series in case.controls(FIND_QUESTIONS) if series.name == TWIN + over), None)
    first = f"Over questions (as in Table 1 of the eRAG paper) {over} has the larger tau, {correlation(taus[over])}"
    beside = f"{between} {correlation(taus[between])}"
    if twin is not None and np.isfinite(twin.estimate.value("tau_b")):
        beside += f", the mean of all its labels of a question {correlation(twin.estimate.value('tau_b'))}"
    shown = (between, over) in case.leads(CHOOSE_RUNS, [follower.series for follower in case.followers]).shown
    lead = f"{ranged(followers[between].r, correlation)}; {over} {ranged(followers[over].r, correlation)}"
    useful = followers[between].useful
    if shown and useful:
        then = (
            f"Between runs {between} is shown to follow more closely (r {lead}): choose runs by {between}, find"
            f" questions that fail by {over}"
        )
    elif shown:
        then = f"Between runs {between} has the larger r ({lead}), which is not shown to be above 0"
    else:
        then = f"Between runs {between} has the larger r ({lead}), a lead that is not shown"
    said = f"{first} ({beside}). {then}."
    # A finding that is not shown gives no advice: it is a further finding.
    advises = shown and useful
    stands = KEEP if advises else ""
    yield Claim("levels", said, over, between, value=taus[over], shown=advises, qualifies=stands, rank=7)


ON_BOTH_LEVELS: Final = (two_levels,)
"""The functions that `decision` calls for claims, in order; a new finding is one more function."""
