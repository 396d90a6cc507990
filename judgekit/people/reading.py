"""Reads people's judgments: downloads of the page and CSV, by one or several assessors per task.

Nothing is guessed: a download that is truncated, from another sample, about other documents or given twice is an error.
Questions and their probabilities come from the sample; a file only has the answers. Tasks that are open, skipped or
undecided never become labels.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import pandas as pd

from judgekit.analysis.agreement import agreement
from judgekit.collection import Collection
from judgekit.data.forms import records
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.outputs import as_cell, clean, of_cell
from judgekit.data.records import parse_object
from judgekit.data.sources import located
from judgekit.data.streams import Beginning, lines
from judgekit.data.tables import Status, stacked
from judgekit.data.trec import ASKED_COLUMNS, Asked, asked_path, read_qrels
from judgekit.errors import DataError, UsageError
from judgekit.people.tasks import Rule, Sample, Task, content_of
from judgekit.spec import Spec

_EXPECTED: Final = "judgments: the file that the page downloads (JSON lines), or the sheet of a sample, filled in"
_SHEET: Final = "a sheet that `judgekit annotate sample` wrote, filled in"
_REPEATED: Final = ("sample", "task", "key", "assessor", "query_id", "doc_id")
_SAID: Final = ("rating", "skipped", "comment")
"""The columns that an assessor fills in."""


@dataclass(frozen=True)
class Judgment:
    """One assessor's judgment of one task.

    Attributes:
        task: the task.
        assessor: the assessor.
        value: the grade; the chosen document, or ``none``; None without a judgment.
        skipped: why the task was skipped, or "".
        seconds: time spent on the task.
    """

    task: Task
    assessor: str
    value: float | str | None
    skipped: str
    seconds: float


@dataclass(frozen=True)
class Judgments:
    """A sample and all its judgments.

    Attributes:
        sample: the sample; without tasks if only downloads were read.
        rows: every task of every assessor, reached or not.
    """

    sample: Sample
    rows: tuple[Judgment, ...]

    @property
    def seconds(self) -> float:
        """The median time of a judgment; 0 if no time was recorded."""
        taken = [row.seconds for row in self.rows if row.value is not None and row.seconds > 0]
        if taken:
            return median(taken)
        return 0.0


def read_judgments(files: Iterable[Path], sample: Sample) -> Judgments:
    """Read assessors' judgments of a sample."""
    tasks = {task.task: task for task in sample.tasks}
    rows: dict[tuple[str, str], Judgment] = {}
    files_of: dict[tuple[str, str], Path] = {}
    for path in files:
        filled_in = _download(path, sample) if Beginning.of(path, _EXPECTED).start.startswith(b"{") else _sheet(path)
        for line, row in filled_in:
            judgment = _judgment(row, sample, tasks, path, line)
            key = judgment.task.task, judgment.assessor
            if key in rows:
                earlier = files_of[key]
                again = "twice in this file" if earlier == path else f"in {earlier} as well"
                raise DataError(f"task {key[0]!r} is judged by assessor {key[1]!r} {again}", path, line)
            rows[key], files_of[key] = judgment, path
    if not rows:
        raise UsageError("the files hold no judgments: name at least one file that does")
    return Judgments(sample, tuple(rows.values()))


Rows = Iterator[tuple[int, dict[str, Any]]]
"""A file's entries by task, with their lines: the repeated fields of the sample, ``assessor, key, rating, skipped,
seconds``."""


def _judgment(row: Mapping[str, Any], sample: Sample, tasks: Mapping[str, Task], path: Path, line: int) -> Judgment:
    """Return a file's judgment of a task, after checking that everything else in it equals the sample."""
    if row["sample"] != sample.name:
        raise DataError("belongs to another sample than the one given", path, line)
    task = tasks.get(str(row["task"]))
    if task is None:
        raise DataError(f"task {row['task']!r} is not in the sample", path, line)
    # Sorting only some columns of a spreadsheet pairs ratings with other documents.
    asked = {"query_id": task.query_id, "doc_ids": list(task.doc_ids), "doc_id": " ".join(task.doc_ids)}
    for name, wanted in asked.items():
        given = row.get(name, wanted)
        if given != wanted:
            hint = ": import the column as text" if path.suffix == ".csv" else ""
            raise DataError(f"task {task.task!r} has the {name} {given!r}, the sample {wanted!r}{hint}", path, line)
    assessor, seconds = row["assessor"], row["seconds"]
    if row["key"] != sample.key(task, assessor):
        raise DataError(f"task {task.task!r} was not given to assessor {assessor!r}: the key is not theirs", path, line)
    try:
        value = _value(row["rating"], sample, task)
    except ValueError as error:
        raise DataError(str(error), path, line) from None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise DataError(f"seconds are {seconds!r}, not a number from 0 on", path, line)
    # A grade overrides an earlier skip that the page still holds.
    skipped = str(row["skipped"] or "") if value is None else ""
    return Judgment(task, assessor, value, skipped, float(seconds))


