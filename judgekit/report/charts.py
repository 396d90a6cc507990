"""The figures of a report: which there are, what they are drawn from, and how.

Each is one SVG that takes its colours from the style sheet of the figures, beside its numbers as a table. Where a
result has nothing to draw, its figure is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd
from markupsafe import Markup

from judgekit.analysis.measures import at_depth, best_measures
from judgekit.analysis.primary import CHOOSE_RUNS, FIND_QUESTIONS, GUARD, USES
from judgekit.analysis.resampling import percent
from judgekit.report import svg
from judgekit.report.figures import Figure, Figures
from judgekit.report.formatting import count, interval, number, split_flags
from judgekit.report.grids import HEADLINE, Cell, at_primary, records, where
from judgekit.report.model import Cost, LabelingInfo, Results
from judgekit.report.svg import WIDTH, Axis, tag
from judgekit.spec import slug

__all__ = [
    "CHANCE",
    "IN_WORDS",
    "Dot",
    "Series",
    "dot",
    "figures",
    "label_shares",
    "mean_scores",
    "places",
    "rows_of_dots",
    "spark",
    "spark_range",
    "tokens",
]

CHANCE: Final = 0.5
AROUND_CHANCE: Final = (CHANCE - 0.02, CHANCE + 0.1)
"""What every axis of concordances holds."""
IN_WORDS: Final = {
    CHOOSE_RUNS: "To choose between retrievers",
    FIND_QUESTIONS: "To find the questions that fail",
    GUARD: "To guard: what these labels would notice",
}
LEFT, RIGHT = 64.0, WIDTH - 16


@dataclass(frozen=True, slots=True)
class Dot:
    """One point of a series: where it stands, its value and interval, whether it is excluded, and a word on it."""

    series: str
    at: float
    value: float
    low: float = math.nan
    high: float = math.nan
    hollow: bool = False
    word: str = ""

    @property
    def note(self) -> str:
        """What it says, in words."""
        where = f", {self.word}" if self.word else "" if math.isnan(self.at) else f" at {self.at:,.10g}"
        return f"{self.series}{where}: {number(self.value)} {interval(self.low, self.high)}".rstrip()


Series = Mapping[str, Sequence[Dot]]
"""The dots of each panel of a figure, by its title."""


def figures(results: Results) -> Figures:
    """Return the figures that a result has, in the order in which a reader wants them."""
    found = (draw(results) for draw in _FIGURES)
    return Figures(one for one in found if one is not None)


def places(results: Results) -> dict[str, int]:
    """Return the number of each labeling, which gives it its colour and shape in every figure."""
    names = [*(info.name for info in results.labelings), *results.comparison["labeling"]]
    return {str(name): i for i, name in enumerate(dict.fromkeys(names))}


def _headline(results: Results) -> pd.DataFrame:
    """Return the comparison in the headline coefficient and the metric of the verdict, for every model."""
    return where(results.comparison, coefficient=HEADLINE, quality_metric=results.primary.metric)


def _by_uses(
    results: Results, frame: pd.DataFrame, at: Callable[[Mapping[str, Any]], tuple[float, str]]
) -> dict[str, list[Dot]]:
    """Return the dots of each use's level, of the uses that have any, that of the verdict first.

    Args:
        results: what the verdict is about.
        frame: rows of a comparison.
        at: where a row stands, and the word on its dot.
    """
    made: dict[str, list[Dot]] = {}
    for use, level in sorted(USES.items(), key=lambda use: use[1] != results.primary.level):
        dots = [dot(row, *at(row)) for row in records(where(frame, level=level))]
        if any(math.isfinite(d.value) for d in dots):
            made[IN_WORDS[use]] = dots
    return made


def dot(row: Mapping[str, Any], at: float, word: str = "") -> Dot:
    """Return the dot of a row of the comparison."""
    hollow = "by_construction" in split_flags(row["flags"])
    return Dot(row["labeling"], at, row["value"], row["ci_low"], row["ci_high"], hollow, word)


def _told(panels: Series) -> str:
    """Return what the dots say, for those who do not see them."""
    parts = [
        f"{title + ': ' if title else ''}{'; '.join(dot.note for dot in dots if math.isfinite(dot.value))}"
        for title, dots in panels.items()
    ]
    return ". ".join(parts) + "."


def _data(panels: Series, across: str, value: str, panel: str = "use") -> pd.DataFrame:
    rows = [
        (title, d.series, d.word or ("" if math.isnan(d.at) else d.at), d.value, d.low, d.high)
        for title, dots in panels.items()
        for d in dots
    ]
    frame = pd.DataFrame(rows, columns=[panel, "labeling", across, value, "low", "high"])
    return frame.drop(
        columns=[c for c in (panel, across, "low", "high") if not (frame[c] != "").any() or frame[c].isna().all()]
    )


def _values(dots: Iterable[Dot]) -> list[float]:
    return [v for d in dots for v in (d.value, d.low, d.high)]


def _panels(panels: Series, left: float, right: float, gap: float = 28.0) -> Iterator[tuple[float, float, str]]:
    """Yield where each panel begins and ends, side by side, and its title."""
    wide = (right - left - gap * (len(panels) - 1)) / len(panels)
    for place, title in enumerate(panels):
        yield left + place * (wide + gap), left + place * (wide + gap) + wide, title


def _title(start: float, title: str) -> Markup:
    return tag("text", svg.cut(title, 60), x=start, y=14, class_="strong")


def _made(
    name: str, title: str, caption: str, alt: str, height: float, body: Sequence[Markup], data: pd.DataFrame
) -> Figure:
    return Figure(name, title, caption, alt, svg.document(name, title, alt, height, body), data)


def _names(names: Sequence[str], top: float, step: float) -> tuple[float, list[Markup]]:
    """Return where the rows begin that have these names, and the names."""
    left = min(240.0, 24 + max(svg.text_width(svg.cut(name, 28)) for name in names))
    places = ((name, top + step * (i + 0.5) + 4) for i, name in enumerate(names))
    return left, [tag("text", svg.cut(n, 28), tag("title", n), x=left - 12, y=y, class_="end") for n, y in places]


def rows_of_dots(name: str, title: str, caption: str, panels: Series, order: Mapping[str, int]) -> Figure:
    """Return concordances as a row for each labeling with its dot and interval in each panel, the best first.

    A dot whose ``word`` is not empty is one of several behind the others, drawn as a stroke below.
    """
    main = [d for d in next(iter(panels.values())) if not d.word]
    every = [d for dots in panels.values() for d in dots]
    names = [d.series for d in sorted(main, key=lambda d: (d.hollow, -d.value if math.isfinite(d.value) else math.inf))]
    names = list(dict.fromkeys([*names, *(d.series for d in every)]))
    top = 24.0
    bottom = top + 38 * len(names)
    left, body = _names(names, top, 38)
    held = [*_values(every), *AROUND_CHANCE]
    for start, end, heading in _panels(panels, left, WIDTH - 20):
        x = svg.linear(held, start, end - 56, floor=0.0, ceiling=1.0)
        body += [_title(start, heading), svg.across(x, top, bottom, "concordance", chance=CHANCE)]
        for dot in panels[heading]:
            y = top + 38 * names.index(dot.series) + 19
            if not math.isfinite(dot.value):
                body.append(tag("text", "undefined", x=start + 6, y=y + 4, class_="quiet"))
            elif dot.word:
                body.append(tag("line", tag("title", dot.note), x1=x(dot.value), x2=x(dot.value), y1=y + 7, y2=y + 13,
                                class_=f"single {svg.colour(order[dot.series])}"))  # fmt: skip
            else:
                ends = (x(dot.low), y), (x(dot.high), y)
                body.append(svg.mark((x(dot.value), y), ends, order[dot.series], dot.note, hollow=dot.hollow))
                body.append(tag("text", number(dot.value), x=end, y=y + 4, class_="end quiet"))
    told = _told({heading: [dot for dot in dots if not dot.word] for heading, dots in panels.items()})
    return _made(name, title, caption, told, bottom + 44, body, _data(panels, "run", "concordance"))


def _lines(
    name: str,
    title: str,
    caption: str,
    panels: Series,
    order: Mapping[str, int],
    *,
    x_title: str,
    y_title: str = "concordance",
    names: Sequence[str] = (),
    panel: str = "use",
    marked: float | None = None,
    apart: bool = False,
) -> Figure:
    """Return a figure with the dots of each panel against a number on a logarithmic axis, or against names.

    Panels share the vertical axis, unless they are set ``apart``: then each has its own, with its title.
    """
    every = [d for dots in panels.values() for d in dots]
    top, bottom = 26.0, 300.0
    concordance = y_title == "concordance"
    held, chance = (AROUND_CHANCE, CHANCE) if concordance else ((0.0,), math.nan)
    series = dict(sorted({d.series: order[d.series] for d in every}.items(), key=lambda item: item[1]))
    body: list[Markup] = []
    for place, (start, end, heading) in enumerate(_panels(panels, LEFT, RIGHT, 64.0 if apart else 28.0)):
        shown = _values(panels[heading] if apart else every)
        y = svg.linear([*shown, *held], bottom, top, ceiling=1.0 if concordance else math.inf)
        positions, room = sorted({d.at for d in every}), min(40.0, (end - start) / 8)
        x = svg.bands(names, start, end) if names else svg.logarithmic(positions, start + room, end - room, positions)
        body += [_title(start, heading), svg.across(x, top, bottom, x_title, grid=False)]
        body.append(svg.upright(y, start, end, "" if place and not apart else y_title, chance=chance))
        if marked is not None:
            body.append(tag("line", x1=x(marked), x2=x(marked), y1=top, y2=bottom, class_="reference"))
        step = min(9.0, 0.7 * (end - start) / max(len(x.ticks), 1) / max(len(series), 1))
        for turn, (one, index) in enumerate(series.items()):
            shift = (turn - (len(series) - 1) / 2) * step
            mine = [d for d in panels[heading] if d.series == one and math.isfinite(d.value)]
            free = [(x(d.at) + shift, y(d.value)) for d in mine if not d.hollow]
            if len(free) > 1 and not names:
                body.append(svg.line(free, f"path {svg.colour(index)}"))
            for d in mine:
                px = x(d.at) + shift
                ends = (px, y(d.low)), (px, y(d.high))
                body.append(svg.mark((px, y(d.value)), ends, index, d.note, hollow=d.hollow))
    key, height = svg.legend(series, bottom + 60)
    return _made(name, title, caption, _told(panels), height, [*body, key], _data(panels, x_title, y_title, panel))


def _by_use(results: Results) -> Figure | None:
    """Return concordance of the primary measure by labeling, for both uses, with the single runs below."""
    primary = results.primary
    frame = where(_headline(results), model=primary.model, depth=primary.depth, measure=primary.measure)
    panels = _by_uses(results, frame, lambda row: (math.nan, "" if row["run"] == primary.run else row["run"]))
    if not panels:
        return None
    caption = (
        f"{primary.measure} by labeling: of two cases whose answers differ in quality, how often the score"
        f" favours the better one (0.5 is chance), with {percent(results.facts.confidence)} interval."
    )
    caption += " The small strokes are the single runs." * any(d.word for dots in panels.values() for d in dots)
    title = f"How often the better answer has the higher {primary.measure}"
    return rows_of_dots("by-use", title, caption, panels, places(results))


def _against_k(results: Results) -> Figure | None:
    """Return concordance against k for both uses, or None with fewer than two depths."""
    measure = results.primary.measure
    frame = where(_headline(results), model=results.primary.model, run=results.primary.run)
    cut = [k > 0 and name == at_depth(measure, k) for name, k in zip(frame["measure"], frame["depth"], strict=True)]
    frame = frame.loc[cut].sort_values("depth", kind="stable")
    panels = _by_uses(results, frame, lambda row: (row["depth"], ""))
    every = [d for dots in panels.values() for d in dots]
    if len({d.at for d in every if math.isfinite(d.value)}) < 2:
        return None
    caption = f"{at_depth(measure, None)} at each k: the questions are answered again from the top k."
    caption += " Hollow grey points are the outcome by construction." * any(d.hollow for d in every)
    return _lines("against-k", "Concordance against the number of documents", caption, panels, places(results),
                  x_title="k, documents that the answer is given")  # fmt: skip


def _best_at_k(results: Results) -> Figure | None:
    """Return the paper's Figure 1: each labeling's best measure at each k, with the primary one beside it."""
    primary = results.primary
    here = where(_headline(results), model=primary.model, run=primary.run, level=primary.level)
    best = best_measures(here[here["depth"] > 0], primary.measure)
    if len(set(best["k"])) < 2 or (best["measures"] < 2).all():
        return None
    panels = {
        f"{at_depth(primary.measure, None)}, fixed in advance": [
            Dot(r["labeling"], r["k"], r["primary"]) for r in records(best)
        ],
        "best measure, chosen after looking": [
            Dot(r["labeling"], r["k"], r["value"], word=r["measure"]) for r in records(best)
        ],
    }
    caption = (
        "Left: the measure that was fixed in advance. Right: for each labeling and k, whichever of"
        f" {best['measures'].max():.0f} measures follows the answers best. It was chosen after looking, so that it"
        " flatters; it has no interval, and no verdict rests on it."
    )
    drawn = _lines("best-against-k", "Each labeling's best measure at each k", caption, panels, places(results),
                   x_title="k, documents that the answer is given")  # fmt: skip
    return replace(drawn, data=best)


def _against_model(results: Results) -> Figure | None:
    """Return the paper's Figure 2: the primary measure against the model that answered, for both uses."""
    caption = f"{results.primary.measure}: the same labels against the answers of each model."
    return _against(results, _headline(results), "model", "answering model", caption)


