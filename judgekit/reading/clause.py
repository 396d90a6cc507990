"""A clause that states a verdict: "Therefore, the answer is **No**", "Relevant: Yes", "The passage is not relevant".

    clause  = [conclusion] [announcement] verdict, or the answer to the prompt's own yes/no question

A clause at the beginning of a line ends where reasons begin: at a stop, a dash, a bracket or "because". A clause at the
end of a line is its last sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

NOUNS: Final = (
    r"verdict|grade|score|rating|decision|judge?ment|label|relevance|relevant|conclusion|result|overall|urteil"
    r"|ergebnis"
    r"|useful(?:ness)?|note finale|relevance (?:judge?ment|grade|score|rating)"
)
# Not for grades: there an answer answers the user's question.
_ANSWERS: Final = (
    r"answer|response|output|a|antwort|réponse|respuesta|risposta|resposta|antwoord|svar|odpowiedź|ответ|yanıt|उत्तर"
    r"|정답|الإجابة|答案|回答|答え|(?:is (?:it|(?:the|this) passage) )?relevant(?: to (?:the|this) question)?\?"
)

_GRADES: Final = (
    r"(?:gesamt|end)?bewertung|gesamtnote|endnote|note|nota|nota finale|voto(?: finale)?|ocena końcowa"
    r"|puntuación|calificación|puntaje|pontuação|nota final|cijfer|betyg"
    r"|ocena|оценка|итоговая оценка|评分|最终评分|最終評価|評価|得分|總分|总分|점수|최종 점수"
)
_OWNERS: Final = r"(?:(?:my|the|your|final|overall|correct|right|relevance|die|der|la|el|il)[ ,]{1,2})*"
_SAYS: Final = r"(?:is|would be|ist|est|es|lautet)\b:?|[是为]\s*[:：]?"
_CONCLUDES: Final = (
    r"(?P<concluded>(?:(?:(?:so|thus|hence|therefore|then|consequently|accordingly|overall"
    r"|in (?:conclusion|short|summary)|as a result|for th(?:is|ese) reasons?|based on (?:this|that|these)"
    r"|(?:based on|given|after reading) the (?:provided |given )?passage(?: carefully)?)\b|根据文章|[=-]>|→|⇒)"
    r"(?:\s*[,:;，])?\s*)+)?"
)
_ANSWERING: Final = r"i(?:['’]d| would| have to| must)? (?:say|answer):? "
_GRADING: Final = (
    r"(?:i(?:['’]d|['’]ll| would| will)? (?:grade|rate|give|assign|score)(?: (?:it|this|(?:the"
    r"|this) passage))?(?: as)?"
    r"|(?:the|this) passage (?:is (?:graded|rated)|gets|receives|deserves|merits|earns))"
    r"(?: (?:an?|the))?(?: (?:relevance )?(?:grade|score|rating)(?: of)?)? "
)
_QUESTION: Final = re.compile(
    r"\bis the (?P<noun>passage|document|answer) (?P<adjective>relevant|useful|helpful|correct)\b", re.IGNORECASE
)
"""A prompt's question whose words can state the verdict."""

_SUBJECTS: Final = r"(?:it|the|this|that|there|no|nothing|none)\b"
_TURN: Final = (
    r"\s*(?P<mark>[.,:;!(。=，；：！、]|\s[-–—]{1,2}\s|—"
    rf"|\b(?:because|since|as(?= {_SUBJECTS})|given that)\b)\s*(?P<beside>.*)"
)
_TURNING: Final = r"\b(?:but|however|though|although|because|since|as|while|yet|only|if|and)\b"
_ENDS: Final = (".", "!", "。")
_ASKS: Final = (":", "(", "!", *(f" {dash} " for dash in "-–—"), "—")
GLOSSES: Final = {
    **dict.fromkeys(("ja", "oui", "sí", "si", "sì", "sim", "да", "はい", "是", "是的", "예", "네", "हाँ", "हां"), 1),
    **dict.fromkeys(("evet", "نعم", "tak", "כן", "vâng", "kyllä", "igen"), 1),
    **dict.fromkeys(
        ("nein", "non", "no", "não", "nee", "nej", "нет", "いいえ", "否", "不", "不是", "아니요", "아니오"), 0
    ),
    **dict.fromkeys(("नहीं", "hayır", "لا", "nie", "לא", "không"), 0),
}
"""Yes and no as other languages write them, beside the English word."""

_RELEVANCE: Final = re.compile(r"relevan|useful|helpful", re.IGNORECASE)
_JUDGED: Final = re.compile(r"verdict|judge?ment|grade|score|rating", re.IGNORECASE)

