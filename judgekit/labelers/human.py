"""Labels by people: grades, votes for the best of two or three, and rankings."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal

from judgekit.data.forms import records
from judgekit.data.labelings import Scale
from judgekit.data.records import DataRecord
from judgekit.data.streams import head
from judgekit.data.tables import Status
from judgekit.data.trec import Asked
from judgekit.errors import DataError, UsageError
from judgekit.labelers.base import Label, Needs
from judgekit.labelers.provenance import JUDGED, Pair, _Filed
from judgekit.spec import Spec

_EXPECTED: Final = (
    "labels by people: a TREC qrels file, or CSV, TSV, JSON or Parquet with the columns query_id, doc_id, relevance"
    " (grades), query_id, shown, chosen (votes) or query_id, doc_id, rank (rankings)"
)
_COLUMNS: Final = {
    "grades": frozenset({"query_id", "doc_id", "relevance"}),
    "votes": frozenset({"query_id", "shown", "chosen"}),
    "rankings": frozenset({"query_id", "doc_id", "rank"}),
}
Content = Literal["grades", "votes", "rankings"]
Ranks = Literal["first", "borda"]


@dataclass(frozen=True)
class Human(_Filed):
    """Reads labels by people: grades, votes for the best of two or three documents, or rankings.

    Three kinds of files, recognised by their columns:

    * grades: TREC qrels, or ``query_id, doc_id, relevance``; * votes: each row is one showing, ``query_id, shown,
    chosen``. ``shown`` lists two or more doc ids, separated by
      ``|`` or white space, or in JSON as a list; ``chosen`` is one of them or ``none``. Relevance is times chosen /
      times shown. ``extra`` has both counts and the 95 % Wilson interval, ``ci_low`` to ``ci_high``;
    * rankings: ``query_id, doc_id, rank`` and, where several people ranked, ``assessor``. Rank 1 is the best;
      documents may share a rank. Relevance is times put first / times ranked, with the same ``extra``; with
      ``ranks=borda`` every place counts: the share of the other documents ranked below, ties counting half (the Borda
      score divided by its largest value), averaged over the rankings.

    ``extra["judged"]`` marks documents that the file lists, whatever ``unlisted`` makes of the others. If `judgekit
    annotate read` wrote the file, a file beside it tells what people were asked: other documents are then not judged,
    never 0.

    Scale: the grades'; unit for votes and rankings

    Needs: people

    Costs: a judgment by a person

    Attributes:
        file: file with the judgments of people
        ranks: how rankings count: first, how often a document was ranked first, or borda, its place
    """

    kind = "human"
    needs = Needs(people=True, existing=True)
    file: str
    ranks: Ranks = "first"

    @property
    def judgments(self) -> str | None:
        """The file, if it holds grades."""
        path = self.context.path(self.file)
        return str(path) if _content_of(path) == "grades" else None

    @cached_property
    def asked(self) -> Asked | None:
        """What people were asked, if the file belongs to a sample."""
        return Asked.beside(self.context.path(self.file))

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Label]]:
        path = self.context.path(self.file)
        content = _content_of(path)
        if self.ranks != "first" and content != "rankings":
            raise UsageError(f"{self.spec}: ranks is an option for rankings, but {path.name} holds {content}")
        if content == "votes":
            return Scale("unit"), _votes(path)
        if content == "rankings":
            rankings = _rankings(path)
            return Scale("unit"), _by_place(rankings) if self.ranks == "borda" else _by_first(rankings)
        # A sample knows the scale that people used: few judgments may lack the highest grade.
        declared = self.declared
        if not declared and self.asked is not None:
            declared = self.asked.scale
        return self._grades(self.file, declared)

    def _not_listed(self, query_id: str, doc_id: str) -> Label:
        if self.asked is not None:
            return Label.missing(query_id, doc_id, Status.UNASKED, "not in the sample that people judged")
        return super()._not_listed(query_id, doc_id)


def wilson(chosen: float, shown: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of chosen / shown; 0 to 1 if nothing was shown."""
    if not shown:
        return 0.0, 1.0
    share, square = chosen / shown, NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    middle = share + square / (2 * shown)
    spread = math.sqrt(square * (share * (1 - share) / shown + square / (4 * shown * shown)))
    scale = 1 + square / shown
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _content_of(path: Path) -> Content:
    """Return the kind of a file by its columns, which TREC's qrels do not name."""
    # TREC's files have no header, so four columns are recognised by number before names are looked for.
    first = (head(path, _EXPECTED).splitlines() or [b""])[0].split()
    if len(first) == 4 and b"query_id" not in b"".join(first) and first[0][:1] not in b"{[":
        return "grades"
    record = next(records(path, Spec("auto"), _EXPECTED)[1], None)
    if record is None:
        raise DataError(f"holds no rows; expected {_EXPECTED}", path)
    contents = [content for content, columns in _COLUMNS.items() if columns <= set(record.fields)]
    if len(contents) != 1:
        have = ", ".join(map(str, record.fields))
        raise DataError(f"has the columns {have}; expected {_EXPECTED}", path, record.line)
    content: Content = contents[0]  # type: ignore[assignment]
    return content


