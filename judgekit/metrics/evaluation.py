"""Scoring runs with labelings: `evaluate` and its options, which decide what is undefined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np

from judgekit.data.columns import keep_freed_memory
from judgekit.data.documents import Docs
from judgekit.data.labelings import Labeling
from judgekit.data.runs import Ties
from judgekit.errors import UsageError, nearest
from judgekit.metrics.cuts import disjoint
from judgekit.metrics.evidence import by_evidence
from judgekit.metrics.hits import Drop, LabelledHits
from judgekit.metrics.join import Bools, Floats, Join
from judgekit.metrics.measures import Measure, parse_measures
from judgekit.metrics.overlapping import spans_of
from judgekit.metrics.results import Evaluation
from judgekit.spec import Value

if TYPE_CHECKING:
    from judgekit.data.parts import AnyRun

_POOLED: Final = frozenset({"AP", "DCG", "F1", "P", "R", "RBP", "Rprec", "SetF", "SetP", "SetR", "nDCG"})
"""Measures that count documents; the others depend on the first relevant one, or count pairs of a list."""
_OTHER_CUTS: Final = (
    "Take RR or Success, or say where documents stand on their pages (judgekit chunks) and take unit=evidence."
)

Missing = Literal["undefined", "zero", "condense", "bounds"]
"""The effect of a missing label on its query's scores: they are undefined; the label counts as 0; the document leaves
the lists; or scores get bounds over all possible labels."""
Unjudged = Literal["nonrelevant", "bounds"]
"""How a document counts that was never labelled: as not relevant, or with bounds, as above."""
Over = Literal["judged", "run", "relevant"]
"""The queries to score: the labeling's, with 0 if a run lacks them; those of them that the run has, which may differ
between runs; or the run's queries with a label above 0."""


def evaluate(
    runs: Sequence[AnyRun],
    labelings: Sequence[Labeling],
    measures: str | Iterable[object],
    *,
    query_ids: Sequence[str] | None = None,
    depth: int | None = None,
    missing: Missing = "undefined",
    unjudged: Unjudged = "nonrelevant",
    over: Over = "judged",
    docs: Docs | None = None,
) -> Evaluation:
    """Score runs with labelings; `judgekit.score` says what the options mean."""
    keep_freed_memory()
    parsed = parse_measures(measures)
    _check_choice("missing", missing, get_args(Missing))
    _check_choice("unjudged", unjudged, get_args(Unjudged))
    _check_names("run", [run.name for run in runs])
    _check_names("labeling", [labeling.name for labeling in labelings])
    if not parsed:
        raise UsageError("give at least one measure to compute")
    if depth is not None:
        _check_depth(parsed, depth)
    scored = set(query_ids or ())
    if query_ids is None:
        scored = {query_id for labeling in labelings for query_id in labeling.row_queries}
    scoring = _Scoring(
        runs=runs,
        labelings=labelings,
        measures=parsed,
        query_ids=sorted(scored),
        every_query=query_ids is not None,
        depth=depth,
        missing=missing,
        unjudged=unjudged,
        over=over,
        docs=docs,
    )
    if scoring.bounded:
        for measure in parsed:
            if why := _unbounded(measure):
                raise UsageError(why)
    return scoring.evaluation()


def _check_choice(option: str, given: str, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise UsageError(f"{option} must be one of {', '.join(choices)}, not {given!r}.{nearest(given, choices)}")


def _check_names(what: str, names: list[str]) -> None:
    if not names:
        raise UsageError(f"give at least one {what} to score")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"there are two {what}s named {name!r}; give them different names")


def _check_depth(measures: list[Measure], depth: int) -> None:
    for measure in measures:
        if (measure.cutoff or 0) > depth:
            raise UsageError(f"{measure} looks at more documents than the depth of {depth}")
    if depth < 1:
        raise UsageError(f"every measure looks at more documents than the depth of {depth}")


