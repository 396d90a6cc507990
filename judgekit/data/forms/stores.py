"""``qdrant``, ``elasticsearch``, ``search``: an engine's response to a question, saved with it; ``rank_eval``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from judgekit.data.forms.entry import IDS, Entry, listed_in, passage_of
from judgekit.data.forms.rag import ASKED, GRADED, IDENTIFIED, RIGHT
from judgekit.data.forms.tool import Tool, at, either, paths_of
from judgekit.data.records import Fields
from judgekit.registry import DataForm

_STORED: Final = (
    *("payload", "_source", "fields", "properties", "document.structData", "document"),
    *("entity", "doc", "metadata", "content"),
)
"""Places of the stored document in a result; without any, its members are those of the result."""
_OWN: Final = (*IDS, "uuid", "chunk_id", "_additional.id")
"""Places of a result's own id."""


def _stored(result: Fields) -> list[Fields]:
    """Return what may be the stored document of a result."""
    return [held for place in _STORED if isinstance(held := at(result, place), Mapping)]


def _results(value: Any) -> list[Fields]:
    """Return a list of results."""
    results = [] if value is None else listed_in(value)
    if results and len(results) == 1 and isinstance(results[0], list):  # of one question, where it may ask several
        results = results[0]
    if results is None or not all(isinstance(result, Mapping) for result in results):
        raise ValueError("the results must be a list of objects")
    return results


def _whole(values: list[Any]) -> list[Any] | None:
    """Return values of results; None without results, or if one lacks its value."""
    return values if values and None not in values else None


def documents_in(value: Any) -> list[Any] | None:
    """Return the documents of results; None if one was not returned or holds no known text."""
    documents = []
    for result in _results(value):
        texts = (held for held in (*_stored(result), result) if isinstance(passage_of(held)["text"], str))
        documents.append(next(texts, None))
    return _whole(documents)


def ids_in(value: Any) -> list[Any] | None:
    """Return the ids of results: the application's own, inside of the document, else the engine's."""
    inner, outer = [], []
    for result in _results(value):
        known = (passage_of(held)["id"] for held in _stored(result))
        inner.append(next((own for own in known if own is not None), None))
        outer.append(next((own for place in _OWN if (own := at(result, place)) is not None), None))
    if _whole(inner) and len({*map(str, inner)}) < len({*map(str, outer)}):
        raise ValueError(
            "several results have the same id inside, as parts of one document have: write the id of each part there,"
            " or none, so that the engine's own counts"
        )
    ids = _whole(inner) or _whole(outer)
    if outer and ids is None and documents_in(value) is None:
        raise ValueError("a result has neither an id nor a text, under the names that judgekit knows")
    return ids


def _store(name: str, places: str, *, example: str, release: str = "", exports: str = "") -> Tool:
    """Return the form of an engine that lists its results, the best first, at one of some places."""
    return Tool(
        name,
        release,
        exports,
        tells=(places, f"{ASKED} | {IDENTIFIED}"),
        question=ASKED,
        id=IDENTIFIED,
        # `response` and `result` are the engine's.
        answer="answer | actual_output | generation",
        reference=RIGHT,
        passages=places,
        passage_ids=places,
        reads={"passages": documents_in, "passage_ids": ids_in},
        run="run",
        options=("queries",),
        example=example,
    )


QDRANT: Final = _store(
    "qdrant",
    "points | result.points | response.result.points | response.points",
    release="1.20.0",
    exports="`client.query_points(…).model_dump()` of one question, with `question` beside it",
    example='{"question": "Who?", "points": [{"id": 1, "score": 0.5, "payload": {"text": "by Ann"}}]}\n',
)
_HITS: Final = _store(
    "elasticsearch",
    "hits.hits | response.hits.hits | body.hits.hits",
    example='{"question": "Who?", "hits": {"hits": [{"_id": "d1", "_score": 2.5, "_source": {"text": "by Ann"}}]}}\n',
)


def _response(read: Callable[[Fields], Entry], fields: Fields) -> Entry:
    """Return the contents of a response; refuse one whose list some failure may have cut short."""
    for place in ("", "response.", "body."):
        failed = at(fields, f"{place}_shards.failed")
        if at(fields, f"{place}error") or at(fields, f"{place}timed_out") is True or failed not in (None, 0):
            raise ValueError(
                "the search failed or timed out, wholly or in some shards (error, timed_out, _shards.failed): ask it"
                " again, or remove the response and its query"
            )
    return read(fields)


def _checking(form: DataForm) -> DataForm:
    return replace(form, read=partial(_response, form.read))


ELASTICSEARCH: Final = replace(_checking(_HITS.form()), spelled=lambda options: _checking(_HITS.spelled(options)))
_PLACES: Final = (
    *("matches", "result.hits", "hits", "root.children", "response.docs", "docs", "value", "objects"),
    *("retrievalResults", "results", "data.Get.*", "candidates", "documents", "rows"),
)
"""Of Pinecone, Meilisearch, Marqo and Typesense, Vespa, Solr, Azure AI Search, Weaviate, Bedrock, and others."""
_SEARCH: Final = _store(
    "search",
    " | ".join(f"{outer}{place}" for outer in ("", "response.", "result.") for place in _PLACES),
    example='{"question": "Who?", "matches": [{"id": "d1", "score": 0.5, "metadata": {"text": "by Ann"}}]}\n',
)


def _is_search(fields: Fields) -> bool:
    """Return whether a record has a question, and a list of results with ids or texts, which are no judgments."""
    if {"question", "id"}.isdisjoint(paths_of(_SEARCH, fields)):
        return False
    for place in either(_SEARCH.passages):
        with suppress(ValueError):
            results = _results(at(fields, place))
            if results and not any(GRADED & {*result} and not _stored(result) for result in results):
                return bool(documents_in(results) or ids_in(results))
    return False


SEARCH: Final = _SEARCH.form(_is_search)
# Its ratings cover retrieved documents only: as judgments, they would make every recall 1.
RANK_EVAL: Final = Tool(
    "rank_eval",
    exports="the response of Elasticsearch's or OpenSearch's `_rank_eval`",
    tells=("key", "metric_score", "hits", "unrated_docs"),
    id="key",
    passage_ids="hits[].hit._id",
    rows="details.*",
    example='{"metric_score": 0.5, "details": {"q1": {"metric_score": 0.5, "unrated_docs": [],'
    ' "hits": [{"hit": {"_id": "d1", "_score": 2.5}, "rating": 1}]}}}\n',
)