def _against_mode(results: Results) -> Figure | None:
    """Return the paper's Figure 3: the primary measure against the way in which documents are given and answered."""
    if results.modes is None:
        return None
    measure = results.primary.measure
    caption = f"{measure}: the same labels against answers in each mode, on questions that have a value in all."
    return _against(results, where(results.modes, coefficient=HEADLINE), "mode", "mode of answering", caption)


def _against(results: Results, frame: pd.DataFrame, column: str, what: str, caption: str) -> Figure | None:
    primary, names = results.primary, [str(name) for name in dict.fromkeys(frame[column])]
    frame = where(frame, run=primary.run, depth=primary.depth, measure=primary.measure)
    panels = _by_uses(results, frame, lambda row: (names.index(row[column]), row[column])) if len(names) > 1 else {}
    if not panels:
        return None
    return _lines(f"against-{column}", f"Concordance against the {what}", caption, panels, places(results),
                  x_title=what, names=names)  # fmt: skip


def _worth(results: Results) -> tuple[str, dict[str, Dot]]:
    """Return what labelings are worth and its name: decision gain, or concordance where there is none."""
    primary = results.primary
    if results.gains is not None and primary.level == USES[CHOOSE_RUNS]:
        rows = records(where(results.gains, without=""))
        dots = [Dot(r["labeling"], 0, *(100 * r[end] for end in ("gain", "ci_low", "ci_high"))) for r in rows]
        return f"decision gain, {primary.metric} points", {d.series: d for d in dots}
    fixed = {"level": primary.level, "model": primary.model, "measure": primary.measure, "coefficient": HEADLINE}
    rows = records(at_primary(results.comparison, primary, **fixed))
    return "concordance", {row["labeling"]: dot(row, 0) for row in rows if math.isfinite(row["value"])}


