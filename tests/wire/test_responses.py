"""What a server's response means, without a server."""

import json
import time
from email.utils import formatdate

import pytest
from hypothesis import given, strategies as st

from judgekit.data.tables import Status
from judgekit.wire.quirks import THROTTLED, Accepted, Fatal, Refused, Retry, Unsupported, read_response
from judgekit.wire.usage import Tokens


def body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def openai(message: str, **fields: object) -> bytes:
    return body(error={"message": message, **fields})


@pytest.mark.parametrize(
    ("status", "data", "expected"),
    [
        (400, openai("maximum context length is 9 tokens", code="context_length_exceeded"), Status.FAILED),
        (400, body(error={"message": "the request exceeds the available context size", "code": 400}), Status.FAILED),
        (400, body(object="error", message="Please reduce the length of the messages."), Status.FAILED),
        (422, body(error="Input validation error: `inputs` tokens + `max_new_tokens` must be <= 10"), Status.FAILED),
        (500, openai("litellm.ContextWindowExceededError: prompt is too long: 9 tokens > 8 maximum"), Status.FAILED),
        (413, b"<html>Request Entity Too Large</html>", Status.FAILED),
        (400, openai("The response was filtered.", code="content_filter"), Status.REFUSED),
        (403, openai("Your input was flagged by moderation."), Status.REFUSED),
    ],
)
def test_complaints_about_one_request_reject_it_alone(status, data, expected):
    verdict = read_response(status, {}, data, {"max_tokens": 9, "messages": []})
    assert isinstance(verdict, Refused)
    assert verdict.status is expected


@pytest.mark.parametrize("status", [408, 409, 425, 500, 502, 504, 429, 503, 529])
def test_passing_trouble_is_worth_another_try_and_overload_throttles(status):
    cause = {"kind": THROTTLED} if status in (429, 503, 529) else {}
    assert read_response(status, {"retry-after": "3"}, openai("busy")) == Retry(f"{status}: busy", **cause, after=3.0)


PARAMS = {
    **{"model": "m", "messages": [], "temperature": 0, "max_tokens": 8192, "response_format": {}, "n": 1},
    **{"stop": ["x"], "user": "me", "logprobs": True, "top_logprobs": 20},
}


@pytest.mark.parametrize(
    ("status", "data"),
    [
        *((status, openai("no")) for status in (301, 401, 402, 403, 404, 405, 410, 415)),
        (429, openai("Please check your plan and billing details.")),
        (400, openai("hm")),
        (400, openai("n must be 1", param="n")),
        (400, openai("model is not loaded", param="model")),
        (400, openai("messages: unknown role")),
        (400, openai("please stop asking, dear user")),
    ],
)
def test_what_neither_waiting_nor_leaving_out_heals_stops(status, data):
    assert isinstance(read_response(status, {}, data, PARAMS), Fatal)


def test_a_complaint_that_is_not_understood_is_about_its_request_once_the_endpoint_is_proven():
    assert isinstance(read_response(400, {}, openai("hm"), proven=True), Refused)


def test_the_parameter_that_is_named_first_is_meant():
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead of temperature, dear user"
    assert read_response(400, {}, openai(said), PARAMS) == Unsupported("max_tokens", f"400: {said}")


def pydantic(loc: list[object], **fields: object) -> bytes:
    return body(detail=[{"type": "value_error", "loc": ["body", *loc], "msg": "no text", **fields}])


@pytest.mark.parametrize(
    ("status", "data"),
    [
        (400, openai("control characters near the temperature of", param="messages[0].content")),
        (400, openai("control characters near 'the temperature of'", param=None)),
        (400, openai("control characters near 'the temperature of'", param="messages.[0].content")),
        (422, pydantic(["messages", 0, "content"], input="the max_tokens of")),
        (422, pydantic(["messages", 0], input={"temperature": 1})),
        (400, openai("[{'loc': ('body', 'messages', 0), 'msg': 'no text', 'input': 'the temperature'}]")),
    ],
)
def test_a_complaint_about_the_messages_negotiates_no_parameter_away(status, data):
    assert isinstance(read_response(status, {}, data, PARAMS, proven=True), Refused)
    assert isinstance(read_response(status, {}, data, PARAMS), Fatal)


