"""The page's sections: what was found, what limits it, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from studies import bioasq, contexts, design, experts, judged, judges, multihop, small
from studies.page import dots, figure, holds, link, plain, share, shown, table
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
    study, again, first, legal = (
        _same_by_measure(counted, name) for name in (design.REPO, multihop.AGAIN, contexts.REPO, small.LEGAL)
    )
    agree = study[AGREE] + again[AGREE]
    close = first[NOT_TOLD] + legal[NOT_TOLD]
    order = judges.table()["tau"]
    yield holds(
        order.idxmax() == "UMBRELA" and order.idxmin() == "Llama binary, file 1",
        f"**GPT-4o's grades order the {judges.table()['runs'].iloc[0]} runs of TREC DL 2021 nearly as people's do"
        f" (tau-b {plain(order.max(), 2)}), a Llama judge's labels less ({plain(order.min(), 2)}).**",
    )
    yield holds(
        all(count[OPPOSITE] == 0 for count in counted.values())
        and (study[NOT_TOLD], again[NOT_TOLD], first[AGREE], legal[AGREE]) == (0, 0, 0, 0),
        f"**Where two runs return equally many passages, labels and answers agree on the better run in {agree} of"
        f" {agree + close} pairs; {close} pairs are too close to tell, and none is shown to be opposite.** All"
        " that agree are of two repositories. LLM labels beside answers: [a small"
        " model's](#llm-labels-beside-answers-a-small-model) alone.",
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
    yield (
        "`make study` writes this page and stops if a sentence no longer holds. [Method](#method) defines the words;"
        " `studies/tables.md` has the tables, [one file](_static/study-pairs.csv) has every pair. Brackets hold 95 %"
        " intervals."
    )


def _bars(counted: Counted) -> dict[str, dict[str, int]]:
    return {f"{NAMES[repository]}: {measure}": count for (repository, measure), count in counted.items()}


def repositories(found: Found) -> Iterator[str]:
    """Yield a row for each repository with comparable pairs."""
    yield "**Comparable pairs.**"
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
        "too close",
        "nested",
        "identical",
    ]
    yield table(head, rows)
    yield "Measures of a repository count alike: " + _measures(counted) + "."


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
    told = {key: by for key, by in found.worths.items() if key[0] != contexts.REPO}
    close = {key: by for key, by in found.worths.items() if key[0] == contexts.REPO}
    gained = [by["recall"].gain[0] for by in told.values()]
    same = all(plain(by["recall"].gain[0]) == plain(by["answers"].gain[0]) for by in told.values())
    nothing = all(by[side].gain[1] < 0 < by[side].gain[2] for by in close.values() for side in ("recall", "answers"))
    yield holds(
        same and all(by["recall"].gain[1] > 0 for by in told.values()) and nothing,
        f"**Where answers tell runs apart, choosing by labels gains {plain(min(gained))} to {plain(max(gained))}"
        " points, as much as choosing by the answers themselves. Elsewhere neither is shown to gain.** *Gain* is the"
        " points of answer quality won over a coin flip between two runs, if you choose by half of the questions.",
    )
    panels: dict[str, dict[str, dict[str, Sequence[float]]]] = {}
    for (repository, setting), by in found.worths.items():
        row: dict[str, Sequence[float]] = {"by labels": by["recall"].gain, "by answers": by["answers"].gain}
        panels.setdefault(NAMES[repository], {})[setting] = row
    yield dots(
        "study-gain", "What choosing between two runs gains", "points of answer quality over a coin flip", panels
    )


def gains(found: Found) -> Iterator[str]:
    """Yield the table of what choosing by labels is worth."""
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
        "**Gain.** *Loses at most* is what shipping the labels' pick may lose against the best run. Every measure picks"
        " the same run; gains differ by less than .05."
    )
    head = ["setting", "labels pick", "gain by labels", "gain by answers", "may be best", "loses at most"]
    yield table(head, rows)


def _sides(row: pd.Series, turned: bool = True) -> dict[str, Sequence[float]]:
    """Return the differences of a pair by labels and by answers, the second configuration minus the first."""
    sides = {"by labels": "labels", "by answers": "answers"}
    numbers = {name: (_turned if turned else _straight)(row, side) for name, side in sides.items()}
    return {name: (number.value, number.low, number.high) for name, number in numbers.items()}


def indexes(found: Found) -> Iterator[str]:
    """Yield the section on indexes, with the figure of this and the next two sections."""
    row = found.row(design.REPO, "indexes, 50,000 papers", "flat", "IVF aggressive")
    yield "## Indexes"
    yield (
        "**An index that loses documents loses answers, and labels of the source paper see it.** Flat minus the most"
        f" approximate index, 50,000 papers: answers {shown(_straight(row, 'answers'))} points, recall"
        f" {shown(_straight(row, 'labels'))}."
    )
    retrievers = {
        NAMES[repository]: {
            f"top {depth}": _sides(found.row(repository, name.format(depth), "Contriever", "ADORE"))
            for depth in multihop.DEPTHS
        }
        for repository, name in ((contexts.REPO, "Llama-3-8B, top {}"), (multihop.AGAIN, "top {}"))
    }
    changes = {"by labels": bioasq.change("hit"), "by answers": bioasq.change("answer")}
    yield dots(
        "study-differences",
        "How much better one configuration is",
        "difference in points: recall (or hit) by labels, quality of answers",
        {
            "Flat minus approximate index": {"50,000 papers": _sides(row, turned=False)},
            **{f"ADORE minus Contriever, {name}": rows for name, rows in retrievers.items()},
            "Experts' minus found snippets": {
                "BioASQ": {name: (number.value, number.low, number.high) for name, number in changes.items()}
            },
        },
    )
    yield (
        "One model wrote the questions from one paper each, answered them and graded the answers, so labels and answers"
        " share their origin. Questions that several papers answer, or another grader, could overturn this."
    )


def twice(found: Found) -> Iterator[str]:
    """Yield the section on two repositories with the same questions."""
    yield "## One question set, two prompts"
    silent = [multihop.no_answer(name, depth) for name in multihop.AGAIN_FILES for depth in multihop.DEPTHS]
    same = {metric: counts(_comparable(multihop.retrievers(metric))) for metric in ("em", "f1")}
    yield holds(
        all(count[AGREE] == count[OPPOSITE] == 0 for each in same.values() for count in each.values()),
        "**Whether labels can choose may depend on the prompt: a model that may answer from memory hides what the"
        " retriever finds.** Two repositories answer the same 1,200 questions with retrievers of the same names. Recall"
        " prefers ADORE to Contriever in both. Answers follow only in RAGs for Complex QA, whose model must say NO-RES"
        f" if the passages hold no answer, and does so on {min(silent):,} to {max(silent):,} questions. In"
        " rag-complex-qa, answers tell no pair apart, by *contains*, exact match or F1. So ask some questions end to"
        " end before you buy labels.",
    )
    yield (
        "The two ADOREs were trained apart, and the models are Llama-3-8B and Llama-3.1-8B, at temperatures .1 and .3."
        " Both prompts with one model and the same lists could overturn this."
    )


def prompts(found: Found) -> Iterator[str]:
    """Yield the table of two repositories with the same questions."""
    rows = []
    for depth in multihop.DEPTHS:
        one = found.row(contexts.REPO, f"Llama-3-8B, top {depth}", "Contriever", "ADORE")
        other = found.row(multihop.AGAIN, f"top {depth}", "Contriever", "ADORE")
        rows.append((depth, *(shown(_turned(row, side)) for row in (one, other) for side in ("labels", "answers"))))
    head = ["top", "rag-complex-qa: recall", "contains", "RAGs for Complex QA: recall", "contains"]
    yield "**One question set.** ADORE minus Contriever, in points:"
    yield table(head, rows)
    kinds = multihop.by_kind()
    overall, options, free = (kinds[kind] for kind in ("all", "options", "open"))
    yield holds(
        overall[1].low > 0 > overall[2].high
        and options[1].high < 0
        and options[2].high < 0
        and free[1].low > 0
        and free[2].low > 0
        and found.row(contexts.REPO, "Llama-3-8B, top 5", "BM25", "ADORE")["verdict"] == NOT_TOLD,
        "One example was picked after looking, and is not shown over 12 pairs: ADORE minus BM25 at top 5 for"
        f" Llama-3-8B has recall {shown(overall[1])}, exact match {shown(overall[2])}. On open questions both are above"
        f" 0 ({plain(free[1].value)}, {plain(free[2].value)}), on questions that offer options both below"
        f" ({plain(options[1].value)}, {plain(options[2].value)}).",
    )


def _comparable(settings: Sequence[Setting]) -> pd.DataFrame:
    found = pair_table(settings)
    return found[found["comparable"]]


def snippets() -> Iterator[str]:
    """Yield the section on experts' snippets."""
    hit, answer, rows = bioasq.change("hit"), bioasq.change("answer"), bioasq.table()
    fewer = int((rows[f"snippets {bioasq.MARKED}"] < rows[f"snippets {bioasq.FOUND}"]).sum())
    yield "## Experts' snippets"
    yield holds(
        hit.low > 0 and answer.low > 0 and answer.value < hit.value / 4,
        "**Answers follow experts' labels, by less than a quarter of the labels' lead.** GPT-3.5 answered"
        f" {len(rows)} questions of BioASQ 12B from up to ten snippets that a system found, and from those that experts"
        f" marked. Marked minus found: a snippet that experts marked is there {shown(hit)} points more often, and"
        f" answers are {shown(answer)} points better. Experts' snippets hit experts' labels by construction, and are"
        f" fewer for {fewer} questions, so this is no comparable pair.",
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


def constructed(found: Found) -> Iterator[str]:
    """Yield the table of what is decided by construction."""
    yield "**Decided by construction.** The last two columns count agree / opposite / too close:"
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
    head = ["repository", "what differs", "pairs", "nested", "recall", "precision"]
    yield table(head, rows)


def construction(found: Found) -> Iterator[str]:
    """Yield what is decided by construction."""
    yield "## Decided by construction"
    again = found.row(multihop.AGAIN, "depths, Contriever", "top 1", "top 5")
    first = {
        metric: _row_of(multihop.depths(metric), "depths, Llama-3-8B, Contriever", "top 1", "top 5")
        for metric in ("contains", "em")
    }
    yield holds(
        _turned(again, "answers").low > 0
        and first["contains"]["answers_low"] < 0 < first["contains"]["answers_high"]
        and _turned(first["em"], "answers").high < 0,
        "**If one list contains the other, recall and hit can only prefer the longer list, and precision nearly always"
        " prefers the shorter, whatever the answers do.** No label can change that, so [choose a depth by"
        " answers](choose-measure.md#how-many-passages). Even the sign does not replicate. Contriever, top 5 minus top"
        f" 1: *contains* {shown(_turned(again, 'answers'))} in RAGs for Complex QA,"
        f" {shown(_turned(first['contains'], 'answers'))} with Llama-3-8B in rag-complex-qa, where exact match changes"
        f" by {shown(_turned(first['em'], 'answers'))}.",
    )


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
        "**With more passages, the answers to questions that nothing answers get worse, and no label of a passage can"
        f" see it.** The RAG design study has {len(design.unanswerable())} such questions, graded from 0 to 2 by"
        f" whether the model abstains. Top 1 gets {plain(large.first, 2)}, top 20 {plain(large.last, 2)} (difference"
        f" {ends[0]}, {ends[1]} to {ends[2]}; 50,000 papers; shown for 5,000 too). Evaluate such questions"
        " apart, by abstention.",
    )


