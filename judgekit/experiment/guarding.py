"""The gate of an experiment file, of two results folders, and the ladder of an experiment."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from judgekit import stages
from judgekit.analysis import GUARD, Primary, Verdict
from judgekit.client.session import Mode, Session
from judgekit.data.documents import Queries, Unit
from judgekit.data.files import read_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import mismatches, sources
from judgekit.data.readers import read_column, read_docs, read_queries
from judgekit.data.runs import Run
from judgekit.data.tables import LABELS
from judgekit.data.trec import read_run
from judgekit.errors import ConfigError, DataError, UsageError, not_among
from judgekit.experiment.file import Config, GuardConfig, config_of, labels_file, load
from judgekit.experiment.prepare import Prepared, labelers_of
from judgekit.gate.decision import Rules
from judgekit.gate.guard import Guarded, Losses, by_labeler, by_labels, differing, gate
from judgekit.gate.ladder import CONTROLS, Earlier, Ladder, Lists, degraded, make_ladder, parse_steps
from judgekit.labelers.base import Labeler
from judgekit.metrics import Measure, parse_measures
from judgekit.progress import Progress, silent
from judgekit.report.model import Section
from judgekit.spec import Spec
from judgekit.wire.access import Secret

__all__ = [
    "check_ladder",
    "guard_experiment",
    "guard_results",
    "ladder_section",
    "ladder_units",
    "ladder_verdict",
    "refuse_mixed",
    "run_ladder",
]


def refuse_mixed(files: Mapping[str, Path], *roles: str) -> None:
    """Refuse files of which the manifests say that they were made from different queries or documents.

    Args:
        files: by role.
        roles: further roles that must be of one file.

    Raises:
        DataError: they were.
    """
    found = mismatches(sources(files), {"queries", "docs", *roles})
    if found:
        raise DataError(f"{found[0]}. A gate compares like with like: make both from the same files")


def _choose(what: str, given: str | None, have: Mapping[str, Any], where: str) -> str:
    if given is None and len(have) == 1:
        return next(iter(have))
    if given is None or given not in have:
        say = not_among(what, given, have) if given else f"say which {what} ({', '.join(have)})"
        raise UsageError(f"{where}: {say}")
    return given


def guard_experiment(
    experiment: Path,
    given: Mapping[str, Any] | None = None,
    *,
    cache: str | Path | None = None,
    mode: Mode = "on",
    progress: Progress = silent,
) -> Guarded:
    """Run the gate that an experiment file declares under ``[guard]``; only what the gate needs is labelled.

    Args:
        experiment: the file.
        given: keys of ``[guard]`` that count instead of the file's.
        cache: folder of the reply store.
        mode: see `judgekit.client.session.Mode`.
        progress: called with events.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent.
        StoppedError: the endpoint ended it.
    """
    config = load(experiment)
    wanted, given = config.guard or GuardConfig(), dict(given or {})
    name = given.pop("labeler", wanted.labeler)
    rules = wanted.rules()
    if rules.sequential is not None:
        rules = replace(rules, sequential=str(config.resolve(rules.sequential)))
    rules = replace(rules, **given)
    names = [name for name in (wanted.base, wanted.new) if name is not None]
    if len(names) < 2 or not set(names) <= config.runs.keys():
        have = ", ".join(config.runs)
        raise ConfigError(f"name two of the runs as base and new (there are: {have})", config.path, "guard")
    queries, docs, runs = config.collection()
    data, measure = config.data, _measure(rules, config)
    both = {name: runs[name] for name in names}
    k = measure.cutoff or data.depth
    collection = stages.Collection.make(queries, docs, both, k, data.limit, data.fields, cache)
    labelers, _ = labelers_of(config, collection.docs)
    name = _choose("labeler", name, labelers, f"{config.path}: [guard]")
    labeler = labelers[name]
    for endpoint in labeler.needs.asked:
        Secret.of(endpoint)
    found = stages.with_session(
        lambda session: by_labeler(labeler, name, collection, measure, session, rules, progress),
        cache=cache,
        mode=mode,
        prices=config.price_list(),
        progress=progress,
    )
    return _gate(found, rules, (names[0], names[1]), queries, collection.queries)


def _measure(rules: Rules, config: Config) -> Measure:
    return parse_measures([rules.measure or config.analysis.primary or "nDCG@10"], config.path.parent)[0]


def _gate(found: Losses, rules: Rules, names: tuple[str, str], file: Path, queries: Queries) -> Guarded:
    groups = read_column(file, rules.by) if rules.by else None
    return gate(found, rules, names, groups=groups, texts={q: query.text for q, query in queries.items()})


def guard_results(
    base: Path,
    new: Path,
    run: str | None = None,
    labeler: str | None = None,
    rules: Rules = Rules(),  # noqa: B008 - it is frozen
) -> Guarded:
    """Compare a run of two results folders under the labels of both; nothing is asked.

    Args:
        base: the folder of the old version.
        new: the folder of the new version.
        run: which run; the only one by default.
        labeler: the name of the labeling; the only one by default.
        rules: of the gate.

    Raises:
        DataError, UsageError: the folders are of different questions or documents, or do not hold what is needed.
    """
    configs = [config_of(folder) for folder in (base, new)]
    both = {name: "" for name in configs[0].runs if name in configs[1].runs}
    name = _choose("run", run, both, f"{base} and {new}")
    runs: list[Run] = []
    tables, scales, spellings, labels = [], [], [], dict[str, Path]()
    for folder, config in zip((base, new), configs, strict=True):
        built, _ = labelers_of(config)
        chosen = _choose("labeling", labeler, built, str(folder))
        labels[f"labels of {folder}"] = path = folder / labels_file(chosen)
        file = config.resolve(config.runs[name])
        refuse_mixed({f"run {name}": file, "labels": path}, f"run {name}")
        runs.append(read_run(file, name).cut(config.data.depth))
        tables.append(read_table(LABELS, path))
        scales.append(built[chosen].scale)
        spellings.append(str(built[chosen].spec))
    refuse_mixed(labels)
    if spellings[0] != spellings[1] or scales[0] != scales[1]:
        raise UsageError(f"the labels were made by {spellings[0]} and by {spellings[1]}, which are not comparable")
    together = pd.concat(tables, ignore_index=True)
    keys = ["query_id", "doc_id"]
    differ = together.drop_duplicates([*keys, "relevance", "status"])
    if differ.duplicated(keys).any():
        row = differ[differ.duplicated(keys)].iloc[0]
        raise DataError(
            f"the folders label query {row['query_id']!r}, doc {row['doc_id']!r} differently: the documents or the"
            " labeler changed, so label both versions anew"
        )
    queries = configs[0].collection()[0]
    asked = read_queries(queries)
    labeling = Labeling(chosen, scales[0], together.drop_duplicates(keys))
    ids = list(asked)[: configs[0].data.limit]
    found = by_labels(runs, labeling, _measure(rules, configs[0]), ids, unjudged=rules.unjudged)
    return _gate(found, rules, (str(base), str(new)), queries, asked)


def check_ladder(prepared: Prepared) -> bool:
    """Return whether an experiment wants a ladder; raise ConfigError where it cannot be made."""
    config = prepared.config
    rules = config.guard
    if rules is None:
        return config.analysis.use == GUARD
    names = {"base": config.runs, "new": config.runs, "labeler": prepared.labelers, "relevant": prepared.labelers}
    for key, have in names.items():
        name = getattr(rules, key)
        if name is not None and name not in have:
            raise ConfigError(not_among("name", name, have), config.path, f"guard.{key}")
    try:
        steps = parse_steps(rules.steps, config.data.depth)
    except UsageError as error:
        raise ConfigError(str(error), config.path, "guard.steps") from None
    if rules.earlier is None and any(step.name == "stale" for step in steps):
        raise ConfigError("stale needs guard.earlier, a file with the earlier documents", config.path, "guard.steps")
    if rules.new is None and any(step.name == "pair" for step in steps):
        raise ConfigError("pair needs guard.new, the run that is known to be worse", config.path, "guard.steps")
    if rules.answer and not prepared.answering:
        raise ConfigError("this experiment has no answers: declare them in [answers]", config.path, "guard.answer")
    return True


@dataclass(frozen=True)
class _Degraded:
    """The base run with each step in every query, and the pairs that only these lists show."""

    lists: Lists
    steps: tuple[Spec, ...]
    runs: tuple[Run, ...]
    extra: stages.Collection


def _degrade(prepared: Prepared, relevant: Labeling | None) -> _Degraded:
    """Make the steps; without labels, those that need none to be made."""
    config, collection = prepared.config, prepared.collection
    rules = config.guard or GuardConfig()
    steps = parse_steps(rules.steps, config.data.depth)
    if relevant is None:
        steps = [step for step in steps if step.name != "drop" or step.options]
    name = rules.base or collection.runs[0].name
    run = next(run for run in collection.runs if run.name == name)
    if any("rank" in step.options for step in steps):
        run = read_run(config.collection()[2][name], name).only(collection.queries)
    earlier = None if rules.earlier is None else read_docs(config.resolve(rules.earlier))
    docs = collection.docs if earlier is None else Earlier(collection.docs, earlier)
    good: dict[str, frozenset[str]] = {}
    if relevant is not None:
        least = 0.5 if relevant.scale.min_rel is None else relevant.scale.min_rel
        rows = relevant.table[relevant.table["relevance"] >= least]
        good = {str(query_id): frozenset(docs) for query_id, docs in rows.groupby("query_id")["doc_id"]}
    other = next((run for run in collection.runs if run.name == rules.new), None)
    lists = Lists(run, collection.depth, tuple(collection.queries), good, earlier, collection.docs, other)
    runs = tuple(degraded(step, lists) for step in steps)
    pooled = {q: set(docs) for q, docs in collection.pairs.items()}
    new = {(q, d): None for one in runs for q in one.query_ids for d in one.top(q) if d not in pooled.get(q, ())}
    queries, alone = zip(*new, strict=True) if new else ((), ())
    shown = (Run("ladder", queries, alone, np.zeros(len(new))),) if new else ()
    return _Degraded(lists, tuple(steps), runs, stages.Collection(collection.queries, docs, shown, max(len(new), 1)))


def ladder_units(prepared: Prepared, labeler: Labeler) -> Iterator[Unit]:
    """Yield what a labeler is asked about documents that only the ladder's lists show."""
    return stages.label_units(labeler, _degrade(prepared, None).extra)


