"""Whether labels without reference answers suffice: what the decision says of them beside those that need some."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from judgekit.analysis.background import Background
from judgekit.analysis.claims import Claim
from judgekit.analysis.comparison import compare
from judgekit.labelers.base import Needs
from judgekit.rules import Rules
from judgekit.wire.types import Endpoint
from tests.analysis.worlds import claims, world

READER = Endpoint("reader", base_url="http://localhost:1/v1", model="m")
ASKED = Needs(endpoints=(READER,), prompt="answer-short", outcome_prompt="answer-short")
GIVEN, OWN = replace(ASKED, references=True), replace(ASKED, own_answers=True)


def said(labelings: dict[str, tuple[float, float]], needs: dict[str, Needs], **background: Any) -> dict[str, Claim]:
    scores, quality = world(labelings)
    found = compare(scores, quality, Rules(resamples=200), background=Background(needs=needs, **background))
    return claims(found.decision, "without references")


def test_labels_that_follow_as_closely_suffice() -> None:
    (claim,) = said({"erag": (0, 1.0), "reads": (0, 1.0)}, {"erag": GIVEN, "reads": OWN}).values()
    assert (claim.subject, claim.against, claim.shown) == ("reads", "erag", True)
    assert claim.sentence.startswith("reads suffices without reference answers: its r is ")
    assert claim.sentence.endswith("than that of erag, which needs them.")
    assert claim.low < claim.value < claim.high


def test_labels_that_follow_less_closely_do_not() -> None:
    found = said({"erag": (0, 2.0), "reads": (0, 0.5)}, {"erag": GIVEN, "reads": OWN})
    assert "more than one standard error" in found["reads"].sentence
    assert (found["reads"].shown, found["reads"].value < 0) == (False, True)


def test_labels_that_follow_nothing_do_not_suffice() -> None:
    found = said({"erag": (0, 2.0), "reads": (1.0, 0)}, {"erag": GIVEN, "reads": OWN})
    assert "is not shown to follow" in found["reads"].sentence


def test_the_best_labels_with_references_by_the_same_reader_are_what_they_are_held_against() -> None:
    labelings = {"erag": (0, 2.0), "worse": (0, 0.3), "own": (0, 1.0), "other": (0, 3.0)}
    elsewhere = replace(GIVEN, endpoints=(replace(READER, model="another"),))
    needs = {"erag": GIVEN, "worse": GIVEN, "own": OWN, "other": elsewhere}
    assert said(labelings, needs)["own"].against == "erag"


@pytest.mark.parametrize("needs", [{"erag": GIVEN, "judge": ASKED}, {"reads": OWN, "own": OWN}])
def test_nothing_is_said_where_there_is_nothing_to_compare(needs: dict[str, Needs]) -> None:
    assert said(dict.fromkeys(needs, (0, 1.0)), needs) == {}


def test_lists_that_labels_were_made_from_are_needed_for_the_flag() -> None:
    # Of tables alone nobody knows the lists, and nothing is flagged or left out.
    scores, quality = world({"needed": (0, 1.0)})
    need = replace(GIVEN, outcome_list=5)
    found = compare(scores, quality, Rules(resamples=100), background=Background(needs={"needed": need}))
    assert isinstance(found.table, pd.DataFrame)
    assert not found.table["flags"].str.contains("own_list").any()
