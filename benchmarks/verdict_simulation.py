"""How often the verdict's intervals cover the truth, and how often each of its claims is false: a simulation.

    python benchmarks/verdict_simulation.py            # all cells, writes verdict.csv beside this file
    python benchmarks/verdict_simulation.py --replicates 300 --only noise half

A world has questions of different difficulty, each with a pool of documents. Runs rank the pool by what they know of
a document's use, with noise that they share in part; the same list gives the same answer. Labels say how useful a
document is, with each labeling's own noise, and know the question's difficulty as far as the documents do. All of a
world is fixed but the questions: claims are about these runs. Estimates, intervals and claims are made by the functions
that `judgekit.compare` calls; the truth is what they tend to over very many questions.
"""

from __future__ import annotations

import argparse
import os
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from judgekit.analysis.gain import Enough, percentiles
from judgekit.analysis.inputs import Panel
from judgekit.analysis.intervals import margins, mean_concordance_interval
from judgekit.analysis.levels import Resamples, estimates
from judgekit.analysis.rankings import within_queries
from judgekit.analysis.resampling import resample_matrix
from judgekit.analysis.uses import Found, Series, find, series_of

POOL, DEPTH = 12, 5
DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
TRUTH_QUERIES, CHUNK = 200_000, 10_000
ALIKE = (0.9, 0.95, 1.0, 1.05, 1.1, 1.15)
APART = (0.0, 0.4, 0.7, 1.0, 1.3, 1.6)
NOISE = 1e3
"""A labeling's noise that leaves nothing of the document in the label."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class World:
    """What is fixed while questions are drawn.

    Attributes:
        name: of the world.
        labels: noise of each labeling's labels, the cheapest first (a document's use has the standard deviation 1).
        skills: of each run, how much it knows of a document's use.
        prevalence: share of right answers, in the mean over runs.
        difficulty: share of the variance of a document's use that all documents of a question have in common.
        luck: standard deviation of what else decides an answer, by question and by document.
        binary: whether labels are binary, else a number from 0 to 1.
        graded: whether answers are right in part.
        cluster: questions that go together (paraphrases): they have the same documents in use and labels, in part.
        missing: share of the questions on which the last labeling lacks the label of the document that most runs
            retrieve: those on which it is furthest ahead of the first.
        bounds: whether the bounds of the scores are known; else such questions are only left out.
        target: what the noise of the first labeling is tuned to: ("gain", its share of the last's decision gain),
            ("margin", how much less its gain is) or ("query", its concordance over queries).
        keep, margin: as in `judgekit.compare`.
    """

    name: str
    labels: tuple[float, ...] = (0.8, 0.8, 0.8, 0.8)
    skills: tuple[float, ...] = APART
    prevalence: float = 0.45
    difficulty: float = 0.4
    luck: float = 0.5
    binary: bool = True
    graded: bool = False
    cluster: int = 1
    missing: float = 0.0
    bounds: bool = True
    target: tuple[str, float] | None = None
    keep: float = 0.5
    margin: float | None = None

    def latent(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw n questions: scores (L, R, n), the latent quality (R, n), and the last labeling's bounds (2, R, n)."""

        def normal(*shape: int) -> np.ndarray:
            own = rng.standard_normal((*shape[:-1], n))
            if self.cluster == 1:
                return own
            groups = rng.standard_normal((*shape[:-1], -(-n // self.cluster)))
            return np.sqrt(0.8) * np.repeat(groups, self.cluster, axis=-1)[..., :n] + np.sqrt(0.2) * own

        use = np.sqrt(1 - self.difficulty) * normal(POOL, n) + np.sqrt(self.difficulty) * normal(1, n)
        shared, fate, luck = normal(POOL, n), normal(POOL, n), normal(n)
        lists = np.stack(
            [
                np.argsort(-(skill * use + 0.7 * shared + 0.7 * normal(POOL, n)), axis=0, kind="stable")[:DEPTH]
                for skill in self.skills
            ]
        )
        value = use + self.luck * fate
        quality = _mean_over_list(value, lists) + self.luck / 2 * luck
        scores = []
        for noise in self.labels:
            seen = normal(POOL, n) if noise >= NOISE else (use + noise * normal(POOL, n)) / np.hypot(1, noise)
            label = (seen > 0.5).astype(float) if self.binary else 1 / (1 + np.exp(-2 * seen))
            scores.append(_mean_over_list(label, lists))
        often = (lists[:, :, None, :] == np.arange(POOL)[:, None]).sum(axis=(0, 1)).argmax(axis=0)
        ends = []
        for end in (0.0, 1.0):
            label = label.copy()
            label[often, np.arange(n)] = end
            ends.append(_mean_over_list(label, lists))
        return np.stack(scores), quality, np.stack(ends)

    def questions(self, n: int, threshold: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw n questions: scores (L, R, n) and quality (R, n), each in the form that it has in a table."""
        return self.tables(n, threshold, rng)[:2]

    def tables(self, n: int, threshold: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw n questions like `questions`, with the bounds of the last labeling's scores, (2, R, n)."""
        scores, latent, ends = self.latent(n, rng)
        over = latent - threshold
        quality = np.clip(np.round(2 * over + 1), 0, 3) / 3 if self.graded else (over > 0).astype(float)
        return np.round(scores, 12), quality, np.round(ends, 12)


def _mean_over_list(values: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """Return the discounted mean over each run's documents: values (POOL, n), lists (R, DEPTH, n), result (R, n)."""
    picked = values[lists, np.arange(values.shape[1])]
    return np.einsum("rkn,k->rn", picked, DISCOUNT / DISCOUNT.sum())


@dataclass(frozen=True)
class Truth:
    """What the estimates tend to: concordance over queries (L, R), within queries (L,), decision gain (L,)."""

    query: np.ndarray
    within: np.ndarray
    gain: np.ndarray


def concordance_over_queries(score: np.ndarray, quality: np.ndarray) -> float:
    """Return the concordance of very many questions of one run."""
    if len(np.unique(quality)) > 2:
        parts = np.array_split(np.arange(len(score)), max(len(score) // 500, 1))
        return float(np.mean([margins(score[part], quality[part]).concordance for part in parts]))
    right = quality > 0
    wins = rankdata(score)[right].sum() - right.sum() * (right.sum() + 1) / 2
    return float(wins / (right.sum() * (~right).sum()))


def gains(world: World, threshold: float, n: int, queries: int = TRUTH_QUERIES) -> np.ndarray:
    """Return each labeling's decision gain: a pick from n/2 questions, and what it wins on further ones."""
    rng = np.random.default_rng(99)
    first, second = np.triu_indices(len(world.skills), 1)
    half, chosen, deltas = n // 2, [], []
    for _ in range(queries // CHUNK):
        scores, quality = world.questions(CHUNK, threshold, rng)
        deltas.append((quality[first] - quality[second]).mean(axis=1))
        gap = (scores[:, first] - scores[:, second])[:, :, : CHUNK // half * half]
        means = gap.reshape(*gap.shape[:2], -1, half).mean(axis=-1)
        chosen.append(np.sign(np.where(np.abs(means) < 1e-11, 0, means)).mean(axis=-1))
    return np.asarray((np.mean(chosen, axis=0) * np.mean(deltas, axis=0)).mean(axis=1) / 2)


def concordances(world: World, threshold: float, queries: int = TRUTH_QUERIES) -> tuple[np.ndarray, np.ndarray]:
    """Return each labeling's concordance over queries, (L, R), and within queries, (L,)."""
    scores, quality = replace(world, cluster=1).questions(queries // 4, threshold, np.random.default_rng(97))
    query = [[concordance_over_queries(s, q) for s, q in zip(row, quality, strict=True)] for row in scores]
    return np.array(query), np.array([np.nanmean(within_queries(row, quality)[0]) for row in scores])


def settle(world: World, n: int) -> tuple[World, float, Truth]:
    """Return the world with its first labeling's noise tuned to the target, the answers' threshold, and the truth."""
    latent = replace(world, cluster=1).latent(50_000, np.random.default_rng(98))[1]
    threshold = float(np.quantile(latent, 1 - world.prevalence))
    kind, wanted = world.target or ("", 0.0)
    low, high = 0.0, 20.0
    for _ in range(12 if kind else 0):
        noise = (low + high) / 2
        if kind == "query":
            tried = replace(world, labels=(noise,))
            enough = concordances(tried, threshold, 40_000)[0].mean() > wanted
        else:
            found = gains(replace(world, labels=(noise, world.labels[-1])), threshold, n, 100_000)
            enough = found[0] > (wanted * found[1] if kind == "gain" else found[1] - wanted)
        low, high = (noise, high) if enough else (low, noise)
    if kind:
        world = replace(world, labels=(low,) * len(world.labels) if kind == "query" else (low, *world.labels[1:]))
    # Labelings of the same noise are equal: one of each stands for all.
    kinds = list(dict.fromkeys(world.labels))
    alone = replace(world, labels=tuple(kinds))
    where = [kinds.index(noise) for noise in world.labels]
    query, within = concordances(alone, threshold)
    gain = gains(alone, threshold, n)
    return world, threshold, Truth(query[where], within[where], gain[where])


def lose(
    world: World, scores: np.ndarray, quality: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the scores without those that missing labels leave open, and the lowest and the highest they may be."""
    ahead = np.nan_to_num(within_queries(scores[-1], quality)[0] - within_queries(scores[0], quality)[0])
    gone = np.argsort(-ahead, kind="stable")[: round(world.missing * scores.shape[2])]
    low, high, known = scores.copy(), scores.copy(), scores.copy()
    low[-1][:, gone], high[-1][:, gone] = ends[0][:, gone], ends[1][:, gone]
    known[-1][:, gone] = np.where(ends[0] < ends[1], np.nan, known[-1])[:, gone]
    return known, low, high


def experiment(
    world: World,
    scores: np.ndarray,
    quality: np.ndarray,
    resamples: Resamples,
    uses: tuple[str, ...],
    ends: np.ndarray | None = None,
) -> Iterator[tuple[Found, list[Series]]]:
    """Yield what `judgekit.compare` finds for each use in one experiment."""
    labelings, runs, n = scores.shape
    low = high = None
    if world.missing and ends is not None:
        scores, low, high = lose(world, scores, quality, ends)
    if not world.bounds:
        low = high = None
    panel = Panel(
        "m", DEPTH, "metric", "model", tuple(f"l{i}" for i in range(labelings)), tuple(f"r{i}" for i in range(runs)),
        tuple(f"q{i:05d}" for i in range(n)), scores, quality, np.ones((runs, n), np.bool_), True, low, high,
    )  # fmt: skip
    order = {name: place for place, name in enumerate(panel.labelings, 1)}
    for use in uses:
        level = "within-query" if use == "choose-runs" else "query"
        found = [e for e in estimates(panel, level, resamples, ("concordance",)) if e.run == "all" and not e.reason]
        series = list(series_of(found, panel, level, CONFIDENCE, resamples, panel.extremes(level)))
        if len(series) == labelings:
            enough = Enough(world.keep, world.margin)
            yield find(use, panel, series, [], resamples, order, CONFIDENCE, enough), series


class Cell:
    """One world at one number of questions, with what was counted in it so far."""

    def __init__(self, world: World, n: int, resamples: int) -> None:
        self.main = world in MAIN
        self.world, self.threshold, self.right = settle(world, n)
        self.n, self.rng = n, np.random.default_rng([1, n, zlib.crc32(world.name.encode())])
        groups = np.arange(n) // world.cluster if world.cluster > 1 else None
        self.matrices = [Resamples(resample_matrix(n, resamples, i, groups), i, groups) for i in range(20)]
        self.tally: dict[str, list[bool]] = defaultdict(list)

    def go_on(self, replicates: int, uses: tuple[str, ...]) -> None:
        """Count in so many further experiments."""
        for replicate in range(replicates):
            scores, quality, ends = self.world.tables(self.n, self.threshold, self.rng)
            for found, series in experiment(self.world, scores, quality, self.matrices[replicate % 20], uses, ends):
                for name, hit in figures(self.world, found, series, self.right, self.matrices[0].groups):
                    self.tally[name].append(hit)

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one row per figure: how often it was seen, of how many experiments."""
        world, right = self.world, self.right
        about = {
            "world": world.name, "questions": self.n, "labelings": len(world.labels), "runs": len(world.skills),
            "prevalence": world.prevalence, "concordance_query": round(float(right.query[0].mean()), 3),
            "concordance_within": round(float(right.within[0]), 3), "gain_points": round(100 * float(right.gain[0]), 2),
            "best_gain_points": round(100 * float(right.gain.max()), 2),
        }  # fmt: skip
        for name, hits in self.tally.items():
            yield {**about, "figure": name, "share": round(float(np.mean(hits)), 4), "replicates": len(hits)}


def figures(
    world: World, found: Found, series: list[Series], right: Truth, groups: np.ndarray | None
) -> Iterator[tuple[str, bool]]:
    """Yield every figure of one experiment: covered or not, claimed falsely or rightly or not at all."""
    use = "within" if found.use == "choose-runs" else "query"
    number = {one.name: i for i, one in enumerate(series)}
    value = exact = right.within if use == "within" else right.query.mean(axis=1)
    one = series[0]
    yield f"coverage {use}", one.low <= exact[0] <= one.high
    claims = [(number[a], number[b]) for a, b in found.better]
    yield f"{use}: a false 'better than'", any(value[a] <= value[b] for a, b in claims)
    if len(set(value)) > 1:
        best = int(np.argmax(value))
        yield f"{use}: winner found", found.winner == series[best].name
    if found.winner is not None or len(series) > 1:
        named = None if found.winner is None else number[found.winner]
        yield f"{use}: a false winner", named is not None and value[named] <= np.delete(value, named).max()
    if exact[0] <= 0.505:
        yield f"{use}: a false 'better than chance'", one.low > 0.5
    else:
        yield f"{use}: 'better than chance' found", one.low > 0.5
    if use == "query":
        # Which run left the mean, because all of its answers have the same quality, does not show.
        if len(one.estimate.margins) == len(right.query[0]):
            low, high = mean_concordance_interval(one.estimate.margins[:1], CONFIDENCE, groups)
            yield "coverage query, one run", low <= right.query[0, 0] <= high
        return
    won = {x.labeling: x.gain for x in found.standings}
    mine = won[series[0].name]
    low, high = mine.interval(CONFIDENCE)
    yield "coverage gain", low <= right.gain[0] <= high
    if abs(right.gain[0]) < 1e-3:
        yield "a false 'wins more than a coin flip'", low > 0
    else:
        yield "'wins more than a coin flip' found", low > 0
    if len(series) > 1:
        other = won[series[1].name]
        gap = mine.value - other.value
        low, high = percentiles(gap, mine.draws - other.draws, int(mine.differing[0]), CONFIDENCE)
        yield "coverage gain difference", low <= right.gain[0] - right.gain[1] <= high
    assert found.gains is not None
    best_gain, tolerance = right.gain.max(), 3e-4
    needed = world.keep * best_gain if world.margin is None else best_gain - world.margin
    named = found.gains.cheapest
    if named is not None:
        got = 0.0 if named == "" else right.gain[number[named]]
        yield "a false 'cheapest that will do'", got <= needed + tolerance
        yield "a false 'may lose at most'", found.gains.loss < best_gain - got
    else:
        yield "a false 'cheapest that will do'", False
        yield "a false 'may lose at most'", False
    enough = [i for i in range(len(series)) if right.gain[i] > needed + tolerance]
    yield (
        "the cheapest that will do found",
        named is not None and named != "" and number[named] == min(enough, default=-1),
    )


MAIN = (
    # Equal labelings: no claim that one is better is true.
    World("equal"),
    World("equal and rare answers", prevalence=0.10),
    World("equal and strong", labels=(0.2,) * 4, luck=0.1, binary=False, target=("query", 0.98), prevalence=0.15),
    World("equal in clusters of 5", cluster=5),
    # Labels that know nothing of the documents.
    World("noise", labels=(NOISE, NOISE)),
    World("noise and rare answers", labels=(NOISE, NOISE), prevalence=0.10),
    # The first labeling is at the boundary of what will do.
    World("half as good", labels=(1.0, 0.3), target=("gain", 0.5)),
    World("half as good as three", labels=(1.0, 0.3, 0.3, 0.3), target=("gain", 0.5)),
)
WORLDS = (
    *MAIN,
    World("two equal", labels=(0.8, 0.8)),
    World("eight equal", labels=(0.8,) * 8),
    World("equal on runs alike", skills=ALIKE),
    World("equal and very rare answers", prevalence=0.05),
    World("equal on graded answers", graded=True, binary=False),
    World("noise in clusters of 5", labels=(NOISE, NOISE), cluster=5),
    World("half as good on runs alike", labels=(1.0, 0.3), skills=ALIKE, target=("gain", 0.5)),
    World("one point less", labels=(1.0, 0.3), target=("margin", 0.01), margin=0.01),
    World("one point less than three", labels=(1.0, 0.3, 0.3, 0.3), target=("margin", 0.01), margin=0.01),
    # Labels are missing where it matters most.
    World("3 % missing", labels=(0.8, 0.8), missing=0.03),
    World("3 % missing and left out", labels=(0.8, 0.8), missing=0.03, bounds=False),
    World("3 % missing of a worse one", labels=(0.3, 1.5), missing=0.03),
    # Power.
    World("better than three", labels=(1.5, 1.5, 1.5, 0.3)),
    World("better than three and rare answers", labels=(1.5, 1.5, 1.5, 0.3), prevalence=0.10),
    World("equal within one point", margin=0.01),
)
"""The first are simulated four times as often, and at both numbers of questions."""


COVERAGE = {
    "query": "coverage query",
    "one run": "coverage query, one run",
    "within": "coverage within",
    "gain": "coverage gain",
    "gain difference": "coverage gain difference",
}
FALSE = {
    "better, within": "within: a false 'better than'",
    "better, query": "query: a false 'better than'",
    "chance, within": "within: a false 'better than chance'",
    "chance, query": "query: a false 'better than chance'",
    "coin flip": "a false 'wins more than a coin flip'",
    "cheapest": "a false 'cheapest that will do'",
    "loses at most": "a false 'may lose at most'",
}
FOUND = {
    "winner, within": "within: winner found",
    "winner, query": "query: winner found",
    "chance, within": "within: 'better than chance' found",
    "coin flip": "'wins more than a coin flip' found",
    "cheapest": "the cheapest that will do found",
}


def page(table: pd.DataFrame) -> str:
    """Return the figures as tables in Markdown, one row per world and number of questions."""
    out = []
    for title, figures in (
        ("Share of the 95 % intervals that cover the truth", COVERAGE),
        ("Share of the experiments with a false claim (promised: at most .05)", FALSE),
        ("Share of the experiments with a true claim (power)", FOUND),
    ):
        out += [f"### {title}", "", f"| world | questions | replicates | {' | '.join(figures)} |"]
        out.append("| --- " * (3 + len(figures)) + "|")
        for (world, n), cell in table.groupby(["world", "questions"], sort=False):
            shares = cell.set_index("figure")["share"]
            found = [f"{shares[name]:.3f}" if name in shares else "" for name in figures.values()]
            if any(found):
                out.append(f"| {world} | {n} | {cell['replicates'].max():,} | {' | '.join(found)} |")
        out.append("")
    return "\n".join(out)


def summary(table: pd.DataFrame) -> str:
    """Return the summary of the page on statistics: the range of the shares over all cells, weighted by nothing."""
    bounded = table[~table["world"].str.contains("left out")]
    lines = ["| | cells | lowest | mean | highest |", "| --- | --- | --- | --- | --- |"]
    names = {f"coverage, {name}": figure for name, figure in COVERAGE.items()}
    names |= {f"false claim: {name}": figure for name, figure in FALSE.items()}
    for name, figure in names.items():
        share = bounded.loc[bounded["figure"] == figure, "share"]
        lines.append(f"| {name} | {len(share)} | {share.min():.3f} | {share.mean():.3f} | {share.max():.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--passes", type=int, default=20, help="all cells are gone through so many times")
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--queries", type=int, nargs="+", default=[200, 50])
    parser.add_argument("--only", nargs="+", help="worlds whose names start so")
    parser.add_argument("--uses", nargs="+", default=["choose-runs", "find-questions"])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("verdict.csv"))
    args = parser.parse_args()
    wanted = [world for world in WORLDS if not args.only or any(world.name.startswith(start) for start in args.only)]
    cells = [Cell(world, n, args.resamples) for world in wanted for n in args.queries[: 2 if world in MAIN else 1]]
    print(f"{len(cells)} cells are ready after {time.process_time():.0f} s of CPU", flush=True)
    for each in range(args.passes):
        for cell in cells:
            if cell.main or each % 4 == 1:
                cell.go_on(args.replicates // args.passes, tuple(args.uses))
        pd.DataFrame(row for cell in cells for row in cell.rows()).to_csv(args.out, index=False)
        print(f"pass {each + 1} of {args.passes}: {time.process_time():.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
