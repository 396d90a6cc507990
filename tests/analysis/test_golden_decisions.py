"""Whole decisions of small results, with the figures behind them, as decisions.txt has them: read what changes."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from judgekit.analysis import Background, Money, Pool, Rules, compare
from judgekit.analysis.findings import LENGTH, RETRIEVER
from judgekit.labelers.base import Needs
from tests.analysis.worlds import RUNS, world

TEXTS: Final = Path(__file__).with_name("decisions.txt")
FACTS: Final = "better closer oftener gaps answers ahead not_worth needed winner disagreeing controls lacking unknown"
OF_EACH: Final = "tau_b picks hinges leans misordered beats guides"
COSTS: Final = pd.DataFrame(
    {"labeling": ["own", "easy", "answers"], "requests": [900, 450, 270], "money": [9.0, 40.5, 13.5]}
)
KNOWN: Final = {
    "costs": COSTS,
    "pool": Pool(90, 450, 900, 250, 400, (5, 40), (20, 30)),
    "needs": {"own": Needs(), "easy": Needs(references=True), "gold": Needs(existing=True)},
}
CONTROLS: Final = {"ranks": RETRIEVER, "sizes": LENGTH}


def chosen() -> dict[str, Any]:
    scores, quality = world({"own": (0, 1), "easy": (0.8, 0.3), "ranks": (0, 0.9), "sizes": (0.5, 0.1)}, 90, RUNS[:3])
    kinds = {query: ("odd", "even")[int(query[1:]) % 2] for query in quality["query_id"]}
    own, easy = (
        scores[scores["labeling"] == name].groupby("query_id")["value"].mean().to_dict() for name in ("own", "easy")
    )
    background = Background(controls=list(CONTROLS.values()), twins={"own": own, "easy": easy}, **KNOWN)
    money = Money("EUR", 0.5, wage=18, minutes=2, budget=90)
    return {
        "scores": scores.replace(CONTROLS),
        "quality": quality,
        "money": money,
        "background": replace(background, kinds=kinds),
    }


def misled() -> dict[str, Any]:
    runs = ("a", "b", "a-retriever-with-a-long-name")
    scores, quality = world({"own": (0.0, 1.0), "gold": (0.0, 0.3)}, 200, runs, skill=0.7)
    leans = 2.0 * ((scores["run"] == "a") & (scores["labeling"] == "gold"))
    money, scores = Money(reference=2, judgment=0.25, price={"own": 0.01}), scores.assign(value=scores["value"] + leans)
    return {"scores": scores, "quality": quality, "money": money, "background": Background(**KNOWN)}


def of_one_run() -> dict[str, Any]:
    scores, quality = world({"own": (0, 1), "easy": (0.8, 0.3), "gold": (0.6, 0.6)}, 90, RUNS[:1])
    twins = {"easy": scores[scores["labeling"] == "gold"].set_index("query_id")["value"].to_dict()}
    closed = quality.assign(run="all", depth=0, value=np.arange(90) % 3 // 2)
    background = Background(twins=twins, **(KNOWN | {"costs": COSTS.drop(columns="money")}))
    return {"scores": scores, "quality": pd.concat([quality, closed]), "background": background}


def undecided() -> dict[str, Any]:
    scores, quality = world({"own": (0.3, 0.2), "none": (0.4, 0.01)}, 60, RUNS[:2], seed=2, skill=0.2)
    graded = quality.assign(value=(quality["value"] + (quality.index % 3 > 0)) / 2)
    background = Background(pool=KNOWN["pool"])
    return {"scores": scores[scores["query_id"] < "q0057"], "quality": graded, "background": background}


def grouped() -> dict[str, Any]:
    scores, quality = world({"own": (0, 1), "easy": (0.8, 0.3), "gold": (0.0, 1.1)}, 120, skill=0.6)
    groups = {query: f"g{int(query[1:]) // 3}" for query in quality["query_id"]}
    odd = (scores["labeling"] == "own") & (scores["query_id"] < "q0005")
    gone = (scores["labeling"] == "easy") & (scores["query_id"] > "q0117")
    value = scores["value"].mask(odd)
    scores = scores.assign(value=value.mask(gone), low=value - gone, high=value + gone)
    money, background = Money("USD", judgment=0.3), Background(**KNOWN, groups=groups)
    return {"scores": scores, "quality": quality, "money": money, "background": background}


def failing() -> dict[str, Any]:
    scores, quality = world({"own": (0.0, 1.0), "easy": (0.7, 0.3), "none": (0, 0.01)}, 80)
    gone = (scores["labeling"] == "own") & (scores["query_id"] < "q0002")
    ends = {"value": np.nan, "low": -np.inf, "high": np.inf}
    scores = scores.assign(**{name: scores["value"].mask(gone, end) for name, end in ends.items()})
    return {"scores": scores, "quality": quality, "rules": Rules(resamples=200, use="find-questions")}


def incomparable() -> dict[str, Any]:
    scores, quality = world({"own": (0.4, 1.0)}, 40, RUNS[:2])
    return {"scores": scores, "quality": quality, "background": Background(incomparable="Runs of different depths.")}


def unguided() -> dict[str, Any]:
    scores, quality = world({"own": (0.02, 0.02), "a-labeling-with-a-long-name": (0.0, 0.01)}, 60, RUNS[:1], seed=1)
    groups = {query: query[:-1] + str(int(query[-1]) // 4) for query in quality["query_id"]}
    answers = quality.assign(contexts="not checked")
    return {"scores": scores, "quality": answers, "background": Background(**KNOWN, groups=groups)}


CASES: Final = (chosen, misled, of_one_run, undecided, grouped, incomparable, failing, unguided)


def told(case: dict[str, Any], whole: bool) -> str:
    """Return a decision and what it rests on as text, a fact or a row in each line, numbers to four digits."""
    found = compare(**{"rules": Rules(resamples=200)} | case)
    decision = found.decision
    parts = [f"biases: {dict(decision.biases)}"]
    for use in filter(None, (decision.findings, decision.other)):
        facts = {"": {name: getattr(use, name) for name in FACTS.split()}}
        facts |= {one.labeling: {name: getattr(one, name) for name in OF_EACH.split()} for one in use.each}
        for about, values in facts.items():
            plain = (sorted(value) if isinstance(value, frozenset) else value for value in values.values())
            parts += [f"{about} {name}: {value}" for name, value in zip(values, plain, strict=True) if value]
        parts.append(use.table().to_csv(index=False))
    tables = [found.purchase, found.gains, found.controls]
    tables += [found.cases, found.details, found.differences, found.table] if whole else []
    parts += [table.to_csv(index=False) for table in tables]
    exact = re.sub(r"np\.float64\(([^)]*)\)", r"\1", "\n".join(parts))
    short = re.sub(r"-?\d+(\.\d+)?e-\d+|-?\d+\.\d+", lambda at: f"{round(float(at[0]), 4) + 0.0:g}", exact)
    return "\n".join(filter(None, "\n".join([decision.text, *decision.details, *found.warnings, short]).splitlines()))


@pytest.mark.parametrize("case", CASES)
def test_a_whole_decision_with_its_figures_is_what_is_written(case: Any) -> None:
    expected = TEXTS.read_text().partition(f"# {case.__name__}\n")[2].partition("\n\n")[0].rstrip("\n")
    found, number = told(case(), case is undecided), re.compile(r"-?\d*\.?\d+")
    assert number.split(found) == number.split(expected)
    numbers, written = ([float(one) for one in number.findall(text)] for text in (found, expected))
    assert numbers == pytest.approx(written, abs=2e-4)  # the last bit of a sum is the processor's


def test_how_far_a_labeling_trails_that_says_nothing_within_questions_is_an_interval() -> None:
    scores, quality = world({"own": (0, 1), "easy": (0.7, 0.3)}, 80)
    means = scores.groupby(["labeling", "query_id"])["value"].transform("mean")
    flat = scores.assign(value=scores["value"].where(scores["labeling"] == "own", means))
    assert "easy .00 (difference .47 to .66)" in compare(flat, quality, rules=Rules(resamples=200)).decision.text


if __name__ == "__main__":  # python -m tests.analysis.test_golden_decisions writes the texts anew
    TEXTS.write_text("\n\n".join(f"# {case.__name__}\n{told(case(), case is undecided)}" for case in CASES) + "\n")
