"""The page's sections: what was found, what it means, what it does not mean, and what would overturn it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from studies import bioasq, contexts, design, experts, judged, judges, multihop, small
from studies.page import figure, holds, link, plain, share, shown, table
from studies.pairs import AGREE, NOT_TOLD, OPPOSITE, Difference, Setting, Worth, counts, table as pair_table, worth

NAMES = {
    design.REPO: "RAG design study",
    multihop.AGAIN: "RAGs for Complex QA",
    contexts.REPO: "rag-complex-qa",
    small.LEGAL: "UK Legal RAG",
    small.TONIC: "tonic_validate",
    small.CHUNKS: "rag-reranking-study",
}
BY = {
    design.REPO: "GPT-4o-mini wrote, answered and graded",
    multihop.AGAIN: "2WikiMultihopQA; Llama-3.1-8B; string match",
    contexts.REPO: "2WikiMultihopQA; Llama-3-8B, Flan-T5-XL; string match",
    small.LEGAL: "the authors; Llama, DeepSeek; an LLM",
}
Counted = dict[tuple[str, str], dict[str, int]]


@dataclass(frozen=True)
class Found:
    """Everything that the page counts.

    Attributes:
        settings: the configurations of all repositories.
        pairs: a row for each pair of configurations and measure.
    """

    settings: Sequence[Setting]
    pairs: pd.DataFrame

    @classmethod
    def read(cls) -> Found:
        """Read the repositories; *contains* is the quality where answers are strings."""
        settings = [
            *design.settings(),
            *multihop.retrievers_again(),
            *multihop.depths_again(),
            *multihop.retrievers(),
            *multihop.depths(),
            *multihop.noise(),
            *small.legal(),
            *small.tonic(),
            *small.chunks(),
        ]
        return cls(settings, pair_table(settings))

    @cached_property
    def comparable(self) -> pd.DataFrame:
        """The comparable pairs."""
        return self.pairs[self.pairs["comparable"]]

    @cached_property
    def constructed(self) -> pd.DataFrame:
        """The pairs that are decided by construction, with what differs between their configurations."""
        rows = self.pairs[~self.pairs["comparable"]]
        return rows.assign(differs=rows["setting"].map(_differs))

    @cached_property
    def worths(self) -> dict[tuple[str, str], dict[str, Worth]]:
        """What choosing by labels is worth, in the settings whose pairs are all comparable."""
        mixed = set(zip(self.constructed["repository"], self.constructed["setting"], strict=True))
        return {
            (setting.repository, setting.name): worth(setting)
            for setting in self.settings
            if (setting.repository, setting.name) not in mixed and setting.repository != small.LEGAL
        }

    def row(self, repository: str, setting: str, first: str, second: str, measure: str = "recall") -> pd.Series:
        """Return the row of a pair."""
        wanted = {"repository": repository, "setting": setting, "first": first, "second": second, "measure": measure}
        rows = self.pairs
        for column, value in wanted.items():
            rows = rows[rows[column] == value]
        return rows.iloc[0]


def _differs(setting: str) -> str:
    """Return what differs between the configurations of a setting, by its name."""
    for word, what in {"thresholds": "threshold", "depths": "depth", "random": "random passages"}.items():
        if setting.startswith(word):
            return what
    return "size of chunks"


def _turned(row: pd.Series, side: str) -> Difference:
    """Return the second configuration minus the first."""
    straight = _straight(row, side)
    return Difference(-straight.value, -straight.high, -straight.low, straight.p)


def _straight(row: pd.Series, side: str) -> Difference:
    """Return the first configuration minus the second."""
    return Difference(value=row[f"{side}_value"], low=row[f"{side}_low"], high=row[f"{side}_high"], p=row[f"{side}_p"])


def _same_by_measure(counted: Counted, repository: str) -> dict[str, int]:
    """Return a repository's counts, which must be the same by every measure."""
    each = [count for (name, _), count in counted.items() if name == repository]
    if any(count != each[0] for count in each):
        raise AssertionError(f"{repository}: the measures do not count alike, {each}")
    return each[0]