def _frontier(dots: Iterable[Dot]) -> list[Dot]:
    """Return the dots that no other one beats at no higher cost, the cheapest first."""
    fair = [d for d in dots if not d.hollow]
    beaten = {
        d.series
        for d in fair
        if any(o.at <= d.at and o.value >= d.value and (o.at, o.value) != (d.at, d.value) for o in fair)
    }
    return sorted((d for d in fair if d.series not in beaten), key=lambda d: (d.at, d.value))


def _cost(results: Results) -> Figure | None:
    """Return cost against decision gain, or concordance where there is none, with the frontier as steps."""
    what, worth = _worth(results)
    automatic = [info for info in results.labelings if info.name in worth and not info.people]
    unit, of = _unit(automatic, results.currency)
    costs = {info.name: cost for info in automatic if (cost := of(info.spending.standalone)) is not None}
    if len(costs) < 2 or not any(costs.values()):
        return None
    order, dots = places(results), [replace(worth[name], at=cost) for name, cost in costs.items()]
    best = _frontier(dots)
    whole = [cost for a in results.answers if a.at_verdict is not None and (cost := of(a.at_verdict)) is not None]
    gain = what != "concordance"
    chance = 0.0 if gain else CHANCE
    top, bottom = 18.0, 310.0
    y = svg.linear([*_values(dots), chance], bottom, top)
    x = svg.logarithmic([c for c in (*costs.values(), sum(whole)) if c > 0], LEFT + 90, RIGHT - 40)

    def across(cost: float) -> float:
        return x(cost) if cost > 0 else LEFT + 34

    body = [svg.across(x, top, bottom, f"cost with nothing cached, {unit} (log scale)"),
            svg.upright(y, LEFT, RIGHT, what, chance=chance),
            tag("text", "0", x=across(0), y=bottom + 17, class_="tick middle")]  # fmt: skip
    if sum(whole):
        at = across(sum(whole))
        body.append(tag("line", x1=at, x2=at, y1=top, y2=bottom, class_="reference"))
        body.append(tag("text", "end to end", x=at - 5, y=bottom - 8, class_="quiet end"))
    if len(best) > 1:
        corners = [(across(best[0].at), y(best[0].value))]
        for d in best[1:]:
            corners += [(across(d.at), corners[-1][1]), (across(d.at), y(d.value))]
        body.append(svg.line(corners, "steps"))
    taken: list[tuple[float, float]] = []
    for d in sorted(dots, key=lambda d: -d.value):
        # Labelings of the same cost would hide each other's intervals; their names stand clear of all of them.
        base = across(d.at)
        px = base + 7 * sum(abs(base - near) < 1 for near, _ in taken)
        note = f"{count(d.at)} {unit}; {replace(d, at=math.nan).note}"
        ends = (px, y(d.low)), (px, y(d.high))
        body.append(svg.mark((px, y(d.value)), ends, order[d.series], note, hollow=d.hollow))
        label = svg.cut(d.series, 28)
        right_of = base + 7 * (sum(abs(base - across(c)) < 1 for c in costs.values()) - 1) + 10
        turned = right_of + svg.text_width(label) > RIGHT
        ty = y(d.value) - 8
        while any(abs(ty - other) < 14 and abs(px - near) < 170 for near, other in taken):
            ty += 14
        taken.append((base, ty))
        body.append(tag("text", label, x=base - 10 if turned else right_of, y=ty, class_="end" if turned else None))
    told = "; ".join(f"{d.series} takes {count(d.at)} {unit} for {number(d.value)}" for d in dots) + "."
    caption = f"{results.primary.measure}: the steps join the labelings that no other one beats at no higher cost."
    caption += " The decision gain is what choosing between two runs by a labeling wins over a coin flip." * gain
    unplaced = [name for name in worth if name not in costs and name in {info.name for info in results.labelings}]
    caption += f" Without a known cost: {', '.join(unplaced)}." if unplaced else ""
    data = pd.DataFrame(
        {"labeling": d.series, unit: d.at, what: d.value, "low": d.low, "high": d.high, "frontier": d in best}
        for d in dots
    )
    title = f"Cost against {'decision gain' if gain else what}"
    return _made("cost", title, caption, told, bottom + 48, body, data)


