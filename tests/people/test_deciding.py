"""Which run is best by people's labels: estimates by the book, how often a decision is wrong, and the way to it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from scipy.stats import norm

from judgekit.analysis.money import Money
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.trec import write_qrels
from judgekit.errors import UsageError
from judgekit.metrics import Measure, evaluate
from judgekit.people.deciding import LOOKS, MARGIN, PILOT, Contest, LookResult, decide, decided_by, worth
from judgekit.people.reading import asked_of, read_judgments, read_people, resolve
from judgekit.people.sampling import draw, draw_wanted


def world(random: np.random.Generator, runs: int, queries: int, docs: int, noise: float) -> tuple[Contest, np.ndarray]:
    """Runs of unlike skill over the same documents, whose labels 0 to 3 a machine gives with noise."""
    relevance = 0.6 * random.standard_normal((queries, 1)) + random.standard_normal((queries, docs))
    gains = 1 / np.log2(np.arange(2, 7))
    counts = np.zeros((runs, queries, docs))
    for row in counts:
        order = np.argsort(-random.normal(1, 0.4) * relevance - random.standard_normal((queries, docs)))[:, :5]
        np.put_along_axis(row, order, np.broadcast_to(gains / gains.sum() / queries, order.shape), 1)
    shown = (counts > 0).any(axis=0)
    cuts = [0.8, 1.4, 2.0]
    machine = np.digitize(relevance + noise * random.standard_normal(relevance.shape), cuts)[shown]
    people = np.digitize(relevance, cuts)[shown] / 3
    names = tuple(f"run{at}" for at in range(runs))
    return Contest(names, counts[:, shown], machine / 3, machine, random.random(len(people))), people


def looks(contest: Contest, truth: np.ndarray) -> Iterator[tuple[LookResult, np.ndarray, np.ndarray]]:
    """Yield what each look says, with people's labels and the chances that it found, until nothing is asked."""
    people, chance = np.full(len(truth), np.nan), np.zeros(len(truth))
    told = None
    while told is None or told.new.any():
        told = contest.look(people, chance)
        yield told, people, chance
        people, chance = np.where(told.new, truth, people), told.chance


def test_a_look_is_the_estimator_as_written():
    contest, truth = world(np.random.default_rng(1), 3, 40, 12, 0.5)
    (first, *_), (_, people, chance) = islice(looks(contest, truth), 2)
    drawn = first.new & (first.chance < 1)
    share = first.chance[drawn] / np.ptp(contest.counts, axis=0)[drawn]
    assert share == pytest.approx(share[0]), "in proportion to weight x spread, which is the same before any label"
    assert contest._reach == pytest.approx(norm.isf(0.025 / 3 / len(LOOKS))), "for three pairs of runs at all looks"
    people[np.flatnonzero(first.new)[::10]] = np.nan  # asked about in vain: as if not drawn
    judged = np.flatnonzero(np.isfinite(people))
    p = chance[judged] * len(judged) / first.new.sum()
    for labels in (people, people * 0 + 0.5, np.where(contest.groups == 0, 0.0, people)):
        y, group = labels[judged], contest.groups[judged]
        overall, mean, spread = max(y.var(), 1 / len(y)), np.zeros(len(people)), np.zeros(len(people))
        for one in set(contest.groups):
            of = y[group == one]
            mean[contest.groups == one] = among = (of.sum() + 2 * y.mean()) / (len(of) + 2)
            spread[contest.groups == one] = np.sqrt((((of - among) ** 2).sum() + 2 * overall) / (len(of) + 2))
        for row in contest.look(np.where(np.isfinite(people), labels, np.nan), chance).table.itertuples():
            counts = contest.counts[contest.runs.index(row.run)] - contest.counts[contest.runs.index(row.other)]
            value = counts @ mean + (counts[judged] * (y - mean[judged]) / p).sum()
            seen, expected = ((1 - p) / p**2 * (counts[judged] * by) ** 2 for by in (y - mean[judged], spread[judged]))
            reach = contest._reach * np.sqrt(max(seen.sum(), expected.sum()))
            assert (row.value, row.ci_low, row.ci_high) == pytest.approx((value, value - reach, value + reach))


def test_what_was_drawn_stays_and_all_pairs_that_differ_are_the_last_look():
    contest, truth = world(np.random.default_rng(2), 4, 60, 12, 1.0)
    asked = []
    for told, _, chance in looks(contest, truth):
        assert (told.chance >= chance).all()
        assert not (told.new & (chance > 0)).any()
        assert (contest.fixed[told.new] < told.chance[told.new]).all()
        asked.append(int(told.new.sum()))
    assert 4 <= len(asked) <= 7


