"""Each tool's number by its spelling: what docs/peers.toml declares, against values that the tools gave."""

import json
import shlex
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.frames import as_labelings, as_runs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run, Ties
from judgekit.errors import UsageError
from judgekit.metrics import PEERS, Evaluation, Peer, evaluate
from tests.exports.worlds import CUTOFFS, SEEDS, world

HERE = Path(__file__).resolve().parent
EXPORTS = HERE.parent / "exports"
DECLARED = tomllib.loads((HERE.parent.parent / "docs" / "peers.toml").read_text("utf-8"))["peers"]


def asked(measures: dict[str, str]) -> dict[str, str]:
    """Return the spellings by the tool's names, with each of the cutoffs."""
    found = {}
    for theirs, ours in measures.items():
        for cutoff in CUTOFFS if theirs.endswith(("@k", "_k", "=k")) else ("",):
            spelled = ours.replace("@k", f"@{cutoff}")
            if ours:
                found[f"{theirs.removesuffix('k')}{cutoff}" if cutoff else theirs] = spelled
    return found


EXACT = {"pytrec_eval"}
"""Tools whose values by query are ours to the last bit."""
ROWS = [
    pytest.param(row, theirs, ours, id=f"{row['export']}-{theirs}")
    for row in DECLARED
    for theirs, ours in asked(row["measures"]).items()
]


@cache
def recorded(export: str) -> Any:
    (folder,) = EXPORTS.glob(f"{export}-*")
    return json.loads((folder / "values.json").read_text("utf-8"))


def rules_of(options: str) -> Peer:
    """Return how `judgekit score` scores with some options."""
    given = shlex.split(options)
    rules = Peer(Ties.DOC_DESC, "judged")
    if "--like" in given:
        rules = PEERS[given[given.index("--like") + 1]]
    if "--ties" in given:
        rules = replace(rules, ties=Ties(given[given.index("--ties") + 1]))
    return replace(rules, drop_self=True) if "--drop-self" in given else rules


@cache
def drawn(seed: int, rules: Peer, binary: bool) -> tuple[Run, Labeling]:
    """Return the run and the labels of a world."""
    drawn = world(seed)
    rows = [(query, doc, score) for query, docs in drawn.run.items() for doc, score in docs.items()]
    run = Run("run", *zip(*rows, strict=True), ties=rules.ties)  # type: ignore[arg-type]
    if rules.drop_self:
        run = run.without_own()
    labels = [(query, doc, grade) for query, grades in drawn.qrels.items() for doc, grade in grades.items()]
    frame = pd.DataFrame(labels, columns=["query_id", "doc_id", "relevance"])
    if binary:
        frame["relevance"] = frame["relevance"].clip(upper=1)
    return run, Labeling("qrels", Scale("grades", 4), frame, negative=True)


def scored(seed: int, rules: Peer, measure: str, *, binary: bool = False) -> Evaluation:
    run, labeling = drawn(seed, rules, binary)
    return evaluate([run], [labeling], [measure], over=rules.over)


@pytest.mark.parametrize(("row", "theirs", "ours"), ROWS)
def test_a_spelling_gives_the_number_of_the_tool(row: dict[str, Any], theirs: str, ours: str) -> None:
    """By query where the tool says it, which is the last bit where nothing is rounded; else the mean."""
    rules, digits, compared = rules_of(row["options"]), row.get("digits"), 0
    for seed in SEEDS:
        wanted = recorded(row["export"])[str(seed)][theirs]
        if wanted is None:
            continue
        found = scored(seed, rules, ours, binary=row.get("binary", False))
        compared += 1
        if not isinstance(wanted, dict):
            mean = found.summary[0].value
            assert mean == pytest.approx(wanted, rel=1e-12) if digits is None else round(mean, digits) == wanted, seed
            continue
        values = dict(zip(found.query_ids, found.values[0, 0, 0].tolist(), strict=True))
        there = {query: value for query, value in values.items() if value == value}
        if rules.over == "judged":  # a tool that is asked for one query after another
            there = {query: there[query] for query in wanted}
        if "within" in row:
            assert there == pytest.approx(wanted, abs=row["within"]), f"world {seed}"
            continue
        if digits is not None:
            there = {query: float(f"{value:.{digits}f}") for query, value in there.items()}
        exact = row["export"] in EXACT or digits is not None
        assert there == (wanted if exact else pytest.approx(wanted, rel=1e-12)), f"world {seed}"
    assert compared > 20


@pytest.mark.parametrize("other", [{"ties": Ties.DOC_DESC}, {"drop_self": False}, {"over": "judged"}], ids=str)
def test_each_rule_of_beir_tells_in_these_worlds(other: dict[str, Any]) -> None:
    """Else a mistake in it would pass unseen."""
    rules, differ = replace(PEERS["beir"], **other), 0
    for seed in SEEDS:
        value = scored(seed, rules, "nDCG@10").summary[0].value
        differ += round(value, 5) != recorded("beir")[str(seed)]["NDCG@10"]
    assert differ > 5