_FIRST: Final = re.compile(r"[.!?;:](?:\s|$)")
_BOUNDARY: Final = r"(?:^|(?<=[.!。\"”] ))"
# Before these, the word is no verdict: "No. 1 of the list", "Yes, says the passage", "Yes, but".
_ELSEWHERE: Final = re.compile(
    rf"(?:but|however|as(?! {_SUBJECTS})|as the \w+ (?:says?|said|puts?|has it)|says?|said|is|was|so|like"
    r"|(?P<told>according))\b",
    re.IGNORECASE,
)
_SECOND: Final = re.compile(r"\)\s*(?:/|or)\s*\d")
_CONJUNCTION: Final = re.compile(rf"\A(?:as|because|since|for) (?={_SUBJECTS})", re.IGNORECASE)
_SURE: Final = (
    r"(?:(?:definitely|clearly|certainly|absolutely|plainly|obviously|strongly?"
    r"|an? (?:clear|definite|firm|strong|plain|resounding|solid|simple)) )?"
)

_GIVES_REASON: Final = re.compile(r"(?:it|(?:the|this) (?:passage|text|document|question|answer))\b", re.IGNORECASE)
"""The beginning of a reason after a colon: "The passage is not relevant: it names no year"."""

_WITHIN: Final = re.compile(
    r"[,;]? (?:(?:and|so|therefore|thus|hence),? )+(?:the|my) (?:final )?answer is:? (?P<said>yes|no)[.!]?$",
    re.IGNORECASE,
)
"""Endings of a sentence that hold the verdict: too loose to state one alone."""

ICONS: Final = {**dict.fromkeys("✅✔☑👍", 1), **dict.fromkeys("❌✖✗👎🚫", 0)}


@dataclass(frozen=True)
class Statement:
    """A verdict in a line.

    Attributes:
        value: the verdict.
        beside: the rest of the line.
        labelled: whether a label, a conclusion or a whole sentence marks it as the verdict.
        clear: whether it cannot answer the user's question: it names relevance, or stands alone after "Verdict:".
        tied: text that continues in the verdict's sentence.
    """

    value: int
    beside: str
    labelled: bool
    clear: bool
    tied: str = ""


