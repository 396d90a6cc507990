"""What the offline stand-in reads out of a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from judgekit.llm.offline_prompt import Prompt, PromptReader


def read_prompt(messages: list[dict[str, Any]]) -> Prompt:
    return PromptReader().read(messages)


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def test_question_passages_and_titles_are_read_wherever_the_roles_put_them() -> None:
    prompt = read_prompt(
        [
            {"role": "system", "content": 'Use the passages. <passage title="A &lt; B">one &lt; two</passage>'},
            {"role": "user", "content": "<passage>three</passage>\n<question>How many?</question>"},
        ]
    )
    assert prompt.question == "How many?"
    assert prompt.passages == (("A < B", "one < two"), ("", "three"))


def test_a_mention_of_the_tags_is_no_question() -> None:
    prompt = read_prompt(user("The question stands in <question> tags.\n<question>Who?</question>"))
    assert prompt.question == "Who?"


def test_worked_examples_do_not_count() -> None:
    text = "\n".join(f"<question>{q}</question><passage>{p}</passage>" for q, p in [("Old?", "old"), ("New?", "new")])
    prompt = read_prompt(user(text))
    assert (prompt.question, prompt.passages) == ("New?", (("", "new"),))


def test_without_tags_the_last_line_with_a_question_mark_is_the_question() -> None:
    assert read_prompt(user("Is this a test?\nQuestion: Who built it?\nAnswer:")).question == "Who built it?"


def test_text_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "<question>Who?"}, {"type": "text", "text": "</question>"}]
    assert read_prompt([{"role": "user", "content": parts}]).question == "Who?"


@pytest.mark.parametrize(
    ("instructions", "task", "top"),
    [
        ("Answer briefly.", "answer", 1),
        ("Reply with Yes or No.", "judge", 1),
        ("Rate it from 0 to 3.", "grade", 3),
        ("Give 0, 1 or 2.", "grade", 2),
        ("Grades:\n0 = useless\n1 = related\n2 = good\n3 = perfect", "grade", 3),
        ("Rate from 0 to 5, yes or no does not do.", "grade", 5),
        ("Task: judge\nSay what you think.", "judge", 1),
    ],
)
def test_the_task_is_read_off_the_instructions(instructions: str, task: str, top: int) -> None:
    prompt = read_prompt(user(f"{instructions}\n<question>From 0 to 9, yes or no?</question>"))
    assert prompt.instructions.task == task
    assert task != "grade" or prompt.instructions.top == top


@pytest.mark.parametrize(
    ("instructions", "phrase"),
    [
        ("Answer briefly.", "unknown"),
        ('If the passages do not contain the answer, say "I don\'t know".', "I don't know"),
        ("If they don't, reply `no answer`.", "no answer"),
        ('Be "brief". Otherwise answer "unknown".', "unknown"),
    ],
)
def test_the_abstention_is_the_phrase_in_quotes(instructions: str, phrase: str) -> None:
    assert read_prompt(user(f"{instructions}\n<question>Who?</question>")).instructions.abstain == phrase


def test_the_umbrela_form_is_kept() -> None:
    prompt = read_prompt(user("On a scale of 0 to 3, end with ##final score: a number.\n<query>who</query>"))
    assert (prompt.instructions.task, prompt.instructions.marker) == ("grade", "##final score: ")
