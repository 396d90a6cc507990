"""Losses of stores whose files were damaged, cut off, left out or exchanged: each is told, and no label is wrong."""

import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.store.maintenance import verify
from judgekit.store.replies import Store
from tests.store.filling import at_most, record

ROWS = 1200
PAGE = 8192
RECORDS = [record(number) for number in range(ROWS)]


def stored(folder: Path, numbers: range, *, in_log: int) -> dict[str, bytes]:
    """Return the files of a store that was closed, and then killed with further rows in its log."""
    parts = [[record(number) for number in numbers[start : start + 64]] for start in range(0, len(numbers), 64)]
    whole = max(len(parts) - in_log // 64, 0)
    with closing(Store(folder)) as store:
        for part in parts[:whole]:
            store.put_many(part)
    if not in_log:
        return files_in(folder)
    with closing(Store(folder)) as store:
        for part in parts[whole:]:
            store.put_many(part)
        return files_in(folder)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """Files of stores with 1,200 rows: closed, half in the log, all in the log; and of another store."""
    states = {
        name: stored(tmp_path_factory.mktemp("store"), range(ROWS), in_log=in_log)
        for name, in_log in (("closed", 0), ("half", ROWS // 2), ("log", 2 * ROWS))
    }
    states["other"] = stored(tmp_path_factory.mktemp("other"), range(ROWS, ROWS + 500), in_log=1000)
    assert [LOG in files for files in states.values()] == [False, True, True, True]
    return states


def spoiled(data: bytes, rng: random.Random, first: int, last: int, sizes: tuple[int, ...]) -> bytes:
    """Return the bytes with some of them changed."""
    changed, size = bytearray(data), rng.choice(sizes)
    at = rng.randrange(first, max(first + 1, last - size + 1))
    new = rng.randbytes(size)
    changed[at : at + size] = bytes(one ^ other or 1 for one, other in zip(changed[at : at + size], new, strict=False))
    return bytes(changed)


Files = dict[str, bytes]
LOG = "cache.db-wal"


def head(files: Files, rng: random.Random) -> None:
    files["cache.db"] = spoiled(files["cache.db"], rng, 0, 100, (1, 2, 16))


def pages(files: Files, rng: random.Random) -> None:
    files["cache.db"] = spoiled(files["cache.db"], rng, 100, len(files["cache.db"]), (1, 16, 200, PAGE))


def log_cut(files: Files, rng: random.Random) -> None:
    files[LOG] = files[LOG][: rng.randrange(len(files[LOG]))]


def log_changed(files: Files, rng: random.Random) -> None:
    last = rng.choice([32, 200, len(files[LOG]), len(files[LOG])])
    files[LOG] = spoiled(files[LOG], rng, 0, last, (1, 16))


def log_missing(files: Files, _: random.Random) -> None:
    del files[LOG]


KINDS: dict[str, tuple[Callable[[Files, random.Random], None], tuple[str, ...]]] = {
    "head": (head, ("closed", "half", "log")),
    "pages": (pages, ("closed", "half")),
    "log cut": (log_cut, ("half", "log")),
    "log changed": (log_changed, ("half", "log")),
    "log missing": (log_missing, ("half", "log")),
    "foreign log": (lambda _, __: None, ("closed", "half")),
}


def opened(folder: Path, files: Files) -> tuple[int, list[str]]:
    """Open a store with these files; return how many replies it gives and what it said before they are paid again."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    notes: list[str] = []
    keys = [one.key for one in RECORDS]
    with at_most(60):
        with closing(Store(folder, note=notes.append)) as store:
            replies = store.get_many(keys)
            told = list(notes)
            assert all(replies[one.key].raw == one.reply for one in RECORDS if one.key in replies)
            store.put_many(RECORDS)
            # Some changes do no harm to replies; they are noticed here, where all is looked at.
            verify(store, repair=True)
            assert store.check() == "ok"
            store.put_many(RECORDS)
        again: list[str] = []
        with closing(Store(folder, note=again.append)) as store:
            assert len(store.get_many(keys)) == ROWS
        assert not again
    return len(replies), told


def damaged(folder: Path, states: dict[str, Files], kind: str, seed: int) -> str:
    """Damage a store; return what became of its replies."""
    rng = random.Random(f"{kind} {seed}")
    damage, among = KINDS[kind]
    files = dict(states[rng.choice(among)])
    if kind == "foreign log":
        files |= {LOG: states["other"][LOG]}
    damage(files, rng)
    replies, notes = opened(folder, files)
    if replies == ROWS:
        return "whole" if not notes else "saved"
    assert notes, f"{ROWS - replies} replies are gone without a word"
    return "lost in part, and told"


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_loses_a_reply_without_a_word(tmp_path, states, kind):
    became = {damaged(tmp_path / "store", states, kind, seed) for seed in range(3)}
    if kind == "head":
        assert became <= {"whole", "saved"}


@pytest.mark.parametrize("rounds", [2, pytest.param(30, marks=pytest.mark.many)])
def test_processes_that_open_a_damaged_store_at_once_save_it_once_and_lose_nothing(tmp_path, states, rounds):
    code = (
        "import sys; from contextlib import closing; from tests.store.filling import *\n"
        "notes = []\n"
        "with closing(Store(sys.argv[1], note=notes.append)) as store:\n"
        "    print(len(notes), len(store.get_many([record(n).key for n in range(1200)])))"
    )
    for seed in range(rounds):
        folder, rng = tmp_path / str(seed), random.Random(seed)
        folder.mkdir()
        files = dict(states["half"])
        # An image in the middle of the log, so that what follows is not read.
        files[LOG] = spoiled(files[LOG], rng, PAGE, len(files[LOG]) // 2, (1,))
        for name, data in files.items():
            (folder / name).write_bytes(data)
        command = [sys.executable, "-c", code, str(folder)]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        said = sorted(child.communicate(timeout=60)[0].split() for child in children)
        assert [notes for notes, _ in said] == ["0", "0", "1"]
        assert all(int(rows) >= ROWS - 1 for _, rows in said)
        assert len(list(folder.glob("damaged-*"))) == 1


@pytest.mark.many
def test_of_200_damages_none_loses_a_reply_without_a_word(tmp_path, states):
    became: Counter[tuple[str, str]] = Counter()
    for seed in range(200):
        kind = list(KINDS)[seed % len(KINDS)]
        became[kind, damaged(tmp_path / "store", states, kind, seed)] += 1
    print(*(f"{kind}: {what}: {count}" for (kind, what), count in sorted(became.items())), sep="\n")
    assert not became["head", "lost in part, and told"]
