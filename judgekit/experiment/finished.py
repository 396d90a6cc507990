"""A results folder read back: the experiment that it came from, its labels and its answers, if nothing was changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from judgekit.analysis.modes import of_mode
from judgekit.data.files import read_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import MANIFEST, mismatches, sources
from judgekit.data.tables import LABELS, QUALITY
from judgekit.errors import DataError
from judgekit.experiment.file import config_of
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.run import result_files
from judgekit.spec import slug

if TYPE_CHECKING:
    import pandas as pd

    from judgekit.experiment.file import Config

__all__ = ["Finished", "finished", "label_files", "opened"]


class Finished(NamedTuple):
    """An experiment, and what is there of its results: nothing of one that was not run."""

    prepared: Prepared
    labelings: dict[str, Labeling]
    quality: pd.DataFrame | None


def opened(source: Path) -> Finished:
    """Return what an experiment file or a results folder holds.

    Raises:
        ConfigError, DataError: as for `finished` and `prepare`.
    """
    return Finished(*finished(source)) if source.is_dir() else Finished(prepare(source, keys=False), {}, None)


def finished(folder: Path) -> tuple[Prepared, dict[str, Labeling], pd.DataFrame]:
    """Return the experiment, its labelings by name and its quality table, of several modes that of the first.

    Raises:
        ConfigError, DataError: it is not a results folder, or something was changed since it was made.
    """
    config = config_of(folder)
    prepared = prepare(config, keys=False)
    answers = next(folder / name for name in result_files(prepared) if name.startswith("answers/"))
    files = label_files(folder, prepared.labelers)
    _check(folder, config, [*files.values(), answers])
    labelings = {
        name: Labeling(name, labeler.scale, read_table(LABELS, files[name]))
        for name, labeler in prepared.labelers.items()
    }
    return prepared, labelings, of_mode(read_table(QUALITY, answers))


def label_files(folder: Path, names: Iterable[str]) -> dict[str, Path]:
    """Return where the labels of each labeling lie."""
    return {name: folder / "labels" / f"{slug(name)}.parquet" for name in names}


def _check(folder: Path, config: Config, results: Sequence[Path]) -> None:
    """Refuse results of an unfinished run, and data that are not those of the run.

    Raises:
        DataError: labels, answers, queries, documents, runs or another input were changed, or are missing.
    """
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
