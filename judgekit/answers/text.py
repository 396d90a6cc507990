"""Texts in the form in which answers are compared: typographic marks, numbers, variants of scripts, and words.

Answers are compared with typographic marks folded and numbers whole (`written`, `Text`), or as published scripts
compare them: SQuAD's and KILT's (`squad`) and DPR's (`DprText`). Everything about scripts is here, by Unicode's
properties of characters; only interchangeable letters, the particles of Korean and the languages that need no more are
listed.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

import regex

from judgekit.answers.numbers import MINUS, POINT, UNIT, readings

T = TypeVar("T")

Norm = Literal["whole", "squad"]
"""The ways of comparing answers: ``whole`` folds typographic marks and keeps numbers whole, ``squad`` follows the
published scripts."""

_OUTSIDE: Final = r"\u0370-\u1cff\u1f00-\u1fff\u2e80-\U0010ffff"
_STRETCH: Final = re.compile(rf"[İı{_OUTSIDE}][{_OUTSIDE}\u00ad\u0300-\u036f\u200b-\u200f\u202a-\u202e\u2060-\u206f]*")
"""Consecutive characters from non-Latin blocks, with invisible ones between and after them."""

_LATIN_BYTES: Final = bytes(set(range(0xCC)) - {0xC4} | {0xE2})
"""UTF-8 bytes that do not begin such a character, İ, ı or a combining mark; 0xE2 begins U+2000 to U+2FFF, punctuation
and signs."""

_SPACED_BYTES: Final = bytes({*range(0xE0), 0xE2})
"""The same for scripts without spaces and Korean."""

_FOREIGN: Final = r"[^\p{scx=Latin}\p{scx=Common}\p{scx=Inherited}]"
"""A character of another script, its punctuation included."""

_VOWEL_SIGNS: Final = "".join(rf"\p{{ccc={number}}}" for number in range(10, 37))
"""The points of Hebrew and Arabic, by their combining classes; they are mostly not written."""

_ONE: Final = regex.compile(
    r"(?P<form>[\p{dt=wide}\p{dt=narrow}\p{dt=isolated}\p{dt=initial}\p{dt=medial}\p{dt=final}\p{dt=vertical}]+)"
    r"|(?P<digit>[\p{Nd}--0-9])"
    rf"|(?P<gone>[{_VOWEL_SIGNS}ـ]+|(?<={_FOREIGN})\p{{DI}}+)"
    r"|(?P<accented>[\p{Greek}&&\p{dt=canonical}])"
    r"|(?P<letter>[İıёЁ״׳])",
    regex.VERSION1,
)
"""Widths and letter forms, digits, optional or invisible characters, the accents of Greek, and `_LETTERS`."""

_LETTERS: Final = {"İ": "I", "ı": "i", "ё": "е", "Ё": "Е", "״": '"', "׳": "'"}
"""The Turkish i with and without a dot, which case-folding separates; ё, mostly written е; quotes in Hebrew
acronyms."""

_KATAKANA: Final = r"\p{Katakana}\p{M}*+(?:[\p{Katakana}ー]\p{M}*+)*+"
_ALONE: Final = (
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}ー[\p{lb=SA}--\p{M}]]\p{M}*+"
    r"(?:(?<=\p{InSC=Invisible_Stacker})[\p{lb=SA}--\p{M}]\p{M}*+)*+"
)
"""A character of a script without spaces, with its marks and anything stacked below it. The scripts of South-East Asia
are Unicode's class SA of line breaking: Thai, Lao, Khmer, Myanmar and their kin."""

_PARTICLE: Final = (
    r"은|는|이|가|을|를|의|에|에서|에게|에게서|께|께서|한테|와|과|(?:이)?랑|하고|(?:으)?로(?:서|써|부터)?|도|만|까지|부터"
    r"|마저|조차|처럼|보다|밖에|마다|이나|이라|(?:이)?라(?:는|고)|(?:이)?란|(?:이)?며|이고|이자|(?:이)?다|인데|(?:이)?지만"
    r"|예요|이에요|(?:이었|였)(?:다|던|고|으며)|(?:입|이었습|였습)니다"
)
"""Suffixes of Korean nouns: particles, and forms of the copula that are not nouns themselves."""

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
"""Languages in which names, numbers and most nouns have the same form in texts and in lists of answers."""

