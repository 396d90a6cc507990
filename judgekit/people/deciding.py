"""Decides which run is best by people's labels, asking only about the pairs that the decision needs.

In DCG and P the difference of two runs is a sum over pairs of weight x label. Pairs are drawn (Poisson sampling) with
probabilities p in proportion to their weight times the spread of people's labels among pairs with the same machine
label; looks are planned:

    difference = sum_all c m + sum_judged c (y - m) / p,    error**2 = sum_judged (1 - p) / p**2 (c (y - m))**2

m is the mean of people's labels among pairs with the same machine label; it only makes intervals narrower. Intervals
hold at all looks and for all pairs of runs at once (Bonferroni). A pair's random number never changes, so judged pairs
stay in the sample when probabilities grow, and each look uses all judgments. The decision is about these queries only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import isnan
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from judgekit.analysis.claims import Claim
from judgekit.analysis.money import Money
from judgekit.collection import Collection
from judgekit.data.columns import Bools, Floats
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError, not_among
from judgekit.metrics import Measure
from judgekit.people.reading import People
from judgekit.people.sampling import coarse, probabilities

Pair = tuple[str, str]

MARGIN: Final = 0.01
"""A run within this of the best is as good, as a share of the measure's largest possible value."""
PILOT: Final = 150
"""Pairs of the first round, which counts as a look: it shows how people's labels vary among equal machine labels."""
LOOKS: Final = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
"""Shares of the pool judged by the looks after the pilot; after the last one, nothing is open."""
_ASSUMED: Final = 0.25
"""Assumed spread of people's labels (at most 1) before there are any."""
_NEARLY: Final = 0.8
"""From this share of the pool on, texts say "nearly all"."""
_PRIOR: Final = 2
"""Number of pairs with the overall spread that are added to each machine label's, so that no spread is 0."""
_EQUAL: Final = 1e-12
"""Rounding error of sums that are 0: without it, three equal runs, all judged, each lost to another."""


@dataclass(frozen=True)
class LookResult:
    """The result of a look.

    Attributes:
        runs: their names.
        table: a row per pair of runs, ``run, other, value, ci_low, ci_high, machine``; all intervals hold together.
        leader: the leading run.
        decided: whether it is shown to be within `MARGIN` of the best.
        live: the runs that are not shown to be worse than another.
        share: the share of the pool that is expected to decide it; 1 if nearly all is needed.
        chance: the probability of each pair to be asked about by the next look, shape (N,).
        new: the pairs that the next look adds, shape (N,).
    """

    runs: tuple[str, ...]
    table: pd.DataFrame
    leader: str
    decided: bool
    live: Bools
    share: float
    chance: Floats
    new: Bools


