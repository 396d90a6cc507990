"""Fitting documents into a context budget, and saying what was cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from judgekit.data.documents import Doc, Fields, render

__all__ = ["Fitted", "estimate_tokens", "fit"]

_BYTES_PER_TOKEN: Final = 4
_LEAST: Final = 16
"""A document of which fewer tokens than this would be left is dropped."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits, and what was cut: whole documents dropped, and tokens in all, those of shortened ones included."""

    docs: tuple[Doc, ...]
    cut_docs: int = 0
    cut_tokens: int = 0


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has: one per four bytes of UTF-8, begun ones counted.

    The same rule as for the cost before paying; no tokenizer is known for an endpoint that is only an address.
    """
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def fit(docs: Sequence[Doc], fields: Fields, tokens: int | None) -> Fitted:
    """Return the documents that fit into ``tokens``, best first; None means no limit.

    The first one that does not fit is shortened at a word's end, or dropped if next to nothing of it would be
    left; all documents behind it are dropped. So a better-ranked document never makes way for a worse one.
    """
    if tokens is None:
        return Fitted(tuple(docs))
    sizes = [estimate_tokens(render(doc, fields)) for doc in docs]
    kept: list[Doc] = []
    left = tokens
    for doc, size in zip(docs, sizes, strict=True):
        if size > left:
            shortened = _shorten(doc, fields, left)
            if shortened is not None:
                kept.append(shortened)
            break
        kept.append(doc)
        left -= size
    used = sum(estimate_tokens(render(doc, fields)) for doc in kept)
    return Fitted(tuple(kept), len(docs) - len(kept), sum(sizes) - used)


def _shorten(doc: Doc, fields: Fields, tokens: int) -> Doc | None:
    """Return the document cut to ``tokens`` at a word's end, or None where less than `_LEAST` would be left."""
    head = len(render(doc, fields).encode()) - len(doc.text.encode())
    room = tokens * _BYTES_PER_TOKEN - head
    if room < _LEAST * _BYTES_PER_TOKEN:
        return None
    text = doc.text.encode()[: room + 1].decode(errors="ignore")
    words = text.rsplit(maxsplit=1)
    return replace(doc, text=words[0]) if len(words) > 1 else None
