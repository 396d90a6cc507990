"""The store: text only, nothing lost, nothing executed, damage noticed."""

import gzip
import io
import json
import os
import pickle
import random
import shutil
import sqlite3
import stat
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import diskcache
import pytest
from hypothesis import given, strategies as st

from judgekit.errors import StoreError
from judgekit.store.claims import Claims
from judgekit.store.maintenance import export_store, find, verify
from judgekit.store.records import Record, looked_up
from judgekit.store.replies import Store, default_store_path
from judgekit.store.rows import SETTINGS, TextCache, connect
from judgekit.wire.types import identity
from tests.store.filling import fill, read, record, write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    with closing(Store(tmp_path)) as empty:
        yield empty


def as_judgekit_0_1_stored_them(path: Path, records: list[Record]) -> None:
    """Make a store of JSON texts, in pages of the usual size."""
    with closing(diskcache.Cache(str(path))) as cache, cache.transact():
        for one in records:
            cache.add(one.key, in_two_lines(one).decode())


def test_a_store_that_judgekit_0_1_made_is_read_and_added_to(tmp_path):
    old, new = [record(n) for n in range(600)], [record(n) for n in range(500, 1200)]
    as_judgekit_0_1_stored_them(tmp_path, old)
    assert read(tmp_path, old, readonly=True) == old
    with closing(Store(tmp_path)) as store:
        assert len(store.put_many(new)) == 100
        assert verify(store).ok
        assert len(find(store).replies) == 1200
        store.forget([old[0].key])
        store.compact()
        store.recover("malformed, says the test")
    assert read(tmp_path, [*old, *new[100:]]) == [*old[1:], *new[100:]]


def test_a_reply_takes_half_the_room_that_it_took_as_text(tmp_path):
    passage = " ".join(f"The capital of country {n} was founded in {1000 + n}." for n in range(20))
    bodies = [f'{{"messages":[{{"content":"{passage} {n}","role":"user"}}],"model":"m"}}' for n in range(2000)]
    reply = '{"choices":[{"message":{"content":"Yes"}}]}'
    rows = [Record(identity("e", 0, body.encode()), "e", 0, body, None, reply, (300, 1), 1.5) for body in bodies]
    as_judgekit_0_1_stored_them(tmp_path / "old", rows)
    with closing(Store(tmp_path / "new")) as store:
        store.put_many(rows)
    old, new = ((tmp_path / name / "cache.db").stat().st_size for name in ("old", "new"))
    assert new < old / 2
    assert read(tmp_path / "new", rows) == rows


@given(
    st.text(),
    st.integers(0, 99),
    st.none() | st.text(),
    st.text() | st.text(min_size=1).map(lambda text: text * 1500),
    st.none() | st.tuples(*[st.integers(0, 2**53)] * 2),
    st.none() | st.floats(0, 1e9),
)
def test_every_record_parses_back(body, sample, sent, reply, usage, seconds):
    whole = Record(identity("e", sample, body.encode()), "e", sample, body, sent, reply, usage, 0.25, seconds)
    values = (whole.stored(), with_zlib(whole), whole.text().encode(), in_two_lines(whole))
    for value in values:
        assert Record.parse(value) == whole
        assert looked_up(value, whole.key) == (reply.encode(), seconds, 0.25)
        with pytest.raises(ValueError, match=r"checksum|another key"):
            looked_up(value, "another key")


def with_reasons(size: int) -> Record:
    """Return a record whose reply has so many bytes, most of them thinking."""
    steps = " ".join(f"Step {n}: city {n * n} was founded in {1000 + 7 * n}, so I compare both." for n in range(size))
    begun, end = '{"choices":[{"message":{"content":"Yes","reasoning":"', '"},"finish_reason":"stop"}]}'
    reply = begun + steps[: size - len(begun) - len(end)] + end
    return Record(identity("e", 0, b"{}"), "e", 0, "{}", None, reply, None, 1.0)


@pytest.mark.parametrize(("size", "most"), [(1024, 0.5), (8192, 0.4)])
def test_a_long_reply_is_stored_compressed_and_comes_back_as_it_came(store, size, most):
    whole = with_reasons(size)
    assert whole.reply is not None
    assert len(whole.reply) == size
    assert len(whole.stored()) < most * size
    store.put_many([whole])
    assert store.get_many([whole.key])[whole.key].raw == whole.reply


