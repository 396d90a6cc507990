"""The second reading: verdicts that a reply states plainly, but not in the requested form.

Courtesies, lines that repeat the prompt, and markup are removed first; a verdict in an answer tag, a box or a table
cell becomes a line with a label. The rest has one of a few shapes:

* a `Clause` that opens the reply, and reasons behind it;
* reasons, and a clause that closes the reply;
* one line with a label, among reasons;
* an object with one key of a verdict, in JSON or nearly so, beside reasons and other fields.

A reason may say what it likes of the topic, in any language. What it says of the passage (`relevance`) must not be the
contrary, and nothing may take the verdict back (`ambiguity`). What repeats the prompt is masked before (`PromptEcho`).
Two verdicts that differ, a verdict outside of the scale, a hedge and a quotation leave the reply unread.

If the question itself can be answered with yes or no, "No, it did not" may answer it. Then a verdict counts only if it
names relevance, or if each sentence beside it is about the passage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from judgekit.reading import ambiguity, relevance
from judgekit.reading.ambiguity import BLANK, EDGES, INVISIBLE, MASK, QUOTES
from judgekit.reading.clause import GLOSSES, ICONS, NOUNS, Clauses
from judgekit.reading.echo import PromptEcho
from judgekit.reading.json_object import leaves, parse_object, parse_value
from judgekit.reading.stating import Stating

_SURE: Final = re.compile(
    r"\A\s*(?:(?:sure, i can help with that|sure|certainly|of course|okay|ok|alright|got it|happy to help|understood"
    r"|thank you for the question|let[’']s see"
    r"|here(?:[’']s| is) (?:my|the) (?:answer|judge?ment|grade|verdict))"
    r"\s*(?:[.!:]|,(?! and))\s+)+",
    re.IGNORECASE,
)
_BYE: Final = re.compile(
    r"(?:(?:(?<=[.!?\n}`])|(?<=[.!?\n}`] ))(?:please )?(?:(?:do )?let me know|feel free|i hope|hope (?:this|that|it)"
    r"|is there anything|anything (?:else|more)|happy to|glad to|just ask|shall i|should you|if you (?:need|have|want)"
    r"|would you like|do you (?:want|need)|thanks|thank you|you(?:['’]re| are) welcome|have a \w+ day)\b"
    r"(?![^\n]*\b(?:yes|no|not|\w*relevant|wrong|but|change|reconsider|mistake|disagree|agree|otherwise"
    r"|grade(?! (?:another|more|other|further) passage)|score|verdict)\b)[^.!?\n]*[.!?]*\s*)+$",
    re.IGNORECASE,
)
_TAG: Final = re.compile(
    r"(?:(?:(?:so|therefore|thus|hence),? )?(?:the|my) (?:final )?(?:answer|grade) is:?\s*)?"
    r"(?:<(?P<tag>(?:final_?)?(?:answer|verdict|grade|score|rating|result|judge?ment|response|output|relevance|relevant|decision|label|final))>"
    r"(?P<tagged>[^<>]{1,40})</(?P=tag)>"
    r"|\${0,2}\\boxed\{(?:\\(?:text|textbf|mathbf|mathrm)\{)?(?P<boxed>[^{}]{1,40})\}{1,2}\${0,2}"
    r"|\[\[(?P<doubled>[^\[\]]{1,40})\]\]|(?<![^\s*])\[(?P<single>\w{2,3})\](?![^\s*]))",
    re.IGNORECASE,
)
_ECHOES: Final = re.compile(r"(?:question|query|passage|title): |.*\?", re.IGNORECASE)
"""The beginning or end of a line that may repeat the prompt before it answers."""

_HEADING: Final = re.compile(
    r"(?:(?:my|short|brief) )?(?:analysis|reason(?:ing)?|explanation|assessment|evaluation|justification|grading"
    r"|judging|steps?):?",
    re.IGNORECASE,
)
_MASKED: Final = re.compile(
    rf"(?:(?:question|query|passage|title): )?(?:[^\w{MASK}]*{MASK})+[^\w{MASK}]*", re.IGNORECASE
)
_REASON_LABEL: Final = re.compile(r"\(?(?:note|why|reason(?:ing)?|explanation)(?:: |:?$)", re.IGNORECASE)
_STEP_LABEL: Final = re.compile(
    r"^(?:overall|relevance|summary|weighing|assessment|comment): (?=(?:[^\W\d]+ ){2})", re.IGNORECASE
)
"""The beginning of a line of reasons outside of the declared steps."""

_MARKUP: Final = re.compile(r"[*#]|__|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|^`|`$")
_BRACKETED: Final = re.compile(r"(?<=: )\[(\w{1,3})\](?=\W*$)", re.MULTILINE)
_CONFIDENCE: Final = re.compile(
    r"(?:confidence|certainty)(?: \w+)?\s*[:=]\s*(?:[\d.]+ ?%?|\d+ ?/ ?\d+|(?:very )?high)\.?", re.IGNORECASE
)
_UNSEEN: Final = dict.fromkeys(map(ord, INVISIBLE))
_BULLET: Final = re.compile(r"^(?:[-•*] |\d{1,2}[.)] )")
_ECHO: Final = re.compile(r"\A\s*<question>|(?<=\n)</question>(?=\n)", re.IGNORECASE)
_WRAPPER: Final = re.compile(
    r"</?(?:div|span|li|ul|h\d|b|strong|i|em|p|br/?|reason|explanation|justification|rationale|comment|judgment|evaluation)>",
    re.IGNORECASE,
)
_FENCED: Final = re.compile(r"\s*```\w*\n(?P<body>[^`]*)```\s*")
_ODD: Final = re.compile(r"```|[<\[\]|＜＞［］｜◁▷]|(?<![=-])>", re.MULTILINE)
"""Signs of a quotation, of code or of a token between turns."""

_AGREEING: Final = 2
"""How often a model may repeat its verdict; each time a whole line is read."""

_WORD: Final = re.compile(r"\w+")
_ANOTHER_WORD: Final = re.compile(r"no [a-z]|\d[.,]\d")
"""Texts that are no verdict: "no date", "3,000"."""

_ASKED: Final = re.compile(r"[^.!?\n]*\?(?= +\S)")
_BEGUN: Final = re.compile(r"(\w+)\s*[.,:;)]")
_ANOTHER: Final = re.compile(r"\byes\b|\Wno\W*$")
_CRITERION: Final = re.compile(r"[^:?]{5,80}(?:: ?|\? ?)(?P<met>yes|no)\.?", re.IGNORECASE)
"""A line that says whether one criterion is met, above the verdict."""

_COLUMN: Final = re.compile(rf"\W*(?:final )?(?:{NOUNS}|answer)\W*", re.IGNORECASE)
_RULE: Final = re.compile(r"[-:| ]*-[-:| ]*")
_PAIRS: Final = ("“”", "«»", "「」", "()")
_FINISHED: Final = re.compile(r"[\w)][.!?。)\"”»'’]{1,3}$|: *\S")
_JSON: Final = re.compile(
    r"(?:(?:here is )?(?:the |my )?(?:json|json object|answer"
    r"|judgment):\s*)?(?:```\w*\s*)?(?P<body>\[?\s*\{.*\}\s*\]?)\s*(?:```)?",
    re.DOTALL | re.IGNORECASE,
)
_FENCE: Final = re.compile(r"```(?:\w+)?|^\s*json\b", re.IGNORECASE)
_OBJECT: Final = re.compile(
    r"\b(?:the |my |requested |json |object |grading )*(?:json|object|answer|grading"
    r"|evaluation|assessment|judge?ment|you (?:asked for|go|are)|requested)\b",
    re.IGNORECASE,
)
"""Names for the object in a reply."""

_FINAL_ANSWER: Final = re.compile(r"(?:the )?final answer(?: is)?:? ?(?=\d)", re.IGNORECASE)
_VERDICT_KEY: Final = re.compile(
    rf"(?:is_|final_|overall_|passage_)?"
    rf"(?:{NOUNS.replace(' ', '_')}|answer|response|output)(?:_(?:grade|score|label))?",
)
_OTHER_KEY: Final = re.compile(
    rf"{NOUNS.replace(' ', '_')}|answer|scale|range|max|min|maximum|minimum|out_of|total|alternative|original|initial"
)
"""Words that no other field's name may hold: it could be a second verdict, or another scale."""

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NAMED_GRADE: Final = re.compile(r"(?P<grade>\d) ?(?:[-–—:=] ?|\()(?P<name>[^()]+)\)?")
"""A grade with its name as the value of a key: "3 (full answer)"."""

