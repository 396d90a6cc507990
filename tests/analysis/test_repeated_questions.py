"""A question that stands in several rows is one question: copies of a table make nothing surer."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import judgekit as jk
from judgekit.analysis.background import Background
from judgekit.analysis.comparison import Comparison, compare
from judgekit.data.documents import Query
from judgekit.errors import DataError
from judgekit.rules import Rules
from tests.analysis.worlds import claims, tables

FAST = Rules(resamples=100)
UNKNOWN = "their texts are not known"


def said(comparison: Comparison) -> pd.DataFrame:
    """All claims but the one that counts rows and questions."""
    table = comparison.decision.table
    return table[table["kind"] != "questions"].reset_index(drop=True)


def words(decision: jk.Decision) -> str:
    return " ".join(decision.text.split())


def text_of(query_id: str) -> str:
    return f"What is item {query_id}?"


def texts(scores: pd.DataFrame) -> dict[str, Query]:
    """The questions of a table whose copies are called ID-1, ID-2, …; each is spelled in its own way."""
    return {name: Query(name, text_of(name.split("-")[0]) + "?" * name.count("-")) for name in set(scores["query_id"])}


def copied(table: pd.DataFrame, copies: int) -> pd.DataFrame:
    """A table with copies of each question under other ids."""
    parts = [table, *(table.assign(query_id=table["query_id"] + f"-{number}") for number in range(1, copies))]
    return pd.concat(parts, ignore_index=True)


def drawn(seed: int, runs: int, questions: int, missing: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores by two labelings of some runs, and answers, of which some may be missing."""
    rng = np.random.default_rng(seed)
    use = 0.3 * np.arange(runs)[:, None] + rng.normal(size=(runs, questions))
    right = np.asarray(use + rng.normal(size=questions) > 0.4, np.float64)
    scores = {"judge": np.round(use + rng.normal(size=use.shape), 1), "words": np.round(rng.normal(size=use.shape), 1)}
    names = [f"r{run}" for run in range(runs)]
    table, answers = tables(scores, right, tuple(names))
    gone = np.asarray(rng.random(len(answers)) < missing, np.bool_)
    return table, answers.assign(value=answers["value"].mask(gone))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    runs=st.integers(1, 4),
    questions=st.integers(8, 60),
    copies=st.integers(2, 5),
    missing=st.sampled_from([0.0, 0.05]),
)
def test_copies_change_no_claim_interval_or_count(seed, runs, questions, copies, missing):
    scores, quality = drawn(seed, runs, questions, missing)
    once = compare(scores, quality, FAST, queries=texts(scores))
    shuffled = np.random.default_rng(seed)
    more, answers = copied(scores, copies), copied(quality, copies)
    more, answers = more.iloc[shuffled.permutation(len(more))], answers.iloc[shuffled.permutation(len(answers))]
    often = compare(more, answers, FAST, queries=texts(more))
    pd.testing.assert_frame_equal(said(often), said(once))
    pd.testing.assert_frame_equal(often.table, once.table)
    pd.testing.assert_frame_equal(often.differences, once.differences)
    counted = claims(often.decision, "questions")[""]
    assert f"{len(set(answers['query_id'])):,} rows" in counted.sentence
    assert not claims(once.decision, "questions")


def test_copies_of_an_uneven_table_change_nothing_either():
    scores, quality = drawn(3, 3, 60)
    uneven = [f"q{number:04d}" for number in range(20)]
    frames = []
    for table in (scores, quality):
        again = table[table["query_id"].isin(uneven)]
        frames.append(pd.concat([table, again.assign(query_id=again["query_id"] + "-x")], ignore_index=True))
    once = compare(*frames, FAST, queries=texts(frames[0]))
    often = compare(copied(frames[0], 3), copied(frames[1], 3), FAST, queries=texts(copied(frames[0], 3)))
    pd.testing.assert_frame_equal(said(often), said(once))
    assert "80 rows, 60 different questions" in words(once.decision)


def test_rows_keep_their_weight_in_a_mean_and_are_one_piece_of_evidence():
    scores, quality = drawn(5, 2, 40)
    again = [table[table["query_id"] == "q0000"] for table in (scores, quality)]
    frames = []
    for table, rows in zip((scores, quality), again, strict=True):
        more = [rows.assign(query_id=rows["query_id"] + f"-{copy}") for copy in range(40)]
        frames.append(pd.concat([table, *more], ignore_index=True))
    often = compare(*frames, FAST, queries=texts(frames[0]))
    apart = compare(*frames, replace(FAST, groups="none"), queries=texts(frames[0]))
    means = {
        name: [row.value for row in part.decision.of("run").itertuples()] for name, part in (("o", often), ("a", apart))
    }
    assert means["o"] == pytest.approx(means["a"], abs=1e-9), "a question that is asked often weighs as often"
    low = {name: float(part.decision.of("run")["low"].min()) for name, part in (("o", often), ("a", apart))}
    assert low["o"] < low["a"] - 5, "half of all rows are one question, which says little of others"


