"""Tables written and read back are the same; what is written is whole or absent."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.data.files import read_table, write_table
from judgekit.data.tables import COMPARISON, LABELS, QUALITY, RATINGS, RUN, SCHEMA_VERSION, SCORES, Table
from judgekit.errors import DataError, UsageError

PAIRS = Table("pairs", {"query_id": "id", "doc_id": "id"}, {})
Rows = list[tuple[str, str, str, str, float]]
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
    "a'b",
    "\t",
    "\r",
    "\r\n",
    "日本",
]
text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
ids = st.sampled_from(strange) | text.filter(bool)
values = st.floats(allow_infinity=False)
rows = st.lists(st.tuples(ids, ids, ids, ids, values), max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def scores(rows: Rows) -> pd.DataFrame:
    return SCORES.check(pd.DataFrame(rows, columns=list(SCORES.columns)) if rows else SCORES.empty())


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    for column in one.columns:
        if pd.api.types.is_float_dtype(one[column]):  # -0.0 is not 0.0
            assert np.array_equal(np.signbit(one[column].dropna()), np.signbit(other[column].dropna()))


@pytest.mark.parametrize("name", ["scores.csv", "scores.csv.gz", "scores.tsv", "scores.parquet"])
@given(rows=rows)
def test_a_table_reads_back_as_it_was_written(name: str, rows: Rows, folder: Path) -> None:
    frame = scores(rows)
    write_table(frame, folder / name, SCORES)
    same(read_table(SCORES, folder / name), frame)


@given(found=st.lists(st.tuples(values, st.integers(-(2**53), 2**53), text, ids), max_size=5))
def test_all_kinds_of_columns_read_back(found: list[tuple[float, int, str, str]], folder: Path) -> None:
    table = Table("mixed", {"number": "float", "count": "int", "words": "str", "name": "id"}, {"more": "str"})
    frame = pd.DataFrame(found, columns=list(table.columns)) if found else table.empty()
    frame = table.check(frame.assign(more=[None] * len(frame)))
    assert (frame["more"] == "").all()
    for name in ("mixed.csv", "mixed.parquet"):
        write_table(frame, folder / name, table)
        same(read_table(table, folder / name), frame)


@pytest.mark.parametrize("table", [RUN, PAIRS, LABELS, SCORES, QUALITY, COMPARISON], ids=lambda t: t.name)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_every_table_can_be_empty(table: Table, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"{table.name}{suffix}"
    write_table(table.empty(), path, table)
    same(read_table(table, path), table.empty())


FAST = "labeling,run,measure,query_id,value\njudge,bm25,nDCG@10,007,.5\njudge,bm25,nDCG@10,NA,\njudge,bm25,AP,1e5,NaN\n"
STRICT = FAST.replace("judge", '"judge"')


@pytest.mark.parametrize("content", [FAST, STRICT, FAST.replace(",", "\t"), FAST.replace("\n", "\r\n"), STRICT[:-1]])
def test_ids_that_look_like_numbers_or_nothing_stay_as_they_are(content: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(content.encode())
    frame = read_table(SCORES, path)
    assert frame["query_id"].tolist() == ["007", "NA", "1e5"]
    assert frame["value"].isna().tolist() == [False, True, True]
    assert frame["labeling"].tolist() == ["judge"] * 3


def test_a_table_is_read_from_json_and_with_further_columns(tmp_path: Path) -> None:
    path = tmp_path / "quality.jsonl"
    path.write_text(
        '{"run":"r","depth":5,"model":"m","query_id":"1","metric":"em","value":1,"note":"x"}\n'
        '{"run":"r","depth":5,"model":"m","query_id":"2","metric":"em","value":null}\n'
    )
    frame = read_table(QUALITY, path)
    assert frame.columns.tolist() == [*QUALITY.columns, "note"]
    assert frame["depth"].dtype == np.int64
    assert math.isnan(frame["value"].iloc[1])


def test_columns_come_in_the_order_of_the_table_and_others_behind(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("x,doc_id,query_id\n1,d,q\n")
    frame = read_table(PAIRS, path)
    assert frame.columns.tolist() == ["query_id", "doc_id", "x"]
    assert frame["x"].tolist() == ["1"]


def test_a_key_and_value_in_the_path_is_no_column(tmp_path: Path) -> None:
    path = tmp_path / "k=5" / "pairs.parquet"
    write_table(pd.DataFrame({"query_id": ["q"], "doc_id": ["d"]}), path)
    assert read_table(PAIRS, path).columns.tolist() == ["query_id", "doc_id"]


def test_a_category_column_and_an_index_of_pandas_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"]})
    frame.assign(query_id=frame["query_id"].astype("category")).set_index("doc_id").to_parquet(tmp_path / "p.parquet")
    same(read_table(PAIRS, tmp_path / "p.parquet"), PAIRS.check(frame))


def test_half_a_surrogate_pair_in_a_reply_becomes_a_question_mark() -> None:
    columns = {"query_id": ["q"], "doc_id": ["d"], "relevance": [1.0], "status": ["ok"]}
    raw = pd.Series(["cut off \ud83d"], dtype=object)
    assert LABELS.check(pd.DataFrame(columns).assign(raw=raw))["raw"].tolist() == ["cut off ?"]


def test_the_name_of_a_table_file_says_its_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.csv, \.tsv"):
        write_table(SCORES.empty(), tmp_path / "scores.xlsx")


def test_after_an_exception_the_older_table_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    write_table(pd.DataFrame({"query_id": ["q"], "doc_id": ["d"]}), path, PAIRS)
    assert pq.read_schema(path).metadata[b"judgekit.schema_version"] == str(SCHEMA_VERSION).encode()
    before = path.read_bytes()
    with pytest.raises(DataError, match="the rows do not fit the table"):
        write_table(pd.DataFrame({"query_id": ["q"], "x": [object()]}), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["pairs.parquet"]


def test_parts_of_a_folder_are_read_in_the_order_of_their_names_and_a_bad_one_is_named(tmp_path: Path) -> None:
    for name, query in [("part-2", "b"), ("part-1", "a")]:
        write_table(pd.DataFrame({"query_id": [query], "doc_id": ["d"]}), tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").touch()
    assert read_table(PAIRS, tmp_path)["query_id"].tolist() == ["a", "b"]
    pq.write_table(pa.table({"query_id": ["c"]}), tmp_path / "part-3.parquet")
    with pytest.raises(DataError, match=r"part-3\.parquet: the pairs table lacks column 'doc_id'"):
        read_table(PAIRS, tmp_path)


def test_equal_tables_give_equal_compressed_files(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table(scores([("l", "r", "m", "q", 0.1)]), tmp_path / name)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).endswith(b"l,r,m,q,0.1\n")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.jsonl"])
def test_columns_of_ones_own_are_mapped(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"qid": ["q1"], "stars": [4.0]})
    path, form = tmp_path / name, name.partition(".")[2]
    if form == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        write_table(frame, path)
    told = f"{form}(query_id=qid, value=stars)"
    for found in (read_table(RATINGS, path, told), read_table(RATINGS, f"{told}:{path}")):
        assert found.values.tolist() == [["q1", 4.0]]
    with pytest.raises(UsageError, match=r"the quality table has no column 'stars' \(it has: query_id, value, run"):
        read_table(RATINGS, path, f"{form}(stars=value)")
