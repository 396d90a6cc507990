"""What would `judgekit choose` have done on public answers? Each set is played in 200 random orders.

    STUDIES=/where/the/copies/lie python -m benchmarks.choose_replay            # writes choose_replay.csv beside it
    STUDIES=/where/the/copies/lie python -m benchmarks.choose_replay screen     # prints what free labels would save

The sets are those of the studies' page with answers of three or more configurations. Means over all of their questions
are the truth. A copy of the data lies below ``$STUDIES``, or is cloned.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from judgekit.analysis.race import BLOCK, LEAST, RaceRules, RunAnswers, race, random_order, replay
from studies.pairs import Setting
from studies.sections import Found

MARGINS = (2.0, 5.0)
ORDERS = 200


def played(setting: Setting, margin: float) -> dict[str, object]:
    """Return what a choice would have done on a set."""
    answered = RunAnswers(setting.answers.to_numpy(np.float64).T, setting.members())
    made = replay(answered, RaceRules(margin / 100, resamples=300), ORDERS)
    names = list(setting.answers.columns)
    return {
        "repository": setting.repository,
        "set": setting.name,
        "runs": len(names),
        "questions": made.questions,
        "margin": margin,
        "within": made.within / ORDERS,
        "stopped": made.stopped / ORDERS,
        "broken": made.broken / ORDERS,
        "answers": float(np.median(made.answers)),
        "bound": 100 * float(np.median(made.bounds)),
        "best": names[made.best],
        "chosen": names[made.choice.chosen],
    }


def screened(setting: Setting, seed: int, rules: RaceRules) -> tuple[int, int, bool]:
    """Return the answers asked without and with labels that leave runs out first, and whether the bound then holds.

    A guard of questions is answered for all runs. If labels follow it, the best by labels stay, and every run whose
    guard answers lie over a standard error above the best of these.
    """
    # The studies list the runs of answers and of labels in different orders.
    recall = setting.labels["recall"].reindex_like(setting.answers)
    quality, scores = setting.answers.to_numpy(np.float64).T, recall.to_numpy(np.float64).T
    runs, questions = quality.shape
    order = random_order(questions, seed)
    answers, labels = quality[:, order.places], np.nan_to_num(scores[:, order.places])
    guard = min(round(0.15 * questions / BLOCK) * BLOCK, 140)
    asked, labelled = (values[:, :guard] - values[:, :guard].mean(axis=0) for values in (answers, labels))
    left = list(range(runs))
    if (asked * labelled).sum() > 0:
        left = np.argsort(-labels[:, :150].mean(axis=1))[: 2 if runs == 3 else 3].tolist()
        best = max(left, key=lambda run: asked[run].mean())
        for run in sorted({*range(runs)}.difference(left)):
            ahead = asked[run] - asked[best]
            if ahead.mean() > ahead.std(ddof=1) / np.sqrt(guard):
                left.append(run)
    whole = race(RunAnswers(answers), order.ends, rules)
    finals = race(RunAnswers(answers[left]), [end for end in order.ends if end >= guard], rules)
    means = quality.mean(axis=1)
    kept = means.max() - means[left[finals.chosen]] <= finals.bound
    return whole.last.answers, finals.last.answers + (runs - len(left)) * guard, bool(kept)


def screen() -> None:
    """Print what labels that cost nothing would save where all runs return equally many passages (margin 3 points)."""
    for setting in Found.read().settings:
        if (
            len(setting.answers.columns) >= 3
            and len(set(setting.returned.values())) == 1
            and "recall" in setting.labels
        ):
            found = [screened(setting, seed, RaceRules(0.03, resamples=200)) for seed in range(100)]
            plain, with_labels, kept = np.mean(found, axis=0)
            print(f"{setting.repository} {setting.name}: {plain:,.0f} to {with_labels:,.0f} answers, kept {kept:.2f}")


def main() -> None:
    """Play, print and write the table."""
    rows = []
    for setting in Found.read().settings:
        if len(setting.answers.columns) < 3 or len(setting.answers) < LEAST:
            continue
        rows += [played(setting, margin) for margin in MARGINS]
        print(setting.repository, setting.name, flush=True)
    table = pd.DataFrame(rows)
    table.round(4).to_csv(Path(__file__).with_name("choose_replay.csv"), index=False)
    pd.set_option("display.width", 250)
    print(table.round(3).to_string(index=False))
    numbers = ["within", "stopped", "broken", "answers", "bound"]
    print(table.groupby(["repository", "margin"])[numbers].mean().round(3).to_string())


if __name__ == "__main__":
    screen() if sys.argv[1:] == ["screen"] else main()
