"""B: do LLM labels of TREC DL 2021 order retrievers as people's labels do?"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

import judgekit as jk
from studies import page
from studies.source import paths, trec

REPO = "Narabzad/llm-relevance-judgement-comparison"
# Those that label all of NIST's pool. Left out: nuggets (83 % and 9 % of it), Llama-3.2's exam (a topic is missing)
# and Llama-3.2's UMBRELA (four labels of a pair, which differ).
JUDGES = {
    "UMBRELA": ("gpt-4o/umbrela/umbrela_zeroshot_dl21.clean.json", "grades:3"),
    "exam max": ("gpt-4o/exam graded max/qrels.max.exam_selfrate_dl21.txt", "grades:5"),
    "exam mean": ("gpt-4o/exam graded mean/qrels.mean.exam_selfrate_dl21.txt", "means:5"),
    "exam binary": ("gpt-4o/exam binary/qrels.mean.exam_selfrate_binary_dl21.txt", "unit"),
    "binary": ("gpt-4o/binary/binary_dl21.txt", "binary"),
    "Llama binary": ("llama3.2/binary/binary_llama3.2_dl21.txt", "binary"),
}
PEOPLE = "NIST"
MEASURE = "nDCG@10"


def _significant(scores: pd.DataFrame) -> np.ndarray:
    """Return the sign of each pair of runs that a paired t test tells apart (p < .05), else 0."""
    values = scores.to_numpy()
    gap = np.array([values[:, one] - values[:, other] for one, other in combinations(range(values.shape[1]), 2)])
    return np.sign(gap.mean(axis=1)) * (stats.ttest_1samp(gap, 0, axis=1).pvalue < 0.05)


def _order(judge: pd.DataFrame, people: pd.DataFrame) -> np.ndarray:
    """Return tau-b, the share found of the pairs that people tell apart, and of the judge's the share not confirmed."""
    mine, theirs = _significant(judge), _significant(people)
    both, told = mine * theirs, mine != 0
    tau = stats.kendalltau(judge.mean(), people.mean()).statistic
    return np.array([tau, (both > 0).sum() / (theirs != 0).sum(), (told & (both <= 0)).sum() / told.sum()])


def _jackknife(judge: pd.DataFrame, people: pd.DataFrame) -> list[page.Ranged]:
    """Return these with 95 % intervals: each topic left out once."""
    whole, n = _order(judge, people), len(people)
    left = np.array([_order(judge.drop(topic), people.drop(topic)) for topic in people.index])
    half = stats.t.ppf(0.975, n - 1) * np.sqrt((n - 1) / n * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    return [(value, max(0, value - away), min(1, value + away)) for value, away in zip(whole, half, strict=True)]


def study() -> str:
    """Return the study's part of the page."""
    people = trec(REPO, "data/qrels.dl21-passage.txt")
    topics = set(people["query_id"])
    runs = {}
    for path in paths(REPO, "runs/dl21/"):
        run = trec(REPO, path, "query_id _ doc_id rank score tag")
        name = path.removeprefix("runs/dl21/input.").removesuffix(".txt")
        runs[name] = run.loc[run["query_id"].isin(topics), ["query_id", "doc_id", "score"]]
    labelings = {name: trec(REPO, f"raw qrels/{path}") for name, (path, _) in JUDGES.items()} | {PEOPLE: people}
    scales = {name: scale for name, (_, scale) in JUDGES.items()} | {PEOPLE: "grades:3"}
    scores = jk.score(runs, labelings, MEASURE, scales=scales).scores()
    theirs = scores["labeling"] == PEOPLE
    seen = jk.compare(
        scores[~theirs], scores.loc[theirs, ["run", "query_id", "value"]], rules=jk.Rules(primary=MEASURE)
    )
    by_run = {name: page.per_question(scores, labeling=name) for name in labelings}
    order = {name: _jackknife(by_run[name], by_run[PEOPLE]) for name in JUDGES}
    # What is worked out here for the intervals is what judgekit finds.
    system = seen.table.query("level == 'system' and coefficient == 'tau_b'").set_index("labeling")["value"]
    assert np.allclose([system[name] for name in order], [tau[0] for tau, _, _ in order.values()])
    signs = {name: _significant(wide) for name, wide in by_run.items()}
    told = int((signs[PEOPLE] != 0).sum())
    opposite = {name: int((signs[name] * signs[PEOPLE] < 0).sum()) for name in JUDGES}
    columns = ("tau-b", f"found, of {told:,} pairs", "not confirmed")
    best, worst = order["UMBRELA"][0], order["Llama binary"][0]
    return "\n\n".join(
        [
            "## Judges: do LLM labels order retrievers as people's do?",
            f"**Data.** {len(runs)} runs of TREC DL 2021, and {len(people):,} pairs of {len(topics)} topics labelled"
            f" by NIST and by {len(JUDGES)} LLM judges (GPT-4o, and Llama-3.2 where the name says so). There are no"
            f" answers: people's {MEASURE} stands in the place of their quality, and the decision must be read so.",
            "**Decision.**",
            page.decision(seen),
            page.figure(
                "judges",
                f"The order of {len(runs)} runs against NIST's, and the pairs of runs that are told apart",
                {column: {name: order[name][place] for name in JUDGES} for place, column in enumerate(columns)},
                digits=2,
                same=False,
            ),
            page.table(
                ["judge", *columns, "opposite"],
                [(name, *(page.shown(one, 2) for one in order[name]), opposite[name]) for name in JUDGES],
            ),
            "*Found*: the share of the pairs of runs that people's labels tell apart (paired t test, p < .05) which the"
            " judge's tell apart too. *Not confirmed*: the share of the judge's pairs that people's labels do not tell"
            " apart. Intervals leave out each topic once.",
            "**What it means.** "
            + page.holds(
                not any(opposite.values()),
                f"No judge turns round a pair that people tell apart (0 of {told:,} for each; pairs share runs and"
                f" topics, so this is a count and no rate). ",
            )
            + page.holds(
                seen.decision.winner == "UMBRELA"
                and best[0] == max(one[0][0] for one in order.values())
                and worst[0] == min(one[0][0] for one in order.values()),
                f"In these data UMBRELA's order is the closest to people's (tau-b {page.shown(best, 2)}), that of"
                f" Llama-3.2's binary labels the farthest from it ({page.shown(worst, 2)}).",
            ),
            "**What it does not mean.** Only the pairs that NIST pooled are labelled; what a run finds outside counts"
            " as not relevant for every judge, which flatters agreement. Agreement with people says nothing of"
            " answers. GPT-4o may have seen this collection.",
            "**What would overturn it.** Runs that NIST did not pool, labels outside of the pool, a later collection.",
        ]
    )
