"""What is read though nobody asked for it in that form: much of what models say plainly, and nothing wrongly."""

import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from string import Template

import pytest

from judgekit.data.documents import Doc
from judgekit.reading import ambiguity
from judgekit.reading.echo import PromptEcho
from judgekit.reading.prompts import Prompt, load_prompt, neutral, passages
from judgekit.reading.verdict import Unread, Verdict, stated
from judgekit.wire.types import Reply
from tests.reading import written
from tests.reading.test_verdict import REPLIES, SHIPPED

PROMPTS = {name: load_prompt(name) for name in SHIPPED}
GRADED = ("line", "number", "json")


def read(prompt: Prompt, reply: str, values: dict[str, str]) -> Verdict | None:
    body = json.dumps({"choices": [{"message": {"content": reply}, "finish_reason": "stop"}]})
    verdict = stated(prompt, Reply("k", body), lambda: values)
    return None if isinstance(verdict, Unread) else verdict


def filled(question: str, title: str, text: str) -> dict[str, str]:
    return {"question": neutral(question), "passages": passages([Doc("d", text, title)])}


def asked(reply: written.Written) -> tuple[str | None, str]:
    """Return the verdict that is read of a reply, and how."""
    prompt = PROMPTS[reply.prompt]
    values = filled(reply.question, reply.title, reply.text)
    verdict = read(prompt, reply.reply, {name: values[name] for name in prompt.placeholders})
    if verdict is None:
        return None, "second request"
    return next(word for word, value in prompt.output.form.options if value == verdict.value), verdict.by


LEAST = {"yes/no": 0.89, "grade": 0.88}
"""The share of plain verdicts that is read, of replies about the sample."""


def read_all(seed: int, rounds: int, folder: Path = written.SAMPLE, least: Mapping[str, float] = LEAST) -> None:
    """Read the replies of all styles, refuse a wrong label, and count what is read of plain verdicts."""
    plain, said = Counter[str](), Counter[str]()
    for reply in written.replies(seed, rounds, folder):
        verdict, _ = asked(reply)
        assert verdict is None or verdict in reply.may, (reply.style, reply.prompt, reply.reply, verdict)
        if reply.plain:
            form = reply.style.partition(":")[0]
            kind = "grade" if form in GRADED else form
            plain[kind] += 1
            said[kind] += verdict is not None
    shares = {kind: said[kind] / plain[kind] for kind in plain}
    assert shares["yes/no"] >= least["yes/no"]
    assert shares["grade"] >= least["grade"]
    both = {kind: (plain[kind], said[kind]) for kind in ("yes/no", "grade")}
    requests = 1 + sum(count - read for count, read in both.values()) / sum(count for count, _ in both.values())
    assert requests <= 1.15


def test_plain_verdicts_are_read_and_none_wrongly() -> None:
    read_all(1, 1)


@pytest.mark.many
@pytest.mark.parametrize("seed", range(20, 26))
def test_many_plain_verdicts_are_read_and_none_wrongly(seed: int) -> None:
    read_all(seed, 6)


@pytest.mark.many
@pytest.mark.parametrize("seed", range(20, 26))
def test_the_same_holds_for_passages_of_a_larger_collection(seed: int, larger_collection: Path) -> None:
    read_all(seed, 6, larger_collection, {"yes/no": 0.92, "grade": 0.85})


def test_the_same_holds_for_the_replies_of_before() -> None:
    values = filled("when was the bridge built", "", "The bridge was opened in 1932 and carries trains.") | {
        "references": "1932",
        "answer": "in 1932",
    }
    for reply in (reply for reply in REPLIES if reply["prompt"] in SHIPPED):
        prompt = PROMPTS[reply["prompt"]]
        verdict = read(prompt, reply["reply"], {name: values[name] for name in prompt.placeholders})
        assert verdict is None or verdict.value == reply["label"], reply


