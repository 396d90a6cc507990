"""``judgekit annotate``, from a run's results to corrected run differences, and what it says to wrong input."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from judgekit.data.trec import read_qrels
from judgekit.people.tasks import Sample


@pytest.fixture
def finished(folder: Path, judgekit) -> Path:
    assert judgekit("run", folder / "experiment.toml", "--out", folder / "out", "--quiet").code == 0
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
    pages = judgekit("annotate", "make", sample, "-o", finished / "sheet.html")
    assert [Path(line).name for line in pages.out.split()] == ["sheet-ann.html", "sheet-bob.html"]
    assert judgekit("annotate", "export", sample, "-o", finished / "sheet.csv").code == 0
    assert judgekit("annotate", "export", sample, "-o", finished / "sheet.json").code == 0
    assert "<Choice" in (finished / "sheet.xml").read_text()
    filled = rated(finished, sample, "sheet.csv")
    read = judgekit("annotate", "read", filled, "--sample", sample, "-o", finished / "people.qrels")
    assert read.code == 0, read.err
    assert "Agreement between assessors" in read.out
    for wrong, told in (("people.csv", "labels are written as TREC qrels"), ("p.qrels", "'median' is not a rule")):
        asked = ["read", filled, "--sample", sample, "-o", finished / wrong, "--rule", "median"]
        refused = judgekit("annotate", *asked)
        assert (refused.code, refused.out) == (2, "")
        assert told in refused.err
    labels = read_qrels(finished / "people.qrels")
    assert labels.relevance.sum() == sum(task.doc_ids[0].endswith("a") for task in Sample.read(sample).tasks)
    corrected = judgekit("annotate", "correct", finished / "people.qrels", out, "-m", "P@1", "--format", "json")
    assert corrected.code == 0, corrected.err
    rows = json.loads(corrected.out)
    assert {row["labeling"] for row in rows} == {"containment", "judge", "erag"}
    (difference,) = [row for row in rows if row["labeling"] == "containment" and row["other"]]
    assert difference["value"] > 0.3
    plan = judgekit("annotate", "plan", finished / "people.qrels", out, "-m", "P@1", "--more", "1", "--format", "json")
    assert {row["judged"] for row in json.loads(plan.out)} == {6}
    verdict = judgekit("annotate", "verdict", finished / "people.qrels", out, "-m", "P@4")
    assert verdict.code == 0, verdict.err
    assert "people" in verdict.out.casefold()
    two = judgekit("annotate", "verdict", finished / "people.qrels", out, "-m", "P@4 nDCG@4")
    assert (two.code, "a verdict is about one" in two.err) == (2, True)
    none = judgekit("annotate", "correct", finished / "people.qrels", out, "-m", "")
    assert (none.code, "name a measure" in none.err) == (2, True)


def test_answers_of_two_runs_become_quality(finished, judgekit):
    sample = finished / "s.jsonl"
    made = judgekit(
        "annotate", "sample", finished / "out", "--answers", "good,poor", "--depth", "1", "--n", "3", "-o", sample
    )
    assert made.code == 0, made.err
    judgekit("annotate", "export", sample, "-o", finished / "a.csv")
    with (finished / "a.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["rating"] = "good"
    with (finished / "a.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    read = judgekit("annotate", "read", finished / "a.csv", "--sample", sample, "-o", finished / "people.csv")
    assert read.code == 0, read.err
    assert "good: 100.0% of the preferences" in read.out


WRONG = [
        (["sample", "experiment.toml", "--design", "stratified", "-o", "s.jsonl", "--n", "3"],
         "needs the labels of a finished run"),
        (["sample", "experiment.toml", "--n", "7", "-o", "s.jsonl"], "7 queries were asked for, but only 6 exist"),
        (["sample", "experiment.toml", "--depth", "2", "-o", "s.jsonl"], "--depth goes with --answers"),
        (["sample", "out", "--answers", "good", "-o", "s.jsonl"], "--answers needs two runs"),
        (["sample", "nowhere", "-o", "s.jsonl"], "nowhere"),
        (["sample", "experiment.toml", "--seed", "-1", "-o", "s.jsonl"], "--seed"),
        (["make", "s.jsonl", "-o", "x"], "the name of a page must end in .html"),
        (["make", "experiment.toml", "-o", "x.html"], "experiment.toml, line 1"),
        (["export", "s.jsonl", "-o", "x.pdf"], "ends in .csv (spreadsheet) or .json (Label Studio)"),
        (["read", "queries.jsonl", "-o", "people.qrels"], "queries.jsonl, line 1: is not judgments"),
        (["correct", "nope.qrels", "out"], "nope.qrels: no such file"),
        (["correct", "good.trec", "out"], "good.trec.sample.json is not beside it"),
        (["correct", "good.trec", "experiment.toml"], "name the folder of its results"),
        (["validate", "good.trec", "out", "-l", "jugde"], "unknown labeling 'jugde'"),
        (["plan", "good.trec", "out", "--more", "ten"], "expected whole numbers"),
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
    queries.write_text(queries.read_text().replace("bridge", "tower"))
    done = judgekit("annotate", "sample", finished / "out", "--n", "2", "-o", finished / "s.jsonl")
    assert done.code == 2
    assert "different queries" in done.err
