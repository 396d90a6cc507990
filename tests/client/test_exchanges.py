"""What the replies behind a label took: sums of what is known, and nothing where one of them does not say it."""

import json
import math

import pytest
from hypothesis import given, strategies as st

from judgekit.client.exchanges import Exchange, Exchanges, exchange_of
from judgekit.data.tables import Status
from judgekit.wire.types import Failure, Reply


def reply(usage: tuple[int, int] | None, seconds: float | None, stored_at: float | None) -> Reply:
    body: dict[str, object] = {"choices": [{"message": {"content": ""}}]}
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return Reply("key", json.dumps(body), seconds=seconds, stored_at=stored_at)


FAILED = Failure("key", Status.FAILED, "no reply")


def test_two_replies_are_added_up_and_the_later_one_dates_them():
    told = exchange_of([reply((300, 2), 0.5, 20.0), FAILED, reply((310, 1), 0.25, 10.0)])
    assert told == Exchange(2, 610, 3, 0.75, 20.0)


@pytest.mark.parametrize("outcomes", [[], [FAILED]])
def test_without_a_reply_nothing_is_known(outcomes):
    assert all(map(math.isnan, exchange_of(outcomes)))


counts = st.integers(1, 2**40)
replies = st.tuples(st.none() | st.tuples(counts, counts), st.none() | st.floats(0, 1e6), st.none() | st.floats(0, 4e9))


@given(st.lists(replies, min_size=1, max_size=4))
def test_a_sum_is_known_if_every_part_is(parts):
    told = exchange_of([reply(*part) for part in parts])
    usages, seconds, times = zip(*parts, strict=True)
    assert told.requests == len(parts)
    assert math.isnan(told.prompt_tokens) == math.isnan(told.completion_tokens) == (None in usages)
    assert math.isnan(told.seconds) == (None in seconds)
    assert math.isnan(told.stored_at) == (None in times)
    if None not in usages:
        assert told.prompt_tokens == sum(usage[0] for usage in usages if usage)
    if None not in times:
        assert told.stored_at == max(times)


def test_replies_behind_several_labels_belong_to_none_of_them():
    exchanges = Exchanges()
    exchanges.add([reply((5, 1), 1.0, 2.0)], 1)
    exchanges.add([reply((9, 1), 1.0, 2.0)], 3)
    requests = exchanges.table()["requests"].to_pylist()
    assert requests[0] == 1
    assert len(requests) == 4
    assert all(map(math.isnan, requests[1:]))


def test_without_labels_the_table_has_its_columns():
    assert Exchanges().table().column_names == list(Exchange._fields)
