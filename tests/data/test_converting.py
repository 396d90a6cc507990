# ruff: noqa: E501 - a case stands in one line
"""Whatever is written in one form and read back is the same data."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgekit.data.converting import OUT, convert
from judgekit.data.documents import Doc, Query
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.readers import read_docs, read_queries, write_docs, write_queries
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, id_problem
from judgekit.data.trec import read_qrels, read_run, write_qrels, write_run
from judgekit.errors import UsageError

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
strange = st.sampled_from(["007", "NA", "null", "1e5", "-1", "#", "a,b", 'q"x', "é", "1", "0.5"])
# An id that begins as JSON does, in the first line of a file without a header, is one for which a form has to be told.
ids = st.one_of(strange, text).filter(lambda i: id_problem(i) is None and i != ALL and i[0] not in "[{<")
words = text.filter(lambda t: bool(t.strip()))
pairs = st.dictionaries(st.tuples(ids, ids), st.integers(-3, 50), min_size=1, max_size=6)
ENDING = {
    "trec": ".trec",
    "msmarco": ".tsv",
    "beir": ".jsonl",
    "dpr": ".jsonl",
    "castorini": ".jsonl",
    "topics": ".txt",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("converted")


def path_of(folder: Path, form: str) -> Path:
    return folder / f"out{ENDING.get(form, '.' + form)}"


@pytest.mark.parametrize("form", [form for form in OUT["run"] if form not in ("dpr", "castorini")])
@settings(max_examples=8)
@given(found=pairs)
def test_a_run_survives_every_form(form: str, found: dict[tuple[str, str], int], folder: Path) -> None:
    run = Run("run", [q for q, _ in found], [d for _, d in found], [float(v) for v in found.values()])
    write_run(run, folder / "in.trec")
    out = path_of(folder, form)
    convert(folder / "in.trec", out, "run", format_out=form)
    again = read_run(out)
    assert all(again.top(q) == run.top(q) for q in run.query_ids)
    assert form == "msmarco" or again.scores.tolist() == run.scores.tolist()
    convert(out, folder / "back.trec", "run")
    assert read_run(folder / "back.trec").top(str(run.query_ids[0])) == run.top(str(run.query_ids[0]))


@pytest.mark.parametrize("form", OUT["qrels"])
@settings(max_examples=8)
@given(found=pairs)
def test_qrels_survive_every_form(form: str, found: dict[tuple[str, str], int], folder: Path) -> None:
    (folder / "in.qrels").write_text("".join(f"{q} 0 {d} {v}\n" for (q, d), v in found.items()))
    labeling = read_qrels(folder / "in.qrels")
    out = path_of(folder, "tsv" if form == "beir" else form)
    convert(folder / "in.qrels", out, format_out=form)
    again = read_qrels(out)
    columns = ["query_id", "doc_id", "relevance"]
    assert again.table[columns].equals(labeling.table[columns])
    assert str(again.scale) == str(labeling.scale)


@pytest.mark.parametrize("form", [form for form in OUT["queries"] if form not in ("dpr", "castorini", "topics")])
@settings(max_examples=8)
@given(
    found=st.lists(
        st.builds(Query, ids, words, st.lists(words, max_size=2).map(tuple)), min_size=1, unique_by=lambda q: q.query_id
    )
)
def test_queries_survive_every_form(form: str, found: list[Query], folder: Path) -> None:
    write_queries(found, folder / "in.jsonl")
    out = path_of(folder, form)
    convert(folder / "in.jsonl", out, "queries", format_out=form)
    assert [(q.query_id, q.text, q.answers) for q in read_queries(out).values()] == [
        (q.query_id, q.text, q.answers) for q in found
    ]


@pytest.mark.parametrize("form", OUT["docs"])
@settings(max_examples=8)
@given(found=st.lists(st.builds(Doc, ids, text, text), min_size=1, unique_by=lambda d: d.doc_id))
def test_docs_survive_every_form(form: str, found: list[Doc], folder: Path) -> None:
    write_docs(found, folder / "in.jsonl")
    out = path_of(folder, form)
    convert(folder / "in.jsonl", out, "docs", format_out=form)
    assert [(d.doc_id, d.text, d.title) for d in read_docs(out)] == [(d.doc_id, d.text, d.title) for d in found]


def test_topics_and_nested_forms_survive(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(
        '{"id": "q1", "question": "who?", "answers": ["Ann"], "ctxs": [{"id": "d2", "title": "A", "text": "b", "score": 2},'
        ' {"id": "d1", "title": "", "text": "a", "score": 1}]}\n'
    )
    queries, docs, run = (read(tmp_path / "in.jsonl") for read in (read_queries, read_docs, read_run))
    for form in ("dpr", "castorini"):
        out = tmp_path / f"{form}.jsonl"
        convert(tmp_path / "in.jsonl", out, "run", format_out=form)
        assert read_run(out).frame().equals(run.frame())
        assert read_docs(out).get(["d1", "d2"]) == docs.get(["d1", "d2"])
        assert [q.text for q in read_queries(out).values()] == [q.text for q in queries.values()]
    convert(tmp_path / "in.jsonl", tmp_path / "topics.txt", "queries", format_out="topics")
    assert [q.text for q in read_queries(tmp_path / "topics.txt").values()] == ["who?"]


def test_decimals_become_grades_that_every_tool_reads(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("query_id,doc_id,relevance\nq1,d1,0.7\nq1,d2,0.2\n")
    with pytest.raises(Exception, match=r"0.7 is not a whole number: declare"):
        convert(tmp_path / "x.csv", tmp_path / "x.qrels")
    told = convert(tmp_path / "x.csv", tmp_path / "x.qrels", scale="unit", min_grade=0.5)
    assert told == "2 labels as trec"
    assert (tmp_path / "x.qrels").read_text() == "q1 0 d1 1\nq1 0 d2 0\n"
    convert(tmp_path / "x.csv", tmp_path / "x.json", scale="unit", min_grade=0.5)
    assert read_qrels(tmp_path / "x.json").relevance.tolist() == [1, 0]


def test_what_may_be_several_things_has_to_be_said(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"_id": "1", "text": "a"}\n')
    with pytest.raises(UsageError, match=r"holds queries or docs; choose what to convert with --kind"):
        convert(tmp_path / "x.jsonl", tmp_path / "y.csv")
    with pytest.raises(UsageError, match=r"unknown kind of data 'quries'.*Did you mean 'queries'"):
        convert(tmp_path / "x.jsonl", tmp_path / "y.csv", "quries")
    with pytest.raises(UsageError, match="docs are not written as 'trec': --format-out is one of jsonl"):
        convert(tmp_path / "x.jsonl", tmp_path / "y.csv", "docs", format_out="trec")
    labels = Labeling("x", Scale.parse("binary"), read_qrels_frame())
    write_qrels(labels, tmp_path / "a.qrels")
    assert convert(tmp_path / "a.qrels", tmp_path / "a.csv") == "1 labels as csv"


def read_qrels_frame():
    import pandas as pd

    return pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "relevance": [1.0]})


@pytest.mark.parametrize("out", ["out.qrels", "out.csv"])
def test_converting_says_how_many_labels_are_missing(out: str, tmp_path: Path) -> None:
    (tmp_path / "in.qrels").write_text("q1 0 a 1\nq1 0 b 0\n")
    (tmp_path / "in.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq1\tc\tfailed\n")
    told = convert(tmp_path / "in.qrels", tmp_path / out)
    assert told.startswith("2 labels as ")
    assert ", 1 missing ones " + ("listed in out.missing.tsv" if out.endswith("qrels") else "left out") in told


@pytest.mark.parametrize("out", ["out.qrels", "out.csv"])
def test_a_least_grade_that_is_not_a_number_is_refused(out: str, tmp_path: Path) -> None:
    (tmp_path / "in.qrels").write_text("q1 0 a 1\n")
    with pytest.raises(UsageError, match="--min-grade must be a number"):
        convert(tmp_path / "in.qrels", tmp_path / out, min_grade=float("nan"))


@pytest.mark.parametrize("third", ["1", "8.5"])
def test_three_columns_may_be_a_run_or_scores_and_have_to_be_told(third: str, tmp_path: Path) -> None:
    (tmp_path / "in.tsv").write_text(f"q1\td1\t{third}\nq2\td2\t{third}\n")
    with pytest.raises(UsageError, match=r"holds scores or run.* choose what to convert with --kind"):
        convert(tmp_path / "in.tsv", tmp_path / "out.csv")


def test_nothing_is_converted_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "in.qrels").write_text("q1 0 a 1\n")
    with pytest.raises(UsageError, match="OUT must be a file"):
        convert(tmp_path / "in.qrels", "-")


@pytest.mark.parametrize(("form", "kind"), [("beir", "qrels"), ("msmarco", "run")])
def test_an_id_keeps_its_quotes(form: str, kind: str, tmp_path: Path) -> None:
    content = {"qrels": '"q" 0 "a" 1\n"q" 0 "b 0\n', "run": '"q" Q0 "a" 1 2 r\n"q" Q0 "b 2 1 r\n'}[kind]
    (tmp_path / "in.trec").write_text(content)
    convert(tmp_path / "in.trec", tmp_path / "out.tsv", kind, format_out=form)
    convert(tmp_path / "out.tsv", tmp_path / "back.trec", kind)
    assert [line.split()[:3:2] for line in (tmp_path / "back.trec").read_text().splitlines()] == [
        ['"q"', '"a"'],
        ['"q"', '"b'],
    ]
