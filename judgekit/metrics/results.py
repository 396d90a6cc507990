"""What comes out of scoring: values per query, their means, and what stands behind each mean."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.data.columns import strings, take
from judgekit.data.tables import ALL, SCORES
from judgekit.metrics.hits import LabelledHits
from judgekit.metrics.join import Bools, Floats, Ints, Join
from judgekit.metrics.measures import Measure
from judgekit.notebook import Shown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluation", "Mean"]


class Mean(NamedTuple):
    """One measure of one run under one labeling over all queries, with what it is a mean of."""

    labeling: str
    run: str
    measure: str
    value: float
    """Mean over the queries on which the measure is defined; NaN if there is none."""
    low: float
    high: float
    """Bounds of the mean, where bounds were asked for; else the value itself."""
    queries: int
    """Queries that were scored, defined or not."""
    defined: int
    missing: int
    """Queries with a missing label."""
    not_applicable: int
    """Queries that the labeling does not apply to; always undefined."""
    undefined: int
    """Queries without a value for any other reason."""
    not_in_run: int
    """Queries that the run has nothing for."""
    no_relevant: int
    """Queries without any relevant document, all of whose labels are known."""
    ignored: int
    """Queries of the run that were not scored."""
    ties_across: int
    """Queries whose documents at ranks k and k + 1 have equal scores; 0 without a cutoff."""
    ties_inside: int
    """Queries with equal scores anywhere in the top k or across its end."""
    unjudged: int
    """Documents in the top k, over all queries, that the labeling does not list."""
    as_success: bool
    """Whether a recall is 0 or 1 on every query, and so says no more than success."""
    reason: str
    """Why the measure is not defined under this labeling at all, else empty."""


class Evaluation(Shown):
    """Scores of every measure of every run under every labeling, for every query.

    Attributes:
        measures: the measures.
        labelings, runs, query_ids: the names along the other axes; queries ascend.
        values: shape (measures, labelings, runs, queries); NaN where undefined.
        low, high: bounds of the values, of the same shape; the values themselves unless bounds were asked for.
        bounded: whether bounds were asked for.
        listed: which queries each labeling was scored on, shape (labelings, queries).
        reasons: by labeling and measure, why the measure is not defined under the labeling at all.
        warnings: what the user should know, as sentences.
    """

    def __init__(
        self,
        join: Join,
        measures: list[Measure],
        values: Floats,
        reasons: dict[tuple[str, str], str],
        warnings: list[str],
        bounds: tuple[Floats, Floats] | None = None,
    ) -> None:
        """Hold what `evaluate` computed."""
        self.measures = measures
        self.labelings = [labeling.name for labeling in join.labelings]
        self.runs = [run.name for run in join.runs]
        self.query_ids = join.query_ids
        self.values = values
        self.bounded = bounds is not None
        self.low, self.high = bounds or (values, values)
        self.listed: Bools = join.listed
        self.reasons = reasons
        self.warnings = warnings
        self._join: Join | None = join

    @classmethod
    def joined(cls, parts: Iterable[Evaluation]) -> Evaluation:
        """Return evaluations of different queries as one, the same as if all had been scored at once.

        What stands behind a part is let go of before the next one is asked for. Warnings are those that all parts give:
        what is wrong with some queries alone says nothing of the whole.
        """
        kept: list[Evaluation] = []
        for part in parts:
            part.summary  # noqa: B018 - worked out while what it needs is there
            part._join = None
            kept.append(part)
        first, made = kept[0], copy(kept[0])
        ids = [query_id for part in kept for query_id in part.query_ids]
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
        made.query_ids = [ids[at] for at in order]

        def together(name: str) -> npt.NDArray[Any]:
            # `take` leaves rows of queries next to each other, as they are summed where all is scored at once.
            return np.take(np.concatenate([getattr(part, name) for part in kept], axis=-1), order, axis=-1)

        made.values, made.listed = together("values"), together("listed")
        made.low, made.high = (together("low"), together("high")) if made.bounded else (made.values, made.values)
        made.reasons = {key: reason for part in kept for key, reason in part.reasons.items()}
        made.warnings = [text for text in first.warnings if all(text in part.warnings for part in kept)]
        full = {field: values.transpose(1, 2, 0).reshape(-1) for field, values in made._from_values().items()}
        added = {
            field: np.sum([[getattr(mean, field) for mean in part.summary] for part in kept], axis=0)
            for field in Mean._fields
            if field not in (*Mean._fields[:3], "reason", *full)
        }
        made.__dict__["summary"] = [
            mean._replace(
                reason=made.reasons.get((mean.labeling, mean.measure), ""),
                **{field: values[at].item() for field, values in (full | added).items()},
            )
            for at, mean in enumerate(first.summary)
        ]
        return made

    def _from_values(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return what of the summary follows from the values alone, each of shape (measures, labelings, runs)."""
        defined = ~np.isnan(self.values)
        return {
            # A query of a labeling that does not list it is not scored, and has no value in any of these.
            "value": _mean(self.values),
            "low": _mean(self.low),
            "high": _mean(self.high),
            "defined": defined.sum(3),
            "as_success": np.array([m.name in ("R", "SetR") for m in self.measures])[:, None, None]
            & (~defined | (self.values == 0) | (self.values == 1)).all(3)
            & defined.any(3),
        }

    def scores(self) -> pd.DataFrame:
        """Return one row per labeling, run, measure and query: the table `SCORES`; NaN is undefined.

        Where bounds were asked for, columns ``low`` and ``high`` follow.
        """
        import pandas as pd

        shape = len(self.labelings), len(self.runs), len(self.measures), len(self.query_ids)
        labelings, runs, measures, queries = np.nonzero(np.broadcast_to(self.listed[:, None, None, :], shape))
        at = measures, labelings, runs, queries
        columns = {
            "labeling": _named(self.labelings, labelings),
            "run": _named(self.runs, runs),
            "measure": _named([str(m) for m in self.measures], measures),
            "query_id": _named(self.query_ids, queries),
            "value": self.values[at],
        }
        if self.bounded:
            columns |= {"low": self.low[at], "high": self.high[at]}
        return SCORES.check(pd.DataFrame(columns))

    def means(self) -> pd.DataFrame:
        """Return the means over queries as a table `SCORES` with query_id ``all`` (and ``low``, ``high``)."""
        import pandas as pd

        bounds = ["low", "high"] if self.bounded else []
        rows = [(m.labeling, m.run, m.measure, ALL, m.value, m.low, m.high) for m in self.summary]
        frame = pd.DataFrame(rows, columns=[*SCORES.columns, "low", "high"])
        return SCORES.check(frame[[*SCORES.columns, *bounds]])

    @property
    def notes(self) -> pd.DataFrame:
        """What each mean is a mean of, and why a measure is undefined: the fields of `Mean` as columns."""
        import pandas as pd

        return pd.DataFrame(self.summary, columns=list(Mean._fields))

    @cached_property
    def summary(self) -> list[Mean]:
        """One `Mean` per labeling, run and measure, in that order."""
        join, shape = self._join, self.values.shape
        assert join is not None  # a joined evaluation has its summary already
        scored = np.broadcast_to(self.listed[:, None, :], join.shape)
        defined = ~np.isnan(self.values)
        excused = scored & join.excused[:, None, :]
        lost = scored & join.missing[:, None, :] & ~excused
        counts: dict[str, npt.NDArray[np.generic]] = {
            "queries": scored.sum(2),
            "missing": lost.sum(2),
            "not_applicable": excused.sum(2),
            "not_in_run": (scored & (join.retrieved == 0)).sum(2),
            "ignored": np.array([len(run.query_ids) for run in join.runs]) - (scored & (join.retrieved > 0)).sum(2),
        }
        counts["undefined"] = (scored & ~excused & ~lost & ~defined).sum(3)
        for name, per_measure in self._behind(scored).items():
            counts[name] = np.array(per_measure)
        full = {k: np.broadcast_to(v, shape[:3]).tolist() for k, v in (counts | self._from_values()).items()}
        names = [str(measure) for measure in self.measures]
        return [
            Mean(
                labeling=labeling,
                run=run,
                measure=name,
                reason=self.reasons.get((labeling, name), ""),
                **{field: values[i][j][k] for field, values in full.items()},
            )
            for j, labeling in enumerate(self.labelings)
            for k, run in enumerate(self.runs)
            for i, name in enumerate(names)
        ]

    def _behind(self, scored: Bools) -> dict[str, list[Ints]]:
        """Return per measure the counts that depend on its threshold or cutoff, each of shape (L, R)."""
        join = self._join
        assert join is not None  # as in `summary`
        judged, no_relevant = _judged_by_rank(join), LabelledHits(join).no_relevant
        known = scored & ~(join.missing | join.excused)[:, None, :]
        number, query, rank = join.ties
        first_tie = np.full(join.retrieved.shape, np.iinfo(np.int64).max)
        np.minimum.at(first_tie, (number, query), rank)
        by_cutoff: dict[object, tuple[Ints, Ints, Ints]] = {}
        by_rel: dict[float | None, Ints] = {}
        for measure in self.measures:
            k, least = _end(measure), measure.rel
            if k not in by_cutoff:
                last = np.iinfo(np.int64).max - 1 if measure.cutoff is None else measure.cutoff
                inside = judged[:, :, min(last, judged.shape[2] - 1)]
                ends = np.broadcast_to(last, join.retrieved.shape)
                if measure.budget:
                    ends = join.shown[measure.budget]
                    inside = _judged_within(join, ends)
                across = np.zeros(join.retrieved.shape, np.bool_)
                at_end = rank == ends[number, query]
                across[number[at_end], query[at_end]] = True
                unjudged = (scored * np.minimum(join.retrieved, ends)).sum(2) - inside
                by_cutoff[k] = (scored & across).sum(2), (scored & (first_tie <= ends)).sum(2), unjudged
            if least not in by_rel:
                by_rel[least] = (known & no_relevant(least)).sum(2)
        return {
            "ties_across": [by_cutoff[_end(m)][0] for m in self.measures],
            "ties_inside": [by_cutoff[_end(m)][1] for m in self.measures],
            "unjudged": [by_cutoff[_end(m)][2] for m in self.measures],
            "no_relevant": [by_rel[m.rel] for m in self.measures],
        }


