"""An audit from top to bottom: read the results, do the checks, write the table and the report's section."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit import report as reports
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.stages import StageUnit
from judgekit.data.files import write_table
from judgekit.data.result_files import ResultFiles
from judgekit.errors import UsageError
from judgekit.experiment.finished import draw
from judgekit.job import Job, job
from judgekit.jobs.audit import bias, circularity, gullibility
from judgekit.jobs.audit.audited_run import Material, read
from judgekit.jobs.audit.numbers import Number
from judgekit.jobs.audit.probes import PROBES, Change, Probe, probe
from judgekit.report.model import Section

if TYPE_CHECKING:
    from judgekit.client.session import Session

ALL: Final = "all"
"""Stands for all of judgekit's probes."""


@dataclass(frozen=True)
class Audit:
    """The findings of an audit, also written to ``audit.csv`` in the results folder.

    Attributes:
        numbers: the numbers of each labeling, in the order of the checks.
        notes: sentences on the reference and on what was left out.
    """

    numbers: Mapping[str, Sequence[Number]]
    notes: tuple[str, ...]

    def flags(self, labeling: str) -> list[str]:
        """Return the flags of a labeling, each once."""
        return list(dict.fromkeys(number.flag for number in self.numbers[labeling] if number.flag))

    @property
    def table(self) -> pd.DataFrame:
        """One row per number: the labeling, and the fields of `Number`."""
        rows: list[tuple[object, ...]] = []
        for labeling, numbers in self.numbers.items():
            rows += [(labeling, *astuple(number)) for number in numbers]
        return pd.DataFrame(rows, columns=["labeling", *(declared.name for declared in fields(Number))])


@job
def audit(
    results: str | Path,
    *,
    probes: str | Sequence[str | Change] = (),
    reference: str | None = None,
    asking: Asking = UNLIMITED,
) -> Job[Audit]:
    """Check labels for circularity, bias and, with probes, gullibility.

    Args:
        results: folder of `judgekit run`.
        probes: ways to tamper with passages, to see whether labelers are fooled; this asks them. Names or functions
            ``(question, passage) -> passage``, or ``all``; none by default, which sends nothing.
        reference: the labeling to compare others with; by default labels by people, else provenance.
        asking: the budget, and where replies are kept.

    Returns:
        The numbers of each check by labeling, and sentences on what was left out.

    Raises:
        ConfigError, DataError, UsageError: nothing was sent, for example because the data changed since the run.
        StoppedError: the endpoint failed or the budget ran out; paid replies are in the store.
    """
    tampering, material = _probes(probes), read(Path(results), reference)
    stages: dict[str, Callable[[], Iterator[StageUnit]]] = {}
    if tampering:
        pairs = gullibility.draw(material)
        for name in material.labelings:
            for attack in gullibility.attacks(material, name, tampering, pairs):
                stages[attack.stage] = partial(zip, repeat(attack.labeler), attack.units)

    async def do(session: Session, _: ResultFiles) -> Audit:
        audited = await _audited(material, tampering, session)
        folder, table = material.folder, audited.table
        write_table(table, folder / "audit.csv")
        flagged = table[table["flag"] != ""]
        summary = (
            f"{len(flagged):,} of {len(table):,} numbers are flagged: they count against a labeling, even the leading"
            " one. audit.csv holds all numbers."
        )
        section = Section("Audit", " ".join([summary, *audited.notes]), flagged if len(flagged) else None)
        draw(folder, results=reports.with_section(folder, section))
        return audited

    return Job(stages, do, asking.priced(material.prepared.config.price_list()))


def _probes(given: str | Sequence[str | Change]) -> tuple[Probe, ...]:
    """Return the probes, checked; ``all`` stands for judgekit's own."""
    probes: dict[str, Probe] = {}
    for listed in [given] if isinstance(given, str) else given:
        for made in PROBES.values() if listed == ALL else [probe(listed)]:
            if made.name in probes:
                raise UsageError(f"the probe {made.name} is listed twice")
            probes[made.name] = made
    return tuple(probes.values())


async def _audited(material: Material, probes: Sequence[Probe], session: Session) -> Audit:
    """Do the checks, those that send nothing first."""
    notes: list[str] = []
    judged = material.reference is not None
    if not judged:
        notes.append(
            "No labeling by people or provenance can serve as reference, so checks that need one are skipped. Name a"
            " reference with --reference NAME."
        )
    else:
        known, hits = int(np.isfinite(material.judged).sum()), int(np.nansum(material.judged))
        notes.append(f"The reference is {material.reference}, which judges {known:,} pairs, {hits:,} of them relevant.")
    looks = bias.surface(material) if judged else {}
    numbers: dict[str, list[Number]] = {}
    for name in material.labelings:
        of_labeling = numbers[name] = list[Number]()
        if len(material.collection.runs) > 1:
            of_labeling += circularity.of_labeling(material, name)
        # The reference has no slope beside itself.
        if judged and name != material.reference:
            of_labeling += bias.slopes(
                material.unit_scaled(name),
                material.judged,
                looks,
                units=material.units[material.query],
                groups=material.groups[material.query],
                confidence=material.confidence,
            )
    if probes:
        pairs = gullibility.draw(material)
        if not pairs:
            notes.append("Every passage is in the pool of every question, so there is none to tamper with.")
        for name, of_labeling in numbers.items():
            of_labeling += await gullibility.attack(material, name, probes, pairs, session)
    return Audit(numbers, tuple(notes))
