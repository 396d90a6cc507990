"""What would `judgekit choose` have done on public answers? Each set is played in 200 random orders.

    STUDIES=/where/the/copies/lie python -m benchmarks.choose_replay     # writes choose_replay.csv beside this file

The sets are those of the studies' page with answers of three or more configurations. Means over all of their questions
are the truth. A copy of the data lies below ``$STUDIES``, or is cloned.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from judgekit.analysis.race import LEAST, Answered, RaceRules, replay
from studies.pairs import Setting
from studies.sections import Found

MARGINS = (2.0, 5.0)
ORDERS = 200


def played(setting: Setting, margin: float) -> dict[str, object]:
    """Return what a choice would have done on a set."""
    answered = Answered(setting.answers.to_numpy(np.float64).T, setting.members())
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
    main()
