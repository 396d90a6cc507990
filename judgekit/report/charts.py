"""The figures of a report and their data.

A figure without data is left out. Figures of the comparison are drawn from views: the two levels of one result, or one
level of several results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.measures import at_depth, best_measures
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, USES
from judgekit.analysis.resampling import percent
from judgekit.data.tables import ALL, stacked
from judgekit.errors import UsageError, not_among
from judgekit.report.drawing import COEFFICIENTS, Chart, Dot, FigurePanel, Value
from judgekit.report.formatting import number, split_flags
from judgekit.report.grids import HEADLINE, records, where
from judgekit.report.model import Results
from judgekit.report.svg import Figure, Figures

IN_WORDS: Final = {
    CHOOSE_RUNS: "To choose between retrievers",
    FIND_QUESTIONS: "To find the questions that fail",
}
_K: Final = "k, documents that the answer is given"
_NEEDS: Final = {
    "against-k": "answers from the top k documents for two k or more, and the primary measure at each k",
    "best-against-k": "answers from the top k documents for two k or more, and scores of two measures or more",
    "against-model": "answers of two models or more",
    "against-mode": "answers in two modes or more",
}
"""Requirements of the figures that a result may lack."""


def figures(results: Results, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    """Return a result's figures in reading order, for one ``run`` or for all."""
    # The decision's use comes first. A single run has no rival, only questions to distinguish.
    uses = sorted(USES.items(), key=lambda use: use[1] != results.primary.level)
    if run is not None:
        uses = [(FIND_QUESTIONS, USES[FIND_QUESTIONS])]
    views = _Views({IN_WORDS[use]: (results, level) for use, level in uses}, coefficient, run)
    decision = decided(results.claims, views.order, percent(results.facts.confidence))
    return Figures([decision, views.by_use(), *views.against_each()], needs=_NEEDS)


def paper_figures(found: Mapping[str, Results], coefficient: str = "tau_b", run: str | None = None) -> Figures:
    """Return figures that compare named results, and Figures 1 to 3 of the eRAG paper over all of them.

    With ``run`` Figures 1 to 3 are about that retriever, as the paper's are.
    """
    drawn: list[Figure | None] = []
    for use, level in USES.items():
        figure = _Views({name: (results, level) for name, results in found.items()}, HEADLINE).by_use()
        if figure is not None:
            drawn.append(replace(figure, name=f"{figure.name}-{use}", title=f"{IN_WORDS[use]}: {figure.title}"))
    # The paper correlates over questions, so its figures do not exist at other levels.
    level = USES[FIND_QUESTIONS]
    views = _Views({name: (results, level) for name, results in found.items()}, coefficient, run)
    return Figures([*drawn, *views.against_each()], needs=_NEEDS)


