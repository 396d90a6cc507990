"""Make the sample's retrieval runs: ``python -m examples.sample.make_runs`` rewrites the files byte for byte.

Six real retrieval methods over the sample's own passages, small enough to read here and in need of nothing but
the standard library. Scores are rounded to four decimals, so that the last bits of a platform's logarithm cannot
change a file; documents with equal scores stand in the order that judgekit reads them in (id descending).
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from judgekit.sample import EXPERIMENT

__all__ = ["main", "make_runs"]

DEPTH: Final = 20
_FUSION_CONSTANT: Final = 60
_WORD_LIST: Final = """
    a an and are as at be been but by can did do does for from had has have he her his how i in is it its many may not
    of on one or she so than that the their there they this to was were what when where which who whom whose why will
    with you
    """
_STOPWORDS: Final = frozenset(_WORD_LIST.split())

Ranking = dict[str, float]
"""Score by doc id."""
Words = Callable[[str], list[str]]


def plain(text: str) -> list[str]:
    """Return the lower-case words, all of them."""
    return re.findall(r"\w+", text.lower())


def stemmed(text: str) -> list[str]:
    """Return the lower-case words without stop words, plural endings cut off."""
    return [
        w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w
        for w in plain(text)
        if w not in _STOPWORDS
    ]


def four_grams(text: str) -> list[str]:
    """Return all runs of four characters of the words, with a blank at either end of each word."""
    return [f" {word} "[i : i + 4] for word in plain(text) for i in range(max(1, len(word) - 1))]


class Index:
    """Term counts of a collection, for one way of cutting text into terms."""

    def __init__(self, texts: Mapping[str, str], words: Words) -> None:
        self.words = words
        self.counts = {doc_id: Counter(words(text)) for doc_id, text in texts.items()}
        self.lengths = {doc_id: sum(counts.values()) for doc_id, counts in self.counts.items()}
        self.mean_length = sum(self.lengths.values()) / len(self.lengths)
        self.frequency = Counter(term for counts in self.counts.values() for term in counts)
        self.vectors = {doc_id: self._vector(counts) for doc_id, counts in self.counts.items()}
        self.norms = {doc_id: math.sqrt(math.fsum(w * w for w in v.values())) for doc_id, v in self.vectors.items()}

    def bm25(self, query: str, k1: float, b: float) -> Ranking:
        """Score by BM25, with the inverse document frequency that cannot get negative."""
        scores: Ranking = {}
        for term in self.words(query):
            found = self.frequency[term]
            idf = math.log(1 + (len(self.counts) - found + 0.5) / (found + 0.5))
            for doc_id, counts in self.counts.items():
                if counts[term]:
                    norm = k1 * (1 - b + b * self.lengths[doc_id] / self.mean_length)
                    gain = idf * counts[term] * (k1 + 1) / (counts[term] + norm)
                    scores[doc_id] = scores.get(doc_id, 0.0) + gain
        return scores

    def cosine(self, query: str) -> Ranking:
        """Score by the cosine of TF-IDF vectors, term frequencies damped by a logarithm."""
        asked = self._vector(Counter(self.words(query)))
        scores: Ranking = {}
        for doc_id, vector in self.vectors.items():
            dot = math.fsum(weight * vector[term] for term, weight in asked.items() if term in vector)
            if dot:
                scores[doc_id] = dot / self.norms[doc_id]
        return scores

    def _idf(self, term: str) -> float:
        return math.log((1 + len(self.counts)) / (1 + self.frequency[term])) + 1

    def _vector(self, counts: Counter[str]) -> dict[str, float]:
        return {term: (1 + math.log(n)) * self._idf(term) for term, n in counts.items()}


def top(scores: Ranking) -> list[tuple[str, float]]:
    """Return the best documents with rounded scores, ties by doc id descending."""
    rounded = [(doc_id, round(score, 4)) for doc_id, score in scores.items()]
    return sorted(sorted(rounded, reverse=True), key=lambda row: -row[1])[:DEPTH]


def fused(rankings: Sequence[list[tuple[str, float]]]) -> Ranking:
    """Fuse rankings by the sum of reciprocal ranks."""
    scores: Ranking = {}
    for ranking in rankings:
        for rank, (doc_id, _) in enumerate(ranking, 1):
            scores[doc_id] = scores.get(doc_id, 0.0) + 1 / (_FUSION_CONSTANT + rank)
    return scores


def make_runs(queries: Mapping[str, str], docs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the text of the TREC file of each run, by the run's name."""
    titles = {d["doc_id"]: d["title"] for d in docs}
    texts = {d["doc_id"]: d["text"] for d in docs}
    both = {doc_id: f"{titles[doc_id]}\n{text}" for doc_id, text in texts.items()}
    stems, words, heads, grams = (
        Index(both, stemmed),
        Index(texts, plain),
        Index(titles, stemmed),
        Index(both, four_grams),
    )
    lines: dict[str, list[str]] = {}
    for query_id, text in queries.items():
        ranked = {
            "bm25": top(stems.bm25(text, k1=0.9, b=0.4)),
            "bm25_text": top(words.bm25(text, k1=2.0, b=0.75)),
            "bm25_title": top(heads.bm25(text, k1=0.9, b=0.4)),
            "tfidf": top(stems.cosine(text)),
            "fourgrams": top(grams.cosine(text)),
        }
        ranked["rrf"] = top(fused([ranked["bm25"], ranked["fourgrams"]]))
        for run, ranking in ranked.items():
            rows = (f"{query_id} Q0 {d} {r} {s:.4f} {run}\n" for r, (d, s) in enumerate(ranking, 1))
            lines.setdefault(run, []).extend(rows)
    return {run: "".join(rows) for run, rows in lines.items()}


def main() -> None:
    """Rewrite the runs of the sample."""
    here = EXPERIMENT.parent
    queries = {q["query_id"]: q["text"] for q in _rows(here / "queries.jsonl")}
    (here / "runs").mkdir(exist_ok=True)
    for run, text in make_runs(queries, _rows(here / "docs.jsonl")).items():
        (here / "runs" / f"{run}.trec").write_text(text, encoding="utf-8")


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    main()
