"""Requests to rerankers and their replies: a question and one document, and a score for the two.

Servers agree on a route, ``/rerank``, and on little else. Cohere's shape is that of vLLM, LiteLLM and llama-server
(``documents``; ``results`` with a ``relevance_score``); TEI takes ``texts`` and replies a bare list; vLLM's ``/score``
takes two texts and replies ``data``. A reply is stored as it came, and read here as a choice without a text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from judgekit.wire.jsontext import at


def scored_body(api: str, model: str, question: str, text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request for the score of a question and a document, in the shape of its API."""
    if api == "score":
        return {"model": model, "text_1": question, "text_2": text, **fields}
    return {"model": model, "query": question, "documents": [text], **fields}


def with_choices(body: Any) -> Any:
    """Return a reranker's response in the shape of a completion whose choice holds a ``score``; any other as it is."""
    if isinstance(body, dict) and "choices" in body:
        return body
    score = _score(body)
    if score is None:
        return body
    plain = body if isinstance(body, dict) else {}
    completion = {**plain, "choices": [{"index": 0, "score": score, "finish_reason": "stop"}]}
    tokens = _tokens(plain)
    if tokens is not None:
        completion["usage"] = {"prompt_tokens": tokens, "completion_tokens": 0}
    return completion


def _score(body: Any) -> float | None:
    """Return the score of the requested document; None if there is none, or more than one."""
    entries = body
    if isinstance(body, dict):
        entries = body.get("results", body.get("data"))
    # With several scores nobody knows which is meant; requests hold one document.
    if not isinstance(entries, list) or len(entries) != 1 or not isinstance(entries[0], dict):
        return None
    score = entries[0].get("relevance_score", entries[0].get("score"))
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        return None
    return float(score)


def _tokens(body: Mapping[str, Any]) -> Any:
    """Return a reranker's tokens: vLLM's total, or Cohere's report beside its billed units."""
    reported = (
        at(body, "usage", "prompt_tokens"),
        at(body, "usage", "total_tokens"),
        at(body, "meta", "tokens", "input_tokens"),
    )
    return next((tokens for tokens in reported if tokens), None)
