"""The last step: qrels of the whole pool, by people if they judged a pair, else by the chosen labeling.

A pilot labels some of the questions; this labels all of them, through the store, so that nothing is paid twice.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit import __version__, labelling
from judgekit.analysis.decision import biases as known_biases
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.budget import Amount
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.data.documents import render
from judgekit.data.files import write_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import MANIFEST, InputFile, experiment_in, mismatches
from judgekit.data.outputs import is_results_folder
from judgekit.data.result_files import ResultFiles
from judgekit.data.sources import located
from judgekit.data.streams import write_atomic
from judgekit.data.tables import Status
from judgekit.data.trec import asked_path, missing_path, write_qrels
from judgekit.errors import UsageError, not_among
from judgekit.experiment.file import Config, config_of, experiment_of, load, of_another
from judgekit.experiment.prepare import check_access, labelers_of, tests_of
from judgekit.experiment.templates import filled
from judgekit.job import Asks, Job, job
from judgekit.labelers.base import Labeler
from judgekit.people.final import SHOWN, FinalLabels, final_labels, ndcg_of_runs
from judgekit.people.findings import TRUST
from judgekit.people.reading import People, read_existing, read_people
from judgekit.report import load as load_results

if TYPE_CHECKING:
    from judgekit.client.session import Session

QRELS: Final = "final.qrels"
GAINS: Final = "final-gains.qrels"
LABELS: Final = "labels.parquet"
CARD: Final = "card.md"


@dataclass(frozen=True)
class BuildResult:
    """The written ground truth.

    Attributes:
        folder: the folder with ``final.qrels``, ``labels.parquet`` and ``card.md``.
        files: these, and ``final-gains.qrels`` if labels are rounded grades.
        labeling: the final labels.
        labels: the rows of ``labels.parquet``: ``query_id, doc_id, query, passage, relevance, gain, status, source,
            machine, confidence, cost``.
        agreement: the agreement with people, as in `judgekit.agree`, also on the final labels of held-out queries;
            empty without people.
        card: the text of ``card.md``.
        missing: number of pairs without a label.
        sentences: a description of the labels beside people's.
        notes: warnings for a reader, as sentences.
    """

    folder: Path
    files: tuple[Path, ...]
    labeling: Labeling
    labels: pd.DataFrame = field(repr=False)
    agreement: pd.DataFrame = field(repr=False)
    card: str = field(repr=False)
    missing: int
    sentences: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _BuildTask:
    """The labels to build, with everything read and checked before anything is sent."""

    title: str
    experiment: Path
    config: Config
    collection: Collection
    labeler: Labeler
    name: str
    people: People | None
    judged: str | Path | None
    biases: tuple[str, ...] | None
    unused: Mapping[str, str]
    tested: str

    @property
    def stage(self) -> str:
        """The name of the stage that asks for the labels."""
        return f"label {self.name}"

    def asked(self) -> Iterator[StageUnit]:
        """Yield the labeler's requests."""
        return labelling.labels_asked(self.labeler, self.collection)


def _results_of(config: Config) -> Path | None:
    """Return the folder with the results of `judgekit run` on an experiment file, or None."""
    # A card without known biases says so, so look in the folder to which `run` writes by default.
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
    keys: bool = True,
) -> _BuildTask:
    """Read and check the labels to build; ``keys``: whether endpoints need their keys."""
    source = Path(experiment)
    if source.is_dir():
        results: Path | None = source
        config = config_of(source)
        file = experiment_of(source) or source
    else:
        config = load(source, trusted=trust)
        file = source
        results = _results_of(config)
    biases = None
    if results is not None:
        biases = known_biases(load_results(results).claims).get(labeling, ())
    # All queries: sample and limit were for the pilot.
    collection = config.collection(cache)
    labelers = labelers_of(config, collection.docs)[0]
    if labeling not in labelers:
        raise UsageError(not_among("labeling", labeling, labelers))
    if keys:
        check_access(labelers[labeling].needs.asked)
    # Check before asking, since a wrong id in people's file would end a paid build.
    judged = None if people is None else _read_people(people, collection)
    if judged is not None and labeling == judged.labeling.name:
        raise UsageError(f"people's labels are also named {labeling!r}: rename the labeling")
    return _BuildTask(
        title=config.title or source.resolve().stem,
        experiment=file,
        config=config,
        collection=collection,
        labeler=labelers[labeling],
        name=labeling,
        people=judged,
        judged=people,
        biases=biases,
        unused=_unused(labelers, labeling, people),
        tested=tests_of(config, labelers).get(labeling, ""),
    )


