"""``init``: from your own files to an experiment that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.printing import write_draft

__all__ = ["init"]


def init(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folder with your data, or its files (default: the current folder).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for experiment.toml (default: next to the data).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing experiment.toml.")] = False,
) -> None:
    """Inspect your files, report how each is read and what looks wrong, and write an experiment that runs.

    Examples:
        judgekit init my-data
        judgekit init queries.jsonl docs.jsonl bm25.trec dense.trec --out experiment
    """
    from judgekit.experiment.init import draft

    write_draft(draft(paths or [Path()], out), overwrite=overwrite)
