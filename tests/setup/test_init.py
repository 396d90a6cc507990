import csv
import json
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgekit.data.forms import content_id
from judgekit.data.readers import read_queries
from judgekit.data.trec import read_qrels, read_run
from judgekit.experiment.file import load
from judgekit.setup.init import draft
from tests.data.test_exports import repeated
from tests.data.traces.test_reading import lines, spans
from tests.small import RUNS, YEARS, edited


@pytest.fixture
def data(folder: Path) -> Path:
    """The folder without its experiment and its judgments."""
    (folder / "experiment.toml").unlink()
    (folder / "gold.qrels").unlink()
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(path: Path, header: Iterable[str], cells: Iterable[Iterable[Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(cells)


def ranked(folder: Path, name: str) -> list[tuple[str, str, int, float]]:
    run = read_run(folder / f"{name}.trec")
    return [
        (q, d, rank, float(row.score))
        for q, some in run.frame().groupby("query_id")
        for rank, (d, row) in enumerate(zip(some["doc_id"], some.itertuples(), strict=True), 1)
    ]


def as_csv_with_ranks(folder: Path) -> None:
    for name in RUNS:
        table(folder / f"{name}.csv", ["qid", "docid", "rank"], [row[:3] for row in ranked(folder, name)])
        (folder / f"{name}.trec").unlink()
    judged = [(f"q{i}", f"d{i}{part}", value) for i in range(6) for part, value in (("a", 4), ("b", -2))]
    table(folder / "judged.csv", ["qid", "docid", "score"], judged)


def as_dictionaries(folder: Path) -> None:
    for name in RUNS:
        run: dict[str, dict[str, float]] = {}
        for query, doc, _, score in ranked(folder, name):
            run.setdefault(query, {})[doc] = score + 0.25
        (folder / f"{name}.json").write_text(json.dumps(run))
        (folder / f"{name}.trec").unlink()
    (folder / "gold.json").write_text(json.dumps({f"q{i}": {f"d{i}a": 1} for i in range(6)}))


def as_beir(folder: Path) -> None:
    docs = [{"_id": d["doc_id"], "title": d["title"], "text": d["text"]} for d in rows(folder / "docs.jsonl")]
    lines(folder / "corpus.jsonl", docs)
    asked = [{"_id": q["query_id"], "text": q["text"]} for q in rows(folder / "queries.jsonl")]
    lines(folder / "queries.jsonl", [*asked, *({"_id": f"train{i}", "text": "What else?"} for i in range(3))])
    (folder / "docs.jsonl").unlink()
    (folder / "qrels").mkdir()
    for split, ids in (("test", [(f"q{i}", f"d{i}a") for i in range(6)]), ("train", [("train0", "d0a")])):
        body = "".join(f"{q}\t{d}\t1\n" for q, d in ids)
        (folder / f"qrels/{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + body)


def as_dpr(folder: Path) -> None:
    queries, docs = rows(folder / "queries.jsonl"), {d["doc_id"]: d for d in rows(folder / "docs.jsonl")}
    for name in RUNS:
        found: dict[str, list[dict[str, Any]]] = {}
        for query, doc, _, score in ranked(folder, name):
            passage = {"id": doc, "title": docs[doc]["title"], "text": docs[doc]["text"], "score": score}
            found.setdefault(query, []).append(passage)
        entries = [{"question": q["text"], "answers": q["answers"], "ctxs": found[q["query_id"]]} for q in queries]
        (folder / f"{name}.json").write_text(json.dumps(entries))
        (folder / f"{name}.trec").unlink()
    (folder / "queries.jsonl").unlink()
    (folder / "docs.jsonl").unlink()


@pytest.mark.parametrize(
    ("make", "taken"),
    [
        (
            lambda folder: None,
            ["docs.jsonl     passages: 18\n                 doc_id → id, text → text, title → title\n"],
        ),
        (
            as_csv_with_ranks,
            [
                "run 'good': 6 questions, up to 3 documents each\n                 "
                "qid → query, docid → doc, rank → rank",
                "judged.csv     judgments: 6 of 6",
            ],
        ),
        (
            as_dictionaries,
            [
                "judgments: 6 of 6 questions, 6 with",
                "run 'poor': 6 questions",
                "the form 'dict'",
            ],
        ),
        (as_beir, ["questions: 6, none with reference answers", "qrels/train.tsv  not used: it judges none"]),
        (as_dpr, ["questions: 6, 6 with reference answers (the form 'dpr'); passages:", "run 'good'"]),
    ],
    ids=["TREC", "CSV with ranks", "dictionaries", "BEIR", "DPR"],
)
def test_init_writes_an_experiment_whose_dry_run_counts(make, taken, data, judgekit):
    make(data)
    said = judgekit("init", code=0)
    assert said.err == ("note: qrels/train.tsv judges none of the questions of the runs\n" if make is as_beir else "")
    assert said.out.endswith("Then plan, which asks no model:\n\n  judgekit plan experiment.toml\n")
    assert all(piece in said.out for piece in taken), said.out
    assert "label judge" in judgekit("run", "experiment.toml", "--dry-run", code=0).out
    assert len(load(data / "experiment.toml").runs) == 2
    assert judgekit("init").code == 2
    assert judgekit("init", "--overwrite").code == 0


@pytest.mark.parametrize(
    ("column", "cells", "line", "outcome"),
    [
        (
            "response",
            ["1412", "no"],
            "answers of your application\n                 qid → id, response → answer, run → run",
            "em",
        ),
        ("stars", [5, 2], "ratings of answers\n                 qid → query_id, stars → value, run → run", "rating"),
        (
            "thumb",
            ["up", "down"],
            "ratings of answers\n                 qid → query_id, thumb → value, run → run",
            "rating",
        ),
    ],
)
def test_what_is_known_of_answers_is_the_outcome_and_runs_without_a_server(
    column, cells, line, outcome, data, judgekit
):
    told = [(f"q{i}", name, cells[(i + at) % 2]) for at, name in enumerate(RUNS) for i in range(6)]
    table(data / "app.csv", ["qid", "run", column], told)
    said = judgekit("init", ".", code=0)
    assert f"app.csv        {line}" in said.out
    assert said.out.endswith("It needs no server. Then plan, which asks no model:\n\n  judgekit plan experiment.toml\n")
    result = judgekit("run", "experiment.toml", "--out", "results", code=0)
    assert f'outcome = "{outcome}"' in (data / "results" / "resolved.toml").read_text()
    assert "containment" in result.out


def judged_texts(data: Path) -> list[dict[str, Any]]:
    """Judgments of umbrela: of each question a passage that answers it and one that does not, by their texts."""
    docs = {doc["doc_id"]: doc["text"] for doc in rows(data / "docs.jsonl")}
    asked = {query["query_id"]: query["text"] for query in rows(data / "queries.jsonl")}
    judged = []
    for number in range(6):
        for part, grade in (("a", 3), ("b", 0)):
            pair = {"query": asked[f"q{number}"], "passage": docs[f"d{number}{part}"]}
            judged.append({"model": "m", **pair, "prediction": f"final score: {grade}", "judgment": grade})
    return judged


def test_judgments_of_texts_get_the_ids_of_the_files_beside_them(data, judgekit):
    judged = judged_texts(data)
    elsewhere = [{**judged[0], "query": "Who?"}, {**judged[0], "passage": "Nobody."}]
    lines(data / "umbrela.jsonl", [*judged, *elsewhere])
    said = judgekit("init", ".", code=0)
    assert "umbrela.jsonl           13 judgments, found by their texts: written to imported/umbrela.jsonl" in said.out
    assert "umbrela.jsonl: 1 of its 14 judgments are left out, since no other file holds their questions\n" in said.err
    assert (
        "umbrela.jsonl: no other file holds the texts of the passages of 1 of its 14 judgments: these count" in said.err
    )
    written = {(row["query_id"], row["doc_id"]): row["relevance"] for row in rows(data / "imported" / "umbrela.jsonl")}
    known = {(f"q{n}", f"d{n}{part}"): grade for n in range(6) for part, grade in (("a", 3), ("b", 0))}
    assert written == {**known, ("q0", content_id("", "Nobody.")): 3}
    assert 'qrels = "imported/umbrela.jsonl"' in (data / "experiment.toml").read_text()


def gold_in(data: Path) -> dict[str, str]:
    """The files of existing judgments in the experiment, by the name of the labeler."""
    labelers = tomllib.loads((data / "experiment.toml").read_text())["labelers"]
    return {labeler["name"]: labeler["qrels"] for labeler in labelers if labeler["kind"] == "provenance"}


def points(data: Path, number: int = 8) -> list[str]:
    """Write the responses of a store for two runs, of which only the first question finds its document, at rank 1."""
    for file in ("queries.jsonl", "docs.jsonl", "good.trec", "poor.trec"):
        (data / file).unlink()
    asked = [f"What is kept in hall {n}?" for n in range(number)]
    for run in ("bm25", "dense"):
        responses = []
        for n, question in enumerate(asked):
            ids = ["x0" if n == rank == 0 else f"{run}-{n}-{rank}" for rank in range(3)]
            found = [{"id": own, "score": 0.5, "payload": {"text": f"{own} is kept"}} for own in ids]
            responses.append({"query_id": f"q{n}", "question": question, "points": found})
        lines(data / f"{run}.jsonl", responses)
    return asked


@pytest.mark.parametrize("name", ["golden.json", "expected(alternatives=each):golden.json", "golden.csv", "rows.json"])
def test_expected_documents_that_no_run_found_count_as_such(name, data, judgekit):
    """Left out, they made every recall 1."""
    asked = points(data)
    expected = [(question.upper(), f"x{n}") for n, question in enumerate(asked)]
    golden = [{"query": question, "documents": [doc]} for question, doc in expected]
    if "alternatives" in name:
        golden = [{"query": question, "documents": [[doc, f"{doc}-too"]]} for question, doc in expected]
    elif name == "rows.json":  # a row for each document, so that the second asks its question again
        golden += [{"query": question, "documents": [f"{doc}-too"]} for question, doc in expected]
    if name == "golden.csv":
        table(data / name, ["question", "expected_ids"], [(question, json.dumps([doc])) for question, doc in expected])
    else:
        (data / name.split(":")[-1]).write_text(json.dumps(golden))
    judgekit("init", ".", name, code=0)
    ids = {f"x{n}" for n in range(8)}
    if "alternatives" in name or name == "rows.json":
        ids |= {f"{doc}-too" for doc in ids}
    (imported,) = (data / "imported").iterdir()
    assert {(row["query_id"], row["doc_id"]) for row in rows(imported)} == {(f"q{doc[1]}", doc) for doc in ids}
    said = judgekit("score", "--run", "bm25.jsonl", "--qrels", f"gold={imported}", "-m", "R@3 RR", code=0)
    recall = 8 / 8 / len(ids)
    assert said.out.split()[-2:] == [f"{recall:.4f}", "0.1250"]


def golden_rows(data: Path, *header: str) -> Path:
    """Write a golden set with a row for each document, of which the first question has two."""
    expected = [(n, question, f"x{n}") for n, question in enumerate(points(data))]
    expected.append((0, expected[0][1], "y0"))
    cells = {"query_id": 0, "question": 1}
    told = [(f"q{row[0]}", *row[1:]) for row in expected]
    table(data / "golden.csv", header, [[row[cells.get(name, 2)] for name in header] for row in told])
    return data / "golden.csv"


@pytest.mark.parametrize(
    ("header", "form"),
    [
        (("question", "expected_doc_id"), ""),
        (("query_id", "gold_doc"), ""),
        (("query_id", "question", "relevant_id"), ""),
        (("question", "doc_id"), "csv(text=question,expected=doc_id):"),
        (("query_id", "doc_id"), "csv(query=query_id,expected=doc_id):"),
    ],
)
def test_rows_of_expected_documents_are_judgments_without_a_grade(header, form, data, judgekit):
    """As questions they were not needed, and nothing said that the ids were not read."""
    golden_rows(data, *header)
    judgekit("init", ".", f"{form}golden.csv", code=0)
    ((name, qrels),) = gold_in(data).items()
    assert {(pair.query_id, pair.doc_id): pair.relevance for pair in read_qrels(qrels).table.itertuples()} == {
        **{(f"q{n}", f"x{n}"): 1.0 for n in range(8)},
        ("q0", "y0"): 1.0,
    }
    said = judgekit("score", "--run", "bm25.jsonl", "--qrels", f"{name}={qrels}", "-m", "R@3", code=0)
    assert said.out.split()[-1] == "0.0625"


@pytest.mark.parametrize(
    ("header", "form"),
    [
        (("question", "doc_id"), "csv(expected=doc_id, text=question)"),
        (("query_id", "doc_id"), "csv(expected=doc_id, query=query_id)"),
    ],
)
def test_documents_that_may_be_expected_or_found_are_asked_about(header, form, data, judgekit):
    golden_rows(data, *header)
    said = judgekit("init", ".", code=0)
    assert "golden.csv is not used: its rows name questions and documents, but not whether these should" in said.err
    assert f"write {form}:golden.csv if they should; if a run found them, add their ranks" in said.err
    named = judgekit("init", ".", f"csv(query={header[0]},doc=doc_id):golden.csv", "--overwrite", code=2)
    assert f"If these documents should be found, write {form}:golden.csv" in named.err
    proposed = said.err.split("judgekit init ")[1].splitlines()[0]
    judgekit("init", *shlex.split(proposed), code=0)
    assert [*gold_in(data)] == ["golden"]


def test_questions_beside_expected_documents_are_those_of_the_experiment(data, judgekit):
    asked = rows(data / "queries.jsonl")
    told = [(q["query_id"], q["text"], q["answers"][0], f"d{n}a") for n, q in enumerate(asked)]
    table(data / "golden.csv", ["query_id", "question", "answer", "expected_doc_id"], told)
    (data / "queries.jsonl").unlink()
    said = judgekit("init", ".", code=0)
    assert "questions: 6, 6 with reference answers; judgments: 6 of 6 questions" in said.out
    truths = [{"question": q, "ground_truth": right, "gold_doc_id": doc} for _, q, right, doc in told]
    lines(data / "truths.jsonl", truths)
    lines(data / "queries.jsonl", asked)
    (data / "golden.csv").unlink()
    said = judgekit("init", ".", "--overwrite", code=0)
    assert "6 judgments, found by their texts: written to imported/truths.jsonl" in said.out


def test_a_document_beside_each_question_is_told_to_judge_nothing_until_it_is_expected(data, judgekit):
    told = [(q["query_id"], q["text"], f"d{n}a") for n, q in enumerate(rows(data / "queries.jsonl"))]
    (data / "queries.jsonl").unlink()
    table(data / "golden.csv", ["query_id", "question", "doc_id"], told)
    said = judgekit("init", ".", code=0)
    assert "'doc_id' judges nothing: if it names the document that should be found, rename it" in said.out
    assert not gold_in(data)
    table(data / "golden.csv", ["query_id", "question", "expected_doc_id"], told)
    said = judgekit("init", ".", "--overwrite", code=0)
    assert "judges nothing" not in said.out
    assert [*gold_in(data)] == ["golden"]


@pytest.mark.parametrize("cell", ["d0a;d0b", '["d0a"]', "d0a d0b"])
def test_several_expected_documents_in_a_cell_are_refused(cell, data, judgekit):
    table(data / "golden.csv", ["query_id", "gold_doc_id"], [("q1", "d1a"), ("q0", cell)])
    said = judgekit("score", "--run", "good.trec", "--qrels", "golden.csv", code=2)
    assert f"line 3: 'gold_doc_id' must be one id, not {cell!r}: write a row for each document" in said.err


def test_a_golden_set_of_which_nothing_was_found_judges_the_questions(data, judgekit):
    golden = [{"query": question, "documents": [f"y{n}"]} for n, question in enumerate(points(data))]
    (data / "golden.json").write_text(json.dumps(golden))
    said = judgekit("init", ".", code=0)
    assert "imported/golden.jsonl judges none of the passages that the runs found" in said.err
    assert "none of the questions" not in said.out + said.err


def test_a_document_that_is_expected_with_two_grades_is_a_problem(data, judgekit):
    question, *_ = points(data)
    golden = [{"query": q, "documents": ["x0"], "grades": [n]} for n, q in enumerate((question, question.upper()), 1)]
    (data / "golden.json").write_text(json.dumps(golden))
    said = judgekit("init", ".", code=2)
    assert "golden.json: 'x0' for query 'q0' has the grades 1 and 2: keep one of them" in said.err


def with_gold(data: Path, name: str, gold: Mapping[int, str], **more: Any) -> None:
    """Write what an application found and should have found, as ragas keeps it, all by its text."""
    docs = {doc["doc_id"]: doc["text"] for doc in rows(data / "docs.jsonl")}
    records = application(data, name, 4)
    for n, record in enumerate(records):
        record |= {"reference_contexts": [docs.get(gold[n], gold[n])]} | {key: [f"g{n}"] for key in more}
    lines(data / f"{name}.jsonl", records)
    (data / f"{name}.trec").unlink()


@pytest.mark.parametrize("ids", [{}, {"reference_context_ids": True}], ids=["texts", "ids beside texts"])
@pytest.mark.parametrize("asked", ["by text", "by id"])
def test_gold_passages_that_all_exports_repeat_are_one_labeler(ids, asked, data, judgekit):
    """Two were named like the runs; with ids of their own, or questions beside them, there was none."""
    gold = {n: f"d{n}a" for n in range(5)} | {5: "Nobody found this."}
    for name in RUNS:
        with_gold(data, name, gold, **ids)
    (data / "docs.jsonl").unlink()
    if asked == "by text":
        (data / "queries.jsonl").unlink()
    judgekit("init", ".", code=0)
    held = tomllib.loads((data / "experiment.toml").read_text())
    ((name, qrels),) = gold_in(data).items()
    runs = [word for run, file in held["runs"].items() for word in ("--run", f"{run}={file}")]
    said = judgekit("score", *runs, "--qrels", f"{name}={qrels}", "-m", "R@3", code=0)
    assert name == "gold"
    assert [line.split() for line in said.out.splitlines()[1:]] == [
        ["gold", "good", "0.8333"],
        ["gold", "poor", "0.3333"],
    ]


def test_gold_passages_in_which_exports_differ_are_told(data, judgekit):
    same = {n: f"d{n}a" for n in range(6)}
    with_gold(data, "good", same)
    with_gold(data, "poor", same | {5: "d5b"})
    said = judgekit("init", ".", code=0)
    assert "differ, so that each file is a labeler of its own" in said.err
    assert [*gold_in(data)] == ["gold-good", "gold-poor"]


def test_score_says_why_judgments_of_texts_meet_no_run(data, judgekit):
    lines(data / "umbrela.jsonl", judged_texts(data))
    said = judgekit("score", "--run", "good.trec", "--qrels", "umbrela.jsonl", code=2)
    assert "its ids are made of texts. judgekit init, given the questions and passages too, writes it" in said.err


def test_gold_passages_of_a_golden_set_get_the_ids_of_the_collection(data, judgekit):
    docs = {doc["doc_id"]: doc["text"] for doc in rows(data / "docs.jsonl")}
    golden = [
        {"user_input": query["text"], "reference": query["answers"][0], "reference_contexts": [docs[f"d{number}a"]]}
        for number, query in enumerate(rows(data / "queries.jsonl"))
    ]
    lines(data / "golden.jsonl", golden)
    said = judgekit("init", ".", code=0)
    assert "6 judgments, found by their texts: written to imported/golden.jsonl with their ids" in said.out
    written = {(row["query_id"], row["doc_id"]): row["relevance"] for row in rows(data / "imported" / "golden.jsonl")}
    assert written == {(f"q{number}", f"d{number}a"): 1 for number in range(6)}


def application(data: Path, name: str, right: int, **more: str) -> list[dict[str, Any]]:
    """What an application answered from a run, of which the first answers are right, as ragas keeps it."""
    docs, found = {d["doc_id"]: d["text"] for d in rows(data / "docs.jsonl")}, ranked(data, name)
    return [
        {
            "user_input": q["text"],
            "reference": q["answers"][0],
            "retrieved_contexts": [docs[doc] for query, doc, _, _ in found if query == q["query_id"]],
            "response": q["answers"][0] if i < right else "no",
            **more,
        }
        for i, q in enumerate(rows(data / "queries.jsonl"))
    ]


def test_a_column_that_may_name_runs_is_told_with_the_spelling_that_says_so(data, judgekit):
    """As one run each question is asked twice, which mixes the answers of two models."""
    lines(data / "app.jsonl", [*application(data, "good", 4, model="a"), *application(data, "poor", 2, model="b")])
    said = judgekit("init", ".", code=0)
    assert "app.jsonl: each question stands in several rows, which 'model' tells apart" in said.err
    assert "--overwrite" in said.err.split("If 'model' names runs: ")[1].splitlines()[0]
    command = said.err.split("If 'model' names runs: judgekit ")[1].splitlines()[0]
    again = judgekit(*shlex.split(command), code=0)
    assert "app.jsonl           2 runs, each written to a file: imported/a.jsonl, imported/b.jsonl" in again.out
    assert "tells apart" not in again.err


def test_results_with_ids_alone_get_the_ids_of_their_questions(data, judgekit):
    """ragas' table of ids has no texts of passages, and sentence-transformers' predictions have none either."""
    found = ranked(data, "good")
    asked = rows(data / "queries.jsonl")
    ids = {q["query_id"]: [doc for of, doc, *_ in found if of == q["query_id"]] for q in asked}
    table_ = [{"user_input": q["text"], "retrieved_context_ids": ids[q["query_id"]], "response": "no"} for q in asked]
    lines(data / "app.jsonl", table_)
    predicted = []
    for q in asked:
        results = [{"corpus_id": doc, "score": 9.0 - place} for place, doc in enumerate(ids[q["query_id"]][::-1])]
        predicted.append({"query_id": q["query_id"], "query": q["text"], "results": results})
    lines(data / "predicted.jsonl", predicted)
    said = judgekit("init", ".", code=0)
    assert "results for 6 questions of queries.jsonl, found by their text: written to imported/app.jsonl" in said.out
    lists = read_run(data / "imported" / "app.jsonl")
    assert {query_id: lists.top(query_id) for query_id in ids} == ids
    lists = read_run(data / "predicted.jsonl")
    assert {query_id: lists.top(query_id)[::-1] for query_id in ids} == ids
    assert {*load(data / "experiment.toml").runs} == {"good", "poor", "app", "predicted"}


@pytest.mark.parametrize("name", ["autojudge-1.1.0/board.*", "autojudge-1.1.0/*.eval", "pyterrier-1.0/perquery.csv"])
def test_scores_of_other_tools_are_neither_judgments_nor_runs(name, data, judgekit):
    exports = list((Path(__file__).parent.parent / "exports").glob(name))
    for path in exports:
        shutil.copy(path, data)
    said = judgekit("init", ".", code=0)
    for path in exports:
        assert f"{path.name} " in said.out
    assert said.out.count("scores by query, which `judgekit compare --scores NAME=FILE` takes") == len(exports) > 0
    assert not said.err
    assert {*load(data / "experiment.toml").runs} == {*RUNS}


def test_repetitions_in_rows_of_passages_are_written_as_runs(data, judgekit):
    """open-rag-eval's connectors write a row for each passage; each repetition becomes a file of its own."""
    for path in data.iterdir():
        path.unlink()
    repeated(data / "repeated.csv")
    refused = judgekit("init", ".", code=2)
    assert "which 'query_run' tells apart (1, 2)" in refused.err
    form = refused.err.split(" to take one of them, or ")[1].split(":")[0]
    said = judgekit("init", ".", f"{form}:repeated.csv", code=0)
    assert "2 runs, each written to a file: imported/1.jsonl, imported/2.jsonl" in said.out
    runs = load(data / "experiment.toml").runs
    lists = [read_run(run.file) for run in runs.values()]
    assert [len(each.query_ids) for each in lists] == [8, 8]
    assert {len(each.top(query_id)) for each in lists for query_id in each.query_ids} == {3}


def responses(data: Path) -> dict[str, list[dict[str, Any]]]:
    """What a search engine says of each question, by run, in place of the runs' files."""
    said: dict[str, list[dict[str, Any]]] = {}
    for name in RUNS:
        found = ranked(data, name)
        (data / f"{name}.trec").unlink()
        for query in rows(data / "queries.jsonl"):
            hits = [{"_id": doc, "_score": score} for of, doc, _, score in found if of == query["query_id"]]
            said.setdefault(name, []).append({"took": 1, "timed_out": False, "hits": {"hits": hits}})
    return said


def test_a_folder_with_a_response_for_each_question_is_a_run(data, judgekit):
    before = {name: ranked(data, name) for name in RUNS}
    asked = [query["query_id"] for query in rows(data / "queries.jsonl")]
    for name, said in responses(data).items():
        (data / "responses" / name).mkdir(parents=True)
        for query_id, response in zip(asked, said, strict=True):
            (data / "responses" / name / f"{query_id}.json").write_text(json.dumps(response, indent=1))
    said = judgekit("init", ".", code=0)
    assert "tells apart" not in said.err
    runs = load(data / "experiment.toml").runs
    for name in RUNS:
        assert f"responses/{name}  " in said.out
        lists = read_run(runs[name].file)
        assert [(q, doc) for q in asked for doc in lists.top(q)] == [(q, doc) for q, doc, *_ in before[name]]


def test_a_folder_of_json_files_takes_the_experiment_of_its_own(data, judgekit):
    """A folder that is read as one table is an input, which no command replaces."""
    for path in data.iterdir():
        path.unlink()
    for run in ("bm25", "dense"):
        shutil.copy(Path(__file__).parent.parent / "exports" / "inspect_ai-0.3.285" / f"{run}.json", data)
    judgekit("init", ".", code=0)
    assert {*load(data / "experiment.toml").runs} == {"bm25", "dense"}


def test_init_reads_responses_in_the_order_of_the_queries_by_the_cure_that_it_names(data, judgekit):
    before = {name: ranked(data, name) for name in RUNS}
    for name, said in responses(data).items():
        (data / f"{name}.json").write_text(json.dumps({"took": 1, "responses": said}))
    refused = judgekit("init", ".", code=2)
    assert f"{next(iter(RUNS))}.json: a response of a search engine does not say what it was asked" in refused.err
    form = refused.err.split("write elasticsearch(")[1].split(":FILE")[0].replace("QUERIES", "queries.jsonl")
    judgekit("init", ".", *(f"elasticsearch({form}:{name}.json" for name in RUNS), code=0)
    runs = load(data / "experiment.toml").runs
    for name in RUNS:
        lists = read_run(runs[name].file)
        assert [(q, doc) for q in lists.query_ids for doc in lists.top(q)] == [(q, doc) for q, doc, *_ in before[name]]


def test_a_question_that_a_result_asks_again_counts_once(data, judgekit):
    asked_again = [*application(data, "good", 4), *application(data, "good", 4)[:2]]
    lines(data / "app.jsonl", asked_again)
    said = judgekit("init", ".", code=0)
    assert "app.jsonl: 2 of its 8 rows ask a question again, and only the first of each is used" in said.err
    assert len(rows(data / "imported" / "app.jsonl")) == 6


def test_ids_of_passages_in_a_table_join_with_the_collection(data, judgekit):
    found = ranked(data, "good")
    rows_ = [
        {
            "question": query["text"],
            "contexts": [doc for of, doc, *_ in found if of == query["query_id"]],
            "answer": "no",
        }
        for query in rows(data / "queries.jsonl")
    ]
    lines(data / "app.jsonl", rows_)
    refused = judgekit("init", ".", code=2)
    assert "app.jsonl: line 1: the passages look like ids ('d0a'): write rag(passages=ids):" in refused.err
    judgekit("init", ".", "rag(passages=ids):app.jsonl", code=0)
    assert len(load(data / "experiment.toml").runs) == 3


def _in_two_files(folder: Path) -> None:
    asked = rows(folder / "queries.jsonl")
    lines(folder / "queries.jsonl", [{"query_id": q["query_id"], "text": q["text"]} for q in asked])
    table(folder / "gold.csv", ["query_id", "answer"], [(q["query_id"], q["answers"][0]) for q in asked])


def _in_two_files_by_text(folder: Path) -> None:
    asked = rows(folder / "queries.jsonl")
    _in_two_files(folder)
    (folder / "gold.csv").unlink()
    told = [(q["text"].upper(), q["answers"][0]) for q in asked]
    table(folder / "gold.csv", ["question", "reference"], [*told, ("And then?", "Nothing")])


def _in_two_halves(folder: Path) -> None:
    asked = rows(folder / "queries.jsonl")
    lines(folder / "queries.jsonl", asked[:4])
    lines(folder / "rest.jsonl", asked[4:])
    lines(folder / "others.jsonl", [{"query_id": "x1", "text": "And then?"}])


def _thumbs_by_text(folder: Path) -> None:
    asked = rows(folder / "queries.jsonl")
    told = [(q["text"], run, thumb) for q in asked for run, thumb in (("good", "up"), ("poor", "down"))]
    table(folder / "thumbs.csv", ["question", "run", "thumbs"], told)


@pytest.mark.parametrize(
    ("make", "taken", "files"),
    [
        (
            _in_two_files,
            ["gold.csv       reference answers to 6 questions, written to imported/questions.jsonl"],
            ["imported/questions.jsonl"],
        ),
        (
            _in_two_files_by_text,
            [
                "gold.csv           6 rows whose questions were found by their text: written to imported/gold.csv",
                "imported/gold.csv  reference answers to 6 questions, written to imported/questions.jsonl",
                "gold.csv: 1 of its 7 rows are left out, since no other file holds their questions",
            ],
            ["imported/gold.csv", "imported/questions.jsonl"],
        ),
        (
            _in_two_halves,
            [
                "rest.jsonl     more questions: 2, 2 with reference answers; all are written to",
                "others.jsonl   not used: no run holds a question that only this file has",
            ],
            ["imported/questions.jsonl"],
        ),
        (
            _thumbs_by_text,
            ["thumbs.csv           12 rows whose questions were found by", "imported/thumbs.csv  ratings of answers"],
            ["imported/thumbs.csv"],
        ),
    ],
    ids=["references by id", "references by text", "halves", "thumbs by text"],
)
def test_what_stands_in_several_files_comes_together(make, taken, files, data, judgekit):
    make(data)
    said = judgekit("init", code=0)
    assert all(piece in said.out + said.err for piece in taken), said.out + said.err
    assert sorted(str(path.relative_to(data)) for path in (data / "imported").iterdir()) == files
    queries = load(data / "experiment.toml").files()["queries"]
    assert [query.answers for query in read_queries(queries).values()] == [(year,) for year in YEARS]
    outcome = "rating" if make is _thumbs_by_text else "em"
    assert load(data / "experiment.toml").answers.outcome == outcome
    judgekit("run", "experiment.toml", "--dry-run", code=0)
    again = judgekit("init", code=2)
    assert (again.out, "experiment.toml already exists" in again.err) == ("", True)


def test_lists_of_a_table_of_questions_are_named_as_left_with_how_to_read_passages(data, judgekit):
    queries = rows(data / "queries.jsonl")
    for query in queries:
        query |= {"question": query.pop("text"), "found": [{"text": "two words"}], "tags": ["a"]}
    lines(data / "queries.jsonl", queries)
    said = judgekit("init", code=0)
    assert "not used: found, tags; if passages stand there, write rag(question=question," in said.out
    assert "contexts=found):queries.jsonl" in said.out


@pytest.mark.parametrize("field", ["document", "retrieved", "note"])
def test_of_rows_that_no_reader_takes_the_file_is_named_that_they_came_from(field, data, judgekit):
    lines(data / "qd.jsonl", [{"question": q["text"], field: "x"} for q in rows(data / "queries.jsonl")])
    said = judgekit("init", code=0)
    (line,) = (line for line in said.out.splitlines() if line.startswith("qd.jsonl"))
    assert line.endswith(f"not used: judgekit reads no file with these columns: question, {field}")
    assert "imported" not in said.out + said.err
    assert not (data / "imported").exists()


@pytest.mark.parametrize("named", [True, False])
def test_a_table_of_each_application_holds_the_answers_of_its_run(named, data, judgekit):
    (data / "apps").mkdir()
    for name, right in (("good", 5), ("poor", 2)):
        answered = application(data, name, right, **({"run": name} if named else {}))
        (data / "apps" / f"{name}.json").write_text(json.dumps(answered))
    said = judgekit("init", "apps", code=0)
    assert (said.err, "It needs no server" in said.out) == ("", True)
    judgekit("run", "apps/experiment.toml", "--out", "results", code=0)
    answered = pd.read_parquet(data / "results" / "answers" / "answer-short.parquet")
    means = answered[answered["metric"] == "em"].groupby("run")["value"].mean()
    assert means.to_dict() == {"good": 5 / 6, "poor": 2 / 6}


def test_answers_that_fit_no_run_are_a_problem_and_other_questions_are_noted(data, judgekit):
    both = [row for name in RUNS for row in application(data, name, 3, run=name)]
    (data / "apps").mkdir()
    (data / "apps" / "both.json").write_text(json.dumps(both))
    said = judgekit("init", "apps", code=0)
    assert "2 runs, each written to a file: imported/good.jsonl, imported/poor.jsonl" in said.out
    assert load(data / "apps" / "experiment.toml").runs.keys() == {"good", "poor"}
    shutil.rmtree(data / "apps")
    (data / "apps").mkdir()
    good, poor = (application(data, name, 3) for name in RUNS)
    good[-1]["user_input"] = "What else?"
    (data / "apps" / "good.json").write_text(json.dumps(good))
    (data / "apps" / "poor.json").write_text(json.dumps([*poor, {**poor[-1], "user_input": "And then?"}]))
    assert "the answers of good.json are not used: query 'q" in judgekit("init", "apps", code=0).err
    assert load(data / "apps" / "experiment.toml").answers.imported == ["poor.json"]


def test_one_table_of_an_application_is_a_whole_experiment(data, judgekit):
    lines(data / "app.jsonl", application(data, "poor", 3))
    said = judgekit("init", "app.jsonl", "--out", "new", code=0)
    assert "(the form 'ragas'); passages: 15; run 'app': 6 questions, up to 3 documents each; answers" in said.out
    assert judgekit("run", "new/experiment.toml", "--out", "results").code == 0


def _distances(folder: Path) -> None:
    body = "".join(f"{q} Q0 {d} {rank} {-score} x\n" for q, d, rank, score in ranked(folder, "poor"))
    (folder / "poor.trec").write_text(body)


def _pilot(folder: Path) -> None:
    more = [{"query_id": f"x{i}", "text": f"What else {i}?", "answers": ["1"]} for i in range(10)]
    lines(folder / "queries.jsonl", [*more, *rows(folder / "queries.jsonl")])


CONTRADICTIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "distances": (_distances, "run 'poor' (poor.trec): its scores contradict its ranks (always"),
    "empty": (
        lambda folder: edited(folder / "docs.jsonl", "The stone bridge of Arlen was built in 1412 by masons.", ""),
        "1 of the 18 passages that runs found have no text, first 'd0a'",
    ),
    "copies": (
        lambda folder: edited(folder / "docs.jsonl", "flood in 1533", "flood in 1412"),
        "1 of the 18 passages that runs found repeat the text of another",
    ),
    "same run": (
        lambda folder: shutil.copy(folder / "good.trec", folder / "copy.trec"),
        "runs 'copy' and 'good' hold the same lists: leave out one",
    ),
    "pilot": (_pilot, "the runs hold 6 of 16 questions: the experiment uses only these"),
    "unknown doc": (
        lambda folder: edited(folder / "poor.trec", "d0b", "z9"),
        "poor.trec does not join: run 'poor' has 1 of its",
    ),
    "unknown query": (lambda folder: edited(folder / "poor.trec", "q5 ", "q4x "), "1 of its 6 queries missing"),
    "question twice": (
        lambda folder: edited(folder / "queries.jsonl", "Borvik", "Arlen"),
        "note: 6 rows, 5 different questions (repeated texts are one question): all limits count 5.\n"
        'note: 1 repeated text has different reference answers: groups = "none" counts them apart.\n',
    ),
    "few answers": (
        lambda folder: table(
            folder / "app.csv", ["query_id", "run", "answer"], [(f"q{i}", "good", 1) for i in range(6)]
        ),
        "there are no answers of run poor",
    ),
    "a damaged table of unknown columns": (
        lambda folder: (folder / "bad.csv").write_text("Frage;Daumen\nWer?;1\nWas?;1;1\n") and _pilot(folder),
        "the runs hold 6 of 16 questions: the experiment uses only these",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_are_said_before_anything_is_paid(name, data, judgekit):
    change, sentence = CONTRADICTIONS[name]
    change(data)
    said = judgekit("init", code=0)
    assert sentence in said.err
    counted = judgekit("run", "experiment.toml", "--dry-run")
    assert (counted.code, "have no text" in counted.err) == (0, "have no text" in sentence)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("bad.csv", b"question,thumb\nWho?,up\nWhy?\n", "bad.csv, line 3: the header has 2 columns, this row 1"),
        ("poor.trec", b"q0 Q0 d0\xe9a 1 2.0 x\n", "poor.trec, line 1: byte 9 of the line is not UTF-8"),
        ("more.trec", b"", "more.trec: is empty"),
        ("more.csv", b"query_id,doc_id,score\n", "more.csv: it holds no records"),
        ("more.csv", b"query_id,doc_id,score\nq0,d0a,1.5\nq0,d0b,nan\n", "more.csv, line 3: "),
        ("more.csv", b"query_id,text\nq0,\xe4\n", "more.csv: line 2: byte 4 of the line is not UTF-8"),
        ("app.csv", b"query_id,run,thumb\nq0,good,up\nq0,best,up\n", "app.csv: its runs are best, good, and those"),
        ("app.csv", b"query_id,run,thumb\nq0,good,up\nq0,poor,hm\n", "app.csv, line 3: column 'value': 'hm' is neith"),
        ("app.csv", b"query_id,thumb\nq0,up\n", "app.csv: its rows name no run (good, poor)"),
    ],
)
def test_a_file_that_is_clearly_meant_and_cannot_be_used_is_a_problem(name, content, problem, data, judgekit):
    (data / name).write_bytes(content)
    said = judgekit("init", code=2).err
    assert f"judgekit: {problem}" in said
    assert "out by naming the other files." in said
    assert not (data / "experiment.toml").exists()


def test_a_file_that_the_user_names_and_that_cannot_be_used_is_a_problem(data, judgekit):
    (data / "scan.pdf").write_bytes(b"%PDF")
    (data / "other.csv").write_text("Nr,Daumen\n1,hoch\n")
    judgekit("init", ".", code=0)
    said = judgekit("init", ".", "scan.pdf", "other.csv", "--overwrite", code=2).err
    assert "scan.pdf: save its text as .txt or .md. Mend it, or leave it out" in said
    assert "judgekit init . 'csv(id=…,text=…):other.csv' --overwrite" in said


def test_answers_to_other_questions_are_left_for_that_reason(data, judgekit):
    """Their columns are known: what does not fit is the questions."""
    given = [(f"Who wrote book {i}?", name, "Ada") for name in RUNS for i in range(6)]
    table(data / "answers.csv", ["question", "run", "answer"], given)
    said = judgekit("init", ".", code=0)
    why = "none of its rows asks one of the questions, by their texts; its first asks 'Who wrote book 0?'"
    assert f"answers.csv is not used: {why}" in said.err
    assert "what its columns hold" not in said.err + said.out
    shown = judgekit("init", ".", "answers.csv", "--overwrite", code=2).err
    assert why in shown


@pytest.mark.parametrize("judged", [False, True])
def test_questions_that_are_documents_are_left_out_of_their_own_lists(judged, data, judgekit):
    """As ArguAna's, whose judgments say nothing of a query's own document; one that is judged relevant stays."""
    asked = {query["query_id"]: query["text"] for query in rows(data / "queries.jsonl")}
    own = [{"doc_id": query_id, "text": text} for query_id, text in asked.items()]
    lines(data / "docs.jsonl", [*rows(data / "docs.jsonl"), *own])
    for name in RUNS:
        first = "".join(f"{query_id} Q0 {query_id} 1 99 {name}\n" for query_id in asked)
        (data / f"{name}.trec").write_text(first + (data / f"{name}.trec").read_text())
    if judged:
        (data / "gold.qrels").write_text("".join(f"{query_id} 0 {query_id} 1\n" for query_id in asked))
    said = judgekit("init", ".", code=0).err
    assert load(data / "experiment.toml").data.drop_self is not judged
    assert ("drop_self = true leaves it out" in said) is not judged


def test_thumbs_of_several_users_need_the_column_of_users(data, judgekit):
    given = [(f"q{i}", name.upper(), who, "up") for who in "ab" for name in RUNS for i in range(6)]
    table(data / "app.csv", ["Nr", "Version", "Nutzer", "Daumen"], given)
    spelled = "csv(query_id=Nr,value=Daumen,run=Version):app.csv"
    said = judgekit("init", ".", spelled, code=2).err
    assert "judgekit: app.csv, line 14: rates an answer that an earlier line rates" in said
    assert "'csv(query_id=Nr, run=Version, value=Daumen, cluster=…):app.csv'" in said
    said = judgekit("init", ".", spelled.replace("Version)", "Version,cluster=Nutzer)"), code=0)
    assert "Nutzer → cluster" in said.out
    assert load(data / "experiment.toml").answers.declared.cluster == "Nutzer"
    judgekit("run", "experiment.toml", "--dry-run", code=0)


def test_a_pilot_asks_about_its_own_questions_only(data, judgekit):
    _pilot(data)
    assert judgekit("init").code == 0
    assert [row["query_id"] for row in rows(data / "pilot.jsonl")] == [f"q{i}" for i in range(6)]
    assert load(data / "experiment.toml").data.queries == "pilot.jsonl"
    lines(data / "queries.jsonl", rows(data / "queries.jsonl")[10:])
    (data / "pilot.jsonl").unlink()
    lines(data / "queries.jsonl", rows(data / "queries.jsonl")[:3])
    (data / "poor.trec").rename(data / "all.trec")
    said = judgekit("init", "--overwrite")
    assert "run 'all-runs'" in said.out
    assert "run 'good' has 3 queries that the query file lacks; they are left out" in said.err
    assert "they are left out" in judgekit("run", "experiment.toml", "--dry-run", code=0).err


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["docs.jsonl"], ["no questions and no runs here"]),
        (["nowhere"], ["nowhere: no such file or folder"]),
        (["empty"], ["holds no files of data"]),
        (["traces.jsonl"], ["judgekit traces traces.jsonl --out data"]),
        (["results"], ["holds results of judgekit"]),
        (["gold.qrels"], ["gold.qrels  not used: it looks like judgments, but there are no questions and no passages"]),
        (
            ["two.csv"],
            ["two.csv  not used: line 2: has 'query_id' and 'qid'; choose one, e.g. csv(id=query_id):two.csv"],
        ),
        (
            ["csv(id=Nr,text=Fragen):fragen.csv"],
            ["unknown column 'Fragen': choose from Nr, Frage. Did you mean 'Frage'"],
        ),
        (["csv(id=Nr,txt=Frage):fragen.csv"], ["unknown option 'txt': choose from answer, answers, "]),
        (
            ["fragen.csv"],
            ["name its columns, csv(id=…,text=…,answers=…):fragen.csv", "init . 'csv(id=…,text=…):fragen.csv'"],
        ),
    ],
)
def test_what_is_lacking_is_said(names, words, data, judgekit):
    (data / "empty").mkdir()
    lines(data / "traces.jsonl", spans("t0", "When was mill 0 burnt?", "1850", 0))
    (data / "gold.qrels").write_text("q0 0 d0a 1\n")
    (data / "fragen.csv").write_text("Nr,Frage\nq0,Wer?\n")
    (data / "two.csv").write_text("query_id,qid,text\nq0,1,who?\n")
    (data / "results").mkdir()
    (data / "results" / "resolved.toml").write_text("# Paths are relative to /\n")
    said = judgekit("init", *names, code=2)
    assert all(word in said.out + said.err for word in words), said.err
    assert not list(data.rglob("experiment.toml"))


