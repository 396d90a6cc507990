"""Labels by people: grades, rankings by experts, and votes for the best of two or three."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal

from judgekit.data.asked import Asked
from judgekit.data.labelings import Scale
from judgekit.data.records import Record, as_number, records
from judgekit.data.streams import head
from judgekit.data.tables import Status
from judgekit.data.trec import read_qrels
from judgekit.errors import DataError
from judgekit.labelers.base import Label, Needs
from judgekit.labelers.provenance import Pair, Said, _Filed, as_declared, judgments
from judgekit.spec import Spec

__all__ = ["Human", "wilson"]

_EXPECTED: Final = (
    "labels by people: a TREC qrels file, or CSV, TSV, JSON or Parquet with the columns query_id, doc_id, relevance"
    " (grades), query_id, doc_id, rank (a ranking) or query_id, shown, chosen (votes)"
)
_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "grades": frozenset({"query_id", "doc_id", "relevance"}),
    "ranking": frozenset({"query_id", "doc_id", "rank"}),
    "votes": frozenset({"query_id", "shown", "chosen"}),
}


@dataclass(frozen=True)
class Human(_Filed):
    """What people said of the document: grades, a ranking, or votes for the best of two or three.

    Three kinds of files, recognised by their columns:

    * grades: TREC qrels, or ``query_id, doc_id, relevance``;
    * a ranking by an expert: ``query_id, doc_id, rank`` with ranks from 1; of n ranked documents the one at rank r
      has the gain n - r + 1, so that every ranked document is better than one that is not. Ties are allowed;
    * votes: each row one showing, ``query_id, shown, chosen``. ``shown`` lists two or more doc ids, separated by
      white space, ``|``, ``;`` or commas, one of them throughout, or as a JSON list; ``chosen`` is one of them or
      ``none``. Relevance is times chosen / times shown. ``extra`` has both counts and the 95 % Wilson interval,
      ``ci_low`` to ``ci_high``.

    ``extra["judged"]`` tells documents that the file does not list apart, whatever ``unlisted`` makes of them. Where
    `judgekit annotate read` wrote the file, what people were asked stands beside it: a document that they were not
    asked about is then not judged, never 0.

    Scale: the grades'; grades up to the longest ranking; unit for votes

    Needs: people

    Costs: a judgment by a person

    Attributes:
        file: the file with what people said
        form: grades, ranking or votes; auto goes by the columns
    """

    kind = "human"
    needs = Needs(people=True)
    file: str
    form: Literal["auto", "grades", "ranking", "votes"] = "auto"

    @cached_property
    def asked(self) -> Asked | None:
        """What people were asked, if the file is of a sample."""
        return Asked.beside(self.context.path(self.file))

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Said]]:
        path = self.context.path(self.file)
        form = _form(path, self.form)
        if form == "votes":
            return Scale("unit"), _votes(path)
        if form == "ranking":
            return _ranking(path)
        declared = self.declared or (self.asked.scale if self.asked else "")
        labeling = read_qrels(path, scale=Scale.parse(declared) if declared else None)
        return as_declared(labeling), judgments(labeling)

    @property
    def said(self) -> Mapping[Pair, Said]:
        """What people said, per (query id, doc id)."""
        return self._file[1]

    def _not_listed(self, query_id: str, doc_id: str) -> Label:
        if self.asked is not None:
            return Label(query_id, doc_id, None, Status.UNASKED, "", "not in the sample that people judged")
        return super()._not_listed(query_id, doc_id)


def wilson(chosen: int, shown: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a share, chosen out of shown; 0 to 1 where nothing was shown.

    >>> low, high = wilson(1, 2)
    >>> round(low, 4), round(high, 4)
    (0.0945, 0.9055)
    """
    if not shown:
        return 0.0, 1.0
    share, square = chosen / shown, NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    middle = share + square / (2 * shown)
    spread = math.sqrt(square * (share * (1 - share) / shown + square / (4 * shown * shown)))
    scale = 1 + square / shown
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _form(path: Path, form: str) -> str:
    """Return which kind of file it is: by its columns, or TREC's qrels, which have none."""
    first = (head(path, _EXPECTED).splitlines() or [b""])[0].split()
    if (
        form in ("auto", "grades")
        and len(first) == 4
        and b"query_id" not in b"".join(first)
        and first[0][:1] not in b"{["
    ):
        return "grades"
    record = next(records(path, Spec("auto"), _EXPECTED)[1], None)
    if record is None:
        raise DataError(f"holds no rows; expected {_EXPECTED}", path)
    forms = [name for name, needed in _COLUMNS.items() if form in ("auto", name) and needed <= set(record.fields)]
    if len(forms) != 1:
        have = ", ".join(map(str, record.fields))
        raise DataError(f"has the columns {have}; expected {_EXPECTED}", path, record.line)
    return forms[0]


