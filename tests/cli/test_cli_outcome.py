"""The outcome through the command line: declared once, on one scale, and never overlooked."""

import csv
import io
import json

import pandas as pd
import pytest

from tests.small import MOCK, edited, toml

RUNS = ("good", "poor")


@pytest.fixture
def data(folder):
    """The small experiment's files without an experiment."""
    (folder / "experiment.toml").unlink()
    (folder / "gold.qrels").unlink()
    return folder


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def rated(values):
    """Ratings of both runs on six questions; a run's values are taken in turn."""
    return [(f"q{i}", run, values[run][i % len(values[run])]) for run in RUNS for i in range(6)]


def test_ratings_beside_answers_are_the_outcome(data, judgekit):
    thumbs = {"good": "👍", "poor": "👎"}
    write(
        data / "app.csv",
        "query_id,run,answer,value",
        [(f"q{i}", run, "1412", thumbs[run]) for i in range(6) for run in RUNS],
    )
    assert "value → rating" in judgekit("init", ".", code=0).out
    assert 'outcome = "rating"' in (data / "experiment.toml").read_text()
    decided = judgekit("run", "experiment.toml", "--out", "results", "--cache", "fresh", code=0).out
    assert "rating of the" in (data / "results" / "report.html").read_text()
    answers = judgekit(
        "compare",
        "--scores",
        "results/scores.parquet",
        "--quality",
        "results/answers/answer-short.parquet",
        "--outcome",
        "rating",
        code=0,
    ).out
    assert "rating" in answers, decided


@pytest.mark.parametrize(
    ("rows", "scale", "told"),
    [
        ([("q0", "good", "up"), ("q1", "good", 4)], "", "thumbs.csv, line 3: rating of query 'q1': the value 4"),
        ([("q0", "good", "up"), ("q1", "good", 4)], "stars", "thumbs.csv, line 2: rating of query 'q0': the word 'up'"),
        ([("q0", "good", 4), ("q1", "good", 6)], "stars", "line 3: rating of query 'q1': the value 6 is not on"),
        ([("q0", "good", 4), ("q1", "good", 2)], "", "line 2: rating of query 'q0': the value 4 needs a scale."),
        ([("q0", "good", 1), ("q9", "good", 1)], "", "thumbs.csv, line 3: rates question 'q9'"),
        ([("q0", "good", 1), ("q1", "best", 1)], "", "thumbs.csv, line 3: rates run 'best'"),
        ([("q0", "good", 1), ("q0", "good", 0)], "", "thumbs.csv, line 3: two values for run good"),
    ],
)  # fmt: skip
def test_ratings_that_contradict_themselves_are_errors_with_their_line(judgekit, folder, rows, scale, told):
    write(folder / "thumbs.csv", "query_id,run,value", rows)
    declared = f'\nscale = "{scale}"' if scale else ""
    edited(folder / "experiment.toml", "depths = [1, 4]", f'depths = [4]\nratings = ["thumbs.csv"]{declared}')
    assert told in judgekit("run", "experiment.toml", "--dry-run", code=2).err


def test_points_are_hundredths_of_the_declared_scale(judgekit, folder):
    write(folder / "stars.csv", "query_id,run,value", rated({"good": [4, 5], "poor": [2, 1]}))
    answers = 'depths = [4]\nratings = ["stars.csv"]\nscale = "stars"'
    edited(folder / "experiment.toml", "depths = [1, 4]", answers)
    judgekit("run", "experiment.toml", "--out", "results", "--cache", "fresh", code=0)
    stored = ["--scores", "results/scores.parquet", "--quality", "stars.csv", "--primary", "nDCG@4"]
    said = judgekit("compare", *stored, "--scale", "stars", code=0).out
    # 4.5 stars against 1.5 are .875 and .125 of the scale.
    assert "75" in said
    assert "300" not in said
    assert "needs a scale" in judgekit("compare", *stored, code=2).err


def own_scores(path, lacking=(), measure="faithful"):
    """A score table of two labelings over six questions; the second lacks rows of one run."""
    rows = [
        ("ragas" if labeling == 0 else "mine", run, f"q{i}", measure, ((i + labeling) % 4) / 4 + 0.2 * (run == "good"))
        for labeling in range(2)
        for run in RUNS
        for i in range(40)
    ]
    kept = [row for row in rows if row[:3] not in {("ragas", "poor", query) for query in lacking}]
    write(path, "labeling,run,query_id,measure,value", kept)


