"""A repository with a gate: questions with one right passage each, an old run, and new ones."""

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import Judgekit, in_process

N = 300
LANGUAGES = ("fi", "de")


def docs_of(i: int, swapped: bool = False) -> list[str]:
    """The right passage first, or last of five."""
    docs = [f"d{i}{c}" for c in "abcde"]
    return [*docs[1:], docs[0]] if swapped else docs


def write_run(path: Path, n: int, worse: set[int] = frozenset(), tied: set[int] = frozenset()) -> Path:
    """A run over n questions; in ``worse`` the right passage goes last, in ``tied`` two wrong ones change places."""
    lines = []
    for i in range(n):
        docs = docs_of(i, i in worse)
        if i in tied:
            docs[3], docs[4] = docs[4], docs[3]
        lines += [f"q{i} Q0 {d} 0 {-rank} run\n" for rank, d in enumerate(docs)]
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `commit`'s files."""
    return commit(tmp_path_factory.mktemp("guard"))


def commit(folder: Path) -> Path:
    """queries.jsonl, docs.jsonl, gold.qrels, base.trec, worse.trec, harmless.trec, and all for 20 questions, too."""
    queries = [
        {"query_id": f"q{i}", "text": f"What is town {i}?", "answers": [f"town{i}"], "language": LANGUAGES[i % 2]}
        for i in range(N)
    ]
    docs = [
        {"doc_id": f"d{i}{c}", "text": f"It is town{i}." if c == "a" else f"A page about hill{i}{c}."}
        for i in range(N)
        for c in "abcde"
    ]
    for name, rows in (("queries", queries), ("docs", docs), ("few", queries[:20])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    gold = [f"q{i} 0 d{i}{c} {int(c == 'a')}\n" for i in range(N) for c in "abcde"]
    (folder / "gold.qrels").write_text("".join(gold))
    for name, n in (("", N), ("few-", 20)):
        write_run(folder / f"{name}base.trec", n)
        write_run(folder / f"{name}worse.trec", n, worse=set(range(0, n, 20)))
        write_run(folder / f"{name}harmless.trec", n, tied=set(range(0, n, 5)))
    return folder


@pytest.fixture
def repository(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, which is the working directory."""
    shutil.copytree(committed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def judgekit(capfd: pytest.CaptureFixture[str]) -> Judgekit:
    """Run a command line in this process: ``judgekit("guard", "base.trec", ...)``."""
    return in_process(capfd)
