"""Queries and docs are recognised in every format and dialect, and read back as they were written."""

import gzip
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from inspect import getsource
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.data.documents import Doc, MemoryDocs, Query, render
from judgekit.data.readers import DiskDocs, _doc, read_docs, read_queries, write_docs, write_queries
from judgekit.data.records import DECODER, parse_object
from judgekit.data.sources import resolved
from judgekit.data.streams import Line
from judgekit.data.tables import ALL, id_problem
from judgekit.errors import DataError, UsageError

QUERY = Query("007", "who wrote it?", ("Ann", "A. B."))
DOC = Doc("NA", "text, with a comma", "Title", "p1")
Q = {"query_id": "007", "text": "who wrote it?", "answers": ["Ann", "A. B."]}
D = {"doc_id": "NA", "text": "text, with a comma", "title": "Title", "page_id": "p1"}

ENCODINGS: list[Callable[[str], bytes]] = [
    str.encode,
    lambda text: gzip.compress(text.encode()),
    lambda text: text.encode("utf-8-sig"),
    lambda text: text.replace("\n", "\r\n").encode(),
    lambda text: text.rstrip("\n").encode(),
    lambda text: text.encode() + b"\n \n",
]
either_way = pytest.mark.parametrize("memory_limit", [0, 1 << 30], ids=["disk", "memory"])


