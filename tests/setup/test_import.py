"""What people have goes in: three kinds of data, from `init` to the final qrels in at most five commands, two edits."""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import judgekit as jk
from judgekit.answers.declared import scaled
from judgekit.data.files import read_table
from judgekit.data.tables import RATINGS
from judgekit.data.trec import read_qrels
from judgekit.experiment.file import load
from judgekit.setup.joined import runs_meant
from tests.commands import Said
from tests.mock import URL
from tests.small import FILES, QUICK, RUNS, YEARS, edited, toml

TOWNS = ["Arlen", "Borvik", "Cantry", "Dulse", "Elmshire", "Farrow", "Gilden", "Harth", "Isling", "Jarrow"]
MOST_COMMANDS, MOST_EDITS = 5, 2


def text_of(town: int) -> str:
    return f"The stone bridge of {TOWNS[town]} was built in {1400 + 31 * town} by masons of the guild."


def question_of(town: int) -> str:
    return f"When was the bridge of {TOWNS[town]} built?"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "own").mkdir()
    return tmp_path / "own"


class Journey:
    """Runs commands and edits files, and counts both."""

    def __init__(self, judgekit: Callable[..., Said]) -> None:
        self._judgekit = judgekit
        self.commands = self.edits = 0

    def __call__(self, *args: object, code: int = 0) -> Said:
        self.commands += 1
        return self._judgekit(*args, code=code)

    def edit(self, path: Path, **changes: str) -> None:
        """Edit a file once, in one or several places."""
        self.edits += 1
        for old, new in changes.items():
            edited(path, f"{old} = ", f"{old} = {new} # ")

    def server(self, path: Path) -> None:
        """Fill in the server."""
        self.edit(path, base_url=json.dumps(URL), model='"mock"')

    def check(self, qrels: Path, pairs: int) -> None:
        """Check that the final qrels are there, and what they took."""
        assert len(read_qrels(qrels)) == pairs
        assert (self.commands <= MOST_COMMANDS, self.edits <= MOST_EDITS) == (True, True)


@pytest.fixture
def journey(judgekit: Callable[..., Said]) -> Journey:
    return Journey(judgekit)


def sheet(path: Path, rows: Iterable[Iterable[object]]) -> None:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([*row])
    book.save(path)


