"""Damaged stores: what can be read is saved once, the rest is counted, and nothing goes round in circles."""

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.errors import StoreError
from judgekit.store.maintenance import verify
from judgekit.store.replies import Store
from tests.store.filling import at_most, fill, record

ROWS = 1200
PAGE = 8192


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store with 1,200 rows."""
    folder = tmp_path_factory.mktemp("whole")
    fill(folder, range(ROWS))
    return (folder / "cache.db").read_bytes()


def opened(folder: Path, database: bytes) -> tuple[int, str]:
    """Open a store of these bytes, repair what is wrong with it, and return how many rows it holds and what it said."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "cache.db").write_bytes(database)
    notes: list[str] = []
    with at_most(10), closing(Store(folder, note=notes.append)) as store:
        verify(store, repair=True)
        assert store.check() == "ok"
        assert not list(folder.glob("recovering-*"))
        return store.count(), " ".join(notes)


def accounted(rows: int, notes: str) -> bool:
    """Whether what the store said accounts for all rows."""
    if counts := re.search(r"it held ([\d,]+) rows; ([\d,]+) were saved, ([\d,]+) are lost", notes):
        held, saved, gone = (int(count.replace(",", "")) for count in counts.groups())
        return (held, saved, gone) == (ROWS, rows, ROWS - rows)
    if known := re.search(r"([\d,]+) rows were saved; any others", notes):
        return int(known[1].replace(",", "")) == rows
    return rows == ROWS and not notes


@pytest.mark.parametrize("part", range(3))
def test_a_file_that_was_cut_off_anywhere_keeps_its_rows_and_counts_those_that_are_gone(tmp_path, whole, part):
    rng = random.Random(part)
    for share in [1 - part / 50, *(rng.random() for _ in range(4))]:
        length = int(share * len(whole))
        rows, notes = opened(tmp_path / "store", whole[:length])
        assert accounted(rows, notes), (length, rows, notes)
        assert rows >= share * ROWS - 70  # the first pages hold tables
    rows, notes = opened(tmp_path / "store", whole[: part * PAGE])
    assert "number is unknown" in notes
    assert accounted(rows, notes)


@pytest.mark.parametrize("part", range(3))
def test_blocks_that_were_overwritten_take_their_own_rows_only(tmp_path, whole, part):
    rng = random.Random(part)
    for _ in range(4):
        data, blocks = bytearray(whole), rng.choice([1, 1, 2, 5])
        leaves = [at for at in range(PAGE, len(data), PAGE) if data[at] in (0x0A, 0x0D)]
        for at in rng.sample(leaves, blocks):
            data[at : at + PAGE] = rng.randbytes(PAGE)
        rows, notes = opened(tmp_path / "store", bytes(data))
        assert accounted(rows, notes), (rows, notes)
        assert rows >= ROWS - 60 * blocks


@pytest.mark.parametrize("database", [b"", bytes(50_000), random.Random(1).randbytes(50_000)], ids=len)
def test_a_file_that_holds_nothing_is_told(tmp_path, database):
    rows, notes = opened(tmp_path / "store", database)
    assert rows == 0
    assert "0 rows were saved; any others are lost" in notes
    assert "asks and pays again" in notes


def test_what_another_process_stores_at_this_moment_is_no_damage(tmp_path):
    code = (
        "import sys; from tests.store.filling import *; store = Store(sys.argv[1]); n = 0\n"
        "while True: store.put_many([record(n)]); n += 1"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "store")]) as other:
        try:
            while not (tmp_path / "store/cache.db-wal").exists():
                assert other.poll() is None
            notes: list[str] = []
            for _ in range(10):
                with closing(Store(tmp_path / "store", note=notes.append)) as store:
                    assert store.check() == "ok"
            assert not notes
        finally:
            other.kill()


def test_to_look_for_damage_keeps_the_locks_of_this_process(tmp_path):
    code = "import sys; from judgekit.store.replies import Store; Store(sys.argv[1]).close()"
    with closing(Store(tmp_path)) as store:
        store.put_many([record(number) for number in range(50)])
        with closing(Store(tmp_path)) as second:
            assert second.check() == "ok"
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        # Without locks the other process would be the last one, which deletes both.
        assert (tmp_path / "cache.db-wal").stat().st_size > 0
        assert (tmp_path / "cache.db-shm").stat().st_size > 0


