"""TREC runs and qrels: what is read, what is written, and the file and line of what is wrong."""

import csv
import json
import os
import platform
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from judgekit.data.labelings import Labeling, Scale
from judgekit.data.runs import Run, Ties
from judgekit.data.tables import ALL, id_problem
from judgekit.data.trec import (
    Asked,
    asked_path,
    convert,
    kind_of,
    missing_path,
    read_qrels,
    read_run,
    stem,
    write_qrels,
    write_run,
)
from judgekit.errors import DataError, UsageError

RUN = "q1 Q0 d1 1 3.5 tag\nq1 Q0 007 2 2 tag\nq2 Q0 d1 1 -1e-3 tag\n"
QRELS = "q1 0 d1 1\nq1 0 007 0\nq2 0 d1 2\n"


@pytest.fixture
def write(tmp_path: Path):
    def put(text: str | bytes, name: str = "x.trec") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return put


@pytest.mark.parametrize(
    "text",
    [
        RUN,
        RUN.replace("\n", "\r\n"),
        "\ufeff" + RUN,
        RUN.replace(" ", "  "),
        RUN.replace("q1 Q0 007", " q1\tQ0   007 "),
        RUN.replace(" 1 ", " first "),
        RUN.replace("2 2 tag", "2.5 2 tag"),
        "\n\n" + RUN + "\n   \n",
        "".join(sorted(RUN.splitlines(keepends=True), reverse=True)),
    ],
)
def test_a_run_is_read_whatever_white_space_stands_between_its_columns(write, text: str) -> None:
    run = read_run(write(text))
    assert run.name == "x"
    assert run.query_ids.tolist() == ["q1", "q2"]
    assert (run.top("q1"), run.top("q2"), run.top("q3")) == (["d1", "007"], ["d1"], [])
    assert run.frame()["score"].tolist() == [3.5, 2.0, -1e-3]


@pytest.mark.parametrize(("ties", "ranked"), [(Ties.DOC_DESC, "cba"), (Ties.DOC_ASC, "abc"), (Ties.RUN_ORDER, "bac")])
def test_equal_scores_are_ordered_by_the_rule_that_is_asked_for(write, ties: Ties, ranked: str) -> None:
    run = read_run(write("q Q0 b 1 2 tag\nq Q0 a 2 2 tag\nq Q0 c 3 2 tag\n"), ties=ties)
    assert (run.ties, run.top("q")) == (ties, [*ranked])


def test_a_large_run_is_the_same_at_every_reading_by_the_slow_reader(write) -> None:
    # So large that the fast parser's thread is still reading ahead when the first line makes it give up.
    ids = [f"{i:0500}" for i in range(18_000)]
    path = write("".join(f"q{i // 1000}  Q0  {doc}  {i}  {-i}  tag\n" for i, doc in enumerate(ids)))
    for _ in range(2):
        run = read_run(path)
        assert run.docs_as_read.to_pylist() == ids
        assert np.array_equal(run.ranked_scores, -np.arange(18_000.0))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux shows them")
def test_reading_leaves_no_file_open(write) -> None:
    def opened() -> int:
        return sum("x.trec" in os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink())

    for text in (RUN, RUN.replace(" ", "  "), "q Q0 d 1 nan t\n"):
        with suppress(DataError):
            read_run(write(text))
    until = time.monotonic() + 30
    while opened() and time.monotonic() < until:
        time.sleep(0.01)
    assert opened() == 0


def test_a_label_off_the_declared_scale_is_named_with_its_line(write) -> None:
    path = write("q 0 a 3\nq 0 b 10\nq 0 c 5\n", "judge.qrels")
    with pytest.raises(DataError, match=r"judge.qrels, line 2: the relevance 10 is outside the scale grades:3"):
        read_qrels(path, scale=Scale.parse("grades:3"))
    with pytest.raises(DataError, match="line 1: the relevance 3 is outside the scale unit"):
        read_qrels(path, scale=Scale.parse("unit"))
    path.write_text("q 0 a 1.5\n")
    with pytest.raises(DataError, match=r"not a whole number, .* needs \(for means of such grades declare means:3:2\)"):
        read_qrels(path, scale=Scale.parse("grades:3:2"))


