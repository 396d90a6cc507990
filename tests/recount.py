"""The numbers of the studies (docs, studies/tables.md) again from the files: no pandas, no SciPy, nothing of judgekit.

Only the bootstrap takes numpy, for its random numbers.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import NormalDist, mean

import numpy as np

NORMAL = NormalDist()
Values = dict[str, float]
DESIGN, AGAIN, FIRST = "bchucs/rag-retrieval-design-study", "bbucksch/RAGs-for-Complex-QA", "r-gheda/rag-complex-qa"
TONIC, LEGAL = "TonicAI/tonic_validate", "legalllm24/UK-Legal-RAG-Benchmark"
CHUNKS = "aditiverma05/rag-reranking-study"
BIOASQ, GOLDEN = "webis-de/clef24-mibi-bioasq-", "varsha-cl/DocBot"
DL21, EXPERTS = "Narabzad/llm-relevance-judgement-comparison", "chaitanyamalaviya/ExpertQA"


@cache
def shown(repo: str, path: str, commit: str = "HEAD") -> str:
    """A file of a copy below STUDIES."""
    folder = Path(os.environ["STUDIES"], repo.replace("/", "+"), "repo")
    command = ["git", "-c", "safe.directory=*", "-C", str(folder), "show", f"{commit}:{path}"]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode()


def rows(repo: str, path: str, commit: str = "HEAD") -> list[dict[str, str]]:
    """The rows of a CSV file."""
    csv.field_size_limit(1 << 24)
    return list(csv.DictReader(io.StringIO(shown(repo, path, commit))))


# --- Statistics -----------------------------------------------------------------------------------------------------


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    above, below = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    total = below
    for m in range(1, 500):
        before = total
        for part in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            below, above = 1 / (1 + part * below), 1 + part / above
            total *= below * above
        if abs(total - before) < 1e-15 * total:
            break
    return front * total


def two_sided(t: float, units: int) -> float:
    """The p of Student's t."""
    df = units - 1
    return _beta(df / 2, 0.5, df / (df + t * t))


def quantile(level: float, units: int) -> float:
    """Student's t of a level."""
    low, high = 0.0, 200.0
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - two_sided(middle, units) / 2 > level else (middle, high)
    return low


