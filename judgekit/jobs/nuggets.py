"""Makes nuggets: from reference answers if there are any, else by an LLM from the pooled passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from judgekit.answers.nuggets import OKAY, VITAL, Nugget, Nuggets, from_references, write_nuggets
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.stages import StageUnit
from judgekit.collection import Collection
from judgekit.context import Context
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.result_files import ResultFiles
from judgekit.errors import ConfigError, UsageError
from judgekit.experiment.file import Config, load
from judgekit.experiment.prepare import check_access
from judgekit.job import Job, job
from judgekit.reading.lists import ListAsker, Question
from judgekit.reading.prompts import load_prompt
from judgekit.reading.verdict import Unread
from judgekit.wire.types import Outcome, Request

if TYPE_CHECKING:
    from judgekit.client.session import Session

STAGE: Final = "nuggets"
_PASSAGES: Final = 20
"""The number of passages to show for a question, the best of each run in turn."""
# The limit in the prompt; with hundreds of nuggets, each answer would cost dozens of requests.
_MOST: Final = 20


@dataclass(frozen=True)
class NuggetMaker:
    """Asks an LLM for the nuggets of a question, and again if its reply cannot be read."""

    asker: ListAsker

    def _questions(self, unit: Unit) -> list[Question[Nugget]]:
        values = self.asker.prompt.values(unit.query, unit.docs)
        return [Question(values, 'a JSON list of objects, {"fact": "…", "importance": "vital" or "okay"}', _nuggets)]

    def requests(self, unit: Unit, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the question; once more if the reply cannot be read."""
        return self.asker.requests(self._questions(unit), replies)

    def most(self, unit: Unit, /) -> int:
        """Return the largest number of requests for a question."""
        return 2

    def nuggets(self, unit: Unit, replies: Sequence[Outcome]) -> list[Nugget] | Unread:
        """Return the nuggets of a question, or why there are none."""
        return self.asker.read(self._questions(unit), replies)


def _nuggets(listed: list[Any]) -> list[Nugget] | str:
    nuggets: dict[str, Nugget] = {}
    for item in listed[:_MOST]:
        fact, importance = None, None
        if isinstance(item, dict) and item.keys() == {"fact", "importance"}:
            fact, importance = item["fact"], item["importance"]
        if not isinstance(fact, str) or not fact.strip() or importance not in (VITAL, OKAY):
            return f"{item!r}, not a fact and its importance"
        nugget = Nugget(" ".join(fact.split()), importance == VITAL)
        nuggets.setdefault(nugget.text.casefold(), nugget)
    return list(nuggets.values())


@dataclass(frozen=True)
class NuggetResult:
    """The written nuggets.

    Attributes:
        nuggets: by query.
        from_references: number of queries with nuggets from their references.
        missing: why a query has none and is not in the file.
    """

    nuggets: Nuggets
    from_references: int
    missing: dict[str, str]


@job
def make_nuggets(
    experiment: str | Path,
    out: Path,
    *,
    endpoint: str | None = None,
    trust: bool = False,
    asking: Asking = UNLIMITED,
) -> Job[NuggetResult]:
    """Write a file of nuggets for the questions of an experiment.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent; among others, the file is there already.
        StoppedError: the endpoint failed or the budget ran out; paid replies are in the store.
    """
    # The file may hold hours of editing.
    if out.exists():
        raise UsageError(f"{out} exists and may hold your edits: remove it, or choose another --out")
    config, collection = _read(experiment, asking.cache, trust=trust)
    given = _given(collection)
    units = list(_units(collection, given))
    maker = _maker(config, endpoint) if len(given) < len(collection.queries) else None

    async def do(session: Session, _: ResultFiles) -> NuggetResult:
        nuggets, missing = dict(given), dict[str, str]()
        if maker is not None:
            async for unit, replies in session.resolve(units, maker, STAGE, len(units)):
                listed = maker.nuggets(unit, replies)
                if isinstance(listed, Unread):
                    missing[unit.query.query_id] = listed.reason
                else:
                    nuggets[unit.query.query_id] = tuple(listed)
        # In the order of the question file, so that edits to two versions can be compared line by line.
        ordered = {query_id: nuggets[query_id] for query_id in collection.queries if query_id in nuggets}
        write_nuggets(ordered, out)
        return NuggetResult(ordered, len(given), missing)

    asked: list[StageUnit] = [] if maker is None else [(maker, unit) for unit in units]
    return Job({STAGE: partial(iter, asked)}, do, asking.priced(config.price_list()))


def _read(experiment: str | Path, cache: str | Path | None, *, trust: bool) -> tuple[Config, Collection]:
    config = load(experiment, trusted=trust)
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
    llm = Context(servers).endpoint(endpoint).llm
    check_access([llm])
    return NuggetMaker(ListAsker(llm, load_prompt("nuggets")))


def _given(collection: Collection) -> dict[str, tuple[Nugget, ...]]:
    """Return the nuggets stated by references, by query."""
    return {query_id: from_references(query) for query_id, query in collection.queries.items() if query.answers}


def _units(collection: Collection, nuggets: Nuggets) -> Iterator[Unit]:
    """Yield the queries without nuggets that have passages, with the passages to show."""
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
