"""Names for your own labeler, answer metric, form of data or step, beside `judgekit` itself.

    from judgekit.extend import Failure, Label, chat

Names here stay, as those of `judgekit` do; those of other modules may move. Each is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from judgekit.analysis.claims import Claim as Claim
    from judgekit.answers.quality import Answered as Answered, Score as Score
    from judgekit.answers.reading import Answer as Answer
    from judgekit.client.session import Session as Session
    from judgekit.collection import Collection as Collection
    from judgekit.context import Context as Context
    from judgekit.data.documents import Fields as Fields, Unit as Unit, render as render
    from judgekit.data.spans import where as where
    from judgekit.errors import (
        ConfigError as ConfigError,
        DataError as DataError,
        StoppedError as StoppedError,
        UsageError as UsageError,
    )
    from judgekit.experiment.prepare import Prepared as Prepared
    from judgekit.experiment.step import State as State
    from judgekit.labelers.base import Label as Label, Needs as Needs
    from judgekit.progress import Event as Event, Progress as Progress
    from judgekit.reading.asker import Asker as Asker
    from judgekit.reading.lists import ListAsker as ListAsker, Question as Question
    from judgekit.reading.prompts import (
        Prompt as Prompt,
        find_prompt as find_prompt,
        load_prompt as load_prompt,
        neutral as neutral,
        passages as passages,
    )
    from judgekit.reading.verdict import Unread as Unread
    from judgekit.report.model import Section as Section
    from judgekit.settings import check_settings as check_settings, setting as setting
    from judgekit.wire.types import (
        Failure as Failure,
        Outcome as Response,
        Reply as Reply,
        Request as Request,
        chat as chat,
    )

_HOMES: Final = {
    name: home
    for home, names in {
        "analysis.claims": "Claim",
        "answers.quality": "Answered Score",
        "answers.reading": "Answer",
        "client.session": "Session",
        "collection": "Collection",
        "context": "Context",
        "data.documents": "Fields Unit render",
        "data.spans": "where",
        "errors": "ConfigError DataError StoppedError UsageError",
        "experiment.prepare": "Prepared",
        "experiment.step": "State",
        "labelers.base": "Label Needs",
        "progress": "Event Progress",
        "reading.asker": "Asker",
        "reading.lists": "ListAsker Question",
        "reading.prompts": "Prompt find_prompt load_prompt neutral passages",
        "reading.verdict": "Unread",
        "report.model": "Section",
        "settings": "check_settings setting",
        "wire.types": "Failure Reply Request Response chat",
    }.items()
    for name in names.split()
}
_ELSEWHERE: Final = {"Response": "Outcome"}
"""Names that differ in their modules."""

__all__ = [  # imported on first use
    "Answer",
    "Answered",
    "Asker",
    "Claim",
    "Collection",
    "ConfigError",
    "Context",
    "DataError",
    "Event",
    "Failure",
    "Fields",
    "Label",
    "ListAsker",
    "Needs",
    "Prepared",
    "Progress",
    "Prompt",
    "Question",
    "Reply",
    "Request",
    "Response",
    "Score",
    "Section",
    "Session",
    "State",
    "StoppedError",
    "Unit",
    "Unread",
    "UsageError",
    "chat",
    "check_settings",
    "find_prompt",
    "load_prompt",
    "neutral",
    "passages",
    "render",
    "setting",
    "where",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"judgekit.{_HOMES[name]}")
    return globals().setdefault(name, getattr(home, _ELSEWHERE.get(name, name)))


def __dir__() -> list[str]:
    return __all__
