"""The bundled sample experiment: questions, passages, provenance, six runs and an experiment file. See its README.md.

Everything in it was written for judgekit. It needs no server: the experiment file names the offline stand-in.
"""

from pathlib import Path
from typing import Final

__all__ = ["EXPERIMENT"]

EXPERIMENT: Final = Path(__file__).with_name("experiment.toml")
"""The experiment file of the sample; the data lie beside it."""
