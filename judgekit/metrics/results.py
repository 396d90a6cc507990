"""The results of scoring: values per query, their means, and the counts behind each mean."""

from __future__ import annotations

import math
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from judgekit.data.columns import strings, take
from judgekit.data.pooled import counts_of
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, MADE, SCORES
from judgekit.metrics.hits import LabelledHits
from judgekit.metrics.join import Bools, Floats, Ints, Join
from judgekit.metrics.measures import Measure
from judgekit.notebook import NotebookRepr

if TYPE_CHECKING:
    import pandas as pd


class Mean(NamedTuple):
    """The mean of one measure for one run under one labeling, with the counts behind it.

    Attributes:
        value: mean over the queries on which the measure is defined; NaN if there is none.
        low, high: bounds of the mean, if wanted; else the value itself.
        queries: scored queries, defined or not.
        missing: queries with a missing label.
        not_applicable: queries that the labeling does not apply to; always undefined.
        undefined: queries without a value for any other reason.
        not_in_run: queries without documents in the run.
        no_relevant: queries without a relevant document, although all labels are known.
        ignored: queries of the run that were not scored.
        ties_across: queries whose documents at ranks k and k + 1 have equal scores; 0 without a cutoff.
        ties_inside: queries with equal scores anywhere in the top k or across its end.
        unjudged: documents in the top k, over all queries, that the labeling does not list.
        reason: why the measure is never defined under this labeling, or "".
    """

    labeling: str
    run: str
    measure: str
    value: float
    low: float
    high: float
    queries: int
    defined: int
    missing: int
    not_applicable: int
    undefined: int
    not_in_run: int
    no_relevant: int
    ignored: int
    ties_across: int
    ties_inside: int
    unjudged: int
    reason: str


