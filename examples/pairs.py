"""Have an LLM compare the answers of every two runs, in both orders, and write who won.

    python examples/pairs.py queries.jsonl app.csv pairs.csv --base-url http://localhost:8000/v1 --model my-judge

``app.csv`` has the columns query_id, run, answer, as `judgekit answer --import` takes it. An experiment then names the
file that is written: ``ratings = ["pairs.csv"]`` under ``[answers]``. Both orders are asked, since judges like what
they read first; replies are stored in ``pairs-store``, and running again pays for nothing twice.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
from collections.abc import Sequence
from itertools import permutations
from typing import Final, NamedTuple

import pandas as pd

import judgekit as jk
from judgekit.extend import Failure, Request, Response, Session, chat

PROMPT: Final = """Two answers to one question follow. Which of them answers it better?

Question: {question}

Answer A: {a}

Answer B: {b}

Reply with one word: A, B or tie."""


class Comparison(NamedTuple):
    """Two answers to a question in the order in which they are shown."""

    query_id: str
    question: str
    run_a: str
    run_b: str
    a: str
    b: str


class Judge:
    """Asks once about each comparison."""

    def __init__(self, endpoint: jk.Endpoint) -> None:
        self.endpoint = endpoint

    def requests(self, unit: Comparison, replies: Sequence[Response]) -> list[Request]:
        """Return what is asked; nothing once there is a reply."""
        if replies:
            return []
        prompt = PROMPT.format(question=unit.question, a=unit.a, b=unit.b)
        return [chat(self.endpoint, [{"role": "user", "content": prompt}], temperature=0, max_tokens=16)]


def winner(reply: Response) -> str:
    """Return a, b or tie; "" of a reply that says none of them, which then counts for neither."""
    if isinstance(reply, Failure):
        return ""
    word = reply.text.strip().strip(".*").casefold()
    return word if word in ("a", "b", "tie") else ""


def comparisons(queries: str, answers: str) -> list[Comparison]:
    """Return every two answers to each question, in both orders."""
    questions = pd.read_json(queries, lines=True, dtype=False).set_index("query_id")["text"]
    given = pd.read_csv(answers, dtype=str, keep_default_na=False)
    units = []
    for query_id, rows in given.groupby("query_id", sort=False):
        for first, second in permutations(rows[["run", "answer"]].itertuples(index=False), 2):
            texts = first.answer, second.answer
            units.append(Comparison(str(query_id), questions[query_id], first.run, second.run, *texts))
    return units


async def compare(units: Sequence[Comparison], endpoint: jk.Endpoint) -> list[tuple[str, ...]]:
    """Ask about every comparison; return the rows to write."""
    rows = []
    async with Session("pairs-store") as session:
        async for unit, replies in session.resolve(units, Judge(endpoint), "pairs", len(units)):
            rows.append((unit.query_id, unit.run_a, unit.run_b, winner(replies[0]), endpoint.model))
    return sorted(rows)


def main() -> None:
    """Compare, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("queries", "answers", "out", "--base-url", "--model", "--key-env"):
        parser.add_argument(name)
    told = parser.parse_args()
    endpoint = jk.Endpoint("judge", told.base_url, told.model, told.key_env)
    rows = asyncio.run(compare(comparisons(told.queries, told.answers), endpoint))
    with open(told.out, "w", newline="") as file:
        csv.writer(file).writerows([("query_id", "run_a", "run_b", "winner", "judge"), *rows])


if __name__ == "__main__":
    main()
