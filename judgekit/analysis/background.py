"""Facts beside the tables of a comparison: prices, needs, controls, and who answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pandas as pd

from judgekit.analysis.claims import Claim
from judgekit.analysis.leakage import AnsweredBy
from judgekit.analysis.money import Money
from judgekit.collection import Pool

if TYPE_CHECKING:
    from judgekit.data.runs import Run
    from judgekit.labelers.base import Needs

CLOSED_BOOK: Final = "closed-book"
RETRIEVER: Final = "retriever (control)"
LENGTH: Final = "length (control)"
"""Controls that do not look at the question: 1 / rank in a fusion of the runs, and the length of a document.

Controls stand beside the labelings in every comparison and never win. A labeling that does no better than its
*question-only twin* tells easy questions from hard ones; one that does no better than the runs' own ranks adds nothing
to them. Labels shuffled within a query need no run of their own: within queries their r is known, 0.
"""
TWIN: Final = "twin of "
"""A twin's name is this followed by its labeling's name."""


@dataclass(frozen=True)
class Background:
    """Facts about a comparison that its tables do not hold; an experiment knows all of them.

    Attributes:
        lower: further measures for which lower is better.
        controls: labelings of the scores table that are controls: they never win.
        twins: per labeling and query the mean label over the query's pool, the labeling's question-only twin.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``, ``request_seconds``; the labeling ``answers`` is answering end to end.
        money: prices that no table of costs holds, and the budget.
        pool: the number of pairs to label and of answers.
        needs: what each labeling needs and sees, by name.
        answering: how each model's answers were obtained, by the name in the quality table; with ``needs`` this finds
            the outcome by construction and labelings that ask the answering model.
        reranked: the model that reranked each run; a labeling by the same model favours it.
        by_construction: further (labeling, model, metric) whose labels are the outcome at depth 1.
        notes: what the metrics engine noted per (labeling, run, measure), for flags and reasons: any of ``ties``,
            ``unjudged``, ``queries``, ``not_applicable``, ``reason``.
        obstacle: a sentence on why there can be no decision, for a reason that the tables do not show.
        incomparable: likewise, why the primary measure does not compare these runs.
        kinds: the kind of each question; replaces the column ``by`` of the rules.
        groups: the group of each question; replaces the column ``groups`` of the rules.
        questions: the id of each row's question, by query id, the same for rows that ask the same; None if texts are
            unknown. ``contradicting`` questions have rows with different reference answers, ``gold`` ones with
            different relevant documents.
        lists: the runs themselves, if known: answers to equal lists are equal, and nested lists flag measures that only
            count documents.
        pool_depth: number of documents labelled per run and query; None if unknown.
        unanswerable: the questions that no document answers. Comparisons leave them out; the runs' behaviour on them is
            reported apart.
        quality: what quality means if it is not that of answers, such as ``nDCG@10 by NIST``.
        grades: people's grades of the answers to some questions, rows ``run, query_id, value`` on 0 to 1.
        outcome: claims about the outcome itself, which qualify the claims made from it.
        weights: how many questions each question stands for, if they are a sample; empty otherwise.
        file: the experiment file, as commands name it; "" where there is none.
    """

    lower: Collection[str] = ()
    controls: Collection[str] = ()
    twins: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    costs: pd.DataFrame | None = None
    money: Money = field(default_factory=Money)
    pool: Pool | None = None
    needs: Mapping[str, Needs] = field(default_factory=dict)
    answering: Mapping[str, AnsweredBy] = field(default_factory=dict)
    reranked: Mapping[str, str] = field(default_factory=dict)
    by_construction: Collection[tuple[str, str, str]] = ()
    notes: pd.DataFrame | None = None
    obstacle: str = ""
    incomparable: str = ""
    kinds: Mapping[str, str] | None = None
    groups: Mapping[str, str] | None = None
    questions: Mapping[str, str] | None = None
    contradicting: int = 0
    gold: int = 0
    lists: Sequence[Run] = ()
    pool_depth: int | None = None
    unanswerable: Collection[str] = ()
    quality: str = ""
    grades: pd.DataFrame | None = None
    outcome: Sequence[Claim] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    file: str = ""
