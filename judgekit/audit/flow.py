"""An audit from top to bottom: read the results, do the checks, write cards, table and the report's section."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pandas as pd

from judgekit import __version__, stages
from judgekit import report as reports
from judgekit.analysis.coefficients import Floats
from judgekit.audit import bias, circularity, consistency, gullibility, jury
from judgekit.audit.card import Card
from judgekit.audit.material import Material, read
from judgekit.audit.numbers import Number
from judgekit.audit.probes import DEFAULT, Probe, probe
from judgekit.client.session import Session, run_sync
from judgekit.data.files import write_atomic, write_table
from judgekit.data.manifest import manifest_path, sources, write_manifest
from judgekit.errors import DataError, UsageError, not_among
from judgekit.experiment import run as experiments
from judgekit.experiment.file import config_of
from judgekit.experiment.finished import draw, label_files
from judgekit.progress import Progress, silent
from judgekit.report.model import Section
from judgekit.spec import slug
from judgekit.store.replies import default_store_path, has_store

if TYPE_CHECKING:
    from judgekit.client.budget import Budget, Prices
    from judgekit.client.session import Mode
    from judgekit.client.waves import Plan
    from judgekit.wire.types import Outcome, Program

__all__ = ["CHECKS", "FREE", "Audit", "audit", "card"]

FREE: Final = (circularity.NAME, "fidelity", jury.NAME, bias.SURFACE, bias.OVERRATING, bias.SELF)
"""Checks of labels that are there."""
CHECKS: Final = (*FREE, gullibility.NAME, consistency.NAME)
"""All checks; the last two ask labelers, which may cost money."""
_ANSWERS: Final = "answers"
_TABLE: Final = "audit.csv"
_TITLE: Final = "Audit"
_FOUND: Final = {
    "recall": "of the differences between runs that the answers show are found by these labels too",
    "unconfirmed": "of the differences that these labels show are not confirmed by the answers",
    "opposite": "of the differences that these labels show are reversed in the answers",
}

U = TypeVar("U")


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        folder: the results folder, where ``audit.csv`` and ``cards/`` are.
        cards: a card per labeling, by its name.
        notes: what was left out, and why, as sentences.
        planned: of a dry run, what it would send, by stage and, under ``all``, together.
        prices: of the experiment, by endpoint name or model.
    """

    folder: Path
    cards: Mapping[str, Card] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    planned: Mapping[str, Plan] = field(default_factory=dict)
    prices: Prices = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """One row per number: the labeling, and the fields of `Number`."""
        names = ["labeling", *(one.name for one in fields(Number))]
        return pd.DataFrame([(c.labeling, *astuple(n)) for c in self.cards.values() for n in c.numbers], columns=names)


def audit(
    target: str | Path,
    *,
    out: str | Path | None = None,
    checks: str | Sequence[str] = FREE,
    probes: Sequence[str | Callable[[str, str], str]] = DEFAULT,
    reference: str | None = None,
    juries: Sequence[str] = (),
    attack: float = 5.0,
    repeats: int = 3,
    run_families: Mapping[str, str] | None = None,
    docs_family: str | None = None,
    dry_run: bool = False,
    cache: str | Path | None = None,
    mode: Mode = "on",
    budget: Budget | None = None,
    progress: Progress = silent,
) -> Audit:
    """Say what a comparison alone does not show: circularity, jury worth, bias, gullibility, consistency.

    Args:
        target: a results folder, or an experiment file, which is run first unless its results are there already.
        out: folder of the experiment's results, ``judgekit-out/NAME`` by default.
        checks: some of `CHECKS`, or ``all``; by default those that send nothing.
        probes: spellings or functions ``(question, passage) -> passage``.
        reference: the labeling that others are compared with; by default what people said, else provenance.
            ``answers`` has the runs that re-rank answered end to end.
        juries: labelings that vote together, ``a+b+c`` each.
        attack: how much of the pool the probes attack, in per cent.
        repeats: how often the same is asked for consistency.
        run_families: the model family that made a run, by the run's name.
        docs_family: the column of the documents that holds the family that wrote each.
        dry_run: only count what would be sent; of an experiment without results, what running it would.
        cache: folder of the reply store; the user's cache folder by default.
        mode: ``on``, ``off``, ``read-only`` or ``refresh``.
        budget: where to stop.
        progress: called with events.

    Raises:
        ConfigError, DataError, UsageError: nothing has been sent; among others, the data were changed since.
        StoppedError: the endpoint or the budget ended it; what was paid for is in the store.
    """
    path = Path(target)
    options = _Options.of(checks, probes, reference, juries, attack, repeats, run_families or {}, docs_family)
    folder, store = _folder(path, out), default_store_path() if cache is None else Path(cache)
    if _stale(path, folder):
        if dry_run:
            config = experiments.load(target)
            return Audit(folder, planned=experiments.plan(config, store), prices=config.price_list())
        experiments.run(target, out=folder, cache=store, mode=mode, budget=budget, progress=progress)
    material = options.fitting(folder)
    prices = material.prepared.config.price_list()
    if dry_run:
        asking = {*CHECKS} - {*FREE} | ({circularity.NAME} if options.by_answers else set())
        with _DryRun(store if has_store(store) else None, "read-only") as dry:
            run_sync(_audited(material, replace(options, checks=tuple(c for c in options.checks if c in asking)), dry))
        asked = {stage: partial(iter, units) for stage, units in dry.asked.items()}
        return Audit(folder, planned=experiments.count(asked, {}, store), prices=prices)

    async def work() -> Audit:
        async with Session(store, mode, budget, prices, progress) as session:
            return await _audited(material, options, session)

    return _written(material, run_sync(work()))


