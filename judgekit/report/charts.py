"""The figures of a report: which there are, and what they are drawn from.

Where a result has nothing to draw, its figure is left out. A figure of the comparison is drawn from views: for one
result its two levels, for several results one level of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.measures import at_depth, best_measures
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES
from judgekit.analysis.resampling import percent
from judgekit.errors import UsageError, not_among
from judgekit.report.drawing import COEFFICIENTS, Dot, Panels, Value, lines, rows
from judgekit.report.formatting import number, split_flags
from judgekit.report.grids import HEADLINE, records, where
from judgekit.report.model import Results
from judgekit.report.svg import Figure, Figures
from judgekit.spec import slug

IN_WORDS: Final = {
    CHOOSE_RUNS: "To choose between retrievers",
    FIND_QUESTIONS: "To find the questions that fail",
}

Views = Mapping[str, tuple[Results, str]]
"""What a figure of the comparison is drawn from: by the title of the panel, a result and the level."""


def figures(results: Results, coefficient: str = HEADLINE) -> Figures:
    """Return the figures that a result has, in the order in which a reader wants them."""
    uses = sorted(USES.items(), key=lambda use: use[1] != results.primary.level)
    views = {IN_WORDS[use]: (results, level) for use, level in uses}
    made = (
        decided(results.claims, _places([results]), percent(results.facts.confidence)),
        _by_use(views, coefficient),
        *_against_each(views, coefficient),
        _cases(results),
        label_shares({info.name: (info.labels, info.missing) for info in results.labelings if info.labels}),
    )
    return Figures(made)


def paper_figures(found: Mapping[str, Results], coefficient: str = "tau_b") -> Figures:
    """Return how results, by the name of each, compare, and Figures 1 to 3 of the eRAG paper over all of them."""
    drawn: list[Figure | None] = []
    for use, level in USES.items():
        figure = _by_use({name: (results, level) for name, results in found.items()}, HEADLINE)
        if figure is not None:
            drawn.append(replace(figure, name=f"{figure.name}-{use}", title=f"{IN_WORDS[use]}: {figure.title}"))
    views = {name: (results, USES[FIND_QUESTIONS]) for name, results in found.items()}
    drawn += _against_each(views, coefficient)
    return Figures(drawn)


def _places(views: Iterable[Results]) -> dict[str, int]:
    """Return the number of each labeling, which gives it its colour and shape in every figure."""
    names: dict[str, int] = {}
    for results in views:
        for name in (*(info.name for info in results.labelings), *results.comparison["labeling"]):
            names.setdefault(str(name), len(names))
    return names


def _dots(frame: pd.DataFrame, across: str = "", word: str = "", names: Sequence[str] = ()) -> list[Dot]:
    """Return a dot for each row of a comparison; ``across`` is the column of where it stands, or of its name there."""
    dots = []
    for row in records(frame):
        at = math.nan
        if across:
            at = names.index(row[across]) if names else row[across]
        dots.append(
            Dot(
                row["labeling"],
                at,
                row["value"],
                low=row["ci_low"],
                high=row["ci_high"],
                n=row["n"],
                word=row[word] if word else "",
                look="off" if "by_construction" in split_flags(row["flags"]) else "",
            )
        )
    return dots


def _panels(views: Views, coefficient: str, dots: Mapping[str, Sequence[Dot]]) -> Panels:
    """Return the panels of those views that have any number."""
    panels = {}
    for name in views:
        if any(math.isfinite(dot.value) for dot in dots[name]):
            panels[name] = COEFFICIENTS[coefficient], dots[name]
    return panels


def _headline(results: Results, level: str, coefficient: str, column: str = "") -> pd.DataFrame:
    """Return the comparison at a level in a coefficient and the metric of the decision, for every model or mode."""
    if coefficient not in COEFFICIENTS:
        raise UsageError(not_among("coefficient", coefficient, list(COEFFICIENTS)))
    table = results.comparison if column != "mode" else results.modes
    if table is None:
        return results.comparison.head(0).assign(mode="")
    return where(table, coefficient=coefficient, quality_metric=results.primary.metric, level=level)


def _by_use(views: Views, coefficient: str) -> Figure | None:
    """Return the primary measure of each by labeling, with the single runs below."""
    dots = {}
    for name, (results, level) in views.items():
        primary = results.primary
        frame = where(_headline(results, level, coefficient), model=primary.model, depth=primary.depth)
        frame = where(frame, measure=primary.measure)
        single = (replace(d, look="single") for d in _dots(frame[frame["run"] != primary.run], word="run"))
        every = [*_dots(where(frame, run=primary.run)), *single]
        # The best first, after them those that do not count, then single runs; what is undefined is the last of each.
        looks = ("", "off", "single")
        dots[name] = sorted(every, key=lambda d: (looks.index(d.look), math.isnan(d.value), -d.value))
    panels = _panels(views, coefficient, dots)
    if not panels:
        return None
    compared = [results for results, _ in views.values()]
    measures = " or ".join(dict.fromkeys(results.primary.measure for results in compared))
    words = COEFFICIENTS[coefficient].title
    if coefficient == HEADLINE:
        words = "of two cases whose answers differ in quality, how often the score favours the better one"
        words += " (0.5 is chance)"
    caption = f"{measures} by labeling: {words}, with {percent(compared[0].facts.confidence)} interval."
    if _any_look(dots, "single"):
        caption += " The small strokes are the single runs."
    title = f"How closely {measures} follows the answers"
    return rows("by-use", title, caption=caption, panels=panels, order=_places(compared))


def _any_look(dots: Mapping[str, Sequence[Dot]], look: str) -> bool:
    return any(dot.look == look for panel in dots.values() for dot in panel)


def _against_k(views: Views, coefficient: str) -> Figure | None:
    """Return the primary measure of each against k, or None with fewer than two depths."""
    dots = {}
    for name, (results, level) in views.items():
        measure, frame = results.primary.measure, _headline(results, level, coefficient)
        frame = where(frame, model=results.primary.model, run=results.primary.run)
        at_its_depth = []
        for measured, depth in zip(frame["measure"], frame["depth"], strict=True):
            at_its_depth.append(depth > 0 and measured == at_depth(measure, depth))
        dots[name] = _dots(frame.loc[at_its_depth].sort_values("depth", kind="stable"), "depth")
    depths = {dot.at for panel in dots.values() for dot in panel if math.isfinite(dot.value)}
    if len(depths) < 2:
        return None
    caption = "The primary measure at each k: the questions are answered again from the top k."
    if _any_look(dots, "off"):
        caption += " Hollow grey points are the outcome by construction."
    title = f"{COEFFICIENTS[coefficient].title} against the number of documents"
    panels, order = _panels(views, coefficient, dots), _places(results for results, _ in views.values())
    return lines("against-k", title, caption=caption, panels=panels, order=order, across=_K)


_K: Final = "k, documents that the answer is given"


def _best_at_k(views: Views, coefficient: str) -> Figure | None:
    """Return the paper's Figure 1: each labeling's best measure at each k."""
    tables = {}
    for name, (results, level) in views.items():
        here = where(_headline(results, level, coefficient), model=results.primary.model, run=results.primary.run)
        tables[name] = best_measures(here[here["depth"] > 0], results.primary.measure)
    parts = [table.assign(panel=name) for name, table in tables.items() if len(table)]
    if not parts:
        return None
    data = pd.concat(parts, ignore_index=True)
    if len(set(data["k"])) < 2 or (data["measures"] < 2).all():
        return None
    dots: dict[str, list[Dot]] = {}
    for name, table in tables.items():
        dots[name] = [Dot(row["labeling"], row["k"], row["value"], word=row["measure"]) for row in records(table)]
    caption = (
        f"For each labeling and k, whichever of {data['measures'].max():.0f} measures follows the answers best. It was"
        " chosen after looking, so that it flatters; it has no interval, and no decision rests on it."
    )
    panels, order = _panels(views, coefficient, dots), _places(results for results, _ in views.values())
    title = "Each labeling's best measure at each k"
    drawn = lines("best-against-k", title, caption=caption, panels=panels, order=order, across=_K)
    return replace(drawn, data=data)


def _against(views: Views, coefficient: str, column: str, what: str) -> Figure | None:
    """Return the paper's Figures 2 and 3: the primary measure against the model, or the mode, that answered."""
    frames = {name: _headline(results, level, coefficient, column) for name, (results, level) in views.items()}
    names = [str(name) for name in dict.fromkeys(name for frame in frames.values() for name in frame[column])]
    if len(names) < 2:
        return None
    dots = {}
    for name, frame in frames.items():
        primary = views[name][0].primary
        frame = where(frame, run=primary.run, depth=primary.depth, measure=primary.measure)
        dots[name] = _dots(frame, column, column, names)
    panels = _panels(views, coefficient, dots)
    if not panels:
        return None
    caption = f"The primary measure: the same labels against the answers of each {what}."
    title = f"{COEFFICIENTS[coefficient].title} against the {what}"
    order = _places(results for results, _ in views.values())
    return lines(f"against-{column}", title, caption=caption, panels=panels, order=order, across=what, names=names)


