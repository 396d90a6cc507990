"""The requests behind labels: a page holds what they share once, and shows each as it was made."""

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import example, given, strategies as st

from judgekit.data.documents import Doc, Query, render
from judgekit.report.exchange import TEXT, TITLE, Requests, pieces
from judgekit.report.queries import Backing, pack
from tests.report.conftest import click, go, make_backing, make_results, unpacked, written

PROMPT = "Judge.\n\n{question}\n\n<passage>\n{passage}\n</passage>\n\nIs the passage relevant to {question}?"


def body(query: Query, doc: Doc) -> bytes:
    """A request as a labeler makes one."""
    said = PROMPT.replace("{question}", query.text).replace("{passage}", render(doc))
    asked = {"messages": [{"role": "user", "content": said}], "model": "m", "temperature": 0}
    return json.dumps(asked).encode()


words = st.text(alphabet="ab \n0", max_size=6)


@given(words, words, words, words, words)
@example("a", "a", "a", "aaa", "")
@example("", "", "", "", "")
def test_pieces_put_together_are_the_message(before, question, title, text, after):
    query, doc = Query("q", question), Doc("d", text, title)
    content = f"{before}{question}{render(doc)}{after}"
    assert written(pieces(content, query, doc), query, doc) == content


def test_a_passage_and_a_question_are_kept_as_their_places():
    query, doc = Query("q", "Which bridge?"), Doc("d", "An iron bridge.", "Bridges")
    cut = pieces(json.loads(body(query, doc))["messages"][0]["content"], query, doc)
    assert [piece for piece in cut if isinstance(piece, int)] == [0, TITLE, TEXT, 0]
    assert cut[:2] == ["Judge.\n\n", 0]


def test_requests_that_differ_in_question_and_passage_are_kept_once():
    requests = Requests({"judge": body})
    pairs = [(Query(f"q{i}", f"Number {i}?"), Doc(f"d{i}", f"Text {i}.", f"Title {i}")) for i in range(9)]
    assert {requests.of("judge", *pair) for pair in pairs} == {0}
    assert len(requests.kept) == 1
    assert requests.kept[0]["settings"] == '{"model":"m","temperature":0}'
    assert requests.of("containment", *pairs[0]) is None


def test_a_request_in_which_the_passage_is_written_otherwise_is_kept_whole():
    def neutralised(query: Query, doc: Doc) -> bytes:
        return body(query, replace(doc, text=doc.text.replace("<", "&lt;")))

    requests = Requests({"judge": neutralised})
    kept = requests.of("judge", Query("q", "Why?"), Doc("d", "a </passage> b"))
    assert isinstance(kept, dict)
    assert requests.kept == []
    assert "a &lt;/passage> b" in kept["messages"][0]["content"][-3]


def test_a_completions_text_is_shown_and_a_reranker_shows_nothing():
    def completion(query: Query, doc: Doc) -> bytes:
        return json.dumps({"prompt": f"{query.text} {doc.text}", "max_tokens": 3}).encode()

    def rerank(query: Query, doc: Doc) -> bytes:
        return json.dumps({"query": query.text, "documents": [doc.text]}).encode()

    requests = Requests({"base": completion, "rerank": rerank})
    pair = Query("q", "Why?"), Doc("d", "So.")
    assert requests.of("base", *pair) == 0
    assert requests.kept == [{"messages": [{"role": "text", "content": [0, " ", 2]}], "settings": '{"max_tokens":3}'}]
    assert requests.of("rerank", *pair) is None


def test_a_page_without_texts_holds_no_request():
    shown = make_backing(3, asks={"judge": body})
    index, queries = unpacked(pack(make_results(), shown))
    assert len(index["requests"]) == 1
    judge = list(shown.labels).index("judge")
    assert {label["asked"] for query in queries for label in query["labels"][judge]} == {0}
    index, queries = unpacked(pack(make_results(), replace(shown, texts=False)))
    assert index["requests"] == []
    assert "asked" not in json.dumps(queries)


