"""The verdicts that a prompt allows, and what of a text is one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

__all__ = ["Form"]

_KEYS: Final = re.compile(
    r"(?:(?:final|overall|relevance|is)[ _]?)?(?:score|grade|rating|relevance|relevant|label|verdict|answer|judge?ment"
    r"|decision|overall|result|useful|correct|class(?:ification)?)",
    re.IGNORECASE,
)
"""Keys under which a JSON object states a verdict where the prompt declares none, or the declared one is missing."""

_END: Final = r"(?=\s*(?:$|\n|[,;:!)\]}\"'”’»|<>…]|\.(?!\d)|\(|[-–—](?:\s|$)|(?:because|since|as|due)\b))"
"""What may stand behind a verdict: the end of the line, punctuation, an aside, a reason."""

_BARE: Final = r"^ *+(?:[-•–>] ++)?+[ \"'“”‘’«(\[{<]*+"
_AFTER_BARE: Final = r"(?P<mark>[\"'”’»)\]}<>.,;:! ]*)$"


@dataclass(frozen=True)
class Form:
    """The verdicts that a prompt allows.

    Attributes:
        words: (word, value), case-folded: ``yes`` and ``no``, the names of grades, classes.
        low, high: the least and largest grade where a number is a verdict, else None.
        key: the key of the verdict where the reply is to be a JSON object, else "".
        answers: whether the verdict is the answer to the question itself, so that what a reply says of the answer in
            the passage is the verdict, and not something beside it.
    """

    words: tuple[tuple[str, int], ...] = ()
    low: int | None = None
    high: int | None = None
    key: str = ""
    answers: bool = False

    @cached_property
    def short(self) -> Mapping[str, int]:
        """The verdicts as they stand in the shortest replies."""
        numbers = () if self.low is None or self.high is None else range(self.low, self.high + 1)
        return {**dict(self.words), **{str(n): n for n in numbers}}

    @cached_property
    def keys(self) -> tuple[re.Pattern[str], ...]:
        """The keys under which a JSON object may hold the verdict: the declared one, else the usual ones."""
        return (*([re.compile(re.escape(self.key), re.IGNORECASE)] if self.key else ()), _KEYS)

    @cached_property
    def value(self) -> re.Pattern[str]:
        """A verdict and what stands behind it: groups ``word``, ``other``, ``number``, ``total``, ``more``, ``end``."""
        return re.compile(self._pattern, re.IGNORECASE)

    @cached_property
    def bare(self) -> re.Pattern[str]:
        """A verdict on a line of its own: ``value`` with what may stand around it; the group ``mark`` is behind it."""
        return re.compile(_BARE + self._pattern + _AFTER_BARE, re.IGNORECASE | re.MULTILINE)

    @property
    def _pattern(self) -> str:
        words = sorted((w for w, _ in self.words), key=len, reverse=True)
        any_word = "|".join(r"\s+".join(re.escape(part) for part in w.split()) for w in words) or r"(?!)"
        number = r"[+\-−]?(?:\d+(?:\.\d+)?|\.\d+)" if self.low is not None else r"(?!)"
        total = (
            r"\s*(?:/|out\s+of\b|of\b)\s*(?:a\s+)?(?:(?:total|maximum|possible)\s+(?:of\s+)?)?(?P<total>\d+)(?![\d/])"
        )
        return (
            rf"(?:(?P<word>{any_word})(?!\w)(?P<other>\s*(?:/|\||\bor\b|\band\b)\s*(?:{any_word})\b)?"
            rf"|(?P<number>{number})(?:{total})?"
            r"(?P<more>\s*(?:(?P<list>[,/])|[-–—]|\.\.+|to\b|through\b|or\b|and\b)\s*(?P<next>\d+))?)"
            rf"(?P<end>{_END})?"
        )

    def __str__(self) -> str:
        words = [w for w, _ in self.words]
        return "/".join(words) if self.low is None else f"{self.low} to {self.high}"

    def read(self, match: re.Match[str]) -> int | None:
        """Return the verdict that a match of `value` is; None if it is hedged, garbled or off the scale."""
        if match["end"] is None or match["other"] or match["more"]:
            return None
        if match["word"] is not None:
            return self.short.get(" ".join(match["word"].casefold().split()))
        number = float(match["number"].replace("−", "-"))
        if not number.is_integer() or str(int(number)) not in self.short:
            return None
        return int(number) if match["total"] in (None, str(self.high)) else None

    def whole(self, value: Any) -> int | None:
        """Return the verdict that a JSON value is, or None."""
        if isinstance(value, bool):
            value = "yes" if value else "no"
        match = self.value.fullmatch(str(value).strip())
        return self.read(match) if match else None

    def restated(self, match: re.Match[str]) -> bool:
        """Whether a match of `value` only lists what is possible: ``0 to 3``, ``0, 1, 2 or 3``, ``yes/no``."""
        if match["word"] is not None:
            return match["other"] is not None and "and" not in match["other"].casefold()
        if match["more"] is None or match["number"] != str(self.low):
            return False
        return match["next"] == str(self.high if match["list"] is None else int(match["number"]) + 1)
