"""Pairs of configurations: what the labels choose, what the answers choose, and whether the lists decide it beforehand.

Two configurations are comparable if they return the same number of passages and their lists are seldom nested. Else
recall, hit and precision are decided by construction, and the pair stands in a table of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd
from scipy import stats

from judgekit import Run
from judgekit.analysis.best import compared_with_best
from judgekit.analysis.gain import decision_gain
from judgekit.analysis.nesting import OFTEN
from judgekit.analysis.resampling import resample_matrix

AGREE: Final = "agree"
OPPOSITE: Final = "opposite"
NOT_TOLD: Final = "not told"
LEVEL: Final = 0.05
RESAMPLES: Final = 1000
SEED: Final = 1

Ranged = tuple[float, float, float]


@dataclass(frozen=True)
class Setting:
    """Configurations that answered the same questions, all else being equal.

    Attributes:
        repository: where they are from.
        name: what is the same for all of them.
        returned: how many passages each configuration returns, in words: equal words are equal numbers.
        answers: quality of the answers between 0 and 1, a row for each question and a column for each configuration.
        labels: by measure, the scores, of the same shape.
        runs: the lists; empty where the repository does not record them.
        groups: the document that each question was written from; each question is its own group where empty.
    """

    repository: str
    name: str
    returned: Mapping[str, str]
    answers: pd.DataFrame
    labels: Mapping[str, pd.DataFrame]
    runs: Sequence[Run] = ()
    groups: Mapping[str, str] | None = None

    def members(self) -> np.ndarray | None:
        """Return the number of each question's group, in the order of the answers."""
        if self.groups is None:
            return None
        names = [self.groups[query] for query in self.answers.index]
        return np.asarray(np.unique(names, return_inverse=True)[1])

    def overlap(self, first: str, second: str) -> Overlap | None:
        """Return how the lists of two configurations relate; None where they are not recorded."""
        both = [run for run in self.runs if run.name in (first, second)]
        if len(both) != 2:
            return None
        nested = same = 0
        for query_id in self.answers.index:
            one, other = (frozenset(run.top(query_id, None)) for run in both)
            nested += one < other or other < one
            same += one == other
        return Overlap(nested / len(self.answers), same / len(self.answers))


@dataclass(frozen=True)
class Overlap:
    """How the lists of two configurations relate.

    Attributes:
        nested: the share of the questions on which one list is a proper part of the other.
        identical: the share on which both hold the same documents.
    """

    nested: float
    identical: float

    @property
    def comparable(self) -> bool:
        """Whether lists are nested too seldom to decide which run a measure prefers."""
        return self.nested <= OFTEN


@dataclass(frozen=True)
class Difference:
    """The mean of a difference in points, with its 95 % interval and the p of a t test."""

    value: float
    low: float
    high: float
    p: float


def difference(values: pd.Series, members: np.ndarray | None = None) -> Difference:
    """Return the mean of a difference per question, with Student's t over questions, or over groups of them."""
    points = 100 * values.to_numpy(float)
    if np.isnan(points).any():
        raise AssertionError(f"{int(np.isnan(points).sum())} of {len(points)} questions have no value")
    mean = float(points.mean())
    sums = points - mean if members is None else np.bincount(members, points - mean)
    units = len(sums)
    error = float(np.sqrt((sums**2).sum() * units / (units - 1)) / len(points))
    half = float(stats.t.ppf(0.975, units - 1)) * error
    if error < 1e-12:
        return Difference(mean, mean, mean, 1.0 if abs(mean) < 1e-12 else 0.0)
    return Difference(mean, mean - half, mean + half, float(2 * stats.t.sf(abs(mean) / error, units - 1)))


def holm(p: pd.Series) -> pd.Series:
    """Return p values adjusted by Holm's method."""
    ordered = p.sort_values()
    steps = np.arange(len(p), 0, -1)
    return (ordered * steps).cummax().clip(upper=1).reindex(p.index)


