"""The APIs of an OpenAI-compatible server: what a request and a reply look like in each.

What prompts ask is told as a chat completion. A *completion* takes one text, for base models without a chat template;
a *response* is OpenAI's newer API. The body of a request is made in the shape of its API, so that it is stored as it is
sent and its identity is its own; a reply is stored as it came, and read here as if it were a chat completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

__all__ = ["APIS", "ROUTES", "SHOWN", "Api", "chosen", "shaped", "shown_text"]

Api = Literal["chat", "completions", "responses"]
APIS: Final[tuple[str, ...]] = get_args(Api)
ROUTES: Final[Mapping[Api, Literal["/v1/chat/completions", "/v1/completions", "/v1/responses"]]] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
}
"""The route of each API, as batch files name it."""

SHOWN: Final[Mapping[str, str]] = {"chat": "messages", "completions": "prompt", "responses": "input"}
"""The field of the body in which each API is shown what is asked."""


def shown_text(body: Mapping[str, Any]) -> str:
    """Return the text that a request shows the model, of whatever API it is."""
    shown = next((body[name] for name in SHOWN.values() if name in body), "")
    return shown if isinstance(shown, str) else "\n".join(str(message.get("content")) for message in shown)


_CUE: Final = "Reply:"
_MOST: Final = 5
"""A completion gives at most so many alternatives, by OpenAI's rules; a request for more is refused."""

_LOGPROBS: Final = "message.output_text.logprobs"
_ENDS: Final = {"completed": "stop", "max_output_tokens": "length"}


def shaped(api: str, model: str, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request in the shape of its API.

    Args:
        api: one of `APIS`.
        model: the model that is asked.
        messages: as in a chat completion.
        fields: further fields as in a chat completion; those of the other API's own are kept as they are.
    """
    body: dict[str, Any] = {"model": model, SHOWN[api]: list(messages), **fields}
    if api == "completions":
        # What a base model goes on with is what follows the cue.
        said = [f"{_CUE} {m['content']}" if m["role"] == "assistant" else str(m["content"]) for m in messages]
        body["prompt"] = "\n\n".join([*said, _CUE])
        top = body.pop("top_logprobs", None)
        if body.pop("logprobs", None) is not None and top is not None:
            body["logprobs"] = min(top, _MOST)
    elif api == "responses":
        body.setdefault("store", False)  # else OpenAI keeps what was asked for a month
        for room in ("max_tokens", "max_completion_tokens"):
            if room in body:
                body["max_output_tokens"] = body.pop(room)
        if body.pop("logprobs", None):
            body["include"] = [_LOGPROBS]
        form = body.pop("response_format", None)
        if form is not None:
            body["text"] = {"format": {"type": form["type"], **form.get("json_schema", {})}}
    return body


def chosen(body: Mapping[str, Any]) -> Any:
    """Return the choice of index 0, or the first one if none has that index, in the shape of a chat completion's.

    Raises:
        IndexError, KeyError, TypeError: there is none.
    """
    if "choices" not in body and isinstance(body.get("output"), list):
        return _of_response(body)
    choices = body["choices"]
    choice = choices[0]
    if len(choices) > 1:
        choice = next((one for one in choices if isinstance(one, dict) and one.get("index") == 0), choice)
    completed = isinstance(choice, dict) and "message" not in choice and "finish_reason" in choice
    if completed and isinstance(choice.get("text"), str):
        return {**choice, "message": {"content": choice["text"]}, "logprobs": _paired(choice.get("logprobs"))}
    return choice


def _paired(logprobs: Any) -> dict[str, Any] | None:
    """Return a completion's log-probabilities, which are lists side by side, as a list of tokens."""
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("tokens"), list):
        return None
    tokens = logprobs["tokens"]
    own, tops = ((logprobs.get(name) or [None] * len(tokens)) for name in ("token_logprobs", "top_logprobs"))
    return {
        "content": [
            {
                "token": token,
                "logprob": logprob,
                "top_logprobs": [{"token": t, "logprob": p} for t, p in (top or {}).items()],
            }
            for token, logprob, top in zip(tokens, own, tops, strict=False)
        ]
    }


def _of_response(body: Mapping[str, Any]) -> dict[str, Any]:
    parts = [
        part
        for item in body["output"]
        if isinstance(item, dict) and item.get("type") == "message" and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, dict)
    ]
    texts = [part for part in parts if part.get("type") == "output_text" and isinstance(part.get("text"), str)]
    tokens = [token for part in texts if isinstance(part.get("logprobs"), list) for token in part["logprobs"]]
    end = body.get("status")
    if end == "incomplete" and isinstance(body.get("incomplete_details"), dict):
        end = body["incomplete_details"].get("reason")
    message = {
        "content": "".join(part["text"] for part in texts),
        "refusal": next((part.get("refusal") for part in parts if part.get("type") == "refusal"), None),
    }
    return {
        "message": message,
        "finish_reason": _ENDS.get(str(end), end),
        "logprobs": {"content": tokens} if tokens else None,
    }
