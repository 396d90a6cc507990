"""Recognises a file's kinds and form by its content.

Nothing is recognised here that the readers do not recognise. If a file may be of several kinds, the names of its
columns decide, then its numbers, then its name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from judgekit.data.fields import DECLARED, NAMES_RUN, Declaration
from judgekit.data.forms import (
    flat_form,
    flat_records,
    nested_form,
    spelled_form,
    telling,
)
from judgekit.data.forms.delimited import TREC, PlainQuotes
from judgekit.data.forms.jsons import JSON, JSONL
from judgekit.data.forms.texts import FOLDER
from judgekit.data.forms.tool import PLACES, at
from judgekit.data.proposed import places_in, proposed, texts_in
from judgekit.data.records import DataRecord, Fields, as_number
from judgekit.data.sources import NoHeader, located, opened
from judgekit.data.streams import Beginning
from judgekit.data.tables import ANSWERS, PAIRED, RATED, RATERS
from judgekit.errors import DataError, JudgekitError, UsageError, not_among
from judgekit.registry import DataForm
from judgekit.spec import Spec

if TYPE_CHECKING:
    import pandas as pd

_RATING: Final = Declaration(
    {
        "query_id": DECLARED["answer"].names["id"],
        "value": (*RATED, "score"),
        **{name: (name,) for name in ("run", "depth", "model", "metric", "scale", *sorted(PAIRED), "judge")},
        "cluster": RATERS,
    },
    "ratings",
    "ratings",
    one="rating",
)
_ANSWER: Final = DECLARED["answer"]._replace(
    names={**DECLARED["answer"].names, **{name: (name,) for name in ANSWERS.optional}}
)
_REFERENCES: Final = Declaration(
    {key: DECLARED["query"].names[key] for key in ("id", "answers")}, "reference answers", "reference answers"
)
DECLARED_KINDS: Final = {**DECLARED, "answer": _ANSWER, "ratings": _RATING, "references": _REFERENCES}
"""Everything that a file may hold: records, ratings of answers, and reference answers without their questions."""
_GRADED: Final = DECLARED["qrels"].names["relevance"]
_TELLS_QUALITY: Final = {"measure", "labeling"}
_LOOKED_AT: Final = 20


@dataclass(frozen=True)
class Recognised:
    """The contents of a file.

    Attributes:
        source: its path, with its form in front if that is named.
        kinds: its possible kinds, the likeliest first: query, doc, run, qrels, answer, ratings, references.
        form: its form.
        flat: the form of its records.
        fields: the names of its columns; () if it has none.
        told: the fields of the record that reveals its form.
        named: the columns that its spelling names, by option.
        run: the column that names each row's run, or "".
        why: why it was not recognised.
        cure: a form in which it may be readable.
        proposed: a spelling in which it may be readable, for the user to check.
        doubt: whether its columns are known, but not what the rows say of them.
    """

    source: str | Path = ""
    kinds: tuple[str, ...] = ()
    form: DataForm | None = None
    flat: DataForm | None = None
    fields: tuple[str, ...] = ()
    told: Fields = field(default_factory=dict, repr=False)
    named: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    why: str = ""
    cure: str = ""
    proposed: str = ""
    doubt: bool = False

    @property
    def path(self) -> Path:
        """Its path alone."""
        return located(self.source, "doc").path

    @property
    def nested(self) -> bool:
        """Whether each record is a question with several tables."""
        return self.form is not None and self.form.nested


def recognise(source: str | Path) -> Recognised:
    """Return the contents of a file, a folder or ``FORM:PATH``, by its first records."""
    path, spec = located(source, "doc")
    try:
        form = flat_form(Beginning.of(path, "data"), DECLARED) if spec.name == "auto" else spelled_form(spec)
        flat = flat_form(Beginning.of(path, "data")) if form.nested else form
        _check_keys(path, spec, (form, flat))
        if not form.nested and form.narrows is not None and not spec.params:
            kinds = form.narrows(Beginning.of(path, "data"))
            if kinds:
                return Recognised(source, kinds, form, form)
        first, _ = telling(records_of(source, flat))
    except PlainQuotes as error:
        return Recognised(source, why=_reason(error), cure=error.cure)
    except (DataError, OSError) as error:
        return Recognised(source, why=_reason(error))
    if not first:
        return Recognised(source, why="it holds no records")
    named = {key: str(value) for key, value in spec.params if key not in (*flat.options, *form.options)}
    told = first[0].fields
    nested = None if form.nested or named else nested_form(first)
    if nested is not None:
        form, told = nested
        if form.refused:
            return Recognised(source, why=form.refused)
    content = Recognised(source, (), form, flat=flat, fields=tuple(map(str, first[0].fields)), told=told, named=named)
    unknown = [not_among("column", column, content.fields) for column in named.values() if column not in content.fields]
    places = [] if form.spelled is None else [str(value) for key, value in spec.params if key in PLACES]
    looked = [record.fields for record in islice(records_of(source, flat), _LOOKED_AT)] if places else []
    for place in places:
        if all(at(fields, place) is None for fields in looked):
            unknown.append(not_among("place", place, [known for known, _ in places_in(told)]))
    if unknown:
        raise DataError("; ".join(unknown), path)
    kinds, problem = _held(content)
    if {"answer", "ratings", "references"} & {*kinds} and not content.nested and not problem:
        kinds, run, problem = _of_runs(content, kinds)
        content = replace(content, run=run)
    if spec.options.get("passages") == "ids":
        kinds = tuple(kind for kind in kinds if kind != "doc")
    if kinds:
        return replace(content, kinds=kinds)
    ungraded = _ungraded(content)
    if ungraded and not named:
        why = (
            f"its rows name questions and documents, but not whether these should be found: write {ungraded}:{path} if"
            " they should; if a run found them, add their ranks (a column 'rank')"
        )
        return replace(content, why=why, proposed=ungraded, doubt=True)
    if named and "text" not in named:  # of tables that name their question by its text `init` finds the kind later
        hint = f". If these documents should be found, write {ungraded}:{path}" if ungraded else ""
        raise UsageError(f"{path}, read as '{spec}': {_no_kind(named)}{hint}")
    return replace(content, why=problem) if problem else _of_no_kind(content)


def records_of(source: str | Path, flat: DataForm) -> Iterator[DataRecord]:
    """Return the records of a flat file, using the options in its spelling that are not columns."""
    path, spec = located(source, "doc")
    options = tuple((key, value) for key, value in spec.params if key in flat.options)
    return flat_records(flat, path, Spec(flat.name, options))


def _check_keys(path: Path, spec: Spec, forms: Sequence[DataForm]) -> None:
    """Refuse options that neither the forms nor any kind of data has."""
    keys = {option for form in forms for option in form.options}
    if not {TREC, FOLDER} & {*forms}:  # whose columns are known
        keys.update(*(declared.names for declared in DECLARED_KINDS.values()))
    for key in spec.options:
        if spec.name != "auto" and key not in keys:
            raise UsageError(f"{path}, read as '{spec}': {not_among('option', key, sorted(keys))}")


def _no_kind(named: Mapping[str, str]) -> str:
    """Return which columns go together, if no kind of data has all the named ones."""
    kinds = []
    for kind in ("query", "doc", "run", "qrels", "answer", "ratings"):
        declared = DECLARED_KINDS[kind]
        kinds.append(f"{declared.many} {', '.join(declared.names)}")
    return f"no kind of data has the columns {', '.join(named)}; there are: {'; '.join(kinds)}"


def _reason(error: Exception) -> str:
    if not isinstance(error, DataError):
        return str(error)
    return f"line {error.line}: {error.reason}" if error.line else error.reason


def _ungraded(content: Recognised) -> str:
    """Return how to read rows of questions and documents without a number, if these should be found; "" of others."""
    names = {key: (column,) for key, column in content.named.items()}
    known = {**DECLARED["run"].names, "text": (*DECLARED["query"].names["text"], "user_input"), **names}
    found = {key: column for key, some in known.items() if (column := _first(some, content.fields))}
    if content.flat in (None, TREC) or "doc" not in found or {"score", "rank"} & found.keys():
        return ""
    asked = found.get("query", "")
    key = "query" if asked and asked not in known["text"] else "text"
    asked = asked or found.get("text", "")
    assert content.flat is not None, "only a table has columns"
    return str(Spec(content.flat.name, ((key, asked), ("expected", found["doc"])))) if asked else ""


def _of_no_kind(content: Recognised) -> Recognised:
    """Return why a file was not recognised, with a spelling in which its records may be readable."""
    assert content.flat is not None, "its records were read"
    shown: list[Fields] = []
    with suppress(DataError):  # a damaged line is named where the file is read
        for record in islice(records_of(content.source, content.flat), _LOOKED_AT):
            shown.append(record.fields)
    spelled = next(filter(None, map(proposed, shown)), [])
    if not spelled:
        inside = _inside(shown) if content.flat in (JSON, JSONL) else ""
        columns = ", ".join(content.fields[:8])
        return replace(content, why=inside or f"judgekit reads no file with these columns: {columns}")
    columns = ", ".join(dict.fromkeys(str(name) for fields in shown for name in [*fields][:8]))
    either = " or ".join(f"{one}:{content.path}" for one in spelled)
    further = ", ".join(key for key in PLACES if f"{key}=" not in spelled[0])
    why = f"no known tool writes its columns ({columns}). Check what this names: {either} (further: {further}, run)"
    return replace(content, why=why, proposed=spelled[0] if len(spelled) == 1 else "")


def _inside(shown: Iterable[Fields]) -> str:
    """Return advice for an object with a list of records; "" for other files."""
    for fields in shown:
        for name, held in fields.items():
            if isinstance(held, list) and held and isinstance(held[0], dict):
                if texts_in(held[0]) is not None:
                    return (
                        f"its {name!r} lists passages, and nothing says what was asked: write a line of JSON for each"
                        ' question, with "query_id", "question" and this list'
                    )
                return (
                    f"it is an object whose {name!r} lists records ({', '.join(map(str, [*held[0]][:8]))}): say which"
                    f" column is which, e.g. json(rows={name},id=…,text=…,answers=…):FILE for questions,"
                    f" json(rows={name},query_id=…,answer=…,run=…):FILE for answers"
                )
    return ""


def _held(content: Recognised) -> tuple[tuple[str, ...], str]:
    """Return a file's possible kinds, and what is wrong with it if there are none."""
    form = content.form
    if form is not None and form.nested and form.narrows is not None:
        seen = [content.told]
        if form.taken is not None and content.flat is not None:
            # The first question may be the one that failed, and lack what the others have.
            seen += [record.fields for record in islice(records_of(content.source, content.flat), _LOOKED_AT)]
        kinds = {kind for fields in seen for kind in form.narrows(fields)}
        return tuple(kind for kind in form.holds if kind in kinds), ""
    held, problem = [], ""
    for kind in form.holds if form is not None and form.nested else DECLARED:
        declared = DECLARED[kind]
        try:
            if content.named.keys() <= declared.names.keys() and _holds(content, kind):
                held.append(kind)
        except NoHeader as error:
            return (), _reason(error)
        except JudgekitError as error:
            # Problems with a column only matter if the file has columns of that kind.
            if not problem and {*chain(*declared.names.values())}.intersection(content.fields):
                problem = _reason(error)
    doubt = _two_numbers(content) if "run" in held and "qrels" not in held else ""
    if doubt:
        return (), doubt
    if {"run", "qrels"} <= {*held} and (len(held) == 2 or not content.nested):
        return ("qrels" if _judges(content) else "run",), problem
    if content.nested:
        return tuple(held), problem
    pairs = [kind for kind in held if kind in ("run", "qrels")]
    others = [kind for kind in held if kind not in pairs]
    # A golden set has its questions beside the documents that should be found, a row each.
    if pairs == ["qrels"] and others and not content.named and not _first(_GRADED, content.fields):
        pairs += [kind for kind in _told_by_names(others, content) if kind != "query" or _asks_once(content)]
    return tuple(pairs or _told_by_names(held, content)), problem


