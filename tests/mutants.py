"""Mutants of a room under the room's own tests: ``make mutants ROOM=metrics`` (also ``N=30 SEED=1``).

cosmic-ray (MIT) lists mutants before it runs them, so that a random sample can be taken; mutmut runs a whole
package and has no sample. A mutant is tried on the tests that run its line, then on all of the room's if it survives,
or if its line runs at import only. Unions in annotations are no operators: exchanging them changes nothing that runs.
Nor does what `NO_CHANGE` matches: flags of dataclasses, of zip and of caches, and what is imported for types alone.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.tools.filters.operators_filter import OperatorsFilter
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome
from coverage import CoverageData

ROOT = Path(__file__).parent.parent
FOLDERS = ("judgekit", "prompts", "tests", "examples", "docs", "benchmarks")
FILES = ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile")
NO_OPERATORS = r"core/ReplaceBinaryOperator_BitOr_.*"
NO_CHANGE = re.compile(r".*\b(slots|frozen|strict|repr|compare)=\0|\s*\0?@\0?(lru_)?cache\b|if \0?TYPE_CHECKING")
"""What stands in a line before and behind a mutant's place, which the NUL marks."""

CONFIG = """[cosmic-ray]
module-path = "judgekit/{room}"
timeout = 0
test-command = ""

[cosmic-ray.distributor]
name = "local"
"""
TIMEOUT_S = 300.0


def sampled(session: WorkDB, n: int, seed: int) -> list[MutationSpec]:
    """Return a mutant of each of n places, drawn with equal chances."""
    OperatorsFilter()._skip_filtered(session, [NO_OPERATORS])
    places: dict[tuple[str, tuple[int, int]], list[MutationSpec]] = {}
    for item in session.pending_work_items:
        (mutation,) = item.mutations
        row, column = mutation.start_pos
        line = Path(mutation.module_path).read_text().splitlines()[row - 1]
        if not NO_CHANGE.match(f"{line[:column]}\0{line[column:]}"):
            places.setdefault((str(mutation.module_path), mutation.start_pos), []).append(mutation)
    chance = random.Random(seed)
    return [chance.choice(places[place]) for place in chance.sample(sorted(places), min(n, len(places)))]


def tests_of(mutant: MutationSpec, covered: CoverageData) -> list[str]:
    """Return the tests that run a mutant's lines; none if these run at import only."""
    contexts = covered.contexts_by_lineno(str(Path(mutant.module_path).resolve()))
    lines = range(mutant.start_pos[0], mutant.end_pos[0] + 1)
    return sorted({context.rpartition("|")[0] for line in lines for context in contexts.get(line, ()) if context})


def main(room: str, n: int, seed: int) -> None:
    """Print which of n mutants of a room its tests kill, with the change of each that survives."""
    with TemporaryDirectory() as folder:
        for name in FOLDERS:
            shutil.copytree(ROOT / name, Path(folder, name))
        for name in FILES:
            shutil.copy2(ROOT / name, Path(folder, name))
        os.chdir(folder)
        os.environ |= {"PYTHONPATH": folder, "CI": "1"}
        Path("mutants.toml").write_text(CONFIG.format(room=room))
        pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
        contexts = [f"--cov=judgekit/{room}", "--cov-context=test", "--cov-report="]
        subprocess.run([*pytest, *contexts, f"tests/{room}"], check=True)
        subprocess.run(
            [Path(sys.executable).with_name("cosmic-ray"), "init", "mutants.toml", "session.sqlite"], check=True
        )
        with use_db("session.sqlite", mode=WorkDB.Mode.open) as session:
            mutants = sampled(session, n, seed)
        covered, killed = CoverageData(".coverage"), 0
        covered.read()
        for mutant in mutants:
            Path("tests.txt").write_text("\n".join(tests_of(mutant, covered) or [f"tests/{room}"]))
            result = mutate_and_test([mutant], " ".join([*pytest, "@tests.txt"]), TIMEOUT_S)
            # It may change what tests there are, or what is worked out once, by whichever test comes first.
            if result.test_outcome != TestOutcome.KILLED or "ERROR: not found" in (result.output or ""):
                result = mutate_and_test([mutant], " ".join([*pytest, f"tests/{room}"]), TIMEOUT_S)
            killed += result.test_outcome == TestOutcome.KILLED
            if result.test_outcome != TestOutcome.KILLED:
                print(result.diff or result.output, "\n", flush=True)
        print(f"{room}: {killed} of {len(mutants)} mutants killed")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
