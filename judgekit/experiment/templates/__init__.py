"""The texts that are written with values filled in: the card of final labels, and the experiment file of `init`."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jinja2

from judgekit.data.outputs import inline


def filled(template: str, **values: Any) -> str:
    """Return a text of this folder with values filled in."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> jinja2.Environment:
    """Return the compiled templates' environment."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("judgekit.experiment"),
        # For HTML; what others wrote goes through the filters below.
        autoescape=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for function in (inline, quoted, alone, key, beside, commented):
        environment.filters[function.__name__] = function
    return environment


def quoted(value: str | list[str]) -> str:
    """Return a text or a list of texts as TOML has it."""
    return json.dumps(value, ensure_ascii=False)


def alone(values: list[str]) -> str | list[str]:
    """Return the value of a list that holds one, else the list."""
    return values[0] if len(values) == 1 else values


def key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def beside(line: str, comment: str) -> str:
    """Return a line of TOML with a comment, which stands below those of other lines."""
    return f"{line:<31} # {comment}"


def commented(text: str) -> str:
    """Return TOML whose lines are comments."""
    return re.sub(r"(?m)^(?=[^#\n])", "# ", text)
