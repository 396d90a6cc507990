"""The words that the offline stand-in knows: stop words, everyday synonyms, units, what a question asks for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = [
    "HEADS",
    "MEASURES",
    "MONTHS",
    "NUMBER_WORDS",
    "PAYING",
    "PLACE_WORDS",
    "QUESTION_WORDS",
    "RELATIONS",
    "STOPWORDS",
    "UNITS",
    "VERBS",
    "WEEKDAYS",
    "words",
]


def words(text: str) -> frozenset[str]:
    """Return the words of a white-space separated list."""
    return frozenset(text.split())


STOPWORDS: Final = words("""
    a about above across after again against all along already also although always am among an and another any anybody
    anyone are around as at be became because become been before behind being below beneath beside besides between
    beyond both but by can cannot could despite did do does doing done down during each either else even ever every
    everybody everyone everything except few for from further get gets got had has have having he hence her here hers
    him his how however i if in inside instead into is it its itself just least less like made make makes many may me
    might more most mostly much must my near nearly neither never no nobody none nor not nothing now of off often on
    once one only onto or other others otherwise our out outside over own per perhaps quite rather round same shall she
    should since so some somebody something soon still such than that the their theirs them themselves then there
    therefore these they this those though through throughout thus till to today together too toward towards under
    unless unlike until up upon us very was we well were what when where whereas whether which while who whoever whom
    whose why will with within without would yet you your
    """)
"""Words that carry no evidence of their own."""

RELATIONS: Final = (
    "founded founder foundation establish create creation start begin began begun launch",
    "open opening opened inaugurate",
    "build built construct erect builder factory plant",
    "design designer architect draw drew drawn plan planned",
    "write wrote written author writer pen",
    "invent invention inventor devise develop developer",
    "discover discovery discoverer find found notice",
    "compose composer composition",
    "paint painter painting",
    "win won winner winning victory beat defeat defeated lose lost",
    "prize award medal",
    "die died death dead drown drowned life lives",
    "born birth birthplace",
    "lead led leader head chair manage management manager command captain",
    "replace replacement succeed successor supersede",
    "name named call called known nickname title",
    "large largest big biggest greatest great main",
    "high highest tall tallest height rise",
    "long longest length",
    "deep deepest depth",
    "wide width broad diameter",
    "heavy weigh weight",
    "cost price pay paid fee charge toll expensive spend spent",
    "money allowance budget sum",
    "teach taught teacher",
    "sell sold sale turnover",
    "buy bought purchase",
    "hold held holds host hosted",
    "close closed closing shut",
    "end ended finish finished complete completed",
    "locate located lie lies lay stand stands stood situated base based",
    "run ran runs operate operated",
    "grow grew grown cultivate grower",
    "maker manufacture produce producer production",
    "need require required requirement",
    "allow allowed permit permitted entitle entitled",
    "speed fast fastest quick",
    "year annual yearly",
    "day daily",
    "people inhabitant population resident",
    "holiday leave vacation",
    "staff employee worker workforce",
    "trip journey travel crossing",
    "job profession occupation trade",
    "doctor physician",
    "ship vessel boat steamer",
    "film movie",
    "car vehicle automobile motorist driver",
    "picture photograph image",
    "publish publisher published publication print",
    "colour color coloured",
    "hot hottest heat warm",
    "eat feed food meal",
    "orbit round",
    "new newest latest",
    "old oldest age aged",
    "sink sank sunk",
    "town city",
    "guarantee guaranteed warranty",
    "store stored keep kept",
    "delete deleted deletion",
    "restore recover recoverable",
)
"""Groups of words that say much the same; each group is one word class. A word belongs to its first group."""

VERBS: Final = words("""
    add added adds agree agreed allow allows appear appeared appears arrive arrived asked ate bear bears become
    becomes began begins believe belong break breaks bring broke brought build builds built buy buys calls came
    carried carries carry caused changed changes choose chose closed closes come comes compare consist consists
    consume counted covered covers create created crossed crosses depend depends die died dies discover discovered
    drew drives drove eat eats employ employs ended ends enter entered enters exist exists expect expects explain
    explains falls feel fell felt finish finished flew flow flows follow followed follows formed found gain gained
    gave give given gives go goes gone grew grow hang hangs happen happened happens hear heard hears held hold holds
    hung include included includes increase introduce introduced invent invented join joins keep keeps kept know
    known knows laid landed lasts launch lay lead leads learnt leave leaves lend let lets lie lies lift lifts live
    lived lives looks lose loses lost lower lowers marks means meant measures met move moves needed needs noticed
    offer offered offers opened opens ordered orders owned owns paid pass passed passes pay pays played plays prefer
    produce produced produces publish published pull pulled pulls push put puts ran reach reached reaches read
    receive received receives recorded refuse refused remain remained remains replace replaced reported require
    required requires rests rise rises run runs said sail sails sank sat save saved say says seen sell sells send
    sends sent serve served serves sets shares shine show shown shows shut sing sings sit sits sleep sold speak
    spend spoke spread stand stands started starts stayed stays sting stood stopped stops stretch strike strikes
    struck supplied supplies supply supposed swim swims take taken takes teach tells thank think thought told took
    travelled travels treat treated try turn turned turns used uses visited wait want wanted wants watches weigh
    weighs went win wins won worked works write writes wrote
    """)
"""Common verb forms, which end a noun phrase."""

NUMBER_WORDS: Final = words("""
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half twice
    thrice
    """)

MONTHS: Final = words("january february march april may june july august september october november december")
WEEKDAYS: Final = words("""
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays
    """)

_DIMENSIONS: Final = {
    "length": "kilometres kilometers kilometre kilometer km metres meters metre meter m centimetres centimeters"
    " centimetre cm millimetres millimeters mm miles mile feet foot inches inch",
    "area": "hectares acres square",
    "mass": "tonnes tonne tons ton kilograms kilogram kg grams gram pounds pound",
    "volume": "litres liters litre liter ml millilitres cubic",
    "time": "hours hour minutes minute seconds second days day weeks week months month years year decades centuries",
    "money": "euros euro dollars dollar cents cent crowns guilders",
    "heat": "degrees degree celsius fahrenheit",
    "power": "watts kilowatts megawatts volts hertz bars bar",
    "data": "gigabytes megabytes gb mb kb bits bytes",
    "share": "% percent",
    "count": "people members floors storeys inhabitants spectators messages",
}
UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {u: dim for dim, units in _DIMENSIONS.items() for u in units.split()}
)
"""What a unit measures: ``metres`` is ``length``."""

MEASURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(
            words("tall far deep high wide large big thick height length depth width distance diameter"), "length"
        ),
        **dict.fromkeys(words("heavy weight mass"), "mass"),
        **dict.fromkeys(
            words("old quickly often soon late age duration guarantee period notice leave holiday"), "time"
        ),
        **dict.fromkeys(words("expensive money price cost fee allowance budget turnover toll wage spend"), "money"),
        **dict.fromkeys(words("hot cold temperature point"), "heat"),
        **dict.fromkeys(words("percentage percent share proportion part"), "share"),
        **dict.fromkeys(words("water milk"), "volume"),
        **dict.fromkeys(words("size"), "data"),
        "long": "length time",
        "speed": "length",
        "pressure": "power",
        **dict.fromkeys(words("much fast amount"), ""),
    }
)
"""What a question wants to have measured: ``How tall`` a ``length``, ``How long`` that or a ``time``, "" anything."""

HEADS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(words("year decade century"), "year"),
        **dict.fromkeys(words("date day month season"), "date"),
        **dict.fromkeys(words("weekday"), "weekday"),
        **dict.fromkeys(words("number population capacity"), "number"),
        **dict.fromkeys(words("port version code"), "code"),
        **dict.fromkeys(
            words("""
            person man woman king queen emperor president minister mayor author writer poet novelist composer singer
            musician band artist painter sculptor architect engineer scientist physicist chemist astronomer inventor
            explorer director actor chef captain founder player driver rider colleague manager editor keeper clockmaker
            """),
            "person",
        ),
        **dict.fromkeys(
            words("""
            city town village country nation state county island river lake mountain sea ocean street square harbour
            continent region language planet moon team club company university museum newspaper ship book novel volcano
            prize award licence computer publisher name nickname title
            """),
            "name",
        ),
    }
)
"""The answer type of ``What NOUN`` and ``Which NOUN``."""

PAYING: Final = words("pay pays paid cost costs spend charge charged earn earned")
"""Verbs that ask for a sum of money."""

QUESTION_WORDS: Final = words("who whom whose when where what which why how many much")
PLACE_WORDS: Final = words("in at on near from to outside into off beside under behind")
