"""How often the decision's claims are false, its intervals cover the truth, and what following it costs: a simulation.

    python benchmarks/decision_simulation.py                 # claims and intervals, into decision.csv
    python benchmarks/decision_simulation.py regret          # what choosing as it says loses, into regret.csv
    python benchmarks/decision_simulation.py page            # both as the tables of docs/statistics.md

A world has questions of different difficulty, each with a pool of documents. Runs rank the pool by what they know of a
document's use, with noise that they share in part; answers follow from what a run ranks first, and from luck. Labels
say how useful a document is, each labeling with its own noise. All of a world is fixed but the questions: claims are
about these runs. They are made by `judgekit.analysis.findings.find`, as `judgekit.compare` makes them, from 300
resamples (of 1,000 by default); the truth is what the estimates tend to over very many questions. Tables grow as cells
finish, and another call goes on.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from judgekit.analysis.findings import HELPS, MISLEADS, TWIN, Findings, Ranged, find
from judgekit.analysis.follow import pooled_correlation
from judgekit.analysis.gain import Gain, decision_gain
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import margins
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES, Primary
from judgekit.analysis.rankings import gaps, within_queries
from judgekit.analysis.resampling import resample_matrix
from judgekit.rules import Rules

CLAIMS, REGRET = (Path(__file__).with_name(name) for name in ("decision.csv", "regret.csv"))
PAGE = Path(__file__).parents[1] / "docs" / "statistics.md"
POOL, DEPTH, RESAMPLES = 12, 5, 300
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
TRUTH, CHUNK, MOST = 200_000, 10_000, 2000
APART = (0.0, 0.4, 0.7, 1.0, 1.3, 1.6)
ALIKE = (0.9, 0.95, 1.0, 1.05, 1.1, 1.15)
TWELVE = tuple(np.linspace(0, 1.6, 12).round(2))
NOISE = 1e3
"""A labeling's noise that leaves nothing of the document in the label."""
RULES = Rules()
CONTROL = "control"


