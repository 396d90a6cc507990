"""Scoring runs with labelings, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.data.labelings import Labeling
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, SCORES
from judgekit.errors import UsageError
from judgekit.metrics.formulas import FORMULAS
from judgekit.metrics.measure import Measure, parse_measure
from judgekit.metrics.scene import Scene

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation", "Mean", "evaluate"]


class Mean(NamedTuple):
    """One measure of one run under one labeling over all queries, with what it is a mean of."""

    labeling: str
    run: str
    measure: str
    value: float
    """Mean over the queries on which the measure is defined; NaN if there is none."""
    queries: int
    """Queries that were scored, defined or not."""
    defined: int
    missing: int
    """Queries without a score because a label is missing."""
    not_applicable: int
    """Queries without a score because the labeling does not apply to them."""
    undefined: int
    """Further queries on which the measure is not defined."""
    not_in_run: int
    """Queries that the run lacks; they score 0."""
    no_relevant: int
    """Queries without any relevant document; they score 0."""
    reason: str
    """Why the measure is not defined under this labeling at all, else empty."""


class Evaluation:
    """Scores of every measure of every run under every labeling, for every query.

    Attributes:
        measures, labelings, runs, query_ids: the names along the axes.
        values: shape (measures, labelings, runs, queries); NaN where undefined.
        listed: which queries each labeling was scored on, shape (labelings, queries).
    """

    def __init__(
        self,
        scene: Scene,
        measures: list[Measure],
        runs: list[str],
        query_ids: list[str],
        listed: npt.NDArray[np.bool_],
    ) -> None:
        """Compute all measures; use `evaluate`."""
        self.measures = measures
        self.labelings = [x.name for x in scene.labelings]
        self.runs = runs
        self.query_ids = query_ids
        self.listed = listed
        self._scene = scene
        self.reasons = {
            (labeling.name, str(m)): reason
            for labeling in scene.labelings
            for m in measures
            if (reason := _reason(m, labeling))
        }
        self.values = np.empty((len(measures), *scene.shape))
        blank = (scene.missing | scene.excused | ~listed)[:, None, :]
        for i, measure in enumerate(measures):
            self.values[i] = FORMULAS[measure.name](scene, measure)
            bad = np.array([(name, str(measure)) in self.reasons for name in self.labelings])
            self.values[i][np.broadcast_to(blank | bad[:, None, None], scene.shape)] = np.nan

    def scores(self) -> pd.DataFrame:
        """Return one row per labeling, run, measure and query: the table `SCORES`; NaN is undefined."""
        import pandas as pd

        labelings, runs, measures, queries = np.nonzero(
            np.broadcast_to(self.listed[:, None, None, :], np.moveaxis(self.values, 0, 2).shape)
        )
        names = [str(m) for m in self.measures]
        columns = {
            "labeling": np.array(self.labelings, dtype=object)[labelings],
            "run": np.array(self.runs, dtype=object)[runs],
            "measure": np.array(names, dtype=object)[measures],
            "query_id": np.array(self.query_ids, dtype=object)[queries],
            "value": self.values[measures, labelings, runs, queries],
        }
        return SCORES.check(pd.DataFrame(columns))

    @cached_property
    def summary(self) -> list[Mean]:
        """One `Mean` per labeling, run and measure, in that order."""
        return list(self._means())

    def _means(self) -> Iterator[Mean]:
        for i, labeling in enumerate(self.labelings):
            asked = self.listed[i]
            missing = asked & self._scene.missing[i]
            excused = asked & self._scene.excused[i]
            for j, run in enumerate(self.runs):
                for n, measure in enumerate(self.measures):
                    found = self.values[n, i, j, asked]
                    found = found[~np.isnan(found)]
                    yield Mean(
                        labeling=labeling,
                        run=run,
                        measure=str(measure),
                        value=float(np.mean(found)) if len(found) else np.nan,
                        queries=int(asked.sum()),
                        defined=len(found),
                        missing=int((missing & ~excused).sum()),
                        not_applicable=int(excused.sum()),
                        undefined=int((asked & ~missing & ~excused).sum()) - len(found),
                        not_in_run=int((asked & (self._scene.retrieved[j] == 0)).sum()),
                        no_relevant=0,
                        reason=self.reasons.get((labeling, str(measure)), ""),
                    )

    def means(self) -> pd.DataFrame:
        """Return the means over queries as a table `SCORES` with query_id ``all``."""
        import pandas as pd

        rows = [(m.labeling, m.run, m.measure, ALL, m.value) for m in self.summary]
        return SCORES.check(pd.DataFrame(rows, columns=list(SCORES.columns))) if rows else SCORES.empty()

    @property
    def notes(self) -> pd.DataFrame:
        """What each mean is a mean of, and why a measure is undefined: the columns of `Mean`."""
        import pandas as pd

        return pd.DataFrame(self.summary, columns=list(Mean._fields))


def evaluate(
    runs: Sequence[Run],
    labelings: Sequence[Labeling],
    measures: Sequence[Measure | str],
    *,
    query_ids: Sequence[str] | None = None,
    depth: int | None = None,
) -> Evaluation:
    """Score runs with labelings.

    Args:
        runs: the runs, with distinct names.
        labelings: the labelings, with distinct names. What they label is what there is: a document that they do
            not list is not relevant, and R, AP and nDCG count the relevant ones among what they list.
        measures: measures or their spellings.
        query_ids: the queries to score; by default, for each labeling, all queries that it lists. A query that a
            run lacks scores 0; queries of a run beyond these are left out.
        depth: cut every run to its first documents before anything else.

    Raises:
        UsageError: there is nothing to score, names repeat, a measure is unknown or looks deeper than ``depth``.
    """
    parsed = list(dict.fromkeys(parse_measure(m) for m in measures))
    for what, names in (("run", [r.name for r in runs]), ("labeling", [x.name for x in labelings])):
        if not names:
            raise UsageError(f"there is no {what} to score")
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise UsageError(f"there are two {what}s named {twice!r}; name them apart")
    if not parsed:
        raise UsageError("there is no measure to compute")
    if depth is not None:
        deep = next((m for m in parsed if m.cutoff is not None and m.cutoff > depth), None)
        if deep is not None:
            raise UsageError(f"{deep} looks at more documents than the depth of {depth} to which runs are cut")
        runs = [run.cut(depth) for run in runs]
    given = query_ids is not None
    ids = sorted(set(query_ids)) if query_ids is not None else sorted({q for x in labelings for q in x.row_queries})
    scene = Scene(runs, labelings, ids)
    listed = np.ones_like(scene.listed) if given else scene.listed
    return Evaluation(scene, parsed, [r.name for r in runs], ids, listed)


def _reason(measure: Measure, labeling: Labeling) -> str:
    """Return why a measure is not defined under a labeling, or ''."""
    needs, scale = measure.definition.needs, labeling.scale
    if needs == "binary" and measure.option("rel") is None and scale.min_rel is None:
        return (
            f"{measure.name} needs to know which documents are relevant, and the {scale.kind} labels of {labeling.name}"
            f" do not say it: give the least relevant label, e.g. {measure.name}(rel=0.5)"
        )
    return ""
