"""The rules that the decision rests on, run on public tables: TREC DL 2021, the studies' configurations, BioASQ.

    STUDIES=DIR python -m studies.rules [NAME …]      # writes the tables of studies/rules.md, or those that are named

Simulations know the truth, these tables do not. So each rule is held against what is known: people's judgments of the
whole pool, runs or questions that were set aside, or the same table with something taken away or turned round.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

import judgekit as jk
from judgekit.analysis.background import RETRIEVER, Background
from judgekit.analysis.best import compared_with_best
from judgekit.analysis.case import Case, Follower
from judgekit.analysis.inputs import Panel
from judgekit.analysis.levels import POOLED, Resamples, estimates
from judgekit.analysis.money import Money
from judgekit.analysis.primary import CHOOSE_RUNS, USES, Primary
from judgekit.analysis.resampling import resample_matrix
from judgekit.collection import Pool
from judgekit.data.labelings import Labeling, Scale
from judgekit.people.final import final_labels
from judgekit.people.reading import People
from judgekit.rules import Rules
from studies import bioasq, contexts, design, judges, multihop, page
from studies.pairs import Setting
from studies.source import SourceError, paths, trec

Floats = npt.NDArray[np.float64]

MEASURES: Final = ("P@5", "RR", "nDCG@5")
PLACE: Final = Path(__file__).with_suffix(".md")
SEED: Final = 1
DRAWS: Final = 12
RESAMPLES: Final = 200
SIX: Final = 6
COPIES: Final = 5
BIOASQ: Final = "BioASQ, found and marked snippets"
TABLES: Final = ("final qrels", "free rivals", "copies", "directions", "missing", "levels")
JUDGED: Final = (8, 25)
FILLING: Final = {"binary": "binary", "Llama binary, file 1": "binary", "exam binary": "unit", "UMBRELA": "grades:3:2"}
WAYS: Final = {"rule": "by the rule", "declared": "as declared"}
_PAIR: Final = ["query_id", "doc_id"]
PRICES: Final = dict.fromkeys(judges.JUDGES, 20.0)


@dataclass(frozen=True)
class Real:
    """A table with scores of labelings and a quality for each run and question.

    Attributes:
        labelings, runs, queries: names.
        scores: shape (L, R, n), NaN where there is none.
        quality: shape (R, n).
        controls: the labelings that are controls.
        groups: the group of each question, shape (n,), where questions belong together.
    """

    labelings: tuple[str, ...]
    runs: tuple[str, ...]
    queries: tuple[str, ...]
    scores: Floats
    quality: Floats
    controls: tuple[str, ...] = ()
    groups: npt.NDArray[np.intp] | None = None

    @classmethod
    def of(cls, setting: Setting) -> Real:
        """Return the table of a study's setting."""
        runs = tuple(map(str, setting.answers.columns))
        scores = np.stack([frame[list(runs)].to_numpy(float).T for frame in setting.labels.values()])
        queries = tuple(map(str, setting.answers.index))
        return cls(
            tuple(setting.labels), runs, queries, scores, setting.answers.to_numpy(float).T, (), setting.members()
        )

    def only(self, runs: Sequence[int], queries: npt.NDArray[np.intp] | None = None) -> Real:
        """Return some runs, and some questions of them."""
        at = np.arange(len(self.queries)) if queries is None else queries
        return replace(
            self,
            runs=tuple(self.runs[run] for run in runs),
            queries=tuple(self.queries[query] for query in at),
            scores=self.scores[:, runs][:, :, at],
            quality=self.quality[runs][:, at],
            groups=None if self.groups is None else np.unique(self.groups[at], return_inverse=True)[1],
        )

    def case(self, prices: Mapping[str, float] | None = None) -> Case:
        """Return the case that a comparison makes of the table."""
        missing = ~np.isfinite(self.scores)
        panel = Panel(
            measure="nDCG@10",
            depth=10,
            metric="quality",
            model="m",
            labelings=self.labelings,
            runs=self.runs,
            queries=self.queries,
            scores=self.scores,
            quality=self.quality,
            asked=np.ones(self.quality.shape, np.bool_),
            low=np.where(missing, 0.0, self.scores),
            high=np.where(missing, 1.0, self.scores),
        )
        questions = len(self.queries)
        drawn = Resamples(resample_matrix(questions, RESAMPLES, SEED, self.groups), self.groups)
        costs = None
        if prices is not None:
            taken = {**prices, "answers": 60.0}
            costs = pd.DataFrame({"labeling": list(taken), "money": [questions * price for price in taken.values()]})
        found = {level: list(estimates(panel, level, drawn)) for level in USES.values()}
        return Case(
            primary=Primary("nDCG@10", "quality", "m", 10, CHOOSE_RUNS),
            panel=panel,
            found=found,
            resamples=drawn,
            rules=Rules(),
            background=Background(
                money=Money("EUR"),
                costs=costs,
                pool=None if prices is None else Pool(questions, 10 * questions, 10 * questions, questions),
                controls=list(self.controls),
            ),
        )


