"""What lies behind the numbers, query by query, as the page reads it: columns, compressed, in blocks of a few queries.

The page inflates the index when it opens, and a block when one of its queries is looked at. Where all blocks together
are too much for one file they lie beside it, as scripts that hand them over and do nothing else: a page that is opened
from disk may not read files, but may run scripts.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import orjson
import pandas as pd

from judgekit.analysis.measures import WHOLE_RUN
from judgekit.data.documents import Doc, Docs, Queries, Query, Unit
from judgekit.data.labelings import Scale
from judgekit.data.outputs import clean
from judgekit.data.tables import NOT_MISSING, Status
from judgekit.errors import JudgekitError
from judgekit.labelers.base import Labeler
from judgekit.report.grids import where
from judgekit.report.model import Results
from judgekit.wire.types import SHOWN

BLOCK: Final = 20
"""Queries that are inflated together."""

IN_PAGE: Final = 11_000_000
"""Characters of blocks that the page itself holds at most."""

MOST_QUERIES: Final = 5_000

TITLE, TEXT = "\ue000title\ue000", "\ue000text\ue000"
"""Stand in a prompt where the page puts the title and the text of the document that is open."""

_RIGHT: Final = 0.5
_TOLD: Final = ("query_id", "doc_id", "relevance", "status", "raw", "reason", "fingerprint")


@dataclass(frozen=True)
class Backing:
    """What an experiment left behind of each query. What is not there is not shown, and ``absent`` says why.

    Attributes:
        labels: the labels table of each labeling.
        quality: the quality table, or None.
        queries, docs: the texts.
        lists: by run, the ranked doc ids of each query, down to the depth of the pool.
        labelers: by name, for their prompts.
        texts: whether the page may hold questions, passages, answers and replies.
        absent: a sentence on what cannot be shown.
    """

    labels: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    quality: pd.DataFrame | None = None
    queries: Queries = field(default_factory=dict)
    docs: Docs | None = None
    lists: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    labelers: Mapping[str, Labeler] = field(default_factory=dict)
    texts: bool = True
    absent: str = ""


@dataclass(frozen=True)
class Packed:
    """What the page needs to show queries.

    Attributes:
        index: the columns by which queries are found, as text.
        blocks: the rows behind them.
        beside: whether the blocks go into files of their own.
        left_out: queries beyond the most that are shown.
        absent: a sentence on what cannot be shown.
    """

    index: str
    blocks: tuple[str, ...]
    beside: bool = False
    left_out: int = 0
    absent: str = ""


def pack(results: Results, backing: Backing) -> Packed | None:
    """Return what the page needs to show queries; None where no query is known, and no reason either."""
    tables = list(backing.labels.values())
    if backing.quality is not None:
        tables.append(backing.quality)
    known = dict.fromkeys(query_id for table in tables for query_id in table["query_id"])
    ids = [query_id for query_id in backing.queries if query_id in known] or list(known)
    if not ids:
        return Packed("", (), absent=backing.absent) if backing.absent else None
    columns = _Columns(results, backing, ids[:MOST_QUERIES])
    blocks = tuple(_squeezed(rows) for rows in columns.blocks())
    left_out = max(0, len(ids) - MOST_QUERIES)
    beside = sum(map(len, blocks)) > IN_PAGE
    return Packed(_squeezed(columns.index()), blocks, beside, left_out, backing.absent)


def _squeezed(value: Any) -> str:
    packed = zlib.compress(orjson.dumps(value), 6)
    return base64.b64encode(packed).decode()


class _Columns:
    """The columns of some queries. The index holds the search fields and is complete once all blocks are loaded."""

    def __init__(self, results: Results, backing: Backing, ids: Sequence[str]) -> None:
        self.primary, self.backing, self.ids = results.primary, backing, ids
        self.place = pd.Index(ids)
        self.runs = list(backing.lists) or [run.name for run in results.facts.runs]
        self.names = list(backing.labels)
        scales = scales_of(results)
        self.scales = {name: scales.get(name, Scale("binary")) for name in self.names}
        self.labels = {name: self._by_query(table, ("raw", "reason")) for name, table in backing.labels.items()}
        self.quality: list[dict[str, list[Any]]] = []
        if backing.quality is not None:
            self.quality = self._by_query(backing.quality, ("answer", "status", "reason"))
        self.metrics = list(dict.fromkeys(metric for table in self.quality for metric in table["metric"]))
        self.relevant: dict[str, dict[str, list[int]]] = {}
        for name in self.names:
            self.relevant[name] = {run: [0] * len(ids) for run in self.runs}
        self.split = [0.0] * len(ids)
        self.lost: dict[str, dict[str, list[int]]] = {name: {} for name in self.names}

    def _by_query(self, table: pd.DataFrame, texts: Sequence[str]) -> list[dict[str, list[Any]]]:
        """Return the columns of a table for each query; texts that it does not have are empty."""
        table = table.assign(**{name: "" for name in texts if name not in table.columns})
        codes = self.place.get_indexer(pd.Index(table["query_id"].to_numpy()))
        order = np.argsort(codes, kind="stable")[int((codes < 0).sum()) :]
        bounds = np.searchsorted(codes[order], np.arange(len(self.ids) + 1)).tolist()
        columns = {str(c): table[c].to_numpy()[order].tolist() for c in table.columns}
        return [{c: column[start:end] for c, column in columns.items()} for start, end in pairwise(bounds)]

    def blocks(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the queries, some at a time."""
        for start in range(0, len(self.ids), BLOCK):
            yield [self._query(at) for at in range(start, min(start + BLOCK, len(self.ids)))]

    def index(self) -> dict[str, Any]:
        """Return what the page searches, filters and sorts by."""
        primary, queries = self.primary, self.backing.queries
        values, missing = self._values()
        known = [value for column in values for value in column if value is not None]
        right = _RIGHT
        if known and not 0 <= min(known) <= max(known) <= 1:  # ratings on a scale of their own
            right = (min(known) + max(known)) / 2
        return {
            "ids": self.ids,
            "questions": [self._text(queries[q].text) if q in queries else "" for q in self.ids],
            "runs": self.runs,
            "labelings": [{"name": n, "least": s.threshold, "scale": str(s)} for n, s in self.scales.items()],
            "metric": primary.metric,
            "metrics": self.metrics,
            "k": primary.depth,
            "depth": "all" if primary.depth == WHOLE_RUN else f"top {primary.depth}",
            "right": right,
            "quality": values,
            "unanswered": missing,
            "relevant": [[self.relevant[name][run] for run in self.runs] for name in self.names],
            "disagreement": [round(value, 4) for value in self.split],
            "lost": [self.lost[name] for name in self.names],
            "block": BLOCK,
        }

    def _values(self) -> tuple[list[list[float | None]], list[list[int]]]:
        """Return by run the answer quality of each query in the cell of the decision, and whose answer is missing."""
        values: dict[str, list[float | None]] = {run: [None] * len(self.ids) for run in self.runs}
        missing: dict[str, list[int]] = {run: [] for run in self.runs}
        table, primary = self.backing.quality, self.primary
        if table is not None:
            rows = where(table, metric=primary.metric, depth=primary.depth, model=primary.model)
            rows = rows[rows["run"].isin(self.runs)]
            places = self.place.get_indexer(pd.Index(rows["query_id"].to_numpy())).tolist()
            status = rows["status"] if "status" in rows else rows["value"].map(lambda _: Status.OK.value)
            for run, at, value, how in zip(rows["run"], places, rows["value"].tolist(), status, strict=True):
                if at < 0:
                    continue
                if not math.isnan(value):
                    values[run][at] = round(value, 4)
                elif how not in NOT_MISSING:
                    missing[run].append(at)
        return list(values.values()), list(missing.values())

    def _text(self, text: object) -> str:
        return clean(text) if self.backing.texts and isinstance(text, str) else ""  # ratings come without a text

    def _query(self, at: int) -> dict[str, Any]:
        query_id, backing = self.ids[at], self.backing
        lists = {run: list(ranked.get(query_id, ())) for run, ranked in backing.lists.items()}
        tables = {name: by_query[at] for name, by_query in self.labels.items()}
        docs: dict[str, int] = {}
        for doc_ids in (*lists.values(), *(table["doc_id"] for table in tables.values())):
            for doc_id in doc_ids:
                docs.setdefault(doc_id, len(docs))
        votes = np.full((len(self.names), len(docs)), np.nan)
        labels = []
        for row, (name, table) in enumerate(tables.items()):
            places = [docs[doc_id] for doc_id in table["doc_id"]]
            relevance, status = np.asarray(table["relevance"], dtype=float), np.asarray(table["status"])
            votes[row, places] = np.where(status == Status.OK.value, relevance >= self.scales[name].threshold, np.nan)
            labels.append(self._labels(table, places, len(docs)))
            for lost in set(table["status"]) - set(NOT_MISSING):
                self.lost[name].setdefault(lost, []).append(at)
            for run in self.runs:
                shown = votes[row]
                if lists:
                    shown = shown[[docs[doc_id] for doc_id in lists[run][: self.primary.depth]]]
                self.relevant[name][run][at] = int(np.nansum(shown))
        self.split[at] = _split(votes)
        query = backing.queries.get(query_id)
        texts: list[Doc] = []
        answers: list[str] = []
        if backing.texts:
            texts = [] if backing.docs is None else backing.docs.get(list(docs))
            answers = [clean(answer) for answer in query.answers] if query else []
        return {
            "answers": answers,
            "docs": list(docs),
            "titles": [clean(doc.title) for doc in texts],
            "texts": [clean(doc.text) for doc in texts],
            "lists": {run: [docs[doc_id] for doc_id in doc_ids] for run, doc_ids in lists.items()},
            "labels": labels,
            "prompts": [_prompt(backing.labelers.get(name), query, texts) for name in self.names],
            "given": self._given(at),
        }

    def _labels(self, table: Mapping[str, list[Any]], places: Sequence[int], docs: int) -> dict[str, list[Any]]:
        """Return the labels of one labeling as columns, in the order of the documents."""
        more = {name.replace("_", " "): column for name, column in table.items() if name not in _TOLD}
        columns: dict[str, list[Any]] = {}
        for name in ("relevance", "status", "raw", "reason", "more"):
            columns[name] = [None] * docs
        for row, (place, status) in enumerate(zip(places, table["status"], strict=True)):
            if status == Status.OK.value:
                columns["relevance"][place] = round(table["relevance"][row], 4)
            columns["status"][place] = status
            columns["raw"][place] = self._text(table["raw"][row])
            columns["reason"][place] = self._text(table["reason"][row])
            columns["more"][place] = self._text("; ".join(_named(more, row)))
        return columns

    def _given(self, at: int) -> list[list[Any]]:
        """Return the answers: run, depth, model, answer, status, reason, and a value per metric."""
        if not self.quality:
            return []
        rows: dict[tuple[str, int, str], list[Any]] = {}
        columns = ("run", "depth", "model", "answer", "status", "reason", "metric", "value")
        table = self.quality[at]
        for *key, answer, status, reason, metric, value in zip(*(table[c] for c in columns), strict=True):
            empty = [None] * len(self.metrics)
            new = [*key, self._text(answer), status, self._text(reason), *empty]
            row = rows.setdefault((key[0], key[1], key[2]), new)
            if not math.isnan(value):
                row[len(new) - len(empty) + self.metrics.index(metric)] = round(value, 4)
        return list(rows.values())


