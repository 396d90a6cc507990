"""Figures and a summary of the objects of the API: the report's own, made of what such an object holds."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import pandas as pd
from markupsafe import Markup

from judgekit.analysis.comparison import Comparison, plan_queries
from judgekit.analysis.primary import USES
from judgekit.analysis.verdict import Verdict
from judgekit.data.labelings import Labeling
from judgekit.data.tables import ALL, NOT_MISSING
from judgekit.errors import UsageError
from judgekit.metrics import Evaluation
from judgekit.report import charts
from judgekit.report.charts import IN_WORDS, Dot
from judgekit.report.figures import Figures
from judgekit.report.formatting import clean, count, interval, number
from judgekit.report.grids import records
from judgekit.report.model import Cost, Facts, LabelingInfo, Results, Spending
from judgekit.report.svg import join, tag

__all__ = ["figures"]


@singledispatch
def figures(thing: object) -> Figures:
    """Return the figures of a comparison, verdict, labeling, evaluation or finished experiment.

    Args:
        thing: one of these, or the `Results` of a report.

    Raises:
        UsageError: it is something else.
    """
    results = getattr(thing, "results", None)
    if not isinstance(results, Results):
        raise UsageError(
            "figures are drawn of what compare, label, score and run return, and of a verdict; this is of type"
            f" {type(thing).__name__}"
        )
    return figures(results)


@figures.register
def _(thing: Results) -> Figures:
    return Figures(charts.figures(thing), summary=_sentences(thing.verdict))


@figures.register
def _(thing: Comparison) -> Figures:
    verdict = thing.verdict
    found = verdict.found
    costs = {str(row["labeling"]): row for row in records(thing.costs)}
    drawn = charts.figures(
        Results(
            title="",
            comparison=thing.table,
            labelings=tuple(_known(name, costs.get(name, {})) for name in dict.fromkeys(thing.table["labeling"])),
            answers=(),
            primary=verdict.primary,
            verdict=verdict.sentences,
            facts=Facts(found.queries if found else 0, 0, 0, 0, confidence=thing.settings["confidence"]),
            gains=thing.gains if len(thing.gains) else None,
            cases=thing.cases,
            widths=plan_queries(thing) if found else None,
            modes=None if thing.modes is None else thing.modes.table,
        )
    )
    return Figures(drawn, summary=_sentences(verdict.sentences) + _table(_worth(thing)))


def _known(name: str, costs: dict[str, Any]) -> LabelingInfo:
    """Return what a table of costs knows of a labeling; one of unknown cost counts as made by people."""
    columns = ("requests", "prompt_tokens", "completion_tokens", "money")
    requests, prompt, completion, money = (None if math.isnan(costs.get(c, math.nan)) else costs[c] for c in columns)
    prompt, completion = (None if value is None else round(value) for value in (prompt, completion))
    cost = Cost(round(requests or 0), prompt, completion, money)
    return LabelingInfo(name, "", people=requests is None, spending=Spending(cost))


def _worth(comparison: Comparison) -> pd.DataFrame:
    """Return what each labeling is worth for each use, in words."""
    rows: dict[str, dict[str, str]] = {}
    for use, verdict in comparison.verdicts.items():
        for one in verdict.found.standings if verdict.found and use in USES else ():
            row = rows.setdefault(one.labeling, {"labeling": one.labeling})
            row[IN_WORDS[use]] = f"{number(one.concordance)} {interval(one.low, one.high)}"
            if one.gain is not None:
                low, high = one.gain.interval(comparison.settings["confidence"])
                row["decision gain, points"] = f"{100 * one.gain.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
    return pd.DataFrame(list(rows.values())).fillna("")


@figures.register
def _(thing: Verdict) -> Figures:
    standings = thing.found.standings if thing.found else ()
    if not standings:
        return Figures(summary=_sentences(thing.sentences))
    dots = [Dot(one.labeling, math.nan, one.concordance, one.low, one.high) for one in standings]
    order = {name: place for place, name in enumerate(sorted(dot.series for dot in dots))}
    title = f"How often the better answer has the higher {thing.primary.measure}"
    caption = f"{thing.primary}: concordance with its interval; 0.5 is chance."
    drawn = charts.rows_of_dots("verdict", title, caption, {IN_WORDS[thing.primary.use]: dots}, order)
    return Figures([drawn], summary=_sentences(thing.sentences))


@figures.register
def _(thing: Labeling) -> Figures:
    counts = thing.counts()
    missing = sum(n for status, n in counts.items() if status not in NOT_MISSING)
    said = ", ".join(f"{count(n)} {status.replace('_', ' ')}" for status, n in counts.items() if n)
    drawn = [charts.label_shares({thing.name: (thing.shares(), missing)})] if len(thing) else []
    return Figures(drawn, summary=_sentences([f"{thing.name}: {count(len(thing))} labels on {thing.scale} ({said})."]))


@figures.register
def _(thing: Evaluation) -> Figures:
    means = thing.means()
    wide = means.pivot(index=["labeling", "run"], columns="measure", values="value").reset_index()
    shown = wide.map(lambda value: number(value) if isinstance(value, float) else value)
    summary = _sentences(thing.warnings) + _table(shown.rename_axis(columns=None))
    return Figures(charts.mean_scores(means[means["query_id"] == ALL]), summary=summary)


def _sentences(sentences: tuple[str, ...] | list[str]) -> Markup:
    first = [tag("p", tag("strong", one)) for one in sentences[:1]]
    rest = [tag("ul", *(tag("li", one) for one in sentences[1:]))] if sentences[1:] else []
    return join([*first, *rest])


def _table(frame: pd.DataFrame) -> Markup:
    head = tag("tr", *(tag("th", clean(str(name))) for name in frame.columns))
    rows = (tag("tr", *(tag("td", str(value)) for value in row)) for row in frame.itertuples(index=False))
    return tag("table", tag("thead", head), tag("tbody", *rows))
