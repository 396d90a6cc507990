"""The question about nuggets and citations: which items of a list a text supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, get_args

from judgekit import Query
from judgekit.answers.nuggets import Nugget
from judgekit.extend import Prompt, Question, neutral

Support = Literal["support", "partial", "none"]
WORDS: Final[tuple[Support, ...]] = get_args(Support)
_OTHERS: Final[Mapping[str, Support]] = {
    **dict.fromkeys(("supported", "full support", "full", "fully supported", "fully support"), "support"),
    **dict.fromkeys(("partial support", "partially supported", "partially support", "partially", "partly"), "partial"),
    **dict.fromkeys(("not support", "not supported", "no support", "unsupported", "not stated"), "none"),
}
"""Other words for the same, without hyphens and underscores: TREC RAG's (``not_support``) and those of models."""

_NUMBERS: Final = ("id", "index", "item", "no", "number")
"""The fields of an object that may number it."""

WEIGHTS: Final[Mapping[Support, float]] = {"support": 1.0, "partial": 0.5, "none": 0.0}
AT_ONCE: Final = 10
"""The number of nuggets in one request, as in AutoNuggetizer (Pradeep et al., arXiv 2411.09607)."""


def support_question(values: Mapping[str, str], items: int) -> Question[Support]:
    """Return a question that asks for a word for each item."""
    form = f"a JSON list of {items} words, each one of: {', '.join(WORDS)}"
    return Question({**values, "count": str(items)}, form, partial(_supports, items))


def _supports(items: int, listed: list[Any]) -> list[Support] | str:
    if len(listed) != items:
        return f"{len(listed)} words for {items} items"
    supports: list[Support] = []
    for place, item in enumerate(listed, 1):
        if isinstance(item, dict) and any(item.get(name, place) not in (place, str(place)) for name in _NUMBERS):
            return "items in another order"
        word = _word(item)
        if word is None:
            return f"{item!r}, which is none of {', '.join(WORDS)}"
        supports.append(word)
    return supports


def _word(item: object) -> Support | None:
    """Return an item's word, or the only word among the fields of an object."""
    if isinstance(item, dict):
        words = [word for value in item.values() if (word := _word(value)) is not None]
        return words[0] if len(words) == 1 and not any(isinstance(value, dict) for value in item.values()) else None
    if not isinstance(item, str):
        return None
    said = " ".join(item.casefold().replace("_", " ").replace("-", " ").split())
    return next((word for word in WORDS if word == said), _OTHERS.get(said))


def nugget_questions(prompt: Prompt, query: Query, nuggets: Sequence[Nugget], text: str) -> list[Question[Support]]:
    """Return the questions about which nuggets a text states, `AT_ONCE` in each."""
    questions: list[Question[Support]] = []
    for start in range(0, len(nuggets), AT_ONCE):
        shown = nuggets[start : start + AT_ONCE]
        facts = "\n".join(f"{number}. {neutral(nugget.text)}" for number, nugget in enumerate(shown, 1))
        values = prompt.values(query) | {"facts": facts, "text": neutral(text)}
        questions.append(support_question(values, len(shown)))
    return questions