def _against_each(views: Views, coefficient: str) -> list[Figure | None]:
    """Return the figures of the primary measure against what differs between answers."""
    return [
        _against_k(views, coefficient),
        _best_at_k(views, coefficient),
        _against(views, coefficient, "model", "answering model"),
        _against(views, coefficient, "mode", "mode of answering"),
    ]


def decided(claims: Sequence[Claim], order: Mapping[str, int], confidence: str = percent(0.95)) -> Figure | None:
    """Return the decision's figure: runs with what shipping each may lose, and labelings with r and their price."""
    prices = {claim.subject: claim.against for claim in claims if claim.kind == "cost"}
    runs, labelings, finds = list[Dot](), list[Dot](), list[Dot]()
    for claim in claims:
        dot = Dot(claim.subject, math.nan, claim.value, claim.low, claim.high, digits=2)
        if claim.kind == "run":
            look = "off" if claim.shown else ""
            runs.append(replace(dot, look=look, text=f"at most {-claim.low:.1f}", digits=1))
        elif claim.kind in ("follows", "finds") and claim.subject:
            words = [number(claim.value, 2), prices.get(claim.subject, "")]
            dot = replace(dot, text=", ".join(filter(None, words)))
            if claim.kind == "follows":
                labelings.append(dot)
            else:
                finds.append(dot)
    panels: dict[str, tuple[Value, list[Dot]]] = {}
    caption = ""
    if runs:
        panels["Runs: what shipping may lose"] = Value("points against the best answers so far", 0.0), runs
        caption += (
            "Runs: each run's answers against the best so far, and how far below the best they may lie at most; runs"
            " shown to be worse are grey. "
        )
    if labelings:
        panels["Labelings: r, and the price"] = Value("r with the answers", 0.0, (-0.04, 0.2), -1.0, 1.0), labelings
        caption += "Labelings: how closely each labeling follows the answers (0 is chance), and its price."
    elif finds:
        panels["Finds the questions that fail"] = COEFFICIENTS[HEADLINE], finds
        caption += "How often each labeling finds the worse answered of two questions (0.5 is chance), and its price."
    if not panels:
        return None
    caption = f"{caption.strip()} Lines are {confidence} intervals."
    title = "The runs and the labelings"
    return rows("decision", title, caption=caption, panels=panels, order=order, across="run or labeling", shared=False)