@dataclass(frozen=True)
class Clauses:
    """Finds the clauses that state a verdict of one prompt.

    Attributes:
        graded: whether the verdicts are grades, instead of yes and no.
        values: the value of each word, case-folded.
        prompt: the prompt's text.
        names: the names of the grades, case-folded.
    """

    graded: bool
    values: Mapping[str, int]
    prompt: str
    names: Collection[str] = ()

    def opening(self, line: str) -> Statement | None:
        """Return the verdict at the beginning of a line; reasons may follow."""
        clause = self._opens.match(line)
        if clause is None:
            return None
        value = self._value(clause)
        if value is None:
            return None
        labelled, mark, beside = _is_labelled(clause), clause["mark"], clause["beside"] or ""
        if self.graded and not labelled and (mark in (*".,;!",) if mark else line.endswith(".")):
            return None  # "2. The passage" is the second of a list
        if mark == "=" and (labelled or clause["beside"].rstrip(".").casefold() not in self.names):
            return None  # "3 = full answer" is a grade with its name
        if clause["said"] is None and mark in _ASKS and not (clause["sentence"] and _GIVES_REASON.match(beside)):
            return None  # "Irrelevant: No" asks whether it is
        elsewhere = _ELSEWHERE.match(beside)
        if elsewhere and not (elsewhere["told"] and mark in _ENDS):
            return None
        if self.graded and _SECOND.search(beside):
            return None  # "0 (lenient) / 2 (strict)"
        if mark == "." and (beside[:1].islower() or beside[:1].isdigit()):
            return None  # "No. 1 of the list"
        beside = _CONJUNCTION.sub("", beside)
        if mark == "(":
            beside = beside.removesuffix(".").removesuffix(")")
            gloss = GLOSSES.get(beside.casefold())
            if gloss is not None and not self.graded:
                beside = ""
                if gloss != value:
                    return None
        tied = "" if mark in _ENDS else _FIRST.split(beside, maxsplit=1)[0]
        return Statement(value, beside, labelled, _is_clear(clause, alone=not beside), tied)

    def closing(self, line: str) -> Statement | None:
        """Return the verdict at the end of a line."""
        clause = self._closes.search(line)
        if clause is None:
            return None
        value = self._value(clause)
        if value is None:
            return None
        labelled, before = _is_labelled(clause), line[: clause.start()].strip()
        if before and not labelled and (self.graded or clause["said"] is None):
            return None  # a number at the end of a sentence may belong to it
        return Statement(value, before, labelled, _is_clear(clause, alone=not before))

    def concluding(self, line: str) -> Statement | None:
        """Return the verdict at the end of a line above another verdict, even within a sentence."""
        sentence = self.closing(line)
        within = None if sentence or self.graded else _WITHIN.search(line)
        if within is None:
            return sentence
        before = line[: within.start()].rstrip(" ,;")
        return Statement(self.values[within["said"].casefold()], before and f"{before}.", labelled=True, clear=False)

    @cached_property
    def adjective(self) -> str:
        """The adjective in the prompt's question, such as "relevant"; empty if it asks for something else."""
        question = None if self.graded else _QUESTION.search(self.prompt)
        return question["adjective"].casefold() if question and question["noun"].casefold() != "answer" else ""

    @cached_property
    def label(self) -> re.Pattern[str]:
        """A line that announces the verdict in the next one."""
        return re.compile(rf"{_OWNERS}(?:{self._nouns})(?: (?:is|ist))?", re.IGNORECASE)

    @property
    def _nouns(self) -> str:
        return f"{NOUNS}|{_GRADES if self.graded else _ANSWERS}"

    @cached_property
    def _opens(self) -> re.Pattern[str]:
        return re.compile(rf"{self._clause}(?:[.!。]?$|{_TURN})", re.IGNORECASE)

    @cached_property
    def _closes(self) -> re.Pattern[str]:
        return re.compile(rf"{_BOUNDARY}{self._clause}[.!。]?$", re.IGNORECASE)

    @cached_property
    def _clause(self) -> str:
        words = "|".join(re.escape(word) for word in sorted(self.values, key=len, reverse=True))
        sep = rf"(?:\s*(?:{_SAYS})|\s*[:：=]|(?<=\?)| [-–](?= ))\s*"
        announced = rf"{_OWNERS}(?:{self._nouns})(?: to this question)?{sep}|{_GRADING if self.graded else _ANSWERING}"
        said = rf"(?P<quote>[\"“'«]?\s*)(?:(?P<icon>[{''.join(ICONS)}])\ufe0f?\s*)?(?P<said>{words})(?!\w)\s*[\"”'»]?"
        of_most = ""
        if self.graded and min(self.values.values()) == 0:
            most = max(self.values.values())
            of_most = rf"(?:\s*/\s*{most}| out of {most})?"
        sure = "" if self.graded else _SURE
        return rf"{_CONCLUDES}(?:(?P<announced>{announced})?{sure}{said}{of_most}|{self._answer})"

    @property
    def _answer(self) -> str:
        """The prompt's question as a sentence: "The passage is relevant to the question", "Not relevant"."""
        noun, adjective = "passage", "(?!)"
        question = _QUESTION.search(self.prompt)
        if question and not self.graded:
            noun, adjective = question["noun"], question["adjective"]
        if noun == "passage":
            noun = "(?:given |provided )?(?:passage|text|document)"
        # "The passage does not contain any relevant information about the question".
        holds = (
            rf"(?P<holds>(?:the|this) {noun} (?:(?P<not>does(?: not|n['’]t)) )?"
            r"(?:contains?|provides?|offers?|includes?|has|have|gives?) (?:(?P<no>no) |any |some )?"
            rf"{adjective} information)"
            rf"(?: (?:about|for|on|to|of|regarding) (?:(?!{_TURNING})[^.;:,()]){{1,200}}?)?"
        )
        return (
            rf"(?P<sentence>(?:it|(?:the|this) {noun}) (?:is|was) ?)?(?P<denied>n['’]t |not (?:at all )?)?"
            rf"(?:(?:clearly|directly|highly|very|completely|entirely|definitely|indeed) )?(?P<un>ir|in"
            rf"|un)?{adjective}"
            r"(?: (?:to|for|for answering|to answering) (?:the|this|your) (?:given |user['’]s "
            r"|original )?(?:question|query)"
            rf"(?: (?:asked|posed|at hand))?(?: (?:of|about|regarding|as to) (?:(?!{_TURNING})[^.;:,()]){{1,200}}?)?)?"
            rf"(?: at all)?|{holds}"
        )

    def _value(self, clause: re.Match[str]) -> int | None:
        """Return the verdict of a clause, unless it is quoted, denied twice or beside the opposite icon."""
        if clause["said"] is None:
            if clause["holds"]:
                return None if clause["not"] and clause["no"] else int(not (clause["not"] or clause["no"]))
            if clause["denied"] and clause["un"]:
                return None
            return int(not (clause["denied"] or clause["un"]))
        value = self.values[clause["said"].casefold()]
        # A cross beside "Yes" is ambiguous, and grades have no icons.
        if clause["icon"] and (self.graded or ICONS[clause["icon"]] != value):
            return None
        return None if clause["quote"].strip() and not clause["announced"] else value


def _is_labelled(clause: re.Match[str]) -> bool:
    return any(clause[part] is not None for part in ("concluded", "announced", "sentence", "holds"))


def _is_clear(clause: re.Match[str], alone: bool) -> bool:
    """Whether a verdict names relevance, or stands ``alone`` after a label for judgments."""
    if clause["said"] is None:
        # "It is not useful" may be about the salt.
        subject = clause["sentence"] or ""
        return not subject.casefold().startswith("it ")
    announced = clause["announced"] or ""
    return bool(_RELEVANCE.search(announced) or (alone and _JUDGED.search(announced)))
