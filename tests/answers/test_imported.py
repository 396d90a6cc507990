"""Quality that was measured elsewhere: thumbs, ratings, another system's answers."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.answers.imported import candidates, check_contexts, completed, read_answers, read_ratings
from judgekit.data.documents import Query
from judgekit.data.files import read_table
from judgekit.data.runs import Run
from judgekit.data.tables import ANSWERS
from judgekit.errors import DataError, UsageError
from judgekit.rules import DeclaredOutcome
from tests.mock import URL

QUERIES = {"q1": Query("q1", "Which city?", ("Paris",)), "q2": Query("q2", "Why?")}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "quality.csv"
    path.write_text(text)
    return path


def test_thumbs_and_ratings_are_a_quality_table(tmp_path: Path) -> None:
    rows = "run,depth,query_id,value\nbm25,5,q2,up\nbm25,5,q1,👎\ndense,5,q1,yes\ndense,5,q2,\n"
    table = read_ratings(write(tmp_path, rows)).table
    assert table[["metric", "query_id", "model"]].values.tolist() == [
        ["rating", query_id, "undeclared"] for query_id in ("q1", "q2", "q1", "q2")
    ]
    assert list(table["value"].fillna(-1)) == [0.0, 1.0, 1.0, -1]
    assert (table["status"][5], table["reason"][5]) == ("unasked", "not rated")
    rows = "run,depth,query_id,metric,model,value,answer\nbm25,5,q1,clarity,gpt,1,Paris\nbm25,5,q1,truth,gpt,0,Paris\n"
    table = read_ratings(write(tmp_path, rows)).table
    assert table["metric"].tolist() == ["clarity", "truth"]
    assert table[["model", "answer"]].values.tolist() == [["gpt", "Paris"]] * 2
    assert read_ratings(write(tmp_path, "run,depth,query_id,value\n")).table.empty


def test_what_there_is_only_one_of_need_not_stand_in_every_row(tmp_path: Path) -> None:
    bare = read_ratings(write(tmp_path, "query_id,value\nq2,up\nq1,down\n")).table
    full = completed(bare, ["bm25"], [5])
    assert full.values.tolist() == [["bm25", 5, "undeclared", q, "rating", v, *full.iloc[0, 6:]] for q, v in
                                    (("q1", 0.0), ("q2", 1.0))]  # fmt: skip
    with pytest.raises(DataError, match="lacks column 'run', and the runs are bm25, dense: name one in each row"):
        completed(bare, ["dense", "bm25"], [5])
    with pytest.raises(DataError, match="lacks column 'depth', and the depths are 10, 5: name one"):
        completed(bare, ["bm25"], [5, 10])
    with pytest.raises(DataError, match="lacks column 'depth', and the depths are none"):
        completed(bare, ["bm25"], [])
    kept = read_ratings(write(tmp_path, "run,depth,query_id,value\na,1,q1,1\n")).table
    assert completed(kept, ["b"], [9])[list(kept.columns)].equals(kept), "what it says is left as it is"


def test_a_scale_is_put_on_0_to_1_by_its_ends(tmp_path: Path) -> None:
    for scale, values, ends in (
        ("stars", (1, 5), (0.0, 1.0)),
        ("points", (0, 100), (0.0, 1.0)),
        ("1..7", (1, 4), (0.0, 0.5)),
    ):
        path = write(tmp_path, f"query_id,value\nq1,{values[0]}\nq2,{values[1]}\n")
        assert read_ratings(path, outcome=DeclaredOutcome(scale=scale)).table["value"].tolist() == [*ends]
        with pytest.raises(DataError, match=f"line 3: .* is not on the scale {re.escape(scale)}"):
            read_ratings(
                write(tmp_path, f"query_id,value\nq1,1\nq2,{values[1] * 2}\n"), outcome=DeclaredOutcome(scale=scale)
            )
    assert read_ratings(write(tmp_path, "query_id,value\nq1,1\nq2,-1\n")).table["value"].tolist() == [1.0, 0.0]
    assert read_ratings(write(tmp_path, "query_id,value\nq1,0.25\n")).table["value"].tolist() == [0.25]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ("1 5", "stars"),
        ("0 5", "0..10"),
        ("1 6", "1..10"),
        ("0 11", "points"),
        ("-2 3", "-2..3"),
        ("0 1", None),
        ("-1 1", None),
    ],
)
def test_the_scale_to_propose_is_the_narrowest_that_holds_all_values(
    values: str, scale: str | None, tmp_path: Path
) -> None:
    rows = "".join(f"q{i},{value}\n" for i, value in enumerate(values.split()))
    assert candidates(write(tmp_path, f"query_id,value\n{rows}"), beside_answers=False) == {"rating": scale}


def rated(source: Path | pd.DataFrame, queries: dict[str, Query] = QUERIES, **options: Any) -> pd.DataFrame:
    return jk.answer(queries=queries, imported=source, **options)


def test_the_answers_of_an_application_are_rated(tmp_path: Path) -> None:
    rows = "run,depth,query_id,answer\nother,5,q1,the Paris\nother,10,q1,unknown\nother,3,q1,\nother,5,q2,because\n"
    rows += "other,1,q1,The passages do not say.\nother,4,q1,<think>Rome?</think>\ufeffParis\u200b</s>\n"
    table = rated(write(tmp_path, rows))
    em = table[table["metric"] == "em"].set_index(["query_id", "depth"])
    found = em.loc["q1", ["answer", "value", "abstained", "seems_abstained"]].dropna()
    assert {depth: tuple(row) for depth, *row in found.itertuples()} == {
        1: ("The passages do not say.", 0.0, 0, 1),
        4: ("Paris", 1.0, 0, 0),
        5: ("the Paris", 1.0, 0, 0),
        10: ("unknown", 0.0, 1, 0),
    }
    assert list(em["status"][[("q1", 3), ("q2", 5)]]) == ["failed", "not_applicable"]
    assert len(em) == 2 * 5, "a query that the table leaves out for a depth has its row all the same"
    assert set(table["model"]) == {"undeclared"}
    plain = {query_id: {"text": query.text, "answers": list(query.answers)} for query_id, query in QUERIES.items()}
    frame = pd.read_csv(tmp_path / "quality.csv", dtype={"query_id": "str", "run": "str"})
    assert rated(frame.assign(model="m"), plain).equals(table.assign(model="m").astype(table.dtypes))


def test_a_table_of_questions_and_answers_alone_is_enough(tmp_path: Path) -> None:
    path = write(tmp_path, "query_id,answer\nq1,Paris\nq2,So.\n")
    bare = rated(path, metrics="em")
    assert not {"run", "depth"} & set(bare)
    run = {"bm25": {"q1": {"d": 1.0}}}
    placed = rated(path, metrics="em", runs=run, depths=5)
    assert placed[["run", "depth"]].drop_duplicates().values.tolist() == [["bm25", 5]]
    with pytest.raises(DataError, match="answers table lacks column 'depth', and the depths are 1, 5"):
        rated(path, runs=run, depths=[1, 5])
    with pytest.raises(UsageError, match="needs docs, runs and depths; or imported="):
        jk.answer(queries=QUERIES)


def test_answers_are_told_apart_by_their_model_and_rated_by_an_llm_too(tmp_path: Path) -> None:
    rows = "query_id,answer,model\nq1,Paris,a\nq1,Rome,b\nq2,So.,b\n"
    table = rated(write(tmp_path, rows), metrics=["correct"], endpoints=jk.Endpoint("judge", URL, "m"))
    said = table[table["query_id"] == "q1"].set_index("model")
    assert dict(said["status"]) == {"a": "ok", "b": "ok"}
    assert dict(said["answer"]) == {"a": "Paris", "b": "Rome"}


def test_several_files_of_answers_are_one_table(tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.jsonl"
    one.write_text('[{"user_input": "Which city?", "query_id": "q1", "response": "Paris"}]')
    two.write_text(
        '{"query_id": "q1", "answer": "Rome", "run": "b"}\n{"query_id": "q2", "answer": "So.", "run": "b"}\n'
    )
    (found,) = read_answers([(one, "a"), (two, "a")], QUERIES, runs=["a", "b"], depths=[5])
    given = {(a.query.query_id, at.run): a.answer.text for a, places in found.given.items() for at in places}
    assert given == {("q1", "a"): "Paris", ("q2", "a"): "", ("q1", "b"): "Rome", ("q2", "b"): "So."}
    with pytest.raises(DataError, match=r"one\.json: the answers table lacks column 'run', and the runs are a, b"):
        read_answers([(one, None), (two, None)], QUERIES, runs=["a", "b"], depths=[5])
    with pytest.raises(DataError, match="two answers for model undeclared, run a, depth 5, query_id q1"):
        read_answers([(one, "a"), (one, "a")], QUERIES, runs=["a", "b"], depths=[5])
    two.write_text('{"query_id": "q1", "answer": "Rome", "run": "b", "mode": "vote"}\n')
    with pytest.raises(DataError, match=r"one\.json: lacks column 'mode', which other files have"):
        read_answers([(one, "a"), (two, None)], QUERIES, runs=["a", "b"], depths=[5])


def test_answers_that_were_made_from_other_documents_than_their_run_is_are_refused(tmp_path: Path) -> None:
    runs = {"a": Run("a", ["q1", "q1", "q1"], ["d1", "d2", "d3"], [3.0, 2.0, 1.0])}
    for context, fits in (("d2 d1", True), ('"[""d1"", ""d2""]"', True), ("d1 d3", False), ("d1", False), ("", False)):
        rows = f"run,depth,query_id,answer,context\na,2,q1,Paris,{context}\n"
        (found,) = read_answers(write(tmp_path, rows), QUERIES, runs=["a"], depths=[2])
        with nullcontext() if fits else pytest.raises(DataError, match="the top 2 of run 'a' is d1, d2"):
            check_contexts(found, runs)


PASSAGES = {"d1": {"text": "The city is Paris"}, "d2": {"text": "Somewhere else"}, "d3": {"text": "Paris"}}
LISTS = {"a": {"q1": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}}
JUDGE = jk.Endpoint("judge", URL, "m")


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        ("run,depth,query_id,answer\na,2,q1,Paris [1].\n", 1.0),
        ("depth,query_id,answer\n2,q1,Paris [2].\n", 0.0),
        ("depth,query_id,answer\n2,q1,Paris [3].\n", 0.0),
        ("depth,query_id,answer\n3,q1,Paris [3].\n", 1.0),
        # The application showed the second passage first, and its first mark means that one.
        ("run,depth,query_id,answer,context\na,2,q1,Paris [1].,d2 d1\n", 0.0),
        ("run,depth,query_id,answer,context\na,2,q1,Paris [2].,d2 d1\n", 1.0),
    ],
)
def test_an_imported_answer_is_rated_by_its_passages(rows: str, value: float, tmp_path: Path) -> None:
    given = {"docs": PASSAGES, "runs": LISTS, "endpoints": JUDGE}
    table = rated(write(tmp_path, rows), metrics=["citation_precision", "grounded"], **given)
    asked = table[table["query_id"] == "q1"].set_index("metric")
    assert dict(asked["status"]) == {"citation_precision": "ok", "grounded": "ok"}
    assert asked["value"]["citation_precision"] == value


def test_imported_answers_whose_passages_are_not_known_are_refused(tmp_path: Path) -> None:
    placed = write(tmp_path, "run,depth,query_id,answer\na,2,q1,Paris [1].\n")
    for lacking in ({"docs": PASSAGES}, {"runs": LISTS}, {}):
        with pytest.raises(UsageError, match=r"citation_recall: .* needs the documents and the runs"):
            rated(placed, metrics=["em", "citation_recall"], endpoints=JUDGE, **lacking)
    bare = write(tmp_path, "query_id,answer\nq1,Paris [1].\n")
    with pytest.raises(UsageError, match="needs the number of its documents: add a column depth"):
        rated(bare, metrics=["grounded"], endpoints=JUDGE, docs=PASSAGES, runs=LISTS)
    assert len(rated(bare, metrics=["grounded"], endpoints=JUDGE, docs=PASSAGES, runs=LISTS, depths=2)) == 2


def test_rows_of_an_evaluation_table_say_their_run(tmp_path: Path) -> None:
    path = tmp_path / "both.jsonl"
    row = '{"user_input": "Which city?", "response": "%s"%s}\n'
    path.write_text(row % ("Paris", ', "run": "a"') + row % ("Rome", ', "run": "b"'))
    table = read_table(ANSWERS, path)
    assert table[["answer", "run"]].values.tolist() == [["Paris", "a"], ["Rome", "b"]]
    assert table["query_id"].nunique() == 1
    path.write_text(row % ("Paris", ', "run": "a"') + row % ("Rome", ""))
    with pytest.raises(DataError, match="column 'run' of the answers table, row 2"):
        read_table(ANSWERS, path)


def test_the_number_0_is_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"run": "r", "depth": 1, "query_id": "q0", "answer": 0}\n')
    table = rated(path, {"q0": Query("q0", "How many?", ("0",))}, metrics="em")
    assert (table["answer"][0], table["value"][0]) == ("0", 1.0)


RATED = "run,depth,query_id,value\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,query_id\nr,q1\n", r"csv: the quality table lacks column 'value' \(it has: run, query_id\)"),
        (RATED + "r,1,q1,great\n", "line 2: column 'value': 'great' is neither a number nor a thumb "),
        (RATED + "r,-1,q1,1\n", "csv: depth must be a number of documents, at least 0, not -1"),
        (RATED + "r,1,q1,1\nr,1,q1,0\n", "two values for run r, depth 1, query_id q1, metric rating, model undeclared"),
    ],
)
def test_bad_files_are_errors_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_ratings(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run,depth,query_id,answer\nr,1,q9,x\n", "csv, line 2: query 'q9' is not among the queries"),
        ("query_id,response\nq1,x\n", r"csv: the answers table lacks column 'answer' \(it has: query_id, response\)"),
        ("run,query_id,answer\nother,q1,x\n", "csv, line 2: holds answers of run other, and the runs are r"),
        ("depth,query_id,answer\n7,q1,x\n", "csv, line 2: holds answers of depth 7, and the depths are 1"),
        ("query_id,answer\n", "csv: holds no answers"),
        ("query_id,answer\nq1,x\nq1,y\n", "csv, line 3: two answers for model undeclared, run r, depth 1, query_id q1"),
    ],
)
def test_answers_about_something_else_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        rated(write(tmp_path, text), runs={"r": {"q1": {"d": 1.0}}}, depths=1)


def test_one_model_cannot_be_declared_in_two_ways(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="that differs from answered_by = 'b': leave out one of them"):
        read_answers(write(tmp_path, "query_id,answer,model\nq1,x,a\n"), QUERIES, runs=[], depths=[], answered_by="b")
