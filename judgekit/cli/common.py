"""What all commands share: options, what a dry run and a machine are shown, errors as sentences."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
import typer.core

from judgekit.errors import UsageError, not_among
from judgekit.spec import parse, split_form, split_named

if TYPE_CHECKING:
    from rich.console import Console

    from judgekit.analysis.verdict import Verdict
    from judgekit.client.budget import Budget, Price, Prices, Usage
    from judgekit.client.waves import Plan
    from judgekit.data.manifest import Source
    from judgekit.wire.types import Endpoint

__all__ = [
    "Api",
    "ApiKeyEnv",
    "AsJson",
    "BaseUrl",
    "Cache",
    "CacheMode",
    "Commands",
    "Concurrency",
    "DocsFile",
    "DryRun",
    "FormatIn",
    "Limit",
    "MaxCost",
    "MaxRequests",
    "MaxTokens",
    "Mode",
    "Model",
    "PriceOption",
    "Prompts",
    "QueriesFile",
    "Quiet",
    "Runs",
    "Settings",
    "Transport",
    "Wait",
    "advice",
    "console",
    "emit",
    "endpoints",
    "group",
    "in_forms",
    "inputs_of",
    "leave",
    "made_from",
    "named",
    "planned",
    "show_plan",
    "spending",
    "store_path",
    "usage_of",
    "verdicts_of",
]

QueriesFile = Annotated[
    Path, typer.Option("--queries", metavar="[FORM:]FILE", help="Queries: query_id, text, answers; docs/formats.md.")
]
DocsFile = Annotated[
    list[Path],
    typer.Option("--docs", metavar="[FORM:]FILE", help="Documents: doc_id, text, title; repeat for several."),
]
FormatIn = Annotated[
    list[str] | None,
    typer.Option(
        "--format-in",
        metavar="[ROLE=]FORM",
        help="Form of an input where its content does not tell, e.g. 'queries=jsonl(id=qid,text=question)'; a role is"
        " queries, docs, qrels, run, or the name of one; repeat.",
    ),
]
Runs = Annotated[list[str], typer.Option("--run", metavar="[NAME=]FILE", help="TREC run; repeat for several.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use only the first N queries.")]
Cache = Annotated[
    Path | None,
    typer.Option("--cache", envvar="JUDGEKIT_CACHE", help="Folder of the reply store (default: your cache folder)."),
]
Mode = Literal["on", "off", "read-only", "refresh"]
CacheMode = Annotated[Mode, typer.Option(help="Reply cache: on, off, read-only or refresh (ask everything again).")]
Prompts = Annotated[
    Path | None,
    typer.Option("--prompts", metavar="FOLDER", help="Your own prompts, found before ours by short names."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not draw progress.")]
BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="OpenAI-compatible server, e.g. http://localhost:8000/v1; repeat for several servers of the same model; or"
        " mock:, which is not an LLM.",
    ),
]
Model = Annotated[str | None, typer.Option(help="Id of the model to ask.")]
Transport = Annotated[Literal["http", "openai"], typer.Option(help="Client to send with: our own, or openai's.")]
Api = Annotated[
    Literal["chat", "completions", "responses"],
    typer.Option(help="API of the server; completions is for base models without a chat template."),
]
ApiKeyEnv = Annotated[
    str | None, typer.Option(metavar="VAR", help="Name of the environment variable that holds the key.")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Number of requests in flight at most.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Further setting of the endpoint, as in an experiment file, e.g. timeout_s=300, params.temperature=0.7 or"
        " tokens_per_minute=90000; repeat.",
    ),
]
PriceOption = Annotated[
    str | None,
    typer.Option("--price", metavar="PROMPT,COMPLETION", help="Money per million tokens, e.g. 0.15,0.60."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count what would be sent, and its price; ask no model.")]
MaxRequests = Annotated[int | None, typer.Option(min=0, help="Stop before sending more requests.")]
MaxTokens = Annotated[int | None, typer.Option(min=0, help="Stop before using more tokens.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Stop before spending more (needs prices).")]
Wait = Annotated[
    float, typer.Option(min=0, metavar="SECONDS", help="Wait that long for a server that is not ready yet.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines; see docs/terminal.md.")]


class Commands(typer.core.TyperGroup):
    """Commands, each with its whole first paragraph, which typer cuts off where rich does not draw it."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands (typer's types are those of click, or its own copy of it)."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        texts = [(name, " ".join((one.help or "").split("\n\n")[0].split())) for name, one in commands if one]
        with formatter.section("Commands"):
            formatter.write_dl(texts)


