"""Real questions, passages and retrieval runs are read, fit together, and the oddities in them are counted."""

from __future__ import annotations

from pathlib import Path

from judgekit.data import check_qrels, check_runs, read_docs, read_qrels, read_queries, read_run
from judgekit.data.pool import pool


def test_a_real_collection_is_read_and_its_files_fit_together(shared: Path) -> None:
    dev = shared / "data" / "dev"
    queries = read_queries(dev / "queries.jsonl")
    docs = read_docs(dev / "docs.jsonl")
    on_disk = read_docs(dev / "docs.jsonl", memory_limit=0)
    runs = [read_run(path) for path in sorted((dev / "runs").glob("*.trec"))]
    assert (len(queries), len(docs), len(runs)) == (695, 10768, 6)
    assert list(on_disk) == list(docs)

    absent = check_runs(runs, queries, on_disk)
    assert {name: len(missing) for name, missing in absent.items() if missing} == {"bm25_title": 1}

    gold = read_qrels(dev / "provenance.qrels")
    shallow, deep = (check_qrels(gold, pool(runs, queries, depth)) for depth in (1, 50))
    assert shallow.relevant == deep.relevant == deep.pairs == 695
    assert deep.outside < shallow.outside < 695
    assert (deep.without_gold, deep.other_queries) == (0, 0)
