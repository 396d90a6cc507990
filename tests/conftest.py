"""Fixtures for all tests: isolation from the user's files, and an optional larger collection."""

import gc
import os
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from judgekit.experiment import trust
from judgekit.registry import register
from tests.servers import fault_server
from tests.small import folder, judgekit

__all__ = ["fault_server", "folder", "judgekit"]  # a fixture is found where its name is

ROOT = Path(__file__).resolve().parent.parent
CHECK = trust.check

# A busy machine is no failure. CI tries the same examples each time, people others.
SAME = bool(os.environ.get("CI"))
settings.register_profile("few", deadline=None, max_examples=15, derandomize=SAME)
settings.register_profile("many", deadline=None, max_examples=120, derandomize=SAME)
settings.load_profile("few")

# A suite holds many objects to its end: to look through them for cycles as often as Python does takes 4 % of its time.
gc.set_threshold(50_000, 20, 50)


SHARED = ("demo", "real_endpoint", "litellm_proxy", "vllm", "dist", "site")
"""Fixtures that take seconds to make: tests with one of them run in one process, where several run side by side."""

MORE = ("tests/integration/", "tests/test_notebooks.py", "tests/report/test_report_accessibility.py")
"""Real servers, notebooks and axe: run by `make test-more`, as is what stands under the mark itself."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        for name in SHARED:
            if name in fixtures:
                item.add_marker(pytest.mark.xdist_group(name))
        if "larger_collection" in fixtures:
            item.add_marker(pytest.mark.collection)
        if {"chromium", "browser"} & set(fixtures):
            item.add_marker(pytest.mark.browser)
        if item.nodeid.startswith(MORE):
            item.add_marker(pytest.mark.more)


@pytest.fixture(scope="session")
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store folder per test, made by the few tests that use theirs."""
    folder = tmp_path_factory.mktemp("caches")
    return (folder / str(number) for number in count())


@pytest.fixture(scope="session", autouse=True)
def _trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests write the experiments that they run, and need not confirm them; `untrusting` is for those that do."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        patched.setattr(trust, "check", lambda *_: None)
        yield


@pytest.fixture
def untrusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a configuration that confirms nothing, which counts in this test."""
    monkeypatch.setattr(trust, "check", CHECK)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv(trust.VARIABLE, raising=False)
    return tmp_path / "config" / "judgekit"


@pytest.fixture(autouse=True)
def _isolated(_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's cache, keys or terminal settings, or leaves forms of data behind."""
    monkeypatch.setattr(register, "forms", {**register.forms})
    monkeypatch.setenv("JUDGEKIT_CACHE", str(next(_caches)))
    monkeypatch.setenv("COLUMNS", "160")
    for name in ("OPENAI_API_KEY", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def ignored_interrupt() -> Iterator[None]:
    """This process ignores SIGINT, as one that a shell started with ``&`` does; its children inherit that."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def larger_collection() -> Path:
    """A larger collection than the sample, in the same form, with the passages of real questions.

    It is no part of the project: a test that reads it stands beside one that reads the sample, and skips without it.
    """
    path = os.environ.get("JUDGEKIT_COLLECTION")
    if path is None:
        pytest.skip("needs a larger collection: set JUDGEKIT_COLLECTION to a folder laid out like judgekit/sample")
    return Path(path)