def line(**fields: object) -> str:
    return json.dumps(fields) + "\n"


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (line(**Q), "auto"),
        (json.dumps([Q], indent=2), "auto"),
        (line(_id="007", text="who wrote it?", metadata={"x": [1, 2.5, None]}, answers=["Ann", "A. B."]), "auto"),
        (line(**Q, id=7, question="another field of that meaning"), "jsonl(id=query_id, text=text)"),
        (line(**{**Q, "text": "other"}, body="who wrote it?"), "jsonl(text=body)"),
        ('query_id,text,answers\n007,who wrote it?,"[""Ann"", ""A. B.""]"\n', "auto"),
        ('007\twho wrote it?\t["Ann", "A. B."]\n', "tsv(header='id, text, answers', quote=none)"),
    ],
)
def test_queries_are_recognised_however_they_are_encoded(content: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / "queries.dat"
    for encode in ENCODINGS:
        path.write_bytes(encode(content))
        found = read_queries(f"{format}:{path}")
        assert {name: replace(query, columns={}) for name, query in found.items()} == {"007": QUERY}


@either_way
@pytest.mark.parametrize(
    ("content", "format"),
    [
        (line(id="NA", contents="text, with a comma", title="Title", wikipedia_id="p1"), "auto"),
        (line(key="NA", text="text, with a comma", head="Title", page="p1"), "jsonl(id=key, title=head, page=page)"),
        ('doc_id,text,title,page_id\nNA,"text, with a comma",Title,p1\n', "auto"),
        ("NA\ttext, with a comma\tTitle\tp1\n", "tsv(header='id,text,title,page_id')"),
    ],
)
def test_docs_are_recognised(content: str, format: str, memory_limit: int, tmp_path: Path) -> None:
    path = tmp_path / "docs.dat"
    path.write_text(content)
    docs = read_docs(f"{format}:{path}", memory_limit=memory_limit)
    assert isinstance(docs, DiskDocs if memory_limit == 0 else MemoryDocs)
    assert docs.get(["NA"]) == [DOC]


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        (line(id="q", text="x", answers=None), ()),
        (line(id="q", text="x", answer="a bare string"), ("a bare string",)),
        ("id,text,answers\nq,x,\n", ()),
        ("id,text,answers\nq,x,1999\n", ("1999",)),
    ],
)
def test_reference_answers_may_be_absent_one_or_several(content: str, answers: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "queries"
    path.write_text(content)
    assert read_queries(path)["q"].answers == answers


def test_queries_may_name_their_language(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(line(**Q, language=" pt-BR "))
    assert read_queries(path)["007"].language == "pt-BR"
    write_queries(read_queries(path), tmp_path / "again.jsonl")
    assert read_queries(tmp_path / "again.jsonl") == read_queries(path)


@either_way
def test_parquet_is_read_as_a_file_and_as_a_folder_of_parts(memory_limit: int, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    pq.write_table(pa.table({"doc_id": ["a"], "text": ["x"], "title": [None]}), folder / "part-0.parquet")
    pq.write_table(pa.table({"doc_id": ["b"], "text": ["y"]}), folder / "part-1.parquet")
    (folder / "_SUCCESS").touch()
    both = read_docs(folder, memory_limit=memory_limit)
    assert list(both) == [Doc("a", "x"), Doc("b", "y")]
    assert list(read_docs(folder / "part-1.parquet", memory_limit=memory_limit)) == [Doc("b", "y")]
    pq.write_table(pa.table({"query_id": ["a"], "text": ["x"], "answers": [["1", "2"]]}), tmp_path / "queries.parquet")
    assert read_queries(tmp_path / "queries.parquet") == {"a": Query("a", "x", ("1", "2"))}


def test_a_form_can_be_given_in_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jk.register, "forms", {})
    jk.register.form("colon")(colon)
    path = tmp_path / "queries.txt"
    path.write_text("q1: who?\nq2: what?\n")
    assert [doc.doc_id for doc in jk.read_docs(f"colon:{path}")] == ["q1", "q2"]
    path.write_text("q1: who?\nq2: what?\nq1: again\n")
    with pytest.raises(DataError, match=r"line 3: query 'q1' appears twice \(first on line 1\)"):
        read_queries(f"colon:{path}")


def test_a_form_is_a_function_in_a_file_that_stands_in_front_of_the_path(tmp_path: Path) -> None:
    form, path = tmp_path / "my_forms.py", tmp_path / "queries.txt"
    form.write_text(f"from __future__ import annotations\n{getsource(colon)}")
    path.write_text("q1: who?\nq2: what?\n")
    source = f"{form}:colon:{path}"
    assert resolved("my_forms.py:colon:queries.txt", tmp_path) == Path(source)
    assert resolved("queries.txt", tmp_path) == path
    assert list(read_queries(f"{form}:colon(id=text, text=id):{path}")) == ["who?", "what?"]
    with pytest.raises(UsageError, match=r"my_forms.py has no function 'semicolon'"):
        jk.read_queries(source.replace(":colon", ":semicolon"))
    path.write_text("q1: who?\nq2 what?\n")
    with pytest.raises(UsageError, match=r"queries.txt, read as .*my_forms.py:colon: ValueError.*my_forms.py, line"):
        jk.read_queries(source)


def colon(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for number, text in enumerate(path.read_text().splitlines(), 1):
        yield number, dict(zip(("id", "text"), text.split(": "), strict=True))


# What has been written is read back, whatever the ids and texts are.

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
strange = st.sampled_from(
    ["007", "NA", "nan", "null", "1e5", "None", "-1", "#", "a,b", 'q"uote', "é", "日本", "{", "[x"]
)
ids = st.one_of(strange, text).filter(lambda i: id_problem(i) is None and i != ALL)
answer = text.filter(lambda a: bool(a.strip()))
queries = st.builds(Query, ids, text.filter(lambda t: bool(t.strip())), st.lists(answer, max_size=3).map(tuple))
docs = st.builds(Doc, ids, text, text, st.none() | ids)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@given(found=st.lists(queries, min_size=1, unique_by=lambda q: q.query_id))
def test_queries_read_back_as_they_were_written(found: list[Query], folder: Path) -> None:
    write_queries(found, folder / "queries.jsonl")
    assert list(read_queries(folder / "queries.jsonl").values()) == found


@either_way
@given(found=st.lists(docs, min_size=1, unique_by=lambda d: d.doc_id))
def test_docs_read_back_as_they_were_written(memory_limit: int, found: list[Doc], folder: Path) -> None:
    write_docs(found, folder / "docs.jsonl.gz")
    again = read_docs(folder / "docs.jsonl.gz", memory_limit=memory_limit)
    assert list(again) == found
    assert again.get([d.doc_id for d in reversed(found)]) == found[::-1]
    assert len(again) == len(found)
    assert all(d.doc_id in again for d in found)
    assert ("no such doc" in again, 5 in again) == (False, False)
    with pytest.raises(DataError, match="doc 'no such doc' is not in the collection"):
        again.get([found[0].doc_id, "no such doc"])


@pytest.mark.parametrize(("name", "weight"), [("docs.jsonl", 1), ("docs.jsonl.gz", 4)])
def test_a_large_collection_stays_on_disk_by_its_size(name: str, weight: int, tmp_path: Path) -> None:
    write_docs([DOC], tmp_path / name)
    size = weight * (tmp_path / name).stat().st_size
    assert isinstance(read_docs(tmp_path / name, memory_limit=size), MemoryDocs)
    assert isinstance(read_docs(tmp_path / name, memory_limit=size - 1), DiskDocs)


def test_questions_are_taken_together_by_a_column_or_their_language(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text(line(**Q, kind=0, language="fi") + line(query_id="8", text="x", kind=""))
    first, second = read_queries(path).values()
    assert (first.group("kind"), first.group("language")) == ("0", "fi")
    for query, column in ((first, "kid"), (second, "kind"), (second, "language")):
        with pytest.raises(DataError, match=f"question '{query.query_id}' has no group: unknown column '{column}'"):
            query.group(column)
    with pytest.raises(DataError, match=r"query '8' has no column 'kid', .* \(it has: kind\). Did you mean 'kind'"):
        second.column("kid")
    assert (Doc("d", "x", columns={"a": "b"}).column("a"), render(DOC), render(DOC, "text")) == (
        "b", f"Title\n{DOC.text}", DOC.text
    )  # fmt: skip


def test_docs_on_disk_can_be_read_by_several_threads(tmp_path: Path) -> None:
    found = [Doc(str(i), f"text {i}" * 50) for i in range(200)]
    write_docs(found, tmp_path / "docs.jsonl")
    docs = read_docs(tmp_path / "docs.jsonl", memory_limit=0)
    with ThreadPoolExecutor(4) as threads:
        assert [doc for [doc] in threads.map(lambda doc: docs.get([doc.doc_id]), found)] == found


def test_history_is_what_was_said_before_the_question_unless_a_column_has_that_name() -> None:
    turns = tuple(
        {"role": role, "content": said} for role, said in (("user", "Who?"), ("tool", "Ann."), ("user", "When?"))
    )
    query, before = Query("q", "When?", messages=turns), "user: Who?\ntool: Ann."
    assert query.column("history") == replace(query, messages=turns[:2]).column("history") == before
    assert query.column("messages") == f"{before}\nuser: When?"
    assert replace(query, columns={"history": ""}).column("history") == "", "an empty value is fine"
    for odd in (query, replace(query, messages=())):
        with pytest.raises(DataError, match="query 'q' has no column 'day', which the prompt shows"):
            odd.column("day")
    assert replace(query, language="fi").group("language") == "fi"
    with pytest.raises(DataError, match="question 'q' has no group: unknown column 'language'"):
        query.group("language")


def test_a_collection_holds_each_document_once_and_returns_them_in_the_order_asked_for() -> None:
    docs = MemoryDocs([DOC, Doc("b", "x")])
    assert [doc.doc_id for doc in docs.get(["b", "NA"])] == ["b", "NA"]
    with pytest.raises(DataError, match="doc 'c' is not in the collection"):
        docs.get(["b", "c"])
    with pytest.raises(DataError, match="doc 'NA' appears twice"):
        MemoryDocs([DOC, DOC])


@given(
    st.dictionaries(
        st.sampled_from(["doc_id", "text", "title", "page_id", "start", "note", 'a"b', "é"]),
        st.one_of(
            st.text(max_size=12),
            st.sampled_from(['"x":', '{"a": 1}', "\ud800", "\\u0000"]),
            st.integers(-(2**70), 2**70),
            st.floats(),
            st.none(),
            st.booleans(),
            st.lists(st.text(max_size=3), max_size=2),
        ),
        max_size=5,
    ),
    st.booleans(),
    st.sampled_from([(",", ":"), (", ", " : ")]),
)
def test_a_line_of_json_is_read_as_pythons_reader_reads_it(
    fields: dict[str, Any], twice: bool, separators: tuple[str, str]
) -> None:
    text = json.dumps(fields, separators=separators)
    if twice and fields:
        key = next(iter(fields))
        text = f"{text[:-1]}{separators[0]}{json.dumps(key)}{separators[1]}1}}"
        with pytest.raises(DataError, match="appears twice"):
            parse_object(Line(1, text), "f.jsonl")
        return
    assert repr(parse_object(Line(1, text), "f.jsonl")) == repr(DECODER.decode(text))


@given(
    st.builds(
        Doc,
        st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=5),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.one_of(st.none(), st.just("p é")),
        st.one_of(st.none(), st.integers(0, 9)),
        st.one_of(st.none(), st.integers(0, 9)),
        st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    )
)
def test_the_index_holds_a_doc_as_json_of_its_fields(doc: Doc) -> None:
    assert json.loads(orjson.dumps(doc)) == asdict(doc)
    assert _doc(orjson.dumps(doc).decode()) == doc


def test_a_doc_that_is_there_again_is_refused_with_both_lines(tmp_path: Path) -> None:
    rows = [{"doc_id": f"d{number}", "text": "x"} for number in range(1500)]
    rows[1400] = {"doc_id": "d3", "text": "x"}
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"line 1401: doc 'd3' appears twice \(first on line 4\)"):
        read_docs(tmp_path / "docs.jsonl", memory_limit=0, index=tmp_path)
    entry = {"question": "Who?", "answers": ["A"], "ctxs": [{"id": "c", "text": "one"}, {"id": "c", "text": "two"}]}
    (tmp_path / "dpr.jsonl").write_text(json.dumps(entry) + "\n")
    with pytest.raises(DataError, match="doc 'c' has a different title or text than before"):
        read_docs(tmp_path / "dpr.jsonl", memory_limit=0, index=tmp_path)


def test_documents_on_disk_are_looked_up_in_any_number_and_order(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text("".join(f'{{"doc_id": "d{i}", "text": "{i}"}}\n' for i in range(1200)))
    docs = read_docs(tmp_path / "docs.jsonl", memory_limit=0, index=tmp_path)
    wanted = [f"d{i}" for i in (*range(1199, -1, -1), 7, 7)]
    assert [doc.doc_id for doc in docs.get(wanted)] == wanted
    with pytest.raises(DataError, match="doc 'e' is not in the collection"):
        docs.get(["d1", "e"])


NESTED = """
import judgekit as jk

@jk.register.form("hits of a file", holds=("query", "doc", "run"))
def hits(fields):
    return {"question": fields["asked"], "ctxs": [{"id": hit, "text": hit.upper()} for hit in fields["hits"]]}
"""


def test_a_form_of_records_is_named_by_its_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jk.register, "forms", dict(jk.register.forms))
    (tmp_path / "nested.py").write_text(NESTED)
    (tmp_path / "found.jsonl").write_text('{"asked": "Who?", "hits": ["d1", "d2"]}\n')
    source = f"{tmp_path / 'nested.py'}:hits:{tmp_path / 'found.jsonl'}"
    (query_id,) = jk.read_queries(source)
    assert jk.read_run(source).top(query_id) == ["d1", "d2"]
    assert jk.read_docs(source)["d2"].text == "D2"