def judging() -> Iterator[str]:
    """Yield the section on LLM judges against people."""
    rows = judges.table()
    told, opposite = int(rows["told"].iloc[0]), rows["opposite"]
    yield "## LLM judges against people"
    yield holds(
        rows["tau"].idxmax() == "UMBRELA" and opposite[opposite > 0].index.tolist() == ["Llama binary, file 2"],
        f"**Of seven files of LLM labels, GPT-4o's (UMBRELA) order the runs most as people's do.** One of two files"
        f" of the same Llama judge reverses {int(opposite.max())} pairs of runs, the other none: a judge is not one"
        " number.",
    )
    found = {str(name): {"by labels": (100 * row["found"] / told,)} for name, row in rows.iterrows()}
    title = "Differences between runs that LLM labels find"
    axis = f"share of the {told:,} differences that people's labels show, in percent"
    yield dots("study-judges", title, axis, {"Judge": found})
    yield (
        f"There are no answers here; people's {judges.MEASURE} stands in their place. GPT-4o may have seen this"
        " collection. Runs whose passages people did not label, or a later collection, could overturn this."
    )


def judged_by_people() -> Iterator[str]:
    """Yield the table of LLM judges against people."""
    rows = judges.table()
    told = int(rows["told"].iloc[0])
    yield f"**LLM judges.** People tell {told:,} pairs of runs apart (p < .05, each alone):"
    head = ["judge", "tau-b of the order", f"found, of {told:,}", "opposite", "not confirmed"]
    yield table(
        head,
        [
            (name, plain(row["tau"], 2), f"{row['found']:,.0f}", int(row["opposite"]), int(row["unconfirmed"]))
            for name, row in rows.iterrows()
        ],
    )


