"""The ladder on real questions: the smallest losses that labels notice, and whether its power holds on other questions.

    python benchmarks/guard_dev.py ../shared/data/dev    # writes guard_dev.csv and guard_heldback.csv beside it
    python benchmarks/guard_dev.py ../shared/data/dev --ladder-only

Takes a folder with queries, documents, runs, provenance and what a small real model said of each pair of the runs' top
five. Labels of all six runs' top five, 600 questions, nDCG@5. *Held back*: the ladder on half of the questions predicts
the power on as many others; there, random questions are changed and the gate is asked. Twenty splits.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import stdtrit

import judgekit as jk
from judgekit.answers.metrics import ExactMatch
from judgekit.data.ordering import Ties
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.trec import read_qrels
from judgekit.gate.decision import SHARES, shown
from judgekit.gate.ladder import Lists, degraded, losses, make_ladder, notice, parse_steps
from judgekit.metrics import Measure, evaluate

QUESTIONS, DEPTH, SPLITS, DRAWS = 600, 5, 20, 1000
STEPS = ("demote(n=2)", "drop", "truncate(k=2)", "identity", "balanced(n=2)")
MEASURE = Measure("nDCG@5")


def labelings_of(folder: Path, queries: dict, runs: list[jk.Run]) -> list[jk.Labeling]:
    """Labels of the pool of the runs: free ones, a file's, and what the model said."""
    docs = read_docs(folder / "docs.jsonl")
    containment = jk.label("containment", queries=queries, docs=docs, runs=runs, depth=DEPTH, name="containment")
    pool = containment.table[["query_id", "doc_id"]]
    gold = read_qrels(folder / "provenance_plus.qrels", "provenance")
    known = dict(zip(zip(gold.query_ids, gold.doc_ids, strict=True), gold.relevance, strict=True))
    said = {}
    for line in (folder / "reader_pairs.jsonl").read_text().splitlines():
        row = json.loads(line)
        said[row["query_id"], row["doc_id"]] = row
    pairs = list(zip(pool["query_id"], pool["doc_id"], strict=True))
    made = {
        "provenance": ("binary", [known.get(pair, 0.0) for pair in pairs]),
        "judge": ("binary", [float(said[pair]["p_relevant"] >= 0.5) for pair in pairs]),
        "P(yes)": ("unit", [said[pair]["p_relevant"] for pair in pairs]),
        "eRAG": ("binary", [ExactMatch().compare(said[pair]["answer"], queries[pair[0]].answers) for pair in pairs]),
    }
    return [containment] + [
        jk.Labeling(name, jk.Scale(scale), pool.assign(relevance=values)) for name, (scale, values) in made.items()
    ]


def realised(loss: np.ndarray, share: float, rng: np.random.Generator) -> float:
    """How often the gate shows the loss, where random questions of these are changed."""
    n = len(loss)
    m = min(max(round(share / 100 * n), 1), n)
    drawn = np.stack([rng.permutation(n)[:m] for _ in range(DRAWS)])
    return float(shown(loss[drawn].sum(1), (loss[drawn] ** 2).sum(1), n, 0.05).mean())


def plain(loss: np.ndarray) -> float:
    """The smallest percent of the questions that a plain t test notices nine times in ten."""
    n = len(loss)
    drawn = np.random.default_rng(1).choice(loss, (DRAWS, n))
    total, squares = drawn.cumsum(1), (drawn**2).cumsum(1)
    error = np.sqrt((squares - total**2 / n) / (n - 1) / n)
    enough = np.flatnonzero((total / n > stdtrit(n - 1, 0.95) * error).mean(0) >= 0.9)
    return 100 * (enough[0] + 1) / n if len(enough) else float("inf")


def main() -> None:
    folder, here = Path(sys.argv[1]), Path(__file__).parent
    every = read_queries(folder / "queries.jsonl")
    queries = {q: every[q] for q in list(every)[:QUESTIONS]}
    # What the model said is of the top five by the order of the files.
    files = sorted((folder / "runs").glob("*.trec"))
    runs = [jk.read_run(path, path.stem, Ties.RUN_ORDER).only(queries).cut(DEPTH) for path in files]
    labelings = labelings_of(folder, queries, runs)
    gold = labelings[1].table
    good: dict[str, frozenset[str]] = {}
    for query_id, doc_id in gold[gold["relevance"] > 0][["query_id", "doc_id"]].itertuples(index=False):
        good[query_id] = good.get(query_id, frozenset()) | {doc_id}
    steps = parse_steps(STEPS, DEPTH)
    tables, rows = [], []
    for run in runs:
        lists = Lists(run, DEPTH, tuple(queries), good)
        copies = [degraded(step, lists) for step in steps]
        tables.append(make_ladder(lists, labelings, [MEASURE], steps, copies).table.assign(run=run.name))
        print(tables[-1][["labeling", "step", "changed", "loss", "power_2", "smallest"]].to_string(), flush=True)
        scored = evaluate([run, *copies], labelings, [MEASURE], query_ids=list(queries))
        for j, labeling in enumerate(labelings):
            for k, step in enumerate(steps[:3], 1):
                loss = losses(scored, 0, j, 0, k, labeling.scale.kind)[0]
                loss = loss[np.isfinite(loss)]
                one = tables[-1]
                one.loc[(one["labeling"] == labeling.name) & (one["step"] == str(step)), "plain"] = plain(loss)
                for split in range(0 if "--ladder-only" in sys.argv else SPLITS):
                    rng = np.random.default_rng(split)
                    order = rng.permutation(len(loss))
                    half = len(loss) // 2
                    predicted = notice(loss[order[:half]], resamples=0, seed=split).power
                    for share in SHARES:
                        power = realised(loss[order[half:]], share, rng)
                        rows.append((run.name, labeling.name, str(step), split, share, predicted[share], power))
    pd.concat(tables).round(4).to_csv(here / "guard_dev.csv", index=False)
    if not rows:
        return
    columns = ["run", "labeling", "step", "split", "share", "predicted", "realised"]
    held = pd.DataFrame(rows, columns=columns)
    held["apart"] = (held["predicted"] - held["realised"]).abs()
    cells = held.groupby(["run", "labeling", "step", "share"]).agg(
        predicted=("predicted", "mean"),
        realised=("realised", "mean"),
        mean_apart=("apart", "mean"),
        within=("apart", lambda apart: float((apart <= 0.05).mean())),
    )
    cells.round(4).to_csv(here / "guard_heldback.csv")
    print(cells.groupby("share").mean(), held["apart"].describe(), (held["apart"] <= 0.05).mean())


if __name__ == "__main__":
    main()
