"""Files of tools that cannot be joined with others: each is refused, with advice on what to save instead."""

from __future__ import annotations

from typing import Final

from judgekit.data.forms.entry import is_id
from judgekit.data.forms.expected import is_result
from judgekit.data.forms.tool import Tool
from judgekit.data.records import Fields

_NO_QUESTION: Final = (
    "a response of a search engine does not say what it was asked: put the responses of a run into a folder, a file for"
    " each question named by its id (q1.json), and give the folder as the run; or, if one file holds them in the order"
    " of your queries, write elasticsearch(queries=QUERIES):FILE, where QUERIES is the name of the file of your"
    " queries, put beside it"
)


_FOUND: Final = (
    "lists ids of documents beside what a retriever or an application returned: if they were found, write"
    " retrieved(passages=ids):FILE; if they are those that should be found, write expected:FILE"
)


_OF_SEVERAL: Final = (
    "holds lists of several questions, as Chroma returns them, and does not say which: write"
    " chroma(queries=QUERIES):FILE, where QUERIES is the name of the file of these questions in their order, put beside"
    " it"
)


_BY_QUERY: Final = (
    "holds lists of ids by query, and does not say whether these were found or should be found: write"
    ' {"q1": {"d1": 1}}, a grade for each document, for judgments, or a score for each, which falls from one to the'
    " next, for a run; in Python give the dictionary as it is, as a run or as a labeling"
)


def _are_ids_by_query(fields: Fields) -> bool:
    """Return whether every member is a list of ids, which hold no white space."""
    for ids in fields.values():
        if not isinstance(ids, list) or not ids or not all(is_id(own) and len(str(own).split()) == 1 for own in ids):
            return False
    return bool(fields)


def _is_batch(fields: Fields) -> bool:
    """Return whether a record lists lists of ids, or is the first member of an object that does."""
    ids = fields.get("ids")
    return isinstance(ids, list) and len(ids) > 1 and all(isinstance(own, list) for own in ids)


def _is_took(fields: Fields) -> bool:
    """Return whether a record is the duration of a search, the first member of a saved response."""
    return [*fields] == ["took"]


_TOOLS: Final = (
    Tool("search-responses", tells=("hits.hits",), rows="responses", refused=_NO_QUESTION),
    Tool(
        "inspect-samples",
        tells=("sample_id", "eval_id", "epoch", "target"),
        refused="is a data frame of Inspect, which joins targets by commas and holds no answers: give the log as JSON"
        " (inspect log convert LOG --to json --output-dir FOLDER)",
    ),
)
REFUSED: Final = (
    *(tool.form() for tool in _TOOLS),
    Tool("search-response", refused=_NO_QUESTION).form(_is_took),
    Tool("chroma-batch", refused=_OF_SEVERAL).form(_is_batch),
    Tool("ids-with-scores", refused=_FOUND).form(is_result),
    Tool("ids-by-query", refused=_BY_QUERY).form(_are_ids_by_query),
)
"""Refused forms in the order in which they are tried, after all readable ones."""
