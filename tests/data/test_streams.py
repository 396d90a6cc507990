"""Files are opened whatever their packing, and written whole or not at all."""

import gzip
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from judgekit.data.outputs import check_folder
from judgekit.data.streams import lines, open_atomic, read_bytes, recording_inputs, write_atomic
from judgekit.errors import DataError, UsageError


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams") / "file"


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\n\r"))),
    windows=st.booleans(),
)
def test_lines_know_their_number(texts: list[str], windows: bool, path: Path) -> None:
    end = "\r\n" if windows else "\n"
    content = "".join(text + end for text in texts).encode()
    path.write_bytes(content)
    found = list(lines(path))
    if content.startswith(b"\xef\xbb\xbf"):
        return
    assert [line.text for line in found] == texts
    assert [line.number for line in found] == list(range(1, len(texts) + 1))
    assert "".join(line.text for line in lines(path, ends=True)).encode() == content


def test_only_a_line_feed_ends_a_line_and_a_byte_order_mark_is_dropped_at_the_beginning_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes("\ufeffa\n\ufeffb\u2028\x85c\x0cd\re\nf".encode())
    assert [line.text for line in lines(tmp_path / "file")] == ["a", "\ufeffb\u2028\x85c\x0cd\re", "f"]
    assert read_bytes(tmp_path / "file").startswith("a\n\ufeffb".encode())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0)
    with pytest.raises(DataError, match="Permission denied"):
        read_bytes(tmp_path / "file")


# Writing.


def test_what_is_written_replaces_what_was_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.txt"
    write_atomic(path, "one\r\n")
    assert path.read_bytes() == b"one\r\n"
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(DataError, match="is a pipe or a device: name a file to write"):
        write_atomic("/dev/null", "text")
    for packed in (tmp_path / "a.gz", tmp_path / "b.gz"):
        write_atomic(packed, "text")
    assert gzip.decompress(packed.read_bytes()) == b"text"
    assert packed.read_bytes() == (tmp_path / "a.gz").read_bytes()


def test_a_file_and_its_name_are_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(stat.S_ISDIR(os.fstat(handle).st_mode)))
    write_atomic(tmp_path / "file", "")
    assert synced == [False, os.name == "posix"]


@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_nothing_is_seen_before_the_end_and_an_exception_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name

    def interrupted() -> None:
        with open_atomic(path) as stream:
            stream.write(b"half")
            assert not path.exists() or path.read_bytes() == b"old"
            raise KeyboardInterrupt

    for before in ([], [path]):
        for file in before:
            file.write_bytes(b"old")
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert list(tmp_path.iterdir()) == before
    assert path.read_bytes() == b"old"


def test_a_link_is_followed_and_a_new_file_has_the_permissions_that_the_user_set(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / "link").symlink_to("file")
    write_atomic(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="is a folder: name a file to write"):
        write_atomic(tmp_path, "text")
    with pytest.raises(DataError, match="cannot be written: "):
        write_atomic(tmp_path / "file" / "below", "text")
    with pytest.raises(DataError, match="cannot be written: File name too long"):
        write_atomic(tmp_path / ("x" * 300), "text")


def test_no_input_is_written_over_and_no_folder_that_holds_files_of_others(tmp_path: Path) -> None:
    folder, mine = tmp_path / "out", tmp_path / "out" / "scores.csv"
    check_folder(folder, ["scores.csv"])
    write_atomic(mine, "mine")
    (tmp_path / "link").symlink_to(mine)
    with recording_inputs() as noted:
        read_bytes(tmp_path / "link")
        with pytest.raises(
            UsageError, match=r"scores.csv is an input of this command \(.*link\) and is never replaced"
        ):
            write_atomic(mine, "lost")
    assert (mine.read_text(), [*noted]) == ("mine", [tmp_path / "link"])
    write_atomic(folder / "more.csv", "")
    with pytest.raises(UsageError, match=r"scores.csv and 1 more would be replaced, and .*out does not hold results"):
        check_folder(folder, ["scores.csv", "none.csv", "more.csv"])
    with pytest.raises(UsageError, match=r"scores.csv would be replaced"):
        check_folder(folder, ["scores.csv"])
    with pytest.raises(UsageError, match="is a file; the results need a folder"):
        check_folder(mine / "below", [])
    write_atomic(folder / "manifest.json", '{\n "judgekit": "0.2"}')
    check_folder(folder, ["scores.csv"])


@pytest.mark.skipif(os.name != "posix", reason="asks for a process")
def test_what_a_killed_process_left_goes_with_the_next_file_of_that_name(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from judgekit.data.streams import open_atomic\n"
        "with open_atomic(Path(sys.argv[1])) as stream: stream.write(b'half'); stream.flush(); os.kill(os.getpid(), 9)"
    )
    for name in ("a[1].csv", "other.csv"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=False)
    one, other = sorted(tmp_path.iterdir())
    assert one.name.startswith(".a[1].csv.")
    mine, elsewhere = ".a[1].csv.notes.tmp", f".a[1].csv.00000000-{2**22 - 1}-00000000.tmp"
    living = one.name.replace(one.name.split("-")[1], str(os.getpid()))
    for kept in (mine, elsewhere, living):
        (tmp_path / kept).write_text("kept")
    write_atomic(tmp_path / "a[1].csv", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a[1].csv", other.name, mine, elsewhere, living}
