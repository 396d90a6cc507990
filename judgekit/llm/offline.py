"""The offline stand-in: an in-process model behind the transport seam. It is no LLM, and reports say so.

It speaks the chat-completion protocol without a socket, so that the client, the store and the limits that stand in
front of a real endpoint are the ones that a demonstration and the tests exercise. What it says is the work of a small
deterministic reader (see `judgekit.llm.offline_reader`): the same body always gets the same bytes. Sampling
parameters (``temperature``, ``top_p``, ``seed``) are accepted and change nothing.

The version of the algorithm is part of the model id: replies of two versions never share an identity in the store.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from judgekit.llm.offline_lexicon import words
from judgekit.llm.offline_prompt import Prompt, PromptReader, content_text
from judgekit.llm.offline_reader import Answer, Reader, choose, compare, shifted
from judgekit.llm.types import Endpoint

__all__ = ["MODEL", "OfflineTransport", "count_tokens"]

MODEL: Final = "offline-1"
"""The model id; the number is the version of the algorithm."""

# What a reply is made of: a mark, or up to six letters of a word, with the blanks before it.
_PIECE = re.compile(r"\s*(?:\w{1,6}|[^\w\s])")
_MESSAGE_TOKENS: Final = 4
_HEADERS: Final = {"content-type": "application/json"}


def count_tokens(text: str) -> int:
    """Return what a text counts as part of a prompt: a token for each four characters begun."""
    return -(-len(text) // 4)


class OfflineTransport:
    """The transport of ``base_url = "offline:"``. Opens no socket, holds no key, never fails at random."""

    def __init__(self) -> None:
        self._prompts = PromptReader()
        self._reader = Reader()

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Return (status, headers, body) for a chat-completion body, as an OpenAI-compatible server would.

        200 with a chat completion; 400 for a body that is no valid request; 404 (``model_not_found``) for a model
        whose id does not start with ``offline-``.
        """
        try:
            status, reply = 200, self._complete(_checked(body), body)
        except _Refused as refused:
            error = {
                "message": str(refused),
                "type": "invalid_request_error",
                "param": refused.param,
                "code": refused.code,
            }
            status, reply = refused.status, {"error": error}
        return status, _HEADERS, json.dumps(reply, separators=(",", ":")).encode()

    async def aclose(self) -> None:
        """Nothing is open."""

    def _complete(self, request: Mapping[str, Any], body: bytes) -> dict[str, Any]:
        messages = request["messages"]
        prompt = self._prompts.read(messages, request.get("response_format"))
        if prompt.references and prompt.answers:
            answer = compare(prompt.answers[-1], prompt.references)
        elif prompt.answers and not prompt.passages:
            answer = choose(prompt.answers, prompt.instructions.abstain)
        elif prompt.instructions.classes is not None:
            answer = self._reader.check(prompt.question, prompt.passages, prompt.instructions.classes)
        else:
            answer = self._reader.read(prompt.question, prompt.passages)
        text, chances = _reply(prompt, answer)
        pieces = _PIECE.findall(text)
        limit = request.get("max_completion_tokens") or request.get("max_tokens") or len(pieces)
        cut = len(pieces) > limit
        said = pieces[:limit] if cut else pieces
        choice: dict[str, Any] = {
            "message": {"role": "assistant", "content": "".join(said) if cut else text, "refusal": None},
            "finish_reason": "length" if cut else "stop",
            "logprobs": None,
        }
        if request.get("logprobs"):
            choice["logprobs"] = {"content": _logprobs(said, chances, request.get("top_logprobs") or 0)}
        copies = request.get("n") or 1
        asked = sum(_MESSAGE_TOKENS + count_tokens(content_text(m)) for m in messages)
        usage = {"prompt_tokens": asked, "completion_tokens": len(said) * copies}
        return {
            "id": f"chatcmpl-{hashlib.sha256(body).hexdigest()[:24]}",
            "object": "chat.completion",
            "created": 0,
            "model": MODEL,
            "choices": [{"index": i, **choice} for i in range(copies)],
            "usage": {**usage, "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"]},
        }


