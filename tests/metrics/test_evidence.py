"""Evidence counts once, in however many documents it stands; and lists are cut where a prompt is full."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.labelings import Labeling, Scale
from judgekit.errors import UsageError
from judgekit.metrics import Measure, evaluate
from tests.metrics.material import EVERY, Case, cases, labeling_of, run_of, scored_run

PAGES = {"a": "p:0-100", "a1": "p:0-60", "a2": "p:40-100", "b": "p:200-300", "c": "q:0-100"}


def collection(spans: dict[str, str] = PAGES, text: str = "word") -> MemoryDocs:
    """Return docs from spans such as ``page:0-100``."""
    docs = []
    for doc_id, span in spans.items():
        page, _, where = span.partition(":")
        start, _, end = where.partition("-")
        docs.append(Doc(doc_id, text, "", page, int(start), int(end)))
    return MemoryDocs(docs)


def containment(*rows: tuple[object, ...]) -> Labeling:
    """Return a labeling of query q from doc, label, page, start, end and evidence."""
    columns = ["doc_id", "relevance", "page_id", "start", "end", "evidence"]
    frame = pd.DataFrame(rows, columns=columns).assign(query_id="q", status="ok")
    return Labeling("containment", Scale("binary"), frame)


def value(measure: str, ranked: str, labels: dict[str, float], scale: str = "grades:3", **options: object) -> float:
    options = {"docs": collection()} | options
    return float(evaluate([run_of(q=ranked)], [labeling_of(scale, q=labels)], [measure], **options).values.item())


@pytest.mark.parametrize(
    ("measure", "ranked", "labels", "expected"),
    [
        ("RBP(unit=evidence, rel=1, p=0.5)", "a1 a2 b", {"a": 1, "a1": 1, "a2": 1, "b": 1}, 0.5 + 0.125),
        # Without a to join them, a1 and a2 share a third of each: two units, unless a third is enough.
        ("R(unit=evidence)@1", "a1 a2", {"a1": 1, "a2": 1}, 1 / 2),
        # What is not relevant joins nothing.
        ("R(unit=evidence)@1", "a1 a2", {"a": 0, "a1": 1, "a2": 1}, 1 / 2),
        # The second showing gains what its label exceeds the first one's.
        ("DCG(unit=evidence)", "a1 a a2", {"a": 3, "a1": 1, "a2": 2}, 1 + 2 / math.log2(3)),
        ("DCG(dcg='exp-log2', unit=evidence)", "a1 a", {"a": 3, "a1": 1}, 1 + 6 / math.log2(3)),
        ("nDCG(unit=evidence)@2", "a a1 b", {"a": 3, "a1": 3, "b": 1}, 3 / (3 + 1 / math.log2(3))),
    ],
)
def test_worked_examples(measure: str, ranked: str, labels: dict[str, float], expected: float) -> None:
    assert value(measure, ranked, labels) == pytest.approx(expected, abs=1e-12)


def test_units_hold_within_one_query_and_one_labeling() -> None:
    run = run_of(q1="a1 a2", q2="a1 a2")
    both = labeling_of("binary", "both", q1={"a": 1, "a1": 1, "a2": 1}, q2={"a1": 1, "a2": 1})
    whole = labeling_of("binary", "whole", q1={"a": 1}, q2={"a": 1})
    found = evaluate([run], [both, whole], "R(unit=evidence)@1", docs=collection()).values
    np.testing.assert_array_equal(found[0, :, 0], [[1, 0.5], [0, 0]])


def test_the_evidence_that_a_labeler_found_counts_instead_of_the_document() -> None:
    labeling = containment(
        ("a1", 1.0, "p", 0, 60, "45-50"),
        ("a2", 1.0, "p", 40, 100, "45-50"),
        ("b", 1.0, "p", 200, 300, "210-215 280-285"),
        ("c", 1.0, "p", 270, 400, "title 390-395"),
        ("d", 1.0, "p", 500, 600, "title"),
    )
    # a1 and a2 hold one answer; b and c one each, c and d the title: {a1, a2}, {b}, {c, d}.
    found = evaluate([run_of(q="a1 a2 b c d")], [labeling], "R(unit=evidence)@1 R(unit=evidence)@3 P(unit=evidence)@5")
    assert found.values.ravel().tolist() == pytest.approx([1 / 3, 2 / 3, 3 / 5])


spans_strategy = st.builds(
    lambda page, start, length: f"{page}:{start}-{start + length}",
    st.sampled_from("pq"),
    st.integers(0, 60),
    st.integers(1, 60),
)


@st.composite
def placed_cases(draw: st.DrawFn) -> tuple[Case, MemoryDocs]:
    case = draw(cases(scales=("binary", "grades:3", "grades:3:2", "means:3"), least_labels=1, tied=False))
    ids = sorted({*case.scores, *case.labels, "again"})
    return case, collection({doc_id: draw(spans_strategy) for doc_id in ids})


def score(case: Case, measures: str | list[str], docs: MemoryDocs | None, scores: dict[str, float] | None = None):
    run = scored_run(q=case.scores if scores is None else scores)
    return evaluate([run], [case.labeling()], measures, query_ids=["q"], docs=docs).values.ravel()


@given(placed_cases())
def test_units_agree_with_a_slow_account_of_them(made: tuple[Case, MemoryDocs]) -> None:
    case, docs = made
    least = case.scale.min_rel or 1
    names = ("nDCG@5", "R@5", "P@5", "AP", "DCG@5", "RR", "Success@5", "RBP(rel=REL)")
    found = score(case, [_by_unit(name.replace("REL", str(least))) for name in names], docs)
    by_gain, binary = (_units(case, docs, at) for at in (1e-9, least))
    ranked = case.ranked()
    best = sorted((max(case.labels[d] for d in unit) for unit in by_gain), reverse=True)
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(best[:5]))
    dcg, shown = 0.0, {}
    for i, d in enumerate(ranked[:5]):
        unit = next((u for u in by_gain if d in u), frozenset([d]))
        gain = max(case.labels.get(d, 0) - shown.get(unit, 0), 0)
        dcg += gain / math.log2(i + 2)
        shown[unit] = shown.get(unit, 0) + gain
    firsts, seen = [], set()
    for d in ranked:
        unit = next((u for u in binary if d in u), None)
        firsts.append(unit is not None and unit not in seen)
        seen.add(unit)
    total = max(len(binary), 1)
    expected = [
        dcg / ideal if ideal else 0,
        sum(firsts[:5]) / total,
        sum(firsts[:5]) / 5,
        sum(sum(firsts[: i + 1]) / (i + 1) for i, first in enumerate(firsts) if first) / total,
        dcg,
        1 / (firsts.index(True) + 1) if any(firsts) else 0,
        float(any(firsts[:5])),
        sum(0.2 * 0.8**i for i, first in enumerate(firsts) if first),
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def _by_unit(measure: str) -> str:
    name = Measure(measure).name
    return measure.replace(name, f"{name}(unit=evidence)", 1).replace(")(", ", ")


def _units(case: Case, docs: MemoryDocs, least: float) -> list[frozenset[str]]:
    """Return the connected groups, joined one after another."""
    units: list[set[str]] = []
    for doc in docs.get([d for d, label in case.labels.items() if label >= least]):
        met = [u for u in units if any(_share(doc, other) for other in docs.get(sorted(u)))]
        units = [u for u in units if u not in met] + [set().union({doc.doc_id}, *met)]
    return [frozenset(u) for u in units]


def _share(one: Doc, other: Doc) -> bool:
    common = min(one.end, other.end) - max(one.start, other.start)  # type: ignore[type-var, operator]
    shorter = min(one.end - one.start, other.end - other.start)  # type: ignore[operator]
    return one.page_id == other.page_id and common >= shorter / 2


@given(cases(least_labels=1, tied=False))
def test_without_overlap_the_values_are_those_of_documents_bit_for_bit(case: Case) -> None:
    ids = sorted({*case.scores, *case.labels})
    docs = collection({doc_id: f"p:{100 * i}-{100 * i + 100}" for i, doc_id in enumerate(ids)})
    whole = [Measure(m) for m in EVERY.replace(", ", ",").split() if Measure(m).definition.params.keys() >= {"unit"}]
    whole = [m for m in whole if m.option("ideal") != "retrieved"]
    np.testing.assert_array_equal(score(case, [_by_unit(str(m)) for m in whole], docs), score(case, whole, None))


@pytest.mark.parametrize(
    ("measure", "options", "expected"),
    [
        ("nDCG(unit=evidence)", {"docs": None}, "needs the positions of documents"),
        ("DCG(unit=evidence)", {"missing": "bounds"}, "has no bounds"),
        ("F1(unit=evidence)", {}, "unknown parameter 'unit'"),
    ],
)
def test_what_cannot_be_counted_is_said(measure: str, options: dict[str, object], expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        value(measure, "a b", {"a": 1, "b": 1}, **options)


def test_a_missing_label_leaves_all_values_possible() -> None:
    labels = labeling_of(q1={"a": 1, "b": "refused"}, q2={"a1": 1, "a2": 1})
    found = evaluate([run_of(q1="a b", q2="a1")], [labels], "R(unit=evidence)", missing="bounds", docs=collection())
    assert (found.low.ravel().tolist(), found.high.ravel().tolist()) == ([0, 0.5], [1, 0.5])
    refused = evaluate([run_of(q1="a")], [labels], "nDCG(unit=evidence, ideal=retrieved)", docs=collection())
    assert "cannot take ideal=retrieved" in next(iter(refused.reasons.values()))


def test_a_document_without_a_span_is_evidence_of_its_own_and_is_counted() -> None:
    docs = MemoryDocs([*collection(), Doc("x", "word"), Doc("y", "word", "", "p")])
    found = evaluate([run_of(q="a x y")], [labeling_of(q={"a": 1, "x": 1, "y": 1})], "R(unit=evidence)@2", docs=docs)
    assert found.values.item() == 2 / 3
    assert "2 of 3 relevant documents have no span" in found.warnings[0]
