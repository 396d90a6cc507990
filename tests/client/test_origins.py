"""Which model answered: one labeling is made by one model, or it is said that it is not."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgekit as jk
from judgekit.client.model_drift import mixed_answers, origin
from judgekit.client.session import Session
from judgekit.client.sync import run_sync
from judgekit.progress import Event
from judgekit.wire.types import Endpoint, Reply, chat
from tests.programs import Ask, collect
from tests.scripted import Scripted, ScriptedTransport, completion

HERE = Endpoint("here", "http://h/v1", "judge")
UNITS = [f"unit {i}" for i in range(20)]


def said(text: str, **fields: object) -> Scripted:
    """Return a completion that names its model and its fingerprint."""
    return Scripted(200, json.dumps({**json.loads(completion(text).body), **fields}).encode())


def resolve(store: Path | None, units: list[str], program: Ask, *, stage: str = "label a", **fields: object) -> Session:
    transport = ScriptedTransport(lambda body: said("Yes", **fields))
    with Session(store, transports=lambda _: transport) as session:
        run_sync(collect(session, units, program, stage))
    return session


def test_replies_of_two_models_under_one_name_are_a_mix(tmp_path):
    first = resolve(tmp_path, UNITS[:5], Ask(HERE), model="judge-2026-01", system_fingerprint="fp_a")
    assert first.mixed() == []
    second = resolve(tmp_path, UNITS, Ask(HERE), model="judge-2026-09", system_fingerprint="fp_b")
    sentence = (
        "label a: the replies of the endpoint 'here' come from 2 models, although only 'judge' was requested:"
        " judge-2026-01 (5), judge-2026-09 (15)"
    )
    assert second.mixed() == second.notes == [sentence]
    assert resolve(tmp_path, UNITS, Ask(HERE)).mixed() == [sentence], "from the store alone, too"


@pytest.mark.parametrize("silent", [{}, {"model": None}, {"model": 7, "system_fingerprint": ["x"]}, {"model": ""}])
def test_a_reply_that_names_no_model_is_no_evidence_of_another_one(tmp_path, silent):
    resolve(tmp_path, UNITS[:5], Ask(HERE), **silent)
    assert resolve(tmp_path, UNITS, Ask(HERE), model="judge-2026-09").notes == []


def test_several_fingerprints_of_one_model_are_no_mix(tmp_path):
    resolve(tmp_path, UNITS[:5], Ask(HERE), model="m", system_fingerprint="fp_a")
    session = resolve(tmp_path, UNITS, Ask(HERE), model="m", system_fingerprint="fp_b")
    assert session.mixed() == session.notes == []


def test_a_model_that_changes_between_two_labelings_is_told_and_is_no_mix(tmp_path):
    resolve(tmp_path, UNITS, Ask(HERE), model="judge-2026-01")
    transport = ScriptedTransport(lambda body: said("Yes", model="judge-2026-09"))
    with Session(tmp_path, transports=lambda _: transport) as session:
        run_sync(collect(session, UNITS, Ask(HERE), "label a"))
        run_sync(collect(session, UNITS, Ask(HERE, temperature=1), "label b"))
        assert session.mixed() == []
        (note,) = session.notes
    assert note == (
        "label b: the replies of the endpoint 'here' come from judge-2026-09, those of earlier stages from"
        " judge-2026-01"
    )


def labels(script: Any, spelling: str, *named: Endpoint) -> tuple[pd.DataFrame, list[str]]:
    """Return the labels of three documents, and what the user was told."""
    docs, runs = {f"d{i}": f"passage {i}" for i in range(3)}, {"a": {"q": {f"d{i}": 3.0 - i for i in range(3)}}}
    endpoints, events = [replace(one, transport=ScriptedTransport(script)) for one in named], list[Event]()
    made = jk.label(
        spelling,
        queries={"q": "When?"},
        docs=docs,
        runs=runs,
        endpoints=endpoints,
        asking=jk.Asking(progress=events.append),
    )
    return made.table, [event.note for event in events if event.note]


def test_every_label_names_the_model_and_the_fingerprint_behind_it():
    def script(body):
        late = "passage 2" in body["messages"][-1]["content"]
        return said("Yes", model="m-2" if late else "m-1", system_fingerprint="fp_b" if late else "fp_a")

    table, (note,) = labels(script, "judge", HERE)
    found = {row.doc_id: (row.reply_model, row.fingerprint) for row in table.itertuples()}
    assert found == {"d0": ("m-1", "fp_a"), "d1": ("m-1", "fp_a"), "d2": ("m-2", "fp_b")}
    assert "come from 2 models" in note


def test_a_jury_of_two_models_is_no_mix():
    there = Endpoint("there", "http://t/v1", "other")
    table, notes = labels(lambda body: said("Yes", model=f"{body['model']}-1"), "judge(jury=here+there)", HERE, there)
    assert set(table["reply_model"]) == {"judge-1; other-1"}
    assert notes == []


def test_the_origin_of_a_label_from_several_replies_names_each_once():
    key = chat(HERE, []).key
    replies = [
        Reply(key, said("Yes", model=model, system_fingerprint=mark).body.decode())
        for model, mark in (("a", "x"), ("b", None), ("a", "y"), ("a", "x"))
    ]
    assert origin(replies) == ("a; b", "x; y")
    assert origin([]) == ("", "")


@pytest.mark.parametrize(
    ("origins", "said"),
    [
        (["m-1", "m-2", "m-2"], "The answers of 'm' come from 2 models: m-1 (4), m-2 (8)"),
        (["m-1", "m-1; m-2"], "The answers of 'm' come from 2 models: m-1 (12), m-2 (6)"),
        (["m-1"], ""),
        (["m-1", ""], ""),
        (["", None], ""),
    ],
)
def test_answers_of_two_models_under_one_name_are_a_mix_each_counted_once(origins, said):
    answers = [("a", "m", f"q{i}", origins[i % len(origins)], metric) for i in range(12) for metric in ("em", "f1")]
    quality = pd.DataFrame(answers, columns=["run", "model", "query_id", "reply_model", "metric"])
    assert mixed_answers(quality) == said
    assert mixed_answers(quality.drop(columns="model")) == said.replace(" of 'm'", "")
    assert mixed_answers(quality.drop(columns="reply_model")) == ""
