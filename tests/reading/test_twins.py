"""A label that is missing by its value biases every mean: a reply and its twin of the other value are read alike."""

import pytest

from judgekit.reading.asker import Asker
from judgekit.reading.prompts import load_prompt
from judgekit.reading.relevance import about_passage, verdicts
from judgekit.wire.types import Endpoint, Reply
from tests.reading.test_sentence import PROMPTS, filled, read

# Question, the passage that answers it and the reason; and the same for one that does not.
SOURCES = [
    (
        "Who designed the lighthouse at Korvin Point?",
        "The lighthouse of Korvin Point was drawn up by Hanna Vest and built by prisoners.",
        ["The designer is named.", "Hanna Vest is named as the engineer.", "It names the person who drew it up."],
        "Seals rest at Korvin Point in winter.",
        ["The designer is not named.", "Seals are mentioned; the designer is not.", "It does not name the engineer."],
    ),
    (
        "What is the interest rate of the Beta bond?",
        "The Beta bond pays 3 percent a year until 2031.",
        ["The rate of 3 percent is given.", "It says what the bond pays: 3 percent.", "A rate is stated outright."],
        "Banks sold the Beta bond to 40,000 small savers.",
        ["The rate is not given.", "It counts buyers and leaves the rate out.", "No rate is stated anywhere."],
    ),
    (
        "Which song opened the concert?",
        "The concert began with Old Harbour, and the crowd sang along.",
        ["Old Harbour is said to have begun it.", "The first song is told.", "It tells how the concert began."],
        "The concert was rated highest of the final series, and tickets were sold out.",
        ["The first song is not told.", "Only tickets and ratings are described.", "It never tells how it began."],
    ),
    (
        "How tall is Mount Terrel?",
        "Mount Terrel rises to 2,914 metres above the valley.",
        ["The height, 2,914 metres, is stated.", "Metres are given for the mountain.", "The text has the figure."],
        "Mount Terrel is a popular goal for ski tourers.",
        ["The height is not stated.", "Skiing is treated, no metres are given.", "The text lacks the figure."],
    ),
]
SHAPES = [
    *("{v}. {why}", "{v}, {low}", "{v} - {why}", "{v} — {why}", "{v}: {why}", "{v}\n\n{why}", "**{v}**\n\n{why}"),
    *("**{v}.** {why}", "{v}.\n{why}", "{v} because {low}", "{v}; {low}", "{v} ({why})", "{v}\n\nReason: {why}"),
    *("{v}\n\n- {why}", "{why}\n\n{v}", "{why}\n\nAnswer: {v}", "{why} Therefore, the answer is {v}.", "{low}\n{v}"),
    *("Reasoning: {why}\nVerdict: {v}", "Analysis:\n- {why}\n\nConclusion: {v}", "Answer: {v}\nReason: {why}"),
    *("## Verdict\n{v}\n\n## Reason\n{why}", "| Reason | Verdict |\n|---|---|\n| {why} | {v} |"),
    *("| Aspect | Finding |\n|---|---|\n| Reason | {why} |\n| Verdict | {v} |", "<answer>{v}</answer>\n{why}"),
    *('{{"reason": "{why}", "answer": "{v}"}}', "{{'relevant': '{v}', 'confidence': 0.9, 'why': \"{why}\",}}"),
    *('[{{"verdict": "{v}", "reason": "{why}"}}]', '{{"result": {{"relevant": "{v}", "reason": "{why}"}}}}'),
    *("1. What is asked: a fact\n2. What is said: {why}\n3. Verdict: {v}", "{v}\n\n(Note: {why})"),
    *("{why}\n\n\\boxed{{{v}}}", "{icon} {v} – {why}"),
]  # fmt: skip
ABROAD = [
    ("Le passage donne la réponse.", "Le passage ne donne pas la réponse."),
    ("Il brano dà la risposta.", "Il brano non dà la risposta."),
    ("Der Text nennt die Antwort.", "Der Text nennt die Antwort nicht."),
    ("El texto da la respuesta.", "El texto no da la respuesta."),
    ("본문에 답이 있습니다.", "본문에 답이 없습니다."),
    ("この文章に答えがあります。", "この文章に答えはありません。"),
]