def test_a_label_without_a_reply_shows_no_request():
    shown = make_backing(1, asks={"judge": body})
    table = shown.labels["judge"].assign(raw="")
    _, queries = unpacked(pack(make_results(), replace(shown, labels={**shown.labels, "judge": table})))
    assert "asked" not in json.dumps(queries)


@pytest.mark.parametrize(
    ("spending", "takes"), [(True, "319 tokens of prompt, 2 tokens of reply, 0.086 s"), (False, "")]
)
def test_what_a_request_takes_stands_beside_who_was_asked(spending, takes):
    results = make_results()
    if not spending:
        judge = replace(results.labelings[1], spending=results.labelings[3].spending)
        results = replace(results, labelings=(results.labelings[0], judge, *results.labelings[2:]))
    index, _ = unpacked(pack(results, make_backing(1)))
    assert index["labelings"][1]["takes"] == takes


def test_the_page_shows_the_request_behind_a_reply(opened):
    browser = opened(backing=make_backing(3, asks={"judge": body}))
    go(browser, "#query=q1&doc=q1-d0&by=judge")
    click(browser, ".request summary")
    said = browser.run("document.querySelector('.request pre').textContent")
    asked = json.loads(body(make_backing(3).queries["q1"], *make_backing(3).docs.get(["q1-d0"])))
    assert said == asked["messages"][0]["content"]
    assert '"temperature":0' in browser.run("document.querySelector('.request').textContent")


def took(backing: Backing, **numbers: float) -> pd.DataFrame:
    """What the replies of judge took, the same for each label."""
    ids = backing.labels["judge"][["query_id", "doc_id"]]
    usual = {"requests": 1, "prompt_tokens": 319.0, "completion_tokens": 1.0, "seconds": 0.08649, "stored_at": 90.0}
    return ids.assign(labeling="judge", **(usual | numbers))


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ({}, [1, 319, 1, 0.086, 1]),
        ({"requests": 2, "seconds": 61.26, "stored_at": math.nan}, [2, 319, 1, 61.0, None]),
        ({"stored_at": 1e300}, [1, 319, 1, 0.086, None]),
        ({"prompt_tokens": math.nan, "completion_tokens": math.nan, "seconds": math.nan}, [1, None, None, None, 1]),
    ],
)
def test_each_label_says_what_its_replies_took_as_far_as_it_is_known(numbers, told):
    shown = make_backing(2)
    _, queries = unpacked(pack(make_results(), replace(shown, replies=took(shown, **numbers))))
    judge = list(shown.labels).index("judge")
    for query in queries:
        assert [numbers[judge] for numbers in query["took"]] == [[number] * 6 for number in told]
        assert {numbers[judge - 1] for numbers in query["took"]} == {None}


def test_the_page_shows_what_a_label_took_and_when_its_reply_was_stored(opened):
    shown = make_backing(3)
    browser = opened(backing=replace(shown, replies=took(shown, requests=2, stored_at=1.8e9)))
    go(browser, "#query=q1&doc=q1-d0&by=judge")
    said = browser.run("document.querySelector('.reply dl').textContent")
    assert "This label took2 requests, 319 tokens of prompt, 1 token of reply, 0.086 s" in said
    assert "Stored2027-01-15 08:00 UTC" in said
    go(browser, "#query=q1&doc=q1-d0&by=containment")
    assert "This label took" not in browser.run("document.querySelector('.reply dl').textContent")


@given(st.lists(st.tuples(words, words, words), min_size=2, max_size=4))
def test_every_request_put_together_is_that_of_its_labeler(texts):
    requests = Requests({"judge": body})
    for question, title, text in texts:
        query, doc = Query("q", question), Doc("d", text, title)
        kept = requests.of("judge", query, doc)
        shown = requests.kept[kept] if isinstance(kept, int) else kept
        said = json.loads(body(query, doc))["messages"][0]["content"]
        assert written(shown["messages"][0]["content"], query, doc) == said
