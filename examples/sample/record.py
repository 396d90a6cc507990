"""Record the replies that the demo replays: ``python -m examples.sample.record --base-url http://127.0.0.1:8000/v1``.

Asks a server everything that the sample's experiments ask, as the endpoint ``recorded:`` would be asked, so that the
identities do not depend on the server's address. What is recorded already is kept, since the same request to the same
model has the same reply, and what no experiment asks any more is dropped. Delete the file to record all of it anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgekit.client.session import Session
from judgekit.client.stages import AllStages, StageUnit
from judgekit.client.sync import run_sync
from judgekit.client.transports import (
    KEY,
    RECORDING,
    HttpTransport,
    Line,
    RecordedTransport,
    recorded,
    recording_of,
)
from judgekit.data.streams import write_atomic
from judgekit.errors import EndpointError
from judgekit.experiment.file import load
from judgekit.experiment.prepare import prepare
from judgekit.experiment.run import asked
from judgekit.job import everything
from judgekit.progress import Event
from judgekit.sample import EXPERIMENT, EXPERIMENTS, LABELERS
from judgekit.wire.types import Endpoint, Failure, Reply

__all__ = ["main", "record", "write"]


class _Recorder:
    """Answers what is recorded, and asks a server for the rest."""

    def __init__(self, endpoint: Endpoint, base_url: str, path: Path) -> None:
        self._server = replace(endpoint, base_url=base_url)
        self._http = HttpTransport(self._server)
        self._recorded = RecordedTransport(path)

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        try:
            return await self._recorded.send(endpoint, body)
        except EndpointError:
            return await self._http.send(self._server, body)

    async def aclose(self) -> None:
        await self._http.aclose()


def write(path: Path, server: Mapping[str, Any], lines: Mapping[str, Line], replies: Iterable[Reply]) -> None:
    """Write a recording that also holds what a server answered: the same replies give the same bytes."""
    server, lines = dict(server), dict(lines)
    for reply in replies:
        body = json.loads(reply.raw)
        said = {name: body.get(name) for name in ("model", "system_fingerprint")}
        server = server or said
        if said != server:
            raise EndpointError(f"the replies are of two models, {server} and {said}: record from one")
        usage = None if reply.usage is None else reply.usage.pair
        if usage is None:
            raise EndpointError("the server reports no tokens: record from one that does")
        key = reply.key[:KEY]
        lines[key] = (key, reply.text, reply.finish_reason or "stop", *usage)
    ordered = sorted(lines.values(), key=lambda line: (line[1:], line[0]))  # like beside like packs well
    write_atomic(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [server, *ordered]))


async def record(base_url: str, experiments: Sequence[Path] = (EXPERIMENT, LABELERS), path: Path = RECORDING) -> int:
    """Record what experiments ask."""
    stages: dict[str, Callable[[], Iterator[StageUnit]]] = {}
    for experiment in experiments:
        for stage, units in asked(prepare(experiment)).items():
            stages[f"{experiment.stem}: {stage}"] = units
    replies: dict[str, Reply] = {}
    async with Session(None, transports=lambda e: _Recorder(e, base_url, path), progress=_tell) as session:
        server, lines = recorded(path)
        try:
            async for _, outcomes in session.resolve(everything(stages), AllStages(), "record"):
                for outcome in outcomes:
                    if isinstance(outcome, Failure):
                        raise EndpointError(f"a request failed: {outcome.reason}")
                    replies[outcome.key] = outcome
            lines = {}  # of these, the experiments asked for what is among the replies
        finally:
            write(path, server if lines else {}, lines, replies.values())
    return len(replies)


def _tell(event: Event) -> None:
    if event.note:
        sys.stderr.write(f"{event.note}\n")
    elif event.sent % 100 == 0:
        sys.stderr.write(f"\r{event.sent:,} replies")


def main() -> None:
    """Record from the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.sample.record", description="Record the demo's replies.")
    parser.add_argument("--base-url", required=True, help="address of a server with the model")
    parser.add_argument("--model", choices=list(EXPERIMENTS), default="minilm", help="whose replies")
    given = parser.parse_args()
    experiment = EXPERIMENTS[given.model]
    path = recording_of(next(iter(load(experiment).endpoints.values())).model)
    # The labelers' experiment is the other one of the demo's own model.
    experiments = [experiment, LABELERS] if experiment == EXPERIMENT else [experiment]
    count = run_sync(record(given.base_url, experiments, path))
    sys.stderr.write(f"\n{count:,} replies: {path}, {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
