"""Machine labels corrected by people's: against an independent implementation, and by what has to hold."""

import numpy as np
import pytest
from scipy import stats

from judgekit.analysis.differences import holm
from judgekit.data.labelings import Labeling
from judgekit.errors import UsageError
from judgekit.metrics import evaluate
from judgekit.people.correct import Corrected, correct, corrected_difference, corrected_mean
from judgekit.people.reading import read_judgments, resolve
from judgekit.people.sampling import Handout, draw


def by_the_book(people, machine, every, reach):
    """The estimator as it is written, one query after the other."""
    n, total = len(people), len(every)
    residuals = []
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        covariance = np.cov(people[rest], machine[rest])
        weight = max(covariance[0, 1] / covariance[1, 1], 0) if covariance[1, 1] > 0 else 0
        residuals.append(people[i] - weight * (machine[i] - every.mean()))
    variance = (1 / n - 1 / total) * np.var(residuals, ddof=1) + np.var(people, ddof=1) / total
    variance += 2 * (reach / n) ** 2
    half = stats.t.ppf(0.975, n - 1) * np.sqrt(variance)
    value = np.mean(residuals)
    return value, value - half, value + half, 2 * stats.t.sf(abs(value) / np.sqrt(variance), n - 1)


@pytest.mark.parametrize(("slope", "noise"), [(1, 0), (1, 0.05), (1, 0.5), (0, 0), (-1, 0.05)])
def test_a_corrected_mean_is_the_estimator_as_written(slope, noise):
    random = np.random.default_rng(4)
    people, drawn = random.random(80) / 10, random.choice(80, 20, replace=False)
    every = slope * people + noise * random.standard_normal(80)
    made = corrected_mean(people[drawn], every[drawn], every, reach=0.1)
    expected = by_the_book(people[drawn], every[drawn], every, 0.1)
    assert (made.value, made.low, made.high, made.p) == pytest.approx(expected)
    assert (made.weight == 0) == (slope < 1)


def test_means_and_differences_are_those_that_people_find_and_these_are_tested_together(collection, machine, people_of):
    sample = draw(collection, n=30, prompt="binary")
    people = people_of(sample)
    found = correct(collection, people, {"judge": machine}, "nDCG@3")
    runs = {run.name: run for run in collection.runs}
    asked = sorted({task.query_id for task in sample.tasks})
    scores = evaluate(list(collection.runs), [people.labeling], "nDCG@3", query_ids=asked, depth=4).values[0][0]
    by_run, top = dict(zip(runs, scores, strict=True)) | {"": np.zeros(30)}, lambda run, q: run and runs[run].top(q, 3)
    for row in found.table.itertuples():
        apart = {q for q in collection.queries if top(row.run, q) != top(row.other, q)}
        mine = [query in apart for query in asked]
        difference = (by_run[row.run] - by_run[row.other])[mine].mean() * len(apart) / 60
        assert row.people == pytest.approx(difference)
        assert row.bias == pytest.approx(row.machine - row.value)
        assert row.worth == pytest.approx(((row.people_high - row.people_low) / (row.ci_high - row.ci_low)) ** 2)
    tested = found.table[found.table["other"] != ""]
    assert tested["p_holm"].tolist() == pytest.approx(holm(tested["p"]))
    assert (found.table["worth"] > 1).mean() > 0.7  # nine of ten labels are right: they save people work
    assert set(found.table["judged"]) == {30}
    assert not any("nearly always" in note for note in found.notes)


def test_single_pairs_correct_no_means(collection, machine, people_of):
    people = people_of(draw(collection, n=120, design="pairs", prompt="binary"))
    with pytest.raises(UsageError, match="sample whole queries"):
        correct(collection, people, {"judge": machine}, "P@3")


