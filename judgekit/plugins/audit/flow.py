"""An audit from top to bottom: read the results, do the checks, write cards, table and the report's section."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
    from judgekit.wire.types import Program

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
        names = ["labeling", *(one.name for one in fields(Number))]
        return pd.DataFrame([(c.labeling, *astuple(n)) for c in self.cards.values() for n in c.numbers], columns=names)


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
    found = with_session(partial(_audited, material, tampering), asking, material.prepared.config.price_list())
    folder, table = material.folder, found.table
    write_table(table, folder / "audit.csv")
    for name, one in found.cards.items():
        write_atomic(folder / "cards" / f"{slug(name)}.md", one.markdown())
    flagged = table[table["flag"] != ""]
    told = (
        f"{len(flagged):,} of {len(table):,} numbers are flagged: they count against a labeling, even one that"
        " leads above. audit.csv holds all numbers, and cards/ a card for each labeling."
    )
    section = Section("Audit", " ".join([told, *found.notes]), flagged if len(flagged) else None)
    draw(folder, results=reports.with_section(folder, section))
    return found


def plan_audit(
    results: Path,
    probes: Sequence[str],
    reference: str | None = None,
    cache: Path | None = None,
) -> dict[str, Plan]:
    """Count what `audit` would send, by stage and, under ``all``, together."""
    asked: dict[str, list[StageUnit]] = {}
    for stage, program, units in _asked(read(results, reference), _probes(probes)):
        asked.setdefault(stage, []).extend((program, unit) for unit in units)
    return count({stage: partial(iter, units) for stage, units in asked.items()}, cache)


def _probes(given: str | Sequence[str | Callable[[str, str], str]]) -> tuple[Probe, ...]:
    """Return the probes, checked; ``all`` stands for judgekit's own."""
    named = [given] if isinstance(given, str) else given
    made: list[Probe] = []
    for one in named:
        made += map(probe, DEFAULT if one == ALL else [one])
    names = [one.name for one in made]
    if len(set(names)) < len(names):
        raise UsageError(f"the probe {next(name for name in names if names.count(name) > 1)} is listed twice")
    return tuple(made)


def _asked(material: Material, probes: Sequence[Probe]) -> Iterator[tuple[str, Program[Any], Iterable[Any]]]:
    """Yield what the probes ask: the stage, whom, and about what."""
    if not probes:
        return
    sample = gullibility.draw(material)
    for name in material.labelings:
        controls = set()
        for _, shown, control, tampered in gullibility.asked(material, name, probes, sample):
            yield from (tampered,) if shown in controls else (control, tampered)
            controls.add(shown)


async def _audited(material: Material, probes: Sequence[Probe], session: Session) -> Audit:
    """Do the checks, first those that send nothing."""
    notes, numbers = list[str](), dict[str, list[Number]]()
    if material.reference is None:
        notes.append(
            "No labeling by people or provenance can serve as reference. Checks that need a reference are"
            " skipped, and probes use passages of other questions. Name a reference with --reference NAME."
        )
    held = material.reference is not None
    looks = bias.surface(material) if held else {}
    for name in material.labelings:
        found = numbers[name] = list[Number]()
        if len(material.collection.runs) > 1:
            found += circularity.of_labeling(material, name)
        if held:
            found += jury.of_voices(material, name, session)
        if held and name != material.reference:
            groups = material.groups[material.query]
            found += bias.slopes(material.unit_scaled(name), material.judged, looks, groups, material.confidence)
            found += bias.overrating(material, name)
    if probes:
        sample = gullibility.draw(material)
        for name, found in numbers.items():
            found += await gullibility.attack(material, name, probes, sample, session)
    cards = {name: Card(name, _facts(material, name), tuple(found)) for name, found in numbers.items()}
    return Audit(cards, tuple(notes))


def _facts(material: Material, name: str) -> tuple[tuple[str, str], ...]:
    """Return what stands at the head of a card."""
    labeler, labeling, reference = material.prepared.labelers[name], material.labelings[name], material.reference
    asked = dict.fromkeys(endpoint.model for endpoint in labeler.needs.asked)
    middle = ", the middle, since the scale declares no threshold" if labeling.scale.min_rel is None else ""
    hits, known = int(np.nansum(material.judged)), int(np.isfinite(material.judged).sum())
    held = f"{reference}: judges {known:,} of the pairs, {hits:,} of them relevant" if reference else "none"
    runs = material.collection.runs
    return (
        ("Spelling", str(labeler.spec)),
        ("Scale", f"{labeling.scale}; relevant from {labeling.scale.threshold:g}{middle}"),
        ("Model", ", ".join(asked) or "none"),
        ("Prompt", labeler.needs.prompt or "none"),
        ("Labels", ", ".join(f"{n:,} {status}" for status, n in labeling.counts().items() if n)),
        ("Data", f"{len(material.queries):,} queries, {len(runs)} runs, {len(material.pairs):,} pairs"),
        ("Verdict", str(material.primary)),
        ("Reference", "this labeling: the others are compared with it" if reference == name else held),
        ("Intervals", f"{100 * material.confidence:g} %, seed {material.seed}, judgekit {__version__}"),
    )
