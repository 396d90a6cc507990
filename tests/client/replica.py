"""A server in a process of its own, to be killed: notes each user message in a file, and answers it in capitals.

python -m tests.client.replica PORT FILE SECONDS
"""

from __future__ import annotations

import asyncio
import os
import sys

from aiohttp import web

from tests.scripted import completion


def main(port: str, file: str, seconds: str) -> None:
    noted = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def answer(request: web.Request) -> web.Response:
        text = (await request.json())["messages"][0]["content"]
        os.write(noted, f"{text}\n".encode())
        await asyncio.sleep(float(seconds))
        return web.Response(body=completion(text.upper()).body)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    web.run_app(app, host="127.0.0.1", port=int(port), print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