def twins(shape: str) -> list[tuple[str, str, str, dict[str, str], dict[str, str]]]:
    """Return a shape's pairs: the prompt, the reply with Yes and the one with No, and what was filled in for each."""
    pairs = []
    for question, good, reasons, bad, lacks in SOURCES:
        for prompt in ("binary", "useful", "terse"):
            shown = filled(question, "", good), filled(question, "", bad)
            abroad = ABROAD if "low" not in shape else []
            for why, lack in [*zip(reasons, lacks, strict=True), *abroad]:
                yes, no = (
                    shape.format(v=word, why=reason, low=reason[0].lower() + reason[1:], icon=icon)
                    for word, reason, icon in (("Yes", why, "✅"), ("No", lack, "❌"))
                )
                pairs.append((prompt, yes, no, *shown))
    return pairs


def test_twins_are_read_alike_overall_and_by_shape() -> None:
    total = both = 0
    for shape in SHAPES:
        said = [
            (read(PROMPTS[prompt], yes, for_yes), read(PROMPTS[prompt], no, for_no), yes, no)
            for prompt, yes, no, for_yes, for_no in twins(shape)
        ]
        for first, second, yes, no in said:
            assert first is None or first.value == 1, yes
            assert second is None or second.value == 0, no
        counts = [sum(pair[place] is not None for pair in said) for place in (0, 1)]
        assert abs(counts[0] - counts[1]) <= 0.02 * len(said), (shape, counts, len(said))
        total += 2 * len(said)
        both += sum(counts)
    assert both / total >= 0.95


FOR = [
    *("The passage answers the question.", "It is relevant to the question.", "The passage is clearly relevant."),
    *("The passage states the answer.", "It helps the reader.", "The question is answered directly by the passage."),
    *("It gives the full answer.", "There is no doubt that it is relevant."),
]  # fmt: skip
AGAINST = [
    *("The passage does not answer the question.", "It is not relevant to the question.", "The passage is irrelevant."),
    *("The passage states no answer.", "It does not help the reader.", "The question is not answered by the passage."),
    *("The answer is missing.", "The passage has nothing to do with the question."),
]  # fmt: skip
LINES = [shape for shape in SHAPES if "low" not in shape]


@pytest.mark.parametrize("prompt", ["binary", "useful"])
def test_a_sentence_about_the_passage_is_a_verdict_too(prompt: str) -> None:
    question, good, _, bad, _ = SOURCES[0]
    disagree = agree = 0
    for shape in LINES:
        for word, icon, equal, contrary, text in (("Yes", "✅", FOR, AGAINST, good), ("No", "❌", AGAINST, FOR, bad)):
            values = filled(question, "", text)
            for why in contrary:
                reply = shape.format(v=word, why=why, icon=icon)
                assert read(PROMPTS[prompt], reply, values) is None, reply
                disagree += 1
            for why in equal:
                agree += read(PROMPTS[prompt], shape.format(v=word, why=why, icon=icon), values) is not None
    assert disagree >= 200
    assert agree / disagree >= 0.95


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("The flag is not green.", set()),
        ("The passage says that the ship was not found.", set()),
        ("The passage is relevant to cats.", set()),
        ("It would be relevant if it named the year.", set()),
        ("It is relevant only in part.", set()),
        ("It is not irrelevant.", set()),
        ("The passage not only answers the question but also names the year.", {1}),
        ("It names the year, but does not answer the question.", {0}),
        ("It is relevant. It does not answer the question.", {0, 1}),
    ],
)
def test_what_is_said_of_the_passage(said: str, values: set[int]) -> None:
    assert verdicts(said) == values


# Questions that can be answered by yes or no.

LOST = ("Did Northgate lose the 1994 cup?", "Northgate won the cup of 1994 in heavy rain, 3-1 against Sella.")
DOGS = ("Are dogs allowed on the Sarn ferry?", "Dogs travel for free on the ferry to Sarn if they are on a lead.")
ANSWERS = [
    *("{v}, it did.", "{v}. The passage says so.", "{v}, there is one.", "{v} — {low}", "{v}\n\n{why}", "{v}. {why}"),
    *("Answer: {v}, {low}", "Answer: {v}\n\n{why}", "{why} Therefore, the answer is {v}.", "{why}\n\n{v}"),
    *("According to the passage, {v}.", "Based on the passage, the answer is {v}.", "Verdict: {v}, {low}"),
    *("{v} ({low})", "{v}, {low}"),
    *("{v}, the passage says that {low}", "{v}. The passage states that {low}", "I would say {v}.", "Conclusion: {v}"),
    *('{{"answer": "{v}", "reason": "{why}"}}', "{v}. The passage does not say that {low}", "So the answer is {v}."),
]  # fmt: skip
JUDGMENTS = [
    *(("Yes", 1), ("**No**", 0), ("Relevant: Yes", 1), ("Relevant: No", 0), ("Northgate won.\n\nVerdict: No", 0)),
    *(("Relevance: Yes. Northgate won.", 1), ("The passage is not relevant to the question.", 0), ("Relevant.", 1)),
    *(("The passage is relevant to the question.", 1), ("No, the passage is not relevant.", 0), ("Irrelevant.", 0)),
    *(("Yes, the passage is relevant.", 1), ("No. The passage does not answer the question.", 0)),
    *(("Yes. The passage answers the question.", 1), ("The passage answers the question.\n\nYes", 1)),
    *(("The passage does not answer the question.\n\nNo", 0), ('{"relevant": false, "reason": "It won."}', 0)),
    *(("{'relevant': True, 'reason': 'It won.'}", 1), ("Is the passage relevant to the question? No", 0)),
    *(("No, because the passage does not say whether it is so.", 0), ("Yes. The passage tells whether it is so.", 1)),
    *(("No. The passage says nothing about it.", 0), ("Yes. The passage addresses the very matter.", 1)),
]  # fmt: skip


