"""Carries labels of passages over to new chunks of the same collection, as far as possible."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import regex

from judgekit.data.documents import Doc, Docs
from judgekit.data.frames import AsDocs, as_docs, one_by_one
from judgekit.data.labelings import Labeling
from judgekit.data.tables import Status
from judgekit.errors import DataError, UsageError

SHARE: Final = 0.9
"""A passage is relevant if it holds at least this share of a relevant one's words."""
_WORDS: Final = 5
"""Passages share text if they share this many words in a row; fewer may be chance."""
# Scripts without spaces between words are compared by character.
_WORD: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]|\w+")


@dataclass(frozen=True)
class Carried:
    """Labels carried to new passages.

    Attributes:
        labeling: the labels that are known, under the name and scale of the old ones.
        same: number of labels from a passage with the same text.
        relevant: number of other relevant ones, which hold a relevant passage.
        not_relevant: number of other ones that are not relevant, because all of their text was judged so.
        open: pairs without a label although the passage shares text with a judged one.
        lost: relevant (query id, old doc id) whose text no relevant new passage holds.
        unknown: judged doc ids that the old documents lack.
    """

    labeling: Labeling
    same: int
    relevant: int
    not_relevant: int
    open: tuple[tuple[str, str], ...]
    lost: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]


class _Shared(NamedTuple):
    """The overlap of an old passage with a new one: the new one's shared words, and the old one's size."""

    words: npt.NDArray[np.bool_]
    """Which words of the new passage are in the old one, shape (W,)."""
    old_size: int

    @property
    def whole(self) -> bool:
        """Whether they are the same text."""
        return bool(self.words.all()) and len(self.words) == self.old_size

    @property
    def held(self) -> float:
        """The share of the old passage that the new one holds."""
        return min(1.0, float(self.words.sum()) / self.old_size)


def carry(qrels: Labeling, old: AsDocs, new: AsDocs, *, share: float = SHARE) -> Carried:
    """Carry labels over to passages that were cut anew, without guessing.

    A new passage gets the label of a judged one with the same text. If it holds at least ``share`` of the words of
    relevant passages, it gets the largest of their labels. If all of its text, except four words at each end, was
    judged not relevant, it gets the largest label of the passages that it shares text with. Other passages get no
    label, because nobody knows which part of a passage made it relevant.

    Texts are compared word by word, ignoring case, punctuation and white space, with at least five words in a row.
    Passages that name different pages (``page_id``) share nothing.

    Args:
        qrels: the old labels, with their scale; `jk.read_qrels` reads them.
        old: the passages that were judged.
        new: the passages to label.
        share: part of a relevant passage that a new one must hold to be relevant, above 0 and at most 1.

    Returns:
        The labels, and counts of what was carried, left open and lost.

    Raises:
        DataError: none of the judged documents is among the old ones.
        UsageError: the share is out of range, or the documents cannot be read one by one.
    """
    if not 0 < share <= 1:
        raise UsageError(f"the share of a relevant passage must be above 0 and at most 1, not {share:g}")
    judged = qrels.table[qrels.table["status"] == Status.OK.value]
    names = list(dict.fromkeys(judged["doc_id"]))
    found, unknown = _found(as_docs(old), names)
    if names and not found:
        raise DataError(f"none of the {len(names):,} judged documents is among the old documents, e.g. {names[0]!r}")
    threshold = qrels.scale.threshold
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for query_id, doc_id, relevance in judged[["query_id", "doc_id", "relevance"]].itertuples(index=False, name=None):
        if doc_id in found:
            grades[doc_id][query_id] = relevance
    rows: list[tuple[str, str, float]] = []
    open_pairs: list[tuple[str, str]] = []
    kept: set[tuple[str, str]] = set()
    counts = {"same": 0, "relevant": 0, "not_relevant": 0}
    for doc_id, shared in _sharing(found, as_docs(new)):
        by_query: dict[str, dict[str, float]] = defaultdict(dict)
        for old_id in shared:
            for query_id, grade in grades[old_id].items():
                by_query[query_id][old_id] = grade
        for query_id, of_old in by_query.items():
            how, label = _label(shared, of_old, threshold, share)
            if label is None:
                open_pairs.append((query_id, doc_id))
                continue
            counts[how] += 1
            rows.append((query_id, doc_id, label))
            if label >= threshold:
                held = (o for o, grade in of_old.items() if grade >= threshold and shared[o].held >= share)
                kept.update((query_id, old_id) for old_id in held)
    relevant = {(q, d) for d, of_query in grades.items() for q, grade in of_query.items() if grade >= threshold}
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]).astype({"relevance": "float64"})
    return Carried(
        Labeling(qrels.name, qrels.scale, table, declared=qrels.declared),
        **counts,
        open=tuple(open_pairs),
        lost=tuple(sorted(relevant - kept)),
        unknown=tuple(unknown),
    )


def _label(
    shared: Mapping[str, _Shared], grades: Mapping[str, float], threshold: float, share: float
) -> tuple[str, float | None]:
    """Return a passage's label for a query and its origin, or None."""
    same = [grade for old_id, grade in grades.items() if shared[old_id].whole]
    if same:
        return "same", max(same)
    relevant = [g for old_id, g in grades.items() if g >= threshold and shared[old_id].held >= share]
    if relevant:
        return "relevant", max(relevant)
    others = {old_id: grade for old_id, grade in grades.items() if grade < threshold}
    if others and _all_known(np.logical_or.reduce([shared[old_id].words for old_id in others])):
        return "not_relevant", max(others.values())
    return "", None


def _all_known(words: npt.NDArray[np.bool_]) -> bool:
    """Return whether all of a text is known, except for a few words at its ends, too few to compare."""
    unknown = np.flatnonzero(~words)
    inside = (unknown >= _WORDS - 1) & (unknown <= len(words) - _WORDS)
    return bool(words.any()) and not inside.any()


def _found(docs: Docs, names: Sequence[str]) -> tuple[dict[str, Doc], list[str]]:
    """Return the judged documents that exist, and the ids of the others."""
    wanted, found = set(names), {}
    for doc in one_by_one(docs):
        if doc.doc_id in wanted:
            found[doc.doc_id] = doc
    return found, [name for name in names if name not in found]


def _words(doc: Doc) -> list[str]:
    """Return the words of a text, ignoring case and the title, which several passages share."""
    return [str(word) for word in _WORD.findall(doc.text.casefold())]


def _runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return all stretches of words to compare; a shorter text is one stretch."""
    size = min(_WORDS, len(words))
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)] if words else []


def _sharing(judged: Mapping[str, Doc], docs: Docs) -> Iterator[tuple[str, dict[str, _Shared]]]:
    """Yield each new document that shares text with judged ones, with the overlaps."""
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    sizes = {}
    for doc_id, doc in judged.items():
        words = _words(doc)
        sizes[doc_id] = len(words)
        for stretch in set(_runs(words)):
            places[stretch].append(doc_id)
    for doc in one_by_one(docs):
        words = _words(doc)
        shared: dict[str, _Shared] = {}
        for start, stretch in enumerate(_runs(words)):
            for old_id in places.get(stretch, ()):
                page, old_page = doc.page_id, judged[old_id].page_id
                if page is not None and old_page is not None and page != old_page:
                    continue
                if old_id not in shared:
                    shared[old_id] = _Shared(np.zeros(len(words), np.bool_), sizes[old_id])
                shared[old_id].words[start : start + len(stretch)] = True
        if shared:
            yield doc.doc_id, shared
