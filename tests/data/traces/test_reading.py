"""Exported traces become queries, docs, runs, answers and ratings: Phoenix in its forms, and Langfuse in its."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.traces import Traces
from judgekit.errors import DataError
from tests.exports.halls import FAILS, QUESTIONS, RUNS

DOCS = [("d1", "The mill burnt in 1850."), ("d2", "The mill is tall.")]
Record = dict[str, Any]


def spans(trace: str, question: str, answer: Any, start: int, run: str = "dense", session: str = "") -> list[Record]:
    """A trace as Phoenix' client gives its spans: nested attributes."""

    def span(name: str, kind: str, second: int, **attributes: Any) -> Record:
        return {
            "name": name,
            "span_kind": kind,
            "parent_id": None if kind == "CHAIN" else f"{trace}-root",
            "start_time": f"2026-01-01T00:00:{start + second:02}+00:00",
            "context": {"trace_id": trace, "span_id": f"{trace}-{'root' if kind == 'CHAIN' else second}"},
            "attributes": {"openinference": {"span": {"kind": kind}}, "session": {"id": session}, **attributes},
        }

    found = [{"document": {"id": name, "content": text, "score": 0.5}} for name, text in DOCS]
    return [
        span("answer", "LLM", 2, llm={"model_name": "model-a"}),
        span(run, "RETRIEVER", 1, retrieval={"documents": found}, input={"value": question}),
        span("chain", "CHAIN", 0, input={"value": json.dumps({"question": question})}, output={"value": answer}),
    ]


PHOENIX = [
    *spans("t1", "When did it burn?", "1850", 0, session="s"),
    *spans("t2", "Why?", "Lightning.", 10, session="s"),
    *spans("t3", "When did it burn?", "1851", 20, run="sparse"),
    {"span_id": "t1-root", "name": "helpful", "annotator_kind": "HUMAN", "result": {"label": "up", "score": None}},
    {"span_id": "t3-2", "name": "helpful", "annotator_kind": "HUMAN", "result": {"label": "down", "score": 0}},
]


