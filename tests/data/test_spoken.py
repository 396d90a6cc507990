"""Texts of servers, files and names: shown and not obeyed, on a terminal and in a spreadsheet."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgekit.console.printing import console, emit, grid, note, say, show
from judgekit.data.files import read_table, write_table
from judgekit.data.tables import LABELS

HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\u202ed\x9be\x7ff\ud800g\rh"


@pytest.mark.parametrize(
    "speak",
    [
        note,
        lambda text: grid(["x"], [[text]]),
        lambda text: say(text, err=True),
        lambda text: show(pd.DataFrame({"x": [text.replace("\ud800", "")]})),
        lambda text: console(stderr=True).print(text, markup=False),
    ],
    ids=["note", "grid", "say", "show", "print"],
)
def test_no_text_is_obeyed_by_a_terminal(capsys: Any, speak: Any) -> None:
    speak(HOSTILE)
    shown = "".join(capsys.readouterr())
    assert not set(shown) & set("\x1b\x07\u202e\x9b\x7f\ud800\r")
    assert "⟨U+202E⟩" in shown


def test_one_json_object_means_what_it_meant(capsys: Any) -> None:
    emit("x", text=HOSTILE)
    shown = capsys.readouterr().out
    assert not set(shown) & set("\x1b\x07\u202e\x9b\x7f\ud800\r")
    assert json.loads(shown)["text"] == HOSTILE


@pytest.mark.parametrize("end", ["csv", "tsv"])
def test_no_name_is_a_formula_in_a_csv_file_and_it_is_read_as_it_was(tmp_path: Path, end: str) -> None:
    names = ["=1+1", "+1", "-a", "@SUM(A1)", "'=1", "plain"]
    raw = [f"{name}, he" for name in (*names[:-1], "\tx")]
    columns = {"query_id": names, "doc_id": names, "relevance": 1.0, "status": "ok", "raw": raw}
    path, frame = tmp_path / f"labels.{end}", LABELS.check(pd.DataFrame(columns))
    write_table(frame, path, table=LABELS)
    pd.testing.assert_frame_equal(read_table(LABELS, path), frame)
    with path.open(newline="") as stream:
        cells = [cell for row in csv.reader(stream, delimiter="," if end == "csv" else "\t") for cell in row]
    assert not [cell for cell in cells if cell[0] in "=+-@\t"]