def _cases(results: Results) -> Figure | None:
    """Return score against quality per query and run: as many cases as a circle is large, and their mean quality."""
    frame, order = results.cases, _places([results])
    if frame is None or frame.empty:
        return None
    value, most = Value("quality", held=(0.0, 1.0)), frame["n"].max()
    panels: dict[str, tuple[Value, list[Dot]]] = {}
    for name in order:
        part = where(frame, labeling=name)
        if part.empty:
            continue
        sums = part.assign(sum=part["quality"] * part["n"]).groupby("score")[["sum", "n"]].sum().reset_index()
        dots = [Dot(name, row["score"], row["sum"] / row["n"], n=row["n"], look="mean") for row in records(sums)]
        for row in records(part):
            size = max(1.0, 11 * math.sqrt(row["n"] / most))
            word = f"score {number(row['score'])}, quality"
            dots.append(Dot(name, row["score"], row["quality"], n=row["n"], word=word, look="circle", size=size))
        panels[name] = value, dots
    caption = (
        f"Each circle stands for the questions and runs with this score and this {results.primary.metric}; the larger,"
        " the more. The line is their mean quality: a labeling that follows the answers rises from left to right."
    )
    title = f"Score against quality, per question and run: {results.primary.measure}"
    drawn = lines(
        "score-quality",
        title,
        caption=caption,
        panels=panels,
        order=order,
        across="score",
        straight=True,
        high=110.0,
        columns=3,
    )
    return replace(drawn, data=frame)


def label_shares(known: Mapping[str, tuple[Mapping[str, int], int]]) -> Figure | None:
    """Return the distribution of labels: by labeling how often each was given, and how many are missing."""
    if not known:
        return None
    dots = []
    for name, (given, missing) in known.items():
        parts = {**given, "missing": missing}
        total = max(sum(parts.values()), 1)
        at = 0.0
        for turn, (label, n) in enumerate(parts.items()):
            share = 100 * n / total
            text = f"{n:,} of {total:,} ({share:.1f} %)"
            dots.append(
                Dot(
                    name,
                    math.nan,
                    value=share,
                    low=at,
                    high=at + share,
                    n=n,
                    word=str(label),
                    look="lost" if label == "missing" else "share",
                    text=text,
                    size=0.1 + 0.4 * turn / max(len(given) - 1, 1),
                )
            )
            at += share
    caption = (
        "The share of each label among all pairs of the pool; the darker, the more relevant."
        " Missing labels count for nothing."
    )
    panels = {"": (Value("share of the labels, %", held=(0.0, 100.0), floor=0.0, ceiling=100.0), dots)}
    drawn = rows("labels", "Which labels were given", caption=caption, panels=panels, order={}, across="label")
    return replace(drawn, data=drawn.data.drop(columns=["low", "high"]).rename(columns={"n": "count"}))


def mean_scores(means: pd.DataFrame) -> Iterator[Figure]:
    """Yield for each measure the mean scores of the runs under each labeling: columns of a score table."""
    order = {str(name): place for place, name in enumerate(dict.fromkeys(means["labeling"]))}
    runs = [str(run) for run in dict.fromkeys(means["run"])]
    for measure in dict.fromkeys(means["measure"]):
        dots = []
        for row in records(where(means, measure=measure)):
            dots.append(Dot(row["labeling"], runs.index(row["run"]), row["value"], word=row["run"]))
        if any(math.isfinite(dot.value) for dot in dots):
            caption = f"Mean {measure} over the questions, of each run under each labeling."
            title, panels = f"Mean {measure} of the runs", {"": (Value(measure), dots)}
            name = slug(f"scores-{measure}")
            yield lines(name, title, caption=caption, panels=panels, order=order, across="run", names=runs)
