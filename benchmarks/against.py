"""Every work beside another commit, by turns on one machine: what got slower is seen before it is released.

    python -m benchmarks.against REF [WORK …] [--turns N] [--scale X]

The other commit is unpacked beside, and runs with the same Python and the same packages. Each turn is a process of its
own; seconds are its processor time, from after the imports where the work says so, and MiB its peak. Ratios are of the
least seconds, which other work on the machine disturbs least, and of the medians of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Work:
    """What is timed.

    Attributes:
        title: in words.
        make: writes the input into a folder, for a scale of 1 or less.
        code: is run in that folder; ``begin()`` starts the clock once more, ``new`` is a folder of this turn.
    """

    title: str
    make: Callable[[Path, float], None]
    code: str


class Unable(Exception):
    """A commit cannot do a work."""


TIMED = """
import json, resource, sys, tempfile, time
new = tempfile.mkdtemp(dir=".")
started = 0.0
def begin():
    global started
    started = time.process_time()
{code}
seconds = time.process_time() - started
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def collection(folder: Path, scale: float) -> None:
    """Write passages of 200 bytes, questions and a run of 50 passages each."""
    rng, size = random.Random(1), int(200_000 * scale)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(5000)]
    with (folder / "docs.jsonl").open("w") as docs:
        for number in range(size):
            text = " ".join(rng.choices(words, k=30))
            docs.write(f'{{"doc_id": "p{number}", "title": "t{number % 97}", "text": "{text}"}}\n')
    with (folder / "queries.jsonl").open("w") as queries, (folder / "run.trec").open("w") as run:
        for number in range(int(1000 * scale)):
            answers = [" ".join(rng.choices(words, k=2)), rng.choice(words)]
            queries.write(json.dumps({"query_id": f"q{number}", "text": "?", "answers": answers}) + "\n")
            for rank, doc in enumerate(rng.sample(range(size), 50)):
                run.write(f"q{number} Q0 p{doc} {rank} {-rank} run\n")


def runs(folder: Path, scale: float) -> None:
    """Write ten runs of 1,000 documents for each of 100 questions, and qrels."""
    rng = random.Random(1)
    queries = int(100 * scale) or 1
    for number in range(10):
        with (folder / f"run{number}.trec").open("w") as run:
            for query in range(queries):
                for rank, doc in enumerate(rng.sample(range(1_000_000), 1000)):
                    run.write(f"{query} Q0 D{doc:07d} {rank} {1000 - rank + rng.random():.4f} run{number}\n")
    with (folder / "qrels.txt").open("w") as qrels:
        for query in range(queries):
            qrels.writelines(f"{query} 0 D{doc:07d} {rng.randrange(3)}\n" for doc in rng.sample(range(1_000_000), 200))


def long_run(folder: Path, scale: float) -> None:
    """Write a run of 1,000 documents for each of 2,000 questions, in order."""
    rng = random.Random(1)
    with (folder / "run.trec").open("w") as run:
        for query in range(int(2000 * scale) or 1):
            for rank, doc in enumerate(rng.sample(range(1_000_000), 1000)):
                run.write(f"{query} Q0 D{doc:07d} {rank} {1000 - rank + rng.random():.4f} run\n")


def scores(folder: Path, scale: float, *, queries: int = 500, runs: int = 12, missing: float = 0.0) -> None:
    """Write scores of six labelings, of which a share is missing, and quality."""
    rng = random.Random(1)
    with (folder / "scores.csv").open("w") as table, (folder / "quality.csv").open("w") as quality:
        table.write("labeling,run,measure,query_id,value\n")
        quality.write("run,depth,model,query_id,metric,value,answer,status\n")
        for query in range(int(queries * scale)):
            for run in range(runs):
                good = rng.random() < 0.4 + run / runs / 4
                quality.write(f"r{run},5,m,q{query},em,{float(good)},x,ok\n")
                for labeling in range(6):
                    value = round(min(1, max(0, 0.4 * good + rng.random() * 0.6)), 3)
                    if rng.random() >= missing:
                        table.write(f"l{labeling},r{run},nDCG@5,q{query},{value}\n")


def nothing(folder: Path, scale: float) -> None:
    """Write nothing."""


COMPARE = """
import judgekit as jk
from judgekit.data.files import read_table
from judgekit.data.tables import QUALITY, SCORES
jk.compare
tables = read_table(SCORES, 'scores.csv'), read_table(QUALITY, 'quality.csv')
begin()
jk.compare(*tables, jk.Rules(primary='nDCG@5', resamples={resamples}), outcome='em')
"""

COMMAND = """
from judgekit.cli import main
try:
    main()
except SystemExit:
    print()
"""

