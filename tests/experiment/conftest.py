"""A varied small experiment, whose parts tests exchange."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.asking import Asking
from judgekit.experiment.file import parse_config
from judgekit.experiment.run import RunResult, run
from judgekit.spec import parse
from tests.small import FILES, MOCK, QUICK, RUNS, YEARS, edited, make_experiment

Finish = Callable[..., RunResult]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small experiment with judgments of files and of people, and a store for all tests."""
    folder = make_experiment(tmp_path_factory.mktemp("pairings"))
    (folder / "graded.qrels").write_text("".join(f"q{i} 0 d{i}a {1 + i % 2}\n" for i in range(6)))
    (folder / "nothing.qrels").write_text("".join(f"q{i} 0 d{i}{part} 0\n" for i in range(6) for part in "abc"))
    votes = "".join(f"q{i},d{i}a|d{i}{'bc'[i % 2]},none\n" for i in range(6))
    (folder / "votes.csv").write_text("query_id,shown,chosen\n" + votes)
    lists = [(folder / f"{name}.trec").read_text().splitlines(keepends=True) for name in RUNS]
    mixed = [line for run, own in zip(lists, ("024", "135"), strict=True) for line in run if line[1] in own]
    (folder / "mixed.trec").write_text("".join(mixed).replace("2.5", "1.5"))
    for year in YEARS[::4]:
        edited(folder / "docs.jsonl", f"built in {year}", "built long ago")
    return folder


@pytest.fixture
def finish(data: Path, tmp_path: Path) -> Finish:
    """Run an experiment to its end; ``changes`` are further keys of its tables, or other runs."""

    def call(spellings: list[str], out: str = "out", /, **changes: dict[str, object]) -> RunResult:
        specs = [parse(spelling) for spelling in spellings]
        lone = [s.name in ("judge", "utility", "needed") and "jury" not in s.options for s in specs]
        content: dict[str, Any] = {
            "data": FILES | {"depth": 3},
            "runs": RUNS,
            "endpoints": {"one": MOCK, "two": MOCK | {"namespace": "two"}, "ranker": MOCK | {"api": "rerank"}},
            "labelers": [
                {"kind": s.name, "name": str(s), **s.options} | ({"endpoint": "one"} if one else {})
                for s, one in zip(specs, lone, strict=True)
            ],
            "answers": {"endpoint": "one", "depths": [3], "metrics": ["em"], "closed_book": False},
            "metrics": {"measures": ["P"]},
            "analysis": QUICK,
        }
        for table, change in changes.items():
            content[table] = change if table == "runs" else content[table] | change
        config = parse_config(content, data / "experiment.toml")
        finished = run(config, out=tmp_path / out, asking=Asking(cache=data / "store"))
        assert (tmp_path / out / "report.html").read_text().rstrip().endswith("</html>")
        assert finished.comparison.decision.text
        assert set(finished.comparison.table["labeling"]) == {str(spec) for spec in specs}
        return finished

    return call
