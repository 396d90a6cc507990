"""Labels that are there before a labeler is asked: only the other pairs are asked about."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.data.trec import read_qrels
from judgekit.errors import DataError, UsageError
from judgekit.progress import Event
from tests.commands import Judgekit
from tests.mock import MockTransport
from tests.small import FILES, MOCK, RUNS


class Counting(MockTransport):
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, endpoint: Any, body: bytes) -> Any:
        self.sent.append(body)
        return await super().send(endpoint, body)


def labelled(folder: Path, counting: Counting, spec: str = "judge", **options: Any) -> jk.Labeling:
    data = {name: folder / file for name, file in FILES.items()}
    runs = {"good": folder / RUNS["good"]}
    llm = jk.Endpoint("local", transport=counting, **MOCK)
    return jk.label(spec, runs=runs, depth=4, endpoints=llm, **data, **options)


def values(labeling: jk.Labeling) -> dict[tuple[str, str], float]:
    table = labeling.table
    return dict(zip(zip(table["query_id"], table["doc_id"], strict=True), table["relevance"], strict=True))


@pytest.fixture
def known(folder: Path) -> Path:
    """Labels of all first passages and of one second one, of which the judge would say the contrary, and of another."""
    file = folder / "known.qrels"
    file.write_text("".join(f"q{i} 0 d{i}a 0\n" for i in range(6)) + "q0 0 d0b 1\nq0 0 gone 1\n")
    return file


def test_only_what_is_not_known_is_asked_and_what_is_known_stays(folder: Path, known: Path) -> None:
    whole, part = Counting(), Counting()
    asking = jk.Asking(cache=folder / "one")
    fresh = labelled(folder, whole, asking=asking)
    mixed = labelled(folder, part, known=known, asking=jk.Asking(cache=folder / "two"))
    kept = {(f"q{i}", f"d{i}a"): 0.0 for i in range(6)} | {("q0", "d0b"): 1.0}
    assert len(part.sent) == len(whole.sent) - len(kept)
    assert set(part.sent) < set(whole.sent)
    assert values(mixed) == values(fresh) | kept
    assert values(fresh) != values(mixed)
    flags = mixed.table.set_index(["query_id", "doc_id"])["known"]
    assert {pair for pair, flag in flags.items() if flag} == set(kept)
    assert mixed.made["costs"]["requests"] == len(part.sent)
    assert mixed.made["pairs"] == len(part.sent), "a label's price is that of those that were asked for"


@pytest.mark.parametrize("form", ["labeling", "frame", "dict"])
def test_any_form_of_a_labeling_is_taken(folder: Path, known: Path, form: str) -> None:
    labeling = read_qrels(known, scale=jk.Scale.parse("binary"))
    frame = labeling.table[["query_id", "doc_id", "relevance"]]
    as_dict: dict[str, dict[str, float]] = {}
    for query_id, doc_id, relevance in frame.itertuples(index=False):
        as_dict.setdefault(query_id, {})[doc_id] = relevance
    held = {"labeling": labeling, "frame": frame, "dict": {"known": as_dict}}[form]
    asking = jk.Asking(cache=folder / "cache")
    assert values(labelled(folder, Counting(), known=held, asking=asking)) == values(
        labelled(folder, Counting(), known=known, asking=asking)
    )


def test_a_labeler_that_asks_nobody_takes_them_as_well(folder: Path, known: Path) -> None:
    found = values(labelled(folder, Counting(), "containment", known=known))
    assert found["q1", "d1a"] == 0.0
    assert found["q0", "d0b"] == 1.0


def test_what_does_not_go_together_is_refused_before_anything_is_asked(folder: Path, known: Path) -> None:
    counting = Counting()
    with pytest.raises(UsageError, match="looks at all documents of a question"):
        labelled(folder, counting, "utility(reference=own)", known=known)
    with pytest.raises(UsageError, match="it only reads existing labels itself"):
        labelled(folder, counting, f"provenance(qrels='{folder}/gold.qrels')", known=known)
    (folder / "grades.qrels").write_text("q0 0 d0a 3\n")
    with pytest.raises(DataError, match=r"grades\.qrels, line 1") as caught:
        labelled(folder, counting, known=folder / "grades.qrels")
    assert caught.value.line == 1
    frame = pd.DataFrame({"query_id": ["q0"], "doc_id": ["d0a"], "relevance": [3.0]})
    with pytest.raises(DataError, match="known label of query 'q0', doc 'd0a'"):
        labelled(folder, counting, known=frame)
    (folder / "other.qrels").write_text("q0 0 elsewhere 1\n")
    with pytest.raises(DataError, match="holds no label of a pair of these runs"):
        labelled(folder, counting, known=folder / "other.qrels")
    assert not counting.sent


def test_the_command_counts_them_and_the_file_holds_all(judgekit: Judgekit, folder: Path, known: Path) -> None:
    words = [
        "label",
        "judge",
        "--queries",
        "queries.jsonl",
        "--docs",
        "docs.jsonl",
        "--run",
        "good.trec",
        "--depth",
        "4",
    ]
    server = ["--endpoint", MOCK["base_url"], "--model", "mock", "--out", "new.qrels"]
    planned = judgekit(*words, *server, "--known", "known.qrels", "--dry-run", code=0)
    assert "11" in planned.out
    said = judgekit(*words, *server, "--known", "known.qrels", code=0)
    told = " ".join((said.out + said.err).split())
    assert "7 of 18 pairs keep the label that known.qrels has; 11 are labelled now" in told
    assert "1 labels of known.qrels are left out: their pairs are not in this pool" in told
    assert len(read_qrels(folder / "new.qrels")) == 18
    assert "known.qrels" in (folder / "new.qrels.manifest.json").read_text()


def test_labels_of_0_and_1_are_doubted_beside_a_wider_scale(folder: Path, known: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    asking = jk.Asking(cache=tmp_path / "store", progress=events.append)
    job = jk.label.job
    data = {name: folder / file for name, file in FILES.items()} | {"runs": {"good": folder / RUNS["good"]}}
    llm = jk.Endpoint("local", **MOCK)
    graded = job("judge(prompt=graded)", **data, depth=4, endpoints=llm, known=known, asking=asking)
    assert any("are all 0 or 1, but judge(prompt=graded) labels on the scale grades:3" in note for note in graded.notes)
    binary = job("judge", **data, depth=4, endpoints=llm, known=known, asking=asking)
    assert not any("all 0 or 1" in note for note in binary.notes)
