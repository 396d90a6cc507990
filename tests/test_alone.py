"""The project stands alone: no test reads what lies beside the checkout, whoever's folder that may be."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TREE = ("judgekit", "prompts", "tests", "benchmarks", "docs", "examples", "notebooks", "studies", "findings", ".ci")
COPIED = (*TREE, "Makefile", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml")

OUTSIDE = re.compile(r"""JUDGEKIT_SHARED|\.\./shared|["']shared["']|ROOT\.parent\b|parents\[[3-9]\]""")
"""How a file of this project once named the folder beside it; tests two folders down have ROOT at parents[2]."""

WATCH = """
import os, sys

beside = os.environ["BESIDE"]
inside = os.environ["INSIDE"]

def note(event, args):
    if event in ("open", "os.listdir", "os.scandir") and args and isinstance(args[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(args[0]))
        if path.startswith(beside) and not (path + os.sep).startswith(inside + os.sep):
            log = os.open(os.path.join(inside, "read-beside.txt"), os.O_WRONLY | os.O_CREAT)
            os.write(log, path.encode())
            os._exit(99)

sys.addaudithook(note)
"""
"""Ends Python where something beside the checkout is opened or listed."""


def test_no_file_names_a_folder_beside_the_checkout() -> None:
    files = [ROOT / "Makefile", *(path for name in TREE for path in (ROOT / name).rglob("*") if path.is_file())]
    named = []
    for path in files:
        if path == Path(__file__) or "__pycache__" in path.parts:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        named += [f"{path.relative_to(ROOT)}: {found[0]}" for found in OUTSIDE.finditer(text)]
    assert named == []


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of the project beside a folder that holds wrong data under the names that tests might look for."""
    clone = tmp_path / "beside" / "clone"
    for name in COPIED:
        source, target = ROOT / name, clone / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    for folder in ("shared/data/dev", "data/dev", "dev"):
        decoy = clone.parent / folder
        decoy.mkdir(parents=True)
        (decoy / "docs.jsonl").write_text('{"doc_id": "d", "title": "", "text": "wrong"}\n')
        (decoy / "queries.jsonl").write_text('{"query_id": "q", "text": "wrong?", "answers": ["wrong"]}\n')
        (decoy / "provenance.qrels").write_text("q 0 d 1\n")
    (clone / "sitecustomize.py").write_text(WATCH)
    return clone


def run(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in the copy, which ends where it reads beside it."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("JUDGEKIT_", "PYTEST_", "COV_"))},
        "PYTHONPATH": str(clone),
        "BESIDE": str(clone.parent),
        "INSIDE": str(clone),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    return subprocess.run(command, cwd=clone, env=env, capture_output=True, text=True, timeout=250)


def test_a_folder_of_wrong_data_beside_a_clone_changes_no_result(clone: Path) -> None:
    done = run(clone, "tests/reading/test_sentence.py", "-k", "plain_verdicts or doubt")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_watch_notices_what_is_read_beside_the_clone(clone: Path) -> None:
    path = clone / "tests" / "reading" / "test_beside.py"
    path.write_text(
        "from pathlib import Path\n\n\ndef test_beside() -> None:\n"
        "    assert (Path(__file__).parents[3] / 'dev' / 'docs.jsonl').read_text()\n"
    )
    done = run(clone, str(path))
    assert done.returncode == 99
    assert (clone / "read-beside.txt").read_text() == str(clone.parent / "dev" / "docs.jsonl")


@pytest.mark.more
@pytest.mark.parametrize("room", ["reading", "extensions", "sample", "jobs"])
def test_no_test_of_a_room_reads_beside_a_clone(clone: Path, room: str) -> None:
    done = run(clone, f"tests/{room}", "-x")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
