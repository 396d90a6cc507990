"""What each question loses from one version to the next: by labels, by a labeler, by ratings, of two results folders.

Where both versions show the same documents nothing is lost, whatever their labels are; so only the questions whose
lists differ are labelled, and only there a document without a label leaves the loss open.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from judgekit import labelling
from judgekit.analysis.coefficients import Floats
from judgekit.answers.declared import named, scaled
from judgekit.answers.imported import read_ratings
from judgekit.client.waves import planned
from judgekit.data.documents import Docs, Queries
from judgekit.data.frames import as_runs
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import mismatches, sources
from judgekit.data.runs import Run
from judgekit.data.tables import ALL, Status
from judgekit.errors import DataError, JudgekitError, UsageError, not_among
from judgekit.metrics import Evaluation, Measure, evaluate, parse_measures
from judgekit.plugins.guard.passing import Unjudged
from judgekit.progress import Event, Progress

if TYPE_CHECKING:
    from judgekit.client.session import Session

Sides = Sequence[Sequence[tuple[str, str]]]
"""The documents of the base version and of the new one, best first, each with its label or why it has none."""

_UNJUDGED: Final = "not judged"


@dataclass(frozen=True)
class Losses:
    """What each question loses, from its least to its most, in shares of the range.

    Attributes:
        by: what is scored, in words.
        query_ids: the questions with a loss, shape (n,).
        low, high: shape (n,).
        lists: of each question whose lists differ, the documents of both with their labels; of answers nothing.
        notes: what has to be known, as sentences.
        obstacle: why nothing may be claimed, or "".
        unlisted: whether a loss is open by documents that the labels do not list.
    """

    by: str
    query_ids: tuple[str, ...]
    low: Floats
    high: Floats
    lists: Mapping[str, Sides] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    obstacle: str = ""
    unlisted: bool = False


def by_labels(
    versions: Sequence[Run],
    labeling: Labeling,
    measure: Measure,
    query_ids: Sequence[str] | None = None,
    *,
    unjudged: Unjudged = "bounds",
    partly: bool = False,
    docs: Docs | None = None,
) -> Losses:
    """Return what each question loses by a measure under a labeling."""
    if unjudged == "bounds":
        labeling = _judged(labeling)
    notes: list[str] = []
    listed = set(labeling.row_queries)
    ids = sorted(listed) if query_ids is None else sorted(set(query_ids))
    if query_ids is None:
        shown = set[str]().union(*(run.query_ids for run in versions))
        nowhere = len(listed - shown)
        if nowhere:
            notes.append(
                f"neither version returns results for {nowhere:,} questions of {labeling.name!r}. They are"
                " excluded; give the queries to count them as unchanged."
            )
        ids = sorted(listed & shown) or ids
    runs = as_runs({name: run.only(ids) for run, name in zip(versions, ("base", "new"), strict=True)})
    for run in runs:
        if not len(run):
            raise DataError(
                f"the {run.name} version has none of the {len(ids):,} questions: are both from the same collection?"
            )
        lacking = len(set(ids) - set(run.query_ids))
        if lacking:
            notes.append(f"{run.name} returns nothing for {lacking:,} of {len(ids):,} questions. They score 0.")
    shown_docs = set[str]().union(*(run.doc_ids for run in runs))
    if not partly and not shown_docs & set(labeling.row_docs.to_pylist()):
        raise DataError(f"{labeling.name!r} labels none of the returned documents: do the ids have the same spelling?")
    scored = evaluate(runs, [labeling], [measure], query_ids=ids, docs=docs)
    if scored.reasons:
        raise UsageError(f"{measure} is not defined here: {next(iter(scored.reasons.values()))}")
    notes = [*scored.warnings, *notes]
    barren = max(mean.no_relevant for mean in scored.summary)
    if barren:
        notes.append(
            f"{labeling.name!r} has no relevant document for {barren:,} questions, which cannot lose anything."
        )
    if any(mean.missing or (mean.unjudged and unjudged == "bounds") for mean in scored.summary):
        scored = evaluate(runs, [labeling], [measure], query_ids=ids, missing="bounds", unjudged=unjudged, docs=docs)
    changed = _differing(runs, ids, measure.cutoff)
    same = np.array([query_id not in changed for query_id in ids])
    low, high = _losses(scored, labeling.scale.kind)
    unlabelled = np.array([partly and query_id not in listed for query_id in ids])
    defined = np.isfinite(low) | (unlabelled & same)
    if not defined.any():
        raise DataError(f"{labeling.name!r} defines {measure} on none of the {len(ids):,} questions")
    kept = [query_id for query_id, is_defined in zip(ids, defined, strict=True) if is_defined]
    excluded = len(ids) - len(kept)
    if excluded:
        notes.append(f"{labeling.name!r} does not apply to {excluded:,} of {len(ids):,} questions, which are excluded.")
    lists = _labelled(labeling, runs, changed, measure.cutoff)
    lacking_labels = _lacking(lists, changed.intersection(kept))
    ignored = lacking_labels.count(_UNJUDGED) if unjudged != "bounds" else 0
    open_labels = len(lacking_labels) - ignored
    for count, meaning in ((open_labels, "can be anything on the scale"), (ignored, "count as not relevant")):
        if count:
            notes.append(f"{count:,} documents in questions whose lists differ have no label: they {meaning}.")
    never_asked = not {_UNJUDGED, Status.UNASKED.value}.isdisjoint(lacking_labels)
    return Losses(
        by=f"{measure} by {labeling.name!r}",
        query_ids=tuple(kept),
        low=np.where(same, 0.0, low)[defined],
        high=np.where(same, 0.0, high)[defined],
        lists=lists,
        notes=tuple(notes),
        unlisted=unjudged == "bounds" and not partly and never_asked,
    )


def _lacking(lists: Mapping[str, Sides], query_ids: Collection[str]) -> list[str]:
    """Return why documents of these questions have no label, each document once a question."""
    reasons: list[str] = []
    for query_id in query_ids:
        base, new = lists[query_id]
        for label in dict([*base, *new]).values():
            if not label[-1:].isdigit():
                reasons.append(label)
    return reasons


def _differing(runs: Sequence[Run], query_ids: Sequence[str], k: int | None) -> set[str]:
    """Return the queries where the two runs differ in documents or in their order."""
    base, new = runs
    return {q for q in query_ids if base.top(q, k) != new.top(q, k)}


def _losses(scored: Evaluation, scale: str) -> tuple[Floats, Floats]:
    """Return the least and the largest loss of each query, in shares of the measure's range; NaN where undefined."""
    (measure,) = scored.measures
    definition = measure.definition
    if definition.low is None or definition.high is None:  # as of every measure where lower is better
        raise UsageError(f"{measure} has no fixed range, so a loss has no size: choose another measure")
    start = -1.0 if scale == "signed" and definition.needs == "label" else definition.low
    span = definition.high - start
    (base_low, new_low), (base_high, new_high) = scored.low[0, 0], scored.high[0, 0]
    return np.clip((base_low - new_high) / span, -1, 1), np.clip((base_high - new_low) / span, -1, 1)


