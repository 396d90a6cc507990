"""Simulated experiments for the tests of the decision: answers, and scores that follow them as told."""

import numpy as np
import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.decision import Decision

RUNS = ("bm25", "dense", "rrf", "tfidf")


def claims(decision: Decision, kind: str) -> dict[str, Claim]:
    """The claims of a kind by their subject."""
    return {claim.subject: claim for claim in decision.claims if claim.kind == kind}


def finder(decision: Decision) -> str:
    """The labeling that is shown to find the questions that fail, and more of them than every other one."""
    finds = claims(decision, "finds")
    first = next(iter(finds), "")
    more = [claim for claim in decision.claims if claim.kind == "finds more" and claim.subject == first]
    return first if first and finds[first].shown and len(more) == len(finds) - 1 else ""


def world(
    labelings: dict[str, tuple[float, float]], n: int = 400, runs: tuple[str, ...] = RUNS, seed: int = 0, skill=0.4
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers that depend on how easy a question is and on the run; per labeling how much of each its scores hold."""
    rng = np.random.default_rng(seed)
    ease, run = rng.normal(size=n), np.linspace(-skill, skill, len(runs))[:, None]
    luck = rng.normal(size=(len(runs), n)) * 0.7
    right = (ease + run + luck > 0.3).astype(float)
    values = {
        labeling: easy * ease + own * (run + luck) + (0.5 * rng.normal(size=(len(runs), n)) if own else 0)
        for labeling, (easy, own) in labelings.items()
    }
    return tables(values, right, runs)


def noisy(
    n: int = 120,
    runs: tuple[str, ...] = ("bm25",),
    labelings: dict[str, float] | None = None,
    measures: tuple[str, ...] = ("nDCG@5",),
    depth: int = 5,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Answers, and for each labeling and measure scores that follow them through so much noise."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(len(runs), n))
    noise = {"good": 0.5, "poor": 3.0} if labelings is None else labelings
    scores = {
        f"{labeling} {measure}": np.round(latent + size * rng.normal(size=latent.shape), 1)
        for labeling, size in noise.items()
        for measure in measures
    }
    return tables(scores, (latent > 0).astype(float), runs, depth)


def tables(
    scores: dict[str, np.ndarray], quality: np.ndarray, runs: tuple[str, ...] = RUNS, depth: int = 5
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of scores, by labeling or by labeling and measure, and quality of shape (runs, queries)."""
    ids = [f"q{i:04d}" for i in range(quality.shape[1])]
    rows = [{"run": run, "query_id": query} for run in runs for query in ids]
    named = [(*name.split(), "nDCG@5")[:2] for name in scores]
    found = [
        pd.DataFrame(rows).assign(labeling=labeling, measure=measure, value=values.ravel())
        for (labeling, measure), values in zip(named, scores.values(), strict=True)
    ]
    answers = pd.DataFrame(rows).assign(depth=depth, model="m", metric="em", value=quality.ravel())
    return pd.concat(found, ignore_index=True), answers


def arrays(
    seed: int, runs: int = 4, n: int = 60, noise: float = 1.0, bias: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and quality of shape (runs, queries) that share how easy a question is and how good a run's answer."""
    rng = np.random.default_rng(seed)
    skill, luck, ease = np.linspace(-0.3, 0.3, runs)[:, None], rng.normal(size=(runs, n)), rng.normal(size=n)
    quality = (ease + skill + luck + 0.5 * rng.normal(size=(runs, n)) > 0).astype(float)
    scores = ease + skill + luck + noise * rng.normal(size=(runs, n))
    return scores + (0 if bias is None else bias[:, None]), quality