@dataclass(frozen=True)
class _Scoring:
    """The scoring of runs with its options; see `evaluate`.

    Attributes:
        every_query: whether to score each labeling on all queries, or on those that it lists.
    """

    runs: Sequence[AnyRun]
    labelings: Sequence[Labeling]
    measures: list[Measure]
    query_ids: list[str]
    every_query: bool
    depth: int | None
    missing: Missing
    unjudged: Unjudged
    over: Over
    docs: Docs | None

    @property
    def bounded(self) -> bool:
        """Whether bounds are wanted."""
        return "bounds" in (self.missing, self.unjudged)

    def evaluation(self) -> Evaluation:
        """Return the scores."""
        plain = self._computer(None)
        computers: dict[Value | None, _Computer] = {None: plain}
        join = plain.join
        if self.every_query:
            # A query without documents in any run scores 0 whatever its labels; one unknown to a labeling does not.
            join.excused |= ~join.listed & (join.retrieved > 0).any(axis=0)
            join.listed[:] = True
        blank = join.excused | ~join.listed
        if self.missing == "undefined":
            blank |= join.missing
        left_out = self._left_out(LabelledHits(join))
        reasons: dict[tuple[str, str], str] = {}
        values, low, high = [], [], []
        for measure in self.measures:
            undefined = blank[:, None, :] | np.broadcast_to(left_out, join.shape)
            for row, labeling in enumerate(self.labelings):
                if reason := _undefined(measure, labeling):
                    reasons[labeling.name, str(measure)] = reason
                    undefined[row] = True
            ties = measure.option("ties")
            if ties not in computers:
                computers[ties] = self._computer(ties)
            computer = computers[ties]
            value = np.where(undefined, np.nan, computer.values(measure, ~undefined))
            if self.bounded:
                below, above = computer.bounds(measure)
                below, above = np.where(undefined, np.nan, below), np.where(undefined, np.nan, above)
                # With an unknown label the value is only known if all possible labels give the same.
                known = np.where(below == above, below, np.nan)
                value = np.where(computer.unknown[:, None, :], known, value)
                low.append(below)
                high.append(above)
            values.append(value)
        found = np.array(values)
        ends = (np.array(low), np.array(high)) if self.bounded else (found, found)
        lost = join.missing & join.listed & ~join.excused
        if self.missing == "undefined" and lost.any():
            ends = self._bounded_where(lost, *ends)
        warnings = [
            *_warnings(self.measures, self.labelings, bounds=self.bounded),
            *_unrelated(join),
            *_spanless(join, self.measures, self.docs),
            *_apart(join, self.measures),
        ]
        return Evaluation(join, self.measures, found, reasons, warnings, ends, bounded=self.bounded)

    def _left_out(self, hits: LabelledHits) -> Bools:
        """Return the cells without a score because of the choice of queries, shape (1 or L, R, Q)."""
        if self.over == "judged":
            return np.zeros((1, 1, 1), np.bool_)
        lacking: Bools = ~hits.join.ran[None]
        return lacking | ~(hits.largest > 0) if self.over == "relevant" else lacking

    def _computer(self, ties: Value | None) -> _Computer:
        """Return the object that computes measures under a rule of ties; None means each run's own."""
        runs = self.runs
        if ties is not None:
            runs = [run.with_ties(Ties(str(ties))) for run in runs]
        if self.depth is not None:
            runs = [run.cut(self.depth) for run in runs]
        join = Join(
            runs,
            self.labelings,
            self.query_ids,
            depth=self._looked_at(),
            missing_unknown=self.missing == "bounds",
            unjudged_unknown=self.unjudged == "bounds",
        )
        return _Computer(join, self.missing, self.docs)

    def _looked_at(self) -> int | None:
        """Return how many documents from the top any measure looks at, or None if some look at all of them."""
        # If documents leave the lists, others move up.
        if self.missing == "condense" or any(measure.option("judged_only") for measure in self.measures):
            return None
        cutoffs = [measure.cutoff for measure in self.measures]
        return None if None in cutoffs else max(cutoff or 0 for cutoff in cutoffs)

    def _bounded_where(self, lost: Bools, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the values with bounds where missing labels leave them undefined; infinite if nothing bounds them."""
        open_ = lost[None, :, None, :] & np.isnan(low)
        low, high = np.where(open_, -np.inf, low), np.where(open_, np.inf, high)
        places = [place for place, measure in enumerate(self.measures) if not _unbounded(measure)]
        if not places:
            return low, high
        rows = np.flatnonzero(lost.any(axis=1)).tolist()
        columns = np.flatnonzero(lost.any(axis=0)).tolist()
        # Only queries that lack labels are computed again, often a few of thousands.
        part = replace(
            self,
            labelings=[self.labelings[row] for row in rows],
            measures=[self.measures[place] for place in places],
            query_ids=[self.query_ids[column] for column in columns],
            every_query=True,
            missing="bounds",
        ).evaluation()
        at = np.ix_(places, rows, range(len(self.runs)), columns)
        for end, bound in ((low, part.low), (high, part.high)):
            end[at] = np.where(open_[at] & ~np.isnan(bound), bound, end[at])
        return low, high


class _Computer:
    """Computes measures on the labelled hits that the options need, each made once."""

    def __init__(self, join: Join, missing: Missing, docs: Docs | None) -> None:
        self.join, self._docs = join, docs
        self._drop: Drop = "missing" if missing == "condense" else "nothing"
        self._table: Floats = join.label
        if missing == "zero":
            self._table = np.where(join.lost, 0, join.label)
        self._made: dict[tuple[str, Drop], LabelledHits] = {}
        self.unknown: Bools = np.zeros((join.shape[0], join.shape[2]), np.bool_)
        labeling, pair = np.nonzero(join.unknown_labels)
        self.unknown[labeling, join.pair_query[pair]] = True

    def hits(self, measure: Measure, filled: str = "") -> LabelledHits:
        """Return the hits for a measure, with unknown labels filled with the ``high``, ``low`` or ``worst``."""
        drop: Drop = "unlabelled" if measure.option("judged_only") else self._drop
        key = filled, drop
        if key not in self._made:
            table = self._table
            if filled:
                table = np.where(self.join.unknown_labels, self._end(filled, drop)[:, None], table)
            self._made[key] = LabelledHits(self.join, table, drop=drop)
        return self._made[key]

    def _end(self, filled: str, drop: Drop) -> Floats:
        """Return the largest, lowest or worst possible label, by labeling."""
        ends = []
        for labeling in self.join.labelings:
            scale = labeling.scale
            if filled == "high":
                ends.append(scale.high)
            # A negative grade would leave a condensed list, so it is no worse than a 0 that stays.
            elif filled == "worst" and drop == "unlabelled" and scale.kind != "signed":
                ends.append(0)
            else:
                ends.append(scale.low)
        return np.array(ends, np.float64)

    def values(self, measure: Measure, asked: Bools) -> Floats:
        """Return the measure's values, shape (L, R, Q), at least for the cells asked for."""
        hits = self.hits(measure).asking(asked)
        if measure.by_evidence:
            hits, measure = by_evidence(hits, measure, self._docs)
        return measure.definition.compute(hits, measure)

    def bounds(self, measure: Measure) -> tuple[Floats, Floats]:
        """Return bounds of a measure over all possible labels of unknown ones."""
        about = measure.definition
        if measure.by_evidence:
            # Unknown labels may create units or join them, so anything is possible.
            known = self.values(measure, np.ones((), np.bool_))
            return self._anything(measure, known, known)
        # The retrieved documents take the lowest labels while the denominator takes the highest, and the other way
        # round. Measures of a list's length are smallest when most documents leave it.
        worst = self.hits(measure, "low" if about.needs == "nothing" else "worst")
        best = self.hits(measure, "high")
        low = about.compute(worst.against(best), measure)
        high = about.compute(best.against(worst), measure)
        if measure.lower_is_better:
            # If only unknown labels can be relevant, the first relevant document can be anywhere.
            last = np.where(np.isnan(high), np.nan, np.broadcast_to(worst.retrieved, low.shape))
            low, high = high, np.where(np.isnan(low), last, low)
        if about.high is not None:
            high = np.minimum(high, about.high)
        return self._anything(measure, low, high) if about.unbounded(measure) else (low, high)

    def _anything(self, measure: Measure, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return the whole range of a measure as bounds where a label is unknown."""
        about, wide = measure.definition, self.unknown[:, None, :]
        return np.where(wide, float(about.low or 0), low), np.where(wide, float(about.high or 1), high)


def _unbounded(measure: Measure) -> str:
    """Return why a measure has no bounds for unknown labels, or ""."""
    if measure.by_evidence and measure.definition.high is None:
        return f"{measure} has no bounds: unknown labels may make or join units of evidence"
    if measure.definition.author:
        return f"{measure} has no bounds: it is unknown how its values grow with the labels"
    return ""


def _undefined(measure: Measure, labeling: Labeling) -> str:
    """Return why a measure is not defined under a labeling, or ''."""
    needs, scale, name = measure.definition.needs, labeling.scale, measure.name
    # NumRet(rel=1) counts relevant documents, although NumRet uses no labels.
    if needs == "nothing" and measure.rel is not None:
        needs = "binary"
    whose = f"the {scale.kind} labels of {labeling.name}"
    if scale.kind == "signed" and needs in ("binary", "amount"):
        return f"{name} is not defined on signed labels, and {whose} are gains that may be negative"
    if needs == "binary" and scale.min_rel is None and measure.rel is None and not measure.option("best"):
        example = replace(measure.spec, params=(*measure.spec.params, ("rel", 0.5)))
        return (
            f"{name} needs to know which documents are relevant, but {whose} do not say so: give rel=, as in {example}"
        )
    if measure.by_evidence and measure.option("ideal") == "retrieved":
        return f"{measure} cannot take ideal=retrieved: a document's gain depends on those above it"
    return measure.definition.undefined(measure, scale)


def incomparable(runs: Sequence[AnyRun], measure: Measure) -> str:
    """Return why a measure cannot compare runs (it counts documents, and their collections differ), or ""."""
    if not _counts_documents(measure):
        return ""
    pairs = list(disjoint(runs))
    if not pairs:
        return ""
    first, second, share = pairs[0]
    more = f" (and {len(pairs) - 1} more pairs of runs)" if pairs[1:] else ""
    return (
        f"{first} and {second} share {share:.0%} of their documents{more}, so {measure} cannot compare them:"
        f" documents of one count against the other. {_OTHER_CUTS}"
    )


def _counts_documents(measure: Measure) -> bool:
    return measure.name in _POOLED and not measure.by_evidence


def _apart(join: Join, measures: list[Measure]) -> Iterator[str]:
    """Yield the measures that cannot compare runs with few documents in common."""
    counting = [measure for measure in measures if _counts_documents(measure)]
    if not counting:
        return
    why = incomparable(join.runs, counting[0])
    if why and counting[1:]:
        why += f" The same holds for {', '.join(map(str, counting[1:]))}."
    if why:
        yield why


def _spanless(join: Join, measures: list[Measure], docs: Docs | None) -> Iterator[str]:
    """Yield the labelings without the places of relevant documents, if their evidence is counted once."""
    of_evidence = [measure for measure in measures if measure.by_evidence]
    if not of_evidence:
        return
    remarks, relevant, spanned = [], 0, 0
    for labeling, (rows, pair), label in zip(join.labelings, join.labelled, join.label, strict=True):
        found = rows[label[pair] > 0]
        known = len(np.unique(spans_of(labeling, found, docs).row))
        relevant += len(found)
        spanned += known
        if known < len(found):
            remarks.append(
                f"{labeling.name}: {len(found) - known:,} of {len(found):,} relevant documents have no span; each"
                " counts as evidence of its own"
            )
    if relevant and not spanned:
        raise UsageError(
            f"{of_evidence[0]} needs the positions of documents on their pages: give docs with page_id, start and end"
            " (judgekit chunks finds them)"
        )
    yield from remarks


def foreign(evaluation: Evaluation) -> list[str]:
    """Return the labelings that list no document of any run, so that a 0 would mean nothing."""
    join = evaluation._join
    names = []
    for labeling, known, listed in zip(join.labelings, join.known, join.listed, strict=True):
        if listed.any() and not known[join.hit_pair].any():
            names.append(labeling.name)
    return names


def _unrelated(join: Join) -> Iterator[str]:
    """Yield the runs unrelated to a labeling: from another collection, or with ids spelled differently."""
    _, runs, queries = join.shape
    for known, listed, labeling in zip(join.known, join.listed, join.labelings, strict=True):
        if not listed.any():
            continue
        judged = np.bincount(join.hit_list[known[join.hit_pair]] // queries, minlength=runs)
        shared = np.count_nonzero(join.retrieved[:, listed], axis=1)
        for run, documents, common in zip(join.runs, judged.tolist(), shared.tolist(), strict=True):
            if not common:
                yield f"{run.name} has none of the queries of {labeling.name}: are both from the same collection?"
            elif not documents:
                yield f"{labeling.name} lists none of the documents of {run.name}: are both from the same collection?"


def _warnings(measures: list[Measure], labelings: Sequence[Labeling], *, bounds: bool) -> Iterator[str]:
    """Yield notes on undeclared scales, and on labels outside declared ones."""
    for labeling in labelings:
        if labeling.subtopics:
            values = f"column 2 of {labeling.name} has up to {labeling.subtopics} values for a query"
            yield f"{values}, as in judgments of subtopics: scores do not tell these apart"
        if labeling.below:
            lie = "grades lie" if labeling.below > 1 else "grade lies"
            yield f"{labeling.below:,} {lie} below 0 in {labeling.name}: such documents are not relevant and gain 0"
        if labeling.declared:
            continue
        seen = f"the scale of {labeling.name} was not declared; {labeling.scale.high} is its largest label"
        for measure in measures:
            if measure.definition.takes_largest(measure):
                yield f"{seen}, and {measure} assumes that no grade is larger"
        if bounds:
            yield f"{seen}, and bounds assume that no unknown label is larger"
