"""Sessions: waves, sharing, usage, plans, modes, loops, and what they hold."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from judgekit.client.budget import Budget, Price, Spending
from judgekit.client.estimates import Observed, by_script
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.client.waves import CHUNK, Plan, Unsent, planned
from judgekit.data.documents import Doc, Query, Unit
from judgekit.errors import BudgetError
from judgekit.labelers.base import build
from judgekit.progress import Event
from judgekit.wire.types import Endpoint
from judgekit.wire.usage import Tokens
from tests.labelers.scripted import Here
from tests.programs import Ask, collect, texts
from tests.scripted import ScriptedTransport

HERE = Endpoint("here", "http://127.0.0.1:1/v1", "m")


UNITS = [f"unit {i}" for i in range(700)]


def test_every_unit_comes_back_with_its_outcomes_and_a_second_run_sends_nothing(tmp_path):
    transport = ScriptedTransport(lambda body: body["messages"][-1]["content"].upper())
    for sent, cached in ((700, 0), (0, 700)):
        with Session(tmp_path, transports=lambda _: transport) as session:
            got = run_sync(collect(session, UNITS, Ask(HERE)))
            usage = session.usage("s")
        assert {u: texts(o) for u, o in got.items()} == {u: [u.upper()] for u in UNITS}
        assert (usage.sent, usage.cached, usage.incurred.requests) == (sent, cached, sent)
        assert usage.standalone.requests == 700
        assert usage.standalone.completion_tokens == 1400
    assert [body["messages"][0]["content"] for body in transport.sent] == UNITS


def test_later_waves_see_the_outcomes_of_earlier_ones(tmp_path):
    transport = ScriptedTransport(lambda body: body["messages"][-1]["content"])
    for _ in range(2):
        with Session(tmp_path, transports=lambda _: transport) as session:
            got = run_sync(collect(session, UNITS[:5], Ask(HERE, 3)))
        assert {u: texts(o) for u, o in got.items()} == {u: [u, f"{u} 1", f"{u} 2"] for u in UNITS[:5]}
    assert len(transport.sent) == 15


def test_one_request_of_two_programs_at_the_same_time_is_sent_once():
    transport = ScriptedTransport("yes")

    async def both(session):
        await asyncio.gather(collect(session, UNITS, Ask(HERE), "one"), collect(session, UNITS, Ask(HERE), "other"))

    with Session(transports=lambda _: transport) as session:
        run_sync(both(session))
        assert len(transport.sent) == 700
        assert session.usage("one").standalone == session.usage("other").standalone
        assert session.usage("one").incurred.requests + session.usage("other").incurred.requests == 700


def test_what_units_ask_alike_is_sent_and_counted_once_on_its_way_and_stored():
    transport, units = ScriptedTransport("yes"), 2 * UNITS[:CHUNK]

    async def labelled(session):
        return [(unit, *outcomes) async for unit, outcomes in session.resolve(units, Ask(HERE), "s")]

    with Session(transports=lambda _: transport) as session:
        for _ in range(2):
            found = run_sync(labelled(session))
            session.book("part", HERE, [outcome for _, outcome in found])
            assert sorted(unit for unit, _ in found) == sorted(units)
            stage = session.usage("s")
            assert (len(transport.sent), stage.sent, stage.cached) == (CHUNK, CHUNK, 0)
            assert (stage.standalone.requests, session.usage("part").standalone.requests) == (CHUNK, CHUNK)


def test_a_plan_says_how_much_it_may_become_and_what_was_asked_again_is_counted(tmp_path):
    labeler = build("judge(samples=2, temperature=1)", Here())
    units = [Unit(Query(f"q{i}", f"Which {i}?"), (Doc("d", "This."),)) for i in range(5)]

    def script(body):
        return "Yes" if "Yes or No only." in json.dumps(body["messages"]) else "Perhaps."

    for counts in ((10, 0, 20), (20, 20, 20)):  # a replay is counted as well
        with Session(tmp_path, transports=lambda _: ScriptedTransport(script)) as session:
            plan = planned(units, labeler, session.lookup)
            assert (plan.requests, plan.cached, plan.up_to) == counts
            run_sync(collect(session, units, labeler))
            assert (session.usage("s").again, session.usage("s").standalone.requests) == (10, 20)


def test_a_plan_counts_what_is_missing_and_sends_nothing(tmp_path):
    transport = ScriptedTransport("yes")
    with Session(tmp_path, transports=lambda _: transport) as session:
        run_sync(collect(session, UNITS[:3], Ask(HERE)))
        plan = planned([*UNITS, *UNITS], Ask(HERE), session.lookup)
        roomy = planned(UNITS, Ask(HERE, max_tokens=50), session.lookup)
        waves = planned(UNITS[:4], Ask(HERE, 3), session.lookup)
    assert (plan.units, plan.requests, plan.cached, plan.at_least) == (1400, 700, 3, False)
    assert (waves.requests, waves.cached, waves.up_to, waves.at_least) == (7, 3, 12, True), "three waves of each unit"
    assert plan.tokens.low > 697 * 5
    assert len(transport.sent) == 3
    _, longest = roomy.too_long(HERE, 10**6)
    assert 60 <= longest <= 90
    assert roomy.too_long(HERE, longest) == (0, longest)
    assert roomy.too_long(HERE, 50) == (700, longest)
    assert roomy.lacking[HERE].room == 700 * 50


def reported(prompt: int, completion: int, *, count: int, again: int = 0) -> Observed:
    observed = Observed()
    for number in range(count):
        observed.add(b"x" * 100, Tokens(prompt, completion), again=number < again)
    return observed


def test_a_plan_foresees_tokens_and_money_by_the_script_and_then_by_what_was_reported():
    def price(_: Endpoint) -> Price:
        return Price(1_000_000, 2_000_000)

    plan = Plan(requests=100, lacking={HERE: Unsent(requests=100, expected=2200, room=100 * 16)})
    assert (plan.tokens.about, plan.tokens.low, plan.tokens.high) == pytest.approx((2600, 1420, 4900))
    assert plan.money(price).about == pytest.approx(2200 + 2 * 400), "a reply: between 1 and its room"
    assert not plan.is_reported
    plan.observed = {HERE: reported(44, 3, count=8)}
    assert plan.is_reported
    assert plan.tokens.about == pytest.approx(4400 + 300)
    assert (plan.tokens.low, plan.tokens.high) == pytest.approx((4700 * 0.96, 4700 * 1.04)), "all reports are the same"
    assert plan.money(price).about == pytest.approx(4400 + 600)
    assert plan.money(lambda _: None) is None


def test_what_other_stages_reported_tells_the_tokenizer_and_nothing_of_replies():
    plan = Plan(requests=100, lacking={HERE: Unsent(requests=100, expected=2200, room=100 * 16)})
    plan.elsewhere = {HERE: reported(44, 3, count=100)}
    assert plan.tokens.about == pytest.approx(4400 + 400)


def test_requests_that_are_asked_again_take_two_prompts_and_a_reply():
    lacking = {HERE: Unsent(requests=100, expected=2200, room=100 * 16)}
    plan = Plan(requests=100, further=100, lacking=lacking, observed={HERE: reported(22, 4, count=120, again=20)})
    assert plan.tokens.about == pytest.approx(2200 * 1.4 + 400 * 1.2)
    assert plan.tokens.low < 3000 < 4000 < plan.tokens.high
    none_follow = Plan(requests=100, lacking=lacking, observed={HERE: reported(22, 4, count=120, again=20)})
    assert none_follow.tokens.about == pytest.approx(2200 + 400)


def test_a_stored_reply_calibrates_the_plan_of_the_others(tmp_path):
    with Session(tmp_path, transports=lambda _: ScriptedTransport("yes")) as session:
        run_sync(collect(session, UNITS[:10], Ask(HERE)))
        plan = planned(UNITS, Ask(HERE), session.lookup)
    assert plan.tokens.about == pytest.approx(690 * 2, rel=0.02), (
        "the script reports one token of each prompt and reply"
    )
    assert plan.tokens.low <= 690 * 2 <= plan.tokens.high < 690 * 2.5


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The bridge over the river was opened in 1932 and has carried trains ever since.", 17),
        ("Мост через реку был открыт в 1932 году и с тех пор служит поездам.", 20),
        ("这座横跨河流的大桥于1932年通车，此后一直用于铁路运输。", 27),
    ],
)
def test_the_script_tells_how_many_tokens_a_text_may_have(text, tokens):
    assert 0.6 * by_script(text.encode()) < tokens < 1.5 * by_script(text.encode())


def test_a_request_may_take_all_that_is_left_of_a_budget():
    async def reserved():
        spending = Spending(Budget(max_cost=100), {})
        await spending.reserve(100)
        spending.settle(100, 60)
        await spending.reserve(40)
        with pytest.raises(BudgetError):
            await spending.reserve(41)

    asyncio.run(asyncio.wait_for(reserved(), 10))


def kept(transports: list[ScriptedTransport]) -> Callable[[Endpoint], ScriptedTransport]:
    """Return what opens transports, which it adds to a list."""
    return lambda _: transports.append(ScriptedTransport("yes")) or transports[-1]


def test_it_works_under_a_running_loop_and_across_several(tmp_path):
    async def notebook(session):
        return len(run_sync(collect(session, UNITS[:10], Ask(HERE))))

    transports: list[ScriptedTransport] = []
    with Session(tmp_path, transports=kept(transports)) as session:
        assert asyncio.run(notebook(session)) == 10
        for end in (20, 30):
            assert len(asyncio.run(collect(session, UNITS[:end], Ask(HERE)))) == end
    assert [(len(t.sent), t.closed) for t in transports] == [(10, 1)] * 3


@pytest.mark.parametrize("problem", [None, ZeroDivisionError])
def test_leaving_a_loop_before_its_end_closes_everything_and_keeps_what_came(tmp_path, problem):
    async def leave():
        async with Session(tmp_path, transports=kept(transports)) as session:
            async for _ in session.resolve(UNITS, Ask(HERE), "s"):
                if problem:
                    raise problem
                break

    transports: list[ScriptedTransport] = []
    with pytest.raises(problem) if problem else nullcontext():
        run_sync(leave())
    with Session(tmp_path) as session:
        assert planned(UNITS, Ask(HERE), session.lookup).cached >= 1
    assert transports[0].closed


def test_progress_is_told_with_what_was_sent_and_cached(tmp_path, monkeypatch):
    monkeypatch.setattr("judgekit.client.session._EVENT_S", 0.0)
    events: list[Event] = []
    with Session(tmp_path, transports=lambda _: ScriptedTransport("yes"), progress=events.append) as session:
        run_sync(collect(session, UNITS[:300], Ask(HERE), "one"))
        run_sync(collect(session, UNITS, Ask(HERE), "other"))
    assert events[-1] == Event("other", 700, 700, 400, 300, 0)
    one = [event for event in events if event.stage == "one"]
    assert one[-1] == Event("one", 300, 300, 300, 0, 0)
    assert [event.done for event in one] == sorted(event.done for event in one)
    assert len(one) > 2


def test_what_is_told_once_is_told_once_and_anything_else_as_often_as_it_comes():
    with Session() as session:
        for once in (True, True, False, False):
            session.note("hm", once=once)
        assert session.notes == ["hm"] * 3


def test_one_program_may_ask_several_endpoints():
    ends = [Endpoint(name, f"http://{name}/v1", "m", concurrency=2) for name in ("a", "b")]

    class Both(Ask):
        def requests(self, unit, replies, /):
            return [] if replies else [r for end in ends for r in Ask(end).requests(unit, ())]

    with Session(transports=lambda end: ScriptedTransport(f"from {end.name}")) as session:
        got = run_sync(collect(session, UNITS[:50], Both(HERE)))
        totals = session.totals()
    assert {tuple(texts(outcomes)) for outcomes in got.values()} == {("from a", "from b")}
    assert {name: usage.sent for name, usage in totals.items()} == {"a": 50, "b": 50}


ROOT = Path(__file__).resolve().parent.parent.parent
CODE = """
import asyncio, json, sys
from pathlib import Path
from benchmarks.llm_speed import stream
print(json.dumps(asyncio.run(stream(20_000, Path(sys.argv[1])))))
"""


@pytest.mark.more
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see the memory of a process")
def test_memory_does_not_grow_with_the_number_of_pairs(tmp_path):
    for name in ("cold", "warm"):
        command = [sys.executable, "-c", CODE, str(tmp_path / "store")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        samples = json.loads(done.stdout)
        growth = samples[-1] - samples[2]
        print(f"{name}: {samples[2]:.0f} MiB after 6,000 pairs, {growth:+.1f} MiB after 20,000")
        assert growth < 4, samples