def headline(found: Found) -> Iterator[str]:
    """Yield the page's one sentence and its figure."""
    counted = counts(found.comparable)
    study, again, first = (_same_by_measure(counted, name) for name in (design.REPO, multihop.AGAIN, contexts.REPO))
    sentence = (
        "**Where two runs return equally many passages, labels and answers are never shown to choose opposite runs:"
        f" in one repository all {study[AGREE]} pairs agree, in a second all {again[AGREE]}, and in a third the answers"
        f" tell none of {first[NOT_TOLD]} pairs apart.** No LLM judge was compared with answers at a useful size: that"
        " [place is empty](#llm-labels-beside-answers-not-run)."
    )
    yield holds(
        all(count[OPPOSITE] == 0 for count in counted.values())
        and (study[NOT_TOLD], again[NOT_TOLD], first[AGREE]) == (0, 0, 0),
        sentence,
    )
    constructed = counts(found.constructed[found.constructed["differs"] != "size of chunks"])
    yield figure(
        "study-pairs",
        "What labels and answers choose between two runs",
        {
            "Comparable: equally many passages, lists not nested": _bars(counted),
            "Decided by construction: depth, threshold, random passages": _bars(constructed),
        },
    )


def _bars(counted: Counted) -> dict[str, dict[str, int]]:
    return {f"{NAMES[repository]}: {measure}": count for (repository, measure), count in counted.items()}


def reading(found: Found) -> Iterator[str]:
    """Yield how to read the numbers, and a row for each repository."""
    yield (
        "`make study` writes this page. It stops where a sentence does not hold. Two runs are *comparable* if they"
        " return equally many passages and one list is a proper part of the other on at most a tenth of the questions."
        " Runs are *told apart* if a paired t test says so for the labels and for the answers (p < .05 by Holm over the"
        " repository's pairs; over source documents where several questions come from one). Lists of equally many"
        " different passages cannot be nested. Brackets hold 95 %"
        " intervals of one number. Pairs share runs, so counts of pairs are counts and no rates."
        " [Every pair](_static/study-pairs.csv) has its numbers in a table."
    )
    rows = []
    counted = counts(found.comparable)
    for repository, by in BY.items():
        pairs = found.comparable[found.comparable["repository"] == repository]
        count = _same_by_measure(counted, repository)
        shares = [
            "not recorded" if pairs[name].isna().all() else share(pairs[name].min(), pairs[name].max())
            for name in ("nested", "identical")
        ]
        rows.append(
            (
                link(repository),
                f"{pairs['questions'].max():,}",
                by,
                *(count[v] for v in (AGREE, OPPOSITE, NOT_TOLD)),
                *shares,
            )
        )
    head = [
        "repository",
        "questions",
        "who asked; answered; graded",
        "agree",
        "opposite",
        "not told",
        "nested",
        "identical",
    ]
    yield table(head, rows)
    yield "All measures of a repository count alike: " + _measures(counted) + "."


def _measures(counted: Counted) -> str:
    """Return the measures of each repository."""
    by_repository: dict[str, list[str]] = {}
    for repository, measure in counted:
        by_repository.setdefault(repository, []).append(measure)
    longest = max(by_repository.values(), key=len)
    return ", ".join(longest) + " where the lists are there, recall elsewhere"


def choosing(found: Found) -> Iterator[str]:
    """Yield what choosing by labels is worth."""
    yield "## What choosing by labels is worth"
    rows = []
    for (repository, setting), by in found.worths.items():
        picks = {measure: each.pick for measure, each in by.items() if measure != "answers"}
        if len(set(picks.values())) > 1:
            raise AssertionError(f"{setting}: the measures pick different runs, {picks}")
        near = [abs(each.gain[0] - by["recall"].gain[0]) for measure, each in by.items() if measure != "answers"]
        if max(near) > 0.05:
            raise AssertionError(f"{setting}: the measures gain differently")
        own = by["answers"]
        rows.append(
            (
                f"{NAMES[repository]}, {setting}",
                by["recall"].pick,
                shown(by["recall"].gain),
                shown(own.gain),
                own.may_be_best,
                plain(by["recall"].cost),
            )
        )
    yield (
        "*Gain*: points of answer quality over a coin flip between two runs, chosen from half of the questions."
        " *Loses at most*: what shipping the labels' pick may lose against the best run. Every measure picks the same"
        " run; gains differ by less than .05."
    )
    head = ["setting", "labels pick", "gain by labels", "gain by answers", "may be best", "loses at most"]
    yield table(head, rows)


