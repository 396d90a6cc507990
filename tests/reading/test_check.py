"""Checking an endpoint: what works is what the reply shows, not what the server accepts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from judgekit.client.sync import run_sync
from judgekit.errors import ConfigError
from judgekit.reading.asker import Asker
from judgekit.reading.check import check_endpoint, lines_for, planned
from judgekit.reading.prompts import load_prompt
from judgekit.wire.types import Endpoint
from tests.scripted import Scripted, ScriptedTransport, completion, error

HERE = Endpoint("here", "http://h/v1", "m")


def checks(script: Any) -> dict[str, tuple[str, str]]:
    found = run_sync(check_endpoint(HERE, ScriptedTransport(script)))
    return {check.name.split(" (")[0]: (check.works, check.detail) for check in found}


def form_of(body: dict[str, Any]) -> str | None:
    """Return what a body holds a reply to: a word, or an object."""
    stated = str({name: body.get(name) for name in ("structured_outputs", "response_format", "regex", "grammar")})
    if "zqxj" not in stated:
        return None
    return "zqxj" if "vkwf" in stated else '{"zqxj": 7}'


def capable(body: dict[str, Any]) -> Scripted | str:
    if body.get("logprobs"):
        top = [{"token": f"t{i}", "logprob": -1.0} for i in range(body.get("top_logprobs") or body["logprobs"])]
        return completion("Yes", logprobs={"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]})
    return form_of(body) or "Yes"


def test_a_capable_server_passes_everything() -> None:
    transport = ScriptedTransport(capable)
    found = run_sync(check_endpoint(HERE, transport))
    assert [(check.name, check.works) for check in found] == [
        ("chat completion", "yes"),
        ("log-probabilities", "yes"),
        ("words by a list of words", "held"),
        ("an object by a JSON schema", "held"),
        ("two requests at once", "yes"),
    ]
    assert "up to 20 alternatives" in found[1].detail
    assert list(lines_for(HERE, found)) == [
        "[endpoints.here]",
        'base_url = "http://h/v1"',
        'model = "m"',
        "# held to a form: words by a list of words, an object by a JSON schema",
        '# judges can read probabilities: kind = "judge", read = "logprobs"',
    ]


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_what_is_sent_is_what_judges_send(api: Any) -> None:
    endpoint = replace(HERE, api=api)
    transport = ScriptedTransport(capable)
    run_sync(check_endpoint(endpoint, transport))
    values = {"question": "Q", "passages": "P"}
    for params, sent in zip(({}, {"logprobs": True, "top_logprobs": 20}), transport.sent, strict=False):
        body = json.loads(Asker(endpoint, load_prompt("binary"), params).request(values).body)
        shown = "messages" if api == "chat" else "prompt"
        assert {**sent, shown: None} == {**body, shown: None}


def test_a_server_that_ignores_what_it_does_not_know_is_found_out() -> None:
    found = checks("Yes")
    assert found["log-probabilities"] == ("no", "accepted, but the reply has none")
    assert {works for name, (works, _) in found.items() if " by a " in name} == {"ignored"}


def test_fewer_alternatives_than_judges_ask_for_are_found_out() -> None:
    """vLLM 0.32 with --max-logprobs 5: a check that asked for five said yes, and then every label failed."""

    def script(body: dict[str, Any]) -> Scripted | str:
        if (body.get("top_logprobs") or 0) > 5:
            said = "Requested sample logprobs of 20, which is greater than max allowed: 5"
            return error(400, said, param="logprobs")
        return capable(body)

    works, detail = checks(script)["log-probabilities"]
    assert works == "yes"
    assert "5 alternatives a token, the most that it allows" in detail


@pytest.mark.parametrize("fault", [error(400, "no"), error(500, "broken"), "Yes", completion("")])
def test_a_check_never_sends_more_than_it_says(fault: Any) -> None:
    def script(body: dict[str, Any]) -> Any:
        plain = not form_of(body) and not body.get("logprobs")
        return "Yes" if plain else fault

    transport = ScriptedTransport(script)
    run_sync(check_endpoint(HERE, transport))
    requests, prompts, replies = planned(HERE)
    assert len(transport.sent) <= requests == 12
    assert sum(len(json.dumps(body)) // 6 for body in transport.sent) <= prompts
    assert sum(body["max_tokens"] for body in transport.sent) <= replies


def test_an_empty_reply_of_a_base_model_is_asked_for_without_its_stop() -> None:
    """llama-cpp-python 0.3.36 answers a completion that begins with its stop with an empty text."""

    def script(body: dict[str, Any]) -> Scripted:
        text = "" if "stop" in body else "\nYes"
        return Scripted(200, json.dumps({"choices": [{"text": text, "finish_reason": "stop"}]}).encode())

    found = run_sync(check_endpoint(replace(HERE, api="completions"), ScriptedTransport(script)))
    assert found[0].works == "partly"
    assert r"without a stop it says '\nYes'" in found[0].detail


def test_a_context_that_the_server_names_is_tried_and_a_prompt_that_is_cut_is_said(fault_server: Any) -> None:
    fault_server.other = lambda path, body: (200, {"data": [{"id": "m", "meta": {"n_ctx": 512}}]})
    for reply, works in (
        (error(400, "exceeds the available context size (512 tokens)"), "refused"),
        ("Yes", "ignored"),
    ):
        fault_server.answer = lambda body, seen, reply=reply: reply if len(json.dumps(body)) > 3000 else "Yes"
        found = run_sync(check_endpoint(Endpoint("here", fault_server.base_url, "m")))
        assert (found[-1].name, found[-1].works) == ("a prompt beyond 512 tokens", works)


def test_a_server_that_answers_without_the_key_is_found_out(fault_server: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("MY_KEY", "sk-abcdefghijklmnop")
    endpoint = Endpoint("here", fault_server.base_url, "m", api_key_env="MY_KEY")
    for reply, works in (("Yes", "partly"), (error(401, "No key."), "refused")):
        fault_server.answer = lambda body, seen, reply=reply: (
            "Yes" if "authorization" in fault_server.headers[-1] else reply
        )
        found = {check.name: check for check in run_sync(check_endpoint(endpoint))}
        assert found["no key"].works == works
    assert "sk-abc" not in str(found)


def test_an_unknown_finish_reason_is_told() -> None:
    works, detail = checks(completion("Yes", finish_reason="Paused"))["chat completion"]
    assert works == "yes"
    assert "ended by 'Paused', which is not known to mean complete" in detail


def test_what_is_refused_is_said_in_the_servers_words_and_the_rest_goes_on() -> None:
    def script(body: dict[str, Any]) -> Any:
        for name in ("max_tokens", "temperature", "logprobs", "structured_outputs"):
            if name in body:
                return error(400, f"No {name} here.", param=name, code="unsupported_parameter")
        return "Yes"

    found = checks(script)
    works, detail = found["chat completion"]
    assert works == "partly"
    assert "max_tokens is sent as max_completion_tokens; temperature is left out" in detail
    assert found["log-probabilities"] == ("no", "400: No logprobs here.")
    assert found["words by a list of words"] == ("refused", "400: No structured_outputs here.")


def test_without_a_chat_completion_nothing_further_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks(error(401, "Wrong key.")) == {
        "chat completion": (
            "no",
            "401: Wrong key. (no key was sent: name the variable that holds it with api_key_env)",
        )
    }
    assert checks(TimeoutError()) == {"chat completion": ("no", "no answer within 120 s")}
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(ConfigError, match="NO_KEY"):
        run_sync(check_endpoint(Endpoint("here", "http://h/v1", "m", api_key_env="NO_KEY")))


def test_models_are_listed_and_a_server_that_is_down_is_said(fault_server: Any) -> None:
    found = run_sync(check_endpoint(Endpoint("here", fault_server.base_url, "m")))
    assert (found[0].name, found[0].works) == ("list of models", "no")
    assert found[1].works == "yes"
    assert found[-1].name == "10,000,000 tokens for a reply"
    assert all("authorization" not in headers for headers in fault_server.headers)
    many = [f"model-{i}" for i in range(9)]
    lacking = f"m is not among them: {', '.join(many[:8])}"
    for names, works, detail in (
        (["m", "x"], "yes", "m is one of 2"),
        (many[:8], "partly", f"{lacking}."),
        (many, "partly", f"{lacking}, …."),
    ):
        fault_server.other = lambda path, body, names=names: (200, {"data": [{"id": name} for name in names]})
        listed = run_sync(check_endpoint(Endpoint("here", fault_server.base_url, "m")))[0]
        assert (listed.works, listed.detail) == (works, detail)
    down = run_sync(check_endpoint(Endpoint("here", "http://127.0.0.1:9/v1", "m")))
    assert [check.works for check in down] == ["no", "no"]
    assert down[1].detail.endswith("Is the server running, and are its address and port right?")
    assert down[0].detail == "127.0.0.1:9: Connection refused"
    try:
        raise KeyError("mine")
    except KeyError:
        assert run_sync(check_endpoint(Endpoint("here", "http://127.0.0.1:9/v1", "m"))) == down


def echoing(body: dict[str, Any]) -> Scripted | str:
    """Answer as vLLM does: lists of the prompt's tokens and the generated one, side by side."""
    if not body.get("echo"):
        return "Yes"
    tokens = [*body["prompt"].split(" "), " Yes"]
    logged = {"tokens": tokens, "token_logprobs": [None, *[-2.0] * (len(tokens) - 1)], "top_logprobs": None}
    choice = {"text": body["prompt"] + " Yes", "index": 0, "finish_reason": "length", "logprobs": logged}
    usage = {"prompt_tokens": len(tokens) - 1, "completion_tokens": 1, "total_tokens": len(tokens)}
    return Scripted(200, json.dumps({"choices": [choice], "usage": usage}).encode())