def test_what_a_server_repeats_of_the_request_is_not_shown_as_its_words():
    data = pydantic(["messages", 0, "content"], input="a document")
    assert read_response(422, {}, data, PARAMS) == Fatal("422: messages.0.content: no text")


# As OpenAI, DeepSeek, Anthropic, Alibaba, Together and vLLM 0.32 word it.
NUMBERS = [
    ("max_tokens", 4096, "max_tokens is too large: 8192. This model supports at most 4096.", {"param": "max_tokens"}),
    ("max_tokens", 4096, "max_tokens must be less than or equal to 4096", {}),
    ("max_tokens", 4096, "max_tokens must be at most 4,096, got 8192", {}),
    ("max_tokens", 4096, "The valid range of max_tokens is [1, 4096]", {}),
    ("max_tokens", 4096, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m", {}),
    ("top_logprobs", 5, "Invalid 'top_logprobs': 20. Expected an integer in range [0, 5]", {}),
    ("max_tokens", 4096, "max_tokens=8192 cannot be greater than max_model_len=4096. Please request", {}),
    ("logprobs", 5, "Requested sample logprobs of 20, which is greater than max allowed: 5", {"param": "logprobs"}),
    ("logprobs", 1, "20 is greater than the maximum of 1 - 'logprobs'", {"param": "logprobs"}),
]


@pytest.mark.parametrize(("param", "most", "message", "fields"), NUMBERS)
def test_the_largest_number_that_a_server_allows_is_learned(param, most, message, fields):
    for proven in (False, True):
        expected = Unsupported(param, f"400: {message}", most)
        assert read_response(400, {}, openai(message, **fields), PARAMS, proven=proven) == expected


def test_a_number_that_is_no_less_than_what_was_sent_is_not_learned():
    said, sent = "max_tokens must be less than or equal to 4096", {"max_tokens": 4096}
    assert read_response(400, {}, openai(said), sent, proven=True) == Refused(f"400: {said}", plain=False, value=True)


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("temperature must be between 0 and 2", {"param": "temperature"}),
        ("bad", {"param": "max_tokens", "code": "integer_above_max_value"}),
    ],
)
def test_a_value_that_is_too_large_is_no_parameter_that_is_refused(message, fields):
    refused = Refused(f"400: {message}", plain=False, value=True)
    assert read_response(400, {}, openai(message, **fields), PARAMS, proven=True) == refused
    assert isinstance(read_response(400, {}, openai(message, **fields), PARAMS), Fatal)


CONTEXTS = [
    ("'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 2048 tokens"
     " and your request has 300 input tokens (8192 > 2048 - 300).", 2048, 300),
    ("This model's maximum context length is 2,048 tokens. However, you requested 8192 output tokens and your prompt"
     " contains at least 1 input tokens, for a total of at least 2049 tokens.", 2048, None),
    ("This model's maximum context length is 2048 tokens, however you requested 8492 tokens (300 in your prompt; 8192"
     " for the completion).", 2048, 300),
    ("Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total of 8492"
     " tokens: 300 tokens from the input messages and 8192 tokens for the completion.", 2048, 300),
    ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 300 `inputs` tokens and 8192"
     " `max_new_tokens`", 2048, 300),
    ("input length and `max_tokens` exceed context limit: 300 + 8192 > 2048, decrease input length or `max_tokens`",
     2048, 300),
    ("request (300 tokens) exceeds the available context size (2048 tokens), try increasing it", 2048, 300),
    ("prompt is too long: 300 tokens > 200 maximum", 200, 300),
    ("context_length_exceeded", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("message", "context", "prompt"), CONTEXTS)
