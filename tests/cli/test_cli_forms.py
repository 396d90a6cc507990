# ruff: noqa: E501 - a case stands in one line
"""What people hold is taken where files are named: each command with the forms of docs/formats.md."""

import gzip
import json
import shlex
from pathlib import Path

import pandas as pd
import pytest

from tests.small import edited


@pytest.fixture
def beir(folder: Path) -> Path:
    """A BEIR folder of four questions, with a run as CSV beside it."""
    data = folder / "beir"
    (data / "qrels").mkdir(parents=True)
    docs = [{"_id": f"d{i}", "title": "", "text": f"the answer is {i}"} for i in range(8)]
    (data / "corpus.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    queries = [{"_id": f"q{i}", "text": f"what is number {i}?", "answers": [str(i)]} for i in range(5)]
    (data / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    rows = "".join(f"q{i}\td{i}\t1\n" for i in range(4))
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + rows)
    lists = [(f"q{i}", f"d{j}", 1 / (1 + abs(i - j))) for i in range(4) for j in range(4)]
    pd.DataFrame(lists, columns=["qid", "docno", "score"]).to_csv(folder / "near.csv", index=False)
    return data


def test_runs_and_qrels_are_no_scores(judgekit, folder):
    (folder / "x.trec").write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.25 t\n")
    kinds = {
        "x.trec": "x.trec: is a run, by its ranks: score it with judgekit score",
        "gold.qrels": "gold.qrels: is qrels, by its second column: score runs by them with judgekit score",
    }
    for name, kind in kinds.items():
        assert kind in judgekit("compare", "--scores", name, "--quality", "quality.csv", code=2).err


def test_scores_of_trec_eval_without_a_header_are_compared(judgekit, folder):
    (folder / "x.eval").write_text("P_5\tq1\t0.5\nP_5\tq2\t0.4\nP_5\tall\t0.45\n")
    (folder / "right.csv").write_text("query_id,value\nq1,1\nq2,0\n")
    said = judgekit("compare", "--scores", "words=x.eval", "--quality", "right.csv")
    assert said.code in (0, 1)
    assert "words" in said.out
    assert "row for each answer" not in said.err


def test_convert_says_what_it_wrote_and_replaces_nothing_in_silence(judgekit, folder, beir):
    assert judgekit("convert", "near.csv", "near.trec", code=0).out == "a run of 16 rows: near.trec\n"
    assert "is an input of this command" in judgekit("convert", "near.trec", "near.trec", code=2).err
    assert "no such file" in judgekit("convert", "nowhere.csv", "x.trec").err
    refused = judgekit("convert", "near.csv", "near.trec", code=2)
    assert "already exists: choose another name, or delete it first" in refused.err
    assert judgekit("convert", "beir:beir", "beir.trec", "--kind", "qrels", code=0).out.startswith("4 labels")
    assert "q1 0 d1 1\n" in (folder / "beir.trec").read_text()


def test_chunks_writes_no_json_lines_under_the_name_of_a_table(judgekit):
    said = judgekit("chunks", "pages.jsonl", "docs.jsonl", "-o", "out.csv", code=2)
    assert "--out out.csv: documents are written as JSON lines" in said.err


DOCS = Path(__file__).resolve().parents[2] / "docs" / "formats.md"
FORMS, USES = DOCS.read_text().split("```bash\n")[0], DOCS.read_text().split("```bash\n")[1].split("```")[0]
COMMANDS = [line.removeprefix("judgekit ") for line in USES.splitlines() if line.startswith("judgekit ")]


@pytest.fixture
def examples(folder: Path, beir: Path) -> Path:
    """The files that the table of forms names."""
    beir.rename(folder / "scifact")
    (folder / "near.csv").rename(folder / "bm25.csv")
    passages = [{"id": f"d{i}", "title": "", "text": f"the answer is {i}"} for i in range(3)]
    for name, order in (("bm25", 1), ("dense", -1)):
        ranked = [{**p, "score": str(9 - i)} for i, p in enumerate(passages[::order])]
        entry = [{"question": "what is number 1?", "answers": ["1"], "ctxs": ranked[: 2 if name == "bm25" else 3]}]
        (folder / f"{name}.json").write_text(json.dumps(entry))
    trec = "q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\n"
    texts = {
        "queries.jsonl": '{"query_id": "q1", "text": "who?", "answers": ["Ann"]}\n',
        "kilt.jsonl": '{"id": "q1", "input": "who?", "output": [{"answer": "Ann", "provenance": [{"wikipedia_id": "7"}]}]}\n',
        "run.trec": trec,
        "docs.jsonl": '{"doc_id": "d1", "text": "Ann"}\n{"doc_id": "d2", "text": "Bob"}\n',
        "msmarco.tsv": "q1\td1\t1\nq1\td2\t2\nq1\td3\t3\n",
        "first.tsv": "q1\td1\t1\nq2\td2\t1\n",
        "commented.run": f"# ir_metadata.start\n# tag: a run of mine\n# ir_metadata.end\n{trec}",
        "SciFact_predictions.json": '{"mteb_model_meta": {"model_name": "m"}, "default": {"test": {"q1": {"d1": 0.5}}}}',
        "predictions.jsonl": '{"query_id": "q1", "query": "who?", "results": [{"corpus_id": "d1", "score": 0.5}]}\n',
        "topics.xml": '<topics><topic number="q1"><title>Ann</title></topic></topics>',
        "topics.txt": "<top>\n<num> Number: q1\n<title> Ann\n<desc> Description:\nWho is Ann?\n</top>\n",
        "ranx.json": '{"q1": {"d1": 1.5}}',
        "gold.qrels": "q1 0 d1 1\n",
        "gold.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\n",
        "expected.json": '[{"query": "who?", "documents": ["d1", "d2"], "grades": [2, 1]}]',
        "ragas.jsonl": '{"user_input": "who?", "retrieved_contexts": ["Ann"], "response": "Ann", "reference": "Ann"}\n',
        "rag.jsonl": '{"question": "who?", "contexts": ["Ann"], "answer": "Ann", "ground_truth": "Ann"}\n',
        "hits.jsonl": '{"question": "who?", "hits": {"hits": [{"_id": "d1", "_score": 2.5, "_source": {"text": "Ann"}}]}}\n',
        "found.jsonl": '{"question": "who?", "matches": [{"id": "d1", "score": 2.5, "metadata": {"text": "Ann"}}]}\n',
        "responses/q1.json": '{"took": 1, "hits": {"hits": [{"_id": "d1", "_score": 2.5}]}}',
        "msearch.json": '{"took": 1, "responses": [{"hits": {"hits": [{"_id": "d1", "_score": 2.5}]}}]}',
        "qa.jsonl": '{"qid": "q1", "query": "who?", "retrieval_gt": [["d1"], ["d2"]], "generation_gt": ["Ann"]}\n',
        "groups.jsonl": '{"qid": "q1", "query": "who?", "retrieval_gt": [["d1", "d2"]], "generation_gt": ["Ann"]}\n',
        "rank_eval.json": '{"details": {"q1": {"metric_score": 1, "unrated_docs": [], "hits": [{"hit": {"_id": "d1"}}]}}}',
        "halls.json": '{"queries": {"q1": {"qid": "q1", "query": "who?", "retrieved_docs": {"d1": {"did": "d1", "text": "Ann", "retrieved_by": {"a": 2}}}}}}',
        "asked.json": '{"q1": "who?"}',
        "dataset.json": '{"queries": {"q1": "who?"}, "corpus": {"d1": "Ann"}, "relevant_docs": {"q1": ["d1"]}}',
        "umbrela.jsonl": '{"query": "who?", "passage": "Ann", "prediction": "O: 3", "judgment": 3}\n',
        "topics.tsv": "q1\twho?\nq2\twhat?\n",
        "collection.tsv": "d1\tone text\nd2\tanother\n",
    }
    texts |= {
        "langchain.json": '[{"input": "who?", "context": [{"page_content": "by Ann"}], "answer": "Ann"}]',
        "pages/ann.md": "# Who\n\nby Ann",
        "pages.csv": "query_id,doc_id,rank\nq1,ann.md,1\n",
    }
    (folder / "pages").mkdir()
    (folder / "responses").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "run.trec.gz").write_bytes(gzip.compress(trec.encode()))
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_table_of_forms_works(judgekit, examples, command):
    judgekit(*shlex.split(command), code=0)
    written = next((word for word in shlex.split(command)[::-1] if (examples / word).exists()), None)
    assert written is None or (examples / written).stat().st_size > 0