def _unused(labelers: Mapping[str, Labeler], labeling: str, people: str | Path | None) -> dict[str, str]:
    """Return the files of existing judgments, by labeling, that the final qrels leave out."""
    used = None if people is None else located(people, "qrels").path.resolve()
    unused = {}
    for name, labeler in labelers.items():
        file = labeler.judgments if labeler.needs.existing else None
        if file is not None and name != labeling and located(file, "qrels").path.resolve() != used:
            unused[name] = file
    return unused


def _left_out(name: str, file: str, labeling: str) -> str:
    """Return a note that the final qrels leave judgments out, and how to include them."""
    return (
        f"the judgments of {name} are not in the final qrels: add `--people {file}` to let them take the place of"
        f" {labeling}'s labels"
    )


def _check_kept(files: ResultFiles) -> None:
    """Refuse to replace the ground truth of another experiment."""
    folder, experiment = files.place, files.experiment
    other = experiment_of(folder) or experiment_in(folder / MANIFEST)
    if other is not None and experiment is not None and other.resolve() != experiment.resolve():
        raise UsageError(
            f"{folder} holds results of another experiment ({other}): choose another --out, or delete the folder first"
        )


def _replaced(table: Path, labeling: str) -> Iterator[str]:
    """Note if a build would replace the labels of another labeling."""
    if not (table.is_file() and is_results_folder(table.parent)):
        return
    try:
        made_by = set(pd.read_parquet(table, columns=["source"])["source"].dropna()) - {""}
    except (OSError, ValueError, KeyError):
        return  # not a table of ours: replacing it is refused later
    if made_by and labeling not in made_by:
        yield f"the labels of {labeling} replace those of {', '.join(sorted(made_by))} in {table.parent}"


def _read_people(source: str | Path, collection: Collection) -> People:
    """Read people's labels: of a sample drawn for them, or existing judgments."""
    drawn = asked_path(Path(source)).exists() or not located(source, "qrels").path.exists()
    return read_people(Path(source), collection) if drawn else read_existing(source, collection)


def labels_of_all(experiment: str | Path, labeling: str, *, keys: bool) -> tuple[Config, Asks]:
    """Return the requests of `build` for a labeling's labels, for callers that send them in another way."""
    task = _prepared(experiment, labeling, None, None, keys=keys)
    return task.config, {task.stage: task.asked}


@job
def build(
    experiment: str | Path,
    labeling: str,
    *,
    people: str | Path | None = None,
    out: str | Path = "ground-truth",
    asking: Asking = UNLIMITED,
    trust: bool = False,
    accept_empty: bool = False,
) -> Job[BuildResult]:
    """Write the final qrels of an experiment: labels by people if there are any, else those of one labeling.

    All queries are labelled, even if the experiment samples them; stored replies are not paid again. With people, the
    labeling is mapped to their scale: its cut for relevance is the value at which its share of relevant documents comes
    closest to people's, and above and below the cut each label counts people's mean grade there.

    Args:
        experiment: the experiment file, or the folder of its results. The card lists the biases that the comparison
            showed; for a file they come from ``results`` beside it, or from ``judgekit-out/NAME``.
        labeling: the name of one of its labelers.
        people: labels that `judgekit annotate read` wrote, or existing judgments by people (``FORM:FILE``). If these
            are all alike, the labeling's own scale counts.
        out: folder for ``final.qrels``, ``labels.parquet`` and ``card.md``.
        asking: the budget, and where replies are kept.
        trust: as for `judgekit.run`.
        accept_empty: write the labels even if most questions lose every document that people call relevant.

    Returns:
        The labels, the files that hold them, their agreement with people, and how many pairs have no label.

    Raises:
        ConfigError, DataError, UsageError: nothing was sent; or nothing was written, because people and labeling share
            no pair, or the labels leave most questions without a relevant document.
        StoppedError: the endpoint failed or the budget ran out; build again to continue.
    """
    task = _prepared(experiment, labeling, people, asking.cache, trust=trust)
    files = ResultFiles(
        Path(out),
        (QRELS, str(missing_path(QRELS)), GAINS, str(missing_path(GAINS)), LABELS, CARD),
        command="build",
        roles=task.config.files(),
        experiment=task.experiment,
        refuse=_check_kept,
    )

    notes = tuple(_replaced(files.place / LABELS, labeling))

    async def do(session: Session, files: ResultFiles) -> BuildResult:
        machine = await labelling.label_pool(task.labeler, task.collection, session, labeling)
        final = final_labels(machine, task.people, seed=task.config.analysis.seed)
        if final.filled is not None and final.filled.emptied and not accept_empty:
            raise UsageError(final.filled.refusal(labeling))
        return _written(task, machine, final, session.usage(task.stage).standalone, files)

    return Job({task.stage: task.asked}, do, asking.priced(task.config.price_list()), files, notes)


