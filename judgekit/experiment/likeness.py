"""Whether questions look like those that users ask: their length, form and words, held against a query log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from judgekit.answers.text import apart, fold
from judgekit.data.readers import read_queries
from judgekit.data.streams import read_bytes
from judgekit.errors import UsageError

_ASKS: Final = re.compile(
    r"(who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|will)\b"
)
_MARKS: Final = ("?", "\u061f")
_CERTAIN: Final = 0.05 / 3
_EFFECT: Final = 0.1
_LOOKED_AT: Final = 5000


def read_log(path: str | Path) -> list[str]:
    """Return the queries of a log: a file of queries, or of one a line (``.txt``)."""
    if Path(path).suffix == ".txt":
        text = read_bytes(Path(path), "a query log").decode(errors="replace")
        return [line for line in text.splitlines() if line.strip()]
    return [query.text for query in read_queries(path).values()]


def unlike(questions: Sequence[str], log: Sequence[str]) -> str:
    """Return a warning if questions do not look like those of a query log: their length, form or words; else ""."""
    from scipy.stats import fisher_exact, mannwhitneyu

    random = np.random.default_rng(1)
    texts = [
        [fold(some[i]) for i in random.permutation(len(some))[:_LOOKED_AT]] for some in (list(questions), list(log))
    ]
    if min(map(len, texts)) < 20:
        raise UsageError("a query log and the questions are compared with at least 20 of each")
    words = [[re.findall(r"\w+", apart(text)) for text in some] for some in texts]

    def shifted(one: Sequence[float], other: Sequence[float]) -> bool:
        test = mannwhitneyu(one, other)
        return bool(test.pvalue < _CERTAIN and abs(test.statistic / (len(one) * len(other)) - 0.5) > _EFFECT)

    found = []
    lengths = [[len(each) for each in some] for some in words]
    if shifted(*lengths):
        found.append(f"a median of {np.median(lengths[0]):.0f} words, in the log {np.median(lengths[1]):.0f}")
    asks = [sum(bool(_ASKS.match(text)) or text.rstrip().endswith(_MARKS) for text in some) for some in texts]
    shares = [asks[i] / len(texts[i]) for i in (0, 1)]
    table = np.array([[asks[i], len(texts[i]) - asks[i]] for i in (0, 1)])
    if abs(shares[0] - shares[1]) > _EFFECT and fisher_exact(table).pvalue < _CERTAIN:
        found.append(f"{shares[0]:.0%} in the form of a question, in the log {shares[1]:.0%}")
    half = len(words[1]) // 2
    known = {word for each in words[1][:half] for word in each}
    overlap = [
        [sum(word in known for word in each) / max(len(each), 1) for each in some]
        for some in (words[0], words[1][half:])
    ]
    if shifted(*overlap):
        shared = [f"{np.mean(each):.0%}" for each in overlap]
        found.append(f"half of the log holds {shared[0]} of their words, and {shared[1]} of those of its other half")
    if not found:
        return ""
    return f"The questions do not look like the log's: {'; '.join(found)}. Results may not hold for your users."