async def run_ladder(prepared: Prepared, labelings: Mapping[str, Labeling], session: Session) -> Ladder:
    """Return the ladder of an experiment; documents that it alone shows are labelled, and a sample is answered."""
    config = prepared.config
    rules = config.guard or GuardConfig()
    kept = [name for name, one in prepared.labelers.items() if one.needs.people or hasattr(one, "imported")]
    by = rules.relevant or next(iter([*kept, *labelings]))
    copies = _degrade(prepared, labelings[by])
    together = []
    for name, labeling in labelings.items():
        more = await stages.label_pool(prepared.labelers[name], copies.extra, session, f"{name}, ladder")
        table = pd.concat([labeling.table, more.table], ignore_index=True) if len(more) else labeling.table
        together.append(Labeling(name, labeling.scale, table))
    quality = await _answered(prepared, copies, rules.answer, session) if rules.answer else {}
    ladder = make_ladder(
        copies.lists,
        together,
        parse_measures([rules.rules().measure or str(config.analysis.primary)], config.path.parent),
        copies.steps,
        copies.runs,
        quality=quality,
        shares=rules.shares,
        alpha=rules.rules().alpha,
        noise=rules.noise,
        seed=config.analysis.seed,
    )
    notes = [f"The degraded copies are made from {copies.lists.run.name!r}."]
    if any(step.name == "drop" and not step.options for step in copies.steps):
        notes.append(f"drop removes what {by!r} calls relevant, which favours {by!r}.")
    if not rules.noise:
        notes.append("Nothing else changes in these copies; among other changes (noise), a loss is harder to notice.")
    return replace(ladder, notes=tuple(notes))