def lines(path: Path, rows: list[Record]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def check(found: Traces) -> None:
    first, second = found.queries.values()
    assert (first.query_id, first.text, first.messages) == ("t1", "When did it burn?", ())
    assert [turn["content"] for turn in second.messages] == ["When did it burn?", "1850", "Why?"]
    assert second.column("history") == "user: When did it burn?\nassistant: 1850"
    assert {run.name: run.top("t1") for run in found.runs} == {"dense": ["d1", "d2"], "sparse": ["d1", "d2"]}
    assert found.docs.get(["d1"]) == [jk.Doc("d1", "The mill burnt in 1850.")]
    told = found.answers[["run", "depth", "query_id", "model", "answer"]].values.tolist()
    assert told == [
        ["dense", 2, "t1", "model-a", "1850"],
        ["dense", 2, "t2", "model-a", "Lightning."],
        ["sparse", 2, "t1", "model-a", "1851"],
    ]
    rated = found.ratings[["run", "query_id", "metric", "value"]].values.tolist()
    assert rated == [["dense", "t1", "helpful", "up"], ["sparse", "t1", "helpful", 0]]
    assert found.left_out == []


def flat(span: Record) -> Record:
    """The attributes of a span under their whole names."""
    return {str(name): value for name, value in pd.json_normalize(span["attributes"]).iloc[0].items()}


def test_spans_of_phoenix_as_a_table_and_annotations_apart(tmp_path: Path) -> None:
    rows = []
    for span in PHOENIX[:9]:
        row = {f"attributes.{name}": value for name, value in flat(span).items()}
        if found := row.get("attributes.retrieval.documents"):
            documents = [{f"document.{k}": v for k, v in one["document"].items()} for one in found]
            row["attributes.retrieval.documents"] = documents
        context = {f"context.{k}": v for k, v in span["context"].items()}
        rows.append({k: span[k] for k in ("name", "span_kind", "parent_id", "start_time")} | row | context)
    pd.DataFrame(rows).to_parquet(tmp_path / "spans.parquet")
    check(jk.read_traces([tmp_path / "spans.parquet", lines(tmp_path / "annotations.jsonl", [{"data": PHOENIX[9:]}])]))


def as_langfuse(rows: list[Record]) -> list[Record]:
    """The same traces as Langfuse exports them one by one, with their observations and scores inside."""
    out = []
    ratings = {row["span_id"].partition("-")[0]: row for row in rows if "result" in row}
    each = iter([row for row in rows if "context" in row])
    for llm, found, root in zip(each, each, each, strict=True):
        trace, documents = root["context"]["trace_id"], found["attributes"]["retrieval"]["documents"]
        each_doc = (one["document"] for one in documents)
        output = [{"id": doc["id"], "page_content": doc["content"], "metadata": {}} for doc in each_doc]
        inside = [
            {"type": "GENERATION", "name": "llm", "startTime": llm["start_time"], "model": "model-a"},
            {"type": "RETRIEVER", "name": found["name"], "startTime": found["start_time"], "output": output},
        ]
        rated = ratings[trace]["result"] if trace in ratings else {}
        said = {"stringValue": rated.get("label")} if rated.get("score") is None else {"value": rated["score"]}
        out.append(
            {
                "id": trace,
                "timestamp": root["start_time"],
                "sessionId": root["attributes"]["session"]["id"] or None,
                "input": json.loads(root["attributes"]["input"]["value"]),
                "output": root["attributes"]["output"]["value"],
                "observations": [{"id": f"o{i}", "parentObservationId": None, **one} for i, one in enumerate(inside)],
                "scores": [{"id": "s1", "name": "helpful", **said}] if rated else [],
            }
        )
    return out


@pytest.mark.parametrize("form", [list, as_langfuse])
def test_spans_of_phoenix_as_json_lines_and_traces_of_langfuse_with_all_inside(form: Any, tmp_path: Path) -> None:
    check(jk.read_traces(lines(tmp_path / "traces.jsonl", form(PHOENIX))))


def test_traces_of_langfuse_in_three_files(tmp_path: Path) -> None:
    traces, observations, scores = [], [], []
    for trace in as_langfuse(PHOENIX):
        observations += [{**one, "trace_id": trace["id"]} for one in trace.pop("observations")]
        scores += [{**one, "trace_id": trace["id"]} for one in trace.pop("scores")]
        traces.append(trace)
    names = {"scores": scores, "observations": observations, "traces": traces}
    check(jk.read_traces([lines(tmp_path / f"{name}.jsonl", rows) for name, rows in names.items()]))


def test_what_cannot_be_used_is_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    asked_again = spans("t4", "When did it burn?", 1852, 30, run="sparse")
    silent = spans("t5", "x", "y", 40)
    for span in silent:
        span["attributes"]["input"] = {"value": None}
    bare = [span for span in spans("t6", "Where?", "Here.", 50) if span["span_kind"] != "RETRIEVER"]
    stray = {"span_id": "elsewhere", "name": "helpful", "annotator_kind": "HUMAN", "result": {"score": 1}}
    found = jk.read_traces(lines(tmp_path / "spans.jsonl", [*PHOENIX, *asked_again, *silent, *bare, stray]))
    assert sorted(found.left_out) == [
        "1 of 6 traces hold no question",
        "1 of 6 traces hold no retrieval (a step of kind RETRIEVER)",
        "1 of 6 traces were replaced by a later one of the same run on the same question",
        "2 of 3 ratings are of other traces, or repeated",
    ]
    assert "1852" in set(found.answers["answer"])
    assert list(found.ratings["query_id"]) == ["t1"], "nothing of the trace that was replaced"
    assert list(found.ratings["run"]) == ["dense"]


def test_lists_of_one_trace_are_one_list_and_the_answer_is_about_the_last_run(tmp_path: Path) -> None:
    rows = spans("t1", "When?", "1850", 0)
    again = spans("t1", "When?", "1850", 5)[1]
    new = [{"document": {"content": "New."}}, {"document": {"id": "d1", "content": DOCS[0][1]}}]
    again["attributes"]["retrieval"] = {"documents": new}
    reranked = {**spans("t1", "When?", "1850", 9)[1], "name": "rerank"}
    reranked["attributes"] = {**reranked["attributes"], "openinference": {"span": {"kind": "RERANKER"}}}
    found = jk.read_traces(lines(tmp_path / "spans.jsonl", [*rows, again, reranked]))
    assert [run.name for run in found.runs] == ["dense", "rerank"]
    assert found.runs[0].top("t1")[:2] == ["d1", "d2"]
    assert len(found.runs[0].top("t1")) == 3
    assert found.answers[["run", "depth"]].values.tolist() == [["rerank", 2]]


def test_what_counts_is_when_it_happened_wherever_it_stands_in_the_file(tmp_path: Path) -> None:
    early, late = spans("z", "When?", "1850", 0, session="s"), spans("a", "When?", "1852", 30)
    why = spans("b", "Why?", "Lightning.", 20, session="s")
    wide = {**early[1], "name": "wide", "start_time": "2026-01-01T00:00:00+00:00"}
    wide["attributes"] = {"retrieval": {"documents": [{"document": {"content": f"{i}"}} for i in range(3)]}}
    why[1]["attributes"]["retrieval"]["documents"].pop()
    found = jk.read_traces(lines(tmp_path / "spans.jsonl", [*late, *why, *early, wide]))
    assert [query.query_id for query in found.queries.values()] == ["z", "b"]
    assert [turn["content"] for turn in found.queries["b"].messages] == ["When?", "1850", "Why?"]
    told = found.answers[["run", "depth", "query_id", "model", "answer"]].values.tolist()
    assert sorted(told) == [["dense", 2, "b", "model-a", "Lightning."], ["dense", 2, "z", "model-a", "1852"]]


def test_the_model_is_that_of_the_last_llm_span(tmp_path: Path) -> None:
    rows = spans("t", "When?", "1850", 0)
    first = {**rows[0], "start_time": "2026-01-01T00:00:00+00:00"}
    first["attributes"] = {**rows[0]["attributes"], "llm": {"model_name": "rewriter"}}
    found = jk.read_traces(lines(tmp_path / "spans.jsonl", [*rows, first]))
    assert found.answers["model"].tolist() == ["model-a"]


def retrieved(documents: Any) -> list[Record]:
    return [{**spans("t", "W?", "x", 0)[1], "attributes": {"retrieval": {"documents": documents}}}]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"query_id": "q1", "answer": "x"}], r"jsonl, line 1: is not a span, a trace or a score \(it has: query_id"),
        (spans("t", "Where?", "Here.", 0)[::2], "no trace holds both a question and a retrieval"),
        (retrieved([{"document": {"id": "d"}}]), "trace t: step 'dense' holds a document without its content"),
        (retrieved("['by Ann' 'by Bob']"), "the documents are not written as JSON .*: export the table as Parquet"),
    ],
)
def test_other_files_are_refused(rows: list[Record], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        jk.read_traces(lines(tmp_path / "spans.jsonl", rows))


EXPORTS = Path(__file__).parents[2] / "exports" / "langfuse-5.0.4"


def test_scores_of_langfuse_name_their_subject() -> None:
    found = jk.read_traces([EXPORTS / "observations.json", EXPORTS / "scores.json"])
    assert (len(found.queries), [run.name for run in found.runs], len(found.answers)) == (8, ["bm25", "dense"], 16)
    assert found.left_out == []
    # One question of each run has no score.
    assert found.ratings.groupby("metric").size().to_dict() == {"hallucination": 14, "thumb": 14, "verdict": 14}
    thumbs = found.ratings[found.ratings["metric"] == "thumb"].set_index(["run", "query_id"])["value"]
    answers = found.answers.set_index(["run", "query_id"])["answer"]
    assert {key: value is True for key, value in thumbs.items()} == {
        key: "know" not in answer for key, answer in answers.items() if key in thumbs.index
    }


def test_scores_of_other_traces_alone_are_an_error(tmp_path: Path) -> None:
    scores = json.loads((EXPORTS / "scores.json").read_text())
    for score in scores:
        score["subject"]["id"] += "x"
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(scores))
    with pytest.raises(DataError, match="none of the 42 scores is of a trace that is here: the first is of 'bm25000x'"):
        jk.read_traces([EXPORTS / "observations.json", path])


