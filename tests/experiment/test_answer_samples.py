"""`[answers] samples`: each list is answered several times, and the mean of its answers counts."""

import json
from pathlib import Path

import pandas as pd
import pytest

import judgekit as jk
from judgekit.errors import ConfigError, DataError
from judgekit.experiment.choose import replay_results
from judgekit.progress import Event
from tests.commands import Judgekit
from tests.small import MOCK, QUICK, edited, toml

# Every fifth reply gives up, so that the answers to a list differ.
CARRIER = """
import json, re
class Moody:
    sent = 0
    async def send(self, endpoint, body):
        with open(__file__.replace("moody.py", "sent.jsonl"), "ab") as file:
            file.write(body + b"\\n")
        asked = json.loads(body)["messages"][-1]["content"]
        year = re.search(r"built in (\\d{4})", asked)
        Moody.sent += 1
        said = year[1] if year and Moody.sent % 5 else "unknown"
        if "correct" in asked.casefold():
            said = "Yes" if year else "No"
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        return 200, {}, json.dumps({"choices": [choice]}).encode()
"""
SAMPLED = toml(
    data={"queries": "queries.jsonl", "docs": "docs.jsonl", "depth": 4},
    runs={"good": "good.trec", "poor": "poor.trec"},
    endpoints={"local": MOCK | {"transport": "moody.py:Moody"}},
    labelers=[{"kind": "containment"}],
    answers={"depths": [2], "samples": 3, "closed_book": False},
    metrics={"measures": ["nDCG", "P"]},
    analysis=QUICK,
)


@pytest.fixture
def sampled(folder: Path) -> Path:
    (folder / "moody.py").write_text(CARRIER)
    (folder / "sampled.toml").write_text(SAMPLED)
    return folder


def bodies(folder: Path) -> list[bytes]:
    lines = (folder / "sent.jsonl").read_bytes().splitlines()
    (folder / "sent.jsonl").unlink()
    return lines


def test_each_list_is_answered_so_many_times_and_paid_once(judgekit: Judgekit, sampled: Path) -> None:
    planned = jk.run.plan(sampled / "sampled.toml", out=sampled / "results")["all"].requests
    events: list[Event] = []
    done = jk.run(sampled / "sampled.toml", out=sampled / "results", asking=jk.Asking(progress=events.append))
    sent = bodies(sampled)
    # The same list asks the same thing each time, at a temperature at which answers differ.
    assert len(sent) == planned == 3 * len(set(sent))
    assert {json.loads(body)["temperature"] for body in sent} == {1.0}
    quality = done.quality
    shown = [event for event in events if event.stage == "answer"][-1]
    assert (shown.done, shown.total, shown.sent) == (planned, planned, planned)
    em = quality[quality["metric"] == "em"]
    assert em.groupby(["run", "query_id"])["sample"].apply(list).map(tuple).unique().tolist() == [(1, 2, 3)]
    assert em.groupby(["run", "query_id"])["answer"].nunique().max() > 1
    jk.run(sampled / "sampled.toml", out=sampled / "results")
    assert not (sampled / "sent.jsonl").exists()
    claims = {claim.kind for claim in done.comparison.decision.claims}
    assert "samples" in claims

    # Whatever else reads the answers takes their mean.
    means = em.groupby(["run", "query_id"])["value"].mean()
    table = done.results.quality
    shown = table[(table["metric"] == "em") & (table["depth"] == 2)].set_index("run")["value"]
    assert shown.to_dict() == pytest.approx(means.groupby("run").mean().to_dict())
    replay, names, _ = replay_results(sampled / "results")
    assert names == ("good", "poor")
    assert replay is not None
    page = (sampled / "results" / "report.html").read_text()
    assert "report" in page
    judgekit("run", "sampled.toml", "--out", "second")
    judgekit("report", "results", "second", "--out", "both.html")


def test_the_mean_of_the_samples_is_what_is_compared(sampled: Path) -> None:
    done = jk.run(sampled / "sampled.toml", out=sampled / "results")
    scores = pd.read_parquet(sampled / "results" / "scores.parquet")
    keys = [name for name in done.quality.columns if name in ("run", "depth", "model", "query_id", "metric")]
    means = done.quality.groupby(keys, as_index=False)["value"].mean()
    alone = jk.compare(scores, means, rules=done.comparison.rules)
    coefficients = ["labeling", "measure", "run", "level", "quality_metric", "coefficient", "value"]
    both = [one.table[coefficients].reset_index(drop=True) for one in (done.comparison, alone)]
    pd.testing.assert_frame_equal(both[0], both[1])


def test_ratings_of_equal_answers_are_asked_once(sampled: Path) -> None:
    edited(sampled / "sampled.toml", "samples = 3", 'samples = 3\nmetrics = ["correct"]')
    jk.run(sampled / "sampled.toml", out=sampled / "results")
    rated = [body for body in bodies(sampled) if b"correct" in body.lower()]
    assert rated
    assert len(rated) == len(set(rated))


def test_modes_and_choose_take_the_mean_too(judgekit: Judgekit, sampled: Path) -> None:
    edited(sampled / "sampled.toml", "samples = 3", 'samples = 3\nmodes = ["together", "reversed"]')
    done = jk.run(sampled / "sampled.toml", out=sampled / "results")
    assert done.comparison.modes is not None
    assert set(done.comparison.modes["mode"]) == {"together", "reversed"}
    bodies(sampled)
    said = judgekit("choose", "sampled.toml", "--out", "choice")
    assert "good" in said.out
    # Everything had been asked for the run.
    assert not (sampled / "sent.jsonl").exists()


