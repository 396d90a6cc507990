"""``judgekit annotate``, from a run's results to corrected run differences, and what it says to wrong input."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.money import Money
from judgekit.cli.annotate import _spent
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.trec import read_qrels
from judgekit.people.reading import People
from judgekit.people.tasks import Sample
from tests.small import edited


@pytest.fixture
def finished(folder: Path, judgekit) -> Path:
    assert judgekit("run", folder / "experiment.toml", "--out", folder / "out").code == 0
    return folder


def rated(folder: Path, sample: Path, out: str) -> Path:
    """Fill the CSV form of a sample in: a document of the query's own town that names a year is relevant."""
    path = folder / out
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["rating"] = "Yes" if row["doc_id"] == f"d{row['query_id'][1:]}a" else "No"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_way_from_results_to_corrected_differences(finished, judgekit):
    out, sample = finished / "out", finished / "s.jsonl"
    made = judgekit("annotate", "sample", out, "--n", "5", "--prompt", "binary", "--assessors", "ann,bob",
                    "--overlap", "2", "-o", sample)  # fmt: skip
    assert made.code == 0
    assert "5 of 6 queries" in made.out
    assert [Path(line).name for line in made.out.split()[-2:]] == ["s-ann.html", "s-bob.html"]
    again = ["annotate", "sample", out, "--n", "5", "--prompt", "binary", "--assessors", "ann,bob", "--overlap", "2"]
    assert judgekit(*again, "-o", sample, "--sheet", "csv").code == 0
    assert judgekit(*again, "-o", sample, "--sheet", "label-studio").code == 0
    assert "<Choice" in (finished / "s.xml").read_text()
    filled = rated(finished, sample, "s.csv")
    read = judgekit("annotate", "read", sample, filled, "-o", finished / "people.qrels", code=0)
    assert "Agreement between assessors" in read.out
    refused = judgekit("annotate", "read", sample, filled, "-o", finished / "people.csv")
    assert (refused.code, refused.out) == (2, "")
    assert "labels are written as TREC qrels" in refused.err
    labels = read_qrels(finished / "people.qrels")
    assert labels.relevance.sum() == sum(task.doc_ids[0].endswith("a") for task in Sample.read(sample).tasks)
    table = finished / "corrected.csv"
    corrected = judgekit("annotate", "correct", finished / "people.qrels", out, "-m", "P@1", "-o", table, code=0)
    assert "Agreement with people on held-out queries" in corrected.out
    rows = pd.read_csv(table, keep_default_na=False).to_dict("records")
    assert {row["labeling"] for row in rows} == {"containment", "judge", "erag"}
    (difference,) = [row for row in rows if row["labeling"] == "containment" and row["other"]]
    assert difference["value"] > 0.3
    compared = judgekit("compare", "--scores", out, "--people", finished / "people.qrels", "--primary", "P@1", "--json")
    assert compared.code == 0, compared.err
    runs = {name: finished / f"{name}.trec" for name in ("good", "poor")}
    by_people = jk.score(runs, {"people": finished / "people.qrels"}, "P@1", scales={"people": "binary"})
    in_python = jk.compare(out / "scores.parquet", by_people, primary="P@1")
    rows = pd.DataFrame(json.loads(compared.out)["comparison"])
    assert set(rows["quality_metric"]) == {"P@1"}
    pd.testing.assert_series_equal(rows["value"], in_python.table["value"], check_dtype=False)
    none = judgekit("annotate", "correct", finished / "people.qrels", out, "-m", "")
    assert (none.code, "name a measure" in none.err) == (2, True)


def test_people_decide_which_run_is_best(finished, judgekit):
    out, sample, people = finished / "out", finished / "s.jsonl", finished / "people.qrels"
    asked = ["--prompt", "binary", "--sheet", "csv", "-o"]
    made = judgekit("annotate", "sample", out, "--design", "decision", "--by", "containment", *asked, sample, code=0)
    assert "By containment alone good is best in DCG@4" in made.out
    filled = rated(finished, sample, "s.csv")
    assert judgekit("annotate", "read", sample, filled, "-o", people).code == 0
    decided = judgekit("annotate", "correct", people, out, "-o", finished / "decided.csv")
    assert "Decided: good is shown to be within 0.01 of the best" in decided.out
    assert pd.read_csv(finished / "decided.csv")["value"][0] > 0.05
    over = judgekit("annotate", "sample", out, "--people", people, *asked, finished / "s2.jsonl")
    assert "Decided" in over.out
    assert not (finished / "s2.jsonl").exists()
    partly = judgekit("compare", "--scores", out, "--people", people)
    assert (partly.code, "sample whole queries" in partly.err) == (2, True)
    for wrong in (["--people", people], ["--quality", "q.csv", "--people", people], []):
        said = judgekit("compare", "--scores", out / "scores.parquet", *wrong)
        assert (said.code, "--people" in said.err) == (2, True)
    refused = judgekit("annotate", "correct", people, out, "-m", "P@1")
    assert (refused.code, "leave out -m" in refused.err) == (2, True)