def usefulness() -> Iterator[str]:
    """Yield the section on what makes an answer useful."""
    found, rated = experts.concordances(), experts.answers()
    leading = sum(max(rows, key=lambda name: rows[name][0]) == "informativeness" for rows in found.values())
    above = sum(rows["informativeness"][1] > 50 for rows in found.values())
    ranges = {name: [rows[name][0] for rows in found.values()] for name in ("informativeness", "support")}
    yield "## What makes an answer useful"
    yield holds(
        leading >= 4 and above >= 4 and all(rows["support"][0] < rows["informativeness"][0] for rows in found.values()),
        "**How informative an answer is says more about its usefulness than support by its sources.** Each expert"
        f" rated an answer and its claims: {len(rated)} of the {experts.ALL:,} answers of {link(experts.REPO)}, by"
        f" {len(found)} systems. Of two answers of a system, informativeness points to the more useful one most often"
        f" in {leading} systems ({min(ranges['informativeness']):.0f} to {max(ranges['informativeness']):.0f} times in"
        f" 100; above chance, 50, in {above}). Support by the cited source is lower in every one"
        f" ({min(ranges['support']):.0f} to {max(ranges['support']):.0f}). One expert rates both, so one impression"
        " moves both, and four fifths of the answers are not in.",
    )


