"""Mutants of a room under the room's own tests: ``make mutants ROOM=metrics`` (also ``N=30 SEED=1``).

cosmic-ray (MIT) lists mutants before it runs them, so that a random sample can be taken; mutmut runs a whole
package and has no sample. Unions in annotations are no operators: exchanging them changes nothing that runs.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from cosmic_ray.tools.filters.operators_filter import OperatorsFilter
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

ROOT = Path(__file__).parent.parent
TREE = ("judgekit", "prompts", "tests", "examples", "docs", "pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
NO_OPERATORS = r"core/ReplaceBinaryOperator_BitOr_.*"
CONFIG = """[cosmic-ray]
module-path = "judgekit/{room}"
timeout = {timeout}
test-command = "{python} -m pytest -q -x -n 0 -p no:cacheprovider tests/{room}"

[cosmic-ray.distributor]
name = "local"
"""


def sampled(session: WorkDB, n: int, seed: int) -> None:
    """Leave one mutant of each of n places, drawn with equal chances, and skip the others."""
    OperatorsFilter()._skip_filtered(session, [NO_OPERATORS])
    places: dict[tuple[str, tuple[int, int]], list[str]] = {}
    for item in session.pending_work_items:
        (mutation,) = item.mutations
        places.setdefault((str(mutation.module_path), mutation.start_pos), []).append(item.job_id)
    chance = random.Random(seed)
    drawn = {chance.choice(places[place]) for place in chance.sample(sorted(places), min(n, len(places)))}
    for item in list(session.pending_work_items):
        if item.job_id not in drawn:
            session.set_result(item.job_id, WorkResult(WorkerOutcome.SKIPPED))


def main(room: str, n: int, seed: int, timeout: float) -> None:
    """Print which of n mutants of a room its tests kill, with the change of each that survives."""
    with TemporaryDirectory() as folder:
        for name in TREE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, Path(folder, name))
        Path(folder, "mutants.toml").write_text(CONFIG.format(room=room, timeout=timeout, python=sys.executable))
        env = {**os.environ, "PYTHONPATH": folder, "JUDGEKIT_SHARED": str(ROOT.parent / "shared")}
        ray = [str(Path(sys.executable).with_name("cosmic-ray"))]
        session = str(Path(folder, "session.sqlite"))
        for step in (["baseline", "mutants.toml"], ["init", "mutants.toml", session]):
            subprocess.run([*ray, *step], cwd=folder, env=env, check=True)
        with use_db(session, mode=WorkDB.Mode.open) as db:
            sampled(db, n, seed)
        subprocess.run([*ray, "exec", "mutants.toml", session], cwd=folder, env=env, check=True)
        with use_db(session, mode=WorkDB.Mode.open) as db:
            results = [result for _, result in db.results if result.worker_outcome == WorkerOutcome.NORMAL]
        survivors = [result for result in results if result.test_outcome == TestOutcome.SURVIVED]
        for result in survivors:
            print(result.diff, "\n")
        print(f"{room}: {len(results) - len(survivors)} of {len(results)} mutants killed")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), timeout=300)
