"""Data that belong together although their files do not say so: by the texts of questions, or the names of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pandas as pd

from judgekit.data.documents import Doc, Docs, MemoryDocs, Queries, render
from judgekit.data.fields import DECLARED, QUERY, TABULAR, Source
from judgekit.data.files import read_table
from judgekit.data.forms import ENTRY, entry_of, prepared, run_of
from judgekit.data.forms.entry import content_id, hashed, is_content_id
from judgekit.data.frames import one_by_one
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.recognise import records_of
from judgekit.data.records import DataRecord
from judgekit.data.runs import Run
from judgekit.data.sources import opened, stem
from judgekit.data.tables import ALL, ANSWERS, RATED
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, nearest
from judgekit.setup.inputs import IMPORTED, Files, Input, question_column
from judgekit.setup.runs import FoundRuns
from judgekit.spec import Spec, form_of, slug

_OF_ANSWERS: Final = {"answer", "ratings"}
_NOT_OF_A_NAME: Final = re.compile(r"[\W_]+")
"""What two spellings of a run may differ in: ``BM25 (base)`` and ``bm25-base``."""


def folded(text: str) -> str:
    """Return what two spellings of one question share."""
    return " ".join(text.split()).casefold()


def runs_meant(names: Iterable[str], runs: Collection[str]) -> dict[str, str]:
    """Return the run that each name means, by letters and digits alone; nothing of one that may mean two, or none."""
    spelled: dict[str, list[str]] = {}
    for run in runs:
        spelled.setdefault(_letters(run), []).append(run)
    meant: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name not in runs, name)):
        # A sheet's `BM25 Base` is the run of `bm25-base.json`; of `bm25` and `BM-25` nobody knows which is meant.
        alike = [name] if name in runs else spelled.get(_letters(name), [])
        if len(alike) == 1 and alike[0] not in meant.values():
            meant[name] = alike[0]
    return meant


def _letters(name: str) -> str:
    return _NOT_OF_A_NAME.sub("", stem(name).casefold())


def not_meant(names: Collection[str], runs: Collection[str]) -> str:
    """Return what to say of names that mean no run, both sides and the nearest; "" where all do."""
    odd = sorted({*names} - {ALL} - runs_meant(names, runs).keys())
    if not odd:
        return ""
    whose = f"its runs are {', '.join(sorted(names))}, and those of the files {', '.join(sorted(runs))}"
    return f"{whose}.{nearest(odd[0], runs)}"


def give_tables_ids(files: Files) -> None:
    """Give tables that name questions by their texts alone the ids of these."""
    tables = [file for file in files.all if question_column(file)]
    ids: dict[str, str] = {}
    known = False
    for file in files.of("query") if tables else ():
        known = known or not file.nested
        for query_id, query in (files.read(file, "query", read_queries) or {}).items():
            ids.setdefault(folded(query.text), query_id)
    for file in tables:
        _give_table_ids(files, file, ids, known=known)


def _give_table_ids(files: Files, file: Input, ids: Mapping[str, str], *, known: bool) -> None:
    """Write a table again with the ids of its questions, by their texts; ``known`` where another has the questions."""
    column, named = question_column(file), dict(file.content.named)
    # Beside ratings, or again, the question would make the table one of questions.
    without = known or bool({"value", "expected"} & {*named}) or bool({*RATED}.intersection(file.content.fields))
    if without:
        named.pop("text", None)
    unknown, file.why = file.why, ""
    records = files.read(file, "query", partial(_records, file))
    rows, lines = [], []
    for line, fields in records or ():
        query_id = ids.get(folded(str(fields.get(column) or "")))
        if query_id is not None:
            kept = {name: cell for name, cell in fields.items() if not (without and name == column)}
            rows.append({"query_id": query_id, **kept})
            lines.append(line)
    if not rows:
        file.why = file.why or unknown
        if ids and records:
            _say_strange(files, file, str(records[0][1].get(column)))
        return
    copy = _add_copy(files, file, rows, named, lines)
    if not copy.kinds:
        # No reader takes the rows with their ids either: the user knows only the file that they came from.
        files.withdraw(copy)
        file.why = unknown or copy.why
        return
    file.taken.append(
        f"{len(rows):,} rows whose questions were found by their text: written to {copy.name} with their ids"
    )
    left_out = len(records) - len(rows)
    if left_out:
        files.cautions.append(
            f"{file.name}: {left_out:,} of its {len(records):,} rows are left out, since no other file holds their"
            " questions"
        )


def _say_strange(files: Files, file: Input, first: str) -> None:
    """Say that a table asks none of the questions, which is known once their texts are compared."""
    why = f"none of its rows asks one of the questions, by their texts; its first asks {first[:60]!r}"
    file.why, file.strange = f"not used: {why}", True
    files.cautions.append(f"{file.name} is not used: {why}")


def _records(file: Input, given: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows of a table, each behind its line."""
    assert file.content.flat is not None, "only a table is written again"
    return [(record.line, dict(record.fields)) for record in records_of(given, file.content.flat)]


