# ruff: noqa: E501 - a case stands in one line
"""Every form that this field keeps its data in is recognised by content, and a bad line in each is named."""

import bz2
import datetime
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import judgekit as jk
from judgekit.data.documents import Doc
from judgekit.data.fields import DECLARED
from judgekit.data.files import read_table
from judgekit.data.forms import content_id, forms, in_order
from judgekit.data.forms.delimited import commented
from judgekit.data.forms.own import FORMS
from judgekit.data.frames import as_docs, as_queries, as_runs
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.recognise import recognise
from judgekit.data.tables import ANSWERS, RATINGS, SCORES
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, UsageError
from judgekit.registry import register

RUN = {("q1", "d1"): 2.0, ("q1", "d2"): 1.0, ("q2", "d2"): 0.5}
QRELS = {("q1", "d1"): 2.0, ("q1", "d2"): 0.0, ("q2", "d2"): 1.0}
ANSWERS_OF = {"q1": ("who wrote it?", ("Ann",)), "q2": ("who read it?", ("Bo", "Bob"))}
UNANSWERED = {query_id: (text, ()) for query_id, (text, _) in ANSWERS_OF.items()}


def lines(*objects: object) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in objects).encode()


def put(tmp_path: Path, content: bytes, name: str = "data") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def pairs_of_run(path: str | Path) -> dict[tuple[str, str], float]:
    return {(row.query_id, row.doc_id): row.score for row in read_run(path).frame().itertuples()}


def pairs_of_qrels(path: str | Path) -> dict[tuple[str, str], float]:
    return {(row.query_id, row.doc_id): row.relevance for row in read_qrels(path).table.itertuples()}


def lists_of_run(path: str | Path) -> dict[str, list[str]]:
    run = read_run(path)
    return {query_id: run.top(query_id) for query_id in run.query_ids}


def answers_of(path: str | Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {query_id: (query.text, query.answers) for query_id, query in read_queries(path).items()}


TREC = b"q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0 t\nq2 Q0 d2 1 0.5 t\n"
BY_QUERY = {"q1": {"d1": 2, "d2": 1}, "q2": {"d2": 0.5}}
GRADES = {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1}}
RUNS: dict[str, bytes] = {
    "TREC": TREC,
    "CSV": b"query_id,doc_id,score\nq1,d1,2\nq1,d2,1\nq2,d2,0.5\n",
    "CSV with more columns": b"rank,docid,qid,score,text\n1,d1,q1,2,a b\n2,d2,q1,1,\n1,d2,q2,0.5,c\n",
    "TSV": b"qid\tdocno\tscore\r\nq1\td1\t2\r\nq1\td2\t1\r\nq2\td2\t.5\r\n",
    "TREC behind comments (ir_metadata)": b"# ir_metadata.start\n# tag: a run of mine 1\n#\n# ir_metadata.end\n" + TREC,
    "TREC behind comments, spaced": b"# platform:\tx\n" + TREC.replace(b" Q0 ", b"  Q0  "),
    "JSON by query": json.dumps(BY_QUERY).encode(),
    # As MTEB 2.26.24 writes it (generated: the package needs torch to write one).
    "MTEB": json.dumps({"mteb_model_meta": {"model_name": "m", "revision": None}, "default": {"test": BY_QUERY}}).encode(),
    # As sentence-transformers 6.2.0 writes it (generated likewise).
    "sentence-transformers": lines(
        *({"query_id": q, "query": "?", "results": [{"corpus_id": d, "score": s} for d, s in docs.items()]} for q, docs in BY_QUERY.items()),
        {"query_id": "q3", "query": "?", "results": []},
    ),
    "JSON lines": lines(*({"query_id": q, "doc_id": d, "score": s} for (q, d), s in RUN.items())),
    "DPR": lines(
        {"id": "q1", "question": "?", "ctxs": [{"id": "d1", "text": "a", "score": "2"}, {"id": "d2", "text": "b", "score": "1"}]},
        {"id": "q2", "question": "?", "ctxs": [{"id": "d2", "text": "b", "score": "0.5", "has_answer": True}]},
    ),
}  # fmt: skip


RANKED: dict[str, bytes] = {
    "CSV with ranks": b"query_id,doc_id,rank\nq1,d1,1\nq1,d2,2\nq2,d2,1\n",
    "KILT guesses": lines(
        {"id": "q1", "input": "?", "output": [{"answer": "x", "provenance": [{"wikipedia_id": "d1"}, {"wikipedia_id": "d2"}, {"wikipedia_id": "d1"}]}]},
        {"id": "q2", "input": "?", "output": [{"provenance": [{"wikipedia_id": "d2"}]}]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "kind"), [("2", "qrels"), ("1e999", "run"), ("2.5", "run"), ("5", "run"), ("nan", "qrels")]
)
def test_small_whole_numbers_under_score_are_grades(tmp_path: Path, cell: str, kind: str) -> None:
    assert recognise(put(tmp_path, b"query_id,doc_id,score\nq1,d1,1\nq1,d2," + cell.encode() + b"\n")).kinds == (kind,)


@pytest.mark.parametrize("table", [RATINGS, SCORES])
@pytest.mark.parametrize("name", ["trec", *(form.name for form in FORMS.values() if form.nested)])
def test_a_form_without_rows_is_refused_for_a_table(tmp_path: Path, table: Any, name: str) -> None:
    path = put(tmp_path, b"q1 Q0 d1 1 2 x\n")
    with pytest.raises(DataError, match=f"is read as '{name}', which has no rows"):
        read_table(table, f"{name}:{path}")


@pytest.mark.parametrize("gold", [[{"page": 3}], [None], ["by Ann", {"text": None}]])
def test_a_relevant_passage_has_an_id_or_a_text(tmp_path: Path, gold: list[Any]) -> None:
    path = put(tmp_path, lines({"query_id": "q1", "user_input": "Who?", "response": "Ann", "reference_contexts": gold}))
    with pytest.raises(DataError, match="line 1: 'reference_contexts' holds a passage with neither an id nor a text"):
        read_qrels(path)


def test_numbers_without_a_name_are_neither_ranks_nor_scores_nor_grades(tmp_path: Path) -> None:
    path = put(tmp_path, b"q1\td1\t2\nq1\td2\t1\nq1\td3\t3\n")
    for read, number in ((read_run, "score"), (read_qrels, "relevance"), (read_docs, "score")):
        with pytest.raises(DataError, match=rf"ranks, scores or grades: write tsv\(header='query_id,doc_id,{number}'"):
            read(path)
    assert read_run(f"tsv(header='query_id,doc_id,rank'):{path}").top("q1") == ["d2", "d1", "d3"]
    assert read_run(f"tsv(header='query_id,doc_id,score'):{path}").top("q1") == ["d3", "d1", "d2"]
    assert recognise(path).kinds == ()
    assert "has no header" in recognise(path).why


def test_ranks_that_count_in_each_list_are_those_of_a_run_without_a_header(tmp_path: Path) -> None:
    """As MS MARCO's: scores descend, and grades do not count."""
    path = put(tmp_path, b"q1\td1\t1\nq1\td2\t2\nq1\td3\t3\nq2\td2\t1\n")
    assert lists_of_run(path) == {"q1": ["d1", "d2", "d3"], "q2": ["d2"]}
    assert recognise(path).kinds == ("run",)
    # As ColBERT's, with the score behind the rank; the scores count.
    path = put(tmp_path, b"1\t901\t1\t23.5\n1\t17\t2\t21\n1\t5\t3\t20.5\n2\t901\t1\t9\n", "colbert.tsv")
    assert lists_of_run(path) == {"1": ["901", "17", "5"], "2": ["901"]}
    assert read_run(path).ranked_scores.tolist() == [23.5, 21, 20.5, 9]
    assert recognise(path).kinds == ("run",)
    # Judgments of the documents 1, 2 and 3 count as well.
    for blank in ("\t", " "):
        path = put(tmp_path, "1 0 1 1\n1 0 2 0\n1 0 3 2\n".replace(" ", blank).encode(), "few.qrels")
        assert pairs_of_qrels(path) == {("1", "1"): 1, ("1", "2"): 0, ("1", "3"): 2}
        assert recognise(path).kinds == ("qrels",)
    path = put(tmp_path, b"q1\td1\t1\nq1\td2\t2\nq1\td3\t3\nq2\td2\t1\n")
    numbers = put(tmp_path, b"1\t7\t1\n1\t8\t2\n1\t9\t3\n", "numbers")
    assert recognise(numbers).kinds == ("run",), "whose first row would name a column twice"
    with pytest.raises(DataError, match="lacks the field 'relevance'"):
        read_qrels(path)
    assert lists_of_run(put(tmp_path, path.read_bytes().replace(b"\t", b","), "run.csv")) == lists_of_run(path)
    long = b"".join(b"q\t%d\t%d\n" % (9000 - rank, rank) for rank in range(1, 6000))
    assert lists_of_run(put(tmp_path, long)) == {"q": [str(9000 - rank) for rank in range(1, 6000)]}
    for other in (
        b"q1\td1\t1\nq1\td2\t2\nq2\td2\t1\n",
        b"q1\td1\t1\nq1\td2\t2\nq1\td3\t4\n",
        b"q1\td1\t0\nq1\td2\t1\nq1\td3\t2\n",
    ):
        with pytest.raises(DataError, match="ranks, scores or grades"):
            read_run(put(tmp_path, other))


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize(("mark", "end"), [(";", "\n"), (",", "\r\n")])
def test_excels_line_about_the_separator_is_no_header(start: str, mark: str, end: str, tmp_path: Path) -> None:
    rows = [f"sep={mark}", *(mark.join(row) for row in (["query_id", "doc_id", "relevance"], ["q1", "d1", "2"]))]
    path = put(tmp_path, (start + end.join(rows) + end).encode(), "judged.csv")
    assert pairs_of_qrels(path) == {("q1", "d1"): 2}
    assert recognise(path).kinds == ("qrels",)
    path = put(tmp_path, f"sep={mark}{end}query_id{mark}text{end}q1{mark}Who?{end}".encode(), "asked.csv")
    assert read_queries(path)["q1"].text == "Who?"


def test_distances_are_read_by_the_way_that_the_error_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a frame of LanceDB holds them, beside the question's id."""
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"query_id": ["q1"] * 3, "doc_id": ["a", "b", "c"], "_distance": [0.1, 0.2, 0.75]})
    frame.to_csv("found.csv", index=False)
    frame.to_parquet("found.parquet")
    frame.to_json("found.jsonl", orient="records", lines=True)
    for name in ("found.csv", "found.parquet", "found.jsonl"):
        with pytest.raises(
            DataError, match=r"lacks the field 'score'.*Of distances the lowest is best: write"
        ) as caught:
            read_run(name)
        assert lists_of_run(caught.value.reason.split("write ")[1]) == {"q1": ["a", "b", "c"]}


