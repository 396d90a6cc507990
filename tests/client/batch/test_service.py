from collections.abc import Iterator
from dataclasses import replace

import pytest

from judgekit.client.batch.service import Fetched, fetch, submit
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import ConfigError, EndpointError, StoreError, UsageError
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint
from tests.client.batch.batch_service import BatchService, serving
from tests.programs import Ask, collect, texts
from tests.scripted import ScriptedTransport

UNITS = [f"unit {i:03}" for i in range(40)]
KEY = "sk-nobodyshouldreadthis0"


@pytest.fixture
def service() -> Iterator[BatchService]:
    with serving() as found:
        yield found


@pytest.fixture
def here(service: BatchService, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv("SOME_KEY", KEY)
    return Endpoint("here", f"{service.url}/v1", "m", api_key_env="SOME_KEY")


def counts(one: Fetched) -> tuple[int, int]:
    assert one.batch is not None
    assert one.batch.request_counts is not None
    return one.batch.request_counts.completed, one.batch.request_counts.failed


def test_what_is_submitted_once_comes_back_and_labeling_sends_nothing(
    service: BatchService, here: Endpoint, store: Store
) -> None:
    found = submit(store, UNITS[:30], Ask(here), [here])
    assert (found.requests, found.cached, found.under_way, len(found.files)) == (30, 0, 0, 1)
    more = submit(store, UNITS, Ask(here), [here])
    assert (more.requests, more.under_way) == (10, 30)
    assert submit(store, UNITS, Ask(here), [here]).files == {}
    assert service.asked() == UNITS
    assert service.keys == {f"Bearer {KEY}"}
    one, _ = fetch(store, [here])
    assert (one.batch.status, one.submission.batch, one.imports) == ("in_progress", "batch-0", ())
    service.finish()
    both = list(fetch(store, [here]))
    assert [(one.batch.status, counts(one)) for one in both] == [("completed", (30, 0)), ("completed", (10, 0))]
    assert [(part.imported, part.failed) for one in both for part in one.imports] == [(30, []), (10, [])]
    assert list(fetch(store, [here])) == []
    assert submit(store, UNITS, Ask(here), [here]).cached == store.count() == 40
    transport = ScriptedTransport("no")
    with Session(store.path, transports=lambda _: transport) as session:
        outcomes = run_sync(collect(session, UNITS, Ask(here)))
    assert not transport.sent
    assert [texts(outcomes[unit]) for unit in UNITS] == [[f"yes to {unit}"] for unit in UNITS]


def test_a_batch_whose_creation_was_not_confirmed_is_found_by_its_file(
    service: BatchService, here: Endpoint, store: Store
) -> None:
    for part in range(5):
        submit(store, [f"other {part}"], Ask(here), [here])
    service.refuse = 502
    with pytest.raises(EndpointError, match="not now") as problem:
        submit(store, UNITS, Ask(here), [here])
    assert KEY not in str(problem.value)
    service.refuse = None
    assert submit(store, [*UNITS, "new"], Ask(here), [here]).requests == 1
    assert sorted(service.asked()) == sorted([*UNITS, "new", *(f"other {part}" for part in range(5))])
    service.finish()
    assert len(list(fetch(store, [here]))) == 7
    assert store.count() == 46


def test_a_batch_that_was_never_created_is_submitted_again(service: BatchService, here: Endpoint, store: Store) -> None:
    service.refuse = 502
    with pytest.raises(EndpointError):
        submit(store, UNITS, Ask(here), [here])
    service.batches.clear()
    assert [one.batch for one in fetch(store, [here])] == [None]
    service.refuse = 400
    with pytest.raises(EndpointError, match="not now"):
        submit(store, UNITS, Ask(here), [here])
    assert list(fetch(store, [here])) == []
    service.refuse = None
    assert submit(store, UNITS, Ask(here), [here]).requests == 40


def test_what_a_batch_leaves_that_expires_or_is_refused_as_a_whole_is_told_and_submitted_again(
    service: BatchService, here: Endpoint, store: Store
) -> None:
    submit(store, UNITS, Ask(here), [here])
    service.finish("failed", problem="The model has no batches.")
    (one,) = fetch(store, [here])
    assert (one.batch.status, one.problems, one.imports) == ("failed", ("The model has no batches.",), ())
    assert submit(store, UNITS, Ask(here), [here]).requests == 40
    service.finish("expired")
    (one,) = fetch(store, [here])
    assert (one.batch.status, counts(one)) == ("expired", (20, 20))
    assert [(part.imported, len(part.failed)) for part in one.imports] == [(20, 0), (0, 20)]
    assert "Too late." in one.imports[1].failed[0][2]
    again = submit(store, UNITS, Ask(here), [here])
    assert (again.requests, again.cached) == (20, 20)


def test_every_endpoint_fetches_its_own_batches(service: BatchService, here: Endpoint, store: Store) -> None:
    there = replace(here, name="there", model="n")
    for endpoint in (here, there):
        submit(store, UNITS, Ask(endpoint), [here, there])
    service.finish()
    assert [one.endpoint for one in fetch(store, [there])] == [there]
    assert [one.endpoint for one in fetch(store, [there, here])] == [here]
    assert store.count() == 80


def test_a_damaged_store_keeps_what_it_knows_of_batches(service: BatchService, here: Endpoint, store: Store) -> None:
    submit(store, UNITS, Ask(here), [here])
    store.recover("malformed, says the test")
    assert submit(store, UNITS, Ask(here), [here]).under_way == 40
    service.finish()
    assert len(list(fetch(store, [here]))) == 1
    assert store.count() == 40
    store.note_submission("x", "{")
    with pytest.raises(StoreError, match="batch import"):
        list(fetch(store, [here]))


def test_what_has_no_batches_is_a_sentence(here: Endpoint, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    mock = Endpoint("mock", "recorded:", "mock")
    with pytest.raises(UsageError, match="no batch service"):
        submit(store, UNITS, Ask(mock), [mock])
    monkeypatch.delenv("SOME_KEY")
    with pytest.raises(ConfigError, match="SOME_KEY"):
        submit(store, UNITS, Ask(here), [here])
    gone = Endpoint("gone", "http://127.0.0.1:9/v1", "m")
    with pytest.raises(EndpointError, match="gone"):
        submit(store, UNITS, Ask(gone), [gone])
