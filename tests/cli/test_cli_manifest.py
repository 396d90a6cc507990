import hashlib
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest

from judgekit.data.outputs import is_results_folder
from judgekit.metrics import DEFINITIONS
from tests.mock import URL
from tests.small import Judgekit, edited

MOCK = ["--endpoint", URL, "--model", "mock", "--cache", "store"]
DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
RUN = ["run", "experiment.toml", "--out", "results", "--cache", "store"]


def manifest(path: Path) -> Any:
    return json.loads(path.read_text())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def stages(judgekit: Judgekit, folder: Path) -> Path:
    """A folder with what the stages make of its files, from labels and answers to a comparison."""
    for command in (
        ["label", "containment", *DATA, "--out", "c.qrels"],
        ["answer", *DATA, *MOCK, "--depth", "1", "--out", "quality.csv"],
        ["score", "--run", "good.trec", "--qrels", "c.qrels", "-m", "P@1", "--per-query", "--out", "scores.csv"],
        COMPARE,
    ):
        assert "different" not in judgekit(*command, code=0).err
    return folder


COMPARE = ["compare", "--scores", "scores.csv", "--quality", "quality.csv", "--resamples", "100", "--out", "c.csv"]


def test_each_stage_writes_beside_its_result_what_it_was_made_from(stages):
    folder = stages
    labels = manifest(folder / "c.qrels.manifest.json")
    assert {role: x["sha256"] for role, x in labels["inputs"].items()} == {
        role: sha256(folder / file)
        for role, file in (("queries", "queries.jsonl"), ("docs", "docs.jsonl"), ("run good", "good.trec"))
    }
    assert set(labels["results"]) == {"c.qrels", "c.qrels.parquet"}
    prompts = {Path(role).name for role in manifest(folder / "quality.csv.manifest.json")["inputs"]}
    assert {"answer-short.toml", "closed-book.toml"} <= prompts
    scores = manifest(folder / "scores.csv.manifest.json")["inputs"]
    assert scores["qrels c"]["inputs"] == labels["inputs"]
    assert set(manifest(folder / "c.csv.manifest.json")["inputs"]) == {"scores.csv", "quality.csv"}


def test_results_of_different_data_are_not_used_together_in_silence(judgekit, stages):
    edited(stages / "queries.jsonl", "When was the bridge", "When was the tower")
    judgekit("answer", *DATA, *MOCK, "--depth", "1", "--out", "quality.csv", code=0)
    said = judgekit(*COMPARE, code=0)
    assert "note: these files were made from different queries" in said.err
    assert "c.qrels from queries.jsonl" in said.err
    assert "quality.csv from queries.jsonl" in said.err
    edited(stages / "good.trec", "d0a", "d1a")
    said = judgekit("score", "--run", "good.trec", "--qrels", "c.qrels", code=0)
    assert "different files of run good" in said.err


def test_a_results_folder_says_which_data_it_is_of(made):
    content = manifest(made / "out" / "manifest.json")
    assert content["inputs"]["queries"]["sha256"] == sha256(made / "queries.jsonl")
    read = {Path(role).name for role in content["inputs"]}
    assert read >= {"queries", "docs", "run good", "run poor", "experiment.toml"}
    for name, value in content["results"].items():
        assert sha256(made / "out" / name) == value
    assert {"scores.parquet", "labels/judge.qrels", "answers/answer-short.parquet"} <= set(content["results"])


MINE = """
from dataclasses import dataclass

import judgekit as jk


@dataclass(frozen=True)
class Longest(jk.Labeler):
    scale = "binary"
    least: int = 10

    def relevance(self, query, doc):
        return len(doc.text) >= self.least


class Brief(jk.AnswerMetric):
    scale = "unit"

    def compare(self, text, references):
        return 1 / (1 + len(text))


@jk.measure("Middle", rewards="a good document in the middle")
def middle(ranked, judged, cutoff):
    return len(ranked) > 1 and ranked[1] > 0
"""


def test_files_of_your_own_are_relative_to_the_experiment_and_in_its_manifest(judgekit, folder, monkeypatch):
    (folder / "own.py").write_text(MINE)
    metrics = '[answers]\nmetrics = ["own.py:Brief", "em"]'
    edited(folder / "experiment.toml", "[answers]", f'[[labelers]]\nkind = "own.py:Longest"\nleast = 55\n{metrics}')
    edited(folder / "experiment.toml", '"nDCG"', '"own.py:Middle"')
    edited(folder / "experiment.toml", "[analysis]", '[analysis]\nprimary = "own.py:Middle@4"')
    monkeypatch.chdir(folder.parent)
    with patch.dict(DEFINITIONS):
        said = judgekit("run", folder / "experiment.toml", "--out", folder / "results", code=0)
    read = manifest(folder / "results/manifest.json")["inputs"]
    assert {Path(role).name: source["sha256"] for role, source in read.items()}["own.py"] == sha256(folder / "own.py")
    assert "longest(least=55)" in said.out
    assert "brief" in (folder / "results/report.json").read_text()
    assert 'primary = "Middle@4"' in (folder / "results/resolved.toml").read_text()
    assert "a good document in the middle" in (folder / "results/report.html").read_text()
    scores = pd.read_parquet(folder / "results/scores.parquet").query("measure == 'Middle@4' and query_id != 'all'")
    assert set(scores["value"]) == {0.0, 1.0}


def test_a_run_says_in_its_report_that_a_labeling_was_made_for_other_queries(judgekit, folder):
    judgekit("label", "containment", *DATA, "--out", "c.qrels", code=0)
    edited(folder / "queries.jsonl", "When was the bridge", "When was the tower")
    labeler = '[[labelers]]\nname = "before"\nkind = "provenance"\nqrels = "c.qrels"\n[answers]'
    edited(folder / "experiment.toml", "[answers]", labeler)
    said = judgekit(*RUN, code=0)
    assert said.err.index("different queries") < said.err.index("label judge"), "before anything is paid for"
    assert "different queries" in said.out
    assert "different queries" in (folder / "results" / "report.html").read_text()


def test_a_run_that_was_stopped_has_made_the_folder_its_own(judgekit, folder):
    judgekit(*RUN, "--max-requests", "0", code=3)
    assert is_results_folder(folder / "results")
    assert manifest(folder / "results" / "manifest.json")["results"] == {}
    assert "did not finish: start it again" in judgekit("report", "results", code=2).err
    judgekit(*RUN, code=0)
