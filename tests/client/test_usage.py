"""Money and budgets: standalone and incurred apart, failures counted, unknown prices unknown."""

from typing import Any

import pytest

from judgekit.client.budget import Amount, Budget, Price
from judgekit.errors import BudgetError, UsageError
from tests.programs import UNITS, Run, scripted
from tests.scripted import Scripted, ScriptedTransport, completion, error

PRICES = {"m": Price(1000, 1000)}


def run(*args: Any, **options: Any) -> tuple[Run, int]:
    found, sent = scripted(*args, **options)
    return found, len(sent)


def over(*args: Any, budget: Budget, **options: Any) -> tuple[Run, int]:
    """Run until a budget is used up."""
    found, sent = run(*args, session={"budget": budget, "prices": PRICES}, **options)
    assert isinstance(found.error, BudgetError)
    return found, sent


def test_standalone_and_incurred_are_separate_columns(tmp_path):
    prices = {"m": Price(1_000_000, 2_000_000)}
    run("yes it is", tmp_path, UNITS[:20], session={"prices": prices})
    again, sent = run("yes it is", tmp_path, session={"prices": prices})
    assert sent == 10
    assert again.usage.standalone == Amount(30, 30, 90, 30 + 180)
    assert again.usage.incurred == Amount(10, 10, 30, 10 + 60)
    assert (again.usage.sent, again.usage.cached, again.usage.failed) == (10, 20, 0)
    assert again.totals["here"].incurred == again.usage.incurred
    assert again.usage.wall_s > 0


def test_request_seconds_are_stored_with_the_replies_and_survive_running_again(tmp_path):
    slow = completion("yes it is", delay_s=0.02)
    first, sent = run(slow, tmp_path, UNITS[:10])
    assert (sent, first.usage.standalone.untimed) == (10, 0)
    assert first.usage.standalone.seconds >= 10 * 0.02, "requests that run at the same time count each"
    again, sent = run(slow, tmp_path, UNITS[:10])
    assert sent == 0
    assert again.usage.standalone.seconds == pytest.approx(first.usage.standalone.seconds)
    assert again.usage.incurred.seconds == 0


def test_replaying_a_recording_takes_no_time_that_would_be_the_models(tmp_path):
    transport = ScriptedTransport("yes")
    found = Run("recorded:", UNITS[:3], tmp_path, session={"transports": lambda _: transport})
    assert (found.usage.standalone.requests, found.usage.standalone.untimed) == (3, 3)


def test_the_seconds_of_failed_attempts_are_incurred_only():
    found, _ = run([Scripted(500, b"{}", delay_s=0.05), "yes"], units=UNITS[:1])
    assert found.usage.incurred.seconds >= found.usage.standalone.seconds + 0.05


def test_failed_attempts_count_with_the_tokens_the_server_reported():
    cut = b'{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}'
    found, _ = run([Scripted(200, cut), error(500, "x"), "yes"], units=UNITS[:1])
    assert found.usage.incurred == Amount(3, 8, 4, None, unreported=1)
    assert found.usage.standalone == Amount(1, 1, 1, None)


def test_an_unknown_price_is_unknown_and_a_price_by_endpoint_name_wins():
    assert run("yes")[0].usage.standalone.money is None
    prices = {"m": Price(0, 0), "here": Price(0, 1_000_000)}
    assert run("yes", session={"prices": prices})[0].usage.standalone.money == 30


def test_a_budget_of_requests_is_kept_to_the_letter_retries_included():
    found, sent = over(lambda body: error(500, "x"), budget=Budget(max_requests=7), max_retries=9)
    assert found.usage.incurred.requests == sent == 7


@pytest.mark.parametrize("budget", [Budget(max_requests=0), Budget(max_cost=0.0)], ids=str)
def test_a_budget_of_nothing_replays_and_sends_nothing(tmp_path, budget):
    run("yes", tmp_path, UNITS[:20])
    found, sent = over("yes", tmp_path, budget=budget)
    assert (len(found.outcomes), sent) == (20, 0)
    whole, sent = run("yes", tmp_path, UNITS[:20], session={"budget": budget, "prices": PRICES})
    assert (whole.error, sent) == (None, 0)


SILENT = Scripted(200, b'{"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}')


def test_a_cost_limit_binds_where_a_server_reports_no_tokens_and_that_is_said_once():
    found, sent = over(SILENT, budget=Budget(max_cost=1.0), concurrency=2, params={"max_tokens": 100})
    # at most 35 tokens of prompt and 100 of room each
    assert sent == len(found.outcomes) == 7
    assert found.usage.incurred == Amount(7, 0, 0, 0.0, unreported=7), "what is reported stays honest"
    assert len([note for note in found.notes if "without a count of tokens" in note]) == 1


ZEROS = Scripted(200, SILENT.body[:-1] + b', "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}')


def test_zeros_are_no_count_and_switch_no_limit_off():
    found, sent = over(ZEROS, budget=Budget(max_cost=1.0), concurrency=2, params={"max_tokens": 100})
    assert sent == len(found.outcomes) == 7
    assert "at most about" in str(found.error)


@pytest.mark.parametrize("reply", [SILENT, ZEROS])
def test_what_was_spent_is_never_nothing_because_nobody_counted(reply):
    found, _ = run(reply, session={"prices": PRICES}, params={"max_tokens": 100})
    last = found.events[-1]
    assert last.uncounted == 30
    assert last.spent == pytest.approx(found.usage.standalone.at_most, rel=0.01)
    assert 30 * 0.1 < last.spent < 30 * 0.2


def test_estimates_of_requests_in_flight_are_waited_for_and_stop_nothing():
    # 4 tokens are reported of each of 30 requests, while 8 at a time might take 125 each.
    session = {"budget": Budget(max_cost=0.001 * (4 * 30 + 130)), "prices": PRICES}
    slow = completion("yes it is", delay_s=0.01)
    found, sent = run(slow, session=session, concurrency=8, params={"max_tokens": 100})
    assert (found.error, sent) == (None, 30)


def test_what_may_have_been_paid_for_counts_until_it_is_known():
    cut = Scripted(200, b'{"choices": [{"mess')
    assert over(cut, units=UNITS[:1], budget=Budget(max_cost=0.3), params={"max_tokens": 100})[1] == 2


def test_a_failed_attempt_without_tokens_gives_its_estimate_back():
    fault = error(500, "x")
    found, sent = run(
        [*[fault] * 4, "yes"],
        units=UNITS[:1],
        session={"budget": Budget(max_cost=0.15), "prices": PRICES},
        params={"max_tokens": 100},
    )
    assert (found.texts, sent) == (["yes"], 5)


def test_a_cost_limit_stops_the_run_and_needs_a_price():
    found, _ = over("yes", budget=Budget(max_cost=0.05), concurrency=1)
    assert 0 < (found.usage.incurred.money or 0) <= 0.05
    found, sent = run("yes", session={"budget": Budget(max_cost=0.05)})
    assert isinstance(found.error, UsageError)
    assert sent == 0


def test_what_is_left_of_a_budget_is_never_below_nothing():
    left = Budget(max_requests=3, max_cost=5).less(Amount(5, 20, 10, 2.0))
    assert (left, str(left)) == (Budget(0, 3), "0 requests, 3 money")
