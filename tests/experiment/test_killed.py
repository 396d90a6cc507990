"""A command that is killed at any of its writes goes on when it is run again, and ends at the same files."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import judgekit as jk
from tests.mock import URL
from tests.small import edited

MOCK = ["--endpoint", URL, "--model", "mock", "--cache", "store"]
DATA = ["--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"]
COMMANDS = {
    "run": ["run", "experiment.toml", "--out", "made/out", "--cache", "store"],
    "build": ["build", "experiment.toml", "--labeling", "judge", "--out", "made/out", "--cache", "store"],
    "choose": ["choose", "experiment.toml", "--margin", 20, "--out", "made/out", "--cache", "store"],
    "label": ["label", "judge", *DATA, *MOCK, "--out", "made/out"],
    "answer": ["answer", *DATA, *MOCK, "--depth", 2, "--out", "made/out.csv"],
}
VARYING = ("report.json", "report.html", "card.md", "queries", "details.csv")


class Killed(BaseException):
    """What nothing catches, as a kill."""


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[Path]]:
    """Return a function after which the n-th file that is written below ``made`` is not: the process ends there."""
    replace = Path.replace

    def begin(number: int) -> list[Path]:
        written: list[Path] = []

        def counted(self: Path, target: Path) -> Path:
            if "made" in Path(target).parts:
                if len(written) == number:
                    raise Killed
                written.append(Path(target))
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", counted)
        return written

    return begin


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    kept = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {name: content for name, content in kept.items() if not set(Path(name).parts) & {*VARYING, "manifest.json"}}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_at_a_write_goes_on(name, judgekit, folder, killed_at, monkeypatch) -> None:
    command = COMMANDS[name]
    (folder / "made").mkdir()
    written = killed_at(10**6)
    whole = judgekit(*command)
    assert whole.code in (0, 1), whole.err
    expected, writes = contents(folder / "made"), len(written)
    assert writes >= 2
    # A run writes some thirty files, one like the other: its ends tell most.
    numbers = range(writes) if writes < 10 else [0, 1, 2, 9, writes - 1]
    for number in numbers:
        shutil.rmtree(folder / "made")
        (folder / "made").mkdir()
        killed_at(number)
        with pytest.raises(Killed):
            judgekit(*command)
        assert not list((folder / "made").rglob("*.tmp")), "nothing is left half"
        killed_at(10**6)
        again = judgekit(*command)
        assert again.code == whole.code, again.err
        assert contents(folder / "made") == expected


def test_ground_truth_is_not_built_into_a_folder_of_another_command(judgekit, folder) -> None:
    judgekit(*COMMANDS["run"], code=0)
    before = {path: path.read_bytes() for path in (folder / "made" / "out").rglob("*") if path.is_file()}
    for into in (["made/out", "--out", "made/out"], ["experiment.toml", "--out", "made/out"]):
        said = judgekit("build", *into, "--labeling", "judge", "--cache", "store", code=2)
        assert "made/out holds what `judgekit run` wrote, and `judgekit build` would make it unusable" in said.err
    assert "holds what `judgekit run` wrote" in judgekit(*COMMANDS["choose"], code=2).err
    assert {path: path.read_bytes() for path in before} == before
    judgekit("audit", "made/out", code=0)
    judgekit("build", "made/out", "--labeling", "judge", "--cache", "store", "--out", "gold", code=0)
    judgekit("build", "made/out", "--labeling", "judge", "--cache", "store", "--out", "gold", code=0)
    said = judgekit("run", "experiment.toml", "--out", "gold", "--cache", "store", code=2)
    assert "gold holds what `judgekit build` wrote, and `judgekit run` would make it unusable" in said.err


def test_results_that_0_3_0_wrote_are_read(judgekit, folder) -> None:
    judgekit(*COMMANDS["run"], code=0)
    out = folder / "made" / "out"
    said = json.loads((out / "manifest.json").read_bytes())
    assert said.pop("command") == "run"
    (out / "manifest.json").write_text(json.dumps({**said, "judgekit": "0.3.0"}, indent=1) + "\n")
    judgekit("audit", "made/out", code=0)
    judgekit("report", "made/out", code=0)
    assert (
        "holds what `judgekit run` wrote"
        in judgekit("build", "made/out", "--labeling", "judge", "--out", "made/out", code=2).err
    )
    judgekit(*COMMANDS["run"], code=0)
    assert json.loads((out / "manifest.json").read_bytes())["command"] == "run"


def test_a_run_in_python_is_counted_before_it_is_done(folder, tmp_path) -> None:
    asking = jk.Asking(cache=tmp_path / "store")
    plan = jk.run.plan(folder / "experiment.toml", out=folder / "out", asking=asking)
    assert {"label judge", "answer", "all"} <= set(plan)
    assert not (folder / "out").exists()
    edited(folder / "experiment.toml", "depth = 4", "depth = 4\nlimit = 2")
    fewer = jk.run.plan(folder / "experiment.toml", out=folder / "out", asking=asking)
    assert 0 < fewer["all"].requests < plan["all"].requests
