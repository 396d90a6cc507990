"""What `evaluate` returns, counts, leaves undefined and refuses."""

import tracemalloc
from math import isnan

import numpy as np
import pandas as pd
import pytest

from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run, Ties
from judgekit.data.tables import SCORES
from judgekit.errors import DataError, UsageError
from judgekit.metrics import Mean, evaluate
from judgekit.metrics.evaluation import incomparable
from judgekit.metrics.join import Join
from judgekit.metrics.measures import Measure
from tests.metrics.material import labeling_of, run_of, scored_run


def only(run: Run, labeling: Labeling, measure: str, **options: object) -> Mean:
    return evaluate([run], [labeling], [measure], **options).summary[0]  # type: ignore[arg-type]


def test_one_row_per_labeling_run_measure_and_query() -> None:
    runs = [run_of("a", q1="d1", q2="d2"), run_of("b", q1="d2")]
    labelings = [labeling_of(name="x", q1={"d1": 1}, q2={"d2": 1}), labeling_of("unit", name="y", q2={"d2": 0.5})]
    frame = evaluate(runs, labelings, ["P@1", "RR"]).scores()
    assert list(frame.columns) == list(SCORES.columns)
    assert len(frame) == 2 * 2 * 2 + 1 * 2 * 2
    assert frame.iloc[0].tolist() == ["x", "a", "P@1", "q1", 1.0]
    assert frame[frame["labeling"] == "y"]["query_id"].unique().tolist() == ["q2"]
    found = evaluate(runs, labelings, ["P@1"])
    assert found.means()["query_id"].unique().tolist() == ["all"]
    assert found.means()["value"].tolist() == found.notes["value"].tolist() == [1.0, 0.0, 0.5, 0.0]


def test_what_a_run_lacks_scores_zero_and_is_counted_even_if_its_scores_tie() -> None:
    runs = [run_of("some", q1="d1", q9="d1"), scored_run("none", q9={"d1": 1.0, "d2": 1.0})]
    found = evaluate(runs, [labeling_of(q1={"d1": 1}, q2={"d1": 1})], ["P@1"]).summary
    said = [(m.value, m.queries, m.defined, m.not_in_run, m.ignored) for m in found]
    assert said == [(0.5, 2, 2, 1, 1), (0, 2, 2, 2, 1)]


def test_runs_and_labels_of_different_collections_are_a_warning() -> None:
    runs = [run_of("a", q1="d1"), run_of("b", q1="d7"), run_of("c", q9="d1")]
    found = evaluate(runs, [labeling_of(name="gold", q1={"d1": 1})], ["P@1"])
    assert found.warnings == [
        "gold lists none of the documents of b: are both from the same collection?",
        "c has none of the queries of gold: are both from the same collection?",
    ]


def test_what_counts_documents_does_not_compare_runs_that_share_few_of_them() -> None:
    docs = MemoryDocs(Doc(f"{name}{i}", "text", "", name, i, i + 1) for name in "ab" for i in range(60))
    runs = [run_of(name, **{f"q{i}": f"{name}{i} {name}{i + 30}" for i in range(30)}) for name in "ab"]
    labeling = labeling_of(**{f"q{i}": {f"a{i}": 1, f"b{i}": 1} for i in range(30)})
    found = evaluate(runs, [labeling], "R@2 RR P@2 R(unit=evidence)@2", docs=docs)
    (warning,) = found.warnings
    assert warning.startswith("a and b share 0% of their documents, so R@2 cannot compare them:")
    for name in ("AP", "DCG", "F1", "P", "R", "RBP", "Rprec", "SetF", "SetP", "SetR", "nDCG"):
        assert incomparable(runs, Measure(name)), name
    assert not any(incomparable(runs, Measure(name)) for name in ("RR", "Success", "nDCG(unit=evidence)"))
    assert warning.endswith("The same holds for P@2.")
    assert [bool(incomparable(runs, measure)) for measure in found.measures] == [True, False, True, False]


def test_a_query_without_relevant_documents_scores_zero_and_is_counted() -> None:
    run, labeling = run_of(q1="d1", q2="d1"), labeling_of("grades:3:2", q1={"d1": 2}, q2={"d1": 1})
    for measure in ("P@1", "R@1", "AP", "Rprec", "Success@1"):
        mean = only(run, labeling, measure)
        assert (mean.value, mean.no_relevant) == (0.5, 1)
    assert only(run, labeling, "P(rel=1)@1").no_relevant == 0
    for measure in ("AUC", "MeanRank"):
        assert only(run, labeling, measure).undefined >= 1
    assert only(run, labeling_of("unit", q1={"d1": 0.5}, q2={"d1": 0.0}), "P@1").no_relevant == 1


