"""Turns the results of the stages into the report's content: needs, health, costs, facts, warnings."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from judgekit import __version__
from judgekit.analysis.leakage import AnsweredBy, kinship
from judgekit.analysis.modes import modes_of, of_mode
from judgekit.analysis.money import ANSWERING, COSTS
from judgekit.answering import Answering, rating_stage, stage_at_depth
from judgekit.answers.imported import Imported
from judgekit.client.budget import Amount, Usage
from judgekit.client.session import Session
from judgekit.collection import Collection, lacking
from judgekit.data.checks import judges_nothing, remarks, ways_read
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.labelings import Labeling
from judgekit.data.tables import NO_FAILURE, NOT_MISSING, SCORES, Status, reasons
from judgekit.experiment.prepare import Prepared
from judgekit.experiment.step import State
from judgekit.labelers.base import Labeler, Needs
from judgekit.metrics import Evaluation
from judgekit.report.exchange import Asks
from judgekit.report.model import (
    QUALITY_MEANS,
    Answers,
    Bill,
    Cost,
    Facts,
    LabelingInfo,
    Results,
    RunFacts,
    Section,
)
from judgekit.report.queries import Backing
from judgekit.wire.access import RECORDED_URL

_LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "openai", "diskcache")
_REPLAYED = (
    "Replayed: the recorded replies of a small real model ({model}). Larger models may rank the labelings differently;"
    " times are those of the replay."
)
"""The report's first sentence if judgekit replayed recorded replies."""
_RECORDED = {
    "minilm-l6-reader": "MiniLM-L6, 22.7 M parameters, extractive",
    "SmolLM2-135M-Instruct-Q4_1": "SmolLM2-135M-Instruct, 4 bits, on llama-server",
}
"""Descriptions of the models with recorded replies, by name."""

_SAMPLED = (
    "The questions are a sample. Weighted means of runs describe all questions that it was drawn from; labels,"
    " correlations and decisions describe the questions asked."
)


def answering(prepared: Prepared) -> dict[str, AnsweredBy]:
    """Return how the answers of the experiment were made, by the model's name in the quality table."""
    # Imported answers name a model; if an endpoint serves it, labels by that endpoint share the outcome's model.
    endpoint_of = {endpoint.model: endpoint for endpoint in prepared.endpoints}
    made: dict[str, AnsweredBy] = {}
    for way in prepared.answering.values():
        if isinstance(way.answerer, Imported):
            made[way.model] = AnsweredBy(endpoint_of.get(way.model, way.model), "")
        else:
            made[way.model] = AnsweredBy(way.answerer.endpoint, way.answerer.prompt.name)
    if prepared.ratings is not None:
        for model in prepared.ratings["model"].unique():
            made.setdefault(model, AnsweredBy(endpoint_of.get(model, model), ""))
    return made


def costs(
    labelers: Mapping[str, Labeler],
    session: Session,
    answering: Mapping[str, Answering] | None = None,
    depth: int | None = None,
) -> pd.DataFrame:
    """Return the standalone cost of each labeling, and of answering at a depth; NaN if unknown."""
    rows: list[dict[str, object]] = []
    # Count only answers at the decision's depth: other depths add nothing to it.
    if answering and depth:
        stage, first = next(iter(answering.items()))
        amount = session.usage(stage_at_depth(stage, depth)).standalone
        row: dict[str, object] = {"labeling": ANSWERING, "requests": amount.requests or None}
        if not (isinstance(first.answerer, Imported) or amount.unreported):
            row["prompt_tokens"] = amount.prompt_tokens
            row["completion_tokens"] = amount.completion_tokens
            row["money"] = amount.money
        rows.append(row)
    for name, labeler in labelers.items():
        row = {"labeling": name}
        if not labeler.needs.people:
            amount = session.usage(f"label {name}").standalone
            row["requests"] = amount.requests
            row["request_seconds"] = None if amount.untimed else amount.seconds
            if not amount.unreported:
                row["prompt_tokens"] = amount.prompt_tokens
                row["completion_tokens"] = amount.completion_tokens
                row["money"] = amount.money if amount.requests else 0.0
        rows.append(row)
    return pd.DataFrame(rows, columns=["labeling", *COSTS.optional]).astype(dict.fromkeys(COSTS.optional, "float64"))


class Missing(NamedTuple):
    """What is missing from a labeling or from the answers of a run."""

    line: str
    """What is missing, with the counts by reason."""
    share: float
    """The missing share of what was asked for; 1 if the rest is useless."""