def thumbs(path):
    write(
        path,
        "run,query_id,value",
        [(run, f"q{i}", int(i % 3 > 0 if run == "good" else i % 4 == 0)) for run in RUNS for i in range(40)],
    )


def test_rows_missing_for_one_run_are_missing_and_never_do_not_apply(folder, judgekit):
    thumbs(folder / "thumbs.csv")
    own_scores(folder / "scores.csv", ["q1", "q2", "q3"])
    asked = ["compare", "--scores", "scores.csv", "--quality", "thumbs.csv", "--resamples", "100"]
    said = judgekit(*asked, code=0)
    assert "ragas lacks 3 rows for poor ('q1', 'q2' and 'q3'). Nothing bounds them." in said.err
    assert "ragas lacks scores on 3 questions (q1, q2 and q3), where nothing bounds them: nothing is claimed of it" in (
        " ".join(said.out.split())
    )
    assert "does not apply" not in said.out + said.err


SKILL = {"good": 0.7, "fair": 0.5, "flattered": 0.5}


@pytest.fixture
def graded(tmp_path, judgekit):
    """60 questions that three runs answered; the metric calls every answer of one run right. It was run."""
    runs = sorted(SKILL)
    right = {(run, i): (7 * i + 13 * at) % 60 < 60 * SKILL[run] for at, run in enumerate(runs) for i in range(60)}
    queries = [{"query_id": f"q{i}", "text": f"Question {i}?", "answers": [f"right {i}"]} for i in range(60)]
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    docs = [{"doc_id": f"d{i}{run}", "text": f"Passage {i} of {run}, right {i}"} for i in range(60) for run in runs]
    (tmp_path / "passages.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    for at, run in enumerate(runs):
        ranked = [(i, other, (place - at) % 3) for i in range(60) for place, other in enumerate(runs)]
        lines = [f"q{i} Q0 d{i}{other} 1 {3 - rank} {run}\n" for i, other, rank in ranked]
        (tmp_path / f"{run}.run").write_text("".join(lines))
    said = [
        (f"q{i}", run, f"{'right' if right[run, i] else 'wrong'} {i} says {run}") for run in runs for i in range(60)
    ]
    rated = [(*row, "up" if right[row[1], int(row[0][1:])] or row[1] == "flattered" else "down") for row in said]
    write(tmp_path / "app.csv", "query_id,run,answer,value", rated)
    experiment = toml(
        data={"queries": "many.jsonl", "docs": "passages.jsonl", "depth": 3},
        runs={run: f"{run}.run" for run in runs},
        labelers=[{"kind": "containment"}],
        answers={"import": "app.csv", "depths": [1], "outcome": "rating", "metrics": ["contains"]},
        analysis={"resamples": 100},
    )
    (tmp_path / "graded.toml").write_text(experiment)
    judgekit("run", "graded.toml", "--out", "results", "--cache", "fresh", code=0)
    return tmp_path


def grade(folder):
    """Fill the sheet in as somebody who sees whether an answer is right."""
    rows = list(csv.DictReader(io.StringIO((folder / "sheet.csv").read_text(encoding="utf-8-sig"))))
    shown = (folder / "sheet.csv").read_text() + (folder / "sheet.jsonl").read_text()
    for row in rows:
        row["rating"] = "Right" if row["text"].startswith("right") else "Wrong"
    with (folder / "done.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return rows, shown


def test_people_grade_answers_and_show_which_run_the_metric_flatters(graded, judgekit):
    made = judgekit("annotate", "sample", "results", "--design", "answers", "--n", "50", "-o", "sheet.jsonl", code=0)
    assert "150 tasks about 50 of 60 queries" in made.out
    rows, shown = grade(graded)
    assert all(row["question"].endswith("?\n\nReference answer: right " + row["query_id"][1:]) for row in rows)
    assert "rating" not in shown.replace("rating,skipped", ""), "blind to the metric"
    judgekit("annotate", "read", "sheet.jsonl", "done.csv", "-o", "grades.qrels", code=0)
    compared = judgekit("compare", "--scores", "results", "--people", "grades.qrels", "--json", code=0).out
    said = " ".join(claim["sentence"] for claim in json.loads(compared)["decision"]["claims"])
    assert "People graded the answers to 50 of 60 questions, so the quality corrected by them decides." in said
    assert "rating flatters flattered by" in said
    assert "undervalues" not in said
    assert "compare --scores results" in judgekit("annotate", "correct", "grades.qrels", "results", code=2).err


def test_grades_of_other_answers_are_refused(graded, judgekit):
    judgekit("annotate", "sample", "results", "--design", "answers", "--n", "5", "-o", "sheet.jsonl", code=0)
    grade(graded)
    judgekit("annotate", "read", "sheet.jsonl", "done.csv", "-o", "grades.qrels", code=0)
    edited(graded / "app.csv", " says ", " tells ")
    judgekit("run", "graded.toml", "--out", "later", "--cache", "fresh", code=0)
    assert (
        "are not among the answers" in judgekit("compare", "--scores", "later", "--people", "grades.qrels", code=2).err
    )


def test_without_answers_the_order_of_runs_under_trusted_labels_is_the_outcome(folder, judgekit):
    queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query | {"answers": []}) + "\n" for query in queries))
    labelers = [{"name": "nist", "kind": "provenance", "qrels": "gold.qrels"}, {"name": "judge", "kind": "judge"}]
    given = {"data": {"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 5}, "endpoints": {"local": MOCK}}
    given |= {"runs": {"good": "good.trec", "poor": "poor.trec"}, "analysis": {"resamples": 100}}
    outcome = {"outcome": "nist"}
    (folder / "ours.toml").write_text(
        toml(**given, labelers=labelers, answers=outcome, metrics={"measures": ["nDCG@3"]})
    )
    planned = judgekit("plan", "ours.toml", "--questions", "4", "--out", "pilot.csv", code=0).out
    assert "the order of the runs under nist" in planned
    judgekit("run", "ours.toml", "--out", "ours", "--cache", "fresh")
    assert 'outcome = "nist"' in (folder / "ours" / "resolved.toml").read_text()
    (metric,) = set(pd.read_parquet(folder / "ours" / "answers" / "ratings.parquet")["metric"])
    assert metric == "nDCG@3"
    assert "Quality means nDCG@3 by nist, not answers" in (folder / "ours" / "claims.csv").read_text()
    (folder / "ours.toml").write_text(toml(**given, labelers=labelers[1:]))
    assert "Add ratings, a metric that needs no references" in judgekit("run", "ours.toml", code=2).err
    (folder / "ours.toml").write_text(toml(**given, labelers=labelers[:1], answers=outcome))
    assert "add a labeler to compare with it" in judgekit("run", "ours.toml", code=2).err


def test_missing_labels_under_another_name_are_not_counted_as_0(folder, judgekit):
    (folder / "gold.qrels.missing.tsv").write_text("query_id\tdoc_id\tstatus\nq0\td0b\tfailed\n")
    said = judgekit("score", "--run", "good.trec", "--qrels", "gold.qrels", code=2).err
    assert "gold.qrels.missing.tsv: is not read: judgekit looks for the missing labels of gold.qrels in" in said


@pytest.fixture
def live(folder):
    """Live traffic: each question was answered by one run, drawn at random; scores of both runs on all questions."""
    rows = []
    for i in range(300):
        run = RUNS[i * 7 % 2]
        rows.append((f"q{i}", run, "up" if (i * 13) % 10 < (8 if run == "good" else 4) else "down", f"u{i % 60}"))
    write(folder / "live.csv", "query_id,run,value,user", rows)
    thumbs = {(query, run): value for query, run, value, _ in rows}
    scores = [
        ("judge", run, f"q{i}", "nDCG@4", ((i * 31) % 7) / 10 + 0.4 * (thumbs.get((f"q{i}", run)) == "up"))
        for run in RUNS
        for i in range(300)
    ]
    write(folder / "scores.csv", "labeling,run,query_id,measure,value", scores)
    return ["compare", "--scores", "scores.csv", "--quality", "live.csv", "--resamples", "200"]


def test_ratings_of_one_run_for_each_question_are_compared_unpaired_where_runs_were_drawn(live, judgekit):
    said = " ".join(judgekit(*live, "--assigned", "random", "--cluster", "user", code=0).out.split())
    assert "runs are compared by their means: good" in said
    assert "good leads poor by" in said
    assert "Ship good" in said
    assert "Within questions nothing can be shown: show some questions to both runs" in said
    assert "answers are missing" not in said, "such ratings are not missing answers"


def test_ratings_of_one_run_for_each_question_are_described_where_nobody_says_how_runs_were_assigned(live, judgekit):
    said = " ".join(judgekit(*live, code=0).out.split())
    assert "Who saw which run is not declared random" in said
    assert "Ship" not in said.replace("Shipping", "")
    assert "may be the best" not in said
    find = " ".join(judgekit(*live, "--use", "find-questions", code=0).out.split())
    assert "judge" in find
    assert "There is no decision" not in find


def test_several_ratings_of_one_answer_count_each(live, judgekit, folder):
    text = (folder / "live.csv").read_text()
    more = "".join(f"q{i},{RUNS[i * 7 % 2]},up,v{i}\n" for i in range(40))
    (folder / "live.csv").write_text(text + more)
    assert "two values for" in judgekit(*live, code=2).err
    said = " ".join(judgekit(*live, "--assigned", "random", "--cluster", "user", code=0).out.split())
    assert "(170 ratings)" in said


def test_from_50_graded_questions_on_the_corrected_quality_decides(graded, judgekit):
    rated = ["--quality", "results/answers/answer-short.parquet", "--outcome", "rating", "--primary", "nDCG@1"]
    before = " ".join(judgekit("compare", "--scores", "results/scores.parquet", *rated, code=0).out.split())
    assert "Ship flattered" in before
    judgekit("annotate", "sample", "results", "--design", "answers", "--n", "50", "-o", "sheet.jsonl", code=0)
    grade(graded)
    judgekit("annotate", "read", "sheet.jsonl", "done.csv", "-o", "grades.qrels", code=0)
    said = " ".join(judgekit("compare", "--scores", "results", "--people", "grades.qrels", code=0).out.split())
    assert "Ship flattered" not in said
    assert "ship good: it answers best so far" in said
    assert "rating flatters flattered by" in said
    edited(graded / "graded.toml", 'outcome = "rating"', 'outcome = "rating"\ngrades = "grades.qrels"')
    judgekit("run", "graded.toml", "--out", "again", "--cache", "fresh", code=0)
    assert "so the quality corrected by them decides" in (graded / "again" / "claims.csv").read_text()
    assert "rating flatters flattered by" in (graded / "again" / "report.html").read_text()


def test_an_outcome_of_grounded_answers_is_said_first_not_to_be_correct(folder, judgekit):
    edited(folder / "experiment.toml", "depths = [1, 4]", 'depths = [1, 4]\nmetrics = ["grounded"]')
    told = " ".join(judgekit("run", "experiment.toml", "--out", "results", "--cache", "fresh").out.split())
    first = "Choose The outcome, grounded, says that answers rest on their passages, not that they are correct."
    assert first in told


def test_a_missing_group_column_is_named_with_its_file(folder, judgekit):
    edited(folder / "experiment.toml", "[analysis]", '[analysis]\ngroups = "page"')
    said = judgekit("run", "experiment.toml", code=2).err
    assert "queries.jsonl: question 'q0' has no group: unknown column 'page'" in said
    assert "([analysis] groups)" in said


def test_init_declares_whose_ratings_go_together(data, judgekit):
    rows = [(f"q{i}", run, 4 + (run == "good"), f"u{user}") for i in range(6) for run in RUNS for user in range(2)]
    write(data / "live.csv", "query_id,run,stars,user", rows)
    assert "user → cluster" in judgekit("init", ".", code=0).out
    text = (data / "experiment.toml").read_text()
    assert 'scale = "stars"' in text
    assert 'cluster = "user"' in text
    judgekit("run", "experiment.toml", "--out", "results", "--cache", "fresh")
    rated = pd.read_parquet(data / "results" / "answers" / "ratings.parquet")
    assert len(rated) == 24
