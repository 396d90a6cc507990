"""Whether a question can be answered with yes or no.

If so, "No, it did not" may answer the question instead of judging the passage, so its replies are read with more care.
A question is open only if it plainly begins with a word that asks for something else; anything doubtful, a claim or a
few key words count as yes-or-no questions.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = (
    r"who|whom|whose|what|when|where|which|why|how"
    r"|wer|wen|wem|wessen|wann|woher|wohin|warum|wieso|weshalb|welche[rsnm]?|wie(?= (?:viel|lange?|hoch|groß"
    r"|weit|oft)\b)"
    r"|qui|quand|où|quel(?:le)?s?|pourquoi|combien"
    r"|quién(?:es)?|qué|cuándo|dónde|cuál(?:es)?|cómo|cuánt[oa]s?"
    r"|quem|quando|onde|quais|qual|quant[oaie]s?|dove|perché"
    r"|waar|wanneer|waarom|welke?|hoeveel|кто|что|когда|где|почему|как(?:ой|ая|ое|ие|ом|ую|их|им)|сколько"
    r"|när|vem|vilke[nt]|vilka|hvornår|hvem|hvorfor|hvilken|kto|kiedy|gdzie|dlaczego|jak(?:i|a|ie|im|iej)|ile"
    r"|(?<=in )che|(?<=da )che"
)
_LEAD: Final = (
    r"(?:(?:and|but|so|then|ok|okay|well|please|hi|hello|hey|tell me|exactly|approximately|about|just|also"
    r"|in|on|at|to|for|from|by|with|of|under|over|after|before|since|until|till|through|during|into|within|near"
    r"|around|against|along|until|as of"
    r"|en|de|à|da|di|em|no|na|a|seit|bis|von|aus|för|från|i|w|z|в|во|на|из|от|до|с|к)[\s,:]+)*"
)
_OPEN: Final = re.compile(rf"[\W_]*{_LEAD}(?:{_WORDS})\b(?!['’]?\s*(?:if|about)\b)", re.IGNORECASE)
_CLOSED: Final = re.compile(
    r"(?:[.?!;:,\n]|\band|\bor|\bso)\s+(?:(?:and|or|but|so|if so|then)[\s,]+)*"
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must|isn['’]t"
    r"|aren['’]t"
    r"|wasn['’]t|weren['’]t|don['’]t|doesn['’]t|didn['’]t|hasn['’]t|haven['’]t|won['’]t|can['’]t|couldn['’]t"
    r"|wouldn['’]t|shouldn['’]t|right|true|correct|whether|ist|sind|war|hat|est-ce)\b[^.?!\n]*(?:\?|$)",
    re.IGNORECASE,
)
"""A second question, which asks for yes or no: "When was it built, and is it still open?\""""

_OPEN_ASIAN: Final = re.compile(
    r"谁|誰|什么|什麼|何(?!か)|哪|为什么|為什麼|怎么|怎麼|多少|几|幾|だれ|どこ|いつ|なぜ|どの|どう|누구|무엇|언제|어디|왜|어떻게|몇"
)
"""These may occur anywhere in a question."""


def is_open(question: str) -> bool:
    """Whether a question plainly asks for something other than yes or no."""
    text = question.strip()
    if _OPEN_ASIAN.search(text):
        return not text.rstrip("?？。").endswith(("吗", "嗎"))
    return _OPEN.match(text) is not None and _CLOSED.search(text) is None
