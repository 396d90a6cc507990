"""Several answers to a question: their mean is its quality, and their spread shows how much of a difference is chance.

Of the variance of a *difference of two runs* the share w is chance between answers to the same question: the mean over
pairs of runs of (s_i^2 + s_j^2) / var(D), with s^2 the variance of single answers within a question, and D the
difference of two single answers. Differences are used because a question's difficulty cancels in them. m answers each
are then worth 1 / (1 - w (1 - 1/m)) as many questions (W. G. Cochran, Sampling Techniques, 1977, chapter 10: two-stage
samples).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.wording import Ranged, plural
from judgekit.data.tables import SAMPLES
from judgekit.rules import Rules

LEAST: Final = 50
"""With fewer questions answered twice by both runs, the share is too rough to report."""
_KEYS: Final = ("labeling", "run", "measure", "depth", "model", "metric", "mode", "query_id")


@dataclass(frozen=True)
class Sampled:
    """What several answers to a question say.

    Attributes:
        answers: the mean number of answers of a run to a question.
        questions: number of questions with two or more answers of all runs.
        share: share of the variance of a difference of two runs that is chance between answers; NaN if unknown.
    """

    answers: float
    questions: int
    share: Ranged

    @property
    def worth(self) -> float:
        """The number of further questions that such answers are worth, as a share of the questions."""
        return worth(self.share.value, self.answers)

    @property
    def narrowing(self) -> float:
        """The variance of a mean difference over that with one answer each."""
        return narrowing(self.share.value, self.answers)


def narrowing(share: float, answers: float) -> float:
    """Return the variance of a mean difference with several answers to a question, relative to one answer.

    Args:
        share: share of the variance of a difference of two single answers that is chance; 0 to 1.
        answers: number of answers of each run to each question.
    """
    return 1 - share * (1 - 1 / answers)


def worth(share: float, answers: float) -> float:
    """Return how many further questions several answers to each are worth, as a share of the questions."""
    return 1 / narrowing(share, answers) - 1


def column_of(table: pd.DataFrame) -> str | None:
    """Return the column that numbers several answers to a question, or None."""
    return next((name for name in SAMPLES if name in table.columns), None)


def means_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with a row for each run and question, with the mean of its samples."""
    column = column_of(table)
    if column is None:
        return table
    keys = [name for name in _KEYS if name in table.columns]
    # Two rows of one sample stay apart: a mean would hide that a file was read twice.
    twice = table.duplicated([*keys, column], keep=False)
    groups = table.groupby(keys, dropna=False, sort=False)
    means = {name: groups[name].transform("mean") for name in ("value", "low", "high") if name in table.columns}
    known_first = np.argsort(table["value"].isna().to_numpy(), kind="stable")
    one = table.assign(**means).iloc[known_first]
    return one[twice.iloc[known_first] | ~one.duplicated(keys)].drop(columns=column).reset_index(drop=True)


def sampled(rows: pd.DataFrame, runs: Sequence[str], questions: Mapping[str, str], rules: Rules) -> Sampled | None:
    """Return the analysis of several answers to a question; None if each question has one.

    Args:
        rows: ``run, query_id, value``, a row for each answer.
        runs: that are compared.
        questions: by query id the id of its question, where that is another.
        rules: the resamples, their seed and the confidence of the interval.
    """
    there = rows[rows["run"].isin(list(runs))].dropna(subset="value")
    asked = there["query_id"].map(lambda name: questions.get(name, name))
    cells = there.groupby([there["run"], asked])["value"].agg(["mean", "var", "size"])
    if not len(cells) or cells["size"].max() < 2:
        return None
    answers = float(cells["size"].mean())
    of_run = {str(run): found.droplevel(0) for run, found in cells[cells["size"] > 1].groupby(level=0)}
    common = sorted(set.intersection(*(set(found.index) for found in of_run.values())))
    if len(of_run) < max(len(runs), 2) or len(common) < LEAST:
        return Sampled(answers, len(common), Ranged(math.nan))
    arrays = [found.loc[common].to_numpy(np.float64) for found in of_run.values()]
    drawn = np.random.default_rng(rules.seed).integers(0, len(common), (rules.resamples, len(common)))
    value = _share(arrays, np.arange(len(common))[None])[0]
    draws = _share(arrays, drawn)
    ends = [(1 - rules.confidence) / 2, (1 + rules.confidence) / 2]
    low, high = np.nanquantile(draws, ends).tolist()
    return Sampled(answers, len(common), Ranged(float(value), min(low, value), max(high, value)))


def _share(of_runs: Sequence[Floats], drawn: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> Floats:
    """Return the share on each resample of the questions, shape (B,); mean, variance and number by question and run."""
    shares = []
    for first, second in combinations(of_runs, 2):
        lead = (first[:, 0] - second[:, 0])[drawn]
        noise = (first[:, 1] + second[:, 1])[drawn].mean(axis=1)
        of_means = (first[:, 1] / first[:, 2] + second[:, 1] / second[:, 2])[drawn].mean(axis=1)
        single = lead.var(axis=1, ddof=1) - of_means + noise
        with np.errstate(invalid="ignore", divide="ignore"):
            shares.append(np.where(single > 0, np.clip(noise / single, 0, 1), np.nan))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.mean(shares, axis=0))


def claims(found: Sampled, line: str, rank: int) -> Iterator[Claim]:
    """Yield the number of answers per question, the share of chance in differences, and the worth of the answers."""
    count = f"{found.answers:.1f}".removesuffix(".0")
    said = f"{count} answers a question: their mean counts"
    share = found.share
    if math.isnan(share.value):
        few = f"{plural(found.questions, 'question')} with two answers of each run; {LEAST} are needed"
        said += f". How much is chance between answers is not known ({few})."
        yield Claim("samples", said, line=line, rank=rank)
        return
    low, high = 100 * share.low, 100 * share.high
    said += f"; {100 * share.value:.0f} % ({low:.0f} to {high:.0f}) of the differences between runs is chance between"
    said += f" answers to the same question. So many answers are worth {100 * found.worth:.0f} % more questions."
    yield Claim("samples", said, value=100 * share.value, low=low, high=high, shown=True, line=line, rank=rank)
