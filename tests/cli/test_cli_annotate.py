import csv
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.trec import read_qrels
from judgekit.people.tasks import Sample
from tests.small import edited

BINARY = ("--prompt", "binary")
TWO = (*BINARY, "--assessors", "ann,bob", "--overlap", "2")


def own_town(row: dict[str, str]) -> str:
    """A document of the query's own town that names a year is relevant."""
    return "Yes" if row["doc_id"] == f"d{row['query_id'][1:]}a" else "No"


def rated(path: Path, rating: Callable[[dict[str, str]], str] = own_town) -> Path:
    """Fill the CSV form of a sample in."""
    with path.open(newline="") as stream:
        rows = [{**row, "rating": rating(row)} for row in csv.DictReader(stream)]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_way_from_results_to_corrected_differences(finished, judgekit):
    sample = ["annotate", "sample", "out", "--n", "5", *TWO, "-o", "s.jsonl"]
    made = judgekit(*sample, code=0)
    assert "5 of 6 queries" in made.out
    assert [Path(line).name for line in made.out.split()[-3:]] == ["s-ann.html", "s-bob.html", "s.csv"]
    read = ["annotate", "read", "s.jsonl", rated(finished / "s.csv"), "-o"]
    assert "Agreement between assessors" in judgekit(*read, "people.qrels", code=0).out
    refused = judgekit(*read, "people.csv", code=2)
    assert (refused.out, "labels are written as TREC qrels" in refused.err) == ("", True)
    labels = read_qrels(finished / "people.qrels")
    tasks = Sample.read(finished / "s.jsonl").tasks
    assert labels.row_relevance.sum() == sum(task.doc_ids[0].endswith("a") for task in tasks)
    correct = ["annotate", "correct", "people.qrels", "out", "-o", "corrected.csv", "-m"]
    said = judgekit(*correct, "P@1", code=0).out
    assert "Agreement with people (relevant as each side declares it):" in said
    rows = pd.read_csv(finished / "corrected.csv", keep_default_na=False).to_dict("records")
    assert {row["labeling"] for row in rows} == {"containment", "judge", "erag"}
    (difference,) = [row for row in rows if row["labeling"] == "containment" and row["other"]]
    assert difference["value"] > 0.3
    assert "name a measure" in judgekit(*correct, "", code=2).err

    compare = ["compare", "--scores", "out", "--people", "people.qrels", "--primary", "P@1", "--json"]
    rows = pd.DataFrame(json.loads(judgekit(*compare, code=0).out)["comparison"])
    assert set(rows["quality_metric"]) == {"P@1"}
    runs = {name: finished / f"{name}.trec" for name in ("good", "poor")}
    by_people = jk.score(runs, {"people": finished / "people.qrels"}, "P@1", scales={"people": "binary"})
    in_python = jk.compare(finished / "out/scores.parquet", by_people, rules=jk.Rules(primary="P@1"))
    pd.testing.assert_series_equal(rows["value"], in_python.table["value"], check_dtype=False)


def test_people_decide_which_run_is_best(finished, judgekit):
    sample = ["annotate", "sample", "out", *BINARY, "-o"]
    made = judgekit(*sample, "s.jsonl", "--design", "decision", "--by", "containment", code=0)
    assert "By containment alone good is best in DCG@4" in made.out
    judgekit("annotate", "read", "s.jsonl", rated(finished / "s.csv"), "-o", "people.qrels", code=0)
    correct = ["annotate", "correct", "people.qrels", "out"]
    assert "Decided: good is shown to be within 0.01 of the best" in judgekit(*correct, "-o", "decided.csv").out
    assert pd.read_csv(finished / "decided.csv")["value"][0] > 0.05
    assert "leave out -m" in judgekit(*correct, "-m", "P@1", code=2).err
    assert "Decided" in judgekit(*sample, "s2.jsonl", "--people", "people.qrels").out
    assert not (finished / "s2.jsonl").exists()
    partly = judgekit("compare", "--scores", "out", "--people", "people.qrels", code=2)
    assert "sample whole queries" in partly.err
    for wrong in (["--people", "people.qrels"], ["--quality", "q.csv", "--people", "people.qrels"]):
        assert "--people" in judgekit("compare", "--scores", "out/scores.parquet", *wrong, code=2).err
    assert "--outcome" in judgekit("compare", "--scores", "out/scores.parquet", code=2).err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("sample experiment.toml --by judge -o s.jsonl --n 3", "leave out --by"),
        ("sample experiment.toml --n 7 -o s.jsonl", "7 queries were requested, but only 6 exist"),
        ("sample experiment.toml --design answers -o s.jsonl", "holds no answers yet"),
        ("sample nowhere -o s.jsonl", "nowhere"),
        ("sample out --design decision --n 3 -o s.jsonl", "leave out --n"),
        ("read experiment.toml x.csv -o x.qrels", "experiment.toml, line 1"),
        ("read made.jsonl queries.jsonl -o people.qrels", "queries.jsonl, line 1: is not judgments"),
        ("correct nope.qrels out", "nope.qrels: no such file"),
        ("correct good.trec out", "good.trec.sample.json is not next to it"),
        ("correct good.trec experiment.toml", "name its results folder"),
        ("correct good.trec out -l jugde", "unknown labeling 'jugde'"),
    ],
)
def test_wrong_input_is_a_sentence(finished, judgekit, command, said):
    if "made.jsonl" in command:
        judgekit("annotate", "sample", "experiment.toml", "--n", "2", "-o", "made.jsonl", code=0)
    done = judgekit("annotate", *command.split(), code=2)
    assert said in done.err
    assert "Traceback" not in done.err


def test_results_whose_data_were_changed_are_refused(finished, judgekit):
    edited(finished / "queries.jsonl", "bridge", "tower")
    assert "different queries" in judgekit("annotate", "sample", "out", "--n", "2", "-o", "s.jsonl", code=2).err


def test_what_assessors_leave_open_waits(finished, judgekit):
    judgekit("annotate", "sample", "out", "--n", "4", *TWO, "-o", "s.jsonl", code=0)
    rated(finished / "s.csv", lambda row: "Yes" if row["assessor"] == "bob" else own_town(row))
    waits = judgekit("annotate", "read", "s.jsonl", "s.csv", "-o", "people.qrels")
    page = finished / "people.again.html"
    assert f"wait for an adjudicator: {page.name}" in waits.out
    early = judgekit("annotate", "correct", "people.qrels", "out", "-m", "P@1", code=2)
    assert "read all files again" in early.err
    assert "Warning" not in early.err
    rated(finished / "s.csv")
    done = judgekit("annotate", "read", "s.jsonl", "s.csv", "-o", "people.qrels", code=0)
    assert "wait for" not in done.out
    assert not page.exists()
    judgekit("annotate", "correct", "people.qrels", "out", "-m", "P@1", code=0)