_CHANGING: Final = regex.compile(
    r"(?:(?!\p{Han}|\p{Hiragana}|\p{Katakana}|\p{Bopomofo}|\p{Hangul}|\p{lb=SA})"
    r"(?=\p{L})[^\p{scx=Latin}\p{scx=Common}]\p{M}*){2}"
)
"""Two letters of a script whose languages inflect words or attach others to them."""

_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_OTHER_PUNCTUATION: Final = regex.compile(r"\p{P}+")
_SIGN: Final = re.compile(r"(?<![^\W\u3041-\u309f])[-\u2212](?=\d)")
"""A minus before a number, also after a particle in Hiragana; after other letters and digits it is a hyphen."""

_AROUND: Final = " .,;:!?\"'`()[]*"
_ENDS: Final = regex.compile(r"\A[\s\p{Cc}\p{Cf}]+|[\s\p{Cc}\p{Cf}]+\Z")


def _holds_more(text: str, common: bytes) -> bool:
    """Whether a text's UTF-8 has bytes other than ``common``; several times faster than a regular expression."""
    return not text.isascii() and text.encode("utf-8", "surrogatepass").translate(None, common) != b""


def is_foreign(text: str) -> bool:
    """Whether a text holds characters of another script than Latin."""
    return _holds_more(text, _LATIN_BYTES) and _IS_FOREIGN.search(text) is not None


def fold(text: str) -> str:
    """Return ``text`` with one form for variants in other scripts; Latin texts are unchanged."""
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
    """Return ``text`` with spaces around words of scripts without spaces."""
    if _holds_more(text, _SPACED_BYTES):
        return str(_WORDS[whole].sub(_apart, text))
    return text


def _apart(match: regex.Match[str]) -> str:
    found: str = match[0]
    parted = _WITH_PARTICLES.fullmatch(found) if match.lastgroup == "hangul" else None
    if parted is None:
        return f" {found} "
    return f" {parted['stem']}  {' '.join(_SYLLABLE.findall(parted['particles']))} "


def word_count(text: str) -> int:
    """Return the number of words in a text; in scripts without spaces, two characters count as one."""
    return sum((len(apart(fold(word)).split()) + 1) // 2 for word in text.split())


def inflected(language: str, texts: tuple[str, ...]) -> str:
    """Return the language that may inflect the words of an answer, or ""."""
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
        return squad(text)
    text = unicodedata.normalize("NFC", fold(text).casefold())
    # If numbers are not kept whole, -5 and 5 only differ in other scripts.
    if _holds_more(text, _SPACED_BYTES) and is_foreign(text):
        text = _SIGN.sub(" \u2212 ", text)
    text = _ARTICLES.sub(" ", text.translate(_NO_PUNCTUATION))
    if is_foreign(text):
        text = apart(_OTHER_PUNCTUATION.sub(" ", text), whole=whole)
    return " ".join(text.split())


def candidate(text: str) -> str:
    """Return the text by which candidate answers shown to an LLM count as equal."""
    # Older than `comparable`, and stored requests depend on it. The band 'The The' and the grade 'A' consist of
    # articles only.
    return normalize(text) or _bare(text)


def comparable(text: str) -> str:
    """Return the text by which votes count answers as equal."""
    # An ambiguous mark as in 3,5 has only one reading here, since votes are not compared in pairs.
    return written(text)[-1] or _bare(typographic(text))


def _bare(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", fold(trimmed(text)).casefold()).split())
    return plain.strip(_AROUND) or plain


_TYPOGRAPHIC: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u00b4\u02b9\u02bb\u02bc\uff07", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2043\u2212\ufe58\ufe63\uff0d", "-"),
    **dict.fromkeys("\u2014\u2015", "\u2014"),
    "\u2026": "...",
    "\u2044": "/",
}
"""Typographic quotes, dashes and dots, and those of a keyboard."""

_MARK: Final = regex.compile(
    # A non-breaking blank separates thousands (10 000), as an apostrophe does in Switzerland.
    r"(?P<group>(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d)))|(?P<blank>[\p{Zs}--\ ])"
    r"|(?P<gone>[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff])"
    rf"|[{''.join(_TYPOGRAPHIC)}]",
    regex.VERSION1,
)
"""A blank, what is invisible, and a typographic mark."""

