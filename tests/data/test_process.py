"""What reading leaves a program: a quick start, and an end at any time."""

import gzip
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.csv as pacsv

from judgekit.data.files import read_table
from judgekit.data.tables import SCORES
from judgekit.data.trec import read_run


def test_reading_queries_docs_and_runs_does_not_import_pandas() -> None:
    code = "import judgekit.data.readers, judgekit.data.trec, sys; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_arrow_reads_from_its_own_streams(tmp_path: Path) -> None:
    # Arrow lets go of a stream on a thread of its own. Where that needs the interpreter and the program is just ending,
    # the process is aborted: rarely, under load, so that it is the kind of stream that is looked at here.
    content = b"q1 Q0 d1 1 2.5 x\nq1 Q0 d2 2 1.5 x\n"
    (tmp_path / "run.trec").write_bytes(content)
    two = [gzip.compress(content), gzip.compress(b"q2 Q0 d1 1 0.5 x\n")]  # as cat makes them
    (tmp_path / "two.gz").write_bytes(b"".join(two))
    (tmp_path / "scores.csv").write_text("labeling,run,measure,query_id,value\na,b,P@5,q1,0.5\n")
    with (
        mock.patch("pyarrow.csv.open_csv", wraps=pacsv.open_csv) as opened,
        mock.patch("pyarrow.csv.read_csv", wraps=pacsv.read_csv) as read,
    ):
        assert read_run(tmp_path / "run.trec").top("q1") == ["d1", "d2"]
        assert list(read_run(tmp_path / "two.gz").query_ids) == ["q1", "q2"]
        assert read_table(SCORES, tmp_path / "scores.csv")["value"].tolist() == [0.5]
    streams = [call.args[0] for call in (*opened.call_args_list, *read.call_args_list)]
    assert len(streams) == 3
    assert all(isinstance(stream, pa.BufferReader | pa.CompressedInputStream | pa.OSFile) for stream in streams)
