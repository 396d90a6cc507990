"""A program may end right after it has read a file."""

from __future__ import annotations

import gzip
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from judgekit.data.files import read_table
from judgekit.data.tables import SCORES
from judgekit.data.trec import read_run


def _arrow_only(stream: object, *args: object, **options: object) -> pa.Table:
    # Arrow lets go of a stream on a thread of its own. Where that needs the interpreter and the program is just ending,
    # the process is aborted: rarely, under load, so that it is the kind of stream that is looked at here.
    assert isinstance(stream, pa.BufferReader | pa.CompressedInputStream | pa.OSFile)
    return _READ(stream, *args, **options)


_READ = pacsv.read_csv


@pytest.mark.parametrize("packed", [False, True])
def test_arrow_reads_runs_from_its_own_streams(tmp_path: Path, packed: bool) -> None:
    content = b"q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n"
    path = tmp_path / "run.trec"
    # two members, as `cat a.gz b.gz` makes them
    path.write_bytes(gzip.compress(content) + gzip.compress(b"q2 Q0 d1 1 0.5 x\n") if packed else content)
    with mock.patch("pyarrow.csv.read_csv", _arrow_only):
        run = read_run(path)
    assert run.top("q1") == ["d1", "d2"]
    assert list(run.query_ids) == (["q1", "q2"] if packed else ["q1"])


def test_arrow_reads_tables_from_its_own_memory(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("labeling,run,measure,query_id,value\na,b,P@5,q1,0.5\n")
    with mock.patch("pyarrow.csv.read_csv", _arrow_only):
        table = read_table(SCORES, path)
    assert table["value"].tolist() == [0.5]
