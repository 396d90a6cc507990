"""Labels by people: grades and votes."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from scipy.stats import binomtest

from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.data.trec import Asked
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Label, Labeler, build
from judgekit.labelers.contract import checked
from judgekit.labelers.human import wilson
from tests.labelers.scripted import Here

UNIT = Unit(Query("q1", "?"), tuple(Doc(d, "x") for d in "abcd"))


def labeler(tmp_path: Path, text: str, options: str = "", name: str = "people.csv") -> Labeler:
    (tmp_path / name).write_text(text)
    return build(f"human(file='{name}'{options})", Here(tmp_path))


def said(found: Labeler) -> list[float | None]:
    return [label.relevance for label in checked(found, UNIT, [])]


GRADES = "query_id,doc_id,relevance\n"
VOTES = "query_id,shown,chosen\n"
ROWS = ("a2", "b0", "c3")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.qrels", "q1 0 a 2\nq1 0 b 0\nq1 0 c 3\n"),
        ("g.csv", GRADES + "".join(f"q1,{d},{r}\n" for d, r in ROWS)),
        ("g.tsv", "query_id\tdoc_id\tassessor\trelevance\nq1\ta\tme\t2\nq1\tb\tme\t0\nq1\tc\tyou\t3\n"),
        ("g.jsonl", "".join(f'{{"query_id": "q1", "doc_id": "{d}", "relevance": {r}}}\n' for d, r in ROWS)),
    ],
)
def test_grades_are_read_from_qrels_and_from_tables(name: str, text: str, tmp_path: Path) -> None:
    found = labeler(tmp_path, text, name=name)
    assert said(found) == [2, 0, 3, 0]
    assert str(found.scale) == "grades:3"
    assert found.needs.people
    assert [label.extra["judged"] for label in checked(found, UNIT, [])] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("rows", "options", "labels", "scale"),
    [
        ("q1,a,0.5\nq1,b,1\n", ", scale=unit", [0.5, 1, 0, 0], "unit"),
        ("q1,a,1.8\nq1,b,5\nq1,c,0.2\n", ", scale='means:5:2'", [1.8, 5, 0.2, 0], "means:5:2"),
        ("q1,a,1\n", "", [1, 0, 0, 0], "binary"),
        ("q1,a,-2\n", "", [-2, 0, 0, 0], "grades:-2..1"),
    ],
)
def test_a_scale_can_be_declared(rows: str, options: str, labels: list[float], scale: str, tmp_path: Path) -> None:
    found = labeler(tmp_path, GRADES + rows, options)
    assert (said(found), str(found.scale)) == (labels, scale)


def test_a_document_that_nobody_saw_is_not_relevant_or_missing(tmp_path: Path) -> None:
    labels = checked(labeler(tmp_path, GRADES + "q1,a,1\n", ", unlisted=missing"), UNIT, [])
    assert [x.status for x in labels] == [Status.OK, *[Status.UNASKED] * 3]
    assert labels[1].reason == "nobody was asked about this document"


def test_a_sample_knows_the_scale_and_whom_nobody_was_asked_about(tmp_path: Path) -> None:
    rows = (("q1", "a", 0.5, "", "ok", 1),)
    Asked("s", "pairs", "grades:3:2", queries=1, pairs=4, rows=rows).write(tmp_path / "people.qrels")
    found = labeler(tmp_path, "q1 0 a 1\n", name="people.qrels")
    assert (str(found.scale), said(found)) == ("grades:3:2", [1, None, None, None])
    assert checked(found, UNIT, [])[1].status is Status.UNASKED
    declared = labeler(tmp_path, "q1 0 a 1\n", ", scale='grades:2'", name="people.qrels")
    assert str(declared.scale) == "grades:2"


@pytest.mark.parametrize("text", [GRADES + "q2,a,1\n", VOTES + "q2,a b,a\n", "q2 0 a 1\n"])
def test_a_query_that_nobody_saw_is_not_applicable_unless_the_user_says_zero(text: str, tmp_path: Path) -> None:
    for unlisted in ("", ", unlisted=missing"):
        found = checked(labeler(tmp_path, text, unlisted), UNIT, [])
        assert {x.status for x in found} == {Status.NOT_APPLICABLE}
        assert found[0].reason == "the file does not judge this query"
    assert said(labeler(tmp_path, text, ", unlisted=zero")) == [0] * 4


@pytest.mark.parametrize("shown", ["a b c", "a|b|c", "a| b |c"])
def test_a_vote_is_times_chosen_over_times_shown(shown: str, tmp_path: Path) -> None:
    found = labeler(tmp_path, VOTES + f"q1,{shown},a\nq1,a b,b\nq1,a b,none\nq1,b a,a\n")
    assert said(found) == [0.5, pytest.approx(1 / 4), 0, 0]
    assert str(found.scale) == "unit"
    a, _, c, d = (dict(label.extra) for label in checked(found, UNIT, []))
    low, high = wilson(2, 4)
    assert a == {"judged": 1, "shown": 4, "chosen": 2, "ci_low": low, "ci_high": high}
    assert (c["judged"], c["shown"], c["chosen"]) == (1, 1, 0)
    assert d == {"judged": 0}


def test_votes_are_read_from_json_lists_and_a_doc_may_be_called_none(tmp_path: Path) -> None:
    rows = [
        {"query_id": "q1", "shown": ["a", "None"], "chosen": "None"},
        {"query_id": "q1", "shown": ["a", "b"], "chosen": "none"},
    ]
    found = labeler(tmp_path, "\n".join(map(json.dumps, rows)), name="v.jsonl")
    unit = Unit(Query("q1", "?"), (Doc("None", "x"), Doc("a", "x")))
    assert [label.relevance for label in checked(found, unit, [])] == [1.0, 0.0]


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_intervals_are_those_of_scipy(counts: tuple[int, int]) -> None:
    chosen, shown = counts
    exact = binomtest(chosen, shown).proportion_ci(method="wilson")
    assert wilson(chosen, shown) == pytest.approx((exact.low, exact.high), abs=1e-12)


RANKS = "query_id,doc_id,rank,assessor\n"
BY_THREE = "q1,a,1,ann\nq1,b,2,ann\nq1,c,3,ann\nq1,b,1,bob\nq1,a,2,bob\nq1,c,3,bob\nq1,a,1,cy\nq1,b,1,cy\n"


def test_a_ranking_is_times_put_first_over_times_ranked(tmp_path: Path) -> None:
    found = labeler(tmp_path, RANKS + BY_THREE)
    assert said(found) == [pytest.approx(2 / 3), pytest.approx(2 / 3), 0, 0]
    assert str(found.scale) == "unit"
    a, _, c, d = (dict(label.extra) for label in checked(found, UNIT, []))
    low, high = wilson(2, 3)
    assert a == {
        "judged": 1,
        "shown": 3,
        "chosen": 2,
        "ci_low": low,
        "ci_high": high,
    }
    assert (c["shown"], c["chosen"], d) == (2, 0, {"judged": 0})


def test_a_place_may_count_as_well_as_the_first(tmp_path: Path) -> None:
    text = RANKS + "q1,a,1,ann\nq1,b,2,ann\nq1,c,3,ann\nq1,b,1,bob\nq1,c,2,bob\nq2,a,1,ann\nq3,a,1,ann\nq3,b,1,ann\n"
    (tmp_path / "people.csv").write_text(text)
    by_place = build("human(file=people.csv, ranks=borda)", Here(tmp_path))

    def of(query_id: str, doc_id: str) -> Label:
        return by_place.label(Unit(Query(query_id, "?"), (Doc(doc_id, "x"),)), [])[0]

    # Of Ann's three b stands above one of two, of Bob's two above the other.
    assert [of("q1", doc).relevance for doc in "abc"] == [1.0, 0.75, 0.0]
    assert of("q3", "a").relevance == of("q3", "b").relevance == 0.5
    assert of("q2", "a").status is Status.UNASKED, "who is ranked alone has no place, and is not the worst"
    (tmp_path / "grades.csv").write_text("query_id,doc_id,relevance\nq1,a,1\n")
    with pytest.raises(UsageError, match=r"ranks is an option for rankings, but grades\.csv holds grades"):
        build("human(file=grades.csv, ranks=borda)", Here(tmp_path)).scale  # noqa: B018


def test_one_persons_ranking_needs_no_assessor(tmp_path: Path) -> None:
    found = labeler(tmp_path, "query_id,doc_id,rank\nq1,b,1\nq1,a,2\n")
    assert said(found) == [0, 1, 0, 0]


TWO = "line 2: shown must list two or more distinct doc ids"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GRADES, "holds no rows"),
        ("query_id,doc_id,grade\nq1,a,1\n", "has the columns query_id, doc_id, grade; expected labels by people"),
        ("query_id,doc_id,relevance,shown,chosen\nq1,a,1,a b,a\n", "has the columns"),
        (GRADES + "q1,a,high\n", "line 2: 'relevance' must be a finite number, not 'high'"),
        (GRADES + "q1,a,0.5\n", "line 2: the relevance 0.5 is not a whole number: declare"),
        (GRADES + "q1,a,1.8\nq1,b,5\n", "scale='means:5:2'"),
        (GRADES + "q1,,1\n", "line 2: 'doc_id' is empty"),
        (VOTES + "q1,a b,c\n", "line 2: chosen must be one of those shown or none, not 'c'"),
        (VOTES + "q1,a b,\n", "line 2: chosen is empty: write none if no document was good"),
        ('{"query_id": "q1", "shown": ["a", "b"], "chosen": null}\n', "line 1: chosen is empty: write none"),
        ('{"query_id": "q1", "shown": ["a", "b"], "chosen": 1}\n', "line 1: chosen must be a text, not 1"),
        *((VOTES + "q1,a,a\n", TWO), (VOTES + "q1,a a,a\n", TWO), (VOTES + "q1,a|1 b|2,none\n", TWO)),
        (RANKS + "q1,a,0,ann\n", "line 2: rank must be a number, 1 for the best document, not '0'"),
        (RANKS + "q1,a,first,ann\n", "line 2: rank must be a number, 1 for the best document, not 'first'"),
        (RANKS + "q1,a,1,ann\nq1,a,2,ann\n", "line 3: 'a' is ranked twice for query 'q1' by 'ann'"),
        ("query_id,doc_id,relevance,rank\nq1,a,1,1\n", "has the columns"),
        ("q1 0 a\n", "expected labels by people"),
        ("q1 0 a x\n", "line 1"),
    ],
)
def test_bad_files_are_errors_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        labeler(tmp_path, text)


def test_mistakes_end_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nobody\.csv"):
        build("human(file='nobody.csv')", Here(tmp_path))
    with pytest.raises(DataError, match="line 3: the relevance 10 is outside the scale grades:3"):
        labeler(tmp_path, GRADES + "q1,a,1\nq1,b,10\n", ", scale='grades:3'")
