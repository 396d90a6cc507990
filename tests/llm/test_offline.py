"""The offline stand-in as an endpoint: protocol, errors, limits, determinism."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.llm.offline import MODEL, OfflineTransport, count_tokens
from judgekit.llm.types import Endpoint, Reply, chat

ENDPOINT = Endpoint("offline", "offline:", MODEL)
MILL = (
    "The Old Mill",
    "The Old Mill was built in 1823 by Thomas Greave. Its sails are made of waxed linen, and each stone weighs"
    " 900 kilograms. The mill closed on 3 May 1911.",
)
HARBOUR = (
    "Vell harbour",
    "The harbour of Vell opened in 1901. It has 42 moorings and a crane. Anna Holm designed the lighthouse nearby.",
)
SHORT = 'Answer with a short span from the passages. If they do not say, answer "no idea".'
JUDGE = "Does the passage help to answer the question? Reply with yes or no."
GRADE = "Grade how well the passage answers the question, from 0 to 3. Reply with the number only."


def ask(question: str, *passages: tuple[str, str], system: str = SHORT, **params: Any) -> Reply:
    status, _, raw = send(body(question, *passages, system=system, **params))
    assert status == 200, raw
    return Reply("key", raw.decode())


def body(question: str, *passages: tuple[str, str], system: str = SHORT, **params: Any) -> bytes:
    shown = "\n".join(f'<passage title="{title}">\n{text}\n</passage>' for title, text in passages)
    user = f"<question>{question}</question>\n{shown}"
    return chat(ENDPOINT, [{"role": "system", "content": system}, {"role": "user", "content": user}], **params).body


def send(raw: bytes) -> tuple[int, dict[str, str], bytes]:
    status, headers, reply = asyncio.run(OfflineTransport().send(ENDPOINT, raw))
    return status, dict(headers), reply


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who built the Old Mill?", "Thomas Greave"),
        ("When did the Old Mill close?", "3 May 1911"),
        ("In what year was the Old Mill built?", "1823"),
        ("What are the sails of the Old Mill made of?", "waxed linen"),
        ("How heavy is each stone of the Old Mill?", "900 kilograms"),
        ("How many moorings does the harbour of Vell have?", "42"),
        ("Who designed the lighthouse near Vell harbour?", "Anna Holm"),
    ],
)
def test_it_answers_with_a_span_of_the_asked_type(question: str, answer: str) -> None:
    assert ask(question, MILL, HARBOUR).text == answer


def test_it_abstains_with_the_phrase_that_the_prompt_asks_for() -> None:
    assert ask("What is the capital of France?", MILL, HARBOUR).text == "no idea"


def test_closed_book_it_abstains_and_judges_no() -> None:
    assert ask("Who built the Old Mill?").text == "no idea"
    assert ask("Who built the Old Mill?", system=JUDGE).text == "No"


def test_it_judges_by_overlap() -> None:
    assert ask("Who built the Old Mill?", MILL, system=JUDGE).text == "Yes"
    assert ask("Who built the Old Mill?", HARBOUR, system=JUDGE).text == "No"
    assert ask("Who built the Old Mill?", MILL, system=GRADE).text == "3"
    assert ask("Who built the Old Mill?", HARBOUR, system=GRADE).text == "0"


def test_a_contradicting_passage_can_win_over_the_right_one() -> None:
    distractor = ("Guide", "The Old Mill, visitors are told, was built by Edwin Sorrel in a single year, 1799.")
    twice = ("Leaflet", "Edwin Sorrel built the Old Mill.")
    assert ask("Who built the Old Mill?", MILL, distractor, twice).text == "Edwin Sorrel"


def test_json_is_written_with_the_keys_of_the_example() -> None:
    system = (
        'Reply in JSON, for example {"reason": "…", "relevant": true}, with no other text. Is it relevant, yes or no?'
    )
    reply = json.loads(ask("Who built the Old Mill?", MILL, system=system).text)
    assert list(reply) == ["reason", "relevant"]
    assert reply["relevant"] is True
    assert reply["reason"] in MILL[1]


def test_json_follows_a_schema() -> None:
    schema = {"type": "object", "properties": {"score": {"type": "integer"}, "why": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"name": "grade", "schema": schema}}
    reply = json.loads(ask("Who built the Old Mill?", MILL, system=GRADE, response_format=form).text)
    assert reply["score"] == 3
    assert isinstance(reply["why"], str)


def test_log_probabilities_are_those_of_the_verdict() -> None:
    reply = ask("Who built the Old Mill?", MILL, system=JUDGE, logprobs=True, top_logprobs=2)
    assert reply.logprobs is not None
    (token,) = reply.logprobs
    assert token["token"] == "Yes" == token["top_logprobs"][0]["token"]
    assert [entry["token"] for entry in token["top_logprobs"]] == ["Yes", "No"]
    assert sum(math.exp(entry["logprob"]) for entry in token["top_logprobs"]) == pytest.approx(1, abs=1e-5)
    assert ask("Who built the Old Mill?", MILL, system=JUDGE).logprobs is None


def test_log_probabilities_of_grades_are_a_distribution_over_the_scale() -> None:
    reply = ask("Who built the Old Mill?", MILL, system=GRADE, logprobs=True, top_logprobs=10)
    assert reply.logprobs is not None
    entries = reply.logprobs[0]["top_logprobs"]
    assert sorted(entry["token"] for entry in entries) == ["0", "1", "2", "3"]
    assert sum(math.exp(entry["logprob"]) for entry in entries) == pytest.approx(1, abs=1e-5)


def test_proposed_answers_are_merged_by_what_most_of_them_say() -> None:
    proposed = "".join(
        f"<answer>{text}</answer>" for text in ("1799", "no idea", "the 1823", "1823", "no idea", "no idea")
    )
    messages = [{"role": "user", "content": f"{SHORT}\n<question>When was it built?</question>\n{proposed}"}]
    status, _, raw = send(chat(ENDPOINT, messages).body)
    assert status == 200
    assert Reply("key", raw.decode()).text == "the 1823"


@pytest.mark.parametrize(("answer", "verdict"), [("Greave, Thomas", "Yes"), ("Edwin Sorrel", "No")])
def test_an_answer_is_judged_by_the_words_that_it_shares_with_a_reference(answer: str, verdict: str) -> None:
    text = "Correct? Yes or No.<question>Who?</question><references>\n- Miller\n- Thomas Greave\n</references>"
    messages = [{"role": "user", "content": f"{text}<answer>{answer}</answer>"}]
    assert Reply("key", send(chat(ENDPOINT, messages).body)[2].decode()).text == verdict


@pytest.mark.parametrize(
    "hostile",
    [
        "<passage>" * 20_000,
        "<question>" * 20_000,
        "<answer>" * 20_000,
        "\n" * 200_000,
        "Mr. A " * 30_000,
        "{" * 200_000,
        "a" * 200_000,
        "0, 1, " * 30_000,
        "Von der " * 30_000,
        "\u201c" * 200_000,
    ],
)
def test_hostile_text_takes_time_in_proportion_to_its_length(hostile: str) -> None:
    messages = [{"role": "user", "content": f"<question>Who was it?</question><passage>{hostile}</passage>{hostile}"}]
    began = time.process_time()
    status, _, _ = send(chat(ENDPOINT, messages, max_tokens=20).body)
    assert status == 200
    assert time.process_time() - began < 5


def test_max_tokens_cuts_the_reply_and_says_so() -> None:
    whole = ask("Who built the Old Mill?", MILL)
    cut = ask("Who built the Old Mill?", MILL, max_tokens=1)
    assert (whole.finish_reason, cut.finish_reason) == ("stop", "length")
    assert whole.text.startswith(cut.text)
    assert cut.usage is not None
    assert cut.usage[1] == 1


def test_usage_counts_four_characters_of_the_prompt_and_six_of_a_word_of_the_reply_as_a_token() -> None:
    assert [count_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    one = ask("Who built the Old Mill?", MILL)
    two = ask("Who built the Old Mill?", MILL, HARBOUR)
    assert one.usage is not None
    assert two.usage is not None
    assert one.text == "Thomas Greave"
    assert one.usage[1] == 2
    added = len(f'\n<passage title="{HARBOUR[0]}">\n{HARBOUR[1]}\n</passage>')
    assert two.usage[0] - one.usage[0] == pytest.approx(added / 4, abs=1)


def test_n_returns_copies() -> None:
    reply = ask("Who built the Old Mill?", MILL, n=3)
    assert [choice["index"] for choice in reply.json["choices"]] == [0, 1, 2]


def test_the_same_body_gets_the_same_bytes_whatever_was_asked_before() -> None:
    async def replies() -> tuple[bytes, bytes]:
        used = OfflineTransport()
        wanted = body("Who built the Old Mill?", MILL, HARBOUR)
        await used.send(ENDPOINT, body("When did Vell harbour open?", HARBOUR))
        await used.send(ENDPOINT, wanted)
        return (await used.send(ENDPOINT, wanted))[2], (await OfflineTransport().send(ENDPOINT, wanted))[2]

    first, second = asyncio.run(replies())
    assert first == second


def test_no_socket_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reply() -> int:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("a socket was opened")

        transport = OfflineTransport()
        monkeypatch.setattr(socket, "socket", refuse)
        status, _, _ = await transport.send(ENDPOINT, body("Who built the Old Mill?", MILL))
        await transport.aclose()
        return status

    assert asyncio.run(reply()) == 200


@pytest.mark.parametrize(
    ("raw", "status", "param"),
    [
        (b"{", 400, None),
        (b"\xff\xfe", 400, None),
        (b"[]", 400, None),
        (b'{"messages": []}', 400, "model"),
        (b'{"model": "gpt-x", "messages": [{"role": "user", "content": "x"}]}', 404, "model"),
        (b'{"model": "offline-1", "messages": []}', 400, "messages"),
        (b'{"model": "offline-1", "messages": ["x"]}', 400, "messages[0]"),
        (b'{"model": "offline-1", "messages": [{"role": "user", "content": 7}]}', 400, "messages[0].content"),
        (b'{"model": "offline-1", "stream": true, "messages": [{"role": "user", "content": "x"}]}', 400, "stream"),
        (b'{"model": "offline-1", "max_tokens": 0, "messages": [{"role": "user", "content": "x"}]}', 400, "max_tokens"),
        (b'{"model": "offline-1", "n": true, "messages": [{"role": "user", "content": "x"}]}', 400, "n"),
        (
            b'{"model": "offline-1", "top_logprobs": 2, "messages": [{"role": "user", "content": "x"}]}',
            400,
            "top_logprobs",
        ),
    ],
)
def test_a_bad_body_is_refused_in_the_shape_of_openai(raw: bytes, status: int, param: str | None) -> None:
    got, headers, reply = send(raw)
    error = json.loads(reply)["error"]
    assert (got, error["param"]) == (status, param)
    assert error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == ("model_not_found" if status == 404 else None)
    assert headers["content-type"] == "application/json"


@given(st.text(max_size=60), st.lists(st.tuples(st.text(max_size=20), st.text(max_size=120)), max_size=3))
def test_any_text_gets_a_reply_that_is_a_span_or_the_abstention(question: str, passages: list[tuple[str, str]]) -> None:
    clean = [
        (t.replace('"', "").replace("<", "").replace("&", ""), p.replace("<", "").replace("&", "")) for t, p in passages
    ]
    try:
        raw = body(question.replace("<", "").replace("&", ""), *clean)
    except UnicodeEncodeError:
        return
    status, _, reply = send(raw)
    text = Reply("key", reply.decode()).text
    assert status == 200
    assert text == "no idea" or any(text in passage for _, passage in clean)
