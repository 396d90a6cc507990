"""Texts as answers are compared: SQuAD's normalisation, what scripts write in several ways, and what a word is.

Texts in Latin script are left as they are, so that results on them stay those of DPR, SQuAD and ROUGE. All that depends
on a script is told here, by Unicode's properties of characters; only the letters that writing exchanges, the particles
of Korean and the languages that need no more than this are listed.
"""

from __future__ import annotations

import re
import string
import unicodedata
from functools import cached_property
from typing import Final

import regex

_OUTSIDE: Final = r"\u0370-\u1cff\u1f00-\u1fff\u2e80-\U0010ffff"
_STRETCH: Final = re.compile(rf"[İı{_OUTSIDE}][{_OUTSIDE}\u00ad\u0300-\u036f\u200b-\u200f\u202a-\u202e\u2060-\u206f]*")
"""Characters from blocks that are not Latin, one behind the other, with what is invisible between and behind them."""

_LATIN_BYTES: Final = bytes(set(range(0xCC)) - {0xC4} | {0xE2})
"""The bytes of UTF-8 that begin no such character, nor İ, ı or a mark that is apart from its letter; 0xE2 begins U+2000
to U+2FFF, punctuation and signs."""

_SPACED_BYTES: Final = bytes({*range(0xE0), 0xE2})
"""The same for scripts without spaces and Korean."""

_FOREIGN: Final = r"[^\p{scx=Latin}\p{scx=Common}\p{scx=Inherited}]"
"""A character of another script, its punctuation included."""

_VOWEL_SIGNS: Final = "".join(rf"\p{{ccc={number}}}" for number in range(10, 37))
"""The points of Hebrew and Arabic, known by their combining classes; in writing they are mostly left out."""

_ONE: Final = regex.compile(
    r"(?P<form>[\p{dt=wide}\p{dt=narrow}\p{dt=isolated}\p{dt=initial}\p{dt=medial}\p{dt=final}\p{dt=vertical}]+)"
    r"|(?P<digit>[\p{Nd}--0-9])"
    rf"|(?P<gone>[{_VOWEL_SIGNS}ـ]+|(?<={_FOREIGN})\p{{DI}}+)"
    r"|(?P<accented>[\p{Greek}&&\p{dt=canonical}])"
    r"|(?P<letter>[İıёЁ״׳])",
    regex.VERSION1,
)
"""Widths and letter forms, digits, what is left out in writing or invisible, the accents of Greek, and `_LETTERS`."""

_LETTERS: Final = {"İ": "I", "ı": "i", "ё": "е", "Ё": "Е", "״": '"', "׳": "'"}
"""The Turkish i with and without a dot, which case-folding parts; ё, mostly written е; quotes in Hebrew acronyms."""

_KATAKANA: Final = r"\p{Katakana}\p{M}*+(?:[\p{Katakana}ー]\p{M}*+)*+"
_ALONE: Final = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}ー[\p{lb=SA}--\p{M}]]\p{M}*+"
    r"(?:(?<=\p{InSC=Invisible_Stacker})[\p{lb=SA}--\p{M}]\p{M}*+)*+"
)
"""A character where no spaces part words, with its marks and what is stacked below it. The scripts of South-East Asia
are Unicode's class SA of line breaking: Thai, Lao, Khmer, Myanmar and their kin."""

_PARTICLE: Final = (
    r"은|는|이|가|을|를|의|에|에서|에게|에게서|께|께서|한테|와|과|(?:이)?랑|하고|(?:으)?로(?:서|써|부터)?|도|만|까지|부터"
    r"|마저|조차|처럼|보다|밖에|마다|이나|이라|(?:이)?라(?:는|고)|(?:이)?란|(?:이)?며|이고|이자|(?:이)?다|인데|(?:이)?지만"
    r"|예요|이에요|(?:이었|였)(?:다|던|고|으며)|(?:입|이었습|였습)니다"
)
"""What Korean attaches to a noun: particles, and forms of the copula that are not nouns of their own."""