def test_missing_labels_leave_their_query_undefined_count_as_zero_or_are_left_out() -> None:
    run, labeling = run_of(q="d1 d2 d3"), labeling_of(q={"d1": "failed", "d2": 1, "d3": 1})
    for measure, missing, value in (("P@2", "zero", 0.5), ("P@2", "condense", 1), ("Judged", "zero", 1)):
        assert only(run, labeling, measure, missing=missing).value == value
    assert isnan(only(run, labeling, "P@2").value)
    bounded = only(run, labeling, "P@2", missing="bounds")
    assert (bounded.low, bounded.high, isnan(bounded.value)) == (0.5, 1.0, True)
    mean = only(run_of(q1="d1 d2", q2="d1"), labeling_of(q1={"d1": 1, "d9": "refused"}, q2={"d1": 1}), "P@1")
    assert (mean.value, mean.defined, mean.missing, mean.not_applicable) == (1.0, 1, 1, 0)


@pytest.mark.parametrize("beside", ["refused", 1])
def test_a_labeling_that_does_not_apply_is_undefined_and_counted_apart(beside: str | int) -> None:
    run = run_of(q1="d1 d2", q2="d1")
    labeling = labeling_of(q1={"d1": "not_applicable", "d2": beside}, q2={"d1": 1})
    for missing in ("undefined", "zero", "condense", "bounds"):
        mean = only(run, labeling, "P@1", missing=missing)
        assert (mean.value, mean.defined, mean.missing, mean.not_applicable, mean.undefined) == (1.0, 1, 0, 1, 0)
        assert mean.no_relevant == 0, "that is said only of queries whose labels are known"
    nowhere = only(run, labeling_of(q1={"d1": "not_applicable"}), "P@1")
    assert (isnan(nowhere.value), nowhere.queries, nowhere.defined) == (True, 1, 0)


def test_unjudged_documents_are_not_relevant_and_are_counted() -> None:
    run, labeling = run_of(q1="d1 d2 d3", q2="d9"), labeling_of(q1={"d3": 1, "d2": "failed"}, q2={"d1": 0})
    assert only(run, labeling, "P@2", missing="zero").unjudged == 2
    assert only(run, labeling, "RR", missing="zero").unjudged == 2
    assert only(run, labeling, "RR", missing="condense").value == 0.25
    assert only(run, labeling, "RR(judged_only=True)", missing="condense").value == 0.5


def test_the_queries_are_those_of_each_labeling_or_those_given() -> None:
    run = run_of(q1="d1", q2="d1", q3="d1")
    labelings = [labeling_of(name="x", q1={"d1": 1}), labeling_of(name="y", q1={"d1": 1}, q2={"d1": 0})]
    assert [m.queries for m in evaluate([run], labelings, ["P@1"]).summary] == [1, 2]
    given = evaluate([run], labelings, ["P@1"], query_ids=["q2", "q1", "q1", "q4"])
    assert given.query_ids == ["q1", "q2", "q4"]
    np.testing.assert_array_equal(given.values[0, :, 0], [[1, np.nan, 0], [1, 0, 0]])
    assert [(m.ignored, m.not_applicable, m.not_in_run) for m in given.summary] == [(1, 1, 1), (1, 0, 1)]


def test_ties_inside_of_the_cutoff_and_across_it_are_counted() -> None:
    run = scored_run(q1={"a": 3, "b": 2, "c": 2}, q2={"a": 3, "b": 3, "c": 2}, q3={"a": 3, "b": 2, "c": 1}, q4={"a": 3})
    every, one = labeling_of(**{f"q{i}": {"a": 1} for i in range(1, 6)}), labeling_of(q2={"a": 1})
    for labeling, counts in ((every, [(1, 1), (1, 2), (0, 2)]), (one, [(1, 1), (0, 1), (0, 1)])):
        found = evaluate([run], [labeling], ["P@1", "P@2", "AP"]).summary
        assert [(mean.ties_across, mean.ties_inside) for mean in found] == counts
    near = {"a": 1.0, "b": 1.0 + 1e-12}
    assert only(scored_run(q1=near), every, "P@1").ties_across == 0
    assert only(scored_run(ties=Ties.DOC_DESC_32, q1=near), every, "P@1").ties_across == 1


SIGNED = "not defined on signed labels"


@pytest.mark.parametrize(
    ("scale", "measure", "said"),
    [
        ("unit", "R@2", "give rel=, as in R(rel=0.5)@2"),
        ("unit", "RR(best=True)", 1),
        ("unit", "ERR(prob=grade)", (2**0.5 - 1) / 2),
        ("signed", "RR(rel=0.1)", SIGNED),
        ("signed", "NumRet(rel=0.5)", SIGNED),
        ("signed", "P@2", -0.25),
        ("signed", "Success@2", 0),
        ("signed", "Success@1", -0.5),
        *(("signed", measure, SIGNED) for measure in ("ERR", "RBP", "AP(rel=0.1)", "R(rel=0.1)@2")),
        ("signed", "nDCG", 0),
        ("grades:3", "ERR(prob=label)", "labels as probabilities"),
        ("binary", "ERR(prob=label)", 1),
    ],
)
def test_what_a_scale_does_not_allow_is_undefined_with_the_reason(scale: str, measure: str, said: str | float) -> None:
    label = {"unit": 0.5, "signed": -0.5, "grades:3": 3, "binary": 1}[scale]
    found = only(run_of(q="d1 d2"), labeling_of(scale, q={"d1": label}), measure)
    assert said in found.reason if isinstance(said, str) else found.value == said


