"""Replies of people who did not know the reader: pairs of a high and a low verdict in the same shape.

`null` marks replies that state no verdict, or two. The first 445 pairs have their own question, passage and shape each,
most of them odder than what models write. Half of them was looked at when the grammar was widened, the other half only
counted. Another 310 were written after that, with shapes as often as models write them. At their first count none of
250 plain pairs was read wrongly, and one reply of 120 without a verdict was read. The last 504 pairs are of six writers
and nothing was mended after them: none of 456 plain pairs is read wrongly, and none of 96 replies without a verdict is
read. What a person reads and judgekit does not is asked again, so the rates tell of requests, never of labels.
"""

import gzip
import json
from collections import Counter
from itertools import chain
from typing import Any

import pytest

from tests.reading.test_sentence import PROMPTS, filled, read
from tests.reading.written import HERE

LOOKED_AT = 223
"""How many pairs of the file were looked at."""

LEAST = {
    "looked at": {"binary, open": 0.84, "binary, yes/no": 0.62, "grades": 0.75},
    "only counted": {"binary, open": 0.58, "binary, yes/no": 0.67, "grades": 0.65},
    "written later": {"binary, open": 0.89, "binary, yes/no": 0.7, "grades": 0.83},
    "written last": {"binary, open": 0.94, "binary, yes/no": 0.55, "grades": 0.83},
}
"""The share of plain verdicts that is read at first, by prompt and kind of question; the lower of both sides counts."""

FEWER = 0.0205
"""By how much the shares of high and of low verdicts may differ: 2 points, with room for 56 against 54 of 98."""


def pairs(name: str = "blind") -> list[dict[str, Any]]:
    with gzip.open(HERE / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


PAIRS = {
    "looked at": pairs()[:LOOKED_AT],
    "only counted": pairs()[LOOKED_AT:],
    "written later": pairs("blind-second"),
    "written last": pairs("blind-third"),
}


@pytest.mark.parametrize("part", PAIRS)
def test_none_is_read_wrongly_and_the_plain_ones_are_read_alike(part: str) -> None:
    plain, said = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for pair in PAIRS[part]:
        prompt = PROMPTS[pair["prompt"]]
        values = filled(pair["question"], "", pair["passage"])
        kind = "binary, open" if pair["open"] else "binary, yes/no"
        for side in ("high", "low"):
            label, verdict = pair[f"{side}_value"], read(prompt, pair[side], values)
            assert verdict is None or verdict.value == label, (pair["question"], pair[side], verdict)
            if label is not None:
                key = (kind if pair["prompt"] == "binary" else "grades", side)
                plain[key] += 1
                said[key] += verdict is not None
    for kind, least in LEAST[part].items():
        assert min(said[kind, side] / plain[kind, side] for side in ("high", "low")) >= least, kind
    shares = [
        sum(said[kind, side] for kind in LEAST[part]) / sum(plain[kind, side] for kind in LEAST[part])
        for side in ("high", "low")
    ]
    assert abs(shares[0] - shares[1]) <= FEWER
    if part.startswith("written"):
        for kind in LEAST[part]:
            high, low = (said[kind, side] / plain[kind, side] for side in ("high", "low"))
            assert abs(high - low) <= FEWER, kind


def test_a_pair_is_mirrored_and_states_its_verdict_on_both_sides_or_on_none() -> None:
    for pair in chain.from_iterable(PAIRS.values()):
        high, low = pair["high_value"], pair["low_value"]
        assert (high is None) == (low is None)
        assert high is None or high > low
