"""What a file of a user's folder holds.

Nothing is recognised here that the readers do not recognise: a file is what they can read of it, and where that is
more than one thing, its fields, the ids that the runs hold and at last its name decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from judgekit.data.fields import DECLARED
from judgekit.data.forms import FORMS
from judgekit.data.records import DataRecord, as_number, records
from judgekit.data.sources import opened
from judgekit.data.streams import lines
from judgekit.errors import DataError, JudgekitError
from judgekit.registry import register
from judgekit.spec import Spec

_LOOKED_AT: Final = 20
_NEED: Final = {
    "query": ("id", "text"),
    "doc": ("id", "text"),
    "run": ("query", "doc"),
    "qrels": ("query", "doc", "relevance"),
    "answer": ("id", "answer"),
}
_ASKS: Final = {"answers", "answer", "references", "question", "query", "messages", "query_id", "qid", "question_id"}
_TELLS: Final = {"title", "contents", "passage", "body", "doc_id", "docid", "docno", "pid", "passage_id", "page_id"}
_GRADED: Final = {"relevance", "rel", "label", "grade", "judgment", "corpus-id"}
RATED: Final = ("value", "rating", "stars", "thumbs", "vote", "feedback", "score")
_NAMED: Final = {
    "doc": ("doc", "corpus", "passage", "collection", "chunk"),
    "qrels": ("qrel", "gold", "judg", "relev", "label", "truth"),
}
"""What files of a kind are called, where nothing else decides."""
KINDS: Final = {
    "query": "questions",
    "doc": "passages",
    "run": "a run",
    "qrels": "judgments",
    "answer": "answers",
    "ratings": "ratings",
}


@dataclass
class Input:
    """A file, what the readers can make of it, and what it is taken for."""

    path: Path
    name: str
    kinds: list[str] = field(default_factory=list)
    fields: frozenset[str] = frozenset()
    form: str = ""
    syntax: str = ""
    source: str = ""
    """How an experiment file names it."""
    taken: list[str] = field(default_factory=list)
    why: str = ""


def recognise(file: Input) -> None:
    """Find out what the readers can make of a file, by its first records."""
    try:
        if not file.path.is_file():
            file.why = "not used: it cannot be read as a file"
            return
        trec = _trec(file.path)
        if trec:
            file.kinds, file.form = [trec], ""
            return
        file.syntax, found = records(file.path, Spec("auto"), "data")
        first = next(found, None)
    except (DataError, OSError) as error:
        reason = error.reason if isinstance(error, DataError) else str(error)
        where = f"line {error.line}: " if isinstance(error, DataError) and error.line else ""
        file.why = f"not used: {where}{reason}"
        return
    if first is None:
        file.why = "not used: it holds no records"
        return
    file.fields = frozenset(map(str, first.fields))
    file.form = next((name for name, form in FORMS.items() if form.marks(first.fields)), "")
    problem = ""
    for kind in _NEED:
        try:
            if _holds(file, kind):
                file.kinds.append(kind)
        except JudgekitError as error:
            problem = problem or (error.reason if isinstance(error, DataError) else str(error))
    if file.form == "kilt":
        told = any("text" in one or "score" in one for one in _evidence(first))
        file.kinds = ["query", "doc", "run", "answer"] if told else ["query", "qrels"]
    elif file.form in ("", "dict"):
        _decide(file)
    known = {"query_id", "qid", "question_id"} & file.fields and not {"measure", "labeling"} & file.fields
    if not file.kinds and known and set(RATED) & file.fields:
        file.kinds = ["ratings"]
    if file.kinds == ["answer"] and "input" in file.fields and _holds_traces(file.path):  # Langfuse names both so
        file.kinds = []
    if not file.kinds:
        file.kinds = ["traces"] if _holds_traces(file.path) else []
        have = ", ".join(sorted(file.fields)[:8])
        nothing = f"judgekit reads no file with these fields ({have})"
        traces = "traces, which `judgekit traces` makes data of" if file.kinds else ""
        telling = any(words in problem for words in ("whole column", "choose one"))
        file.why = traces or f"not used: {problem if telling else nothing}"


def _evidence(record: DataRecord) -> list[Mapping[str, Any]]:
    outputs = [one for one in record.fields.get("output", ()) if isinstance(one, dict)]
    return [one for output in outputs for one in output.get("provenance") or () if isinstance(one, dict)]


def _trec(path: Path) -> str:
    """Return ``run`` or ``qrels`` for a TREC file, by the number of its columns."""
    rows = [line.text for line in islice(lines(path, "data"), _LOOKED_AT)] if _is_text(path) else []
    cells = [row.split("\t") if "\t" in row else row.split() for row in rows if row.strip()]
    for kind, columns, place in (("run", 6, 4), ("qrels", 4, 3)):
        if cells and all(len(row) == columns and as_number(row[place]) == as_number(row[place]) for row in cells):
            return kind
    return ""


def _is_text(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) != b"PAR1"


def _holds(file: Input, kind: str) -> bool:
    """Return whether the first record of a kind has what that kind needs."""
    source, rows = opened(file.path, kind)
    record = next(rows, None)
    if record is None or any(source.find(record, key) is None for key in _NEED[kind]):
        return False
    if kind == "run":
        return source.find(record, "score") is not None or source.find(record, "rank") is not None
    if kind == "answer" and not source.form:
        return not {"doc_id", "docid"} & set(record.fields)
    return True


def _decide(file: Input) -> None:
    """Leave of the kinds that a flat file may be those that its fields and values speak for."""
    kinds, fields = file.kinds, file.fields
    if "run" in kinds and "qrels" in kinds:
        file.kinds = kinds = ["qrels" if _judges(file) else "run"]
    elif "run" in kinds or "qrels" in kinds:
        file.kinds = kinds = [kind for kind in kinds if kind in ("run", "qrels")]
    if "doc" in kinds and "query" in kinds:
        asks, tells = bool(_ASKS & fields), bool(_TELLS & fields)
        if asks != tells:
            file.kinds = kinds = [kind for kind in kinds if kind != ("doc" if asks else "query")]
    if "answer" in kinds and "query" in kinds and {"run", "model", "depth"} & fields:
        file.kinds = kinds = ["answer"]
    if "query" in kinds and {"run", "value"} <= fields:
        file.kinds = ["ratings"]


def is_docs(file: Input, ids: set[str], doc_ids: set[str]) -> bool:
    """Return whether a file that may be questions or passages is the latter: by ids, else by its name."""
    source, queries = opened(file.path, "query")
    some = {source.get(record, "id") for record in islice(queries, 1000)}
    if len(some & ids) != len(some & doc_ids):
        return len(some & doc_ids) > len(some & ids)
    return any(part in file.path.name.lower() for part in _NAMED["doc"])


def _judges(file: Input) -> bool:
    """Return whether rows of query, doc and number are judgments: by name of the column, else few whole numbers."""
    if _GRADED & file.fields:
        return True
    if "run" in file.fields or ({"score", "sim", "similarity", "rank"} & file.fields and "score" not in file.fields):
        return False
    source, rows = opened(file.path, "qrels")
    names = ((record, source.find(record, "relevance")) for record in islice(rows, 1000))
    values = [as_number(None if name is None else record.fields[name]) for record, name in names]
    few = all(value == int(value) and -2 <= value <= 4 for value in values if value == value)
    return few and (len(set(values)) < 5 or any(part in file.path.name.lower() for part in _NAMED["qrels"]))


def _holds_traces(path: Path) -> bool:
    home = register.load().homes.get("read_traces")
    if home is None:
        return False
    try:
        import_module(home).read_traces(path)
    except (DataError, TypeError, ValueError, KeyError, AttributeError):
        return False
    return True


def seen(file: Input, kind: str) -> str:
    """Return what a file was recognised by."""
    if file.form:
        return f"the form {file.form!r}"
    if not file.fields:
        return "six columns, as in a TREC run" if kind == "run" else "four columns, as in TREC qrels"
    names = DECLARED["answer" if kind == "ratings" else kind].names
    known = {*chain.from_iterable(names.values())}
    known |= {"run", "depth", "model", "mode", *RATED} if kind in ("answer", "ratings") else set()
    return f"fields {', '.join(sorted(known & file.fields))}" if known & file.fields else "columns without a header"


def not_used(file: Input, why: str) -> str:
    """Return why a file is left aside; "" of one that is used."""
    if file.taken:
        return ""
    if not file.kinds:
        return "not used"
    return f"not used: it looks like {' or '.join(KINDS.get(kind, kind) for kind in file.kinds)}, but {why}"