def test_the_context_and_the_prompts_tokens_are_read_from_the_refusal(message, context, prompt):
    expected = Refused(f"400: {message}", too_long=True, context=context, prompt=prompt)
    assert read_response(400, {}, openai(message), PARAMS) == expected


def test_numbers_in_fields_of_their_own_go_before_words():
    data = openai("request exceeds the context size (1 tokens)", n_ctx=4096, n_prompt_tokens=45031)
    verdict = read_response(400, {}, data, PARAMS)
    assert isinstance(verdict, Refused)
    assert (verdict.context, verdict.prompt) == (4096, 45031)


LOCATED = (
    "1 validation error: {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'),"
    " 'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}"
)


def test_a_server_error_that_says_where_the_fault_is_names_a_parameter():
    """llama-cpp-python 0.3.36 refuses a response_format with 500."""
    assert read_response(500, {}, openai(LOCATED), PARAMS) == Unsupported("response_format", f"500: {LOCATED}")
    mentioned = "cannot read the temperature of the device"
    assert read_response(500, {}, openai(mentioned), PARAMS) == Retry(f"500: {mentioned}")


@pytest.mark.parametrize(
    ("status", "data", "setting"),
    [
        (401, openai("no"), "key"),
        (403, openai("no"), "key"),
        (404, openai("no"), "address"),
        (404, openai("The model `x` does not exist."), "model"),
        (400, openai("No connected db.", type="no_db_connection"), "key"),
        (400, openai("Authentication Error, Invalid proxy server token passed", type="auth_error"), "key"),
        (500, openai("Authentication Error: invalid API key"), "key"),
        (400, openai("Server is pinned to 'a', but the request asks for 'b'"), "model"),
        (400, openai("The model `x` does not exist", code="model_not_found"), "model"),
        (400, openai("hm"), None),
        (301, b"", None),
        (429, openai("Please check your plan and billing details."), None),
    ],
)
def test_what_is_about_the_settings_says_which(status, data, setting):
    verdict = read_response(status, {}, data, PARAMS)
    assert isinstance(verdict, Fatal)
    assert verdict.setting == setting


def test_what_a_gateway_was_told_is_shown():
    told = json.dumps({"error": {"message": "maximum context length is 2048 tokens"}})
    data = body(error={"message": "Provider returned error", "code": 400, "metadata": {"raw": told}})
    verdict = read_response(400, {}, data, PARAMS)
    assert isinstance(verdict, Refused)
    assert verdict.context == 2048


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("Input validation error: `temperature` must be strictly positive", {}),
        ("'temperature' does not support 0 with this model. Only the default (1) value is supported.", {}),
        ("litellm.UnsupportedParamsError: m does not support ['temperature']", {"param": "None"}),
        ("it doesn't take the temperature", {"param": "null"}),
        ("temperature must be 1 for this model", {"param": "temperature"}),
    ],
)
def test_a_parameter_of_which_no_other_value_is_taken_is_refused(message, fields):
    assert read_response(400, {}, openai(message, **fields), PARAMS) == Unsupported("temperature", f"400: {message}")


GOOD = {"message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    "fields",
    [
        {"error": {"message": "upstream"}, "choices": [{"message": {"content": ""}, "finish_reason": "error"}]},
        {"error": "upstream", "choices": [GOOD]},
        {"choices": [{**GOOD, "error": {"message": "upstream"}}]},
        {"choices": [{}]},
        {"choices": [{"text": "Yes"}]},
        {"choices": [{**GOOD, "message": None}]},
        {"choices": [{**GOOD, "message": "Yes"}]},
        {"choices": [None]},
    ],
)
def test_an_error_is_no_completion_although_it_comes_with_a_200_and_choices(fields):
    data = body(**fields, usage={"prompt_tokens": 3, "completion_tokens": 1})
    verdict = read_response(200, {}, data)
    assert isinstance(verdict, Retry)
    assert verdict.usage == Tokens(3, 1)


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "tool_calls"},
        {"message": {"content": None, "reasoning_content": "hm"}, "finish_reason": "stop"},
        {"message": {"content": None, "refusal": "No."}, "finish_reason": "stop", "error": None},
        {"message": {}, "finish_reason": "length"},
        {"message": None, "finish_reason": "content_filter"},
    ],
)
def test_a_completion_that_says_nothing_is_a_completion(choice):
    assert isinstance(read_response(200, {}, body(choices=[choice], error=None)), Accepted)


