"""The data behind the numbers by query, in the form that the page reads: compressed, in blocks of a few queries.

The page inflates the index when it opens, and a block when one of its queries is opened.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import pandas as pd

from judgekit.analysis.measures import WHOLE_RUN
from judgekit.analysis.primary import Primary
from judgekit.analysis.wording import plural
from judgekit.data.documents import Doc, Docs, Queries
from judgekit.data.labelings import Scale
from judgekit.data.outputs import clean
from judgekit.data.tables import NOT_MISSING, Status
from judgekit.report.exchange import Asks, Requests
from judgekit.report.grids import records
from judgekit.report.model import Bill, LabelingInfo, Results

BLOCK: Final = 20
"""The number of queries inflated together."""

MOST_QUERIES: Final = 5_000
MOST_CHARACTERS: Final = 40_000_000
"""The largest size of a page: a browser opens it in a second or two, and mail and repositories refuse more."""

_RIGHT: Final = 0.5
Rows = Mapping[str, list[dict[str, Any]]]
"""The rows of a table by query."""


@dataclass(frozen=True)
class Backing:
    """An experiment's data on queries. Missing data are not shown, and ``absent`` says why.

    Attributes:
        labels: the labels table of each labeling.
        quality: the quality table, or None.
        queries, docs: the texts.
        lists: by run, the ranked doc ids of each query, down to the depth of the pool.
        replies: the cost of the replies behind labels, columns of `REPLIES`, or None.
        scores: per-query scores by the primary measure, columns of `SCORES`, or None.
        kinds: the kind of each question, by query id.
        asks: the first request about a pair, for each labeling that asks an LLM.
        texts: whether the page may hold questions, passages, answers and replies.
        absent: a sentence on data that cannot be shown.
    """

    labels: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    quality: pd.DataFrame | None = None
    queries: Queries = field(default_factory=dict)
    docs: Docs | None = None
    lists: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    scores: pd.DataFrame | None = None
    replies: pd.DataFrame | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    asks: Mapping[str, Asks] = field(default_factory=dict)
    texts: bool = True
    absent: str = ""


@dataclass(frozen=True)
class Packed:
    """The page's data on queries.

    Attributes:
        index: the index by which queries are found, as text.
        blocks: the rows behind them.
        left_out: number of queries for which the page has no room.
        absent: a sentence on data that cannot be shown.
    """

    index: str
    blocks: Sequence[str]
    left_out: int = 0
    absent: str = ""


def pack(results: Results, backing: Backing) -> Packed | None:
    """Return the page's data on queries; None if neither a query nor a reason is known."""
    tables = list(backing.labels.values())
    if backing.quality is not None:
        tables.append(backing.quality)
    known: dict[str, None] = {}
    for table in tables:
        known |= dict.fromkeys(table["query_id"])
    # A pilot labels only some questions of its file; the others have nothing to show.
    ids = [query_id for query_id in backing.queries if query_id in known] or list(known)
    if not ids:
        return Packed("", (), absent=backing.absent) if backing.absent else None
    packing = _Packing(results, backing)
    entries: list[dict[str, Any]] = []
    blocks: list[str] = []
    held = 0
    for start in range(0, min(len(ids), MOST_QUERIES), BLOCK):  # of which the most are a multiple
        queries = [_Query(packing, query_id) for query_id in ids[start : start + BLOCK]]
        took = [[query.took(number) for query in queries] for number in range(len(_TOOK))]
        # Numbers of a kind are kept together after all texts, which halves their size.
        block = _squeezed({"queries": [query.rows() for query in queries], "took": took})
        # The first block is always there: a page without a query would be useless.
        held += len(block)
        if held > MOST_CHARACTERS and blocks:
            break
        entries += [query.entry() for query in queries]
        blocks.append(block)
    return Packed(_squeezed(packing.index(entries)), blocks, len(ids) - len(entries), backing.absent)


def _squeezed(value: Any) -> str:
    # In blocks, so that a browser opens at once and inflates only what is looked at.
    packed = zlib.compress(orjson.dumps(value), 6)
    return base64.b64encode(packed).decode()