def test_doubt_is_false_in_at_most_one_of_a_hundred_reasons_about_passages() -> None:
    kinds = {"yes": "binary", "no": "binary", "grade0": "graded", "grade1": "graded", "grade2": "graded"}
    sources, reasons, rng = written.sources(), written.declared()["reasons"], random.Random(4)
    tried = doubted = 0
    for _ in range(3_000):
        kind = rng.choice([*kinds])
        source = rng.choice(sources)
        text = Template(rng.choice(reasons[kind])).substitute(
            written.slots(source, rng.choice(written.sentences(source.text)))
        )
        prompt, values = PROMPTS[kinds[kind]], filled(source.question, source.title, source.text)
        form = prompt.output.form
        shown = PromptEcho("\n".join(message["content"] for message in prompt.messages(values)))
        value = {"yes": 1, "no": 0}.get(kind, int(kind[-1]) if form.graded else 0)
        tried += source.answers_it == (kind in ("yes", "grade2"))
        doubted += source.answers_it == (kind in ("yes", "grade2")) and ambiguity.contests(
            shown.own(text), form.values, value, form.graded, True
        )
    assert tried > 1_000
    assert doubted / tried <= 0.01


ALIKE = [
    (
        "strict",
        "**Relevant: Yes**\n\nReason: there is enough information.",
        "**Relevant: No**\n\nReason: not enough information.",
    ),
    ("strict", "Relevant: Yes\n\nReason: in the original text.", "Relevant: No\n\nReason: not in the original text."),
    ("binary", "The passage is relevant: Yes", "The passage is relevant: No"),
    ("binary", "Relevant to the question? Yes", "Relevant to the question? No"),
    (
        "binary",
        "Oui, le passage est pertinent car il parle du pont.",
        "Non, le passage n'est pas pertinent car il ne parle pas du pont.",
    ),
    (
        "graded-json",
        '{"reason": "The inventor is told, so 3 out of 3.", "score": 3}',
        '{"reason": "The inventor is not told, so 0 out of 3.", "score": 0}',
    ),
    (
        "graded",
        "Intent: The year.\nMatch: It is named.\nTrust: Could be a good source.\nFinal grade: 3",
        "Intent: The year.\nMatch: It is missing.\nTrust: I see no reason for doubt.\nFinal grade: 0",
    ),
    (
        "criteria",
        "3\n\nLet me know if you would like me to grade another passage!",
        "0\n\nLet me know if you would like me to grade another passage!",
    ),
]


@pytest.mark.parametrize(("name", "high", "low"), ALIKE)
def test_a_verdict_is_read_on_both_sides_where_the_question_asks_for_yes_or_no(name: str, high: str, low: str) -> None:
    values = filled("is the bridge old", "Old Bridge", "The bridge over the river was opened in 1932. It is grey.")
    most = 1 if PROMPTS[name].output.type == "yes/no" else 3
    found = [read(PROMPTS[name], reply, values) for reply in (high, low)]
    assert [verdict and verdict.value for verdict in found] == [most, 0]


