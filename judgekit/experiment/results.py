"""From what the stages returned to what the report shows: needs, health, costs, facts, warnings."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import chain

import numpy as np
import pandas as pd

from judgekit import __version__, scoring
from judgekit.analysis import AnsweredBy, ModelMatrix, Primary, kinship, model_matrix
from judgekit.analysis.modes import modes_of, of_mode
from judgekit.analysis.money import ANSWERING, COSTS
from judgekit.answering import Answering, rating_stage, stage_at_depth
from judgekit.answers.imported import Imported
from judgekit.client.budget import Amount, Usage
from judgekit.client.session import Session
from judgekit.collection import Collection, lacking
from judgekit.data.checks import judges_nothing, remarks, ways_read
from judgekit.data.labelings import Labeling
from judgekit.data.spans import where
from judgekit.data.tables import NO_FAILURE, NOT_MISSING, SCORES, Status, reasons
from judgekit.errors import UsageError
from judgekit.experiment.prepare import Prepared
from judgekit.experiment.step import State
from judgekit.labelers.base import Labeler, Needs
from judgekit.metrics import Evaluation, Measure
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
from judgekit.spec import Spec
from judgekit.wire.access import RECORDED_URL

_LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "openai", "diskcache")
MIXED = (
    "Ask one of the models again (`judgekit cache forget --model NAME`, then run), or accept the mix with"
    " accept_mixed_models = true under [analysis]."
)
_NOTES = {
    RECORDED_URL: "Replayed: what a small real model (MiniLM-L6, 22.7 M parameters, extractive) said to these requests"
    " when they were recorded. The numbers are its own, and larger models may rank the labelings otherwise; times are"
    " the replay's.",
}
"""What the report says first, where judgekit answered itself."""


_SAMPLED = (
    "The questions are a sample. Means of runs are weighted, so that they speak of all questions that the sample was"
    " drawn from; labels, correlations and decisions speak of the questions asked."
)


def answering(prepared: Prepared) -> dict[str, AnsweredBy]:
    """Return how the answers of the experiment were made, by the model's name in the quality table."""
    asked = {endpoint.model: endpoint for endpoint in prepared.endpoints}
    own = {one.model: one.answerer for one in prepared.answering.values()}
    rated = () if prepared.ratings is None else prepared.ratings["model"].unique()
    return {model: AnsweredBy(asked.get(model, model), "") for model in (*own, *rated)} | {
        model: AnsweredBy(one.endpoint, one.prompt.name) for model, one in own.items() if not isinstance(one, Imported)
    }


def costs(
    labelers: Mapping[str, Labeler],
    session: Session,
    answering: Mapping[str, Answering] | None = None,
    depth: int | None = None,
) -> pd.DataFrame:
    """Return the standalone cost of each labeling, and of answering at a depth, NaN where unknown."""
    rows = []
    for stage, one in [*(answering or {}).items()][: bool(depth)]:
        amount = session.usage(stage_at_depth(stage, depth or 0)).standalone
        known = not isinstance(one.answerer, Imported) and not amount.unreported
        about = {"labeling": ANSWERING, "requests": amount.requests or None, "money": amount.money if known else None}
        rows.append(about | dict.fromkeys(("prompt_tokens", "completion_tokens", "request_seconds")))
    for name, labeler in labelers.items():
        usage = session.usage(f"label {name}")
        amount, people = usage.standalone, labeler.needs.people
        told = not people and not amount.unreported
        rows.append(
            {
                "labeling": name,
                "requests": None if people else amount.requests,
                "prompt_tokens": amount.prompt_tokens if told else None,
                "completion_tokens": amount.completion_tokens if told else None,
                "money": (amount.money if amount.requests else 0.0) if told else None,
                "request_seconds": None if people or amount.untimed else amount.seconds,
            }
        )
    return pd.DataFrame(rows).astype(dict.fromkeys(COSTS.optional, "float64"))


