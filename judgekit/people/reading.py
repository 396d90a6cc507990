"""What people judged, read back: downloads of the page and CSV, one assessor or several per task.

Nothing is guessed: a download that was cut off, of another sample, changed by hand or given twice is an error. What was
asked, with which probability, is taken from the sample; a file only says what was answered, and the comment. Tasks
without a judgment, skipped tasks and undecided ones never become labels.
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
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.outputs import as_cell, of_cell
from judgekit.data.records import parse_object
from judgekit.data.streams import lines, read_bytes
from judgekit.data.tables import Status, stacked
from judgekit.data.trec import ASKED_COLUMNS, Asked, asked_path, read_qrels
from judgekit.errors import DataError, UsageError, not_among
from judgekit.people.tasks import Rule, Sample, Task, content_of

_EXPECTED: Final = "judgments: the file that the page downloads (JSON lines), or a CSV of a sample"
_REPEATED: Final = ("sample", "task", "key", "assessor", "query_id", "doc_id")
_SAID: Final = ("rating", "skipped", "comment")
"""What an assessor fills in."""


@dataclass(frozen=True)
class Judgment:
    """What one assessor said of one task.

    Attributes:
        task: the task.
        assessor: who judged.
        value: the grade; the document that was chosen, or ``none``; None for nothing.
        skipped: why nothing was said; "" where something was, or where the task was not reached.
        comment: in the assessor's words.
        seconds: how long the task was looked at.
    """

    task: Task
    assessor: str
    value: float | str | None
    skipped: str
    comment: str
    seconds: float


@dataclass(frozen=True)
class Judgments:
    """All judgments of a sample, and what the sample was.

    Attributes:
        sample: without its tasks where only downloads were read.
        rows: every task of every assessor, reached or not.
    """

    sample: Sample
    rows: tuple[Judgment, ...]

    @property
    def seconds(self) -> float:
        """The median time of a judgment; 0 where no time was recorded."""
        taken = [row.seconds for row in self.rows if row.value is not None and row.seconds > 0]
        return median(taken) if taken else 0.0

    def only(self, assessors: Iterable[str]) -> Judgments:
        """Return what these assessors said."""
        wanted, names = set(assessors), {row.assessor for row in self.rows}
        unknown = sorted(wanted - names)
        if unknown:
            raise UsageError(not_among("assessor", unknown[0], sorted(names)))
        return replace(self, rows=tuple(row for row in self.rows if row.assessor in wanted))


def read_judgments(files: Iterable[Path], sample: Sample) -> Judgments:
    """Read what assessors said of a sample."""
    tasks = {task.task: task for task in sample.tasks}
    rows: dict[tuple[str, str], tuple[Judgment, Path]] = {}
    for path in files:
        data = read_bytes(path, _EXPECTED)
        read = _download(path, sample) if data.lstrip().startswith(b"{") else _csv_rows(path, data)
        for line, row in read:
            judgment = _judgment(row, sample, tasks, path, line)
            key = judgment.task.task, judgment.assessor
            if key in rows:
                _, earlier = rows[key]
                again = "twice in this file" if earlier == path else f"in {earlier} as well"
                raise DataError(
                    f"task {judgment.task.task!r} is judged by assessor {judgment.assessor!r} {again}", path, line
                )
            rows[key] = judgment, path
    if not rows:
        raise UsageError("the files hold no judgments: name at least one file that does")
    return Judgments(sample, tuple(row for row, _ in rows.values()))


Rows = Iterator[tuple[int, dict[str, Any]]]
"""What a file says of each task, with its line: what it repeats of the sample, ``assessor, key, rating, skipped,
comment, seconds``."""


def _judgment(row: Mapping[str, Any], sample: Sample, tasks: Mapping[str, Task], path: Path, line: int) -> Judgment:
    """Return what a file says of a task, once everything else in it is what the sample has."""
    if row["sample"] != sample.name:
        raise DataError("belongs to another sample than the one given", path, line)
    task = tasks.get(str(row["task"]))
    if task is None:
        raise DataError(f"task {row['task']!r} is not in the sample", path, line)
    wanted = {**task.brief(), "doc_ids": list(task.doc_ids), "doc_id": " ".join(task.doc_ids)}
    for name, given in row.items():
        if name in wanted and (given != wanted[name] or isinstance(given, bool)):
            hint = ": import the column as text" if isinstance(given, str) and path.suffix == ".csv" else ""
            raise DataError(
                f"task {task.task!r} has the {name} {given!r}, the sample {wanted[name]!r}{hint}", path, line
            )
    assessor = row["assessor"]
    if row["key"] != sample.key(task, assessor):
        raise DataError(f"task {task.task!r} was not given to assessor {assessor!r}: the key is not theirs", path, line)
    value, seconds = _value(row["rating"], sample, task, path, line), row["seconds"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise DataError(f"seconds are {seconds!r}, not a number from 0 on", path, line)
    return Judgment(task, assessor, value, row["skipped"] * (value is None), row["comment"], float(seconds))


def _download(path: Path, sample: Sample) -> Rows:
    first, *body = lines(path, _EXPECTED)
    head = parse_object(first, path)
    if head.get("judgekit") != "judgments":
        raise DataError(f"is not {_EXPECTED}", path, 1)
    try:
        last = json.loads(body[-1].text)["end"]
    except (IndexError, KeyError, TypeError, ValueError):
        last = None
    if not last == head.get("tasks") == len(body) - 1:
        raise DataError(
            "was cut off: download it again from the page, which still holds all judgments", path, len(body) + 1
        )
    who = head.get("assessor")
    for name, wanted in sample.head(str(who)).items():
        if head.get(name) != wanted:
            told = "belongs to another sample than the one given" if name == "sample" else f"has another {name}"
            raise DataError(told, path, 1)
    for line in body[:-1]:
        row = parse_object(line, path)
        lacking = sorted({*_WRITTEN} - row.keys())
        if lacking or row.keys() - {*_WRITTEN, "at"}:
            odd = lacking or sorted(row.keys() - {*_WRITTEN, "at"})
            reason = f"{'lacks' if lacking else 'has'} {odd[0]!r}, other than what the page writes"
            raise DataError(reason, path, line.number)
        if not all(isinstance(row[name], str) for name in ("task", "key", "skipped", "comment")):
            raise DataError("task, key, skipped and comment must be texts", path, line.number)
        yield line.number, {**row, "sample": sample.name, "assessor": who, "rating": row["value"]}


_WRITTEN: Final = (
    *("task", "query_id", "doc_ids", "repeat_of", "probability", "content", "key"),
    *("value", "skipped", "comment", "seconds"),
)
"""What the page writes of each task."""


def _value(said: Any, sample: Sample, task: Task, path: Path, line: int) -> float | str | None:
    """Return what was said, checked; None where nothing was."""
    if said is None or said == "":
        return None
    if isinstance(said, bool):
        raise DataError(f"{str(said).lower()} is not a grade", path, line)
    if sample.form != "grades":
        allowed = (*task.doc_ids, "none")
        if said not in allowed:
            raise DataError(f"{said!r} is not one of {', '.join(allowed)}", path, line)
        return str(said)
    scale = Scale.parse(sample.scale)
    try:
        grade = sample.grades.index(said) + scale.low if said in sample.grades else float(said)
    except (TypeError, ValueError):
        raise DataError(f"{said!r} is not a grade of the scale {scale}", path, line) from None
    problem = scale.problem(grade)
    if problem:
        raise DataError(f"grade {problem}", path, line)
    return float(grade)


def write_csv(sample: Sample) -> str:
    """Return the sample as CSV, a row per task and assessor, to be filled in with any spreadsheet."""
    # No cell begins as a formula does: those that would have an apostrophe before them, which reading takes off.
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_REPEATED, "question", "title", "text", *_SAID))
    for task in sample.tasks:
        title, text = " | ".join(title for title, _ in task.texts if title), "\n\n".join(text for _, text in task.texts)
        for assessor in task.assessors:
            cells = [sample.name, task.task, sample.key(task, assessor), assessor, task.query_id]
            cells += [" ".join(task.doc_ids), task.question, title, text, *("" for _ in _SAID)]
            writer.writerow(map(as_cell, cells))
    return out.getvalue()


def _csv_rows(path: Path, data: bytes) -> Rows:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text ({error.reason}): save it as CSV UTF-8", path) from None
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else "\t" if "\t" in first else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header = [cell.strip() for cell in next(rows, [])]
    if not {*_REPEATED, "rating"} <= set(header):
        have = f"has the columns {', '.join(header)}" if any(header) else "is empty"
        raise DataError(f"{have}; expected a sheet that `judgekit annotate sample` wrote, filled in", path, 1)
    for row in rows:
        if not any(row):
            continue
        if len(row) != len(header):
            raise DataError(f"has {len(row)} cells, the header {len(header)}", path, rows.line_num)
        given = {**dict.fromkeys(_SAID, ""), **dict(zip(header, map(of_cell, row), strict=True))}
        yield rows.line_num, {name: given[name] for name in (*_REPEATED, *_SAID)} | {"seconds": 0.0}


@dataclass(frozen=True)
class People:
    """What people say of each pair, by one rule, and what was asked with which probability.

    Attributes:
        labeling: the labels; ties, skipped and unreached pairs are missing.
        asked: rows ``query_id, doc_id, probability, content, status, judgments``: everything that was asked. Status is
            ok, tie (as many for each of two grades), skipped, or open (not reached).
        design: how the pairs were drawn.
        seconds: the median time of a judgment; 0 where no time was recorded.
    """

    labeling: Labeling
    asked: pd.DataFrame
    design: str
    seconds: float


_MISSING: Final[Mapping[str, Status]] = {"tie": Status.UNPARSED, "skipped": Status.REFUSED, "open": Status.UNASKED}


def resolve(judgments: Judgments, rule: Rule | None = None, name: str = "people") -> People:
    """Make one label of the judgments of each pair, by the sample's rule unless another is given."""
    sample, rows = judgments.sample, [row for row in judgments.rows if not row.task.repeat_of]
    scale, rule = Scale.parse(sample.scale), rule or sample.rule
    if sample.form == "best":
        return _people(_chosen(rows), Scale("unit"), name, judgments)
    if rule == "mean" and scale.integral:
        scale = Scale("unit") if scale.kind == "binary" else replace(scale, kind="means")
    out = []
    for task, each in _by_task(rows):
        value, status = _one(each, rule)
        number = sum(row.value is not None for row in each)
        out.append((task.query_id, *task.doc_ids, value, task.probability, task.content, status, number))
    return _people([*out, *sample.before], scale, name, judgments)


