"""Clauses that state a verdict in any word order: "So I'd go with a Yes", "Relevance → no", "It's irrelevant".

A reply is cut into parts at its stops, commas, dashes, colons, arrows and conjunctions. A part *states* a verdict if it
holds one (a word of any language, or the adjective in the prompt's question, "not relevant") and otherwise only words
with which people state verdicts: conclusions, pronouns, judgments. A part of such words without a verdict is a label
for the next one. Any other part is a reason and is ignored here. All verdicts of a reply must agree, even loose ones
("would get a No"). The stating clause becomes a line with a label, ``answer: yes``, or ``relevance: yes`` if it names
relevance, and `SecondReading` judges the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from judgekit.reading.clause import GLOSSES, ICONS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STATING: Final = _words(
    """
    's a abschnitt absolutely all also am an and answer answering answers antwort as assessment assign assistant
    at award based be been believe brano by c'est call can certain certainly choose chosen class classed
    classification clear clearly conclude conclusion correct count counts daher das de decide decision definite
    definitely der deserves determination die dieser do does donc earns el end entirely ergo es est
    evaluation final firm firmly for from get gets give gives go goes going grade graded has have having
    held hence here i i'd i'll i'm i've il in indeed is ist it it's its it’s i’d i’ll i’m i’ve judge judged
    judgement judgment just la label lautet le lean luego mark marked marks me mean means merits must my n n'est
    ne now o of off on opinion our output overall own pasaje passagem passaggio pick picking plain plainly
    portanto put question quindi rate rated rather rating receives relevance rendered reply replying respond
    responding response resposta respuesta result right risposta ruling réponse same say score
    settle settled settles short should simple simply so stands still such sum summary sure testo text texte
    texten texto that that's that’s the then therefore think thinks this this's thus to toward towards trecho up
    verdict view vote we which whole will with without would är è é ответ отрывок поэтому текст ’s
    enough hereby leads only status unfortunately fortunately sadly happily accordingly
    """
)
"""The words that a part stating a verdict may consist of."""

_JUDGING: Final = _words(
    """
    absolutely answer answering answers assessment assign assistant award believe call choose class classed
    classification conclude conclusion count counts decide decision deserves determination earns end ergo
    evaluation final get gets give gives go going grade graded hence indeed judge judged judgement judgment
    label lean mark means merits opinion output overall pick picking put rate rated rating receives relevance
    reply replying respond responding response result ruling say score settle settled settles so
    sum summary then therefore think thus toward towards verdict view vote
    enough hereby leads status unfortunately fortunately sadly happily accordingly
    """
)
"""The words among them that mark a statement; one of these is required."""

_GRADING: Final = _JUDGING - _words("so hence then therefore thus means answer answers") | {"makes"}
"""The same for grades: a number behind "so" may be one of the topic."""

_ABOUT: Final = _words(
    """
    absolutely article asked completely consider considered deemed directly document entirely excerpt find found
    fully given highly indeed information make makes obviously one paragraph passage piece provided query quite
    really snippet strongly text totally user user's user’s very
    """
)
"""Further words in the part if its verdict is the adjective: "this makes it a highly relevant passage"."""

WORDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("affirmative", "yep", "yeah", "yup"), 1),
    **dict.fromkeys(("negative", "nope", "nah", "不相关", "不相關", "无关", "無關"), 0),
}
"""Further English words for yes and no."""

_NUMBERS: Final = ("zero", "one", "two", "three", "four", "five")


def words_of(asked: Mapping[str, int], *, graded: bool) -> Mapping[str, int]:
    """Return the value of each word for a verdict: the requested ones, and those in other words and languages."""
    if graded:
        values = set(asked.values())
        spelled = {word: value for value, word in enumerate(_NUMBERS) if value in values}
        return {**spelled, **asked}
    if set(asked.values()) != {0, 1}:
        return asked
    return {**GLOSSES, **WORDS, **asked}


RELEVANT: Final = (
    r"relevant[es]?|relevante[rsn]?|pertinente?s?|rilevante|релевант\w*|相关|相關|関連性?|관련(?:성|됨|있음)?|प्रासंगिक"
    r"|istotny|ilgili|relevanz|relevanc?[iâ]a?|pertinence|pertinenza|rilevanza|релевантность|是否相关|关联性|관련 여부"
)
"""The adjective in several languages, as it labels a verdict."""

_ADJECTIVE: Final = re.compile(
    r"(?:ir|in|im|un|non-?|не)?(?:(?P<asked>relevant|useful|helpful)|relevante|rilevante|pertinente?|релевант\w*)"
)
_UN: Final = ("ir", "in", "im", "un", "non", "не")
_COPULAS: Final = frozenset(("is", "é", "es", "est", "c'est", "n'est", "ist", "è", "är"))
_NOT: Final = frozenset(("not", "não", "nicht", "non", "niet", "inte", "ikke", "не", "pas", "nie"))

_ANSWERS: Final = re.compile(
    r"(?:so |thus |hence |therefore )?(?:it|(?:the|this) (?:given |provided )?(?:passage|text|document))"
    r" (?P<not>(?:does|do) not |fails to )?(?:\w+ly |does )?(?:(?:answers?|addresses|address) (?:the|this) question"
    r"|(?:provides?|gives?|contains?|states?|holds?|includes?|has|have) (?P<none>no )?(?:the |an |any )?"
    r"(?:(?:full|direct|clear|complete|correct|exact|whole|right) )?answer(?: to (?:the|this) question)?"
    r"|is of relevance(?: to the question)?)(?: \w+ly| at all)?"
)
_CUT: Final = re.compile(
    r"(?P<end>[.!?;。！？；…]+(?=[\s\"”»)*_]|$|(?<=[。！？；]))|\n)"
    r"|(?P<soft>[-=]*[→⇒➔>]|[:：=]|(?<!\S)[-–—]+(?!\S)|—|[,，、()（）])"
    r"|(?P<joint>\b(?:and )?(?=(?:so|hence|thus|therefore)\b)|\band (?=(?:is|was|that|this|it|i|gets?)\b)"
    r"|(?<=\w )(?=(?:because|since|as it|as the)\b))",
    re.IGNORECASE,
)
_STOPS: Final = ("", *".!。！\n")
_REMEMBERED: Final = 4096
"""Caches words: a reply has few, and they recur."""

_MARKS: Final = " ()\"“”«».!,;:'’_\n"
_TAIL: Final = re.compile(
    r"(?P<adjective>relevant|useful|helpful|pertinent) (?:to|for|in) (?:the (?:user['’]s |given |original )?"
    r"(?:question|query|user|comparison)|whether|who|what|when|where|which|why|how|some(?:one|body)|any(?:one|body)"
    r"|an? (?:user|reader|person)|answering|your|this|it|that)\b"
    r"(?!.*\b(?:but|however|though|although|only|if|unless|yet|except|while|not|no)\b).*"
)
"""To whom or what it is relevant."""

_NEGATION: Final = re.compile(r"n['’]t\b")
_WORD: Final = re.compile(r"\d+(?:[./]\d+)?|[^\W\d][\w'’\u0900-\u097f]*")
_SUPPOSING: Final = frozenset(("if", "unless", "suppose", "supposing", "assuming", "were", "had", "to", "according"))
_VIEWS: Final = frozenset(
    ("opinion", "view", "judgment", "judgement", "short", "sum", "conclusion", "summary", "absolutely")
)
_SURELY: Final = re.compile(
    r"(?:most )?(?:definitely|absolutely|certainly|clearly|indeed|of course|without (?:a )?doubt|obviously|surely"
    r"|for sure)"
)
_OTHERS: Final = frozenset(("question", "query", "answer", "answers", "response", "reply", "output"))
_ORDERS: Final = ("say", "give", "reply", "respond", "choose", "pick", "put", "assign")
"""The beginning of a sentence that tells somebody to state a verdict: "Say yes"."""

_ASKING: Final = ("is", "does", "was")
_LINKING: Final = _COPULAS | {"it", "this", "that", "which"}
_BESIDE: Final = frozenset(("passage", "document", "makes"))
_ITS_A: Final = [["this", "is", "a"], ["it", "is", "a"], ["that", "is", "a"]]
_NEXT: Final = re.compile(r"\s*(\S)")
_IS_STATED: Final = re.compile(
    r"(?:it is |it['’]s )?(?P<not>not )?(?:\w+ly )?(?:stated|given|named|mentioned|there|present"
    r"|found|answered|covered)(?: (?:in|by) the (?:passage|text|document))?"
)
_INTRO: Final = re.compile(
    r"(?:on|with|given) (?:that|this|these)(?: basis)?|all in all|all things considered|long story short|to (?:sum up"
    r"|conclude|summari[sz]e)|bottom line|taken together|(?:un)?fortunately|sadly|happily|alas|in sum|for (?:this|that)"
    r" reason|for these reasons"
)
"""The beginning of a conclusion."""

_NOT_SO: Final = [["certainly", "not"], ["definitely", "not"], ["absolutely", "not"], ["clearly", "not"]]
_CHOICES: Final = (["yes", "or", "no"], ["yes", "no"])
_OFFERED: Final = re.compile(r" ?\((?:yes|true) ?(?:/|or) ?(?:no|false)\)(?= ?[:=])", re.IGNORECASE)
"""A part of the prompt in a label: "Relevant (yes/no): no"."""

_GROUNDS: Final = frozenset(("because", "as", "since", "given", "while", "although", "though"))
"""The beginning of a sentence whose end is the conclusion."""

_GOES_ON: Final = frozenset(
    ("from", "for", "on", "at", "to", "in", "here", "then", "so", "it", "i", "as", "all", "not")
)
"""What may follow a "no" that denies no noun."""

_SIGN: Final = re.compile(r"[-~<>+%$€£]|\d\.\d|/(?! ?\d)")
"""Signs that turn a grade into another number."""
_ARROWS: Final = tuple("→⇒➔>")
_LABELS: Final = (*":=：-–—", *_ARROWS)
"""Text between a label and its verdict."""

_CONJUNCTION: Final = re.compile(
    r"\A(?:as(?! (?:the|a) \w+ (?:says?|said|puts?|has it|reads?)\b)|because|since|for|while)(?= )", re.IGNORECASE
)
_TURNS: Final = re.compile(r"(?:but|however|though|although|yet|still)\b", re.IGNORECASE)
_QUOTED: Final = re.compile(r"[\"“”«»「」]")
_BARE: Final = re.compile(r"[\w\s'’\u0900-\u097f]+")
_LOOSE: Final = re.compile(
    r"(?P<yes>\b[Yy]es\b|\bYES\b)|(?P<no>(?<!Dr\. )\bN[oO]\b(?=[^\w.]|\.\s|\.?$)|\bno\b(?=\W*$))"
)
"""A verdict in a part of other words: any "yes", and a "No" that denies no noun."""


@dataclass(frozen=True)
class _Part:
    """A part of a text, and the mark that ends it."""

    start: int
    end: int
    text: str
    mark: str

    @cached_property
    def words(self) -> list[str]:
        """Its words, case-folded, with "n't" as a word of its own, and without "to whom" something is relevant."""
        return _WORD.findall(
            _TAIL.sub(r"\g<adjective>", _NEGATION.sub(" not", self.text.casefold().replace("cannot", "can not")))
        )


class _Said(NamedTuple):
    """A verdict in a part, whether its words judge, and whether they name what the prompt asks about."""

    value: int
    judges: bool
    named: bool


class _Label(NamedTuple):
    """The place of a verdict's announcement, and whether it names relevance."""

    start: int
    named: bool = False


