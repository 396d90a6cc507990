"""The conformance table: our values beside those of the field's references, ``make conformance``.

Each row says what was compared, how many values, and how many differ. References that may not be shipped are cloned at
a fixed commit, or taken from clones in the folder ``REFERENCES`` (OWNER+NAME/repo); where that fails the row says "not
run". The table is written to build/conformance.md; the exit status is 1 if a value differs.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import ir_measures
import numpy as np
import pytrec_eval
import scipy.stats
from rouge_score.rouge_scorer import RougeScorer

from judgekit.analysis.coefficients import coefficients
from judgekit.answers.quality import metric
from judgekit.answers.reading import Answer
from judgekit.data.documents import Query
from judgekit.data.labelings import Scale
from judgekit.data.runs import Ties
from judgekit.data.trec import read_qrels, read_run
from judgekit.metrics import Evaluation, evaluate
from tests.metrics.material import TREC
from tests.metrics.test_oracle import ASKED, PEERS, draw, engine, nested

ROOT = Path(__file__).resolve().parent.parent
SEEDS = range(40)
COMMITS = {
    "usnistgov/trec_eval": "f4253652c8efd0d86ddffd0d163cc0a0f813111a",
    "castorini/anserini-tools": "5b819c1a45c8a0a3ec9426f476694f44a29dfaf3",
}
GOLDEN = {
    "map": "AP", "Rprec": "Rprec", "bpref": "Bpref", "recip_rank": "RR", "ndcg": "nDCG", "num_ret": "NumRet",
    "num_rel": "NumRel", "num_rel_ret": "NumRelRet", "set_P": "SetP", "set_recall": "SetR", "set_F": "SetF",
    **{f"P_{k}": f"P@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"recall_{k}": f"R@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"ndcg_cut_{k}": f"nDCG@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"map_cut_{k}": f"AP@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"success_{k}": f"Success@{k}" for k in (1, 5, 10)},
}  # fmt: skip
"""Measures of trec_eval's own test files, and what they are called here."""

Pairs = Iterator[tuple[object, object]]
"""A value of the reference, and ours, in the form that the reference prints."""


class NotRun(Exception):
    """A reference is not to be had here."""


