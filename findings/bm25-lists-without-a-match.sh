#!/bin/sh
# bm25s 0.3.16 and rank-bm25 0.2.2 return k documents, with score 0, for a query that shares no word with any, where Lucene's BM25 finds nothing.
# Such lists look answered: they are labelled and paid for, and a relevant document that stands at the end of the collection counts
# as found. judgekit takes the lists as they are: leave out scores of 0 where you write the run.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet bm25s==0.3.16 rank-bm25==0.2.2
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import bm25s
from rank_bm25 import BM25Okapi

print("bm25s", version("bm25s"), "rank-bm25", version("rank-bm25"))
ids = [f"d{number}" for number in range(1, 7)]
texts = [f"passage about topic{number}" for number in range(1, 7)]
retriever = bm25s.BM25()
retriever.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
found, scores = retriever.retrieve(bm25s.tokenize(["zebra"], show_progress=False), corpus=ids, k=3, show_progress=False)
listed = BM25Okapi([text.split() for text in texts]).get_top_n(["zebra"], ids, n=3)
print("expected: no documents; bm25s:", found[0].tolist(), scores[0].tolist(), "rank-bm25:", listed)
sys.exit(len(found[0]) != 3 or any(scores[0]) or len(listed) != 3)
PYTHON
