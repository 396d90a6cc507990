"""Rows as questions: several rows of one question count as one, with the mean of its scores and answers.

Rows of one question are samples of it: its quality is their mean, and the unit of counting and resampling stays the
question. If all questions have equally many rows, each becomes a single row, so that copies of a table change nothing.
Otherwise a question keeps rows in proportion, all with its mean and resampled together: a frequent question weighs more
in a mean, but is still one piece of evidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd

from judgekit.data.questions import joined
from judgekit.data.tables import ALL, SAMPLES, Status
from judgekit.errors import DataError

_KEYS: Final = ("labeling", "run", "measure", "depth", "model", "metric", "mode")
"""The columns that tell a question's values apart."""


@dataclass(frozen=True)
class QuestionRows:
    """The rows of a comparison, and those that stand for each question.

    Attributes:
        question: the id of each row's question, by query id; empty if no question has two rows.
        kept: the rows that stand for each question, in order.
    """

    question: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, questions: Mapping[str, str], ids: Iterable[str]) -> QuestionRows:
        """Return the rows' questions; a row that is not named is its own question."""
        rows: dict[str, list[str]] = {}
        question: dict[str, str] = {}
        for query_id in sorted(set(ids)):
            question[query_id] = questions.get(query_id, query_id)
            rows.setdefault(question[query_id], []).append(query_id)
        if len(rows) == len(question):
            return cls()
        share = math.gcd(*map(len, rows.values()))
        return cls(question, {name: tuple(own[: len(own) // share]) for name, own in rows.items()})

    @property
    def uneven(self) -> bool:
        """Whether some questions keep several rows."""
        return any(len(own) > 1 for own in self.kept.values())

    def standing(self, ids: Iterable[str]) -> list[str]:
        """Return the rows that stand for the questions of some rows, sorted."""
        rows = set[str]()
        for query_id in ids:
            rows.update(self.kept.get(self.question.get(query_id, ""), (query_id,)))
        return sorted(rows)

    def merged(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return scores or quality with the rows that stand for the questions, each with its question's mean.

        Raises:
            DataError: two values have the same keys and query id.
        """
        if not self.question:
            return table
        keys = [name for name in _KEYS if name in table.columns]
        refuse_twice(table, [*keys, "query_id"])
        keys = [*keys, "query_id"]
        table = table.assign(query_id=table["query_id"].map(lambda name: self.question.get(name, name)))
        bounded = "low" in table.columns and "high" in table.columns
        names = ["value"]
        if bounded:
            # A known value is its own bound; a value that is neither known nor bounded says nothing.
            known = table["value"].notna()
            table = table.assign(low=table["low"].mask(known, table["value"]))
            table = table.assign(high=table["high"].mask(known, table["value"]))
            table["open"] = ~known & (table["low"] < table["high"])
            names += ["low", "high"]
        groups = table.groupby(keys, sort=False, dropna=False)
        means, least, most = groups[names].mean(), groups[names].min(), groups[names].max()
        # The mean of equal values is exactly that value, without rounding.
        merged = means.where(least != most, least)
        if bounded:
            merged.loc[groups["open"].any(), "value"] = np.nan
        if "status" in table.columns:
            inapplicable = table["status"] == Status.NOT_APPLICABLE.value
            never = inapplicable.groupby([table[name] for name in keys], sort=False, dropna=False).all()
            merged["status"] = np.where(never, Status.NOT_APPLICABLE.value, Status.OK.value)
        return self._standing(merged.reset_index())

    def _standing(self, by_question: pd.DataFrame) -> pd.DataFrame:
        """Return a table by question with a row for each row that stands for it."""
        ids = by_question["query_id"].map(lambda name: list(self.kept.get(name, (name,))))
        table = by_question.assign(query_id=ids).explode("query_id", ignore_index=True)
        return table.astype({"query_id": by_question["query_id"].dtype})

    def means(self, values: Mapping[str, float]) -> Mapping[str, float]:
        """Return numbers by query id as means of questions, by the rows that stand for them."""
        if not self.question or not values:
            return values
        table = pd.DataFrame({"query_id": list(values), "value": list(values.values())})
        merged = self.merged(table)
        return dict(zip(merged["query_id"], merged["value"], strict=True))

    def of_kind(self, kinds: Mapping[str, str], kind: str) -> set[str]:
        """Return the rows that stand for questions of a kind, by the kind of each query."""
        return {*self.standing(query_id for query_id, own in kinds.items() if own == kind)}

    def units(self, ids: Collection[str], groups: Mapping[str, str] | None) -> list[str] | None:
        """Return the unit of each row that stands for a question, by name; None if each stands alone."""
        if groups is None and not self.uneven:
            return None
        # All rows of a question join their groups, even those that do not stand for it.
        everything = {**{query_id: query_id for query_id in ids}, **self.question}
        unit = joined(everything, groups or {})
        return [unit[query_id] for query_id in ids]

    def distinct(self, ids: Collection[str]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Return the number of the question of each row, shape (Q,)."""
        names = [self.question.get(query_id, query_id) for query_id in ids]
        return np.asarray(np.unique(names, return_inverse=True)[1], np.intp)

    def rows_of(self, ids: Iterable[str]) -> list[str]:
        """Return all rows of the questions that some rows stand for."""
        wanted = {self.question.get(query_id, query_id) for query_id in ids}
        rows = [query_id for query_id, question in self.question.items() if question in wanted]
        return rows or list(wanted)


def refuse_twice(rows: pd.DataFrame, keys: list[str]) -> None:
    """Refuse two values for the same keys: their mean would hide that a file was read twice."""
    twice = rows[rows.duplicated(keys)]
    if len(twice):
        row = twice.iloc[0]
        names = [n for n in ("labeling", "run", "measure", "depth", "model", "query_id", "metric") if n in row.index]
        about = ", ".join(f"{name} {str(row[name])!r}" for name in names)
        cure = f"several answers to a question need a column {SAMPLES[0]!r} that numbers them"
        raise DataError(f"two values for {about}: {cure}")


def texts_in(tables: Iterable[pd.DataFrame]) -> Iterator[tuple[str, str, str]]:
    """Yield query id, text and language of each row of tables that have texts."""
    for table in tables:
        if "text" not in table.columns or "query_id" not in table.columns:
            continue
        names = ["query_id", "text"]
        if "language" in table.columns:
            names.append("language")
        for row in table[names].dropna(subset="text").drop_duplicates().itertuples(index=False):
            if row[0] != ALL and str(row[1]).strip():
                language = row[2] if len(row) > 2 and isinstance(row[2], str) else ""
                yield str(row[0]), str(row[1]), language
