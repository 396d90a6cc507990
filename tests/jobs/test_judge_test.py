"""Testing a judge by people's labels: what is asked, what is said of it, and where it stops."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

import judgekit as jk
from judgekit.errors import DataError, UsageError
from judgekit.labelers.fitness import Fitness, Share, read_card, write_card
from judgekit.report import load
from judgekit.sample import EXPERIMENT
from tests.commands import Judgekit
from tests.mock import MockTransport
from tests.scripted import ScriptedTransport
from tests.small import FILES, MOCK, RUNS, edited

SAMPLE = EXPERIMENT.parent
PEOPLE = {f"q{i}": {f"d{i}a": 1, f"d{i}b": 0, f"d{(i + 1) % 6}c": 0} for i in range(6)}


class Counting(MockTransport):
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, endpoint: Any, body: bytes) -> Any:
        self.sent.append(body)
        return await super().send(endpoint, body)


def on_small(folder: Path, transport: Any, spec: str = "judge", **options: Any) -> Any:
    data = {name: folder / file for name, file in FILES.items()}
    given = {
        "qrels": {"people": PEOPLE},
        "runs": {name: folder / file for name, file in RUNS.items()},
        "depth": 4,
        "endpoints": jk.Endpoint("local", transport=transport, **MOCK),
        "asking": jk.Asking(cache=folder / "cache"),
        **data,
        **options,
    }
    return jk.judge_test(spec, **given)


def test_the_sample_is_tested_offline() -> None:
    runs = {path.stem: path for path in (SAMPLE / "runs").glob("*.trec")}
    llm = jk.Endpoint("reader", base_url="recorded:", model="minilm-l6-reader")
    data = {"queries": SAMPLE / "queries.jsonl", "docs": SAMPLE / "docs.jsonl"}
    gold = SAMPLE / "provenance.qrels"
    found = jk.judge_test("judge", qrels=gold, runs=runs, pairs=5000, endpoints=llm, **data)
    labels = jk.label("judge", runs=runs, endpoints=llm, **data).table
    assert (found.pairs, found.yes.called) == (len(labels), int(labels["relevance"].sum()))
    truth = jk.read_qrels(gold).table
    both = labels.merge(truth[truth["relevance"] >= 1], on=["query_id", "doc_id"], suffixes=("", "_people"))
    assert found.relevant == (len(both), int(both["relevance"].sum()))
    assert (found.other.of, found.agreement, found.order.runs) == (0, {}, 6)
    # The order of the runs by the means that `score` gives.
    scored = jk.score(runs, {"gold": gold, "judge": jk.Labeling("judge", jk.Scale.parse("binary"), labels)}, ["nDCG@5"])
    means = scored.means().pivot(index="run", columns="labeling", values="value")
    assert found.order.tau == pytest.approx(kendalltau(means["gold"], means["judge"]).statistic)
    assert found.order.low <= found.order.tau <= found.order.high
    assert found.per_1000["requests"] == 1000
    assert "There is no kappa" in " ".join(found.lines)


def test_kappa_and_shares_are_those_of_the_labels(folder: Path) -> None:
    counting = Counting()
    found = on_small(folder, counting)
    assert found.pairs == len(counting.sent) == 18
    asking = jk.Asking(cache=folder / "cache")
    data = {name: folder / file for name, file in FILES.items()}
    runs = {name: folder / file for name, file in RUNS.items()}
    llm = jk.Endpoint("local", transport=counting, **MOCK)
    judge = jk.label("judge", runs=runs, depth=4, endpoints=llm, asking=asking, **data)
    assert len(counting.sent) == 18, "what a test paid for is not paid again"
    table = jk.agree({"judge": judge, "people": PEOPLE}, people=["people"]).table.set_index(["on", "coefficient"])
    for name in ("kappa", "alpha"):
        assert found.agreement[name][0] == pytest.approx(table.loc[("relevance", name), "value"])
    called = judge.table.set_index(["query_id", "doc_id"])["relevance"]
    relevant = [called[f"q{i}", f"d{i}a"] for i in range(6)]
    assert found.relevant == (6, sum(relevant))
    assert found.other == (12, called.sum() - sum(relevant))


def test_a_judge_that_never_varies_is_stopped_after_twenty(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    docs = [{"doc_id": f"x{i}", "text": f"Passage {i}."} for i in range(60)]
    people = {row["query_id"]: {f"x{10 * i + j}": int(j == 0) for j in range(10)} for i, row in enumerate(lines)}
    always = ScriptedTransport("No")
    found = on_small(folder, always, qrels={"people": people}, docs=docs, runs=None)
    assert len(always.sent) == found.pairs == 20
    assert found.stopped == "the first 20 labels are all 0"
    assert found.order is None
    # Relevant pairs stand among the first ones, all that there are.
    assert found.relevant == (6, 0)
    down = ScriptedTransport("Hm.")
    nothing = on_small(
        folder, down, qrels={"people": people}, docs=docs, runs=None, asking=jk.Asking(cache=folder / "2")
    )
    assert nothing.stopped == "no reply could be used"
    assert nothing.missing == 20
    said = " ".join(nothing.lines)
    assert "None of its replies could be read" in said
    assert "People judged" not in said
    assert "0%" not in said


def test_whole_questions_are_drawn_and_the_seed_says_which(folder: Path) -> None:
    some = [
        on_small(folder, Counting(), pairs=7, seed=seed, asking=jk.Asking(cache=folder / str(seed)))
        for seed in (1, 1, 2)
    ]
    assert {one.pairs for one in some} <= {6, 7}
    assert some[0].questions == 2
    assert some[0].card() == some[1].card()
    planned = jk.judge_test.plan(
        "judge",
        qrels={"people": PEOPLE},
        queries=folder / FILES["queries"],
        docs=folder / FILES["docs"],
        endpoints=jk.Endpoint("local", **MOCK),
        asking=jk.Asking(cache=folder / "plan"),
    )
    assert planned["all"].requests == 18, "without runs the pairs are those that people judged"


def test_what_cannot_be_tested_is_refused(folder: Path) -> None:
    counting = Counting()
    with pytest.raises(UsageError, match="name a labeler that looks at one at a time"):
        on_small(folder, counting, "utility(reference=own)")
    with pytest.raises(DataError, match="people judged none of these questions"):
        on_small(folder, counting, qrels={"people": {"elsewhere": {"d0a": 1}}})
    with pytest.raises(UsageError, match="one labeling"):
        on_small(folder, counting, qrels={"a": PEOPLE, "b": PEOPLE})
    assert not counting.sent


def test_the_command_writes_a_card(judgekit: Judgekit, folder: Path) -> None:
    rows = [(query, 0, doc, grade) for query, docs in PEOPLE.items() for doc, grade in docs.items()]
    pd.DataFrame(rows).to_csv(folder / "people.qrels", sep=" ", header=False, index=False)
    words = ["judge-test", "judge", "--qrels", "people.qrels", "--queries", "queries.jsonl", "--docs", "docs.jsonl"]
    words += ["--run", "good.trec", "--run", "poor.trec", "--depth", "4", "--endpoint", MOCK["base_url"]]
    said = judgekit(*words, "--model", "mock", "--out", "card.json", code=0)
    assert "Kappa with people" in said.out
    card = json.loads((folder / "card.json").read_text())
    assert (card["judgekit"], card["models"], card["pairs"]) == ("judge card", ["mock"], 18)
    assert card["relevant"]["of"] == 6
    graded = {q: {doc: grade + 1 for doc, grade in docs.items()} for q, docs in PEOPLE.items()}
    rows = [(query, 0, doc, grade) for query, docs in graded.items() for doc, grade in docs.items()]
    pd.DataFrame(rows).to_csv(folder / "graded.txt", sep=" ", header=False, index=False)
    words[3] = "gold=graded.txt"
    judgekit(*words, "--model", "mock", "--out", "two.json", "--scale", "gold=grades:3:2", code=0)
    assert json.loads((folder / "two.json").read_text())["relevant"] == card["relevant"]
    assert np.isfinite(card["agreement"]["kappa"][0])
    assert (folder / "card.json.manifest.json").exists()


def test_what_is_undefined_is_said_in_words(folder: Path) -> None:
    # Two runs with the same lists have the same scores under any labels.
    twin = {"good": folder / RUNS["good"], "twin": folder / RUNS["good"]}
    found = on_small(folder, MockTransport(), runs=twin)
    said = " ".join(found.lines)
    assert "nan" not in said
    assert "The order of 2 runs by nDCG@5 has no tau-b: the judge's labels or people's give all runs the same" in said
    assert "tau-b" not in found.cited("card.json")
    alike = replace(found, agreement={"kappa": (np.nan,) * 3, "alpha": (0.5, np.nan, np.nan)})
    said = " ".join(alike.lines)
    assert "There is no kappa: all labels of these pairs are the same. Alpha with people: 0.50." in said
    assert "kappa" not in alike.cited("card.json")
    write_card(found, folder / "twin.json")
    kept = read_card(folder / "twin.json").order
    assert kept is not None
    assert np.isnan(kept.tau)


def test_a_card_is_cited_where_the_judge_labels(judgekit: Judgekit, folder: Path) -> None:
    fitness = on_small(folder, MockTransport())
    write_card(fitness, folder / "card.json")
    assert read_card(folder / "card.json").card() == fitness.card()
    edited(folder / "experiment.toml", 'name = "judge"\n', 'name = "judge"\ncard = "card.json"\n')
    judgekit("run", "experiment.toml", "--out", "out", code=0)
    (notice,) = [said for said in load(folder / "out").notices if "card.json" in said]
    pairs = f"judge: a test on {fitness.pairs} pairs of 6 questions (card.json): it calls "
    assert notice.startswith(pairs)
    assert f"{fitness.relevant.called / fitness.relevant.of:.0%} of the relevant pairs" in notice
    assert "kappa with people is 1.00, " in notice, "the mock is right, and six questions of one kind have no interval"
    assert fitness.order is not None
    assert f"tau-b of the order of 2 runs is {fitness.order.tau:.2f}" in notice
    judgekit("build", "experiment.toml", "--labeling", "judge", code=0)
    card = (folder / "ground-truth" / "card.md").read_text()
    assert f"A test on {fitness.pairs} pairs of 6 questions (card.json)" in card
    judgekit("build", "experiment.toml", "--labeling", "containment", "--out", "free", code=0)
    assert "card.json" not in (folder / "free" / "card.md").read_text()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"models": ["gpt-x"]}, "whose model is 'gpt-x'; that of this labeler is 'mock'"),
        ({"prompt": "strict"}, "whose prompt is 'strict'"),
        ({"scale": "grades:3"}, "whose scale is 'grades:3'"),
        ({"judgekit": "something else"}, "is no card of a judge"),
        ({"relevant": {"of": 1}, "order": 3}, "is no whole card of a judge"),
    ],
)
def test_a_card_about_another_judge_is_refused(
    judgekit: Judgekit, folder: Path, changed: dict[str, Any], says: str
) -> None:
    write_card(on_small(folder, MockTransport()), folder / "card.json")
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(card | changed))
    edited(folder / "experiment.toml", 'name = "judge"\n', 'name = "judge"\ncard = "card.json"\n')
    refused = judgekit("run", "experiment.toml", "--out", "out", code=2)
    assert says in " ".join(refused.err.split())
    assert "labelers.1.card" in refused.err or "card.json" in refused.err


def test_a_card_of_a_judge_that_was_stopped_says_so() -> None:
    share = Share(20, 20)
    stopped = Fitness(
        "judge", ("m",), "binary", "binary", 3, 20, 0, share, Share(), share, stopped="the labels are all 1"
    )
    assert stopped.cited("c.json") == "a test of this judge (c.json) was stopped: the labels are all 1"
    one_sided = replace(stopped, stopped="", yes=Share(20, 5))
    assert one_sided.cited("c.json") == (
        "a test on 20 pairs of 3 questions (c.json): it calls 100% of the relevant pairs and 25% of all pairs relevant"
    )
    unread = replace(one_sided, relevant=Share(), yes=Share())
    assert unread.cited("c.json").endswith(": no reply could be read")