_LONG_DASH: Final = "\u2014"
_JOINING_DASH: Final = re.compile(rf"(?<=\w){_LONG_DASH}(?=\w)")
_SYMBOL: Final = re.compile(r"(?<=[^\W\d_])(?:\+\+?|#)(?![^\W\d_])")
"""Signs that make a different name: C++, C#, Canal+."""

_SYMBOLS: Final = str.maketrans({"+": MINUS, "#": "\u01c3"})
"""Letters too; see `judgekit.answers.numbers`."""

_REMEMBERED: Final = 1 << 12


def typographic(text: str) -> str:
    """Return ``text`` with a keyboard's quotes, hyphens and blanks, without invisible characters."""
    if text.isascii():
        return text
    return str(_MARK.sub(_keyboard, text))


def _keyboard(match: regex.Match[str]) -> str:
    if match.lastgroup is None:
        return _TYPOGRAPHIC[match[0]]
    return {"group": "'", "blank": " ", "gone": ""}[match.lastgroup]


@lru_cache(maxsize=_REMEMBERED)
def written(text: str, *, whole: bool = False) -> tuple[str, ...]:
    """Return the readings of an answer: its words, normalised, with typographic marks folded and numbers whole.

    There are several if a mark is ambiguous: ``3,5`` is 3.5 or 3 and 5, and a long dash separates words or joins them.
    Two answers are equal if they share a reading.
    """
    folded = _SYMBOL.sub(lambda found: found[0].translate(_SYMBOLS), typographic(fold(text)))
    spelled = readings(folded.replace(_LONG_DASH, " "))
    if _JOINING_DASH.search(folded):
        spelled += readings(_JOINING_DASH.sub("-", folded).replace(_LONG_DASH, " "))
    return tuple(dict.fromkeys(normalize(reading, whole=whole) for reading in spelled))


def same(text: str, reference: str) -> bool:
    """Return whether two answers are equal; if nothing is left of one, whether the original texts are."""
    for said in written(text):
        for right in written(reference):
            if not said or not right:
                return _bare(typographic(text)) == _bare(typographic(reference))
            alike = same_units(said, right)
            if alike[0] == alike[1]:
                return True
    return False


def same_units(said: str, reference: str) -> tuple[str, str]:
    """Return two readings; without units (per cent, a currency) if only one of them names any."""
    if (UNIT in said) == (UNIT in reference):
        return said, reference
    return _without_units(said), _without_units(reference)


def _without_units(reading: str) -> str:
    return " ".join(word for word in reading.split() if not word.startswith(UNIT))