def test_what_judgments_took_stands_beside_what_was_planned():
    labels = pd.DataFrame({"query_id": ["q1"], "doc_id": ["d1"], "relevance": [1.0]})
    people = People(Labeling("people", Scale("binary"), labels), pd.DataFrame({"judgments": [90, 90]}), seconds=12)
    assert " ".join(_spent(people, Money(currency="EUR", wage=30, minutes=0.5))) == (
        "A judgment took 12 seconds (median of the last files read). [money] plans 30 seconds. At its wage 180"
        " judgments cost 18.00 EUR by the clock, 45.00 as planned."
    )
    assert len(list(_spent(people, Money(judgment=1)))) == 1
    assert not list(_spent(replace(people, seconds=0), Money(wage=30, minutes=0.5)))


def test_answers_of_two_runs_become_quality(finished, judgekit):
    sample = finished / "s.jsonl"
    made = judgekit(
        "annotate", "sample", finished / "out", "--answers", "good,poor", "--n", "3", "--sheet", "csv", "-o", sample
    )
    assert made.code == 0, made.err
    with (finished / "s.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["rating"] = "good"
    with (finished / "s.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    read = judgekit("annotate", "read", sample, finished / "s.csv", "-o", finished / "people.csv", code=0)
    assert "good: 100.0% of the preferences" in read.out


WRONG = [
        (["sample", "experiment.toml", "--design", "stratified", "-o", "s.jsonl", "--n", "3"],
         "needs the labels of a finished run"),
        (["sample", "experiment.toml", "--n", "7", "-o", "s.jsonl"], "7 queries were asked for, but only 6 exist"),
        (["sample", "out", "--answers", "good", "-o", "s.jsonl"], "--answers needs two runs"),
        (["sample", "nowhere", "-o", "s.jsonl"], "nowhere"),
        (["sample", "out", "--design", "decision", "--n", "3", "-o", "s.jsonl"], "leave out --n"),
        (["read", "experiment.toml", "x.csv", "-o", "x.qrels"], "experiment.toml, line 1"),
        (["read", "s.jsonl", "queries.jsonl", "-o", "people.qrels"], "queries.jsonl, line 1: is not judgments"),
        (["correct", "nope.qrels", "out"], "nope.qrels: no such file"),
        (["correct", "good.trec", "out"], "good.trec.sample.json is not next to it"),
        (["correct", "good.trec", "experiment.toml"], "name its results folder"),
        (["correct", "good.trec", "out", "-l", "jugde"], "unknown labeling 'jugde'"),
    ]  # fmt: skip


def test_wrong_input_is_a_sentence(finished, judgekit):
    judgekit("annotate", "sample", "experiment.toml", "--n", "2", "-o", "s.jsonl")
    for command, said in WRONG:
        done = judgekit("annotate", *command)
        assert done.code == 2, command
        assert said in done.err
        assert "Traceback" not in done.err


def test_results_whose_data_were_changed_are_refused(finished, judgekit):
    queries = finished / "queries.jsonl"
    edited(queries, "bridge", "tower")
    done = judgekit("annotate", "sample", finished / "out", "--n", "2", "-o", finished / "s.jsonl", code=2)
    assert "different queries" in done.err


def test_what_assessors_leave_open_waits_is_decided_and_then_corrects(finished, judgekit):
    options = ["--n", "4", "--prompt", "binary", "--assessors", "ann,bob", "--overlap", "2", "--sheet", "csv"]
    judgekit("annotate", "sample", "out", *options, "-o", "s.jsonl")
    filled = rated(finished, finished / "s.jsonl", "s.csv")
    with filled.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:  # bob calls everything relevant
        row["rating"] = "Yes" if row["assessor"] == "bob" else row["rating"]
    with filled.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    waits = judgekit("annotate", "read", "s.jsonl", "s.csv", "-o", "people.qrels")
    page = finished / "people.again.html"
    assert f"wait for an adjudicator: {page.name}" in waits.out
    early = judgekit("annotate", "correct", "people.qrels", "out", "-m", "P@1")
    assert (early.code, "read all files again" in early.err) == (2, True)
    assert "Warning" not in early.err
    data = json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.S)[1])
    said = {"value": 0, "skipped": "", "comment": "", "seconds": 1, "at": ""}
    keys = ("task", "query_id", "doc_ids", "repeat_of", "probability", "content", "key")
    tasks = [{key: task[key] for key in keys} | said for task in data["tasks"]]
    head = {key: data[key] for key in ("sample", "form", "design", "scale", "queries", "pairs", "assessor")}
    lines = [{"judgekit": "judgments", **head, "tasks": len(tasks)}, *tasks, {"end": len(tasks)}]
    (finished / "last.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = judgekit("annotate", "read", "s.jsonl", "s.csv", "last.jsonl", "-o", "people.qrels", code=0)
    assert "wait for" not in done.out
    assert not page.exists()
    judgekit("annotate", "correct", "people.qrels", "out", "-m", "P@1", code=0)