def _ranking(path: Path) -> tuple[Scale, dict[Pair, Said]]:
    """Return the scale and what was said, where each row is a rank."""
    rows: dict[Pair, tuple[int, float, Any]] = {}
    for record in records(path, Spec("auto"), _EXPECTED)[1]:
        pair = _text(path, record, "query_id"), _text(path, record, "doc_id")
        if pair in rows:
            raise DataError(f"query {pair[0]!r}, doc {pair[1]!r} is there twice", path, record.line)
        given = record.fields.get("rank")
        rows[pair] = record.line, as_number(given), given
    sizes = Counter(query_id for query_id, _ in rows)
    for (query_id, _), (line, rank, given) in rows.items():
        if not 1 <= rank <= sizes[query_id] or rank != int(rank):
            reason = f"rank must be a whole number from 1 to {sizes[query_id]} (the query's rows), not {given!r}"
            raise DataError(reason, path, line)
    return Scale("grades", max(sizes.values())), {p: Said(sizes[p[0]] - rank + 1) for p, (_, rank, _) in rows.items()}


def _votes(path: Path) -> dict[Pair, Said]:
    """Return what was said, where each row is a vote."""
    shown: Counter[Pair] = Counter()
    chosen: Counter[Pair] = Counter()
    for record in records(path, Spec("auto"), _EXPECTED)[1]:
        query_id, choice = _text(path, record, "query_id"), _text(path, record, "chosen")
        given = record.fields.get("shown")
        doc_ids: Any = _listed(given) if isinstance(given, str) else given
        good = isinstance(doc_ids, list) and all(isinstance(v, str) and len(v.split()) == 1 for v in doc_ids)
        if not good or len(doc_ids) < 2 or len(set(doc_ids)) != len(doc_ids):
            raise DataError(f"shown must list two or more distinct doc ids, not {given!r}", path, record.line)
        if choice in doc_ids:
            chosen[query_id, choice] += 1
        elif choice.casefold() != "none":
            raise DataError(f"chosen must be one of those shown or none, not {choice!r}", path, record.line)
        shown.update((query_id, doc_id) for doc_id in doc_ids)
    return {pair: _vote(chosen[pair], count) for pair, count in shown.items()}


def _text(path: Path, record: Record, key: str) -> str:
    value = record.fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{key} must be a text, not {value!r}", path, record.line)
    return value.strip()


def _listed(text: str) -> list[str]:
    """Return the ids of a list in one cell: a JSON list, or separated by ``|``, ``;`` or ``,``, or by white space.

    Where there is white space, one of the three separates only if it stands beside some: ids may hold it too.
    """
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = []
        return found if isinstance(found, list) else []
    spaced = len(text.split()) > 1
    separator = next((s for s in "|;," if (_beside_space(s, text.strip()) if spaced else s in text)), None)
    return [part.strip() for part in text.split(separator)] if separator else text.split()


def _beside_space(separator: str, text: str) -> bool:
    return any(part != part.strip() for part in text.split(separator)) and separator in text


def _vote(chosen: int, shown: int) -> Said:
    low, high = wilson(chosen, shown)
    extra: dict[str, float | str] = {"shown": float(shown), "chosen": float(chosen), "ci_low": low, "ci_high": high}
    return Said(chosen / shown, Status.OK, extra)
