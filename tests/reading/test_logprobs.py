"""Probabilities of verdicts: equal texts add up, and what is no log-probability is not a verdict."""

from math import log
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.data.tables import Status
from judgekit.reading.logprobs import Distribution, alternatives, distribution
from judgekit.reading.verdict import ReplyFormat, Unread
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import Endpoint, Reply

YES_NO = ReplyFormat((("Yes", 1), ("No", 0)), (("true", 1), ("false", 0)))
SERVER = Endpoint("only", "http://localhost/v1", "m")


def said(*content: Any, text: str = "Yes", finish_reason: str = "stop") -> Reply:
    choice = {"message": {"content": text}, "finish_reason": finish_reason, "logprobs": {"content": list(content)}}
    return Reply("k", canonical({"choices": [choice]}).decode())


def token(*likely: tuple[Any, Any], text: Any = "Yes") -> dict[str, Any]:
    return {"token": text, "logprob": -0.1, "top_logprobs": [{"token": t, "logprob": p} for t, p in likely]}


def shares(reply: Reply, form: ReplyFormat = YES_NO) -> tuple[dict[int, float], float]:
    found = distribution(reply, form, SERVER)
    assert isinstance(found, Distribution)
    return dict(found.shares), found.mass


def unread(reply: Reply) -> Unread:
    found = distribution(reply, YES_NO, SERVER)
    assert isinstance(found, Unread)
    return found


def test_tokens_of_the_same_text_add_up() -> None:
    found = shares(said(token(("Yes", log(0.5)), ("Yes", log(0.2)), ("No", log(0.3)))))
    assert found == (pytest.approx({1: 0.7, 0: 0.3}), pytest.approx(1.0))


def test_a_token_that_begins_several_verdicts_counts_for_none() -> None:
    form = ReplyFormat((("Partly", 1), ("Perfectly", 2), ("No", 0)))
    first = token(("Par", log(0.6)), ("P", log(0.3)), ("Perf", log(0.1)), text="Par")
    reply = said(first, token(("tly", -0.1), ("ts", -3.0), text="tly"), text="Partly")
    assert shares(reply, form) == (pytest.approx({1: 6 / 7, 2: 1 / 7}), pytest.approx(0.7))
    form = ReplyFormat((("1", 1), ("10", 10)))
    reply = said(token(("1", log(0.6)), ("10", log(0.4)), text="1"), text="1")
    assert shares(reply, form)[0] == pytest.approx({1: 0.6, 10: 0.4}), "one that is a verdict counts for itself"


def test_a_token_that_is_listed_twice_counts_once() -> None:
    reply = said(token(("Yes", log(0.6)), ("No", log(0.4)), ("Yes", log(0.6))))
    assert alternatives(reply, 0) == pytest.approx({"Yes": 0.6, "No": 0.4})


@pytest.mark.parametrize("least", ["-9999.0", "-Infinity", "-1" + "0" * 400])
def test_a_token_that_cannot_be_has_no_probability(least: str) -> None:
    reply = Reply("k", said(token(("Yes", 0), ("No", -987.5))).raw.replace("-987.5", least))
    assert alternatives(reply, 0) == {"Yes": 1.0, "No": 0.0}


MALFORMED = [
    said(token(("Yes", log(0.6)), ("No", None))),
    said(token(("Yes", log(0.6)), ("No", "x"))),
    said(token(("Yes", log(0.6)), ("No", True))),
    said(token(("Yes", log(0.6)), (None, -1.0))),
    said({**token(), "top_logprobs": ["Yes", "No"]}),
    said({**token(), "top_logprobs": {"Yes": -0.1, "No": -2.0}}),
    said("Yes"),
    said(None),
    said(token(("Yes", -0.1), ("No", -2.0), text=None)),
    Reply("k", said(token(("Yes", 0), ("No", -987.5))).raw.replace("-987.5", "NaN")),
]


def test_what_is_no_log_probability_leaves_no_verdict() -> None:
    for reply in MALFORMED:
        assert unread(reply).status is Status.UNPARSED
        assert unread(reply).reason.startswith("the reply's logprobs are malformed: where ")


def without(logprobs: Any) -> Reply:
    choice = {"message": {"content": "Yes"}, "finish_reason": "stop", "logprobs": logprobs}
    return Reply("k", canonical({"choices": [choice]}).decode())


