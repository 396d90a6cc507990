import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from judgekit.client.batch.files import export_batch, import_batch
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.errors import DataError, UsageError
from judgekit.store.replies import Store
from judgekit.wire.types import Endpoint, Outcome, Request
from tests.programs import Ask, collect, texts
from tests.scripted import ScriptedTransport, completion

HERE = Endpoint("here", "http://h/v1", "m")
UNITS = [f"unit {i:03}" for i in range(300)]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def script(body: dict[str, Any]) -> str:
    return f"About {body['messages'][0]['content']} é: yes"


def answer(requests: Sequence[dict[str, Any]], path: Path) -> None:
    """Do what a batch service does: answer in another order, with its own fields around."""
    lines = []
    for number, row in enumerate(requests):
        body = json.loads(completion(script(row["body"])).body)
        response = {"status_code": 200, "request_id": f"r{number}", "body": body}
        lines.append({"id": f"b{number}", "custom_id": row["custom_id"], "response": response, "error": None})
    random.Random(1).shuffle(lines)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def label(store: Path, program: Ask) -> tuple[dict[str, list[str]], int]:
    transport = ScriptedTransport(script)
    with Session(store, transports=lambda _: transport) as session:
        outcomes = run_sync(collect(session, UNITS, program))
    return {unit: texts(outcomes[unit]) for unit in UNITS}, len(transport.sent)


@pytest.mark.parametrize("waves", [1, 2])
def test_export_answer_import_then_label_without_a_request(waves: int, store: Store, tmp_path: Path) -> None:
    program = Ask(HERE, max_tokens=5, waves=waves)
    for wave in range(waves):
        file = tmp_path / f"{wave}.jsonl"
        exported = export_batch(store, UNITS, program, file)
        more = wave < waves - 1
        assert (exported.requests, exported.cached, exported.at_least) == (300, 300 * wave, more), "later waves follow"
        assert exported.files == {file: HERE}
        lines = rows(file)
        assert [line["body"]["messages"][0]["content"] for line in lines] == (UNITS if wave == 0 else ANY)
        assert set(lines[0]) == {"custom_id", "method", "url", "body"}
        assert (lines[0]["method"], lines[0]["url"]) == ("POST", "/v1/chat/completions")
        assert store.count(waiting=True) == 300
        answer(lines, tmp_path / "result.jsonl")
        result = import_batch(store, tmp_path / "result.jsonl")
        assert (result.imported, result.there, result.failed, result.unknown) == (300, 0, [], [])
        assert store.count(waiting=True) == 0
    again = import_batch(store, tmp_path / "result.jsonl")
    assert (again.imported, again.there) == (0, 300)
    assert export_batch(store, UNITS, program, tmp_path / "rest.jsonl").files == {}
    assert not (tmp_path / "rest.jsonl").exists()
    batched, sent = label(tmp_path / "store", program)
    assert sent == 0
    online, sent = label(tmp_path / "other", program)
    assert sent == 300 * waves
    assert batched == online


def test_the_reason_that_vllm_gives_beside_an_empty_response_is_told(store: Store, tmp_path: Path) -> None:
    """``vllm run-batch`` 0.32 writes a refusal so."""
    export_batch(store, UNITS[:1], Ask(HERE), tmp_path / "batch.jsonl")
    (row,) = rows(tmp_path / "batch.jsonl")
    said = "This model's maximum context length is 512 tokens."
    line = {
        "custom_id": row["custom_id"],
        "response": {"status_code": 400, "request_id": "r", "body": None},
        "error": {"error": {"message": said, "type": "BadRequestError", "param": None, "code": 400}},
    }
    (tmp_path / "result.jsonl").write_text(json.dumps(line))
    assert [reason for _, _, reason in import_batch(store, tmp_path / "result.jsonl").failed] == [f"400: {said}"]


