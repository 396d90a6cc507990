"""What the demo decides."""

from judgekit.experiment.run import Finished


def test_which_run_and_which_labels(demo: Finished) -> None:
    decision = demo.comparison.decision
    lines = dict(decision.lines)
    assert (decision.leader, decision.kept) == ("tfidf", "erag")
    assert lines["Choose"].startswith(
        "tfidf, rrf, bm25 or fourgrams may be the best of these 6 runs; the other two are"
    )
    assert "tfidf answers best so far: shipping it loses at most 6." in lines["Choose"]
    assert lines["Keep"].startswith(
        "Of these labels keep erag: it follows the answers of this model most closely, with r = .44 (.2"
    )
    assert (
        ". To judge a further run, answer its questions: that costs no more than labels, unless it needs fewer than"
        in lines["Keep"]
    )
    assert "containment needs no requests, but its r is .08 lower (-.0" in lines["Keep"]
    assert lines["Keep"].endswith("), which may be chance.")
    assert lines["Cost"].startswith(
        "104 new questions take 571 requests for answers; 1,092 for erag or judge; none for containment."
    )
    assert lines["New run"].startswith("A further run needs at most 500 labels (9")
    assert lines["New run"].endswith(",000 tokens) or 104 answers (48,000 tokens).")
    assert lines["Failing"].startswith("Of two questions, erag finds the worse answered one 83 (7")
    assert lines["Next"] == "To ship a run within 2 points of the best takes about 1,400 questions; you have 104."
    assert " above that of provenance, its best free rival." in lines["Keep"]
    assert " ".join(lines.values()).count("provenance") == 1, "labels that exist cannot be kept for new documents"