class _Stated(NamedTuple):
    """A verdict in its place.

    Attributes:
        start, end: the place of the verdict with its label.
        value: what it is.
        named: whether it names what the prompt asks about.
        labelled: whether it is marked as the verdict.
        whole: whether its part holds nothing else.
        alone: whether it begins a sentence, and answers no question of the reply.
    """

    start: int
    end: int
    value: int
    named: bool = False
    labelled: bool = False
    whole: bool = True
    alone: bool = False


@dataclass
class _Sentence:
    """What is known about a sentence, part by part.

    Attributes:
        parts: number of parts so far.
        supposed: whether it is about a hypothetical case.
        gives_grounds: whether it begins with grounds, so that its end is the conclusion.
        graded: whether a part holds a verdict.
        over: whether its last part was read.
    """

    parts: int = 0
    supposed: bool = False
    gives_grounds: bool = False
    graded: bool = False
    over: bool = False

    def add(self, part: _Part) -> None:
        """Add the next part."""
        first = part.words[0] if part.words else ""
        self.gives_grounds = self.gives_grounds or (self.parts == 0 and first in _GROUNDS)
        self.supposed = self.supposed or first in _SUPPOSING
        self.parts += 1
        self.over = part.mark in (*_STOPS, "?")


@dataclass(frozen=True)
class Stating:
    """Finds the parts that state the verdicts of one prompt.

    Attributes:
        graded: whether the verdicts are grades, or else yes and no.
        values: the value of each word, case-folded.
        names: the name of each grade, case-folded.
        adjective: the adjective in a yes-or-no prompt: "relevant".
    """

    graded: bool
    values: Mapping[str, int]
    names: Mapping[int, str]
    adjective: str = "relevant"

    def rewritten(self, text: str) -> str | None:
        """Return a text with its verdict as a line with a label; None if it states none, or different ones."""
        text = _OFFERED.sub("", text)
        found = list(self._found(text))
        if not self.graded:
            found = _joined(found, text)
        said = [one for one in found if one.labelled] or [one for one in found if one.whole and one.alone][-1:]
        if not said or len({one.value for one in found}) > 1:
            return None
        value = said[0].value
        word = str(value) if self.graded else ("no", "yes")[value]
        named = any(one.named for one in found)
        # "Answer: No" may be the answer to the question.
        label = "relevance" if named else "verdict" if self.graded else "answer"
        pieces: list[str] = []
        place = 0
        for one in said:
            pieces.append(_ended(text[place : one.start]))
            if one is said[-1]:
                pieces.append(f"{label}: {word}" if one.labelled else word)
            place = one.end
        rest = text[place:].lstrip(" ,;:)—–-")
        if _TURNS.match(rest.lstrip(" .!\n")):
            return None
        mark = text[place - 1 : place]
        if rest.strip(_MARKS) and mark not in _STOPS:
            # The rest of the verdict's sentence is tied to it.
            pieces[-1] += f", {_CONJUNCTION.sub('', rest)}"
        else:
            pieces.append(rest.lstrip(".!"))
        return "\n".join(_CONJUNCTION.sub("", piece.lstrip(), count=1) for piece in pieces if piece.strip(_MARKS))

    def value_of(self, text: str) -> int | None:
        """Return the verdict of a text that is nothing else: "not relevant"."""
        said = self._value(_WORD.findall(text.casefold()))
        return said and said.value

    def _found(self, text: str) -> Iterator[_Stated]:
        """Yield the verdicts of a text, including those in parts of other words."""
        parts = list(_parts(text))
        last = len(text.rstrip(_MARKS))
        label: _Label | None = None
        sentence = _Sentence()
        before: _Stated | None = None
        after_question = False
        for place, part in enumerate(parts):
            words = part.words
            if sentence.over:
                sentence = _Sentence()
            sentence.add(part)
            begins, after_question = sentence.parts == 1 and not after_question, part.mark == "?"
            if not words:
                if part.mark in _ARROWS:
                    label = _Label(part.start)
                continue
            if words in _CHOICES and part.mark in _LABELS:
                label = _Label(part.start)
                continue
            if after_question:
                label = self._label(part)
                continue
            said = self._of_part(part)
            if said is None and before and before.end == part.start and _agrees(words, before.value):
                before = before._replace(start=part.start, end=part.end, labelled=False)
                yield before
                continue
            holds_one = any(word in self.values or self._is_adjective(word) for word in words)
            if holds_one and (sentence.supposed or (self.graded and said is None and sentence.graded)):
                # "If it were about cats, the answer would be Yes", "Grade: 0 (lenient) / 2 (strict)".
                yield from _doubtful(part)
            sentence.graded = sentence.graded or holds_one
            if said is None:
                before = None
                if label and set(words) <= _STATING and part.mark in _LABELS:
                    continue  # "Final grade: N = 3"
                label = self._label(part)
                if label is None and not self.graded:
                    label = _Label(part.end) if part.mark in _ARROWS else None
                    yield from _loose(part)
                continue
            # "Relevant: No" and "The passage is relevant: No" ask whether it is.
            brief = len(words) <= 2 or (part.mark == ":" and words[-3:-1] == ["passage", "is"])
            may_ask = said.named and part.mark in _LABELS and brief and place + 1 < len(parts)
            if may_ask and self._of_part(parts[place + 1]):
                if said.value == 0:
                    yield from _doubtful(part)  # "Irrelevant: No" asks whether it is
                label = _Label(part.start, named=True)
                continue
            # "Relevant!" and "It's a Yes." are sentences of their own.
            closes = part.end >= last and (len(words) > 1 or sentence.gives_grounds)
            whole = not self.graded and sentence.over and (said.named or closes)
            before = _Stated(
                label.start if label else part.start,
                part.end,
                said.value,
                named=said.named or (label is not None and label.named),
                labelled=said.judges or label is not None or whole,
                alone=begins and not self.graded and _is_alone(part, text),
            )
            yield before
            label = None

    def _of_part(self, part: _Part) -> _Said | None:
        """Return the verdict of a part that states nothing else."""
        said = self._value(part.words)
        if said is None and self.adjective == "relevant":
            clause = " ".join(part.words)
            answers = _ANSWERS.fullmatch(clause)
            said = answers and _Said(int(not (answers["not"] or answers["none"])), judges=True, named=True)
        if said is None:
            return None
        if self.graded:
            return None if _SIGN.search(part.text) or part.mark in ("=", "%") else said
        icons = {ICONS[sign] for sign in part.text if sign in ICONS}
        if icons:
            return said._replace(judges=True) if icons == {said.value} else None
        return said

    def _label(self, part: _Part) -> _Label | None:
        """Return the part as a label of the next verdict, and whether it names relevance."""
        if re.fullmatch(rf"(?:is[_ ])?(?:{RELEVANT})", part.text.strip().casefold()):
            return _Label(part.start, named=not self.graded)
        said = " ".join(part.words)
        if part.mark in (",", *_LABELS) and _INTRO.fullmatch(said) and not self.graded:
            return _Label(part.start)
        words = set(part.words)
        if part.words[:1] in (["is"], ["does"]) and part.mark in (*_LABELS, "?"):
            names_it = any(map(self._is_adjective, part.words)) and words <= _STATING | _ABOUT | {self.adjective}
            return _Label(part.start, named=True) if names_it else None
        if self.graded and " " in said and said in self.names.values():
            return _Label(part.start)
        if part.mark in ("\n", ".", ";", "!") or (part.mark == "," and words.isdisjoint(_VIEWS)):
            return None
        judging = _GRADING if self.graded else _JUDGING
        if not words <= _STATING | _ABOUT or words.isdisjoint(judging) or _QUOTED.search(_unquoted(part)):
            return None
        return _Label(part.start, named="relevance" in words)

    def _is_adjective(self, word: str) -> bool:
        return bool(self.adjective) and _adjective(word) == self.adjective

    def _value(self, words: list[str]) -> _Said | None:
        """Return the verdict that words state."""
        values: set[int] = set()
        negations = adjectives = 0
        rest: set[str] = set()
        has_adjective = any(map(self._is_adjective, words))
        most = max(self.values.values())
        for said, behind in pairwise([*words, ""]):
            word = said.removesuffix(f"/{most}") if self.graded else said
            if self._is_adjective(word):
                adjectives += 1
                negations += word.startswith(_UN) and word != "useful"
            elif word == "not" or (has_adjective and word in _NOT) or (word == "no" and behind == "es"):
                negations += 1
            elif word == "no" and behind and behind not in _GOES_ON:
                return None  # "No answer."
            elif word in self.values:
                values.add(self.values[word])
            else:
                rest.add(word)
        if has_adjective:
            values.add(1 - negations)
            if max(negations, adjectives, len(values)) > 1 or words[0] in _ASKING or not rest <= _STATING | _ABOUT:
                return None
            if not rest.isdisjoint(_OTHERS):
                return None  # "The question is relevant"
            return _Said(values.pop(), judges=not rest.isdisjoint(_ABOUT | _JUDGING | _LINKING), named=True)
        if words in _NOT_SO and not self.graded:
            return _Said(0, judges=True, named=False)
        if not words or words[0] in _ORDERS:
            return None
        if negations or len(values) != 1 or not rest <= _STATING | _BESIDE or ("would" in rest and "i" not in rest):
            return None
        judging = _GRADING if self.graded else _JUDGING
        judges = not rest.isdisjoint(judging) or words[-4:-1] in _ITS_A
        return _Said(values.pop(), judges, named="relevance" in rest)