@dataclass(frozen=True)
class Track:
    """TREC DL 2021: 63 runs, 53 topics, NIST's grades of the pool, and the labels of LLMs."""

    runs: Mapping[str, pd.DataFrame]
    people: pd.DataFrame
    judges: Mapping[str, pd.DataFrame]

    @classmethod
    def read(cls) -> Track:
        """Read the track."""
        people = trec(judges.REPO, "data/qrels.dl21-passage.txt")
        topics = set(people["query_id"])
        runs = {}
        for path in paths(judges.REPO, "runs/dl21/"):
            run = trec(judges.REPO, path, "query_id _ doc_id rank score tag")
            name = path.removeprefix("runs/dl21/input.").removesuffix(".txt")
            runs[name] = run.loc[run["query_id"].isin(topics), ["query_id", "doc_id", "score"]]
        return cls(runs, people, {name: trec(judges.REPO, path) for name, (path, _) in judges.JUDGES.items()})

    @cached_property
    def table(self) -> Real:
        """The runs by each judge, and by people as the quality."""
        labelings = {**self.judges, judges.PEOPLE: self.people}
        scales = {name: scale for name, (_, scale) in judges.JUDGES.items()} | {judges.PEOPLE: "grades:3"}
        values = jk.score(dict(self.runs), labelings, judges.MEASURE, scales=scales).scores()
        wide = {
            str(name): rows.pivot(index="run", columns="query_id", values="value").loc[list(self.runs)]
            for name, rows in values.groupby("labeling")
        }
        queries = tuple(map(str, wide[judges.PEOPLE].columns))
        scores = np.stack([wide[name].to_numpy(float) for name in self.judges])
        return Real(tuple(self.judges), tuple(self.runs), queries, scores, wide[judges.PEOPLE].to_numpy(float))

    def with_ranks(self, runs: Sequence[int]) -> Real:
        """Return some runs with the control of their fused ranks: a document's label is 1 / its rank in the fusion."""
        some = self.table.only(runs)
        lists = pd.concat([self.runs[name].assign(run=name) for name in some.runs])
        lists["rank"] = lists.groupby(["run", "query_id"])["score"].rank(ascending=False, method="first")
        fused = (1 / (60 + lists["rank"])).groupby([lists["query_id"], lists["doc_id"]]).sum().reset_index(name="sum")
        fused["relevance"] = 1 / fused.groupby("query_id")["sum"].rank(ascending=False, method="first")
        labels = fused[fused["relevance"] > 1 / 101][["query_id", "doc_id", "relevance"]]
        own = {name: self.runs[name] for name in some.runs}
        values = jk.score(own, {RETRIEVER: labels}, judges.MEASURE, scales={RETRIEVER: "unit"}).scores()
        wide = values.pivot(index="run", columns="query_id", values="value").loc[list(some.runs), list(some.queries)]
        scores = np.concatenate([some.scores, wide.to_numpy(float)[None]])
        return replace(some, labelings=(*some.labelings, RETRIEVER), scores=scores, controls=(RETRIEVER,))


def mean(values: Sequence[float], digits: int = 2) -> str:
    """Return a mean with its standard error over the draws."""
    array = np.asarray(values, float)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    text = f"{array.mean():.{digits}f}" + (f" ({error:.{digits}f})" if np.isfinite(error) else "")
    return text.replace("0.", ".").replace("-.", "−.")