class _DryRun(Session):
    """A session that notes what it is asked for, and answers nothing."""

    @cached_property
    def asked(self) -> dict[str, list[experiments.StageUnit]]:
        """Units with their programs, by stage."""
        return {}

    async def resolve(
        self, units: Iterable[U], program: Program[U], stage: str, total: int | None = None, size: object = None
    ) -> AsyncIterator[tuple[U, list[Outcome]]]:
        self.asked.setdefault(stage, []).extend((program, unit) for unit in units)
        return
        yield  # which makes it a generator


def card(folder: str | Path, labeling: str, *, html: bool = False) -> str:
    """Return the card of a labeling from the last audit of a results folder, as Markdown or HTML.

    Raises:
        DataError: there was no audit, or labels were changed since.
        UsageError: there is no card of that name.
    """
    path = Path(folder) / _TABLE
    try:
        made = json.loads(manifest_path(path).read_bytes())["inputs"]
    except (OSError, ValueError, KeyError, TypeError):
        if not Path(folder).is_dir():
            raise DataError("no such folder; expected results that were audited", folder) from None
        raise DataError("holds no audit yet: run `judgekit audit` on this results folder first", folder) from None
    if labeling not in made:
        raise UsageError(not_among("labeling", labeling, made))
    labels = label_files(Path(folder), [labeling])
    if not labels[labeling].exists() or sources(labels)[labeling].sha256 != made[labeling]["sha256"]:
        raise DataError(f"the labels of {labeling} have changed since the audit: audit it again", folder)
    return _card_file(Path(folder), labeling, "html" if html else "md").read_text(encoding="utf-8")


def _card_file(folder: Path, labeling: str, end: str) -> Path:
    return folder / "cards" / f"{slug(labeling)}.{end}"