def _download(path: Path, sample: Sample) -> Rows:
    first, *body = lines(path, _EXPECTED)
    head = parse_object(first, path)
    if head.get("judgekit") != "judgments":
        raise DataError(f"is not {_EXPECTED}", path, 1)
    if head.get("sample") != sample.name:
        raise DataError("belongs to another sample than the one given", path, 1)
    try:
        last = json.loads(body[-1].text)["end"]
    except (IndexError, KeyError, TypeError, ValueError):
        last = None
    # The page writes the number of tasks first and last; a truncated download lacks its last line.
    if not last == head.get("tasks") == len(body) - 1:
        reason = "was cut off: download it again from the page, which still holds all judgments"
        raise DataError(reason, path, len(body) + 1)
    for line in body[:-1]:
        row = parse_object(line, path)
        lacking = {"task", "key", "value", "skipped", "seconds"} - row.keys()
        if lacking:
            raise DataError(f"lacks {min(lacking)!r}, which the page writes", path, line.number)
        yield line.number, {**row, "sample": sample.name, "assessor": head.get("assessor"), "rating": row["value"]}


def _value(rating: Any, sample: Sample, task: Task) -> float | str | None:
    """Return a rating as a value, or None if empty; raise a `ValueError` if it is invalid."""
    if rating is None or rating == "":
        return None
    # Python counts true as 1, but no page or sheet offers it as a grade.
    if isinstance(rating, bool):
        raise ValueError(f"{str(rating).lower()} is not a grade")
    if sample.form != "grades":
        allowed = (*task.doc_ids, "none")
        if rating not in allowed:
            raise ValueError(f"{rating!r} is not one of {', '.join(allowed)}")
        return str(rating)
    scale = Scale.parse(sample.scale)
    try:
        grade = float(sample.grades.index(rating) + scale.low if rating in sample.grades else rating)
    except (TypeError, ValueError):
        raise ValueError(f"{rating!r} is not a grade of the scale {scale}") from None
    problem = scale.problem(grade)
    if problem:
        raise ValueError(f"grade {problem}")
    return grade


def write_csv(sample: Sample) -> str:
    """Return the sample as CSV, a row per task and assessor, to be filled in with any spreadsheet."""
    # A cell that looks like a formula gets an apostrophe, which reading removes. Passages may hold control characters
    # for a terminal (cat sheet.csv), or ones that reverse a line.
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_REPEATED, "question", "title", "text", *_SAID))
    for task in sample.tasks:
        title = " | ".join(title for title, _ in task.texts if title)
        text = "\n\n".join(text for _, text in task.texts)
        for assessor in task.assessors:
            cells = [sample.name, task.task, sample.key(task, assessor), assessor, task.query_id]
            cells += [" ".join(task.doc_ids), *map(clean, (task.question, title, text)), *("" for _ in _SAID)]
            writer.writerow(map(as_cell, cells))
    return out.getvalue()


def _sheet(path: Path) -> Rows:
    """Yield the rows of a sheet, in any syntax that spreadsheets save."""
    _, rows = records(path, Spec("auto"), _SHEET)
    for record in rows:
        # Spreadsheets keep cleared rows below the last one.
        if not any(record.fields.values()):
            continue
        cells = dict.fromkeys(_SAID, "")
        for name, cell in record.fields.items():
            cells[name.strip()] = of_cell(cell)
        if not {*_REPEATED, "rating"} <= cells.keys():
            have = f"has the columns {', '.join(record.fields)}"
            raise DataError(f"{have}; expected {_SHEET}", path, 1)
        yield record.line, {**{name: cells[name] for name in (*_REPEATED, *_SAID)}, "seconds": 0.0}


@dataclass(frozen=True)
class People:
    """People's labels of pairs by one rule, and the pairs they were asked about, with their probabilities.

    Attributes:
        labeling: the labels, named after their source; tied, skipped and unreached pairs are missing.
        asked: rows ``query_id, doc_id, probability, content, status, judgments``: all pairs asked about. Status is ok,
            tie (equally many for two grades), skipped, or open (not reached).
        design: how the pairs were drawn; "" for judgments made elsewhere.
        seconds: the median time of a judgment; 0 if no time was recorded.
        left_out: number of judgments about queries or passages that the experiment lacks.
    """

    labeling: Labeling
    asked: pd.DataFrame
    design: str
    seconds: float
    left_out: int = 0


