"""``traces``: exported traces of an application as files of an experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.drafts import write_draft
from judgekit.console.options import AsJson
from judgekit.data.outputs import check_folder


def traces(
    exports: Annotated[
        list[Path],
        typer.Argument(help="Exports of Phoenix (OpenInference spans) or Langfuse: JSONL, JSON, CSV, Parquet."),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder to write queries, docs, runs, answers and ratings to.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Convert exported traces to queries, docs, runs, answers and ratings, and write an experiment for them.

    Examples:
        judgekit traces spans.jsonl --out data
    """
    from judgekit.data.traces import read_traces
    from judgekit.setup.init import draft

    found = read_traces(exports)
    check_folder(out, ["experiment.toml", *found.files])
    found.write(out)
    rated = ", ".join(sorted(set(found.ratings["metric"]))) if len(found.ratings) else ""
    written = [out / name for name in found.files]
    made = draft(written, out)
    counts = {"questions": len(found.queries), "documents": len(found.docs)}
    counts |= {"answers": len(found.answers), "ratings": len(found.ratings)}
    write_draft(
        replace(made, cautions=(*found.left_out, *made.cautions)),
        overwrite=False,
        as_json=as_json,
        first=f"{len(found.queries):,} questions, {len(found.docs):,} documents, {len(found.answers):,} answers and"
        f" {len(found.ratings):,} ratings{rated and f' ({rated})'} are in {out}",
        record=counts,
        files=written,
    ).end("traces", as_json=as_json)