def _judged_by_rank(join: Join) -> Ints:
    """Return how many documents a labeling lists among the first so many of all lists of a run, shape (L, R, ranks)."""
    labelings, runs, queries = join.shape
    ranks = int(join.hit_rank.max(initial=0)) + 1
    place = join.hit_list // queries * ranks + join.hit_rank
    counts = [np.bincount(place[known[join.hit_pair]], minlength=runs * ranks) for known in join.known]
    return np.cumsum(np.array(counts).reshape(labelings, runs, ranks), axis=2)


def _end(measure: Measure) -> object:
    """Return where a measure stops looking: a number of documents, a budget, or nowhere."""
    return measure.budget or measure.cutoff


def _judged_within(join: Join, last: Ints) -> Ints:
    """Return how many documents a labeling lists among the first so many, shape (R, Q), of all lists, shape (L, R)."""
    runs = join.hit_list // join.shape[2]
    inside = join.hit_rank <= last.reshape(-1)[join.hit_list]
    counts = [np.bincount(runs[inside & known[join.hit_pair]], minlength=join.shape[1]) for known in join.known]
    return np.array(counts)


def _named(names: list[str], codes: Ints) -> pd.Series:
    """Return a column of names, of which every one is there many times."""
    column: pd.Series = take(strings(names), codes).to_pandas()
    return column


def _mean(values: Floats) -> Floats:
    """Return the mean over the last axis of what is not NaN; NaN where there is nothing."""
    there = ~np.isnan(values)
    count = there.sum(-1)
    return np.where(count > 0, np.where(there, values, 0).sum(-1) / np.maximum(count, 1), np.nan)