def _judged(labeling: Labeling) -> Labeling:
    """Return a labeling without the labels that a file's reader gave to documents that the file does not list."""
    table = labeling.table
    if "judged" not in table:
        return labeling
    nobody = (table["judged"] == 0) & (table["status"] == Status.OK.value)
    known = {"relevance": table["relevance"].mask(nobody), "status": table["status"].mask(nobody, Status.UNASKED.value)}
    return Labeling(labeling.name, labeling.scale, table.assign(**known), declared=labeling.declared)


def _labelled(labeling: Labeling, runs: Sequence[Run], query_ids: Collection[str], k: int | None) -> dict[str, Sides]:
    """Return the documents of both lists of each query, each with its label, or why there is none."""
    rows = labeling.table[labeling.table["query_id"].isin(list(query_ids))]
    labels: dict[tuple[str, str], str] = {}
    columns = (rows[name] for name in ("query_id", "doc_id", "relevance", "status"))
    for query_id, doc_id, value, status in zip(*columns, strict=True):
        labels[query_id, doc_id] = f"{value:g}" if status == Status.OK.value else status
    lists: dict[str, Sides] = {}
    for query_id in sorted(query_ids):
        sides: list[list[tuple[str, str]]] = []
        for run in runs:
            sides.append([(doc_id, labels.get((query_id, doc_id), _UNJUDGED)) for doc_id in run.top(query_id, k)])
        lists[query_id] = sides
    return lists


