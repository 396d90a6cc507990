# /// script
# dependencies = ["autojudge-evaluate==1.1.0"]
# ///
"""Auto-Judge: a leaderboard by topic in each of the formats that it writes.

The package reads a list of words of nltk's when it is imported, which these formats do not use: an empty one will do.
"""

import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
WORDS = Path("nltk/corpora/stopwords")
WORDS.mkdir(parents=True)
(WORDS / "english").write_text("the\n")
os.environ["NLTK_DATA"] = str(Path("nltk").resolve())

from autojudge_evaluate.eval_results import io, load  # noqa: E402
from halls import QUESTIONS, RUNS  # noqa: E402

MEASURES = {"coverage": 0.25, "grade": 0.5}
lines = [
    f"{run}\t{measure}\t{question.id}\t{float(question.answer(run) == question.reference) * worth + number / 100:.4f}\n"
    for run in RUNS
    for measure, worth in MEASURES.items()
    for number, question in enumerate(QUESTIONS)
]
Path("board.tot").write_text("".join(lines))
board = load(Path("board.tot"), format="tot", recompute_aggregates=True, verify=False, on_missing="error")
for form in ("tot", "ir_measures", "ranking", "jsonl"):
    io.write(board, OUT / f"board.{form}", format=form)
for run in RUNS:
    Path(run).write_text("".join(line for line in lines if line.startswith(run)))
    one = load(Path(run), format="tot", recompute_aggregates=True, verify=False, on_missing="error")
    io.write(one, OUT / f"{run}.eval", format="trec_eval")
