"""The grammar of measures and what is said about each."""

import pytest

from judgekit.errors import UsageError
from judgekit.metrics import Measure, parse_measures
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
    ],
)
def test_familiar_names(text: str, canonical: str) -> None:
    assert str(Measure(text)) == canonical


def test_a_list_of_measures_drops_repetitions() -> None:
    assert [str(m) for m in parse_measures("nDCG@10 P@5, AP MAP")] == ["nDCG@10", "P@5", "AP"]
    assert parse_measures("") == []


WHOLE = "AUC MeanRank Rprec Bpref SetP SetR SetF NumRel NumRelRet NumRet"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "unknown measure 'nDGC'.*Did you mean 'nDCG'"),
        ("ndcg_cut_10", "unknown measure 'ndcg_cut_10': a cutoff stands behind @. Did you mean 'nDCG@10'"),
        ("recip_rank", "Did you mean 'RR'"),
        ("nDCG5", "unknown measure 'nDCG5': a cutoff stands behind @. Did you mean 'nDCG@5'"),
        ("P_rel5", "unknown measure 'P_rel5': choose from"),
        ("precison@5", "Did you mean 'Precision'"),
        ("P(real=2)@5", "unknown parameter 'real'.*Did you mean 'rel'"),
        ("Judged(rel=2)@5", r"unknown parameter 'rel': choose from ties\.$"),
        *((f"{whole}@5", "takes no cutoff") for whole in WHOLE.split()),
        ("P(rel=True)@5", "rel is a number, not True"),
        ("RR(best=1)", "best is one of False, True, not 1"),
        ("RBP(p=1.5)", "p is a number between 0 and 1"),
        ("SetF(beta=0)", "beta is a number above 0"),
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
