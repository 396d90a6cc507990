"""What lies behind the numbers, query by query, as the page reads it: columns, compressed, in blocks of a few queries.

The page inflates the index when it opens, and a block when one of its queries is looked at. Where all blocks together
are too much for one file they lie beside it, as scripts that hand them over and do nothing else: a page that is opened
from disk may not read files, but may run scripts.
"""

from __future__ import annotations

import base64
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
    tables = [*backing.labels.values(), *([] if backing.quality is None else [backing.quality])]
    there = dict.fromkeys(q for table in tables for q in table["query_id"])
    ids = [q for q in backing.queries if q in there] or list(there)
    if not ids:
        return Packed("", (), absent=backing.absent) if backing.absent else None
    columns = _Columns(results, backing, ids[:MOST_QUERIES])
    blocks = tuple(_squeezed(rows) for rows in columns.blocks())
    left_out = max(0, len(ids) - MOST_QUERIES)
    return Packed(_squeezed(columns.index()), blocks, sum(map(len, blocks)) > IN_PAGE, left_out, backing.absent)


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
        scales = {info.name: Scale.parse(info.scale) for info in results.labelings if info.scale}
        self.scales = {name: scales.get(name, Scale("binary")) for name in self.names}
        self.labels = {name: self._by_query(table, ("raw", "reason")) for name, table in backing.labels.items()}
        told = ("answer", "status", "reason")
        self.quality = [] if backing.quality is None else self._by_query(backing.quality, told)
        self.metrics = list(dict.fromkeys(metric for table in self.quality for metric in table["metric"]))
        self.relevant = {name: {run: [0] * len(ids) for run in self.runs} for name in self.names}
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
        seen = [v for column in values for v in column if v is not None]
        return {
            "ids": self.ids,
            "questions": [self._text(queries[q].text) if q in queries else "" for q in self.ids],
            "runs": self.runs,
            "labelings": [{"name": n, "least": s.threshold, "scale": str(s)} for n, s in self.scales.items()],
            "metric": primary.metric,
            "metrics": self.metrics,
            "k": primary.depth,
            "depth": "all" if primary.depth == WHOLE_RUN else f"top {primary.depth}",
            "right": (min(seen) + max(seen)) / 2 if seen and not 0 <= min(seen) <= max(seen) <= 1 else _RIGHT,
            "quality": values,
            "unanswered": missing,
            "relevant": [[self.relevant[name][run] for run in self.runs] for name in self.names],
            "disagreement": [round(value, 4) for value in self.split],
            "lost": [self.lost[name] for name in self.names],
            "block": BLOCK,
        }

    def _values(self) -> tuple[list[list[float | None]], list[list[int]]]:
        """Return by run the answer quality of each query in the cell of the decision, and whose answer is missing."""
        found: dict[str, list[float | None]] = {run: [None] * len(self.ids) for run in self.runs}
        missing: dict[str, list[int]] = {run: [] for run in self.runs}
        table, primary = self.backing.quality, self.primary
        if table is not None:
            rows = where(table, metric=primary.metric, depth=primary.depth, model=primary.model)
            rows = rows[rows["run"].isin(self.runs)]
            places = self.place.get_indexer(pd.Index(rows["query_id"].to_numpy())).tolist()
            status = rows["status"] if "status" in rows else rows["value"].map(lambda _: Status.OK.value)
            for run, at, value, said in zip(rows["run"], places, rows["value"].tolist(), status, strict=True):
                if at >= 0 and value == value:
                    found[run][at] = round(value, 4)
                elif at >= 0 and said not in NOT_MISSING:
                    missing[run].append(at)
        return list(found.values()), list(missing.values())

    def _text(self, text: object) -> str:
        return clean(text) if self.backing.texts and isinstance(text, str) else ""  # ratings come without a text

    def _query(self, at: int) -> dict[str, Any]:
        query_id, backing = self.ids[at], self.backing
        lists = {run: list(found.get(query_id, ())) for run, found in backing.lists.items()}
        tables = {name: found[at] for name, found in self.labels.items()}
        ranked = (d for docs in lists.values() for d in docs)
        labelled = (d for table in tables.values() for d in table["doc_id"])
        docs = {d: i for i, d in enumerate(dict.fromkeys([*ranked, *labelled]))}
        votes = np.full((len(self.names), len(docs)), np.nan)
        labels = []
        for row, (name, table) in enumerate(tables.items()):
            places = [docs[d] for d in table["doc_id"]]
            least, status = self.scales[name].threshold, table["status"]
            said = [r >= least if s == "ok" else np.nan for r, s in zip(table["relevance"], status, strict=True)]
            votes[row, places] = said
            labels.append(self._labels(table, places, len(docs)))
            for lost in set(status) - set(NOT_MISSING):
                self.lost[name].setdefault(lost, []).append(at)
            for run in self.runs:
                shown = [docs[d] for d in lists[run][: self.primary.depth]] if lists else slice(None)
                self.relevant[name][run][at] = int(np.nansum(votes[row, shown]))
        self.split[at] = _split(votes)
        query = backing.queries.get(query_id)
        texts: list[Doc] = backing.docs.get(list(docs)) if backing.docs is not None and backing.texts else []
        return {
            "answers": [clean(answer) for answer in query.answers] if query and backing.texts else [],
            "docs": list(docs),
            "titles": [clean(doc.title) for doc in texts],
            "texts": [clean(doc.text) for doc in texts],
            "lists": {run: [docs[d] for d in found] for run, found in lists.items()},
            "labels": labels,
            "prompts": [_prompt(backing.labelers.get(name), query, texts) for name in self.names],
            "given": self._given(at),
        }

    def _labels(self, table: Mapping[str, list[Any]], places: Sequence[int], docs: int) -> dict[str, list[Any]]:
        """Return the labels of one labeling as columns, in the order of the documents."""
        more = {c.replace("_", " "): column for c, column in table.items() if c not in _TOLD}
        columns: dict[str, list[Any]] = {c: [None] * docs for c in ("relevance", "status", "raw", "reason", "more")}
        for row, (place, status) in enumerate(zip(places, table["status"], strict=True)):
            there = {c: f"{v:g}" if isinstance(v, float) else str(v) for c, col in more.items() if (v := col[row]) == v}
            columns["relevance"][place] = round(table["relevance"][row], 4) if status == Status.OK.value else None
            columns["status"][place] = status
            columns["raw"][place] = self._text(table["raw"][row])
            columns["reason"][place] = self._text(table["reason"][row])
            columns["more"][place] = self._text("; ".join(f"{c} {v}" for c, v in there.items() if v))
        return columns

    def _given(self, at: int) -> list[list[Any]]:
        """Return the answers: run, depth, model, answer, status, reason, and a value per metric."""
        if not self.quality:
            return []
        rows: dict[tuple[str, int, str], list[Any]] = {}
        columns = ("run", "depth", "model", "answer", "status", "reason", "metric", "value")
        table = self.quality[at]
        for *key, answer, status, reason, metric, value in zip(*(table[c] for c in columns), strict=True):
            told = (self._text(answer), status, self._text(reason), *[None] * len(self.metrics))
            one = rows.setdefault((key[0], key[1], key[2]), [*key, *told])
            if value == value:
                one[6 + self.metrics.index(metric)] = round(value, 4)
        return list(rows.values())


def _prompt(labeler: Labeler | None, query: Query | None, docs: Sequence[Doc]) -> str:
    """Return the prompt of a labeling as sent for a query, with `TITLE` and `TEXT` in the place of the document."""
    if labeler is None or query is None or not docs or not labeler.needs.asked:
        return ""
    try:
        asked = labeler.requests(Unit(query, (replace(docs[0], title=TITLE, text=TEXT),)), [])
    except JudgekitError:  # what a server has changed since is not a reason to show nothing
        return ""
    bodies = [orjson.loads(one.body) for one in asked]
    body = next((b for b in bodies if TEXT in orjson.dumps(b).decode()), bodies[0] if bodies else {})
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
