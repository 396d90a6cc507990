"""The same bytes on every machine, however many cores it has."""

from __future__ import annotations

import os
import subprocess
import sys

from threadpoolctl import threadpool_info

from judgekit.analysis.resampling import one_thread

PROGRAM = """
import hashlib
import numpy as np, pandas as pd
from judgekit.analysis import compare, model_matrix
from judgekit.analysis.agreement import agreement
from judgekit.data.labelings import Labeling, Scale

rng = np.random.default_rng(1)
queries = [f"q{i}" for i in range(700)]
tables, qualities = [], []
for run in "rstuvw":
    quality = rng.normal(size=700)
    row = {"run": run, "depth": 5, "query_id": queries}
    for model in "mn":
        own = quality + rng.normal(size=700)
        qualities.append(pd.DataFrame({**row, "model": model, "metric": "f1", "value": own}))
    for labeling in "ab":
        value = quality + rng.normal(size=700)
        tables.append(pd.DataFrame({**row, "labeling": labeling, "measure": "nDCG@5", "value": value}))
scores, quality = pd.concat(tables, ignore_index=True), pd.concat(qualities, ignore_index=True)
compared = compare(scores, quality, resamples=200, primary_model="m")
matrix = model_matrix(
    scores, quality, label_models={"a": ["m"], "b": ["n"]}, measure="nDCG@5", metric="f1", depth=5, resamples=200
)
pairs = pd.DataFrame({"query_id": np.repeat(queries, 5), "doc_id": [f"d{i}" for i in range(3500)]})
labelings = [
    Labeling(name, Scale("grades", 3), pairs.assign(relevance=rng.integers(0, 4, 3500).astype(float)))
    for name in ("one", "other")
]
agreed = agreement(labelings, resamples=200)
for table in (compared.table, compared.differences, compared.gains, matrix.table, matrix.differences, agreed.table):
    print(hashlib.sha256(table.to_csv(index=False).encode()).hexdigest())
"""


def test_the_bytes_of_an_analysis_do_not_depend_on_the_number_of_threads() -> None:
    outs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for threads in "12"
    ]
    assert len(outs[0]) == 6
    assert outs[0] == outs[1]


def test_one_thread_is_used_within_and_as_many_as_before_after_it() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    assert set(one_thread(threads)()) == {1}
    assert threads() == before
