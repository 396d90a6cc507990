"""People's grades of answers, read back and laid over the answers of runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from judgekit.analysis.graded import GradedQuality, corrected_quality
from judgekit.data.labelings import Scale
from judgekit.data.tables import ALL, Status
from judgekit.data.trec import Asked, asked_path, read_qrels
from judgekit.errors import DataError, UsageError
from judgekit.people.sampling import ANSWERS_DESIGN, answered_by_all
from judgekit.people.tasks import answer_id
from judgekit.spec import parse


@dataclass(frozen=True)
class Grades:
    """What people say of answers.

    Attributes:
        values: grades on 0 to 1, by question and `answer_id`.
        depth: of the answers.
        drawn_from: the number of questions that the graded ones were drawn from, at random.
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
            DataError: the answers are not those that the sample was drawn from.
        """
        there = answered_by_all(dict.fromkeys(query for of_run in texts.values() for query in of_run), texts)
        if len(there) != self.drawn_from:
            reason = (
                f"the grades were drawn from {self.drawn_from:,} questions that every run answered, and now there are"
                f" {len(there):,}: draw a new sample"
            )
            raise DataError(reason, self.path)
        known = {(query_id, answer_id(texts[run][query_id])) for run in texts for query_id in there}
        strange = next((query_id for query_id, answer in self.values if (query_id, answer) not in known), None)
        if strange is not None:
            reason = f"the graded answers to query {strange!r} are not among the answers: they have changed since"
            raise DataError(reason, self.path)
        rows = [
            {"run": run, "query_id": query_id, "value": self.values[key]}
            for run in texts
            for query_id in there
            if (key := (query_id, answer_id(texts[run][query_id]))) in self.values
        ]
        return pd.DataFrame(rows, columns=["run", "query_id", "value"])


def is_grades(path: Path) -> bool:
    """Return whether a file holds people's grades of answers, rather than of passages."""
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
    table = read_qrels(path, "people", scale).table
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
    if depth not in (None, grades.depth):
        reason = (
            f"holds grades of answers from the top {grades.depth}, and the decision is about those from the top {depth}"
        )
        raise DataError(reason, grades.path)
    return grades.over(texts_of(quality, metric, grades.depth, runs))


def corrected_by(
    grades: Grades,
    quality: pd.DataFrame,
    metric: str,
    runs: Sequence[str],
    *,
    groups: Mapping[str, str] | None = None,
    confidence: float = 0.95,
) -> GradedQuality:
    """Return the quality of runs as a metric rates it, corrected by people's grades.

    Args:
        grades: people's.
        quality: a quality table of one answering model, with the texts of the answers.
        metric: whose values are corrected.
        runs: names.
        groups: the group of each question, where questions belong together.
        confidence: of the intervals.
    """
    rows = quality[(quality["metric"] == metric) & (quality["depth"] == grades.depth)]
    values = rows.pivot_table(index="run", columns="query_id", values="value", aggfunc="mean").reindex(index=list(runs))
    # A question that the metric rates for some runs only says nothing of their difference.
    values = values.loc[:, values.notna().all(axis=0)]
    given = grades_of(grades, quality, metric, runs, None).pivot_table(
        index="run", columns="query_id", values="value", aggfunc="mean"
    )
    people = given.reindex(index=list(runs), columns=values.columns)
    together = None if groups is None else np.array([groups.get(str(query), f"\0{query}") for query in values.columns])
    return corrected_quality(
        tuple(runs),
        people.to_numpy(np.float64),
        values.to_numpy(np.float64),
        groups=None if together is None else np.unique(together, return_inverse=True)[1],
        confidence=confidence,
    )


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
