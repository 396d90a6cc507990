r"""Prompt files: every prompt is one TOML file that declares what kind of reply it asks for.

The shipped ones lie in ``prompts/`` of the checkout, which the wheel carries as ``judgekit/prompts``; a user's own
is named by its path. A file says::

    kind = "judge"                    # judge, answer, correctness, grounded, merge or task
    about = "one sentence"
    max_tokens = 256                  # the room for a reply; asked again with more where it was cut off
    closed_book = "closed-book"       # answer prompts: the sibling that is used where there is no document
    merge = "./my-merge.toml"         # answer prompts: the sibling by which answers are merged, in place of ours
    guideline = "…"                   # judges: what people are told who give the same grades (`annotate sample`)
    system = '...'                    # optional
    user = '... {question} ... {passages} ...'

    [output]                          # what the reply is
    type = "yes/no"                   # judges: yes/no, grade or choice; answers: short, long or class
    names = ["off", "near", "full"]   # grades: their names, the lowest first; ``low`` is its number (0)
    choices = { low = 0, high = 1 }   # choices: the words and their grades
    abstain = "unknown"               # answers: the phrase that stands for "I cannot say"

The reply to a judge is one word (or number), and nothing else is read, unless the file declares one of these::

    json = "score"                    # one JSON object with the verdict under this key; or all of its keys, the
                                      # verdict's last: ["reason", "score"], the others holding texts
    line = "Final grade"              # steps, and as the last line "Final grade: 2"
    steps = ["Match", "Trust"]        # with line: what the lines above the last begin with, in their order; such a line
                                      # may be a grade of its own, "Match: 3"

Last, and optional, is a table of further fields of the request body::


    [params]                          # not model, messages, n or stream

The placeholders are ``{question}``, ``{passages}``, ``{references}``, ``{answer}`` and ``{answers}``, and
``{query.NAME}`` for a further column of the queries (``{query.history}`` also is what was said before, where queries
have ``messages``). A further column of the documents stands in what each passage is made of::

    passage = "Published {doc.date}\n{doc}"          # instead of {doc}: title and text, as they are rendered

Other braces are literal, so that a prompt can show JSON. The fixed text comes first, then the question, then the
passages, which lets a server reuse its work on the common beginning. What is filled in is fenced by tags and cannot
close them: see `neutral`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from judgekit.data.documents import Doc, Fields, Query, render
from judgekit.data.labelings import Scale
from judgekit.errors import UsageError, not_among
from judgekit.reading.verdict import ReplyFormat
from judgekit.wire.reasoning import TOKEN

Kind = Literal["judge", "answer", "correctness", "merge", "grounded", "task"]
OutputType = Literal["yes/no", "grade", "choice", "short", "long", "class"]

PLACEHOLDER: Final = re.compile(r"\{([a-z_]+|query\.[\w-]+)\}", re.ASCII)
IN_PASSAGE: Final = re.compile(r"\{(doc(?:\.[\w-]+)?)\}", re.ASCII)
_FENCE: Final = re.compile(r"<\s*/?\s*(?:passages?|question|references?|answers?)\b", re.IGNORECASE)
_OPENER: Final = re.compile(r"[<＜﹤\[［\]］◁]")
_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
"""Invisible characters that can be strewn into a word."""

# No token is longer, whatever is strewn into it; without a limit the search would be quadratic.
_SEEN: Final = 400


@dataclass(frozen=True)
class Output:
    """The replies that a prompt declares.

    Attributes:
        type: yes/no, grade or choice for verdicts; short, long or class for answers.
        form: the possible verdicts and their spelling; for a class answer its numbered classes, the abstention last;
            without options for free text.
        scale: the scale of the labels, for verdicts.
        abstain: the phrase that stands for "I cannot say", for answers.
    """

    type: OutputType
    form: ReplyFormat = field(default_factory=ReplyFormat)
    scale: Scale | None = None
    abstain: str = ""


@dataclass(frozen=True)
class Prompt:
    """A prompt file, read and checked.

    Attributes:
        name: the file's stem, or the path that the user gave.
        kind: what it is for.
        user, system: the templates of the messages; an empty system message is not sent.
        output: the declared form of the replies.
        about: one sentence for lists of prompts.
        params: further fields of the request body, such as ``max_tokens``; an endpoint's own params win.
        closed_book: the prompt for the same kind of answer without documents, for answer prompts with passages.
        passage: the template of each passage, "" for the rendered document alone.
        guideline: instructions for people who give the same grades, or "".
        merge: the prompt by which answers to this one are merged, for answer prompts with passages; "" for ours.
    """

    name: str
    kind: Kind
    user: str
    output: Output
    system: str = ""
    about: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    closed_book: str = ""
    passage: str = ""
    guideline: str = ""
    merge: str = ""

    def values(self, query: Query, docs: Sequence[Doc] = (), fields: Fields = "title+text") -> dict[str, str]:
        """Return the parts of a query and of documents that the prompt shows, made `neutral`."""
        values = {name: neutral(query.column(column)) for name, column in self._columns}
        values["question"] = neutral(query.text)
        if docs:
            values["passages"] = passages(docs, fields, self.passage)
        return values

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The names of the placeholders in both templates."""
        return frozenset(PLACEHOLDER.findall(self.system + self.user))

    @cached_property
    def _columns(self) -> list[tuple[str, str]]:
        """The placeholders that show a column of the queries, and the names of these columns."""
        return [(name, name.removeprefix("query.")) for name in self.placeholders if name.startswith("query.")]

    def messages(self, values: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the chat messages with the placeholders filled in; values must be `neutral` already."""
        messages: list[dict[str, str]] = []
        for role, template in (("system", self.system), ("user", self.user)):
            if template:
                messages.append({"role": role, "content": PLACEHOLDER.sub(lambda name: values[name[1]], template)})
        return messages


def neutral(text: str) -> str:
    """Return ``text`` without anything that looks like a prompt's delimiter or a chat-control token."""
    plain = text.isascii() and not ("<" in text or "[" in text or "]~" in text)  # most are, and this is faster
    return text if plain else _OPENER.sub(_entity, text)


def _entity(opener: re.Match[str]) -> str:
    text, start = opener.string, opener.start()
    if not (_FENCE.match(text, start) or TOKEN.match(text, start)):
        seen = text[start : start + _SEEN]
        seen = "" if seen.isascii() and seen.isprintable() else unicodedata.normalize("NFKC", _UNSEEN.sub("", seen))
        if not (_FENCE.match(seen) or TOKEN.match(seen)):
            return opener[0]
    return "&lt;" if opener[0] in "<＜﹤" else f"&#{ord(opener[0])};"


def passages(docs: Iterable[Doc], fields: Fields = "title+text", template: str = "") -> str:
    """Return documents as fenced passages, in the given order; text that would close a fence is made `neutral`."""
    if not template:
        return "\n\n".join([f"<passage>\n{neutral(render(doc, fields))}\n</passage>" for doc in docs])

    def shown(doc: Doc, name: str) -> str:
        if name == "doc":
            return neutral(render(doc, fields))
        return neutral(doc.column(name.removeprefix("doc.")))

    def filled(doc: Doc) -> str:
        return IN_PASSAGE.sub(lambda name: shown(doc, name[1]), template)

    return "\n\n".join([f"<passage>\n{filled(doc)}\n</passage>" for doc in docs])


def prompt_folder() -> Path:
    """Return the folder of the shipped prompts: inside the installed package, else the checkout's own."""
    # A wheel carries them as judgekit/prompts; the editable install of a checkout has them beside the package.
    package = Path(__file__).resolve().parent.parent
    inside = package / "prompts"
    return inside if inside.is_dir() else package.parent / "prompts"


def list_prompts() -> list[Prompt]:
    """Return all shipped prompts by name."""
    return [load_prompt(name) for name in sorted(path.stem for path in prompt_folder().glob("*.toml"))]


def load_prompt(name_or_path: str | Path) -> Prompt:
    """Read a shipped prompt by its name, or a user's own by its path (with a ``/`` or the suffix ``.toml``)."""
    from judgekit.reading.prompt_file import read_prompt  # pydantic takes a while to import

    name = str(name_or_path)
    if isinstance(name_or_path, Path) or is_path(name):
        return read_prompt(Path(name_or_path), name)
    path = prompt_folder() / f"{name}.toml"
    if not path.is_file():
        known = [p.stem for p in prompt_folder().glob("*.toml")]
        note = "; name a file of yours by its path, prompts/mine.toml"
        if name.casefold() == "umbrela":
            note = f"{note}. 'graded' has UMBRELA's form (arXiv 2406.06519): intent, match, trust, then a grade"
        raise UsageError(not_among("prompt", name, sorted(known), note=note))
    return read_prompt(path, name)


def find_prompt(name: str, path: Callable[[str], Path]) -> Prompt:
    """Read the prompt that a spelling names: a shipped one, or a file where ``path`` finds it."""
    return replace(load_prompt(path(name)), name=name) if is_path(name) else load_prompt(name)


def is_path(name: str) -> bool:
    """Whether a prompt is named by its file."""
    return "/" in name or "\\" in name or name.endswith(".toml")
