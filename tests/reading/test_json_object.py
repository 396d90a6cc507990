"""An object as models write it is read, and nothing is guessed."""

import json
import time

import pytest
from hypothesis import given, strategies as st

from judgekit.reading.json_object import leaves, parse_object

NEAR = [
    '{"a": 2,}',
    "{'a': 2}",
    "{a: 2}",
    "{“a”: 2}",
    '{"a": 2 // good\n}',
    '{"a": 2 /* good */}',
    '# mine\n{"a": 2}',
    '[{"a": 2}]',
    '{"a": 2}\n{"a": 2}',
    '{"a": 2.0}',
    '{"A": 2}',
]
NONE = [
    *('{"a": 2 or 3}', '{"a": 2/3}', '{"a": 2', '{"a" 2}', '{"a": }', "2", '"a"', '{"a": 2} and so on', '{"a": 2 3}'),
    *(
        '{"a": 2}{"a": 3}',
        '[{"a": 2}, {"a": 3}]',
        '{"a": 2, "a": 2}',
        "{'a': 2, 'A': 3}",
        '{"a": 2, "a": 3,}',
        "[]",
        "",
    ),
    *('{"a": "it says "no" there"}', '{"a": 2%}', '{"a": >2}', "[" * 50_000, '{"a":' * 50_000, "'" * 50_000),
]


@pytest.mark.parametrize("text", NEAR)
def test_what_is_nearly_json_is_read(text: str) -> None:
    assert parse_object(text) == {"a": 2}


@pytest.mark.parametrize("text", NONE)
def test_what_can_be_read_in_two_ways_is_not(text: str) -> None:
    assert parse_object(text) is None


def test_words_of_python_and_marks_inside_of_texts() -> None:
    assert parse_object("{'a': True, 'b': None, c: no, 'd': 'it's there', \"e\": \"one\nline\"}") == {
        "a": True,
        "b": None,
        "c": "no",
        "d": "it's there",
        "e": "one\nline",
    }
    assert parse_object('{"a": "\\u00e9 \\"x\\"",}') == {"a": 'é "x"'}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc", min_size=1), VALUES, min_size=1, max_size=4))
def test_strict_json_is_what_json_makes_of_it_and_a_comma_changes_nothing(entries: dict[str, object]) -> None:
    text = json.dumps(entries)
    assert parse_object(text) == json.loads(text)
    assert parse_object(f"{text[:-1]},}}") == json.loads(text)


def test_leaves_are_found_at_whatever_depth() -> None:
    entries = {"name": "judge", "arguments": {"relevant": "No", "more": {"why": "x"}}}
    assert sorted(leaves(entries)) == [("name", "judge"), ("relevant", "No"), ("why", "x")]


@pytest.mark.parametrize("piece", ["'", '"', "{", "/*", "//", "a", "1", "{a:[", "\\"])
def test_the_time_is_linear(piece: str) -> None:
    def seconds(times: int) -> float:
        begun = time.process_time()
        parse_object(f"{{'a': {piece * times}")
        return time.process_time() - begun

    assert min(seconds(40_000) for _ in range(2)) < 40 * max(min(seconds(5_000) for _ in range(3)), 0.005)
