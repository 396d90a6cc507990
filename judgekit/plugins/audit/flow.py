"""An audit from top to bottom: read the results, do the checks, write cards, table and the report's section."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from judgekit import __version__, report as reports
from judgekit.client.asking import UNLIMITED, Asking
from judgekit.client.session import Session
from judgekit.client.stages import StageUnit
from judgekit.client.sync import with_session
from judgekit.data.files import write_table
from judgekit.data.streams import write_atomic
from judgekit.errors import UsageError
from judgekit.experiment.finished import draw
from judgekit.experiment.run import count
from judgekit.plugins.audit import bias, circularity, gullibility, jury
from judgekit.plugins.audit.audited_run import Material, read
from judgekit.plugins.audit.numbers import Card, Number
from judgekit.plugins.audit.probes import DEFAULT, Probe, probe
from judgekit.report.model import Section
from judgekit.spec import slug

if TYPE_CHECKING:
    from judgekit.client.waves import Plan

ALL: Final = "all"
"""Stands for every probe that judgekit has."""


@dataclass(frozen=True)
class Audit:
    """What an audit found; ``audit.csv`` and ``cards/`` in the results folder hold it as well.

    Attributes:
        cards: a card per labeling, by its name.
        notes: what was left out, and why, as sentences.
    """

    cards: Mapping[str, Card]
    notes: tuple[str, ...]

    @property
    def table(self) -> pd.DataFrame:
        """One row per number: the labeling, and the fields of `Number`."""
        rows = []
        for card in self.cards.values():
            rows += [(card.labeling, *astuple(number)) for number in card.numbers]
        return pd.DataFrame(rows, columns=["labeling", *(declared.name for declared in fields(Number))])


def audit(
    results: str | Path,
    *,
    probes: str | Sequence[str | Callable[[str, str], str]] = (),
    reference: str | None = None,
    asking: Asking = UNLIMITED,
) -> Audit:
    """Say what a comparison alone does not show: circularity, jury worth, bias, and gullibility where probed.

    Args:
        results: folder of `judgekit run`.
        probes: what passages are tampered with to see whether labelers are fooled, which asks them: spellings or
            functions ``(question, passage) -> passage``, or ``all``; none by default, which sends nothing.
        reference: the labeling that others are compared with; by default what people said, else provenance.
        asking: up to what cost models are asked, and where replies are kept.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent; among others, the data were changed since.
        StoppedError: the endpoint or the budget ended it; what was paid for is in the store.
    """
    tampering, material = _probes(probes), read(Path(results), reference)
    audited = with_session(partial(_audited, material, tampering), asking, material.prepared.config.price_list())
    folder, table = material.folder, audited.table
    write_table(table, folder / "audit.csv")
    for name, card in audited.cards.items():
        write_atomic(folder / "cards" / f"{slug(name)}.md", card.markdown())
    flagged = table[table["flag"] != ""]
    summary = (
        f"{len(flagged):,} of {len(table):,} numbers are flagged: they count against a labeling, even one that"
        " leads above. audit.csv holds all numbers, and cards/ a card for each labeling."
    )
    section = Section("Audit", " ".join([summary, *audited.notes]), flagged if len(flagged) else None)
    draw(folder, results=reports.with_section(folder, section))
    return audited


def plan_audit(
    results: Path,
    probes: Sequence[str],
    reference: str | None = None,
    cache: Path | None = None,
) -> dict[str, Plan]:
    """Count what `audit` would send, by stage and, under ``all``, together."""
    material = read(results, reference)
    stages: dict[str, list[StageUnit]] = {}
    tampering = _probes(probes)
    sample = gullibility.draw(material) if tampering else {}
    for name in material.labelings:
        controls = set()
        for attack in gullibility.attacks(material, name, tampering, sample):
            if attack.pairs not in controls:
                stages.setdefault(attack.control, []).extend((attack.labeler, unit) for unit in attack.shown)
            controls.add(attack.pairs)
            stages.setdefault(attack.stage, []).extend((attack.labeler, unit) for unit in attack.tampered)
    return count({stage: partial(iter, units) for stage, units in stages.items()}, cache)


def _probes(given: str | Sequence[str | Callable[[str, str], str]]) -> tuple[Probe, ...]:
    """Return the probes, checked; ``all`` stands for judgekit's own."""
    listed = [given] if isinstance(given, str) else given
    probes: list[Probe] = []
    for named in listed:
        probes += map(probe, DEFAULT if named == ALL else [named])
    names = [made.name for made in probes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the probe {name} is listed twice")
    return tuple(probes)


async def _audited(material: Material, probes: Sequence[Probe], session: Session) -> Audit:
    """Do the checks, first those that send nothing."""
    notes: list[str] = []
    judged = material.reference is not None
    if not judged:
        notes.append(
            "No labeling by people or provenance can serve as reference. Checks that need a reference are"
            " skipped, and probes use passages of other questions. Name a reference with --reference NAME."
        )
    looks = bias.surface(material) if judged else {}
    numbers: dict[str, list[Number]] = {}
    for name in material.labelings:
        of_labeling = numbers[name] = list[Number]()
        if len(material.collection.runs) > 1:
            of_labeling += circularity.of_labeling(material, name)
        if judged:
            of_labeling += jury.of_voices(material, name, session)
        if judged and name != material.reference:
            of_labeling += bias.slopes(
                material.unit_scaled(name),
                material.judged,
                looks,
                units=material.units[material.query],
                groups=material.groups[material.query],
                confidence=material.confidence,
            )
            of_labeling += bias.overrating(material, name)
    if probes:
        sample = gullibility.draw(material)
        for name, of_labeling in numbers.items():
            of_labeling += await gullibility.attack(material, name, probes, sample, session)
    cards = {name: Card(name, _facts(material, name), tuple(of_one)) for name, of_one in numbers.items()}
    return Audit(cards, tuple(notes))


def _facts(material: Material, name: str) -> tuple[tuple[str, str], ...]:
    """Return what stands at the head of a card."""
    labeler, labeling = material.prepared.labelers[name], material.labelings[name]
    models = dict.fromkeys(endpoint.model for endpoint in labeler.needs.asked)
    relevant = f"{labeling.scale}; relevant from {labeling.scale.threshold:g}"
    if labeling.scale.min_rel is None:
        relevant += ", the middle, since the scale declares no threshold"
    if material.reference is None:
        compared = "none"
    elif material.reference == name:
        compared = "this labeling: the others are compared with it"
    else:
        known, hits = int(np.isfinite(material.judged).sum()), int(np.nansum(material.judged))
        compared = f"{material.reference}: judges {known:,} of the pairs, {hits:,} of them relevant"
    runs = material.collection.runs
    return (
        ("Spelling", str(labeler.spec)),
        ("Scale", relevant),
        ("Model", ", ".join(models) or "none"),
        ("Prompt", labeler.needs.prompt or "none"),
        ("Labels", ", ".join(f"{n:,} {status}" for status, n in labeling.counts().items() if n)),
        ("Data", f"{len(material.queries):,} queries, {len(runs)} runs, {len(material.pairs):,} pairs"),
        ("Verdict", str(material.primary)),
        ("Reference", compared),
        ("Intervals", f"{100 * material.confidence:g} %, seed {material.seed}, judgekit {__version__}"),
    )
