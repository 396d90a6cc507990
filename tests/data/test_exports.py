"""What tools wrote (tests/exports) is read as what they were given: questions, answers, references, lists, gold."""

import io
import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from judgekit.answers.nuggets import Nugget, read_nuggets
from judgekit.data.files import read_table
from judgekit.data.forms.own import FORMS as FORMS_BY_NAME, TOOLS
from judgekit.data.forms.tool import rows_at
from judgekit.data.readers import read_docs, read_queries
from judgekit.data.recognise import recognise
from judgekit.data.tables import ANSWERS
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError, UsageError
from tests.exports.halls import FAILS, QUESTIONS, RUNS

EXPORTS = Path(__file__).parent.parent / "exports"
FORMS = {
    "ragas": [
        "ragas-0.4.3/{}.csv",
        "ragas-0.4.3/{}.jsonl",
        "ragas-0.4.3/dataset-{}.csv",
        "ragas-0.4.3/dataset-{}.jsonl",
    ],
    "deepeval": [
        *(f"deepeval-4.3.1/dataset/{{}}.{ending}" for ending in ("csv", "json", "jsonl")),
        *("deepeval-4.3.1/test-run/test_run_{}.json", "deepeval-4.3.1/result-{}.json"),
    ],
    "langsmith": ["langsmith-0.15.1/{}.csv", "langsmith-0.15.1/{}.jsonl"],
    "mlflow": ["mlflow-3.17.2/{}.csv"],
    "llamaindex": ["llamaindex-0.14.25/{}.jsonl"],
    "haystack": ["haystack-3.4.1/{}.csv", "haystack-3.4.1/{}.json"],
    "ragchecker": ["ragchecker-0.1.9/{}.json"],
    "inspect_ai": ["inspect_ai-0.3.285/{}.json"],
    "lm_eval": ["lm_eval-0.4.13/halls-{}.jsonl"],
    "dspy": ["dspy-3.4.1/{}.json"],
    "opik": ["opik-2.2.122/{}.csv", "opik-2.2.122/{}.jsonl"],
    "rag": ["braintrust-0.48.1/{}.jsonl"],
}
FILES = [(form, file, run) for form, files in FORMS.items() for file in files for run in RUNS]
WITH_GOLD = {"ragas", "deepeval", "llamaindex"}
WITH_PASSAGE_IDS = {"ragas", "mlflow", "llamaindex", "ragchecker"}
WITHOUT_ANSWERS = {"llamaindex"}
FAILED = {(form, "dense", "005") for form in ("langsmith", "inspect_ai", "lm_eval", "dspy", "rag")}
"""Where the application itself failed: no answer, and nothing retrieved."""
FOUND_ALL_THE_SAME = {"inspect_ai", "lm_eval"}
"""Whose passages are the application's data, not its result."""


def by_text(file: Path) -> dict[str, str]:
    """Return the ids of the questions of a file by their texts, without what makes the judge fail."""
    return {query.text.removeprefix("FAILME "): query_id for query_id, query in read_queries(file).items()}


@pytest.mark.parametrize(("form", "file", "run"), FILES, ids=[file.format(run) for _, file, run in FILES])
def test_an_export_holds_what_the_tool_was_given(form, file, run):
    path = EXPORTS / file.format(run)
    content = recognise(path)
    assert content.form.name == form
    assert ("qrels" in content.kinds) == (form in WITH_GOLD)
    ids = by_text(path)
    assert [*ids] == [question.text for question in QUESTIONS]
    queries, docs, lists = read_queries(path), read_docs(path), read_run(path)
    answers = {}
    if form not in WITHOUT_ANSWERS:
        answers = read_table(ANSWERS, path).set_index("query_id")["answer"].to_dict()
    assert ("answer" in content.kinds) == bool(answers)
    for question in QUESTIONS:
        query_id = ids[question.text]
        failed = (form, run, question.id) in FAILED
        nothing = failed and form not in FOUND_ALL_THE_SAME
        found = [] if nothing else question.found(run)
        if answers:
            assert queries[query_id].answers == (question.reference,)
            assert answers[query_id] == ("" if failed else question.answer(run))
        top = [] if nothing else lists.top(query_id)
        assert [doc.text for doc in docs.get(top)] == [passage.text for passage in found]
        if form in WITH_PASSAGE_IDS:
            assert top == [passage.id for passage in found]
        if form in WITH_GOLD:
            judged = read_qrels(path).table
            (gold,) = judged[judged["query_id"] == query_id]["doc_id"]
            assert docs.get([gold])[0].text == question.gold.text


def test_results_of_one_evaluation_share_the_ids_of_their_questions():
    for form, file, _ in FILES:
        first, second = (by_text(EXPORTS / file.format(run)) for run in RUNS)
        assert first == second, form


@pytest.mark.parametrize("file", ["out.json", "out.jsonl"])
def test_a_file_of_several_providers_holds_each_question_once(file):
    path = EXPORTS / "promptfoo-0.121.20" / file
    assert recognise(path).form.name == "promptfoo"
    assert {q.query_id: (q.text, q.answers) for q in read_queries(path).values()} == {
        question.id: (question.text, (question.reference,)) for question in QUESTIONS
    }
    answers = read_table(ANSWERS, path)
    assert len(answers) == len(QUESTIONS) * len(RUNS)
    for row in answers.itertuples():
        question = next(question for question in QUESTIONS if question.id == row.query_id)
        # The provider failed there: no answer, and no wrong one.
        assert row.answer == ("" if (row.run, row.query_id) == ("dense", "005") else question.answer(row.run))
    with pytest.raises(DataError, match="the column 'run' holds 'bm25' and 'dense'"):
        read_run(path)


@pytest.mark.parametrize("file", ["query-{}.json", "first-{}.jsonl"])
def test_what_chroma_found_keeps_its_ids(file):
    for run in RUNS:
        path = EXPORTS / "chromadb-1.5.9" / file.format(run)
        nested = json.loads((EXPORTS / "chromadb-1.5.9" / f"query-{run}.json").read_text())
        lists, docs = read_run(path), read_docs(path)
        for query_id, row in zip(read_queries(path), nested, strict=True):
            assert lists.top(query_id) == row["ids"][0]
            assert [doc.text for doc in docs.get(row["ids"][0])] == row["documents"][0]


def test_what_qdrant_found_keeps_the_ids_of_its_payload():
    for run in RUNS:
        path = EXPORTS / "qdrant-1.20.0" / f"points-{run}.json"
        rows = json.loads(path.read_text())
        assert recognise(path).form.name == "qdrant"
        assert recognise(path).kinds == ("query", "doc", "run", "answer")
        lists, docs, queries = read_run(path), read_docs(path), read_queries(path)
        for question, row in zip(QUESTIONS, rows, strict=True):
            stored = [point["payload"] for point in row["points"]]
            assert lists.top(question.id) == [payload["doc_id"] for payload in stored]
            assert [doc.text for doc in docs.get(lists.top(question.id))] == [payload["text"] for payload in stored]
            assert (queries[question.id].text, queries[question.id].answers) == (question.text, (question.reference,))


def test_what_pinecone_found_keeps_its_ids():
    for run in RUNS:
        path = EXPORTS / "pinecone-10.2.0" / f"{run}.jsonl"
        assert recognise(path).form.name == "search"
        lists, docs = read_run(path), read_docs(path)
        for question in QUESTIONS:
            assert lists.top(question.id) == [passage.id for passage in question.found(run)]
            assert [doc.text for doc in docs.get(lists.top(question.id))] == [p.text for p in question.found(run)]


def test_a_failed_row_of_dspy_keeps_its_reference_and_has_no_answer():
    """There the example's answer keeps its own name, `answer`, under which other tools have the application's."""
    path = EXPORTS / "dspy-3.4.1" / "dense.json"
    (row,) = (row for row in json.loads(path.read_text()) if row["id"] == "005")
    assert (row["answer"], "pred_answer" in row, row["exact"]) == ("1412", False, 0.0)
    assert read_queries(path)["005"].answers == ("1412",)
    assert read_table(ANSWERS, path).set_index("query_id")["answer"]["005"] == ""
    table = EXPORTS / "dspy-3.4.1" / "dense.csv"
    answers = read_table(ANSWERS, table).set_index("query_id")["answer"]
    assert answers.to_dict() == {question.id: question.answer("dense") for question in QUESTIONS}


RERANKED = {
    "numbers of the documents": (
        "results",
        [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}],
    ),
    "an answer under data": ("data", [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]),
    "documents again": (
        "results",
        [{"index": 2, "relevance_score": 0.9, "document": {"text": "page 2"}}, {"index": 0, "relevance_score": 0.1}],
    ),
}


@pytest.mark.parametrize("name", RERANKED)
def test_a_rerankers_results_order_the_documents_that_it_was_given(name, tmp_path):
    """Generated, as Cohere, Jina and Voyage send them: before, the order of the request was the run."""
    place, results = RERANKED[name]
    path = tmp_path / "reranked.jsonl"
    documents = [{"id": f"d{number}", "text": f"page {number}"} for number in range(3)]
    record = {"query_id": "q1", "question": "Who?", "documents": documents, place: results}
    path.write_text(json.dumps(record) + "\n")
    assert read_run(path).top("q1") == ["d2", "d0"]
    results[0]["index"] = 3
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(DataError, match=f"'{place}' numbers passages that 'documents' does not hold"):
        read_run(path)


