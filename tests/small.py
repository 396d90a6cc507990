"""A small experiment on disk, answered by the mock, and the command line in this process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import Judgekit, in_process
from tests.mock import URL

TOWNS = ["Arlen", "Borvik", "Cantry", "Dulse", "Elmshire", "Farrow"]
YEARS = ["1412", "1533", "1674", "1781", "1850", "1903"]

FILES = {"queries": "queries.jsonl", "docs": "docs.jsonl"}
RUNS = {"good": "good.trec", "poor": "poor.trec"}
MOCK = {"base_url": URL, "model": "mock"}
QUICK = {"resamples": 100}


def toml(**tables: Any) -> str:
    """An experiment file of these tables; a list holds tables of one name, a dict in a dict is a table below it."""
    lines: list[str] = []
    for name, value in tables.items():
        for table in value if isinstance(value, list) else [value]:
            below = {key: part for key, part in table.items() if isinstance(part, dict)}
            if table.keys() - below or not below:
                lines.append(f"[[{name}]]" if isinstance(value, list) else f"[{name}]")
            lines += [f"{key} = {json.dumps(part)}" for key, part in table.items() if key not in below]
            lines += [toml(**{f"{name}.{key}": part}) for key, part in below.items()]
    return "\n".join(lines) + "\n"


EXPERIMENT = toml(
    data=FILES | {"depth": 4},
    runs=RUNS,
    endpoints={"local": MOCK},
    labelers=[{"kind": "containment"}, {"name": "judge", "kind": "judge"}, {"name": "erag", "kind": "utility"}],
    answers={"depths": [1, 4]},
    metrics={"measures": ["nDCG", "P"]},
    analysis=QUICK,
)


def edited(path: Path, old: str, new: str, to: str = "") -> None:
    """Replace what a file says, in it or in a copy of it beside it."""
    text = path.read_text()
    assert old in text, f"{path} does not say {old!r}"
    path.with_name(to or path.name).write_text(text.replace(old, new))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six questions, eighteen passages, two runs, an experiment file; everything answered by the mock."""
    return make_experiment(tmp_path)


def make_experiment(tmp_path: Path) -> Path:
    """Write the experiment's files into a folder."""
    queries, docs, good, poor = [], [], [], []
    for i, (town, year) in enumerate(zip(TOWNS, YEARS, strict=True)):
        queries.append({"query_id": f"q{i}", "text": f"When was the bridge of {town} built?", "answers": [year]})
        docs += [
            {"doc_id": f"d{i}a", "title": town, "text": f"The stone bridge of {town} was built in {year} by masons."},
            {"doc_id": f"d{i}b", "title": town, "text": f"The market of {town} is held on the square every week."},
            {"doc_id": f"d{i}c", "title": "", "text": f"A flood in {YEARS[i - 1]} spared the mill beside the river."},
        ]
        other = (i + 1) % len(TOWNS)
        good += [(f"q{i}", f"d{i}a", 3.0), (f"q{i}", f"d{i}b", 2.0), (f"q{i}", f"d{other}c", 1.0)]
        poor += [(f"q{i}", f"d{other}c", 3.0), (f"q{i}", f"d{i}b", 2.5)] + ([(f"q{i}", f"d{i}a", 2.0)] if i % 2 else [])
    for name, rows in (("queries", queries), ("docs", docs)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, run in (("good", good), ("poor", poor)):
        (tmp_path / f"{name}.trec").write_text("".join(f"{q} Q0 {d} 0 {s} {name}\n" for q, d, s in run))
    (tmp_path / "gold.qrels").write_text("".join(f"q{i} 0 d{i}a 1\n" for i in range(len(TOWNS))))
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    return tmp_path


@pytest.fixture
def judgekit(capfd: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Judgekit:
    """Run a command line in the folder, in this process: ``judgekit("score", "--run", ...)``."""
    monkeypatch.chdir(folder)
    return in_process(capfd)
