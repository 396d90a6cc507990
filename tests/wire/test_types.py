"""Requests and replies: canonical bodies, identities, views of what servers send."""

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.errors import ConfigError, DataError
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import Endpoint, Reply, Request, chat, identity

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=15,
)


@given(plain)
def test_canonical_json_is_compact_sorted_and_means_the_same(value):
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text
    spelled = json.dumps(json.loads(text, parse_float=str), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical(json.loads(text, parse_float=str)) == spelled.encode()


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [*((number, ValueError, "JSON compliant") for number in (math.nan, math.inf)), ("a\ud83d", DataError, "surrogate")],
)
def test_what_json_cannot_say_is_refused(value, error, said):
    with pytest.raises(error, match=said):
        canonical({"temperature": [value]})


def test_the_identity_is_what_the_documentation_says():
    endpoint = Endpoint("e", "http://h/v1/", "m")
    request = chat(endpoint, [{"role": "user", "content": "é"}], sample=3, temperature=0)
    body = '{"messages":[{"content":"é","role":"user"}],"model":"m","temperature":0}'
    assert request.body == body.encode()
    assert request.key == hashlib.sha256(f"1\nhttp://h/v1\n3\n{body}".encode()).hexdigest()


BODY = b'{"messages":[{"content":"Is the sky blue?","role":"user"}],"model":"m","temperature":0}'


@pytest.mark.parametrize(
    ("endpoint", "sample", "expected"),
    [
        ("http://localhost:8000/v1", 0, "03198313bb0b283d7f0297b723b2e105618d1ff5fb90cd09175c875c3e69cdd3"),
        ("http://localhost:8000/v1", 1, "b283c762e55d699738dd4a2f96ce5494ac32bd554f84dde8a4df2e6ea26662a3"),
        ("our replicas", 0, "e00c22c03e89336481819ff7e66fabd0caf121360b189cd91922d7706feeda3a"),
    ],
)
def test_identities_are_those_of_every_version_before_so_that_no_paid_reply_is_lost(endpoint, sample, expected):
    assert identity(endpoint, sample, BODY) == expected


def test_an_endpoint_asks_as_the_pages_say_if_nothing_else_is_set():
    made = Endpoint("e", "http://h/v1", "m")
    assert (made.api, made.transport, made.params, made.thinks) == ("chat", "http", {}, False)
    assert (made.concurrency, made.requests_per_minute) == (16, None)
    assert (made.timeout_s, made.max_retries, made.patience_s) == (120, 6, 15 * 60)
    assert made.max_reply_bytes == 8_000_000


def test_what_belongs_to_the_identity_and_what_does_not():
    def key(sample=0, name="e", **fields):
        base_url = fields.pop("base_url", "http://h/v1")
        return chat(Endpoint(name, base_url, fields.pop("model", "m"), **fields), [], sample=sample).key

    apart = {"headers": {"X-Team": "search"}, "transport": "openai"}
    assert key() == key(name="f", concurrency=1, timeout_s=9, max_retries=0, api_key_env="K", **apart)
    plain = chat(Endpoint("e", "http://h/v1", "m"), [])
    held = Request(plain.endpoint, plain.body, again=True, constraint={"regex": "Yes|No"})
    assert (held, held.key) == (plain, plain.key)
    assert key(namespace="n") == key(namespace="n", base_url="http://other:99/v1")
    assert key() == key(revision=None) == key(revision="")
    assert len({key(), key(revision="1"), key(revision="2"), key(namespace="n"), key(namespace="n", revision="1")}) == 5
    assert len({key(), key(1), key(model="n"), key(base_url="http://i/v1"), key(params={"seed": 1})}) == 5
    assert identity("ab", 1, b"c") != identity("a", 1, b"bc")


