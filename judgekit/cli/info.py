"""``measures``, ``labelers``, ``prompts`` and ``check-endpoint``: what there is, and whether a server will do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.cli.common import grid, group, note, say
from judgekit.cli.options import Api, ApiKeyEnv, Prompts, Transport, Wait

if TYPE_CHECKING:
    from judgekit.plugins import About

__all__ = ["answer_metrics", "check_endpoint", "labelers", "measures", "prompts"]

prompts = group("List or show the prompts that judgekit ships.")


def measures(
    name: Annotated[str | None, typer.Argument(help="Show only this measure, with its parameters.")] = None,
) -> None:
    """List all measures: formula, source, range, what each rewards, and the scales it is defined on."""
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


def labelers() -> None:
    """List all labelers, installed ones included: what each says, needs and costs per pair, and its options."""
    from judgekit.labelers.base import catalog

    _catalog(catalog())


def answer_metrics() -> None:
    """List all answer metrics, installed ones included: what each says, needs and costs per answer."""
    from judgekit.answers.quality import catalog

    _catalog(catalog())


def _catalog(entries: dict[str, About]) -> None:
    for name, about in entries.items():
        lines = [f"{name}: {about.does}"]
        lines += [f"  {key:<9} {text}" for key, text in (("scale", about.scale), ("needs", about.needs)) if text]
        lines += [f"  {'costs':<9} {about.cost}"] if about.cost else []
        lines += [f"  {key + '=':<9} {text}" for key, text in about.options.items()]
        say(*lines, "")


@prompts.command("list")
def prompts_list(prompts: Prompts = None) -> None:
    """List the prompts with what each is for and what it declares; with a folder of your own, check all of it."""
    from judgekit.reading.prompts import list_prompts

    for prompt in list_prompts(prompts):
        own = f" ({prompts})" if prompts is not None and (prompts / f"{prompt.name}.toml").is_file() else ""
        say(f"{prompt.name:<18} {prompt.kind:<11} {prompt.about}{own}")


@prompts.command("show")
def prompts_show(
    name: Annotated[str, typer.Argument(help="Name of a prompt, or a file of your own to check.")],
    prompts: Prompts = None,
) -> None:
    """Print a prompt file; copy it to write your own."""
    from judgekit.reading.prompts import find_prompt, prompt_folder

    find_prompt(name, Path, prompts)
    files = [folder / f"{name}.toml" for folder in (prompts, prompt_folder()) if folder is not None]
    file = next(filter(Path.is_file, files), Path(name))
    typer.echo(file.read_text(encoding="utf-8"), nl=False)


def check_endpoint(
    base_url: Annotated[str, typer.Option(help="OpenAI-compatible server, e.g. http://localhost:8000/v1.")],
    model: Annotated[str, typer.Option(help="Id of the model to ask.")],
    api_key_env: ApiKeyEnv = None,
    transport: Transport = "http",
    api: Api = "chat",
    timeout: Annotated[float, typer.Option(help="Seconds allowed for one call.")] = 60.0,
    wait: Wait = 0.0,
) -> None:
    """Make one call each for what judgekit may need of a server, and say what works."""
    from judgekit.client.routes import wait_ready
    from judgekit.client.session import run_sync
    from judgekit.reading.check import check_endpoint as check
    from judgekit.wire.types import Endpoint

    endpoint = Endpoint("checked", base_url, model, api_key_env, timeout_s=timeout, transport=transport, api=api)
    if wait:
        run_sync(wait_ready(endpoint, wait, note))
    found = run_sync(check(endpoint))
    rows = ((item.name, item.works, item.detail, item.needed_for) for item in found)
    grid(("what", "works", "seen", "needed for"), rows)
    if any(item.works == "no" and not item.needed_for for item in found):
        raise typer.Exit(3)
