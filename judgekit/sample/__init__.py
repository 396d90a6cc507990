"""The bundled sample experiment: questions, passages, provenance, six runs, an experiment file. See its README.md.

The texts were written for judgekit. It needs no server: the replies of a small real model are recorded beside it.
"""

from pathlib import Path
from typing import Final

__all__ = ["EXPERIMENT"]

EXPERIMENT: Final = Path(__file__).with_name("experiment.toml")
"""The experiment file of the sample; the data lie beside it."""