_ANY_PARTICLE: Final = f"{_PARTICLE}|{unicodedata.normalize('NFD', _PARTICLE)}"
_WITH_PARTICLES: Final = regex.compile(rf"(?P<stem>\p{{Hangul}}+?)(?P<particles>(?:{_ANY_PARTICLE}){{0,3}})")
_SYLLABLE: Final = regex.compile(r"\X")

_WORDS: Final = {
    whole: regex.compile(
        (rf"(?P<word>{_KATAKANA})|" if whole else "") + rf"(?P<alone>{_ALONE})|(?P<hangul>\p{{Hangul}}+)",
        regex.VERSION1,
    )
    for whole in (True, False)
}
_IS_FOREIGN: Final = regex.compile(_FOREIGN)

_UNCHANGED: Final = frozenset(
    ("en", "fr", "es", "it", "pt", "ca", "gl", "nl", "af", "vi", "id", "ms", "zh", "yue", "ja", "ko", "th", "lo", "km",
     "my")
)  # fmt: skip
"""Languages in which names, numbers and most nouns stand in a text as they stand in a list of answers."""

_CHANGING: Final = regex.compile(
    r"(?:(?!\p{Han}|\p{Hiragana}|\p{Katakana}|\p{Bopomofo}|\p{Hangul}|\p{lb=SA})"
    r"(?=\p{L})[^\p{scx=Latin}\p{scx=Common}]\p{M}*){2}"
)
"""Two letters of a script whose languages change the form of words or attach others to them."""

_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_OTHER_PUNCTUATION: Final = regex.compile(r"\p{P}+")
_SIGN: Final = re.compile(r"(?<![^\W\u3041-\u309f])[-\u2212](?=\d)")
"""A minus before a number, also behind a particle in Hiragana; behind other letters and digits it is a hyphen."""

_AROUND: Final = " .,;:!?\"'`()[]*"
_ENDS: Final = regex.compile(r"\A[\s\p{Cc}\p{Cf}]+|[\s\p{Cc}\p{Cf}]+\Z")


def _holds_more(text: str, common: bytes) -> bool:
    """Whether the UTF-8 of a text has other bytes than ``common``: several times as fast as a regular expression."""
    return not text.isascii() and text.encode("utf-8", "surrogatepass").translate(None, common) != b""


def is_foreign(text: str) -> bool:
    """Whether a text holds characters of another script than Latin."""
    return _holds_more(text, _LATIN_BYTES) and _IS_FOREIGN.search(text) is not None


def fold(text: str) -> str:
    """Return ``text`` with one form of what other scripts write in several; a text in Latin script is left alone."""
    if not _holds_more(text, _LATIN_BYTES):
        return text
    return _STRETCH.sub(lambda stretch: _ONE.sub(_one, stretch[0]), unicodedata.normalize("NFC", text))


def _one(match: regex.Match[str]) -> str:
    found: str = match[0]
    if match.lastgroup == "form":
        return unicodedata.normalize("NFKC", found)
    if match.lastgroup == "digit":
        return str(unicodedata.digit(found))
    if match.lastgroup == "accented":
        return unicodedata.normalize("NFD", found)[0]
    return _LETTERS.get(found, "")


def apart(text: str, *, whole: bool = False) -> str:
    """Return ``text`` with spaces around what is a word by itself without them."""
    if _holds_more(text, _SPACED_BYTES):
        return str(_WORDS[whole].sub(_apart, text))
    return text


def _apart(match: regex.Match[str]) -> str:
    found: str = match[0]
    parted = _WITH_PARTICLES.fullmatch(found) if match.lastgroup == "hangul" else None
    if parted is None:
        return f" {found} "
    return f" {parted['stem']}  {' '.join(_SYLLABLE.findall(parted['particles']))} "


def inflected(language: str, texts: tuple[str, ...]) -> str:
    """Return which language may write the words of an answer in another form; "" if none is known to."""
    if language:
        code = re.split("[-_]", language.strip().casefold())[0]
        if code in _UNCHANGED:
            return ""
        return f"the language {language!r}"
    if any(is_foreign(t) and _CHANGING.search(t) for t in texts):
        return "a language of this script"
    return ""