def gap() -> Iterator[str]:
    """Yield how to make the comparison that nobody has run with a larger model, or what it found."""
    pairs, found = judged.pairs(), judged.place()
    yield "## A larger model" if found else "## A larger model: not run"
    yield (
        f"A judge, a graded judge and eRAG would take {3 * pairs:,} requests for all 1,200 questions, about $3 at $0.15"
        " and $0.60 a million tokens. One command counts and asks first:"
    )
    yield (
        "<!-- not run: it needs an endpoint -->\n```console\n"
        "$ make study-judged ENDPOINT=http://localhost:8000/v1 MODEL=my-model\n```"
    )
    if found:
        yield found


def method() -> Iterator[str]:
    """Yield how pairs are counted."""
    yield "## Method"
    yield (
        "- Two runs are *comparable* if they return equally many passages and one list is a proper part of the other"
        " (*nested*) on at most a tenth of the questions.\n"
        "- Runs are *told apart* if a paired t test says so for the labels and for the answers: p < .05 by Holm over"
        " the repository's pairs, over source documents where several questions come from one. Other pairs are too"
        " close to tell. Pairs share runs, so their counts are no rates."
    )
    yield (
        "The data are fetched when the studies are run, checked by their SHA-256, and none are kept here."
        " `studies/tables.md` has every table, the sources and their licences."
    )


def collections() -> Iterator[str]:
    """Yield what the data are."""
    repeated = [design.noise(corpus) for corpus in design.CORPORA]
    yield "## Collections"
    yield (
        f"- RAG design study: {len(design.answerable())} questions about {len(set(design.papers().values()))} papers,"
        " five chunks each, a flat and three approximate indexes. A configuration that was run twice has other grades"
        f" on {repeated[0]} and {repeated[1]} questions.\n"
        f"- BioASQ: {link(bioasq.REPO)}, batches 1 and 2, questions with an exact answer; golden answers from"
        f" {link(bioasq.GOLD)}. Later batches put answers into queries and are left out.\n"
        f"- TREC DL 2021: {judges.labelled():,} pairs labelled by NIST and by all files of"
        f" {link(judges.REPO)}."
    )
