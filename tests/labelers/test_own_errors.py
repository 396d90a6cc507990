"""What goes wrong in a user's own labeler is told by labeler, query, document and line, and ends."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import judgekit as jk
from judgekit.errors import UsageError
from judgekit.extend import Label, Request, Response, Unit, chat
from tests.scripted import ScriptedTransport

POOL: dict[str, Any] = {"queries": {"q": "Who?"}, "docs": {"d": "He."}, "runs": {"one": {"q": {"d": 1.0}}}}


class Own(jk.Labeler):
    kind = "own"
    scale = jk.Scale("binary")

    def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
        return [] if replies else [self._asked(f"of {unit.docs[0].doc_id}")]

    def _asked(self, text: str) -> Request:
        return chat(self.context.endpoint(None), [{"role": "user", "content": text}])

    def label(self, unit: Unit, replies: Sequence[Response], /) -> list[Label]:
        return [Label(unit.query.query_id, unit.docs[0].doc_id, 1.0)]


class AsksWrongly(Own):
    def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
        return [self._asked(unit.docs[0].txt)]  # type: ignore[attr-defined]  # the error


class AsksWronglyLater(Own):
    def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
        return [self._asked("first")] if not replies else [self._asked("second" + 2)]  # type: ignore[operator]


class ReadsWrongly(Own):
    def label(self, unit: Unit, replies: Sequence[Response], /) -> list[Label]:
        return [Label("q", "d", float(replies[0].text))]  # type: ignore[union-attr]


class NeverEnds(Own):
    def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
        return [self._asked(f"{len(replies)}")]


class SaysTheSame(Own):
    def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
        return [self._asked("again")]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (
            AsksWrongly,
            r"^askswrongly, query 'q', doc 'd': requests: AttributeError: .*'txt' \(test_own_errors\.py, line 33\)$",
        ),
        (
            AsksWronglyLater,
            r"^askswronglylater, query 'q', doc 'd': requests: TypeError: .* \(test_own_errors\.py, line 38\)$",
        ),
        (
            ReadsWrongly,
            r"^readswrongly, query 'q', doc 'd': label: ValueError: .*'Yes' \(test_own_errors\.py, line 43\)$",
        ),
        (NeverEnds, r"neverends, query 'q', doc 'd': requests asked 100 times for more about one unit"),
        (SaysTheSame, r"saysthesame, query 'q', doc 'd': requests asked 100 times for more about one unit"),
    ],
)
def test_an_error_says_where_it_is(kind: type[Own], told: str, tmp_path: Path) -> None:
    transport = ScriptedTransport("Yes")
    endpoint = jk.Endpoint("m", "http://server.example/v1", "m", transport=transport)
    with pytest.raises(UsageError, match=told):
        jk.label(kind(), **POOL, endpoints=endpoint, asking=jk.Asking(cache=tmp_path))
    assert len(transport.sent) <= 101
    if kind in (NeverEnds, SaysTheSame):
        with pytest.raises(UsageError, match=told):
            jk.label.plan(kind(), **POOL, endpoints=endpoint, asking=jk.Asking(cache=tmp_path))
