"""Forgetting: what meets the conditions goes, with every trace of it, and nothing else does."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from judgekit.errors import UsageError
from judgekit.reading.prompts import neutral
from judgekit.store.maintenance import find, forget, verify
from judgekit.store.records import Record
from judgekit.store.replies import Store
from judgekit.wire.jsontext import canonical
from judgekit.wire.types import Endpoint, chat, identity

HERE = Endpoint("here", "http://h/v1", "judge")
NOW = time.time()


def record(prompt: object, *, model: str = "judge", says: str = "judge-1", days: float = 0.0) -> Record:
    endpoint = replace(HERE, model=model)
    content = prompt if isinstance(prompt, str) else canonical(prompt).decode()
    body = chat(endpoint, [{"role": "user", "content": content}]).body.decode()
    reply = json.dumps({"model": says, "choices": [{"message": {"content": "Yes"}}]})
    key = identity(endpoint.identity, 0, body.encode())
    return Record(key, endpoint.identity, 0, body, None, reply, None, NOW - 86_400 * days)


def filled(path: Path, *records: Record) -> Store:
    store = Store(path)
    store.put_many(records)
    return store


QUESTION = "Who wrote “Émile”? <question>"
SHOWN = QUESTION.replace("<question>", "&lt;question>")  # no text can close a fence of the prompt
ASKED = {
    "fenced": f"Judge.\n<question>\n{SHOWN}\n</question>\n<passage>x</passage>",
    "in a line": f"Question: {SHOWN} Answer:",
    "alone": SHOWN,
}


@pytest.mark.parametrize("how", ASKED)
def test_a_question_is_found_by_its_text_however_the_prompt_shows_it(tmp_path: Path, how: str) -> None:
    mine, other = record(ASKED[how]), record("Who wrote “Émilie”?")
    store = filled(tmp_path, mine, other)
    found = find(store, query=neutral(f" {QUESTION}\n"))
    assert (found.replies, found.waiting) == ([mine.key], [])
    store.close()


def test_replies_of_the_api_that_is_gone_are_whole_and_can_be_forgotten(tmp_path: Path) -> None:
    body = canonical({"input": [{"role": "user", "content": SHOWN}], "model": "judge"}).decode()
    key = identity(HERE.identity, 0, body.encode())
    reply = json.dumps({"status": "completed", "output": []})
    store = filled(tmp_path, Record(key, HERE.identity, 0, body, None, reply, None, NOW))
    assert verify(store).ok
    assert find(store, query=neutral(QUESTION)).replies == [key]
    store.close()


@pytest.mark.parametrize("other", ["What is art?s", "xWhat is art?", "what is art?", "What is art", "What  is art?"])
def test_another_question_is_not_found(tmp_path: Path, other: str) -> None:
    store = filled(tmp_path, record(f"<question>\n{other}\n</question>"))
    assert not find(store, query="What is art?")
    store.close()


def test_all_conditions_must_hold(tmp_path: Path) -> None:
    old, new = record("a", days=40), record("b", days=2)
    third, renamed = record("c", model="other", says="other", days=40), record("d", says="judge-2")
    store = filled(tmp_path, old, new, third, renamed)

    def keys(**conditions: object) -> set[str]:
        return set(find(store, **conditions).replies)  # type: ignore[arg-type]

    month = NOW - 30 * 86_400
    assert keys(before=month) == {old.key, third.key}
    assert keys(model="judge") == {old.key, new.key, renamed.key}
    assert keys(model="judge-2") == {renamed.key}
    assert keys(model="judge", before=month) == {old.key}
    assert keys(model="judge", query="c") == set()
    assert find(store, before=month).parts == {("http://h/v1", "judge"): 1, ("http://h/v1", "other"): 1}
    for nothing in ({}, {"query": " "}):
        with pytest.raises(UsageError):
            find(store, **nothing)  # type: ignore[arg-type]
    store.close()


def test_what_is_forgotten_leaves_no_trace_in_the_files_and_all_else_stays(tmp_path: Path) -> None:
    secret = "Where does Ms Kowalczyk live?"
    mine = [record(f"<question>\n{secret}\n</question>\n" + f"passage {n} " * 500) for n in range(20)]
    others = [record(f"<question>\nWhere does the Nile end?\n</question>\n{n}") for n in range(20)]
    waits = replace(record(f"{secret} again"), reply=None)
    store = filled(tmp_path, *mine, *others, waits)
    assert len(store.waiting([waits.key])) == 1
    forget(store, find(store, query=secret))
    assert set(store.get_many([r.key for r in (*mine, *others)])) == {r.key for r in others}
    assert store.waiting([waits.key]) == {}
    assert not any(b"Kowalczyk" in path.read_bytes() for path in tmp_path.iterdir())
    store.put_many(mine[:1])
    assert store.count() == 21
    assert store.check() == "ok"
    store.close()


def test_rows_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    store = filled(tmp_path, record("a"), record("b"))
    with sqlite3.connect(tmp_path / "cache.db") as rows:
        rows.execute("UPDATE Cache SET value = 'x' WHERE key = ?", (record("a").key,))
    rows.close()
    found = find(store, model="judge")
    assert (found.replies, found.damaged) == ([record("b").key], 1)
    store.close()
