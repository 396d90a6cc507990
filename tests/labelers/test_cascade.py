"""A cascade asks what its labelers ask alone, and the second only where the first is in doubt."""

from math import log
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judgekit.data.checks import remarks
from judgekit.data.documents import Doc, Query, Unit
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.labelers.base import build
from judgekit.wire.types import Failure
from tests.labelers.scripted import CUT, DOC, PARIS, REFUSED, Here, Says, play

UNIT = Unit(PARIS, (DOC,))
YES, NO = "Yes", "No"


def probable(yes: float) -> Says:
    """A reply of one word with the probabilities of both."""
    top = [{"token": word, "logprob": log(p)} for word, p in (("Yes", yes), ("No", 1 - yes))]
    content = [{"token": "Yes", "logprob": log(yes), "top_logprobs": top}]
    return {"message": {"content": "Yes"}, "finish_reason": "stop", "logprobs": {"content": content}}


def cascade(first: str, then: str = "judge(endpoint=large)", **options: object) -> str:
    more = "".join(f", {key}={value}" for key, value in options.items())
    return f"cascade(first='{first}', then='{then}'{more})"


@pytest.mark.parametrize(
    ("said", "doubtful"),
    [
        ([YES, YES, YES], False),
        ([YES, NO, YES], True),
        ([YES, NO, NO], True),
        (["perhaps", "perhaps", YES, "perhaps", "perhaps"], True),
    ],
)
def test_jurors_who_disagree_are_in_doubt(said: list[str], doubtful: bool) -> None:
    labeler = build(cascade("judge(jury=a+b+c)"), Here())
    played = play(labeler, UNIT, [*said, NO] if doubtful else said)
    assert played.label.relevance == (0 if doubtful else 1)
    assert played.label.extra["escalated"] == doubtful


@pytest.mark.parametrize(
    ("yes", "doubt", "doubtful"),
    [(0.95, 0.2, False), (0.81, 0.2, False), (0.8, 0.2, True), (0.5, 0.5, True), (0.2, 0.2, True), (0.1, 0.2, False)],
)
def test_probabilities_inside_of_the_band_are_in_doubt(yes: float, doubt: float, doubtful: bool) -> None:
    labeler = build(cascade("judge(read=logprobs)", doubt=doubt), Here())
    label = play(labeler, UNIT, [probable(yes), NO] if doubtful else [probable(yes)]).label
    read = {"read_by": "form"} if doubtful else {"mass": pytest.approx(1)}
    assert label.extra == {"first": pytest.approx(yes), "escalated": float(doubtful)} | read
    assert label.relevance == (0 if doubtful else float(yes > 0.5))


@pytest.mark.parametrize("unread", [["perhaps", "perhaps"], [CUT, CUT], [REFUSED]])
def test_a_reply_that_cannot_be_read_is_in_doubt_and_a_failed_request_is_not(unread: list[Says]) -> None:
    label = play(build(cascade("judge"), Here()), UNIT, [*unread, YES]).label
    assert (label.relevance, label.extra) == (1, {"escalated": 1, "read_by": "form"})
    failed = play(build(cascade("judge"), Here()), UNIT, [Failure("k", Status.FAILED, "down")]).label
    assert (failed.status, failed.extra) == (Status.FAILED, {"escalated": 0})


def test_a_first_that_does_not_apply_passes_the_pair_on() -> None:
    labeler = build(cascade("containment", "judge"), Here())
    unit = Unit(Query("q", "Is it?", ("yes",)), (Doc("d", "It is."),))
    assert play(labeler, unit, [YES]).label.relevance == 1
    assert play(labeler, UNIT).label.extra == {"first": 1, "escalated": 0}


@pytest.mark.parametrize(
    ("first", "says", "then", "more"),
    [
        ("judge", ["perhaps", "perhaps"], "judge(samples=3, endpoint=large)", [YES] * 3),
        ("judge(jury=a+b)", [YES, NO], "utility", [YES]),
    ],
)
def test_the_requests_are_those_of_the_labelers_alone(first: str, says: list[str], then: str, more: list[str]) -> None:
    def keys(spec: str, says: list[str]) -> list[tuple[str, int]]:
        return [(r.key, r.sample) for wave in play(build(spec, Here()), UNIT, says).waves for r in wave]

    assert keys(cascade(first, then), says + more) == keys(first, says) + keys(then, more)


@pytest.mark.parametrize(("first", "then", "most"), [("judge", "judge(samples=3)", 8), ("containment", "judge", 2)])
def test_the_most_requests_are_those_of_both(first: str, then: str, most: int) -> None:
    labeler: Any = build(cascade(first, then), Here())
    assert labeler.most(UNIT) == most


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        (cascade("judge", "judge(prompt=graded)"), "the first labeler's scale is binary, the second's grades:3:2"),
        (cascade("judge(prompt=graded)", "judge"), "the first labeler's scale is grades"),
        (cascade("judge", doubt=0.6), "doubt is a share from 0 to 0.5"),
        (cascade("human(file=gold.qrels)", "judge"), "labels by people"),
        ("cascade(first=judge)", "needs then="),
        (cascade("juge"), "juge"),
    ],
)
def test_what_does_not_go_together_is_refused(spelling: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "gold.qrels").write_text("q1 0 a 1\n")
    with pytest.raises(UsageError, match=message):
        build(spelling, Here(tmp_path))


def test_the_spelling_holds_those_of_the_labelers() -> None:
    labeler = build("cascade(first='judge(samples=1)', then='utility(quality=em)')", Here())
    assert str(labeler.spec) == "cascade(first=judge, then=utility)"


def test_what_either_shares_with_the_outcome_is_shared() -> None:
    for parts in (("utility", "judge"), ("judge", "utility(endpoint=large)")):
        needs = build(cascade(*parts), Here()).needs
        assert (needs.references, needs.outcome_metric, needs.outcome_prompt) == (True, "em", "answer-short")
    assert (needs.prompt, [one.name for one in needs.endpoints]) == ("binary + answer-short", ["only", "large"])


def test_the_share_that_was_escalated_is_counted() -> None:
    rows = [("q1", f"d{i}", 1.0, float(i < 1)) for i in range(4)]
    table = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "escalated"])
    said = "\n".join(remarks(Labeling("cascade", Scale("binary"), table)))
    assert "was in doubt about 1 of 4 pairs (25%), which the second labeler labeled." in said


def test_a_label_that_says_why_it_may_be_wrong_is_in_doubt() -> None:
    unit = Unit(Query("q", "Kuka?", ("Turku",), language="fi"), (Doc("d", "Turussa."),))
    label = play(build(cascade("containment", "judge"), Here()), unit, [YES]).label
    assert (label.relevance, label.extra["first"], label.extra["escalated"]) == (1, 0, 1)
