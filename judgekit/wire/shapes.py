"""The APIs of an OpenAI-compatible server: what a request and a reply look like in each.

What prompts ask is told as a chat completion. A *completion* takes one text, for base models without a chat template.
The body of a request is made in the shape of its API, so that it is stored as it is
sent and its identity is its own; a reply is stored as it came, and read here as if it were a chat completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

Api = Literal["chat", "completions"]
APIS: Final[tuple[str, ...]] = get_args(Api)
ROUTES: Final[Mapping[Api, Literal["/v1/chat/completions", "/v1/completions"]]] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
}
"""The route of each API, as batch files name it."""

SHOWN: Final[Mapping[str, str]] = {"chat": "messages", "completions": "prompt"}
"""The field of the body in which each API is shown what is asked."""


def shown_text(body: Mapping[str, Any]) -> str:
    """Return the text that a request shows the model, of whatever API it is."""
    shown = next((body[name] for name in SHOWN.values() if name in body), "")
    return shown if isinstance(shown, str) else "\n".join(str(message.get("content")) for message in shown)


_CUE: Final = "Reply:"
_MOST: Final = 5
"""A completion gives at most so many alternatives, by OpenAI's rules; a request for more is refused."""


def shaped(api: str, model: str, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request in the shape of its API."""
    body: dict[str, Any] = {"model": model, SHOWN[api]: list(messages), **fields}
    if api == "completions":
        # What a base model goes on with is what follows the cue.
        said = [f"{_CUE} {m['content']}" if m["role"] == "assistant" else str(m["content"]) for m in messages]
        body["prompt"] = "\n\n".join([*said, _CUE])
        top = body.pop("top_logprobs", None)
        if body.pop("logprobs", None) is not None and top is not None:
            body["logprobs"] = min(top, _MOST)
    return body


def chosen(body: Mapping[str, Any]) -> Any:
    """Return the choice of index 0, or the first one if none has that index, in the shape of a chat completion's."""
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