@dataclass(frozen=True)
class Contest:
    """The runs to decide between by people's labels, and the N pairs that they show.

    Attributes:
        runs: their names.
        counts: the contribution of a label of 1 to each run's mean, shape (R, N); no mean is above 1.
        machine: the machine's labels, from 0 to 1, shape (N,).
        groups: the group of pairs with about the same machine label, shape (N,).
        fixed: each pair's random number, shape (N,).
    """

    runs: tuple[str, ...]
    counts: Floats
    machine: Floats
    groups: npt.NDArray[np.intp]
    fixed: Floats

    def look(self, people: Floats, chance: Floats) -> LookResult:
        """Return the result of people's labels (NaN: none), drawn with these probabilities (0: not asked)."""
        mean, spread = self._groups(people)
        judged = np.isfinite(people)
        # Pairs without an answer count as not drawn.
        p = np.where(judged, chance * (judged.sum() / max(np.count_nonzero(chance), 1)), 1.0)
        rest = np.where(judged, people - mean, 0.0) / p
        gaps, lost = self._gaps, (1 - p) / p**2
        value = gaps @ (mean + rest)
        # Even if no label was a surprise yet, the next may be, so the spread of its group is used, which is never 0.
        error = np.sqrt(np.maximum(gaps**2 @ ((1 - p) * rest**2), gaps**2 @ (spread**2 * lost)))
        if not judged.any():
            error = np.where(np.eye(len(self.runs), dtype=np.bool_), 0.0, np.inf)
        low, high = value - self._reach * error, value + self._reach * error
        live = ~(low > _EQUAL).any(axis=0)
        best = _as_good(low, live)
        ahead = best if best.any() else live
        leader = max(np.flatnonzero(ahead), key=lambda run: float(value[run].sum()))
        rows = []
        for i, j in combinations(range(len(self.runs)), 2):
            by_machine = gaps[i, j] @ self.machine
            rows.append((self.runs[i], self.runs[j], value[i, j], low[i, j], high[i, j], by_machine))
        next_chance, new = self._next(chance, live, spread)
        return LookResult(
            runs=self.runs,
            table=pd.DataFrame(rows, columns=["run", "other", "value", "ci_low", "ci_high", "machine"]),
            leader=self.runs[leader],
            decided=bool(best.any()),
            live=live,
            share=self._expected(value, live, spread),
            chance=next_chance,
            new=new,
        )

    @cached_property
    def _gaps(self) -> Floats:
        """The contribution of a label of 1 to the difference of two runs, shape (R, R, N)."""
        return self.counts[:, None] - self.counts[None]

    @classmethod
    def of(cls, collection: Collection, machine: Labeling, measure: Measure, seed: int) -> tuple[Self, list[Pair]]:
        """Return the contest of a collection's runs, and the pairs in their lists."""
        cutoff, queries = measure.cutoff or collection.depth, list(collection.queries)
        if len(collection.runs) < 2:
            raise UsageError("design 'decision' decides between runs, but there is only one")
        places: dict[Pair, int] = {}
        for run in collection.runs:
            for query_id in queries:
                for doc_id in run.top(query_id, cutoff):
                    places.setdefault((query_id, doc_id), len(places))
        pairs = list(places)
        counts = counted(collection, places, measure)
        if not np.ptp(counts, axis=0).any():
            raise UsageError(f"all runs have the same lists at depth {cutoff}: there is no decision to make")
        counts /= gained(measure, cutoff).sum() * len(queries)
        groups = np.unique(coarse(machine, machine.at(pairs)), return_inverse=True)[1]
        values = _valued(machine, pairs, measure)
        known = np.isfinite(values)
        # Without a machine label, the mean is a guess that favours no run.
        values = np.where(known, values, values[known].mean() if known.any() else 0.5)
        # Drawn once for all looks, so that judged pairs stay in the sample when their chance grows.
        fixed = np.random.default_rng(seed).random(len(pairs))
        return cls(tuple(run.name for run in collection.runs), counts, values, groups, fixed), pairs

    @cached_property
    def _looks(self) -> list[int]:
        """The number of pairs judged after each look; looks that add little to the pilot are left out."""
        sizes = [round(share * len(self.fixed)) for share in LOOKS]
        # Thirty more pairs hardly say more than the pilot.
        return [size for size in sizes if size > 1.2 * PILOT]

    @property
    def _reach(self) -> float:
        """The half-width of an interval in standard errors."""
        pairs = len(self.runs) * (len(self.runs) - 1) / 2
        return float(stats.norm.isf(0.025 / (pairs * len(LOOKS))))  # the pilot is one more look; the last is exact

    def _groups(self, people: Floats) -> tuple[Floats, Floats]:
        """Return each pair's mean and spread of people's labels among pairs with the same machine label."""
        there = np.isfinite(people)
        if not there.any():
            return self.machine, np.full(len(people), _ASSUMED)
        y, group, size = people[there], self.groups[there], int(self.groups.max()) + 1
        count = np.bincount(group, minlength=size) + _PRIOR
        mean = (np.bincount(group, y, minlength=size) + _PRIOR * y.mean()) / count
        # A pilot with equal labels has a spread of 0, and would stop at the first look.
        overall = max(float(y.var()), 1 / len(y))
        square = (np.bincount(group, (y - mean[group]) ** 2, minlength=size) + _PRIOR * overall) / count
        return mean[self.groups], np.sqrt(square)[self.groups]

    def _chance(self, size: int, live: Bools, spread: Floats) -> Floats:
        """Return the probabilities for a sample of about this size, by pairs' weights between the remaining runs."""
        weight: Floats = np.ptp(self.counts[live], axis=0)
        if size < len(weight):
            return probabilities(weight * spread, size)
        return (weight > 0).astype(np.float64)

    def _next(self, chance: Floats, live: Bools, spread: Floats) -> tuple[Floats, Bools]:
        """Return the probability of each pair to be asked about by the next look, and the pairs that it adds."""
        asked = np.count_nonzero(chance)
        for size in (PILOT, *self._looks, len(self.fixed)):
            wanted = self._chance(size, live, spread)
            new = (self.fixed < wanted) & (chance == 0)
            # The size of a sample is random, so a look may have asked a little less than planned.
            if size > 1.35 * asked and new.any():
                break
        return np.where(new | (chance > 0), np.maximum(chance, wanted), 0.0), new

    def _expected(self, value: Floats, live: Bools, spread: Floats) -> float:
        """Return the share of the pool that decides, if current estimates of differences and spreads are right."""
        for size in (PILOT, *self._looks):
            p = self._chance(size, live, spread)
            lost = np.divide(1 - p, p, out=np.zeros_like(p), where=p > 0)
            low = value - self._reach * np.sqrt(self._gaps**2 @ (spread**2 * lost))
            live = live & ~(low > _EQUAL).any(axis=0)
            if _as_good(low, live).any():
                return float(p.mean())
        return 1.0


