"""A judge held against people's labels, on queries that nothing was chosen on."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.outputs import noting_reads
from judgekit.errors import DataError, UsageError
from judgekit.people.reading import read_judgments, resolve
from judgekit.people.sampling import draw
from judgekit.people.validate import log_opening, part_of, rogan_gladen, validate


@pytest.fixture
def people(collection, truth, judged):
    sample = draw(collection, n=60, prompt="binary")
    return resolve(read_judgments([judged(sample, "1", lambda row: truth[row["query_id"], row["doc_ids"][0]])]))


def test_a_query_is_in_one_part_whatever_others_there_are():
    parts = Counter(part_of(f"q{i}") for i in range(5000))
    assert {part: round(n / 5000, 1) for part, n in parts.items()} == {"train": 0.2, "dev": 0.4, "test": 0.4}
    assert part_of("q1") == part_of("q1")
    assert any(part_of(f"q{i}", 1) != part_of(f"q{i}", 2) for i in range(9))


def test_the_threshold_is_chosen_on_dev_and_told_on_test(people, truth, machine):
    random = np.random.default_rng(3)
    table = machine.table.assign(
        relevance=[min(max(0.25 + 0.5 * truth[row.query_id, row.doc_id] + 0.1 * random.standard_normal(), 0), 1)
                   for row in machine.table.itertuples()]
    )  # fmt: skip
    found = validate(people, {"judge": machine, "p-yes": Labeling("p-yes", Scale("unit"), table)}, part="test")
    assert found.chosen[0] == "p-yes"
    assert 0.4 < found.chosen[1] < 0.6
    assert found.part == "test"
    dev = {row.query_id for row in people.asked.itertuples() if part_of(row.query_id) == "dev"}
    assert set(found.grid["pairs"]) == {sum(query in dev for query in people.asked["query_id"])}


def test_the_shares_are_counted_with_their_intervals_beside_a_constant(people, truth, machine):
    found = validate(people, {"judge": machine}, part="test")
    rows = found.test.set_index("what")
    said = machine.table.set_index(["query_id", "doc_id"])["relevance"]
    held = [row for row in people.labeling.table.itertuples() if part_of(row.query_id) == "test"]
    right = [row for row in held if row.relevance == 1]
    hits = sum(said[row.query_id, row.doc_id] == 1 for row in right)
    assert rows.loc["sensitivity", "value"] == hits / len(right)
    assert rows.loc["sensitivity", "pairs"] == len(right)
    assert rows.loc["sensitivity", "ci_low"] < hits / len(right) < rows.loc["sensitivity", "ci_high"]
    constant = rows.loc["accuracy of always choosing the commoner", "value"]
    assert constant == max(len(right), len(held) - len(right)) / len(held)
    true = np.mean(list(truth.values()))
    corrected = rows.loc["share of relevant pairs, corrected"]
    assert corrected["ci_low"] < true < corrected["ci_high"]
    assert set(found.grades["grade"]) == {0, 1}


def test_the_corrected_prevalence_is_rogan_and_gladen_s():
    # By hand: (0.30 + 0.90 - 1) / (0.80 + 0.90 - 1)
    value, low, high = rogan_gladen(0.30, 200, (0.80, 50), (0.90, 100))
    assert value == pytest.approx(0.2 / 0.7)
    assert low < value < high
    assert math.isnan(rogan_gladen(0.3, 200, (0.5, 50), (0.5, 100))[0])
    assert rogan_gladen(0.05, 200, (0.9, 50), (0.9, 100))[0] == 0


def test_the_interval_of_the_prevalence_covers_it():
    random = np.random.default_rng(8)
    hits = 0
    for _ in range(1000):
        positive = random.binomial(500, 0.2 * 0.85 + 0.8 * 0.1) / 500
        se, sp = random.binomial(40, 0.85) / 40, random.binomial(80, 0.9) / 80
        _, low, high = rogan_gladen(positive, 500, (se, 40), (sp, 80))
        hits += low <= 0.2 <= high
    assert 0.93 <= hits / 1000 <= 0.98


def test_a_judge_no_better_than_a_constant_is_named(people, machine):
    random = np.random.default_rng(9)
    table = machine.table.assign(relevance=random.integers(0, 2, len(machine)).astype(float))
    notes = validate(people, {"coin": Labeling("coin", machine.scale, table)}, part="test").notes
    assert any("right no more often than always choosing the commoner label" in note for note in notes)


def test_opening_the_test_part_is_logged(tmp_path):
    path = tmp_path / "opened.json"
    assert log_opening(path, "judge, threshold 1") == ()
    assert "judge, threshold 1" in log_opening(path, "p-yes, threshold 0.5")[0]
    with noting_reads():  # as in a command, which never replaces what it read
        assert len(log_opening(path, "again")) == 2
    path.write_text("[]")
    with pytest.raises(DataError, match="does not log"):
        log_opening(path, "x")


def test_what_cannot_be_validated_is_said(people, collection, truth, judged, machine):
    with pytest.raises(UsageError, match="give a labeling to validate"):
        validate(people, {})
    best = resolve(read_judgments([judged(draw(collection, n=3, form="best"), "1", lambda row: "none")]))
    with pytest.raises(UsageError, match="do not say what is relevant"):
        validate(best, {"judge": machine})
