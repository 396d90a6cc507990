"""The demo's numbers are frozen: its replies are recorded, so that a change of any number is a change of judgekit.

Where a change is meant, the new digests stand in the message of the failed test; CHANGELOG says what changed.
"""

import hashlib
import json
from typing import Any

import pandas as pd
import pytest

from judgekit.data.tables import QUALITY

FROZEN = {
    "qrels": "0f059008eb9823c7",
    "answers": "32fbb69703b1c5a4",
    "scores": "6779e84a0eeb983e",
    "comparison": "0a62f8c3ca5e2480",
    "differences": "0c34aea9c2dd9acf",
    "report.json": "6efc27a8e27c6692",
}
"""SHA-256 of each part of the demo's results (the first 16 digits)."""

VARYING = {"seconds", "wall_s", "request_seconds", "versions", "schema"}
"""What depends on the machine, or says nothing about the data."""


def rounded(value: Any) -> Any:
    """Round numbers to 4 digits: the last ones depend on the processor, and on how far a version of scipy seeks a root.

    The nudge keeps exact halves, such as 1/128, off the edge between two roundings.
    """
    return round(value + 1.7e-5, 4) if isinstance(value, float) else value


def table(frame: pd.DataFrame) -> list[list[Any]]:
    return [list(frame.columns), *([rounded(value) for value in row] for row in frame.itertuples(index=False))]


def numbers(value: Any, place: str = "") -> list[tuple[str, Any]]:
    """Return the numbers of a JSON value with their places, in order; prose may be rewritten."""
    if isinstance(value, dict):
        inside = ((f"{place}/{key}", one) for key, one in value.items() if key not in VARYING)
        return [found for where, one in inside for found in numbers(one, where)]
    if isinstance(value, list):
        return [found for one in value for found in numbers(one, place)]
    return [] if isinstance(value, str) else [(place, rounded(value))]


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


@pytest.mark.usefixtures("demo")
def test_the_demos_numbers_are_those_of_the_recorded_replies(demo_folder):
    report = json.loads((demo_folder / "report.json").read_text("utf-8"))
    parts = {
        "qrels": [path.read_text("utf-8") for path in sorted((demo_folder / "labels").glob("*.qrels"))],
        "answers": table(pd.read_parquet(demo_folder / "answers/answer-short.parquet")[list(QUALITY.columns)]),
        "scores": table(pd.read_parquet(demo_folder / "scores.parquet")),
        "comparison": table(pd.read_csv(demo_folder / "comparison.csv")),
        "differences": table(pd.read_csv(demo_folder / "differences.csv")),
        "report.json": numbers(report),
    }
    assert {name: digest(part) for name, part in parts.items()} == FROZEN
