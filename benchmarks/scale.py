"""What MS MARCO's size takes: passages read and indexed, pairs labelled by containment, rows of runs scored.

    python -m benchmarks.scale FOLDER [--share 0.1] [--runs 1] [STAGE ...]

Writes made-up data into FOLDER, unless it is there: 8.8 million passages of MS MARCO's lengths, 100,000 questions with
short answers, a run of 1,000 rows for each of them, and judgments. Then each stage is a command of its own, and its
time, its processor time and the most memory that it held are printed. All sizes may be
made smaller by a share, and the questions' rows may be parted among several runs. The whole takes 15 GB of disk; the
folder is yours to delete.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

PASSAGES, QUESTIONS, DEPTH, LABELLED = 8_800_000, 100_000, 1000, 100
"""Sizes of the whole: LABELLED documents of each question are labelled."""
_LISTS = 5000
"""Different lists of documents: as many questions find the same."""
_WORDS = 4_000_000
"""Words of the text that passages are cut from."""


def text(rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """Return a long text whose words are as frequent as those of a language, and where each word begins."""
    letters = np.array([*"etaoinshrdlucmfwypvbgkqjxz"])
    vocabulary = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 10, 50_000)]
    ranks = np.minimum(rng.zipf(1.2, _WORDS), len(vocabulary)) - 1
    words = [vocabulary[rank] for rank in ranks.tolist()]
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    return " ".join(words) + " ", starts


def passages(path: Path, count: int, rng: np.random.Generator) -> None:
    """Write passages of 56 words on average, between 10 and 220, under MS MARCO's ids."""
    long, starts = text(rng)
    with path.open("w") as stream:
        for begin in range(0, count, 100_000):
            size = min(100_000, count - begin)
            lengths = np.clip(rng.lognormal(3.95, 0.38, size), 10, 220).astype(np.int64)
            first = rng.integers(0, _WORDS - 220, size)
            places = zip(starts[first].tolist(), (starts[first + lengths] - 1).tolist(), strict=True)
            stream.writelines(
                f'{{"doc_id": "{number}", "text": "{long[start:end]}"}}\n'
                for number, (start, end) in enumerate(places, begin)
            )


def questions(path: Path, count: int, rng: np.random.Generator) -> None:
    """Write questions, each with an answer of one to three words."""
    long, starts = text(rng)
    first, lengths = rng.integers(0, _WORDS - 3, count), rng.integers(1, 4, count)
    with path.open("w") as stream:
        for number, (start, end) in enumerate(zip(starts[first], starts[first + lengths] - 1, strict=True)):
            answer = long[start:end]
            stream.write(
                f'{{"query_id": "{1_000_000 + number}", "text": "which {number}?", "answers": ["{answer}"]}}\n'
            )


def lists(folder: Path, files: int, count: int, docs: int, rng: np.random.Generator) -> None:
    """Write the rows of runs, 1,000 for each question, and judgments of every fortieth of the best 400."""
    made, judged = [], []
    for _ in range(min(count, _LISTS)):
        found = (rng.integers(0, docs) + rng.permutation(DEPTH) * (docs // DEPTH)) % docs
        scores = np.sort(rng.gamma(4, 4, DEPTH))[::-1].round(4).tolist()
        rows = enumerate(zip(found.tolist(), scores, strict=True), 1)
        made.append("".join(f"\0 Q0 {doc} {rank} {score} run\n" for rank, (doc, score) in rows))
        judged.append("".join(f"\0 0 {doc} {doc % 4}\n" for doc in found[:400:40].tolist()))
    with (folder / "judgments.qrels").open("w") as qrels:
        for file in range(files):
            with (folder / f"run{file}.trec").open("w") as run:
                for number in range(count // files):
                    query = str(1_000_000 + number)
                    # Files find the documents of other questions first.
                    run.write(made[(number + file) % len(made)].replace("\0", query))
                    if not file:
                        qrels.write(judged[number % len(judged)].replace("\0", query))


def stages(folder: Path) -> dict[str, Callable[[], list[str]]]:
    """Return the commands by name."""
    queries = ["--queries", str(folder / "queries.jsonl")]
    docs = ["--docs", str(folder / "docs.jsonl")]

    def runs() -> list[str]:
        return [part for path in sorted(folder.glob("run*.trec")) for part in ("--run", str(path))]

    score = ["-m", "nDCG@10 AP RR@10 R@100"]
    return {
        "read": lambda: ["chunks", "--help"],
        "label": lambda: [
            *("label", "containment", *queries, *docs, *runs(), "--depth", str(LABELLED)),
            *("--out", str(folder / "labels.qrels")),
        ],
        "score": lambda: ["score", *runs(), "--qrels", str(folder / "judgments.qrels"), *score],
    }


READ = "import sys; from judgekit.data.readers import read_docs; print(len(read_docs(sys.argv[1])), 'passages')"


def carry_out(name: str, folder: Path) -> None:
    """Do one stage in a process of its own, and print what it took."""
    command = [sys.executable, "-m", "judgekit", *stages(folder)[name]()]
    if name == "read":
        command = [sys.executable, "-c", READ, str(folder / "docs.jsonl")]
    # Not the cache of whoever runs this, and one folder for all stages.
    environment = {**os.environ, "JUDGEKIT_CACHE": str(folder / "cache")}
    begun = time.monotonic()
    child = os.spawnve(os.P_NOWAIT, sys.executable, command, environment)
    _, status, used = os.wait4(child, 0)
    seconds, spent = time.monotonic() - begun, used.ru_utime + used.ru_stime
    state = "" if status == 0 else f", exit {os.waitstatus_to_exitcode(status)}"
    print(f"{name}: {seconds:,.0f} s, processor {spent:,.0f} s, {used.ru_maxrss / 1024:,.0f} MiB{state}", flush=True)


SCORED = """
import json, sys, time
from hashlib import sha256
from benchmarks.metrics_speed import peak_memory
from judgekit.data import parts, trec
from judgekit.metrics import evaluate
run, qrels, parts.MEMORY_LIMIT = sys.argv[1], sys.argv[2], int(sys.argv[3])
began = time.process_time()
found = evaluate(parts.read_runs({"run": run}), [trec.read_qrels(qrels)], "nDCG@10 AP RR@10 R@100")
print(json.dumps([time.process_time() - began, peak_memory(), sha256(found.values.tobytes()).hexdigest()]))
"""


class Scored(NamedTuple):
    """What scoring a run took, in a process of its own."""

    seconds: float
    peak: float
    """MiB."""
    values: str
    """A hash of all values."""


def scored(folder: Path, limit: int) -> Scored:
    """Score the run of a folder, read in parts if its file has more bytes than the limit."""
    files = [str(folder / "run0.trec"), str(folder / "judgments.qrels")]
    command = [sys.executable, "-c", SCORED, *files, str(limit)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Scored(*json.loads(done.stdout))


def main() -> None:
    """Write the data and carry out the stages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="read, label, score; all by default")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1, help="files that the rows of runs are in")
    asked = parser.parse_intermixed_args()
    folder, docs, queries = asked.folder, int(PASSAGES * asked.share), int(QUESTIONS * asked.share)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    if not (folder / "docs.jsonl").exists():
        passages(folder / "docs.jsonl", docs, rng)
    if not (folder / "queries.jsonl").exists():
        questions(folder / "queries.jsonl", queries, rng)
    if not (folder / "judgments.qrels").exists():
        lists(folder, asked.runs, queries, docs, rng)
    for name in asked.stages or stages(folder):
        carry_out(name, folder)


if __name__ == "__main__":
    main()
