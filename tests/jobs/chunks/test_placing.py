import pytest
from hypothesis import given, strategies as st

import judgekit as jk
from judgekit.data.documents import Doc
from judgekit.errors import DataError

PAGE = "The harbour froze in 1740, and  nobody sailed.\nIn 1741 the ice broke, and boats went out to sea again."
PAGES = [Doc("p", PAGE), Doc("q", "A page about something else entirely, with words of its own and no boats.")]


def spans(docs: list[Doc]) -> dict[str, tuple[object, ...]]:
    return {d.doc_id: (d.page_id, d.start, d.end) for d in jk.chunks(PAGES, docs).docs}


def test_documents_are_found_letter_by_letter_but_for_white_space_or_where_the_text_is_alike() -> None:
    docs = [
        Doc("exact", "In 1741 the ice broke, and boats went out", "", "p"),
        Doc("spaces", "froze in 1740, and nobody sailed. In 1741", "", "p"),
        Doc("alike", "In 1741 the ice brake, and boats went out t0 sea again.", "", "p"),
        Doc("named", "ice", "", "p"),
        Doc("homeless", "the ice"),
        Doc("alien", "nothing of this stands on any page that there is", "", "p"),
        Doc("lost", "words", "", "r"),
        Doc("empty", " ", "", "p"),
    ]
    placed = jk.chunks(PAGES, docs)
    assert spans(docs) == {
        "exact": ("p", 47, 88),
        "spaces": ("p", 12, 54),
        "alike": ("p", 47, 102),
        "named": ("p", 59, 62),
        "homeless": (None, None, None),
        "alien": ("p", None, None),
        "lost": ("r", None, None),
        "empty": ("p", None, None),
    }
    assert (placed.exact, placed.alike) == (3, 1)
    assert placed.unplaced == {
        "homeless": "it names no page (page_id)",
        "alien": "its text was not found on its page",
        "lost": "its page 'r' is missing from the pages",
        "empty": "its text was not found on its page",
    }


@given(st.integers(0, 30), st.integers(5, 40))
def test_every_stretch_of_a_page_is_found_where_it_stands(first: int, length: int) -> None:
    words = [f"w{i}" for i in range(40)]
    text, piece = " ".join(words), " ".join(words[first : first + length])
    (doc,) = jk.chunks([Doc("p", text)], [Doc("d", piece, "", "p")]).docs
    assert text[doc.start : doc.end] == piece


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (("p", 92, 103), "ends at 103 on page 'p', which has 102 characters"),
        (("r", 0, 10), "page 'r', which is missing from the pages"),
        (("p", 0, 10), "holds another text at 0 to 10"),
    ],
)
def test_spans_outside_of_their_pages_are_errors(span: tuple[str, int, int], expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        jk.chunks(PAGES, [Doc("d", "sea again.", "", *span)])


@pytest.mark.parametrize(("every", "found"), [(12, True), (8, False)])
def test_a_text_is_alike_if_nine_tenths_of_it_are(every: int, found: bool) -> None:
    page = "".join(chr(200 + place) for place in range(100))
    text = "".join("!" if place % every == 4 else letter for place, letter in enumerate(page))
    (doc,) = jk.chunks([Doc("p", page)], [Doc("d", text, "", "p")]).docs
    assert (doc.start is not None) == found