def scales_of(results: Results) -> dict[str, Scale]:
    """Return the scale of each labeling that declares one."""
    return {info.name: Scale.parse(info.scale) for info in results.labelings if info.scale}


def _named(columns: Mapping[str, Sequence[Any]], row: int) -> Iterator[str]:
    """Yield the further values of a label with their names; those that are empty or unknown are left out."""
    for name, column in columns.items():
        value = column[row]
        if isinstance(value, float):
            value = "" if math.isnan(value) else f"{value:g}"
        if value not in ("", None):
            yield f"{name} {value}"


def _prompt(labeler: Labeler | None, query: Query | None, docs: Sequence[Doc]) -> str:
    """Return the prompt of a labeling as sent for a query, with `TITLE` and `TEXT` in the place of the document."""
    if labeler is None or query is None or not docs or not labeler.needs.asked:
        return ""
    try:
        requests = labeler.requests(Unit(query, (replace(docs[0], title=TITLE, text=TEXT),)), [])
    except JudgekitError:  # what a server has changed since is not a reason to show nothing
        return ""
    bodies = [orjson.loads(request.body) for request in requests]
    with_text = [body for body in bodies if TEXT in orjson.dumps(body).decode()]
    body: dict[str, Any] = next(iter([*with_text, *bodies]), {})
    turns = next((body[shown] for shown in SHOWN.values() if shown in body), None)
    if isinstance(turns, str):
        return clean(turns)
    if not isinstance(turns, list):
        return clean(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
    return clean("\n\n".join(f"[{turn.get('role')}]\n{turn.get('content')}" for turn in turns))


def _split(votes: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Return the share of (document, two labelings) on which the two disagree about relevance."""
    said, yes = np.isfinite(votes).sum(axis=0), np.nansum(votes, axis=0)
    pairs = (said * (said - 1) / 2).sum()
    return float((yes * (said - yes)).sum() / pairs) if pairs else 0.0