def _is_table(file: Input) -> bool:
    return file.content.flat is not None and file.content.flat.name in TABULAR


def _add_copy(
    files: Files,
    file: Input,
    rows: list[dict[str, Any]],
    named: Mapping[str, str],
    lines: Sequence[int] = (),
    *,
    name: str = "",
    as_it_is: bool = False,
) -> Input:
    """Add a file again with other rows, from these lines of it, and the names of its columns by option.

    ``as_it_is`` keeps the form, also a nested one, of which the names are options.
    """
    ending = "jsonl"
    holds_lists = file.content.form is not None and file.content.form.together
    if _is_table(file) and not holds_lists and (as_it_is or not file.nested):
        ending = "csv"  # whose cells are texts, as those of the file
    if ending == "csv":
        text = pd.DataFrame(rows).to_csv(index=False)
    else:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    copy = files.add_written(f"{IMPORTED}/{name or file.stem}.{ending}", text)
    copy.form = str(Spec(ending, tuple(named.items()))) if named else ""
    if as_it_is:
        copy.form = _form_again(file, named)
    copy.named = file.named
    if lines:
        copy.origin = file, lines
    copy.look()
    files.all.append(copy)
    return copy


def _form_again(file: Input, named: Mapping[str, str]) -> str:
    """Return the form of a copy of nested records, which stand on lines of their own there."""
    spec, form = form_of(file.given)[0], file.content.form
    assert form is not None, "its records have a form"
    options = {key: str(value) for key, value in spec.params if key in form.options} | {**named}
    # Without options its content tells the form, as it told that of a file or a sheet.
    return str(Spec(form.name, tuple(options.items()))) if options or spec.name == form.name else ""


def give_runs_files(files: Files) -> None:
    """Write each run of a file that holds several into a file of its own, in the form that it has."""
    for file in list(files.all):
        if not (file.nested and "run" in file.kinds) or file.content.form is None or file.content.flat is None:
            continue
        origin, options = Source(file.path, file.content.flat.name, ENTRY, "entry"), form_of(file.given)[0].options
        by_run: dict[str, list[DataRecord]] = {}
        asked: list[tuple[object, str]] = []
        try:
            every = records_of(file.given, file.content.flat)
            for record in prepared(file.content.form, origin, every, options):
                entry = entry_of(file.content.form, origin, record)
                run = run_of(entry, record, options)
                query_id, question = entry.get("query_id"), entry.get("question")
                # A list without its question is told apart by its id, or by its place.
                text = str(query_id or len(asked)) if question is None else folded(str(question))
                asked.append((query_id, text))
                by_run.setdefault("" if run is None else str(run), []).append(record)
        except DataError:  # which is told where the file is read
            continue
        if len(by_run) < 2 or "" in by_run:
            file.run = next(iter(by_run), "")
            doubt = _ids_of_rows(asked)
            if doubt:
                files.problems.append(f"{file.name}: {doubt}")
            column = _telling_runs([text for _, text in asked], by_run.get("", []))
            if column and "run" not in options:
                spelled = f"'{file.content.form.name}(run={column}):{file.path}'"
                files.cautions.append(
                    f"{file.name}: each question stands in several rows, which {column!r} tells apart, and is taken as"
                    f" asked several times of one run. If {column!r} names runs: {files.naming(spelled)}"
                )
            continue
        copies = []
        for run, records in by_run.items():
            rows = [dict(record.fields) for record in records]
            lines = [record.line for record in records]
            copy = _add_copy(files, file, rows, {}, lines, name=slug(run), as_it_is=True)
            copy.run = run
            copies.append(copy)
        file.tell_nested()
        file.kinds = []
        file.taken.append(f"{len(copies)} runs, each written to a file: {', '.join(copy.name for copy in copies)}")


