"""B: how far the labels of LLMs agree with those of people, pair by pair and grade by grade."""

from __future__ import annotations

import pandas as pd

import judgekit as jk
from studies import page
from studies.source import paths, trec

JUDGED = "llm4eval/LLMJudge"
SUBMISSIONS = "llm4eval/LLMJudge-benchmark"
RAG25 = "castorini/anserini-tools"
PEOPLE = "NIST"


def study() -> str:
    """Return the study's part of the page."""
    people = trec(RAG25, "qrels/qrels.rag25.test.txt")
    both = {"UMBRELA": trec(RAG25, "qrels/qrels.rag25.test-umbrela2.txt"), PEOPLE: people}
    rag = jk.agree(both, people=PEOPLE, scales=dict.fromkeys(both, "grades:4")).table
    by_grade = [
        (
            grade,
            *(_of(rag, f"{side}={grade}") for side in ("precision", "recall")),
            int((people["relevance"] == grade).sum()),
        )
        for grade in range(5)
    ]
    judged = trec(JUDGED, "data/llmjudge_test_qrel_idx.txt")
    kappa, generous, odd = {}, {}, 0
    for path in paths(SUBMISSIONS, "submissions/scores/"):
        labels = trec(SUBMISSIONS, path)
        odd += int((labels["relevance"] > 3).sum())
        both = {"LLM": labels[labels["relevance"] <= 3], PEOPLE: judged}
        table = jk.agree(both, people=PEOPLE, scales=dict.fromkeys(both, "grades:3")).table
        name = path.removeprefix("submissions/scores/").removesuffix(".txt")
        kappa[name], generous[name] = _of(table, "kappa"), _of(table, "mean_difference")
    order = sorted(kappa, key=lambda name: -kappa[name][0])
    first, last = order[0], order[-1]
    strict, mild = (pick(order, key=lambda name: generous[name][0]) for pick in (min, max))
    return "\n\n".join(
        [
            "## Assessors: how far single labels agree",
            f"**Data.** {len(order)} submissions to LLMJudge against people's labels of {len(judged):,} pairs of"
            f" {judged['query_id'].nunique()} topics; UMBRELA against NIST on {len(people):,} pairs of"
            f" {people['query_id'].nunique()} topics of TREC RAG 2025. There are neither runs nor answers, so there is"
            f" no decision to print: `judgekit agree` says how far the labels are the same.",
            page.figure(
                "assessors",
                f"{len(order)} submissions against people: agreement, and how generous they are",
                {
                    "Cohen's kappa": {name: kappa[name] for name in order},
                    "mean grade minus people's": {name: generous[name] for name in order},
                },
                digits=2,
            ),
            "TREC RAG 2025, by grade: how many of UMBRELA's labels of a grade are people's too (precision), and of"
            f" people's UMBRELA's (recall). Over all grades kappa is {page.shown(_of(rag, 'kappa'), 2)}.",
            page.table(
                ["grade", "precision", "recall", "people's labels"],
                [
                    (grade, page.shown(precision, 2), page.shown(recall, 2), f"{n:,}")
                    for grade, precision, recall, n in by_grade
                ],
            ),
            f"**What it means.** {first} agrees most with people (kappa {page.shown(kappa[first], 2)}), {last} least"
            f" ({page.shown(kappa[last], 2)}). {mild} gives the highest grades ({page.shown(generous[mild], 2)} above"
            f" people's mean), {strict} the lowest ({page.shown(generous[strict], 2)}). "
            + page.holds(
                by_grade[4][1][2] < by_grade[3][1][1] < by_grade[2][1][1],
                f"From 2 on, the higher UMBRELA's grade the less it can be trusted: of its labels 4,"
                f" {page.shown(by_grade[4][1], 2)} are people's.",
            ),
            "**What it does not mean.** People disagree with people, too: do not expect a kappa of 1. Agreement says"
            f" nothing of which labels lead to better answers. {odd} labels of submissions are off the scale (5, 10)"
            f" and left out. The best of 33 was picked after looking.",
            "**What would overturn it.** A second assessor for the same pairs, or the quality of answers beside the"
            " labels.",
        ]
    )


def _of(table: pd.DataFrame, coefficient: str) -> page.Ranged:
    """Return a coefficient of the labels themselves, with its interval."""
    row = table[(table["coefficient"] == coefficient) & (table["on"] == "labels")].iloc[0]
    return float(row["value"]), float(row["ci_low"]), float(row["ci_high"])