def missing(labelings: Mapping[str, Labeling], quality: pd.DataFrame) -> tuple[str, ...]:
    """Return a line for each labeling and run that something is missing from, with the counts by reason."""
    lines = []
    for name, labeling in labelings.items():
        if any(n for s, n in labeling.counts().items() if s not in NO_FAILURE):
            lines.append(f"labels of {name}: {_listed(labeling.table)} (see labels/)")
        if judges_nothing(labeling):
            lines.append(f"labels of {name}: its file judges none of the pooled documents")
    lost = quality[~quality["status"].isin(NO_FAILURE)]
    for (run, depth), rows in lost.groupby(["run", "depth"]):
        first = rows.drop_duplicates(["query_id", *(["mode"] if "mode" in rows else [])])
        lines.append(f"answers of {run} at depth {depth}: {_listed(first)} (see answers/)")
    return tuple(lines)


def _listed(table: pd.DataFrame) -> str:
    counts = table["status"].value_counts().items()
    listed = ", ".join(f"{n:,} {status}" for status, n in counts if status not in NO_FAILURE)
    return f"{listed}: {reasons(table)}"


def _cost(amount: Amount, wall_s: float | None = None) -> Cost:
    known = amount.unreported < amount.requests or not amount.requests
    return Cost(
        amount.requests,
        amount.prompt_tokens if known else None,
        amount.completion_tokens if known else None,
        (amount.money if amount.requests else 0.0) if known else None,
        wall_s,
        amount.unreported,
        amount.seconds if amount.untimed < amount.requests or not amount.requests else None,
        amount.untimed,
    )


def _spending(usage: Usage, people: bool = False) -> Bill:
    """Wall time is that of this session; what people took and were paid is unknown."""
    standalone = _cost(usage.standalone)
    if people:
        standalone = replace(standalone, money=None, request_seconds=None)
    return Bill(standalone, _cost(usage.incurred, usage.wall_s), usage.cached, usage.failed, usage.again)


def _labeling(name: str, made: State) -> LabelingInfo:
    labeler, labeling = made.prepared.labelers[name], made.labelings[name]
    needs, table, scale = labeler.needs, labeling.table, labeling.scale
    ok = table["status"] == Status.OK.value
    threshold = scale.min_rel
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
        kinship=_kinship(needs, answering(made.prepared)),
        outcome_metric=needs.outcome_metric or "",
        outcome_prompt=needs.outcome_prompt or "",
        counts=labeling.counts(),
        relevant=None if threshold is None else int((table["relevance"][ok] >= threshold).sum()),
        mean=float(table["relevance"][ok].mean()) if ok.any() else None,
        labels=labeling.shares(),
        spending=_spending(made.session.usage(f"label {name}"), needs.people),
        outside_pool=_outside(labeler, labeling, made.prepared.collection),
    )


def _together(names: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(names))


def _kinship(needs: Needs, answering: Mapping[str, AnsweredBy]) -> str:
    """Return what the LLMs of a labeling share with those of the answers; of several that answer, with which."""
    found = {model: kin for model, how in answering.items() if (kin := kinship(needs, how))}
    if len(answering) == 1:
        return "".join(found.values())
    return ", ".join(f"{kin} as {model}" for model, kin in found.items())


def _outside(labeler: Labeler, labeling: Labeling, collection: Collection) -> int | None:
    """Return how many relevant documents of an imported file no run retrieved; None for labels made here."""
    imported: Mapping[tuple[str, str], float | None] | None = getattr(labeler, "imported", None)
    if imported is None:
        return None
    least = labeling.scale.min_rel
    pooled = {query_id: set(docs) for query_id, docs in collection.pairs.items()}
    return sum(
        relevance is not None
        and (relevance > 0 if least is None else relevance >= least)
        and query_id in pooled
        and doc_id not in pooled[query_id]
        for (query_id, doc_id), relevance in imported.items()
    )


def score_means(evaluation: Evaluation, weights: Mapping[str, float] | None) -> pd.DataFrame:
    """Return the mean scores of the runs; where the queries are a sample, with its weights."""
    means = evaluation.means()
    if weights is None:
        return means
    keys = ["labeling", "run", "measure"]
    weighted = _means(evaluation.scores(), keys, weights)
    return SCORES.check(means.assign(value=weighted.reindex(pd.MultiIndex.from_frame(means[keys])).to_numpy()))


