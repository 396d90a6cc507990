"""``audit``: weaknesses of a labeling that a comparison does not show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgekit.console.jobs import JobOptions
from judgekit.console.printing import console, grid, records, say
from judgekit.console.results import CommandResult


def audit(
    results: Annotated[Path, typer.Argument(help="Results folder of `judgekit run`.")],
    probe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROBE",
            help="Tamper with passages and ask the labelers again: all, or a name such as stuff; repeat.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="LABELING",
            help="Labeling to compare the others with (default: people, else provenance).",
        ),
    ] = None,
    *,
    asked: JobOptions,
) -> None:
    """Check labels for circularity, bias and gullibility.

    Examples:
        judgekit audit results
        judgekit audit results --probe all --dry-run
    """
    from judgekit.jobs.audit import flow

    probes = probe or []
    audited = asked.carry_out("audit", flow.audit, results, probes=probes, reference=reference)
    table, page = results / "audit.csv", results / "report.html"
    warnings = [*audited.notes]
    if not probes:
        warnings.append("The labelers were not probed: add --probe all, and count its requests with --dry-run.")

    def shown() -> None:
        for labeling, numbers in audited.numbers.items():
            flags = ", ".join(audited.flags(labeling)) or "nothing is flagged"
            console().print(f"\n{labeling}: {flags}", style="bold", markup=False)
            rows = [(number.check, number.subject, number.statistic, str(number), number.finding) for number in numbers]
            grid(["check", "of", "what", "value", "what it does to the verdict"], rows)
        say(f"table:  {table}", f"report: {page}")

    record = {"numbers": records(audited.table), "flags": {name: audited.flags(name) for name in audited.numbers}}
    CommandResult(shown, record, files=[table, page], warnings=warnings).end("audit", as_json=asked.as_json)
