"""What the sentences of a reason say about the passage: that it is (not) relevant, helps or answers.

Such a sentence is a verdict, too: it confirms or contests the verdict beside it. Words about the topic are not: "the
flag is not green" says nothing about the passage.
"""

from __future__ import annotations

import re
from typing import Final

from judgekit.reading.ambiguity import MASK

_END: Final = r"[.!?;:\n。！？；]+(?=\s|$|[^\x00-\x7f])"
_SENTENCE: Final = re.compile(_END)
_CLAUSE: Final = re.compile(
    rf"{_END}|,|\s[-–—]+\s|—"
    r"|\b(?:but|however|though|although|yet|so|since|because|while|whereas|therefore|thus|hence)\b"
)

_QUESTION: Final = (
    rf"(?:(?:(?:the|this|that|your|his|her|their|any|a|an|another|other|different|user['’]s|given|posed|actual) )*"
    rf"(?:question|query)s?\b|what (?:is|was) asked\b|{MASK})"
)
_THERE: Final = (
    r"not|n['’]t|stated|given|named|found|there|here|in|clear|missing|absent|nowhere|mentioned|provided|contained|present"
    r"|available|included|lacking|left"
)
"""A statement about an answer without the answer itself; "the answer is a song" gives it."""

_RELEVANT: Final = re.compile(
    rf"\b(?P<un>ir|in|un|non-?)?(?:relevant|useful|helpful|pertinent|spot on|on point|to the point)\b"
    rf"(?! (?:to|for|in) (?!(?:the purpose of )?(?:answering )?{_QUESTION}|answering|it\b|this\b|someone|somebody"
    r"|an?(?:y)? |the reader|them\b|the user))"
)
_ANSWERS: Final = re.compile(
    rf"\b(?:answer|address|resolve|settle)(?:s|d|ed|es|ing)? (?:\w+ly )?{_QUESTION}"
    rf"|\b{_QUESTION} (?:is|was|remains|gets|goes|stays|can(?:not|['’]t)? be|could be"
    rf"|has been) (?:\w+ ){{0,2}}?(?:answered|addressed"
    rf"|settled)"
    r"|\b(?:the|an?|no|any|its?|full|complete|correct|whole|direct|clear) answers?\b"
    rf"(?! (?:to {_QUESTION} )?(?:is|was|(?:would|must|should|could|may) be)\b(?! (?:\w+ )?(?:{_THERE})\b))"
    r"|(?<=\w )what (?:the (?:question|user|reader)|somebody|one|is being|is|was) (?:asks?|asked|needs?|needed"
    r"|wants?|sought)\b"
    r"|^what (?:the (?:question|user|reader)|one|somebody) (?:asks?|needs?|wants?)(?: \w+){0,3} (?:is|are)"
    r"(?: not|n['’]t)? (?:contained|given|stated|named|there|found|told|missing|absent|provided|in it)\b"
    r"|\bbears? on (?:it|the question)\b"
    r"|^what is asked (?:for )?is\b|\b(?:needed|required|requested|sought|necessary) (?:information|facts?"
    r"|details?|answer)\b"
    r"|\bhelp(?:s|ed|ing)?(?: (?:to |in |with )?(?:answer\w*|someone|somebody|an?y? reader|the (?:reader|user))|\W*$)"
)
_AGAINST: Final = re.compile(
    r"\b(?:unanswered|left open|leaves (?:it )?open|no bearing|beside the point"
    r"|off[- ]topic|unrelated|nothing to do with|off the (?:point|mark)"
    r"|(?:about|on|concerns?) (?:something|somebody|someone) else|different (?:question|subject|topic|matter"
    r"|thing|person)s?"
    r"|(?:not enough|insufficient|too little) (?:information|details?)"
    r"|of no (?:use|help|relevance)|useless|misses the point|nothing (?:that )?(?:would |could )?(?:help|answer)s?"
    r"|no (?:information|mention|word|details?) (?:about|of|on|regarding|concerning) (?:the question|what|it"
    r"|this|that))\b"
)
_NOT: Final = re.compile(
    r"\b(?:not(?! only| just| merely)|\w+n['’]t|cannot|no(?! doubt| question about| less| more)|nothing(?! else)|never"
    r"|pas|nicht|não|niet|none|neither|nor|without|lack(?:s|ing|ed)?|miss(?:es|ing)|fail(?:s|ed|ing)?|absent|silent|omit\w*|insufficient"
    r"|another|other|elsewhere|instead|hardly|barely|far from|left out|leaves?\b.*\bout|short of)\b"
)
_UNSURE: Final = re.compile(
    r"\b(?:(?:would|could)(?! not)|might|may|if|unless|perhaps|maybe|probably|possibly|partly|partially|partial"
    r"|somewhat|(?<!not )only"
    r"|tangential\w*|loosely|part|to some|at first|almost|nearly|seems?|appears?|question (?:asks|is about"
    r"|was about))\b"
)