@dataclass(frozen=True)
class World:
    """What is fixed while questions are drawn.

    Attributes:
        name: of the world.
        labels: noise of each labeling's labels (a document's use has the standard deviation 1).
        skills: of each run, how much it knows of a document's use.
        prevalence: share of right answers, in the mean over runs.
        difficulty: share of the variance of a document's use that all documents of a question have in common.
        luck: standard deviation of what else decides an answer, by question and by document: runs share it.
        own: the same for each answer alone: another run with the same list may answer otherwise.
        sparse: whether one document in twelve is useful, the best one alone decides the answer, and labels miss or
            invent useful ones; else use is a matter of degree, and the list's mean decides.
        binary: whether labels are binary, else a number from 0 to 1.
        graded: whether answers are right in part.
        shared: share of the labels' noise that all labelings have in common.
        bias: what the first labeling adds to each run's score, whatever it retrieves.
        style: weight of the documents' style, which runs rank by too, in the first labeling's labels.
        blind: whether the first labeling knows the question's difficulty alone.
        cluster: questions that go together (paraphrases): they have documents and labels in common, in part.
        missing: share of the questions on which the last labeling lacks the label of the document that most runs
            retrieve: those on which it is furthest ahead of the first.
        bounds: whether the bounds of the scores are known; else nothing may be claimed of that labeling.
        worth: what answers win, to which the spread of skills is tuned.
    """

    name: str
    labels: tuple[float, ...] = (0.8, 0.8, 0.8, 0.8)
    skills: tuple[float, ...] = APART
    prevalence: float = 0.45
    difficulty: float = 0.4
    luck: float = 0.5
    own: float = 0.0
    sparse: bool = False
    binary: bool = True
    graded: bool = False
    shared: float = 0.0
    bias: tuple[float, ...] = ()
    style: float = 0.0
    blind: bool = False
    cluster: int = 1
    missing: float = 0.0
    bounds: bool = True
    worth: float = 0.0

    def draw(self, n: int, rng: np.random.Generator, threshold: float) -> Draw:
        """Draw n questions; ``threshold`` is what an answer's worth must exceed to be right."""

        def normal(*shape: int) -> np.ndarray:
            alone = rng.standard_normal((*shape[:-1], n))
            if self.cluster == 1:
                return alone
            groups = rng.standard_normal((*shape[:-1], -(-n // self.cluster)))
            return np.sqrt(0.8) * np.repeat(groups, self.cluster, axis=-1)[..., :n] + np.sqrt(0.2) * alone

        runs, hard = len(self.skills), normal(1, n)
        use = np.sqrt(1 - self.difficulty) * normal(POOL, n) + np.sqrt(self.difficulty) * hard
        use = (use > 1.38) * 3.0 if self.sparse else use
        shared, style, common = normal(POOL, n), normal(POOL, n), normal(POOL, n)
        lean = (0.7 if self.style else 0.0) * np.linspace(1, -1, runs)
        lists = np.stack(
            [
                np.argsort(-(a * use + b * style + 0.7 * shared + 0.7 * normal(POOL, n)), axis=0, kind="stable")[:DEPTH]
                for a, b in zip(self.skills, lean, strict=True)
            ]
        )
        worth = use + self.luck * normal(POOL, n)
        worth = worth[lists, np.arange(n)].max(axis=1) if self.sparse else _mean(worth, lists)
        worth = worth + self.luck / 2 * normal(n) + self.own * normal(runs, n)
        scores, straight, twins = [], [], []
        last = np.zeros((POOL, n))
        # A control stands beside them: a further labeling with the noise of the first.
        for place, noise in enumerate((*self.labels, self.labels[0])):
            of_question = self.blind and place in (0, len(self.labels))
            error = np.sqrt(self.shared) * common + np.sqrt(1 - self.shared) * normal(POOL, n)
            seen = error if noise >= NOISE else ((hard if of_question else use) + noise * error) / np.hypot(1, noise)
            label = self._labels(seen)
            straight.append(_mean(label, lists))
            label = self._labels(seen + self.style * style) if self.style and place == 0 else label
            shift = np.array(self.bias)[:, None] if self.bias and place == 0 else 0.0
            scores.append(_mean(label, lists) + shift)
            twins.append(label.mean(axis=0))
            last = label if place == len(self.labels) - 1 else last
        often = (lists[:, :, None, :] == np.arange(POOL)[:, None]).sum(axis=(0, 1)).argmax(axis=0)
        ends = []
        for end in (0.0, 1.0):
            last[often, np.arange(n)] = end
            ends.append(_mean(last, lists))
        over = worth - threshold
        quality = np.clip(np.round(2 * over + 1), 0, 3) / 3 if self.graded else (over > 0).astype(float)
        rounded = (np.round(each, 12) for each in (scores, ends, straight))
        return Draw(*rounded, np.stack(twins), quality, worth)

    def _labels(self, seen: np.ndarray) -> np.ndarray:
        return (seen > (1.2 if self.sparse else 0.5)).astype(float) if self.binary else 1 / (1 + np.exp(-2 * seen))


@dataclass(frozen=True)
class Draw:
    """Some questions: scores of the labelings and the control (L + 1, R, n), the last labeling's bounds (2, R, n),
    scores without any bias, question-only twins (L + 1, n), quality (R, n), and what it was made from."""

    scores: np.ndarray
    ends: np.ndarray
    straight: np.ndarray
    twins: np.ndarray
    quality: np.ndarray
    worth: np.ndarray


def _mean(values: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """Return the discounted mean over each run's documents: values (POOL, n), lists (R, DEPTH, n), result (R, n)."""
    return np.einsum("rkn,k->rn", values[lists, np.arange(values.shape[1])], DISCOUNT / DISCOUNT.sum())


@dataclass(frozen=True)
class Truth:
    """What the estimates tend to; labelings come with the control, gains with picking by answers at the end.

    Attributes:
        query: concordance over queries, (L + 1, R); ``twin`` that of the question-only twins.
        within, r: within queries, (L + 1,).
        gain: by pair of runs, (L + 2, P).
        means, quality: of scores, (L + 1, R), and of quality, (R,).
        bias: of each run in the scores, less its mean, (L + 1, R).
    """

    query: np.ndarray
    twin: np.ndarray
    within: np.ndarray
    r: np.ndarray
    gain: np.ndarray
    means: np.ndarray
    quality: np.ndarray
    bias: np.ndarray


def over_queries(score: np.ndarray, quality: np.ndarray) -> float:
    """Return the concordance of very many questions of one run."""
    if len(np.unique(quality)) > 2:
        parts = np.array_split(np.arange(len(score)), max(len(score) // 500, 1))
        return float(np.mean([margins(score[part], quality[part]).concordance for part in parts]))
    right = quality > 0
    wins = rankdata(score)[right].sum() - right.sum() * (right.sum() + 1) / 2
    return float(wins / (right.sum() * (~right).sum()))


def pair_gains(
    scores: np.ndarray, quality: np.ndarray, half: int, cluster: int, rng: np.random.Generator
) -> np.ndarray:
    """Return by pair of runs the gain of picking from ``half`` questions on others, shape (P,)."""
    gap, delta = gaps(scores), gaps(quality).mean(axis=1)
    blocks = gap[:, : gap.shape[1] // cluster * cluster].reshape(len(gap), -1, cluster).sum(axis=2)
    size = max(half // cluster, 1)
    signs = []
    for _ in range(min(max(1, 4 * half // 100), 8)):
        order = rng.permutation(blocks.shape[1])[: blocks.shape[1] // size * size]
        sums = blocks[:, order].reshape(len(gap), -1, size).sum(axis=2)
        signs.append(np.sign(np.where(np.abs(sums) < 1e-9, 0, sums)).mean(axis=1))
    return np.asarray(np.mean(signs, axis=0) * delta / 2)


def threshold_of(world: World) -> float:
    """Return what an answer's worth must exceed to be right."""
    drawn = replace(world, cluster=1).draw(50_000, np.random.default_rng(98), 0.0)
    return float(np.quantile(drawn.worth, 1 - world.prevalence))


def tuned(world: World) -> World:
    """Return the world with its skills so far apart that answers win what they should, from 100 questions."""
    low, high, size = 0.0, 1.0, np.array(world.skills) - np.mean(world.skills)
    for _ in range(7 if world.worth else 0):
        tried = replace(world, skills=tuple(1 + (low + high) / 2 * size))
        drawn = tried.draw(40_000, np.random.default_rng(97), threshold_of(tried)).quality
        much = pair_gains(drawn, drawn, 100, 1, np.random.default_rng(96)).mean() > world.worth
        low, high = (low, (low + high) / 2) if much else ((low + high) / 2, high)
    return replace(world, skills=tuple(1 + (low + high) / 2 * size)) if world.worth else world


@cache
def settle(world: World, questions: tuple[int, ...]) -> tuple[World, float, dict[int, Truth]]:
    """Return the world with its skills tuned, the answers' threshold, and the truth by number of questions."""
    world = tuned(world)
    threshold, rng = threshold_of(world), np.random.default_rng(99)
    parts, bias = [], np.zeros((len(world.labels) + 1, len(world.skills)))
    for _ in range(TRUTH // CHUNK):
        drawn = world.draw(CHUNK, rng, threshold)
        bias += (drawn.scores - drawn.straight).mean(axis=2) / (TRUTH // CHUNK)
        parts.append((drawn.scores, drawn.quality, drawn.twins))
    scores, quality, twins = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
    some, all_of = slice(0, TRUTH // 4), np.ones((TRUTH, 1))
    query = np.array([[over_queries(s[some], q[some]) for s, q in zip(each, quality, strict=True)] for each in scores])
    twin = np.array([np.mean([over_queries(each[some], q[some]) for q in quality]) for each in twins])
    within = np.array([np.nanmean(within_queries(each, quality, ("concordance",))[0]) for each in scores])
    r = np.array([pooled_correlation(each, quality, all_of).value for each in scores])
    means, bias = scores.mean(axis=2), bias - bias.mean(axis=1)[:, None]
    for where, nothing in equals(world):
        for values, least in ((query, 0.5), (twin, 0.5), (within, 0.5), (r, 0.0), (means, None), (bias, None)):
            of_question = world.blind and any(values is each for each in (query, twin))
            values[where] = least if nothing and least is not None and not of_question else values[where].mean(axis=0)
    known = query, twin, within, r
    gains = {n: true_gains(world, scores, quality, n) for n in questions}
    return world, threshold, {n: Truth(*known, gain, means, quality.mean(axis=1), bias) for n, gain in gains.items()}


def equals(world: World) -> Iterator[tuple[list[int], bool]]:
    """Yield labelings that differ by chance alone, and so are equal, and whether they say nothing of documents."""
    kinds: dict[tuple[float, bool, bool], list[int]] = defaultdict(list)
    for place, noise in enumerate((*world.labels, world.labels[0])):
        blind = world.blind and place in (0, len(world.labels))
        kinds[noise, place == 0 and bool(world.bias or world.style), blind].append(place)
    for (noise, leans, blind), where in kinds.items():
        yield where, (noise >= NOISE or blind) and not leans


def true_gains(world: World, scores: np.ndarray, quality: np.ndarray, n: int) -> np.ndarray:
    """Return what picking from half of n questions wins, by labeling, the control and the answers, and pair of runs."""
    rng = np.random.default_rng(95)
    gain = np.stack([pair_gains(each, quality, n // 2, world.cluster, rng) for each in (*scores, quality)])
    for where, nothing in equals(world):
        gain[where] = 0.0 if nothing else gain[where].mean(axis=0)
    return gain * (len(set(world.skills)) > 1 or bool(world.style))


def lose(world: World, drawn: Draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores without those that missing labels leave open, and the lowest and the highest they may be."""
    scores, last = drawn.scores, len(world.labels) - 1
    ahead = within_queries(scores[last], drawn.quality)[0] - within_queries(scores[0], drawn.quality)[0]
    gone = np.argsort(-np.nan_to_num(ahead), kind="stable")[: round(world.missing * scores.shape[2])]
    low, high, known = scores.copy(), scores.copy(), scores.copy()
    low[last][:, gone], high[last][:, gone] = drawn.ends[0][:, gone], drawn.ends[1][:, gone]
    known[last][:, gone] = np.where(drawn.ends[0] < drawn.ends[1], np.nan, known[last])[:, gone]
    if not world.bounds:
        low, high = (np.where(np.isnan(known), end, scores) for end in (-np.inf, np.inf))
    return known, low, high


def panel_of(world: World, drawn: Draw) -> Panel:
    """Return one experiment as the panel that a comparison makes of its tables."""
    scores, low, high = lose(world, drawn) if world.missing else (drawn.scores, None, None)
    _, runs, n = scores.shape
    names = (*(f"l{i}" for i in range(len(world.labels))), CONTROL)
    return Panel(
        "m", DEPTH, "metric", "model", names, tuple(f"r{i}" for i in range(runs)), tuple(f"q{i:05d}" for i in range(n)),
        scores, drawn.quality, np.ones((runs, n), np.bool_), True, low, high,
    )  # fmt: skip


def decide(panel: Panel, use: str, resamples: Resamples, twin: np.ndarray | None = None) -> Findings:
    """Return what `judgekit.compare` finds for a use; ``twin`` knows the question only, as the first labeling does."""
    if use == FIND_QUESTIONS:
        bounds = {
            name: None if ends is None else ends[:-1] for name, ends in (("low", panel.low), ("high", panel.high))
        }
        panel = replace(panel, labelings=panel.labelings[:-1], scores=panel.scores[:-1], **bounds)
    found = list(estimates(panel, USES[use], resamples, ("concordance",)))
    cell, twins = Primary("m", "metric", "model", DEPTH, use), {} if twin is None else {"l0": twin}
    return find(cell, panel, found, resamples, RULES, controls=(CONTROL,), twins=twins)


Figure = tuple[str, bool, float]


def covered(name: str, shown: Ranged, truth: float) -> Iterator[Figure]:
    """Yield whether an interval covers the truth, and its width; nothing where none is given."""
    if np.isfinite(shown.low):
        yield f"coverage: {name}", shown.low - 1e-9 <= truth <= shown.high + 1e-9, shown.high - shown.low


def choosing(world: World, found: Findings, panel: Panel, truth: Truth, resamples: Resamples) -> Iterator[Figure]:
    """Yield every figure of the choice between runs: covered or not, claimed falsely, rightly, or not at all."""
    if not found.each:
        return
    place = {name: i for i, name in enumerate(panel.labelings)}
    gain, size, nan = truth.gain.mean(axis=1), len(world.labels), np.nan
    first, second = np.triu_indices(len(panel.runs), 1)
    one = found["l0"] if "l0" in found.names else found.each[0]
    at = place[one.labeling]
    yield from covered("gain", one.gain, gain[at])
    if np.isfinite(one.gain.low):
        together = all(e.gain.low <= gain[place[e.labeling]] <= e.gain.high for e in found.each)
        yield "coverage: gains together", together, nan
    yield from covered("r", one.r, truth.r[at])
    yield from covered("concordance within", one.concordance, truth.within[at])
    yield from covered("what answers win", found.answers, gain[-1])
    if one.without:
        apart = (first != 0) & (second != 0)
        yield from covered("gain without a run", one.without["r0"], truth.gain[at][apart].mean())
    for (a, b), gap in list(found.gaps.items())[:1]:
        yield from covered("difference of r", gap, truth.r[place[a]] - truth.r[place[b]])
    if found.ahead:
        a, b = (int(run[1:]) for run in found.ahead[:2])
        yield from covered("lead of the best run", found.ahead[2], truth.quality[a] - truth.quality[b])
    says = {each.labeling: each.says for each in found.each}
    for word, sign in ((HELPS, 1), (MISLEADS, -1)):
        hit = [name for name, said in says.items() if said == word]
        yield f"false: {word}", any(sign * gain[place[name]] <= 0 for name in hit), nan
        true = [i for i in range(size) if sign * gain[i] > 1e-4]
        if true:
            best = max(true, key=lambda i: sign * gain[i])
            yield f"found: {word}", f"l{best}" in hit, nan
    yield "false: not worth labels", found.not_worth and gain[-1] >= RULES.margin_points / 100 - 2e-4, nan
    if gain[-1] < RULES.margin_points / 100 - 2e-4:
        yield "found: not worth labels", found.not_worth, nan
    closer, better = ([(place[a], place[b]) for a, b in pairs] for pairs in (found.closer, found.better))
    yield "false: follows more closely", any(truth.r[a] <= truth.r[b] for a, b in closer), nan
    yield (
        "false: better to choose by",
        any(truth.r[a] <= truth.r[b] or gain[a] <= gain[b] - 0.005 for a, b in better),
        nan,
    )
    yield "better to choose by, gain lower", any(gain[a] < gain[b] - 2e-4 for a, b in better), nan
    if len(set(truth.r[:size])) > 1:
        best, worst = int(np.argmax(truth.r[:size])), int(np.argmin(truth.r[:size]))
        yield "found: follows more closely", (best, worst) in closer, nan
        if gain[best] > gain[worst]:
            yield "found: better to choose by", (best, worst) in better, nan
    leans = {place[e.labeling]: {int(run[1:]): up for run, up in e.leans.items()} for e in found.each}
    wrong = {
        i: [run for run, up in each.items() if (1 if up else -1) * truth.bias[i][run] <= 1e-4]
        for i, each in leans.items()
    }
    yield "false: flatters or undervalues", bool(wrong[at]), nan
    yield "false: flatters or undervalues, any labeling", any(wrong.values()), nan
    if np.abs(truth.bias[at]).max() > 1e-3:
        yield "found: flatters or undervalues", bool(leans[at]) and not wrong[at], nan
    pairs = [(int(a[1:]), int(b[1:])) for a, b in one.misordered]
    means, quality = truth.means[at], truth.quality
    yield "false: misordered pair", any(means[i] <= means[j] or quality[i] >= quality[j] for i, j in pairs), nan
    if any((means[i] - means[j]) * (quality[i] - quality[j]) < -1e-4 for i, j in zip(first, second, strict=True)):
        yield "found: misordered pair", bool(pairs), nan
    oftener = [(place[a], place[b]) for a, b in found.oftener]
    yield "false: better concordance", any(truth.within[a] <= truth.within[b] for a, b in oftener), nan
    if len(set(truth.within[:size])) > 1:
        best, worst = int(np.argmax(truth.within[:size])), int(np.argmin(truth.within[:size]))
        yield "found: better concordance", (best, worst) in oftener, nan
    if CONTROL in one.beats:
        above = truth.within[at] > truth.within[-1]
        yield f"{'found' if above else 'false'}: better concordance than a control", one.beats[CONTROL], nan


def failing(found: Findings, panel: Panel, truth: Truth) -> Iterator[Figure]:
    """Yield every figure of finding the questions that fail."""
    if not found.each:
        return
    place, value, nan = {name: i for i, name in enumerate(panel.labelings)}, truth.query.mean(axis=1), np.nan
    one = found["l0"] if "l0" in found.names else found.each[0]
    at = place[one.labeling]
    yield from covered("concordance over questions", one.concordance, value[at])
    hit = [place[each.labeling] for each in found.each if each.guides]
    yield "false: finds questions that fail", any(value[i] <= 0.5 for i in hit), nan
    if value[at] > 0.505:
        yield "found: finds questions that fail", at in hit, nan
    better = [(place[a], place[b]) for a, b in found.better]
    yield "false: finds more", any(value[a] <= value[b] for a, b in better), nan
    size = len(value) - 1
    if len(set(value[:size])) > 1:
        yield "found: finds more", (int(np.argmax(value[:size])), int(np.argmin(value[:size]))) in better, nan
    twin = TWIN + one.labeling
    if twin in one.beats:
        yield (
            f"{'found' if value[at] > truth.twin[at] else 'false'}: knows more than the question",
            one.beats[twin],
            nan,
        )


def outside(tally: dict[str, list[tuple[bool, float]]]) -> bool:
    """Return whether an interval or a claim is not what it should be, perhaps by chance: more replicates will tell."""
    shares = {name: np.mean([hit for hit, _ in hits]) for name, hits in tally.items()}
    most = {name: 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(hits)) for name, hits in tally.items()}
    return any(
        (name.startswith("coverage") and share < 0.93) or (name.startswith("false") and share > most[name])
        for name, share in shares.items()
    )


def cell(world: World, n: int, replicates: int) -> list[dict[str, object]]:
    """Return one row per figure of one world at one number of questions."""
    world, threshold, truths = settle(world, tuple(of for one, of, _ in cells() if one == world))
    truth = truths[n]
    rng = np.random.default_rng([1, n, zlib.crc32(world.name.encode())])
    groups = np.arange(n) // world.cluster if world.cluster > 1 else None
    weights = [resample_matrix(n, RESAMPLES, seed, groups) for seed in range(20)]
    tally: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    values, needed, size = defaultdict(list), [], replicates
    # As many as asked for; then, where an interval or a claim is not what it should be, until it is known better.
    for replicate in count():
        if replicate >= size:
            if replicate >= MOST or not outside(tally):
                break
            size += 200
        resamples = Resamples(weights[replicate % 20], groups)
        drawn = world.draw(n, rng, threshold)
        panel = panel_of(world, drawn)
        found = decide(panel, CHOOSE_RUNS, resamples)
        figures = list(choosing(world, found, panel, truth, resamples))
        if replicate < 400 or replicate >= replicates:
            figures += failing(decide(panel, FIND_QUESTIONS, resamples, drawn.twins[0]), panel, truth)
        for name, hit, width in figures:
            # Where labels without bounds are missing, intervals are about the questions that are left.
            if world.bounds or not name.startswith("coverage"):
                tally[name].append((bool(hit), width))
        for each in found.each:
            values[each.labeling].append(each.gain.value)
        if found.needed is not None:
            needed.append((found.each[0].labeling, found.needed))
    # The number that it takes, from how far estimates of the gain really spread; none suffices for a gain of 0.
    for name, least in needed:
        gain = truth.gain[int(name[1:])].mean()
        takes = n * ((ndtri(0.975) + ndtri(0.8)) * np.std(values[name]) / gain) ** 2 if gain > 1e-4 else np.inf
        tally["at least so many questions, of those printed"].append((least > max(takes, n + 1), np.nan))
    wrong = [(hit, np.nan) for hit, _ in tally["at least so many questions, of those printed"]]
    tally["false: at least so many questions"] = wrong + [(False, np.nan)] * (size - len(wrong))
    gain = 100 * truth.gain.mean(axis=1)
    about = {
        "world": world.name, "questions": n, "labelings": len(world.labels), "runs": len(world.skills),
        "r": round(float(truth.r[0]), 3), "gain_points": round(float(gain[0]), 2),
        "best_gain_points": round(float(gain[:-2].max()), 2), "answers_points": round(float(gain[-1]), 2),
    }  # fmt: skip
    shares = {name: np.mean(hits, axis=0) for name, hits in tally.items() if hits}
    return [
        {**about, "figure": name, "share": share.round(4), "width": width.round(4), "replicates": len(tally[name])}
        for name, (share, width) in shares.items()
    ]


AGAINST = (0.12, 0.08, 0.03, -0.03, -0.08, -0.12)
"""A bias that favours the worse runs."""
MAIN = (
    World("equal"),
    World("sparse", sparse=True),
    World("noise", labels=(NOISE, NOISE, NOISE)),
    World("sharing 60 % of their noise", shared=0.6, own=0.7, skills=(0.4, 0.6, 0.8, 1.0, 1.2, 1.4)),
    World("biased by run", labels=(0.8, 0.8), bias=(-0.08, 0.08, -0.04, 0.04, 0.06, -0.06)),
    World("misleading", labels=(0.8, 2.0), bias=tuple(3 * np.array(AGAINST))),
)
MORE = (
    World("equal, 5 % right", prevalence=0.05),
    World("equal, 10 % right", prevalence=0.10),
    World("sparse, 10 % right", prevalence=0.10, sparse=True),
    World("equal, clusters of 5", cluster=5),
    World("noise, clusters of 5", labels=(NOISE, NOISE), cluster=5),
    World("luck shared by runs", luck=1.5),
    World("luck of each answer", own=1.5),
    World("2 runs", skills=(0.7, 1.0)),
    World("3 runs", skills=(0.7, 0.9, 1.1)),
    World("12 runs", skills=TWELVE),
    World("12 near-equal runs", skills=tuple(np.linspace(0.9, 1.1, 12))),
    World("near-equal runs", skills=ALIKE),
    World("the same run six times", skills=(1.0,) * 6),
    World("noise, 2 runs", labels=(NOISE, NOISE), skills=(0.4, 1.0)),
    World("noise, 10 % right", labels=(NOISE, NOISE), prevalence=0.10),
    World("answers win 2 points", worth=0.02),
    World("graded answers", graded=True, binary=False),
    World("5 % missing", labels=(0.8, 0.8), missing=0.05),
    World("5 % missing, unbounded", labels=(0.8, 0.8), missing=0.05, bounds=False),
    World("5 % missing of the worse", labels=(0.3, 1.5), missing=0.05),
    World("follows, but chooses worse", labels=(0.3, 3.0), bias=AGAINST),
    World("follows, 2 runs, wrong one", labels=(0.2, 2.0), skills=(1.0, 0.9), bias=(-0.1, 0.1)),
    World("biased by style", labels=(0.8, 0.8), style=0.4),
    World("strong noise, run-blind", labels=(3.0, 1.5)),
    World("blind to documents", labels=(0.8, 0.8), blind=True),
    World("one of three follows better", labels=(1.5, 1.5, 0.3), shared=0.3),
    World("one better, sparse", labels=(1.5, 1.5, 0.5), sparse=True),
)
WORLDS = (*MAIN, *MORE)
SMALL = ("equal, 5 % right", "equal, 10 % right", "sparse, 10 % right", "equal, clusters of 5", "noise, clusters of 5",
         "2 runs", "12 runs", "the same run six times", "noise, 2 runs", "graded answers", "5 % missing",
         "follows, 2 runs, wrong one", "blind to documents")  # fmt: skip
LARGE = ("equal", "sparse", "noise", "biased by run", "biased by style", "strong noise, run-blind", "near-equal runs")


def cells() -> Iterator[tuple[World, int, int]]:
    """Yield every cell with its number of replicates, in an order in which all may be seen early."""
    for n, some in ((200, WORLDS), (1000, LARGE), (50, SMALL)):
        for world in WORLDS:
            if some is WORLDS or world.name in some or (world in MAIN and n == 50):
                yield world, n, 1000 if world in MAIN else 400


FAMILIES = ("apart", "alike", "apart, judge favours runs", "alike, judge favours runs", "strong judge favours runs",
            "sparse", "10 % right", "3 runs", "12 runs", "clusters of 5")  # fmt: skip
PRICES, BUDGET, AT_HAND, EACH, TIMES = (0, 12, 40), 2400, 2000, 16, 10
"""Of a label for a question: by words, a judge, a strong judge; answering it end to end takes 60."""


def any_world(family: str, rng: np.random.Generator) -> tuple[World, np.ndarray]:
    """Return a world of a family, and what the labelings add to each run's score, (3, R)."""
    runs = {"3 runs": 3, "12 runs": 12}.get(family, 6)
    skills = rng.normal(1, 0.1 if family.startswith("alike") else 0.35, runs)
    world = World(
        family, (1.5, 0.9, 0.4), tuple(skills), style=0.7, own=0.5, sparse=family == "sparse",
        prevalence=0.1 if "10 %" in family else 0.45, cluster=5 if "clusters" in family else 1,
    )  # fmt: skip
    bias = np.zeros((3, runs))
    if "favours" in family:
        bias[2 if "strong" in family else 1] = rng.normal(0, 0.08, runs)
    return world, bias


def keeps_half(gains: np.ndarray, draws: np.ndarray) -> int:
    """Return the cheapest labeling that keeps half of what any would win, -1 where a coin flip does, else the best."""
    value, draws = np.append(0.0, gains), np.vstack([np.zeros(draws.shape[1]), draws])
    size, most = len(value), np.full(len(value), -np.inf)
    for best in range(size):
        others = np.delete(np.arange(size), best)
        loss = 0.5 * draws[best] - draws[others]
        level = np.quantile((loss.argsort(axis=1).argsort(axis=1) + 1).max(axis=0) / (loss.shape[1] + 1), 0.95)
        upper = np.maximum(np.quantile(loss, level, axis=1), 0.5 * value[best] - value[others])
        most[others] = np.maximum(most[others], upper)
    low = np.quantile(draws, 0.05 / (size - 1), axis=1)
    passes = np.flatnonzero((most <= 0) & ((low > 0) | (np.arange(size) == 0)))
    return int(passes[0]) - 1 if len(passes) else int(np.argmax(gains))


def buyers(found: Findings, gains: list[Gain]) -> Iterator[tuple[str, int]]:
    """Yield which labeling each rule buys; -1 where it chooses by the pilot's answers, 3 where it answers on."""
    order = [int(one.labeling[1:]) for one in found.each]
    of_use = [int(one.labeling[1:]) for one in found.each if one.says != MISLEADS]
    dear = max(of_use, default=-1)
    leader = of_use[0] if of_use else -1
    advised = leader if leader == dear or (f"l{leader}", f"l{dear}") in found.closer else dear
    yield "decision", advised
    silent = found.not_worth or not found.of(HELPS)
    yield "decision, nothing bought where nothing is shown", -1 if silent else advised
    yield "leader by r", order[0]
    yield "leader by concordance", int(max(found.each, key=lambda one: one.concordance.value).labeling[1:])
    yield "cheapest that keeps half", keeps_half(np.array([g.value for g in gains]), np.stack([g.draws for g in gains]))
    yield "always the judge", 1
    yield "always the costliest labeling", 2
    yield "answering end to end", 3
    yield "pilot answers only", -1


def regret(family: str, number: int, pilot: int) -> list[dict[str, object]]:
    """Return the mean regret of each rule in one world, in points."""
    rng = np.random.default_rng([2, number, pilot, zlib.crc32(family.encode())])
    world, bias = any_world(family, np.random.default_rng([3, number, zlib.crc32(family.encode())]))
    threshold = float(np.quantile(replace(world, cluster=1).draw(20_000, rng, 0.0).worth, 1 - world.prevalence))
    one = replace(world, cluster=1)
    truth = np.mean([one.draw(CHUNK, rng, threshold).quality.mean(axis=1) for _ in range(8)], axis=0)
    groups = np.arange(pilot) // world.cluster if world.cluster > 1 else None
    resamples = Resamples(resample_matrix(pilot, RESAMPLES, number, groups), groups)
    lost: dict[str, list[float]] = defaultdict(list)
    for _ in range(TIMES):
        drawn, more = world.draw(pilot, rng, threshold), world.draw(AT_HAND, rng, threshold)
        mine, further = drawn.scores.copy(), more.scores
        mine[:3] += bias[:, :, None]
        panel = panel_of(world, replace(drawn, scores=mine))
        found = decide(panel, CHOOSE_RUNS, resamples)
        if not found.each:
            continue
        gains = [decision_gain(each, drawn.quality, resamples.weights, groups) for each in mine[:3]]
        for rule, label in buyers(found, gains):
            means = drawn.quality.sum(axis=1)
            if label == 3:
                means = means + more.quality[:, : BUDGET // 60].sum(axis=1)
            elif label >= 0:
                size = min(AT_HAND, BUDGET // PRICES[label]) if PRICES[label] else AT_HAND
                means = mine[label].sum(axis=1) + (further[label][:, :size] + bias[label][:, None]).sum(axis=1)
            best = np.flatnonzero(means >= means.max() - 1e-9)
            lost[rule].append(100 * float(truth.max() - truth[best].mean()))
    about = {"world": family, "number": number, "questions": pilot}
    about |= {"coin": round(100 * float(truth.max() - truth.mean()), 4), "replicates": TIMES}
    return [{**about, "rule": rule, "regret": round(float(np.mean(each)), 4)} for rule, each in lost.items()]


def go_on(path: Path, part: str, most: int) -> None:
    """Add to a table what it lacks, as cells finish."""
    which, parts = map(int, part.split("/"))
    have = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["world", "number", "questions", "replicates"])
    started = time.process_time()
    jobs: list[tuple[tuple[object, ...], Callable[[], list[dict[str, object]]]]] = []
    worlds = [world.name for world in WORLDS]
    if path == REGRET:
        done = set(zip(have["world"], have["number"], have["questions"], strict=True))
        keys = [(family, number, pilot) for number in range(EACH) for family in FAMILIES for pilot in (50, 200)]
        jobs = [(key, partial(regret, *key)) for key in keys if key not in done and key[1] % parts == which]
    else:
        known = have.groupby(["world", "questions"])["replicates"].max().to_dict()
        for world, n, size in cells():
            mine = worlds.index(world.name) % parts == which
            if mine and known.get((world.name, n), 0) < min(size, most):
                jobs.append(((world.name, n), partial(cell, world, n, min(size, most))))
    for key, job in jobs:
        pd.DataFrame(job()).to_csv(path, mode="a", index=False, header=not path.exists())
        print(*key, f"{time.process_time() - started:.0f} s of CPU", flush=True)


def claims() -> pd.DataFrame:
    """Return the table of claims and intervals, of every cell the latest rows."""
    table = pd.read_csv(CLAIMS).drop_duplicates(["world", "questions", "figure"], keep="last")
    kind = table["figure"].str.extract("^(coverage|false|found): ")[0]
    return table.assign(kind=kind, figure=table["figure"].str.replace("^(coverage|false|found): ", "", regex=True))


def summary() -> str:
    """Return over all cells how often each interval covers and each claim is false, as a table in Markdown."""
    table, every = claims(), list(cells())
    done = len(table.groupby(["world", "questions"]))
    out = [f"{done} of {len(every)} cells have run{'.' if done == len(every) else '; the others are not known.'}", ""]
    out += ["| | cells | lowest | mean | highest | cells above .99 (mean width) |", "| --- " * 6 + "|"]
    for kind, what in (("coverage", "covers"), ("false", "false")):
        for name, part in table[table["kind"] == kind].groupby("figure", sort=False):
            wide, share = part[part["share"] > 0.99], part["share"]
            above = f"{len(wide)} ({_short(wide['width'].mean())})" if wide["width"].notna().any() else ""
            ends = " | ".join(_short(each) for each in (share.min(), share.mean(), share.max()))
            out.append(f"| {what}: {name} | {len(part)} | {ends} | {above} |")
    return "\n".join(out)


def tables() -> str:
    """Return a row per cell in Markdown: its worst interval, its worst claim, and how often what is true is found."""
    found = ["helps", "misleads", "not worth labels", "follows more closely", "better to choose by"]
    out = [f"| world | questions | replicates | lowest coverage | most often false | {' | '.join(found)} |"]
    out.append("| --- " * (5 + len(found)) + "|")
    table = claims()
    order = {world.name: place for place, world in enumerate(WORLDS)}
    for (_, n), part in table.groupby([table["world"].map(order), "questions"]):
        worst = []
        for kind, sign in (("coverage", 1), ("false", -1)):
            some = part[part["kind"] == kind]
            row = some.iloc[int(np.argmin(sign * some["share"]))] if len(some) else None
            worst.append("" if row is None or not row["share"] else f"{_short(row['share'])} {row['figure']}")
        true = part[part["kind"] == "found"].set_index("figure")["share"]
        shown = [_short(true[name]) if name in true.index else "" for name in found]
        about = part["world"].iloc[0], f"{n:,}", f"{part['replicates'].max():,}"
        out.append(f"| {' | '.join((*about, *worst, *shown))} |")
    return "\n".join(out)


def _short(share: float) -> str:
    return f"{share:.3f}".replace("0.", ".", 1)


def regrets() -> str:
    """Return the mean regret by family of worlds as a table in Markdown."""
    table = pd.read_csv(REGRET).drop_duplicates(["world", "number", "questions", "rule"])
    rules = list(table["rule"].unique())
    out = [
        f"At least {table.groupby('world')['number'].nunique().min()} worlds a family, {TIMES} experiments each.",
        "",
    ]
    out += [f"| worlds | pilot | {' | '.join(rules)} | a coin |", "| --- " * (3 + len(rules)) + "|"]
    mean = table.assign(world="all")
    for (world, pilot), part in pd.concat([table, mean]).groupby(["world", "questions"], sort=False):
        means = part.groupby("rule")["regret"].mean()
        shown = [_short(round(means[rule], 2))[:-1] for rule in rules]
        out.append(f"| {world} | {pilot} | {' | '.join(shown)} | {_short(round(part['coin'].mean(), 2))[:-1]} |")
    return "\n".join(out)


def page(text: str) -> str:
    """Return docs/statistics.md with its simulated tables made anew."""
    for name, made in (("claims", summary), ("cells", tables), ("regret", regrets)):
        start, end = f"<!-- simulated: {name} -->\n", f"<!-- /simulated: {name} -->"
        before, _, rest = text.partition(start)
        text = before + start + made() + "\n" + end + rest.partition(end)[2]
    return text


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", default="claims", choices=["claims", "regret", "page"])
    parser.add_argument("--part", default="0/1", help="of the cells, so that several processes share them")
    parser.add_argument("--most", type=int, default=1000, help="replicates at first, at most")
    args = parser.parse_args()
    if args.what == "page":
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        go_on(CLAIMS if args.what == "claims" else REGRET, args.part, args.most)


if __name__ == "__main__":
    main()
