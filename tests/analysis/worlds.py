"""Simulated experiments for the tests of the decision: answers, and scores that follow them as told."""

from __future__ import annotations

import numpy as np
import pandas as pd

RUNS = ("bm25", "dense", "rrf", "tfidf")


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


def tables(
    scores: dict[str, np.ndarray], quality: np.ndarray, runs: tuple[str, ...] = RUNS
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables of scores and quality of shape (runs, queries)."""
    ids = [f"q{i:04d}" for i in range(quality.shape[1])]
    answers = [
        pd.DataFrame({"run": name, "depth": 5, "model": "m", "query_id": ids, "metric": "em", "value": quality[row]})
        for row, name in enumerate(runs)
    ]
    found = [
        pd.DataFrame({"labeling": labeling, "run": name, "measure": "nDCG@5", "query_id": ids, "value": values[row]})
        for labeling, values in scores.items()
        for row, name in enumerate(runs)
    ]
    return pd.concat(found, ignore_index=True), pd.concat(answers, ignore_index=True)
