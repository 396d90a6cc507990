"""DataFrames are taken by the same rules as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.frames import as_docs, as_queries, as_runs
from judgekit.data.readers import write_docs, write_queries
from judgekit.data.runs import Run
from judgekit.errors import DataError, UsageError

QUERIES = {"007": Query("007", "who?", ("Ann", "A. B.")), "NA": Query("NA", "what?")}
DOCS = [Doc("d1", "one", "A", "p1"), Doc("d2", "")]


@pytest.mark.parametrize("answers", [["Ann", "A. B."], ("Ann", "A. B."), np.array(["Ann", "A. B."], dtype=object)])
@pytest.mark.parametrize("none", [[], None, np.nan, pd.NA])
def test_queries_come_from_a_table(answers: object, none: object) -> None:
    frame = pd.DataFrame({"query_id": ["007", "NA"], "text": ["who?", "what?"]})
    frame["answers"] = pd.Series([answers, none], dtype=object)
    assert as_queries(frame) == QUERIES
    assert as_queries(frame.rename(columns={"query_id": "id", "text": "question"}).set_index(frame["text"])) == QUERIES


def test_queries_come_from_arrow_columns_and_with_one_answer() -> None:
    table = pa.table({"query_id": ["007", "NA"], "text": ["who?", "what?"], "answers": [["Ann", "A. B."], []]})
    assert as_queries(table.to_pandas(types_mapper=pd.ArrowDtype)) == QUERIES
    one = pd.DataFrame({"query_id": ["q"], "text": ["x"], "answer": ["Ann"]})
    assert as_queries(one)["q"].answers == ("Ann",)


def test_docs_come_from_a_table() -> None:
    frame = pd.DataFrame({"doc_id": ["d1", "d2"], "text": ["one", ""], "title": ["A", None], "page_id": ["p1", None]})
    assert as_docs(frame).get(["d1", "d2"]) == DOCS
    assert as_docs(frame[["text", "doc_id"]]).get(["d1"]) == [Doc("d1", "one")]


def test_files_and_what_was_read_are_taken_too(tmp_path: Path) -> None:
    write_queries(QUERIES, tmp_path / "queries.jsonl")
    write_docs(DOCS, tmp_path / "docs.jsonl")
    assert as_queries(tmp_path / "queries.jsonl") == as_queries(QUERIES) == QUERIES
    docs = MemoryDocs(DOCS)
    assert as_docs(docs) is docs
    assert as_docs(str(tmp_path / "docs.jsonl")).get(["d1", "d2"]) == DOCS


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"query_id": [7, 8]}, "the query table, row 1: 'query_id' is the number 7; ids are strings"),
        ({"query_id": ["a", "a"]}, "the query table, row 2: query 'a' is there twice (first on row 1)"),
        ({"query_id": ["a", None]}, "row 2: 'query_id' must be a string, is null"),
        ({"query_id": ["a", "b c"]}, "row 2: 'query_id' 'b c' holds white space"),
        ({"query_id": ["a", "all"]}, "row 2: the query id 'all' is reserved"),
        ({"text": ["x", ""]}, "row 2: the text of query 'b' is empty"),
        ({"answers": [["x"], "y"]}, "row 2: 'answers' must be a list of strings, is a string"),
        ({"answers": [["x"], [1]]}, "row 2: 'answers' must be a list of strings, holds the number 1"),
        ({"question": ["x", "y"], "query": ["x", "y"], "text": None}, "say which one is meant, by renaming the other"),
        ({"query_id": None}, "row 1: this query lacks the field 'query_id'"),
    ],
)
def test_a_bad_table_is_an_error_with_its_row(columns: dict[str, list[object] | None], reason: str) -> None:
    good: dict[str, list[object] | None] = {"query_id": ["a", "b"], "text": ["x", "y"]}
    frame = pd.DataFrame({c: v for c, v in {**good, **columns}.items() if v is not None})
    with pytest.raises(DataError) as caught:
        as_queries(frame)
    assert reason in str(caught.value)


def test_an_empty_table_is_an_error() -> None:
    with pytest.raises(DataError, match="the table holds no queries"):
        as_queries(pd.DataFrame({"query_id": [], "text": []}))
    with pytest.raises(DataError, match="the table holds no docs"):
        as_docs(pd.DataFrame())


def test_runs_come_by_name_or_as_runs(tmp_path: Path) -> None:
    frame = pd.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]})
    (tmp_path / "run").write_text("q Q0 d 1 1.0 tag\n")
    run = Run.from_frame(frame, "x")
    found = as_runs({"a": frame, "b": tmp_path / "run", "c": str(tmp_path / "run"), "d": run})
    assert [r.name for r in found] == ["a", "b", "c", "d"]
    assert all(r.frame().equals(run.frame()) for r in found)
    assert run.name == "x"
    assert as_runs([run]) == [run]
    with pytest.raises(UsageError, match="runs must be Run objects"):
        as_runs(["run.trec"])  # type: ignore[list-item]
