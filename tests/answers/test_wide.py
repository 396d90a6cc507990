"""Wide tables of other tools: a row for each answer, a column for each metric, one of them the outcome."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.answers.direction import Directions
from judgekit.answers.wide import ChosenColumns, taken_apart
from judgekit.data.forms.trulens import TRULENS
from judgekit.errors import DataError, UsageError
from judgekit.rules import DeclaredOutcome
from tests.commands import Judgekit
from tests.small import folder, judgekit  # noqa: F401 - fixtures

THUMB = DeclaredOutcome("thumb")
EXPORTS = Path(__file__).parent.parent / "exports"
RAGAS = EXPORTS / "ragas-0.4.3"
ROWS = [
    {"user_input": "Which city?", "response": "x", "faithfulness": 0.5, "relevancy": "0.25", "thumb": "up", "ok": True},
    {
        "user_input": "Which river?",
        "response": "y",
        "faithfulness": None,
        "relevancy": "",
        "thumb": "down",
        "ok": False,
    },
]


def table(rows: int = 80, runs: str = "abc") -> pd.DataFrame:
    """Answers of three runs: faithfulness follows the thumbs, chance does not."""
    random = np.random.default_rng(3)
    made = []
    for query in range(rows):
        for place, run in enumerate(runs):
            good = random.random() < 0.3 + 0.2 * place
            near, chance = good * 0.5 + random.random() / 2, random.random()
            thumb = "up" if good else "down"
            made.append({"question": f"What is {query}?", "run": run, "near": near, "chance": chance, "thumb": thumb})
    return pd.DataFrame(made)


def test_numeric_columns_are_labelings_and_an_empty_cell_is_no_score() -> None:
    apart = taken_apart({"v1": pd.DataFrame(ROWS)}, THUMB)
    scores = apart.scores.pivot(index="query_id", columns="labeling", values="value")
    city, river = apart.quality["query_id"]
    assert scores.loc[city].to_dict() == {"faithfulness": 0.5, "relevancy": 0.25, "ok": 1.0}
    assert scores.loc[river].dropna().to_dict() == {"ok": 0.0}
    ends = apart.scores.set_index(["query_id", "labeling"])[["low", "high"]]
    assert ends.loc[river, "relevancy"].tolist() == [-np.inf, np.inf]
    assert ends.loc[city, "relevancy"].tolist() == [0.25, 0.25]
    assert apart.unused == ("response",)
    assert apart.quality[["run", "metric", "value"]].to_numpy().tolist() == [
        ["v1", "thumb", "up"],
        ["v1", "thumb", "down"],
    ]


def test_a_text_among_numbers_is_a_missing_score_and_named_with_its_line(tmp_path: Path) -> None:
    lines = [f"q{number},{number / 100},{number},{number % 2}" for number in range(20)]
    lines[4] = "q4,N/A,error,1"
    lines[5:8] = ["q5,.5,?,1", "q6,.6,?,0", "q7,,?,1"]
    (tmp_path / "app.csv").write_text("question,good,bad,thumb\n" + "\n".join(lines) + "\n")
    apart = taken_apart({"app": tmp_path / "app.csv"}, THUMB)
    assert apart.scores.groupby("labeling")["value"].agg(["count", "size"]).to_numpy().tolist() == [[18, 20]]
    assert apart.notes == [
        f"good: 1 of 20 cells hold no number and are missing, first {tmp_path / 'app.csv'}, line 6.",
        "Columns without numbers are not compared: bad.",
    ]


def with_gaps() -> dict[str, pd.DataFrame]:
    """Two runs on 40 questions: old is right on 20, new on 30; on the first 20 old leads by 10."""
    random = np.random.default_rng(5)
    tables = {}
    for run, right in (("old", range(20)), ("new", range(10, 40))):
        rows = []
        for query in range(40):
            a, b = random.random(2).round(2)
            thumb = "up" if query in right else "down"
            rows.append({"user_input": f"What is {query}?", "a": a, "b": b, "thumb": thumb})
        tables[run] = pd.DataFrame(rows)
    return tables


def without(table: pd.DataFrame, **first: int) -> pd.DataFrame:
    """Return a table that lacks scores from a row on, by column."""
    return table.assign(**{name: table[name].where(table.index < number) for name, number in first.items()})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"a": 20, "b": 20}, {"a": 20, "b": 20}),
        ({"a": 20}, {"b": 15}),
        ({"a": 10, "b": 30}, {"a": 20}),
        ({"a": 0}, {"b": 35}),
        ({"a": 0, "b": 0}, {}),
    ],
)
def test_a_run_is_chosen_by_every_question_with_an_outcome_whatever_scores_are_missing(
    old: dict[str, int], new: dict[str, int]
) -> None:
    tables = with_gaps()
    whole = jk.compare(tables, outcome="thumb").decision
    gaps = {"old": without(tables["old"], **old), "new": without(tables["new"], **new)}
    lacking = jk.compare(gaps, outcome="thumb").decision
    assert "Ship new: it is shown to be the best of 2, 25.0 points ahead" in " ".join(whole.text.split())
    assert "40 questions, 2 runs" in lacking.text
    chosen = [[claim for claim in found.claims if claim.line == "Choose"] for found in (whole, lacking)]
    assert chosen[0] == chosen[1]
    # Nothing is claimed of labels that lack more than a few scores.
    assert not [claim for claim in lacking.claims if claim.kind in ("keep", "follows") and claim.shown]


def test_a_metric_that_failed_on_some_questions_changes_no_choice_of_a_real_export(judgekit: Judgekit) -> None:  # noqa: F811
    files = [("--scores", RAGAS / f"{run}.csv") for run in ("bm25", "dense")]
    said = " ".join(judgekit("compare", *files[0], *files[1], "--outcome", "exact_match", code=0).out.split())
    assert "ship dense: it answers best so far" in said
    assert "8 questions, 2 runs" in said
    assert "noise_sensitivity(mode=relevant) lack scores on 1 question" in said


def test_the_r_of_the_decision_is_named_above_the_table_that_holds_another(judgekit: Judgekit, tmp_path: Path) -> None:  # noqa: F811
    table(80).to_csv(tmp_path / "app.csv", index=False)
    said = judgekit("compare", "--scores", "app.csv", "--outcome", "thumb", code=0).out
    assert "r_pooled (level within-query) is the r of the decision" in said
    found = jk.compare(pd.read_csv(tmp_path / "app.csv"), outcome="thumb")
    rows = found.wide().set_index(["labeling", "level", "run"]).loc[("near", "within-query", "all")]
    (follows,) = [claim for claim in found.decision.claims if (claim.kind, claim.subject) == ("follows", "near")]
    assert follows.value == rows["r_pooled"] != rows["r"]
    table(80, runs="a").to_csv(tmp_path / "app.csv", index=False)
    assert "r_pooled" not in judgekit("compare", "--scores", "app.csv", "--outcome", "thumb", code=0).out


def test_a_column_of_verdicts_in_words_is_a_score() -> None:
    rows = [
        {"question": f"q{n}", "relevant": ["Yes", "no"][n % 2], "note": ["yes", "why"][n % 2], "thumb": 1}
        for n in range(4)
    ]
    apart = taken_apart({"": pd.DataFrame(rows)}, THUMB)
    assert apart.scores[["labeling", "value"]].to_numpy().tolist() == [
        ["relevant", float(n % 2 == 0)] for n in range(4)
    ]
    assert apart.unused == ("note",)


def test_columns_are_compared_by_name_or_left_out(folder: Path, judgekit: Judgekit) -> None:  # noqa: F811
    rows = [row | {"user_input": f"{row['user_input']} {n}"} for n in range(15) for row in ROWS]
    pd.DataFrame(rows).to_csv(folder / "app.csv", index=False)
    given = ("compare", "--scores", "app.csv", "--outcome", "thumb", "--json")
    for options, names in (
        (["--metric", "ok"], {"ok"}),
        (["--skip", "faithfulness", "--skip", "relevancy"], {"ok"}),
        ([], {"ok", "faithfulness", "relevancy"}),
    ):
        said = json.loads(judgekit(*given, *options, code=0).out)
        assert {row["labeling"] for row in said["comparison"]} == names
    assert "Did you mean 'faithfulness'?" in judgekit(*given, "--skip", "faithfulnes", code=2).err
    long = judgekit("compare", "--scores", "app.csv", "--quality", "app.csv", "--metric", "ok", code=2)
    assert "columns of a table with a row for each answer" in long.err


def test_an_id_of_rows_does_not_stand_before_that_of_questions() -> None:
    rows = [
        {"id": f"{run}{number}", "example_id": f"q{number}", "run": run, "f": number, "thumb": 1}
        for run in ("a", "b")
        for number in range(2)
    ]
    assert set(taken_apart({"": pd.DataFrame(rows)}, THUMB).scores["query_id"]) == {"q0", "q1"}


def test_a_known_tools_own_names_of_runs_and_questions_count() -> None:
    """TruLens calls a run `app_version` and gives each row an id; Azure calls a question `inputs.query`."""
    exports = Path(__file__).parent.parent / "exports"
    records = pd.read_csv(exports / "trulens-2.16.0" / "records.csv")
    records["faithfulness"], records["thumb"] = [0.25, 0.75] * 8, ["up", "down"] * 8
    found = taken_apart({"": records}, THUMB)
    assert set(found.scores["run"]) == {"bm25", "dense"}
    assert found.scores["query_id"].nunique() == 8
    assert found.quality["text"].nunique() == 8
    azure = {run: exports / "azure-1.18.10" / f"{run}.json" for run in ("bm25", "dense")}
    found = taken_apart(azure, DeclaredOutcome("outputs.f1_score.f1_score_result"))
    assert set(found.scores["query_id"]) == {f"{number:03}" for number in range(8)}
    assert "outputs.f1_score.f1_score" in set(found.scores["labeling"])


def test_the_same_question_has_the_same_id_in_every_table_and_a_column_of_ids_goes_before() -> None:
    spaced = [row | {"user_input": f" {row['user_input'].replace(' ', '  ')}\n"} for row in ROWS]
    tables = {"v1": pd.DataFrame(ROWS), "v2": pd.DataFrame(spaced)}
    quality = taken_apart(tables, THUMB).quality
    assert quality.groupby("query_id")["run"].agg(list).tolist() == [["v1", "v2"]] * 2
    for column in ("run", "system", "retriever"):
        named = taken_apart({"": pd.DataFrame(ROWS).assign(query_id=["007", "8"], **{column: "s"})}, THUMB).quality
        assert named[["query_id", "run"]].to_numpy().tolist() == [["007", "s"], ["8", "s"]]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.json", "t.parquet"])
def test_files_of_any_syntax_are_read_alike(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS).assign(relevancy=[0.25, np.nan])
    path = tmp_path / name
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=path.suffix == ".jsonl")
    apart = taken_apart({"v1": path}, THUMB)
    pd.testing.assert_frame_equal(apart.scores, taken_apart({"v1": frame}, THUMB).scores)


BAD: list[tuple[list[dict[str, Any]], str]] = [
    ([{"answer": "x", "f": 1, "thumb": 1}], "no column tells questions apart: expected one of query_id"),
    ([{"question": "x", "f": 1, "thumb": 1}] * 2, "row 2: the same question and run as row 1"),
    ([{"question": None, "f": 1, "thumb": 1}], "row 1: question must be a text that tells questions apart, not None"),
    ([{"question": "x", "answer": "y", "thumb": 1}], "has no numeric column beside the outcome 'thumb'"),
    ([], "the table holds no rows"),
]


@pytest.mark.parametrize(("rows", "message"), BAD)
def test_what_cannot_be_compared_is_an_error_with_its_place(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        taken_apart({"": pd.DataFrame(rows)}, THUMB)
    for outcome in (DeclaredOutcome(), DeclaredOutcome("thmb")):
        with pytest.raises(UsageError, match=r"--outcome COLUMN|Did you mean 'thumb'"):
            taken_apart({"": pd.DataFrame(ROWS)}, outcome)


def test_a_wide_table_is_compared_as_its_parts_are() -> None:
    frame = table()
    apart = taken_apart({"": frame}, THUMB)
    whole = jk.compare(frame, outcome="thumb")
    assert whole.decision.text == jk.compare(apart.scores, apart.quality, outcome="thumb").decision.text
    within = whole.table[(whole.table["level"] == "within-query") & (whole.table["coefficient"] == "concordance")]
    value = within.set_index("labeling")["value"]
    assert value["near"] > 0.95 > 0.65 > value["chance"]


def test_the_command_line_takes_one_table_or_one_a_run(folder: Path, judgekit: Judgekit) -> None:  # noqa: F811
    frame = table()
    frame.to_csv(folder / "all.csv", index=False)
    whole = judgekit("compare", "--scores", "all.csv", "--outcome", "thumb", "--json", code=0).out
    scores = []
    for run, rows in frame.groupby("run"):
        rows.drop(columns="run").to_csv(folder / f"{run}.csv", index=False)
        scores += ["--scores", f"{run}={run}.csv"]
    assert judgekit("compare", *scores, "--outcome", "thumb", "--json", code=0).out == whole
    assert {row["labeling"] for row in json.loads(whole)["comparison"]} == {"near", "chance"}
    assert (
        "--outcome COLUMN (question, run, near, chance, thumb)"
        in judgekit("compare", "--scores", "all.csv", code=2).err
    )


EXPORTED = Path(__file__).parent.parent / "exports" / "deepeval-4.3.1"


@pytest.mark.parametrize(("names", "form"), [("result-{}.json", "a result"), ("test-run/test_run_{}.json", "a run")])
def test_the_metrics_of_deepevals_files_are_columns(names: str, form: str) -> None:
    files = {run: EXPORTED / names.format(run) for run in ("bm25", "dense")}
    apart = taken_apart(files, DeclaredOutcome("Faithfulness"))
    assert apart.scores.groupby(["labeling", "run"]).size().to_dict() == {
        ("Hallucination", "bm25"): 8,
        ("Hallucination", "dense"): 8,
    }, form
    assert apart.quality["value"].notna().all()
    # Its threshold says which values pass: in version 4 the high ones.
    assert not apart.asked
    assert not apart.lower


def of_deepeval(threshold: float, entries: list[tuple[float, bool]]) -> str:
    tests = []
    for place, (score, passed) in enumerate(entries):
        metric = {"name": "Hallucination", "score": score, "threshold": threshold, "success": passed}
        correct = {"name": "Correctness", "score": place % 2, "threshold": 0.5, "success": bool(place % 2)}
        told = {"name": f"t{place}", "input": f"What is {place}?", "actual_output": "This."}
        tests.append({**told, "metrics_data": [metric, correct]})
    return json.dumps({"test_results": tests})


def test_a_file_whose_low_scores_pass_says_that_lower_is_better(judgekit: Judgekit, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "old.json"
    file.write_text(of_deepeval(0.5, [(0.0, True), (0.5, True), (1.0, False), (0.25, True)]))
    apart = taken_apart({"a": file}, DeclaredOutcome("Correctness"))
    assert (apart.lower, apart.asked) == (("Hallucination",), ())
    said = judgekit("compare", "--scores", file, "--outcome", "Correctness")
    assert "Hallucination: lower counts as better." in said.err
    # A score on the threshold passes either way, and says nothing.
    file.write_text(of_deepeval(0.5, [(0.5, True), (0.5, True)]))
    with pytest.raises(UsageError, match="Hallucination: tools disagree on its direction"):
        taken_apart({"a": file}, DeclaredOutcome("Correctness"))
    file.write_text(of_deepeval(0.5, [(0.0, True), (0.1, False)]))
    with pytest.raises(DataError, match="'Hallucination direction' must say"):
        taken_apart({"a": file}, DeclaredOutcome("Correctness"))


def test_two_tables_are_two_runs_and_none_is_dropped(judgekit: Judgekit, tmp_path: Path) -> None:  # noqa: F811
    for folder_name in ("x", "y"):
        (tmp_path / folder_name).mkdir()
        for run in ("a", "b"):
            table(40, run).drop(columns="run").to_csv(tmp_path / folder_name / f"{run}.csv", index=False)
    said = judgekit("compare", "--scores", "x/a.csv", "--scores", "x/b.csv", "--outcome", "thumb", code=0)
    assert "40 questions, 2 runs" in said.out
    refused = judgekit("compare", "--scores", "x/a.csv", "--scores", "y/a.csv", "--outcome", "thumb", code=2)
    assert "x/a.csv and y/a.csv are both called a: give each the name of its run, --scores NAME=FILE" in refused.err


def test_a_wide_table_beside_a_table_of_quality_says_where_the_outcome_belongs(
    judgekit: Judgekit,  # noqa: F811
    tmp_path: Path,
) -> None:
    table(20).to_csv(tmp_path / "wide.csv", index=False)
    (tmp_path / "quality.csv").write_text("query_id,run,value\nq1,a,1\n")
    said = judgekit("compare", "--scores", "wide.csv", "--quality", "quality.csv", code=2).err
    assert "name that with --outcome, and leave out --quality" in " ".join(said.split())
    (tmp_path / "scores.csv").write_text("labelling,run,query_id,value\nl,a,q1,1\n")
    said = judgekit("compare", "--scores", "scores.csv", "--quality", "quality.csv", code=2).err
    assert "lacks column 'measure'" in said


def test_promptfoos_rows_are_eight_questions_of_two_providers_and_its_numbers_no_scores() -> None:
    for name in ("out.json", "out.jsonl"):
        apart = taken_apart({"": EXPORTS / "promptfoo-0.121.20" / name}, DeclaredOutcome("success"))
        assert apart.quality.groupby("run")["query_id"].nunique().to_dict() == {"bm25": 8, "dense": 8}
        assert set(apart.quality["query_id"]) == {f"{number:03}" for number in range(8)}
        assert set(apart.scores["labeling"]) == {"score"}
        # A provider's error is no wrong answer.
        failed = apart.quality[apart.quality["value"].isna()]
        assert failed[["run", "query_id"]].to_numpy().tolist() == [["dense", "005"]]
        lacking = apart.scores[apart.scores["value"].isna()]
        assert lacking[["run", "query_id"]].to_numpy().tolist() == [["dense", "005"]]
        said = " ".join(apart.notes)
        assert "Answers that failed are missing: 1 of 16, first " in said
        assert "promptId, promptIdx, testIdx, failureReason: no scores of promptfoo, not compared" in said
    named = ChosenColumns(metrics=("failureReason", "latencyMs"))
    apart = taken_apart({"": EXPORTS / "promptfoo-0.121.20" / "out.json"}, DeclaredOutcome("success"), only=named)
    assert set(apart.scores["labeling"]) == {"failureReason", "latencyMs"}


def test_the_parts_of_mlflows_table_stand_where_its_form_says() -> None:
    files = {run: EXPORTS / "mlflow-3.17.2" / f"{run}.csv" for run in ("bm25", "dense")}
    given = Directions(as_given=("hallucination/value",))
    apart = taken_apart(files, DeclaredOutcome("correct/value"), given)
    assert apart.quality.groupby("run")["text"].nunique().to_dict() == {"bm25": 8, "dense": 8}
    assert apart.quality["text"].str.contains("What is kept in hall").all()
    # The expected answers, 1412 among them, are references.
    assert set(apart.scores["labeling"]) == {"hallucination/value"}
    frames = {run: pd.read_csv(file, dtype={"expected_response/value": str}) for run, file in files.items()}
    same = taken_apart(frames, DeclaredOutcome("correct/value"), given)
    pd.testing.assert_frame_equal(same.scores, apart.scores)


def test_inspects_verdicts_stand_in_objects_of_scores() -> None:
    log = EXPORTS / "inspect_ai-0.3.285" / "epochs.json"
    apart = taken_apart({"": log}, DeclaredOutcome("scores.includes"))
    assert set(apart.scores["labeling"]) == {"scores.match"}
    samples = json.loads(log.read_text())["samples"]
    assert apart.quality["query_id"].tolist() == [sample["id"] for sample in samples]
    right = [float(sample["scores"]["includes"]["value"] == "C") for sample in samples]
    assert apart.quality["value"].tolist() == right
    assert set(right) == {0.0, 1.0}
    assert not [note for note in apart.notes if "hold no number" in note]


@pytest.mark.parametrize(("letter", "value"), [("C", 1.0), ("P", 0.5), ("I", 0.0), ("N", 0.0)])
def test_letters_of_verdicts_are_numbers_if_a_column_holds_no_others(letter: str, value: float) -> None:
    rows = [{"question": f"q{n}", "right": letter if n else "C", "grade": "A", "thumb": 1} for n in range(3)]
    apart = taken_apart({"": pd.DataFrame(rows)}, THUMB)
    assert apart.scores["value"].tolist() == [1.0, value, value]
    assert apart.unused == ("grade",)
    rows[0]["right"] = "A"
    with pytest.raises(DataError, match="no numeric column"):
        taken_apart({"": pd.DataFrame(rows)}, THUMB)


def test_trulens_own_columns_are_no_scores() -> None:
    records = pd.read_csv(EXPORTS / "trulens-2.16.0" / "records.csv")
    records["thumb"], records["Answer Relevance"] = ["up", "down"] * 8, [0.5, 0.7] * 8
    apart = taken_apart({"": records}, THUMB)
    assert set(apart.scores["labeling"]) == {"is_match", "Answer Relevance"}
    told = TRULENS.form().taken
    assert told is not None
    with (EXPORTS / "trulens-2.16.0" / "records.csv").open() as file:
        roles = told(next(csv.DictReader(file)))
    assert [name for name, role in roles.items() if role == "score"] == ["is_match"]


def test_cells_of_a_frame_may_hold_arrays_and_missing_values() -> None:
    rows = [
        {"user_input": f"q{n}?", "retrieved_contexts": np.array(["a", "b"]), "response": pd.NA, "f": f, "thumb": n % 2}
        for n, f in enumerate([0.5, pd.NA, np.nan, 1])
    ]
    apart = taken_apart({"": pd.DataFrame(rows)}, THUMB)
    assert apart.scores["value"].isna().tolist() == [False, True, True, False]


def test_scores_and_outcomes_stand_in_objects_beside_their_explanations() -> None:
    found = EXPORTS / "llamaindex-0.14.25" / "bm25.jsonl"
    apart = taken_apart({"": found}, DeclaredOutcome("metric_dict.mrr"))
    rows = [json.loads(line)["metric_dict"] for line in found.read_text().splitlines()]
    assert apart.quality["value"].tolist() == [row["mrr"]["score"] for row in rows]
    assert apart.scores["value"].tolist() == [row["hit_rate"]["score"] for row in rows]
    # Pydantic's verdicts are no scores by its form, but may be the outcome.
    cases = json.loads((EXPORTS / "pydantic_evals-2.62.0" / "bm25.json").read_text())
    cases = cases if isinstance(cases, list) else cases["cases"]
    frame = pd.DataFrame([{**case, "scores": {"near": number / 10}} for number, case in enumerate(cases)])
    apart = taken_apart({"": frame}, DeclaredOutcome("assertions.EqualsExpected"))
    assert apart.quality["value"].tolist() == [case["assertions"]["EqualsExpected"]["value"] for case in cases]
    assert set(apart.scores["labeling"]) == {"scores.near"}
    with pytest.raises(UsageError, match=r"unknown column 'assertions\.Other'"):
        taken_apart({"": frame}, DeclaredOutcome("assertions.Other"))


def test_a_tools_number_of_an_answer_is_no_id_of_a_question_and_ids_may_be_numbers(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (EXPORTS / "promptfoo-0.121.20" / "out.jsonl").read_text().splitlines()]
    for row in rows:
        del row["vars"]["id"]
    (tmp_path / "out.jsonl").write_text("\n".join(map(json.dumps, rows)))
    apart = taken_apart({"": tmp_path / "out.jsonl"}, DeclaredOutcome("success"))
    assert apart.quality.groupby("query_id")["run"].agg(sorted).tolist() == [["bm25", "dense"]] * 8
    log = json.loads((EXPORTS / "inspect_ai-0.3.285" / "epochs.json").read_text())
    for sample in log["samples"]:
        sample["id"] = int(sample["id"])
    (tmp_path / "log.json").write_text(json.dumps(log))
    apart = taken_apart({"": tmp_path / "log.json"}, DeclaredOutcome("scores.includes"))
    assert set(apart.quality["query_id"]) == {"0", "1", "2", "3"}


def test_answers_and_references_that_are_numbers_are_no_scores() -> None:
    rows = [
        {"user_input": f"How old is {n}?", "response": n, "reference": 2 * n, "faithfulness": n / 9, "thumb": n % 2}
        for n in range(6)
    ]
    apart = taken_apart({"": pd.DataFrame(rows)}, THUMB)
    assert set(apart.scores["labeling"]) == {"faithfulness"}
    assert "response, reference: no scores of ragas, not compared" in " ".join(apart.notes)
    # deepeval's form names no scores.
    rows = [{"input": f"How old is {n}?", "actual_output": n, "near": n / 9, "thumb": n % 2} for n in range(6)]
    apart = taken_apart({"": pd.DataFrame(rows)}, THUMB)
    assert set(apart.scores["labeling"]) == {"near"}
    assert "actual_output: no scores of deepeval, not compared" in " ".join(apart.notes)
