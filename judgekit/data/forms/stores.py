"""``qdrant`` and ``elasticsearch``: what a search engine answered to one question, saved beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from judgekit.data.fields import QUERY
from judgekit.data.forms.entry import IDS, first_of, passage_of
from judgekit.data.forms.rag import ASKED, RIGHT
from judgekit.data.forms.tool import Path, Tool, at

_SAID: Final = ("answer", "actual_output", "generation")
"""Names of answers; `response` and `result` are what the engine said."""
_POINTS: Final = ("points", "result.points", "response.result.points", "response.points")
_HITS: Final = ("hits.hits", "response.hits.hits", "body.hits.hits")


def _found(fields: Mapping[str, Any], places: tuple[str, ...]) -> list[Any]:
    """Return what was found; a `ValueError` says that it is no list of objects."""
    for place in places:
        found = at(fields, place)
        if found is not None:
            if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
                raise ValueError(f"{place!r} must be a list of objects")
            return found
    return []


def _passages(places: tuple[str, ...], held: str) -> Path:
    """Return the path of the documents that were stored, None where they were not returned or hold no known text."""

    def passages(fields: Mapping[str, Any]) -> Any:
        stored = [item.get(held) for item in _found(fields, places)]
        texts = [isinstance(item, dict) and isinstance(passage_of(item)["text"], str) for item in stored]
        return stored if texts and all(texts) else None

    return passages


def _ids(places: tuple[str, ...], held: str, own: str) -> Path:
    """Return the path of the ids: the one that a stored document names itself, else the engine's."""

    def ids(fields: Mapping[str, Any]) -> Any:
        named = []
        for item in _found(fields, places):
            stored = item.get(held) if isinstance(item.get(held), dict) else {}
            name = first_of(stored, IDS)
            named.append(str(stored[name] if name else item.get(own)))
        return named or None

    return ids


QDRANT: Final = Tool(
    "qdrant",
    release="1.20.0",
    exports="`client.query_points(…).model_dump()` of one question, with `question` beside it",
    tells=("|".join(_POINTS), "|".join((*ASKED, *QUERY["id"]))),
    question=ASKED,
    id=QUERY["id"],
    answer=_SAID,
    reference=RIGHT,
    passages=(_passages(_POINTS, "payload"),),
    passage_ids=(_ids(_POINTS, "payload", "id"),),
    run=("run",),
    example='{"question": "Who?", "points": [{"id": 1, "score": 0.5, "payload": {"text": "by Ann"}}]}\n',
)
ELASTICSEARCH: Final = Tool(
    "elasticsearch",
    tells=("|".join(_HITS), "|".join((*ASKED, *QUERY["id"]))),
    question=ASKED,
    id=QUERY["id"],
    answer=_SAID,
    reference=RIGHT,
    passages=(_passages(_HITS, "_source"),),
    passage_ids=(_ids(_HITS, "_source", "_id"),),
    run=("run",),
    example='{"question": "Who?", "hits": {"hits": [{"_id": "d1", "_score": 2.5, "_source": {"text": "by Ann"}}]}}\n',
)