BRIDGE = filled("when was the bridge built", "Old Bridge", "The bridge over the river was opened in 1932. It is grey.")
SPEAKS_AGAINST = [
    ("binary", "Sono."),
    ("binary", "The passage is a book, No"),
    ("binary", "million people. No"),
    ("binary", "Irrelevant: No"),
    ("binary", "Not relevant: Yes"),
    ("binary", "The passage is relevant to cats."),
    ("binary", "An earlier judge wrote: the passage states the year.\n\nYes"),
    ("criteria", "Grade: 2\n\nIt is about the bridge.\nmillion people"),
    ("criteria", "The bridge over the river was opened in 1932.\n\n2"),
    ("criteria", "The passage mentions the bridge. 2"),
    ("criteria", "2\n\nThe passage has nothing to do with the question."),
    ("binary", "It gives the full answer.\nNo"),
    ("useful", "The passage is relevant."),
    ("useful", "Not relevant."),
    ("criteria", "3 (correct, but with much that is about other things)"),
    ("graded", "Grade: 2\n\nThat is too high."),
    ("binary", "Yes, if the question is about the film. The passage states the date."),
    ("binary", "Yes, this passage is about cats. The question is about dogs."),
    ("binary", "The passage is relevant.\n\nNo"),
    ("binary", "Yes: the passage leaves the year out."),
    ("binary", "No, the passage is spot on."),
    ("binary", "Yes — at first glance. A closer look shows it is about a railway."),
    ("binary", "Yes.\n❌"),
    ("binary", "Another reviewer replied as follows.\n\nYes"),
    ("binary", "Yes, aber die Passage über the bridge over the river beantwortet die Frage nicht."),
    ("binary", "Relevance: No. of times the answer is stated: 3"),
    ("binary", 'The passage says "\n\nYes'),
    ("binary", "Yes, says the passage."),
    ("binary", "Yes. It is not relevant."),
    ("strict", "Yes. It is not relevant."),
    ("binary", '{"answer": "Yes", "reason": "It gives no year."}'),
    ("binary", '{"answer": "Yes", "confidence": "low"}'),
    ("binary", '{"answer": "No", "verdict": "No"}'),
    ("criteria", "Grade: 3, lowered since the passage is short."),
    ("criteria", "3\n\nThe passage has nothing to do with it."),
    ("criteria", "0\n\nIt is a full answer to the question."),
    ("graded", "The maximum is 5 here.\n\nGrade: 3"),
    ("graded", "The highest possible is best.\n\nGrade: 3"),
    ("graded", "The answer is 3."),
    ("binary", "The passage is relevant to the question of when it was built but does not answer it."),
    ("binary", "The passage does not contain no relevant information."),
    ("binary", "No. The passage is relevant to the question about the year."),
    ("criteria", "Correct: no\n\nGrade: 3"),
    ("binary", "Yes. The passage talks about the colour, not the year."),
    ("binary", "The passage gives the year, and the answer is Yes.\n\nAnswer: No"),
    ("binary", "The passage is about whales. No.\n\nAnswer: Yes"),
    ("binary", "The passage is not relevant: Yes"),
    ("binary", "The passage is relevant: no year is missing."),
    ("binary", "Oui, le passage n'est pas pertinent."),
    ("strict", "Relevant: Yes\n\nReason: not enough information."),
    ("strict", "Relevant: Yes\n\nReason: not in the original text."),
    ("graded", "Intent: The year.\nMatch: All of it.\nTrust: Could be a 3.\nFinal grade: 2"),
    ("graded", "Intent: The year.\nMatch: All of it.\nTrust: I see no sense in the grade below.\nFinal grade: 2"),
    ("graded-json", '{"reason": "Not worth 3 out of 3.", "score": 3}'),
    ("graded-json", '{"reason": "All is there, so 2 out of 3.", "score": 3}'),
    ("graded-json", '{"reason": "This was invented.", "score": 3}'),
    ("graded-json", '{"reason": "I was told to say so.", "score": 3}'),
    ("criteria", "3\n\nLet me know if you would like another grade."),
    ("binary", "Yes. It states only the colour of the bridge."),
    ("binary", "Yes. The only fact given is the colour."),
    ("binary", "The passage is relevant: not at all."),
    ("binary", "The passage is relevant: it is not."),
    ("binary", "He asked whether it is old, so the answer is Yes."),
    ("binary", "It is hard to say yes."),
    ("binary", "No. However, the passage is another matter: it names the year."),
    ("binary", "1. It actually answers the question: 1932."),
    ("criteria", "Correct: 1"),
    ("graded", "Relevance: 2\nTrust: 1"),
    ("binary", "I won't say Yes."),
    ("binary", "Say yes."),
    ("binary", "Your answer was Yes."),
    ("binary", "If it named the year, it would be relevant."),
    ("binary", "If it named the year, the answer would be Yes."),
    ("binary", "I doubt that it is relevant."),
    ("binary", "The question is not relevant."),
    ("binary", "Others would get a No; this one gets a Yes."),
    ("binary", "Is it not relevant: no"),
    ("binary", "Not relevant? Yes."),
    ("binary", 'The passage contains {"answer": "Yes"}'),
    ("graded", "I'd give it a 3 if it named the month."),
    ("graded", "Give it a 3."),
    ("graded", "Final grade: 0 (lenient) / 2 (strict)"),
    ("graded-json", 'It is not {"score": 3}'),
]


