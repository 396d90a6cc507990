"""Figures and a summary of the API's objects, as in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import singledispatch
from typing import Any

from markupsafe import Markup

from judgekit.analysis.comparison import Comparison
from judgekit.analysis.decision import Decision
from judgekit.data.labelings import Labeling
from judgekit.errors import UsageError
from judgekit.metrics import Evaluation
from judgekit.report.charts import decided, figures as drawn, paper_figures
from judgekit.report.formatting import count
from judgekit.report.grids import HEADLINE
from judgekit.report.markup import fill
from judgekit.report.model import Facts, LabelingInfo, Results
from judgekit.report.page import generic
from judgekit.report.svg import Figures


@singledispatch
def figures(thing: object, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    """Return the figures of a comparison, decision, labeling, evaluation or finished experiment.

    Args:
        thing: one of these, or the `Results` of a report; several results by name (a mapping) give Figures 1 to 3 of
            the eRAG paper over all of them.
        coefficient: for the figures of a comparison: ``concordance``, ``tau_b``, ``rho`` or ``r``.
        run: the retriever for the figures of a comparison, over questions as in the paper; None for the mean over all.

    Returns:
        All figures that the data allow, each as SVG with its numbers. Figures 1 to 3 are those of eRAG (Salemi and
        Zamani, 2024).

    Raises:
        UsageError: it is another object, or there is no such coefficient or run.
    """
    results = getattr(thing, "results", None)
    if not isinstance(results, Results):
        raise UsageError(
            "figures show a decision or a result of compare, label, score or run, not an object of type"
            f" {type(thing).__name__}"
        )
    return figures(results, coefficient, run)


@figures.register
def _(thing: Results, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    return Figures(drawn(thing, coefficient, run), summary=_summary(thing.decision))


@figures.register(Mapping)
def _(thing: Mapping[str, Any], coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    return paper_figures({name: getattr(one, "results", one) for name, one in thing.items()}, coefficient, run)


@figures.register
def _(thing: Comparison, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    decision, names = thing.decision, dict.fromkeys(thing.table["labeling"])
    # A comparison of tables knows no files, so only the figures' data are filled in.
    results = Results(
        title="",
        comparison=thing.table,
        labelings=tuple(LabelingInfo(str(name), "") for name in names),
        answers=(),
        primary=thing.primary,
        claims=decision.claims,
        facts=Facts(0, 0, 0, 0, confidence=thing.rules.confidence),
        modes=thing.modes,
    )
    return Figures(drawn(results, coefficient, run), summary=_summary(decision.lines))


@figures.register
def _(thing: Decision, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    return Figures([decided(thing.claims, {})], summary=_summary(thing.lines))


def _summary(
    lines: Sequence[tuple[str, str]] = (), *, texts: Iterable[str] = (), table: Mapping[str, Any] | None = None
) -> Markup:
    return fill("summary.html", lines=lines, texts=texts, table=table)


@figures.register
def _(thing: Labeling, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    # Missing labels come first: a mean of the others says little without them.
    counts = [f"{count(n)} {status.replace('_', ' ')}" for status, n in thing.counts().items() if n]
    labels = [f"{count(n)} × {label}" for label, n in thing.shares().items()]
    text = f"{thing.name}: {count(len(thing))} labels on {thing.scale} ({', '.join(counts)}): {', '.join(labels)}."
    return Figures(summary=_summary(texts=[text]))


@figures.register
def _(thing: Evaluation, coefficient: str = HEADLINE, run: str | None = None) -> Figures:
    # A table, not a figure: a bar chart of means would hide that most runs differ by chance.
    means = thing.means()
    wide = means.pivot(index=["labeling", "run"], columns="measure", values="value").reset_index()
    summary = _summary(texts=thing.warnings, table=generic(wide, confidence=0.95))
    return Figures(summary=summary)
