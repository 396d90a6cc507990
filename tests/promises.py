"""The ledger of promises: each sentence of a page, a test of it, and a mutant that this test must kill.

    make promises            # applies each mutant to a copy of the project and runs its test: 1 if one survives
    python -m tests.promises NAME ...   # only promises whose page or test has NAME in it

`promises.toml` holds the ledger. `test_promises.py` checks in each run that it fits pages, code and tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
LEDGER = Path(__file__).with_name("promises.toml")
COPIED = ("judgekit", "prompts", "tests", "examples", "docs", "studies", "benchmarks", "notebooks")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile")
TIMEOUT_S = 300.0
WORKERS = 2


@dataclass(frozen=True)
class Promise:
    """A promise.

    Attributes:
        page: the file that makes it.
        says: its words, as they stand there but for line breaks.
        test: the test that holds it.
        file, old, new: the mutant: ``old`` stands once in ``file`` and is replaced by ``new``.
    """

    page: str
    says: str
    test: str
    file: str
    old: str
    new: str


def ledger() -> list[Promise]:
    """Return all promises."""
    return [Promise(**entry) for entry in tomllib.loads(LEDGER.read_text(encoding="utf-8"))["promise"]]


def killed(promise: Promise, copy: Path) -> bool:
    """Return whether the promise's test fails once its mutant is in place, in a copy of the project."""
    path = copy / promise.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace(promise.old, promise.new), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(copy), "CI": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not bench",
    ]
    try:
        done = subprocess.run([*command, promise.test], cwd=copy, env=env, capture_output=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(whole, encoding="utf-8")
    if done.returncode not in (0, 1):  # 1: a test failed; others: it was not found, or nothing ran
        raise SystemExit(f"{promise.test} does not run:\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 1


def main(names: list[str]) -> int:
    """Print the survivors and, by room, how many mutants died; return the exit status."""
    promises = [p for p in ledger() if not names or any(name in f"{p.page} {p.test} {p.says}" for name in names)]
    copies: SimpleQueue[Path] = SimpleQueue()
    with TemporaryDirectory() as folder:
        for worker in range(WORKERS):
            copy = Path(folder, str(worker))
            for name in COPIED:
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            for name in FILES:
                shutil.copy2(ROOT / name, copy / name)
            copies.put(copy)

        def tried(promise: Promise) -> bool:
            copy = copies.get()
            try:
                return killed(promise, copy)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(WORKERS) as pool:
            outcomes = list(pool.map(tried, promises))
    rooms: Counter[str] = Counter()
    died: Counter[str] = Counter()
    for promise, dead in zip(promises, outcomes, strict=True):
        room = promise.file.split("/")[1].removesuffix(".py")
        rooms[room] += 1
        died[room] += dead
        if not dead:
            print(
                f"survives: {promise.test}\n  {promise.page}: {promise.says}\n  {promise.file}: {promise.new.strip()}"
            )
    for room, number in sorted(rooms.items()):
        print(f"{room:<12} {died[room]} of {number}")
    print(f"{sum(died.values())} of {len(promises)} promises have a test that notices when they are broken")
    return int(sum(died.values()) < len(promises))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
