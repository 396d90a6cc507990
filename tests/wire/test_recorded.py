"""What real servers sent, recorded by `tests.probe`, is read as what it means."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from judgekit.reading.logprobs import Distribution, distribution
from judgekit.reading.verdict import ReplyFormat
from judgekit.wire.quirks import Accepted, Fatal, Refused, Response, Unsupported, read_response
from judgekit.wire.types import Endpoint, Reply
from tests.probe import RECORDS

LLAMA, LITELLM, VLLM = "llama-server-b10434", "litellm-1.106.12", "vllm-0.32.0"
TRANSFORMERS = "transformers-serve-5.19.0"
SERVERS = sorted(path.stem for path in RECORDS.glob("*.jsonl"))
SKY = ReplyFormat((("The", 1), ("No", 0)))
HERE = Endpoint("here", "http://localhost/v1", "m")


def records(server: str) -> dict[str, dict[str, Any]]:
    lines = (Path(RECORDS) / f"{server}.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["name"]: record for record in map(json.loads, lines)}


def read(record: dict[str, Any], **options: Any) -> Response:
    return read_response(record["status"], record["headers"], record["body"].encode(), record["sent"], **options)


def reply(record: dict[str, Any]) -> Reply:
    verdict = read(record)
    assert isinstance(verdict, Accepted), (record["name"], verdict)
    return Reply("k", verdict.raw)


def test_something_is_recorded() -> None:
    assert {LLAMA, LITELLM, VLLM, TRANSFORMERS} <= set(SERVERS)


@pytest.mark.parametrize("server", SERVERS)
def test_each_success_is_a_reply_with_its_tokens(server: str) -> None:
    replies = [
        reply(record) for record in records(server).values() if record["status"] == 200 and record["route"] != "/models"
    ]
    assert len(replies) > 20
    for each in replies:
        assert each.usage is not None
        assert each.usage.total is not None


@pytest.mark.parametrize(
    ("server", "context", "chat", "text"),
    [(LLAMA, 4096, 45031, 45001), (LITELLM, 4096, 45031, 45001), (VLLM, 8192, None, None)],
)
def test_a_prompt_that_is_too_long_is_told_with_the_context_and_its_tokens(
    server: str, context: int, chat: int | None, text: int | None
) -> None:
    for name, tokens in (("too long", chat), ("completion too long", text)):
        verdict = read(records(server)[name])
        assert isinstance(verdict, Refused)
        assert (verdict.too_long, verdict.context, verdict.prompt) == (True, context, tokens)


@pytest.mark.parametrize("server", [LLAMA, LITELLM, VLLM])
def test_log_probabilities_are_read_in_the_shapes_of_both_apis(server: str) -> None:
    recorded = records(server)
    found = distribution(reply({**recorded["20 alternatives"]}), SKY, HERE)
    assert not isinstance(found, Distribution), "it was cut off after a token"
    for name in ("20 alternatives", "completion with alternatives"):
        tokens = reply(recorded[name]).logprobs
        assert tokens
        assert len(tokens[0]["top_logprobs"]) >= 5


@pytest.mark.parametrize("server", [LLAMA, LITELLM])
def test_a_stop_that_moves_the_texts_of_tokens_changes_no_verdict(server: str) -> None:
    moved = reply(records(server)["a stop that begins like the reply"])
    assert moved.logprobs
    assert moved.logprobs[0]["token"] == "", "the text of the first token came with the second"
    tops = {top["token"]: math.exp(top["logprob"]) for top in moved.logprobs[0]["top_logprobs"]}
    found = distribution(moved, ReplyFormat((("The sky is indeed blue", 1), ("No", 0))), HERE)
    assert isinstance(found, Distribution)
    assert found.shares[1] == pytest.approx(tops["The"] / (tops["The"] + tops["No"]))


def test_llama_server_ignores_a_list_of_words_and_holds_to_a_schema_and_a_grammar() -> None:
    recorded = records(LLAMA)
    forms = ("plain", "list of words", "words by schema", "grammar")
    of_completions = ("completion by list of words", "completion by schema", "completion by grammar")
    texts = {name: reply(recorded[name]).text.strip() for name in (*forms, *of_completions)}
    assert texts["list of words"] == texts["plain"]
    assert json.loads(texts["words by schema"]) in ("Purple", "Green")
    assert texts["grammar"] in ("Purple", "Green")
    assert texts["completion by grammar"] in ("Purple", "Green")
    assert texts["completion by schema"] == texts["completion by list of words"]


def test_litellms_refusals_of_a_key_and_a_model_are_about_the_settings() -> None:
    recorded = records(LITELLM)
    for name, setting in (("wrong key", "key"), ("wrong model", "model")):
        verdict = read(recorded[name], proven=True)
        assert isinstance(verdict, Fatal)
        assert verdict.setting == setting
    named = read(recorded["completion by schema"])
    assert isinstance(named, Unsupported)
    assert named.param == "response_format"


def test_vllm_holds_to_a_list_of_words_and_a_schema_and_ignores_bare_fields() -> None:
    recorded = records(VLLM)
    texts = {
        name: reply(record).text for name, record in recorded.items() if record["status"] == 200 and record["sent"]
    }
    assert texts["list of words"] == texts["completion by list of words"] == "Purple"
    assert json.loads(texts["words by schema"]) == "Purple"
    assert json.loads(texts["object by schema"]) == json.loads(texts["completion by schema"]) == {"score": 7}
    assert texts["regular expression"] == texts["grammar"] == texts["completion by grammar"] == texts["plain"]


@pytest.mark.parametrize(
    ("name", "param", "most"), [("too many alternatives", "logprobs", 20), ("too much room", "max_tokens", 8192)]
)
def test_the_numbers_that_vllm_allows_are_learned(name: str, param: str, most: int) -> None:
    verdict = read(records(VLLM)[name])
    assert isinstance(verdict, Unsupported)
    assert (verdict.param, verdict.most) == (param, most)


def test_vllms_refusal_of_a_model_is_about_the_model() -> None:
    verdict = read(records(VLLM)["wrong model"], proven=True)
    assert isinstance(verdict, Fatal)
    assert verdict.setting == "model"


def test_transformers_serve_refuses_what_it_names_and_ignores_the_form_and_log_probabilities() -> None:
    recorded = records(TRANSFORMERS)
    for name, param in (
        *(("list of words", "structured_outputs"), ("regular expression", "regex"), ("grammar", "grammar")),
        *(("completion by schema", "response_format"), ("completion by list of words", "structured_outputs")),
    ):
        verdict = read(recorded[name])
        assert isinstance(verdict, Unsupported)
        assert verdict.param == param
    for name in ("words by schema", "object by schema", "object"):
        assert reply(recorded[name]).text == "No", "it is ignored in a chat"
    for name in ("alternatives", "20 alternatives", "completion with alternatives"):
        assert reply(recorded[name]).logprobs is None
    # It cuts off no prompt, whatever the model's context is.
    found = reply(recorded["too long"]).usage
    assert found is not None
    assert found.prompt == 19608