async def by_labeler(
    pool: labelling.PoolLabeler, measure: Measure, session: Session, unjudged: Unjudged, progress: Progress
) -> Losses:
    """Return what each question loses under a labeler, labelling what that needs."""
    labeler, name, collection = pool.labeler, pool.name, pool.collection
    ids, stage = list(collection.queries), f"label {name}"
    if not labeler.needs.asked:
        made = await pool.label(session)
        return by_labels(collection.runs, made, measure, ids, unjudged=unjudged, docs=collection.docs)
    changed = _differing(collection.runs, ids, measure.cutoff)
    units = [unit for unit in labelling.label_units(labeler, collection) if unit.query.query_id in changed]
    plan = planned(units, labeler, session.lookup)
    requests = f"{plan.requests - plan.cached:,} requests to send"
    note = f"{name}: {requests}, for {len(changed):,} questions whose lists differ"
    progress(Event(stage, 0, len(units), note=note))
    made = await labelling.label_pool(labeler, collection, session, name, units=units)
    usage = session.usage(stage)
    tokens = usage.incurred.prompt_tokens + usage.incurred.completion_tokens
    cost = f"Labels: {usage.sent:,} requests sent ({tokens:,} tokens), {usage.cached:,} replies from the store."
    losses = by_labels(collection.runs, made, measure, ids, unjudged=unjudged, partly=True, docs=collection.docs)
    mixed = "; ".join(session.mixed())
    obstacle = f"{mixed}. Forget the replies of one model (`judgekit cache forget --model NAME`) and run again"
    return replace(losses, notes=(*losses.notes, cost), obstacle=obstacle if mixed else "")


def by_answers(versions: Sequence[Any]) -> Losses:
    """Return what each question loses in the quality of its answer, by the ratings of both versions."""
    (base_metric, base_ratings), (new_metric, new_ratings) = (
        _ratings(name, version) for name, version in zip(("base", "new"), versions, strict=True)
    )
    if base_metric != new_metric:
        raise UsageError(f"the answers are rated by {base_metric!r} and by {new_metric!r}, which are not comparable")
    if base_ratings.index.intersection(new_ratings.index).empty:
        raise DataError("the ratings of the two versions have no question in common")
    ids = sorted({*base_ratings.index, *new_ratings.index})
    base, new = (ratings.reindex(ids).to_numpy(np.float64) for ratings in (base_ratings, new_ratings))
    low = np.nan_to_num(base, nan=0.0) - np.nan_to_num(new, nan=1.0)
    high = np.nan_to_num(base, nan=1.0) - np.nan_to_num(new, nan=0.0)
    lost = int((np.isnan(base) | np.isnan(new)).sum())
    note = f"{lost:,} questions lack the rated answer of a version, which may be anything from 0 to 1."
    return Losses(f"{base_metric} of the answers", tuple(ids), low, high, notes=(note,) if lost else ())


