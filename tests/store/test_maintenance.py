"""Looking into a store, moving it, and forgetting: what meets the conditions goes, with every trace of it."""

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from judgekit.client.batch.files import export_batch
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import DataError, UsageError
from judgekit.reading.prompts import neutral
from judgekit.store.maintenance import export_store, find, forget, holds, import_store, verify
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.store.rescue import SessionStore, rescue
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import Endpoint, chat, identity
from tests.programs import Ask, collect
from tests.scripted import ScriptedTransport, error
from tests.store import filling

HERE = Endpoint("here", "http://h/v1", "m")
UNITS = [f"unit {i:03}" for i in range(700)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled")
    transport = ScriptedTransport(
        lambda body: error(400, "unsupported", param="seed") if "seed" in body else body["messages"][0]["content"]
    )
    with Session(path, transports=lambda _: transport) as session:
        run_sync(collect(session, UNITS, Ask(HERE, temperature=0)))
        run_sync(collect(session, UNITS[:3], Ask(Endpoint("there", "http://t/v1", "n"), seed=1)))
    return path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "cache.db").write_bytes((filled / "cache.db").read_bytes())
    with closing(Store(tmp_path / "copy")) as copy:
        yield copy


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "empty")) as made:
        yield made


def test_stats_say_what_there_is(store, tmp_path):
    export_batch(store, ["new"], Ask(HERE), tmp_path / "b.jsonl")
    store.put_many([replace(filling.record(1, endpoint="http://u/v1"), usage=None)])
    found = find(store)
    assert (len(found.replies), len(found.waiting), found.damaged, found.aside) == (704, 1, 0, [])
    parts = {key: (p.answered.total(), p.prompt_tokens, p.completion_tokens) for key, p in found.parts.items()}
    assert parts == {
        ("http://h/v1", "m"): (700, 700, 1400),
        ("http://t/v1", "n"): (3, 3, 6),
        ("http://u/v1", "m"): (1, 0, 0),
    }
    assert sorted(part.replies for part in found.parts.values()) == [1, 3, 700]
    assert found.parts["http://u/v1", "m"].tokens == "tokens unknown: the server counted none"
    assert found.parts["http://h/v1", "m"].tokens == "700 prompt and 1,400 completion tokens"
    store.put_many([filling.record(2, endpoint="http://u/v1")])
    store.put_many([replace(filling.record(3, endpoint="http://u/v1"), usage=(0, 0))])
    known = find(store).parts["http://u/v1", "m"]
    assert known.tokens == "2 prompt and 1 completion tokens, those of 2 replies unknown"
    assert len(found.times) == 704


@pytest.mark.parametrize(
    ("endpoint", "model", "there"),
    [("http://h/v1", "m", True), ("http://h/v1", "n", False), ("http://t/v1", "m", False), ("http://t/v1", "n", True)],
)
def test_a_model_is_known_at_the_endpoint_that_replied(store, endpoint, model, there):
    assert holds(store, endpoint, model) == there


def test_verification_finds_and_repairs_damage(store):
    whole = verify(store)
    assert (whole.ok, whole.structure, whole.checked) == (True, "ok", 703)
    with closing(sqlite3.connect(store.path / "cache.db")) as rows:
        keys = [key for (key,) in rows.execute("SELECT key FROM Cache ORDER BY key LIMIT 3")]
    change = "UPDATE Cache SET value = {} WHERE key = ?"
    filling.write(store.path, change.format("replace(value, 'unit', 'Unit')"), keys[0])
    filling.write(store.path, change.format("'{}'"), keys[1])
    filling.write(store.path, change.format("(SELECT value FROM Cache WHERE key = ?)"), keys[0], keys[2])
    broken = verify(store, repair=True)
    assert not broken.ok
    assert [key for key, _ in broken.damaged] == keys
    assert verify(store).ok
    assert store.count() == 700


def test_what_is_exported_can_be_imported_elsewhere(store, empty, tmp_path):
    assert export_store(store, tmp_path / "all.jsonl.gz") == (703, 0)
    assert import_store(empty, tmp_path / "all.jsonl.gz") == (703, 0)
    assert import_store(empty, tmp_path / "all.jsonl.gz") == (0, 703)
    assert list(empty.texts()) == list(store.texts())


def test_what_another_process_stores_during_an_export_is_not_damaged(store, tmp_path, monkeypatch):
    """An export beside a run said that 13 whole replies were damaged and left out."""
    texts = store.texts
    monkeypatch.setattr(store, "texts", lambda **options: meanwhile(texts(**options)))

    def meanwhile(rows):
        yield from rows
        with closing(Store(store.path)) as other:
            other.put_many([filling.record(number) for number in range(13)])

    assert export_store(store, tmp_path / "all.jsonl") == (703, 0)
    assert store.count() == 716
    filling.write(store.path, "UPDATE Cache SET value = 'x' WHERE key = ?", filling.record(1).key)
    monkeypatch.undo()
    assert export_store(store, tmp_path / "more.jsonl") == (715, 1)


def test_a_bad_line_is_named_and_nothing_is_imported(store, empty, tmp_path):
    export_store(store, tmp_path / "all.jsonl")
    text = (tmp_path / "all.jsonl").read_text()
    changed = text.partition("\n")[0].replace("unit", "Unit")
    bad_lines = {"{}": "lacks 'version'", "[1]": "not a stored", "q1 Q0 d1 1": "not a stored", changed: "identity"}
    for bad, reason in bad_lines.items():
        (tmp_path / "bad.jsonl").write_text(f"{text}{bad}\n")
        with pytest.raises(DataError, match=reason) as caught:
            import_store(empty, tmp_path / "bad.jsonl")
        assert caught.value.line == 704
    assert empty.count() == 0


