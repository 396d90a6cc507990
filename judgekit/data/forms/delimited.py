"""``trec``, ``tsv`` and ``csv``: one row per line, with cells separated by white space, tabs, commas or semicolons."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from judgekit.data.records import NUMBER, DataRecord, fields_of_row, without_trailing_blanks
from judgekit.data.streams import Beginning, head, lines
from judgekit.errors import DataError, UsageError
from judgekit.registry import DataForm
from judgekit.spec import Value


def trec_records(path: Path, columns: Sequence[str], expected: str) -> Iterator[DataRecord]:
    """Read the lines of a TREC run or qrels file, with any white space between the columns; see `commented`."""
    begun = False
    for line in lines(path, expected):
        words = _WORD.findall(line.text)
        begun = begun or (bool(words) and not _is_comment(line.text))
        if not begun:
            continue
        if words and len(words) != len(columns):
            reason = f"has {len(words)} columns, expected {len(columns)}: {expected}; it reads {line.text[:80]!r}"
            if line.number == 1 and len(words) in _PLACES:
                other = "judgments" if len(words) == 4 else "a run"
                reason += f". That is a line of {other}: were two files swapped?"
            elif len(words) == len(columns) - 1:
                reason += _CURES[len(words)]
            raise DataError(reason, path, line.number)
        if words:
            yield DataRecord(line.number, {name: word for name, word in zip(columns, words, strict=True) if name})


_WORD: Final = re.compile(r"[^ \t\r\f\v]+")
_PLACES: Final = {6: 4, 4: 3}
"""The place of the number in a row of a TREC run (six columns) and of qrels (four)."""
_CURES: Final = {
    3: ". If these are query, doc and relevance, write: awk '{print $1, 0, $2, $3}' OLD > NEW",
    5: ". If it lacks the name of the run, write: awk '{print $0, \"run\"}' OLD > NEW",
}
"""What to do about a file whose rows have a column too few."""
_LOOKED_AT: Final = 20
_TELLS_RANKS: Final = 3
_QRELS: Final = 4
"""Columns of qrels."""
_CUT_OFF: Final = 60_000
"""From this many bytes on, the last row of a beginning may be cut off."""


def _is_trec(beginning: Beginning) -> bool:
    """Return whether the first row (not a header) and most rows belong to a TREC run or qrels."""
    rows = _first_rows(beginning)
    fitting = [len(row) == len(rows[0]) and _fits(row) for row in rows] or [False]
    # Most rows, not all: the reader reports damaged rows, which are no reason to doubt the form.
    return fitting[0] and 2 * sum(fitting) > len(rows) and not ranked_lists(beginning, "\t")


def commented(start: bytes) -> int:
    """Return the number of comment lines at the beginning, as ir_metadata and TIRA write them before runs."""
    if b"!" <= start[:1] <= b"~" and not start.startswith(b"#"):
        return 0  # as nearly always, and there may be a thousand rows
    rows = start.decode(errors="replace").split("\n")
    return next((number for number, row in enumerate(rows) if row.strip() and not _is_comment(row)), 0)


def _is_comment(row: str) -> bool:
    # The id of a query may begin like this, too.
    return row.startswith("#") and not _fits(_WORD.findall(row))


def _fits(row: Sequence[str]) -> bool:
    """Return whether cells form a row of a TREC run or qrels: the right count, and a number in its place."""
    place = _PLACES.get(len(row))
    # With a decimal comma, which the reader refuses.
    return place is not None and NUMBER.fullmatch(row[place].replace(",", ".", 1)) is not None


def _first_rows(beginning: Beginning, delimiter: str = "") -> list[list[str]]:
    """Return the cells of the first rows, separated by tabs if a row has any, else by white space."""
    rows = beginning.start.split(b"\n", commented(beginning.start))[-1].decode(errors="replace").splitlines()
    # The last row of the beginning may be incomplete.
    if len(rows) > 1 and len(beginning.start) > _CUT_OFF:
        rows.pop()
    first = islice(filter(str.strip, rows), _LOOKED_AT)
    return [row.split(delimiter or ("\t" if "\t" in row else None)) for row in first]


def subtopics(beginning: Beginning) -> int:
    """Return the largest number of values in the second column of qrels for a query; 0 if there is only one.

    In most files it is 0 or Q0 throughout; diversity tasks name a judgment's subtopic there.
    """
    named: dict[str, set[str]] = {}
    for row in beginning.start.decode(errors="replace").splitlines():
        words = row.split()
        if len(words) == _QRELS:
            named.setdefault(words[0], set()).add(words[1])
    most = max(map(len, named.values()), default=0)
    return most if most > 1 else 0


def ranked_lists(beginning: Beginning, delimiter: str) -> bool:
    """Return whether rows without a header are a run like MS MARCO's: query, doc, rank and, as ColBERT's, score.

    The ranks of each list count up from 1, to at least 3 in one of them, unlike scores and grades.
    """
    docs: dict[str, list[str]] = {}
    for row in _first_rows(beginning, delimiter):
        query, doc, rank = row[:3] if len(row) in (3, 4) else ("", "", "")
        docs.setdefault(query, []).append(doc)
        if rank.strip() != str(len(docs[query])):
            return False
    # Judgments may be of documents 1, 2 and 3, but have the same cell in front of them.
    return any(len({*listed}) >= _TELLS_RANKS for listed in docs.values())


class PlainQuotes(DataError):
    """A row that is readable only with quotes as plain characters, as in MS MARCO's collections."""

    cure: Final = "tsv(quote=none)"


