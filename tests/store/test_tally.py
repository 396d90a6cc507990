"""The count of stored rows outside of SQLite: no false alarm, whoever is killed when; and files that are no stores."""

import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import diskcache
import pytest

from judgekit.errors import StoreError
from judgekit.store.maintenance import export_store, find, forget, import_store, verify
from judgekit.store.replies import Store
from judgekit.store.tally import noted
from tests.store.filling import fill, read, record, write

LOG, COUNT = "cache.db-wal", "cache.db-count"


def notes_of(folder: Path, **options: bool) -> list[str]:
    """Return what the store says while it is opened."""
    notes: list[str] = []
    Store(folder, note=notes.append, **options).close()
    return notes


def ever(folder: Path) -> int:
    tally = noted(folder / "cache.db")
    assert tally is not None
    return tally.ever


def test_rows_that_are_gone_with_the_log_are_told_once_before_anything_is_asked(tmp_path):
    fill(tmp_path / "store", range(100))
    with closing(Store(tmp_path / "store")) as store:
        store.put_many([record(number) for number in range(100, 150)])
        shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=shutil.ignore_patterns(LOG, "*-shm"))
    for readonly in (True, False):
        (note,) = notes_of(tmp_path / "copy", readonly=readonly)
        assert "holds 100 rows, 50 fewer than were stored: its log (cache.db-wal) is lost" in note
        assert "asks and pays again" in note
    assert notes_of(tmp_path / "copy") == []
    assert notes_of(tmp_path / "store") == []


def test_what_is_forgotten_imported_or_exported_is_no_loss(tmp_path):
    records = fill(tmp_path / "one", range(40))
    with closing(Store(tmp_path / "one")) as store:
        export_store(store, tmp_path / "replies.jsonl")
        store.forget([one.key for one in records[:10]])
        assert (noted(tmp_path / "one" / "cache.db").rows, ever(tmp_path / "one")) == (30, 40)
        forget(store, find(store, model="m"))
        assert store.count() == 0
    assert notes_of(tmp_path / "one") == []
    with closing(Store(tmp_path / "one")) as store:
        assert import_store(store, tmp_path / "replies.jsonl") == (40, 0)
    assert ever(tmp_path / "one") == 80
    assert notes_of(tmp_path / "one") == []


def test_a_store_without_a_count_or_with_that_of_another_store_raises_no_alarm(tmp_path):
    fill(tmp_path / "large", range(100))
    fill(tmp_path / "small", range(10))
    (tmp_path / "small" / COUNT).unlink()
    assert notes_of(tmp_path / "small") == []
    shutil.copy(tmp_path / "large" / COUNT, tmp_path / "small" / COUNT)
    assert notes_of(tmp_path / "small") == []
    for text in (b"", b"\xff\xfe", b"1 2", b"x y z"):
        (tmp_path / "small" / COUNT).write_bytes(text)
        assert notes_of(tmp_path / "small") == []
    fill(tmp_path / "small", range(12))
    assert ever(tmp_path / "small") == 12


WRITER = """
import random, sys
from contextlib import closing
from judgekit.store.replies import Store
from tests.store.filling import record
path, first, counting = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "counting"
if not counting:  # as judgekit 0.3
    Store._note_tally = lambda self: None
number, rng = first, random.Random(first)
with closing(Store(path, note=lambda text: print("NOTE", text, flush=True))) as store:
    print("ready", flush=True)
    while True:
        store.put_many([record(n, 20) for n in range(number, number + 8)])
        number += 8
        if rng.random() < 0.1:
            store.forget([record(n, 20).key for n in range(number - 4, number)])
        if rng.random() < 0.01:
            store.compact()
"""


@pytest.mark.parametrize("rounds", [4, pytest.param(60, marks=pytest.mark.many)])
def test_killed_processes_raise_no_alarm_and_leave_at_most_a_batch_each_uncounted(tmp_path, rounds):
    rng = random.Random(rounds)
    for turn in range(rounds):
        kinds = ["counting"] * 3 if turn % 2 else ["counting", "other", "counting"]
        children = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path), str(10**7 * turn + 10**6 * place), kind],
                stdout=subprocess.PIPE,
                text=True,
            )
            for place, kind in enumerate(kinds)
        ]
        said = [child.stdout.readline() for child in children]
        shutil.copy(tmp_path / "cache.db", tmp_path / f"{rng.random()}.tmp")  # takes a moment of any length
        for child in children:
            child.kill()
        said += [line for child in children for line in child.communicate()[0].splitlines(keepends=True)]
        assert set(said) == {"ready\n"}
        # Killed between the first rows and the first count, they leave no count, which is no alarm either.
        counted = ever(tmp_path) if turn or noted(tmp_path / "cache.db") else 0
        assert notes_of(tmp_path) == []
        with closing(sqlite3.connect(tmp_path / "cache.db")) as rows:
            (stored,) = rows.execute("SELECT count(*) + (SELECT rows FROM Removed) FROM Cache").fetchone()
        assert counted <= stored
        if "other" not in kinds:
            assert stored - counted <= 8 * len(children)
    with closing(Store(tmp_path)) as store:
        assert verify(store).ok


