"""Each question's loss from one version to the next, by labels, by a labeler, or by ratings of the answers.

A question with the same documents in both versions loses nothing, whatever their labels. So only questions whose lists
differ are labelled, and only there does a missing label leave the loss open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from judgekit import labelling
from judgekit.analysis.coefficients import Floats
from judgekit.analysis.samples import means_of
from judgekit.answers.declared import named, scaled
from judgekit.answers.direction import AS_NAMED, Directions, question
from judgekit.answers.imported import read_ratings
from judgekit.client.waves import planned
from judgekit.data.documents import Docs, Unit
from judgekit.data.frames import as_runs
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import mismatches, sources
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, Status
from judgekit.errors import DataError, JudgekitError, UsageError
from judgekit.jobs.guard.passing import Unjudged
from judgekit.metrics import Evaluation, Measure, evaluate
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    from judgekit.client.session import Session

_UNJUDGED: Final = "not judged"
_SHOWN: Final = 2
"""The number of documents shown per question."""


@dataclass(frozen=True)
class Losses:
    """Each question's loss, as a share of the measure's range.

    Attributes:
        by: what is scored, in words.
        table: rows ``query_id, least, most, moved``; ``moved`` names the documents whose rank changed most, or "".
        same: whether both versions show the same for all questions.
        notes: sentences that a reader should know.
        obstacle: why nothing may be claimed, or "".
        unlisted: whether a loss is open because the labels lack documents.
    """

    by: str
    table: pd.DataFrame
    same: bool
    notes: tuple[str, ...] = ()
    obstacle: str = ""
    unlisted: bool = False


@dataclass(frozen=True)
class Versions:
    """The runs of both versions, and how to score them.

    Attributes:
        base, new: the runs.
        measure: the measure.
        unjudged: how documents without a label count.
        docs: the documents, if the measure needs their places on pages.
    """

    base: Run
    new: Run
    measure: Measure
    unjudged: Unjudged = "bounds"
    docs: Docs | None = None

    @property
    def runs(self) -> list[Run]:
        """Both runs."""
        return [self.base, self.new]

    def pooled(self, pool: labelling.PoolLabeler) -> Versions:
        """Return the versions as the pool has them."""
        base, new = pool.collection.runs
        return replace(self, base=base, new=new, docs=pool.collection.docs)

    def changed(self, pool: labelling.PoolLabeler) -> list[Unit]:
        """Return the labeler's input for the questions whose lists differ."""
        # Most commits change few lists; only these are paid for.
        changed = set(filter(self.differ, pool.collection.queries))
        units = labelling.label_units(pool.labeler, pool.collection)
        return [unit for unit in units if unit.query.query_id in changed]

    def lists(self, query_id: str) -> list[Sequence[str]]:
        """Return the parts of both lists that the measure sees."""
        return [run.top(query_id, self.measure.cutoff) for run in self.runs]

    def differ(self, query_id: str) -> bool:
        """Return whether the two lists differ in documents or in their order."""
        base, new = self.lists(query_id)
        return base != new

    def losses(self, labeling: Labeling, query_ids: Sequence[str] | None = None, *, partly: bool = False) -> Losses:
        """Return each question's loss under a labeling; ``partly``: only questions whose lists differ are labelled."""
        if self.unjudged == "bounds":
            labeling = _judged(labeling)
        ids, notes = self._questions(labeling, query_ids)
        notes += self._check(labeling, ids, partly=partly)
        scored = evaluate(self.runs, [labeling], [self.measure], query_ids=ids, docs=self.docs)
        if scored.reasons:
            raise UsageError(f"{self.measure} is not defined here: {next(iter(scored.reasons.values()))}")
        notes = [*scored.warnings, *notes]
        barren = max(mean.no_relevant for mean in scored.summary)
        if barren:
            notes.append(
                f"{labeling.name!r} has no relevant document for {barren:,} questions, which cannot lose anything."
            )
        if any(mean.missing or (mean.unjudged and self.unjudged == "bounds") for mean in scored.summary):
            scored = evaluate(
                self.runs,
                [labeling],
                [self.measure],
                query_ids=ids,
                missing="bounds",
                unjudged=self.unjudged,
                docs=self.docs,
            )
        least, most = _losses(scored, labeling.scale.kind)
        differs = np.array([self.differ(query_id) for query_id in ids])
        table = pd.DataFrame({"query_id": ids, "least": least, "most": most})
        # Equal lists lose nothing whatever their labels, so missing labels do not matter there.
        table.loc[~differs, ["least", "most"]] = 0.0
        labelled = np.isfinite(least)
        if partly:
            labelled |= ~differs & ~table["query_id"].isin(labeling.row_queries).to_numpy()
        if not labelled.any():
            raise DataError(f"{labeling.name!r} defines {self.measure} on none of the {len(ids):,} questions")
        excluded = int((~labelled).sum())
        if excluded:
            notes.append(
                f"{labeling.name!r} does not apply to {excluded:,} of {len(ids):,} questions, which are excluded."
            )
        labels = _labels(labeling)
        lacking: Counter[str] = Counter()
        moved: list[str] = []
        for query_id, is_labelled, has_changed in zip(ids, labelled, differs, strict=True):
            moved.append(self._moved(query_id, labels) if has_changed else "")
            if is_labelled and has_changed:
                lacking.update(self._lacking(query_id, labels))
        ignored = 0
        if self.unjudged == "nonrelevant":
            ignored = lacking[_UNJUDGED]
        opened = lacking.total() - ignored
        for count, meaning in ((opened, "can be anything on the scale"), (ignored, "count as not relevant")):
            if count:
                notes.append(f"{count:,} documents in questions whose lists differ have no label: they {meaning}.")
        return Losses(
            by=f"{self.measure} by {labeling.name!r}",
            table=table.assign(moved=moved)[labelled].reset_index(drop=True),
            same=not differs.any(),
            notes=tuple(notes),
            unlisted=self.unjudged == "bounds" and not partly and bool(lacking[_UNJUDGED] or lacking[Status.UNASKED]),
        )

    def _questions(self, labeling: Labeling, query_ids: Sequence[str] | None) -> tuple[list[str], list[str]]:
        """Return the given questions, else the labels' questions that a version returns; and notes about them."""
        if query_ids is not None:
            return sorted(set(query_ids)), []
        # In a larger qrels file, questions on which neither version was run would dilute a loss: 40 questions with a
        # loss among 400 without.
        listed = set(labeling.row_queries)
        returned = listed.intersection([*self.base.query_ids, *self.new.query_ids])
        notes = []
        if len(returned) < len(listed):
            notes.append(
                f"neither version returns results for {len(listed - returned):,} questions of {labeling.name!r}. They"
                " are excluded; give the queries to count them as unchanged."
            )
        return sorted(returned or listed), notes

    def _check(self, labeling: Labeling, ids: Sequence[str], *, partly: bool) -> list[str]:
        """Refuse runs and labels with nothing in common; return notes on questions that a run lacks."""
        notes = []
        doc_ids: set[str] = set()
        for run in self.runs:
            asked = run.only(ids)
            lacking = len(ids) - len(set(asked.query_ids))
            if lacking == len(ids):
                raise DataError(
                    f"the {run.name} version has none of the {len(ids):,} questions: are both from the same collection?"
                )
            if lacking:
                notes.append(f"{run.name} returns nothing for {lacking:,} of {len(ids):,} questions. They score 0.")
            doc_ids.update(asked.doc_ids)
        # If ids are spelled differently, all documents are unjudged; counted as not relevant, both versions score 0 and
        # pass meaninglessly.
        if not partly and doc_ids.isdisjoint(labeling.row_docs.to_pylist()):
            raise DataError(
                f"{labeling.name!r} labels none of the returned documents: do the ids have the same spelling?"
            )
        return notes

    def _lacking(self, query_id: str, labels: Mapping[tuple[str, str], str]) -> list[str]:
        """Return why documents of a question lack a label, each document once."""
        reasons: list[str] = []
        for doc_id in set[str]().union(*self.lists(query_id)):
            label = labels.get((query_id, doc_id), _UNJUDGED)
            if label == _UNJUDGED or label in set(Status):
                reasons.append(label)
        return reasons

    def _moved(self, query_id: str, labels: Mapping[tuple[str, str], str]) -> str:
        """Return the documents whose ranks changed most, with their labels and both ranks."""
        lists = self.lists(query_id)
        base, new = ({doc_id: rank for rank, doc_id in enumerate(docs, 1)} for docs in lists)
        behind = 1 + max(map(len, lists))
        distance = {doc_id: abs(base.get(doc_id, behind) - new.get(doc_id, behind)) for doc_id in [*base, *new]}
        farthest = sorted(filter(distance.get, distance), key=lambda doc_id: -distance[doc_id])
        shown: list[str] = []
        for doc_id in farthest[:_SHOWN]:
            label = labels.get((query_id, doc_id), _UNJUDGED)
            shown.append(f"{doc_id} [{label}] {base.get(doc_id, '–')} → {new.get(doc_id, '–')}")
        more = len(farthest) - _SHOWN
        if more > 0:
            shown[-1] += f" and {more} more"
        return ", ".join(shown)


