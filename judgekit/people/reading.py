"""What people judged, read back: downloads of the page, CSV and Label Studio, one assessor or several per task.

Nothing is guessed: a download that was cut off, of another sample, or given twice is an error. Tasks without a
judgment, skipped tasks and undecided ones never become labels.
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
from typing import Any, Final

import pandas as pd

from judgekit.analysis.agreement import Agreement, agreement
from judgekit.data.asked import ASKED_COLUMNS, Asked, asked_path
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.records import parse_object
from judgekit.data.streams import lines, read_bytes
from judgekit.data.tables import QUALITY, Status
from judgekit.data.trec import read_qrels
from judgekit.errors import DataError, UsageError, not_among
from judgekit.people.tasks import Sample, Task, content_of
from judgekit.stages import Collection

__all__ = [
    "Judgment",
    "People",
    "asked_of",
    "assessor_agreement",
    "disputed",
    "preferences",
    "read_judgments",
    "read_people",
    "resolve",
    "write_csv",
    "write_label_studio",
]

_EXPECTED: Final = (
    "judgments: the file that the page downloads (JSON lines), or a CSV or Label Studio export of a sample"
)
_CSV: Final = ("sample", "task", "assessor", "query_id", "doc_id", "question", "title", "text")
_SAID: Final = ("rating", "skipped", "comment")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "'")
"""A spreadsheet may take a cell that begins so for a formula; an apostrophe before it makes it a text."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """What one assessor said of one task.

    Attributes:
        task: the task.
        assessor: who judged.
        value: the grade; the document or run that was chosen, ``none``, ``tie`` or ``bad``; None for nothing.
        skipped: why nothing was said; "" where something was, or where the task was not reached.
        comment: in the assessor's words.
        seconds: how long the task was looked at.
    """

    task: Task
    assessor: str
    value: float | str | None
    skipped: str = ""
    comment: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Judgments:
    """All judgments of a sample, and what the sample was.

    Attributes:
        sample: without its tasks where only downloads were read.
        rows: every task of every assessor, reached or not.
    """

    sample: Sample
    rows: tuple[Judgment, ...]

    def only(self, assessors: Iterable[str]) -> Judgments:
        """Return what these assessors said.

        Raises:
            UsageError: an assessor is unknown.
        """
        wanted, names = set(assessors), {row.assessor for row in self.rows}
        unknown = sorted(wanted - names)
        if unknown:
            raise UsageError(not_among("assessor", unknown[0], sorted(names)))
        return replace(self, rows=tuple(row for row in self.rows if row.assessor in wanted))


def read_judgments(files: Iterable[Path], sample: Sample | None = None) -> Judgments:
    """Read what assessors said.

    Args:
        files: downloads of the page, CSV files or Label Studio exports, all of one sample.
        sample: what was asked; needed for CSV and Label Studio, and for pages of disputed tasks.

    Raises:
        DataError: a file is none of these, was cut off, is of another sample, names an unknown task or
            grade, or an assessor judges a task twice; with its line.
        UsageError: no file is given, or a sample is needed.
    """
    known = sample
    rows: dict[tuple[str, str], tuple[Judgment, Path]] = {}
    for path in files:
        of, judged = _read(path, sample)
        if known is not None and of.name != known.name:
            given = "the one given" if sample else "the files before it"
            raise DataError(f"belongs to another sample than {given}: read the judgments of each sample alone", path)
        known = known or of
        for line, row in judged:
            key = row.task.task, row.assessor
            if key in rows:
                again = "twice in this file" if rows[key][1] == path else f"in {rows[key][1]} as well"
                raise DataError(f"task {key[0]!r} is judged by assessor {key[1]!r} {again}", path, line)
            rows[key] = row, path
    if known is None:
        raise UsageError("name at least one file with judgments")
    return Judgments(known, tuple(row for row, _ in rows.values()))


Judged = Iterable[tuple[int | None, Judgment]]
"""Judgments of a file, each with its line where lines tell."""


def _read(path: Path, sample: Sample | None) -> tuple[Sample, Judged]:
    data = read_bytes(path, _EXPECTED)
    start = data.lstrip()[:1]
    if start == b"{":
        return _download(path)
    if sample is None:
        raise UsageError(f"{path}: a CSV file or a Label Studio export needs its sample: name it too")
    rows = _label_studio(path, data, sample) if start == b"[" else _csv_rows(path, data, sample)
    return sample, _judged(path, rows, sample)


def _judged(path: Path, rows: Iterable[tuple[int | None, dict[str, str]]], sample: Sample) -> Judged:
    tasks = {task.task: task for task in sample.tasks}
    for line, row in rows:
        if row["sample"] != sample.name:
            raise DataError("belongs to another sample than the one given", path, line)
        task = tasks.get(row["task"])
        if task is None:
            raise DataError(f"task {row['task']!r} is not in the sample", path, line)
        value = _value(row["rating"], sample, task, path, line)
        yield line, Judgment(task, row["assessor"], value, row["skipped"] * (value is None), row["comment"])


def _download(path: Path) -> tuple[Sample, Judged]:
    first, *body = lines(path, _EXPECTED)
    head = parse_object(first, path)
    if head.get("judgekit") != "judgments":
        raise DataError(f"is not {_EXPECTED}", path, 1)
    try:
        last = json.loads(body[-1].text)["end"]
    except (IndexError, KeyError, TypeError, ValueError):
        last = None
    if not last == head.get("tasks") == len(body) - 1:
        raise DataError("was cut off: download it again from the page, which still has everything", path, len(body) + 1)
    number, rows = 1, list[tuple[int | None, Judgment]]()
    try:
        drawn = head["form"], head["design"], str(Scale.parse(head["scale"]))
        sample = Sample(*drawn, (), "", int(head["queries"]), int(head["pairs"]), 0, (), str(head["sample"]))
        who = str(head["assessor"])
        for line in body[:-1]:
            number, row = line.number, parse_object(line, path)
            docs, rest = tuple(row["doc_ids"]), ((who,), row["repeat_of"], row["content"])
            task = Task(row["task"], row["query_id"], "", docs, (), float(row["probability"]), *rest)
            if not 0 < task.probability <= 1:
                raise DataError(f"probability {task.probability:g} is not above 0 and at most 1", path, number)
            value = _value(row["value"], sample, task, path, number)
            said = str(row["skipped"]), str(row["comment"]), float(row["seconds"])
            rows.append((number, Judgment(task, who, value, *said)))
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise DataError(f"lacks a part of what the page writes ({error})", path, number) from None
    return sample, rows


def _value(said: Any, sample: Sample, task: Task, path: Path, line: int | None) -> float | str | None:
    """Return what was said, checked; None where nothing was."""
    if said is None or said == "":
        return None
    if sample.form != "grades":
        allowed = (*task.doc_ids, *(("none",) if sample.form == "best" else ("tie", "bad")))
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


def _texts_of(task: Task) -> tuple[str, str, str]:
    ids = " ".join(task.doc_ids)
    title = " | ".join(title for title, _ in task.texts if title)
    return ids, title, "\n\n".join(text for _, text in task.texts)


def write_csv(sample: Sample, judgments: Iterable[Judgment] = ()) -> str:
    """Return the sample as CSV, a row per task and assessor, to be filled in with any spreadsheet.

    No cell begins as a formula does: those that would have an apostrophe before them, which reading takes off.
    """
    said = {(row.task.task, row.assessor): row for row in judgments}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*_CSV, *_SAID))
    for task in sample.tasks:
        ids, title, text = _texts_of(task)
        for assessor in task.assessors:
            row = said.get((task.task, assessor), Judgment(task, assessor, None))
            rating = "" if row.value is None else row.value if isinstance(row.value, str) else f"{row.value:g}"
            cells = [sample.name, task.task, assessor, task.query_id, ids, task.question, title, text]
            cells += [rating, row.skipped, row.comment]
            writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells])
    return out.getvalue()


def _csv_rows(path: Path, data: bytes, sample: Sample) -> Iterator[tuple[int | None, dict[str, str]]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text ({error.reason}): save it as CSV UTF-8", path) from None
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else "\t" if "\t" in first else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header = [cell.strip() for cell in next(rows, [])]
    if not any(header):
        raise DataError("is empty; expected a sheet that `judgekit annotate export` wrote, filled in", path, 1)
    plain = {"query": "query_id", "docid": "doc_id", "doc": "doc_id", "relevance": "rating"}
    header = [plain.get(cell, cell) for cell in header]
    if not {"rating", "doc_id", "query_id"} <= set(header) and not {"rating", "task"} <= set(header):
        raise DataError(f"has the columns {', '.join(header)}; expected {', '.join((*_CSV, *_SAID))}", path, 1)
    by_pair = {(task.query_id, " ".join(task.doc_ids)): task.task for task in sample.tasks if not task.repeat_of}
    for row in rows:
        if not any(row):
            continue
        if len(row) != len(header):
            raise DataError(f"has {len(row)} cells, the header {len(header)}", path, rows.line_num)
        cells = [cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA else cell for cell in row]
        fields = {**dict.fromkeys((*_CSV, *_SAID), ""), **dict(zip(header, cells, strict=True))}
        if "task" not in header:  # somebody's own table: query, docid, rating
            pair = fields["query_id"], fields["doc_id"]
            if pair not in by_pair:
                raise DataError(f"query {pair[0]!r}, doc {pair[1]!r} is not in the sample", path, rows.line_num)
            fields |= {"task": by_pair[pair], "sample": sample.name}
        fields["assessor"] = fields["assessor"] or path.stem
        yield rows.line_num, fields


def write_label_studio(sample: Sample, predictions: Labeling | None = None) -> tuple[str, str]:
    """Return the tasks for Label Studio as JSON, and the labeling interface as XML.

    Args:
        sample: what is asked.
        predictions: a labeling whose labels Label Studio shows first; this influences people, so none by
            default.

    Raises:
        UsageError: a label is not one of the sample's grades.
    """
    choices = _CHOICES.get(sample.form, sample.grades)
    graded = predictions if sample.form == "grades" else None
    pairs = [(task.query_id, task.doc_ids[0]) for task in sample.tasks]
    said = [math.nan] * len(pairs) if graded is None else graded.at(pairs).tolist()
    rows = []
    for task, label in zip(sample.tasks, said, strict=True):
        ids, title, text = _texts_of(task)
        shown = {"sample": sample.name, "task": task.task, "assessors": list(task.assessors), "query_id": task.query_id}
        shown |= {"doc_id": ids, "question": task.question, "title": title, "text": text}
        row: dict[str, Any] = {"data": shown}
        if graded is not None and not math.isnan(label):
            at = label - Scale.parse(sample.scale).low
            if at not in range(len(choices)):
                raise UsageError(
                    f"predictions: query {task.query_id!r}, doc {ids!r} has the label {label:g}, which is not one of"
                    f" the sample's {len(choices)} grades (scale {sample.scale})"
                )
            value = {"choices": [choices[int(at)]]}
            result = {"from_name": "rating", "to_name": "text", "type": "choices", "value": value}
            row["predictions"] = [{"model_version": graded.name, "result": [result]}]
        rows.append(row)
    shown_as = "".join(f"\n    <Choice value={json.dumps(choice)}/>" for choice in choices)
    config = (
        '<View>\n  <Header value="$question"/>\n  <Header value="$title" size="5"/>\n'
        f'  <Text name="text" value="$text"/>\n  <Choices name="rating" toName="text" choice="single">{shown_as}\n'
        '  </Choices>\n  <TextArea name="comment" toName="text" placeholder="Comment"/>\n</View>\n'
    )
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n", config


_CHOICES: Final = {"best": ("first", "second", "third", "none"), "answers": ("first", "second", "tie", "bad")}
"""What can be chosen of documents and answers: by their place, so that one interface serves all tasks."""


def _label_studio(path: Path, data: bytes, sample: Sample) -> Iterator[tuple[int | None, dict[str, str]]]:
    try:
        rows = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"is not valid JSON ({error}): was the export cut off?", path) from None
    tasks = {task.task: task for task in sample.tasks}
    for number, row in enumerate(rows, 1):
        try:
            shown = row["data"]
            base = {"sample": str(shown["sample"]), "task": str(shown["task"])}
            for made in row.get("annotations", []):
                who = made.get("completed_by", "")
                who = who.get("email") or who.get("id") if isinstance(who, Mapping) else who
                said = {one["from_name"]: one["value"] for one in made.get("result", [])}
                rating = (said.get("rating", {}).get("choices") or [""])[0]
                task = tasks.get(base["task"])
                if sample.form != "grades" and task is not None:
                    rating = dict(zip(("first", "second", "third"), task.doc_ids, strict=False)).get(rating, rating)
                comment = " ".join(said.get("comment", {}).get("text", []))
                skipped = "skipped" if made.get("was_cancelled") else ""
                yield None, {**base, "assessor": str(who), "rating": rating, "skipped": skipped, "comment": comment}
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            reason = f"task {number} does not belong to a Label Studio export of this sample ({error!r})"
            raise DataError(reason, path) from None


@dataclass(frozen=True)
class People:
    """What people say of each pair, by one rule, and what was asked with which probability.

    Attributes:
        labeling: the labels; ties, skipped and unreached pairs are missing.
        asked: rows ``query_id, doc_id, probability, content, status, judgments``: everything that was asked. Status is
            ok, tie (as many for each of two grades), skipped, or open (not reached).
    """

    labeling: Labeling
    asked: pd.DataFrame


_MISSING: Final[Mapping[str, Status]] = {"tie": Status.UNPARSED, "skipped": Status.REFUSED, "open": Status.UNASKED}


def resolve(judgments: Judgments, rule: str = "majority", name: str = "people") -> People:
    """Make one label of the judgments of each pair.

    Args:
        judgments: what assessors said of grades, or of the best of two or three.
        rule: ``majority`` (a tie stays undecided), ``mean``, ``adjudicated`` (where assessors differ, what the assessor
            ``adjudicator`` says) or ``best:NAME`` (one assessor's). Of the best of two or three the label is how
            often a document was chosen of the times it was shown.
        name: of the labeling.

    Raises:
        UsageError: the rule or assessor is unknown, or the judgments are of answers.
    """
    sample, rows = judgments.sample, [row for row in judgments.rows if not row.task.repeat_of]
    if sample.form == "answers":
        raise UsageError("these are preferences between answers, not labels of documents: read them as answer quality")
    scale = Scale.parse(sample.scale)
    if sample.form == "best":
        return _chosen(rows, name)
    kind, _, who = rule.partition(":")
    names = {row.assessor for row in rows}
    if kind not in ("majority", "mean", "adjudicated", "best") or (kind == "best") != bool(who):
        raise UsageError(f"{rule!r} is not a rule: expected majority, mean, adjudicated or best:NAME")
    if kind == "best" and who not in names:
        raise UsageError(not_among("assessor", who, sorted(names)))
    if kind == "mean" and scale.integral:
        scale = Scale("unit") if scale.kind == "binary" else replace(scale, kind="means")
    out = []
    for task, each in _by_task(rows):
        value, status = _one(each, kind, who)
        number = sum(row.value is not None for row in each)
        out.append((task.query_id, task.doc_ids[0], value, task.probability, task.content, status, number))
    return _people(out, scale, name)


def _by_task(rows: Iterable[Judgment]) -> list[tuple[Task, list[Judgment]]]:
    """Return the judgments of each task, in the order in which tasks appear."""
    said: dict[str, list[Judgment]] = defaultdict(list)
    for row in rows:
        said[row.task.task].append(row)
    return [(each[0].task, each) for each in said.values()]


def _one(rows: Sequence[Judgment], kind: str, who: str) -> tuple[float | None, str]:
    """Return the label of a pair and ok, tie, skipped or open."""
    of = {row.assessor: float(row.value) for row in rows if row.value is not None}
    if kind == "best":
        of = {name: value for name, value in of.items() if name == who}
    last = of.pop(ADJUDICATOR, None) if who != ADJUDICATOR else None
    if kind == "adjudicated" and last is not None and len(set(of.values())) != 1:
        return last, "ok"
    if not of:
        return None, "skipped" if any(row.skipped for row in rows) else "open"
    if kind == "mean":
        return sum(of.values()) / len(of), "ok"
    (first, count), *others = Counter(of.values()).most_common()
    tied = bool(others) and (kind == "adjudicated" or others[0][1] == count)
    return (None, "tie") if tied else (first, "ok")


ADJUDICATOR: Final = "adjudicator"
"""The name of the assessor who is shown what the others do not agree on."""


def _chosen(rows: Sequence[Judgment], name: str) -> People:
    shown: Counter[tuple[str, str]] = Counter()
    chosen: Counter[tuple[str, str]] = Counter()
    probability: dict[tuple[str, str], float] = {}
    for row in rows:
        for doc_id in row.task.doc_ids:
            pair = row.task.query_id, doc_id
            probability.setdefault(pair, row.task.probability)
            shown[pair] += row.value is not None
            chosen[pair] += row.value == doc_id
    out = []
    for pair, chance in probability.items():
        value, status = (chosen[pair] / shown[pair], "ok") if shown[pair] else (None, "open")
        out.append((*pair, value, chance, "", status, shown[pair]))
    return _people(out, Scale("unit"), name)


def _people(rows: Sequence[tuple[Any, ...]], scale: Scale, name: str) -> People:
    columns = ("query_id", "doc_id", "relevance", *ASKED_COLUMNS[2:])
    table = pd.DataFrame(rows, columns=list(columns)).sort_values(["query_id", "doc_id"], ignore_index=True)
    labels = table[["query_id", "doc_id", "relevance"]].astype({"relevance": "float64"})
    labels["status"] = [_MISSING.get(status, Status.OK).value for status in table["status"]]
    return People(Labeling(name, scale, labels), table[list(ASKED_COLUMNS)])


def asked_of(judgments: Judgments, people: People) -> Asked:
    """Return what stands beside the qrels: every pair that was asked about, and with which probability."""
    sample = judgments.sample
    rows = people.asked[list(ASKED_COLUMNS)].astype({"judgments": "object", "probability": "object"})
    table = tuple(rows.itertuples(index=False, name=None))
    return Asked(sample.name, sample.design, str(people.labeling.scale), sample.queries, sample.pairs, table)


def read_people(path: Path, collection: Collection) -> People:
    """Read labels that `judgekit annotate read` wrote, and check that their texts are those of the collection.

    Raises:
        DataError: a file is missing or damaged, or a text is not the one that people judged.
    """
    asked = Asked.beside(path)
    if asked is None:
        if not path.exists():
            raise DataError("no such file; expected labels that `judgekit annotate read` wrote", path)
        raise DataError(f"{asked_path(path).name} is not beside it: people's labels come from `annotate read`", path)
    table = pd.DataFrame(asked.rows, columns=list(ASKED_COLUMNS)).astype({"probability": "float64"})
    for query_id, doc_id, content in zip(table["query_id"], table["doc_id"], table["content"], strict=True):
        if query_id not in collection.queries:
            raise DataError(f"query {query_id!r} is not in this experiment: these labels belong to another", path)
        if doc_id not in collection.pairs.get(query_id, ()):
            raise DataError(f"query {query_id!r}, doc {doc_id!r} is not in the pool of the experiment's runs", path)
        (doc,) = collection.docs.get([doc_id])
        if content and content != content_of(collection.queries[query_id].text, ((doc.title, doc.text),)):
            raise DataError(f"query {query_id!r}, doc {doc_id!r}: the text is not the one that people judged", path)
    return People(read_qrels(path, "people", Scale.parse(asked.scale)), table)


def preferences(judgments: Judgments, model: str = "people") -> pd.DataFrame:
    """Return which of two answers people preferred, as answer quality: 1 and 0, both .5 for a tie, both 0 for both bad.

    Several assessors are averaged. The quality table has the metric ``preferred``.

    Raises:
        UsageError: the judgments are not of answers.
    """
    if judgments.sample.form != "answers":
        raise UsageError("these are judgments of documents: read them as labels")
    depth = int(judgments.sample.design.partition("depth=")[2].partition(",")[0] or 1)
    rows = []
    for row in judgments.rows:
        if row.value is None or row.task.repeat_of:
            continue
        for run in row.task.doc_ids:
            value = 0.5 if row.value == "tie" else float(row.value == run)
            rows.append({"run": run, "depth": depth, "query_id": row.task.query_id, "value": value})
    if not rows:
        return QUALITY.empty()
    means = pd.DataFrame(rows).groupby(["run", "depth", "query_id"], as_index=False)["value"].mean()
    return QUALITY.check(means.assign(model=model, metric="preferred", answer="", status=Status.OK.value))


def _as_labeling(rows: Iterable[Judgment], name: str, form: str, scale: Scale) -> Labeling:
    """Return an assessor's judgments as labels; preferences as codes, whose order means nothing."""
    table = []
    for row in rows:
        code = row.value
        if form != "grades" and code is not None:
            code = float([*row.task.doc_ids, "none", "tie", "bad"].index(str(code)))
        if code is not None:
            table.append((row.task.query_id, " ".join(row.task.doc_ids), code))
    return Labeling(name, scale, pd.DataFrame(table, columns=["query_id", "doc_id", "relevance"]))


def assessor_agreement(judgments: Judgments, *, resamples: int = 1000, seed: int = 1) -> dict[str, Agreement]:
    """Return how far assessors agree: ``between`` every two, ``rest`` (each with the mode of the others), ``self``.

    ``self`` compares each assessor's first judgments with those of the same tasks shown again. What cannot be worked
    out (one assessor, no task twice) is not there; ``rest`` is about grades only, and of choices and preferences only
    the nominal coefficients mean something.
    """
    form = judgments.sample.form
    scale = Scale.parse(judgments.sample.scale) if form == "grades" else Scale("grades", 5)
    first: dict[str, list[Judgment]] = defaultdict(list)
    again: dict[str, list[Judgment]] = defaultdict(list)
    for row in judgments.rows:
        (again if row.task.repeat_of else first)[row.assessor].append(row)

    def agreed(*given: tuple[str, Iterable[Judgment]]) -> Agreement:
        labelings = [_as_labeling(rows, name, form, scale) for name, rows in given]
        return agreement(labelings, resamples=resamples, seed=seed)

    out: dict[str, Agreement] = {}
    names = sorted(first)
    if len(names) > 1:
        out["between"] = agreed(*((name, first[name]) for name in names))
    if len(names) > 1 and form == "grades":
        rest = []
        for name in names:
            others = judgments.only(each for each in names if each != name)
            modes = resolve(others, name="the others").labeling
            mine = _as_labeling(first[name], name, form, scale)
            rest.append(agreement([mine, modes], resamples=resamples, seed=seed))
        out["rest"] = _joined(rest)
    pairs = [
        agreed((name, first[name]), (f"{name} again", [replace(r, task=replace(r.task, repeat_of="")) for r in rows]))
        for name, rows in sorted(again.items())
    ]
    if pairs:
        out["self"] = _joined(pairs)
    return out


def _joined(parts: Sequence[Agreement]) -> Agreement:
    tables = [
        pd.concat([getattr(part, name) for part in parts], ignore_index=True)
        for name in ("table", "confusion", "coverage")
    ]
    return Agreement(*tables)


def disputed(judgments: Judgments, sample: Sample) -> Sample:
    """Return the tasks that assessors judge differently, or that all skipped, for the assessor ``adjudicator``.

    The sample keeps its name, so that the judgments are read together.
    """
    apart = set()
    for task, rows in _by_task(judgments.rows):
        values = {row.value for row in rows if row.value is not None}
        if not task.repeat_of and (len(values) > 1 or (not values and any(row.skipped for row in rows))):
            apart.add(task.task)
    tasks = (replace(task, assessors=(ADJUDICATOR,)) for task in sample.tasks if task.task in apart)
    return replace(sample, tasks=tuple(tasks))