def test_gdeval_leaves_queries_out_that_have_no_grade_above_zero() -> None:
    rules, lacking = replace(PEERS["gdeval"], over="run"), 0
    for seed in SEEDS:
        found = scored(seed, rules, "ERR@10")
        lacking += found.summary[0].defined - len(recorded("gdeval")[str(seed)]["err@10"])
    assert lacking > 0


NEAREST = {
    ("ranx", "bpref"): ("Bpref", "--ties run-order"),
    ("trectools", "get_bpref"): ("Bpref", ""),
    ("cwl_eval", "NDCG-k@k"): ("nDCG@k", "--ties run-order"),
    ("torchmetrics", "recall, top_k=k"): ("R@k", ""),
    ("torchmetrics", "r_precision"): ("Rprec", ""),
    ("torchmetrics", "normalized_dcg, top_k=k"): ("nDCG(ideal=retrieved)@k", ""),
}
"""Measures that no spelling gives, and the one that comes nearest."""


def test_what_no_spelling_gives_differs_from_the_nearest_one() -> None:
    unspelled = {
        (row["export"], theirs)
        for row in DECLARED
        for theirs, ours in row["measures"].items()
        if not ours and row["why"]
    }
    assert unspelled == {*NEAREST, ("beir", "Hole@k"), ("torchmetrics", "fall_out, top_k=k")}
    for (export, theirs), (ours, options) in NEAREST.items():
        binary = export != "ranx" and "dcg" not in theirs.lower()
        asked_for, spelled = theirs.removesuffix("k") + "3" * theirs.endswith("k"), ours.replace("@k", "@3")
        differ = 0
        for seed in SEEDS:
            wanted = recorded(export)[str(seed)][asked_for]
            found = scored(seed, rules_of(options), spelled, binary=binary)
            if isinstance(wanted, dict):
                values = dict(zip(found.query_ids, found.values[0, 0, 0].tolist(), strict=True))
                differ += any(abs(values[query] - value) > 1e-4 for query, value in wanted.items())
            elif wanted is not None:
                differ += found.summary[0].value != pytest.approx(wanted)
        assert differ > 3, theirs


RUN = {"a": {"a": 9.0, "d1": 8.0, "d2": 8.0}, "b": {"b": 1.0}, "x": {"d1": 1.0}}
QRELS = {"a": {"d1": 1}, "b": {"d1": 1}, "c": {"d1": 1}, "d": {"d1": 0}}


def test_python_scores_like_a_tool() -> None:
    """Of a, b and c: d2 stands above d1 by its id, b has nothing left, and the run lacks c."""

    def mean(**how: Any) -> float:
        return float(jk.score(RUN, QRELS, "RR@10", **how).means()["value"].iloc[0])

    assert mean() == pytest.approx(1 / 3 / 4)
    assert mean(drop_self=True) == pytest.approx(1 / 2 / 4)
    assert mean(like="beir") == pytest.approx(1 / 2 / 2)
    assert mean(like="mteb") == mean(like="pytrec_eval") == pytest.approx(1 / 3 / 2)
    assert mean(like="gdeval", drop_self=True) == pytest.approx(1 / 2 / 2)
    assert jk.score(RUN, QRELS, "RR(ties=run-order)@10", like="beir").means()["value"].iloc[0] == 1 / 2
    with pytest.raises(UsageError, match=r"unknown tool to score like 'bier'.*beir"):
        mean(like="bier")


def test_a_measure_may_keep_the_order_of_the_run() -> None:
    """Beside measures under another rule, and after the run was ordered by it."""
    rows = [*(("1", doc, 1.0) for doc in "dbface"), ("2", "b", 1.0), ("2", "a", 2.0), ("2", "d", 2.0)]
    run = Run("run", *zip(*rows, strict=True), ties=Ties.DOC_ASC)  # type: ignore[arg-type]
    labels = pd.DataFrame([("1", "a", 1), ("2", "d", 1)], columns=["query_id", "doc_id", "relevance"])
    found = jk.score(run, {"q": labels}, "RR(ties=run-order)@6 RR RR(ties=doc-desc)", scales={"q": "binary"}).scores()
    values = found.pivot(index="query_id", columns="measure", values="value")
    assert values["RR(ties='run-order')@6"].tolist() == [1 / 4, 1 / 2]
    assert values["RR"].tolist() == [1, 1 / 2]
    assert values["RR(ties='doc-desc')"].tolist() == [1 / 6, 1]


def test_queries_that_a_mean_leaves_out_are_undefined_and_counted() -> None:
    rules = PEERS["gdeval"]
    runs = [run.with_ties(rules.ties).without_own() for run in as_runs(RUN)]
    found = evaluate(runs, as_labelings(QRELS), "P@1", over=rules.over)
    [mean] = found.summary
    assert (mean.queries, mean.defined, mean.undefined, mean.not_in_run, mean.ignored) == (4, 2, 2, 3, 1)
    assert np.isnan(found.values[0, 0, 0]).tolist() == [False, False, True, True]
