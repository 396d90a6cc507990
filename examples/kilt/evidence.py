"""Scores runs as KILT's leaderboard does: over evidence sets, not over documents.

    python evidence.py nq-dev-kilt.jsonl passages.jsonl BM25=bm25.trec SPLADE=splade.trec > evidence.csv

An answer may rest on several pages together, its *evidence set*, and a question may have several sets. R-precision is
the best over sets of the share of a set's pages among as many first pages. For precision, recall and success rate a set
is one point of the ranking, at the place of its last page. Definitions: Petroni et al., KILT (NAACL 2021), and its
evaluation of retrieval. Other measures of judgekit are over documents: there Rprec and R count each page by itself.

Rows ``labeling, run, measure, query_id, value``, which `judgekit compare --scores` takes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

import judgekit as jk

CUTOFFS = (1, 5)


def kilt_scores(pages: Sequence[str], evidence_sets: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return KILT's measures of a ranking of pages, each page once.

    Args:
        pages: page ids, the best first.
        evidence_sets: the page ids of each set.
    """
    distinct = list(dict.fromkeys(evidence_sets))
    points = ranked_points(pages, distinct)
    scores = {"KILT-Rprec": max(len(sought & {*pages[: len(sought)]}) / len(sought) for sought in distinct)}
    for cutoff in CUTOFFS:
        complete = sum(points[:cutoff])
        scores[f"KILT-precision@{cutoff}"] = complete / cutoff
        if cutoff > 1:
            scores[f"KILT-recall@{cutoff}"] = complete / len(distinct)
            scores[f"KILT-success_rate@{cutoff}"] = float(complete > 0)
    return scores


def ranked_points(pages: Sequence[str], evidence_sets: Sequence[frozenset[str]]) -> list[bool]:
    """Return the ranking with one point for each set, at its last page; True where the set is complete there."""
    found: list[set[str]] = [set() for _ in evidence_sets]
    points: list[tuple[int | None, bool]] = []  # the set, and whether it is complete
    for page in pages:
        of_sets = [number for number, sought in enumerate(evidence_sets) if page in sought]
        if not of_sets:
            points.append((None, False))
        for number in of_sets:
            found[number].add(page)
            points = [point for point in points if point[0] != number]
            points.append((number, found[number] == evidence_sets[number]))
    return [complete for _, complete in points]


def evidence_of(path: Path) -> dict[str, list[frozenset[str]]]:
    """Return the evidence sets of each question of a KILT file; questions without evidence are left out."""
    evidence: dict[str, list[frozenset[str]]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            sets = [frozenset(map(page_of, output.get("provenance", ()))) for output in record["output"]]
            evidence[str(record["id"])] = [pages for pages in sets if pages]
    return {query_id: sets for query_id, sets in evidence.items() if sets}


def page_of(evidence: dict[str, object]) -> str:
    """Return the page that a piece of evidence names."""
    return str(evidence.get("wikipedia_id", evidence.get("title"))).strip()


def rows(kilt: Path, passages: Path, runs: dict[str, Path]) -> Iterator[tuple[str, str, str, str, float]]:
    """Yield the rows of all runs; a question for which a run has nothing scores 0."""
    evidence, docs = evidence_of(kilt), jk.read_docs(passages)
    for name, path in runs.items():
        run = jk.read_run(path)
        for query_id, sets in evidence.items():
            found = docs.get(list(run.top(query_id)))
            pages = list(dict.fromkeys(doc.page_id or doc.title for doc in found))
            for measure, value in kilt_scores(pages, sets).items():
                yield "provenance", name, measure, query_id, value


def main(kilt: str, passages: str, *runs: str) -> pd.DataFrame:
    """Return the scores of runs, each named as NAME=FILE."""
    named = {name: Path(path) for name, _, path in (run.partition("=") for run in runs)}
    columns = ["labeling", "run", "measure", "query_id", "value"]
    return pd.DataFrame(list(rows(Path(kilt), Path(passages), named)), columns=columns)


if __name__ == "__main__":
    main(*sys.argv[1:]).to_csv(sys.stdout, index=False)