def _as_good(low: Floats, live: Bools) -> Bools:
    """Return which remaining runs are shown to be within the margin of each other one."""
    return np.asarray(live & (low[:, live] >= -MARGIN).all(axis=1))


@dataclass(frozen=True)
class RunChoice:
    """The decision by people's labels so far.

    Attributes:
        design: the spelling of how pairs are drawn.
        by: the labeling that shows which pairs are in doubt.
        measure: the measure of the runs.
        pool: the number of pairs in the runs; ``judged`` of them have a label.
        look: the result of the labels.
        chance: the probability of each pair to be asked about by the next look; ``new`` are the pairs that it adds.
    """

    design: str
    by: str
    measure: Measure
    pool: int
    judged: int
    look: LookResult
    chance: Mapping[Pair, float]
    new: tuple[Pair, ...]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to ask."""
        return self.look.decided or not self.new

    def lines(self, money: Money) -> list[str]:
        """Return the decision, and what to expect next, as sentences."""
        return [claim.sentence for claim in self.claims(money)]

    def claims(self, money: Money) -> Iterator[Claim]:
        """Yield the decision, and what to expect next."""
        look, best, measure = self.look, self.look.leader, self.measure
        if look.decided:
            decided = f"Decided: {best} is shown to be within {MARGIN:g} of the best in {measure} (of at most 1)."
            yield Claim("decided", decided, subject=best, value=MARGIN, shown=True)
            judged = f"People judged {self.judged:,} of the {self.pool:,} pairs ({self.judged / self.pool:.0%})."
            yield Claim("judged", judged, value=self.judged)
            return
        if not self.new:
            asked = f"Not decided: every pair that tells the runs apart was asked. {best} is ahead in {measure}."
            yield Claim("not decided", asked, subject=best)
            return
        if self.judged:
            left = ", ".join(np.array(look.runs)[look.live])
            ahead = f"Not decided yet in {measure}: {best} leads the runs that are left ({left})."
            yield Claim("not decided", ahead, subject=best)
        else:
            of_best = (look.table["run"] == best) | (look.table["other"] == best)
            lead = float(look.table.loc[of_best, "value"].abs().min())
            by_labels = f"By {self.by} alone {best} is best in {measure}, by {lead:.3f} (of at most 1)."
            yield Claim("ahead", by_labels, subject=best, value=lead)
            first = f"Ask first whether people matter here: only if {self.by} favours a run by more than that."
            yield Claim("ask first", first, qualifies="ahead")
        n = max(round(look.share * self.pool), len(self.chance))
        price = "" if money.judgment is None else f", {n * money.judgment:,.2f} {money.currency}".rstrip()
        nearly = "The runs are nearly equal: expect" if n > _NEARLY * self.pool else "Expect"
        expected = (
            f"{nearly} to judge about {n:,} of the {self.pool:,} pairs in all ({n / self.pool:.0%}{price}) until a run"
            f" is shown to be within {MARGIN:g} of the best. {self.judged:,} are judged, {len(self.new):,} are next."
        )
        yield Claim("to judge", expected, value=n)

    @property
    def wanted(self) -> dict[Pair, float]:
        """The pairs that the next look adds, with their probabilities."""
        return {pair: self.chance[pair] for pair in self.new}

    def before(self, people: People) -> tuple[tuple[Any, ...], ...]:
        """Return what people were asked so far as rows for the next sample, with the next look's probabilities."""
        labels = people.labeling.at(zip(people.asked["query_id"], people.asked["doc_id"], strict=True)).tolist()
        rows: list[tuple[Any, ...]] = []
        for label, row in zip(labels, people.asked.itertuples(index=False, name=None), strict=True):
            query_id, doc_id, _, *rest = row
            rows.append((query_id, doc_id, None if isnan(label) else label, self.chance[query_id, doc_id], *rest))
        return tuple(rows)