def _losses(scored: Evaluation, scale: str) -> tuple[Floats, Floats]:
    """Return the smallest and largest loss of each query, as a share of the measure's range; NaN if undefined."""
    (measure,) = scored.measures
    definition = measure.definition
    if definition.low is None or definition.high is None:  # as for every measure where lower is better
        raise UsageError(f"{measure} has no fixed range, so a loss has no size: choose another measure")
    # Signed labels have gains below 0, and a loss is a share of the whole range.
    start = -1.0 if scale == "signed" and definition.needs == "label" else definition.low
    span = definition.high - start
    (base_low, new_low), (base_high, new_high) = scored.low[0, 0], scored.high[0, 0]
    return np.clip((base_low - new_high) / span, -1, 1), np.clip((base_high - new_low) / span, -1, 1)


def _judged(labeling: Labeling) -> Labeling:
    """Return a labeling without the labels that a reader gave to documents that the file does not list."""
    table = labeling.table
    if "judged" not in table:
        return labeling
    # Provenance counts unlisted documents as 0. A new version returns documents that nobody judged, and 0 would be an
    # unproven loss.
    nobody = (table["judged"] == 0) & (table["status"] == Status.OK.value)
    known = {"relevance": table["relevance"].mask(nobody), "status": table["status"].mask(nobody, Status.UNASKED.value)}
    return Labeling(labeling.name, labeling.scale, table.assign(**known), declared=labeling.declared)