def _by_task(rows: Iterable[Judgment]) -> list[tuple[Task, list[Judgment]]]:
    """Return the judgments of each task, in the order in which tasks appear."""
    said: dict[str, list[Judgment]] = defaultdict(list)
    for row in rows:
        said[row.task.task].append(row)
    return [(each[0].task, each) for each in said.values()]


def _one(rows: Sequence[Judgment], rule: Rule) -> tuple[float | None, str]:
    """Return the label of a pair and ok, tie, skipped or open; an adjudicator decides what the others leave open."""
    of = {row.assessor: float(row.value) for row in rows if row.value is not None}
    last = of.pop(ADJUDICATOR, None)
    if rule == "mean" and of:
        return sum(of.values()) / len(of), "ok"
    (first, count), *others = Counter(of.values()).most_common() or [(0.0, 0)]
    if of and not (others and others[0][1] == count):
        return first, "ok"
    if last is not None:
        return last, "ok"
    return None, "tie" if of else "skipped" if any(row.skipped for row in rows) else "open"


ADJUDICATOR: Final = "adjudicator"
"""The name of the assessor who is shown what the others do not agree on."""


def _chosen(rows: Sequence[Judgment]) -> Iterator[tuple[Any, ...]]:
    """Yield how often each document was chosen, of the times that it was shown."""
    shown: Counter[tuple[str, str]] = Counter()
    chosen: Counter[tuple[str, str]] = Counter()
    probability: dict[tuple[str, str], float] = {}
    for row in rows:
        for doc_id in row.task.doc_ids:
            pair = row.task.query_id, doc_id
            probability.setdefault(pair, row.task.probability)
            shown[pair] += row.value is not None
            chosen[pair] += row.value == doc_id
    for pair, chance in probability.items():
        value, status = (chosen[pair] / shown[pair], "ok") if shown[pair] else (None, "open")
        yield *pair, value, chance, "", status, shown[pair]


