"""The normalisation of answers that SQuAD, KILT and eRAG compare under, and what it becomes in other scripts."""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Final

import regex

from judgekit.answers.scripts import apart, fold, is_foreign

__all__ = ["normalize", "trimmed"]

_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_OTHER_PUNCTUATION: Final = regex.compile(r"\p{P}+")
_ENDS: Final = regex.compile(r"\A[\s\p{Cc}\p{Cf}]+|[\s\p{Cc}\p{Cf}]+\Z")


def normalize(text: str, *, whole: bool = False) -> str:
    """Return ``text`` in lower case, without ASCII punctuation, then without English articles, white space single.

    That is SQuAD's rule, and all there is to it where the text is in Latin script, but for letters that Unicode calls
    the same (NFC, case-folding). In other scripts all punctuation goes, and `judgekit.answers.scripts` says what is
    the same and what is a word.

    Args:
        text: any text.
        whole: keep runs of Katakana together, for looking one text up in another.

    >>> normalize("The  U.S. Navy's"), normalize("「東京」。")
    ('us navys', '東 京')
    """
    if text.isascii():
        return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())
    text = unicodedata.normalize("NFC", fold(text).casefold())
    text = _ARTICLES.sub(" ", text.translate(_NO_PUNCTUATION))
    if is_foreign(text):
        text = apart(_OTHER_PUNCTUATION.sub(" ", text), whole=whole)
    return " ".join(text.split())


def trimmed(text: str) -> str:
    """Return ``text`` without white space and invisible characters (zero-width, direction marks) at its ends."""
    return text.strip() if text.isascii() and text.isprintable() else _ENDS.sub("", text)
