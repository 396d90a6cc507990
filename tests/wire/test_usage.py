"""What servers count of tokens, and what they do not."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.client.budget import Amount, Price
from judgekit.wire.types import Reply
from judgekit.wire.usage import Tokens, tokens_used

TEXT: dict[str, Any] = {"message": {"content": "Yes"}, "finish_reason": "stop"}
SILENT: dict[str, Any] = {"message": {"content": ""}, "finish_reason": "stop"}


def counted(prompt: Any, completion: Any = None, total: Any = None, **more: Any) -> dict[str, Any]:
    named = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {name: value for name, value in named.items() if value is not None} | more


def thought(tokens: int) -> dict[str, Any]:
    return {"completion_tokens_details": {"reasoning_tokens": tokens}}


def cached(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens_details": {"cached_tokens": tokens}}


# Of one request: a prompt of 100 tokens, 48 of thinking, 2 of a verdict.
TABLE = {
    "openai": (counted(100, 50, 150, **thought(48)), Tokens(100, 50, None, 48)),
    "gemini: in the total only": (counted(100, 2, 150), Tokens(100, 50, None, 48)),
    "xai: beside the completion": (counted(100, 2, 150, **thought(48)), Tokens(100, 50, None, 48)),
    "beside, without a total": (counted(100, 2, **thought(48)), Tokens(100, 50, None, 48)),
    "no thinking": (counted(100, 2, 102), Tokens(100, 2)),
    "no total": (counted(100, 2), Tokens(100, 2)),
    "a total that is less": (counted(100, 2, 50), Tokens(100, 2)),
    "a total of zero": (counted(100, 2, 0), Tokens(100, 2)),
    "openai's cache": (counted(100, 2, 102, **cached(64)), Tokens(100, 2, 64)),
    "deepseek's cache": (counted(100, 2, 102, prompt_cache_hit_tokens=64), Tokens(100, 2, 64)),
    "cached beside the prompt": (counted(36, 2, 102, **cached(64)), Tokens(100, 2, 64)),
    "more cached than there are": (counted(100, 2, 102, **cached(164)), Tokens(100, 2, 100)),
    "floats": (counted(100.0, 2.0, 102.0), Tokens(100, 2)),
    "no completion": (counted(100), Tokens(100, None)),
    "zero beside a text": (counted(100, 0, 100), Tokens(100, None)),
    "zeros": (counted(0, 0, 0), None),
    "nothing": ({}, None),
    "null": (None, None),
    "words": (counted("100", "2"), None),
    "truth": (counted(True, True), None),
    "below zero": (counted(-1, 2), None),
    "beyond all": (counted(2**70, 2), None),
}


@pytest.mark.parametrize("case", TABLE)
def test_one_table_says_what_a_request_took(case: str):
    usage, expected = TABLE[case]
    assert tokens_used({"choices": [TEXT], "usage": usage}) == expected
    assert Reply("k", json.dumps({"choices": [TEXT], "usage": usage})).usage == expected


def test_nothing_generated_takes_no_tokens_and_anything_generated_takes_some():
    assert tokens_used({"choices": [SILENT], "usage": counted(100, 0, 100)}) == Tokens(100, 0)
    for said in ({"text": "Yes"}, {"message": {"reasoning": "hm"}}, {"message": {"content": None, "tool_calls": [{}]}}):
        assert tokens_used({"choices": [said], "usage": counted(100, 0, 100)}) == Tokens(100, None)


counts = st.none() | st.integers(-5, 10**6) | st.floats(allow_nan=True) | st.text(max_size=3) | st.booleans()


@given(counts, counts, counts, counts, counts)
def test_whatever_is_counted_the_parts_fit_and_nothing_is_less_than_was_said(p: Any, c: Any, t: Any, r: Any, k: Any):
    used = tokens_used({"choices": [TEXT], "usage": counted(p, c, t, **thought(r), **cached(k))})
    if used is not None:
        assert used.prompt
        assert used.completion is None or used.completion > 0
        assert (used.cached or 0) <= used.prompt
        assert used.completion is None or (used.thinking or 0) <= used.completion
        if type(c) is int and c > 0:
            assert (used.completion or 0) >= c


def test_money_counts_thinking_and_the_cache_at_their_prices():
    price = Price(1_000_000, 2_000_000, cached=100_000)
    amount = Amount()
    amount.add(tokens_used({"choices": [TEXT], "usage": counted(100, 2, 150, **cached(60))}), price, None)
    assert amount.money == pytest.approx(40 * 1 + 60 * 0.1 + 50 * 2)
    assert (amount.cached_tokens, amount.thinking_tokens, amount.unreported) == (60, 48, 0)
    assert Price(1_000_000, 0).of(100, 0, 60) == 100, "without a price of their own they cost as much as others"


def test_what_is_unknown_is_the_most_it_can_be_in_a_budget_and_nothing_in_a_count():
    price, amount = Price(1_000_000, 1_000_000), Amount()
    amount.add(Tokens(100, None), price, None, most=(500, 30))
    amount.add(None, price, None, most=(500, 30))
    assert (amount.prompt_tokens, amount.completion_tokens, amount.unreported) == (100, 0, 2)
    assert (amount.money, amount.at_most) == (100, 130 + 530)
    assert "tokens not counted" in amount.counted
    amount.add(Tokens(10, 1), price, None)
    assert amount.counted == "at least 111 tokens; those of 2 requests are unknown"
