"""One spelling for numbers and dates, so that a number is compared whole and by its value.

``41,300`` and ``41 300`` are 41300, ``$4.2 billion`` and ``4,200,000,000 dollars`` the same sum, ``12%`` and ``12 per
cent`` the same share, ``18 May 2018`` and ``2018-05-18`` the same day. Three letters that never occur beside a digit
stand for signs that must survive the removal of punctuation: `POINT`, `MINUS` and, before units, `UNIT`.

Two conventions write decimals, with a point (English) and with a comma (most of Europe); they also differ in the order
of a date such as ``05/06/2018``. If both are possible, both readings are returned.

Not read: numbers in words ("three"), Roman numerals, fractions (½, 3/4), other units than per cent and a few
currencies, scales and months of other languages than English, times of day.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

POINT: Final = "\u01c0"
MINUS: Final = "\u01c2"
UNIT: Final = "\u01c1"
"""Letters (clicks of Khoisan languages), so that tokenisers keep them with the digits or the word that follows."""

_SCALES: Final = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_SHORT_SCALES: Final = {"k": 3, "m": 6, "mn": 6, "mln": 6, "b": 9, "bn": 9, "t": 12, "tn": 12, "trn": 12}
_CURRENCIES: Final = {
    **dict.fromkeys(("$", "us$", "usd", "dollar", "usdollar"), "dollar"),
    **dict.fromkeys(("c$", "ca$", "cad", "canadiandollar"), "cad"),
    **dict.fromkeys(("a$", "au$", "aud", "australiandollar"), "aud"),
    **dict.fromkeys(("hk$", "hkd"), "hkd"),
    **dict.fromkeys(("nz$", "nzd"), "nzd"),
    **dict.fromkeys(("€", "eur", "euro"), "euro"),
    **dict.fromkeys(("£", "gbp", "pound", "poundsterling", "poundssterling"), "pound"),
    **dict.fromkeys(("¥", "jpy", "yen"), "yen"),
    **dict.fromkeys(("₹", "inr", "rupee"), "rupee"),
    **dict.fromkeys(("cny", "yuan"), "yuan"),
    "chf": "chf",
}
"""Signs, codes and words without blanks and full stops; ¥ is taken for the yen."""

_GROUP: Final = 3
"""Digits between two marks of thousands."""

_CODES: Final = "usd|cad|aud|hkd|nzd|eur|gbp|jpy|inr|cny|chf"

_DIGIT: Final = re.compile(r"\d")
_BEFORE: Final = re.compile(
    # A hyphen after a letter or a digit is not a sign, except after a particle in Hiragana, which has no spaces.
    r"(?P<minus>(?<![^\s(\[{<>=~≈:;,|/\"'\u3041-\u309f])-)?"
    rf"(?P<unit>(?:(?<!\w)(?:u\.?s\.? ?|ca?|au?|hk|nz)?\$|[€£¥₹]|(?<!\w)(?:{_CODES})(?=[ \d.-])) ?)?"
    r"(?P<inner>(?<=[$€£¥₹])-)?(?P<point>(?<![\w.])\.)?\Z",
    re.IGNORECASE,
)
_LONGEST_BEFORE: Final = len("-USD .")
_RUN: Final = re.compile(r"\d+(?:[.,']\d+| \d{3}(?!\d))*")
_SCALE: Final = re.compile(r"[ -]?(?:thousand|million|billion|trillion)s?\b| ?(?:bn|mn|mln|tn|trn)\b", re.IGNORECASE)
_SHORT_SCALE: Final = re.compile(r" ?[kmbt]\b", re.IGNORECASE)
_UNIT: Final = re.compile(
    rf" ?%|[ -]?per ?cent\b| pct\b| ?[€£¥₹$](?! ?\d)| ?(?:{_CODES})\b"
    r"|[ -](?:(?:u\.?s\.?|canadian|australian) )?dollars?\b|[ -](?:euros?|pounds?(?: sterling)?|yen|yuan|rupees?)\b",
    re.IGNORECASE,
)

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH: Final = (
    r"(?P<month>jan(?:uary|\.)?|feb(?:ruary|\.)?|mar(?:ch|\.)?|apr(?:il|\.)?|may|june?\.?|july?\.?|aug(?:ust|\.)?"
    r"|sept?(?:ember|\.)?|oct(?:ober|\.)?|nov(?:ember|\.)?|dec(?:ember|\.)?)"
)
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>\d{4})(?![^\W_]|[.,]\d)"
_MONTH_BEFORE: Final = re.compile(rf"(?<![^\W_]){_MONTH}(?:,? |-)(?:the )?\Z", re.IGNORECASE)
_LONGEST_MONTH: Final = len(" September, the ")
_DAY_THEN_YEAR: Final = re.compile(
    rf"{_DAY}(?![^\W_]|[.,:]\d{{1,3}}(?!\d)|%| ?per ?cent)(?:(?:, ?| |-){_YEAR})?", re.IGNORECASE
)
_ONLY_YEAR: Final = re.compile(_YEAR)
_DAY_THEN_MONTH: Final = re.compile(rf"{_DAY}(?:(?: of)? |-){_MONTH}(?:(?:,? |-){_YEAR})?(?![^\W_])", re.IGNORECASE)
_IN_NUMBERS: Final = re.compile(
    r"(?:(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)"
    r"|(?P<first>\d\d?)(?P<local>[./-])(?P<second>\d\d?)(?P=local)(?P<last>\d{4}))(?!\d|[-/.,]\d)"
)
_INSIDE: Final = re.compile(r"[\w.,/-]")
"""Text before digits that do not begin a date."""


class _Piece(NamedTuple):
    """A number or a date in a text: its place, and its spelling if decimals have a point or a comma."""

    start: int
    end: int
    by_point: str
    by_comma: str


def readings(text: str) -> tuple[str, ...]:
    """Return ``text`` with its numbers and dates in one spelling: one reading, or two if the conventions differ."""
    digit = _DIGIT.search(text)
    if digit is None:
        return (text,)
    text = " ".join(text.split())
    by_point, by_comma = [], []
    end = 0
    while (digit := _DIGIT.search(text, end)) is not None:
        piece = _date(text, end, digit.start()) or _number(text, end, digit.start())
        gap = text[end : piece.start]
        # Without punctuation in between, two numbers would become one.
        if end and gap and not _WORD_OR_BLANK.search(gap):
            gap = f" {gap} "
        by_point += [gap, piece.by_point]
        by_comma += [gap, piece.by_comma]
        end = piece.end
    spelled = ("".join([*pieces, text[end:]]) for pieces in (by_point, by_comma))
    return tuple(dict.fromkeys(spelled))


_WORD_OR_BLANK: Final = re.compile(r"[\w\s]")


def _date(text: str, begin: int, start: int) -> _Piece | None:
    """Return the date whose first digits are at ``start``, including a month before them."""
    month = _MONTH_BEFORE.search(text, max(begin, start - _LONGEST_MONTH), start)
    if month is not None:
        found = _DAY_THEN_YEAR.match(text, start) or _ONLY_YEAR.match(text, start)
        if found is not None:
            spelled = _named_date(month["month"], **found.groupdict())
            return _Piece(month.start(), found.end(), spelled, spelled)
    if start and _INSIDE.match(text, start - 1):
        return None
    found = _DAY_THEN_MONTH.match(text, start)
    # "the 5 may be" is not a date: a month that is also a verb needs a capital, or a year after it.
    if found is not None and (found["year"] or found["month"] not in ("may", "march", "mar")):
        spelled = _named_date(**found.groupdict())
        return _Piece(start, found.end(), spelled, spelled)
    found = _IN_NUMBERS.match(text, start)
    if found is None:
        return None
    if found["year"]:
        spelled = _numbered_date(found["day"], found["month"], found["year"])
        by_comma = spelled
    else:
        first, second, year = found.group("first", "second", "last")
        by_comma = _numbered_date(first, second, year) or _numbered_date(second, first, year)
        spelled = by_comma
        if found["local"] != ".":
            spelled = _numbered_date(second, first, year) or by_comma
    if not spelled:
        return None
    return _Piece(start, found.end(), spelled, by_comma)


def _named_date(month: str, day: str | None = None, year: str | None = None) -> str:
    name = next(name for name in _MONTHS if name.startswith(month[:3].casefold()))
    return " " + " ".join(filter(None, (name, (day or "").lstrip("0"), year)))


def _numbered_date(day: str, month: str, year: str) -> str:
    """Return a date, or "" if these numbers are none."""
    if 1 <= int(day) <= 31 and 1 <= int(month) <= 12:
        return f" {_MONTHS[int(month) - 1]} {int(day)} {year}"
    return ""


def _number(text: str, begin: int, start: int) -> _Piece:
    """Return the number whose first digits are at ``start``, with its sign and unit."""
    before = _BEFORE.search(text, max(begin, start - _LONGEST_BEFORE), start)
    run = _RUN.match(text, start)
    if before is None or run is None:
        raise ValueError("no digits")
    unit, end = _unit(before["unit"] or ""), run.end()
    scale = _SCALE.match(text, end)
    if scale is None and unit:
        scale = _SHORT_SCALE.match(text, end)
    if scale is not None:
        end = scale.end()
    behind = _UNIT.match(text, end)
    if behind is not None:
        unit, end = unit or _unit(behind[0]), behind.end()
    places = 0
    if scale is not None:
        name = scale[0].strip(" -").casefold()
        places = _SHORT_SCALES.get(name) or _SCALES[name.removesuffix("s")]
    minus = before["minus"] or before["inner"]
    digits = (before["point"] or "") + run[0]
    by_point, by_comma = (_spelled(digits, places, minus, unit, comma) for comma in (False, True))
    return _Piece(before.start(), end, by_point, by_comma)


def _spelled(digits: str, places: int, minus: str | None, unit: str, comma: bool) -> str:
    """Return a number in one spelling, with blanks around it if it has a sign or a unit."""
    *earlier, last = _parted(digits, comma)
    spelled = " ".join([*map(_shortest, earlier), _shortest(_times(last, places) if places else last)])
    if minus:
        spelled = f" {MINUS}{spelled}"
    if unit:
        spelled = f" {spelled} {UNIT}{unit} "
    return spelled


def _unit(written: str) -> str:
    """Return one name for a unit, "" for none."""
    name = re.sub(r"[\s.-]", "", written.casefold())
    if name in ("%", "percent", "pct"):
        return "percent"
    return _CURRENCIES.get(name) or _CURRENCIES.get(name.removesuffix("s"), "")


def _parted(run: str, comma: bool) -> list[str]:
    """Return the numbers of a run of digits and marks, with a point before decimals, and the marks between them."""
    one = _as_one(run, comma)
    if one is not None:
        return [one]
    # Several numbers are separated by the mark that is rarest within numbers.
    mark = next(mark for mark in " ,'." if mark in run)
    parts: list[str] = []
    for part in run.split(mark):
        parts += [mark.strip(), *_parted(part, comma)]
    return [part for part in parts[1:] if part]


_GROUPED: Final = {mark: re.compile(rf"[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+") for mark in ",.' "}
_LAKHS: Final = re.compile(r"[1-9]\d?(?:,\d\d)+,\d{3}")
_GROUPED_FOR_SURE: Final = re.compile(r"[1-9]\d{0,2}(?: \d{3})*? 0\d\d(?: \d{3})*")
"""Groups separated by blanks, one of which cannot begin a number: 10 000."""

_DECIMAL: Final = re.compile(r"(?P<whole>.*)(?P<mark>[.,])(?P<decimals>\d+)")
_VERSION: Final = re.compile(r"\d+(?:\.\d+){2,}")


def _as_one(run: str, comma: bool) -> str | None:
    """Return digits and marks as one number with a decimal point; None if they are several numbers."""
    whole = _whole(run, comma)
    if whole is not None:
        return whole
    found = _DECIMAL.fullmatch(run)
    if found is not None and found["mark"] not in found["whole"]:
        head = found["whole"]
        whole = _whole(head or "0", comma or found["mark"] == ",")
        # In English "3,5" is 3 and 5.
        listed = found["mark"] == "," and not comma and head.isdigit()
        if whole is not None and not listed:
            return f"{whole}.{found['decimals']}"
    if _VERSION.fullmatch(run):
        return run
    return None


def _whole(run: str, comma: bool) -> str | None:
    """Return the digits of a whole number, or None."""
    if run.isdigit():
        return run
    grouped = (
        _GROUPED[","].fullmatch(run)
        or _LAKHS.fullmatch(run)
        or _GROUPED["'"].fullmatch(run)
        or (_GROUPED[" "] if comma else _GROUPED_FOR_SURE).fullmatch(run)
        or ((comma or run.count(".") > 1) and _GROUPED["."].fullmatch(run))
    )
    if grouped:
        return re.sub(r"\D", "", run)
    return None


def _times(number: str, places: int) -> str:
    """Return a number times a power of ten."""
    whole, _, decimals = number.partition(".")
    if "." in decimals:
        return number
    digits = decimals.ljust(places, "0")
    shifted = (whole + digits[:places]).lstrip("0") or "0"
    return f"{shifted}.{digits[places:]}".rstrip(".")


def _shortest(number: str) -> str:
    """Return a number without zeros at the end of its decimals, and with `POINT`."""
    whole, _, decimals = number.partition(".")
    # 10.000 is rather ten thousand than ten.
    if decimals.strip("0") == "" and (len(decimals) != _GROUP or whole == "0"):
        return whole
    if "." not in decimals and decimals.strip("0"):
        decimals = decimals.rstrip("0")
    return f"{whole}{POINT}{decimals.replace('.', POINT)}"