def test_a_short_reply_is_stored_as_it_is():
    whole = with_reasons(1023)
    assert whole.reply is not None
    assert whole.reply.encode() in whole.stored()


def test_a_changed_or_lost_byte_of_a_compressed_reply_is_noticed():
    whole = with_reasons(3000)
    value = whole.stored()
    head, _, rest = value.partition(b"\n")
    begun, length = len(head) + 1, json.loads(head)["reply"]
    spoilt = [value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :] for place in range(begun, begun + length)]
    shorter = json.dumps({**json.loads(head), "reply": length - 1}).encode()
    spoilt.append(shorter + b"\n" + rest[: length - 1] + rest[length:])
    # One byte of the head of what zstd compressed only says how it was made.
    taken = [other for other in spoilt if _is_taken(other, whole)]
    assert len(taken) <= 1


def _is_taken(value: bytes, whole: Record) -> bool:
    try:
        reply, *_ = looked_up(value, whole.key)
    except ValueError:
        return False
    assert whole.reply is not None
    assert reply == whole.reply.encode()
    return True


def with_zlib(record: Record) -> bytes:
    """Return a record as judgekit stored it before it used zstd."""
    packed = record.stored()
    rest = json.dumps([record.endpoint, record.sample, record.body, record.sent]).encode()
    return packed[: packed.rindex(b"\x28\xb5\x2f\xfd")] + zlib.compress(rest, 1)


def in_two_lines(record: Record) -> bytes:
    """Return a record as judgekit 0.1 stored it: JSON text, of which a look-up needs the first line."""
    return record.text().replace(',"endpoint":', ',\n"endpoint":', 1).encode()


def test_a_record_without_seconds_as_judgekit_0_1_stored_it_is_read(tmp_path):
    text = record(1).text().replace('"seconds":null,', "")
    assert "seconds" not in text
    assert Record.parse(text) == record(1)
    fill(tmp_path, range(2))
    write(tmp_path, "UPDATE Cache SET value = ? WHERE key = ?", text, record(1).key)
    with closing(Store(tmp_path)) as store:
        assert store.get_many([record(1).key])[record(1).key].seconds is None


@pytest.mark.parametrize("seconds", ["-1", '"12"', "[1]"])
def test_seconds_that_are_no_length_of_time_are_damage(tmp_path, seconds):
    text = record(1).text().replace('"seconds":null', f'"seconds":{seconds}')
    with pytest.raises(ValueError, match="not a stored reply"):
        Record.parse(text)
    fill(tmp_path, range(2))
    write(tmp_path, "UPDATE Cache SET value = ? WHERE key = ?", text, record(1).key)
    assert read(tmp_path, [record(0), record(1)]) == [record(0)]


@pytest.mark.parametrize(
    "change", [("Yes", "Yex"), ("user", "usor"), ('"sample":0', '"sample":1'), ('"version":1', '"version":2')]
)
def test_a_changed_record_is_noticed(change):
    body = '{"messages":[{"content":"user"}]}'
    text = Record(identity("e", 0, body.encode()), "e", 0, body, None, "Yes", None, 1.0).text()
    with pytest.raises(ValueError, match=r"checksum|identity|version"):
        Record.parse(text.replace(*change, 1))


def test_nothing_is_dropped_beyond_the_size_limit(tmp_path):
    Store(tmp_path).close()
    with closing(diskcache.Cache(str(tmp_path))) as cache:
        assert (cache.eviction_policy, cache.size_limit, cache.cull_limit) == ("none", 2**62, 0)
        cache.reset("size_limit", 4096)
        cache.reset("cull_limit", 10)
        cache.set("further", "text")
    records = fill(tmp_path, range(3000))
    assert read(tmp_path, records) == records


class _Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (os.environ["BOMB"],))


CRAFTED_ROWS = {
    "a pickled value": ("mode = 4, value = ?", True),
    "a pickled value called raw": ("value = ?", True),
    "a pickled value in a file": ("mode = 4, value = NULL, filename = ?", False),
    "text in a file": ("mode = 3, value = NULL, filename = ?", False),
    "bytes in a file": ("mode = 2, value = NULL, filename = ?", False),
    "a reply that names a file": ("filename = ?", False),
}