def tokens(cost: Cost) -> float | None:
    """Return prompt and completion tokens together, or None where they are unknown."""
    parts = cost.prompt_tokens, cost.completion_tokens
    return None if None in parts else float(sum(part or 0 for part in parts))


def _unit(infos: Sequence[LabelingInfo], currency: str) -> tuple[str, Callable[[Cost], float | None]]:
    """The most telling unit in which every labeling's cost is known: money, else tokens, else requests."""
    spent = [info.spending.standalone for info in infos]
    if all(cost.money is not None for cost in spent):
        return currency or "money", lambda cost: cost.money
    if all(tokens(cost) is not None for cost in spent):
        return "tokens", tokens
    return "requests", lambda cost: float(cost.requests)


def _widths(results: Results) -> Figure | None:
    """Return how wide the intervals would be with other numbers of queries."""
    frame, order = results.widths, places(results)
    if frame is None:
        return None
    panels: dict[str, list[Dot]] = {}
    for column, title, scale in (
        ("concordance_width", "concordance", 1.0),
        ("gain_width", f"decision gain, {results.primary.metric} points", 100.0),
    ):
        rows = [r for r in records(frame) if math.isfinite(r[column]) and r["labeling"] in order]
        if rows:
            panels[title] = [Dot(r["labeling"], r["queries"], scale * r[column]) for r in rows]
    if not panels:
        return None
    here = results.facts.queries if results.facts.queries in set(frame["queries"]) else None
    caption = (
        "Expected width of the intervals with other numbers of queries like these: it shrinks with the root of their"
        " number."
    )
    caption += " The dashed line is this experiment." if here else ""
    return _lines("queries", "How many queries it takes", caption, panels, order, x_title="queries",
                  y_title="width of the interval", panel="of", marked=here, apart=True)  # fmt: skip


