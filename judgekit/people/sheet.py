"""The page on which an assessor judges: one file, without a server and without any machine label."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np

from judgekit.data.labelings import Scale
from judgekit.data.streams import write_atomic
from judgekit.errors import UsageError, not_among
from judgekit.people.tasks import Sample
from judgekit.spec import slug


def page_of(sample: Sample, assessor: str) -> str:
    """Return one assessor's page; the order of the tasks and of documents side by side is its own."""
    if assessor not in sample.assessors:
        raise UsageError(not_among("assessor", assessor, sample.assessors))
    random = np.random.default_rng([sample.seed, *assessor.encode()])
    tasks = [task for task in sample.tasks if assessor in task.assessors]
    rows = []
    for at in random.permutation(len(tasks)):
        task = tasks[at]
        order = random.permutation(len(task.texts)).tolist()
        rows.append({**sample.row(task, assessor), "question": task.question, "texts": task.texts, "order": order})
    told = {"grades": sample.grades, "low": Scale.parse(sample.scale).low, "guideline": sample.guideline}
    data = {**sample.head(assessor), **told, "tasks": rows}
    # A "<" could end the script element; escaped, it is the same JSON.
    text = json.dumps(data).replace("<", "\\u003c")
    return files("judgekit.people").joinpath("sheet.html").read_text(encoding="utf-8").replace("@DATA@", text)


def make_sheets(sample: Sample, out: Path) -> list[Path]:
    """Write a page for every assessor: ``out`` for a single one, else ``out`` with the name after its stem."""
    if out.suffix not in (".html", ".htm"):
        raise UsageError(f"{out}: the name of a page must end in .html")
    names = sample.assessors
    paths: list[Path] = []
    for name in names:
        path = out
        if len(names) > 1:
            path = out.with_name(f"{out.stem}-{slug(name)}{out.suffix}")
        write_atomic(path, page_of(sample, name))
        paths.append(path)
    return paths
