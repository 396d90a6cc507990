"""Ties as an expected value: the mean over all orders of documents with equal scores."""

from __future__ import annotations

from itertools import groupby, permutations, product
from math import isnan

import numpy as np
import pytest
from hypothesis import given

from judgekit.data.labelings import Scale
from judgekit.data.ordering import Ties
from judgekit.data.trec import read_qrels, read_run
from judgekit.metrics import evaluate, parse_measures
from tests.golden.expected import EXPECTED_OVER_TIES
from tests.metrics.material import EVERY, Case, cases, labeling_of, scored_run
from tests.metrics.reference import condensed, score
from tests.metrics.test_golden import GOLDEN, SCALES

MEASURES = parse_measures(EVERY)


def every_order(case: Case) -> list[list[str]]:
    blocks = [list(block) for _, block in groupby(case.ranked(), key=case.scores.__getitem__)]
    return [[d for block in order for d in block] for order in product(*(list(permutations(b)) for b in blocks))]


@given(cases(least_labels=1, most=5))
def test_the_expected_value_is_the_mean_over_all_orders(case: Case) -> None:
    found = evaluate([case.run(Ties.EXPECTED)], [case.labeling()], MEASURES, query_ids=["q"])
    orders = every_order(case)
    for i, measure in enumerate(MEASURES):
        if ("qrels", str(measure)) in found.reasons:
            continue
        values = [score(measure, o, case.labels, case.scale, [case.scores[d] for d in o]) for o in orders]
        wanted = sum(values) / len(values)
        assert found.values[i, 0, 0, 0] == pytest.approx(wanted, rel=1e-10, abs=1e-12, nan_ok=True), str(measure)


@given(cases(least_labels=1, most=6))
def test_the_expected_value_over_condensed_lists(case: Case) -> None:
    found = evaluate([case.run(Ties.EXPECTED)], [case.labeling()], MEASURES, query_ids=["q"], unjudged="condense")
    orders = [condensed(o, case.labels, case.scale, [0.0] * len(o))[0] for o in every_order(case)]
    for i, measure in enumerate(MEASURES):
        if ("qrels", str(measure)) not in found.reasons:
            values = [score(measure, o, case.labels, case.scale, [case.scores[d] for d in o]) for o in orders]
            wanted = sum(values) / len(values)
            assert found.values[i, 0, 0, 0] == pytest.approx(wanted, rel=1e-10, abs=1e-12, nan_ok=True), str(measure)


@given(cases(least_labels=1), cases(least_labels=1))
def test_a_run_with_a_tie_rule_scores_the_same_beside_one_that_averages(one: Case, two: Case) -> None:
    runs = [scored_run("ruled", q=one.scores), scored_run("averaged", ties=Ties.EXPECTED, q=two.scores)]
    together = evaluate(runs, [one.labeling()], MEASURES, query_ids=["q"])
    alone = evaluate(runs[:1], [one.labeling()], MEASURES, query_ids=["q"])
    for i, measure in enumerate(MEASURES):
        if ("qrels", str(measure)) not in together.reasons:
            np.testing.assert_allclose(together.values[i, :, 0], alone.values[i, :, 0], rtol=1e-12, atol=1e-14)


@given(cases(least_labels=1, tied=False))
def test_without_ties_averaging_changes_nothing(case: Case) -> None:
    ruled = evaluate([case.run()], [case.labeling()], MEASURES, query_ids=["q"])
    averaged = evaluate([case.run(Ties.EXPECTED)], [case.labeling()], MEASURES, query_ids=["q"])
    for i, measure in enumerate(MEASURES):
        if ("qrels", str(measure)) not in averaged.reasons:
            np.testing.assert_allclose(averaged.values[i], ruled.values[i], rtol=1e-12, atol=1e-14)


def test_the_golden_tie_worked_out_by_hand() -> None:
    runs = [read_run(GOLDEN / "runs" / "a.trec", ties=Ties.EXPECTED)]
    labelings = [read_qrels(GOLDEN / "labels" / f"{n}.qrels", scale=Scale.parse(s)) for n, s in SCALES.items()]
    found = evaluate(runs, labelings, sorted({m for _, m in EXPECTED_OVER_TIES}), query_ids=["q2"]).scores()
    values = found.set_index(["labeling", "measure"])["value"]
    for key, wanted in EXPECTED_OVER_TIES.items():
        assert values[key] == pytest.approx(wanted, rel=1e-14)


def test_a_measure_without_a_closed_form_says_so() -> None:
    run = scored_run(ties=Ties.EXPECTED, q={"a": 1.0, "b": 1.0})
    found = evaluate([run], [labeling_of(q={"a": 1})], ["nDCG(ideal=retrieved)@1", "nDCG(ideal=retrieved)"])
    assert isnan(found.summary[0].value)
    assert "no closed form" in found.summary[0].reason
    assert found.summary[1].reason == ""


def test_large_blocks_stay_within_reach() -> None:
    docs = {f"d{i:03}": 1.0 for i in range(300)}
    labels = {f"d{i:03}": 1 + i % 3 for i in range(0, 300, 7)}
    run, labeling = scored_run(ties=Ties.EXPECTED, q=docs), labeling_of("grades:3", q=labels)
    values = {m.measure: m.value for m in evaluate([run], [labeling], MEASURES).summary}
    assert values["P@5"] == pytest.approx(len(labels) / 300)
    assert 0 < values["ERR@3"] < values["ERR"] < 1
    assert 0 < values["RR@2"] < values["RR"] < 1
