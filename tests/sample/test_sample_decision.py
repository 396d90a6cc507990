"""What the demo decides."""

from judgekit.experiment.run import RunResult


def test_which_run_and_which_labels(demo: RunResult) -> None:
    decision = demo.comparison.decision
    lines = dict(decision.lines)
    assert (decision.leader, decision.kept) == ("tfidf", "erag")
    assert ("tfidf, rrf, bm25 or fourgrams may be the best of these 6 runs; the other two are") in lines["Choose"]
    assert "If you ship now, ship tfidf: it answers best so far, and is at most 6." in lines["Choose"]
    assert lines["Keep"].startswith(
        "Keep the labels of erag that you have: erag follows the answers of this model most closely, with r = .44 (.2"
    )
    assert (
        ". For a new run, answer its questions: that costs no more than labelling it. Label it instead if fewer "
        in lines["Keep"]
    )
    assert "containment needs no requests, but its r is .08 lower (-.0" in lines["Keep"]
    assert lines["Keep"].endswith("), which may be chance.")
    assert lines["Cost"].startswith("To repeat this with as many new questions takes 571 requests for answers; ")
    assert " 1,092 for erag or judge; none for containment." in lines["Cost"]
    assert lines["New run"].startswith("A new run takes at most 48,000 tokens to answer (104 new answers), or 9")
    assert lines["New run"].endswith(",000 tokens to label (500 new labels).")
    assert lines["Failing"].startswith(
        "To find questions that fail, sort them by their erag score (nDCG@5), lowest first: "
    )
    assert "of two questions, erag finds the worse answered one 83 (7" in lines["Failing"]
    assert lines["Next"] == "To ship a run within 2 points of the best takes about 1,400 questions in all."
    assert " above that of provenance (free, given with the data). " in lines["Keep"]
    assert " ".join(lines.values()).count("provenance") == 1, "labels that exist cannot be kept for new documents"
