"""What a file holds, by its content: of which kinds, and in which form.

Nothing is recognised here that the readers do not recognise. Where a file may be of more than one kind, the names of
its columns decide, then its numbers, and at last its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from judgekit.data.fields import DECLARED, Declaration, Source
from judgekit.data.forms import (
    flat_form,
    flat_records,
    form_named,
    nested_form,
    telling,
)
from judgekit.data.forms.delimited import TREC, PlainQuotes
from judgekit.data.forms.texts import FOLDER
from judgekit.data.records import DataRecord, as_number
from judgekit.data.sources import located, opened
from judgekit.data.streams import Beginning
from judgekit.data.tables import ANSWERS, RATED, RATINGS
from judgekit.errors import DataError, JudgekitError, UsageError, not_among
from judgekit.registry import DataForm
from judgekit.spec import Spec

_RATING: Final = Declaration(
    {
        "query_id": DECLARED["answer"].names["id"],
        "value": (*RATED, "score"),
        **{name: (name,) for name in (*RATINGS.columns, *RATINGS.optional) if name not in ("query_id", "value")},
    },
    "ratings",
    "ratings",
    one="rating",
    adds={"run": "the run whose answer is rated", "depth": "how many documents the answer was made from"},
)
_ANSWER: Final = DECLARED["answer"]._replace(
    names={**DECLARED["answer"].names, **{name: (name,) for name in ANSWERS.optional}}
)
_REFERENCES: Final = Declaration(
    {key: DECLARED["query"].names[key] for key in ("id", "answers")}, "reference answers", "reference answers"
)
DECLARED_KINDS: Final = {**DECLARED, "answer": _ANSWER, "ratings": _RATING, "references": _REFERENCES}
"""Everything that a file may hold: records, ratings of answers, and reference answers without their questions."""
_TELLS_QUALITY: Final = {"measure", "labeling"}


@dataclass(frozen=True)
class Recognised:
    """What a file holds.

    Attributes:
        kinds: what it may be: query, doc, run, qrels, answer, ratings, references; the first is the likeliest.
        form: the form that it is in.
        flat: the form of its records.
        fields: the names of its columns; () where it has none.
        told: the fields of the record that tells its form.
        named: the columns that its spelling names, by option.
        why: why it is nothing at all.
        cure: the form in which it may be readable then.
    """

    kinds: tuple[str, ...] = ()
    form: DataForm | None = None
    flat: DataForm | None = None
    fields: tuple[str, ...] = ()
    told: Mapping[str, Any] = field(default_factory=dict, repr=False)
    named: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    cure: str = ""

    @property
    def nested(self) -> bool:
        """Whether it holds several tables, a record of each question."""
        return self.form is not None and self.form.nested


def recognise(source: str | Path) -> Recognised:
    """Return what a file, a folder of one collection or ``FORM:PATH`` holds, by its first records."""
    path, spec = located(source, "doc")
    try:
        form = flat_form(Beginning.of(path, "data"), DECLARED) if spec.name == "auto" else form_named(spec.name)
        if form is TREC and form.narrows is not None:
            return Recognised(form.narrows(Beginning.of(path, "data")), form, form)
        if form is FOLDER:
            return Recognised(form.holds, form, form)
        flat = flat_form(Beginning.of(path, "data")) if form.nested else form
        first, _ = telling(records_of(source, flat))
    except PlainQuotes as error:
        return Recognised(why=_reason(error), cure=error.cure)
    except (DataError, OSError) as error:
        return Recognised(why=_reason(error))
    if not first:
        return Recognised(why="it holds no records")
    named = {key: str(value) for key, value in spec.params if key not in flat.options}
    told = first[0].fields
    nested = None if form.nested or named else nested_form(first)
    if nested is not None:
        form, told = nested
    content = Recognised((), form, flat=flat, fields=tuple(map(str, first[0].fields)), told=told, named=named)
    _check_named(path, spec, content)
    kinds, problem = _held(source, content)
    if kinds:
        return replace(content, kinds=kinds)
    return replace(content, why=problem or _nothing(content.fields))


def records_of(source: str | Path, flat: DataForm) -> Iterator[DataRecord]:
    """Return the records of a file of a flat form, with those options in its spelling that are not columns."""
    path, spec = located(source, "doc")
    options = tuple((key, value) for key, value in spec.params if key in flat.options)
    return flat_records(flat, path, Spec(flat.name, options))


def _check_named(path: Path, spec: Spec, content: Recognised) -> None:
    """Refuse options that no kind of data has, and columns that a file lacks."""
    keys = sorted({key for declared in DECLARED_KINDS.values() for key in declared.names})
    for key, column in content.named.items():
        if key not in keys:
            raise UsageError(f"format '{spec}': {not_among('option', key, keys)}")
        if column not in content.fields:
            raise DataError(not_among("column", column, content.fields), path)


def _reason(error: Exception) -> str:
    if not isinstance(error, DataError):
        return str(error)
    return f"line {error.line}: {error.reason}" if error.line else error.reason


def _nothing(fields: tuple[str, ...]) -> str:
    return f"judgekit reads no file with these columns: {', '.join(fields[:8])}"


def _held(source: str | Path, content: Recognised) -> tuple[tuple[str, ...], str]:
    """Return the kinds that a file may be, and what is wrong with it if it is none."""
    held, problem = [], ""
    possible = content.form.holds if content.form is not None and content.nested else (*DECLARED,)
    for kind in possible:
        try:
            if not {*content.named} - {*DECLARED[kind].names} and _holds(source, content, kind):
                held.append(kind)
        except JudgekitError as error:
            # What is wrong with a column matters where the file has columns of that kind at all.
            known = {name for names in DECLARED[kind].names.values() for name in names}
            problem = problem or (_reason(error) if known.intersection(content.fields) else "")
    if content.form is not None and content.nested and content.form.narrows is not None:
        held = [*content.form.narrows(content.told)]
    elif {*held} == {"run", "qrels"} or (not content.nested and {"run", "qrels"} <= {*held}):
        held = ["qrels" if _judges(source, content) else "run"]
    elif not content.nested:
        held = [kind for kind in held if kind in ("run", "qrels")] or _told_by_names(held, content)
    return tuple(held), problem


def _holds(source: str | Path, content: Recognised, kind: str) -> bool:
    """Return whether the first record of a kind has what that kind needs."""
    origin, rows = opened(source, kind)
    record = next(rows, None)
    if record is None:
        return False
    if kind == "answer" and not content.nested and {"doc_id", "docid"} & {*record.fields}:
        return False
    return all(any(origin.find(record, key) for key in keys) for keys in DECLARED[kind].needs)


def _told_by_names(held: list[str], content: Recognised) -> list[str]:
    """Leave of the kinds that a table without pairs may be those that the names of its columns speak for."""
    fields = {*content.fields}
    if "value" in content.named and "text" in content.named:
        return []  # ratings that name their question by its text: `judgekit init` gives them its id
    ratings = bool(fields & {*_RATING.names["query_id"]}) and not fields & _TELLS_QUALITY
    if ("query" in held and "run" in fields and fields & {*RATED}) or "value" in content.named:
        return ["ratings"]
    if "query" not in held and _only_references(content):
        held = [*held, "references"]
    if {"query_id", "answer"} <= {*content.named}:
        return ["answer"]
    asks, tells, answers = (bool(DECLARED[kind].marks & fields) for kind in ("query", "doc", "answer"))
    if "query" in held and "doc" in held and asks != tells:
        held = [kind for kind in held if kind != ("doc" if asks else "query")]
    if "query" in held and "answer" in held and answers:
        held = ["answer"]
    return held or (["ratings"] if ratings and fields & {*RATED, "score"} else [])


def _only_references(content: Recognised) -> bool:
    """Return whether a table has ids and answers, and no column that only answers of an application have."""
    names = {**_REFERENCES.names, **{key: (name,) for key, name in content.named.items()}}
    has_both = all({*names[key]}.intersection(content.fields) for key in ("id", "answers"))
    return has_both and not {"run", "depth", "model", *RATED}.intersection(content.fields)


def _judges(source: str | Path, content: Recognised) -> bool:
    """Return whether rows of query, doc and number are judgments: by name of the column, else few whole numbers."""
    fields = {*content.fields}
    if content.named:
        return "relevance" in content.named
    if DECLARED["qrels"].marks & fields:
        return True
    if DECLARED["run"].marks & fields and "score" not in fields:
        return False
    if "run" in fields:
        return False
    origin, rows = opened(source, "qrels")
    values = [_number(origin, record) for record in islice(rows, 1000)]
    few = all(value == int(value) and -2 <= value <= 4 for value in values if value == value)
    return few and (len({*values}) < 5 or any(part in str(source).lower() for part in DECLARED["qrels"].called))


def _number(origin: Source, record: DataRecord) -> float:
    name = origin.find(record, "relevance")
    return as_number(None if name is None else record.fields[name])


def is_docs(source: str | Path, query_ids: set[str], doc_ids: set[str]) -> bool:
    """Return whether a file that may be questions or passages is the latter: by ids, else by its name."""
    origin, rows = opened(source, "query")
    some = {origin.get(record, "id") for record in islice(rows, 1000)}
    if len(some & query_ids) != len(some & doc_ids):
        return len(some & doc_ids) > len(some & query_ids)
    return any(part in Path(source).name.lower() for part in DECLARED["doc"].called)
