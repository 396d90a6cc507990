"""``qdrant`` and ``elasticsearch``: a search engine's response to a question, saved with it, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from judgekit.data.forms.entry import IDS
from judgekit.data.forms.rag import ASKED, IDENTIFIED, RIGHT
from judgekit.data.forms.tool import Tool, at, with_texts
from judgekit.registry import DataForm


def _store(name: str, places: str, held: str, own: str, *, example: str, release: str = "", exports: str = "") -> Tool:
    """Return the form of an engine that lists its results at one of some places.

    ``held`` is the path of an item's stored document, ``own`` its id; an id inside the document wins.
    """
    ids = "|".join((*(f"{held}.{known}" for known in IDS), own))
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
        passages=f"{places}[].{held}",
        passage_ids=f"{places}[].{ids}",
        reads={"passages": with_texts},
        run="run",
        options=("queries",),
        example=example,
    )


QDRANT: Final = _store(
    "qdrant",
    "points | result.points | response.result.points | response.points",
    "payload",
    "id",
    release="1.20.0",
    exports="`client.query_points(…).model_dump()` of one question, with `question` beside it",
    example='{"question": "Who?", "points": [{"id": 1, "score": 0.5, "payload": {"text": "by Ann"}}]}\n',
)
_HITS: Final = _store(
    "elasticsearch",
    "hits.hits | response.hits.hits | body.hits.hits",
    "_source",
    "_id",
    example='{"question": "Who?", "hits": {"hits": [{"_id": "d1", "_score": 2.5, "_source": {"text": "by Ann"}}]}}\n',
)


def _response(read: Callable[[Mapping[str, Any]], dict[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
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