@pytest.mark.parametrize(("name", "reply"), SPEAKS_AGAINST)
def test_what_speaks_against_a_verdict_leaves_it_unread(name: str, reply: str) -> None:
    assert read(PROMPTS[name], reply, BRIDGE) is None


@pytest.mark.parametrize("word", ["Yes", "No"])
def test_a_verdict_said_twice_may_still_be_the_answer_to_the_question(word: str) -> None:
    values = filled("Is the bridge old?", "Old Bridge", "The bridge over the river was opened in 1932.")
    assert (
        read(PROMPTS["binary"], f"It was opened in 1932, and the answer is {word}.\n\nAnswer: {word}", values) is None
    )


def test_a_verdict_in_the_words_of_the_passage_is_unread() -> None:
    reply = "It does not state the year. The answer is no."
    assert read(PROMPTS["binary"], reply, BRIDGE) == Verdict(0, by="sentence")
    assert read(PROMPTS["binary"], reply, filled("when", "", "Is it old? The answer is no, he said.")) is None


def test_a_reason_for_the_contrary_leaves_a_verdict_unread() -> None:
    source = next(source for source in written.sources() if source.answers_it)
    values = filled(source.question, source.title, source.text)
    reasons = written.declared()["reasons"]
    for reason in reasons["no"]:
        text = Template(reason).substitute(written.slots(source, written.sentences(source.text)[0]))
        assert read(PROMPTS["binary"], f"Yes. {text}", values) is None, text
        for claim in ("It names what is asked for.", "There is no doubt: it is relevant.", "It gives the full answer."):
            assert read(PROMPTS["binary"], f"No. {text} {claim}", values) is None, text


SHAPES = [
    ("binary", "Relevance → no", 0),
    ("binary", "The year is stated => Yes", 1),
    ("binary", "So I'd go with a Yes.", 1),
    ("binary", "No (not relevant) – no year.", 0),
    ("binary", "The passage names the year and is therefore relevant.", 1),
    ("binary", "Yes or No: No", 0),
    ("binary", "Pertinent : non", 0),
    ("binary", "相关：否", 0),
    ("binary", "Yes.\n\nLet me know if you'd like me to judge another one!", 1),
    ("graded", "I give it a three", 3),
    ("graded", "Full answer → 3", 3),
    ("graded-json", 'Here you go:\n{"reason": "The passage names the year.", "score": 3}\nAnything else?', 3),
    ("binary", "The passage names a year.\nAnswer: Yes\nIt is stated there.\nDecision: Yes\nIt is in the passage.", 1),
    ("binary", "Yes. The passage states that it was opened in 1932.", 1),
    ("binary", "It only says that it is grey, nothing about the year.\n\nNo", 0),
    ("binary", "The passage states the year. So the answer is Yes.", 1),
    ("binary", "The passage states the year.\n\n$\\boxed{\\text{Yes}}$", 1),
    ("binary", "It does not say. <answer>No</answer>", 0),
    ("binary", '{"explanation": "The passage names the year.", "answer": "Yes"}', 1),
    ("graded", "Grade: 2 (partial answer)", 2),
    ("criteria", "The passage states the year.\n\nScore: 3/3", 3),
    ("binary", "It is a grey bridge.\nNo", 0),
    ("binary", "No. The passage talks about the colour, not the year.", 0),
    ("binary", "The passage is not relevant to the question. The answer is a song, not a question.", 0),
    ("binary", "The passage is not relevant. It is no direct quote, but rather a reference to a quote.", 0),
    ("binary", "The passage is not relevant to the question of when it was built. It is a fact but not a joke.", 0),
    ("binary", "The passage does not contain any relevant information about the question.", 0),
    ("useful", "The passage is not useful for answering the question about whether it is old.", 0),
    ("binary", "| Reason | Relevant |\n|---|---|\n| It gives the year. | Yes |", 1),
    ("binary", "아니요 (No)", 0),
    ("binary", "Yes (はい)", 1),
    ("binary", "Le passage donne la réponse.\n\nYes", 1),
    ("binary", "{'is_relevant': True, 'confidence': 0.9,}", 1),
    ("graded", "3 = full answer", 3),
    ("graded", "Intent: the year.\nMatch: It is stated.\nTrust: fine.\nFinal answer: 2", 2),
    ("criteria", "Correct: yes\nDense: yes\nDetailed: no\n\n2", 2),
    ("binary", "<b>No</b>", 0),
    ("binary", 'Yes – "The bridge over the river was opened in 1932."', 1),
    ("criteria", "最終評価: 2", 2),
    ("binary", "The passage gives the year, and the answer is Yes.\n\nAnswer: Yes", 1),
    ("binary", "The passage is about whales, and the answer is No.\n\nAnswer: No", 0),
    ("binary", "The passage states the year. So the answer is Yes.\n\nAnswer: Yes", 1),
    ("binary", "The passage is about whales. No.\n\nAnswer: No", 0),
    ("binary", "It gives the year. The answer is Yes. So the answer is Yes.\n\nAnswer: Yes", 1),
    ("binary", "**Relevant: Yes**\n\nReason: it is the only bridge over the river.", 1),
    ("binary", "The passage is not relevant: it does not say when it was built.", 0),
    ("binary", "The passage is relevant: it says when it was built.", 1),
    ("binary", "The passage is not relevant – it mentions no year.", 0),
    ("criteria", "The passage states the year. Grade: 3\n\nGrade: 3", 3),
    ("graded", "**Intent:** the year\n**Match:** It states the year.\n**Trust:** fine\n\nOverall: 3", 3),
]


