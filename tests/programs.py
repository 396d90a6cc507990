"""A small program and its run, which the tests of several rooms share."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgekit.client.budget import Usage
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import EndpointError, JudgekitError
from judgekit.progress import Event
from judgekit.wire.types import Endpoint, Outcome, Reply, Request, chat
from tests.scripted import ScriptedTransport

UNITS = [f"unit {i:02}" for i in range(30)]


class Ask:
    """One request a wave; the unit is the text."""

    def __init__(self, endpoint: Endpoint, waves: int = 1, **params: Any) -> None:
        self.endpoint = endpoint
        self.waves = waves
        self.params = params

    def most(self, unit: str, /) -> int:
        return self.waves

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        if len(replies) >= self.waves:
            return []
        text = f"{unit} {len(replies)}" if replies else unit
        return [chat(self.endpoint, [{"role": "user", "content": text}], **self.params)]


async def collect(session: Session, units: Sequence[str], program: Ask, stage: str = "s") -> dict[str, list[Outcome]]:
    """Resolve units and return their outcomes."""
    return {unit: outcomes async for unit, outcomes in session.resolve(units, program, stage, len(units))}


def texts(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what the replies say, and why there are none."""
    return [o.text if isinstance(o, Reply) else f"{o.status}: {o.reason}" for o in outcomes]


class Run:
    """A run against a server; options are the endpoint's, ``params`` of its requests, or ``session``'s."""

    def __init__(self, base_url: str, units: Sequence[str], store: Path | None = None, **options: Any) -> None:
        params = options.pop("params", {})
        settings = {"backoff_s": 0.02, **options.pop("session", {})}
        self.endpoint = Endpoint("here", base_url, options.pop("model", "m"), **{"timeout_s": 60.0, **options})
        self.outcomes: dict[str, Outcome] = {}
        self.error: JudgekitError | None = None
        self.events: list[Event] = []
        begun = time.monotonic()
        with Session(store, progress=self.events.append, **settings) as session:
            try:
                run_sync(self._collect(session, units, Ask(self.endpoint, **params)))
            except JudgekitError as problem:
                self.error = problem
            self.usage: Usage = session.usage("s")
            self.totals, self.doubts = session.totals(), session.doubts
            self.retries = session.shared.retries.most_common()
        self.seconds = time.monotonic() - begun

    async def _collect(self, session: Session, units: Sequence[str], program: Ask) -> None:
        async for unit, outcomes in session.resolve(units, program, "s", len(units)):
            self.outcomes[unit] = outcomes[0]

    @property
    def stopped(self) -> str:
        """Why no more was asked of the endpoint."""
        assert isinstance(self.error, EndpointError)
        return str(self.error)

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.events if event.note]

    @property
    def texts(self) -> list[str]:
        return sorted(texts(list(self.outcomes.values())))


def scripted(
    script: Any, store: Path | None = None, units: Sequence[str] = UNITS, **options: Any
) -> tuple[Run, list[dict[str, Any]]]:
    """Return a run against a scripted transport, and the bodies that were sent."""
    transport = ScriptedTransport(script)
    session = {"transports": lambda _: transport, "backoff_s": 0.001, **options.pop("session", {})}
    return Run("http://server.example/v1", units, store, session=session, **options), transport.sent