def test_negative_grades_stand_under_a_declared_scale_from_0_on_unless_they_may_not(write) -> None:
    path = write("q 0 a 4\nq 0 b -2\nq 0 c -1\n", "web.qrels")
    labeling = read_qrels(path, scale=Scale.parse("grades:4"))
    assert (str(labeling.scale), labeling.below, labeling.declared) == ("grades:-2..4", 2, True)
    assert read_qrels(path).below == 0
    with pytest.raises(DataError, match="line 2: the relevance -2 is outside the scale grades:4"):
        read_qrels(path, scale=Scale.parse("grades:4"), negative=False)
    with pytest.raises(DataError, match=r"line 2: the relevance -2 is outside the scale grades:-1\.\.4"):
        read_qrels(path, scale=Scale.parse("grades:-1..4"))
    path.write_text("q 0 a -2\nq 0 b 10\n")
    with pytest.raises(DataError, match="line 2: the relevance 10 is outside the scale"):
        read_qrels(path, scale=Scale.parse("grades:3"))


def test_without_a_declared_scale_integers_are_grades_up_to_the_largest_seen(write) -> None:
    labeling = read_qrels(write("q 0 a 3\nq 0 b -2\n", "x.qrels"))
    assert (str(labeling.scale), labeling.declared, labeling.name) == ("grades:-2..3", False, "x")
    assert str(read_qrels(write("q 0 a 0\n", "x.qrels")).scale) == "grades:1"
    declared = read_qrels(write("q 0 a 1\nq 0 b 0.5\n", "x.qrels"), "y", Scale.parse("unit"))
    assert (declared.row_relevance.tolist(), declared.declared, declared.name) == ([1.0, 0.5], True, "y")


@pytest.mark.parametrize("further", [{}, {"status": "ok"}], ids=["pairs", "labels"])
def test_fractions_in_parquet_need_a_declared_scale(tmp_path: Path, further: dict[str, str]) -> None:
    path, relevance = tmp_path / "x.parquet", [1.0, 0.5]
    pd.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "relevance": relevance, **further}).to_parquet(path)
    with pytest.raises(DataError, match=r"the relevance 0\.5 is not a whole number: declare"):
        read_qrels(path)
    assert read_qrels(path, scale=Scale.parse("unit")).row_relevance.tolist() == relevance


def frame(*rows: tuple[str, str, float | None, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "status"])


def test_missing_labels_go_to_a_file_beside_the_qrels_and_come_back(tmp_path: Path) -> None:
    path, scale = tmp_path / "judge.qrels", Scale.parse("grades:3:2")
    rows = [("q1", "b", 3, "ok"), ("q1", "a", None, "refused"), ("q2", "a", None, "not_applicable")]
    labeling = Labeling("judge", scale, frame(*rows))
    write_qrels(labeling, path)
    assert path.read_text() == "q1 0 b 3\n"
    assert missing_path(path).read_text() == "query_id\tdoc_id\tstatus\nq1\ta\trefused\nq2\ta\tnot_applicable\n"
    pd.testing.assert_frame_equal(read_qrels(path, scale=scale).table, labeling.table)
    write_qrels(Labeling("judge", scale, frame(rows[0])), path)
    assert not missing_path(path).exists(), "a stale file would take labels away"
    write_qrels(Labeling("judge", scale, frame(rows[1])), path)
    assert path.read_text() == ""
    assert read_qrels(path).counts()["refused"] == 1
    assert convert(path, tmp_path / "out.qrels") == "0 labels, 1 missing ones listed in out.missing.tsv"


