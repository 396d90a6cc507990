"""C: which property of an answer follows its usefulness, as experts rate both (ExpertQA)."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import judgekit as jk
from studies import page
from studies.source import paths, text

REPO = "chaitanyamalaviya/ExpertQA"
USEFUL = {"Useful": 1.0, "Partially useful": 0.5, "Not useful at all": 0.0}
# What experts say of each claim, the worst first. The data hold "Not too important" where the paper has no such value.
PROPERTIES = {
    "informativeness": ["Uninformative", "Not too important", "A bit relevant", "Very relevant"],
    "correctness": ["Definitely incorrect", "Likely incorrect", "Unsure", "Probably correct", "Definitely correct"],
    "support": ["Missing", "Partial", "Complete"],
    "reliability": ["Not reliable at all", "Somewhat reliable", "Reliable"],
    "worthiness": ["No", "Yes"],
}
LENGTH = "length"


def _value(property_: str, said: str | None) -> float:
    """Return a rating as a whole number, so that equal means are equal; NaN where there is none."""
    levels = PROPERTIES[property_]
    said = "Partial" if said == "Incomplete" else said
    return float(levels.index(said)) if said in levels else np.nan


def answers() -> pd.DataFrame:
    """Return a row for each rated answer: system, question, usefulness, the means of its claims, and its length."""
    rows = {}
    for path in paths(REPO, "data/lfqa/"):
        for line in text(REPO, path).splitlines():
            record = json.loads(line)
            for system, answer in record["answers"].items():
                if answer["usefulness"] is None:
                    continue
                claims = {
                    name: np.mean(known) if (known := [v for v in values if not np.isnan(v)]) else np.nan
                    for name in PROPERTIES
                    for values in [[_value(name, claim[name]) for claim in answer["claims"]]]
                }
                # The random and the domain split hold many of the same questions.
                rows[system, record["question"]] = claims | {
                    "useful": USEFUL[answer["usefulness"]],
                    LENGTH: len(answer["answer_string"].split()),
                }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["run", "question"]).reset_index()
    return table.assign(query_id=[f"q{number:03}" for number in range(1, len(table) + 1)])


def study() -> str:
    """Return the study's part of the page."""
    rated = answers()
    usable = rated.dropna(subset=list(PROPERTIES))
    systems = usable["run"].value_counts().index
    seen = {}
    for system in systems:
        rows = usable[usable["run"] == system]
        scores = rows.melt(["run", "query_id"], [*PROPERTIES, LENGTH], "labeling").assign(measure="score")
        quality = rows.rename(columns={"useful": "value"})[["run", "query_id", "value"]]
        seen[system] = jk.compare(
            scores,
            quality,
            rules=jk.Rules(primary="score", use="find-questions"),
            background=jk.Background(controls=[LENGTH]),
        )
    inside = {system: _right(one) for system, one in seen.items()}
    apart = [
        system
        for system, one in seen.items()
        for row in one.differences.query("coefficient == 'concordance'").itertuples()
        if {row.first, row.second} == {"informativeness", "support"} and (row.ci_low > 0 or row.ci_high < 0)
    ]
    best = {system: max(PROPERTIES, key=lambda name: rows[name][0]) for system, rows in inside.items()}
    shown = [system for system, rows in inside.items() if rows["informativeness"][1] > 50]
    counts = usable["run"].value_counts()
    useful = rated["useful"].value_counts()
    return "\n\n".join(
        [
            "## Experts: what makes an answer useful",
            f"**Data.** {len(rated)} answers of {len(systems)} systems, each to a question of its own that the expert"
            f" had asked (ExpertQA); {useful[1.0]} are useful, {useful[0.5]} partially, {useful[0.0]} not at all. The"
            f" expert also rated each claim. A property is the mean over an answer's claims; {len(usable)} answers"
            f" have all five.",
            "**Decisions.** Each system by itself, because the systems answer different questions. Which answers need a"
            " look?",
            *(page.decision(one, system) for system, one in seen.items()),
            page.figure(
                "experts",
                "Of 100 pairs of a system's answers, in how many has the more useful one the higher value? (50 is"
                " chance)",
                {f"{system} ({counts[system]})": rows for system, rows in inside.items()},
                middle=50,
                digits=0,
            ),
            "**What it means.** "
            + page.holds(
                len(shown) >= 4 and list(best.values()).count("informativeness") >= 4,
                f"Informativeness, whether claims bear on the question, follows usefulness most in"
                f" {list(best.values()).count('informativeness')} of {len(systems)} systems and is shown to follow it"
                f" in {len(shown)}. ",
            )
            + page.holds(
                all(rows["support"][0] < rows["informativeness"][0] for rows in inside.values()),
                "Support by the cited source, which many automatic metrics measure, follows it less in every system;"
                f" the difference is shown in {len(apart)}.",
            ),
            "**What it does not mean.** One expert rates the properties and the usefulness of the same answer, so that"
            " one impression moves both. The six systems are not compared with each other. The properties are"
            " people's, not a model's: a metric that claims to measure one may do worse.",
            "**What would overturn it.** Properties rated by somebody else than usefulness; the same questions put to"
            " all systems.",
        ]
    )


def _right(comparison: jk.Comparison) -> dict[str, page.Ranged]:
    """Return the concordance of each property and of the length, times 100, with its interval."""
    rows = comparison.table[comparison.table["coefficient"] == "concordance"]
    controls = comparison.controls.drop(columns="labeling").rename(columns={"control": "labeling"})
    both = pd.concat([rows, controls]).drop_duplicates("labeling")
    ends = (100 * both.set_index("labeling")[["value", "ci_low", "ci_high"]]).itertuples()
    return {name: (value, low, high) for name, value, low, high in ends}