def test_ids_decide_between_questions_and_passages_with_the_same_fields(data):
    for name in ("queries", "docs"):
        flat = [{"id": row[next(iter(row))], "text": row["text"]} for row in rows(data / f"{name}.jsonl")]
        lines(data / f"{'ab'[name == 'docs']}.jsonl", flat)
        (data / f"{name}.jsonl").unlink()
    taken = {file.name: file.taken for file in draft([data]).files}
    assert taken["a.jsonl"].startswith("questions: 6, none")
    assert taken["b.jsonl"].startswith("passages: 18")


def test_runs_are_named_before_their_files_as_in_other_commands(data, judgekit):
    files = ["queries.jsonl", "docs.jsonl", "first=good.trec", "second=trec:poor.trec", "questions=queries.jsonl"]
    said = judgekit("init", *files[:4], "--out", "made", code=0)
    assert set(load(data / "made" / "experiment.toml").runs) == {"first", "second"}
    assert "names runs only" not in said.err
    said = judgekit("init", files[4], *files[1:4], "--out", "other", code=0)
    assert "queries.jsonl: NAME=FILE names runs only, and this is not a run" in said.err


def by_pyterrier(data: Path) -> None:
    """Write the runs as PyTerrier's frames, whose rows hold the texts of the question and the passage."""
    asked = {q["query_id"]: q["text"] for q in rows(data / "queries.jsonl")}
    docs = {d["doc_id"]: d["text"] for d in rows(data / "docs.jsonl")}
    for name in RUNS:
        told = [
            (q, number, doc, rank, score, asked[q], docs[doc])
            for number, (q, doc, rank, score) in enumerate(ranked(data, name))
        ]
        table(data / f"{name}.csv", ["qid", "docid", "docno", "rank", "score", "query", "text"], told)
        (data / f"{name}.trec").unlink()
    table(data / "scores.csv", ["name", "qid", "measure", "value"], [("good", "q0", "ndcg_cut_3", 0.5)])


