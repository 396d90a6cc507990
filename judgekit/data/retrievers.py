"""What retrievers return, taken as runs: those of LangChain, LlamaIndex, Haystack, and functions, none of them needed.

They are known by what they can do, not by their classes: ``invoke(text)`` returns LangChain's documents, ``retrieve``
LlamaIndex's nodes, ``run(query=…, top_k=…)`` Haystack's ``{"documents": […]}``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from numbers import Real
from typing import Any, Final

from judgekit.data.documents import Doc
from judgekit.data.forms import content_id
from judgekit.data.frames import AsQueries, as_queries
from judgekit.data.runs import Run
from judgekit.data.tables import id_problem
from judgekit.errors import DataError, UsageError

__all__ = ["found_in", "run_from"]

_IDS: Final = ("doc_id", "id", "node_id", "_id", "docid")
_TEXTS: Final = ("page_content", "content", "text", "contents")
_EXPECTED: Final = (
    "a retriever is a function (text) or (text, k), or has invoke(text), retrieve(text) or run(query=, top_k=); it"
    " returns ids, (id, score) pairs, {id: score}, dictionaries or documents"
)


def found_in(item: Any, id_field: str | None = None) -> tuple[str, Doc | None]:
    """Return the id of a document as a retriever returned it, "" where it has none, and the document if it has a text.

    The id is the field ``id_field`` of its metadata, or its own, or else made of title and text, as ``text`` has it.
    """
    if isinstance(item, str):
        return item, None
    if isinstance(item, tuple) and len(item) == 2:  # (id, score) or (document, score)
        return found_in(item[0], id_field)
    inner = _get(item, ("node", "document"))
    if inner is not None:
        return found_in(inner, id_field)
    read, meta = getattr(item, "get_content", None), _get(item, ("metadata", "meta"))
    text = read() if callable(read) else _get(item, _TEXTS)
    meta = meta if isinstance(meta, Mapping) else {}
    title = str(_get(item, ("title",)) or meta.get("title") or "")
    own = _get(item, _IDS) if id_field is None else None if id_field == "text" else meta.get(id_field, "")
    if not isinstance(text, str):
        return str(own or ""), None
    doc_id = content_id(title, text) if own is None else str(own)
    return doc_id, Doc(doc_id, text, title)


def _get(item: Any, names: Iterable[str]) -> Any:
    held = item if isinstance(item, Mapping) else None
    values = (held.get(name) if held is not None else getattr(item, name, None) for name in names)
    return next((value for value in values if value is not None), None)


def run_from(
    retriever: Any,
    queries: AsQueries,
    k: int = 10,
    *,
    name: str = "run",
    id_field: str | None = None,
    docs: MutableMapping[str, Doc] | None = None,
) -> Run:
    """Ask a retriever every query and return its lists as a run.

    The order of its list counts, whatever its scores are (a distance is best where it is small); pairs of ids and
    scores, and dictionaries of them, are ordered by the score.

    Args:
        retriever: of LangChain, LlamaIndex or Haystack, or a function of the query's text, or of text and k.
        queries: as for `judgekit.label`.
        k: the most documents of a list. LangChain and LlamaIndex have a number of their own, set where they are made.
        name: of the run.
        id_field: the field of the documents' metadata that is their id; ``text`` makes ids of what they say. Libraries
            give the same passage another id in each index, and only with one id is it labelled once.
        docs: filled with the documents that came with a text, by id.

    Raises:
        DataError: a list holds something else, an id that no file could hold, or a document twice.
        UsageError: it is not a retriever.
    """
    ask = _asking(retriever, k)
    rows: list[tuple[str, str, float]] = []
    for query in as_queries(queries).values():
        listed = _listed(ask(query.text), query.query_id)[:k]
        seen: set[str] = set()
        for place, item in enumerate(listed):
            doc_id, doc = found_in(item, id_field)
            problem = id_problem(doc_id)
            if problem or doc_id in seen:
                what = f"the doc id {problem}" if problem else f"doc {doc_id!r} appears twice"
                where = f"query {query.query_id!r}, place {place + 1}"
                raise DataError(
                    f"{where}: {what} (name the ids' field with id_field; id_field='text' makes ids of texts)"
                )
            seen.add(doc_id)
            rows.append((query.query_id, doc_id, float(k - place)))
            if docs is not None and doc is not None:
                docs[doc_id] = doc
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return Run(name, list(columns[0]), list(columns[1]), list(columns[2]))


def _asking(retriever: Any, k: int) -> Callable[[str], Any]:
    """Return how a retriever is asked."""
    for method in ("invoke", "retrieve"):
        if callable(getattr(retriever, method, None)):
            return getattr(retriever, method)  # type: ignore[no-any-return]  # checked
    run = getattr(retriever, "run", None)
    if callable(run):
        if "query" not in inspect.signature(run).parameters:
            raise UsageError("its run() takes no query (an embedding?): give a function of the text that calls it")
        return lambda text: run(query=text, top_k=k)["documents"]
    if not callable(retriever):
        raise UsageError(f"{_EXPECTED}; got {type(retriever).__name__}")
    try:
        inspect.signature(retriever).bind("text", k)
    except TypeError:
        return retriever  # type: ignore[no-any-return]  # checked
    return lambda text: retriever(text, k)


def _listed(found: Any, query_id: str) -> list[Any]:
    """Return a list of items, the best first."""
    pairs = list(found.items()) if isinstance(found, Mapping) else found
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise DataError(f"query {query_id!r}: {_EXPECTED}; got {type(found).__name__}")
    items = list(pairs)
    scored = [one for one in items if isinstance(one, tuple) and isinstance(one[0], str) and isinstance(one[-1], Real)]
    return sorted(items, key=lambda one: -float(one[1])) if items and len(scored) == len(items) else items