def test_a_rerankers_results_with_their_documents_are_a_run(tmp_path):
    path = tmp_path / "reranked.jsonl"
    results = [{"index": n, "relevance_score": 0.5, "document": {"id": f"d{n}", "text": f"page {n}"}} for n in (2, 0)]
    path.write_text(json.dumps({"query_id": "q1", "question": "Who?", "results": results}) + "\n")
    assert {"query", "doc", "run"} <= {*recognise(path).kinds}
    assert read_run(path).top("q1") == ["d2", "d0"]


@pytest.mark.parametrize("other", ["output", "response", "prediction", "result"])
def test_where_either_text_may_be_the_applications_both_spellings_are_printed_and_work(other, tmp_path):
    """As in ALCE's files, where `answer` is right and `output` the application's: em was 1 for every question."""
    path = tmp_path / "results.json"
    docs = [{"id": "d1", "text": "by Ann"}]
    path.write_text(json.dumps([{"question": "Who?", "answer": "Ann B.", "docs": docs, other: "Ann"}]))
    with pytest.raises(DataError) as caught:
        read_table(ANSWERS, path)
    for said, right in (("Ann", "Ann B."), ("Ann B.", "Ann")):
        name, reference = (other, "answer") if said == "Ann" else ("answer", other)
        spelled = f"rag(answer={name},reference={reference},contexts=docs)"
        assert f"{spelled}:FILE" in str(caught.value)
        assert [*read_table(ANSWERS, f"{spelled}:{path}")["answer"]] == [said]
        assert [query.answers for query in read_queries(f"{spelled}:{path}").values()] == [(right,)]
        assert len(read_docs(f"{spelled}:{path}")) == 1


ANNOTATED = ["source_id", "dataset_item_id", "exampleId"]


@pytest.mark.parametrize("name", ANNOTATED)
def test_where_another_id_than_that_of_the_row_may_name_the_question_both_are_printed(name, tmp_path):
    """As in RAGTruth's answers: ids of rows that are ids of other questions, too, joined them with those."""
    path = tmp_path / "response.jsonl"
    rows = [
        {"id": str(number), name: str(number // 2), "model": "ab"[number % 2], "response": f"said {number}"}
        for number in range(8)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = recognise(path)
    assert not found.kinds
    for spelled in (f"jsonl(query_id={name},answer=response,run=model)", "jsonl(query_id=id,answer=response)"):
        assert f"{spelled}:{path}" in found.why
        assert recognise(f"{spelled}:{path}").kinds == ("answer",)
    answers = read_table(ANSWERS, f"jsonl(query_id={name},answer=response,run=model):{path}")
    assert [*answers[answers["run"] == "b"]["query_id"]] == ["0", "1", "2", "3"]


def test_an_id_of_rows_is_the_questions_where_no_other_repeats_by_run(tmp_path):
    path = tmp_path / "response.jsonl"
    rows = [{"id": f"q{number}", "user_id": "u1", "model": "a", "response": f"said {number}"} for number in range(4)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert recognise(path).kinds == ("answer",)


ANSWERED = [
    ("trulens", "trulens-2.16.0/records.csv", {"run", "query"}),
    ("trulens", "trulens-2.16.0/records.jsonl", {"run", "query"}),
    ("nuggetizer", "nuggetizer-0.0.5/assigned.jsonl", {"run", "query", "id"}),
    *(("pydantic_evals", f"pydantic_evals-2.62.0/{run}.json", {"query", "id", "reference"}) for run in RUNS),
    *(("azure", f"azure-1.18.10/{run}.json", {"query", "id", "reference"}) for run in RUNS),
]


@pytest.mark.parametrize(("form", "file", "known"), ANSWERED, ids=[file for _, file, _ in ANSWERED])
def test_an_export_without_passages_holds_questions_and_answers(form, file, known):
    path = EXPORTS / file
    content = recognise(path)
    assert (content.form.name, content.kinds) == (form, ("query", "answer"))
    queries = {query.text: query for query in read_queries(path).values()}
    answers = read_table(ANSWERS, path)
    runs = RUNS if "run" in known else [path.stem]
    assert len(answers) == len(QUESTIONS) * len(runs)
    by_question = {(getattr(row, "run", path.stem), row.query_id): row.answer for row in answers.itertuples()}
    for question in QUESTIONS:
        query = queries[question.text]
        assert query.answers == ((question.reference,) if "reference" in known else ())
        assert query.query_id == question.id or "id" not in known
        assert [by_question[run, query.query_id] for run in runs] == [question.answer(run) for run in runs]


def test_verdicts_of_pydantic_evals_are_told_as_scores():
    content = recognise(EXPORTS / "pydantic_evals-2.62.0" / "bm25.json")
    assert content.form.taken(content.told)["assertions.EqualsExpected"] == "score"


def test_what_a_judge_of_ragelo_said_is_its_judgments(tmp_path):
    """It writes no line where the judge failed; a line that holds an exception all the same is no label of 0."""
    path = EXPORTS / "ragelo-0.7.0" / "results.jsonl"
    assert recognise(path).kinds == ("qrels",)
    columns = ["query_id", "doc_id", "relevance"]
    files = (path, EXPORTS / "ragelo-0.7.0" / "qrels.trec")
    ours, theirs = (read_qrels(file).table[columns].sort_values(columns[:2]).to_numpy().tolist() for file in files)
    assert ours == theirs
    failed = {"qid": "9", "did": "d9", "evaluator_name": "reasoner", "exception": "content filter", "answer": None}
    (tmp_path / "results.jsonl").write_text(path.read_text() + json.dumps(failed) + "\n")
    with pytest.raises(DataError, match=r"line 22: RAGElo has no judgment of this passage .content filter.: .*remove"):
        read_qrels(tmp_path / "results.jsonl")


def test_rows_of_umbrela_are_judgments_of_texts(tmp_path):
    """The ids are those that judgekit makes of texts elsewhere; a reply that umbrela could not read is no 0."""
    lines = (EXPORTS / "umbrela-0.0.7" / "judgments.jsonl").read_text().splitlines()
    path = tmp_path / "judgments.jsonl"
    path.write_text("\n".join(lines) + "\n")
    assert (recognise(path).form.name, recognise(path).kinds) == ("umbrela", ("qrels",))
    with pytest.raises(DataError, match=r"line 16: umbrela wrote 0 because .* the reply .'I cannot tell.'."):
        read_qrels(path)
    path.write_text("".join(line + "\n" for line in lines if "I cannot tell." not in line))
    judged = read_qrels(path).table
    assert len(judged) == 21
    table = tmp_path / "app.jsonl"
    rows = [{"question": q.text, "contexts": [p.text for p in q.passages], "answer": "-"} for q in QUESTIONS]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ids, docs = by_text(table), {doc.doc_id: doc.text for doc in read_docs(table)}
    texts = {query_id: question for question, query_id in ids.items()}
    for row in judged.itertuples():
        question = next(question for question in QUESTIONS if question.text == texts[row.query_id])
        assert row.relevance == (3 if docs[row.doc_id] == question.gold.text else 0)
    row = {"query": "Who?", "passage": "by Ann", "judgment": 0, "prediction": "O: 0", "result_status": 0}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="line 1: umbrela wrote 0"):
        read_qrels(path)
    path.write_text(json.dumps({**row, "result_status": 1}) + "\n")
    assert read_qrels(path).table["relevance"].tolist() == [0]
    for reply, read in {
        '{"M":0,"T":0,"O":3}': False,
        '{"O":2, "confidence": 0.9}': False,
        "Between 0.5 and 3": False,
        '{"M": 3, "O": 0}': True,
        "##final score: 0": True,
    }.items():
        path.write_text(json.dumps({"query": "Who?", "passage": "by Ann", "judgment": 0, "predition": reply}) + "\n")
        if read:
            assert read_qrels(path).table["relevance"].tolist() == [0]
        else:
            with pytest.raises(DataError, match="umbrela wrote 0 because it could not read the reply"):
                read_qrels(path)


FINETUNING = EXPORTS / "llama_index_finetuning-0.4.2" / "dataset.json"


@pytest.mark.parametrize("lines", [True, False])
def test_a_dataset_for_retrievers_is_questions_passages_and_judgments(lines, tmp_path):
    path = FINETUNING
    if lines:
        path = tmp_path / "dataset.jsonl"
        path.write_text(json.dumps(json.loads(FINETUNING.read_text())) + "\n")
    assert (recognise(path).form.name, recognise(path).kinds) == ("dataset", ("query", "doc", "qrels"))
    assert {query_id: query.text for query_id, query in read_queries(path).items()} == {q.id: q.text for q in QUESTIONS}
    passages = {passage.id: passage.text for question in QUESTIONS for passage in question.passages}
    docs = read_docs(path)
    assert {doc.doc_id: doc.text for doc in docs.get([*passages])} == passages
    assert len(docs) == len(passages)
    judged = read_qrels(path).table
    assert [*zip(judged["query_id"], judged["doc_id"], judged["relevance"], strict=True)] == [
        (question.id, question.gold.id, 1) for question in QUESTIONS
    ]


def test_a_golden_set_by_ids_may_have_titles_and_grades(tmp_path):
    """Generated: the dictionaries of BEIR's loader, in one object."""
    path = tmp_path / "golden.json"
    corpus = {"d1": {"title": "Ann", "text": "by Ann"}, "d2": {"text": "by Bob"}}
    parts = {"corpus": corpus, "queries": {"q1": "Who?"}, "qrels": {"q1": {"d1": 2, "d2": 0}}}
    for indent in (None, 1):
        path.write_text(json.dumps(parts, indent=indent))
        assert recognise(path).kinds == ("query", "doc", "qrels")
        assert [doc.title for doc in read_docs(path).get(["d1", "d2"])] == ["Ann", ""]
        assert read_qrels(path).table["relevance"].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"relevant_docs": {"q1": "d1"}}, r"relevant_docs\['q1'\] must be a list of ids or an object of grades"),
        ({"relevant_docs": {"q1": [None]}}, r"relevant_docs\['q1'\] must be a list of ids"),
        ({"relevant_docs": {"q1": {"d1": None}}}, "'relevance' must be a number, not null"),
        ({"relevant_docs": ["d1"]}, "'relevant_docs' must be an object by id, not a list"),
        ({"corpus": {"d1": None}}, r"corpus\['d1'\] must be a text or an object with 'text', not null"),
        ({"corpus": {"d1": "by Ann", "": "by Bob"}}, "empty"),
    ],
)
def test_a_bad_part_of_a_dataset_is_named(parts, said, tmp_path):
    path = tmp_path / "dataset.json"
    whole = {"queries": {"q1": "Who?"}, "corpus": {"d1": "by Ann"}, "relevant_docs": {"q1": ["d1"]}} | parts
    for text in (json.dumps(whole), json.dumps(whole, indent=4)):
        path.write_text(text)
        with pytest.raises(DataError, match=said):
            (read_docs if "corpus" in parts else read_qrels)(path)


