"""The counts of a dry run: requests, tokens and money by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from judgekit.console.printing import grid, note, say

if TYPE_CHECKING:
    from judgekit.client.budget import Prices
    from judgekit.client.estimates import Foreseen
    from judgekit.client.waves import Plan
    from judgekit.wire.types import Endpoint


def show_plan(plans: Mapping[str, Plan], prices: Prices) -> None:
    """Print the counts of a dry run, by stage."""
    from judgekit.client.budget import Budget, Spending
    from judgekit.client.routes import context_lengths
    from judgekit.client.sync import run_sync

    price = Spending(Budget(), prices).price
    money = {stage: plan.money(price) for stage, plan in plans.items()}
    # Ask the server, since a model can be started with any length.
    lengths = run_sync(context_lengths(plans["all"].lacking))
    for stage, plan in plans.items():
        if stage != "all":
            _note_too_long(stage, plan, lengths)
    titles = ["stage", "units", "requests", "in the store", "to send", "tokens"]
    if any(money[stage] is not None and plan.lacking for stage, plan in plans.items()):
        titles.append("money")
    cells = []
    for stage, plan in plans.items():
        numbers = [f"{number:,}" for number in (plan.units, plan.requests, plan.cached)]
        row = [stage, *numbers, _to_send(plan), _about(plan.tokens), _about(money[stage])]
        cells.append(row[: len(titles)])
    grid(titles, cells, left=1)
    say("Nothing was sent. A request that several stages share counts in each of them, and once in the total.")
    # Left out for labelers that ask exactly once.
    if plans["all"].at_least:
        say("More requests follow if a reply is cut off, has the wrong form or leads to others.")
    if plans["all"].tokens.high:
        basis = "the length and script of the prompts"
        if plans["all"].is_reported:
            basis = "what these endpoints reported of stored requests"
        say(f"{' and '.join(titles[5:]).capitalize()}: about, with replies, and the range; by {basis}.")


def counted(plans: Mapping[str, Plan], prices: Prices) -> list[dict[str, Any]]:
    """Return the counts of a dry run for JSON: a row for each stage and one for all."""
    from judgekit.client.budget import Budget, Spending

    price = Spending(Budget(), prices).price
    rows = []
    for stage, plan in plans.items():
        money = plan.money(price)
        rows.append(
            {
                "stage": stage,
                "units": plan.units,
                "requests": plan.requests,
                "cached": plan.cached,
                "to_send": plan.requests - plan.cached,
                "up_to": None if plan.up_to is None else plan.up_to - plan.cached,
                "tokens": asdict(plan.tokens),
                "money": None if money is None else asdict(money),
            }
        )
    return rows


def _to_send(plan: Plan) -> str:
    """Return the number of requests that the store lacks, and the largest possible number."""
    text = f"{plan.requests - plan.cached:,}"
    if plan.at_least:
        text = f"at least {text}"
        if plan.up_to is not None:
            text += f"; up to {plan.up_to - plan.cached:,}"
    return text


def _note_too_long(stage: str, plan: Plan, lengths: Mapping[Endpoint, int]) -> None:
    """Report a stage's requests that are too long for a server's model."""
    cut = "set context_tokens under [answers]" if stage.startswith("answer") else "shorten passages"
    # Some servers silently cut prompts that are too long, so this is the last chance to notice.
    for endpoint, length in lengths.items():
        many, longest = plan.too_long(endpoint, length)
        if many:
            note(
                f"{stage}: about {many:,} requests will not fit: with room for their replies they need up to"
                f" {longest:,} tokens, and {endpoint.name} takes {length:,} (max_model_len). Start it with a larger"
                f" --max-model-len, or {cut}"
            )


def _about(foreseen: Foreseen | None) -> str:
    """Return an estimate with its range."""
    from judgekit.client.estimates import rounded

    if foreseen is None:
        return "–"
    if not foreseen.high:
        return "0"
    about, low, high = map(rounded, (foreseen.about, foreseen.low, foreseen.high))
    return f"about {about} ({low} to {high})"
