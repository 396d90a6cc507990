"""Replies of the small model that are committed here, served again; its own server is started for what they lack.

A line of `small/replies.jsonl.gz` is the key of a request and what the server said, without its times and ids. No
question and no passage is in it.
"""

from __future__ import annotations

import gzip
import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

REPLIES = Path(__file__).with_name("small") / "replies.jsonl.gz"
DECIDING = ("model", "messages", "prompt", "max_tokens", "max_completion_tokens", "logprobs", "seed")
"""Members of a body on which the reply depends here. So does ``response_format``, unless it is `FREE`; other
constraints are not among them: the server ignored them."""
FREE = {"type": "text"}
"""The form of a reply that is held to none."""
DROPPED = ("id", "created", "timings", "object", "system_fingerprint")
"""Members of a reply that say nothing of what the model said."""


def key_of(body: str | bytes) -> str:
    """Return the key of a request: the first 16 hexadecimal digits of the SHA-256 of what decides its reply."""
    members = json.loads(body)
    deciding = {name: members[name] for name in DECIDING if name in members}
    if members.get("response_format", FREE) != FREE:
        deciding["response_format"] = members["response_format"]
    return sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]


def read(path: Path) -> dict[str, Any]:
    """Return the kept replies by key; none where there is no file."""
    if not path.exists():
        return {}
    with gzip.open(path, "rt") as lines:
        return dict(json.loads(line) for line in lines)


def keep(exported: Path, path: Path) -> int:
    """Add the replies that `judgekit cache --export` wrote to those that are kept; return how many are kept now."""
    kept = read(path)
    with exported.open() as lines:
        for line in lines:
            record = json.loads(line)
            sent = record["sent"] or record["body"]
            reply = json.loads(record["reply"])
            # Alternatives of each token would be nine tenths of the file.
            if reply["choices"][0].get("logprobs"):
                continue
            said = {name: value for name, value in reply.items() if name not in DROPPED}
            kept[key_of(sent)] = said
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in sorted(kept.items()))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(kept)


@contextmanager
def replayed(path: Path, start: Callable[[], str]) -> Iterator[str]:
    """Yield the base URL of a server on this machine that gives the kept replies.

    Args:
        path: the kept replies.
        start: starts the model's own server and returns its base URL; called once, and only if a reply is lacking.
    """
    replies = read(path)
    lock = threading.Lock()
    started: list[str] = []

    def asked(body: bytes) -> tuple[int, bytes]:
        reply = replies.get(key_of(body))
        if reply is not None:
            return 200, json.dumps(reply).encode()
        with lock:
            if not started:
                started.append(start())
        request = urllib.request.Request(
            f"{started[0]}/chat/completions", data=body, headers={"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except HTTPError as problem:
            return problem.code, problem.read()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            status, reply = asked(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            """Print nothing for each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