@pytest.fixture
def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A handbook of more than 200 pages, questions in Excel, results of two pipelines, thumbs."""
    data = tmp_path / "company"
    for page in range(250):
        path = data / "handbook" / f"part {page % 3}" / f"page{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {page}\n\n{text_of(page % 10)}\n")
    sheet(
        data / "fragen.xlsx",
        [
            ("Nr", "Frage", "Antwort", "Abteilung"),
            *((i, question_of(i), str(1400 + 31 * i), "Bau") for i in range(10)),
        ],
    )
    langchain, llamaindex = [], []
    for i in range(10):
        passages = [text_of(i), text_of((i + 1) % 10), f"The market of {TOWNS[i]} is on the square."]
        documents = [{"page_content": text, "metadata": {"source": "page.md"}, "id": None} for text in passages]
        langchain.append({"input": question_of(i), "context": documents, "answer": str(1400 + 31 * i)})
        nodes = [{"node": {"id_": f"n{i}{at}", "text": text}, "score": 0.5} for at, text in enumerate(passages[1:])]
        nodes.append(nodes[0])  # found twice
        llamaindex.append({"query": question_of(i), "response": "I do not know.", "source_nodes": nodes})
    (data / "langchain.json").write_text(json.dumps(langchain))
    (data / "llamaindex.json").write_text(json.dumps(llamaindex))
    (data / "handbook.pdf").write_bytes(b"%PDF-1.4")
    rows = [f"{i};{run};{thumb}" for i in range(10) for run, thumb in (("langchain", "up"), ("llamaindex", "down"))]
    (data / "daumen.csv").write_text("\n".join(["Nr;Variante;Daumen", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return data


def test_a_company_s_folder_becomes_final_qrels(company: Path, journey: Journey) -> None:
    first = journey("init", "company")
    assert "name its columns, xlsx(id=…,text=…,answers=…):fragen.xlsx" in first.out
    assert "name its columns, csv(id=…,text=…,answers=…):daumen.csv" in first.out
    assert "not used: 250 text files. If runs name passages by the paths of these files, name the" in first.out
    assert "handbook.pdf               not used: save its text as .txt or .md" in first.out
    assert "fragen.xlsx is not used: nothing says what its columns hold" in first.err
    questions = "xlsx(id=Nr,text=Frage,answers=Antwort):company/fragen.xlsx"
    thumbs = "csv(query_id=Nr,run=Variante,value=Daumen):company/daumen.csv"
    said = journey("init", "company", questions, thumbs, "--overwrite")
    assert "fragen.xlsx                questions: 10, 10 with reference answers" in said.out
    assert "Nr → id, Frage → text, Antwort → answers" in said.out
    assert "kept for prompts as {query.NAME} and for [analysis] by: Abteilung" in said.out
    assert (
        "results for 10 questions of fragen.xlsx, found by their text: written to imported/langchain.jsonl" in said.out
    )
    assert "ratings of answers" in said.out
    assert said.err == ""
    experiment = company / "experiment.toml"
    config = load(experiment)
    assert (config.data.depth, config.answers.depths, config.answers.declared.outcome) == (3, [3], "rating")
    text = experiment.read_text()
    assert "# [prices.my-model]" in text
    journey.edit(experiment, **{"primary": '"P@3"'})
    journey("run", experiment, "--out", "company/results")
    built = journey("build", experiment, "--labeling", "containment", "--out", "final")
    assert built.err.count("the card") == 0
    journey.check(Path("final/final.qrels"), 30)
    assert "Unknown: these labels were built without" not in Path("final/card.md").read_text()


def test_questions_with_answers_in_a_table_are_those_of_results_without_ids(
    company: Path, judgekit: Callable[..., Said]
) -> None:
    rows = [("id", "question", "answer"), *((i, question_of(i), "1412") for i in range(10))]
    sheet(company / "fragen.xlsx", rows)
    (company / "daumen.csv").unlink()
    (company / "pilot.csv").write_text("query_id,weight\n1,1\n")
    (company / "gold.qrels").write_text("1 0 page.md 1\n")  # what LangChain calls the source
    said = judgekit("init", "company", code=0)
    assert "fragen.xlsx                questions: 10, 10 with reference answers" in said.out
    assert "not used: a sample of questions, as `judgekit plan` writes it" in said.out
    assert "judgments: 1 of 10 questions, 1 with a judged passage among those that runs found, by the page" in said.out
    config = load(company / "experiment.toml")
    # Every answer is the same, so that no metric without an LLM tells any apart.
    assert (config.data.queries, config.answers.declared.outcome) == ("fragen.xlsx", "correct")
    assert config.answers.imported == ["imported/langchain.jsonl", "imported/llamaindex.jsonl"]
    judgekit("run", company / "experiment.toml", "--dry-run", code=0)


@pytest.fixture
def beir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A BEIR folder with a train and a test split, and runs of two retrievers beside it."""
    data = tmp_path / "beir"
    (data / "qrels").mkdir(parents=True)
    docs = [{"_id": f"d{i}", "title": "", "text": text_of(i) if i < 10 else f"Cheese number {i}."} for i in range(40)]
    asked = [{"_id": f"q{i}", "text": question_of(i)} for i in range(10)]
    for name, rows in (("corpus", docs), ("queries", [*asked, {"_id": "t1", "text": "And then?"}])):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = "query-id\tcorpus-id\tscore\n"
    (data / "qrels/test.tsv").write_text(head + "".join(f"q{i}\td{i}\t1\n" for i in range(10)))
    (data / "qrels/train.tsv").write_text(head + "t1\td1\t1\n")
    (data / "runs").mkdir()
    for name, start in (("bm25", 0), ("dense", 1)):
        # The second finds the passage of every other question only.
        lists = {i: [i if name == "bm25" or i % 2 else 39 - i, *range(10 + start, 13 + start)] for i in range(10)}
        rows = [f"q{i} Q0 d{doc} {at} {9 - at} {name}\n" for i, some in lists.items() for at, doc in enumerate(some)]
        (data / "runs" / f"{name}.trec").write_text("".join(rows))
    monkeypatch.chdir(tmp_path)
    return data