async def _answered(
    prepared: Prepared, copies: _Degraded, most: int, session: Session
) -> dict[str, tuple[float, float, float]]:
    """Return by step how much answer quality it takes where it is in every query, with its 95 % interval."""
    config, found = prepared.config, {}
    answering = next(iter(prepared.answering.values()))
    metric, own = prepared.primary_metric
    metric = metric if own else answering.metrics[0].name
    cutoff = Measure(str(config.analysis.primary)).cutoff
    k = cutoff if cutoff in config.answers.depths else config.answers.depths[-1]
    rng = np.random.default_rng(config.analysis.seed)
    base = copies.lists.run.cut(copies.lists.depth)
    for step, run in zip(copies.steps, copies.runs, strict=True):
        changed = differing((base, run), copies.lists.query_ids, k)
        if step.name in CONTROLS or len(changed) < 2:
            continue
        sample = rng.choice(changed, min(most, len(changed)), replace=False).tolist()
        queries = {q: prepared.collection.queries[q] for q in sample}
        asked = stages.Collection(queries, copies.extra.docs, (base.only(sample), run.only(sample)), copies.lists.depth)
        table = await stages.answer_runs(answering, asked, [k], session, closed_book=False, stage="answer, ladder")
        values = table[table["metric"] == metric].pivot(index="query_id", columns="run", values="value").dropna()
        loss = (values[base.name] - values[str(step)]).to_numpy(np.float64)
        share = len(changed) / len(copies.lists.query_ids)
        if len(loss) > 1:
            reach = float(stdtrit(len(loss) - 1, 0.975)) * float(loss.std(ddof=1)) / math.sqrt(len(loss))
            mean = float(loss.mean())
            found[str(step)] = (share * mean, share * (mean - reach), share * (mean + reach))
    return found


def ladder_section(ladder: Ladder) -> Section:
    """Return the ladder as a section of the report."""
    table = ladder.table.replace(np.inf, np.nan)
    power = [str(column) for column in table if str(column).startswith("power_")]
    columns = ["step", "labeling", *power, "smallest", "smallest_low", "smallest_high"]
    text = (
        "power_5: how often the gate shows the loss if the step changes 5 % of the questions. smallest: the smallest"
        " percentage that it shows nine times in ten, with its 95 % interval; empty where it never does. The whole"
        " table is in ladder.csv."
    )
    return Section("The degradation ladder", text, table[columns])


def ladder_verdict(ladder: Ladder, primary: Primary, costs: pd.DataFrame) -> Verdict:
    """Return what the ladder says, as the verdict for the use ``guard``."""
    said = {}
    for name, requests, money in zip(costs["labeling"], costs["requests"], costs["money"], strict=True):
        price = f"{money:.2f}" if money >= 0 else f"{requests:,.0f} requests"
        said[str(name)] = "" if math.isnan(requests) else f", for {price}" if requests else ", at no cost"
    measure = str(ladder.table["measure"].iloc[0])
    sentences = ladder.sentences(measure, said)
    head = f"To guard ({measure}): {sentences[0]}"
    return Verdict(head, replace(primary, use=GUARD, measure=measure), (*sentences[1:], *ladder.notes))
