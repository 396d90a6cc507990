"""A third-party labeler or answer metric is a package with an entry point, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MODULE = '''
from dataclasses import dataclass
from typing import ClassVar

from judgekit.answers.quality import ReferenceMetric
from judgekit.data.labelings import Scale
from judgekit.labelers.base import Label, Needs, Unit, options
from judgekit.spec import Spec


@dataclass(frozen=True)
class Longest:
    """A document is relevant if it has at least so many characters."""

    kind: ClassVar[str] = "longest"
    least: int = 10

    @classmethod
    def make(cls, spec, context):
        return cls(**options(spec, ["least"]))

    spec = property(lambda self: Spec("longest", (("least", self.least),)))
    scale = property(lambda self: Scale("binary"))
    needs = property(lambda self: Needs())

    def units(self, query, docs):
        return [Unit(query, tuple(docs))]

    def requests(self, unit, replies):
        return []

    def label(self, unit, replies):
        return [Label(unit.query.query_id, d.doc_id, float(len(d.text) >= self.least)) for d in unit.docs]


@dataclass(frozen=True)
class Brief(ReferenceMetric):
    """An answer is good if it is no longer than the longest reference."""

    names: ClassVar[tuple[str, ...]] = ("NAMED",)
    name: ClassVar[str] = "NAMED"
    scale: ClassVar[Scale] = Scale("binary")

    @classmethod
    def make(cls, spec, endpoints):
        return cls()

    def compare(self, text, references):
        return float(len(text) <= max(map(len, references)))
'''

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "judgekit-longest"
version = "1.0"

[project.entry-points."judgekit.labelers"]
NAME = "judgekit_longest:Longest"

[project.entry-points."judgekit.answer_metrics"]
brief = "judgekit_longest:Brief"

[tool.hatch.build.targets.wheel]
packages = ["judgekit_longest.py"]
only-include = ["judgekit_longest.py"]
"""

USE = """
from pathlib import Path
from judgekit.data.documents import Doc, Query, Unit
from judgekit.labelers.base import build, checked, kinds

class Context:
    fields, docs = "title+text", None
    def endpoint(self, name): raise AssertionError
    def path(self, text): return Path(text)

labeler = build("longest(least=3)", Context())
unit = Unit(Query("q", "?"), (Doc("a", "long"), Doc("b", "x")))
assert build(str(labeler.spec), Context()) == labeler
from judgekit.answers.quality import catalog, metric
from judgekit.answers.reading import Answer
assert metric("brief").score(Answer("four"), Query("q", "?", ("4",))).value == 0.0
assert "brief" in catalog()
print("longest" in kinds(), [x.relevance for x in checked(labeler, unit, [])])
"""


def install(tmp_path: Path, name: str, metric: str = "brief") -> Path:
    """Install the plugin into a folder of its own, offline, with the build backend that is there."""
    source, target = tmp_path / "plugin", tmp_path / "site"
    source.mkdir()
    (source / "judgekit_longest.py").write_text(MODULE.replace("NAMED", metric))
    (source / "pyproject.toml").write_text(PROJECT.replace("NAME", name))
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def use(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(autouse=True)
def _hatchling() -> None:
    pytest.importorskip("hatchling", reason="building a plugin needs the build backend, hatchling")
    pytest.importorskip("pip", reason="installing a plugin needs pip")


def test_an_installed_package_adds_a_labeler_and_a_metric(tmp_path: Path) -> None:
    done = use(install(tmp_path, "longest"), USE)
    assert done.stdout == "True [1.0, 0.0]\n", done.stderr


def test_an_installed_package_cannot_replace_a_built_in_one(tmp_path: Path) -> None:
    site = install(tmp_path, "judge", "em")
    done = use(site, USE)
    assert "the labeler 'judge' of judgekit_longest:Longest has the name of a built-in one" in done.stderr
    done = use(site, "from judgekit.answers.quality import catalog; catalog()")
    assert "the answer metric 'em' of judgekit_longest:Brief has the name of another one" in done.stderr
