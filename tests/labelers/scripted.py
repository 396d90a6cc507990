"""What labelers are built from and played with in these tests: no network, no store."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgekit.data.documents import Doc, Docs, Fields, Query, Unit
from judgekit.errors import ConfigError
from judgekit.labelers.base import Label, Labeler
from judgekit.labelers.contract import checked
from judgekit.wire.types import Api, Endpoint, Failure, Outcome, Reply, Request


@dataclass
class Here:
    """A context with as many endpoints as are asked for; ``reranker`` is one."""

    base: Path = Path()
    fields: Fields = "title+text"
    docs: Docs | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    thinks: bool = False

    def endpoint(self, name: str | None, *, scores: bool = False) -> Endpoint:
        if name == "nowhere":
            raise ConfigError("there is no endpoint 'nowhere'")
        address = f"http://{name or 'localhost'}:1/v1"
        api: Api = "rerank" if name == "reranker" else "chat"
        return Endpoint(name or "only", address, "m", params=self.params, thinks=self.thinks, api=api)

    def path(self, text: str) -> Path:
        return self.base / text


Says = str | Mapping[str, Any] | Failure
"""What a scripted model says: a text, a choice of a chat completion, or that nothing came."""


def outcome(request: Request, says: Says) -> Outcome:
    if isinstance(says, Failure):
        return says
    choice = {"message": {"content": says}, "finish_reason": "stop"} if isinstance(says, str) else says
    return Reply(request.key, json.dumps({"choices": [choice]}))


@dataclass
class Played:
    """A finished program: its labels, all requests and the bodies of each wave."""

    labels: list[Label]
    waves: list[list[Request]]

    @property
    def label(self) -> Label:
        assert len(self.labels) == 1
        return self.labels[0]

    @property
    def bodies(self) -> list[list[dict[str, Any]]]:
        return [[json.loads(r.body) for r in wave] for wave in self.waves]


def play(labeler: Labeler, unit: Unit, says: Callable[[Request], Says] | Sequence[Says] = ()) -> Played:
    """Run a labeler over one unit; the model says what a function of the request says, or the texts in turn."""
    turns = iter(says) if not callable(says) else None
    replies: list[Outcome] = []
    waves: list[list[Request]] = []
    while wave := labeler.requests(unit, replies):
        waves.append(wave)
        replies += [outcome(r, says(r) if callable(says) else next(turns)) for r in wave]  # type: ignore[arg-type]  # one of both
        assert len(waves) < 30, "it asks without end"
    assert turns is None or not list(turns), "the model was asked less often than expected"
    return Played(checked(labeler, unit, replies), waves)


CUT = {"message": {"content": "Ye"}, "finish_reason": "length"}
REFUSED = {"message": {"content": None, "refusal": "I may not"}, "finish_reason": "stop"}

PARIS = Query("q1", "What is the capital of France?", ("Paris", "Paris, France"))
DOC = Doc("d1", "The capital of France is Paris.", "France")
OTHER = Doc("d2", "Berlin is the capital of Germany.", "Germany")