def indexes(found: Found) -> Iterator[str]:
    """Yield the section on indexes."""
    row = found.row(design.REPO, "indexes, 50,000 papers", "flat", "IVF aggressive")
    repeated = [design.noise(corpus) for corpus in design.CORPORA]
    yield "## Indexes: labels and answers agree"
    yield (
        f"**Data.** {len(design.answerable())} questions about {len(set(design.papers().values()))} papers, a flat and"
        " three approximate indexes over 5,000 and 50,000 papers, five chunks each. One paper per question is gold."
    )
    yield (
        "**Result.** Flat minus the most approximate index, 50,000 papers: answers"
        f" {shown(_straight(row, 'answers'))} points, recall {shown(_straight(row, 'labels'))}."
    )
    yield "**What it means.** An index that loses documents loses answers, and any label of the source paper sees it."
    yield (
        "**What it does not mean.** One model wrote the questions from one paper each, answered and graded; without"
        " that paper it can hardly be right. Labels and answers share their origin. A configuration that was run twice"
        f" has other grades on {repeated[0]} and {repeated[1]} questions."
    )
    yield "**What would overturn it.** Questions that several papers answer; another grader than the answerer."


def twice(found: Found) -> Iterator[str]:
    """Yield the section on two repositories with the same questions."""
    yield "## One question set, two lessons"
    silent = [multihop.no_answer(name, depth) for name in multihop.AGAIN_FILES for depth in multihop.DEPTHS]
    yield (
        "**Data.** The same 1,200 questions of 2WikiMultihopQA, and retrievers of the same names. The readers of"
        " rag-complex-qa are asked for a short answer. The reader of RAGs for Complex QA must say NO-RES where the"
        f" passages hold no answer, and does so on {min(silent):,} to {max(silent):,} questions. ADORE minus"
        " Contriever, in points:"
    )
    rows = []
    for depth in multihop.DEPTHS:
        one = found.row(contexts.REPO, f"Llama-3-8B, top {depth}", "Contriever", "ADORE")
        other = found.row(multihop.AGAIN, f"top {depth}", "Contriever", "ADORE")
        rows.append((depth, *(shown(_turned(row, side)) for row in (one, other) for side in ("labels", "answers"))))
    head = ["top", "rag-complex-qa: recall", "contains", "RAGs for Complex QA: recall", "contains"]
    yield table(head, rows)
    same = {metric: counts(_comparable(multihop.retrievers(metric))) for metric in ("em", "f1")}
    yield holds(
        all(count[AGREE] == count[OPPOSITE] == 0 for each in same.values() for count in each.values()),
        "**Result.** Recall prefers ADORE in both repositories. Answers follow in the second only. In the first they"
        " tell no pair apart, neither by *contains* nor by exact match nor by F1.",
    )
    yield (
        "**What it means.** Whether labels can choose may depend on the prompt: a reader that may answer from memory"
        " hides what the retriever finds. Ask some questions end to end before you buy labels."
    )
    kinds = multihop.by_kind()
    overall, options, free = (kinds[kind] for kind in ("all", "options", "open"))
    yield holds(
        overall[1].low > 0 > overall[2].high
        and options[1].high < 0
        and options[2].high < 0
        and free[1].low > 0
        and free[2].low > 0
        and found.row(contexts.REPO, "Llama-3-8B, top 5", "BM25", "ADORE")["verdict"] == NOT_TOLD,
        "**An example, not a finding.** ADORE minus BM25 at top 5 for Llama-3-8B: recall"
        f" {shown(overall[1])}, exact match {shown(overall[2])}. On open questions both are above 0"
        f" ({plain(free[1].value)}, {plain(free[2].value)}), on questions that offer options both below"
        f" ({plain(options[1].value)}, {plain(options[2].value)}). This pair was picked after looking, and over 12"
        " pairs it is not shown.",
    )
    yield (
        "**What it does not mean.** The two ADOREs were trained apart; the readers are Llama-3-8B and Llama-3.1-8B, at"
        " temperatures .1 and .3. **What would overturn it.** Both prompts with one reader and the same lists."
    )