@lru_cache(_REMEMBERED)
def _adjective(word: str) -> str:
    """Return the English adjective for a word of some language, denied or not; empty for other words."""
    adjective = _ADJECTIVE.fullmatch(word)
    return "" if adjective is None else adjective["asked"] or "relevant"


def _agrees(words: list[str], value: int) -> bool:
    """Whether the words after a verdict only strengthen it: "Yes, definitely", "No, not stated"."""
    said = " ".join(words)
    stated = _IS_STATED.fullmatch(said)
    if stated is not None:
        return (stated["not"] is None) == bool(value)
    return _SURELY.fullmatch(said) is not None or (value == 0 and said == "not at all")


def _doubtful(part: _Part) -> Iterator[_Stated]:
    """Yield both verdicts for an ambiguous part."""
    for value in (0, 1):
        yield _Stated(part.start, part.end, value, whole=False)


def _loose(part: _Part) -> Iterator[_Stated]:
    """Yield possible verdicts in a part of other words."""
    for loose in _LOOSE.finditer(part.text):
        yield _Stated(part.start, part.end, int(loose["yes"] is not None), whole=False)


def _is_alone(part: _Part, text: str) -> bool:
    """Whether a verdict's part can be a sentence: not "No. 1 of the list", and not "Yes …"."""
    behind = _NEXT.match(text, part.end)
    if "…" in part.mark or text.startswith("..", part.end - 2) or not _BARE.fullmatch(part.text.strip()):
        return False
    return part.mark != "." or behind is None or not (behind[1].islower() or behind[1].isdecimal())