def test_what_is_wrong_with_the_choice_of_index_0_is_wrong_with_the_reply_wherever_it_stands():
    broken = {**GOOD, "error": "upstream"}
    for first, second, expected in ((broken, GOOD, Accepted), (GOOD, broken, Retry)):
        choices = [{**first, "index": 1}, {**second, "index": 0}]
        assert isinstance(read_response(200, {}, body(choices=choices)), expected)


@pytest.mark.parametrize(
    ("status", "data", "said"),
    [
        (204, b"", "204 with nothing where a chat completion should be"),
        (202, b'{"id": 7}', '202 with a JSON object without choices: {"id": 7}'),
        (206, b"\xff", "206 with no whole JSON object where a chat completion should be: \ufffd"),
    ],
)
def test_a_success_without_a_completion_is_told_by_its_own_status(status, data, said):
    verdict = read_response(status, {}, data)
    assert isinstance(verdict, Retry)
    assert verdict.reason == said


def test_a_byte_order_mark_is_no_part_of_a_reply():
    verdict = read_response(200, {}, b"\xef\xbb\xbf" + body(choices=[GOOD]))
    assert isinstance(verdict, Accepted)
    assert verdict.raw == body(choices=[GOOD]).decode()


def after(headers: dict[str, str]) -> float | None:
    verdict = read_response(429, headers, b"")
    assert isinstance(verdict, Retry)
    return verdict.after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "nan", "retry-after": "7"}, 7.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1795996800", "date": "Mon, 30 Nov 2026 00:00:00 GMT"}, 0.0),
        ({"retry-after": "1795996830", "date": "Mon, 30 Nov 2026 00:00:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_the_wait_asked_for_is_read_in_all_its_forms(headers, seconds):
    assert after(headers) == seconds


def test_a_date_is_measured_by_the_servers_own_clock():
    begun = time.time() - 7200  # its clock is two hours behind
    headers = {"retry-after": formatdate(begun + 60, usegmt=True), "date": formatdate(begun, usegmt=True)}
    assert after(headers) == 60.0
    assert after(headers | {"date": "soon"}) == 0.0


def test_half_of_an_emoji_is_still_a_reply():
    data = b'{"choices": [{"message": {"content": "yes \\ud83d"}, "logprobs": {"x": -Infinity}}]}'
    verdict = read_response(200, {}, data)
    assert isinstance(verdict, Accepted)
    assert verdict.raw == data.decode()
    assert verdict.json["choices"][0]["message"]["content"] == "yes \ufffd"


def test_a_page_is_shown_without_its_tags_and_not_at_length():
    verdict = read_response(502, {}, b"<html><h1>Bad  Gateway</h1>" + b"x " * 1000 + b"</html>")
    assert isinstance(verdict, Retry)
    assert verdict.reason.startswith("502: Bad Gateway x x")
    assert len(verdict.reason) < 320


FIELDS = ["error", "message", "choices", "code", "type", "param", "detail", "loc", "usage"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), children),
    max_leaves=12,
)


@given(
    st.integers(200, 599),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "location"]), st.text()),
    st.binary() | json_values.map(lambda value: json.dumps(value).encode()),
)
def test_no_response_is_too_strange(status, headers, data):
    verdict = read_response(status, headers, data, {"temperature": 0, "max_tokens": 9, "messages": []})
    if isinstance(verdict, Accepted):
        assert status < 300
        assert isinstance(verdict.json["choices"][0], dict)
    else:
        assert len(verdict.reason) < 500
