"""From exported traces to a verdict: what is printed is an experiment, which runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgekit.data.files import read_table
from judgekit.data.tables import QUALITY
from tests.cli.conftest import Judgekit
from tests.data.test_traces import langfuse, lines, spans

TAIL = (
    '[[labelers]]\nkind = "judge"\n[endpoints.m]\nbase_url = "mock:"\nmodel = "model-a"\n[analysis]\nresamples = 100\n'
)


@pytest.mark.parametrize("rated", [True, False])
def test_traces_lead_to_an_experiment_on_what_was_answered_or_rated(
    rated: bool, judgekit: Judgekit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [f"When was mill {i} burnt?" if i % 2 else f"Who sang song {i}?" for i in range(8)]
    rows = [row for i in range(8) for row in spans(f"t{i}", asked[i], "1850" if i % 2 else "1851", i)]
    note = {"name": "helpful", "annotator_kind": "HUMAN"}
    rows += [
        {**note, "span_id": f"t{i}-root", "result": {"label": "up" if i % 2 else "down"}} for i in range(8) if rated
    ]
    lines(tmp_path / "spans.jsonl", rows)
    said = judgekit("traces", "spans.jsonl", "--out", "data")
    assert said.code == 0, said.err
    assert said.out.startswith(f"# 8 questions, 2 documents, 8 answers and {8 * rated} ratings")
    metrics = "" if rated else 'metrics = ["mine.py:Longer"]\n'
    (tmp_path / "data" / "mine.py").write_text(
        "from dataclasses import dataclass\nimport judgekit\n\n@dataclass(frozen=True)\n"
        "class Longer(judgekit.AnswerMetric):\n    scale = 'binary'\n    needs_references = False\n\n"
        "    def score(self, answer, query):\n"
        "        return judgekit.answers.quality.Score(float(answer.text == '1850'))\n"
    )
    (tmp_path / "data" / "exp.toml").write_text(said.out + metrics + TAIL)
    result = judgekit("run", "data/exp.toml", "--out", "results")
    assert "To find the questions that fail (8 questions)" in result.out, result.err
    assert "Which model answered is not declared" not in result.out
    assert "the answering model" in result.out
    file = "ratings" if rated else "answer-short"
    quality = read_table(QUALITY, tmp_path / "results" / "answers" / f"{file}.parquet")
    assert quality.groupby("query_id")["value"].first().tolist() == [float(i % 2) for i in range(8)]


def test_traces_are_not_written_over_other_files(
    judgekit: Judgekit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "traces.jsonl", langfuse())
    (tmp_path / "queries.jsonl").write_text("mine")
    said = judgekit("traces", "traces.jsonl", "--out", ".")
    assert said.code == 2
    assert "would be replaced" in said.err
    assert judgekit("traces", "traces.jsonl", "--out", ".", "--overwrite").code == 0
    assert judgekit("traces", "nowhere.jsonl", "--out", "x").code == 2
    assert "expected spans in OpenInference terms" in judgekit("traces", "dense.trec", "--out", "x").err
