"""Tools: ``list``, ``check-endpoint``, ``trust``, ``convert`` to TREC files, and ``cache`` for the reply store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgekit.console.help import group
from judgekit.console.options import AsJson, EndpointOptions, Wait
from judgekit.console.printing import grid, note, opened_store, say
from judgekit.console.results import CommandResult
from judgekit.data.streams import check_outputs, note_read
from judgekit.errors import UsageError, not_among
from judgekit.spec import split_file, split_form

if TYPE_CHECKING:
    from judgekit.catalog import Catalog
    from judgekit.store.maintenance import Found

Kind = Literal["measures", "labelers", "metrics", "prompts"]


def list_(
    what: Annotated[Kind, typer.Argument(help="What to list; metrics are answer metrics.")],
    name: Annotated[
        str | None, typer.Argument(help="Show only this entry, in full; a prompt may be your own file.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List measures, labelers, answer metrics or prompts, with those of installed plug-ins; or show one by name.

    Examples:
        judgekit list measures
        judgekit list measures nDCG
        judgekit list prompts binary
        judgekit list labelers mine.py:Longest
    """
    match what:
        case "measures":
            result = _listed(_measures(name))
        case "labelers":
            from judgekit.labelers.base import LABELERS

            result = _listed(_plugins("labeler", LABELERS, name))
        case "metrics":
            from judgekit.answers.quality import METRICS

            result = _listed(_plugins("answer metric", METRICS, name))
        case "prompts":
            result = _prompts() if name is None else _prompt(name)
    result.end("list", as_json=as_json)


@dataclass(frozen=True)
class _Entry:
    """An entry of a list: its name, what it does, facts by title, and options."""

    name: str
    does: str
    facts: Mapping[str, str]
    options: Mapping[str, str]

    def lines(self) -> Iterator[str]:
        """Yield the lines for people."""
        yield f"{self.name}: {self.does}"
        for key, text in self.facts.items():
            if text:
                yield f"  {key:<9} {text}"
        for key, text in self.options.items():
            yield f"  {key + '=':<9} {text}"
        yield ""


def _listed(found: Iterable[_Entry]) -> CommandResult:
    """Return the result of a list of entries."""
    entries = [*found]
    record = [{"name": entry.name, "does": entry.does, **entry.facts, "options": entry.options} for entry in entries]

    def shown() -> None:
        for entry in entries:
            say(*entry.lines())

    return CommandResult(shown, {"entries": record})


def _measures(name: str | None) -> Iterator[_Entry]:
    from judgekit.metrics import catalog, parse_measures

    chosen = None if name is None else {measure.name for measure in parse_measures([name])}
    for entry in catalog():
        if chosen is not None and entry.name not in chosen:
            continue
        low, high = ("no fixed end" if end is None else f"{end:g}" for end in (entry.low, entry.high))
        span = "not declared" if entry.low is None is entry.high else f"{low} to {high}"
        if entry.lower_is_better:
            span += ", lower is better"
        facts = {"formula": entry.formula, "rewards": entry.rewards, "range": span, "scales": entry.scales}
        facts |= {"source": entry.source, "aliases": ", ".join(entry.aliases)}
        yield _Entry(entry.name, entry.title, facts, {key: param.what for key, param in entry.params.items()})


def _plugins(what: str, known: Catalog[Any], chosen: str | None) -> Iterator[_Entry]:
    if chosen is not None and split_file(chosen)[0] is not None:
        entries = {chosen: known.in_file(chosen)}
    else:
        entries = known.catalog()
    if chosen is not None:
        if chosen not in entries:
            raise UsageError(not_among(what, chosen, entries))
        entries = {chosen: entries[chosen]}
    for name, about in entries.items():
        facts = {"scale": about.scale, "needs": about.needs, "costs": about.cost}
        yield _Entry(name, about.does, facts, about.options)


def _prompts() -> CommandResult:
    """List the prompts, one line each; naming a prompt shows it in full."""
    from judgekit.reading.prompts import list_prompts

    prompts = list_prompts()
    lines = [f"{prompt.name:<18} {prompt.kind:<11} {prompt.about}" for prompt in prompts]
    entries = [{"name": prompt.name, "kind": prompt.kind, "does": prompt.about} for prompt in prompts]
    return CommandResult(lambda: say(*lines), {"entries": entries})


