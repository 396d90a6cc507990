"""The ways in which servers hold a model to a form: a list of words, a JSON schema, a regular expression, a grammar.

Prompts state the first way that fits their form (`ReplyFormat.constraint`). Servers support different ones: vLLM all
except a bare grammar, llama-server a schema and a grammar, SGLang a schema and a regular expression. Servers often
ignore unknown constraints with 200, so only replies show whether they work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from judgekit.wire.jsontext import at, canonical, parse_json
from judgekit.wire.types import CONSTRAINTS

Kind = Literal["words", "object"]
"""A form: one of a few words, or a JSON object with certain keys."""

# JSON's characters between quotation marks, and between a key and its value.
_STRING: Final = r'"\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt])* "\""'


@dataclass(frozen=True, slots=True)
class Way:
    """A way to state a form.

    Attributes:
        name: its name in a sentence.
        fields: the fields of a request body that state it.
    """

    name: str
    fields: Mapping[str, Any]


def kind_of(constraint: Mapping[str, Any]) -> Kind:
    """Return the form that a constraint enforces."""
    return "words" if _words(constraint) else "object"


def ways(constraint: Mapping[str, Any]) -> tuple[Way, ...]:
    """Return the ways to state a constraint, the least intrusive first."""
    # Every request asks, and prompts have few forms.
    return _ways(canonical(constraint))


_FREE = {"type": "text"}
"""The ``response_format`` without a form, with which a user turns constraints off."""


def unconstrained(body: bytes) -> bytes:
    """Return a request body without the fields that hold a model to a form."""
    fields = parse_json(body)
    holding = {name for name in CONSTRAINTS & fields.keys() if (name, fields[name]) != ("response_format", _FREE)}
    if not holding:
        return body
    return canonical({name: value for name, value in fields.items() if name not in holding})


@lru_cache(maxsize=64)
def _ways(stated: bytes) -> tuple[Way, ...]:
    constraint = parse_json(stated)
    words = _words(constraint)
    if words:
        return (
            Way("a list of words", constraint),
            Way("a JSON schema", _by_schema({"type": "string", "enum": list(words)})),
            Way("a regular expression", {"regex": f"({'|'.join(map(re.escape, words))})"}),
            Way("a grammar", {"grammar": f"root ::= {_choice(words)}"}),
        )
    schema, first = _schema(constraint), Way("a JSON schema", constraint)
    return (first, Way("a grammar", {"grammar": _object_grammar(schema)})) if schema else (first,)


def obeys(text: str, constraint: Mapping[str, Any]) -> bool:
    """Whether a whole reply has a constraint's form; a word may be quoted, as in JSON."""
    text = text.strip()
    words = _words(constraint)
    if words:
        return text in words or text.removeprefix('"').removesuffix('"') in words
    try:
        said = parse_json(text)
    except ValueError:
        return False
    return isinstance(said, dict) and set(_schema(constraint).get("required", ())) <= said.keys()


def leaves(text: str, constraint: Mapping[str, Any]) -> bool:
    """Whether a reply's beginning rules out a constraint's form."""
    begun = text.strip()
    words = _words(constraint)
    if words:
        return not any(form.startswith(begun) for word in words for form in (word, f'"{word}"'))
    return not begun.startswith("{"[: len(begun)])


def _words(constraint: Mapping[str, Any]) -> Sequence[str]:
    words = at(constraint, "structured_outputs", "choice")
    return words if isinstance(words, list) else ()


def _schema(constraint: Mapping[str, Any]) -> dict[str, Any]:
    schema = at(constraint, "response_format", "json_schema", "schema")
    return schema if isinstance(schema, dict) else {}


def _by_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": "verdict", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _choice(values: Sequence[Any]) -> str:
    """Return one of several literal texts in GBNF, llama.cpp's grammars."""
    return " | ".join(json.dumps(str(value), ensure_ascii=False) for value in values)


def _object_grammar(schema: Mapping[str, Any]) -> str:
    """Return a flat schema as a grammar: its keys in order, with one blank after each colon and comma."""
    members: list[str] = []
    for key, declared in schema.get("properties", {}).items():
        if declared.get("type") == "boolean":
            value = '("true" | "false")'
        elif "enum" in declared:
            value = f"({_choice([json.dumps(value, ensure_ascii=False) for value in declared['enum']])})"
        else:
            value = "string"
        members.append(f"{_choice([json.dumps(key, ensure_ascii=False) + ': '])} {value}")
    listed = ' ", " '.join(members)
    return f'root ::= "{{" {listed} "}}"\nstring ::= {_STRING}'