def test_what_a_session_cannot_store_is_in_the_store_of_the_next(tmp_path, monkeypatch):
    paid = filling.record(1)
    with monkeypatch.context() as broken, closing(SessionStore(tmp_path, print)) as stored:
        broken.setattr(Store, "put_many", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            stored.keep([paid])
    with closing(SessionStore(tmp_path, print)) as stored:
        assert set(stored.replies.get_many([paid.key])) == {paid.key}


def test_what_a_folder_does_not_take_is_written_elsewhere_and_in_the_store_of_the_next_session(tmp_path, monkeypatch):
    monkeypatch.setenv("JUDGEKIT_CACHE", str(tmp_path / "usual"))
    paid = [filling.record(1), filling.record(2)]
    with closing(Store(tmp_path / "store")) as store:
        shutil.rmtree(store.path)
        store.path.write_text("no folder")
        told = rescue(store, paid)
        [file] = (tmp_path / "usual").rglob("rescued-*.jsonl")
        assert f"2 paid replies that the store could not take are in {file}: the next run takes them" in told
        assert file.stat().st_mode & 0o077 == 0
        store.path.unlink()
    with closing(SessionStore(tmp_path / "other", print)) as stored:
        assert stored.replies.get_many([record.key for record in paid]) == {}
    with closing(SessionStore(tmp_path / "store", print)) as stored:
        assert set(stored.replies.get_many([record.key for record in paid])) == {record.key for record in paid}
    assert not file.exists()


JUDGE = Endpoint("here", "http://h/v1", "judge")
NOW = time.time()


def record(prompt: object, *, model: str = "judge", says: str = "judge-1", days: float = 0.0) -> Record:
    endpoint = replace(JUDGE, model=model)
    content = prompt if isinstance(prompt, str) else canonical(prompt).decode()
    body = chat(endpoint, [{"role": "user", "content": content}]).body.decode()
    reply = json.dumps({"model": says, "choices": [{"message": {"content": "Yes"}}]})
    key = identity(endpoint.identity, 0, body.encode())
    return Record(key, endpoint.identity, 0, body, None, reply, None, NOW - 86_400 * days)


QUESTION = "Who wrote “Émile”? <question>"
SHOWN = QUESTION.replace("<question>", "&lt;question>")  # no text can close a fence of the prompt
ASKED = {
    "fenced": f"Judge.\n<question>\n{SHOWN}\n</question>\n<passage>x</passage>",
    "in a line": f"Question: {SHOWN} Answer:",
    "alone": SHOWN,
}


@pytest.mark.parametrize("how", ASKED)
def test_a_question_is_found_by_its_text_however_the_prompt_shows_it(empty, how):
    mine = record(ASKED[how])
    others = [SHOWN.replace("mile", "milie"), f"{SHOWN}s", f"x{SHOWN}", SHOWN.lower(), SHOWN.replace(" ", "  ")]
    empty.put_many([mine, *(record(f"<question>\n{asked}\n</question>") for asked in others)])
    found = find(empty, query=neutral(f" {QUESTION}\n"))
    assert (found.replies, found.waiting) == ([mine.key], [])


def test_all_conditions_must_hold(empty):
    old, new = record("a", days=40), record("b", days=2)
    third, renamed = record("c", model="other", says="other", days=40), record("d", says="judge-2")
    empty.put_many([old, new, third, renamed])

    def keys(**conditions):
        return set(find(empty, **conditions).replies)

    month = NOW - 30 * 86_400
    assert keys(before=month) == {old.key, third.key}
    assert keys(model="judge") == {old.key, new.key, renamed.key}
    assert keys(model="judge-2") == {renamed.key}
    assert keys(model="judge", before=month) == {old.key}
    assert keys(model="judge", query="c") == set()
    counts = {key: part.replies for key, part in find(empty, before=month).parts.items()}
    assert counts == {("http://h/v1", "judge"): 1, ("http://h/v1", "other"): 1}
    with pytest.raises(UsageError):
        find(empty, query=" ")


def test_what_is_forgotten_leaves_no_trace_in_the_files_and_all_else_stays(empty):
    secret = "Where does Ms Kowalczyk live?"
    # Requests are compressed, so that only what the reply repeats of the question stands in the files as it is.
    reply = json.dumps({"choices": [{"message": {"content": secret}}]})
    mine = [
        replace(record(f"<question>\n{secret}\n</question>\n" + f"passage {n} " * 500), reply=reply) for n in range(20)
    ]
    others = [record(f"<question>\nWhere does the Nile end?\n</question>\n{n}") for n in range(20)]
    waits = replace(record(f"{secret} again"), reply=None)
    empty.put_many([*mine, *others, waits])
    assert len(empty.waiting([waits.key])) == 1
    # Some builds of SQLite overwrite what is deleted, others leave it in the file.
    empty.written(lambda rows: rows.connection.execute("PRAGMA secure_delete = OFF"))
    forget(empty, find(empty, query=secret))
    assert set(empty.get_many([r.key for r in (*mine, *others)])) == {r.key for r in others}
    assert empty.waiting([waits.key]) == {}
    assert not any(b"Kowalczyk" in path.read_bytes() for path in empty.path.iterdir())
    empty.put_many(mine[:1])
    assert empty.count() == 21
    assert empty.check() == "ok"