def difference(values: Values, groups: Mapping[str, str] | None = None) -> tuple[float, float, float, float]:
    """Mean, its 95 % interval and p, in points; over groups of questions where there are some."""
    average = sum(values.values()) / len(values)
    sums: dict[str, float] = defaultdict(float)
    for query, value in values.items():
        sums[groups[query] if groups else query] += value - average
    units = len(sums)
    error = math.sqrt(sum(each**2 for each in sums.values()) * units / (units - 1)) / len(values)
    if error < 1e-14:
        return 100 * average, 100 * average, 100 * average, float(abs(average) < 1e-14)
    half = quantile(0.975, units) * error
    return 100 * average, 100 * (average - half), 100 * (average + half), two_sided(average / error, units)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p values."""
    out, largest = [0.0] * len(p), 0.0
    for place, index in enumerate(sorted(range(len(p)), key=lambda each: p[each])):
        largest = max(largest, (len(p) - place) * p[index])
        out[index] = min(largest, 1.0)
    return out


# --- Configurations -------------------------------------------------------------------------------------------------


class Setting:
    """Configurations of one repository, as the page compares them."""

    def __init__(
        self,
        repo: str,
        name: str,
        kind: str,
        answers: Mapping[str, Values],
        labels: Mapping[str, Mapping[str, Values]],
        lists: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> None:
        """Hold them; ``kind`` is "" where all return equally many passages."""
        self.repo, self.name, self.kind = repo, name, kind
        self.answers, self.labels, self.lists, self.groups = answers, labels, lists, groups


def measures(found: Sequence[str], gold: set[str], wanted: str) -> Values:
    """The measures of one list without grades."""
    hits = [doc in gold for doc in found]
    first = hits.index(True) + 1 if any(hits) else 0
    gained = sum(1 / math.log2(rank + 2) for rank, hit in enumerate(hits) if hit)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(len(gold)))
    every = {
        "recall": sum(hits) / len(gold),
        "hit": float(any(hits[:10])),
        "nDCG": gained / ideal,
        "first rank": 1 / first if first else 0.0,
        "precision": sum(hits) / len(found) if found else 0.0,
    }
    return {name: every[name] for name in wanted.split(", ")}


def by_measure(
    lists: Mapping[str, Mapping[str, Sequence[str]]], gold: Mapping[str, set[str]], wanted: str
) -> dict[str, dict[str, Values]]:
    """The measures of some runs: by measure and run, the value of each question."""
    found: dict[str, dict[str, Values]] = {name: {run: {} for run in lists} for name in wanted.split(", ")}
    for run, of in lists.items():
        for query, docs in of.items():
            for name, value in measures(docs, gold[query], wanted).items():
                found[name][run][query] = value
    return found


def design() -> list[Setting]:
    """The RAG design study."""
    bank = json.loads(shown(DESIGN, "data/questions/eval_questions.json", "4ecdf90"))
    gold = {each["question_id"]: set(each["gold_doc_ids"]) for each in bank if each["gold_doc_ids"]}
    papers = {query: next(iter(docs)) for query, docs in gold.items()}
    indexes = {"flat": "flat"} | {f"IVF {each}": f"ivf_{each}" for each in ("conservative", "balanced", "aggressive")}
    kinds = {
        "indexes": ("", {run: f"exp3_index_{each}" for run, each in indexes.items()}),
        "depths": ("depth", {f"top {k}": f"exp1_topk_{k}" for k in (1, 3, 5, 10, 20)}),
        "thresholds": ("threshold", {f"threshold {t}": f"exp2_threshold_{t}" for t in ("none", "0.3", "0.5", "0.7")}),
    }
    found = []
    for size, number in (("5,000", 0), ("50,000", 1)):
        for name, (kind, files) in kinds.items():
            read = {
                run: {row["question_id"]: row for row in rows(DESIGN, f"results/{file}_evaluation_{number}.csv")}
                for run, file in files.items()
            }
            answers = {run: {q: float(of[q]["answer_correctness"]) / 2 for q in gold} for run, of in read.items()}
            lists = {run: {q: _parted(of[q]["retrieved_doc_ids"]) for q in gold} for run, of in read.items()}
            labels = by_measure(lists, gold, "recall, first rank, precision")
            found.append(Setting(DESIGN, f"{name}, {size} papers", kind, answers, labels, lists, papers))
    return found


def _parted(ids: str) -> list[str]:
    return [each for each in ids.split("|") if each]


def abstaining(number: int) -> tuple[float, float, tuple[float, float, float, float]]:
    """How top 1 and top 20 abstain on the other questions, and the difference."""
    bank = json.loads(shown(DESIGN, "data/questions/eval_questions.json", "4ecdf90"))
    queries = [each["question_id"] for each in bank if not each["gold_doc_ids"]]
    scores = []
    for k in (1, 20):
        read = {row["question_id"]: row for row in rows(DESIGN, f"results/exp1_topk_{k}_evaluation_{number}.csv")}
        scores.append({query: float(read[query]["abstention_score"]) for query in queries})
    first, last = scores
    gap = difference({query: first[query] - last[query] for query in queries})
    return mean(first.values()), mean(last.values()), gap


# --- 2WikiMultihopQA ------------------------------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    """The words of an answer, folded as SQuAD does."""
    kept = "".join(letter for letter in text.lower() if letter.isalnum() or letter.isspace())
    return [word for word in kept.split() if word not in ("a", "an", "the")]


@cache
def prompts(name: str) -> dict[str, tuple[tuple[str, ...], str, str]]:
    """By question: the passages' texts without signs, the answer, the gold answer."""
    found = {}
    for prompt, (answer, gold) in json.loads(shown(FIRST, f"llm-responses/{name}")).items():
        documents, _, question = prompt.rpartition("Question: ")
        texts = []
        for part in re.split(r"\n?Document\[\d+\]\(Title: ", documents)[1:]:
            texts.append(re.sub(r"[\W_]+", "", _body(part).lower()))
        found[question.strip()] = tuple(dict.fromkeys(texts)), _plain(answer), _plain(gold)
    return found


