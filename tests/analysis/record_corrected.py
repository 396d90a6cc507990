"""Records what two other tools make of ten tables that people rated in part, for `test_partly_rated.py`.

In an environment of its own, from the root of the repository:

    pip install cje-eval==0.9.3 truescore==0.7.4
    python tests/analysis/record_corrected.py

It writes the tables, too: a digit for each answer, "." where nobody rated it.
"""

import json
import logging
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

TABLES = Path(__file__).with_name("corrected_by_others.json")
QUESTIONS, RATED = 1200, 300


def world(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return people's ratings, of 300 questions drawn at random, and a judge's verdicts on all: shape (2, 1200)."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=QUESTIONS)
    right = (ease + np.array([[0.15], [-0.15]]) + rng.normal(size=(2, QUESTIONS)) > 0).astype(float)
    wrong_verdict = rng.random(right.shape) < (0.05, 0.1, 0.2)[seed % 3]
    judge = np.where(wrong_verdict, 1 - right, right)
    if seed % 2:
        # It passes one of five answers of the worse run, whatever they say.
        judge[1] = np.where(rng.random(QUESTIONS) < 0.2, 1, judge[1])
    people = np.full(right.shape, np.nan)
    drawn = rng.choice(QUESTIONS, RATED, replace=False)
    people[:, drawn] = right[:, drawn]
    return people, judge


def digits(values: np.ndarray) -> list[str]:
    return ["".join("." if np.isnan(value) else f"{value:.0f}" for value in row) for row in values]


def by_truescore(people: np.ndarray, judge: np.ndarray) -> float:
    from truescore.compare import ppi_compare

    rated = np.flatnonzero(np.isfinite(people).all(axis=0))
    return float(ppi_compare(*judge, *people[:, rated], rated).difference)


def by_cje(people: np.ndarray, judge: np.ndarray) -> float:
    from cje import analyze_dataset

    draws = {}
    for run, ratings, verdicts in zip("ab", people.tolist(), judge.tolist(), strict=True):
        draws[run] = [
            {"prompt_id": f"q{place:04}", "judge_score": verdict, "oracle_label": None if np.isnan(rating) else rating}
            for place, (rating, verdict) in enumerate(zip(ratings, verdicts, strict=True))
        ]
    estimates = analyze_dataset(fresh_draws_data=draws).estimates
    return float(estimates[0] - estimates[1])


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    worlds = []
    for seed in range(10):
        people, judge = world(seed)
        leads = {"cje": round(by_cje(people, judge), 6), "truescore": round(by_truescore(people, judge), 6)}
        worlds.append({"people": digits(people), "judge": digits(judge), **leads})
    made_by = {name: version(name) for name in ("cje-eval", "truescore", "numpy")}
    TABLES.write_text(json.dumps({"made_by": made_by, "worlds": worlds}, indent=0) + "\n")


if __name__ == "__main__":
    main()
