"""``batch``: export requests to files, and import replies from files."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.console.batches import fetched_batches, imported_files, submitted_batches
from judgekit.console.help import group
from judgekit.console.options import AsJson
from judgekit.console.printing import note, opened_store, say
from judgekit.console.results import CommandResult

if TYPE_CHECKING:
    from judgekit.client.stages import AllStages, StageUnit
    from judgekit.experiment.file import Config
    from judgekit.job import Asks
    from judgekit.store.replies import Store

batch = group(
    "Write requests as OpenAI batch files, also for `vllm run-batch`, and import what comes back.", name="batch"
)

Experiment = Annotated[Path, typer.Argument(help="Experiment file (TOML).")]


LabelingOption = Annotated[
    str | None,
    typer.Option(
        "--labeling",
        "-l",
        metavar="NAME",
        help="Export the requests of `judgekit build` with this labeling (all questions), not those of `run`.",
    ),
]


@contextmanager
def _opened(
    experiment: Path, labeling: str | None, *, keys: bool
) -> Iterator[tuple[Config, Store, Iterable[StageUnit], AllStages]]:
    """Yield the experiment, the store, and the units and program of a run or a build."""
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
    as_json: AsJson = False,
) -> None:
    """Write the requests without a stored reply as OpenAI batch files. Sends nothing.

    Examples:
        judgekit batch export experiment.toml --out batch.jsonl
        judgekit batch export experiment.toml --labeling judge --out labels.jsonl
    """
    from judgekit.client.batch.files import export_batch

    with _opened(experiment, labeling, keys=False) as (_, store, units, program):
        found = export_batch(store, units, program, out)
    told = [f"{found.requests:,} requests written, {found.cached:,} are in the store"]
    told += [f"  {file} ({endpoint.model} at {endpoint.name})" for file, endpoint in found.files.items()]
    if found.again:
        told.append(f"{found.again:,} of them were exported before and have no reply yet; do not send both files")
    if found.at_least and found.requests:
        told.append("Replies may lead to more requests: import them, then export again.")
    exported = {
        "requests": found.requests,
        "cached": found.cached,
        "again": found.again,
        "at_least": found.at_least,
    }
    result = CommandResult(lambda: say(*told), {"exported": exported}, [*found.files])
    result.end("batch export", as_json=as_json)


@batch.command("submit", hidden=True)
def batch_submit(experiment: Experiment, labeling: LabelingOption = None) -> None:
    """Submit the requests without a stored reply to endpoints with OpenAI's batch service: the way of 0.3."""
    from judgekit.client.batch.service import submit

    _is_now("submit", experiment, labeling)
    with _opened(experiment, labeling, keys=True) as (config, store, units, program):
        found = submit(store, units, program, config.servers().values())
    submitted_batches(found).end("batch", as_json=False)


@batch.command("fetch", hidden=True)
def batch_fetch(experiment: Experiment) -> None:
    """Show the progress of submitted batches, and import the replies of finished ones: the way of 0.3."""
    from judgekit.client.batch.service import fetch
    from judgekit.experiment.file import load

    _is_now("fetch", experiment, None)
    with opened_store(readonly=False) as store:
        result = fetched_batches(fetch(store, load(experiment).servers().values()), as_json=False)
    result.end("batch", as_json=False)


def _is_now(what: str, experiment: Path, labeling: str | None) -> None:
    """Print the command that replaces one of 0.3."""
    job = "run" if labeling is None else "build"
    more = "" if labeling is None else f" --labeling {shlex.quote(labeling)}"
    new = f"judgekit {job} {shlex.quote(str(experiment))}{more} --batch {what}"
    note(f"`judgekit batch {what}` ends with 0.5: use `{new}`, or --batch {what} with any command that asks")


@batch.command("import")
def batch_import(
    file: Annotated[list[Path], typer.Argument(help="Result files of the batch service.")],
    as_json: AsJson = False,
) -> None:
    """Import result files into the store; their lines may be in any order.

    Examples:
        judgekit batch import results.jsonl
    """
    from judgekit.client.batch.files import import_batch

    with opened_store(readonly=False) as store:
        result = imported_files(((str(path), import_batch(store, path)) for path in file), as_json=as_json)
    result.end("batch import", as_json=as_json)
