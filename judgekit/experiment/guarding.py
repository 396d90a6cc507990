"""The gate of an experiment file, of two results folders, and the ladder of an experiment."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgekit import stages
from judgekit.client.session import Mode
from judgekit.data.files import read_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import mismatches, sources
from judgekit.data.readers import read_column, read_queries
from judgekit.data.runs import Run
from judgekit.data.tables import LABELS
from judgekit.data.trec import read_run
from judgekit.errors import ConfigError, DataError, UsageError, nearest
from judgekit.experiment.file import Config, GuardConfig, load, parse_config
from judgekit.gate.decision import Rules
from judgekit.gate.guard import Guarded, by_labels, gate, label_changes
from judgekit.labelers.base import Labeler, build
from judgekit.metrics import parse_measures
from judgekit.progress import Progress, silent
from judgekit.spec import slug
from judgekit.wire.access import Secret

__all__ = ["guard_experiment", "guard_results", "refuse_mixed"]


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
        said = f"there is no {what} {given!r}" if given else f"say which {what}"
        raise UsageError(f"{where}: {said} (there are: {', '.join(have)}).{nearest(given or '', have)}")
    return given


def _labelers(config: Config, docs: Any = None) -> dict[str, Labeler]:
    resources = stages.Resources(config.servers(), config.path.parent, config.data.fields, docs)
    built = [(entry.name, build(entry.spec, resources)) for entry in config.labelers]
    return {name or str(labeler.spec): labeler for name, labeler in built}


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
    wanted = config.guard or GuardConfig()
    given = dict(given or {})
    name = given.pop("labeler", wanted.labeler)
    rules = replace(wanted.rules(), **given)
    names = [name for name in (wanted.base, wanted.new) if name is not None]
    if len(names) < 2 or not set(names) <= config.runs.keys():
        have = ", ".join(config.runs)
        raise ConfigError(f"name two of the runs as base and new (there are: {have})", config.path, "guard")
    files = {name: config.resolve(config.runs[name]) for name in names}
    queries, docs = (config.resolve(file) for file in (config.data.queries, config.data.docs))
    one = parse_measures([rules.measure or config.analysis.primary or "nDCG@10"], config.path.parent)[0]
    k = one.cutoff or config.data.depth
    collection = stages.Collection.make(queries, docs, files, k, config.data.limit)
    labelers = _labelers(config, collection.docs)
    name = _choose("labeler", name, labelers, f"{config.path}: [guard]")
    labeler = labelers[name]
    for endpoint in labeler.needs.asked:
        Secret.of(endpoint)
    labeling, cost = stages.with_session(
        lambda session: label_changes(
            labeler, collection, session, name, most=rules.max_requests, k=k, progress=progress
        ),
        cache=cache,
        mode=mode,
        prices=config.price_list(),
        progress=progress,
    )
    found = by_labels(
        collection.runs,
        labeling,
        one,
        list(collection.queries),
        unjudged=rules.unjudged,
        partly=bool(labeler.needs.asked),
        cost=cost,
    )
    return gate(
        found,
        rules,
        (names[0], names[1]),
        groups=read_column(queries, rules.by) if rules.by else None,
        texts={q: query.text for q, query in collection.queries.items()},
        folder=config.path.parent,
    )


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
    configs = [_resolved(folder) for folder in (base, new)]
    both = {name: "" for name in configs[0].runs if name in configs[1].runs}
    name = _choose("run", run, both, f"{base} and {new}")
    runs: list[Run] = []
    tables, scales, spellings, labels = [], [], [], dict[str, Path]()
    for folder, config in zip((base, new), configs, strict=True):
        built = _labelers(config)
        chosen = _choose("labeling", labeler, built, str(folder))
        labels[f"labels of {folder}"] = path = folder / "labels" / f"{slug(chosen)}.parquet"
        file = config.resolve(config.runs[name])
        refuse_mixed({f"run {name}": file, "labels": path}, f"run {name}")
        runs.append(read_run(file, name).cut(config.data.depth))
        tables.append(read_table(LABELS, path))
        scales.append(built[chosen].scale)
        spellings.append(str(built[chosen].spec))
    refuse_mixed(labels)
    if spellings[0] != spellings[1] or scales[0] != scales[1]:
        raise UsageError(f"the labels are of {spellings[0]} and of {spellings[1]}, which are not comparable")
    together = pd.concat(tables, ignore_index=True)
    keys = ["query_id", "doc_id"]
    differ = together.drop_duplicates([*keys, "relevance", "status"])
    if differ.duplicated(keys).any():
        row = differ[differ.duplicated(keys)].iloc[0]
        raise DataError(
            f"the folders label query {row['query_id']!r}, doc {row['doc_id']!r} differently: the documents or the"
            " labeler changed, so label both versions anew"
        )
    queries = configs[0].resolve(configs[0].data.queries)
    asked = read_queries(queries)
    one = parse_measures([rules.measure or configs[0].analysis.primary or "nDCG@10"], configs[0].path.parent)[0]
    labeling = Labeling(chosen, scales[0], together.drop_duplicates(keys))
    found = by_labels(runs, labeling, one, list(asked)[: configs[0].data.limit], unjudged=rules.unjudged)
    return gate(
        found,
        rules,
        (str(base), str(new)),
        groups=read_column(queries, rules.by) if rules.by else None,
        texts={q: query.text for q, query in asked.items()},
    )


def _resolved(folder: Path) -> Config:
    """Return the experiment that a results folder was made by."""
    path = folder / "resolved.toml"
    try:
        content = path.read_text(encoding="utf-8")
        base = Path(content.splitlines()[0].removeprefix("# Paths are relative to "))
        return parse_config(tomllib.loads(content), base / path.name)
    except (OSError, ValueError, IndexError):
        raise DataError("does not hold results of `judgekit run` (there is no resolved.toml to read)", folder) from None
