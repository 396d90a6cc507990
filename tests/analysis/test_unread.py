"""Whether replies that could not be read go with what was shown: said where a test shows it, and not else."""

import numpy as np
import pytest

from judgekit.analysis.unread import unread

QUERIES = np.repeat(np.arange(80), 10)
SIDE = "long passages or short ones"


def said(lost: np.ndarray, long: np.ndarray) -> str:
    return unread("judge", lost, QUERIES, {SIDE: long, "passages with digits or without": np.zeros(800)})


def test_what_is_missing_for_long_passages_is_said_to_be() -> None:
    rng = np.random.default_rng(1)
    long = np.arange(800) % 2
    text = said(rng.random(800) < np.where(long, 0.2, 0.02), long)
    assert text.startswith("judge: 84 of 800 labels are missing (10.5%): 19.5% of long passages, 1.5% of short ones.")
    assert "They are not missing at random: " in text
    assert "digits" not in text


def test_a_few_are_counted_and_not_tested() -> None:
    lost = np.zeros(800, bool)
    lost[[0, 2, 40]] = True
    assert said(lost, np.arange(800) % 2).endswith("They are too few for a test.")
    assert said(lost & False, np.arange(800) % 2) == ""


@pytest.mark.parametrize("by_query", [False, True])
def test_chance_is_taken_for_more_in_one_of_twenty_even_where_questions_are_lost_as_a_whole(by_query: bool) -> None:
    rng, found = np.random.default_rng(2), 0
    for _ in range(400):
        chances = np.repeat(rng.choice([0.0, 0.4], 80, p=[0.9, 0.1]), 10) if by_query else 0.04
        long = np.repeat(rng.random(80) < 0.5, 10) if by_query else rng.random(800) < 0.5
        found += "not missing at random" in said(rng.random(800) < chances, long)
    assert found <= 32