@dataclass(frozen=True)
class _Views:
    """The data of the comparison's figures: a result and a level by panel title.

    Attributes:
        views: see above.
        coefficient: the coefficient to draw.
        run: the run to show; None for the decision's, mostly the mean over all.
    """

    views: Mapping[str, tuple[Results, str]]
    coefficient: str
    run: str | None = None

    def __post_init__(self) -> None:
        if self.coefficient not in COEFFICIENTS:
            raise UsageError(not_among("coefficient", self.coefficient, list(COEFFICIENTS)))
        runs = dict.fromkeys(str(run) for results, _ in self.views.values() for run in results.comparison["run"])
        if self.run is not None and self.run not in runs:
            raise UsageError(not_among("run", self.run, [run for run in runs if run != ALL]))

    @property
    def value(self) -> Value:
        """The title of the axis of values."""
        return COEFFICIENTS[self.coefficient]

    @property
    def order(self) -> dict[str, int]:
        """The number of each labeling, which determines its colour and shape in all figures."""
        names: dict[str, int] = {}
        for results, _ in self.views.values():
            for name in (*(info.name for info in results.labelings), *results.comparison["labeling"]):
                names.setdefault(str(name), len(names))
        return names

    def rows(self, column: str = "") -> Iterator[tuple[str, Results, pd.DataFrame]]:
        """Yield each panel's title, its result, and its comparison's rows with the decision's metric and run.

        With ``column`` these are the rows for all models or modes; without it, only for the decision's model.
        """
        for title, (results, level) in self.views.items():
            primary = results.primary
            table = results.modes if column == "mode" else results.comparison
            if table is None:
                continue
            rows = where(table, coefficient=self.coefficient, level=level)
            rows = where(rows, quality_metric=primary.metric, run=self.run or primary.run)
            if not column:
                rows = where(rows, model=primary.model)
            yield title, results, rows

    def panels(self, dots: Mapping[str, Sequence[Dot]]) -> dict[str, FigurePanel]:
        """Return the panels with any number."""
        panels = {}
        for title, those in dots.items():
            # A panel without numbers is an empty frame, which looks like a bug.
            if any(math.isfinite(dot.value) for dot in those):
                panels[title] = FigurePanel(self.value, those)
        return panels

    def by_use(self) -> Figure | None:
        """Return the figure of the primary measure by labeling, the best first."""
        dots, measures = {}, dict[str, None]()
        confidence = 0.95
        for title, results, rows in self.rows():
            primary = results.primary
            measures[primary.measure] = None
            confidence = results.facts.confidence
            # Rows that do not count come later, and undefined ones last, since readers take the first row for the best.
            those = _dots(where(rows, depth=primary.depth, measure=primary.measure))
            dots[title] = sorted(those, key=lambda dot: (dot.look == "off", math.isnan(dot.value), -dot.value))
        panels = self.panels(dots)
        if not panels:
            return None
        names = " or ".join(measures)
        words = self.value.title
        if self.coefficient == HEADLINE:
            words = (
                "of two cases whose answers differ in quality, how often the score favours the better one (0.5 is"
                " chance)"
            )
        return Chart(
            "by-use",
            f"How closely {names} follows the answers",
            f"{names} by labeling: {words}, with {percent(confidence)} interval.",
            panels,
            self.order,
        ).rows()

    def against_each(self) -> list[Figure | None]:
        """Return the figures of the primary measure against the properties of answers."""
        made = [
            self._against_k(),
            self._best_at_k(),
            self._against("model", "answering model"),
            self._against("mode", "mode of answering"),
        ]
        if self.run is None:
            return made
        return [figure and replace(figure, title=f"{figure.title}, run {self.run}") for figure in made]

    def _against_k(self) -> Figure | None:
        """Return the figure of the primary measure against k, or None with fewer than two depths."""
        dots = {}
        for title, results, rows in self.rows():
            # The answers at depth k are compared with the measure cut at k: nDCG@5 with answers from the top 5.
            matching = []
            for measure, depth in zip(rows["measure"], rows["depth"], strict=True):
                matching.append(depth > 0 and measure == at_depth(results.primary.measure, depth))
            dots[title] = _dots(rows.loc[matching].sort_values("depth", kind="stable"), "depth")
        caption = "The primary measure at each k: the questions are answered again from the top k."
        title = f"{self.value.title} against the number of documents"
        chart = Chart("against-k", title, caption, self.panels(dots), self.order, _K)
        if len({dot.at for dot in chart.dots}) < 2:
            return None
        if any(dot.look for dot in chart.dots):
            chart = replace(chart, caption=f"{caption} Hollow grey points are the outcome by construction.")
        return chart.lines()

    def _best_at_k(self) -> Figure | None:
        """Return the paper's Figure 1: each labeling's best measure at each k."""
        dots: dict[str, list[Dot]] = {}
        parts = []
        for title, results, rows in self.rows():
            table = best_measures(rows[rows["depth"] > 0], results.primary.measure)
            parts.append(table.assign(panel=title))
            dots[title] = []
            for row in records(table):
                dots[title].append(Dot(row["labeling"], row["k"], row["value"], word=row["measure"]))
        data = stacked(parts)
        if len(set(data["k"])) < 2 or (data["measures"] < 2).all():
            return None
        caption = (
            f"For each labeling and k, the one of {data['measures'].max():.0f} measures that follows the answers best."
            " Chosen after looking, it flatters the labeling; it has no interval, and no decision uses it."
        )
        title = "Each labeling's best measure at each k"
        drawn = Chart("best-against-k", title, caption, self.panels(dots), self.order, _K).lines()
        return replace(drawn, data=data)

    def _against(self, column: str, what: str) -> Figure | None:
        """Return the paper's Figures 2 and 3: the primary measure against the answering model, or the mode."""
        parts = {}
        for title, results, rows in self.rows(column):
            parts[title] = where(rows, depth=results.primary.depth, measure=results.primary.measure)
        names: list[str] = []
        for rows in parts.values():
            names += dict.fromkeys(rows[column])
        names = list(dict.fromkeys(names))
        panels = self.panels({title: _dots(rows, column, names) for title, rows in parts.items()})
        if len(names) < 2 or not panels:
            return None
        return Chart(
            f"against-{column}",
            f"{self.value.title} against the {what}",
            f"The primary measure: the same labels against the answers of each {what}.",
            panels,
            self.order,
            across=what,
            names=names,
        ).lines()