def _joined(found: list[_Stated], text: str) -> list[_Stated]:
    """Return the verdicts, merging equal neighbours: ``No (not relevant)``."""
    joined: list[_Stated] = []
    for one in found:
        last = joined[-1] if joined else None
        agrees = last is not None and last.value == one.value and last.whole and one.whole
        if last and agrees and not _WORD.search(text, last.end, one.start):
            joined[-1] = _Stated(last.start, one.end, one.value, last.named or one.named, labelled=True)
        else:
            joined.append(one)
    return joined


def _parts(text: str) -> Iterator[_Part]:
    place = 0
    for cut in _CUT.finditer(text):
        mark = (cut["end"] or cut["soft"] or "")[-1:]
        if cut.start() > place or mark in _ARROWS:
            end = cut.start() if mark in ("(", "（") else cut.end()
            yield _Part(place, end, text[place : cut.start()].lstrip("(（"), mark)
            place = end
        else:
            place = cut.end()
    if place < len(text):
        yield _Part(place, len(text), text[place:], "")


def _unquoted(part: _Part) -> str:
    """Return the text of a part without the quotes around a key: ``"score": 3``."""
    text = part.text.strip()
    whole = len(text) > 1 and text[0] == text[-1] == '"'
    return text.strip('"') if whole or part.start == 0 else text


def _ended(text: str) -> str:
    """Return the text before a verdict as a sentence of its own."""
    if text.endswith("\n"):
        return text  # a line that is not finished goes on in the verdict
    text = text.rstrip().rstrip(" ,;—–-=>(→⇒➔")
    return f"{text}." if text[-1:].isalnum() or text[-1:] in '"”»)' else text
