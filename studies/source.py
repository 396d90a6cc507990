"""The public files that the studies read: always the same bytes, from a clone or a copy that is there.

`files.tsv` lists every file with its SHA-256 and nothing else is read, so that the page is the same everywhere.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
from functools import cache
from pathlib import Path

import pandas as pd

COMMITS = {
    "r-gheda/rag-complex-qa": "c7a88c09f6bd3a61e087ef90904c6fea5a4c2aca",
    "Narabzad/llm-relevance-judgement-comparison": "28823f1601a7b8ad7dd0289af032b1e8ed4b21df",
    "llm4eval/LLMJudge": "81159c68260d383f8da1dad8a14f6d914a9054a9",
    "llm4eval/LLMJudge-benchmark": "968a1f9c962fddfc6508faa2d45e3e7edd1c3829",
    "castorini/anserini-tools": "5b819c1a45c8a0a3ec9426f476694f44a29dfaf3",
    "chaitanyamalaviya/ExpertQA": "1aa7ba81bd4c083c12ef1aa2fee338f6cb60fa87",
}
FILES = Path(__file__).with_name("files.tsv")


class SourceError(Exception):
    """A file cannot be had as the studies need it."""


@cache
def hashes() -> dict[tuple[str, str], str]:
    """Return the SHA-256 of each file, by repository and path."""
    rows = (line.split("\t") for line in FILES.read_text().splitlines())
    return {(repo, path): digest for repo, path, digest in rows}


def paths(repo: str, under: str) -> list[str]:
    """Return the files of a folder that the studies may read."""
    return [path for name, path in hashes() if name == repo and path.startswith(under)]


def text(repo: str, path: str) -> str:
    """Return a file.

    Raises:
        SourceError: it is not on the list, not there, or not the same.
    """
    expected = hashes().get((repo, path))
    if expected is None:
        raise SourceError(f"{repo}: {path!r} is not in {FILES.name}: the studies read no other file")
    folder = _folder(repo)
    shown = _git(folder, "show", f"{COMMITS[repo]}:{path}")
    if shown.returncode:
        said = shown.stderr.decode(errors="replace").strip()
        raise SourceError(f"{repo}: {path!r} is missing in {folder} at {COMMITS[repo][:7]}: {said}")
    if hashlib.sha256(shown.stdout).hexdigest() != expected:
        raise SourceError(f"{repo}: {path!r} in {folder} has changed: its SHA-256 is not the one in {FILES.name}")
    return shown.stdout.decode()


def trec(repo: str, path: str, columns: str = "query_id _ doc_id relevance") -> pd.DataFrame:
    """Return a file whose columns are parted by white space, qrels or a run, without the columns named ``_``."""
    names = columns.split()
    of = dict.fromkeys(("query_id", "doc_id"), str)
    table = pd.read_csv(io.StringIO(text(repo, path)), sep=r"\s+", header=None, names=names, dtype=of)
    return table.drop(columns="_")


@cache
def _folder(repo: str) -> Path:
    """Return the copy below $STUDIES, or a clone in the cache folder."""
    owner, name = repo.split("/")
    if given := os.environ.get("STUDIES"):
        places = [Path(given, *parts) for parts in ([f"{owner}+{name}", "repo"], [owner, name], [name])]
        there = next((place for place in places if place.is_dir()), None)
        if there is None:
            raise SourceError(f"{repo} is not in STUDIES={given}: it must be {' or '.join(map(str, places))}")
        return there
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "judgekit-studies", name)
    if _git(folder, "cat-file", "-e", COMMITS[repo]).returncode:
        folder.mkdir(parents=True, exist_ok=True)
        _git(folder, "init", "--quiet", "--bare")
        # One commit without its history; the largest repository is 400 MB.
        fetched = _git(folder, "fetch", "--quiet", "--depth=1", f"https://github.com/{repo}", COMMITS[repo])
        if fetched.returncode:
            said = fetched.stderr.decode(errors="replace").strip()
            raise SourceError(f"{repo} cannot be cloned ({said}): give copies that are there with STUDIES=DIR")
    return folder


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # A copy may belong to somebody else.
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False)