ROWS_JOINED = {
    "TREC run": (read_run, "q{} Q0 d1 1 2 t\n"),
    "TREC qrels": (read_qrels, "q{} 0 d1 1\n"),
    "collection": (read_docs, "d{}\tone\n"),
    "queries": (read_queries, "q{}\twho?\n"),
}


@pytest.mark.parametrize("form", ROWS_JOINED)
def test_a_byte_order_mark_between_joined_files_is_no_part_of_an_id(form: str, tmp_path: Path) -> None:
    read, rows = ROWS_JOINED[form]
    path = put(tmp_path, f"\ufeff{rows.format(1)}\ufeff{rows.format(2)}".encode())
    with pytest.raises(
        DataError, match=r"'\\ufeff[qd]2' holds a byte order mark, as where files were joined"
    ) as caught:
        read(path)
    assert caught.value.line == rows.count("\n") + 1


def test_cures_of_rows_with_a_column_too_few_make_files_that_are_read(tmp_path: Path) -> None:
    old, new = tmp_path / "OLD", tmp_path / "NEW"
    for read, rows, expected in (
        (pairs_of_qrels, "q1 d1 2\nq1 d2 0\n", {("q1", "d1"): 2, ("q1", "d2"): 0}),
        (pairs_of_run, "q1 Q0 d1 1 2.5\nq1 Q0 d2 2 1\n", {("q1", "d1"): 2.5, ("q1", "d2"): 1}),
    ):
        old.write_text(rows)
        with pytest.raises(DataError, match="write: awk") as caught:
            read(old)
        subprocess.run(caught.value.reason.split("write: ")[1], shell=True, check=True, cwd=tmp_path)
        assert read(new) == expected


def test_comments_behind_the_first_row_of_a_run_are_errors(tmp_path: Path) -> None:
    path = put(tmp_path, b"# a\n" + TREC + b"# b\n", "x.run")
    with pytest.raises(DataError, match=r"x\.run, line 5: has 2 columns, expected 6"):
        read_run(path)
    with pytest.raises(DataError, match=r"line 4: .*'two'"):
        read_run(put(tmp_path, b"# a\n# b\n" + TREC.replace(b"1.0", b"two"), "x.run"))
    assert recognise(put(tmp_path, b"# a\n# b\n" + TREC)).kinds == ("run",)
    spaced = put(tmp_path, b"# a\n\n# b\n\n" + TREC)
    assert pairs_of_run(spaced) == RUN
    assert recognise(spaced).kinds == ("run",)
    hashed = put(tmp_path, b"# x\n" + TREC.replace(b"q1 ", b"# ").replace(b"q2 ", b"#2 "))
    assert lists_of_run(hashed) == {"#": ["d1", "d2"], "#2": ["d2"]}, "a row, of a query whose id begins so"


def test_several_splits_of_mtebs_predictions_are_asked_about(tmp_path: Path) -> None:
    held = {"mteb_model_meta": {}, "en": {"test": BY_QUERY, "dev": {}}}
    with pytest.raises(DataError, match="subset 'en' holds the splits test, dev: keep one of them"):
        read_run(put(tmp_path, json.dumps(held).encode()))
    for wrong in (5, {"test": 5}, {"test": {"q1": 5}}):
        with pytest.raises(DataError, match=r"must (be|hold) an object"):
            read_run(put(tmp_path, json.dumps({"mteb_model_meta": {}, "en": wrong}).encode()))


# Topics in the two ways in which TREC writes them (generated).
SGML = """
<top>
<num> Number: 301
<title> Topic: Crime &amp; law

<desc> Description:
Which laws of < 5 pages
were broken?

<narr> Narrative:
Only laws.
</top>

<top>
<num>302</num>
<title>Polio</title>
<desc>Is it?</desc>
</top>
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<!-- made -->
<topics task="x">
  <topic number="1"><query>origin</query><question>where from?</question></topic>
  <topic number="2"><query>mask</query><question>how worn?</question></topic>
</topics>
"""


def test_topics_of_trec_are_queries(tmp_path: Path) -> None:
    path = put(tmp_path, SGML.encode(), "topics.txt")
    assert {q.query_id: q.text for q in read_queries(path).values()} == {"301": "Crime & law", "302": "Polio"}
    first = read_queries(f"topics(text=description):{path}")["301"]
    assert first.text == "Which laws of < 5 pages were broken?"
    assert first.columns["narrative"] == "Only laws."
    assert recognise(path).kinds == ("query",)
    bare = put(
        tmp_path, b"<topics>\n<topic number='7'>\nA man, 45 &gt; 40.\n</topic>\n<topic number='8'>B</topic></topics>"
    )
    assert {q.query_id: q.text for q in read_queries(bare).values()} == {"7": "A man, 45 > 40.", "8": "B"}
    web = b"""<?xml version="1.0"?>
    <webtrack2012>
    <topic number="151" type="single"><query>403b</query><description>What is it?</description>
    <subtopic number="1" type="nav">A plan</subtopic><subtopic number="2" type="inf">A form</subtopic></topic>
    </webtrack2012>"""
    [asked] = read_queries(put(tmp_path, web)).values()
    assert (asked.query_id, asked.text, asked.columns["subtopic"]) == ("151", "403b", "A plan\nA form")
    with gzip.open(tmp_path / "topics.gz", "wb") as stream:
        stream.write(SGML.encode())
    assert read_queries(tmp_path / "topics.gz").keys() == {"301", "302"}