def _body(part: str) -> str:
    """The text behind a title, which may hold brackets."""
    depth = 1
    for place, letter in enumerate(part):
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                return part[place + 1 :]
    return part.partition(") ")[2]


def _plain(text: str) -> str:
    return text.encode("ascii", "ignore").decode().strip()


def matches(metric: str, answer: str, gold: str) -> float:
    """The quality of an answer: contains, em or f1."""
    mine, right = _words(answer), _words(gold)
    if metric == "em":
        return float(mine == right)
    if metric == "f1":
        common = sum((Counter(mine) & Counter(right)).values())
        return 2 * common / (len(mine) + len(right)) if common else float(mine == right)
    return float(f" {' '.join(right)} " in f" {' '.join(mine)} ")


READERS = {
    "Llama-3-8B": {name: f"llama3/{name.lower()}_top{{}}_esit.json" for name in ("BM25", "Contriever", "ADORE")},
    "Flan-T5-XL": {name: f"flan-t5/{name.lower()}-top{{}}-response.json" for name in ("BM25", "Contriever")},
    "Mistral-7B": {"Contriever": "mistral/top{}_answers.json"},
}
NOISY = {
    "Llama-3-8B": ("llama3/oracle_esit.json", "llama3/oracle_rand_{}_esit.json"),
    "Flan-T5-XL": ("flan-t5/oracle-response.json", "flan-t5/oracle-rand{}-response.json"),
    "Mistral-7B": ("mistral/oracle-answers.json", "mistral/oracle_random_{}_answers.json"),
}


def first(metric: str = "contains") -> list[Setting]:
    """rag-complex-qa: retrievers, depths, random passages."""
    found = []
    for reader, patterns in READERS.items():
        for k in (1, 3, 5):
            if len(patterns) > 1:
                files = {name: pattern.format(k) for name, pattern in patterns.items()}
                found.append(_first(f"{reader}, top {k}", "", files, metric))
        for name, pattern in patterns.items():
            files = {f"top {k}": pattern.format(k) for k in (1, 3, 5)}
            found.append(_first(f"depths, {reader}, {name}", "depth", files, metric))
    for reader, (plain, pattern) in NOISY.items():
        files = {"gold": plain} | {f"gold + {n}": pattern.format(n) for n in (1, 2, 3)}
        found.append(_first(f"random passages, {reader}", "random passages", files, metric))
    return found


def _first(name: str, kind: str, files: Mapping[str, str], metric: str) -> Setting:
    oracle = prompts(NOISY["Llama-3-8B"][0])
    gold = {question: set(texts) for question, (texts, _, _) in oracle.items()}
    read = {run: prompts(file) for run, file in files.items()}
    answers = {run: {q: matches(metric, of[q][1], oracle[q][2]) for q in oracle} for run, of in read.items()}
    lists = {run: {q: of[q][0] for q in oracle} for run, of in read.items()}
    labels = by_measure(lists, gold, "recall, hit, nDCG, first rank, precision")
    return Setting(FIRST, name, kind, answers, labels, lists)


@cache
def again_results(name: str, k: int) -> dict[str, dict[str, object]]:
    """The results of the second repository, by question."""
    path = {"Contriever": "exp1/results_k{}", "ADORE": "exp5/exp5_results_k{}"}[name].format(k)
    found = json.loads(shown(AGAIN, f"experiments/results/{path}.json"))["results"]
    return {each["question_id"]: each for each in sorted(found, key=lambda each: str(each["question_id"]))}


