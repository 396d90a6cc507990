"""The second reading: a verdict that a reply states plainly, though not in the form that was asked for.

Courtesies, lines that repeat the prompt, and markup go first; a verdict in an answer tag or a box becomes a line with a
label. What is left has one of few shapes:

* a `Clause` that opens the reply, and reasons behind it;
* reasons, and a clause that closes the reply;
* one line with a label, among reasons;
* a JSON object with one key of a verdict, beside keys of reasons only.

What repeats the prompt is masked before (`Shown`). Two verdicts that differ, a verdict outside of the scale, a hedge, a
quotation, a reason that speaks for another verdict and words that may take the verdict back leave it unread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from judgekit.reading import doubt
from judgekit.reading.clause import NOUNS, Clauses
from judgekit.reading.doubt import BLANK, EDGES, INVISIBLE, MASK
from judgekit.reading.json_object import parse_object
from judgekit.reading.own import Shown

_SURE: Final = re.compile(
    r"\A\s*(?:(?:sure|certainly|of course|okay|ok|alright|got it|happy to help|thank you for the question|let[’']s see"
    r"|sure, i can help with that|here(?:[’']s| is) (?:my|the) (?:answer|judge?ment|grade|verdict))"
    r"\s*(?:[.!:]|,(?! and))\s+)+",
    re.IGNORECASE,
)
_BYE: Final = re.compile(
    r"\b(?:(?:please )?(?:let me know|feel free to ask) if you (?:need|have|want|would like)\b[^.!?\n]*"
    r"|i hope (?:this|that) helps)[.!]\s*$",
    re.IGNORECASE,
)
_TAG: Final = re.compile(
    r"(?:(?:(?:so|therefore|thus|hence),? )?(?:the|my) (?:final )?(?:answer|grade) is:?\s*)?"
    r"(?:<(?P<tag>(?:final_?)?(?:answer|verdict|grade|score|rating|result|judge?ment|response|output|relevance))>"
    r"(?P<tagged>[^<>]{1,40})</(?P=tag)>"
    r"|\${0,2}\\boxed\{(?:\\(?:text|textbf|mathbf|mathrm)\{)?(?P<boxed>[^{}]{1,40})\}{1,2}\${0,2}"
    r"|\[\[(?P<doubled>[^\[\]]{1,40})\]\]|(?<![^\s*])\[(?P<single>\w{2,3})\](?![^\s*]))",
    re.IGNORECASE,
)
_ECHOES: Final = re.compile(r"(?:question|query|passage|title): |.*\?", re.IGNORECASE)
"""How a line begins or ends that may show the prompt again before it answers."""

_MASKED: Final = re.compile(
    rf"(?:(?:question|query|passage|title): )?(?:[^\w{MASK}]*{MASK})+[^\w{MASK}]*", re.IGNORECASE
)
_REASON_LABEL: Final = re.compile(r"\(?(?:note|why|reason(?:ing)?|explanation)(?:: |:?$)", re.IGNORECASE)
_MARKUP: Final = re.compile(r"[*#]|__|^`|`$")
_BULLET: Final = re.compile(r"^(?:[-•*] |\d{1,2}[.)] )")
_ODD: Final = re.compile(r"^>|```|[<\[\]|＜＞［］｜◁▷]|(?<![=-])>", re.MULTILINE)
"""What belongs to a quotation, to code or to a token that parts turns."""

_WORD: Final = re.compile(r"\w+")
_BEGUN: Final = re.compile(r"(\w+)\s*[.,:;)]")
_ANOTHER: Final = re.compile(r"\byes\b|\Wno\W*$")
_PAIRS: Final = ("“”", "«»", "「」", "()")
_FINISHED: Final = re.compile(r"[\w)][.!?。)\"”»'’]{1,3}$|: *\S")
_JSON: Final = re.compile(
    r"(?:(?:here is )?(?:the |my )?(?:json|json object|answer|judgment):\s*)?(?:```\w*\s*)?(?P<body>\{.*\})\s*(?:```)?",
    re.DOTALL | re.IGNORECASE,
)
_VERDICT_KEY: Final = re.compile(
    rf"(?:is_|final_|overall_)?(?:{NOUNS}|answer)(?:_(?:grade|score))?",
)
_REASON_KEY: Final = re.compile(
    r"(?:short_|brief_)?(?:reasons?|reasoning|explanation|rationale|justification|analysis|thoughts?|comments?)"
)


@dataclass(frozen=True)
class _Placed:
    """A verdict in its place.

    Attributes:
        value: what it is.
        labelled: whether a label, a conclusion or a whole sentence says that it is the verdict.
        above, below: the lines before and behind it, which begin or end with what else its own line says.
        opens: whether the reply begins with it, or with the same one.
    """

    value: int
    labelled: bool
    above: list[str]
    below: list[str]
    opens: bool


@dataclass(frozen=True)
class SecondReading:
    """What is known of a reply that is read a second time.

    Attributes:
        clauses: what states a verdict.
        steps: what the lines above the verdict begin with, if the prompt declares that, case-folded.
        shown: what the model was shown.
        filled: what of it was filled into the prompt.
    """

    clauses: Clauses
    steps: tuple[str, ...]
    shown: Shown
    filled: Shown

    @cached_property
    def _values(self) -> Mapping[str, int]:
        return self.clauses.values

    def read(self, text: str) -> int | None:
        """Return the verdict that a reply without its reasoning states plainly, or None."""
        text = _BYE.sub("", _SURE.sub("", text, count=1))
        if "{" in text.partition("\\boxed")[0]:
            whole = _JSON.fullmatch(text.strip(BLANK))
            return self._of_object(whole["body"]) if whole else None
        lines = self._lines(text)
        verdict = self._placed(lines) if lines else None
        if verdict is None or self._repeats("\n".join(lines), verdict.value):
            return None
        above = [line for line in verdict.above if line]
        if above:
            leading = [lines[0], *above[1:]] if verdict.opens else above
            if not self._leads_on(leading):
                return None
            if not (verdict.labelled or verdict.opens or self._says_something("\n".join(above))):
                return None  # a quotation may end in the word
        for line in verdict.below[1:]:
            if not doubt.is_reason(self.shown.own(line).casefold()):
                return None
        beside = "\n".join(above + [line for line in verdict.below if line])
        if beside and self._opposed(beside, verdict.value):
            return None
        return verdict.value

    def _says_something(self, text: str) -> bool:
        """Whether a text holds more than what it repeats of the prompt."""
        return bool(self.shown.own(text).strip(EDGES + MASK + ".?!"))

    def _placed(self, lines: list[str]) -> _Placed | None:
        """Return the verdict of the first or last line, or else of the one line with a label."""
        first = self.clauses.opening(lines[0])
        rest = [first.beside, *lines[1:]] if first else lines
        last = self.clauses.closing(rest[-1])
        if last:
            if first and first.value != last.value:
                return None
            above = [*rest[:-1], last.beside]
            return _Placed(last.value, last.labelled, above, below=[], opens=first is not None)
        if first:
            return _Placed(first.value, first.labelled, above=[], below=rest, opens=True)
        labelled: list[_Placed] = []
        for place, line in enumerate(lines):
            verdict = self.clauses.opening(line)
            if verdict and verdict.labelled:
                below = [verdict.beside, *lines[place + 1 :]]
                labelled.append(_Placed(verdict.value, True, lines[:place], below, opens=False))
        return labelled[0] if len(labelled) == 1 else None

    def _lines(self, text: str) -> list[str]:
        """Return the lines that say something, without markup; a verdict in a tag or box is a line with a label."""
        text = text.translate(dict.fromkeys(map(ord, INVISIBLE)))
        # Models that were trained on exercises put their verdict into \boxed{} or <answer>.
        text = _TAG.sub(lambda tag: f"\nverdict: {next(filter(None, tag.groups()[1:]))}\n", text)
        if _ODD.search(text):
            return []
        lines: list[str] = []
        for line in text.splitlines():
            plain = _BULLET.sub("", " ".join(_MARKUP.sub("", line).split()))
            if lines:
                plain = _without_label(plain)
            elif _ECHOES.match(plain) and _MASKED.fullmatch(self.shown.own(plain)):
                continue
            if not plain.strip("-_=~. $"):
                continue
            above = lines[-1].rstrip(":.") if lines else ""
            # "Verdict:" may stand on a line of its own above the word, as headings do.
            if self.clauses.label.fullmatch(above) and not self.clauses.label.match(plain):
                lines[-1] = f"{above}: {plain}"
            else:
                lines.append(plain)
        return lines

    def _leads_on(self, above: list[str]) -> bool:
        """Whether the lines above a verdict are finished: no sentence goes on in it, and no quotation is open."""
        begun = [line.casefold().partition(":")[0].strip() for line in above]
        steps = tuple(step for step in begun if step in self.steps)
        if steps and (steps != self.steps or begun[0] != steps[0]):
            return False
        text = "\n".join(above)
        if text.count('"') % 2 or any(text.count(begins) != text.count(ends) for begins, ends in _PAIRS):
            return False
        return _FINISHED.search(above[-1]) is not None

    def _repeats(self, text: str, value: int) -> bool:
        """Whether the words of a verdict, with those beside them, were filled into the prompt."""
        words = list(_WORD.finditer(text))
        for place, word in enumerate(words):
            if self._values.get(word[0].casefold()) != value:
                continue
            # "is no" is in many passages, "answer is no" in few.
            start = place - 2 if place > 1 and words[place - 1][0] in ("is", "ist") else place - 1
            before = " ".join(other[0] for other in words[max(start, 0) : place + 1])
            behind = text[word.start() : words[place + 1].end()] if place + 1 < len(words) else ""
            if place and self.filled.holds(before):
                return True
            if behind and "\n" not in behind and self.filled.holds(behind):
                return True
        return False

    def _opposed(self, beside: str, value: int) -> bool:
        """Whether what stands beside a verdict is no reason for it, or may speak against it."""
        graded = self.clauses.graded
        folded = beside.casefold()
        if graded and self._values.get(" ".join(folded.split())) == value:
            return False  # the grade's name
        for word, other in self._values.items():
            if other == value:
                continue
            if " " in word and word in folded:
                return True
            if graded and self.shown.holds(f"{word} {beside}"):
                return True  # the prompt explains another grade in these words
        for line in beside.splitlines():
            begun = _BEGUN.match(line.casefold())
            if begun and self._values.get(begun[1], value) != value:
                return True
            if doubt.contests(self.shown.own(line), self._values, value, graded, above=True):
                return True
        own, said = self.shown.own(beside).casefold(), self.filled.own(beside).casefold()
        if not doubt.is_reason(own) or doubt.RETRACTS.search(own) or doubt.REPORTS.search(own):
            return True
        if not graded:
            if doubt.HEDGES.search(own) or _ANOTHER.search(own):
                return True
            return not (doubt.supports(said, own) if value else doubt.rejects(said, own))
        # "It names the year, but not the place" is a reason for a grade between, not for the highest or lowest.
        if value == max(self._values.values()):
            return doubt.DENIES.search(said) is not None
        if value == min(self._values.values()):
            return doubt.affirms(said)
        return doubt.UNRELATED.search(said) is not None

    def _of_object(self, text: str) -> int | None:
        """Return the verdict of a JSON object: its one key of a verdict, beside reasons only."""
        verdicts: list[object] = []
        reasons: list[str] = []
        for name, entry in (parse_object(text) or {}).items():
            if _VERDICT_KEY.fullmatch(name):
                verdicts.append(entry)
            elif _REASON_KEY.fullmatch(name) and isinstance(entry, str):
                reasons.append(entry)
            else:
                return None
        if len(verdicts) != 1 or not isinstance(verdicts[0], (str, int)):
            return None
        if isinstance(verdicts[0], bool) and self.clauses.graded:
            return None
        value = self._values.get(" ".join(str(verdicts[0]).casefold().split()))
        if value is None or any(reason and self._opposed(reason, value) for reason in reasons):
            return None
        return value


def _without_label(line: str) -> str:
    """Return a reason without what announces it: ``(Note: …)``, ``Reason: …``."""
    reason, labels = _REASON_LABEL.subn("", line, count=1)
    if labels and reason.count("(") < reason.count(")"):
        return reason.removesuffix(")")
    return reason
