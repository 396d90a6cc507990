"""What is asked of a model is frozen: another request leaves every reply unused that was paid for.

A prompt may be edited for a good reason. Then its line here changes with it, and CHANGELOG says that it is asked anew.
"""

from __future__ import annotations

from judgekit.answers.answerer import make_answerer
from judgekit.data.documents import Unit
from judgekit.labelers.base import build
from judgekit.reading.asker import Asker
from judgekit.reading.prompts import list_prompts
from judgekit.wire.types import Reply
from tests.labelers.scripted import DOC, OTHER, PARIS, Here

HERE = Here().endpoint(None)

PROMPTS = {
    "answer-long": ["650b0acca844cd8c", "10078e0143e708b4"],
    "answer-short": ["9f5ce38e3b7c7155", "0020e26ae5f7eb09"],
    "binary": ["1dc661359178137f", "2e481b6e660424a9"],
    "classify-claim": ["0da490c42c480041", "55154335cf351da8"],
    "closed-book": ["9a07cb8cfe32977e", "75e72bc1911a61ca"],
    "closed-book-claim": ["6beef853914762ec", "cb90abb9e095bfba"],
    "closed-book-long": ["7a06730d04e5d465", "ecf028073c657cf5"],
    "correctness": ["aceb2f9ab57cafe1", "10fa4ab9eb32023f"],
    "criteria": ["54b9fdce5ea36241", "74f482f4ac440225"],
    "graded": ["9ace6c78a799a6f5", "930fc233baf0f3b2"],
    "graded-json": ["6811058271cb3398", "d1154cbf27843e67"],
    "grounded": ["9e1d6ce24412b455", "d7b062370f08c8f3"],
    "merge": ["49972334fc5c8eac", "6f89090fecdfc263"],
    "merge-long": ["beb788dfad96fa75", "64a9174d898fc943"],
    "prefer-answer": ["403ea1650199db1c", "055f456b7718c7ed"],
    "strict": ["d53c0f69edc372e9", "8fc474493fa66aca"],
    "terse": ["5d6e9b0a960389a5", "fba0568d29873dec"],
    "useful": ["5ed5271843a963bc", "7c9ff51adb7ada82"],
}
"""By prompt, the first digits of two identities: what it asks, and what it asks where that reply was cut off."""

LABELERS = {
    "judge": ["3f500991ffae6873"],
    "judge(prompt=graded)": ["e10a3207acf0a734"],
    "judge(prompt=graded-json)": ["7d2631f17dbdc9e5"],
    "judge(read=logprobs)": ["c0cef8cfe1287e70"],
    "judge(samples=3,temperature=1)": ["931b647f52b2021c", "5560821d7b9dd53c", "6c5dabe57015532c"],
    "judge(jury=here+there)": ["480287532532b8a9", "4626cf55fe568953"],
    "utility": ["9ddeb5f4c0f99a01"],
    "utility(samples=2)": ["9ddeb5f4c0f99a01", "f0a5b3ee067856bb"],
}
"""By labeler, the identities of its first wave on one document."""

ANSWERS = {
    "": ["f47da97de213524a"],
    "order=reversed": ["7ec345bd3885b718"],
    "mode=vote": ["9ddeb5f4c0f99a01", "8a58b111adccca3f"],
}
"""By how answers are asked for from two documents, the identities of the first wave."""


def test_every_shipped_prompt_asks_what_it_always_asked() -> None:
    found = {}
    for prompt in list_prompts():
        asker, values = Asker(HERE, prompt), {name: f"the {name}, é" for name in sorted(prompt.placeholders)}
        first = asker.request(values)
        cut = Reply(first.key, '{"choices":[{"message":{"content":"The"},"finish_reason":"length"}]}')
        found[prompt.name] = [first.key[:16], asker.again(values, cut).key[:16]]
    assert found == PROMPTS


def test_labelers_ask_what_they_always_asked() -> None:
    unit = Unit(PARIS, (DOC,))
    assert {name: [r.key[:16] for r in build(name, Here()).requests(unit, [])] for name in LABELERS} == LABELERS


def test_answers_are_asked_for_as_they_always_were() -> None:
    def first(told: str) -> list[str]:
        options = dict(option.split("=") for option in told.split())
        answerer = make_answerer(HERE, "answer-short", Here(), options)
        return [request.key[:16] for request in answerer.requests(Unit(PARIS, (DOC, OTHER)), [])]

    assert {told: first(told) for told in ANSWERS} == ANSWERS
