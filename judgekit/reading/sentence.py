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
_REASON_TAG: Final = re.compile(
    r"</?(?:reason|reasoning|explanation|justification|rationale)>|</(?:question|passage)>", re.IGNORECASE
)
_ECHO_TAG: Final = re.compile(r"<(question|passage)>\s*", re.IGNORECASE)
_ECHOES: Final = re.compile(r"(?:question|query|passage|title): |.*\?", re.IGNORECASE)
"""How a line begins or ends that may show the prompt again before it answers."""

_MASKED: Final = re.compile(
    rf"(?:(?:question|query|passage|title): )?(?:[^\w{MASK}]*{MASK})+[^\w{MASK}]*", re.IGNORECASE
)
_REASON_LABEL: Final = re.compile(r"\(?(?:note|why|reason(?:ing)?|explanation)(?:: |:?$)", re.IGNORECASE)
_FENCED: Final = re.compile(r"\s*```\w*\s(?P<body>[^`]*)```\s*")
_MARKUP: Final = re.compile(r"[*#]|__|^`|`$")
_BULLET: Final = re.compile(r"^(?:[-•*] |\d{1,2}[.)] )")
_ODD: Final = re.compile(r"^>|```|[<\[\]|＜＞［］｜◁▷]|(?<![=-])>", re.MULTILINE)
"""What belongs to a quotation, to code or to a token that parts turns."""

