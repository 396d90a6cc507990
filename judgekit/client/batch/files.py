"""Batch files: requests without a stored reply go out as a file, replies come back as a file.

The files are OpenAI's (`/v1/chat/completions` lines, or of another API); ``vllm run-batch`` takes those of chats. The
``custom_id`` of a line is the request's identity. Exported requests wait in the store, so that result files need
nothing else: results may come in any order, in several files, and in part.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import orjson

from judgekit.client.waves import Plan, missing
from judgekit.data.streams import check_outputs, lines, open_atomic
from judgekit.errors import DataError, UsageError
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.constraints import unconstrained
from judgekit.wire.jsontext import parse_json
from judgekit.wire.quirks import Accepted, Response, read_response
from judgekit.wire.types import ROUTES, Endpoint, Program, Request
from judgekit.wire.usage import tokens_used

MAX_REQUESTS: Final = 50_000
"""The most requests in one file, by OpenAI's rules."""

MAX_BYTES: Final = 200_000_000
"""The most bytes of one file, by OpenAI's rules."""

_CHUNK: Final = 256

U = TypeVar("U")


@dataclass
class BatchExport:
    """What was written.

    Attributes:
        files: the endpoint of each file, in order; empty if nothing is missing.
        requests: requests written.
        cached: requests with a stored reply.
        under_way: requests that a batch service is already working on; not written.
        again: written requests that an earlier export also wrote, without a reply yet.
        at_least: whether the replies may lead to further requests, to export after importing them.
    """

    files: dict[Path, Endpoint] = field(default_factory=dict)
    requests: int = 0
    cached: int = 0
    under_way: int = 0
    again: int = 0
    at_least: bool = False


@dataclass
class _Open:
    """The file for the requests to an endpoint and model."""

    stream: BinaryIO
    lines: int = 0
    size: int = 0


class _Files:
    """Batch files that are being written; those after the first have a number in their names."""

    def __init__(self, path: Path, most: int, size: int, stack: ExitStack) -> None:
        """Write below ``path``, with ``most`` lines and ``size`` bytes in each; ``stack`` closes them."""
        self.written: dict[Path, Endpoint] = {}
        self._path, self._most, self._size, self._stack = path, most, size, stack
        self._open: dict[tuple[str, str, str], _Open] = {}

    def write(self, request: Request) -> None:
        """Write a line into the file of its endpoint and model; begin another one if it is full."""
        endpoint = request.endpoint
        fields = request.key.encode(), ROUTES[endpoint.api].encode(), _sent(request)
        # Joined from bytes: the body goes out exactly as hashed, without parsing.
        line = b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}\n' % fields
        whom = endpoint.name, endpoint.identity, endpoint.model
        file = self._open.get(whom)
        if file is None or file.lines >= self._most or file.size + len(line) > self._size:
            name = self._path
            if self.written:
                name = name.with_stem(f"{name.stem}-{len(self.written) + 1:03}")
            self.written[name] = endpoint
            file = self._open[whom] = _Open(self._stack.enter_context(open_atomic(name)))
        file.stream.write(line)
        file.lines += 1
        file.size += len(line)


def export_batch(
    store: Store,
    units: Iterable[U],
    program: Program[U],
    path: str | Path,
    *,
    most: int = MAX_REQUESTS,
    size: int = MAX_BYTES,
    under_way: Set[str] = frozenset(),
) -> BatchExport:
    """Write the requests without a stored reply as batch files; nothing is sent.

    Each file is for one endpoint and model and stays below the limits.
    """
    path = Path(path)
    if path.suffix != ".jsonl":
        raise UsageError(f"{path}: the name of a batch file ends in .jsonl")
    check_outputs(path)
    result, plan = BatchExport(), Plan()
    with ExitStack() as stack:
        files = _Files(path, most, size, stack)
        for lacking in missing(units, program, store.get_many, plan):
            new: dict[str, Record] = {}
            for request in lacking:
                if request.endpoint.application:
                    result.at_least = True  # no service asks a user's application: `run` does
                elif request.key in under_way:
                    result.under_way += 1
                else:
                    new[request.key] = _waiting(request)
                    files.write(request)
            result.requests += len(new)
            result.again += len(store.waiting(list(new)))
            # Written requests wait in the store, so that a result file alone tells what it answers.
            store.put_waiting(list(new.values()))
    result.files, result.cached = files.written, plan.cached
    result.at_least = result.at_least or plan.at_least
    return result


def _sent(request: Request) -> bytes:
    """Return the body that goes out."""
    return unconstrained(request.body) if request.free else request.body


def _waiting(request: Request) -> Record:
    return Record(
        request.key,
        request.endpoint.identity,
        sample=request.sample,
        body=request.body.decode(),
        sent=_sent(request).decode() if request.free else None,
        reply=None,
        usage=None,
        time=time.time(),
    )


@dataclass
class BatchImport:
    """What came back.

    Attributes:
        imported: replies that are in the store now.
        there: replies that were there already, and stay.
        failed: (line, identity, reason) of requests that have no reply; exporting again writes them again.
        unknown: (line, custom_id) of lines whose request was not exported from this store.
    """

    imported: int = 0
    there: int = 0
    failed: list[tuple[int, str, str]] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)


def import_batch(store: Store, path: str | Path) -> BatchImport:
    """Import a result file, with its lines in any order."""
    path = Path(path)
    result = BatchImport()
    for _ in _results(path):  # a bad line is an error before anything is stored
        pass
    source = _results(path)
    while part := list(islice(source, _CHUNK)):
        waiting = store.waiting([key for _, key, _ in part])
        stored = store.get_many([key for _, key, _ in part])
        records: dict[str, Record] = {}
        for line, key, response in part:
            # The reply that was paid for first stays, so that labels made from it do not change.
            if key in stored or key in records:
                result.there += 1
            elif key not in waiting:
                result.unknown.append((line, key))
            elif isinstance(response, Accepted):
                used = tokens_used(response.json)
                pair = None if used is None else used.pair
                records[key] = replace(waiting[key], reply=response.raw, usage=pair, time=time.time())
            else:
                result.failed.append((line, key, response.reason))
        kept = store.put_many(list(records.values()))
        result.there += len(kept)
        result.imported += len(records) - len(kept)
        store.forget([*stored, *records], waiting=True)
    return result


def _results(path: Path) -> Iterator[tuple[int, str, Response]]:
    """Yield the number of each line, the identity of its request, and what the response means."""
    for line in lines(path, "a batch result file"):
        if not line.text.strip():
            continue
        try:
            row = parse_json(line.text)
        except ValueError as problem:
            reason = f"is not JSON: {problem}. If the file was cut off, download it again"
            raise DataError(reason, path, line.number) from None
        if not isinstance(row, dict) or not isinstance(row.get("custom_id"), str):
            raise DataError("is not a line of a batch result: it has no custom_id", path, line.number)
        if "response" not in row and "error" not in row:
            raise DataError(
                "is not a line of a batch result: it has neither a response nor an error"
                + (" (this is the file that was exported, not its results)" if "body" in row else ""),
                path,
                line.number,
            )
        response = row.get("response")
        # A request that the service never sent has an error and no response; one that vLLM refused has a response
        # without a body, and the error in an object of its own.
        whole = response if isinstance(response, dict) else {"status_code": 500}
        said, reported = whole.get("body"), row.get("error")
        if said is None and reported:
            said = reported if isinstance(reported, dict) and "error" in reported else {"error": reported}
        status, body = whole.get("status_code", 200), orjson.dumps(said)
        read = read_response(status if isinstance(status, int) else 500, {}, body, proven=whole is response)
        yield line.number, row["custom_id"], read