def test_each_form_of_the_table_has_a_command_below_it():
    names = [line.removeprefix("# ") for line in USES.splitlines() if line.startswith("# ")]
    rows = [line.removeprefix("| ") for line in FORMS.splitlines() if line.startswith("| ")][2:]
    assert len(names) == len(rows)
    assert all(row.lstrip("[").startswith(name) for name, row in zip(names, rows, strict=True))


def test_an_experiment_reads_by_a_function_in_a_file_beside_it(judgekit, folder):
    (folder / "my_forms.py").write_text(
        "import json\n\ndef turned(path):\n"
        "    for number, line in enumerate(path.read_text().splitlines(), 1):\n"
        "        yield number, json.loads(line[::-1])\n"
    )
    plain = folder / "queries.jsonl"
    (folder / "turned.txt").write_text("".join(f"{line[::-1]}\n" for line in plain.read_text().splitlines()))
    before = judgekit("run", "experiment.toml", "--dry-run").out
    edited(folder / "experiment.toml", "queries.jsonl", "my_forms.py:turned:turned.txt")
    plain.unlink()
    assert judgekit("run", "experiment.toml", "--dry-run", code=0).out == before
    judgekit("run", "experiment.toml", "--out", "results", code=0)
    read = json.loads((folder / "results" / "manifest.json").read_text())["inputs"]
    assert {Path(one["file"]).name for one in read.values()} >= {"turned.txt", "my_forms.py"}
    judgekit("report", "results", code=0)
