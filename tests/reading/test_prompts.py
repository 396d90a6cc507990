"""Prompt files: what they declare, how they are filled in, and what is refused."""

import re
import shutil
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from judgekit.data.documents import Doc
from judgekit.errors import ConfigError, UsageError
from judgekit.reading.prompts import Prompt, list_prompts, load_prompt, neutral, passages, prompt_folder
from judgekit.reading.verdict import ReplyFormat

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = list_prompts()
NAMES = [p.name for p in PROMPTS]
VALUES = {
    "question": "Which city?",
    "passages": passages([Doc("a", "It is Paris.", "France"), Doc("b", "It is not Lyon.")]),
    "references": "Paris",
    "answer": "Paris",
    "answers": "<answer>Paris</answer>",
    "facts": "1. It is Paris.",
    "text": "Paris",
    "count": "1",
}


def filled(prompt: Prompt) -> str:
    return "\n".join(m["content"] for m in prompt.messages(VALUES))


def test_the_shipped_prompts_are_there() -> None:
    judges = {"binary", "criteria", "graded", "graded-json", "strict", "terse", "useful"}
    answers = {"answer-long", "answer-short", "classify-claim", "closed-book", "closed-book-claim", "closed-book-long"}
    others = {"correctness", "grounded", "merge", "merge-long"}
    tasks = {"citation-support", "nugget-support", "nuggets"}
    assert sorted(judges | answers | others | tasks) == NAMES
    assert {p.name for p in PROMPTS if p.kind == "task"} == tasks
    assert {p.name for p in PROMPTS if p.kind == "judge"} == judges
    assert {p.name for p in PROMPTS if p.kind == "answer"} == answers


@pytest.mark.parametrize("prompt", PROMPTS, ids=NAMES)
def test_each_says_what_it_is_for_then_its_instructions_then_the_case_once(prompt: Prompt) -> None:
    assert 10 < len(prompt.about) < 120
    assert 16 <= prompt.params["max_tokens"] <= 2048
    assert max(map(len, prompt.user.splitlines())) <= 120
    head, _, tail = prompt.user.partition("<question>")
    assert len(head) > (40 if prompt.name == "terse" else 150)
    assert not re.search(r"\{(?!\"(?:reason|fact)\")", head), "only a form that is asked for shows braces"
    assert prompt.user.index("{question}") < prompt.user.index("{passages}" if "{passages}" in tail else "</question>")
    text = filled(prompt)
    assert text.count("Which city?") == text.count("<question>") == text.count("</question>") == 1
    assert not re.search(r"\{[a-z_]+\}", text)
    assert text.count("<passage>") == (2 if "passages" in prompt.placeholders else 0)


@pytest.mark.parametrize("name", ["answer-short", "answer-long", "classify-claim"])
def test_answer_prompts_have_a_closed_book_sibling_of_their_own_kind(name: str) -> None:
    prompt = load_prompt(name)
    sibling = load_prompt(prompt.closed_book)
    assert sibling.output == prompt.output
    for one in (prompt, sibling):
        assert f'say "{one.output.abstain}"' in one.user.replace("\n", " ")
    assert not re.search("passage|document|context|source", filled(sibling), re.IGNORECASE)


# What is filled in.


def test_documents_are_rendered_as_everywhere_and_fenced() -> None:
    docs = [Doc("a", "text", "Title"), Doc("b", "other")]
    assert passages(docs) == "<passage>\nTitle\ntext\n</passage>\n\n<passage>\nother\n</passage>"
    assert passages(docs[:1], "text") == "<passage>\ntext\n</passage>"
    assert passages([]) == ""


PIECES = [*"<[/ >|x\n", "passage", "PASSAGE", "question", "answer", "references", "im_end", 'title="a"']
hostile = st.lists(st.sampled_from(PIECES)).map("".join)


@given(st.one_of(hostile, st.text()))
def test_nothing_that_is_filled_in_can_open_or_close_a_fence(text: str) -> None:
    made = neutral(text)
    assert not re.search(r"<\s*/?\s*(?:passage|question|reference|answer)s?\b", made, re.IGNORECASE)
    assert not re.search(r"[<\[]\|", made)
    assert re.sub("[＜﹤]", "<", unescape(made)) == re.sub("[＜﹤]", "<", unescape(text))
    assert neutral(made) == made


# Files of one's own.

GOOD = """
kind = "judge"
about = "mine"
max_tokens = 9
system = "You judge. Reply {\\"score\\": 2}."
user = "{question}\\n{passages}"
[params]
response_format = { type = "json_object" }
[output]
type = "grade"
json = "score"
low = -1
names = ["harmful", "useless", "useful"]
"""


def own(tmp_path: Path, text: str) -> Prompt:
    path = tmp_path / "own.toml"
    path.write_text(text)
    return load_prompt(path)


