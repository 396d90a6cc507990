"""What a dry run counted: requests, tokens and money by stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from judgekit.console.printing import emit, grid, note, say

if TYPE_CHECKING:
    from judgekit.client.budget import Prices
    from judgekit.client.estimates import Foreseen
    from judgekit.client.waves import Plan
    from judgekit.wire.types import Endpoint


def show_plan(plans: Mapping[str, Plan], prices: Prices, command: str = "", *, as_json: bool = False) -> None:
    """Print what a dry run counted, by stage; tokens as servers count them, where they do."""
    from judgekit.client.budget import Budget, Spending
    from judgekit.client.routes import context_lengths, observed_by
    from judgekit.client.sync import run_sync

    price = Spending(Budget(), prices).price
    counted = run_sync(observed_by(plans["all"].lacking))
    rows = {}
    for stage, plan in plans.items():
        plan.elsewhere = {**plan.elsewhere, **counted}
        rows[stage] = _row(plan, plan.money(price))
    lengths = run_sync(context_lengths(plans["all"].lacking))
    for stage, plan in plans.items():
        if stage != "all":
            _note_too_long(stage, plan, lengths)
    if as_json:
        emit(command, dry_run=True, stages=rows, tokens_counted_by=sorted(endpoint.name for endpoint in counted))
        return
    priced = any(row["money"] is not None and plans[stage].lacking for stage, row in rows.items())
    titles = ["stage", "units", "requests", "in the store", "to send", "tokens"]
    if priced:
        titles.append("money")
    grid(titles, (_cells(stage, plans[stage], row)[: len(titles)] for stage, row in rows.items()), left=1)
    say("Nothing was sent. A request that several stages share counts in each of them, and once in the total.")
    if any(plan.at_least for plan in plans.values()):
        say("More requests follow if a reply is cut off, has the wrong form or leads to others.")
    if any(row["tokens"] for row in rows.values()):
        basis = "the length and script of the prompts"
        if any(plan.is_reported for plan in plans.values()):
            basis = "what these endpoints reported of stored requests"
        say(f"Tokens{' and money' if priced else ''}: about, with replies, and the range; by {basis}.")
    for endpoint in counted:
        say(f"{endpoint.name} counted the tokens of some prompts (/tokenize); no model was asked.")


def _row(plan: Plan, money: Foreseen | None) -> dict[str, Any]:
    """Return what a stage takes, for machines; None is unknown."""
    tokens = plan.tokens
    row: dict[str, Any] = {
        "units": plan.units,
        "requests": plan.requests,
        "cached": plan.cached,
        "to_send": plan.requests - plan.cached,
        "to_send_at_most": None if plan.up_to is None else plan.up_to - plan.cached,
        "tokens": round(tokens.about),
        "tokens_low": round(tokens.low),
        "tokens_high": round(tokens.high),
        "money": None,
        "money_low": None,
        "money_high": None,
    }
    if money is not None:
        row |= {"money": money.about, "money_low": money.low, "money_high": money.high}
    return row


def _cells(stage: str, plan: Plan, row: Mapping[str, Any]) -> list[str]:
    """Return a row of the table that people read."""
    to_send = f"{row['to_send']:,}"
    if plan.at_least:
        to_send = f"at least {to_send}"
        if row["to_send_at_most"] is not None:
            to_send += f"; up to {row['to_send_at_most']:,}"
    counts = [f"{row[what]:,}" for what in ("units", "requests", "cached")]
    return [stage, *counts, to_send, _about(row, "tokens"), _about(row, "money")]


def _note_too_long(stage: str, plan: Plan, lengths: Mapping[Endpoint, int]) -> None:
    """Say which requests of a stage are longer than what a server's model takes."""
    cut = "set context_tokens under [answers.options]" if stage.startswith("answer") else "shorten passages"
    for endpoint, length in lengths.items():
        many, longest = plan.too_long(endpoint, length)
        if many:
            note(
                f"{stage}: about {many:,} requests will not fit: with room for their replies they need up to"
                f" {longest:,} tokens, and {endpoint.name} takes {length:,} (max_model_len). Start it with a larger"
                f" --max-model-len, or {cut}"
            )


def _about(row: Mapping[str, Any], what: str) -> str:
    """Return what a row foresees of tokens or money, with its range."""
    from judgekit.client.estimates import rounded

    numbers = [row[what], row[f"{what}_low"], row[f"{what}_high"]]
    if None in numbers:
        return "–"
    if not any(numbers):
        return "0"
    about, low, high = (rounded(number) for number in numbers)
    return f"about {about} ({low} to {high})"