def decided_by(design: str) -> tuple[str, str] | None:
    """Return the labeling and the measure of a deciding design, else None."""
    match = re.fullmatch(r"decision\(measure=([^,]+),by=(.+),of=\w+\)", design)
    if match is None:
        return None
    return (match[2], match[1])


def decide(
    collection: Collection, labelings: Mapping[str, Labeling], by: str | None, primary: str, seed: int,
    people: People | None = None,
) -> RunChoice:  # fmt: skip
    """Return people's decision about the runs so far, and what to ask next."""
    if people is not None:
        sampled = decided_by(people.design)
        if sampled is None:
            raise UsageError(
                "people's labels were not sampled by the design 'decision', so no further look was planned"
            )
        by, primary = sampled
    if not labelings:
        raise UsageError("design 'decision' needs the labels of a finished run: name its folder")
    if not by and len(labelings) > 1:
        raise UsageError(f"design 'decision' needs one labeling: name it with --by, one of {', '.join(labelings)}")
    by = by or next(iter(labelings))
    if by not in labelings:
        raise UsageError(not_among("labeling", by, labelings))
    measure = Measure(primary)
    if measure.name != "P" or measure.cutoff is None:  # not a sum over pairs
        measure = Measure(f"DCG@{measure.cutoff or collection.depth}")
    contest, pairs = Contest.of(collection, labelings[by], measure, seed)
    shown = hashlib.sha256(json.dumps([contest.runs, pairs]).encode()).hexdigest()[:12]
    design = f"decision(measure={measure},by={by},of={shown})"
    labels, chance = np.full(len(pairs), np.nan), np.zeros(len(pairs))
    if people is not None:
        # Pairs of an added run had no chance to be drawn, and no weight can correct that.
        if people.design != design:
            raise UsageError(
                "the runs or their questions are not those that the sample was drawn from, so some of their documents"
                " could not be asked about: draw a new sample, without --people"
            )
        labels = _valued(people.labeling, pairs, measure)
        drawn = people.asked.set_index(["query_id", "doc_id"])["probability"]
        chance = drawn.reindex(pd.MultiIndex.from_tuples(pairs)).fillna(0.0).to_numpy(np.float64)
    look = contest.look(labels, chance)
    return RunChoice(
        design=design,
        by=by,
        measure=measure,
        pool=len(pairs),
        judged=int(np.isfinite(labels).sum()),
        look=look,
        chance={pairs[place]: float(look.chance[place]) for place in np.flatnonzero(look.chance)},
        new=tuple(pairs[place] for place in np.flatnonzero(look.new)),
    )


def _valued(labeling: Labeling, pairs: Sequence[Pair], measure: Measure) -> Floats:
    """Return the contributions of labels to a sum over pairs, at most 1 each; NaN without a label."""
    values = worth(labeling.at(pairs), labeling.scale, measure)
    if measure.name == "DCG":
        return values / labeling.scale.high
    return values


def worth(labels: Floats, scale: Scale, measure: Measure) -> Floats:
    """Return the contributions of labels to a measure that is a sum over pairs; NaN without a label."""
    if measure.name == "DCG":
        return np.maximum(labels, 0.0)
    least = scale.min_rel if measure.rel is None else measure.rel
    if least is None:
        return labels
    return np.where(np.isnan(labels), np.nan, labels >= least)


def gained(measure: Measure, cutoff: int) -> Floats:
    """Return the weight of each rank in a measure that is a sum over pairs."""
    if measure.name == "P":
        return np.full(cutoff, 1 / cutoff)
    return 1 / np.log2(np.arange(cutoff) + 2)


def counted(collection: Collection, row: Mapping[tuple[str, str], int], measure: Measure) -> Floats:
    """Return each pair's weight in each run's measure (a sum over pairs), shape (R, N)."""
    cutoff = measure.cutoff or collection.depth
    gains = gained(measure, cutoff)
    counts = np.zeros((len(collection.runs), len(row)))
    for at, run in enumerate(collection.runs):
        for query in collection.queries:
            docs = run.top(query, cutoff)
            counts[at, [row[query, doc] for doc in docs]] = gains[: len(docs)]
    return counts