def _prompt(name: str) -> CommandResult:
    """Show one prompt."""
    from judgekit.reading.prompts import load_prompt, prompt_folder

    prompt = load_prompt(name)  # checks the user's own file before it is shown
    shipped = prompt_folder() / f"{name}.toml"
    file = shipped if shipped.is_file() else Path(name)
    text = file.read_text(encoding="utf-8")
    entry = {"name": prompt.name, "kind": prompt.kind, "does": prompt.about, "text": text}
    # Print byte for byte, so that users can save the output and edit it into their own prompt.
    return CommandResult(lambda: typer.echo(text, nl=False), {"entries": [entry]})


def check_endpoint(server: EndpointOptions, wait: Wait = 0.0, *, as_json: AsJson = False) -> None:
    """Check what a server supports, with the requests that judges and answers send: a dozen at most.

    Prints what they may cost before it sends them, and at the end the lines of an experiment file that fit.

    Examples:
        judgekit check-endpoint --endpoint http://localhost:8000/v1 --model my-model
    """
    from judgekit.client.budget import Budget, Spending
    from judgekit.client.routes import wait_ready
    from judgekit.client.sync import run_sync
    from judgekit.context import Context
    from judgekit.reading.check import check_endpoint as check, lines_for, planned

    servers = server.servers()
    endpoint = Context(servers.endpoints).endpoint(None)
    if not endpoint.scores:
        endpoint = endpoint.llm
    requests, prompts, replies = planned(endpoint)
    price = Spending(Budget(), servers.prices).price(endpoint)
    cost = "" if price is None else f": at most {price.of(prompts, replies):,.4g} by the prices given"
    note(f"sends at most {requests} requests of {prompts:,} tokens in all, with {replies:,} of replies{cost}")
    # Wait before the checks: a server that is still loading would fail all of them.
    if wait:
        run_sync(wait_ready(endpoint, wait, note))
    found = run_sync(check(endpoint))
    # A check may fail if only some prompts need it, but not if every request does.
    usable = all(item.works != "no" or item.needed_for for item in found)
    lines = [*lines_for(endpoint, found)] if usable else []

    def shown() -> None:
        rows = ((item.name, item.works, item.detail, item.needed_for) for item in found)
        grid(("what", "works", "seen", "needed for"), rows)
        if lines:
            say("", "For an experiment file:", "", *lines)

    record = {"checks": [asdict(item) for item in found], "lines": lines}
    CommandResult(shown, record, exit_code=0 if usable else 3).end("check-endpoint", as_json=as_json)


