"""A stand-in for an OpenAI-compatible server: it fills whatever JSON schema it is asked for, always in the same way.

A prompt that holds FAILME gets the error that a content filter gives.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


def _drawn(*key: object) -> int:
    """Return a number that depends on nothing but the key."""
    return int(hashlib.sha256(json.dumps([str(part) for part in key]).encode()).hexdigest()[:8], 16)


def _filled(schema: Mapping[str, Any], known: Mapping[str, Any], seed: str, path: str = "") -> Any:
    """Return a value that fits a JSON schema."""
    if "$ref" in schema:
        return _filled(known[schema["$ref"].rsplit("/", 1)[-1]], known, seed, path)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][_drawn(seed, path) % len(schema["enum"])]
    for either in ("anyOf", "oneOf", "allOf"):
        if either in schema:
            return _filled(schema[either][0], known, seed, path)
    kind = schema.get("type", "string")
    if kind == "object":
        members = schema.get("properties", {})
        return {name: _filled(member, known, seed, f"{path}.{name}") for name, member in members.items()}
    if kind == "array":
        return [_filled(schema.get("items", {}), known, seed, f"{path}[{place}]") for place in range(2)]
    if kind == "number":
        return _drawn(seed, path) % 11 / 10
    if kind in ("integer", "boolean"):
        drawn = _drawn(seed, path) % 2
        return bool(drawn) if kind == "boolean" else drawn
    return f"text {_drawn(seed, path) % 97}"


def _schema_in(prompt: str) -> dict[str, Any] | None:
    """Return the JSON schema that a prompt shows."""
    for place, character in enumerate(prompt):
        if character == "{" and '"properties"' in prompt[place : place + 4000]:
            try:
                shown, _ = json.JSONDecoder().raw_decode(prompt[place:])
            except ValueError:
                continue
            if isinstance(shown, dict) and "properties" in shown:
                return shown
    return None


def _message(body: Mapping[str, Any], prompt: str) -> tuple[dict[str, Any], str]:
    """Return the message that answers a request, and why it ends."""
    if body.get("tools"):
        function = body["tools"][0]["function"]
        schema = function["parameters"]
        arguments = json.dumps(_filled(schema, schema.get("$defs", {}), prompt))
        call = {"id": "c1", "type": "function", "function": {"name": function["name"], "arguments": arguments}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    wanted = body.get("response_format") or {}
    schema = wanted["json_schema"]["schema"] if wanted.get("type") == "json_schema" else _schema_in(prompt)
    if schema is None and '"statement_scores"' in prompt:  # Haystack names the keys that it wants in words
        return {"role": "assistant", "content": json.dumps({"statements": ["text"], "statement_scores": [1]})}, "stop"
    if schema is None:
        return {"role": "assistant", "content": ("yes", "no")[_drawn(prompt) % 2]}, "stop"
    return {"role": "assistant", "content": json.dumps(_filled(schema, schema.get("$defs", {}), prompt))}, "stop"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _send(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """List the only model."""
        self._send(200, {"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer a chat completion or embed texts."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        if "embeddings" in self.path:
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            vectors = [[_drawn(text, place) % 200 / 100 - 0.5 for place in range(8)] for text in texts]
            data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
            self._send(200, {"object": "list", "model": "stand-in", "data": data, "usage": usage})
            return
        contents = [message["content"] for message in body.get("messages", []) if message.get("content")]
        prompt = "\n".join(content if isinstance(content, str) else json.dumps(content) for content in contents)
        if "FAILME" in prompt:
            self._send(400, {"error": {"message": "content filter", "type": "invalid_request_error"}})
            return
        message, reason = _message(body, prompt)
        choice = {"index": 0, "message": message, "finish_reason": reason}
        head = {"id": "x", "object": "chat.completion", "created": 1, "model": "stand-in"}
        self._send(200, {**head, "choices": [choice], "usage": usage})


@contextmanager
def serving() -> Iterator[str]:
    """Serve on a free port of 127.0.0.1; the address is given to the ``with`` block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