def test_no_export_names_the_script_that_made_it():
    files = [path for path in EXPORTS.glob("*-*/**/*") if path.is_file()]
    assert [
        path for path in files if b"by_" in path.read_bytes() and re.search(rb"by_\w+\.py", path.read_bytes())
    ] == []


RESPONSE = {"took": 1, "timed_out": False, "hits": {"total": {"value": 1}, "hits": [{"_id": "d1", "_score": 2.5}]}}
REFUSED = {
    "response.jsonl": (
        json.dumps(RESPONSE) + "\n",
        "put the responses of a run into a folder, a file for each question named by its id",
    ),
    "response.json": (
        json.dumps(RESPONSE, indent=1),
        "put the responses of a run into a folder, a file for each question named by its id",
    ),
    "msearch.json": (
        json.dumps({"took": 3, "responses": [RESPONSE]}),
        "put the responses of a run into a folder, a file for each question named by its id",
    ),
    "samples.csv": (
        "sample_id,eval_id,log,id,epoch,input,choices,target,score_includes\nab,cd,a.eval,1,1,Who?,,Ann,C\n",
        "inspect log convert LOG --to json --output-dir FOLDER",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_joined_is_refused_with_what_to_save_instead(name, tmp_path):
    """Generated, as the pages of these tools show them."""
    text, cure = REFUSED[name]
    path = tmp_path / name
    path.write_text(text)
    assert not recognise(path).kinds
    with pytest.raises(DataError, match=re.escape(cure)):
        raise DataError(recognise(path).why)
    for read in (read_queries, read_run, read_qrels, read_docs):
        with pytest.raises(DataError, match=re.escape(cure)):
            read(path)


@pytest.mark.parametrize("indent", [None, 1])
def test_records_inside_of_an_unknown_tools_object_are_refused_with_the_way_out(indent, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"version": 3, "items": [{"no": "1", "wer": "Who?", "said": "Ann"}]}, indent=indent))
    why = recognise(path).why
    assert "an object whose 'items' lists records (no, wer, said): say which column is which" in why
    (query,) = read_queries(f"json(rows=items,id=no,text=wer):{path}").values()
    assert (query.query_id, query.text) == ("1", "Who?")
    assert recognise(f"json(rows=items,query_id=no,answer=said):{path}").kinds == ("answer",)


EPOCHS = EXPORTS / "inspect_ai-0.3.285" / "epochs.json"


def test_epochs_of_inspect_are_chosen_or_named_runs():
    with pytest.raises(DataError, match="each question has several records, which 'epoch' tells apart") as refused:
        read_queries(EPOCHS)
    one, runs = re.findall(rf"write (\S+){EPOCHS} to take one of them, or (\S+){EPOCHS} if", str(refused.value))[0]
    assert (one, runs) == ("inspect_ai(epoch=1):", "inspect_ai(run=epoch):")
    first = [question.answer("bm25") for question in QUESTIONS[:4]]
    assert read_table(ANSWERS, f"{one}{EPOCHS}")["answer"].tolist() == first
    each = read_table(ANSWERS, f"{runs}{EPOCHS}")
    assert {*each["run"]} == {"1", "2"}
    assert each[each["run"] == "1"]["answer"].tolist() == first
    second = [question.answer("dense") for question in QUESTIONS[:4]]
    assert each[each["run"] == "2"]["answer"].tolist() == second
    assert [*read_run(f"{one}{EPOCHS}").query_ids] == [question.id for question in QUESTIONS[:4]]
    with pytest.raises(UsageError, match="unknown epoch '3': choose from 1, 2"):
        read_queries(f"inspect_ai(epoch=3):{EPOCHS}")


def test_a_chat_of_inspect_is_a_question_behind_a_conversation():
    queries = [*read_queries(f"inspect_ai(epoch=2):{EPOCHS}").values()]
    assert [query.text for query in queries] == [question.text for question in QUESTIONS[:4]]
    assert [query.answers for query in queries] == [(q.reference, q.reference.upper()) for q in QUESTIONS[:4]]
    # The system's instructions are no turn, and a single message is no conversation.
    turns = [[message["content"] for message in query.messages] for query in queries]
    assert turns == [["Where is it?", "In the north.", query.text] for query in queries[:3]] + [[]]


def test_all_scorers_of_inspect_are_scores():
    content = recognise(EPOCHS)
    roles = content.form.taken(content.told)
    assert [name for name, role in roles.items() if role == "score"] == ["scores.includes", "scores.match"]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann"}],
            "does not end with a question",
        ),
        ([{"role": "system", "content": "Be short."}], "does not end with a question"),
        (
            [{"role": "user", "content": [{"type": "image", "image": "a.png"}]}],
            "a message of the conversation is no text",
        ),
        ([{"role": "user", "content": None}], "a message of the conversation is no text"),
    ],
)
def test_a_conversation_without_a_question_is_refused_with_its_line(messages, said, tmp_path):
    path = tmp_path / "log.json"
    sample = {"id": 1, "epoch": 1, "input": messages, "target": "Ann", "output": {"completion": "Ann"}}
    path.write_text(json.dumps({"samples": [sample]}, indent=1))
    with pytest.raises(DataError, match=rf"line 2: samples\[0\]: .*{said}"):
        read_queries(path)


def test_a_text_in_parts_is_one_question_and_langchains_roles_are_read(tmp_path):
    path = tmp_path / "log.json"
    parts = [{"type": "text", "text": "Who"}, {"type": "text", "text": "built it?"}]
    messages = [
        {"type": "human", "content": "Hall?"},
        {"type": "ai", "content": "Yes."},
        {"role": "user", "content": parts},
    ]
    sample = {"id": 1, "epoch": 1, "input": messages, "target": "Ann", "output": {"completion": "Ann"}}
    path.write_text(json.dumps({"samples": [sample]}))
    (query,) = read_queries(path).values()
    assert query.text == "Who\nbuilt it?"
    assert [message["role"] for message in query.messages] == ["user", "assistant", "user"]


