"""Texts beside a verdict that may retract it.

A wrong label that looks right is worse than a missing one, so after a doubtful text the verdict stays unread and the
model is asked once more, for the verdict only. Reasons are about the passage and the question; a text about the reply
itself, another scale or another grade may retract what follows, in any language.
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
"""The placeholder for a span that repeats the prompt."""

_MARKUP: Final = "*_`'‘’" + QUOTES + INVISIBLE
BLANK: Final = " \t\n\r\v\f\x1c\x1d\x1e\x85\u00a0\u2028\u2029\u3000" + INVISIBLE
EDGES: Final = BLANK + _MARKUP

_READS: Final = (
    r"(?:f[io]und|find|see|saw|check(?:ed)?|read|look(?:ed)?|go(?:ing)? through|went through"
    r"|compared?|weigh(?:ed)?|trust|say|search(?:ed)?|noted?|noticed?|count(?:ed)?|expect(?:ed)?|need(?:ed)?|learn(?:ed|t)?"
    r"|gather(?:ed)?|get|got|know|recogni[sz]e|locate|identify|spot(?:ted)?|infer|conclude|deduce|believe|work out)"
)
_I: Final = (
    r"i (?!and\b|in\b|of\b|was born\b|am (?:confident|certain|looking)\b|have no\b"
    rf"|(?:(?:can(?:not|['’]t)?|could(?:n['’]t| not)?|need to|should|must|have to|have|will|would|did(?:n['’]t| not)"
    rf"|do(?:n['’]t| not)|also|only|clearly) )?{_READS}\b)\w+"
    rf"|i['’](?!(?:ll|d|ve) {_READS}\b|m looking\b)\w+"
)
"""The writer, except in what a reader does."""

_OF_ITSELF: Final = re.compile(
    r"\b(?:json|grad(?:e[sdr]?|ers?|ing)|scor(?:e[sdr]?|ing)|rat(?:ed|ings?)|verdict|relevance|scales?|skala|escala"
    r"|scala|likert|percent(?:age|ile)?|thumbs?|assess\w*|(?:numbers?|values?)(?! of| in| for)|ignor\w+|disregard"
    r"|discard|pretend|imagine|hypothe\w+|illustrat\w*|placeholder|dummy|decoy|nonsense|random\w*|arbitrar\w+|template"
    r"|syntax|schema|kidding|jok(?:e|ing)|jk|sarcas\w+|ironic\w*|psych|invert\w*|mistake\w*|typo|careless|lazy|naive"
    r"|retract\w*|withdrawn|supersede\w*|deprecated|todo|cancel\w*|wait|h+m+|scratch|reconsider|reflection"
    r"|second thoughts?|never mind|forget|repl(?:y|ies)|prompt|instruct\w*|inject\w*|quot(?:e[sd]?|ing|ation)|sorry"
    r"|apolog\w+|oops|correct(?:ion|ing)|misread|not (?:be|mean|mine|my|true|right|valid|really)"
    rf"|{_I}|my)\b|[★☆⭐👍👎]|(?<!\S)/s\b"
)
"""Words with which a text is about itself, or about its use."""

_FEW: Final = r"(?:\d\b(?![.,]\d|\s?[^\W\d_]|%|°)|(?:zero|one|two|three)\b(?! of\b| [a-z]))"
_RETRACTED: Final = re.compile(
    r"\b(?:second thoughts?|on (?:\w+ )?reflection|reconsider\w*|scratch (?:that|this)|never mind"
    r"|takes? (?:that|it|this) back|retract(?:ed|ing|s)?|withdrawn|supersede\w*|h+m+|sorry|apolog\w+|oops"
    r"|wait(?=[,.!:;…—–-]|\W*$| no)|kidding|joking|(?:this|that|it)(?: is| was|[’']s) (?:just |only )?a joke|jk"
    r"|(?:that|this|what)(?: is| was|['’]s)? (?:quite |such )?an? (?:\w+ ){0,3}question(?=[ ]*[!.?]|\W*$)"
    r"|sarcas\w+|placeholder|dummy|decoy|arbitrar\w+"
    r"|hypothetical\w*|pretend\w*|disregard|ignore\b|invert(?:s|ed)?|misread|typo|a lie|lying|last words"
    r"|(?:grades?|graders?|verdicts?|scale|likert)(?! of)"
    r"|(?:score|rating)s? (?:should|would|must|ought|could|is wrong|was wrong)"
    r"|(?:numbers?|values?|lines?|fields?|marks?|labels?) (?:that follows?|below|above|underneath|here)"
    r"(?= (?:is|was|are|were|should|belongs)\b|\W*$)"
    r"|(?:numbers?|values?|lines?|fields?|marks?|labels?|scores?) (?:should|ought)"
    r"|(?:next|following|bottom) (?:lines?|fields?|labels?|grades?|scores?)"
    r"|(?:next|following) (?:numbers?|values?) (?:is|was|belongs)"
    r"|(?:should|ought to|must|would) (?:have been|be|get|receive|deserve) (?:an? |the )?"
    rf"(?:(?:higher|lower|yes|no)\b|{_FEW})"
    r"|not (?:my|mine|really true)|(?:for|of|about|to) another passage|(?:wants?|tells?|told|asks?|asked) me"
    rf"|{_I}|my)\b|[★☆⭐👍👎]|(?<!\S)/s\b"
)
"""Words that retract a verdict or are about it, whatever else the sentence says."""

# Passages may well contain these words, so they mean nothing in a plain reason about the passage.
_MAYBE: Final = re.compile(
    r"\b(?:lines?|fields?|labels?|marks?|points?(?! to| out)|judge?(?:ments?|s)?|overall|final(?:ly)?|next|below|above"
    r"|underneath|bottom|low(?:er|est)|worst|follow(?:s|ing)|previous|suppos\w+|examples?|e\.g|i\.e|rolled"
    r"|format|layout"
    r"|irony|fools?|opposite|revers\w+|error|fake|instead|revised|draft|replace|void|strike|highest"
    r"|max(?:imum)?|best|respon[ds]\w*|outputs?"
    r"|not correct)\b"
)

SUPPOSES: Final = re.compile(
    r"\b(?:would|should|could|might|if|unless|never|do not|don['’]t|demand\w*|order(?:s|ed)?|ask(?:s|ed)? (?:me"
    r"|for|to)"
    r"|tells?|told(?= (?:to|that|me|us)\b)|(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bnot )told"
    r"|says? (?:to|that i)|want(?:s|ed)? (?:me|to)"
    r"|i(?! (?:can )?(?:see|find|found|saw) (?:no|nothing)\b)|me|mine|myself|someone|somebody|else|anything|comes?"
    r"|cop(?:y|ied)|paste[sd]?|echo\w*|test|testing|invent(?:s|ed|ing)?|lie|lies|lying|last words"
    r"|(?:is|are|be|was) (?:\w+ )?(?:wrong|incorrect|false|invalid|untrue))\b"
)
"""Words with which the last sentence before a verdict may attribute it to others, or to a hypothetical case."""

_COULD_BE: Final = re.compile(
    r"^(?:\w+: )?(?:could|might|may) (?:well )?be (?:(?:an?|the) (?!yes\b|no\b|grade|score|\d)|right\b|true\b)"
)
"""The beginning of a guess about the passage, without naming it: "Could be a blog"."""

_DANGLING: Final = re.compile(
    r"(?:(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bwere)(?<!\bdoes)(?<!\bdo)(?<!\bdid)(?<!\bhas)(?<!\bhave)\snot"
    r"|[:,;(\[{<>=–—-]|\.\.|\s(?:a|an|the|is|are|was|be|been|as|to|of|for|by|with|from|in|on|at|and|or|but|nor"
    r"|no|that|this|these|g[ai]ves? it|its|so|than|then|your|their|he|she|they|you|one|says?|said|writes?|wrote|puts?"
    r"|has|gives?|gave|gets?|got|merits?|deserves?|earns?|yields?|will|end(?:s|ed)?|begins?|claims?|reads?"
    r"|states?|thinks?"
    r"|answers?|exactly|circumstances|ahead))$"
)
"""The end of a text that continues in the verdict."""

_GOES_ON: Final = re.compile(
    r"(?:[:,;(\[{<>=–—-]|\.\.|\s(?:a|an|the|is|are|as|to|and|or|no|that|this|than|so|gives?|gets?|says?|insists on))$"
)
"""The same for the first sentence of a step, which is often short: "what each is based on"."""

_OF_GRADES: Final = re.compile(
    r"\b(?:points?|marks?|numbers?|values?|low(?:er|est)?|worst|highest|best|max(?:imum)?|percent(?:age)?|rat(?:ed|ings?)"
    r"|scor(?:es?|ed|ing)|final(?:ly)?|quot(?:e[sd]?|ing|ation)|scales?|never)\b"
)
"""Words that may be about a grade, but not about a Yes or No."""

_COUNTS: Final = re.compile(r"\b(?:numbers?|values?)\b")
_NOTHING: Final = re.compile(r"^(?P<step>\w+: )(?:zero|nil|null)\b(?=[:;,.—–]|$)")
_NUMBER: Final = (
    r"zero|nil|null|two|three|four|five|six|seven|eight|nine|ten|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred"
    r"|zwei|drei|vier|fünf|zehn|hundert|deux|trois|quatre|cinq|dix|dos|tres|cuatro|cinco|diez|cien|due|tre"
    r"|quattro|cinque|dieci|cento"
)
_LINKS: Final = (
    r"a|about|all|also|although|an|and|are|as|at|be|because|being|best|but|by|can|does|fits?|for|from|given"
    r"|ha[sd]|have"
    r"|he|here|however|i|in|is|it|its|ma[dk]es?|may(?! \d)|means|might|must|not|of|on|only|or|over|out|seems?|since|so"
    r"|still|than|that|the|then|there|they|this|though|to|until|was|we|were|when|where|which|while|who|will"
    r"|with|would|you"
    r"|von|sur|de|di|su|van|auf|av|из|aus|stars?|points?|marks?|punkten?|per|fives?"
)
"""Words after a number that it does not count."""

_GRADE: Final = re.compile(
    rf"(?<![\da-z.,])(?:\d{{1,3}}+(?!\d|[.,]\d{{3}})(?:[.,]\d+)*+|\b(?:{_NUMBER})\b|\bone\b(?=\W*$|\.))"
    rf"(?!\?|°|[\s–-]?(?!(?:{_LINKS})\b)[^\W\d_])"
)
"""A number that may be a grade: it counts nothing. Grading scales have no numbers with more digits."""

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
_ELSEWHERE: Final = re.compile(rf"\b(?:{_STEMS})|{_REFUSES}")
"""The same in other languages, by the stems of their words: grade, number, example, ignore, below, sorry, I cannot."""
_ELSEWHERE_UNSPACED: Final = re.compile(_UNSPACED)
"""The same in languages without blanks."""


_REASON: Final = re.compile(
    r"\b(?:passage|text|document|article|snippet|paragraph|sentence|question|answer(?:s|ed)?|reader|topic|it|there)\b"
    rf"|{MASK}"
)
"""The subjects of reasons."""


# Words of any passage, which do not show that a sentence is about its topic.
_PLAIN_WORDS: Final = """
    able about above after again against ago also although always among and another any anything are around away
    back because been before behind being below best better between both but call called can cannot case come
    comes could did different does done down each either else end ends enough even ever every fact false few
    find first five for found four from full further gave get gets give given gives good got great had half has
    have having her here high him his how however incorrect instead into its itself just keep kind know known
    large last later least left less like likely line little long look low lower made main make makes many may
    mean means might more most much must never new next not nothing now off often old once one only open
    opposite order other others our out over own part people place point points possible put rather read reads
    real right said same say says see seen set several she short should show shown since small some something
    still such sure take taken tell than that the their them themselves then there therefore these they thing
    things think this those though three through thus time times too top two under until upon use used very want
    wants was way well were what when where whether which while who whole whom whose why will with within
    without word words would wrong year years yes yet you your
