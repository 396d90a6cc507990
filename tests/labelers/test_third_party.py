"""A third-party labeler or answer metric is a class: in a notebook, in a file, or registered by a plug-in."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.answers.quality import METRICS, metric
from judgekit.answers.reading import Answer
from judgekit.catalog import About, about
from judgekit.data.documents import Fields, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import LABELERS, Label, Needs, build
from judgekit.labelers.contract import checked
from judgekit.registry import register
from judgekit.settings import setting
from judgekit.spec import parse, run_file
from judgekit.wire.types import Request
from tests.labelers.scripted import Here, play
from tests.small import edited

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "examples/plugin"
QUERY = jk.Query("q", "?", ("4",))
UNIT = Unit(QUERY, (jk.Doc("a", "long"), jk.Doc("b", "x")))


MINE = run_file(PLUGIN / "judgekit_lengths.py")
Longest, Brief = MINE.Longest, MINE.Brief


def test_fields_are_the_options_and_the_spelling_follows_from_the_defaults() -> None:
    assert [str(one.spec) for one in (Longest(), Longest(10), Longest(3))] == ["longest", "longest", "longest(least=3)"]
    does = "A document is relevant if it has at least so many characters"
    assert about(Longest) == About(does, "binary", "nothing", "nothing", {"least": "the fewest characters (10)"})


def test_what_is_no_labeler_ends_in_a_sentence() -> None:
    mistakes: list[tuple[Any, str]] = [
        *((Longest(least=odd), f"longest.*least must be a whole number, not {odd!r}") for odd in ("3", True, None)),  # type: ignore[arg-type]
        (Longest, "give a labeler as a spelling or an instance, such as Mine"),
        (3, "give a labeler as a spelling or an instance"),
    ]
    for given, message in mistakes:
        with pytest.raises(UsageError, match=message):
            build(given, Here())


def test_a_class_says_what_it_lacks() -> None:
    def labeler(name: str, **own: Any) -> Any:
        return type(name, (jk.Labeler,), {"scale": "binary", **own})

    unscaled = labeler("Unscaled", scale=jk.Labeler.scale, relevance=lambda *_: 1.0)
    listed = dataclass(frozen=True)(labeler("Listed", words=(), __annotations__={"words": tuple[str, ...]}))
    for kind, message in (
        (labeler("Silent"), "Silent labels nothing: define relevance"),
        (unscaled, "Unscaled declares no scale"),
        (
            labeler("Plain", __annotations__={"least": int}),
            r"put @dataclass\(frozen=True\) .*, so that least is an option",
        ),
        (listed, r"Listed: the option words is a .*; an option is a bool, int, float, str"),
    ):
        with pytest.raises(UsageError, match=message):
            build(kind(), Here())
    with pytest.raises(UsageError, match="'stars' is not a scale"):
        labeler("Starred", scale="stars")


def test_a_labeler_says_how_relevant_a_document_is_or_that_it_does_not_apply() -> None:
    class Graded(jk.Labeler):
        scale = "grades:3"

        def relevance(self, query: jk.Query, doc: jk.Doc) -> Any:
            return {"a": None, "b": 2, "c": 7, "d": "2"}[doc.doc_id]

    def label(*doc_ids: str) -> list[tuple[float | None, Status]]:
        unit = Unit(QUERY, tuple(jk.Doc(doc_id, "") for doc_id in doc_ids))
        return [(one.relevance, one.status) for one in checked(Graded().bound(Here()), unit, [])]

    assert label("a", "b") == [(None, Status.NOT_APPLICABLE), (2.0, Status.OK)]
    for doc_id, message in (
        ("c", r"labeler graded: .* is off the scale: 7 is outside"),
        ("d", "graded, query 'q', doc 'd': '2' is not a number"),
        ("e", r"graded, query 'q', doc 'e': KeyError: .* \(test_third_party.py, line"),
    ):
        with pytest.raises(UsageError, match=message):
            label(doc_id)


def test_a_labeler_that_asks_an_llm_overrides_requests_and_label() -> None:
    @dataclass(frozen=True)
    class Asks(jk.Labeler):
        scale = "binary"
        endpoint: str | None = None
        fields: Fields | None = None

        def requests(self, unit: Unit, replies: Any, /) -> list[Request]:
            return [] if replies else [Request(self.context.endpoint(self.endpoint), b'{"model":"m"}')]

        def label(self, unit: Unit, replies: Any, /) -> list[Label]:
            return [Label(unit.query.query_id, unit.docs[0].doc_id, float(replies[0].text == "Yes"))]

    asks = build(Asks("x"), Here())
    assert [len(unit.docs) for unit in asks.units(QUERY, UNIT.docs)] == [1, 1]
    assert asks.needs == Needs(endpoints=(Here().endpoint("x"),)), "so that its kinship with the answers is seen"
    assert play(asks, Unit(QUERY, UNIT.docs[:1]), ["Yes"]).label.relevance == 1.0
    assert str(build(Asks(), Here(fields="text")).spec) == "asks(fields=text)"
    assert build(Asks(), Here(fields="text")).rendering == "text"


def test_a_labeler_made_from_a_built_in_one_has_a_name_and_the_options_of_its_own() -> None:
    from judgekit.labelers.judge import Judge

    @dataclass(frozen=True)
    class Strict(Judge):
        """An LLM says so twice."""

        samples: int = setting(2, least=1)

    strict = build(Strict(prompt="graded"), Here())
    assert str(strict.spec) == "strict(prompt=graded)"
    assert about(Strict).does == "An LLM says so twice"
    assert about(Strict).options["samples"] == about(Judge).options["samples"] != ""


def test_an_answer_metric_is_a_class_too() -> None:
    class Wild(Brief):  # type: ignore[misc, valid-type]  # it comes from a file
        def compare(self, text: str, references: Any) -> float:
            return 1 / 0 if text == "x" else 2.0

    assert metric(Brief()).score(Answer("four"), QUERY).value == 0.0
    assert metric(Brief()).score(Answer("4"), QUERY).value == 1.0
    assert metric(Brief()).score(Answer("4"), jk.Query("q", "?")).status is Status.NOT_APPLICABLE
    for text, message in (("4", "2 is outside the scale"), ("x", "ZeroDivisionError")):
        with pytest.raises(UsageError, match=f"wild, query 'q': {message}"):
            metric(Wild()).score(Answer(text), QUERY)


# In a file.


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "mine.py").write_bytes((PLUGIN / "judgekit_lengths.py").read_bytes())
    (tmp_path / "broken.py").write_text("x = 1\n1 / 0\n")
    (tmp_path / "named.py").write_text("import judgekit\n\nclass Judge(judgekit.Labeler):\n    scale = 'binary'\n")
    return Here(tmp_path)


def test_a_spelling_may_begin_with_a_file(here: Here) -> None:
    labeler = build("mine.py:Longest(least=3)", here)
    assert str(labeler.spec) == "longest(least=3)"
    assert [label.relevance for label in checked(labeler, UNIT, [])] == [1.0, 0.0]
    assert build("mine.py:Longest(least=3)", here) == labeler
    assert metric("mine.py:Brief(times=3)", here).name == "brief(times=3.0)"
    utility = build("utility(quality='mine.py:Brief')", here)
    assert str(utility.spec) == "utility(quality='mine.py:Brief')"
    assert build(parse(str(utility.spec)), here) == utility


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("mine.py:Longst", r"mine.py: unknown labeler 'Longst': choose from Longest. Did you mean 'Longest'\?"),
        ("mine.py:Brief", r"mine.py: unknown labeler 'Brief'"),
        ("other.py:Longest", "cannot read .*other.py"),
        ("mine.py:Longest(most=1)", r"Longest\(most=1\): unknown option 'most': choose from least"),
        ("broken.py:Longest", r"broken.py: ZeroDivisionError: .* \(broken.py, line 2\)"),
        ("named.py:Judge", "named.py: the labeler Judge has the kind of a built-in one, 'judge'"),
    ],
)
def test_what_a_file_lacks_ends_in_a_sentence(spelling: str, message: str, here: Here) -> None:
    with pytest.raises(UsageError, match=message):
        build(spelling, here)


# In a package.


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed into a folder of its own, offline, with the build backend that is there."""
    pytest.importorskip("hatchling", reason="building a plugin needs the build backend, hatchling")
    pytest.importorskip("pip", reason="installing a plugin needs pip")
    target = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(PLUGIN)]
    subprocess.run(command, check=True, capture_output=True)
    return target


