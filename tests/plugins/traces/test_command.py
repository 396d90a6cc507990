"""From exported traces to a verdict: an experiment is written beside the data, and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from judgekit.data.files import read_table
from judgekit.data.tables import QUALITY
from tests.mock import URL
from tests.plugins.traces.test_reading import DOCS, Record, langfuse, lines, spans
from tests.small import Judgekit


def exported(form: str, trace: str, question: str, answer: str, second: int, run: str, up: bool | None) -> list[Record]:
    """A trace as Phoenix or Langfuse exports it, with a rating or without."""
    if form == "phoenix":
        rating = {"span_id": f"{trace}-root", "name": "helpful", "annotator_kind": "HUMAN", "result": {"label": "up"}}
        rating["result"] = {"label": "up" if up else "down"}
        return [*spans(trace, question, answer, second, run), *([] if up is None else [rating])]
    start = f"2026-01-01T00:00:{second:02}.000Z"
    documents = [{"id": name, "page_content": text, "metadata": {}} for name, text in DOCS]
    found = {"id": f"{trace}-1", "type": "RETRIEVER", "name": run, "startTime": start, "output": documents}
    model = {"id": f"{trace}-2", "type": "GENERATION", "name": "llm", "startTime": start, "model": "model-a"}
    rated = [] if up is None else [{"id": f"{trace}-3", "name": "helpful", "value": int(up)}]
    return [
        {
            "id": trace,
            "timestamp": start,
            "input": question,
            "output": answer,
            "observations": [found, model],
            "scores": rated,
        }
    ]


@pytest.mark.parametrize("form", ["phoenix", "langfuse"])
@pytest.mark.parametrize("rated", [True, False])
def test_traces_lead_to_an_experiment_on_what_was_answered_or_rated(
    rated: bool, form: str, judgekit: Judgekit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [f"When was mill {i} burnt?" if i % 2 else f"Who sang song {i}?" for i in range(8)]
    rows = [
        row
        for i in range(8)
        for run in ("dense", "sparse")
        for row in exported(form, f"{run}{i}", asked[i], "1850", i, run, (i + len(run)) % 2 == 0 if rated else None)
    ]
    lines(tmp_path / "spans.jsonl", rows)
    said = judgekit("traces", "spans.jsonl", "--out", "data", code=0)
    assert said.out.startswith(f"8 questions, 2 documents, 16 answers and {16 * rated} ratings")
    assert said.out.endswith("judgekit run data/experiment.toml --dry-run\n"), "a judge, for there are no references"
    experiment = tmp_path / "data" / "experiment.toml"
    counted = judgekit("run", "data/experiment.toml", "--dry-run", code=0)
    # The lists of the two are the same here, as the documents are: that is said, and each answer counts.
    assert "runs 'dense' and 'sparse' hold the same lists" in counted.err
    assert ("rate grounded" in counted.out or "\nanswer " in counted.out) is not rated
    text = experiment.read_text().replace("http://localhost:8000/v1", URL)
    experiment.write_text(text + "\n[analysis]\nresamples = 100\n")
    assert judgekit("run", "data/experiment.toml", "--out", "results").code in (0, 1)
    outcome = "helpful" if rated else "grounded"
    assert f'primary_metric = "{outcome}"' in (tmp_path / "results" / "resolved.toml").read_text()
    file = "ratings" if rated else "answer-short"
    quality = read_table(QUALITY, tmp_path / "results" / "answers" / f"{file}.parquet")
    assert len(quality) == 16
    if rated:
        dense = quality[quality["run"] == "dense"].sort_values("query_id")
        assert dense["value"].tolist() == [float((i + 5) % 2 == 0) for i in range(8)]


def test_traces_are_not_written_over_other_files(
    judgekit: Judgekit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "traces.jsonl", langfuse())
    (tmp_path / "queries.jsonl").write_text("mine")
    assert "would be replaced" in judgekit("traces", "traces.jsonl", "--out", ".", code=2).err
    assert judgekit("traces", "traces.jsonl", "--out", ".", "--overwrite").code == 0
    assert judgekit("traces", "nowhere.jsonl", "--out", "x").code == 2
    assert "expected spans in OpenInference terms" in judgekit("traces", "dense.trec", "--out", "x").err


def test_the_experiment_is_written_when_nobody_reads_the_output(tmp_path: Path) -> None:
    rows = [row for run in ("dense", "sparse") for row in exported("langfuse", run, "Who?", "Ada", 1, run, True)]
    lines(tmp_path / "spans.jsonl", rows)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "judgekit", "traces", "spans.jsonl", "--out", "data"]
    left = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert "Traceback" not in left.stderr
    assert (tmp_path / "data" / "experiment.toml").exists()