def delimiter_of(syntax: str, start: bytes) -> str:
    """Return the separator of a table's cells by its beginning; the first line decides if there is a choice."""
    row = start.strip().split(b"\n", 1)[0]
    if syntax == "tsv":
        return "\t"
    if syntax == "trec":
        return "\t" if b"\t" in row else " "
    # Excel separates cells by semicolons if the decimal mark is a comma.
    return ";" if b";" in row and b"," not in row else ","


def _delimited(syntax: str, path: Path, options: Mapping[str, Value]) -> Iterator[DataRecord]:
    quote = str(options.get("quote", "csv"))
    if quote not in ("csv", "none"):
        raise UsageError(f"quote={quote}: expected quote=none, quote=csv, or nothing")
    csv.field_size_limit(_LARGEST_CELL)
    texts = list[str]()  # the lines of one row

    def noted() -> Iterator[str]:
        for line in without_trailing_blanks(lines(path, ends=True)):
            texts.append(line.text)
            yield line.text

    delimiter = delimiter_of(syntax, head(path))
    rows = csv.reader(
        noted(),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if quote == "none" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    header: list[str] = []
    if "header" in options:
        header = [name.strip() for name in str(options["header"]).split(",")]
    while True:
        start = rows.line_num + 1
        texts.clear()
        try:
            row = next(rows, None)
        except csv.Error as error:
            if quote == "none":
                raise DataError(f"is not a valid row: {error}", path, start) from error
            hint = f"(if quotes are plain characters here: {syntax}(quote=none):{path.name})"
            raise PlainQuotes(f"is not a valid row: {error} {hint}", path, start) from error
        if row is None:
            return
        each_a_row = len(texts) > 1 and all(text.count(delimiter) == len(row) - 1 > 0 for text in texts)
        if not header and row[:1] == ["sep="]:
            continue  # Excel's own line about the separator
        if not header:
            header = row
        elif len(row) != len(header):
            columns = f"the header has {len(header)} columns, this row {len(row)}"
            raise DataError(columns if row else "is empty where a row was expected", path, start)
        elif syntax == "tsv" and "quote" not in options and each_a_row:
            raise PlainQuotes(
                f"begins a cell with a quote that ends {len(texts) - 1} lines below, but each of these lines looks"
                " like a row: write quote=none if quotes are plain characters, or quote=csv if this is one cell"
                f" (tsv(quote=none):{path.name})",
                path,
                start,
            )
        else:
            yield DataRecord(start, fields_of_row(header, row, path, start))


_LARGEST_CELL: Final = (1 << 31) - 1
"""Size limit of a cell in bytes; Python's limit of 128 KiB is too small for long documents."""


def _without_header(syntax: str, beginning: Beginning) -> tuple[str, ...]:
    """Return what rows without a header are, which would make the first of them the header."""
    return ("run",) if ranked_lists(beginning, delimiter_of(syntax, beginning.start)) else ()


TREC: Final = DataForm(
    "trec",
    trec_records,
    ("run", "qrels"),
    marks=_is_trec,
    narrows=lambda beginning: ("run",) if len(_first_rows(beginning)[0]) == 6 else ("qrels",),
    example="q1 Q0 d1 1 12.5 bm25\n",
)
TSV: Final = DataForm(
    "tsv",
    partial(_delimited, "tsv"),
    narrows=partial(_without_header, "tsv"),
    marks=lambda beginning: "\t" in beginning.row,
    options=("header", "quote"),
    example="query_id\ttext\nq1\tWho?\n",
)
CSV: Final = DataForm(
    "csv",
    partial(_delimited, "csv"),
    narrows=partial(_without_header, "csv"),
    marks=lambda beginning: "," in beginning.row or ";" in beginning.row,
    options=("header", "quote"),
    example="query_id,text\nq1,Who?\n",
)
