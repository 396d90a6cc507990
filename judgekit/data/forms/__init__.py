"""The forms of data in this field, and the one place that recognises them.

A form is *flat*, a file of records, one query, doc or row each, with the field names of `judgekit.data.fields`; or
*nested*: each record is a question with its passages, answers and so on. Each is one declaration
(`judgekit.registry.DataForm`). judgekit's own are below; users' forms are in the registry (`judgekit.register.form`, in
a notebook cell or a plug-in) and come first, or are functions in a file (``my_forms.py:pairs``). ``init``, ``run``,
``convert`` and Python use this list.

A form is spelled ``name(option=value, ...)``. Options such as ``id=`` and ``text=`` name the fields to read.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, Final

from judgekit.data.fields import DECLARED, QUERY, TABULAR, Source
from judgekit.data.forms.delimited import TREC
from judgekit.data.forms.entry import (
    ENTRY,
    PASSAGE,
    Entry,
    checked_entry,
    content_id,
    fields_by_id,
    hashed,
    is_id,
    is_text_by_id,
    look_like_ids,
    ungrouped,
)
from judgekit.data.forms.joined import split_cells
from judgekit.data.forms.jsons import JSON, JSONL
from judgekit.data.forms.lists import DPR
from judgekit.data.forms.repeated import in_order_of, one_of_several, together
from judgekit.data.forms.tool import PLACES, at, rows_at
from judgekit.data.records import DataRecord, Fields, kind_of
from judgekit.data.streams import Beginning, head, note_read, parquet_parts
from judgekit.data.tables import RATED
from judgekit.errors import DataError, UsageError, not_among
from judgekit.registry import DataForm, register
from judgekit.spec import Spec, run_file, split_file, user_code

__all__ = ["ENTRY", "Beginning", "content_id", "entry_of", "flat_form", "flat_records", "form_named", "forms",
           "in_order", "inside", "nested_form", "prepared", "records", "run_of", "spelled_form", "telling"]  # fmt: skip

Options = Mapping[str, Any]
"""The options in a form's spelling."""
_LOOKED_AT: Final = 20


def forms() -> dict[str, DataForm]:
    """Return all forms by name, in the order in which they are tried: users' come first."""
    # Two dozen modules, needed only for reading files.
    from judgekit.data.forms.own import FORMS

    return _behind_users(FORMS)


def in_order() -> Iterator[DataForm]:
    """Yield the same in their order; a file of plain rows is recognised before the others are loaded."""
    from judgekit.data.forms.flat import FLAT

    first = _behind_users({form.name: form for form in FLAT})
    yield from first.values()
    yield from (form for name, form in forms().items() if name not in first)


def _behind_users(own: Mapping[str, DataForm]) -> dict[str, DataForm]:
    """Return users' forms and then judgekit's own, without those whose names users have taken."""
    return {**register.forms, **own, **register.forms}


def _nested() -> list[DataForm]:
    """Return the nested forms in order, refused ones last."""
    from judgekit.data.forms.refused import REFUSED

    return [*(form for form in forms().values() if form.nested), *REFUSED]


def form_named(name: str) -> DataForm:
    """Return a form: judgekit's, one that is registered, or a function in a user's file (``my_forms.py:pairs``)."""
    file, function = split_file(name)
    if file is not None:
        note_read(Path(file))
        read = vars(run_file(Path(file))).get(function)
        if not callable(read):
            raise UsageError(f"{file} has no function {function!r}")
        # The file may have registered it with the kinds of its records.
        return next((form for form in register.forms.values() if form.read is read), DataForm(name, read))
    if name not in forms():
        register.load()
    if name not in forms():
        raise UsageError(not_among("data format", name, sorted({"auto", "beir", *forms()})))
    return forms()[name]


def spelled_form(spec: Spec) -> DataForm:
    """Return the form that a spelling names, with the places of a question's parts that its options name."""
    form = form_named(spec.name)
    if form.spelled is None or not PLACES.keys() & spec.options.keys():
        return form
    return form.spelled(spec.options)