def test_a_file_declares_all_that_there_is(tmp_path: Path) -> None:
    prompt = own(tmp_path, GOOD)
    assert [m["role"] for m in prompt.messages(VALUES)] == ["system", "user"]
    assert prompt.messages(VALUES)[0]["content"] == 'You judge. Reply {"score": 2}.'
    assert prompt.params == {"max_tokens": 9, "response_format": {"type": "json_object"}}
    assert prompt.output.form == ReplyFormat(
        (("-1", -1), ("0", 0), ("1", 1)), (("harmful", -1), ("useless", 0), ("useful", 1)), ("score",)
    )
    assert str(prompt.output.scale) == "grades:-1..1"
    assert load_prompt(str(tmp_path / "own.toml")) == prompt
    for output, scale in (
        ('type = "choice"\nchoices = { C = 1, I = 0 }', "binary"),
        ('type = "choice"\nchoices = { C = 2, P = 1, I = 0 }', "grades:2"),
        ('type = "grade"\nnames = ["off", "near", "full"]', "grades:2"),
        ('type = "grade"\nlow = 1\nmin_rel = 2\nnames = ["off", "full"]', "grades:2:2"),
    ):
        assert str(own(tmp_path, f"{BASE}[output]\n{output}").output.scale) == scale


BASE = 'kind = "judge"\nuser = "{question} {passages}"\n'
ANSWER = BASE.replace("judge", "answer")
YES = '[output]\ntype = "yes/no"\n'
GRADES = BASE + '[output]\ntype = "grade"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind = ", "is not TOML"),
        ("", r"\[kind\] is missing"),
        ('kind = "jugde"', "Did you mean 'judge'"),
        (BASE + "colour = 1\n" + YES, r"\[colour\] is not a key here"),
        (BASE + "max_tokens = 0\n" + YES, "must be greater than or equal to 1, not 0"),
        (BASE, r"\[output\] is missing"),
        (BASE + "[output]\n", r"\[output\.type\] is missing"),
        (BASE + '[output]\ntype = "short"', "must be one of yes/no, grade, choice"),
        (BASE + YES + 'abstain = "x"', r"\[output\.abstain\] is not a key here"),
        ('kind = "judge"\nuser = "{question}"\n' + YES, r"lacks the placeholder \{passages\}"),
        ('kind = "judge"\nuser = "{query} {passages}"\n' + YES, r"\{query\} is not a placeholder of a judge prompt"),
        ('kind = "judge"\n' + YES, r"\[user\] is missing"),
        ('passage = "Dated {doc.date}."\n' + BASE + YES, r"\[passage\] must show the document as"),
        (
            BASE.replace("{question}", "{question} {doc.date}") + YES,
            r"\[user\] shows a document: move \{doc\}",
        ),
        (ANSWER + '[output]\ntype = "short"', r"\[closed_book\] is missing"),
        (GRADES + 'names = ["x"]', "at least two distinct texts"),
        (GRADES + 'names = ["x", "X"]', "must be distinct texts"),
        (GRADES + 'names = ["x", 2]', "must be a valid string, not 2"),
        (GRADES + 'names = ["a", "b"]\nmin_rel = 2', r"\[output\.min_rel\] 2 must be above"),
        (GRADES + 'low = 1\nnames = ["a", "b"]', r"\[output\.min_rel\] 1 must be above"),
        (
            BASE + '[output]\ntype = "choice"\nchoices = { a = 2, b = 0 }\nmin_rel = 0',
            "greater than or equal to 1, not 0",
        ),
        (BASE + '[output]\ntype = "choice"\nchoices = { a = 1, b = 0.5 }', "must be a valid integer, not 0.5"),
        (BASE + YES + '[params]\nmodel = "other"', r"\[params\.model\] cannot be set by a prompt: the endpoint"),
        (BASE + YES + "[params]\ntop_p = nan", r"\[params\.top_p\] cannot be sent as JSON"),
        (GOOD.replace('json = "score"', 'json = "a"\nline = "b"'), r"output\.line.*declared together with json"),
        (GOOD.replace('json = "score"', 'json = ["score", "Score"]'), r"output\.json.*distinct texts"),
    ],
)
def test_a_file_that_makes_no_sense_is_an_error_with_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        own(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "own.toml"))


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", "none.toml", "no/where", "no\\where"):
        with pytest.raises(ConfigError, match="no such file; expected a prompt"):
            load_prompt(path)
    (tmp_path / "latin.toml").write_bytes(b'kind = "\xe9"')
    with pytest.raises(ConfigError, match="is not TOML in UTF-8"):
        load_prompt(tmp_path / "latin.toml")
    with pytest.raises(UsageError, match="Did you mean 'answer-short'"):
        load_prompt("answer_short")


def test_an_installed_wheel_finds_its_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder inside the package goes before the checkout's, which an editable installation uses."""
    assert prompt_folder() == ROOT / "prompts"
    shutil.copytree(ROOT / "prompts", tmp_path / "judgekit/prompts")
    monkeypatch.setattr("judgekit.reading.prompts.__file__", str(tmp_path / "judgekit/reading/prompts.py"))
    assert prompt_folder() == tmp_path / "judgekit/prompts"
    assert list_prompts() == PROMPTS


def test_the_constraint_that_a_prompt_asks_for_is_the_one_of_its_form() -> None:
    (held,) = (p for p in PROMPTS if "response_format" in p.params)
    assert held.name == "graded-json"
    assert {"response_format": held.params["response_format"]} == held.output.form.constraint()


def test_the_three_criteria_stand_in_the_same_order_for_a_judge_and_for_people() -> None:
    prompt = load_prompt("criteria")
    for text in (prompt.user, prompt.guideline):
        assert text.index("Correct:") < text.index("Dense:") < text.index("Detailed:")
    assert prompt.output.scale is not None
    assert (prompt.output.scale.high, prompt.output.scale.min_rel) == (3, 1)
    assert "three criteria, in this order. Correct:" in prompt.guideline
    assert "correct and dense" in str(prompt.output.form.others)