def table(settings: Sequence[Setting]) -> pd.DataFrame:
    """Return a row for each pair of configurations and measure.

    Differences are first minus second, in points; ``p`` is adjusted by Holm over the repository's pairs of the same
    table (comparable, or decided by construction) and, for labels, the same measure.
    """
    rows = []
    for setting in settings:
        members = setting.members()
        for first, second in combinations(setting.answers.columns, 2):
            overlap = setting.overlap(first, second)
            equal = setting.returned[first] == setting.returned[second]
            answers = difference(setting.answers[first] - setting.answers[second], members)
            for measure, scores in setting.labels.items():
                labels = difference(scores[first] - scores[second], members)
                rows.append(
                    {
                        "repository": setting.repository,
                        "setting": setting.name,
                        "first": first,
                        "second": second,
                        "comparable": equal and (overlap is None or overlap.comparable),
                        "questions": len(setting.answers),
                        "nested": np.nan if overlap is None else overlap.nested,
                        "identical": np.nan if overlap is None else overlap.identical,
                        "measure": measure,
                        **{f"labels_{name}": value for name, value in vars(labels).items()},
                        **{f"answers_{name}": value for name, value in vars(answers).items()},
                    }
                )
    found = pd.DataFrame(rows)
    by = [found["repository"], found["comparable"], found["measure"]]
    for side in ("labels", "answers"):
        found[f"{side}_p"] = found.groupby(by)[f"{side}_p"].transform(holm)
    both = (found["labels_p"] < LEVEL) & (found["answers_p"] < LEVEL)
    same = np.sign(found["labels_value"]) == np.sign(found["answers_value"])
    found["verdict"] = np.select([both & same, both & ~same], [AGREE, OPPOSITE], NOT_TOLD)
    return found


def counts(found: pd.DataFrame) -> dict[tuple[str, str], dict[str, int]]:
    """Return by repository and measure how many pairs agree, choose the opposite, and are not told apart."""
    counted: dict[tuple[str, str], dict[str, int]] = {}
    for (repository, measure), rows in found.groupby(["repository", "measure"], sort=False):
        counted[str(repository), str(measure)] = {
            verdict: int((rows["verdict"] == verdict).sum()) for verdict in (AGREE, OPPOSITE, NOT_TOLD)
        }
    return counted


@dataclass(frozen=True)
class Worth:
    """What choosing among the configurations of a setting by one labeling is worth, in points of answer quality.

    Attributes:
        gain: points over a coin flip, from half of the questions; 95 % interval.
        pick: the configuration with the highest mean score; "" where several share it.
        cost: the most that shipping it may lose against the best, at 95 %.
        may_be_best: how many configurations may be the best.
    """

    gain: Ranged
    pick: str
    cost: float
    may_be_best: int


def worth(setting: Setting) -> dict[str, Worth]:
    """Return what each measure's choice is worth, and under ``answers`` what the answers' own is."""
    members = setting.members()
    quality = setting.answers.to_numpy(float).T
    weights = resample_matrix(quality.shape[1], RESAMPLES, SEED, members)
    best = compared_with_best(quality, weights, groups=members)
    found = {}
    for name, frame in {**setting.labels, "answers": setting.answers}.items():
        scores = frame[list(setting.answers.columns)].to_numpy(float).T
        gain = decision_gain(scores, quality, weights, members)
        low, high = gain.interval(0.95)
        means = scores.mean(axis=1)
        first = np.flatnonzero(np.isclose(means, means.max(), rtol=0, atol=1e-12))
        pick = str(setting.answers.columns[first[0]]) if len(first) == 1 else ""
        found[name] = Worth(
            gain=(100 * gain.value, 100 * low, 100 * high),
            pick=pick,
            cost=100 * float(best.cost[first].max()),
            may_be_best=int(best.may_be_best.sum()),
        )
    return found
