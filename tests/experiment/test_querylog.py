"""One's own questions beside those of the users: their looks, and the clusters that one lacks."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from judgekit.errors import UsageError
from judgekit.experiment.plan import plan as planned
from judgekit.experiment.querylog import clustered, unlike
from judgekit.sample import EXPERIMENT
from tests.small import FILES, MOCK, toml

SAMPLE = Path(EXPERIMENT).parent
TOPICS = {
    "bridge": "stone river toll arch pier span mason flood road rail",
    "orchestra": "violin concert conductor symphony hall tour cello score choir opera",
    "volcano": "lava crater eruption ash island summit gas rock quake cloud",
}


def asked(topic: str, count: int, seed: int = 1) -> list[str]:
    random = np.random.default_rng(seed)
    pairs = (random.choice(TOPICS[topic].split(), 2, replace=False) for _ in range(count))
    return [f"What {first} had the {topic} of that {second}?" for first, second in pairs]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    queries = [{"query_id": f"q{i}", "text": text, "answers": ["1"]} for i, text in enumerate(asked("bridge", 30))]
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    docs = ({"doc_id": f"d{i}", "text": f"Note {i}."} for i in range(40))
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in docs))
    for shift, name in enumerate("ab"):
        rows = "".join(f"q{i} Q0 d{(i + shift) % 40} 1 1 r\n" for i in range(30))
        (tmp_path / f"{name}.trec").write_text(rows)
    path = tmp_path / "experiment.toml"
    runs, labelers = {"a": "a.trec", "b": "b.trec"}, [{"kind": "containment"}]
    tables = {"data": FILES | {"depth": 5}, "runs": runs, "endpoints": {"local": MOCK}, "labelers": labelers}
    path.write_text(toml(**tables))
    return path


def test_questions_like_the_logs_are_rarely_warned_about():
    texts = [json.loads(line)["text"] for line in (SAMPLE / "queries.jsonl").read_text().splitlines()]
    random, warned = np.random.default_rng(1), 0
    for _ in range(100):
        order = random.permutation(len(texts))
        warned += bool(unlike([texts[i] for i in order[:52]], [texts[i] for i in order[52:]]))
    assert warned <= 11, "5 of 100, and three standard errors"


def test_questions_unlike_the_logs_are_warned_about(experiment, tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("running shoes\nred running shoes\ncheap flights\n" * 20)
    warning = planned(experiment, query_log=log).coverage.warning
    for words in ("their median is", "half of the log holds", "your users"):
        assert words in warning
    log.write_text("one\n")
    with pytest.raises(UsageError, match="at least 20"):
        planned(experiment, query_log=log)


def test_clusters_tell_topics_and_name_those_that_one_lacks() -> None:
    log = asked("bridge", 60) + asked("orchestra", 60) + asked("volcano", 30)
    clusters, silhouette = clustered(asked("bridge", 20) + asked("orchestra", 5), log)
    topics = {next(topic for topic in TOPICS if topic in cluster.words): cluster for cluster in clusters}
    assert len(clusters) == len(topics) == 3
    assert silhouette > 0.1
    assert {topic: (round(c.users, 2), c.own, c.lacking) for topic, c in topics.items()} == {
        "bridge": (0.4, 0.8, False),
        "orchestra": (0.4, 0.2, False),
        "volcano": (0.2, 0.0, True),
    }
    nearest = topics["volcano"].nearest
    assert 1 <= len(nearest) <= 5
    assert all("volcano" in question for question in nearest)
    few, _ = clustered(asked("bridge", 14), log)
    assert not any(c.lacking for c in few if "volcano" in c.words), "2.8 are expected: none may be chance"


def test_the_plan_prints_clusters_and_does_without_scikit_learn(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log.txt"
    log.write_text("\n".join(asked("bridge", 60) + asked("volcano", 60) + asked("orchestra", 60)))
    text = str(planned(experiment, query_log=log))
    assert "Your users' questions form 3 clusters" in text
    assert "You lack questions about volcano" in text
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    assert "extra `clusters` (scikit-learn)" in str(planned(experiment, query_log=log))
    log.write_text("shoes\n" * 30)
    monkeypatch.undo()
    assert planned(experiment, query_log=log).coverage.clusters == ()
