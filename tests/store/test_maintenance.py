"""Looking into a store, and moving it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import DataError
from judgekit.plugins.batch.files import export_batch
from judgekit.store.maintenance import export_store, holds, import_store, stats, verify
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint
from tests.programs import Ask, collect
from tests.scripted import ScriptedTransport, error

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
def store(filled: Path, tmp_path: Path) -> Store:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "cache.db").write_bytes((filled / "cache.db").read_bytes())
    return Store(tmp_path / "copy")


def test_stats_say_what_there_is(store: Store, tmp_path: Path) -> None:
    export_batch(store, ["new"], Ask(HERE), tmp_path / "b.jsonl")
    found = stats(store)
    assert (found.replies, found.waiting, found.damaged, found.aside) == (703, 1, 0, [])
    parts = {key: (p.replies, p.prompt_tokens, p.completion_tokens) for key, p in found.parts.items()}
    assert parts == {("http://h/v1", "m"): (700, 700, 1400), ("http://t/v1", "n"): (3, 3, 6)}
    assert found.size > 500_000
    assert found.oldest is not None
    assert found.newest is not None
    assert found.oldest <= found.newest
    store.close()


@pytest.mark.parametrize(
    ("endpoint", "model", "there"),
    [("http://h/v1", "m", True), ("http://h/v1", "n", False), ("http://t/v1", "m", False), ("http://t/v1", "n", True)],
)
def test_a_model_is_known_at_the_endpoint_that_replied(store: Store, endpoint: str, model: str, there: bool) -> None:
    assert holds(store, endpoint, model) == there
    store.close()


def test_verification_finds_and_repairs_damage(store: Store) -> None:
    whole = verify(store)
    assert (whole.ok, whole.structure, whole.checked) == (True, "ok", 703)
    rows = sqlite3.connect(store.path / "cache.db")
    keys = [key for (key,) in rows.execute("SELECT key FROM Cache ORDER BY key LIMIT 3")]
    rows.execute("UPDATE Cache SET value = replace(value, 'unit', 'Unit') WHERE key = ?", (keys[0],))
    rows.execute("UPDATE Cache SET value = '{}' WHERE key = ?", (keys[1],))
    rows.execute("UPDATE Cache SET value = (SELECT value FROM Cache WHERE key = ?) WHERE key = ?", (keys[0], keys[2]))
    rows.commit()
    rows.close()
    broken = verify(store, repair=True)
    assert not broken.ok
    assert [key for key, _ in broken.damaged] == keys
    assert verify(store).ok
    assert store.count() == 700
    store.close()


def test_what_is_exported_can_be_imported_elsewhere(store: Store, tmp_path: Path) -> None:
    assert export_store(store, tmp_path / "all.jsonl.gz") == 703
    other = Store(tmp_path / "other")
    assert import_store(other, tmp_path / "all.jsonl.gz") == (703, 0)
    assert import_store(other, tmp_path / "all.jsonl.gz") == (0, 703)
    assert list(other.texts()) == list(store.texts())
    for each in (store, other):
        each.close()


def test_a_bad_line_is_named_and_nothing_is_imported(store: Store, tmp_path: Path) -> None:
    export_store(store, tmp_path / "all.jsonl")
    text = (tmp_path / "all.jsonl").read_text()
    other = Store(tmp_path / "other")
    bad_lines = {
        "{}": "lacks 'version'",
        "[1]": "not a stored reply",
        "q1 Q0 d1 1": "not a stored reply",
        text.splitlines()[0].replace("unit", "Unit"): "identity",
    }
    for bad, reason in bad_lines.items():
        (tmp_path / "bad.jsonl").write_text(f"{text}{bad}\n")
        with pytest.raises(DataError, match=reason) as caught:
            import_store(other, tmp_path / "bad.jsonl")
        assert caught.value.line == 704
    assert other.count() == 0
    for each in (store, other):
        each.close()
