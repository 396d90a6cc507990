"""``umbrela``: what a judge of umbrela said of each passage, a line each, with texts in place of ids."""

from __future__ import annotations

import re
from typing import Final

from judgekit.data.forms.entry import Entry, content_id, first_of, hashed
from judgekit.data.records import Fields
from judgekit.registry import DataForm

_REPLIES: Final = ("prediction", "predition")
"""The model's reply, whose name 0.0.7 misspells."""


_SCORE: Final = re.compile(r'"(?:o|o_score|overall|overall[ _]score|final[ _]score|score)"\s*:\s*"?(\d)', re.I)
_ALONE: Final = re.compile(r"(?<![\d.])0(?![\d.])")


def _says_0(reply: str) -> bool:
    """Return whether the score in a reply is 0, or, where it names none, whether a 0 stands in it."""
    scores = _SCORE.findall(reply)
    return scores[0] == "0" if scores else _ALONE.search(reply) is not None


def _judged(fields: Fields) -> Entry:
    """Return the judgment of a passage, with the ids that judgekit makes of texts."""
    query, passage, grade = fields["query"], fields["passage"], fields["judgment"]
    if not isinstance(query, str) or not isinstance(passage, str):
        raise ValueError("'query' and 'passage' must be texts")
    reply = str(fields.get(first_of(fields, _REPLIES) or "", grade))
    # It grades a reply that it cannot read with 0; valid JSON without a blank behind the colon is one.
    if fields.get("result_status") == 0 or (grade == 0 and not _says_0(reply)):
        raise ValueError(
            f"umbrela wrote 0 because it could not read the reply ({reply[:60]!r}): have this passage judged again, or"
            " remove the line"
        )
    return {"rows": [(hashed("q", query), content_id("", passage), grade)]}


UMBRELA: Final = DataForm(
    "umbrela",
    _judged,
    ("qrels",),
    marks=lambda fields: fields.keys() >= {"query", "passage", "judgment"},
    nested=True,
    example='{"model": "m", "query": "Who?", "passage": "by Ann", "prediction": "3", "judgment": 3}\n',
)