def again() -> list[Setting]:
    """RAGs for Complex QA: retrievers and depths."""
    found = [_again(f"top {k}", "", {name: (name, k) for name in ("Contriever", "ADORE")}) for k in (1, 3, 5)]
    for name in ("Contriever", "ADORE"):
        found.append(_again(f"depths, {name}", "depth", {f"top {k}": (name, k) for k in (1, 3, 5)}))
    return found


def _again(name: str, kind: str, files: Mapping[str, tuple[str, int]]) -> Setting:
    read = {run: again_results(*of) for run, of in files.items()}
    answers = {run: {q: float(bool(each["is_match"])) for q, each in of.items()} for run, of in read.items()}
    recall = {
        run: {q: float(str(each["gold_docs_in_topk"])) / float(str(each["num_gold_docs"])) for q, each in of.items()}
        for run, of in read.items()
    }
    return Setting(AGAIN, name, kind, answers, {"recall": recall})


# --- Small sets -----------------------------------------------------------------------------------------------------


def tonic() -> list[Setting]:
    """Sizes of chunks, 10 questions."""
    sizes = {1: (16, 32, 64, 128, 256, 512, 1024, 2048), 2: (16, 32, 64, 128, 256, 512, 1024)}
    sizes |= {4: (16, 32, 64, 128, 256, 512), 8: (16, 32, 64, 128, 256), 16: (16, 32, 64, 128), 32: (16, 32, 64)}
    found = []
    for k, of in sizes.items():
        name = "examples/sweep_response_scores/scores_df_chunk_size_{}_similarity_top_k_{}_evaluator_gpt-4.csv"
        read = {f"chunks of {size}": rows(TONIC, name.format(size, k), "446a0ec") for size in of}
        answers = {run: {r["question"]: float(r["answer_similarity_score"]) / 5 for r in f} for run, f in read.items()}
        labels = {run: {r["question"]: float(r["retrieval_precision"]) for r in f} for run, f in read.items()}
        found.append(Setting(TONIC, f"top {k}", "size of chunks", answers, {"LLM precision": labels}))
    return found


def legal() -> list[Setting]:
    """Reranking, 19 questions."""
    found = []
    for model, responses, scores in (("Llama", "Llama", "Llama"), ("DeepSeek", "deepseek", "Deepseek")):
        for k in (3, 5, 7):
            answers, labels, lists = {}, {}, {}
            for run, on in (("reranked", "True"), ("as retrieved", "False")):
                file = f"RAG_Bot_Responses rerank_{on}_ k_{k}.csv"
                graded = list(enumerate(rows(LEGAL, f"Scores_Samples/{scores}/{file}")))
                answers[run] = {f"q{n}": float(row["Answer Relavancy Score"]) for n, row in graded}
                labels[run] = {f"q{n}": float(row["Context Recall Score"]) for n, row in graded}
                lists[run] = {
                    f"q{n}": sorted({row[f"Context_{i}"] for i in range(1, k + 1) if row.get(f"Context_{i}")})
                    for n, row in enumerate(rows(LEGAL, f"Responses Samples/{responses}/{file}"))
                }
            found.append(Setting(LEGAL, f"{model}, top {k}", "", answers, {"LLM recall": labels}, lists))
    return found


def chunks() -> list[Setting]:
    """Sizes of chunks, SQuAD and HotpotQA."""
    found = []
    for data in ("squad", "hotpot"):
        read: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
        for row in rows(CHUNKS, f"results/{data}_results.csv"):
            if row["reranking"] == "False":
                read[row["chunk_size"]][f"{row['seed']} {row['question']}"] = row
        both = set.intersection(*(set(of) for of in read.values()))
        sizes = {f"chunks of {size}": read[size] for size in ("256", "512", "1024")}
        answers = {
            run: {q: _f1(of[q]["generated_answer"], of[q]["gold_answer"]) for q in both} for run, of in sizes.items()
        }
        labels = {run: {q: float(of[q]["hit_at_k"]) for q in both} for run, of in sizes.items()}
        groups = {q: q.partition(" ")[2] for q in both}
        found.append(Setting(CHUNKS, data, "size of chunks", answers, {"answer in text": labels}, groups=groups))
    return found


