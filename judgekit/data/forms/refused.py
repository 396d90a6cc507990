"""Files of tools that lack what joins them with others: each is refused, with what to save instead."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from judgekit.data.forms.tool import Path, at
from judgekit.registry import DataForm


def _refused(name: str, tells: tuple[Path, ...], why: str, rows: tuple[str, ...] = ()) -> DataForm:
    return DataForm(name, dict, marks=partial(_tells, tells), nested=True, rows=rows, refused=why)


def _tells(tells: tuple[Path, ...], fields: Mapping[str, Any]) -> bool:
    return all(at(fields, path) is not None for path in tells)


def _games(fields: Mapping[str, Any]) -> Any:
    """Return the queries of RAGElo's Experiment, the first member of its file."""
    queries = fields.get("queries")
    held = [*queries.values()] if isinstance(queries, dict) else []
    return held if held and isinstance(held[0], dict) and "retrieved_docs" in held[0] else None


def _took(fields: Mapping[str, Any]) -> Any:
    """Return how long a search took, the first member of a response that is a file."""
    return fields.get("took") if len(fields) == 1 else None


def _rank_eval(fields: Mapping[str, Any]) -> Any:
    """Return the mean of an answer of _rank_eval: on one line, or the first member of a file."""
    return fields.get("metric_score") if len(fields) == 1 or "details" in fields else None


_NO_QUESTION: Final = (
    "a response of a search engine does not say what it was asked: write a line of JSON for each question, with"
    ' "query_id", "question" and the response in "response"'
)
REFUSED: Final = (
    _refused("search-responses", ("hits.hits",), _NO_QUESTION, ("responses",)),
    _refused("search-response", (_took,), _NO_QUESTION),
    _refused(
        "rank-eval",
        (_rank_eval,),
        "holds the values of _rank_eval and no scores of documents: save the searches themselves, each beside its"
        " question, and the ratings as qrels (query_id, doc_id, relevance)",
    ),
    _refused(
        "ragelo-experiment",
        (_games,),
        "is RAGElo's Experiment, which holds several runs of each question: have it write them,"
        " experiment.get_runs(output_path=…) and experiment.get_qrels(output_path=…); its answers.csv goes in as it is",
    ),
    _refused(
        "umbrela",
        ("query", "passage", "judgment"),
        "umbrela's rows name question and passage by their texts: write the ids that you gave it beside them, as"
        " query_id and doc_id, and call the judgment relevance",
    ),
    _refused(
        "openrageval-answers",
        ("query_run", "passage_id", "passage", "generated_answer"),
        "is the input of open-rag-eval, a row for each passage: give the CSV that open-rag-eval eval writes",
    ),
)
"""In the order in which records are held against them, behind all forms that are read."""
