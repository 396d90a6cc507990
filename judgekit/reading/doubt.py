"""What stands beside a verdict and may take it back.

A wrong label that looks right is worse than a missing one, so a doubtful text leaves the verdict unread and the model
is asked once more, for the verdict alone. Reasons speak of the passage and the question; a text that speaks of the
reply itself, of another scale or of another grade may disown what follows, in whatever language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u2060"
    "\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
QUOTES: Final = '"“”„«»「」'
STOPS: Final = (".", "!", "。")
MASK: Final = "▒"
"""What stands for a span that repeats what the model was shown."""

_MARKUP: Final = "*_`'‘’" + QUOTES + INVISIBLE
BLANK: Final = " \t\n\r\v\f\x1c\x1d\x1e\x85\u00a0\u2028\u2029\u3000" + INVISIBLE
EDGES: Final = BLANK + _MARKUP

_OF_ITSELF: Final = re.compile(
    r"\b(?:json|grad(?:e[sdr]?|ers?|ing)|scor(?:e[sdr]?|ing)|rat(?:ed|ings?)|verdict|relevance|scales?|skala|escala"
    r"|scala|likert|percent(?:age|ile)?|thumbs?|assess\w*|(?:numbers?|values?)(?! of| in| for)|ignor\w+|disregard"
    r"|discard|pretend|imagine|hypothe\w+|illustrat\w*|placeholder|dummy|decoy|nonsense|random\w*|arbitrar\w+|template"
    r"|syntax|schema|kidding|jok(?:e|ing)|jk|sarcas\w+|ironic\w*|psych|invert\w*|mistake\w*|typo|careless|lazy|naive"
    r"|retract\w*|withdrawn|supersede\w*|deprecated|todo|cancel\w*|wait|h+m+|scratch|reconsider|reflection"
    r"|second thoughts?|never mind|forget|repl(?:y|ies)|prompt|instruct\w*|inject\w*|quot(?:e[sd]?|ing|ation)|sorry"
    r"|apolog\w+|oops|correct(?:ion|ing)|misread|not (?:be|mean|mine|my|true|right|valid|really)"
    r"|i (?!and\b|in\b|of\b|was born\b)\w+|i['’]\w+|my)\b|[★☆⭐👍👎]|/s\b"
)
"""Words by which a text speaks of itself, or of what is made of it."""

# The content of a passage may well have these words, so in a plain reason about it they mean nothing.
_MAYBE: Final = re.compile(
    r"\b(?:lines?|fields?|labels?|marks?|points?(?! to| out)|judge?(?:ments?|s)?|overall|final(?:ly)?|next|below|above"
    r"|underneath|bottom|low(?:er|est)|worst|follow(?:s|ing)|previous|suppos\w+|examples?|e\.g|i\.e|rolled|format|layout"
    r"|irony|fools?|opposite|revers\w+|error|fake|instead|revised|draft|replace|void|strike|highest|max(?:imum)?|best|respon[ds]\w*|outputs?"
    r"|not correct)\b"
)

_SUPPOSES: Final = re.compile(
    r"\b(?:would|should|could|might|if|unless|never|do not|don['’]t|demand\w*|order(?:s|ed)?|ask(?:s|ed)? (?:me|for|to)"
    r"|tells?|told|says? (?:to|that i)|want(?:s|ed)? (?:me|to)|i|me|mine|myself|someone|somebody|else|anything|comes?"
    r"|cop(?:y|ied)|paste[sd]?|echo\w*|test|testing|invent\w*|lie|lies|lying|last words"
    r"|(?:is|are|be|was) (?:\w+ )?(?:wrong|incorrect|false|invalid|untrue))\b"
)
"""Words by which the last sentence before a verdict may make it somebody else's, or a case that is not."""

_DANGLING: Final = re.compile(
    r"(?:[:,;(\[{<>=–—-]|\.\.|\s(?:a|an|the|is|are|was|be|been|as|to|of|for|by|with|from|in|on|at|and|or|but|nor|not"
    r"|no|that|this|these|g[ai]ves? it|its|so|than|then|your|their|he|she|they|you|one|says?|said|writes?|wrote|puts?"
    r"|has|gives?|gave|gets?|got|merits?|deserves?|earns?|yields?|will|end(?:s|ed)?|begins?|claims?|reads?|states?|thinks?"
    r"|answers?|exactly|circumstances|ahead))$"
)
"""How a text ends that goes on in the verdict."""

