"""Small runs and labelings for the tests of the metrics engine, written by hand or drawn by hypothesis."""

from dataclasses import dataclass

import pandas as pd
from hypothesis import strategies as st

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run, Ties

EVERY = (
    "P@3 P@5 P(by=retrieved)@5 P P(judged_only=True)@3 P(rel=2)@4 R@3 R@5 R R(by=possible)@3 R(by=possible) F1@3"
    " F1 Success@1 Success@3 Success RR RR@2 RR(best=True) RR(rel=2)@3 RR(judged_only=True) AP AP@3 AP(by=hits)"
    " AP(by=hits)@3 AP(by=possible)@2 AP(by=possible) AP(judged_only=True) DCG@3 DCG DCG(dcg='exp-log2')@4 nDCG"
    " nDCG@3 nDCG(dcg='exp-log2')@3 nDCG(ideal=retrieved)@3 nDCG(ideal=retrieved) nDCG(ideal=uncut)@2"
    " nDCG(ideal=uncut) nDCG(judged_only=True)@2 AUC AUC(judged_only=True) MeanRank MeanRank(rel=2) ERR ERR@3"
    " ERR(judged_only=True) RBP RBP(p=0.5)@3 RBP(rel=1)@4 Rprec Rprec(rel=2) Bpref Bpref(rel=2) Judged Judged@3"
    " SetP SetP(relative=True) SetR SetF SetF(beta=2.0) NumRel NumRelRet NumRet NumRet(rel=1) UDCG UDCG@3"
    " UDCG(gain=2.0)@3 UDCG(harm=0.5)@4 UDCG(gain=0.5,harm=3.0)"
)
"""Every measure, with every parameter at least once."""
_SPELLED = (
    "P@1=P_1 P@5=P_5 P@30=P_30 R@5=recall_5 R@30=recall_30 Success@1=success_1 Success@5=success_5 RR=recip_rank AP=map"
    " AP@5=map_cut_5 nDCG=ndcg nDCG@5=ndcg_cut_5 nDCG@10=ndcg_cut_10 Rprec=Rprec Bpref=bpref SetP=set_P SetR=set_recall"
    " SetF=set_F SetP(relative=True)=set_relative_P NumRel=num_rel NumRet=num_ret NumRelRet=num_rel_ret"
)
TREC = dict(pair.rsplit("=", 1) for pair in _SPELLED.split())
"""The names that trec_eval has for measures."""


def run_of(name: str = "run", **lists: str) -> Run:
    """Return a run from lists such as ``q1="d3 d1 d2"``, best first."""
    rows = [(q, d, float(-i)) for q, docs in lists.items() for i, d in enumerate(docs.split())]
    return Run(name, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows])


def scored_run(name: str = "run", *, ties: Ties = Ties.DOC_DESC, **lists: dict[str, float]) -> Run:
    """Return a run from scores such as ``q1={"d1": 0.5}``."""
    rows = [(q, d, s) for q, of in lists.items() for d, s in of.items()]
    return Run(name, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], ties=ties)


def labeling_of(scale: str = "binary", name: str = "qrels", **labels: dict[str, float | str | None]) -> Labeling:
    """Return a labeling from labels such as ``q1={"d1": 1, "d2": "refused"}``; a str is the status of a missing one."""
    rows = [
        (q, d, None if isinstance(v, str) else v, v if isinstance(v, str) else "ok")
        for q, of in labels.items()
        for d, v in of.items()
    ]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "status"])
    return Labeling(
        name, Scale.parse(scale), frame.astype({"query_id": "str", "doc_id": "str", "relevance": "float64"})
    )


@dataclass(frozen=True)
class Case:
    """One query's list and labels."""

    scores: dict[str, float]
    labels: dict[str, float]
    scale: Scale

    def run(self, ties: Ties = Ties.DOC_DESC) -> Run:
        return scored_run(ties=ties, q=self.scores)

    def labeling(self, extra: dict[str, str] | None = None, name: str = "qrels") -> Labeling:
        return labeling_of(str(self.scale), name, q={**self.labels, **(extra or {})})

    def ranked(self) -> list[str]:
        return sorted(self.scores, key=lambda d: (self.scores[d], d), reverse=True)


SCALES = {
    "binary": st.integers(0, 1),
    "grades:3": st.integers(0, 3),
    "grades:3:2": st.integers(0, 3),
    "grades:-2..3": st.integers(-2, 3),
    "means:3": st.sampled_from([0.0, 0.4, 0.9, 1.0, 1.8, 3.0]),
    "means:5:2": st.sampled_from([0.0, 0.5, 1.8, 2.0, 2.25, 5.0]),
    "means:-2..3:2": st.sampled_from([-1.5, 0.0, 0.5, 1.8, 2.0, 2.5]),
    "unit": st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]),
    "signed": st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]),
}

doc_ids = st.text("aé0_", min_size=1, max_size=12)


@st.composite
def cases(
    draw: st.DrawFn, scales: tuple[str, ...] = tuple(SCALES), most: int = 9, least_labels: int = 0, tied: bool = True
) -> Case:
    """Draw a list with ties, unjudged documents and labels of documents that were not retrieved."""
    docs = draw(st.lists(doc_ids, min_size=1, max_size=most, unique=True))
    scale = draw(st.sampled_from(scales))
    values = st.sampled_from([2.0, 1.0, 0.5]) if tied else st.floats(-1e6, 1e6)
    retrieved = draw(st.lists(st.sampled_from(docs), unique=True))
    scores = draw(st.lists(values, min_size=len(retrieved), max_size=len(retrieved), unique=not tied))
    labelled = draw(st.lists(st.sampled_from(docs), unique=True, min_size=min(least_labels, len(docs))))
    labels = {d: float(draw(SCALES[scale])) for d in labelled}
    return Case(dict(zip(retrieved, scores, strict=True)), labels, Scale.parse(scale))