def _by_query(table: pd.DataFrame) -> Rows:
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in records(table):
        rows.setdefault(row["query_id"], []).append(row)
    return rows


def _asked(info: LabelingInfo) -> str:
    """Return the model, endpoint and prompt of a labeling; "" if it asks none."""
    if not info.model:
        return ""
    where = f" at {info.endpoint}" if info.endpoint else ""
    return f"{info.model}{where}" + (f", prompt {info.prompt}" if info.prompt else "")


def _takes(spending: Bill) -> str:
    """Return the average cost of a request as far as servers report it; "" if unknown."""
    cost = spending.standalone
    if not cost.requests:
        return ""
    parts = []
    for amount, what in ((cost.prompt_tokens, "prompt"), (cost.completion_tokens, "reply")):
        if amount is not None:
            parts.append(f"{plural(round(amount / cost.requests), 'token')} of {what}")
    if cost.request_seconds is not None and not cost.untimed:
        parts.append(f"{cost.request_seconds / cost.requests:.2g} s")
    return ", ".join(parts)


def _scores_of(table: pd.DataFrame | None, measure: str) -> dict[tuple[str, str, str], float]:
    """Return the known scores by a measure, by labeling, run and query."""
    if table is None:
        return {}
    known = table[(table["measure"] == measure) & table["value"].notna()]
    columns = (known[name].tolist() for name in ("labeling", "run", "query_id", "value"))
    return {(labeling, run, query): round(value, 4) for labeling, run, query, value in zip(*columns, strict=True)}


Took = Mapping[tuple[str, str, str], list[float | None]]
"""The cost of replies by labeling, query and document: requests, tokens of prompt and reply, seconds, and date."""

_LATEST: Final = 253_402_300_800.0
"""The year 10,000, in seconds since 1970."""
_TOOK: Final = ("requests", "prompt_tokens", "completion_tokens", "seconds", "stored_at")


def _took_of(table: pd.DataFrame | None) -> Took:
    """Return the cost of replies in the page's form: seconds to two digits, the date as minutes since 1970."""
    if table is None:
        return {}
    keys = zip(*(table[name].tolist() for name in ("labeling", "query_id", "doc_id")), strict=True)
    took: dict[tuple[str, str, str], list[float | None]] = {}
    for key, numbers in zip(keys, zip(*(table[name].tolist() for name in _TOOK), strict=True), strict=True):
        requests, prompt, completion, seconds, stored_at = (None if math.isnan(n) else n for n in numbers)
        seconds = None if seconds is None else float(f"{seconds:.2g}")
        # A row's time has no checksum, and a browser cannot show every number as a date.
        minutes = stored_at // 60 if stored_at is not None and 0 <= stored_at < _LATEST else None
        took[key] = [_whole(requests), _whole(prompt), _whole(completion), seconds, _whole(minutes)]
    return took


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


