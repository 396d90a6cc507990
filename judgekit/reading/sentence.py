"""The second reading: a verdict that a reply states plainly, though not in the form that was asked for.

It is read where the reply has one of few shapes:

* a first line that is the verdict or begins with it, and reasons behind it;
* a last line that is the verdict and nothing else, and reasons above it;
* a first or last line with a label or a sentence around the verdict: ``Answer: Yes``, "The answer is Yes.";
* a verdict in an answer tag or a box, which counts as a line with a label;
* a JSON object with one key of a verdict, beside keys of reasons only.

What repeats the prompt is masked before (`Shown`). Two verdicts that differ, a verdict outside of the scale, a hedge, a
quotation, a reason that speaks for another verdict and words that may take the verdict back leave it unread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from judgekit.reading import doubt
from judgekit.reading.doubt import BLANK, EDGES, INVISIBLE, QUOTES, STOPS
from judgekit.reading.own import Shown

_NOUNS: Final = (
    r"verdict|grade|score|rating|decision|judge?ment|label|relevance|relevant|conclusion|result|overall|urteil|ergebnis"
    r"|note finale"
)
_ANSWERS: Final = r"answer|antwort|réponse|respuesta|risposta|resposta|antwoord|svar|odpowiedź|ответ|答案|回答"
_OWNERS: Final = (
    r"(?:(?:my|the|your|so|thus|hence|therefore|final|overall|correct|relevance|die|der|la|el|il)[ ,]{1,2})*"
)
_SAYS: Final = r"is|ist|est|es|lautet"
_COLON: Final = re.compile(r"\s*(?:[:：=]|[-–] )\s*")
_TAG: Final = re.compile(
    r"(?:(?:(?:so|therefore|thus|hence),? )?(?:the|my) (?:final )?answer is:?\s*)?"
    r"(?:<(?P<tag>(?:final_?)?(?:answer|verdict|grade|score|rating|result|judge?ment))>(?P<tagged>[^<>]{1,40})</(?P=tag)>"
    r"|\${0,2}\\boxed\{(?:\\(?:text|textbf|mathbf|mathrm)\{)?(?P<boxed>[^{}]{1,40})\}{1,2}\${0,2}"
    r"|\[\[(?P<doubled>[^\[\]]{1,40})\]\])",
    re.IGNORECASE,
)
_REASON_TAG: Final = re.compile(r"</?(?:reason|explanation|justification|rationale)>", re.IGNORECASE)
_FENCED: Final = re.compile(r"\s*```\w*\s(?P<body>[^`]*)```\s*")
_MARKUP: Final = re.compile(r"[*#]|__|^`|`$")
_BULLET: Final = re.compile(r"^(?:[-•*→] |\d{1,2}[.)] )")
_ODD: Final = re.compile(r"^>|```|[<>\[\]|＜＞［］｜◁▷]", re.MULTILINE)
"""What belongs to a quotation, to code or to a token that parts turns."""

_WORD: Final = re.compile(r"[\w/]+")
_TURN: Final = re.compile(r"\s*(?P<mark>[.,:;!(]|\s[-–—]\s|—|\bbecause\b|\bsince\b)\s*", re.IGNORECASE)
_ELSEWHERE: Final = re.compile(r"\d|(?:as|according|says?|said|is|was|so|like)\b", re.IGNORECASE)
"""What stands behind a word that was no verdict: "No. 1 of the list", "Yes, says the passage"."""

_BEGUN: Final = re.compile(r"(\w+)\s*[.,:;)]")
_CRITERION: Final = re.compile(r"[^:?.]{2,60}: ?(?P<said>yes|no)")
_ANOTHER: Final = re.compile(r"\byes\b|\Wno\W*$")
_PAIRS: Final = ("“”", "«»", "「」", "()")
_FINISHED: Final = re.compile(r"[\w)][.!?。)\"”»'’]{1,3}$|: *\S")
_JSON: Final = re.compile(
    r"(?:(?:here is )?(?:the |my )?(?:json|json object|answer|judgment):\s*)?(?:```\w*\s*)?(?P<body>\{.*\})\s*(?:```)?",
    re.DOTALL | re.IGNORECASE,
)
_VERDICT_KEY: Final = re.compile(
    rf"(?:is_|final_|overall_)?(?:{_NOUNS}|answer)(?:_(?:grade|score))?",
)
_REASON_KEY: Final = re.compile(
    r"(?:short_|brief_)?(?:reasons?|reasoning|explanation|rationale|justification|analysis|thoughts?|comments?)"
)


@dataclass(frozen=True)
class _Statement:
    """A verdict in a line.

    Attributes:
        value: what it is.
        beside: what else the line says.
        labelled: whether a label, a tag or a sentence says that it is the verdict.
    """

    value: int
    beside: str = ""
    labelled: bool = False


@dataclass(frozen=True)
class SecondReading:
    """What is known of a reply that is read a second time.

    Attributes:
        kind: yes/no or grade.
        values: the value of each word, case-folded.
        steps: what the lines above the verdict begin with, if the prompt declares that, case-folded.
        shown: what the model was shown.
        filled: what of it was filled into the prompt.
    """

    kind: str
    values: Mapping[str, int]
    steps: tuple[str, ...]
    shown: Shown
    filled: Shown

    def read(self, text: str) -> int | None:
        """Return the verdict that a reply without its reasoning states plainly, or None."""
        if "{" in text.partition("\\boxed")[0]:
            found = _JSON.fullmatch(text.strip(BLANK))
            return self._of_object(found["body"]) if found else None
        lines = self._lines(text)
        if not lines:
            return None
        first = self._stated(lines[0], is_first=True)
        last = self._stated(lines[-1], is_first=False) if len(lines) > 1 else None
        stated = last or first
        if stated is None or (first and first.value != stated.value) or self._repeats(text, stated.value):
            return None
        inner = lines[1 if first else 0 : -1 if last else None]
        if last and inner and not self._leads_on([*lines[:-1]]):
            return None
        if last and last.labelled:
            criteria = [line for line in inner if _CRITERION.fullmatch(line.casefold())]
            if not self._allow(criteria, stated.value):
                return None
            inner = [line for line in inner if line not in criteria]
        parts = (first.beside if first else "", *inner, last.beside if last else "")
        beside = "\n".join(part for part in parts if part)
        return None if beside and self._opposed(beside, stated.value) else stated.value

    @cached_property
    def _label(self) -> re.Pattern[str]:
        """What announces a verdict. Where grades are asked for, an answer is one to the question."""
        nouns = _NOUNS if self.kind == "grade" else f"{_NOUNS}|{_ANSWERS}"
        return re.compile(rf"{_OWNERS}(?:{nouns})(?: (?:{_SAYS}))?")

    @cached_property
    def _sentence(self) -> re.Pattern[str]:
        """A sentence at the end of a line that states a verdict."""
        announced = rf"{self._label.pattern.removesuffix('?')} ?:?"
        if self.kind == "grade":
            announced += r"|(?:i|i would) grade (?:it|this passage)"
        return re.compile(rf"(?:^|(?<=[.!?\"”)] ))(?:{announced}) (?P<said>[^.!?]+?)[.!]?$", re.IGNORECASE)

    def _value(self, said: str) -> int | None:
        """Return the verdict that a text is, alone: ``**Yes**``, ``2/3``."""
        word = " ".join(said.casefold().split()).strip(EDGES)
        if word.endswith(STOPS):
            word = word[:-1].strip(EDGES)
        if self.kind == "grade" and min(self.values.values()) == 0:
            word = word.removesuffix(f"/{max(self.values.values())}")
        return self.values.get(word)

    def _lines(self, text: str) -> list[str]:
        """Return the lines that say something, without markup; a verdict in a tag or box is a line with a label."""
        text = text.translate(dict.fromkeys(map(ord, INVISIBLE)))
        text = _TAG.sub(lambda tag: f"\nverdict: {tag['tagged'] or tag['boxed'] or tag['doubled']}\n", text)
        text = _REASON_TAG.sub("\n", text)
        whole = _FENCED.fullmatch(text)
        text = whole["body"] if whole else text
        lines: list[str] = []
        for line in () if _ODD.search(text) else text.splitlines():
            plain = _BULLET.sub("", " ".join(_MARKUP.sub("", line).split()))
            if not plain.strip("-_=~. $"):
                continue
            above = lines[-1].rstrip(":.") if lines else ""
            if self._label.fullmatch(above.casefold()) and not self._label.match(plain.casefold()):
                lines[-1] = f"{above}: {plain}"
            else:
                lines.append(plain)
        return lines

    def _stated(self, line: str, *, is_first: bool) -> _Statement | None:
        """Return the verdict that a line states; the first one may have reasons behind it."""
        folded = line.casefold()
        label = re.split(r"[:：=]| [-–] ", folded, maxsplit=1)[0]
        if len(label) < len(line) and self._label.fullmatch(label.strip()):
            return self._begun(_COLON.sub("", line[len(label) :], count=1), labelled=True, may_go_on=True)
        sentence = self._sentence.search(line)
        if sentence is not None:
            value = self._value(sentence["said"])
            return None if value is None else _Statement(value, line[: sentence.start()].strip(), labelled=True)
        announced = self._label.match(folded)
        if is_first and announced and announced[0].endswith((" is", " ist")):
            return self._begun(line[announced.end() :].strip(), labelled=True, may_go_on=True)
        return self._begun(line, labelled=False, may_go_on=is_first)

    def _begun(self, line: str, *, labelled: bool, may_go_on: bool) -> _Statement | None:
        """Return the verdict that a line is or, if it ``may_go_on``, begins with."""
        is_listed = self.kind == "grade" and not labelled  # "2. The passage" is the second of a list
        value = self._value(line)
        if value is not None and line[:1] not in QUOTES:
            return None if is_listed and may_go_on and line.endswith(".") else _Statement(value, "", labelled)
        word = _WORD.match(line)
        turn = _TURN.match(line, word.end()) if word and may_go_on else None
        value = self._value(word[0]) if word and turn else None
        if turn is None or value is None or (is_listed and turn["mark"] in ".,;!"):
            return None
        beside = line[turn.end() :]
        if _ELSEWHERE.match(beside) or (turn["mark"] == "." and beside[:1].islower()):
            return None
        if turn["mark"] == "(":
            beside = beside.rstrip(".").removesuffix(")")
        return _Statement(value, beside, labelled)

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
        said = {line.casefold().rpartition(":")[2].strip() for line in criteria}
        return not said or self.kind != "yes/no" or ("no" not in said if value else "no" in said)

    def _repeats(self, text: str, value: int) -> bool:
        """Whether the words of a verdict, with the word behind them, were filled into the prompt."""
        for found in re.finditer(r"([\w/]+)[^\w\n]+\w+", text):
            if self.values.get(found[1].casefold()) == value and self.filled.holds(found[0]):
                return True
        return False

    def _opposed(self, beside: str, value: int) -> bool:
        """Whether what stands beside a verdict is no reason for it, or may speak against it."""
        graded = self.kind == "grade"
        if graded and self.values.get(" ".join(beside.casefold().split())) == value:
            return False  # the grade's name
        if any(self.values.get(word[1], value) != value for word in map(_BEGUN.match, _folded(beside)) if word):
            return True
        own, said = (" ".join(masked.own(beside).casefold().split()) for masked in (self.shown, self.filled))
        if not doubt.is_reason(own):
            return True
        if any(doubt.contests(self.shown.own(line), self.values, value, graded, True) for line in beside.splitlines()):
            return True
        if doubt.RETRACTS.search(own):
            return True
        if self.kind == "yes/no":
            if doubt.HEDGES.search(own) or _ANOTHER.search(own):
                return True
            return not (doubt.supports(said, own) if value else doubt.rejects(said, own))
        if value == max(self.values.values()):
            return doubt.DENIES.search(said) is not None
        return value == min(self.values.values()) and doubt.affirms(said)

    def _of_object(self, text: str) -> int | None:
        """Return the verdict of a JSON object: its one key of a verdict, beside reasons only."""

        def noted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            named = {key.casefold(): value for key, value in pairs}
            if len(named) < len(pairs):
                raise ValueError("a key is repeated")
            return named

        try:
            entries = json.loads(text, object_pairs_hook=noted)
        except (ValueError, RecursionError):
            return None
        keys = [key for key in entries if _VERDICT_KEY.fullmatch(key)]
        reasons = [entries[key] for key in entries if _REASON_KEY.fullmatch(key)]
        if len(keys) != 1 or len(reasons) + 1 != len(entries) or not all(isinstance(text, str) for text in reasons):
            return None
        said = entries[keys[0]]
        if not isinstance(said, (str, int)) or (isinstance(said, bool) and self.kind != "yes/no"):
            return None
        value = self._value(str(said))
        if value is None or any(self._opposed(reason, value) for reason in reasons if reason):
            return None
        return value


def _folded(text: str) -> list[str]:
    return text.casefold().splitlines()