_WORD: Final = re.compile(r"\w+")
_BEGUN: Final = re.compile(r"(\w+)\s*[.,:;)]")
_CRITERION: Final = re.compile(r"[^:?.]{2,60}[:?] ?(?P<met>yes|no)\.?")
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
class _Verdict:
    """A verdict in its place.

    Attributes:
        value: what it is.
        labelled: see `Statement`.
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
            found = _JSON.fullmatch(text.strip(BLANK))
            return self._of_object(found["body"]) if found else None
        lines = self._lines(text)
        verdict = self._placed(lines) if lines else None
        if verdict is None or self._repeats("\n".join(lines), verdict.value):
            return None
        above = [line for line in verdict.above if line]
        if above and not self._leads_on([lines[0], *above[1:]] if verdict.opens else above):
            return None
        if verdict.labelled and verdict.above:
            criteria = [line for line in above if _CRITERION.fullmatch(line.casefold())]
            if not self._allow(criteria, verdict.value):
                return None
            above = [line for line in above if line not in criteria]
        elif above and not verdict.opens and not self.shown.own("\n".join(above)).strip(EDGES + MASK + ".?!"):
            return None  # a quotation may end in the word
        if not all(doubt.is_reason(self.shown.own(line).casefold()) for line in verdict.below[1:]):
            return None
        beside = "\n".join(line for line in (*above, *verdict.below) if line)
        return None if beside and self._opposed(beside, verdict.value) else verdict.value

    def _placed(self, lines: list[str]) -> _Verdict | None:
        """Return the verdict of the first or last line, or else of the one line with a label."""
        first = self.clauses.opening(lines[0])
        rest = [first.beside, *lines[1:]] if first else lines
        last = self.clauses.closing(rest[-1])
        if last:
            if first and first.value != last.value:
                return None
            return _Verdict(last.value, last.labelled, [*rest[:-1], last.beside], [], opens=first is not None)
        if first:
            return _Verdict(first.value, first.labelled, [], rest, opens=True)
        verdicts = []
        for place, line in enumerate(lines):
            among = self.clauses.opening(line)
            if among and among.labelled:
                below = [among.beside, *lines[place + 1 :]]
                verdicts.append(_Verdict(among.value, True, lines[:place], below, opens=False))
        return verdicts[0] if len(verdicts) == 1 else None

    def _lines(self, text: str) -> list[str]:
        """Return the lines that say something, without markup; a verdict in a tag or box is a line with a label."""
        text = text.translate(dict.fromkeys(map(ord, INVISIBLE)))
        text = _TAG.sub(lambda tag: f"\nverdict: {next(filter(None, tag.groups()[1:]))}\n", text)
        text = _ECHO_TAG.sub("\n\\1: ", _REASON_TAG.sub("\n", text))
        whole = _FENCED.fullmatch(text)
        text = whole["body"] if whole else text
        text = "\n".join(self._unquoted(line) for line in text.splitlines())
        lines: list[str] = []
        for line in () if _ODD.search(text) else text.splitlines():
            plain = _BULLET.sub("", " ".join(_MARKUP.sub("", line).split()))
            if lines:
                plain = _without_label(plain)
            elif _ECHOES.match(plain) and _MASKED.fullmatch(self.shown.own(plain)):
                continue
            if not plain.strip("-_=~. $"):
                continue
            above = lines[-1].rstrip(":.") if lines else ""
            if self.clauses.label.fullmatch(above) and not self.clauses.label.match(plain):
                lines[-1] = f"{above}: {plain}"
            else:
                lines.append(plain)
        return lines

    def _unquoted(self, line: str) -> str:
        """Return a line of a block quotation as plain text if the prompt holds it: "> …" from anywhere else is odd."""
        quoted = line.removeprefix("> ")
        return quoted if _MASKED.fullmatch(self.shown.own(quoted)) else line

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

    def _allow(self, criteria: list[str], value: int) -> bool:
        """Whether criteria, ``States the answer: no``, allow a verdict: none is against "yes", one is for "no"."""
        met = {found["met"] for found in (_CRITERION.fullmatch(line.casefold()) for line in criteria) if found}
        return not met or self.clauses.graded or ("no" not in met if value else "no" in met)

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
        if graded and self._values.get(" ".join(beside.casefold().split())) == value:
            return False  # the grade's name
        if graded and any(
            self.shown.holds(f"{word} {beside}") for word, other in self._values.items() if other != value
        ):
            return True  # the prompt explains another grade in these words
        if any(" " in word and word in beside.casefold() for word, other in self._values.items() if other != value):
            return True
        if any(
            self._values.get(word[1], value) != value
            for word in map(_BEGUN.match, beside.casefold().splitlines())
            if word
        ):
            return True
        own, said = (masked.own(beside).casefold() for masked in (self.shown, self.filled))
        if not doubt.is_reason(own):
            return True
        if any(doubt.contests(self.shown.own(line), self._values, value, graded, True) for line in beside.splitlines()):
            return True
        if doubt.RETRACTS.search(own) or doubt.REPORTS.search(own):
            return True
        if not graded:
            if doubt.HEDGES.search(own) or _ANOTHER.search(own):
                return True
            return not (doubt.supports(said, own) if value else doubt.rejects(said, own))
        if value == max(self._values.values()):
            return doubt.DENIES.search(said) is not None
        if value == min(self._values.values()):
            return doubt.affirms(said)
        return doubt.UNRELATED.search(said) is not None

    def _of_object(self, text: str) -> int | None:
        """Return the verdict of a JSON object: its one key of a verdict, beside reasons only."""
        entries = parse_object(text) or {}
        verdicts = []
        for name, entry in entries.items():
            if _VERDICT_KEY.fullmatch(name):
                verdicts.append(entry)
            elif not (_REASON_KEY.fullmatch(name) and isinstance(entry, str)):
                return None
        if len(verdicts) != 1 or not isinstance(verdicts[0], (str, int)):
            return None
        if isinstance(verdicts[0], bool) and self.clauses.graded:
            return None
        value = self._values.get(" ".join(str(verdicts[0]).casefold().split()))
        reasons = [entry for name, entry in entries.items() if entry and _REASON_KEY.fullmatch(name)]
        if value is None or any(self._opposed(reason, value) for reason in reasons):
            return None
        return value


def _without_label(line: str) -> str:
    """Return a reason without what announces it: ``(Note: …)``, ``Reason: …``."""
    reason, labels = _REASON_LABEL.subn("", line, count=1)
    return reason.removesuffix(")") if labels and reason.count("(") < reason.count(")") else reason
