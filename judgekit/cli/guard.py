"""``guard``: pass, fail or inconclusive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.console.jobs import AskOptions
from judgekit.console.printing import say
from judgekit.console.results import CommandResult
from judgekit.data.manifest import by_role
from judgekit.data.streams import check_outputs, write_atomic
from judgekit.errors import UsageError
from judgekit.jobs.guard.passing import Gate

if TYPE_CHECKING:
    from judgekit.data.labelings import Labeling


@dataclass(frozen=True)
class LabelOptions:
    """The labels that score the versions, for versions that are runs and not ratings of answers."""

    queries: Annotated[
        Path | None, typer.Option(help="File of queries (default: those in the qrels that a version returns).")
    ] = None
    docs: Annotated[list[Path] | None, typer.Option(help="File of documents for a labeler; repeat for several.")] = None
    qrels: Annotated[Path | None, typer.Option(metavar="FILE", help="Existing labels, a TREC qrels file.")] = None
    scale: Annotated[str | None, typer.Option(help="Scale of the qrels: binary, grades:3, means:5:2 or unit.")] = None
    labeler: Annotated[
        str | None,
        typer.Option(help="Labeler for the documents that the versions return, e.g. containment."),
    ] = None

    def labels(self) -> Labeling | None:
        """Return the labels of ``--qrels``, if given."""
        from judgekit.data.labelings import Scale
        from judgekit.data.trec import read_qrels
        from judgekit.jobs.guard.losses import refuse_mixed

        if self.qrels is None:
            if self.scale is not None:
                raise UsageError("--scale describes the labels of --qrels: add --qrels FILE")
            return None
        refuse_mixed(by_role(self.queries, self.docs or ()) | {"qrels": self.qrels})
        return read_qrels(self.qrels, scale=None if self.scale is None else Scale.parse(self.scale))


def guard(
    base: Annotated[Path, typer.Argument(help="Old version: a run, or ratings of answers.")],
    new: Annotated[Path, typer.Argument(help="New version, in the same form.")],
    *,
    by: LabelOptions,
    gate: Gate,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown file to write, for a comment on a pull request.")
    ] = None,
    asked: AskOptions,
) -> None:
    """Test whether a new version is worse. Exit code: 0 pass, 1 fail, 5 inconclusive. See docs/guard.md.

    Examples:
        judgekit guard main.trec branch.trec --queries queries.jsonl --docs docs.jsonl --labeler containment
        judgekit guard main.trec branch.trec --qrels gold.qrels --suite --max-drop 3
    """
    from judgekit.jobs.guard import gate as gates

    guarded = asked.carry_out(
        "guard",
        gates.guard,
        base,
        new,
        gate,
        labels=by.labels(),
        labeler=by.labeler,
        queries=by.queries,
        docs=by.docs or None,
    )
    check_outputs(*([markdown] if markdown else []))
    if markdown:
        write_atomic(markdown, gates.markdown(guarded))
    CommandResult(
        show=lambda: say(str(guarded)),
        record=gates.content(guarded),
        files=[markdown] if markdown else [],
        warnings=gates.content(guarded)["notes"],
        shows_warnings=True,
        exit_code=guarded.exit_code,
    ).end("guard", as_json=asked.as_json)
