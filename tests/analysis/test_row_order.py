"""The order of rows changes nothing, whatever the rows hold."""

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings, strategies as st

from judgekit.analysis.comparison import compare
from judgekit.analysis.unpaired import one_value
from judgekit.rules import DeclaredOutcome, Rules
from tests.analysis.test_repeated_questions import drawn, texts

FAST = Rules(resamples=100, primary="nDCG@5")
USERS = DeclaredOutcome("thumb", cluster="user")


def rated(seed: int, questions: int) -> pd.DataFrame:
    """Thumbs by up to three users an answer: some are left blank, some failed to be read."""
    rng = np.random.default_rng(seed)
    rows = []
    for run in ("r0", "r1"):
        for question in range(questions):
            for user in range(int(rng.integers(1, 4))):
                value = float(rng.random() < 0.6) if rng.random() < 0.8 else np.nan
                status = "ok" if rng.random() < 0.9 and not np.isnan(value) else "failed"
                rows.append((f"q{question:04}", run, 5, f"u{user}", "thumb", value, status))
    return pd.DataFrame(rows, columns=["query_id", "run", "depth", "user", "metric", "value", "status"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10_000), order=st.integers(0, 10_000))
def test_no_order_of_scores_and_ratings_changes_a_claim(seed, order):
    scores, _ = drawn(seed, 2, 40)
    quality, rng = rated(seed, 40), np.random.default_rng(order)
    given = compare(scores, quality, FAST, outcome=USERS, queries=texts(scores))
    scores, quality = (table.iloc[rng.permutation(len(table))] for table in (scores, quality))
    again = compare(scores, quality, FAST, outcome=USERS, queries=texts(scores))
    pd.testing.assert_frame_equal(again.decision.table, given.decision.table)
    pd.testing.assert_frame_equal(again.table, given.table)
    assert sorted(again.warnings) == sorted(given.warnings)


def test_a_blank_thumb_takes_nothing_from_another_users():
    ratings = pd.DataFrame(
        {"query_id": ["q1", "q1", "q2"], "value": [np.nan, 1.0, np.nan], "status": ["unasked", "ok", "unasked"]}
    )
    for order in ([0, 1, 2], [2, 1, 0]):
        found = one_value(ratings.iloc[order]).set_index("query_id")
        assert found.loc["q1", "value"] == 1
        assert found.loc["q1", "status"] == "ok"
        assert np.isnan(found.loc["q2", "value"])
