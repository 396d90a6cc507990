#!/bin/sh
# price-parser 0.5.1 drops sign and scale ("-$5" is 5, "$4.2 billion" 4.2), babel 2.19.0 reads "3,5" as 35 in English.
# Whoever compares an answer with a reference by such a value takes wrong answers for right ones; dateparser 1.5.0 moreover finds
# the date March 10 in "room 3 of 10,000". judgekit reads numbers and dates itself (judgekit/answers/numbers.py).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet price-parser==0.5.1 babel==2.19.0 dateparser==1.5.0
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

from babel.numbers import parse_decimal
from dateparser.search import search_dates
from price_parser import Price

for name in ("price-parser", "babel", "dateparser"):
    print(name, version(name))
seen = {
    "price-parser, -$5": str(Price.fromstring("-$5").amount),
    "price-parser, $4.2 billion": str(Price.fromstring("$4.2 billion").amount),
    "babel, 3,5 in English": str(parse_decimal("3,5", locale="en")),
    "dateparser, room 3 of 10,000": search_dates("It was on May 18, 2018, in room 3 of 10,000.", languages=["en"])[1][1].strftime("%m-%d"),
}
expected = {"-5": "5", "4200000000": "4.2", "3.5 or 3 and 5": "35", "no date": "03-10"}
for (what, found), one in zip(seen.items(), expected):
    print(f"{what}: one expects {one}, and it is {found}")
sys.exit(list(seen.values()) != list(expected.values()))
PYTHON