"""
_COMMON: Final = frozenset(_PLAIN_WORDS.split())
_WORD: Final = re.compile(r"\w+")
_ENDS: Final = re.compile(r"[.!?。]\s")
_COUNTED: Final = re.compile(
    r"\b(?:\d+|one|two|three|both|all) (?:out )?of (?:the |these |those )?(?:\d+|two|three|four|five)"
    r"(?= (?!stars?|points?|marks?|punkten?)[a-z]{3,}| points (?:are|is|were|was|asked|that))"
)


def contests(
    text: str,
    values: Mapping[str, int],
    value: int,
    graded: bool,
    above: bool = False,
    topic: frozenset[str] = frozenset(),
    is_step: bool = False,
) -> bool:
    """Whether a text in a model's own words may retract the verdict beside it, or mean another scale or grade.

    ``topic`` holds the words of the question and the passages, which are not about the reply: "a rate of 3 percent" is
    no grade if the question asks for the rate. The first sentence of a text that ``is_step`` is about the passage.
    """
    folded = " ".join(text.replace("_", " ").casefold().split())
    if " " not in folded:
        topic = frozenset()  # "Yes, wait."
    sentences = _ENDS.split(folded)
    stated = values.get(folded.removesuffix("."))
    if stated is not None:
        return stated != value
    dangling = _GOES_ON if is_step and len(sentences) == 1 else _DANGLING
    if above and dangling.search(sentences[-1].rstrip(EDGES)):
        return True
    unclear = [sentence for sentence in sentences if not _is_reason(sentence, topic)]
    if any(holds(_RETRACTED, sentence, topic) for sentence in sentences):
        return True
    for sentence in unclear:
        if is_step and sentence is sentences[0]:
            sentence = _COUNTS.sub("", _MAYBE.sub("", sentence))
        if not graded:
            sentence = _OF_GRADES.sub("", sentence)
        if _OF_ITSELF.search(sentence) or _ELSEWHERE.search(sentence):
            return True
        if not sentence.isascii() and _ELSEWHERE_UNSPACED.search(sentence):
            return True
        if _MAYBE.search(sentence):
            return True
    if above and unclear[-1:] == sentences[-1:] and SUPPOSES.search(_COULD_BE.sub("", sentences[-1])):
        return True
    if is_step:
        folded = _NOTHING.sub(r"\g<step>", folded)
    if not graded:
        return False
    # "…, so 3 out of 3" repeats the verdict.
    again = rf"\b(?:so|thus|hence|therefore)(?: an?)? {value}(?: out of |/){max(values.values())}\b"
    return holds(_GRADE, _COUNTED.sub("some", re.sub(again, "so", folded)), topic)


def holds(words: re.Pattern[str], text: str, topic: frozenset[str]) -> bool:
    """Whether a case-folded text holds any word outside of the topic."""
    return any(not (topic and topic.issuperset(_WORD.findall(match[0]))) for match in words.finditer(text))


def _is_reason(sentence: str, topic: frozenset[str]) -> bool:
    """Whether a sentence is plainly about the passage, the question or their topic."""
    return _REASON.search(sentence) is not None or _names_topic(sentence, topic)


def _names_topic(text: str, topic: frozenset[str]) -> bool:
    return any(len(word) > 2 and word not in _COMMON for word in topic.intersection(_WORD.findall(text)))


# Further signs for the second reading, whose texts have no requested form.

_TURNS: Final = re.compile(
    r"(?:^|[.!?;:,–—…\n] ?)(?:but |and |oh |well |or |so )*(?:actually|no(?= wait|\W*$|[,.:;!?—–])|wait"
    r"|rather(?=,)|edit|looking again|on (?:second|closer|further|another)|upon|in fact|then again|after all"
    r"|correction)\b(?! more| less| other)"
    r"|^(?:\w+ly )?not\W*$|\b(?:closer (?:look|reading|inspection)|come to think|thinking about|mind you"
    r"|trick\w*|i was|mistaken"
    r"|other way round|(?:take|took) (?:that|it) back|let me (?!check|see|look|think|explain|go|analy)"
    r"|or rather|(?:first|initial) (?:answer|thought|impression)"
    r"|at first(?: sight| glance)?,|too (?:high|low)\b|more or less|at (?:most|best|least)(?= (?:\d|yes|no)\b|\W*$))\b"
)
_TURNS_ALONE: Final = re.compile(
    r"\b(?:that said|contrary|p\.s|would be|rounded|raised|lowered|reduced|deduct\w*|(?:up|down)graded|wrong|incorrect"
    r"|false|overlook\w*|reverse|again|should|at first|initial\w*|changed?|though|me to|plus|minus|at (?:most"
    r"|best|least))\b"
)
"""Words that reverse a verdict in a sentence that is not about the passage."""

HEDGES: Final = re.compile(
    r"\b(?:probably|perhaps|maybe|possibly|likely|not sure|unsure|uncertain|unclear|depend\w*|might|may be|somewhat"
    r"|partly|partially|technically|arguably|in a sense|either|lean\w*|almost|hardly|barely|kind of|sort of|assum\w+"
    r"|unless|if|otherwise|doubts|reservations?|complicated|not quite|after all"
    r"|to (?:some|a) (?:degree|extent)|generous\w*|hard to|torn|some would|lenient|strict(?:ly)?)\b"
)
_ASKS: Final = re.compile(rf"(?<!{MASK})(?<!{MASK}['\"”»])\?")
_SENTENCES: Final = re.compile(r"(?<=[.!?;。\n])\s*")
UNSURE: Final = re.compile(r"\b(?:low|unsure|uncertain|none|no|not)\b")
"""Phrases of low confidence."""
REPORTS: Final = re.compile(
    r"(?:^|[.!?\n] ?)(?:(?:is|was|says?|said|as|in part|he|they"
    r"|not(?! (?:enough|sufficient) (?:information|details?)\b| in the (?:\w+ )?(?:passage|text)\b))\b"
    r"|(?:not|never):"
    r"|[^.:!?\n]{0,80}\b(?:say|(?<!what is )said|write|wrote|writes|repli(?:ed|es)|repeat|tempting|nobody"
    r"|others?|option|maximum|example"
    r"|title|confidence|number of)\b[^.:!?\n]{0,80}:)"
)
"""The beginning of a line that continues the verdict, or attributes it to somebody else."""

UNRELATED: Final = re.compile(r"\b(?:nothing to do with|unrelated|irrelevant|off[- ]topic)\b")
"""Phrases that no reason for a grade above the lowest contains."""

_ENGLISH: Final = re.compile(
    rf"\b(?:the|this|it|its|that|there|both|does|which|is|are|was|of|and|with|not|for)\b"
    rf"|^(?:\w+: )?[^\w{MASK}]*(?:{MASK}[^\w{MASK}]*)+$"
)
_ABROAD: Final = re.compile(
    r"[^\x00-\x7f]{2}|\b(?:die|der|das|und|ist|nicht|le|la|les|et|est|il|lo|el|los|que|del|della|di|da|do|os|as"
    r"|não|een|het"
    r"|niet|är|för|och|inte|og|ikke|nie|jest|ve|bir|yang|tidak)\b"
)
_DENIAL_ABROAD: Final = re.compile(
    r"\b(?:nicht|kein\w*|keine\w*|ohne|non|no|ne|pas|aucun\w*|sans|ningun\w*|ningún|sin|não|nenhum\w*|sem|nessun\w*"
    r"|senza|niet|geen|zonder|inte|ingen|inget|utan|ikke|ingen|uten|nie|bez|ei|eivät|nem|nincs|не|fehl(?:t|en)|ontbreekt|saknas|manque(?:nt)?|falta[nm]?|manca(?:no)?|нет|без|ні|немає|δεν"
    r"|değil|yok|tidak|không|לא|אין|لا|لم|ليس|ليست|لن|دون|नहीं)\b|\w(?:mıyor|miyor|muyor|müyor|maz|mez|mamış|memiş)\b"
    r"|ない|ません|なし|没|沒|不|未|無|无|非|없|않|아니|못|ไม่"
)


def is_reason(own: str, topic: frozenset[str] = frozenset()) -> bool:
    """Whether a text in a model's own words is plainly a reason in English: a sentence about the topic or passage."""
    if _ENGLISH.search(own):
        return True
    return _names_topic(own, topic)


def is_foreign(own: str) -> bool:
    """Whether a text in a model's own words is in another language than English."""
    return not _ENGLISH.search(own) and _ABROAD.search(own) is not None


def denies_abroad(own: str) -> bool:
    """Whether a text in another language denies something."""
    return _DENIAL_ABROAD.search(own) is not None


def takes_back(own: str, topic: frozenset[str], tied: str) -> bool:
    """Whether a reason reverses the verdict; ``tied`` holds the rest of the verdict's sentence."""
    if holds(_TURNS, own, topic):
        return True
    return holds(_TURNS_ALONE, tied, topic) or any(_TURNS_ALONE.search(one) for one in _unclear(own, topic))


def hedges(own: str, topic: frozenset[str], tied: str) -> bool:
    """Whether a reason doubts the verdict by a question, in ``tied`` words or in a sentence of its own."""
    if _ASKS.search(own) or holds(HEDGES, tied, topic):
        return True
    return any(HEDGES.search(sentence) for sentence in _unclear(own, topic))


def _unclear(own: str, topic: frozenset[str]) -> list[str]:
    """Return the sentences that are not about the passage, the question or their topic."""
    return [sentence for sentence in _SENTENCES.split(own) if not _is_reason(sentence, topic)]
