"""Retrievers as runs: each question is put to a callable or to a library's object, and what it returns is a run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from judgekit.data.documents import Queries
from judgekit.errors import UsageError
from judgekit.spec import user_code

Retriever = Callable[..., Any]

_METHODS: Final = ("invoke", "retrieve", "get_relevant_documents", "run")
"""How LangChain's, LlamaIndex' and Haystack's objects are asked."""


def is_retriever(source: object) -> bool:
    """Return whether something retrieves: a function, or an object of a library that has a way to ask it."""
    if isinstance(source, type):
        return False
    return callable(source) or any(callable(getattr(source, method, None)) for method in _METHODS)


def retrievers_of(runs: object) -> dict[str, Any]:
    """Return the retrievers among what is given as runs, by name: one, or a dictionary of names to them; else none.

    Raises:
        UsageError: some of a dictionary are retrievers and some are runs.
    """
    if is_retriever(runs):
        return {_name_of(runs): runs}
    if not isinstance(runs, Mapping) or not any(map(is_retriever, runs.values())):
        return {}
    others = [name for name, run in runs.items() if not is_retriever(run)]
    if others:
        raise UsageError(
            f"run {others[0]!r} is no retriever, as others are: ask the retrievers first and give their results as runs"
        )
    return dict(runs)


def results(retriever: Any, queries: Queries, depth: int, name: str) -> list[dict[str, Any]]:
    """Ask a retriever each question; return what it found, in its order, cut to ``depth``.

    Returns:
        A result for each query: ``query_id, question, documents``, as `judgekit.data.frames` reads them.

    Raises:
        UsageError: it cannot be called with a question, or what it returns is no list of passages.
    """
    ask = _asking(retriever, depth)
    found = []
    for query in queries.values():
        whose = f"retriever {name!r}, query {query.query_id!r}"
        with user_code(partial(str, whose), _file_of(retriever)):
            documents = ask(query.text)
        # Haystack's components return a dictionary.
        if isinstance(documents, Mapping) and "documents" in documents:
            documents = documents["documents"]
        if isinstance(documents, str) or not hasattr(documents, "__iter__"):
            raise UsageError(
                f"{whose}: it returned {type(documents).__name__}, and must return a list of passages, best first, such"
                " as [{'id': 'd1', 'text': '…'}], or of the ids of docs= that you give"
            )
        found.append({"query_id": query.query_id, "question": query.text, "documents": list(documents)[:depth]})
    return found


def ranked(found: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return results that hold ids, or (id, score), instead of passages as a run: ``{query_id: {doc_id: score}}``.

    The order counts, not the scores: those of a vector store may be distances.
    """
    return {
        row["query_id"]: {
            str(item if isinstance(item, str) else item[0]): float(-place)
            for place, item in enumerate(row["documents"])
        }
        for row in found
    }


def holds_ids(found: list[dict[str, Any]]) -> bool:
    """Return whether results hold ids, or (id, score), instead of passages."""
    first = next((item for row in found for item in row["documents"]), None)
    return isinstance(first, str) or (isinstance(first, tuple) and len(first) == 2 and isinstance(first[0], str))


def _asking(retriever: Any, depth: int) -> Callable[[str], Any]:
    """Return how a retriever is asked: with the question, and with the depth where it takes one."""
    for method in _METHODS:
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
