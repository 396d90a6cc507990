"""How fast measures are computed, beside the tools of the field, each in a process of its own on one core.

    python -m benchmarks.metrics_speed [S] [L]

``S`` is 5 runs x 700 queries x 100 documents under 4 labelings, ``L`` one run of 6,980 queries x 1,000 documents
(222 MB) under 4 sparse labelings; 16 measures, per query, from files to values, and for ``S`` also from DataFrames.
Each tool has imported and compiled what it needs before anything is timed, on files of two queries. Then it takes turns
with judgekit, so that other work on the machine falls on both. Seconds are processor time, the median of the turns.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

OURS = "P@1 P@5 P@10 R@5 R@10 R@100 Success@1 Success@5 Success@10 RR AP AP@10 nDCG nDCG@5 nDCG@10 Rprec"
TREC = {"P.1,5,10", "recall.5,10,100", "success.1,5,10", "recip_rank", "map", "map_cut.10", "ndcg", "ndcg_cut.5,10"}
RANX = "precision@1 precision@5 precision@10 recall@5 recall@10 recall@100 hit_rate@1 hit_rate@5 hit_rate@10 mrr map"
RANX += " map@10 ndcg ndcg@5 ndcg@10 r-precision"
SIZES = {"S": (5, 700, 100, 40_000, 20), "L": (1, 6_980, 1_000, 8_841_823, 5), "small": (2, 2, 10, 1_000, 5)}
"""Runs, queries, documents of each, documents of the collection, top documents of each run that labelings list."""
SECONDS = 4.0
"""Processor time after which a peer gets no further turn."""
TURNS = 9
"""The most turns that a peer gets."""
TOOLS = ("judgekit", "pytrec_eval", "ir_measures", "ranx")


def make(size: str, folder: Path) -> Path:
    """Write the runs and labelings of a size; the labelings list the top documents of all runs."""
    runs, queries, depth, docs, pool = SIZES[size]
    rng = np.random.default_rng(7)
    ids = [f"D{i:07d}" for i in rng.permutation(docs)] if size == "S" else [str(i) for i in range(docs)]
    tops: list[list[Any]] = [[] for _ in range(queries)]
    folder.mkdir(parents=True, exist_ok=True)
    for run in range(runs):
        with (folder / f"run{run}.trec").open("w") as file:
            for query in range(queries):
                near = rng.choice(4 * depth, depth, replace=False) + query * depth % (docs - 4 * depth)
                scores = np.sort(np.round(rng.gamma(2, 4, depth), 4))[::-1]
                tops[query].append(near[:pool])
                for rank, (doc, score) in enumerate(zip(near.tolist(), scores.tolist(), strict=True), 1):
                    file.write(f"{query + 1} Q0 {ids[doc]} {rank} {score:.4f} run{run}\n")
    for labeling in range(4):
        chances = [0.7, 0.15, 0.1, 0.05] if labeling % 2 else [0.8, 0.2]
        with (folder / f"labeling{labeling}.qrels").open("w") as file:
            for query in range(queries):
                pooled = np.unique(np.concatenate(tops[query]))
                for doc, grade in zip(pooled.tolist(), rng.choice(len(chances), len(pooled), p=chances), strict=True):
                    file.write(f"{query + 1} 0 {ids[doc]} {grade}\n")
    return folder


def judgekit(runs: list[Path], qrels: list[Path]) -> Callable[[], Any]:
    from judgekit.data.trec import read_qrels, read_run
    from judgekit.metrics import evaluate

    return lambda: evaluate([read_run(p) for p in runs], [read_qrels(p) for p in qrels], OURS.split()).values


def pytrec_eval(runs: list[Path], qrels: list[Path]) -> Callable[[], Any]:
    import pytrec_eval as tool

    def work() -> Any:
        labelings = [tool.parse_qrel(p.open()) for p in qrels]
        lists = [tool.parse_run(p.open()) for p in runs]
        evaluators = [tool.RelevanceEvaluator(labels, TREC | {"Rprec"}) for labels in labelings]
        return [[evaluator.evaluate(one) for one in lists] for evaluator in evaluators]

    return work


def ir_measures(runs: list[Path], qrels: list[Path]) -> Callable[[], Any]:
    import ir_measures as tool

    measures = [tool.parse_measure(text) for text in OURS.split()]

    def work() -> Any:
        lists = [list(tool.read_trec_run(str(p))) for p in runs]
        evaluators = [tool.evaluator(measures, list(tool.read_trec_qrels(str(p)))) for p in qrels]
        return [[list(evaluator.iter_calc(one)) for one in lists] for evaluator in evaluators]

    return work


def ranx(runs: list[Path], qrels: list[Path]) -> Callable[[], Any]:
    import ranx as tool

    def work() -> Any:
        lists = [tool.Run.from_file(str(p), kind="trec") for p in runs]
        labelings = [tool.Qrels.from_file(str(p), kind="trec") for p in qrels]
        return [[tool.evaluate(labels, one, RANX.split(), return_mean=False) for one in lists] for labels in labelings]

    return work


def frames(runs: list[Path], qrels: list[Path]) -> tuple[list[Any], list[Any]]:
    """Return the runs and labelings as DataFrames."""
    from judgekit.data.trec import read_qrels, read_run

    tables = [read_qrels(p).table.astype({"relevance": "int64"}) for p in qrels]
    return [read_run(p).frame() for p in runs], [t[["query_id", "doc_id", "relevance"]] for t in tables]


def judgekit_frames(runs: list[Any], qrels: list[Any]) -> Callable[[], Any]:
    from judgekit.data.labelings import Labeling, Scale
    from judgekit.data.runs import Run
    from judgekit.metrics import evaluate

    def work() -> Any:
        lists = [Run.from_frame(frame, f"run{i}") for i, frame in enumerate(runs)]
        labelings = [Labeling(f"labeling{i}", Scale("grades", 3), frame) for i, frame in enumerate(qrels)]
        return evaluate(lists, labelings, OURS.split()).values

    return work


def pytrec_eval_frames(runs: list[Any], qrels: list[Any]) -> Callable[[], Any]:
    import pytrec_eval as tool

    def nested(frame: Any, column: str) -> dict[str, dict[str, Any]]:
        groups = frame.groupby("query_id", sort=False)
        return {q: dict(zip(g["doc_id"], g[column].tolist(), strict=True)) for q, g in groups}

    def work() -> Any:
        lists = [nested(frame, "score") for frame in runs]
        labelings = [nested(frame, "relevance") for frame in qrels]
        evaluators = [tool.RelevanceEvaluator(labels, TREC | {"Rprec"}) for labels in labelings]
        return [[evaluator.evaluate(one) for one in lists] for evaluator in evaluators]

    return work


def ir_measures_frames(runs: list[Any], qrels: list[Any]) -> Callable[[], Any]:
    import ir_measures as tool

    measures = [tool.parse_measure(text) for text in OURS.split()]

    def work() -> Any:
        evaluators = [tool.evaluator(measures, frame) for frame in qrels]
        return [[list(evaluator.iter_calc(frame)) for frame in runs] for evaluator in evaluators]

    return work


def ranx_frames(runs: list[Any], qrels: list[Any]) -> Callable[[], Any]:
    import ranx as tool

    # It takes ids of dtype object only; converting them is not counted.
    runs, qrels = ([f.astype({"query_id": object, "doc_id": object}) for f in some] for some in (runs, qrels))

    def work() -> Any:
        lists = [tool.Run.from_df(f, q_id_col="query_id", doc_id_col="doc_id", score_col="score") for f in runs]
        labelings = [
            tool.Qrels.from_df(f, q_id_col="query_id", doc_id_col="doc_id", score_col="relevance") for f in qrels
        ]
        return [[tool.evaluate(labels, one, RANX.split(), return_mean=False) for one in lists] for labels in labelings]

    return work


def peak_memory() -> float:
    """Return the most memory that this process has held, in MiB.

    Not ``ru_maxrss``: a process begins with that of the one that started it.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in status if line.startswith("VmHWM:"))) / 1024


