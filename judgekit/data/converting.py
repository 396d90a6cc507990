"""Writing data in another form than it came in: what `judgekit convert` does."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judgekit.data.files import check_target, read_table, write_table
from judgekit.data.forms import opened
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.leaderboards import other_form
from judgekit.data.readers import doc_fields, query_fields, read_docs, read_queries, write_jsonl
from judgekit.data.records import as_number
from judgekit.data.streams import given, head, open_atomic, write_atomic
from judgekit.data.tables import ANSWERS, SCORES, Status
from judgekit.data.trec import missing_path, read_qrels, read_run, write_qrels, write_run
from judgekit.errors import DataError, UsageError, not_among
from judgekit.spec import split_form

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["KINDS", "OUT", "convert"]

KINDS: Final = {
    "queries": "query",
    "docs": "doc",
    "run": "run",
    "qrels": "qrels",
    "answers": "answer",
    "scores": "scores",
}
OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "queries": ("jsonl", "beir", "csv", "tsv", "parquet", "topics", "dpr", "castorini"),
    "docs": ("jsonl", "beir", "csv", "tsv", "parquet"),
    "run": ("trec", "csv", "tsv", "parquet", "jsonl", "json", "msmarco", "dpr", "castorini"),
    "qrels": ("trec", "csv", "tsv", "parquet", "jsonl", "json", "beir"),
    "answers": ("csv", "tsv", "parquet", "jsonl"),
    "scores": ("csv", "tsv", "parquet", "jsonl"),
}
"""The forms in which each kind of data is written; the first is taken where the name of the file does not tell."""
_KNOWN: Final = (
    "JSON lines, JSON, CSV, TSV, Parquet; TREC runs, qrels and topics; files of BEIR, KILT, DPR/FiD, castorini, ragas,"
    " deepeval, trec_eval and ir_measures"
)
_LOOKED_AT: Final = 1000
_ENDINGS: Final = {".run": "trec", ".qrels": "trec", ".trec": "trec", ".qrel": "trec", ".txt": "trec"}
_SAYS: Final = {".run": "run", ".qrels": "qrels", ".qrel": "qrels"}
"""The kind of data that the ending of a file's name stands for."""


def convert(
    source: str | Path,
    out: str | Path,
    kind: str | None = None,
    *,
    format: str = "auto",
    format_out: str | None = None,
    min_grade: float | None = None,
    scale: str | None = None,
) -> str:
    """Write what a file holds in another form.

    Args:
        source: the file, or ``FORM:FILE``.
        out: the file to write; compressed if its name ends in ``.gz`` or ``.bz2``.
        kind: queries, docs, run, qrels, answers or scores, where the file may be several of them.
        format: the form of ``source``, where content does not tell.
        format_out: the form to write; by default that of the name's ending.
        min_grade: qrels: 1 for labels of at least this much, 0 for the others.
        scale: qrels: what the numbers mean, where there are decimals.

    Returns:
        What was written, and what was left out, in words.

    Raises:
        DataError, UsageError: the file cannot be read, or not be written so.
    """
    if min_grade is not None and math.isnan(min_grade):
        raise UsageError("--min-grade must be a number")
    if str(out) == "-":
        raise UsageError("OUT must be a file: convert does not write to standard output")
    if kind is None:
        kind = _SAYS.get(_ending(Path(out))) or _kind(source, format)
    if kind not in KINDS:
        raise UsageError(not_among("kind of data", kind, KINDS))
    target = _form_of(Path(out), kind, format_out)
    if target in ("dpr", "castorini"):
        return _nested(source, Path(out), format, target)
    if kind == "queries":
        queries = read_queries(source, format)
        if target == "topics":
            topics = (f"<top>\n<num> Number: {q.query_id}\n<title> {q.text}\n</top>\n" for q in queries.values())
            write_atomic(out, "".join(topics))
        else:
            _rows(out, target, map(query_fields, queries.values()))
        return f"{len(queries):,} queries as {target}{_left_out(source, kind, format)}"
    if kind == "docs":
        docs = read_docs(source, format)
        if not isinstance(docs, Iterable):
            raise UsageError(f"{source}: this collection can only be looked up, not written as a file")
        _rows(out, target, map(doc_fields, docs))
        return f"{len(docs):,} docs as {target}{_left_out(source, kind, format)}"
    if kind == "run":
        run = read_run(source, format=format)
        if target == "trec":
            write_run(run, out)
        else:
            _pairs(out, target, run.frame())
        return f"a run of {len(run):,} rows as {target}"
    if kind == "qrels":
        labeling = read_qrels(source, scale=Scale.parse(scale) if scale else None, format=format)
        if target == "trec":
            write_qrels(labeling, out, min_grade)
        else:
            _pairs(out, target, _labels(labeling, min_grade))
        missing = len(labeling) - labeling.counts()[Status.OK]
        where = f"listed in {missing_path(out).name}" if target == "trec" else "left out"
        return f"{len(labeling) - missing:,} labels as {target}" + (
            f", {missing:,} missing ones {where}" if missing else ""
        )
    table = read_table(ANSWERS if kind == "answers" else SCORES, source, format)
    _rows(out, target, table.to_dict("records"))
    return f"{len(table):,} rows of {kind} as {target}"


