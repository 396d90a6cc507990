"""The labeler: how many of a question's vital nuggets a passage states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from judgekit import Labeler, Query, Scale, Status
from judgekit.answers.nuggets import Nugget, read_nuggets
from judgekit.extend import (
    Fields,
    Label,
    ListAsker,
    Needs,
    Question,
    Request,
    Response,
    Unit,
    Unread,
    find_prompt,
    render,
    setting,
)
from judgekit.extensions.nuggets.support import AT_ONCE, Support, nugget_questions


@dataclass(frozen=True)
class NuggetLabeler(Labeler):
    """The share of a question's vital nuggets that the passage states in whole, by an LLM.

    Relatives: EXAM, which asks whether a passage lets questions be answered (Sander and Dietz, 2021), and RUBRIC (Farzi
    and Dietz, 2024). A question without vital nuggets gets no label.

    Scale: unit

    Needs: nuggets (judgekit nuggets), an LLM

    Costs: 1 request per pair and 10 nuggets, 1 more if a reply cannot be read

    Attributes:
        endpoint: endpoint name; optional if only one is defined
        file: file of nuggets, JSON lines
        fields: use fields=text to leave out the title
    """

    kind = "nuggets"
    scale = Scale("unit")
    file: str = setting()
    endpoint: str | None = None
    fields: Fields | None = None

    def prepare(self) -> None:
        """Read the nuggets, and look up the endpoint and the prompt."""
        self._vital, self._asked  # noqa: B018 - reads and looks up

    @property
    def needs(self) -> Needs:
        """The LLM that is asked."""
        return Needs(endpoints=(self._asked.endpoint,), prompt=self._asked.prompt.name)

    @cached_property
    def _asked(self) -> ListAsker:
        prompt = find_prompt("nugget-support", self.context.path)
        return ListAsker(self.context.endpoint(self.endpoint).llm, prompt)

    @cached_property
    def _vital(self) -> dict[str, list[Nugget]]:
        nuggets = read_nuggets(self.context.path(self.file))
        return {query_id: [nugget for nugget in listed if nugget.vital] for query_id, listed in nuggets.items()}

    def _nuggets(self, query: Query) -> list[Nugget]:
        return self._vital.get(query.query_id, [])

    def _questions(self, unit: Unit) -> list[Question[Support]]:
        text = render(unit.docs[0], self.rendering)
        return nugget_questions(self._asked.prompt, unit.query, self._nuggets(unit.query), text)

    def requests(self, unit: Unit, replies: Sequence[Response], /) -> list[Request]:
        """Return the questions about the unit's doc, ten nuggets at a time; once more if a reply cannot be read."""
        return self._asked.requests(self._questions(unit), replies)

    def most(self, unit: Unit, /) -> int:
        """Return the largest number of requests for a unit."""
        return 2 * -(-len(self._nuggets(unit.query)) // AT_ONCE)

    def label(self, unit: Unit, replies: Sequence[Response], /) -> list[Label]:
        """Return the label of the unit's doc; ``extra`` has the numbers of stated nuggets and of all."""
        pair = unit.query.query_id, unit.docs[0].doc_id
        nuggets = self._nuggets(unit.query)
        if not nuggets:
            reason = f"{self.file} has no vital nugget for this query"
            return [Label(*pair, None, Status.NOT_APPLICABLE, "", reason)]
        raw = "\n".join(reply.text for reply in replies if hasattr(reply, "text"))
        supports = self._asked.read(self._questions(unit), replies)
        if isinstance(supports, Unread):
            return [Label(*pair, None, supports.status, raw, supports.reason)]
        stated = supports.count("support")
        counts = {"nuggets": float(len(nuggets)), "stated": float(stated)}
        return [Label(*pair, stated / len(nuggets), raw=raw, extra=counts)]