@pytest.mark.parametrize("kind", CRAFTED_ROWS)
def test_a_crafted_row_is_refused_and_runs_reads_and_deletes_nothing(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("BOMB", str(tmp_path / "exploded"))
    (tmp_path / "victim").write_bytes(pickle.dumps(_Bomb()))
    folder, records = tmp_path / "store", fill(tmp_path / "store", range(3))
    change, pickled = CRAFTED_ROWS[kind]
    crafted = (tmp_path / "victim").read_bytes() if pickled else "../victim"
    write(folder, f"UPDATE Cache SET {change} WHERE key = ?", crafted, records[0].key)
    write(folder, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 0, 1, 'x')", pickle.dumps(_Bomb()))
    with closing(connect(folder / "cache.db", "mode=rw")) as connection:
        cache = TextCache(folder, connection)
        if kind == "a pickled value called raw":
            assert cache.get(records[0].key) == crafted
        else:
            with pytest.raises(ValueError, match="neither text nor bytes"):
                cache.get(records[0].key)
    assert read(folder, records) == records[1:]
    with closing(Store(folder)) as store:
        store.put_many(records)
        assert len(store.get_many([r.key for r in records])) == 3
    assert not (tmp_path / "exploded").exists()
    assert (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((name, 7) for name in ("get", "add", "transact", "_disk", "disk_directory", "sqlite_writable_schema")),
        *((b"count", 7), ("Count", 7), ("sqlite_journal_mode = delete --", "x")),
    ],
)
def test_a_setting_that_is_not_ours_is_refused_before_diskcache_takes_it(tmp_path, monkeypatch, key, value):
    records, notes = fill(tmp_path, range(30)), list[str]()
    write(tmp_path, "INSERT INTO Settings VALUES (?, ?)", key, value)
    taken: list[str] = []
    real = diskcache.Cache.reset
    monkeypatch.setattr(
        diskcache.Cache, "reset", lambda self, key, *rest, **more: taken.append(key) or real(self, key, *rest, **more)
    )
    with closing(Store(tmp_path, note=notes.append)) as store:
        assert len(store.get_many([r.key for r in records])) == 30
        assert store.put_many(records)
    assert "settings in it are not judgekit's" in notes[0]
    assert "it held 30 rows; 30 were saved, 0 are lost" in notes[0]
    assert key not in taken


@pytest.mark.parametrize(
    "setting", ["cull_limit", "size_limit", "eviction_policy", "sqlite_journal_mode", "disk_min_file_size"]
)
def test_a_value_of_a_setting_is_never_taken_from_the_file(tmp_path, setting):
    records = fill(tmp_path, range(3))
    write(tmp_path, "UPDATE Settings SET value = 'delete; DROP TABLE Cache' WHERE key = ?", setting)
    notes: list[str] = []
    assert read(tmp_path, records, note=notes.append) == records
    assert not notes
    with closing(sqlite3.connect(tmp_path / "cache.db")) as rows:
        (value,) = rows.execute("SELECT value FROM Settings WHERE key = ?", (setting,)).fetchone()
    assert value == SETTINGS[setting]


def test_only_texts_and_bytes_are_stored(tmp_path):
    Store(tmp_path).close()
    with closing(connect(tmp_path / "cache.db", "mode=rw")) as connection:
        cache = TextCache(tmp_path, connection)
        for key, value in (("a", 7), ("a", None), ("a", ["x"]), (7, "x"), (("a",), "x")):
            with pytest.raises(TypeError, match="is a text"):
                cache.set(key, value)
        with pytest.raises(TypeError, match="is a text"):
            cache.set("a", io.BytesIO(b"x"), read=True)