def test_a_beir_folder_becomes_final_qrels(beir: Path, journey: Journey) -> None:
    said = journey("init", "beir")
    assert "Fill in base_url and model of your server. Then plan, which asks no model:" in said.out
    experiment = beir / "experiment.toml"
    config = load(experiment)
    assert (config.data.queries, config.data.depth, config.answers.declared.outcome) == (
        "beir(split=test):.",
        4,
        "test",
    )
    journey.server(experiment)
    journey("plan", experiment)
    journey("run", experiment, "--out", "beir/results")
    journey("build", experiment, "--labeling", "judge", "--out", "final")
    journey.check(Path("final/final.qrels"), 10 * 5 + 5)


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Passages of MS MARCO, of which one begins with a quote, graded qrels, and eight runs."""
    data = tmp_path / "dl"
    data.mkdir()
    passages = [text_of(i % 10) + f" Note {i}." for i in range(80)]
    passages[3] = f'"{passages[3]}'
    passages[5] = f'{passages[5]} "The" end"'
    (data / "collection.tsv").write_text("".join(f"{1000 + i}\t{text}\n" for i, text in enumerate(passages)))
    (data / "queries.tsv").write_text("".join(f"{i}\t{question_of(i)}\n" for i in range(10)))
    judged = [f"{i} 0 {1000 + i + 10 * at} {3 - at}\n" for i in range(10) for at in range(4)]
    (data / "qrels.txt").write_text("".join(judged))
    chance = random.Random(1)
    for number in range(8):
        rows = []
        for query in range(10):
            ranked = [1000 + query + 10 * at for at in range(8)]
            shifts = {doc: at + chance.gauss(0, number + 0.1) for at, doc in enumerate(ranked)}
            ranked.sort(key=shifts.__getitem__)
            rows += [f"{query} Q0 {doc} {at + 1} {9 - at} run{number}\n" for at, doc in enumerate(ranked)]
        (data / f"run{number}.trec").write_text("".join(rows))
    monkeypatch.chdir(tmp_path)
    return data


def test_one_quote_in_a_collection_of_ms_marco_takes_nothing_away(deep: Path, judgekit: Callable[..., Said]) -> None:
    said = judgekit("init", "dl", code=0)
    assert "collection.tsv: its quotes are plain characters (tsv(quote=none))" in said.err
    assert "collection.tsv  passages: 80\n" in said.out
    assert "queries.tsv     questions: 10, none with reference answers\n" in said.out
    assert said.out.count(": 10 questions, up to 8 documents each") == 8
    assert "judgments: 10 of 10 questions, 10 with a judged passage" in said.out
    assert load(deep / "experiment.toml").data.docs == ["tsv(quote=none):collection.tsv"]
    (deep / "experiment.toml").unlink()
    named = judgekit("init", "dl", "tsv(quote=none):dl/collection.tsv", code=0)
    assert (named.err, "passages: 80" in named.out) == ("", True)


def test_a_researcher_s_qrels_and_runs_become_final_qrels_without_any_answer(deep: Path, journey: Journey) -> None:
    journey("init", "dl")
    experiment = deep / "experiment.toml"
    assert (load(experiment).answers.declared.outcome, load(experiment).data.depth) == ("qrels", 5)
    journey.server(experiment)
    assert "the order of the runs under qrels" in journey("plan", experiment).out
    journey("run", experiment, "--out", "dl/results")
    journey("build", experiment, "--labeling", "judge", "--out", "final")
    assert "Unknown: these labels were built without" not in Path("final/card.md").read_text()
    rows = [line.split() for path in deep.glob("run*.trec") for line in path.read_text().splitlines()]
    journey.check(Path("final/final.qrels"), len({(row[0], row[2]) for row in rows if int(row[3]) <= 5}))


def test_a_folder_of_texts_that_is_named_is_the_collection(
    own: Path, monkeypatch: pytest.MonkeyPatch, judgekit: Callable[..., Said]
) -> None:
    monkeypatch.chdir(own)
    for i in range(210):
        path = own / f"wiki/{i % 2}/town{i}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {TOWNS[i % 10]}\n\n{text_of(i % 10)} Note {i}.\n")
    asked = "".join(f"q{i},{question_of(i)},{1400 + 31 * i}\n" for i in range(10))
    Path("questions.csv").write_text("id,question,answer\n" + asked)
    rows = "".join(f"q{i},{i % 2}/town{i}.md,1\nq{i},0/town{2 * i + 20}.md,2\n" for i in range(10))
    Path("run.csv").write_text("query_id,doc_id,rank\n" + rows)
    refused = judgekit("init", ".", code=2).err
    assert "If runs name passages by the paths of the text files: judgekit init . texts:wiki --overwrite" in refused
    said = judgekit("init", ".", "texts:wiki", code=0)
    assert "passages: 210" in said.out
    assert "text files" not in said.out
    assert load("experiment.toml").data.docs == ["texts:wiki"]
    judgekit("run", "experiment.toml", "--dry-run", code=0)


PAIR: dict[str, Any] = {"query_id": "q1", "query": "x", "documents": ["d3", "d1"]}


def test_expected_documents_need_no_grades_where_measures_need_none(
    own: Path, monkeypatch: pytest.MonkeyPatch, judgekit: Callable[..., Said]
) -> None:
    monkeypatch.chdir(own)
    Path("expected.json").write_text(json.dumps([PAIR]))
    Path("run.trec").write_text("q1 Q0 d1 1 2 t\nq1 Q0 d2 2 1 t\n")
    said = judgekit("score", "--run", "run.trec", "--qrels", "expected.json", "-m", "P@2 R@2", code=0)
    assert "0.5000" in said.out
    judgekit("convert", "expected.json", "out.qrels", code=0)
    assert Path("out.qrels").read_text() == "q1 0 d1 1\nq1 0 d3 1\n"


def test_an_own_form_of_a_plug_in_s_kind_is_used_by_init(
    own: Path, monkeypatch: pytest.MonkeyPatch, judgekit: Callable[..., Said]
) -> None:
    monkeypatch.chdir(own)
    monkeypatch.setattr(jk.register, "forms", {})

    @jk.register.form("hits", holds=("query", "doc", "run"), marks=lambda fields: "hits" in fields)
    def hits(fields: dict[str, Any]) -> dict[str, Any]:
        return {"question": fields["q"], "answers": fields["gold"], "ctxs": [{"text": text} for text in fields["hits"]]}

    for name in ("a", "b"):
        entries = [{"q": question_of(i), "gold": [str(1400 + 31 * i)], "hits": [text_of(i), name]} for i in range(4)]
        Path(f"{name}.json").write_text(json.dumps(entries))
    said = judgekit("init", ".", code=0)
    assert "a.json  questions: 4, 4 with reference answers (the form 'hits')" in said.out
    judgekit("run", "experiment.toml", "--dry-run", code=0)
    judgekit("convert", "a.json", "a.trec", code=0)


def test_judgments_that_nothing_else_follows_are_what_to_keep(folder: Path, judgekit: Callable[..., Said]) -> None:
    (folder / "other.qrels").write_text("".join(f"q{i} 0 d{(i + 1) % 6}c 1\n" for i in range(6)))
    labelers = [{"name": name, "kind": "provenance", "qrels": f"{name}.qrels"} for name in ("gold", "other")]
    answers = {"outcome": "gold", "depths": [3]}
    tables = {"data": FILES | {"depth": 3}, "runs": RUNS, "labelers": labelers, "answers": answers, "analysis": QUICK}
    (folder / "experiment.toml").write_text(toml(**tables))
    edited(folder / "queries.jsonl", ', "answers": ["1412"]', "")
    said = judgekit("run", "experiment.toml", "--out", "results", code=0)
    about = "nDCG@3 of each labeling against nDCG@3 by gold"
    assert about in " ".join(said.out.split()), said.out
    kept = "Keep the judgments that you have: no other labeling follows nDCG@3 by gold."
    assert kept in " ".join(said.out.split()), said.out


def test_tables_without_ids_in_another_language_come_in_once_their_columns_are_named(
    company: Path, judgekit: Callable[..., Said]
) -> None:
    right = [str(1400 + 31 * i) for i in range(10)]
    noted = [f"2026-03-{i + 10}" for i in range(10)]
    asked = [f"Wann wurde die Brücke von {town} gebaut?" for town in TOWNS]
    sheet(company / "fragen.xlsx", [("Frage", "Am", "Erwartete Antwort"), *zip(asked, noted, right, strict=True)])
    for name in ("langchain", "llamaindex"):
        entries = json.loads((company / f"{name}.json").read_text())
        for entry, question in zip(entries, asked, strict=True):
            entry["input" if name == "langchain" else "query"] = question
        (company / f"{name}.json").write_text(json.dumps(entries))
    days = [
        f"{i + 20}.5.2026;{question};{run};{thumb}"
        for i, question in enumerate(asked)
        for run, thumb in (("langchain", "👍"), ("llamaindex", "👎"))
    ]
    (company / "daumen.csv").write_text("\n".join(["Tag;Frage;Variante;Daumen", *days]) + "\n")
    first = judgekit("init", "company", code=0)
    assert "results whose passages others have under other ids: written to imported/llamaindex.jsonl" in first.out
    assert "passages that runs found repeat the text of another" not in first.err
    questions = "xlsx(text=Frage,answers='Erwartete Antwort'):company/fragen.xlsx"
    thumbs = "csv(text=Frage,run=Variante,value=Daumen):company/daumen.csv"
    said = judgekit("init", "company", questions, thumbs, "--overwrite", code=0)
    assert "imported/fragen.csv        questions: 10, 10 with reference answers" in said.out
    assert "Erwartete Antwort → answers" in said.out
    assert "imported/daumen.csv        ratings of answers" in said.out
    config = load(company / "experiment.toml")
    assert (config.answers.outcome, config.data.queries.split(":")[1]) == ("rating", "imported/fragen.csv")
    judgekit("run", company / "experiment.toml", "--dry-run", code=0)


@pytest.mark.parametrize(
    "thumbs", ["hoch runter", "gut schlecht", "ja nein", "oui non", "sí no", "👍 👎🏽", "+1 -1", "1 0"]
)
def test_thumbs_in_other_languages_and_symbols_have_a_direction(
    thumbs: str, company: Path, judgekit: Callable[..., Said]
) -> None:
    up, down = thumbs.split()
    sheet(company / "fragen.xlsx", [("id", "question", "answer"), *((i, question_of(i), "1412") for i in range(10))])
    cells = [f"{i},{run},{thumb}" for i in range(10) for run, thumb in (("langchain", up), ("llamaindex", down))]
    (company / "daumen.csv").write_text("\n".join(["query_id,run,thumb", *cells]) + "\n")
    judgekit("init", "company", code=0)
    config = load(company / "experiment.toml")
    rated = scaled(read_table(RATINGS, config.resolve(config.answers.ratings[0])), config.answers.declared).table
    assert rated.groupby("run")["value"].mean().to_dict() == {"langchain": 1, "llamaindex": 0}


def test_a_thumb_whose_direction_nobody_knows_is_refused_by_name(company: Path, judgekit: Callable[..., Said]) -> None:
    sheet(company / "fragen.xlsx", [("id", "question", "answer"), *((i, question_of(i), "1412") for i in range(10))])
    (company / "daumen.csv").write_text("query_id,run,thumb\n1,langchain,hoch\n1,llamaindex,naja\n")
    said = judgekit("init", "company").err
    assert "daumen.csv" in said
    assert "line 3: column 'value': 'naja' is neither a number nor a thumb (up: up yes" in said


def test_references_of_whole_sentences_are_met_by_common_words(folder: Path, judgekit: Callable[..., Said]) -> None:
    (folder / "experiment.toml").unlink()
    for year in YEARS:
        edited(
            folder / "queries.jsonl", f'"{year}"', f'"Masons of the guild built it in {year}, after the great flood."'
        )
    judgekit("init", code=0)
    text = (folder / "experiment.toml").read_text()
    assert "references are sentences (12 words), which em never meets" in text
    config = load(folder / "experiment.toml")
    assert (config.answers.outcome, config.answers.metrics) == ("f1", ["f1"])
    assert [entry.spec for entry in config.labelers] == [
        "provenance(qrels='gold.qrels')",
        "judge",
        "utility(quality=f1)",
    ]


def test_two_chunkings_without_spans_are_said_before_anything_is_paid(own: Path, monkeypatch, judgekit) -> None:
    monkeypatch.chdir(own)
    for name in ("small", "large"):
        docs = [{"doc_id": f"{name}{i}", "text": text_of(i % 10) + f" {name} {i}"} for i in range(60)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        rows = [f"q{i} Q0 {name}{i + 10 * at} {at} {9 - at} t\n" for i in range(10) for at in range(6)]
        Path(f"{name}.trec").write_text("".join(rows))
    asked = "".join(f"q{i},{question_of(i)},{1400 + 31 * i}\n" for i in range(10))
    Path("questions.csv").write_text("id,question,answer\n" + asked)
    said = judgekit("init", code=0)
    why = "small share 0% of their documents, so nDCG@5 cannot compare them"
    assert why in said.err
    assert "Take RR or Success, or say where documents stand on their pages (judgekit chunks)" in said.err
    assert load("experiment.toml").analysis.primary == "RR@5"
    assert "cannot compare" not in judgekit("run", "experiment.toml", "--dry-run", code=0).err
    edited(Path("experiment.toml"), 'primary = "RR@5"', 'primary = "nDCG@5"')
    for command in (["plan", "experiment.toml"], ["run", "experiment.toml", "--dry-run"]):
        done = judgekit(*command, code=0)
        assert why in " ".join((done.out + done.err).split())


def workbook(path: Path, **sheets: Iterable[Iterable[object]]) -> None:
    """Write an Excel file of several sheets, with an empty one among them."""
    book = openpyxl.Workbook()
    for name, rows in sheets.items():
        below = book.create_sheet(name)
        for row in rows:
            below.append([*row])
    book.save(path)


def results(path: Path, wrong: bool) -> None:
    """Write what a pipeline of LangChain returned, which found the passage or did not."""
    found = []
    for i in range(10):
        texts = [text_of((i + 5) % 10 if wrong else i), text_of((i + 1) % 10)]
        documents = [{"page_content": text, "metadata": {"source": f"page{i}.md"}} for text in texts]
        found.append({"input": question_of(i), "context": documents, "answer": "?" if wrong else str(1400 + 31 * i)})
    path.write_text(json.dumps(found))


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A handbook, two sheets of one workbook, results of two pipelines, and thumbs that spell their runs otherwise."""
    data = tmp_path / "office"
    for page in range(10):
        path = data / "handbook" / f"page{page}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Page {page}\n\n{text_of(page)}\n")
    thumbs = [(i, run, "hoch" if (run == "BM25 Base") == (i < 8) else "runter") for i in range(10) for run in SPELLED]
    workbook(
        data / "Auswertung.xlsx",
        Fragen=[("Nr", "Frage", "Antwort"), *((i, question_of(i), str(1400 + 31 * i)) for i in range(10))],
        **{"Daumen der Nutzer": [("Nr", "Variante", "Daumen"), *thumbs]},
    )
    results(data / "bm25-base.json", wrong=False)
    results(data / "dense_v2.json", wrong=True)
    monkeypatch.chdir(tmp_path)
    return data


