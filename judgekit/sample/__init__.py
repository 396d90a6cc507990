"""The bundled sample: questions, passages, provenance, six runs, three experiment files. See its README.md.

The texts were written for judgekit. It needs no server: the replies of small real models are recorded beside it.
"""

import shutil
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = ["EXPERIMENT", "EXPERIMENTS", "LABELERS", "write_tutorial"]

EXPERIMENT: Final = Path(__file__).with_name("experiment.toml")
"""The experiment file of the sample; the data lie beside it."""

LABELERS: Final = EXPERIMENT.with_name("labelers.toml")
"""The experiment file that compares every labeler on the same data."""

EXPERIMENTS: Final = MappingProxyType({"minilm": EXPERIMENT, "smollm2": EXPERIMENT.with_name("smollm2.toml")})
"""The experiments whose replies are recorded, by what `judgekit demo --model` calls their model."""

_TUTORIAL: Final = {
    "questions.jsonl": "queries.jsonl",
    "passages.jsonl": "docs.jsonl",
    "full.trec": "runs/tfidf.trec",
    "titles.trec": "runs/bm25_title.trec",
    "thumbs.csv": "thumbs.csv",
}
"""The files of the tutorial's folder, and what they are in the sample."""


def write_tutorial(folder: Path) -> None:
    """Write questions, passages, two runs and thumbs into a folder of their own; one that is there stays as it is."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for name, source in _TUTORIAL.items():
        shutil.copyfile(EXPERIMENT.parent / source, folder / name)