def flat_form(beginning: Beginning, kinds: Iterable[str] = ()) -> DataForm:
    """Return the flat form of a file, by its beginning; ``kinds`` are the possible ones, () means any except pairs."""
    path, wanted = beginning.path, {*kinds}
    if path.suffix == ".toml":
        raise DataError(f"is an experiment file, by its name; expected {beginning.expected}", path)
    for form in in_order():
        possible = not form.nested and (not form.holds or wanted.intersection(form.holds))
        if possible and beginning.start.startswith(form.begins) and form.marks(beginning):
            return form
    if path.is_dir():
        parquet_parts(path)  # says what it lacks
    if len(wanted) == 1 and wanted <= {*TREC.holds}:
        return TREC  # whose reader names the line
    if not beginning.start:
        raise DataError(f"is empty; expected {beginning.expected}", path)
    begins = "is not a text file"
    if beginning.row.isprintable():
        begins = f"begins with {beginning.row[:40]!r}"
    raise DataError(f"{begins}; expected {beginning.expected}", path, 1)


def records(path: Path, spec: Spec, expected: str) -> tuple[str, Iterator[DataRecord]]:
    """Return the name of a file's flat form and its records."""
    note_read(path)
    form = flat_form(Beginning.of(path, expected)) if spec.name == "auto" else form_named(spec.name)
    if form.nested or form is TREC:
        raise DataError(
            f"is read as {form.name!r}, which has no rows with columns of other names; expected {expected}", path
        )
    return form.name, flat_records(form, path, spec)


def flat_records(form: DataForm, path: Path, spec: Spec) -> Iterator[DataRecord]:
    """Return the records of a flat file."""
    arguments = (path, spec.options) if form.options else (path,)
    from judgekit.data.forms.own import FORMS

    records: Iterator[DataRecord]
    if form in (JSON, JSONL):
        records = form.read(path)
        place = spec.options.get("rows")
        return _unwrapped(path, records, form) if place is None else _placed(path, records, str(place))
    if form is FORMS.get(form.name):
        records = form.read(*arguments)
        return records
    return _own(form, *arguments)


def _placed(path: Path, records: Iterable[DataRecord], place: str) -> Iterator[DataRecord]:
    """Yield the records that stand at a place of a file's objects, which the user names."""
    names: dict[str, None] = {}
    found = False
    for record in records:
        names |= dict.fromkeys(map(str, record.fields))
        for number, row in enumerate(rows_at(record.fields, place)):
            found = True
            yield record.of(row, f"{place}[{number}]")
    if not found:
        raise DataError(f"holds no list of objects at {place!r}; it has: {', '.join(names)}", path)


def _unwrapped(path: Path, records: Iterator[DataRecord], flat: DataForm) -> Iterator[DataRecord]:
    """Yield the records inside of a tool's objects; other records as they are."""
    start = head(path)
    places = [(form, place) for form in _nested() for place in form.rows]
    wrapping = [(form, place) for form, place in places if f'"{place.split(".")[0]}"'.encode() in start]
    if _BY_COLUMN.search(start):
        records = iter(_turned(list(records)))
    if not wrapping:
        yield from _each(path, records)
        return
    # Each member of an object becomes a record; other parts (settings, totals) do not.
    is_one_object = flat is JSON and start.lstrip().startswith(b"{")
    others = []
    for record in records:
        rows: list[DataRecord] = []
        # Other tools use such names differently: sentence-transformers lists documents as `results`.
        if nested_form([record]) is None:
            rows = next(filter(None, (_rows_in(path, record, form, place) for form, place in wrapping)), [])
        if not is_one_object:
            yield from rows or _each(path, [record])
        elif rows:
            yield from rows
            return
        else:
            others.append(record)
    yield from others


def _rows_in(path: Path, record: DataRecord, form: DataForm, place: str) -> list[DataRecord]:
    """Return the records of a form at a place in an object, or []."""
    rows = rows_at(record.fields, place)
    found = []
    for number, row in enumerate(rows):
        found += _parts(path, record.of(row, f"{place}[{number}]"), form)
    # Names such as `details` and `results` say little, so their contents must have the form.
    return found if any(form.marks(row.fields) for row in found[:_LOOKED_AT]) else []