def _people(rows: Iterable[tuple[Any, ...]], scale: Scale, name: str, judgments: Judgments) -> People:
    columns = ("query_id", "doc_id", "relevance", *ASKED_COLUMNS[2:])
    table = pd.DataFrame(rows, columns=list(columns)).sort_values(["query_id", "doc_id"], ignore_index=True)
    labels = table[["query_id", "doc_id", "relevance"]].astype({"relevance": "float64"})
    labels["status"] = [_MISSING.get(status, Status.OK).value for status in table["status"]]
    labeling, asked = Labeling(name, scale, labels), table[list(ASKED_COLUMNS)]
    return People(labeling, asked, judgments.sample.design, judgments.seconds)


def asked_of(judgments: Judgments, people: People) -> Asked:
    """Return what stands beside the qrels: every pair that was asked about, and with which probability."""
    sample = judgments.sample
    rows = people.asked[list(ASKED_COLUMNS)].astype({"judgments": "object", "probability": "object"})
    table = tuple(rows.itertuples(index=False, name=None))
    scale = str(people.labeling.scale)
    return Asked(sample.name, people.design, scale, sample.queries, sample.pairs, table, people.seconds)


def read_people(path: Path, collection: Collection) -> People:
    """Read labels that `judgekit annotate read` wrote, and check that their texts are those of the collection."""
    asked = Asked.beside(path)
    if asked is None:
        if not path.exists():
            raise DataError("no such file; expected labels that `judgekit annotate read` wrote", path)
        raise DataError(f"{asked_path(path).name} is not next to it: use the files that `annotate read` wrote", path)
    table = pd.DataFrame(asked.rows, columns=list(ASKED_COLUMNS)).astype({"probability": "float64"})
    for query_id, doc_id, content in zip(table["query_id"], table["doc_id"], table["content"], strict=True):
        if query_id not in collection.queries:
            raise DataError(f"query {query_id!r} is not in this experiment: these labels belong to another", path)
        if doc_id not in collection.pairs.get(query_id, ()):
            raise DataError(f"query {query_id!r}, doc {doc_id!r} is not in the pool of the experiment's runs", path)
        (doc,) = collection.docs.get([doc_id])
        if content and content != content_of(collection.queries[query_id].text, ((doc.title, doc.text),)):
            raise DataError(f"query {query_id!r}, doc {doc_id!r}: the text is not the one that people judged", path)
    return People(read_qrels(path, "people", Scale.parse(asked.scale)), table, asked.design, asked.seconds)