def _dots(frame: pd.DataFrame, across: str = "", names: Sequence[str] = ()) -> list[Dot]:
    """Return a dot for each row of a comparison; ``across`` is the column of positions on the other axis."""
    dots = []
    for row in records(frame):
        dot = Dot(row["labeling"], math.nan, row["value"], row["ci_low"], row["ci_high"], n=row["n"])
        if names:
            dot = replace(dot, at=names.index(row[across]), word=row[across])
        elif across:
            dot = replace(dot, at=row[across])
        if "by_construction" in split_flags(row["flags"]):
            dot = replace(dot, look="off")
        dots.append(dot)
    return dots


def decided(claims: Sequence[Claim], order: Mapping[str, int], confidence: str = percent(0.95)) -> Figure | None:
    """Return the decision's figure: runs with the possible loss by shipping them, and labelings with r and price."""
    # The figure only draws claims, so that it cannot say more than the decision.
    prices = {claim.subject: claim.against for claim in claims if claim.kind == "cost"}
    dots: dict[str, list[Dot]] = {"run": [], "follows": [], "finds": []}
    for claim in claims:
        if claim.kind not in dots or not claim.subject:
            continue
        dot = Dot(claim.subject, math.nan, claim.value, claim.low, claim.high, digits=2)
        if claim.kind == "run":
            dot = replace(dot, look="off" if claim.shown else "", text=f"at most {abs(claim.low):.1f}", digits=1)
        elif prices.get(claim.subject):
            dot = replace(dot, text=f"{number(claim.value, 2)}, {prices[claim.subject]}")
        dots[claim.kind].append(dot)
    panels, captions = {}, []
    for kind, those in dots.items():
        # How often labelings find failures is only drawn if there are no claims about runs.
        if those and not (kind == "finds" and dots["follows"]):
            title, value, caption = _DECIDED[kind]
            panels[title] = FigurePanel(value, those)
            captions.append(caption)
    if not panels:
        return None
    captions.append(f"Lines are {confidence} intervals.")
    title = "The runs and the labelings"
    return Chart("decision", title, " ".join(captions), panels, order, "run or labeling").rows()


_DECIDED: Final = {
    "run": (
        "Runs: what shipping may lose",
        Value("points against the best answers so far", 0.0),
        "Runs: each run's answers against the best so far, and how far below the best they may lie at most; runs shown"
        " to be worse are grey.",
    ),
    "follows": (
        "Labelings: r, and the price",
        Value("r with the answers", 0.0, (-0.04, 0.2)),
        "Labelings: how closely each labeling follows the answers (0 is chance), and its price.",
    ),
    "finds": (
        "Finds the questions that fail",
        COEFFICIENTS[HEADLINE],
        "How often each labeling finds the worse answered of two questions (0.5 is chance), and its price.",
    ),
}
"""The panels of the decision's figure by the kind of their claims: title, axis, and how to read it."""