def _labels(labeling: Labeling) -> dict[tuple[str, str], str]:
    """Return each pair's label, or why it has none."""
    table = labeling.table
    labels: dict[tuple[str, str], str] = {}
    columns = (table[name] for name in ("query_id", "doc_id", "relevance", "status"))
    for query_id, doc_id, value, status in zip(*columns, strict=True):
        labels[query_id, doc_id] = f"{value:g}" if status == Status.OK.value else status
    return labels


async def by_labeler(
    pool: labelling.PoolLabeler, versions: Versions, units: Sequence[Unit], session: Session, progress: Progress
) -> Losses:
    """Return each question's loss under a labeler, labelling the documents needed."""
    labeler, name, collection = pool.labeler, pool.name, pool.collection
    ids, stage = list(collection.queries), f"label {name}"
    if not labeler.needs.asked:
        return versions.losses(await pool.label(session), ids)
    plan = planned(units, labeler, session.lookup)
    requests = f"{plan.requests - plan.cached:,} requests to send"
    changed = sum(map(versions.differ, ids))
    note = f"{name}: {requests}, for {changed:,} questions whose lists differ"
    progress(Event(stage, 0, len(units), note=note))
    made = await labelling.label_pool(labeler, collection, session, name, units=units)
    usage = session.usage(stage)
    sent = f"{usage.sent:,} requests sent ({usage.incurred.counted})"
    cost = f"Labels: {sent}, {usage.cached:,} replies from the store."
    losses = versions.losses(made, ids, partly=True)
    mixed = "; ".join(session.mixed())
    obstacle = ""
    if mixed:
        # A server may change its model under the same name; stored and new labels would then come from two judges.
        obstacle = f"{mixed}. Forget the replies of one model (`judgekit cache forget --model NAME`) and run again"
    return replace(losses, notes=(*losses.notes, cost), obstacle=obstacle)


