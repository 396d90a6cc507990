"""``cache`` and ``batch``: what is in the reply store, and how requests leave and replies come back as files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.common import group, note, say, store_path
from judgekit.cli.options import Cache, Limit
from judgekit.errors import UsageError

if TYPE_CHECKING:
    from judgekit.client.batch import BatchImport
    from judgekit.client.submission import Fetched
    from judgekit.experiment.file import Config
    from judgekit.store.replies import Store

__all__ = ["batch", "cache"]

cache = group(
    "Look after the store of replies, so that nothing is paid twice.\n\nTwo processes that run at the same time on one"
    " store may both pay for what neither has yet: run them one after the other, or on different data. The store holds"
    " your prompts with their passages; only you can read it."
)
batch = group("Ask by batches: at a batch service, or by OpenAI batch files, which `vllm run-batch` takes as well.")


@contextmanager
def _store(folder: Path | None, *, readonly: bool) -> Iterator[Store]:
    from judgekit.store.replies import Store, has_store

    path = store_path(folder)
    if readonly and not has_store(path):
        raise UsageError(f"{path} holds no store")
    with closing(Store(path, readonly=readonly, note=note)) as store:
        yield store


@cache.command("stats")
def stats(cache: Cache = None) -> None:
    """Say what the store holds: replies and tokens by endpoint and model, size, damage."""
    from judgekit.store.maintenance import stats as read_stats

    with _store(cache, readonly=True) as store:
        found = read_stats(store)
    say(f"store:   {found.path}", f"size:    {found.size / 1e6:,.1f} MB", f"replies: {found.replies:,}")
    for (endpoint, model), part in sorted(found.parts.items()):
        tokens = f"{part.prompt_tokens:,} prompt and {part.completion_tokens:,} completion tokens"
        say(f"  {part.replies:,} of {model or 'an application'} at {endpoint}: {tokens}")
        named = ", ".join(f"{name} ({n:,})" for name, n in sorted(part.answered.items()) if name)
        if set(part.answered) - {model, ""}:
            say(f"    the replies name their model: {named}")
    if found.oldest is not None and found.newest is not None:
        first, last = (time.strftime("%Y-%m-%d %H:%M", time.localtime(t)) for t in (found.oldest, found.newest))
        say(f"stored:  {first} to {last}")
    if found.waiting:
        say(f"waiting: {found.waiting:,} requests exported to batch files, without a reply yet")
    if found.damaged:
        say(f"damaged: {found.damaged:,} rows; `judgekit cache verify --repair` deletes them, they are asked for again")
    for folder in found.aside:
        say(f"aside:   {folder} (a damaged file that was moved away)")


@cache.command("verify")
def verify(
    cache: Cache = None,
    repair: Annotated[bool, typer.Option("--repair", help="Delete what is damaged; it is asked for again.")] = False,
) -> None:
    """Check every reply: its identity, its checksum, and that it is a chat completion."""
    from judgekit.store.maintenance import verify as check

    with _store(cache, readonly=not repair) as store:
        found = check(store, repair=repair)
    say(f"checked {found.checked:,} replies; file structure: {found.structure}")
    for key, problem in found.damaged:
        say(f"damaged: {key}: {problem}{' (deleted)' if repair else ''}")
    if not found.ok and not repair:
        raise typer.Exit(1)


@cache.command("explain")
def explain(
    request: Annotated[str, typer.Argument(help="An identity (or its beginning), or the JSON body of a request.")],
    cache: Cache = None,
) -> None:
    """Say what the store knows of a request, or how it differs from the nearest one that is stored."""
    from judgekit.store.maintenance import explain as look

    with _store(cache, readonly=True) as store:
        found = look(store, request)
    record = found.record or found.nearest
    if found.record is not None:
        say(f"stored: {found.record.key}")
    elif found.nearest is not None:
        say(f"not stored; the nearest that is: {found.nearest.key}")
        for difference in found.differences:
            say(f"  {difference.path}: asked {difference.asked}, stored {difference.stored}")
    else:
        say("not stored, and neither is anything like it")
    if record is not None:
        say(
            f"endpoint: {record.endpoint}",
            f"sample:   {record.sample}",
            f"time:     {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(record.time))}",
            f"request:  {record.body}",
            *([f"sent as:  {record.sent}"] if record.sent else []),
            f"reply:    {record.reply}",
        )


@cache.command("export")
def export(
    out: Annotated[Path, typer.Argument(help="JSONL file to write (.gz is compressed).")], cache: Cache = None
) -> None:
    """Write all replies as JSON lines."""
    from judgekit.store.maintenance import export_store

    with _store(cache, readonly=True) as store:
        count = export_store(store, out)
    say(f"{count:,} replies: {out}")


@cache.command("import")
def import_(file: Annotated[Path, typer.Argument(help="What `cache export` wrote.")], cache: Cache = None) -> None:
    """Add replies from JSON lines; what is there already stays."""
    from judgekit.store.maintenance import import_store

    with _store(cache, readonly=False) as store:
        added, there = import_store(store, file)
    say(f"{added:,} replies added, {there:,} were there already")


@cache.command("forget")
def forget(
    query: Annotated[
        str | None, typer.Option(help="A question: its text, or its id where --queries names the file.")
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="Queries: JSONL with query_id, text.")] = None,
    older_than: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="What was stored more than DAYS days ago.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="A model, as it was asked for or as its replies name it.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete it; without this it is only counted.")] = False,
    cache: Cache = None,
) -> None:
    """Delete replies and waiting requests that meet all conditions given. What is needed again is asked and paid again.

    A question is looked for in the texts of the prompts; those that quote it are found too. Files that you exported
    and results that you wrote are not touched.
    """
    from judgekit.reading.prompts import neutral
    from judgekit.store.maintenance import find
    from judgekit.store.maintenance import forget as delete

    if queries is not None:
        from judgekit.data.readers import read_queries

        known = read_queries(queries)
        if query is None or query not in known:
            raise UsageError(f"--query must be an id in {queries}, and {query!r} is not one")
        query = known[query].text
    before = None if older_than is None else time.time() - 86_400 * older_than
    with _store(cache, readonly=not yes) as store:
        found = find(store, query=query and neutral(query), before=before, model=model)
        if yes and found:
            delete(store, found)
        aside = sorted(store.path.glob("damaged-*"))
    total = f"{len(found.replies):,} replies and {len(found.waiting):,} waiting requests"
    say(f"{total} {'deleted' if yes else 'found'}")
    for (endpoint, name), count in sorted(found.parts.items()):
        say(f"  {count:,} of {name} at {endpoint}")
    if found.damaged:
        say(f"{found.damaged:,} damaged rows cannot be read: `judgekit cache verify --repair` deletes them")
    if aside:
        say(f"damaged files that were moved away may hold more, delete them yourself: {', '.join(map(str, aside))}")
    if found and not yes:
        say("Nothing was deleted: add --yes to delete it")


Experiment = Annotated[Path, typer.Argument(help="The experiment file (TOML).")]


def _limited(experiment: Path, limit: int | None) -> Config:
    from judgekit.experiment.file import load

    config = load(experiment)
    return config if limit is None else config.updated(data={"limit": limit})


@batch.command("export")
def batch_export(
    experiment: Experiment,
    out: Annotated[Path, typer.Option("--out", "-o", help="First batch file to write, .jsonl.")] = Path("batch.jsonl"),
    limit: Limit = None,
    cache: Cache = None,
) -> None:
    """Write what the store lacks for an experiment as OpenAI batch files; nothing is sent."""
    from judgekit.experiment.run import export_requests

    found = export_requests(_limited(experiment, limit), out, cache)
    say(f"{found.requests:,} requests written, {found.cached:,} are in the store", *(f"  {f}" for f in found.files))
    if found.again:
        say(f"{found.again:,} of them were exported before and have no reply yet: do not send both files")
    if found.at_least and found.requests:
        say("Replies may lead to further requests: import them, then export again.")


@batch.command("submit")
def batch_submit(
    experiment: Experiment,
    limit: Limit = None,
    cache: Cache = None,
) -> None:
    """Submit what the store lacks for an experiment as batches, to endpoints with OpenAI's batch service.

    This costs money. What was submitted before and not fetched yet is not submitted again, but a run in the meantime
    asks for it, too.
    """
    from judgekit.experiment.run import submit_requests

    found = submit_requests(_limited(experiment, limit), cache)
    say(
        f"{found.requests:,} requests submitted in {len(found.files):,} batches, {found.cached:,} are in the store,"
        f" {found.under_way:,} were submitted before"
    )
    if found.at_least and found.requests:
        say("Replies may lead to further requests: fetch them, then submit again.")


@batch.command("status")
def batch_status(experiment: Experiment, cache: Cache = None) -> None:
    """Say how far the batches are that were submitted and not fetched yet."""
    from judgekit.experiment.run import submitted

    found = submitted(experiment, cache)
    say(*map(_progress, found) if found else ["nothing is submitted that was not fetched"])


@batch.command("fetch")
def batch_fetch(experiment: Experiment, cache: Cache = None) -> None:
    """Import the replies of all batches that have ended. Fetch again for the others."""
    from judgekit.experiment.run import submitted

    missing = 0
    for one in submitted(experiment, cache, take=True):
        say(_progress(one))
        for found in one.imports:
            missing += _imported(found)
        missing += len(one.problems)
    if missing:
        raise typer.Exit(1)


def _progress(one: Fetched) -> str:
    whom = f"{one.submission.batch or one.submission.file} ({one.submission.model} at {one.endpoint.name})"
    if one.status is None:
        return f"{whom}: the service does not know it; `judgekit batch submit` submits it again"
    counts = f"{one.done:,} of {len(one.submission.keys):,} done, {one.failed:,} failed"
    return "\n  ".join([f"{whom}: {one.status}, {counts}", *one.problems])


def _imported(found: BatchImport) -> int:
    """Say what was imported; return how many requests have no reply."""
    say(f"  {found.imported:,} replies imported, {found.there:,} were there already")
    for line, key, reason in found.failed:
        say(f"  line {line}: no reply to {key[:12]}: {reason}")
    for line, key in found.unknown:
        say(f"  line {line}: {key[:12]} was not exported from this store")
    if found.cut is not None:
        say(f"  line {found.cut}: cut off; the lines before it are imported. Get the file again for the rest")
    return len(found.failed) + len(found.unknown) + (found.cut is not None)


@batch.command("import")
def batch_import(
    file: Annotated[list[Path], typer.Argument(help="Result files of the batch service.")], cache: Cache = None
) -> None:
    """Take result files back into the store, in whatever order their lines are."""
    from judgekit.client.batch import import_batch

    failed = 0
    with _store(cache, readonly=False) as store:
        for path in file:
            found = import_batch(store, path)
            say(f"{path}:")
            failed += _imported(found)
    if failed:
        raise typer.Exit(1)
