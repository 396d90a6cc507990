# /// script
# dependencies = ["ir_measures==0.4.3"]
# ///
"""gdeval.pl, the Perl script of TREC's Web track, as ir_measures brings it: its values by query."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ir_measures
from worlds import CUTOFFS, World, record

SCRIPT = Path(ir_measures.__file__).parent / "bin" / "gdeval.pl"


def values(world: World) -> dict[str, Any]:
    """Return the values by measure and query."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder) / "qrels", Path(folder) / "run"
        qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, grades in world.qrels.items() for d, g in grades.items()))
        run.write_text("".join(f"{q} Q0 {d} 0 {s!r} x\n" for q, docs in world.run.items() for d, s in docs.items()))
        for cutoff in CUTOFFS:
            command = ["perl", str(SCRIPT), str(qrels), str(run), str(cutoff)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
            names = said[0].split(",")[2:]
            for line in said[1:]:
                _, query, *numbers = line.split(",")
                for name, number in zip(names, numbers, strict=True):
                    found.setdefault(name, {})[query] = float(number)
    return found


record(Path(sys.argv[1]), values)
