"""C: which property of an answer follows its usefulness, as experts rate both (ExpertQA)."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

import judgekit as jk
from studies.pairs import Ranged
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
ALL = 2177
"""Answers of the whole data set. The other files are too large for the copies that were looked at."""


def _value(property_: str, said: str | None) -> float:
    """Return a rating as a whole number, so that equal means are equal; NaN where there is none."""
    levels = PROPERTIES[property_]
    said = "Partial" if said == "Incomplete" else said
    return float(levels.index(said)) if said in levels else np.nan


def answers() -> pd.DataFrame:
    """Return a row for each rated answer: system, question, usefulness, and the means of its claims."""
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
                rows[system, record["question"]] = claims | {"useful": USEFUL[answer["usefulness"]]}
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["run", "question"]).reset_index()
    return table.assign(query_id=[f"q{number:03}" for number in range(1, len(table) + 1)])


def concordances() -> dict[str, dict[str, Ranged]]:
    """Return by system and property how often the more useful of two answers has the higher value, of 100 pairs.

    Each system stands by itself, since the systems answered different questions.
    """
    usable = answers().dropna(subset=list(PROPERTIES))
    found = {}
    for system in usable["run"].value_counts().index:
        rows = usable[usable["run"] == system]
        scores = rows.melt(["run", "query_id"], list(PROPERTIES), "labeling").assign(measure="score")
        quality = rows.rename(columns={"useful": "value"})[["run", "query_id", "value"]]
        compared = jk.compare(scores, quality, rules=jk.Rules(primary="score", use="find-questions"))
        table = compared.table[compared.table["coefficient"] == "concordance"].drop_duplicates("labeling")
        ends = (100 * table.set_index("labeling")[["value", "ci_low", "ci_high"]]).itertuples()
        found[f"{system} ({len(rows)})"] = {str(name): (value, low, high) for name, value, low, high in ends}
    return found
