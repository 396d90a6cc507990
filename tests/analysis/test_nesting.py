"""Where one run's lists contain another's, measures that only count documents are decided by the lists."""

import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.background import Background
from judgekit.analysis.nesting import Nesting, counts_only
from judgekit.data.runs import Run

QUERIES = [f"q{number:02}" for number in range(60)]


def listed(name: str, docs: str) -> Run:
    """A run that returns these documents, best first, for every question."""
    rows = [(query, doc, -float(rank)) for query in QUERIES for rank, doc in enumerate(docs)]
    return Run(name, [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def compared(measure: str, docs: dict[str, str], background: Background | None = None) -> jk.Comparison:
    """Two runs, gold documents that differ by question, and answers that follow nothing."""
    gold = {query: {"abcd"[number % 4]: 1} for number, query in enumerate(QUERIES)}
    evaluation = jk.score([listed(name, each) for name, each in docs.items()], {"gold": gold}, measure)
    rows = [
        (run, query, float((number * 7 + place) % 3 == 0))
        for place, run in enumerate(docs)
        for number, query in enumerate(QUERIES)
    ]
    quality = pd.DataFrame(rows, columns=["run", "query_id", "value"]).assign(depth=4, model="m", metric="em")
    return jk.compare(evaluation, quality, jk.Rules(primary=measure, resamples=200), background=background)


def claimed(comparison: jk.Comparison) -> list[str]:
    """The sentences about nested lists."""
    return [claim.sentence for claim in comparison.decision.claims if claim.kind == "nested"]


@pytest.mark.parametrize("measure", ["R@4", "SetP", "Success@4"])
def test_the_decision_says_that_nested_lists_decide_a_measure_that_counts(measure: str) -> None:
    found = compared(measure, {"short": "ab", "long": "abcd"})
    (sentence,) = claimed(found)
    assert sentence.startswith("On 100 % of the questions one list contains the other (short within long).")
    assert f"decide {measure}, whatever the labels say" in sentence
    assert sentence in " ".join(found.decision.text.split()), "beside the labels that it qualifies"
    flags = found.table.set_index("level")["flags"]
    assert flags[["within-query", "system"]].str.contains("nested").all()
    assert not flags["query"].str.contains("nested").any(), "a single run's coefficient compares no lists"


def test_measures_that_look_at_ranks_and_lists_that_are_not_nested_are_not_flagged() -> None:
    for found in (compared("RR@4", {"short": "ab", "long": "abcd"}), compared("R@4", {"one": "abe", "other": "dcba"})):
        assert claimed(found) == []
        assert not found.table["flags"].str.contains("nested").any()


def test_only_the_documents_that_a_measure_sees_are_looked_at() -> None:
    nesting = Nesting([listed("short", "ab"), listed("long", "abcd")], QUERIES)
    assert nesting.under("R@2", 4) == []
    assert nesting.under("R@4", 2)
    assert nesting.under("SetR", 4)
    assert nesting.under("R@3", 4)[0].nested == 1


def test_further_nested_pairs_are_counted() -> None:
    found = compared("R@4", {"one": "a", "two": "ab", "three": "abc"})
    assert "; 2 more pairs of runs nest too)" in claimed(found)[0]


def test_a_measure_of_ones_own_is_not_taken_to_count_only() -> None:
    assert counts_only("F1@5")
    assert not counts_only("nDCG@5")
    assert not counts_only("mine")
