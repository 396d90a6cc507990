"""Tables written and read back are the same; what is written is whole or absent."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from judgekit.data.files import check_target, read_table, write_table
from judgekit.data.tables import LABELS, QUALITY, RATINGS, SCHEMA_VERSION, SCORES, Table, reasons
from judgekit.errors import DataError, UsageError

PAIRS = Table("pairs", {"query_id": "id", "doc_id": "id"}, {})
Rows = list[tuple[str, str, str, str, float]]
strange = ["007", "NA", "nan", "null", "1e5", "True", "-", "#", "a,b", "a'b", "日本", 'q"uote', "\t", "\r", "\r\n"]
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


@pytest.mark.parametrize("name", ["scores.csv.gz", "scores.tsv", "scores.parquet"])
@settings(max_examples=10)
@given(rows=rows)
def test_a_table_reads_back_as_it_was_written(name: str, rows: Rows, folder: Path) -> None:
    frame = scores(rows)
    write_table(frame, folder / name, SCORES)
    same(read_table(SCORES, folder / name), frame)


@settings(max_examples=8)
@given(found=st.lists(st.tuples(values, st.integers(-(2**53), 2**53), text, ids), max_size=5))
def test_all_kinds_of_columns_read_back(found: list[tuple[float, int, str, str]], folder: Path) -> None:
    table = Table("mixed", {"number": "float", "count": "int", "words": "str", "name": "name"}, {"more": "str"})
    frame = pd.DataFrame(found, columns=list(table.columns)) if found else table.empty()
    frame = table.check(frame.assign(more=[None] * len(frame)))
    assert (frame["more"] == "").all()
    for name in ("mixed.csv", "mixed.parquet"):
        write_table(frame, folder / name, table)
        same(read_table(table, folder / name), frame)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_table_can_be_empty(name: str, tmp_path: Path) -> None:
    write_table(QUALITY.empty(), tmp_path / name, QUALITY)
    same(read_table(QUALITY, tmp_path / name), QUALITY.empty())


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
    row = '{"run":"r","depth":5,"model":"m","query_id":"1","metric":"em","value":%s,"note":"x"}\n'
    (tmp_path / "quality.jsonl").write_text(row % 1 + row % "null")
    frame = read_table(QUALITY, tmp_path / "quality.jsonl")
    assert frame.columns.tolist() == [*QUALITY.columns, "note"]
    assert (frame["depth"].dtype, frame["value"].isna().tolist()) == (np.int64, [False, True])


def test_a_category_column_and_an_index_of_pandas_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"]})
    frame.assign(query_id=frame["query_id"].astype("category")).set_index("doc_id").to_parquet(tmp_path / "p.parquet")
    same(read_table(PAIRS, tmp_path / "p.parquet"), PAIRS.check(frame))


def test_half_a_surrogate_pair_in_a_reply_becomes_a_question_mark() -> None:
    columns = {"query_id": ["q"], "doc_id": ["d"], "relevance": [1.0], "status": ["ok"]}
    raw = pd.Series(["cut off \ud83d"], dtype=object)
    assert LABELS.check(pd.DataFrame(columns).assign(raw=raw))["raw"].tolist() == ["cut off ?"]
    absent = pd.Series([None], dtype="str")
    assert LABELS.check(pd.DataFrame(columns).assign(raw=absent))["raw"].tolist() == [""]


def test_after_an_exception_the_older_table_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    write_table(pd.DataFrame({"query_id": ["q"], "doc_id": ["d"]}), path, PAIRS)
    assert pq.read_schema(path).metadata[b"judgekit.schema_version"] == str(SCHEMA_VERSION).encode()
    before = path.read_bytes()
    with pytest.raises(DataError, match="the rows do not fit the table"):
        write_table(pd.DataFrame({"query_id": ["q"], "x": [object()]}), path)
    assert [(p, p.read_bytes()) for p in tmp_path.iterdir()] == [(path, before)]
    check_target(tmp_path / "x.qrels")  # no table
    with pytest.raises(UsageError, match=r"must end in \.csv, \.tsv"):
        write_table(SCORES.empty(), tmp_path / "scores.xlsx")


def test_a_rating_is_a_number_or_a_word() -> None:
    # A word keeps what it is until the scale of the outcome is known: beside numbers it would be a mixture.
    said = {
        "up": [" Up ", "yes", "👍", "+", True],
        "down": ["down", "No", "👎", "-", False],
        1.0: [1, "1"],
        0.0: [0, "0.0"],
    }
    for value, words in said.items():
        table = pd.DataFrame({"query_id": "q", "value": pd.Series(words, dtype=object)})
        assert set(RATINGS.check(table)["value"]) == {value}
    none = pd.DataFrame({"query_id": "q", "value": pd.Series([None, "", "nan"], dtype=object)})
    assert RATINGS.check(none)["value"].isna().all()
    with pytest.raises(DataError, match="row 1: 'so so' is neither a number nor a thumb"):
        RATINGS.check(pd.DataFrame({"query_id": ["q"], "value": ["so so"]}))


def test_parts_of_a_folder_are_read_in_the_order_of_their_names_and_a_bad_one_is_named(tmp_path: Path) -> None:
    for name, query in [("part-2", "b"), ("part-1", "a")]:
        write_table(pd.DataFrame({"query_id": [query], "doc_id": ["d"]}), tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").touch()
    assert read_table(PAIRS, tmp_path)["query_id"].tolist() == ["a", "b"]
    pq.write_table(pa.table({"query_id": ["c"]}), tmp_path / "part-3.parquet")
    with pytest.raises(DataError, match=r"part-3\.parquet: the pairs table lacks column 'doc_id'"):
        read_table(PAIRS, tmp_path)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_columns_of_ones_own_are_mapped(name: str, tmp_path: Path) -> None:
    path, form = tmp_path / name, name.partition(".")[2]
    write_table(pd.DataFrame({"qid": ["q1"], "stars": [4.0]}), path)
    assert read_table(RATINGS, f"{form}(query_id=qid, value=stars):{path}").values.tolist() == [["q1", 4.0]]
    with pytest.raises(UsageError, match=r"the quality table has no column 'stars' \(it has: query_id, value, run"):
        read_table(RATINGS, f"{form}(stars=value):{path}")


def test_the_commonest_reasons_are_told_with_their_counts() -> None:
    said = ["late (after 2 attempts)", "late (after 3 attempts)", "x" * 121, "", "c", "never seen", "d"]
    status = ["failed", "failed", "failed", "refused", "failed", "unasked", "failed"]
    told = reasons(pd.DataFrame({"status": status, "reason": said}))
    assert told == f"2 × late; 1 × {'x' * 120}; 1 × refused; 2 for other reasons"
    assert reasons(pd.DataFrame({"status": ["ok", "not_applicable"]})) == ""