def test_a_store_of_an_earlier_version_is_read(tmp_path):
    for version in ("0.2.0.dev0", "0.2.0"):
        (tmp_path / version).mkdir()
        packed = (Path(__file__).with_name("stores") / f"{version}.db.gz").read_bytes()
        (tmp_path / version / "cache.db").write_bytes(gzip.decompress(packed))
        records, notes = [record(number) for number in range(40)], list[str]()
        assert read(tmp_path / version, records, readonly=True, note=notes.append) == records
        assert read(tmp_path / version, records, note=notes.append) == records
        assert notes == []


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("kind", ["header", "cut off", "garbage", "empty", "settings", "folder"])
def test_every_connection_is_closed_whatever_goes_wrong(tmp_path, monkeypatch, kind, readonly):
    fill(tmp_path, range(100))
    if kind == "settings":
        write(tmp_path, "UPDATE Settings SET value = CAST(? AS TEXT)", NOT_UTF8)
    elif kind in ("garbage", "empty"):
        (tmp_path / "cache.db").write_bytes(random.Random(1).randbytes(50_000) if kind == "garbage" else b"")
    elif kind == "folder":
        (tmp_path / "cache.db").unlink()
        (tmp_path / "cache.db").mkdir()
    else:
        damage(tmp_path / "cache.db", kind)
    opened: list[sqlite3.Connection] = []
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: opened.append(real(*args, **more)) or opened[-1])
    with suppress(StoreError), closing(Store(tmp_path, readonly=readonly)) as store:
        store.get_many([record(1).key])
        list(store.texts())
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_a_reply_that_is_there_stays(store):
    first = record(1)
    other = replace(first, reply='{"choices":[{"message":{}}]}')
    assert store.put_many([first]) == {}
    assert store.put_many([other])[first.key].raw == store.get_many([first.key])[first.key].raw == first.reply


def test_errors_that_were_stored_as_replies_are_asked_for_again_and_replaced(tmp_path):
    good = record(1)
    error = replace(good, reply='{"error":{"message":"busy"},"choices":[{"message":{"content":"Yes"}}]}')
    notes: list[str] = []
    with closing(Store(tmp_path, note=notes.append)) as store:
        store.put_many([error])
        assert store.get_many([good.key]) == {}
        assert "asked for again" in notes[0]
        assert [problem for _, problem in verify(store).damaged] == [
            "its reply is not a chat completion: an error in it: busy"
        ]
        store.put_many([good])
        assert store.get_many([good.key])[good.key].raw == good.reply


def damage(path: Path, kind: str) -> bytes:
    """Damage a file; return what it holds then."""
    data, rng = bytearray(path.read_bytes()), random.Random(kind)
    middle = len(data) // 2 // 8192 * 8192
    if kind == "cut off":
        del data[middle:]
    else:
        at, size = {"header": (0, 100), "middle": (middle, 8192)}[kind]
        data[at : at + size] = rng.randbytes(size)
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize(
    ("kind", "size", "least"),
    [
        ("header", 300, 400),
        ("middle", 30_000, 385),
        ("cut off", 30_000, 150),
    ],
)
def test_a_damaged_file_is_moved_aside_its_whole_rows_are_saved_and_the_others_are_counted(tmp_path, kind, size, least):
    records = fill(tmp_path, range(400), size)
    damaged = damage(tmp_path / "cache.db", kind)
    notes: list[str] = []
    kept = read(tmp_path, records, note=notes.append)
    assert len(kept) >= least
    assert "was damaged" in notes[0]
    assert f"it held 400 rows; {len(kept)} were saved" in notes[0]
    assert f"saved, {400 - len(kept)} are lost" in notes[0]
    (moved,) = tmp_path.glob("damaged-*/cache.db")
    assert moved.read_bytes() == damaged or kind != "header"
    fill(tmp_path, range(400), size)
    assert read(tmp_path, records) == records


def test_rows_are_saved_whose_numbers_have_gaps_and_records_that_wait(tmp_path):
    records = fill(tmp_path, range(600))
    with closing(Store(tmp_path)) as store:
        store.put_many([replace(record(n), reply=None) for n in range(1000, 1100)])
        store.forget([r.key for r in records[:300]])
        store.recover("malformed, says the test")
        assert store.count() == 300
        assert store.count(waiting=True) == 100
    assert read(tmp_path, records) == records[300:]


def test_what_is_saved_of_an_old_file_replaces_no_reply_that_came_since(tmp_path):
    old = fill(tmp_path / "old", range(3))
    newer = replace(old[1], reply='{"choices":[{"message":{"content":"newer"}}]}')
    with closing(Store(tmp_path / "store")) as store:
        store.put_many([newer])
    shutil.copytree(tmp_path / "old", tmp_path / "store" / "recovering-1")
    assert read(tmp_path / "store", [old[0], newer, old[2]]) == [old[0], newer, old[2]]


NOT_UTF8 = "Passage confidentielle: l'\u00e9t\u00e9".encode("latin-1")


