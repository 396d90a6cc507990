"""The studies read what is listed and nothing else, and their page says what judgekit says."""

import hashlib
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from judgekit.data.runs import Run
from judgekit.wire.types import CONSTRAINTS
from studies import bioasq, contexts, judged, kept, page, pairs, readers, rules, small_model, source
from studies.pairs import Setting
from tests.servers import FaultServer, openai_error

REPO = contexts.REPO
Put = Callable[..., None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """A function that commits files to a repository below STUDIES and lists them."""
    folder = tmp_path / "copies" / REPO
    folder.mkdir(parents=True)

    def git(*arguments: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(
            ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(files: dict[str, str], listed: dict[str, str] | None = None) -> None:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        git("add", "--all")
        git("commit", "--quiet", "--allow-empty", "-m", "x")
        lines = [
            f"{REPO}\t{path}\t{hashlib.sha256(text.encode()).hexdigest()}\n" for path, text in (listed or files).items()
        ]
        (tmp_path / "files.tsv").write_text("".join(lines))
        monkeypatch.setitem(source.COMMITS, REPO, git("rev-parse", "HEAD"))

    git("init", "--quiet")
    caches = (source.hashes, source._folder, contexts.answers, contexts.ids, contexts.run)
    monkeypatch.setattr(source, "FILES", tmp_path / "files.tsv")
    monkeypatch.setenv("STUDIES", str(tmp_path / "copies"))
    for cached in caches:
        cached.cache_clear()
    yield commit
    for cached in caches:
        cached.cache_clear()


def test_a_listed_file_is_read_at_its_commit_whatever_the_work_tree_holds(put: Put, tmp_path: Path) -> None:
    put({"a b/one.txt": "1 2\n", "two.txt": "x"})
    (tmp_path / "copies" / REPO / "a b" / "one.txt").write_text("later")
    assert source.text(REPO, "a b/one.txt") == "1 2\n"
    assert source.paths(REPO, "a b/") == ["a b/one.txt"]
    assert source.trec(REPO, "a b/one.txt", "query_id _").to_dict("list") == {"query_id": ["1"]}


@pytest.mark.parametrize(
    ("listed", "path", "says"),
    [
        ({"one.txt": "as it was"}, "one.txt", r"'one\.txt' in .* has changed: its SHA-256"),
        ({"gone.txt": "x"}, "gone.txt", r"'gone\.txt' is missing in .* at [0-9a-f]{7}: .*gone"),
        ({"one.txt": "x"}, "two.txt", r"'two\.txt' is not in files\.tsv"),
    ],
)
def test_what_is_not_as_listed_is_not_read(put: Put, listed: dict[str, str], path: str, says: str) -> None:
    put({"one.txt": "x", "two.txt": "x"}, listed)
    with pytest.raises(source.SourceError, match=says):
        source.text(REPO, path)


def test_prompts_of_all_forms_give_the_same_contexts(put: Put) -> None:
    gold = "(Title: Film (film)) Film ( 2009) is\ta film by Łukasz."
    copy, other = gold.replace("( 2009)", "(2009)"), "(Title: B) Another."
    forms = {
        contexts.ORACLE: f"Documents:\nDocument[1]{gold}\nDocument[2]{other}\n\nQuestion: Who made it?",
        "plain.json": f"Documents:Document[1]{gold}Document[2]{copy}Document[3]{other}Question: Who made it?",
        "told.json": f"\nAnswer.\nDocuments:\nDocument[1]{copy}\nDocument[2]{other}\n\nQuestion: Who made it?",
        "turned.json": f"Documents:\nDocument[1]{other}\nDocument[2]{gold}\n\nQuestion: Who made it?",
    }
    put({f"llm-responses/{name}": json.dumps({prompt: ["ukasz", "Łukasz"]}) for name, prompt in forms.items()})
    assert contexts.same_contexts(contexts.ORACLE, "plain.json", "told.json")
    assert not contexts.same_contexts(contexts.ORACLE, "turned.json")
    assert contexts.answers("plain.json")["Who made it?"][0][0][0] == "Film (film)"
    quality = contexts.quality({("reader", "top"): "plain.json"}, {"top": contexts.run("plain.json")})
    assert set(quality["value"]) == {1.0}, "a letter that the reader cannot write costs nothing"
    assert contexts.kinds() == {"q0001": "open"}


def test_a_file_that_was_deleted_is_read_at_its_own_commit(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put({"old/one.txt": "first"})
    earlier = source.COMMITS[REPO]
    put({"old/one.txt": "second"}, {"old/one.txt": "first"})
    monkeypatch.setitem(source.EARLIER, REPO, ("old/", earlier))
    assert source.text(REPO, "old/one.txt") == "first"


def setting(answers: dict[str, list[float]], lists: dict[str, str], scores: dict[str, list[float]]) -> Setting:
    """A setting whose lists are the letters of a word, the same for all questions."""
    queries = [f"q{number:03}" for number in range(len(next(iter(answers.values()))))]
    runs = [
        Run(name, *map(list, zip(*[(q, letter, -i) for q in queries for i, letter in enumerate(word)], strict=True)))
        for name, word in lists.items()
    ]
    frames = [pd.DataFrame(values, index=queries) for values in (answers, scores)]
    return Setting(
        "o/r", "top 2", {run: str(len(word)) for run, word in lists.items()}, frames[0], {"m": frames[1]}, runs
    )


GOOD, BAD = [1.0, 1.0, 1.0, 0.0] * 20, [0.0, 0.0, 1.0, 0.0] * 20


@pytest.mark.parametrize(
    ("labels", "answers", "verdict"),
    [
        ((GOOD, BAD), (GOOD, BAD), "agree"),
        ((GOOD, BAD), (BAD, GOOD), "opposite"),
        ((GOOD, BAD), (GOOD, [*GOOD[1:], 1.0]), "not told"),
        ((GOOD, GOOD), (GOOD, BAD), "not told"),
    ],
)
def test_a_pair_agrees_only_if_labels_and_answers_are_both_told_apart(
    labels: tuple[list[float], ...], answers: tuple[list[float], ...], verdict: str
) -> None:
    made = setting(dict(zip("ab", answers, strict=True)), {"a": "xy", "b": "xz"}, dict(zip("ab", labels, strict=True)))
    found = pairs.table([made])
    assert found["comparable"].all()
    assert found["verdict"].tolist() == [verdict]
    assert pairs.counts(found)["o/r", "m"][verdict] == 1


def test_pairs_with_nested_lists_or_other_lengths_stand_apart() -> None:
    scores = {"a": GOOD, "b": BAD, "c": BAD}
    made = setting(scores, {"a": "xyz", "b": "xy", "c": "uvw"}, scores)
    found = pairs.table([made]).set_index(["first", "second"])
    assert found["comparable"].to_dict() == {("a", "b"): False, ("a", "c"): True, ("b", "c"): False}
    assert found.loc[("a", "b"), "nested"] == 1


def test_questions_from_one_document_count_as_one() -> None:
    values = pd.Series([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    alone, together = pairs.difference(values), pairs.difference(values.repeat(10), np.repeat(np.arange(6), 10))
    assert (together.value, together.low, together.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert together.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_p_values_are_adjusted_as_holm_did() -> None:
    assert pairs.holm(pd.Series([0.04, 0.01, 0.03, 0.9])).tolist() == pytest.approx([0.09, 0.04, 0.09, 0.9])


def test_a_pick_costs_what_the_best_run_may_be_better() -> None:
    made = setting({"a": GOOD, "b": BAD}, {"a": "xy", "b": "xz"}, {"a": BAD, "b": GOOD})
    found = pairs.worth(made)
    assert (found["m"].pick, found["answers"].pick) == ("b", "a")
    assert found["m"].gain[0] == pytest.approx(-25, abs=0.1)
    assert found["m"].cost > 50 > found["answers"].cost


def test_a_sentence_that_does_not_hold_stops_the_page() -> None:
    assert page.holds(2 > 1, "so") == "so"
    with pytest.raises(AssertionError, match="says what is not so: never"):
        page.holds(False, "never")


def test_a_figure_draws_each_count_to_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_static").mkdir()
    monkeypatch.setattr(page, "DOCS", tmp_path)
    page.figure("bars", "A < B", {"one": {"r: m": {"agree": 3, "opposite": 1, "not told": 0}}})
    drawn = (tmp_path / "_static" / "bars.svg").read_text()
    assert 'width="225.0"' in drawn
    assert 'width="75.0"' in drawn
    assert "A &lt; B" in drawn
    assert "<text" in drawn
    assert ">0</text>" in drawn
    assert ">3</text>" in drawn


def test_a_figure_draws_each_number_on_its_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_static").mkdir()
    monkeypatch.setattr(page, "DOCS", tmp_path)
    page.dots("dots", "A", "points", {"one": {"top 5": {"by labels": (5, 0, 10)}}})
    drawn = (tmp_path / "_static" / "dots.svg").read_text()
    (ends,) = re.findall(r'<line x1="([\d.]+)" x2="([\d.]+)" y1="([\d.]+)" y2="\3" stroke="#0b62a8"', drawn)
    assert float(ends[1]) - float(ends[0]) == pytest.approx(300, abs=0.1), "from 0 to 10, the whole axis"
    assert f'<circle cx="{(float(ends[0]) + float(ends[1])) / 2:.1f}"' in drawn
    assert ">points</text>" in drawn
    assert "by answers" not in drawn


def test_numbers_are_shown_with_their_interval() -> None:
    assert page.shown((-0.01, -1.25, 2.0)) == "0.0 (-1.2 to 2.0)"
    assert page.share(0.013, 0.049) == "1–5 %"
    assert page.share(1, 1) == "100 %"


@pytest.mark.parametrize(
    ("given", "golden", "quality"),
    [
        ("Yes", {"type": "yesno", "exact_answer": "yes"}, 1),
        ([["p53"], ["x"]], {"type": "factoid", "exact_answer": [["TP53", "p53"]]}, 1),
        ([["x"], ["p53"]], {"type": "factoid", "exact_answer": [["p53"]]}, 0),
        ([["a"], ["b"]], {"type": "list", "exact_answer": [["A", "aa"], ["c"]]}, 0.5),
        ([], {"type": "list", "exact_answer": [["a"]]}, 0),
    ],
)
def test_exact_answers_are_rated_as_the_task_does(given: object, golden: dict[str, object], quality: float) -> None:
    assert bioasq._quality({"exact_answer": given}, golden) == pytest.approx(quality)


def test_snippets_hit_where_their_letters_overlap_in_either_spelling() -> None:
    found = {"document": "x/12/", "begin_section": "abstract", "offset_in_begin_section": 5, "offset_in_end_section": 9}
    marked = {"document": "y/12", "beginSection": "abstract", "offsetInBeginSection": 8, "offsetInEndSection": 20}
    assert bioasq._hit({"snippets": [found]}, {"snippets": [marked]})
    assert not bioasq._hit({"snippets": [found]}, {"snippets": [marked | {"offsetInBeginSection": 9}]})
    assert not bioasq._hit({"snippets": [found | {"document": "x/13"}]}, {"snippets": [marked]})


def test_the_place_of_labels_that_nobody_has_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged, "RESULT", tmp_path / "judged.md")
    assert judged.place() == ""
    (tmp_path / "judged.md").write_text("| eRAG |\n")
    assert judged.place() == "| eRAG |"


def multihop_files(questions: int = 26) -> dict[str, str]:
    """The files of a repository in which three retrievers found five passages for each question."""
    files = {f"llm-responses/{contexts.ORACLE}": {}}
    for run, name in judged.RUNS.items():
        prompts = files.setdefault(f"llm-responses/{name}", {})
        for number in range(questions):
            shift = list(judged.RUNS).index(run)
            passages = [f"Document[{n}](Title: {number}) Bridge {number} part {n + shift}." for n in range(1, 6)]
            prompt = "\n".join(["Documents:", *passages, "", f"Question: Who built {number}?"])
            prompts[prompt] = ["Ada" if (number + shift) % 3 else "Bob", "Ada"]
            files[f"llm-responses/{contexts.ORACLE}"][prompt] = ["Ada", "Ada"]
    return {path: json.dumps(prompts) for path, prompts in files.items()}


def test_the_missing_comparison_counts_first_goes_on_after_a_stop_and_leaves_labels_without_texts(
    put: Put, tmp_path: Path, fault_server: FaultServer, capfd: pytest.CaptureFixture[str]
) -> None:
    put(multihop_files())
    wanted = 3 * judged.pairs()
    given = [fault_server.base_url, "--model", "m", "--out", str(tmp_path / "out"), "--concurrency", "4"]
    assert judged.main(given) == 0
    assert f"{wanted:,}" in capfd.readouterr().out
    assert fault_server.seen == [], "nobody said yes"
    fault_server.answer = lambda body, seen: "Yes" if len(fault_server.seen) < 60 else openai_error(401, "no more")
    assert judged.main([*given, "--yes"]) == 3
    before = len(fault_server.seen)
    fault_server.answer = lambda body, seen: "Final grade: 2" if "Final grade" in str(body) else "Yes"
    assert judged.main([*given, "--yes"]) == 0
    assert len(fault_server.seen) - before == wanted - 59, "what was paid before the stop is not paid again"
    published = tmp_path / "out" / "published"
    names = {path.name for path in published.iterdir()}
    assert {"judge.qrels", "graded.qrels", "eRAG.qrels", "gold.qrels", "table.md"} <= names
    written = "".join(path.read_text() for path in published.iterdir())
    assert "Bridge" not in written
    assert "Who built" not in written
    table = (published / "table.md").read_text()
    assert "| labels | measure | ADORE: tau-b, rho |" in table
    assert "| judge | nDCG@5 |" in table
    assert "```text\n" in table


@pytest.mark.more
@pytest.mark.skipif("STUDIES" not in os.environ, reason="STUDIES names no folder with copies of the repositories")
def test_the_page_is_what_the_studies_make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from studies.__main__ import TABLES, pages

    docs = page.DOCS
    (tmp_path / "_static").mkdir()
    monkeypatch.setattr(page, "DOCS", tmp_path)
    written = pages()
    assert written[tmp_path / "study.md"] == (docs / "study.md").read_text()
    assert written[TABLES] == TABLES.read_text()
    for made in (tmp_path / "_static").iterdir():
        assert made.read_text() == (docs / "_static" / made.name).read_text()


def test_the_page_is_short() -> None:
    assert len((page.DOCS / "study.md").read_text().split()) <= 1500


@pytest.mark.more
@pytest.mark.timeout(900)  # eight runs, each a process
def test_the_small_model_is_asked_once_and_what_is_published_answers_without_it(
    put: Put, tmp_path: Path, fault_server: FaultServer
) -> None:
    put(multihop_files(4))
    fault_server.answer = lambda body, seen: "Ada" if "short answer" in str(body) else "Yes"
    published = tmp_path / "published"
    given = [
        "--limit",
        "3",
        "--labelers",
        "eRAG",
        "judge",
        "--kept",
        str(published / "replies.jsonl.gz"),
    ]
    asked = [*given, "--out", str(tmp_path / "first"), "--url", fault_server.base_url, "--publish", str(published)]
    assert small_model.main(asked) == 0
    sent = len(fault_server.seen)
    assert sent == len(set(map(str, fault_server.seen))), "both experiments share their requests"
    for body in fault_server.seen:
        held = body.keys() & CONSTRAINTS
        assert held <= {"response_format"}, "a server may hold a model to a form, which is another reply"
        assert body.get("response_format", kept.FREE) == kept.FREE
    names = {path.name for path in published.iterdir()}
    assert {"replies.jsonl.gz", "eRAG.qrels", "judge.qrels"} <= names
    assert {"comparison-small-readers.csv", "claims-Llama-3-8B-judges.csv"} <= names
    replies = kept.read(published / "replies.jsonl.gz")
    assert len(replies) == sent
    assert "Bridge" not in json.dumps(replies)
    first = {path.name: path.read_bytes() for path in published.iterdir()}
    assert not [name for name, held in first.items() if str(tmp_path).encode() in held]
    # A new folder and an address that nobody listens at: all of it comes from what was published.
    again = [*given, "--out", str(tmp_path / "again"), "--url", "http://127.0.0.1:9/v1", "--publish", str(published)]
    assert small_model.main(again) == 0
    assert len(fault_server.seen) == sent
    assert {path.name: path.read_bytes() for path in published.iterdir()} == first


def test_kept_replies_differ_by_their_form_and_hold_no_alternatives(tmp_path: Path) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "max_tokens": 9}
    free = body | {"response_format": kept.FREE}
    held = body | {"response_format": {"type": "json_object"}}
    assert kept.key_of(json.dumps(body)) == kept.key_of(json.dumps(free)) != kept.key_of(json.dumps(held))
    told = {"choices": [{"message": {"content": "No"}}]}
    weighed = {"choices": [{"message": {"content": "No"}, "logprobs": {"content": [{"token": "No"}]}}]}
    asked = [(body, told), (held, told), (body | {"logprobs": True}, weighed)]
    records = [{"sent": json.dumps(sent), "reply": json.dumps(reply)} for sent, reply in asked]
    (tmp_path / "exported.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    assert kept.keep(tmp_path / "exported.jsonl", tmp_path / "kept.gz") == 2
    assert kept.read(tmp_path / "kept.gz") == {kept.key_of(json.dumps(sent)): told for sent in (free, held)}


def test_two_readers_are_compared_on_the_questions_that_both_answered() -> None:
    def table(values: dict[str, float | None], **other: object) -> pd.DataFrame:
        rows = [{"query_id": query, "run": readers.RUN, "depth": readers.DEPTH, "metric": "f1"} for query in values]
        return pd.DataFrame(rows).assign(value=list(values.values()), **other)

    small = pd.concat([table({"q1": 0.5, "q2": 1.0, "q4": 0.25}), table({"q1": 0.9}, run="ADORE")])
    small = pd.concat([small, table({"q1": 0.8}, depth=1), table({"q1": 0.7}, metric="contains")])
    found = readers.beside(table({"q1": 0.25, "q2": None, "q3": 1.0, "q4": 0.0}), small)
    assert found[small_model.BASE].to_dict() == {"q1": 0.25, "q4": 0.0}
    assert found[small_model.MODEL].to_dict() == {"q1": 0.5, "q4": 0.25}


def test_a_server_that_does_not_start_is_said_with_what_it_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "llama-server"
    program.write_text("#!/bin/sh\necho no such model; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(small_model, "install", lambda folder: (program, tmp_path / "model.gguf"))
    server = small_model.ModelServer(tmp_path, wait_s=20)
    with pytest.raises(source.SourceError, match=r"(?s)not ready .*server\.log ends with:.*no such model"):
        server.start()
    server.stop()


def test_what_is_published_says_what_it_was_made_by() -> None:
    told = tomllib.loads((small_model.PUBLISHED / small_model.MADE).read_text(encoding="utf-8"))
    now = tomllib.loads(small_model.made())
    # Under other prompts the published replies would answer nothing.
    assert {**told, "date": ""} == {**now, "date": ""}
    assert set(told["prompts"]) == {"answer-short", "closed-book", "binary", "graded-json"}


def test_what_is_published_names_no_folder_of_a_machine() -> None:
    for file in small_model.PUBLISHED.glob("*.csv"):
        assert not re.search(r"judgekit \w+ \S*/", file.read_text(encoding="utf-8")), file.name


def a_table(runs: int = 3, questions: int = 60) -> rules.Real:
    """Answers of runs, labels that follow them, and labels that say nothing."""
    rng = np.random.default_rng(1)
    quality = rng.random((runs, questions))
    scores = np.stack([0.9 * quality + 0.1 * rng.random(quality.shape), rng.random(quality.shape)])
    names = tuple(f"r{run}" for run in range(runs)), tuple(f"q{query:02}" for query in range(questions))
    return rules.Real(("follows", "chance"), *names, scores, quality)


def test_labels_that_are_turned_round_are_asked_about_and_others_are_not() -> None:
    real = a_table()
    turned = replace(real, scores=1 - real.scores)
    assert (rules._asked(real), rules._asked(turned)) == (0, 1)
    (row,) = rules.levels({"made up": real}).splitlines()[2:]
    assert row.startswith("| made up | 3 x 60 | follows (.")
    assert row.endswith("| the same |")


def test_copies_of_questions_show_a_best_run_only_if_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Track:
        table = a_table(2)

    (row,) = rules.copies(Track, {}, draws=20).splitlines()[2:]  # type: ignore[arg-type]  # only its table is used
    shown, of_questions = (float(cell.split()[0]) for cell in row.split("|")[3:5])
    assert shown > of_questions


def test_the_page_has_all_tables_of_the_rules() -> None:
    text = rules.PLACE.read_text()
    for name in rules.TABLES:
        made = text.partition(f"<!-- public: {name} -->\n")[2].partition(f"\n<!-- /public: {name} -->")[0]
        assert made.startswith("| "), name
        assert len(made.splitlines()) > 2, name
