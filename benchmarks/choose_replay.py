"""What would `judgekit choose` have done on public answers? Each set is played in 200 random orders.

    STUDIES=/where/the/copies/lie python benchmarks/choose_replay.py     # writes choose_replay.csv beside this file

The sets are those of the studies' page with answers of three or more configurations to the same 1,200 questions of
2WikiMultihopQA. Means over all questions are the truth. A copy of the data lies below ``$STUDIES``, or is cloned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from judgekit.analysis.race import Answered, RaceRules, replay
from studies import contexts, depth, noise, page

MARGINS = (2.0, 3.0, 5.0)
ORDERS = 200


def sets() -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the name of a set, who answered, and the file of each configuration."""
    for reader, (plain, pattern) in noise.READERS.items():
        yield (
            "gold and random passages",
            reader,
            {n: pattern.format(i) if i else plain for i, n in enumerate(noise.RUNS)},
        )
    for (reader, retriever), pattern in depth.FILES.items():
        yield f"{retriever}, top 1, 3, 5", reader, {f"top {k}": pattern.format(k) for k in depth.DEPTHS}
    for reader in ("Llama-3-8B", "Flan-T5-XL"):
        files = {
            f"{retriever}, top {k}": pattern.format(k)
            for (who, retriever), pattern in depth.FILES.items()
            for k in depth.DEPTHS
            if who == reader
        }
        yield "every retriever and depth", reader, files
        if reader == "Llama-3-8B":
            yield "retrievers at top 5", reader, {name: file for name, file in files.items() if name.endswith("top 5")}


def main() -> None:
    """Play, print and write the table."""
    rows = []
    for name, reader, files in sets():
        runs = {run: contexts.run(file) for run, file in files.items()}
        quality = contexts.quality({(reader, run): file for run, file in files.items()}, runs)
        for metric in contexts.METRICS:
            wide = page.per_question(quality, metric=metric)[list(files)]
            for margin in MARGINS:
                rules = RaceRules(margin / 100, resamples=400)
                played = replay(Answered(wide.to_numpy(np.float64).T), rules, ORDERS)
                rows.append(
                    {
                        "set": name,
                        "reader": reader,
                        "metric": metric,
                        "runs": len(files),
                        "questions": played.questions,
                        "margin": margin,
                        "within": played.within / ORDERS,
                        "stopped": played.stopped / ORDERS,
                        "broken": played.broken / ORDERS,
                        "answers": float(np.median(played.answers)),
                        "bound": 100 * float(np.median(played.bounds)),
                        "best": wide.columns[played.best],
                        "chosen": wide.columns[played.choice.chosen],
                    }
                )
        print(name, reader, flush=True)
    table = pd.DataFrame(rows)
    table.round(4).to_csv(Path(__file__).with_name("choose_replay.csv"), index=False)
    pd.set_option("display.width", 250)
    print(table.round(3).to_string(index=False))
    numbers = ["within", "stopped", "broken", "answers", "bound"]
    print(table.groupby(["set", "margin"])[numbers].mean().round(3).to_string())
    print(table.groupby("margin")[numbers].agg(["mean", "min", "max"]).round(3).to_string())


if __name__ == "__main__":
    main()