def _each(path: Path, records: Iterable[DataRecord]) -> Iterator[DataRecord]:
    """Return records, those that hold several runs, replies or objects by id in parts."""
    first, records = telling(iter(records))
    known = nested_form(first)
    if known is None and first and all(map(_is_by_id, first[0].fields.items())):
        return _by_id(records)
    if known is None or known[0].each is None:
        return records
    return (part for record in records for part in _parts(path, record, known[0]))


def _is_by_id(member: tuple[str, Any]) -> bool:
    """Return whether a member of an object is a text, or an object with one, under its id."""
    # Names of fields rarely hold digits, and ids rarely lack them.
    name, value = member
    return any(map(str.isdigit, name)) and is_text_by_id(value)


def _by_id(records: Iterable[DataRecord]) -> Iterator[DataRecord]:
    """Yield the queries or docs of an object by id, such as BEIR's ``{"d1": {"title": …, "text": …}}``."""
    for record in records:
        for own, value in record.fields.items():
            yield record.of(fields_by_id(own, value, "id"), repr(own))


def _parts(path: Path, record: DataRecord, form: DataForm) -> list[DataRecord]:
    """Return the records of a record that holds several runs or replies; others as they are."""
    if form.each is None:
        return [record]
    try:
        return [record.of(part, record.inside) for part in form.each(record.fields)]
    except ValueError as error:
        raise DataError(": ".join(filter(None, (record.inside, str(error)))), path, record.line) from None


_BY_COLUMN: Final = re.compile(rb'"(?:questions?|query|queries|user_input|input)"\s*:\s*\[\s*"')


def _turned(records: list[DataRecord]) -> list[DataRecord]:
    """Return the rows of an object of equally long column lists; other records as they are."""
    columns: dict[str, Any] = {}
    for record in records:
        columns |= record.fields
    lengths = {len(values) if isinstance(values, list) else -1 for values in columns.values()}
    members = sum(len(record.fields) for record in records)
    if len(lengths) != 1 or -1 in lengths or len(columns) < 2 or members != len(columns):
        return records
    rows = zip(*columns.values(), strict=True)
    return [records[0].of(dict(zip(columns, row, strict=True)), f"[{number}]") for number, row in enumerate(rows)]


def _own(form: DataForm, path: Path, *options: Options) -> Iterator[DataRecord]:
    with user_code(lambda: f"{path}, read as {form.name}", _file_of(form.read)):
        yield from starmap(DataRecord, form.read(path, *options))


def _file_of(function: Any) -> str:
    return function.__code__.co_filename if inspect.isfunction(function) else ""


def telling(rows: Iterator[DataRecord]) -> tuple[list[DataRecord], Iterator[DataRecord]]:
    """Return enough first records to tell their form, and all records."""
    first: list[DataRecord] = []
    for record in islice(rows, _LOOKED_AT):
        first.append(record)
        # An empty list tells little: nothing was found for that question.
        if not any(isinstance(value, list) and not value for value in record.fields.values()):
            break
    return first, chain(first, rows)


def nested_form(first: Iterable[DataRecord]) -> tuple[DataForm, Fields] | None:
    """Return the nested form of the first records, and the fields that reveal it; None if they are flat."""
    nested = _nested()
    for record in first:
        for form in nested:
            if form.marks(record.fields):
                return form, record.fields
    return None


_NOT_ASKED: Final = ("answer", "ctxs", "gold", "run", "sources", "titles")
_OF_THE_QUESTION: Final = ("score", "hasanswer", "has_answer", "rank")


