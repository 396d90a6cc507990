"""How all commands speak: lines and notes, tables, one JSON object for machines, what a dry run counted."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
import typer.core

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from judgekit.analysis.verdict import Verdict
    from judgekit.client.budget import Prices, Usage
    from judgekit.client.waves import Plan
    from judgekit.data.manifest import Source

__all__ = [
    "Commands",
    "advice",
    "console",
    "emit",
    "grid",
    "group",
    "leave",
    "made_from",
    "note",
    "records",
    "save_table",
    "say",
    "show",
    "show_plan",
    "store_path",
    "usage_of",
    "verdicts_of",
]


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


def show_plan(plans: Mapping[str, Plan], prices: Prices, command: str = "", *, as_json: bool = False) -> None:
    """Print what a dry run counted, by stage; tokens as servers count them, where they do."""
    from judgekit.client.budget import Budget, Spending
    from judgekit.client.routes import bytes_per_token
    from judgekit.client.session import run_sync
    from judgekit.reading.asker import GROWTH

    price = Spending(Budget(), prices).price
    counted = run_sync(bytes_per_token(plans["all"].lacking))
    rows: dict[str, dict[str, Any]] = {}
    for name, plan in plans.items():
        plan.bytes_per_token = counted
        money = plan.money(price, GROWTH)
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
    priced = any(row["money"] is not None and plans[name].lacking for name, row in rows.items())
    tokens = f"prompt tokens ({'counted' if counted else 'est.'})"
    lines = []
    for name, row in rows.items():
        further = plans[name].at_least
        least = "at least " if further else ""
        most = f"; up to {row['to_send_at_most']:,}" if further and row["to_send_at_most"] is not None else ""
        counts = [f"{row[what]:,}" for what in ("units", "requests", "cached")]
        counts += [f"{least}{row['to_send']:,}{most}", f"{least}{row['prompt_tokens']:,}"]
        lines.append([name, *counts, *([_span(row["money"], row["money_at_most"])] if priced else [])])
    titles = ("stage", "units", "requests", "in the store", "to send", tokens, *(["money"] if priced else ()))
    grid(titles, lines, left=1)
    say("Nothing was sent. Requests that stages share are counted in each, and once in all.")
    if any(plan.at_least for plan in plans.values()):
        say("More is sent where a reply is cut off or not in the form that was asked for, or leads to others.")
    if priced:
        say("Money: at least that of the prompts; at most as if every reply filled its room.")
    for endpoint in counted:
        say(f"{endpoint.name} counted the tokens of some prompts (/tokenize); no model was asked.")


def _span(least: float | None, most: float | None) -> str:
    if least is None:
        return "–"
    if most is None:
        return f"at least {least:,.2f}"
    return f"{least:,.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"at least {least:,.2f}; up to {most:,.2f}"


def grid(titles: Iterable[str], rows: Iterable[Iterable[str]], *, left: int | None = None, **style: Any) -> None:
    """Print a table of texts as they are; columns behind the first ``left`` are aligned to the right."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, **style)
    for number, title in enumerate(titles):
        table.add_column(title, justify="left" if left is None or number < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console().print(table)


def say(*lines: str) -> None:
    """Print lines as they are."""
    console().print("\n".join(lines), markup=False, highlight=False)


def note(*lines: str) -> None:
    """Print notes on standard error: what a reader of the output has to know."""
    for line in lines:
        console(stderr=True).print(f"note: {line}", markup=False, highlight=False)


def show(table: pd.DataFrame, format: Literal["table", "csv", "json"]) -> None:
    """Print a table: aligned, as CSV, or as JSON records; floats with all their digits but in the aligned form."""
    if format == "csv":
        typer.echo(table.to_csv(index=False), nl=False)
    elif format == "json":
        typer.echo(_json(table, indent=1))
    else:
        typer.echo(table.to_string(index=False, float_format=lambda x: f"{x:.4f}", na_rep="-"))


def _json(table: pd.DataFrame, indent: int | None = None) -> str:
    return table.to_json(orient="records", double_precision=15, force_ascii=False, indent=indent)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, for `emit`; what is missing is None."""
    rows: list[dict[str, Any]] = json.loads(_json(table))
    return rows


def save_table(table: pd.DataFrame, out: Path, inputs: Mapping[str, Source]) -> None:
    """Write a table and, beside it, what it was made from."""
    from judgekit.data.files import write_table
    from judgekit.data.manifest import manifest_path, write_manifest

    write_table(table, out)
    write_manifest(manifest_path(out), inputs, [out])


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
    note(*mismatches(inputs))
    return inputs