def test_rows_of_a_run_hold_its_questions_and_passages_too(data, judgekit):
    """There were no passages, and the cure named the file of scores."""
    by_pyterrier(data)
    asked, docs = rows(data / "queries.jsonl"), {d["doc_id"]: d["text"] for d in rows(data / "docs.jsonl")}
    said = judgekit("init", ".", code=0)
    assert "docno → doc" in said.out  # what the reader takes for the id
    assert "not used: docid, query, text" in said.out
    assert not (data / "imported").exists()
    (data / "docs.jsonl").unlink()
    (data / "queries.jsonl").unlink()
    said = judgekit("init", ".", "--overwrite", code=0)
    assert "text: written to imported/passages-of-runs.jsonl, query: written to imported/questions" in said.out
    assert "not used: docid\n" in said.out
    assert rows(data / "imported" / "questions-of-runs.jsonl") == [
        {"query_id": q["query_id"], "text": q["text"]} for q in asked
    ]
    found = {row["docno"] for name in RUNS for row in csv.DictReader((data / f"{name}.csv").read_text().splitlines())}
    written = {doc["doc_id"]: doc["text"] for doc in rows(data / "imported" / "passages-of-runs.jsonl")}
    assert written == {doc: docs[doc] for doc in found}
    assert {*load(data / "experiment.toml").runs} == {*RUNS}