def test_each_sheet_of_a_workbook_is_a_table_of_its_own(own: Path, judgekit: Callable[..., Said]) -> None:
    ranked = {name: [("query_id", "doc_id", "rank"), *((f"q{i}", f"d{i}", "1") for i in range(10))] for name in "ab"}
    questions = [("id", "question", "answer"), *((f"q{i}", question_of(i), "1412") for i in range(10))]
    passages = [("doc_id", "text"), *((f"d{i}", text_of(i)) for i in range(10))]
    workbook(own / "all.xlsx", questions=questions, empty=[], passages=passages, **ranked)
    said = judgekit("init", own, code=0)
    assert "all.xlsx, sheet 'questions'  questions: 10, 10 with reference answers" in said.out
    assert "all.xlsx, sheet 'passages'   passages: 10" in said.out
    assert "all.xlsx, sheet 'a'          run 'a': 10 questions" in said.out
    assert "empty" not in said.out
    assert [*load(own / "experiment.toml").runs] == ["a", "b"]
    judgekit("run", own / "experiment.toml", "--dry-run", code=0)


SPELLED = ("BM25 Base", "Dense.V2")
SHEETS = (
    "xlsx(sheet=Fragen,id=Nr,text=Frage,answers=Antwort):office/Auswertung.xlsx",
    "xlsx(sheet='Daumen der Nutzer',query_id=Nr,run=Variante,value=Daumen):office/Auswertung.xlsx",
)


