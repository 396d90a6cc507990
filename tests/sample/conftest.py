"""The demo, run once for all tests of this folder."""

from pathlib import Path

import pytest

from judgekit.client.asking import Asking
from judgekit.experiment.run import RunResult, run
from judgekit.sample import EXPERIMENT


@pytest.fixture(scope="session")
def demo_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample-cache")


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sample")


@pytest.fixture(scope="session")
def demo(demo_folder: Path, demo_cache: Path) -> RunResult:
    return run(EXPERIMENT, out=demo_folder, asking=Asking(cache=demo_cache))
