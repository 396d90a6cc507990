"""A2: two retrievers that labels order wrongly over all questions, and rightly within each kind of question."""

from __future__ import annotations

import judgekit as jk
from studies import contexts, page

READER = "Llama-3-8B"
RUNS = {"ADORE": "llama3/adore_top5_esit.json", "BM25": "llama3/bm25_top5_esit.json"}


def study() -> str:
    """Return the study's part of the page."""
    runs = {run: contexts.run(name) for run, name in RUNS.items()}
    quality = contexts.quality({(READER, run): name for run, name in RUNS.items()}, runs)
    kinds = contexts.kinds()
    evaluation = jk.score(runs, {"gold": contexts.gold()}, "SetR")
    seen = {
        metric: jk.compare(
            evaluation,
            quality,
            rules=jk.Rules(primary="SetR"),
            outcome=metric,
            background=jk.Background(kinds=kinds),
            only={"metrics": [metric]},
        )
        for metric in contexts.METRICS
    }
    values = {"gold recall": page.per_question(evaluation.scores(), measure="SetR")}
    values |= {metric: page.per_question(quality, metric=metric) for metric in contexts.METRICS}
    groups = {"all questions": list(kinds)}
    groups |= {kind: [q for q, of in kinds.items() if of == kind] for kind in ("open", "options", "yes/no")}
    differences = {
        name: {
            f"{group} ({len(members):,})": page.means(wide.loc[members, "ADORE"] - wide.loc[members, "BM25"])
            for group, members in groups.items()
        }
        for name, wide in values.items()
    }
    recall, contains, exact, f1 = (list(rows.values()) for rows in differences.values())
    rows = [(group, *(page.shown(differences[name][group]) for name in values)) for group in differences["gold recall"]]
    return "\n\n".join(
        [
            "## Kinds of question: wrong over all, right within each",
            f"**Data.** The same {len(kinds):,} questions, answered by {READER} from the top 5 of two retrievers, ADORE"
            f" and BM25. The gold answer stands in the question of {len(groups['options'])} (options: A or B?),"
            f" {len(groups['yes/no'])} ask for yes or no, {len(groups['open'])} are open.",
            "**Decisions.** By exact match, with gold labels and recall:",
            page.decision(seen["em"]),
            "By *contains* and by F1:",
            page.decision(seen["contains"]),
            page.decision(seen["f1"]),
            "ADORE minus BM25, in points (paired by question):",
            page.table(["questions", *values], rows),
            page.figure("kinds", "ADORE minus BM25, top 5, in points", differences),
            "**What it means.** "
            + page.holds(
                recall[0][1] > 0 > exact[0][2],
                "Over all questions gold recall prefers ADORE and exact match prefers BM25: a choice by these labels is"
                " wrong. ",
            )
            + page.holds(
                recall[1][1] > 0 and exact[1][1] > 0 and f1[1][1] > 0,
                "On open questions ADORE finds more of the gold passages and is answered better; ",
            )
            + page.holds(
                recall[2][2] < 0 and exact[2][2] < 0 and f1[2][2] < 0,
                "where the question offers options BM25 finds more and is answered better. Within both kinds the same"
                " labels choose rightly, by exact match and by F1. ",
            )
            + page.holds(
                all(contains[kind][1] < 0 < contains[kind][2] for kind in (0, 2, 3)),
                "By *contains* the two retrievers are told apart neither over all questions nor where options are"
                " offered: much of that difference is in how the answer is worded, and the metric matters as much as"
                " the kind.",
            ),
            "**What it does not mean.** The kinds were found after looking at the answers. Two retrievers, one reader"
            " and one depth are one example, picked because it shows the effect.",
            "**What would overturn it.** Kinds declared beforehand, on another data set; greedy decoding (the answers"
            " were sampled at temperature .1).",
        ]
    )