def missing(labelings: Mapping[str, Labeling], quality: pd.DataFrame) -> Iterator[Missing]:
    """Yield what is missing from each labeling and from the answers of each run."""
    for name, labeling in labelings.items():
        failed = _failed(labeling.table)
        if len(failed):
            share = len(failed) / len(_asked(labeling.table))
            yield Missing(f"labels of {name}: {_listed(failed)} (see labels/)", share)
        # Every label is then 0, and no status shows that the file belongs to another collection.
        if judges_nothing(labeling):
            yield Missing(f"labels of {name}: its file judges none of the pooled documents", 1.0)
    unit = ["query_id"]
    if "mode" in quality:
        unit.append("mode")
    for (run, depth), rows in quality.groupby(["run", "depth"]):
        failed = _failed(rows).drop_duplicates(unit)
        if len(failed):
            share = len(failed) / len(_asked(rows).drop_duplicates(unit))
            yield Missing(f"answers of {run} at depth {depth}: {_listed(failed)} (see answers/)", share)


def _failed(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[~rows["status"].isin(NO_FAILURE)]


def _asked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that succeeded or failed."""
    return rows[(rows["status"] == Status.OK.value) | ~rows["status"].isin(NO_FAILURE)]


def _listed(failed: pd.DataFrame) -> str:
    counts = ", ".join(f"{n:,} {status}" for status, n in failed["status"].value_counts().items())
    return f"{counts}: {reasons(failed)}"


def _cost(amount: Amount, wall_s: float | None = None) -> Cost:
    # Costs are unknown if no reply reported them, and a lower bound if only some did; neither is 0.
    cost = Cost(requests=amount.requests, wall_s=wall_s, unreported=amount.unreported, untimed=amount.untimed)
    if not amount.requests:
        return replace(cost, prompt_tokens=0, completion_tokens=0, money=0.0, request_seconds=amount.seconds)
    if amount.unreported < amount.requests:
        cost = replace(
            cost,
            prompt_tokens=amount.prompt_tokens,
            completion_tokens=amount.completion_tokens,
            money=amount.money,
        )
    if amount.untimed < amount.requests:
        cost = replace(cost, request_seconds=amount.seconds)
    return cost


def _spending(usage: Usage, people: bool = False) -> Bill:
    """Return the bill. Wall time covers this session only; people's time and pay are unknown."""
    standalone = _cost(usage.standalone)
    if people:
        standalone = replace(standalone, money=None, request_seconds=None)
    return Bill(
        standalone, _cost(usage.incurred, usage.wall_s if usage.sent else None), usage.cached, usage.failed, usage.again
    )


def _labeling(name: str, state: State) -> LabelingInfo:
    labeler, labeling = state.prepared.labelers[name], state.labelings[name]
    needs, scale = labeler.needs, labeling.scale
    relevance = labeling.table.loc[labeling.table["status"] == Status.OK.value, "relevance"]
    return LabelingInfo(
        name=name,
        kind=labeler.kind,
        spelling=str(labeler.spec),
        scale=str(scale),
        references=needs.references,
        people=needs.people,
        endpoint=_together(endpoint.name for endpoint in needs.asked),
        model=_together(endpoint.model for endpoint in needs.asked),
        prompt=needs.prompt,
        kinship=_kinship(needs, answering(state.prepared)),
        outcome_metric=needs.outcome_metric or "",
        outcome_prompt=needs.outcome_prompt or "",
        counts=labeling.counts(),
        relevant=None if scale.min_rel is None else int((relevance >= scale.min_rel).sum()),
        mean=float(relevance.mean()) if len(relevance) else None,
        labels=labeling.shares(),
        spending=_spending(state.session.usage(f"label {name}"), needs.people),
        outside_pool=_outside(labeler, labeling, state.prepared.collection),
    )


def _together(names: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(names))


def _kinship(needs: Needs, answering: Mapping[str, AnsweredBy]) -> str:
    """Return what a labeling's LLMs share with the answering LLM, and with which one if several answer."""
    shared = []
    for model, how in answering.items():
        kin = kinship(needs, how)
        if kin:
            shared.append(kin if len(answering) == 1 else f"{kin} as {model}")
    return ", ".join(shared)


def _outside(labeler: Labeler, labeling: Labeling, collection: Collection) -> int | None:
    """Count an imported file's relevant documents that no run retrieved; None for labels made here."""
    imported: Mapping[tuple[str, str], float | None] | None = getattr(labeler, "imported", None)
    if imported is None:
        return None
    threshold = labeling.scale.min_rel
    outside = 0
    for (query_id, doc_id), relevance in imported.items():
        if relevance is None or doc_id in collection.pairs.get(query_id, (doc_id,)):
            continue
        if relevance > 0 and (threshold is None or relevance >= threshold):
            outside += 1
    return outside


def score_means(evaluation: Evaluation, weights: Mapping[str, float] | None) -> pd.DataFrame:
    """Return the mean scores of the runs, weighted if the queries are a sample."""
    means = evaluation.means()
    if weights is None:
        return means
    keys = ["labeling", "run", "measure"]
    weighted = _means(evaluation.scores(), keys, weights)
    return SCORES.check(means.assign(value=weighted.reindex(pd.MultiIndex.from_frame(means[keys])).to_numpy()))


def _means(rows: pd.DataFrame, keys: list[str], weights: Mapping[str, float] | None) -> pd.Series:
    """Return the (weighted) means of the known values; NaN if there are none."""
    # Give missing values no weight: a question without a label must not pull the mean to 0.
    weight = rows["value"].notna().astype("float64")
    if weights is not None:
        weight *= rows["query_id"].map(weights)
    sums = rows.assign(weight=weight, weighted=weight * rows["value"]).groupby(keys)[["weight", "weighted"]].sum()
    return sums["weighted"] / sums["weight"]


def quality_means(quality: pd.DataFrame, weights: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Return mean answer quality per run, depth, model and metric, with the counts behind it; see `score_means`."""
    modes = ["mode"] if modes_of(quality) else []
    rows = quality.fillna(dict.fromkeys(modes, "")).assign(
        missing=~quality["status"].isin(NOT_MISSING),
        not_applicable=quality["status"] == Status.NOT_APPLICABLE.value,
    )
    for name in ("abstained", "seems_abstained"):
        if name not in rows:  # unknown for answers rated elsewhere
            rows[name] = 0
    keys = ["run", "depth", "model", "metric", *modes]
    groups = rows.groupby(keys)
    means = _means(rows, keys, weights).to_frame("value").assign(n=groups["value"].count())
    counts = groups[["abstained", "seems_abstained", "missing", "not_applicable"]].sum().astype("int64")
    return QUALITY_MEANS.check(means.join(counts).reset_index())


def _answers(stage: str, state: State) -> Answers:
    answering, cell = state.prepared.answering[stage], state.cell
    usage, ratings = state.session.usage(stage), {}
    for metric in answering.llm_metrics:
        ratings[metric.name] = rating_stage(stage, metric)
        usage += state.session.usage(ratings[metric.name])
    quality = state.quality[state.quality["model"] == answering.model]
    if answering.mode:
        quality = quality[quality["mode"] == answering.mode]
    # Each answer has a row per metric, so count the rows of one metric.
    single = quality[quality["metric"] == quality["metric"].max()]
    counts = dict.fromkeys((status.value for status in Status), 0) | single["status"].value_counts().to_dict()
    imported = isinstance(answering.answerer, Imported)
    answers = Answers(
        model=answering.model,
        prompt="imported",
        counts=counts,
        spending=_spending(usage, people=imported and not ratings),  # the cost of answering elsewhere is unknown
        mode=answering.mode,
    )
    if isinstance(answering.answerer, Imported):
        return answers
    at_decision = None
    decides = cell.model == answering.model and cell.mode in ("", answering.mode)
    if decides and cell.metric in [metric.name for metric in answering.metrics]:
        amount = state.taken(stage)
        if cell.metric in ratings:
            amount += state.taken(ratings[cell.metric])
        at_decision = _cost(amount)
    endpoint, prompt = answering.answerer.endpoint.name, answering.answerer.prompt.name
    return replace(answers, endpoint=endpoint, prompt=prompt, at_decision=at_decision)


def _facts(prepared: Prepared, evaluation: Evaluation) -> Facts:
    collection, rules = prepared.collection, prepared.config.rules()
    ties = {run.name: 0 for run in collection.runs}
    for mean in evaluation.summary:
        ties[mean.run] = max(ties[mean.run], mean.ties_across)
    runs = []
    # Count empty and short lists apart: an empty one scores 0, a short one is answered from what it has.
    for run in collection.runs:
        lengths = np.array([len(run.top(query_id)) for query_id in collection.queries])
        found = lengths > 0
        runs.append(
            RunFacts(
                name=run.name,
                queries=int(found.sum()),
                missing=int((~found).sum()),
                short=int((found & (lengths < collection.depth)).sum()),
                ties=ties[run.name],
            )
        )
    versions = {"judgekit": __version__, "Python": platform.python_version()}
    return Facts(
        queries=len(collection.queries),
        docs=len(collection.docs),
        depth=collection.depth,
        pool_pairs=collection.n_pairs,
        runs=tuple(runs),
        seed=rules.seed,
        resamples=rules.resamples,
        confidence=rules.confidence,
        versions=versions | {library: version(library) for library in _LIBRARIES},
        more=() if prepared.weights is None else (("Sample", _SAMPLED),),
    )


def sections(state: State) -> Iterator[Section]:
    """Yield a table of how well labels follow the answers of each mode, if there are several modes."""
    rows, cell = state.comparison.modes, state.cell
    if rows is None:
        return
    of_decision = {"measure": cell.measure, "level": cell.level, "run": cell.run, "coefficient": "concordance"}
    for column, value in of_decision.items():
        rows = rows[rows[column] == value]
    table = rows[["mode", "labeling", "value", "ci_low", "ci_high", "n"]].rename(columns={"value": "concordance"})
    yield Section(
        "Modes of answering",
        f"The decision is about {cell.mode!r}. For each mode: how {cell.measure} follows {cell.metric} from the"
        f" top {cell.depth}, on the questions that have a value in all modes.",
        table,
    )


def backing(
    prepared: Prepared,
    labelings: Mapping[str, Labeling],
    quality: pd.DataFrame,
    scores: pd.DataFrame | None,
    replies: pd.DataFrame | None,
) -> Backing:
    """Return an experiment's data on each query."""
    collection = prepared.collection
    lists = {}
    for run in collection.runs:
        lists[run.name] = {query_id: run.top(query_id) for query_id in collection.queries}
    return Backing(
        labels={name: labeling.table for name, labeling in labelings.items()},
        quality=of_mode(quality),
        queries=collection.queries,
        docs=collection.docs,
        lists=lists,
        scores=scores,
        replies=replies,
        kinds=prepared.kinds or {},
        asks=dict(_asks(prepared.labelers)),
    )


def _asks(labelers: Mapping[str, Labeler]) -> Iterator[tuple[str, Asks]]:
    """Yield a function for the first request of each labeler that asks about one document at a time."""
    for name, labeler in labelers.items():
        if labeler.by_pair and labeler.needs.asked:
            yield name, partial(_first, labeler)


def _first(labeler: Labeler, query: Query, doc: Doc) -> bytes | None:
    requests = labeler.requests(Unit(query, (doc,)), ())
    return requests[0].body if requests else None


def _title(path: Path) -> str:
    """Return a title from the file's name, or from its folder's if the file has the usual name."""
    if path.stem != "experiment":
        return path.stem
    return path.resolve().parent.name or path.stem


def summarise(state: State) -> Results:
    """Return everything that the report shows."""
    prepared, comparison, session = state.prepared, state.comparison, state.session
    config = prepared.config
    agreed = state.agreed.table
    kappas = agreed[(agreed["coefficient"] == "kappa") & (agreed["on"] == "relevance")]
    kappas = kappas.drop(columns=["on", "coefficient"]).rename(columns={"value": "kappa"})
    return Results(
        title=config.title or _title(config.path),
        comparison=comparison.table,
        labelings=tuple(_labeling(name, state) for name in state.labelings),
        answers=tuple(_answers(stage, state) for stage in prepared.answering),
        primary=state.cell,
        claims=comparison.decision.claims,
        currency=config.costs().currency,
        facts=_facts(prepared, state.evaluation),
        scores=score_means(state.evaluation, prepared.weights),
        quality=quality_means(state.quality, prepared.weights),
        agreement=kappas if len(kappas) else None,  # all coefficients are in agreement.csv
        modes=comparison.modes,
        differences=comparison.differences,
        details=comparison.details,
        settings=config.toml(),
        note=_replayed(prepared),
        warnings=_warnings(state),
        notices=_notices(state),
        retries=tuple(session.shared.retries.items()),
    )


def _replayed(prepared: Prepared) -> str:
    """Return a note that names the models whose recorded replies were replayed, or ""."""
    models = {endpoint.model for endpoint in prepared.endpoints if endpoint.base_url == RECORDED_URL}
    if not models:
        return ""
    return _REPLAYED.format(model=" and ".join(_RECORDED.get(model, model) for model in sorted(models)))


def _warnings(state: State) -> tuple[str, ...]:
    """Return the warnings that a reader must see first, without repeats."""
    warnings = list(lacking(state.prepared.collection))
    for labeling in state.labelings.values():
        warnings += remarks(labeling)
    warnings += (*state.evaluation.warnings, *state.comparison.warnings, *state.session.doubts)
    return tuple(dict.fromkeys(warnings))


def _notices(state: State) -> tuple[str, ...]:
    """Return notes on the session, on how labels were read, and on judge tests."""
    notices = []
    for note in dict.fromkeys(state.session.notes):
        if note not in state.session.doubts:
            notices.append(note)
    for labeling in state.labelings.values():
        notices += ways_read(labeling)
    notices += [f"{name}: {test}" for name, test in state.prepared.tests.items()]
    return tuple(notices)