_SAYS: Final = re.compile(r"\A(?=(?:says?|names|is|was) )", re.IGNORECASE)
"""The beginning of a reason that does not name the passage: "Says when it shut"."""

_ANSWER_KEY: Final = re.compile(r"(?:final_)?(?:answer|response|output|result|decision|conclusion|label|overall)")
_SURENESS: Final = re.compile(r"confidence|certain|sure")


@dataclass(frozen=True)
class _Placed:
    """A verdict in its place.

    Attributes:
        value: what it is.
        labelled: whether a label, a conclusion or a whole sentence says that it is the verdict.
        above, below: the lines before and after it, with the rest of its own line.
        opens: whether the reply begins with it or an equal one.
        clear: whether it cannot answer the user's question.
        tied: what goes on in the sentence of the verdict.
    """

    value: int
    labelled: bool
    above: list[str]
    below: list[str]
    opens: bool
    clear: bool
    tied: str = ""


@dataclass(frozen=True)
class Grammar:
    """The patterns that state a verdict under one prompt, made once for all replies.

    Attributes:
        clauses: what states a verdict.
        stating: finds verdicts in any word order.
        names: the names of the verdicts, case-folded, if the prompt has any.
        steps: the declared beginnings of the lines above the verdict, case-folded.
    """

    clauses: Clauses
    stating: Stating
    names: Mapping[int, str]
    steps: tuple[str, ...]

    @cached_property
    def _any_step(self) -> str:
        return "|".join(map(re.escape, self.steps)) or "(?!)"

    @cached_property
    def step(self) -> re.Pattern[str]:
        """The name of a step before its colon, at the beginning of a line or sentence."""
        return re.compile(rf"(?:^|(?<=[.!] ))({self._any_step}) ?:", re.MULTILINE)

    @cached_property
    def step_mark(self) -> re.Pattern[str]:
        """The name of a step before a dash or an arrow."""
        return re.compile(rf"^({self._any_step}) ?(?:[-–—→]|[-=]>) ", re.IGNORECASE)

    @cached_property
    def step_bold(self) -> re.Pattern[str]:
        """The name of a step in bold, without a colon."""
        return re.compile(rf"^\W{{0,5}}\*\*({self._any_step})\*\* (?=\w)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class SecondReading:
    """Reads a reply a second time.

    Attributes:
        grammar: what states a verdict.
        shown: the text that the model was shown.
        filled: the part of it that was filled into the prompt.
        open_question: whether the question cannot be answered with yes or no, or the verdicts are not yes and no.
        judges_passage: whether the verdict is about a passage, instead of an answer.
    """

    grammar: Grammar
    shown: PromptEcho
    filled: PromptEcho
    open_question: bool
    judges_passage: bool = True

    @property
    def _values(self) -> Mapping[str, int]:
        return self.grammar.clauses.values

    def read(self, text: str) -> int | None:
        """Return the verdict that a reply without its reasoning states plainly, or None."""
        text = _BYE.sub("", _SURE.sub("", text, count=1))
        if "{" in text.partition("\\boxed")[0]:
            whole = _JSON.fullmatch(text.strip(BLANK + QUOTES))
            value = self._of_object(whole["body"]) if whole else None
            return self._of_embedded(text) if value is None else value
        if not self.grammar.clauses.graded and text.strip(BLANK + "\ufe0f") in ICONS:
            return ICONS[text.strip(BLANK + "\ufe0f")]
        alone = parse_value(text) if text.lstrip().startswith("[") else None
        if isinstance(alone, list) and len(alone) == 1 and isinstance(alone[0], (str, int)):
            return self._values.get(str(alone[0]).casefold())
        lines = self._lines(text)
        value = self._of_lines(lines)
        if value is not None or not lines:
            return value
        # A number before it may be the verdict of another scale.
        rewritten = None if text.lstrip()[:1].isdecimal() else self.grammar.stating.rewritten("\n".join(lines))
        value = None if rewritten is None else self._of_lines(rewritten.splitlines())
        return None if value is None or self._repeats("\n".join(lines), value) else value

    def _of_lines(self, lines: list[str]) -> int | None:
        """Return the verdict that lines state, without markup."""
        verdict = self._placed(lines) if lines else None
        text = "\n".join(lines)
        if verdict is None or self._repeats(text, verdict.value):
            return None
        above = [line for line in verdict.above if line]
        if above:
            leading = [lines[0], *above[1:]] if verdict.opens and lines[0].endswith(above[0]) else above
            if not self._leads_on(leading):
                return None
            if not (verdict.labelled or verdict.opens or self._says_something("\n".join(above))):
                return None  # a quotation may end in the word
        for line in verdict.below[1:]:
            if not self._goes_on(line):
                return None
        if verdict.labelled or self.grammar.clauses.graded:
            above = [line for line in above if not self._is_criterion(line, verdict.value)]
        below = [line for line in verdict.below if line]
        if (above or below) and self._opposed(above, below, verdict.value, verdict.labelled, verdict.tied):
            return None
        beside = "\n".join(above + below)
        clear = self.open_question or (verdict.clear and (not self._asks_of_relevance or "passage" in text.casefold()))
        if not clear and self._about_passage(beside) != verdict.value:
            return None
        return verdict.value

    def _is_criterion(self, line: str, value: int) -> bool:
        """Whether a line says that one criterion is (not) met, which fits any grade except the highest."""
        criterion = _CRITERION.fullmatch(line)
        if criterion is None:
            return False
        met = criterion["met"].casefold() == "yes"
        return not self.grammar.clauses.graded or met or value != max(self._values.values())

    @cached_property
    def _asks_of_relevance(self) -> bool:
        """Whether the question itself is about being relevant or useful."""
        return not self.filled.words.isdisjoint(("relevant", "irrelevant", "useful", "helpful", "relevance"))

    def _about_passage(self, beside: str) -> int | None:
        return relevance.about_passage(self.filled.own(beside)) if self.judges_passage else None

    def _goes_on(self, line: str) -> bool:
        """Whether a line below a verdict may be a part of the reason."""
        own = self.shown.own(line).casefold()
        is_step = self.grammar.step.match(own) and own.partition(":")[2].strip(" .") not in self._values
        return bool(is_step) or ambiguity.is_reason(own, self.filled.words) or ambiguity.is_foreign(own)

    def _says_something(self, text: str) -> bool:
        """Whether a text holds more than repetitions of the prompt."""
        return bool(self.shown.own(text).strip(EDGES + MASK + ".?!"))

    def _placed(self, lines: list[str]) -> _Placed | None:
        """Return the verdict of the first or last line, or else of the one line with a label."""
        first = self.grammar.clauses.opening(lines[0])
        rest = [first.beside, *lines[1:]] if first else lines
        last = self.grammar.clauses.closing(rest[-1])
        if last:
            if first and first.value != last.value:
                return None
            above = self._without_agreeing([*rest[:-1], last.beside], last.value)
            clear = last.clear or (first is not None and first.clear)
            return _Placed(last.value, last.labelled, above, below=[], opens=first is not None, clear=clear)
        if first:
            return _Placed(
                first.value, first.labelled, above=[], below=rest, opens=True, clear=first.clear, tied=first.tied
            )
        labelled: list[_Placed] = []
        for place, line in enumerate(lines):
            verdict = self.grammar.clauses.opening(line)
            if verdict and verdict.labelled:
                below = [verdict.beside, *lines[place + 1 :]]
                labelled.append(
                    _Placed(verdict.value, True, lines[:place], below, False, verdict.clear, tied=verdict.tied)
                )
        return labelled[0] if len(labelled) == 1 else None

    def _without_agreeing(self, above: list[str], value: int) -> list[str]:
        """Return the lines above a verdict without a final clause that says the same."""
        above = [line for line in above if line]
        for _ in range(_AGREEING):
            again = self.grammar.clauses.concluding(above[-1]) if above else None
            if again is None or again.value != value:
                break
            above[-1:] = filter(None, [again.beside])
        return above

    def _lines(self, text: str) -> list[str]:
        """Return the lines with content, without markup; a verdict in a tag or box becomes a line with a label."""
        text = text.translate(_UNSEEN)
        fenced = _FENCED.fullmatch(text)
        text = _ECHO.sub("\n", _WRAPPER.sub("\n", _without_tables(fenced["body"] if fenced else text)))
        # Models trained on exercises write their verdict in \boxed{} or <answer>.
        text = _TAG.sub(lambda tag: f"\nverdict: {next(filter(None, tag.groups()[1:]))}\n", text)
        text = self.grammar.step_bold.sub(r"\1: ", _BRACKETED.sub(r"\1", text))
        own_lines = [line for line in text.splitlines() if not self._quotes(line)]
        if any(map(_ODD.search, own_lines)):
            return []
        lines: list[str] = []
        for line in own_lines:
            plain = _BULLET.sub("", " ".join(_MARKUP.sub("", line).split()))
            if lines:
                plain = _without_label(plain)
            elif self._echoes(plain) or _HEADING.fullmatch(plain):
                continue
            if not plain.strip("-_=~. $:|") or _CONFIDENCE.fullmatch(plain):
                continue
            plain = self.grammar.step_mark.sub(r"\1: ", _without_gloss(plain))
            if plain.startswith("(") and plain.rstrip(".)")[1:].casefold() in self._values:
                plain = plain.rstrip(".)")[1:]
            above = lines[-1].rstrip(":.") if lines else ""
            # "Verdict:" may stand on a line of its own above the word, as headings do.
            heading = self.grammar.clauses.label.fullmatch(above) or above.casefold() in self.grammar.steps
            if heading and self.grammar.clauses.label.match(plain) and above.casefold() not in self.grammar.steps:
                lines[-1] = plain
            elif heading and not self.grammar.clauses.label.match(plain):
                lines[-1] = f"{above}: {plain}"
            else:
                lines.append(plain)
        # Behind the steps of a grade the answer is the grade.
        if len(lines) > len(self.grammar.steps) > 0:
            lines[-1] = _FINAL_ANSWER.sub("grade: ", lines[-1])
        return lines

    def _quotes(self, line: str) -> bool:
        """Whether a line is marked as a quotation, and is one from the prompt."""
        return line.startswith(">") and not self._says_something(line[1:])

    def _echoes(self, line: str) -> bool:
        """Whether a line repeats the prompt and is none of the requested steps."""
        if line.casefold().partition(":")[0] in self.grammar.steps:
            return False
        return bool(_ECHOES.match(line) and _MASKED.fullmatch(self.shown.own(line)))

    def _leads_on(self, above: list[str]) -> bool:
        """Whether the lines above a verdict are finished: no sentence continues in it, and no quotation is open."""
        steps = tuple(self.grammar.step.findall("\n".join(above).casefold()))
        if steps and (steps != self.grammar.steps or not above[0].casefold().startswith(steps[0])):
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
            if _ANOTHER_WORD.match(text, word.start()):
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

    def _opposed(self, above: list[str], below: list[str], value: int, labelled: bool = True, tied: str = "") -> bool:
        """Whether the text beside a verdict retracts it, hedges it or says the contrary about the passage."""
        graded, topic = self.grammar.clauses.graded, self.filled.words
        if graded:
            below = [line for line in below if line.casefold() != self.grammar.names.get(value)]
        beside = "\n".join(above + below)
        if not beside:
            return False
        folded = beside.casefold()
        for word, other in self._values.items():
            if other == value:
                continue
            if " " in word and word in folded:
                return True
            if graded and self.shown.holds(f"{word} {beside}"):
                return True  # the prompt explains another grade in these words
        for place, line in enumerate(above + below):
            begun = _BEGUN.match(line.casefold())
            if begun and self._values.get(begun[1], value) != value:
                return True
            if not graded and self._values.get(line.casefold().partition(" ")[0], value) != value:
                return True  # "No worries!"
            leads = place < len(above)
            is_step = line.casefold().partition(":")[0] in self.grammar.steps
            own = _STEP_LABEL.sub("", self.shown.own(line))
            if ambiguity.contests(own, self._values, value, graded, above=leads, topic=topic, is_step=is_step):
                return True
        own, said = self.shown.own(beside).casefold(), self.filled.own(beside).casefold()
        if ambiguity.takes_back(own, topic, self.shown.own(tied).casefold()) or ambiguity.REPORTS.search(own):
            return True
        if labelled and above and not below:
            # A model that thinks aloud asks and answers itself.
            own = _ASKED.sub("", own)
        if not graded and (ambiguity.hedges(own, topic, self.shown.own(tied).casefold()) or _ANOTHER.search(own)):
            return True
        if not (labelled or ambiguity.is_reason(own, topic) or ambiguity.is_foreign(own)):
            return True
        if ambiguity.is_foreign(own):
            return not graded and ambiguity.denies_abroad(own) == bool(value)
        return self.judges_passage and self._contradicts(said, value)

    def _contradicts(self, said: str, value: int) -> bool:
        """Whether a reason says something about the passage that contradicts a verdict."""
        verdicts = relevance.verdicts(said)
        least, most = min(self._values.values()), max(self._values.values())
        if value == most:
            return 0 in verdicts or (1 not in verdicts and relevance.denies(said))
        if value == least:
            return 1 in verdicts
        return ambiguity.UNRELATED.search(said) is not None

    def _of_embedded(self, text: str) -> int | None:
        """Return the verdict of an object among other words, which neither state nor retract one."""
        begins, ends = text.index("{"), text.rfind("}") + 1
        body = text[begins:ends]
        if body.count("}") == body.count("{") + 1:
            body = body[:-1]
        value = self._of_object(body)
        if value is None or self.filled.holds(body):
            return None
        head, tail = (_FENCE.sub("", part).strip(" \n;:") for part in (text[:begins], text[ends:]))
        said, goes_on = (_FENCE.sub("", part).strip() for part in (text[:begins], text[ends:]))
        if (said and said[-1] not in ".:!") or goes_on.startswith(","):
            return None  # a sentence goes on in the object, or behind it: "It is not {…}"
        for place, line in enumerate([*head.splitlines(), *tail.splitlines()]):
            words = set(_WORD.findall(line.casefold()))
            if not words.isdisjoint(self._values) or '"' in line:
                return None
            own = _OBJECT.sub("it", self.shown.own(line))
            above = place < len(head.splitlines())
            if above and not (
                ambiguity.is_reason(own.casefold(), self.filled.words) or ambiguity.is_foreign(own.casefold())
            ):
                return None
            if ambiguity.takes_back(own.casefold(), self.filled.words, ""):
                return None
            if ambiguity.contests(own, self._values, value, self.grammar.clauses.graded, above, self.filled.words):
                return None
            if ambiguity.REPORTS.search(f"{own.casefold()}:") or ambiguity.SUPPOSES.search(own.casefold()):
                return None
        return value

    def _of_object(self, text: str) -> int | None:
        """Return the verdict under an object's only verdict key, beside reasons and other fields."""
        entries = parse_object(text)
        verdicts: list[tuple[str, object]] = []
        reasons: list[str] = []
        for name, entry in leaves(entries or {}):
            key = _CAMEL.sub("_", name).casefold().replace(" ", "_").replace("-", "_")
            if _VERDICT_KEY.fullmatch(key):
                verdicts.append((key, entry))
            elif _OTHER_KEY.search(key) or isinstance(entry, list):
                return None
            elif _SURENESS.search(key):
                if isinstance(entry, str) and ambiguity.UNSURE.search(entry.casefold()):
                    return None
            elif isinstance(entry, str) and entry:
                reasons.append(entry)
        if len(verdicts) != 1:
            return None
        key, verdict = verdicts[0]
        if isinstance(verdict, str) and self.grammar.clauses.graded:
            named = _NAMED_GRADE.fullmatch(verdict.casefold())
            if named and self.grammar.names.get(int(named["grade"])) == named["name"]:
                verdict = named["grade"]
        if not isinstance(verdict, (str, int)) or (isinstance(verdict, bool) and self.grammar.clauses.graded):
            return None
        if not self.open_question and _ANSWER_KEY.fullmatch(key):
            return None
        said = " ".join(str(verdict).casefold().split()).removesuffix(".")
        most = max(self._values.values())
        value = self._values.get(said.removesuffix(f"/{most}") if self.grammar.clauses.graded else said)
        if value is None and not self.grammar.clauses.graded:
            value = self.grammar.stating.value_of(said)
        if value is None or any(self._opposed([_SAYS.sub("It ", reason)], [], value) for reason in reasons):
            return None
        return value


def _without_label(line: str) -> str:
    """Return a reason without its announcement: ``(Note: …)``, ``Reason: …``."""
    reason, labels = _REASON_LABEL.subn("", line, count=1)
    if labels and reason.count("(") < reason.count(")"):
        return reason.removesuffix(")")
    return reason


def _without_gloss(line: str) -> str:
    """Return the English word of a line that is only "Nein (No)"."""
    word, _, english = line.rstrip(". ").removesuffix(")").partition(" (")
    value = GLOSSES.get(word.casefold())
    return english if value is not None and english.casefold() == ("no", "yes")[value] else line


def _without_tables(text: str) -> str:
    """Return a text with tables of two columns or rows turned into lines with labels."""
    if text.count("|") < 2:
        return text
    lines: list[str] = []
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        if stripped.count("|") > 1 and stripped.startswith("|") and stripped.endswith("|"):
            if not _RULE.fullmatch(stripped):
                rows.append([cell.strip() for cell in stripped[1:-1].split("|")])
            continue
        lines += _rows_as_lines(rows)
        rows = []
        lines.append(line)
    return "\n".join(lines)


def _rows_as_lines(rows: list[list[str]]) -> list[str]:
    """Return a line for each cell that has a label, beside it or above it."""
    if len(rows) == 2 and len(rows[0]) == len(rows[1]) and any(map(_COLUMN.fullmatch, rows[0])):
        rows = [[name, cell] for name, cell in zip(*rows, strict=True)]
    if all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    if any(len(row) != 2 for row in rows):
        return ["|".join(row) for row in rows]
    return [f"{name}: {cell}" for name, cell in rows]