def test_an_eval_file_of_inspect_is_refused_with_the_command_that_converts_it(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", "{}")
    command = rf"inspect log convert {path} --to json --output-dir FOLDER"
    assert command in recognise(path).why
    with pytest.raises(DataError, match=command):
        read_queries(path)


def sample_of(**changed):
    """A sample as lm-evaluation-harness 0.4.13 logs it."""
    asked = {"gen_args_0": {"arg_0": "Who?", "arg_1": {"until": ["\n"]}}}
    row = {"doc_id": 0, "doc": {"id": "007", "question": "Who?"}, "target": "Ann", "arguments": asked}
    return {**row, "filtered_resps": ["Ann"], "filter": "none", "doc_hash": "ab12", "exact_match": 1.0} | changed


def choices_of(*texts):
    """The requests of a question with choices."""
    return {f"gen_args_{number}": {"arg_0": "Who?", "arg_1": f" {text}"} for number, text in enumerate(texts)}


def cures_in(path):
    """The two spellings that the refusal of a file offers."""
    with pytest.raises(DataError, match="each question has several records") as refused:
        read_table(ANSWERS, path)
    return re.findall(rf"write (\S+:){path} to take one of them, or (\S+:){path} if", str(refused.value))[0]


@pytest.mark.parametrize(("target", "right"), [("1", "Bartholomew"), ("Bartholomew", "Bartholomew"), ("0", "Ann")])
def test_choices_of_lm_eval_are_answered_in_either_way_that_the_harness_chooses(target, right, tmp_path):
    """Generated: log-probabilities, whose numbers and truths the harness logs as texts."""
    path = tmp_path / "samples_halls.jsonl"
    likely = {"filtered_resps": [["-1.5", "False"], ["-2.0", "False"]], "arguments": choices_of("Ann", "Bartholomew")}
    row = sample_of(**likely, target=target, acc=0.0, acc_norm=1.0)
    path.write_text(json.dumps(row) + "\n")
    one, runs = cures_in(path)
    assert read_table(ANSWERS, f"{one}{path}")["answer"].tolist() == ["Ann"]
    each = read_table(ANSWERS, f"{runs}{path}")
    assert dict(zip(each["run"], each["answer"], strict=True)) == {"acc": "Ann", "acc_norm": "Bartholomew"}
    (query,) = read_queries(f"{one}{path}").values()
    assert query.answers == (right,)
    # A task that counts one way asks nothing.
    del row["acc_norm"]
    path.write_text(json.dumps(row) + "\n")
    assert read_table(ANSWERS, path)["answer"].tolist() == ["Ann"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"target": "1", "arguments": choices_of("1", "2")}, "one of the choices or the number of one"),
        ({"target": "7", "arguments": choices_of("1", "2")}, "one of the choices or the number of one"),
        ({"filtered_resps": [["x"], []], "arguments": choices_of("Ann", "Bob")}, "a log-probability for each choice"),
        ({"filtered_resps": [None, 1.0], "arguments": choices_of("Ann", "Bob")}, "a log-probability for each choice"),
        ({"filtered_resps": [["-1", "True"]], "arguments": choices_of("Ann")}, "must hold one text"),
        ({"arguments": choices_of("Ann", "Ann")}, "must hold one text"),
        ({"arguments": choices_of("Ann", " "), "acc_norm": 0.0}, "must hold one text"),
        ({"arguments": None}, "must hold one text"),
    ],
)
def test_samples_of_lm_eval_that_answer_nothing_are_refused_with_their_line(changed, said, tmp_path):
    path = tmp_path / "samples_halls.jsonl"
    replies = {"filtered_resps": [["-1.5", "False"], ["-2.0", "False"]]}
    path.write_text(json.dumps(sample_of()) + "\n" + json.dumps(sample_of(**(replies | changed))) + "\n")
    with pytest.raises(DataError, match=f"line 2: .*{said}"):
        read_table(ANSWERS, path)


@pytest.mark.parametrize("run", RUNS)
def test_replies_of_lm_eval_are_chosen_or_named_runs(run):
    path = EXPORTS / "lm_eval-0.4.13" / f"halls_replies-{run}.jsonl"
    one, runs = cures_in(path)
    assert one == "lm_eval(reply=1):"
    said = ["" if (run, q.id) == ("dense", "005") else q.answer(run) for q in QUESTIONS]
    assert read_table(ANSWERS, f"{one}{path}")["answer"].tolist() == said
    assert {*read_table(ANSWERS, f"lm_eval(reply=2):{path}")["answer"]} == {"I still don't know."}
    assert sorted(read_table(ANSWERS, f"{runs}{path}")["run"]) == ["1"] * 8 + ["2"] * 8
    # The harness logs several references as Python shows a list.
    references = [query.answers for query in read_queries(f"{one}{path}").values()]
    assert [{*texts} for texts in references] == [{q.reference, q.reference.upper()} for q in QUESTIONS]


@pytest.mark.parametrize("run", RUNS)
def test_samples_that_the_harness_logged_by_two_filters_are_as_many_runs(run):
    path = EXPORTS / "lm_eval-0.4.13" / f"halls_filters-{run}.jsonl"
    one, runs = cures_in(path)
    assert one == "lm_eval(filter='strict-match'):"
    each = read_table(ANSWERS, f"{runs}{path}")
    replies = {(row.run, row.query_id): row.answer for row in each.itertuples()}
    assert len(replies) == 2 * len(QUESTIONS)
    for question in QUESTIONS:
        said = "" if (run, question.id) == ("dense", "005") else question.answer(run)
        assert replies["flexible-extract", question.id] == (said or "[invalid]")
        assert replies["strict-match", question.id] == (said if re.fullmatch(r"\w+", said) else "[invalid]")


@pytest.mark.parametrize("way", ["acc", "acc_norm"])
def test_choices_are_right_where_the_harness_counted_them_so(way):
    path = EXPORTS / "lm_eval-0.4.13" / "halls_choice-dense.jsonl"
    counted = [json.loads(line)[way] for line in path.read_text().splitlines()]
    assert 0 < sum(counted) < len(counted)
    chosen = read_table(ANSWERS, f"lm_eval(choice={way}):{path}")["answer"]
    right = [query.answers for query in read_queries(f"lm_eval(choice={way}):{path}").values()]
    assert right == [(question.reference,) for question in QUESTIONS]
    assert [float(answer in references) for answer, references in zip(chosen, right, strict=True)] == counted


SUBMITTED = {
    "ragnarok-0.0.1/{}.json": ("query", "answer"),
    "ragnarok-0.0.1/{}.jsonl": ("query", "answer"),
    "autojudge_base-1.0.0/rag25-{}.jsonl": ("query", "answer"),
    "autojudge_base-1.0.0/rag26-{}.jsonl": ("query", "answer"),
    "autojudge_base-1.0.0/ragtime26-{}.jsonl": ("answer",),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("file", SUBMITTED)
def test_answers_submitted_to_trec_are_answers(file, run):
    path = EXPORTS / file.format(run)
    assert (recognise(path).form.name, recognise(path).kinds) == ("trec_rag", SUBMITTED[file])
    if "query" in SUBMITTED[file]:
        asked = {query.query_id: query.text for query in read_queries(path).values()}
        assert asked == {question.id: question.text for question in QUESTIONS}
    answers = read_table(ANSWERS, path)
    assert {row.query_id: row.answer for row in answers.itertuples()} == {
        question.id: f"It keeps {question.answer(run)}. So the page says." for question in QUESTIONS
    }
    assert ("run" in answers) == ("autojudge" in file)
    assert {*answers.get("run", [run])} == {run}


@pytest.mark.parametrize("run", RUNS)
def test_passages_that_open_rag_eval_numbers_have_no_ids(run):
    """It reads the ids of questions as numbers, and leaves out questions without an answer."""
    path = EXPORTS / "openrageval-0.3.0" / f"scored-{run}.csv"
    assert (recognise(path).form.name, recognise(path).kinds) == ("openrageval", ("query", "doc", "run", "answer"))
    asked = [question for question in QUESTIONS if (question.id, run) != ("005", "dense")]
    lists, docs = read_run(path), read_docs(path)
    answers = read_table(ANSWERS, path).set_index("query_id")["answer"].to_dict()
    assert by_text(path) == {question.text: str(int(question.id)) for question in asked}
    for question in asked:
        query_id = str(int(question.id))
        assert answers[query_id] == question.answer(run)
        assert [doc.text for doc in docs.get(lists.top(query_id))] == [passage.text for passage in question.found(run)]


def test_passages_keep_the_ids_that_a_users_own_table_gave_open_rag_eval(tmp_path):
    written = (EXPORTS / "openrageval-0.3.0" / "scored-bm25.csv").read_text()
    path = tmp_path / "scored.csv"
    row = pd.read_csv(io.StringIO(written)).iloc[:1]
    path.write_text(re.sub(r"\[(\d)\]", r"d\1", row.to_csv(index=False)))
    assert read_run(path).top("0") == ["d1", "d2", "d3"]
    assert read_docs(path).get(["d3"])[0].text == "Hall 0 keeps Ada Brandt."


@pytest.mark.parametrize("run", RUNS)
def test_rows_of_a_connector_of_open_rag_eval_are_what_was_found_and_answered(run):
    path = EXPORTS / "openrageval-0.3.0" / f"answers-{run}.csv"
    content = recognise(path)
    assert (content.form.name, content.kinds) == ("openrageval_answers", ("query", "doc", "run", "answer"))
    said = read_table(ANSWERS, path).set_index("query_id")["answer"].to_dict()
    docs, lists = read_docs(path), read_run(path)
    assert by_text(path) == {question.text: question.id for question in QUESTIONS}
    for question in QUESTIONS:
        failed = (run, question.id) == ("dense", FAILS)
        assert re.sub(r" \[\d\]$", "", said[question.id]) == ("" if failed else question.answer(run))
        # Its ids of passages count those of each answer.
        found = [] if failed else [passage.text for passage in question.found(run)]
        assert [doc.text for doc in docs.get(lists.top(question.id) if found else [])] == found


def repeated(path):
    """Write what the same connector saves if it asks each question twice."""
    rows = pd.read_csv(EXPORTS / "openrageval-0.3.0" / "answers-bm25.csv", dtype=str, keep_default_na=False)
    pd.concat([rows, rows.assign(query_run="2")]).sort_values("query_id", kind="stable").to_csv(path, index=False)


def test_repetitions_of_open_rag_eval_are_chosen_or_named_runs(tmp_path):
    path = tmp_path / "repeated.csv"
    repeated(path)
    one, runs = cures_in(path)
    assert (one, runs) == ("openrageval_answers(query_run=1):", "openrageval_answers(run=query_run):")
    assert len(read_table(ANSWERS, f"{one}{path}")) == len(QUESTIONS)
    assert read_table(ANSWERS, f"{runs}{path}")["run"].value_counts().to_dict() == {"1": 8, "2": 8}


def test_ids_of_passages_that_are_no_places_are_kept(tmp_path):
    path = tmp_path / "rows.csv"
    head = "query_id,query,query_run,passage_id,passage,generated_answer\n"
    path.write_text(f"{head}q1,Who?,1,d7,by Ann,\nq1,Who?,1,d2,by Bob,Ann [1]\nq2,What?,1,d2,by Bob,Bob [1]\n")
    lists = read_run(path)
    assert [lists.top(query_id) for query_id in ("q1", "q2")] == [["d7", "d2"], ["d2"]]
    # The answer may stand in any of the rows.
    assert read_table(ANSWERS, path)["answer"].tolist() == ["Ann [1]", "Bob [1]"]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_candidates_of_rank_llm_are_the_run_that_it_writes(run, ending):
    path = EXPORTS / "rank_llm-0.25.7" / f"{run}.{ending}"
    assert (recognise(path).form.name, recognise(path).kinds) == ("rank_llm", ("query", "doc", "run"))
    assert {q.query_id: q.text for q in read_queries(path).values()} == {q.id: q.text for q in QUESTIONS}
    ours, theirs = read_run(path), read_run(path.with_suffix(".trec"))
    docs = {doc.doc_id: doc.text for doc in read_docs(path)}
    for question in QUESTIONS:
        assert ours.top(question.id) == theirs.top(question.id)
        assert [docs[doc_id] for doc_id in ours.top(question.id)] == [passage.text for passage in question.found(run)]


@pytest.mark.parametrize("run", RUNS)
def test_predictions_of_sentence_transformers_are_a_run(run):
    path = EXPORTS / "sentence_transformers-6.2.0" / f"{run}.jsonl"
    assert (recognise(path).form.name, recognise(path).kinds) == ("predictions", ("query", "run"))
    lists = read_run(path)
    assert {q.query_id: q.text for q in read_queries(path).values()} == {q.id: q.text for q in QUESTIONS}
    for question in QUESTIONS:
        assert lists.top(question.id) == [passage.id for passage in question.found(run)]


def test_lists_of_documents_called_results_are_no_records(tmp_path):
    """RAGChecker wraps its records in `results`, where sentence-transformers lists documents."""
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps([{"query_id": "q", "query": "Who?", "results": [{"corpus_id": "d", "score": 1}]}]))
    assert recognise(path).form.name == "predictions"
    assert read_run(path).top("q") == ["d"]


