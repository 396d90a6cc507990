import shutil
from pathlib import Path

import pytest

from judgekit.client.asking import Asking
from judgekit.experiment.run import run
from tests.small import edited, make_experiment


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the small experiment, made once for all tests."""
    made = make_experiment(tmp_path_factory.mktemp("made"))
    run(made / "experiment.toml", out=made / "out", asking=Asking(cache=made / "store"))
    return made


@pytest.fixture
def finished(made: Path, folder: Path) -> Path:
    """The small experiment with its results in ``out`` and its replies in ``store``."""
    for name in ("out", "store"):
        shutil.copytree(made / name, folder / name)
    edited(folder / "out" / "resolved.toml", str(made), str(folder))
    return folder
