"""Making nuggets: from reference answers where there are some, else by an LLM from the pooled passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.stages import StageUnit
from judgekit.client.sync import with_session
from judgekit.collection import Collection
from judgekit.context import Context
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import Config, load
from judgekit.experiment.prepare import check_access
from judgekit.experiment.run import count
from judgekit.plugins.nuggets.facts import OKAY, VITAL, Nugget, Nuggets, from_references, write_nuggets
from judgekit.plugins.nuggets.support import ASKED_AGAIN, json_list
from judgekit.reading.prompts import Prompt, load_prompt
from judgekit.reading.verdict import Unread, usable
from judgekit.wire.types import Endpoint, Outcome, Request, chat

if TYPE_CHECKING:
    from judgekit.client.budget import Prices
    from judgekit.client.session import Session
    from judgekit.client.waves import Plan

STAGE: Final = "nuggets"
_PASSAGES: Final = 20
"""Passages that are shown for a question, the best of each run in turn."""
_MOST: Final = 20
"""Nuggets of a question that are kept; the prompt asks for no more."""


@dataclass(frozen=True)
class NuggetMaker:
    """Asks an LLM for the nuggets of a question, and once more where its reply cannot be read."""

    endpoint: Endpoint
    prompt: Prompt

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the question; again, once, if the reply cannot be read."""
        if replies and not (len(replies) == 1 and self._is_unreadable(replies[0])):
            return []
        messages = self.prompt.messages(self.prompt.values(unit.query, unit.docs))
        fields = {"temperature": 0, **self.prompt.params, **self.endpoint.llm.params}
        # The same question once more is another sample: the reply to the first one is in the store.
        request = chat(self.endpoint, messages, sample=len(replies), **fields)
        return [replace(request, again=bool(replies))]

    def most(self, unit: Unit, /) -> int:
        """Return the most requests that a question takes."""
        return 2

    def nuggets(self, replies: Sequence[Outcome]) -> tuple[Nugget, ...] | Unread:
        """Return the nuggets that the last reply lists, or why it cannot be read."""
        reply = usable(replies[-1])
        if isinstance(reply, Unread):
            return reply
        listed = json_list(reply.text, self.endpoint.thinks)
        if listed is None:
            return Unread(Status.UNPARSED, "the reply is not a JSON list")
        nuggets: dict[str, Nugget] = {}
        for item in listed[:_MOST]:
            nugget = _nugget(item)
            if nugget is None:
                return Unread(Status.UNPARSED, f"the reply lists {item!r}, not a fact and its importance")
            nuggets.setdefault(nugget.text.casefold(), nugget)
        return tuple(nuggets.values())

    def _is_unreadable(self, outcome: Outcome) -> bool:
        listed = self.nuggets([outcome])
        return isinstance(listed, Unread) and listed.status in ASKED_AGAIN


def _nugget(item: Any) -> Nugget | None:
    if not isinstance(item, dict) or item.keys() != {"fact", "importance"}:
        return None
    fact, importance = item["fact"], item["importance"]
    if not isinstance(fact, str) or not fact.strip() or importance not in (VITAL, OKAY):
        return None
    return Nugget(" ".join(fact.split()), importance == VITAL)


@dataclass(frozen=True)
class MadeNuggets:
    """Nuggets that were written.

    Attributes:
        nuggets: by query.
        from_references: how many queries have nuggets of their references.
        missing: why there are none, by query; such queries are not in the file.
    """

    nuggets: Nuggets
    from_references: int
    missing: dict[str, str]


def make_nuggets(
    experiment: str | Path,
    out: Path,
    *,
    endpoint: str | None = None,
    asking: Asking = UNLIMITED,
) -> MadeNuggets:
    """Write a file of nuggets for the questions of an experiment.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent; among others, the file is there already.
        StoppedError: the endpoint or the budget ended it; what was paid for is in the store.
    """
    # The file may hold hours of editing.
    if out.exists():
        raise UsageError(f"{out} is there already and may hold your edits: remove it, or choose another --out")
    config, collection = _read(experiment, asking.cache)
    nuggets = _given(collection)
    given = len(nuggets)
    missing: dict[str, str] = {}
    if given < len(collection.queries):
        maker = _maker(config, endpoint)

        async def ask(session: Session) -> None:
            units = list(_units(collection, nuggets))
            async for unit, replies in session.resolve(units, maker, STAGE, len(units)):
                found = maker.nuggets(replies)
                if isinstance(found, Unread):
                    missing[unit.query.query_id] = found.reason
                else:
                    nuggets[unit.query.query_id] = found

        with_session(ask, asking, config.price_list())
    ordered = {query_id: nuggets[query_id] for query_id in collection.queries if query_id in nuggets}
    write_nuggets(ordered, out)
    return MadeNuggets(ordered, given, missing)


def plan_nuggets(
    experiment: str | Path, endpoint: str | None = None, cache: str | Path | None = None
) -> tuple[dict[str, Plan], Prices]:
    """Count what `make_nuggets` would send, and return the experiment's prices, too."""
    config, collection = _read(experiment, cache)
    nuggets = _given(collection)

    def asked() -> Iterable[StageUnit]:
        if len(nuggets) == len(collection.queries):
            return ()
        maker = _maker(config, endpoint)
        return ((maker, unit) for unit in _units(collection, nuggets))

    return count({STAGE: partial(iter, list(asked()))}, cache), config.price_list()


def _read(experiment: str | Path, cache: str | Path | None) -> tuple[Config, Collection]:
    config = load(experiment)
    # Not `prepare`: its labelers may name the file of nuggets that is made here.
    collection = config.collection(cache)
    return config, collection.only(list(collection.queries)[: config.data.limit])


def _maker(config: Config, endpoint: str | None) -> NuggetMaker:
    servers = config.servers()
    if not servers:
        raise ConfigError(
            "some questions have no reference answers, so an LLM has to list their facts: define an endpoint",
            config.path,
            "endpoints",
        )
    asked = Context(servers).endpoint(endpoint).llm
    check_access([asked])
    return NuggetMaker(asked, load_prompt("nuggets"))


def _given(collection: Collection) -> dict[str, tuple[Nugget, ...]]:
    """Return the nuggets that references state, of the queries that have references."""
    return {query_id: from_references(query) for query_id, query in collection.queries.items() if query.answers}


def _units(collection: Collection, nuggets: Nuggets) -> Iterator[Unit]:
    """Yield the queries without nuggets that have passages, each with the passages that are shown."""
    for query_id, query in collection.queries.items():
        docs = _best(collection, query) if query_id not in nuggets else []
        if docs:
            yield Unit(query, tuple(docs))


def _best(collection: Collection, query: Query) -> list[Doc]:
    rankings = [list(run.top(query.query_id, collection.depth)) for run in collection.runs]
    doc_ids: dict[str, None] = {}
    for rank in range(collection.depth):
        for ranking in rankings:
            if rank < len(ranking):
                doc_ids[ranking[rank]] = None
    return collection.docs.get(list(doc_ids)[:_PASSAGES])