def _cases(results: Results) -> Figure | None:
    """Return score against quality per query and run: as many cases as a circle is large, and their mean quality."""
    frame, order = results.cases, places(results)
    parts = {} if frame is None else {n: rows for n in order if len(rows := where(frame, labeling=n))}
    if frame is None or not parts:
        return None
    columns, high, top = 3, 190.0, 26.0
    wide = (RIGHT - LEFT - 30 * (columns - 1)) / columns
    y0 = svg.linear([*frame["quality"], 0, 1], top + 110, top + 12)
    most, body, told = frame["n"].max(), list[Markup](), list[str]()
    for place, (name, rows) in enumerate(parts.items()):
        start, drop = LEFT + place % columns * (wide + 30), place // columns * high
        y = Axis(y0.low, y0.high, y0.start + drop, y0.end + drop, y0.ticks)
        x = svg.linear([*frame["score"], 0, 1], start + 12, start + wide - 12)
        body.append(
            tag("text", svg.cut(name, round(wide / 8)), tag("title", name), x=start, y=drop + 12, class_="strong")
        )
        body.append(svg.across(x, y.end, y.start + 6, "score", grid=False))
        body.append(svg.upright(y, start, start + wide, "" if place % columns else "quality"))
        for r in records(rows):
            note = f"{name}: {r['n']:,} cases with score {number(r['score'])} and quality {number(r['quality'])}"
            radius = max(1.0, 11 * math.sqrt(r["n"] / most))
            body.append(tag("circle", tag("title", note), cx=x(r["score"]), cy=y(r["quality"]), r=radius,
                            class_=f"point {svg.colour(order[name])}", fill_opacity=0.45))  # fmt: skip
        sums = rows.assign(sum=rows["quality"] * rows["n"]).groupby("score")[["sum", "n"]].sum().reset_index()
        mean = [(r["score"], r["sum"] / r["n"]) for r in records(sums)]
        body.append(svg.line([(x(score), y(quality)) for score, quality in mean], f"path {svg.colour(order[name])}"))
        ends = number(mean[0][1]), number(mean[-1][1])
        told.append(f"{name}: mean quality goes from {ends[0]} at the lowest score to {ends[1]} at the highest")
    height = (len(parts) + columns - 1) // columns * high
    title = f"Score against quality, per question and run: {results.primary.measure}"
    caption = (
        f"Each circle stands for the questions and runs with this score and this {results.primary.metric}; the larger,"
        " the more. The line is their mean quality: a labeling that follows the answers rises from left to right."
    )
    return _made("score-quality", title, caption, "; ".join(told) + ".", height, body, frame)


