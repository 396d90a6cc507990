"""A batch service in this process, with OpenAI's routes for files and batches."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.scripted import completion
from tests.servers import running


@dataclass
class BatchService:
    """What a batch service has, by name, and how it behaves: it answers, or refuses to create batches with a status."""

    url: str = ""
    answer: Callable[[dict[str, Any]], str | dict[str, Any]] = lambda body: f"yes to {body['messages'][-1]['content']}"
    files: dict[str, bytes] = field(default_factory=dict)
    batches: list[dict[str, Any]] = field(default_factory=list)
    refuse: int | None = None  # from 500 on the batch is created all the same
    keys: set[str] = field(default_factory=set)

    def finish(self, status: str = "completed", *, problem: str | None = None) -> None:
        """End all batches that go on: answer them, except what an expired one left, or refuse them as a whole."""
        for batch in self.batches:
            if batch["status"] != "in_progress":
                continue
            batch["status"] = status
            if problem is not None:
                error = {"code": "invalid", "message": problem, "line": 1, "param": None}
                batch["errors"] = {"object": "list", "data": [error]}
                continue
            good, bad = [], []
            lines = self.files[batch["input_file_id"]].splitlines()
            for number, line in enumerate(map(json.loads, lines)):
                said = self.answer(line["body"])
                row: dict[str, Any] = {"id": f"r{number}", "custom_id": line["custom_id"], "error": None}
                if status == "expired" and number >= len(lines) // 2:
                    bad.append(row | {"response": None, "error": {"code": "batch_expired", "message": "Too late."}})
                elif isinstance(said, str):
                    body = json.loads(completion(said).body)
                    good.append(row | {"response": {"status_code": 200, "request_id": "x", "body": body}})
                else:
                    bad.append(row | {"response": {"status_code": 400, "request_id": "x", "body": {"error": said}}})
            for name, rows in (("output_file_id", good), ("error_file_id", bad)):
                if rows:
                    batch[name] = f"{name}-{batch['id']}"
                    self.files[batch[name]] = "".join(json.dumps(row) + "\n" for row in reversed(rows)).encode()
            batch["request_counts"] = {"total": len(lines), "completed": len(good), "failed": len(bad)}

    def asked(self) -> list[str]:
        """Return the last message of every request in every batch."""
        lines = [line for batch in self.batches for line in self.files[batch["input_file_id"]].splitlines()]
        return [json.loads(line)["body"]["messages"][-1]["content"] for line in lines]

    async def upload(self, request: web.Request) -> web.Response:
        self.keys.add(request.headers.get("authorization", ""))
        form = await request.post()
        assert form["purpose"] == "batch"
        name = f"file-{len(self.files)}"
        self.files[name] = form["file"].file.read()  # type: ignore[union-attr]
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["endpoint"] == "/v1/chat/completions"
        if self.refuse is None or self.refuse >= 500:
            batch = {"id": f"batch-{len(self.batches)}", "object": "batch", "status": "in_progress", **asked}
            self.batches.append(batch)
        if self.refuse is not None:
            told = f"not now, {request.headers.get('authorization')}"
            return web.json_response({"error": {"message": told}}, status=self.refuse)
        return web.json_response(batch)

    async def list(self, request: web.Request) -> web.Response:
        newest = self.batches[::-1]
        names = [batch["id"] for batch in newest]
        first = names.index(request.query["after"]) + 1 if "after" in request.query else 0
        page = newest[first : first + 2]  # small pages, so that they are turned
        more = first + 2 < len(newest)
        return web.json_response({"object": "list", "data": page, "has_more": more})

    async def retrieve(self, request: web.Request) -> web.Response:
        return web.json_response(next(b for b in self.batches if b["id"] == request.match_info["name"]))

    async def content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["name"]])


@contextmanager
def serving() -> Iterator[BatchService]:
    """Run a batch service in a thread."""
    service, app = BatchService(), web.Application()
    app.router.add_post("/v1/files", service.upload)
    app.router.add_get("/v1/files/{name}/content", service.content)
    app.router.add_post("/v1/batches", service.create)
    app.router.add_get("/v1/batches", service.list)
    app.router.add_get("/v1/batches/{name}", service.retrieve)
    with running(app) as service.url:
        yield service