ODD_VALUES = {
    "text that is not UTF-8": "CAST(x'7BE9E97D' AS TEXT)",
    "a whole record that is not UTF-8": "CAST(x'7BE9' || substr(CAST(value AS BLOB), 2) AS TEXT)",
    "bytes": "x'00FFE9'",
    "nothing": "NULL",
    "a number": "3.5",
    "an empty text": "''",
    "a long text": "replace(hex(zeroblob(3000000)), '0', 'e')",
    "another text": "replace(value, 'é 2', 'é 3')",
    "its beginning": "substr(value, 1, 50)",
}


@pytest.mark.parametrize("kind", ODD_VALUES)
def test_a_row_with_an_odd_value_is_asked_for_again_and_locks_no_other(tmp_path, kind):
    records = fill(tmp_path, range(5))
    write(tmp_path, f"UPDATE Cache SET value = {ODD_VALUES[kind]} WHERE key = ?", records[2].key)
    for readonly in (True, False):
        notes: list[str] = []
        assert read(tmp_path, records, readonly=readonly, note=notes.append) == [records[i] for i in (0, 1, 3, 4)]
        assert notes == [f"the store {tmp_path} holds damaged replies or errors; they are asked for again"]
    with closing(Store(tmp_path)) as store:
        assert export_store(store, tmp_path / "elsewhere" / "replies.jsonl") == (4, 1)
        assert (len(find(store).replies), find(store).damaged) == (4, 1)
        assert [key for key, _ in verify(store, repair=True).damaged] == [records[2].key]
        assert verify(store).ok
        store.put_many(records)
    assert read(tmp_path, records) == records


@pytest.mark.parametrize("column", ["store_time = NULL", "mode = 4", "mode = NULL", "access_time = 'x'"])
def test_a_reply_is_stored_in_the_place_of_a_damaged_row(tmp_path, column):
    records = fill(tmp_path, range(3))
    write(tmp_path, f"UPDATE Cache SET value = 'x', {column} WHERE key = ?", records[1].key)
    fill(tmp_path, range(3))
    assert read(tmp_path, records) == records


@pytest.mark.parametrize("first", [b"", b"\xff", b"a\xe9", b"\xc3\x28"])
def test_a_key_that_is_not_utf8_is_found_told_and_deleted(tmp_path, first):
    records = fill(tmp_path, range(5))
    name = first + records[2].key.encode()[len(first) + (not first) :] + b"\xe9" * (not first)
    write(tmp_path, "UPDATE Cache SET key = CAST(? AS TEXT) WHERE key = ?", name, records[2].key)
    with closing(Store(tmp_path)) as store:
        assert find(store).damaged == 1
        ((shown, problem),) = verify(store, repair=True).damaged
        assert "\\x" in shown or "\\udc" in shown
        assert shown.isascii()
        assert problem == "it is stored under another key"
        assert verify(store).ok


def test_keys_of_other_types_and_settings_that_are_not_utf8_lock_nothing(tmp_path):
    records = fill(tmp_path, range(3))
    for key in (b"\xe9" * 64, 7, None, 2.5):
        write(tmp_path, "INSERT INTO Cache (key, raw, mode, value) VALUES (?, 1, 1, ?)", key, NOT_UTF8)
    write(tmp_path, "UPDATE Settings SET value = CAST(? AS TEXT)", NOT_UTF8)
    assert read(tmp_path, records, readonly=True) == records
    with closing(Store(tmp_path)) as store:
        assert (len(find(store).replies), find(store).damaged) == (3, 0)
        assert verify(store).ok
    assert read(tmp_path, records) == records


def test_a_damaged_row_that_waits_for_a_batch_is_exported_again(store):
    waiting = [replace(record(n), reply=None) for n in range(3)]
    store.put_many(waiting)
    write(store.path, "UPDATE Cache SET value = CAST(? AS TEXT) WHERE key = ?", NOT_UTF8, f"batch:{waiting[1].key}")
    assert set(store.waiting([r.key for r in waiting])) == {waiting[0].key, waiting[2].key}


def test_notes_of_what_was_submitted_are_replaced_and_deleted_by_name(store):
    for name, text in (("a", "one"), ("b", "two"), ("a", "three")):
        store.note_submission(name, text)
    assert store.submissions() == [b"three", b"two"]
    store.forget_submission("a")
    assert (store.submissions(), store.count()) == ([b"two"], 0)