def test_a_pair_that_is_both_labelled_and_missing_is_refused(tmp_path: Path, write) -> None:
    path = write("q 0 d 1\n", "x.qrels")
    write("query_id\tdoc_id\tstatus\nq\td\tfailed\n", "x.missing.tsv")
    with pytest.raises(DataError, match=r"x.missing.tsv: labeling 'x': query 'q', doc 'd' is labelled twice"):
        read_qrels(path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "is empty"),
        ("query_id\tdoc_id\tstatus\n", None, "holds no missing labels"),
        ("q\td\tfailed\nq\te\tfailed\n", None, "the missing labels table lacks column 'query_id'"),
        ("query_id\tdoc_id\tstatus\nq\td\n", 2, "the header has 3 columns, this row 2"),
        ("query_id\tdoc_id\tstatus\nq\td\trefusd\n", 2, "'refusd' is not a status.*Did you mean 'refused'"),
        ("query_id\tdoc_id\tstatus\nq\td\tok\n", 2, "'ok' is not a status of a missing label"),
    ],
)
def test_a_bad_table_of_missing_labels_is_named(write, text: str, line: int, message: str) -> None:
    path = write(QRELS, "x.qrels")
    side = write(text, "x.missing.tsv")
    with pytest.raises(DataError, match=message) as caught:
        read_qrels(path)
    assert (caught.value.path, caught.value.line) == (side, line)


def test_labels_are_written_as_other_tools_read_them(tmp_path: Path) -> None:
    path = tmp_path / "x.qrels"
    write_qrels(Labeling("x", Scale.parse("grades:-1..3"), frame(("q", "a", 3, "ok"), ("q", "b", -1, "ok"))), path)
    assert path.read_text() == "q 0 a 3\nq 0 b -1\n"
    rows = frame(("q", "a", 1, "ok"), ("q", "b", 0.1, "ok"), ("q", "c", 1 / 3, "ok"))
    floats = Labeling("x", Scale.parse("unit"), rows)
    write_qrels(floats, path)
    assert path.read_text() == "q 0 a 1.0\nq 0 b 0.1\nq 0 c 0.3333333333333333\n"
    write_qrels(floats, path, min_grade=1 / 3)
    assert path.read_text() == "q 0 a 1\nq 0 b 0\nq 0 c 1\n"
    with pytest.raises(UsageError, match="must be a number"):
        write_qrels(floats, path, min_grade=float("nan"))


@pytest.mark.parametrize("bad", ["a b", "", "a\tb", "a\u00a0b", "a\n"])
def test_ids_that_a_trec_file_cannot_hold_are_refused(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "x"
    for query, doc in ((bad, "d"), ("q", bad)):
        with pytest.raises(DataError, match=r"of the run table, row 1: (is empty|.* holds white space)"):
            write_run(Run("r", [query], [doc], [1.0]), path)


def test_a_file_gives_its_name() -> None:
    names = ["runs/bm25.trec", "bm25.trec.gz", "a.b.run", "qrels.dev.tsv", "plain", ".trec", "x.qrels"]
    assert [*map(stem, names)] == ["bm25", "bm25", "a.b", "qrels.dev", "plain", ".trec", "x"]


# An id that begins as JSON does, in the first line of a file without a header, is one for which a form has to be told.
IDS = st.one_of(
    st.sampled_from(["007", "NA", "null", "1e5", "-1", "#", "a,b", 'q"x', '"q"', "é", "1", "0.5"]),
    # A query that is called like a field, "user_input", makes JSON of it a record of that form.
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12).filter(
        lambda text: re.fullmatch("[A-Za-z][A-Za-z_-]+", text) is None
    ),
).filter(lambda i: id_problem(i) is None and i != ALL and i[0] not in "[{<")
SCORES = st.dictionaries(st.tuples(IDS, IDS), st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)


