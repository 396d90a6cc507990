"""Every measure with every parameter against a second, obvious implementation, and laws."""

import numpy as np
import pytest
from hypothesis import given

from judgekit.data.runs import Ties
from judgekit.metrics import DEFINITIONS, evaluate, parse_measures
from tests.metrics.material import EVERY, Case, cases, labeling_of, scored_run
from tests.metrics.reference import score

MEASURES = parse_measures(EVERY)


def test_every_measure_and_parameter_is_among_those_tested() -> None:
    used = {(m.name, key) for m in MEASURES for key, _ in m.spec.params} | {(m.name, "") for m in MEASURES}
    assert {m.name for m in MEASURES} == set(DEFINITIONS)
    missing = {(d.name, key) for d in DEFINITIONS.values() for key in d.params} - used
    # Units of evidence have a slow account of their own (test_evidence), rules for ties worked examples.
    elsewhere = {"unit", "ties"}
    assert {key for _, key in missing} <= {"rel", "judged_only", "dcg", "prob"} | elsewhere


def check(case: Case, ranked: list[str], scores: list[float], lost: dict[str, str] | None = None, **how: str) -> None:
    """Check every measure of a case against the textbook's value for a list."""
    found = evaluate([case.run()], [case.labeling(lost)], MEASURES, query_ids=["q"], **how)
    for i, measure in enumerate(MEASURES):
        undefined = ("qrels", str(measure)) in found.reasons
        wanted = np.nan if undefined else score(measure, ranked, case.labels, case.scale, scores)
        value, about = found.values[i, 0, 0, 0], measure.definition
        assert value == pytest.approx(wanted, rel=1e-12, abs=1e-14, nan_ok=True), str(measure)
        low = -1 if case.scale.kind == "signed" and measure.name in ("P", "Success") else about.low
        assert np.isnan(value) or low <= value <= (np.inf if about.high is None else about.high + 1e-12)


@given(cases(least_labels=1))
def test_the_engine_agrees_with_the_textbook(case: Case) -> None:
    ranked = case.ranked()
    scores = [case.scores[d] for d in ranked]
    check(case, ranked, scores)
    lost = {d: "refused" for d in case.scores if d not in case.labels and d < "a"}
    kept = [d for d in ranked if d not in lost]
    check(case, kept, [case.scores[d] for d in kept], lost, missing="condense")


@given(cases(least_labels=1), cases(least_labels=1), cases(least_labels=1))
def test_many_runs_labelings_and_queries_together_score_as_each_alone(one: Case, two: Case, three: Case) -> None:
    every = [one, two, three]
    runs = [
        scored_run(f"run{i}", ties=ties, q1=every[i].scores, q2=every[i - 1].scores)
        for i, ties in enumerate([Ties.DOC_DESC, Ties.DOC_ASC, Ties.DOC_DESC])
    ]
    labelings = [
        labeling_of(str(case.scale), f"labeling{i}", q2=case.labels, **({"q1": case.labels} if i else {}))
        for i, case in enumerate(every)
    ]
    together = evaluate(runs, labelings, MEASURES[::3])
    for i, labeling in enumerate(labelings):
        for j, run in enumerate(runs):
            for k, query in enumerate(together.query_ids):
                if together.listed[i, k]:
                    alone = evaluate([run.only([query])], [labeling], MEASURES[::3], query_ids=[query])
                    np.testing.assert_array_equal(together.values[:, i, j, k], alone.values[:, 0, 0, 0])
                else:
                    assert np.isnan(together.values[:, i, j, k]).all()


@given(cases(least_labels=1))
def test_cutting_the_lists_first_changes_no_measure_that_looks_no_deeper(case: Case) -> None:
    measures = [m for m in MEASURES if m.cutoff is not None and not m.option("judged_only")]
    whole = evaluate([case.run()], [case.labeling()], measures, query_ids=["q"])
    cut = evaluate([case.run()], [case.labeling()], measures, query_ids=["q"], depth=5)
    beside = evaluate([case.run()], [case.labeling()], [*measures, "AUC"], query_ids=["q"])
    np.testing.assert_array_equal(whole.values, cut.values)
    np.testing.assert_array_equal(whole.values, beside.values[:-1])