def test_the_looks_take_the_planned_shares_of_a_large_pool():
    contest, truth = world(np.random.default_rng(5), 2, 500, 15, 1.0)
    assert contest._reach == pytest.approx(norm.isf(0.025 / len(LOOKS))), "for one pair of runs"
    shares = [np.isfinite(people).mean() for _, people, _ in islice(looks(contest, truth), 1, 4)]
    assert shares == pytest.approx([PILOT / len(truth), *LOOKS[1:3]], rel=0.15)


@pytest.mark.parametrize(("runs", "noise"), [(2, 1.0), (5, 0.4)])
def test_a_decision_is_seldom_wrong_and_needs_less_than_all(runs, noise):
    random, wrong, shares = np.random.default_rng(3), 0, []
    for _ in range(40):
        contest, truth = world(random, runs, 60, 15, noise)
        told, people, _ = next(look for look in looks(contest, truth) if look[0].decided)
        best = contest.counts @ truth
        wrong += bool(best[contest.runs.index(told.leader)] < best.max() - MARGIN)
        shares.append(np.isfinite(people).mean())
    assert wrong / 40 <= 0.05
    assert np.median(shares) < 0.75


def test_nothing_is_decided_before_anybody_judged_and_equal_runs_need_nearly_all():
    contest, truth = world(np.random.default_rng(4), 2, 60, 15, 0.5)
    same = Contest(contest.runs, contest.counts, np.full(len(truth), 0.5), contest.groups, contest.fixed)
    told = same.look(np.full(len(truth), np.nan), np.zeros(len(truth)))
    assert not told.decided
    assert told.live.all()
    assert np.isinf(told.table["ci_low"]).all()
    some = np.where(same.groups < same.groups.max(), truth, np.nan)
    assert np.isfinite(same.look(some, np.ones(len(truth))).table["value"]).all(), "a group without labels"