def _f1(answer: str, gold: str) -> float:
    mine, right = (re.findall(r"\w+", re.sub(r"\b(a|an|the)\b", " ", text.lower())) for text in (answer, gold))
    common = sum((Counter(mine) & Counter(right)).values())
    return 2 * common / (len(mine) + len(right)) if common else 0.0


# --- Pairs ----------------------------------------------------------------------------------------------------------


def pairs(settings: Sequence[Setting]) -> dict[tuple[str, ...], dict[str, object]]:
    """By repository, setting, both configurations and measure: the numbers of docs/_static/study-pairs.csv."""
    found: dict[tuple[str, ...], dict[str, object]] = {}
    for setting in settings:
        for one, other in combinations(setting.answers, 2):
            nested = identical = math.nan
            if setting.lists is not None:
                both = [(set(setting.lists[one][q]), set(setting.lists[other][q])) for q in setting.answers[one]]
                nested = sum(a < b or b < a for a, b in both) / len(both)
                identical = sum(a == b for a, b in both) / len(both)
            answers = difference(_gap(setting.answers, one, other), setting.groups)
            for measure, of in setting.labels.items():
                found[setting.repo, setting.name, one, other, measure] = {
                    "comparable": not setting.kind and not nested > 0.1,
                    "questions": len(setting.answers[one]),
                    "nested": nested,
                    "identical": identical,
                    "labels": difference(_gap(of, one, other), setting.groups),
                    "answers": answers,
                }
    tables: dict[tuple[object, ...], list[tuple[str, ...]]] = defaultdict(list)
    for key, row in found.items():
        tables[key[0], row["comparable"], key[4]].append(key)
    for keys in tables.values():
        for side in ("labels", "answers"):
            for key, p in zip(keys, holm([found[key][side][3] for key in keys]), strict=True):  # type: ignore[index]
                found[key][side] = (*found[key][side][:3], p)  # type: ignore[index]
    for row in found.values():
        labels, answers = row["labels"], row["answers"]
        both = labels[3] < 0.05 and answers[3] < 0.05  # type: ignore[index]
        same = labels[0] * answers[0] > 0  # type: ignore[index]
        row["verdict"] = ("agree" if same else "opposite") if both else "not told"
    return found


def _gap(values: Mapping[str, Values], one: str, other: str) -> Values:
    return {query: value - values[other][query] for query, value in values[one].items()}


# --- What choosing is worth -----------------------------------------------------------------------------------------


def gain(setting: Setting, scores: Mapping[str, Values]) -> tuple[float, float, float]:
    """The decision gain in points with its interval: half of the questions choose, the other half say what it won."""
    units = _units(setting)
    size = _sums(dict.fromkeys(setting.answers[next(iter(setting.answers))], 1.0), setting, units)
    once, often, differs = np.ones((len(units), 1)), _draws(len(units)), np.zeros(len(units), bool)
    total, drawn = 0.0, np.zeros(often.shape[1])
    number = math.comb(len(setting.answers), 2)
    for one, other in combinations(setting.answers, 2):
        answers = _gap(setting.answers, one, other)
        d, q = _sums(_gap(scores, one, other), setting, units), _sums(answers, setting, units)
        differs |= _sums({query: float(value != 0) for query, value in answers.items()}, setting, units) > 0
        value = _won(d, q, size, once)[0]
        total += value / number
        spread = math.sqrt(len(units) / (len(units) - 1))
        drawn += (value + (_won(d, q, size, often) - value) * spread) / number
    level = NORMAL.cdf(quantile(0.975, int(differs.sum())))
    low, high = np.quantile(drawn, [1 - level, level], method="weibull")
    return 100 * total, 100 * min(float(low), total), 100 * max(float(high), total)