def test_samples_at_temperature_0_are_refused(sampled: Path) -> None:
    edited(sampled / "sampled.toml", 'model = "mock"', 'model = "mock"\nparams = {temperature = 0}')
    with pytest.raises(ConfigError, match="temperature 0, at which 3 samples are 3 times the same answer"):
        jk.run.plan(sampled / "sampled.toml", out=sampled / "results")


@pytest.mark.parametrize("samples", [0, -1, 1.5, "two"])
def test_a_number_of_samples_is_a_whole_number_from_1_on(samples: object, sampled: Path) -> None:
    edited(sampled / "sampled.toml", "samples = 3", f"samples = {json.dumps(samples)}")
    with pytest.raises(ConfigError, match=r"answers\.samples"):
        jk.run.plan(sampled / "sampled.toml", out=sampled / "results")


def test_one_sample_is_what_was_asked_before(sampled: Path) -> None:
    plan = jk.run.plan(sampled / "sampled.toml", out=sampled / "results")["all"].requests
    edited(sampled / "sampled.toml", "samples = 3", "samples = 1")
    assert jk.run.plan(sampled / "sampled.toml", out=sampled / "results")["all"].requests == plan / 3
    done = jk.run(sampled / "sampled.toml", out=sampled / "results")
    assert "sample" not in done.quality.columns
    assert {json.loads(body)["temperature"] for body in bodies(sampled)} == {0}


APPLICATION = """
def answer(question, documents):
    with open(__file__.replace("app.py", "sent.jsonl"), "ab") as file:
        file.write(question.encode() + b"\\n")
    return "1412"
"""


def test_an_application_is_asked_so_many_times_too(sampled: Path) -> None:
    (sampled / "app.py").write_text(APPLICATION)
    edited(sampled / "sampled.toml", 'base_url = "http', 'target = "app.py:answer"\n# base_url = "http')
    edited(sampled / "sampled.toml", 'transport = "moody.py:Moody"', "")
    done = jk.run(sampled / "sampled.toml", out=sampled / "results")
    lists = done.quality.groupby("query_id")["sample"].agg(lambda samples: sorted(set(samples)))
    assert lists.tolist() == [[1, 2, 3]] * 6
    assert len(bodies(sampled)) == jk.run.plan(sampled / "sampled.toml", out=sampled / "results")["all"].requests


def test_imported_answers_are_numbered_and_not_asked_for_again(sampled: Path) -> None:
    edited(sampled / "sampled.toml", "samples = 3", 'samples = 3\nimport = ["answers.csv"]')
    (sampled / "answers.csv").write_text("query_id,run,depth,answer\nq0,good,2,1412\n")
    with pytest.raises(ConfigError, match="number several answers to a question in a column sample"):
        jk.run.plan(sampled / "sampled.toml", out=sampled / "results")


def test_numbered_answers_of_an_application_are_samples(sampled: Path) -> None:
    rows = ["query_id,run,depth,epoch,answer,value"]
    for place in range(6):
        for run in ("good", "poor"):
            for epoch in (2, 10, 1):
                right = run == "good" and epoch < 3
                rows.append(f"q{place},{run},2,{epoch},{'1412' if right else f'no {epoch}'},{int(right)}")
    (sampled / "answers.csv").write_text("\n".join(rows))
    edited(sampled / "sampled.toml", "samples = 3", 'import = "answers.csv"\nanswered_by = "app"\nmetrics = ["em"]')
    edited(sampled / "sampled.toml", "closed_book = false", 'closed_book = false\noutcome = "rating"')
    quality = jk.run(sampled / "sampled.toml", out=sampled / "results").quality
    em = quality[(quality["metric"] == "em") & (quality["query_id"] == "q0") & (quality["run"] == "poor")]
    assert em[["sample", "answer"]].to_numpy().tolist() == [[1, "no 1"], [2, "no 2"], [3, "no 10"]]
    rated = quality[quality["metric"] == "rating"]
    assert rated.groupby("run")["value"].mean().to_dict() == pytest.approx({"good": 2 / 3, "poor": 0})


def test_two_answers_of_an_application_are_to_be_numbered(sampled: Path) -> None:
    (sampled / "answers.csv").write_text("query_id,run,depth,answer\nq0,good,2,1412\nq0,good,2,1413\n")
    edited(sampled / "sampled.toml", "samples = 3", 'import = "answers.csv"\nanswered_by = "app"')
    with pytest.raises(DataError, match=r"two answers for .* number them in a column 'sample'"):
        jk.run.plan(sampled / "sampled.toml", out=sampled / "results")


def test_numbered_ratings_in_a_file_of_their_own_are_samples(sampled: Path) -> None:
    rows = ["query_id,run,depth,sample,value"]
    for place in range(6):
        rows += [f"q{place},{run},2,{sample},{place % 2 * sample}" for run in ("good", "poor") for sample in (0, 1)]
    (sampled / "thumbs.csv").write_text("\n".join(rows))
    edited(sampled / "sampled.toml", "samples = 3", 'ratings = ["thumbs.csv"]')
    quality = jk.run(sampled / "sampled.toml", out=sampled / "results").quality
    assert len(quality) == 24
    assert quality.groupby("query_id")["value"].mean().tolist() == [0, 0.5, 0, 0.5, 0, 0.5]
