# ruff: noqa: E501 - a case stands in one line
"""Every malformed input is an error that names file, line and reason: one table of cases per kind of file."""

import gzip
import io
import json
import lzma
import math
import os
import pickle
import re
import signal
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgekit.data.files import read_table
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.recognise import recognise
from judgekit.data.tables import QUALITY, SCORES
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import ConfigError, DataError, UsageError
from judgekit.experiment.file import load
from judgekit.reading.prompts import load_prompt

Case = tuple[str, bytes, int | None, str]
"""What is wrong, the content of the file, the line that the error names, and what its reason says."""


def obj(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


Q1 = obj(query_id="q1", text="who?", answers=["me"])
D1 = obj(doc_id="d1", title="A", text="me")


def scores(path: Path) -> object:
    return read_table(SCORES, path)


def read_dpr(path: Path) -> object:
    source = f"dpr:{path}"
    return read_queries(source), read_docs(source), read_run(source)


def fails(read: Callable[[Path], object], path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    return caught.value


# fmt: off
QUERIES: list[Case] = [
    ("empty file", b"", None, "is empty; expected query records"),
    ("no known format", b"hello\n", 1, "begins with 'hello'"),
    ("broken JSON", Q1 + b'{"query_id": "q2", "text" "x"}\n', 2, "not valid JSON: Expecting ':' delimiter at char"),
    ("nested too deeply", Q1 + b"[" * 100_000 + b"\n", 2, "nested too deeply"),
    ("empty line inside", Q1 + b"\n" + obj(query_id="q2", text="x"), 2, "is empty where a JSON object"),
    ("list for object", Q1 + b'["q2", "x"]\n', 2, "expected a JSON object, found a list"),
    ("a key twice", b'{"query_id": "q1", "query_id": "q2", "text": "x"}\n', 1, "the key 'query_id' appears twice"),
    ("id missing, hint", obj(query_jd="q2", text="x"), 1, "Did you mean 'query_jd'?"),
    ("id null", obj(query_id=None, text="x"), 1, "'query_id' must be a string, not null"),
    ("id a number", obj(query_id=7, text="x"), 1, "'query_id' must be a string, not the number 7; ids are strings, write \"7\""),
    ("id empty", obj(query_id="", text="x"), 1, "'query_id' is empty"),
    ("id with a hard space", obj(query_id="q\u00a01", text="x"), 1, "holds white space"),
    ("reserved id", obj(query_id="all", text="x"), 1, "'all' is reserved"),
    ("id twice", Q1 + obj(query_id="q2", text="x") + Q1, 3, "query 'q1' appears twice (first on line 1)"),
    ("two ids", obj(_id="1", id="2", text="x"), 1, "e.g. jsonl(id=_id):"),
    ("two ids, one judgekit's own", obj(query_id="1", qid="2", text="x"), 1, "choose one, e.g. jsonl(id=query_id):"),
    ("text empty", obj(query_id="q1", text=" "), 1, "the text of query 'q1' is empty"),
    ("answers a string", obj(id="q", text="x", answers="a"), 1, "'answers' must be a list of strings, not a string"),
    ("answers with an empty one", obj(id="q", text="x", answers=["a", " "]), 1, "'answers' holds an empty answer"),
    ("half a surrogate pair", obj(id="q", text="x\ud83d"), 1, "'\\ud83d', half of a surrogate pair"),
    ("half of one in a name", obj(id="q", text="x", **{"\ud83d": "y"}), 1, "'\\ud83d', half of a surrogate pair"),
    ("no UTF-8", Q1 + b'{"query_id": "q2", "text": "caf\xe9"}\n', 2, "byte 32 of the line is not UTF-8: it is probably cp1252 (Windows), in which the word reads 'café'. Convert the file: iconv -f CP1252"),
    ("no text at all", b"query_id,text\nq1,caf\xe9\x02\n", 2, "byte 7 of the line is not UTF-8: it is not a text file"),
    ("Japanese", "query_id,text\nq1,日本の首都はどこ\n".encode("cp932"), 2, "it may be CP932 (Japanese: '日本の首都はどこ')"),
    ("Korean", "query_id,text\nq1,한국의 수도\n".encode("cp949"), 2, "CP949 (Korean: '한국의')"),
    ("Cyrillic", "query_id,text\nq1,Где?\n".encode("cp1251"), 2, "CP1251 (Cyrillic: 'Где'), CP1253 (Greek: 'Γδε'). Convert the file from the encoding that you can read: iconv -f NAME"),
    ("typographic marks", "query_id,text\nq1,café – “déjà”\n".encode("cp1252"), 2, "it is probably cp1252 (Windows), in which the word reads 'café'"),
    ("no UTF-8 and no cp1252", b"query_id,text\nq1,caf\x81\n", 2, "byte 7 of the line is not UTF-8; save the file as UTF-8"),
    *(("UTF-16", '{"query_id": "q1", "text": "x"}\n'.encode(f"utf-16{end}"), None, "is UTF-16 text") for end in ("", "-le", "-be")),
    ("NUL escaped", Q1 + obj(id="q2", text="\0"), 2, "'text' holds a NUL character"),
    ("JSON array cut off", b'[\n{"query_id": "q1", "text": "x"},\n', 3, "the JSON array ends early"),
    ("JSON array, broken", b'[\n{"id": "q1", "text": "x"},\n{"id": q2}]', 3, "not valid JSON: Expecting value"),
    ("JSON array, no comma", b'[{"query_id": "q1", "text": "x"}\n{"a": 1}]', 2, "expected , or ], found '{'"),
    ("text behind the JSON array", b'[{"id": "1", "text": "x"}]\n]', 2, "goes on after the end"),
    ("JSON array without elements", b"[]", None, "holds no queries"),
    ("CSV, a cell too many", b"query_id,text\nq1,who?\nq2,what, now?\n", 3, "the header has 2 columns, this row 3"),
    ("CSV, empty line inside", b"query_id,text\n\nq1,who?\n", 2, "is empty where a row was expected"),
    ("CSV, column twice", b"query_id,text,text\nq1,a,a\nq2,a,b\n", 3, "the header names column 'text' twice"),
    ("CSV, open quote", b'query_id,text\nq1,"who?\nq2,what?\n', 2, "not a valid row: unexpected end of data"),
    ("CSV, a list", b'query_id,text,answers\nq1,who?,"[\'a\']"\n', 2, 'begins with "[" but is not a JSON list'),
    ("CSV, after a quoted line end", b'query_id,text\nq1,"who\n?"\nq1,x\n', 4, "appears twice (first on line 2)"),
]

DOCS: list[Case] = [
    ("id twice", D1 + D1, 2, "doc 'd1' appears twice (first on line 1)"),
    ("title NaN", D1 + obj(doc_id="d2", text="x", title=float("nan")), 2, "must be a string, not the number nan"),
    ("TSV without a header", b"d1\tme\nd2\tyou\nd 3\tthey\n", 3, "'doc_id' 'd 3' holds white space"),
]


def entry(*passages: object, **fields: object) -> bytes:
    return obj(**{"question": "x", "ctxs": passages, **fields})


P1, P2 = {"id": "1", "text": "a"}, {"id": "2", "text": "a"}
DPR: list[Case] = [
    ("no question", b'[\n{"ctxs": []}]', 2, "lacks the field 'question'"),
    ("no ctxs", entry() + obj(question="x"), 2, "'ctxs' must be a list of passages, not null"),
    ("ctxs of strings", entry("a"), 1, "ctxs[0]: expected a JSON object, found a string"),
    ("no text", entry(P1, {"id": "2"}), 1, "ctxs[1]: this doc lacks the field 'text'"),
    ("score a word", entry({**P1, "score": "high"}), 1, "'score' must be a finite number, not 'high'"),
    ("score missing in one", entry({**P1, "score": 1}, P2), 1, "ctxs[1]: some passages of this file have a 'score'"),
    ("doc twice", entry(P1, P1), 1, "doc '1' appears twice for query 'q2d711642b726b044'"),
    ("doc with two texts", entry(P1) + entry({**P1, "text": "b"}), 2, "'1' has a different title or text than before"),
]


def score(**fields: object) -> bytes:
    return obj(**{"labeling": "l", "run": "r", "measure": "m", "query_id": "1", "value": 1, **fields})


TOP = b"labeling,run,measure,query_id,value\n"
TABLES: list[Case] = [
    ("empty", b"", None, "is empty; expected a scores table (columns labeling, run, measure, query_id, value)"),
    ("column missing", b"labeling,run,measure,query,value\n", None, "lacks column 'query_id' (it has: labeling, run"),
    ("a word for a number", TOP + b"l,r,m,q1,0.5\nl,r,m,q2,high\n", 3, "column 'value': 'high' is not a number"),
    ("digits with underscores", TOP + b"l,r,m,q1,1_000\n", 2, "'1_000' is not a number"),
    ("too large", TOP + b"l,r,m,q1,1e999\n", 2, "is infinite"),
    ("id empty", TOP + b"l,r,m,q1,0.5\nl,r,m,,0.5\n", 3, "column 'query_id': is empty"),
    ("NUL", TOP + b"l,r,m,q\0,1\n", 2, "holds a NUL character"),
    ("JSON, id a number", score(query_id=1), 1, "column 'query_id': must be a string, not the number 1"),
    ("JSON, value a list", score(value=[1]), 1, "column 'value': must be a number, not a list"),
    ("JSON, half a surrogate pair", score(run="\ud83d"), 1, "column 'run': holds '\\ud83d', half of a surrogate pair"),
    ("JSON, further field", score() + score(x=2), 2, "has a field 'x' that earlier records lack"),
    ("Parquet cut off", b"PAR1" + b"\0" * 40, None, "is not a readable Parquet file"),
]
TREC_RUN: list[Case] = [
    ("no score", b"q Q0 d 1 5 t\nq Q0 e 2 t\n", 2, "has 5 columns, expected 6"),
    ("no tag, two spaces", b"q Q0 d  1 5\n", 1, "has 5 columns"),
    ("a word for a score", b"q Q0 d 1 5 t\n\nq Q0 e 2 high t\n", 3, "'score' must be a finite number, not 'high'"),
    ("infinite", b"q Q0 d 1 inf t\n", 1, "'score' must be a finite number, not 'inf'"),
    ("CSV, column twice", b"query_id,doc_id,doc_id,score\nq,d,e,1\n", 2, "the header names column 'doc_id' twice"),
    ("CSV, two names of docs", b"query_id,doc_id,docid,score\nq,d,d,1\nq,e,5,1\n", 3, "has 'doc_id' and 'docid'; choose one, e.g. csv(doc=doc_id):"),
    ("CSV, blanks in the header", b"query_id, doc_id, score\nq, d, 1\n", 2, "' doc_id' has blanks around it: write 'doc_id'"),
    ("pair twice", b"q Q0 d 1 5 t\nr Q0 d 1 5 t\nq Q0 d 3 4 t\n", 3, "doc 'd' appears twice for query 'q' (first on line 1)"),
    ("reserved query id", b"q Q0 d 1 5 t\nall Q0 d 1 5 t\n", 2, "'all' is reserved"),
    ("empty", b"", None, "is empty; expected a TREC run"),
]
TREC_QRELS: list[Case] = [
    ("no relevance", b"q 0 d 1\nq 0 e\n", 2, "has 3 columns, expected 4"),
    ("a mean", b"q 0 d 1\nq 0 e 1.8\n", 2, "--scale NAME=means:5:2"),
    ("empty", b"", None, "is empty; expected a TREC qrels"),
]
# fmt: on


KINDS: dict[str, tuple[Callable[[Path], object], Callable[[bytes], bytes], list[Case]]] = {
    "queries": (read_queries, bytes, QUERIES),
    "docs": (lambda path: read_docs(path, memory_limit=1 << 30), bytes, DOCS),
    "packed docs": (lambda path: read_docs(path, memory_limit=0), gzip.compress, DOCS),
    "DPR": (read_dpr, bytes, DPR),
    "scores": (scores, bytes, TABLES),
    "TREC run": (read_run, bytes, TREC_RUN),
    "TREC qrels": (read_qrels, bytes, TREC_QRELS),
}


@pytest.mark.parametrize(
    ("read", "content", "line", "reason"),
    [
        pytest.param(read, pack(content), line, reason, id=f"{kind}: {what}")
        for kind, (read, pack, table) in KINDS.items()
        for what, content, line, reason in table
    ],
)
def test_a_bad_file_is_an_error_with_its_line(
    read: Callable[[Path], object], content: bytes, line: int | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    error = fails(read, path)
    assert (error.path, error.line, reason in error.reason) == (path, line, True), error


ROWS = {"query_id": pa.array(["q", "q"]).dictionary_encode(), "doc_id": ["a", "b"], "score": [2, 1]}
RATED = {"run": ["r"], "depth": [1], "model": ["m"], "query_id": ["q"], "metric": ["em"], "value": [1.0]}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            RATED | {"query_id": [1]},
            "column 'query_id' of the quality table, row 1: must be a string, not the number 1; ids are strings",
        ),
        (RATED | {"query_id": [None]}, "column 'query_id' of the quality table, row 1: must be a string, not null"),
        (RATED | {"depth": [1.5]}, "column 'depth' of the quality table, row 1: 1.5 is not a whole number"),
        (RATED | {"value": [-math.inf]}, "row 1: is infinite"),
        ({name: RATED[name] for name in [*RATED][1:]}, "lacks column 'run'"),
        (ROWS | {"query_id": [7, 8]}, "row 1: 'query_id' must be a string, not the number 7; ids are strings"),
        (ROWS | {"doc_id": ["a", None]}, "row 2: 'doc_id' must be a string, not null"),
        (ROWS | {"doc_id": ["a", "b c"]}, "row 2: 'doc_id' 'b c' holds white space"),
        (ROWS | {"doc_id": ["a", "a"]}, "row 2: doc 'a' appears twice for query 'q'"),
        (ROWS | {"score": [1.0, None]}, "row 2: some passages of this file have a 'score'"),
        (ROWS | {"run": ["a", "b"]}, "row 2: the column 'run' holds 'a' and 'b'"),
    ],
)
def test_bad_rows_of_parquet_are_named(columns: dict[str, list[object]], reason: str, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(ROWS), path)
    assert read_run(path).top("q") == ["a", "b"]
    pq.write_table(pa.table(columns), path)
    assert reason in fails(read_run if "doc_id" in columns else lambda p: read_table(QUALITY, p), path).reason


