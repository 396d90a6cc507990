"""The same bytes on every machine, however many cores it has."""

import hashlib

import pandas as pd
from threadpoolctl import threadpool_info, threadpool_limits

from judgekit.analysis.comparison import compare
from judgekit.analysis.threads import one_thread
from judgekit.rules import Rules
from tests.analysis.worlds import world


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def hashes_of_what_blas_shares_out() -> list[str]:
    scores, quality = world({"a": (1, 1), "b": (1, 0.5)}, n=700, runs=tuple("rstuvw"))
    quality = pd.concat([quality, quality.assign(model="n")])
    compared = compare(scores, quality, rules=Rules(resamples=100), model="m")
    tables = (compared.table, compared.differences, compared.decision.table)
    return [hashlib.sha256(table.to_csv(index=False).encode()).hexdigest() for table in tables]


def test_the_bytes_of_an_analysis_do_not_depend_on_the_number_of_threads() -> None:
    found = []
    for number in (1, 2):
        with threadpool_limits(number):
            assert set(threads()) == {number}
            found.append(hashes_of_what_blas_shares_out())
    assert found[0] == found[1]
    __import__("scipy.linalg")  # which loads a second BLAS
    assert set(one_thread(threads)()) == {1}