def _telling_runs(texts: Sequence[str], records: Sequence[DataRecord]) -> str:
    """Return the column that tells the rows of each question apart, of few values and the same for all; "" if none."""
    questions = len({*texts})
    if not records or len(records) == questions:
        return ""
    for name in [name for name in records[0].fields if name not in QUERY["id"]]:
        values = [str(record.fields.get(name)) for record in records]
        named = len({*values})
        if named * questions == len(records) and len({*zip(texts, values, strict=True)}) == len(records):
            return str(name)
    return ""


def _ids_of_rows(asked: Sequence[tuple[object, str]]) -> str:
    """Return what to say of a file whose ids are those of its rows, since its questions repeat; "" of others."""
    ids, texts = {query_id for query_id, _ in asked}, {text for _, text in asked}
    if None in ids or len(ids) < len(asked) or 2 * len(texts) > len(asked):
        return ""
    return (
        f"its {len(asked):,} rows ask {len(texts):,} questions, but no two share an id ({asked[0][0]!r}), so that"
        " the ids are those of rows. If each row is the answer of a run, name the run in a column 'run', or write each"
        " run into a file of its own; otherwise leave the ids out"
    )


_OF_RUNS: Final = {"doc": f"{IMPORTED}/passages-of-runs.jsonl", "query": f"{IMPORTED}/questions-of-runs.jsonl"}
"""The files of what rows of runs hold."""


def give_runs_texts(files: Files, found: FoundRuns) -> None:
    """Write the passages, and the questions, that rows of runs hold, where no other file has any."""
    files_of = [file for file in found.files.values() if not file.nested and file.content.flat is not None]
    read: dict[str, dict[str, dict[str, str]]] = {}
    for kind in ("doc", "query"):
        if not files.of(kind):
            read[kind] = {}
    for file in files_of if read else ():
        named = {kind: _text_column(file, kind) for kind in read}
        if not any(named.values()):
            continue
        file.elsewhere = {column: _OF_RUNS[kind] for kind, column in named.items() if column}
        origin, rows = opened(file.given, "run")
        for record in rows:
            for kind in filter(named.get, read):
                own, text = origin.get(record, kind), str(record.fields.get(named[kind]) or "")
                if not text:
                    continue
                held = {f"{kind}_id": own, "text": text}
                if kind == "doc" and record.fields.get("title"):
                    held["title"] = str(record.fields["title"])
                if read[kind].setdefault(own, held) != held:
                    files.problems.append(
                        f"{file.at_line(record.line)}: {kind} {own!r} has a different title or text than before"
                    )
                    return
    for kind, name in _OF_RUNS.items():
        if read.get(kind):
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in read[kind].values())
            copy = files.add_written(name, text)
            copy.look()
            copy.kinds = [kind]
            files.all.append(copy)


def _text_column(file: Input, kind: str) -> str:
    """Return the column of a run's rows with the text of the passage, or of the question; "" without one."""
    asked = next((name for name in ("question", "query") if name in file.content.fields), "")
    if asked in file.content.named.values():
        asked = ""
    if kind == "query":
        return asked
    return next((name for name in DECLARED["doc"].names["text"] if name in file.content.fields), "")


