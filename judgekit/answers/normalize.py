"""The normalisation of answers that SQuAD, KILT and eRAG compare under."""

from __future__ import annotations

import re
import string
from typing import Final

import regex

__all__ = ["normalize", "trimmed"]

_ENDS: Final = regex.compile(r"\A[\s\p{Cc}\p{Cf}]+|[\s\p{Cc}\p{Cf}]+\Z")

_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")


def normalize(text: str) -> str:
    """Return ``text`` in lower case, without ASCII punctuation, then without English articles, white space single.

    >>> normalize("The  U.S. Navy's")
    'us navys'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def trimmed(text: str) -> str:
    """Return ``text`` without white space and invisible characters (zero-width, direction marks) at its ends."""
    return text.strip() if text.isascii() and text.isprintable() else _ENDS.sub("", text)
