"""``predictions`` and ``mteb``: the runs that evaluations of sentence-transformers and MTEB write."""

from __future__ import annotations

from typing import Any, Final

from judgekit.data.forms.entry import Entry
from judgekit.data.records import Fields, kind_of
from judgekit.registry import DataForm

_ABOUT: Final = "mteb_model_meta"


def _predictions(fields: Fields) -> Entry:
    ranked = [{"id": found["corpus_id"], "score": found["score"]} for found in fields["results"]]
    return {"query_id": fields["query_id"], "question": fields["query"], "ctxs": ranked}


def _are_predictions(fields: Fields) -> bool:
    results = fields.get("results")
    if not {"query_id", "query"} <= fields.keys() or not isinstance(results, list):
        return False
    return bool(results) and all(isinstance(found, dict) and "corpus_id" in found for found in results)


def _mteb(fields: Fields) -> Entry:
    """Return the rows of a member of the file: facts about the model, or the runs of a subset by split."""
    rows: list[tuple[str, str, Any]] = []
    for subset, splits in fields.items():
        if subset == _ABOUT:
            continue
        if not isinstance(splits, dict):
            raise ValueError(f"subset {subset!r} must be an object of splits, not {kind_of(splits)}")
        if len(splits) > 1:
            raise ValueError(f"subset {subset!r} holds the splits {', '.join(splits)}: keep one of them")
        for split, lists in splits.items():
            if not isinstance(lists, dict) or not all(isinstance(docs, dict) for docs in lists.values()):
                raise ValueError(f"split {split!r} must hold an object of documents and scores for each query")
            rows += [(query, doc, score) for query, docs in lists.items() for doc, score in docs.items()]
    return {"rows": rows}


PREDICTIONS: Final = DataForm(
    "predictions",
    _predictions,
    ("query", "run"),
    marks=_are_predictions,
    nested=True,
    example='{"query_id": "q1", "query": "Who?", "results": [{"corpus_id": "d1", "score": 0.5}]}\n',
)
MTEB: Final = DataForm(
    "mteb",
    _mteb,
    ("run",),
    marks=lambda fields: _ABOUT in fields,
    nested=True,
    example='{"mteb_model_meta": {"model_name": "m"}, "default": {"test": {"q1": {"d1": 0.5}}}}\n',
)