class _Refused(Exception):
    """A request that gets an error reply."""

    def __init__(self, message: str, param: str | None = None, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


def _checked(body: bytes) -> Mapping[str, Any]:
    try:
        request = json.loads(body)
    except ValueError as error:
        raise _Refused(f"the body is no JSON: {error}") from None
    if not isinstance(request, dict):
        raise _Refused("the body must be a JSON object")
    model = request.get("model")
    if not isinstance(model, str):
        raise _Refused("'model' must be a string", "model")
    if not model.startswith("offline-"):
        message = f"the model {model!r} does not exist; the stand-in's id is {MODEL!r}"
        raise _Refused(message, "model", 404, "model_not_found")
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _Refused("'messages' must be a list with at least one message", "messages")
    for i, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise _Refused("a message must be an object with a role", f"messages[{i}]")
        content = message.get("content")
        parts = isinstance(content, list) and all(isinstance(p, dict) and p.get("type") == "text" for p in content)
        if not isinstance(content, str) and not parts:
            raise _Refused("content must be a string or a list of text parts", f"messages[{i}].content")
    if request.get("stream"):
        raise _Refused("streaming is not supported", "stream")
    for name, low, high in (
        ("max_tokens", 1, math.inf),
        ("max_completion_tokens", 1, math.inf),
        ("n", 1, 128),
        ("top_logprobs", 0, 20),
    ):
        value = request.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high):
            raise _Refused(f"{name!r} is out of range", name)
    if request.get("top_logprobs") and not request.get("logprobs"):
        raise _Refused("'top_logprobs' needs 'logprobs' to be true", "top_logprobs")
    return request


def _reply(prompt: Prompt, answer: Answer) -> tuple[str, dict[str, float]]:
    """Return the reply's text and the probabilities of what could stand in its deciding place, what it says first."""
    asked = prompt.instructions
    relevant = shifted(answer.relevant, asked.bar)
    if asked.task == "answer":
        said = answer.sentence if asked.sentences and answer.sentence else answer.span
        text = asked.abstain if answer.span is None or said is None else said
        chances = {asked.abstain: 1.0 - answer.confidence, text: answer.confidence}
    elif asked.task == "judge":
        chances = {"Yes": relevant, "No": 1.0 - relevant}
        text = max(chances, key=chances.__getitem__)
    else:
        chances = {str(g): _binomial(g, asked.top, relevant) for g in range(asked.top + 1)}
        text = max(chances, key=chances.__getitem__)
    chances = {text: chances[text], **{word: p for word, p in chances.items() if word != text}}
    if asked.fields is not None:
        return json.dumps(_object(prompt, answer, text), ensure_ascii=False), chances
    return asked.marker + text, chances


def _binomial(grade: int, top: int, p: float) -> float:
    return math.comb(top, grade) * p**grade * (1.0 - p) ** (top - grade)


_VERDICT_KEYS: Final = words("answer relevant relevance score grade rating verdict label judgement judgment")


def _object(prompt: Prompt, answer: Answer, text: str) -> dict[str, Any]:
    asked = prompt.instructions
    fields = asked.fields or {}
    deciding = next((key for key in fields if key.lower() in _VERDICT_KEYS), list(fields)[-1])
    out: dict[str, Any] = {}
    for key, example in fields.items():
        if key != deciding:
            out[key] = round(answer.relevant, 3) if isinstance(example, (int, float)) else answer.sentence
        elif asked.task == "grade":
            out[key] = text if isinstance(example, str) else int(text)
        elif asked.task == "judge":
            lower = isinstance(example, str) and example.islower()
            out[key] = (text.lower() if lower else text) if isinstance(example, str) else text == "Yes"
        else:
            out[key] = text
    return out


def _logprobs(pieces: list[str], chances: Mapping[str, float], top: int) -> list[dict[str, Any]]:
    """Return OpenAI's ``logprobs.content``. The token that decides carries the model's probabilities."""
    words = {word: _log(p) for word, p in chances.items()}
    said = next(iter(words), "")
    deciding = next((i for i, piece in enumerate(pieces) if said.lower().startswith(piece.strip().lower())), 0)
    out = []
    for i, piece in enumerate(pieces):
        options = [(piece, words[said])] if i == deciding and said else [(piece, _log(0.999))]
        if i == deciding:
            options += [(_PIECE.findall(word)[0], logprob) for word, logprob in words.items() if word != said]
        entries = [{"token": t, "logprob": p, "bytes": list(t.encode(errors="surrogatepass"))} for t, p in options]
        out.append({**entries[0], "top_logprobs": entries[:top]})
    return out


def _log(p: float) -> float:
    return round(math.log(min(max(p, 1e-9), 1.0)), 6)
