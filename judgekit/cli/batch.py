"""``batch``: how requests leave and replies come back as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.console.help import group
from judgekit.console.printing import opened_store, say

if TYPE_CHECKING:
    from judgekit.client.batch.files import BatchImport
    from judgekit.client.batch.service import Fetched
    from judgekit.client.stages import AllStages, StageUnit
    from judgekit.experiment.file import Config
    from judgekit.job import Asks
    from judgekit.store.replies import Store

batch = group(
    "Send requests as batches: to a batch service, or as OpenAI batch files (also for `vllm run-batch`).", name="batch"
)

Experiment = Annotated[Path, typer.Argument(help="Experiment file (TOML).")]


LabelingOption = Annotated[
    str | None,
    typer.Option(
        "--labeling",
        "-l",
        metavar="NAME",
        help="The requests of `judgekit build` with this labeling, for all questions, in place of those of `run`.",
    ),
]


@contextmanager
def _opened(
    experiment: Path, labeling: str | None, *, keys: bool
) -> Iterator[tuple[Config, Store, Iterable[StageUnit], AllStages]]:
    """Yield the experiment, the store, and what a run or a build asks by what program."""
    from judgekit.client.stages import AllStages
    from judgekit.experiment.build import labels_of_all
    from judgekit.experiment.prepare import prepare
    from judgekit.experiment.run import asked
    from judgekit.job import everything

    asks: Asks
    if labeling is None:
        prepared = prepare(experiment, keys=keys)
        config, asks = prepared.config, asked(prepared)
    else:
        config, asks = labels_of_all(experiment, labeling, keys=keys)
    with opened_store(readonly=False) as store:
        yield config, store, everything(asks), AllStages()


@batch.command("export")
def batch_export(
    experiment: Experiment,
    out: Annotated[Path, typer.Option("--out", "-o", help="First batch file to write (.jsonl).")] = Path("batch.jsonl"),
    labeling: LabelingOption = None,
) -> None:
    """Write the requests without a stored reply as OpenAI batch files. Sends nothing.

    Examples:
        judgekit batch export experiment.toml --out batch.jsonl
        judgekit batch export experiment.toml --labeling judge --out labels.jsonl
    """
    from judgekit.client.batch.files import export_batch

    with _opened(experiment, labeling, keys=False) as (_, store, units, program):
        found = export_batch(store, units, program, out)
    files = [f"  {file} ({endpoint.model} at {endpoint.name})" for file, endpoint in found.files.items()]
    say(f"{found.requests:,} requests written, {found.cached:,} are in the store", *files)
    if found.again:
        say(f"{found.again:,} of them were exported before and have no reply yet; do not send both files")
    if found.at_least and found.requests:
        say("Replies may lead to more requests: import them, then export again.")


@batch.command("submit")
def batch_submit(experiment: Experiment, labeling: LabelingOption = None) -> None:
    """Submit the requests without a stored reply to endpoints with OpenAI's batch service.

    This costs money. Requests in a batch that is still open are not submitted again, but a run in the meantime does ask
    them.

    Examples:
        judgekit batch submit experiment.toml
    """
    from judgekit.client.batch.service import submit

    with _opened(experiment, labeling, keys=True) as (config, store, units, program):
        found = submit(store, units, program, config.servers().values())
    say(
        f"{found.requests:,} requests submitted in {len(found.files):,} batches, {found.cached:,} are in the store,"
        f" {found.under_way:,} were submitted before"
    )
    if found.at_least and found.requests:
        say("Replies may lead to more requests: fetch them, then submit again.")


@batch.command("fetch")
def batch_fetch(experiment: Experiment) -> None:
    """Show the progress of submitted batches, and import the replies of finished ones.

    Examples:
        judgekit batch fetch experiment.toml
    """
    from judgekit.client.batch.service import fetch
    from judgekit.experiment.file import load

    with opened_store(readonly=False) as store:
        missing, fetched = 0, list(fetch(store, load(experiment).servers().values()))
    if not fetched:
        say("no submitted batch is waiting to be fetched")
    for result in fetched:
        say(_progress(result))
        for imported in result.imports:
            missing += _imported(imported)
        missing += len(result.problems)
    if missing:
        raise typer.Exit(1)


def _progress(fetched: Fetched) -> str:
    submission = fetched.submission
    whom = f"{submission.batch or submission.file} ({submission.model} at {fetched.endpoint.name})"
    if fetched.batch is None:
        return f"{whom}: unknown to the service; `judgekit batch submit` submits it again"
    counts, total = fetched.batch.request_counts, f"{len(submission.keys):,}"
    done = f"{counts.completed:,} of {total} done, {counts.failed:,} failed" if counts else f"0 of {total} done"
    return "\n  ".join([f"{whom}: {fetched.batch.status}, {done}", *fetched.problems])


def _imported(imported: BatchImport) -> int:
    """Say what was imported; return how many requests have no reply."""
    say(f"  {imported.imported:,} replies imported, {imported.there:,} were already stored")
    for line, key, reason in imported.failed:
        say(f"  line {line}: no reply to {key[:12]}: {reason}")
    for line, key in imported.unknown:
        say(f"  line {line}: {key[:12]} was not exported from this store")
    return len(imported.failed) + len(imported.unknown)


@batch.command("import")
def batch_import(file: Annotated[list[Path], typer.Argument(help="Result files of the batch service.")]) -> None:
    """Import result files into the store; their lines may be in any order.

    Examples:
        judgekit batch import results.jsonl
    """
    from judgekit.client.batch.files import import_batch

    failed = 0
    with opened_store(readonly=False) as store:
        for path in file:
            imported = import_batch(store, path)
            say(f"{path}:")
            failed += _imported(imported)
    if failed:
        raise typer.Exit(1)