def give_runs_names(files: Files, runs: Collection[str]) -> None:
    """Give tables of answers and ratings the names that runs have by their files, where these are meant."""
    for file in list(files.all):
        held = _OF_ANSWERS.intersection(file.kinds)
        column = file.content.run or "run"
        if not held or column not in file.content.fields:
            continue
        try:
            records = _records(file, file.given)
        except DataError:  # which is told where the table is read
            continue
        rows = [fields for _, fields in records]
        names = {str(row[column]) for row in rows if row.get(column)} - {ALL}
        meant = runs_meant(names, runs)
        # Where one name means no run, the table is told as it is: half of it renamed would hide what is wrong.
        file.problem = not_meant(names, runs)
        if names <= {*runs} or file.problem:
            continue
        for row in rows:
            row[column] = meant.get(str(row.get(column)), row.get(column))
        copy = _add_copy(files, file, rows, file.content.named, [line for line, _ in records])
        copy.drop(*{*copy.kinds} - held)
        file.drop(*held)
        told = ", ".join(f"{name} is {run}" for name, run in sorted(meant.items()) if name != run)
        file.taken.append(f"its runs are those of the files ({told}): written to {copy.name} with their names")


def give_results_ids(files: Files, found: FoundRuns) -> FoundRuns:
    """Give results the ids of a table with the same questions, and one id to passages that several have."""
    results = [name for name, file in found.files.items() if "query" in file.kinds]
    runs, run_files = {**found.runs}, {**found.files}
    tables: list[tuple[Input, dict[str, str]]] = []
    for table in files.of("query") if results else ():
        queries = None if table.nested else files.read(table, "query", read_queries)
        if queries is not None:
            tables.append((table, {folded(query.text): query_id for query_id, query in queries.items()}))
    passages: dict[tuple[str, str], str] = {}
    earlier: list[tuple[Input, dict[str, str]]] = []
    for name in results:
        file, run = run_files[name], runs[name]
        docs = read_docs(file.given) if "doc" in file.kinds else MemoryDocs([])
        result = _Result(file, run, files.read(file, "query", read_queries) or {}, docs)
        if "doc" not in file.kinds:
            if result.joined(tables):
                copy = result.with_ids(files)
                runs[name], run_files[name] = read_run(copy.given, name), copy
        elif result.joined([*tables, *earlier]) or result.named_apart(passages):
            copy, added = result.rewritten(files, passages)
            passages |= added
            runs[name], run_files[name] = read_run(copy.path, name), copy
        else:
            # A tool may number the questions of each file anew: then the first file's ids are taken.
            earlier.append((file, {folded(query.text): query_id for query_id, query in result.queries.items()}))
            passages |= {(doc.title, doc.text): doc.doc_id for doc in result.retrieved}
    return FoundRuns(runs, run_files)


def give_judgments_ids(files: Files, runs: FoundRuns, queries: Queries, docs: Docs) -> None:
    """Give judgments the ids that the same questions and passages have elsewhere; those that no run found are kept."""
    for file in [file for file in files.of("qrels") if file.nested]:
        labeling = files.read(file, "qrels", read_qrels)
        if labeling is None:
            continue
        table = labeling.table[["query_id", "doc_id", "relevance"]]
        query_ids = _ids_of_questions(file, queries)
        doc_ids = _ids_of_texts({*table["doc_id"]}, docs) | _ids_of_found(file, {*table["doc_id"]}, runs, docs)
        grades: dict[tuple[str, str], float] = {}
        texts, strange = 0, 0
        for query_id, doc_id, relevance in table.itertuples(index=False, name=None):
            own = query_ids.get(query_id, query_id), doc_ids.get(doc_id, doc_id)
            texts += own != (query_id, doc_id)
            if own[0] not in queries:
                strange += 1
            elif grades.setdefault(own, relevance) != relevance:
                low, high = sorted((grades[own], relevance))
                twice = f"{own[1]!r} for query {own[0]!r} has the grades {low:g} and {high:g}"
                files.problems.append(f"{file.name}: {twice}: keep one of them")
        if not texts or not grades:
            continue
        rows = [{"query_id": query, "doc_id": doc, "relevance": grade} for (query, doc), grade in grades.items()]
        of_run = run_with_gold(file, runs)
        copy = _add_copy(files, file, rows, {}, name=f"gold-{slug(of_run)}" if of_run else "")
        copy.run = of_run
        file.taken.append(f"{len(rows):,} judgments, found by their texts: written to {copy.name} with their ids")
        file.drop("qrels")
        if strange:
            files.cautions.append(
                f"{file.name}: {strange:,} of its {len(table):,} judgments are left out, since no other file holds"
                " their questions"
            )
        unknown = sum(is_content_id(doc) and doc not in docs for _, doc in grades)
        if unknown:
            files.cautions.append(
                f"{file.name}: no other file holds the texts of the passages of {unknown:,} of its {len(table):,}"
                " judgments: these count as passages that no run found"
            )