def test_topics_with_two_texts_or_none_are_asked_about(tmp_path: Path) -> None:
    path = put(tmp_path, XML.encode(), "topics.xml")
    with pytest.raises(
        DataError, match=r"line 4: has 'question' and 'query'; choose one, e\.g\. topics\(text=question"
    ):
        read_queries(path)
    assert {q.query_id: q.text for q in read_queries(f"topics(text=query):{path}").values()} == {
        "1": "origin",
        "2": "mask",
    }
    for wrong, why in (
        ("<num> Number: 301\n", "line 2: this topic has no number"),
        ("<desc> Description:", "this topic has two fields <title>"),
        ("<title> Topic: Crime &amp; law", "lacks the field 'text'"),
    ):
        assert wrong in SGML
        broken = SGML.replace(wrong, "<title>" if "title" in why else "")
        with pytest.raises(DataError, match=re.escape(why)):
            read_queries(put(tmp_path, broken.encode()))
    with pytest.raises(DataError, match="expected doc records"):
        read_docs(path)


def test_subtopics_in_the_second_column_of_judgments_are_told(tmp_path: Path) -> None:
    run = {"1": {"d1": 1.0}}
    once = put(tmp_path, b"1 1 d1 1\n1 2 d2 1\n2 0 d1 1\n", "once.qrels")
    assert "column 2 of once has up to 2 values for a query" in jk.score(run, [once], "RR").warnings[0]
    for plain in (b"1 0 d1 1\n1 0 d2 0\n2 1 d1 1\n", b"1 Q0 d1 1\n2 0 d1 1\n"):
        assert not any("column 2" in said for said in jk.score(run, [put(tmp_path, plain, "p.qrels")], "RR").warnings)
    with pytest.raises(DataError, match=r"column 2 has up to 2 values .* keep one line for each query and document"):
        read_qrels(put(tmp_path, b"1 1 d1 1\n1 2 d1 1\n"))


JUDGED: dict[str, bytes] = {
    "TREC": b"q1 0 d1 2\nq1 0 d2 0\nq2 0 d2 1\n",
    "BEIR": b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td2\t1\n",
    "CSV": b"qid,docid,label\nq1,d1,2\nq1,d2,0\nq2,d2,1\n",
    "JSON by query, indented": json.dumps(GRADES, indent=1).encode(),
    "JSON lines": lines(*({"query_id": q, "doc_id": d, "relevance": int(r)} for (q, d), r in QRELS.items())),
    "expected documents": json.dumps(
        [
            {"query_id": "q1", "query": "?", "documents": ["d1", "d2"], "grades": [2, 0]},
            {"query_id": "q2", "query": "?", "documents": ["d2"], "relevance": [1]},
        ]
    ).encode(),
}
EXPECTED = [
    {"query_id": "q1", "query": "?", "documents": ["d1", "d2"]},
    {"query_id": "q2", "query": "?", "documents": ["d2"]},
]


def test_documents_that_are_expected_without_grades_are_relevant(tmp_path: Path) -> None:
    assert pairs_of_qrels(put(tmp_path, json.dumps(EXPECTED).encode())) == dict.fromkeys(QRELS, 1.0)


KILT = lines(
    {"id": "q1", "input": "who wrote it?", "output": [{"answer": "Ann", "provenance": [{"wikipedia_id": "d1", "title": "A"}]}, {"provenance": [{"wikipedia_id": "d3"}]}]},
    {"id": "q2", "input": "who read it?", "output": [{"answer": "Bo"}, {"answer": "Bob"}, {"answer": "Bo"}]},
)  # fmt: skip
ASKED: dict[str, bytes] = {
    "BEIR": lines(*({"_id": q, "text": text, "answers": answers} for q, (text, answers) in ANSWERS_OF.items())),
    "KILT": KILT,
}


def test_a_form_that_does_not_exist_is_told_which_there_are(tmp_path: Path) -> None:
    path = put(tmp_path, b"1\tone text\n")
    assert read_docs(put(tmp_path, b"1\tone text\n2\tanother\n", "two")).get(["2"]) == [Doc("2", "another")]
    assert read_docs(put(tmp_path, b"1\tone text\tA\n", "three")).get(["1"]) == [Doc("1", "one text", "A")]
    with pytest.raises(UsageError, match=r"unknown data format 'xml'.*beir, .*csv, .*dict, dpr,"):
        read_queries(f"xml:{path}")


FOUND = ("by Ann", "by Bo")
DOCUMENTS = [{"page_content": text, "metadata": {"source": "a.md"}, "type": "Document", "id": None} for text in FOUND]
CONSTRUCTED = {"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": {"page_content": "by Bo"}}
NODES = [
    {"node": {"id_": text[3:], "text": text, "class_name": "TextNode"}, "score": 1 - i} for i, text in enumerate(FOUND)
]
LATER = [{"node": {"id_": text[3:], "text_resource": {"text": text}}, "score": None} for text in FOUND]
HAYSTACK = [{"id": text[3:], "content": text, "meta": {}, "score": 0.1} for text in FOUND]
RETRIEVED: dict[str, list[dict[str, Any]]] = {
    "LangGraph": [{"question": "who?", "documents": DOCUMENTS, "generation": "Ann did"}],
    "LangChain's chain": [{"input": "who?", "context": DOCUMENTS, "answer": "Ann did"}],
    "LangChain, dumped": [{"query": "who?", "result": "Ann did", "source_documents": [DOCUMENTS[0], CONSTRUCTED]}],
    "LangChain with scores": [{"question": "who?", "documents": [[DOCUMENTS[0], 0.1], [DOCUMENTS[1], 0.2]], "answer": "Ann did"}],
    "texts": [{"question": "who?", "documents": [*FOUND], "answer": "Ann did"}],
    "LlamaIndex": [{"query": "who?", "response": "Ann did", "source_nodes": NODES}],
    "LlamaIndex since 0.12": [{"query": "who?", "response": "Ann did", "source_nodes": LATER}],
    "Haystack": [{"query": "who?", "documents": HAYSTACK, "answer": "Ann did"}],
}  # fmt: skip
NODE_OBJECTS = [SimpleNamespace(node=SimpleNamespace(id_=text[3:], text=text), score=1.0) for text in FOUND]
OBJECTS = {
    "LangChain": [
        {
            "question": "who?",
            "documents": [SimpleNamespace(page_content=text, metadata={}) for text in FOUND],
            "answer": "Ann did",
        }
    ],
    "LlamaIndex": [{"query": "who?", "response": "Ann did", "source_nodes": NODE_OBJECTS}],
    "Haystack": [{"query": "who?", "documents": [SimpleNamespace(**fields) for fields in HAYSTACK]}],
}


@pytest.mark.parametrize("library", RETRIEVED)
@pytest.mark.parametrize("empty", [False, True])
def test_what_a_library_returned_is_queries_docs_a_run_and_answers(library: str, empty: bool, tmp_path: Path) -> None:
    first = [{"question": "what?", "documents": [], "answer": "no"}] if empty else []
    path = put(tmp_path, json.dumps(first + RETRIEVED[library]).encode(), "app.json")
    queries, run = read_queries(path), read_run(path)
    assert [query.text for query in queries.values()] == ["what?"] * empty + ["who?"]
    assert [doc.text for doc in read_docs(path).get(run.top([*queries][-1]))] == [*FOUND]
    assert read_table(ANSWERS, path)["answer"].tolist() == ["no"] * empty + ["Ann did"]
    assert recognise(path).kinds == ("query", "doc", "run", "answer")


@pytest.mark.parametrize("library", OBJECTS)
def test_the_objects_of_a_library_are_taken_in_python(library: str) -> None:
    results = OBJECTS[library]
    [query] = as_queries(results).values()
    [run] = as_runs({"mine": results})
    assert (query.text, run.name) == ("who?", "mine")
    assert [doc.text for doc in as_docs(results).get(run.top(query.query_id))] == [*FOUND]