def test_a_workbook_thumbs_and_runs_in_other_spellings_become_final_qrels(office: Path, journey: Journey) -> None:
    first = journey("init", "office", code=0)
    assert "name its columns, xlsx(sheet=Fragen,id=…,text=…,answers=…):Auswertung.xlsx" in first.out
    assert 'name its columns, xlsx(sheet="Daumen der Nutzer",id=…,text=…' in first.out
    said = journey("init", "office", *SHEETS, "--overwrite")
    assert "Auswertung.xlsx, sheet 'Fragen'             questions: 10, 10 with reference answers" in said.out
    assert "its runs are those of the files (BM25 Base is bm25-base, Dense.V2 is dense_v2)" in said.out
    assert "imported/Daumen der Nutzer.csv              ratings of answers" in said.out
    config = load(office / "experiment.toml")
    assert (config.answers.declared.outcome, [*config.runs]) == ("rating", ["bm25-base", "dense_v2"])
    journey.server(office / "experiment.toml")
    done = journey("run", office / "experiment.toml", "--out", "office/results")
    assert "bm25-base" in done.out
    journey("build", office / "experiment.toml", "--labeling", "containment", "--out", "final")
    journey.check(Path("final/final.qrels"), len(read_qrels("final/final.qrels")))


def test_run_names_that_mean_nothing_are_listed_beside_those_of_the_files(
    office: Path, judgekit: Callable[..., Said]
) -> None:
    thumbs = [f"{i},{run},hoch" for i in range(10) for run in ("bm25-bas", "dense v2")]
    (office / "thumbs.csv").write_text("\n".join(["query_id,run,thumb", *thumbs]) + "\n")
    said = judgekit("init", "office", SHEETS[0], code=2).err
    both = "its runs are bm25-bas, dense v2, and those of the files bm25-base, dense_v2. Did you mean 'bm25-base'?"
    assert f"judgekit: thumbs.csv: {both} Rename the files or the values" in said
    edited(office / "thumbs.csv", "9,dense v2,hoch", "9,dense v2,naja")
    said = judgekit("init", "office", SHEETS[0], code=2).err
    assert "thumbs.csv, line 21: column 'value': 'naja' is neither a number nor a thumb" in said
    assert f"thumbs.csv: {both}" in said