def _shares(results: Results) -> Figure | None:
    """Return which labels each labeling gives, and how many are missing."""
    known = {info.name: (info.labels, info.missing) for info in results.labelings if info.labels}
    return label_shares(known) if known else None


def label_shares(known: Mapping[str, tuple[Mapping[str, int], int]]) -> Figure:
    """Return the distribution of labels: by labeling how often each was given, and how many are missing."""
    top, told, rows = 10.0, list[str](), list[dict[str, object]]()
    left, body = _names(list(known), top, 34)
    x = Axis(0, 100, left, RIGHT - 10, tuple((v, f"{v} %") for v in (0, 25, 50, 75, 100)))
    bottom = top + 34 * len(known)
    body.append(svg.across(x, top, bottom, "share of the labels"))
    for place, (name, (given, missing)) in enumerate(known.items()):
        parts = [*given.items(), ("missing", missing)]
        total, at, y = max(sum(n for _, n in parts), 1), 0.0, top + 34 * place + 5
        for turn, (label, n) in enumerate(parts):
            rows.append({"labeling": name, "label": label, "count": n, "share": n / total})
            if not n:
                continue
            start, share = x(at), 100 * n / total
            at += share
            lost = label == "missing"
            opacity = None if lost else 0.1 + 0.4 * turn / max(len(given) - 1, 1)
            note = f"{name}, {label}: {n:,} of {total:,} ({share:.1f} %)"
            wide = x(at) - start
            body.append(tag("rect", tag("title", note), x=start, y=y, width=wide, height=24,
                            class_="lost" if lost else "share", fill_opacity=opacity))  # fmt: skip
            for text, room in ((f"{label}: {share:.0f} %", 8), (label, 6.1)):
                if svg.text_width(text) + room <= wide:
                    body.append(tag("text", text, x=start + 6, y=y + 16))
                    break
        told.append(f"{name}: " + ", ".join(f"{label} {100 * n / total:.0f} %" for label, n in parts if n))
    caption = (
        "The share of each label among all pairs of the pool; the darker, the more relevant."
        " Missing labels count for nothing."
    )
    return _made(
        "labels", "Which labels were given", caption, "; ".join(told) + ".", bottom + 48, body, pd.DataFrame(rows)
    )


