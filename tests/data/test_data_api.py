"""What the data room needs to be imported."""

from __future__ import annotations

import subprocess
import sys


def test_reading_queries_docs_and_runs_does_not_import_pandas() -> None:
    code = "import judgekit.data.readers, judgekit.data.trec, sys; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
