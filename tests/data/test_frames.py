"""Whatever people hold is taken by the same rules as files, and anything else is told what was expected."""

import json
from collections import namedtuple
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import judgekit as jk
from judgekit.collection import Collection
from judgekit.data.documents import Doc, Query
from judgekit.data.frames import as_docs, as_labelings, as_queries, as_runs
from judgekit.data.labelings import Scale
from judgekit.data.runs import Run
from judgekit.errors import DataError, UsageError

QUERIES = {"007": Query("007", "who?", ("Ann", "A. B.")), "NA": Query("NA", "what?")}
DOCS = [Doc("d1", "one", "A", "p1"), Doc("d2", "")]


GenericQuery = namedtuple("GenericQuery", "query_id text")  # as ir_datasets holds one


def query_table(answers: object, none: object) -> pd.DataFrame:
    frame = pd.DataFrame({"query_id": ["007", "NA"], "text": ["who?", "what?"]})
    return frame.assign(answers=pd.Series([answers, none], dtype=object))


ANSWERS = ["Ann", "A. B."]
ARROW = {"query_id": ["007", "NA"], "text": ["who?", "what?"], "answers": [ANSWERS, None]}
QUERY_FORMS: list[Any] = [
    *(query_table(some, no) for some in (ANSWERS, tuple(ANSWERS), np.array(ANSWERS, object)) for no in ([], None)),
    *(query_table(ANSWERS, no) for no in (np.nan, pd.NA)),
    query_table(ANSWERS, []).rename(columns={"query_id": "id", "text": "question"}).set_index(np.array(["x", "y"])),
    pa.table(ARROW).to_pandas(types_mapper=pd.ArrowDtype),
    list(QUERIES.values()),
    [{"query_id": "007", "text": "who?", "answers": ANSWERS}, GenericQuery("NA", "what?")],
    [QUERIES["007"], {"id": "NA", "question": "what?"}],
    {"007": {"text": "who?", "answers": tuple(ANSWERS)}, "NA": "what?"},
]
DOC_FORMS: list[Any] = [
    pd.DataFrame({"doc_id": ["d1", "d2"], "text": ["one", ""], "title": ["A", None], "page_id": ["p1", None]}),
    iter(DOCS),
    [{"doc_id": "d1", "text": "one", "title": "A", "page_id": "p1"}, {"docid": "d2", "contents": ""}],
    {"d1": {"text": "one", "title": "A", "page_id": "p1"}, "d2": ""},
]


@pytest.mark.parametrize("given", QUERY_FORMS)
def test_queries_come_in_any_form(given: Any) -> None:
    assert as_queries(given) == QUERIES
    assert as_queries(QUERIES) is QUERIES


@pytest.mark.parametrize("given", DOC_FORMS)
def test_docs_come_in_any_form(given: Any) -> None:
    assert as_docs(given).get(["d1", "d2"]) == DOCS


