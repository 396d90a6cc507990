"""Agreement with the tools of the field on random data: ties, holes, negative labels, strange ids, absent queries."""

import shutil

import ir_measures
import numpy as np
import pandas as pd
import pytest
import pytrec_eval

import judgekit as jk
from judgekit.data.frames import as_labelings
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run, Ties
from judgekit.errors import DataError
from judgekit.metrics import DEFINITIONS, Evaluation, evaluate
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


TIED = pd.DataFrame([("1", doc, 1.0) for doc in "dbface"], columns=["query_id", "doc_id", "score"])
FEW = pd.DataFrame([("1", doc, grade) for doc, grade in (("b", 1), ("e", 1), ("a", 0))],
                   columns=["query_id", "doc_id", "relevance"])  # fmt: skip


def test_each_measure_that_looks_at_the_order_takes_its_own_rule_of_ties():
    """ir_measures breaks ties in Judged by ascending id, and trec_eval in Bpref by descending id."""
    run = {"run": TIED}
    wanted = {str(m.measure): m.value for m in ir_measures.iter_calc([ir_measures.Judged @ 2], FEW, TIED)}
    found = jk.score(run, {"q": FEW}, "Judged(ties=doc-asc)@2 Judged@2", scales={"q": "binary"}).scores()
    values = dict(zip(found["measure"], found["value"], strict=True))
    assert values["Judged(ties='doc-asc')@2"] == wanted["Judged@2"] == 1
    assert values["Judged@2"] == 0.5
    # One judged wrong document, a: behind both relevant ones in descending order, before them in ascending order.
    found = jk.score(
        run, {"q": FEW}, "Bpref Bpref(ties=doc-asc) RBP(ties=doc-asc) RBP", scales={"q": "binary"}
    ).scores()
    values = dict(zip(found["measure"], found["value"], strict=True))
    assert (values["Bpref"], values["Bpref(ties='doc-asc')"]) == (1, 0)
    assert values["RBP(ties='doc-asc')"] == pytest.approx(0.2 * (0.8 + 0.8**4))
    assert values["RBP"] == pytest.approx(0.2 * (0.8 + 0.8**4))
    asked = [m for m in DEFINITIONS.values() if m.cutoff and not m.author]
    assert [m.name for m in asked if "ties" not in m.params] == []


SPAM = pd.DataFrame([("1", "a", 4), ("1", "b", -2), ("1", "c", 1), ("1", "d", 0), ("2", "a", -2), ("2", "b", 2)],
                    columns=["query_id", "doc_id", "relevance"])  # fmt: skip
LISTS = pd.DataFrame([("1", "b", 3.0), ("1", "c", 2.0), ("1", "a", 1.0), ("2", "a", 2.0), ("2", "b", 1.0)],
                     columns=["query_id", "doc_id", "score"])  # fmt: skip


def test_a_declared_scale_takes_negative_grades_and_gives_gdeval_s_err():
    """Worked by hand from gdeval's r = (2^g - 1) / 2^4, in which spam, -2, gains nothing."""
    found = jk.score(LISTS, {"web": SPAM}, "ERR@2 ERR@20 P@2 nDCG(dcg=exp-log2)@20", scales={"web": "grades:4"})
    scores = found.scores().pivot(index="query_id", columns="measure", values="value")
    assert scores["ERR@2"].tolist() == [(1 / 16) / 2, 3 / 16 / 2]
    assert scores["ERR@20"].tolist() == [(1 / 16) / 2 + (15 / 16) / 3 * (15 / 16), 3 / 16 / 2]
    assert scores["P@2"].tolist() == [0.5, 0.5]
    assert "2 grades lie below 0 in web: such documents are not relevant and gain 0" in found.warnings
    (labeling,) = as_labelings({"web": SPAM}, {"web": "grades:4"})
    assert str(labeling.scale) == "grades:-2..4"
    assert not jk.score(LISTS, {"web": SPAM}, "ERR@2", scales={"web": "grades:-2..4"}).warnings
    with pytest.raises(DataError, match="relevance 5 is outside the scale"):
        as_labelings({"web": SPAM.assign(relevance=5)}, {"web": "grades:4"})


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_err_of_declared_grades_is_gdeval_s():
    random = np.random.default_rng(2)
    labels = pd.DataFrame(
        [(str(q), f"d{d}", int(random.choice([-2, 0, 1, 2, 3, 4]))) for q in range(1, 9) for d in range(12)],
        columns=["query_id", "doc_id", "relevance"],
    )
    run = labels[["query_id", "doc_id"]].assign(score=random.integers(0, 5, len(labels)).astype(float))
    wanted = {}
    for measure in (ir_measures.ERR @ 5, ir_measures.ERR @ 20, ir_measures.nDCG(dcg="exp-log2") @ 5):
        provider = ir_measures.providers.registry["gdeval"].evaluator([measure], labels)
        wanted |= {(m.query_id, str(measure)): m.value for m in provider.iter_calc(run)}
    found = jk.score(run, {"web": labels}, "ERR@5 ERR@20 nDCG(dcg='exp-log2')@5", scales={"web": "grades:4"}).scores()
    ours = {(row.query_id, row.measure): row.value for row in found.itertuples()}
    assert ours.keys() == wanted.keys()
    # gdeval prints five digits.
    assert {key: round(value, 5) for key, value in ours.items()} == pytest.approx(wanted, abs=1.1e-5)