class _Packing:
    """Data shared by all queries."""

    def __init__(self, results: Results, backing: Backing) -> None:
        self.primary: Primary = results.primary
        self.backing = backing
        self.runs = list(backing.lists) or [run.name for run in results.facts.runs]
        self.scales = dict.fromkeys(backing.labels, Scale("binary"))
        for info in results.labelings:
            if info.scale and info.name in self.scales:
                self.scales[info.name] = Scale.parse(info.scale)
        self.asked = {info.name: _asked(info) for info in results.labelings}
        self.takes = {info.name: _takes(info.spending) for info in results.labelings}
        self.labels: dict[str, Rows] = {}
        for name, table in backing.labels.items():
            self.labels[name] = _by_query(table)
        self.quality: Rows = {}
        self.metrics: list[str] = []
        if backing.quality is not None:
            self.quality = _by_query(backing.quality)
            self.metrics = list(dict.fromkeys(backing.quality["metric"]))
        self.scores = _scores_of(backing.scores, self.primary.measure)
        self.took = _took_of(backing.replies)
        self.requests = Requests(backing.asks if backing.texts else {})

    def index(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the data by which the page searches, filters and sorts."""
        depth = self.primary.depth
        values: list[float] = []
        for entry in entries:
            values += [value for value in entry["quality"] if value is not None]
        labelings = []
        for name, scale in self.scales.items():
            asked = self.asked.get(name, "")
            takes = self.takes.get(name, "")
            told = {"name": name, "least": scale.threshold, "scale": str(scale), "asked": asked, "takes": takes}
            labelings.append(told)
        right = _RIGHT
        if values and not 0 <= min(values) <= max(values) <= 1:
            # Ratings with their own scale: an answer is right from the middle on.
            right = (min(values) + max(values)) / 2
        return {
            "queries": entries,
            "runs": self.runs,
            "labelings": labelings,
            "requests": self.requests.kept,
            "measure": self.primary.measure,
            "scored": bool(self.scores),
            "metric": self.primary.metric,
            "metrics": self.metrics,
            "k": depth,
            "depth": "all" if depth == WHOLE_RUN else f"top {depth}",
            "right": right,
            "block": BLOCK,
        }

    def text(self, text: object) -> str:
        """Return a text in the page's form; "" if texts are not allowed."""
        return clean(text) if self.backing.texts and isinstance(text, str) else ""  # ratings come without a text


class _Query:
    """One query: its documents, their labels by labeling, and its answers."""

    def __init__(self, packing: _Packing, query_id: str) -> None:
        self.packing, self.query_id = packing, query_id
        backing = packing.backing
        self.query = backing.queries.get(query_id)
        self.lists: dict[str, list[str]] = {}
        for run, ranked in backing.lists.items():
            self.lists[run] = list(ranked.get(query_id, ()))
        self.labels: dict[str, dict[str, dict[str, Any]]] = {}
        for name, rows in packing.labels.items():
            self.labels[name] = {row["doc_id"]: row for row in rows.get(query_id, ())}
        self.answers = packing.quality.get(query_id, [])
        docs: dict[str, None] = {}
        for doc_ids in (*self.lists.values(), *self.labels.values()):
            docs |= dict.fromkeys(doc_ids)
        self.docs = list(docs)

    def entry(self) -> dict[str, Any]:
        """Return the query's entry in the index."""
        packing = self.packing
        relevant: list[dict[str, bool]] = []
        lost: list[list[str]] = []
        counts: list[list[int]] = []
        for name, rows in self.labels.items():
            least, statuses = packing.scales[name].threshold, set[str]()
            votes = {}
            for doc_id, row in rows.items():
                statuses.add(row["status"])
                if row["status"] == Status.OK.value:
                    votes[doc_id] = row["relevance"] >= least
            relevant.append(votes)
            counts.append([self._count(votes, run) for run in packing.runs])
            lost.append(sorted(statuses.difference(NOT_MISSING)))
        quality, unanswered = self._quality()
        return {
            "id": self.query_id,
            "question": packing.text(self.query and self.query.text),
            "relevant": counts,
            "disagreement": round(_split(relevant, self.docs), 4),
            "lost": lost,
            "quality": quality,
            "scores": [self._scores(name) for name in self.labels],
            "kind": packing.backing.kinds.get(self.query_id, ""),
            "unanswered": unanswered,
        }

    def _count(self, votes: Mapping[str, bool], run: str) -> int:
        """Return the number of relevant documents among those behind a run's answer."""
        # Without the runs' files every labelled document counts.
        shown = self.docs
        if self.lists:
            shown = self.lists[run][: self.packing.primary.depth]
        return sum(votes.get(doc_id, False) for doc_id in shown)

    def _scores(self, labeling: str) -> list[float | None]:
        """Return the labeling's score of each run by the primary measure, or None."""
        return [self.packing.scores.get((labeling, run, self.query_id)) for run in self.packing.runs]

    def _quality(self) -> tuple[list[float | None], list[bool]]:
        """Return each run's answer quality in the decision's cell, and whether the answer is missing.

        For several answers of a run it is the mean.
        """
        primary = self.packing.primary
        found: dict[str, list[float]] = {run: [] for run in self.packing.runs}
        missing = dict.fromkeys(self.packing.runs, False)
        for row in self.answers:
            cell = (row["metric"], row["depth"], row["model"])
            if cell != (primary.metric, primary.depth, primary.model) or row["run"] not in found:
                continue
            if not math.isnan(row["value"]):
                found[row["run"]].append(row["value"])
            else:
                # An answer to which the metric does not apply has no value, but is not missing.
                missing[row["run"]] = row.get("status", Status.OK.value) not in NOT_MISSING
        values = [round(math.fsum(each) / len(each), 4) if each else None for each in found.values()]
        return values, list(missing.values())

    def rows(self) -> dict[str, Any]:
        """Return the content shown for the query."""
        backing, text = self.packing.backing, self.packing.text
        docs: list[Doc] = []
        if backing.texts and backing.docs is not None:
            docs = backing.docs.get(self.docs)
        references = self.query.answers if self.query and backing.texts else ()
        places = dict(zip(self.docs, range(len(self.docs)), strict=True))
        lists = {}
        for run, doc_ids in self.lists.items():
            lists[run] = [places[doc_id] for doc_id in doc_ids]
        by_id = dict(zip(self.docs, docs, strict=True)) if docs else {}
        labels = []
        for name, rows in self.labels.items():
            labels.append([self._label(name, rows.get(doc_id), by_id.get(doc_id)) for doc_id in self.docs])
        return {
            "answers": list(map(clean, references)),
            "docs": self.docs,
            "titles": [text(doc.title) for doc in docs],
            "texts": [text(doc.text) for doc in docs],
            "lists": lists,
            "labels": labels,
            "given": self._given(),
        }

    def _label(self, labeling: str, row: Mapping[str, Any] | None, doc: Doc | None) -> dict[str, Any] | None:
        """Return a label in the page's form; None if the document was not labelled."""
        if row is None:
            return None
        text = self.packing.text
        obtained = row["status"] == Status.OK.value
        texts = {
            "status": "" if obtained else row["status"],
            "raw": text(row.get("raw")),
            "reason": text(row.get("reason")),
            "model": clean(row.get("reply_model") or ""),
        }
        shown: dict[str, Any] = {name: value for name, value in texts.items() if value}
        shown["relevance"] = round(row["relevance"], 4) if obtained else None
        # Without a reply, the request may never have been sent.
        asked = None if doc is None or not texts["raw"] else self.packing.requests.of(labeling, self.query, doc)
        if asked is not None:
            shown["asked"] = asked
        return shown

    def took(self, number: int) -> list[list[float | None] | None]:
        """Return one number of the replies' cost, by labeling and document; None if no model was asked."""
        took = []
        for name in self.labels:
            known = [self.packing.took.get((name, self.query_id, doc_id)) for doc_id in self.docs]
            numbers = [None if numbers is None else numbers[number] for numbers in known]
            took.append(numbers if any(known) else None)
        return took

    def _given(self) -> list[dict[str, Any]]:
        """Return the answers, each with its value by metric."""
        given: dict[tuple[str, int, str], dict[str, Any]] = {}
        text = self.packing.text
        for row in self.answers:
            key = row["run"], row["depth"], row["model"]
            if key not in given:
                given[key] = {
                    **dict(zip(("run", "depth", "model"), key, strict=True)),
                    "answer": text(row.get("answer")),
                    "status": row.get("status", ""),
                    "reason": text(row.get("reason")),
                    "values": dict.fromkeys(self.packing.metrics),
                }
            if not math.isnan(row["value"]):
                given[key]["values"][row["metric"]] = round(row["value"], 4)
        return list(given.values())


def _split(votes: Sequence[Mapping[str, bool]], docs: Sequence[str]) -> float:
    """Return the share of (document, pair of labelings) with different relevance."""
    pairs = split = 0
    for doc_id in docs:
        # Only documents labelled by both can be a disagreement; a missing label is none.
        said = [vote[doc_id] for vote in votes if doc_id in vote]
        yes = sum(said)
        pairs += len(said) * (len(said) - 1) // 2
        split += yes * (len(said) - yes)
    return split / pairs if pairs else 0.0
