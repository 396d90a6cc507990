"""Hold the share of branches that tests run in each room to its floor: ``make coverage``.

A total would let one room sink while another one rises. Floors lie in coverage.toml; raise one when its room has risen.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

FLOORS = Path(__file__).with_name("coverage.toml")


def shares(report: Path) -> dict[str, float]:
    """Return by room the percentage of lines and branches that were run, from coverage.py's JSON report."""
    ran: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, file in json.loads(report.read_text(encoding="utf-8"))["files"].items():
        parts = Path(name).parts
        room = parts[1].removesuffix(".py") if len(parts) > 2 else "(top level)"
        summary = file["summary"]
        ran[room][0] += summary["covered_lines"] + summary["covered_branches"]
        ran[room][1] += summary["num_statements"] + summary["num_branches"]
    return {room: 100 * covered / max(total, 1) for room, (covered, total) in sorted(ran.items())}


def main(report: str) -> int:
    """Print each room's share beside its floor; return 1 if one lies below, or has no floor."""
    floors = tomllib.loads(FLOORS.read_text(encoding="utf-8"))["floors"]
    status = 0
    for room, share in shares(Path(report)).items():
        floor = floors.get(room)
        low = floor is None or share < floor
        status |= low
        print(
            f"{room:<12} {share:5.1f} %   floor {floor if floor is not None else 'missing'}{'   BELOW' if low else ''}"
        )
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
