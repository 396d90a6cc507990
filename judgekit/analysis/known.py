"""Records beside labels, answers and scores: who made them, from what, at which cost (`judgekit.labelers.made`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgekit.analysis.background import Background
from judgekit.analysis.leakage import AnsweredBy
from judgekit.analysis.money import ANSWERING, COSTS
from judgekit.collection import Pool
from judgekit.data.manifest import made_in
from judgekit.data.tables import MADE
from judgekit.errors import DataError
from judgekit.labelers.made import Record, endpoint_of, needs_of


@dataclass(frozen=True)
class Known:
    """Records of labels by name and of answers by model, and the amounts to label and to answer by depth."""

    labels: Mapping[str, Record] = field(default_factory=dict)
    answers: Mapping[str, Record] = field(default_factory=dict)
    pools: Mapping[str, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, *given: Any) -> Known:
        """Return the joined records of tables, files and results of `judgekit.score`."""
        known = cls()
        for part in given:
            if isinstance(part, list | tuple):
                known = known.joined(cls.of(*part))
            elif isinstance(part, str | Path):
                known = known.joined(cls(**made_in(Path(part))))
            elif isinstance(part, pd.DataFrame):
                known = known.joined(cls(**part.attrs.get(MADE, {})))
            elif hasattr(part, "made"):
                known = known.joined(cls(**part.made))
        return known

    def joined(self, other: Known) -> Known:
        """Return both joined; later records win."""
        return Known(
            labels={**self.labels, **other.labels},
            answers={**self.answers, **other.answers},
            pools={**self.pools, **other.pools},
        )

    def with_needs(self, background: Background) -> Background:
        """Return the background with the labels' needs and who answered; the caller's own facts win."""
        try:
            needs = {name: needs_of(record) for name, record in self.labels.items()}
            answering = {model: _answered_by(record) for model, record in self.answers.items()}
        except (KeyError, TypeError) as error:
            raise DataError(f"a manifest of another version does not say how labels were made ({error})") from error
        return replace(background, needs={**needs, **background.needs}, answering={**answering, **background.answering})

    def with_costs(self, background: Background, model: str, depth: int) -> Background:
        """Return the background with the costs of labels and of the answers at a depth."""
        if not self.labels and not self.answers:
            return background
        rows = [{"labeling": name, **record["costs"]} for name, record in self.labels.items()]
        answers = self.answers.get(model, {})
        answered = answers.get("costs", {}).get(str(depth))
        if answered is not None:
            rows.append({"labeling": ANSWERING, **answered})
        if background.costs is None and rows:
            frame = pd.DataFrame(rows).reindex(columns=["labeling", *COSTS.optional])
            costs = frame.astype(dict.fromkeys(COSTS.optional, "float64"))
            background = replace(background, costs=costs)
        if background.pool is None:
            background = replace(background, pool=self._pool(depth))
        return background

    def _pool(self, depth: int) -> Pool | None:
        """Return the amounts to label and to answer; None if unknown at this depth."""
        given = self.pools.get(str(depth))
        if given is None or not self.labels:
            return None
        values: dict[str, Any] = {name: tuple(held) if isinstance(held, list) else held for name, held in given.items()}
        pool = Pool(**values)
        # Costs of labels cover everything labelled, which may be more than is compared.
        asked, pooled = max((record["queries"], record["pairs"]) for record in self.labels.values())
        return replace(pool, pooled=max(round(pooled * pool.queries / max(asked, 1)), pool.pairs))


def _answered_by(record: Record) -> AnsweredBy:
    asked = record["endpoint"]
    return AnsweredBy(record["model"] if asked is None else endpoint_of(asked), record["prompt"])
