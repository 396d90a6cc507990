"""Drawing the report of a results folder, with every query, label and answer that is still there to be looked at."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgekit.analysis.modes import of_mode
from judgekit.data.files import read_table
from judgekit.data.manifest import MANIFEST, sources
from judgekit.data.outputs import noting_reads
from judgekit.data.tables import LABELS, QUALITY
from judgekit.errors import JudgekitError
from judgekit.experiment.file import config_of
from judgekit.experiment.finished import finished, label_files
from judgekit.experiment.results import backing
from judgekit.report import load, write_html
from judgekit.report.queries import Backing

if TYPE_CHECKING:
    from judgekit.report import Results

__all__ = ["draw"]


def draw(folder: Path, *, texts: bool = True, results: Results | None = None) -> Results:
    """Write ``report.html`` of a results folder anew, and return what it shows.

    Args:
        folder: of a finished run.
        texts: whether questions, passages, answers and replies may be in it; an experiment that leaves them out wins.
        results: what to show, by default what the folder holds.

    Raises:
        DataError: the folder does not hold what `judgekit run` writes.
    """
    results = load(folder) if results is None else results
    behind = _left_behind(folder, results, texts)
    if not behind.texts:
        results = results.without_texts()
    write_html(results, folder / "report.html", behind)
    return results


def _left_behind(folder: Path, results: Results, texts: bool = True) -> Backing:
    """Return what a results folder still knows of each query: labels and answers at least, unless they are gone."""
    try:
        wanted = texts and config_of(folder).report.texts
    except JudgekitError:
        wanted = texts
    try:
        with noting_reads() as read:
            whole = backing(*finished(folder))
    except JudgekitError as problem:
        return _remains(folder, results, wanted, str(problem))
    # What else was read must not have changed, and a prompt may have.
    made = {one["sha256"] for one in json.loads((folder / MANIFEST).read_bytes())["inputs"].values()}
    prompts = {path.name: path for path in read if path.suffix == ".toml" and path.parent != folder}
    changed = [str(prompts[name]) for name, source in sources(prompts).items() if source.sha256 not in made]
    if changed:
        told = f"Prompts are not shown: {', '.join(changed)} changed after the run."
        whole = replace(whole, labelers={}, absent=told)
    return replace(whole, texts=wanted)


def _remains(folder: Path, results: Results, texts: bool, problem: str) -> Backing:
    """Return the tables that are there, where the data of the experiment are not, or are other ones by now."""
    files = label_files(folder, [info.name for info in results.labelings])
    gone = [str(path.relative_to(folder)) for path in files.values() if not path.is_file()]
    labels = {name: read_table(LABELS, path) for name, path in files.items() if path.is_file()}
    answers = [of_mode(read_table(QUALITY, path)) for path in sorted(folder.glob("answers/*.parquet"))[:1]]
    absent = f"Questions, passages and prompts are not shown: {problem.rstrip('.')}."
    if gone:
        absent += f" The labels that lack, and the replies that they were read from, would be in {', '.join(gone)}."
    return Backing(labels, answers[0] if answers else None, texts=texts, absent=absent)
