"""How far a whole run is: time left, money, failures; the store's replies count in neither rate nor expectation."""

import pytest

from judgekit.console.bars import Course
from judgekit.progress import Event
from tests.mock import URL
from tests.small import toml


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def stage(name: str, done: int, total: int, sent: int = 0, cached: int = 0, failed: int = 0, **rest: float) -> Event:
    return Event(name, done, total, sent, cached, failed, **rest)  # type: ignore[arg-type]  # money alone


def test_the_time_left_is_that_of_the_whole_run(clock):
    course = Course(clock)
    course.note(Event("run", 0, None, ahead={"label judge": 100, "answer": 300}))
    assert course.told() == "0%"
    course.note(stage("label judge", 0, 100))
    clock.now = 50
    course.note(stage("label judge", 50, 100, sent=50))
    assert course.foreseen() == (350.0, None)
    assert course.told() == "12%, about 6 min left"


def test_replies_from_the_store_take_no_time_and_no_money(clock):
    course = Course(clock)
    course.note(stage("label judge", 0, 1000))
    clock.now = 10
    course.note(stage("label judge", 500, 1000, sent=10, cached=490, spent=1.0))
    seconds, money = course.foreseen() or (0, 0)
    assert seconds == pytest.approx(10)
    assert money == pytest.approx(2.0)
    assert course.told() == "50%, about 10 s left, 1 spent of about 2"


def test_a_stage_that_was_all_in_the_store_tells_nothing_of_the_next(clock):
    course = Course(clock)
    course.note(Event("run", 0, None, ahead={"label judge": 100, "answer": 100}))
    course.note(stage("label judge", 100, 100, cached=100))
    assert course.foreseen() is None
    course.note(stage("answer", 0, 100))
    clock.now = 20
    course.note(stage("answer", 20, 100, sent=20))
    assert course.foreseen() == (pytest.approx(80), None)


def test_failures_money_and_the_limit_are_shown(clock):
    course = Course(clock)
    course.note(stage("label a", 0, 10))
    clock.now = 600
    course.note(stage("label a", 5, 10, sent=4, failed=1, spent=0.25, limit=5.0))
    assert course.told() == "50%, about 10 min left, 1 failed, 0.25 spent of about 0.5 (at most 5)"
    course.note(stage("label a", 10, 10, sent=9, failed=1, spent=0.5, limit=5.0))
    assert course.told() == "100%, 1 failed, 0.5 spent (at most 5)"


def test_stages_that_ask_nobody_do_not_count_as_the_run(clock):
    course = Course(clock)
    course.note(stage("label containment", 500, 1000))
    course.note(Event("score", 0, None))
    assert course.told() == ""
    assert course.units == (0, 0)


def test_stages_without_requests_are_told_too_and_money_at_the_end(judgekit, folder):
    said = judgekit("run", "experiment.toml", "--out", "results", "--cache", "store")
    assert [line.split(":")[0] for line in said.err.splitlines()] == [
        *("label containment", "label judge", "label erag", "answer", "score", "compare", "report")
    ]
    server = {"endpoints": {"local": {"base_url": URL, "model": "mock"}}}
    (folder / "priced.toml").write_text(toml(**server, prices={"mock": {"prompt": 1.0, "completion": 1.0}}))
    said = judgekit(
        *("label", "judge", "--queries", "queries.jsonl", "--docs", "docs.jsonl", "--run", "good.trec"),
        *("--out", "out.qrels", "--cache", "other", "--endpoint", "priced.toml"),
    )
    assert "spent: 0.00" in said.err