def test_log_probabilities_of_prompts_are_looked_for_in_the_reply() -> None:
    """Llama-server answers an echo as if it were none."""
    base = replace(HERE, api="completions")
    transport = ScriptedTransport(echoing)
    found = run_sync(check_endpoint(base, transport))
    (check,) = [check for check in found if check.name == "log-probabilities of prompts"]
    assert (check.works, check.detail) == ("yes", "'Yes' behind the prompt has -2 a token")
    assert '# labels can read them of answers: kind = "utility", read = "logprobs"' in lines_for(base, found)
    (sent,) = [body for body in transport.sent if body.get("echo")]
    assert (sent["prompt"].endswith("Reply: Yes"), sent["max_tokens"], sent["logprobs"]) == (True, 1, 1)

    found = run_sync(check_endpoint(base, ScriptedTransport(capable)))
    (check,) = [check for check in found if check.name == "log-probabilities of prompts"]
    assert (check.works, check.detail) == ("no", "accepted, but its reply has those of 1 tokens: none of the prompt's")
    assert not any("of answers" in line for line in lines_for(base, found))

    refused = ScriptedTransport(lambda body: error(400, "no echo here", param="echo") if "echo" in body else "Yes")
    found = run_sync(check_endpoint(base, refused))
    (check,) = [check for check in found if check.name == "log-probabilities of prompts"]
    assert (check.works, "no echo here" in check.detail) == ("no", True)
    # By chat there is no prompt to be echoed.
    assert "log-probabilities of prompts" not in checks(capable)
