import json
from pathlib import Path

import pytest

from judgekit.data.outputs import command_of
from judgekit.data.result_files import NOWHERE, ResultFiles
from judgekit.errors import UsageError


def made(tmp_path: Path, **more: object) -> ResultFiles:
    (tmp_path / "queries").write_text("q")
    given = {"command": "run", "roles": {"queries": tmp_path / "queries"}, "loose": ("page",), **more}
    return ResultFiles(tmp_path / "out", ("a", "b", "page"), **given)  # type: ignore[arg-type]


def manifest(folder: Path) -> dict[str, object]:
    return dict(json.loads((folder / "manifest.json").read_bytes()))


def test_the_manifest_is_there_before_the_first_file_and_knows_all_after_the_last(tmp_path: Path) -> None:
    files = made(tmp_path)
    files.check()
    files.begin()
    assert manifest(tmp_path / "out")["results"] == {}
    assert command_of(tmp_path / "out") == "run"
    for name in ("a", "page"):
        files.file(name).write_text(name)
    files.close()
    said = manifest(tmp_path / "out")
    assert list(said["results"]) == ["a"], "b was not written, and the page is drawn again"  # type: ignore[call-overload]
    assert list(said["inputs"]) == ["queries"]  # type: ignore[call-overload]


def test_a_file_that_was_not_declared_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="undeclared"):
        made(tmp_path).file("undeclared")


def test_an_input_is_refused_also_outside_of_the_block_that_read_it(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_text("mine")
    with pytest.raises(UsageError, match="is an input of this command"):
        made(tmp_path, read=(tmp_path / "out" / "a",), overwrite=True).check()
    beside = ResultFiles(tmp_path, ("new", "queries"), owner="new", read=(tmp_path / "queries",))
    with pytest.raises(UsageError, match="queries is an input of this command"):
        beside.check()


def test_the_results_of_another_command_are_refused_unless_they_may_go(tmp_path: Path) -> None:
    files = made(tmp_path)
    files.check()
    files.begin()
    made(tmp_path).check()
    with pytest.raises(UsageError, match="holds what `judgekit run` wrote, and `judgekit build` would make"):
        made(tmp_path, command="build").check()
    made(tmp_path, command="build", overwrite=True).check()


@pytest.mark.parametrize(
    ("there", "command"),
    [
        ({}, ""),
        ({"manifest.json": '{\n "judgekit": "0.3.0", "inputs": {}}'}, ""),
        ({"manifest.json": '{"experiment": "/x/e.toml"}'}, "build"),
        ({"resolved.toml": "# Paths are relative to /x", "manifest.json": "{}"}, "run"),
        ({"resolved.toml": "# Paths are relative to /x", "manifest.json": '{"experiment": "/x"}'}, "run"),
        ({"resolved.toml": "# Paths are relative to /x", "manifest.json": "not"}, "run"),
        ({"resolved.toml": "# Paths are relative to /x", "choice.json": "{}", "manifest.json": "{}"}, "choose"),
    ],
)
def test_results_of_0_3_0_tell_their_command_by_their_files(
    tmp_path: Path, there: dict[str, str], command: str
) -> None:
    for name, text in there.items():
        (tmp_path / name).write_text(text)
    assert command_of(tmp_path) == command


def test_a_command_that_writes_nothing_has_nothing_against_it() -> None:
    NOWHERE.check()
    assert not NOWHERE.writes
