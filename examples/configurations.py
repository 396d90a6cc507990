"""Make up what a team has after trying 70 configurations of a pipeline: metric families of other tools, and ratings.

python examples/configurations.py writes wide.csv (a row per configuration and question, a column per metric family, as
evaluation tools export it) and rated.csv (which answers people called right). All of it is invented from a seed, so
that one knows what is true. A configuration has a skill, a question is easy or hard, and

* ``retrieval`` (nDCG by a judge's labels) sees much of the skill, where the judge understands the question;
* ``similarity`` (answer against reference) sees some of both;
* ``faithfulness`` sees how easy a question is, and of the skill nothing;
* ``context`` (precision of the context) likes short contexts, whoever answers better.
"""

from __future__ import annotations

import csv
import random
from itertools import product
from math import exp

CUTS = {"page": 0.0, "1000": 0.3, "500": 0.6, "250": 0.5, "120": 0.1}
"""How much a way of cutting pages adds to the skill; the shorter, the further down."""
RETRIEVERS = {"bm25": 0.0, "tfidf": -0.3, "dense-s": 0.2, "dense-l": 0.5, "sparse": 0.3, "rrf": 0.6, "both": 0.7}
RERANKED = {"": 0.0, "-reranked": 0.4}
QUESTIONS = 60


def main() -> None:
    """Write both files into the current folder."""
    draw = random.Random(1)

    def near(value: float, spread: float) -> float:
        return round(1 / (1 + exp(-value - draw.gauss(0, spread))), 3)

    easy = [draw.gauss(0, 1.2) for _ in range(QUESTIONS)]
    understood = [draw.gauss(0.8, 0.6) for _ in range(QUESTIONS)]  # how well the judge understands a question
    wide, rated = [], []
    places = product(enumerate(CUTS.items()), RETRIEVERS.items(), RERANKED.items())
    for (place, (cut, a)), (retriever, b), (suffix, c) in places:
        name, skill = f"{retriever}-{cut}{suffix}", a + b + c - 0.9
        for question, ease in enumerate(easy):
            found = skill + draw.gauss(0, 1.0)  # what this configuration happens to find for this question
            key = {"config": name, "question": f"q{question:02}"}
            row = {
                "retrieval": near(understood[question] * found, 0.6),
                "similarity": near(0.4 * found + 0.4 * ease, 1.4),
                "faithfulness": near(ease, 0.4),
                "context": near(0.5 * place - 1 + 0.2 * found, 0.6),
            }
            wide.append(key | row)
            rated.append(key | {"right": int(draw.random() < near(found + ease, 0))})
    for path, rows in (("wide.csv", wide), ("rated.csv", rated)):
        with open(path, "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
