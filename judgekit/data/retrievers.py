"""Runs of retrievers: LangChain's, LlamaIndex' and Haystack's, known by what they can do, and functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from numbers import Real
from typing import Any, Final

from judgekit.data.documents import Doc
from judgekit.data.forms import content_id
from judgekit.data.frames import AsQueries, as_queries
from judgekit.data.runs import Run
from judgekit.data.tables import id_problem
from judgekit.errors import DataError, UsageError

__all__ = ["found_in", "run_from"]

_EXPECTED: Final = (
    "a retriever is a function (text) or (text, k), or has invoke(text), retrieve(text) or run(query=, top_k=); it"
    " returns ids, (id, score) pairs, {id: score}, dictionaries or documents"
)
_NAME_IDS: Final = "(name the ids' field with id_field; id_field='text' makes ids of texts)"


def found_in(item: Any, id_field: str | None = None) -> tuple[str, Doc | None]:
    """Return the id of a retrieved document, "" where it has none, and the document itself if it has a text."""

    def get(*names: str) -> Any:
        held = (item.get(name) if isinstance(item, Mapping) else getattr(item, name, None) for name in names)
        return next((value for value in held if value is not None), None)

    if isinstance(item, str):
        return item, None
    inner = item[0] if isinstance(item, tuple) and len(item) == 2 else get("node", "document")
    if inner is not None:
        return found_in(inner, id_field)
    read, meta = get("get_content"), get("metadata", "meta")
    text = read() if callable(read) else get("page_content", "content", "text", "contents")
    meta = meta if isinstance(meta, Mapping) else {}
    title = str(get("title") or meta.get("title") or "")
    own = meta.get(id_field, "") if id_field else get("doc_id", "id", "node_id", "_id", "docid")
    if not isinstance(text, str):
        return str(own or ""), None
    doc_id = content_id(title, text) if own is None or id_field == "text" else str(own)
    return doc_id, Doc(doc_id, text, title)


def run_from(
    retriever: Any, queries: AsQueries, k: int = 10, *, name: str = "run", id_field: str | None = None,
    docs: MutableMapping[str, Doc] | None = None,
) -> Run:  # fmt: skip
    """Ask a retriever every query; the order of its lists counts, of ids with scores that of the scores.

    Args:
        retriever: of LangChain, LlamaIndex or Haystack, or a function of the query's text, or of text and k.
        queries: as for `judgekit.label`.
        k: the most documents of a list. LangChain and LlamaIndex have a number of their own, set where they are made.
        name: of the run.
        id_field: the field of the documents' metadata that is their id; ``text`` makes ids of what they say.
        docs: filled with the documents that came with a text, by id.

    Raises:
        DataError: a list holds something else, an id that no file could hold, or a document twice.
        UsageError: it is not a retriever.
    """
    ask = getattr(retriever, "invoke", None) or getattr(retriever, "retrieve", None)
    if ask is None and hasattr(retriever, "run"):
        if "query" not in inspect.signature(retriever.run).parameters:
            raise UsageError("its run() takes no query (an embedding?): give a function of the text that calls it")
        ask = lambda text: retriever.run(query=text, top_k=k)["documents"]  # noqa: E731 - one of four ways to ask
    elif ask is None:
        if not callable(retriever):
            raise UsageError(f"{_EXPECTED}; got {type(retriever).__name__}")
        ask = retriever
        with suppress(TypeError):
            inspect.signature(retriever).bind("text", k)
            ask = lambda text: retriever(text, k)  # noqa: E731 - likewise
    rows: list[tuple[str, str, float]] = []
    for query in as_queries(queries).values():
        listed = ask(query.text)
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise DataError(f"query {query.query_id!r}: {_EXPECTED}; got {type(listed).__name__}")
        items = list(listed.items() if isinstance(listed, Mapping) else listed)
        if all(isinstance(i, tuple) and isinstance(i[0], str) and isinstance(i[-1], Real) for i in items):
            items.sort(key=lambda pair: -float(pair[1]))
        for place, item in enumerate(items[:k]):
            doc_id, doc = found_in(item, id_field)
            if problem := id_problem(doc_id):
                raise DataError(f"query {query.query_id!r}, place {place + 1}: the doc id {problem} {_NAME_IDS}")
            rows.append((query.query_id, doc_id, float(k - place)))
            if docs is not None and doc is not None:
                docs[doc_id] = doc
    try:
        return Run(name, [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
    except DataError as error:
        raise DataError(f"{error.reason} {_NAME_IDS}") from None