def squad(text: str) -> str:
    """Return ``text`` as the scripts of SQuAD and KILT normalise it: lower case, no punctuation, no articles."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def trimmed(text: str) -> str:
    """Return ``text`` without white space and invisible characters (zero-width, direction marks) at its ends."""
    # Most are, and str.strip is many times as fast as the expression.
    if text.isprintable():
        return text.strip()
    return str(_ENDS.sub("", text))


_SEP: Final = "\x1f"
"""Separates words; a control character, which no word contains."""

_TOKEN: Final = regex.compile(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]")
"""The tokens of DPR's evaluation: runs of letters, digits and marks; every other visible character by itself. In
scripts without spaces, `apart` has separated the characters."""

_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
"""The same for lower-case ASCII, several times faster."""


_THOUSANDS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_PERCENT: Final = re.compile(r"(?<=\d)\s*per\s?cent\b")
_DIGIT: Final = re.compile(r"\d")
_NO_DIGITS: Final = bytes(set(range(256)) - set(b"0123456789"))
_ORDINAL: Final = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)


class _Once(Generic[T]):
    """A `functools.cached_property` without its lock, which takes as long as folding a passage in Python 3.11."""

    def __init__(self, made: Callable[[Any], T]) -> None:
        self._made = made

    def __get__(self, of: Any, kind: object = None) -> T:
        value = self._made(of)
        # From now on, the object's own attribute is found first.
        setattr(of, self._made.__name__, value)
        return value


class Text:
    """A text in which answers are found as sequences of tokens; an answer is one as well.

    Case-folded and in Unicode's decomposed form (NFD), typographic marks folded, other scripts than Latin as
    `judgekit.answers.text` reads them. A number is found by its value, in any spelling: ``5`` is not in ``25``,
    ``5,000``, ``5.5`` or ``-5``.
    """

    def __init__(self, text: str) -> None:
        self._source = text

    def holds(self, answer: Text) -> bool:
        """Whether the (nonempty) tokens of an answer occur consecutively in the text."""
        if not answer.has_digits:
            return self._plain.holds(answer._plain)
        if not self.has_digits:
            return False
        # An ordinal is not a number, and in a date it has lost its ending.
        if answer._is_ordinal and self._plain.holds(answer._plain):
            return True
        # Reading numbers is slow, and most passages lack the digits in any grouping and scaling.
        if not any(digits in self._digits for digits in answer._significant):
            return False
        return any(text.holds(phrase) for text in self._numbered for phrase in answer._numbered)

    @property
    def probe(self) -> str:
        """The longest token, "" if there is none; a text without it does not hold the answer."""
        return self._plain.probe

    @_Once
    def has_digits(self) -> bool:
        """Whether it contains a digit."""
        return _DIGIT.search(self._source) is not None

    @_Once
    def has_marks(self) -> bool:
        """Whether typographic marks were folded in it."""
        return not self._source.isascii() and _MARK.search(self._source) is not None

    @_Once
    def _digits(self) -> bytes:
        return fold(self._source).encode("utf-8", "surrogatepass").translate(None, _NO_DIGITS)

    @cached_property
    def _significant(self) -> list[bytes]:
        """For each reading, digits that any text with the same number has: the longest, without final zeros."""
        found = []
        for reading in self._numbered:
            numbers = re.findall(r"\d+", reading.folded.replace(POINT, ""), re.ASCII)
            found.append(max((number.strip("0") for number in numbers), key=len, default="").encode())
        return found

    @cached_property
    def _is_ordinal(self) -> bool:
        return _ORDINAL.fullmatch(self._source.strip()) is not None

    @_Once
    def _plain(self) -> _Tokens:
        if self._source.isascii():
            return _Tokens(self._source.lower())
        return _Tokens(_fold(typographic(self._source).replace(_LONG_DASH, "-")))

    @cached_property
    def _numbered(self) -> tuple[_Tokens, ...]:
        folded = typographic(fold(self._source)).replace(_LONG_DASH, " - ")
        return tuple(_Tokens(_fold(reading)) for reading in readings(folded))


class DprText(Text):
    """A text in which answers are found as sequences of tokens, as DPR evaluates; an answer is one as well.

    ``5`` is not in ``25``, but in ``5,000``. Unlike in DPR, a number is also found in its other spelling: 41300 as
    ``41,300``, 12% as ``12 percent``.
    """

    def holds(self, answer: Text) -> bool:
        """Whether the (nonempty) tokens of an answer occur consecutively in the text."""
        if self._plain.holds(answer._plain):
            return True
        # Filings write 41,300 and 12 percent where a list of answers has 41300 and 12%.
        with_number = any(map(str.isdigit, answer._plain.folded))
        return with_number and self._plain.in_one_spelling.holds(answer._plain.in_one_spelling)

    @_Once
    def _plain(self) -> _Tokens:
        return _Tokens(_fold(self._source))


class _Tokens:
    """A folded text as tokens, searched before it is split."""

    def __init__(self, folded: str) -> None:
        self.folded = folded

    def holds(self, phrase: _Tokens) -> bool:
        # The longest token is searched first: most passages lack it, which settles them.
        return phrase.probe in self.folded and phrase._marked in self._marked

    @_Once
    def probe(self) -> str:
        return max(_tokens(self.folded), key=len, default="")

    @cached_property
    def in_one_spelling(self) -> _Tokens:
        """The text with uniform numbers: no thousands separators, and a sign for percent."""
        without_separators = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), self.folded)
        return _Tokens(_PERCENT.sub("%", without_separators))

    @_Once
    def _marked(self) -> str:
        return _SEP + _SEP.join(_tokens(self.folded)) + _SEP


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", fold(text)).casefold())


def _tokens(folded: str) -> list[str]:
    found: list[str] = _ASCII_TOKEN.findall(folded) if folded.isascii() else _TOKEN.findall(apart(folded, whole=True))
    return found
