"""The outcome is what the user's own application answered: imported, or asked through a function or a route."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgekit.data.files import read_table
from judgekit.data.tables import QUALITY
from tests.cli.conftest import EXPERIMENT, Judgekit
from tests.cli.test_cli_stages import DATA, MOCK

UNDECLARED = "Which model answered is not declared"
IMPORT = '[answers]\nimport = "app.csv"\ndepths = [4]\nmetrics = ["em", "correct"]\n'


@pytest.fixture
def answered(judgekit: Judgekit, folder: Path) -> Path:
    """A folder with app.csv: run, query_id, answer."""
    assert judgekit("answer", *DATA, "--depth", 4, "--no-closed-book", "--out", "own.csv", *MOCK).code == 0
    own = read_table(QUALITY, folder / "own.csv")
    own[own["metric"] == "em"][["run", "query_id", "answer"]].to_csv(folder / "app.csv", index=False)
    (folder / "import.toml").write_text(EXPERIMENT.replace("[answers]\ndepths = [1, 4]\n", IMPORT))
    return folder


def test_answer_rates_imported_answers_as_it_rates_its_own(judgekit: Judgekit, answered: Path) -> None:
    common = ["answer", "--queries", "queries.jsonl", "--import", "app.csv"]
    said = judgekit(*common, "--depth", 4, "--answered-by", "mock", "--out", "imported.csv")
    assert said.code == 0, said.err
    own, imported = (read_table(QUALITY, answered / name) for name in ("own.csv", "imported.csv"))
    columns = ["run", "depth", "model", "query_id", "metric", "value", "answer", "status"]
    assert imported[columns].equals(own[columns])
    assert (
        "answering needs --docs, --depth; or --import" in judgekit("answer", *DATA[:2], *DATA[4:], "--out", "x.csv").err
    )


def test_an_experiment_on_imported_answers_asks_for_no_answer_and_for_who_gave_them(
    judgekit: Judgekit, answered: Path
) -> None:
    plan = judgekit("run", "import.toml", "--dry-run")
    assert plan.code == 0, plan.err
    said = judgekit("run", "import.toml", "--out", "results")
    assert said.code == 0, said.err
    quality = read_table(QUALITY, answered / "results" / "answers" / "answer-short.parquet")
    assert set(zip(quality["model"], quality["depth"], quality["metric"], strict=True)) == {
        ("undeclared", 4, "em"), ("undeclared", 4, "correct"),
    }  # fmt: skip
    assert len(quality) == 2 * 6 * 2
    assert UNDECLARED in said.out
    assert "the answering model" not in said.out
    declared = (answered / "import.toml").read_text().replace("import =", 'answered_by = "mock"\nimport =')
    (answered / "declared.toml").write_text(declared)
    said = judgekit("run", "declared.toml", "--out", "declared")
    assert UNDECLARED not in said.out
    assert "'judge' shares the answering model" in said.out
    resolved = (answered / "declared" / "resolved.toml").read_text()
    assert 'import = "app.csv"' in resolved
    (answered / "again.toml").write_text(resolved)
    assert judgekit("run", "again.toml", "--out", "again").code == 0


def test_compare_tells_that_ratings_do_not_say_who_answered(judgekit: Judgekit, answered: Path) -> None:
    (answered / "thumbs.csv").write_text(
        "query_id,value\n" + "".join(f"q{i},{'up' if i % 2 else 'down'}\n" for i in range(6))
    )
    score = ["score", "--run", "good.trec", "--qrels", "gold.qrels", "-m", "nDCG@3", "--per-query", "--out", "s.csv"]
    assert judgekit(*score).code == 0
    said = judgekit("compare", "--scores", "s.csv", "--quality", "thumbs.csv")
    assert said.code == 0, said.err
    assert UNDECLARED in said.out