def test_annotations_without_the_index_of_their_table_are_an_error(tmp_path: Path) -> None:
    row = {"annotation_name": "thumb", "annotator_kind": "HUMAN", "id": "U3Bhbjox", "result.score": 1.0}
    path = lines(tmp_path / "annotations.jsonl", [row])
    with pytest.raises(DataError, match=r"annotations.jsonl, line 1: is an annotation without its span_id"):
        jk.read_traces([EXPORTS / "observations.json", path])


OF_PHOENIX = Path(__file__).parents[2] / "exports" / "phoenix-20.26.1"


@pytest.mark.parametrize(
    "files",
    [
        ("spans.jsonl", "annotations.csv"),
        ("spans.csv", "annotations.csv"),
        ("rest-spans.json", "rest-annotations.json"),
    ],
    ids=["JSON lines", "CSV", "REST"],
)
def test_spans_that_phoenix_wrote_hold_what_was_retrieved(files: tuple[str, str]) -> None:
    found = jk.read_traces([OF_PHOENIX / name for name in files])
    texts = {query_id: query.text for query_id, query in found.queries.items()}
    assert sorted(texts.values()) == [question.text for question in QUESTIONS]
    docs = {doc.doc_id: doc.text for doc in found.docs}
    assert docs == {passage.id: passage.text for question in QUESTIONS for passage in question.passages}
    ids = {text: query_id for query_id, text in texts.items()}
    for run in found.runs:
        for question in QUESTIONS:
            assert run.top(ids[question.text]) == [passage.id for passage in question.found(run.name)]
    answers = found.answers.set_index(["run", "query_id"])["answer"]
    assert all(answers[run, ids[q.text]] == q.answer(run) for run in RUNS for q in QUESTIONS)
    assert set(found.answers["depth"]) == {3}
    rated = found.ratings.set_index(["run", "query_id"])["value"].astype(float)
    assert {key: value == 1 for key, value in rated.items()} == {
        (run, ids[q.text]): q.answer(run) == q.reference for run in RUNS for q in QUESTIONS if q.id != FAILS
    }


def test_annotations_that_phoenix_wrote_without_their_index_are_refused() -> None:
    with pytest.raises(DataError, match="call reset_index"):
        jk.read_traces([OF_PHOENIX / "spans.jsonl", OF_PHOENIX / "annotations-without-index.jsonl"])


@pytest.mark.parametrize("backwards", [False, True])
def test_what_an_llm_or_code_annotated_is_not_called_a_persons(backwards: bool, tmp_path: Path) -> None:
    own = [
        {"span_id": "t1-root", "name": "helpful", "annotator_kind": kind, "result": {"score": value}}
        for kind, value in (("LLM", 0), ("CODE", 0), ("HUMAN", 1))
    ]
    rows = [row for row in PHOENIX if row.get("annotator_kind") is None]
    found = jk.read_traces(lines(tmp_path / "spans.jsonl", [*rows, *(own[::-1] if backwards else own)]))
    values = dict(zip(found.ratings["metric"], found.ratings["value"], strict=True))
    assert values == {"helpful (by an LLM)": 0, "helpful (by code)": 0, "helpful": 1}