def trust(
    experiment: Annotated[Path, typer.Argument(help="Experiment file, or a results folder that somebody gave you.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show what an experiment would import, read from the environment and contact, and confirm that for you.

    Needed once for each file of code, key and server, and again where one changes. See docs/trust.md.

    Examples:
        judgekit trust experiment.toml
    """
    from judgekit.experiment import trust as trusts
    from judgekit.experiment.file import entries_of

    entries = entries_of(experiment)
    lines = [f"{experiment} imports no code, reads no variable and contacts no other machine: nothing to confirm."]
    record: dict[str, Any] = {"entries": [str(entry) for entry in entries], "confirmed": None, "variable": None}
    if entries:
        confirmed, variable = trusts.confirm(entries), f"{trusts.VARIABLE}={trusts.hash_of(entries)}"
        lines = [f"{experiment} would", *(f"  {entry}" for entry in entries)]
        lines += [f"Confirmed in {confirmed}.", f"For CI: {variable}"]
        record |= {"confirmed": str(confirmed), "variable": variable}
    CommandResult(lambda: say(*lines), record).end("trust", as_json=as_json)


def convert(
    source: Annotated[str, typer.Argument(metavar="[FORM:]IN", help="File to read.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="TREC file to write.")],
    kind: Annotated[
        str | None,
        typer.Option(help="run or qrels (default: by the ending of OUT: .run, .trec or .qrels)."),
    ] = None,
    min_grade: Annotated[
        float | None, typer.Option(help="Write 1 for labels of at least this value and 0 for others.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of decimal labels, e.g. unit or means:5:2.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Convert a run or qrels of any supported form (docs/formats.md) to a TREC file.

    Examples:
        judgekit convert bm25.csv bm25.trec
        judgekit convert judge.qrels binary.qrels --scale unit --min-grade 0.5
    """
    from judgekit.data.checks import contradictions
    from judgekit.data.sources import stem
    from judgekit.data.trec import convert as convert_data, kind_of

    note_read(Path(split_form(source)[1]))
    _new_file(out)
    written = convert_data(source, out, kind, min_grade=min_grade, scale=scale)
    holds, warnings = kind_of(out, kind), list[str]()
    if holds == "run":
        warnings += contradictions({stem(split_form(source)[1]): source})
    record = {"kind": holds, "written": written}
    CommandResult(lambda: say(f"{written}: {out}"), record, [out], warnings).end("convert", as_json=as_json)


def _new_file(out: Path) -> None:
    """Refuse a file that exists."""
    check_outputs(out)
    if out.exists():
        raise UsageError(f"{out} already exists: choose another name, or delete it first")


cache = group(
    "Inspect and maintain the reply cache.\n\nThe cache holds your prompts with their passages. Only you can read it."
    " JUDGEKIT_CACHE names its folder; without it, it lies in your cache folder.",
    name="cache",
    invoke_without_command=True,
)


@cache.callback()
def cache_itself(
    context: typer.Context,
    check: Annotated[
        bool, typer.Option("--check", help="Check the identity, checksum and form of every reply.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Check, and delete damaged replies; the next run asks for them again."),
    ] = False,
    export_to: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Write all replies as JSON lines (.gz compresses them)."),
    ] = None,
    import_from: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Add replies that --export wrote; existing replies stay."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the store holds, or do what an option says."""
    if context.invoked_subcommand is not None:
        return
    # Each option is an action of its own: with two, the line would not show their order.
    ways = {"--repair" if repair else "--check": check or repair, "--export": export_to, "--import": import_from}
    given = [name for name, value in ways.items() if value]
    if len(given) > 1:
        raise UsageError(f"give {given[0]} or {given[1]}, not both")
    if export_to is not None:
        result = _exported(export_to)
    elif import_from is not None:
        result = _imported(import_from)
    elif check or repair:
        result = _checked(repair=repair)
    else:
        result = _contents()
    result.end("cache", as_json=as_json)


def _contents() -> CommandResult:
    """Return what the store holds: size, damage, and replies and tokens by endpoint and model."""
    from judgekit.store.maintenance import find

    with opened_store(readonly=True) as store:
        size = sum(path.stat().st_size for path in store.path.iterdir() if path.is_file())
        found = find(store)
    told = [f"store:   {store.path}", f"size:    {size / 1e6:,.1f} MB", f"replies: {len(found.replies):,}"]
    rows = []
    for (endpoint, model), part in sorted(found.parts.items()):
        told.append(f"  {part.replies:,} of {model or 'an application'} at {endpoint}: {part.tokens}")
        rows.append({"endpoint": endpoint, "model": model, "replies": part.replies, "waiting": part.waiting})
        # A server that answers under another name may have replaced the model behind an alias.
        if set(part.answered) - {model, ""}:
            named = [f"{name} ({n:,})" for name, n in sorted(part.answered.items()) if name]
            told.append(f"    the replies name their model: {', '.join(named)}")
    if found.times:
        first, last = (time.strftime("%Y-%m-%d %H:%M", time.localtime(end(found.times))) for end in (min, max))
        told.append(f"stored:  {first} to {last}")
    if found.waiting:
        told.append(f"waiting: {len(found.waiting):,} requests exported to batch files, without a reply yet")
    record = {
        "store": store.path,
        "bytes": size,
        "replies": len(found.replies),
        "waiting": len(found.waiting),
        "damaged": found.damaged,
        "parts": rows,
    }
    return CommandResult(lambda: say(*told, *_damage(found)), record)


def _damage(found: Found) -> Iterator[str]:
    """Yield sentences about unreadable rows of a store and folders moved aside."""
    if found.damaged:
        yield (
            f"damaged: {found.damaged:,} rows cannot be read; `judgekit cache --repair` deletes them, and the next run"
            " asks for them again"
        )
    for folder in found.aside:
        yield f"aside:   {folder} was moved away as damaged and may hold more; delete it yourself"


def _checked(*, repair: bool) -> CommandResult:
    """Check every reply."""
    from judgekit.store.maintenance import verify as verified

    with opened_store(readonly=not repair) as store:
        counted = store.counted
        found = verified(store, repair=repair)
    told = [f"checked {found.checked:,} replies; file structure: {found.structure}"]
    if not counted:
        told.append("lost replies cannot be noticed: no file beside the store says how many there were")
    told += [f"damaged: {key}: {problem}{' (deleted)' if repair else ''}" for key, problem in found.damaged]
    record = {"checked": found.checked, "structure": found.structure, "damaged": len(found.damaged)}
    # Unrepaired damage fails a script, so that nobody continues with half a store.
    return CommandResult(lambda: say(*told), record, exit_code=0 if found.ok or repair else 1)


def _exported(out: Path) -> CommandResult:
    """Write all replies as JSON lines."""
    from judgekit.store.maintenance import export_store

    _new_file(out)
    warnings = []
    with opened_store(readonly=True) as store:
        exported = export_store(store, out)
    if exported.damaged:
        warnings.append(f"{exported.damaged:,} damaged replies are left out; `judgekit cache --check` names them")
    shown = f"{exported.written:,} replies: {out}"
    return CommandResult(lambda: say(shown), {"exported": exported.written}, [out], warnings)


def _imported(file: Path) -> CommandResult:
    """Add replies from JSON lines."""
    from judgekit.store.maintenance import import_store

    with opened_store(readonly=False) as store:
        added, there = import_store(store, file)
    told = f"{added:,} replies added, {there:,} were there already"
    return CommandResult(lambda: say(told), {"added": added, "there": there})


def _is_now(old: str, new: str) -> None:
    """Name the new spelling of a command of 0.3."""
    note(f"`judgekit cache {old}` ends with 0.5: use `judgekit cache{new}`")


@cache.command("stats", hidden=True)
def stats() -> None:
    """Show what the store holds: the way of 0.3."""
    _is_now("stats", "")
    _contents().end("cache", as_json=False)


@cache.command("verify", hidden=True)
def verify(repair: Annotated[bool, typer.Option("--repair", help="Delete damaged replies.")] = False) -> None:
    """Check every reply: the way of 0.3."""
    if repair:
        _is_now("verify --repair", " --repair")
    else:
        _is_now("verify", " --check")
    _checked(repair=repair).end("cache", as_json=False)


@cache.command("export", hidden=True)
def export(out: Annotated[Path, typer.Argument(help="JSONL file to write (.gz compresses it).")]) -> None:
    """Write all replies as JSON lines: the way of 0.3."""
    _is_now("export FILE", " --export FILE")
    _exported(out).end("cache", as_json=False)


@cache.command("import", hidden=True)
def import_(file: Annotated[Path, typer.Argument(help="File that an export wrote.")]) -> None:
    """Add replies from JSON lines: the way of 0.3."""
    _is_now("import FILE", " --import FILE")
    _imported(file).end("cache", as_json=False)


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
    as_json: AsJson = False,
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

    # Without a condition, everything would be forgotten. To do that, users can delete the folder.
    if query is None and older_than is None and model is None:
        raise UsageError("name the replies to forget by --query, --older-than or --model")
    before = None if older_than is None else time.time() - 86_400 * older_than
    with opened_store(readonly=not yes) as store:
        found = find(store, query=query and neutral(query), before=before, model=model)
        if yes and found.parts:
            delete(store, found)
    total = f"{len(found.replies):,} replies and {len(found.waiting):,} waiting requests"
    told = [f"{total} {'deleted' if yes else 'found'}"]
    for (endpoint, name), part in sorted(found.parts.items()):
        told.append(f"  {part.replies + part.waiting:,} of {name} at {endpoint}")
    told += _damage(found)
    if found.parts and not yes:
        told.append("Nothing was deleted; add --yes to delete them")
    record = {"replies": len(found.replies), "waiting": len(found.waiting), "deleted": yes}
    CommandResult(lambda: say(*told), record).end("cache forget", as_json=as_json)
