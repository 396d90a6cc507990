"""A user's own measure: a function of one list, in a notebook cell or a file."""

import math
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import judgekit as jk
from judgekit.errors import UsageError
from judgekit.metrics import DEFINITIONS, Measure, catalog, evaluate, parse_measures
from tests.metrics.material import labeling_of, run_of, scored_run


@pytest.fixture(autouse=True)
def the_catalogue_as_it_was() -> Iterator[None]:
    with patch.dict(DEFINITIONS):
        yield


def first_good(ranked, judged, cutoff, *, least=1.0):
    """First document good."""
    return float(ranked[0] >= least)


def value(measure: str) -> float:
    return jk.score([run_of(q="a")], [labeling_of(q={"a": 1})], measure).values.item()


def test_a_function_of_one_list_is_a_measure_with_a_spelling() -> None:
    assert jk.measure("FirstGood", rewards="a good first document")(first_good) is first_good
    run, labeling = run_of(q1="a b", q2="b a", q3="z"), labeling_of("grades:3", q1={"a": 2}, q2={"a": 3}, q3={"a": 1})
    found = jk.score([run], [labeling], "FirstGood(least=2)@5 nDCG@5 FirstGood")
    assert found.values[0, 0, 0].tolist() == [1, 0, 0]
    assert found.scores()["measure"].unique().tolist() == ["FirstGood(least=2)@5", "nDCG@5", "FirstGood"]
    assert Measure(str(found.measures[0])) == found.measures[0]
    about = catalog()[-1]
    assert (about.name, about.title, about.rewards) == ("FirstGood", "First document good.", "a good first document")
    with pytest.raises(UsageError, match="name the measure"):
        jk.measure(first_good)


def test_the_function_sees_labels_in_rank_order_within_the_cutoff_and_all_of_the_query() -> None:
    seen = []
    jk.measure("Seen")(lambda ranked, judged, cutoff: seen.append((ranked.tolist(), sorted(judged), cutoff)) or 0)
    labeling = labeling_of("grades:3", "l", q1={"b": 2, "a": 1, "c": 0, "gone": 3}, q2={"a": 1})
    evaluate([run_of("one", q1="a x b c", q2="y")], [labeling], ["Seen@3", "Seen"])
    for k, listed in ((3, [1, math.nan, 2]), (None, [1, math.nan, 2, 0])):
        for ranked, judged in ((listed, [0, 1, 2, 3]), ([math.nan], [1])):
            found = seen.pop(0)
            np.testing.assert_array_equal(found[0], ranked)
            assert found[1:] == (judged, k)
    assert not seen


def test_what_judgekit_defines_by_arrays_a_function_of_one_list_can_repeat() -> None:
    @jk.measure("MyR")
    def my_recall(ranked, judged, cutoff, *, rel=None):
        return (ranked >= rel).sum() / max((judged >= rel).sum(), 1)

    @jk.measure("MyMeanRank", lower_is_better=True)
    def my_mean_rank(ranked, judged, *, rel=None):
        ranks = np.flatnonzero(ranked >= rel)
        return ranks[0] + 1 if len(ranks) else math.nan

    rng = np.random.default_rng(3)
    lists = {f"q{i}": {f"d{d}": float(rng.random()) for d in rng.permutation(12)[:7]} for i in range(10)}
    runs = [scored_run(name, **dict([*lists.items()][part])) for name, part in (("a", slice(8)), ("b", slice(5, 10)))]
    labels = {f"q{i}": {f"d{d}": int(rng.integers(4)) for d in range(9)} for i in range(9)}
    holes = labeling_of(name="holes", q1={"d1": 1, "d2": "failed"}, q2={"d3": "not_applicable"}, q3={"d4": 1})
    labelings = [labeling_of("grades:3:2", "all", **labels), holes]
    for options in ({}, {"missing": "zero"}, {"missing": "condense"}):
        for mine, ours in (("MyR@3", "R@3"), ("MyR(rel=3)", "R(rel=3)"), ("MyMeanRank", "MeanRank")):
            found = evaluate(runs, labelings, [mine, ours], **options)
            np.testing.assert_array_equal(found.values[0], found.values[1])
    assert Measure("MyMeanRank").lower_is_better
    with pytest.raises(UsageError, match="MyR has no bounds"):
        evaluate(runs, labelings, ["MyR"], missing="bounds")
    with pytest.raises(UsageError, match="takes no cutoff"):
        Measure("MyMeanRank@3")
    unit = labeling_of("unit", q={"a": 0.5, "b": 0.2})
    assert "give rel=, as in MyR(rel=0.5)@2" in evaluate([run_of(q="a b")], [unit], ["MyR@2"]).summary[0].reason
    assert evaluate([run_of(q="a b")], [unit], ["MyR(rel=0.2)@1"]).values.item() == 0.5