def _left_out(source: str | Path, kind: str, format: str) -> str:
    """Return which columns of a plain file are not kept: further ones are texts and numbers."""
    found = opened(source, KINDS[kind], format)
    known = {"messages", *(name for names in found.source.names.values() for name in names)}
    records = islice(found.records if not found.form else (), _LOOKED_AT)
    cells = (item for record in records for item in record.fields.items())
    names = ", ".join(
        dict.fromkeys(name for name, cell in cells if isinstance(cell, list | dict) and name not in known)
    )
    return f" without the columns that hold lists or objects ({names})" if names else ""


def _kind(source: str | Path, format: str) -> str:
    """Return what a file holds; where it may be several things, the user has to say it."""
    path = given(split_form(source)[1])
    if not path.is_dir() and not split_form(source)[0] and format == "auto":
        start = head(path, "data in a known form", 4096).lstrip()
        words = start.split(b"\n", 1)[0].split()
        number = {4: 3, 6: 4}.get(len(words))
        if number and math.isfinite(as_number(words[number].decode("ascii", "replace"))):
            return "qrels" if len(words) == 4 else "run"
    holds = [kind for kind in _NEEDED if _reads(source, kind, format)]
    try:
        scores = path.exists() and other_form(SCORES, source, format) is not None
    except DataError:
        if not holds:
            raise
        scores = True
    if scores:
        # Three columns without a header are a run as well as values of measures.
        holds = ["scores", *(kind for kind in holds if kind in ("run", "qrels"))]
    if len(holds) != 1:
        have = " or ".join(holds) or f"nothing that is known ({_KNOWN})"
        raise UsageError(f"{source}: holds {have}; choose what to convert with --kind ({', '.join(KINDS)})")
    return holds[0]


_NEEDED: Final = {
    "queries": (("id",), ("text",)),
    "docs": (("id",), ("text",)),
    "run": (("query",), ("doc",), ("score", "rank")),
    "qrels": (("query",), ("doc",), ("relevance",)),
    "answers": (("id",), ("answer",)),
}
"""The fields that a record of a kind has, one of each."""


def _reads(source: str | Path, kind: str, format: str) -> bool:
    try:
        found = opened(source, KINDS[kind], format)
        first = next(found.records, None)
        if first is None or not all(any(found.source.find(first, k) for k in keys) for keys in _NEEDED[kind]):
            return False
        # A column called score is the relevance in BEIR's judgments only.
        beir = "corpus-id" in first.fields
        return kind != ("run" if beir else "qrels") or bool(found.form) or "score" not in first.fields
    except DataError:
        return False


def _ending(out: Path) -> str:
    return Path(out.name.removesuffix(".gz").removesuffix(".bz2")).suffix


