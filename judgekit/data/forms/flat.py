"""The forms of plain rows, in the order in which a file is held against them: they come before those that hold more."""

from __future__ import annotations

from typing import Final

from judgekit.data.forms.delimited import CSV, TREC, TSV
from judgekit.data.forms.files import FILES
from judgekit.data.forms.jsons import JSON, JSONL
from judgekit.data.forms.sheets import PARQUET, XLSX
from judgekit.data.forms.texts import FOLDER
from judgekit.data.forms.topics import TOPICS

FLAT: Final = (PARQUET, XLSX, FOLDER, FILES, JSONL, JSON, TOPICS, TREC, TSV, CSV)