class Evaluation(NotebookRepr):
    """Scores of every measure of every run under every labeling, for every query.

    Attributes:
        measures: the measures.
        labelings, runs, query_ids: the names along the other axes; queries ascend.
        values: shape (measures, labelings, runs, queries); NaN where undefined.
        low, high: bounds of the values, of the same shape, if wanted or if a value is undefined because labels are
            missing (infinite if nothing bounds it); else the values themselves.
        bounded: whether bounds were wanted.
        listed: the queries on which each labeling was scored, shape (labelings, queries).
        reasons: why a measure is never defined under a labeling, by labeling and measure.
        warnings: sentences that the user should know.
    """

    def __init__(
        self,
        join: Join,
        measures: list[Measure],
        values: Floats,
        reasons: dict[tuple[str, str], str],
        warnings: list[str],
        ends: tuple[Floats, Floats],
        *,
        bounded: bool = False,
    ) -> None:
        """Hold the results of `evaluate`."""
        self.measures = measures
        self.labelings = [labeling.name for labeling in join.labelings]
        self.runs = [run.name for run in join.runs]
        self.query_ids = join.query_ids
        self.values = values
        self.bounded = bounded
        self.low, self.high = ends
        self.listed: Bools = join.listed
        self.reasons = reasons
        self.warnings = warnings
        self._join = join

    @cached_property
    def lists(self) -> tuple[Run, ...]:
        """The scored runs; those read in parts are read again as a whole."""
        return tuple(run if isinstance(run, Run) else run.whole() for run in self._join.runs)

    def scores(self) -> pd.DataFrame:
        """Return one row per labeling, run, measure and query: the table `SCORES`; NaN is undefined."""
        import pandas as pd

        # A labeling has no rows for queries that it does not list, which are neither 0 nor undefined.
        shape = len(self.labelings), len(self.runs), len(self.measures), len(self.query_ids)
        scored = np.broadcast_to(self.listed[:, None, None, :], shape)
        labelings, runs, measures, queries = np.nonzero(scored)
        at = measures, labelings, runs, queries
        columns = {
            "labeling": _named(self.labelings, labelings),
            "run": _named(self.runs, runs),
            "measure": _named([str(m) for m in self.measures], measures),
            "query_id": _named(self.query_ids, queries),
            "value": self.values[at],
        }
        if self.low is not self.values:
            columns["low"], columns["high"] = self.low[at], self.high[at]
        table = SCORES.check(pd.DataFrame(columns))
        # The table carries the facts about its labels, also through Parquet.
        if self.made:
            table.attrs[MADE] = self.made
        return table

    @cached_property
    def made(self) -> dict[str, dict[str, Any]]:
        """The labels' origin by labeling, and the amount to label and to answer by cutoff."""
        labels = {labeling.name: labeling.made for labeling in self._join.labelings if labeling.made}
        if not labels:
            return {}
        pools: dict[str, dict[str, Any]] = {}
        cutoffs = sorted({measure.cutoff for measure in self.measures if measure.cutoff is not None})
        # Runs read in parts are read again, only as deep as documents count.
        runs = [run if isinstance(run, Run) else run.cut(max(cutoffs, default=1)).whole() for run in self._join.runs]
        for cutoff in cutoffs:
            counts, queries = counts_of(runs, self.query_ids, cutoff), len(self.query_ids)
            pools[str(cutoff)] = {"queries": queries, "at_hand": queries, "pooled": counts["pairs"], **counts}
        return {"labels": labels, "pools": pools}

    def means(self) -> pd.DataFrame:
        """Return the means over queries as a table `SCORES` with query_id ``all`` (and ``low``, ``high``)."""
        bounds = ["low", "high"] if self.bounded else []
        return SCORES.check(self.notes.assign(query_id=ALL)[[*SCORES.columns, *bounds]])

    def means_text(self) -> str:
        """Return the means as text: labelings and runs as rows, measures as columns."""
        # Without pandas: loading it would double the time of a command on small files.
        rows: dict[tuple[str, str], list[str]] = {}
        for mean in self.summary:
            row = rows.setdefault((mean.labeling, mean.run), [mean.labeling, mean.run])
            if self.bounded and not math.isnan(mean.low):
                row.append(f"{mean.low:.4f}..{mean.high:.4f}")
            else:
                row.append("-" if math.isnan(mean.value) else f"{mean.value:.4f}")
        lines = [["labeling", "run", *map(str, self.measures)], *rows.values()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        out = []
        for line in lines:
            cells = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
            cells[:2] = [text.ljust(width) for text, width in zip(line[:2], widths, strict=False)]
            out.append("  ".join(cells).rstrip())
        return "\n".join(out)

    def __repr__(self) -> str:
        return "\n".join([self.means_text(), *(f"note: {line}" for line in self.warnings)])

    @property
    def notes(self) -> pd.DataFrame:
        """The counts behind each mean, and why a measure is undefined: the fields of `Mean` as columns."""
        import pandas as pd

        return pd.DataFrame(self.summary, columns=list(Mean._fields))

    @cached_property
    def summary(self) -> list[Mean]:
        """One `Mean` per labeling, run and measure, in that order."""
        join = self._join
        scored = np.broadcast_to(self.listed[:, None, :], join.shape)
        defined = ~np.isnan(self.values)
        excused = scored & join.excused[:, None, :]
        lost = scored & join.missing[:, None, :] & ~excused
        retrieved = join.retrieved > 0
        # Queries that a labeling does not list are not scored, and count in none of these.
        low, high = (self.low, self.high) if self.bounded else (self.values, self.values)
        of_runs = np.array([run.extent.queries for run in join.runs])
        counts: dict[str, npt.NDArray[np.generic]] = {
            "queries": scored.sum(2),
            "missing": lost.sum(2),
            "not_applicable": excused.sum(2),
            "not_in_run": (scored & ~retrieved).sum(2),
            "ignored": of_runs - (scored & join.ran).sum(2),
            "undefined": (scored & ~excused & ~lost & ~defined).sum(3),
            "value": _mean(self.values),
            "low": _mean(low),
            "high": _mean(high),
            "defined": defined.sum(3),
            **self._behind(scored),
        }
        names = [str(measure) for measure in self.measures]
        fields = {field: np.broadcast_to(count, defined.shape[:3]).tolist() for field, count in counts.items()}
        means = []
        for j, labeling in enumerate(self.labelings):
            for k, run in enumerate(self.runs):
                for i, measure in enumerate(names):
                    values = {field: cells[i][j][k] for field, cells in fields.items()}
                    reason = self.reasons.get((labeling, measure), "")
                    means.append(Mean(labeling=labeling, run=run, measure=measure, reason=reason, **values))
        return means

    def _behind(self, scored: Bools) -> dict[str, Ints]:
        """Return the counts that depend on a measure's threshold or cutoff, of shape (measures, L, R) each."""
        join = self._join
        judged, no_relevant = _judged_by_rank(join), LabelledHits(join).no_relevant
        known = scored & ~(join.missing | join.excused)[:, None, :]
        ties = [*map(join.ties, range(len(join.runs)))]
        first_tie = np.full(join.retrieved.shape, np.iinfo(np.int64).max)
        for first, (query, rank) in zip(first_tie, ties, strict=True):
            np.minimum.at(first, query, rank)

        # Most measures of a table share their cutoff and threshold.
        @cache
        def within(cutoff: int | None) -> tuple[Ints, Ints, Ints]:
            last = np.iinfo(np.int64).max - 1 if cutoff is None else cutoff
            across = np.zeros(join.retrieved.shape, np.bool_)
            for at_cutoff, (query, rank) in zip(across, ties, strict=True):
                at_cutoff[query[rank == last]] = True
            looked_at = scored * np.minimum(join.retrieved, last)
            listed = judged[:, :, min(last, judged.shape[2] - 1)]
            return (scored & across).sum(2), (scored & (first_tie <= last)).sum(2), looked_at.sum(2) - listed

        @cache
        def without(least: float | None) -> Ints:
            return np.asarray((known & no_relevant(least)).sum(2))

        counts = [(*within(measure.cutoff), without(measure.rel)) for measure in self.measures]
        names = ("ties_across", "ties_inside", "unjudged", "no_relevant")
        return dict(zip(names, np.moveaxis(np.array(counts), 1, 0), strict=True))


def _judged_by_rank(join: Join) -> Ints:
    """Return the number of listed documents among the first ranks of all lists of a run, shape (L, R, ranks)."""
    labelings, runs, queries = join.shape
    ranks = int(join.hit_rank.max(initial=0)) + 1
    place = join.hit_list // queries * ranks + join.hit_rank
    counts = []
    for known in join.known:
        listed = place[known[join.hit_pair]]
        counts.append(np.bincount(listed, minlength=runs * ranks))
    by_rank = np.array(counts).reshape(labelings, runs, ranks)
    return np.cumsum(by_rank, axis=2)


def _named(names: list[str], codes: Ints) -> pd.Series:
    """Return a column of often repeated names."""
    column: pd.Series = take(strings(names), codes).to_pandas()
    return column


def _mean(values: Floats) -> Floats:
    """Return the mean over the last axis, ignoring NaN; NaN if nothing is left."""
    there = ~np.isnan(values)
    count = there.sum(-1)
    # numpy.nanmean warns if nothing is left.
    total = np.where(there, values, 0).sum(-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