def entry_of(form: DataForm, entries: Source, record: DataRecord, options: Options | None = None) -> Entry:
    """Return the contents of a nested record, with its line in every error."""
    fields = dict(record.fields)
    if entries.format in TABULAR:
        # A list that is not read may have any spelling.
        left = {name for name, role in form.taken(fields).items() if not role} if form.taken is not None else ()
        for name in form.lists:
            if isinstance(fields.get(name), str) and name not in left:
                fields[name] = entries.cell(record, name, fields[name], python=True)
    with user_code(lambda: f"{entries.path or 'a record'}, read as {form.name}", _file_of(form.read)):
        try:
            entry = checked_entry(form.read(fields))
            spelled = f"{form.name}(alternatives={{}}):{entries.path or 'FILE'}"
            return {**entry, "gold": ungrouped(entry.get("gold", ()), (options or {}).get("alternatives"), spelled)}
        except ValueError as error:
            raise entries.error(record, str(error)) from None
        except KeyError as error:  # the first record told the form
            raise entries.error(record, f"is not a record of the form {form.name!r}: it lacks {error}") from None
        except TypeError:
            raise entries.error(record, f"is not a record of the form {form.name!r}") from None


def prepared(form: DataForm, source: Source, records: Iterable[DataRecord], options: Options) -> Iterable[DataRecord]:
    """Return nested records as their form means them: rows of a question together, one of several, cells split."""
    if form.together:
        records = together(form, records)
    if "queries" in options and "queries" in form.options:
        records = in_order_of(str(options["queries"]), source, records)
    if form.apart:
        records = one_of_several(form, source, records, options)
    if form.mark:
        records = split_cells(form, source, records, options.get("split"))
    return records


def inside(
    form: DataForm, source: Source, records: Iterable[DataRecord], kind: str, options: Options | None = None
) -> tuple[Source, Iterator[DataRecord]]:
    """Return the records of one kind inside of nested records, and the places of their fields."""
    options = options or {}
    records = prepared(form, source, records, options)
    names = source.names
    if kind == "query":
        named = {key: columns for key, columns in names.items() if columns is not QUERY.get(key)}
        names = {**names, **ENTRY, **named}
    source = replace(source, names=names, form=form.name)
    return source, _unfolded(form, source, records, kind, options)


def _unfolded(
    form: DataForm, source: Source, records: Iterable[DataRecord], kind: str, options: Options
) -> Iterator[DataRecord]:
    entries = source if kind == "query" else source.of(ENTRY, "entry")
    asked = _Asked(entries)
    said = options.get("passages")
    if said not in (None, "ids", "texts"):
        raise UsageError(f"format '{form.name}(passages={said})': expected passages=ids or passages=texts")
    looked = "passages" not in form.options or said is not None
    for record in records:
        entry = entry_of(form, entries, record, options)
        for query, doc, number in entry.get("rows", ()):
            yield record.of({"query_id": query, "doc_id": doc, DECLARED[kind].number: number}, repr(query))
        for fields in entry.get("by_kind", {}).get(kind, ()):
            yield record.of(fields)
        if "rows" in entry or "by_kind" in entry:
            continue
        if not looked and entry.get("ctxs"):
            _ask_about_ids(entries, record, form, entry["ctxs"])
            looked = True
        if said == "ids":
            entry["ctxs"] = [{"id": passage.get("text")} for passage in entry.get("ctxs", ())]
        run = run_of(entry, record, options)
        named = {} if run is None else {"run": run}
        query_id, again = asked.named(record, entry, None if run is None else str(run))
        if kind in ("query", "qrels") and again:  # another run's list for the same question
            continue
        if kind == "query":
            if "question" in entry and entry["question"] is None and not entry.get("messages"):
                raise _unasked(entries, record)
            question = {name: value for name, value in entry.items() if form is DPR or name not in _NOT_ASKED}
            yield record.of({**question, "query_id": query_id})
        elif kind == "answer":
            rated = {name: record.fields[name] for name in RATED if name in record.fields}
            yield record.of({"query_id": query_id, "answer": entry.get("answer"), **named, **rated})
        elif kind == "qrels":
            for doc, grade in entry.get("gold", ()):
                title = entry.get("titles", {}).get(doc, "")
                yield record.of({"query_id": query_id, "doc_id": doc, "relevance": grade, "title": title})
        elif kind == "run":
            for rank, (doc, passage) in enumerate(_passages(entries, record, entry.get("ctxs")), 1):
                row = {"query_id": query_id, "doc_id": doc, "score": passage.fields.get("score"), "rank": rank}
                yield passage._replace(fields=row | named)
        else:
            for listed in (entry.get("ctxs"), entry.get("sources", [])):
                for doc, passage in _passages(entries, record, listed):
                    # Facts about a passage for one question are not facts about the passage.
                    kept = {name: value for name, value in passage.fields.items() if name not in _OF_THE_QUESTION}
                    yield passage._replace(fields={**kept, "doc_id": doc})