_MISSING: Final[Mapping[str, Status]] = {"tie": Status.UNPARSED, "skipped": Status.REFUSED, "open": Status.UNASKED}


def resolve(judgments: Judgments) -> People:
    """Turn each pair's judgments into one label, by the sample's rule."""
    sample = judgments.sample
    rows = [row for row in judgments.rows if not row.task.repeat_of]
    if sample.form == "best":
        return _people(_chosen(rows), Scale("unit"), judgments)
    scale = Scale.parse(sample.scale)
    if sample.rule == "mean" and scale.integral:
        scale = Scale("unit") if scale.kind == "binary" else replace(scale, kind="means")
    labels: list[tuple[Any, ...]] = []
    for task, given in _by_task(rows):
        value, status = _label(given, sample.rule)
        number = sum(row.value is not None for row in given)
        labels.append((task.query_id, *task.doc_ids, value, task.probability, task.content, status, number))
    return _people([*labels, *sample.before], scale, judgments)


def _by_task(rows: Iterable[Judgment]) -> list[tuple[Task, list[Judgment]]]:
    """Return the judgments of each task, in order of first appearance."""
    by_task: dict[str, tuple[Task, list[Judgment]]] = {}
    for row in rows:
        by_task.setdefault(row.task.task, (row.task, []))[1].append(row)
    return list(by_task.values())


def _label(rows: Sequence[Judgment], rule: Rule) -> tuple[float | None, str]:
    """Return a pair's label and its status (ok, tie, skipped, open); an adjudicator decides what others leave open."""
    grades = {row.assessor: float(row.value) for row in rows if row.value is not None}
    # The adjudicator settles what the others leave open, but does not vote.
    last = grades.pop(ADJUDICATOR, None)
    if grades:
        if rule == "mean":
            return sum(grades.values()) / len(grades), "ok"
        # Equal votes for two grades make no label, since only a coin could decide.
        (first, most), *others = Counter(grades.values()).most_common()
        if not others or others[0][1] < most:
            return first, "ok"
    if last is not None:
        return last, "ok"
    if grades:
        return None, "tie"
    return None, "skipped" if any(row.skipped for row in rows) else "open"


ADJUDICATOR: Final = "adjudicator"
"""The name of the assessor who gets the tasks on which the others disagree."""


def _chosen(rows: Sequence[Judgment]) -> Iterator[tuple[Any, ...]]:
    """Yield each document's share of being chosen when shown."""
    shown: Counter[tuple[str, str]] = Counter()
    chosen: Counter[tuple[str, str]] = Counter()
    probability: dict[tuple[str, str], float] = {}
    for row in rows:
        for doc_id in row.task.doc_ids:
            pair = row.task.query_id, doc_id
            probability.setdefault(pair, row.task.probability)
            shown[pair] += row.value is not None
            chosen[pair] += row.value == doc_id
    for pair, drawn in probability.items():
        if shown[pair]:
            yield *pair, chosen[pair] / shown[pair], drawn, "", "ok", shown[pair]
        else:
            yield *pair, None, drawn, "", "open", 0


def _people(rows: Iterable[tuple[Any, ...]], scale: Scale, judgments: Judgments) -> People:
    columns = ("query_id", "doc_id", "relevance", *ASKED_COLUMNS[2:])
    table = pd.DataFrame(rows, columns=list(columns)).sort_values(["query_id", "doc_id"], ignore_index=True)
    labels = table[["query_id", "doc_id", "relevance"]].astype({"relevance": "float64"})
    labels["status"] = [_MISSING.get(status, Status.OK).value for status in table["status"]]
    labeling = Labeling("people", scale, labels)
    return People(labeling, table[list(ASKED_COLUMNS)], judgments.sample.design, judgments.seconds)


def asked_of(judgments: Judgments, people: People) -> Asked:
    """Return the table for the file beside the qrels: all pairs asked about, with their probabilities."""
    rows = people.asked[list(ASKED_COLUMNS)].astype({"judgments": "object", "probability": "object"})
    return Asked(
        sample=judgments.sample.name,
        design=people.design,
        scale=str(people.labeling.scale),
        queries=judgments.sample.queries,
        pairs=judgments.sample.pairs,
        rows=tuple(rows.itertuples(index=False, name=None)),
        seconds=people.seconds,
    )