def clone(repo: str, folder: Path, *paths: str) -> Path:
    """Return a work tree of a repository at its fixed commit; ``paths`` are all that is needed of it."""
    tree = folder / repo.replace("/", "+")
    kept = Path(os.environ.get("REFERENCES", "")) / repo.replace("/", "+") / "repo"
    source = str(kept) if os.environ.get("REFERENCES") and kept.exists() else f"https://github.com/{repo}"
    tree.mkdir()
    if source == str(kept):
        archive = subprocess.run(["git", "--git-dir", source, "archive", COMMITS[repo], *paths], capture_output=True)
        unpacked = subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, capture_output=True)
        if archive.returncode or unpacked.returncode:
            raise NotRun(f"{source} does not hold commit {COMMITS[repo][:7]}")
        return tree
    git = ["git", "-C", str(tree)]
    for command in (
        ["init", "-q"],
        ["fetch", "-q", "--depth=1", source, COMMITS[repo]],
        ["checkout", "-q", "FETCH_HEAD"],
    ):
        done = subprocess.run([*git, *command], capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise NotRun(f"{repo} cannot be fetched")
    return tree


def trec_eval_files(folder: Path) -> Pairs:
    """trec_eval's own test files: what it prints, to its four decimals."""
    tests = clone("usnistgov/trec_eval", folder) / "test"
    for qrels, run, printed, level in (
        ("qrels.test", "results.test", "out.test.aq", 1),
        ("qrels.test", "results.trunc", "out.test.aqc", 1),
        ("qrels.rel_level", "results.test", "out.test.aql", 2),
    ):
        # One file has words behind the name of the run, which trec_eval skips and we refuse.
        lines = [" ".join(line.split()[:6]) for line in (tests / run).read_text().splitlines()]
        (folder / run).write_text("".join(f"{line}\n" for line in lines))
        labeling = read_qrels(tests / qrels)
        scale = Scale("grades", labeling.scale.high, labeling.scale.low, level)
        found = evaluate([read_run(folder / run)], [read_qrels(tests / qrels, scale=scale)], list(GOLDEN.values()))
        yield from printed_values(found, tests / printed, level)


def printed_values(found: Evaluation, printed: Path, level: int) -> Pairs:
    """Yield each value that a file of trec_eval's prints by query, and ours."""
    place = {name: number for number, name in enumerate(GOLDEN)}
    queries = {query: number for number, query in enumerate(found.query_ids)}
    for line in printed.read_text().splitlines():
        name, query, value = line.split(maxsplit=2)
        if name not in place or query not in queries or (level > 1 and name == "num_rel"):
            continue
        ours = found.values[place[name], 0, 0, queries[query]]
        yield value, f"{ours:.0f}" if name.startswith("num_") else f"{ours:.4f}"


def trec_eval_program(folder: Path) -> Pairs:
    """trec_eval built from source, on random runs and labels with ties, negative labels and odd ids."""
    tree = clone("usnistgov/trec_eval", folder)
    if not (shutil.which("make") and shutil.which("cc")):
        raise NotRun("there is no C compiler")
    built = subprocess.run(["make", "-C", str(tree), "trec_eval"], capture_output=True, text=True)
    if built.returncode:
        raise NotRun("trec_eval does not build here")
    for seed in SEEDS:
        run, labels, low = draw(seed)
        run_file, qrels_file, out = folder / "run", folder / "qrels", folder / "out"
        run_file.write_text("".join(f"{q} Q0 {d} 0 {s!r} x\n" for q, d, s in run.itertuples(index=False)))
        qrels_file.write_text("".join(f"{q} 0 {d} {r}\n" for q, d, r in labels.itertuples(index=False)))
        command = [str(tree / "trec_eval"), "-m", "all_trec", "-q", "-c", str(qrels_file), str(run_file)]
        out.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        scale = Scale("grades", 3, low, 1)
        found = evaluate([read_run(run_file)], [read_qrels(qrels_file, scale=scale)], list(GOLDEN.values()))
        yield from printed_values(found, out, 1)


def pytrec_eval_bits(folder: Path) -> Pairs:
    """pytrec_eval bit for bit, under its 32-bit scores."""
    for seed in SEEDS:
        run, labels, low = draw(seed)
        evaluator = pytrec_eval.RelevanceEvaluator(nested(labels, "relevance"), ASKED, relevance_level=1)
        wanted = evaluator.evaluate(nested(run, "score"))
        found = engine(run, labels, Scale("grades", 3, low, 1), list(TREC), Ties.DOC_DESC_32)
        for measure, name in enumerate(TREC.values()):
            for number, query in enumerate(found.query_ids):
                if query in wanted:
                    yield wanted[query][name], float(found.values[measure, 0, 0, number])


def ir_measures_values(folder: Path) -> Pairs:
    """ir_measures, to the last but one digit."""
    measures = PEERS.split()
    for seed in SEEDS:
        run, labels, low = draw(seed)
        found = engine(run, labels, Scale("grades", 3, low), measures, Ties.DOC_DESC_32)
        queries = {query: number for number, query in enumerate(found.query_ids)}
        retrieved = set(run["query_id"])
        for number, text in enumerate(measures):
            for value in ir_measures.iter_calc([ir_measures.parse_measure(text)], labels, run):
                if text == "NumRel" and value.query_id not in retrieved:
                    continue
                ours = float(found.values[number, 0, 0, queries[value.query_id]])
                yield value.value, value.value if math.isclose(ours, value.value, rel_tol=1e-14) else ours


def gdeval(folder: Path) -> Pairs:
    """gdeval.pl, the Web tracks' program: nDCG@20 with exponential gains and ERR@20, to its five decimals."""
    script = clone("castorini/anserini-tools", folder, "eval/gdeval.pl") / "eval" / "gdeval.pl"
    if not shutil.which("perl"):
        raise NotRun("there is no perl")
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        scores = {f"d{n:02}": float(n) for n in random.permutation(40)[:30]}
        grades = {f"d{n:02}": int(g) for n, g in enumerate(random.choice(5, 40, p=(0.5, 0.2, 0.15, 0.1, 0.05)))}
        run_file, qrels_file = folder / "run", folder / "qrels"
        run_file.write_text("".join(f"1 Q0 {d} 0 {s} x\n" for d, s in scores.items()))
        qrels_file.write_text("".join(f"1 0 {d} {g}\n" for d, g in grades.items()))
        printed = subprocess.run(["perl", str(script), str(qrels_file), str(run_file)], capture_output=True, text=True)
        values = printed.stdout.splitlines()[1].split(",")[2:]
        labeling = read_qrels(qrels_file, scale=Scale("grades", 4))
        found = evaluate([read_run(run_file)], [labeling], ["nDCG(dcg='exp-log2')@20", "ERR@20"])
        for value, ours in zip(values, found.values[:, 0, 0, 0], strict=True):
            yield value, f"{ours:.5f}"


def rank_correlations(folder: Path) -> Pairs:
    """SciPy's Kendall tau-b and Spearman rho, with ties, to twelve digits."""
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        first, second = random.integers(0, 6, (2, 50)).astype(float)
        found = coefficients(first, second)
        for name, reference in (("tau_b", scipy.stats.kendalltau), ("rho", scipy.stats.spearmanr)):
            yield round(float(reference(first, second).statistic), 12), round(found[name], 12)


def rouge(folder: Path) -> Pairs:
    """Google's rouge_score, to twelve digits."""
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"])
    words = ["the", "a", "bridge", "of", "stone", "was", "built", "in", "1412", "by", "masons", "toll"]
    for seed in SEEDS:
        random = np.random.default_rng(seed)
        said, reference = (" ".join(random.choice(words, random.integers(1, 20))) for _ in range(2))
        wanted = scorer.score(reference, said)
        for ours, theirs in (("rouge-1", "rouge1"), ("rouge-2", "rouge2"), ("rouge-l", "rougeL")):
            value = metric(ours).score(Answer(said), Query("q", "?", (reference,))).value
            yield round(wanted[theirs].fmeasure, 12), round(value or 0.0, 12)


ROWS: list[tuple[str, str, Callable[[Path], Pairs]]] = [
    ("trec_eval 10, its own test files", f"{len(GOLDEN)} measures, three option sets", trec_eval_files),
    ("trec_eval 10, built from source", f"{len(GOLDEN)} measures on random runs", trec_eval_program),
    ("pytrec_eval", f"{len(TREC)} measures on random runs, every bit", pytrec_eval_bits),
    ("ir_measures", f"{len(PEERS.split())} measures on random runs", ir_measures_values),
    ("gdeval.pl", "nDCG@20 (2^rel - 1), ERR@20", gdeval),
    ("SciPy", "Kendall's tau-b, Spearman's rho", rank_correlations),
    ("rouge_score", "ROUGE-1, ROUGE-2, ROUGE-L", rouge),
]


def main() -> int:
    """Write and print the table; return the exit status."""
    lines = ["| reference | what | values compared | different |", "| --- | --- | --- | --- |"]
    status = 0
    for name, what, compare in ROWS:
        with TemporaryDirectory() as folder:
            try:
                pairs = list(compare(Path(folder)))
            except NotRun as reason:
                lines.append(f"| {name} | {what} | not run: {reason} | |")
                continue
        different = [pair for pair in pairs if pair[0] != pair[1]]
        lines.append(f"| {name} | {what} | {len(pairs):,} | {len(different):,} |")
        status |= bool(different) or not pairs
        for theirs, ours in different[:5]:
            print(f"{name}: {theirs} there, {ours} here")
    text = "\n".join(lines) + "\n"
    out = ROOT / "build" / "conformance.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(text, encoding="utf-8")
    print(text, end="")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
