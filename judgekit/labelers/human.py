"""Labels by people: grades, rankings by experts, and votes for the best of two or three."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from judgekit.labelers.base import Label, Labeler, Needs, Unit
from judgekit.labelers.provenance import Unlisted, as_declared, judged_queries, judgments, not_listed
from judgekit.plugins import option
from judgekit.spec import Spec
from judgekit.wire.types import Outcome

__all__ = ["Human", "wilson"]

Form = Literal["auto", "grades", "ranking", "votes"]
Pair = tuple[str, str]

_EXPECTED: Final = (
    "labels by people: a TREC qrels file, or CSV, TSV, JSON or Parquet with the columns query_id, doc_id, relevance"
    " (grades), query_id, doc_id, rank (a ranking) or query_id, shown, chosen (votes)"
)
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "grades": ("query_id", "doc_id", "relevance"),
    "ranking": ("query_id", "doc_id", "rank"),
    "votes": ("query_id", "shown", "chosen"),
}


@dataclass(frozen=True)
class _Said:
    """What people said of a pair."""

    relevance: float | None
    status: Status = Status.OK
    extra: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Human(Labeler):
    """What people said of the document: grades, a ranking, or votes for the best of two or three.

    Three kinds of files, told apart by their columns:

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
        declared: of grades, e.g. grades:3, means:5:2 or unit
        unlisted: a document that the file does not list: judged (0 in queries that the file judges), zero or missing
    """

    kind = "human"
    needs = Needs(people=True)
    file: str
    form: Form = "auto"
    declared: str = option("", name="scale")
    unlisted: Unlisted = "judged"

    def prepare(self) -> None:
        """Read the file."""
        self._file  # noqa: B018 - reads it

    @cached_property
    def asked(self) -> Asked | None:
        """What people were asked, if the file is of a sample."""
        return Asked.beside(self.context.path(self.file))

    @cached_property
    def _file(self) -> tuple[Scale, dict[Pair, _Said]]:
        declared = Scale.parse(self.declared) if self.declared else None
        if declared is None and self.asked is not None:
            declared = Scale.parse(self.asked.scale)
        return _read(self.context.path(self.file), self.form, declared)

    @property
    def said(self) -> Mapping[Pair, _Said]:
        """What people said, per (query id, doc id)."""
        return self._file[1]

    @property
    def scale(self) -> Scale:
        """The grades' scale; grades up to the longest ranking; ``unit`` for votes."""
        return self._file[0]

    @property
    def imported(self) -> Mapping[Pair, float | None]:
        """The file's relevance per (query id, doc id), as far as there is one."""
        return {pair: said.relevance for pair, said in self.said.items()}

    def label(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Label]:
        """Return one label per doc."""
        return [self._label(unit.query.query_id, doc.doc_id) for doc in unit.docs]

    @cached_property
    def _queries(self) -> frozenset[str]:
        return judged_queries((query_id, said.status) for (query_id, _), said in self.said.items())

    def _label(self, query_id: str, doc_id: str) -> Label:
        said = self.said.get((query_id, doc_id))
        if said is None:
            if self.asked is not None:
                return Label(query_id, doc_id, None, Status.UNASKED, "", "not in the sample that people judged")
            return not_listed(query_id, doc_id, self.unlisted, self._queries)
        reason = "" if said.status is Status.OK else "missing in the file as well"
        return Label(query_id, doc_id, said.relevance, said.status, "", reason, {"judged": 1.0, **said.extra})


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


def _read(path: Path, form: str, scale: Scale | None) -> tuple[Scale, dict[Pair, _Said]]:
    first = (head(path, _EXPECTED).splitlines() or [b""])[0].split()
    if (
        form in ("auto", "grades")
        and len(first) == 4
        and b"query_id" not in b"".join(first)
        and first[0][:1] not in b"{["
    ):
        labeling = read_qrels(path, scale=scale)
        return as_declared(labeling), {pair: _Said(*label) for pair, label in judgments(labeling).items()}
    rows = _Rows(path, form)
    if rows.form == "votes":
        return Scale("unit"), rows.votes()
    return rows.ranking() if rows.form == "ranking" else rows.grades(scale)