@dataclass(frozen=True)
class _Options:
    """The options, checked."""

    checks: tuple[str, ...]
    probes: tuple[Probe, ...]
    reference: str | None
    juries: tuple[tuple[str, ...], ...]
    attack: float
    repeats: int
    families: Mapping[str, str]
    docs_family: str | None

    @property
    def by_answers(self) -> bool:
        return self.reference == _ANSWERS

    @classmethod
    def of(
        cls, checks: str | Sequence[str], probes: Sequence[str | Callable[[str, str], str]],
        reference: str | None, juries: Sequence[str], attack: float, repeats: int,
        families: Mapping[str, str], docs_family: str | None,
    ) -> _Options:  # fmt: skip
        named = [part.strip() for one in ([checks] if isinstance(checks, str) else checks) for part in one.split(",")]
        wanted = CHECKS if named == ["all"] else tuple(named)
        for name in wanted:
            _known(f"--checks {name}", "check", name, [*CHECKS, "all"])
        if not 0 < attack <= 100:
            raise UsageError(f"--attack must be above 0 and at most 100 (per cent of the pool), not {attack:g}")
        if repeats < 2:
            raise UsageError(f"--repeats must be at least 2, not {repeats}")
        made = tuple(probe(one) for one in probes)
        names = [one.name for one in made]
        if len(set(names)) < len(names):
            raise UsageError(f"the probe {next(name for name in names if names.count(name) > 1)} is given twice")
        voting = tuple(tuple(part.strip() for part in one.split("+")) for one in juries)
        checked = tuple(name for name in CHECKS if name in wanted)
        return cls(checked, made, reference, voting, attack, repeats, families, docs_family)

    def fitting(self, folder: Path) -> Material:
        """Read the results, and refuse what names nothing of them."""
        material = read(folder, None if self.by_answers else self.reference)
        for names in self.juries:
            for name in names:
                _known(f"--jury {'+'.join(names)}", "labeling", name, list(material.labelings))
            if len(set(names)) < 2:
                raise UsageError(f"--jury {'+'.join(names)}: a jury needs at least two labelings, a+b")
        for name in self.families:
            _known(f"--made-by {name}={self.families[name]}", "run", name, [run.name for run in material.runs])
        if self.by_answers and consistency.answering(material) is None:
            raise UsageError(
                "--reference answers: the answers were imported, so new ones cannot be made from other lists"
            )
        return material


def _known(where: str, what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(f"{where}: {not_among(what, name, known)}")


def _folder(path: Path, out: str | Path | None) -> Path:
    """Return the results folder that is meant."""
    if path.is_dir() and out is not None:
        raise UsageError("leave out --out: an audit of a results folder is written into that folder")
    return path if path.is_dir() else Path("judgekit-out") / path.stem if out is None else Path(out)


def _stale(path: Path, folder: Path) -> bool:
    """Return whether an experiment has no finished results of the file as it is in a folder."""
    if path.is_dir():
        return False
    wanted = experiments.prepare(path, keys=False).config.toml()
    try:
        reports.load(folder)
        return config_of(folder).toml() != wanted
    except DataError:
        return True


async def _audited(material: Material, options: _Options, session: Session) -> Audit:
    """Do the checks, first those that send nothing."""
    checks, notes, numbers = options.checks, list[str](), dict[str, list[Number]]()
    if material.reference is None:
        notes.append(
            "No labeling comes from people or provenance to serve as reference: checks that need one are skipped,"
            " and probes are tried on passages of other questions. Name one with --reference NAME."
        )
    held = material.reference is not None
    looks = bias.surface(material) if bias.SURFACE in checks and held else {}
    sample = gullibility.draw(material, options.attack)
    some = max(gullibility.LEAST, math.ceil(options.attack / 100 * len(material.pairs)))
    drawn = np.random.default_rng([material.seed, 5]).permutation(len(material.pairs))[:some]
    pairs = [material.pairs[i] for i in drawn]
    for name in material.labelings:
        found = numbers[name] = list[Number]()
        apart = held and name != material.reference
        if circularity.NAME in checks and len(material.runs) > 1:
            again = await _answered_again(material, name, session) if options.by_answers else None
            found += circularity.of_labeling(material, name, again)
        if "fidelity" in checks:
            found += _fidelity(material.folder, name)
        if jury.NAME in checks and held:
            found += jury.of_voices(material, name, session)
            for names in options.juries:
                found += jury.of_labelings(material, names) if name in names else []
        if bias.SURFACE in checks and apart:
            groups = material.groups[material.query]
            found += bias.slopes(material.unit_scaled(name), material.judged, looks, groups, material.confidence)
        if bias.OVERRATING in checks and apart:
            found += bias.overrating(material, name)
        if bias.SELF in checks and apart:
            found += bias.family(material, name, options.families, options.docs_family)
    order_of_answers = await consistency.answers(material, some, session) if consistency.NAME in checks else []
    for name, found in numbers.items():
        if gullibility.NAME in checks:
            found += await gullibility.attack(material, name, options.probes, sample, session)
        if consistency.NAME in checks:
            found += await consistency.repeats(material, name, pairs, options.repeats, session)
            found += await consistency.positions(material, name, session)
            found += order_of_answers
    return Audit(
        material.folder, {name: Card(name, _facts(material, name), tuple(found)) for name, found in numbers.items()},
        tuple(notes),
    )  # fmt: skip


async def _answered_again(material: Material, name: str, session: Session) -> Floats:
    """Return the quality of the answers from the runs re-ranked by a labeling, shape (R, n)."""
    how, runs, cell = consistency.answering(material), circularity.reranked(material, name), material.primary
    if how is None:
        raise UsageError("--reference answers: the answers were imported")
    how = replace(how, metrics=tuple(metric for metric in how.metrics if metric.name == cell.metric))
    collection = replace(material.prepared.collection, runs=tuple(runs))
    stage = f"answer from the runs by {name}"
    table = await stages.answer_runs(how, collection, [cell.depth], session, closed_book=False, stage=stage)
    wide = table.pivot(index="run", columns="query_id", values="value")
    return wide.reindex([run.name for run in runs], columns=material.queries).to_numpy(np.float64)


def _fidelity(folder: Path, name: str) -> Iterator[Number]:
    """Yield what the comparison found of significance and of the best runs, see `judgekit.analysis.fidelity`."""
    for row in _rows(folder / "fidelity.csv", name):
        about = f"pairs of runs, {'raw' if row['correction'] == 'none' else 'by Holm'}"
        told = f"{row['value']:.0%} {_FOUND[row['statistic']]}" if row["pairs"] else "unknown: no such difference"
        ends = row["value"], row["ci_low"], row["ci_high"]
        yield Number("fidelity", about, row["statistic"], *ends, int(row["pairs"]), told)
    for row in _rows(folder / "top.csv", name):
        about = f"the best {row['top']} runs by {row['by']}"
        shown = row["ci_low"] > 0
        told = "" if shown else "among these alone, it is not shown to choose better than a coin flip"
        yield Number("fidelity", about, "tau-b", row["tau_b"], n=row["top"])
        yield Number("fidelity", about, "decision gain", row["gain"], row["ci_low"], row["ci_high"], row["top"], told)


def _rows(path: Path, name: str) -> list[dict[Any, Any]]:
    table = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["labeling"])
    return table[table["labeling"] == name].to_dict("records")


