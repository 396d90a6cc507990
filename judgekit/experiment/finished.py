"""Reads a results folder: its experiment, labels and answers, if unchanged.

The report is drawn from them, with all queries, labels and answers that still exist.
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
from judgekit.data.tables import LABELS, QUALITY, REPLIES, SCORES, Table
from judgekit.errors import DataError, JudgekitError
from judgekit.experiment.file import REPLIES_FILE, Config, config_of, labels_file
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.results import backing
from judgekit.experiment.run import answers_file
from judgekit.report import Results, load, write_html
from judgekit.report.queries import Backing
from judgekit.spec import split_form


class LoadedResults(NamedTuple):
    """An experiment and its results, if it was run."""

    prepared: Prepared
    labelings: dict[str, Labeling]
    quality: pd.DataFrame


def open_results(source: Path) -> LoadedResults:
    """Return the content of an experiment file or a results folder."""
    if source.is_dir():
        return read_results(source)
    # Nothing is sent, so keys may be missing.
    return LoadedResults(prepare(source, keys=False), {}, pd.DataFrame())


def read_results(folder: Path) -> LoadedResults:
    """Return the experiment, its labelings by name and its quality table (of the first mode)."""
    prepared = prepare(config_of(folder), keys=False)
    answers = folder / answers_file(prepared)
    files = label_files(folder, prepared.labelers)
    _check(folder, prepared.config, [*files.values(), answers])
    labelings = {
        name: Labeling(name, labeler.scale, read_table(LABELS, files[name]))
        for name, labeler in prepared.labelers.items()
    }
    return LoadedResults(prepared, labelings, of_mode(read_table(QUALITY, answers)))


def label_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return the path of each labeling's labels."""
    return {name: folder / labels_file(name) for name in names}


def _check(folder: Path, config: Config, results: Sequence[Path]) -> None:
    """Refuse results of an unfinished run, and data other than the run's."""
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        made, inputs = dict(content["results"]), dict(content["inputs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"its {MANIFEST} cannot be read ({error}): run the experiment again", folder) from None
    named = config.files()
    for path in (*results, *named.values()):
        file = Path(split_form(path)[1])  # without its form prefix
        if not file.exists():
            raise DataError("is missing: run the experiment again", file)
    others = {}
    for role, source in inputs.items():
        path = config.path.parent / source["file"]
        # The experiment file may have changed, since resolved.toml holds the one that was run. Prompts may have, too:
        # then an audit asks the control of every probe again.
        if role not in named and path.suffix != ".toml" and path.exists():
            others[role] = path
    now = sources({**named, **others, **{str(path): path for path in results}})
    for path in results:
        sha256 = made.get(path.relative_to(folder).as_posix())
        if sha256 != now[str(path)].sha256:
            reason = "was changed after the run" if sha256 else "does not belong to a finished run"
            raise DataError(f"{reason}: run the experiment again", path)
    problems = mismatches(now)
    for role, path in others.items():
        if inputs[role]["sha256"] != now[role].sha256:
            problems.append(f"{path} was changed after the run")
    if problems:
        raise DataError(f"{'; '.join(problems)}. Run the experiment again", folder)


def draw(folder: Path, *, texts: bool = True, results: Results | None = None) -> Results:
    """Redraw ``report.html`` of a results folder, and return its content."""
    results = results or load(folder)
    write_html(results, folder / "report.html", backing_of(folder, texts))
    return results


def _unchanged(table: Table, path: Path) -> pd.DataFrame | None:
    """Return a table of a run; None if it is gone or has changed since, so that pages leave it out."""
    folder = path.parent
    if not path.exists():
        return None
    made = json.loads((folder / MANIFEST).read_bytes())["results"]
    if made.get(path.name) != sources({path.name: path})[path.name].sha256:
        return None
    return read_table(table, path)


def backing_of(folder: Path, texts: bool = True) -> Backing:
    """Return a results folder's data on queries; none, with the reason, if data are gone."""
    try:
        opened = read_results(folder)
        scores = _unchanged(SCORES, folder / "scores.parquet")
        whole = backing(*opened, scores, _unchanged(REPLIES, folder / REPLIES_FILE))
    except JudgekitError as problem:
        return Backing({}, None, texts=texts, absent=f"Questions are not shown: {problem}")
    return replace(whole, texts=texts)