def by_answers(base: Any, new: Any, directions: Directions = AS_NAMED) -> Losses:
    """Return each question's loss of answer quality, by the ratings of both versions."""
    base_metric, base_ratings = _ratings("base", base)
    new_metric, new_ratings = _ratings("new", new)
    if base_metric != new_metric:
        raise UsageError(f"the answers are rated by {base_metric!r} and by {new_metric!r}, which are not comparable")
    notes: list[str] = []
    directions.check([base_metric])
    direction = directions.of(base_metric)
    if direction == "asked":
        raise UsageError(f"{base_metric}: tools disagree on its direction; {question(base_metric)}")
    if direction == "lower":
        base_ratings, new_ratings = 1 - base_ratings, 1 - new_ratings
        notes.append(f"{base_metric}: lower counts as better.")
    if base_ratings.index.intersection(new_ratings.index).empty:
        raise DataError("the ratings of the two versions have no question in common")
    both = pd.DataFrame({"base": base_ratings, "new": new_ratings}).sort_index()
    # A missing rating may be anything, so it widens the loss in both directions.
    least = both["base"].fillna(0.0) - both["new"].fillna(1.0)
    most = both["base"].fillna(1.0) - both["new"].fillna(0.0)
    table = pd.DataFrame({"query_id": both.index, "least": least.to_numpy(), "most": most.to_numpy(), "moved": ""})
    lost = int(both.isna().any(axis=1).sum())
    if lost:
        notes.append(f"{lost:,} questions lack a rating for one version; it may be anything from 0 to 1.")
    same = not (table["least"].any() or table["most"].any())
    return Losses(f"{base_metric} of the answers", table, same, notes=tuple(notes))


def _ratings(name: str, version: Any) -> tuple[str, pd.Series[Any]]:
    """Return the metric of a version's ratings, and the ratings by question."""
    try:
        as_runs(version)
    # Anything but a run is read as ratings, whose reader reports what is wrong.
    except JudgekitError:
        rated = scaled(version) if isinstance(version, pd.DataFrame) else read_ratings(version)
        table = named(rated.table)
    else:  # TREC's columns could also be read as values by query
        raise UsageError("to compare runs a gate needs labels (--qrels) or a labeler (--labeler, --queries, --docs)")
    table = table[table["query_id"] != ALL]
    for column in ("run", "depth", "model", "metric", "mode"):
        values = set(table[column]) if column in table else set()
        if len(values) > 1:
            shown = ", ".join(map(str, sorted(values)[:5]))
            raise UsageError(f"the {name} answers have several {column}s ({shown}): keep one")
    # If a metric does not apply to a question, nothing was lost there.
    if "status" in table:
        table = table[table["status"] != Status.NOT_APPLICABLE.value]
    if table.empty:
        raise DataError(f"the {name} version has no answers")
    # Several answers to a question are samples, and their mean is its quality.
    table = means_of(table)
    twice = table["query_id"][table["query_id"].duplicated()]
    if len(twice):
        raise UsageError(
            f"the {name} answers rate question {twice.iloc[0]!r} twice: several answers need a column 'sample' that"
            " numbers them"
        )
    ratings = table.set_index("query_id")["value"]
    return table["metric"].iloc[0], ratings


def refuse_mixed(files: Mapping[str, Path]) -> None:
    """Refuse files made from different queries or documents, according to their manifests."""
    differences = mismatches(sources(files), {"queries", "docs"})
    if differences:
        raise DataError(f"{differences[0]}. A gate compares like with like: make both from the same files")