def run_with_gold(file: Input, runs: FoundRuns) -> str:
    """Return the run that a file of judgments holds as well, or held before it was written again; "" of others."""
    if file.run or "run" not in file.content.kinds:
        return file.run
    return next(iter(sorted(runs.of(file))), file.stem)


def _ids_of_questions(file: Input, queries: Queries) -> dict[str, str]:
    """Return the ids that the questions of a file have among others, by those that they have in the file."""
    ids = {hashed("q", query.text): query_id for query_id, query in queries.items()}
    if "query" not in file.content.kinds:
        return ids
    by_text = {folded(query.text): query_id for query_id, query in queries.items()}
    with suppress(DataError):  # its judgments are read all the same
        for query_id, query in read_queries(file.given).items():
            if query_id not in queries and folded(query.text) in by_text:
                ids[query_id] = by_text[folded(query.text)]
    return ids


def _ids_of_texts(made: set[str], docs: Docs) -> dict[str, str]:
    """Return the ids of the documents of whose texts some ids were made; read only where the collection lacks these."""
    found: dict[str, str] = {}
    unknown = {doc_id for doc_id in made if is_content_id(doc_id) and doc_id not in docs}
    for doc in one_by_one(docs) if unknown else ():
        # Judges are shown the text alone, or behind its title.
        for doc_id in (content_id(doc.title, doc.text), content_id("", doc.text), content_id("", render(doc))):
            if doc_id in unknown:
                found.setdefault(doc_id, doc.doc_id)
    return found


def _ids_of_found(file: Input, judged: set[str], runs: FoundRuns, docs: Docs) -> dict[str, str]:
    """Return the ids that runs have for judged passages which the file itself names otherwise, by their texts."""
    found = set(chain.from_iterable(run.doc_ids for run in runs.runs.values()))
    # The ids of a file that was written again are not those of its run.
    again = "run" in file.content.kinds and file not in runs.files.values()
    unmet = judged if again else judged - found
    texts = {}
    with suppress(DataError):  # it holds ids alone
        own = read_docs(file.given)
        texts = {doc.doc_id: (doc.title, doc.text) for doc in own.get(sorted(doc for doc in unmet if doc in own))}
    if not texts:
        return {}
    # Two passages of a collection may have the same text; only ids made of texts, or given anew, are no ids of a user.
    named = {(doc.title, doc.text): doc.doc_id for doc in docs.get(sorted(found)) if again or is_content_id(doc.doc_id)}
    return {doc_id: named[text] for doc_id, text in texts.items() if text in named}