_NUMBER: Final = (
    r"zero|nil|null|two|three|four|five|six|seven|eight|nine|ten|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred"
    r"|zwei|drei|vier|fünf|zehn|hundert|deux|trois|quatre|cinq|dix|dos|tres|cuatro|cinco|diez|cien|due|tre|quattro|cinque|dieci|cento"
)
_LINKS: Final = (
    r"a|about|all|also|although|an|and|are|as|at|be|because|being|best|but|by|can|does|fits?|for|from|given|ha[sd]|have"
    r"|he|here|however|i|in|is|it|its|ma[dk]es?|may(?! \d)|means|might|must|not|of|on|only|or|over|out|seems?|since|so"
    r"|still|than|that|the|then|there|they|this|though|to|until|was|we|were|when|where|which|while|who|will|with|would|you"
    r"|von|sur|de|di|su|van|auf|av|из|aus|stars?|points?|marks?|punkten?|per|fives?"
)
"""Words behind a number that are not what it counts."""

_GRADE: Final = re.compile(
    rf"(?<![\da-z.,])(?:\d{{1,3}}+(?!\d|[.,]\d{{3}})(?:[.,]\d+)*+|\b(?:{_NUMBER})\b|\bone\b(?=\W*$|\.))"
    rf"(?!\?|[\s–-]?(?!(?:{_LINKS})\b)[^\W\d_])"
)
"""A number that may be a grade: it counts nothing. No scale that people grade by has numbers of more digits."""

_STEMS: Final = (
    r"beispiel|bewert|beurteil|wertung|note\b|zahl\b|ziffer|skala|ignorier|unten|nächste|folgend|falsch"
    r"|ungültig|leider|entschuldig|scherz|witz|ironi|zeile|feld\b|platzhalter|muster\b|vorlage|zufällig"
    r"|gewürfelt|absicht|gegenteil|erfunden|voorbeeld|cijfer|beoorde|getal|negeer|onder|volgende|helaas"
    r"|grap\b|regel|exempel|eksempel|betyg|karakter|poäng|siffr|ignorer|nedan|nedenfor|följande|følgende"
    r"|tyvärr|beklag|skämt|vurder|bedöm|ejemplo|puntua|puntaj|califica|evalua|nota\b|cifra|escala\b|abajo"
    r"|siguiente|falso\b|falsa\b|lament|sient|inválid|broma|línea|plantilla|azar|contrario|inventad"
    r"|exemplo|pontua|avalia|abaixo|seguinte|desculp|lamento|brincadeira|linha|modelo\b|acaso|exemple"
    r"|évalu|noter|échelle|chiffre|ci-dessous|suivant|faux|fausse|désolé|regrett|blague|ligne\b|champ\b"
    r"|gabarit|hasard|contraire|esempio|punteggi|voto\b|voti\b|valuta|scala\b|sotto|seguente|spiac|riga\b"
    r"|campos?\b|caso\b|exempl|punctaj|evalu|ignora|ignoré|ignore|următo|przykład|ocen|liczb|poniż|następn"
    r"|przykro|żart|příklad|hodnocen|známk|čísl|níže|následuj|omlouv|vtip|príklad|példa|pontsz|értékel"
    r"|alább|következő|sajnál|vicc|esimerkki|arvosan|pistee|arvio|alla\b|seuraava|pahoittel|vitsi|örnek"
    r"|puan\b|sayı|aşağı|özür|şaka|değerlendir|contoh|skor\b|nilai|angka|abaikan|bawah|berikut|maaf"
    r"|bercanda|điểm|đánh|phỏng|παράδειγμ|βαθμ|αριθμ|αγνο|παρακάτω|συγγνώμ|λυπ|αστεί|κλίμακ|пример|оцен"
    r"|балл|шкал|числ|цифр|игнор|ниже|следующ|извин|сожал|шут|ирони|строк|поле|шаблон|ошиб|неверн|наобум"
    r"|случайн|наоборот|приклад|оцін|ігнор|нижче|наступн|вибач|жарт|оценк|съжал|مثال|تقييم|التقييم|درجة"
    r"|الدرجة|الرقم|رقم|تجاهل|أدناه|التالي|آسف|أعتذر|عذر|مزح|نتيجة|النتيجة|نمونه|امتیاز|نمره|عدد|نادیده"
    r"|متأسف|متاسف|דוגמה|ציון|הציון|המספר|התעלם|להלן|מצטער|בדיחה|उदाहरण|अंक|स्कोर|संख्या|अनदेखा|नीचे|माफ़"
    r"|माफ|क्षमा|मज़ाक|मूल्यांकन"
)
_UNSPACED: Final = (
    r"例子|示例|例示|样例|範例|举例|一例|例です|例に|见本|サンプル|仮の|评分|評分|分数|得分|打分|评价|評価"
    r"|評點|评估|評估|点数|スコア|採点|スケール|尺度|满分|滿分|満点|分制|段階|点中|\d\s*[分点]|数字|數字"
    r"|忽略|無視|忽視|下面|以下|下一|下の|次の|抱歉|对不起|對不起|申し訳|すみません|无法|無法|不能评|不便"
    r"|できません|できない|できかね|开玩笑|玩笑|冗談|随便|隨便|随机|隨機|適当|でたらめ|我的|私の|相反|逆の"
    r"|错误|錯誤|間違|格式|形式|예시|예제|점|채점|숫자|무시|아래|다음|죄송|미안|수 없|농담|평가|반대|거짓"
    r"|ตัวอย่าง|คะแนน|ตัวเลข|ด้านล่าง|ขอโทษ|ไม่สามารถ|ล้อเล่น"
)
_REFUSES: Final = (
    r"\b(?:kann|darf|will|möchte|werde)\b.*\bnicht\b|\bweiger|\bkan\b.*\bniet\b|\bkan (?:inte|ikke)\b"
    r"|\bno (?:puedo|debo|quiero)\b|\bnão (?:posso|devo|vou)\b|\bne (?:peux|dois|veux|puis)\b"
    r"|\bnon (?:posso|devo|voglio)\b|\bnie mog|\bnemohu\b|\bnem tud|\ben voi\b|\btidak (?:bisa|dapat)\b"
    r"|\bkhông thể\b|\bví dụ\b|\bδεν μπορ|\bне (?:могу|можу|буду)\b|\bнет моей\b|\bне моя\b"
    r"|لا (?:أستطيع|يمكنني|يمكن)|لن |نمی\u200c?توانم|לא יכול|नहीं (?:कर )?सकत"
)
_ELSEWHERE: Final = re.compile(rf"\b(?:{_STEMS})|{_UNSPACED}|{_REFUSES}")
"""The same in other languages, by the stems of their words: grade, number, example, ignore, below, sorry, I cannot."""


