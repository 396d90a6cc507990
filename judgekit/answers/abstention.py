"""Whether an answer is an abstention, and nothing but one.

A text that says what is lacking and then answers all the same is an answer, and so is a title that begins like an
abstention (``Can't Tell Me Nothing``). So every sentence of the text has to be an abstention by itself, in one of
few forms, and neither may turn round (``but``, ``however``) nor go on to say what it is (``…, it was 1932``).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["abstains"]

_SHORT_FORMS: Final = frozenset({"N/A", "n/a", "NA", "N.A", "n.a"})
"""As they are written, for ``Na`` is sodium; a full stop at the end is off already."""

_EDGES: Final = ' \t\r\n.,;:!?…"“”„«»()[]*_~#>-–—'
_APOSTROPHES: Final = str.maketrans("", "", "'’‘ʼ`")
_ABBREVIATED: Final = r"(?<!\b[^\W\d])(?<!\b(?:dr|mr|ms|st|jr|sr|mt|vs|no))(?<!\bmrs)"
_SENTENCE_END: Final = re.compile(
    r"[.!?…]+\s+(?=(?-i:It|The|He|She|They|This|That|There|I|We|However|But)\b)"
    rf"|{_ABBREVIATED}[.!?…]+(?:\s+|$)|[;\n]\s*|\s+[-–—]+\s+|—|:\s+|[-=]>|→",
    re.IGNORECASE,
)
_LAST_ASIDE: Final = re.compile(r"[(\[]([^()\[\]]*)[)\]][\s.!?]*$")
_MOST_SENTENCES: Final = 4
_MOST_WORDS: Final = 40

_PASSAGES: Final = (
    r"(?:any of )?(?:(?:the|these|those|this|any|either|your) )?"
    r"(?:(?:provided|given|above|available|retrieved|supplied|quoted) )*"
    r"(?:passages?|documents?|contexts?|texts?|excerpts?|articles?|sources?|snippets?|information|material)"
    r"(?: (?:provided|given|above|supplied))?"
)
_WHERE: Final = rf"(?: (?:in|from|by|with|within|on|based on|given|using) {_PASSAGES}| here)"
_QUESTION: Final = r"(?:this|that|the|your) question"
_IT: Final = rf"(?:(?:the )?answer(?: to {_QUESTION})?|(?:the |this )?question|(?:the )?information|it|this|that)"
_SAYS: Final = (
    r"(?:contain|mention|provide|say|state|specify|include|give|answer|discuss|address|describe|indicate|identify"
    r"|name|tell|list|report|reveal|explain|offer|have|cover)s?"
)
_WH: Final = r"(?:who|whom|whose|what|when|where|which|why|how|whether|if)"
_ADVERB: Final = r"(?:(?:explicitly|directly|specifically|clearly|actually|really) )?"
_CLEARLY: Final = r"(?: (?:for (?:sure|certain)|with certainty|definitively))?"
_STATED: Final = (
    r"(?:known|given|stated|mentioned|specified|provided|answerable|answered|available|found|included|indicated|clear"
    r"|contained|discussed|covered|addressed|described)"
)
_IS_NOT: Final = r"(?:(?:is|are|was|were) not|isnt|arent|wasnt|werent)"
_DO_NOT: Final = r"(?:(?:do|does|did) not|doesnt|dont|didnt)"
_CANNOT: Final = r"(?:cannot|can not|cant|could not|couldnt|(?:(?:is|are|am|i?m) )?(?:unable|not able) to)"
_LACKING: Final = (
    r"(?:there is )?(?:not enough|insufficient|no(?: relevant| further| specific)?)"
    r" (?:information|info|context|details|data)(?: (?:is |was )?(?:given|provided|available|found))?"
)
_NONE: Final = (
    r"(?:unknown|unanswerable|undetermined|unspecified|unclear|no answer|not (?:at all )?(?:sure|certain)"
    r"|not applicable)"
)

_CLOSED: Final = re.compile(
    "|".join(
        (
            rf"(?:i )?(?:really |honestly |simply )?{_DO_NOT} know(?: (?:the )?answer)?(?: to {_QUESTION})?{_WHERE}?",
            rf"(?:(?:{_IT} (?:is|remains)|im|i am) )?{_NONE}{_WHERE}?",
            rf"(?:(?:i|we|you) )?{_CANNOT} (?:answer|determine|say|tell)(?: (?:{_QUESTION}|it|this|that))?"
            rf"{_CLEARLY}{_WHERE}?",
            rf"(?:{_IT} )?{_CANNOT} be (?:answered|determined|known|found|inferred|identified|established|given)"
            rf"{_CLEARLY}{_WHERE}?",
            rf"(?:{_IT} )?(?:{_IS_NOT}|not) {_ADVERB}{_STATED}(?: or {_STATED})?{_WHERE}?",
            rf"(?:{_IT} )?(?:{_IS_NOT}|not) (?:in|part of) {_PASSAGES}",
            rf"(?:the|his|her|its|their|this|that|such) [^,]+ {_IS_NOT} {_ADVERB}{_STATED}{_WHERE}",
            rf"{_LACKING}{_WHERE}?",
            r"(?:there is )?(?:not enough|insufficient) evidence",
            rf"{_PASSAGES} {_DO_NOT} {_ADVERB}(?:say|tell|answer|mention|state|specify)",
        )
    )
)
"""Abstentions that end where they end."""

_OPEN: Final = re.compile(
    "|".join(
        (
            rf"(?:i )?{_DO_NOT} know(?= {_WH}\b)",
            rf"(?:(?:i|we|it|you) )?{_CANNOT} be (?:determined|known|inferred|established){_WHERE}?(?= {_WH}\b)",
            rf"(?:(?:i|we|you) )?{_CANNOT} (?:determine|infer|establish)(?= (?:the|this|that|any|{_WH})\b)",
            rf"(?:i|we|you) {_CANNOT} (?:say|tell){_CLEARLY}{_WHERE}?(?= {_WH}\b)",
            rf"(?:(?:i|we) )?{_CANNOT} (?:find|give|provide|identify)"
            r"(?= (?:the|an|any|a) (?:\w+ )?(?:answer|information|mention|details)\b)",
            rf"(?:i )?{_DO_NOT} have (?:enough|sufficient|any|the)(?: \w+)?"
            r" (?:information|context|details|knowledge)",
            rf"{_LACKING}{_WHERE}?(?= (?:about|on|regarding|as to|to|for|concerning|that)\b)",
            rf"there is (?:not enough|insufficient|no) evidence{_WHERE}",
            r"(?:there is )?(?:not enough|insufficient) evidence(?= to\b)",
            r"(?:there is )?no mention of",
            r"no answer(?= (?:is|was|can|could)\b)",
            rf"(?:none of )?{_PASSAGES} {_DO_NOT} {_ADVERB}{_SAYS}\b",
            rf"none of {_PASSAGES} {_ADVERB}{_SAYS}\b",
            rf"{_PASSAGES} (?:(?:contain|provide|give|include|have|offer|make|say)s?|has)"
            r" (?:no|nothing|not enough|insufficient)\b",
        )
    )
)
"""Abstentions that go on to say what is lacking."""

_PREAMBLE: Final = re.compile(
    r"(?:(?:i am |im )?(?:sorry|very sorry)|i apologi[sz]e|apologies|unfortunately)\b,? *(?:but )?"
    rf"|(?:based on|according to|from|given|in) {_PASSAGES},? |(?:so|therefore|thus|hence|and|as|because|since),? "
    r"|(?:the )?(?:final |short )?answer is (?=the |these |i |not )"
    r"|(?:and )?(?:the )?(?:final |short )?answer(?: ?: ?|$)"
)
_TURN: Final = re.compile(
    r"\b(?:but(?! not?\b)|however|although|though|yet|except|nevertheless|nonetheless|instead|rather|probably|likely"
    r"|possibly|perhaps|presumably|maybe|other than|apart from|aside from|besides|beyond|while|whereas|only that)\b"
    r"|, only\b"
)
_PRONOUN: Final = (
    r"(?:the (?:\w+ )?(?:answer|passages?|documents?|contexts?|texts?)|its?|he|she|they|this|that|there|i|we|none|no)"
)
_CLAUSE: Final = re.compile(rf",\s*| (?=(?:and|so|as|because|since|therefore|hence|thus) {_PRONOUN}\b)| (?=as the\b)")
_ANSWERING: Final = re.compile(rf"(?:(?:and|so|or|as|because|since) )*(?:{_PRONOUN}\b|which (?:is|was)\b)")
_GOES_ON: Final = re.compile(rf"(?:or|nor|including|such as|let alone|{_WH}|and(?= (?:\S+ ?){{1,3}}$))\b")
_LIST_ITEM_WORDS: Final = 3
_SPACES: Final = re.compile(r"[^\S\n]+")


def abstains(text: str, phrase: str = "unknown") -> bool:
    """Whether an answer says that there is none, in the prompt's phrase or in other usual words, and nothing else."""
    if text.strip(_EDGES) in _SHORT_FORMS:
        return True
    own = _folded(phrase)
    if not own and text.strip() == phrase.strip() != "":
        return True
    if _folded(text) == own != "":
        return True
    sentences = _sentences(text)
    return 0 < len(sentences) <= _MOST_SENTENCES and all(_abstaining(s, own) for s in sentences)


