"""Whole collections are read and their files fit together: the sample's, and a larger one where there is one."""

from pathlib import Path

from judgekit.data.checks import check_runs
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.runs import pool
from judgekit.data.trec import read_qrels, read_run

SAMPLE = Path(__file__).resolve().parents[2] / "judgekit" / "sample"


def sizes(folder: Path) -> dict[str, int]:
    """Read a collection, hold its files to each other, and return how much it holds."""
    queries = read_queries(folder / "queries.jsonl")
    docs = read_docs(folder / "docs.jsonl")
    on_disk = read_docs(folder / "docs.jsonl", memory_limit=0)
    assert list(on_disk) == list(docs)
    runs = [read_run(path) for path in sorted((folder / "runs").glob("*.trec"))]
    absent = check_runs(runs, queries, on_disk)

    gold = read_qrels(folder / "provenance.qrels")
    assert set(gold.row_queries) <= set(queries)
    golds = set(zip(gold.table["query_id"], gold.table["doc_id"], strict=True))
    found = {depth: sum((q, d) in golds for q, ids in pool(runs, queries, depth) for d in ids) for depth in (1, 20)}
    return {
        "queries": len(queries),
        "docs": len(docs),
        "runs": len(runs),
        "queries without results": sum(map(len, absent.values())),
        "golds": len(golds),
        "golds at 1": found[1],
        "golds at 20": found[20],
    }


def test_the_sample_is_read_and_its_files_fit_together() -> None:
    assert sizes(SAMPLE) == {
        "queries": 104,
        "docs": 326,
        "runs": 6,
        "queries without results": 4,
        "golds": 104,
        "golds at 1": 75,
        "golds at 20": 102,
    }


def test_a_larger_collection_is_read_and_its_files_fit_together(larger_collection: Path) -> None:
    found = sizes(larger_collection)
    assert found["queries"] > 104
    assert 0 < found["golds at 1"] < found["golds at 20"] < found["golds"]