def _asks_once(content: Recognised) -> bool:
    """Return whether each row of a table of questions asks another one."""
    origin, rows = opened(content.source, "query")
    ids = [origin.get(record, "id") for record in rows]
    return len({*ids}) == len(ids)


def _two_numbers(content: Recognised) -> str:
    """Return what to ask of a table of pairs with a grade and a score, which may be either; "" of another."""
    graded = [name for name in DECLARED["qrels"].names["relevance"] if name in content.fields]
    if content.named or content.nested or content.flat is None or len(graded) < 2 or "score" not in graded:
        return ""
    query, doc = (_first(DECLARED["run"].names[key], content.fields) for key in ("query", "doc"))
    spelled = f"{content.flat.name}(query={query},doc={doc}"
    return (
        f"each row has {graded[0]!r} and 'score': these may be judgments or a run. Write"
        f" {spelled},relevance={graded[0]}):{content.path} or {spelled},score=score):{content.path}"
    )


def _holds(content: Recognised, kind: str) -> bool:
    """Return whether the first record has the fields that its kind needs."""
    origin, rows = opened(content.source, kind)
    record = next(rows, None)
    if record is None:
        return False
    # Answers from single passages are not an application's answers.
    if kind == "answer" and not content.nested and {"doc_id", "docid"} & {*record.fields}:
        return False
    if kind == "qrels":
        origin.get(record, "expected")  # a text under this name is no document's id
    return all(any(origin.find(record, key) for key in keys) for keys in DECLARED[kind].needs)


