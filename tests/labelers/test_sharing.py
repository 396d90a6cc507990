"""Replies are shared: what utility paid for, answering from one document does not pay again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from judgekit.answers.answerer import make_answerer
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.data.documents import Doc, Query, Unit
from judgekit.labelers.base import Labeler, build, checked
from judgekit.wire.types import Program
from tests.labelers.scripted import Here
from tests.scripted import ScriptedTransport

QUERIES = [Query(f"q{i}", f"Which number is {i}?", (str(i),)) for i in range(4)]
DOCS = [Doc(f"d{i}", f"The number is {i}.", f"Number {i}") for i in range(6)]


def speaks(body: dict[str, Any]) -> str:
    """The first number of the passages; without any, it believes in 1."""
    found = re.search(r"The number is (\d)", body["messages"][-1]["content"])
    return found[1] if found else "1"


async def resolve(session: Session, program: Program[Unit], units: Iterable[Unit], stage: str) -> list[Any]:
    found = []
    async for unit, outcomes in session.resolve(units, program, stage=stage):
        found += checked(program, unit, outcomes) if isinstance(program, Labeler) else [None]
    return found


def units(labeler: Labeler) -> list[Unit]:
    return [unit for query in QUERIES for unit in labeler.units(query, DOCS)]


def test_calls_are_counted(tmp_path: Path) -> None:
    transport = ScriptedTransport(speaks)
    utility, f1, gain = (build(f"utility{o}", Here()) for o in ("", "(quality=f1)", "(variant=gain)"))
    answerer = make_answerer(Here().endpoint(None), "answer-short", Here())

    async def play() -> list[int]:
        calls = []
        async with Session(tmp_path, transports=lambda _: transport) as session:
            for program, asked, stage in [
                (utility, units(utility), "utility"),
                (answerer, units(utility), "k = 1"),
                (f1, units(f1), "another metric"),
                (gain, units(gain), "gain"),
                (answerer, [Unit(q, ()) for q in QUERIES], "closed book"),
                (answerer, [Unit(q, tuple(DOCS[:3])) for q in QUERIES], "k = 3"),
            ]:
                before = len(transport.sent)
                await resolve(session, program, asked, stage)
                calls.append(len(transport.sent) - before)
        return calls

    pairs = len(QUERIES) * len(DOCS)
    assert run_sync(play()) == [pairs, 0, 0, len(QUERIES), 0, len(QUERIES)]


def test_gain_and_utility_differ_where_the_model_knows_the_answer(tmp_path: Path) -> None:
    transport = ScriptedTransport(speaks)

    async def play(spec: str) -> dict[tuple[str, str], float]:
        labeler = build(spec, Here())
        async with Session(tmp_path, transports=lambda _: transport) as session:
            return {(x.query_id, x.doc_id): x.relevance for x in await resolve(session, labeler, units(labeler), spec)}

    utility, gain, signed = (
        run_sync(play(spec)) for spec in ("utility", "utility(variant=gain)", "utility(variant='signed-gain')")
    )
    assert {pair for pair, value in utility.items() if value} == {(f"q{i}", f"d{i}") for i in range(4)}
    assert {pair for pair in utility if utility[pair] != gain[pair]} == {("q1", "d1")}
    assert {pair for pair, value in signed.items() if value < 0} == {("q1", f"d{i}") for i in range(6) if i != 1}


def test_the_samples_of_a_vote_are_asked_apart_and_kept(tmp_path: Path) -> None:
    transport = ScriptedTransport(["Yes", "No", "Yes"])
    labeler = build("judge(samples=3)", Here())

    async def play() -> list[Any]:
        async with Session(tmp_path, transports=lambda _: transport) as session:
            return await resolve(session, labeler, units(labeler)[:1], "vote")

    (first,) = run_sync(play())
    assert (first.relevance, len(transport.sent)) == (1.0, 3)
    assert sorted(json.loads(first.raw)) == ["No", "Yes", "Yes"]
    assert (run_sync(play()), len(transport.sent)) == ([first], 3)
