"""Mistakes that people make with files of their own end in a sentence that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small import edited

DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
SCORE = ["score", "--run", "good.trec", "--qrels", "gold.qrels"]


def _edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def _write(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def _by_numpy(folder: Path) -> None:
    """Write lists as pandas does that read them from Parquet: without commas between the texts."""
    text = "query_id,text,answers\nq0,When was the bridge of Arlen built?,\"['1412' 'about 1412']\"\n"
    (folder / "queries.csv").write_text(text)


NOTHING = _write("unused", "x")
CASES = {
    "an address": (
        NOTHING,
        ["score", "--run", "https://example.org/runs/bm25.trec", "--qrels", "gold.qrels"],
        ["https://example.org/runs/bm25.trec", "Download it first: curl -LO https://example.org/runs/bm25.trec"],
    ),
    "an address in an experiment": (
        _edit("experiment.toml", '"docs.jsonl"', '"https://example.org/docs.jsonl"'),
        ["run", "experiment.toml", "--dry-run"],
        ["Download it first: curl -LO https://example.org/docs.jsonl"],
    ),
    "an address of Hugging Face": (
        NOTHING,
        ["init", "hf://datasets/BeIR/scifact/corpus.jsonl"],
        ["hf download --repo-type dataset BeIR/scifact corpus.jsonl"],
    ),
    "the address of an experiment": (
        NOTHING,
        ["plan", "https://example.org/experiment.toml"],
        ["https://example.org/experiment.toml: judgekit reads files on this machine. Download it first: curl -LO"],
    ),
    "a name that is too long": (
        _edit("experiment.toml", '"docs.jsonl"', f'"{"docs" * 100}.jsonl"'),
        ["run", "experiment.toml", "--dry-run"],
        ["docsdocs.jsonl: cannot be used: File name too long"],
    ),
    "a folder with such a name": (NOTHING, ["init", "data" * 100], ["datadata: cannot be used: File name too long"]),
    "one pair of brackets": (
        lambda folder: (
            (folder / "experiment.toml").write_text(
                (folder / "experiment.toml").read_text().split("[[labelers]]")[0] + '[labelers]\nkind = "containment"\n'
            )
            and None
        ),
        ["run", "experiment.toml"],
        ["experiment.toml: [labelers] write [[labelers]], with two brackets"],
    ),
    "lists of pandas": (
        _write("queries.csv", "query_id,text,answers\nq0,When was the bridge of Arlen built?,\"['1412']\"\n"),
        ["label", "containment", "--queries", "queries.csv", *DATA[2:], "--out", "x.qrels"],
        ["queries.csv, line 2", "is not a JSON list", "pandas: write the table with to_json"],
    ),
    "lists of numpy": (
        _by_numpy,
        ["label", "containment", "--queries", "queries.csv", *DATA[2:], "--out", "x.qrels"],
        ["queries.csv, line 2", "is not a JSON list", "to_json(…, orient='records', lines=True)"],
    ),
    "a limit without prices": (
        NOTHING,
        ["run", "experiment.toml", "--max-cost", "1"],
        ["a cost limit needs the price of the model 'mock'", "[prices.'mock']"],
    ),
    "a dry run with a limit without prices": (
        NOTHING,
        ["run", "experiment.toml", "--max-cost", "1", "--dry-run"],
        ["a cost limit needs the price of the model 'mock'", "[prices.'mock']"],
    ),
    "a label with a limit without prices": (
        NOTHING,
        ["label", "judge", *DATA, "--out", "x", "--base-url", "mock:", "--model", "m", "--max-cost", "1", "--dry-run"],
        ["--max-cost needs the price of a token: add --price"],
    ),
    "a run and a folder to guard": (
        lambda folder: (folder / "results").mkdir(),
        ["guard", "good.trec", "results"],
        ["good.trec is a file and results a results folder: give two runs, or two results folders"],
    ),
    "one file under two names": (
        _edit("experiment.toml", "poor.trec", "good.trec"),
        ["run", "experiment.toml"],
        ["[runs] 'good' and 'poor' are the same file, good.trec: leave out one"],
    ),
    "one file under two names in options": (
        NOTHING,
        ["score", "--run", "a=good.trec", "--run", "b=good.trec", "--qrels", "gold.qrels"],
        ["--run b=good.trec: 'a' is the same file"],
    ),
    "qrels of other queries": (
        _edit("gold.qrels", "q", "topic"),
        SCORE,
        ["qrels 'gold' list none of the queries and documents of good"],
    ),
    "qrels of other documents": (_edit("gold.qrels", "d", "x"), SCORE, ["gold.qrels: qrels 'gold' list none"]),
    "one of several qrels is foreign": (
        _write("other.qrels", "q0 0 elsewhere 1\n"),
        [*SCORE, "--qrels", "other.qrels"],
        ["qrels 'other' list none of the queries and documents of good"],
    ),
    "qrels with ids in capitals": (
        _write("loud.qrels", "Q0 0 D0A 1\n"),
        ["score", "--run", "good.trec", "--qrels", "loud.qrels"],
        ["the same spelling of ids"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_with_own_files_ends_in_what_to_do(name, judgekit, folder):
    change, command, words = CASES[name]
    change(folder)
    said = judgekit(*command)
    assert said.code == 2, said.out + said.err
    assert "Traceback" not in said.err
    assert all(word in said.err for word in words), said.err


def test_two_texts_of_an_array_of_numpy_are_not_made_one(judgekit, folder):
    head = "user_input,retrieved_contexts,response\n"
    for cell, code in (("['One.', 'Two.']", 0), ("['One.' 'Two.']", 2)):
        (folder / "app.csv").write_text(head + f'Who?,"{cell}",Ada\n')
        said = judgekit("convert", "app.csv", "app.run", "--force")
        assert said.code == code, said.err
    assert "is not a JSON list" in said.err


def test_ranks_that_contradict_scores_are_said_by_every_command_that_reads_runs(judgekit, folder):
    rows = [line.split() for line in (folder / "good.trec").read_text().splitlines()]
    body = [f"{q} Q0 {d} {4 - int(float(s))} {-float(s)} x\n" for q, _, d, _, s, _ in rows]
    (folder / "good.trec").write_text("".join(body))
    for command in (
        SCORE,
        ["label", "containment", *DATA, "--out", "x.qrels"],
        ["run", "experiment.toml", "--dry-run"],
        ["run", "experiment.toml", "--out", "results"],
        ["convert", "good.trec", "other.trec"],
    ):
        said = judgekit(*command, code=0)
        assert "run 'good' (" in said.err
        assert "its scores contradict its ranks (always the next rank has the higher score)" in said.err
    assert "its scores contradict its ranks" in (folder / "results" / "report.html").read_text()


@pytest.mark.parametrize(("scores", "warned"), [((1.0, 2.0, 3.0), True), ((3.0, 2.0, 2.5), False)])
def test_lists_without_ranks_that_go_upwards_throughout_are_said(scores, warned, judgekit, folder):
    gold = [f"q{i},d{i}{'abc'[at]},{score}" for i in range(6) for at, score in enumerate(scores)]
    more = [f"z{i},d{i}{'abc'[at]},{score}" for i in range(6) for at, score in enumerate(scores)]
    (folder / "new.csv").write_text("\n".join(["query_id,doc_id,score", *gold, *more]) + "\n")
    said = judgekit("score", "--run", "new.csv", "--qrels", "gold.qrels", code=0)
    assert ("every list goes from the lowest score to the highest" in said.err) is warned


@pytest.mark.parametrize("foreign", [True, False])
def test_labels_of_a_file_that_judges_nothing_are_not_ok(foreign, judgekit, folder):
    if foreign:
        _edit("gold.qrels", "d", "x")(folder)
    said = judgekit("label", "provenance(qrels=gold.qrels)", *DATA, "--out", "x.qrels")
    assert said.code == foreign
    assert (": 18 pairs, none of them judged by the file" in said.out) is foreign
    more = '[[labelers]]\nkind = "provenance"\nname = "gold"\nqrels = "gold.qrels"\n[answers]'
    edited(folder / "experiment.toml", "[answers]", more)
    said = judgekit("run", "experiment.toml", "--out", "results")
    assert said.code == foreign, said.err
    assert ("labels of gold: its file judges none of the pooled documents" in said.err) is foreign


def test_evidence_of_kilt_may_have_titles_only(judgekit, folder):
    docs = [json.loads(line) for line in (folder / "docs.jsonl").read_text().splitlines()]
    renamed = [{**doc, "title": f"Town of {doc['title']}" if doc["title"] else ""} for doc in docs]
    (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in renamed))
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    gold = [
        {
            "id": query["query_id"],
            "input": query["text"],
            "output": [{"answer": query["answers"][0], "provenance": [{"title": docs[3 * i]["title"]}]}],
        }
        for i, query in enumerate(queries)
    ]
    for entry in gold:
        entry["output"][0]["provenance"][0]["title"] = f"Town of {entry['output'][0]['provenance'][0]['title']}"
    (folder / "kilt.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in gold))
    spec = "provenance(qrels=kilt.jsonl, expand=title)"
    judgekit("label", spec, *DATA, "--out", "titles.qrels", code=0)
    labels = [line.split() for line in (folder / "titles.qrels").read_text().splitlines()]
    relevant = {(query, doc) for query, _, doc, value in labels if value == "1"}
    assert relevant == {(f"q{i}", f"d{i}{part}") for i in range(6) for part in "ab"}
