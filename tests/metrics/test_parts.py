"""Scoring in partitions of the queries gives what scoring all at once gives, to the last bit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judgekit.data.ordering import Ties
from judgekit.data.parts import count_rows
from judgekit.data.trec import read_qrels, read_run
from judgekit.errors import DataError
from judgekit.metrics import evaluate, parse_measures
from judgekit.metrics.parts import evaluate_parts, parts_for
from tests.commands import in_process

MEASURES = "nDCG@5 AP RR P(rel=2)@3 R@10 MeanRank"


def material(folder: Path, queries: int = 200) -> tuple[dict[str, Path], dict[str, Path]]:
    """Two runs in Parquet (a folder of parts among them), one in TREC's form; labels with statuses and without."""
    dice = np.random.default_rng(1)
    runs: dict[str, Path] = {}
    for name in ("a", "b", "c"):
        chosen = [f"q{n}" for n in range(queries) if dice.random() < 0.9] + ["elsewhere"]
        frame = pd.DataFrame(
            [(q, f"d{d}", dice.integers(9) / 2) for q in chosen for d in dice.permutation(30)[:12]],
            columns=["query_id", "doc_id", "score"],
        ).sample(frac=1, random_state=1)
        runs[name] = folder / f"{name}.parquet"
        if name == "a":
            runs[name].mkdir()
            for part in range(3):
                frame[part::3].to_parquet(runs[name] / f"part-{part}.parquet")
        elif name == "b":
            frame.to_parquet(runs[name], row_group_size=97)
        else:
            runs[name] = folder / "c.trec"
            lines = [f"{q} Q0 {d} 1 {s} x" for q, d, s in frame.itertuples(index=False)]
            runs[name].write_text("\n".join(lines))
    labels: dict[str, Path] = {}
    for name in ("judge", "people"):
        rows = [(f"q{n}", f"d{d}", float(dice.integers(4))) for n in range(queries) for d in range(0, 30, 2)]
        frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
        labels[name] = folder / f"{name}.parquet"
        if name == "judge":
            lost = dice.random(len(frame)) < 0.01
            frame = frame.assign(status=np.where(lost, "failed", "ok"), relevance=frame["relevance"].mask(lost))
            frame.to_parquet(labels[name])
        else:
            labels[name] = folder / "people.qrels"
            lines = [f"{q} 0 {d} {int(r)}" for q, d, r in frame.itertuples(index=False)]
            labels[name].write_text("\n".join(lines))
    return runs, labels


@pytest.mark.parametrize("count", [2, 7, 300])
@pytest.mark.parametrize(
    ("ties", "options"),
    [
        (Ties.DOC_DESC, {}),
        (Ties.RUN_ORDER, {"missing": "condense", "not_in_run": "skip"}),
        (Ties.EXPECTED, {"missing": "bounds", "unjudged": "bounds"}),
    ],
)
def test_partitions_change_nothing(count: int, ties: Ties, options: dict[str, Any], tmp_path: Path) -> None:
    runs, labels = material(tmp_path)
    measures = parse_measures("nDCG@5 AP P@3 R@10" if ties is Ties.EXPECTED else MEASURES)
    at_once = evaluate(
        [read_run(path, name, ties) for name, path in runs.items()],
        [read_qrels(path, name) for name, path in labels.items()],
        measures,
        **options,
    )
    parts = evaluate_parts(runs, labels, measures, count, scales={}, ties=ties, **options)
    pd.testing.assert_frame_equal(parts.scores(), at_once.scores(), check_exact=True)
    pd.testing.assert_frame_equal(parts.means(), at_once.means(), check_exact=True)
    pd.testing.assert_frame_equal(parts.notes, at_once.notes, check_exact=True)
    assert parts.warnings == at_once.warnings


def test_the_command_prints_the_same_and_says_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs, labels = material(tmp_path)
    given = [*(f"--run={n}={p}" for n, p in runs.items()), *(f"--qrels={n}={p}" for n, p in labels.items())]
    score = partial(in_process(capfd), "score", *given)
    assert score("--baseline", "a", "--partitions", "5") == score("--baseline", "a", "--partitions", "1")
    frame = pd.read_parquet(runs["b"])
    pd.concat([frame, frame[7:8]]).to_parquet(runs["b"])
    row = frame.iloc[7]
    twice = f"run 'b' lists doc {row['doc_id']!r} twice for query {row['query_id']!r}"
    assert twice in score("--partitions", "5").err
    (tmp_path / "docs.jsonl").write_text('{"doc_id": "d1", "text": "x"}')
    assert "leave --partitions out" in score("--partitions", "5", "--docs", tmp_path / "docs.jsonl").err


def test_labels_that_are_not_grades_need_a_scale(tmp_path: Path) -> None:
    runs, labels = material(tmp_path)
    pd.read_parquet(labels["judge"]).eval("relevance = relevance / 2").to_parquet(labels["judge"])
    with pytest.raises(DataError, match="not a whole number: declare"):
        evaluate_parts(runs, labels, parse_measures("AP"), 3, scales={}, ties=Ties.DOC_DESC)


@pytest.mark.parametrize("column", ["query_id", "score"])
def test_what_lacks_a_value_is_refused(column: str, tmp_path: Path) -> None:
    runs, labels = material(tmp_path)
    frame = pd.read_parquet(runs["b"])
    frame.loc[frame.index[3], column] = None
    frame.to_parquet(runs["b"])
    with pytest.raises(DataError, match=r"missing|finite"):
        evaluate_parts(runs, labels, parse_measures("AP"), 3, scales={}, ties=Ties.DOC_DESC)


def test_large_runs_in_parquet_are_divided_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, _ = material(tmp_path)
    assert count_rows(runs["c"]) is None
    monkeypatch.setattr("judgekit.metrics.parts._ROWS", 1000)
    assert parts_for(runs) == 1 + ((count_rows(runs["a"]) or 0) + (count_rows(runs["b"]) or 0)) // 1000
    numbered = tmp_path / "numbered.parquet"
    pd.DataFrame({"query_id": [1], "doc_id": [2], "score": [0.5]}).to_parquet(numbered)
    assert count_rows(numbered) is None, "ids that were read as numbers go to the reader that says so"
