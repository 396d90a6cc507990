"""Agreement with the tools of the field on random data: ties, holes, negative labels, strange ids, absent queries."""

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run, Ties
from judgekit.metrics import Evaluation, evaluate
from tests.metrics.material import TREC

ASKED = {f"{name}.{k}" for name, k in (("P", "1,5,30"), ("recall", "5,30"), ("success", "1,5"), ("map_cut", "5"))}
ASKED |= {"ndcg_cut.5,10", *(v for v in TREC.values() if not v[-1].isdigit())}
ODD = "é-1 doc/2 0007 7 文書 a,b 'q' D1 # 1e5 nan"
IDS = [*(f"d{i}" for i in range(12)), "d" * 40, *ODD.split()]


def draw(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Draw a run and labels; scores tie as doubles, or only as 32-bit floats, or not at all."""
    rng = np.random.default_rng(seed)
    low = -int(rng.integers(0, 4))
    run, labels = [], []
    for query in ("q1", "2", "q_3", "ü", "q5"):
        for doc in rng.permutation(IDS)[: rng.integers(0, len(IDS))]:
            near = rng.choice([0, 1e-12, 0.1])
            run.append((query, doc, float(np.round(rng.normal() * 3, rng.integers(0, 2))) + near))
        for doc in rng.permutation(IDS)[: rng.integers(1, len(IDS))]:
            labels.append((query, doc, int(rng.integers(low, 4))))
        # pytrec_eval runs wild (a crash or an endless loop) on negative labels where no label is positive.
        labels += [(query, "positive", 3), (query, "zero", 0)]
    run_frame = pd.DataFrame(run, columns=["query_id", "doc_id", "score"]).sample(frac=1, random_state=seed)
    return run_frame, pd.DataFrame(labels, columns=["query_id", "doc_id", "relevance"]), low


def nested(frame: pd.DataFrame, column: str) -> dict[str, dict[str, float]]:
    return {query: dict(zip(of["doc_id"], of[column], strict=True)) for query, of in frame.groupby("query_id")}


def engine(run: pd.DataFrame, labels: pd.DataFrame, scale: Scale, measures: list[str], ties: Ties) -> Evaluation:
    return evaluate([Run.from_frame(run, "run", ties=ties)], [Labeling("labels", scale, labels)], measures)


@pytest.mark.parametrize("seed", range(16))
def test_every_bit_is_that_of_pytrec_eval_under_its_32_bit_scores(seed: int) -> None:
    run, labels, low = draw(seed)
    level = 1 + seed % 2
    oracle = pytrec_eval.RelevanceEvaluator(nested(labels, "relevance"), ASKED, relevance_level=level)
    wanted = oracle.evaluate(nested(run, "score"))
    found = engine(run, labels, Scale("grades", 3, low, level), list(TREC), Ties.DOC_DESC_32)
    for i, name in enumerate(TREC.values()):
        if name == "num_rel" and level > 1:
            continue  # pytrec_eval counts from 1 on, whatever its relevance level
        for j, query in enumerate(found.query_ids):
            if query in wanted:
                assert found.values[i, 0, 0, j] == wanted[query][name], f"{name} of {query}"
            elif name != "num_rel":
                assert found.values[i, 0, 0, j] == 0, "a query that the run lacks scores 0, as in trec_eval -c"


PEERS = (
    "P@5 P(rel=2)@5 P(judged_only=True)@3 R@5 Success@5 RR RR(rel=2) AP AP@5 AP(rel=3) AP(judged_only=True)@5 nDCG@5"
    " nDCG nDCG(judged_only=True)@5 Rprec Rprec(judged_only=True) Bpref Bpref(rel=2) SetP SetP(relative=True) SetR"
    " SetF SetF(beta=0.5) NumRet NumRet(rel=1) NumRel RR(judged_only=True) Success(judged_only=True)@2"
    " SetP(judged_only=True)"
)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("measures", "ties"),
    [
        (PEERS, Ties.DOC_DESC_32),
        ("Judged@5 Judged", Ties.DOC_ASC),  # the one that breaks its ties by ascending doc id
        ("RR@3", None),  # the one that takes ties as they come
    ],
)
def test_ir_measures_gives_the_same(seed: int, measures: str, ties: Ties | None) -> None:
    run, labels, low = draw(seed)
    if ties is None:
        run = run.assign(score=np.random.default_rng(seed).permutation(len(run)).astype(float))
    spelled = measures.split()
    # One at a time: asked together, it may count NumRet on the lists that another measure has condensed.
    asked = {text: ir_measures.iter_calc([ir_measures.parse_measure(text)], labels, run) for text in spelled}
    wanted = {(m.query_id, text): m.value for text, metrics in asked.items() for m in metrics}
    found = engine(run, labels, Scale("grades", 3, low), spelled, ties or Ties.DOC_DESC)
    assert len(wanted) > len(spelled)
    for i, text in enumerate(spelled):
        for j, query in enumerate(found.query_ids):
            if (query, text) in wanted and not (text == "NumRel" and query not in set(run["query_id"])):
                assert found.values[i, 0, 0, j] == pytest.approx(wanted[query, text], rel=1e-15), f"{text} of {query}"