def _won(d: np.ndarray, q: np.ndarray, size: np.ndarray, often: np.ndarray) -> np.ndarray:
    """What one pair of runs wins in each resample of groups of questions."""
    units, count = often.sum(axis=0), size @ often
    x, y = (d @ often) / count, (q @ often) / count
    x_rest, y_rest = (values[:, None] - middle * size[:, None] for values, middle in ((d, x), (q, y)))
    variance, covariance = ((often * x_rest * each).sum(axis=0) / (units - 1) for each in (x_rest, y_rest))
    error = np.sqrt(variance * units) / count
    z = x / error
    below = np.array([NORMAL.cdf(each) for each in z])
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray((y * (2 * below - 1) - 2 * density * covariance * units / (error * count**2)) / 2)


def _units(setting: Setting) -> list[str]:
    """The questions, or the groups of them, in the order in which they are drawn."""
    queries = setting.answers[next(iter(setting.answers))]
    return list(queries) if setting.groups is None else sorted({setting.groups[query] for query in queries})


def _sums(values: Values, setting: Setting, units: Sequence[str]) -> np.ndarray:
    sums = _grouped(values, setting.groups)
    return np.array([sums[unit] for unit in units])


@cache
def _draws(units: int) -> np.ndarray:
    """How often each unit is in each of 1,000 resamples."""
    drawn = np.random.default_rng(1).integers(0, units, size=(1000, units))
    return np.stack([np.bincount(each, minlength=units) for each in drawn], axis=1).astype(float)


def _grouped(values: Values, groups: Mapping[str, str] | None) -> Values:
    sums: dict[str, float] = defaultdict(float)
    for query, value in values.items():
        sums[groups[query] if groups else query] += value
    return sums


def costs(setting: Setting) -> dict[str, float]:
    """The most that shipping each configuration may lose, in points (multiple comparisons with the best)."""
    names = _units(setting)
    units, often = len(names), _draws(len(names)).T / len(names)
    queries = setting.answers[next(iter(setting.answers))]
    average = len(queries) / units
    values = {run: _sums(of, setting, names) / average for run, of in setting.answers.items()}
    share = _sums(dict.fromkeys(queries, 1.0), setting, names) / average
    lost = dict.fromkeys(values, 0.0)
    for best in values:
        largest, leads = np.full(1000, -np.inf), {}
        for other in values:
            if other != best:
                gap = values[best] - values[other]
                rest = gap - gap.mean() * share
                error = math.sqrt(rest.var(ddof=1) / units + 1 / units**2)
                largest = np.maximum(largest, -(often @ rest) / error)
                leads[other] = gap.mean(), error
        reach = max(float(np.quantile(largest, 0.95)), NORMAL.inv_cdf(0.95))
        limit = quantile(NORMAL.cdf(reach), units)
        for other, (lead, error) in leads.items():
            lost[other] = max(lost[other], 100 * (lead + limit * error))
    return lost


# --- BioASQ, judges, experts ----------------------------------------------------------------------------------------


def bioasq() -> tuple[int, int, tuple[float, ...], tuple[float, ...]]:
    """Questions, those with fewer marked snippets, and the change of hit and of answers."""
    hits, answers, fewer = {}, {}, 0
    for batch in (1, 2):
        golden = json.loads(shown(GOLDEN, f"Task12BGoldenEnriched/12B{batch}_golden.json"))["questions"]
        path = "submissions/bioasq_task_12b_phase_{}_batch_{}_mibi_rag_snippets.json"
        own, marked = (
            {q["id"]: q for q in json.loads(shown(BIOASQ, path.format(phase, batch)))["questions"]}
            for phase in ("a+", "b")
        )
        for right in golden:
            if right["type"] != "summary":
                query = right["id"]
                hits[query] = _found(marked[query], right) - _found(own[query], right)
                answers[query] = _rated(marked[query], right) - _rated(own[query], right)
                fewer += len(marked[query]["snippets"]) < len(own[query]["snippets"])
    return len(hits), fewer, difference(hits), difference(answers)


def _spot(snippet: Mapping[str, object]) -> tuple[str, bool, int, int]:
    names = {name.replace("_", "").lower(): value for name, value in snippet.items()}
    article = re.findall(r"\d+", str(names["document"]))[-1]
    ends = (int(str(names[name])) for name in ("offsetinbeginsection", "offsetinendsection"))
    return article, names["beginsection"] == "title", *ends  # type: ignore[return-value]