def _facts(material: Material, name: str) -> tuple[tuple[str, str], ...]:
    """Return what stands at the head of a card."""
    labeler, labeling, reference = material.labelers[name], material.labelings[name], material.reference
    asked = dict.fromkeys(f"{e.model}{f' ({e.family})' if e.family else ''}" for e in labeler.needs.asked)
    middle = ", the middle, since the scale declares no threshold" if labeling.scale.min_rel is None else ""
    hits, known = int(np.nansum(material.judged)), int(np.isfinite(material.judged).sum())
    held = f"{reference}: judges {known:,} of the pairs, {hits:,} of them relevant" if reference else "none"
    return (
        ("Spelling", str(labeler.spec)),
        ("Scale", f"{labeling.scale}; relevant from {material.threshold(name):g}{middle}"),
        ("Model", ", ".join(asked) or "none"),
        ("Prompt", labeler.needs.prompt or "none"),
        ("Labels", ", ".join(f"{n:,} {status}" for status, n in labeling.counts().items() if n)),
        ("Data", f"{len(material.queries):,} queries, {len(material.runs)} runs, {len(material.pairs):,} pairs"),
        ("Verdict", str(material.primary)),
        ("Reference", "this labeling: the others are compared with it" if reference == name else held),
        ("Intervals", f"{100 * material.confidence:g} %, seed {material.seed}, judgekit {__version__}"),
    )


def _written(material: Material, found: Audit) -> Audit:
    """Write the table, the cards and the report's section beside the results."""
    folder, table = material.folder, found.table
    write_table(table, folder / _TABLE)
    for name, one in found.cards.items():
        write_atomic(_card_file(folder, name, "md"), one.markdown())
        write_atomic(_card_file(folder, name, "html"), one.html())
    write_manifest(manifest_path(folder / _TABLE), sources(label_files(folder, found.cards)), [folder / _TABLE])
    flagged = table[table["flag"] != ""]
    told = (
        f"{len(flagged):,} of {len(table):,} numbers are flagged: they count against a labeling, even one that"
        " leads above. audit.csv holds all numbers, and cards/ a card for each labeling."
    )
    section = Section(_TITLE, " ".join([told, *found.notes]), flagged if len(flagged) else None)
    draw(folder, results=reports.with_section(folder, section))
    return found
