"""Record the replies that the demo replays: ``python -m judgekit.sample.record --base-url http://127.0.0.1:8000/v1``.

Asks a server everything that the sample's experiment asks, as the endpoint ``recorded:`` would be asked, so that the
identities do not depend on the server's address. What is recorded already is kept, since the same request to the same
model has the same reply, and what the experiment no longer asks is dropped. Delete the file to record all of it anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from judgekit.client.recorded import RECORDING, RecordedTransport, Recording
from judgekit.client.session import Session, run_sync
from judgekit.client.transports import HttpTransport
from judgekit.errors import EndpointError
from judgekit.experiment.run import AllStages, prepare, stage_units
from judgekit.progress import Event
from judgekit.sample import EXPERIMENT
from judgekit.wire.types import Endpoint, Failure, Reply

__all__ = ["main", "record"]


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


async def record(base_url: str, experiment: Path = EXPERIMENT, path: Path = RECORDING) -> int:
    """Record what an experiment asks; return the number of replies. Ended early, it loses none, and goes on from there.

    Raises:
        EndpointError: the server cannot be asked, a request failed, or the replies are not of one model.
    """
    prepared = prepare(experiment)
    replies: dict[str, Reply] = {}
    async with Session(None, transports=lambda e: _Recorder(e, base_url, path), progress=_tell) as session:
        asked = chain.from_iterable(units() for units in stage_units(prepared).values())
        kept = Recording.read(path)
        try:
            async for _, outcomes in session.resolve(asked, AllStages(), "record"):
                for outcome in outcomes:
                    if isinstance(outcome, Failure):
                        raise EndpointError(f"a request failed: {outcome.reason}")
                    replies[outcome.key] = outcome
            kept = Recording()  # of these, the experiment asked for what is among the replies
        finally:
            kept.with_replies(replies.values()).write(path)
    return len(replies)


def _tell(event: Event) -> None:
    if event.note:
        sys.stderr.write(f"{event.note}\n")
    elif event.sent % 100 == 0:
        sys.stderr.write(f"\r{event.sent:,} replies")


def main() -> None:
    """Record from the command line."""
    parser = argparse.ArgumentParser(prog="python -m judgekit.sample.record", description="Record the demo's replies.")
    parser.add_argument("--base-url", required=True, help="address of a server with the sample's model")
    count = run_sync(record(parser.parse_args().base_url))
    sys.stderr.write(f"\n{count:,} replies: {RECORDING}, {RECORDING.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
