"""Record how a real server answers: ``python -m tests.probe BASE_URL MODEL NAME-VERSION [KEY]``.

Each of the requests below goes out once. The lines of ``tests/servers/NAME-VERSION.jsonl`` are what came back, by which
tests hold the reading of responses, and from which the table on the page of endpoints is made.
"""

from __future__ import annotations

import http.client
import json
import sys
import urllib.parse
from pathlib import Path
from typing import Any, Final

RECORDS: Final = Path(__file__).parent / "servers"

ASK: Final = "Is the sky blue? Reply with Yes or No only."
WORDS: Final = ["Purple", "Green"]
LONG: Final = "word and then another thing "
"""What a prompt beyond any context repeats."""
SCHEMA: Final = {
    **{"type": "object", "properties": {"score": {"type": "integer", "enum": [7]}}},
    **{"required": ["score"], "additionalProperties": False},
}


def schema(value: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": value}}


CHAT: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "alternatives": {"logprobs": True, "top_logprobs": 5, "max_tokens": 2},
    "20 alternatives": {"logprobs": True, "top_logprobs": 20, "max_tokens": 1},
    "too many alternatives": {"logprobs": True, "top_logprobs": 25, "max_tokens": 1},
    "no alternatives": {"logprobs": True, "max_tokens": 1},
    "alternatives alone": {"top_logprobs": 5, "max_tokens": 1},
    "list of words": {"structured_outputs": {"choice": WORDS}},
    "words by schema": {"response_format": schema({"type": "string", "enum": WORDS})},
    "regular expression": {"regex": f"({'|'.join(WORDS)})"},
    "grammar": {"grammar": " ".join(("root ::=", " | ".join(map(json.dumps, WORDS))))},
    "object by schema": {"response_format": schema(SCHEMA), "max_tokens": 40},
    "object": {"response_format": {"type": "json_object"}, "max_tokens": 40},
    "unknown form": {"response_format": {"type": "verdict_of_mine"}},
    "two choices": {"n": 2, "max_tokens": 2},
    "a stop that begins like the reply": {"stop": ["es"], "logprobs": True, "top_logprobs": 2},
    "no room": {"max_tokens": 0},
    "too much room": {"max_tokens": 10_000_000},
    "room in words": {"max_tokens": "8"},
    "newer name of room": {"max_tokens": None, "max_completion_tokens": 3},
    "unknown field": {"field_of_mine": True, "max_tokens": 2},
    "thinking off": {"chat_template_kwargs": {"enable_thinking": False}, "max_tokens": 2},
    "effort": {"reasoning_effort": "none", "max_tokens": 2},
    "temperature below 0": {"temperature": -1, "max_tokens": 2},
    "too long": {"messages": [{"role": "user", "content": LONG}]},
    "unknown role": {"messages": [{"role": "judge", "content": ASK}], "max_tokens": 2},
    "nothing asked": {"messages": [{"role": "user", "content": ""}], "max_tokens": 2},
    "wrong model": {"model": "no-such-model", "max_tokens": 2},
    "no model": {"model": None, "max_tokens": 2},
    "odd letters": {
        "messages": [{"role": "user", "content": "Repeat: 日本 é 😀"}],
        **{"logprobs": True, "top_logprobs": 2, "temperature": 1.5, "seed": 3, "max_tokens": 12},
    },
}
TEXT: Final[dict[str, dict[str, Any]]] = {
    "completion": {},
    "completion with alternatives": {"logprobs": 5, "max_tokens": 2},
    "completion with 10 alternatives": {"logprobs": 10, "max_tokens": 1},
    "completion by list of words": {"structured_outputs": {"choice": WORDS}},
    "completion by schema": {"response_format": schema(SCHEMA), "max_tokens": 40},
    "completion by grammar": {"grammar": CHAT["grammar"]["grammar"]},
    "completion too long": {"prompt": LONG},
}


def main(base_url: str, model: str, name: str, key: str = "", folder: Path = RECORDS, repeated: int = 9000) -> None:
    """Write what came back; the longest prompt repeats a few words so often."""
    address = urllib.parse.urlsplit(base_url)

    def call(path: str, data: bytes | None, sent_key: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        headers = {"content-type": "application/json"}
        if sent_key:
            headers["authorization"] = f"Bearer {sent_key}"
        connection.request("GET" if data is None else "POST", address.path + path, data, headers)
        response = connection.getresponse()
        kept = {key.lower(): value for key, value in response.getheaders()}
        return response.status, kept, response.read().decode("utf-8", "replace")

    def body(fields: dict[str, Any], **shown: Any) -> bytes:
        whole = {"model": model, **shown, "max_tokens": 8, "temperature": 0, **fields}
        written = json.dumps({key: value for key, value in whole.items() if value is not None})
        return written.replace(LONG, LONG * repeated).encode()

    chats = {name: body(fields, messages=[{"role": "user", "content": ASK}]) for name, fields in CHAT.items()}
    texts = {name: body(fields, prompt=f"{ASK}\n\nReply:") for name, fields in TEXT.items()}
    asked: list[tuple[str, str, bytes | None, str]] = [("models", "/models", None, key)]
    asked += [(name, "/chat/completions", data, key) for name, data in chats.items()]
    asked += [(name, "/completions", data, key) for name, data in texts.items()]
    asked += [("wrong key", "/chat/completions", chats["plain"], "sk-0123456789abcdef"[: 19 if key else 0])]
    asked += [("no key", "/chat/completions", chats["plain"], ""), ("broken", "/chat/completions", b'{"model": ', key)]
    asked += [("wrong route", "/no/such/route", b"{}", key)]
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as out:
        for what, path, data, sent_key in asked:
            status, headers, said = call(path, data, sent_key)
            kept = {key: headers[key] for key in ("content-type", "retry-after") if key in headers}
            sent = {} if data is None or len(data) > 2000 or not data.endswith(b"}") else json.loads(data)
            sent.pop("messages", None)
            line = {"name": what, "route": path, "sent": sent, "status": status, "headers": kept, "body": said}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            print(f"{what}: {status}")


if __name__ == "__main__":
    main(*sys.argv[1:])
