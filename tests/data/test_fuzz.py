# ruff: noqa: E501 - a case stands in one line
"""Whatever is in a file, reading it ends in data or in an error that names the file; never in another exception."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.data.files import read_table
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.tables import SCORES
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError

QUERIES = [{"query_id": "q1", "text": "whö?", "answers": ["me", "you"]}, {"query_id": "q2", "text": "x", "answers": []}]
ENTRIES = [{"question": "x", "answers": ["y"], "ctxs": [{"id": "1", "title": "", "text": "a", "score": "1.5"}]}] * 2
LINES = "".join(json.dumps(q) + "\n" for q in QUERIES).encode()


def read_dpr(path: Path) -> object:
    return read_queries(path, "dpr"), read_docs(path, "dpr"), read_run(path, format="dpr")


GOOD: dict[str, tuple[Callable[[Path], object], bytes]] = {
    "json lines": (read_queries, LINES),
    "json": (read_queries, json.dumps(QUERIES, ensure_ascii=False, indent=1).encode()),
    "csv": (read_queries, b'query_id,text,answers\nq1,"who, me?","[""a"", ""b""]"\nq2,what?,x\n'),
    "docs": (lambda path: read_docs(path, memory_limit=0), b'{"_id": "1", "text": "a"}\n{"_id": "2", "text": "b"}\n'),
    "tsv": (read_docs, b"doc_id\ttext\ttitle\n1\ta\tb\n2\tc\td\n"),
    "retrieval json": (read_dpr, json.dumps(ENTRIES).encode()),
    "table": (lambda path: read_table(SCORES, path), b"labeling,run,measure,query_id,value\na,b,c,d,0.5\na,b,c,e,\n"),
    "quoted": (
        lambda path: read_table(SCORES, path),
        b'labeling,run,measure,query_id,value\n"a",b,c,d,0.5\n"a",b,c,e,1\n',
    ),
    "table in json": (
        lambda path: read_table(SCORES, path),
        b'[{"labeling": "a", "run": "b", "measure": "c", "query_id": "d\\u00e9", "value": 0.5, "x": [1]}]',
    ),
    "gzip": (read_queries, gzip.compress(LINES, mtime=0)),
    "run": (read_run, b"q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\nq2 Q0 d1 1 1e-3 tag\n"),
    "kilt": (
        read_qrels,
        b'{"id": "1", "input": "x", "output": [{"answer": "y", "provenance": [{"wikipedia_id": "7"}]}]}\n',
    ),
    "kilt run": (
        read_run,
        b'{"id": "1", "input": "x", "output": [{"provenance": [{"wikipedia_id": "7", "text": "a"}]}]}\n',
    ),
    "castorini": (
        read_run,
        b'{"query": {"text": "x", "qid": 1}, "candidates": [{"docid": "d", "score": 1, "doc": {"contents": "y"}}]}\n',
    ),
    "castorini docs": (
        read_docs,
        b'{"query": {"text": "x", "qid": 1}, "candidates": [{"docid": "d", "score": 1, "doc": {"contents": "y"}}]}\n',
    ),
    "ragas": (
        read_docs,
        b'{"user_input": "x", "retrieved_contexts": ["a"], "reference_contexts": ["b"], "response": "y", "reference": "z"}\n',
    ),
    "ragas in csv": (read_queries, b"question,contexts,answer,ground_truth\nx,\"['a', 'b']\",y,z\n"),
    "a conversation": (
        read_queries,
        b'{"user_input": [{"type": "human", "content": "a"}], "response": "y", "reference": "z"}\n',
    ),
    "run by query": (read_run, b'{\n"q1": {"d1": 1, "d2": 0.5},\n"q2": {"d1": 2}}'),
    "qrels by query": (read_qrels, b'{"q1": {"d1": 1, "d2": 0}}'),
    "expected documents": (read_qrels, b'[{"query": "x", "documents": ["a", "b"], "grades": [1, 2]}]'),
    "msmarco": (read_run, b"q1\td1\t1\nq1\td2\t2\nq2\td1\t1\n"),
    "run in csv": (read_run, b'query_id,doc_id,score\nq1,d1,2\nq1,"d2",1\n'),
    "beir qrels": (read_qrels, b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n"),
    "topics": (read_queries, b"<top>\n<num> Number: 1\n<title> x\n<desc> Description:\ny\n</top>\n"),
    "qa": (read_queries, b"who is it?\t['Ann', 'Bo']\n"),
    "leaderboard": (lambda path: read_table(SCORES, path), b"r1\tm\tt1\t0.5\nr2\tm\tt1\t0.25\nr1\tm\tall\t0.5\n"),
    "leaderboard in json": (
        lambda path: read_table(SCORES, path),
        b'{"run_id": "r", "topic_id": "t", "measure": "m", "value": 1}\n',
    ),
    "bzip2": (read_queries, bz2.compress(LINES)),
    "zstd": (read_queries, pa.compress(LINES, codec="zstd", asbytes=True)),
    "qrels": (read_qrels, b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 3\n"),
}
edits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "file"


def error_of(read: Callable[[Path], object], path: Path) -> DataError | None:
    try:
        read(path)
    except DataError as error:
        return error
    return None


@pytest.mark.parametrize("kind", GOOD)
@given(edits=edits)
def test_a_damaged_file_is_data_or_an_error_that_names_it(
    kind: str, edits: list[tuple[float, int, bytes]], path: Path
) -> None:
    read, content = GOOD[kind]
    for place, removed, added in edits:
        at = int(place * len(content))
        content = content[:at] + added + content[at + removed :]
    path.write_bytes(content)
    error = error_of(read, path)
    assert error is None or (error.path == path and error.reason)


@pytest.mark.parametrize("kind", GOOD)
def test_the_undamaged_file_is_data(kind: str, path: Path) -> None:
    read, content = GOOD[kind]
    path.write_bytes(content)
    read(path)