def _comparable(settings: Sequence[Setting]) -> pd.DataFrame:
    found = pair_table(settings)
    return found[found["comparable"]]


def snippets() -> Iterator[str]:
    """Yield the section on experts' snippets."""
    hit, answer, rows = bioasq.change("hit"), bioasq.change("answer"), bioasq.table()
    fewer = int((rows[f"snippets {bioasq.MARKED}"] < rows[f"snippets {bioasq.FOUND}"]).sum())
    yield "## Experts' snippets"
    yield (
        f"**Data.** {len(rows)} questions of BioASQ 12B with an exact answer, answered by GPT-3.5 from up to ten"
        " snippets that a system found, and from those that experts marked"
        f" ({link(bioasq.REPO)}, batches 1 and 2; golden answers from {link(bioasq.GOLD)}, a copy). Later batches put"
        " answers into queries and are left out."
    )
    yield holds(
        hit.low > 0 and answer.low > 0,
        f"**Result.** Marked minus found: a snippet that experts marked is there {shown(hit)} points more often, and"
        f" answers are {shown(answer)} points better.",
    )
    yield holds(
        answer.value < hit.value / 4,
        "**What it means.** Answers follow experts' labels, by less than a quarter of the labels' lead.",
    )
    yield (
        "**What it does not mean.** Experts' snippets hit experts' labels by construction, and are fewer for"
        f" {fewer} questions: this is no comparable pair. **What would overturn it.** Other snippets of equal number."
    )


def little(found: Found) -> Iterator[str]:
    """Yield a line for each small repository."""
    yield "## Small sets"
    tonic = found.constructed[found.constructed["repository"] == small.TONIC]
    same = (tonic["labels_value"] * tonic["answers_value"] > 0).sum()
    other = (tonic["labels_value"] * tonic["answers_value"] < 0).sum()
    yield holds(
        (tonic["verdict"] == NOT_TOLD).all(),
        f"- {link(small.TONIC)}: 10 questions, sizes of chunks; GPT-4 labelled passages and graded the answers of"
        f" GPT-3.5. Of {len(tonic)} pairs none is told apart; the signs are the same for {same}, opposite for {other}.",
    )
    legal = found.comparable[found.comparable["repository"] == small.LEGAL]
    yield holds(
        (legal["identical"] == 1).all() and (legal["verdict"] == NOT_TOLD).all(),
        f"- {link(small.LEGAL)}: 19 questions. Reranking only reorders the same passages, so all {len(legal)} pairs are"
        " ties; an LLM graded how relevant answers are, not whether they are right.",
    )
    chunks = found.constructed[found.constructed["repository"] == small.CHUNKS]
    told = chunks[(chunks["labels_p"] < 0.05)]
    yield holds(
        (chunks["verdict"] == NOT_TOLD).all() and len(told) == 2 and set(told["setting"]) == {"hotpot"},
        f"- {link(small.CHUNKS)}: 100 questions each of SQuAD and HotpotQA, sizes of chunks. Larger chunks hold the"
        " answer's string more often on HotpotQA, as they must; no pair is told apart by F1 of Llama-3.1-8B's answers.",
    )


