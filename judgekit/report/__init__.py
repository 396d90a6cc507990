"""Terminal tables, figures and the self-contained HTML page.

`Results` holds all that is shown; `print_tables` and `write_html` show it; `save` and `load` keep it in a results
folder, so that the page can be drawn again.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgekit.report.files import load, save, with_section
    from judgekit.report.model import Results
    from judgekit.report.page import render, write_html
    from judgekit.report.terminal import print_tables

__all__ = ["Results", "load", "print_tables", "render", "save", "with_section", "write_html"]

_HOMES = {
    "Results": "model",
    "load": "files",
    "print_tables": "terminal",
    "render": "page",
    "save": "files",
    "with_section": "files",
    "write_html": "page",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
