"""Claims: the statements of a decision as a list, and the views of that list.

One function makes each claim from the figures, with its number, its interval and its sentence. Text, table, JSON and
page show the same list and add no words. A sentence that qualifies a claim stands wherever the claim stands: views
follow `Claim.qualifies`, so that nothing gets lost.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import pandas as pd

from judgekit.data.tables import Table

BASED_ON: Final = "Based on"
"""The line on what was compared, and in which units."""
LINES: Final = ("Choose", "Keep", "Cost", "Hinges", "New run", "Failing", "Next", BASED_ON)
"""The lines of a decision in their order. Claims without a line are further findings."""
WIDTH: Final = 100
INDENT: Final = 10
_COMMAND: Final = re.compile(r"`[^`]*`")
_FIRM: Final = "\N{NO-BREAK SPACE}"


CLAIMS: Final = Table(
    "claims",
    {
        **dict.fromkeys(("kind", "subject", "against"), "str"),
        **dict.fromkeys(("value", "low", "high"), "float"),
        "shown": "int",
        **dict.fromkeys(("qualifies", "line"), "str"),
        "rank": "int",
        "sentence": "str",
    },
    {},
)
"""The claims of a decision as a table, columns as the fields of `Claim`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement, with its figures.

    Attributes:
        kind: what it is about, such as ``may be best`` or ``keep``; one function makes each kind.
        sentence: whole sentences with units; all that a reader sees of the claim.
        subject: the run, labeling or kind of question it is about.
        against: what the subject is compared with.
        value, low, high: the number and its interval, or NaN; quality is in points (hundredths).
        shown: whether the data show it; a claim that is not shown recommends nothing.
        qualifies: the `key` of the claim that needs this one, the kind of several such claims, or ``: SUBJECT`` for all
            claims about a subject.
        line: the line of the decision, one of `LINES`; "" for a further finding, or to join what it qualifies.
        rank: its place in the line, smallest first.
    """

    kind: str
    sentence: str
    subject: str = ""
    against: str = ""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    shown: bool = False
    qualifies: str = ""
    line: str = ""
    rank: int = 0

    @property
    def key(self) -> str:
        """The key by which another claim qualifies this one."""
        return f"{self.kind}: {self.subject}" if self.subject else self.kind

    def limits(self, other: Claim) -> bool:
        """Return whether another claim needs this one."""
        return self.qualifies in (other.key, other.kind, about_all(other.subject))


def about_all(subject: str) -> str:
    """Return the value of `Claim.qualifies` for a claim that limits all claims about a subject."""
    return f": {subject}"


def in_lines(claims: Sequence[Claim]) -> list[tuple[str, Claim]]:
    """Return the claims of the decision with their lines, in order, each followed by those that qualify it.

    A claim that qualifies claims of several lines stands in each of them.
    """
    ranked = sorted(claims, key=lambda claim: claim.rank)
    placed: list[tuple[str, Claim]] = []

    def place(claim: Claim, line: str) -> None:
        # Two claims may qualify each other: this ends the loop.
        if any(line == there and claim is other for there, other in placed):
            return
        placed.append((line, claim))
        for other in ranked:
            if other.limits(claim):
                place(other, other.line or line)

    for claim in ranked:
        if claim.line:
            place(claim, claim.line)
    # A claims.csv of a later version may name an unknown line.
    places = {line: at for at, line in enumerate(LINES)}
    return sorted(placed, key=lambda pair: places.get(pair[0], len(LINES)))


def lines_of(claims: Sequence[Claim]) -> tuple[tuple[str, str], ...]:
    """Return the title and the text of each line of the decision."""
    lines: dict[str, list[str]] = {}
    for line, claim in in_lines(claims):
        lines.setdefault(line, []).append(claim.sentence)
    return tuple((line, " ".join(sentences)) for line, sentences in lines.items())


def wrapped(lines: Iterable[tuple[str, str]], width: int = WIDTH) -> str:
    """Return lines as text: titles on the left, sentences wrapped to the width; names and commands are never cut."""
    rows: list[str] = []
    for title, text in lines:
        # A command that is cut in two cannot be pasted.
        firm = _COMMAND.sub(lambda command: command[0].replace(" ", _FIRM), text)
        wrapped_rows = textwrap.wrap(
            firm,
            width,
            initial_indent=f"{title:<{INDENT}}",
            subsequent_indent=" " * INDENT,
            # A name is never cut: people paste it into commands.
            break_long_words=False,
            break_on_hyphens=False,
        )
        rows += [row.replace(_FIRM, " ") for row in wrapped_rows]
    return "\n".join(rows)


def further(claims: Sequence[Claim]) -> list[str]:
    """Return the sentences of the claims outside of the decision's lines."""
    # Compared by identity, since claims without a number are never equal (NaN).
    said = {id(claim) for _, claim in in_lines(claims)}
    return [claim.sentence for claim in claims if id(claim) not in said]


def recorded(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return claims as plain values, for JSON: their text, its lines by title, and each claim."""
    lines = lines_of(claims)
    return {"text": wrapped(lines), "lines": dict(lines), "claims": list(plain(claims))}


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """Return a row for each claim, columns of `CLAIMS`."""
    return pd.DataFrame([asdict(claim) for claim in claims], columns=list(CLAIMS.columns)).astype({"shown": "int64"})


def claims_of(table: pd.DataFrame) -> tuple[Claim, ...]:
    """Return the claims that a table holds."""
    rows = CLAIMS.check(table)[list(CLAIMS.columns)].to_dict("records")
    return tuple(
        Claim(**{str(name): value for name, value in row.items()} | {"shown": bool(row["shown"])}) for row in rows
    )


def plain(claims: Iterable[Claim]) -> Iterator[dict[str, Any]]:
    """Yield each claim as plain values, for JSON; None for a missing number."""
    for claim in claims:
        values = asdict(claim)
        for name in ("value", "low", "high"):
            # JSON has no NaN.
            if not math.isfinite(values[name]):
                values[name] = None
        yield values