_REASON: Final = re.compile(
    r"\b(?:passage|text|document|article|snippet|paragraph|sentence|question|answer(?:s|ed)?|reader|topic|it|there)\b"
    rf"|{MASK}"
)
"""What reasons speak of."""


def contests(text: str, values: Mapping[str, int], value: int, graded: bool, above: bool = False) -> bool:
    """Whether a text in a model's own words may take back the verdict beside it, or speak of another scale or grade."""
    folded = " ".join(text.replace("_", " ").casefold().split())
    sentences = re.split(r"[.!?。]\s", folded)
    stated = values.get(folded.removesuffix("."))
    if stated is not None:
        return stated != value
    if _OF_ITSELF.search(folded) or _ELSEWHERE.search(folded):
        return True
    if above and _DANGLING.search(sentences[-1].rstrip(EDGES)):
        return True
    unclear = [sentence for sentence in sentences if not _REASON.search(sentence)]
    if any(_MAYBE.search(sentence) for sentence in unclear):
        return True
    if above and unclear[-1:] == sentences[-1:] and _SUPPOSES.search(sentences[-1]):
        return True
    return graded and _GRADE.search(folded) is not None


# What the second reading looks for besides, since it reads what nobody asked for.

RETRACTS: Final = re.compile(
    r"(?:^|[.!?;:,–—…] ?)(?:but |and |oh |well |or |so )*(?:actually|no(?= wait|\W*$|[,.:;!?—–])|wait|rather|edit"
    r"|looking again|on (?:second|closer|further|another)|upon|in fact|then again|after all)\b(?! more| less| other)"
    r"|\b(?:closer (?:look|reading|inspection)|come to think|thinking about|that said|mind you|contrary|p\.s|trick\w*"
    r"|would be|rounded|raised|lowered|reduced|deduct\w*|(?:up|down)graded|wrong|mistaken|incorrect|false|overlook\w*"
    r"|other way|reverse|take (?:that|it) back|let me|again|or rather|should|at first|initial\w*"
    r"|first (?:answer|thought|impression)|changed?|though|me to|too (?:high|low)|plus|minus"
    r"|at (?:most|best|least)|more or less)\b"
)
HEDGES: Final = re.compile(
    r"\b(?:probably|perhaps|maybe|possibly|likely|not sure|unsure|uncertain|unclear|depend\w*|might|may be|somewhat"
    r"|partly|partially|technically|arguably|in a sense|either|lean\w*|almost|hardly|barely|kind of|sort of|assum\w+"
    r"|unless|if|otherwise|doubts|reservations?|complicated|not quite|after all"
    r"|to (?:some|a) (?:degree|extent)|generous\w*|hard to|torn|some would|lenient|strict(?:ly)?)\b|\?"
)
REPORTS: Final = re.compile(
    r"(?:^|[.!?\n] ?)(?:(?:is|was|says?|said|as|in part|he|they|not)\b|(?:not|never):"
    r"|[^.:!?\n]{0,80}\b(?:say|said|write|wrote|writes|repli(?:ed|es)|repeat|tempting|nobody|others?|option|maximum|example"
    r"|title|confidence|number of)\b[^.:!?\n]{0,80}:)"
)
"""How a line begins that goes on from the verdict, or gives it to somebody else."""

