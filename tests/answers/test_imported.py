"""Quality that was measured elsewhere: thumbs, ratings, another system's answers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import judgekit as jk
from judgekit.answers.imported import completed, read_answers, read_ratings
from judgekit.answers.quality import metric
from judgekit.data.documents import Query
from judgekit.errors import DataError, UsageError
from tests.labelers.scripted import Here

QUERIES = {"q1": Query("q1", "Which city?", ("Paris",)), "q2": Query("q2", "Why?")}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "quality.csv"
    path.write_text(text)
    return path


def test_thumbs_and_ratings_are_a_quality_table(tmp_path: Path) -> None:
    rows = "run,depth,query_id,value\nbm25,5,q2,up\nbm25,5,q1,👎\ndense,5,q1,3.5\ndense,5,q2,\n"
    table = read_ratings(write(tmp_path, rows))
    assert list(table["metric"]) == ["rating"] * 4
    assert list(table["query_id"]) == ["q1", "q2", "q1", "q2"]
    assert list(table["value"][:3]) == [0.0, 1.0, 3.5]
    assert math.isnan(table["value"][3])
    assert (table["status"][3], table["reason"][3]) == ("unasked", "not rated")
    assert set(table["model"]) == {"imported"}


def test_a_file_may_name_its_metrics_models_and_answers(tmp_path: Path) -> None:
    rows = "run,depth,query_id,metric,model,value,answer\nbm25,5,q1,clarity,gpt,1,Paris\nbm25,5,q1,truth,gpt,0,Paris\n"
    table = read_ratings(write(tmp_path, rows), "unused")
    assert list(table["metric"]) == ["clarity", "truth"]
    assert list(table["model"]) == ["gpt", "gpt"]
    assert list(table["answer"]) == ["Paris", "Paris"]


def test_what_there_is_only_one_of_need_not_stand_in_every_row(tmp_path: Path) -> None:
    bare = read_ratings(write(tmp_path, "query_id,value\nq2,up\nq1,down\n"))
    full = completed(bare, ["bm25"], [5])
    assert full.values.tolist() == [["bm25", 5, "imported", q, "rating", v, *full.iloc[0, 6:]] for q, v in
                                    (("q1", 0.0), ("q2", 1.0))]  # fmt: skip
    with pytest.raises(
        DataError, match="lacks column 'run', and the runs are bm25, dense: say which each row is about"
    ):
        completed(bare, ["dense", "bm25"], [5])
    with pytest.raises(DataError, match="lacks column 'depth', and the depths are 10, 5: say which"):
        completed(bare, ["bm25"], [5, 10])
    with pytest.raises(DataError, match="lacks column 'depth', and the depths are none"):
        completed(bare, ["bm25"], [])
    kept = read_ratings(write(tmp_path, "run,depth,query_id,value\na,1,q1,1\n"))
    assert completed(kept, ["b"], [9])[list(kept.columns)].equals(kept), "what it says is left as it is"


def test_the_answers_of_another_system_are_rated(tmp_path: Path) -> None:
    rows = "run,depth,query_id,answer\nother,5,q1,the Paris\nother,10,q1,unknown\nother,3,q1,\nother,5,q2,because\n"
    rows += "other,1,q1,The passages do not say.\nother,2,q1,\ufeffParis\u200b\n"
    table = read_answers(write(tmp_path, rows), QUERIES, [metric("em"), metric("f1")])
    em = table[table["metric"] == "em"].set_index(["depth", "query_id"])
    assert em.loc[(5, "q1"), "value"] == 1.0
    assert (em.loc[(10, "q1"), "value"], em.loc[(10, "q1"), "abstained"]) == (0.0, 1)
    assert list(em.loc[(1, "q1"), ["value", "abstained", "seems_abstained"]]) == [0.0, 0, 1]
    assert list(em.loc[(2, "q1"), ["value", "answer"]]) == [1.0, "Paris"]
    assert em.loc[(3, "q1"), "status"] == "failed"
    assert em.loc[(5, "q2"), "status"] == "not_applicable"
    assert len(table) == 12
    plain = {query_id: {"text": query.text, "answers": list(query.answers)} for query_id, query in QUERIES.items()}
    assert jk.read_answers(tmp_path / "quality.csv", plain, ["em", "f1"]).equals(table)


def test_the_number_0_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"run": "r", "depth": 1, "query_id": "q0", "answer": 0}\n')
    table = read_answers(path, {"q0": Query("q0", "How many?", ("0",))}, [metric("em")])
    assert (table["answer"][0], table["value"][0]) == ("0", 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,depth,query_id\nr,1,q1\n", r"quality\.csv, line 2: lacks 'value' \(it has: run, depth, query_id\)"),
        ("run,depth,query_id,value\nr,1,q1,great\n", "line 2: value must be a number or a word"),
        ("run,depth,query_id,value\nr,1,q1,1_0\n", "line 2: value must be a number"),
        ("run,depth,query_id,value\nr,1_0,q1,1\n", "line 2: depth must be a whole number"),
        ("run,depth,query_id,value\nr,1,q1,inf\n", "line 2: value must be a number"),
        ("run,depth,query_id,value\nr,-1,q1,1\n", "line 2: depth must be a whole number"),
        ("run,depth,query_id,value\nr,x,q1,1\n", "line 2: depth must be a whole number"),
        ("run,depth,query_id,value\nr,1.5,q1,1\n", "line 2: depth must be a whole number"),
        ("run,depth,query_id,value\n,1,q1,1\n", "line 2: run must be a text"),
        (
            "run,depth,query_id,value\nr,1,q1,1\nr,1,q1,0\n",
            "quality.csv: there are two values for run r, depth 1, query_id q1, metric rating, model imported",
        ),
    ],
)
def test_bad_files_are_errors_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_ratings(write(tmp_path, text))


def test_unknown_queries_and_metrics_that_ask_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "run,depth,query_id,answer\nr,1,q9,x\n")
    with pytest.raises(DataError, match="line 2: query 'q9' is not among the queries"):
        read_answers(path, QUERIES, [metric("em")])
    with pytest.raises(UsageError, match="the metric correct asks an LLM"):
        read_answers(path, QUERIES, [metric("correct", Here())])


def test_a_file_with_a_header_alone_is_an_empty_table(tmp_path: Path) -> None:
    assert len(read_ratings(write(tmp_path, "run,depth,query_id,value\n"))) == 0
