"""Open a large collection: the first command builds the index, a second one finds it; processor time and memory.

Run: python benchmarks/collection.py 1000000 3000000 [--out benchmarks/collection.csv]
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = "word " * 20

OPENED = """
import json, random, resource, sys, time
started = time.process_time()
from judgekit.data.readers import read_docs
imported = time.process_time()
docs = read_docs(sys.argv[1], index=sys.argv[2])
opened = time.process_time()
count = len(docs)
ids = [f"p{i}" for i in random.Random(1).sample(range(count), 10_000)]
found = docs.get(ids)
looked_up = time.process_time()
assert [doc.doc_id for doc in found] == ids
memory = int(next(l for l in open("/proc/self/status") if l.startswith("RssAnon")).split()[1]) / 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
times = {"import_s": imported - started, "open_s": opened - imported, "lookup_us": (looked_up - opened) / 1e4 * 1e6}
print(json.dumps({"docs": count, **times, "anonymous_mib": memory, "peak_mib": peak}))
"""


def make(size: int, path: Path) -> Path:
    """Write a collection of so many passages."""
    with path.open("w") as stream:
        stream.writelines(f'{{"doc_id": "p{i}", "title": "t{i % 97}", "text": "{WORDS}{i}"}}\n' for i in range(size))
    return path


def measured(path: Path, index: Path) -> dict[str, float]:
    """Open a collection in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(path), str(index)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Measure each size twice: without an index, and with one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sizes", nargs="+", type=int)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = []
    for size in asked.sizes:
        with tempfile.TemporaryDirectory() as folder:
            path, index = make(size, Path(folder, "docs.jsonl")), Path(folder, "index")
            for command in ("first", "second"):
                rows.append({"command": command, **{k: round(v, 3) for k, v in measured(path, index).items()}})
                print(rows[-1], flush=True)
    if asked.out:
        with asked.out.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