def test_an_undeclared_scale_is_a_warning_where_a_measure_depends_on_it() -> None:
    frame = pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [2.0]})
    labeling = Labeling("qrels", Scale("grades", 2), frame, declared=False)
    run = run_of(q="d")
    assert evaluate([run], [labeling], ["nDCG", "P@1", "ERR(prob=label)"]).warnings == []
    (warning,) = evaluate([run], [labeling, labeling_of(name="other", q={"d": 1})], ["ERR@3"]).warnings
    assert "the scale of qrels was not declared" in warning
    assert "ERR@3" in warning
    assert "bounds" in evaluate([run], [labeling], ["P@1"], missing="bounds").warnings[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"missing": "zeros"}, "missing must be one of .*Did you mean 'zero'"),
        ({"unjudged": "x"}, "unjudged must be one of"),
        ({"depth": 4}, "P@5 looks at more documents than the depth of 4"),
        ({"depth": 0, "measures": ["AP"]}, "depth of 0"),
        ({"runs": []}, "one run to score"),
        ({"labelings": []}, "one labeling to score"),
        ({"measures": []}, "one measure"),
        ({"runs": [run_of(q="a"), run_of(q="b")]}, "two runs named 'run'"),
        ({"labelings": [labeling_of(q={"a": 1})] * 2}, "two labelings named 'qrels'"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, object], message: str) -> None:
    given = {"runs": [run_of(q="a")], "labelings": [labeling_of(q={"a": 1})], "measures": ["P@5"]} | change
    with pytest.raises(UsageError, match=message):
        evaluate(**given)  # type: ignore[arg-type]


def test_nothing_retrieved_and_nothing_labelled_still_has_a_shape() -> None:
    empty, labeling = Run("empty", [], [], []), labeling_of(q={"a": 1})
    names = ["P@1", "AP", "nDCG", "ERR", "Judged", "SetF", "RR", "R@2", "F1@1", "AUC", "MeanRank"]
    found = evaluate([empty], [labeling], names)
    np.testing.assert_array_equal(found.values.ravel(), [0] * 9 + [np.nan] * 2)
    nothing = labeling_of(other={"a": 1})
    assert only(run_of(q="a"), nothing, "P@1", query_ids=["q"]).not_applicable == 1
    assert only(empty, nothing, "P@1", query_ids=["q"]).value == 0
    both = evaluate([empty, run_of(q="a")], [nothing], ["P@1"], query_ids=["q"]).summary
    assert [mean.not_applicable for mean in both] == [1, 1], "a query that any run answers has no value for either"
    found = evaluate([empty, run_of(q="a")], [nothing], ["P@1"], query_ids=[])
    assert found.scores().empty
    assert np.isnan(found.summary[0].value)


@pytest.mark.parametrize(("run", "doc"), [(run_of(q2="a b"), "a"), (run_of(q1="c"), "c"), (run_of(q3="c"), "c")])
def test_two_docs_whose_keys_collide_are_never_taken_for_each_other(run: Run, doc: str) -> None:
    labeling = labeling_of(q2={"c": 1})
    run.ranked_keys = labeling.row_keys.repeat(len(run))
    with pytest.raises(DataError, match=f"{doc!r} and 'c' have the same 64-bit hash"):
        evaluate([run], [labeling], ["P@1"], query_ids=["q1", "q2", "q3"])


def test_a_run_whose_lists_follow_each_other_is_joined_without_copies() -> None:
    queries = [f"q{number:02d}" for number in range(50) for _ in range(2000)]
    docs = [f"d{row}" for row in range(len(queries))]
    run = Run("run", queries, docs, np.arange(len(queries), 0, -1))
    some = pd.DataFrame({"query_id": queries[::1000], "doc_id": docs[::1000], "relevance": 1.0})
    labeling = Labeling("x", Scale.parse("binary"), some)
    tracemalloc.start()
    joined = Join([run], [labeling], [*dict.fromkeys(queries)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert joined.hit_rank.tolist() == [1, 1001] * 50
    # Half a column for what is found of each row, and some blocks of rows; with copies it was five columns and more.
    assert peak < 2 * 8 * len(queries)
    # Of every second query only, the rows in between are left out.
    half = Join([run], [labeling], [*dict.fromkeys(queries)][::2])
    assert half.hit_rank.tolist() == [1, 1001] * 25
    assert half.retrieved.tolist() == [[2000] * 25]
