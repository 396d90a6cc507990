"""``chunks`` and ``carry``: locate documents on their pages, and carry labels over to a new chunking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgekit.console.options import AsJson, named, scales_of
from judgekit.console.printing import check_out, made_from, note, say
from judgekit.console.results import CommandResult
from judgekit.data.manifest import by_role, manifest_path, mismatches
from judgekit.data.result_files import ResultFiles
from judgekit.data.streams import check_outputs, recording_inputs
from judgekit.errors import DataError, UsageError

if TYPE_CHECKING:
    from judgekit.data.runs import Run
    from judgekit.jobs.carrying import Carried

_SHOWN = 5


def chunks(
    pages: Annotated[Path, typer.Argument(help="Pages: page_id (or doc_id), text.")],
    docs: Annotated[list[Path], typer.Argument(help="Documents cut from the pages; one file for each cut.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Documents with their spans, to write (.jsonl).")],
    *,
    as_json: AsJson = False,
) -> None:
    """Locate documents on their pages, so that evidence counts once in any chunking.

    Examples:
        judgekit chunks pages.jsonl small.jsonl large.jsonl --out docs.jsonl
    """
    from judgekit.data.readers import read_docs, write_docs
    from judgekit.jobs.chunks import chunks as place

    check_out(out)
    if out.suffix in (".csv", ".tsv", ".parquet", ".json"):
        raise UsageError(f"--out {out}: documents are written as JSON lines (.jsonl)")
    with recording_inputs() as read:
        try:
            whole = read_docs(pages)
        except DataError as problem:
            if "lacks the field" not in problem.reason:
                raise
            whole = read_docs(f"auto(id=page_id):{pages}")
        cut = read_docs([str(path) for path in docs])
    check_outputs(out, manifest_path(out))
    placed = place(whole, cut)
    write_docs(placed.docs, out)
    made_from(out, {"pages": pages}, read).close()
    told = f"{placed.exact + placed.alike:,} of {len(placed.docs):,} documents have a span"
    alike = f", {placed.alike:,} of them by similar text" if placed.alike else ""
    lacking = [f"{doc_id} has no span: {why}" for doc_id, why in placed.unplaced.items()]
    more = [f"{len(lacking) - _SHOWN:,} more documents have no span"] if len(lacking) > _SHOWN else []
    CommandResult(
        show=lambda: say(f"{told}{alike}", f"docs: {out}"),
        record={"docs": len(placed.docs), "exact": placed.exact, "alike": placed.alike, "unplaced": placed.unplaced},
        files=[out],
        warnings=[*lacking[:_SHOWN], *more],
    ).end("chunks", as_json=as_json)


def carry(
    qrels: Annotated[Path, typer.Argument(help="Labels of the old documents, a TREC qrels file.")],
    docs: Annotated[list[Path], typer.Option(help="Documents: first the old ones, then the new ones.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="QRELS", help="TREC qrels file to write.")],
    *,
    scale: Annotated[str | None, typer.Option(help="Scale of the labels, e.g. grades:3:2 or unit.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Run over the new documents, to count what it lacks; repeat for several.")
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Number of documents to count per run and query.")] = 10,
    share: Annotated[
        float, typer.Option(help="Part of a relevant document that a new one must hold to be relevant.")
    ] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Carry labels to documents that were cut anew; what is not known there stays unlabelled.

    Examples:
        judgekit carry old.qrels --docs old.jsonl --docs new.jsonl --out new.qrels
        judgekit carry old.qrels --docs old.jsonl --docs new.jsonl --run new.trec --depth 5 --out new.qrels
    """
    from judgekit.data.frames import as_runs
    from judgekit.data.labelings import Scale
    from judgekit.data.readers import read_docs
    from judgekit.data.sources import stem
    from judgekit.data.trec import missing_path, read_qrels, write_qrels
    from judgekit.jobs.carrying import carry as carry_labels

    check_out(out)
    if len(docs) != 2:
        raise UsageError(f"give --docs twice, first the old documents and then the new ones, not {len(docs)} times")
    with recording_inputs() as read:
        scales = scales_of([scale] if scale else None, {stem(qrels): qrels})
        old_labels = read_qrels(qrels, scale=Scale.parse(scales[stem(qrels)]) if scales else None)
        old, new = read_docs(docs[0]), read_docs(docs[1])
        runs = as_runs(named(run, "--run")) if run else []
    check_outputs(out, missing_path(out), manifest_path(out))
    carried = carry_labels(old_labels, old, new, share=share)
    write_qrels(carried.labeling, out)
    # The carried labels belong to the new documents: using the two together must not warn about the old ones.
    roles = by_role(None, docs[1:], named(run, "--run") if run else None) | {"docs before": docs[0], "qrels": qrels}
    files = ResultFiles.beside(out, roles=roles, read=read)
    files.inputs["qrels"] = replace(files.inputs["qrels"], inputs={})
    note(*mismatches(files.inputs))
    files.close()
    told = (
        f"{len(carried.labeling):,} of {len(old_labels):,} labels carried: {carried.same:,} to the same text,"
        f" {carried.relevant:,} to passages that hold a relevant one, {carried.not_relevant:,} to passages"
        " whose text was all judged not relevant"
    )
    CommandResult(
        show=lambda: say(told, f"qrels: {out}"),
        record={
            "labels": len(old_labels),
            "carried": len(carried.labeling),
            "same": carried.same,
            "relevant": carried.relevant,
            "not_relevant": carried.not_relevant,
            "open": len(carried.open),
            "lost": len(carried.lost),
            "unknown": len(carried.unknown),
        },
        files=[out],
        warnings=[*_left(carried, [run.cut(depth) for run in runs], depth)],
    ).end("carry", as_json=as_json)


def _left(carried: Carried, runs: Sequence[Run], depth: int) -> Iterator[str]:
    """Yield sentences about labels that were not carried, and pairs that still lack one."""
    if carried.open:
        yield (
            f"{len(carried.open):,} passages share text with a judged one and are not judged for its question, first"
            f" {carried.open[0][1]!r} for {carried.open[0][0]!r}"
        )
    if carried.lost:
        yield (
            f"{len(carried.lost):,} relevant labels are lost: no new passage holds the text, first"
            f" {carried.lost[0][1]!r} for {carried.lost[0][0]!r}"
        )
    if carried.unknown:
        yield (
            f"{len(carried.unknown):,} judged documents are missing from the old documents, first"
            f" {carried.unknown[0]!r}"
        )
    if runs:
        import numpy as np

        from judgekit.data.runs import pool

        judged = set(carried.labeling.table["query_id"])
        pooled = [(query_id, doc_id) for query_id, docs in pool(runs, sorted(judged), depth) for doc_id in docs]
        lacking = int(np.isnan(carried.labeling.at(pooled)).sum())
        share = f"{lacking / len(pooled):.0%}" if pooled else "none"
        yield f"{lacking:,} of the runs' {len(pooled):,} pairs at depth {depth} still lack a label ({share})"