def _found(answered: Mapping[str, list[dict[str, object]]], right: Mapping[str, list[dict[str, object]]]) -> float:
    for snippet in answered["snippets"][:10]:
        for marked in right["snippets"]:
            mine, theirs = _spot(snippet), _spot(marked)
            if mine[:2] == theirs[:2] and max(mine[2], theirs[2]) < min(mine[3], theirs[3]):
                return 1.0
    return 0.0


def _rated(answered: Mapping[str, object], right: Mapping[str, object]) -> float:
    given, gold = answered["exact_answer"] or [], right["exact_answer"]
    if right["type"] == "yesno":
        return float(_fold(given) == _fold(gold))
    groups = [set(_names(item)) for item in gold]  # type: ignore[attr-defined]
    mine = [_names(item)[0] for item in given if item]  # type: ignore[attr-defined]
    if right["type"] == "factoid":
        return float(bool(mine) and any(mine[0] in group for group in groups))
    right_ones = sum(any(name in group for group in groups) for name in mine)
    covered = sum(any(name in group for name in mine) for group in groups)
    if not right_ones:
        return 0.0
    precision, recall = right_ones / len(mine), covered / len(groups)
    return 2 * precision * recall / (precision + recall)


def _fold(text: object) -> str:
    return " ".join(re.findall(r"\w+", str(text).lower()))


def _names(answer: object) -> list[str]:
    return [_fold(text) for text in (answer if isinstance(answer, list) else [answer])]


JUDGES = {
    "UMBRELA": "raw qrels/gpt-4o/umbrela/umbrela_zeroshot_dl21.clean.json",
    "exam max": "raw qrels/gpt-4o/exam graded max/qrels.max.exam_selfrate_dl21.txt",
    "exam mean": "raw qrels/gpt-4o/exam graded mean/qrels.mean.exam_selfrate_dl21.txt",
    "exam binary": "raw qrels/gpt-4o/exam binary/qrels.mean.exam_selfrate_binary_dl21.txt",
    "binary": "raw qrels/gpt-4o/binary/binary_dl21.txt",
    "Llama binary, file 1": "raw qrels/llama3.2/binary/binary_llama3.2_dl21.txt",
    "Llama binary, file 2": "Methods/Binary/llama3.2/binary_llama3.2_dl21.txt",
}


def judges() -> dict[str, tuple[str, int, int, int]]:
    """By judge: tau-b with two digits, and how many pairs of runs are found, opposite and not confirmed."""
    people = _qrels("data/qrels.dl21-passage.txt")
    listed = (Path(__file__).parent.parent / "studies" / "files.tsv").read_text().splitlines()
    paths = [line.split("\t")[1] for line in listed if line.startswith(DL21) and "\truns/dl21/" in line]
    runs = [_ranked(path, set(people)) for path in paths]
    scores = {name: _ndcg(runs, _qrels(path)) for name, path in JUDGES.items()} | {"people": _ndcg(runs, people)}
    signs = {name: _signs(of) for name, of in scores.items()}
    means = {name: [mean(run) for run in of] for name, of in scores.items()}
    found = {}
    for name in JUDGES:
        both = list(zip(signs[name], signs["people"], strict=True))
        found[name] = (
            f"{_tau(means[name], means['people']):.2f}",
            sum(a * b > 0 for a, b in both),
            sum(a * b < 0 for a, b in both),
            sum(a != 0 and b == 0 for a, b in both),
        )
    return found


def _qrels(path: str) -> dict[str, Values]:
    found: dict[str, Values] = defaultdict(dict)
    for line in shown(DL21, path).splitlines():
        topic, _, doc, label = line.split()
        found[topic][doc] = float(label)
    return found