def _told_by_names(kinds: Iterable[str], content: Recognised) -> list[str]:
    """Keep the kinds of a table without pairs that the names of its columns support."""
    held = [*kinds]
    fields, named = {*content.fields}, content.named
    # Ratings; `judgekit init` gives those their ids that name their question by its text.
    if "value" in named or PAIRED & named.keys():
        return ["ratings"] if named.keys() <= _RATING.names.keys() else []
    if "query" in held and "run" in fields and fields & {*RATED}:
        return ["ratings"]
    if {"query_id", "answer"} <= named.keys():
        return ["answer"]
    # A column `run` or `model` marks answers of an application; otherwise answers are references.
    if {"query", "answer"} <= {*held} and DECLARED["answer"].marks & fields:
        return ["answer"]
    if {"query", "doc"} <= {*held}:
        asks, tells = DECLARED["query"].marks & fields, DECLARED["doc"].marks & fields
        if asks and not tells:
            held.remove("doc")
        if tells and not asks:
            held.remove("query")
    if "query" not in held and _only_references(content):
        held.append("references")
    values = fields & {*RATED, "score"} or fields >= PAIRED
    rated = fields & {*_RATING.names["query_id"]} and values and not fields & _TELLS_QUALITY
    return held or (["ratings"] if rated else [])


