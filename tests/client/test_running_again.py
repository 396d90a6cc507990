"""A run that ended can be run again, whatever failed in it: only what is missing is asked for, and nothing stops it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.tables import Status
from judgekit.errors import EndpointError
from judgekit.labelers.base import build
from judgekit.labelers.contract import checked
from judgekit.wire.types import Endpoint, Failure, Outcome, Request
from tests.labelers.scripted import Here
from tests.programs import Ask, Run, collect, scripted, texts
from tests.scripted import Scripted, ScriptedTransport, completion, error

UNITS = [f"unit {i:03}" for i in range(300)]
URL = "http://server.example/v1"
UNIT = Unit(Query("q", "Which city?"), (Doc("d", "It is Paris."),))

TOO_LONG = error(400, "This model's maximum context length is 10 tokens.", code="context_length_exceeded")
FLAGGED = error(400, "The prompt was flagged.", code="content_filter")
STRANGE = error(400, "Input contains characters that cannot be processed.")


def run(script: Any, store: Path, units: Sequence[str] = UNITS, **options: Any) -> tuple[Run, int]:
    found, sent = scripted(script, store, units, **options)
    return found, len(sent)


@pytest.mark.parametrize("fault", [TOO_LONG, FLAGGED, STRANGE], ids=["too long", "flagged", "strange"])
@pytest.mark.parametrize("count", [1, 100])
def test_requests_that_are_never_taken_fail_alone_however_often_a_run_is_repeated(fault, count, tmp_path):
    # spread, so that a first run sees that the endpoint works
    bad = {UNITS[3 * i + 2] for i in range(count)}

    def answer(body):
        return fault if body["messages"][0]["content"] in bad else "yes"

    for again in range(3):
        found, sent = run(answer, tmp_path, concurrency=2)
        assert found.error is None
        assert (found.usage.failed, sent) == (count, count if again else 300)


def test_the_store_proves_an_endpoint_although_none_of_its_replies_is_needed(tmp_path):
    run("yes", tmp_path, UNITS[:5])
    found, _ = run(STRANGE, tmp_path, UNITS[5:45])
    assert found.error is None
    assert {type(outcome) for outcome in found.outcomes.values()} == {Failure}


@pytest.mark.parametrize(
    ("before", "fault", "row"), [(0, TOO_LONG, 50), (20, error(400, "The tenant is closed."), 200)]
)
def test_an_endpoint_that_takes_nothing_stops_a_run_earlier_where_nothing_ever_worked(before, fault, row, tmp_path):
    run("yes", tmp_path, UNITS[:before])
    found, sent = run(fault, tmp_path)
    assert f"{row} requests in a row failed" in str(found.error)
    assert sent < row + 50


@pytest.mark.parametrize(
    "fault",
    [
        error(401, "Incorrect API key provided."),
        error(400, "API key not valid. Please pass a valid API key."),
        error(400, "Unknown model: m"),
        error(400, "m is being moved", param="model"),
    ],
)
def test_wrong_settings_stop_a_later_run_at_once_as_they_stop_the_first(fault, tmp_path):
    run("yes", tmp_path, UNITS[:100])
    found, sent = run(fault, tmp_path)
    assert isinstance(found.error, EndpointError)
    assert sent <= 32


class Twice(Ask):
    """Asks once more, with more room."""

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        self.params = {"max_tokens": 8192 if replies else 1024}
        return [] if len(replies) > 1 else super().requests(unit, ())


def test_more_room_than_a_server_has_is_lowered_once_and_paid_for_once(tmp_path):
    said = "max_tokens is too large: 8192. It must be less than or equal to 4096."
    transport = ScriptedTransport(lambda body: error(400, said) if body.get("max_tokens") == 8192 else "yes")
    for notes in (1, 0, 0):
        with Session(tmp_path, transports=lambda _: transport) as session:
            found = run_sync(collect(session, UNITS[:60], Twice(Endpoint("here", URL, "m", concurrency=4))))
        assert [texts(found[unit]) for unit in UNITS[:60]] == [["yes", "yes"]] * 60
        assert len(session.notes) == notes
    asked = Counter(body["max_tokens"] for body in transport.sent)
    assert (asked[1024], asked[4096]) == (60, 60)
    assert asked[8192] <= 4, "those in flight"


@pytest.mark.parametrize("reason", ["Paused", "max_output_tokens", "network_error", "length"])
def test_incomplete_replies_are_kept_and_asked_for_twice_only(reason, tmp_path):
    def label():
        transport = ScriptedTransport(completion("Yes", finish_reason=reason))
        labeler = build("judge", Here())
        with Session(tmp_path, transports=lambda _: transport) as session:
            found = run_sync(collect(session, [UNIT], labeler))
        return checked(labeler, UNIT, found[UNIT])[0], len(transport.sent)

    (once, sent), (twice, none) = label(), label()
    assert (once.status, sent, twice.status, none) == (Status.TRUNCATED, 2, Status.TRUNCATED, 0)


PROBABLE = {"logprobs": True, "top_logprobs": 2}
TOP = [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -2.4}]
LIKELY = completion("yes", logprobs={"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": TOP}]})


COMPLETION = Scripted(200, b'{"choices": [{"text": "yes", "finish_reason": "stop", "logprobs": null}]}')


@pytest.mark.parametrize(("api", "reply"), [("chat", "yes"), ("completions", COMPLETION)])
def test_an_endpoint_whose_first_replies_all_lack_log_probabilities_stops_the_run(api, reply, tmp_path):
    found, sent = run(reply, tmp_path, params=PROBABLE, concurrency=2, api=api)
    assert "endpoint 'here' (model 'm') gives no log-probabilities, which read=logprobs needs" in str(found.error)
    assert 8 <= sent <= 10
    # stored replies stop nothing
    assert run(reply, tmp_path, UNITS[:8], params=PROBABLE, api=api)[0].error is None


def test_replies_without_log_probabilities_stop_nothing_where_others_have_them(tmp_path):
    def answer(body):
        return "yes" if UNITS.index(body["messages"][0]["content"]) % 8 else LIKELY

    for asked in (300, 0):
        found, sent = run(answer, tmp_path, params=PROBABLE, concurrency=1)
        assert (found.error, len(found.outcomes), sent) == (None, 300, asked)
