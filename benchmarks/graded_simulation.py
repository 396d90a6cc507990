"""Coverage of differences of runs that people's grades correct; writes ``graded.csv`` beside this file.

    nice python -m benchmarks.graded_simulation [--rounds 300]

Six runs answer 1,000 questions; people grade all answers to some of them. A metric errs on a share of the answers
(``error``), passes a share of the wrong answers of one run (``favour``), or fails only rarely but then by all there is
(``rare``: runs answer alike but for 3 % of the questions). ``each`` questions belong together. ``coverage`` is how
often the interval of a difference of two runs holds the difference of people's means over all questions, over all
pairs; ``metric`` how often the metric's own interval does. ``width`` is that of the intervals as a share of those that
people's grades alone give; ``shown`` how often the favour is shown, ``accused`` how often another run's is.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from judgekit.analysis.graded import corrected_quality

HERE = Path(__file__).parent
RUNS = 6
QUESTIONS = 1000
Floats = npt.NDArray[np.float64]


def world(rng: np.random.Generator, error: float, favour: float, each: int, rare: bool) -> tuple[Floats, Floats]:
    """Return what people would say of every answer and what the metric says, shape (R, N)."""
    groups = np.arange(QUESTIONS) // each
    ease = rng.normal(size=groups.max() + 1)[groups]
    if rare:
        right = np.broadcast_to(rng.random(QUESTIONS) < 0.5 + 0.2 * np.tanh(ease), (RUNS, QUESTIONS)).copy()
        turned = rng.random((RUNS, QUESTIONS)) < 0.03 * np.linspace(0.2, 1, RUNS)[:, None]
        right ^= turned
    else:
        skill = np.linspace(-0.3, 0.3, RUNS)[:, None]
        right = ease + skill + rng.normal(size=(RUNS, QUESTIONS)) > 0
    slips = rng.random((RUNS, groups.max() + 1))[:, groups] < error if each > 1 else rng.random(right.shape) < error
    rated = right ^ slips
    rated[0] |= ~right[0] & (rng.random(QUESTIONS) < favour)
    return right.astype(np.float64), rated.astype(np.float64)


def covered(graded: int, error: float, favour: float, each: int, rare: bool, rounds: int) -> dict[str, float]:
    """Return the coverage in one cell."""
    rng = np.random.default_rng([graded, int(1000 * error), int(100 * favour), each, int(rare)])
    groups = np.arange(QUESTIONS) // each
    first, second = np.triu_indices(RUNS, 1)
    held, plain, shown, accused, widths = [], [], 0, 0, []
    for _ in range(rounds):
        truth, rated = world(rng, error, favour, each, rare)
        people = np.full_like(truth, np.nan)
        if each == 1:
            drawn = rng.choice(QUESTIONS, graded, replace=False)
        else:
            drawn = np.flatnonzero(np.isin(groups, rng.choice(QUESTIONS // each, graded // each, replace=False)))
        people[:, drawn] = truth[:, drawn]
        names, together = tuple(f"r{run}" for run in range(RUNS)), None if each == 1 else groups
        found = corrected_quality(names, people, rated, groups=together)
        alone = corrected_quality(names, people, np.zeros_like(rated), groups=together)
        gaps = truth.mean(axis=1)[first] - truth.mean(axis=1)[second]
        leads = [found.lead(one, other) for one, other in zip(first, second, strict=True)]
        held.append([low <= gap <= high for (_, low, high), gap in zip(leads, gaps, strict=True)])
        own = rated[first] - rated[second]
        plain.append(np.abs(own.mean(axis=1) - gaps) <= 1.96 * own.std(axis=1, ddof=1) / np.sqrt(QUESTIONS))
        widths.append(float(np.mean(found.errors[first, second] / alone.errors[first, second])))
        shown += "r0" in found.shown
        accused += any(run != "r0" for run, ends in zip(found.runs, found.flattered, strict=True)
                       if run in found.shown and ends.value > 0)  # fmt: skip
    return {
        "coverage": round(float(np.mean(held)), 3),
        "metric": round(float(np.mean(plain)), 3),
        "width": round(float(np.mean(widths)), 2),
        "shown": round(shown / rounds, 2),
        "accused": round(accused / rounds, 3),
    }


def main() -> None:
    """Simulate, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    cells = [
        {"graded": graded, "error": error, "favour": favour, "each": 1, "rare": False}
        for graded in (50, 100, 200)
        for error in (0.05, 0.1, 0.2)
        for favour in (0.0, 0.1, 0.3)
    ]
    cells += [
        {"graded": graded, "error": 0.1, "favour": favour, "each": 5, "rare": False}
        for graded in (100, 200)
        for favour in (0.0, 0.3)
    ]
    cells += [
        {"graded": graded, "error": error, "favour": 0.0, "each": 1, "rare": True}
        for graded in (50, 100, 200)
        for error in (0.0, 0.02)
    ]
    table = pd.DataFrame([cell | covered(**cell, rounds=rounds) for cell in cells])
    table.to_csv(HERE / "graded.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
