"""``chroma``: the result of a query to a collection, saved with its question."""

from typing import Final

from judgekit.data.forms.rag import ASKED, IDENTIFIED, RIGHT, SAID
from judgekit.data.forms.tool import Tool

CHROMA: Final = Tool(
    "chroma",
    release="1.5.9",
    exports="`collection.query(…)` of one question, with `question` beside it; of several as `chroma(queries=FILE):…`",
    tells=("ids", "documents", ASKED),
    question=ASKED,
    id=IDENTIFIED,
    answer=SAID,
    reference=RIGHT,
    passages="documents",
    passage_ids="ids",
    run="run",
    options=("queries",),
    example='{"question": "Who?", "ids": [["d1"]], "documents": [["by Ann"]]}\n',
)