def _means(rows: pd.DataFrame, keys: list[str], weights: Mapping[str, float] | None) -> pd.Series:
    """Return the (weighted) means of the values that there are, NaN without any."""
    weight = (1.0 if weights is None else rows["query_id"].map(weights)) * rows["value"].notna()
    sums = rows.assign(weight=weight, weighted=weight * rows["value"]).groupby(keys)[["weight", "weighted"]].sum()
    return sums["weighted"] / sums["weight"]


def quality_means(quality: pd.DataFrame, weights: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Return mean answer quality per run, depth, model and metric, with the counts behind it; see `score_means`."""
    modes = ["mode"] if modes_of(quality) else []
    # Of answers that were rated elsewhere nobody knows whether they abstain.
    unknown = {name: 0 for name in ("abstained", "seems_abstained") if name not in quality}
    rows = quality.fillna(dict.fromkeys(modes, "")).assign(
        missing=~quality["status"].isin(NOT_MISSING),
        not_applicable=quality["status"] == Status.NOT_APPLICABLE.value,
        **unknown,
    )
    keys = ["run", "depth", "model", "metric", *modes]
    groups = rows.groupby(keys)
    means = _means(rows, keys, weights).to_frame("value").assign(n=groups["value"].count())
    counts = groups[["abstained", "seems_abstained", "missing", "not_applicable"]].sum().astype("int64")
    return QUALITY_MEANS.check(means.join(counts).reset_index())


def _answers(stage: str, made: State) -> Answers:
    answering, cell, session = made.prepared.answering[stage], made.cell, made.session
    answerer, model = answering.answerer, answering.model
    rated = {metric.name: rating_stage(stage, metric) for metric in answering.llm_metrics}
    usage = sum(map(session.usage, rated.values()), session.usage(stage))
    imported = isinstance(answerer, Imported)  # what answering took is not known
    about = (cell.model, cell.mode or answering.mode) == (model, answering.mode)
    at_decision = None
    if not imported and about and cell.metric in [metric.name for metric in answering.metrics]:
        parts = [stage, *([rated[cell.metric]] if cell.metric in rated else [])]
        at_decision = _cost(sum(map(made.taken, parts), Amount()))
    quality = made.quality[made.quality["model"] == model]
    quality = quality[quality["mode"] == answering.mode] if answering.mode else quality
    single = quality[quality["metric"] == quality["metric"].iloc[0]] if len(quality) else quality
    return Answers(
        model=model,
        endpoint="" if isinstance(answerer, Imported) else answerer.endpoint.name,
        prompt="imported" if isinstance(answerer, Imported) else answerer.prompt.name,
        counts={status.value: int((single["status"] == status.value).sum()) for status in Status},
        spending=_spending(usage, imported and not rated),
        at_decision=at_decision,
        mode=answering.mode,
    )


def _facts(prepared: Prepared, evaluation: Evaluation) -> Facts:
    collection, config = prepared.collection, prepared.config
    runs = []
    ties: dict[str, int] = {}
    for mean in evaluation.summary:
        ties[mean.run] = max(ties.get(mean.run, 0), mean.ties_across)
    for run in collection.runs:
        lengths = [len(run.top(q)) for q in collection.queries]
        runs.append(
            RunFacts(
                name=run.name,
                queries=sum(n > 0 for n in lengths),
                missing=sum(n == 0 for n in lengths),
                short=sum(0 < n < collection.depth for n in lengths),
                ties=ties.get(run.name, 0),
            )
        )
    return Facts(
        queries=len(collection.queries),
        docs=len(collection.docs),
        depth=collection.depth,
        pool_pairs=collection.n_pairs,
        runs=tuple(runs),
        seed=config.analysis.seed,
        resamples=config.analysis.resamples,
        confidence=config.analysis.confidence,
        versions={
            "judgekit": __version__,
            "Python": platform.python_version(),
            **{library: version(library) for library in _LIBRARIES},
        },
        more=() if prepared.weights is None else (("Sample", _SAMPLED),),
    )


def models(prepared: Prepared, scores: pd.DataFrame, quality: pd.DataFrame, primary: Primary) -> ModelMatrix | None:
    """Return the primary cell by the model that labels and the model that answers; None if one model answers."""
    needs = {name: labeler.needs for name, labeler in prepared.labelers.items()}
    asked = {name: [endpoint.model for endpoint in need.endpoints] for name, need in needs.items() if need.endpoints}
    if len({one.model for one in prepared.answering.values()}) < 2 or not asked:
        return None
    methods: dict[str, str] = {}
    for name in asked:
        spec = prepared.labelers[name].spec
        same = Spec(spec.name, tuple((k, v) for k, v in spec.params if k not in ("endpoint", "model", "jury")))
        taken = [other for other in methods if methods[other] == str(same) and asked[other] == asked[name]]
        methods[name] = name if taken else str(same)
    return model_matrix(
        scores,
        quality,
        prepared.config.rules(),
        label_models=asked,
        measure=primary.measure,
        metric=primary.metric,
        depth=primary.depth,
        level=primary.level,
        methods=methods,
    )


def sections(made: State) -> Iterator[Section]:
    """Yield the further sections of the page."""
    yield from _modes(made)
    yield from _cuts(made)
    matrix = made.matrix
    if matrix is not None:
        yield Section(
            "Differences between models",
            "The same method with labels of another model, or against the answers of another model, on the same"
            " resamples; p by Holm over all rows of a method.",
            matrix.differences,
        )


def _modes(made: State) -> Iterator[Section]:
    """Yield the modes of answering beside each other: their answers, what these take, and how labels follow them."""
    modes, cell = made.comparison.modes, made.cell
    if modes is None:
        return
    rows, gaps = modes.table, modes.differences
    of = {"measure": cell.measure, "level": cell.level, "run": cell.run, "coefficient": "concordance"}
    for column, value in of.items():
        rows = rows[rows[column] == value]
    gaps = gaps.loc[gaps["coefficient"] == "concordance", ["mode", "labeling", "difference", "p_holm"]]
    table = rows[["mode", "labeling", "value", "ci_low", "ci_high", "n"]].rename(columns={"value": "concordance"})
    table = table.merge(gaps, "left", ["mode", "labeling"])
    stage_of = {
        one.mode: stage for stage, one in reversed([*made.prepared.answering.items()]) if one.model == cell.model
    }
    taken = {mode: made.taken(stage_of[mode]) for mode in modes_of(made.quality)}
    tokens = {mode: np.nan if amount.unreported else amount.prompt_tokens for mode, amount in taken.items()}
    table[cell.metric] = table["mode"].map(made.answered().groupby("mode")["value"].mean())
    table["requests"] = table["mode"].map({mode: amount.requests for mode, amount in taken.items()})
    table["prompt tokens"] = table["mode"].map(tokens)
    yield Section(
        "Modes of answering",
        f"The decision is about {cell.mode!r}. For each mode: how {cell.measure} follows {cell.metric} from the"
        f" top {cell.depth}, on the questions that have a value in all modes; the difference from {cell.mode!r}, with p"
        " by Holm; the mean of the answers, and what they take.",
        table,
    )


def _cuts(made: State) -> Iterator[Section]:
    """Yield a table by run where documents say where they stand: what a cut of the pages finds, and what it takes."""
    collection, cell, k = made.prepared.collection, made.cell, made.cell.depth
    shown = {run.name: [run.top(q, k) for q in collection.queries] for run in collection.runs}
    docs = {name: collection.docs.get([d for ids in lists for d in ids]) for name, lists in shown.items()}
    if k < 1 or not any(map(where, chain.from_iterable(docs.values()))):
        return
    measures = {"evidence nDCG": f"nDCG(unit=evidence)@{k}", "evidence recall": f"R(unit=evidence)@{k}"}
    try:
        found = scoring.score_pool(collection, list(made.labelings.values()), list(map(Measure, measures.values())))
    except UsageError:  # no relevant document says it
        return
    means = found.means().set_index(["labeling", "run", "measure"])["value"]
    answered = of_mode(made.answered()).groupby("run")["value"].mean()
    stage_of = {one.model: stage for stage, one in reversed([*made.prepared.answering.items()])}  # the first mode's
    rows = []
    for labeling in made.labelings:
        for run in shown:
            spent = made.taken(f"{stage_of.get(cell.model)} {run}")
            told = spent.requests - spent.unreported
            rows.append(
                {
                    "labeling": labeling,
                    "run": run,
                    "characters per document": sum(len(doc.text) for doc in docs[run]) / max(len(docs[run]), 1),
                    **{title: means[labeling, run, name] for title, name in measures.items()},
                    cell.metric: answered.get(run, np.nan),
                    "tokens per prompt": spent.prompt_tokens / told if told else np.nan,
                    "cost": np.nan if spent.money is None or not spent.requests else spent.money,
                }
            )
    yield Section(
        "The same evidence, cut differently",
        f"Evidence counts once, in however many of the top {k} documents it stands: gains of first showings (nDCG), and"
        f" the share of all evidence in the pool (recall). Beside them the answers from the top {k}, the tokens of a"
        " prompt and what all of them cost, in the currency of the prices.",
        pd.DataFrame(rows).dropna(axis=1, how="all"),
    )


def backing(prepared: Prepared, labelings: Mapping[str, Labeling], quality: pd.DataFrame) -> Backing:
    """Return what an experiment knows of each query."""
    collection = prepared.collection
    return Backing(
        {name: labeling.table for name, labeling in labelings.items()},
        of_mode(quality),
        collection.queries,
        collection.docs,
        {run.name: {q: run.top(q) for q in collection.queries} for run in collection.runs},
        prepared.labelers,
    )


def summarise(made: State) -> Results:
    """Return everything that the report shows."""
    prepared, comparison, session = made.prepared, made.comparison, made.session
    config, decision, matrix, modes = prepared.config, comparison.decision, made.matrix, comparison.modes
    urls = {endpoint.base_url for endpoint in prepared.endpoints}
    agreed = made.agreed.table
    kappas = agreed[(agreed["coefficient"] == "kappa") & (agreed["on"] == "relevance")]
    kappas = kappas.drop(columns=["on", "coefficient"]).rename(columns={"value": "kappa"})
    warnings = (
        *lacking(prepared.collection),
        *(remark for labeling in made.labelings.values() for remark in remarks(labeling)),
        *made.evaluation.warnings,
        *comparison.warnings,
        *session.doubts,
    )
    return Results(
        title=config.title or config.path.stem,
        comparison=comparison.table,
        labelings=tuple(_labeling(name, made) for name in made.labelings),
        answers=tuple(_answers(stage, made) for stage in prepared.answering),
        primary=made.cell,
        claims=decision.claims,
        independent={model: one.lines for model, one in comparison.independent.items()},
        currency=config.money.model_dump()["currency"],
        facts=_facts(prepared, made.evaluation),
        scores=score_means(made.evaluation, prepared.weights),
        quality=quality_means(made.quality, prepared.weights),
        agreement=kappas if len(kappas) else None,  # all coefficients are in agreement.csv
        models=None if matrix is None else matrix.table,
        modes=None if modes is None else modes.table,
        cases=comparison.cases,
        differences=comparison.differences,
        details=comparison.details,
        settings=config.toml(),
        note=" ".join(note for url, note in _NOTES.items() if url in urls),
        warnings=tuple(dict.fromkeys(warnings)),
        notices=(
            *dict.fromkeys(note for note in session.notes if note not in session.doubts),
            *chain.from_iterable(ways_read(labeling, prepared.kinds or {}) for labeling in made.labelings.values()),
        ),
        retries=tuple(session.shared.retries.items()),
    )
