"""Retrievers as runs: a callable or a library's object is asked each question, and its results form a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Real
from typing import Any, Final

from judgekit.data.documents import Queries
from judgekit.data.forms.entry import passage_of
from judgekit.data.frames import RETRIEVES, is_retriever
from judgekit.errors import UsageError
from judgekit.spec import user_code

Retriever = Callable[..., Any]


def retrievers_of(runs: object) -> dict[str, Any]:
    """Return the retrievers given as runs, by name: a single one, or a dictionary of names to them; else none.

    Raises:
        UsageError: some of a dictionary are retrievers and some are runs, or something is only what makes a retriever.
    """
    for held in runs.values() if isinstance(runs, Mapping) else [runs]:
        # A vector store of LangChain, an index of LlamaIndex.
        if hasattr(held, "as_retriever"):
            raise UsageError(f"{type(held).__name__} is no retriever, and makes one: give as_retriever() of it")
    if is_retriever(runs):
        return {_name_of(runs): runs}
    if isinstance(runs, list | tuple) and any(map(is_retriever, runs)):
        raise UsageError("several retrievers need a name each: runs={'bm25': …, 'dense': …}")
    if not isinstance(runs, Mapping) or not any(map(is_retriever, runs.values())):
        return {}
    others = [name for name, run in runs.items() if not is_retriever(run)]
    if others:
        raise UsageError(
            f"run {others[0]!r} is not a retriever, but others are: ask those first and give their results as runs"
        )
    return dict(runs)


def results(retriever: Any, queries: Queries, depth: int, name: str) -> list[dict[str, Any]]:
    """Ask a retriever each question; return its results in order, cut to ``depth``.

    Returns:
        A result for each query: ``query_id, question, documents``, as `judgekit.data.frames` reads them.

    Raises:
        UsageError: it cannot be called with a question, or does not return a list of passages.
    """
    ask = _asking(retriever, depth)
    found = []
    for query in queries.values():
        whose = f"retriever {name!r}, query {query.query_id!r}"
        with user_code(partial(str, whose), _file_of(retriever)):
            returned = ask(query.text)
        passages = _passages(returned, whose)[:depth]
        found.append({"query_id": query.query_id, "question": query.text, "documents": passages})
    if not any(row["documents"] for row in found):
        raise UsageError(f"retriever {name!r} returned nothing for any of the {len(found):,} queries")
    return found


_WANTED: Final = (
    "a list of passages, best first, such as [{'id': 'd1', 'text': '…'}], or of the ids of docs= that you give"
)


def _passages(returned: Any, whose: str) -> list[Any]:
    """Return the passages of a retriever's result, without their scores.

    Raises:
        UsageError: it is not such a list; the message says what to return.
    """
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        raise UsageError(
            f"{whose}: it is asynchronous: give a function that waits for it, such as"
            " lambda text: asyncio.run(retriever(text))"
        )
    # Haystack's components return a dictionary.
    if isinstance(returned, Mapping):
        if "documents" not in returned:
            keys = ", ".join(map(repr, list(returned)[:5])) or "none"
            raise UsageError(f"{whose}: it returned a dictionary with the keys {keys}, and must return {_WANTED}")
        returned = returned["documents"]
    if isinstance(returned, str) or not hasattr(returned, "__iter__"):
        raise UsageError(f"{whose}: it returned {type(returned).__name__}, and must return {_WANTED}")
    passages = [_passage(item, whose) for item in returned]
    if len({isinstance(passage, str) for passage in passages}) > 1:
        raise UsageError(f"{whose}: it returned passages with their texts and without, and must return {_WANTED}")
    return passages


def _passage(item: Any, whose: str) -> Any:
    """Return a passage without its score; if it has no text, its id."""
    # LangChain's similarity_search_with_score returns pairs. Scores may be distances, so the order counts.
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Real):
        item = item[0]
    if isinstance(item, str):
        return item
    read = passage_of(item)
    if read.get("text") is not None:
        return item
    if read.get("id") is not None:
        return str(read["id"])
    held = list(item) if isinstance(item, Mapping) else type(item).__name__
    raise UsageError(f"{whose}: a passage has neither text nor id ({held}), and it must return {_WANTED}")


def ranked(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return results of ids instead of passages as a run, ``{query_id: {doc_id: score}}``, in their order."""
    return {row["query_id"]: {doc_id: float(-place) for place, doc_id in enumerate(row["documents"])} for row in found}


def holds_ids(found: list[dict[str, Any]]) -> bool:
    """Return whether results hold ids instead of passages: texts without white space."""
    items = [item for row in found for item in row["documents"]]
    return all(isinstance(item, str) and len(item.split()) == 1 for item in items)


def _asking(retriever: Any, depth: int) -> Callable[[str], Any]:
    """Return a function that asks a retriever: with the question and, if it takes one, the depth."""
    for method in RETRIEVES:
        way: Callable[[str], Any] | None = getattr(retriever, method, None)
        if callable(way):
            return way if method != "run" else lambda text: retriever.run(query=text)
    ask: Callable[..., Any] = retriever
    try:
        parameters = list(inspect.signature(ask).parameters.values())
    except (TypeError, ValueError):
        return ask
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = next((p.name for p in parameters if p.name in ("k", "top_k", "limit", "depth")), None)
    if named is not None and (len(places) < 2 or places[1].name != named):
        return lambda text: ask(text, **{named: depth})
    if len(places) > 1 and (named is not None or places[1].default is inspect.Parameter.empty):
        return lambda text: ask(text, depth)
    return ask


def _name_of(retriever: object) -> str:
    name = getattr(retriever, "__name__", type(retriever).__name__)
    return "retriever" if name == "<lambda>" else str(name)


def _file_of(retriever: object) -> str:
    try:
        return inspect.getsourcefile(retriever if inspect.isroutine(retriever) else type(retriever)) or ""
    except TypeError:
        return ""