def rights(path: Path) -> dict[str, int]:
    """Return the rights of a folder and of all that lies in it, whatever their names."""
    names = {str(p.relative_to(path)): p for p in (path, *path.rglob("*"))}
    return {name: stat.S_IMODE(p.stat().st_mode) for name, p in names.items()}


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_a_store_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "new" / "store"
    with closing(Store(path)) as store:
        store.put_many([record(1)])
        assert rights(path) == {".": 0o700, "cache.db": 0o600, "cache.db-wal": 0o600, "cache.db-shm": 0o600} | {
            "cache.db-count": 0o600,
            "cache.db-lock": 0o600,
        }
    damage(path / "cache.db", "header")
    fill(path, range(3))
    found = rights(path)
    assert len(found) >= 4
    assert all(mode == (0o600 if "cache.db" in name else 0o700) for name, mode in found.items()), found


def test_a_store_that_its_owner_opened_to_a_group_stays_open(tmp_path):
    Store(tmp_path / "store").close()
    (tmp_path / "store").chmod(0o770)
    (tmp_path / "store" / "cache.db").chmod(0o660)
    with closing(Store(tmp_path / "store")) as store:
        store.put_many([record(1)])
        files = {f"cache.db{end}": 0o660 for end in ("", "-wal", "-shm", "-count", "-lock")}
        assert rights(tmp_path / "store") == {".": 0o770} | files


@pytest.fixture
def claims(tmp_path: Path) -> Iterator[tuple[Claims, Claims]]:
    with closing(Store(tmp_path)) as one, closing(Store(tmp_path)) as other:
        yield Claims(one), Claims(other)


def test_a_claim_is_one_processs_until_it_is_given_back_or_silent(claims, monkeypatch):
    mine, theirs = claims
    assert mine.take(["a", "b"]) == mine.take(["a", "b"]) == {"a", "b"}
    assert theirs.take(["a", "b", "c"]) == {"c"}
    mine.end("a")
    mine.beat()
    assert theirs.take(["a", "b"]) == {"a"}
    mine.close()
    assert theirs.take(["b"]) == {"b"}
    now = time.time()
    for later, taken in ((19, set()), (21, {"b"})):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        assert mine.take(["b"]) == taken


def test_a_process_that_beats_keeps_its_claims(claims, monkeypatch):
    (mine, theirs), now = claims, time.time()
    mine.take(["a"])
    monkeypatch.setattr(time, "time", lambda: now + 15)
    mine.beat()
    monkeypatch.setattr(time, "time", lambda: now + 30)
    assert theirs.take(["a"]) == set()


def test_a_process_follows_when_another_one_moved_the_file_aside(tmp_path):
    with closing(Store(tmp_path)) as one, closing(Store(tmp_path)) as other:
        other.put_many([record(1)])
        one.recover("malformed, says the test")
        other.put_many([record(2)])
        assert len(one.get_many([record(1).key, record(2).key])) == 2


def test_a_store_that_was_deleted_meanwhile_is_made_again(tmp_path):
    with closing(Store(tmp_path / "s")) as store:
        store.put_many([record(1)])
        shutil.rmtree(tmp_path / "s")
        store.put_many([record(2)])
        assert set(store.get_many([record(1).key, record(2).key])) == {record(2).key}


def test_reading_only_changes_nothing(tmp_path):
    records = fill(tmp_path, range(10))
    before = (tmp_path / "cache.db").stat()
    time.sleep(0.01)
    with closing(Store(tmp_path, readonly=True)) as store:
        assert len(store.get_many([r.key for r in records])) == 10
        with pytest.raises(StoreError, match="reading only"):
            store.put_many(records)
    after = (tmp_path / "cache.db").stat()
    assert (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size)


def test_a_reader_says_nothing_of_what_another_one_stores(store):
    store.put_many([record(1)])
    notes: list[str] = []
    assert read(store.path, [record(1)], readonly=True, note=notes.append) == [record(1)]
    assert notes == []


def test_a_store_that_is_not_there_or_a_file_is_a_sentence(tmp_path):
    with pytest.raises(StoreError, match="no store"):
        Store(tmp_path / "nowhere", readonly=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be"):
        Store(tmp_path / "file")


def test_the_store_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("JUDGEKIT_CACHE", str(tmp_path))
    assert default_store_path() == tmp_path
    monkeypatch.delenv("JUDGEKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    if sys.platform.startswith("linux"):
        assert default_store_path() == tmp_path / "x" / "judgekit"
