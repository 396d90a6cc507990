"""``guard``: pass, fail or inconclusive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from judgekit.cli.drawing import progress
from judgekit.cli.options import Prompts, Quiet, ServerOptions, StoreOptions, named
from judgekit.errors import UsageError

__all__ = ["guard"]


@dataclass(frozen=True)
class GateOptions:
    """The rules of the gate, by their names in `judgekit.gate.decision.Rules`; None leaves one as it is elsewhere."""

    measure: Annotated[str | None, typer.Option("--measure", "-m", help="Measure (default: nDCG@10).")] = None
    max_drop: Annotated[
        float | None, typer.Option(help="Largest loss to accept, in hundredths of the measure's range (default: 1).")
    ] = None
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of the queries: guard each group too.")] = (
        None
    )
    max_group_drop: Annotated[float | None, typer.Option(help="Largest loss to accept in a group.")] = None
    unjudged: Annotated[
        Literal["bounds", "nonrelevant"] | None,
        typer.Option(help="Documents without a label: bounds (anything on the scale, the default) or nonrelevant."),
    ] = None
    alpha: Annotated[float | None, typer.Option(help="How often each claim may be false (default: .05).")] = None
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if inconclusive, too.")] = False
    sequential: Annotated[
        str | None,
        typer.Option(
            metavar="STATE", help="JSON file that keeps errors rare over all looks and changes; widens the bounds."
        ),
    ] = None
    max_requests: Annotated[
        int | None, typer.Option(min=0, help="Requests for new labels; documents beyond it get none (default: 1000).")
    ] = None


def guard(
    base: Annotated[
        Path | None, typer.Argument(help="Old version: a TREC run, a results folder, or an experiment file.")
    ] = None,
    new: Annotated[Path | None, typer.Argument(help="New version: a TREC run or a results folder.")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="File of queries (default: those of the qrels that a version has).")
    ] = None,
    docs: Annotated[
        list[Path] | None, typer.Option(help="File of documents, for a labeler; repeat for several.")
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="[NAME=]FILE", help="Existing labels: a TREC qrels file.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of the qrels: binary, grades:3, means:5:2 or unit.")] = None,
    labeler: Annotated[
        str | None,
        typer.Option(help="Labeler for what the versions show, e.g. containment; with folders, a labeling's name."),
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Run to compare in two results folders.")] = None,
    quality: Annotated[
        list[str] | None,
        typer.Option(metavar="base=FILE, new=FILE", help="Guard answer quality, by the ratings of both versions."),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Answer metric of the ratings, if there are several.")] = None,
    depth: Annotated[
        int | None, typer.Option(min=1, help="Depth of the answers, or of lists under a measure without a cutoff.")
    ] = None,
    answer_mode: Annotated[
        str | None, typer.Option("--mode", help="Mode of answering of the ratings, if there are several.")
    ] = None,
    *,
    bounds: GateOptions,
    json: Annotated[Path | None, typer.Option(help="Write everything as JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown, for a comment on a pull request.")] = None,
    prompts: Prompts = None,
    server: ServerOptions,
    replies: StoreOptions,
    quiet: Quiet = False,
) -> None:
    """Say whether a new version loses: exit code 0 pass, 1 fail, 5 inconclusive. See docs/guard.md."""
    from judgekit.data.files import write_atomic
    from judgekit.data.manifest import by_role
    from judgekit.data.outputs import check_outputs, noting_reads
    from judgekit.experiment import guarding
    from judgekit.gate import formatting
    from judgekit.gate.decision import Rules
    from judgekit.gate.guard import guard as guard_files

    rules = {key: value for key, value in vars(bounds).items() if value is not None and value is not False}
    here = {"queries": queries, "docs": docs, "qrels": qrels, "quality": quality, "scale": scale, "prompts": prompts}
    outputs = {formatting.as_json: json, formatting.junit: junit, formatting.markdown: markdown}
    written = {write: path for write, path in outputs.items() if path is not None}
    own = [Path(path).absolute() for path in (*written.values(), bounds.sequential) if path is not None]
    if len(set(own)) < len(own):
        raise UsageError("--json, --junit, --markdown and --sequential each need a file of their own")
    whole = base is not None and (base.is_dir() or base.suffix == ".toml")
    odd = next((name for name, value in here.items() if whole and value), None)
    if odd is not None:
        raise UsageError(f"--{odd} does not go with {base}, which names its own inputs")
    with noting_reads(), progress(quiet) as draw:
        if base is not None and base.suffix == ".toml":
            if new is not None or run is not None:
                raise UsageError(f"{base} names both runs under [guard]: leave out the second version and --run")
            rules |= {"labeler": labeler} if labeler else {}
            found = guarding.guard_experiment(base, rules, **replies.kept(), progress=draw)
        elif base is not None and base.is_dir():
            if new is None or not new.is_dir():
                raise UsageError(f"{base} is a results folder: give a results folder as the new version, too")
            found = guarding.guard_results(base, new, run, labeler, Rules(**rules))
        else:
            if run is not None:
                raise UsageError("--run goes with two results folders")
            labels = named([qrels], "--qrels") if qrels else {}
            guarding.refuse_mixed(by_role(queries, docs or ()) | labels)
            found = guard_files(
                base,
                new,
                labels=labels or None,
                labeler=labeler,
                queries=queries,
                docs=docs or None,
                quality=_both(quality) if quality else None,
                metric=metric,
                depth=depth,
                answer_mode=answer_mode,
                scale=scale,
                prompts=prompts,
                endpoints=list(server.endpoints().values()),
                **replies.kept(),
                progress=draw,
                **rules,
            )
    check_outputs(*written.values())
    typer.echo(str(found))
    for write, path in written.items():
        write_atomic(path, write(found))
    raise typer.Exit(found.exit_code)


def _both(items: list[str]) -> tuple[Path, Path]:
    files = named(items, "--quality")
    if set(files) != {"base", "new"}:
        raise UsageError("give --quality twice: --quality base=FILE --quality new=FILE")
    return files["base"], files["new"]
