"""The questions among the files of `judgekit init`: those of the best file, with additions from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from judgekit.data.documents import Queries, Query
from judgekit.data.fields import QUERY
from judgekit.data.readers import read_queries
from judgekit.data.recognise import is_docs
from judgekit.data.tables import RATED
from judgekit.setup.inputs import IMPORTED, Files, Input
from judgekit.setup.joined import references_of
from judgekit.setup.runs import FoundRuns

JOINED: Final = f"{IMPORTED}/questions.jsonl"
"""The questions of several files."""
_HOLDS_REFERENCES: Final = ("reference", "gold", "truth", "expected")
"""Names of files of reference answers, if nothing else decides."""


@dataclass(frozen=True)
class FoundQuestions:
    """The questions.

    Attributes:
        file: their file.
        queries: the questions by id.
        joined: whether other files added questions or references.
    """

    file: Input
    queries: Queries
    joined: bool = False

    def completed(
        self, file: Input, kind: str, references: Mapping[str, Sequence[str]], new: Queries | None = None
    ) -> FoundQuestions | None:
        """Return them with new ones and missing references added; None if a file adds nothing."""
        answered: dict[str, Query] = {}
        for query_id, query in self.queries.items():
            if not query.answers and references.get(query_id):
                answered[query_id] = replace(query, answers=tuple(references[query_id]))
        if new:
            file.take(kind, f"more questions: {_counted(new)}; all are written to {JOINED}")
        elif answered:
            file.take(kind, f"reference answers to {len(answered):,} questions, written to {JOINED}")
        else:
            return None
        return FoundQuestions(self.file, {**self.queries, **answered, **(new or {})}, joined=True)

    def asked(self, files: Files, runs: FoundRuns) -> Queries:
        """Return the questions of the experiment: those in the runs, or all if these are at least half of them."""
        queries, ids, cautions = self.queries, runs.asked_ids, files.cautions
        there = {query_id: query for query_id, query in queries.items() if query_id in ids}
        lost = len(queries) - len(there)
        if not there:
            cautions.append(
                f"no run holds one of the questions: theirs are {min(ids)!r} and so on, those of the questions"
                f" {next(iter(queries))!r}"
            )
        elif lost > len(there):
            # TREC's runs have 43 of MS MARCO's 6,980 questions; the others would score 0 everywhere.
            cautions.append(
                f"the runs hold {len(there):,} of {len(queries):,} questions: the experiment uses only these"
            )
        elif lost:
            cautions.append(f"{lost:,} of {len(queries):,} questions are in no run and score 0")
            return queries
        return there


def read_questions(files: Files, runs: FoundRuns) -> FoundQuestions | None:
    """Return the questions; None if no file has any."""
    read = _read(files, runs)
    if not read:
        return None
    ids = runs.asked_ids

    def fits(candidate: tuple[Input, Queries]) -> tuple[float, ...]:
        file, queries = candidate
        referenced = any(query.answers for query in queries.values())
        return len(ids & {*queries}), file.nested or "answer" not in file.kinds, referenced, not file.nested

    # The file with the runs' questions, not the largest: train.jsonl is often larger than the file used.
    main, queries = max(read, key=fits)
    found = FoundQuestions(main, _of_split(main, queries, ids))
    if not main.nested:
        main.drop("doc", "answer", "references")
    main.take("query", f"questions: {_counted(found.queries)}")
    _doubt_references(files, main)
    for file, further in read:
        if file is main:
            continue
        # Questions of only one run say nothing about the others.
        unknown = set() if file.nested else ids - found.queries.keys()
        new = {query_id: query for query_id, query in further.items() if query_id in unknown}
        more = found.completed(file, "query", {query_id: query.answers for query_id, query in further.items()}, new)
        if more is not None:
            found = more
        elif not file.nested:
            file.why = "not used: no run holds a question that only this file has"
    for file in files.of("references"):
        found = _with_references(files, runs, found, file)
    return found


def _read(files: Files, runs: FoundRuns) -> list[tuple[Input, Queries]]:
    """Return the files with questions, and the questions."""
    ids, doc_ids = runs.asked_ids, runs.doc_ids()
    read: list[tuple[Input, Queries]] = []
    for file in files.of("query"):
        either = {"query", "doc"} <= {*file.kinds} and not file.nested
        if either and files.read(file, "query", partial(is_docs, query_ids=ids, doc_ids=doc_ids)):
            file.kinds = ["doc"]
            continue
        queries = files.read(file, "query", read_queries) if "query" in file.kinds else None
        if queries is not None:
            read.append((file, queries))
    return read


def _doubt_references(files: Files, file: Input) -> None:
    """Warn that answers beside ratings may be the application's, so that labels would follow its own words."""
    fields, flat = file.content.fields, file.content.flat
    rated = next((name for name in RATED if name in fields), "")
    answer = next((name for name in QUERY["answers"] if name in fields), "")
    query_id = next((name for name in QUERY["id"] if name in fields), "")
    if file.nested or flat is None or file.content.named or not (rated and answer and query_id):
        return
    sheet = f'sheet="{file.sheet}",' if file.sheet else ""
    spelled = f"'{flat.name}({sheet}query_id={query_id},value={rated}):{file.path}'"
    files.cautions.append(
        f"{file.name}: {rated!r} looks like ratings. If {answer!r} is your application's answer and no reference,"
        " put the questions (id, question) into a file beside it and name the columns:"
        f" {files.naming(spelled)}"
    )


def _with_references(files: Files, runs: FoundRuns, found: FoundQuestions, file: Input) -> FoundQuestions:
    """Return questions with missing reference answers taken from a table without questions."""
    is_called_so = any(part in file.path.name.lower() for part in _HOLDS_REFERENCES)
    if "answer" in file.kinds and len(runs.runs) == 1 and not is_called_so:
        return found  # with a single run, answers need no name
    references = files.read(file, "references", references_of)
    if references is None:
        return found
    more = found.completed(file, "references", references)
    if more is not None:
        file.kinds = []
        return more
    if "answer" not in file.kinds:
        known = found.queries.keys() & references.keys()
        why = "the questions have reference answers" if known else "none of its rows is about one of the questions"
        files.leave(file, f"it looks like reference answers, but {why}")
    return found


def _counted(queries: Mapping[str, Query]) -> str:
    referenced = sum(bool(query.answers) for query in queries.values())
    return f"{len(queries):,}, {f'{referenced:,}' if referenced else 'none'} with reference answers"


def reference_words(queries: Queries) -> int:
    """Return the median number of words in a question's shortest reference; 0 without references."""
    lengths = []
    for query in queries.values():
        if query.answers:
            lengths.append(min(len(answer.split()) for answer in query.answers))
    return round(median(lengths)) if lengths else 0


def _of_split(file: Input, queries: Queries, ids: set[str]) -> Queries:
    """Return the queries of the runs' split of a BEIR folder, which the experiment names as well."""
    # One file has the questions of train, dev and test; only those of one split belong to its judgments.
    folder = file.path.parent
    if not any(folder.glob("corpus.jsonl*")):
        return queries
    for path in sorted(folder.glob("qrels/*.tsv*")):
        form = f"beir(split={path.name.split('.')[0]})"
        some = read_queries(f"{form}:{folder}")
        if len(some) < len(queries) and ids & {*queries} <= {*some}:
            file.form, file.path, file.source = form, folder, Path(file.source).parent.as_posix()
            return some
    return queries
