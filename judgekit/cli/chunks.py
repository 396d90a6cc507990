"""Documents cut differently: where they stand on their pages, and labels that survive a new cut."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.common import made_from, note, say
from judgekit.errors import DataError, UsageError

__all__ = ["carry", "chunks"]

_SHOWN = 5


def chunks(
    pages: Annotated[Path, typer.Argument(help="The pages, as documents: page_id (or doc_id), text.")],
    docs: Annotated[list[Path], typer.Argument(help="The documents cut out of them; several files for several cuts.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="All documents with their spans, to write (.jsonl).")],
    least: Annotated[
        float,
        typer.Option(min=50, max=100, help="How alike a text that is not on its page letter by letter has to be."),
    ] = 90,
    tokenizer: Annotated[
        Path | None,
        typer.Option(help="tokenizer.json of the spans that documents have: they are tokens, not characters."),
    ] = None,
) -> None:
    """Find where documents stand on their pages, so that evidence is counted once however they were cut."""
    from judgekit.data.chunks import chunks as place
    from judgekit.data.files import check_target
    from judgekit.data.manifest import manifest_path, write_manifest
    from judgekit.data.outputs import check_outputs, noting_reads
    from judgekit.data.readers import read_docs, write_docs

    check_target(out)
    if out.suffix in (".csv", ".tsv", ".parquet", ".json"):
        raise UsageError(f"--out {out}: documents are written as JSON lines (.jsonl); judgekit convert makes tables")
    with noting_reads() as read:
        try:
            whole = read_docs(pages, "auto(id=page_id)")
        except DataError as first:
            try:
                whole = read_docs(pages)
            except DataError as second:
                raise (first if "lacks the field" in second.reason else second) from None
        cut = read_docs([str(path) for path in docs])
    check_outputs(out, manifest_path(out))
    placed = place(whole, cut, least=least, tokenizer=tokenizer)
    write_docs(placed.docs, out)
    write_manifest(manifest_path(out), made_from({"pages": pages}, read), [out])
    told = f"{placed.exact + placed.alike:,} of {len(placed.docs):,} documents have a span"
    alike = f", {placed.alike:,} of them where a page's text is alike" if placed.alike else ""
    say(f"{told}{alike}", f"docs: {out}")
    lacking = [f"{doc_id} has no span: {why}" for doc_id, why in placed.unplaced.items()]
    more = [f"{len(lacking) - _SHOWN:,} more documents have no span"] if len(lacking) > _SHOWN else []
    note(*lacking[:_SHOWN], *more)


def carry(
    labels: Annotated[Path, typer.Argument(help="Table of labels with spans (see docs/chunks.md), or TREC qrels.")],
    docs: Annotated[Path, typer.Option("--docs", help="The new documents, with page_id, start, end.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="TREC qrels to write; a table with the spans beside it.")],
    old: Annotated[
        Path | None, typer.Option("--from", help="The documents that the labels are of, where these do not say it.")
    ] = None,
    cover: Annotated[
        float, typer.Option(min=0.01, max=1, help="Share of a relevant span that a document has to cover.")
    ] = 0.5,
    scale: Annotated[
        str | None, typer.Option(help="Scale of the labels: binary, grades:3, means:5:2, unit or signed.")
    ] = None,
) -> None:
    """Carry labels over to documents that were cut differently; what cannot be carried is not judged."""
    from judgekit.data.chunks import SPANS
    from judgekit.data.chunks import carry as carry_over
    from judgekit.data.files import check_target, read_table, write_table
    from judgekit.data.labelings import Scale
    from judgekit.data.manifest import manifest_path, write_manifest
    from judgekit.data.outputs import check_outputs, noting_reads
    from judgekit.data.readers import read_docs
    from judgekit.data.spans import stated
    from judgekit.data.trec import missing_path, read_qrels, write_qrels

    check_target(out)
    declared = None if scale is None else Scale.parse(scale)
    with noting_reads() as read:
        new = read_docs(docs)
        if old is not None:
            given = stated(read_qrels(labels, None, declared), read_docs(old))
        else:
            try:
                given = read_table(SPANS, labels)
            except DataError as error:
                hint = "TREC qrels need the documents that they are of (--from)"
                raise DataError(f"{error.reason}; {hint}", error.path, error.line) from None
    table = out.with_name(f"{out.name}.parquet")
    check_outputs(out, table, missing_path(out), manifest_path(out))
    carried = carry_over(given, new, cover=cover, scale=declared)
    write_qrels(carried.labeling, out)
    write_table(carried.labeling.table, table)
    write_manifest(manifest_path(out), made_from({"labels": labels, "docs": docs}, read), [out, table])
    say(f"{len(carried.labeling):,} labels carried", f"qrels:  {out}", f"labels: {table}")
    notes = {
        "relevant labels are lost: no document covers enough of their span": carried.lost,
        "documents stand on labelled spans only in part: they are not judged": carried.unjudged,
        "labels do not say where they stand: they are left behind": carried.unplaced,
    }
    note(*(f"{count:,} {what}" for what, count in notes.items() if count))
