"""What `make servers` calls a change of a server's responses."""

import json
from pathlib import Path

import pytest

from tests import probe, probing


@pytest.mark.parametrize(
    ("name", "form"),
    [(probing.LLAMA, "grammar"), (probing.LITELLM, "grammar"), (probing.VLLM, "list of words")],
)
def test_changed_responses_are_shown_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str
) -> None:
    monkeypatch.setattr(probing, "BUILD", tmp_path)
    recorded = probing.records(probe.RECORDS / f"{name}.jsonl")

    def write(**changed: dict[str, object]) -> None:
        lines = [json.dumps({**record, **changed.get(what, {})}) for what, record in recorded.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")

    write()
    assert probing.changes(name) == []
    body = json.loads(recorded["plain"]["body"])
    text = json.loads(recorded[form]["body"])
    text["choices"][0]["message"]["content"] = "The sky is blue"
    error = recorded["broken"]["body"]
    write(
        plain={"body": json.dumps({**body, "created": 1, "id": "x", "stored": True})},
        **{form: {"body": json.dumps(text)}},
        broken={"body": error.replace("message", "detail"), "status": 422},
    )
    said = probing.changes(name)
    assert f"{name}: plain: .stored bool: None became field" in said
    assert f"{name}: {form}: held: True became False" in said
    assert any(line.startswith(f"{name}: broken: status: ") and line.endswith("became 422") for line in said)
    assert all(line.split(": ")[1] in ("plain", form, "broken") for line in said)


def test_refusals_in_another_shape_are_compared_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "BUILD", tmp_path)
    text = (probe.RECORDS / f"{probing.TRANSFORMERS}.jsonl").read_text(encoding="utf-8")
    (tmp_path / f"{probing.TRANSFORMERS}.jsonl").write_text(text, encoding="utf-8")
    assert probing.changes(probing.TRANSFORMERS) == []
