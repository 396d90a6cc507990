"""Readers and writers of queries and docs in files; `judgekit.data.forms` recognises what a file holds.

A large collection is checked and copied into an SQLite table once, so that memory stays flat. It lies beside the reply
store, one per path, and stays valid while size, modification time and a sample of the content are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from judgekit.data.documents import Doc, MemoryDocs, Queries, Query, record_of, unknown_doc
from judgekit.data.fields import DECLARED, Source, doc_of, docs_of, queries_of, same_text
from judgekit.data.folders import files_of, unpacked_size
from judgekit.data.outputs import cache_folder
from judgekit.data.records import DataRecord
from judgekit.data.sources import Located, contents, located, opened
from judgekit.data.streams import open_atomic, temporary
from judgekit.data.trec import read_qrels
from judgekit.errors import DataError

T = TypeVar("T")
Files = str | Path | Sequence[str | Path]


def read_queries(files: Files) -> Queries:
    """Read queries.

    Args:
        files: one or several files; ``FORM:FILE`` if the content does not show the form, e.g. ``"jsonl(id=qid,
            text=question, answers=gold):asked.jsonl"``; for a BEIR folder, the queries that its judgments
            (``beir(split=test)``) are about.

    Returns:
        The queries by id, in the order of the files.

    Raises:
        DataError: see `judgekit.data.fields`; the message has file, line and reason.
        UsageError: there is no such form or option.
    """
    queries: dict[str, Query] = {}
    for file in [files] if isinstance(files, str | Path) else files:
        some = queries_of(*opened(file, "query"))
        place = located(file, "query").path
        if place.name.startswith("queries.jsonl") and (place.parent / "qrels").is_dir() and place != Path(file):
            # BEIR keeps the queries of all splits in one file: those of train would have no judgment at all.
            judged = set(read_qrels(file).row_queries)
            some = {query_id: query for query_id, query in some.items() if query_id in judged} or some
        for query_id, query in some.items():
            if queries.setdefault(query_id, query).text != query.text:
                raise DataError(f"query {query_id!r} has a different text than in an earlier file", place)
    return queries


def read_docs(
    files: Files, *, memory_limit: int | None = None, index: str | Path | None = None
) -> MemoryDocs | DiskDocs:
    """Read a collection of documents. A large one is checked once and then stays on disk.

    Args:
        files: the file, a folder of Parquet parts, or several files, which may share documents; ``FORM:FILE`` if the
            content does not show the form, e.g. ``"tsv(header='id,text', quote=none):docs.tsv"``.
        memory_limit: bytes above which the collection stays on disk; compressed files count fourfold.
        index: folder for its index; the cache folder by default.

    Returns:
        The documents by id, in memory, or on disk above the limit.

    Raises:
        DataError: see `judgekit.data.fields`; the message has file, line and reason.
        UsageError: there is no such form or option.
    """
    if isinstance(files, str | Path):
        return _docs(files, memory_limit, index)
    if len(files) == 1:
        return _docs(files[0], memory_limit, index)
    docs: dict[str, Doc] = {}
    for file in files:
        some = _docs(file, memory_limit, index)
        if not isinstance(some, MemoryDocs):
            raise DataError("is too large to be one of several collections: put all docs into one file", file)
        for doc in some:
            known = docs.setdefault(doc.doc_id, doc)
            if doc.page_id and not known.page_id:
                docs[doc.doc_id] = doc
            if not same_text(known, doc):
                raise DataError(f"doc {doc.doc_id!r} has a different title or text than in an earlier file", file)
    return MemoryDocs(docs.values())


def _docs(file: str | Path, memory_limit: int | None, index: str | Path | None) -> MemoryDocs | DiskDocs:
    place = located(file, "doc")
    limit = MEMORY_LIMIT if memory_limit is None else memory_limit
    if unpacked_size(place.path, DECLARED["doc"].expected) > limit:
        return on_disk(place, str(file), index)
    source, records = contents(place, "doc")
    return docs_of(source, records)


def write_queries(queries: Queries | Iterable[Query], path: str | Path) -> None:
    """Write queries as JSON lines that `read_queries` reads back; compressed if the name ends in ``.gz``."""
    _write_jsonl(path, map(record_of, queries.values() if isinstance(queries, Mapping) else queries))


def write_docs(docs: Iterable[Doc], path: str | Path) -> None:
    """Write docs as JSON lines that `read_docs` reads back; compressed if the name ends in ``.gz``."""
    _write_jsonl(path, map(record_of, docs))


def _write_jsonl(path: str | Path, objects: Iterable[dict[str, Any]]) -> None:
    with open_atomic(path) as stream:
        for fields in objects:
            stream.write(json.dumps(fields, ensure_ascii=False).encode() + b"\n")


MEMORY_LIMIT: Final = 8 << 20
"""Size in bytes above which a collection stays on disk; compressed files count fourfold."""
_VERSION: Final = 4
_SAMPLE: Final = 1 << 16
_ABANDONED_S: Final = 86_400
_MAPPED: Final = 1 << 40
_LOOKED_UP: Final = 500
"""Number of docs looked up at once: SQLite takes 999 values in a statement."""
_BLOCK: Final = 1000
"""Number of docs written to the index at once."""
_TABLES: Final = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE docs (number INTEGER PRIMARY KEY, doc_id TEXT UNIQUE, line INTEGER, doc TEXT);
BEGIN
"""
"""The table of an index, with the docs themselves as JSON, in the order of the file."""


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield the items in tuples of a given size; Python has this from 3.12 on."""
    rest = iter(items)
    while batch := tuple(islice(rest, size)):
        yield batch


class DiskDocs:
    """A collection that is not loaded; see `read_docs`.

    It is safe to use from several threads. Its file is closed when the collection is no longer in use, and outlives its
    name until then.
    """

    def __init__(self, file: Path) -> None:
        """Open an index."""
        self._lock = threading.Lock()
        uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
        self._index = sqlite3.connect(uri, uri=True, check_same_thread=False)
        # The file is mapped: otherwise each look-up in a large collection copies a page.
        self._index.execute(f"PRAGMA mmap_size = {_MAPPED}")
        weakref.finalize(self, self._index.close)
        ((self._count,),) = self._index.execute("SELECT max(number) FROM docs")

    def _rows(self, what: str, doc_ids: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield columns of the existing docs among some distinct ids, in any order, hundreds per SELECT."""
        for wanted in batched(doc_ids, _LOOKED_UP):
            marks = ", ".join("?" * len(wanted))
            with self._lock:
                rows = self._index.execute(f"SELECT {what} FROM docs WHERE doc_id IN ({marks})", wanted).fetchall()
            yield rows

    def get(self, doc_ids: Sequence[str]) -> list[Doc]:
        """Return the documents, in the order of the given ids; raise a `DataError` for an unknown id."""
        found: dict[str, Doc] = {}
        for rows in self._rows("doc", dict.fromkeys(doc_ids)):
            for (stored,) in rows:
                doc = _doc(stored)
                found[doc.doc_id] = doc
        try:
            return [found[doc_id] for doc_id in doc_ids]
        except KeyError as error:
            raise unknown_doc(error.args[0]) from None

    def __getitem__(self, doc_id: str) -> Doc:
        """Return the document of an id; raise a `DataError` for an unknown one."""
        return self.get([doc_id])[0]

    def lacking(self, doc_ids: Iterable[str]) -> list[str]:
        """Return the ids that are not in the collection."""
        ids = [*dict.fromkeys(doc_ids)]
        # Counting only looks at the index of ids, and mostly none is missing.
        if sum(count for ((count,),) in self._rows("count(*)", ids)) == len(ids):
            return []
        there = {doc_id for rows in self._rows("doc_id", ids) for (doc_id,) in rows}
        return [doc_id for doc_id in ids if doc_id not in there]

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and not self.lacking([doc_id])

    def __len__(self) -> int:
        return int(self._count)

    def __iter__(self) -> Iterator[Doc]:
        """Read the documents in the order of the file."""
        return (_doc(doc) for (doc,) in self._index.execute("SELECT doc FROM docs ORDER BY number"))