def _ratings(name: str, version: Any) -> tuple[str, pd.Series[Any]]:
    """Return the metric by which the answers of a version are rated, and the ratings by question."""
    try:
        as_runs(version)
    except JudgekitError:
        table = named(scaled(version)) if isinstance(version, pd.DataFrame) else read_ratings(version)
    else:  # TREC's columns could be read as values by query, too
        raise UsageError("to compare runs a gate needs labels (--qrels) or a labeler (--labeler, --queries, --docs)")
    table = table[table["query_id"] != ALL]
    for column in ("run", "depth", "model", "metric", "mode"):
        values = set(table[column]) if column in table else set()
        if column == "run" and len(values) > 1 and ALL in values:
            table = table[table["run"] != ALL]
            values.remove(ALL)
        if len(values) > 1:
            shown = ", ".join(map(str, sorted(values)[:5]))
            raise UsageError(f"the {name} answers have several {column}s ({shown}): keep one")
    if "status" in table:
        table = table[table["status"] != Status.NOT_APPLICABLE.value]
    if table.empty:
        raise DataError(f"the {name} version has no answers")
    twice = table["query_id"][table["query_id"].duplicated()]
    if len(twice):
        raise UsageError(f"the {name} answers rate question {twice.iloc[0]!r} twice")
    ratings = table.set_index("query_id")["value"]
    if (ratings < 0).any() or (ratings > 1).any():
        span = f"{ratings.min():g} to {ratings.max():g}"
        raise UsageError(f"the {name} answers have values from {span}: a gate needs 0 to 1")
    return table["metric"].iloc[0], ratings


def of_folders(
    folders: Sequence[Path], run: str | None, labeler: str | None, measure: str | None, unjudged: Unjudged
) -> tuple[Losses, Queries, str | None]:
    """Return what each question loses under the labels of both results folders, the queries, and their groups."""
    from judgekit.experiment.finished import label_files, read_results

    both = [read_results(folder) for folder in folders]
    base_runs, new_runs = ({held.name: held for held in prepared.collection.runs} for prepared, *_ in both)
    common = [name for name in base_runs if name in new_runs]
    name = _choose("run", run, common, " and ".join(map(str, folders)))
    tables, made_by, labels = [], [], dict[str, Path]()
    for folder, (prepared, labelings, _) in zip(folders, both, strict=True):
        chosen = _choose("labeling", labeler, list(labelings), str(folder))
        labels[f"labels of {folder}"] = label_files(folder, [chosen])[chosen]
        tables.append(labelings[chosen].table)
        made_by.append((str(prepared.labelers[chosen].spec), labelings[chosen].scale))
    refuse_mixed(labels)
    if made_by[0] != made_by[1]:
        raise UsageError(f"the labels were made by {made_by[0][0]} and by {made_by[1][0]}, which are not comparable")
    together = pd.concat(tables, ignore_index=True)
    keys = ["query_id", "doc_id"]
    differ = together.drop_duplicates([*keys, "relevance", "status"])
    if differ.duplicated(keys).any():
        row = differ[differ.duplicated(keys)].iloc[0]
        raise DataError(
            f"the folders label query {row['query_id']!r}, doc {row['doc_id']!r} differently: the documents or the"
            " labeler changed, so label both versions again"
        )
    config, queries = both[0][0].config, both[0][0].collection.queries
    (parsed,) = parse_measures([measure or config.analysis.primary or "nDCG@10"], config.path.parent)
    labeling = Labeling(chosen, made_by[0][1], together.drop_duplicates(keys))
    losses = by_labels([base_runs[name], new_runs[name]], labeling, parsed, list(queries), unjudged=unjudged)
    return losses, queries, config.analysis.groups


def _choose(what: str, name: str | None, have: Sequence[str], where: str) -> str:
    if name is None and len(have) == 1:
        return have[0]
    if name is None or name not in have:
        problem = not_among(what, name, have) if name else f"say which {what} ({', '.join(have)})"
        raise UsageError(f"{where}: {problem}")
    return name


def refuse_mixed(files: Mapping[str, Path]) -> None:
    """Refuse files of which the manifests say that they were made from different queries or documents."""
    differences = mismatches(sources(files), {"queries", "docs"})
    if differences:
        raise DataError(f"{differences[0]}. A gate compares like with like: make both from the same files")
