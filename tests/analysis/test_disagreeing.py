"""Pairs on which two labelings disagree."""

from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.disagreeing import disagreements
from judgekit.data.readers import read_docs
from judgekit.errors import DataError, UsageError
from tests.small import make_experiment


def labeling(name: str, scale: str, *labels: float | None, raw: str = "") -> jk.Labeling:
    rows = [
        {"query_id": "q", "doc_id": f"d{place}", "relevance": value, "status": "ok" if value is not None else "failed"}
        for place, value in enumerate(labels)
    ]
    return jk.Labeling(name, jk.Scale.parse(scale), pd.DataFrame(rows).assign(raw=raw, answer=""))


def test_labels_are_compared_on_their_scales_and_the_widest_apart_come_first() -> None:
    grades = labeling("people", "grades:3", 3, 0, 2, None, 1)
    chances = labeling("rerank", "unit", 0.4, 0.9, 0.6, 0.1, 0.1, raw="said")
    found = disagreements(grades, chances)
    assert list(found.columns) == ["query_id", "doc_id", "people", "rerank", "difference", "rerank raw"]
    assert found["doc_id"].tolist() == ["d1", "d0"]
    assert found["difference"].tolist() == pytest.approx([0.9, 0.4 - 1])
    assert found["people"].tolist() == [0, 3], "labels stand there as they are"
    every = disagreements(grades, chances, least=1e-9)
    assert set(every["doc_id"]) == {"d0", "d1", "d2", "d4"}, "a pair without a label is no disagreement"


def test_harm_is_below_what_does_not_help() -> None:
    harm = labeling("harm", "signed", -1.0, 0.0, 1.0)
    plain = labeling("judge", "binary", 0, 0, 1)
    assert disagreements(plain, harm)[["doc_id", "difference"]].values.tolist() == [["d0", -1.0]]


def test_one_labeling_does_not_disagree_with_itself() -> None:
    one = labeling("judge", "binary", 0, 1)
    with pytest.raises(UsageError, match="does not disagree with itself"):
        disagreements(one, one)
    with pytest.raises(UsageError, match="differ by more than 0, not by 0"):
        disagreements(one, labeling("other", "binary", 1, 1), least=0)


def test_a_finished_experiment_tells_them_and_documents_are_looked_up(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    done = jk.run(tmp_path / "experiment.toml", out=tmp_path / "out", asking=jk.Asking(cache=tmp_path / "cache"))
    found = done.disagreements("containment", "judge")
    pairs = {name: done.labelings[name].table.set_index(["query_id", "doc_id"])["relevance"] for name in done.labelings}
    differing = pairs["containment"][pairs["containment"] != pairs["judge"]].index
    assert set(zip(found["query_id"], found["doc_id"], strict=True)) == set(differing)
    assert len(found)
    docs = read_docs(tmp_path / "docs.jsonl")
    first = found.iloc[0]["doc_id"]
    assert docs[first].doc_id == first
    assert docs[first] == docs.get([first])[0]
    with pytest.raises(DataError, match="'gone' is not in the collection"):
        docs["gone"]
    with pytest.raises(UsageError, match=r"unknown labeling 'jugde'.*judge"):
        done.disagreements("jugde", "judge")