def _folded(text: str) -> str:
    return " ".join(text.translate(_APOSTROPHES).casefold().split()).strip(_EDGES)


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text, and what stands in brackets at its end as one more."""
    text = _SPACES.sub(" ", text)  # a long run of spaces would take a time that grows with its square
    aside = _LAST_ASIDE.search(text)
    parts = [*_SENTENCE_END.split(text[: aside.start()] if aside else text), aside[1] if aside else ""]
    return [part for part in parts if _without_preamble(_folded(part))]


def _abstaining(sentence: str, own: str) -> bool:
    said = _without_preamble(_folded(sentence))
    if len(said.split()) > _MOST_WORDS or _TURN.search(said):
        return False
    first, *rest = _CLAUSE.split(said)
    closed = _is_closed(first, own)
    if not closed and (_OPEN.match(first) is None or _is_titled(sentence)):
        return False
    return all(_states_none(clause, own) or _lists(rest[i:], closed) for i, clause in enumerate(rest))


def _is_closed(clause: str, own: str) -> bool:
    clause = clause.strip(_EDGES)
    return clause in (own, f"the answer is {own}", f"it is {own}") or _CLOSED.fullmatch(clause) is not None


def _states_none(clause: str, own: str) -> bool:
    clause = _without_preamble(clause)
    return _is_closed(clause, own) or _OPEN.match(clause) is not None


def _lists(clauses: list[str], closed: bool) -> bool:
    """Whether the first clause only goes on with what is lacking: ``the name, age or rank``."""
    clause, *later = clauses
    if closed or _ANSWERING.match(clause):
        return False
    if _GOES_ON.match(clause):
        return True
    return len(clause.split()) <= _LIST_ITEM_WORDS and any(re.match(r"(?:or|and|nor)\b", c) for c in later)


def _without_preamble(said: str) -> str:
    while match := _PREAMBLE.match(said):
        said = said[match.end() :].strip(_EDGES)
    return said


def _is_titled(sentence: str) -> bool:
    """Whether all longer words begin with a capital letter, as in a title."""
    words = [word for word in re.findall(r"[^\W\d_]+", sentence.translate(_APOSTROPHES)) if len(word) > 3]
    return len(words) > 1 and all(word[0].isupper() and not word.isupper() for word in words)
