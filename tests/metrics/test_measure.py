"""The grammar of measures and what is said about each."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from judgekit.errors import UsageError
from judgekit.metrics import DEFINITIONS, Definition, Measure, parse_measures
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
        ("MAP", "AP"),
        ("Hit@3", "Success@3"),
        ("HR@5", "Success@5"),
        ("Precision(rel=2)@5", "P(rel=2)@5"),
        ("SetRelP", "SetP(relative=True)"),
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
        ("ERR(max=0)", "max is a number above 0"),
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
    assert Measure(measure) == Measure(Spec("P", (("rel", 2),), 5)) == measure
    assert (measure.option("rel"), measure.option("by"), measure.option("beta")) == (2, "k", None)
    assert (measure.at(10), measure.at(None).cutoff) == (Measure("P(rel=2)@10"), None)
    assert [Measure(m).lower_is_better for m in ("MeanRank", "P")] == [True, False]