class _Rows:
    """The records of a file, each checked."""

    def __init__(self, path: Path, form: str) -> None:
        self.path = path
        self._records = records(path, Spec("auto"), _EXPECTED)[1]
        self._first = next(self._records, None)
        if self._first is None:
            raise DataError(f"holds no rows; expected {_EXPECTED}", path)
        columns = set(self._first.fields)
        forms = [f for f in _COLUMNS if form in ("auto", f) and columns.issuperset(_COLUMNS[f])]
        if len(forms) != 1:
            have = ", ".join(map(str, self._first.fields))
            raise DataError(f"has the columns {have}; expected {_EXPECTED}", path, self._first.line)
        self.form = forms[0]

    def __iter__(self) -> Iterator[Record]:
        assert self._first is not None  # checked when built
        yield self._first
        yield from self._records

    def error(self, record: Record, reason: str) -> DataError:
        return DataError(reason, self.path, record.line)

    def _text(self, record: Record, key: str) -> str:
        value = record.fields.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.error(record, f"{key} must be a text, not {value!r}")
        return value.strip()

    def _pairs(self, key: str) -> Iterator[tuple[Record, Pair, float]]:
        seen: set[Pair] = set()
        for record in self:
            pair = self._text(record, "query_id"), self._text(record, "doc_id")
            if pair in seen:
                raise self.error(record, f"query {pair[0]!r}, doc {pair[1]!r} is there twice")
            seen.add(pair)
            value = record.fields.get(key)
            said = as_number(value)
            if not math.isfinite(said):
                raise self.error(record, f"{key} must be a number, not {value!r}")
            yield record, pair, said

    def grades(self, scale: Scale | None) -> tuple[Scale, dict[Pair, _Said]]:
        """Return the scale and what was said, where each row is a grade."""
        said: dict[Pair, _Said] = {}
        for record, pair, number in self._pairs("relevance"):
            problem = scale.problem(number) if scale else None
            if scale is None and number != int(number):
                problem = (
                    f"{number:g} is not a whole number: declare the scale of the file, scale=unit for 0 to 1, or"
                    " scale='means:5:2' for means of grades up to 5 that are relevant from 2 on"
                )
            if problem:
                raise self.error(record, f"relevance {problem}")
            said[pair] = _Said(number)
        if scale is None:
            values = [int(s.relevance or 0) for s in said.values()]
            low, high = min(0, *values), max(1, *values)
            scale = Scale("binary") if (low, high) == (0, 1) else Scale("grades", high, low)
        return scale, said

    def ranking(self) -> tuple[Scale, dict[Pair, _Said]]:
        """Return the scale and what was said, where each row is a rank."""
        rows = list(self._pairs("rank"))
        sizes = Counter(query_id for _, (query_id, _), _ in rows)
        said: dict[Pair, _Said] = {}
        for record, pair, rank in rows:
            n = sizes[pair[0]]
            if rank != int(rank) or not 1 <= rank <= n:
                raise self.error(record, f"rank must be a whole number from 1 to {n} (the query's rows), not {rank:g}")
            said[pair] = _Said(n - rank + 1)
        return Scale("grades", max(sizes.values())), said

    def votes(self) -> dict[Pair, _Said]:
        """Return what was said, where each row is a vote."""
        shown: Counter[Pair] = Counter()
        chosen: Counter[Pair] = Counter()
        for record in self:
            query_id, choice = self._text(record, "query_id"), self._text(record, "chosen")
            doc_ids = self._shown(record)
            if choice in doc_ids:
                chosen[query_id, choice] += 1
            elif choice.casefold() != "none":
                raise self.error(record, f"chosen must be one of those shown or none, not {choice!r}")
            shown.update((query_id, doc_id) for doc_id in doc_ids)
        return {pair: _vote(chosen[pair], count) for pair, count in shown.items()}

    def _shown(self, record: Record) -> list[str]:
        value: Any = record.fields.get("shown")
        if isinstance(value, str):
            value = _listed(value)
        good = isinstance(value, list) and all(isinstance(v, str) and len(v.split()) == 1 for v in value)
        if not good or len(value) < 2 or len(set(value)) != len(value):
            given = record.fields.get("shown")
            raise self.error(record, f"shown must list two or more distinct doc ids, not {given!r}")
        return list(value)


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


def _vote(chosen: int, shown: int) -> _Said:
    low, high = wilson(chosen, shown)
    extra: dict[str, float | str] = {"shown": float(shown), "chosen": float(chosen), "ci_low": low, "ci_high": high}
    return _Said(chosen / shown, Status.OK, extra)
