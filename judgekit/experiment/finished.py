"""A results folder read back: the experiment that it came from, its labels and its answers, if nothing was changed.

Its report is drawn from them, with every query, label and answer that is still there to be looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judgekit.analysis.modes import of_mode
from judgekit.data.files import read_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import MANIFEST, mismatches, sources
from judgekit.data.streams import noting_reads
from judgekit.data.tables import LABELS, QUALITY
from judgekit.errors import DataError, JudgekitError
from judgekit.experiment.file import Config, config_of, labels_file
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.results import backing
from judgekit.experiment.run import answers_file
from judgekit.report import Results, load, write_html
from judgekit.report.queries import Backing


class Opened(NamedTuple):
    """An experiment, and what is there of its results: nothing of one that was not run."""

    prepared: Prepared
    labelings: dict[str, Labeling]
    quality: pd.DataFrame


def open_results(source: Path) -> Opened:
    """Return what an experiment file or a results folder holds."""
    return read_results(source) if source.is_dir() else Opened(prepare(source, keys=False), {}, pd.DataFrame())


def read_results(folder: Path) -> Opened:
    """Return the experiment, its labelings by name and its quality table, of several modes that of the first."""
    prepared = prepare(config_of(folder), keys=False)
    answers = folder / answers_file(prepared)
    files = label_files(folder, prepared.labelers)
    _check(folder, prepared.config, [*files.values(), answers])
    labelings = {
        name: Labeling(name, labeler.scale, read_table(LABELS, files[name]))
        for name, labeler in prepared.labelers.items()
    }
    return Opened(prepared, labelings, of_mode(read_table(QUALITY, answers)))


def label_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return where the labels of each labeling lie."""
    return {name: folder / labels_file(name) for name in names}


def _check(folder: Path, config: Config, results: Sequence[Path]) -> None:
    """Refuse results of an unfinished run, and data that are not those of the run."""
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        made, inputs = dict(content["results"]), dict(content["inputs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"its {MANIFEST} cannot be read ({error}): run the experiment again", folder) from None
    named = config.files()
    lost = next((path for path in (*results, *named.values()) if not path.exists()), None)
    if lost is not None:
        raise DataError("is missing: run the experiment again", lost)
    # An experiment file may have changed since, for what was run is in resolved.toml, and so may a prompt: the control
    # of every probe is asked anew where it did.
    others = {
        role: path
        for role, source in inputs.items()
        if role not in named and (path := config.path.parent / source["file"]).exists() and path.suffix != ".toml"
    }
    now = sources({**named, **others, **{str(path): path for path in results}})
    for path in results:
        said = made.get(path.relative_to(folder).as_posix())
        if said != now[str(path)].sha256:
            reason = "was changed after the run" if said else "does not belong to a finished run"
            raise DataError(f"{reason}: run the experiment again", path)
    changed = [
        f"{path} was changed after the run" for r, path in others.items() if inputs[r]["sha256"] != now[r].sha256
    ]
    if problems := mismatches(now) + changed:
        raise DataError(f"{'; '.join(problems)}. Run the experiment again", folder)


def draw(folder: Path, *, texts: bool = True, results: Results | None = None) -> Results:
    """Write ``report.html`` of a results folder anew, and return what it shows."""
    results = load(folder) if results is None else results
    write_html(results, folder / "report.html", backing_of(folder, results, texts))
    return results


def backing_of(folder: Path, results: Results, texts: bool = True) -> Backing:
    """Return what a results folder still knows of each query: labels and answers at least, unless they are gone."""
    try:
        with noting_reads() as read:
            whole = backing(*read_results(folder))
    except JudgekitError as problem:
        return _tables_left(folder, results, texts, str(problem))
    # What else was read must not have changed, and a prompt may have.
    made = {one["sha256"] for one in json.loads((folder / MANIFEST).read_bytes())["inputs"].values()}
    prompts = {path.name: path for path in read if path.suffix == ".toml" and path.parent != folder}
    changed = [str(prompts[name]) for name, source in sources(prompts).items() if source.sha256 not in made]
    if changed:
        told = f"Prompts are not shown: {', '.join(changed)} changed after the run."
        whole = replace(whole, labelers={}, absent=told)
    return replace(whole, texts=texts)


def _tables_left(folder: Path, results: Results, texts: bool, problem: str) -> Backing:
    """Return the tables that are there, where the data of the experiment are not, or are other ones by now."""
    files = label_files(folder, [info.name for info in results.labelings])
    gone = [str(path.relative_to(folder)) for path in files.values() if not path.is_file()]
    labels = {name: read_table(LABELS, path) for name, path in files.items() if path.is_file()}
    answers = [of_mode(read_table(QUALITY, path)) for path in sorted(folder.glob("answers/*.parquet"))[:1]]
    absent = f"Questions, passages and prompts are not shown: {problem.rstrip('.')}."
    if gone:
        absent += f" The missing labels and their replies would be in {', '.join(gone)}."
    return Backing(labels, answers[0] if answers else None, texts=texts, absent=absent)