@dataclass
class _Result:
    """What a pipeline returned: its questions, the passages that it found and what was answered.

    Attributes:
        table: another file with the same questions.
        ids: its ids, by the texts of the questions.
    """

    file: Input
    run: Run
    queries: Queries
    docs: Docs
    table: Input | None = None
    ids: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def retrieved(self) -> Sequence[Doc]:
        """The passages that it found."""
        return self.docs.get(sorted({*self.run.doc_ids}))

    def joined(self, tables: Iterable[tuple[Input, Mapping[str, str]]]) -> bool:
        """Look for the table that has the same questions under other ids; return whether there is one."""
        texts = {folded(query.text) for query in self.queries.values()}
        for table, ids in tables:
            if len(texts & ids.keys()) > len(texts & self.ids.keys()):
                self.table, self.ids = table, ids
        # One id in common says that the ids are the table's; few questions in common that it is another's.
        if self.queries.keys() & {*self.ids.values()} or 2 * len(texts & self.ids.keys()) <= len(texts):
            self.table, self.ids = None, {}
        return self.table is not None

    def named_apart(self, passages: Mapping[tuple[str, str], str]) -> bool:
        """Return whether most passages that earlier results hold as well have another id there."""
        # LlamaIndex numbers its nodes anew with each index: the same passage would be labelled and counted twice.
        shared = [doc for doc in self.retrieved if (doc.title, doc.text) in passages]
        apart = [doc for doc in shared if passages[doc.title, doc.text] != doc.doc_id]
        return 2 * len(apart) > len(shared)

    def with_ids(self, files: Files) -> Input:
        """Write results that hold ids of passages again, in their form, with the ids of the table's questions."""
        file, form, flat = self.file, self.file.content.form, self.file.content.flat
        assert self.table is not None, "it joins a table"
        assert form is not None, "results have a form"
        assert flat is not None, "results have a form"
        origin = Source(file.path, flat.name, ENTRY, "entry")
        rows, lines, named = [], [], {}
        for record in records_of(file.given, flat):
            query_id = self.ids.get(folded(str(entry_of(form, origin, record).get("question"))))
            if query_id is not None:
                rows.append({**record.fields, "query_id": query_id})
                lines.append(record.line)
                # Some tools keep the id of a question elsewhere.
                if form.spelled is not None and entry_of(form, origin, record.of(rows[-1])).get("query_id") != query_id:
                    named = {"id": "query_id"}
        copy = _add_copy(files, file, rows, named, lines, as_it_is=True)
        copy.drop("query")
        file.taken.append(
            f"results for {len(rows):,} questions of {self.table.name}, found by their text: written to {copy.name}"
            " with their ids"
        )
        file.tell_nested()
        file.kinds = []
        return copy

    def rewritten(
        self, files: Files, earlier: Mapping[tuple[str, str], str]
    ) -> tuple[Input, dict[tuple[str, str], str]]:
        """Write the result again, with the ids of the table's questions and of earlier results' passages.

        Second: the ids of the passages that no earlier result has. Two passages of one result keep two ids, also where
        their texts are the same.
        """
        file, rows, answers = self.file, [], {}
        given: set[str] = set()
        added: dict[tuple[str, str], str] = {}
        if "answer" in file.kinds:
            table = files.read(file, "answer", partial(read_table, ANSWERS))
            answers = {} if table is None else {row.pop("query_id"): row for row in table.to_dict("records")}
        retrieved = {*self.run.query_ids}
        for query_id, query in self.queries.items():
            documents: dict[str, dict[str, str]] = {}
            for doc in self.docs.get(self.run.top(query_id) if query_id in retrieved else []):
                doc_id = earlier.get((doc.title, doc.text), doc.doc_id)
                if doc_id in documents:
                    doc_id = doc.doc_id
                documents[doc_id] = {"id": doc_id, "title": doc.title, "text": doc.text}
                if doc.page_id:
                    documents[doc_id]["page_id"] = doc.page_id
                if (doc.title, doc.text) not in earlier:
                    added.setdefault((doc.title, doc.text), doc_id)
            own = self.ids.get(folded(query.text), query_id)
            if own in given:
                continue
            given.add(own)
            row = {"query_id": own, "question": query.text}
            rows.append({**row, "documents": [*documents.values()], **answers.get(query_id, {})})
        copy = _add_copy(files, file, rows, {})
        copy.content = replace(file.content, told=file.as_read())
        copy.kinds = file.kinds
        copy.drop("query", "qrels")
        same = "results whose passages others have under other ids"
        if self.table is not None:
            matched = len({folded(query.text) for query in self.queries.values()} & self.ids.keys())
            same = f"results for {matched:,} questions of {self.table.name}, found by their text"
            if not self.table.nested:
                self.table.kinds = ["query"]
        if len(rows) < len(self.queries):
            again = len(self.queries) - len(rows)
            files.cautions.append(
                f"{file.name}: {again:,} of its {len(self.queries):,} rows ask a question again, and only the first of"
                " each is used"
            )
        file.taken.append(f"{same}: written to {copy.name} with their ids")
        # Its judgments get their ids later, from all runs.
        file.drop("doc", "run", "answer", *([] if self.table is None else ["query"]))
        file.tell_nested()
        return copy, added


def references_of(source: str | Path) -> dict[str, tuple[str, ...]]:
    """Return the reference answers of a table, by the id of their question."""
    origin, rows = opened(source, "query")
    references: dict[str, tuple[str, ...]] = {}
    for record in rows:
        query_id: str = origin.get(record, "id")
        references[query_id] = (*references.get(query_id, ()), *(origin.get(record, "answers") or ()))
    return references