def test_a_function_is_not_asked_where_its_answer_would_not_count() -> None:
    jk.measure("Divides")(lambda ranked, judged: 1 / len(judged))
    labelings = [
        labeling_of(name="x", q1={"a": 1}),
        labeling_of(name="y", q2={"a": 1}, q3={"a": "failed"}, q4={"a": 1}),
    ]
    found = evaluate([run_of(q1="a", q2="a", q3="a")], labelings, ["Divides"])
    np.testing.assert_array_equal(found.values[0, :, 0], [[1, *[math.nan] * 3], [math.nan, 1, math.nan, 0]])


def test_the_same_function_may_be_declared_again_and_no_other_of_that_name() -> None:
    def cell(result: float) -> float:
        @jk.measure("Mine")
        def mine(ranked, judged):
            return result

        return value("Mine")

    assert (cell(0.25), cell(0.75)) == (0.25, 0.75)
    taken = {"Mine": "Mine, declared by", "mine": "Mine, declared by", "P": "P of judgekit"}
    taken |= {"map": "AP"}
    for name, by in taken.items():
        with pytest.raises(UsageError, match=f"there is already a measure {by}.*choose another name"):
            jk.measure(name)(first_good)
    with pytest.raises(UsageError, match="is not a name"):
        jk.measure("Mine@5")(first_good)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda labels: 0, r"function of \(ranked, judged\).*of \(labels\)"),
        (lambda ranked, judged, *rest: 0, r"of \(ranked, judged, \*rest\)"),
        (lambda ranked, judged, cutoff, /: 0, "function of"),
        (lambda ranked, judged, k: 0, "parameter 'k' needs a default"),
        (lambda ranked, judged, rel=(1, 2): 0, "'rel' needs a default that is True, False, a number or a text"),
        (sum, "not a builtin_function_or_method"),
    ],
)
def test_a_function_of_another_form_is_refused(function, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        jk.measure("Odd")(function)
    assert "Odd" not in DEFINITIONS


def test_parameters_are_checked_by_the_kind_of_their_defaults() -> None:
    @jk.measure("Kinds")
    def kinds(ranked, judged, *, by="k", strict=False, least=1):
        return {"k": 1, "n": 2}[by] + strict + least

    assert value("Kinds(by=n, strict=True, least=0.5)") == 3.5
    for text in ("Kinds(by=3)", "Kinds(strict=1)", "Kinds(least=x)", "Kinds(more=1)"):
        with pytest.raises(UsageError, match="Kinds"):
            Measure(text)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        *((lambda ranked, judged, odd=odd: odd, "is .*not a number") for odd in ("1", math.inf)),
        (lambda ranked, judged: None, "is .*not a number"),
        (lambda ranked, judged: [0.5], "is .*not a number"),
        (lambda ranked, judged: ranked[7], r": IndexError: .*\(test_own.py, line"),
    ],
)
def test_what_is_no_number_or_fails_is_said_with_its_place(function, said: str) -> None:
    jk.measure("Broken")(function)
    with pytest.raises(UsageError, match=f"Broken of query 'q' in run under qrels ?{said}"):
        value("Broken")


MINE = """
import judgekit as jk

@jk.measure("FromFile")
def from_file(ranked, judged, cutoff):
    return {value}
"""


def test_a_spelling_may_name_the_file_that_declares_its_measure(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE.format(value=0.5))
    assert [str(m) for m in parse_measures(["mine.py:FromFile@5", "P"], tmp_path)] == ["FromFile@5", "P"]
    assert [str(m) for m in parse_measures(f"nDCG@10, {file}:FromFile@5 P")] == ["nDCG@10", "FromFile@5", "P"]
    assert value(f"{file}:FromFile@5") == value("FromFile") == 0.5
    file.write_text(MINE.format(value=0.75))
    assert value(f"{file}:FromFile@5") == 0.75
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text(MINE.format(value=0.5))
    with pytest.raises(UsageError, match=r"already a measure FromFile, declared by from_file in .*mine.py"):
        parse_measures(["mine.py:FromFile"], tmp_path / "other")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "mine.py: unknown measure 'FromFile': none are defined"),
        (MINE.replace("FromFile", "P"), "there is already a measure P of judgekit"),
    ],
)
def test_a_file_that_does_not_declare_it_is_said(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "mine.py").write_text(source)
    with pytest.raises(UsageError, match=message):
        parse_measures(["mine.py:FromFile@5"], tmp_path)


def test_measures_of_ir_measures_are_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    given = [ir_measures.nDCG(dcg="exp-log2") @ 10, ir_measures.P(rel=2) @ 5, ir_measures.AP]
    found = jk.score([run_of(q="a")], [labeling_of(q={"a": 1})], given)
    assert [str(m) for m in found.measures] == ["nDCG(dcg='exp-log2')@10", "P(rel=2)@5", "AP"]
    with pytest.raises(UsageError, match=r"a measure is a spelling such as .* not a int"):
        jk.score([run_of(q="a")], [labeling_of(q={"a": 1})], [5])
