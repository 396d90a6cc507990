from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.analysis.modes import of_mode
from judgekit.errors import ConfigError
from judgekit.experiment.finished import backing_of, read_results
from judgekit.report.files import load
from judgekit.sample import EXPERIMENT
from tests import small
from tests.mock import URL

FOLDER = EXPERIMENT.parent
MODES = ["together", "reversed", "vote", "merge"]
MOCK = jk.Endpoint("mock", URL, "mock")
DATA = {
    "queries": FOLDER / "queries.jsonl",
    "docs": FOLDER / "docs.jsonl",
    "runs": {name: FOLDER / f"runs/{name}.trec" for name in ("bm25", "tfidf")},
}


def experiment(folder: Path, **answers: Any) -> Path:
    text = small.toml(
        data={"queries": str(DATA["queries"]), "docs": str(DATA["docs"]), "depth": 3, "limit": 40},
        runs={name: str(path) for name, path in DATA["runs"].items()},
        endpoints={"mock": small.MOCK},
        labelers=[{"kind": "containment"}],
        answers={"depths": [1, 3], "outcome": "f1"} | answers,
        metrics={"measures": ["nDCG", "P"]},
        analysis=small.QUICK | {"primary": "nDCG@3", "use": "find-questions"},
    )
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("modes")
    jk.run(experiment(folder, modes=MODES), out=folder / "out", asking=jk.Asking(cache=folder / "cache"))
    return folder


def test_the_first_of_several_modes_gives_the_numbers_that_it_gives_alone(swept, tmp_path):
    def compared(**answers: Any) -> pd.DataFrame:
        done = jk.run(
            experiment(tmp_path, **answers),
            out=tmp_path / "out",
            asking=jk.Asking(cache=swept / "cache"),
            overwrite=True,
        )
        return done.comparison.table.drop(columns="mode", errors="ignore")

    alone = compared(modes=["reversed"])
    pd.testing.assert_frame_equal(compared(modes=["reversed", "vote"]), alone)


def test_each_mode_is_held_against_the_labels_on_the_same_questions(swept):
    table = pd.read_csv(swept / "out" / "modes.csv")
    assert list(dict.fromkeys(table["mode"])) == MODES
    assert set(table["measure"]) == {"nDCG@3", "P@3"}
    assert set(table["depth"]) == {3}
    assert table.groupby(["labeling", "measure", "run", "level"])["n"].nunique().eq(1).all()


def test_answers_are_read_back_as_those_of_the_first_mode(swept):
    assert set(read_results(swept / "out")[2]["mode"]) == {"together"}
    assert set(backing_of(swept / "out").quality["mode"]) == {"together"}


def test_the_report_shows_the_modes_and_what_each_takes_and_decides_about_the_first(swept):
    results = load(swept / "out")
    assert "(mode: together)" in str(results.primary)
    assert set(pd.read_csv(swept / "out" / "comparison.csv")["mode"]) == {"together"}
    section = next(one for one in results.sections if one.title == "Modes of answering")
    assert section.table is not None
    assert list(section.table["mode"]) == MODES
    assert {one.name for one in results.answers} == {f"mock ({mode})" for mode in MODES}


def test_answer_takes_modes_and_compares_nothing_twice(tmp_path):
    asked = {"depths": [1, 3], "endpoints": MOCK, "asking": jk.Asking(cache=tmp_path)}
    table = jk.answer(**DATA, **asked, modes=["vote", "together"])
    assert list(dict.fromkeys(table["mode"])) == ["vote", "together"]
    plain = jk.answer(**DATA, **asked)
    assert "mode" not in plain.columns
    together = of_mode(table, "together").drop(columns="mode").reset_index(drop=True)
    pd.testing.assert_frame_equal(together, plain)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"modes": ["vote", "vote"]}, "names 'vote' twice"),
        ({"modes": ["voting"]}, "unknown mode 'voting'"),
    ],
)
def test_wrong_modes_end_an_experiment_before_anything_is_asked(tmp_path, answers, said):
    with pytest.raises(ConfigError, match=said):
        jk.plan(experiment(tmp_path, **answers))


def test_imported_answers_may_be_of_several_modes(tmp_path, swept):
    table = pd.read_parquet(next((swept / "out" / "answers").glob("*.parquet")))
    table = table[(table["metric"] == "f1") & (table["depth"] > 0) & table["mode"].isin(["together", "vote"])]
    table[["run", "depth", "query_id", "answer", "mode"]].to_csv(tmp_path / "mine.csv", index=False)
    imported = experiment(tmp_path, **{"import": f"{tmp_path}/mine.csv", "answered_by": "app"})
    assert jk.run(imported, out=tmp_path / "out").comparison.modes is not None
