"""``guard``: pass, fail or inconclusive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgekit.console.options import AsJson, Cache, ModelOptions, named
from judgekit.console.printing import emit, progress, say
from judgekit.data.manifest import by_role
from judgekit.data.streams import check_outputs, write_atomic
from judgekit.errors import UsageError
from judgekit.registry import register


@register.command("guard")
def guard(
    base: Annotated[Path, typer.Argument(help="Old version: a run, ratings of answers, or a results folder.")],
    new: Annotated[Path, typer.Argument(help="New version, in the same form.")],
    queries: Annotated[
        Path | None, typer.Option(help="File of queries (default: those in the qrels that a version returns).")
    ] = None,
    docs: Annotated[
        list[Path] | None, typer.Option(help="File of documents for a labeler; repeat for several.")
    ] = None,
    qrels: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help="Existing labels, one TREC qrels file.")
    ] = None,
    scale: Annotated[str | None, typer.Option(help="Scale of the qrels: binary, grades:3, means:5:2 or unit.")] = None,
    labeler: Annotated[
        str | None,
        typer.Option(
            help="Labeler for the documents that the versions return, e.g. containment; for folders, the"
            " name of a labeling."
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Run to compare in two results folders.")] = None,
    measure: Annotated[
        str | None,
        typer.Option("--measure", "-m", help="Measure (default: nDCG@10; for folders, their primary measure)."),
    ] = None,
    suite: Annotated[
        bool, typer.Option("--suite", help="Decide only about these questions; their column max_drop limits each loss.")
    ] = False,
    max_drop: Annotated[
        float, typer.Option(help="Largest acceptable mean loss, in hundredths of the measure's range.")
    ] = 1.0,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the queries: each group counts once, by its mean."),
    ] = None,
    unjudged: Annotated[
        Literal["bounds", "nonrelevant"],
        typer.Option(help="How documents without a label count: bounds (any label on the scale) or nonrelevant."),
    ] = "bounds",
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown file to write, for a comment on a pull request.")
    ] = None,
    as_json: AsJson = False,
    *,
    server: ModelOptions,
    cache: Cache = None,
) -> None:
    """Test whether a new version is worse. Exit code: 0 pass, 1 fail, 5 inconclusive. See docs/guard.md.

    Examples:
        judgekit guard main.trec branch.trec --queries queries.jsonl --docs docs.jsonl --labeler containment
        judgekit guard main.trec branch.trec --qrels gold.qrels --suite --max-drop 3
        judgekit guard main branch --run dense --labeler judge
    """
    from judgekit.data.labelings import Scale
    from judgekit.data.trec import read_qrels
    from judgekit.plugins.guard import gate
    from judgekit.plugins.guard.losses import refuse_mixed

    with progress() as draw:
        files = named(qrels, "--qrels")
        refuse_mixed(by_role(queries, docs or ()) | files)
        if scale is not None and not files:
            raise UsageError("--scale is the scale of --qrels FILE")
        own = None if scale is None else Scale.parse(scale)
        guarded = gate.guard(
            base,
            new,
            labels=[read_qrels(path, name, own) for name, path in files.items()] or None,
            labeler=labeler,
            queries=queries,
            docs=docs or None,
            run=run,
            measure=measure,
            suite=suite,
            max_drop=max_drop,
            groups=groups,
            unjudged=unjudged,
            endpoints=list(server.endpoints().values()) or None,
            cache=cache,
            progress=draw,
        )
    check_outputs(*([markdown] if markdown else []))
    if as_json:
        emit("guard", **gate.content(guarded))
    else:
        say(str(guarded))
    if markdown:
        write_atomic(markdown, gate.markdown(guarded))
    raise typer.Exit(guarded.exit_code)