def final_qrels(track: Track, draws: int = 5) -> str:
    """Rule 22: final labels of people's topics and a machine's, beside the machine's labels as declared."""
    whole = track.people.astype({"relevance": float}).assign(status="ok")
    topics = sorted(set(whole["query_id"]))
    graded, relevant = Scale.parse("grades:3:2"), 2
    rng, made, counted = np.random.default_rng(SEED), {judges.PEOPLE: whole}, dict[str, pd.DataFrame]()
    lost: dict[tuple[str, int], list[float]] = {}
    for name, scale in FILLING.items():
        labels = track.judges[name].astype({"relevance": float}).assign(status="ok").merge(whole[_PAIR])
        machine = Labeling(name, Scale.parse(scale), labels)
        binary = labels.assign(relevance=np.where(labels["relevance"] >= machine.scale.threshold, 2.0, 0.0))
        for judged, draw in product(JUDGED, range(draws)):
            asked = set(rng.choice(topics, judged, replace=False).tolist())
            given = whole[whole["query_id"].isin(asked)]
            drawn = given[_PAIR].assign(probability=1.0, content="", status="ok", judgments=1)
            final = final_labels(machine, People(Labeling("people", graded, given), drawn, "", 0.0))
            made[f"{name}|{judged}|rule|{draw}"] = final.labeling.table.dropna(subset="relevance")
            # What a label counts is not rounded: nDCG reads it in tenths of a grade.
            gains = final.table.assign(relevance=(10 * final.table["gain"]).round()).dropna(subset="relevance")
            counted[f"{name}|{judged}|rule|{draw}"] = gains
            made[f"{name}|{judged}|declared|{draw}"] = pd.concat([given, binary[~binary["query_id"].isin(asked)]])
            least = machine.scale.threshold if final.rule is None else final.rule.cut
            with_one = set(given.loc[given["relevance"] >= relevant, "query_id"])
            kept = set(labels.loc[labels["relevance"] >= least, "query_id"])
            lost.setdefault((name, judged), []).append(1 - len(with_one & kept) / max(len(with_one), 1))
    wide = _means(track, made, [*MEASURES, judges.MEASURE], "grades:3:2")
    for name, means in _means(track, counted, ["nDCG@5", judges.MEASURE], "grades:30:20").items():
        wide[name] = wide[name].assign(**{measure: means[measure] for measure in means.columns})
    truth, rows = wide[judges.PEOPLE], []
    for name, judged, way in product(FILLING, JUDGED, ("rule", "declared")):
        each = [wide[f"{name}|{judged}|{way}|{draw}"] for draw in range(draws)]
        off = [[abs(float((one[measure] - truth[measure]).mean())) for one in each] for measure in MEASURES]
        taus = [stats.kendalltau(one[judges.MEASURE], truth[judges.MEASURE]).statistic for one in each]
        none = mean(lost[name, judged]) if way == "rule" else "-"
        rows.append([name, judged, WAYS[way], *map(mean, off), mean(taus), none])
    off_by = [f"{measure} off by" for measure in MEASURES]
    head = ["labels", "topics judged", "the others' labels", *off_by, "tau of the runs", "judged topics that lose all"]
    return page.table(head, rows)


def _means(
    track: Track, labels: Mapping[str, pd.DataFrame], measures: Sequence[str], scale: str
) -> dict[str, pd.DataFrame]:
    """Return the means of all runs by some labels, a column for each measure."""
    tables = {name: table[[*_PAIR, "relevance"]].astype({"relevance": int}) for name, table in labels.items()}
    means = jk.score(dict(track.runs), tables, list(measures), scales=dict.fromkeys(tables, scale)).means()
    return {
        str(name): rows.pivot(index="run", columns="measure", values="value")
        for name, rows in means.groupby("labeling")
    }


def free_rivals(track: Track, draws: int = DRAWS) -> str:
    """Rule 23: what is kept on six runs, and what that loses among six others; people's labels are the outcome."""
    rng, found = np.random.default_rng(SEED), dict[str, list[float]]()
    for _ in range(draws):
        runs = rng.permutation(len(track.table.runs))
        pilot, later = runs[:SIX].tolist(), track.table.only(runs[SIX : 2 * SIX].tolist())
        case = track.with_ranks(pilot).case(PRICES)
        useful = [follower for follower in case.eligible if follower.useful]
        for way, kept in (("largest r", useful[0] if useful else None), ("Keep", case.kept)):
            found.setdefault(f"{way}: labels bought", []).append(float(kept is not None))
            found.setdefault(f"{way}: regret", []).append(_regret(later, kept))
        (ranks,) = case.controls(CHOOSE_RUNS)
        found.setdefault("r of the ranks", []).append(ranks.estimate.value(POOLED))
        found.setdefault("largest r", []).append(case.followers[0].r.value)
    rows = []
    for way in ("largest r", "Keep"):
        rows.append([way, mean(found[f"{way}: labels bought"]), mean(found[f"{way}: regret"])])
    head = ["rule", "labels are bought", "points lost among six later runs"]
    beside = f"The largest r is {mean(found['largest r'])} on average, that of the runs' own ranks"
    return f"{page.table(head, rows)}\n\n{beside} {mean(found['r of the ranks'])}."