def test_a_file_of_another_program_is_refused_and_stays_as_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / "cache.db")) as rows, rows:
        rows.execute("CREATE TABLE Bookmarks (url TEXT)")
        rows.execute("INSERT INTO Bookmarks VALUES ('http://example.org')")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(StoreError, match=r"belongs to another program and was not touched: name another folder"):
        Store(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_programs_diskcache_is_refused_and_stays_as_it_is(tmp_path):
    with closing(diskcache.Cache(str(tmp_path))) as cache:
        cache["thumbnail"] = {"width": 3}
    before = (tmp_path / "cache.db").read_bytes()
    with pytest.raises(StoreError, match="belongs to another program"):
        Store(tmp_path)
    assert (tmp_path / "cache.db").read_bytes() == before


ADDED = {
    "a trigger that deletes": "CREATE TRIGGER t AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
    "a trigger of a known name": "CREATE TRIGGER Settings_count_more AFTER INSERT ON Cache FOR EACH ROW BEGIN"
    " UPDATE Cache SET value = 'x'; END",
    "a view": "CREATE VIEW v AS SELECT * FROM Cache",
    "a table": "CREATE TABLE Notes (text TEXT)",
}


@pytest.mark.parametrize("kind", ADDED)
def test_what_others_added_to_a_store_is_left_behind_and_said(tmp_path, kind):
    records = fill(tmp_path, range(20))
    write(tmp_path, ADDED[kind])
    with pytest.raises(StoreError, match=r"holds a trigger, view or table .* cache --repair"):
        Store(tmp_path, readonly=True)
    notes: list[str] = []
    with closing(Store(tmp_path, note=notes.append)) as store:
        store.put_many([record(number) for number in range(20, 30)])
    assert "it holds a trigger, view or table that is not a store's" in notes[0]
    assert "it held 20 rows; 20 were saved, 0 are lost" in notes[0]
    later = [record(number) for number in range(20, 30)]
    assert read(tmp_path, [*records, *later]) == [*records, *later]
    with closing(sqlite3.connect(next(tmp_path.glob("damaged-*/cache.db")))) as aside:
        assert aside.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('t', 'v', 'Notes')").fetchone() in (
            (1,),
            (0,),
        )


def test_tables_that_sqlite_adds_are_no_damage(tmp_path):
    fill(tmp_path, range(20))
    write(tmp_path, "ANALYZE")
    assert notes_of(tmp_path) == []


@pytest.mark.parametrize("mode", [0, 2, 3, 4])
def test_a_row_of_another_mode_is_noticed_and_saved_from_a_damaged_store(tmp_path, mode):
    records = fill(tmp_path, range(20))
    write(tmp_path, "UPDATE Cache SET mode = ? WHERE key = ?", mode, records[3].key)
    notes: list[str] = []
    with closing(Store(tmp_path, note=notes.append)) as store:
        assert len(store.get_many([one.key for one in records])) == 19
        assert "damaged replies or errors; they are asked for again" in notes[0]
        assert find(store).damaged == 1
        assert len(verify(store).damaged) == 1
        store.recover("malformed, says the test")
    assert read(tmp_path, records) == records


@pytest.mark.parametrize("size", [4096, 8192])
@pytest.mark.parametrize("byte", [0, 5, 16, 17, 18, 19, 20, 21, 23, 28, 31, 44, 47, 56, 59])
def test_every_constant_of_the_head_is_written_anew(tmp_path, byte, size):
    records = fill(tmp_path, range(60))
    if size == 4096:
        with closing(sqlite3.connect(tmp_path / "cache.db")) as rows:
            rows.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM")
    data = bytearray((tmp_path / "cache.db").read_bytes())
    data[byte] ^= 0xA5
    (tmp_path / "cache.db").write_bytes(data)
    (tmp_path / COUNT).unlink()
    assert read(tmp_path, records) == records


def test_a_recovery_that_was_killed_leaves_no_copy(tmp_path):
    records = fill(tmp_path, range(20))
    folder = tmp_path / "recovering-1"
    folder.mkdir()
    for name in ("cache.db", COUNT):
        (tmp_path / name).rename(folder / name)
    (folder / "copy-1").write_bytes(b"half of it")
    notes: list[str] = []
    assert read(tmp_path, records, note=notes.append) == records
    assert "it held 20 rows; 20 were saved, 0 are lost" in notes[0]
    assert {path.name for path in (tmp_path / "damaged-1").iterdir()} == {"cache.db", COUNT}