def child(tool: str, folder: Path) -> None:
    """Do one tool's work in this process whenever a line asks for it, and answer with what it took."""
    import pyarrow

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pyarrow.set_cpu_count(1)

    def work_on(files: Path) -> Callable[[], Any]:
        runs, qrels = sorted(files.glob("*.trec")), sorted(files.glob("*.qrels"))
        sources = frames(runs, qrels) if tool.endswith("_frames") else (runs, qrels)
        made: Callable[[], Any] = globals()[tool](*sources)
        return made

    with tempfile.TemporaryDirectory() as scratch:
        work_on(make("small", Path(scratch)))()
    work = work_on(folder)
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.process_time()
        work()
        print(time.process_time() - start, peak_memory(), flush=True)


class Tool:
    """A tool in a process of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.metrics_speed", "child", name, str(folder)]
        environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self._answer()
        self.peak = 0.0

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildProcessError(f"{self._process.args} ended")
        return line

    def turn(self) -> float:
        """Do the work once; return its seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seconds, peak = map(float, self._answer().split())
        # The peak is that of doing it once: allocators keep what later times could use.
        self.peak = self.peak or peak
        return seconds

    def __enter__(self) -> Tool:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__(None, None, None)


def cpu(command: list[str]) -> float:
    """Return the processor time that a process of its own takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Found(NamedTuple):
    """What one tool took, beside the first of the tools, which took turns with it."""

    seconds: float
    ours: float
    peak: float
    """MiB."""

    @property
    def ratio(self) -> float:
        """How many times our time it took."""
        return self.seconds / self.ours

    def __str__(self) -> str:
        return f"{self.seconds:8.3f} s {self.peak:6.0f} MiB {self.ratio:6.1f} x"


def compare(folder: Path, tools: tuple[str, ...] = TOOLS) -> dict[str, Found]:
    """Measure the first tool and each of the others by turns."""
    found, every = {}, []
    with Tool(tools[0], folder) as us:
        us.turn()
        for name in tools[1:]:
            theirs, ours = [], [us.turn()]
            with Tool(name, folder) as peer:
                while not theirs or (sum(theirs) < SECONDS and len(theirs) < TURNS):
                    theirs.append(peer.turn())
                    before = len(ours)
                    while sum(ours[before:]) < theirs[-1] / 6:
                        ours.append(us.turn())
                found[name] = Found(median(theirs), median(ours), peer.peak)
                every += ours
        found[tools[0]] = Found(median(every), median(every), us.peak)
    return found


def main(sizes: list[str]) -> None:
    """Compare on the given sizes."""
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes or ["S", "L"]:
            folder = make(size, Path(scratch) / size)
            for suffix in ("", "_frames") if size == "S" else ("",):
                for tool, one in compare(folder, tuple(tool + suffix for tool in TOOLS)).items():
                    print(f"{size} {tool:24s}{one}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["once"]:
        files = Path(sys.argv[3])
        globals()[sys.argv[2]](sorted(files.glob("*.trec")), sorted(files.glob("*.qrels")))()
    else:
        main(sys.argv[1:])