RAGAS = [
    {"user_input": "who wrote it?", "retrieved_contexts": ["by Ann", "by Bo"], "response": "Ann did", "reference": "Ann"},
    {"user_input": "who read it?", "retrieved_contexts": ["by Bo"], "response": "Bo", "reference": "Bo"},
]  # fmt: skip
OLD = [
    {"question": "who wrote it?", "contexts": ["by Ann", "by Bo"], "answer": "Ann did", "ground_truth": "Ann"},
    {"question": "who read it?", "contexts": ["by Bo"], "answer": "Bo", "ground_truths": ["Bo"]},
]
DEEPEVAL = [
    {"input": "who wrote it?", "retrieval_context": ["by Ann", "by Bo"], "actual_output": "Ann did", "expected_output": "Ann", "context": ["by Ann"]},
    {"input": "who read it?", "retrieval_context": ["by Bo"], "actual_output": "Bo", "expected_output": "Bo", "context": None},
]  # fmt: skip


def test_a_question_without_an_id_that_is_asked_again_is_numbered_from_two_on(tmp_path: Path) -> None:
    once, other, twice, thrice = read_queries(put(tmp_path, lines(RAGAS[0], RAGAS[1], RAGAS[0], RAGAS[0])))
    assert (twice, thrice) == (f"{once}-2", f"{once}-3")
    assert [*read_queries(put(tmp_path, lines(RAGAS[1], RAGAS[0]), "another"))] == [other, once]


TABLES: dict[str, Callable[[Path], object]] = {
    "ragas": lambda path: path.write_bytes(lines(*RAGAS)),
    "older ragas": lambda path: path.write_bytes(json.dumps(OLD).encode()),
    "deepeval": lambda path: path.write_bytes(json.dumps(DEEPEVAL, indent=2).encode()),
    "ragas as CSV": lambda path: pd.DataFrame(RAGAS).to_csv(path, index=False),
    "ragas as Parquet": lambda path: pd.DataFrame(RAGAS).to_parquet(path),
}


@pytest.mark.parametrize("form", TABLES)
def test_an_evaluation_table_is_queries_docs_a_run_and_answers(form: str, tmp_path: Path) -> None:
    path = tmp_path / "app"
    TABLES[form](path)
    queries, docs, run = read_queries(path), read_docs(path), read_run(path)
    assert [(q.text, q.answers) for q in queries.values()] == [("who wrote it?", ("Ann",)), ("who read it?", ("Bo",))]
    ann, bo = content_id("", "by Ann"), content_id("", "by Bo")
    assert docs.get([ann, bo]) == [Doc(ann, "by Ann"), Doc(bo, "by Bo")]
    first, second = queries
    assert (run.top(first), run.top(second)) == ([ann, bo], [bo])
    quality = jk.answer(queries=queries, imported=path, metrics=["em"])
    assert dict(zip(quality["query_id"], quality["answer"], strict=True)) == {first: "Ann did", second: "Bo"}
    if form == "deepeval":
        assert pairs_of_qrels(path) == {(first, ann): 1.0}


def test_the_same_question_twice_is_two_queries_and_files_of_two_applications_agree(tmp_path: Path) -> None:
    one = put(tmp_path, lines(RAGAS[0], RAGAS[0], RAGAS[1]), "one")
    assert len(read_queries(one)) == 3
    other = put(tmp_path, lines(RAGAS[1], RAGAS[0], {**RAGAS[0], "retrieved_contexts": ["more"]}), "other")
    assert set(read_queries([one, other])) == set(read_queries(one))
    assert len(read_docs([one, other])) == 3


def test_the_docs_of_several_retrievers_are_taken_together(tmp_path: Path) -> None:
    entry, one, two = {"id": "q1", "question": "?"}, {"id": "1", "text": "a"}, {"id": "2", "text": "b", "score": 1}
    sparse = put(tmp_path, lines({**entry, "ctxs": [one]}), "sparse")
    dense = put(tmp_path, lines({**entry, "ctxs": [{**one, "score": 3}, two]}), "dense")
    assert [doc.doc_id for doc in read_docs([sparse, dense]).get(["2", "1"])] == ["2", "1"]
    assert len(read_docs([])) == 0
    assert list(read_queries([sparse, dense])) == ["q1"]
    wrong = put(tmp_path, lines({**entry, "question": "!", "ctxs": [{"id": "1", "text": "c"}]}), "wrong")
    for read, what in ((read_docs, "doc '1' has a different title or text"), (read_queries, "query 'q1' has a diff")):
        with pytest.raises(DataError, match=f"wrong: {what}"):
            read([sparse, wrong])


def test_questions_and_passages_without_ids_have_one_of_their_text_in_every_file(tmp_path: Path) -> None:
    bare, titled = {"title": "", "text": "A\none"}, {"title": "A", "text": "one"}
    entries = [{"question": q, "ctxs": [bare, titled]} for q in ("who wrote it?", "who read it?")]
    sparse, dense = put(tmp_path, lines(*entries), "sparse"), put(tmp_path, lines(*entries[::-1]), "dense")
    queries = read_queries([sparse, dense])
    assert [query.text for query in queries.values()] == ["who wrote it?", "who read it?"]
    assert set(queries) == set(read_queries(put(tmp_path, lines(*OLD))))
    lists = lists_of_run(dense)
    first, second = lists[next(iter(queries))]
    assert [*lists.values()] == [[first, second]] * 2
    assert read_docs(sparse).get([first, second]) == [Doc(first, "A\none"), Doc(second, "one", "A")]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    folder = tmp_path / "beir"
    put(folder, lines({"_id": "d1", "title": "A", "text": "by Ann"}, {"_id": "d2", "text": "by Bo"}), "corpus.jsonl")
    put(folder, lines(*({"_id": q, "text": q} for q in ("q1", "q2", "of-train"))), "queries.jsonl")
    for split, rows in {"test": b"q1\td1\t1\nq2\td2\t1\n", "train": b"of-train\td1\t1\n"}.items():
        put(folder, b"query-id\tcorpus-id\tscore\n" + rows, f"qrels/{split}.tsv")
    return folder


@pytest.mark.parametrize("spelled", ["{}", "beir:{}"])
def test_a_beir_folder_is_queries_docs_and_qrels(beir: Path, spelled: str) -> None:
    source = spelled.format(beir)
    assert list(read_queries(source)) == ["q1", "q2"]
    assert read_docs(source).get(["d2"]) == [Doc("d2", "by Bo")]
    assert pairs_of_qrels(source) == {("q1", "d1"): 1.0, ("q2", "d2"): 1.0}
    assert list(read_queries(beir / "queries.jsonl")) == ["q1", "q2", "of-train"]
    assert list(read_queries(f"beir(split=train):{beir}")) == ["of-train"]
    with pytest.raises(DataError, match=r"lacks qrels/dev.tsv .*it has: test, train"):
        read_qrels(f"beir(split=dev):{beir}")
    with pytest.raises(DataError, match="is not a BEIR folder"):
        read_docs(f"beir:{beir / 'qrels'}")


