"""A large collection is indexed once, and found again; a user's own look-up is held to what it promises."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from judgekit.data import readers
from judgekit.data.checks import check_runs
from judgekit.data.documents import Doc, MemoryDocs, Query
from judgekit.data.readers import DiskDocs, read_docs, write_docs
from judgekit.data.runs import Run
from judgekit.errors import DataError

FOUND = [Doc(f"d{i}", f"text {i}", f"title {i}") for i in range(50)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_docs(FOUND, tmp_path / "docs.jsonl")
    return tmp_path / "docs.jsonl"


def no_build(*_: object) -> None:
    raise AssertionError("the index is built again")


def form(path: Path, name: str) -> Path:
    file = path.with_name(f"docs.{name}")
    if name == "gz":
        file.write_bytes(gzip.compress(path.read_bytes()))
    elif name == "parquet":
        pd.DataFrame([{"doc_id": d.doc_id, "title": d.title, "text": d.text} for d in FOUND]).to_parquet(file)
    return file


@pytest.mark.parametrize("name", ["jsonl", "gz", "parquet"])
def test_a_second_command_finds_the_index(
    path: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, index = form(path, name), tmp_path / "new" / "cache"
    first = read_docs(file, memory_limit=0, index=index)
    monkeypatch.setattr(readers, "_build", no_build)
    second = read_docs(file, memory_limit=0, index=index)
    assert isinstance(second, DiskDocs)
    assert list(second) == list(first) == FOUND
    assert second.get(["d49", "d0"]) == [FOUND[49], FOUND[0]]


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_a_document_is_looked_up_by_its_id(path: Path, limit: int) -> None:
    docs = read_docs(path, memory_limit=limit)
    assert docs["d7"] == FOUND[7]
    with pytest.raises(DataError, match="doc 'x' is not in the collection"):
        docs["x"]


def test_without_a_folder_of_ones_own_the_index_lies_beside_the_reply_store(path: Path) -> None:
    read_docs(path, memory_limit=0)
    assert [file.suffix for file in Path(os.environ["JUDGEKIT_CACHE"], "docs").iterdir()] == [".idx"]


def test_above_8_mib_a_collection_stays_on_disk(tmp_path: Path) -> None:
    for bytes_, kind in ((8 << 20, MemoryDocs), ((8 << 20) + 1, DiskDocs)):
        row = '{"doc_id": "d", "text": "%s"}\n'
        (tmp_path / "large.jsonl").write_text(row % ("x" * (bytes_ - len(row) + 2)))
        assert (tmp_path / "large.jsonl").stat().st_size == bytes_
        assert isinstance(read_docs(tmp_path / "large.jsonl", index=tmp_path / "index"), kind)


def test_a_file_that_has_changed_is_indexed_anew(path: Path, tmp_path: Path) -> None:
    index = tmp_path / "cache"
    read_docs(path, memory_limit=0, index=index)
    write_docs([*FOUND, Doc("new", "text")], path)
    again = read_docs(path, memory_limit=0, index=index)
    assert (len(again), again.get(["new"])) == (51, [Doc("new", "text")])
    assert len(list((index / "docs").iterdir())) == 1, "one index for one path"


def test_a_damaged_index_is_built_anew(path: Path, tmp_path: Path) -> None:
    index = tmp_path / "cache"
    read_docs(path, memory_limit=0, index=index)
    [file] = (index / "docs").iterdir()
    whole = file.read_bytes()
    for content in (b"", b"x" * 100, whole[:-8], whole[: len(whole) // 2]):
        file.write_bytes(content)
        assert [*read_docs(path, memory_limit=0, index=index)] == FOUND  # type: ignore[call-overload]
        assert len(file.read_bytes()) == len(whole)


def test_what_a_killed_command_left_goes_with_the_next_index_of_that_file(path: Path, tmp_path: Path) -> None:
    read_docs(path, memory_limit=0, index=tmp_path / "index")
    [made] = (tmp_path / "index" / "docs").iterdir()
    made.unlink()
    old, new, other = (made.with_name(f".{name}.tmp") for name in (f"{made.name}.1-ab", f"{made.name}.2-cd", "mine"))
    for left in (old, new, other):
        left.write_text("left")
    for left in (old, other):
        os.utime(left, (0, 0))
    read_docs(path, memory_limit=0, index=tmp_path / "index")
    assert set(made.parent.iterdir()) == {made, new, other}


def test_a_cache_that_cannot_be_written_is_done_without(path: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    docs = read_docs(path, memory_limit=0, index=tmp_path / "cache")
    assert docs.get(["d3"]) == [FOUND[3]]


def test_a_nested_form_is_unpacked_with_each_doc_once(tmp_path: Path) -> None:
    entry = '{"question": "?", "ctxs": [{"id": "1", "text": "a", "score": %d}, {"id": "%s", "text": "b"}]}\n'
    (tmp_path / "dpr.jsonl").write_text(entry % (1, "2") + entry % (2, "3"))
    docs = read_docs(tmp_path / "dpr.jsonl", memory_limit=0, index=tmp_path)
    assert [doc.doc_id for doc in docs] == ["1", "2", "3"]  # type: ignore[attr-defined]  # a collection of a file
    (tmp_path / "dpr.jsonl").write_text(entry % (1, "2") + entry % (2, "1"))
    with pytest.raises(DataError, match=r"line 2: ctxs\[1\]: doc '1' has a different title or text than before"):
        read_docs(tmp_path / "dpr.jsonl", memory_limit=0, index=tmp_path)


def test_a_thousand_documents_take_few_selects(path: Path, tmp_path: Path) -> None:
    write_docs((Doc(f"d{i}", f"text {i}") for i in range(1200)), path)
    docs = read_docs(path, memory_limit=0, index=tmp_path)
    assert isinstance(docs, DiskDocs)
    statements: list[str] = []
    docs._index.set_trace_callback(statements.append)
    ids = [f"d{i}" for i in range(999, -1, -1)]
    run = Run("run", ["q"] * 1000, ids, np.arange(1000))
    queries = {"q": Query("q", "?")}
    check_runs([run], queries, docs)
    assert len(statements) == 2, "a block of ids is counted at once"
    assert [doc.doc_id for doc in docs.get(ids)] == ids
    assert len(statements) == 4
    assert docs.lacking([*ids[:600], "none", *ids[600:], "no", "none"]) == ["none", "no"]
    wrong = Run("run", ["q"] * 1000, [*ids[1:], "none"], np.arange(1000))
    with pytest.raises(DataError, match="1 of its 1000 docs missing from the collection, first 'none'"):
        check_runs([wrong], queries, docs)
    assert "none" not in docs
    assert "d1" in docs
    assert 1 not in docs


def test_a_document_on_disk_keeps_all_that_it_has(tmp_path: Path) -> None:
    held = [
        Doc("a", "x"),
        Doc("b", "y", "title", "page", 3, 4, {"lang": "de"}),
        Doc("ü", "", "", "page", None, None, {}),
    ]
    write_docs(held, tmp_path / "docs.jsonl")
    docs = read_docs(tmp_path / "docs.jsonl", memory_limit=0, index=tmp_path)
    assert isinstance(docs, DiskDocs)
    assert docs.get(["ü", "b", "a", "b"]) == [held[2], held[1], held[0], held[1]]
    assert [*docs] == held