def _ranked(path: str, topics: set[str]) -> dict[str, list[str]]:
    listed: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in shown(DL21, path).splitlines():
        topic, _, doc, _, score, *_ = line.split()
        if topic in topics:
            listed[topic].append((float(score), doc))
    return {topic: [doc for _, doc in sorted(docs, reverse=True)[:10]] for topic, docs in listed.items()}


def _ndcg(runs: Sequence[Mapping[str, Sequence[str]]], labels: Mapping[str, Values]) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in runs]
    for topic in sorted(labels):
        gains = sorted((max(label, 0.0) for label in labels[topic].values()), reverse=True)[:10]
        ideal = sum(label / math.log2(rank + 2) for rank, label in enumerate(gains))
        for run, values in zip(runs, found, strict=True):
            docs = run.get(topic, [])
            gained = sum(max(labels[topic].get(doc, 0.0), 0.0) / math.log2(rank + 2) for rank, doc in enumerate(docs))
            values.append(gained / ideal if ideal else 0.0)
    return found


def _signs(scores: Sequence[Sequence[float]]) -> list[int]:
    found = []
    for one, other in combinations(scores, 2):
        value, _, _, p = difference({str(n): a - b for n, (a, b) in enumerate(zip(one, other, strict=True))})
        found.append((value > 0) - (value < 0) if p < 0.05 else 0)
    return found


def _tau(one: Sequence[float], other: Sequence[float]) -> float:
    concordant = tied_one = tied_other = total = 0
    for a, b in combinations(range(len(one)), 2):
        first_sign, second_sign = (_sign(values[a] - values[b]) for values in (one, other))
        concordant += first_sign * second_sign
        tied_one += first_sign == 0
        tied_other += second_sign == 0
        total += 1
    return concordant / math.sqrt((total - tied_one) * (total - tied_other))


def _sign(value: float) -> int:
    return (value > 1e-12) - (value < -1e-12)


def experts() -> tuple[int, dict[str, tuple[float, float]]]:
    """How many answers there are, and by system how often informativeness and support follow usefulness, of 100."""
    useful = {"Useful": 2, "Partially useful": 1, "Not useful at all": 0}
    levels = {
        "informativeness": ["Uninformative", "Not too important", "A bit relevant", "Very relevant"],
        "correctness": ["Definitely incorrect", "Likely incorrect", "Unsure", "Probably correct", "Definitely correct"],
        "support": ["Missing", "Partial", "Complete"],
        "reliability": ["Not reliable at all", "Somewhat reliable", "Reliable"],
        "worthiness": ["No", "Yes"],
    }
    answers: dict[tuple[str, str], tuple[int, dict[str, float]]] = {}
    for split in ("domain_test", "domain_val", "rand_test", "rand_val"):
        for line in shown(EXPERTS, f"data/lfqa/{split}.jsonl").splitlines():
            record = json.loads(line)
            for system, answer in record["answers"].items():
                if answer["usefulness"] is not None:
                    rated = {name: _mean_level(answer["claims"], name, of) for name, of in levels.items()}
                    answers[system, record["question"]] = useful[answer["usefulness"]], rated
    by_system: dict[str, list[tuple[int, dict[str, float]]]] = defaultdict(list)
    for (system, _), (quality, rated) in answers.items():
        if not any(math.isnan(value) for value in rated.values()):
            by_system[system].append((quality, rated))
    return len(answers), {
        system: (_follows(rows, "informativeness"), _follows(rows, "support")) for system, rows in by_system.items()
    }


def _mean_level(claims: Sequence[Mapping[str, str]], name: str, levels: Sequence[str]) -> float:
    said = ["Partial" if claim[name] == "Incomplete" else claim[name] for claim in claims]
    known = [levels.index(each) for each in said if each in levels]
    return sum(known) / len(known) if known else math.nan


def _follows(rows: Sequence[tuple[int, dict[str, float]]], name: str) -> float:
    right = total = 0.0
    for (quality, rated), (other, others) in combinations(rows, 2):
        if quality != other:
            total += 1
            right += 0.5 + 0.5 * _sign((rated[name] - others[name]) * (quality - other))
    return 100 * right / total