@pytest.mark.parametrize(("name", "reply", "value"), SHAPES)
def test_a_plain_verdict_is_read(name: str, reply: str, value: int) -> None:
    assert read(PROMPTS[name], reply, BRIDGE) == Verdict(value, by="sentence")
    assert read(PROMPTS[name], reply, {}) is None, "what was shown must be known"


def test_what_a_reply_repeats_is_masked_and_doubt_spares_it() -> None:
    shown = PromptEcho("When was the next bridge\n built?\n“It has the lowest score of 2016, May 7.”")
    assert (
        shown.own("It asks WHEN was the next bridge built, and 'the lowest score' is May 7.")
        == f"It asks {ambiguity.MASK}, and '{ambiguity.MASK}' is {ambiguity.MASK}."
    )
    assert shown.own("the next bridge has no number 3") == "the next bridge has no number 3"
    assert PromptEcho("is it missing the passage").own("Is it missing? The passage is old") == (
        "Is it missing? The passage is old"
    )
    assert PromptEcho("No. 1 of the charts").own("No, 1") == "No, 1"
    steps = "Intent: a date.\nMatch: It says that the lowest score was final.\nTrust: fine.\nFinal grade: 3"
    values = filled("which score", "", "We know that the lowest score was final in the league.")
    assert read(PROMPTS["graded"], steps, values) == Verdict(3)
    assert read(PROMPTS["graded"], steps.replace("was final", "is 2 of 3"), values) is None


@pytest.mark.parametrize("sign", ambiguity.INVISIBLE)
def test_what_cannot_be_seen_around_a_verdict_changes_nothing(sign: str) -> None:
    for text in (f"{sign}Yes{sign}", f"Yes.{sign}", f"{sign}\n**Yes**{sign}", f"Answer: {sign}Yes"):
        assert read(PROMPTS["binary"], text, BRIDGE) == Verdict(
            1, text.index("Yes"), *(["Answer: Yes"] if ":" in text else [])
        )


@pytest.mark.parametrize(
    "piece",
    [
        *("Yes. It is. ", "- a: yes\n", "the, ", "A B ", "my answer is yes. ", '"x" ', "<answer>", "so ", "so, the "),
        *("Sure. ", "say ", "   ", "The bridge over the river? ", "> The bridge over the river. "),
    ],
)
def test_the_time_is_linear_even_for_hostile_replies(piece: str) -> None:
    def seconds(times: int) -> float:
        begun = time.process_time()
        for name in ("binary", "graded"):
            assert read(PROMPTS[name], f"{piece * times}\nYes\n2", BRIDGE) is None
        return time.process_time() - begun

    assert min(seconds(4_000) for _ in range(2)) < 40 * max(min(seconds(500) for _ in range(3)), 0.005)
