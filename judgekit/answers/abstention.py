"""Whether an answer is an abstention: the prompt's own phrase, or one of a few that mean nothing else.

No list of phrases and no grammar of English is ever complete, and one that guesses turns answers into abstentions
(``Can't Tell Me Nothing`` is a song). So only what was asked for is an abstention, and the few ways in which models say
it anyway. Whatever else reads like one is an answer and gets its score; `seems_to_abstain` only counts it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from judgekit.answers.normalize import trimmed

__all__ = ["abstains", "seems_to_abstain"]

_PHRASES: Final = frozenset(
    {
        "unknown",
        "i dont know",
        "i do not know",
        "i dont know the answer",
        "i do not know the answer",
        "n/a",
        "not enough information",
        "not enough info",
        "insufficient information",
        "cannot be determined",
        "unanswerable",
    }
)
"""Folded, as `_folded` returns them."""

_EDGES: Final = ' \t\r\n.,;:!?…。！？،؟।"“”„«»()[]*_~`#>-–—'
_APOSTROPHES: Final = str.maketrans("", "", "'’‘ʼ`")
_LABEL: Final = re.compile(r"(?:the )?(?:final )?answer(?: is|:|$)[\s*]*")

_SEEN: Final = 200
_HINT: Final = re.compile(
    r"\b(?:unknown|unclear|unsure|unanswerable|undetermined|unspecified|unable|insufficient|sorry"
    r"|(?:not|cannot|(?:do|does|did|is|are|was|were|ca|could)nt|no|none|nothing)\W+(?:\w+\W+){0,5}?"
    r"(?:know|known|sure|certain|clear|enough|available"
    r"|say|says|tell|tells|answer\w*|mention\w*|stat(?:e|es|ed)|specif\w+|contain\w*|provid\w+|give|gives|given"
    r"|determine\w*|establish\w*|identif\w+|found|find|infer\w*|discuss\w*|address\w*|information|context|evidence"
    r"|details))\b"
)
"""Words of doubt, or a negation and, a few words on, what is said, known or found. Far too wide for a score."""


def abstains(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer is an abstention: ``phrase``, or one of a few that mean the same, and nothing else.

    Case, apostrophes, punctuation, quotes and markup at its ends do not matter, nor does ``Answer:`` before it.
    """
    said, own = _folded(text), _folded(phrase)
    if not own:  # a phrase made of signs, such as ?
        return trimmed(text) == trimmed(phrase) != ""
    said = _LABEL.sub("", said, count=1).strip(_EDGES) if _LABEL.match(said) else said
    return said == own or said in _PHRASES


def seems_to_abstain(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer that is no abstention reads like one; it is only counted, and no score depends on it."""
    if abstains(text, phrase):
        return False
    said, own = _folded(text[:_SEEN]), _folded(phrase)
    return _HINT.search(said) is not None or (own != "" and re.search(rf"\b{re.escape(own)}\b", said) is not None)


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", trimmed(text)).translate(_APOSTROPHES)
    return " ".join(text.casefold().split()).strip(_EDGES)