def test_answers_to_rows_of_one_question_are_samples_whose_mean_is_its_quality():
    scores, quality = drawn(7, 2, 40)
    values = np.random.default_rng(1).integers(0, 2, (3, len(quality))).astype(float)
    sampled = [quality.assign(value=values[0])]
    asked = [scores]
    for number in (1, 2):
        sampled.append(quality.assign(value=values[number], query_id=quality["query_id"] + f"-{number}"))
        asked.append(scores.assign(query_id=scores["query_id"] + f"-{number}"))
    rows = pd.concat(asked, ignore_index=True)
    found = compare(rows, pd.concat(sampled, ignore_index=True), FAST, queries=texts(rows))
    mean = compare(scores, quality.assign(value=values.mean(axis=0)), FAST, queries=texts(scores))
    pd.testing.assert_frame_equal(said(found), said(mean))


def test_groups_join_what_shares_no_text():
    scores, quality = drawn(11, 2, 60)
    pages = Background(groups={name: str(int(name[1:]) // 2) for name in quality["query_id"]})
    once = compare(scores, quality, FAST, queries=texts(scores), background=pages)
    more = copied(scores, 3)
    groups = {name: str(int(name[1:5]) // 2) for name in more["query_id"]}
    often = compare(more, copied(quality, 3), FAST, queries=texts(more), background=Background(groups=groups))
    pd.testing.assert_frame_equal(said(often), said(once))


def test_groups_none_parts_equal_texts():
    scores, quality = (copied(table, 5) for table in drawn(3, 2, 40))
    parted = compare(scores, quality, replace(FAST, groups="none"), queries=texts(scores))
    rows = compare(scores, quality, FAST)
    pd.testing.assert_frame_equal(said(parted), said(rows))
    assert not claims(parted.decision, "questions"), "the user said so"


def test_it_is_said_where_texts_are_not_known():
    scores, quality = drawn(3, 2, 40)
    assert UNKNOWN in words(compare(scores, quality, FAST).decision)
    assert UNKNOWN in words(jk.decide(scores, quality, FAST))
    one_run = [table[table["run"] == "r0"] for table in (scores, quality)]
    assert UNKNOWN in words(compare(*one_run, FAST).decision)
    grouped = Background(groups={name: name for name in quality["query_id"]})
    assert UNKNOWN not in words(compare(scores, quality, FAST, background=grouped).decision)
    assert UNKNOWN not in words(compare(scores, quality, FAST, queries=texts(scores)).decision)


@pytest.mark.parametrize("place", [0, 1])
def test_a_column_of_texts_tells_repeats(place):
    frames = [copied(table, 5) for table in drawn(3, 2, 40)]
    known = compare(*frames, FAST, queries=texts(frames[0]))
    frames[place] = frames[place].assign(text=frames[place]["query_id"].str.split("-").str[0].map(text_of))
    pd.testing.assert_frame_equal(compare(*frames, FAST).decision.table, known.decision.table)


def test_two_texts_of_one_query_are_refused():
    scores, quality = drawn(3, 2, 40)
    odd = quality.assign(text=quality["run"])
    with pytest.raises(DataError, match="has two texts"):
        compare(scores, odd, FAST)


def test_contradicting_references_are_counted_and_the_cure_is_named():
    frames = [copied(table, 2) for table in drawn(3, 2, 40)]
    asked: Mapping[str, Query] = {
        name: replace(query, answers=("yes" if "-" in name and name < "q0012" else "no",))
        for name, query in texts(frames[0]).items()
    }
    found = compare(*frames, FAST, queries=asked).decision
    assert "12 repeated texts have different reference answers" in words(found)
    assert 'groups = "none"' in words(found)


def test_a_table_read_twice_is_still_refused():
    scores, quality = (copied(table, 2) for table in drawn(3, 2, 40))
    with pytest.raises(DataError, match="two values"):
        compare(scores, pd.concat([quality, quality], ignore_index=True), FAST, queries=texts(scores))
