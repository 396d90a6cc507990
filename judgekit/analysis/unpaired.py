"""Ratings of one run per question, as in live traffic: runs are compared by the difference of their means.

Each rating is about the one run that a user was shown. If that run was drawn at random, the difference of two runs'
means is unbiased. Its variance is that of two samples, with the ratings of a user or session summed first, and with
unseen ratings on both sides that win everything:

    variance = sum over clusters (sum of deviations / n_i of run i  -  sum of deviations / n_j of run j)^2 C / (C - 1)
               + (2 / C_i)^2 + (2 / C_j)^2,          t with the smaller number of clusters - 1 degrees of freedom
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.coefficients import Floats, Ints
from judgekit.analysis.resampling import unseen
from judgekit.analysis.run_means import RunMeans

LEAST: Final = 5
"""With fewer ratings (or users), a run's mean is only described."""


@dataclass(frozen=True, kw_only=True)
class UnpairedRatings(RunMeans):
    """Means of ratings that are about one run each; the units are users or sessions, or else ratings.

    Attributes:
        counts: ratings by run, shape (R,).
        clusters: number of users or sessions (or ratings); one that rated several runs counts once.
        random: whether the run of each rating was drawn at random.
        cluster: the column with users or sessions, "" if there is none.
    """

    counts: Floats
    clusters: int
    random: bool = False
    cluster: str = ""

    @property
    def claimable(self) -> bool:
        """Whether claims are possible: runs were drawn at random, and each has enough ratings."""
        return self.random and bool((self.units >= LEAST).all())


def is_unpaired(ratings: pd.DataFrame) -> bool:
    """Return whether several runs are rated, and no question has ratings of two of them."""
    there = ratings[ratings["value"].notna()]
    return there["run"].nunique() > 1 and int(there.groupby("query_id")["run"].nunique().max()) == 1


def one_value(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return ratings with one row per answer, the mean of its ratings in whatever order they come."""
    names = ("run", "depth", "model", "metric", "mode", "query_id")
    keys = [name for name in names if name in ratings.columns]
    means = ratings.groupby(keys, dropna=False, sort=False)["value"].transform("mean")
    # A user's blank thumb does not lower another user's rating.
    rated_first = np.argsort(ratings["value"].isna().to_numpy(), kind="stable")
    return ratings.assign(value=means).iloc[rated_first].drop_duplicates(keys, ignore_index=True)


def unpaired_ratings(
    ratings: pd.DataFrame, runs: Sequence[str], *, cluster: str | None, random: bool, confidence: float = 0.95
) -> UnpairedRatings:
    """Return the means of runs and the errors of their differences.

    Args:
        ratings: rows ``run, query_id, value`` on 0 to 1, with the column ``cluster`` if that is named.
        runs: names, in the order of the result.
        cluster: column of users or sessions, whose ratings are summed.
        random: whether the run of each rating was drawn at random.
        confidence: of the intervals.
    """
    there = ratings[ratings["value"].notna() & ratings["run"].isin(list(runs))]
    run = pd.Categorical(there["run"], categories=list(runs)).codes.astype(np.intp)
    group = np.arange(len(there))
    if cluster is not None:
        _, group = np.unique(there[cluster].astype(str).to_numpy(), return_inverse=True)
    found = unpaired_means(tuple(runs), run, there["value"].to_numpy(np.float64), group)
    return replace(found, random=random, cluster=cluster or "", confidence=confidence)


def unpaired_means(runs: tuple[str, ...], run: Ints, value: Floats, group: Ints) -> UnpairedRatings:
    """Return the means of runs and the errors of their differences; ``group`` numbers the users or sessions."""
    size, groups = len(runs), int(group.max(initial=-1)) + 1
    counts = np.bincount(run, minlength=size).astype(np.float64)
    some = np.maximum(counts, 1)
    means = np.bincount(run, value, size) / some
    # Easily pleased users rate every run high, so ratings of one user are summed first. Each cluster's share in the
    # error of each run's mean, shape (R, C).
    cell, cells = run * groups + group, size * groups
    sums = np.bincount(cell, value - means[run], cells).reshape(size, groups)
    shares = sums / some[:, None]
    present = np.bincount(cell, minlength=cells).reshape(size, groups) > 0
    units = present.sum(axis=1)
    gaps = shares[:, None] - shares
    # A user who rated both runs is one cluster in their difference.
    both = (present[:, None] | present).sum(axis=2)
    variance = (gaps**2).sum(axis=2) * both / np.maximum(both - 1, 1)
    floor = np.array([unseen(max(each, 1.0), one_sided=True) for each in units.tolist()])
    errors = np.sqrt(variance + floor[:, None] + floor)
    np.fill_diagonal(errors, 0.0)
    clusters = len(np.unique(group))
    return UnpairedRatings(runs=runs, means=means, errors=errors, units=units, counts=counts, clusters=clusters)


def claims(found: UnpairedRatings, qualifies: str, line: str) -> Iterator[Claim]:
    """Yield what such ratings can and cannot say about the runs."""
    means = []
    for run in found.order:
        means.append(f"{found.runs[run]} {100 * found.means[run]:.1f} points ({int(found.counts[run]):,} ratings)")
    listed = "; ".join(means)
    if not found.random:
        sentence = (
            f"Each question was rated for one run only: {listed}. Who saw which run is not declared random, so this"
            ' describes and shows nothing: declare assigned = "random" if it was.'
        )
        yield Claim("described", sentence, line=line, rank=-1)
    elif not found.claimable:
        sentence = f"There are too few ratings to compare runs: {listed}."
        yield Claim("described", sentence, line=line, rank=-1)
    else:
        sentence = f"Ratings are about one run each, drawn at random, so runs are compared by their means: {listed}"
        if found.cluster:
            sentence += f", grouped by {found.cluster} ({found.clusters:,} groups)"
        yield found.lead_of_first("unpaired", f"{sentence}.", qualifies, decides=True)
    within = "Within questions nothing can be shown: show some questions to both runs, and have both answers rated."
    yield Claim("one run a question", within, line="Keep")
