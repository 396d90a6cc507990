"""The same labeling with a peer: a binary metric of ragas, over openai's client.

    JUDGEKIT_RAGAS=PYTHON    a Python with ``ragas`` and ``langchain-community<0.4``, in an environment of its own

`llm_speed` runs it. On its own, ``python benchmarks/peer_ragas.py BASE_URL PAIRS CONCURRENCY`` prints the seconds and
the CPU seconds that it took.
"""

from __future__ import annotations

import asyncio
import sys
import time


async def main(base_url: str, pairs: int, concurrency: int) -> None:
    from openai import AsyncOpenAI
    from ragas.llms import llm_factory
    from ragas.metrics import DiscreteMetric

    llm = llm_factory("m", client=AsyncOpenAI(base_url=base_url, api_key="none"))
    rubric = "You judge whether a passage answers a question. " * 6
    passage = "Canberra is the capital of Australia, founded following the federation of the colonies. " * 8
    metric = DiscreteMetric(
        name="relevance", allowed_values=["Yes", "No"], prompt=rubric + "Question: {question} Passage: {passage}"
    )
    numbers = iter(range(pairs))

    async def worker() -> None:
        for number in numbers:
            question = f"What is the capital of country {number}?"
            result = await metric.ascore(llm=llm, question=question, passage=passage)
            assert result.value == "Yes"

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    print(time.perf_counter() - wall, time.process_time() - cpu)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