def _agreement(results: Results) -> Figure | None:
    """Return agreement between labelings as a heat map."""
    frame = results.agreement
    if frame is None or not {"first", "second", "kappa"} <= set(frame.columns):
        return None
    names = [n for n in places(results) if n in {*frame["first"], *frame["second"]}]
    if len(names) < 2:
        return None
    found = {frozenset((r["first"], r["second"])): r for r in records(frame)}
    top = 10.0
    left, body = _names(names, top, 38)
    wide = min(110.0, (RIGHT - left) / len(names))
    bottom = top + 38 * len(names)
    for i, one in enumerate(names):
        short = svg.cut(one, max(3, round(wide / 7.5)))
        body.append(
            tag("text", short, tag("title", one), x=left + wide * (i + 0.5), y=bottom + 18, class_="tick middle")
        )
        for j, other in enumerate(names):
            r = found.get(frozenset((one, other)))
            if i == j or r is None or not math.isfinite(r["kappa"]):
                continue
            note = f"{one} and {other}: kappa {number(r['kappa'])} {interval(r['ci_low'], r['ci_high'])}".rstrip()
            body.append(tag("rect", tag("title", note), x=left + wide * j, y=top + 38 * i, width=wide, height=38,
                            class_="share", fill_opacity=0.04 + 0.46 * max(0.0, r["kappa"])))  # fmt: skip
            body.append(
                tag("text", number(r["kappa"], 2), x=left + wide * (j + 0.5), y=top + 38 * i + 24, class_="middle")
            )
    told = "; ".join(
        f"{' and '.join(pair)} {number(r['kappa'])}" for pair, r in ((sorted(p), r) for p, r in found.items())
    )
    caption = (
        "Cohen's kappa of what counts as relevant, on the pairs that both labelled: 1 is the same on every pair, 0 what"
        " chance gives."
    )
    return _made("agreement", "Agreement between labelings", caption, told + ".", bottom + 30, body, frame)


_FIGURES: Final = (_by_use, _cost, _against_k, _best_at_k, _against_model, _against_mode, _widths, _cases, _shares,
                   _agreement)  # fmt: skip


def mean_scores(means: pd.DataFrame) -> Iterator[Figure]:
    """Yield for each measure the mean scores of the runs under each labeling: columns of a score table."""
    order = {str(name): place for place, name in enumerate(dict.fromkeys(means["labeling"]))}
    runs = [str(run) for run in dict.fromkeys(means["run"])]
    for measure in dict.fromkeys(means["measure"]):
        rows = records(where(means, measure=measure))
        dots = [Dot(r["labeling"], runs.index(r["run"]), r["value"], word=r["run"]) for r in rows]
        if any(math.isfinite(dot.value) for dot in dots):
            caption = f"Mean {measure} over the questions, of each run under each labeling."
            yield _lines(slug(f"scores-{measure}"), f"Mean {measure} of the runs", caption, {"": dots}, order,
                         x_title="run", y_title=measure, names=runs)  # fmt: skip


def spark_range(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return the range on which the small pictures of one table are drawn; chance is in it."""
    numbers = [v for c in cells for v in (c.value, c.low, c.high)]
    x = svg.linear([*numbers, *AROUND_CHANCE], 0, 330, floor=0.0, ceiling=1.0)
    return x.low, x.high


def spark(cell: Cell, low: float, high: float) -> Markup:
    """Return the small picture in a table cell: the interval and the point between ``low`` and ``high``."""
    if not cell.defined:
        return Markup("")
    x = Axis(low, high, 3.0, 87.0)
    body = [
        tag("line", x1=x(low), x2=x(high), y1=5, y2=5, class_="rail"),
        tag("line", x1=x(CHANCE), x2=x(CHANCE), y1=1, y2=9, class_="chance"),
    ]
    if interval(cell.low, cell.high):
        body.append(tag("line", x1=x(cell.low), x2=x(cell.high), y1=5, y2=5, class_="bar"))
    body.append(tag("circle", cx=x(cell.value), cy=5, r=2.6, class_="dot"))
    return tag("svg", *body, viewBox="0 0 90 10", width=90, height=10, class_="spark", aria_hidden="true")