OLD = {"tokens": ["Yes"], "token_logprobs": [-0.1], "top_logprobs": [{"Yes": -0.1, "No": -2.3}]}


def test_a_reply_without_log_probabilities_is_one_unparsed_reply() -> None:
    bare = [without(nothing) for nothing in (None, {"content": None}, {"content": []}, OLD)]
    alone = [said({"token": "Yes", "logprob": -0.1}), said(token(("Yes", -0.1)))]
    for replies, lacking in ((bare, ""), (alone, " of alternative tokens")):
        for reply in replies:
            assert unread(reply) == Unread(Status.UNPARSED, f"the reply has no log-probabilities{lacking}")


def test_probabilities_that_cannot_be_are_no_verdict_but_what_rounding_lifted_above_one_is_read() -> None:
    for yes, no in ((0.0, 0.0), (1.0, 0.5), (0.1, -3.0), (1e9, -1.0), (log(0.6), log(0.41))):
        assert unread(said(token(("Yes", yes), ("No", no)))).status is Status.UNPARSED
    for yes, no in ((log(0.6), log(0.4005)), (1e-7, -20.0)):
        assert shares(said(token(("Yes", yes), ("No", no))))[0][1] >= 0.59


def test_tokens_of_another_verdict_than_the_text_are_no_verdict() -> None:
    for text in ("No", "", "It depends."):
        assert "disagree" in unread(said(token(("Yes", log(0.9)), ("No", log(0.1))), text=text)).reason


def numbered(number: int, text: str, logprob: float, *likely: tuple[int, str, float]) -> dict[str, Any]:
    """Return an entry as llama-server sends it: tokens have numbers, by which the alternatives tell their texts."""
    tops = [{"id": i, "token": t, "logprob": p} for i, t, p in likely]
    return {"id": number, "token": text, "logprob": logprob, "top_logprobs": tops}


# llama-server b10434 holds back what may begin a stop; the text comes with a later token.
MOVED = [
    numbered(1, "", -0.3, (1, "Yes", -0.3), (2, "No", -1.5)),
    numbered(3, "Yes.", -0.2, (3, ".", -0.2), (4, " No", -3.0)),
]


def test_text_that_a_stop_moved_to_a_later_token_is_read_at_the_token_that_it_is_of() -> None:
    assert shares(said(*MOVED, text="Yes."))[0] == pytest.approx({1: 0.7685, 0: 0.2315}, abs=1e-4)


def test_a_verdict_is_never_read_from_the_alternatives_of_another_token() -> None:
    unnumbered = [{name: value for name, value in entry.items() if name != "id"} for entry in MOVED]
    assert "another token" in unread(said(*unnumbered, text="Yes.")).reason
    longer = said(token(('score":Yes', -0.1), ("No", -2.5), text='score":Yes'), text='score":Yes')
    assert unread(longer).status is Status.UNPARSED
    ten = ReplyFormat((("1", 1), ("10", 10), ("0", 0)))
    first = token(("1", log(0.7)), ("0", log(0.3)), text="1")
    found = distribution(said(first, token(("0", -0.1), ("1", -3.0), text="0"), text="10"), ten, SERVER)
    assert isinstance(found, Unread), "the first token of 10 is that of 1"


def test_a_sampled_token_that_is_less_likely_than_all_listed_ones_counts_itself() -> None:
    entry = {**token(("Sure", log(0.6)), ("No", log(0.3))), "token": "Yes", "logprob": log(0.05)}
    assert shares(said(entry)) == (pytest.approx({1: 1 / 7, 0: 6 / 7}), pytest.approx(0.35))


@pytest.mark.parametrize("finish_reason", ["length", "error", "abort", "content_filter"])
def test_a_reply_that_was_broken_off_has_no_probabilities(finish_reason: str) -> None:
    broken = unread(said(token(("Yes", -0.1), ("No", -2.0)), finish_reason=finish_reason))
    assert broken.status is (Status.REFUSED if finish_reason == "content_filter" else Status.TRUNCATED)


plain = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["token", "logprob", "top_logprobs"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.lists(plain, max_size=3))
def test_whatever_a_server_sends_there_is_a_verdict_or_none_or_a_complaint_about_it(content: list[Any]) -> None:
    assert isinstance(distribution(said(*content), YES_NO, SERVER), Distribution | Unread)