def test_errors_are_told_by_line_and_exported_again(store: Store, tmp_path: Path) -> None:
    program = Ask(HERE)
    export_batch(store, UNITS[:5], program, tmp_path / "batch.jsonl")
    keys = [row["custom_id"] for row in rows(tmp_path / "batch.jsonl")]
    good = json.loads(completion("yes").body)
    lines = [
        {"custom_id": keys[0], "response": {"status_code": 200, "body": good}, "error": None},
        {"custom_id": keys[1], "response": None, "error": {"code": "expired", "message": "It took too long."}},
        {"custom_id": keys[2], "response": {"status_code": 400, "body": {"error": {"message": "Too long."}}}},
        {"custom_id": keys[3], "response": {"status_code": 200, "body": {"choices": []}}},
        {"custom_id": "somebody else's", "response": {"status_code": 200, "body": good}},
        {"custom_id": keys[0], "response": {"status_code": 200, "body": good}},
    ]
    (tmp_path / "result.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    result = import_batch(store, tmp_path / "result.jsonl")
    assert (result.imported, result.there) == (1, 1)
    assert [(line, key) for line, key, _ in result.failed] == [(2, keys[1]), (3, keys[2]), (4, keys[3])]
    assert [reason.split(": ", 1)[1] for _, _, reason in result.failed[:2]] == ["It took too long.", "Too long."]
    assert result.unknown == [(5, "somebody else's")]
    again = export_batch(store, UNITS[:5], program, tmp_path / "again.jsonl")
    assert (again.requests, again.cached, again.again) == (4, 1, 4)


class Several(Ask):
    """The same request to several endpoints."""

    def __init__(self, *ends: Endpoint) -> None:
        self.ends = ends

    def most(self, unit: str, /) -> int:
        return len(self.ends)

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        return [request for end in self.ends for request in Ask(end).requests(unit, replies)]


def test_a_file_asks_one_endpoint_and_model_and_stays_below_the_limits(store: Store, tmp_path: Path) -> None:
    ends = [HERE, *(Endpoint("b/c", "http://i/v1", model, params={"seed": s}) for model in "nm" for s in (1, 2))]
    exported = export_batch(store, UNITS, Several(*ends), tmp_path / "batch.jsonl", most=140)
    assert [path.name for path in exported.files] == ["batch.jsonl", *(f"batch-{n:03}.jsonl" for n in range(2, 14))]
    written = [row for path in exported.files for row in rows(path)]
    assert len({row["custom_id"] for row in written}) == len(written) == exported.requests == 5 * 300
    for path, endpoint in exported.files.items():
        assert 0 < len(rows(path)) <= 140
        assert {row["body"]["model"] for row in rows(path)} == {endpoint.model}
    size = (tmp_path / "batch.jsonl").stat().st_size // 140 * 50
    split = export_batch(store, UNITS, Ask(HERE), tmp_path / "small.jsonl", size=size)
    assert len(split.files) == 6
    assert all(path.stat().st_size <= size for path in split.files)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not json", "not JSON"),
        ("[]", "custom_id"),
        ('{"custom_id": "x", "body": {}}', "the file that was exported"),
        ('{"custom_id": "x"}', "neither a response nor an error"),
        ('{"custom_id": "x", "resp\n', "not JSON"),
    ],
)
def test_a_malformed_line_is_named_and_nothing_is_imported(
    store: Store, tmp_path: Path, text: str, reason: str
) -> None:
    export_batch(store, UNITS[:2], Ask(HERE), tmp_path / "batch.jsonl")
    answer(rows(tmp_path / "batch.jsonl"), tmp_path / "result.jsonl")
    with (tmp_path / "result.jsonl").open("a") as file:
        file.write(text)
    with pytest.raises(DataError, match=reason) as caught:
        import_batch(store, tmp_path / "result.jsonl")
    assert caught.value.line == 3
    assert store.count() == 0


def test_a_file_that_ends_in_the_middle_of_a_line_is_refused(store: Store, tmp_path: Path) -> None:
    export_batch(store, UNITS[:3], Ask(HERE), tmp_path / "batch.jsonl")
    result = tmp_path / "result.jsonl"
    answer(rows(tmp_path / "batch.jsonl"), result)
    result.write_bytes(result.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"line 3: .*download it again"):
        import_batch(store, result)
    with pytest.raises(UsageError, match=r"\.jsonl"):
        export_batch(store, UNITS, Ask(HERE), tmp_path / "batch.json")


class Free:
    """Asks one request whose body holds the model to a form, and that is sent without that."""

    def requests(self, unit: str, replies: Sequence[Outcome], /) -> list[Request]:
        body = b'{"messages":[{"content":"u"}],"model":"m","response_format":{"type":"json_object"}}'
        return [] if replies else [Request(HERE, body, free=True)]


def test_a_request_that_is_free_of_constraints_goes_out_without_them(store: Store, tmp_path: Path) -> None:
    export_batch(store, ["u"], Free(), tmp_path / "b.jsonl")
    (line,) = rows(tmp_path / "b.jsonl")
    (request,) = Free().requests("u", [])
    assert line["body"] == {"messages": [{"content": "u"}], "model": "m"}
    assert line["custom_id"] == request.key