@pytest.mark.parametrize(("share", "said"), [(0.5, r"is damaged \("), (0, r"is damaged \(no such table: Settings\)")])
def test_a_reader_says_how_to_save_what_is_left(tmp_path, whole, share, said):
    (tmp_path / "cache.db").write_bytes(whole[: int(share * len(whole))])
    with at_most(10), pytest.raises(StoreError, match=f"{said}.*cache --repair"):
        list(Store(tmp_path, readonly=True).texts())


@pytest.mark.parametrize("seed", range(4))
def test_an_index_whose_pages_are_out_of_order_is_damage(tmp_path, whole, seed):
    data, rng = bytearray(whole), random.Random(seed)
    leaves = [at for at in range(0, len(data), PAGE) if data[at] == 0x0A and data[at + 3 : at + 5] > b"\0\x20"]
    for _ in range(4):
        one, other = rng.sample(leaves, 2)
        data[one : one + PAGE], data[other : other + PAGE] = data[other : other + PAGE], data[one : one + PAGE]
    rows, notes = opened(tmp_path / "store", bytes(data))
    assert notes
    assert (rows, accounted(rows, notes)) == (ROWS, True)


def test_a_recovery_that_was_interrupted_is_finished_by_the_next_process(tmp_path, whole, monkeypatch):
    (tmp_path / "cache.db").write_bytes(whole[: len(whole) // 2])
    real = Store.written
    calls: list[int] = []

    def full(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise sqlite3.OperationalError("database or disk is full")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Store, "written", full)
    with pytest.raises(StoreError, match=r"the disk of the store .* is full\. All replies stored so far are kept"):
        list(Store(tmp_path).texts())
    monkeypatch.undo()
    notes: list[str] = []
    with closing(Store(tmp_path, note=notes.append)) as store:
        assert f"it held 1,200 rows; {store.count()} were saved" in notes[0]
        assert store.count() > 500
        assert store.get_many([record(0).key])


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_two_processes_that_begin_a_store_at_once_have_the_same(tmp_path):
    code = "import sys; from tests.store.filling import *; fill(sys.argv[1], [int(sys.argv[2])])"
    children = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s"), str(n)]) for n in range(3)]
    assert [child.wait(30) for child in children] == [0] * 3
    with closing(Store(tmp_path / "s")) as store:
        assert store.count() == 3
    assert not list((tmp_path / "s").glob("new-*"))


def test_a_list_of_tables_that_is_no_text_is_damage(whole, tmp_path):
    database = whole.replace(b"CREATE TABLE", b"CREATE \x8bABLE", 1)
    (tmp_path / "cache.db").write_bytes(database)
    with pytest.raises(StoreError, match=r"is damaged \(.*cache --repair"):
        Store(tmp_path, readonly=True)
    rows, notes = opened(tmp_path / "again", database)
    assert accounted(rows, notes)
    assert list((tmp_path / "again").glob("damaged-*/cache.db"))


def test_an_index_that_lacks_rows_is_damage(whole, tmp_path):
    (tmp_path / "cache.db").write_bytes(whole)
    with closing(sqlite3.connect(tmp_path / "cache.db")) as rows:
        query = "SELECT rootpage FROM sqlite_master WHERE name IN ('Cache_key_raw', 'Cache_expire_time') ORDER BY name"
        (empty,), (index,) = rows.execute(query)
    data = bytearray(whole)
    data[(index - 1) * PAGE : index * PAGE] = whole[(empty - 1) * PAGE : empty * PAGE]
    rows_left, notes = opened(tmp_path / "again", bytes(data))
    assert "its index is malformed" in notes
    assert accounted(rows_left, notes)
    assert rows_left == ROWS


def test_a_key_that_the_index_spells_otherwise_is_damage(tmp_path):
    asked = fill(tmp_path, range(30))
    data = bytearray((tmp_path / "cache.db").read_bytes())
    key = asked[7].key.encode()
    page = next(at for at in range(0, len(data), PAGE) if data[at] == 0x0A and key in data[at : at + PAGE])
    data[data.index(key, page) + 20] = ord("`")
    (tmp_path / "cache.db").write_bytes(data)
    notes: list[str] = []
    with closing(Store(tmp_path, note=notes.append)) as store:
        assert len(store.get_many([one.key for one in asked])) == 30
    assert "its index is malformed" in " ".join(notes)
