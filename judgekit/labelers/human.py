"""Labels by people: grades, and votes for the best of two or three."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

from judgekit.data.labelings import Scale
from judgekit.data.records import DataRecord, records
from judgekit.data.streams import head
from judgekit.data.tables import Status
from judgekit.data.trec import Asked
from judgekit.errors import DataError
from judgekit.labelers.base import Label, Needs
from judgekit.labelers.provenance import JUDGED, Pair, _Filed
from judgekit.spec import Spec

_EXPECTED: Final = (
    "labels by people: a TREC qrels file, or CSV, TSV, JSON or Parquet with the columns query_id, doc_id, relevance"
    " (grades) or query_id, shown, chosen (votes)"
)
_GRADES: Final = frozenset({"query_id", "doc_id", "relevance"})
_VOTES: Final = frozenset({"query_id", "shown", "chosen"})


@dataclass(frozen=True)
class Human(_Filed):
    """Reads labels by people: grades, or votes for the best of two or three documents.

    Two kinds of files, recognised by their columns:

    * grades: TREC qrels, or ``query_id, doc_id, relevance``;
    * votes: each row one showing, ``query_id, shown, chosen``. ``shown`` lists two or more doc ids, separated by
      ``|``, ``;`` or commas, else by white space, or as a JSON list; ``chosen`` is one of them or
      ``none``. Relevance is times chosen / times shown. ``extra`` has both counts and the 95 % Wilson interval,
      ``ci_low`` to ``ci_high``.

    ``extra["judged"]`` tells documents that the file does not list apart, whatever ``unlisted`` makes of them. Where
    `judgekit annotate read` wrote the file, what people were asked stands beside it: a document that they were not
    asked about is then not judged, never 0.

    Scale: the grades'; unit for votes

    Needs: people

    Costs: a judgment by a person

    Attributes:
        file: file with the judgments of people
    """

    kind = "human"
    needs = Needs(people=True, existing=True)
    file: str

    @cached_property
    def asked(self) -> Asked | None:
        """What people were asked, if the file is of a sample."""
        return Asked.beside(self.context.path(self.file))

    @cached_property
    def _file(self) -> tuple[Scale, Mapping[Pair, Label]]:
        path = self.context.path(self.file)
        if _holds_votes(path):
            return Scale("unit"), _votes(path)
        return self._grades(self.file, self.declared or (self.asked.scale if self.asked else ""))

    def _not_listed(self, query_id: str, doc_id: str) -> Label:
        if self.asked is not None:
            return Label(query_id, doc_id, None, Status.UNASKED, "", "not in the sample that people judged")
        return super()._not_listed(query_id, doc_id)


def wilson(chosen: float, shown: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a share, chosen out of shown; 0 to 1 where nothing was shown."""
    if not shown:
        return 0.0, 1.0
    share, square = chosen / shown, NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    middle = share + square / (2 * shown)
    spread = math.sqrt(square * (share * (1 - share) / shown + square / (4 * shown * shown)))
    scale = 1 + square / shown
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _holds_votes(path: Path) -> bool:
    """Return whether a file holds votes, not grades: by its columns, which TREC's qrels do not name."""
    first = (head(path, _EXPECTED).splitlines() or [b""])[0].split()
    if len(first) == 4 and b"query_id" not in b"".join(first) and first[0][:1] not in b"{[":
        return False
    record = next(records(path, Spec("auto"), _EXPECTED)[1], None)
    if record is None:
        raise DataError(f"holds no rows; expected {_EXPECTED}", path)
    grades, votes = (columns <= set(record.fields) for columns in (_GRADES, _VOTES))
    if grades == votes:
        have = ", ".join(map(str, record.fields))
        raise DataError(f"has the columns {have}; expected {_EXPECTED}", path, record.line)
    return votes


def _votes(path: Path) -> dict[Pair, Label]:
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
    labels = {}
    for pair, count in shown.items():
        low, high = wilson(chosen[pair], count)
        counts = {"shown": float(count), "chosen": float(chosen[pair]), "ci_low": low, "ci_high": high}
        labels[pair] = Label(*pair, chosen[pair] / count, extra={**JUDGED, **counts})
    return labels


def _text(path: Path, record: DataRecord, key: str) -> str:
    value = record.fields.get(key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{key} must be a text, not {value!r}", path, record.line)
    return value.strip()


def _listed(text: str) -> list[str]:
    """Return the ids of a list in one cell: a JSON list, or separated by ``|``, ``;``, ``,`` or white space."""
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = []
        return found if isinstance(found, list) else []
    separator = next((mark for mark in "|;," if mark in text), None)
    return [part.strip() for part in text.split(separator)]
