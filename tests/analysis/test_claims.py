"""Claims: views of one list, which lose nothing and say nothing of their own."""

from judgekit.analysis.claims import Claim, claims_table, further, lines_of, plain, wrapped

KEEP = Claim("keep", "Keep erag.", "erag", value=0.44, low=0.3, high=0.56, shown=True, line="Keep", rank=1)
CLAIMS = [
    Claim("ships", "A costs 1 point.", line="Next"),
    KEEP,
    Claim("hinge", "Without B nothing is shown.", "erag", qualifies=KEEP.key, line="Hinges"),
    Claim("own", "Its labels hold for this reader.", "erag", qualifies=KEEP.key),
    Claim("why", "That is sure.", qualifies="own: erag"),
    Claim("gain", "erag gains 2 points.", "erag"),
]


def test_what_qualifies_a_claim_stands_where_it_stands_and_no_claim_is_lost() -> None:
    assert lines_of(CLAIMS) == (
        ("Keep", "Keep erag. Its labels hold for this reader. That is sure."),
        ("Hinges", "Without B nothing is shown."),
        ("Next", "A costs 1 point."),
    )
    assert further(CLAIMS) == ["erag gains 2 points."]
    assert further(CLAIMS[:1] + CLAIMS[2:]) == [claim.sentence for claim in CLAIMS[3:]], "Keep is not stated"


def test_text_is_wrapped_and_never_cut() -> None:
    name = "a-name-" * 8
    text = wrapped([("Keep", f"Keep {name}: it follows the answers most closely."), ("Next", "Ask more.")], 40)
    assert text.split() == [
        "Keep",
        "Keep",
        f"{name}:",
        *["it", "follows", "the", "answers", "most", "closely.", "Next", "Ask", "more."],
    ]
    assert text.splitlines()[2].startswith(" " * 10)
    assert text.splitlines()[-1] == "Next      Ask more."


def test_a_command_is_never_cut_so_that_it_can_be_pasted() -> None:
    command = "`judgekit build 'my experiment.toml' --labeling containment`"
    for width in range(20, 120):
        text = wrapped([("Keep", f"Keep none of these labels: {command} writes free qrels.")], width)
        assert command in text
        assert "\N{NO-BREAK SPACE}" not in text


def test_a_claim_is_a_row_and_plain_values() -> None:
    assert claims_table(CLAIMS).loc[1, ["kind", "subject", "value", "shown"]].tolist() == ["keep", "erag", 0.44, True]
    first = next(plain(CLAIMS))
    assert (first["value"], first["line"], first["sentence"]) == (None, "Next", "A costs 1 point.")
