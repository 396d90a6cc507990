"""What no two runs of a tool share is put in one form: ids drawn at random, times, durations, ports."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

_UUID = re.compile(r"(?<![0-9a-fA-F-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-fA-F-])")
_HEX = re.compile(
    r"(?<![0-9a-zA-Z.])(?=[0-9]*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{16})(?![0-9a-zA-Z-])"
)
_TIME = re.compile(r"20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_BASE64 = re.compile(r"(?<=')(?:[A-Za-z0-9+/]{22}==|[A-Za-z0-9+/]{11}=)(?=')")
_EVAL = re.compile(r"eval-[A-Za-z0-9]{3}-(?=20)")
"""The beginning of an id of promptfoo's evaluations."""
_FRAMES = re.compile(r'(?:\\n|\n)  File \\?"+[^"]*"+, line \d+, in [^\n\\]*(?:(?:\\n|\n)    (?:\\[^n]|[^\n\\])*)*')
"""The frames of a traceback, with the paths of this machine and the lines of the script."""
_PORT = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_START = datetime(2026, 1, 2, tzinfo=UTC)


def normalise(folder: Path, durations: Iterable[str] = ()) -> None:
    """Rewrite the text files of a folder, as few changes as it takes for a second run to give the same bytes.

    Args:
        folder: ids are numbered in the order in which its files, by name, hold them; times by their own order.
        durations: names of columns or members whose numbers differ from run to run.
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".parquet"]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    together = "\n".join(texts.values())
    ids = {found: _numbered(found, number) for number, found in enumerate(_unique(_UUID, together), 1)}
    ids |= {found: f"{number:0{len(found)}x}" for number, found in enumerate(_unique(_HEX, together), 1)}
    ids |= {found: f"{number:0{len(found)}}" for number, found in enumerate(_unique(_BASE64, together), 1)}
    times = {}
    for place, found in enumerate(sorted(_unique(_TIME, together), key=_moment)):
        moment = _START + timedelta(seconds=place)
        ending = re.search(r"(?:Z|[+-]\d\d:?\d\d)?$", found)
        times[found] = moment.strftime(f"%Y-%m-%d{found[10]}%H:%M:%S") + (ending[0] if ending else "")
    names = "|".join(map(re.escape, durations))
    for path, text in texts.items():
        text = _UUID.sub(lambda found: ids[found[0]], text)
        text = _HEX.sub(lambda found: ids[found[0]], text)
        text = _BASE64.sub(lambda found: ids.get(found[0], found[0]), text)
        text = _TIME.sub(lambda found: times[found[0]], text)
        text = _FRAMES.sub("", text)
        text = _EVAL.sub("eval-abc-", text)
        text = _PORT.sub("8000", text)
        if names:
            text = re.sub(rf'(["\']{{1,2}}(?:{names})["\']{{1,2}}: ?)-?\d+(?:\.\d+)?(?:e[+-]?\d+)?', r"\g<1>0.25", text)
        if path.suffix == ".csv":
            text = _with_columns(text, set(durations))
        path.write_text(text, encoding="utf-8")


def _with_columns(text: str, durations: set[str]) -> str:
    """Return a CSV file whose columns of durations hold one number."""
    rows = list(csv.reader(io.StringIO(text)))
    if not durations.intersection(rows[0]):
        return text
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows[1:]:
        writer.writerow("0.25" if name in durations and cell else cell for name, cell in zip(rows[0], row, strict=True))
    return written.getvalue()


def _unique(pattern: re.Pattern[str], text: str) -> list[str]:
    return list(dict.fromkeys(pattern.findall(text)))


def _numbered(found: str, number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace(" ", "T"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