WORKS = {
    "first-read": Work(
        "first read of a collection",
        collection,
        "from judgekit.data.readers import read_docs\nbegin()\nread_docs('docs.jsonl', index=new)",
    ),
    "look-up": Work(
        "look-ups in a collection on disk",
        collection,
        "import random\nfrom judgekit.data.readers import read_docs\ndocs = read_docs('docs.jsonl', index='kept')\n"
        "ids = [f'p{i}' for i in random.Random(1).choices(range(len(docs)), k=20000)]\nbegin()\n"
        "for start in range(0, 20000, 50):\n    docs.get(ids[start:start + 50])",
    ),
    "containment": Work(
        "containment over a collection on disk",
        collection,
        "import judgekit as jk\ndata = {'queries': 'queries.jsonl', 'docs': jk.read_docs('docs.jsonl', index='kept')}\n"
        "run = jk.read_run('run.trec')\njk.label\nbegin()\n"
        "jk.label('containment', runs=run, depth=50, asking=jk.Asking(cache=new), **data)",
    ),
    "runs": Work(
        "reading a million rows of runs",
        runs,
        "from judgekit.data.trec import read_run\nbegin()\nfor number in range(10):\n    read_run(f'run{number}.trec')",
    ),
    "run": Work(
        "reading a run of two million rows, in order",
        long_run,
        "from judgekit.data.trec import read_run\nbegin()\nread_run('run.trec')",
    ),
    "score": Work(
        "scoring runs from files",
        runs,
        "import judgekit as jk\njk.score\nbegin()\n"
        "jk.score([f'run{number}.trec' for number in range(10)], 'qrels.txt', ['nDCG@10', 'AP', 'RR', 'P@5'])",
    ),
    "compare": Work(
        "comparing six labelings over twelve runs",
        scores,
        COMPARE.format(resamples=300),
    ),
    "compare-large": Work(
        "the same over 60 runs and 2,000 questions",
        partial(scores, queries=2000, runs=60),
        COMPARE.format(resamples=1000),
    ),
    "compare-missing": Work(
        "the same, 2 % of the scores missing",
        partial(scores, missing=0.02),
        COMPARE.format(resamples=300),
    ),
    "help": Work(
        "`judgekit --help`",
        nothing,
        "sys.argv = ['judgekit', '--help']\n" + COMMAND,
    ),
    "complete": Work(
        "completion of a command's name in a shell",
        nothing,
        "import os\nsys.argv = ['judgekit']\n"
        "os.environ |= {'_JUDGEKIT_COMPLETE': 'complete_bash', 'COMP_WORDS': 'judgekit sc', 'COMP_CWORD': '1'}\n"
        + COMMAND,
    ),
    "sample": Work(
        "`run` of the sample, everything stored",
        nothing,
        "import judgekit as jk\nfrom pathlib import Path\nimport judgekit.sample, shutil, os\n"
        "home = Path(judgekit.sample.__file__).parent\n"
        "if not os.path.isdir('sample'):\n    shutil.copytree(home, 'sample')\n"
        "begin()\njk.run('sample/experiment.toml', out=new, asking=jk.Asking(cache='replies'))",
    ),
}


def unpack(ref: str, folder: Path) -> Path:
    """Unpack a commit, and return its folder."""
    archive = subprocess.run(["git", "-C", str(HERE), "archive", ref], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    return folder


def turn(tree: Path, folder: Path, code: str) -> tuple[float, float]:
    """Return the seconds and the MiB of one turn in a process of its own."""
    # Compiled modules are kept, as in an installation, else each turn would compile what it imports.
    compiled = folder.parent.parent / "compiled"
    environment = {**os.environ, "PYTHONPATH": str(tree), "OPENBLAS_NUM_THREADS": "1"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(compiled)}
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(code=code)], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        # An older release may lack what the work asks of it.
        said = done.stderr.strip().splitlines()
        raise Unable(f"{tree.name}: {said[-1] if said else 'it failed'}")
    seconds, mib = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), float(mib)


def main() -> None:
    """Time each work by turns, and print a line for it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("ref", help="commit or tag to compare with")
    parser.add_argument("works", nargs="*", choices=[[], *WORKS], help="works to time; all by default")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the size of the input")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        other = unpack(asked.ref, Path(place, "other"))
        print(f"{'work':44} {'here':>8} {asked.ref[:8]:>8}  ratio  {'here':>8} {asked.ref[:8]:>8}  ratio")
        for name in asked.works or WORKS:
            work = WORKS[name]
            folders = {tree: Path(place, name, tree.name) for tree in (HERE, other)}
            for folder in folders.values():
                folder.mkdir(parents=True)
                work.make(folder, asked.scale)
            turns: dict[Path, list[tuple[float, float]]] = {tree: [] for tree in folders}
            try:
                for number in range(asked.turns + 1):
                    for tree, folder in folders.items():
                        taken = turn(tree, folder, work.code)
                        # The first turn fills caches and indexes that later ones find.
                        if number:
                            turns[tree].append(taken)
            except Unable as problem:
                print(f"{work.title:44} not run: {problem}", flush=True)
                continue
            here, there = (min(seconds for seconds, _ in turns[tree]) for tree in (HERE, other))
            ours, theirs = (median(mib for _, mib in turns[tree]) for tree in (HERE, other))
            spent = f"{here:7.2f}s {there:7.2f}s  {here / there:.2f} x"
            print(f"{work.title:44} {spent} {ours:5.0f} MiB {theirs:4.0f} MiB {ours / theirs:.2f} x", flush=True)


if __name__ == "__main__":
    main()