def construction(found: Found) -> Iterator[str]:
    """Yield what is decided by construction."""
    yield "## Decided by construction"
    yield (
        "If one list contains the other, recall and hit can only prefer the longer list, and precision nearly always"
        " prefers the shorter. No label can change that. It says nothing of labels, whatever the answers do:"
    )
    rows = []
    for (repository, differs), pairs in found.constructed.groupby(["repository", "differs"], sort=False):
        if differs == "size of chunks":
            continue
        counted = counts(pairs)
        nested = "not recorded" if pairs["nested"].isna().all() else share(pairs["nested"].min(), pairs["nested"].max())
        cells = []
        for measure in ("recall", "precision"):
            count = counted.get((str(repository), measure))
            cells.append(" / ".join(str(count[v]) for v in (AGREE, OPPOSITE, NOT_TOLD)) if count else "–")
        number = len(pairs[pairs["measure"] == "recall"])
        rows.append((NAMES[str(repository)], differs, number, nested, *cells))
    head = ["repository", "what differs", "pairs", "nested", "recall: agree / opposite / not told", "precision"]
    yield table(head, rows)
    again = found.row(multihop.AGAIN, "depths, Contriever", "top 1", "top 5")
    first = {
        metric: _row_of(multihop.depths(metric), "depths, Llama-3-8B, Contriever", "top 1", "top 5")
        for metric in ("contains", "em")
    }
    yield holds(
        _turned(again, "answers").low > 0
        and first["contains"]["answers_low"] < 0 < first["contains"]["answers_high"]
        and _turned(first["em"], "answers").high < 0,
        "Even the sign does not replicate. Contriever, top 5 minus top 1: *contains*"
        f" {shown(_turned(again, 'answers'))} in RAGs for Complex QA, {shown(_turned(first['contains'], 'answers'))}"
        " with Llama-3-8B in rag-complex-qa, where exact match changes by"
        f" {shown(_turned(first['em'], 'answers'))}. With random passages among the gold ones, recall is the same for"
        " all contexts and precision falls with each passage: an earlier page called one a bad choice and the other"
        " a good one. Both follow from how the contexts were built.",
    )
    yield "Choose a depth by answers: [Choose a measure](choose-measure.md#how-many-passages)."


def _row_of(settings: Sequence[Setting], name: str, first: str, second: str) -> pd.Series:
    found = pair_table([setting for setting in settings if setting.name == name])
    return found[(found["first"] == first) & (found["second"] == second)].iloc[0]


def unanswerable() -> Iterator[str]:
    """Yield the section on questions that nothing answers."""
    yield "## Questions without an answer"
    corpora = {corpus: design.abstaining(corpus) for corpus in design.CORPORA}
    large = corpora["50,000"]
    points = large.difference
    ends = [plain(value * design.MOST / 100, 2) for value in (points.value, points.low, points.high)]
    yield holds(
        all(each.difference.low > 0 for each in corpora.values()),
        f"The RAG design study has {len(design.unanswerable())} questions that no paper answers, graded from 0 to 2 by"
        f" whether the reader abstains. Top 1 gets {plain(large.first, 2)}, top 20 {plain(large.last, 2)} (difference"
        f" {ends[0]}, {ends[1]} to {ends[2]}; 50,000 papers; shown for 5,000 too). Answers to the other questions get"
        " better with depth, these get worse, and no label of a passage can see it, for there is nothing to find."
        " Evaluate them apart, by abstention.",
    )


