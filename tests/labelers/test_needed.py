"""Need in the list: what an answer loses where one document is left out, by hand and in a run."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import build
from judgekit.wire.types import Failure, Request
from tests.labelers.scripted import Here, Says, play
from tests.mock import MockTransport
from tests.small import FILES, MOCK, QUICK, RUNS, make_experiment, toml

QUERY = Query("q", "Who built it?", ("Ada",))
ADA, BOB, MILL, FAR = (
    Doc(name, text) for name, text in (("a", "By Ada."), ("b", "By Bob."), ("m", "Mill."), ("f", "X"))
)


def reads(request: Request) -> Says:
    """Believes Bob's passage more than Ada's, and knows nothing else."""
    prompt = json.loads(request.body)["messages"][-1]["content"]
    return "Bob" if "By Bob." in prompt else "Ada" if "By Ada." in prompt else "unknown"


def labels(*docs: Doc, spec: str = "needed", query: Query = QUERY) -> dict[str, float | None]:
    played = play(build(spec, Here()), Unit(query, docs), reads)
    return {label.doc_id: label.relevance for label in played.labels}


def test_a_document_is_needed_or_breaks_the_answer() -> None:
    # From Ada's passage and the mill's the answer is right; without Ada's it is not.
    assert labels(ADA, MILL) == {"a": 1.0, "m": 0.0}
    # Bob's passage breaks it: without it the answer is right. Without Ada's it stays wrong.
    assert labels(ADA, BOB, MILL) == {"a": 0.0, "b": -1.0, "m": 0.0}
    # Either of two that say the same stands for the other.
    assert labels(ADA, Doc("a2", "By Ada. Yes.")) == {"a": 0.0, "a2": 0.0}
    # Of a list of one the other answer is closed book.
    assert labels(ADA) == {"a": 1.0}


def test_only_the_list_has_labels() -> None:
    played = play(build("needed(top=2)", Here()), Unit(QUERY, (ADA, MILL, FAR)), reads)
    assert [(label.relevance, label.status) for label in played.labels] == [
        (1.0, Status.OK),
        (0.0, Status.OK),
        (None, Status.UNASKED),
    ]
    assert "not among the first 2" in played.labels[2].reason
    assert len(played.waves[0]) == 3
    assert played.labels[0].extra == {"answer": "Ada", "answer_without": "unknown"}


def test_what_cannot_be_rated_or_is_lost_has_no_label() -> None:
    played = play(build("needed", Here()), Unit(Query("q", "Who?"), (ADA,)))
    assert (played.waves, played.label.status) == ([], Status.NOT_APPLICABLE)
    down = Failure("k", Status.FAILED, "down")

    def loses(request: Request) -> Says:
        prompt = json.loads(request.body)["messages"][-1]["content"]
        return down if "By Ada." not in prompt else "Ada"

    lost = play(build("needed", Here()), Unit(QUERY, (ADA, MILL)), loses).labels
    assert [label.status for label in lost] == [Status.FAILED, Status.OK]
    assert "down" in lost[0].reason
    assert build("needed", Here()).needs.outcome_metric is None, "it is the outcome at no depth"
    assert str(build("needed", Here()).scale) == "signed"


class Counting(MockTransport):
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, endpoint: Any, body: bytes) -> Any:
        self.sent.append(body)
        return await super().send(endpoint, body)


def test_it_shares_its_requests_with_answers_and_with_the_other_labels(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    counting = Counting()
    data = {name: tmp_path / file for name, file in FILES.items()}
    runs = {"good": tmp_path / RUNS["good"]}
    llm = jk.Endpoint("local", transport=counting, **MOCK)
    asking = jk.Asking(cache=tmp_path / "cache")
    kinds = ["utility", "utility(variant=reads)", "utility(reference=own, top=3)", "needed(top=3)"]
    made = [jk.label(kind, runs=runs, depth=3, endpoints=llm, asking=asking, **data) for kind in kinds]
    jk.answer(runs=runs, depths=[1, 3], endpoints=llm, asking=asking, **data)
    assert len(counting.sent) == len(set(counting.sent)), "each body once"
    pairs, questions = len(made[0]), made[0].table["query_id"].nunique()
    # One for each pair, one for the whole list of each question, and one for each list without a passage.
    assert len(counting.sent) == pairs + questions + 3 * questions
    with pytest.raises(UsageError, match="looks at all documents of a question"):
        jk.label("needed", runs=runs, depth=3, endpoints=llm, known={"k": {"q0": {"d0a": 1}}}, asking=asking, **data)


def test_a_run_compares_it_and_says_that_it_asks_the_answering_model(tmp_path: Path) -> None:
    make_experiment(tmp_path)
    labelers = [{"kind": "containment"}, {"name": "needed", "kind": "needed", "top": 4}]
    (tmp_path / "experiment.toml").write_text(
        toml(
            data=FILES | {"depth": 4},
            runs=RUNS,
            endpoints={"local": MOCK},
            labelers=labelers,
            answers={"depths": [4]},
            metrics={"measures": ["nDCG", "P"]},
            analysis=QUICK | {"primary": "P@4"},
        )
    )
    done = jk.run(tmp_path / "experiment.toml", out=tmp_path / "out", asking=jk.Asking(cache=tmp_path / "cache"))
    rows = done.comparison.table.query("labeling == 'needed'")
    assert len(rows)
    assert rows["flags"].str.contains("same_model").all()
    assert not rows["flags"].str.contains("by_construction").any()
    assert done.labelings["needed"].made["references"]


@pytest.mark.parametrize(
    ("runs", "own"), [(["good"], {"good"}), (["good", "poor"], set()), (["good", "same"], {"good", "same"})]
)
def test_labels_made_from_a_run_s_own_lists_are_flagged_and_decide_nothing(
    tmp_path: Path, runs: list[str], own: set[str]
) -> None:
    make_experiment(tmp_path)
    (tmp_path / "same.trec").write_bytes((tmp_path / RUNS["good"]).read_bytes())
    files = {name: f"{name}.trec" for name in runs}
    (tmp_path / "experiment.toml").write_text(
        toml(
            data=FILES | {"depth": 3},
            runs=files,
            endpoints={"local": MOCK},
            labelers=[{"kind": "containment"}, {"name": "needed", "kind": "needed", "top": 3}],
            answers={"depths": [2, 3]},
            metrics={"measures": ["nDCG"]},
            analysis=QUICK | {"primary": "nDCG@3"},
        )
    )
    done = jk.run(tmp_path / "experiment.toml", out=tmp_path / "out", asking=jk.Asking(cache=tmp_path / "cache"))
    rows = done.comparison.table
    rows = rows[rows["flags"].str.contains("own_list") & (rows["run"] != "all")]
    assert {(*row,) for row in rows[["labeling", "run", "depth"]].to_numpy()} == {("needed", run, 3) for run in own}
    # Of two equal runs nothing is said at all.
    followers = {claim.subject for claim in done.comparison.decision.claims if claim.kind == "follows"}
    assert ("needed" in followers) == (runs == ["good", "poor"])
    # What decides nothing needs no caution beside the word that it is left out.
    claims = done.comparison.decision.claims
    shares = {claim.qualifies for claim in claims if (claim.kind, claim.subject) == ("shares", "needed")}
    if runs == ["good"]:
        assert shares == {""}
    elif runs == ["good", "poor"]:
        assert shares == {": needed"}
