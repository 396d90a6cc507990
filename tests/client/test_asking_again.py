"""`ask_again="unread"` asks for the stored replies that could not be read, and for nothing else that is stored."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.extend import Label, Request, Response, Unit, chat
from judgekit.progress import Event
from judgekit.reading.lists import ListAsker, Question
from judgekit.reading.prompts import load_prompt
from judgekit.reading.verdict import Unread
from judgekit.wire.types import Reply
from judgekit.wire.unread import noting_unread
from tests.commands import Judgekit
from tests.scripted import ScriptedTransport, completion
from tests.small import edited

TOWNS = ("Arlen", "Borvik")
POOL: dict[str, Any] = {
    "queries": {town: f"When was the bridge of {town} built?" for town in TOWNS},
    "docs": {f"d{town}": f"The bridge of {town} was built in 1412." for town in TOWNS},
    "runs": {"one": {town: {f"d{town}": 1.0} for town in TOWNS}},
}
MUMBLED = "Well, bridges."
DECLINED = completion(None, message={"role": "assistant", "content": None, "refusal": "I must not."})


def told(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def server(script: Any) -> tuple[jk.Endpoint, ScriptedTransport]:
    transport = ScriptedTransport(script)
    return jk.Endpoint("m", "http://server.example/v1", "m", transport=transport), transport


def mumbles_of(town: str, otherwise: Any = "Yes") -> Callable[[dict[str, Any]], Any]:
    """Return a script that says nothing readable of one town."""
    return lambda body: MUMBLED if town in told(body) else otherwise


def asking(store: Path, events: list[Event], *, again: bool = True) -> jk.Asking:
    return jk.Asking(cache=store, ask_again="unread" if again else None, progress=events.append)


def notes(events: list[Event]) -> list[str]:
    return [event.note for event in events if "stored repl" in event.note]


def relevance(labeling: jk.Labeling) -> dict[str, float]:
    frame = labeling.table
    return dict(zip(frame["doc_id"], frame["relevance"], strict=True))


def test_the_second_request_alone_is_sent_where_both_replies_were_unread(tmp_path: Path) -> None:
    events: list[Event] = []
    endpoint, before = server(mumbles_of("Arlen"))
    jk.label("judge", **POOL, endpoints=endpoint, asking=asking(tmp_path, events, again=False))
    second = before.sent[-1]
    assert MUMBLED in told(second)

    endpoint, unchanged = server("No")
    jk.label("judge", **POOL, endpoints=endpoint, asking=asking(tmp_path, events, again=False))
    assert not unchanged.sent
    assert not notes(events)

    again = asking(tmp_path, events)
    plan = jk.label.plan("judge", **POOL, endpoints=endpoint, asking=again)["all"]
    assert plan.requests - plan.cached == 1
    endpoint, transport = server("No")
    labels = jk.label("judge", **POOL, endpoints=endpoint, asking=again)
    assert [told(body) for body in transport.sent] == [told(second)]
    assert relevance(labels) == {"dArlen": 0.0, "dBorvik": 1.0}
    assert notes(events) == ["1 stored reply could not be read: it is asked for again"]
    # What was read now is stored, and nothing is left to be asked.
    endpoint, transport = server("Yes")
    labels = jk.label("judge", **POOL, endpoints=endpoint, asking=again)
    assert not transport.sent
    assert relevance(labels) == {"dArlen": 0.0, "dBorvik": 1.0}
    assert notes(events)[1:] == ["no stored reply could not be read"]


@pytest.mark.parametrize(
    ("spec", "reply", "pairs"),
    [
        ("judge(read=logprobs)", "Yes", 2),  # there are no log-probabilities, and they are not asked for twice
        ("judge(samples=3)", MUMBLED, 6),
        ("utility", "", 2),
        ("utility(variant=reads)", "Answer:", 2),
        ("judge", completion("Yes", finish_reason="length"), 2),
    ],
)
def test_one_request_is_sent_for_each_reply_that_could_not_be_read(
    spec: str, reply: Any, pairs: int, tmp_path: Path
) -> None:
    pool = POOL | {"queries": [jk.Query(town, text, ("1412",)) for town, text in POOL["queries"].items()]}
    endpoint, before = server(reply)
    first = jk.label(spec, **pool, endpoints=endpoint, asking=asking(tmp_path, [], again=False))
    assert not first.counts()[jk.Status.OK]
    endpoint, transport = server(reply)
    jk.label(spec, **pool, endpoints=endpoint, asking=asking(tmp_path, []))
    # Of two requests about a pair the second one is asked again.
    assert len(transport.sent) == pairs
    assert sorted(map(told, transport.sent)) == sorted(map(told, before.sent[-pairs:]))


@pytest.mark.parametrize("reply", [DECLINED, completion("", finish_reason="content_filter")])
def test_a_refusal_was_read(reply: Any, tmp_path: Path) -> None:
    endpoint, _ = server(reply)
    jk.label("judge", **POOL, endpoints=endpoint, asking=asking(tmp_path, [], again=False))
    endpoint, transport = server("Yes")
    jk.label("judge", **POOL, endpoints=endpoint, asking=asking(tmp_path, []))
    assert not transport.sent


def test_an_answer_that_was_read_is_kept_where_its_rating_was_not(tmp_path: Path) -> None:
    def script(body: dict[str, Any]) -> str:
        rated = "correct" in told(body).casefold()
        return MUMBLED if rated and "Arlen" in told(body) else "Yes" if rated else "1412"

    queries = [jk.Query(town, text, ("1412",)) for town, text in POOL["queries"].items()]
    options: dict[str, Any] = {**POOL, "queries": queries, "depths": [1], "metrics": ["correct"]}
    endpoint, before = server(script)
    jk.answer(**options, endpoints=endpoint, asking=asking(tmp_path, [], again=False))
    endpoint, transport = server("Yes")
    again = asking(tmp_path, [])
    plan = jk.answer.plan(**options, endpoints=endpoint, asking=again)["all"]
    assert plan.requests - plan.cached == 1
    quality = jk.answer(**options, endpoints=endpoint, asking=again)
    assert [told(body) for body in transport.sent] == [told(before.sent[-1])]
    assert list(quality["status"]) == ["ok", "ok"]
    assert set(quality["answer"]) == {"1412"}


def test_replies_that_a_labeler_reads_by_itself_are_asked_for_where_its_label_is_missing(tmp_path: Path) -> None:
    class Own(jk.Labeler):
        kind = "own"
        scale = jk.Scale("binary")

        def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
            messages = [{"role": "user", "content": unit.docs[0].text}]
            return [] if replies else [chat(self.context.endpoint(None), messages)]

        def label(self, unit: Unit, replies: Sequence[Response], /) -> list[Label]:
            pair = unit.query.query_id, unit.docs[0].doc_id
            if isinstance(replies[0], Reply) and replies[0].text == MUMBLED:
                return [Label.missing(*pair, jk.Status.UNPARSED, "it mumbles")]
            return [Label(*pair, 1.0)]

    endpoint, _ = server(mumbles_of("Arlen"))
    jk.label(Own(), **POOL, endpoints=endpoint, asking=asking(tmp_path, [], again=False))
    endpoint, transport = server("Yes")
    jk.label(Own(), **POOL, endpoints=endpoint, asking=asking(tmp_path, []))
    assert ["Arlen" in told(body) for body in transport.sent] == [True]


CARRIER = f'''
import json
class Mumbling:
    async def send(self, endpoint, body):
        said = "{MUMBLED}" if b"Arlen" in body else "Yes"
        choice = {{"index": 0, "message": {{"role": "assistant", "content": said}}, "finish_reason": "stop"}}
        with open("sent.txt", "a") as file:
            print("x", file=file)
        return 200, {{}}, json.dumps({{"choices": [choice]}}).encode()
'''


def test_the_command_line_says_how_many_and_counts_them_in_a_dry_run(judgekit: Judgekit, folder: Path) -> None:
    (folder / "mumbling.py").write_text(CARRIER)
    edited(folder / "experiment.toml", 'model = "mock"', 'model = "mock"\ntransport = "mumbling.py:Mumbling"')
    sent = folder / "sent.txt"

    def count() -> int:
        total = len(sent.read_text().splitlines())
        sent.write_text("")
        return total

    judgekit("build", "experiment.toml", "--labeling", "judge", "--out", "built")
    count()
    shown = judgekit("build", "experiment.toml", "--labeling", "judge", "--ask-again", "unread", "--dry-run")
    assert not count()
    told = judgekit("build", "experiment.toml", "--labeling", "judge", "--ask-again", "unread", "--out", "built")
    again = count()
    assert again > 0
    assert f"{again} stored replies could not be read: they are asked for again" in told.err
    row = next(line for line in shown.out.splitlines() if line.startswith("label judge"))
    assert row.split()[4:6] == ["18", str(again)]
    # Parts share the work.
    for part in ("1/2", "2/2"):
        judgekit("build", "experiment.toml", "--labeling", "judge", "--ask-again", "unread", "--part", part)
    assert count() == again


def test_each_list_that_could_not_be_read_is_noted() -> None:
    endpoint, _ = server("")
    asker = ListAsker(endpoint, load_prompt("nuggets"))
    questions = [Question[Any]({"question": "q", "passages": "p"}, "a list", lambda listed: listed)] * 3
    raw = '{{"choices": [{{"index": 0, "message": {{"content": "{}"}}}}]}}'
    first = [Reply(f"first {place}", raw.format(said)) for place, said in enumerate(("no list", "[1]", "none"))]
    second = [Reply(f"second {place}", raw.format("still none")) for place in (0, 2)]
    with noting_unread() as noted:
        assert isinstance(asker.read(questions, [*first, *second]), Unread)
    assert list(noted) == ["second 0", "second 2"]
