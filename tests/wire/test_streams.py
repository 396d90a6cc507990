"""Replies that come in an odd shape are paid for, and so are read: streams that nobody asked for, odd packing."""

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from hypothesis import given, strategies as st

from judgekit.wire.quirks import Accepted, Retry, decoded, read_response
from judgekit.wire.streams import completion_of
from judgekit.wire.types import Reply, TooLargeError

MESSAGE = {"role": "assistant", "content": "Yes, it is."}
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
WHOLE = {"model": "m", "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "stop"}], "usage": USAGE}
PIECES = ["Yes", ", it", " is."]


def deltas() -> list[dict[str, Any]]:
    """Return the chunks of a stream as OpenAI's API sends them, the usage in a last one without choices."""
    first = {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
    parts = [{"model": "m", "choices": [{"index": 0, "delta": {"content": piece}}]} for piece in PIECES]
    last = {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return [first, *parts, last, {"model": "m", "choices": [], "usage": USAGE}]


def events(objects: list[dict[str, Any]], end: str = "\n", gap: str = "\n\n", done: bool = True) -> bytes:
    said = [f"data: {json.dumps(value)}" for value in objects] + ["data: [DONE]"] * done
    return gap.replace("\n", end).join(said).encode() + end.encode()


FORMS = {
    "one event": events([WHOLE]),
    "one event without an end": events([WHOLE], done=False),
    "deltas": events(deltas()),
    "deltas, CRLF": events(deltas(), end="\r\n"),
    "deltas without empty lines": events(deltas(), gap="\n"),
    "deltas without [DONE]": events(deltas(), done=False),
    "named events and comments": b": ping\n\nevent: message\n" + events(deltas()),
    "JSON lines": b"\n".join(json.dumps(value).encode() for value in deltas()),
    "pretty JSON in an event": b"\n".join(
        b"data: " + line.encode() for line in json.dumps(WHOLE, indent=1).split("\n")
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_whole_completion_that_came_as_a_stream_is_read(form: str) -> None:
    verdict = read_response(200, {}, FORMS[form])
    assert isinstance(verdict, Accepted)
    live, replayed = Reply("k", verdict.raw, body=verdict.json), Reply("k", verdict.raw)
    for reply in (live, replayed):
        assert (reply.text, reply.finish_reason, reply.origin) == ("Yes, it is.", "stop", ("m", ""))
        assert reply.usage is not None
        assert reply.usage.pair == (7, 3)


def test_the_log_probabilities_and_the_reasoning_of_a_stream_are_put_together() -> None:
    tokens = [{"token": piece, "logprob": -0.1, "top_logprobs": []} for piece in PIECES]
    parts = [
        {"choices": [{"index": 0, "delta": {"content": t["token"], "reasoning": "r"}, "logprobs": {"content": [t]}}]}
        for t in tokens
    ]
    body = completion_of(events(parts).decode())
    assert body is not None
    assert body["choices"][0]["logprobs"] == {"content": tokens}
    assert body["choices"][0]["message"]["reasoning"] == "rrr"


def test_a_completion_of_a_base_model_is_put_together() -> None:
    parts = [{"choices": [{"text": piece, "logprobs": {"tokens": [piece]}, "finish_reason": None}]} for piece in PIECES]
    parts[-1]["choices"][0]["finish_reason"] = "stop"
    verdict = read_response(200, {}, events(parts))
    assert isinstance(verdict, Accepted)
    assert Reply("k", verdict.raw).text == "Yes, it is."
    assert verdict.json["choices"][0]["logprobs"]["tokens"] == PIECES


@pytest.mark.parametrize("cut", range(1, len(FORMS["deltas without [DONE]"]) - 120, 37))
def test_a_stream_that_breaks_off_before_its_end_is_no_reply(cut: int) -> None:
    assert isinstance(read_response(200, {}, FORMS["deltas without [DONE]"][:cut]), Retry)


def test_an_error_in_a_stream_is_an_error() -> None:
    broken = [*deltas()[:2], {"error": {"message": "upstream died"}}]
    verdict = read_response(200, {}, events(broken))
    assert isinstance(verdict, Retry)
    assert "upstream died" in verdict.reason


@given(
    st.text()
    | st.lists(st.sampled_from(["data: ", "{", "}", '"choices":', "[", "]", "\n", "1", '{"delta":'])).map("".join)
)
def test_nothing_that_only_looks_like_a_stream_is_one(text: str) -> None:
    found = completion_of(text)
    assert found is None or isinstance(found, dict)


DATA = json.dumps(WHOLE).encode()


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKINGS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip in two members": (lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]), ""),
    "padded gzip": (lambda data: gzip.compress(data) + bytes(4), "gzip"),
    "deflate without a head": (bare_deflate, "deflate"),
    "zstd": (zstandard.compress, ""),
    "zstd in two frames": (lambda data: zstandard.compress(data[:9]) + zstandard.compress(data[9:]), "zstd"),
}


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_was_packed_unasked_is_unpacked_up_to_the_limit(packing: str) -> None:
    pack, coding = PACKINGS[packing]
    assert decoded(pack(DATA), len(DATA), coding) == DATA
    with pytest.raises(TooLargeError):
        decoded(pack(DATA), len(DATA) - 1, coding)
    with pytest.raises(TooLargeError):
        decoded(pack(bytes(10**7)), 1000, coding)


@pytest.mark.parametrize("packing", PACKINGS)
def test_what_is_packed_and_broken_stays_as_it_came_or_is_a_part(packing: str) -> None:
    pack, coding = PACKINGS[packing]
    whole = pack(DATA * 50)
    for length in range(1, len(whole), 7):
        assert len(decoded(whole[:length], 10**6, coding)) <= len(DATA) * 50


def test_plain_json_is_left_alone_whatever_it_is_called() -> None:
    for coding in ("deflate", "gzip", "zstd", "br", ""):
        assert decoded(DATA, 10, coding) == DATA
