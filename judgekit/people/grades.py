"""People's grades of answers, matched with the answers of runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from judgekit.data.labelings import Scale
from judgekit.data.tables import ALL, Status
from judgekit.data.trec import Asked, asked_path, read_qrels
from judgekit.errors import DataError, UsageError
from judgekit.people.sampling import ANSWERS_DESIGN, answered_by_all
from judgekit.people.tasks import answer_id
from judgekit.spec import parse


@dataclass(frozen=True)
class Grades:
    """People's grades of answers.

    Attributes:
        values: grades from 0 to 1, by question and `answer_id`.
        depth: of the answers.
        drawn_from: the number of questions from which the graded ones were drawn at random.
        path: the file.
    """

    values: Mapping[tuple[str, str], float]
    depth: int
    drawn_from: int
    path: Path

    def over(self, texts: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
        """Return people's grade of each run's answer: rows ``run, query_id, value``.

        Args:
            texts: the answers of each run by question.

        Raises:
            DataError: the sample was drawn from other answers.
        """
        asked = dict.fromkeys(query_id for of_run in texts.values() for query_id in of_run)
        answered = answered_by_all(asked, texts)
        # Grades are a random sample only of the questions from which they were drawn.
        if len(answered) != self.drawn_from:
            reason = (
                f"the grades were drawn from {self.drawn_from:,} questions that every run answered, but now there are"
                f" {len(answered):,}: draw a new sample"
            )
            raise DataError(reason, self.path)
        rows, known = [], set[tuple[str, str]]()
        for run, of_run in texts.items():
            for query_id in answered:
                key = query_id, answer_id(of_run[query_id])
                known.add(key)
                if key in self.values:
                    rows.append({"run": run, "query_id": query_id, "value": self.values[key]})
        # Grades of old answers say nothing about the application now.
        for key in self.values:
            if key not in known:
                reason = f"the graded answers to query {key[0]!r} are not among the answers: they have changed since"
                raise DataError(reason, self.path)
        return pd.DataFrame(rows, columns=["run", "query_id", "value"])


def is_grades(path: Path) -> bool:
    """Return whether a file holds people's grades of answers, not of passages."""
    asked = Asked.beside(path)
    return asked is not None and parse(asked.design).name == ANSWERS_DESIGN


def read_grades(path: Path) -> Grades:
    """Read grades that `judgekit annotate read` wrote.

    Raises:
        DataError: the file is missing, or holds labels of passages.
    """
    asked = Asked.beside(path)
    if asked is None:
        if not path.exists():
            raise DataError("no such file; expected grades that `judgekit annotate read` wrote", path)
        raise DataError(f"{asked_path(path).name} is not next to it: use the files that `annotate read` wrote", path)
    design = parse(asked.design)
    if design.name != ANSWERS_DESIGN:
        raise DataError("holds labels of passages; grades of answers come from `annotate sample --answers`", path)
    scale = Scale.parse(asked.scale)
    table = read_qrels(path, "people", scale, negative=False).table
    table = table[table["status"] == Status.OK.value]
    span = scale.high - scale.low
    grades = ((table["relevance"] - scale.low) / span).tolist()
    pairs = zip(table["query_id"].astype(str), table["doc_id"].astype(str), strict=True)
    values = dict(zip(pairs, grades, strict=True))
    return Grades(values, int(str(design.options["depth"])), asked.queries, path)


def grades_of(
    grades: Grades, quality: pd.DataFrame, metric: str, runs: Sequence[str], depth: int | None
) -> pd.DataFrame:
    """Return people's grade of each run's answer: rows ``run, query_id, value``.

    Raises:
        DataError: the graded answers are from another depth, or are not those of the quality table.
    """
    # With more documents the answers are different ones, and ungraded.
    if depth not in (None, grades.depth):
        reason = f"holds grades of answers from the top {grades.depth}, but the decision is about the top {depth}"
        raise DataError(reason, grades.path)
    return grades.over(texts_of(quality, metric, grades.depth, runs))


def texts_of(quality: pd.DataFrame, metric: str, depth: int, runs: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the answers of each run by question, from a quality table.

    Raises:
        UsageError: a run has no answers with their texts.
    """
    texts: dict[str, dict[str, str]] = {}
    for run in runs:
        rows = quality[(quality["run"] == run) & (quality["metric"] == metric) & (quality["depth"] == depth)]
        if not len(rows) or "answer" not in rows:
            have = ", ".join(sorted(set(quality["run"]) - {ALL})) or "none"
            raise UsageError(f"run {run!r} has no answers from the top {depth} to grade (runs with answers: {have})")
        given = rows[rows["answer"].notna() & (rows["answer"] != "")]
        texts[run] = dict(zip(given["query_id"], given["answer"].astype(str), strict=True))
    return texts
