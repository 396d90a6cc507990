"""Questions that nothing answers: how often each run's answers abstain there, apart from everything else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.resampling import t_quantile, unseen
from judgekit.analysis.shipping import CHOICE
from judgekit.analysis.wording import Ranged
from judgekit.answers.unanswerable import gives_up

if TYPE_CHECKING:
    from judgekit.analysis.case import Case

ABSTAIN: Final = "abstain"
_FEW: Final = 8
"""On fewer questions (or groups of them) there is no interval."""


@dataclass(frozen=True)
class Abstentions:
    """Whether each run abstains on each question that nothing answers.

    Attributes:
        runs: their names.
        values: 1 where the answer abstains, else 0, shape (R, Q); questions that some run has no answer to are left
            out.
        groups: the number of each question's group, shape (Q,); None where each is its own.
    """

    runs: tuple[str, ...]
    values: Floats
    groups: np.ndarray | None = None

    def share(self, run: str) -> float:
        """Return the share of the questions on which a run abstains."""
        return float(self.values[self.runs.index(run)].mean())

    def difference(self, first: str, second: str, confidence: float) -> Ranged:
        """Return how much more often one run abstains than another, for all pairs of runs together (Bonferroni)."""
        gap = self.values[self.runs.index(first)] - self.values[self.runs.index(second)]
        mean, units = float(gap.mean()), len(gap)
        rest = gap - mean
        if self.groups is not None:
            units, rest = len(np.unique(self.groups)), np.bincount(self.groups, rest)
        if units < _FEW:
            return Ranged(mean)
        pairs = max(len(self.runs) * (len(self.runs) - 1) // 2, 1)
        variance = float((rest**2).sum()) * units / (units - 1) / len(gap) ** 2
        error = math.sqrt(variance + unseen(units, 1 + abs(mean)))
        half = t_quantile(1 - (1 - confidence) / 2 / pairs, units) * error
        return Ranged(mean, mean - half, mean + half)


def abstentions(rows: pd.DataFrame, groups: Mapping[str, str] | None = None) -> Abstentions | None:
    """Return what the rows of a quality table say, of one metric, model and depth; None where there are no answers."""
    if rows.empty or "answer" not in rows.columns:
        return None
    answered = rows.dropna(subset=["answer"])
    answered = answered[answered["answer"].astype(str) != ""]
    wide = answered.pivot_table(index="query_id", columns="run", values="answer", aggfunc="first").dropna()
    if wide.empty:
        return None
    values = np.array([[float(gives_up(str(answer))) for answer in wide[run]] for run in wide.columns])
    names = [(groups or {}).get(str(query), f"\0{query}") for query in wide.index]
    members = None if groups is None else np.unique(names, return_inverse=True)[1]
    return Abstentions(tuple(map(str, wide.columns)), values, members)


def abstaining(case: Case) -> Iterator[Claim]:
    """Yield which run abstains most often where nothing answers."""
    apart = case.abstentions
    if apart is None:
        return
    shares = {run: apart.share(run) for run in apart.runs}
    most, least = max(shares, key=lambda run: shares[run]), min(shares, key=lambda run: shares[run])
    often, seldom = f"{100 * shares[most]:.0f}", f"{100 * shares[least]:.0f}"
    said = f"{apart.values.shape[1]:,} questions that nothing answers are looked at apart"
    if len(shares) == 1:
        yield Claim(ABSTAIN, f"{said}: {most} abstains on {often} % of them.", most)
        return
    gap = apart.difference(most, least, case.rules.confidence)
    value, low, high = (100 * number for number in gap)
    if not gap.low > 0:
        sentence = f"{said}: runs abstain on {seldom} to {often} % of them, and no difference is shown."
        shown = False
    else:
        sentence = (
            f"{said}: {most} abstains on {often} % of them, {least} on {seldom} %"
            f" ({value:.0f} points less, {low:.0f} to {high:.0f}). No label can see it."
        )
        shown = True
    yield Claim(
        kind=ABSTAIN,
        sentence=sentence,
        subject=most,
        against=least,
        value=value,
        low=low,
        high=high,
        shown=shown,
        qualifies=CHOICE,
    )
