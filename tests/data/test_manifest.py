"""A manifest says which data a result is of, and nothing of what was changed since."""

import gzip
import hashlib
from pathlib import Path

import pytest

from judgekit.data import manifest
from judgekit.data.manifest import (
    MANIFEST,
    InputFile,
    by_role,
    has_manifest,
    manifest_path,
    mismatches,
    sources,
    write_manifest,
)


def made(folder: Path, name: str, **named: Path) -> Path:
    """Write a result that was made from the files named."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"made from {sorted(named)}\n")
    write_manifest(manifest_path(path), sources(named), [path])
    return path


def test_a_folder_that_is_one_table_has_a_hash_of_names_and_contents(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "part-00000.parquet").write_bytes(b"one")
    first = InputFile.of(folder)
    (folder / "part-00001.parquet").write_bytes(b"two")
    second = InputFile.of(folder)
    (folder / "part-00001.parquet").rename(folder / "part-00002.parquet")
    assert len({first.sha256, second.sha256, InputFile.of(folder).sha256}) == 3
    assert second.bytes == 6
    inside = [folder, folder / "part-00000.parquet"]
    assert list(sources({"docs": folder}, inside)) == ["docs"], "its parts are not listed a second time"


def test_what_was_read_without_a_role_goes_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("q")
    (tmp_path / "prompt.toml").write_bytes(gzip.compress(b"p"))
    named = {"queries": Path(f"jsonl:{tmp_path / 'queries'}")}
    found = sources(named, [tmp_path / "queries", tmp_path / "prompt.toml"])
    prompt = found[str(tmp_path / "prompt.toml")]
    assert (prompt.bytes, prompt.sha256) == (21, hashlib.sha256(gzip.compress(b"p")).hexdigest())
    assert list(found) == ["queries", str(tmp_path / "prompt.toml")]
    assert found["queries"].file == str(tmp_path / "queries")


def test_a_result_knows_what_it_was_made_from_and_what_that_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("q")
    labels = made(tmp_path, "labels.qrels", queries=tmp_path / "queries")
    scores = made(tmp_path, "scores.csv", qrels=labels)
    found = InputFile.of(scores)
    assert found.inputs["qrels"] == InputFile.of(labels)
    assert found.inputs["qrels"].inputs["queries"].sha256 == hashlib.sha256(b"q").hexdigest()
    scores.write_text("my own now")
    assert (has_manifest(scores), InputFile.of(scores).inputs) == (True, {})


def test_files_go_by_their_roles() -> None:
    queries, docs, runs = Path("q"), [Path("a"), Path("b")], {"bm25": Path("r")}
    files = by_role(queries, docs, runs)
    assert list(files) == ["queries", "docs", "docs 2", "run bm25"]


def test_results_in_a_folder_share_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "queries").write_text("q")
    (tmp_path / "out" / "labels").mkdir(parents=True)
    results = [tmp_path / "out" / "scores.csv", tmp_path / "out" / "labels" / "a.qrels"]
    for path in results:
        path.write_text("x")
    write_manifest(tmp_path / "out" / MANIFEST, sources({"queries": tmp_path / "queries"}), results)
    assert all(list(InputFile.of(path).inputs) == ["queries"] for path in results)
    (tmp_path / "out" / "labels" / "left-over.qrels").write_text("of an earlier run")
    assert not InputFile.of(tmp_path / "out" / "labels" / "left-over.qrels").inputs


@pytest.mark.parametrize("content", ['{"name": "my web app"}', "[]", "{", '{"results": {"scores.csv": 1}}'])
def test_the_manifest_of_another_tool_is_left_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "scores.csv").write_text("x")
    (tmp_path / MANIFEST).write_text(content)
    assert InputFile.of(tmp_path / "scores.csv").inputs == {}


def test_inputs_that_were_made_from_different_files_are_told_once_each(tmp_path: Path) -> None:
    for name in ("queries", "other", "docs"):
        (tmp_path / name).write_text(name)
    scores = made(tmp_path, "scores.csv", queries=tmp_path / "queries", docs=tmp_path / "docs")
    same = made(tmp_path, "same.csv", queries=tmp_path / "queries")
    quality = made(tmp_path, "quality.csv", queries=tmp_path / "other", docs=tmp_path / "docs")
    assert mismatches(sources({}, [scores, same])) == []
    (line,) = mismatches(sources({}, [scores, same, quality]))
    assert "different queries" in line
    asked = {role: mismatches(sources({}, [scores, same, quality]), [role]) for role in ("queries", "docs")}
    assert asked == {"queries": [line], "docs": []}
    for part in (scores, tmp_path / "queries", quality, tmp_path / "other", hashlib.sha256(b"other").hexdigest()[:12]):
        assert str(part) in line


def test_the_files_of_one_run_are_compared_by_its_name(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    same = {"qrels": made(tmp_path, "labels.qrels", **{"run a": tmp_path / "one"}), "run a": tmp_path / "one"}
    assert mismatches(sources(same)) == []
    (line,) = mismatches(sources({**same, "run a": tmp_path / "two"}))
    assert "different files of run a" in line


def test_the_hash_of_a_large_file_is_kept_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "_LARGE", 1)
    path = tmp_path / "docs.jsonl"
    path.write_bytes(b"one")
    first = InputFile.of(path)

    with monkeypatch.context() as patched:
        patched.delattr(manifest, "_hashed")
        assert InputFile.of(path) == first
    path.write_bytes(b"two")
    assert InputFile.of(path).sha256 == hashlib.sha256(b"two").hexdigest()
