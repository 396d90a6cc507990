"""A sample of tasks for people: pairs, their probabilities, and everything that a page shows.

The file is JSON lines: a description of the sample, then one task per line. It holds the texts, so that it suffices to
make a page, and their hash, so that judgments are never applied to other documents. It holds no machine labels, which
assessors must not see.
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
"""The most frequent grade, with ties left to an adjudicator; or the mean of the grades."""

_MARK: Final = "judgekit"
_EXPECTED: Final = "a sample that `judgekit annotate sample` wrote"


@dataclass(frozen=True)
class Task:
    """One task to judge.

    Attributes:
        task: its id in the sample.
        query_id: the question's id.
        question: the question's text.
        doc_ids: the shown documents: one to grade, two or three to choose from; for an answer its `answer_id`.
        texts: each document's title and text; for an answer "" and the answer.
        probability: the probability of being drawn, > 0, by which results can be weighted.
        assessors: the assessors who are asked.
        repeat_of: the task that this one repeats, to measure assessors' agreement with themselves; "" for none.
        content: the hash of the question and the texts.
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
        """Return the task for these documents, or for an answer as a document."""
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
        """Return the fields that a judgment repeats from its task: all but the texts and the assessors."""
        # Never change this order: the keys of all existing sheets are hashes of it.
        names = ("task", "query_id", "doc_ids", "repeat_of", "probability", "content")
        return {name: getattr(self, name) for name in names}


def answer_id(text: str) -> str:
    """Return the id of an answer on a sheet, which does not reveal the run."""
    # With the run's name in it, an id would tell the assessor whose answer it is.
    return f"a{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def content_of(question: str, texts: Sequence[tuple[str, str]]) -> str:
    """Return a hash of a task's content."""
    shown = json.dumps([question, [list(text) for text in texts]])
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sample:
    """What people are asked.

    Attributes:
        form: the kind of task.
        design: the spelling of how tasks were drawn.
        scale: the scale of the grades, as `judgekit.Scale` spells it.
        grades: the names of the grades, the lowest first, which has the scale's lowest number.
        guideline: the page's instructions for the assessor.
        queries: number of queries from which the sample was drawn.
        pairs: number of pairs from which the sample was drawn.
        seed: seed of the draw and of the order on the page.
        rule: the rule that turns several assessors' judgments of a pair into one label.
        before: earlier looks' pairs, as rows of the table of people's labels; they are not asked again.
        tasks: the tasks, in an order that reveals nothing.
        name: a hash of all this, which reveals judgments of another sample.
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
        # By content: samples that ask the same have the same name, and any change makes another.
        if not self.name:
            drawn = hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]
            object.__setattr__(self, "name", drawn)

    @property
    def assessors(self) -> tuple[str, ...]:
        """All assessors, ordered by name."""
        return tuple(sorted({name for task in self.tasks for name in task.assessors}))

    def row(self, task: Task, assessor: str) -> dict[str, Any]:
        """Return the fields that a judgment repeats from its task, and its key of sample and assessor."""
        return {**task.brief(), "key": self.key(task, assessor)}

    def key(self, task: Task, assessor: str) -> str:
        """Return a hash of the sample, the task and the assessor; no spreadsheet takes it for a number."""
        signed = json.dumps([self.name, assessor, task.brief()])
        return f"k{hashlib.sha256(signed.encode()).hexdigest()[:16]}"

    def head(self, assessor: str) -> dict[str, Any]:
        """Return the fields that an assessor's judgments repeat from their sample."""
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
            # Judgments of texts other than the shown ones would mean nothing.
            if task.content != content_of(task.question, task.texts):
                raise DataError("the texts are not the ones that were sampled: sample again", path, number)
        if sample.name != replace(sample, name="").name:
            raise DataError("was changed after it was written: sample again", path)
        return sample


def _built(cls: type[Any], row: Mapping[str, Any], path: Path, line: int) -> Any:
    """Return a dataclass from JSON, with tuples for lists."""
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