def _of_runs(content: Recognised, kinds: tuple[str, ...]) -> tuple[tuple[str, ...], str, str]:
    """Tell answers of several runs from reference answers, by a column that distinguishes a question's rows.

    Returns:
        The kinds, the column of the runs, and what to ask.
    """
    named = content.named
    if "run" in named or "run" in content.fields:
        return kinds, named.get("run", "run"), ""
    if "answers" in named:  # the user says that they are references
        return kinds, "", ""
    query_id = named.get("query_id") or named.get("id") or _first(DECLARED["query"].names["id"], content.fields)
    if not query_id:
        return kinds, "", ""
    rows = _cells(content)
    columns = _telling_apart(rows, query_id)
    asked = _ids_of_questions(content, rows) if query_id == "id" and not (columns or named) else ""
    if asked:
        return (), "", asked
    column = _first(NAMES_RUN, columns)
    if column:
        return tuple(kind for kind in kinds if kind in ("answer", "ratings")), column, ""
    if named or not columns or kinds not in (("references",), ("answer", "references")):
        return kinds, "", ""
    answer = _first(DECLARED["query"].names["answers"], content.fields)
    flat = content.flat.name if content.flat is not None else "csv"
    why = (
        f"each question has several rows, which {columns[0]!r} tells apart: these may be answers of runs or reference"
        f" answers. Write {flat}(query_id={query_id},answer={answer},run={columns[0]}):{content.path} or"
        f" {flat}(id={query_id},answers={answer}):{content.path}"
    )
    return (), "", why