def test_rows_of_runs_with_two_texts_of_a_passage_are_a_problem(data, judgekit):
    by_pyterrier(data)
    (data / "docs.jsonl").unlink()
    edited(data / "good.csv", "A flood in 1412", "The flood in 1412")
    said = judgekit("init", ".", code=2)
    assert "poor.csv, line 2: doc 'd1c' has a different title or text than before" in said.err


def test_a_missing_file_of_questions_is_named_with_the_ids_of_the_run(data, judgekit):
    (data / "queries.jsonl").unlink()
    table(data / "scores.csv", ["name", "qid", "measure", "value"], [("good", "q0", "ndcg_cut_3", 0.5)])
    said = judgekit("init", ".", code=2)
    assert "Put a file with the questions (query_id, question) beside good.trec, whose first is 'q0'" in said.err
    assert "scores.csv" not in said.err


def test_records_without_a_question_say_what_they_hold(data, judgekit):
    told = application(data, "good", 4)
    lines(data / "app.jsonl", [{key: value for key, value in row.items() if key != "user_input"} for row in told])
    said = judgekit("init", ".", code=2)
    assert "app.jsonl: line 1: this record lacks the question; it has: 'reference', 'retrieved_contexts'" in said.err
    assert "name its column, rag(question=…):app.jsonl, or add one ('question')" in said.err
    lines(data / "app.jsonl", [*told[:1], {**told[1], "user_input": None}])
    said = judgekit("init", ".", code=2)
    assert "app.jsonl, line 2: 'user_input' must be a text, not null" in said.err


@pytest.mark.parametrize("form", ["", "deepeval(split=yes):"])
def test_cells_that_are_split_are_told_as_lists(form, data, judgekit):
    told = []
    for row in application(data, "good", 4):
        cells = row["user_input"], row["response"], row["reference"], "|".join(row["retrieved_contexts"])
        told.append(cells)
    table(data / "app.csv", ["input", "actual_output", "expected_output", "retrieval_context"], told)
    said = judgekit("init", ".", f"{form}app.csv", code=0)
    assert "retrieval_context → passages" in said.out
    assert "one passage" not in said.out
