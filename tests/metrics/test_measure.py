"""The grammar of measures and what is said about each."""

import pytest

import judgekit as jk
from judgekit.errors import UsageError
from judgekit.metrics import Measure, parse_measures, read_measures
from judgekit.spec import Spec
from tests.metrics.material import EVERY


def test_every_measure_parses_back() -> None:
    for measure in parse_measures(EVERY):
        assert Measure(str(measure)) == measure
        assert parse_measures(f"{measure}, {measure}") == [measure]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("map", "AP"),
        ("HitRate@3", "Success@3"),
        ("hitratio@5", "Success@5"),
        ("Precision(rel=2)@5", "P(rel=2)@5"),
        ("hit_rate@5", "Success@5"),
        ("num_rel_ret", "NumRelRet"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg_cut@10", "nDCG@10"),
        ("map_cut_10", "AP@10"),
        ("P_10", "P@10"),
        ("P_10(rel=2)", "P(rel=2)@10"),
        ("recall_100", "R@100"),
        ("success_1", "Success@1"),
        ("recip_rank", "RR"),
        ("set_recall", "SetR"),
        ("HR@10", "Success@10"),
        ("Hit@1", "Success@1"),
        ("MR", "MeanRank"),
        ("ROC_AUC", "AUC"),
        ("AUC-ROC", "AUC"),
        ("relative_P_5", "R(by=possible)@5"),
        ("R_cap(rel=2)@5", "R(by=possible, rel=2)@5"),
        ("set_relative_P", "SetP(relative=True)"),
        ("ndcg_at_10", "nDCG@10"),
        ("hit_rate_at_3", "Success@3"),
    ],
)
def test_familiar_names(text: str, canonical: str) -> None:
    assert str(Measure(text)) == canonical


def test_a_list_of_measures_drops_repetitions() -> None:
    assert [str(m) for m in parse_measures("nDCG@10 P@5, AP MAP")] == ["nDCG@10", "P@5", "AP"]
    assert parse_measures("") == []


def test_names_of_trec_eval_may_have_several_cutoffs() -> None:
    assert [*map(str, parse_measures("ndcg_cut.5,10 P.5, recall.100,AP"))] == [
        "nDCG@5",
        "nDCG@10",
        "P@5",
        "R@100",
        "AP",
    ]
    assert [*map(str, parse_measures(["map_cut.3", "P(rel=0.5)@5"]))] == ["AP@3", "P(rel=0.5)@5"]


def test_what_names_of_other_tools_were_taken_for_is_told_once() -> None:
    _, notes = read_measures("ndcg_cut.5,10 map p@5 num_rel recip_rank HR@3 recip_rank")
    assert [*notes] == [
        "names of other tools: ndcg_cut_5 as nDCG@5, ndcg_cut_10 as nDCG@10, map as AP, recip_rank as RR, HR@3 as"
        " Success@3"
    ]
    assert not read_measures("AP nDCG@10 ndcg@5").notes
    run, labels = {"q": {"d": 1.0}}, {"q": {"d": 1}}
    assert jk.score(run, labels, "recip_rank").warnings[0] == "names of other tools: recip_rank as RR"


WHOLE = "AUC MeanRank Rprec Bpref SetP SetR SetF NumRel NumRelRet NumRet"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "unknown measure 'nDGC'.*Did you mean 'nDCG'"),
        ("map10", "unknown measure 'map10': write the cutoff behind an @. Did you mean 'AP@10'"),
        ("rbp_95", "unknown measure 'rbp_95': write the cutoff behind an @. Did you mean 'RBP@95'"),
        ("rbp.95", "expected the end"),
        ("ndcg_cut_0", "unknown measure 'ndcg_cut_0'"),
        ("ndcg_cut_10@5", "unknown measure 'ndcg_cut_10'"),
        ("P_10(rel=2)@3", "unknown measure 'P_10'"),
        ("num_rel_5", "NumRel looks at the whole list|unknown measure"),
        ("ndcg_cut_0", "unknown measure 'ndcg_cut_0': a cutoff must be 1 or more, as in 'nDCG@10'"),
        (
            "Accuracy@5",
            "unknown measure 'Accuracy': for the share of queries with a relevant document within k, Success@k",
        ),
        ("nDCG5", "unknown measure 'nDCG5': write the cutoff behind an @. Did you mean 'nDCG@5'"),
        ("P_rel5", "unknown measure 'P_rel5': choose from"),
        ("precison@5", "Did you mean 'Precision'"),
        ("P(real=2)@5", "unknown parameter 'real'.*Did you mean 'rel'"),
        ("Judged(rel=2)@5", r"unknown parameter 'rel': choose from ties\.$"),
        *((f"{whole}@5", "takes no cutoff") for whole in WHOLE.split()),
        ("P(rel=True)@5", "rel must be a number, not True"),
        ("RR(best=1)", "best must be one of False, True, not 1"),
        ("RBP(p=1.5)", "p must be a number between 0 and 1"),
        ("SetF(beta=0)", "beta must be a number above 0"),
        ("P@0", "cutoff"),
    ],
)
def test_what_is_no_measure_is_refused_with_a_hint(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Measure(text)


def test_a_measure_is_a_value() -> None:
    measure = Measure("P(rel=2)@5")
    assert Measure(measure) == Measure(Spec("P", (("rel", 2),), 5)) == measure
    assert (measure.option("rel"), measure.option("by"), measure.option("beta")) == (2, "k", None)
    assert (measure.at(10), measure.at(None).cutoff) == (Measure("P(rel=2)@10"), None)
    assert [Measure(m).lower_is_better for m in ("MeanRank", "P")] == [True, False]