def read_people(path: Path, collection: Collection) -> People:
    """Read labels written by `judgekit annotate read`, and check that their texts are the collection's."""
    asked = Asked.beside(path)
    if asked is None:
        if not path.exists():
            raise DataError("no such file; expected labels that `judgekit annotate read` wrote", path)
        raise DataError(
            f"{asked_path(path).name} is not next to it, so the probability with which each passage was drawn is"
            " unknown, and these labels say nothing about the others: draw some with `judgekit annotate sample`. You"
            " can still put such labels into the final qrels: judgekit build --people",
            path,
        )
    table = pd.DataFrame(asked.rows, columns=list(ASKED_COLUMNS)).astype({"probability": "float64"})
    for query_id, doc_id, content in zip(table["query_id"], table["doc_id"], table["content"], strict=True):
        if query_id not in collection.queries:
            raise DataError(f"query {query_id!r} is not in this experiment: these labels belong to another one", path)
        if doc_id not in collection.pairs.get(query_id, ()):
            raise DataError(f"query {query_id!r}, doc {doc_id!r} is not in the pool of the experiment's runs", path)
        (doc,) = collection.docs.get([doc_id])
        # A collection with new chunks has other texts under the same ids.
        if content and content != content_of(collection.queries[query_id].text, ((doc.title, doc.text),)):
            raise DataError(
                f"query {query_id!r}, doc {doc_id!r}: the text differs from the one that people judged", path
            )
    labeling = read_qrels(path, "people", Scale.parse(asked.scale), negative=False)
    return People(labeling, table, asked.design, asked.seconds)


def read_existing(source: str | Path, collection: Collection) -> People:
    """Read people's judgments from elsewhere, in any form; leave out pairs that the experiment lacks."""
    path = located(source, "qrels").path
    labeling = read_qrels(source, path.name)
    scale = labeling.scale
    # Files of 0 and 1 mean relevant or not; such labels get a threshold, not a regression.
    if (scale.kind, scale.low, scale.high) == ("grades", 0, 1):
        scale = Scale("binary")
    labels = labeling.table[["query_id", "doc_id", "relevance", "status"]]
    labels = labels[labels["status"] == Status.OK.value]
    known = labels["query_id"].isin(list(collection.queries)) & labels["doc_id"].map(collection.docs.__contains__)
    # Judgments from elsewhere are about a whole collection, not only this pool.
    kept = labels[known].reset_index(drop=True)
    if kept.empty:
        raise DataError("judges no passage of this experiment: are both about the same collection?", path)
    asked = kept[["query_id", "doc_id"]].assign(probability=1.0, content="", status="ok", judgments=1)
    people = Labeling(labeling.name, scale, kept)
    return People(people, asked, design="", seconds=0.0, left_out=len(labels) - len(kept))


def assessor_agreement(judgments: Judgments, *, resamples: int = 1000) -> dict[str, pd.DataFrame]:
    """Return the agreement ``between`` assessors, and with themselves (``self``), as in `judgekit.agree`."""
    # `self` compares first judgments with those of the same tasks shown again. Undefined agreement (one assessor, no
    # repeated task) is absent. Choices are codes without an order.
    graded = judgments.sample.form == "grades"
    most = max((len(row.task.doc_ids) for row in judgments.rows), default=1)
    scale = Scale.parse(judgments.sample.scale) if graded else Scale("grades", most)
    first: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    again: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for row in judgments.rows:
        if row.value is None:
            continue
        code = row.value if graded else (*row.task.doc_ids, "none").index(str(row.value))
        of_assessor = again if row.task.repeat_of else first
        pair = row.task.query_id, row.task.repeat_of or row.task.task
        of_assessor[row.assessor].append((*pair, float(code)))

    def labeling(name: str, rows: list[tuple[str, str, float]]) -> Labeling:
        return Labeling(name, scale, pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"]))

    tables: dict[str, pd.DataFrame] = {}
    if len(first) > 1:
        everyone = [labeling(name, rows) for name, rows in sorted(first.items())]
        tables["between"] = agreement(everyone, resamples=resamples).table
    alone = []
    for name, rows in sorted(again.items()):
        both = [labeling(name, first[name]), labeling(f"{name} again", rows)]
        alone.append(agreement(both, resamples=resamples).table)
    if alone:
        tables["self"] = stacked(alone)
    return tables


def disputed(judgments: Judgments, sample: Sample) -> Sample:
    """Return the tasks for ``adjudicator``: those undecided by the sample's rule, or skipped by all."""
    # The sample keeps its name, so that all judgments can be read together.
    apart: set[str] = set()
    if sample.form == "grades":
        for task, rows in _by_task(row for row in judgments.rows if not row.task.repeat_of):
            _, status = _label(rows, sample.rule)
            if status in ("tie", "skipped"):
                apart.add(task.task)
    tasks = (replace(task, assessors=(ADJUDICATOR,)) for task in sample.tasks if task.task in apart)
    return replace(sample, tasks=tuple(tasks))
