"""The bundled sample experiment."""

from pathlib import Path
from typing import Final

__all__ = ["EXPERIMENT"]

EXPERIMENT: Final = Path(__file__).with_name("experiment.toml")
"""The experiment file of the sample."""
