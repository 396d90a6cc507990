"""What the demo decides."""

import re

from judgekit.experiment.run import Finished


def test_ground_truth_to_keep_and_runs_to_choose_from(demo: Finished) -> None:
    lines = dict(demo.comparison.decision.lines)
    assert lines["Do"] == "For ground truth to keep, label with erag. To choose among these 6 runs, compare answers."
    assert lines["Why"].startswith("Highest r: erag .44, provenance .36; not shown to differ. The costliest is safer.")
    assert lines["Cost"].startswith("Requests at depth 5: answers 571; erag 1,092; judge 1,092.")
    assert re.match(r"Gain 2\.6 points \(0\.\d to 4\.\d\); 45 of 104 answers differ\.", lines["How sure"])
    marked, best = "erag is the answering model marking itself.", "Best run: rrf by erag, tfidf by the answers."
    assert lines["Beware"].startswith(f"{marked} {best}")
    assert lines["Reuse"] == "A further run needs 15 to 202 new labels, or 74 to 102 answers."
    assert lines["Failing"].startswith("erag 83 in 100, the question alone 75")
    order = demo.comparison.purchase.set_index("strategy")
    assert order.loc["provenance", "note"] == "existing: cannot label new pairs"
