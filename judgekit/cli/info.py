"""``list`` and ``check-endpoint``: what there is, and whether a server will do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgekit.console.options import BASE_URL, MODEL, Api, ApiKeyEnv, Transport, Wait
from judgekit.console.printing import grid, note, say
from judgekit.errors import UsageError, not_among

if TYPE_CHECKING:
    from judgekit.kinds import About

__all__ = ["check_endpoint", "list_"]

Kind = Literal["measures", "labelers", "metrics", "prompts"]


def list_(
    what: Annotated[Kind, typer.Argument(help="What to list; metrics are answer metrics.")],
    name: Annotated[
        str | None, typer.Argument(help="Show only this entry, in full; a prompt may be your own file.")
    ] = None,
) -> None:
    """List measures, labelers, answer metrics or prompts, with those of installed plug-ins; or show one by name.

    Examples:
        judgekit list measures
        judgekit list measures nDCG
        judgekit list prompts binary
    """
    {"measures": _measures, "labelers": _labelers, "metrics": _metrics, "prompts": _prompts}[what](name)


def _measures(name: str | None) -> None:
    from judgekit.metrics import catalog, parse_measures

    chosen = () if name is None else {measure.name for measure in parse_measures([name])}
    for entry in catalog():
        if chosen and entry.name not in chosen:
            continue
        low, high = ("no fixed end" if end is None else f"{end:g}" for end in (entry.low, entry.high))
        span = "not declared" if entry.low is None is entry.high else f"{low} to {high}"
        better = ", lower is better" if entry.lower_is_better else ""
        lines = [
            f"{entry.name}: {entry.title}",
            f"  formula   {entry.formula}",
            f"  rewards   {entry.rewards}",
            f"  range     {span}{better}",
            f"  scales    {entry.scales}",
            f"  source    {entry.source}",
        ]
        if entry.aliases:
            lines.append(f"  aliases   {', '.join(entry.aliases)}")
        lines += [f"  {key + '=':<9} {param.what}" for key, param in entry.params.items()]
        say(*lines, "")


def _labelers(name: str | None) -> None:
    from judgekit.labelers.base import catalog

    _plugins("labeler", catalog(), name)


def _metrics(name: str | None) -> None:
    from judgekit.answers.quality import catalog

    _plugins("answer metric", catalog(), name)


def _plugins(what: str, entries: dict[str, About], chosen: str | None) -> None:
    if chosen is not None and chosen not in entries:
        raise UsageError(not_among(what, chosen, entries))
    for name in entries if chosen is None else (chosen,):
        about = entries[name]
        lines = [f"{name}: {about.does}"]
        lines += [f"  {key:<9} {text}" for key, text in (("scale", about.scale), ("needs", about.needs)) if text]
        lines += [f"  {'costs':<9} {about.cost}"] if about.cost else []
        lines += [f"  {key + '=':<9} {text}" for key, text in about.options.items()]
        say(*lines, "")


def _prompts(name: str | None) -> None:
    from judgekit.reading.prompts import list_prompts, load_prompt, prompt_folder

    if name is None:
        say(*(f"{prompt.name:<18} {prompt.kind:<11} {prompt.about}" for prompt in list_prompts()))
        return
    load_prompt(name)  # checks a file of the user's own before it is shown
    shipped = prompt_folder() / f"{name}.toml"
    typer.echo((shipped if shipped.is_file() else Path(name)).read_text(encoding="utf-8"), nl=False)


def check_endpoint(
    base_url: Annotated[str, BASE_URL],
    model: Annotated[str, MODEL],
    api_key_env: ApiKeyEnv = None,
    transport: Transport = "http",
    api: Api = "chat",
    wait: Wait = 0.0,
) -> None:
    """Check what a server supports, with one call for each feature that judgekit may need.

    Examples:
        judgekit check-endpoint --base-url http://localhost:8000/v1 --model my-model
    """
    from judgekit.client.routes import wait_ready
    from judgekit.client.sync import run_sync
    from judgekit.reading.check import check_endpoint as check
    from judgekit.wire.types import Endpoint

    endpoint = Endpoint("checked", base_url, model, api_key_env, transport=transport, api=api)
    if wait:
        run_sync(wait_ready(endpoint, wait, note))
    found = run_sync(check(endpoint))
    rows = ((item.name, item.works, item.detail, item.needed_for) for item in found)
    grid(("what", "works", "seen", "needed for"), rows)
    if any(item.works == "no" and not item.needed_for for item in found):
        raise typer.Exit(3)
