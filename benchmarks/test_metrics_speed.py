"""The speed that the metrics engine promises, as ratios to the tools of the field measured in the same run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import label_memory
from benchmarks.metrics_speed import OURS, TOOLS, compare, cpu, make

pytest.importorskip("ranx", reason="a peer of the benchmark: pip install --group bench")
pytestmark = pytest.mark.bench


@pytest.mark.parametrize(
    ("size", "suffix", "factors"),
    [
        ("S", "", {"pytrec_eval": 6, "ranx": 12, "ir_measures": 24}),
        ("S", "_frames", {"pytrec_eval": 14, "ranx": 16, "ir_measures": 60}),
        ("L", "", {"pytrec_eval": 10, "ranx": 10, "ir_measures": 24}),
    ],
)
def test_scoring_is_many_times_as_fast_as_the_peers(
    tmp_path: Path, size: str, suffix: str, factors: dict[str, float]
) -> None:
    found = compare(size, tmp_path, tuple(tool + suffix for tool in TOOLS))
    ours = found[f"judgekit{suffix}"]
    for peer, factor in factors.items():
        assert found[peer + suffix]["best"] >= factor * ours["best"], peer
    if size == "L":
        assert ours["peak"] <= found["pytrec_eval"]["peak"] / 2


def test_a_cold_process_costs_no_more_than_pytrec_evals(tmp_path: Path) -> None:
    make("S", tmp_path)
    runs = [f"--run={path}" for path in sorted(tmp_path.glob("*.trec"))]
    qrels = [f"--qrels={path}" for path in sorted(tmp_path.glob("*.qrels"))]
    ours = [sys.executable, "-m", "judgekit", "score", *runs, *qrels, "--measures", OURS]
    theirs = [sys.executable, "-m", "benchmarks.metrics_speed", "once", "pytrec_eval", str(tmp_path)]
    spent = {name: min(cpu(command) for _ in range(5)) for name, command in (("ours", ours), ("theirs", theirs))}
    print(f"\ncold: judgekit score {spent['ours']:.2f} s, pytrec_eval {spent['theirs']:.2f} s")
    assert spent["ours"] <= spent["theirs"]


def test_scoring_small_files_takes_little_more_than_importing_what_it_needs(tmp_path: Path) -> None:
    (run := tmp_path / "small.trec").write_text("1 Q0 a 1 2.0 r\n1 Q0 b 2 1.0 r\n")
    (qrels := tmp_path / "small.qrels").write_text("1 0 a 1\n")
    commands = {
        "judgekit score": ["-m", "judgekit", "score", f"--run={run}", f"--qrels={qrels}", "--measures=nDCG@10 P@5 AP"],
        "ir_measures": ["-m", "ir_measures", str(qrels), str(run), "nDCG@10 P@5 AP"],
        "importing Typer, its pydantic, Arrow": ["-c", "import typer._adapters, pyarrow.compute, pyarrow.csv"],
    }
    spent = {name: min(cpu([sys.executable, *command]) for _ in range(7)) for name, command in commands.items()}
    print("\nsmall files: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in spent.items()))
    assert spent["judgekit score"] <= 1.75 * spent["importing Typer, its pydantic, Arrow"]


def test_a_pair_takes_little_memory_while_it_is_labelled() -> None:
    print()
    slope = label_memory.compare(100_000, 400_000)
    assert max(slope["read"], slope["label"]) <= 100
    assert slope["write"] <= 300  # it holds blocks of rows, which these sizes do not fill yet: 150 from a million on


def test_help_and_import_answer_at_once() -> None:
    nothing = min(cpu([sys.executable, "-c", "pass"]) for _ in range(5))
    imported = min(cpu([sys.executable, "-c", "import judgekit"]) for _ in range(5))
    helped = min(cpu([sys.executable, "-m", "judgekit", "--help"]) for _ in range(5))
    print(f"\npython -c pass {nothing:.3f} s, import judgekit {imported:.3f} s, judgekit --help {helped:.3f} s")
    assert imported <= 3 * nothing + 0.02
    assert helped <= 0.2
    heavy = "import judgekit, sys; assert not {'numpy', 'pandas', 'pyarrow', 'openai'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", heavy], check=True)