def on_disk(place: Located, source: str, index: str | Path | None) -> DiskDocs:
    """Open a collection by its index; build one if none fits, only for this process if the folder is read-only."""
    folder = Path(index or cache_folder()) / "docs"
    whose = hashlib.sha256(f"{place.path.resolve()} {source}".encode()).hexdigest()[:24]
    name = f"{whose}-{fingerprint(place.path, source)[:24]}"
    with ExitStack() as stack:
        try:
            for parent in (folder.parent, folder):
                parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # as the store's, which makes it otherwise
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="judgekit-")))
        try:
            for file in folder.glob(f"{name}-*.idx"):
                # Its name ends with its size, so that a truncated one is not used.
                if file.stat().st_size == int(file.stem.split("-")[-1]):
                    return DiskDocs(file)
            source_of_docs, records = contents(place, "doc")
            return DiskDocs(_build(source_of_docs, records, folder, name))
        except (sqlite3.Error, FileNotFoundError) as error:
            raise DataError(f"its index in {folder} cannot be written or read: {error}", place.path) from error


def fingerprint(path: Path, spelled: str) -> str:
    """Return a fingerprint of a file: the size and modification time of its parts, and a sample of their bytes."""
    digest = hashlib.sha256(f"{_VERSION} {spelled}".encode())
    # Hashing everything takes longer than most commands. Size and time alone would miss a file that was replaced with
    # the same time.
    for part in files_of(path):
        known = part.stat()
        digest.update(f"{part.name} {known.st_size} {known.st_mtime_ns}".encode())
        with part.open("rb") as stream:
            for start in (0, known.st_size // 2, max(0, known.st_size - _SAMPLE)):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()


def _doc(stored: str) -> Doc:
    """Return a doc from its JSON object in the index."""
    # By position, as in the class: by name it takes a third longer.
    return Doc(*orjson.loads(stored).values())


def _refuse_again(
    source: Source, index: sqlite3.Connection, block: Iterable[DataRecord], read: Iterable[tuple[str, Doc]]
) -> None:
    """Refuse a repeated id in a block, if it belongs to another doc."""
    for record, (doc_id, doc) in zip(block, read, strict=True):
        first, before = index.execute("SELECT line, doc FROM docs WHERE doc_id = ?", (doc_id,)).fetchone()
        # Passages inside of one record have the line of the record.
        if first != record.line or _doc(before) != doc:
            source.again(record, doc_id, first, _doc(before), doc)


def _build(source: Source, records: Iterable[DataRecord], folder: Path, name: str) -> Path:
    """Read a collection once, check it, and write its index in place of earlier ones."""
    whose = name.split("-")[0]
    for left in folder.glob(f".{whose}-*.tmp"):  # of a command that was killed
        if left.stat().st_mtime < time.time() - _ABANDONED_S:
            left.unlink()
    partial = temporary(folder / name)
    try:
        with closing(sqlite3.connect(partial, isolation_level=None)) as index:
            index.executescript(_TABLES)
            for block in batched(records, _BLOCK):
                read = [doc_of(source, record) for record in block]
                rows = []
                for record, (doc_id, doc) in zip(block, read, strict=True):
                    rows.append((doc_id, record.line, orjson.dumps(doc).decode()))
                inserted = index.executemany("INSERT OR IGNORE INTO docs VALUES (NULL, ?, ?, ?)", rows).rowcount
                if inserted < len(rows):
                    _refuse_again(source, index, block, read)
            if not index.execute("SELECT count(*) FROM docs").fetchone()[0]:
                raise source.nothing("docs")
            index.execute("COMMIT")
        # Another process may be reading an earlier one: on POSIX it keeps its open file.
        for earlier in folder.glob(f"{whose}-*.idx"):
            earlier.unlink()
        return partial.replace(folder / f"{name}-{partial.stat().st_size}.idx")
    finally:
        partial.unlink(missing_ok=True)
