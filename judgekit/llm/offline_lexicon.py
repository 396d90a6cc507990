"""The words that the offline stand-in knows: stop words, everyday synonyms, units, what a question asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "HEADS",
    "MEASURED",
    "MONTHS",
    "NUMBER_WORDS",
    "PLACE_WORDS",
    "QUESTION_WORDS",
    "RELATIONS",
    "STOPWORDS",
    "UNITS",
    "words",
]


def words(text: str) -> frozenset[str]:
    """Return the words of a white-space separated list."""
    return frozenset(text.split())


STOPWORDS: Final = words("""
    a about above after again against all also although am an and another any are as at be became because become been
    before being below between both but by can could did do does doing done down during each either else ever every few
    for from further get gets got had has have having he her here hers him his how however i if in into is it its
    itself just like made make makes many may me might more most much must my near no nor not now of off on once one
    only onto or other others our out over own per rather same shall she should since so some still such than that the
    their theirs them themselves then there these they this those through thus to together too toward towards under
    until up upon us very was we well were what when where whether which while who whom whose why will with within
    without would yet you your
    """)
"""Words that carry no evidence of their own."""

RELATIONS: Final = (
    "found founder foundation establish create creation start begin began begun launch",
    "open opening inaugurate",
    "build built construct erect builder",
    "design designer architect draw drew drawn",
    "write wrote written author writer pen",
    "invent invention inventor devise develop developer",
    "discover discovery discoverer find spot",
    "compose composer composition",
    "paint painter painting",
    "win won winner winning victory beat",
    "die died death dead",
    "born birth birthplace",
    "lead led leader head chair",
    "replace replacement succeed successor supersede",
    "name named call called known nickname",
    "large largest big biggest greatest great",
    "high highest tall tallest height",
    "long longest length",
    "deep deepest depth",
    "wide width broad",
    "heavy weigh weight weighs",
    "cost price pay paid fee charge",
    "teach taught teacher",
    "sell sold sale",
    "buy bought purchase",
    "hold held holds host hosted",
    "close closed closing shut",
    "end ended finish finished last lasted",
    "locate located lie lies lay stand stands stood situated",
    "old oldest age aged",
    "run ran runs operate operated",
    "grow grew grown cultivate",
    "make maker manufacture produce producer production",
    "need require requires required must",
    "allow allowed permit permitted",
    "allowance entitle entitled",
    "speed fast fastest",
    "hour hours hourly",
    "year annual annually yearly",
    "day daily days",
    "colour color coloured",
    "song single track",
    "doctor physician",
    "ship vessel boat",
    "film movie",
    "car vehicle automobile",
    "employee staff worker",
)

NUMBER_WORDS: Final = words("""
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen half twice
    thrice
    """)

MONTHS: Final = words("january february march april may june july august september october november december")
UNITS: Final = words("""
    % percent kilometres kilometers kilometre kilometer km metres meters metre meter m centimetres centimeters
    centimetre cm millimetres millimeters mm miles mile feet foot inches inch hectares acres tonnes tonne tons ton
    kilograms kilogram kg grams gram pounds pound litres liters litre liter ml millilitres hours hour minutes minute
    seconds second days day weeks week months month years year centuries euros euro dollars dollar cents crowns degrees
    degree watts kilowatts megawatts volts knots gigabytes megabytes gb mb bits bytes hertz beats floors storeys people
    members square cubic working per times
    """)

HEADS: Final[Mapping[str, str]] = {
    **dict.fromkeys(words("year decade century"), "year"),
    **dict.fromkeys(words("date day month season"), "date"),
    **dict.fromkeys(words("percentage percent share proportion"), "quantity"),
    **dict.fromkeys(
        words("temperature price cost fee amount height length depth width speed weight distance age duration"),
        "quantity",
    ),
    **dict.fromkeys(words("number"), "number"),
    **dict.fromkeys(
        words("""
        person man woman king queen emperor president minister mayor author writer poet novelist composer singer
        musician band artist painter sculptor architect engineer scientist physicist chemist astronomer inventor
        explorer director actor chef captain founder player driver rider colleague manager editor keeper clockmaker
        city town village country state county island river lake mountain sea ocean street square harbour port
        continent region language planet moon team club company university museum newspaper ship
        """),
        "name",
    ),
}
MEASURED: Final = words("long tall far much old heavy fast deep high wide large big hot cold late often thick loud")
QUESTION_WORDS: Final = words("who whom whose when where what which why how many much name")
PLACE_WORDS: Final = words("in at on near from to outside into off beside under behind")