def _votes(path: Path) -> dict[Pair, Label]:
    """Return the votes, one per row."""
    shown: Counter[Pair] = Counter()
    chosen: Counter[Pair] = Counter()
    for record in records(path, Spec("auto"), _EXPECTED)[1]:
        query_id = _text(path, record, "query_id")
        # A blank may mean that no document was good, or that nobody voted.
        if record.fields.get("chosen") in (None, ""):
            raise DataError(
                "chosen is empty: write none if no document was good, and leave the row out if nobody said",
                path,
                record.line,
            )
        choice = _text(path, record, "chosen")
        cell = record.fields.get("shown")
        doc_ids: Any = cell
        if isinstance(cell, str):
            doc_ids = [part.strip() for part in cell.split("|" if "|" in cell else None)]
        if not _are_ids(doc_ids) or len(doc_ids) < 2 or len(set(doc_ids)) != len(doc_ids):
            raise DataError(f"shown must list two or more distinct doc ids, not {cell!r}", path, record.line)
        if choice in doc_ids:
            chosen[query_id, choice] += 1
        elif choice.casefold() != "none":
            raise DataError(f"chosen must be one of those shown or none, not {choice!r}", path, record.line)
        shown.update((query_id, doc_id) for doc_id in doc_ids)
    return {pair: _share(pair, chosen[pair], count) for pair, count in shown.items()}


def _are_ids(doc_ids: Any) -> bool:
    return isinstance(doc_ids, list) and all(isinstance(doc_id, str) and len(doc_id.split()) == 1 for doc_id in doc_ids)


def _share(pair: Pair, chosen: int, shown: int) -> Label:
    """Return a document's label: how often people preferred it, of the times they saw it."""
    low, high = wilson(chosen, shown)
    counts = {"shown": float(shown), "chosen": float(chosen), "ci_low": low, "ci_high": high}
    return Label(*pair, chosen / shown, extra={**JUDGED, **counts})


def _rankings(path: Path) -> dict[tuple[str, str], dict[str, float]]:
    """Return the rank of each document, by query and assessor."""
    ranks: dict[tuple[str, str], dict[str, float]] = {}
    for record in records(path, Spec("auto"), _EXPECTED)[1]:
        query_id, doc_id = _text(path, record, "query_id"), _text(path, record, "doc_id")
        assessor = str(record.fields.get("assessor") or "")
        ranking = ranks.setdefault((query_id, assessor), {})
        if doc_id in ranking:
            by = f" by {assessor!r}" if assessor else ""
            raise DataError(f"{doc_id!r} is ranked twice for query {query_id!r}{by}", path, record.line)
        ranking[doc_id] = _rank(path, record)
    return ranks


def _by_first(ranks: Mapping[tuple[str, str], Mapping[str, float]]) -> dict[Pair, Label]:
    """Return how often people ranked each document first, of the times they ranked it."""
    shown: Counter[Pair] = Counter()
    first: Counter[Pair] = Counter()
    for (query_id, _), ranking in ranks.items():
        best = min(ranking.values())
        for doc_id, rank in ranking.items():
            shown[query_id, doc_id] += 1
            first[query_id, doc_id] += rank == best
    return {pair: _share(pair, first[pair], count) for pair, count in shown.items()}


def _by_place(ranks: Mapping[tuple[str, str], Mapping[str, float]]) -> dict[Pair, Label]:
    """Return the mean share of other documents ranked below each document, ties counting half."""
    shares: defaultdict[Pair, list[float]] = defaultdict(list)
    for (query_id, _), ranking in ranks.items():
        others = len(ranking) - 1
        for doc_id, rank in ranking.items():
            given = shares[query_id, doc_id]
            below = sum(other > rank for other in ranking.values())
            beside = sum(other == rank for other in ranking.values()) - 1
            if others:
                given.append((below + beside / 2) / others)
    labels = {}
    for pair, given in shares.items():
        if not given:
            labels[pair] = Label.missing(*pair, Status.UNASKED, "it was ranked alone, so it has no place among others")
            continue
        extra = {**JUDGED, "shown": float(len(given))}
        labels[pair] = Label(*pair, math.fsum(given) / len(given), extra=extra)
    return labels


def _rank(path: Path, record: DataRecord) -> float:
    value = record.fields.get("rank")
    try:
        # True is 1 in Python and would be the best rank.
        rank = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        rank = math.nan
    if not 1 <= rank < math.inf:
        raise DataError(f"rank must be a number, 1 for the best document, not {value!r}", path, record.line)
    return rank


def _text(path: Path, record: DataRecord, key: str) -> str:
    value = record.fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{key} must be a text, not {value!r}", path, record.line)
    return value.strip()
