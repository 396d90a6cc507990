"""Queries that imported labels do not judge are not judged: neither 0, nor failed, whatever command scores them."""

import re
from pathlib import Path

import pandas as pd
import pytest

from judgekit.data.tables import ALL
from tests.commands import Said
from tests.small import edited

DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec", "--run", "poor.trec"]


@pytest.fixture
def half(folder: Path) -> Path:
    """An experiment whose qrels judge half of its queries."""
    (folder / "half.qrels").write_text("".join(f"q{i} 0 d{i}a 1\n" for i in range(3)))
    edited(
        folder / "experiment.toml",
        "[answers]",
        '[[labelers]]\nname = "half"\nkind = "provenance"\nqrels = "half.qrels"\n[answers]',
        to="half.toml",
    )
    return folder


def _means(folder: Path) -> dict[str, float]:
    scores = pd.read_parquet(folder / "results" / "scores.parquet")
    rows = scores[(scores["labeling"] == "half") & (scores["measure"] == "nDCG@4") & (scores["query_id"] == ALL)]
    return dict(zip(rows["run"], rows["value"], strict=True))


def _printed(said: Said) -> dict[str, float]:
    return {line.split()[1]: float(line.split()[2]) for line in said.out.splitlines()[1:]}


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_score_and_run_say_the_same_of_the_queries_that_the_qrels_judge(judgekit, half):
    score = ["score", *DATA[4:], "-m", "nDCG@4", "--qrels"]
    alone = judgekit(*score, "half.qrels")
    assert "3 queries of good are not in half" in _flat(alone.err)

    said = judgekit("run", "half.toml", "--out", "results", code=0)
    assert _means(half) == pytest.approx(_printed(alone), abs=5e-5)
    labels = pd.read_parquet(half / "results" / "labels" / "half.parquet")
    assert labels.groupby("status")["query_id"].nunique().to_dict() == {"not_applicable": 3, "ok": 3}
    told = "half does not apply to 3 of 6 queries"
    assert f"{told}, which have no score under it (q3: the file does not judge" in _flat(said.out)
    assert "half has no score on 3 questions: labelings are compared on the other 3." in _flat(said.out)
    assert told in _flat(said.err), "on screen before the report is"

    exported = judgekit(*score, "results/labels/half.qrels")
    assert _printed(exported) == _printed(alone), "the exported labels say it too"
    assert told in _flat(exported.err)


def test_what_nobody_was_asked_about_is_neither_failed_nor_asked_for_again(judgekit, half):
    said = judgekit(
        "label",
        "provenance(qrels='half.qrels', unlisted=missing)",
        *DATA,
        "--depth",
        3,
        "--out",
        "sparse.qrels",
        code=0,
    )
    assert "3 ok, 9 not_applicable, 6 unasked" in said.out
    assert "failed" not in said.out + said.err
    assert "again" not in said.err
    assert "labels, in 3 of 6 queries: nobody was asked about this document" in _flat(said.err)
    assert (half / "sparse.missing.tsv").read_text().count("unasked") == 6
    scored = judgekit("score", *DATA[4:], "--qrels", "sparse.qrels", "-m", "P@1", "--missing", "condense", code=0)
    assert _printed(scored) == {"good": 1.0, "poor": 0.3333}


def test_what_a_file_says_is_missing_is_not_promised_to_be_asked_for_again(judgekit, half):
    (half / "half.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq0\td0b\tfailed\nq1\td1b\tunparsed\n")
    said = judgekit("run", "half.toml", "--out", "results", code=1)
    assert "try another prompt" not in said.err
    assert "running again changes nothing" in _flat(said.err)


FOREIGN = "are these from the same collection?"


@pytest.mark.parametrize("query", ["t", "q"], ids=["other queries", "numbers that are the same by chance"])
def test_qrels_of_another_collection_raise_the_question_and_give_no_scores(judgekit, half, query):
    (half / "half.qrels").write_text("".join(f"{query}{i} 0 doc{i} 1\n" for i in range(6)))
    said = judgekit("run", "half.toml", "--out", "results", code=1)
    assert "labels of half: its file judges none of the pooled documents" in said.err
    assert f"half judges none of the documents in the pool of these runs: {FOREIGN}" in _flat(said.out)
    assert FOREIGN in _flat(said.err)
    assert all(pd.isna(value) for value in _means(half).values()) is (query == "t")
    said = judgekit("label", "provenance(qrels='half.qrels')", *DATA, "--out", "x.qrels", code=1)
    assert ": 18 pairs, none of them judged by the file" in said.out
    assert said.err.count("the same collection?") == 1
