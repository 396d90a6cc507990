"""``cache``: what is in the reply store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.options import Cache
from judgekit.console.printing import console, group, note, opened_store, say
from judgekit.errors import UsageError

cache = group(
    "Inspect and maintain the reply cache.\n\nThe cache holds your prompts with their passages. Only you can read it.",
    name="cache",
)


@cache.command("stats")
def stats(cache: Cache = None) -> None:
    """Show the contents of the store: size, damage, and replies and tokens by endpoint and model.

    Examples:
        judgekit cache stats
    """
    from judgekit.store.maintenance import find

    with opened_store(cache, readonly=True) as store:
        size = sum(path.stat().st_size for path in store.path.iterdir() if path.is_file())
        found = find(store)
    say(f"store:   {store.path}", f"size:    {size / 1e6:,.1f} MB", f"replies: {len(found.replies):,}")
    for (endpoint, model), part in sorted(found.parts.items()):
        tokens = f"{part.prompt_tokens:,} prompt and {part.completion_tokens:,} completion tokens"
        say(f"  {part.replies:,} of {model or 'an application'} at {endpoint}: {tokens}")
        named = ", ".join(f"{name} ({n:,})" for name, n in sorted(part.answered.items()) if name)
        if set(part.answered) - {model, ""}:
            say(f"    the replies name their model: {named}")
    if found.times:
        first, last = (time.strftime("%Y-%m-%d %H:%M", time.localtime(t)) for t in (min(found.times), max(found.times)))
        say(f"stored:  {first} to {last}")
    if found.waiting:
        say(f"waiting: {len(found.waiting):,} requests exported to batch files, without a reply yet")
    if found.damaged:
        say(
            f"damaged: {found.damaged:,} rows; `judgekit cache verify --repair` deletes them, and the next"
            " run asks for them again"
        )
    for folder in found.aside:
        say(f"aside:   {folder} (a damaged file that was moved away)")


@cache.command("verify")
def verify(
    cache: Cache = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Delete damaged replies; the next run asks for them again.")
    ] = False,
) -> None:
    """Check the identity, checksum and form of every reply.

    Examples:
        judgekit cache verify --repair
    """
    from judgekit.store.maintenance import verify as check

    with opened_store(cache, readonly=not repair) as store:
        found = check(store, repair=repair)
    say(f"checked {found.checked:,} replies; file structure: {found.structure}")
    for key, problem in found.damaged:
        say(f"damaged: {key}: {problem}{' (deleted)' if repair else ''}")
    if not found.ok and not repair:
        raise typer.Exit(1)


@cache.command("export")
def export(
    out: Annotated[Path, typer.Argument(help="JSONL file to write (.gz compresses it).")], cache: Cache = None
) -> None:
    """Write all replies as JSON lines.

    Examples:
        judgekit cache export replies.jsonl.gz
    """
    from judgekit.store.maintenance import export_store

    device = Path("/dev") in out.parents
    if out.is_file() and not device:
        raise UsageError(f"{out} already exists: choose another name, or delete it first")
    with opened_store(cache, readonly=True) as store:
        count = export_store(store, out)
        if lost := store.count() - count:
            note(f"{lost:,} damaged replies are left out; `judgekit cache verify` names them")
    console(stderr=device).print(f"{count:,} replies: {out}", markup=False, highlight=False)


@cache.command("import")
def import_(file: Annotated[Path, typer.Argument(help="File written by `cache export`.")], cache: Cache = None) -> None:
    """Add replies from JSON lines; existing replies stay.

    Examples:
        judgekit cache import replies.jsonl.gz
    """
    from judgekit.store.maintenance import import_store

    with opened_store(cache, readonly=False) as store:
        added, there = import_store(store, file)
    say(f"{added:,} replies added, {there:,} were there already")


@cache.command("forget")
def forget(
    query: Annotated[str | None, typer.Option(help="Replies about a question with this text.")] = None,
    older_than: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="Replies stored more than DAYS days ago.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Replies of this model, under its requested or its reported name.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete them; without this option they are only counted.")] = False,
    cache: Cache = None,
) -> None:
    """Delete replies and waiting requests that meet all conditions. A run that needs them pays for them again.

    A question is searched for in the texts of the prompts, so prompts that quote it are found too. Exported files and
    results stay as they are.

    Examples:
        judgekit cache forget --older-than 90
        judgekit cache forget --model my-model --yes
    """
    from judgekit.reading.prompts import neutral
    from judgekit.store.maintenance import find, forget as delete

    if query is None and older_than is None and model is None:
        raise UsageError("name the replies to forget by --query, --older-than or --model")
    before = None if older_than is None else time.time() - 86_400 * older_than
    with opened_store(cache, readonly=not yes) as store:
        found = find(store, query=query and neutral(query), before=before, model=model)
        if yes and found.parts:
            delete(store, found)
    total = f"{len(found.replies):,} replies and {len(found.waiting):,} waiting requests"
    say(f"{total} {'deleted' if yes else 'found'}")
    for (endpoint, name), part in sorted(found.parts.items()):
        say(f"  {part.replies + part.waiting:,} of {name} at {endpoint}")
    if found.damaged:
        say(f"{found.damaged:,} damaged rows cannot be read; `judgekit cache verify --repair` deletes them")
    for folder in found.aside:
        say(f"{folder} was moved away as damaged and may hold more; delete it yourself")
    if found.parts and not yes:
        say("Nothing was deleted; add --yes to delete them")
