"""Questions that nothing answers, and whether answers to them abstain.

An answer to such a question is good if it abstains, which no label of a document can tell, since there is nothing to
find. So comparisons of labels with answers leave them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from judgekit.answers.reading import abstains, seems_to_abstain
from judgekit.data.documents import Query
from judgekit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

COLUMN: Final = "answerable"
_YES: Final = frozenset({"true", "1", "1.0", "yes"})
_NO: Final = frozenset({"false", "0", "0.0", "no"})


def unanswerable(queries: Iterable[Query], *, gold: Collection[str] | None = None) -> frozenset[str]:
    """Return the ids of the questions that nothing answers.

    The column ``answerable`` tells; without a value there, these are questions without gold documents whose references
    all abstain.

    Args:
        queries: the questions.
        gold: the questions with gold documents; None if no gold documents are known.

    Raises:
        DataError: the column holds values other than yes or no.
    """
    found = []
    for query in queries:
        # The user's declaration comes first.
        declared = _declared(query.query_id, query.columns.get(COLUMN, ""))
        without_gold = gold is not None and query.query_id not in gold
        if declared is False or (declared is None and without_gold and _says_so(query)):
            found.append(query.query_id)
    return frozenset(found)


def unanswerable_in(table: pd.DataFrame) -> frozenset[str]:
    """Return the ids of the questions that a table's column ``answerable`` says nothing answers.

    Raises:
        DataError: the column holds values other than yes or no.
    """
    if COLUMN not in table.columns:
        return frozenset()
    pairs = table[["query_id", COLUMN]].dropna().drop_duplicates().astype(str)
    named = zip(pairs["query_id"], pairs[COLUMN], strict=True)
    return frozenset(query_id for query_id, said in named if _declared(query_id, said) is False)


def _declared(query_id: str, said: str) -> bool | None:
    """Return whether the column says that a question has an answer; None if it is empty."""
    folded = said.strip().lower()
    # An unknown word would silently make a question answerable.
    if folded and folded not in _YES | _NO:
        raise DataError(f"question {query_id!r}: {COLUMN} is {said!r}; it must be true or false")
    if folded:
        return folded in _YES
    return None


def _says_so(query: Query) -> bool:
    return bool(query.answers) and all(abstains(answer) for answer in query.answers)


def gives_up(answer: str) -> bool:
    """Return whether an answer to a question that nothing answers abstains, in any words.

    This is broader than elsewhere in scores. Of 1,044 answers of GPT-4o-mini to questions that nothing answers (the RAG
    design study of docs/study.md) it finds 98 % of those graded as abstaining, at least in part, and 52 % of the
    others, which often abstain first and then go on. It takes .2 % of 2,480 right answers to other questions for
    abstentions.
    """
    return abstains(answer) or seems_to_abstain(answer)
