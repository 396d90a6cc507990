"""What a server's response means, without a server."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.data.tables import Status
from judgekit.llm.responses import Accepted, Again, Rejected, Stop, Unsupported, read_response


def body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def openai(message: str, **fields: object) -> bytes:
    return body(error={"message": message, **fields})


@pytest.mark.parametrize(
    ("status", "data", "expected"),
    [
        (
            400,
            openai("This model's maximum context length is 9 tokens.", code="context_length_exceeded"),
            Status.FAILED,
        ),
        (400, body(error={"message": "the request exceeds the available context size", "code": 400}), Status.FAILED),
        (400, body(object="error", message="Please reduce the length of the messages."), Status.FAILED),
        (422, body(error="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 10"), Status.FAILED),
        (500, openai("litellm.ContextWindowExceededError: prompt is too long: 9 tokens > 8 maximum"), Status.FAILED),
        (413, b"<html>Request Entity Too Large</html>", Status.FAILED),
        (400, openai("The response was filtered.", code="content_filter"), Status.REFUSED),
        (403, openai("Your input was flagged by moderation."), Status.REFUSED),
    ],
)
def test_complaints_about_one_request_reject_it_alone(status: int, data: bytes, expected: Status) -> None:
    verdict = read_response(status, {}, data, ("max_tokens", "messages"))
    assert isinstance(verdict, Rejected)
    assert verdict.status is expected


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 504])
def test_passing_trouble_is_worth_another_try(status: int) -> None:
    assert read_response(status, {}, openai("busy")) == Again(f"{status}: busy")


@pytest.mark.parametrize("status", [429, 503, 529])
def test_overload_throttles(status: int) -> None:
    assert read_response(status, {"retry-after": "3"}, openai("busy")) == Again(f"{status}: busy", True, 3.0)


@pytest.mark.parametrize("status", [301, 401, 402, 403, 404, 405, 410, 415])
def test_what_waiting_does_not_heal_stops(status: int) -> None:
    assert isinstance(read_response(status, {}, openai("no")), Stop)


def test_an_empty_account_stops_although_it_is_a_429() -> None:
    assert isinstance(read_response(429, {}, openai("Please check your plan and billing details.")), Stop)


def test_a_complaint_that_is_not_understood_stops_unless_the_endpoint_is_proven() -> None:
    assert isinstance(read_response(400, {}, openai("hm")), Stop)
    assert isinstance(read_response(400, {}, openai("hm"), proven=True), Rejected)


def test_the_parameter_that_is_named_first_is_meant() -> None:
    said = openai("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead of temperature.")
    verdict = read_response(400, {}, said, ("messages", "model", "temperature", "max_tokens"))
    assert isinstance(verdict, Unsupported)
    assert verdict.param == "max_tokens"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "nan", "retry-after": "7"}, 7.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_the_wait_asked_for_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    verdict = read_response(429, headers, b"")
    assert isinstance(verdict, Again)
    assert verdict.after == seconds


def test_a_date_is_read_as_a_wait() -> None:
    verdict = read_response(429, {"retry-after": formatdate(time.time() + 60, usegmt=True)}, b"")
    assert isinstance(verdict, Again)
    assert verdict.after == pytest.approx(60, abs=2)


def test_half_of_an_emoji_is_still_a_reply() -> None:
    data = b'{"choices": [{"message": {"content": "yes \\ud83d"}, "logprobs": {"x": -Infinity}}]}'
    verdict = read_response(200, {}, data)
    assert isinstance(verdict, Accepted)
    assert verdict.raw == data.decode()
    assert verdict.json["choices"][0]["message"]["content"] == "yes \ufffd"


def test_a_page_is_shown_without_its_tags_and_not_at_length() -> None:
    verdict = read_response(502, {}, b"<html><h1>Bad  Gateway</h1>" + b"x " * 1000 + b"</html>")
    assert isinstance(verdict, Again)
    assert verdict.reason.startswith("502: Bad Gateway x x")
    assert len(verdict.reason) < 320


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "choices", "code", "type", "param", "detail", "loc", "usage"]),
            children,
        )
    ),
    max_leaves=12,
)


@given(
    st.integers(200, 599),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "location"]), st.text()),
    st.binary() | json_values.map(lambda value: json.dumps(value).encode()),
)
def test_no_response_is_too_strange(status: int, headers: dict[str, str], data: bytes) -> None:
    verdict = read_response(status, headers, data, ("temperature", "max_tokens", "messages"))
    if isinstance(verdict, Accepted):
        assert status < 300
        assert isinstance(verdict.json["choices"][0], dict)
    else:
        assert len(verdict.reason) < 500