DENIES: Final = re.compile(
    r"\b(?:not(?! only)|\w+n['’]t|no(?! doubt)|nothing(?! else)|never|none|neither|nor|without|lack\w*|miss(?:es|ing)"
    r"|fail\w*|unrelated|irrelevant|off[- ]topic|different\w*|cannot|absent|silent|omit\w*|unanswered|insufficient"
    r"|instead|wrong|mismatch\w*|elsewhere|another|question (?:is|was) about|(?<!not )only|merely|left open|useless"
    r"|unhelpful|too|something else|all that (?:it|the passage))\b"
)
"""What a reason for the highest verdict does not say."""

UNRELATED: Final = re.compile(r"\b(?:nothing to do with|unrelated|irrelevant|off[- ]topic)\b")
"""What a reason for a grade above the lowest does not say."""

_LIMITS: Final = re.compile(
    rf"{DENIES.pattern}|\b(?:no|nothing|tangential\w*|but|however|whereas|yet|other|else|hardly)\b"
)
_AFFIRMS: Final = re.compile(
    r"\b(?:relevant|useful|helpful|answers?|answered|sufficient|enough|clear(?:ly)?|direct(?:ly)?|explicit(?:ly)?"
    r"|what is asked|what the question asks|asked for|names?|gives?|provides?|includes?|contains?|found|no doubt"
    r"|not only|nothing else|yes|full|complete|(?:is|are) (?:stated|given|named|there))\b"
)
_STATES: Final = re.compile(
    r"\b(?:states?|says?|names?|mentions?|gives?|provides?|contains?|includes?|tells?|describes?|explains?|notes?|reads?"
    r"|identif\w+|confirms?|shows?|lists?|specif\w+|addresses|supports?|covers?|answers?|answered|relevant|useful|helpful"
    r"|found|work(?:ed)? out|discuss\w*|refers?|stated|mentioned|follows|sufficient|noting|stating|naming|according)\b"
)
"""What a passage does that answers a question."""

_PROVES: Final = re.compile(rf"\b(?:the|this|it|its|that|there|both|does|which)\b|^(?:\w+: )?(?:{MASK}[^\w{MASK}]*)+$")


def is_reason(own: str) -> bool:
    """Whether a text in a model's own words is plainly a reason in English, the language of the lists above."""
    return _PROVES.search(own) is not None


def supports(said: str, own: str) -> bool:
    """Whether a reason speaks for "yes" and denies nothing: as it was said, and in the model's ``own`` words."""
    return DENIES.search(said) is None and (_STATES.search(said) or _STATES.search(own)) is not None


def rejects(said: str, own: str) -> bool:
    """Whether a reason speaks for "no", and no sentence of it for the contrary."""
    return _LIMITS.search(own) is not None and not affirms(said)


def affirms(said: str) -> bool:
    """Whether a sentence says that a question is answered."""
    return any(_AFFIRMS.search(part) and not DENIES.search(part) for part in re.split(r"[.!?:;]\s|\n", said))