def normalize(text: str, *, whole: bool = False) -> str:
    """Return ``text`` in lower case, without ASCII punctuation, then without English articles, white space single."""
    if text.isascii():
        return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())
    text = unicodedata.normalize("NFC", fold(text).casefold())
    # -5 and 5 are different answers; in Latin texts SQuAD's rule, which drops the sign, stays.
    if _holds_more(text, _SPACED_BYTES) and is_foreign(text):
        text = _SIGN.sub(" \u2212 ", text)
    text = _ARTICLES.sub(" ", text.translate(_NO_PUNCTUATION))
    if is_foreign(text):
        text = apart(_OTHER_PUNCTUATION.sub(" ", text), whole=whole)
    return " ".join(text.split())


def comparable(text: str) -> str:
    """Return the text by which two answers are the same: normalised, or all but as it is where that leaves nothing."""
    # The band 'The The' and the grade 'A' are nothing but articles.
    said = normalize(text)
    if said:
        return said
    plain = " ".join(unicodedata.normalize("NFC", fold(trimmed(text)).casefold()).split())
    return plain.strip(_AROUND) or plain


def trimmed(text: str) -> str:
    """Return ``text`` without white space and invisible characters (zero-width, direction marks) at its ends."""
    # Most are, and str.strip is many times as fast as the expression.
    if text.isprintable():
        return text.strip()
    return str(_ENDS.sub("", text))


_SEP: Final = "\x1f"
"""Stands between words; a control character, which is part of no word."""

_TOKEN: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
"""The tokens of DPR's evaluation: runs of letters, digits and marks; every other visible character by itself. Where a
script has no spaces, `apart` has set its characters apart."""

_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
"""The same for lower-case ASCII, several times faster."""


_THOUSANDS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_PERCENT: Final = re.compile(r"(?<=\d)\s*per\s?cent\b")


class Text:
    """A text in which answers are found as sequences of tokens, as DPR evaluates; an answer is one as well.

    Case-folded and in Unicode's decomposed form (NFD), other scripts than Latin as `judgekit.answers.text` reads
    them. ``5`` is not in ``25``, and ``C++`` is not in ``C + +b`` only because of its last token. Unlike in DPR, a
    number is also found in its other spelling: 41300 as ``41,300``, 12% as ``12 percent``.
    """

    def __init__(self, text: str) -> None:
        self._folded = _fold(text)

    def holds(self, answer: Text) -> bool:
        """Whether the tokens of an answer, which are some, stand in the text, one behind the other."""
        if self._holds_tokens(answer):
            return True
        # Filings write 41,300 and 12 percent where a list of answers has 41300 and 12%.
        with_number = any(map(str.isdigit, answer._folded))
        return with_number and self._one_spelling._holds_tokens(answer._one_spelling)

    def _holds_tokens(self, answer: Text) -> bool:
        # The longest token is looked for first: it is absent from most passages, and that settles them.
        return answer.probe in self._folded and answer._marked in self._marked

    @cached_property
    def _one_spelling(self) -> Text:
        """The same text with numbers spelled in one way: no separators of thousands, a sign for percent."""
        without_separators = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), self._folded)
        spelled = Text("")
        spelled._folded = _PERCENT.sub("%", without_separators)
        return spelled

    @cached_property
    def probe(self) -> str:
        """The longest token, "" if there is none; a text without it does not hold the answer."""
        return max(_tokens(self._folded), key=len, default="")

    @cached_property
    def _marked(self) -> str:
        return _SEP + _SEP.join(_tokens(self._folded)) + _SEP


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", fold(text)).casefold())


def _tokens(folded: str) -> list[str]:
    found: list[str] = _ASCII_TOKEN.findall(folded) if folded.isascii() else _TOKEN.findall(apart(folded, whole=True))
    return found
