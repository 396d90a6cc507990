"""A3: more passages can only find more; answers need not get better."""

from __future__ import annotations

import judgekit as jk
from studies import contexts, page

FILES = {
    ("Llama-3-8B", "BM25"): "llama3/bm25_top{}_esit.json",
    ("Llama-3-8B", "Contriever"): "llama3/contriever_top{}_esit.json",
    ("Llama-3-8B", "ADORE"): "llama3/adore_top{}_esit.json",
    ("Flan-T5-XL", "BM25"): "flan-t5/bm25-top{}-response.json",
    ("Flan-T5-XL", "Contriever"): "flan-t5/contriever-top{}-response.json",
    ("Mistral-7B", "Contriever"): "mistral/top{}_answers.json",
}
DEPTHS = (1, 3, 5)
SHOWN = ("Llama-3-8B", "ADORE")
MEASURES = {"SetR": "recall", "Success@10": "hit", "SetP": "precision"}


def study() -> str:
    """Return the study's part of the page."""
    changes: dict[str, dict[str, page.Ranged]] = {}
    steps, seen = [], {}
    for (reader, retriever), pattern in FILES.items():
        names = {f"top {depth}": pattern.format(depth) for depth in DEPTHS}
        for depth in DEPTHS:
            assert contexts.same_contexts(pattern.format(depth), FILES["Llama-3-8B", retriever].format(depth))
        runs = {run: contexts.run(name) for run, name in names.items()}
        quality = contexts.quality({(reader, run): name for run, name in names.items()}, runs)
        scores = jk.score(runs, {"gold": contexts.gold()}, list(MEASURES)).scores()
        scores["labeling"] += " " + scores["measure"].map(MEASURES)
        wides = {name: page.per_question(scores, labeling=name) for name in dict.fromkeys(scores["labeling"])}
        wides |= {metric: page.per_question(quality, metric=metric) for metric in contexts.METRICS}
        for name, wide in wides.items():
            changes.setdefault(name, {})[f"{reader}, {retriever}"] = page.means(wide["top 5"] - wide["top 1"])
        steps += [
            (reader, retriever, metric, *(page.shown(page.means(wides[metric][run])) for run in names))
            for metric in contexts.METRICS
        ]
        if (reader, retriever) == SHOWN:
            for metric in ("em", "contains"):
                rules = jk.Rules(primary="score")
                scored = scores.assign(measure="score")
                seen[metric] = jk.compare(scored, quality, rules, outcome=metric, only={"metrics": [metric]})
    rises = [changes[name][case][1] > 0 for name in ("gold recall", "gold hit") for case in changes[name]]
    worse = [case for case, (_, _, high) in changes["em"].items() if high < 0]
    better = [case for case, (_, low, _) in changes["em"].items() if low > 0]
    apart = [case for case in worse if changes["contains"][case][2] >= 0]
    return "\n\n".join(
        [
            "## Depth: more passages, better answers?",
            f"**Data.** The same {len(contexts.ids()):,} questions, answered from the top 1, 3 and 5 passages of a"
            " retriever; six pairs of reader and retriever whose contexts are the same where the retriever is.",
            f"**Decisions.** The three depths of {SHOWN[1]} for {SHOWN[0]} stand as three runs. By exact match and by"
            " *contains*:",
            page.decision(seen["em"]),
            page.decision(seen["contains"]),
            page.figure(
                "depth",
                "Top 5 minus top 1, in points (paired by question)",
                {name: changes[name] for name in ("gold recall", *contexts.METRICS)},
            ),
            page.table(["reader", "retriever", "metric", *(f"top {depth}" for depth in DEPTHS)], steps),
            "**What it means.** "
            + page.holds(
                all(rises),
                "Recall and hit rise with depth for every pair, as they must. ",
            )
            + page.holds(
                len(worse) == 3 and all("Llama" in case for case in worse),
                "Exact match falls for Llama-3-8B with all three retrievers",
            )
            + page.holds(
                better == ["Flan-T5-XL, BM25", "Flan-T5-XL, Contriever"],
                ", and rises for Flan-T5-XL with both of its own. ",
            )
            + page.holds(
                apart == worse,
                "By *contains* none of these losses is shown: with more passages Llama-3-8B puts more words around the"
                " answer. Recall and hit cannot say how many passages to give. The authors report the same fall of"
                " exact match in their [report](https://github.com/r-gheda/rag-complex-qa/blob/c7a88c0/Report.pdf).",
            ),
            "**What it does not mean.** A fall of exact match is not a fall of what a reader knows. Retrieved passages"
            " that are near-copies of each other count once.",
            "**What would overturn it.** Another data set, greedy decoding, or an instruction that fixes the form of"
            " the answer.",
        ]
    )
