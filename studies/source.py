"""The public files that the studies read: always the same bytes, from a clone or a copy that is there.

`files.tsv` lists every file with its SHA-256 and nothing else is read, so that the page is the same everywhere.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
from functools import cache
from pathlib import Path

import pandas as pd

COMMITS = {
    "bchucs/rag-retrieval-design-study": "acf22f6146a23269c0dab0be0a2f8139afb8756d",
    "bbucksch/RAGs-for-Complex-QA": "e06d7a955a84ceaba350ac9f80d9a1b987ff554e",
    "r-gheda/rag-complex-qa": "c7a88c09f6bd3a61e087ef90904c6fea5a4c2aca",
    "webis-de/clef24-mibi-bioasq-": "5e48ee5da08038a5d68a4cfcc8d4a6aedaae7d2c",
    "varsha-cl/DocBot": "299d86cd11d01429463e336f7146a30feb89f623",
    "TonicAI/tonic_validate": "446a0ec05ac69ae59bda0b83956f2477a6790082",
    "legalllm24/UK-Legal-RAG-Benchmark": "631645d532be67c362f44b4eeeecd4289825a9d6",
    "aditiverma05/rag-reranking-study": "101bfb55eb56746f00de3f802040123615f63ca6",
    "Narabzad/llm-relevance-judgement-comparison": "28823f1601a7b8ad7dd0289af032b1e8ed4b21df",
    "chaitanyamalaviya/ExpertQA": "1aa7ba81bd4c083c12ef1aa2fee338f6cb60fa87",
}
EARLIER = {"bchucs/rag-retrieval-design-study": ("data/questions/", "4ecdf9060283e09f9356b7d7e8e67c0c96f09f87")}
"""Files that a later commit deleted: by repository, the folder and the commit that still has it."""
FILES = Path(__file__).with_name("files.tsv")


class SourceError(Exception):
    """A file cannot be had as the studies need it."""


@cache
def hashes() -> dict[tuple[str, str], str]:
    """Return the SHA-256 of each file, by repository and path."""
    lines = (line.split("\t") for line in FILES.read_text().splitlines())
    return {(repo, path): digest for repo, path, digest in lines}


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
    folder, commit = _folder(repo), _commit_of(repo, path)
    shown = _git(folder, "show", f"{commit}:{path}")
    if shown.returncode:
        said = shown.stderr.decode(errors="replace").strip()
        raise SourceError(f"{repo}: {path!r} is missing in {folder} at {commit[:7]}: {said}")
    if hashlib.sha256(shown.stdout).hexdigest() != expected:
        raise SourceError(f"{repo}: {path!r} in {folder} has changed: its SHA-256 is not the one in {FILES.name}")
    return shown.stdout.decode()


def trec(repo: str, path: str, columns: str = "query_id _ doc_id relevance") -> pd.DataFrame:
    """Return a file whose columns are parted by white space, qrels or a run, without the columns named ``_``."""
    names = columns.split()
    of = dict.fromkeys(("query_id", "doc_id"), str)
    table = pd.read_csv(io.StringIO(text(repo, path)), sep=r"\s+", header=None, names=names, dtype=of)
    return table.drop(columns="_")


def rows(repo: str, path: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    csv.field_size_limit(1 << 24)
    return list(csv.DictReader(io.StringIO(text(repo, path))))


def _commit_of(repo: str, path: str) -> str:
    folder, commit = EARLIER.get(repo, ("", ""))
    return commit if folder and path.startswith(folder) else COMMITS[repo]


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
    for commit in (COMMITS[repo], *EARLIER.get(repo, ())[1:]):
        if not _git(folder, "cat-file", "-e", commit).returncode:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        _git(folder, "init", "--quiet", "--bare")
        # One commit without its history; the largest repository is 400 MB.
        fetched = _git(folder, "fetch", "--quiet", "--depth=1", f"https://github.com/{repo}", commit)
        if fetched.returncode:
            said = fetched.stderr.decode(errors="replace").strip()
            raise SourceError(f"{repo} cannot be cloned ({said}): give copies that are there with STUDIES=DIR")
    return folder


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    # A copy may belong to somebody else.
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, check=False)