def test_pairs_that_people_judge_differently_where_the_machine_says_the_same_are_asked_more_often():
    a, b = np.repeat(np.eye(2), 2000, axis=1)
    said, at = np.arange(4000) % 2, np.arange(4000)
    contest = Contest(("a", "b"), np.stack([a, b]) / 2000, said * 1.0, said, np.random.default_rng(6).random(4000))
    first = contest.look(np.full(4000, np.nan), np.zeros(4000))
    people = np.where(first.new, (said == 1) & (at // 2 % 2 == 1), np.nan)
    sure, doubtful = np.bincount(said[contest.look(people, first.chance).new], minlength=2)
    assert doubtful > 2 * sure, "all pairs weigh the same"


def test_only_runs_that_are_still_in_question_count_for_what_is_expected():
    a, b, both, c = np.repeat(np.eye(4), [100, 100, 900, 900], axis=1)
    machine = 0.5 * (a + b) + both
    contest = Contest(("a", "b", "c"), np.stack([a + both, b + both, c]) / 1000, machine, c.astype(int), c)
    told = contest.look(np.full(2000, np.nan), np.zeros(2000))
    assert told.share == pytest.approx(0.1), "c is out after the pilot, and a and b differ in 200 of 2000 pairs"


@pytest.mark.parametrize(("apart", "share"), [(0.02, 0.25), (0.0, 0.8)])
def test_the_share_that_is_expected_follows_from_the_spread_of_labels(apart, share):
    a, b, both = np.repeat(np.eye(3), [2000, 2000, 1000], axis=1)
    contest = Contest(("a", "b"), np.stack([a + both, b + both]) / 3000, 0.5 + 1.5 * apart * a, both.astype(int), a)
    assert contest.look(np.full(5000, np.nan), np.zeros(5000)).share == pytest.approx(share)


@pytest.mark.parametrize(
    ("primary", "measure", "coin"), [("nDCG@3", "DCG@3", 0), ("P@3", "P@3", 1), ("AP", "DCG@4", 0)]
)
def test_the_way_to_a_decision_by_files(collection, truth, machine, judged, tmp_path, primary, measure, coin):
    truth = {pair: int(pair[1][-1]) % 2 for pair in truth} if coin else truth
    labelings, out = {"judge": machine}, tmp_path / "people.qrels"
    people, asked, wanted = None, set(), {}
    for look in range(8):
        told = decide(collection, labelings, None, primary, 1, people)
        said = " ".join(told.lines(Money(judgment=2.0, currency="EUR")))
        claims = {claim.kind: claim for claim in told.claims(Money())}
        assert any(claim.shown for claim in claims.values()) == told.look.decided == ("decided" in claims)
        if told.over:
            break
        assert f"about {claims['to judge'].value:,.0f} of the {told.pool:,} pairs" in said
        assert ("By judge alone" if people is None else "Not decided") in said
        n = max(round(told.look.share * told.pool), len(told.chance))
        assert ("nearly equal" in said) == (n > 0.8 * told.pool)
        assert f"about {n} of the {told.pool} pairs in all ({n / told.pool:.0%}, {n * 2:.2f} EUR)" in said
        before = () if people is None else told.before(people)
        sample = draw_wanted(collection, told.wanted, told.design, prompt="binary")
        sample = type(sample)(**{**vars(sample), "before": before, "name": ""})
        shown = {(task.query_id, task.doc_ids[0]) for task in sample.tasks}
        assert not shown & asked
        asked |= shown
        judgments = read_judgments(
            [judged(sample, "1", lambda row, _: truth[row["query_id"], row["doc_ids"][0]], f"{look}.jsonl")], sample
        )
        made = resolve(judgments)
        write_qrels(made.labeling, out)
        asked_of(judgments, made).write(out)
        people = read_people(out, collection)
        assert people.seconds == 1.5
        assert set(zip(people.asked["query_id"], people.asked["doc_id"], strict=True)) == asked
        now = people.asked.set_index(["query_id", "doc_id"])["probability"].to_dict()
        assert all(now[pair] >= chance for pair, chance in wanted.items())
        wanted = now
    assert decided_by(told.design) == ("judge", measure)
    every = Labeling("all", Scale("binary"), machine.table.assign(relevance=[float(v) for v in truth.values()]))
    means = evaluate(list(collection.runs), [every], measure, depth=4).means().set_index("run")["value"]
    assert f"Decided: {told.look.leader}" in said
    assert means[told.look.leader] >= means.max() - MARGIN
    assert look == 1 + coin, "labels that no run knows tell none from another"
    assert replace(told, look=replace(told.look, decided=False), new=()).over
    assert replace(told, new=tuple(asked)).over


@pytest.mark.parametrize(
    ("primary", "measure"), [("R@3", "DCG@3"), ("Success@2", "DCG@2"), ("P@2", "P@2"), ("P", "DCG@4")]
)
def test_the_measure_is_the_primary_one_if_that_is_p_at_k_else_dcg(collection, machine, primary, measure):
    assert str(decide(collection, {"judge": machine}, None, primary, 1).measure) == measure


@pytest.mark.parametrize("measure", ["P@3", "DCG@3"])
def test_no_mean_is_above_one(collection, machine, measure):
    graded = machine.table.assign(relevance=machine.table["relevance"] * 3)
    contest, pairs = Contest.of(collection, Labeling("graded", Scale("grades", 3), graded), Measure(measure), 1)
    assert set(contest.machine) == {0, 1}
    assert contest.counts.sum(axis=1) == pytest.approx(1)
    assert len(pairs) == len(set(pairs)) == contest.counts.shape[1]


def test_what_cannot_be_decided_is_a_sentence(collection, machine, people_of):
    people = people_of(draw(collection, n=10, design="pairs", prompt="binary"), lambda *_: 1)
    two = {"judge": machine, "other": machine}
    for labelings, by, said, message in (
        ({}, None, None, "needs the labels of a finished run"),
        (two, None, None, "name it with --by, one of judge, other"),
        (two, "jugde", None, "unknown labeling 'jugde'"),
        (two, None, people, "not sampled by the design 'decision'"),
    ):
        with pytest.raises(UsageError, match=message):
            decide(collection, labelings, by, "P@3", 1, said)
    for runs, message in ((1, "there is only one"), (2, "all runs have the same lists at depth 3")):
        with pytest.raises(UsageError, match=message):
            decide(replace(collection, runs=collection.runs[:1] * runs), {"judge": machine}, None, "P@3", 1)


def test_a_run_that_people_were_never_asked_about_is_not_decided_on(collection, machine, people_of):
    labelings, fewer = {"judge": machine}, replace(collection, runs=collection.runs[:2])
    told = decide(fewer, labelings, None, "P@3", 1)
    sample = draw_wanted(fewer, told.wanted, told.design, prompt="binary")
    people = people_of(sample, lambda *_: 1)
    assert decide(fewer, labelings, None, "P@3", 1, people).judged
    with pytest.raises(UsageError, match="not those that the sample was drawn from"):
        decide(collection, labelings, None, "P@3", 1, people)


def test_what_a_label_adds_to_a_sum_is_its_gain_or_whether_it_is_relevant():
    labels, scale = np.array([-1, 1, 2, np.nan]), Scale("grades", 3, -1, 2)
    for measure, values in (
        ("P@3", [0, 0, 1, np.nan]),
        ("P(rel=1)@3", [0, 1, 1, np.nan]),
        ("DCG@3", [0, 1, 2, np.nan]),
    ):
        assert worth(labels, scale, Measure(measure)).tolist() == pytest.approx(values, nan_ok=True)
    assert worth(np.array([0.3]), Scale("unit"), Measure("P@3")).tolist() == [0.3]
