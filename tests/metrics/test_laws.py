"""Laws that hold for every run and labeling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run, Ties
from judgekit.metrics import evaluate, parse_measures
from tests.metrics.material import EVERY, Case, cases, labeling_of, scored_run

MEASURES = parse_measures(EVERY)
SOME = parse_measures("P@3 R@3 RR AP nDCG@3 ERR AUC Bpref")


def values(case: Case, measures: str, scores: dict[str, float] | None = None) -> np.ndarray:
    run = scored_run(q=case.scores if scores is None else scores)
    return evaluate([run], [case.labeling()], parse_measures(measures), query_ids=["q"]).values.ravel()


@given(cases(least_labels=1), cases(least_labels=1), st.randoms(use_true_random=False))
def test_the_order_of_rows_runs_labelings_and_queries_does_not_matter(one: Case, two: Case, random) -> None:
    lists, labels = {"q1": one.scores, "q2": two.scores}, {"q1": one.labels, "q2": two.labels}
    rows = [(q, d, s) for q, of in lists.items() for d, s in of.items()]
    shuffled = random.sample(rows, len(rows))
    runs = [Run("a", *zip(*rows, strict=True)) if rows else Run("a", [], [], []), scored_run("b", q2=one.scores)]
    again = [Run("a", *zip(*shuffled, strict=True)) if rows else Run("a", [], [], []), runs[1]]
    table = labeling_of("means:-2..5", **labels)
    other = Labeling("qrels", table.scale, table.table.sample(frac=1, random_state=random.randint(0, 99)))
    extra = labeling_of("unit", name="extra", q1={"0": 0.5})
    first = evaluate(runs, [table, extra], SOME, query_ids=["q1", "q2", "q3"])
    second = evaluate(again[::-1], [extra, other], SOME[::-1], query_ids=["q3", "q2", "q1"])
    np.testing.assert_array_equal(second.values, first.values[::-1, ::-1, ::-1])
    assert first.query_ids == second.query_ids


@given(cases(scales=("binary", "grades:3", "grades:-2..3"), least_labels=1))
def test_a_perfect_ranking_scores_one(case: Case) -> None:
    if max(case.labels.values()) < 1:
        return
    ranked = sorted(case.labels, key=lambda d: -case.labels[d])
    perfect = {d: float(-i) for i, d in enumerate([*ranked, *(d for d in case.scores if d not in case.labels)])}
    *found, auc = values(case, "nDCG nDCG@2 nDCG(dcg='exp-log2') AP RR Success@1 Rprec Bpref R AUC", perfect)
    assert found == pytest.approx([1] * 9)
    assert np.isnan(auc) or auc == 1


@given(cases(scales=("binary", "grades:3", "unit"), least_labels=1, tied=False), st.data())
def test_swapping_a_worse_document_down_never_lowers_ndcg(case: Case, data: st.DataObject) -> None:
    ranked = case.ranked()
    if len(ranked) < 2:
        return
    i, j = sorted(data.draw(st.permutations(range(len(ranked))))[:2])
    upper, lower = ranked[i], ranked[j]
    if case.labels.get(upper, 0) > case.labels.get(lower, 0):
        return
    swapped = case.scores | {upper: case.scores[lower], lower: case.scores[upper]}
    measures = "nDCG nDCG@3 DCG@2 nDCG(dcg='exp-log2')"
    assert (values(case, measures, swapped) >= values(case, measures) - 1e-12).all()


@given(cases(least_labels=1))
def test_cutting_the_lists_first_changes_no_measure_that_looks_no_deeper(case: Case) -> None:
    measures = [m for m in MEASURES if m.cutoff is not None and not m.option("judged_only")]
    whole = evaluate([case.run()], [case.labeling()], measures, query_ids=["q"])
    cut = evaluate([case.run()], [case.labeling()], measures, query_ids=["q"], depth=5)
    beside = evaluate([case.run()], [case.labeling()], [*measures, "AUC"], query_ids=["q"])
    np.testing.assert_array_equal(whole.values, cut.values)
    np.testing.assert_array_equal(whole.values, beside.values[:-1])


@given(cases(least_labels=1))
def test_tie_rules_only_matter_where_scores_tie(case: Case) -> None:
    distinct = {d: float(i) for i, d in enumerate(case.scores)}
    labeling = case.labeling()
    values = [
        evaluate([scored_run(ties=ties, q=distinct)], [labeling], MEASURES, query_ids=["q"]).values
        for ties in (Ties.DOC_DESC, Ties.DOC_DESC_32, Ties.DOC_ASC, Ties.RUN_ORDER)
    ]
    for other in values[1:]:
        np.testing.assert_array_equal(values[0], other)
