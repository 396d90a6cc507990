"""Means over queries alone, as evaluation campaigns publish them: a system-level estimate without an interval."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import somersd

from judgekit.analysis.comparison import compare
from judgekit.data.tables import ALL
from judgekit.errors import DataError
from judgekit.rules import Rules
from tests.analysis.worlds import tables

RUNS = [f"run{i}" for i in range(7)]
SCORES = {"gold": [0.3, 0.5, 0.2, 0.6, 0.4, 0.7, 0.1], "judge": [0.3, 0.3, 0.4, 0.6, 0.5, 0.8, 0.2]}
QUALITY = [0.31, 0.48, 0.25, 0.55, 0.5, 0.6, 0.2]


def published(query_ids: list[str] | None = None, spread: float = 0.0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return score and quality tables whose means are those above, per query or as means alone."""
    ids = query_ids or [ALL]
    shift = np.linspace(-spread, spread, len(ids))
    spread_out = {name: np.add.outer(values, shift) for name, values in {**SCORES, "": QUALITY}.items()}
    scores, quality = tables(spread_out, spread_out.pop(""), tuple(RUNS))
    names = dict(zip(scores["query_id"].unique(), ids, strict=True))
    return scores.replace({"query_id": names}), quality.replace({"query_id": names})


def concordance(scores: list[float], quality: list[float]) -> float:
    return float(somersd(quality, scores).statistic + 1) / 2


PER_QUERY = [f"q{i}" for i in range(6)]


@pytest.mark.parametrize(
    ("scores_as", "quality_as"), [("means", "means"), ("means", "queries"), ("queries", "means"), ("both", "means")]
)
def test_means_alone_have_the_coefficients_of_the_means_and_no_interval(scores_as: str, quality_as: str) -> None:
    (means, quality_means), (per_query, quality) = published(), published(PER_QUERY, 0.02)
    scores = {"means": means, "queries": per_query, "both": pd.concat([means, per_query])}[scores_as]
    found = compare(scores, quality_means if quality_as == "means" else quality, rules=Rules(resamples=100))
    table = found.table[found.table["coefficient"] == "concordance"]
    assert set(found.table["level"]) == {"system"}
    assert dict(zip(table["labeling"], table["value"], strict=True)) == pytest.approx(
        {name: concordance(values, QUALITY) for name, values in SCORES.items()}
    )
    assert found.table["value"].notna().all()
    assert found.table[["ci_low", "ci_high"]].isna().all(axis=None)
    assert set(found.table["n"]) == {len(RUNS)}
    assert set(found.table["undefined_reason"]) == {""}
    assert set(found.table["flags"]) == {"means_only"}
    said = "There is no decision. The tables hold only means over queries, so no interval can be computed."
    assert found.decision.lines == (("Choose", said),)
    held = {"score": scores_as, "quality": quality_as}
    tables = " and of ".join(name for name, held_as in held.items() if held_as == "means")
    said = f"The table of {tables} holds only means (query_id 'all'), so the system level is compared"
    assert any(line.startswith(said) for line in found.warnings)
    assert found.differences.empty


def test_with_values_per_query_means_beside_them_are_ignored_as_ever() -> None:
    (means, quality_means), (scores, quality) = published(), published(PER_QUERY, 0.02)
    plain = compare(scores, quality, rules=Rules(resamples=100))
    beside = compare(pd.concat([scores, means]), pd.concat([quality, quality_means]), rules=Rules(resamples=100))
    pd.testing.assert_frame_equal(plain.table, beside.table)
    assert plain.table["ci_low"].notna().any()


def test_means_alone_need_several_runs_and_all_of_them() -> None:
    scores, quality = published()
    with pytest.raises(DataError, match="a single run needs values per query"):
        compare(scores, quality, only={"runs": ["run1"]})
    for runs, flags in ((4, "few_runs;means_only"), (5, "means_only")):
        few = compare(scores, quality, rules=Rules(resamples=100), only={"runs": RUNS[:runs]})
        assert set(few.table["flags"]) == {flags}
    scores.loc[0, "value"] = np.nan
    found = compare(scores, quality, rules=Rules(resamples=100))
    table = found.table[found.table["coefficient"] == "concordance"].set_index("labeling")["value"]
    assert table["judge"] == pytest.approx(concordance(SCORES["judge"], QUALITY))
    assert "'gold' lacks values for nDCG@5" in " ".join(found.warnings)