def hit(number, **more):
    return {"_index": "halls", "_id": f"e{number}", "_score": 9.5 - number, **more}


@pytest.mark.parametrize("wrapped", [False, True])
def test_hits_of_elasticsearch_are_a_list_and_its_passages(wrapped, tmp_path):
    """Generated as the documentation of the search API shows it: the server was not run."""

    def rows(**sources):
        lines = []
        for question in QUESTIONS[:3]:
            found = [hit(n, **{name: source(n) for name, source in sources.items()}) for n in (2, 0, 1)]
            said = {"took": 3, "timed_out": False, "hits": {"total": {"value": 3}, "max_score": 7.5, "hits": found}}
            lines.append(
                {"query_id": question.id, "question": question.text, **({"response": said} if wrapped else said)}
            )
        (tmp_path / "hits.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return tmp_path / "hits.jsonl"

    path = rows(_source=lambda n: {"text": f"Passage {n}.", "title": "T"})
    assert (recognise(path).form.name, recognise(path).kinds) == ("elasticsearch", ("query", "doc", "run"))
    assert read_run(path).top("001") == ["e2", "e0", "e1"]
    assert [(doc.doc_id, doc.text) for doc in read_docs(path)] == [(f"e{n}", f"Passage {n}.") for n in (2, 0, 1)]
    path = rows(_source=lambda n: {"doc_id": f"d{n}", "content": f"Passage {n}."})
    assert read_run(path).top("001") == ["d2", "d0", "d1"], "the id that the document has itself"
    assert [doc.doc_id for doc in read_docs(path)] == ["d2", "d0", "d1"]
    path = rows()
    assert recognise(path).kinds == ("query", "run"), "without their sources"
    assert read_run(path).top("000") == ["e2", "e0", "e1"]
    path.write_text(path.read_text().replace('"hits": [', '"hits": [5, '))
    assert recognise(path).form.name == "elasticsearch"
    with pytest.raises(DataError, match=r"line 1: the results must be a list of objects"):
        read_run(path)


def stored(n):
    return {"doc_id": f"d{n}", "text": f"Passage {n}."}


ENGINES = {
    "pinecone": lambda found: {"matches": [{"id": f"p{n}", "score": 0.5, "metadata": stored(n)} for n in found]},
    "pinecone, records": lambda found: {
        "result": {"hits": [{"_id": f"d{n}", "_score": 0.5, "fields": {"chunk_text": f"Passage {n}."}} for n in found]}
    },
    "meilisearch": lambda found: {"hits": [{**stored(n), "_rankingScore": 0.5} for n in found], "processingTimeMs": 1},
    "marqo": lambda found: {"hits": [{"_id": f"d{n}", "_score": 0.5, "text": f"Passage {n}."} for n in found]},
    "typesense": lambda found: {"found": 3, "hits": [{"document": stored(n), "text_match": 578} for n in found]},
    "vespa": lambda found: {
        "root": {
            "id": "toplevel",
            "children": [{"id": f"id:n:t::{n}", "relevance": 1, "fields": stored(n)} for n in found],
        }
    },
    "solr": lambda found: {
        "responseHeader": {"status": 0},
        "response": {"numFound": 3, "docs": [{"id": f"d{n}", "content": f"Passage {n}."} for n in found]},
    },
    "azure ai search": lambda found: {
        "value": [{"@search.score": 0.5, "chunk_id": f"d{n}", "chunk": f"Passage {n}."} for n in found]
    },
    "weaviate": lambda found: {"objects": [{"uuid": f"u{n}", "properties": stored(n)} for n in found]},
    "weaviate, GraphQL": lambda found: {
        "data": {"Get": {"Passage": [{"text": f"Passage {n}.", "_additional": {"id": f"d{n}"}} for n in found]}}
    },
    "milvus": lambda found: {"results": [[{"id": n, "distance": 0.1 * n, "entity": stored(n)} for n in found]]},
    "vertex": lambda found: {
        "results": [{"id": f"d{n}", "document": {"structData": {"text": f"Passage {n}."}}} for n in found]
    },
    "anserini": lambda found: {
        "candidates": [{"docid": f"d{n}", "score": 0.5, "doc": {"contents": f"Passage {n}."}} for n in found]
    },
    "txtai": lambda found: {"results": [{"id": f"d{n}", "text": f"Passage {n}.", "score": 0.5} for n in found]},
    "a database": lambda found: {"rows": [{"doc_id": f"d{n}", "content": f"Passage {n}."} for n in found]},
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("engine", ENGINES)
def test_responses_of_search_engines_are_read_beside_their_questions(engine, wrapped, tmp_path):
    """Generated as the engines' pages show them: they were not run."""
    path = tmp_path / "found.jsonl"
    made = [ENGINES[engine](found) for found in ((2, 0, 1), (1, 2), ())]
    asked = [{"query_id": question.id, "question": question.text} for question in QUESTIONS]
    lines = [{**row, **({"response": one} if wrapped else one)} for row, one in zip(asked, made, strict=False)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    content = recognise(path)
    assert (content.form.name, content.kinds) == ("search", ("query", "doc", "run"))
    assert "passages, ids of the passages" in content.form.taken(lines[0]).values()
    run = read_run(path)
    assert [run.top(row["query_id"]) for row in asked[:3]] == [["d2", "d0", "d1"], ["d1", "d2"], []]
    assert {doc.doc_id: doc.text for doc in read_docs(path)} == {f"d{n}": f"Passage {n}." for n in range(3)}
    # Of a folder, a file for each question.
    (tmp_path / "found").mkdir()
    for row, one in zip(asked, made, strict=False):
        (tmp_path / "found" / f"{row['query_id']}.json").write_text(json.dumps(one))
    assert read_run(tmp_path / "found").top("000") == ["d2", "d0", "d1"]


@pytest.mark.parametrize("engine", ["pinecone", "weaviate", "vespa"])
def test_results_that_share_the_id_of_their_document_are_not_taken_for_one(engine, tmp_path):
    path = tmp_path / "found.json"
    row = json.dumps([{"query_id": "q1", "question": "Who?", **ENGINES[engine]((0, 1))}])
    path.write_text(row.replace('"doc_id": "d1"', '"doc_id": "d0"'))
    with pytest.raises(DataError, match=r"line 1: several results have the same id inside.*write the id of each part"):
        read_run(path)
    path.write_text(re.sub(r'"doc_id": "d\d", ', "", row))
    assert len(read_run(path)) == 2, "the engine's own ids"
    # Beside a text, the same of any tool.
    both = [{"id": "d0", "text": "one"}, {"id": "d0", "text": "two"}]
    path.write_text(json.dumps([{"question": "Who?", "documents": both}]))
    with pytest.raises(DataError, match="passages with different texts have the id 'd0'"):
        read_run(path)


def test_what_only_looks_like_the_results_of_an_engine_is_left(tmp_path):
    path = tmp_path / "rows.jsonl"
    judged = {"query_id": "q1", "text": "Who?", "candidates": [{"docid": "d1", "relevance": 1}]}
    for row in (judged, {"query_id": "q1", "text": "Who?", "value": 3}, {"id": "q1", "text": "a", "data": [{"x": 1}]}):
        path.write_text(json.dumps(row) + "\n")
        assert recognise(path).form.name == "jsonl"
    # One result without an id is no empty list.
    lines = [{"query_id": f"q{n}", "hits": [{"id": "d1"}, {"id": "d2"} if n else {"key": 1}]} for n in (1, 0)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DataError, match="line 2: a result has neither an id nor a text"):
        read_run(path)


AUTORAG = EXPORTS / "autorag-0.3.27"


def saved(table, path):
    """Save a table by the ending of its file, as AutoRAG and its users do."""
    if path.suffix == ".jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        getattr(table, f"to_{path.suffix[1:]}")(path, index=False)
    return path


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_questions_of_autorag_have_their_answers_and_passages(ending, tmp_path):
    path = saved(pd.read_json(AUTORAG / "qa.jsonl", lines=True), tmp_path / f"qa.{ending}")
    assert (recognise(path).form.name, recognise(path).kinds) == ("autorag", ("query", "qrels"))
    asked, judged = read_queries(path), read_qrels(path).table
    assert {query.text: query.answers for query in asked.values()} == {q.text: (q.reference,) for q in QUESTIONS}
    gold = {asked[row.query_id].text: row.doc_id for row in judged.itertuples()}
    assert gold == {question.text: question.gold.id for question in QUESTIONS}


def test_passages_that_autorag_cut_anew_are_alternatives():
    path = AUTORAG / "qa-cut-anew.jsonl"
    with pytest.raises(DataError, match="line 1: any of the passages 'd0-0-0', 'd0-0-1' will do"):
        read_qrels(path)
    first = read_qrels(f"autorag(alternatives=first):{path}").table
    assert first["doc_id"].tolist() == [f"{question.gold.id}-0" for question in QUESTIONS]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_ids_in_no_inner_list_are_one_group_of_autorag(ending, tmp_path):
    """As its own `cast_qa_dataset` reads them."""
    table = pd.read_json(AUTORAG / "qa.jsonl", lines=True)
    table["retrieval_gt"] = table["retrieval_gt"].map(lambda groups: [*groups[0], "d0-1"])
    path = saved(table, tmp_path / f"qa.{ending}")
    with pytest.raises(DataError, match="any of the passages 'd0-0', 'd0-1' will do"):
        read_qrels(path)
    table["retrieval_gt"] = table["retrieval_gt"].map(lambda ids: ids[:1])
    assert read_qrels(saved(table, path)).table["doc_id"].tolist() == [question.gold.id for question in QUESTIONS]


GROUPS = {
    "autorag": [
        {"qid": "1", "query": "Who?", "retrieval_gt": [["d1"]]},
        {"qid": "2", "query": "When?", "retrieval_gt": [["d1", "d2"], ["d2", "d3"], ["d4"], []]},
    ],
    "expected": [
        {"query_id": "1", "query": "Who?", "documents": ["d1"]},
        {"query_id": "2", "query": "When?", "documents": [["d1", "d2"], ["d2", "d3"], "d4"], "grades": [1, 1, 1]},
    ],
}


@pytest.mark.parametrize(
    ("form", "ending"),
    [("autorag", "jsonl"), ("autorag", "parquet"), ("autorag", "csv"), ("expected", "jsonl")],
)
def test_passages_of_which_any_will_do_are_judgments_as_the_user_says(form, ending, tmp_path):
    path = tmp_path / f"qa.{ending}"
    rows = GROUPS[form]
    if ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        getattr(pd.DataFrame(rows), f"to_{ending}")(path, index=False)
    assert recognise(path).form.name == form
    with pytest.raises(DataError, match=r"(line|row) [23]: any of the passages 'd1', 'd2' will do") as refused:
        read_qrels(path)
    for way, ids in (("each", {"d1", "d2", "d3", "d4"}), ("first", {"d1", "d2", "d4"})):
        spelled = f"{form}(alternatives={way}):{path}"
        assert spelled in str(refused.value)
        judged = read_qrels(spelled).table
        assert judged["query_id"].tolist() == ["1", *["2"] * len(ids)]
        assert {*judged["doc_id"][1:]} == ids
        assert {*judged["relevance"]} == {1.0}
        assert [*read_queries(spelled)] == ["1", "2"]
    with pytest.raises(DataError, match="alternatives=any: expected alternatives=each or alternatives=first"):
        read_qrels(f"{form}(alternatives=any):{path}")


def test_nuggets_of_nuggetizer_are_those_of_the_question_that_its_qid_names():
    found = read_nuggets(EXPORTS / "nuggetizer-0.0.5" / "nuggets.jsonl")
    assert found == {
        question.id: (Nugget(f"The hall keeps {question.reference}"), Nugget("It is old", vital=False))
        for question in QUESTIONS
    }


def test_rows_of_ragelo_are_answers_of_agents_and_no_references():
    path = EXPORTS / "ragelo-0.7.0"
    content = recognise(path / "answers.csv")
    assert (content.kinds, content.run) == (("answer",), "agent")
    read = read_table(ANSWERS, f"csv(query_id=qid, run=agent):{path / 'answers.csv'}")
    assert {(row.query_id, row.run): row.answer for row in read.itertuples()} == {
        (question.id, run): question.answer(run) for question in QUESTIONS for run in RUNS
    }
    docs = read_docs(path / "documents.csv")
    assert [doc.doc_id for doc in docs] == [passage.id for q in QUESTIONS for passage in q.passages]
    for run in RUNS:
        lists = read_run(path / "runs" / f"{run}.run")
        assert all(lists.top(q.id) == [passage.id for passage in q.found(run)] for q in QUESTIONS)


@pytest.mark.parametrize("name", ["experiment.json", "line.jsonl", "lines.jsonl", "list.json"])
def test_an_experiment_of_ragelo_holds_a_run_and_the_answers_of_each_agent(name, tmp_path):
    """Its runs are those that RAGElo itself writes for TREC's tools."""
    held = json.loads((EXPORTS / "ragelo-0.7.0" / "experiment.json").read_text())
    for number, query in enumerate(held["queries"].values()):
        said = {"qid": query["qid"], "agent": "bm25", "text": f"Answer {number}"}
        query["answers"] = {"bm25": said, "closed": {**said, "agent": "closed", "text": None}}
    path = tmp_path / name
    by_question = "".join(json.dumps(query) + "\n" for query in held["queries"].values())
    text = {"line.jsonl": json.dumps(held) + "\n", "lines.jsonl": by_question, "list.json": json.dumps([held])}
    path.write_text(text.get(name) or json.dumps(held, indent=4))
    assert recognise(path).form.name == "ragelo_experiment"
    assert recognise(path).kinds == ("query", "doc", "run", "answer")
    assert {q.query_id: q.text for q in read_queries(path).values()} == {q.id: q.text for q in QUESTIONS}
    assert {doc.doc_id: doc.text for doc in read_docs(path)} == {p.id: p.text for q in QUESTIONS for p in q.passages}
    answers = read_table(ANSWERS, path)
    answered = {(row.run, row.query_id): row.answer for row in answers.itertuples()}
    assert {query_id for run, query_id in answered if run == "closed"} == {q.id for q in QUESTIONS}
    for number, question in enumerate(QUESTIONS):
        assert answered["bm25", question.id] == f"Answer {number}"
        assert answered["dense", question.id] == answered["closed", question.id] == "", "no answer is no empty one"
    with pytest.raises(DataError, match="'bm25' and 'dense': write each run into a file of its own, as judgekit init"):
        read_run(path)
    del held["queries"]["000"]["answers"]
    path.write_text(json.dumps(held))
    assert "answer" in recognise(path).kinds, "of other questions"
    for query in held["queries"].values():
        query.pop("answers", None)
    path.write_text(json.dumps(held))
    assert "answer" not in recognise(path).kinds


def test_agents_of_ragelo_without_scores_keep_their_order(tmp_path):
    docs = {name: {"did": name, "text": name.upper(), "retrieved_by": {"a": 1.0}} for name in ("d1", "d9", "d5")}
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps({"queries": {"q": {"qid": "q", "query": "Who?", "retrieved_docs": docs}}}))
    assert read_run(path).top("q") == ["d1", "d9", "d5"]
    docs["d9"]["retrieved_by"] = {"a": "high"}
    path.write_text(json.dumps({"queries": {"q": {"qid": "q", "query": "Who?", "retrieved_docs": docs}}}))
    with pytest.raises(
        DataError, match=r"line 1: queries.\*\[0\]: document 'd9', agent 'a': the score must be a number"
    ):
        read_run(path)


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_a_response_of_rank_eval_is_a_run(ending, tmp_path):
    """Generated as the documentation of Elasticsearch shows it. Documents that were not found have no rating there."""
    details = {}
    for question in QUESTIONS:
        hits = [{"hit": hit(n), "rating": rating} for n, rating in ((2, None), (0, 1), (1, 0))]
        about = {"metric_score": 0.5, "unrated_docs": [{"_index": "halls", "_id": "e2"}]}
        details[question.id] = {**about, "hits": hits, "metric_details": {"precision": {"docs_retrieved": 3}}}
    details["none"] = {"metric_score": 0.0, "unrated_docs": [], "hits": []}
    path = tmp_path / f"rank_eval.{ending}"
    path.write_text(json.dumps({"metric_score": 0.5, "details": details, "failures": {}}) + "\n")
    assert (recognise(path).form.name, recognise(path).kinds) == ("rank_eval", ("run",))
    lists = read_run(path)
    assert lists.top("003") == ["e2", "e0", "e1"]
    assert {*lists.query_ids} == {question.id for question in QUESTIONS}
    with pytest.raises(DataError, match="is of the form 'rank_eval', and its records hold no judgments"):
        read_qrels(path)


def test_each_line_of_objects_that_wrap_their_records_counts(tmp_path):
    row = {"inputs.query": "Who?", "inputs.response": "Ann"}
    parts = [{"rows": [{**row, "inputs.id": name}], "metrics": {}} for name in "ab"]
    for name, text in {
        "parts.jsonl": "".join(json.dumps(part) + "\n" for part in parts),
        "parts.json": json.dumps(parts),
    }.items():
        (tmp_path / name).write_text(text)
        assert [*read_queries(tmp_path / name)] == ["a", "b"]


RELEASE = re.compile(r"\d+(?:\.\d+)+")


def test_each_tool_names_the_release_whose_export_lies_here():
    scripts = {path.stem.removeprefix("by_") for path in EXPORTS.glob("by_*.py")}
    folders = {path.name for path in EXPORTS.iterdir() if path.is_dir() and "-" in path.name}
    assert {folder.rsplit("-", 1)[0] for folder in folders} == scripts
    others = {"trec_rag": {"ragnarok-0.0.1", "autojudge_base-1.0.0"}}
    for tool in TOOLS:
        name = tool.name.removesuffix("_experiment")
        written = others.get(name, {folder for folder in folders if name in folder})
        assert {folder.rsplit("-", 1)[1] for folder in written & folders} == {*RELEASE.findall(tool.release)}, tool.name


TAKING = [form for form in FORMS_BY_NAME.values() if form.taken is not None]


@pytest.mark.parametrize("form", TAKING, ids=[form.name for form in TAKING])
def test_the_account_of_a_file_names_columns_that_it_has(form):
    record = json.loads(form.example)
    (fields, *_) = [row for place in form.rows for row in rows_at(record, place)] or [record]
    (fields, *_) = form.each(fields) if form.each else [fields]
    roles = form.taken(fields)
    assert roles
    for name in roles:
        assert re.split(r"\.|\[", name)[0] in fields or name in fields


def deepeval_rows(cells):
    """Return deepeval's CSV with these cells of passages."""
    rows = ["input,actual_output,expected_output,retrieval_context"]
    rows += [f"Who built hall {number}?,Ada,Ada,{cell}" for number, cell in enumerate(cells)]
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        (["One.|Two.", "One.|Two.|Three."], "nothing confirms that number"),
        (["One.|Two.", "Three.|Four.", "The flag is on|off.|Two."], "it has 3 parts here, and 2 in most records"),
        (["a | b", "c | d"], "begins or ends with white space"),
        (["|a|b|", "|c|d|"], "begins or ends with white space, or is empty"),
        (["One.|Two."], "nothing confirms that number"),
    ],
)
def test_a_bar_that_may_belong_to_a_text_is_asked_about(cells, why, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(deepeval_rows(cells))
    with pytest.raises(DataError, match=why) as refused:
        read_docs(path)
    assert f"deepeval(split=yes):{path}" in str(refused.value)
    assert len(read_docs(f"deepeval(split=no):{path}")) == len({*cells})
    parts = {part for cell in cells for part in cell.split("|")}
    assert {doc.text for doc in read_docs(f"deepeval(split=yes):{path}")} == parts


def test_bars_are_split_where_the_file_confirms_the_parts(tmp_path):
    path = tmp_path / "d.csv"
    # The third list is shorter: both of its texts stand alone elsewhere.
    path.write_text(deepeval_rows(["One.|Two.|Three.", "Four.|Five.|Six.", "One.|Four."]))
    lists = read_run(path)
    assert sorted(len(lists.top(query_id)) for query_id in lists.query_ids) == [2, 3, 3]


def test_an_answer_with_a_bar_makes_the_bars_of_passages_doubtful(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(deepeval_rows(["One.|Two.", "Three.|Four."]).replace("1?,Ada", "1?,on|off"))
    with pytest.raises(DataError, match=r"line 3: .*other texts of this record hold it as well"):
        read_docs(path)


@pytest.mark.parametrize(
    ("cell", "texts"),
    [
        ("array(['abc d', 'def'], dtype=object)", ["abc d", "def"]),
        ("array(['abc',\n       'def'], dtype='<U3')", ["abc", "def"]),
        ("array(['abc', ..., 'def'], dtype=object)", None),
        ("page_content='x y' metadata={'a': 1}", None),
        ("Document(page_content='x y')", None),
        ("['abc' 'def']", None),
        ("<__main__.Node object at 0x7f00>", None),
    ],
)
def test_an_object_as_python_shows_it_is_no_passage(cell, texts, tmp_path):
    path = tmp_path / "d.csv"
    quoted = cell.replace('"', '""')
    path.write_text(f'question,contexts,answer,ground_truth\nWho?,"{quoted}",Ada,Ada\n')
    if texts is None:
        with pytest.raises(DataError, match="line 2: 'contexts'"):
            read_docs(path)
    else:
        assert [doc.text for doc in read_docs(path)] == texts


def test_a_document_of_langchain_in_a_list_of_texts_is_refused(tmp_path):
    path = tmp_path / "d.jsonl"
    shown = "page_content='by Ann' metadata={'source': 'a.md'}"
    path.write_text(json.dumps({"question": "Who?", "contexts": [shown], "answer": "A", "ground_truth": "A"}) + "\n")
    with pytest.raises(DataError, match=r"line 1: .*a document as Python shows it"):
        read_docs(path)


ROWS = {"q1": ["a", "b"], "q2": ["a", "b"]}


@pytest.mark.parametrize("column", ["agent", "system", "app", "provider", "run_id", "name", "run"])
def test_a_column_that_tells_the_rows_of_a_question_apart_names_runs(column, tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(f"qid,{column},answer\n" + "".join(f"{q},{r},x\n" for q, runs in ROWS.items() for r in runs))
    content = recognise(path)
    assert (content.kinds, content.run) == (("answer",), column)


def test_another_column_that_tells_rows_apart_is_asked_about(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("qid,annotator,answer\n" + "".join(f"{q},{r},x\n" for q, runs in ROWS.items() for r in runs))
    content = recognise(path)
    assert content.kinds == ()
    for spelled in (f"csv(query_id=qid,answer=answer,run=annotator):{path}", f"csv(id=qid,answers=answer):{path}"):
        assert spelled in content.why
        assert recognise(spelled).kinds
    path.write_text("qid,note,answer\nq1,a,x\nq1,b,y\nq2,c,z\nq2,d,w\n")  # each value once: no runs
    assert recognise(path).kinds == ("answer", "references")


def test_ids_alone_make_a_run_and_judgments(tmp_path):
    path = tmp_path / "r.jsonl"
    row = {"user_input": "Who?", "retrieved_context_ids": ["d1", 2], "reference_context_ids": [2], "response": "Ada"}
    path.write_text(json.dumps(row) + "\n")
    assert recognise(path).kinds == ("query", "run", "qrels", "answer")
    lists = read_run(path)
    assert lists.top(lists.query_ids[0]) == ["d1", "2"]
    assert [*read_qrels(path).table["doc_id"]] == ["2"]
    row["retrieved_contexts"] = ["One text."]
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match="holds 1 passages, 'retrieved_context_ids' 2 ids"):
        read_run(path)


def test_a_golden_set_names_documents_in_cells_too(tmp_path):
    path = tmp_path / "golden.csv"
    path.write_text('question,reference,expected_document_ids\nWho?,Ada,"[""d1"", ""d2""]"\n')
    assert [*read_qrels(path).table["doc_id"]] == ["d1", "d2"]
    assert next(iter(read_queries(path).values())).answers == ("Ada",)


def test_a_run_that_answers_a_question_twice_is_refused(tmp_path):
    lines = (EXPORTS / "promptfoo-0.121.20/out.jsonl").read_text().splitlines()
    path = tmp_path / "out.jsonl"
    path.write_text("\n".join([*lines, lines[0]]) + "\n")
    with pytest.raises(DataError, match=r"line 17: run 'bm25' has the same question twice \(first on line 1\)"):
        read_table(ANSWERS, path)


@pytest.mark.parametrize("indent", [None, 1])
def test_what_chroma_found_for_several_questions_is_read_in_their_order(indent, tmp_path):
    asked = tmp_path / "asked.jsonl"
    asked.write_text("".join(json.dumps({"query_id": q.id, "text": q.text}) + "\n" for q in QUESTIONS))
    for run in RUNS:
        whole = json.loads((EXPORTS / "chromadb-1.5.9" / f"batch-{run}.json").read_text())
        path = tmp_path / f"{run}.json"
        path.write_text(json.dumps(whole, indent=indent))
        why = recognise(path).why
        assert "holds lists of several questions" in why
        cure = re.search(r"write (chroma\(\S+:)FILE", why)[1].replace("QUERIES", asked.name)
        assert recognise(f"{cure}{path}").kinds == ("doc", "run")
        lists, docs = read_run(f"{cure}{path}"), read_docs(f"{cure}{path}")
        one_by_one = EXPORTS / "chromadb-1.5.9" / f"query-{run}.json"
        alone = read_run(one_by_one)
        assert [lists.top(q.id) for q in QUESTIONS] == [alone.top(query_id) for query_id in read_queries(one_by_one)]
        assert [lists.top(q.id) for q in QUESTIONS] == whole["ids"]
        assert [doc.text for doc in docs.get(whole["ids"][0])] == whole["documents"][0]


@pytest.mark.parametrize("number", [2, 3, 5])
def test_lists_of_another_number_of_questions_are_refused(number, tmp_path):
    """`included` names three parts, and is no list of three questions."""
    (tmp_path / "asked.jsonl").write_text("".join(f'{{"query_id": "q{i}", "text": "{i}?"}}\n' for i in range(number)))
    path = tmp_path / "found.json"
    lists = {name: [[f"d{place}"] for place in range(4)] for name in ("ids", "documents", "distances")}
    path.write_text(json.dumps({**lists, "included": ["metadatas", "documents", "distances"]}))
    with pytest.raises(DataError, match=f"{number} queries: there must be one for each"):
        read_run(f"chroma(queries=asked.jsonl):{path}")


def response(*doc_ids, **changed):
    """A response as Elasticsearch's documentation shows it, with the fields of a real one."""
    hits = [{"_index": "halls", "_id": doc, "_score": 1 / rank} for rank, doc in enumerate(doc_ids, 1)]
    whole = {"took": 1, "timed_out": False, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0}}
    return {**whole, "hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": hits}} | changed


def queries_in(folder):
    """A file of three queries, in another order than that of their ids."""
    path = folder / "queries.jsonl"
    path.write_text(
        "".join(json.dumps({"query_id": own, "text": f"Who is {own}?"}) + "\n" for own in ("q2", "q1", "q3"))
    )


THREE = [response("d2", "d9"), response("d1"), response()]


@pytest.mark.parametrize("shape", ["msearch", "array", "lines"])
def test_responses_in_the_order_of_the_queries_are_a_run(shape, tmp_path, monkeypatch):
    """Generated. The cure of the refusal is followed, from another folder, too."""
    queries_in(tmp_path)
    path = tmp_path / "found.json"
    texts = {
        "msearch": json.dumps({"took": 3, "responses": THREE}, indent=1),
        "array": json.dumps(THREE),
        "lines": "".join(json.dumps(each) + "\n" for each in THREE),
    }
    path.write_text(texts[shape])
    with pytest.raises(DataError, match="in the order of your queries") as refused:
        read_run(path)
    cure = re.search(r"write (elasticsearch\(\S+:)FILE", str(refused.value))[1].replace("QUERIES", "queries.jsonl")
    monkeypatch.chdir(tmp_path.parent)
    run = read_run(f"{cure}{path}")
    assert {query_id: run.top(query_id) for query_id in ("q1", "q2")} == {"q1": ["d1"], "q2": ["d2", "d9"]}


def test_responses_must_be_as_many_as_the_queries_and_bear_no_other_id(tmp_path):
    queries_in(tmp_path)
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"responses": THREE[:2]}))
    with pytest.raises(DataError, match=r"holds 2 responses, queries.jsonl 3 queries: there must be one for each"):
        read_run(f"elasticsearch(queries=queries.jsonl):{path}")
    path.write_text(json.dumps({"responses": [*THREE[:2], {**THREE[2], "query_id": "q4"}]}))
    with pytest.raises(DataError, match=r"responses\[2\]: its query is 'q4', and the one in its place in .* 'q3'"):
        read_run(f"elasticsearch(queries=queries.jsonl):{path}")
    with pytest.raises(DataError, match="no such file"):
        read_run(f"elasticsearch(queries=asked.jsonl):{path}")


