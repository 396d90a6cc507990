"""Every labeler side by side on the sample, offline: none is missing, and what is the same is asked once."""

import re
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.client.asking import Asking
from judgekit.client.transports import recorded
from judgekit.data.runs import fused
from judgekit.data.trec import read_run
from judgekit.experiment.run import RunResult, run
from judgekit.sample import EXPERIMENT, LABELERS
from judgekit.store.replies import Store

# Both experiments run in the first of these tests: half a minute, minutes on a busy machine.
pytestmark = pytest.mark.timeout(1200)
PAGE = Path(__file__).parents[2] / "docs" / "labelers.md"


@pytest.fixture(scope="module")
def labelers(tmp_path_factory: pytest.TempPathFactory, demo: RunResult, demo_cache: Path) -> RunResult:
    """Run it on the demo's replies, so that only what the demo does not ask is new."""
    return run(LABELERS, out=tmp_path_factory.mktemp("labelers"), asking=Asking(cache=demo_cache))


def test_all_of_them_label_the_sample_offline(labelers: RunResult) -> None:
    assert labelers.missing == ()
    names = ["containment", "provenance", "rerank", "judge", "erag", "reads", "own", "distraction", "needed"]
    assert list(labelers.labelings) == names


def test_only_requests_that_the_demo_does_not_make_are_new(labelers: RunResult, demo_cache: Path) -> None:
    with closing(Store(demo_cache)) as store:
        asked = {key[:16] for key, _ in store.texts()}
    assert asked == set(recorded()[1]), "all are recorded, and none besides"
    sent = {info.name: info.spending.incurred.requests for info in labelers.results.labelings}
    pairs = len(labelers.labelings["rerank"])
    assert {name: sent[name] for name in ("judge", "erag", "reads", "distraction")} == dict.fromkeys(
        ("judge", "erag", "reads", "distraction"), 0
    )
    assert sent["rerank"] == pairs
    (rerank,) = [info for info in labelers.results.labelings if info.name == "rerank"]
    assert (rerank.spending.standalone.unreported, rerank.spending.standalone.completion_tokens) == (0, 0)
    # Where the list of all runs together is the list of one of them, its answer is known.
    runs = [read_run(path) for path in sorted((EXPERIMENT.parent / "runs").glob("*.trec"))]
    questions = labelers.labelings["own"].table["query_id"].unique()
    known = [any(list(one.top(query, 5)) == fused(runs, query, 10)[:5] for one in runs) for query in questions]
    assert sent["own"] == len(questions) - sum(known)
    assert 0 < sent["needed"] <= 5 * len(questions), "the answers from the whole lists are those of own"


def test_the_page_shows_what_this_run_finds(labelers: RunResult) -> None:
    said = labelers.comparison.decision.of("follows").set_index("subject")["value"]
    section = PAGE.read_text(encoding="utf-8").split("## Compare them on the sample")[1].split("\n## ")[0]
    written = {name: float(r) for name, r in re.findall(r"^\| `(\w+)` \| (-?\.\d+) \|", section, re.MULTILINE)}
    assert written == {name: pytest.approx(said[name], abs=0.0051) for name in said.index}
    flagged = labelers.comparison.table
    assert set(flagged.loc[flagged["flags"].str.contains("no_reference"), "labeling"]) == {"reads", "own"}