ASKED = "".join(f"q{i},{question_of(i)}\n" for i in range(4))
THUMBS = "".join(f"{question_of(i)},{'no' * i},up\n" for i in range(4))


@pytest.fixture
def thumbed(own: Path, judgekit: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Passages, a run, and a sheet with thumbs that has questions and no ids."""
    monkeypatch.chdir(own)
    Path("docs.csv").write_text("doc_id,text\n" + "".join(f"d{i},{text_of(i)}\n" for i in range(4)))
    Path("bm25.csv").write_text("query_id,doc_id,rank\n" + "".join(f"q{i},d{i},1\n" for i in range(4)))
    Path("sheet.csv").write_text("question,answer,thumbs\n" + THUMBS)
    return own


def test_a_sheet_without_ids_needs_a_file_with_the_questions(thumbed: Path, judgekit: Callable[..., Said]) -> None:
    said = judgekit("init", ".", code=2).err
    assert "Put a file with the questions (id, question) beside sheet.csv, which lacks ids" in said
    (thumbed / "questions.csv").write_text("id,question\n" + ASKED)
    assert "thumbs → rating" in judgekit("init", ".", code=0).out


def test_answers_beside_thumbs_may_be_no_references(thumbed: Path, judgekit: Callable[..., Said]) -> None:
    rows = "".join(f"q{i},{line}\n" for i, line in enumerate(THUMBS.splitlines()))
    (thumbed / "sheet.csv").write_text("id,question,answer,thumbs\n" + rows)
    said = judgekit("init", ".", code=0).err
    spelled = "csv(query_id=id,value=thumbs):sheet.csv"
    assert "sheet.csv: 'thumbs' looks like ratings. If 'answer' is your application's answer" in said
    assert f"judgekit init . '{spelled}' --overwrite" in said
    (thumbed / "questions.csv").write_text("id,question\n" + ASKED)
    said = judgekit("init", ".", spelled, "--overwrite", code=0)
    assert "thumbs → value" in said.out
    assert "looks like ratings" not in said.err


def test_two_runs_that_a_name_may_mean_are_never_guessed() -> None:
    assert runs_meant(["BM25", "dense"], ["bm25", "bm-25", "dense"]) == {"dense": "dense"}
    assert runs_meant(["BM25", "bm25"], ["bm25"]) == {"bm25": "bm25"}
    assert runs_meant(["bm25.trec", "Dense_Large"], ["bm25", "dense large"]) == {
        "bm25.trec": "bm25",
        "Dense_Large": "dense large",
    }


def test_all_that_is_wrong_with_what_init_is_given_is_said_at_once(office: Path, judgekit: Callable[..., Said]) -> None:
    said = judgekit(
        "init",
        "office",
        "office/nowhere.csv",
        SHEETS[0].replace("text=", "txt="),
        SHEETS[1].replace("run=Variante", "run=Varainte"),
        code=2,
    ).err
    assert "3 problems:" in said
    assert "1. office/nowhere.csv: no such file or folder" in said
    assert "unknown option 'txt': choose from answer, answers, " in said
    assert (
        "Auswertung.xlsx: unknown column 'Varainte': choose from Nr, Variante, Daumen. Did you mean 'Variante'?" in said
    )


@pytest.mark.parametrize(
    ("spelled", "reason"),
    [
        ("csv(query_id=Nr,text2=Frage):t.csv", "unknown option 'text2': choose from answer, "),
        ("csv(id=Nr,value=Frage):t.csv", "no kind of data has the columns id, value; there are: queries id, text, "),
        ("texts(cutt=2000):handbook", "unknown option 'cutt': none are defined"),
        ("csvv(id=Nr):t.csv", "unknown data format 'csvv'"),
    ],
)
def test_keys_that_no_table_has_are_refused_with_those_that_there_are(
    spelled: str, reason: str, office: Path, judgekit: Callable[..., Said]
) -> None:
    (office / "t.csv").write_text("Nr,Frage\n1,Wer?\n")
    form, name = spelled.rsplit(":", 1)
    assert reason in judgekit("init", "office", f"{form}:office/{name}", code=2).err
