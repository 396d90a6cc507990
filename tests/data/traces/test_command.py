from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit.data.files import read_table
from judgekit.data.tables import QUALITY
from tests.data.traces.test_reading import PHOENIX, Record, as_langfuse, lines, spans
from tests.mock import URL
from tests.small import Judgekit, edited


@pytest.mark.parametrize(("form", "rated"), [(as_langfuse, True), (list, False)])
def test_traces_lead_to_an_experiment_on_what_was_answered_or_rated(
    form: Callable[[list[Record]], list[Record]], rated: bool, judgekit: Judgekit, tmp_path: Path
) -> None:
    rows: list[Record] = []
    for i in range(8):
        for run in ("dense", "sparse"):
            trace = f"{run}{i}"
            rows += spans(trace, f"When was mill {i} burnt?" if i % 2 else f"Who sang song {i}?", "1850", i, run)
            up = {"label": "up" if (i + len(run)) % 2 == 0 else "down"}
            if rated:
                rows.append({"span_id": f"{trace}-root", "name": "helpful", "annotator_kind": "HUMAN", "result": up})
    lines(tmp_path / "spans.jsonl", form(rows))
    said = judgekit("traces", "spans.jsonl", "--out", "data", code=0)
    assert said.out.startswith(f"8 questions, 2 documents, 16 answers and {16 * rated} ratings")
    assert said.out.endswith("judgekit plan data/experiment.toml\n"), "a judge, for there are no references"
    counted = judgekit("run", "data/experiment.toml", "--dry-run", code=0)
    # The lists of the two are the same here, as the documents are: that is said, and each answer counts.
    assert "runs 'dense' and 'sparse' hold the same lists" in counted.err
    assert ("rate grounded" in counted.out or "\nanswer " in counted.out) is not rated
    experiment = tmp_path / "data" / "experiment.toml"
    edited(experiment, "http://localhost:8000/v1", URL)
    experiment.write_text(experiment.read_text() + "resamples = 100\n")
    assert judgekit("run", "data/experiment.toml", "--out", "results").code in (0, 1)
    outcome = "helpful" if rated else "grounded"
    assert f'outcome = "{outcome}"' in (tmp_path / "results" / "resolved.toml").read_text()
    file = "ratings" if rated else "answer-short"
    quality = read_table(QUALITY, tmp_path / "results" / "answers" / f"{file}.parquet")
    assert len(quality) == 16
    if rated:
        dense = quality[quality["run"] == "dense"].sort_values("query_id")
        assert dense["value"].tolist() == [float((i + 5) % 2 == 0) for i in range(8)]


def test_traces_are_not_written_over_other_files(judgekit: Judgekit, tmp_path: Path) -> None:
    lines(tmp_path / "traces.jsonl", as_langfuse(PHOENIX))
    (tmp_path / "queries.jsonl").write_text("mine")
    assert "would be replaced" in judgekit("traces", "traces.jsonl", "--out", ".", code=2).err
    assert judgekit("traces", "traces.jsonl", "--out", "made").code == 0
    assert judgekit("traces", "nowhere.jsonl", "--out", "x").code == 2
    assert "expected spans in OpenInference terms" in judgekit("traces", "dense.trec", "--out", "x").err


def test_a_decision_on_an_llms_annotations_says_whose_they_are(judgekit: Judgekit, tmp_path: Path) -> None:
    rows: list[Record] = []
    for i in range(30):
        for run in ("dense", "sparse"):
            trace = f"{run}{i}"
            rows += spans(trace, f"When was mill {i} burnt?", "1850", i, run)
            result = {"score": float((i + len(run)) % 3 == 0)}
            rows.append({"span_id": f"{trace}-root", "name": "helpful", "annotator_kind": "LLM", "result": result})
    lines(tmp_path / "spans.jsonl", rows)
    judgekit("traces", "spans.jsonl", "--out", "data", code=0)
    experiment = tmp_path / "data" / "experiment.toml"
    edited(experiment, "http://localhost:8000/v1", URL)
    experiment.write_text(experiment.read_text() + "resamples = 100\n")
    said = " ".join(judgekit("run", "data/experiment.toml", "--out", "results").out.split())
    assert "Answers are rated by an LLM, not checked by people." in said
    assert "New answers need new ratings" not in said