def group(about: str, **settings: Any) -> typer.Typer:
    """Return an app of commands whose help is plain text: importing what draws it richly takes longer than the rest."""
    return typer.Typer(
        help=about,
        cls=Commands,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that neither truncates nor colours what is not shown on a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    # A pipe has no width: 80 columns would cut tables, so lines are as long as they need to be.
    return Console(stderr=stderr, width=None if stream.isatty() else 200, soft_wrap=not stream.isatty())


def named(items: list[str], what: str) -> dict[str, Path]:
    """Read ``[NAME=]FILE`` arguments; the file's stem is the default name.

    Raises:
        UsageError: two files have the same name.
    """
    out: dict[str, Path] = {}
    for item in items:
        name, file = split_named(item)
        if not file:
            raise UsageError(f"{what} {item}: the name of the file is missing behind '='")
        path = Path(file)
        name = name or Path(split_form(path)[1]).name.removesuffix(".gz").rsplit(".", 1)[0]
        if name in out:
            raise UsageError(f"two {what}s are named {name!r} ({out[name]} and {path}): name them, {what}=NAME=FILE")
        out[name] = path
    return out


def in_forms(forms: list[str] | None, files: Mapping[str, Path]) -> dict[str, Path]:
    """Return inputs by role (``queries``, ``docs``, ``run NAME``, …), each with the form that ``--format-in`` names.

    Raises:
        UsageError: a form is for no input.
    """
    from judgekit.data.forms import told

    out = dict(files)
    for item in forms or ():
        role, form = split_named(item)
        parse(form)
        names = [name for name in files if role in (None, name, *name.split(" ", 1))]
        if not names:
            raise UsageError(f"--format-in {item}: {not_among('input', role or '', files)}")
        out |= {name: told(files[name], form) for name in names}
    return out


def inputs_of(
    forms: list[str] | None, queries: Path, docs: list[Path], runs: Mapping[str, Path]
) -> tuple[Path, list[Path], dict[str, Path], dict[str, Path]]:
    """Return queries, docs, runs by name, and all of them by role, in the forms that the user names."""
    files = {"queries": queries} | {f"docs {i}" if i > 1 else "docs": path for i, path in enumerate(docs, 1)}
    files = in_forms(forms, files | {f"run {name}": path for name, path in runs.items()})
    found = [path for role, path in files.items() if role.split()[0] == "docs"]
    return files["queries"], found, {name: files[f"run {name}"] for name in runs}, files


def endpoints(
    base_urls: list[str] | None,
    model: str | None,
    api_key_env: str | None = None,
    concurrency: int = 16,
    transport: Literal["http", "openai"] = "http",
    api: Literal["chat", "completions", "responses"] = "chat",
    settings: list[str] | None = None,
) -> dict[str, Endpoint]:
    """Return the one endpoint that the options describe, or none.

    Raises:
        ConfigError, UsageError: the endpoint is half described, or a setting is not one.
    """
    from judgekit.wire.types import Endpoint

    further = _table(settings or ())
    if not base_urls and model is None and not further:
        return {}
    if not base_urls or model is None:
        raise UsageError("--base-url and --model belong together: an endpoint needs both")
    own: dict[str, Any] = {"base_url": base_urls[0], "model": model, "api_key_env": api_key_env}
    own |= {"concurrency": concurrency, "transport": transport, "api": api}
    if twice := next((key for key in (*own, "base_urls") if key in further), None):
        raise UsageError(f"--set {twice}: it has an option of its own, --{twice.rstrip('s').replace('_', '-')}")
    if further:
        from judgekit.experiment.file import endpoint_of

        one = endpoint_of("default", own | further)
    else:
        one = Endpoint("default", **own)
    return {one.name: replace(one, base_urls=tuple(base_urls))}


def _table(settings: Iterable[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` as lines of TOML; a value that is not TOML is a text."""
    if not settings:
        return {}
    import tomllib

    lines = []
    for item in settings:
        key, equals, value = item.partition("=")
        if not (equals and key.strip()):
            raise UsageError(f"--set {item}: expected KEY=VALUE, e.g. timeout_s=300")
        try:
            tomllib.loads(item)
            lines.append(item)
        except tomllib.TOMLDecodeError:
            lines.append(f"{key}={json.dumps(value)}")
    try:
        return tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"--set: {problem}") from None


def spending(
    max_requests: int | None, max_tokens: int | None, max_cost: float | None, price: str | None = None
) -> tuple[Budget, dict[str, Price]]:
    """Return the budget, and the price of the one endpoint, that options describe.

    Raises:
        UsageError: a price is not two numbers.
    """
    from judgekit.client.budget import Budget, Price

    budget = Budget(max_requests, max_tokens, max_cost)
    if price is None:
        if max_cost is not None:
            raise UsageError("--max-cost needs the price of a token: add --price PROMPT,COMPLETION")
        return budget, {}
    try:
        prompt, completion = (float(part) for part in price.split(","))
        if not (0 <= prompt < float("inf") and 0 <= completion < float("inf")):
            raise ValueError
    except ValueError:
        raise UsageError(f"--price {price}: expected two numbers, of prompt and completion, e.g. 0.15,0.60") from None
    return budget, {"default": Price(prompt, completion)}


def planned(
    asked: Mapping[str, Callable[[], Iterator[Any]]],
    answering: Mapping[str, Any],
    endpoints: Iterable[Endpoint],
    cache: Path | None,
) -> dict[str, Plan]:
    """Count what stages would send, as the dry run of an experiment does; see `judgekit.experiment.run.count`.

    Raises:
        ConfigError: the variable with a key is not set.
    """
    from judgekit.experiment.run import count
    from judgekit.wire.access import Secret

    for endpoint in endpoints:
        Secret.of(endpoint)
    return count(asked, answering, cache)


def show_plan(plans: Mapping[str, Plan], prices: Prices, command: str = "", *, as_json: bool = False) -> None:
    """Print what a dry run counted, by stage; tokens as servers count them, where they do."""
    from judgekit.client.budget import Budget, Spending
    from judgekit.client.routes import bytes_per_token
    from judgekit.client.session import run_sync
    from judgekit.reading.asking import GROWTH

    price = Spending(Budget(), prices).price
    counted = run_sync(bytes_per_token(plans["all"].lacking))
    rows: dict[str, dict[str, Any]] = {}
    for name, plan in plans.items():
        plan.measure(counted)
        money = plan.money(price, counted, GROWTH)
        limit = None if plan.up_to is None else plan.up_to - plan.cached
        rows[name] = {
            "units": plan.units,
            "requests": plan.requests,
            "cached": plan.cached,
            "to_send": plan.requests - plan.cached,
            "to_send_at_most": limit,
            "prompt_tokens": plan.prompt_tokens,
            "money": None if money is None else money[0],
            "money_at_most": None if money is None else money[1],
        }
    if as_json:
        emit(command, dry_run=True, stages=rows, tokens_counted_by=sorted(one.name for one in counted))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("stage")
    priced = any(row["money"] is not None and plans[name].lacking for name, row in rows.items())
    tokens = f"prompt tokens ({'counted' if counted else 'est.'})"
    for title in ("units", "requests", "in the store", "to send", tokens, *(["money"] if priced else ())):
        table.add_column(title, justify="right")
    for name, row in rows.items():
        further = plans[name].at_least
        least = "at least " if further else ""
        most = f"; up to {row['to_send_at_most']:,}" if further and row["to_send_at_most"] is not None else ""
        cells = [f"{least}{row['to_send']:,}{most}", f"{least}{row['prompt_tokens']:,}"]
        if priced:
            cells.append(_span(row["money"], row["money_at_most"]))
        table.add_row(name, f"{row['units']:,}", f"{row['requests']:,}", f"{row['cached']:,}", *cells)
    out = console()
    out.print(table)
    out.print("Nothing was sent. Requests that stages share are counted in each, and once in all.")
    if any(plan.at_least for plan in plans.values()):
        out.print("More is sent where a reply is cut off or not in the form that was asked for, or leads to others.")
    if priced:
        out.print("Money: at least that of the prompts; at most as if every reply filled its room.")
    for endpoint in counted:
        out.print(f"{endpoint.name} counted the tokens of some prompts (/tokenize); no model was asked.", markup=False)


def _span(least: float | None, most: float | None) -> str:
    if least is None:
        return "–"
    if most is None:
        return f"at least {least:,.2f}"
    return f"{least:,.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"at least {least:,.2f}; up to {most:,.2f}"


def emit(command: str, **fields: Any) -> None:
    """Print the one JSON object of a command; its shape is told in docs/terminal.md."""
    typer.echo(json.dumps({"command": command, **fields}, ensure_ascii=False, indent=1, default=str))


def usage_of(totals: Mapping[str, Usage]) -> dict[str, dict[str, Any]]:
    """Return by endpoint what was taken now, for `emit`."""
    return {
        name: {
            "sent": usage.sent,
            "cached": usage.cached,
            "failed": usage.failed,
            "prompt_tokens": usage.incurred.prompt_tokens,
            "completion_tokens": usage.incurred.completion_tokens,
            "money": usage.incurred.money,
        }
        for name, usage in totals.items()
    }


def verdicts_of(verdicts: Mapping[str, Verdict]) -> dict[str, dict[str, Any]]:
    """Return verdicts by use, for `emit`."""
    return {
        use: {
            "headline": one.headline,
            "details": list(one.details),
            "measure": one.primary.measure,
            "metric": one.primary.metric,
            "winner": one.winner,
            "leaders": list(one.leaders),
            "ranking": list(one.ranking),
            "cheapest": one.cheapest,
            "excluded": dict(one.excluded),
        }
        for use, one in verdicts.items()
    }


def store_path(cache: Path | None) -> Path:
    """Return the folder of the reply store: the option or variable, else the user's cache folder."""
    from judgekit.store.replies import default_store_path

    return default_store_path() if cache is None else cache


def leave(counts: Mapping[str, int], what: str, where: Path, *, asked: bool = True) -> None:
    """Leave with exit code 1 if something is missing, saying how much, where it is listed and what to do.

    Args:
        counts: by status, how many; those that are excused are not counted.
        what: the plural of what is missing.
        where: the file that lists the reasons.
        asked: whether an LLM was asked.
    """
    from judgekit.data.tables import NO_FAILURE

    missing = sum(n for status, n in counts.items() if status not in NO_FAILURE)
    if missing:
        verb = "is" if missing == 1 else "are"
        noun = what.removesuffix("s") if missing == 1 else what
        told = advice(counts if asked else {}, {} if asked else counts)
        sys.stderr.write(f"judgekit: {missing:,} {noun} {verb} missing; the reasons are in {where}. {told}\n")
        raise typer.Exit(1)


def advice(asked: Mapping[str, int], read: Mapping[str, int]) -> str:
    """Return what to do about missing labels or answers, counted by status.

    Args:
        asked: those that an LLM was asked for.
        read: the others.
    """
    from judgekit.data.tables import NO_FAILURE, Status

    given, others = ({status for status, n in counts.items() if n} - set(NO_FAILURE) for counts in (asked, read))
    out = ["What failed is asked for again by the same command."] if Status.FAILED in given else []
    if others:
        out.append(
            "Where no LLM is asked, running this again changes nothing: what a file lacks has to be added to it."
        )
    if given - {Status.FAILED}:
        out.append(
            "Where the model replied (unparsed, truncated, refused) its reply is kept, and the same command finds it"
            " again: try another prompt or model, or --cache-mode refresh, which asks for everything anew."
        )
    return " ".join(out)


def made_from(named: Mapping[str, Path], read: Iterable[Path]) -> dict[str, Source]:
    """Hash what a command reads, for the manifest of what it writes; say where its inputs do not belong together.

    Args:
        named: inputs by role, as in `judgekit.data.manifest.sources`.
        read: all files that were read.
    """
    from judgekit.data.manifest import mismatches, sources

    inputs = sources(named, read)
    for line in mismatches(inputs):
        console(stderr=True).print(f"note: {line}", markup=False, highlight=False)
    return inputs