def judging() -> Iterator[str]:
    """Yield the section on LLM judges against people."""
    rows = judges.table()
    told = int(rows["told"].iloc[0])
    yield "## Judges against people"
    yield (
        f"**Data.** {rows['runs'].iloc[0]} runs of TREC DL 2021, {judges.labelled():,} pairs of"
        f" {rows['topics'].iloc[0]} topics labelled by NIST and by seven files of LLM labels"
        f" ({link(judges.REPO)}). There are no answers: people's {judges.MEASURE} stands in their place. People tell"
        f" {told:,} of the pairs of runs apart (p < .05, each alone)."
    )
    head = ["judge", "tau-b of the order", f"found, of {told:,}", "opposite", "not confirmed"]
    yield table(
        head,
        [
            (name, plain(row["tau"], 2), f"{row['found']:,.0f}", int(row["opposite"]), int(row["unconfirmed"]))
            for name, row in rows.iterrows()
        ],
    )
    opposite = rows["opposite"]
    yield holds(
        rows["tau"].idxmax() == "UMBRELA" and opposite[opposite > 0].index.tolist() == ["Llama binary, file 2"],
        "**What it means.** GPT-4o's graded labels (UMBRELA) order these runs most as people do. One of two files of"
        f" the same Llama judge turns round {int(opposite.max())} pairs, the other none: a judge is not one number.",
    )
    yield (
        "**What it does not mean.** Agreement with people says nothing of answers. Only pooled passages are labelled."
        " GPT-4o may have seen this collection. **What would overturn it.** Runs outside of the pool, a later"
        " collection."
    )


def usefulness() -> Iterator[str]:
    """Yield the section on what makes an answer useful."""
    found, rated = experts.concordances(), experts.answers()
    leading = sum(max(rows, key=lambda name: rows[name][0]) == "informativeness" for rows in found.values())
    above = sum(rows["informativeness"][1] > 50 for rows in found.values())
    ranges = {name: [rows[name][0] for rows in found.values()] for name in ("informativeness", "support")}
    yield "## Experts: what makes an answer useful"
    yield (
        f"**Data.** {len(rated)} of the {experts.ALL:,} answers of {link(experts.REPO)}, those in its smaller files,"
        f" by {len(found)} systems; each expert rated the answer and its claims. Of two answers of a system, how often"
        " does the more useful one have the higher value? Chance is 50."
    )
    yield holds(
        leading >= 4 and above >= 4 and all(rows["support"][0] < rows["informativeness"][0] for rows in found.values()),
        f"**Result.** Informativeness leads in {leading} of {len(found)} systems"
        f" ({min(ranges['informativeness']):.0f} to {max(ranges['informativeness']):.0f} times in 100; above chance in"
        f" {above}). Support by the cited source is lower in every one ({min(ranges['support']):.0f} to"
        f" {max(ranges['support']):.0f}).",
    )
    yield (
        "**What it does not mean.** One expert rates both, so one impression moves both, and four fifths of the answers"
        " are not in. **What would overturn it.** The whole set; properties rated by somebody else."
    )


def gap() -> Iterator[str]:
    """Yield the place of the comparison that nobody has run."""
    pairs = judged.pairs()
    yield "## LLM labels beside answers: not run" if not judged.RESULT.exists() else "## LLM labels beside answers"
    yield (
        f"An LLM judge, a graded judge and eRAG over the {pairs:,} pairs that three retrievers found at top 5 for the"
        f" 1,200 questions above: {3 * pairs:,} requests, about $3 at $0.15 and $0.60 a million tokens. One command"
        " counts first, asks before it pays, goes on after a stop, and writes the labels and this table:"
    )
    yield (
        "<!-- not run: it needs an endpoint -->\n```console\n"
        "$ make study-judged ENDPOINT=http://localhost:8000/v1 MODEL=my-model\n```"
    )
    yield judged.place()
    yield (
        "**The best set in kind, not checked here**, because its files are too large for the copies that were looked"
        " at: [MT-RAG](https://github.com/IBM/mt-rag-benchmark) at cc5b1d4 (Apache-2.0) has people's labels of"
        " passages, five retrievers, nine LLMs and ratings of answers. Write the retrieved `contexts` of its"
        " generation tasks as TREC runs, its ratings as `quality.csv` (`run`, `query_id`, `value`), and compare:"
    )
    yield (
        "<!-- not run: not checked here -->\n```console\n"
        "$ git clone https://github.com/IBM/mt-rag-benchmark && git -C mt-rag-benchmark checkout cc5b1d4\n"
        "$ judgekit score --run elser.trec --run bm25.trec --qrels people.qrels -m nDCG@5 --per-query -o scores.csv\n"
        "$ judgekit compare --scores scores.csv --quality quality.csv --primary nDCG@5\n```"
    )
