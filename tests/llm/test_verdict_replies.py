"""Replies as models write them, each with the verdict that a careful person reads in it; None where there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.llm.forms import Form
from judgekit.llm.prompts import load_prompt
from judgekit.llm.verdict import Unread, Verdict, read

RELEVANT = load_prompt("binary").output.form
CORRECT = load_prompt("correctness").output.form
GRADE = load_prompt("graded").output.form
JSON = load_prompt("graded-json").output.form

REPLIES: list[tuple[Form, str, int | None]] = [
    (RELEVANT, "Yes. The passage says the answer is no.", 1),
    (RELEVANT, "Yes, because it says the answer is no", 1),
    (RELEVANT, "**Yes**\n\nThe passage states the answer: **No**, he did not.", 1),
    (RELEVANT, "Yes. According to the passage: no.", 1),
    (RELEVANT, "The passage states that the answer is no, which answers the question.", None),
    (RELEVANT, "**Yes** The passage states that the answer is no.", 1),
    (RELEVANT, "No The passage gives no year.", 0),
    (RELEVANT, "No Frenchman is named in the passage", None),
    (RELEVANT, "**Yes** is not the right answer.", None),
    (RELEVANT, "Yes the answer is no.", None),
    (RELEVANT, "- Yes. The passage answers: no.", 1),
    (RELEVANT, "Yes, but no", None),
    (RELEVANT, "Yes (though not really)", None),
    (RELEVANT, "Yes, but I'm not sure.", None),
    (RELEVANT, "Yes - wait, no", None),
    (RELEVANT, "Yes... actually, no", None),
    (RELEVANT, '"Yes" is not the right answer.', None),
    (
        RELEVANT,
        "It asks for the year. The passage states that it was signed in 1648. Therefore, the answer is: Yes",
        1,
    ),
    (
        RELEVANT,
        "The passage states that the treaty was signed in 1648, so the answer is yes.",
        1,
    ),
    (
        RELEVANT,
        "The passage states that it was signed in 1648. It is relevant.\n\nFinal answer: Yes",
        1,
    ),
    (RELEVANT, "Let me think. The passage only mentions the town. Final answer: No", 0),
    (RELEVANT, "Let's go step by step.\n1. The question asks for a year.\n2. The passage gives none.\n\nAnswer: No", 0),
    (RELEVANT, "The passage is about the Thirty Years' War in general and gives no date, so the answer is no.", 0),
    (RELEVANT, "The passage does not state who won. Thus, no.", 0),
    (RELEVANT, "Reasoning: the passage names the winner.\nVerdict: Yes", 1),
    (RELEVANT, "**Reasoning:** The passage names the winner and the year of the race.\n\n**Verdict:** Yes", 1),
    (RELEVANT, "**Relevance:** The passage is about the same race and names its winner.\n\nYes", 1),
    (RELEVANT, "Yes\n\n**Relevance:** The passage is about the same race and names its winner.", 1),
    (RELEVANT, 'Yes\n\nExplanation: The passage states "No, he never won the cup", which answers the question.', 1),
    (RELEVANT, "Yes.\n\nThe passage answers the question: no, penguins cannot fly.", 1),
    (RELEVANT, "Yes. The question is whether penguins can fly, and the passage says no.", 1),
    (RELEVANT, "Yes, since it says that the answer to the question is no.", 1),
    (RELEVANT, 'Yes — the passage reports: "No, it is not true."', 1),
    (RELEVANT, 'Yes (it says "no")', 1),
    (RELEVANT, "Yes\n\n> No, penguins cannot fly.\n\nThis answers the question.", 1),
    (RELEVANT, "No. The question asks whether it is true; the passage does not say whether the answer is yes.", 0),
    (RELEVANT, "No, the passage says yes to another question.", 0),
    (RELEVANT, "No\n\nThe passage discusses penguins. If it said that they can fly, the answer would be yes.", 0),
    (RELEVANT, "No. If the passage named the year, the answer would be yes.", 0),
    (RELEVANT, "No, the answer is not stated. It would be relevant if it named the year.", 0),
    (RELEVANT, "Yes, the correct answer is no and the passage says so.", 1),
    (RELEVANT, "Yes. Correct answer: No.", 1),
    (RELEVANT, "Answer: Yes\n\nThe passage says the answer is no.", 1),
    (RELEVANT, 'Answer: Yes\nExplanation: The passage answers with "No".', 1),
    (RELEVANT, "Relevant: Yes\nReason: the passage says the answer is no.", 1),
    (RELEVANT, "Relevant: Yes\nAnswer: No", 1),
    (RELEVANT, "Yes\nAnswer: No", None),
    (RELEVANT, "Question: can penguins fly? Passage: No, they cannot. Is the passage relevant? Yes", 1),
    (RELEVANT, "The passage asks: can penguins fly? No. Is it relevant? Yes.", 1),
    (RELEVANT, "Is the passage relevant to the question? Yes, it is.", 1),
    (RELEVANT, "Is the passage relevant? No. The answer would be: yes, they fly.", 0),
    (RELEVANT, "Yes. So the answer is no.", None),
    (RELEVANT, "Yes. But on reflection the passage is about another Paris, so the answer is no.", None),
    (RELEVANT, "Yes. Hmm, wait. It is another Paris.", None),
    (RELEVANT, "Yes. Scratch that, it's another city.", None),
    (RELEVANT, "No. On second thought, yes.", None),
    (RELEVANT, "Yes... or maybe not.", None),
    (RELEVANT, "Yes, wait: no", None),
    (RELEVANT, "Yes\n\nActually, no.", None),
    (RELEVANT, "Yes\n\nNo", None),
    (RELEVANT, "No.\n\nCorrection: Yes.", None),
    (RELEVANT, "Yes, at first sight. But the year is wrong.\nVerdict: No", 0),
    (RELEVANT, "Initially I thought yes. Verdict: no", 0),
    (RELEVANT, '"No" would be the answer to the question.', None),
    (RELEVANT, "'Yes' is what the passage says.", None),
    (RELEVANT, '"Yes, he did" is what the passage says.', None),
    (RELEVANT, '"Yes"\n\nThe passage says so.', 1),
    (RELEVANT, '"Yes." The passage says so.', None),
    (RELEVANT, "“Yes, the passage states it.”", 1),
    (RELEVANT, "According to the passage, the answer is no.", None),
    (RELEVANT, "According to the text, yes.", None),
    (RELEVANT, "The passage says no.", None),
    (RELEVANT, "The answer is no, according to the passage.", None),
    (RELEVANT, "The reference answer is no.", None),
    (RELEVANT, "The expected answer is yes.", None),
    (RELEVANT, 'The passage quotes him. "No."', None),
    (RELEVANT, "I'd say yes.", None),
    (RELEVANT, "My answer: yes", 1),
    (RELEVANT, "So: yes", 1),
    (RELEVANT, "Response: Yes", 1),
    (RELEVANT, "Final Answer: **Yes**.", 1),
    (RELEVANT, "# Answer\n\nYes", 1),
    (RELEVANT, '### Verdict\n\n**No**\n\nThe passage says "yes" to something else.', 0),
    (RELEVANT, "Conclusion: No", 0),
    (RELEVANT, "In conclusion, the answer is no.", 0),
    (RELEVANT, "Therefore: yes.", 1),
    (RELEVANT, "Therefore, the passage is relevant: yes", 1),
    (RELEVANT, "\\boxed{Yes}", 1),
    (RELEVANT, "The final answer is $\\boxed{\\text{No}}$.", 0),
    (RELEVANT, "Yes<|im_end|>", 1),
    (RELEVANT, "<|channel|>analysis<|message|>Answer: yes<|end|><|start|>assistant<|channel|>final<|message|>No", 0),
    (RELEVANT, "<|channel|>analysis<|message|>The answer is yes", None),
    (RELEVANT, "analysisThe passage says yes.assistantfinalNo", 0),
    (RELEVANT, "[THINK]Perhaps yes.[/THINK]No", 0),
    (RELEVANT, "◁think▷Answer: yes◁/think▷No", 0),
    (RELEVANT, "No<|im_end|>\n<|im_start|>user\nIs it?\nYes", 0),
    (RELEVANT, '```json\n{"relevant": "yes", "reason": "it says no"}\n```', 1),
    (RELEVANT, '{"answer": "no", "relevant": true}', 1),
    (RELEVANT, '{"relevant": true, "reason": "the answer: no', 1),
    (RELEVANT, '{"reason": "it states the answer: no", "relevant"', None),
    (RELEVANT, '{"relevant": true} The passage says the answer is no.', 1),
    (RELEVANT, 'Yes. {"relevant": false}', None),
    (RELEVANT, "Yes and no, the answer is split", None),
    (RELEVANT, "True. The statement in the passage is false.", 1),
    (RELEVANT, "False - the passage says it is true.", 0),
    (RELEVANT, "Yes, the result was false.", 1),
    (RELEVANT, "Yes; the passage directly states the capital.", 1),
    (RELEVANT, "No: the passage is about the river; it does not mention the capital.", 0),
    (RELEVANT, "Yes! It says no, no, and no.", 1),
    (RELEVANT, "I think the answer is no because the passage does not mention the year.", 0),
    (RELEVANT, "The passage does mention the city; however, it doesn't give the year. No.", 0),
    (RELEVANT, "Well, no.", None),
    (RELEVANT, "Overall, yes.", 1),
    (RELEVANT, "The passage is relevant to the question: no", 0),
    (RELEVANT, "Relevance to the question: Yes", 1),
    (RELEVANT, 'Decision: **Yes** (the passage says "No")', 1),
    (RELEVANT, "The answer is yes... no, the answer is unclear.", None),
    (RELEVANT, "Does it name the year? Yes. Does it name the place? No. Verdict: No", 0),
    (RELEVANT, "Does it name the year? Yes. Does it name the place? No.\n\nRelevant: Yes", 1),
    (RELEVANT, "1. About the topic: yes\n2. States the answer: no\n3. Verdict: no", 0),
    (RELEVANT, "Topic: yes\nAnswer stated: no\n\nNo", 0),
    (CORRECT, "No. The reference is: yes.", 0),
    (CORRECT, "No. Expected answer: Yes.", 0),
    (CORRECT, "No. It should be: True", 0),
    (CORRECT, "Yes. Both say the answer is no.", 1),
    (CORRECT, 'No. The reference says "yes" while the answer says "no".', 0),
    (CORRECT, "No. The reference answer is yes.", 0),
    (CORRECT, "No. The correct answer is yes.", 0),
    (CORRECT, "No, the correct answer should be yes.", 0),
    (CORRECT, 'Yes. The reference answer is "no" and so is the given one.', 1),
    (CORRECT, "No\n\nReference: yes\nGiven: no", 0),
    (CORRECT, "No\nReference answer: Yes", 0),
    (CORRECT, "Yes. Both the reference and the answer are no.", 1),
    (CORRECT, "Reference: no. Answer: no. Correct: Yes", 1),
    (CORRECT, "The reference says 1648 and the answer says 1649. Therefore, the answer is not correct: No", 0),
    (CORRECT, "The given answer matches the reference. So the answer is yes.", 1),
    (CORRECT, "Correct: no", 0),
    (CORRECT, "Is the answer correct? Yes. The reference is no, too.", 1),
    (CORRECT, "The reference is no, so the answer is no.", None),
    (CORRECT, "No. In both references the answer is true.", 0),
    (GRADE, "Final grade: 2\n\nIf the passage named the date, the grade would be 3.", 2),
    (GRADE, "Final grade: 3\n\nThe answer is 1.", 3),
    (GRADE, "Final grade: 3\nAnswer: 2", 3),
    (GRADE, "Final grade: 3\nScore: 2", None),
    (GRADE, "Final grade: 3\nRelevance: high", 3),
    (GRADE, "Final grade: 2 (of 3)", 2),
    (GRADE, "Verdict: 2 (of 3)", 2),
    (GRADE, "Final grade: 1\n\nA grade of 2 would need the year; a grade of 3 the day.", 1),
    (GRADE, "Final grade: 2\n\nThe score in the match was 3.", 2),
    (GRADE, "Final grade: 2\n\nThe passage says the final score was 3.", 2),
    (GRADE, "Final grade: 2\n\nHowever, the final grade should be 1.", 2),
    (GRADE, "Final grade: 2\n\nOn second thought, the grade is 3.", None),
    (GRADE, "Final grade: 2. Actually, the grade is 3.", None),
    (GRADE, "Final grade: 2\nFinal grade: 3", 3),
    (GRADE, "2\n\nThe answer is 3.", 2),
    (GRADE, "3\n\nThe passage states that the number of goals is 2.", 3),
    (GRADE, "3 - it gives the result: 1", 3),
    (GRADE, "The answer is 3.", None),
    (GRADE, "The passage states that the answer is 3.", None),
    (GRADE, "Therefore, the answer is 2.", 2),
    (GRADE, "Therefore, the final grade is 2.", 2),
    (GRADE, "I would give it a score of 2.", None),
    (GRADE, "Match: 3\nTrust: 2\n**Final grade:** 2", 2),
    (GRADE, "Intent: how many moons\nMatch: it says the answer is 2\nTrust: fine\n\nFinal grade: 3", 3),
    (GRADE, "Intent: a number. Match: the answer is 2. Trust: 1. Final grade: 3", 3),
    (GRADE, "Final grade:\n\n**2**\n\nThe answer is 3.", 2),
    (GRADE, "Grade: 1\n\n1. Intent: the year\n2. Match: none", 1),
    (GRADE, "Grade: 2\n\nReasons:\n1. It names the year.\n2. It does not name the day.", 2),
    (GRADE, "partial answer: it gives the year", 2),
    (GRADE, "Final grade: partial answer", 2),
    (JSON, '{"reason": "the score: 3", "score": ', None),
    (JSON, '{"reason": "the score: 3"}', None),
    (JSON, '{"reason": "it says "score: 3" twice", "score": 1}', 1),
    (JSON, '{"reason": "the answer is 3", "score": 1', 1),
    (JSON, '{"score": 2}\n\nThe answer is 3.', 2),
    (
        JSON,
        'Here:\n```json\n{"reason": "score: 0", "score": 2}\n```\nThe grade would be 3 if it named the day.',
        2,
    ),
    (JSON, "{'reason': 'score: 3', 'score': 1}", 1),
    (JSON, '{"relevance": 3}', 3),
    (JSON, '{"reason": "x", "score": 2,}', 2),
]


def test_there_are_many_replies_and_none_is_there_twice() -> None:
    assert len(REPLIES) >= 150
    assert len({(str(form), form.key, id(form), text) for form, text, _ in REPLIES}) == len(REPLIES)


@pytest.mark.parametrize(("form", "text", "value"), REPLIES, ids=[repr(text)[:70] for _, text, _ in REPLIES])
def test_the_verdict_is_what_a_careful_person_reads(form: Form, text: str, value: int | None) -> None:
    found = read(text, form, "stop")
    assert (found.value if isinstance(found, Verdict) else None) == value


def test_a_reply_that_takes_its_verdict_back_says_so() -> None:
    found = read("Yes - wait, no", RELEVANT)
    assert isinstance(found, Unread)
    assert found.reason == "the reply takes back what it states, 'Yes - wait, no' (expected yes/true/no/false)"


SAYS = ["yes", "no", "Yes", "No", "true", "false", "not at all", "yes, in 1990", "no, he never did", "No. He did not"]
OPENINGS = ["{}", "{}.", "**{}**", "{},", "{}:", "{} -", "{} —", "{}!", "- {}.", "({})", "`{}`\n", "{}\n\n", "{}.\n\n"]
QUOTING = [
    *('The passage says "{}".', 'The passage says: "{}."', "The passage says {}.", "It states that the answer is {}."),
    *("According to the passage: {}.", "According to the passage, {}.", "The passage answers the question: {}."),
    *("The passage gives the answer: {}.", "It reads: {}", "the passage's answer is {}.", "the answer is {}."),
    *("because the passage says that the answer is {}", "since the correct answer is {}.", "The reference is: {}."),
    *("Expected answer: {}.", "It should be: {}", "Both say the answer is {}.", "as it says, {}, more than once."),
    *("**Reason:** The passage states the answer: **{}**.", 'Reason: "{}" is what it says.', "> {}", '"{}"', "“{}.”"),
    *("If it said so, the answer would be {}.", "The result was {}.", "The answer: {}.", "the answer should be {}."),
    *("Did he win? {}.", "The question is whether he won. {}.", "Answer: {}", "Correct answer: {}", "Quote: {}"),
]
word = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)


@given(
    st.booleans(),
    st.sampled_from(OPENINGS),
    st.lists(st.sampled_from(QUOTING), min_size=1, max_size=3),
    st.sampled_from(SAYS),
    st.lists(word, max_size=5),
    st.sampled_from([RELEVANT, CORRECT]),
)
def test_what_a_reply_quotes_behind_its_opening_never_flips_the_verdict(
    yes: bool, opening: str, quoting: list[str], says: str, words: list[str], form: Form
) -> None:
    quoted = " ".join(q.format(says) for q in quoting)
    found = read(f"{opening.format('Yes' if yes else 'No')} {quoted} {' '.join(words)}", form)
    assert isinstance(found, Unread) or found.value == yes


@given(
    st.integers(0, 3),
    st.sampled_from(["Final grade: {}", "**Final grade:** {}.", "Verdict: {}", '{{"reason": "so", "score": {}}}']),
    st.sampled_from(
        [
            *("The answer is {}.", "Answer: {}", "The answer: {}", "The passage says: {}", "The grade would be {}."),
            *("If it named the year, the grade would be {}.", "It was {} then, so the score was {}.", "Goals: {}"),
            *("The passage states that the final score is {}.", "A grade of {} needs the year.", "{}", "Trust: {}"),
        ]
    ),
    st.integers(0, 3),
    st.sampled_from([" ", "\n", "\n\n"]),
)
def test_what_stands_behind_a_final_grade_never_flips_it(
    grade: int, final: str, behind: str, other: int, gap: str
) -> None:
    found = read(f"{final.format(grade)}{gap}{behind.format(other, other)}", GRADE)
    assert isinstance(found, Unread) or found.value == grade
