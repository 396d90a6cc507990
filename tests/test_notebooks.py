"""The notebooks run from top to bottom, under a running event loop, and say what is committed.

``make notebooks`` runs them and keeps what they show.
"""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LARGEST = 200_000
"""Bytes of a notebook with what it shows: figures are small, and nobody reads more rows."""


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook as it is after a run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources, record_timing=False).execute()
    return notebook


def said(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what each cell shows as text; figures are HTML and stand here by their titles."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    texts = (output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)
    return [re.sub(r"\s+", " ", text) for text in texts]


@pytest.mark.filterwarnings("default")  # of Jupyter's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_notebook_runs_and_shows_what_is_committed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    committed = nbformat.read(path, as_version=4)
    assert path.stat().st_size < LARGEST
    found = said(executed(path, tmp_path))
    assert found
    assert found == said(committed), "run `make notebooks` and look at what changed"


if __name__ == "__main__":
    os.environ |= {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    for each in NOTEBOOKS:
        with TemporaryDirectory() as empty:
            nbformat.write(executed(each, Path(empty)), each)
