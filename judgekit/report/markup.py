"""The templates, filled: every text is escaped, and its control characters are made visible."""

from __future__ import annotations

from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from judgekit.analysis.resampling import percent
from judgekit.report.formatting import FILTERS, shown


@cache
def environment() -> jinja2.Environment:
    """Return the environment of all templates."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("judgekit.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters["percent"] = percent
    for function in FILTERS:
        made.filters[function.__name__] = function
    return made


def fill(template: str, **context: Any) -> Markup:
    """Return a template with the values that it asks for."""
    # Whatever is not from our own templates went through autoescaping.
    return Markup(environment().get_template(template).render(**context).strip())