@pytest.mark.parametrize(
    "part",
    [
        {"error": {"type": "index_not_found_exception"}, "status": 404},
        response("d1", timed_out=True),
        response("d1", _shards={"total": 5, "successful": 4, "skipped": 0, "failed": 1}),
    ],
)
def test_a_search_that_failed_or_was_cut_short_is_no_list(part, tmp_path):
    """A list of fewer documents than the index holds would look like the retriever's."""
    queries_in(tmp_path)
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"responses": [THREE[0], part, THREE[2]]}))
    with pytest.raises(DataError, match=r"responses\[1\]: the search failed or timed out"):
        read_run(f"elasticsearch(queries=queries.jsonl):{path}")
    path.write_text(json.dumps({"query_id": "q1", "response": part}) + "\n")
    if "error" not in part:
        with pytest.raises(DataError, match="line 1: the search failed or timed out"):
            read_run(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_folder_of_responses_is_a_run_by_the_names_of_its_files(indent, tmp_path):
    folder = tmp_path / "bm25"
    folder.mkdir()
    for own, found in zip(("q2", "q1", "q3"), THREE, strict=True):
        (folder / f"{own}.json").write_text(json.dumps(found, indent=indent))
    assert (recognise(folder).form.name, recognise(folder).kinds) == ("elasticsearch", ("run",))
    for spelled in (folder, f"files:{folder}"):
        run = read_run(spelled)
        assert {query_id: run.top(query_id) for query_id in ("q1", "q2")} == {"q1": ["d1"], "q2": ["d2", "d9"]}
    (folder / "q2.json").write_text("[]")
    with pytest.raises(DataError, match=r"q2\.json.*"):
        read_run(folder)
    (folder / "q2.json").write_text(json.dumps(response("d1", timed_out=True)))
    with pytest.raises(DataError, match=r"q2\.json: the search failed"):
        read_run(folder)
    (folder / "notes.txt").write_text("by Ann")
    with pytest.raises(DataError, match="is not a folder whose files are all JSON"):
        read_run(f"files:{folder}")


@pytest.mark.parametrize(
    ("spelled", "name"), [("", "run"), ("rag(run=model):", "model"), ("", "answer"), ("", "rating")]
)
def test_half_a_character_in_an_answer_or_its_run_is_refused_with_its_line(spelled, name, tmp_path):
    path = tmp_path / "app.jsonl"
    row = {"question": "Who?", "contexts": ["by Ann"], "answer": "Ann", "ground_truth": "Ann"}
    path.write_text(json.dumps({**row, name: "\ud800"}) + "\n")
    with pytest.raises(DataError, match=r"line 1: '\w+' holds .* half of a surrogate pair"):
        read_table(ANSWERS, f"{spelled}{path}")


def test_a_folder_of_objects_is_docs_by_the_names_of_its_files(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    for number in (2, 1):
        (folder / f"p{number}.json").write_text(
            json.dumps({"title": f"T{number}", "text": f"Page {number}."}, indent=1)
        )
    (folder / "p3.json").write_text(json.dumps({"doc_id": "own", "text": "Page 3."}))
    docs = read_docs(folder)
    assert {doc.doc_id: doc.text for doc in docs} == {"p1": "Page 1.", "p2": "Page 2.", "own": "Page 3."}
    (folder / "p4.json").write_text(json.dumps({"title": "T"}))
    with pytest.raises(DataError, match=r"p4\.json: this doc lacks the field 'text'"):
        read_docs(folder)
