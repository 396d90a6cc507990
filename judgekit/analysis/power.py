"""Forecasts before anything is asked: which lead will be shown, how many questions a bound takes, what a run reuses.

Constants are simulated (80 replicates in each of 40 cells): for a promise of four in five, the best run was shown in
.78 to 1.00 of them. `benchmarks/pilot_simulation.py` checks the promises against the present procedures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from judgekit.analysis.race import questions_until
from judgekit.analysis.resampling import t_quantile, unseen
from judgekit.analysis.wording import Ranged

_RUNS: Final = (2, 3, 4, 6, 8, 12, 20)
_LEAD: Final = (2.48, 3.08, 3.41, 3.75, 4.00, 4.27, 4.60)
"""Standard errors by which the best of this many runs has to lead to be shown in four of five cases."""
_BOUND: Final = (1.63, 1.92, 2.06, 2.23, 2.34, 2.47, 2.62)
"""Standard errors of the bound of the leader among this many equal runs, not exceeded in about four of five cases."""
_ROUNDS: Final = 50
WORTH_ASKING: Final = 20
"""Needing more than this many times the questions is no next step."""
_FOUR_IN_FIVE: Final = 0.84
"""The normal quantile of .8."""
_LEAST: Final = 3


def _of_runs(constants: Sequence[float], runs: int) -> float:
    return float(np.interp(math.log(runs), np.log(_RUNS), constants))


def shown_lead(questions: int, runs: int, differ: float) -> float:
    """Return the lead over all other runs, in quality, that is shown in four of five cases.

    Args:
        questions: number of questions that each run answers.
        runs: how many.
        differ: share of questions that two equally good runs answer differently.
    """
    # The error grows with the lead that it has to allow for.
    lead = 0.0
    for _ in range(_ROUNDS):
        lead = _of_runs(_LEAD, runs) * math.sqrt((differ + lead + 1 / questions) / questions)
    return min(lead, 1.0)


def shown_lead_of_means(ratings: int, runs: int, good: float) -> float:
    """Return the lead that is shown in four of five cases if each rating is about one random run.

    Args:
        ratings: thumbs, one for each question; each run has an equal share of them.
        runs: how many.
        good: share of good ratings of equally good runs.
    """
    of_each = max(ratings / runs, 1.0)
    of_mean = good * (1 - good) / of_each + unseen(of_each, one_sided=True)
    return min(_of_runs(_LEAD, runs) * math.sqrt(2 * of_mean), 1.0)


def questions_for(margin: float, runs: int, differ: float) -> int:
    """Return about how many questions show that the leader of equally good runs loses at most the margin.

    Simulated, it does in .58 to 1.00 of cases with 2 to 12 runs, mostly in four of five.
    """
    return math.ceil(differ * (_of_runs(_BOUND, runs) / margin) ** 2)


def race_length(margin: float, runs: int, differ: float, lead: float, confidence: float = 0.95) -> int:
    """Return after about how many questions a race stops if one run leads all others by this much."""
    deviation = math.sqrt(max(differ + lead - lead**2, 0.0))
    error = (1 - confidence) / 2 / (runs - 1)
    return questions_until(np.array([-lead]), np.array([deviation]), margin, error)


def questions_to_show(r: Ranged, questions: int, telling: int, confidence: float) -> float:
    """Return how many questions show in four of five cases that r lies above 0, if r stays as it is.

    Args:
        r: above 0, with its interval.
        questions: behind it.
        telling: on how many of them runs differ.
        confidence: of the interval.
    """
    # On Fisher's scale the width shrinks with the root of the number of questions.
    z = math.atanh(min(r.value, 1 - 1e-9))
    half = z - math.atanh(max(r.low, 1e-9 - 1))
    reach = t_quantile((1 + confidence) / 2, telling)
    return questions * (half * (1 + _FOUR_IN_FIVE / reach) / z) ** 2


def most_needed(needs: Sequence[int]) -> int | None:
    """Return the most new labels (or answers) that a further run needs in 95 % of cases; None below three runs.

    Args:
        needs: for each run, the labels (or answers) that no other run shares, which it would need as a new run.
    """
    runs = len(needs)
    if runs < _LEAST:
        return None
    # Needs are skewed: a run of rare passages needs ten times as many as the others.
    logs = np.log(np.asarray(needs, np.float64) + 1)
    half = t_quantile(0.95, runs) * float(logs.std(ddof=1)) * math.sqrt(1 + 1 / runs)
    most = math.ceil(math.exp(float(logs.mean()) + half) - 1)
    # Small needs are often equal by chance: after three runs without needs, a tenth of further runs have some.
    return max(most, max(needs) + 1)