def assessor_agreement(judgments: Judgments, *, resamples: int = 1000, seed: int = 1) -> dict[str, pd.DataFrame]:
    """Return how far assessors agree: ``between`` every two, and with themselves (``self``), as in `judgekit.agree`."""
    # `self` compares each assessor's first judgments with those of the same tasks shown again. What cannot be worked
    # out (one assessor, no task twice) is not there. Choices are codes, whose order means nothing.
    form = judgments.sample.form
    scale = Scale.parse(judgments.sample.scale) if form == "grades" else Scale("grades", 5)
    said: dict[tuple[str, bool], list[tuple[str, str, float]]] = defaultdict(list)
    for row in judgments.rows:
        if row.value is not None:
            codes = () if form == "grades" else (*row.task.doc_ids, "none")
            code = float(codes.index(str(row.value)) if codes else row.value)
            pair = row.task.query_id, row.task.repeat_of or row.task.task
            said[row.assessor, bool(row.task.repeat_of)].append((*pair, code))

    def agreed(**given: tuple[str, bool]) -> pd.DataFrame:
        columns = ["query_id", "doc_id", "relevance"]
        labelings = [Labeling(name, scale, pd.DataFrame(said[key], columns=columns)) for name, key in given.items()]
        return agreement(labelings, resamples=resamples, seed=seed).table

    first, again = (sorted(name for name, repeated in said if repeated == which) for which in (False, True))
    out = {"between": agreed(**{name: (name, False) for name in first})} if len(first) > 1 else {}
    if again:
        out["self"] = stacked([agreed(**{name: (name, False), f"{name} again": (name, True)}) for name in again])
    return out


def disputed(judgments: Judgments, sample: Sample) -> Sample:
    """Return the tasks that the sample's rule leaves undecided, or that all skipped, for ``adjudicator``."""
    # The sample keeps its name, so that the judgments are read together.
    rows = [row for row in judgments.rows if not row.task.repeat_of and sample.form == "grades"]
    apart = {task.task for task, each in _by_task(rows) if _one(each, sample.rule)[1] in ("tie", "skipped")}
    tasks = (replace(task, assessors=(ADJUDICATOR,)) for task in sample.tasks if task.task in apart)
    return replace(sample, tasks=tuple(tasks))
