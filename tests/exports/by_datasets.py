# /// script
# dependencies = ["datasets==5.2.0"]
# ///
"""Hugging Face's datasets: judgments whose grades became classes, which it numbers in the order of their names."""

import sys
from pathlib import Path

from datasets import Dataset, disable_progress_bars
from halls import QUESTIONS

OUT = Path(sys.argv[1])
GRADES = ("-1", "0", "1", "2", "10")

disable_progress_bars()
rows = []
for question in QUESTIONS:
    for passage in question.passages:
        rows.append({"query_id": question.id, "doc_id": passage.id, "relevance": GRADES[len(rows) % len(GRADES)]})
Dataset.from_list(rows).class_encode_column("relevance").to_parquet(OUT / "judged.parquet")
