"""A fast mock of a chat-completion server, run as a process of its own: answers every POST after a fixed latency.

    python benchmarks/fast_server.py LATENCY_MS [REPLY]     prints its port, ends with its standard input

``GET /stats`` returns the number of completions answered so far.
"""

from __future__ import annotations

import asyncio
import json
import sys


def completion(text: str) -> bytes:
    """Return a chat completion that says ``text``."""
    message = {"role": "assistant", "content": text, "refusal": None}
    body = {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 1, "total_tokens": 301},
    }
    return json.dumps(body).encode()


COMPLETION = completion("Yes")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class Server(asyncio.Protocol):
    """One connection: requests come one after another, as HTTP/1.1 clients send them."""

    answered = 0

    def __init__(self, latency_s: float, reply: bytes) -> None:
        self.latency_s = latency_s
        self.reply = reply
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.buffer) < end + 4 + length:
                return
            self.buffer = self.buffer[end + 4 + length :]
            if head.startswith(b"get "):
                body = json.dumps({"answered": Server.answered}).encode()
                self.answer(HEAD % len(body) + body)
            else:
                asyncio.get_running_loop().call_later(self.latency_s, self.complete)

    def complete(self) -> None:
        Server.answered += 1
        self.answer(HEAD % len(self.reply) + self.reply)

    def answer(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)  # type: ignore[attr-defined]


async def main() -> None:
    latency_s = float(sys.argv[1]) / 1000
    reply = completion(sys.argv[2]) if len(sys.argv) > 2 else COMPLETION
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Server(latency_s, reply), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
