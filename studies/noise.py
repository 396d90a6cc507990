"""A1: what random passages cost three readers, and which measures of which labels can see it."""

from __future__ import annotations

from itertools import combinations

import judgekit as jk
from studies import contexts, page

READERS = {
    "Llama-3-8B": ("llama3/oracle_esit.json", "llama3/oracle_rand_{}_esit.json"),
    "Flan-T5-XL": ("flan-t5/oracle-response.json", "flan-t5/oracle-rand{}-response.json"),
    "Mistral-7B": ("mistral/oracle-answers.json", "mistral/oracle_random_{}_answers.json"),
}
RUNS = ["gold", *(f"gold + {n}" for n in (1, 2, 3))]
MEASURES = {"SetR": "recall", "Success@10": "hit", "RR": "first rank", "nDCG": "nDCG", "SetP": "precision"}
BLIND = ("recall", "hit")


def study() -> str:
    """Return the study's part of the page."""
    files = {
        (reader, run): pattern.format(n) if n else plain
        for reader, (plain, pattern) in READERS.items()
        for n, run in enumerate(RUNS)
    }
    for run in RUNS:
        assert contexts.same_contexts(*(files[reader, run] for reader in READERS))
    runs = {run: contexts.run(files["Llama-3-8B", run]) for run in RUNS}
    quality = contexts.quality(files, runs)
    docs = contexts.docs(files["Llama-3-8B", run] for run in RUNS)
    found = jk.label("containment", queries=contexts.queries(), docs=docs, runs=runs, name="containment")
    scores = jk.score(runs, {"gold": contexts.gold(), "containment": found}, list(MEASURES)).scores()
    # The decision is about one measure: each labeling with each measure stands as a way of scoring.
    scores["labeling"] += " " + scores["measure"].map(MEASURES)
    scores["measure"] = "score"
    seen = {
        (reader, metric): jk.compare(
            scores,
            quality,
            rules=jk.Rules(primary="score"),
            outcome=metric,
            model=reader,
            only={"models": [reader], "metrics": [metric]},
        )
        for reader in READERS
        for metric in contexts.METRICS
    }
    gains = {key: contexts.gains(one) for key, one in seen.items()}
    order = [f"{labels} {measure}" for labels in ("gold", "containment") for measure in MEASURES.values()]
    sighted = [name for name in order if not name.endswith(BLIND)]

    cost = {}
    for reader, metric in seen:
        wide = page.per_question(quality, model=reader, metric=metric)
        cost[reader, metric] = [page.means(wide["gold"]), *(page.means(wide[run] - wide["gold"]) for run in RUNS[1:])]
        cost[reader, metric].append(page.means(wide[RUNS[3]] - wide[RUNS[1]]))
    harmed = [reader for reader in READERS if all(cost[reader, metric][3][2] < 0 for metric in contexts.METRICS)]
    clean = [reader for reader in READERS if all(cost[reader, metric][4][2] < 0 for metric in contexts.METRICS)]
    between = []
    for run in (RUNS[0], RUNS[-1]):
        for one, other in combinations(READERS, 2):
            difference = [
                page.means(
                    page.per_question(quality, model=one, metric=metric)[run]
                    - page.per_question(quality, model=other, metric=metric)[run]
                )
                for metric in contexts.METRICS
            ]
            between.append((run, f"{one} − {other}", *map(page.shown, difference)))

    again = {f"gold + {n}": f"llama3/oracle_adore_{n}_esit.json" for n in (1, 2, 3)}
    for run, name in again.items():
        assert contexts.same_contexts(name, files["Llama-3-8B", run])
    retest = contexts.quality({("Llama-3-8B", run): name for run, name in again.items()}, runs)
    twice = []
    for metric in contexts.METRICS:
        wide, first = (page.per_question(each, model="Llama-3-8B", metric=metric) for each in (retest, quality))
        second = (wide - first[wide.columns]).stack()
        changed = (second != 0).groupby("query_id").mean()
        twice.append(
            (metric, page.shown(page.means(second.groupby("query_id").mean())), page.shown(page.means(changed)))
        )

    blind = all(
        gains[key][name] == (0, 0, 0) for key in gains for name in ("gold recall", "gold hit", "containment hit")
    )
    chance = [gains[reader, "contains"]["containment recall"] for reader in harmed]
    return "\n\n".join(
        [
            "## Noise: which measures see passages that do not belong there",
            f"**Data.** {len(contexts.ids()):,} questions of 2WikiMultihopQA, answered by three readers from the gold"
            " passages (2 or 4) alone and with 1, 2 or 3 random ones shuffled in. The contexts of the three readers are"
            " the same, which was checked passage by passage.",
            "Quality in points, and what the random passages change (paired by question):",
            page.table(
                ["reader", "metric", *RUNS[:1], *(f"{run} random" for run in RUNS[1:]), "3 against 1"],
                [(*key, *map(page.shown, numbers)) for key, numbers in cost.items()],
            ),
            "**Decisions.** Each labeling with each measure is one way to choose among the four contexts. By"
            " *contains*:",
            *(page.decision(seen[reader, "contains"], reader) for reader in READERS),
            page.figure(
                "noise",
                "Points won over a coin flip when choosing a context (contains)",
                {reader: {name: gains[reader, "contains"][name] for name in order} for reader in READERS},
            ),
            "**What it means.** "
            + page.holds(
                blind,
                "Gold recall, gold hit and containment hit give all four contexts the same score: they win nothing,",
            )
            + " and no amount of labels changes this. "
            + page.holds(
                all(
                    gains[reader, metric][name][1] > 0
                    for reader in harmed
                    for metric in contexts.METRICS
                    for name in sighted
                ),
                f"Measures that look at rank or precision win for {' and '.join(harmed)}, with either labeling and by"
                f" every metric of the answers. ",
            )
            + page.holds(
                all(high < 0 for _, _, high in chance),
                "Containment with recall even misleads there: a random passage that happens to hold the answer counts"
                f" as a hit (gain {' and '.join(map(page.shown, chance))} points). ",
            )
            + page.holds(
                harmed == ["Llama-3-8B", "Mistral-7B"]
                and all(gains["Flan-T5-XL", "contains"][name][1] <= 0 for name in sighted),
                "For Flan-T5-XL the noise costs little, and no measure is shown to help. So the measure decides, and by"
                " how much depends on the reader.",
            ),
            "The readers on the same questions, in points (paired; an interval stands for one comparison):",
            page.table(["context", "difference", *contexts.METRICS], between),
            "**What it does not mean.** The contexts are built from the gold passages, so gold labels look right by"
            " construction. The files of Flan-T5-XL and Mistral-7B hold the gold context in another form of prompt"
            " than the noisy ones: for these two the change from 1 to 3 random passages is the clean one (last"
            f" column), and it is shown for {' and '.join(clean)}. Real retrievers do not add random passages below a"
            f" perfect list. Five measures were looked at, and all are shown.",
            "**How stable the answers are.** The repository holds a second set of Llama-3-8B's answers to the same"
            " contexts (sampled at temperature .1, under another name). Second minus first, and the share of answers"
            " whose value changed, in points:",
            page.table(["metric", "difference", "changed"], twice),
            "**What would overturn it.** Another data set, greedy decoding, or contexts with noise that is not random.",
        ]
    )
