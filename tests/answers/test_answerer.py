"""Answering end to end: what is asked, in which order, within which budget, and what comes of it."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from judgekit.answers.answerer import Answerer, fit, make_answerer
from judgekit.answers.reading import Answer
from judgekit.data.documents import Doc, Query, Unit, estimate_tokens, render
from judgekit.data.tables import Status
from judgekit.errors import UsageError
from judgekit.wire.types import Endpoint, Failure, Outcome, Request
from tests.labelers.scripted import CUT, REFUSED, Here, Says, outcome

QUERY = Query("q1", "Which city?", ("Paris",))
DOCS = tuple(Doc(f"d{i}", f"text {i}", f"title {i}") for i in range(5))
UNIT = Unit(QUERY, DOCS)


def answerer(prompt: str = "answer-short", here: Here | None = None, **options: Any) -> Answerer:
    here = here or Here()
    return make_answerer(here.endpoint(None), prompt, here, **options)


def content(request: Request) -> str:
    text: str = json.loads(request.body)["messages"][-1]["content"]
    return text


def shown(request: Request) -> list[str]:
    return re.findall(r"<passage>\n(?:title \d\n)?(.*?)\n</passage>", content(request), re.DOTALL)


def ask(program: Answerer, unit: Unit, says: Sequence[Says]) -> tuple[Answer, list[list[Request]]]:
    replies: list[Outcome] = []
    waves: list[list[Request]] = []
    while wave := program.requests(unit, replies):
        waves.append(wave)
        replies += [outcome(request, says[len(replies) + i]) for i, request in enumerate(wave)]
    return program.answer(unit, replies), waves


def test_documents_stand_in_the_prompt_as_they_are_ranked() -> None:
    answer, ((request,),) = ask(answerer(), UNIT, ["Paris"])
    assert shown(request) == [f"text {i}" for i in range(5)]
    assert (answer, request.sample) == (Answer("Paris", raw="Paris"), 0)
    text = content(request)
    assert text.index("unknown") < text.index("Which city?") < text.index("title 0\ntext 0")


def test_documents_can_be_reversed_or_shuffled() -> None:
    ranked, reversed_, shuffled = (
        shown(answerer(mode=mode).requests(UNIT, [])[0]) for mode in ("together", "reversed", "shuffled")
    )
    assert reversed_ == ranked[::-1]
    assert sorted(shuffled) == ranked
    assert shuffled not in (ranked, reversed_)


@given(st.integers(1, 5), st.permutations(DOCS))
def test_a_shuffled_order_depends_on_nothing_but_query_and_documents(k: int, docs: list[Doc]) -> None:
    program = answerer(mode="shuffled")
    whole = [d.doc_id for d in program.shown(Unit(QUERY, tuple(docs)))]
    assert whole == [d.doc_id for d in program.shown(UNIT)]
    part = [d.doc_id for d in program.shown(Unit(QUERY, tuple(docs[:k])))]
    assert part == [d for d in whole if d in part]


@pytest.mark.parametrize("prompt", ["answer-short", "answer-long", "classify-claim"])
@pytest.mark.parametrize("mode", ["together", "vote"])
def test_without_documents_the_closed_book_prompt_is_asked_and_shows_no_passage(prompt: str, mode: str) -> None:
    _, ((request,),) = ask(answerer(prompt, mode=mode), Unit(QUERY, ()), ["REFUTES"])
    assert not re.search("passage|document", content(request), re.IGNORECASE)
    assert "Which city?" in content(request)


def test_the_title_can_be_left_out() -> None:
    assert "title 0" not in content(answerer(here=Here(fields="text")).requests(UNIT, [])[0])


@pytest.mark.parametrize(
    ("says", "status", "reason"),
    [
        ([REFUSED], Status.REFUSED, "the model declined: I may not"),
        (["<think>Paris?"], Status.UNPARSED, "the reply is empty but for reasoning"),
        ([CUT, CUT], Status.TRUNCATED, "the reply is not complete (finish_reason: length)"),
        ([Failure("k", Status.FAILED, "it is down")], Status.FAILED, "it is down"),
    ],
)
def test_an_answer_that_could_not_be_had_says_why(says: list[Says], status: Status, reason: str) -> None:
    answer, _ = ask(answerer(), UNIT, says)
    assert (answer.text, answer.status, answer.reason) == ("", status, reason)


# One document at a time.


@pytest.mark.parametrize(
    ("mode", "docs", "most"), [("together", 5, 2), ("vote", 1, 2), ("vote", 5, 10), ("merge", 1, 2), ("merge", 5, 12)]
)
def test_each_request_may_be_sent_twice_and_several_answers_are_merged(mode: str, docs: int, most: int) -> None:
    assert answerer(mode=mode).most(Unit(QUERY, DOCS[:docs])) == most


def test_answers_per_document_are_merged_by_vote() -> None:
    said = ["unknown", "Rome", "the Paris", "Paris", "Rome"]
    answer, waves = ask(answerer(mode="vote"), UNIT, said)
    assert (answer.text, [len(w) for w in waves], json.loads(answer.raw)) == ("Rome", [5], said)
    for says, text, abstained in ((said[:3], "Rome", False), (["unknown", "I don't know"], "unknown", True)):
        answer, _ = ask(answerer(mode="vote"), Unit(QUERY, DOCS[: len(says)]), says)
        assert (answer.text, answer.abstained) == (text, abstained)


def test_an_answer_per_document_that_is_missing_makes_the_whole_missing() -> None:
    answer, _ = ask(answerer(mode="vote"), Unit(QUERY, DOCS[:3]), ["Paris", REFUSED, "Paris"])
    assert answer.status is Status.REFUSED
    assert answer.reason == "1 of 3 documents gave no answer: the model declined: I may not"
    again, waves = ask(answerer(mode="vote"), Unit(QUERY, DOCS[:3]), ["Paris", CUT, "Rome", "Paris"])
    assert again.text == "Paris"
    assert [len(w) for w in waves] == [3, 1]


@pytest.mark.parametrize("prompt", ["answer-short", "answer-long"])
def test_answers_per_document_are_merged_by_the_model(prompt: str) -> None:
    said = ["unknown", "Rome", "the Paris", "Paris", "Oslo"]
    program = answerer(prompt, mode="merge")
    answer, waves = ask(program, UNIT, [*said, "merged"])
    assert (answer.text, [len(w) for w in waves]) == ("merged", [5, 1])
    assert re.findall("<answer>(.*?)</answer>", content(waves[1][0])) == ["Rome", "the Paris", "Oslo"]
    for count, text in ((2, "Rome"), (1, "unknown")):
        answer, waves = ask(program, Unit(QUERY, DOCS[:count]), said[:count])
        assert (answer.text, [len(w) for w in waves]) == (text, [count])


def test_a_merging_that_was_cut_off_is_asked_for_once_more_and_none_while_an_answer_is_missing() -> None:
    for says, status, sizes in (
        (["Rome", CUT, "Paris", CUT, "Rome"], Status.OK, [2, 1, 1, 1]),
        (["Rome", "Paris", CUT, CUT], Status.TRUNCATED, [2, 1, 1]),
        (["Rome", REFUSED], Status.REFUSED, [2]),
        (["Rome", CUT, CUT], Status.TRUNCATED, [2, 1]),
    ):
        answer, waves = ask(answerer(mode="merge"), Unit(QUERY, DOCS[:2]), says)
        assert (answer.status, [len(w) for w in waves]) == (status, sizes)
        assert answer.text == ("Rome" if status is Status.OK else "")


# The context budget.


def test_what_does_not_fit_is_cut_and_counted() -> None:
    docs = tuple(Doc(f"d{i}", " ".join(f"w{i}{j:02}" for j in range(60))) for i in range(4))
    answer, ((request,),) = ask(answerer(context_tokens=120), Unit(QUERY, docs), ["Paris"])
    first, second = shown(request)
    assert first == docs[0].text
    assert docs[1].text.startswith(f"{second} ")
    used = estimate_tokens(first) + estimate_tokens(second)
    assert answer.cut_tokens == 4 * estimate_tokens(first) - used


def test_the_worst_ranked_go_first_whatever_the_order_in_the_prompt() -> None:
    docs = tuple(Doc(f"d{i}", f"text {i} " * 20) for i in range(3))
    unit = Unit(QUERY, docs)
    ranked, reversed_ = (answerer(context_tokens=80, mode=mode).shown(unit) for mode in ("together", "reversed"))
    assert [d.doc_id for d in ranked] == ["d0", "d1"]
    assert reversed_ == ranked[::-1]


def test_one_document_at_a_time_has_the_whole_budget_each() -> None:
    docs = tuple(Doc(f"d{i}", "word " * 60) for i in range(3))
    answer, ((*requests,),) = ask(answerer(context_tokens=50, mode="vote"), Unit(QUERY, docs), ["Paris"] * 3)
    (size,) = {estimate_tokens(shown(request)[0]) for request in requests}
    assert 40 <= size <= 50
    assert answer.cut_tokens == 3 * (75 - size)


bodies = st.lists(st.sampled_from(["word", "Wörter", "東京", "x"]), max_size=60).map(" ".join)
collections = st.lists(st.builds(Doc, st.just("d"), bodies, st.sampled_from(["", "a title"])), max_size=6)


@given(collections, st.integers(1, 120))
def test_a_budget_is_kept_from_the_best_document_down(docs: list[Doc], tokens: int) -> None:
    fitting = fit(docs, "title+text", tokens)
    assert sum(estimate_tokens(render(doc)) for doc in fitting) <= tokens
    for kept, doc in zip(fitting[:-1], docs, strict=False):
        assert kept == doc
    if fitting:
        assert docs[len(fitting) - 1].text.startswith(fitting[-1].text)
    assert fit(docs, "title+text", None) == tuple(docs)


def test_a_budget_too_small_for_any_document_is_closed_book_and_says_what_was_cut() -> None:
    unit = Unit(QUERY, (Doc("d", "word " * 60),))
    answer, ((request,),) = ask(answerer(context_tokens=3), unit, ["Paris"])
    assert shown(request) == []
    assert answer.cut_tokens == 75


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ("closed-book", {}, "must answer from passages"),
        ("answer-short", {"mode": "random"}, "choose from together, reversed, shuffled, vote, merge"),
        ("classify-claim", {"mode": "merge"}, "merged by the mode vote"),
    ],
)
def test_mistakes_end_in_a_sentence(prompt: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        answerer(prompt, **options)


OWN = '{}\nkind = "answer"\nuser = "{{question}} from {{passages}}"\n[output]\ntype = "short"\n'


@pytest.mark.parametrize(
    ("key", "sibling", "message"),
    [
        ("closed_book", "answer-short", "does not answer without passages"),
        ("closed_book", "binary", r"does not answer without passages \(kind: judge\)"),
        ("closed_book", "closed-book-long", "gives a long answer, 'own.toml' a short one"),
        ("merge", "closed-book", r"does not merge answers \(kind: answer\)"),
        ("merge", "merge-long", "gives a long answer, 'own.toml' a short one"),
    ],
)
def test_a_sibling_has_to_fit(key: str, sibling: str, message: str, tmp_path: Path) -> None:
    siblings = {"closed_book": "closed-book", key: sibling}
    (tmp_path / "own.toml").write_text(OWN.format("\n".join(f'{k} = "{name}"' for k, name in siblings.items())))
    with pytest.raises(UsageError, match=message):
        answerer("own.toml", Here(tmp_path), mode="merge")


def test_prompts_of_ones_own_are_found_beside_the_experiment(tmp_path: Path) -> None:
    sibling = 'kind = "{}"\nuser = "just {}"\n[output]\ntype = "short"\n'
    (tmp_path / "closed.toml").write_text(sibling.format("answer", "{question}"))
    (tmp_path / "merge.toml").write_text(sibling.format("merge", "{answers} to {question}"))
    (tmp_path / "own.toml").write_text(OWN.format('closed_book = "./closed.toml"\nmerge = "./merge.toml"'))
    program = answerer("own.toml", Here(tmp_path), mode="merge")
    assert content(program.requests(Unit(QUERY, ()), [])[0]) == "just Which city?"
    _, ((first, _), (merging,)) = ask(program, Unit(QUERY, DOCS[:2]), ["Rome", "Paris", "Rome"])
    assert content(first).startswith("Which city? from <passage>")
    assert content(merging) == "just <answer>Rome</answer>\n<answer>Paris</answer> to Which city?"


def test_an_application_is_asked_once_with_the_question_and_its_documents() -> None:
    program = make_answerer(Endpoint("mine", target=shown), "answer-short", Here())
    (request,) = program.requests(UNIT, [])
    documents = [{"doc_id": doc.doc_id, "title": doc.title, "text": doc.text} for doc in DOCS]
    assert json.loads(request.body) == {"question": QUERY.text, "documents": documents}
    assert program.requests(UNIT, [outcome(request, CUT)]) == []
    assert program.most(UNIT) == 1
    turns = ({"role": "user", "content": "Which city?"},)
    (request,) = program.requests(Unit(Query("q", "Which city?", messages=turns), ()), [])
    assert json.loads(request.body) == {"question": "Which city?", "documents": [], "messages": list(turns)}
    with pytest.raises(UsageError, match="takes no prompt: leave out the mode"):
        make_answerer(program.endpoint, "answer-short", Here(), mode="vote")