def asked(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("take", "given", "reason"),
    [
        (as_queries, asked(id=["a", "a"], text=["x", "y"]), "query table, row 2: query 'a' appears twice"),
        (as_queries, asked(id=["a", None], text=["x", "y"]), "row 2: 'id' must be a string, not null"),
        (as_queries, asked(id=[], text=[]), "^holds no queries"),
        (as_queries, asked(id=["a"], question=["x"], query=["y"]), "choose one, by renaming the other"),
        (as_queries, {"a": Query("a", "x"), "b": Query("c", "y")}, "row 2: its key is 'b', but its query_id is 'c'"),
        (as_queries, [Query("a", "x", "Paris")], "row 1: 'answers' must be a list of strings, not a string"),
        (as_queries, {7: "x"}, "row 1: 'query_id' must be a string, not the number 7; ids are strings"),
        (as_runs, {"bm25": {"q": {7: 1.0}}}, "'doc_id' of the run 'bm25' table, row 1: must be a string"),
        (as_runs, {"bm25": {7: {"d": 1.0}}}, "row 1: .* not the number 7; ids are strings, write .7."),
        (as_runs, asked(query_id=["q", "q"], doc_id=["d", "d\te"], score=[2, 1]), "row 2: 'd.te' holds white space"),
        (as_labelings, asked(query_id=["q\u2003"], doc_id=["d"], relevance=[1]), "row 1: 'q.u2003' holds white space"),
        (as_runs, asked(query_id=["q"], doc_id=["d"], score=[True]), "row 1: must be a number, not true"),
        (as_labelings, asked(qid=["q"], docno=["d"], rel=[1], grade=[2]), "row 1: has 'rel' and 'grade'; choose one"),
        (as_runs, [{"qid": "q", "topic": "r", "docno": "d", "score": 1}], "row 1: has 'qid' and 'topic'; choose one"),
        (as_runs, {"bm25": [{"qid": "q", "docno": "d", "score": "high"}]}, "row 1: 'high' is not a number"),
        (as_runs, {"bm25": {"q": {"d": 1.0, "e": None}}}, "query 'q', doc 'e' is nan; scores must be finite"),
        (as_runs, {"bm25": []}, "run 'bm25': expected rows with query_id, doc_id, score, got none"),
    ],
)  # fmt: skip
def test_what_is_not_right_is_an_error_that_says_where(take: Callable[[Any], object], given: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        take(given)


def test_a_table_of_several_runs_is_not_taken_for_one() -> None:
    table = pd.DataFrame({"run": ["a", "b"], "query_id": ["q1", "q1"], "doc_id": ["d1", "d2"], "score": [1.0, 2.0]})
    with pytest.raises(UsageError, match=r"holds 2 runs, by its column 'run': give each by its name"):
        as_runs(table)
    found = as_runs({str(name): rows for name, rows in table.groupby("run")})
    assert [(run.name, len(run)) for run in found] == [("a", 1), ("b", 1)]


BM25 = {"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.5}}
GOLD = {"q1": {"d1": 2, "d2": 0}, "q2": {"d1": 1}}


def rows(content: dict[str, dict[str, Any]], kind: Any) -> list[Any]:
    return [kind(q, d, value) for q, docs in content.items() for d, value in docs.items()]


def table(content: dict[str, dict[str, Any]], value: str) -> pd.DataFrame:
    return pd.DataFrame(rows(content, lambda *row: row), columns=["query_id", "doc_id", value])


def forms(content: dict[str, dict[str, Any]], value: str, kind: Any) -> dict[str, Any]:
    return {
        "DataFrame": table(content, value),
        "pytrec_eval": content,
        "ir_measures": rows(content, kind),
        "dictionaries": table(content, value).to_dict("records"),
    }


RUNS = forms(BM25, "score", ir_measures.ScoredDoc) | {
    "numpy": {q: {d: np.float32(s) for d, s in docs.items()} for q, docs in BM25.items()},
    "Run": Run.from_frame(table(BM25, "score"), "run"),
}
LABELINGS = forms(GOLD, "relevance", lambda *row: ir_measures.Qrel(*row, "0"))


@pytest.mark.parametrize("form", RUNS)
def test_a_run_comes_in_any_form_with_a_name_and_without(form: str) -> None:
    expected = table(BM25, "score")
    [alone] = as_runs(RUNS[form])
    [named] = as_runs({"bm25": RUNS[form]})
    assert (alone.name, named.name) == ("run", "bm25")
    for run in (alone, named):
        pd.testing.assert_frame_equal(run.frame(), expected, check_dtype=False)


def test_runs_come_as_a_list_of_files_and_of_runs(tmp_path: Path) -> None:
    (tmp_path / "dense.trec.gz").write_text("q1 Q0 d1 1 1.0 tag\n")
    given = [tmp_path / "dense.trec.gz", RUNS["Run"]]
    assert [run.name for run in as_runs(given)] == ["dense", "run"]
    assert [run.name for run in as_runs(tmp_path / "dense.trec.gz")] == ["dense"]
    found = as_runs({"a": BM25, "b": {"q1": {}, "q2": {"d1": 1}}, "c": RUNS["Run"], "d": str(given[0])})
    assert [run.name for run in found] == ["a", "b", "c", "d"]
    assert as_runs([RUNS["Run"]]) == [RUNS["Run"]]
    assert [len(run) for run in as_runs(iter(RUNS["dictionaries"]))] == [3]
    assert RUNS["Run"].name == "run"


@pytest.mark.parametrize("form", LABELINGS)
def test_a_labeling_comes_in_any_form_and_whole_numbers_are_grades_as_in_a_file(form: str, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n")
    [read] = as_labelings(tmp_path / "qrels")
    [alone] = as_labelings(LABELINGS[form])
    [named] = as_labelings({"gold": LABELINGS[form]}, {"gold": "grades:3:2"})
    assert (read.name, alone.name, named.name) == ("qrels", "qrels", "gold")
    assert (str(alone.scale), alone.declared) == (str(read.scale), read.declared) == ("grades:2", False)
    assert (str(named.scale), named.declared) == ("grades:3:2", True)
    for labeling in (alone, named):
        assert labeling.table[["query_id", "doc_id", "relevance"]].equals(
            read.table[["query_id", "doc_id", "relevance"]]
        )


def test_what_came_instead_is_told() -> None:
    for given, told in ((None, "NoneType"), (5, "int"), ([], "none"), ([5], "list of int")):
        with pytest.raises((DataError, UsageError), match=f"got {told}$"):
            as_runs(given)


def test_labelings_come_as_objects_and_keep_what_they_are() -> None:
    [guessed] = as_labelings(GOLD)
    assert as_labelings([guessed]) == as_labelings(guessed) == [guessed]
    [renamed] = as_labelings({"gold": guessed})
    assert (renamed.name, renamed.declared, guessed.name) == ("gold", False, "qrels")


def test_labels_that_are_not_whole_numbers_need_a_scale() -> None:
    given = {"gold": {"q": {"d": 1.0, "e": 0.5}}}
    with pytest.raises(DataError, match=r"'gold': the relevance 0.5 is not a whole number: declare .*scales=\{'NAME'"):
        as_labelings(given)
    assert str(as_labelings(given, {"gold": Scale("unit")})[0].scale) == "unit"
    with pytest.raises(UsageError, match=r"scales: unknown labeling 'gould': choose from gold. Did you mean 'gold'"):
        as_labelings(given, {"gold": "unit", "gould": "grades:3"})


SERIES = pd.Series(["a"])
NEITHER: dict[Callable[[Any], object], tuple[str, list[Any]]] = {
    as_queries: ("queries", [None, b"x", {"a": 5}, [[1]], Run, SERIES]),
    as_docs: ("docs", [5, {"a": None}]),
    as_runs: ("a run", [None, 5, b"x", {"a": 5}, {"a": None}, [5], [BM25], {1: RUNS["Run"]}, [(1, 2)], SERIES]),
    as_labelings: ("a labeling", [None, 5, {"a": 5}, [5], [table(GOLD, "relevance")], [(1, 2)], SERIES]),
}


@pytest.mark.parametrize(
    ("read", "what", "given"),
    [(read, what, given) for read, (what, values) in NEITHER.items() for given in values],
)
def test_what_is_something_else_is_told_what_was_expected(read: Callable[[Any], object], what: str, given: Any) -> None:
    with pytest.raises(UsageError, match=rf"{what} must be a (TREC qrels )?file, a DataFrame .*; got "):
        read(given)


@pytest.mark.parametrize("form", ["file", "dictionaries"])
def test_distances_in_the_place_of_scores_are_noticed(form: str, tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    labels = {f"q{q}": {"d1": 1, "d4": 0} for q in range(7)}

    def noted(sign: int) -> list[str]:
        held: Any = {q: {f"d{rank}": sign * rank / 8 for rank in range(1, 5)} for q in labels}
        if form == "file":
            path.write_text("".join(f"{q} Q0 {d} {d[1:]} {s} x\n" for q, docs in held.items() for d, s in docs.items()))
            held = path
        docs = {f"d{rank}": "text" for rank in range(1, 5)}
        queries = {query_id: {"text": "who?", "answers": ["text"]} for query_id in labels}
        found = jk.score({"a": held}, labels, "P@1").warnings
        assert [*Collection.make(queries, docs, {"a": held}, 3).notes] == found
        return found

    assert noted(-1) == []
    [note] = noted(1)
    by_rank = f"run 'a' ({path}): its scores contradict its ranks (always the next rank has the higher score)"
    assert note.startswith(by_rank if form == "file" else "run 'a': every list goes from the lowest score to the high")


@pytest.mark.parametrize("docno", [["a", "b"], ["10", "20"]])
def test_terriers_docno_is_the_document_and_its_docid_a_number_of_the_index(docno: list[str], tmp_path: Path) -> None:
    frame = pd.DataFrame({"qid": ["1", "1"], "docid": [7, 3], "docno": docno, "rank": [0, 1], "score": [2.0, 1.0]})
    frame.to_csv(tmp_path / "run.csv", index=False)
    frame.to_parquet(tmp_path / "run.parquet")
    read = [as_runs({"bm25": frame})[0], jk.read_run(tmp_path / "run.csv"), jk.read_run(tmp_path / "run.parquet")]
    assert [run.frame()["doc_id"].tolist() for run in read] == [docno] * 3


class Stream:
    """A table that only hands out its rows as Arrow has them, as those of polars and DuckDB do."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(frame)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def views(frame: pd.DataFrame) -> pa.Table:
    """Return a table whose lists hold views of texts, as those of polars do."""
    table = pa.Table.from_pandas(frame)
    if "answers" not in table.column_names:
        return table
    if not hasattr(pa, "string_view"):
        pytest.skip("Arrow before 16 has no views of texts")
    lists = pa.array(frame["answers"].tolist(), pa.list_(pa.string_view()))
    return table.set_column(table.column_names.index("answers"), "answers", lists)


@pytest.mark.parametrize("made", [Stream, pa.Table.from_pandas, views])
def test_tables_of_other_libraries_are_taken_by_arrows_interface(made: Callable[[pd.DataFrame], Any]) -> None:
    queries = pd.DataFrame({"query_id": ["007"], "text": ["Who?"], "answers": [["Ann", "A."]]})
    docs = pd.DataFrame({"doc_id": ["d1", "d2"], "text": ["by Ann", "no"], "title": [None, "t"]})
    run = pd.DataFrame({"query_id": ["007"] * 2, "doc_id": ["d1", "d2"], "score": [2.0, 1.0]})
    labels = pd.DataFrame({"query_id": ["007"], "doc_id": ["d1"], "relevance": [1]})
    assert as_queries(made(queries)) == as_queries(queries)
    assert as_docs(made(docs)).get(["d1", "d2"]) == as_docs(docs).get(["d1", "d2"])
    assert as_runs({"a": made(run)})[0].frame().equals(as_runs({"a": run})[0].frame())
    assert as_runs(made(run))[0].name == "run"
    assert as_labelings({"g": made(labels)})[0].table.equals(as_labelings({"g": labels})[0].table)


@pytest.mark.parametrize("made", [Stream, pa.Table.from_pandas, pd.DataFrame])
def test_a_table_of_questions_with_their_passages_is_a_run(made: Callable[[pd.DataFrame], Any]) -> None:
    found = [[{"id": "d2", "text": "no"}, {"id": "d1", "text": "by Ann"}], [{"id": "d1", "text": "by Ann"}]]
    frame = pd.DataFrame({"query_id": ["007", "8"], "question": ["Who?", "By whom?"], "documents": found})
    [run] = as_runs({"app": made(frame)})
    assert [run.top("007"), run.top("8")] == [["d2", "d1"], ["d1"]]
    assert as_docs(made(frame)).get(["d1"]) == [Doc("d1", "by Ann")]


def test_relevant_documents_may_be_a_set_for_each_query() -> None:
    """As sentence-transformers holds them."""
    relevant = {"1": {"d1", "d9"}, "2": frozenset({"d1"})}
    for given in (relevant, {"gold": relevant}):
        [labeling] = as_labelings(given)
        rows = [*labeling.table[["query_id", "doc_id", "relevance"]].itertuples(index=False, name=None)]
        assert sorted(rows) == [("1", "d1", 1), ("1", "d9", 1), ("2", "d1", 1)]
    with pytest.raises(UsageError, match="a run must be"):
        as_runs(relevant)


def test_lists_of_ids_by_query_are_relevant_documents_or_a_ranked_run() -> None:
    """As LlamaIndex holds the one, and loops over retrievers leave the other; the argument says which."""
    ids: dict[str, list[str]] = {"3": [], "1": ["d9", "d1"], "2": ["d1"]}
    for given in (ids, {"gold": ids}):
        [labeling] = as_labelings(given)
        rows = [*labeling.table[["query_id", "doc_id", "relevance"]].itertuples(index=False, name=None)]
        assert sorted(rows) == [("1", "d1", 1), ("1", "d9", 1), ("2", "d1", 1)]
        [run] = as_runs(given)
        assert [run.top("1"), run.top("2")] == [["d9", "d1"], ["d1"]]
        assert run.name == ("run" if given is ids else "gold")
    for twice in ({"1": ["d1", "d1"]}, {"a": {"1": ["d1", "d1"]}}):
        with pytest.raises(DataError, match="'d1'"):
            as_runs(twice)
        with pytest.raises(DataError, match="'d1'"):
            as_labelings(twice)
    for bad in ({"1": ["d1", 2]}, {"1": ["d1", None]}, {"1": ["d1"], "2": "d1"}, {"1": ["d1"], "2": 3}):
        with pytest.raises((DataError, UsageError)):
            as_runs(bad)


def test_ids_may_be_the_index_of_a_table_of_pairs() -> None:
    """As a groupby of pandas leaves them."""
    frame = table(BM25, "score")
    best = frame.groupby(["query_id", "doc_id"])[["score"]].max()
    assert as_runs({"a": best})[0].frame().equals(as_runs({"a": frame})[0].frame())
    assert as_runs({"a": frame.set_index("query_id")})[0].frame().equals(as_runs({"a": frame})[0].frame())
    labels = table(GOLD, "relevance").set_index("doc_id")
    assert len(as_labelings({"g": labels})[0]) == 3
    # A column counts, not an index of the same name.
    both = frame.set_index(pd.Index(["x", "y", "z"], name="query_id"))
    assert as_runs({"a": both})[0].frame().equals(as_runs({"a": frame})[0].frame())


def test_numbers_may_be_decimals_as_databases_give_them(tmp_path: Path) -> None:
    frame = table(BM25, "score")
    exact = frame.assign(score=[Decimal(f"{score:.1f}") for score in frame["score"]])
    exact.to_parquet(tmp_path / "run.parquet")
    given = [exact, exact.to_dict("records"), pa.Table.from_pandas(exact), tmp_path / "run.parquet"]
    for run in (as_runs({"a": one})[0] for one in given):
        assert run.frame().equals(as_runs({"a": frame})[0].frame())


def test_records_may_hold_what_numpy_makes_of_them() -> None:
    """As datasets with the format of numpy do."""
    cells = {"query_id": np.str_("007"), "text": np.str_("Who?"), "answers": np.array(["Ann", "A."])}
    assert as_queries([cells]) == {"007": Query("007", "Who?", ("Ann", "A."))}
    assert as_queries([{**cells, "answers": np.array([], object)}]) == {"007": Query("007", "Who?")}
    [run] = as_runs({"a": [{"query_id": np.str_("q"), "doc_id": np.str_("d"), "score": np.float32(0.5)}]})
    assert run.top("q") == ["d"]


def test_rows_without_names_are_refused_with_a_way_to_name_them() -> None:
    """As cursors of databases give them: whether a number is a score, a rank or a grade, nothing says."""
    for take in (as_runs, as_labelings, as_queries, as_docs):
        with pytest.raises(UsageError, match=r"list of tuple of str. Rows need names: pd.DataFrame\(rows, columns="):
            take([("q1", "d1", 2.0), ("q1", "d2", 1.0)])


class Dataset:
    """A dataset of Hugging Face, perhaps streamed, whose rows come in any format."""

    def __init__(self, held: pa.Table, form: str | None = None) -> None:
        self.held, self.form = held, form

    def __iter__(self) -> Any:
        return (self.held.slice(row, 1).to_pandas() for row in range(len(self.held)))

    def with_format(self, form: str | None) -> "Dataset":
        return Dataset(self.held, form)

    def iter(self, batch_size: int) -> Any:
        assert self.form == "arrow"
        return (self.held.slice(start, batch_size) for start in range(0, len(self.held), batch_size))


JUDGED = Path(__file__).parent.parent / "exports" / "datasets-5.2.0" / "judged.parquet"


def test_classes_of_hugging_face_are_read_by_their_names_not_their_numbers() -> None:
    """Whose order is that of the alphabet: -1, 0, 1, 10, 2."""
    held = pq.read_table(JUDGED)
    assert held["relevance"].to_pylist()[:5] == [0, 1, 2, 4, 3]
    for given in (JUDGED, held, Dataset(held)):
        [labeling] = as_labelings({"g": given})
        assert labeling.table["relevance"].tolist()[:5] == [-1, 0, 1, 2, 10]
        assert str(labeling.scale) == "grades:-1..10"


def test_classes_without_grades_as_names_are_refused(tmp_path: Path) -> None:
    """QNLI calls an answer that is there class 0."""
    label = {"names": ["entailment", "not_entailment"], "_type": "ClassLabel"}
    about = json.dumps({"info": {"features": {"old": [{"a": 1}], "label": label}}}).encode()
    rows = {"query_id": ["q1", "q2", "q3"], "doc_id": ["d1", "d2", "d3"], "label": [0, 1, -1]}
    held = pa.table(rows).replace_schema_metadata({b"huggingface": about})
    pq.write_table(held, tmp_path / "qnli.parquet")
    for given in (tmp_path / "qnli.parquet", held, Dataset(held)):
        with pytest.raises(DataError, match="'entailment'"):
            as_labelings({"g": given})
    for odd in (b"{", b"[]", b'{"info": {"features": {"label": [{"a": 1}]}}}', b'{"info": {"features": []}}'):
        assert len(as_labelings({"g": held.replace_schema_metadata({b"huggingface": odd})})[0]) == 3
