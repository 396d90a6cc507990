"""Bounds over all labels that the missing ones may have."""

from itertools import product
from math import isnan
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.metrics import DEFINITIONS, Evaluation, evaluate, parse_measures
from tests.metrics.material import EVERY, Case, cases, labeling_of, run_of

MEASURES = parse_measures(EVERY)
EXACT = {"P", "Success", "RR", "DCG", "RBP", "ERR"}
MISSING = ("zero", "condense", "bounds")
ENDS = {
    "binary": (0, 1),
    "grades:3:2": (0, 1, 2, 3),
    "grades:-2..3": (-2, 0, 1, 2, 3),
    "means:-2..3:2": (-2, -0.5, 0, 1.9, 2, 3),
    "unit": (0, 0.4, 1),
    "signed": (-1, -0.5, 0, 1),
}


@pytest.mark.parametrize("unjudged", ["nonrelevant", "bounds"])
@given(case=cases(most=5, scales=tuple(ENDS), least_labels=1), missing=st.sampled_from(MISSING), data=st.data())
def test_bounds_contain_every_completion_and_are_exact_where_they_can_be(
    unjudged: str, case: Case, missing: str, data: st.DataObject
) -> None:
    missing = missing if unjudged == "bounds" else "bounds"
    lost = data.draw(st.lists(st.sampled_from(sorted({*case.scores, *case.labels, "hole"})), max_size=2, unique=True))
    known = {d: v for d, v in case.labels.items() if d not in lost}
    gaps = [d for d in sorted(case.scores) if d not in {*known, *lost}] if unjudged == "bounds" else []
    gaps = (lost if missing == "bounds" else []) + gaps

    def scored(every: list[dict[str, float]], gone: list[str], **change: str) -> Evaluation:
        given = [Case(case.scores, labels, case.scale) for labels in every]
        labelings = [one.labeling(dict.fromkeys(gone, "failed"), f"qrels{i}") for i, one in enumerate(given)]
        return evaluate([case.run()], labelings, MEASURES, query_ids=["q"], **change)

    found = scored([known], lost, missing=missing, unjudged=unjudged)
    rest = "nonrelevant" if unjudged == "bounds" else unjudged
    completions = [
        known | dict(zip(gaps, values, strict=False)) | dict.fromkeys(gaps[2:], 0.0)
        for values in product(ENDS[str(case.scale)], repeat=min(len(gaps), 2))
    ]
    every = scored(completions, lost if missing in ("zero", "condense") else [], unjudged=rest, missing=missing)
    for i, measure in enumerate(MEASURES):
        values = (every.low if every.bounded else every.values)[i, :, 0, 0]
        if ("qrels0", str(measure)) in found.reasons or np.isnan(values).all():
            continue
        low, high, value = (each[i, 0, 0, 0] for each in (found.low, found.high, found.values))
        assert low <= np.nanmin(values) + 1e-12, str(measure)
        assert high >= np.nanmax(values) - 1e-12, str(measure)
        inexact = measure.option("best") or measure.option("judged_only")
        if unjudged == "nonrelevant" and measure.name in EXACT and not inexact:
            assert (low, high) == pytest.approx((np.nanmin(values), np.nanmax(values))), str(measure)
        assert isnan(value) or value == low == high
    if not gaps:
        np.testing.assert_array_equal(found.values, scored([known], lost, missing=missing, unjudged=rest).values)


def test_bounds_over_several_runs_and_labelings_fill_the_same_holes() -> None:
    runs = [run_of("a", q1="d1 d2", q2="d5"), run_of("b", q1="d3 d1", q2="d6 d5")]
    labelings = [
        labeling_of(name="x", q1={"d1": 1, "d2": 0}, q2={"d5": 0}),
        labeling_of(name="y", q1={"d1": 0, "d2": 0, "d3": 0}, q2={"d5": 1, "d6": 1}),
    ]
    found = evaluate(runs, labelings, ["P@2", "NumRel"], unjudged="bounds")
    assert found.low[0].tolist() == [[[0.5, 0.0], [0.5, 0.0]], [[0.0, 0.5], [0.0, 1.0]]]
    assert found.high[0].tolist() == [[[0.5, 0.0], [1.0, 0.5]], [[0.0, 0.5], [0.0, 1.0]]]
    assert found.high[1, 0].tolist() == [[2.0, 1.0], [2.0, 1.0]]
    assert np.isnan(found.values[0, 0, 1]).all()
    assert {m.missing for m in found.summary} == {0}


def test_the_mean_has_bounds_and_a_value_only_over_what_is_known() -> None:
    labeling = labeling_of(q1={"d1": 1}, q2={"d1": "refused"})
    found = evaluate([run_of(q1="d1", q2="d1")], [labeling], ["P@1"], missing="bounds")
    means, scores = found.means(), found.scores()
    assert means[["value", "low", "high"]].to_numpy().tolist() == [[1.0, 0.5, 1.0]]
    assert scores[["low", "high"]].to_numpy().tolist() == [[1.0, 1.0], [0.0, 1.0]]
    assert found.means_text().split()[-1] == "0.5000..1.0000"
    plain = evaluate([run_of(q1="d1")], [labeling], ["P@1"])
    assert list(plain.means().columns)[-1] == "value"
    assert plain.means_text().split()[-1] == "1.0000"


@patch.dict(DEFINITIONS)
def test_scores_are_bounded_where_labels_are_missing_and_only_there() -> None:
    @jk.measure("UnboundedP")
    def mean_label(ranked, judged, cutoff):
        return np.nansum(ranked)

    runs = [run_of(name, q1=docs, q2=docs) for name, docs in (("a", "d0 d1 d2"), ("b", "d2 d0"))]
    lacking = labeling_of(q1={"d0": 1, "d1": 0, "d2": 0}, q2={"d0": 1, "d1": "failed", "d2": 0})
    found = evaluate(runs, [lacking], "P@2 UnboundedP@2").scores()
    ends = found[found["run"] == "a"][["low", "high"]].to_numpy().tolist()
    assert ends == [[0.5, 0.5], [0.5, 1.0], [1.0, 1.0], [-np.inf, np.inf]], "nothing bounds a measure of one's own"
    whole = labeling_of(q1={"d0": 1, "d1": 0, "d2": 0}, q2={"d0": 1})
    assert "low" not in evaluate(runs, [whole], "P@2").scores()


def test_unjudged_documents_are_bounded_though_another_query_lacks_labels() -> None:
    labeling = labeling_of(q1={"d1": 1}, q2={"d1": "failed"})
    found = evaluate([run_of(q1="d1 d2", q2="d1")], [labeling], "P@2", unjudged="bounds")
    assert (found.low[0, 0, 0].tolist(), found.high[0, 0, 0].tolist()) == ([0.5, 0.0], [1.0, 0.5])
