"""The grammar of measures and what is said about each."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from judgekit.errors import UsageError
from judgekit.metrics import DEFINITIONS, Definition, Measure, catalog, parse_measures
from judgekit.spec import Spec, Value
from tests.metrics.material import TREC


def values_of(definition: Definition, key: str) -> st.SearchStrategy[Value]:
    param = definition.params[key]
    if param.choices:
        return st.sampled_from(param.choices)
    if key == "gains":
        return st.sampled_from(["{0:0,1:5}", "0:-1,2:1.5"])
    return st.sampled_from([0.5]) if key in ("p", "overlap") else st.one_of(st.integers(1, 99), st.floats(0.1, 9))


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    definition = draw(st.sampled_from(list(DEFINITIONS.values())))
    keys = draw(st.lists(st.sampled_from(sorted(definition.params)), unique=True)) if definition.params else []
    params = tuple((key, draw(values_of(definition, key))) for key in keys)
    cutoff = draw(st.one_of(st.none(), st.integers(1, 2000))) if definition.cutoff else None
    return Measure(Spec(definition.name, params, cutoff))


@given(measures())
def test_every_measure_parses_back(measure: Measure) -> None:
    assert Measure(str(measure)) == measure
    assert parse_measures(f"{measure}, {measure}") == [measure]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        *((theirs, str(Measure(ours))) for ours, theirs in TREC.items()),
        ("NDCG@10", "nDCG@10"),
        ("MAP", "AP"),
        ("MRR@10", "RR@10"),
        ("Hit@3", "Success@3"),
        ("hit_rate@3", "Success@3"),
        ("HR@5", "Success@5"),
        ("Recall@5", "R@5"),
        ("Precision(rel=2)@5", "P(rel=2)@5"),
        ("SetRelP", "SetP(relative=True)"),
        ("roc_auc", "AUC"),
        ("mean_rank", "MeanRank"),
        ("nDCG(gains={0:0,1:1,2:5})@10", "nDCG(gains='{0:0,1:1,2:5}')@10"),
    ],
)
def test_familiar_names(text: str, canonical: str) -> None:
    assert str(Measure(text)) == canonical


def test_a_list_of_measures_drops_repetitions() -> None:
    assert [str(m) for m in parse_measures("nDCG@10 P@5, AP MAP")] == ["nDCG@10", "P@5", "AP"]
    assert parse_measures("") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDGC@10", "unknown measure 'nDGC'.*Did you mean 'nDCG'"),
        ("precison@5", "Did you mean 'Precision'"),
        ("foo_5", "unknown measure 'foo_5'"),
        ("P(real=2)@5", "unknown parameter 'real'.*Did you mean 'rel'"),
        ("Judged(rel=2)@5", "unknown parameter 'rel': none are defined"),
        ("AUC@5", "takes no cutoff"),
        ("P(rel=x)@5", "rel is a number, not 'x'"),
        ("P(rel=True)@5", "rel is a number, not True"),
        ("P(by=3)@5", "by is one of k, retrieved, not 3"),
        ("RR(best=1)", "best is one of False, True, not 1"),
        ("RBP(p=1.5)", "p is a number between 0 and 1"),
        ("RBP(p=x)", "p is a number between 0 and 1"),
        ("ERR(max=0)", "max is a number above 0"),
        ("SetF(beta=-1)", "beta is a number above 0"),
        ("nDCG(gains=1)", "gains is {label:gain,...}"),
        ("nDCG(gains='1:x')", "gains is {label:gain,...}"),
        ("P@0", "cutoff"),
    ],
)
def test_what_is_no_measure_is_refused_with_a_hint(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Measure(text)


def test_a_measure_is_a_value() -> None:
    measure = Measure("P(rel=2)@5")
    assert Measure(measure) == measure
    assert Measure(Spec("P", (("rel", 2),), 5)) == measure
    assert (measure.name, measure.cutoff, measure.option("rel"), measure.option("by")) == ("P", 5, 2, "k")
    assert measure.option("beta") is None
    assert measure.at(10) == Measure("P(rel=2)@10")
    assert measure.at(None).cutoff is None
    assert Measure("MeanRank").lower_is_better
    assert not measure.lower_is_better
    assert Measure(Spec("MAP")) == Measure("AP")


def test_every_definition_has_a_formula_and_says_all_there_is_to_say() -> None:
    names = [alias.casefold() for d in catalog() for alias in {d.name.casefold(), *map(str.casefold, d.aliases)}]
    assert len(names) == len(set(names)), "two measures share a name"
    for definition in catalog():
        assert callable(definition.compute)
        assert definition.title
        assert definition.formula
        assert definition.source
        assert definition.rewards
        assert definition.scales
        assert all(param.what for param in definition.params.values())
        assert definition.needs in {"binary", "label", "gain", "amount", "nothing"}