@pytest.mark.more
def test_an_installed_package_adds_a_labeler_a_metric_a_step_and_a_command(site: Path, tmp_path: Path) -> None:
    code = f"""
import contextlib, os; os.chdir({str(tmp_path)!r})
from judgekit.answers.quality import catalog, metric
from judgekit.cli import main
from judgekit.client.asking import Asking
from judgekit.experiment.file import load
from judgekit.experiment.run import run
from judgekit.labelers.base import build, kinds
from judgekit.sample import EXPERIMENT
labeler = build("longest(least=3)", None)
assert build(str(labeler.spec), None) == labeler
assert metric("brief(times=3)").name == "brief(times=3.0)" and "brief" in catalog() and "longest" in kinds()
few = load(EXPERIMENT).updated(data={{"limit": 2}}, analysis={{"resamples": 100}})
run(few, out="out", asking=Asking(cache="store"))
for words in (["lengths", "out"], ["list", "labelers"]):
    with contextlib.suppress(SystemExit):
        main(words)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    table = (tmp_path / "out" / "lengths.csv").read_text()
    assert table in done.stdout
    header, *rows = table.splitlines()
    assert header == "labeling,relevance,docs,characters"
    assert len({row.rpartition(",")[0] for row in rows}) == len(rows) > 2
    assert "How many characters documents have" in (tmp_path / "out" / "report.html").read_text()
    assert "longest: A document is relevant if it has at least so many characters" in done.stdout
    assert "least=    the fewest characters (10)" in done.stdout


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have a module on the path whose classes a plug-in registers under some kinds."""
    (tmp_path / "judgekit_lengths.py").write_bytes((PLUGIN / "judgekit_lengths.py").read_bytes())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(register, "spelled", [])
    monkeypatch.delitem(sys.modules, "judgekit_lengths", raising=False)
    return partial(register.spellings, "judgekit_lengths")


def test_a_registered_kind_is_found_by_its_name(offered: Callable[..., None]) -> None:
    offered()
    assert LABELERS.catalog()["longest"].options == {"least": "the fewest characters (10)"}
    assert str(build("longest(least=3)", None).spec) == "longest(least=3)"
    assert "longest" not in METRICS.kinds()
    assert metric("brief(times=3)").name == "brief(times=3.0)"


def test_a_registered_kind_has_a_name_of_its_own(offered: Callable[..., None], tmp_path: Path) -> None:
    edited(tmp_path / "judgekit_lengths.py", 'kind = "longest"', 'kind = "judge"')
    offered()
    with pytest.raises(UsageError, match="the labeler 'judge' of judgekit_lengths has a name that is taken"):
        LABELERS.catalog()
