"""An LLM as one more assessor: it says which of two answers it prefers, asked in both orders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from judgekit.client.session import Session
from judgekit.errors import UsageError
from judgekit.people.tasks import Sample, Task
from judgekit.reading.asker import Asker, merge_waves, next_wave
from judgekit.reading.prompts import neutral
from judgekit.reading.verdict import Unread
from judgekit.wire.types import Outcome, Request

_WORDS: Final = ("Neither", "Tie", "B", "A")
"""The choices of a preference prompt, by their numbers."""


@dataclass(frozen=True)
class Preferring:
    """A preference prompt, put to an endpoint in both orders of the answers.

    Raises:
        UsageError: the prompt is of another kind, or offers other choices.
    """

    asker: Asker

    def __post_init__(self) -> None:
        prompt = self.asker.prompt
        if prompt.kind != "preference":
            raise UsageError(
                f"the prompt {prompt.name!r} does not compare two answers ({prompt.kind}): use prefer-answer"
            )
        if dict(prompt.output.form.options) != {w: i for i, w in enumerate(_WORDS)}:
            raise UsageError(f"the prompt {prompt.name!r} must offer {', '.join(_WORDS)}, numbered from 0")

    def _values(self, task: Task, turned: bool) -> dict[str, str]:
        texts = [text for _, text in task.texts][:: -1 if turned else 1]
        answers = zip("AB", map(neutral, texts), strict=True)
        shown = "\n\n".join(f"Answer {name}:\n<answer>\n{text}\n</answer>" for name, text in answers)
        return {"question": neutral(task.question), "answers": shown}

    def requests(self, task: Task, replies: Sequence[Outcome], /) -> list[Request]:
        """Return the question in both orders; then again, once, where a reply cannot be used."""
        asked = [(self.asker, 0), (self.asker, 0)]
        return next_wave(asked, lambda: [self._values(task, turned) for turned in (False, True)], replies)

    def most(self, task: Task, /) -> int:
        """Return the most requests about a task."""
        return 4

    def verdict(self, task: Task, replies: Sequence[Outcome]) -> tuple[str | None, str]:
        """Return the run that is preferred, tie or bad, and why there is nothing; orders that differ are a tie."""
        said = []
        for outcome, turned in zip(merge_waves(replies, [self.asker, self.asker])[0], (False, True), strict=True):
            label = self.asker.label(outcome, lambda turned=turned: self._values(task, turned))  # type: ignore[misc]  # mypy knows no defaults of lambdas
            if isinstance(label, Unread):
                return None, label.reason or str(label.status)
            first, second = task.doc_ids[:: -1 if turned else 1]
            said.append({"A": first, "B": second, "Tie": "tie", "Neither": "bad"}[_WORDS[label]])
        value, turned_value = said
        return (value if value == turned_value else "tie"), ""


async def prefer(sample: Sample, asker: Asker, session: Session) -> tuple[str, dict[str, int]]:
    """Return what an LLM prefers, as the download of a page, and how often each was said."""
    # The assessor's name is the model's. Tasks that are shown twice are asked once: the reply is the same.
    if sample.form != "answers":
        raise UsageError("this compares answers side by side; to judge passages, use a labeler (judgekit label)")
    program = Preferring(asker)
    tasks = [task for task in sample.tasks if not task.repeat_of]
    rows, counts = [], Counter[str]()
    async for task, replies in session.resolve(tasks, program, "prefer", len(tasks)):
        value, reason = program.verdict(task, replies)
        said = {"value": value, "skipped": reason, "comment": "", "seconds": 0.0, "at": ""}
        rows.append({**sample.row(task, asker.endpoint.model), **said})
        counts[value or "nothing"] += 1
    head = {"judgekit": "judgments", **sample.head(asker.endpoint.model), "tasks": len(rows)}
    lines = [head, *rows, {"end": len(rows)}]
    return "".join(json.dumps(line) + "\n" for line in lines), dict(counts)
