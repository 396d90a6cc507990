"""Documents are found on their pages, and labels survive a new cut of them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgekit as jk
from judgekit.data.chunks import Carried
from judgekit.data.documents import Doc, MemoryDocs
from judgekit.data.labelings import Labeling, Scale
from judgekit.data.spans import stated
from judgekit.data.tables import LABELS
from judgekit.errors import DataError, UsageError

PAGE = "The harbour froze in 1740, and  nobody sailed.\nIn 1741 the ice broke, and boats went out to sea again."
PAGES = [Doc("p", PAGE), Doc("q", "A page about something else entirely, with words of its own and no boats.")]


def spans(docs: list[Doc], **options: object) -> dict[str, tuple[object, ...]]:
    return {d.doc_id: (d.page_id, d.start, d.end) for d in jk.chunks(PAGES, docs, **options).docs}  # type: ignore[arg-type]


def test_documents_are_found_letter_by_letter_but_for_white_space_or_where_the_text_is_alike() -> None:
    docs = [
        Doc("exact", "In 1741 the ice broke, and boats went out"),
        Doc("spaces", "froze in 1740, and nobody sailed. In 1741"),
        Doc("alike", "In 1741 the ice brake, and boats went out t0 sea again."),
        Doc("named", "ice", "", "p"),
        Doc("short", "the ice"),
        Doc("alien", "nothing of this stands on any page that there is"),
        Doc("lost", "words", "", "r"),
        Doc("empty", " ", "", "p"),
    ]
    placed = jk.chunks(PAGES, docs)
    assert spans(docs) == {
        "exact": ("p", 47, 88),
        "spaces": ("p", 12, 54),
        "alike": ("p", 47, 102),
        "named": ("p", 59, 62),
        "short": (None, None, None),
        "alien": (None, None, None),
        "lost": ("r", None, None),
        "empty": ("p", None, None),
    }
    assert (placed.exact, placed.alike) == (3, 1)
    assert placed.unplaced == {
        "short": "it has fewer than 4 words: name its page (page_id)",
        "alien": "its text was not found on its likely pages",
        "lost": "its page 'r' is missing from the pages",
        "empty": "its text was not found on its likely pages",
    }


@given(st.data())
def test_every_stretch_of_a_page_is_found_where_it_stands(data: st.DataObject) -> None:
    words = [f"w{i}" for i in range(40)]
    text = " ".join(words)
    first = data.draw(st.integers(0, 30))
    last = data.draw(st.integers(first + 5, 40))
    piece = " ".join(words[first:last])
    (doc,) = jk.chunks([Doc("p", text)], [Doc("d", piece)]).docs
    assert text[doc.start : doc.end] == piece


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        (Doc("d", "sea again.", "", "p", 92, 103), "ends at 103 on page 'p', which has 102 characters"),
        (Doc("d", "sea again.", "", "r", 0, 10), "page 'r', which is missing from the pages"),
        (Doc("d", "sea again.", "", "p", 0, 10), "holds another text at 0 to 10 .* offsets of tokens"),
    ],
)
def test_spans_outside_of_their_pages_are_errors(doc: Doc, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        jk.chunks(PAGES, [doc])


def test_offsets_of_tokens_are_converted_by_the_tokenizers_file(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the extra tokenizers is not installed")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    file = tmp_path / "tokenizer.json"
    made.save(str(file))
    assert spans([Doc("d", "sea again.", "", "p", 18, 20)], tokenizer=file) == {"d": ("p", 92, 102)}
    with pytest.raises(DataError, match="ends at 21 on page 'p', which has 20 tokens"):
        jk.chunks(PAGES, [Doc("d", "sea again.", "", "p", 18, 21)], tokenizer=file)
    file.write_text("{}")
    with pytest.raises(UsageError, match="does not hold a tokenizer"):
        jk.chunks(PAGES, [Doc("d", "sea again.", "", "p", 18, 20)], tokenizer=file)


def carried(labels: list[tuple[object, ...]], docs: dict[str, tuple[int, int]], **options: object) -> Carried:
    columns = ["query_id", "page_id", "start", "end", "relevance", "status", "evidence"]
    frame = pd.DataFrame([("q", "p", *row, *("ok", "")[len(row) - 3 :]) for row in labels], columns=columns)
    new = [Doc(doc_id, "", "", "p", *span) for doc_id, span in docs.items()]
    return jk.carry(frame.astype({"relevance": "float64"}), new, **options)  # type: ignore[arg-type]


def values(found: Carried) -> dict[str, float]:
    return dict(zip(found.labeling.doc_ids, found.labeling.relevance.tolist(), strict=True))


@pytest.mark.parametrize(
    ("labels", "docs", "expected"),
    [
        # Half of the relevant span is enough, less is not judged.
        ([(0, 100, 1)], {"half": (50, 150), "less": (51, 150), "inside": (20, 40)}, {"half": 1}),
        ([(0, 100, 3), (200, 300, 1)], {"both": (0, 300)}, {"both": 3}),
        # What others found not relevant is not relevant, if it is nine tenths of it.
        ([(0, 100, 0), (100, 200, 0)], {"over": (50, 150), "beyond": (150, 230)}, {"over": 0}),
        ([(0, 100, 0)], {"most": (10, 110), "too_little": (11, 111)}, {"most": 0}),
        # The same span keeps its label, whatever else it covers.
        ([(0, 100, 0), (20, 120, 1)], {"same": (0, 100), "other": (21, 120)}, {"same": 0, "other": 1}),
        # Where the evidence is known, all of one place of it counts, and the rest of the document is empty.
        (
            [(0, 100, 1, "ok", "10-20 80-90")],
            {"first": (0, 30), "cut": (15, 60), "second": (75, 100), "empty": (20, 80)},
            {"first": 1, "cut": 0, "second": 1, "empty": 0},
        ),
        ([(0, 100, 1, "ok", "title")], {"titled": (500, 600)}, {"titled": 1}),
    ],
)
def test_labels_are_carried_by_what_a_document_covers(
    labels: list[tuple[object, ...]], docs: dict[str, tuple[int, int]], expected: dict[str, float]
) -> None:
    assert values(carried(labels, docs)) == expected


def test_what_cannot_be_carried_is_counted() -> None:
    found = carried([(0, 100, 1), (200, 300, 1), (400, 500, 0)], {"a": (0, 60), "b": (0, 20), "c": (290, 310)})
    assert values(found) == {"a": 1}
    assert (found.lost, found.unjudged, found.unplaced) == (1, 2, 0)
    assert values(carried([(0, 100, 1)], {"a": (0, 20)}, cover=0.2)) == {"a": 1}


@given(st.dictionaries(st.tuples(st.integers(0, 30), st.integers(1, 30)), st.sampled_from([0, 1, 2, None]), min_size=1))
def test_labels_carried_to_the_same_cut_are_the_same_labels(made: dict[tuple[int, int], int | None]) -> None:
    docs = MemoryDocs([Doc(f"{a}-{n}", "", "", "p", a, a + n) for a, n in made])
    rows = [("q", f"{a}-{n}", label, "refused" if label is None else "ok") for (a, n), label in made.items()]
    frame = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance", "status"])
    labeling = Labeling("people", Scale.parse("grades:2"), frame.astype({"relevance": "float64"}))
    spanned = Labeling("people", labeling.scale, stated(labeling, docs))
    found = jk.carry(spanned, docs, name="people").labeling
    columns = list(LABELS.columns)
    pd.testing.assert_frame_equal(found.table[columns], labeling.table[columns])
    assert found.scale == labeling.scale


def test_bad_input_to_carry_is_said() -> None:
    labels = pd.DataFrame({"query_id": ["q"], "page_id": ["p"], "start": [0], "end": [9], "relevance": [0.5]})
    docs = [Doc("d", "", "", "p", 0, 9)]
    with pytest.raises(DataError, match="5 is not a whole number: declare what decimals mean with a scale"):
        jk.carry(labels, docs)
    assert len(jk.carry(labels, docs, scale="unit").labeling) == 1
    with pytest.raises(UsageError, match="the documents lack their place on a page"):
        jk.carry(labels, [Doc("d", "")], scale="unit")
    with pytest.raises(UsageError, match="the labels lack their place on a page"):
        jk.carry(labels.assign(page_id=""), docs, scale="unit")
    with pytest.raises(DataError, match=r"evidence must be named like 'title 120-127 340-347', .* not 'here'"):
        jk.carry(labels.assign(evidence="here"), docs, scale="unit")
    with pytest.raises(DataError, match="no such file"):
        jk.carry("none.csv", docs)
    with pytest.raises(UsageError, match="cover, the share"):
        jk.carry(labels, docs, cover=0)
    with pytest.raises(DataError, match="lacks column 'page_id'"):
        jk.carry(labels.drop(columns="page_id"), docs)