_SAYS: Final = (
    r"stat(?:e[sd]?|ing)|sa(?:ys?|id)|nam(?:e[sd]?|ing)|mention(?:s|ed|ing)?|gi(?:ves?|ven|ving)|provid(?:e[sd]?|ing)"
    r"|contain(?:s|ed|ing)?|includ(?:e[sd]?|ing)|tells?|told|describ(?:e[sd]?|ing)|expla(?:ins?|ined|ining)"
    r"|notes|identif(?:y|ies|ied)|confirm(?:s|ed)?|show(?:s|n|ed)?|list(?:s|ed)?|specif(?:y|ies|ied)"
    r"|cover(?:s|ed)?|discuss(?:es|ed)?|reveal(?:s|ed)?|indicate[sd]?|offer(?:s|ed)?|report(?:s|ed)?|address(?:es|ed)?"
    r"|supports?|supported|has|have|there|found|answer(?:s|ed)?|present|available"
)
_STATES: Final = re.compile(rf"\b(?:{_SAYS})\b")
_DENIES: Final = re.compile(
    rf"\b(?:not(?! only| just)|\w+n['’]t|never|nor|neither|cannot|without|fails? to|nothing|none|only|merely|just)"
    rf"(?: (?!that\b)\w+){{0,4}}? (?:{_SAYS})\b"
    rf"|\b(?:{_SAYS}|is)(?: (?!that\b)\w+){{0,2}}?"
    r" (?:no|nothing|none|(?<!the )only|merely|neither|little)\b(?! doubt| more)"
    r"|^not (?:in )?(?:the|its|any|an?|about|what|who|when|where|how|why)\b"
    r"|^(?:the )?question (?:is|was) about\b|\b(?:is|are|was|were|does|do|did|has|have) not$|\b(?:isn|aren|wasn"
    r"|doesn)['’]t$"
    r"|\b(?:missing|absent|left out|leaves?\b.{0,60}\bout|silent|omit\w*|lack(?:s|ing)?|no mention|instead|all that"
    r"|concerned with|something else)\b"
)

_SUBJECT: Final = (
    r"^(?:\W*(?:and|so|also|indeed|here) )?(?:the|this|that)"
    r" (?:passage|text|document|article|snippet|excerpt|paragraph)"
)
_HOLDS: Final = r"(?:address|mention|cover|discuss|specif|contain|provid|includ|offer|giv|answer)\w*"
# "The passage says dogs travel for free" answers the question, and so may its contrary.
_TELLS: Final = (
    r"(?:says?|states?|tells?|indicates?|explains?)(?: us)?"
    r"(?= (?:whether|how|what|which|who|when|where|why|about|of|anything|much)\b|$)"
)
_TELLS_NOT: Final = re.compile(
    rf"{_SUBJECT} (?:(?:itself|simply|just|also) )?(?:(?:do(?:es)? not|doesn['’]t|never|fails to) (?:\w+ly )?"
    rf"(?:{_HOLDS}|{_TELLS})"
    r"|(?:says|tells|states|mentions|gives|offers|contains|provides|has|includes) (?:us )?(?:nothing|no )\b)"
    r"(?!.*\bthat\b)"
)
_TELLS_OF: Final = re.compile(
    rf"{_SUBJECT} (?:(?:itself|\w+ly|also|does|do) )?(?:{_HOLDS}|{_TELLS}) (?!(?:so|it|this|as much)\b)"
    r"(?!.*\b(?:that|only|nothing|no|not|little|but)\b)"
)

_NAMES_IT: Final = re.compile(
    rf"{_RELEVANT.pattern.replace('?P<un>', '?:')}|\b(?:question|answer|relevance|the reader needs)\b"
)


def verdicts(text: str) -> set[int]:
    """Return what a text says about the passage: 1 if it is relevant, answers or helps; 0 if not."""
    said: set[int] = set()
    for clause in _CLAUSE.split(text.casefold()):
        value = _verdict(clause.strip())
        if value is not None:
            said.add(value)
    return said


def denies(text: str) -> bool:
    """Whether a text names only what the passage does not state."""
    clauses = [clause.strip() for clause in _CLAUSE.split(text.casefold())]
    denials = [clause for clause in clauses if _DENIES.search(clause)]
    return bool(denials) and not any(_STATES.search(clause) for clause in clauses if clause not in denials)


def about_passage(text: str) -> int | None:
    """Return the verdict of a text whose sentences are all about the passage or its relevance."""
    said: set[int] = set()
    for part in _SENTENCE.split(text.casefold()):
        sentence = part.strip()
        if not sentence:
            continue
        values = verdicts(sentence)
        if not values and _TELLS_NOT.search(sentence):
            values = {0}
        if not values and _TELLS_OF.search(sentence):
            values = {1}
        if not re.match(_SUBJECT, sentence) and not (values and _NAMES_IT.search(sentence)):
            return None
        said |= values
    return said.pop() if len(said) == 1 else None


def _verdict(clause: str) -> int | None:
    """Return what a clause says about the passage; None if it is about something else, denied twice or unsure."""
    relevant = _RELEVANT.search(clause)
    against = _AGAINST.search(clause)
    if against:
        return None if _NOT.search(clause[: against.start()]) else 0
    if not (relevant or _ANSWERS.search(clause)) or _UNSURE.search(clause):
        return None
    denied = _NOT.search(clause) is not None
    if relevant and relevant["un"]:
        return None if denied else 0
    return int(not denied)