def test_a_table_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    schema = pa.schema([(c, pa.string()) for c in SCORES.columns], metadata={"judgekit.schema_version": "999"})
    pq.write_table(schema.empty_table(), path)
    assert "was written by a newer judgekit (schema version 999" in str(fails(scores, path))


READERS = [read_queries, read_docs, read_dpr, scores]


@pytest.mark.parametrize("read", READERS)
def test_a_missing_file_is_named_with_what_was_expected_and_what_is_like_it(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "data.jsonl").touch()
    for name, reason in (
        ("other", "no such file; expected"),
        ("date.jsonl", "Did you mean 'data.jsonl'?"),
        ("no/data.jsonl", "does not exist either"),
        ("", "is a folder"),
        ("/dev/null", "is a pipe or a device"),
    ):
        assert reason in fails(read, tmp_path / name).reason


@pytest.mark.parametrize("read", [*READERS, load, load_prompt])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_without_a_writer_is_refused_and_not_waited_for(read: Callable[[Path], object], tmp_path: Path) -> None:
    def waits(*_: object) -> None:
        raise AssertionError("it waits for somebody to write")

    os.mkfifo(tmp_path / "pipe")
    before = signal.signal(signal.SIGALRM, waits)
    signal.alarm(20)
    try:
        with pytest.raises((DataError, ConfigError), match=r"is a pipe or a device, .* write it to a file first"):
            read(tmp_path / "pipe")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("format", "reason"),
    [
        ("jsonn", "unknown data format 'jsonn'"),
        ("jsonl(key=x)", "unknown option 'key'"),
        ("csv(quote=single)", "expected quote=none"),
    ],
)
def test_a_format_that_does_not_exist_is_wrong_usage(format: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_bytes(Q1)
    with pytest.raises(UsageError) as caught:
        read_queries(f"{format}:{path}")
    assert reason in str(caught.value)


def arrow(new: Callable[..., Any], table: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    with new(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue().to_pybytes()


def database(_: pa.Table) -> bytes:
    with sqlite3.connect(":memory:") as base:
        base.execute("CREATE TABLE run (query_id TEXT)")
        return base.serialize()


def array(table: pa.Table) -> bytes:
    stream = io.BytesIO()
    np.save(stream, table.column("score").to_numpy())
    return stream.getvalue()


FOREIGN: dict[str, tuple[Callable[[pa.Table], bytes], str]] = {
    "polars write_ipc, pandas to_feather": (
        partial(arrow, pa.ipc.new_file),
        "is a table of Arrow or Feather.*Write its table as Parquet",
    ),
    "datasets save_to_disk": (
        partial(arrow, pa.ipc.new_stream),
        "is a table of Arrow or Feather.*Write its table as Parquet",
    ),
    "pandas to_pickle": (lambda table: pickle.dumps(table.to_pandas()), "is a pickle.*Write its table as Parquet"),
    "SQLite": (database, "is a database of SQLite.*Write its table as Parquet"),
    "numpy save": (array, "is an array of NumPy.*Write its table as Parquet"),
    "Excel 97": (
        lambda _: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504),
        "Excel file of the old kind.*Save it as .xlsx",
    ),
    "xz": (lambda _: lzma.compress(b"q1 Q0 d1 1 2 t"), "is compressed with xz.*Unpack it first"),
    "lz4": (
        lambda _: pa.compress(b"q1 Q0 d1 1 2 t", "lz4", asbytes=True),
        r"compressed with lz4.*ranx.*save\('run.json'\)",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_files_of_other_kinds_are_named_with_what_to_write_in_their_place(kind: str, tmp_path: Path) -> None:
    made, said = FOREIGN[kind]
    path = tmp_path / "run.trec"
    path.write_bytes(made(pa.table({"query_id": ["q1"], "doc_id": ["d1"], "score": [1.5]})))
    for read in (read_run, read_queries):
        with pytest.raises(DataError, match=said):
            read(path)
    assert re.search(said, recognise(path).why)


def test_a_text_that_names_a_kind_of_file_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "docs.tsv"
    path.write_text("SQLite\tis a database\nARROW\tpoints\n")
    assert [doc.doc_id for doc in read_docs(path)] == ["SQLite", "ARROW"]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_a_column_twice_with_the_same_cells_is_one(ending: str, tmp_path: Path) -> None:
    # pandas' index beside the column of its name, as in the spans of Phoenix
    table = pd.DataFrame({"query_id": ["q1", "q2"], "text": ["Who?", ""]}).set_index("query_id", drop=False)
    path = tmp_path / f"queries.{ending}"
    table.iloc[:1].to_csv(path) if ending == "csv" else table.iloc[:1].to_excel(path)
    assert [query.text for query in read_queries(path).values()] == ["Who?"]