def _regret(later: Real, kept: Follower | None) -> float:
    """Return what choosing by labels loses among later runs, in points; without labels answers choose."""
    quality = 100 * later.quality.mean(axis=1)
    if kept is None:
        return 0.0
    scores = later.scores[later.labelings.index(kept.name)].mean(axis=1)
    return float(quality.max() - quality[int(np.argmax(scores))])


def copies(track: Track, settings: Mapping[str, Real], draws: int = 30) -> str:
    """Rule 24: half of the questions five times each; is a run that is shown to be the best so on the other half?"""
    rows = []
    tables = {"DL21, six of 63 runs": track.table, **settings}
    for name, real in tables.items():
        rng, found = np.random.default_rng(SEED), dict[str, list[float]]()
        size = min(len(real.queries) // 2, 100)
        for _ in range(draws):
            runs = rng.permutation(len(real.runs))[:SIX].tolist()
            queries = rng.permutation(len(real.queries))
            rest = real.quality[runs][:, queries[size:]].mean(axis=1)
            copied = np.repeat(queries[:size], COPIES)
            for way in ("rows", "questions"):
                some = real.only(runs, copied if way == "rows" else queries[:size])
                best = compared_with_best(some.quality, resample_matrix(len(some.queries), RESAMPLES, SEED))
                shown = np.flatnonzero(best.may_be_best)
                found.setdefault(f"{way} shown", []).append(float(len(shown) == 1))
                refuted = len(shown) == 1 and rest[shown[0]] < rest.max() - 1e-9
                found.setdefault(f"{way} refuted", []).append(float(refuted))
                out = not best.may_be_best[int(np.argmax(rest))]
                found.setdefault(f"{way} out", []).append(float(out))
        cells = [mean(found[f"{way} {key}"]) for key in ("shown", "refuted", "out") for way in ("rows", "questions")]
        rows.append([name, size, *cells])
    head = ["table", "questions, each 5 times"]
    for what in ("one run is shown to be the best", "it is not on the rest", "the best of the rest is left out"):
        head += [f"{what}: rows counted", "questions counted"]
    return page.table(head, rows)


def directions(track: Track, tables: Mapping[str, Real], draws: int = 6) -> str:
    """Rule 25: how often labels as they are, and labels turned round, are asked about."""
    rows = []
    for count in (2, 3, 6):
        rng, straight, turned = np.random.default_rng(SEED), list[float](), list[float]()
        for _ in range(draws):
            runs = rng.permutation(len(track.table.runs))[:count].tolist()
            for name, real in (("as given", track.table.only(runs)), ("turned", track.table.only(runs))):
                if name == "turned":
                    real = replace(real, scores=1 - real.scores)
                asked = _asked(real)
                (turned if name == "turned" else straight).append(asked / len(real.labelings))
        rows.append([f"DL21, {count} of 63 runs", len(track.table.labelings), mean(straight), mean(turned)])
    for name, real in tables.items():
        every = len(real.labelings)
        backwards = replace(real, scores=real.scores.max(axis=(1, 2), keepdims=True) - real.scores)
        rows.append([name, every, mean([_asked(real) / every]), mean([_asked(backwards) / every])])
    return page.table(["table", "labelings", "asked about as given", "asked about when turned round"], rows)


def _asked(real: Real) -> int:
    """Return how many labelings are asked about: is lower better?"""
    case = real.case()
    return sum("Is lower better?" in case.why_left_out(follower) for follower in case.followers)


def missing(track: Track, draws: int = 6) -> str:
    """Rule 26: scores of one labeling are taken away; what becomes of the claims of it and of the others."""
    rows = []
    for share in (0.0, 0.01, 0.05, 0.1, 0.2):
        rng, found = np.random.default_rng(SEED), dict[str, list[float]]()
        for _ in range(draws):
            real = track.table.only(rng.permutation(len(track.table.runs))[:SIX].tolist())
            lacking = real.scores.copy()
            lacking[0][rng.random(lacking[0].shape) < share] = np.nan
            case = replace(real, scores=lacking).case()
            shown = case.leads(CHOOSE_RUNS, [follower.series for follower in case.followers]).shown
            own = [pair for pair in shown if real.labelings[0] in pair]
            found.setdefault("own", []).append(len(own))
            found.setdefault("others", []).append(len(shown) - len(own))
            whole = np.isfinite(lacking).all(axis=(0, 1))
            complete = real.only(range(SIX), np.flatnonzero(whole)).case()
            leads = complete.leads(CHOOSE_RUNS, [follower.series for follower in complete.followers]).shown
            found.setdefault("complete", []).append(sum(real.labelings[0] not in pair for pair in leads))
            found.setdefault("questions", []).append(whole.sum())
        cells = [mean(found[key], 1) for key in ("own", "others", "complete", "questions")]
        rows.append([f"{100 * share:.0f} %", *cells])
    head = ["missing of UMBRELA", "leads shown, with UMBRELA", "without it", "without it, complete questions alone",
            "complete questions"]  # fmt: skip
    return page.table(head, rows)


def levels(tables: Mapping[str, Real]) -> str:
    """Rule 27: who leads over questions, who between runs, and whether that is shown."""
    rows = []
    for name, real in tables.items():
        case = real.case()
        taus = {}
        for series in case.series("find-questions"):
            tau = series.estimate.value("tau_b")
            if np.isfinite(tau):
                taus[series.name] = tau
        if not taus or not case.followers:
            continue
        over, between = max(taus, key=lambda each: (taus[each], each)), case.followers[0]
        shown = (between.name, over) in case.leads(CHOOSE_RUNS, [each.series for each in case.followers]).shown
        said = "the same" if over == between.name else "shown" if shown else "not shown"
        numbers = f"{over} ({taus[over]:.2f})", f"{between.name} ({between.r.value:.2f})"
        rows.append(
            [name, f"{len(real.runs)} x {len(real.queries)}", *(text.replace("0.", ".") for text in numbers), said]
        )
    head = ["table", "runs x questions", "leads over questions (tau)", "leads between runs (r)", "lead between runs"]
    return page.table(head, rows)


def of_bioasq() -> Real:
    """Return BioASQ's two phases: whether a marked snippet is hit, and how many snippets there are."""
    rows = bioasq.table()
    phases = (bioasq.FOUND, bioasq.MARKED)

    def wide(name: str) -> Floats:
        return np.stack([rows[f"{name} {phase}"].to_numpy(float) for phase in phases])

    queries = tuple(map(str, rows.index))
    return Real(("hit", "snippets"), phases, queries, np.stack([wide("hit"), wide("snippets") / 10]), wide("answer"))


@cache
def study_tables() -> dict[str, Real]:
    """Return the settings of the studies that have several measures, three runs or more, and BioASQ."""
    found = {}
    for setting in (*multihop.retrievers(), *design.settings()):
        if len(setting.labels) > 1 and len(setting.answers.columns) > 1:
            source = "2WikiMultihopQA" if setting.repository == contexts.REPO else "RAG design study"
            found[f"{source}: {setting.name}"] = Real.of(setting)
    return {**found, BIOASQ: of_bioasq()}


def made(name: str, track: Track) -> str:
    """Return one of the tables of the page."""
    if name == "final qrels":
        return final_qrels(track)
    if name == "free rivals":
        return free_rivals(track)
    if name == "missing":
        return missing(track)
    if name == "directions":
        return directions(track, {BIOASQ: of_bioasq()})
    studied = study_tables()
    if name == "copies":
        return copies(track, {name: real for name, real in studied.items() if len(real.runs) > 2})
    return levels({"DL21, 63 runs": track.table, **studied})


def main(names: Sequence[str]) -> None:
    """Write some of the tables of the page, or all."""
    track = Track.read()
    for name in names or TABLES:
        table = made(name, track)
        # Read anew: a table takes minutes, and somebody may write on the page meanwhile.
        text = PLACE.read_text(encoding="utf-8")
        first, last = f"<!-- public: {name} -->\n", f"\n<!-- /public: {name} -->"
        before, found, rest = text.partition(first)
        if not found:
            raise AssertionError(f"{PLACE} has no place for {name}")
        PLACE.write_text(before + first + table + last + rest.partition(last)[2], encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SourceError as error:
        sys.exit(str(error))