def test_fields_of_ones_own_are_mapped_in_front_of_the_path(tmp_path: Path) -> None:
    path = put(tmp_path, lines({"key": "q1", "ask": "who?", "qid": "x", "id": "y"}), "queries.jsonl")
    assert list(read_queries(f"jsonl(id=key, text=ask):{path}")) == ["q1"]
    run = put(tmp_path, b"q,d,s\nq1,d1,2\nq1,d2,1\nq2,d2,.5\n", "run.csv")
    assert pairs_of_run(f"csv(query=q, doc=d, score=s):{run}") == RUN
    with pytest.raises(UsageError, match=r"unknown option 'text': choose from query, doc, score, rank, header, quote"):
        read_run(f"csv(text=q):{run}")


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("form", ["TREC", "DPR"])
def test_packed_files_are_read(packing: str, form: str, tmp_path: Path) -> None:
    assert pairs_of_run(put(tmp_path, PACKED[packing](RUNS[form]))) == RUN
    content = PACKED[packing](RUNS[form] + b" " * 100_000)
    with pytest.raises(DataError, match=r"cut off|damaged"):
        read_run(put(tmp_path, content[: len(content) // 2], "cut"))


BAD: list[tuple[str, Callable[[Path], object], bytes, int | None, str]] = [
    ("expected documents as objects", read_qrels, lines({"query": "x", "documents": [{"id": "d"}]}), 1, "the documents must be ids"),
    ("CSV of two runs", read_run, b"query_id,doc_id,score,run\nq1,d1,2,a\nq1,d2,1,b\n", 3, "holds 'a' and 'b': write each run into a file of its own"),
    ("CSV run, unknown columns", read_run, b"topic_no,para,bm25_score\nq1,d1,2\n", 1, "which column is which: csv(query=…,doc=…,score=…):"),
    ("JSON run", read_run, b'{"q1": {"d1": 1}}\n{"q2": {"d1": "high"}}\n', 2, "'score' must be a finite number, not 'high'"),
    ("JSON run, indented", read_run, b'{\n"q1": {"d1": 1},\n"q2": {"d1": null}}', 3, "'q2': some passages of this file have a 'score' and others"),
    ("KILT evidence", read_qrels, lines({"id": "q3", "input": "x", "output": [{"provenance": [{}]}]}), 1, "output[0].provenance: expected objects with wikipedia_id"),
    ("CSV qrels, decimals", read_qrels, b"query_id,doc_id,relevance\nq1,d1,1\nq1,d2,0.5\n", 3, "0.5 is not a whole number: declare"),
    ("expected documents", read_qrels, json.dumps([{"query": "x", "documents": ["a", "b"], "grades": [1]}]).encode(), 1, "has 2 documents, so it needs 2 grades"),
    ("ragas", read_docs, lines(*RAGAS) + lines({**RAGAS[0], "retrieved_contexts": "one text"}, {**RAGAS[0], "retrieved_contexts": 5}), 4, "'retrieved_contexts' must be a list of texts, not the number 5"),
    ("ragas, a context", read_docs, lines({**RAGAS[0], "retrieved_contexts": [5]}), 1, "ctxs[0]: 'text' must be a string"),
    ("ragas as CSV", read_docs, b"question,contexts,answer\nx,\"['a', b]\",y\n", 2, "begins with \"[\" but is not a JSON list"),
    ("ragas as CSV, an array of numpy", read_docs, b"question,contexts,answer\nx,\"['a' 'b']\",y\n", 2, "begins with \"[\" but is not a JSON list"),
    ("a run for queries", read_queries, RUNS["JSON by query"], None, "is of the form 'dict', which holds no queries; expected query records"),
    ("TSV, quotes over rows", read_queries, b'1\t"a\n2\tb"\n3\tc\n', 1, "ends 1 lines below, but each of these lines looks like a row"),
    ("an answer that is a list", partial(read_table, ANSWERS), lines({**RAGAS[0], "response": ["a"]}), 1, "the answer must be a text, not a list"),
    ("a TREC run for scores", partial(read_table, SCORES), b"q1 Q0 d1 1 0.5 t\n", 1, "begins with"),
    ("TREC qrels for scores", partial(read_table, SCORES), b"q1 0 d1 1\n", 1, "begins with"),
    ("a grade beyond whole floats", read_qrels, b"q1 0 d1 1\nq1 0 d2 99999999999999999999\n", 2, "1e+20 is too large for a grade"),
    ("decimal commas", read_run, b"q1 Q0 d1 1 2,5 t\nq1 Q0 d2 2 1,5 t\n", 1, "not '2,5' (write the decimal comma as a point)"),
    ("decimal commas beside semicolons", read_run, b"query_id;doc_id;score\nq1;d1;2,5\n", 2, "not '2,5' (write the decimal comma"),
    ("nothing known", read_run, b"hello\nworld\n", 1, "has 1 columns, expected 6"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "content", "line", "reason"), [pytest.param(*case[1:], id=case[0]) for case in BAD])
def test_a_bad_line_is_named_in_each_form(
    read: Callable[[Path], object], content: bytes, line: int | None, reason: str, tmp_path: Path
) -> None:
    path = put(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert (caught.value.path, caught.value.line) == (path, line)
    assert reason in caught.value.reason, caught.value


def test_a_text_of_several_lines_in_tsv_is_read_where_told_or_plain(tmp_path: Path) -> None:
    path = put(tmp_path, b'id\ttext\n1\t"a\n2\tb"\n3\tc\n')
    assert list(read_queries(f"tsv(quote=csv):{path}")) == ["1", "3"]
    assert [q.text for q in read_queries(f"tsv(quote=none):{path}").values()] == ['"a', 'b"', "c"]
    assert [q.text for q in read_queries(put(tmp_path, b'id\ttext\n1\t"a\nb"\n')).values()] == ["a\nb"]


def names_of_the_page() -> list[tuple[str, str, str]]:
    """Return each kind, option and name of the table of docs/formats.md."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()
    kind, found = "", []
    for row in page.split("## Names of fields")[1].split("\n## ")[0].splitlines():
        if row.startswith("| ") and "`" in row:
            said, options, names = (cell.strip() for cell in row.strip("|").split("|"))
            kind = said or kind
            for option, several in zip(options.split(", "), names.split("; "), strict=False):
                found += [(kind, option.strip("`"), name) for name in re.findall("`(.+?)`", several)]
    return found


HELD_BY: dict[str, tuple[dict[str, str], Callable[[Path], object], object]] = {
    "queries": ({"id": "q1", "text": "who?", "answers": "Ann"}, answers_of, {"q1": ("who?", ("Ann",))}),
    "docs": ({"id": "d", "text": "by Ann", "page": "p"}, lambda path: [*read_docs(path)], [Doc("d", "by Ann", page_id="p")]),
    "score": ({"query": "q1", "doc": "d", "score": "1"}, pairs_of_run, {("q1", "d"): 1.0}),
    "rank": ({"query": "q1", "doc": "d", "rank": "1"}, lists_of_run, {"q1": ["d"]}),
    "relevance": ({"query": "q1", "doc": "d", "relevance": "1"}, pairs_of_qrels, {("q1", "d"): 1.0}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "option", "name"), names_of_the_page())
def test_a_field_may_have_each_name_of_the_page(kind: str, option: str, name: str, tmp_path: Path) -> None:
    cells, read, expected = HELD_BY.get(kind) or HELD_BY.get(option) or HELD_BY["score"]
    own = {key: names[0] for declared in DECLARED.values() for key, names in declared.names.items()}
    own |= {"id": "query_id" if kind == "queries" else "doc_id", option: name}
    path = put(tmp_path, f"{','.join(own[key] for key in cells)}\n{','.join(cells.values())}\n".encode(), "data.csv")
    assert read(path) == expected


@pytest.mark.parametrize(
    "word", ["up", "yes", "good", "👍", "hoch", "oui", "sí", "down", "no", "bad", "👎", "runter", "non"]
)
def test_a_thumb_may_be_each_of_these_words(word: str, tmp_path: Path) -> None:
    rated = read_table(RATINGS, put(tmp_path, f"query_id,value\nq,{word}\n".encode()))["value"].tolist()
    assert rated == ["down" if word in ("down", "no", "bad", "👎", "runter", "non") else "up"]


@pytest.mark.parametrize(
    ("up", "down"),
    [
        ("thumbs_up", "thumbs_down"),
        ("Thumbs Up", "THUMBS-DOWN"),
        (":+1:", ":-1:"),
        ("Daumen hoch", "Daumen runter"),
        ("Helpful", "Not helpful"),
        ("hilfreich", "nicht hilfreich"),
        ("útil", "no útil"),
        ("役に立った", "役に立たなかった"),
    ],
)
def test_a_thumb_may_be_of_two_words(up: str, down: str, tmp_path: Path) -> None:
    path = put(tmp_path, f"query_id,value\nq1,{up}\nq2,{down}\n".encode())
    assert read_table(RATINGS, path)["value"].tolist() == ["up", "down"]
    for number in ("1_000", "0-1", "1 0"):
        with pytest.raises(DataError, match="neither a number nor a thumb"):
            read_table(RATINGS, put(tmp_path, f"query_id,value\nq1,{number}\n".encode()))


@pytest.mark.parametrize("column", ["value", "rating", "stars", "thumb", "thumbs", "vote", "feedback"])
def test_a_column_of_each_of_these_names_holds_ratings(column: str, tmp_path: Path) -> None:
    assert recognise(put(tmp_path, f"query_id,run,{column}\nq1,a,1\n".encode(), "x.csv")).kinds == ("ratings",)


def test_the_first_line_decides_between_commas_and_semicolons(tmp_path: Path) -> None:
    queries = put(tmp_path, b'query_id;text;answers\nq1;"who; and when?";Ann\nq2;a, b;\n')
    assert answers_of(queries) == {"q1": ("who; and when?", ("Ann",)), "q2": ("a, b", ())}
    assert pairs_of_run(put(tmp_path, b"query_id;doc_id;score\nq1;d1;2\nq1;d2;1\nq2;d2;.5\n")) == RUN
    table = put(tmp_path, b'query_id;value;note\nq1;0.5;a,b\nq2;1;"x;y"\n')
    assert read_table(RATINGS, table)["note"].tolist() == ["a,b", "x;y"]
    assert pairs_of_run(put(tmp_path, b"query_id,doc_id,score\nq1;x,d1,2\n")) == {("q1;x", "d1"): 2.0}
    assert pairs_of_run(put(tmp_path, b"query_id,doc_id,score,by;whom\nq1,d1,2,x\n")) == {("q1", "d1"): 2.0}


def test_the_number_0_is_an_answer(tmp_path: Path) -> None:
    path = put(tmp_path, lines({**RAGAS[0], "response": 0}, {**RAGAS[0], "response": None}))
    assert read_table(ANSWERS, path)["answer"].tolist() == ["0", ""]


ROWS = b"labeling,run,measure,query_id,value\na,r,P@5,t1,0.5\n"
VALUE = ["r", "P@5", "t1", 0.5]
SCORED: dict[str, tuple[bytes, list[list[object]]]] = {
    "table": (ROWS, [VALUE]),
    "table with quotes": (ROWS.replace(b"a,r", b'"a",r'), [VALUE]),
    "table in JSON": (
        lines({"labeling": "a", "run": "r", "measure": "P@5", "query_id": "t1", "value": "0.5"}),
        [VALUE],
    ),
}
HELD: dict[str, tuple[Callable[[Path], object], bytes, object]] = {
    **{f"run, {form}": (pairs_of_run, content, RUN) for form, content in RUNS.items()},
    **{f"run, {form}": (lists_of_run, content, {"q1": ["d1", "d2"], "q2": ["d2"]}) for form, content in RANKED.items()},
    **{f"qrels, {form}": (pairs_of_qrels, content, QRELS) for form, content in JUDGED.items()},
    **{f"queries, {form}": (answers_of, content, ANSWERS_OF) for form, content in ASKED.items()},
    **{f"queries, {name}": (answers_of, pack(ASKED["BEIR"]), ANSWERS_OF) for name, pack in PACKED.items()},
    "topics as TSV": (answers_of, b"q1\twho wrote it?\nq2\twho read it?\n", UNANSWERED),
    "docs": (lambda path: len(read_docs(path, memory_limit=0)), b"doc_id\ttext\ttitle\n1\ta\tb\n2\tc\td\n", 2),
    "ragas": (lambda path: len(read_docs(path)), lines({**RAGAS[0], "reference_contexts": ["by Ann", "more"]}), 3),
    **{
        f"scores, {form}": (lambda path: read_table(SCORES, path).iloc[:, 1:].values.tolist(), content, rows)
        for form, (content, rows) in SCORED.items()
    },
}


@pytest.mark.parametrize("form", HELD)
def test_a_form_is_recognised(form: str, tmp_path: Path) -> None:
    read, content, expected = HELD[form]
    assert read(put(tmp_path, content)) == expected


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "file"


@pytest.mark.parametrize("form", HELD)
@settings(max_examples=8)
@given(edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=3))
def test_a_damaged_file_is_data_or_an_error_that_names_it(
    form: str, edits: list[tuple[float, int, bytes]], damaged: Path
) -> None:
    read, content, _ = HELD[form]
    for place, removed, added in edits:
        at = int(place * len(content))
        content = content[:at] + added + content[at + removed :]
    damaged.write_bytes(content)
    error = None
    try:
        read(damaged)
    except DataError as caught:
        error = caught
    assert error is None or (error.path, bool(error.reason)) == (damaged, True)


BINARY_AND_FOLDERS = ("parquet", "xlsx", "texts", "files")


@pytest.mark.parametrize("name", sorted({*FORMS} - {*BINARY_AND_FOLDERS}))
def test_the_example_of_each_form_is_recognised_and_holds_what_it_says(name: str, tmp_path: Path) -> None:
    form = FORMS[name]
    found = recognise(put(tmp_path, form.example.encode()))
    assert (found.form, found.why) == (form, "")
    assert {*found.kinds} <= {*(form.holds or DECLARED)}
    assert found.kinds
    if form.nested:
        assert recognise(f"{name}:{put(tmp_path, form.example.encode())}").kinds == found.kinds


def test_a_form_of_ones_own_is_recognised_and_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jk.register, "forms", {})

    @jk.register.form("hits", holds=("query", "doc", "run"), marks=lambda fields: "hits" in fields)
    def hits(fields: dict[str, Any]) -> dict[str, Any]:
        if not fields["hits"]:
            raise ValueError("found nothing")
        return {"question": fields["q"], "ctxs": [{"id": i, "text": text} for i, text in fields["hits"]]}

    @jk.register.form("arrows", marks=lambda beginning: beginning.start.startswith(b"->"))
    def arrows(path: Path) -> Any:
        for number, row in enumerate(path.read_text().splitlines(), 1):
            yield number, dict(zip(("query_id", "text"), row.removeprefix("->").split("=", 1), strict=True))

    path = put(tmp_path, lines({"q": "who?", "hits": [["d1", "Ann"]]}, {"q": "what?", "hits": []}))
    with pytest.raises(DataError, match="line 2: found nothing"):
        read_queries(path)
    odd = put(tmp_path, lines({"q": "who?", "hits": [["d1", "Ann"]]}, {"hits": [["d1", "Ann"]]}), "odd")
    with pytest.raises(DataError, match="line 2: is not a record of the form 'hits': it lacks 'q'"):
        read_queries(odd)
    path.write_bytes(path.read_bytes().split(b"\n")[0])
    assert recognise(path).kinds == ("query", "doc", "run")
    [(query_id, query)] = read_queries(path).items()
    assert (query.text, read_run(path).top(query_id), read_docs(path).get(["d1"])[0].text) == ("who?", ["d1"], "Ann")
    assert next(iter(read_queries(put(tmp_path, b"->q1=who?\n", "own")).values())).text == "who?"


def test_a_folder_of_texts_is_docs_by_their_paths(tmp_path: Path) -> None:
    put(tmp_path, b"intro\n\n# The *bridge*\n\nBuilt in 1412.\n", "pages/towns/arlen town.md")
    put(
        tmp_path,
        b"<html><head><title>T</title><style>p{}</style></head><h1>Borvik</h1><p>Mill &amp; market</p><script>x</script>",
        "pages/b.html",
    )
    put(tmp_path, b"# plain", "pages/c.txt")
    put(tmp_path, b"hidden", "pages/.d.txt")
    docs = list(read_docs(tmp_path / "pages"))
    assert [(doc.doc_id, doc.title) for doc in docs] == [
        ("b.html", "Borvik"),
        ("c.txt", ""),
        ("towns/arlen_town.md", "The *bridge*"),
    ]
    assert [docs[0].text, docs[1].text] == ["Borvik\n\nMill & market", "# plain"]


def test_a_sheet_of_excel_is_read_as_csv_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    book.active.append(["query_id", "text", "answers", None])
    book.active.append([7, "who?", "Ann", None])
    book.active.append([None, None, None, None])
    book.active.append(["007", "when?", datetime.datetime(2026, 5, 1), None])
    book.create_sheet("more").append(["query_id", "value"])
    book["more"].append([7, "up"])
    book.save(tmp_path / "asked.xlsx")
    assert answers_of(tmp_path / "asked.xlsx") == {"7": ("who?", ("Ann",)), "007": ("when?", ("2026-05-01",))}
    assert read_table(RATINGS, f"xlsx(sheet=more):{tmp_path / 'asked.xlsx'}")["query_id"].tolist() == ["7"]
    assert recognise(tmp_path / "asked.xlsx").kinds[0] == "query"
    with pytest.raises(UsageError, match=r"unknown sheet 'mor': choose from Sheet, more. Did you mean 'more'"):
        read_queries(f"xlsx(sheet=mor):{tmp_path / 'asked.xlsx'}")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UsageError, match=r"pip install 'judgekit-qrels\[excel\]', or save the sheet as CSV"):
        read_queries(tmp_path / "asked.xlsx")
    monkeypatch.undo()
    with pytest.raises(DataError, match=r"is not a readable .xlsx file"):
        read_queries(put(tmp_path, b"PK\x03\x04 nothing", "broken.xlsx"))


def test_an_excel_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("query_id", "text"), *((f"q{number}", "why " * 2000) for number in range(50))):
        book.active.append(row)
    book.save(tmp_path / "asked.xlsx")
    assert len(read_queries(tmp_path / "asked.xlsx")) == 50
    monkeypatch.setattr("judgekit.data.forms.sheets._LARGE", 1000)
    monkeypatch.setattr("judgekit.data.forms.sheets._RATIO", 10)
    with pytest.raises(
        DataError, match=r"asked.xlsx: unpacks to 0 MB, more than 10 times its size.*save the sheet as CSV"
    ):
        read_queries(tmp_path / "asked.xlsx")


ASKED = ["Who wrote it?", "Who read it?", "Where is it?"]


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_passages_that_look_like_ids_are_asked_about(ending, tmp_path):
    """Read as texts they would be labeled, and every label would be nonsense."""
    rows = [{"question": text, "contexts": [f"d{n}", f"hall-{n}/2"], "answer": "Ann"} for n, text in enumerate(ASKED)]
    path = tmp_path / f"app.{ending}"
    if ending == "csv":
        pd.DataFrame([{**row, "contexts": json.dumps(row["contexts"])} for row in rows]).to_csv(path, index=False)
    else:
        path.write_bytes(lines(*rows))
    for read in (read_docs, read_run, read_queries):
        with pytest.raises(DataError, match=r"line [12]: the passages look like ids \('d0'\)") as refused:
            read(path)
    ids, texts = f"rag(passages=ids):{path}", f"rag(passages=texts):{path}"
    assert ids in str(refused.value)
    assert texts in str(refused.value)
    assert recognise(ids).kinds == ("query", "run", "answer")
    assert sorted(lists_of_run(ids).values()) == [[f"d{n}", f"hall-{n}/2"] for n in range(3)]
    assert recognise(texts).kinds == ("query", "doc", "run", "answer")
    assert [doc.text for doc in read_docs(texts)][:2] == ["d0", "hall-0/2"]
    with pytest.raises(UsageError, match="expected passages=ids or passages=texts"):
        read_run(f"rag(passages=both):{path}")


@pytest.mark.parametrize("passage", ["Ann", "by Ann in 1412", "1984年に建てられた", "x" * 200 + "1"])
def test_words_without_a_digit_and_other_scripts_are_texts(passage, tmp_path):
    rows = [{"question": text, "contexts": [passage], "answer": "Ann"} for text in ASKED]
    assert [doc.text for doc in read_docs(put(tmp_path, lines(*rows)))] == [passage]


@pytest.mark.parametrize("form", ["rag", "ragas"])
def test_a_column_that_the_user_names_is_the_run_of_a_nested_form(form, tmp_path):
    texts = ("user_input", "retrieved_contexts") if form == "ragas" else ("question", "contexts")
    rows = [
        {texts[0]: text, texts[1]: [f"by {model}"], "response": model, "model": model}
        for model in ("a", "b")
        for text in ASKED
    ]
    path = put(tmp_path, lines(*rows))
    assert recognise(path).form.name == form
    spelled = f"{form}(run=model):{path}"
    assert len(read_queries(path)) == 6, "asked twice"
    assert len(read_queries(spelled)) == 3
    assert {(row.run, row.answer) for row in read_table(ANSWERS, spelled).itertuples()} == {("a", "a"), ("b", "b")}
    with pytest.raises(DataError, match="holds 'a' and 'b'"):
        read_run(spelled)


def test_pairs_of_a_grade_and_a_score_are_asked_about(tmp_path):
    rows = [
        {"query_id": f"q{n}", "doc_id": f"d{m}", "label": int(m == n), "score": 0.9} for n in (1, 2) for m in (1, 2)
    ]
    path = put(tmp_path, lines(*rows))
    why = recognise(path).why
    assert "each row has 'label' and 'score': these may be judgments or a run" in why
    judged, ranked = re.findall(r"jsonl\([^)]*\):\S+", why)
    assert recognise(judged).kinds == ("qrels",)
    assert recognise(ranked).kinds == ("run",)
    assert pairs_of_qrels(judged) == {(f"q{n}", f"d{m}"): float(m == n) for n in (1, 2) for m in (1, 2)}


@pytest.mark.parametrize("column", ["rank", "system", "run_id"])
def test_scores_of_whole_numbers_beside_a_rank_or_a_system_are_a_run(column, tmp_path):
    rows = [
        {"qid": f"q{n}", "docid": f"d{m}", "score": 3 - m, column: m if column == "rank" else "a"}
        for n in (1, 2)
        for m in (1, 2)
    ]
    path = put(tmp_path, lines(*rows))
    assert recognise(path).kinds == ("run",)
    assert lists_of_run(path) == {"q1": ["d1", "d2"], "q2": ["d1", "d2"]}
    if column != "rank":
        path = put(tmp_path, lines(*rows, *({**row, column: "b"} for row in rows)))
        with pytest.raises(DataError, match=rf"appears twice .*\. If '{column}' names the run, write each run into"):
            read_run(path)


def test_titles_with_their_sentences_are_no_passages_with_their_scores(tmp_path):
    """HotpotQA's rows: a title would become the passage, and the reference the application's answer."""
    about = {
        "supporting_facts": [["Hall", 0]],
        "context": [["Hall", ["Ann built it.", "It is old."]], ["Mill", ["No."]]],
    }
    path = put(
        tmp_path, lines(*({"_id": f"q{n}", "question": text, "answer": "Ann", **about} for n, text in enumerate(ASKED)))
    )
    assert recognise(path).form.name == "jsonl"
    assert {query.answers for query in read_queries(path).values()} == {("Ann",)}
    for read in (read_docs, read_run):
        with pytest.raises(DataError):
            read(path)
    scored = put(tmp_path, lines({"question": "Who?", "documents": [["by Ann", 0.5], ["by Bob", 0.25]]}))
    assert [doc.text for doc in read_docs(scored)] == ["by Ann", "by Bob"]
    odd = put(tmp_path, lines({"question": "Who?", "contexts": [["by Ann", "0.5"], ["by Bob", "0.25"]]}))
    with pytest.raises(DataError, match=r"line 1: .* is neither a passage nor a pair of a passage and its score"):
        read_docs(f"rag:{odd}")


@pytest.mark.parametrize("name", ["reference_answer", "expected_answer"])
def test_an_answer_beside_a_reference_answer_is_the_application_s(name, tmp_path):
    """Alone the reference is that of a question; read beside it, the application's own words would be the truth."""
    rows = [{"id": f"q{n}", "question": text, name: "Ann"} for n, text in enumerate(ASKED)]
    path = put(tmp_path, lines(*rows))
    assert {query.answers for query in read_queries(path).values()} == {("Ann",)}
    path = put(tmp_path, lines(*({**row, "answer": "Bob"} for row in rows)))
    assert recognise(path).kinds == ("query", "answer")
    assert {query.answers for query in read_queries(path).values()} == {("Ann",)}
    assert {*read_table(ANSWERS, path)["answer"]} == {"Bob"}


def test_a_question_inside_of_an_object_is_its_text(tmp_path):
    """As Opik and others write a table: what went in and came out are objects."""
    row = {"input": json.dumps({"question": "Who?"}), "output": json.dumps({"answer": "Ann"}), "expected_output": "Ann"}
    path = tmp_path / "t.csv"
    pd.DataFrame([row]).to_csv(path, index=False)
    (query,) = read_queries(path).values()
    assert query.text == "Who?"
    assert read_table(ANSWERS, path)["answer"].tolist() == ["Ann"]
    pd.DataFrame([{**row, "input": json.dumps({"prompt_name": "qa"})}]).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"line 2: 'input' is an object \(prompt_name\), and no question"):
        read_queries(path)


def test_a_grade_that_is_null_must_be_a_number(tmp_path):
    path = put(tmp_path, lines({"query_id": "q", "doc_id": "d", "relevance": None}))
    with pytest.raises(DataError, match="line 1: 'relevance' must be a number, not null"):
        read_qrels(path)


@given(
    st.lists(st.sampled_from([b"# text", b"#q 0 d 1", b"q Q0 d 1 0.5 t", b"", b" ", b"\xc2\xa0", b"\xff"]), max_size=6)
)
def test_comments_in_front_of_rows_are_counted(rows: list[bytes]) -> None:
    texts = [row.decode(errors="replace") for row in rows]
    plain = [bool(row.strip()) and not (row.startswith("#") and len(row.split()) != 4) for row in texts]
    assert commented(b"\n".join(rows)) == (plain.index(True) if True in plain else 0)


def test_of_a_file_without_comments_the_beginning_is_not_looked_through() -> None:
    class Counted(bytes):
        decoded = 0

        def decode(self, *args: str, **options: str) -> str:
            Counted.decoded += 1
            return super().decode(*args, **options)

    assert commented(Counted(b"q Q0 d 1 0.5 t\n" * 3000)) == 0
    assert Counted.decoded == 0


def test_plain_rows_are_recognised_before_other_forms_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 0.5 run\nq2 Q0 d1 1 0.5 run\n")
    code = """
import sys
from judgekit.data.trec import read_run
read_run(sys.argv[1])
print(*(name for name in sys.modules if name.startswith(("judgekit.data.forms.", "numpy.ma"))))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "run.trec"], check=True, capture_output=True, text=True
    )
    assert "judgekit.data.forms.flat" in done.stdout
    # numpy.unique alone would import numpy.ma, which takes longer than to read a small file.
    assert not {"judgekit.data.forms.own", "judgekit.data.forms.rag", "numpy.ma"} & {*done.stdout.split()}


def test_forms_are_loaded_later_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*in_order()] == [*forms().values()]
    own = replace(forms()["csv"], name="tsv")
    monkeypatch.setattr(register, "forms", {"mine": replace(own, name="mine"), "tsv": own})
    assert [*in_order()] == [*forms().values()]
    assert [*in_order()][1] is own


def test_lists_of_ids_beside_scores_are_no_expected_documents(tmp_path):
    """What a retriever found would become the truth, by which each of its documents is relevant."""
    rows = [
        {"query_id": f"q{n}", "query": text, "documents": ["d1", "d2"], "scores": [0.9, 0.1]}
        for n, text in enumerate(ASKED)
    ]
    path = put(tmp_path, lines(*rows))
    assert recognise(path).kinds == ()
    with pytest.raises(DataError, match="lists ids of documents beside") as refused:
        read_qrels(path)
    found, expected = re.findall(r"write (\S+:)FILE", str(refused.value))
    run = read_run(f"{found}{path}")
    assert [run.top(row["query_id"]) for row in rows] == [["d1", "d2"]] * len(rows)
    assert recognise(f"{found}{path}").kinds == ("query", "run")
    assert len(read_qrels(f"{expected}{path}").table) == 6
    graded = put(tmp_path, lines(*({**row, "grades": [2, 1]} for row in rows)))
    assert recognise(graded).kinds == ("query", "qrels")
    named = put(
        tmp_path, lines(*({"query": row["query"], "expected_document_ids": ["d1"], "response": "-"} for row in rows))
    )
    assert recognise(named).form.name == "expected"


def test_one_expected_document_in_a_cell_is_an_id_and_several_are_a_list(tmp_path):
    path = tmp_path / "golden.csv"
    rows = [{"query_id": f"q{n}", "query": text, "expected_document_ids": f"d{n}"} for n, text in enumerate(ASKED)]
    pd.DataFrame(rows).to_csv(path, index=False)
    assert recognise(path).kinds == ("query", "qrels")
    assert read_qrels(path).table["doc_id"].tolist() == ["d0", "d1", "d2"]
    for joined in ("d1;d2", "d1|d2", "d1,d2", "d1 d2"):
        pd.DataFrame([{**row, "expected_document_ids": joined} for row in rows]).to_csv(path, index=False)
        with pytest.raises(DataError, match=r"line 2: 'expected_document_ids' holds '.*': write a list, ..d1., .d2.."):
            read_qrels(path)


def test_two_runs_in_one_file_of_trec_are_not_mixed(tmp_path):
    """They share no documents, so that none appears twice."""
    rows = {tag: "".join(f"q{n} Q0 {tag}{m} {m} {9 - m} {tag}\n" for n in (1, 2) for m in (1, 2)) for tag in ("a", "b")}
    path = put(tmp_path, "".join(rows.values()).encode(), "both.trec")
    with pytest.raises(DataError, match="holds the runs 'a' and 'b', by the last column, one behind the other: write"):
        read_run(path)
    assert len(read_run(put(tmp_path, rows["a"].encode(), "a.trec"))) == 4
    # A run in parts over different queries, and documents that have the tag of their source, are one run.
    other = "".join(f"q3 Q0 b{m} {m} {9 - m} b\n" for m in (1, 2))
    assert len(read_run(put(tmp_path, (rows["a"] + other).encode(), "parts.trec"))) == 6
    sources = "".join(f"q{n} Q0 {tag}{m} {m} {9 - m} {tag}\n" for n in (1, 2) for m in (1, 2) for tag in ("a", "b"))
    assert len(read_run(put(tmp_path, sources.encode(), "sources.trec"))) == 8
    # Columns of other tables are no tags.
    assert len(read_run(put(tmp_path, b"query_id,doc_id,score\nq1,d1,2\nq1,d2,1\n", "a.csv"))) == 2


@pytest.mark.parametrize("indent", [None, 1])
def test_an_object_of_texts_by_id_is_queries_or_docs(indent: int | None, tmp_path: Path) -> None:
    queries, docs = tmp_path / "queries.json", tmp_path / "corpus.json"
    queries.write_text(json.dumps({"q007": "Who?", "q8": "What?"}, indent=indent))
    docs.write_text(json.dumps({"d1": {"title": "Ann", "text": "by Ann"}, "d2": {"text": "by Bob"}}, indent=indent))
    assert {query_id: query.text for query_id, query in read_queries(queries).items()} == {
        "q007": "Who?",
        "q8": "What?",
    }
    assert read_docs(docs).get(["d1", "d2"]) == [Doc("d1", "by Ann", "Ann"), Doc("d2", "by Bob")]
    assert "query" in recognise(queries).kinds
    assert recognise(docs).kinds == ("doc",)
    for bad in (None, 3, ["by Ann"], {"title": "Ann"}):
        docs.write_text(json.dumps({"d1": "by Ann", "d2": bad}, indent=indent))
        with pytest.raises(DataError):
            read_docs(docs)


@pytest.mark.parametrize(
    "held", [{"model": "m", "dataset": "d"}, {"version2": "a", "name": "b"}, {"q1": ["d1"]}, {"q1": {"title": "a"}}]
)
def test_an_object_of_other_members_is_no_table_by_id(held: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(held))
    assert recognise(path).kinds == ()


@pytest.mark.parametrize("lines", ["{}", "{{\n{}\n}}"])
def test_lists_of_ids_by_query_say_what_to_write(lines, tmp_path):
    path, ids = tmp_path / "golden.json", {"q1": ["d1", 2], "q2": ["d3"]}
    body = json.dumps(ids)
    path.write_text(body if lines == "{}" else lines.format(body[1:-1].replace('], "', '],\n"')))
    with pytest.raises(
        DataError, match=r"lists of ids by query, and does not say .*: write ..q1.: ..d1.: 1.., a grade"
    ):
        read_qrels(path)
    path.write_text(json.dumps({query: dict.fromkeys(map(str, docs), 1) for query, docs in ids.items()}))
    pairs = {("q1", "d1", 1.0), ("q1", "2", 1.0), ("q2", "d3", 1.0)}
    columns = ["query_id", "doc_id", "relevance"]
    assert {*read_qrels(path).table[columns].itertuples(index=False, name=None)} == pairs
    path.write_text(json.dumps({"texts": ["by Ann", "by Bob"], "tags": ["a b"]}))
    assert "lists of ids" not in recognise(path).why, "which texts are not"
