"""The last step: qrels of the whole pool, by people where they judged and by the chosen labeling elsewhere.

A pilot labelled some of the questions. Here all of them are labelled, through the store, so that nothing is paid twice.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from judgekit import __version__, labelling
from judgekit.analysis.decision import biases as known_biases
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.budget import Amount, Prices
from judgekit.client.session import Session
from judgekit.client.stages import StageUnit
from judgekit.client.sync import with_session
from judgekit.client.waves import Plan
from judgekit.collection import Collection
from judgekit.data.documents import render
from judgekit.data.files import write_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import MANIFEST, InputFile, mismatches, sources, write_manifest
from judgekit.data.outputs import check_folder, inline, is_results_folder
from judgekit.data.streams import noting_reads, write_atomic
from judgekit.data.tables import Status
from judgekit.data.trec import missing_path, write_qrels
from judgekit.errors import UsageError, not_among
from judgekit.experiment.file import Config, config_of, load, of_another
from judgekit.experiment.prepare import check_access, labelers_of
from judgekit.experiment.run import count
from judgekit.labelers.base import Labeler
from judgekit.people.final import SHOWN, FinalLabels, final_labels
from judgekit.people.reading import People, read_people
from judgekit.report import load as load_results

QRELS: Final = "final.qrels"
LABELS: Final = "labels.parquet"
CARD: Final = "card.md"


@dataclass(frozen=True)
class Built:
    """Ground truth that was written.

    Attributes:
        folder: where ``final.qrels``, ``labels.parquet`` and ``card.md`` lie.
        labeling: the final labels.
        labels: the rows of ``labels.parquet``: ``query_id, doc_id, query, passage, relevance, status, source, machine,
            confidence, cost``.
        agreement: with people on held-out queries, as in `judgekit.agree`; empty without people.
        card: the text of ``card.md``.
        missing: how many pairs have no label.
        notes: what a reader has to know, as sentences.
    """

    folder: Path
    labeling: Labeling
    labels: pd.DataFrame = field(repr=False)
    agreement: pd.DataFrame = field(repr=False)
    card: str = field(repr=False)
    missing: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Job:
    """What is built: everything read and checked before anything is sent."""

    title: str
    config: Config
    collection: Collection
    labeler: Labeler
    name: str
    people: People | None
    biases: tuple[str, ...] | None


def _results_of(config: Config) -> Path | None:
    """Return the folder where `judgekit run` left the results of an experiment file; None if there is none."""
    for folder in (config.path.parent / "results", Path("judgekit-out") / config.path.stem):
        finished = is_results_folder(folder) and (folder / "comparison.csv").is_file()
        if finished and of_another(folder, config) is None:
            return folder
    return None


def _prepared(
    experiment: str | Path,
    labeling: str,
    people: str | Path | None,
    cache: str | Path | None,
    *,
    trust: bool = False,
) -> _Job:
    source = Path(experiment)
    config = config_of(source) if source.is_dir() else load(source, trusted=trust)
    results = source if source.is_dir() else _results_of(config)
    biases = None if results is None else known_biases(load_results(results).claims).get(labeling, ())
    config = config.updated(data={"sample": None, "limit": None})
    collection = Collection.make(*config.collection(), config.data.depth, None, config.data.fields, cache)
    labelers = labelers_of(config, collection.docs)[0]
    if labeling not in labelers:
        raise UsageError(not_among("labeling", labeling, labelers))
    check_access(labelers[labeling].needs.asked)
    if labeling == "people" and people is not None:
        raise UsageError("the labeling is named 'people', which is reserved for labels by people: rename it")
    judged = None if people is None else read_people(Path(people), collection)
    title = config.title or source.resolve().stem
    return _Job(
        title, config, collection=collection, labeler=labelers[labeling], name=labeling, people=judged, biases=biases
    )


def plan_build(
    experiment: str | Path, labeling: str, people: str | Path | None = None, cache: str | Path | None = None
) -> tuple[dict[str, Plan], Prices]:
    """Count what `build` would ask, without asking it, and return the prices that the experiment declares, too."""
    job = _prepared(experiment, labeling, people, cache)

    def asked() -> Iterator[StageUnit]:
        return labelling.labels_asked(job.labeler, job.collection)

    return count({f"label {labeling}": asked}, cache), job.config.price_list()


def build(
    experiment: str | Path,
    labeling: str,
    *,
    people: str | Path | None = None,
    out: str | Path = "ground-truth",
    asking: Asking = UNLIMITED,
    trust: bool = False,
) -> Built:
    """Write the final qrels of an experiment: people's labels where there are some, else those of one labeling.

    All queries are labelled, whatever sample of them the experiment takes; what is in the store is not asked again.
    With people, the labeling's values are put on their scale: from the threshold that separates best what people call
    relevant, or, for grades, to what people give on average.

    Args:
        experiment: the experiment file, or the folder of its results. The card tells the biases that the comparison
            showed; for a file they are looked up in ``results`` beside it, or in ``judgekit-out/NAME``.
        labeling: the name of one of its labelers.
        people: labels that `judgekit annotate read` wrote.
        out: folder for ``final.qrels``, ``labels.parquet`` and ``card.md``.
        asking: up to what cost models are asked, and where replies are kept.
        trust: as for `judgekit.run`, of an experiment file.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent; or people judged too little to fit anything.
        StoppedError: the endpoint or the budget ended it; build again to go on from there.
    """
    folder = Path(out)
    with noting_reads() as read:
        job = _prepared(experiment, labeling, people, asking.cache, trust=trust)
        check_folder(folder, [MANIFEST, QRELS, str(missing_path(QRELS)), LABELS, CARD])
        inputs = sources(job.config.files(), read)

    async def labelled(session: Session) -> tuple[Labeling, Amount]:
        made = await labelling.label_pool(job.labeler, job.collection, session, labeling)
        return made, session.usage(f"label {labeling}").standalone

    machine, cost = with_session(labelled, asking, job.config.price_list())
    final = final_labels(machine, job.people, seed=job.config.analysis.seed)
    table = _table(job, final, cost)
    missing = int((table["status"] != Status.OK.value).sum())
    write_manifest(folder / MANIFEST, inputs)  # first: it makes the folder ours, also if we are killed
    write_qrels(final.labeling, folder / QRELS)
    write_table(table, folder / LABELS)
    sha256 = hashlib.sha256((folder / QRELS).read_bytes()).hexdigest()
    read_files = {role: inputs[role] for role in job.config.files()}
    if people is not None:
        read_files["people"] = InputFile.of(Path(people))
    notes = (*mismatches(inputs), *final.notes)
    facts = _Card(
        job=job,
        machine=machine,
        final=final,
        table=table,
        cost=cost,
        notes=notes,
        read=read_files,
        sha256=sha256,
    )
    card = "\n".join(_card(facts)) + "\n"
    write_atomic(folder / CARD, card)
    names = [QRELS, LABELS, CARD]
    if missing:
        names.append(str(missing_path(QRELS)))
    write_manifest(folder / MANIFEST, inputs, [folder / name for name in names])
    return Built(
        folder=folder,
        labeling=final.labeling,
        labels=table,
        agreement=final.agreement,
        card=card,
        missing=missing,
        notes=(*notes, *(job.biases or ())),
    )


def _table(job: _Job, final: FinalLabels, cost: Amount) -> pd.DataFrame:
    """Return a row for each pair, with its texts."""
    table = final.table
    machines = int((table["status"] != Status.UNASKED.value).sum())
    each = np.nan if cost.money is None and cost.requests else (cost.money or 0.0) / max(machines, 1)
    out = table[["query_id", "doc_id"]].assign(
        query=[job.collection.queries[query_id].text for query_id in table["query_id"]],
        passage=[render(doc, job.collection.fields) for doc in job.collection.docs.get(table["doc_id"].tolist())],
    )
    labels = ["relevance", "status", "source", "machine", "confidence"]
    out[labels] = table[labels]
    return out.assign(cost=np.where(out["source"] == job.name, each, np.nan))


@dataclass(frozen=True)
class _Card:
    """What ``card.md`` is made of; it depends on the inputs and the replies alone."""

    job: _Job
    machine: Labeling
    final: FinalLabels
    table: pd.DataFrame
    cost: Amount
    notes: Sequence[str]
    read: Mapping[str, InputFile]
    sha256: str


def _card(made: _Card) -> Iterator[str]:
    """Yield the lines of the card."""
    job, final, table, cost = made.job, made.final, made.table, made.cost
    title, scale, labeler = job.title, final.labeling.scale, job.labeler
    counts = table["source"].value_counts()
    by_people, by_machine = int(counts.get("people", 0)), int(counts.get(job.name, 0))
    yield from (f"# Relevance labels: {inline(title)}", "", "## What it is made of", "")
    yield f"- {len(table):,} pairs of {table['query_id'].nunique():,} queries: the top {job.config.data.depth} of"
    yield f"  {len(job.collection.runs)} runs ({inline(', '.join(run.name for run in job.collection.runs))})"
    yield f"- {by_people:,} labels by people, {by_machine:,} by {inline(job.name)}, {int(counts.get('', 0)):,} missing"
    least = "" if scale.min_rel is None else f", relevant from {scale.min_rel} on"
    yield f"- Scale: {scale}{least}. To score by it: `--qrels {QRELS} --scale final={scale}`"
    if final.rule is not None:
        yield f"- A value of {inline(job.name)} on its scale {made.machine.scale}: {final.rule}"
    if len(shares := final.labeling.shares()) <= 12:
        yield f"- Labels given: {', '.join(f'{label} {n:,} times' for label, n in shares.items())}"
    yield from (f"- Note: {inline(note)}" for note in made.notes)
    yield from ("", "## Agreement with people on held-out queries", "")
    yield from _agreed(final)
    yield from ("", "## Known biases", "")
    sees = ["the reference answers"] if labeler.needs.references else []
    if labeler.needs.people:
        sees.append("people")
    if sees:
        yield f"- {inline(job.name)} saw {' and '.join(sees)}: do not evaluate with these labels what uses the same."
    yield from (f"- {inline(sentence)}" for sentence in job.biases or ())
    if job.biases is None:
        yield "- Unknown: these labels were built without the results of a comparison."
    elif not job.biases:
        yield f"- The comparison showed no bias of {inline(job.name)}."
    yield "- Passages that none of the runs holds are not labelled. A run that finds them is scored too low."
    yield from ("", "## How it was made", "")
    yield f"- judgekit {__version__}, labeler `{labeler.spec}`"
    models = sorted({*map(str, made.machine.table.get("reply_model", ()))} - {""})  # as the server said
    replied = f" (replies by {inline(', '.join(models))})" if models else ""
    for endpoint in labeler.needs.asked:
        yield f"- {inline(endpoint.name)}: {inline(endpoint.model)}{replied}"
    money = "" if cost.money is None or not cost.requests else f", {cost.money:,.2f} in the currency of the prices"
    yield f"- {inline(job.name)}, all of it anew: {cost.requests:,} requests{money}"
    for role, file in made.read.items():
        yield inline(f"- {role}: {Path(file.file).name} (SHA-256 {file.sha256[:12]})")
    yield from ("", "## How to cite", "")
    yield f"> {inline(title)}: {len(table):,} relevance labels, {by_people:,} of them by people and {by_machine:,} by"
    yield f"> {inline(str(labeler.spec))}; made with judgekit {__version__}. SHA-256 of {QRELS}: {made.sha256}"


def _agreed(final: FinalLabels) -> Iterator[str]:
    if final.rule is None:
        yield "No people judged any of it."
        return
    rows = final.agreement[final.agreement["coefficient"].isin(SHOWN)] if len(final.agreement) else final.agreement
    yield f"{final.judged:,} pairs have both labels. The rule was fitted on four fifths of their queries and tried on"
    yield "the rest, five times. These are the pairs that were drawn for people, each counted once."
    yield from ("", "| | on | value | 95 % interval | pairs |", "| --- | --- | --- | --- | --- |")
    for row in rows.to_dict("records"):
        interval = "–" if math.isnan(row["ci_low"]) else f"{row['ci_low']:.3f} to {row['ci_high']:.3f}"
        yield f"| {row['coefficient']} | {row['on']} | {row['value']:.3f} | {interval} | {row['pairs']:,} |"
