"""The passages among the files of `judgekit init`, and text files that may be passages."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judgekit.data.documents import Docs
from judgekit.data.forms.texts import text_id
from judgekit.data.readers import read_docs
from judgekit.setup.inputs import Files, Input, common_folder, is_inside
from judgekit.setup.runs import FoundRuns


@dataclass(frozen=True)
class FoundPassages:
    """The passages and their files."""

    docs: Docs
    files: Sequence[Input]


def read_passages(files: Files, runs: FoundRuns) -> FoundPassages | None:
    """Return the passages: from the file with most of those in the runs, and missing ones from other files."""
    left = runs.doc_ids()
    read: list[tuple[set[str], Input, Docs]] = []
    for file in files.of("doc"):
        docs = files.read(file, "doc", read_docs)
        if docs is not None:
            read.append(({doc_id for doc_id in left if doc_id in docs}, file, docs))
    taken: list[tuple[Input, Docs]] = []
    # A collection may be split into halves, with a second export of it beside them.
    for held, file, docs in sorted(read, key=lambda entry: -len(entry[0])):
        if held & left or (not held and not taken):
            left -= held
            taken.append((file, docs))
            file.take("doc", f"passages: {len(docs):,}")
        else:
            file.why = file.why or "not used as passages: other files hold all passages of the runs"
    if not taken:
        return None
    if len(taken) > 1:
        return FoundPassages(read_docs([file.given for file, _ in taken]), [file for file, _ in taken])
    ((file, docs),) = taken
    return FoundPassages(docs, [file])


def offer_texts(files: Files, runs: FoundRuns) -> str:
    """Return the command with the folder of text files; "" if all of them are given with a form."""
    # Only the user knows whether passages are whole files.
    named = [file.path for file in files.all if file.form and file.path.is_dir()]
    texts = [path for path in files.texts if not any(is_inside(path, folder) for folder in named)]
    if not texts:
        return ""
    file = files.at(common_folder(texts), "texts")
    file.name = f"{file.name.rstrip('/.') or '.'}/"
    file.named, file.unfit = any(path in files.named for path in texts), True
    place, out = _named_from(files, runs, file.path, texts), None
    if is_inside(files.folder, place):  # never write an experiment into a collection
        out = Path(os.path.relpath(place.absolute().parent / "experiment"))
    command = files.naming(f"texts:{place}", out)
    file.why = (
        f"not used: {len(texts):,} text files. If runs name passages by the paths of these files, name the folder:"
        f" {command}; if your retriever cuts them into passages, give these as docs"
    )
    files.all.append(file)
    return command


def _named_from(files: Files, runs: FoundRuns, below: Path, texts: Sequence[Path]) -> Path:
    """Return the folder to which the paths of text files in runs are relative; else the one that contains them."""
    doc_ids, place = runs.doc_ids(), below
    while not any(text_id(path.absolute(), place.absolute()) in doc_ids for path in texts):
        if not is_inside(place.parent, files.root) or place.parent == place:
            return below
        place = place.parent
    return place