def _written(job: _BuildTask, machine: Labeling, final: FinalLabels, cost: Amount, files: ResultFiles) -> BuildResult:
    """Write the labels on people's scale."""
    labeling, inputs, qrels = job.name, files.inputs, files.file(QRELS)
    table = _table(job, final, cost)
    files.begin()
    write_qrels(final.labeling, qrels)
    _write_gains(final.gains, files.file(GAINS))
    write_table(table, files.file(LABELS))
    shown = {role: inputs[role] for role in job.config.files()}
    if job.judged is not None:
        shown["people"] = InputFile.of(located(job.judged, "qrels").path)
    notes = (*mismatches(inputs), *final.notes)
    # Readers of the card may have the file under another path.
    names_only = [_left_out(name, located(file, "qrels").path.name, labeling) for name, file in job.unused.items()]
    unused = [_left_out(name, shlex.quote(file), labeling) for name, file in job.unused.items()]
    card = _card(job, machine, final, cost, notes=[*notes, *names_only], inputs=shown, qrels=qrels)
    write_atomic(files.file(CARD), card)
    # The qrels leave out pairs without a label, since trec_eval would take a 0 for a judgment.
    missing = int((table["status"] != Status.OK.value).sum())
    files.close()
    names = [QRELS, LABELS, CARD] if final.gains is None else [QRELS, GAINS, LABELS, CARD]
    return BuildResult(
        folder=files.place,
        files=tuple(map(files.file, names)),
        labeling=final.labeling,
        labels=table,
        agreement=final.agreement,
        card=card,
        missing=missing,
        sentences=final.sentences,
        notes=(*notes, *unused, *(job.biases or ())),
    )


def _write_gains(gains: Labeling | None, path: Path) -> None:
    """Write gains beside the rounded labels, or remove those of an earlier build."""
    if gains is not None:
        write_qrels(gains, path)
        return
    for old in (path, missing_path(path)):
        old.unlink(missing_ok=True)


def _table(job: _BuildTask, final: FinalLabels, cost: Amount) -> pd.DataFrame:
    """Return a row per pair, with its texts."""
    table = final.table
    collection = job.collection
    # Spread the price of the replies over the pool; people may also have judged pairs outside it.
    machines = min(int((table["status"] != Status.UNASKED.value).sum()), collection.n_pairs)
    unpriced = cost.money is None and cost.requests > 0
    price = np.nan if unpriced else (cost.money or 0.0) / max(machines, 1)
    out = table[["query_id", "doc_id"]].assign(
        query=[collection.queries[query_id].text for query_id in table["query_id"]],
        passage=[render(doc, collection.fields) for doc in collection.docs.get(table["doc_id"].tolist())],
    )
    labels = ["relevance", "gain", "status", "source", "machine", "confidence"]
    out[labels] = table[labels]
    return out.assign(cost=np.where(out["source"] == job.name, price, np.nan))


def _card(
    job: _BuildTask,
    machine: Labeling,
    final: FinalLabels,
    cost: Amount,
    *,
    notes: Sequence[str],
    inputs: Mapping[str, InputFile],
    qrels: Path,
) -> str:
    """Return the text of the card, which depends only on the inputs and the replies."""
    counts = final.table["source"].value_counts()
    people = "people" if job.people is None else job.people.labeling.name
    sees = []
    if job.labeler.needs.references:
        sees.append("the reference answers")
    if job.labeler.needs.people:
        sees.append("people")
    # As named by the server, which may have served another model than requested.
    models = set(map(str, machine.table.get("reply_model", ()))) - {""}  # as the server said
    agreement = final.agreement
    if len(agreement):
        agreement = agreement[agreement["coefficient"].isin(SHOWN)]
    return filled(
        CARD,
        job=job,
        name=job.name,
        machine=machine,
        final=final,
        cost=cost,
        notes=notes,
        inputs=inputs,
        sees=sees,
        pairs=len(final.table),
        queries=final.table["query_id"].nunique(),
        runs=[run.name for run in job.collection.runs],
        by_people=int(counts.get(people, 0)),
        people="" if people == "people" else people,
        by_machine=int(counts.get(job.name, 0)),
        missing=int(counts.get("", 0)),
        scale=final.labeling.scale,
        shares=final.labeling.shares(),
        models=sorted(models),
        agreement=agreement.to_dict("records"),
        gains=GAINS if final.gains is not None else "",
        gain_scale="" if final.gains is None else str(final.gains.scale),
        ndcg=[] if final.gains is None else ndcg_of_runs(job.collection, final),
        trust=TRUST,
        version=__version__,
        qrels=qrels.name,
        sha256=hashlib.sha256(qrels.read_bytes()).hexdigest(),
    )