@pytest.mark.parametrize("shape", ANSWERS)
@pytest.mark.parametrize("prompt", ["binary", "strict", "terse", "useful"])
def test_an_answer_to_the_question_is_no_judgment_of_the_passage(shape: str, prompt: str) -> None:
    for question, passage in (LOST, DOGS):
        for word, why in (("No", "Northgate won it."), ("Yes", "They travel for free.")):
            reply = shape.format(v=word, why=why, low=why[0].lower() + why[1:])
            assert read(PROMPTS[prompt], reply, filled(question, "", passage)) is None, reply


@pytest.mark.parametrize(("reply", "value"), JUDGMENTS)
def test_a_judgment_that_names_the_passage_is_read(reply: str, value: int) -> None:
    for question, passage in (LOST, DOGS):
        verdict = read(PROMPTS["binary"], reply, filled(question, "", passage))
        assert verdict is not None, reply
        assert verdict.value == value


@pytest.mark.parametrize("reply", ["No, it is not useful.", "It is not useful.", "Not useful.", "Useful."])
def test_where_the_question_asks_what_is_useful_only_the_passage_can_be_meant(reply: str) -> None:
    values = filled("Is Velda salt useful?", "", "Velda salt is of little use in kitchens.")
    assert read(PROMPTS["useful"], reply, values) is None
    for said, value in (("The passage is not useful.", 0), ("The passage is useful.", 1)):
        verdict = read(PROMPTS["useful"], said, values)
        assert verdict is not None
        assert verdict.value == value


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("The passage does not mention dogs.", 0),
        ("The passage covers dogs on the ferry.", 1),
        ("The passage does not say that they are allowed.", None),
        ("The passage says that they are allowed.", None),
        ("The passage says they are allowed.", None),
        ("The passage does not say they are allowed.", None),
        ("The passage does not say.", 0),
        ("The passage says nothing about it.", 0),
        ("The passage tells whether they are allowed.", 1),
        ("They are not allowed.", None),
        ("The passage is about the ferry. It rains.", None),
        ("The passage answers the question. The passage does not answer the question.", None),
    ],
)
def test_only_what_is_about_the_passage_in_each_sentence_counts(said: str, value: int | None) -> None:
    assert about_passage(said) == value


@pytest.mark.parametrize(
    ("name", "question", "begins"),
    [
        (
            "binary",
            LOST[0],
            "Do not answer the question itself: is the passage relevant to it? Reply with Yes or No only.",
        ),
        ("useful", LOST[0], "Do not answer the question itself: is the passage useful for answering it? Reply with"),
        ("correctness", LOST[0], "Do not answer the question itself: is the given answer correct? Reply with Yes"),
        ("binary", "Who won the cup?", "Reply with Yes or No only."),
        ("criteria", LOST[0], "Reply with 0, 1, 2 or 3 only."),
    ],
)
def test_what_is_asked_again_names_relevance_where_the_question_asks_for_yes_or_no(
    name: str, question: str, begins: str
) -> None:
    prompt = load_prompt(name)
    values = dict.fromkeys(prompt.placeholders, "p") | {"question": question}
    reply = Reply("k", '{"choices": [{"message": {"content": "No, it did not."}, "finish_reason": "stop"}]}')
    again = Asker(Endpoint("e", "http://e:1/v1", "m"), prompt).again(values, reply)
    assert again.body.decode().split("\\n\\n")[-1].startswith(begins)
