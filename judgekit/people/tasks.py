"""A sample of what people are asked: which pairs, drawn with which probability, and everything a page has to show.

The file is JSON lines: first what was sampled and how, then one task a line. It holds the texts, so that a page can be
made from it alone, and a hash of them, so that judgments are never read back onto other documents. It holds no machine
label: assessors must not see one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, Self

from judgekit.data.documents import Doc, Query
from judgekit.data.records import parse_object
from judgekit.data.streams import lines, write_atomic
from judgekit.errors import DataError

Form = Literal["grades", "best"]
"""Grade one passage or answer; choose the best of two or three passages, or none."""

Rule = Literal["majority", "mean"]
"""The grade that most give, ties waiting for an adjudicator; or the mean of the grades."""

_MARK: Final = "judgekit"
_EXPECTED: Final = "a sample that `judgekit annotate sample` wrote"


@dataclass(frozen=True)
class Task:
    """One thing to judge.

    Attributes:
        task: its id in the sample.
        query_id: of the question.
        question: its text.
        doc_ids: the documents that are shown: one to grade, two or three to choose from; for an answer its `answer_id`.
        texts: per document its title and its text; for an answer "" and the answer.
        probability: with which it was drawn, > 0, so that what is worked out from a sample can be weighted.
        assessors: who is asked.
        repeat_of: the task that this one repeats, for the agreement of assessors with themselves; "" for none.
        content: hash of the question and the texts.
    """

    task: str
    query_id: str
    question: str
    doc_ids: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]
    probability: float
    assessors: tuple[str, ...] = ("1",)
    repeat_of: str = ""
    content: str = ""

    @classmethod
    def of(cls, task: str, query: Query, shown: Sequence[Doc], probability: float) -> Self:
        """Return the task that shows these documents, or an answer as a document."""
        texts = tuple((doc.title, doc.text) for doc in shown)
        return cls(
            task,
            query.query_id,
            query.text,
            doc_ids=tuple(doc.doc_id for doc in shown),
            texts=texts,
            probability=probability,
            content=content_of(query.text, texts),
        )

    def brief(self) -> dict[str, Any]:
        """Return what a judgment repeats of its task: all but the texts and who is asked."""
        # In this order for good: the keys of all sheets that were ever written are hashes of it.
        names = ("task", "query_id", "doc_ids", "repeat_of", "probability", "content")
        return {name: getattr(self, name) for name in names}


def answer_id(text: str) -> str:
    """Return the id of an answer on a sheet, which tells nothing of the run that gave it."""
    # An id that names its run would tell an assessor whose answer it is.
    return f"a{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def content_of(question: str, texts: Sequence[tuple[str, str]]) -> str:
    """Return a hash of what a task shows."""
    shown = json.dumps([question, [list(text) for text in texts]])
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sample:
    """What people are asked.

    Attributes:
        form: what a task asks for.
        design: how the tasks were drawn, in one spelling.
        scale: of the grades, as `judgekit.Scale` spells it.
        grades: the names of the grades, the lowest first; its number is the scale's lowest.
        guideline: what the page tells the assessor.
        queries: how many queries the sample was drawn from.
        pairs: how many pairs it was drawn from.
        seed: of the draw, and of the order on the page.
        rule: what makes one label of several assessors' judgments of a pair.
        before: what earlier looks asked, as rows of the table of people's labels; nobody is asked again.
        tasks: in no order that tells anything.
        name: a hash of all of this: it identifies judgments of another sample.
    """

    form: Form
    design: str
    scale: str
    grades: tuple[str, ...]
    guideline: str
    queries: int
    pairs: int
    seed: int
    rule: Rule = "majority"
    before: tuple[tuple[Any, ...], ...] = field(repr=False, default=())
    tasks: tuple[Task, ...] = field(repr=False, default=())
    name: str = ""

    def __post_init__(self) -> None:
        # By content, so that two samples that ask the same are one, and any change makes another.
        if not self.name:
            drawn = hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]
            object.__setattr__(self, "name", drawn)

    @property
    def assessors(self) -> tuple[str, ...]:
        """Everybody who is asked, in the order of their names."""
        return tuple(sorted({name for task in self.tasks for name in task.assessors}))

    def row(self, task: Task, assessor: str) -> dict[str, Any]:
        """Return what a judgment repeats of its task, and the key that ties it to this sample and assessor."""
        return {**task.brief(), "key": self.key(task, assessor)}

    def key(self, task: Task, assessor: str) -> str:
        """Return a hash of the sample, the task and the assessor; no spreadsheet takes it for a number."""
        signed = json.dumps([self.name, assessor, task.brief()])
        return f"k{hashlib.sha256(signed.encode()).hexdigest()[:16]}"

    def head(self, assessor: str) -> dict[str, Any]:
        """Return what the judgments of an assessor repeat of their sample."""
        names = ("form", "design", "scale", "queries", "pairs")
        return {"sample": self.name, **{name: getattr(self, name) for name in names}, "assessor": assessor}

    def write(self, path: Path) -> None:
        """Write the sample."""
        head = {_MARK: "sample", **asdict(self)}
        rows = [head, *head.pop("tasks")]
        write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a sample."""
        found = lines(path, _EXPECTED)
        first = next(found, None)
        head = {} if first is None else parse_object(first, path)
        if head.pop(_MARK, None) != "sample":
            raise DataError(f"is not {_EXPECTED}", path, 1)
        tasks: list[Task] = []
        for line in found:
            if line.text.strip():
                tasks.append(_built(Task, parse_object(line, path), path, line.number))
        sample: Self = replace(_built(cls, head, path, 1), tasks=tuple(tasks))
        for number, task in enumerate(tasks, 2):
            # Judgments of other texts than those that were shown would be labels of nothing.
            if task.content != content_of(task.question, task.texts):
                raise DataError("the texts are not the ones that were sampled: sample again", path, number)
        if sample.name != replace(sample, name="").name:
            raise DataError("was changed after it was written: sample again", path)
        return sample


def _built(cls: type[Any], row: Mapping[str, Any], path: Path, line: int) -> Any:
    """Return a dataclass from JSON, whose lists are tuples."""
    known = {field.name for field in fields(cls)} - {"tasks"}
    odd = sorted(row.keys() ^ known)
    if odd:
        verb = "has" if odd[0] in row else "lacks"
        raise DataError(f"{verb} the field {odd[0]!r}; expected {_EXPECTED}", path, line)
    return cls(**{name: _tuples(value) for name, value in row.items()})


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    return value
