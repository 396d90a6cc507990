"""A finished experiment, read again: its data, its labels and its answers, if they are still those of the run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from judgekit.data.files import read_table
from judgekit.data.labelings import Labeling
from judgekit.data.manifest import MANIFEST, mismatches, sources
from judgekit.data.streams import read_bytes
from judgekit.data.tables import LABELS, QUALITY
from judgekit.errors import DataError
from judgekit.experiment.file import Config, load, parse_config
from judgekit.experiment.prepare import Prepared, prepare
from judgekit.experiment.run import result_files
from judgekit.spec import slug

__all__ = ["Opened", "config_of", "open_results"]

_ANCHOR: Final = "# Paths are relative to "


@dataclass(frozen=True)
class Opened:
    """An experiment, and what is there of its results.

    Attributes:
        prepared: the experiment.
        labelings: by name; none of an experiment that was not run.
        quality: the answers, or None.
    """

    prepared: Prepared
    labelings: Mapping[str, Labeling]
    quality: pd.DataFrame | None


def config_of(folder: Path) -> Config:
    """Return the experiment that a folder of results came from.

    Raises:
        ConfigError, DataError: there is none.
    """
    path = folder / "resolved.toml"
    text = read_bytes(path, "the experiment of a folder that `judgekit run` wrote").decode(errors="replace")
    first, _, _ = text.partition("\n")
    if not first.startswith(_ANCHOR):
        raise DataError("does not begin with the folder that its paths are relative to: run the experiment again", path)
    return parse_config(tomllib.loads(text), Path(first.removeprefix(_ANCHOR)) / path.name)


def open_results(source: Path) -> Opened:
    """Read an experiment file, or a folder of results with its labels and answers.

    Raises:
        ConfigError, DataError: it is neither, the run was not finished, or something was changed since.
    """
    if not source.is_dir():
        return Opened(prepare(load(source), keys=False), {}, None)
    config = config_of(source)
    prepared = prepare(config, keys=False)
    files = {name: source / "labels" / f"{slug(name)}.parquet" for name in prepared.labelers}
    answers = next(source / name for name in result_files(prepared) if name.startswith("answers/"))
    _check(source, config, [*files.values(), answers])
    labelings = {
        name: Labeling(name, prepared.labelers[name].scale, read_table(LABELS, path)) for name, path in files.items()
    }
    return Opened(prepared, labelings, read_table(QUALITY, answers))


def _check(folder: Path, config: Config, results: list[Path]) -> None:
    """Refuse data that are not those of the run.

    Raises:
        DataError: the run was not finished, or labels, answers, queries, documents or runs were changed or removed.
    """
    manifest = folder / MANIFEST
    try:
        content = json.loads(read_bytes(manifest, "the manifest of a folder that `judgekit run` wrote"))
        made = dict(content["results"])
    except (ValueError, KeyError, TypeError):
        raise DataError(
            "is damaged, so nobody knows what these results are of: run the experiment again", manifest
        ) from None
    lost = next((path for path in (*results, *config.files().values()) if not path.exists()), None)
    if lost is not None:
        raise DataError("is missing: run the experiment again", lost)
    now = sources({**config.files(), **{path.relative_to(folder).as_posix(): path for path in results}})
    for path in results:
        key = path.relative_to(folder).as_posix()
        if key not in made:
            raise DataError("the run was not finished: start it again, and it goes on", folder)
        if made[key] != now[key].sha256:
            raise DataError("was changed after the run: run the experiment again", path)
    problems = mismatches(now)
    if problems:
        raise DataError(f"{'; '.join(problems)}. Run the experiment again", folder)
