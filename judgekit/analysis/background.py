"""What the tables of a comparison do not say: prices, needs, controls, and who answered."""

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
"""Controls that do not look at the question: 1 / rank in a fusion of the runs, and how long a document is.

Controls stand beside the labelings in every comparison and never win. A labeling that does no better than its
*question-only twin* tells easy questions from hard ones; one that does no better than the runs' own ranks adds nothing
to them. Labels shuffled within a query need no run of their own: within queries their r is known, 0.
"""
TWIN: Final = "twin of "
"""The name of a labeling's question-only twin is this and the labeling's."""


@dataclass(frozen=True)
class Background:
    """Facts about a comparison that its tables do not hold; an experiment knows all of them.

    Attributes:
        lower: measures, beside those known, whose small values are the good ones.
        controls: labelings of the scores table that are controls: they never win.
        twins: per labeling and query the mean label over the query's pool, the labeling's question-only twin.
        costs: standalone cost per labeling: ``labeling`` and any of ``requests``, ``prompt_tokens``,
            ``completion_tokens``, ``money``, ``request_seconds``; the labeling ``answers`` is answering end to end.
        money: what things cost that no table of costs tells, and what may be spent.
        pool: how much there is to label and to answer.
        needs: what each labeling needs and sees, by name.
        answering: how each model's answers were obtained, by the name in the quality table; with ``needs`` this finds
            the outcome by construction and labelings that ask the answering model.
        reranked: by run, the model that reranked it: a labeling by the same model favours that run.
        by_construction: further (labeling, model, metric) whose labels are the outcome at depth 1.
        notes: what the metrics engine noted per (labeling, run, measure), for flags and reasons: any of ``ties``,
            ``unjudged``, ``queries``, ``not_applicable``, ``reason``.
        obstacle: a sentence that says why there can be no decision, if there is a reason that the tables do not show.
        incomparable: likewise, why the primary measure does not compare these runs.
        kinds: the kind of each question, in the place of the column ``by`` of the rules.
        groups: the group of each question, in the place of their column ``groups``.
        questions: by query id the id of its question, the same for rows that ask the same; None where texts are not
            known. ``contradicting`` questions have rows with different reference answers, ``gold`` ones with different
            relevant documents.
        lists: the runs themselves, where they are known: answers to equal lists are equal, and measures that only count
            documents are flagged where lists are nested.
        pool_depth: how many documents of each run were labelled; None where it is not known.
        unanswerable: the questions that nothing answers. They are left out of all comparisons, and what runs do there
            is said apart.
        quality: what quality means where it is not that of answers, such as ``nDCG@10 by NIST``.
        grades: people's grades of the answers to some questions, rows ``run, query_id, value`` on 0 to 1.
        outcome: claims about the outcome itself, which qualify those made from it.
        weights: how many questions each question stands for, where they are a sample; none for all questions.
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
