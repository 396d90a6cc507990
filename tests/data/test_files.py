"""Tables written and read back are the same, whole or absent."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.data.files import read_table, write_table
from judgekit.data.tables import SCORES

strange = [
    "007",
    "NA",
    "nan",
    "null",
    "1e5",
    "None",
    "True",
    "-",
    "#",
    "a,b",
    'q"uote',
    "tab\there",
    "é",
    "日本",
    "a'b",
]
ids = st.one_of(
    st.sampled_from(strange), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
)
values = st.floats(allow_infinity=False)
rows = st.lists(st.tuples(ids, ids, ids, ids, values), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def scores(rows: list[tuple[str, str, str, str, float]]) -> pd.DataFrame:
    return SCORES.check(pd.DataFrame(rows, columns=list(SCORES.columns)) if rows else SCORES.empty())


@pytest.mark.parametrize("name", ["scores.csv", "scores.csv.gz", "scores.tsv", "scores.parquet"])
@given(rows=rows)
def test_a_table_reads_back_as_it_was_written(
    name: str, rows: list[tuple[str, str, str, str, float]], folder: Path
) -> None:
    frame = scores(rows)
    write_table(frame, folder / name, SCORES)
    again = read_table(SCORES, folder / name)
    pd.testing.assert_frame_equal(again, frame, check_exact=True)
    for before, after in zip(frame["value"], again["value"], strict=True):
        assert math.copysign(1, before) == math.copysign(1, after) or math.isnan(before)
