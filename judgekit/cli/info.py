"""The tools ``list``, ``check-endpoint`` and ``convert``: what there is, whether a server will do, TREC files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgekit.console.options import BASE_URL, MODEL, Api, ApiKeyEnv, Transport, Wait
from judgekit.console.printing import console, grid, note, say
from judgekit.data.streams import check_outputs, note_read, noting_reads
from judgekit.errors import UsageError, not_among
from judgekit.spec import split_form

if TYPE_CHECKING:
    from judgekit.kinds import About

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
    match what:
        case "measures":
            _measures(name)
        case "labelers":
            from judgekit.labelers.base import catalog as labelers

            _plugins("labeler", labelers(), name)
        case "metrics":
            from judgekit.answers.quality import catalog as metrics

            _plugins("answer metric", metrics(), name)
        case "prompts":
            _prompts(name)


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


def convert(
    source: Annotated[str, typer.Argument(metavar="[FORM:]IN", help="File to read; - is standard input.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="TREC file to write.")],
    kind: Annotated[
        str | None, typer.Option(help="run or qrels (default: by the ending of OUT: .run, .trec or .qrels).")
    ] = None,
    min_grade: Annotated[
        float | None, typer.Option(help="Write 1 for labels of at least this value and 0 for others.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of decimal labels, e.g. unit or means:5:2.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing OUT.")] = False,
) -> None:
    """Convert a run or qrels of any supported form (docs/formats.md) to a TREC file.

    Examples:
        judgekit convert bm25.csv bm25.trec
        judgekit convert judge.qrels binary.qrels --scale unit --min-grade 0.5
    """
    from judgekit.data.checks import contradictions
    from judgekit.data.streams import stem
    from judgekit.data.trec import convert as convert_data, kind_of

    with noting_reads():
        note_read(Path(split_form(source)[1]))
        check_outputs(out)
        device = Path("/dev") in out.parents  # /dev/stdout, whatever it is
        if out.is_file() and not (device or force):
            raise UsageError(f"{out} already exists: choose another name, or replace it with --force")
        written = convert_data(source, out, kind, min_grade=min_grade, scale=scale)
        if kind_of(out, kind) == "run":
            note(*contradictions({stem(split_form(source)[1]): source}))
    console(stderr=device).print(f"{written}: {out}", markup=False, highlight=False)
