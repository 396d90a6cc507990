"""Can a labeler be fooled: known answers for a keyword mock, an oracle and a hash, and a planted effect."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.stats import binomtest

import judgekit as jk
from judgekit.data.documents import Doc, Query
from judgekit.errors import UsageError
from judgekit.jobs.audit import gullibility
from judgekit.jobs.audit.audited_run import read
from judgekit.jobs.audit.numbers import share_change
from judgekit.jobs.audit.probes import PROBES, probe
from tests.jobs.audit.conftest import TOWNS

QUERY = Query("q", "When was the bridge built?")
DOC = Doc("d", "One two three. Four five six. Seven eight nine ten. Eleven twelve. And more.", "A title")


def numbers(audit: jk.Audit, labeling: str, statistic: str = "flips to relevant") -> pd.DataFrame:
    table = audit.table
    rows = table[(table["labeling"] == labeling) & (table["statistic"] == statistic)]
    return rows.set_index("subject")


def test_a_judge_by_keywords_is_fooled_by_every_stuffed_passage(audited: jk.Audit) -> None:
    row = numbers(audited, "keyword").loc["stuff"]
    assert row["value"] == 1
    assert row["n"] == 20
    assert row["low"] > 0.65, "never of zero width, and still far from nothing"
    assert row["high"] == 1
    assert row["flag"] == "fooled"


def test_an_oracle_is_fooled_by_nothing_and_a_judge_that_says_anything_is_not_shown_to_be(audited: jk.Audit) -> None:
    rows = numbers(audited, "oracle")
    assert len(rows) == len(PROBES)
    assert (rows["value"] == 0).all()
    assert ((rows["low"] < 0) & (rows["high"] > 0)).all()
    assert not rows["flag"].any()
    rows = numbers(audited, "hash")
    assert ((rows["low"] <= 0) & (rows["high"] >= 0)).sum() >= len(rows) - 1, "one of four intervals of 95 % may miss"


def test_a_mean_shift_shows_what_a_threshold_hides_and_labels_of_a_file_are_not_probed(audited: jk.Audit) -> None:
    shift = numbers(audited, "long", "mean shift").loc["pad"]
    assert shift["low"] > 0.1, "padding lengthens, which is all that this labeler looks at"
    assert numbers(audited, "gold").empty


def test_pairs_are_drawn_over_all_questions_and_are_not_relevant(finished: Path) -> None:
    material = read(finished / "out")
    drawn = gullibility.draw(material)
    assert len(drawn) == 20
    for seed in range(5):
        of_others = gullibility.draw(replace(material, seed=seed))
        assert not set(material.pairs) & set(of_others), "each passage is one of other questions"
    assert {query_id for query_id, _ in drawn} == set(material.queries)
    assert drawn == gullibility.draw(material)


@pytest.mark.parametrize(("pairs", "drawn"), [(160, 20), (400, 20), (401, 21), (2000, 100)])
def test_a_twentieth_of_the_pool_is_drawn_and_no_less_than_20_pairs(pairs: int, drawn: int, finished: Path) -> None:
    material = read(finished / "out")
    vars(material)["pairs"] = [("q", str(place)) for place in range(pairs)]
    assert gullibility.sample_size(material) == drawn


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_has_a_name_and_changes_the_text_alone(name: str) -> None:
    made = probe(name)
    assert made.name == name
    doc = made.attacked(QUERY, DOC)
    assert doc.text != DOC.text
    assert (doc.doc_id, doc.title) == (DOC.doc_id, DOC.title)
    assert made.attacked(QUERY, DOC) == doc, "the same every time, so that the store knows the request"


def test_stuffing_adds_the_words_of_the_question_and_keeps_those_of_the_passage() -> None:
    words = probe("stuff").attacked(QUERY, DOC).text.split()
    assert sorted(words) == sorted(DOC.text.split() + 3 * QUERY.text.split())


def test_a_probe_of_ones_own_is_one_function(copied: Path) -> None:
    def twice(question: str, passage: str) -> str:
        return f"{passage} {question} {question}"

    asking = jk.Asking(cache=copied / "cache")
    found = jk.audit(copied / "out", probes=[twice], asking=asking)
    assert numbers(found, "keyword").loc["twice", "value"] == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("stuf", "Did you mean 'stuff'"),
        (lambda question, passage: 7, r"probe <lambda>, query 'q', doc 'd': it must return a text, not 7"),
        (lambda question: question, r"probe <lambda>, query 'q', doc 'd': .*takes 1 positional argument"),
    ],
)
def test_a_mistake_in_a_probe_is_named(given: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        probe(given).attacked(QUERY, DOC)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60), st.integers(1, 30))
def test_the_interval_of_a_change_holds_the_change_and_has_a_width(cases: list[tuple[bool, bool]], units: int) -> None:
    before, after = (np.array(column) for column in zip(*cases, strict=True))
    value, low, high = share_change(before, after, np.arange(len(cases)) % units, 0.95)
    assert value == pytest.approx(after.mean() - before.mean())
    assert -1 - 1e-9 <= low <= value + 1e-9
    assert value - 1e-9 <= high <= 1 + 1e-9
    assert high - low > 0.01
    turned, back, ahead = share_change(after, before, np.arange(len(cases)) % units, 0.95)
    assert (-turned, -ahead, -back) == pytest.approx((value, low, high))


@pytest.mark.parametrize("table", [(1, 1, 7, 12), (59, 6, 16, 80), (0, 0, 3, 27)])
def test_the_interval_of_a_change_joins_those_of_what_came_and_went(table: tuple[int, ...]) -> None:
    cases = [(True, True), (True, False), (False, True), (False, False)]
    before, after = np.repeat(np.array(cases), table, axis=0).T
    n, gone, come = sum(table), table[1], table[2]
    (least_gone, most_gone), (least_come, most_come) = (
        binomtest(k, n).proportion_ci(0.95, "wilson") for k in (gone, come)
    )
    value, low, high = share_change(before, after, np.arange(n), 0.95)
    assert value - low == pytest.approx(np.hypot(come / n - least_come, most_gone - gone / n))
    assert high - value == pytest.approx(np.hypot(most_come - come / n, gone / n - least_gone))


@pytest.mark.parametrize(
    ("attacked", "tried", "value", "n", "flag", "says"),
    [
        ([1.0] * 6 + [0.0] * 34, 1, 0.15, 40, "fooled", "more of these passages count as relevant"),
        ([1.0] * 6 + [0.0] * 34, 100, 0.15, 40, "", "with 100 probes tried, this may be chance"),
        ([np.nan] * 5 + [1.0] * 35, 1, 1, 35, "fooled", "5 more have no label"),
        ([np.nan] * 40, 1, np.nan, 0, "", "unknown: only 0 of 40 pairs have both labels"),
    ],
)
def test_a_probe_that_turns_some_labels(
    attacked: list[float], tried: int, value: float, n: int, flag: str, says: str, finished: Path
) -> None:
    pairs = [(f"q{i % TOWNS:02}", f"d{i % TOWNS:02}x{i // TOWNS}") for i in range(40)]
    material = read(finished / "out")
    made = gullibility.effect(material, "hash", probe("pad"), pairs, np.zeros(40), np.array(attacked), tried=tried)
    first = made[0]
    assert (first.value, first.n, first.flag) == (pytest.approx(value, nan_ok=True), n, flag)
    assert says in first.verdict