def in_form(form: str, folder: Path, rows: list[tuple[str, str, float]], number: str) -> Path:
    """Write rows of query, doc and number in a form."""
    path = folder / f"in.{'tsv' if form == 'beir' else form}"
    header = ["query_id", "doc_id", number]
    headers = {"csv": [header], "tsv": [header], "beir": [["query-id", "corpus-id", "score"]]}
    if form in headers:
        with path.open("w", newline="") as file:
            delimiter = "," if form == "csv" else "\t"
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([*headers[form], *rows])
    elif form == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows))
    elif form == "json":
        path.write_text(json.dumps({q: {d: v for p, d, v in rows if p == q} for q, _, _ in rows}))
    else:
        pd.DataFrame(rows, columns=header).to_parquet(path)
    return path


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "jsonl", "json", "beir"])
@settings(max_examples=5)
@given(pairs=SCORES)
def test_runs_and_qrels_of_any_form_become_trec(
    form: str, pairs: dict[tuple[str, str], float], tmp_path_factory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    rows = [(q, d, v) for (q, d), v in sorted(pairs.items())]
    expected = Run("run", [q for q, _, _ in rows], [d for _, d, _ in rows], [v for _, _, v in rows])
    grades = [(q, d, int(v % 9)) for q, d, v in rows]
    told = convert(in_form(form, folder, rows, "score"), folder / "out.trec.gz")
    again = read_run(folder / "out.trec.gz")
    assert (told, again.name) == (f"a run of {len(rows)} rows", "out")
    assert {q: again.top(q) for q in again.query_ids} == {q: expected.top(q) for q in expected.query_ids}
    assert again.frame().equals(expected.frame())
    convert(in_form(form, folder, grades, "relevance"), folder / "out.qrels")
    lines = (folder / "out.qrels").read_text().splitlines()
    assert sorted(tuple(line.split(" ")) for line in lines) == sorted((q, "0", d, str(v)) for q, d, v in grades)


@pytest.mark.parametrize(
    ("out", "options", "reason"),
    [
        ("out.txt", {}, "name OUT .run or .qrels, or choose --kind run or qrels"),
        ("out.qrels", {"kind": "docs"}, "unknown kind of data"),
        ("out.trec", {"min_grade": 1}, "are for qrels"),
        ("-", {"kind": "qrels"}, "OUT must be a file"),
    ],
)
def test_only_trec_files_are_written(write, tmp_path: Path, out: str, options: dict, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        convert(write("q1 0 a 1\n"), out if out == "-" else tmp_path / out, **options)
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.run", "run"), ("a.trec", "run"), ("a.trec.gz", "run"), ("a.qrels", "qrels"), ("a.qrels.gz", "qrels")],
)
def test_the_ending_says_what_is_written(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_what_people_were_asked_stands_beside_their_qrels(tmp_path: Path) -> None:
    asked = Asked("s", "pooled", "grades:3:2", 5, 9, (("q1", "a", 0.5, "é", "ok", "3"),), 1.5)
    path = asked.write(tmp_path / "x.qrels")
    assert path == asked_path(tmp_path / "x.qrels")
    assert Asked.beside(tmp_path / "x.qrels") == asked
    assert Asked.beside(tmp_path / "y.qrels") is None
    good = path.read_text()
    for old, new in (('"people"', '"x"'), ("0.5", "0"), ("0.5", "2"), (', "3"]', "]"), ("grades:3:2", "?"), ("{", "")):
        path.write_text(good.replace(old, new, 1))
        with pytest.raises(DataError, match="does not list the questions that people were asked"):
            Asked.beside(tmp_path / "x.qrels")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator has thresholds of its own")
def test_memory_is_not_fetched_anew_for_each_file(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("".join(f"q{row // 1000} Q0 doc{row} 1 {-row} run\n" for row in range(50_000)))
    code = """
import resource, sys
from judgekit.data.trec import read_run
for _ in range(5):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    read_run(sys.argv[1])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
    done = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True)
    # Pages of 4 kB; a file has 1.5 MB, and its columns about as much.
    assert min(map(int, done.stdout.split()[2:])) < 100
