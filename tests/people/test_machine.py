"""An LLM as one more assessor of answers, held against people."""

import re
from pathlib import Path

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import UsageError
from judgekit.people.machine import Preferring, prefer
from judgekit.people.reading import assessor_agreement, disputed, preferences, read_judgments
from judgekit.people.sampling import draw, draw_answers
from judgekit.reading.asker import Asker
from judgekit.reading.prompts import load_prompt
from judgekit.wire.types import Endpoint
from tests.scripted import ScriptedTransport

ENDPOINT = Endpoint("llm", "http://127.0.0.1:9/v1", "judge-model")


@pytest.fixture
def sample(collection, answered):
    return draw_answers(collection, answered, runs=("good", "poor"), depth=3, n=20, duplicates=0.1)


def asked(sample, script, tmp_path: Path) -> tuple[Path, dict[str, int]]:
    async def work():
        async with Session(None, transports=lambda endpoint: ScriptedTransport(script)) as session:
            return await prefer(sample, Asker(ENDPOINT, load_prompt("prefer-answer")), session)

    text, counts = run_sync(work())
    path = tmp_path / "judgments-llm.jsonl"
    path.write_text(text)
    return path, counts


def answer_a(body) -> str:
    return re.search(r"Answer A:\n<answer>\n(\w+)", body["messages"][-1]["content"])[1]


def test_a_preference_that_holds_in_both_orders_counts_and_one_that_does_not_is_a_tie(sample, tmp_path):
    path, counts = asked(sample, lambda body: "A" if answer_a(body) == "good" else "B", tmp_path)
    assert counts == {"good": 20}
    judgments = read_judgments([path], sample)
    assert {row.assessor for row in judgments.rows} == {"judge-model"}
    assert {row.value for row in judgments.rows} == {"good"}
    assert asked(sample, lambda body: "A", tmp_path)[1] == {"tie": 20}  # it likes what comes first
    assert asked(sample, lambda body: "Neither", tmp_path)[1] == {"bad": 20}
    sent = []
    assert asked(sample, lambda body: sent.append(body) or "Who knows?", tmp_path)[1] == {"nothing": 20}
    program = Preferring(Asker(ENDPOINT, load_prompt("prefer-answer")))
    assert len(sent) == sum(program.most(task) for task in sample.tasks if not task.repeat_of)


def test_its_preferences_are_held_against_people_s_and_kept_apart(sample, tmp_path, judged):
    machine, _ = asked(sample, lambda body: "A" if answer_a(body) == "good" else "B", tmp_path)
    people = judged(sample, "1", lambda row, _: "good" if row["query_id"] < "q30" else "poor")
    judgments = read_judgments([people, machine], sample)
    table = assessor_agreement(judgments, resamples=100)["between"]
    agreed = table[table["coefficient"] == "agreement"].iloc[0]
    share = sum(task.query_id < "q30" for task in sample.tasks if not task.repeat_of) / 20
    assert agreed["value"] == pytest.approx(share)
    assert not disputed(judgments, sample).tasks, "only grades go to an adjudicator"
    only = preferences(judgments.only(["1"])).set_index(["query_id", "run"])["value"]
    for task in sample.tasks:
        assert only[task.query_id, "good"] == (task.query_id < "q30")
    with pytest.raises(UsageError, match="unknown assessor 'dora'"):
        judgments.only(["dora"])


def test_only_preference_prompts_with_its_four_words_and_only_answers(sample, collection, tmp_path):
    with pytest.raises(UsageError, match="does not compare two answers"):
        Preferring(Asker(ENDPOINT, load_prompt("binary")))
    own = tmp_path / "mine.toml"
    shipped = Path(load_prompt.__code__.co_filename).parents[2] / "prompts" / "prefer-answer.toml"
    own.write_text(shipped.read_text().replace("Tie = 1", "Same = 1"))
    with pytest.raises(UsageError, match="must offer Neither, Tie, B, A"):
        Preferring(Asker(ENDPOINT, load_prompt(own)))
    with pytest.raises(UsageError, match="use a labeler"):
        asked(draw(collection, n=2), "A", tmp_path)