def test_too_few_and_useless_labels_are_said(collection, machine, people_of):
    turned = Labeling("turned", machine.scale, machine.table.assign(relevance=1 - machine.table["relevance"]))
    people = people_of(draw(collection, n=10, prompt="binary"))
    notes = " ".join(correct(collection, people, {"turned": turned}, "RR").notes)
    assert "there are few queries: judge 25 or more" in notes
    assert "turned says almost nothing about people's RR" in notes
    enough = people_of(draw(collection, n=25, prompt="binary"))
    assert not any("nearly always" in note for note in correct(collection, enough, {"turned": turned}, "RR").notes)
    assert corrected_mean(np.arange(3.0), np.ones(3), np.ones(9)).value == 1
    with pytest.raises(UsageError, match="people judged 2 queries"):
        corrected_mean(np.ones(2), np.ones(2), np.ones(9))
    three = people_of(draw(collection, n=3, prompt="binary"))
    assert set(correct(collection, three, {"judge": machine}, "P@1").table["judged"]) == {3}


def test_queries_that_are_left_open_are_counted_and_told_with_what_to_do(collection, machine, judged, recwarn):
    sample = draw(collection, n=10, prompt="binary", handout=Handout(("ann", "bob"), overlap=2))
    odd, ann = (sample.tasks[0].query_id, sample.tasks[0].doc_ids[0]), judged(sample, "ann")

    def corrected(turned):
        bob = judged(sample, "bob", lambda row, true: true ^ turned((row["query_id"], *row["doc_ids"])))
        return correct(collection, resolve(read_judgments([ann, bob], sample)), {"judge": machine}, "Success@1")

    notes = " ".join(corrected(lambda pair: pair == odd).notes)
    assert "Success@1 rests on 9 of the 10 queries" in notes
    assert "1 of 57 pairs have no human label" in notes
    two = sorted({task.query_id for task in sample.tasks})[:2]
    with pytest.raises(UsageError, match="2 of 10 queries that people were asked about have a label of every passage"):
        corrected(lambda pair: pair[0] not in two)
    assert not recwarn.list


@pytest.mark.parametrize(("share", "n"), [(0.1, 50), (0.1, 80), (0.25, 25)])
def test_differences_on_few_queries_are_covered_or_have_no_interval(share, n):
    random = np.random.default_rng(12)
    hits, given = 0, 0
    for _ in range(400):
        differ = np.arange(200) < share * 200
        y = np.where(differ, random.choice([-0.5, 0.0, 0.3, 1.0], 200), 0.0)
        f = np.where(differ, y + 0.3 * random.standard_normal(200), 0.0)
        judged = np.isin(np.arange(200), random.choice(200, n, replace=False))
        made, _ = corrected_difference(y, f, judged, differ, 0.95)
        assert np.isfinite(made.low) == ((judged & differ).sum() >= 8)
        if np.isfinite(made.low):
            given += 1
            hits += made.low <= y.mean() <= made.high
        else:
            taken = y[judged & differ]
            value = differ.mean() * taken.mean() if len(taken) else np.nan
            assert (made.value, made.freedom, made.weight) == pytest.approx((value, 0, 0), nan_ok=True)
    assert given > 20
    assert hits / given >= 0.93


def test_runs_with_the_same_lists_do_not_differ():
    made, alone = corrected_difference(np.zeros(9), np.zeros(9), np.ones(9, bool), np.zeros(9, bool), 0.95)
    assert made == alone == Corrected(0, 0, 0, 0, 0, 0)
    assert made.p == 1


def test_a_rare_large_win_that_was_not_judged_is_allowed_for():
    """Scores are alike on all judged queries, and differ by all there is on the others."""
    judged = np.arange(200) < 50
    people = np.where(judged, 0.0, 1.0 * (np.arange(200) % 50 == 0))
    made, alone = corrected_difference(people, np.zeros(200), judged, np.ones(200, bool), 0.95)
    assert made.low < 0 < people.mean() <= made.high
    assert alone.high >= people.mean()
    assert made.p > 0.9
    few, _ = corrected_difference(people, np.zeros(200), np.arange(200) < 7, np.ones(200, bool), 0.95)
    assert np.isnan(few.low), "seven judged queries show nothing"
    wide, _ = corrected_difference(people, np.zeros(200), judged, np.ones(200, bool), 0.95, reach=2.0)
    assert wide.high == pytest.approx(2 * made.high)
