from pathlib import Path

from judgekit.data.checks import check_runs
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.runs import pool
from judgekit.data.trec import read_qrels, read_run


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
    assert set(gold.row_queries) == set(queries)
    golds = set(zip(gold.table["query_id"], gold.table["doc_id"], strict=True))
    shallow, deep = (sum((q, d) in golds for q, docs in pool(runs, queries, depth) for d in docs) for depth in (1, 50))
    assert 0 < shallow < deep < len(golds) == 695