def run_of(entry: Entry, record: DataRecord, options: Options) -> Any:
    """Return the name of an entry's run: what the form says, or the column that the user names; None without one."""
    if "run" not in options:
        return entry.get("run", record.fields.get("run"))
    named = at(record.fields, str(options["run"]))
    return str(named) if is_id(named) else named


def _ask_about_ids(entries: Source, record: DataRecord, form: DataForm, passages: Sequence[Any]) -> None:
    """Refuse passages that look like ids: labeled as texts they would all be nonsense."""
    if isinstance(passages, list) and look_like_ids(passages):
        place, shown = entries.path or "FILE", passages[0]["text"]
        raise entries.error(
            record,
            f"the passages look like ids ({shown!r}): write {form.name}(passages=ids):{place} if they are, or"
            f" {form.name}(passages=texts):{place} if they are texts",
        )


def _unasked(entries: Source, record: DataRecord) -> DataError:
    """Return the error for a record whose question is null, or stands under a name that nobody knows."""
    names = (*ENTRY["text"], "user_input", "input")
    null = next((name for name in names if name in record.fields), "")
    if null:
        return entries.error(record, f"{null!r} must be a text, not {kind_of(record.fields[null])}")
    have = ", ".join(map(repr, record.fields))
    place = entries.path or "FILE"
    hint = f"name its column, {entries.form}(question=…):{place}, or add one ('question')"
    return entries.error(record, f"this record lacks the question; it has: {have}. If it is there, {hint}")


class _Asked:
    """The ids of a file's questions; each run of the file may hold each once."""

    def __init__(self, entries: Source) -> None:
        self.entries = entries
        self.times = Counter[str]()
        self.lines = defaultdict[str, dict[str | None, int]](dict)

    def named(self, record: DataRecord, entry: Entry, run: str | None) -> tuple[str, bool]:
        """Return the id of an entry's question, and whether another run of the file had it before."""
        whole = record.of(entry)
        if entry.get("question") is None and "question" in entry and not self.entries.find(whole, "id"):
            raise _unasked(self.entries, record)
        if self.entries.find(whole, "id"):
            query_id = str(self.entries.get(whole, "id"))
        else:
            query_id = hashed("q", self.entries.get(whole, "text"))
            # Without names of runs, a repeated question is asked twice.
            self.times[query_id] += run is None
            if run is None and self.times[query_id] > 1:
                query_id += f"-{self.times[query_id]}"
        lines = self.lines[query_id]
        first = lines.setdefault(run, record.line)
        if run is not None and first != record.line:
            reason = f"run {run!r} has the same question twice (first on line {first}): keep one of them"
            raise self.entries.error(record, reason)
        return query_id, run is not None and run != next(iter(lines))


def _passages(source: Source, record: DataRecord, passages: object) -> Iterator[tuple[str, DataRecord]]:
    """Yield the passages of an entry with their ids."""
    if not isinstance(passages, list):
        raise source.error(record, f"'ctxs' must be a list of passages, not {kind_of(passages)}")
    inner = source.of(PASSAGE, "passage")
    for position, fields in enumerate(passages):
        passage = record.of(fields, f"ctxs[{position}]")
        if not isinstance(fields, dict):
            raise inner.error(passage, f"expected a JSON object, found {kind_of(fields)}")
        if inner.find(passage, "id"):
            doc_id = inner.get(passage, "id")
        else:
            doc_id = content_id(inner.get(passage, "title") or "", inner.get(passage, "text"))
        yield doc_id, passage