LONG = "hunter2hunter2hunter2"
ADDRESSES = f"""
https://user:hunter2@h/v1 https://user:hunter2@h:port/v1 https://user:hunt/er2@h/v1 user:hunter2@h/v1
https://h/v1?api-version=2024-10-21&API_KEY=hunter2 https://h/v1?access%5Ftoken=hunter2 https://h/v1#token=hunter2
https://h/v1?a=1;subscription-key=hunter2 https://h/v1?sig=hunter2 https://h/v1?code={LONG} https://h/v1?{LONG}
h/v1?api-key=hunter2 https://h/v1?key=hunter2
"""
PROBLEMS: list[tuple[str, str, list[Any]]] = [
    ("name that as api_key_env", "base_url", ADDRESSES.split()),
    ("http", "base_url", ["localhost:8000/v1", "http://", "http://[::1/v1", "http://h:99999/v1", "ftp://h/v1"]),
    (
        "see api_key_env",
        "params",
        [
            {"api_key": "hunter2"},
            {"extra_headers": {"Authorization": "Bearer hunter2"}},
            {"tools": [{"headers": {"X-Api-Key": "hunter2"}}]},
            {"accessToken": "hunter2"},
            {"password": "hunter2"},
        ],
    ),
    ("judgekit sets (stream|messages|prompt) itself", "params", [{"stream": True}, {"messages": []}, {"prompt": "x"}]),
    ("cannot be sent as JSON", "params", [{"temperature": math.nan}, {"x": object()}]),
    ("NAME of an env", "api_key_env", ["sk-hunter2", f"gsk_{LONG}", "Bearer hunter2", "${hunter2}"]),
    *(("must be positive", name, [0, -1, math.nan]) for name in ("timeout_s",)),
    ("like a key", "headers", [{"Authorization": "Bearer hunter2"}, {"api-key": "hunter2"}, {"X-Tenant": LONG}]),
    ("must be the NAME", "headers", [{"X-Tenant": f"env:sk-{LONG}"}]),
    ("characters that headers cannot have", "headers", [{"X-Tenant": "hunt\nb"}]),
    ("is not a header", "headers", [{"X Tenant": "hunter2"}, {"Content-Type": "hunt/er2"}]),
    (r"must be 'http', 'openai', 'my_file\.py:Mine' or an object with send", "transport", ["htpp", 5, object()]),
    ("must be one of 'chat', 'completions', 'rerank', 'score', not 'completion'", "api", ["completion"]),
    ("must be at least 1, not 0", "concurrency", [0]),
    ("must be at least 0, not -1", "max_retries", [-1]),
    ("must be a whole number of at least 1", "params", [{"max_tokens": room} for room in (0, True, "9")]),
    ("model is empty", "model", ["", " "]),
]


@pytest.mark.parametrize(
    ("said", "name", "value"), [(said, name, value) for said, name, values in PROBLEMS for value in values]
)
def test_what_cannot_be_kept_sent_or_shown_is_refused_and_no_key_is_shown(said, name, value):
    with pytest.raises(ConfigError, match=said) as caught:
        Endpoint("e", **{"base_url": "http://h/v1", "model": "m", name: value})
    assert "hunt" not in str(caught.value)


@pytest.mark.parametrize("query", ["api-version=2025-01-01-preview", "deployment=gpt-4o-mini&max_tokens=5", "monkey=1"])
def test_other_queries_of_an_address_are_kept(query):
    assert query in Endpoint("e", f"https://h/v1?{query}", "m").identity


def test_parameters_whose_names_only_remind_of_keys_are_taken():
    params = dict.fromkeys(("max_tokens", "prompt_cache_key", "stop_token_ids", "author", "top_k", "user"), 1)
    assert Endpoint("e", "http://h/v1", "m", params=params).params == params


THINKING = {"type": "thinking", "thinking": "no"}


@pytest.mark.parametrize(
    ("message", "text", "refusal"),
    [
        ({"content": None, "reasoning_content": "yes, surely", "reasoning": "yes"}, "", None),
        ({"content": [THINKING, {"type": "text", "text": "Y"}, {"type": "text", "text": "es"}, 1]}, "Yes", None),
        ({"content": None, "refusal": "I will not."}, "", "I will not."),
        ({"content": "yes", "refusal": None}, "yes", None),
    ],
)
def test_the_text_is_what_is_said_never_the_reasoning(message, text, refusal):
    reply = Reply("k", json.dumps({"choices": [{"message": message}]}))
    assert (reply.text, reply.refusal) == (text, refusal)


def test_tokens_are_counted_where_the_server_says_them_sensibly():
    def usage(said):
        return Reply("k", json.dumps({"choices": [{}], "usage": said})).usage

    strange = [{"prompt_tokens": prompt, "completion_tokens": 1} for prompt in ("5", -1, 2**70)]
    assert [usage(said) for said in (*strange, {}, None, [])] == [None] * 6


@given(st.dictionaries(st.sampled_from(["message", "logprobs", "finish_reason", "text"]), plain))
def test_views_of_strange_replies_never_raise(choice):
    strange = Reply("k", json.dumps({"choices": [choice]}))
    assert isinstance(strange.text, str)
    assert strange.refusal is None or isinstance(strange.refusal, str)
    assert strange.logprobs is None or isinstance(strange.logprobs, list)
    assert strange.finish_reason is None or isinstance(strange.finish_reason, str)


def test_the_choice_of_index_0_is_read_wherever_a_server_lists_it():
    first = {"index": 0, "message": {"content": "first"}, "finish_reason": "stop", "logprobs": {"content": [{"a": 1}]}}
    other = {"index": 1, "message": {"content": "other"}, "finish_reason": "length", "logprobs": None}
    for listed in ([first, other], [other, first], [other, {**other, "index": 2}, first]):
        read = Reply("k", json.dumps({"choices": listed}))
        assert (read.text, read.finish_reason, read.logprobs) == ("first", "stop", [{"a": 1}])
    unnumbered = [{"message": {"content": text}} for text in ("one", "two")]
    assert Reply("k", json.dumps({"choices": unnumbered})).text == "one"
    assert Reply("k", json.dumps({"choices": [None, first]})).text == "first"