def _form_of(out: Path, kind: str, told: str | None) -> str:
    suffix = _ending(out)
    form = told or _ENDINGS.get(suffix) or suffix.removeprefix(".") or OUT[kind][0]
    form = OUT[kind][0] if form == "trec" and "trec" not in OUT[kind] and not told else form
    if form == "json" and "json" not in OUT[kind]:
        form = "jsonl"
    if form not in OUT[kind]:
        raise UsageError(f"{kind} are not written as {form!r}: --format-out is one of {', '.join(OUT[kind])}")
    return form


def _labels(labeling: Labeling, min_grade: float | None) -> pd.DataFrame:
    table = labeling.table
    table = table[table["status"] == Status.OK.value][["query_id", "doc_id", "relevance"]]
    if min_grade is not None:
        return table.assign(relevance=(table["relevance"] >= min_grade).astype("int64"))
    return table.astype({"relevance": "int64"}) if labeling.scale.integral else table


def _tabbed(out: str | Path, rows: Iterable[Iterable[object]]) -> None:
    """Write rows as TSV; an id that holds a quote is quoted, as readers of these forms expect."""
    with open_atomic(out) as stream:
        text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
        csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
        text.detach()


def _pairs(out: str | Path, target: str, table: pd.DataFrame) -> None:
    """Write pairs of query and doc, each with its number."""
    if target == "json":
        by_query: dict[str, dict[str, float]] = {}
        for query, doc, number in table.itertuples(index=False):
            by_query.setdefault(query, {})[doc] = number
        write_atomic(out, json.dumps(by_query, indent=1, ensure_ascii=False) + "\n")
    elif target == "msmarco":
        ranks = table.groupby("query_id", sort=False).cumcount() + 1
        _tabbed(out, zip(table["query_id"], table["doc_id"], ranks, strict=True))
    elif target == "beir":
        _tabbed(out, [("query-id", "corpus-id", "score"), *table.itertuples(index=False)])
    else:
        _rows(out, target, table.to_dict("records"))


def _rows(out: str | Path, target: str, rows: Iterable[dict[Any, Any]]) -> None:
    """Write records as JSON lines one by one, or as a CSV, TSV or Parquet table; lists stand in CSV as JSON."""
    import pandas as pd

    if target in ("jsonl", "beir"):
        names = {"query_id": "_id", "doc_id": "_id"} if target == "beir" else {}
        write_jsonl(out, ({names.get(k, k): v for k, v in r.items()} for r in rows))
        return
    if target != "parquet":
        rows = [
            {k: json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for k, v in r.items()} for r in rows
        ]
    check_target(out, table=True)
    frame = pd.DataFrame(list(rows))
    whole = {name: "Int64" for name in ("start", "end") if name in frame.columns}
    write_table(frame.astype(whole), out)


def _nested(source: str | Path, out: Path, format: str, target: str) -> str:
    """Write questions with their passages, of a file that holds queries, docs and a run."""
    queries, docs, run = read_queries(source, format), read_docs(source, format), read_run(source, format=format)
    scores = {(row[0], row[1]): row[2] for row in run.frame().itertuples(index=False)}

    def entries() -> Iterator[dict[str, Any]]:
        for query in queries.values():
            found = [(doc, scores[query.query_id, doc.doc_id]) for doc in docs.get(run.top(query.query_id))]
            if target == "dpr":
                passages = [{"id": d.doc_id, "title": d.title, "text": d.text, "score": s} for d, s in found]
                yield {"id": query.query_id, "question": query.text, "answers": list(query.answers), "ctxs": passages}
            else:
                passages = [
                    {"docid": d.doc_id, "score": s, "doc": {"title": d.title, "text": d.text}} for d, s in found
                ]
                yield {"query": {"qid": query.query_id, "text": query.text}, "candidates": passages}

    write_jsonl(out, entries())
    return f"{len(queries):,} questions with their passages as {target}"
