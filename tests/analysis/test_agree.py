"""Agreement of labels without queries, runs or answers: `jk.agree` and `judgekit agree`, against formulas of others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

import judgekit as jk
from judgekit.analysis.agreement import agreement
from judgekit.cli import main
from judgekit.data.frames import as_labelings
from judgekit.errors import UsageError


def qrels(seed: int = 0, queries: int = 30, docs: int = 8) -> dict[str, dict[str, dict[str, int]]]:
    rng = np.random.default_rng(seed)
    people = {f"q{i:02d}": {f"d{j}": int(rng.integers(0, 4)) for j in range(docs)} for i in range(queries)}
    judge = {q: {d: int(np.clip(g + rng.integers(-1, 3), 0, 3)) for d, g in row.items()} for q, row in people.items()}
    return {"judge": judge, "people": people}


def test_every_label_has_the_precision_and_recall_of_its_definition_and_bias_is_the_mean_difference() -> None:
    made = qrels()
    a, b = (np.array([g for row in made[name].values() for g in row.values()]) for name in ("judge", "people"))
    found = jk.agree(made, people="people").table
    on = found[found["on"] == "labels"].set_index("coefficient")
    for grade in range(4):
        assert on.loc[f"precision={grade}", "value"] == pytest.approx(np.mean(b[a == grade] == grade))
        assert on.loc[f"recall={grade}", "value"] == pytest.approx(np.mean(a[b == grade] == grade))
    assert on.loc["mean_difference", "value"] == pytest.approx(np.mean(a - b))
    assert ((on["ci_low"] <= on["value"]) & (on["value"] <= on["ci_high"])).all()


def test_a_label_that_one_side_never_gives_has_a_reason_instead_of_a_number() -> None:
    found = jk.agree(
        {"a": {"q": {"x": 1, "y": 2}}, "b": {"q": {"x": 1, "y": 1}}},
        people=["b"],
        scales={"a": "grades:2", "b": "grades:2"},
    ).table.set_index("coefficient")
    assert np.isnan(found.loc["recall=2", "value"])
    assert found.loc["recall=2", "undefined_reason"] == "no such pair"
    assert found.loc["precision=2", "value"] == 0


def test_grades_without_a_scale_are_compared_although_one_side_never_gives_the_largest() -> None:
    made = qrels()
    made["judge"] = {q: {d: min(g, 2) for d, g in row.items()} for q, row in made["judge"].items()}
    assert "kappa_quadratic" in set(jk.agree(made).table["coefficient"])


def test_the_two_may_order_the_same_runs_otherwise() -> None:
    made, rng = qrels(), np.random.default_rng(1)
    runs = {
        f"run{k}": {q: {d: k * g + rng.normal() for d, g in row.items()} for q, row in made["people"].items()}
        for k in range(6)
    }
    found = jk.agree(made, runs=runs, measures="nDCG@5").system.set_index("coefficient")
    scores = jk.score(runs, made, "nDCG@5").means()
    first, second = (scores[scores["labeling"] == name].sort_values("run")["value"] for name in ("judge", "people"))
    assert found.loc["tau_b", "value"] == pytest.approx(kendalltau(first, second).statistic)
    assert found.loc["rho", "value"] == pytest.approx(spearmanr(first, second).statistic)
    assert (found["runs"] == 6).all()
    assert (found["queries"] == 30).all()
    assert found["ci_low"].isna().all(), "no interval that covers is known for means of few runs"


def test_one_labeling_and_unknown_people_are_refused_by_name() -> None:
    made = qrels()
    with pytest.raises(UsageError, match="two or more labelings"):
        jk.agree({"judge": made["judge"]})
    with pytest.raises(UsageError, match="unknown labeling 'humans'"):
        jk.agree(made, people=["humans"])


def test_the_command_says_what_the_function_says(tmp_path, capsys) -> None:
    made, args = qrels(), []
    for name, rows in made.items():
        lines = [f"{q} 0 {d} {g}\n" for q, row in rows.items() for d, g in row.items()]
        (tmp_path / f"{name}.qrels").write_text("".join(lines))
        args += ["--qrels", f"{name}={tmp_path / name}.qrels"]
    with pytest.raises(SystemExit) as left:
        main(["agree", *args, "--people", "people", "--out", str(tmp_path / "a.csv")])
    assert not left.value.code
    said = capsys.readouterr()
    assert "kappa_quadratic" in said.out
    assert "240 documents have labels by both judge and people" in said.err
    table = pd.read_csv(tmp_path / "a.csv")
    expected = jk.agree(made, people="people").table
    assert table["value"].to_list() == pytest.approx(expected["value"].to_list(), nan_ok=True)
    with pytest.raises(SystemExit) as left:
        main(["agree", *args[:2]])
    assert left.value.code == 2
    assert "two or more labelings" in capsys.readouterr().err


def test_its_intervals_are_those_of_one_seed() -> None:
    made = qrels()
    one, other = (agreement(as_labelings(made), people=["people"], seed=seed).table for seed in (1, 2))
    pd.testing.assert_frame_equal(jk.agree(made, people="people").table, one)
    assert not one.equals(other)
