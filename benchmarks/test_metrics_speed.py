"""The speed that the metrics engine promises, as ratios to the tools of the field measured in the same run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import collection, label_memory, scale
from benchmarks.metrics_speed import OURS, TOOLS, compare, cpu, make

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(
    ("size", "suffix", "factors"),
    [
        ("S", "", {"pytrec_eval": 5, "ranx": 12, "ir_measures": 24}),
        ("S", "_frames", {"pytrec_eval": 14, "ranx": 16, "ir_measures": 60}),
        ("L", "", {"pytrec_eval": 9, "ranx": 9, "ir_measures": 20}),
    ],
)
def test_scoring_is_many_times_as_fast_as_the_peers(
    tmp_path: Path, size: str, suffix: str, factors: dict[str, float], say: Callable[[str], None]
) -> None:
    pytest.importorskip("ranx", reason="a peer of the benchmark: pip install --group bench")
    found = compare(make(size, tmp_path), tuple(tool + suffix for tool in TOOLS))
    for tool, one in found.items():
        say(f"scoring {size} {tool:20s}{one}")
    for peer, factor in factors.items():
        assert found[peer + suffix].ratio >= factor, peer
    if size == "L":
        assert found["judgekit"].peak <= found["pytrec_eval"].peak / 2


def least(commands: dict[str, list[str]], turns: int) -> dict[str, float]:
    """Return the least processor time of Python commands that take turns."""
    spent = [{name: cpu([sys.executable, *command]) for name, command in commands.items()} for _ in range(turns)]
    return {name: min(one[name] for one in spent) for name in commands}


def told(what: str, spent: dict[str, float]) -> str:
    return f"{what}: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in spent.items())


def test_a_cold_process_costs_no_more_than_pytrec_evals(tmp_path: Path, say: Callable[[str], None]) -> None:
    make("S", tmp_path)
    runs = [f"--run={path}" for path in sorted(tmp_path.glob("*.trec"))]
    qrels = [f"--qrels={path}" for path in sorted(tmp_path.glob("*.qrels"))]
    ours = ["-m", "judgekit", "score", *runs, *qrels, "--measures", OURS]
    theirs = ["-m", "benchmarks.metrics_speed", "once", "pytrec_eval", str(tmp_path)]
    spent = least({"judgekit score": ours, "pytrec_eval": theirs}, turns=3)
    say(told("cold process, S", spent))
    assert spent["judgekit score"] <= spent["pytrec_eval"]


def test_scoring_small_files_takes_little_more_than_importing_what_it_needs(
    tmp_path: Path, say: Callable[[str], None]
) -> None:
    (run := tmp_path / "small.trec").write_text("1 Q0 a 1 2.0 r\n1 Q0 b 2 1.0 r\n")
    (qrels := tmp_path / "small.qrels").write_text("1 0 a 1\n")
    commands = {
        "judgekit score": ["-m", "judgekit", "score", f"--run={run}", f"--qrels={qrels}", "--measures=nDCG@10 P@5 AP"],
        "ir_measures": ["-m", "ir_measures", str(qrels), str(run), "nDCG@10 P@5 AP"],
        "importing Typer, its pydantic, Arrow": ["-c", "import typer._adapters, pyarrow.compute, pyarrow.csv"],
    }
    spent = least(commands, turns=9)
    say(told("small files", spent))
    assert spent["judgekit score"] <= 1.5 * spent["importing Typer, its pydantic, Arrow"]


def test_a_pair_takes_little_memory_while_it_is_labelled(say: Callable[[str], None]) -> None:
    few, many = 100_000, 400_000
    small, large = label_memory.measure(few), label_memory.measure(many)
    slope = {stage: (large[stage] - small[stage]) * 2**20 / (many - few) for stage in small}
    stages = ", ".join(f"{stage} {large[stage]:.0f} MiB and {bytes:.0f} bytes" for stage, bytes in slope.items())
    say(f"{many:,} pairs, and each further one: {stages}")
    assert max(slope["read"], slope["label"]) <= 100
    assert slope["write"] <= 300  # it holds blocks of rows, which these sizes do not fill yet: 150 from a million on


@pytest.mark.timeout(900)
def test_a_run_in_parts_takes_little_more_time_than_one_piece(tmp_path: Path, say: Callable[[str], None]) -> None:
    scale.lists(tmp_path, 1, 5000, 1_000_000, np.random.default_rng(1))
    turns = [(scale.scored(tmp_path, 0), scale.scored(tmp_path, 1 << 40)) for _ in range(3)]
    parts, whole = (min(turn[which].seconds for turn in turns) for which in (0, 1))
    in_parts, at_once = turns[0]
    memory = f"{in_parts.peak:.0f} MiB for {at_once.peak:.0f}"
    say(f"5,000,000 rows of a run scored in parts: {parts:.2f} s, {parts / whole:.2f} x one piece, {memory}")
    assert in_parts.values == at_once.values
    assert parts <= 1.5 * whole
    # At any number of rows; one piece takes as much at six million.
    assert in_parts.peak <= 450


def test_help_and_import_answer_at_once(say: Callable[[str], None]) -> None:
    commands = {"python -c pass": ["-c", "pass"], "import judgekit": ["-c", "import judgekit"]}
    spent = least(commands | {"judgekit --help": ["-m", "judgekit", "--help"]}, turns=7)
    say(told("start", spent))
    assert spent["import judgekit"] <= 3 * spent["python -c pass"] + 0.02
    assert spent["judgekit --help"] <= 0.2
    heavy = "import judgekit, sys; assert not {'numpy', 'pandas', 'pyarrow', 'openai'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", heavy], check=True)


def test_a_second_command_finds_the_index_of_a_collection(tmp_path: Path, say: Callable[[str], None]) -> None:
    docs = collection.make(300_000, tmp_path / "docs.jsonl")
    first, second = (collection.measured(docs, tmp_path / "index") for _ in range(2))
    say(f"300,000 passages opened: {first['open_s']:.2f} s CPU, by a second command {second['open_s']:.3f} s")
    assert second["open_s"] <= first["open_s"] / 10