def _first(names: Iterable[str], columns: Collection[str]) -> str:
    """Return the first name that a table has, or ""."""
    return next((name for name in names if name in columns), "")


def _ids_of_questions(content: Recognised, rows: pd.DataFrame) -> str:
    """Return what to ask of a table whose `id` numbers its rows, while another id repeats once a run; "" of others."""
    for name in content.fields:
        columns = _telling_apart(rows, name) if name != "id" and name.lower().endswith("id") else []
        if columns:
            flat, path = content.flat.name if content.flat is not None else "csv", content.path
            answer = _first(DECLARED_KINDS["answer"].names["answer"], content.fields)
            return (
                f"{name!r} has the same value in several rows, which {columns[0]!r} tells apart: does it name the"
                f" question, or does 'id'? Write {flat}(query_id={name},answer={answer},run={columns[0]}):{path}"
                f" or {flat}(query_id=id,answer={answer}):{path}"
            )
    return ""


def _cells(content: Recognised) -> pd.DataFrame:
    """Return the cells of a table as texts."""
    import pandas as pd

    assert content.flat is not None, "only a table has columns"
    records = [record.fields for record in records_of(content.source, content.flat)]
    return pd.DataFrame(
        [[str(fields.get(name)) for name in content.fields] for fields in records], columns=content.fields
    )


def _telling_apart(rows: pd.DataFrame, query_id: str) -> list[str]:
    """Return columns with few values that each question has at most once, if questions repeat."""
    columns: list[str] = []
    if rows[query_id].is_unique:
        return columns
    for name in rows.columns.drop(query_id):
        few = 1 < rows[name].nunique() <= len(rows) / 2
        if few and not rows.duplicated([query_id, name]).any():
            columns.append(name)
    return columns


def _only_references(content: Recognised) -> bool:
    """Return whether a table has ids and answers, without columns specific to an application's answers."""
    fields = {*content.fields}
    has_both = all(key in content.named or fields & {*names} for key, names in _REFERENCES.names.items())
    return has_both and not {"run", "depth", "model", *RATED} & fields


def _judges(content: Recognised) -> bool:
    """Return whether rows of query, doc and number are judgments, by the column's name, else by small whole numbers."""
    fields = {*content.fields}
    if content.named:
        return "relevance" in content.named
    if DECLARED["qrels"].marks & fields:
        return True
    # Judgments have no rank; scores beside one may be small whole numbers all the same.
    if {"rank", *NAMES_RUN} & fields or (DECLARED["run"].marks & fields and "score" not in fields):
        return False
    # BEIR calls grades `score`, as runs do, but a retriever's scores are not all 0, 1 or 2.
    origin, rows = opened(content.source, "qrels")
    values = set()
    for record in islice(rows, 1000):
        name = origin.find(record, "relevance")
        values.add(as_number(record.fields[name]) if name else 0.0)
    few = {value for value in values if not math.isnan(value)} <= {*range(-2, 5)}
    return few and (len(values) < 5 or any(part in str(content.source).lower() for part in DECLARED["qrels"].called))


def is_docs(source: str | Path, query_ids: set[str], doc_ids: set[str]) -> bool:
    """Return whether a file of questions or passages holds passages, by its ids, else by its name."""
    origin, rows = opened(source, "query")
    some = {origin.get(record, "id") for record in islice(rows, 1000)}
    asked, told = len(some & query_ids), len(some & doc_ids)
    if asked != told:
        return told > asked
    return any(part in Path(source).name.lower() for part in DECLARED["doc"].called)
